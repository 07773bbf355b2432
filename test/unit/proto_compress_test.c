/* gzip and deflate both ways: what zlib writes, what others write, what attackers write. */
#include "proto/compress.h"

#include "proto/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>
/* after the above */
#include <cmocka.h>

static const struct inflate_limits LIMITS = {.max_size = 1 << 20};

struct outcome {
    enum status status;
    char *memory;
    struct view body;
    struct err err;
};

/* body lies in memory of its own size, so that ASan sees overreads. */
static struct outcome inflate_view(enum coding coding, struct view body,
                                   struct inflate_limits limits) {
    struct outcome out = {.memory = NULL};
    char *copy = malloc(body.size > 0 ? body.size : 1);
    if (body.size > 0)
        memcpy(copy, body.data, body.size);
    out.status = inflate_body(coding, (struct view){.data = copy, .size = body.size}, limits,
                              &out.memory, &out.body, &out.err);
    free(copy);
    if (out.status == ST_OK) {
        assert_ptr_equal(out.body.data, out.memory + HTTP_BODY_HEADROOM);
        for (int i = 0; i < 64; i++)
            assert_int_equal(out.body.data[out.body.size + (size_t)i], 0);
    } else {
        assert_null(out.memory);
    }
    return out;
}

static void expect_body(enum coding coding, struct view coded, struct view expected) {
    struct outcome got = inflate_view(coding, coded, LIMITS);
    if (got.status != ST_OK)
        fail_msg("%s", got.err.text);
    assert_true(view_eq(got.body, expected));
    free(got.memory);
}

static void expect_fault(enum coding coding, struct view coded, struct inflate_limits limits,
                         enum status status, const char *part) {
    struct outcome got = inflate_view(coding, coded, limits);
    assert_int_equal(got.status, status);
    if (!strstr(got.err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", got.err.text, part);
}

/* window: 15 zlib, 31 gzip, -15 raw */
static void write_coded(struct buf *out, struct view bytes, int window, int level, int strategy) {
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes.data, .avail_in = (uInt)bytes.size};
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, window, 8, strategy), Z_OK);
    const size_t most = deflateBound(&stream, bytes.size);
    buf_reserve(out, most);
    stream.next_out = (Bytef *)out->data + out->size;
    stream.avail_out = (uInt)most;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->size += most - stream.avail_out;
    deflateEnd(&stream);
}

static struct buf some_text(size_t size) {
    struct buf text;
    buf_init(&text);
    uint32_t seed = 1;
    while (text.size < size) {
        seed = seed * 1664525u + 1013904223u;
        buf_printf(&text, "%u,", (seed >> 20) & 1023);
    }
    text.size = size;
    return text;
}

static void reads_what_it_writes_in_both_codings_and_all_levels(void **state) {
    (void)state;
    static const size_t SIZES[] = {0, 1, 2, 63, 4096, 4097, 300000};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        for (int level = 1; level <= 9; level += 4) {
            struct buf text = some_text(SIZES[i]), out;
            buf_init(&out);
            buf_text(&out, "before");
            for (enum coding coding = CODING_GZIP; coding <= CODING_DEFLATE; coding++) {
                out.size = 6;
                assert_int_equal(deflate_body(coding, level, buf_view(&text), &out, NULL), ST_OK);
                assert_memory_equal(out.data, "before", 6);
                expect_body(coding, (struct view){.data = out.data + 6, .size = out.size - 6},
                            buf_view(&text));
            }
            buf_done(&text);
            buf_done(&out);
        }
    }
}

