/* Reads /proc/cpuinfo, uname and sysconf. Any thread. Invariant: never fails; what cannot be
 * read stays empty. */
#include "load/host.h"

#include "base/cpus.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_cpu(char *out, size_t out_size) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL) return;
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *colon = strchr(line, ':');
        if (colon == NULL) continue;
        snprintf(out, out_size, "%s", colon + 1 + strspn(colon + 1, " "));
        out[strcspn(out, "\n")] = 0;
        break;
    }
    fclose(file);
}

void host_read(struct host *out) {
    *out = (struct host){0};
    read_cpu(out->cpu, sizeof out->cpu);
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(out->kernel, sizeof out->kernel, "%.30s %.60s %.30s", name.sysname, name.release,
                 name.machine);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    out->processors = online > 0 ? (unsigned)online : 0;
    out->processors_usable = cpus_available();
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) out->memory_bytes = (uint64_t)pages * (uint64_t)page;
}
