/* From evidence to findings: how much each cause explains, with which confidence, which of them
 * stand out, and in what order. Pure, and the same for the same trace: the bootstrap is seeded. */
#ifndef TELLTALE_DIAG_FINDINGS_H
#define TELLTALE_DIAG_FINDINGS_H

#include "diag/causes.h"

enum { CAUSES_MAX = 32, NOTES_MAX = 12, BOOTSTRAP_BLOCKS = 32, BOOTSTRAP_REPEATS = 1000 };

/* A cause must explain this much to stand out. */
#define FINDING_MIN_SHARE 0.2     /* of the slow ones' time, or of their excess */
#define FINDING_MIN_OF_TOTAL 0.05 /* of the slow ones' time, where it is a share of the excess */
#define EXCESS_MIN 0.25           /* of the slow ones' time: else the excess does not rank */

enum verdict { VERDICT_CAUSE, VERDICT_INCONCLUSIVE, VERDICT_NONE };
const char *verdict_name(enum verdict verdict); /* "cause" */

struct findings {
    struct finding items[CAUSES_MAX]; /* those that stand out first, best first */
    size_t count;                     /* all causes */
    size_t standing;                  /* that stand out */
    size_t faults;                    /* of those, to be blamed */
    enum verdict verdict;
    bool is_close;                    /* intervals of the first two overlap */
    uint32_t blocks;                  /* time blocks that hold slow requests */
    char notes[NOTES_MAX][FINDING_TEXT];
    size_t note_count;
};

void findings_of(const struct evidence *evidence, uint64_t seed, struct findings *out);

#endif
