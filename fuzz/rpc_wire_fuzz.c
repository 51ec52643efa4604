/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a socket: the whole RPC connection (preamble, headers, frames, parameters, cell
 * blocks, codecs, compressors, back-pressure), on a stream in memory instead of an event loop.
 *
 * Input: byte 0 selects the beginning of the connection (see `hellos`; larger numbers: the same
 * with so little memory that connections wait for it) and the size of the reads; the rest are the
 * client's bytes. If bit 7 is set, the rest is one request's frame without its length. */
#include "../tests/unit/net/memory_loop.h"

#include "proto/client.pb-c.h"
#include "rpc/rpc_priv.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- services, which read all data that they get */

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

typedef struct late {
    rq_task task;
    rq_call *call;
} late;

static void handle_now(rq_task *task)
{
    late *l = RQ_CONTAINER_OF(task, late, task);
    handle_cells(NULL, l->call);
}

/* Meanwhile later calls of the connection are read. */
static void handle_late(void *ctx, rq_call *call)
{
    (void)ctx;
    late *l = rq_arena_alloc(&call->arena, sizeof *l);
    if (l == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    *l = (late){.task.run = handle_now, .call = call};
    rq_call_post(call, &l->task);
}

static const rq_rpc_method methods[] = {
    {"Get", &pb__get_request__descriptor, handle_cells},
    {"Mutate", &pb__mutate_request__descriptor, handle_late},
    {"Multi", &pb__multi_request__descriptor, handle_cells},
    {"Scan", &pb__scan_request__descriptor, NULL},
};

/* ---- feeding */

#define SERVICE                                                                                    \
    "\x12\x0d"                                                                                     \
    "ClientService"
#define CODEC(name, len) "\x1a" len "org.apache.hadoop.hbase.codec." name
#define COMPRESSOR(name, len) "\x22" len "org.apache.hadoop.io.compress." name
/* VersionInfo without the numbers, which are then parsed from the text. */
#define VERSION_1_2                                                                                \
    "\x2a\x16\x0a\x05"                                                                             \
    "1.2.0"                                                                                        \
    "\x12\1x\x1a\1x\x22\1x\x2a\1x\x32\1x"
#define HELLO(header)                                                                              \
    {                                                                                              \
        "HBas\0\x50\0\0\0" header, sizeof("HBas\0\x50\0\0\0" header) - 1                           \
    }

/* Preamble and connection header; the header's length is set before use. */
static const struct {
    const char *bytes;
    size_t len;
} hellos[] = {
    {"", 0}, /* the input contains the preamble */
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
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") COMPRESSOR("BZip2Codec", "\x28")),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") /* blocks; ZStandardCodec: a stream */
          "\x22\x32org.apache.hadoop.hbase.io.compress.zstd.ZstdCodec"),
    HELLO("\0" SERVICE CODEC("KeyValueCodec", "\x2b") VERSION_1_2),
};
#define NARROW_FROM RQ_ARRAY_LEN(hellos)

static void say_hello(rq_stream *s, unsigned which)
{
    uint8_t hello[256];
    size_t len = hellos[which].len;
    if (len == 0) return;
    memcpy(hello, hellos[which].bytes, len);
    rq_put_be32(hello + 6, (uint32_t)(len - 10));
    memory_stream_feed(s, hello, len, len);
}

static void run_connection(rq_rpc_server *server, rq_loop *loop, const uint8_t *data, size_t size)
{
    rq_stream s = {.loop = loop, .events = &rq_conn_events, .peer = {"127.0.0.1", 4711}};
    static const size_t steps[] = {1 << 20, 1, 13, 4096};
    uint8_t control = data[0];
    data++;
    size--;
    if (s.events->on_open(server, &s) != RQ_OK) abort();
    say_hello(&s, (control & 0x1f) % RQ_ARRAY_LEN(hellos));
    if ((control & 0x80) != 0) {
        uint8_t head[4];
        rq_put_be32(head, (uint32_t)size);
        memory_stream_feed(&s, head, sizeof head, sizeof head);
    }
    memory_stream_feed(&s, data, size, steps[control >> 5 & 3]);
    s.events->on_close(&s, RQ_OK);
    loop->run(loop);
    rq_buf_clear(&s.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    rq_loops loops;
    memory_loops_init(&loops, NULL, NULL);
    rq_budget *budget, *unread;
    rq_rpc_server *server;
    bool narrow = (data[0] & 0x1f) >= NARROW_FROM;
    rq_rpc_service service = {.name = "ClientService",
                              .methods = methods,
                              .method_count = RQ_ARRAY_LEN(methods),
                              .ctx = NULL};
    if (rq_budget_new(narrow ? 1000 : (size_t)4 << 20, &budget) != RQ_OK) abort();
    if (rq_budget_new(narrow ? 100 : (size_t)4 << 20, &unread) != RQ_OK) abort();
    rq_rpc_server_options o = {
        .loops = &loops,
        .budget = budget,
        .unread = unread,
        .services = &service,
        .service_count = 1,
        .cluster_id = "id",
        .request_bytes_max = (size_t)1 << 20,
        .out_bytes_max = narrow ? 200 : 10000,
    };
    if (rq_rpc_server_open(&o, &server, NULL) != RQ_OK) abort();
    run_connection(server, &loops.loop, data, size);
    rq_rpc_server_close(server);
    if (rq_budget_used(budget) != 0) abort(); /* not all bytes were released */
    if (rq_budget_used(unread) != 0) abort();
    rq_budget_free(budget);
    rq_budget_free(unread);
    return 0;
}
