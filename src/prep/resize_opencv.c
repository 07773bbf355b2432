/* OpenCV's INTER_LINEAR and INTER_CUBIC for samples of 8 bits, as cv2.resize computes them on
 * x86-64. Pure but for scratch.
 *
 * Invariant: the integers between the passes are OpenCV's (weights of 11 bits), and so is the
 * rounding of the second pass, which for cubic differs between the columns that OpenCV's vectors
 * take and the up to 7 that are left over: those are the last ones of the whole row, window or
 * not. Two things are easily missed: a picture halved exactly is averaged (2x2, as INTER_AREA),
 * and the step is the inverse of an inverse. */
#include "prep/resize_window.h"
#include <math.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SCALE = 2048, MOST_TAPS = 4, VECTOR = 8 };

/* Where a column comes from. at: samples from the row's start, of tap 0; taps that would lie
 * outside are folded to the edge beforehand. */
struct column {
    uint32_t at[MOST_TAPS];
    int16_t weight[MOST_TAPS];
};

static double step_of(uint32_t in_size, uint32_t out_size) {
    const double inverse = (double)out_size / in_size;
    return 1.0 / inverse;
}

static void cubic_weights(float x, float out[MOST_TAPS]) {
    const float a = -0.75f;
    out[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    out[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    out[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
    out[3] = 1.f - out[0] - out[1] - out[2];
}

/* Where place i comes from: the tap left of it, and how far on it lies. */
static int32_t source_of(uint32_t i, double step, float *out_fraction) {
    const float at = (float)((i + 0.5) * step - 0.5);
    const int32_t whole = (int32_t)floorf(at);
    *out_fraction = at - (float)whole;
    return whole;
}

static int16_t fixed(float weight) {
    const float scaled = rintf(weight * SCALE);
    return (int16_t)(scaled < INT16_MIN ? INT16_MIN : scaled > INT16_MAX ? INT16_MAX : scaled);
}

#ifdef __SSE2__
static __m128i load(const int32_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

/* 4 sums in the order of OpenCV's, rounded to the nearest, ties to even. */
static __m128i blend(const int32_t *a, const int32_t *b, const int32_t *c, const int32_t *d,
                     const float weight[MOST_TAPS]) {
    __m128 sum = _mm_mul_ps(_mm_cvtepi32_ps(load(d)), _mm_set1_ps(weight[3]));
    sum = _mm_add_ps(_mm_mul_ps(_mm_cvtepi32_ps(load(c)), _mm_set1_ps(weight[2])), sum);
    sum = _mm_add_ps(_mm_mul_ps(_mm_cvtepi32_ps(load(b)), _mm_set1_ps(weight[1])), sum);
    sum = _mm_add_ps(_mm_mul_ps(_mm_cvtepi32_ps(load(a)), _mm_set1_ps(weight[0])), sum);
    return _mm_cvtps_epi32(sum);
}
#endif

static uint32_t clamped(int32_t at, uint32_t size) {
    return at < 0 ? 0 : (uint32_t)at < size ? (uint32_t)at : size - 1;
}

static void columns_init(struct column *columns, bool is_cubic, const struct image *in,
                         const struct resize_window *window) {
    const double step = step_of(in->width, window->scaled_width);
    for (uint32_t i = 0; i < window->width; i++) {
        struct column *column = &columns[i];
        float fraction;
        const int32_t whole = source_of(window->left + i, step, &fraction);
        if (is_cubic) {
            float weights[MOST_TAPS];
            cubic_weights(fraction, weights);
            for (int32_t t = 0; t < MOST_TAPS; t++) {
                column->at[t] = clamped(whole - 1 + t, in->width) * in->channels;
                column->weight[t] = fixed(weights[t]);
            }
            continue;
        }
        /* At an edge OpenCV multiplies the one sample by the sum of the weights. The taps stay
         * neighbours, so that both can be read at once. */
        const bool is_left = whole < 0, is_right = (uint32_t)whole + 1 >= in->width && !is_left;
        const uint32_t last_pair = in->width > 1 ? in->width - 2 : 0;
        column->at[0] = (is_left ? 0 : is_right ? last_pair : (uint32_t)whole) * in->channels;
        column->at[1] = column->at[0] + (in->width > 1 ? in->channels : 0);
        column->weight[0] = fixed(is_left ? 1.f : is_right ? 0.f : 1.f - fraction);
        column->weight[1] = fixed(is_left ? 0.f : is_right ? 1.f : fraction);
    }
}

static void across_linear(const struct column *columns, uint32_t count, uint32_t channels,
                          const unsigned char *in, int32_t *out) {
    uint32_t i = 0;
#ifdef __SSE2__
    /* Two pixels of 3 bytes are read as 4 bytes each, and 4 sums written for 3: the last column
     * is left to the loop below, and where there is but one pixel, all. */
    const bool has_pairs = channels == 3 && columns[0].at[1] != columns[0].at[0];
    for (; has_pairs && i + 1 < count; i++, out += 3) {
        uint32_t a, b, weights;
        memcpy(&a, in + columns[i].at[0], sizeof a);
        memcpy(&b, in + columns[i].at[1] - 1, sizeof b);
        memcpy(&weights, columns[i].weight, sizeof weights);
        const __m128i bytes = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)a),
                                                _mm_srli_epi32(_mm_cvtsi32_si128((int)b), 8));
        const __m128i words = _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
        _mm_storeu_si128((__m128i *)(void *)out,
                         _mm_madd_epi16(words, _mm_set1_epi32((int)weights)));
    }
#endif
    for (; i < count; i++) {
        const unsigned char *a = in + columns[i].at[0], *b = in + columns[i].at[1];
        const int32_t near = columns[i].weight[0], far = columns[i].weight[1];
        *out++ = a[0] * near + b[0] * far;
        if (channels == 3) {
            *out++ = a[1] * near + b[1] * far;
            *out++ = a[2] * near + b[2] * far;
        }
    }
}

static void across_cubic(const struct column *columns, uint32_t count, uint32_t channels,
                         const unsigned char *in, int32_t *out) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *at = columns[i].at;
        const int16_t *weight = columns[i].weight;
        for (uint32_t c = 0; c < channels; c++) {
            *out++ = in[at[0] + c] * weight[0] + in[at[1] + c] * weight[1]
                + in[at[2] + c] * weight[2] + in[at[3] + c] * weight[3];
        }
    }
}

