/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef RQ_VFS_VFS_PRIV_H
#define RQ_VFS_VFS_PRIV_H

#include "vfs/vfs.h"

#define RQ_PATH_MAX 2048 /* with the closing NUL */

/* Makes the path's name durable: syncs its folder. */
RQ_NODISCARD
rq_err rq__vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why);

#endif
