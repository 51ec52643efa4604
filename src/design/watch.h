/* SPDX-License-Identifier: Apache-2.0 */
/* The requests to a live table's regions, as its servers count them, as a plan. */
#ifndef RQ_DESIGN_WATCH_H
#define RQ_DESIGN_WATCH_H

#include "design/design.h"

typedef struct rq_watched_region {
    rq_slice start_key;
    uint32_t server; /* below the number of servers */
} rq_watched_region;

/* Begins a plan with the regions, ascending by start key. RQ_E_NOT_FOUND: there are none. The caller clears the plan. */
RQ_NODISCARD
rq_err rq_plan_of_regions(const rq_watched_region *regions, size_t count, uint64_t servers,
                          rq_plan *ret, rq_error *why);
/* Adds the requests of a region, spread evenly over the steps [from, to). A region that was split off since the plan was
 * begun counts as a part of the region that had its start key then. */
RQ_NODISCARD
rq_err rq_plan_add_requests(rq_plan *p, rq_slice start_key, uint32_t from, uint32_t to,
                            double reads, double writes, rq_error *why);
/* RQ_E_NOT_FOUND: there were no requests. */
RQ_NODISCARD
rq_err rq_plan_end_requests(rq_plan *p, double period_s, rq_error *why);

#endif
