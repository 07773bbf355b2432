/* The option table as text: --help, and the configuration as JSON members. Called at start,
 * one thread. Invariant: no line of help is wider than 80 columns unless a word is. */
#include "base/option_value.h"

#include "base/buf.h"
#include "base/number.h"
#include <stdlib.h>

enum { WIDTH = 80, TEXT_COLUMN = 26 };

/* Words of text from column on, later lines indented. Ends the line. A newline in text stays. */
static void print_wrapped(FILE *out, const char *text, size_t column, size_t indent) {
    bool is_line_start = true;
    while (*text != '\0') {
        const size_t word = strcspn(text, " \n");
        if (word > 0 && !is_line_start && column + 1 + word > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            is_line_start = true;
        }
        if (word > 0) {
            fprintf(out, "%s%.*s", is_line_start ? "" : " ", (int)word, text);
            column += word + (is_line_start ? 0 : 1);
            is_line_start = false;
        }
        text += word;
        if (*text == '\n') {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            is_line_start = true;
        }
        text += *text == '\0' ? 0 : 1;
    }
    fputc('\n', out);
}

static bool is_default_true(const struct option_spec *spec) {
    return spec->kind == OPT_FLAG && spec->default_text != NULL &&
           strcmp(spec->default_text, "true") == 0;
}

/* "--max-batch N", "--[no-]trace" */
static void write_usage(struct buf *text, const struct option_spec *spec) {
    buf_printf(text, "  --%s%s", is_default_true(spec) ? "[no-]" : "", spec->name);
    if (spec->kind == OPT_FLAG) {
        return;
    }
    const char *placeholder = spec->value != NULL          ? spec->value
                              : spec->choices != NULL      ? spec->choices
                              : spec->kind == OPT_DURATION ? "TIME"
                                                           : "VALUE";
    buf_printf(text, " %s", placeholder);
}

static void write_limit(struct buf *text, const struct option_spec *spec, double limit) {
    char duration[32];
    if (spec->kind == OPT_DURATION) {
        buf_text(text, number_duration_text((uint64_t)limit, duration, sizeof(duration)));
    } else {
        buf_printf(text, "%.15g", limit);
    }
}

/* " (1..4096, default 32)": what the table knows beside the sentence. */
static void write_facts(struct buf *text, const struct option_spec *spec) {
    const char *between = " (";
    if (spec->kind == OPT_CHOICE && spec->value != NULL) {
        buf_printf(text, "%s%s", between, spec->choices);
        between = ", ";
    }
    if (spec->min < spec->max) {
        buf_text(text, between);
        write_limit(text, spec, spec->min);
        buf_text(text, "..");
        write_limit(text, spec, spec->max);
        between = ", ";
    }
    if (spec->kind == OPT_STRINGS) {
        buf_printf(text, "%smay be given again", between);
        between = ", ";
    }
    if (spec->kind != OPT_FLAG && spec->default_text != NULL && spec->default_text[0] != '\0') {
        buf_printf(text, "%sdefault %s", between, spec->default_text);
        between = ", ";
    }
    if (is_default_true(spec)) {
        buf_printf(text, "%son by default", between);
        between = ", ";
    }
    if (between[0] == ',') {
        buf_char(text, ')');
    }
}

static void print_option(FILE *out, const struct option_spec *spec) {
    struct buf usage;
    struct buf text;
    buf_init(&usage);
    buf_init(&text);
    write_usage(&usage, spec);
    buf_text(&text, spec->help == NULL ? "" : spec->help);
    write_facts(&text, spec);
    buf_char(&text, '\0');
    if (!usage.failed && !text.failed) {
        fprintf(out, "%.*s", VIEW_ARGS(buf_view(&usage)));
        if (usage.size + 2 > TEXT_COLUMN) {
            fprintf(out, "\n%*s", TEXT_COLUMN, "");
        } else {
            fprintf(out, "%*s", (int)(TEXT_COLUMN - usage.size), "");
        }
        print_wrapped(out, text.data, TEXT_COLUMN, TEXT_COLUMN);
    }
    buf_done(&usage);
    buf_done(&text);
}

