/* JSON documents as files, with jansson: what bench writes and explain and compare read. */
#ifndef TELLTALE_REPORT_JSON_FILE_H
#define TELLTALE_REPORT_JSON_FILE_H

#include "base/buf.h"
#include "base/status.h"
#include <jansson.h>
#include <stdint.h>

/* How all our documents are printed: two blanks a level, 12 significant digits. */
#define JSON_FILE_FLAGS (JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12))

/* Nanoseconds as a number of milliseconds. */
json_t *report_json_ms(double ns);
/* A double that JSON can hold; null for NaN and infinities. */
json_t *report_json_number(double value);
/* Text that may not be UTF-8 (file names, kernel strings): broken bytes become U+FFFD. */
json_t *report_json_text(const char *text);
/* Whole or not at all: written beside path, then renamed. document NULL means that memory was
 * out while it was built (ST_NO_MEMORY). */
MUST_CHECK enum status json_file_write(const json_t *document, const char *path, struct err *err);
MUST_CHECK enum status json_file_read(const char *path, json_t **out_document, struct err *err);
/* Appends the document and a line end. */
MUST_CHECK enum status json_file_print(const json_t *document, struct buf *out);

#endif
