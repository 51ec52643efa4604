/* SPDX-License-Identifier: Apache-2.0 */
/* A transform is a layer between a stream's protocol and the bytes on the wire: TLS, SASL's
 * wrapping. Protocols do not notice it. A stream without a transform is plain and has no overhead.
 *
 *     protocol ─ rq_stream_write ─► wrap ─► socket
 *     protocol ◄ on_data, on_read ◄ read ◄ feed ◄ socket
 *
 * All calls on one transform come from its stream's loop, one at a time; none may block or run for
 * longer than it takes to process its argument. A transform limits the memory for received bytes:
 * more than its format allows is RQ_E_MALFORMED. */
#ifndef RQ_NET_TRANSFORM_H
#define RQ_NET_TRANSFORM_H

#include "net/budget.h"

#include "base/buf.h"

typedef struct rq_transform rq_transform;
struct rq_stream;

typedef struct rq_transform_calls {
    /* Takes all of the received bytes. Called only after `read` returned nothing. An error closes
     * the stream, after the remaining output of `wrap` was offered to the socket once. */
    rq_err (*feed)(rq_transform *t, rq_slice wire);
    /* Stores the next protocol bytes in `to`, at most `len`. *ret_len 0 with RQ_OK: it needs more
     * wire bytes. RQ_E_END: the peer has ended its output. Other errors as with feed. */
    rq_err (*read)(rq_transform *t, void *to, size_t len, size_t *ret_len);
    /* The socket's input has ended: RQ_OK, or an error if that was in the middle of a record. */
    rq_err (*input_end)(rq_transform *t);
    /* Appends to `wire` first the transform's own output (a handshake), then all of `plain`,
     * encoded. Empty `plain`: only the former. RQ_E_AGAIN: protocol bytes cannot be sent yet; it is
     * called again after the next feed. */
    rq_err (*wrap)(rq_transform *t, rq_slice plain, rq_buf *wire);
    /* The stream's output has ended: appends a message that tells the peer. */
    rq_err (*end)(rq_transform *t, rq_buf *wire);
    /* Memory that it holds now, in bytes, including its state. */
    size_t (*held)(const rq_transform *t);
    void (*free)(rq_transform *t);
} rq_transform_calls;

/* The first member of each kind's own struct. */
struct rq_transform {
    const rq_transform_calls *calls;
};

/* How a listener makes the transform of each of its connections. */
typedef struct rq_transform_kind {
    /* On the connection's loop. */
    rq_err (*make)(void *ctx, rq_transform **ret);
    void *ctx;
    rq_budget *budget; /* charged for the transforms' memory; must outlive the streams; may be
                        * NULL */
} rq_transform_kind;

/* Puts a transform below the stream from now on, at most once. Bytes written or received before are
 * not transformed. The stream owns it then, except after RQ_E_NO_MEMORY. `budget`, which may be
 * NULL, is charged for its memory. Loop's thread. */
RQ_NODISCARD
rq_err rq_stream_set_transform(struct rq_stream *s, rq_transform *t, rq_budget *budget);

#endif