void options_print_help(const struct command_spec *command, FILE *out) {
    bool has_duration = false;
    bool has_heading = command->option_count > 0 && command->options[0].kind == OPT_HEADING;
    fputs("usage: ", out);
    print_wrapped(out, command->synopsis, 7, 7);
    if (command->summary != NULL) {
        fputc('\n', out);
        print_wrapped(out, command->summary, 0, 0);
    }
    if (!has_heading) {
        fputs("\noptions\n", out);
    }
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        has_duration = has_duration || spec->kind == OPT_DURATION;
        if (spec->kind == OPT_HEADING) {
            fprintf(out, "\n%s\n", spec->help);
        } else {
            print_option(out, spec);
        }
    }
    fprintf(out, "  %-*s%s\n", TEXT_COLUMN - 2, "--help", "show this and exit");
    fputc('\n', out);
    print_wrapped(out,
                  has_duration ? "Times are a number and a unit: ns, us, ms, s, m, h. Whole "
                                 "numbers take k, M, G, KiB, MiB, GiB."
                               : "Whole numbers take the suffixes k, M, G, KiB, MiB, GiB.",
                  0, 0);
    if (command->epilog != NULL) {
        fprintf(out, "\n%s\n", command->epilog); /* as it stands: examples are laid out */
    }
}

static void write_name(struct buf *out, const struct option_spec *spec) {
    buf_char(out, '"');
    for (const char *c = spec->name; *c != '\0'; c++) {
        buf_char(out, *c == '-' ? '_' : *c);
    }
    buf_text(out, spec->kind == OPT_DURATION ? "_ns\": " : "\": ");
}

static void write_double(struct buf *out, double value) {
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value) {
        snprintf(text, sizeof(text), "%.17g", value);
    }
    buf_text(out, text);
}

static void write_string(struct buf *out, const char *text) {
    if (text == NULL) {
        buf_text(out, "null");
    } else {
        buf_json_string(out, view_of(text));
    }
}

static void write_value(struct buf *out, const struct option_spec *spec, const void *field) {
    switch (spec->kind) {
    case OPT_FLAG: buf_text(out, *(const bool *)field ? "true" : "false"); break;
    case OPT_UINT:
    case OPT_DURATION: buf_u64(out, *(const uint64_t *)field); break;
    case OPT_DOUBLE: write_double(out, *(const double *)field); break;
    case OPT_STRING: write_string(out, *(const char *const *)field); break;
    case OPT_STRINGS: {
        const struct option_strings *list = field;
        for (size_t i = 0; i < list->count; i++) {
            buf_text(out, i == 0 ? "[" : ", ");
            write_string(out, list->items[i]);
        }
        buf_text(out, list->count == 0 ? "[]" : "]");
        break;
    }
    case OPT_UINTS: {
        const struct option_uints *list = field;
        for (size_t i = 0; i < list->count; i++) {
            buf_text(out, i == 0 ? "[" : ", ");
            buf_u64(out, list->items[i]);
        }
        buf_text(out, list->count == 0 ? "[]" : "]");
        break;
    }
    case OPT_CHOICE: {
        struct view name = {.data = "", .size = 0};
        option_choice_at(spec->choices, (size_t)*(const int *)field, &name);
        buf_json_string(out, name);
        break;
    }
    case OPT_HEADING: break;
    }
}

void options_write_json(const struct command_spec *command, const void *config, struct buf *out) {
    const char *between = "";
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        if (spec->kind == OPT_HEADING) {
            continue;
        }
        buf_text(out, between);
        write_name(out, spec);
        write_value(out, spec, (const char *)config + spec->offset);
        between = ", ";
    }
}
