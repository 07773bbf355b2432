/* Plain text tables for terminals and pipes: cells are collected first, then written aligned.
 * Widths count what a terminal shows (UTF-8, wide characters as two). No colours, so that a
 * piped table is the one on the screen. */
#ifndef TELLTALE_REPORT_TABLE_H
#define TELLTALE_REPORT_TABLE_H

#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table;
struct table *table_create(void); /* NULL when memory is out */
void table_free(struct table *table); /* NULL allowed */
/* Columns first, then rows. NULL tables are allowed everywhere and do nothing. */
void table_column(struct table *table, const char *heading, enum table_align align);
/* Begins a row; its cells follow from left to right, missing ones are empty. */
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Heading and rows, each line after indent, no blanks at line ends. False when memory was out
 * at any time (out then holds nothing of the table). */
bool table_write(const struct table *table, const char *indent, struct buf *out);

/* Columns that a terminal uses for UTF-8 text. */
size_t table_text_width(const char *text);
/* Duration in ms as a reader wants it: "0.041", "1.23", "12.3", "123", "12345". out >= 24. */
char *table_ms(double ms, char *out, size_t out_size);

#endif
