/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk load as HBase's tools use it (HBASE: RSRpcServices, SecureBulkLoadManager):
 *
 *    prepare ─► creates a folder below ROOT/staging; its path is the token
 *    load    ─► one op per region with all its files (region/bulk_load.h)
 *    cleanup ─► removes the folder
 *
 * HBase moves the files through the staging folder to change their owner to the server's user. Here
 * they are linked into the families' folders directly, and the staging folder only has files that a
 * client uploads there. Paths are those of the server's machine, where the tools run: a file: URL
 * or a plain absolute path. Files are taken only from the staging folder and the folders in
 * rorqual.bulkload.folders (vfs/intake.h): otherwise a client could load any file that the server's
 * user can read.
 *
 * All ops access files: they run on half of RQ_POOL_CALL's threads, or on the calling thread if there is no lane. */
#ifndef RQ_OPS_BULK_H
#define RQ_OPS_BULK_H

#include "ops/gate.h"

typedef struct rq_op_bulk_file {
    rq_slice family;
    const char *path;
} rq_op_bulk_file;

typedef struct rq_op_bulk {
    /* The caller's. */
    const rq_op_bulk_file *files; /* load */
    size_t file_count;
    bool assign_seqid;
    bool copy;                      /* the files stay */
    const char *const *cluster_ids; /* load: clusters that the files have passed through in
                                     * replication */
    size_t cluster_id_count;
    bool stays_here;   /* load: replication does not ship it */
    const char *token; /* cleanup: the argument; prepare: the result, in the op's arena */
    /* load's results. */
    bool loaded;
    bool is_refused; /* a file is outside the allowed folders */
    rq_op op;        /* op.region: of prepare and load */
    /* The op's. */
    rq_err (*work)(struct rq_op_bulk *b);
    rq_err work_rc;
    rq_task task;
} rq_op_bulk;

/* The caller's fields are set, the others are zero. */
void rq_op_bulk_prepare_start(rq_op_bulk *b);
void rq_op_bulk_load_start(rq_op_bulk *b);
void rq_op_bulk_cleanup_start(rq_op_bulk *b);

#endif
