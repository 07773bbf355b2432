/* Any bytes as an ONNX file: walked to the end or given up, and never more subnormal weights than
 * weights, nor more weights than there are bytes for. */
#include "infer/weights.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct weights found = weights_of((struct view){(const char *)data, size});
    if (found.subnormal > found.values || found.values + found.external > size ||
        (!found.is_known && found.values + found.external > 0))
        abort();
    return 0;
}
