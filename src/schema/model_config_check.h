/* Parts of model_config_check(), which model_config.h offers. Internal to the checks. */
#ifndef TELLTALE_SCHEMA_MODEL_CONFIG_CHECK_H
#define TELLTALE_SCHEMA_MODEL_CONFIG_CHECK_H

#include "schema/model_config.h"

enum { MODEL_CONFIG_MAX_LEVELS = 1024 }; /* of priority */

/* dynamic_batching and ensemble_scheduling. */
MUST_CHECK enum status model_config_check_schedule(const struct model_config *config,
                                                   struct err *err);

#endif
