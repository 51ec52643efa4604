/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual design --watch: the requests to a table's regions during some seconds, as a plan. */
#ifndef RQ_CLI_DESIGN_WATCH_H
#define RQ_CLI_DESIGN_WATCH_H

#include "cli/cluster.h"
#include "design/design.h"

/* Blocks for the whole time. The caller clears the plan, also after an error. */
RQ_NODISCARD
rq_err rq__watch_table(const rq__cluster_where *where, const char *table, uint64_t seconds,
                       rq_plan *ret, rq_error *why);

#endif
