/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: from a frame to a handler, and from a handler's response to the connection's output.
 * Contracts in call.h.
 *
 * Call objects and their arenas are recycled per loop; in the steady state a call allocates
 * nothing. Decoded messages may be many times larger than their bytes (an empty Action is 2 bytes
 * on the wire and over a hundred in memory), so growth of the arena beyond ARENA_FREE is charged to
 * the budget. A call that needs more than a copy of its request while the budget is used up is
 * refused. */
#include "rpc/rpc_priv.h"

#include "base/pb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_FREE ((size_t)64 * 1024)
#define CALLS_POOLED 256 /* enough for a loop whose connections have many calls in flight */
/* … but no more than this: memory left by a burst of large requests is freed */
#define POOLED_BYTES_MAX ((size_t)2 << 20)
#define CELLS_KEEP ((size_t)64 * 1024)
/* A block up to this size is copied behind its message; a larger one is moved to the output without
 * a copy, and its memory is recycled. */
#define BLOCK_COPY_MAX ((size_t)16 * 1024)
#define TEXT_MAX 2048

#define HB "org.apache.hadoop.hbase."
#define SHADED "org.apache.hbase.thirdparty.com.google.protobuf."

static rq_call_private *private_of(rq_call *call)
{
    return RQ_CONTAINER_OF(call, rq_call_private, call);
}

/* A handler of signals gets no argument of ours: what a thread works on has to be found by the thread.
 * This is the only variable of the file; nothing but the report of a crash depends on it. */
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

/* ---- memory ---------------------------------------------------------------------------------- */

static rq_budget *budget_of(const rq_call_private *p)
{
    return p->conn->worker->server->options.budget;
}

static void *arena_alloc(void *data, size_t size)
{
    return rq_arena_alloc(data, size);
}

#define SWELL_MAX                                                                                  \
    3 /* with the overdraft, how many times larger than its request a decoded one may
                     * be */

static bool overdraw(const rq_call_private *p, size_t bytes)
{
    if ((p->charged + bytes) / SWELL_MAX > p->call.request_bytes) return false;
    if (!rq_budget_overdraws(budget_of(p), p->frame) && !rq_budget_overdraw(budget_of(p), p))
        return false;
    rq_budget_force(budget_of(p), bytes);
    return true;
}

/* Charges `bytes` more. A copy of the request is charged in any case (the request was admitted,
 * and large values are mostly one copy). Beyond that, only while there is room, or for the one
 * call with the overdraft: otherwise a request near the limit could be retried forever without
 * success. */
static bool charge(rq_call_private *p, size_t bytes)
{
    bool taken = true;
    if (p->charged + bytes <= p->call.request_bytes + ARENA_FREE)
        rq_budget_force(budget_of(p), bytes);
    else if (!rq_budget_try(budget_of(p), bytes))
        taken = overdraw(p, bytes);
    if (taken)
        p->charged += bytes;
    else
        p->over_budget = true;
    return taken;
}

/* Called before the call's arena gets another chunk: its growth is charged, and limited while a
 * request is being decoded. */
static bool charge_arena(void *ctx, size_t bytes)
{
    rq_call_private *p = ctx;
    size_t total = p->call.arena.total_bytes + bytes;
    if (total <= p->arena_charged + ARENA_FREE) return true;
    size_t more = total - p->arena_charged - ARENA_FREE;
    if (p->call.decoding && !charge(p, more)) return false;
    if (!p->call.decoding) {
        rq_budget_force(budget_of(p), more);
        p->charged += more;
    }
    p->arena_charged += more;
    return true;
}

static void no_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

ProtobufCAllocator rq_rpc_allocator(rq_arena *arena)
{
    return (ProtobufCAllocator){arena_alloc, no_free, arena};
}

/* Bytes kept by a pooled call. */
static size_t pooled_bytes(const rq_call_private *p)
{
    return p->call.arena.total_bytes + p->call.cells.bytes.cap;
}

RQ_COLD static void link_made(rq_rpc_worker *w, rq_call_private *p)
{
    p->next_made = w->made;
    if (w->made != NULL) w->made->previous_made = p;
    w->made = p;
}

