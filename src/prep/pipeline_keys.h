/* The one table of a pipeline file's keys, for the reader (pipeline_file.c) alone. */
#ifndef TELLTALE_PREP_PIPELINE_KEYS_H
#define TELLTALE_PREP_PIPELINE_KEYS_H

#include "prep/pipeline_file.h"

enum pipeline_section { /* the kinds of inputs, then those of outputs */
    SECTION_IMAGE,
    SECTION_TEXT,
    SECTION_FIRST_OUTPUT,
    SECTION_SCORES = SECTION_FIRST_OUTPUT,
    SECTION_CLASSIFY,
    SECTION_EMBED,
    SECTION_DETECT,
    SECTION_CTC,
    SECTION_TEXT_BOXES,
    SECTION_DETOKENIZE,
    SECTION_TOKENS,
    SECTION_COUNT
};

enum pipeline_value {
    VALUE_NAME,     /* const char *; of an input or output */
    VALUE_FILE,     /* const char *; becomes relative to the pipeline file's directory */
    VALUE_U32,
    VALUE_U64,
    VALUE_FLOAT,    /* float */
    VALUE_DOUBLE,
    VALUE_BOOL,     /* bool: true or false */
    VALUE_CHOICE,   /* an enum or int: index into choices */
    VALUE_IS_SECOND, /* bool: "first|second" is false or true */
    VALUE_NUMBERS,  /* double[3]: one number for all, or three */
    VALUE_SAMPLES   /* uint8_t[3]: likewise, whole numbers */
};

struct pipeline_key_spec {
    enum pipeline_section section;
    const char *name;
    enum pipeline_value kind;
    size_t offset;            /* in struct pipeline_input or struct pipeline_output */
    const char *default_text; /* NULL: 0, false, NULL */
    double min, max;          /* numbers */
    const char *choices;      /* "a|b" */
    const char *value, *help; /* for documentation */
};

const char *pipeline_section_name(enum pipeline_section section); /* "image" */
/* NULL when the section has no such key; then *out_nearest is a key that may have been meant, or
 * NULL. */
const struct pipeline_key_spec *pipeline_key_find(enum pipeline_section section, const char *name,
                                                  const char **out_nearest);
/* One value from text: index counts through a list, 0 for a lone value, which fills a triple
 * whole. text must outlive target. The reason of a failure is the end of a sentence:
 * "\"cubic\" is none of a|b". */
MUST_CHECK enum status pipeline_key_set(const struct pipeline_key_spec *key, void *target,
                                        const char *text, bool is_in_list, size_t index,
                                        struct err *err);
/* A key that the file gives although nothing comes of it, the rest of the section being as it is:
 * what is wrong, as the end of a sentence ("has no effect with fit: stretch; it goes with fit:
 * letterbox"). NULL: it has its effect. target: the section, all of it read. */
const char *pipeline_key_idle(enum pipeline_section section, const char *name, const void *target);
void pipeline_section_default(enum pipeline_section section, void *target);

#endif
