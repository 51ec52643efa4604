/* SPDX-License-Identifier: Apache-2.0 */
/* From a handler's response to the connection's output, and the other ends of a call: an exception,
 * or no response at all. A large response may wait for memory, and for a pool that compresses its
 * cells; it is packed first, and its request freed. Contracts in call.h. */
#include "rpc/call_priv.h"
#include "rpc/long_reply.h"

#include "base/long_free.h"
#include "compress/codec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A block up to this size is copied behind its message, and a message that a pool has packed behind the head; larger
 * ones are moved to the output without a copy, and their memory is recycled. */
#define BLOCK_COPY_MAX ((size_t)16 * 1024)

/* A response's cells while they are compressed on the pool. */
struct rq_packing {
    rq_call_work work;
    rq_err rc;
    rq_codec *codec; /* NULL: it has not begun */
    rq_slice left;   /* bytes to compress */
    rq_buf encoded, packed;
    rq_buf *block; /* the bytes to send */
};

void rq__packing_free(struct rq_packing *k)
{
    if (k == NULL) return;
    rq_buf_clear(&k->encoded);
    rq_buf_clear(&k->packed);
    rq_codec_free(k->codec);
    free(k);
}

RQ_COLD static void report_end(rq_call_private *p, const ProtobufCMessage *response,
                               const rq_rpc_exception *failure)
{
    const rq_rpc_service *service = &p->conn->service->service;
    if (p->end_reported || p->call.method == NULL) return;
    p->end_reported = true;
    service->ended(service->ctx, &p->call, response, failure);
}

static bool wants_end(const rq_call_private *p)
{
    return RQ_UNLIKELY(p->conn->service != NULL && p->conn->service->service.ended != NULL);
}

/* The connection's stream if a response can still be sent; otherwise drops the call and returns
 * NULL. */
RQ_INLINE rq_stream *answer_stream(rq_call_private *p)
{
    RQ_ASSERT(rq_loop_is_current(p->call.loop));
    if (!rq_call_disconnected(&p->call)) return p->conn->stream;
    rq_call_drop(&p->call);
    return NULL;
}

/* Whether the slow log examines the call, which is about to end. The time compared is that at which the iteration, or
 * the last call in it, began: reading the clock costs more than the comparison. */
static inline bool is_looked_at(const rq_call_private *p, size_t bytes)
{
    const rq_rpc_worker *w = p->conn->worker;
    const rq_slow_log *slow = w->server->options.slow;
    uint64_t now = rq_loop_now_ns(p->call.loop);
    if (now < w->begun_ns) now = w->begun_ns;
    uint64_t ns = now > p->call.started_ns ? now - p->call.started_ns : 0;
    return slow != NULL && rq__slow_log_looks(slow, ns, bytes);
}

RQ_INLINE void finish(rq_call_private *p, rq_stream *s, rq_err rc, size_t bytes)
{
    if (rc == RQ_OK) {
        rq_stream_written(s);
        rq__counter_add(&p->conn->worker->counters.bytes_out, bytes);
        rq__conn_output_queued(p->conn);
    } else {
        rq_stream_close(s, rc); /* the output may end in half a response */
    }
    rq__call_end(p);
}

static void sent(rq_call_private *p, rq_stream *s, rq_err rc, size_t bytes)
{
    if (RQ_UNLIKELY(is_looked_at(p, bytes))) rq__call_note(p, bytes, NULL);
    finish(p, s, rc, bytes);
}

void rq__call_throw_text(rq_call_private *p, const rq_rpc_exception *exception, const char *text)
{
    if (wants_end(p)) report_end(p, NULL, exception);
    rq_stream *s = answer_stream(p);
    if (s == NULL) return;
    rq_buf *out = rq_stream_out(s);
    size_t before = out->len;
    rq_err rc = rq__response_exception(out, p->call.id, exception, text);
    rq__worker_count_error(p->conn->worker, exception->java_class);
    if (is_looked_at(p, 0)) rq__call_note(p, 0, exception->java_class);
    finish(p, s, rc, out->len - before);
}

/* Formats "class: message", or only the class, into `buf`. */
static const char *exception_text(const char *java_class, const char *message, char *buf,
                                  size_t size)
{
    if (message == NULL)
        snprintf(buf, size, "%s", java_class);
    else
        snprintf(buf, size, "%s: %s", java_class, message);
    return buf;
}

void rq__call_throw(rq_call *call, const rq_rpc_exception *exception)
{
    char text[RQ__TEXT_MAX];
    rq__call_throw_text(
        rq__call_private(call), exception,
        exception_text(exception->java_class, exception->message, text, sizeof text));
}

const char *rq__call_queue_is_full(const rq_call_private *p, char *text, size_t size)
{
    char address[RQ_ADDRESS_MAX];
    snprintf(text, size,
             "Call queue is full on %s, is hbase.ipc.server.max.callqueue.size too small?",
             rq__server_address(p->conn->worker->server, address));
    return text;
}

const char *rq__request_is_too_large(const rq_call_private *p, char *text, size_t size)
{
    snprintf(text, size,
             "a request of %u bytes needs more than %zu bytes of memory: send smaller batches, or "
             "raise rorqual.memory",
             p->call.request_bytes, rq__call_charge_max(p));
    return text;
}

