/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection. A call's id is its index in the table of calls, so a response finds it
 * without a search; an index is reused only after its response came or the connection was lost. */
#include "client/conn.h"

#include "client/request.h"

#include "base/macros.h"
#include "base/pb.h"
#include "net/stream.h"

#include <stdio.h>
#include <stdlib.h>

#define CODEC "org.apache.hadoop.hbase.codec.KeyValueCodec"
#define READ_ROOM (128 * 1024)
#define IN_KEPT ((size_t)4 << 20) /* of the input buffer, between answers: twice a scan's answer */
#define FRAME_MAX (256U << 20)
#define NO_PLACE UINT32_MAX
#define CLOSED_BY_SERVER "the server closed the connection"
/* A connection is closed if so many calls have timed out and still have no response, or if so many bytes are
 * unsent when a call times out: the peer hangs. HBase's client has no such limit; it keeps only the ids of
 * calls that have timed out. */
#define ABANDONED_MAX 1000
#define PENDING_MAX ((size_t)64 << 20)
/* Without calls for so long, the connection may have been closed by the server, which the client has not seen if nothing
 * has polled since. HBase's client has a thread that sees it. */
#define DOUBTED_AFTER_NS 10000000
#define CONNECT_TIMEOUT_NS 10000000000 /* HBASE: hbase.ipc.client.socket.timeout.connect */

typedef struct pending {
    rq_reply_fn done; /* NULL: free, or (abandoned) timed out */
    void *ctx;
    int64_t deadline_ns;
    uint32_t next_free;
    bool abandoned;
} pending;

struct rq__conn {
    rq_loop *loop;
    rq_stream *stream; /* NULL: idle */
    bool stopped;
    bool is_retired;
    bool was_refused; /* by the last connect */
    char *host;
    char *service;
    const char *codec;
    char *user;
    uint16_t port;
    int64_t timeout_ns;
    uint32_t answer_max;
    rq_buf in;
    size_t in_start;
    pending *calls;
    uint32_t call_cap;
    uint32_t free_head;
    size_t in_flight;
    size_t abandoned;
    int64_t called_ns; /* time of the last call */
    uint32_t last_call;
    uint64_t connects;
    rq_client_traffic traffic; /* `sent` counts earlier streams only */
};

rq_err rq__conn_new(const rq__conn_options *o, rq__conn **ret)
{
    rq__conn *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->loop = o->loop;
    c->host = strdup(o->host);
    c->service = strdup(o->service);
    c->user = strdup(o->user);
    c->codec = o->codec == NULL ? CODEC : o->codec;
    c->port = o->port;
    c->timeout_ns = o->timeout_ns;
    c->answer_max = o->answer_max == 0 ? FRAME_MAX : o->answer_max;
    c->free_head = NO_PLACE;
    if (c->host == NULL || c->service == NULL || c->user == NULL) {
        rq__conn_free(c);
        return RQ_E_NO_MEMORY;
    }
    *ret = c;
    return RQ_OK;
}

/* Closes the stream; the connection is idle from now on. */
static void let_go(rq__conn *c)
{
    c->traffic.sent += rq_stream_out_taken(c->stream);
    rq_stream_set_user(c->stream, NULL);
    rq_stream_close(c->stream, RQ_OK);
    c->stream = NULL;
}

void rq__conn_free(rq__conn *c)
{
    if (c == NULL) return;
    if (c->stream != NULL) let_go(c);
    rq_buf_clear(&c->in);
    free(c->calls);
    free(c->host);
    free(c->service);
    free(c->user);
    free(c);
}

void rq__conn_set_timeout(rq__conn *c, int64_t timeout_ns)
{
    c->timeout_ns = timeout_ns;
}

rq_client_traffic rq__conn_traffic(const rq__conn *c)
{
    rq_client_traffic t = c->traffic;
    if (c->stream != NULL) t.sent += rq_stream_out_taken(c->stream);
    return t;
}

size_t rq__conn_in_flight(const rq__conn *c)
{
    return c->in_flight;
}

