/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one request of one connection, from the read of its frame until its response is passed to
 * the connection.
 *
 * The handler named by the method table gets the call on the connection's loop, exactly once. It
 * must end the call with exactly one of rq_call_reply, rq_call_fail… and rq_call_drop, at once or
 * later, on the same loop's thread. Everything reached through the call (param, cell block, arena,
 * cells) is then freed. In between another thread may work on the call; it is then the only owner,
 * and returns it with rq_call_post. A call outlives its connection; its response is then dropped.
 */
#ifndef RQ_RPC_CALL_H
#define RQ_RPC_CALL_H

#include "base/arena.h"
#include "cell/cellblock.h"
#include "net/loop.h"
#include "rpc/slow_log.h"

#include <protobuf-c/protobuf-c.h>

typedef struct rq_call rq_call;
struct Pb__RequestHeader;

/* One method of a service; an entry in the constant tables of the rooms above. */
typedef struct rq_rpc_method {
    const char *name; /* matched exactly */
    /* NULL: the parameter is not decoded; the handler reads rq_call_param_bytes. */
    const ProtobufCMessageDescriptor *request;
    /* NULL: the method is known but not implemented (DoNotRetryIOException). */
    void (*handle)(void *ctx, rq_call *call);
} rq_rpc_method;

/* The client of a connection; the same for all its calls, valid as long as the call. */
typedef struct rq_rpc_client {
    uint64_t id; /* of the connection: from 1, never used again in the life of the server object */
    const char *user; /* effective user; "" if the header names none */
    size_t user_len;
    const char *real_user; /* or NULL */
    const char *host;      /* numeric address */
    uint16_t port;
    const char *service;    /* the connection's service */
    const char *version;    /* version_info's text; NULL for clients that send none (before 1.2) */
    uint32_t version_major; /* 0, 0 without version_info */
    uint32_t version_minor;
    bool has_codec; /* cell blocks may be sent; else cells go into the messages */
    bool codec_with_tags;
    bool retry_immediately; /* 1.2 or newer: understands RetryImmediatelyException */
} rq_rpc_client;

/* HBase's VersionInfoUtil.hasMinimumVersion; false for clients that send no version. */
static inline bool rq_rpc_client_at_least(const rq_rpc_client *c, uint32_t major, uint32_t minor)
{
    if (c->version == NULL) return false;
    return c->version_major != major ? c->version_major > major : c->version_minor >= minor;
}

/* Fields are read-only for handlers except where noted. */
struct rq_call {
    /* Kept when the call object is used again: */
    rq_loop *loop; /* the loop on which it must end */
    struct rq_call_private *priv;
    rq_cellblock cells; /* the response's cells, appended by the handler; with_tags is set */
    rq_arena arena;     /* for the handler's allocations; released when the call ends */
    /* Zero at first, as is the rest of rq_call_private: */
    const rq_rpc_method *method;
    const rq_rpc_client *client;
    const ProtobufCMessage *param; /* of type method->request; in the arena; NULL without a type */
    rq_slice cell_block;  /* the request's cells as KeyValues (rq_cellblock_next); may be empty */
    bool decoding;        /* set by rq_call_decoding */
    uint64_t received_ns; /* monotonic */
    uint64_t started_ns;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint64_t trace_id;    /* of the client's trace; 0: the request is not traced */
    uint32_t id;
    uint32_t timeout_ms;    /* 0: none */
    uint32_t priority;      /* 0 when the client set none */
    uint32_t request_bytes; /* length of the frame, without its length field */
    /* Times that the call has waited so far, by reason; added by the code that makes it wait. For the slow
     * log. */
    uint64_t place_ns[RQ_CALL_PLACES];
    void *user;   /* the handler's; NULL at first */
    rq_task task; /* the handler's, to post the call to lanes or pools */
};

/* The full request header (attributes, trace), decoded on first use. NULL: memory is exhausted, or
 * a field that dispatch does not need is malformed. */
const struct Pb__RequestHeader *rq_call_header(rq_call *call);

/* The bytes of the parameter, in the frame: valid until the call is answered. REQUIRES: the call is in its
 * handler. */
rq_slice rq_call_param_bytes(const rq_call *call);

/* The service's pointer for this connection; NULL at first. Loop's thread. Must not be used
 * after the connection is closed (rq_call_disconnected); the service is notified of that
 * (rq_rpc_service.closed). */
void **rq_call_connection_state(rq_call *call);

/* The connection is never closed to make room for others (net/crowd.c), also while it is idle. For peers that have proven
 * who they are, and are few. Loop's thread. */
void rq_call_keep_connection(rq_call *call);

/* From this call's response on, the connection's responses are held while the server's lease is expired, even if those
 * of its service are not (rq_rpc_service.answers_always). REQUIRES: connected. Loop's thread. */
void rq_call_hold_answers(rq_call *call);

/* Whether the peer has closed the connection, so that the response is not needed. Loop's thread. */
bool rq_call_disconnected(const rq_call *call);
/* Becomes true when the connection has closed. Any thread; valid as long as the call. */
const _Atomic bool *rq_call_gone(const rq_call *call);
/* Whether the deadline has passed by `now_ns`; HBase then drops the call without a response. */
static inline bool rq__call_expired(const rq_call *call, uint64_t now_ns)
{
    return now_ns > call->deadline_ns;
}

