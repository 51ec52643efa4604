/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef RQ_OPS_OPS_PRIV_H
#define RQ_OPS_OPS_PRIV_H

#include "ops/leases.h"
#include "ops/ops.h"

#include "base/pool_share.h"
#include "vfs/reads.h"

#include <pthread.h>

struct rq_ops {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    const char *cluster_id;  /* borrowed; NULL: there are no bulk loads */
    const rq_intake *intake; /* see rq_ops_options, also for the next two */
    const rq_intake *replicated;
    bool skips_missing;
    bool ships_loads;      /* hbase.replication.bulkload.enabled */
    const char *data_path; /* borrowed */
    rq__leases *leases;
    rq_log_limit skipped_files; /* lines about them */
    /* settings */
    uint64_t result_bytes_max; /* of a scan or batch */
    uint64_t block_bytes_max;  /* that a batch reads */
    uint64_t row_bytes_max;    /* of a row in a result */
    uint64_t beside_bytes_max; /* bytes of blocks read ahead for batches (beside.h), of all ops */
    uint64_t lease_ms;
    _Atomic uint64_t beside_bytes;
    rq_reads_shared reads;           /* of all seats; bytes_max 0: none */
    _Atomic uint64_t rpc_timeout_ms; /* a reload changes it */
    rq_pool_share bulk;              /* the threads of bulk loads */
    pthread_mutex_t lock;
    const rq_gate_policy *policy RQ_GUARDED_BY(lock);
    rq_ops_seat *seats RQ_GUARDED_BY(lock);
    rq_op_stats past[RQ_OP_KINDS] RQ_GUARDED_BY(lock); /* of seats that were given back */
};

/* --- bulk.c, for bulk_replicated.c ------------------------------------------------------------- */
struct rq_op_bulk;
void rq__bulk_start(struct rq_op_bulk *b, rq_op_kind kind, rq_err (*work)(struct rq_op_bulk *b));
const char *rq__bulk_local_path(const char *said);
/* Whether the files have been loaded on this cluster before. */
bool rq__bulk_was_here(const struct rq_op_bulk *b);
/* What the region needs to announce the load to peers. RQ_E_NO_MEMORY. */
struct rq_bulk_load;
RQ_NODISCARD
rq_err rq__bulk_ships(struct rq_op_bulk *b, struct rq_bulk_load *load);

/* For rq_write.gone. */
static inline const _Atomic bool *rq__op_gone(const rq_op *op)
{
    return op->caller != NULL && op->caller->gone != NULL ? op->caller->gone(op) : NULL;
}

#endif
