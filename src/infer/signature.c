/* What back ends share about signatures.
 *
 * Any thread; pure. Invariant: a zeroed or half-filled signature can be freed.
 * Read next: backend.h. */
#include "infer/backend.h"

#include <stdlib.h>

static void ios_done(struct io_spec *ios, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(ios[i].name);
        for (uint32_t d = 0; d < TENSOR_MAX_RANK; d++) {
            free(ios[i].dim_names[d]);
        }
        ios[i] = (struct io_spec){0};
    }
}

void signature_done(struct signature *signature) {
    ios_done(signature->inputs, MODEL_MAX_IO);
    ios_done(signature->outputs, MODEL_MAX_IO);
    signature->input_count = signature->output_count = 0;
}

static bool ios_batch(const struct io_spec *ios, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (ios[i].is_any_shape || ios[i].rank == 0 || ios[i].shape[0] != -1) {
            return false;
        }
    }
    return count > 0;
}

bool signature_can_batch(const struct signature *signature) {
    return ios_batch(signature->inputs, signature->input_count) &&
           ios_batch(signature->outputs, signature->output_count);
}
