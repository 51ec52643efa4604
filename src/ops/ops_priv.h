/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef RQ_OPS_OPS_PRIV_H
#define RQ_OPS_OPS_PRIV_H

#include "ops/leases.h"
#include "ops/ops.h"

#include <pthread.h>

struct rq_ops {
    rq_env env;
    rq_engine *engine;
    rq_catalog *catalog;
    const rq_intake *intake; /* see rq_ops_options */
    const char *data_path;   /* borrowed */
    rq__leases *leases;
    /* settings */
    uint64_t result_bytes_max; /* of a scan or batch */
    uint64_t block_bytes_max;  /* that a batch reads */
    uint64_t lease_ms;
    _Atomic uint64_t rpc_timeout_ms; /* a reload changes it */
    pthread_mutex_t lock;
    const rq_gate_policy *policy RQ_GUARDED_BY(lock);
    rq_ops_seat *seats RQ_GUARDED_BY(lock);
    rq_op_stats past[RQ_OP_KINDS] RQ_GUARDED_BY(lock); /* of seats that were given back */
};

#endif
