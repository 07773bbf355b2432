/* JSON documents as files. Any thread, one document at a time. Invariant: a reader never sees
 * half a document under its final name. */
#include "report/json_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *report_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *report_json_ms(double ns) { return report_json_number(ns / 1e6); }

json_t *report_json_text(const char *text) {
    if (text == NULL) return json_null();
    json_t *string = json_stringn(text, strlen(text)); /* NULL: not UTF-8 */
    if (string != NULL) return string;
    struct buf quoted;
    buf_init(&quoted);
    buf_json_string(&quoted, view_of(text));
    if (!quoted.failed)
        string = json_loadb(quoted.data, quoted.size, JSON_DECODE_ANY, NULL);
    buf_done(&quoted);
    return string;
}

MUST_CHECK static enum status write_file(const json_t *document, const char *path,
                                         struct err *err) {
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return err_set(err, ST_IO, "cannot write %s: %s", path, strerror(errno));
    int failed = json_dumpf(document, file, JSON_FILE_FLAGS);
    if (fputc('\n', file) == EOF) failed = -1;
    if (fclose(file) != 0) failed = -1;
    if (failed != 0) {
        unlink(path);
        return err_set(err, ST_IO, "cannot write %s: %s", path, strerror(errno));
    }
    return ST_OK;
}

enum status json_file_write(const json_t *document, const char *path, struct err *err) {
    if (document == NULL)
        return err_set(err, ST_NO_MEMORY, "out of memory while building %s", path);
    struct buf beside;
    buf_init(&beside);
    buf_printf(&beside, "%s.part", path);
    buf_char(&beside, 0);
    enum status status = ST_NO_MEMORY;
    if (beside.failed) {
        (void)err_set(err, status, "out of memory while writing %s", path);
        goto out;
    }
    status = write_file(document, beside.data, err);
    if (status == ST_OK && rename(beside.data, path) != 0) {
        status = err_set(err, ST_IO, "cannot rename %s to %s: %s", beside.data, path,
                         strerror(errno));
        unlink(beside.data);
    }
out:
    buf_done(&beside);
    return status;
}

enum status json_file_read(const char *path, json_t **out_document, struct err *err) {
    json_error_t where;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "cannot read %s: %s", path,
                       strerror(errno));
    json_t *document = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    fclose(file);
    if (document == NULL)
        return err_set(err, ST_INVALID, "%s is not JSON: line %d, column %d: %s", path,
                       where.line, where.column, where.text);
    *out_document = document;
    return ST_OK;
}

enum status json_file_print(const json_t *document, struct buf *out) {
    char *text = document == NULL ? NULL : json_dumps(document, JSON_FILE_FLAGS);
    if (text == NULL) return ST_NO_MEMORY;
    buf_text(out, text);
    buf_char(out, '\n');
    free(text);
    return out->failed ? ST_NO_MEMORY : ST_OK;
}
