/* gzip and deflate through zlib. Any thread; what is allocated is freed before return, but for
 * what the caller gets.
 *
 * Invariant: output memory grows with output that was really produced, at most doubling: a small
 * body that says nothing of its size never makes a large allocation.
 *
 * Why blocks are counted: a deflate block with tables of its own costs some microseconds whatever
 * comes of it, and fits into some dozen bytes. Read next: http1.h (whose bodies these are). */
#include "proto/compress.h"

#include "proto/http1.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>

enum {
    BODY_PADDING = 64,
    FIRST_OUTPUT_BYTES = 4096,
    WINDOW = 15,
    GZIP_WINDOW = 16 + WINDOW,
    RATIO_FREE_BYTES = 1024 * 1024, /* small bodies may be as dense as they like */
    PARTS_FREE = 16384,             /* blocks and members of any body, */
    BYTES_A_PART = 512,             /* and one more for so many bytes in and out */
    AT_BLOCK_END = 128              /* in z_stream.data_type */
};

/* ---- headers ---- */

static bool same_word(struct view a, const char *word) {
    return a.size == strlen(word) && strncasecmp(a.data, word, a.size) == 0;
}

static struct view trim(struct view v) {
    while (v.size > 0 && (v.data[0] == ' ' || v.data[0] == '\t')) {
        v.data++;
        v.size--;
    }
    while (v.size > 0 && (v.data[v.size - 1] == ' ' || v.data[v.size - 1] == '\t'))
        v.size--;
    return v;
}

enum coding coding_of(struct view content_encoding) {
    const struct view word = trim(content_encoding);
    if (word.size == 0 || same_word(word, "identity"))
        return CODING_IDENTITY;
    if (same_word(word, "gzip") || same_word(word, "x-gzip"))
        return CODING_GZIP;
    return same_word(word, "deflate") ? CODING_DEFLATE : CODING_OTHER;
}

const char *coding_name(enum coding coding) {
    switch (coding) {
    case CODING_GZIP: return "gzip";
    case CODING_DEFLATE: return "deflate";
    case CODING_IDENTITY: return "identity";
    case CODING_OTHER: break;
    }
    return "other";
}

/* Takes what stands before the next mark off list. */
static struct view take_until(struct view *list, char mark) {
    const char *at = list->size > 0 ? memchr(list->data, mark, list->size) : NULL;
    const struct view item = {.data = list->data,
                              .size = at ? (size_t)(at - list->data) : list->size};
    const size_t used = item.size + (at ? 1 : 0);
    list->data += used;
    list->size -= used;
    return trim(item);
}

/* "q=0.25" in thousandths: RFC 9110, 12.4.2. What is not a q-value counts as 0: better plain than
 * something that was not asked for. */
static int weight_of(struct view parameters) {
    while (parameters.size > 0) {
        const struct view parameter = take_until(&parameters, ';');
        if (parameter.size < 2 || (parameter.data[0] | 0x20) != 'q' || parameter.data[1] != '=')
            continue;
        if (parameter.size == 2 || parameter.size > 7 ||
            (parameter.data[2] != '0' && parameter.data[2] != '1') ||
            (parameter.size > 3 && parameter.data[3] != '.'))
            return 0;
        int weight = (parameter.data[2] - '0') * 1000, unit = 100;
        for (size_t i = 4; i < parameter.size; i++, unit /= 10) {
            if (parameter.data[i] < '0' || parameter.data[i] > '9')
                return 0;
            weight += (parameter.data[i] - '0') * unit;
        }
        return weight > 1000 ? 0 : weight;
    }
    return 1000;
}

enum coding coding_choose(struct view accept_encoding) {
    int gzip = -1, deflate = -1, identity = -1, others = -1; /* -1: not said */
    while (accept_encoding.size > 0) {
        struct view parameters = take_until(&accept_encoding, ',');
        const struct view word = take_until(&parameters, ';');
        const int weight = weight_of(parameters);
        if (same_word(word, "gzip") || same_word(word, "x-gzip"))
            gzip = weight;
        else if (same_word(word, "deflate"))
            deflate = weight;
        else if (same_word(word, "identity"))
            identity = weight;
        else if (same_word(word, "*"))
            others = weight;
    }
    const int unsaid = others < 0 ? 0 : others;
    gzip = gzip < 0 ? unsaid : gzip;
    deflate = deflate < 0 ? unsaid : deflate;
    const int best = gzip > deflate ? gzip : deflate;
    if (best == 0 || identity > best)
        return CODING_IDENTITY;
    return gzip >= deflate ? CODING_GZIP : CODING_DEFLATE;
}

