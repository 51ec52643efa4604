/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of ClientService, executed: the whole service over a catalog with two tables, on the
 * simulated environment, behind a connection made of memory. What is decoded is done, so limits,
 * positions and counts that a decoder lets through meet the code that believes them.
 *
 * Input:
 *   byte 0   what the connection can (see `hellos`)
 *   calls    method (index modulo their number), be16 length of the message, be16 length of the
 *            cell block, message, cell block; what is missing at the end is left out
 *
 * Two kinds of names are only known at run time and are put into messages here: a region whose
 * value is one byte is that one of the tables' regions, and a scanner id below 64 is that of the
 * n-th scanner this input opened.
 *
 * Each answer is decoded as a client would, and its cell block has to be one. Every call must have
 * an answer when nothing is left to do. The tables stay from one input to the next, and are made
 * anew from time to time: inputs write little, and a fresh catalog costs more than a call.
 */
#include "memory_loop.h"

#include "../tests/unit/catalog/world.h"

#include "proto/client.pb-c.h"
#include "proto/rpc.pb-c.h"
#include "rpc/rpc_priv.h"
#include "service/service.h"

#include <stdio.h>
#include <stdlib.h>

#define INPUTS_PER_WORLD 50
#define REGIONS 3
#define SCANNERS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct service_world {
    world w;
    rq_loops loops;
    rq_lane *lane;
    rq_client_service *service;
    rq_rpc_budget *budget;
    rq_rpc_server *server;
    char regions[REGIONS][RQ_ENCODED_NAME_LEN + 1];
    size_t region_count;
    rq_epoch_member section; /* the loop's; open but between two iterations */
    unsigned inputs;
} service_world;

typedef struct session {
    service_world *world;
    rq_stream stream;
    uint32_t call_id;
    uint64_t scanners[SCANNERS_MAX];
    size_t scanner_count;
    const char *method; /* of the call under way */
    unsigned answers;
} session;

static void check(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "service_fuzz: %s\n", what);
    abort();
}

/* ---- the world */

static service_world *now; /* libFuzzer's entry has no context to keep it in */

/* Tasks and, behind them, what an iteration of a loop ends with; until nothing is left. */
static void run(rq_loop *loop)
{
    rq_sim *sim = now->w.sim;
    bool worked = true;
    while (worked) {
        worked = rq_sim_step(sim);
        while (rq_sim_step(sim)) {
        }
        for (rq_loop_hook *h = loop->hooks; h != NULL; h = h->next)
            h->run(h, loop);
        if (rq_sim_step(sim)) worked = true;
    }
    loop->now_ns = now->w.env->executor->now_ns(now->w.env->executor);
    rq_epoch_exit(now->w.env->epoch, &now->section);
    rq_epoch_collect(now->w.env->epoch);
    rq_epoch_enter(now->w.env->epoch, &now->section);
}

static void find_region(service_world *s, const char *table, const char *row)
{
    const rq_catalog_region *r = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(s->w.env->epoch, &m);
    rq_err rc = rq_catalog_locate(s->w.catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, NULL);
    check(rc == RQ_OK, "a region");
    memcpy(s->regions[s->region_count++], r->info->encoded, RQ_ENCODED_NAME_LEN + 1);
    rq_epoch_unpin(s->w.env->epoch, &m);
}

static void fill(service_world *s)
{
    world *w = &s->w;
    char row[8], value[8];
    check(world_create(w, "t", "f:VERSIONS=3 g", "m") == RQ_OK, "table t");
    check(world_create(w, "u",
                       "f g @coprocessor$1=|org.apache.hadoop.hbase.coprocessor."
                       "AggregateImplementation|1| @coprocessor$2=|org.apache.hadoop.hbase."
                       "coprocessor.MultiRowMutationEndpoint|2|",
                       NULL) == RQ_OK,
          "table u");
    for (int i = 0; i < 40; i++) {
        const char *table = i % 3 == 0 ? "u" : "t";
        snprintf(row, sizeof row, "%c%d", i % 2 == 0 ? 'a' : 'r', i % 10);
        rq_put_be64((uint8_t *)value, (uint64_t)i);
        check(world_put_cell(w, table, row, i % 5 == 0 ? "g" : "f", i % 4 == 0 ? "" : "q",
                             rq_slice_of(value, sizeof value)) == RQ_OK,
              "a row");
        if (i == 30) check(world_table(w, RQ_DDL_FLUSH_TABLE, "t") == RQ_OK, "flush");
    }
}

