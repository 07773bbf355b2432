/* Splits texts for splitter_oracle.mjs:
 *     oracle_prep_split_texts PRE_TOKENIZER TEXTS OUT
 * PRE_TOKENIZER is that section of a tokenizer.json, TEXTS a sequence of (uint32 length, bytes),
 * OUT one of (uint32 pieces, and for each uint32 length, bytes), little endian. Prints 1 where the
 * splitter is byte-level. */
#include "prep/splitter.h"
#include "files.h"

/* Each byte comes from the character that it is in, as the tokenizer has it for a raw text. */
static struct source *sources_of(struct view text, struct arena *arena) {
    struct source *sources = arena_alloc(arena, (text.size + 1) * sizeof *sources);
    for (size_t at = 0; sources != NULL && at < text.size;) {
        uint32_t code;
        const size_t length = utf8_decode((const unsigned char *)text.data + at, &code);
        for (size_t i = 0; i < length; i++) {
            sources[at + i] = (struct source){(uint32_t)at, (uint32_t)(at + length)};
        }
        at += length;
    }
    return sources;
}

static void split(const struct splitter *splitter, struct view view, FILE *out) {
    struct arena arena;
    arena_init(&arena);
    struct span_text text = {.arena = &arena, .data = (unsigned char *)view.data,
                             .size = view.size, .has_sources = true};
    text.sources = sources_of(view, &arena);
    struct span_text rewritten = {.arena = &arena, .has_sources = true};
    struct piece_list whole = {.arena = &arena}, pieces = {.arena = &arena};
    const bool is_done =
        text.sources != NULL
        && (view.size == 0 || piece_list_push(&whole, 0, (uint32_t)view.size))
        && (splitter->run == NULL
            || splitter->run(splitter->self, &text, &whole, &rewritten, &pieces));
    if (!is_done) {
        fputs("no memory, or a pattern gave up\n", stderr);
        exit(2);
    }
    const struct piece_list *list = splitter->run == NULL ? &whole : &pieces;
    const unsigned char *data = splitter->rewrites ? rewritten.data : text.data;
    put_u32(out, list->count);
    for (size_t i = 0; i < list->count; i++) {
        put_u32(out, list->items[i].end - list->items[i].start);
        put_bytes(out, data + list->items[i].start, list->items[i].end - list->items[i].start);
    }
    arena_done(&arena);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s PRE_TOKENIZER TEXTS OUT\n", argv[0]);
        return 2;
    }
    const struct view section = read_whole(argv[1]), texts = read_whole(argv[2]);
    struct arena memory;
    arena_init(&memory);
    struct unicode_table *unicode = unicode_table_create();
    struct json_document *document;
    struct json_value root;
    struct splitter splitter;
    struct err err;
    bool is_byte_level;
    FILE *out = fopen(argv[3], "wb");
    if (unicode == NULL || out == NULL
        || dom_open(section, &document, &root, &err) != ST_OK
        || splitter_read(root, &memory, unicode, &splitter, &is_byte_level, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (size_t at = 0; at + sizeof(uint32_t) <= texts.size;) {
        uint32_t length;
        memcpy(&length, texts.data + at, sizeof length);
        at += sizeof length;
        split(&splitter, (struct view){texts.data + at, length}, out);
        at += length;
    }
    if (fclose(out) != 0) return 2;
    printf("%d\n", is_byte_level);
    if (splitter.done != NULL) splitter.done(splitter.self);
    dom_close(document);
    arena_done(&memory);
    unicode_table_free(unicode);
    free((char *)section.data);
    free((char *)texts.data);
    return 0;
}
