/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer's choice, by numbers; rq_catalog_balance in catalog.h applies it. */
#ifndef RQ_CATALOG_BALANCER_H
#define RQ_CATALOG_BALANCER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* A region that may be moved. */
typedef struct rq__balanced {
    size_t table;  /* its number */
    size_t server; /* the number of the one that has it; then of the one that is to have it */
    bool moves;    /* the answer */
} rq__balanced;

/* At most `max` regions get another server, so that no two servers differ by more than one region, by as few moves as
 * possible. */
RQ_NODISCARD
rq_err rq__balance(rq__balanced *list, size_t count, size_t tables, size_t servers, size_t max,
                   size_t *ret_moves);

#endif
