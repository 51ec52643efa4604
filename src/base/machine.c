/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits and use; contract in machine.h. /proc/self/cgroup lists the groups of the process,
 * one per line: "0::/path" for version 2, "N:memory:/path" for version 1. In a container the path
 * is often invisible and the top of the mount is the container's own group, so the top is read in
 * any case. */
#include "base/machine.h"
#include "base/clock.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_SIZE 4096

/* "max" in version 2, and a number near 2^63 in version 1, mean no limit. */
static uint64_t read_limit(const char *path)
{
    char text[32] = "";
    FILE *f = fopen(path, "re");
    if (f == NULL) return UINT64_MAX;
    bool got = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    return !got || end == text || v > (UINT64_C(1) << 60) ? UINT64_MAX : v;
}

/* The lowest limit of the group and its ancestors. */
static uint64_t lowest_limit(const char *root, const char *mount, const char *group,
                             const char *file)
{
    char path[PATH_SIZE], up[PATH_SIZE];
    uint64_t lowest = UINT64_MAX;
    snprintf(up, sizeof up, "%s", group);
    for (;;) {
        size_t len = strlen(up);
        while (len > 0 && up[len - 1] == '/')
            up[--len] = '\0';
        int n = snprintf(path, sizeof path, "%s%s%s/%s", root, mount, up, file);
        uint64_t v = n > 0 && (size_t)n < sizeof path ? read_limit(path) : UINT64_MAX;
        if (v < lowest) lowest = v;
        char *slash = strrchr(up, '/');
        if (slash == NULL) return lowest;
        *slash = '\0';
    }
}

static bool lists_memory(const char *controllers)
{
    for (const char *c = controllers; c != NULL; c = strchr(c, ',')) {
        c += *c == ',';
        if (strcspn(c, ",") == 6 && strncmp(c, "memory", 6) == 0) return true;
    }
    return false;
}

/* A line "number:controllers:path". */
static uint64_t limit_of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) return UINT64_MAX;
    *controllers++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(line, "0") == 0 && controllers[0] == '\0')
        return lowest_limit(root, "/sys/fs/cgroup", group, "memory.max");
    if (!lists_memory(controllers)) return UINT64_MAX;
    return lowest_limit(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
}

uint64_t rq__cgroup_memory_limit(const char *root)
{
    char path[PATH_SIZE], line[PATH_SIZE];
    uint64_t lowest = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        uint64_t v = limit_of_line(root, line);
        if (v < lowest) lowest = v;
    }
    if (f != NULL) fclose(f);
    return lowest;
}

uint64_t rq_machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages <= 0 || page <= 0 ? 0 : (uint64_t)pages * (uint64_t)page;
    uint64_t limit = rq__cgroup_memory_limit("");
    if (limit == UINT64_MAX) return all;
    return all == 0 || limit < all ? limit : all;
}

/* --- what the process uses -------------------------------------------------------------------- */

static void read_pages(uint64_t *ret_virtual, uint64_t *ret_resident)
{
    unsigned long long size = 0, resident = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "re");
    int got = f == NULL ? 0 : fscanf(f, "%llu %llu", &size, &resident);
    if (f != NULL) fclose(f);
    *ret_virtual = got == 2 ? size * page : 0;
    *ret_resident = got == 2 ? resident * page : 0;
}

uint64_t rq_machine_resident_bytes(void)
{
    uint64_t all, resident;
    read_pages(&all, &resident);
    return resident;
}

/* The names in the folder but for `.` and `..`. */
static uint64_t count_names(const char *path)
{
    uint64_t count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir))
        count += d->d_name[0] != '.';
    closedir(dir);
    return count;
}

void rq_machine_process(rq_process_usage *ret)
{
    struct rlimit files = {0};
    *ret = (rq_process_usage){0};
    read_pages(&ret->virtual_bytes, &ret->resident_bytes);
    ret->cpu_ns = rq_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) ret->open_files_max = files.rlim_cur;
    uint64_t open_files = count_names("/proc/self/fd");
    ret->open_files = open_files > 0 ? open_files - 1 : 0; /* without the folder itself */
    ret->threads = count_names("/proc/self/task");
}
