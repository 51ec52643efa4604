/* SPDX-License-Identifier: Apache-2.0 */
/* A vfs in memory: what is written is there until the vfs is freed. For databases without files
 * (the library's "memory:"). Unlike the simulated disk (sim.h) it loses nothing, and any number of
 * threads may use it. */
#ifndef RQ_VFS_MEMORY_H
#define RQ_VFS_MEMORY_H

#include "vfs/vfs.h"

/* Freed by rq_vfs_free, when every file is closed. */
RQ_NODISCARD rq_err rq_vfs_memory_new(rq_vfs **ret);

#endif
