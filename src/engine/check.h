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
/* The same without those inputs that somebody else fills (skips; NULL: none): their places in
 * *out_inputs stay zeroed. */
MUST_CHECK enum status check_some_inputs(const struct signature *signature, const bool *skips,
                                         const char *model, const struct tensor *inputs,
                                         uint32_t count, bool is_batched, uint32_t max_rows,
                                         struct arena *arena, const struct tensor **out_inputs,
                                         uint32_t *out_rows, struct err *err);
/* An input of texts or pictures: BYTES, (rows) or (rows, 1), an element a row. */
MUST_CHECK enum status check_bytes(const struct tensor *input, const char *model, const char *name,
                                   uint32_t max_rows, uint32_t *out_rows, struct err *err);
/* Indices into the shown outputs for the names wanted (all when wanted is NULL). */
MUST_CHECK enum status check_wanted(const struct signature *shown, const char *model,
                                    const struct view *wanted, uint32_t count,
                                    struct arena *arena, uint32_t **out_indices,
                                    uint32_t *out_count, struct err *err);

#endif
