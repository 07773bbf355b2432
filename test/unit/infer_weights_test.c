/* Counting subnormal weights in ONNX files, put together here byte by byte. */
#include "infer/weights.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { FLOAT = 1, INT32 = 6, FLOAT16 = 10, BFLOAT16 = 16 };

static void put_varint(struct buf *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7) buf_char(out, (char)(value | 0x80));
    buf_char(out, (char)value);
}

static void put_integer(struct buf *out, unsigned field, uint64_t value) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(struct buf *out, unsigned field, const void *bytes, size_t size) {
    put_varint(out, field << 3 | 2);
    put_varint(out, size);
    buf_append(out, bytes, size);
}

/* What is in buf becomes field of a message of its own. */
static void wrap(struct buf *buf, unsigned field) {
    struct buf outer;
    buf_init(&outer);
    put_bytes(&outer, field, buf->data, buf->size);
    buf_done(buf);
    *buf = outer;
}

/* Two of the four are subnormal. */
static const float VALUES[] = {1.0f, 1e-39f, 0.0f, -1e-45f};

static struct buf tensor(unsigned type, const void *raw, size_t size) {
    struct buf out;
    buf_init(&out);
    put_integer(&out, 1, 4);
    put_integer(&out, 2, type);
    put_bytes(&out, 8, "w", 1);
    put_bytes(&out, 9, raw, size);
    return out;
}

static struct weights count(struct buf *model) {
    const struct weights found = weights_of(buf_view(model));
    buf_done(model);
    return found;
}

static void check(struct weights found, uint64_t values, uint64_t subnormal) {
    assert_true(found.is_known);
    assert_int_equal(found.values, values);
    assert_int_equal(found.subnormal, subnormal);
}

static void raw_floats_of_an_initializer_are_counted(void **state) {
    (void)state;
    struct buf model = tensor(FLOAT, VALUES, sizeof VALUES);
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 4, 2);
}

static void float_data_is_counted_packed_or_not(void **state) {
    (void)state;
    struct buf model;
    buf_init(&model);
    put_bytes(&model, 4, VALUES, sizeof VALUES); /* before its type: fields come in any order */
    put_integer(&model, 2, FLOAT);
    for (size_t i = 0; i < 4; i++) {
        put_varint(&model, 4 << 3 | 5);
        buf_append(&model, &VALUES[i], 4);
    }
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 8, 4);
}

static void tensors_in_constants_subgraphs_and_functions_are_found(void **state) {
    (void)state;
    struct buf inner = tensor(FLOAT, VALUES, sizeof VALUES), model;
    wrap(&inner, 5); /* a graph's initializer */
    wrap(&inner, 6); /* an attribute's graph */
    wrap(&inner, 5); /* a node's attribute */
    buf_init(&model);
    put_bytes(&model, 1, inner.data, inner.size); /* a graph's node */
    buf_done(&inner);
    inner = tensor(FLOAT, VALUES, sizeof VALUES);
    wrap(&inner, 5); /* an attribute's tensor */
    wrap(&inner, 5); /* a node's attribute */
    put_bytes(&model, 1, inner.data, inner.size);
    wrap(&model, 7);
    wrap(&inner, 7);                               /* a function's node */
    put_bytes(&model, 25, inner.data, inner.size); /* the model's function */
    buf_done(&inner);
    check(count(&model), 12, 6);
}

static void a_large_tensor_is_counted_to_its_last_value(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static float values[COUNT];
    for (size_t i = 0; i < COUNT; i++) values[i] = 0.5f;
    values[0] = values[1023] = values[1024] = values[COUNT - 1] = -1e-40f;
    struct buf model = tensor(FLOAT, values, sizeof values);
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), COUNT, 4);
}

