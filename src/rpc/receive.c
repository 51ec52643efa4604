/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame to a handler: finds the method, decodes the parameter and the cell block (long ones
 * on a pool), and calls the method's handler, or responds with an exception. All bytes are
 * untrusted. */
#include "rpc/call_priv.h"

#include "base/pb.h"
#include "base/pb_missing.h"
#include "base/work_limit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define HB "org.apache.hadoop.hbase."
#define SHADED "org.apache.hbase.thirdparty.com.google.protobuf."

/* The call that this thread works on, for crash reports: a signal handler gets no argument of the
 * program, so it must find the call through its thread. Nothing else depends on it. */
static _Thread_local const rq_call *in_hand;

const rq_call *rq_call_in_hand(void)
{
    return in_hand;
}

const rq_call *rq_call_take_in_hand(const rq_call *call)
{
    const rq_call *before = in_hand;
    in_hand = call;
    return before;
}

void rq__call_out_of_hand(const rq_call *call)
{
    if (in_hand == call) in_hand = NULL;
}

/* An error found while a request was read, before its handler was called. */
struct refusal {
    rq_rpc_exception exception;
    bool says_point; /* the message is complete by itself: the parameter is not malformed */
    char message[512];
};

RQ_COLD static bool refuse(struct refusal *r, const char *java_class, bool do_not_retry,
                           const char *fmt, ...) RQ_PRINTF(4, 5);

RQ_COLD static bool refuse(struct refusal *r, const char *java_class, bool do_not_retry,
                           const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->message, sizeof r->message, fmt, args);
    va_end(args);
    r->exception.java_class = java_class;
    r->exception.do_not_retry = do_not_retry;
    return false;
}

/* A client that repeats the request is served later, unless the request fits into no budget. */
RQ_COLD static bool refuse_overloaded(const rq_call_private *p, struct refusal *r)
{
    char text[sizeof r->message];
    if (p->never_fits)
        return refuse(r, HB "DoNotRetryIOException", true, "%s",
                      rq__request_is_too_large(p, text, sizeof text));
    r->exception.server_overloaded = true;
    return refuse(r, HB "CallQueueTooBigException", false, "%s",
                  rq__call_queue_is_full(p, text, sizeof text));
}

_Atomic uint64_t *rq__method_count(const rq_rpc_conn *conn, const rq_rpc_method *m)
{
    const rq_rpc_service_index *service = conn->service;
    size_t place = service->first_method + (size_t)(m - service->service.methods);
    return &conn->worker->method_calls[place];
}

static bool find_method(rq_call_private *p, const rq_request_head *head, struct refusal *r)
{
    rq_rpc_conn *conn = p->conn;
    const rq_rpc_method *m = conn->last_method;
    if (m == NULL || !rq_slice_eq(rq_slice_cstr(m->name), head->method)) {
        m = rq__service_method(conn->service, head->method);
        conn->last_method = m;
        conn->last_count = m == NULL ? NULL : rq__method_count(conn, m);
    }
    p->call.method = m;
    if (m != NULL && m->handle != NULL) return true;
    r->says_point = true;
    return refuse(r, HB "DoNotRetryIOException", true,
                  "java.lang.UnsupportedOperationException: %.*s%s%s", (int)head->method.len,
                  (const char *)head->method.ptr,
                  m == NULL ? ": no such method of " : " is not served here, a method of ",
                  conn->service->service.name);
}

/* Bytes that a loop searches for missing fields: up to about 20 ns each. */
#define SEARCHED_AT_ONCE ((size_t)16 * 1024)

/* False without a message: a pool decodes the parameter once more, and refuses it. */
RQ_COLD static bool refuse_param(rq_call_private *p, rq_slice bytes, struct refusal *r)
{
    char missing[sizeof r->message];
    if (p->takes_long) return false;
    if (p->over_budget) return refuse_overloaded(p, r);
    if (bytes.len > SEARCHED_AT_ONCE && !p->on_pool && rq__call_may_offload(p)) {
        p->takes_long = true;
        return false;
    }
    if (rq_pb_missing(p->call.method->request, bytes, missing, sizeof missing))
        return refuse(r, SHADED "UninitializedMessageException", false, "%s", missing);
    return refuse(r, SHADED "InvalidProtocolBufferException", false,
                  "the parameter of %s is malformed", p->call.method->name);
}

