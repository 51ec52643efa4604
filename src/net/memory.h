/* SPDX-License-Identifier: Apache-2.0 */
/* Connections in memory: a stream accepted by a listener without a socket, and its other end, the
 * peer, for programs that have a server in their own process, and for tests. The stream behaves
 * like any other, but does not move to other loops; its peer's address is 127.0.0.1, port 0. Each
 * direction keeps at most RQ_MEMORY_BYTES that the other side has not read; then the writer waits,
 * as with a socket.
 *
 * A peer is used by one thread at a time, never by a loop of the same server, because its calls
 * wait. */
#ifndef RQ_NET_MEMORY_H
#define RQ_NET_MEMORY_H

#include "net/stream.h"

#define RQ_MEMORY_BYTES ((size_t)256 * 1024)

typedef struct rq_memory_peer rq_memory_peer;

/* Opens a connection to the listener. Any thread. RQ_E_CANCELLED: the listener has stopped, or its
 * loops do not run. RQ_E_NO_MEMORY. A connection that the listener refuses is closed at once, as by
 * a socket. */
RQ_NODISCARD
rq_err rq_memory_connect(rq_listener *l, rq_memory_peer **ret);
/* Waits until there was room for all bytes. RQ_E_IO: the stream has closed. */
RQ_NODISCARD
rq_err rq_memory_write(rq_memory_peer *p, const void *bytes, size_t len);
/* Waits for at least one byte. *ret_len 0: the stream sends no more. */
void rq_memory_read(rq_memory_peer *p, void *bytes, size_t len, size_t *ret_len);
/* Bytes that rq_memory_read would return without waiting. */
size_t rq_memory_readable(rq_memory_peer *p);
/* The peer sends no more. */
void rq_memory_finish(rq_memory_peer *p);
/* Closes the peer's end and frees it. NULL: no-op. */
void rq_memory_close(rq_memory_peer *p);

#endif