void rq__conn_retire(rq__conn *c)
{
    c->is_retired = true;
}

bool rq__conn_is_retired(const rq__conn *c)
{
    return c->is_retired;
}

bool rq__conn_is_lost(const rq__conn *c)
{
    return c->stream == NULL && c->connects > 0;
}

bool rq__conn_was_refused(const rq__conn *c)
{
    return c->was_refused;
}

uint64_t rq__conn_connects(const rq__conn *c)
{
    return c->connects;
}

/* --- the table of calls ----------------------------------------------------------------------- */

static rq_err take_place(rq__conn *c, uint32_t *ret)
{
    if (c->free_head == NO_PLACE) {
        uint32_t cap = c->call_cap == 0 ? 16 : c->call_cap * 2;
        pending *calls = realloc(c->calls, cap * sizeof *calls);
        if (calls == NULL) return RQ_E_NO_MEMORY;
        for (uint32_t i = c->call_cap; i < cap; i++)
            calls[i] = (pending){.next_free = i + 1 < cap ? i + 1 : NO_PLACE};
        c->calls = calls;
        c->free_head = c->call_cap;
        c->call_cap = cap;
    }
    *ret = c->free_head;
    c->free_head = c->calls[*ret].next_free;
    return RQ_OK;
}

static void free_call_id(rq__conn *c, uint32_t id)
{
    c->calls[id] = (pending){.next_free = c->free_head};
    c->free_head = id;
}

/* --- losing it -------------------------------------------------------------------------------- */

/* Ends every call with this reply. */
static void disconnect(rq__conn *c, const rq_reply *reply)
{
    pending *calls = c->calls;
    uint32_t cap = c->call_cap;
    if (c->stream != NULL) let_go(c);
    /* Its memory stays: this may be in a callback that reads an answer there. */
    rq_buf_reset(&c->in);
    c->in_start = 0;
    c->calls = NULL;
    c->call_cap = 0;
    c->free_head = NO_PLACE;
    c->in_flight = c->abandoned = 0;
    for (uint32_t i = 0; i < cap; i++)
        if (calls[i].done != NULL) calls[i].done(calls[i].ctx, reply);
    free(calls);
}

static void lose(rq__conn *c, const char *why)
{
    rq_reply reply = {.err = RQ_E_IO,
                      .retry = true,
                      .refused = c->was_refused,
                      .kind = RQ_SLICE_LIT("ConnectionLost"),
                      .text = rq_slice_cstr(why)};
    disconnect(c, &reply);
}

void rq__conn_drop(rq__conn *c, const char *why)
{
    lose(c, why);
}

void rq__conn_stop(rq__conn *c)
{
    static const rq_reply reply = {.err = RQ_E_CLOSED, .kind = {(const uint8_t *)"Closed", 6}};
    c->stopped = true;
    disconnect(c, &reply);
}

/* --- connecting ------------------------------------------------------------------------------- */

/* The preamble and the ConnectionHeader, as HBASE: RpcConnection. The version in it tells the server which
 * features the client supports. */
static rq_err put_preamble(const rq__conn *c, rq_buf *out)
{
    static const uint8_t preamble[] = {'H', 'B', 'a', 's', 0, 0x50};
    size_t head_at;
    size_t at;
    RQ_TRY(rq_buf_append(out, preamble, sizeof preamble));
    size_t length_at = out->len;
    RQ_TRY(rq_buf_append_be32(out, 0));
    head_at = out->len;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_slice_cstr(c->user)));
    RQ_TRY(rq_pb_end(out, at));
    RQ_TRY(rq_pb_put_bytes(out, 2, rq_slice_cstr(c->service)));
    RQ_TRY(rq_pb_put_bytes(out, 3, rq_slice_cstr(c->codec)));
    RQ_TRY(rq_pb_begin(out, 5, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT("2.6.1")));
    for (uint32_t field = 2; field <= 6; field++)
        RQ_TRY(rq_pb_put_bytes(out, field, RQ_SLICE_LIT("")));
    RQ_TRY(rq_pb_put_number(out, 7, 2));
    RQ_TRY(rq_pb_put_number(out, 8, 6));
    RQ_TRY(rq_pb_end(out, at));
    rq_put_be32(out->ptr + length_at, (uint32_t)(out->len - head_at));
    return RQ_OK;
}

