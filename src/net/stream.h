/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP listeners and connections on the loops, for any protocol; the RPC server, the ZooKeeper
 * registry and the client use them. A connection is on one loop at a time. All its callbacks run on that loop's
 * thread, and all rq_stream_ functions must be called there. If its user allows it (on_leave) it
 * moves between loops with their load: little work is gathered on few loops, much is spread.
 *
 * Below a stream there may be a transform (transform.h), and memory instead of a socket (memory.h);
 * its user does not notice.
 *
 * Output is collected and written once per iteration of the loop. What the kernel does not take
 * stays queued; a user that sees rq_stream_out_pending grow should pause reading.
 */
#ifndef RQ_NET_STREAM_H
#define RQ_NET_STREAM_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/macros.h"
#include "net/loop.h"
#include "net/transform.h"

typedef struct rq_listener rq_listener;
typedef struct rq_stream rq_stream;

/* A protocol's callbacks. Set either on_data, or on_buffer and on_read. */
typedef struct rq_stream_events {
    /* A connection was accepted, or an outgoing stream is connected; `ctx` is the listener's, or the outgoing stream's
     * user. The callback usually calls rq_stream_set_user. If it returns an error for an accepted connection, the
     * connection is closed at once, without on_close. */
    rq_err (*on_open)(void *ctx, rq_stream *s);
    /* Bytes received: those not consumed before, followed by new ones; valid during the call.
     * Returns the number of bytes consumed. */
    size_t (*on_data)(rq_stream *s, rq_slice bytes);
    /* Instead of on_data: returns a buffer for the next read (*ret_len at least 1), or NULL to
     * stop reading until rq_stream_resume. */
    void *(*on_buffer)(rq_stream *s, size_t *ret_len);
    /* `len` bytes were read into on_buffer's buffer; 0: there were none. */
    void (*on_read)(rq_stream *s, size_t len);
    /* Some queued output was written. Optional. */
    void (*on_drain)(rq_stream *s);
    /* The stream should move to another loop. Optional; without it a stream never moves. True:
     * the user holds nothing of this loop for the stream, and it moves at once. False: the user
     * stops reading (rq_stream_pause) and is asked again at the end of later iterations. In both
     * cases on_move_end or on_close follows, on the loop where the stream is then. */
    bool (*on_leave)(rq_stream *s);
    /* The stream has arrived on the new loop (rq_stream_loop), or stays; the user continues to
     * read. */
    void (*on_move_end)(rq_stream *s);
    /* Whether a request of the peer is queued or being handled. A stream that is not busy may be closed when descriptors for
     * new connections run short (crowd.c). Optional: without this callback a stream is never closed for that reason. */
    bool (*is_busy)(const rq_stream *s);
    /* The deadline of rq_stream_set_deadline has passed. Optional. */
    void (*on_deadline)(rq_stream *s);
    /* The stream is closed. Called once, never from within another rq_stream_ call. `why` is
     * RQ_OK after an orderly close by either side. The stream is freed when this returns. */
    void (*on_close)(rq_stream *s, rq_err why);
} rq_stream_events;

typedef struct rq_listener_options {
    const char *address;            /* numeric; NULL: 127.0.0.1 */
    bool only_v6;                   /* "::" leaves IPv4 to another listener */
    uint16_t port;                  /* 0: any free one */
    const rq_stream_events *events; /* must live as long as the listener's streams */
    void *ctx;
    unsigned connections_max;           /* further ones are closed at once; 0: no limit */
    const rq_transform_kind *transform; /* below every stream; copied; NULL: none */
} rq_listener_options;

/* Binds, listens and accepts from then on (while the loops run). RQ_E_EXISTS: the port is in
 * use; RQ_E_PERMISSION; RQ_E_INVALID: the address. Not from a loop's thread. */
RQ_NODISCARD
rq_err rq_listener_open(rq_loops *loops, const rq_listener_options *options, rq_listener **ret,
                        rq_error *why);
/* The port it is bound to. */
uint16_t rq_listener_port(const rq_listener *l);
/* Number of open connections. Any thread. */
unsigned rq_listener_connections(const rq_listener *l);
/* Stops listening, and returns when no more connections are accepted. With `streams`, also begins to end every accepted
 * stream: a stream is closed at once if the peer's system has acknowledged all output and the peer has sent nothing
 * that is unread; other streams end as by rq_stream_finish, or earlier, as soon as this condition holds. Not from a
 * loop's thread. */
void rq_listener_stop(rq_listener *l, bool streams);
/* Stops listening, closes the remaining streams without waiting for their output, waits until
 * the last is closed, and frees the listener. REQUIRES: the loops run or never ran. Not from a
 * loop's thread. */
void rq_listener_close(rq_listener *l);

/* A walk over a loop's open streams whose callbacks are `events` (NULL: over all streams that are not closing). An
 * iteration of the loop looks at 1,024 streams at most, so that many streams do not hold the loop. Streams that leave
 * the loop, or join it, during the walk may be missed. */
typedef struct rq_stream_walk {
    const rq_stream_events *events;
    /* Called for each stream; may close streams. False: the walk ends. */
    bool (*visit)(struct rq_stream_walk *walk, rq_stream *s);
    void (*end)(struct rq_stream_walk *walk); /* called once, last; may free the walk */
    /* Used by the loop: */
    rq_loop *loop;
    rq_stream *at; /* the next stream */
    struct rq_stream_walk *next, *prev;
    rq_task task;
} rq_stream_walk;

