/* A model that takes text: what clients see of it, and how a text becomes its tensors. */
#ifndef TELLTALE_ENGINE_TEXT_MODEL_H
#define TELLTALE_ENGINE_TEXT_MODEL_H

#include "engine/engine.h"
#include "prep/classify.h"
#include "prep/tokenizer.h"

enum text_feed { FEED_IDS, FEED_MASK, FEED_TYPES, FEED_COUNT };

struct text_model {
    struct tokenizer *tokenizer;
    uint32_t max_tokens;
    enum text_feed feeds[MODEL_MAX_IO]; /* what each model input is fed with */
    struct labels labels;               /* count 0: none */
    uint32_t logits;                    /* index of the output that label and score come from */
};

/* Which input is fed with what: input_ids, attention_mask, token_type_ids (any subset that holds
 * the ids), INT64 or INT32, (batch, sequence). False, with the reason in err, when the model's
 * inputs are not that. */
bool text_model_feeds(const struct signature *signature, enum text_feed *out_feeds,
                      struct err *err);
/* Index of an FP32 output (batch, labels) that fits the number of labels; -1: none. */
int text_model_logits(const struct signature *signature, size_t label_count);

/* The TEXT input (rows texts) to the model's inputs (rows, longest), all in arena. Sets
 * *out_length to the longest and *out_tokens to the sum of the real lengths. */
MUST_CHECK enum status text_model_encode(const struct text_model *text,
                                         const struct signature *signature,
                                         const struct tensor *input, struct arena *arena,
                                         struct tensor **out_inputs, uint32_t *out_length,
                                         uint32_t *out_tokens, struct err *err);
/* label (BYTES, rows) and score (FP32, rows) from logits (FP32, (rows, labels)). */
MUST_CHECK enum status text_model_label(const struct text_model *text, const struct tensor *logits,
                                        struct arena *arena, struct tensor *out_label,
                                        struct tensor *out_score);

#endif
