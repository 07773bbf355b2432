/* Any bytes as a pipeline file: read or refused with a sentence that names the file, no crash. */
#include "prep/pipeline_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena;
    struct pipeline_file file;
    struct err err = {.text = ""};
    arena_init(&arena);
    const enum status status =
        pipeline_parse((struct view){(const char *)data, size}, "p.yaml", &arena, &file, &err);
    if (status == ST_OK ? file.input_count + file.output_count == 0
                        : strncmp(err.text, "p.yaml:", 7) != 0)
        abort();
    arena_done(&arena);
    return 0;
}
