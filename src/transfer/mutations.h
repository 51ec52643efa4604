/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a row, puts and delete markers, as mutations. */
#ifndef RQ_TRANSFER_MUTATIONS_H
#define RQ_TRANSFER_MUTATIONS_H

#include "transfer/link.h"

/* Room for the markers of a row; zeroed is empty. */
typedef struct rq__sorter {
    rq_cell *deletes;
    size_t cap;
} rq__sorter;

/* Adds them to the link's batch. Reorders the cells. `more`: fields of each MutationProto. */
RQ_NODISCARD
rq_err rq__link_add_row(rq__link *l, rq__sorter *s, rq_slice row, rq_cell *cells, size_t count,
                        rq_slice more, rq_error *why);
void rq__sorter_clear(rq__sorter *s);

/* Fields of a MutationProto: attributes of "NAME=>VALUE,…", where a name without a value has none; and the expression of
 * visibility labels, which the server checks. Empty text: no field. */
RQ_NODISCARD
rq_err rq__put_attributes(rq_buf *out, rq_slice list);
RQ_NODISCARD
rq_err rq__put_labels(rq_buf *out, rq_slice expression);

#endif