RQ_COLD static void unlink_made(rq_rpc_worker *w, rq_call_private *p)
{
    if (p->next_made != NULL) p->next_made->previous_made = p->previous_made;
    if (p->previous_made != NULL)
        p->previous_made->next_made = p->next_made;
    else
        w->made = p->next_made;
}

static rq_call_private *call_new(rq_rpc_conn *conn)
{
    rq_rpc_worker *w = conn->worker;
    rq_call_private *p = w->free_calls;
    if (p != NULL) {
        w->free_calls = p->next_free;
        w->free_count--;
        w->free_bytes -= pooled_bytes(p);
    } else {
        p = calloc(1, sizeof *p);
        if (p == NULL) return NULL;
        p->call.priv = p;
        rq_arena_meter(&p->call.arena, charge_arena, p);
        p->call.loop = w->loop;
        link_made(w, p);
    }
    p->conn = conn;
    conn->refs++;
    conn->calls++;
    p->call.client = &conn->client;
    p->call.cells.with_tags = conn->client.codec_with_tags;
    rq_count(&w->counters.in_flight, 1);
    return p;
}

RQ_COLD static void call_free(rq_rpc_worker *w, rq_call_private *p)
{
    unlink_made(w, p);
    rq_arena_clear(&p->call.arena);
    rq_cellblock_clear(&p->call.cells);
    free(p);
}

void rq__call_pool_clear(rq_rpc_worker *w)
{
    while (w->free_calls != NULL) {
        rq_call_private *p = w->free_calls;
        w->free_calls = p->next_free;
        call_free(w, p);
    }
    w->free_count = 0;
    w->free_bytes = 0;
}

static void call_recycle(rq_rpc_worker *w, rq_call_private *p)
{
    rq_call *c = &p->call;
    if (RQ_ASAN || w->free_count >= CALLS_POOLED || w->free_bytes >= POOLED_BYTES_MAX) {
        call_free(w, p);
        return;
    }
    rq_arena_reset(&c->arena);
    if (c->cells.bytes.cap > CELLS_KEEP)
        rq_cellblock_clear(&c->cells);
    else
        rq_cellblock_reset(&c->cells);
    *p = (rq_call_private){
        .call = {.loop = c->loop, .arena = c->arena, .cells = c->cells, .priv = p},
        .next_made = p->next_made,
        .previous_made = p->previous_made};
    p->next_free = w->free_calls;
    w->free_calls = p;
    w->free_count++;
    w->free_bytes += pooled_bytes(p);
}

/* Frees the request's memory, except the arena. */
static void release_request(rq_call_private *p)
{
    rq_buf_clear(&p->block);
    rq_budget_give(budget_of(p), p->charged);
    rq_budget_end_overdraft(budget_of(p), p);
    rq_chunk_unref(p->frame);
}

/* A response's cells while they are compressed on the pool. */
struct rq_packing {
    rq_offload offload;
    rq_err rc;
    rq_buf encoded, packed;
    rq_buf *block; /* the bytes to send */
};

static void packing_free(struct rq_packing *k)
{
    if (k == NULL) return;
    rq_buf_clear(&k->encoded);
    rq_buf_clear(&k->packed);
    free(k);
}

RQ_COLD static void take_times(rq_rpc_worker *w, const rq_call *c)
{
    uint64_t now = rq_loop_clock_ns();
    rq_times_add(&w->queue_times, c->started_ns - c->received_ns, RQ__CALL_SAMPLE);
    rq_times_add(&w->process_times, now - c->started_ns, RQ__CALL_SAMPLE);
    rq_times_add(&w->total_times, now - c->received_ns, RQ__CALL_SAMPLE);
}

static void call_end(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    rq_rpc_worker *w = conn->worker;
    if (RQ_UNLIKELY(p->timed)) take_times(w, &p->call);
    release_request(p);
    rq__answer_end(p);
    if (RQ_UNLIKELY(p->packing != NULL)) packing_free(p->packing);
    if (in_hand == &p->call) in_hand = NULL;
    if (RQ_UNLIKELY(p->text != NULL)) free(p->text);
    call_recycle(w, p);
    conn->calls--;
    rq_count(&w->counters.in_flight, (uint64_t)-1);
    rq__conn_call_ended(conn);
    rq__conn_unref(conn);
}

