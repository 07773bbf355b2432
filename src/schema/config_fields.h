/* What Telltale does with each field of a model configuration: one table, which docs/config.md is
 * held to by a test. Constant; any thread. */
#ifndef TELLTALE_SCHEMA_CONFIG_FIELDS_H
#define TELLTALE_SCHEMA_CONFIG_FIELDS_H

#include "base/status.h"
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

enum config_action {
    CONFIG_HONOURED, /* acted on, or shown to clients where that is its whole purpose */
    CONFIG_WARNED,   /* read, without effect; said when the model is loaded */
    CONFIG_REFUSED,  /* the model is not loaded: it would not do what it is meant to do */
    CONFIG_ACTION_COUNT
};

/* A row holds for the field at path and all below it that have no row of their own. */
struct config_field {
    const char *path; /* names joined with dots, as in text_format.h */
    enum config_action action;
    const char *remark; /* what is done, or why it is not, and what to do; a clause, no full stop */
};

const struct config_field *config_fields(size_t *out_count); /* in the order of the documentation */
const char *config_action_name(enum config_action action);   /* "honoured" */

/* The row that holds for a path, or NULL: then its parts have rows. */
const struct config_field *config_field_of(const char *path);

/* Calls visit once for each row, in the table's order, that is not CONFIG_HONOURED and that the
 * configuration uses: some field it holds for is set to more than its default. */
typedef void (*config_field_fn)(void *context, const struct config_field *field);
void config_fields_used(const ProtobufCMessage *config, config_field_fn visit, void *context);

#endif