/* Begins the walk. `visit` and `end` may run before this returns. On the loop. */
void rq_loop_walk_streams(rq_loop *loop, rq_stream_walk *walk);

void rq_stream_set_user(rq_stream *s, void *user);
void *rq_stream_user(const rq_stream *s);
/* The loop the stream is on now. */
rq_loop *rq_stream_loop(const rq_stream *s);

/* Where an outgoing stream goes. Only `host` is copied. */
typedef struct rq_stream_target {
    const char *host; /* a name, or a numeric address without brackets */
    uint16_t port;
    uint64_t timeout_ns; /* to be connected, all addresses together */
    const rq_stream_events *events;
    void *user; /* the stream's, and on_open's ctx */
} rq_stream_target;

/* Begins an outgoing stream: looks the host up, tries its addresses one after another, and calls
 * on_open when one accepts. on_close follows in any case, also if none does or on_open returns an
 * error. Output may be written at once; it is queued until the stream is connected. The stream never moves to another
 * loop. Its socket has the same options as an accepted one's (rq__socket_set_up). On the loop. RQ_E_NO_MEMORY: nothing
 * was begun. */
RQ_NODISCARD
rq_err rq_stream_connect(rq_loop *loop, const rq_stream_target *to, rq_stream **ret);
/* In on_close of an outgoing stream: the text of its failure ("cannot connect to HOST:PORT:
 * Connection refused"). Empty if the peer or the stream's user closed it. */
const char *rq_stream_failure(const rq_stream *s);
/* In on_close of an outgoing stream: each address of the host has refused the connection (ECONNREFUSED), so nobody listens
 * at the port. A listener whose queue is full, or whose process has no descriptor left, does not refuse. */
bool rq_stream_was_refused(const rq_stream *s);

/* Asks the kernel whether the connection of an outgoing stream has ended and has nothing left to be read. The loop
 * says so by on_close, too, at its next turn. */
bool rq_stream_has_ended(const rq_stream *s);

typedef struct rq_peer {
    char host[46]; /* numeric */
    uint16_t port;
} rq_peer;

const rq_peer *rq_stream_peer(const rq_stream *s);

/* The buffer to append output to; never NULL. Valid until another rq_stream_ call or the return
 * to the loop. Call rq_stream_written after appending. */
rq_buf *rq_stream_out(rq_stream *s);
/* Says that output was appended. It is written at the end of the iteration, or at once when
 * there is much of it: then its memory is reused while it is in the caches. */
void rq_stream_written(rq_stream *s);
/* Appends a copy. On RQ_E_NO_MEMORY nothing was appended, and the caller closes the stream. */
RQ_NODISCARD
rq_err rq_stream_write(rq_stream *s, const void *bytes, size_t len);
/* Appends the buffer's memory without copying; *b is empty afterwards, except on an error
 * (RQ_E_NO_MEMORY), after which the caller closes the stream. */
RQ_NODISCARD
rq_err rq_stream_write_owned(rq_stream *s, rq_buf *b);
/* Moves one of the loop's spare large buffers to *b, which must be empty: one with room for
 * `want` bytes if possible. Leaves *b empty if there is none. */
void rq_stream_take_spare(rq_stream *s, size_t want, rq_buf *b);
/* Returns a spare buffer unused; *b is empty afterwards. */
void rq_stream_keep_spare(rq_stream *s, rq_buf *b);
/* Bytes of output that the kernel has not taken yet. */
size_t rq_stream_out_pending(const rq_stream *s);

/* Whether the kernel took less than it was offered, so that pending output waits for the peer. */
bool rq__stream_stalled(const rq_stream *s);
/* The memory of the buffers that hold unsent output, including the wire bytes of a transform: more
 * than the number of unsent bytes. O(number of buffers). */
size_t rq__stream_out_held(const rq_stream *s);
/* Bytes of output that the kernel has taken since the stream was opened. */
uint64_t rq_stream_out_taken(const rq_stream *s);

void rq_stream_pause(rq_stream *s); /* on_read and on_data are not called until resume */
void rq_stream_resume(rq_stream *s);
bool rq_stream_paused(const rq_stream *s);

/* The peer of an accepted stream has said who it is. Streams of other peers are the first to be closed to make room
 * (crowd.c). */
void rq_stream_named(rq_stream *s);

/* Calls on_deadline at `due_ns` of the monotonic clock (accuracy: a second), unless another deadline is set before; 0:
 * never. No effect after rq_stream_finish. */
void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns);

/* Stops reading (on_read and on_data are not called any more), writes queued output, sends end-of-file, and closes when
 * the peer does. The stream is closed earlier if the peer takes nothing for a few seconds, and after twenty seconds in any
 * case. (Closing at once with unread input would reset the connection and could destroy the response on its way.) */
RQ_COLD void rq_stream_finish(rq_stream *s);
/* Drops queued output and closes. on_close follows from the loop. */
RQ_COLD void rq_stream_close(rq_stream *s, rq_err why);
/* Whether finish or close was called, or the peer has closed. */
bool rq_stream_closing(const rq_stream *s);

#endif
