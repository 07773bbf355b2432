/* Reading a model's configuration, and saying what in it has no effect. Any thread, the arena's
 * owner. Invariant: a configuration that was read uses no field that is refused. The checks are
 * model_config_check.c's, what the message says model_config_values.c's. */
#include "schema/model_config.h"

#include "schema/config_fields.h"
#include "schema/json_format.h"
#include "schema/message.h"
#include "schema/text_format.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PLACES = 8192 /* what is given behind these has no line in faults: no file of a person */
};

struct reading {
    struct arena *arena;
    struct model_config config;
    struct config_warning *warnings; /* the same as the config's, while they are written */
    const struct config_field *refused; /* the first that the configuration uses */
    size_t place_capacity;
    bool is_out_of_memory;
};

static void note_place(void *context, const struct text_field *field) {
    struct reading *reading = context;
    struct model_config *config = &reading->config;
    if (config->place_count == MAX_PLACES || reading->is_out_of_memory) {
        return;
    }
    if (config->place_count == reading->place_capacity) {
        const size_t capacity = reading->place_capacity == 0 ? 32 : reading->place_capacity * 2;
        struct config_place *larger = arena_array(reading->arena, capacity, sizeof *larger);
        if (larger == NULL) {
            reading->is_out_of_memory = true;
            return;
        }
        if (config->place_count > 0) {
            memcpy(larger, config->places, config->place_count * sizeof *larger);
        }
        config->places = larger;
        reading->place_capacity = capacity;
    }
    const char *path = arena_copy(reading->arena, view_of(field->path));
    reading->is_out_of_memory = path == NULL;
    if (path != NULL) {
        config->places[config->place_count++] = (struct config_place){path, field->line};
    }
}

uint32_t model_config_line(const struct model_config *config, const char *path, size_t index) {
    size_t found = 0;
    for (size_t i = 0; i < config->place_count; i++) {
        if (strcmp(config->places[i].path, path) == 0 && found++ == index) {
            return config->places[i].line;
        }
    }
    return 0;
}

enum status model_config_fault(const struct model_config *config, const char *path, size_t index,
                               enum status status, struct err *err, const char *format, ...) {
    struct err sentence;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence.text, sizeof sentence.text, format, arguments);
    va_end(arguments);
    const uint32_t line = model_config_line(config, path, index);
    if (line == 0) {
        return err_set(err, status, "%s: %s", config->origin, sentence.text);
    }
    return err_set(err, status, "%s: line %u: %s", config->origin, line, sentence.text);
}

static void note_row(void *context, const struct config_field *row) {
    struct reading *reading = context;
    if (row->action == CONFIG_REFUSED) {
        reading->refused = reading->refused == NULL ? row : reading->refused;
        return;
    }
    struct err text;
    (void)model_config_fault(&reading->config, row->path, 0, ST_OK, &text, "%s has no effect: %s",
                             row->path, row->remark);
    const char *copy = arena_copy(reading->arena, view_of(text.text));
    reading->is_out_of_memory = reading->is_out_of_memory || copy == NULL;
    reading->warnings[reading->config.warning_count++] = (struct config_warning){
        .path = row->path,
        .line = model_config_line(&reading->config, row->path, 0),
        .text = copy};
}

/* What remains when the message is there: refusals and warnings. */
static enum status finish(struct reading *reading, ProtobufCMessage *message,
                          struct model_config *out, struct err *err) {
    size_t rows;
    (void)config_fields(&rows);
    reading->config.message = (Inference__ModelConfig *)message;
    reading->warnings = arena_array(reading->arena, rows, sizeof *reading->warnings);
    if (reading->warnings != NULL) {
        config_fields_used(message, note_row, reading);
    }
    reading->config.warnings = reading->warnings;
    if (reading->warnings == NULL || reading->is_out_of_memory) {
        return err_set(err, ST_NO_MEMORY, "%s: no memory for the configuration",
                       reading->config.origin);
    }
    if (reading->refused != NULL) {
        return model_config_fault(&reading->config, reading->refused->path, 0, ST_UNSUPPORTED, err,
                                  "%s is not supported: %s", reading->refused->path,
                                  reading->refused->remark);
    }
    *out = reading->config;
    return ST_OK;
}

static enum status begin(struct reading *reading, const char *origin, struct arena *arena,
                         struct err *err) {
    *reading = (struct reading){.arena = arena};
    reading->config.origin = arena_copy(arena, view_of(origin));
    return reading->config.origin == NULL
               ? err_set(err, ST_NO_MEMORY, "%s: no memory for the configuration", origin)
               : ST_OK;
}

enum status model_config_empty(struct arena *arena, struct model_config *out, struct err *err) {
    return model_config_parse((struct view){.data = "", .size = 0}, "the configuration", arena, out,
                              err);
}

enum status model_config_parse(struct view text, const char *origin, struct arena *arena,
                               struct model_config *out, struct err *err) {
    struct reading reading;
    ProtobufCMessage *message = NULL;
    enum status status = begin(&reading, origin, arena, err);
    if (status != ST_OK) {
        return status;
    }
    status = text_format_parse(text, &inference__model_config__descriptor, note_place, &reading,
                               arena, &message, err);
    if (status != ST_OK) {
        err_prefix(err, "%s", origin);
        return status;
    }
    return finish(&reading, message, out, err);
}

enum status model_config_parse_json(struct view json, const char *origin, struct arena *arena,
                                    struct model_config *out, struct err *err) {
    struct reading reading;
    ProtobufCMessage *message = NULL;
    enum status status = begin(&reading, origin, arena, err);
    if (status != ST_OK) {
        return status;
    }
    status = json_format_parse(json, &inference__model_config__descriptor, arena, &message, err);
    if (status != ST_OK) {
        err_prefix(err, "%s", origin);
        return status;
    }
    return finish(&reading, message, out, err);
}

/* The whole file, the caller's to free; more than the format's limit is not read. */
static enum status read_file(const char *path, char **out, size_t *out_size, struct err *err) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        const bool is_absent = errno == ENOENT || errno == ENOTDIR;
        return err_set(err, is_absent ? ST_NOT_FOUND : ST_IO, "%s: %s", path, strerror(errno));
    }
    const size_t room = TEXT_FORMAT_MAX_BYTES + 1; /* one more than allowed, to be told */
    char *text = malloc(room);
    enum status status = ST_OK;
    if (text == NULL) {
        status = err_set(err, ST_NO_MEMORY, "%s: no memory to read it", path);
    } else {
        *out_size = fread(text, 1, room, file);
        if (ferror(file) != 0) {
            status = err_set(err, ST_IO, "%s: %s", path, strerror(errno));
        }
    }
    (void)fclose(file);
    if (status != ST_OK) {
        free(text);
        text = NULL;
    }
    *out = text;
    return status;
}

enum status model_config_read(const char *path, struct arena *arena, struct model_config *out,
                              struct err *err) {
    char *text = NULL;
    size_t size = 0;
    enum status status = read_file(path, &text, &size, err);
    if (status == ST_OK) {
        status = model_config_parse((struct view){text, size}, path, arena, out, err);
        free(text);
    }
    return status;
}
