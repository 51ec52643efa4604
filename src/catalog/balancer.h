/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the regions that the balancer moves. Servers and tables are numbers here; rq_catalog_balance (catalog.h)
 * makes the lists and carries out the moves. */
#ifndef RQ_CATALOG_BALANCER_H
#define RQ_CATALOG_BALANCER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A region that may be moved. */
typedef struct rq__balanced {
    size_t table;
    size_t server; /* where the region is; rq__balance sets it to the server chosen for it */
    bool moves;    /* set by rq__balance if it chose another server */
} rq__balanced;

/* Assigns other servers to at most `max` regions. Unless `max` is too small, the numbers of regions of any two servers
 * then differ by at most one; this takes as few moves as possible. */
RQ_NODISCARD
rq_err rq__balance(rq__balanced *list, size_t count, size_t tables, size_t servers, size_t max,
                   size_t *ret_moves);

#endif
