/* Probability maps of any content: no crash, no hang, boxes inside the picture. The first two
 * bytes give the sides, the rest the values. */
#include "prep/text_boxes.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    const uint32_t width = 1 + data[0] % 64, height = 1 + data[1] % 64;
    const struct placement place = {3 * width, 2 * height, width, height, 0, 0, width, height};
    const struct text_boxes_config config = {0.3f, 0.5f, 1.5f, (float)(data[2] % 4), 20};
    float *map = malloc((size_t)width * height * sizeof *map);
    for (size_t i = 0; i < (size_t)width * height; i++) {
        const uint8_t byte = data[3 + (size > 3 ? i % (size - 3) : 0) - (size > 3 ? 0 : 1)];
        map[i] = byte == 255 ? NAN : byte == 254 ? INFINITY : (float)byte / 253;
    }
    struct arena arena;
    struct scratch scratch = {0};
    struct text_box *boxes;
    uint32_t count;
    arena_init(&arena);
    if (text_boxes(&config, map, width, height, &place, &scratch, &arena, &boxes, &count, NULL) !=
            ST_OK || count > 20)
        abort();
    for (uint32_t i = 0; i < count; i++)
        for (size_t c = 0; c < 8; c++) {
            const float most = (float)(c % 2 == 0 ? 3 * width : 2 * height);
            if (!(boxes[i].corners[c] >= 0 && boxes[i].corners[c] <= most)) abort();
        }
    free(map);
    scratch_done(&scratch);
    arena_done(&arena);
    return 0;
}