static void fail(rq_call *call, rq_err code, const char *message)
{
    char text[RQ__TEXT_MAX / 2];
    const rq_call_private *p = rq__call_private(call);
    if (RQ_UNLIKELY(code == RQ_E_NO_MEMORY && p->over_budget)) {
        /* Bytes that the call's arena could not get. */
        code = p->never_fits ? RQ_E_DO_NOT_RETRY : RQ_E_CALL_QUEUE_TOO_BIG;
        message = p->never_fits ? rq__request_is_too_large(p, text, sizeof text)
                                : rq__call_queue_is_full(p, text, sizeof text);
    }
    rq_rpc_exception e = {
        .java_class = rq_err_java_class(code),
        .message = message,
        .do_not_retry = rq_err_do_not_retry(code),
        .server_overloaded = code == RQ_E_CALL_QUEUE_TOO_BIG || code == RQ_E_CALL_DROPPED,
    };
    rq__call_throw(call, &e);
}

void rq_call_fail(rq_call *call, rq_err code, const char *fmt, ...)
{
    if (fmt == NULL) {
        fail(call, code, rq_err_text(code));
        return;
    }
    char message[RQ__TEXT_MAX / 2];
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
    rq_log_write_limited(log, &w->damage_lines, RQ_LOG_ERROR, "rpc",
                         "call %s from %s failed because of damaged data: %s", call->method->name,
                         RQ_HOST_PORT(call->client->host, call->client->port), why->message);
}

void rq_call_fail_why(rq_call *call, rq_err code, const rq_error *why)
{
    rq_call_alarm(call, code, why);
    fail(call, code, why != NULL && why->message[0] != '\0' ? why->message : rq_err_text(code));
}

void rq_call_drop(rq_call *call)
{
    static const rq_rpc_exception gone = {
        .java_class = "none",
        .message = "the client has closed the connection or has stopped waiting"};
    rq_call_private *p = rq__call_private(call);
    if (wants_end(p)) report_end(p, NULL, &gone);
    rq__counter_add(&p->conn->worker->counters.dropped, 1);
    if (is_looked_at(p, 0)) rq__call_note(p, 0, "dropped");
    rq__call_end(p);
}

/* Encodes the cells of `block` for the wire, into `encoded` for another codec, then into `packed` if they are
 * compressed; both are reset before use. *ret is the buffer with the result, perhaps `block` itself. */
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

static rq_err encode_cells(rq_call_private *p, rq_buf **ret)
{
    rq_rpc_worker *w = p->conn->worker;
    *ret = &p->call.cells.bytes;
    if (RQ_LIKELY((*ret)->len == 0 || rq__call_is_as_sent(p))) return RQ_OK;
    if (p->packing == NULL)
        return encode_block(p->conn, &p->call.cells.bytes, &w->encoded, &w->packed, ret);
    *ret = p->packing->block;
    return p->packing->rc;
}

/* Whether the message is in `block`, and large. */
static bool message_moves(const rq_call_private *p, size_t len)
{
    return RQ_UNLIKELY(p->whole) && len > BLOCK_COPY_MAX;
}

RQ_INLINE void copy_message(rq_buf *out, const ProtobufCMessage *response, rq_slice packed,
                            size_t len)
{
    if (response != NULL)
        protobuf_c_message_pack(response, out->ptr + out->len);
    else if (len > 0)
        memcpy(out->ptr + out->len, packed.ptr, len);
    out->len += len;
}

/* The worker's buffers, which hold the encoded or packed cells, are kept while they are small. */
static rq_err put_block(const rq_call_private *p, rq_stream *s, rq_buf *out, rq_buf *block)
{
    if (block->len == 0) return RQ_OK;
    if (block->len > (block == &p->call.cells.bytes ? BLOCK_COPY_MAX : RQ__CELLS_KEEP))
        return rq_stream_write_owned(s, block);
    return rq_buf_append(out, block->ptr, block->len);
}

static void run_send(rq_task *task);

/* Keeps the complete message, and frees the request. */
RQ_COLD static void keep_whole(rq_call_private *p, rq_buf message)
{
    rq__call_release_request(p);
    rq_long_clear_arena(p->conn->worker->server->options.executor, &p->call.arena);
    p->charged = p->arena_charged = 0;
    p->frame = NULL;
    p->header = NULL;
    p->call.param = NULL;
    p->call.cell_block = (rq_slice){0};
    p->block = message;
    p->whole = true;
    p->send.run = run_send;
}

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
    keep_whole(p, message);
    return RQ_OK;
}

static void reply(rq_call_private *p, const ProtobufCMessage *response, rq_slice packed);

static rq_err begin_packing(const rq_rpc_conn *conn, rq_buf *block, struct rq_packing *k)
{
    if (!rq__cell_codec_is_native(conn->codec)) {
        RQ_TRY(rq__cell_codec_encode(conn->codec, rq_buf_slice(block), &k->encoded));
        block = &k->encoded;
    }
    k->left = rq_buf_slice(block);
    k->block = &k->packed;
    return rq__compressor_begin(conn->compressor, &k->codec);
}

