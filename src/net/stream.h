/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP listeners and connections on the loops, for any protocol: the RPC server and the ZooKeeper
 * registry are both users. A connection lives on one loop at a time; all its calls come from, and
 * all rq_stream_ functions are for, that loop's thread. Where its user allows it (on_leave) it
 * changes loops as their load demands: little work gathers on few loops, much is spread.
 *
 * Output is gathered and written once per iteration of the loop. What the kernel does not take
 * stays queued; a user that sees rq_stream_out_pending grow pauses reading.
 */
#ifndef RQ_NET_STREAM_H
#define RQ_NET_STREAM_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/macros.h"
#include "net/loop.h"

typedef struct rq_listener rq_listener;
typedef struct rq_stream rq_stream;

/* What a protocol does with its connections. Either on_data, or on_buffer and on_read. */
typedef struct rq_stream_events {
    /* A connection was accepted; `ctx` is the listener's. Usually calls rq_stream_set_user. An
     * error closes it at once and on_close is not called. */
    rq_err (*on_open)(void *ctx, rq_stream *s);
    /* Bytes that were not consumed before, and new ones behind them; valid during the call.
     * Returns how many it consumed. */
    size_t (*on_data)(rq_stream *s, rq_slice bytes);
    /* Instead of on_data: where the next bytes shall go (at least 1), or NULL to stop reading until
     * rq_stream_resume. */
    void *(*on_buffer)(rq_stream *s, size_t *ret_len);
    /* `len` bytes were put where on_buffer said; 0 when there were none after all. */
    void (*on_read)(rq_stream *s, size_t len);
    /* Some queued output was written; optional. */
    void (*on_drain)(rq_stream *s);
    /* It should go to another loop; optional, without it a stream stays where it began. True: the
     * user holds nothing of this loop's for it, and it goes at once. False: the user reads no more
     * (rq_stream_pause) and is asked again at the end of later iterations. Either way on_settled
     * follows, or on_close, that too on the loop where the stream is then. */
    bool (*on_leave)(rq_stream *s);
    /* It has arrived (rq_stream_loop), or stays after all: the user reads on. */
    void (*on_settled)(rq_stream *s);
    /* The time given to rq_stream_set_deadline has passed; optional. */
    void (*on_deadline)(rq_stream *s);
    /* Called once, never from within another rq_stream_ call; `why` is RQ_OK when the peer or we
     * closed it in order. The stream is gone when this returns. */
    void (*on_close)(rq_stream *s, rq_err why);
} rq_stream_events;

typedef struct rq_listener_options {
    const char *address;            /* numeric; NULL: 127.0.0.1 */
    bool only_v6;                   /* "::" leaves IPv4 to another listener */
    uint16_t port;                  /* 0: any free one */
    const rq_stream_events *events; /* must live as long as the listener's streams */
    void *ctx;
    unsigned connections_max; /* further ones are closed at once; 0: no limit */
} rq_listener_options;

/* Binds and listens, and accepts from then on (once the loops run). RQ_E_EXISTS: the port is in
 * use; RQ_E_PERMISSION, RQ_E_INVALID (address). Not from a loop's thread. */
RQ_NODISCARD
rq_err rq_listener_open(rq_loops *loops, const rq_listener_options *options, rq_listener **ret,
                        rq_error *why);
/* The port it is bound to. */
uint16_t rq_listener_port(const rq_listener *l);
/* Connections open now. Any thread. */
unsigned rq_listener_connections(const rq_listener *l);
/* Stops listening; with `streams`, also asks every stream that it accepted to finish (as
 * rq_stream_finish). Waits for the former only. Not from a loop's thread. */
void rq_listener_stop(rq_listener *l, bool streams);
/* Stops, closes the streams that are left without waiting for their output, and frees once the last
 * is gone. Waits. REQUIRES: the loops run or never ran; not from a loop's thread. */
void rq_listener_close(rq_listener *l);

void rq_stream_set_user(rq_stream *s, void *user);
void *rq_stream_user(const rq_stream *s);
/* The one it is on now. */
rq_loop *rq_stream_loop(const rq_stream *s);

typedef struct rq_peer {
    char host[46]; /* numeric */
    uint16_t port;
} rq_peer;

const rq_peer *rq_stream_peer(const rq_stream *s);

/* The buffer that output is appended to; never NULL, and valid until any other rq_stream_ call or
 * the return to the loop. Follow with rq_stream_written. */
rq_buf *rq_stream_out(rq_stream *s);
/* Says that something was appended. It leaves with all that the iteration appends, or at once when
 * that is much already: then its memory serves the next answers while caches have it. */
void rq_stream_written(rq_stream *s);
/* Appends a copy. On RQ_E_NO_MEMORY nothing was appended; the caller closes. */
RQ_NODISCARD
rq_err rq_stream_write(rq_stream *s, const void *bytes, size_t len);
/* Moves the buffer's memory behind what was appended so far; *b is empty afterwards. */
RQ_NODISCARD
rq_err rq_stream_write_owned(rq_stream *s, rq_buf *b);
/* Large buffers whose bytes were written are kept, some per loop: moves one to *b, which is empty,
 * with room for `want` bytes if there is such a one, or leaves *b empty. */
void rq_stream_take_spare(rq_stream *s, size_t want, rq_buf *b);
/* Gives such a buffer back unused; *b is empty afterwards. */
void rq_stream_keep_spare(rq_stream *s, rq_buf *b);
/* Output the kernel has not taken yet. */
size_t rq_stream_out_pending(const rq_stream *s);

/* The kernel took less than it was offered: what is pending waits for the peer. */
bool rq_stream_stalled(const rq_stream *s);
/* Memory of the output, which is more than its bytes. Takes a step for each buffer. */
size_t rq_stream_out_held(const rq_stream *s);
/* Bytes that the kernel took since the beginning. */
uint64_t rq_stream_out_taken(const rq_stream *s);

void rq_stream_pause(rq_stream *s); /* on_read and on_data are not called until resume */
void rq_stream_resume(rq_stream *s);
bool rq_stream_paused(const rq_stream *s);

/* on_deadline is called about then (accuracy: a second) unless moved; 0: never. */
void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns);

/* Reads no more, writes what is queued (for a few seconds, if the peer takes it), says end-of-file
 * to the peer, and closes when the peer does or after a few seconds more. (Closing at once with unread input would reset the connection and could
 * destroy the answer on its way.) on_read and on_data are not called any more. */
RQ_COLD void rq_stream_finish(rq_stream *s);
/* Drops what is queued and closes. on_close follows from the loop. */
RQ_COLD void rq_stream_close(rq_stream *s, rq_err why);
/* finish or close was called, or the peer has gone. */
bool rq_stream_closing(const rq_stream *s);

#endif
