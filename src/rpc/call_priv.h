/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, shared by the files that lead it from its request to its response. On the call's loop,
 * unless a function says otherwise.
 *
 *   receive.c ── rq__call_new ──► call.c (memory, pool) ◄── rq__call_end ── reply.c
 *       └─────────────────► handler (service/) ─────────────────────────────────▲
 */
#ifndef RQ_RPC_CALL_PRIV_H
#define RQ_RPC_CALL_PRIV_H

#include "rpc/rpc_priv.h"

/* A pooled call and a worker keep buffers for cells up to this size. */
#define RQ__CELLS_KEEP ((size_t)64 * 1024)
/* Longest text of an exception, with its zero byte. */
#define RQ__TEXT_MAX 2048

static inline rq_call_private *rq__call_private(rq_call *call)
{
    return RQ_CONTAINER_OF(call, rq_call_private, call);
}

/* The budget of requests. */
static inline rq_budget *rq__call_budget(const rq_call_private *p)
{
    return p->conn->worker->server->options.budget;
}

/* Whether cell blocks travel as they are in memory: not compressed, and in our own codec. */
static inline bool rq__call_is_as_sent(const rq_call_private *p)
{
    return p->conn->compressor == NULL && rq__cell_codec_is_native(p->conn->codec);
}

/* --- memory and life (call.c) ----------------------------------------------------------------- */

/* A call from the pool, with a reference on its connection. NULL: out of memory. */
rq_call_private *rq__call_new(rq_rpc_conn *conn);
/* Gives the call and everything that it holds back to the pool. Called exactly once, after the
 * call's response was passed to the connection or dropped. */
void rq__call_end(rq_call_private *p);
/* Frees the request's memory, except the arena. */
void rq__call_release_request(rq_call_private *p);
/* Charges `bytes` more to the budget of requests. False, and over_budget is set: there is no room,
 * and this call must not overdraw; if never_fits is set, it would not fit into an unused budget
 * either. Any thread, while no other thread uses the call. */
bool rq__call_charge(rq_call_private *p, size_t bytes);
/* What one call may be charged with at most: a multiple of the budget, or of a large request. */
size_t rq__call_charge_max(const rq_call_private *p);

/* --- requests (receive.c) --------------------------------------------------------------------- */

/* The thread does not work on the call any more, if it did. */
void rq__call_out_of_hand(const rq_call *call);

/* --- responses (reply.c) ---------------------------------------------------------------------- */

/* Ends the call with an exception whose text is complete. */
RQ_COLD void rq__call_throw_text(rq_call_private *p, const rq_rpc_exception *exception,
                                 const char *text);
/* The text of the refusal of a request that never fits, formatted into `text`. */
RQ_COLD const char *rq__request_is_too_large(const rq_call_private *p, char *text, size_t size);
/* The text of CallQueueTooBigException, formatted into `text`. */
RQ_COLD const char *rq__call_queue_is_full(const rq_call_private *p, char *text, size_t size);
/* Called at the end of a call: releases its response's charge, and resumes the next call that waits
 * for it. */
static inline void rq__answer_end(rq_call_private *p)
{
    const rq_rpc_conn *conn = p->conn;
    if (RQ_UNLIKELY(p->answer_charged != 0 || conn->first_waiting != NULL || conn->exempt == p))
        rq__answer_release(p);
}
/* Frees a compressed response. */
RQ_COLD void rq__packing_free(struct rq_packing *k);

#endif
