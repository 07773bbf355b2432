/* Flat JSON objects and lines, without a tree. Any thread, one reader each. Invariant: at is
 * never moved past end, whatever the bytes are (fuzz/diag_jsonl_fuzz.c). Read next: run_read.c,
 * which turns members into fields. */
#include "diag/jsonl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 64, NUMBER_MAX_BYTES = 64 };

static bool fail(struct jsonl *jsonl, const char *problem) {
    if (jsonl->problem == NULL) jsonl->problem = problem;
    return false;
}

static void skip_blanks(struct jsonl *jsonl) {
    while (jsonl->at < jsonl->end &&
           (*jsonl->at == ' ' || *jsonl->at == '\t' || *jsonl->at == '\r'))
        jsonl->at++;
}

static bool eat(struct jsonl *jsonl, char c) {
    skip_blanks(jsonl);
    if (jsonl->at == jsonl->end || *jsonl->at != c) return false;
    jsonl->at++;
    return true;
}

/* at is behind the opening quote; afterwards behind the closing one. */
static bool read_text(struct jsonl *jsonl, struct view *out) {
    const char *begin = jsonl->at;
    for (const char *at = begin; at < jsonl->end; at++) {
        if (*at == '"') {
            *out = (struct view){.data = begin, .size = (size_t)(at - begin)};
            jsonl->at = at + 1;
            return true;
        }
        if (*at == '\\') at++;
    }
    return fail(jsonl, "a text does not end");
}

static bool read_nested(struct jsonl *jsonl, struct view *out) {
    const char *begin = jsonl->at;
    char closing[NESTING_MAX];
    int depth = 0;
    while (jsonl->at < jsonl->end) {
        const char c = *jsonl->at++;
        struct view ignored;
        if (c == '"' && !read_text(jsonl, &ignored)) return false;
        if (c == '{' || c == '[') {
            if (depth == NESTING_MAX) return fail(jsonl, "it is nested too deep");
            closing[depth++] = c == '{' ? '}' : ']';
        }
        if (c == '}' || c == ']') {
            if (closing[--depth] != c) return fail(jsonl, "brackets do not match");
            if (depth == 0) {
                *out = (struct view){.data = begin, .size = (size_t)(jsonl->at - begin)};
                return true;
            }
        }
    }
    return fail(jsonl, "a bracket is not closed");
}

static bool is_number_part(char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static bool read_number(struct jsonl *jsonl, struct jsonl_value *out) {
    const char *begin = jsonl->at;
    uint64_t integer = 0;
    bool is_integer = true;
    for (; jsonl->at < jsonl->end && is_number_part(*jsonl->at); jsonl->at++) {
        const unsigned digit = (unsigned char)*jsonl->at - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(integer, 10u, &integer) ||
            __builtin_add_overflow(integer, (uint64_t)digit, &integer))
            is_integer = false;
    }
    const size_t size = (size_t)(jsonl->at - begin);
    if (size == 0) return fail(jsonl, "a value is missing or not JSON");
    if (size >= NUMBER_MAX_BYTES) return fail(jsonl, "a number is too long");
    *out = (struct jsonl_value){.kind = JSONL_NUMBER, .text = {.data = begin, .size = size},
                                .integer = is_integer ? integer : 0, .is_integer = is_integer};
    return true;
}

static bool read_word(struct jsonl *jsonl, const char *word, struct jsonl_value *out) {
    const size_t size = strlen(word);
    if ((size_t)(jsonl->end - jsonl->at) < size || memcmp(jsonl->at, word, size) != 0)
        return fail(jsonl, "a value is missing or not JSON");
    *out = (struct jsonl_value){.kind = *word == 'n' ? JSONL_NULL : JSONL_BOOLEAN,
                                .text = {.data = jsonl->at, .size = size},
                                .is_true = *word == 't'};
    jsonl->at += size;
    return true;
}

static bool read_value(struct jsonl *jsonl, struct jsonl_value *out) {
    skip_blanks(jsonl);
    if (jsonl->at == jsonl->end) return fail(jsonl, "it ends in the middle");
    *out = (struct jsonl_value){.kind = JSONL_TEXT};
    switch (*jsonl->at) {
    case '"':
        jsonl->at++;
        return read_text(jsonl, &out->text);
    case '{':
    case '[':
        out->kind = JSONL_NESTED;
        return read_nested(jsonl, &out->text);
    case 't': return read_word(jsonl, "true", out);
    case 'f': return read_word(jsonl, "false", out);
    case 'n': return read_word(jsonl, "null", out);
    default: return read_number(jsonl, out);
    }
}

void jsonl_begin(struct jsonl *jsonl, struct view line) {
    *jsonl = (struct jsonl){.at = line.data, .end = line.data + line.size};
}

