/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two servers prove to each other that they have the cluster's secret (secret.h), at the beginning of a
 * connection. Functions on bytes; the room peers carries them.
 *
 *     caller                                        called
 *     hello: from, to, nonce C      ──────────────► refuses a `to` that is not its own name
 *                                   ◄────────────── nonce D
 *     proof: HMAC("caller", T)      ──────────────► compares; the caller is proven
 *     compares; both are proven     ◄────────────── HMAC("called", T)
 *
 * T consists of C, D and both servers' names with their start codes, each preceded by its length. So a proof is
 * valid on this connection only: it cannot be used again later, with another server or incarnation, under
 * another name, or in the other direction. The called side sends its proof only to a proven caller.
 *
 * It protects against clients that can connect, not against changes of packets in transit: on an untrusted
 * network the connection needs TLS.
 */
#ifndef RQ_CLUSTER_HANDSHAKE_H
#define RQ_CLUSTER_HANDSHAKE_H

#include "cluster/secret.h"

#include "base/arena.h"
#include "host/server_name.h"

#define RQ_NONCE_LEN 32

/* --- the caller's side ------------------------------------------------------------------------ */

typedef struct rq_caller {
    const rq_secret *secret;
    const rq_server_name *from, *to; /* REQUIRES: their texts are set */
    uint8_t nonce[RQ_NONCE_LEN];     /* fresh: rq_unguessable */
    uint8_t theirs[RQ_NONCE_LEN];
} rq_caller;

/* REQUIRES: the fields but `theirs` are set. In the arena. */
RQ_NODISCARD
rq_err rq_caller_hello(const rq_caller *c, rq_arena *arena, rq_slice *ret);
/* RQ_E_ACCESS_DENIED: malformed. */
RQ_NODISCARD
rq_err rq_caller_prove(rq_caller *c, rq_slice answer, rq_arena *arena, rq_slice *ret,
                       rq_error *why);
/* RQ_E_ACCESS_DENIED: the other side has another secret. */
RQ_NODISCARD
rq_err rq_caller_check(const rq_caller *c, rq_slice answer, rq_error *why);

/* --- the called side -------------------------------------------------------------------------- */

typedef enum rq_called_state {
    RQ_CALLED_NEW,
    RQ_CALLED_CHALLENGED,
    RQ_CALLED_PROVEN,
    RQ_CALLED_REFUSED, /* for the rest of the connection */
} rq_called_state;

/* Of a connection; all zero at first. */
typedef struct rq_called {
    rq_called_state state;
    const rq_server_name *from; /* a reference; NULL before the hello; only claimed until PROVEN */
    const rq_server_name *to;   /* borrowed; the name of this process that the hello has */
    uint8_t nonce[RQ_NONCE_LEN], theirs[RQ_NONCE_LEN];
} rq_called;

/* `self`: the names of this process. An error refuses the connection: RQ_E_ACCESS_DENIED (malformed, or a
 * second hello), RQ_E_DO_NOT_RETRY (meant for another server or incarnation). RQ_E_NO_MEMORY does not. */
RQ_NODISCARD
rq_err rq_called_hello(rq_called *c, const rq_server_name *const *self, size_t self_count,
                       const uint8_t nonce[RQ_NONCE_LEN], rq_slice hello, rq_arena *arena,
                       rq_slice *ret, rq_error *why);
/* RQ_OK: the caller is proven. An error refuses the connection. */
RQ_NODISCARD
rq_err rq_called_prove(rq_called *c, const rq_secret *secret, rq_slice proof, rq_arena *arena,
                       rq_slice *ret, rq_error *why);
void rq_called_clear(rq_called *c);

#endif
