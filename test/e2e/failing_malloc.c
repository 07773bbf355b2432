/* Preloaded by serve_failures.py: the allocations that the program itself makes (not those of
 * libraries: some end the process when they get none) fail from the one on that FAIL_AFTER names,
 * or that one alone where FAIL_ONCE is set. Those made before main count too. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uintptr_t code_begin, code_end; /* of the program */
static _Atomic long left = -1;         /* negative: nothing fails */
static int fails_once;

static int find_code(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) { /* the program comes first */
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            code_begin = info->dlpi_addr + part->p_vaddr;
            code_end = code_begin + part->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *after = getenv("FAIL_AFTER");
    dl_iterate_phdr(find_code, NULL);
    fails_once = getenv("FAIL_ONCE") != NULL;
    atomic_store(&left, after != NULL ? atol(after) + 1 : -1);
}

static int fails(const void *caller) {
    const uintptr_t at = (uintptr_t)caller;
    if (at < code_begin || at >= code_end || atomic_load(&left) < 0) {
        return 0;
    }
    const long now = atomic_fetch_sub(&left, 1) - 1;
    if (now > 0) {
        return 0;
    }
    /* Below 0 `left` says that nothing fails, which is what is wanted after a single failure. */
    atomic_store(&left, fails_once ? -1 : 0);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}