static service_world *world_begin(void)
{
    service_world *s = calloc(1, sizeof *s);
    rq_sim_options options = {.again_percent = 20};
    rq_error why = {.code = RQ_OK};
    if (s == NULL) abort();
    now = s;
    world_init(&s->w, 1, &options);
    check(world_open(&s->w) == RQ_OK, s->w.why.message);
    fill(s);
    find_region(s, "t", "a");
    find_region(s, "t", "z");
    find_region(s, "u", "a");
    check(rq_sim_lane_new(s->w.sim, &s->lane) == RQ_OK, "a lane");
    memory_loops_init(&s->loops, s->lane, run);
    rq_client_service_options o = {.env = s->w.env,
                                   .engine = s->w.engine,
                                   .catalog = s->w.catalog,
                                   .config = s->w.config,
                                   .loops = &s->loops,
                                   .machine = s->w.env->vfs,
                                   .data_path = "/rorqual"};
    check(rq_client_service_new(&o, &s->service, &why) == RQ_OK, why.message);
    check(rq_rpc_budget_new((size_t)16 << 20, &s->budget) == RQ_OK, "a budget");
    rq_rpc_service methods = rq_client_service_methods(s->service);
    rq_rpc_server_options server = {.loops = &s->loops,
                                    .budget = s->budget,
                                    .services = &methods,
                                    .service_count = 1,
                                    .request_bytes_max = (size_t)4 << 20};
    check(rq_rpc_server_open(&server, &s->server, &why) == RQ_OK, why.message);
    rq_epoch_pin(s->w.env->epoch, &s->section);
    return s;
}

static void world_end(service_world *s)
{
    run(&s->loops.loop);
    rq_rpc_server_close(s->server);
    rq_epoch_unpin(s->w.env->epoch, &s->section);
    check(rq_rpc_budget_used(s->budget) == 0, "requests' memory was not given back");
    rq_client_service_free(s->service);
    rq_rpc_budget_free(s->budget);
    s->w.env->executor->lane_free(s->w.env->executor, s->lane);
    world_clear(&s->w);
    free(s);
}

/* ---- answers */

static void take_message(session *s, rq_slice message)
{
    if (strcmp(s->method, "Scan") != 0) return;
    Pb__ScanResponse *r = pb__scan_response__unpack(NULL, message.len, message.ptr);
    check(r != NULL, "a ScanResponse that is none");
    if (r->has_scanner_id && s->scanner_count < SCANNERS_MAX &&
        (s->scanner_count == 0 || s->scanners[s->scanner_count - 1] != r->scanner_id))
        s->scanners[s->scanner_count++] = r->scanner_id;
    pb__scan_response__free_unpacked(r, NULL);
}

static rq_slice delimited(rq_cursor *c)
{
    uint64_t len;
    rq_slice s = {0};
    check(rq_cursor_varint(c, &len) && rq_cursor_bytes(c, len, &s), "an answer's length");
    return s;
}

static void take_answer(session *s, rq_slice frame)
{
    rq_cursor c = rq_cursor_of(frame);
    rq_slice head = delimited(&c);
    Pb__ResponseHeader *h = pb__response_header__unpack(NULL, head.len, head.ptr);
    check(h != NULL && h->has_call_id, "a ResponseHeader that is none");
    if (h->exception == NULL) {
        take_message(s, delimited(&c));
        rq_cell cell;
        rq_err rc;
        check(rq_cursor_left(&c) == (h->cell_block_meta == NULL ? 0 : h->cell_block_meta->length),
              "a cell block's length");
        while ((rc = rq_cellblock_next(&c, &cell, NULL)) == RQ_OK) {
        }
        check(rc == RQ_E_END, "a cell block that is none");
    }
    pb__response_header__free_unpacked(h, NULL);
    s->answers++;
}

