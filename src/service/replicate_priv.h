/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the replication sink: the job of one ReplicateWALEntry call. */
#ifndef RQ_SERVICE_REPLICATE_PRIV_H
#define RQ_SERVICE_REPLICATE_PRIV_H

#include "ops/batch.h"
#include "ops/bulk_replicated.h"
#include "replication/entries.h"
#include "service/admin_priv.h"
#include "service/call_op.h"
#include "service/client_priv.h"

#include "proto/admin.pb-c.h"

#define RQ__SINK_PARTS 128 /* most mutations of a group */

typedef struct rq__sink_load rq__sink_load; /* a bulk load, replicate_bulk.c */

typedef struct rq__sink_job {
    rq_op_batch batch;
    rq_op_bulk_replicated load;
    rq__sink_load *loads; /* in the request's order; run when the batch has ended */
    rq__sink_load **last_load;
    rq_admin_services *services;
    /* The request came from another server of the cluster. Its keys name regions of this server, and the server that
     * received the source's request counts the batch. */
    bool is_passed_on;
    rq_entries entries; /* at the next cell to be taken */
    /* Of the group at hand. */
    rq_batch_part parts[RQ__SINK_PARTS];
    rq_entries_edit edits[RQ__SINK_PARTS];
    /* The first write that failed. */
    rq_err failed_with;
    rq_error failed_why;
} rq__sink_job;

static inline rq__sink_job *rq__sink_of(rq_op_batch *b)
{
    return RQ_CONTAINER_OF(b, rq__sink_job, batch);
}

static inline const Pb__ReplicateWALEntryRequest *rq__sink_request(const rq__sink_job *j)
{
    return j->entries.request;
}

/* NULL: the batch is not counted here, because another server counts it (is_passed_on) or because this is a test. */
static inline rq_sink *rq__sink_counters(const rq__sink_job *j)
{
    return j->is_passed_on ? NULL : j->services->sink;
}

/* replicate.c: answers the call and counts it. */
void rq__sink_end(rq__sink_job *j, rq_err rc, const rq_error *why);

/* replicate_bulk.c: keeps a BulkLoadDescriptor of the table until the batch is done. */
RQ_NODISCARD
rq_err rq__sink_add_load(rq__sink_job *j, rq_slice table, rq_slice bytes);
/* Begins the next load; after the last one the call ends. */
void rq__sink_load_next(rq__sink_job *j);

#endif
