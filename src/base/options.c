/* Options: argv into a struct, by the command's table. Called at start, one thread. Invariant:
 * every field holds its default, or a value that passed the table's checks.
 * Read next: option_value.c (one value), options_help.c (--help and JSON). */
#include "base/options.h"

#include "base/nearest.h"

#include "base/option_value.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

struct parse {
    const struct command_spec *command;
    void *config;
    bool *is_given; /* one an option */
    const char **positional;
    size_t positional_count;
    int argc;
    char **argv;
    int at; /* index of the argument being read */
};

/* The option whose name is nearest, or which name is the beginning of; NULL when none is near
 * enough to be meant. */
static const char *nearest_name(const struct command_spec *command, const char *name) {
    struct nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].kind != OPT_HEADING) nearest_try(&search, command->options[i].name);
    return search.best;
}

static const struct option_spec *find_option(const struct command_spec *command, const char *name,
                                             size_t size) {
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        if (spec->kind != OPT_HEADING && strlen(spec->name) == size &&
            memcmp(spec->name, name, size) == 0) {
            return spec;
        }
    }
    return NULL;
}

static enum status unknown_option(const struct command_spec *command, const char *name, size_t size,
                                  struct err *err) {
    char text[NAME_MAX_BYTES];
    const size_t kept = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
    memcpy(text, name, kept);
    text[kept] = '\0';
    const bool is_negated = strncmp(text, "no-", 3) == 0;
    const char *nearest = nearest_name(command, text);
    if (nearest != NULL) {
        return err_set(err, ST_INVALID, "--%s: no such option; did you mean --%s?", text, nearest);
    }
    nearest = is_negated ? nearest_name(command, text + 3) : NULL;
    if (nearest != NULL) {
        const bool is_flag = find_option(command, nearest, strlen(nearest))->kind == OPT_FLAG;
        return err_set(err, ST_INVALID, "--%s: no such option; did you mean --%s%s?", text,
                       is_flag ? "no-" : "", nearest);
    }
    return err_set(err, ST_INVALID, "--%s: no such option; see telltale %s --help", text,
                   command->name);
}

/* --opt's value in the next argument. What looks like an option is not taken for one: a value
 * that was forgotten is likelier, and --opt=--value remains. */
static const char *next_value(struct parse *parse) {
    if (parse->at + 1 >= parse->argc || strncmp(parse->argv[parse->at + 1], "--", 2) == 0) {
        return NULL;
    }
    return parse->argv[++parse->at];
}

static const char *placeholder_of(const struct option_spec *spec) {
    if (spec->value != NULL) {
        return spec->value;
    }
    if (spec->choices != NULL) {
        return spec->choices;
    }
    return spec->kind == OPT_DURATION ? "TIME" : "VALUE";
}

static enum status read_option(struct parse *parse, const char *name, struct err *err) {
    const char *equals = strchr(name, '=');
    const size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const struct option_spec *spec = find_option(parse->command, name, size);
    const char *value = equals == NULL ? NULL : equals + 1;
    if (spec == NULL && size > 3 && memcmp(name, "no-", 3) == 0) {
        spec = find_option(parse->command, name + 3, size - 3);
        if (spec != NULL && spec->kind == OPT_FLAG && value != NULL) {
            return err_set(err, ST_INVALID, "--no-%s takes no value", spec->name);
        }
        spec = spec != NULL && spec->kind == OPT_FLAG ? spec : NULL;
        value = "false";
    }
    if (spec == NULL) {
        return unknown_option(parse->command, name, size, err);
    }
    if (value == NULL) {
        value = spec->kind == OPT_FLAG ? "true" : next_value(parse);
    }
    if (value == NULL) {
        return err_set(err, ST_INVALID, "--%s needs a value: --%s %s", spec->name, spec->name,
                       placeholder_of(spec));
    }
    bool *is_given = &parse->is_given[spec - parse->command->options];
    const enum status status = option_value_set(spec, parse->config, value, !*is_given, err);
    if (status != ST_OK) {
        err_prefix(err, "--%s", spec->name);
        return status;
    }
    *is_given = true;
    return ST_OK;
}

