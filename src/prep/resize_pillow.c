/* Pillow's antialiased resize: two passes, columns first, weights of 22 bits, 8 bits between the
 * passes. Pure but for scratch.
 *
 * Invariant: every sum here is the integer that Pillow's Resample.c computes, whatever order or
 * instructions make it. A weight is split into high * 4096 + low, so that two multiplications of
 * 16 bits do what one of 32 would, which SSE2 lacks; both partial sums stay exact.
 *
 * The second pass needs no more than a window of rows of the first: those lie in a ring, which
 * keeps a picture of 1 column and 32768 rows from asking for gigabytes. */
#include "prep/resize_window.h"
#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { WEIGHT_BITS = 22, LOW_BITS = 12, LANES = 8, ROWS = 4 };

/* What each of count places along one direction is made of. */
struct axis {
    uint32_t count;
    uint32_t taps;         /* room for weights a place: a multiple of LANES */
    uint32_t *first, *used;
    int16_t *high, *low;   /* count * taps each; 0 beyond used */
};

static double triangle(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    }
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static double axis_support(bool is_cubic, uint32_t in_size, uint32_t out_size) {
    const double scale = (double)in_size / out_size;
    return (is_cubic ? 2.0 : 1.0) * (scale < 1.0 ? 1.0 : scale);
}

static uint32_t axis_taps(bool is_cubic, uint32_t in_size, uint32_t out_size) {
    const uint32_t most = (uint32_t)ceil(axis_support(is_cubic, in_size, out_size)) * 2 + 1;
    return (most + LANES - 1) / LANES * LANES;
}

static size_t axis_bytes(const struct axis *axis) {
    return axis->count * (2 * sizeof(uint32_t) + axis->taps * 2 * sizeof(int16_t));
}

/* Takes its arrays from memory and returns what follows them. */
static char *axis_carve(struct axis *axis, char *memory) {
    axis->high = (int16_t *)memory;
    axis->low = axis->high + (size_t)axis->count * axis->taps;
    axis->first = (uint32_t *)(axis->low + (size_t)axis->count * axis->taps);
    axis->used = axis->first + axis->count;
    return memory + axis_bytes(axis);
}

