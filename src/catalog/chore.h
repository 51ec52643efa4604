/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Periodic work of the catalog. Each round runs on RQ_POOL_WORK; the next round begins interval_ms after its end.
 * rq__procedures_stop waits for a running round, and no round begins after it. HBASE: ScheduledChore.
 */
#ifndef RQ_CATALOG_CHORE_H
#define RQ_CATALOG_CHORE_H

#include "base/executor.h"

#include <stdint.h>

typedef struct rq_catalog rq_catalog;

typedef struct rq__chore {
    rq_catalog *catalog; /* NULL: not started */
    void (*work)(rq_catalog *c);
    int64_t interval_ms; /* 0: no further round. Set before the start, or by work() */
    rq_timer timer;
    rq_task task;
} rq__chore;

/* The first round begins after interval_ms. */
void rq__chore_start(rq__chore *chore, rq_catalog *c, void (*work)(rq_catalog *c));
/* REQUIRES: the caller has set procedures.stopping, and still holds procedures.lock. */
void rq__chore_cancel(rq__chore *chore);

#endif