/* ---- endings --------------------------------------------------------------------------------- */

RQ_COLD static void tell_end(rq_call_private *p, const ProtobufCMessage *response,
                             const rq_rpc_exception *failure)
{
    const rq_rpc_service *service = &p->conn->service->service;
    if (p->end_told || p->call.method == NULL) return;
    p->end_told = true;
    service->ended(service->ctx, &p->call, response, failure);
}

static bool wants_end(const rq_call_private *p)
{
    return RQ_UNLIKELY(p->conn->service != NULL && p->conn->service->service.ended != NULL);
}

/* The connection's stream if a response can still be sent; otherwise drops the call and returns
 * NULL. */
static rq_stream *answer_stream(rq_call_private *p)
{
    RQ_ASSERT(rq_loop_is_current(p->call.loop));
    if (!rq_call_disconnected(&p->call)) return p->conn->stream;
    rq_call_drop(&p->call);
    return NULL;
}

/* Whether the slow log looks at the call, which is about to end. The time is that of the iteration, or
 * of the call that began last in it: for one comparison no clock is read. */
static inline bool is_looked_at(const rq_call_private *p, size_t bytes)
{
    const rq_rpc_worker *w = p->conn->worker;
    const rq_slow_log *slow = w->server->options.slow;
    uint64_t now = rq_loop_now_ns(p->call.loop);
    if (now < w->begun_ns) now = w->begun_ns;
    uint64_t ns = now > p->call.started_ns ? now - p->call.started_ns : 0;
    return slow != NULL && rq__slow_log_looks(slow, ns, bytes);
}

static void finish(rq_call_private *p, rq_stream *s, rq_err rc, size_t bytes)
{
    if (rc == RQ_OK) {
        rq_stream_written(s);
        rq_count(&p->conn->worker->counters.bytes_out, bytes);
        rq__conn_output_queued(p->conn);
    } else {
        rq_stream_close(s, rc); /* the output may end in half a response */
    }
    call_end(p);
}

static void sent(rq_call_private *p, rq_stream *s, rq_err rc, size_t bytes)
{
    if (RQ_UNLIKELY(is_looked_at(p, bytes))) rq__call_note(p, bytes, NULL);
    finish(p, s, rc, bytes);
}

RQ_COLD static void throw_text(rq_call_private *p, const rq_rpc_exception *exception,
                               const char *text)
{
    if (wants_end(p)) tell_end(p, NULL, exception);
    rq_stream *s = answer_stream(p);
    if (s == NULL) return;
    rq_buf *out = rq_stream_out(s);
    size_t before = out->len;
    rq_err rc = rq__response_exception(out, p->call.id, exception, text);
    rq__worker_count_error(p->conn->worker, exception->java_class);
    if (is_looked_at(p, 0)) rq__call_note(p, 0, exception->java_class);
    finish(p, s, rc, out->len - before);
}

const char *rq__exception_text(const char *java_class, const char *message, char *buf, size_t size)
{
    if (message == NULL)
        snprintf(buf, size, "%s", java_class);
    else
        snprintf(buf, size, "%s: %s", java_class, message);
    return buf;
}

void rq_call_throw(rq_call *call, const rq_rpc_exception *exception)
{
    char text[TEXT_MAX];
    throw_text(private_of(call), exception,
               rq__exception_text(exception->java_class, exception->message, text, sizeof text));
}

static const char *queue_is_full(const rq_call_private *p, char *text, size_t size)
{
    char address[RQ_ADDRESS_MAX];
    snprintf(text, size,
             "Call queue is full on %s, is hbase.ipc.server.max.callqueue.size too small?",
             rq__server_address(p->conn->worker->server, address));
    return text;
}

static void fail(rq_call *call, rq_err code, const char *message)
{
    char text[TEXT_MAX / 2];
    if (RQ_UNLIKELY(code == RQ_E_NO_MEMORY && private_of(call)->over_budget)) {
        code = RQ_E_CALL_QUEUE_TOO_BIG; /* bytes that the call's arena could not get */
        message = queue_is_full(private_of(call), text, sizeof text);
    }
    rq_rpc_exception e = {
        .java_class = rq_err_java_class(code),
        .message = message,
        .do_not_retry = rq_err_do_not_retry(code),
        .server_overloaded = code == RQ_E_CALL_QUEUE_TOO_BIG || code == RQ_E_CALL_DROPPED,
    };
    rq_call_throw(call, &e);
}