RQ_COLD static bool refuse_long_param(const rq_call_private *p, size_t len, size_t max,
                                      struct refusal *r)
{
    r->says_point = true;
    return refuse(r, HB "DoNotRetryIOException", true,
                  "the parameter of %s has %zu bytes; the limit of this method is %zu",
                  p->call.method->name, len, max);
}

static bool check_length(const rq_call_private *p, size_t len, struct refusal *r)
{
    size_t max = rq__rpc_param_max(&p->conn->service->service, p->call.method->name);
    return len <= max || refuse_long_param(p, len, max, r);
}

RQ_COLD static bool refuse_short_param(const rq_call_private *p, struct refusal *r)
{
    return refuse(r, SHADED "InvalidProtocolBufferException", false,
                  "the parameter of %s is truncated", p->call.method->name);
}

RQ_INLINE bool decode_param(rq_call_private *p, rq_cursor *c, struct refusal *r)
{
    rq_call *call = &p->call;
    rq_slice bytes;
    if (!rq_pb_delimited(c, &bytes)) return refuse_short_param(p, r);
    if (RQ_UNLIKELY(call->method->request == NULL)) return true; /* the handler decodes it */
    ProtobufCAllocator allocator = rq_rpc_allocator(&call->arena);
    const rq_rpc_service *service = &p->conn->service->service;
    rq_call_decoding(call, true);
    if (RQ_LIKELY(service->unpack != NULL))
        call->param = service->unpack(call->method->request, &allocator, bytes);
    if (RQ_UNLIKELY(call->param == NULL && !p->over_budget && !p->takes_long))
        call->param =
            protobuf_c_message_unpack(call->method->request, &allocator, bytes.len, bytes.ptr);
    rq_call_decoding(call, false);
    return RQ_LIKELY(call->param != NULL) || refuse_param(p, bytes, r);
}

/* Decompresses a block, unless that was done before (`unpacked`), or converts it from another codec, into p->block: at
 * most raw_max bytes. */
static rq_err unpack_block(rq_call_private *p, rq_slice bytes, size_t raw_max,
                           rq_unpacking *unpacked, rq_error *why)
{
    rq_rpc_conn *conn = p->conn;
    rq_buf raw = {0};
    if (conn->compressor != NULL) {
        rq_err rc = unpacked != NULL
                        ? rq__unpacking_take(unpacked, &raw, why)
                        : rq__compressor_unpack(conn->compressor, bytes, raw_max, &raw, why);
        if (rc != RQ_OK || rq__cell_codec_is_native(conn->codec)) {
            p->block = raw;
            return rc;
        }
        bytes = rq_buf_slice(&raw);
    }
    rq_cellblock cells = {.with_tags = rq__cell_codec_has_tags(conn->codec)};
    rq_err rc = rq__cell_codec_decode(conn->codec, bytes, &cells, why);
    rq_buf_clear(&raw);
    p->block = cells.bytes;
    return rc;
}

/* The largest size that a compressed block may decompress to: no more than could be charged
 * afterwards. */
static size_t raw_limit(const rq_call_private *p)
{
    size_t limit = p->conn->worker->server->options.request_bytes_max;
    size_t chargeable = rq__call_charge_max(p);
    return chargeable < limit ? chargeable : limit;
}