static void reads_deflate_with_and_without_the_zlib_wrapper(void **state) {
    (void)state;
    static const int WINDOWS[] = {15, 9, -15, -9};
    static const int STRATEGIES[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
    struct buf text = some_text(20000), out;
    buf_init(&out);
    for (int w = 0; w < 4; w++)
        for (int s = 0; s < 4; s++)
            for (int level = 0; level <= 6; level += 6) {
                buf_clear(&out);
                write_coded(&out, buf_view(&text), WINDOWS[w], level, STRATEGIES[s]);
                expect_body(CODING_DEFLATE, buf_view(&out), buf_view(&text));
            }
    buf_done(&text);
    buf_done(&out);
}

/* "hi", as gzip -9 writes it with a name, a comment, extra bytes and a header checksum */
static const char DECORATED[] = "\x1f\x8b\x08\x1e\x00\x00\x00\x00\x02\x03"
                                "\x04\x00"
                                "abcd"
                                "name\0"
                                "comment\0";

static void reads_gzip_headers_with_every_optional_field(void **state) {
    (void)state;
    struct buf out, plain;
    buf_init(&out);
    buf_init(&plain);
    buf_append(&out, DECORATED, sizeof DECORATED - 1);
    const uLong sum = crc32(0, (const Bytef *)out.data, (uInt)out.size);
    buf_char(&out, (char)(sum & 255));
    buf_char(&out, (char)(sum >> 8 & 255));
    write_coded(&plain, view_of("hi"), 31, 9, Z_DEFAULT_STRATEGY);
    buf_append(&out, plain.data + 10, plain.size - 10); /* behind a plain header of 10 bytes */
    expect_body(CODING_GZIP, buf_view(&out), view_of("hi"));
    out.data[10 + 2]++; /* the checksum notices */
    expect_fault(CODING_GZIP, buf_view(&out), LIMITS, ST_INVALID, "corrupt");
    buf_done(&out);
    buf_done(&plain);
}

static void reads_gzip_members_one_after_another(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out);
    write_coded(&out, view_of("one "), 31, 6, Z_DEFAULT_STRATEGY);
    write_coded(&out, view_of(""), 31, 6, Z_DEFAULT_STRATEGY);
    write_coded(&out, view_of("two"), 31, 1, Z_FIXED);
    expect_body(CODING_GZIP, buf_view(&out), view_of("one two"));
    buf_done(&out);
}

static void what_is_cut_short_anywhere_is_a_fault(void **state) {
    (void)state;
    static const int WINDOWS[] = {31, 15, -15};
    for (int w = 0; w < 3; w++) {
        const enum coding coding = w == 0 ? CODING_GZIP : CODING_DEFLATE;
        struct buf text = some_text(500), out;
        buf_init(&out);
        write_coded(&out, buf_view(&text), WINDOWS[w], 6, Z_DEFAULT_STRATEGY);
        expect_body(coding, buf_view(&out), buf_view(&text));
        for (size_t size = 0; size < out.size; size++) {
            struct outcome got = inflate_view(
                coding, (struct view){.data = out.data, .size = size}, LIMITS);
            assert_int_equal(got.status, ST_INVALID);
            assert_true(got.err.text[0] != '\0');
        }
        buf_done(&text);
        buf_done(&out);
    }
}