/* from: the first place that is wanted of out_size. weights: room for axis->taps. */
static void axis_fill(struct axis *axis, bool is_cubic, uint32_t in_size, uint32_t out_size,
                      uint32_t from, double *weights) {
    const double scale = (double)in_size / out_size;
    const double support = axis_support(is_cubic, in_size, out_size);
    const double inverse = 1.0 / (scale < 1.0 ? 1.0 : scale);
    memset(axis->high, 0, (size_t)axis->count * axis->taps * sizeof *axis->high);
    memset(axis->low, 0, (size_t)axis->count * axis->taps * sizeof *axis->low);
    for (uint32_t i = 0; i < axis->count; i++) {
        const double center = ((double)(from + i) + 0.5) * scale;
        const double begin = center - support + 0.5;
        const double end = center + support + 0.5;
        const uint32_t first = begin < 0 ? 0 : (uint32_t)begin;
        const uint32_t used = (end > in_size ? in_size : (uint32_t)end) - first;
        double sum = 0;
        for (uint32_t t = 0; t < used; t++) {
            const double x = ((double)(t + first) - center + 0.5) * inverse;
            weights[t] = is_cubic ? cubic(x) : triangle(x);
            sum += weights[t];
        }
        axis->first[i] = first;
        axis->used[i] = used;
        int16_t *high = axis->high + (size_t)i * axis->taps;
        int16_t *low = axis->low + (size_t)i * axis->taps;
        for (uint32_t t = 0; t < used; t++) {
            const double share = sum != 0.0 ? weights[t] / sum : weights[t];
            const double fixed = share * (1 << WEIGHT_BITS);
            const int32_t weight = (int32_t)(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
            low[t] = (int16_t)(weight & ((1 << LOW_BITS) - 1));
            high[t] = (int16_t)((weight - low[t]) / (1 << LOW_BITS));
        }
    }
}

static int32_t weight_of(const int16_t *high, const int16_t *low) {
    return *high * (1 << LOW_BITS) + *low;
}

static unsigned char rounded(int32_t sum) {
    const int32_t value = sum >> WEIGHT_BITS; /* arithmetic with every compiler that we build with */
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static int32_t sum_across(const unsigned char *from, uint32_t step, const int16_t *high,
                          const int16_t *low, uint32_t used) {
    int32_t sum = 1 << (WEIGHT_BITS - 1);
    for (uint32_t t = 0; t < used; t++) {
        sum += weight_of(high + t, low + t) * from[t * step];
    }
    return sum;
}

#ifdef __SSE2__
static uint32_t load32(const void *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* 4 sums of both halves to 4 samples in the low bytes. */
static __m128i finish(__m128i high, __m128i low) {
    const __m128i half = _mm_set1_epi32(1 << (WEIGHT_BITS - 1));
    const __m128i sum = _mm_add_epi32(_mm_add_epi32(_mm_slli_epi32(high, LOW_BITS), low), half);
    return _mm_srai_epi32(sum, WEIGHT_BITS);
}

/* The pixel at from and the one behind it: r0 r1 g0 g1 b0 b1 as words; a third must lie behind
 * them, for 8 bytes are read. */
static inline __m128i pixel_pair(const unsigned char *from) {
    const __m128i pixels = _mm_loadl_epi64((const __m128i *)(const void *)from);
    const __m128i pairs = _mm_unpacklo_epi8(pixels, _mm_srli_epi64(pixels, 24));
    return _mm_unpacklo_epi8(pairs, _mm_setzero_si128());
}

/* The same where nothing lies behind: the second is read from a byte before it. */
static inline __m128i pixel_last_pair(const unsigned char *from) {
    const __m128i a = _mm_cvtsi32_si128((int)load32(from));
    const __m128i b = _mm_cvtsi32_si128((int)load32(from + 2));
    return _mm_unpacklo_epi8(_mm_unpacklo_epi8(a, _mm_srli_epi32(b, 8)), _mm_setzero_si128());
}

/* The last pixel of an odd number, with nothing behind it. */
static inline __m128i pixel_alone(const unsigned char *from) {
    const __m128i zero = _mm_setzero_si128();
    const uint32_t bytes = from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128((int)bytes), zero), zero);
}

static void store_pixel(__m128i high, __m128i low, unsigned char *out) {
    const __m128i words = _mm_packs_epi32(finish(high, low), _mm_setzero_si128());
    const uint32_t pixel = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    memcpy(out, &pixel, 3);
}

/* Adds the pixels of one row, or of two taps of it, to its sums of both halves. */
static inline void add_weighted(__m128i pixels, __m128i high_pair, __m128i low_pair,
                                __m128i *high_sum, __m128i *low_sum) {
    *high_sum = _mm_add_epi32(*high_sum, _mm_madd_epi16(pixels, high_pair));
    *low_sum = _mm_add_epi32(*low_sum, _mm_madd_epi16(pixels, low_pair));
}

/* Several rows at once: they share the weights, whose spreading over a register costs as much as
 * a row does. The loops over rows must be unrolled for the sums to stay in registers. */
static void across_rgb(const struct axis *axis, const unsigned char *in, size_t in_stride,
                       unsigned char *const out[ROWS]) {
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint32_t used = axis->used[i];
        const int16_t *high = axis->high + (size_t)i * axis->taps;
        const int16_t *low = axis->low + (size_t)i * axis->taps;
        const unsigned char *from = in + (size_t)axis->first[i] * 3;
        __m128i high_sums[ROWS], low_sums[ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            high_sums[r] = low_sums[r] = _mm_setzero_si128();
        }
        uint32_t t = 0;
        for (; t + 2 < used; t += 2, from += 6) {
            const __m128i high_pair = _mm_set1_epi32((int)load32(high + t));
            const __m128i low_pair = _mm_set1_epi32((int)load32(low + t));
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; r++) {
                add_weighted(pixel_pair(from + (size_t)r * in_stride), high_pair, low_pair,
                             &high_sums[r], &low_sums[r]);
            }
        }
        /* one or two are left; beyond used the weights are 0 */
        const __m128i high_pair = _mm_set1_epi32((int)load32(high + t));
        const __m128i low_pair = _mm_set1_epi32((int)load32(low + t));
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            const unsigned char *last = from + (size_t)r * in_stride;
            add_weighted(t + 1 < used ? pixel_last_pair(last) : pixel_alone(last), high_pair,
                         low_pair, &high_sums[r], &low_sums[r]);
            store_pixel(high_sums[r], low_sums[r], out[r] + (size_t)i * 3);
        }
    }
}

