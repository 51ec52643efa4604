/* SPDX-License-Identifier: Apache-2.0 */
/* Which regions the balancer moves. Servers and tables are numbers here; rq_catalog_balance (catalog.h) makes the lists
 * and the moves. */
#ifndef RQ_CATALOG_BALANCER_H
#define RQ_CATALOG_BALANCER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A region that may be moved. */
typedef struct rq__balanced {
    size_t table;
    size_t server; /* that has the region; changed to the server that gets it */
    bool moves;    /* set for a region that gets another server */
} rq__balanced;

/* At most `max` regions get another server, so that no two servers differ by more than one region, by as few moves as
 * possible. */
RQ_NODISCARD
rq_err rq__balance(rq__balanced *list, size_t count, size_t tables, size_t servers, size_t max,
                   size_t *ret_moves);

#endif
