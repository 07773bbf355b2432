/* The walk over an ONNX file: protobuf fields by their numbers in onnx.proto, entered only where
 * tensors can lie, skipped by their length elsewhere.
 *
 * Any thread; no allocation. Invariant: no byte is read past the span it belongs to, each span is
 * walked at most twice, and depth is bounded, so that any bytes take linear time. */
#include "infer/weights.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 }; /* messages within messages; a subgraph takes three */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { TYPE_FLOAT = 1, TYPE_BFLOAT16 = 16 }; /* TensorProto.DataType */
enum { LOCATION_EXTERNAL = 1 };

struct field {
    uint32_t number;
    enum wire wire;
    uint64_t value;     /* WIRE_VARINT */
    struct view bytes;  /* the others: what they hold */
};

static bool read_varint(struct view *from, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < from->size; i++) {
        const unsigned char byte = (unsigned char)from->data[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            from->data += i + 1;
            from->size -= i + 1;
            *out = value;
            return true;
        }
    }
    return false;
}

/* The next field of a message; false: malformed. */
static bool read_field(struct view *from, struct field *out) {
    uint64_t key = 0;
    if (!read_varint(from, &key)) {
        return false;
    }
    *out = (struct field){.number = (uint32_t)(key >> 3), .wire = (enum wire)(key & 7)};
    uint64_t size = 0;
    switch (out->wire) {
    case WIRE_VARINT: return read_varint(from, &out->value);
    case WIRE_64: size = 8; break;
    case WIRE_32: size = 4; break;
    case WIRE_BYTES:
        if (!read_varint(from, &size)) {
            return false;
        }
        break;
    default: return false; /* groups: never in onnx.proto */
    }
    if (size > from->size) {
        return false;
    }
    out->bytes = (struct view){.data = from->data, .size = (size_t)size};
    from->data += size;
    from->size -= (size_t)size;
    return true;
}

/* ---- counting ---- */

/* The inner loop has a constant length and no branch, so that compilers make vectors of it; bits
 * without the sign are compared as signed numbers, which SSE2 can. */
static uint64_t subnormal_floats(struct view bytes) {
    enum { BLOCK = 1024 };
    uint32_t block[BLOCK];
    uint64_t found = 0;
    for (size_t at = 0; at + 4 <= bytes.size; at += sizeof block) {
        const size_t left = bytes.size - at;
        if (left < sizeof block) {
            memset(block, 0, sizeof block);
        }
        memcpy(block, bytes.data + at, left < sizeof block ? left & ~(size_t)3 : sizeof block);
        uint32_t here = 0;
        for (unsigned i = 0; i < BLOCK; i++) {
            const int32_t size = (int32_t)(block[i] & 0x7fffffff);
            here += (uint32_t)(size > 0) & (uint32_t)(size < 0x00800000);
        }
        found += here;
    }
    return found;
}

/* Exponents are those of FLOAT, so that one is subnormal where the other is. */
static uint64_t subnormal_bfloats(struct view bytes) {
    uint64_t found = 0;
    for (size_t at = 0; at + 2 <= bytes.size; at += 2) {
        uint16_t bits;
        memcpy(&bits, bytes.data + at, sizeof bits);
        bits &= 0x7fff;
        found += (uint64_t)(bits > 0) & (uint64_t)(bits < 0x0080);
    }
    return found;
}

/* BFLOAT16 without raw_data: one a varint, packed. */
static bool count_int32_data(struct view packed, struct weights *out) {
    while (packed.size > 0) {
        uint64_t value = 0;
        if (!read_varint(&packed, &value)) {
            return false;
        }
        out->values++;
        out->subnormal += (value & 0x7fff) > 0 && (value & 0x7fff) < 0x0080;
    }
    return true;
}

static bool count_data(struct view tensor, uint64_t type, struct weights *out) {
    enum { FLOAT_DATA = 4, INT32_DATA = 5, RAW_DATA = 9 };
    struct field field;
    while (tensor.size > 0) {
        if (!read_field(&tensor, &field)) {
            return false;
        }
        if (field.number == INT32_DATA && type == TYPE_BFLOAT16 && field.wire == WIRE_BYTES &&
            !count_int32_data(field.bytes, out)) {
            return false;
        }
        const bool is_data = field.number == RAW_DATA ||
                             (field.number == FLOAT_DATA && type == TYPE_FLOAT);
        if (!is_data || field.wire == WIRE_VARINT) {
            continue;
        }
        out->values += field.bytes.size / (type == TYPE_FLOAT ? 4 : 2);
        out->subnormal += type == TYPE_FLOAT ? subnormal_floats(field.bytes)
                                             : subnormal_bfloats(field.bytes);
    }
    return true;
}