static void what_follows_the_end_is_a_fault(void **state) {
    (void)state;
    static const struct {
        int window;
        const char *tail;
        size_t size;
        const char *says;
    } CASES[] = {{31, "\0", 1, "something behind its end"},
                 {31, "x", 1, "something behind its end"},
                 {31, "\x1f", 1, "ends too early"},
                 {31, "\x1f\x8b\x08", 3, "ends too early"},
                 {31, "\x1fx", 2, "corrupt"},
                 {15, "\0", 1, "something behind its end"},
                 {-15, "x", 1, "something behind its end"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct buf out;
        buf_init(&out);
        write_coded(&out, view_of("hi"), CASES[i].window, 6, Z_DEFAULT_STRATEGY);
        buf_append(&out, CASES[i].tail, CASES[i].size);
        expect_fault(CASES[i].window == 31 ? CODING_GZIP : CODING_DEFLATE, buf_view(&out), LIMITS,
                     ST_INVALID, CASES[i].says);
        buf_done(&out);
    }
}

static void every_flipped_bit_of_a_gzip_body_is_noticed_or_harmless(void **state) {
    (void)state;
    struct buf text = some_text(200), out;
    buf_init(&out);
    write_coded(&out, buf_view(&text), 31, 6, Z_DEFAULT_STRATEGY);
    for (size_t bit = 0; bit < out.size * 8; bit++) {
        out.data[bit / 8] = (char)(out.data[bit / 8] ^ 1 << bit % 8);
        struct outcome got = inflate_view(CODING_GZIP, buf_view(&out), LIMITS);
        if (got.status == ST_OK) /* the header's time, and bits that pad a block, carry nothing */
            assert_true(view_eq(got.body, buf_view(&text)));
        else
            assert_int_equal(got.status, ST_INVALID);
        free(got.memory);
        out.data[bit / 8] = (char)(out.data[bit / 8] ^ 1 << bit % 8);
    }
    buf_done(&text);
    buf_done(&out);
}

static void other_corruption_has_a_sentence(void **state) {
    (void)state;
    expect_fault(CODING_GZIP, view_of("hello"), LIMITS, ST_INVALID, "incorrect header check");
    expect_fault(CODING_GZIP, view_of(""), LIMITS, ST_INVALID, "ends too early (at byte 0 of 0)");
    expect_fault(CODING_DEFLATE, view_of(""), LIMITS, ST_INVALID, "ends too early");
    expect_fault(CODING_DEFLATE, view_of("\x07"), LIMITS, ST_INVALID, "invalid block type");
    expect_fault(CODING_DEFLATE, view_of("\x78\xbb\x01\x02\x03\x04\x05\x06"), LIMITS, ST_INVALID,
                 "dictionary");
    expect_fault(CODING_OTHER, view_of("x"), LIMITS, ST_UNSUPPORTED_TYPE, "other");
    expect_fault(CODING_IDENTITY, view_of("x"), LIMITS, ST_UNSUPPORTED_TYPE, "identity");
}

static struct buf zeros(size_t size, int window) {
    struct buf out;
    char *bytes = calloc(1, size);
    buf_init(&out);
    write_coded(&out, (struct view){.data = bytes, .size = size}, window, 9, Z_DEFAULT_STRATEGY);
    free(bytes);
    return out;
}

static void the_output_may_reach_the_cap_and_not_a_byte_more(void **state) {
    (void)state;
    struct buf bomb = zeros(100000, 31);
    assert_true(bomb.size < 300);
    struct outcome got =
        inflate_view(CODING_GZIP, buf_view(&bomb), (struct inflate_limits){.max_size = 100000});
    assert_int_equal(got.status, ST_OK);
    assert_int_equal(got.body.size, 100000);
    free(got.memory);
    expect_fault(CODING_GZIP, buf_view(&bomb), (struct inflate_limits){.max_size = 99999},
                 ST_TOO_LARGE, "larger than the limit of 99999 bytes");
    expect_fault(CODING_GZIP, buf_view(&bomb), (struct inflate_limits){.max_size = 0},
                 ST_TOO_LARGE, "limit of 0 bytes");
    buf_clear(&bomb);
    write_coded(&bomb, view_of(""), 31, 9, Z_DEFAULT_STRATEGY);
    got = inflate_view(CODING_GZIP, buf_view(&bomb), (struct inflate_limits){.max_size = 0});
    assert_int_equal(got.status, ST_OK);
    assert_int_equal(got.body.size, 0);
    free(got.memory);
    buf_done(&bomb);
}

static void a_bomb_of_many_members_meets_the_same_cap(void **state) {
    (void)state;
    struct buf one = zeros(60000, 31), many;
    buf_init(&many);
    for (int i = 0; i < 100; i++)
        buf_append(&many, one.data, one.size);
    expect_fault(CODING_GZIP, buf_view(&many), LIMITS, ST_TOO_LARGE, "1048576");
    buf_done(&one);
    buf_done(&many);
}

static void density_can_be_limited_beyond_a_mebibyte(void **state) {
    (void)state;
    const struct inflate_limits dense = {.max_size = 1 << 24, .max_ratio = 100};
    struct buf small = zeros(1 << 20, 31), large = zeros((1 << 20) + 1, 31);
    struct outcome got = inflate_view(CODING_GZIP, buf_view(&small), dense);
    assert_int_equal(got.status, ST_OK);
    free(got.memory);
    expect_fault(CODING_GZIP, buf_view(&large), dense, ST_INVALID, "grows by more than is allowed");
    got = inflate_view(CODING_GZIP, buf_view(&large), (struct inflate_limits){.max_size = 1 << 24});
    assert_int_equal(got.status, ST_OK);
    free(got.memory);
    buf_done(&small);
    buf_done(&large);
}

/* Bits, lowest first, as deflate has them. */
struct bits {
    struct buf out;
    unsigned held, count;
};
static void put(struct bits *bits, unsigned value, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        bits->held |= (value >> i & 1) << bits->count;
        if (++bits->count == 8) {
            buf_char(&bits->out, (char)bits->held);
            bits->held = bits->count = 0;
        }
    }
}

