/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef RQ_VFS_VFS_PRIV_H
#define RQ_VFS_VFS_PRIV_H

#include <sys/types.h>

#include "vfs/vfs.h"

#define RQ_PATH_MAX 2048 /* with the closing NUL */

/* Makes the path's name durable: syncs its folder. */
RQ_NODISCARD
rq_err rq__vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why);

/* --- terms of POSIX (posix_terms.c) ------------------------------------------------------------ */
rq_err rq__errno_code(int e);
/* "a folder", "a FIFO", ... */
const char *rq__file_kind(mode_t mode);

/* The names of a folder, in the arena. */
typedef struct rq__entry_list {
    rq_arena *arena;
    rq_dir_entry *ptr;
    size_t count, cap;
} rq__entry_list;
/* Adds a copy of the name. False: out of memory. */
bool rq__entry_add(rq__entry_list *l, const char *name, bool is_dir, bool is_link);

#endif
