/* What model_file.c chooses from: each reads its own kind of model, as model_read says
 * (token_stages.h), and owns its file. object is the section "model" of a tokenizer.json. */
#ifndef TELLTALE_PREP_TOKEN_MODELS_H
#define TELLTALE_PREP_TOKEN_MODELS_H

#include "prep/token_stages.h"

MUST_CHECK enum status bpe_read(struct json_value object, struct arena *memory,
                                bool is_byte_level, struct token_model *out, struct err *err);
MUST_CHECK enum status unigram_read(struct json_value object, struct arena *memory,
                                    struct token_model *out, struct err *err);
MUST_CHECK enum status word_level_read(struct json_value object, struct arena *memory,
                                       bool is_byte_level, struct token_model *out,
                                       struct err *err);
MUST_CHECK enum status wordpiece_read(struct json_value object, struct arena *memory,
                                      struct token_model *out, struct err *err);

#endif
