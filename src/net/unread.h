/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that a stream's peer has not taken, as a debt in a budget that all streams share; for the
 * user of the stream, whatever its protocol. Embedded in its connection; on the stream's loop.
 *
 * Output is charged with all the memory that holds it, once it is much or the kernel has refused
 * some. What is unread at a time is looked at as one: it is late when its last byte is.
 */
#ifndef RQ_NET_UNREAD_H
#define RQ_NET_UNREAD_H

#include "net/budget.h"
#include "net/stream.h"

#define RQ_UNREAD_SMALL                                                                            \
    ((size_t)64 * 1024) /* output that leaves at once is not charged up to this */

typedef struct rq_unread {
    rq_debtor debt;
    rq_budget *budget; /* NULL: nothing is charged */
    rq_stream *stream; /* NULL: it is closed */
    uint64_t mark;     /* output taken once all is read that was unread at … */
    uint64_t since_ns; /* … this time */
    uint64_t taken;    /* output taken at the last look; the next look is at … */
    uint64_t look_ns;  /* … this time; 0: nothing is owed */
    /* Of all debtors it owes for longest, and even the reserve is gone: close the stream. */
    void (*cut_off)(struct rq_unread *u);
    /* What rq_unread_close had to leave posted has run. */
    void (*released)(struct rq_unread *u);
} rq_unread;

void rq_unread_init(rq_unread *u, rq_budget *budget, rq_stream *stream,
                    void (*cut_off)(rq_unread *u), void (*released)(rq_unread *u));
/* The stream is on another loop now. REQUIRES: rq_unread_is_clear. */
void rq_unread_moved(rq_unread *u);
/* Nothing is owed and nothing posted. */
bool rq_unread_is_clear(rq_unread *u);

RQ_COLD void rq__unread_charge(rq_unread *u, size_t pending);

/* Follows whatever changed the stream's output. */
static inline void rq_unread_account(rq_unread *u)
{
    size_t pending = rq_stream_out_pending(u->stream);
    if (RQ_LIKELY(u->debt.owed == 0 && pending <= RQ_UNREAD_SMALL &&
                  (pending == 0 || !rq_stream_stalled(u->stream))))
        return;
    if (u->budget != NULL) rq__unread_charge(u, pending);
}

/* Looks when look_ns has come: the peer has taken nothing since the last look, or has not taken within
 * `slow_ns` what was unread at their beginning. */
bool rq_unread_is_late(rq_unread *u, uint64_t slow_ns);
#define RQ_UNREAD_SLOW_NS (10 * 1000000000ull)
/* The stream closes, with its output. False: a task is still posted, and `released` will be called.
 */
bool rq_unread_close(rq_unread *u);

#endif
