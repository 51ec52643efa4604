/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes damaged files from a region on disk, so that the region opens and serves the rest. For
 * the repair of a folder that no server uses.
 *
 *   a manifest without a valid slot   moved aside; the region opens with the files in its folder
 *   a damaged file                    removed from the manifest and moved aside; its cells are lost
 *   a missing file                    removed from the manifest
 *
 * MOB files are not moved. A crash between two steps leaves a region that is at most as damaged as
 * before.
 */
#ifndef RQ_REGION_SET_ASIDE_H
#define RQ_REGION_SET_ASIDE_H

#include "region/region_info.h"
#include "vfs/vfs.h"

typedef struct rq_set_aside {
    void (*report)(void *ctx, const char *place, const char *text);
    /* Moves a file aside. NULL: nothing is changed, damage is only reported. */
    rq_err (*move)(void *ctx, const char *path, rq_error *why);
    void *ctx;
} rq_set_aside;

/* Adds the number of calls of report() to *ret_count. Blocks; reads every block of every file. */
RQ_NODISCARD
rq_err rq_region_set_aside(rq_vfs *vfs, const rq_region_info *info, const rq_set_aside *calls,
                           uint64_t *ret_count, rq_error *why);

#endif
