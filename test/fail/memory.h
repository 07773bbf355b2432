/* Memory and threads that run out on demand: this program's malloc, its like and pthread_create,
 * in front of the real ones (libc's, or the sanitizer's). All threads and all libraries of the
 * test program are served here, so that what fails is whatever comes next, ours or not.
 *
 *     for (struct shortage s = {0}; shortage_next(&s);) {
 *         memory_runs_out(&s);       and from here on: no assert, no printf
 *         ... the thing under test ...
 *         memory_is_back(&s);
 *         ... checks: s.refused tells how many allocations failed ...
 *     }
 *
 * The loop runs with the first allocation failing, then the second, ... until nothing is left to
 * fail; and all of that twice: that one allocation alone, and it and all after it. */
#ifndef TELLTALE_TEST_FAIL_MEMORY_H
#define TELLTALE_TEST_FAIL_MEMORY_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shortage {
    long after;      /* allocations that succeed before the first that does not */
    bool stays;      /* nothing succeeds after that one */
    bool is_started;
    long refused;    /* in the last run */
    long runs;       /* with a failure in them */
};

static _Atomic bool memory_is_limited;
static _Atomic bool memory_stays_out;
static _Atomic long memory_left;
static _Atomic long memory_refused;

/* False in a thread that has not begun yet: a sanitizer allocates there too, and cannot do
 * without. */
static _Thread_local bool memory_is_counted;

/* malloc is called before the thread sanitizer can trace anybody. */
#define BEFORE_ALL __attribute__((no_sanitize("thread")))

BEFORE_ALL static bool memory_allows(void) {
    if (!memory_is_counted || !atomic_load(&memory_is_limited)) {
        return true;
    }
    const long left = atomic_fetch_sub(&memory_left, 1);
    if (left > 0 || (left < 0 && !atomic_load(&memory_stays_out))) {
        return true;
    }
    atomic_fetch_add(&memory_refused, 1);
    errno = ENOMEM;
    return false;
}

/* The sanitizers' own, where one is linked; else libc's. */
extern void *__interceptor_malloc(size_t size) __attribute__((weak));
extern void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));
extern void *__interceptor_memalign(size_t alignment, size_t size) __attribute__((weak));
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

BEFORE_ALL static void *real_memalign(size_t alignment, size_t size) {
    return __interceptor_memalign ? __interceptor_memalign(alignment, size)
                                  : __libc_memalign(alignment, size);
}

BEFORE_ALL void *malloc(size_t size) {
    if (!memory_allows()) {
        return NULL;
    }
    return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

BEFORE_ALL void *calloc(size_t count, size_t size) {
    if (!memory_allows()) {
        return NULL;
    }
    return __interceptor_calloc ? __interceptor_calloc(count, size) : __libc_calloc(count, size);
}

BEFORE_ALL void *realloc(void *old, size_t size) {
    if (!memory_allows()) {
        return NULL;
    }
    return __interceptor_realloc ? __interceptor_realloc(old, size) : __libc_realloc(old, size);
}

BEFORE_ALL void *aligned_alloc(size_t alignment, size_t size) {
    return memory_allows() ? real_memalign(alignment, size) : NULL;
}

BEFORE_ALL int posix_memalign(void **out, size_t alignment, size_t size) {
    void *memory = memory_allows() ? real_memalign(alignment, size) : NULL;
    if (memory == NULL) {
        return ENOMEM;
    }
    *out = memory;
    return 0;
}

/* The sanitizers' strdup and strndup would take memory past the functions above. */
#undef strdup
#undef strndup
BEFORE_ALL char *strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

BEFORE_ALL char *strndup(const char *text, size_t limit) {
    const size_t size = strnlen(text, limit);
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

struct beginning {
    void *(*main)(void *argument);
    void *argument;
};

static void *begin_counted(void *argument) {
    const struct beginning beginning = *(struct beginning *)argument;
    free(argument);
    memory_is_counted = true;
    return beginning.main(beginning.argument);
}

static _Atomic long threads_left = -1; /* negative: as many as are wanted */

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*main)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    const bool is_counted = memory_is_counted;
    memory_is_counted = false;
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    }
    struct beginning *beginning = malloc(sizeof *beginning);
    *beginning = (struct beginning){.main = main, .argument = argument};
    memory_is_counted = is_counted;
    const long left = atomic_load(&threads_left);
    if (left > 0) {
        atomic_store(&threads_left, left - 1);
    }
    const int error = left == 0 ? EAGAIN : real(out, attributes, begin_counted, beginning);
    if (error != 0) {
        free(beginning);
    }
    return error;
}

static inline bool shortage_next(struct shortage *shortage) {
    if (!shortage->is_started) {
        *shortage = (struct shortage){.is_started = true};
        return true;
    }
    if (shortage->refused > 0) {
        shortage->runs++;
        shortage->after++;
        return true;
    }
    if (shortage->stays) {
        return false;
    }
    shortage->stays = true;
    shortage->after = 0;
    return true;
}

static inline void memory_runs_out(const struct shortage *shortage) {
    atomic_store(&memory_left, shortage->after);
    atomic_store(&memory_stays_out, shortage->stays);
    atomic_store(&memory_refused, 0);
    memory_is_counted = true;
    atomic_store(&memory_is_limited, true);
}

static inline void memory_is_back(struct shortage *shortage) {
    atomic_store(&memory_is_limited, false);
    shortage->refused = atomic_load(&memory_refused);
}

#endif
