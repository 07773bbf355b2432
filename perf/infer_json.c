/* perf/infer_json: how fast a request's body becomes tensors. One tensor of 150,528 elements
 * (1,3,224,224), written as Python writes a double, with nine digits, and as whole numbers, read by
 * infer_request_parse. Beside it what the JSON parser itself takes: the same numbers under a key
 * that nobody asks for, so that they are parsed and not read. And the binary tensor extension: a
 * request parsed and its tensor copied once, as into a batch, beside the copy alone.
 *
 * Processor time of the thread; rounds are interleaved; medians. Every round's result is compared
 * with the numbers that were written. */
#include "base/clock.h"
#include "proto/infer_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 150528, REPEATS = 25, COPIES = 20, PADDING = 64 };

enum form { PYTHON, NINE_DIGITS, WHOLE, FORM_COUNT };
enum { READ, BARE, WAY_COUNT };

static const struct {
    const char *name, *label;
    enum dtype dtype;
} FORMS[FORM_COUNT] = {
    [PYTHON] = {"infer_json.python", "17 digits, FP32", DTYPE_FP32},
    [NINE_DIGITS] = {"infer_json.nine_digits", "9 digits, FP32", DTYPE_FP32},
    [WHOLE] = {"infer_json.whole", "whole numbers, INT64", DTYPE_INT64},
};

struct numbers {
    float floats[ELEMENTS];
    int64_t whole[ELEMENTS];
};

static void fail(const char *text) {
    fprintf(stderr, "perf_infer_json: %s\n", text);
    exit(1);
}

static void make_numbers(struct numbers *out) {
    uint64_t state = 1;
    for (size_t i = 0; i < ELEMENTS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out->floats[i] = (float)(state >> 40) / (1 << 24) * 5 - 2.5f;
        out->whole[i] = (int64_t)((state >> 32) % 100000);
    }
}

static void write_data(struct buf *out, const struct numbers *numbers, enum form form) {
    for (size_t i = 0; i < ELEMENTS; i++) {
        if (i > 0) buf_text(out, form == PYTHON ? ", " : ",");
        if (form == PYTHON) buf_printf(out, "%.17g", (double)numbers->floats[i]);
        else if (form == NINE_DIGITS) buf_printf(out, "%.9g", (double)numbers->floats[i]);
        else buf_printf(out, "%" PRId64, numbers->whole[i]);
    }
}

/* bare: the numbers stand where they are parsed and left alone. */
static struct buf json_body(const struct numbers *numbers, enum form form, bool bare) {
    struct buf out;
    buf_init(&out);
    if (bare) {
        buf_text(&out, "{\"left_alone\":[");
        write_data(&out, numbers, form);
        buf_text(&out, "],\"inputs\":[{\"name\":\"x\",\"shape\":[0],\"datatype\":\"FP32\",\"data\":[]}]}");
    } else {
        buf_printf(&out, "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3,224,224],\"datatype\":\"%s\","
                   "\"data\":[", dtype_name(FORMS[form].dtype));
        write_data(&out, numbers, form);
        buf_text(&out, "]}]}");
    }
    buf_reserve(&out, PADDING);
    if (out.failed) fail("out of memory");
    memset(out.data + out.size, 0, PADDING);
    return out;
}

static const struct tensor *parse(const struct buf *body, size_t json_size, struct arena *arena) {
    struct infer_request request;
    struct err err = {""};
    arena_clear(arena);
    if (infer_request_parse(buf_view(body), json_size, arena, &request, &err) != ST_OK)
        fail(err.text);
    return &request.inputs[0];
}

static double ns_of(const struct buf *body, const void *expected, size_t size,
                    struct arena *arena) {
    const uint64_t before = thread_cpu_ns();
    const struct tensor *tensor = parse(body, body->size, arena);
    const uint64_t after = thread_cpu_ns();
    if (tensor->size != size || memcmp(tensor->data, expected, size) != 0)
        fail("the numbers read are not those written");
    return (double)(after - before);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}

static void goal(const char *name, double figure, const char *unit, const char *limit,
                 bool is_reached) {
    printf("%s %.2f %s goal %s %s\n", name, figure, unit, limit, is_reached ? "ok" : "short");
}

