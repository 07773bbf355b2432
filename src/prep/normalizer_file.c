/* The normalizer section of a tokenizer.json. Load time, one thread. Invariant: a kind or a member
 * that is not known is refused by name. */
#include "prep/bert.h"
#include "prep/tokenizer_read.h"

enum status normalizer_read(struct json_value value, struct arena *memory,
                            const struct unicode_table *unicode, struct normalizer *out,
                            struct err *err) {
    struct view type;
    if (dom_kind_of(value) == JSON_NULL) {
        *out = (struct normalizer){.run = NULL};
        return ST_OK;
    }
    const enum status status = read_type(value, "normalizer", &type, err);
    if (status != ST_OK) return status;
    if (view_is(type, "BertNormalizer")) {
        return bert_normalizer_read(value, memory, unicode, out, err);
    }
    return err_set(err, ST_UNSUPPORTED, "normalizer \"%.*s\" is not supported (BertNormalizer is)",
                   VIEW_SHORT(type));
}
