/* EXIF, of which only the orientation matters. Pure. Invariant: whatever the offsets in the data
 * say, nothing outside it is read, and every tag is looked at once at most. */
#include "prep/image_formats.h"

enum { TAG_ORIENTATION = 0x112, ENTRY_BYTES = 12, TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4 };

struct tiff {
    const unsigned char *data;
    size_t size;
    bool is_big_endian;
};

static unsigned byte_at(const struct tiff *tiff, size_t at) { return tiff->data[at]; }

static unsigned short_at(const struct tiff *tiff, size_t at) {
    const unsigned a = byte_at(tiff, at), b = byte_at(tiff, at + 1);
    return tiff->is_big_endian ? a << 8 | b : b << 8 | a;
}

static uint32_t long_at(const struct tiff *tiff, size_t at) {
    const uint32_t a = short_at(tiff, at), b = short_at(tiff, at + 2);
    return tiff->is_big_endian ? a << 16 | b : b << 16 | a;
}

static uint32_t value_at(const struct tiff *tiff, size_t entry) {
    switch (short_at(tiff, entry + 2)) {
    case TYPE_BYTE: return byte_at(tiff, entry + 8);
    case TYPE_SHORT: return short_at(tiff, entry + 8);
    case TYPE_LONG: return long_at(tiff, entry + 8);
    default: return 1;
    }
}

unsigned exif_orientation(struct view exif) {
    if (exif.size >= 6 && memcmp(exif.data, "Exif\0", 6) == 0) {
        exif.data += 6;
        exif.size -= 6;
    }
    struct tiff tiff = {.data = (const unsigned char *)exif.data, .size = exif.size};
    if (tiff.size < 8) {
        return 1;
    }
    tiff.is_big_endian = memcmp(tiff.data, "MM\0*", 4) == 0;
    if (!tiff.is_big_endian && memcmp(tiff.data, "II*\0", 4) != 0) {
        return 1;
    }
    const size_t first = long_at(&tiff, 4);
    if (first > tiff.size - 2) {
        return 1;
    }
    const size_t room = (tiff.size - first - 2) / ENTRY_BYTES;
    const size_t claimed = short_at(&tiff, first);
    for (size_t i = 0; i < (claimed < room ? claimed : room); i++) {
        const size_t entry = first + 2 + i * ENTRY_BYTES;
        if (short_at(&tiff, entry) == TAG_ORIENTATION) {
            const uint32_t value = value_at(&tiff, entry);
            return value >= 1 && value <= 8 ? value : 1;
        }
    }
    return 1;
}
