/* The Unigram model of a tokenizer.json: [["token", score], ...], where a token's place is its id.
 * Load time, one thread. Invariant: there is an unknown token, so that every text has ids. Read
 * unigram.c next. */
#include "prep/tokenizer_read.h"
#include "prep/unigram.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char WHERE[] = "model";
static const double UNKNOWN_PENALTY = 10; /* below the worst token; SentencePiece's number */

/* serde_json, built as Hugging Face builds it, reads digits into a 64-bit integer and multiplies
 * or divides that by a power of ten: two roundings instead of one. The file's own digits are gone
 * here, but every writer in use gives the shortest that stand for the number. */
double unigram_score_as_read(double score) {
    char text[40];
    double back = 0;
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, score);
        back = strtod(text, NULL);
        if (back == score) {
            break;
        }
    }
    uint64_t number = 0;
    int exponent = 0;
    const char *at = text + (text[0] == '-');
    for (bool is_fraction = false; *at != 'e' && *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            is_fraction = true; /* the point, whatever the locale has for it */
            continue;
        }
        number = 10 * number + (uint64_t)(*at - '0');
        exponent -= is_fraction;
    }
    exponent += *at == 'e' ? (int)strtol(at + 1, NULL, 10) : 0;
    while (number != 0 && number % 10 == 0) { /* digits that the shortest form does not have */
        number /= 10;
        exponent++;
    }
    if (exponent < -300 || exponent > 0) {
        return score; /* a whole number, or nothing that a score is */
    }
    double value = (double)number / pow(10, -exponent);
    return text[0] == '-' ? -value : value;
}

struct score_reader {
    struct unigram *model;
    char *texts;
    size_t text_bytes;
    struct view piece;
    double score;
    int parts;
    double lowest;
    struct err *err;
};

static enum status read_part(void *context, struct view name, struct json_value value) {
    struct score_reader *reader = context;
    (void)name;
    if (reader->parts == 0 && dom_kind_of(value) == JSON_STRING) {
        reader->piece = dom_string(value);
    } else if (reader->parts != 1 || !dom_double(value, &reader->score)) {
        return ST_INVALID;
    }
    reader->parts++;
    return ST_OK;
}

static enum status read_pair(struct score_reader *reader, struct json_value value) {
    reader->parts = 0;
    if (dom_kind_of(value) != JSON_ARRAY || dom_each(value, read_part, reader) != ST_OK
        || reader->parts != 2) {
        return err_set(reader->err, ST_INVALID, "model: an entry of \"vocab\" must be "
                                                "[\"token\", score]");
    }
    return ST_OK;
}

static enum status measure_entry(void *context, struct view name, struct json_value value) {
    struct score_reader *reader = context;
    (void)name;
    enum status status = read_pair(reader, value);
    reader->text_bytes += reader->piece.size;
    return status;
}

static enum status read_entry(void *context, struct view name, struct json_value value) {
    struct score_reader *reader = context;
    struct unigram *model = reader->model;
    (void)name;
    enum status status = read_pair(reader, value);
    if (status != ST_OK) {
        return status;
    }
    memcpy(reader->texts, reader->piece.data, reader->piece.size);
    struct view text = {reader->texts, reader->piece.size};
    reader->texts += text.size;
    double score = unigram_score_as_read(reader->score);
    reader->lowest = score < reader->lowest ? score : reader->lowest;
    vocab_put(&model->vocab, text, model->count);
    uint32_t entry = vocab_entry_of(&model->vocab, text);
    model->scores[entry] = score;
    model->entries[model->count++] = entry;
    return ST_OK;
}

static bool build_trie(struct unigram *model) {
    struct trie_key *keys = calloc(model->vocab.count + 1, sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < model->vocab.count; i++) {
        keys[i] = (struct trie_key){.text = vocab_text(&model->vocab, i), .value = i};
    }
    size_t unique;
    bool is_built = trie_init(&model->trie, keys, model->vocab.count, &unique);
    free(keys);
    return is_built;
}

