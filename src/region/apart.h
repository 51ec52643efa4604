/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of an op that writes, made apart from the writer token because they take long: they wait for a disk, or examine
 * more than a time slice of cells. Meanwhile the op has its rows locked, as every op has in HBase; writes to other rows
 * go on.
 *
 *   rq__batch_read (parked.c) ── too long ──► rq__apart_begin: rows locked ──► slices on a share of RQ_POOL_READ
 *        ▲                                                                            │ all reads made
 *        └───────── token ◄───────────────────────────────────────────────────────────┘
 *     rq__plan_apply: the op with what was found; rq__apart_end: its rows are free (row_locks.h)
 *
 * A few ops of a region read at a time; the others stand in line with their rows locked, first in, first out, for at most
 * the time that a wait for a row may take.
 *
 * Invariants:
 *  1. A row is locked by one op at a time. An op locks its rows (of conditions and mutations) in ascending order, under
 *     the token, and keeps them while it waits for the next one. An op waits only for rows above those that it has locked:
 *     no deadlock.
 *  2. While a row is locked, no other op reads it under the token or writes it. So the newest staged state that the
 *     reads find is the state at the moment of the lock and that at the moment of the write.
 *  3. A bulk load takes no row locks, as in HBase if it loads one family. What was read before it is dropped and read
 *     again.
 */
#ifndef RQ_REGION_APART_H
#define RQ_REGION_APART_H

#include "hfile/read_ctx.h"
#include "region/region_priv.h"
#include "region/region_scanner.h"

/* A read that an op needs, and what it has found. */
typedef struct rq__planned {
    struct rq__planned *next;
    rq_scan scan;
    const rq_condition *condition; /* NULL: the read of a mutation */
    uint64_t read_point;           /* 0: the newest staged state */
    rq_cellblock cells;            /* of a mutation */
    bool matched;                  /* the cells meet the condition */
    int64_t timestamp;             /* of the first cell */
} rq__planned;

/* The reads of an op, in the order in which it needs them. Zeroed: none. */
typedef struct rq__plan {
    rq__planned *first, **end;
    rq__planned *at;
    size_t count;
    uint64_t bytes; /* found for mutations */
    uint64_t duplicate_of;
    int64_t search_left; /* filter/pace.h */
    struct rq_pace *pace;
    uint64_t filter_bytes;      /* of the filter that is being asked */
    rq_region_scanner *scanner; /* of the read that is not finished; NULL: none */
    rq_arena arena;             /* the list */
    rq_arena reading;           /* the scanner */
} rq__plan;

/* --- rmw.c ------------------------------------------------------------------------------------ */
/* Lists the op's reads. Any thread. */
RQ_NODISCARD
rq_err rq__plan_make(rq__plan *p, rq_region *r, rq_row_op *op, int64_t now_ms, rq_error *why);
/* Reads until all is found, or until the time `yield_ns`: then RQ_E_AGAIN, and a further call goes on. Any
 * thread, inside a read section.
 * REQUIRES: the op's rows are locked. */
RQ_NODISCARD
rq_err rq__plan_read(rq__plan *p, rq_region *r, rq_read_ctx *ctx, uint64_t yield_ns, rq_error *why);
/* Memory of what was found, and of the filter that looks for it. */
uint64_t rq__plan_bytes(const rq__plan *p);
/* token: runs the op with what was found. RQ_E_AGAIN: an op with the same nonce has ended meanwhile, nothing was done and
 * the reads must be planned again. */
RQ_NODISCARD
rq_err rq__plan_apply(rq__plan *p, rq_region *r, rq_row_op *op, int64_t now_ms, rq_error *why);
/* Also after a failure. */
void rq__plan_clear(rq__plan *p);

/* --- apart.c ---------------------------------------------------------------------------------- */
typedef struct rq__apart_reads rq__apart_reads;

/* token: locks the rows of the batch's next op and starts its reads. When they end, the batch is enqueued again. NULL:
 * no memory. REQUIRES: the rows are free. */
rq__apart_reads *rq__apart_begin(rq_region *r, struct rq_write *w, int64_t now_ms);
/* token: the reads have ended: runs the op. RQ_E_AGAIN: they must be made again. */
RQ_NODISCARD
rq_err rq__apart_apply(rq__apart_reads *a, rq_region *r, rq_row_op *op, int64_t now_ms,
                       rq_error *why);
/* token: makes the reads again; the rows stay locked. REQUIRES: the reads have ended. */
void rq__apart_again(rq__apart_reads *a, rq_region *r, int64_t now_ms);
/* Whether a read has failed, rather than the op. */
bool rq__apart_has_failed(const rq__apart_reads *a);
/* The work of the reads, in steps (base/meter.h). */
uint64_t rq__apart_steps(const rq__apart_reads *a);
/* token: frees the rows. REQUIRES: the reads have ended or have not begun. NULL is allowed. */
void rq__apart_end(rq_region *r, rq__apart_reads *a);
/* token: takes the ops whose clients have gone out of the line: they are enqueued, and end. */
void rq__apart_wake_gone(rq_region *r);
/* token: takes the batches out of their waits, for a row or in line, that began at `before_ns` or earlier; a list by
 * `next`. */
struct rq_write *rq__apart_take_expired(rq_region *r, uint64_t before_ns);

#endif
