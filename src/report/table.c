/* Tables for terminals and pipes. One thread at a time. Invariant: cells[i] belongs to column
 * i % column_count, and every row has all its cells. Users: load/bench_show.c. */
#include "report/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TABLE_MAX_COLUMNS = 32, TABLE_CELL_SIZE = 160 };

struct table {
    char *headings[TABLE_MAX_COLUMNS];
    enum table_align aligns[TABLE_MAX_COLUMNS];
    size_t column_count;
    char **cells; /* rows * column_count, NULL: empty */
    size_t row_count, row_capacity;
    size_t next_column; /* of the row being filled */
    bool failed;
};

struct table *table_create(void) { return calloc(1, sizeof(struct table)); }

void table_free(struct table *table) {
    if (table == NULL) return;
    for (size_t i = 0; i < table->column_count; i++) free(table->headings[i]);
    for (size_t i = 0; i < table->row_count * table->column_count; i++) free(table->cells[i]);
    free(table->cells);
    free(table);
}

void table_column(struct table *table, const char *heading, enum table_align align) {
    if (table == NULL) return;
    if (table->column_count == TABLE_MAX_COLUMNS || table->row_count > 0) {
        table->failed = true;
        return;
    }
    char *copy = strdup(heading);
    if (copy == NULL) {
        table->failed = true;
        return;
    }
    table->aligns[table->column_count] = align;
    table->headings[table->column_count++] = copy;
}

void table_row(struct table *table) {
    if (table == NULL || table->column_count == 0) return;
    if (table->row_count == table->row_capacity) {
        size_t capacity = table->row_capacity == 0 ? 16 : table->row_capacity * 2;
        char **cells = realloc(table->cells, capacity * table->column_count * sizeof *cells);
        if (cells == NULL) {
            table->failed = true;
            table->next_column = table->column_count;
            return;
        }
        table->cells = cells;
        table->row_capacity = capacity;
    }
    char **row = table->cells + table->row_count * table->column_count;
    for (size_t i = 0; i < table->column_count; i++) row[i] = NULL;
    table->row_count++;
    table->next_column = 0;
}

void table_cell(struct table *table, const char *format, ...) {
    if (table == NULL || table->row_count == 0) return;
    if (table->next_column >= table->column_count) {
        table->failed = true;
        return;
    }
    char text[TABLE_CELL_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = strdup(text);
    if (copy == NULL) table->failed = true;
    table->cells[(table->row_count - 1) * table->column_count + table->next_column++] = copy;
}

/* Reads one code point; *at moves on. Broken bytes count as one column each. */
static uint32_t next_code_point(const unsigned char **at) {
    const unsigned char *p = *at;
    unsigned more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0;
    uint32_t code = more == 0 ? p[0] : p[0] & (0x3fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *at = p + 1;
            return '?';
        }
        code = code << 6 | (p[i] & 0x3fu);
    }
    *at = p + 1 + more;
    return code;
}

static unsigned code_point_width(uint32_t code) {
    if (code >= 0x300 && code < 0x370) return 0; /* combining marks */
    bool is_wide = (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xa4d0) ||
                   (code >= 0xac00 && code < 0xd7a4) || (code >= 0xf900 && code < 0xfb00) ||
                   (code >= 0xfe30 && code < 0xfe70) || (code >= 0xff00 && code < 0xff61) ||
                   (code >= 0x1f300 && code < 0x1faf0) || (code >= 0x20000 && code < 0x40000);
    return is_wide ? 2 : 1;
}

size_t table_text_width(const char *text) {
    size_t width = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;)
        width += code_point_width(next_code_point(&at));
    return width;
}

static void write_padding(struct buf *out, size_t count) {
    for (size_t i = 0; i < count; i++) buf_char(out, ' ');
}

/* cells: column_count of them. Blanks that would end the line are not written. */
static void write_line(const struct table *table, char *const *cells, const size_t *widths,
                       const char *indent, struct buf *out) {
    size_t owed = 0;
    buf_text(out, indent);
    for (size_t i = 0; i < table->column_count; i++) {
        const char *text = cells[i] == NULL ? "" : cells[i];
        size_t gap = widths[i] - table_text_width(text);
        if (i > 0) owed += 2;
        if (table->aligns[i] == TABLE_RIGHT) owed += gap;
        if (*text != 0) {
            write_padding(out, owed);
            owed = 0;
            buf_text(out, text);
        } else if (table->aligns[i] == TABLE_RIGHT) {
            continue;
        }
        if (table->aligns[i] == TABLE_LEFT) owed += gap;
    }
    buf_char(out, '\n');
}

bool table_write(const struct table *table, const char *indent, struct buf *out) {
    if (table == NULL || table->failed) return false;
    size_t widths[TABLE_MAX_COLUMNS] = {0};
    for (size_t i = 0; i < table->column_count; i++)
        widths[i] = table_text_width(table->headings[i]);
    for (size_t i = 0; i < table->row_count * table->column_count; i++) {
        size_t width = table->cells[i] == NULL ? 0 : table_text_width(table->cells[i]);
        size_t column = i % table->column_count;
        if (width > widths[column]) widths[column] = width;
    }
    write_line(table, table->headings, widths, indent, out);
    for (size_t row = 0; row < table->row_count; row++)
        write_line(table, table->cells + row * table->column_count, widths, indent, out);
    return !out->failed;
}

char *table_ms(double ms, char *out, size_t out_size) {
    double size = ms < 0 ? -ms : ms;
    int decimals = size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
    snprintf(out, out_size, "%.*f", decimals, ms);
    return out;
}
