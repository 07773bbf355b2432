/* A picture as clients send it (image_unwrap of image.h): bytes, base64, or a data: URL. Pure but
 * for scratch. Invariant: bytes that begin as a picture does are taken as they are; no base64
 * begins like that. */
#include "prep/base64.h"
#include "prep/image_formats.h"
#include <strings.h>

enum { MAX_URL_HEAD = 200 }; /* "data:", type, parameters: the comma must come by then */

/* Moves behind "data:...;base64,". */
static enum status skip_url_head(struct view *text, struct err *err) {
    if (text->size < 5 || strncasecmp(text->data, "data:", 5) != 0) {
        return ST_OK;
    }
    const size_t reach = text->size < MAX_URL_HEAD ? text->size : MAX_URL_HEAD;
    const char *comma = memchr(text->data, ',', reach);
    if (comma == NULL) {
        return err_set(err, ST_INVALID, "the picture's data: URL has no comma within its first %zu "
                       "characters", reach);
    }
    const size_t head = (size_t)(comma - text->data);
    if (head < 12 || strncasecmp(comma - 7, ";base64", 7) != 0) {
        return err_set(err, ST_INVALID, "the picture's data: URL is not in base64: \";base64\" must "
                       "stand before the comma");
    }
    text->data += head + 1;
    text->size -= head + 1;
    return ST_OK;
}

static enum status refuse_text(struct view sent, struct view text, size_t bad, struct err *err) {
    const size_t skipped = sent.size - text.size;
    /* 16: binary files have shown by then that they are none */
    const char *name = skipped == 0 && bad < 16 ? image_other_name(sent) : NULL;
    if (name != NULL) {
        return err_set(err, ST_INVALID, "the picture looks like %s: send a JPEG, PNG or WebP", name);
    }
    if (bad == text.size) {
        return err_set(err, ST_INVALID, "the picture's base64 is cut short: %zu characters leave a "
                       "piece over", text.size);
    }
    return err_set(err, ST_INVALID, "the picture is neither a JPEG, PNG or WebP nor base64: "
                   "character %zu of %zu is 0x%02x", skipped + bad + 1, sent.size,
                   (unsigned char)text.data[bad]);
}

enum status image_unwrap(struct view sent, struct scratch *scratch, struct view *out_file,
                         bool *out_was_base64, struct err *err) {
    struct view text = sent, file = sent;
    const bool is_base64 = !image_is_known(sent) && sent.size > 0;
    if (is_base64) {
        const enum status status = skip_url_head(&text, err);
        if (status != ST_OK) {
            return status;
        }
        unsigned char *bytes = scratch_get(scratch, SCRATCH_BASE64, base64_room(text.size));
        if (bytes == NULL) {
            return err_set(err, ST_NO_MEMORY, "no memory for a picture of %zu characters",
                           text.size);
        }
        size_t size, bad;
        if (!base64_decode(text, bytes, &size, &bad)) {
            return refuse_text(sent, text, bad, err);
        }
        file = (struct view){(const char *)bytes, size};
    }
    *out_file = file;
    if (out_was_base64 != NULL) {
        *out_was_base64 = is_base64;
    }
    return ST_OK;
}
