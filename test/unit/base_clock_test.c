/* base/clock.h: the clocks agree with what they are named after. */
#include "base/clock.h"
#include <time.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void never_goes_backwards(void **state) {
    (void)state;
    uint64_t last = mono_ns();
    assert_true(last > 0);
    for (int i = 0; i < 100000; i++) {
        const uint64_t now = mono_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void is_the_kernels_monotonic_clock(void **state) {
    (void)state;
    struct timespec kernel;
    const uint64_t before = mono_ns();
    clock_gettime(CLOCK_MONOTONIC, &kernel);
    const uint64_t after = mono_ns();
    const uint64_t between = (uint64_t)kernel.tv_sec * 1000000000u + (uint64_t)kernel.tv_nsec;
    assert_true(before <= between && between <= after);
}

static void tells_the_wall_time(void **state) {
    (void)state;
    const uint64_t before = (uint64_t)time(NULL); /* the coarse clock, never ahead */
    assert_true(before >= 1700000000u);
    assert_true(wall_ns() / 1000000000u - before <= 2);
}

static void counts_cpu_time_of_work_done(void **state) {
    (void)state;
    const uint64_t process_before = process_cpu_ns(); /* around the thread's: it holds it */
    const uint64_t thread_before = thread_cpu_ns();
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < 3000000; i++) {
        sum = sum + i;
    }
    const uint64_t thread_used = thread_cpu_ns() - thread_before;
    assert_true(thread_used > 100000);
    assert_true(process_cpu_ns() - process_before >= thread_used);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_backwards),
        cmocka_unit_test(is_the_kernels_monotonic_clock),
        cmocka_unit_test(tells_the_wall_time),
        cmocka_unit_test(counts_cpu_time_of_work_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
