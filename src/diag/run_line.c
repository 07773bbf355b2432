/* Fields by table. Any thread. Invariant: only fields of the table are written, and a number
 * that does not fit its field is a mistake, never cut. Users: run_read.c, run_client.c. */
#include "diag/run_line.h"

#include <stdio.h>
#include <string.h>

static enum status not_a(const struct line_field *field, const char *kind, struct err *err) {
    return err_set(err, ST_INVALID, "%s is not %s", field->name, kind);
}

static enum status store(const struct line_field *field, const struct jsonl_value *value, void *out,
                         struct err *err) {
    char *at = (char *)out + field->offset;
    switch (field->kind) {
    case LINE_U64:
    case LINE_U32:
    case LINE_U8:
        if (value->kind != JSONL_NUMBER || !value->is_integer)
            return not_a(field, "an integer, or too large", err);
        if (field->kind == LINE_U64) {
            memcpy(at, &value->integer, sizeof value->integer);
            return ST_OK;
        }
        if (value->integer > (field->kind == LINE_U32 ? UINT32_MAX : UINT8_MAX))
            return not_a(field, "a number in its range", err);
        if (field->kind == LINE_U32) {
            const uint32_t narrow = (uint32_t)value->integer;
            memcpy(at, &narrow, sizeof narrow);
        } else {
            *at = (char)value->integer;
        }
        return ST_OK;
    case LINE_FLOAT: {
        const float number = (float)jsonl_double(value);
        if (value->kind != JSONL_NUMBER || !(number >= 0)) return not_a(field, "a number", err);
        memcpy(at, &number, sizeof number);
        return ST_OK;
    }
    case LINE_BOOLEAN: {
        if (value->kind != JSONL_BOOLEAN) return not_a(field, "true or false", err);
        memcpy(at, &value->is_true, sizeof value->is_true);
        return ST_OK;
    }
    case LINE_VALUE:
        if (value->kind != JSONL_TEXT) return not_a(field, "a text", err);
        memcpy(at, value, sizeof *value);
        return ST_OK;
    case LINE_NESTED:
        if (value->kind != JSONL_NESTED) return not_a(field, "an object", err);
        memcpy(at, value, sizeof *value);
        return ST_OK;
    }
    return ST_OK;
}

/* Index of the field of that name, looked for from `from` on; count: none. */
static size_t find(const struct line_field *fields, size_t count, size_t from, struct view key) {
    for (size_t i = 0; i < count; i++) {
        const size_t index = from + i < count ? from + i : from + i - count;
        if (view_is(key, fields[index].name)) return index;
    }
    return count;
}

enum status line_read(const struct line_field *fields, size_t count, struct view line, void *out,
                      struct err *err) {
    struct jsonl jsonl;
    struct view key;
    struct jsonl_value value;
    uint64_t seen = 0;
    size_t expected = 0;
    jsonl_begin(&jsonl, line);
    while (jsonl_next(&jsonl, &key, &value)) {
        const size_t index = find(fields, count, expected, key);
        if (index == count) continue;
        expected = index + 1 < count ? index + 1 : 0;
        seen |= 1ull << index;
        const enum status status = store(&fields[index], &value, out, err);
        if (status != ST_OK) return status;
    }
    if (jsonl.problem != NULL) return err_set(err, ST_INVALID, "%s", jsonl.problem);
    for (size_t i = 0; i < count; i++)
        if (fields[i].is_needed && (seen >> i & 1) == 0)
            return err_set(err, ST_INVALID, "%s is missing", fields[i].name);
    return ST_OK;
}

enum status line_read_file(const char *path,
                           enum status (*read_line)(struct run *, struct view, struct err *),
                           struct run *run, struct err *err) {
    struct line_reader reader;
    struct view line;
    bool is_whole;
    enum status status = line_reader_open(&reader, path, err);
    if (status != ST_OK) return status;
    while (line_reader_next(&reader, &line, &is_whole, &status, err)) {
        status = read_line(run, line, err);
        if (status == ST_OK) continue;
        if (status == ST_INVALID && !is_whole) {
            run->lines_cut++;
            status = ST_OK;
            break;
        }
        err_prefix(err, "%s, line %llu", path, (unsigned long long)reader.number);
        line_reader_done(&reader);
        return status;
    }
    if (status != ST_OK) err_prefix(err, "%s", path);
    line_reader_done(&reader);
    return status;
}

enum status run_path(const char *directory, const char *name, char *out, struct err *err) {
    const int size = snprintf(out, RUN_PATH_SIZE, "%s/%s", directory, name);
    if (size < 0 || size >= RUN_PATH_SIZE)
        return err_set(err, ST_INVALID, "the directory's name is too long");
    return ST_OK;
}
