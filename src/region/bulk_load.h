/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk load: finished HFiles become store files of a region, all of a call or none.
 *
 * The files of a call share one number of the region's sequence, in their names as in HBase
 * (<32 hex digits>_SeqId_<n>_): among cells with the same key and timestamp theirs are newer than
 * what was written before the load began and older than what is written after. Reads that began
 * before the load ended do not see them, whatever their number (rq_store_file.visible_from): a
 * scanner sees all of a load, over all families, or nothing.
 */
#ifndef RQ_REGION_BULK_LOAD_H
#define RQ_REGION_BULK_LOAD_H

#include "region/region.h"
#include "vfs/vfs.h"

typedef struct rq_bulk_file {
    rq_slice family;
    rq_vfs *source;   /* where the file is; it may be other storage than the region's */
    const char *path; /* in it, opened through no symbolic link */
    const char *name; /* as the client said it, for messages */
} rq_bulk_file;

typedef struct rq_bulk_load {
    const rq_bulk_file *files;
    size_t file_count;
    bool assign_seqid; /* else the names carry no number, and the cells count as the oldest */
    bool copy;         /* the sources stay; they do as well where no link can be made */
} rq_bulk_load;

/*
 * Blocking: a pool's thread. *ret_loaded false: a file's keys do not lie in the region, nothing was
 * done; the client looks again where it belongs. RQ_E_DO_NOT_RETRY: no such family.
 * RQ_E_INVALID_HFILE, RQ_E_CORRUPT, RQ_E_UNSUPPORTED: a file that cannot be loaded, by name.
 * RQ_E_CONFLICT: a file that was replaced or written while it was loaded.
 * Whatever fails, the sources are where they were, and none of the call's cells is there.
 */
RQ_NODISCARD
rq_err rq_region_bulk_load(rq_region *r, const rq_bulk_load *load, bool *ret_loaded, rq_error *why);

#endif
