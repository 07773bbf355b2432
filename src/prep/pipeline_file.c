/* pipeline.yaml to a struct pipeline_file. Load time, one thread. Invariant: what this file does
 * not understand it refuses, with file, line and key; nothing is guessed and nothing passed over.
 * libyaml reads the text, pipeline_keys.c knows the keys; here is the walk. */
#include "prep/pipeline_keys.h"

#include "base/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

enum { FILE_BYTES_MAX = 1 << 20, DEPTH_MAX = 8 };

struct reader {
    const char *path;
    struct arena *arena;
    yaml_document_t document;
    struct pipeline_file *out;
    struct err *err;
};

/* "FILE:LINE: " before the sentence. */
__attribute__((format(printf, 4, 5)))
static enum status refuse(const struct reader *reader, size_t line, enum status status,
                          const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(reader->err, status, "%s:%zu: %s", reader->path, line, text);
}

static size_t line_of(const yaml_node_t *node) { return node->start_mark.line + 1; }

static const yaml_node_t *node_at(struct reader *reader, int index) {
    return yaml_document_get_node(&reader->document, index);
}

/* A scalar's text in the arena. label stands in errors: "image.fit". */
static enum status scalar_text(const struct reader *reader, const yaml_node_t *node,
                               const char *label, const char **out) {
    if (node->type != YAML_SCALAR_NODE)
        return refuse(reader, line_of(node), ST_INVALID, "%s: one value is expected here, not a %s",
                      label, node->type == YAML_MAPPING_NODE ? "mapping" : "list");
    const char *text = (const char *)node->data.scalar.value;
    const size_t size = node->data.scalar.length;
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        (size == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
        return refuse(reader, line_of(node), ST_INVALID, "%s has no value", label);
    if (memchr(text, '\0', size) != NULL)
        return refuse(reader, line_of(node), ST_INVALID, "%s holds a zero byte", label);
    *out = arena_copy(reader->arena, (struct view){text, size});
    return *out != NULL ? ST_OK : err_set(reader->err, ST_NO_MEMORY, "%s: no memory", reader->path);
}

/* file relative to the pipeline file's directory. */
static const char *beside(const struct reader *reader, const char *file) {
    const char *slash = strrchr(reader->path, '/');
    if (file[0] == '/' || slash == NULL) return file;
    const size_t directory = (size_t)(slash - reader->path) + 1, size = strlen(file);
    char *joined = arena_alloc(reader->arena, directory + size + 1);
    if (joined == NULL) return NULL;
    memcpy(joined, reader->path, directory);
    memcpy(joined + directory, file, size + 1);
    return joined;
}

/* ---- one section: the mapping under "image:" and the like ---- */

static enum status set_value(struct reader *reader, const struct pipeline_key_spec *key,
                             const char *label, const yaml_node_t *node, bool is_in_list,
                             size_t index, void *target) {
    const char *text = NULL;
    struct err reason;
    enum status status = scalar_text(reader, node, label, &text);
    if (status != ST_OK) return status;
    if (key->kind == VALUE_FILE && (text = beside(reader, text)) == NULL)
        return err_set(reader->err, ST_NO_MEMORY, "%s: no memory", reader->path);
    status = pipeline_key_set(key, target, text, is_in_list, index, &reason);
    if (status != ST_OK)
        return refuse(reader, line_of(node), status, "%s: %s", label, reason.text);
    return ST_OK;
}

static enum status set_key(struct reader *reader, const struct pipeline_key_spec *key,
                           const char *label, const yaml_node_t *value, void *target) {
    if (value->type != YAML_SEQUENCE_NODE)
        return set_value(reader, key, label, value, false, 0, target);
    const yaml_node_item_t *first = value->data.sequence.items.start;
    const size_t count = (size_t)(value->data.sequence.items.top - first);
    if (key->kind != VALUE_NUMBERS && key->kind != VALUE_SAMPLES)
        return refuse(reader, line_of(value), ST_INVALID, "%s: one value is expected here, not a list",
                      label);
    if (count != 3)
        return refuse(reader, line_of(value), ST_INVALID,
                      "%s: one number or a list of 3 is expected here, not of %zu", label, count);
    for (size_t i = 0; i < count; i++) {
        const enum status status =
            set_value(reader, key, label, node_at(reader, first[i]), true, i, target);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

static enum status unknown_key(const struct reader *reader, const yaml_node_t *node,
                               const char *label, const char *nearest) {
    return refuse(reader, line_of(node), ST_INVALID, "%s: there is no such key%s%s%s", label,
                  nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "\"?" : "");
}

/* The key's text; refuses one that came before in the same mapping. */
static enum status key_text(struct reader *reader, const yaml_node_t *mapping,
                            const yaml_node_pair_t *pair, const char *where, const char **out) {
    const yaml_node_t *key = node_at(reader, pair->key);
    const enum status status = scalar_text(reader, key, where, out);
    if (status != ST_OK) return status;
    for (const yaml_node_pair_t *before = mapping->data.mapping.pairs.start; before < pair; before++) {
        const yaml_node_t *other = node_at(reader, before->key);
        if (other->type == YAML_SCALAR_NODE &&
            strcmp((const char *)other->data.scalar.value, *out) == 0)
            return refuse(reader, line_of(key), ST_INVALID, "%s: \"%.60s\" comes twice", where, *out);
    }
    return ST_OK;
}

static bool is_nothing(const yaml_node_t *node) {
    return node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0 &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* Now that all of the section is read: has each key its effect beside the others? */
static enum status check_effects(struct reader *reader, enum pipeline_section section,
                                 const yaml_node_t *node, void *target) {
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(reader, pair->key);
        const char *name = (const char *)key->data.scalar.value;
        const char *idle = pipeline_key_idle(section, name, target);
        if (idle != NULL)
            return refuse(reader, line_of(key), ST_INVALID, "%s.%s %s",
                          pipeline_section_name(section), name, idle);
        if (section >= SECTION_FIRST_OUTPUT && strcmp(name, "label") == 0)
            ((struct pipeline_output *)target)->label_line = (unsigned)line_of(key);
    }
    return ST_OK;
}

static enum status read_section(struct reader *reader, enum pipeline_section section,
                                const yaml_node_t *node, void *target) {
    const char *name = pipeline_section_name(section);
    pipeline_section_default(section, target);
    if (is_nothing(node)) return ST_OK; /* "- tokens:": all as it is by default */
    if (node->type != YAML_MAPPING_NODE)
        return refuse(reader, line_of(node), ST_INVALID, "%s: keys and values are expected here", name);
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const char *text = NULL, *nearest = NULL;
        enum status status = key_text(reader, node, pair, name, &text);
        if (status != ST_OK) return status;
        char label[100];
        (void)snprintf(label, sizeof label, "%s.%.60s", name, text);
        const struct pipeline_key_spec *key = pipeline_key_find(section, text, &nearest);
        if (key == NULL) return unknown_key(reader, node_at(reader, pair->key), label, nearest);
        status = set_key(reader, key, label, node_at(reader, pair->value), target);
        if (status != ST_OK) return status;
    }
    return check_effects(reader, section, node, target);
}

/* ---- the lists ---- */

static int find_section(enum pipeline_section from, enum pipeline_section to, const char *name,
                        const char **out_nearest) {
    struct nearest search;
    nearest_begin(&search, name);
    for (int section = (int)from; section < (int)to; section++) {
        const char *known = pipeline_section_name((enum pipeline_section)section);
        if (strcmp(known, name) == 0) return section;
        nearest_try(&search, known);
    }
    *out_nearest = search.best;
    return -1;
}

/* "- image: {...}": a mapping of one key, the kind. */
static enum status read_item(struct reader *reader, const char *list, const yaml_node_t *item,
                             enum pipeline_section from, enum pipeline_section to, void *target,
                             int *out_section) {
    if (item->type != YAML_MAPPING_NODE ||
        item->data.mapping.pairs.top - item->data.mapping.pairs.start != 1)
        return refuse(reader, line_of(item), ST_INVALID,
                      "%s: an entry is one kind with its keys below it, as in \"- %s: {...}\"", list,
                      pipeline_section_name(from));
    const yaml_node_pair_t *pair = item->data.mapping.pairs.start;
    const char *kind = NULL, *nearest = NULL;
    const enum status status = key_text(reader, item, pair, list, &kind);
    if (status != ST_OK) return status;
    *out_section = find_section(from, to, kind, &nearest);
    if (*out_section < 0) {
        char label[100];
        (void)snprintf(label, sizeof label, "%s: %.60s", list, kind);
        return unknown_key(reader, node_at(reader, pair->key), label, nearest);
    }
    return read_section(reader, (enum pipeline_section)*out_section, node_at(reader, pair->value),
                        target);
}

static enum status check_input(struct reader *reader, const struct pipeline_input *input) {
    if (input->kind != PIPELINE_IMAGE) return ST_OK;
    const struct pixel_format *format = &input->image.format;
    for (size_t i = 0; i < 3; i++)
        if (format->std[i] == 0)
            return refuse(reader, input->line, ST_INVALID, "image.std: must not be 0");
    return ST_OK;
}

static enum status read_inputs(struct reader *reader, const yaml_node_t *node) {
    struct pipeline_file *out = reader->out;
    if (node->type != YAML_SEQUENCE_NODE)
        return refuse(reader, line_of(node), ST_INVALID, "inputs: a list is expected here");
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *entry = node_at(reader, *item);
        if (out->input_count == PIPELINE_MAX_INPUTS)
            return refuse(reader, line_of(entry), ST_INVALID, "inputs: more than %d",
                          PIPELINE_MAX_INPUTS);
        struct pipeline_input *input = &out->inputs[out->input_count++];
        int section;
        *input = (struct pipeline_input){.line = (unsigned)line_of(entry)};
        enum status status = read_item(reader, "inputs", entry, SECTION_IMAGE, SECTION_FIRST_OUTPUT,
                                       input, &section);
        if (status != ST_OK) return status;
        input->kind = section == SECTION_IMAGE ? PIPELINE_IMAGE : PIPELINE_TEXT;
        status = check_input(reader, input);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

static enum status check_output(struct reader *reader, const struct pipeline_output *output) {
    if (output->kind == PIPELINE_CTC && output->ctc.characters == NULL)
        return refuse(reader, output->line, ST_INVALID,
                      "ctc.characters is missing: the file with a character a line");
    if (output->kind == PIPELINE_DETECT && output->detect.config.head == HEAD_BOXES &&
        (output->from == NULL || output->detect.boxes_from == NULL))
        return refuse(reader, output->line, ST_INVALID,
                      "detect: head boxes needs from (the scores) and boxes_from");
    return ST_OK;
}

static enum status read_outputs(struct reader *reader, const yaml_node_t *node) {
    struct pipeline_file *out = reader->out;
    if (node->type != YAML_SEQUENCE_NODE)
        return refuse(reader, line_of(node), ST_INVALID, "outputs: a list is expected here");
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *entry = node_at(reader, *item);
        if (out->output_count == PIPELINE_MAX_OUTPUTS)
            return refuse(reader, line_of(entry), ST_INVALID, "outputs: more than %d",
                          PIPELINE_MAX_OUTPUTS);
        struct pipeline_output *output = &out->outputs[out->output_count++];
        int section;
        *output = (struct pipeline_output){.line = (unsigned)line_of(entry)};
        enum status status = read_item(reader, "outputs", entry, SECTION_FIRST_OUTPUT, SECTION_COUNT,
                                       output, &section);
        if (status != ST_OK) return status;
        output->kind = (enum pipeline_output_kind)(section - SECTION_FIRST_OUTPUT);
        status = check_output(reader, output);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

/* ---- names that must differ ---- */

struct made_name {
    const char *name;
    unsigned line;
};

static size_t made_by(const struct pipeline_output *output, struct made_name out[5]) {
    const char *names[5] = {NULL};
    switch (output->kind) {
    case PIPELINE_SCORES: names[0] = output->scores.name; break;
    case PIPELINE_CLASSIFY:
        names[0] = output->classify.label;
        names[1] = output->classify.score;
        names[2] = output->classify.class_id;
        break;
    case PIPELINE_EMBED: names[0] = output->embed.name; break;
    case PIPELINE_DETECT:
        names[0] = output->detect.boxes;
        names[1] = output->detect.scores;
        names[2] = output->detect.classes;
        names[3] = output->detect.count;
        names[4] = output->detect.label;
        break;
    case PIPELINE_CTC:
        names[0] = output->ctc.name;
        names[1] = output->ctc.score;
        break;
    case PIPELINE_TEXT_BOXES:
        names[0] = output->text_boxes.quads;
        names[1] = output->text_boxes.scores;
        names[2] = output->text_boxes.count;
        break;
    case PIPELINE_DETOKENIZE: names[0] = output->detokenize.name; break;
    case PIPELINE_TOKENS:
        names[0] = output->tokens.ids;
        names[1] = output->tokens.offsets;
        break;
    case PIPELINE_OUTPUT_KIND_COUNT: break;
    }
    size_t count = 0;
    for (size_t i = 0; i < 5; i++)
        if (names[i] != NULL) out[count++] = (struct made_name){names[i], output->line};
    return count;
}

static enum status check_different(const struct reader *reader, const char *what,
                                   const struct made_name *names, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[i].name, names[k].name) == 0)
                return refuse(reader, names[i].line, ST_INVALID,
                              "there is another %s \"%.60s\" in line %u: give one a name of its own",
                              what, names[i].name, names[k].line);
    return ST_OK;
}

static enum status check_names(const struct reader *reader) {
    const struct pipeline_file *file = reader->out;
    struct made_name names[5 * PIPELINE_MAX_OUTPUTS];
    size_t count = 0;
    for (uint32_t i = 0; i < file->input_count; i++) {
        const struct pipeline_input *input = &file->inputs[i];
        names[count++] = (struct made_name){input->name, input->line};
        if (input->kind == PIPELINE_TEXT && input->text.pair != NULL)
            names[count++] = (struct made_name){input->text.pair, input->line};
    }
    const enum status status = check_different(reader, "input", names, count);
    if (status != ST_OK) return status;
    count = 0;
    for (uint32_t i = 0; i < file->output_count; i++)
        count += made_by(&file->outputs[i], names + count);
    return check_different(reader, "output", names, count);
}

/* ---- the document ---- */

static enum status read_root(struct reader *reader, const yaml_node_t *root) {
    static const char *const KNOWN[] = {"inputs", "outputs", "model_outputs"};
    bool says_model_outputs = false;
    if (root->type != YAML_MAPPING_NODE)
        return refuse(reader, line_of(root), ST_INVALID, "\"inputs:\" and \"outputs:\" are expected");
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *value = node_at(reader, pair->value);
        const char *key = NULL, *word = NULL;
        enum status status = key_text(reader, root, pair, "the file", &key);
        if (status == ST_OK && strcmp(key, KNOWN[0]) == 0) status = read_inputs(reader, value);
        else if (status == ST_OK && strcmp(key, KNOWN[1]) == 0) status = read_outputs(reader, value);
        else if (status == ST_OK && strcmp(key, KNOWN[2]) == 0) {
            status = scalar_text(reader, value, key, &word);
            if (status != ST_OK) return status;
            if (strcmp(word, "shown") != 0 && strcmp(word, "hidden") != 0)
                return refuse(reader, line_of(value), ST_INVALID,
                              "model_outputs: \"%.60s\" is none of shown|hidden", word);
            reader->out->shows_model_outputs = word[0] == 's';
            says_model_outputs = true;
        } else if (status == ST_OK) {
            struct nearest search;
            nearest_begin(&search, key);
            for (size_t i = 0; i < 3; i++) nearest_try(&search, KNOWN[i]);
            return unknown_key(reader, node_at(reader, pair->key), key, search.best);
        }
        if (status != ST_OK) return status;
    }
    if (!says_model_outputs) reader->out->shows_model_outputs = reader->out->output_count == 0;
    if (reader->out->input_count == 0 && reader->out->output_count == 0)
        return refuse(reader, line_of(root), ST_INVALID, "neither inputs nor outputs are named");
    return check_names(reader);
}

/* libyaml forgets to say so in some of the places where it is out of memory. */
static enum status yaml_failed(const struct reader *reader, const yaml_parser_t *parser) {
    if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
        return err_set(reader->err, ST_NO_MEMORY, "%s: no memory", reader->path);
    const size_t line = parser->error == YAML_READER_ERROR ? 1 : parser->problem_mark.line + 1;
    return refuse(reader, line, ST_INVALID, "not YAML: %s",
                  parser->problem != NULL ? parser->problem : "it cannot be read");
}

/* What YAML offers beyond lists, mappings and scalars has no meaning here: refused before the tree
 * is built. */
static enum status check_event(const struct reader *reader, const yaml_event_t *event, int *depth,
                               int *documents) {
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT: anchor = event->data.alias.anchor; break;
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        ++*depth;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        ++*depth;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: --*depth; break;
    case YAML_DOCUMENT_START_EVENT: ++*documents; break;
    default: break;
    }
    const size_t line = event->start_mark.line + 1;
    if (anchor != NULL) return refuse(reader, line, ST_INVALID, "anchors and aliases are not read");
    if (tag != NULL) return refuse(reader, line, ST_INVALID, "tags are not read");
    if (*depth > DEPTH_MAX) return refuse(reader, line, ST_INVALID, "nested too deep");
    if (*documents > 1) return refuse(reader, line, ST_INVALID, "a second document begins here");
    return ST_OK;
}

