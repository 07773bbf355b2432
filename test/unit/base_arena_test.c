/* base/arena.h: alignment, reuse, and what happens when memory is out. */
#include "base/arena.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The sanitizers would end the program where malloc gives NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static void aligns_every_allocation(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (size_t size = 0; size < 300; size++) {
        assert_int_equal((uintptr_t)arena_alloc(&arena, size) % 16, 0);
        assert_int_equal((uintptr_t)arena_alloc_aligned64(&arena, size) % 64, 0);
    }
    arena_done(&arena);
}

static void keeps_allocations_apart(void **state) {
    (void)state;
    struct arena arena;
    unsigned char *parts[400];
    arena_init(&arena);
    for (size_t i = 0; i < 400; i++) {
        const size_t size = i * 37 % 5000;
        parts[i] = arena_alloc(&arena, size);
        assert_non_null(parts[i]);
        memset(parts[i], (int)(i & 0xFF), size);
    }
    for (size_t i = 0; i < 400; i++) {
        const size_t size = i * 37 % 5000;
        for (size_t j = 0; j < size; j++) {
            assert_int_equal(parts[i][j], i & 0xFF);
        }
    }
    arena_done(&arena);
}

static void gives_a_unique_pointer_for_size_0(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const void *first = arena_alloc(&arena, 0);
    const void *second = arena_alloc(&arena, 0);
    assert_non_null(first);
    assert_ptr_not_equal(first, second);
    arena_done(&arena);
}

static void goes_on_in_its_block_after_a_large_allocation(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    char *before = arena_alloc(&arena, 16);
    char *large = arena_alloc(&arena, 10 << 20);
    char *after = arena_alloc(&arena, 16);
    assert_non_null(large);
    memset(large, 1, 10 << 20);
    assert_ptr_equal(after, before + 16);
    arena_done(&arena);
}

static void reuses_one_block_after_clear(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    const void *first = arena_alloc(&arena, 100);
    assert_int_equal(arena.used_bytes, 100);
    arena_clear(&arena);
    assert_int_equal(arena.used_bytes, 0);
    assert_ptr_equal(arena_alloc(&arena, 100), first);
    arena_done(&arena);
}

static void does_not_keep_a_huge_block_after_clear(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_non_null(arena_alloc(&arena, 8 << 20));
    arena_clear(&arena);
    assert_null(arena.first);
    assert_non_null(arena_alloc(&arena, 8));
    arena_done(&arena);
}

static void zeroes_reused_memory(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    memset(arena_alloc(&arena, 64), 0xAA, 64);
    arena_clear(&arena);
    const unsigned char *zeroed = arena_array(&arena, 16, 4);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(zeroed[i], 0);
    }
    arena_done(&arena);
}

static void gives_null_when_memory_is_out_and_works_on(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX / 4));
    assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(arena_zalloc(&arena, SIZE_MAX - 63));
    assert_null(arena_copy(&arena, (struct view){.data = "", .size = SIZE_MAX}));
    assert_int_equal(arena.used_bytes, 0);
    assert_string_equal(arena_copy(&arena, view_of("still here")), "still here");
    arena_done(&arena);
}

static void copies_and_terminates_a_view(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(arena_copy(&arena, (struct view){.data = "abcdef", .size = 3}), "abc");
    assert_string_equal(arena_copy(&arena, (struct view){.data = NULL, .size = 0}), "");
    arena_done(&arena);
}

static void is_done_when_zeroed(void **state) {
    (void)state;
    struct arena arena = {.first = NULL};
    arena_clear(&arena);
    arena_done(&arena);
    arena_done(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligns_every_allocation),
        cmocka_unit_test(keeps_allocations_apart),
        cmocka_unit_test(gives_a_unique_pointer_for_size_0),
        cmocka_unit_test(goes_on_in_its_block_after_a_large_allocation),
        cmocka_unit_test(reuses_one_block_after_clear),
        cmocka_unit_test(does_not_keep_a_huge_block_after_clear),
        cmocka_unit_test(zeroes_reused_memory),
        cmocka_unit_test(gives_null_when_memory_is_out_and_works_on),
        cmocka_unit_test(copies_and_terminates_a_view),
        cmocka_unit_test(is_done_when_zeroed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