static void take_answers(session *s)
{
    rq_buf *out = &s->stream.out;
    rq_cursor c = rq_cursor_of(rq_buf_slice(out));
    uint32_t len;
    rq_slice frame = {0};
    while (rq_cursor_be32(&c, &len)) {
        check(rq_cursor_bytes(&c, len, &frame), "half an answer");
        take_answer(s, frame);
    }
    check(rq_cursor_left(&c) == 0, "bytes behind an answer");
    rq_buf_reset(out);
    s->stream.events->on_drain(&s->stream);
}

/* ---- requests */

static void name_region(session *s, Pb__RegionSpecifier *r)
{
    if (r == NULL || r->value.len != 1) return;
    const char *name = s->world->regions[r->value.data[0] % s->world->region_count];
    uint8_t *copy = malloc(RQ_ENCODED_NAME_LEN); /* freed with the message */
    if (copy == NULL) abort();
    memcpy(copy, name, RQ_ENCODED_NAME_LEN);
    free(r->value.data);
    r->value = (ProtobufCBinaryData){RQ_ENCODED_NAME_LEN, copy};
    r->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
}

/* Wherever a message, or one inside it, has a region. */
static void name_regions(session *s, ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        uint8_t *at = (uint8_t *)m + f->offset;
        size_t count = 1;
        ProtobufCMessage **list = (ProtobufCMessage **)(void *)at;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&count, (uint8_t *)m + f->quantifier_offset, sizeof count);
            list = *(ProtobufCMessage ***)(void *)at;
        }
        for (size_t k = 0; k < count; k++) {
            if (list[k] == NULL) continue;
            if (f->descriptor == &pb__region_specifier__descriptor)
                name_region(s, (Pb__RegionSpecifier *)list[k]);
            else
                name_regions(s, list[k]);
        }
    }
}

static void append(rq_buf *b, const void *bytes, size_t len)
{
    if (rq_buf_append(b, bytes, len) != RQ_OK) abort();
}

static void append_delimited(rq_buf *b, rq_slice bytes)
{
    uint8_t len[RQ_VARINT_MAX];
    append(b, len, rq_put_varint(len, bytes.len));
    append(b, bytes.ptr, bytes.len);
}

/* The message with the names put in; as it came when it is no such message. */
static void make_message(session *s, const rq_rpc_method *method, rq_slice bytes, rq_buf *ret)
{
    ProtobufCMessage *m = protobuf_c_message_unpack(method->request, NULL, bytes.len, bytes.ptr);
    if (m == NULL) {
        append(ret, bytes.ptr, bytes.len);
        return;
    }
    name_regions(s, m);
    if (m->descriptor == &pb__scan_request__descriptor) {
        Pb__ScanRequest *scan = (Pb__ScanRequest *)m;
        if (scan->has_scanner_id && scan->scanner_id < s->scanner_count)
            scan->scanner_id = s->scanners[scan->scanner_id];
    }
    if (rq_buf_reserve(ret, protobuf_c_message_get_packed_size(m)) != RQ_OK) abort();
    ret->len = protobuf_c_message_pack(m, ret->ptr);
    protobuf_c_message_free_unpacked(m, NULL);
}

static void make_header(session *s, const rq_rpc_method *method, size_t cells, rq_buf *ret)
{
    Pb__RequestHeader h = PB__REQUEST_HEADER__INIT;
    Pb__CellBlockMeta meta = PB__CELL_BLOCK_META__INIT;
    h.has_call_id = h.has_request_param = 1;
    h.call_id = s->call_id++;
    h.request_param = 1;
    h.method_name = (char *)(uintptr_t)method->name;
    meta.has_length = 1;
    meta.length = (uint32_t)cells;
    if (cells > 0) h.cell_block_meta = &meta;
    if (rq_buf_reserve(ret, pb__request_header__get_packed_size(&h)) != RQ_OK) abort();
    ret->len = pb__request_header__pack(&h, ret->ptr);
}

