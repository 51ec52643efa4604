/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of rows: those of a table's regions, cut to the wanted range, as texts for plan.h. */
#ifndef RQ_TRANSFER_RANGES_H
#define RQ_TRANSFER_RANGES_H

#include "base/arena.h"
#include "client/client.h"

typedef struct rq__range {
    rq_slice start, stop; /* empty: from the first row, to the last */
} rq__range;

/* [start, stop), divided where the table's regions begin, in the arena; each row is in one range. At least one range, unless
 * [start, stop) is empty itself. REQUIRES: the table has a region. */
RQ_NODISCARD
rq_err rq__ranges_of(const rq_client_table *t, rq_slice start, rq_slice stop, rq_arena *arena,
                     rq__range **ret, size_t *ret_count);
/* Blocking: the same with a client of its own. */
RQ_NODISCARD
rq_err rq__ranges_ask(const rq_client_options *o, const char *table, rq_slice start, rq_slice stop,
                      rq_arena *arena, rq__range **ret, size_t *ret_count, rq_error *why);
/* "HEX HEX", "-" for an empty one; NULL: no memory. */
const char *rq__range_text(const rq__range *r, rq_arena *arena);
/* False: it is none. */
bool rq__range_parse(const char *text, rq_arena *arena, rq__range *ret);
/* How much of the range lies before the row, from 0 to 1. */
double rq__range_share(const rq__range *r, rq_slice row);

#endif
