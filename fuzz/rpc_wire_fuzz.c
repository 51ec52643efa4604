/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes from a socket: the whole RPC connection (preamble, headers, frames, parameters, cell
 * blocks, codecs, compressors, back-pressure), on a stream made of memory instead of the event
 * loop.
 *
 * Input: byte 0 chooses how the connection begins (see `hellos`) and the size of the reads; the
 * rest is what the client sends. When bit 7 is set, the rest is one request's frame without its
 * length.
 */
#include "proto/client.pb-c.h"
#include "rpc/rpc_priv.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the stream: input is fed, output is counted and thrown away */

struct rq_loop {
    rq_lane lane;
    rq_task *tasks;
    rq_task **end;
};

struct rq_loops {
    rq_loop loop;
};

struct rq_listener {
    const rq_stream_events *events;
    void *ctx;
};

struct rq_stream {
    rq_loop *loop;
    const rq_stream_events *events;
    void *user;
    rq_peer peer;
    rq_buf out;
    bool paused, closing, closed;
};

static void post(rq_lane *lane, rq_task *task)
{
    rq_loop *loop = RQ_CONTAINER_OF(lane, rq_loop, lane);
    task->next = NULL;
    *loop->end = task;
    loop->end = &task->next;
}

static void run_tasks(rq_loop *loop)
{
    while (loop->tasks != NULL) {
        rq_task *t = loop->tasks;
        loop->tasks = t->next;
        if (loop->tasks == NULL) loop->end = &loop->tasks;
        t->run(t);
    }
}

unsigned rq_loops_count(const rq_loops *loops)
{
    (void)loops;
    return 1;
}

rq_loop *rq_loops_get(rq_loops *loops, unsigned index)
{
    (void)index;
    return &loops->loop;
}

void rq_loops_sync(rq_loops *loops)
{
    run_tasks(&loops->loop);
}

unsigned rq_loop_index(const rq_loop *loop)
{
    (void)loop;
    return 0;
}

rq_lane *rq_loop_lane(rq_loop *loop)
{
    return &loop->lane;
}

bool rq_loop_is_current(const rq_loop *loop)
{
    (void)loop;
    return true;
}

uint64_t rq_loop_now_ns(const rq_loop *loop)
{
    (void)loop;
    return 0; /* long ago: calls with a time-out are expired */
}

rq_err rq_listener_open(rq_loops *loops, const rq_listener_options *options, rq_listener **ret,
                        rq_error *why)
{
    (void)loops;
    (void)why;
    rq_listener *l = malloc(sizeof *l);
    if (l == NULL) abort();
    *l = (rq_listener){options->events, options->ctx};
    *ret = l;
    return RQ_OK;
}

uint16_t rq_listener_port(const rq_listener *l)
{
    (void)l;
    return 16020;
}

unsigned rq_listener_connections(const rq_listener *l)
{
    (void)l;
    return 0;
}

void rq_listener_stop(rq_listener *l, bool streams)
{
    (void)l;
    (void)streams;
}

void rq_listener_close(rq_listener *l)
{
    free(l);
}

void rq_stream_set_user(rq_stream *s, void *user)
{
    s->user = user;
}

void *rq_stream_user(const rq_stream *s)
{
    return s->user;
}

rq_loop *rq_stream_loop(const rq_stream *s)
{
    return s->loop;
}

const rq_peer *rq_stream_peer(const rq_stream *s)
{
    return &s->peer;
}

rq_buf *rq_stream_out(rq_stream *s)
{
    return &s->out;
}

void rq_stream_written(rq_stream *s)
{
    (void)s;
}

rq_err rq_stream_write(rq_stream *s, const void *bytes, size_t len)
{
    return rq_buf_append(&s->out, bytes, len);
}

rq_err rq_stream_write_owned(rq_stream *s, rq_buf *b)
{
    rq_err rc = rq_buf_append(&s->out, b->ptr, b->len);
    rq_buf_clear(b);
    return rc;
}

void rq_stream_take_spare(rq_stream *s, rq_buf *b)
{
    (void)s;
    *b = (rq_buf){0};
}

void rq_stream_keep_spare(rq_stream *s, rq_buf *b)
{
    (void)s;
    rq_buf_clear(b);
}

size_t rq_stream_out_pending(const rq_stream *s)
{
    return s->out.len;
}

void rq_stream_pause(rq_stream *s)
{
    s->paused = true;
}

void rq_stream_resume(rq_stream *s)
{
    s->paused = false;
}

bool rq_stream_paused(const rq_stream *s)
{
    return s->paused;
}

void rq_stream_set_deadline(rq_stream *s, uint64_t due_ns)
{
    (void)s;
    (void)due_ns;
}

void rq_stream_finish(rq_stream *s)
{
    s->closing = true;
}

void rq_stream_close(rq_stream *s, rq_err why)
{
    (void)why;
    s->closing = true;
}

bool rq_stream_closing(const rq_stream *s)
{
    return s->closing;
}

/* ---- services: they look at everything they are given */

static void handle_cells(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_cursor c = rq_cursor_of(call->cell_block);
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_cellblock_next(&c, &cell, NULL)) == RQ_OK)
        if (!call->client->has_codec || rq_cellblock_append(&call->cells, &cell) != RQ_OK) break;
    (void)rq_call_header(call);
    if (rc != RQ_E_END) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "malformed cells");
        return;
    }
    Pb__MultiResponse response = PB__MULTI_RESPONSE__INIT;
    rq_call_reply(call, &response.base);
}