/* Its type may stand behind its data: fields come in any order. */
static bool count_tensor(struct view tensor, struct weights *out) {
    enum { DATA_TYPE = 2, DATA_LOCATION = 14 };
    uint64_t type = 0, location = 0;
    struct field field;
    for (struct view rest = tensor; rest.size > 0;) {
        if (!read_field(&rest, &field)) {
            return false;
        }
        if (field.number == DATA_TYPE && field.wire == WIRE_VARINT) {
            type = field.value;
        } else if (field.number == DATA_LOCATION && field.wire == WIRE_VARINT) {
            location = field.value;
        }
    }
    if (location == LOCATION_EXTERNAL) {
        out->external++;
        return true;
    }
    return (type != TYPE_FLOAT && type != TYPE_BFLOAT16) || count_data(tensor, type, out);
}

/* ---- where tensors lie ---- */

enum message { MODEL, FUNCTION, GRAPH, NODE, ATTRIBUTE, SPARSE_TENSOR, TENSOR, MESSAGE_COUNT };

/* Which fields of which message lead on. */
static const struct {
    enum message in;
    uint32_t number;
    enum message holds;
} PATHS[] = {
    {MODEL, 7, GRAPH},         {MODEL, 25, FUNCTION},
    {FUNCTION, 7, NODE},       {GRAPH, 1, NODE},
    {GRAPH, 5, TENSOR},        {GRAPH, 15, SPARSE_TENSOR},
    {NODE, 5, ATTRIBUTE},      {ATTRIBUTE, 5, TENSOR},
    {ATTRIBUTE, 6, GRAPH},     {ATTRIBUTE, 10, TENSOR},
    {ATTRIBUTE, 11, GRAPH},    {ATTRIBUTE, 22, SPARSE_TENSOR},
    {ATTRIBUTE, 23, SPARSE_TENSOR},
    {SPARSE_TENSOR, 1, TENSOR},
};

static enum message path_of(enum message in, const struct field *field) {
    for (size_t i = 0; field->wire == WIRE_BYTES && i < sizeof PATHS / sizeof *PATHS; i++) {
        if (PATHS[i].in == in && PATHS[i].number == field->number) {
            return PATHS[i].holds;
        }
    }
    return MESSAGE_COUNT;
}

static bool walk(enum message message, struct view bytes, struct weights *out) {
    struct { enum message message; struct view rest; } stack[DEPTH_MAX];
    unsigned depth = 1;
    stack[0].message = message;
    stack[0].rest = bytes;
    while (depth > 0) {
        const enum message in = stack[depth - 1].message;
        struct view *rest = &stack[depth - 1].rest;
        struct field field;
        if (rest->size == 0) {
            depth--;
            continue;
        }
        if (!read_field(rest, &field)) {
            return false;
        }
        const enum message holds = path_of(in, &field);
        if (holds == TENSOR && !count_tensor(field.bytes, out)) {
            return false;
        }
        if (holds == TENSOR || holds == MESSAGE_COUNT) {
            continue;
        }
        if (depth == DEPTH_MAX) {
            return false;
        }
        stack[depth].message = holds;
        stack[depth++].rest = field.bytes;
    }
    return true;
}

struct weights weights_of(struct view model) {
    struct weights found = {.is_known = true};
    return model.size > 0 && walk(MODEL, model, &found) ? found : (struct weights){0};
}

struct weights weights_of_file(const char *path) {
    struct weights found = {0};
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return found;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        const size_t size = (size_t)info.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            (void)madvise(bytes, size, MADV_SEQUENTIAL);
            found = weights_of((struct view){.data = bytes, .size = size});
            (void)munmap(bytes, size);
        }
    }
    (void)close(fd);
    return found;
}

/* ---- what is said ---- */

bool weights_may_be_slow(const struct weights *weights) {
    return weights->subnormal > 0 && weights->subnormal >= weights->values / 100000;
}

/* 1234567 gives "1,234,567". */
static void grouped(uint64_t value, char out[32]) {
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            out[used++] = ',';
        }
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

char *weights_warning(const struct weights *weights, const char *model, char *out,
                      size_t out_size) {
    char subnormal[32], values[32];
    grouped(weights->subnormal, subnormal);
    grouped(weights->values, values);
    (void)snprintf(out, out_size,
                   "model %s: %s of %s weights are subnormal: on a CPU they cost nothing or up to "
                   "26 times the time, by how often a layer uses them; try --denormal-as-zero",
                   model, subnormal, values);
    return out;
}
