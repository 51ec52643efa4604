/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that requests and answers have left goes back to the operating system. */
#ifndef RQ_CLI_RELIEF_H
#define RQ_CLI_RELIEF_H

#include "base/executor.h"

#include <stdatomic.h>

/* Embedded; outlives the executor's tasks. */
typedef struct rq_relief {
    rq_executor *executor;
    rq_task task;
    _Atomic bool posted;
    _Atomic uint64_t next_ns; /* not before */
} rq_relief;

void rq_relief_init(rq_relief *r, rq_executor *executor);
/* For rq_budget_on_relief; ctx: the rq_relief. */
bool rq_relief_begin(void *ctx);

#endif
