/* Any bytes as a tokenizer.json; what is accepted must encode a text with everything in it. */
#include "prep/tokenizer.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tokenizer *tokenizer = NULL;
    struct err err;
    if (tokenizer_parse((struct view){(const char *)data, size}, "fuzz", &tokenizer, &err)
        != ST_OK) {
        return 0;
    }
    struct arena arena;
    arena_init(&arena);
    static const uint32_t LIMITS[] = {0, 1, 3};
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        struct encoding encoding;
        if (tokenizer_encode(tokenizer,
                             view_of("Hello, [MASK] un\xc3\xa9" "believable  \xe4\xb8\xad "
                                     "e\xcc\x81\xe3\x80\xae \xff x [SEP]y a_b"),
                             &(struct encode_options){.max_tokens = LIMITS[i]}, &arena,
                             &encoding, NULL) == ST_OK
            && LIMITS[i] > 0 && encoding.count > LIMITS[i]) {
            abort();
        }
    }
    arena_done(&arena);
    tokenizer_free(tokenizer);
    return 0;
}
