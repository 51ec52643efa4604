/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to one service of one server, for a caller with a loop of its own: calls of methods, any
 * number at a time, after a greeting. The first call makes the connection, and so does the first call after
 * the connection was lost.
 *
 *   call ──► wait ──► connect ─► greet ─► open: sent ─► answered, or RQ_E_CALL_TIMEOUT
 *                         └────────┴──── failed: all waiting calls end with the reason
 *
 *  - The caller's greet() makes the greeting: some calls by rq_link_greet_call, then rq_link_greeted. No other
 *    call is sent before the greeting has succeeded.
 *  - If a call is not answered in time, the connection is closed: the network may be interrupted, or the server
 *    may hang.
 *  - The number and bytes of unanswered calls are limited; a further call fails at once with
 *    RQ_E_CALL_QUEUE_TOO_BIG.
 *
 * All of it happens on the loop's thread.
 */
#ifndef RQ_CLIENT_LINK_H
#define RQ_CLIENT_LINK_H

#include "client/reply.h"

#include "net/loop.h"

typedef struct rq_link rq_link;

#define RQ_LINK_CALLS_MAX 4096
#define RQ_LINK_BYTES_MAX ((size_t)64 << 20)

/* The strings are copied. */
typedef struct rq_link_options {
    rq_loop *loop;
    const char *host;
    uint16_t port;
    const char *service;
    const char *user;
    unsigned timeout_ms; /* of a call, once it is sent; of a connect */
    uint32_t answer_max; /* bytes of a response; a longer one loses the connection */
    bool with_tags;      /* cells are sent with their tags: KeyValueCodecWithTags */
    void (*greet)(void *ctx, rq_link *l);
    void *ctx;
} rq_link_options;

RQ_NODISCARD
rq_err rq_link_new(const rq_link_options *o, rq_link **ret);
/* Ends all calls of the link with RQ_E_CLOSED. Not in a callback of the link. NULL is fine. */
void rq_link_free(rq_link *l);
/* `done` runs once, perhaps before this returns; it may make further calls. The message and the cells are copied, the
 * method's name is not. */
void rq_link_call(rq_link *l, const char *method, rq_slice message, rq_slice cells,
                  rq_reply_fn done, void *ctx);
/* Makes a call during the greeting. `done` as above; it makes the next call of the greeting, or ends the
 * greeting. */
void rq_link_greet_call(rq_link *l, const char *method, rq_slice message, rq_reply_fn done,
                        void *ctx);
/* The greeting has ended; with an error the connection is closed. `why` may be NULL. */
void rq_link_greeted(rq_link *l, rq_err rc, const char *why);
/* The number of calls that wait for the greeting or for their answer. */
size_t rq_link_calls(const rq_link *l);

#endif