static enum status check_plain(const struct reader *reader, struct view yaml) {
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_set(reader->err, ST_NO_MEMORY, "%s: no memory", reader->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.data, yaml.size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    enum status status = ST_OK;
    int depth = 0, documents = 0;
    for (bool goes_on = true; goes_on && status == ST_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            status = yaml_failed(reader, &parser);
            break;
        }
        goes_on = event.type != YAML_STREAM_END_EVENT;
        status = check_event(reader, &event, &depth, &documents);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

enum status pipeline_parse(struct view yaml, const char *path, struct arena *arena,
                           struct pipeline_file *out, struct err *err) {
    struct pipeline_file file = {.path = arena_copy(arena, view_of(path))};
    struct reader reader = {.path = path, .arena = arena, .out = &file, .err = err};
    if (file.path == NULL) return err_set(err, ST_NO_MEMORY, "%s: no memory", path);
    enum status status = check_plain(&reader, yaml);
    if (status != ST_OK) return status;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return err_set(err, ST_NO_MEMORY, "%s: no memory", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.data, yaml.size);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    if (!yaml_parser_load(&parser, &reader.document)) {
        status = yaml_failed(&reader, &parser);
    } else {
        const yaml_node_t *root = yaml_document_get_root_node(&reader.document);
        status = root != NULL ? read_root(&reader, root)
                              : refuse(&reader, 1, ST_INVALID, "the file is empty");
        yaml_document_delete(&reader.document);
    }
    yaml_parser_delete(&parser);
    if (status == ST_OK) *out = file;
    return status;
}

enum status pipeline_load(const char *path, struct arena *arena, struct pipeline_file *out,
                          struct err *err) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "%s: %s", path, strerror(errno));
    char *data = malloc(FILE_BYTES_MAX + 1);
    enum status status = ST_OK;
    if (data == NULL) {
        status = err_set(err, ST_NO_MEMORY, "%s: no memory", path);
    } else {
        const size_t size = fread(data, 1, FILE_BYTES_MAX + 1, file);
        if (ferror(file)) status = err_set(err, ST_IO, "%s: %s", path, strerror(errno));
        else if (size > FILE_BYTES_MAX)
            status = err_set(err, ST_TOO_LARGE, "%s: more than %d bytes: no pipeline file is", path,
                             FILE_BYTES_MAX);
        else status = pipeline_parse((struct view){data, size}, path, arena, out, err);
    }
    free(data);
    (void)fclose(file);
    return status;
}
