/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of another process on this machine: its CPU time, in nanoseconds over all its threads,
 * and its memory as reported by the kernel. */
#include "load/load_priv.h"

#include <sys/types.h>
#include <time.h>

double rq__process_cpu_s(int pid)
{
    clockid_t clock;
    struct timespec t;
    if (pid <= 0 || clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return -1;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void rq__process_memory(int pid, int64_t *ret_rss, int64_t *ret_peak)
{
    char path[64];
    char line[256];
    long long kilobytes;
    *ret_rss = *ret_peak = -1;
    if (pid <= 0) return;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) return;
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "VmRSS: %lld", &kilobytes) == 1) *ret_rss = kilobytes * 1024;
        if (sscanf(line, "VmHWM: %lld", &kilobytes) == 1) *ret_peak = kilobytes * 1024;
    }
    fclose(f);
}