/* ---- zlib ---- */

static void *zlib_alloc(void *opaque, unsigned count, unsigned size) {
    (void)opaque;
    return calloc(count, size);
}

static void zlib_free(void *opaque, void *memory) {
    (void)opaque;
    free(memory);
}

/* zlib counts in unsigned int. */
static unsigned portion(uint64_t size) { return size > UINT_MAX ? UINT_MAX : (unsigned)size; }

/* A zlib stream begins with two bytes that say so, RFC 1950, 2.2; a raw one that begins alike
 * would have a stored block with other than zeros in its spare bits, which nobody writes. */
static bool has_zlib_head(struct view body) {
    if (body.size < 2)
        return false;
    const unsigned first = (unsigned char)body.data[0], second = (unsigned char)body.data[1];
    return (first & 0x0f) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0;
}

struct inflater {
    z_stream stream;
    enum coding coding;
    struct view input; /* all of it */
    struct inflate_limits limits;
    size_t used;       /* of the input */
    char *memory;      /* headroom, capacity, padding */
    size_t size, capacity;
    uint64_t parts;    /* blocks and members */
};

static char *output_of(const struct inflater *inflater) {
    return inflater->memory + HTTP_BODY_HEADROOM;
}

static enum status fail(const struct inflater *inflater, struct err *err, const char *what) {
    return err_set(err, ST_INVALID, "the %s body %s (at byte %zu of %zu)",
                   coding_name(inflater->coding), what, inflater->used, inflater->input.size);
}

/* Room for at least one more byte than there is; never more than max_size and one, so that too
 * much is noticed. */
static enum status grow(struct inflater *inflater, struct err *err) {
    const uint64_t most = inflater->limits.max_size + 1;
    uint64_t capacity = inflater->capacity > 0 ? (uint64_t)inflater->capacity * 2
                                               : FIRST_OUTPUT_BYTES;
    if (capacity > most)
        capacity = most;
    char *memory = realloc(inflater->memory, HTTP_BODY_HEADROOM + capacity + BODY_PADDING);
    if (!memory)
        return err_set(err, ST_NO_MEMORY, "no memory for %llu bytes of a decompressed body",
                       (unsigned long long)capacity);
    inflater->memory = memory;
    inflater->capacity = (size_t)capacity;
    return ST_OK;
}

static enum status check_limits(const struct inflater *inflater, struct err *err) {
    const struct inflate_limits *limits = &inflater->limits;
    if (inflater->size > limits->max_size)
        return err_set(err, ST_TOO_LARGE,
                       "the %s body is larger than the limit of %llu bytes once decompressed",
                       coding_name(inflater->coding), (unsigned long long)limits->max_size);
    if (limits->max_ratio > 0 && inflater->size > RATIO_FREE_BYTES &&
        inflater->size / limits->max_ratio > inflater->used)
        return fail(inflater, err, "grows by more than is allowed");
    if (inflater->parts > PARTS_FREE + ((uint64_t)inflater->used + inflater->size) / BYTES_A_PART)
        return fail(inflater, err, "has more blocks than its size explains");
    return ST_OK;
}

static enum status sentence_of(const struct inflater *inflater, int result, struct err *err) {
    if (result == Z_MEM_ERROR)
        return err_set(err, ST_NO_MEMORY, "no memory to decompress a body");
    if (result == Z_NEED_DICT)
        return fail(inflater, err, "wants a dictionary, which HTTP does not have");
    char what[160] = "is corrupt: ";
    strncat(what, inflater->stream.msg ? inflater->stream.msg : "no reason known",
            sizeof what - strlen(what) - 1);
    return fail(inflater, err, what);
}

/* One call of inflate, to the end of a block or of the room. */
static int inflate_some(struct inflater *inflater) {
    z_stream *stream = &inflater->stream;
    const unsigned in = portion(inflater->input.size - inflater->used);
    const unsigned out = portion(inflater->capacity - inflater->size);
    /* The cast: zlib does not write to its input, and says so only where Z_CONST is defined. */
    stream->next_in = (Bytef *)(uintptr_t)(inflater->input.data + inflater->used);
    stream->avail_in = in;
    stream->next_out = (Bytef *)output_of(inflater) + inflater->size;
    stream->avail_out = out;
    const int result = inflate(stream, Z_BLOCK);
    inflater->used += in - stream->avail_in;
    inflater->size += out - stream->avail_out;
    if ((stream->data_type & AT_BLOCK_END) == 0)
        return result;
    inflater->parts++;
    /* A block that ended within bits which zlib held already took no byte: still no stall. */
    return result == Z_BUF_ERROR ? Z_OK : result;
}

