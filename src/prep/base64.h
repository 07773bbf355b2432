/* Base64 to bytes: the standard alphabet or the one for URLs, padded or not, line ends anywhere;
 * and bytes to base64, for clients. Pure. */
#ifndef TELLTALE_PREP_BASE64_H
#define TELLTALE_PREP_BASE64_H

#include "base/view.h"
#include <stdint.h>

/* Bytes of out that any text of that size may need. */
size_t base64_room(size_t text_size);
/* True: out has *out_size bytes. False: text stops being base64 at *out_bad (its size: a character
 * is missing at the end). out does not overlap text. */
bool base64_decode(struct view text, unsigned char *out, size_t *out_size, size_t *out_bad);

/* Characters that size bytes become. */
size_t base64_encoded_size(size_t size);
/* The standard alphabet, padded, no line ends, not terminated: base64_encoded_size characters. */
void base64_encode(struct view bytes, char *out);

#endif