static const rq_stream_events events;

static rq_err begin_connect(rq__conn *c)
{
    int64_t timeout = c->timeout_ns < CONNECT_TIMEOUT_NS ? c->timeout_ns : CONNECT_TIMEOUT_NS;
    rq_stream_target to = {.host = c->host,
                           .port = c->port,
                           .timeout_ns = (uint64_t)timeout,
                           .events = &events,
                           .user = c};
    if (c->in.cap > IN_KEPT) rq_buf_clear(&c->in);
    RQ_TRY(rq_stream_connect(c->loop, &to, &c->stream));
    c->connects++;
    c->was_refused = false;
    rq_err rc = put_preamble(c, rq_stream_out(c->stream));
    if (rc == RQ_OK)
        rq_stream_written(c->stream);
    else
        let_go(c);
    return rc;
}

static rq_err on_open(void *ctx, rq_stream *s)
{
    (void)ctx;
    (void)s;
    return RQ_OK;
}

static void on_close(rq_stream *s, rq_err why)
{
    rq__conn *c = rq_stream_user(s);
    if (c == NULL) return;
    const char *failure = rq_stream_failure(s);
    c->was_refused = rq_stream_was_refused(s);
    if (failure[0] != '\0')
        lose(c, failure);
    else
        lose(c, why == RQ_E_NO_MEMORY ? "out of memory" : CLOSED_BY_SERVER);
}

/* --- calls ------------------------------------------------------------------------------------ */

/* RequestHeader { call_id 1, method_name 3, request_param 4, cell_block_meta 5 { length 1 },
 * priority 6, timeout 7 } */
static rq_err put_request(rq__conn *c, uint32_t id, int64_t timeout_ns, const char *method,
                          uint32_t priority, rq_slice region, rq_slice message, rq_slice cells)
{
    uint8_t head[160];
    uint8_t *h = head;
    size_t method_len = strlen(method);
    RQ_ASSERT(method_len < 64);
    *h++ = 1 << 3;
    h += rq_put_varint(h, id);
    *h++ = 3 << 3 | 2;
    *h++ = (uint8_t)method_len;
    memcpy(h, method, method_len);
    h += method_len;
    *h++ = 4 << 3;
    *h++ = 1;
    if (cells.len > 0) {
        *h++ = 5 << 3 | 2;
        *h++ = (uint8_t)(1 + rq_varint_len(cells.len));
        *h++ = 1 << 3;
        h += rq_put_varint(h, cells.len);
    }
    if (priority > 0) {
        *h++ = 6 << 3;
        h += rq_put_varint(h, priority);
    }
    *h++ = 7 << 3;
    h += rq_put_varint(h, (uint64_t)(timeout_ns / 1000000));
    size_t head_len = (size_t)(h - head);
    size_t param = region.len + message.len;
    size_t total = rq_varint_len(head_len) + head_len + rq_varint_len(param) + param + cells.len;
    if (total > FRAME_MAX) return RQ_E_REQUEST_TOO_BIG;
    rq_buf *out = rq_stream_out(c->stream);
    RQ_TRY(rq_buf_reserve(out, 4 + total));
    uint8_t *p = out->ptr + out->len;
    rq_put_be32(p, (uint32_t)total);
    p += 4;
    p += rq_put_varint(p, head_len);
    memcpy(p, head, head_len);
    p += head_len;
    p += rq_put_varint(p, param);
    if (region.len > 0) memcpy(p, region.ptr, region.len);
    p += region.len;
    if (message.len > 0) memcpy(p, message.ptr, message.len);
    p += message.len;
    if (cells.len > 0) memcpy(p, cells.ptr, cells.len);
    out->len += 4 + total;
    rq_stream_written(c->stream);
    return RQ_OK;
}