static bool at_line_end(struct jsonl *jsonl) {
    skip_blanks(jsonl);
    return jsonl->at == jsonl->end ? false : fail(jsonl, "something follows the object");
}

bool jsonl_next(struct jsonl *jsonl, struct view *out_key, struct jsonl_value *out_value) {
    if (jsonl->problem != NULL) return false;
    if (!jsonl->is_begun) {
        jsonl->is_begun = true;
        if (!eat(jsonl, '{')) return fail(jsonl, "it is not a JSON object");
        if (eat(jsonl, '}')) return at_line_end(jsonl);
    } else {
        if (eat(jsonl, '}')) return at_line_end(jsonl);
        if (!eat(jsonl, ',')) return fail(jsonl, "a comma or the end is missing");
    }
    if (!eat(jsonl, '"')) return fail(jsonl, "a member's name is missing");
    if (!read_text(jsonl, out_key)) return false;
    if (!eat(jsonl, ':')) return fail(jsonl, "a colon is missing");
    return read_value(jsonl, out_value);
}

double jsonl_double(const struct jsonl_value *value) {
    if (value->kind != JSONL_NUMBER) return 0;
    if (value->is_integer) return (double)value->integer;
    char text[NUMBER_MAX_BYTES];
    memcpy(text, value->text.data, value->text.size);
    text[value->text.size] = 0;
    return strtod(text, NULL);
}

static unsigned hex_of(char c) {
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f') return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return (unsigned)(c - 'A') + 10;
    return 0;
}

/* Names and ids are compared and shown, never parsed further: a code point above ASCII that was
 * written as an escape becomes '?'. */
static char unescape(const char **at, const char *end) {
    const char c = *(*at)++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'u': break;
    default: return c;
    }
    if (end - *at < 4) return '?';
    unsigned code = 0;
    for (int i = 0; i < 4; i++) code = code << 4 | hex_of(*(*at)++);
    return code > 0 && code < 128 ? (char)code : '?';
}

size_t jsonl_text(const struct jsonl_value *value, char *out, size_t out_size) {
    const char *at = value->text.data, *end = at + value->text.size;
    size_t size = 0;
    if (value->kind != JSONL_TEXT) end = at;
    while (at < end && size + 1 < out_size) {
        const char c = *at++;
        out[size++] = c == '\\' && at < end ? unescape(&at, end) : c;
    }
    out[size] = 0;
    return size;
}

enum status line_reader_open(struct line_reader *reader, const char *path, struct err *err) {
    *reader = (struct line_reader){.capacity = LINE_MAX_BYTES};
    reader->file = fopen(path, "rb");
    if (reader->file == NULL)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "cannot read %s: %s", path,
                       strerror(errno));
    reader->data = malloc(reader->capacity);
    if (reader->data == NULL) {
        line_reader_done(reader);
        return err_set(err, ST_NO_MEMORY, "no memory to read %s", path);
    }
    setvbuf(reader->file, NULL, _IONBF, 0); /* it has a buffer here */
    return ST_OK;
}

void line_reader_done(struct line_reader *reader) {
    if (reader->file != NULL) fclose(reader->file);
    free(reader->data);
    *reader = (struct line_reader){0};
}

/* Moves what is left to the front and reads on. */
static enum status refill(struct line_reader *reader, struct err *err) {
    if (reader->begin == 0 && reader->end == reader->capacity)
        return err_set(err, ST_INVALID, "line %llu is longer than %d bytes",
                       (unsigned long long)reader->number + 1, LINE_MAX_BYTES);
    memmove(reader->data, reader->data + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;
    const size_t got =
        fread(reader->data + reader->end, 1, reader->capacity - reader->end, reader->file);
    reader->end += got;
    if (got > 0) return ST_OK;
    if (ferror(reader->file))
        return err_set(err, ST_IO, "reading failed behind line %llu: %s",
                       (unsigned long long)reader->number, strerror(errno));
    reader->is_at_end = true;
    return ST_OK;
}

bool line_reader_next(struct line_reader *reader, struct view *out_line, bool *out_is_whole,
                      enum status *out_status, struct err *err) {
    *out_status = ST_OK;
    size_t searched = 0;
    for (;;) {
        const char *begin = reader->data + reader->begin;
        const size_t size = reader->end - reader->begin;
        const char *newline =
            size > searched ? memchr(begin + searched, '\n', size - searched) : NULL;
        if (newline == NULL && !reader->is_at_end) {
            searched = size;
            *out_status = refill(reader, err);
            if (*out_status != ST_OK) return false;
            continue;
        }
        if (newline == NULL && size == 0) return false;
        const size_t length = newline != NULL ? (size_t)(newline - begin) : size;
        reader->number++;
        reader->begin += length + (newline != NULL);
        searched = 0;
        if (length == 0) continue;
        *out_line = (struct view){.data = begin, .size = length};
        *out_is_whole = newline != NULL;
        return true;
    }
}
