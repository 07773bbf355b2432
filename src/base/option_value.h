/* Inside options only: one option's field, written from text and read for help and JSON. */
#ifndef TELLTALE_BASE_OPTION_VALUE_H
#define TELLTALE_BASE_OPTION_VALUE_H

#include "base/options.h"
#include "base/view.h"
#include <stdbool.h>

/* Zero, false, NULL or empty, without looking at what was there. */
void option_value_zero(const struct option_spec *spec, void *config);
/* text must outlive config. On failure the field keeps what it had and err says what is wrong
 * with the text. is_first: a list that is given for the first time replaces its default. */
MUST_CHECK enum status option_value_set(const struct option_spec *spec, void *config,
                                        const char *text, bool is_first, struct err *err);
void option_value_free(const struct option_spec *spec, void *config);
/* The index-th of "a|b|c"; false when there are fewer. */
bool option_choice_at(const char *choices, size_t index, struct view *out_name);

#endif
