/* "did you mean": the name that is nearest to one that was mistyped. Pure. */
#ifndef TELLTALE_BASE_NEAREST_H
#define TELLTALE_BASE_NEAREST_H

struct nearest {
    const char *typed, *best; /* best: NULL while none is near enough to be meant */
    unsigned least;
};

/* typed must stay while the search goes on. */
void nearest_begin(struct nearest *search, const char *typed);
/* Looks at one more name; also one that typed is the beginning of (3 letters or more). */
void nearest_try(struct nearest *search, const char *name);

#endif
