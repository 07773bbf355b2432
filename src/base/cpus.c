/* Processors we may use. Called at start, any thread. Invariant: the result is never above the
 * affinity mask's count and never 0, however odd the files are.
 *
 * A quota binds everything below it, so each level from our own cgroup up to the mount's root
 * is looked at and the smallest counts. In a container the path in /proc/self/cgroup may be the
 * host's, of which only the upper end exists here: the walk up finds that end. */
#include "base/cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    const bool was_read = fgets(line, size, file) != NULL;
    fclose(file);
    return was_read;
}

/* quota / period rounded up, 0 when the numbers set no limit. */
static unsigned cpus_of(long long quota, long long period) {
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    const long long cpus = quota / period + (quota % period > 0 ? 1 : 0);
    return cpus > 1000000 ? 0 : (unsigned)cpus;
}

/* cpu.max: "max 100000" or "150000 100000". */
static unsigned quota_v2(const char *directory) {
    char path[PATH_BYTES + 32];
    char line[128];
    long long quota;
    long long period;
    snprintf(path, sizeof(path), "%s/cpu.max", directory);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld %lld", &quota, &period) != 2) {
        return 0;
    }
    return cpus_of(quota, period);
}

/* cpu.cfs_quota_us: -1 when there is none. */
static unsigned quota_v1(const char *directory) {
    char path[PATH_BYTES + 32];
    char line[128];
    long long quota;
    long long period;
    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &quota) != 1) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%lld", &period) != 1) {
        return 0;
    }
    return cpus_of(quota, period);
}

/* The smallest quota from mount + group up to mount itself; 0: none. */
static unsigned smallest_quota(const char *mount, const char *group,
                               unsigned (*quota)(const char *directory)) {
    char path[PATH_BYTES];
    /* A path with ".." names a cgroup outside our namespace: only the mount is of use. */
    const bool is_outside = strstr(group, "..") != NULL;
    const int length = snprintf(path, sizeof(path), "%s%s", mount, is_outside ? "" : group);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return 0;
    }
    const size_t mount_length = strlen(mount);
    unsigned smallest = 0;
    for (;;) {
        const unsigned cpus = quota(path);
        if (cpus > 0 && (smallest == 0 || cpus < smallest)) {
            smallest = cpus;
        }
        char *slash = strrchr(path, '/');
        if (strlen(path) <= mount_length || slash == NULL) {
            return smallest;
        }
        *slash = '\0';
    }
}

/* True when the comma-separated list of a v1 line holds the cpu controller. */
static bool has_cpu_controller(const char *list) {
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 3 && memcmp(at, "cpu", 3) == 0) {
            return true;
        }
        at += length;
        if (*at == '\0') {
            return false;
        }
    }
}

/* One line of /proc/self/cgroup: "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1). */
static unsigned quota_of_line(const char *root, char *line) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return 0;
    }
    controllers++;
    *group++ = '\0';
    char mount[512];
    if (*controllers == '\0') {
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
        const unsigned cpus = smallest_quota(mount, group, quota_v2);
        if (cpus > 0) {
            return cpus;
        }
        snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/unified", root); /* hybrid layout */
        return smallest_quota(mount, group, quota_v2);
    }
    if (!has_cpu_controller(controllers)) {
        return 0;
    }
    snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers);
    const unsigned cpus = smallest_quota(mount, group, quota_v1);
    if (cpus > 0) {
        return cpus;
    }
    snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
    return smallest_quota(mount, group, quota_v1);
}

unsigned cpus_under(const char *root, unsigned affinity) {
    unsigned cpus = affinity < 1 ? 1 : affinity;
    char line[PATH_BYTES];
    snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    if (file == NULL) {
        return cpus;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        const unsigned quota = quota_of_line(root, line);
        cpus = quota > 0 && quota < cpus ? quota : cpus;
    }
    fclose(file);
    return cpus;
}

static unsigned affinity_count(void) {
    /* A fixed set holds 1024 processors; larger machines need a larger one (EINVAL). */
    for (int most = 1024; most <= 1 << 16; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        if (set == NULL) {
            return 1;
        }
        const size_t size = CPU_ALLOC_SIZE((size_t)most);
        const bool was_read = sched_getaffinity(0, size, set) == 0;
        const int count = was_read ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (was_read) {
            return count < 1 ? 1 : (unsigned)count;
        }
    }
    return 1;
}

unsigned cpus_available(void) { return cpus_under("", affinity_count()); }
