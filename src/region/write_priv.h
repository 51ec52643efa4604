/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of a write: writer.c on the lane; write.c, held.c and parked.c under the token. */
#ifndef RQ_REGION_WRITE_PRIV_H
#define RQ_REGION_WRITE_PRIV_H

#include "region/region_priv.h"
#include "region/row_locks.h"

typedef struct rq__parked rq__parked;

/* Batches that a writer passes to a region as one piece of work. Stored in the first batch. */
typedef struct rq__write_list {
    rq__work work;
    rq_write *last; /* linked by `next`, oldest first */
    size_t writes;
    struct rq__write_list *next;        /* used by the writer: list of the next region */
    struct rq__write_list *same_bucket; /* … and next list in its hash bucket */
} rq__write_list;

/* Batches of one lane that ended under the token, linked by `next`. They are answered together. */
typedef struct rq__ended {
    rq_write *first, *last;
    unsigned count;
    uint64_t bytes;      /* of the cells staged */
    uint64_t last_seqid; /* the highest sequence id that they staged or read; 0: none */
} rq__ended;

/* A region's state of a batch: rq_write.state. */
typedef struct rq__batch {
    rq__write_list list; /* for a single batch only `work` is used */
    rq_region *region;   /* referenced until done */
    rq_wal_waiter waiter;
    rq_task task;
    rq_timer timer;
    size_t next_op;
    uint64_t last_seqid; /* 0: nothing was staged or read */
    uint64_t bytes;      /* of the cells staged */
    rq_lsn need_write;   /* log positions to wait for; 0: reached */
    rq_lsn need_sync;
    rq_latch *latch; /* set by rq_region_write_sync, which waits on it */
    rq__parked *parked;
    uint64_t held_since_ns;  /* 0: was never held */
    uint64_t waits_since_ns; /* since when it has waited for a locked row; 0: it does not wait */
    rq__row_set *rows;       /* of its next op, locked after it has waited for them; NULL: none */
    int64_t now_ms;          /* 0: it has not begun */
    uint64_t read_steps;     /* steps (base/meter.h) of its ops that read */
    unsigned slices;         /* time slices used since it waited for other work */
    bool was_admitted;       /* held before: it does not queue behind held batches again */
    bool wants_pool;         /* it was interrupted because its next op must run on a pool */
    rq__ended ended;         /* in the first batch: all batches answered with it */
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

/* Any thread. */
static inline bool rq__write_has_gone(const rq_write *w)
{
    return w->gone != NULL && atomic_load_explicit(w->gone, memory_order_relaxed);
}

/* The first row the write changes; empty if there is none. */
static inline rq_slice rq__write_row(const rq_write *w)
{
    bool any = w->op_count > 0 && w->ops[0].mutation_count > 0;
    return any ? w->ops[0].mutations[0].row : (rq_slice){0};
}

/* --- writer.c --------------------------------------------------------------------------------- */
/* token: every op of these batches has its rc. Waits for the log once for all of them and
 * answers them on their lane. */
void rq__writes_finish(rq_region *r, const rq__ended *e);
/* Whether the batch must still wait for the log. Clears positions that were reached. */
bool rq__batch_must_wait(rq__batch *b);
/* Fails a batch whose staged records the log will not acknowledge. */
void rq__write_fail_unacknowledged(rq_write *w, rq_err rc);

/* Ends the op with this error. `why` may be NULL. */
RQ_COLD void rq__op_fail(rq_row_op *op, rq_err rc, const rq_error *why);

/* --- write.c ---------------------------------------------------------------------------------- */
/* All of it under the token. */

/* How far a batch has come. INTERRUPTED: the time slice ended between two ops; the ops so far are committed. LEFT_OUT: the
 * op has failed, and the batch goes on behind it. */
typedef enum rq__outcome {
    RQ__ENDED,
    RQ__HELD,
    RQ__PARKED,
    RQ__INTERRUPTED,
    RQ__LEFT_OUT,
} rq__outcome;

/* Whether the log may accept the record a little later. */
static inline bool rq__log_may_accept_later(rq_err rc)
{
    return rc == RQ_E_REGION_TOO_BUSY || rc == RQ_E_NO_MEMORY || rc == RQ_E_NO_SPACE;
}

/* Runs a list of batches. */
void rq__write_list_run(rq_region *r, rq__work *work);
/* Runs the batch from its next op on, and holds it or ends it. `waited`: the batch comes from the held list and goes to its
 * front again. True: interrupted. */
bool rq__batch_go_on(rq_region *r, rq__batch *b, bool waited, int64_t now_ms, rq__ended *ended);
/* Commits the collected plain ops: ops [first_op, end) without an error so far. */
rq__outcome rq__batch_commit_plain(rq_region *r, rq__batch *b, size_t end, int64_t now_ms);
/* Every op of the batch has its rc. */
void rq__batch_end(rq_region *r, rq__batch *b, rq__ended *ended);
/* The rest of the batch runs after all work that waits for the token. */
void rq__batch_put_behind(rq_region *r, rq__batch *b);
/* Ends the ops from the next one on with this error. */
void rq__write_fail_rest(rq_write *w, rq_err rc, const rq_error *why);
/* Whether the op is too long to run on this thread. */
bool rq__op_is_too_long(const rq_region *r, const rq__batch *b, const rq_row_op *op);

/* --- held.c: under the token ------------------------------------------------------------------ */
/* Puts the batch at the end of the held list. */
void rq__batch_hold(rq_region *r, rq__batch *b);

/* --- parked.c: under the token ---------------------------------------------------------------- */
/* Runs op `i`, which reads. */
rq__outcome rq__batch_read(rq_region *r, rq__batch *b, size_t i, int64_t now_ms);
/* Gives back what the batch's next op has read so far. */
void rq__batch_unpark(rq_region *r, rq__batch *b);
/* Whether the reads of the next op were made apart. */
bool rq__batch_has_read_apart(const rq__batch *b);
/* PARKED: a row of op `i` is locked. LEFT_OUT: one is, and nobody waits for the op's result. */
RQ_COLD rq__outcome rq__batch_wait_for_rows(rq_region *r, rq__batch *b, size_t i, int64_t now_ms);
/* Fails the writes that have waited too long for a locked row. */
void rq__region_expire_row_waits(rq_region *r);

#endif
