/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the machine and of the process's control groups, and the resources the process uses. */
#ifndef RQ_BASE_MACHINE_H
#define RQ_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory available to this process: the machine's, or the lowest limit of its control
 * groups and their parents (v2 memory.max, v1 memory.limit_in_bytes). 0: unknown. */
uint64_t rq_machine_memory(void);
/* The control groups' limit, with proc and sys below `root` ("": the real ones); UINT64_MAX:
 * none. */
uint64_t rq__cgroup_memory_limit(const char *root);

/* The process's current usage; unreadable values are 0. Lists its open files: 1 ms for
 * thousands. */
typedef struct rq_process_usage {
    uint64_t resident_bytes, virtual_bytes;
    uint64_t cpu_ns; /* user and system, of all threads */
    uint64_t open_files, open_files_max, threads;
} rq_process_usage;
void rq_machine_process(rq_process_usage *ret);
/* The process's resident memory only. */
uint64_t rq_machine_resident_bytes(void);

#endif