static void across_grey(const struct axis *axis, const unsigned char *in, unsigned char *out) {
    const __m128i zero = _mm_setzero_si128();
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint32_t used = axis->used[i];
        const int16_t *high = axis->high + (size_t)i * axis->taps;
        const int16_t *low = axis->low + (size_t)i * axis->taps;
        const unsigned char *from = in + axis->first[i];
        __m128i high_sum = zero, low_sum = zero;
        uint32_t t = 0;
        for (; t + LANES <= used; t += LANES) {
            const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(from + t));
            const __m128i pixels = _mm_unpacklo_epi8(bytes, zero);
            const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(high + t));
            const __m128i l = _mm_loadu_si128((const __m128i *)(const void *)(low + t));
            high_sum = _mm_add_epi32(high_sum, _mm_madd_epi16(pixels, h));
            low_sum = _mm_add_epi32(low_sum, _mm_madd_epi16(pixels, l));
        }
        __m128i both = _mm_add_epi32(_mm_slli_epi32(high_sum, LOW_BITS), low_sum);
        both = _mm_add_epi32(both, _mm_shuffle_epi32(both, _MM_SHUFFLE(1, 0, 3, 2)));
        both = _mm_add_epi32(both, _mm_shuffle_epi32(both, _MM_SHUFFLE(2, 3, 0, 1)));
        out[i] = rounded(_mm_cvtsi128_si32(both)
                         + sum_across(from + t, 1, high + t, low + t, used - t));
    }
}

/* 16 samples of one column each of rows. */
static void down_16(const unsigned char *const *rows, const int16_t *high, const int16_t *low,
                    uint32_t used, size_t x, unsigned char *out) {
    const __m128i zero = _mm_setzero_si128();
    __m128i h0 = zero, h1 = zero, h2 = zero, h3 = zero;
    __m128i l0 = zero, l1 = zero, l2 = zero, l3 = zero;
    for (uint32_t t = 0; t < used; t += 2) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(rows[t] + x));
        const __m128i b = t + 1 < used
            ? _mm_loadu_si128((const __m128i *)(const void *)(rows[t + 1] + x)) : zero;
        const __m128i near = _mm_unpacklo_epi8(a, b), far = _mm_unpackhi_epi8(a, b);
        const __m128i high_pair = _mm_set1_epi32((int)load32(high + t));
        const __m128i low_pair = _mm_set1_epi32((int)load32(low + t));
        const __m128i p0 = _mm_unpacklo_epi8(near, zero), p1 = _mm_unpackhi_epi8(near, zero);
        const __m128i p2 = _mm_unpacklo_epi8(far, zero), p3 = _mm_unpackhi_epi8(far, zero);
        h0 = _mm_add_epi32(h0, _mm_madd_epi16(p0, high_pair));
        h1 = _mm_add_epi32(h1, _mm_madd_epi16(p1, high_pair));
        h2 = _mm_add_epi32(h2, _mm_madd_epi16(p2, high_pair));
        h3 = _mm_add_epi32(h3, _mm_madd_epi16(p3, high_pair));
        l0 = _mm_add_epi32(l0, _mm_madd_epi16(p0, low_pair));
        l1 = _mm_add_epi32(l1, _mm_madd_epi16(p1, low_pair));
        l2 = _mm_add_epi32(l2, _mm_madd_epi16(p2, low_pair));
        l3 = _mm_add_epi32(l3, _mm_madd_epi16(p3, low_pair));
    }
    const __m128i first = _mm_packs_epi32(finish(h0, l0), finish(h1, l1));
    const __m128i second = _mm_packs_epi32(finish(h2, l2), finish(h3, l3));
    _mm_storeu_si128((__m128i *)(void *)(out + x), _mm_packus_epi16(first, second));
}
#else
static void across_rgb(const struct axis *axis, const unsigned char *in, size_t in_stride,
                       unsigned char *const out[ROWS]) {
    for (uint32_t i = 0; i < axis->count * 3; i++) {
        const size_t at = (size_t)(i / 3) * axis->taps;
        const unsigned char *from = in + (size_t)axis->first[i / 3] * 3 + i % 3;
        for (size_t r = 0; r < ROWS; r++) {
            out[r][i] = rounded(sum_across(from + r * in_stride, 3, axis->high + at,
                                           axis->low + at, axis->used[i / 3]));
        }
    }
}

static void across_grey(const struct axis *axis, const unsigned char *in, unsigned char *out) {
    for (uint32_t i = 0; i < axis->count; i++) {
        const size_t at = (size_t)i * axis->taps;
        out[i] = rounded(sum_across(in + axis->first[i], 1, axis->high + at, axis->low + at,
                                    axis->used[i]));
    }
}
#endif

static void down(const unsigned char *const *rows, const int16_t *high, const int16_t *low,
                 uint32_t used, size_t size, unsigned char *out) {
    size_t x = 0;
#ifdef __SSE2__
    for (; x + 16 <= size; x += 16) {
        down_16(rows, high, low, used, x, out);
    }
#endif
    for (; x < size; x++) {
        int32_t sum = 1 << (WEIGHT_BITS - 1);
        for (uint32_t t = 0; t < used; t++) {
            sum += weight_of(high + t, low + t) * rows[t][x];
        }
        out[x] = rounded(sum);
    }
}