static enum status read_vocab(struct json_value object, struct arena *memory,
                              struct unigram *model, struct err *err) {
    struct json_value vocab;
    if (!dom_member(object, "vocab", &vocab) || dom_kind_of(vocab) != JSON_ARRAY) {
        return err_set(err, ST_INVALID, "model: \"vocab\" must be an array");
    }
    size_t count = dom_count(vocab);
    struct score_reader reader = {.model = model, .lowest = INFINITY, .err = err};
    enum status status = dom_each(vocab, measure_entry, &reader);
    if (status != ST_OK) {
        return status;
    }
    reader.texts = arena_alloc(memory, reader.text_bytes);
    model->scores = arena_array(memory, count, sizeof *model->scores);
    model->entries = arena_array(memory, count, sizeof *model->entries);
    if (reader.texts == NULL || model->scores == NULL || model->entries == NULL
        || !vocab_init(&model->vocab, count, memory)) {
        return err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %zu", count);
    }
    status = dom_each(vocab, read_entry, &reader);
    vocab_finish(&model->vocab);
    model->unknown_score = reader.lowest - UNKNOWN_PENALTY;
    return status;
}

static void find_byte_tokens(struct unigram *model) {
    static const char HEX[] = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; byte++) {
        char token[] = {'<', '0', 'x', HEX[byte >> 4], HEX[byte & 15], '>'};
        model->byte_tokens[byte] = vocab_find(&model->vocab, (struct view){token, sizeof token});
    }
}

static uint32_t unigram_find(const void *self, struct view token) {
    const struct unigram *model = self;
    return vocab_find(&model->vocab, token);
}

static struct view unigram_name(const void *self, uint32_t id) {
    const struct unigram *model = self;
    return id < model->count ? vocab_text(&model->vocab, model->entries[id])
                             : (struct view){NULL, 0};
}

static void unigram_done(void *self) {
    struct unigram *model = self;
    trie_done(&model->trie);
}

static enum status read_all(struct json_value object, struct arena *memory,
                            struct unigram *model, struct err *err) {
    static const char *const NAMES[] = {"type", "unk_id", "vocab", "byte_fallback", NULL};
    enum status status;
    if ((status = read_members(object, WHERE, NAMES, err)) != ST_OK
        || (!read_is_null(object, "byte_fallback")
            && (status = read_bool(object, WHERE, "byte_fallback", &model->falls_back_to_bytes,
                                   err)) != ST_OK)) {
        return status;
    }
    if (read_is_null(object, "unk_id")) {
        return err_set(err, ST_UNSUPPORTED,
                       "model: a Unigram model without \"unk_id\" is not supported: it has no "
                       "ids for unknown characters");
    }
    if ((status = read_u32(object, WHERE, "unk_id", &model->unknown_id, err)) != ST_OK
        || (status = read_vocab(object, memory, model, err)) != ST_OK) {
        return status;
    }
    if (model->unknown_id >= model->count) {
        return err_set(err, ST_INVALID, "model: \"unk_id\" is %u, the vocabulary has %u entries",
                       model->unknown_id, model->count);
    }
    find_byte_tokens(model);
    return build_trie(model) ? ST_OK
                             : err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %u",
                                       model->vocab.count);
}

enum status unigram_read(struct json_value object, struct arena *memory, struct token_model *out,
                         struct err *err) {
    struct unigram *model = arena_zalloc(memory, sizeof *model);
    if (model == NULL) {
        return err_set(err, ST_NO_MEMORY, "no memory for the model");
    }
    enum status status = read_all(object, memory, model, err);
    if (status == ST_OK) {
        *out = (struct token_model){
            .encode = unigram_encode,
            .find = unigram_find,
            .name = unigram_name,
            .vocab_size = model->count,
            .self = model,
            .done = unigram_done,
        };
    }
    return status;
}
