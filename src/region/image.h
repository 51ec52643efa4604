/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a data folder's files at one moment: the files that a server would leave if it were
 * killed at that moment after syncing everything. A server can start on a copy of them. The parts
 * come in any order:
 *
 *   folders
 *   small files, with their bytes: files that may change or be removed later (manifests,
 *     descriptors, nonces, references). Manifest and nonces of an open region are read under its
 *     gates
 *   large files, by path and size: they never change. They may move to the archive meanwhile
 *     (rq_retention_archived), and the holder keeps them there
 *   the log up to a position E that is taken last (wal/image.h): replaying it on top of each
 *     region's manifest, whenever that was read, gives the state at E
 *
 * The list leaves out files that no server reads (.rorqual/aside), staging/, the block cache's
 * file, and files in the archive, or about to be moved there after a compaction, to which no link
 * or snapshot refers.
 */
#ifndef RQ_REGION_IMAGE_H
#define RQ_REGION_IMAGE_H

#include "region/engine.h"
#include "vfs/retention.h"
#include "vfs/vfs.h"

typedef enum rq_image_kind {
    RQ_IMAGE_DIR = 'd',
    RQ_IMAGE_BYTES = 'b', /* the content is given */
    RQ_IMAGE_FILE = 'f',  /* immutable: may be linked instead of copied */
    RQ_IMAGE_LOG = 'l',   /* the first bytes of a file that grows, or is used again later */
} rq_image_kind;

typedef struct rq_image_part {
    rq_image_kind kind;
    const char *path;
    uint64_t size;  /* FILE, LOG */
    rq_slice bytes; /* BYTES */
} rq_image_part;

typedef struct rq_image_sink {
    /* The part is valid during the call. */
    rq_err (*take)(void *ctx, const rq_image_part *part, rq_error *why);
    void *ctx;
} rq_image_sink;

/* Lists the files of a running engine. `holder`, which held all files before the call, then holds
 * only the listed ones. Blocks; waits for running flushes too. REQUIRES: no procedure runs a step,
 * and no region is opened or closed meanwhile. */
RQ_NODISCARD
rq_err rq_image_take(rq_engine *e, rq_holder *holder, const rq_image_sink *sink, rq_error *why);
/* Lists the files of a folder on which no server runs. */
RQ_NODISCARD
rq_err rq_image_of_stopped(rq_vfs *vfs, const rq_image_sink *sink, rq_error *why);

#endif