/* A member has ended: true when that was all. */
static bool is_whole(struct inflater *inflater, enum status *status, struct err *err) {
    const struct view *input = &inflater->input;
    if (inflater->used == input->size)
        return true;
    inflater->parts++;
    if (inflater->coding == CODING_GZIP && (unsigned char)input->data[inflater->used] == 0x1f &&
        inflateReset(&inflater->stream) == Z_OK)
        return false;
    *status = fail(inflater, err, "has something behind its end");
    return true;
}

static enum status inflate_all(struct inflater *inflater, struct err *err) {
    for (;;) {
        enum status status = ST_OK;
        if (inflater->size == inflater->capacity)
            status = grow(inflater, err);
        if (status != ST_OK)
            return status;
        const int result = inflate_some(inflater);
        status = check_limits(inflater, err);
        if (status != ST_OK)
            return status;
        if (result == Z_STREAM_END) {
            if (is_whole(inflater, &status, err))
                return status;
        } else if (result == Z_BUF_ERROR) { /* there was room: it wants more input */
            return fail(inflater, err, "ends too early");
        } else if (result != Z_OK) {
            return sentence_of(inflater, result, err);
        }
    }
}

enum status inflate_body(enum coding coding, struct view body, struct inflate_limits limits,
                         char **out_memory, struct view *out_body, struct err *err) {
    if (coding != CODING_GZIP && coding != CODING_DEFLATE)
        return err_set(err, ST_UNSUPPORTED_TYPE, "a body cannot be decompressed from \"%s\"",
                       coding_name(coding));
    if (limits.max_size > SIZE_MAX / 4)
        limits.max_size = SIZE_MAX / 4;
    struct inflater inflater = {.coding = coding, .input = body, .limits = limits};
    inflater.stream.zalloc = zlib_alloc;
    inflater.stream.zfree = zlib_free;
    const int window = coding == CODING_GZIP ? GZIP_WINDOW : has_zlib_head(body) ? WINDOW : -WINDOW;
    if (inflateInit2(&inflater.stream, window) != Z_OK)
        return err_set(err, ST_NO_MEMORY, "no memory to decompress a body");
    enum status status = grow(&inflater, err);
    if (status == ST_OK)
        status = inflate_all(&inflater, err);
    (void)inflateEnd(&inflater.stream);
    if (status != ST_OK) {
        free(inflater.memory);
        return status;
    }
    memset(output_of(&inflater) + inflater.size, 0, BODY_PADDING);
    *out_memory = inflater.memory;
    *out_body = (struct view){.data = output_of(&inflater), .size = inflater.size};
    return ST_OK;
}

enum status deflate_body(enum coding coding, int level, struct view bytes, struct buf *out,
                         struct err *err) {
    enum { MEMORY_LEVEL = 8 }; /* zlib's default: 256 KiB while it runs */
    z_stream stream = {.zalloc = zlib_alloc, .zfree = zlib_free};
    const size_t before = out->size;
    if (deflateInit2(&stream, level, Z_DEFLATED, coding == CODING_GZIP ? GZIP_WINDOW : WINDOW,
                     MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return err_set(err, ST_NO_MEMORY, "no memory to compress %zu bytes", bytes.size);
    int result = Z_OK;
    for (size_t used = 0; result == Z_OK;) {
        buf_reserve(out, 16384 + (bytes.size - used) / 4);
        if (out->failed)
            break;
        const unsigned in = portion(bytes.size - used), room = portion(out->capacity - out->size);
        stream.next_in = (Bytef *)(uintptr_t)(bytes.data + used);
        stream.avail_in = in;
        stream.next_out = (Bytef *)out->data + out->size;
        stream.avail_out = room;
        result = deflate(&stream, in == bytes.size - used ? Z_FINISH : Z_NO_FLUSH);
        used += in - stream.avail_in;
        out->size += room - stream.avail_out;
    }
    (void)deflateEnd(&stream);
    if (result == Z_STREAM_END)
        return ST_OK;
    out->size = before;
    return err_set(err, ST_NO_MEMORY, "no memory to compress %zu bytes", bytes.size);
}
