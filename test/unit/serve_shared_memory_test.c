/* Registered regions of shared memory: names, bounds, copies, objects that shrink. */
#include "serve/shared_memory.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { OBJECT_BYTES = 256 };

struct fixture {
    struct shared_memory *shared;
    struct arena arena;
    struct err err;
    char key[64];
    int fd;
};

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    f->shared = shared_memory_create(3);
    arena_init(&f->arena);
    (void)snprintf(f->key, sizeof f->key, "/telltale_test_%d", (int)getpid());
    f->fd = shm_open(f->key, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(f->fd >= 0);
    assert_int_equal(ftruncate(f->fd, OBJECT_BYTES), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    shared_memory_free(f->shared);
    arena_done(&f->arena);
    (void)shm_unlink(f->key);
    (void)close(f->fd);
    free(f);
    return 0;
}

static enum status add(struct fixture *f, const char *name, uint64_t offset, uint64_t size) {
    return shared_memory_register(f->shared, view_of(name), view_of(f->key), offset, size, &f->err);
}

static struct shared_place at(const char *name, uint64_t offset, uint64_t size) {
    return (struct shared_place){.region = view_of(name), .offset = offset, .size = size};
}

static void reads_and_writes_where_the_region_lies(void **state) {
    struct fixture *f = *state;
    char bytes[4] = "";
    assert_int_equal(add(f, "a", 16, 64), ST_OK);
    assert_int_equal(pwrite(f->fd, "WXYZ", 4, 16 + 8), 4);
    const struct shared_place place = at("a", 8, 4);
    assert_int_equal(shared_memory_read(f->shared, &place, bytes, &f->err), ST_OK);
    assert_memory_equal(bytes, "WXYZ", 4);
    assert_int_equal(shared_memory_write(f->shared, &place, "12", 2, &f->err), ST_OK);
    assert_int_equal(pread(f->fd, bytes, 4, 16 + 8), 4);
    assert_memory_equal(bytes, "12YZ", 4);
}

static void one_object_may_have_several_regions(void **state) {
    struct fixture *f = *state;
    struct shared_region *list = NULL;
    size_t count = 0;
    assert_int_equal(add(f, "b", 128, 128), ST_OK);
    assert_int_equal(add(f, "a", 0, 128), ST_OK);
    assert_int_equal(
        shared_memory_list(f->shared, view_of(""), &f->arena, &list, &count, &f->err), ST_OK);
    assert_int_equal(count, 2);
    assert_true(view_is(list[0].name, "a") && view_is(list[1].name, "b"));
    assert_true(view_is(list[1].key, f->key));
    assert_int_equal(list[1].offset, 128);
    assert_int_equal(list[1].byte_size, 128);
    assert_int_equal(
        shared_memory_list(f->shared, view_of("b"), &f->arena, &list, &count, &f->err), ST_OK);
    assert_int_equal(count, 1);
}

static void an_unregistered_region_is_unknown(void **state) {
    struct fixture *f = *state;
    struct shared_region *list = NULL;
    size_t count = 0;
    assert_int_equal(add(f, "a", 0, 8), ST_OK);
    shared_memory_unregister(f->shared, view_of("never was"));
    shared_memory_unregister(f->shared, view_of("a"));
    assert_int_equal(
        shared_memory_list(f->shared, view_of("a"), &f->arena, &list, &count, &f->err),
        ST_NOT_FOUND);
    const struct shared_place place = at("a", 0, 8);
    assert_int_equal(shared_memory_check(f->shared, &place, &f->err), ST_INVALID);
    assert_string_equal(f->err.text, "no shared memory region \"a\" is registered");
    assert_int_equal(add(f, "a", 0, 8), ST_OK);
    assert_int_equal(add(f, "b", 0, 8), ST_OK);
    shared_memory_unregister(f->shared, view_of(""));
    assert_int_equal(
        shared_memory_list(f->shared, view_of(""), &f->arena, &list, &count, &f->err), ST_OK);
    assert_int_equal(count, 0);
}

static void refuses_what_lies_outside_the_object(void **state) {
    struct fixture *f = *state;
    static const struct { uint64_t offset, size; } BAD[] = {
        {0, OBJECT_BYTES + 1}, {OBJECT_BYTES, 1}, {OBJECT_BYTES + 1, 1}, {1, OBJECT_BYTES},
        {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {8, 0}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_int_equal(add(f, "a", BAD[i].offset, BAD[i].size), ST_INVALID);
    assert_int_equal(add(f, "a", 0, OBJECT_BYTES), ST_OK);
}

static void refuses_places_outside_the_region(void **state) {
    struct fixture *f = *state;
    char byte = 0;
    static const struct { uint64_t offset, size; } BAD[] = {
        {0, 65}, {64, 1}, {65, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}};
    assert_int_equal(add(f, "a", 0, 64), ST_OK);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        const struct shared_place place = at("a", BAD[i].offset, BAD[i].size);
        assert_int_equal(shared_memory_check(f->shared, &place, &f->err), ST_INVALID);
        assert_int_equal(shared_memory_read(f->shared, &place, &byte, &f->err), ST_INVALID);
        assert_int_equal(shared_memory_write(f->shared, &place, &byte, 0, &f->err), ST_INVALID);
    }
    const struct shared_place whole = at("a", 64, 0);
    assert_int_equal(shared_memory_check(f->shared, &whole, &f->err), ST_OK);
}

static void refuses_a_tensor_larger_than_its_place(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "a", 0, 64), ST_OK);
    const struct shared_place place = at("a", 0, 4);
    assert_int_equal(shared_memory_write(f->shared, &place, "12345", 5, &f->err), ST_INVALID);
    assert_string_equal(f->err.text, "region \"a\": shared_memory_byte_size is 4, the tensor has "
                                     "5 bytes");
}