/* At least 1 ms: to servers 0 is no timeout. */
static int64_t time_left(const rq__conn *c, int64_t now_ns, int64_t until_ns)
{
    int64_t left = until_ns - now_ns;
    if (until_ns == 0 || left > c->timeout_ns) return c->timeout_ns;
    return left > 1000000 ? left : 1000000;
}

rq_err rq__conn_call(rq__conn *c, const char *method, uint32_t priority, rq_slice region_prefix,
                     rq_slice message, rq_slice cells, rq_reply_fn done, void *ctx)
{
    return rq__conn_call_until(c, 0, method, priority, region_prefix, message, cells, done, ctx);
}

static bool was_closed(const rq__conn *c, int64_t now_ns)
{
    return c->stream != NULL && c->in_flight == 0 && now_ns - c->called_ns > DOUBTED_AFTER_NS &&
           rq_stream_has_ended(c->stream);
}

rq_err rq__conn_call_until(rq__conn *c, int64_t until_ns, const char *method, uint32_t priority,
                           rq_slice region_prefix, rq_slice message, rq_slice cells,
                           rq_reply_fn done, void *ctx)
{
    uint32_t id;
    int64_t now = rq_client_now_ns(), timeout = time_left(c, now, until_ns);
    if (c->stopped) return RQ_E_CLOSED;
    if (RQ_UNLIKELY(was_closed(c, now))) lose(c, CLOSED_BY_SERVER);
    if (c->stream == NULL) RQ_TRY(begin_connect(c));
    c->called_ns = now;
    RQ_TRY(take_place(c, &id));
    rq_err rc = put_request(c, id, timeout, method, priority, region_prefix, message, cells);
    if (rc != RQ_OK) {
        free_call_id(c, id);
        return rc;
    }
    c->calls[id] = (pending){.done = done, .ctx = ctx, .deadline_ns = now + timeout};
    c->last_call = id;
    c->in_flight++;
    c->traffic.calls++;
    return RQ_OK;
}

uint32_t rq__conn_last_call(const rq__conn *c)
{
    return c->last_call;
}

