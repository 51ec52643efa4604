/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine and the control groups of the process leave it, and what the process uses. */
#ifndef RQ_BASE_MACHINE_H
#define RQ_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory that this process can have: the machine's, or the limit of its control group (v2
 * memory.max, v1 memory.limit_in_bytes; also of the groups above) if that is lower. 0: not known. */
uint64_t rq_machine_memory(void);
/* The limit alone, with proc and sys below `root` ("": the real ones); UINT64_MAX: there is none. */
uint64_t rq_cgroup_memory_limit(const char *root);

/* What the process uses now. What cannot be read is 0. Lists the process' files: a millisecond where
 * there are thousands. */
typedef struct rq_process_usage {
    uint64_t resident_bytes, virtual_bytes;
    uint64_t cpu_ns; /* user and system, of all threads */
    uint64_t open_files, open_files_max, threads;
} rq_process_usage;
void rq_machine_process(rq_process_usage *ret);
/* Its resident memory alone. */
uint64_t rq_machine_resident_bytes(void);

#endif
