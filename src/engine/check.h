/* Does a request fit its model? Pure; every error names the field. */
#ifndef TELLTALE_ENGINE_CHECK_H
#define TELLTALE_ENGINE_CHECK_H

#include "engine/engine.h"

/* Brings the request's inputs into the signature's order (array in arena) and checks names,
 * datatypes, shapes and sizes. is_batched: dimension 0 is rows, the same in all inputs, 1 to
 * max_rows. *out_rows: rows (0 when not batched). */
MUST_CHECK enum status check_inputs(const struct signature *signature, const char *model,
                                    const struct tensor *inputs, uint32_t count, bool is_batched,
                                    uint32_t max_rows, struct arena *arena,
                                    const struct tensor **out_inputs, uint32_t *out_rows,
                                    struct err *err);
/* The TEXT input alone: BYTES, (rows) or (rows, 1). */
MUST_CHECK enum status check_text(const struct tensor *input, const char *model, uint32_t max_rows,
                                  uint32_t *out_rows, struct err *err);
/* Indices into the shown outputs for the names wanted (all when wanted is NULL). */
MUST_CHECK enum status check_wanted(const struct signature *shown, const char *model,
                                    const struct view *wanted, uint32_t count,
                                    struct arena *arena, uint32_t **out_indices,
                                    uint32_t *out_count, struct err *err);

#endif