/* The cell block's bytes in the frame; empty if there is none. */
static bool find_block(rq_call_private *p, const rq_request_head *head, rq_cursor *c, rq_slice *ret,
                       struct refusal *r)
{
    *ret = (rq_slice){0};
    if (!head->has_cell_block) return true;
    if (!rq_cursor_bytes(c, head->cell_block_len, ret))
        return refuse(r, "java.lang.IllegalArgumentException", false,
                      "the cell block's length %u exceeds the frame", head->cell_block_len);
    if (p->conn->codec != RQ_CODEC_NONE) return true;
    return refuse(r, HB "DoNotRetryIOException", true,
                  "a cell block came, but the connection header named no codec");
}

/* TOO_LONG: for the loop. */
typedef enum outcome { DECODED, REFUSED, TOO_LONG } outcome;

/* TOO_LONG: the block decompresses to more than raw_max bytes; nothing was changed. */
static outcome take_unpacked(rq_call_private *p, rq_slice bytes, size_t raw_max,
                             rq_unpacking *unpacked, struct refusal *r)
{
    rq_error why;
    rq_error_clear(&why);
    size_t limit = raw_limit(p);
    rq_err rc = unpack_block(p, bytes, raw_max < limit ? raw_max : limit, unpacked, &why);
    if (rc == RQ_E_RESULT_TOO_LARGE && raw_max < limit) {
        rq_buf_clear(&p->block);
        return TOO_LONG;
    }
    if (rc == RQ_E_RESULT_TOO_LARGE && limit < p->conn->worker->server->options.request_bytes_max) {
        p->never_fits = true;
        return refuse_overloaded(p, r), REFUSED;
    }
    if (rc != RQ_OK)
        return refuse(r, "java.io.IOException", false, "%s",
                      why.message[0] != '\0' ? why.message : rq_err_text(rc)),
               REFUSED;
    if (!rq__call_charge(p, p->block.cap)) return refuse_overloaded(p, r), REFUSED;
    p->call.cell_block = rq_buf_slice(&p->block);
    return DECODED;
}

/* Decodes the parameter, then the cell block, of at most raw_max bytes when decompressed. Any
 * thread, while no other thread uses the call. */
RQ_INLINE outcome decode(rq_call_private *p, rq_cursor param, rq_slice block, size_t raw_max,
                         rq_unpacking *unpacked, struct refusal *r)
{
    if (p->call.param == NULL && !decode_param(p, &param, r))
        return RQ_UNLIKELY(p->takes_long) ? TOO_LONG : REFUSED;
    if (block.len > 0 && !rq__call_is_as_sent(p))
        return take_unpacked(p, block, raw_max, unpacked, r);
    p->call.cell_block = block;
    return DECODED;
}

RQ_COLD static bool refuse_long_head(const rq_request_head *head, struct refusal *r)
{
    r->says_point = true;
    return refuse(r, HB "DoNotRetryIOException", true,
                  "the request's header has %zu bytes; the limit is %zu", head->bytes.len,
                  RQ_REQUEST_HEAD_MAX);
}

static bool find_parts(rq_call_private *p, const rq_request_head *head, rq_cursor *c,
                       rq_cursor *ret_param, rq_slice *ret_block, struct refusal *r)
{
    rq_slice message;
    if (RQ_UNLIKELY(head->is_too_long)) return refuse_long_head(head, r);
    if (!head->has_param)
        return refuse(
            r, HB "DoNotRetryIOException", true,
            "Invalid request header: call_id: %u method_name: \"%.*s\", should have param "
            "set in it",
            head->call_id, (int)head->method.len, (const char *)head->method.ptr);
    *ret_param = *c;
    *ret_block = (rq_slice){0};
    if (!find_method(p, head, r)) return false;
    if (!rq_pb_delimited(c, &message)) return true; /* decode() reports it */
    if (RQ_UNLIKELY(message.len > RQ_RPC_PARAM_SHORT) && !check_length(p, message.len, r))
        return false;
    return find_block(p, head, c, ret_block, r);
}

/* A parameter of this size takes about a millisecond to decode if a real client has sent it. A parameter made of tiny
 * fields takes up to 35 times as long; the loop notices that while it decodes (takes_long). */