static void an_object_that_shrank_is_an_error_and_stays_small(void **state) {
    struct fixture *f = *state;
    char bytes[OBJECT_BYTES];
    assert_int_equal(add(f, "a", 0, OBJECT_BYTES), ST_OK);
    assert_int_equal(ftruncate(f->fd, 100), 0);
    const struct shared_place place = at("a", 0, OBJECT_BYTES);
    assert_int_equal(shared_memory_read(f->shared, &place, bytes, &f->err), ST_INVALID);
    assert_non_null(strstr(f->err.text, "has become smaller"));
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(shared_memory_write(f->shared, &place, bytes, sizeof bytes, &f->err),
                     ST_INVALID);
    assert_int_equal(lseek(f->fd, 0, SEEK_END), 100);
}

static void refuses_names_and_keys_that_could_mean_something_else(void **state) {
    struct fixture *f = *state;
    static const char *const KEYS[] = {"", "/", "//", "..", "/..", ".", "/../etc/passwd", "a/b",
                                       "/a/", "a\nb", "/dev/shm/x"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        assert_int_equal(
            shared_memory_register(f->shared, view_of("a"), view_of(KEYS[i]), 0, 1, &f->err),
            ST_INVALID);
        assert_non_null(strstr(f->err.text, "is no name for a shared memory object"));
    }
    char name[SHARED_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(add(f, name, 0, 1), ST_INVALID);
    assert_int_equal(add(f, "", 0, 1), ST_INVALID);
    assert_int_equal(add(f, "a\tb", 0, 1), ST_INVALID);
    assert_int_equal(shared_memory_register(f->shared, (struct view){.data = "a\0b", .size = 3},
                                            view_of(f->key), 0, 1, &f->err), ST_INVALID);
    assert_int_equal(shared_memory_register(f->shared, view_of("a"), view_of(f->key + 1), 0, 1,
                                            &f->err), ST_OK); /* without its slash */
}

static void tells_of_an_object_that_is_not_there(void **state) {
    struct fixture *f = *state;
    assert_int_equal(shared_memory_register(f->shared, view_of("a"), view_of("/telltale_none"), 0, 1,
                                            &f->err), ST_NOT_FOUND);
    assert_string_equal(f->err.text, "shared memory object \"/telltale_none\" cannot be opened: No "
                                     "such file or directory");
}

static void refuses_a_second_of_one_name_and_more_than_the_limit(void **state) {
    struct fixture *f = *state;
    assert_int_equal(add(f, "a", 0, 8), ST_OK);
    assert_int_equal(add(f, "a", 0, 8), ST_INVALID);
    assert_non_null(strstr(f->err.text, "is registered already"));
    assert_int_equal(add(f, "b", 0, 8), ST_OK);
    assert_int_equal(add(f, "c", 0, 8), ST_OK);
    assert_int_equal(add(f, "d", 0, 8), ST_INVALID);
    assert_non_null(strstr(f->err.text, "--max-shared-regions"));
}

static void takes_none_where_it_is_switched_off(void **state) {
    struct fixture *f = *state;
    struct shared_memory *off = shared_memory_create(0);
    assert_int_equal(shared_memory_register(off, view_of("a"), view_of(f->key), 0, 8, &f->err),
                     ST_UNSUPPORTED);
    shared_memory_free(off);
}

int main(void) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(reads_and_writes_where_the_region_lies),
        CASE(one_object_may_have_several_regions),
        CASE(an_unregistered_region_is_unknown),
        CASE(refuses_what_lies_outside_the_object),
        CASE(refuses_places_outside_the_region),
        CASE(refuses_a_tensor_larger_than_its_place),
        CASE(an_object_that_shrank_is_an_error_and_stays_small),
        CASE(refuses_names_and_keys_that_could_mean_something_else),
        CASE(tells_of_an_object_that_is_not_there),
        CASE(refuses_a_second_of_one_name_and_more_than_the_limit),
        CASE(takes_none_where_it_is_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