/* The first pass, row by row as the second asks for them. */
struct pass {
    const struct image *in;
    const struct axis *across; /* NULL: columns stay as they are */
    uint32_t left;             /* first column, where across is NULL */
    unsigned char *ring;       /* slots rows of row_bytes */
    size_t row_bytes;
    uint32_t slots;
    uint32_t made;             /* the rows before this one have been made */
};

/* Rows y and the next, as many as there are of count, to out. Where fewer than ROWS are left, the
 * last one is made again and again into the same place. */
static void make_rows(const struct pass *pass, uint32_t y, uint32_t count,
                      unsigned char *const out[ROWS]) {
    const struct image *in = pass->in;
    const size_t stride = (size_t)in->width * in->channels;
    const unsigned char *row = in->pixels + y * stride;
    if (in->channels == 1) {
        for (uint32_t r = 0; r < count; r++) {
            across_grey(pass->across, row + r * stride, out[r]);
        }
    } else if (count == ROWS) {
        across_rgb(pass->across, row, stride, out);
    } else {
        for (uint32_t r = 0; r < count; r++) {
            unsigned char *const same[ROWS] = {out[r], out[r], out[r], out[r]};
            across_rgb(pass->across, row + r * stride, 0, same);
        }
    }
}

static unsigned char *ring_row(const struct pass *pass, uint32_t y) {
    return pass->ring + (size_t)(y % pass->slots) * pass->row_bytes;
}

static const unsigned char *get_row(struct pass *pass, uint32_t y) {
    const struct image *in = pass->in;
    if (pass->across == NULL) {
        return in->pixels + ((size_t)y * in->width + pass->left) * in->channels;
    }
    while (y >= pass->made) {
        const uint32_t first = y - pass->made < ROWS ? pass->made : y;
        const uint32_t left = in->height - first, count = left < ROWS ? left : ROWS;
        unsigned char *out[ROWS];
        for (uint32_t r = 0; r < count; r++) {
            out[r] = ring_row(pass, first + r);
        }
        make_rows(pass, first, count, out);
        pass->made = first + count;
    }
    return ring_row(pass, y);
}

static void run(struct pass *pass, const struct axis *downward, const struct resize_window *window,
                const unsigned char **rows) {
    for (uint32_t j = 0; j < window->height; j++) {
        unsigned char *out = window->out + j * window->stride;
        if (downward == NULL) {
            const uint32_t left = window->height - j, count = left < ROWS ? left : ROWS;
            unsigned char *rows_out[ROWS];
            for (uint32_t r = 0; r < count; r++) {
                rows_out[r] = out + r * window->stride;
            }
            make_rows(pass, window->top + j, count, rows_out);
            j += count - 1;
            continue;
        }
        const uint32_t used = downward->used[j];
        for (uint32_t t = 0; t < used; t++) {
            rows[t] = get_row(pass, downward->first[j] + t);
        }
        const size_t at = (size_t)j * downward->taps;
        down(rows, downward->high + at, downward->low + at, used, pass->row_bytes, out);
    }
}

bool resize_pillow(const struct image *in, bool is_cubic, const struct resize_window *window,
                   struct scratch *scratch) {
    struct axis across = {.count = window->width,
                          .taps = axis_taps(is_cubic, in->width, window->scaled_width)};
    struct axis downward = {.count = window->height,
                            .taps = axis_taps(is_cubic, in->height, window->scaled_height)};
    const uint32_t most = across.taps > downward.taps ? across.taps : downward.taps;
    /* weights while they are made; the rows' addresses afterwards */
    char *memory = scratch_get(scratch, SCRATCH_WEIGHTS,
                               most * sizeof(double) + axis_bytes(&across) + axis_bytes(&downward));
    struct pass pass = {.in = in, .left = window->left, .slots = downward.taps + ROWS,
                        .row_bytes = (size_t)window->width * in->channels};
    pass.ring = scratch_get(scratch, SCRATCH_PASS, pass.slots * pass.row_bytes);
    if (memory == NULL || pass.ring == NULL) {
        return false;
    }
    double *weights = (double *)memory;
    (void)axis_carve(&downward, axis_carve(&across, memory + most * sizeof(double)));
    const bool turns_columns = window->scaled_width != in->width;
    const bool turns_rows = window->scaled_height != in->height;
    if (turns_columns) {
        axis_fill(&across, is_cubic, in->width, window->scaled_width, window->left, weights);
        pass.across = &across;
    }
    if (turns_rows) {
        axis_fill(&downward, is_cubic, in->height, window->scaled_height, window->top, weights);
    }
    run(&pass, turns_rows ? &downward : NULL, window, (const unsigned char **)memory);
    return true;
}
