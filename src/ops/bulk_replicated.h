/* SPDX-License-Identifier: Apache-2.0 */
/* A bulk load of another cluster, announced by replication: its files are copied from that
 * cluster's data folder or archive, if they are accessible on this machine
 * (rorqual.replication.bulkload.folders). HBASE: HFileReplicator.
 *
 * A file whose rows are all in one region of this cluster is loaded as in a bulk load. The two
 * clusters may have split the table differently, so a file may span several regions here: its rows
 * are written as puts and deletes. Loading a file twice changes nothing, because the cells have
 * timestamps. */
#ifndef RQ_OPS_BULK_REPLICATED_H
#define RQ_OPS_BULK_REPLICATED_H

#include "ops/bulk.h"

typedef struct rq_op_bulk_replicated {
    /* The caller's: files (paths in the source's data folder), cluster_ids; op.region is NULL. */
    rq_op_bulk bulk;
    rq_slice table;
    const char *const *archived; /* of each file, its path in the source's archive */
    rq_slice clusters;           /* for the log, see rq_row_op.cluster_ids */
    /* Results. */
    size_t loaded, skipped; /* files */
} rq_op_bulk_replicated;

/* The caller's fields are set, the others are zero. RQ_E_TABLE_NOT_FOUND; RQ_E_DO_NOT_RETRY: a file
 * is in none of the listed folders, or not there. */
void rq_op_bulk_replicated_start(rq_op_bulk_replicated *b);

#endif