static void the_edges_of_what_is_subnormal_are_exact(void **state) {
    (void)state;
    static const uint32_t BITS[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000,
                                    0x80800000, 0x7f800000, 0x7fc00001};
    static const uint16_t HALVES[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x7f80};
    struct buf model = tensor(FLOAT, BITS, sizeof BITS);
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 8, 2);
    model = tensor(BFLOAT16, HALVES, sizeof HALVES);
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 6, 2);
}

static void other_types_are_no_weights_that_can_be_subnormal(void **state) {
    (void)state;
    struct buf model = tensor(INT32, VALUES, sizeof VALUES);
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 0, 0);
    model = tensor(FLOAT16, VALUES, sizeof VALUES); /* converted before use */
    wrap(&model, 5);
    wrap(&model, 7);
    check(count(&model), 0, 0);
}

static void tensors_in_other_files_are_told_apart(void **state) {
    (void)state;
    struct buf model;
    buf_init(&model);
    put_integer(&model, 2, FLOAT);
    put_integer(&model, 14, 1);
    wrap(&model, 5);
    wrap(&model, 7);
    const struct weights found = count(&model);
    check(found, 0, 0);
    assert_int_equal(found.external, 1);
}

static void what_is_cut_short_or_nested_without_end_is_not_known(void **state) {
    (void)state;
    struct buf model = tensor(FLOAT, VALUES, sizeof VALUES);
    wrap(&model, 5);
    wrap(&model, 7);
    for (size_t size = 0; size < model.size; size++)
        assert_false(weights_of((struct view){model.data, size}).is_known);
    buf_done(&model);
    model = tensor(FLOAT, VALUES, sizeof VALUES);
    wrap(&model, 5);
    for (unsigned i = 0; i < 40; i++) { /* a graph in an attribute of a node of a graph */
        wrap(&model, 6);
        wrap(&model, 5);
        wrap(&model, 1);
    }
    wrap(&model, 7);
    assert_false(count(&model).is_known);
    assert_false(weights_of_file("/nowhere").is_known);
    assert_false(weights_of_file("/").is_known);
}

static void a_file_is_read_like_memory(void **state) {
    (void)state;
    char path[] = "/tmp/telltale-weights-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct buf model = tensor(FLOAT, VALUES, sizeof VALUES);
    wrap(&model, 5);
    wrap(&model, 7);
    assert_int_equal(write(fd, model.data, model.size), (long)model.size);
    buf_done(&model);
    close(fd);
    check(weights_of_file(path), 4, 2);
    unlink(path);
}

static void one_in_a_hundred_thousand_is_worth_a_sentence(void **state) {
    (void)state;
    char text[480];
    assert_false(weights_may_be_slow(&(struct weights){true, 1000, 0, 0}));
    assert_false(weights_may_be_slow(&(struct weights){true, 7022215, 28, 0}));
    assert_true(weights_may_be_slow(&(struct weights){true, 1000000, 10, 0}));
    assert_true(weights_may_be_slow(&(struct weights){true, 10, 1, 0}));
    const struct weights weights = {true, 1190336, 8938, 0};
    weights_warning(&weights, "face", text, sizeof text);
    assert_non_null(strstr(text, "model face: 8,938 of 1,190,336 weights are subnormal"));
    assert_non_null(strstr(text, "--denormal-as-zero"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_floats_of_an_initializer_are_counted),
        cmocka_unit_test(float_data_is_counted_packed_or_not),
        cmocka_unit_test(tensors_in_constants_subgraphs_and_functions_are_found),
        cmocka_unit_test(a_large_tensor_is_counted_to_its_last_value),
        cmocka_unit_test(the_edges_of_what_is_subnormal_are_exact),
        cmocka_unit_test(other_types_are_no_weights_that_can_be_subnormal),
        cmocka_unit_test(tensors_in_other_files_are_told_apart),
        cmocka_unit_test(what_is_cut_short_or_nested_without_end_is_not_known),
        cmocka_unit_test(a_file_is_read_like_memory),
        cmocka_unit_test(one_in_a_hundred_thousand_is_worth_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
