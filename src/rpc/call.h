/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: one request of one connection, from the moment its frame was read until its answer is
 * handed to the connection.
 *
 * The handler that the method table names gets it on the connection's loop, exactly once, and sees
 * to it that exactly one of rq_call_reply, rq_call_fail… or rq_call_drop follows: at once, or later
 * from the same loop's thread. That ends the call: everything reached through it (param, cell
 * block, arena, cells) is gone. In between it may travel: whoever works on it on another thread
 * owns it alone and comes back with rq_call_post. A call outlives its connection; its answer is
 * then dropped.
 */
#ifndef RQ_RPC_CALL_H
#define RQ_RPC_CALL_H

#include "base/arena.h"
#include "cell/cellblock.h"
#include "net/loop.h"

#include <protobuf-c/protobuf-c.h>

typedef struct rq_call rq_call;
struct Pb__RequestHeader;

/* One method of a service; constant tables of the rooms above. */
typedef struct rq_rpc_method {
    const char *name; /* matched exactly */
    const ProtobufCMessageDescriptor *request;
    /* NULL: the method is known but not served (DoNotRetryIOException). */
    void (*handle)(void *ctx, rq_call *call);
} rq_rpc_method;

/* Who is at the other end; the same for all calls of a connection, valid as long as the call. */
typedef struct rq_rpc_client {
    const char *user; /* effective user; "" when the header named none */
    size_t user_len;
    const char *real_user; /* or NULL */
    const char *host;      /* numeric address */
    uint16_t port;
    const char *service;    /* the connection's service */
    const char *version;    /* text of version_info, NULL for clients that send none (before 1.2) */
    uint32_t version_major; /* 0, 0 without version_info */
    uint32_t version_minor;
    bool has_codec; /* cell blocks may be sent; else cells go into the messages */
    bool codec_with_tags;
    bool retry_immediately; /* at least 1.2: understands RetryImmediatelyException */
} rq_rpc_client;

/* HBase's VersionInfoUtil.hasMinimumVersion; false for clients that send no version. */
static inline bool rq_rpc_client_at_least(const rq_rpc_client *c, uint32_t major, uint32_t minor)
{
    if (c->version == NULL) return false;
    return c->version_major != major ? c->version_major > major : c->version_minor >= minor;
}

/* Public fields are read-only for handlers except where said. */
struct rq_call {
    const rq_rpc_method *method;
    const rq_rpc_client *client;
    rq_loop *loop;                 /* where it ends */
    const ProtobufCMessage *param; /* of type method->request; lives in the arena */
    rq_slice cell_block;  /* cells as KeyValues (rq_cellblock_next); empty when none came */
    rq_cellblock cells;   /* the answer's cells: append here; with_tags is set already */
    bool decoding;        /* rq_call_decoding's */
    rq_arena arena;       /* allocate freely; links are released when the call ends */
    uint64_t received_ns; /* monotonic */
    uint64_t started_ns;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint32_t id;
    uint32_t timeout_ms;    /* 0: none */
    uint32_t priority;      /* 0 when the client set none */
    uint32_t request_bytes; /* of the frame, without its length */
    void *user;             /* the handler's; NULL at first */
    rq_task task;           /* the handler's, to post the call to lanes or pools */
    struct rq_call_private *priv;
};

/* The whole request header (attributes, trace), decoded on first use; NULL when memory is out. */
const struct Pb__RequestHeader *rq_call_header(rq_call *call);

/* What the service keeps of the call's connection, NULL at first; loop's thread. Not to be used once
 * the connection is gone (rq_call_disconnected), of which the service is told (`closed`). */
void **rq_call_connection_state(rq_call *call);

/* Nobody waits for the answer any more: the peer has gone. Loop's thread. */
bool rq_call_disconnected(const rq_call *call);
/* The deadline has passed by `now_ns`: HBase then drops the call without an answer. */
static inline bool rq_call_expired(const rq_call *call, uint64_t now_ns)
{
    return now_ns > call->deadline_ns;
}

/* Posts `task` to the call's lane. Any thread. */
static inline void rq_call_post(rq_call *call, rq_task *task)
{
    rq_lane_post(rq_loop_lane(call->loop), task);
}

/* Asked by a call that leaves its loop before its answer is whole: the answer has `held` bytes and
 * is about to have `wanted`. RQ_E_AGAIN: `task` runs on the call's loop when it may ask again; until
 * then the call must hold nothing that others wait for. Another error: the call shall end with it.
 * One call at a time may go on in any case, so that half-made answers never wait for each other.
 * Loop's thread. */
RQ_NODISCARD
rq_err rq_call_may_grow(rq_call *call, size_t held, size_t wanted, rq_task *task);
/* The same for an answer that is whole, and is given up if this is false: nothing waits. */
bool rq_call_can_grow(rq_call *call, size_t wanted);
/* Large answers would have to wait: a call that can end with less does. */
bool rq_call_answers_are_scarce(const rq_call *call);

/* --- endings; all on the loop's thread ------------------------------------------------------- */

/* Sends the message, and call->cells as the cell block when there are any (REQUIRES then:
 * client->has_codec). The message is serialized before this returns. */
void rq_call_reply(rq_call *call, const ProtobufCMessage *response);
/* The same with a message that is serialized already. */
void rq_call_reply_packed(rq_call *call, rq_slice message);

/* Sends the table's Java exception for `code`, with the message, or the table's text when fmt is
 * NULL. */
RQ_COLD void rq_call_fail(rq_call *call, rq_err code, const char *fmt, ...) RQ_PRINTF(3, 4);
/* With why's message when there is one. Damage is logged too, as by rq_call_alarm. */
RQ_COLD void rq_call_fail_why(rq_call *call, rq_err code, const rq_error *why);
/* Tells the operator of damaged bytes that the call met (RQ_E_CORRUPT, which is storage's alone; else
 * nothing): for errors that reach the client as a part of an answer. Limited to a few lines a
 * second. */
void rq_call_alarm(const rq_call *call, rq_err code, const rq_error *why);

/* Everything an exception can say. */
typedef struct rq_rpc_exception {
    const char *java_class;
    const char *message; /* NULL: none, as new X() in Java */
    bool do_not_retry;
    bool server_overloaded;
    const char *hostname; /* RegionMovedException: where it is now; else NULL */
    uint16_t port;
} rq_rpc_exception;

RQ_COLD void rq_call_throw(rq_call *call, const rq_rpc_exception *exception);

/* No answer at all: the client has given up (deadline passed). */
void rq_call_drop(rq_call *call);

/* --- parts of answers ------------------------------------------------------------------------ */

/* The table's exception as a Multi's per-action NameBytesPair wants it: `ret_class` is static,
 * `ret_text` ("class: message") lives in the arena. */
RQ_NODISCARD
rq_err rq_rpc_exception_text(rq_arena *arena, rq_err code, const char *message,
                             const char **ret_class, rq_slice *ret_text);

/* While a handler decodes what its request brought (a message inside bytes, a filter, lists of what
 * is asked for), which may swell: where the memory of requests is spent the arena gives NULL, and
 * RQ_E_NO_MEMORY as the call's end becomes CallQueueTooBigException. Elsewhere what the arena gets
 * is charged and never refused. */
static inline void rq_call_decoding(rq_call *call, bool decoding)
{
    call->decoding = decoding;
}

/* For protobuf-c: allocates from the arena, frees nothing. Unpack endpoint messages and filters
 * with it. Valid as long as the arena. */
ProtobufCAllocator rq_rpc_allocator(rq_arena *arena);

#endif
