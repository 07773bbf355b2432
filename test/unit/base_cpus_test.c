/* base/cpus.h: quotas as files of every layout, in a directory of fixtures. */
#include "base/cpus.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct fixture {
    char root[64];
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    strcpy(fixture->root, "/tmp/telltale_cpus_XXXXXX");
    *state = fixture;
    return mkdtemp(fixture->root) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    const int rc = nftw(fixture->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return rc;
}

/* Writes text to path under the root, its directories made. */
static void put(const struct fixture *fixture, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof(full), "%s%s", fixture->root, path);
    for (char *slash = full + strlen(fixture->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void counts_the_affinity_mask_where_there_are_no_cgroups(void **state) {
    const struct fixture *fixture = *state;
    assert_int_equal(cpus_under(fixture->root, 6), 6);
    assert_int_equal(cpus_under(fixture->root, 0), 1);
}

static void rounds_a_v2_quota_up(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup", "0::/app\n");
    put(fixture, "/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 2);
    put(fixture, "/sys/fs/cgroup/app/cpu.max", "10000 100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 1);
    put(fixture, "/sys/fs/cgroup/app/cpu.max", "max 100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 16);
}

static void takes_the_smallest_quota_on_the_way_up(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup", "0::/pod/app\n");
    put(fixture, "/sys/fs/cgroup/pod/app/cpu.max", "800000 100000\n");
    put(fixture, "/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 3);
    assert_int_equal(cpus_under(fixture->root, 2), 2);
}

static void reads_the_mount_when_the_path_is_the_hosts(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup", "0::/docker/0123/\n");
    put(fixture, "/sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 4);
    put(fixture, "/proc/self/cgroup", "0::/../../elsewhere\n");
    assert_int_equal(cpus_under(fixture->root, 16), 4);
    put(fixture, "/proc/self/cgroup", "0::/\n");
    assert_int_equal(cpus_under(fixture->root, 16), 4);
}

static void reads_a_v1_quota(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup",
        "12:cpuset:/app\n4:cpu,cpuacct:/app\n3:memory:/app\n0::/nothing\n");
    put(fixture, "/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "250000\n");
    put(fixture, "/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 3);
    put(fixture, "/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(cpus_under(fixture->root, 16), 16);
}

static void reads_v1_under_the_short_mount_name(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup", "4:cpuacct,cpu:/app\n");
    put(fixture, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n");
    put(fixture, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_under(fixture->root, 16), 5);
}

static void ignores_the_cpuset_controller_and_odd_files(void **state) {
    const struct fixture *fixture = *state;
    put(fixture, "/proc/self/cgroup", "\nnonsense\n1:cpuset:/a\n2:xcpu,cpux:/a\n0:\n0::/a\n");
    put(fixture, "/sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "100000\n");
    put(fixture, "/sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n");
    put(fixture, "/sys/fs/cgroup/a/cpu.max", "soon\n");
    put(fixture, "/sys/fs/cgroup/cpu.max", "100000 0\n");
    assert_int_equal(cpus_under(fixture->root, 16), 16);
}

static void finds_at_least_one_here(void **state) {
    (void)state;
    assert_true(cpus_available() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
        WITH_FIXTURE(counts_the_affinity_mask_where_there_are_no_cgroups),
        WITH_FIXTURE(rounds_a_v2_quota_up),
        WITH_FIXTURE(takes_the_smallest_quota_on_the_way_up),
        WITH_FIXTURE(reads_the_mount_when_the_path_is_the_hosts),
        WITH_FIXTURE(reads_a_v1_quota),
        WITH_FIXTURE(reads_v1_under_the_short_mount_name),
        WITH_FIXTURE(ignores_the_cpuset_controller_and_odd_files),
#undef WITH_FIXTURE
        cmocka_unit_test(finds_at_least_one_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
