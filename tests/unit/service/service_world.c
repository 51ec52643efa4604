/* SPDX-License-Identifier: Apache-2.0 */
/* The services on a simulated catalog, and their clients; see service_world.h. */
#include "service_world.h"

#include "registry/registry.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "service_world: %s\n", what);
    abort();
}

/* ---- the world */

/* Runs tasks until none is left, or as many as steps_left allows. */
static void run(rq_loop *loop)
{
    service_world *s = RQ_CONTAINER_OF(loop, service_world, loops.loop);
    rq_sim *sim = s->w.sim;
    do {
        while (s->steps_left > 0 && rq_sim_step(sim))
            if (s->steps_left != UINT_MAX) s->steps_left--;
        loop->now_ns = s->w.env->executor->now_ns(s->w.env->executor);
    } while (s->steps_left > 0 && memory_loop_run_timers(loop));
    rq_epoch_exit(s->w.env->epoch, &s->section);
    rq_epoch_collect(s->w.env->epoch);
    rq_epoch_enter(s->w.env->epoch, &s->section);
}

static void find_region(service_world *s, const char *table, const char *row, char *ret)
{
    const rq_catalog_region *r = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(s->w.env->epoch, &m);
    rq_err rc = rq_catalog_locate(s->w.catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, NULL);
    check(rc == RQ_OK, "a region");
    memcpy(ret, r->info->encoded, RQ_ENCODED_NAME_LEN + 1);
    rq_epoch_unpin(s->w.env->epoch, &m);
}

