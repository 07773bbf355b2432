/* The causes that explain knows: a table of rules. A rule says how much of each request's time
 * is its own (so that shares, and intervals for them, are means over requests), and whether
 * everything else that must hold for it does. Pure. */
#ifndef TELLTALE_DIAG_CAUSES_H
#define TELLTALE_DIAG_CAUSES_H

#include "diag/evidence.h"

struct figure {
    const char *key;   /* in --json, unit included: "hold_slow_ms" */
    const char *label; /* for people */
    const char *unit;  /* "ms", "%", "" */
    double value;
};
enum { FIGURES_MAX = 12, FINDING_TEXT = 320 };

enum cause_kind {
    CAUSE_FAULT,    /* something to change */
    CAUSE_ORDINARY  /* what a load of this kind does to requests; named, but not blamed */
};

struct interval {
    double low, high; /* 95 % */
};

struct cause;
struct finding {
    const struct cause *cause;
    double slow_ns, middle_ns;       /* mean of the cause's part of a request's time */
    double share_of_total;           /* of the slow requests' time */
    double share_of_excess;          /* of slow less middle; 0 where that is nothing */
    struct interval total_interval, excess_interval;
    bool is_by_excess;               /* which of the two ranks it */
    double score;
    bool is_large, holds;            /* explains enough; its discriminators hold */
    struct figure figures[FIGURES_MAX];
    size_t figure_count;
    char why_not[FINDING_TEXT];      /* when a discriminator fails */
    char advice[FINDING_TEXT];
    double expected_ns;              /* mean of the slow ones without it; 0: not computed */
};

struct cause {
    const char *name;   /* stable, for --json */
    const char *title;  /* plain words */
    const char *option; /* to change; "" when none does */
    enum cause_kind kind;
    /* Work that every request needs (tokenizing, decoding) is a cause only where the slow
     * requests have more of it. */
    bool is_work;
    double (*part_ns)(const struct evidence *evidence, const struct run_request *request);
    /* Adds figures, advice, and why_not where it returns false. */
    bool (*holds)(const struct evidence *evidence, struct finding *finding);
};

extern const struct cause CAUSES[];
size_t cause_count(void);

/* What makes decoding these pictures cheaper, as the end of a sentence. jpeg_scaling is advised
 * where at least half of them are JPEGs that it would decode smaller. */
const char *pictures_remedy(const struct group *group);

#endif
