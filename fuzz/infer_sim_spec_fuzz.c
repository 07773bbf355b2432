/* Any text as --simulate: accepted or refused in a sentence; what is accepted has sane times. */
#include "infer/sim_spec.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[256], printed[120];
    const size_t used = size < sizeof text ? size : sizeof text - 1;
    if (used > 0) {
        memcpy(text, data, used);
    }
    text[used] = '\0';
    struct sim_spec spec = {0};
    struct err err = {""};
    if (sim_spec_parse(text, &spec, &err) != ST_OK) {
        assert(err.text[0] != '\0');
        return 0;
    }
    assert(spec.batch_ns >= 0 && spec.batch_ns <= 60e9 && spec.row_ns >= 0);
    assert(sim_spec_batch_ns(&spec, UINT32_MAX) >= sim_spec_batch_ns(&spec, 1));
    assert(strlen(sim_spec_text(&spec, printed, sizeof printed)) > 0);
    return 0;
}
