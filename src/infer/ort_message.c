/* Shortens and classifies ONNX Runtime's error texts.
 *
 * Any thread; pure. Invariant: the result is one line without control characters or paths of
 * ONNX Runtime's sources. An unknown form of text passes through, only clipped: nothing depends
 * on the wording. Read next: ort_library.c (ort_fail). */
#include "infer/ort_message.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The text after the last occurrence of mark, or text itself. */
static const char *after_last(const char *text, const char *mark) {
    const char *at = text;
    for (const char *hit = text; (hit = strstr(hit, mark)) != NULL;) {
        hit += strlen(mark);
        at = hit;
    }
    return at;
}

/* "/onnxruntime_src/onnxruntime/core/x.cc:12 onnxruntime::Status f(const A&) rest": skips the
 * place, and the function when its argument list can be told. */
static const char *skip_place(const char *text) {
    if (text[0] != '/') {
        return text;
    }
    const char *end = strchr(text, ' ');
    if (!end) {
        return text;
    }
    const char *at = end + 1;
    const char *colons = strstr(at, "::");
    const char *close = strstr(at, ") ");
    if (colons && close && colons < close) {
        at = close + 2;
    }
    return *at ? at : text;
}

static void one_line(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        const char c = (unsigned char)*from < ' ' ? ' ' : *from;
        if (c == ' ' && (to == text || to[-1] == ' ')) {
            continue;
        }
        *to++ = c;
    }
    while (to > text && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

char *ort_message_shorten(const char *text, char *out, size_t out_size) {
    static const char RUNNING[] = "while running ";
    static const char MESSAGE[] = "Status Message: ";
    const char *running = strstr(text, RUNNING);
    const char *message = strstr(text, MESSAGE);
    int used = 0;
    if (running && message && running < message) {
        const char *node = running + strlen(RUNNING);
        const char *quote = strstr(node, "Name:'");
        const char *name = quote ? quote + strlen("Name:'") : node;
        const int node_size = (int)strcspn(node, " .");
        const int name_size = quote && quote < message ? (int)strcspn(name, "'") : 0;
        used = snprintf(out, out_size, "%.*s node '%.*s': ", node_size, node, name_size, name);
        text = after_last(text, MESSAGE);
    }
    text = skip_place(after_last(text, " was false. "));
    if (used >= 0 && (size_t)used < out_size) {
        snprintf(out + used, out_size - (size_t)used, "%s", text);
    }
    one_line(out);
    return out;
}

enum status ort_message_status(const char *text, bool is_invalid_argument) {
    static const char *const MEMORY[] = {"Failed to allocate memory", "bad_alloc",
                                         "Available memory of"};
    static const char *const SHAPE[] = {"dimension", "shape", "broadcast"};
    for (size_t i = 0; i < sizeof MEMORY / sizeof MEMORY[0]; i++) {
        if (strstr(text, MEMORY[i])) {
            return ST_NO_MEMORY;
        }
    }
    /* Only after "Status Message:": a node may be named anything. */
    const char *message = after_last(text, "Status Message: ");
    for (size_t i = 0; i < sizeof SHAPE / sizeof SHAPE[0]; i++) {
        if (strcasestr(message, SHAPE[i])) {
            return ST_INVALID;
        }
    }
    return is_invalid_argument ? ST_INVALID : ST_INTERNAL;
}
