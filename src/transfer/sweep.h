/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all requested rows of a table, its regions in parallel. */
#ifndef RQ_TRANSFER_SWEEP_H
#define RQ_TRANSFER_SWEEP_H

#include "transfer/crew.h"
#include "transfer/link.h"
#include "transfer/ranges.h"
#include "transfer/scan.h"

typedef struct rq__sweep {
    /* Set by the caller. */
    const rq_transfer_options *options;
    const char *table;
    const rq_transfer_scan *scan;
    const bool *is_done; /* of the ranges that are given; NULL */
    void *ctx;
    /* A thread's state; `close` follows after an error too. */
    rq_err (*open)(struct rq__sweep *s, void **ret_state, rq_error *why);
    void (*close)(void *state);
    /* Around the rows of a range; may be NULL. */
    rq_err (*begin)(void *state, const rq__range *range, rq_error *why); /* ranges[i] */
    rq_err (*row)(void *state, rq_op_result *row, rq_error *why);
    rq_err (*rest)(void *state, rq_error *why); /* between answers; may be NULL */
    rq_err (*end)(void *state, const rq__range *range, rq_error *why);
    /* The sweep's own. */
    rq__crew crew;
    rq_buf fields;
    rq_arena arena;
    rq__range *ranges;
    size_t range_count;
} rq__sweep;

/* Ranges that are given, else those of the table's regions. */
RQ_NODISCARD
rq_err rq__sweep_run(rq__sweep *s, rq_transfer_counts *ret, rq_error *why);

#endif