/* Until the call's answer is there; time passes where the service waits for it. */
static void wait_for_answer(session *s, unsigned answers)
{
    for (int i = 0; i < 200 && s->answers < answers && !s->stream.closing; i++) {
        take_answers(s);
        if (s->answers < answers) rq_sim_advance(s->world->w.sim, 50000000);
        run(s->stream.loop);
        take_answers(s);
    }
    check(s->answers == answers || s->stream.closing, "a call without an answer");
}

static void call(session *s, const rq_rpc_method *method, rq_slice message, rq_slice cells)
{
    rq_buf head = {0}, param = {0}, frame = {0};
    s->method = method->name;
    make_header(s, method, cells.len, &head);
    make_message(s, method, message, &param);
    append(&frame, "\0\0\0", 4);
    append_delimited(&frame, rq_buf_slice(&head));
    append_delimited(&frame, rq_buf_slice(&param));
    if (cells.len > 0) append(&frame, cells.ptr, cells.len);
    rq_put_be32(frame.ptr, (uint32_t)(frame.len - 4));
    unsigned answers = s->answers + 1;
    memory_stream_feed(&s->stream, frame.ptr, frame.len, frame.len);
    wait_for_answer(s, answers);
    rq_buf_clear(&head);
    rq_buf_clear(&param);
    rq_buf_clear(&frame);
}

/* ---- connections */

static const struct {
    const char *codec;
    unsigned major, minor; /* 0: a client that tells no version */
} hellos[] = {
    {"org.apache.hadoop.hbase.codec.KeyValueCodec", 2, 6},
    {"org.apache.hadoop.hbase.codec.KeyValueCodecWithTags", 2, 6},
    {NULL, 2, 6},
    {"org.apache.hadoop.hbase.codec.KeyValueCodec", 1, 2},
    {NULL, 0, 0},
};

static void say_hello(session *s, unsigned which)
{
    Pb__ConnectionHeader h = PB__CONNECTION_HEADER__INIT;
    Pb__VersionInfo v = PB__VERSION_INFO__INIT;
    uint8_t bytes[512] = "HBas\0\x50";
    v.version = v.url = v.revision = v.user = v.date = v.src_checksum = (char *)(uintptr_t) "x";
    v.has_version_major = v.has_version_minor = 1;
    v.version_major = hellos[which].major;
    v.version_minor = hellos[which].minor;
    h.service_name = (char *)(uintptr_t) "ClientService";
    h.cell_block_codec_class = (char *)(uintptr_t)hellos[which].codec;
    if (hellos[which].major > 0) h.version_info = &v;
    size_t len = pb__connection_header__pack(&h, bytes + 10);
    rq_put_be32(bytes + 6, (uint32_t)len);
    memory_stream_feed(&s->stream, bytes, len + 10, sizeof bytes);
}

static rq_slice take(rq_cursor *c, size_t len)
{
    rq_slice s = {0};
    if (len > rq_cursor_left(c)) len = rq_cursor_left(c);
    check(rq_cursor_bytes(c, len, &s), "the input's length");
    return s;
}

static void run_session(service_world *w, const uint8_t *data, size_t size)
{
    session s = {
        .world = w,
        .stream = {.loop = &w->loops.loop, .events = &rq_conn_events, .peer = {"127.0.0.1", 4711}}};
    rq_rpc_service methods = rq_client_service_methods(w->service);
    rq_cursor c = rq_cursor_of(rq_slice_of(data, size));
    check(s.stream.events->on_open(w->server, &s.stream) == RQ_OK, "no connection");
    say_hello(&s, take(&c, 1).ptr[0] % RQ_ARRAY_LEN(hellos));
    while (rq_cursor_left(&c) >= 5 && !s.stream.closing) {
        const uint8_t *head = take(&c, 5).ptr;
        rq_slice message = take(&c, rq_get_be16(head + 1));
        rq_slice cells = take(&c, rq_get_be16(head + 3));
        call(&s, &methods.methods[head[0] % methods.method_count], message, cells);
    }
    s.stream.events->on_close(&s.stream, RQ_OK);
    run(&w->loops.loop);
    rq_buf_clear(&s.stream.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (now == NULL) now = world_begin();
    run_session(now, data, size);
    if (++now->inputs < INPUTS_PER_WORLD) return 0;
    world_end(now);
    now = NULL;
    return 0;
}
