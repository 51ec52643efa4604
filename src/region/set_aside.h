/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be read of a region on disk is taken out of it, so that it opens and serves the rest. For a
 * repair of a folder that nobody uses.
 *
 *   a manifest without a valid slot     its slots are moved; the folder is believed then
 *   a file that is damaged              out of the manifest, and moved; its cells are lost to readers
 *   a file that is missing              out of the manifest
 *
 * MOB files and what is only unusual stay. A crash between two steps leaves a region that is as damaged as
 * before, or less.
 */
#ifndef RQ_REGION_SET_ASIDE_H
#define RQ_REGION_SET_ASIDE_H

#include "region/region_info.h"
#include "vfs/vfs.h"

typedef struct rq_set_aside {
    void (*tell)(void *ctx, const char *place, const char *text);
    /* Moves a file out of the way. NULL: nothing is done, only told. */
    rq_err (*move)(void *ctx, const char *path, rq_error *why);
    void *ctx;
} rq_set_aside;

/* *ret_count grows by what was told. Blocks; reads every block of every file. */
RQ_NODISCARD
rq_err rq_region_set_aside(rq_vfs *vfs, const rq_region_info *info, const rq_set_aside *calls,
                           uint64_t *ret_count, rq_error *why);

#endif