/* A block with tables of its own and nothing in it: two literal codes of a bit each, one distance
 * code, and the end. 3 + 14 + 18 * 3 + table + 1 bits, some 15 bytes, and zlib builds 3 tables. */
static void put_empty_dynamic_block(struct bits *bits, bool is_last) {
    put(bits, is_last, 1);
    put(bits, 2, 2);
    put(bits, 0, 5);  /* 257 literal and length codes */
    put(bits, 0, 5);  /* 1 distance code */
    put(bits, 14, 4); /* 18 code length codes: 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1 */
    for (int i = 0; i < 18; i++)
        put(bits, i == 2 || i == 17 ? 1 : 0, 3); /* 18: a run of zeros, and 1; a bit each */
    /* canonical: length 1 has code 0, the run of zeros has code 1 */
    put(bits, 0, 1);      /* literal 0: length 1 */
    put(bits, 1, 1);      /* a run of 138 zeros */
    put(bits, 127, 7);
    put(bits, 1, 1);      /* a run of 117: literals 139 to 255 */
    put(bits, 106, 7);
    put(bits, 0, 1);      /* 256, the end: length 1 */
    put(bits, 0, 1);      /* the one distance code: length 1 */
    put(bits, 1, 1);      /* the end */
}

static struct view empty_blocks(struct bits *bits, int count) {
    buf_init(&bits->out);
    bits->held = bits->count = 0;
    for (int i = 0; i < count; i++)
        put_empty_dynamic_block(bits, i == count - 1);
    put(bits, 0, 7); /* to the end of the byte */
    return (struct view){.data = bits->out.data, .size = bits->out.size};
}

static void blocks_that_bring_nothing_are_counted(void **state) {
    (void)state;
    struct bits bits;
    expect_body(CODING_DEFLATE, empty_blocks(&bits, 1000), view_of(""));
    buf_done(&bits.out);
    const struct view many = empty_blocks(&bits, 500000);
    const clock_t before = clock();
    expect_fault(CODING_DEFLATE, many, LIMITS, ST_INVALID, "more blocks than its size explains");
    print_message("%zu KiB of empty blocks: refused after %ld ms\n", bits.out.size >> 10,
                  (long)((clock() - before) * 1000 / CLOCKS_PER_SEC));
    buf_done(&bits.out);
}

static void members_that_bring_nothing_are_counted(void **state) {
    (void)state;
    struct buf one, many;
    buf_init(&one);
    buf_init(&many);
    write_coded(&one, view_of(""), 31, 6, Z_DEFAULT_STRATEGY);
    for (int i = 0; i < 100000; i++)
        buf_append(&many, one.data, one.size);
    expect_fault(CODING_GZIP, buf_view(&many), LIMITS, ST_INVALID,
                 "more blocks than its size explains");
    many.size = one.size * 1000;
    expect_body(CODING_GZIP, buf_view(&many), view_of(""));
    buf_done(&one);
    buf_done(&many);
}

static void a_stream_that_was_flushed_often_is_read(void **state) {
    (void)state;
    z_stream stream = {0};
    struct buf out, text = some_text(50000);
    buf_init(&out);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t at = 0; at <= text.size; at += 10) {
        buf_reserve(&out, 200);
        const bool is_last = at == text.size;
        stream.next_in = (Bytef *)text.data + at;
        stream.avail_in = is_last ? 0 : 10;
        stream.next_out = (Bytef *)out.data + out.size;
        stream.avail_out = 200;
        (void)deflate(&stream, is_last ? Z_FINISH : at % 20 == 0 ? Z_SYNC_FLUSH : Z_PARTIAL_FLUSH);
        out.size += 200 - stream.avail_out;
    }
    deflateEnd(&stream);
    expect_body(CODING_GZIP, buf_view(&out), buf_view(&text));
    buf_done(&out);
    buf_done(&text);
}