static unsigned char saturated(int32_t value) {
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void down_linear(int32_t *const rows[], const float weights[MOST_TAPS], size_t count,
                        unsigned char *out) {
    const int32_t *a = rows[0], *b = rows[1];
    const int16_t near = fixed(weights[0]), far = fixed(weights[1]);
    size_t x = 0;
#ifdef __SSE2__
    const __m128i nears = _mm_set1_epi16(near), fars = _mm_set1_epi16(far);
    for (; x + VECTOR <= count; x += VECTOR) {
        const __m128i a8 = _mm_packs_epi32(_mm_srai_epi32(load(a + x), 4),
                                           _mm_srai_epi32(load(a + x + 4), 4));
        const __m128i b8 = _mm_packs_epi32(_mm_srai_epi32(load(b + x), 4),
                                           _mm_srai_epi32(load(b + x + 4), 4));
        const __m128i sum = _mm_add_epi16(_mm_mulhi_epi16(a8, nears), _mm_mulhi_epi16(b8, fars));
        const __m128i words = _mm_srai_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
        _mm_storel_epi64((__m128i *)(void *)(out + x), _mm_packus_epi16(words, words));
    }
#endif
    for (; x < count; x++) {
        const int32_t sum = ((near * (a[x] >> 4)) >> 16) + ((far * (b[x] >> 4)) >> 16);
        out[x] = (unsigned char)((sum + 2) >> 2);
    }
}

/* float_until: samples before this one go the way of OpenCV's vectors. */
static void down_cubic(int32_t *const rows[], const float weights[MOST_TAPS], size_t count,
                       size_t float_until, unsigned char *out) {
    const float scale = 1.f / ((float)SCALE * SCALE);
    float weight[MOST_TAPS];
    int32_t whole[MOST_TAPS];
    for (size_t t = 0; t < MOST_TAPS; t++) {
        whole[t] = fixed(weights[t]);
        weight[t] = (float)whole[t] * scale;
    }
    const int32_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const size_t end = count < float_until ? count : float_until;
    size_t x = 0;
#ifdef __SSE2__
    for (; x + VECTOR <= end; x += VECTOR) {
        const __m128i words = _mm_packs_epi32(blend(a + x, b + x, c + x, d + x, weight),
                                              blend(a + x + 4, b + x + 4, c + x + 4, d + x + 4,
                                                    weight));
        _mm_storel_epi64((__m128i *)(void *)(out + x), _mm_packus_epi16(words, words));
    }
#endif
    for (; x < end; x++) {
        const float sum = (float)a[x] * weight[0]
            + ((float)b[x] * weight[1] + ((float)c[x] * weight[2] + (float)d[x] * weight[3]));
        out[x] = saturated((int32_t)rintf(sum));
    }
    for (; x < count; x++) {
        const int32_t sum = a[x] * whole[0] + b[x] * whole[1] + c[x] * whole[2] + d[x] * whole[3];
        out[x] = saturated((sum + (1 << 21)) >> 22);
    }
}

/* The rows of the first pass that the second needs at the moment. */
struct pass {
    const struct image *in;
    const struct column *columns;
    uint32_t width, taps;
    int32_t *rows[MOST_TAPS];
    int64_t held[MOST_TAPS]; /* which row each is; -1: none */
};

static void pass_need(struct pass *pass, uint32_t y, uint32_t slot) {
    if (pass->held[slot] == y) {
        return;
    }
    for (uint32_t other = slot + 1; other < pass->taps; other++) {
        if (pass->held[other] == y) {
            int32_t *row = pass->rows[slot];
            pass->rows[slot] = pass->rows[other];
            pass->rows[other] = row;
            pass->held[other] = pass->held[slot];
            pass->held[slot] = y;
            return;
        }
    }
    const struct image *in = pass->in;
    const unsigned char *from = in->pixels + (size_t)y * in->width * in->channels;
    if (pass->taps == 2) {
        across_linear(pass->columns, pass->width, in->channels, from, pass->rows[slot]);
    } else {
        across_cubic(pass->columns, pass->width, in->channels, from, pass->rows[slot]);
    }
    pass->held[slot] = y;
}

static bool resize(const struct image *in, bool is_cubic, const struct resize_window *window,
                   struct scratch *scratch) {
    const size_t count = (size_t)window->width * in->channels;
    struct column *columns = scratch_get(scratch, SCRATCH_WEIGHTS,
                                         window->width * sizeof *columns);
    int32_t *memory = scratch_get(scratch, SCRATCH_PASS, MOST_TAPS * count * sizeof *memory);
    if (columns == NULL || memory == NULL) {
        return false;
    }
    columns_init(columns, is_cubic, in, window);
    struct pass pass = {.in = in, .columns = columns, .width = window->width,
                        .taps = is_cubic ? 4 : 2};
    for (uint32_t t = 0; t < MOST_TAPS; t++) {
        pass.rows[t] = memory + t * count;
        pass.held[t] = -1;
    }
    const size_t whole_row = (size_t)window->scaled_width * in->channels;
    const size_t vectors_end = whole_row / VECTOR * VECTOR;
    const size_t left = (size_t)window->left * in->channels;
    const size_t float_until = vectors_end > left ? vectors_end - left : 0;
    const double step = step_of(in->height, window->scaled_height);
    for (uint32_t j = 0; j < window->height; j++) {
        float fraction, weights[MOST_TAPS];
        const int32_t first = source_of(window->top + j, step, &fraction) - (is_cubic ? 1 : 0);
        for (uint32_t t = 0; t < pass.taps; t++) {
            pass_need(&pass, clamped(first + (int32_t)t, in->height), t);
        }
        unsigned char *out = window->out + j * window->stride;
        if (is_cubic) {
            cubic_weights(fraction, weights);
            down_cubic(pass.rows, weights, count, float_until, out);
        } else {
            weights[0] = 1.f - fraction;
            weights[1] = fraction;
            down_linear(pass.rows, weights, count, out);
        }
    }
    return true;
}

static void halve(const struct image *in, const struct resize_window *window) {
    const size_t channels = in->channels, row = in->width * channels;
    for (uint32_t j = 0; j < window->height; j++) {
        const unsigned char *a = in->pixels + (size_t)(window->top + j) * 2 * row
            + (size_t)window->left * 2 * channels;
        unsigned char *out = window->out + j * window->stride;
        for (uint32_t i = 0; i < window->width; i++, a += 2 * channels) {
            for (size_t c = 0; c < channels; c++) {
                const unsigned char *b = a + row;
                *out++ = (unsigned char)((a[c] + a[c + channels] + b[c] + b[c + channels] + 2) >> 2);
            }
        }
    }
}

bool resize_opencv_linear(const struct image *in, const struct resize_window *window,
                          struct scratch *scratch) {
    if ((uint64_t)window->scaled_width * 2 == in->width
        && (uint64_t)window->scaled_height * 2 == in->height) {
        halve(in, window);
        return true;
    }
    return resize(in, false, window, scratch);
}

bool resize_opencv_cubic(const struct image *in, const struct resize_window *window,
                         struct scratch *scratch) {
    return resize(in, true, window, scratch);
}
