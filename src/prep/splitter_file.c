/* The pre_tokenizer section of a tokenizer.json. Load time, one thread. Invariant: a kind or a
 * member that is not known is refused by name. */
#include "prep/bert.h"
#include "prep/tokenizer_read.h"

enum status splitter_read(struct json_value value, struct arena *memory,
                          const struct unicode_table *unicode, struct splitter *out,
                          bool *out_is_byte_level, struct err *err) {
    static const char *const NAMES[] = {"type", NULL};
    struct view type;
    *out_is_byte_level = false;
    if (dom_kind_of(value) == JSON_NULL) {
        *out = (struct splitter){.run = NULL};
        return ST_OK;
    }
    enum status status = read_type(value, "pre_tokenizer", &type, err);
    if (status != ST_OK) return status;
    if (!view_is(type, "BertPreTokenizer")) {
        return err_set(err, ST_UNSUPPORTED,
                       "pre_tokenizer \"%.*s\" is not supported (BertPreTokenizer is)",
                       VIEW_SHORT(type));
    }
    if ((status = read_members(value, "pre_tokenizer", NAMES, err)) != ST_OK) return status;
    return bert_splitter_make(memory, unicode, out)
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for the pre_tokenizer");
}