static void fill(service_world *s)
{
    world *w = &s->w;
    char row[8], value[8];
    check(world_create(w, "t", "f:VERSIONS=3 g", "m") == RQ_OK, "table t");
    check(
        world_create(
            w, "u",
            "f g m:IS_MOB=true,MOB_THRESHOLD=4 @coprocessor$1=|org.apache.hadoop.hbase.coprocessor."
            "AggregateImplementation|1| @coprocessor$2=|org.apache.hadoop.hbase."
            "coprocessor.MultiRowMutationEndpoint|2| "
            "@coprocessor$3=|org.apache.hadoop.hbase.coprocessor.example.BulkDeleteEndpoint|3|",
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

static void open_services(service_world *s)
{
    rq_error why = {.code = RQ_OK};
    check(rq_intake_new("", s->w.env->vfs, "/rorqual", &s->intake, &why) == RQ_OK, why.message);
    rq_ops_options ops = {.env = s->w.env,
                          .engine = s->w.engine,
                          .catalog = s->w.catalog,
                          .config = s->w.config,
                          .lane = s->lane,
                          .intake = s->intake,
                          .data_path = "/rorqual"};
    check(rq_ops_new(&ops, &s->ops, &why) == RQ_OK, why.message);
    rq_client_service_options client = {.env = s->w.env,
                                        .engine = s->w.engine,
                                        .catalog = s->w.catalog,
                                        .config = s->w.config,
                                        .ops = s->ops,
                                        .loops = &s->loops};
    check(rq_client_service_new(&client, &s->client, &why) == RQ_OK, why.message);
    rq_quotas_options quotas = {
        .env = s->w.env, .catalog = s->w.catalog, .ops = s->ops, .config = s->w.config};
    check(rq_quotas_open(&quotas, &s->quotas, &why) == RQ_OK, why.message);
    rq_admin_services_options admin = {.env = s->w.env,
                                       .quotas = s->quotas,
                                       .engine = s->w.engine,
                                       .catalog = s->w.catalog,
                                       .config = s->w.config,
                                       .loops = &s->loops,
                                       .client = s->client};
    check(rq_admin_services_new(&admin, &s->admin, &why) == RQ_OK, why.message);
    s->catalog_answers = rq_catalog_answers_of(s->w.catalog);
    s->services[SERVICE_CLIENT] = rq_client_service_methods(s->client);
    s->services[SERVICE_ADMIN] = rq_admin_service_methods(s->admin);
    s->services[SERVICE_MASTER] = rq_master_service_methods(s->admin);
    s->services[SERVICE_MASTER_ADMIN] = rq_master_admin_service_methods(s->admin);
    s->services[SERVICE_META] = rq_meta_service_methods(&s->catalog_answers.answers);
    s->services[SERVICE_HBCK] = rq_hbck_service_methods(s->admin);
    s->services[SERVICE_LOCK] = rq_lock_service_methods(s->admin);
    s->services[SERVICE_STATUS] = rq_status_service_methods(s->admin);
    s->services[SERVICE_BOOTSTRAP] = rq_bootstrap_service_methods(s->w.catalog);
}

static void count_post(rq_lane *lane, rq_task *task)
{
    service_world *s = RQ_CONTAINER_OF(lane, service_world, counting);
    s->posted++;
    rq_lane_post(s->lane, task);
}

static rq_rpc_server *open_server(service_world *s, service_kind first, size_t count)
{
    rq_rpc_server *server;
    rq_error why = {.code = RQ_OK};
    rq_rpc_server_options o = {.loops = &s->loops,
                               .budget = s->budget,
                               .services = s->services + first,
                               .service_count = count,
                               .request_bytes_max = (size_t)4 << 20,
                               .executor = s->w.env->executor};
    check(rq_rpc_server_open(&o, &server, &why) == RQ_OK, why.message);
    return server;
}

static service_world *new_world(unsigned again_percent)
{
    service_world *s = calloc(1, sizeof *s);
    if (s == NULL) abort();
    s->steps_left = UINT_MAX;
    /* Log lines are formatted, so that all bytes of requests reach the logger, but discarded. */
    s->log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    rq_sim_options options = {.again_percent = again_percent, .log_fd = s->log_fd};
    world_init(&s->w, 1, &options);
    check(rq_config_set(s->w.config, "hbase.quota.enabled", "true", NULL) == RQ_OK, "quotas");
    /* A call that waits for the lock of an earlier call times out while the test waits. */
    check(rq_config_set(s->w.config, "hbase.master.procedure.remote.locks.timeout.ms", "100",
                        NULL) == RQ_OK,
          "locks");
    check(world_open(&s->w) == RQ_OK, s->w.why.message);
    fill(s);
    find_region(s, "t", "a", s->regions[0]);
    find_region(s, "t", "z", s->regions[1]);
    find_region(s, "u", "a", s->regions[2]);
    check(rq_sim_lane_new(s->w.sim, &s->lane) == RQ_OK, "a lane");
    s->counting.post = count_post;
    memory_loops_init(&s->loops, &s->counting, run);
    open_services(s);
    check(rq_budget_new((size_t)16 << 20, &s->budget) == RQ_OK, "a budget");
    s->server = open_server(s, SERVICE_CLIENT, 3);
    s->master = open_server(s, SERVICE_MASTER, 6);
    rq_epoch_pin(s->w.env->epoch, &s->section);
    return s;
}

service_world *service_world_new(void)
{
    return new_world(20);
}

service_world *service_world_new_cold(void)
{
    return new_world(100);
}

bool service_world_is_whole(const service_world *s)
{
    for (size_t i = 0; i < SERVICE_REGIONS; i++) {
        const rq_catalog_region *r =
            rq_catalog_region_find(s->w.catalog, rq_slice_cstr(s->regions[i]));
        if (r == NULL || r->state != RQ_REGION_OPEN) return false;
    }
    return true;
}

void service_world_free(service_world *s)
{
    run(&s->loops.loop);
    rq_rpc_server_close(s->server);
    rq_rpc_server_close(s->master);
    rq_epoch_unpin(s->w.env->epoch, &s->section);
    check(rq_budget_used(s->budget) == 0, "requests' memory was not given back");
    rq_admin_services_free(s->admin);
    rq_client_service_free(s->client);
    rq_quotas_stop(s->quotas);
    rq_quotas_close(s->quotas);
    rq_ops_free(s->ops);
    rq_intake_free(s->intake);
    rq_budget_free(s->budget);
    s->w.env->executor->lane_free(s->w.env->executor, s->lane);
    world_clear(&s->w);
    close(s->log_fd);
    free(s);
}

/* ---- responses */

static rq_slice delimited(rq_cursor *c)
{
    uint64_t len;
    rq_slice s = {0};
    check(rq_cursor_varint(c, &len) && rq_cursor_bytes(c, len, &s), "an answer's length");
    return s;
}

static void forget_answer(service_client *c)
{
    if (c->header != NULL) pb__response_header__free_unpacked(c->header, NULL);
    c->header = NULL;
    rq_buf_reset(&c->message);
    rq_buf_reset(&c->cells);
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

static void take_answer(service_client *c, rq_slice frame)
{
    rq_cursor at = rq_cursor_of(frame);
    rq_slice head = delimited(&at);
    forget_answer(c);
    c->header = pb__response_header__unpack(NULL, head.len, head.ptr);
    check(c->header != NULL && c->header->has_call_id, "a ResponseHeader that is none");
    c->answers++;
    if (c->header->exception != NULL) return;
    rq_slice message = delimited(&at);
    append(&c->message, message.ptr, message.len);
    size_t left = rq_cursor_left(&at);
    check(left == (c->header->cell_block_meta == NULL ? 0 : c->header->cell_block_meta->length),
          "a cell block's length");
    append(&c->cells, at.ptr, left);
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_cellblock_next(&at, &cell, NULL)) == RQ_OK) {
    }
    check(rc == RQ_E_END, "a cell block that is none");
}

static void take_answers(service_client *c)
{
    rq_buf *out = &c->stream.out;
    rq_cursor at = rq_cursor_of(rq_buf_slice(out));
    uint32_t len;
    rq_slice frame = {0};
    while (rq_cursor_be32(&at, &len)) {
        check(rq_cursor_bytes(&at, len, &frame), "half an answer");
        take_answer(c, frame);
    }
    check(rq_cursor_left(&at) == 0, "bytes behind an answer");
    rq_buf_reset(out);
    c->stream.events->on_drain(&c->stream);
}

/* ---- requests */

static void make_header(service_client *c, const char *method, size_t cells, rq_buf *ret)
{
    Pb__RequestHeader h = PB__REQUEST_HEADER__INIT;
    Pb__CellBlockMeta meta = PB__CELL_BLOCK_META__INIT;
    h.has_call_id = h.has_request_param = 1;
    h.call_id = c->call_id++;
    h.request_param = 1;
    h.method_name = (char *)(uintptr_t)method;
    meta.has_length = 1;
    meta.length = (uint32_t)cells;
    if (cells > 0) h.cell_block_meta = &meta;
    if (rq_buf_reserve(ret, pb__request_header__get_packed_size(&h)) != RQ_OK) abort();
    ret->len = pb__request_header__pack(&h, ret->ptr);
}

void service_client_wait(service_client *c, unsigned answers)
{
    for (int i = 0; i < 200 && c->answers < answers && !c->stream.closing; i++) {
        take_answers(c);
        if (c->answers < answers) rq_sim_advance(c->world->w.sim, 50000000);
        run(c->stream.loop);
        take_answers(c);
    }
    check(c->answers == answers || c->stream.closing, "a call without an answer");
}

void service_client_send(service_client *c, const char *method, rq_slice message, rq_slice cells)
{
    rq_buf head = {0}, frame = {0};
    forget_answer(c);
    make_header(c, method, cells.len, &head);
    append(&frame, "\0\0\0", 4);
    append_delimited(&frame, rq_buf_slice(&head));
    append_delimited(&frame, message);
    append(&frame, cells.ptr, cells.len);
    rq_put_be32(frame.ptr, (uint32_t)(frame.len - 4));
    memory_stream_feed(&c->stream, frame.ptr, frame.len, frame.len);
    rq_buf_clear(&head);
    rq_buf_clear(&frame);
}

void service_client_take(service_client *c)
{
    take_answers(c);
}

bool service_client_call(service_client *c, const char *method, rq_slice message, rq_slice cells)
{
    unsigned answers = c->answers + 1;
    service_client_send(c, method, message, cells);
    service_client_wait(c, answers);
    return !c->stream.closing;
}

const char *service_client_exception(const service_client *c)
{
    return c->header == NULL || c->header->exception == NULL
               ? NULL
               : c->header->exception->exception_class_name;
}

/* ---- connections */

static const struct {
    const char *codec;
    unsigned major, minor; /* 0: a client that sends no version */
} hellos[] = {
    {"org.apache.hadoop.hbase.codec.KeyValueCodec", 2, 6},
    {"org.apache.hadoop.hbase.codec.KeyValueCodecWithTags", 2, 6},
    {NULL, 2, 6},
    {"org.apache.hadoop.hbase.codec.KeyValueCodec", 1, 2},
    {NULL, 0, 0},
};

static void say_hello(service_client *c, const char *service, unsigned which)
{
    Pb__ConnectionHeader h = PB__CONNECTION_HEADER__INIT;
    Pb__VersionInfo v = PB__VERSION_INFO__INIT;
    uint8_t bytes[512] = "HBas\0\x50";
    v.version = v.url = v.revision = v.user = v.date = v.src_checksum = (char *)(uintptr_t) "x";
    v.has_version_major = v.has_version_minor = 1;
    v.version_major = hellos[which].major;
    v.version_minor = hellos[which].minor;
    h.service_name = (char *)(uintptr_t)service;
    h.cell_block_codec_class = (char *)(uintptr_t)hellos[which].codec;
    if (hellos[which].major > 0) h.version_info = &v;
    size_t len = pb__connection_header__pack(&h, bytes + 10);
    rq_put_be32(bytes + 6, (uint32_t)len);
    memory_stream_feed(&c->stream, bytes, len + 10, sizeof bytes);
}

void service_client_open(service_client *c, service_world *w, service_kind kind, unsigned hello)
{
    rq_rpc_server *server = kind < SERVICE_MASTER ? w->server : w->master;
    *c = (service_client){
        .world = w,
        .stream = {.loop = &w->loops.loop, .events = &rq_conn_events, .peer = {"127.0.0.1", 4711}}};
    check(c->stream.events->on_open(server, &c->stream) == RQ_OK, "no connection");
    say_hello(c, w->services[kind].name, hello);
}

void service_client_close(service_client *c)
{
    c->stream.events->on_close(&c->stream, RQ_OK);
    run(&c->world->loops.loop);
    forget_answer(c);
    rq_buf_clear(&c->message);
    rq_buf_clear(&c->cells);
    rq_buf_clear(&c->stream.out);
}
