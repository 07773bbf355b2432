/* Normalizes texts for normalizer_oracle.mjs:
 *     oracle_prep_normalize_texts FILE TEXTS OUT
 * FILE is a tokenizer.json of which only the normalizer is read, TEXTS a sequence of (uint32
 * length, bytes), OUT of (uint32 length, bytes, and for every code point uint32 start and end in
 * bytes of the text as it was given). Each text is normalized without sources too; what differs
 * between the two ends the program with 1. One thread. */
#include "prep/normalizer.h"
#include "files.h"

static void run(const struct normalizer *normalizer, const struct span_text *in,
                struct span_text *out) {
    const bool is_done = normalizer->run != NULL ? normalizer->run(normalizer->self, in, out)
                                                 : span_text_copy(out, in, 0, in->size);
    if (!is_done) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
}

static void normalize(const struct normalizer *normalizer, struct view text, FILE *out) {
    struct arena arena;
    arena_init(&arena);
    struct span_text in = {.arena = &arena, .has_sources = true};
    for (size_t at = 0, length; at < text.size; at += length) {
        uint32_t code;
        length = utf8_decode((const unsigned char *)text.data + at, &code);
        if (!span_text_put(&in, code, (struct source){(uint32_t)at, (uint32_t)(at + length)})) {
            exit(2);
        }
    }
    struct span_text with = {.arena = &arena, .has_sources = true}, without = {.arena = &arena};
    run(normalizer, &in, &with);
    in.has_sources = false;
    in.sources = NULL;
    run(normalizer, &in, &without);
    if (with.size != without.size
        || (with.size > 0 && memcmp(with.data, without.data, with.size) != 0)) {
        fprintf(stderr, "the two ways differ for \"%.*s\"\n", VIEW_ARGS(text));
        exit(1);
    }
    put_u32(out, (uint32_t)with.size);
    if (with.size > 0) (void)fwrite(with.data, 1, with.size, out);
    for (size_t at = 0; at < with.size;) {
        uint32_t code;
        const size_t length = utf8_decode(with.data + at, &code);
        put_u32(out, with.sources[at].start);
        put_u32(out, with.sources[at + length - 1].end);
        at += length;
    }
    arena_done(&arena);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s FILE TEXTS OUT\n", argv[0]);
        return 2;
    }
    struct arena memory;
    arena_init(&memory);
    struct unicode_table *unicode = unicode_table_create();
    struct json_document *document;
    struct json_value root, value = {NULL, 0};
    struct normalizer normalizer;
    struct err err;
    const struct view file = read_whole(argv[1]);
    if (unicode == NULL || dom_open(file, &document, &root, &err) != ST_OK) return 2;
    (void)dom_member(root, "normalizer", &value);
    if (normalizer_read(value, &memory, unicode, &normalizer, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    const struct view texts = read_whole(argv[2]);
    FILE *out = fopen(argv[3], "wb");
    if (out == NULL) return 2;
    for (size_t at = 0; at + sizeof(uint32_t) <= texts.size;) {
        uint32_t length;
        memcpy(&length, texts.data + at, sizeof length);
        at += sizeof length;
        normalize(&normalizer, (struct view){texts.data + at, length}, out);
        at += length;
    }
    const int failed = fclose(out);
    if (normalizer.done != NULL) normalizer.done(normalizer.self);
    dom_close(document);
    unicode_table_free(unicode);
    arena_done(&memory);
    free((char *)file.data);
    free((char *)texts.data);
    return failed != 0 ? 2 : 0;
}
