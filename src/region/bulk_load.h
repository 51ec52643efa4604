/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk load: finished HFiles become store files of a region; all files of a call or none.
 *
 * All files of a call get one number of the region's sequence, in their names as in HBase (<32 hex
 * digits>_SeqId_<n>_): among cells with the same key and timestamp theirs are newer than cells
 * written before the load began and older than cells written after. Reads that began before the
 * load ended do not see the files, whatever their number (rq_store_file.visible_from): a scanner
 * sees all of a load, in all families, or nothing.
 */
#ifndef RQ_REGION_BULK_LOAD_H
#define RQ_REGION_BULK_LOAD_H

#include "region/region.h"
#include "vfs/vfs.h"

typedef struct rq_bulk_file {
    rq_slice family;
    rq_vfs *source;   /* the file's vfs; may be other storage than the region's */
    const char *path; /* path in it, opened without following symbolic links */
    const char *name; /* as given by the client, for messages */
} rq_bulk_file;

typedef struct rq_bulk_load {
    const rq_bulk_file *files;
    size_t file_count;
    bool assign_seqid; /* else the names have no number, and the cells count as the oldest */
    bool copy;         /* keep the sources; they are also kept if they cannot be linked */
    /* The load is to be replicated: a record of it goes into the log if a family has a replication
     * scope. The files then get a number even without assign_seqid, because the archive's cleaner
     * recognizes bulk-loaded files by it. */
    bool ships;
    rq_slice clusters; /* rq_wal_record.cluster_ids */
    const char *const
        *cluster_ids; /* which have loaded the files, this one included; for the event */
    size_t cluster_id_count;
} rq_bulk_load;

/*
 * Loads the files. Blocks; runs on a pool's thread. *ret_loaded false: a file's keys are not in the
 * region; nothing was done, and the client must find the right region. RQ_E_DO_NOT_RETRY: no such
 * family, or a system table. RQ_E_INVALID_HFILE, RQ_E_CORRUPT, RQ_E_UNSUPPORTED: the named file
 * cannot be loaded. RQ_E_CONFLICT: a file was replaced, renamed or written during the load, or another
 * call is copying it. After any failure the sources are where they were. None of the call's cells is
 * visible then, unless the log failed or the region closed after the commit.
 */
RQ_NODISCARD
rq_err rq_region_bulk_load(rq_region *r, const rq_bulk_load *load, bool *ret_loaded, rq_error *why);

#endif