static void knows_content_encodings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum coding coding;
    } CASES[] = {{"gzip", CODING_GZIP}, {"GZip", CODING_GZIP}, {"x-gzip", CODING_GZIP},
                 {" gzip\t", CODING_GZIP}, {"deflate", CODING_DEFLATE}, {"", CODING_IDENTITY},
                 {"identity", CODING_IDENTITY}, {"br", CODING_OTHER}, {"zstd", CODING_OTHER},
                 {"gzip, gzip", CODING_OTHER}, {"gzip, identity", CODING_OTHER},
                 {"gzipp", CODING_OTHER}, {"compress", CODING_OTHER}};
    assert_int_equal(coding_of((struct view){.data = NULL}), CODING_IDENTITY);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(coding_of(view_of(CASES[i].text)), CASES[i].coding);
    assert_string_equal(coding_name(CODING_GZIP), "gzip");
    assert_string_equal(coding_name(CODING_DEFLATE), "deflate");
}

static void chooses_what_the_client_accepts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum coding coding;
    } CASES[] = {{"gzip", CODING_GZIP},
                 {"gzip, deflate, br", CODING_GZIP},
                 {"deflate, gzip", CODING_GZIP},
                 {"deflate", CODING_DEFLATE},
                 {"deflate, gzip;q=0.5", CODING_DEFLATE},
                 {"gzip;q=0.5, deflate;q=0.5", CODING_GZIP},
                 {"gzip;q=0", CODING_IDENTITY},
                 {"gzip ; q=0.001", CODING_GZIP},
                 {"gzip;q=0.000", CODING_IDENTITY},
                 {"gzip;q=1.000", CODING_GZIP},
                 {"gzip;Q=0.3, identity;q=0.8", CODING_IDENTITY},
                 {"gzip;q=0.8, identity;q=0.3", CODING_GZIP},
                 {"*", CODING_GZIP},
                 {"*;q=0", CODING_IDENTITY},
                 {"gzip;q=0, *", CODING_DEFLATE},
                 {"identity", CODING_IDENTITY},
                 {"br, zstd", CODING_IDENTITY},
                 {"", CODING_IDENTITY},
                 {",,gzip,,", CODING_GZIP},
                 {"gzip;q=", CODING_IDENTITY},
                 {"gzip;q=2", CODING_IDENTITY},
                 {"gzip;q=1.5", CODING_IDENTITY},
                 {"gzip;q=0.123", CODING_GZIP},
                 {"gzip;q=0.1234", CODING_IDENTITY},
                 {"gzip;q=x", CODING_IDENTITY},
                 {"gzip;level=9", CODING_GZIP}};
    assert_int_equal(coding_choose((struct view){.data = NULL}), CODING_IDENTITY);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (coding_choose(view_of(CASES[i].text)) != CASES[i].coding)
            fail_msg("%s", CASES[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_writes_in_both_codings_and_all_levels),
        cmocka_unit_test(reads_deflate_with_and_without_the_zlib_wrapper),
        cmocka_unit_test(reads_gzip_headers_with_every_optional_field),
        cmocka_unit_test(reads_gzip_members_one_after_another),
        cmocka_unit_test(what_is_cut_short_anywhere_is_a_fault),
        cmocka_unit_test(what_follows_the_end_is_a_fault),
        cmocka_unit_test(every_flipped_bit_of_a_gzip_body_is_noticed_or_harmless),
        cmocka_unit_test(other_corruption_has_a_sentence),
        cmocka_unit_test(the_output_may_reach_the_cap_and_not_a_byte_more),
        cmocka_unit_test(a_bomb_of_many_members_meets_the_same_cap),
        cmocka_unit_test(density_can_be_limited_beyond_a_mebibyte),
        cmocka_unit_test(blocks_that_bring_nothing_are_counted),
        cmocka_unit_test(members_that_bring_nothing_are_counted),
        cmocka_unit_test(a_stream_that_was_flushed_often_is_read),
        cmocka_unit_test(knows_content_encodings),
        cmocka_unit_test(chooses_what_the_client_accepts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