void rq__conn_redirect(rq__conn *c, uint32_t id, rq_reply_fn done, void *ctx)
{
    RQ_ASSERT(id < c->call_cap && c->calls[id].done != NULL);
    c->calls[id].done = done;
    c->calls[id].ctx = ctx;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The class without its package. */
static rq_slice simple_name(rq_slice java_class)
{
    for (size_t i = java_class.len; i > 0; i--)
        if (java_class.ptr[i - 1] == '.')
            return rq_slice_of(java_class.ptr + i, java_class.len - i);
    return java_class;
}

static rq_slice copied(rq_slice bytes, char *to, size_t size)
{
    size_t len = bytes.len < size ? bytes.len : size;
    if (len > 0) memcpy(to, bytes.ptr, len);
    return rq_slice_of(to, len);
}

/* With the id -1, which no call has, a server tells why it closes the connection, for example because it does not know
 * the service or the codec. The exception is that of all calls, and says whether a repetition may help. HBASE:
 * RpcConnection.readResponse. */
static void lose_for_reason(rq__conn *c, uint32_t id, const rq_exception_view *e)
{
    /* copies: a call that is made meanwhile may free the input buffer */
    char java_class[256], text[512];
    if (id != UINT32_MAX || e->java_class.len == 0) {
        lose(c, "a response to an unknown call");
        return;
    }
    rq_reply reply = {.err = rq__err_of_class(e->java_class),
                      .retry = !e->do_not_retry,
                      .java_class = copied(e->java_class, java_class, sizeof java_class),
                      .text = copied(e->text, text, sizeof text)};
    reply.kind = simple_name(reply.java_class);
    disconnect(c, &reply);
}

/* False: the connection is lost. */
static bool take_frame(rq__conn *c, rq_slice frame)
{
    rq_response_view v;
    if (rq__response_parse(frame, &v) != RQ_OK || !v.has_call_id) {
        lose(c, "the server's response is malformed");
        return false;
    }
    if (v.call_id >= c->call_cap) {
        lose_for_reason(c, v.call_id, &v.exception);
        return false;
    }
    pending call = c->calls[v.call_id];
    if (call.done == NULL && !call.abandoned) {
        lose(c, "a response to an unknown call");
        return false;
    }
    free_call_id(c, v.call_id);
    if (call.done == NULL) {
        c->abandoned--;
        return true;
    }
    c->in_flight--;
    rq_reply reply = {.message = v.message, .cells = v.cells};
    if (v.exception.java_class.len > 0) {
        reply.err = rq__err_of_class(v.exception.java_class);
        reply.retry = !v.exception.do_not_retry;
        reply.kind = simple_name(v.exception.java_class);
        reply.java_class = v.exception.java_class;
        reply.text = v.exception.text;
    }
    const rq_stream *from = c->stream;
    call.done(call.ctx, &reply);
    return c->stream == from;
}

/* Handles the complete frames. */
static void take_frames(rq__conn *c)
{
    for (;;) {
        size_t have = c->in.len - c->in_start;
        uint8_t *p = c->in.ptr + c->in_start;
        if (have < 4) break;
        uint32_t len = rq_get_be32(p);
        if (len > c->answer_max) {
            lose(c, "the server's response exceeds the size limit");
            return;
        }
        if (have < 4 + (size_t)len) {
            if (rq_buf_reserve(&c->in, 4 + (size_t)len - have) == RQ_OK) break;
            lose(c, "out of memory for a response");
            return;
        }
        c->in_start += 4 + (size_t)len;
        if (!take_frame(c, rq_slice_of(p + 4, len))) return;
    }
    if (c->in_start == c->in.len) {
        rq_buf_reset(&c->in);
        if (c->in.cap > IN_KEPT) rq_buf_clear(&c->in);
        c->in_start = 0;
    } else if (c->in_start > READ_ROOM) {
        memmove(c->in.ptr, c->in.ptr + c->in_start, c->in.len - c->in_start);
        c->in.len -= c->in_start;
        c->in_start = 0;
    }
}

static void *on_buffer(rq_stream *s, size_t *ret_len)
{
    rq__conn *c = rq_stream_user(s);
    if (rq_buf_reserve(&c->in, READ_ROOM) != RQ_OK) {
        lose(c, "out of memory for a response");
        return NULL;
    }
    *ret_len = rq_buf_take_room(&c->in);
    return c->in.ptr + c->in.len;
}

static void on_read(rq_stream *s, size_t len)
{
    rq__conn *c = rq_stream_user(s);
    c->in.len += len;
    c->traffic.received += len;
    if (len > 0) take_frames(c);
}

static const rq_stream_events events = {
    .on_open = on_open, .on_buffer = on_buffer, .on_read = on_read, .on_close = on_close};

static bool hangs(const rq__conn *c)
{
    if (c->abandoned == 0) return false;
    return c->abandoned >= ABANDONED_MAX || rq_stream_out_pending(c->stream) >= PENDING_MAX;
}

void rq__conn_check_timeouts(rq__conn *c, int64_t now_ns)
{
    static const rq_reply reply = {
        .err = RQ_E_CALL_TIMEOUT,
        .retry = true,
        .kind = {(const uint8_t *)"CallTimeout", 11},
    };
    for (uint32_t i = 0; i < c->call_cap; i++) {
        pending *p = &c->calls[i];
        if (p->done == NULL || p->deadline_ns > now_ns) continue;
        rq_reply_fn done = p->done;
        void *ctx = p->ctx;
        p->done = NULL;
        p->abandoned = true;
        c->abandoned++;
        c->in_flight--;
        done(ctx, &reply);
    }
    if (hangs(c)) lose(c, "the server does not answer");
}
