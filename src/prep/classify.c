/* Logits to probabilities, and the names of the labels. Any thread; no state. Invariant: the
 * largest exponent is exp(0), so that no logit overflows. */
#include "prep/classify.h"
#include "prep/unicode_table.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LABEL_BYTES_MAX = 16 << 20 }; /* ImageNet's labels are 22 KB */

size_t classify_softmax(const float *logits, size_t count, float *out) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        /* Not-a-number never wins, unless there is nothing else. */
        if (logits[i] > logits[best] || isnan(logits[best])) {
            best = i;
        }
    }
    float largest = count > 0 ? logits[best] : 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        /* The difference of two equal infinities is no number; they are as likely as can be. */
        out[i] = logits[i] == largest ? 1.0f : expf(logits[i] - largest);
        sum += out[i];
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)(out[i] / sum);
    }
    return best;
}

static enum status read_labels(FILE *file, const char *path, struct arena *arena,
                               struct view *out_text, struct err *err) {
    if (fgetc(file) == EOF && ferror(file)) { /* a directory, whose size would be absurd */
        return err_set(err, ST_IO, "%s: %s", path, strerror(errno));
    }
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0) {
        return err_set(err, ST_IO, "%s: %s", path, strerror(errno));
    }
    if (size > LABEL_BYTES_MAX) {
        return err_set(err, ST_TOO_LARGE, "%s: %ld bytes, at most %d are read", path, size,
                       LABEL_BYTES_MAX);
    }
    char *data = arena_alloc(arena, (size_t)size);
    if (data == NULL) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for %ld bytes", path, size);
    }
    if (fread(data, 1, (size_t)size, file) != (size_t)size) {
        return err_set(err, ST_IO, "%s: could not be read to its end", path);
    }
    *out_text = (struct view){data, (size_t)size};
    return ST_OK;
}

/* Takes the line at the start of text, without its end ("\n" or "\r\n"). */
static struct view next_line(struct view *text) {
    const char *end = memchr(text->data, '\n', text->size);
    struct view line = {text->data, end == NULL ? text->size : (size_t)(end - text->data)};
    size_t taken = line.size + (end != NULL);
    text->data += taken;
    text->size -= taken;
    if (line.size > 0 && line.data[line.size - 1] == '\r') {
        line.size--;
    }
    return line;
}

enum status labels_load(const char *path, struct arena *arena, struct labels *out,
                        struct err *err) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "%s: %s", path,
                       strerror(errno));
    }
    struct view text = {.data = NULL};
    enum status status = read_labels(file, path, arena, &text, err);
    (void)fclose(file);
    if (status != ST_OK) {
        return status;
    }
    if (text.size == 0) {
        return err_set(err, ST_INVALID, "%s is empty: a name a line is expected", path);
    }
    size_t count = 0;
    for (struct view rest = text; rest.size > 0; count++) {
        (void)next_line(&rest);
    }
    struct view *names = arena_array(arena, count, sizeof *names);
    if (names == NULL) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for %zu labels", path, count);
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = next_line(&text);
        if (utf8_valid_prefix(names[i]) != names[i].size) { /* no JSON could carry it */
            return err_set(err, ST_INVALID, "%s:%zu: is not UTF-8", path, i + 1);
        }
    }
    *out = (struct labels){.names = names, .count = count};
    return ST_OK;
}