static void measure_json(const struct numbers *numbers, struct arena *arena,
                         double out_rates[FORM_COUNT]) {
    struct buf bodies[FORM_COUNT][WAY_COUNT];
    static double ns[FORM_COUNT][WAY_COUNT][REPEATS];
    for (int f = 0; f < FORM_COUNT; f++)
        for (int way = 0; way < WAY_COUNT; way++)
            bodies[f][way] = json_body(numbers, (enum form)f, way == BARE);
    for (int r = -2; r < REPEATS; r++) /* the first two warm caches and the parser's memory */
        for (int f = 0; f < FORM_COUNT; f++)
            for (int way = 0; way < WAY_COUNT; way++) {
                const bool is_whole = FORMS[f].dtype == DTYPE_INT64;
                const void *expected = is_whole ? (const void *)numbers->whole : numbers->floats;
                const size_t size = ELEMENTS * dtype_size(FORMS[f].dtype);
                const double took = ns_of(&bodies[f][way], expected, way == READ ? size : 0, arena);
                if (r >= 0) ns[f][way][r] = took;
            }
    printf("%d elements of JSON, %d interleaved repeats, medians of processor time\n", ELEMENTS,
           REPEATS);
    for (int f = 0; f < FORM_COUNT; f++) {
        const double read = median(ns[f][READ]), bare = median(ns[f][BARE]);
        out_rates[f] = (double)bodies[f][READ].size / read * 1e3;
        printf("  %-22s %8zu bytes  %6.2f ms %6.0f MB/s   simdjson alone %6.2f ms, %.2f of it\n",
               FORMS[f].label, bodies[f][READ].size, read / 1e6, out_rates[f], bare / 1e6,
               bare / read);
        for (int way = 0; way < WAY_COUNT; way++) buf_done(&bodies[f][way]);
    }
}

/* Over the copy alone. */
static double measure_binary(const struct numbers *numbers, struct arena *arena) {
    struct buf body;
    size_t json_size = 0;
    buf_init(&body);
    const struct tensor input = {
        .name = view_of("x"), .dtype = DTYPE_FP32, .rank = 4, .shape = {1, 3, 224, 224},
        .data = numbers->floats, .size = sizeof numbers->floats};
    infer_request_write(&body, view_of("1"), &input, 1, true, true, &json_size);
    buf_reserve(&body, PADDING);
    float *slot = malloc(sizeof numbers->floats);
    if (body.failed || slot == NULL) fail("out of memory");
    static double parsed[REPEATS], copied[REPEATS];
    for (int r = -2; r < REPEATS; r++) {
        uint64_t before = thread_cpu_ns();
        for (int i = 0; i < COPIES; i++) {
            const struct tensor *tensor = parse(&body, json_size, arena);
            memcpy(slot, tensor->data, tensor->size);
            __asm__ volatile("" : : "r"(slot) : "memory");
        }
        if (r >= 0) parsed[r] = (double)(thread_cpu_ns() - before);
        if (memcmp(slot, numbers->floats, sizeof numbers->floats) != 0)
            fail("the bytes copied are not those sent");
        before = thread_cpu_ns();
        for (int i = 0; i < COPIES; i++) {
            memcpy(slot, body.data + json_size, sizeof numbers->floats);
            __asm__ volatile("" : : "r"(slot) : "memory");
        }
        if (r >= 0) copied[r] = (double)(thread_cpu_ns() - before);
    }
    const double both = median(parsed), copy = median(copied);
    printf("binary, %zu bytes: parsed and copied %.1f us, copied %.1f us\n", input.size,
           both / COPIES / 1e3, copy / COPIES / 1e3);
    free(slot);
    buf_done(&body);
    return both / copy;
}

int main(void) {
    static struct numbers numbers;
    double rates[FORM_COUNT];
    struct arena arena;
    arena_init(&arena);
    make_numbers(&numbers);
    measure_json(&numbers, &arena, rates);
    const double binary = measure_binary(&numbers, &arena);
    for (int f = 0; f < FORM_COUNT; f++)
        goal(FORMS[f].name, rates[f], "MB/s", ">=200", rates[f] >= 200);
    goal("infer_json.binary_over_memcpy", binary, "x", "<=1.10", binary <= 1.10);
    arena_done(&arena);
    return 0;
}