#define LONG_PARAM ((size_t)512 * 1024)
#define LONG_BLOCK ((size_t)64 * 1024) /* takes as long to convert from another codec */

static bool decoding_is_long(const rq_call_private *p, rq_cursor param, rq_slice block)
{
    bool unpacks = block.len > 0 && !rq__call_is_as_sent(p);
    if (RQ_LIKELY(p->call.request_bytes <= LONG_PARAM && !unpacks) || !rq__call_may_offload(p))
        return false;
    const rq_compressor *c = p->conn->compressor;
    size_t block_max = c == NULL ? LONG_BLOCK : rq__compressor_short(c);
    return rq_cursor_left(&param) - block.len > LONG_PARAM ||
           (unpacks && (block.len > block_max || rq__compressor_expands(c)));
}

RQ_COLD static void answer_refusal(rq_call_private *p, struct refusal *r)
{
    char text[RQ__TEXT_MAX], address[RQ_ADDRESS_MAX];
    r->exception.message = r->message;
    if (r->exception.server_overloaded || r->says_point)
        snprintf(text, sizeof text, "%s", r->message);
    else
        snprintf(text, sizeof text, "/%s is unable to read call parameter from client %s; %s",
                 rq__server_address(p->conn->worker->server, address), p->conn->client.host,
                 r->message);
    rq__call_throw_text(p, &r->exception, text);
}

static void set_times(rq_call *call, const rq_request_head *head, rq_rpc_worker *w)
{
    const rq_rpc_server *s = w->server;
    call->received_ns = rq_loop_now_ns(call->loop);
    call->started_ns = w->begun_ns = rq_loop_clock_ns();
    call->deadline_ns = UINT64_MAX;
    if (head->timeout_ms == 0) return;
    call->timeout_ms =
        head->timeout_ms > s->options.min_timeout_ms ? head->timeout_ms : s->options.min_timeout_ms;
    call->deadline_ns = call->received_ns + (uint64_t)call->timeout_ms * 1000000;
}

RQ_INLINE void dispatch(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    rq_buf *cells = &p->call.cells.bytes;
    size_t want = conn->worker->large_bytes;
    if (p->call.method == conn->worker->large_method && cells->cap < want) {
        rq_buf spare = {0};
        rq_stream_take_spare(conn->stream, want, &spare);
        if (spare.cap > cells->cap) {
            rq_buf_clear(cells);
            *cells = spare;
        } else {
            rq_stream_keep_spare(conn->stream, &spare);
        }
    }
    bool cached = RQ_LIKELY(p->call.method == conn->last_method); /* not after a pool has decoded */
    rq__counter_add(cached ? conn->last_count : rq__method_count(conn, p->call.method), 1);
    const rq_call *before = rq_call_take_in_hand(&p->call);
    p->call.method->handle(conn->service->service.ctx, &p->call);
    (void)rq_call_take_in_hand(before);
}

RQ_INLINE void begin(rq_call_private *p, outcome o, struct refusal *r, uint64_t now_ns)
{
    if (o != DECODED)
        answer_refusal(p, r);
    else if (rq__call_expired(&p->call, now_ns))
        rq_call_drop(&p->call);
    else
        dispatch(p);
}

/* A request while it is decoded on the pool. */
struct preparation {
    rq_call_work work;
    rq_cursor param;
    rq_slice block;
    rq_unpacking unpacking; /* of the block, if the connection has a compressor */
    outcome outcome;
    struct refusal refusal;
};

/* False: there is another slice. The parameter is decoded by the first one, since it is charged before the block. */
static bool unpack_slice(rq_call_private *p, struct preparation *k)
{
    const rq_compressor *c = p->conn->compressor;
    if (c == NULL || k->block.len == 0 || rq__call_is_as_sent(p)) return true;
    if (!k->unpacking.has_begun) {
        rq_cursor param = k->param;
        if (p->call.param == NULL && !decode_param(p, &param, &k->refusal)) return true;
        rq__unpacking_begin(&k->unpacking, c, k->block, raw_limit(p));
    }
    return rq__unpacking_step(&k->unpacking);
}

