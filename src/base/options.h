/* The one table behind flags, --help and validation. A command describes each option in a
 * line; options_parse fills a struct by offset.
 *
 *     static const struct option_spec SPECS[] = {
 *         {"max-batch", OPT_UINT, offsetof(struct serve_config, max_batch), "N", "32", 0, 4096,
 *          NULL, "largest batch; 0: the model is not batched"},
 *     };
 */
#ifndef TELLTALE_BASE_OPTIONS_H
#define TELLTALE_BASE_OPTIONS_H

#include "base/status.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
    OPT_FLAG,     /* bool: --x sets true, --no-x false; --x=true|false too */
    OPT_UINT,     /* uint64_t, within min..max; 1_000, 10k, 64MiB (k, M, G, KiB, MiB, GiB) */
    OPT_DOUBLE,   /* double, within min..max */
    OPT_STRING,   /* const char * into argv or the table's default; NULL when default is NULL */
    OPT_STRINGS,  /* struct option_strings: may be given more than once */
    OPT_CHOICE,   /* int: index into choices, "ring|mutex" */
    OPT_DURATION, /* uint64_t nanoseconds; "10s", "1.5ms", "20us", "2m", "1h"; min, max in ns */
    OPT_UINTS,    /* struct option_uints: "1,4,8" or "1:16:5" (from:to:step), or both mixed */
    OPT_HEADING   /* no option: a heading in --help; only help is used */
};

struct option_strings { const char **items; size_t count; };
struct option_uints { uint64_t *items; size_t count; };

struct option_spec {
    const char *name; /* without the dashes */
    enum option_kind kind;
    size_t offset;              /* of the field in the caller's struct */
    const char *value;          /* placeholder in --help, "N"; NULL for flags */
    const char *default_text;   /* parsed as if given; NULL: 0, false, NULL, empty */
    double min, max;            /* both 0: no limits */
    const char *choices;        /* OPT_CHOICE: "ring|mutex" */
    const char *help;           /* one sentence: meaning, special value, unit */
};

struct command_spec {
    const char *name;     /* "serve" */
    const char *synopsis; /* "telltale serve --model FILE.onnx [options]" */
    const char *summary;  /* paragraph for --help; wrapped there */
    const char *epilog;   /* examples, exit codes; printed as it stands; may be NULL */
    const struct option_spec *options;
    size_t option_count;
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP_SHOWN, OPTIONS_BAD };

/* Fills config (defaults first) from argv[1..]; an option given twice counts the last time.
 * Positional arguments go to out_positional (an array of argc pointers, allocated here, freed
 * by options_free); where out_positional is NULL they are a mistake. --help prints to stdout.
 * A mistake prints one line to stderr that names the option, what is wrong and the nearest
 * valid name, and gives OPTIONS_BAD: exit with 2. Unless the result is OPTIONS_RUN nothing is
 * left to free, and options_free is harmless. */
enum options_result options_parse(const struct command_spec *command, int argc, char **argv,
                                  void *config, const char ***out_positional, size_t *out_count);
/* The same without printing: what OPTIONS_BAD would have printed is in err. */
enum options_result options_read(const struct command_spec *command, int argc, char **argv,
                                 void *config, const char ***out_positional, size_t *out_count,
                                 struct err *err);
void options_free(const struct command_spec *command, void *config, const char **positional);
void options_print_help(const struct command_spec *command, FILE *out);
/* The configuration as JSON members ("max_batch": 32, ...), for result files and logs. A
 * duration is whole nanoseconds and its name says so: "timeout_ns": 500000000. */
struct buf;
void options_write_json(const struct command_spec *command, const void *config, struct buf *out);

#endif
