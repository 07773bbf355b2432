/* Tables and JSON files. */
#include "report/json_file.h"
#include "report/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void columns_are_aligned_by_what_a_terminal_shows(void **state) {
    (void)state;
    struct table *table = table_create();
    struct buf out;
    buf_init(&out);
    table_column(table, "name", TABLE_LEFT);
    table_column(table, "ms", TABLE_RIGHT);
    table_column(table, "", TABLE_LEFT);
    table_row(table);
    table_cell(table, "caf\xc3\xa9");
    table_cell(table, "%.1f", 1.5);
    table_cell(table, "x");
    table_row(table);
    table_cell(table, "\xe6\xbc\xa2\xe5\xad\x97!");
    table_cell(table, "%d", 12345);
    table_row(table);
    assert_true(table_write(table, "  ", &out));
    buf_char(&out, 0);
    assert_string_equal(out.data, "  name      ms\n"
                                  "  caf\xc3\xa9     1.5  x\n"
                                  "  \xe6\xbc\xa2\xe5\xad\x97!  12345\n"
                                  "  \n");
    buf_done(&out);
    table_free(table);
}

static void a_table_that_does_not_fit_its_columns_is_not_written(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    struct table *table = table_create();
    table_column(table, "only", TABLE_LEFT);
    table_row(table);
    table_cell(table, "a");
    table_cell(table, "b");
    assert_false(table_write(table, "", &out));
    assert_int_equal(out.size, 0);
    table_free(table);
    assert_false(table_write(NULL, "", &out));
}

static void milliseconds_keep_three_digits(void **state) {
    (void)state;
    char text[24];
    assert_string_equal(table_ms(0.0412, text, sizeof text), "0.041");
    assert_string_equal(table_ms(1.234, text, sizeof text), "1.23");
    assert_string_equal(table_ms(12.34, text, sizeof text), "12.3");
    assert_string_equal(table_ms(1234.5, text, sizeof text), "1234");
}

static void a_document_survives_the_file(void **state) {
    (void)state;
    char path[] = "/tmp/telltale-json-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    json_t *document = json_object(), *back = NULL;
    json_object_set_new(document, "ms", report_json_ms(1234567));
    json_object_set_new(document, "none", report_json_number(0.0 / 0.0));
    json_object_set_new(document, "text", report_json_text("a\xff" "b"));
    assert_int_equal(json_file_write(document, path, NULL), ST_OK);
    assert_int_equal(json_file_read(path, &back, NULL), ST_OK);
    assert_true(json_equal(document, back));
    assert_true(json_real_value(json_object_get(back, "ms")) == 1.234567);
    assert_true(json_is_null(json_object_get(back, "none")));
    assert_string_equal(json_string_value(json_object_get(back, "text")), "a\xef\xbf\xbd" "b");
    json_decref(document);
    json_decref(back);
    unlink(path);
}

static void a_file_that_is_not_there_or_not_json_is_named(void **state) {
    (void)state;
    json_t *document = NULL;
    struct err err = {0};
    assert_int_equal(json_file_read("/nowhere/x.json", &document, &err), ST_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/x.json"));
    assert_int_equal(json_file_read("/proc/self/comm", &document, &err), ST_INVALID);
    assert_int_equal(json_file_write(NULL, "/tmp/x", &err), ST_NO_MEMORY);
    json_t *empty = json_object();
    assert_int_equal(json_file_write(empty, "/nowhere/x.json", &err), ST_IO);
    json_decref(empty);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned_by_what_a_terminal_shows),
        cmocka_unit_test(a_table_that_does_not_fit_its_columns_is_not_written),
        cmocka_unit_test(milliseconds_keep_three_digits),
        cmocka_unit_test(a_document_survives_the_file),
        cmocka_unit_test(a_file_that_is_not_there_or_not_json_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