static bool decode_on_pool(rq_call_work *w)
{
    struct preparation *k = RQ_CONTAINER_OF(w, struct preparation, work);
    rq_call_private *p = rq__call_private(w->call);
    if (!unpack_slice(p, k)) return false;
    rq_unpacking *unpacked = k->unpacking.has_begun ? &k->unpacking : NULL;
    bool is_refused = unpacked == NULL && k->refusal.message[0] != '\0';
    k->outcome =
        is_refused ? REFUSED : decode(p, k->param, k->block, SIZE_MAX, unpacked, &k->refusal);
    return true;
}

static void decoded_on_pool(rq_call_work *w)
{
    struct preparation *k = RQ_CONTAINER_OF(w, struct preparation, work);
    rq_call_private *p = rq__call_private(w->call);
    if (rq_call_disconnected(&p->call))
        rq_call_drop(&p->call);
    else
        begin(p, k->outcome, &k->refusal, rq_loop_clock_ns());
    rq__unpacking_clear(&k->unpacking);
    free(k);
}

RQ_COLD static void decode_elsewhere(rq_call_private *p, rq_cursor param, rq_slice block)
{
    struct preparation *k = calloc(1, sizeof *k);
    if (k == NULL) {
        rq_call_fail(&p->call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    k->param = param;
    k->block = block;
    if (p->takes_long && p->header == NULL)
        rq_arena_reset(&p->call.arena); /* what the loop began */
    p->takes_long = false;
    p->on_pool = true;
    rq__call_offload(p, &k->work, decode_on_pool, decoded_on_pool);
}

/* Accepts a call whose head is decoded; `c` is at the bytes behind it. */
static void receive(rq_call_private *p, const rq_request_head *head, rq_cursor c)
{
    struct refusal r;
    r.exception = (rq_rpc_exception){0};
    r.says_point = false;
    r.message[0] = '\0'; /* the rest is never read */
    rq_cursor param;
    rq_slice block;
    outcome o = REFUSED;
    if (find_parts(p, head, &c, &param, &block, &r)) {
        if (decoding_is_long(p, param, block))
            o = TOO_LONG;
        else
            o = decode(p, param, block, rq__call_may_offload(p) ? LONG_BLOCK : SIZE_MAX, NULL, &r);
    }
    if (RQ_UNLIKELY(o == TOO_LONG))
        decode_elsewhere(p, param, block);
    else
        begin(p, o, &r, p->call.started_ns);
}

bool rq__call_run(rq_rpc_conn *conn, rq_slice bytes, rq_chunk *frame)
{
    rq_rpc_server *server = conn->worker->server;
    rq_cursor c = rq_cursor_of(bytes);
    rq_request_head head;
    rq_call_private *p = NULL;
    if (!rq__request_head_parse(&c, &head) || (p = rq__call_new(conn)) == NULL) {
        rq_chunk_unref(frame);
        return false;
    }
    rq_call *call = &p->call;
    rq_work_begin();
    p->frame = frame;
    p->head = head.bytes;
    call->id = head.call_id;
    call->priority = head.priority;
    call->trace_id = RQ_UNLIKELY(head.trace.len > 0) ? rq__request_trace_id(head.trace) : 0;
    call->request_bytes = (uint32_t)bytes.len;
    set_times(call, &head, conn->worker);
    rq_rpc_worker *w = conn->worker;
    uint64_t count = rq__counter_add(&w->counters.calls, 1);
    if (RQ_UNLIKELY(rq_sample_has(w->sample, count)))
        p->timed = (uint16_t)rq_sample_take(&w->sample, count);
    char address[RQ_ADDRESS_MAX];
    if (atomic_load_explicit(&server->draining, memory_order_relaxed))
        rq_call_fail(call, RQ_E_SERVER_STOPPED, "Server %s stopping",
                     rq__server_address(server, address));
    else
        receive(p, &head, c);
    return true;
}