static const rq_rpc_method methods[] = {
    {"Get", &pb__get_request__descriptor, handle_cells},
    {"Mutate", &pb__mutate_request__descriptor, handle_cells},
    {"Multi", &pb__multi_request__descriptor, handle_cells},
    {"Scan", &pb__scan_request__descriptor, NULL},
};

/* ---- feeding */

#define SERVICE                                                                                    \
    "\x12\x0d"                                                                                     \
    "ClientService"
#define CODEC(name, len) "\x1a" len "org.apache.hadoop.hbase.codec." name
#define COMPRESSOR(name, len) "\x22" len "org.apache.hadoop.io.compress." name
#define HELLO(header)                                                                              \
    {                                                                                              \
        "HBas\0\x50\0\0\0" header, sizeof("HBas\0\x50\0\0\0" header) - 1                           \
    }

/* Preamble and connection header; the header's length is set when it is used. */
static const struct {
    const char *bytes;
    size_t len;
} hellos[] = {
    {"", 0}, /* the input brings its own */
    HELLO("\0" SERVICE),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b")),
    HELLO("\0" SERVICE CODEC("KeyValueCodecWithTags", "\x33")),
    HELLO("\0" SERVICE CODEC("CellCodec", "\x27")),
    HELLO("\0" SERVICE CODEC("CellCodecWithTags", "\x2f")),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") COMPRESSOR("GzipCodec", "\x27")),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") COMPRESSOR("SnappyCodec", "\x29")),
    HELLO("\0" SERVICE CODEC("CellCodec", "\x27") COMPRESSOR("Lz4Codec", "\x26")),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") COMPRESSOR("ZStandardCodec", "\x2c")),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") COMPRESSOR("DefaultCodec", "\x2a")),
};

/* Gives the connection what it asks for, until the bytes are spent or it reads no more. */
static void feed(rq_stream *s, const uint8_t *bytes, size_t len, size_t step)
{
    while (len > 0 && !s->closing) {
        if (s->paused) { /* the client takes its answers */
            rq_buf_reset(&s->out);
            s->events->on_drain(s);
            run_tasks(s->loop);
            if (s->paused) return;
        }
        size_t room = 0;
        uint8_t *p = s->events->on_buffer(s, &room);
        if (p == NULL) {
            s->paused = true;
            run_tasks(s->loop);
            return;
        }
        size_t n = len < step ? len : step;
        if (n > room) n = room;
        memcpy(p, bytes, n);
        s->events->on_read(s, n);
        run_tasks(s->loop);
        bytes += n;
        len -= n;
    }
}

static void say_hello(rq_stream *s, unsigned which)
{
    uint8_t hello[256];
    size_t len = hellos[which].len;
    if (len == 0) return;
    memcpy(hello, hellos[which].bytes, len);
    rq_put_be32(hello + 6, (uint32_t)(len - 10));
    feed(s, hello, len, len);
}

static void run_connection(rq_listener *l, rq_loop *loop, const uint8_t *data, size_t size)
{
    rq_stream s = {.loop = loop, .events = l->events, .peer = {"127.0.0.1", 4711}};
    static const size_t steps[] = {1 << 20, 1, 13, 4096};
    uint8_t control = data[0];
    data++;
    size--;
    if (s.events->on_open(l->ctx, &s) != RQ_OK) abort();
    say_hello(&s, (control & 0x1f) % RQ_ARRAY_LEN(hellos));
    if ((control & 0x80) != 0) {
        uint8_t head[4];
        rq_put_be32(head, (uint32_t)size);
        feed(&s, head, sizeof head, sizeof head);
    }
    feed(&s, data, size, steps[control >> 5 & 3]);
    s.events->on_close(&s, RQ_OK);
    run_tasks(loop);
    rq_buf_clear(&s.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    rq_loops loops = {.loop = {.lane = {post}}};
    loops.loop.end = &loops.loop.tasks;
    rq_rpc_budget *budget;
    rq_rpc_server *server;
    rq_rpc_service service = {"ClientService", methods, RQ_ARRAY_LEN(methods), NULL};
    rq_listener *listener = NULL;
    if (rq_rpc_budget_new((size_t)4 << 20, &budget) != RQ_OK) abort();
    rq_rpc_server_options o = {
        .loops = &loops,
        .budget = budget,
        .services = &service,
        .service_count = 1,
        .cluster_id = "id",
        .request_bytes_max = (size_t)1 << 20,
        .out_bytes_max = 10000,
    };
    if (rq_rpc_server_open(&o, &server, NULL) != RQ_OK) abort();
    /* The server keeps the listener to itself; its events and context are what was passed. */
    rq_listener_options lo = {.events = &rq_conn_events, .ctx = server};
    if (rq_listener_open(&loops, &lo, &listener, NULL) != RQ_OK) abort();
    run_connection(listener, &loops.loop, data, size);
    rq_listener_close(listener);
    rq_rpc_server_close(server);
    if (rq_rpc_budget_used(budget) != 0) abort(); /* something was not given back */
    rq_rpc_budget_free(budget);
    return 0;
}