void rq_call_fail(rq_call *call, rq_err code, const char *fmt, ...)
{
    if (fmt == NULL) {
        fail(call, code, rq_err_text(code));
        return;
    }
    char message[TEXT_MAX / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    fail(call, code, message);
}

void rq_call_alarm(const rq_call *call, rq_err code, const rq_error *why)
{
    rq_rpc_worker *w = call->priv->conn->worker;
    const rq_log *log = w->server->options.log;
    if (code != RQ_E_CORRUPT || why == NULL || log == NULL || call->method == NULL) return;
    if (!rq__worker_may_log(w)) return;
    rq_log_error(log, "rpc", "%s from %s failed on damaged data: %s", call->method->name,
                 RQ_HOST_PORT(call->client->host, call->client->port), why->message);
}

void rq_call_fail_why(rq_call *call, rq_err code, const rq_error *why)
{
    rq_call_alarm(call, code, why);
    fail(call, code, why != NULL && why->message[0] != '\0' ? why->message : rq_err_text(code));
}

void rq_call_drop(rq_call *call)
{
    static const rq_rpc_exception gone = {.java_class = "none",
                                          .message = "the client has gone or given up"};
    rq_call_private *p = private_of(call);
    if (wants_end(p)) tell_end(p, NULL, &gone);
    rq_count(&p->conn->worker->counters.dropped, 1);
    if (is_looked_at(p, 0)) rq__call_note(p, 0, "dropped");
    call_end(p);
}

bool rq_call_disconnected(const rq_call *call)
{
    const rq_rpc_conn *conn = call->priv->conn;
    return conn->stream == NULL || rq_stream_closing(conn->stream);
}

void **rq_call_connection_state(rq_call *call)
{
    return &call->priv->conn->service_state;
}

/* Encodes the cells for the wire: *ret is one of `block`, `encoded` and `packed`, which are reset
 * first. */
RQ_COLD static rq_err encode_block(const rq_rpc_conn *conn, rq_buf *block, rq_buf *encoded,
                                   rq_buf *packed, rq_buf **ret)
{
    if (block->len > 0 && !rq__cell_codec_is_native(conn->codec)) {
        rq_buf_reset(encoded);
        RQ_TRY(rq__cell_codec_encode(conn->codec, rq_buf_slice(block), encoded));
        block = encoded;
    }
    if (block->len > 0 && conn->compressor != NULL) {
        rq_buf_reset(packed);
        RQ_TRY(rq__compressor_pack(conn->compressor, rq_buf_slice(block), packed));
        block = packed;
    }
    *ret = block;
    return RQ_OK;
}

static bool is_as_sent(const rq_call_private *p)
{
    return p->conn->compressor == NULL && rq__cell_codec_is_native(p->conn->codec);
}

static rq_err encode_cells(rq_call_private *p, rq_buf **ret)
{
    rq_rpc_worker *w = p->conn->worker;
    *ret = &p->call.cells.bytes;
    if (RQ_LIKELY((*ret)->len == 0 || is_as_sent(p))) return RQ_OK;
    if (p->packing == NULL)
        return encode_block(p->conn, &p->call.cells.bytes, &w->encoded, &w->packed, ret);
    *ret = p->packing->block;
    return p->packing->rc;
}

/* The worker's buffers, which hold the encoded or packed cells, are kept while they are small. */
static rq_err put_block(const rq_call_private *p, rq_stream *s, rq_buf *block)
{
    if (block->len == 0) return RQ_OK;
    if (block->len > (block == &p->call.cells.bytes ? BLOCK_COPY_MAX : CELLS_KEEP))
        return rq_stream_write_owned(s, block);
    return rq_buf_append(rq_stream_out(s), block->ptr, block->len);
}

static void run_send(rq_task *task);

/* Packs the message and frees the request: the response may have to wait for long. */
RQ_COLD static rq_err make_whole(rq_call_private *p, const ProtobufCMessage *response,
                                 rq_slice packed, size_t len)
{
    rq_buf message = {0};
    RQ_TRY(rq_buf_reserve(&message, len));
    rq__call_describe(p);
    if (response != NULL)
        protobuf_c_message_pack(response, message.ptr);
    else if (len > 0)
        memcpy(message.ptr, packed.ptr, len);
    message.len = len;
    release_request(p);
    rq_arena_clear(&p->call.arena);
    p->charged = p->arena_charged = 0;
    p->frame = NULL;
    p->header = NULL;
    p->call.param = NULL;
    p->call.cell_block = (rq_slice){0};
    p->block = message;
    p->whole = true;
    p->send.run = run_send;
    return RQ_OK;
}

static void reply(rq_call_private *p, const ProtobufCMessage *response, rq_slice packed);

static void pack_on_pool(rq_offload *o)
{
    struct rq_packing *k = RQ_CONTAINER_OF(o, struct rq_packing, offload);
    k->rc =
        encode_block(o->call->conn, &o->call->call.cells.bytes, &k->encoded, &k->packed, &k->block);
}

static void packed_on_pool(rq_offload *o)
{
    reply(o->call, NULL, rq_buf_slice(&o->call->block));
}

static bool packing_is_long(const rq_call_private *p)
{
    const rq_compressor *c = p->conn->compressor;
    size_t len = p->call.cells.bytes.len;
    return c != NULL && p->packing == NULL && len > rq__compressor_short(c) &&
           rq__call_may_offload(p);
}

/* Compresses the response's cells on a pool, once there is memory for the result in addition to
 * them: the call waits, or has ended. */
RQ_COLD static void pack_elsewhere(rq_call_private *p, const ProtobufCMessage *response,
                                   rq_slice packed, size_t len)
{
    struct rq_packing *k = NULL;
    rq_err rc = p->whole ? RQ_OK : make_whole(p, response, packed, len);
    size_t have = p->block.cap + p->call.cells.bytes.cap;
    if (rc == RQ_OK)
        rc = rq_call_may_grow(&p->call, have, have + p->call.cells.bytes.len, &p->send);
    if (rc == RQ_E_AGAIN) return; /* `send` asks again */
    if (rc == RQ_OK && (k = calloc(1, sizeof *k)) == NULL) rc = RQ_E_NO_MEMORY;
    if (rc != RQ_OK) {
        rq_call_fail(&p->call, rc, NULL);
        return;
    }
    p->packing = k;
    rq__call_offload(p, &k->offload, pack_on_pool, packed_on_pool);
}

/* For a large response: true if it can be sent now; otherwise it waits, or the call has ended. */
RQ_COLD static bool large_may_go(rq_call_private *p, const ProtobufCMessage *response,
                                 rq_slice packed, size_t len)
{
    size_t bytes = sizeof *p + len + p->call.cells.bytes.cap;
    if (!rq__answer_must_wait(p)) return true;
    rq_err rc = p->whole ? RQ_OK : make_whole(p, response, packed, len);
    if (rc == RQ_OK) rc = rq__answer_wait(p, bytes, &p->send);
    if (rc == RQ_E_AGAIN) return false;
    if (rc == RQ_E_SERVER_STOPPED) {
        rq_call_fail(&p->call, rc, NULL);
        return false;
    }
    rq_call_fail(&p->call, rc, "an answer of %zu bytes was dropped: answers fill their memory",
                 bytes);
    return false;
}

/* `response`, or its packed bytes. */
static void reply(rq_call_private *p, const ProtobufCMessage *response, rq_slice packed)
{
    RQ_ASSERT(p->call.cells.count == 0 || p->conn->client.has_codec);
    rq_stream *s = answer_stream(p);
    if (s == NULL) return;
    size_t len = response == NULL ? packed.len : protobuf_c_message_get_packed_size(response);
    if (RQ_UNLIKELY(p->conn->compressor != NULL) && packing_is_long(p)) {
        pack_elsewhere(p, response, packed, len);
        return;
    }
    if (RQ_UNLIKELY(len + p->call.cells.bytes.len > RQ_UNREAD_SMALL)) {
        p->conn->heavy_ns = rq_loop_now_ns(p->call.loop);
        if (!large_may_go(p, response, packed, len)) return;
    }
    rq_buf *block = NULL;
    rq_err rc = encode_cells(p, &block);
    size_t block_len = rc == RQ_OK ? block->len : 0;
    rq_buf *out = rq_stream_out(s);
    size_t before = out->len;
    if (rc == RQ_OK) rc = rq__response_begin(out, p->call.id, len, block_len);
    if (rc != RQ_OK) { /* nothing was appended yet */
        rq_call_fail(&p->call, rc, "failed to create response: %s", rq_err_text(rc));
        return;
    }
    if (response != NULL)
        protobuf_c_message_pack(response, out->ptr + out->len);
    else if (len > 0)
        memcpy(out->ptr + out->len, packed.ptr, len);
    out->len += len;
    size_t bytes = out->len - before + block_len;
    /* Large responses mostly come from the same few methods, so their next calls start with a large
     * buffer. */
    if (p->call.cells.bytes.len > BLOCK_COPY_MAX) {
        p->conn->worker->large_method = p->call.method;
        p->conn->worker->large_bytes = p->call.cells.bytes.len;
    }
    rc = put_block(p, s, block);
    if (p->call.cells.bytes.cap > CELLS_KEEP) rq_stream_keep_spare(s, &p->call.cells.bytes);
    sent(p, s, rc, bytes);
}

void rq_call_reply(rq_call *call, const ProtobufCMessage *response)
{
    rq_call_private *p = private_of(call);
    if (wants_end(p)) tell_end(p, response, NULL);
    reply(p, response, (rq_slice){0});
}

void rq_call_reply_packed(rq_call *call, rq_slice message)
{
    rq_call_private *p = private_of(call);
    if (wants_end(p)) tell_end(p, NULL, NULL);
    reply(p, NULL, message);
}

static void run_send(rq_task *task)
{
    rq_call_private *p = RQ_CONTAINER_OF(task, rq_call_private, send);
    reply(p, NULL, rq_buf_slice(&p->block));
}

rq_err rq_rpc_exception_text(rq_arena *arena, rq_err code, const char *message,
                             const char **ret_class, rq_slice *ret_text)
{
    const char *java_class = rq_err_java_class(code);
    char *text =
        rq_arena_printf(arena, "%s: %s", java_class, message != NULL ? message : rq_err_text(code));
    if (text == NULL) return RQ_E_NO_MEMORY;
    *ret_class = java_class;
    *ret_text = rq_slice_cstr(text);
    return RQ_OK;
}

const struct Pb__RequestHeader *rq_call_header(rq_call *call)
{
    rq_call_private *p = private_of(call);
    if (p->header == NULL) {
        ProtobufCAllocator allocator = rq_rpc_allocator(&call->arena);
        p->header = pb__request_header__unpack(&allocator, p->head.len, p->head.ptr);
    }
    return p->header;
}

/* --- from bytes to a handler ------------------------------------------------------------------ */

/* An error found while a request was read, before its handler was called. */
struct refusal {
    rq_rpc_exception exception;
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

RQ_COLD static bool refuse_overloaded(const rq_call_private *p, struct refusal *r)
{
    char text[sizeof r->message];
    r->exception.server_overloaded = true;
    return refuse(r, HB "CallQueueTooBigException", false, "%s",
                  queue_is_full(p, text, sizeof text));
}

static bool find_method(rq_call_private *p, const rq_request_head *head, struct refusal *r)
{
    rq_rpc_conn *conn = p->conn;
    const rq_rpc_method *m = conn->last_method;
    if (m == NULL || !rq_slice_eq(rq_slice_cstr(m->name), head->method)) {
        m = rq__service_method(conn->service, head->method);
        conn->last_method = m;
    }
    p->call.method = m;
    if (m != NULL && m->handle != NULL) return true;
    return refuse(r, HB "DoNotRetryIOException", true,
                  "java.lang.UnsupportedOperationException: %.*s%s", (int)head->method.len,
                  (const char *)head->method.ptr, m == NULL ? "" : " is not served here");
}

static bool decode_param(rq_call_private *p, rq_cursor *c, struct refusal *r)
{
    rq_call *call = &p->call;
    rq_slice bytes;
    if (!rq_pb_delimited(c, &bytes))
        return refuse(r, SHADED "InvalidProtocolBufferException", false,
                      "the parameter of %s is cut short", call->method->name);
    ProtobufCAllocator allocator = rq_rpc_allocator(&call->arena);
    const rq_rpc_service *service = &p->conn->service->service;
    rq_call_decoding(call, true);
    if (service->unpack != NULL)
        call->param = service->unpack(call->method->request, &allocator, bytes);
    if (call->param == NULL && !p->over_budget)
        call->param =
            protobuf_c_message_unpack(call->method->request, &allocator, bytes.len, bytes.ptr);
    rq_call_decoding(call, false);
    if (call->param != NULL) return true;
    if (p->over_budget) return refuse_overloaded(p, r);
    return refuse(r, SHADED "InvalidProtocolBufferException", false,
                  "the parameter of %s is malformed or lacks a required field", call->method->name);
}

/* Decompresses a block, or converts it from another codec, into p->block: at most raw_max bytes. */
static rq_err unpack_block(rq_call_private *p, rq_slice bytes, size_t raw_max, rq_error *why)
{
    rq_rpc_conn *conn = p->conn;
    rq_buf raw = {0};
    if (conn->compressor != NULL) {
        rq_err rc = rq__compressor_unpack(conn->compressor, bytes, raw_max, &raw, why);
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
    size_t chargeable = rq_budget_max(budget_of(p));
    size_t swollen = SWELL_MAX * (size_t)p->call.request_bytes;
    if (chargeable < swollen) chargeable = swollen;
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

typedef enum outcome { DECODED, REFUSED, TOO_LONG } outcome;

/* TOO_LONG: the block decompresses to more than raw_max bytes; nothing was changed. */
static outcome take_unpacked(rq_call_private *p, rq_slice bytes, size_t raw_max, struct refusal *r)
{
    rq_error why;
    rq_error_clear(&why);
    size_t limit = raw_limit(p);
    rq_err rc = unpack_block(p, bytes, raw_max < limit ? raw_max : limit, &why);
    if (rc == RQ_E_RESULT_TOO_LARGE && raw_max < limit) {
        rq_buf_clear(&p->block);
        return TOO_LONG;
    }
    if (rc == RQ_E_RESULT_TOO_LARGE && limit < p->conn->worker->server->options.request_bytes_max)
        return refuse_overloaded(p, r), REFUSED;
    if (rc != RQ_OK)
        return refuse(r, "java.io.IOException", false, "%s",
                      why.message[0] != '\0' ? why.message : rq_err_text(rc)),
               REFUSED;
    if (!charge(p, p->block.cap)) return refuse_overloaded(p, r), REFUSED;
    p->call.cell_block = rq_buf_slice(&p->block);
    return DECODED;
}

/* Decodes the parameter, then the cell block, of at most raw_max bytes when decompressed. Any
 * thread, while no other thread uses the call. */
RQ_INLINE outcome decode(rq_call_private *p, rq_cursor param, rq_slice block, size_t raw_max,
                         struct refusal *r)
{
    if (p->call.param == NULL && !decode_param(p, &param, r)) return REFUSED;
    if (block.len > 0 && !is_as_sent(p)) return take_unpacked(p, block, raw_max, r);
    p->call.cell_block = block;
    return DECODED;
}

static bool find_parts(rq_call_private *p, const rq_request_head *head, rq_cursor *c,
                       rq_cursor *ret_param, rq_slice *ret_block, struct refusal *r)
{
    rq_slice ignored;
    if (!head->has_param)
        return refuse(
            r, HB "DoNotRetryIOException", true,
            "Invalid request header: call_id: %u method_name: \"%.*s\", should have param "
            "set in it",
            head->call_id, (int)head->method.len, (const char *)head->method.ptr);
    *ret_param = *c;
    *ret_block = (rq_slice){0};
    if (!find_method(p, head, r)) return false;
    if (!rq_pb_delimited(c, &ignored)) return true; /* decode() reports it */
    return find_block(p, head, c, ret_block, r);
}

#define LONG_PARAM ((size_t)512 * 1024) /* takes about a millisecond to decode */
#define LONG_BLOCK ((size_t)64 * 1024)  /* takes as long to convert from another codec */

static bool decoding_is_long(const rq_call_private *p, rq_cursor param, rq_slice block)
{
    bool unpacks = block.len > 0 && !is_as_sent(p);
    if (RQ_LIKELY(p->call.request_bytes <= LONG_PARAM && !unpacks) || !rq__call_may_offload(p))
        return false;
    const rq_compressor *c = p->conn->compressor;
    size_t block_max = c == NULL ? LONG_BLOCK : rq__compressor_short(c);
    return rq_cursor_left(&param) - block.len > LONG_PARAM ||
           (unpacks && (block.len > block_max || rq__compressor_expands(c)));
}

RQ_COLD static void answer_refusal(rq_call_private *p, struct refusal *r)
{
    char text[TEXT_MAX], address[RQ_ADDRESS_MAX];
    r->exception.message = r->message;
    if (r->exception.server_overloaded)
        snprintf(text, sizeof text, "%s", r->message);
    else
        snprintf(text, sizeof text, "/%s is unable to read call parameter from client %s; %s",
                 rq__server_address(p->conn->worker->server, address), p->conn->client.host,
                 r->message);
    throw_text(p, &r->exception, text);
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
    const rq_rpc_service_index *service = conn->service;
    size_t place = service->first_method + (size_t)(p->call.method - service->service.methods);
    rq_count(&conn->worker->method_calls[place], 1);
    const rq_call *before = rq_call_take_in_hand(&p->call);
    p->call.method->handle(service->service.ctx, &p->call);
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
    rq_offload offload;
    rq_cursor param;
    rq_slice block;
    outcome outcome;
    struct refusal refusal;
};

static void decode_on_pool(rq_offload *o)
{
    struct preparation *k = RQ_CONTAINER_OF(o, struct preparation, offload);
    k->outcome = decode(o->call, k->param, k->block, SIZE_MAX, &k->refusal);
}

static void decoded_on_pool(rq_offload *o)
{
    struct preparation *k = RQ_CONTAINER_OF(o, struct preparation, offload);
    rq_call_private *p = o->call;
    if (rq_call_disconnected(&p->call))
        rq_call_drop(&p->call);
    else
        begin(p, k->outcome, &k->refusal, rq_loop_clock_ns());
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
    rq__call_offload(p, &k->offload, decode_on_pool, decoded_on_pool);
}

/* Accepts a call whose head is decoded; `c` is at the bytes behind it. */
static void receive(rq_call_private *p, const rq_request_head *head, rq_cursor c)
{
    struct refusal r;
    r.exception = (rq_rpc_exception){0};
    r.message[0] = '\0'; /* the rest is never read */
    rq_cursor param;
    rq_slice block;
    outcome o = REFUSED;
    if (find_parts(p, head, &c, &param, &block, &r)) {
        if (decoding_is_long(p, param, block))
            o = TOO_LONG;
        else
            o = decode(p, param, block, rq__call_may_offload(p) ? LONG_BLOCK : SIZE_MAX, &r);
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
    if (!rq__request_head_parse(&c, &head) || (p = call_new(conn)) == NULL) {
        rq_chunk_unref(frame);
        return false;
    }
    rq_call *call = &p->call;
    p->frame = frame;
    p->head = head.bytes;
    call->id = head.call_id;
    call->priority = head.priority;
    call->trace_id = RQ_UNLIKELY(head.trace.len > 0) ? rq__request_trace_id(head.trace) : 0;
    call->request_bytes = (uint32_t)bytes.len;
    set_times(call, &head, conn->worker);
    p->timed = rq_count(&conn->worker->counters.calls, 1) % RQ__CALL_SAMPLE == 0;
    char address[RQ_ADDRESS_MAX];
    if (atomic_load_explicit(&server->draining, memory_order_relaxed))
        rq_call_fail(call, RQ_E_SERVER_STOPPED, "Server %s stopping",
                     rq__server_address(server, address));
    else
        receive(p, &head, c);
    return true;
}
