/* SPDX-License-Identifier: Apache-2.0 */
/* The first step of a bulk load of text: sorts the rows of the input's parts into runs, in
 * parallel. */
#ifndef RQ_TRANSFER_BULK_SORT_H
#define RQ_TRANSFER_BULK_SORT_H

#include "transfer/bulk_work.h"
#include "transfer/feed.h"

typedef struct rq__bulk_sort {
    const rq_transfer_options *options;
    const rq__files *files;
    const rq__feed_options *feed;
    const rq__bulk_work *work; /* parts that are done are passed over */
    uint64_t memory;           /* bytes, of all threads together */
} rq__bulk_sort;

/* Blocking. The counts are those of this run. */
RQ_NODISCARD
rq_err rq__bulk_sort_run(const rq__bulk_sort *s, rq_transfer_counts *ret, rq_error *why);

#endif