static void set_defaults(struct parse *parse) {
    const struct command_spec *command = parse->command;
    for (size_t i = 0; i < command->option_count; i++) {
        option_value_zero(&command->options[i], parse->config);
    }
}

static enum status apply_defaults(struct parse *parse, struct err *err) {
    for (size_t i = 0; i < parse->command->option_count; i++) {
        const struct option_spec *spec = &parse->command->options[i];
        if (spec->kind == OPT_HEADING || spec->default_text == NULL) {
            continue;
        }
        const enum status status =
            option_value_set(spec, parse->config, spec->default_text, true, err);
        assert(status != ST_INVALID && "a default in the table is not valid");
        if (status != ST_OK) {
            err_prefix(err, "--%s: its default", spec->name);
            return status;
        }
    }
    return ST_OK;
}

static enum status read_positional(struct parse *parse, const char *text, bool is_allowed,
                                   struct err *err) {
    if (!is_allowed) {
        return err_set(err, ST_INVALID, "'%.200s': telltale %s takes no such argument", text,
                       parse->command->name);
    }
    parse->positional[parse->positional_count++] = text;
    return ST_OK;
}

static enum options_result read_arguments(struct parse *parse, bool has_positional,
                                          struct err *err) {
    enum status status = apply_defaults(parse, err);
    bool has_ended = false;
    for (parse->at = 1; status == ST_OK && parse->at < parse->argc; parse->at++) {
        const char *text = parse->argv[parse->at];
        if (has_ended || text[0] != '-' || text[1] == '\0') {
            status = read_positional(parse, text, has_positional, err);
        } else if (strcmp(text, "--") == 0) {
            has_ended = true;
        } else if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            return OPTIONS_HELP_SHOWN;
        } else if (text[1] != '-') {
            status = err_set(err, ST_INVALID,
                             "%.60s: options begin with two dashes; see telltale %s --help", text,
                             parse->command->name);
        } else {
            status = read_option(parse, text + 2, err);
        }
    }
    return status == ST_OK ? OPTIONS_RUN : OPTIONS_BAD;
}

enum options_result options_read(const struct command_spec *command, int argc, char **argv,
                                 void *config, const char ***out_positional, size_t *out_count,
                                 struct err *err) {
    struct parse parse = {.command = command, .config = config, .argc = argc, .argv = argv};
    enum options_result result = OPTIONS_BAD;
    set_defaults(&parse);
    parse.is_given = calloc(command->option_count + 1, sizeof(*parse.is_given));
    parse.positional = calloc((size_t)argc + 1, sizeof(*parse.positional));
    if (parse.is_given == NULL || parse.positional == NULL) {
        (void)err_set(err, ST_NO_MEMORY, "out of memory");
    } else {
        result = read_arguments(&parse, out_positional != NULL, err);
    }
    free(parse.is_given);
    if (result != OPTIONS_RUN || out_positional == NULL) {
        free(parse.positional);
        parse.positional = NULL;
    }
    if (result != OPTIONS_RUN) {
        options_free(command, config, NULL);
    }
    if (out_positional != NULL) {
        *out_positional = parse.positional;
        *out_count = result == OPTIONS_RUN ? parse.positional_count : 0;
    }
    return result;
}

enum options_result options_parse(const struct command_spec *command, int argc, char **argv,
                                  void *config, const char ***out_positional, size_t *out_count) {
    struct err err = {.text = ""};
    const enum options_result result =
        options_read(command, argc, argv, config, out_positional, out_count, &err);
    if (result == OPTIONS_HELP_SHOWN) {
        options_print_help(command, stdout);
    } else if (result == OPTIONS_BAD) {
        fprintf(stderr, "telltale %s: %s\n", command->name, err.text);
    }
    return result;
}

void options_free(const struct command_spec *command, void *config, const char **positional) {
    for (size_t i = 0; i < command->option_count; i++) {
        option_value_free(&command->options[i], config);
    }
    free(positional);
}
