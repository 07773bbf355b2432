/* Vocabularies as hash tables, and GPT-2's alphabet for bytes. Built at load by one thread, looked
 * up by any. Invariant: the tables are never more than half full, so a search always ends at a
 * free slot. Read bpe.h for the use that matters most. */
#include "prep/vocab.h"
#include "prep/tokenizer_read.h"
#include "prep/unicode_table.h"

enum { FIRST_MADE_UP_LETTER = 0x100, MADE_UP_LETTERS = 68 };

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t product = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return product ^ product >> 32;
}

static uint32_t hash_text(struct view text) {
    uint64_t hash = text.size * UINT64_C(0xff51afd7ed558ccd);
    while (text.size >= sizeof(uint64_t)) {
        uint64_t eight;
        memcpy(&eight, text.data, sizeof eight);
        hash = mix(hash, eight);
        text.data += sizeof eight;
        text.size -= sizeof eight;
    }
    if (text.size > 0) {
        uint64_t rest = 0;
        memcpy(&rest, text.data, text.size);
        hash = mix(hash, rest);
    }
    return (uint32_t)(hash ^ hash >> 17);
}

static uint32_t hash_id(uint32_t id) { return (uint32_t)mix(id, UINT64_C(0xc4ceb9fe1a85ec53)); }

bool vocab_init(struct vocab *out, size_t capacity, struct arena *memory) {
    size_t slots = 16;
    while (slots < 2 * capacity) {
        slots *= 2;
    }
    if (slots > UINT32_MAX) {
        return false;
    }
    struct vocab vocab = {
        .entries = arena_array(memory, capacity + 1, sizeof *vocab.entries),
        .by_text = arena_array(memory, slots, sizeof *vocab.by_text),
        .by_id = arena_array(memory, slots, sizeof *vocab.by_id),
        .mask = (uint32_t)(slots - 1),
    };
    if (vocab.entries == NULL || vocab.by_text == NULL || vocab.by_id == NULL) {
        return false;
    }
    *out = vocab;
    return true;
}

struct view vocab_text(const struct vocab *vocab, uint32_t entry) {
    return (struct view){vocab->entries[entry].data, vocab->entries[entry].size};
}

/* The slot of text, or the free one where it belongs. */
static struct vocab_slot *slot_of(const struct vocab *vocab, struct view text, uint32_t hash) {
    for (uint32_t at = hash & vocab->mask;; at = (at + 1) & vocab->mask) {
        struct vocab_slot *slot = &vocab->by_text[at];
        if (slot->entry == 0
            || (slot->hash == hash && view_eq(vocab_text(vocab, slot->entry - 1), text))) {
            return slot;
        }
    }
}

void vocab_put(struct vocab *vocab, struct view text, uint32_t id) {
    uint32_t hash = hash_text(text);
    struct vocab_slot *slot = slot_of(vocab, text, hash);
    if (slot->entry == 0) {
        vocab->entries[vocab->count] = (struct vocab_entry){text.data, (uint32_t)text.size, id};
        *slot = (struct vocab_slot){.hash = hash, .entry = ++vocab->count};
    }
    vocab->entries[slot->entry - 1].id = id;
}

/* Ids are entered when all are known, since a string that comes twice changes its own. */
void vocab_finish(struct vocab *vocab) {
    for (uint32_t i = 0; i < vocab->count; i++) {
        uint32_t id = vocab->entries[i].id;
        uint32_t at = hash_id(id) & vocab->mask;
        while (vocab->by_id[at] != 0 && vocab->entries[vocab->by_id[at] - 1].id != id) {
            at = (at + 1) & vocab->mask;
        }
        vocab->shares_ids = vocab->shares_ids || vocab->by_id[at] != 0;
        vocab->has_empty = vocab->has_empty || vocab->entries[i].size == 0;
        vocab->by_id[at] = i + 1;
    }
}

uint32_t vocab_entry_of(const struct vocab *vocab, struct view text) {
    return slot_of(vocab, text, hash_text(text))->entry - 1; /* 0 - 1 is TRIE_NONE */
}

uint32_t vocab_find(const struct vocab *vocab, struct view text) {
    uint32_t entry = vocab_entry_of(vocab, text);
    return entry == TRIE_NONE ? TRIE_NONE : vocab->entries[entry].id;
}

