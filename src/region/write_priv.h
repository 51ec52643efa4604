/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a write's way share: writer.c on the lane, write.c under the token. */
#ifndef RQ_REGION_WRITE_PRIV_H
#define RQ_REGION_WRITE_PRIV_H

#include "region/region_priv.h"

typedef struct rq__parked rq__parked;

/* Batches that a writer hands to a region as one piece of work; it lies in the first of them. */
typedef struct rq__write_list {
    rq__work work;
    rq_write *last; /* they are linked by `next`, oldest first */
    size_t writes;
    struct rq__write_list *next;        /* the writer's: the next region's */
    struct rq__write_list *same_bucket; /* … and where the writer looks for a region */
} rq__write_list;

/* Batches of one lane that ended under the token, linked by `next`: they are answered together. */
typedef struct rq__ended {
    rq_write *first, *last;
    unsigned count;
    uint64_t bytes;      /* of the cells staged */
    uint64_t last_seqid; /* the highest that one of them gave or saw; 0: none */
} rq__ended;

/* What a region knows of a batch: rq_write.state. */
typedef struct rq__batch {
    rq__write_list list; /* of a single one: its work alone */
    rq_region *region;   /* referenced until done */
    rq_wal_waiter waiter;
    rq_task task;
    rq_timer timer;
    size_t next_op;
    uint64_t last_seqid; /* 0: nothing staged, nothing read */
    uint64_t bytes;      /* of the cells staged */
    rq_lsn need_write;   /* horizons to wait for; 0: passed */
    rq_lsn need_sync;
    rq_latch *latch; /* rq_region_write_sync: waits itself */
    rq__parked *parked;
    uint64_t held_since_ns; /* 0: was never held */
    rq__ended ended;        /* of the first of them: all that it is answered with */
} rq__batch;

_Static_assert(sizeof(rq__batch) <= sizeof(((rq_write *)NULL)->state),
               "rq_write.state is too small");

static inline rq__batch *rq__batch_of(rq_write *w)
{
    return (rq__batch *)(void *)w->state;
}

static inline rq_write *rq__write_of(rq__batch *b)
{
    return (rq_write *)(void *)((char *)b - offsetof(rq_write, state));
}

/* The first row it writes; empty if there is none. */
static inline rq_slice rq__write_row(const rq_write *w)
{
    bool any = w->op_count > 0 && w->ops[0].mutation_count > 0;
    return any ? w->ops[0].mutations[0].row : (rq_slice){0};
}

/* --- writer.c --------------------------------------------------------------------------------- */
/* token: every op of them has its rc. They wait for the log, as one, and are answered on their
 * lane. */
void rq__writes_settle(rq_region *r, const rq__ended *e);
/* Whether the horizons of the batch are still ahead; those that were passed are dropped. */
bool rq__batch_must_wait(rq__batch *b);
/* The log gave up what the batch staged. */
void rq__write_fail_unacknowledged(rq_write *w, rq_err rc);

/* The op ends with this error. `why` may be NULL. */
RQ_COLD void rq__op_fail(rq_row_op *op, rq_err rc, const rq_error *why);

/* --- write.c ---------------------------------------------------------------------------------- */
/* token: runs a list of batches. */
void rq__write_list_run(rq_region *r, rq__work *work);

#endif
