/* base/tensor.h: names, shapes, and BYTES elements that lie about their length. */
#include "base/tensor.h"
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void names_and_sizes_every_dtype(void **state) {
    (void)state;
    for (unsigned i = 0; i < DTYPE_COUNT; i++) {
        enum dtype parsed = DTYPE_COUNT;
        assert_true(dtype_parse(view_of(dtype_name((enum dtype)i)), &parsed));
        assert_int_equal(parsed, i);
    }
    assert_int_equal(dtype_size(DTYPE_FP16), 2);
    assert_int_equal(dtype_size(DTYPE_INT64), 8);
    assert_int_equal(dtype_size(DTYPE_BYTES), 0);
}

static void leaves_out_untouched_for_an_unknown_dtype(void **state) {
    (void)state;
    enum dtype parsed = DTYPE_FP64;
    assert_false(dtype_parse(view_of("fp32"), &parsed));
    assert_false(dtype_parse(view_of("FP32 "), &parsed));
    assert_false(dtype_parse(view_of(""), &parsed));
    assert_int_equal(parsed, DTYPE_FP64);
}

static void multiplies_shapes(void **state) {
    (void)state;
    size_t count = 99;
    assert_true(tensor_elements((const int64_t[]){2, 3, 4}, 3, &count));
    assert_int_equal(count, 24);
    assert_true(tensor_elements(NULL, 0, &count));
    assert_int_equal(count, 1);
    assert_true(tensor_elements((const int64_t[]){INT64_MAX, INT64_MAX, 0}, 3, &count));
    assert_int_equal(count, 0);
}

static void refuses_negative_and_overflowing_shapes(void **state) {
    (void)state;
    size_t count = 99;
    assert_false(tensor_elements((const int64_t[]){2, -1}, 2, &count));
    assert_false(tensor_elements((const int64_t[]){0, INT64_MIN}, 2, &count));
    assert_false(tensor_elements((const int64_t[]){1LL << 32, 1LL << 32}, 2, &count));
    assert_false(tensor_elements((const int64_t[]){1LL << 61}, 1, &count)); /* times 8 */
    assert_int_equal(count, 99);
}

/* Copied to the end of an allocation, so that a read too far is seen. */
static struct tensor bytes_tensor(const char *data, size_t size) {
    char *copy = malloc(size);
    memcpy(copy, data, size);
    return (struct tensor){.dtype = DTYPE_BYTES, .data = copy, .size = size};
}

static void finds_elements_of_bytes_tensors(void **state) {
    (void)state;
    struct tensor tensor = bytes_tensor("\3\0\0\0abc\0\0\0\0\1\0\0\0z", 16);
    struct view element = {.data = NULL, .size = 0};
    assert_true(tensor_bytes_at(&tensor, 0, &element));
    assert_true(view_is(element, "abc"));
    assert_true(tensor_bytes_at(&tensor, 1, &element));
    assert_int_equal(element.size, 0);
    assert_true(tensor_bytes_at(&tensor, 2, &element));
    assert_true(view_is(element, "z"));
    assert_false(tensor_bytes_at(&tensor, 3, &element));
    assert_true(tensor_bytes_valid(tensor.data, tensor.size, 3));
    assert_false(tensor_bytes_valid(tensor.data, tensor.size, 2));
    assert_false(tensor_bytes_valid(tensor.data, tensor.size, 4));
    free((void *)tensor.data);
}

static void does_not_believe_a_length_beyond_the_data(void **state) {
    (void)state;
    static const char *const LIES[] = {"\4\0\0\0abc", "\377\377\377\377abc", "\3\0\0"};
    static const size_t SIZES[] = {7, 7, 3};
    for (size_t i = 0; i < 3; i++) {
        struct tensor tensor = bytes_tensor(LIES[i], SIZES[i]);
        struct view element = {.data = "untouched", .size = 9};
        assert_false(tensor_bytes_at(&tensor, 0, &element));
        assert_int_equal(element.size, 9);
        assert_false(tensor_bytes_valid(tensor.data, tensor.size, 1));
        free((void *)tensor.data);
    }
    assert_true(tensor_bytes_valid(NULL, 0, 0));
}

static void writes_shapes_for_people(void **state) {
    (void)state;
    char text[96];
    assert_string_equal(tensor_shape_text((const int64_t[]){2, -1, 16}, 3, text, sizeof(text)),
                        "[2,-1,16]");
    assert_string_equal(tensor_shape_text(NULL, 0, text, sizeof(text)), "[]");
    const int64_t huge[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                            INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    tensor_shape_text(huge, 8, text, sizeof(text));
    assert_string_equal(text + strlen(text) - 6, "7,...]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes_every_dtype),
        cmocka_unit_test(leaves_out_untouched_for_an_unknown_dtype),
        cmocka_unit_test(multiplies_shapes),
        cmocka_unit_test(refuses_negative_and_overflowing_shapes),
        cmocka_unit_test(finds_elements_of_bytes_tensors),
        cmocka_unit_test(does_not_believe_a_length_beyond_the_data),
        cmocka_unit_test(writes_shapes_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
