/* How many processors this process may really use: the smallest of the affinity mask and the
 * cgroup quota (v2 cpu.max, then v1 cpu.cfs_quota_us), never the host's count. */
#ifndef TELLTALE_BASE_CPUS_H
#define TELLTALE_BASE_CPUS_H

/* At least 1; a quota of 1.5 counts as 2. */
unsigned cpus_available(void);
/* The same with the files /proc/self/cgroup and /sys/fs/cgroup looked for under root ("" in
 * earnest, a directory of fixtures in tests) and the affinity mask's count given. */
unsigned cpus_under(const char *root, unsigned affinity);

#endif
