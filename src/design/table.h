/* SPDX-License-Identifier: Apache-2.0 */
/* A live table as a plan. */
#ifndef RQ_DESIGN_TABLE_H
#define RQ_DESIGN_TABLE_H

#include "design/design.h"

typedef struct rq_from_table {
    double chance; /* of a row to be read, above 0, up to 1 */
    uint64_t servers, regions;
} rq_from_table;

/* RQ_E_NOT_FOUND: no row. Errors of the table. The caller clears the plan. */
RQ_NODISCARD
rq_err rq_plan_of_table(rq_table *table, const rq_from_table *from, rq_plan *ret, rq_error *why);

#endif