/* Posts `task` to the call's loop. Any thread. */
static inline void rq_call_post(rq_call *call, rq_task *task)
{
    rq_lane_post(rq_loop_lane(call->loop), task);
}

/* Long work of a call, on a pool's thread; then `done` runs on the call's loop. Embedded in its owner, in the call's
 * arena or elsewhere.
 *
 * Each connection has at most one such task on the pool, its other tasks wait: a client that sends many long calls
 * delays other clients by one task per connection. Work of several milliseconds is done in slices, and slices of other
 * connections run in between. Connections with a compressor, which may be a hundred times as slow as anything else, use
 * one thread of RQ_POOL_WORK together; all others use RQ_POOL_CODEC. */
typedef struct rq_call_work {
    rq_call *call;
    bool (*work)(struct rq_call_work
                     *w); /* uses nothing that belongs to the loop; false: there is another slice */
    void (*done)(struct rq_call_work *w);
    rq_executor *executor;
    struct rq_pool_share *packers; /* of the server; NULL: the connection has no compressor */
    bool is_for_peer;              /* not worth its time once the peer has closed the connection */
    rq_task task;
    struct rq_call_work *next; /* of the connection */
} rq_call_work;

/* REQUIRES: no other code uses the call until done() runs, and it is not ended. done() runs once, never before this
 * returns. Loop's thread. */
void rq_call_work_start(rq_call_work *w, rq_executor *executor, rq_call *call,
                        bool (*work)(rq_call_work *w), void (*done)(rq_call_work *w));

/* A call that leaves its loop before its response is complete asks for memory: the response has `held` bytes and is to
 * have `wanted`. RQ_E_AGAIN: `task` runs on the call's loop when the call should ask again; until then the call must
 * hold nothing that others wait for. Other errors: the call must end with it. One call at a time is always allowed to
 * continue, so that half-made responses never wait for each other. Loop's thread. */
RQ_NODISCARD
rq_err rq_call_may_grow(rq_call *call, size_t held, size_t wanted, rq_task *task);
/* Whether a complete response may grow to `wanted` bytes. It never waits: if false, the response
 * must be dropped. */
bool rq_call_can_grow(rq_call *call, size_t wanted);
/* Whether a large response would have to wait; a call that can end with a smaller one should. */
bool rq_call_answers_are_scarce(const rq_call *call);

/* The call whose handler, or whose work on a pool, runs on this thread; NULL: none. For the report
 * of a crash: async-signal-safe. */
const rq_call *rq_call_in_hand(void);
/* For handlers that continue in a task: sets the call that this thread works on, for crash reports
 * (NULL: none), and returns the previous one. The end of a call resets it. */
const rq_call *rq_call_take_in_hand(const rq_call *call);

/* --- endings; all on the loop's thread ------------------------------------------------------- */

/* Sends the message, and call->cells as the cell block if there are any (REQUIRES then:
 * client->has_codec). The message is serialized before this returns. */
void rq_call_reply(rq_call *call, const ProtobufCMessage *response);
/* Like rq_call_reply, with a serialized message. */
void rq_call_reply_packed(rq_call *call, rq_slice message);

/* Sends errors.def's Java exception for `code`. fmt NULL: with the table's text. */
RQ_COLD void rq_call_fail(rq_call *call, rq_err code, const char *fmt, ...) RQ_PRINTF(3, 4);
/* Like rq_call_fail, with why's message if there is one. Damage is also logged (rq_call_alarm). */
RQ_COLD void rq_call_fail_why(rq_call *call, rq_err code, const rq_error *why);
/* Logs damage met by the call (RQ_E_CORRUPT, which only storage returns; other codes are
 * ignored), for errors that the client gets as part of a response. At most a few lines per
 * second. */
void rq_call_alarm(const rq_call *call, rq_err code, const rq_error *why);

/* The fields of an exception. */
typedef struct rq_rpc_exception {
    const char *java_class;
    const char *message; /* NULL: none, like new X() in Java */
    bool do_not_retry;
    bool server_overloaded;
    const char *hostname; /* RegionMovedException: the region's server; else NULL */
    uint16_t port;
} rq_rpc_exception;

RQ_COLD void rq__call_throw(rq_call *call, const rq_rpc_exception *exception);

/* Ends the call without a response: the client has given up (deadline passed). */
void rq_call_drop(rq_call *call);

/* --- parts of answers ------------------------------------------------------------------------ */

/* errors.def's exception as the NameBytesPair of a Multi's action needs it: *ret_class is
 * static, *ret_text ("class: message") is in the arena. */
RQ_NODISCARD
rq_err rq_rpc_exception_text(rq_arena *arena, rq_err code, const char *message,
                             const char **ret_class, rq_slice *ret_text);

/* Set while a handler decodes parts of its request that may expand (a message inside bytes, a
 * filter, lists). If the budget of requests is used up the arena then returns NULL, and the
 * call's RQ_E_NO_MEMORY becomes CallQueueTooBigException. Otherwise the arena may exceed the
 * budget, up to the limit of one call, at which RQ_E_NO_MEMORY becomes DoNotRetryIOException. */
static inline void rq_call_decoding(rq_call *call, bool decoding)
{
    call->decoding = decoding;
}

/* An allocator for protobuf-c: allocates from the arena and frees nothing. For unpacking
 * endpoint messages and filters. Valid as long as the arena. */
ProtobufCAllocator rq_rpc_allocator(rq_arena *arena);

#endif
