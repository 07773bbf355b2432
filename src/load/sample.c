/* Samples of a step. Loop thread. Invariant: an instant that is stamped is not earlier than the
 * one before it. Read next: summary.c, which adds them up. */
#include "load/sample.h"

#include <stdlib.h>

const char *outcome_name(enum outcome outcome) {
    static const char *const NAMES[OUTCOME_COUNT] = {
#define X(name, text, help) [OUTCOME_##name] = text,
        OUTCOME_TABLE(X)
#undef X
    };
    return NAMES[outcome];
}

const char *phase_name(enum phase phase) { return phase == PHASE_WARMUP ? "warmup" : "measure"; }

uint64_t sample_latency_ns(const struct sample *sample) {
    return sample->done_ns - sample->planned_ns;
}

uint64_t sample_service_ns(const struct sample *sample) {
    return sample->sent_ns == 0 ? 0 : sample->done_ns - sample->sent_ns;
}

bool sample_has_latency(const struct sample *sample) {
    return sample->outcome == OUTCOME_OK || sample->outcome == OUTCOME_TIMEOUT;
}

void sample_list_add(struct sample_list *list, const struct sample *sample) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 1024 : list->capacity * 2;
        struct sample *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL) {
            list->failed = true;
            return;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *sample;
}

void sample_list_done(struct sample_list *list) {
    free(list->items);
    *list = (struct sample_list){0};
}
