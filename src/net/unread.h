/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Charges output that a stream's peer has not taken as a debt in a budget shared by all streams,
 * for any protocol. Embedded in its connection and used on the stream's loop.
 *
 * Output is charged with all the memory that holds it, once it exceeds RQ_UNREAD_SMALL or the
 * kernel has refused some. All output that is unread at one moment is tracked together, as unread
 * since that moment until its last byte is taken.
 */
#ifndef RQ_NET_UNREAD_H
#define RQ_NET_UNREAD_H

#include "net/budget.h"
#include "net/stream.h"

/* Output that the kernel takes at once is not charged up to this size. */
#define RQ_UNREAD_SMALL ((size_t)64 * 1024)

typedef struct rq_unread {
    rq_debtor debt;
    rq_budget *budget; /* NULL: nothing is charged */
    rq_stream *stream; /* NULL: it is closed */
    uint64_t mark;     /* rq_stream_out_taken once all output is read that was unread at since_ns */
    uint64_t since_ns; /* when tracking of the unread output began */
    uint64_t taken;    /* rq_stream_out_taken at the last check */
    uint64_t look_ns;  /* time of the next check; 0: there is no debt */
    /* The debtor was evicted (net/budget.h): close the stream. */
    void (*cut_off)(struct rq_unread *u);
    /* Called when the task that rq_unread_close left posted has run. */
    void (*released)(struct rq_unread *u);
} rq_unread;

void rq_unread_init(rq_unread *u, rq_budget *budget, rq_stream *stream,
                    void (*cut_off)(rq_unread *u), void (*released)(rq_unread *u));
/* Call it after the stream has moved to another loop. REQUIRES: rq_unread_is_clear. */
void rq_unread_moved(rq_unread *u);
/* Whether there is no debt and no posted task. */
bool rq_unread_is_clear(rq_unread *u);

RQ_COLD void rq__unread_charge(rq_unread *u, size_t pending);

/* Call it after every change of the stream's output. */
static inline void rq_unread_account(rq_unread *u)
{
    size_t pending = rq_stream_out_pending(u->stream);
    if (RQ_LIKELY(u->debt.owed == 0 && pending <= RQ_UNREAD_SMALL &&
                  (pending == 0 || !rq__stream_stalled(u->stream))))
        return;
    if (u->budget != NULL) rq__unread_charge(u, pending);
}

/* Call it at look_ns. True: the peer has taken nothing since the last check, or output has been
 * unread for `slow_ns` or longer. */
bool rq_unread_is_late(rq_unread *u, uint64_t slow_ns);
#define RQ_UNREAD_SLOW_NS (10 * 1000000000ull)
/* The stream closes and drops its output. False: a task is still posted; `released` will be
 * called. */
bool rq_unread_close(rq_unread *u);

#endif
