/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a client: HBase's framing on a stream, any number of calls in flight. Belongs to
 * one client and its loop.
 *
 *   idle ──call──► connecting ──► open ──lost──► idle        (the next call connects again)
 *
 * When the connection is lost every call in flight ends with RQ_E_IO, in the order of their ids; with the server's
 * exception if the server has said why. A
 * call that exceeds its time-out ends with RQ_E_CALL_TIMEOUT; a later response to it is dropped. If
 * very many calls have timed out, or the peer does not read very many bytes, the connection is closed.
 * Bytes are written at the end of the loop's iteration, so that calls made together are sent together.
 */
#ifndef RQ_CLIENT_CONN_H
#define RQ_CLIENT_CONN_H

#include "client/client.h"
#include "client/reply.h"
#include "client/response.h"

#include "base/buf.h"
#include "net/loop.h"

typedef struct rq__conn rq__conn;

typedef struct rq__conn_options {
    rq_loop *loop;
    const char *host;
    uint16_t port;
    const char *service;
    const char *codec; /* of cell blocks, a Java class, not copied; NULL: KeyValueCodec */
    const char *user;
    int64_t timeout_ns;  /* of a call */
    uint32_t answer_max; /* bytes of a response; 0: 256 MiB */
} rq__conn_options;

/* Does not connect yet. The strings are copied. */
RQ_NODISCARD
rq_err rq__conn_new(const rq__conn_options *o, rq__conn **ret);
/* Sets the time-out of later calls. */
void rq__conn_set_timeout(rq__conn *c, int64_t timeout_ns);
/* Drops calls in flight without calling back. NULL is fine. */
void rq__conn_free(rq__conn *c);

/* Queues a call. On an error nothing is queued and the callback will not run. */
RQ_NODISCARD
rq_err rq__conn_call(rq__conn *c, const char *method, uint32_t priority, rq_slice region_prefix,
                     rq_slice message, rq_slice cells, rq_reply_fn done, void *ctx);
/* The same, with a time limit: the call ends at until_ns at the latest (clock of rq_client_now_ns), even if the
 * connection's timeout is longer. 0: no such limit. */
RQ_NODISCARD
rq_err rq__conn_call_until(rq__conn *c, int64_t until_ns, const char *method, uint32_t priority,
                           rq_slice region_prefix, rq_slice message, rq_slice cells,
                           rq_reply_fn done, void *ctx);
/* The id of the last call that was queued, until the call has ended. */
uint32_t rq__conn_last_call(const rq__conn *c);
/* Another function takes the reply of a call. REQUIRES: the call has not ended. */
void rq__conn_redirect(rq__conn *c, uint32_t id, rq_reply_fn done, void *ctx);
/* Loses the connection, which ends its calls with RQ_E_IO; a later call connects again. Also in a callback. */
void rq__conn_drop(rq__conn *c, const char *why);
void rq__conn_check_timeouts(rq__conn *c, int64_t now_ns);
/* Ends the connection's calls with RQ_E_CLOSED, and refuses further calls with this error. Also in a callback. */
void rq__conn_stop(rq__conn *c);
size_t rq__conn_in_flight(const rq__conn *c);
/* Calls and bytes since the connection object was made. */
rq_client_traffic rq__conn_traffic(const rq__conn *c);
/* Marks the connection as one on which its owner will make no calls any more. */
void rq__conn_retire(rq__conn *c);
bool rq__conn_is_retired(const rq__conn *c);
/* Whether it was connected, and is not any more. */
bool rq__conn_is_lost(const rq__conn *c);
/* Whether each of the server's addresses refused the last attempt to connect. */
bool rq__conn_was_refused(const rq__conn *c);
/* How often it was connected. */
uint64_t rq__conn_connects(const rq__conn *c);

#endif