struct view vocab_name(const struct vocab *vocab, uint32_t id) {
    uint32_t at = hash_id(id) & vocab->mask;
    while (vocab->by_id[at] != 0) {
        const struct vocab_entry *entry = &vocab->entries[vocab->by_id[at] - 1];
        if (entry->id == id) {
            return (struct view){entry->data, entry->size};
        }
        at = (at + 1) & vocab->mask;
    }
    return (struct view){NULL, 0};
}

struct vocab_reader {
    struct vocab *vocab;
    size_t text_bytes; /* of all strings together */
    char *texts;
    struct err *err;
};

static enum status measure_entry(void *context, struct view name, struct json_value value) {
    struct vocab_reader *reader = context;
    (void)value;
    reader->text_bytes += name.size;
    return ST_OK;
}

static enum status read_entry(void *context, struct view name, struct json_value value) {
    struct vocab_reader *reader = context;
    uint32_t id;
    if (!dom_u32(value, &id) || id == TRIE_NONE) {
        return err_set(reader->err, ST_INVALID,
                       "model: the id of \"%.*s\" must be a whole number below 2^32 - 1",
                       VIEW_SHORT(name));
    }
    memcpy(reader->texts, name.data, name.size);
    vocab_put(reader->vocab, (struct view){reader->texts, name.size}, id);
    reader->texts += name.size;
    return ST_OK;
}

enum status vocab_read(struct json_value model, struct arena *memory, struct vocab *out,
                       struct err *err) {
    struct json_value object;
    if (!dom_member(model, "vocab", &object) || dom_kind_of(object) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "model: \"vocab\" must be an object");
    }
    struct vocab_reader reader = {.vocab = out, .err = err};
    size_t count = dom_count(object);
    enum status status = dom_each(object, measure_entry, &reader);
    reader.texts = arena_alloc(memory, reader.text_bytes);
    if (status != ST_OK || reader.texts == NULL || !vocab_init(out, count, memory)) {
        return err_set(err, ST_NO_MEMORY, "no memory for a vocabulary of %zu", count);
    }
    status = dom_each(object, read_entry, &reader);
    if (status == ST_OK) {
        vocab_finish(out);
    }
    return status;
}

bool vocab_to_bytes(const struct vocab *vocab, struct arena *memory, struct vocab *out) {
    size_t total = 0;
    for (uint32_t i = 0; i < vocab->count; i++) {
        total += vocab->entries[i].size;
    }
    char *bytes = arena_alloc(memory, total);
    if (bytes == NULL || !vocab_init(out, vocab->count, memory)) {
        return false;
    }
    for (uint32_t i = 0; i < vocab->count; i++) {
        size_t size;
        if (letters_to_bytes(vocab_text(vocab, i), bytes, &size)) {
            vocab_put(out, (struct view){bytes, size}, vocab->entries[i].id);
            bytes += size;
        }
    }
    vocab_finish(out);
    return true;
}

static bool stands_for_itself(uint32_t code) {
    return (code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xff && code != 0xad);
}

uint32_t byte_to_letter(uint8_t byte) {
    if (stands_for_itself(byte)) {
        return byte;
    }
    uint32_t before = 0; /* made-up letters are given out in the order of their bytes */
    for (uint32_t other = 0; other < byte; other++) {
        before += !stands_for_itself(other);
    }
    return FIRST_MADE_UP_LETTER + before;
}

int letter_to_byte(uint32_t code_point) {
    if (code_point < FIRST_MADE_UP_LETTER) {
        return stands_for_itself(code_point) ? (int)code_point : -1;
    }
    uint32_t order = code_point - FIRST_MADE_UP_LETTER;
    if (order >= MADE_UP_LETTERS) {
        return -1;
    }
    /* Bytes 0 to 0x20, 0x7f to 0xa0 and 0xad, in this order. */
    return order <= 0x20 ? (int)order : order < 0x43 ? (int)(order - 0x21 + 0x7f) : 0xad;
}

bool letters_to_bytes(struct view text, char *out, size_t *out_size) {
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.size;
    size_t size = 0;
    while (at < end) {
        uint32_t code;
        at += utf8_decode(at, &code);
        int byte = letter_to_byte(code);
        if (byte < 0) {
            return false;
        }
        out[size++] = (char)byte;
    }
    *out_size = size;
    return true;
}
