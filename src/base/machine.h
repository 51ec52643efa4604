/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of the machine and the process's control groups. */
#ifndef RQ_BASE_MACHINE_H
#define RQ_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory that this process can have: the machine's, or the limit of its control group (v2
 * memory.max, v1 memory.limit_in_bytes; also of the groups above) if that is lower. 0: not known. */
uint64_t rq_machine_memory(void);
/* The limit alone, with proc and sys below `root` ("": the real ones); UINT64_MAX: there is none. */
uint64_t rq_cgroup_memory_limit(const char *root);

#endif