/* A slice of it. */
static bool pack_on_pool(rq_call_work *w)
{
    struct rq_packing *k = RQ_CONTAINER_OF(w, struct rq_packing, work);
    const rq_rpc_conn *conn = rq__call_private(w->call)->conn;
    if (k->codec == NULL) k->rc = begin_packing(conn, &w->call->cells.bytes, k);
    if (k->rc == RQ_OK)
        k->rc = rq__compressor_step(conn->compressor, k->codec, &k->left, &k->packed);
    return k->rc != RQ_OK || k->left.len == 0;
}

static void packed_on_pool(rq_call_work *w)
{
    rq_call_private *p = rq__call_private(w->call);
    reply(p, NULL, rq_buf_slice(&p->block));
}

static bool packing_is_long(const rq_call_private *p)
{
    const rq_compressor *c = p->conn->compressor;
    size_t len = p->call.cells.bytes.len;
    return c != NULL && p->packing == NULL && len > rq__compressor_short(c) &&
           rq__call_may_offload(p);
}

/* Compresses the response's cells on a pool, once there is memory for the compressed cells in addition to the cells. On
 * return the call waits for the memory or the pool, or it has failed. */
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
    rq__call_offload(p, &k->work, pack_on_pool, packed_on_pool);
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
    rq_call_fail(&p->call, rc,
                 "a response of %zu bytes was dropped: responses use all memory allowed for them",
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
    bool moves = message_moves(p, len);
    rq_buf *out = rq_stream_out(s);
    size_t before = out->len;
    if (rc == RQ_OK) rc = rq__response_begin(out, p->call.id, len, block_len, moves ? 0 : len);
    if (rc != RQ_OK) { /* nothing was appended yet */
        rq_call_fail(&p->call, rc, "failed to create response: %s", rq_err_text(rc));
        return;
    }
    size_t bytes = out->len - before + len + block_len;
    if (RQ_UNLIKELY(moves)) {
        rc = rq_stream_write_owned(s, &p->block);
        if (block_len > 0) out = rq_stream_out(s);
    } else {
        copy_message(out, response, packed, len);
    }
    /* Large responses mostly come from the same few methods, so their next calls start with a large
     * buffer. */
    if (p->call.cells.bytes.len > BLOCK_COPY_MAX) {
        p->conn->worker->large_method = p->call.method;
        p->conn->worker->large_bytes = p->call.cells.bytes.len;
    }
    if (rc == RQ_OK) rc = put_block(p, s, out, block);
    if (p->call.cells.bytes.cap > RQ__CELLS_KEEP) rq_stream_keep_spare(s, &p->call.cells.bytes);
    sent(p, s, rc, bytes);
}

void rq_call_reply(rq_call *call, const ProtobufCMessage *response)
{
    rq_call_private *p = rq__call_private(call);
    if (wants_end(p)) report_end(p, response, NULL);
    reply(p, response, (rq_slice){0});
}

void rq_call_reply_packed(rq_call *call, rq_slice message)
{
    rq_call_private *p = rq__call_private(call);
    if (wants_end(p)) report_end(p, NULL, NULL);
    reply(p, NULL, message);
}

/* A message while it is packed on the pool. */
struct long_message {
    rq_call_work work;
    rq_err (*pack)(rq_call *call, rq_buf *ret);
    rq_buf message;
    rq_err rc;
};

static bool make_on_pool(rq_call_work *w)
{
    struct long_message *k = RQ_CONTAINER_OF(w, struct long_message, work);
    rq_call *call = w->call;
    const rq_call *before = rq_call_take_in_hand(call);
    k->rc = k->pack(call, &k->message);
    if (k->rc == RQ_OK) rq_arena_clear(&call->arena); /* may take as long */
    (void)rq_call_take_in_hand(before);
    return true;
}

static void made_on_pool(rq_call_work *w)
{
    struct long_message *k = RQ_CONTAINER_OF(w, struct long_message, work);
    rq_call_private *p = rq__call_private(w->call);
    rq_err rc = k->rc;
    rq_buf message = k->message;
    free(k);
    if (rc != RQ_OK) {
        rq_buf_clear(&message);
        rq_call_fail(&p->call, rc, NULL);
        return;
    }
    keep_whole(p, message);
    reply(p, NULL, rq_buf_slice(&p->block));
}

void rq_call_reply_long(rq_call *call, rq_err (*pack)(rq_call *call, rq_buf *ret))
{
    rq_call_private *p = rq__call_private(call);
    struct long_message *k = calloc(1, sizeof *k);
    if (k == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    if (wants_end(p)) report_end(p, NULL, NULL);
    rq__call_describe(p);
    p->call.param = NULL; /* what is in the arena is not there for long */
    p->header = NULL;
    k->pack = pack;
    if (rq__call_may_offload(p)) {
        rq__call_offload(p, &k->work, make_on_pool, made_on_pool);
        return;
    }
    k->work.call = &p->call;
    (void)make_on_pool(&k->work);
    made_on_pool(&k->work);
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
