/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk load as HBase's tools drive it (HBASE: RSRpcServices, SecureBulkLoadManager):
 *
 *   prepare ─► a folder of its own below ROOT/staging; its path is the token
 *   load    ─► per region one op with all its files (region/bulk_load.h)
 *   cleanup ─► the folder goes
 *
 * HBase moves the files through the staging folder, because there they belong to the server's user.
 * Ours are linked straight into the families' folders; the staging folder holds what a client puts
 * there itself. Paths are those of the server's machine, which is where the tools run: a file: URL
 * or a plain absolute path. Files are taken from the staging folder and from the folders that
 * rorqual.bulkload.folders lists (vfs/intake.h), from nowhere else: a client could name any file
 * that the server's user can read.
 *
 * All of it touches files: it runs on RQ_POOL_WORK, or on the calling thread without a lane.
 */
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
    const char *const *cluster_ids; /* load: through which the files came by replication */
    size_t cluster_id_count;
    const char *token; /* cleanup; prepare's result, in the op's arena */
    /* load's results. */
    bool loaded;
    bool is_refused; /* a file lies where none is taken from */
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
