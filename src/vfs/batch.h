/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of files and folders that are made durable together. A batch is a vfs on top of another:
 * creations, writes, links and removals are done at once, and syncs are only recorded.
 * rq_vfs_batch_end then syncs each file and folder once, several at a time, so that a device is
 * waited for once or twice instead of ten times.
 *
 * If an interrupted attempt is repeated, the new batch also makes durable what the former attempt has
 * done: a file or folder that exists already when it is created, or is absent when it is removed, is
 * synced like one that the batch has changed itself; of a folder, the names of all folders above it, too.
 *
 * Before rq_vfs_batch_end nothing is durable and there is no order: only for files to which nothing
 * refers yet, and for the removal of files to which nothing refers any more. Not for rq_vfs_cas,
 * whose mark says that the bytes are durable.
 *
 * Threads: any number may use a batch; one calls rq_vfs_batch_end, when the others have finished.
 */
#ifndef RQ_VFS_BATCH_H
#define RQ_VFS_BATCH_H

#include "base/executor.h"
#include "vfs/vfs.h"

/* `below` outlives the batch. Ended by rq_vfs_batch_end, when no file of it is open; or given up with
 * rq_vfs_free. */
RQ_NODISCARD
rq_err rq_vfs_batch_new(rq_vfs *below, rq_vfs **ret, rq_error *why);
/* Makes all changes of the batch durable, unless `rc` is an error, which is then returned; frees
 * the batch. After an error no change is certain; files whose sync failed must be written again. */
RQ_NODISCARD
rq_err rq_vfs_batch_end(rq_vfs *batch, rq_executor *ex, rq_err rc, rq_error *why);

#endif
