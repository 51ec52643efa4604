/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a row, which a server sends when a response would be too large or take too long. They
 * are kept until the row is complete, or has as many cells as the scan's batch. All zero is
 * empty. */
#ifndef RQ_CLIENT_PARTS_H
#define RQ_CLIENT_PARTS_H

#include "cell/cellblock.h"
#include "client/response.h"

typedef struct rq__parts {
    rq_cellblock cells; /* of one row, with their tags */
    bool stale;         /* one of the parts is from a replica */
} rq__parts;

/* Whether the result is of the row whose parts are kept. */
RQ_NODISCARD
rq_err rq__parts_continue(const rq__parts *p, rq_result_view row, rq_cursor cells, bool *ret);
/* Adds a cell. REQUIRES: it is of the row whose parts are kept, or nothing is kept. */
RQ_NODISCARD
rq_err rq__parts_add(rq__parts *p, const rq_cell *cell, bool stale);
/* The kept cells as one result, valid until the next change; false: nothing is kept. */
bool rq__parts_row(const rq__parts *p, rq_result_view *ret, rq_cursor *ret_cells);
/* The row's key; empty: nothing is kept. */
rq_slice rq__parts_key(const rq__parts *p);
void rq__parts_drop(rq__parts *p);
void rq__parts_clear(rq__parts *p);

#endif
