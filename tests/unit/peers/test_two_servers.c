/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A master with a server in its process, and a second server, each with its own engine. They share
 * the folder of files and the tenures' folder, and are connected. The master has hbase:meta and its
 * store, and places the regions of tables on both servers.
 */
#include "../catalog/world.h"
#include "../region/fixture.h"
#include "nodes.h"

#include "catalog/catalog_priv.h"
#include "cluster/duty.h"
#include "cluster/wire.h"
#include "region/engine.h"
#include "vfs/shared.h"
#include "wal/head.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "the secret of this cluster"

typedef struct two {
    real_env files; /* the regions' files, and the master's environment */
    real_env storage;
    rq_shared *shared;
    world w;
    rq_tenure *tenure[2];
    char name[2][80];
    node node[3]; /* the two servers, and the master */
    rq_orders *orders[2];
    rq_remote *remote;
    rq_peer_role sends, reports[2];
    /* The second server's environment. */
    rq_env env;
    rq_engine *engine;
    rq_host *host;
    rq_duty *duty;
    bool fenced;
} two;

/* --- the master's calls ----------------------------------------------------------------------- */

static const rq_server_name *active(void *ctx)
{
    return rq_server_name_ref(((two *)ctx)->node[2].name);
}

static void stop(void *ctx)
{
    two *t = ctx;
    rq_region_calls calls = rq_remote_calls(t->remote);
    calls.stop(calls.ctx);
    rq_duty_end(t->duty);
    t->duty = NULL;
    for (size_t i = 0; i < 3; i++)
        node_stop_calling(&t->node[i]);
    rq_sides_set_master(t->node[2].sides, NULL);
    for (size_t i = 0; i < 2; i++) {
        rq_orders_stop(t->orders[i]);
        rq_sides_set_orders(t->node[i].sides, NULL);
    }
}

static void send_calls(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    calls.send(calls.ctx, kind, list, count);
}

static bool load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.load(calls.ctx, server, info, ret);
}

static const rq_server_name *place(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.place(calls.ctx, info, last);
}

static rq_err servers(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.servers(calls.ctx, arena, ret, ret_count);
}

static rq_err drain(void *ctx, const rq_server_name *server, bool drains, rq_error *why)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.drain(calls.ctx, server, drains, why);
}

static bool is_draining(void *ctx, const rq_server_name *server)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.is_draining(calls.ctx, server);
}

static bool takes_regions(void *ctx, const rq_server_name *server)
{
    rq_region_calls calls = rq_remote_calls(((two *)ctx)->remote);
    return calls.takes_regions(calls.ctx, server);
}

static void take_orders(two *t, size_t i, rq_host *host)
{
    node_rename(&t->node[i], rq_host_name(host));
    t->reports[i] = (rq_peer_role){
        .peers = t->node[i].peers, .self = t->node[i].name, .active = active, .ctx = t};
    const rq_orders_options o = {.host = host, .report = rq_peers_report, .ctx = &t->reports[i]};
    assert_int_equal(rq_orders_new(&o, &t->orders[i]), RQ_OK);
    rq_sides_set_orders(t->node[i].sides, t->orders[i]);
}

static void make_calls(void *ctx, world *w, rq_region_calls *ret)
{
    two *t = ctx;
    assert_string_equal(rq_host_name(w->host)->text, t->name[0]);
    t->sends = (rq_peer_role){.peers = t->node[2].peers, .self = t->node[2].name};
    const rq_remote_options remote = {.env = w->env,
                                      .master_ms = w->start_code,
                                      .send = rq_peers_send,
                                      .home = rq_host_name(w->host),
                                      .ctx = &t->sends};
    assert_int_equal(rq_remote_new(&remote, &t->remote), RQ_OK);
    rq_sides_set_master(t->node[2].sides, t->remote);
    take_orders(t, 0, w->host);
    assert_int_equal(rq_remote_server_up(t->remote, rq_host_name(w->host), NULL), RQ_OK);
    *ret = (rq_region_calls){.send = send_calls,
                             .load = load,
                             .place = place,
                             .servers = servers,
                             .drain = drain,
                             .is_draining = is_draining,
                             .takes_regions = takes_regions,
                             .stop = stop,
                             .ctx = t};
}

static void free_calls(void *ctx)
{
    two *t = ctx;
    for (size_t i = 0; i < 2; i++)
        rq_orders_free(t->orders[i]);
    rq_remote_free(t->remote);
}

/* --- the second server ------------------------------------------------------------------------ */

static void open_second(two *t)
{
    static const unsigned threads[RQ_POOL_COUNT] = {2, 2, 1, 1, 1, 2, 2};
    const rq_server_name name = {.host = "localhost", .port = t->node[1].port, .start_code = 77};
    rq_error why = {0};
    assert_ok(rq_vfs_posix_new(t->files.root, &t->env.vfs, NULL));
    assert_ok(rq_thread_executor_new(threads, &t->env.executor));
    assert_ok(rq_epoch_new(&t->env.epoch));
    t->env.log = &t->files.log;
    const rq_engine_options engine = {.tenure = t->tenure[1], .server_name = t->name[1]};
    if (rq_engine_open(&t->env, &engine, &t->engine, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_ok(rq_host_new(t->engine, &name, NULL, &t->host));
    rq_host_name_itself(t->host);
    take_orders(t, 1, t->host);
    const rq_duty_options duty = {
        .host = t->host, .period_ms = 20, .report = rq_peers_report, .ctx = &t->reports[1]};
    assert_ok(rq_duty_begin(&duty, &t->duty));
}

static void close_second(two *t)
{
    rq_error why = {0};
    rq_err rc = rq_host_close_rest(t->host, t->fenced, &why);
    if (rc != RQ_OK && !t->fenced) fail_msg("%s", why.message);
    rq_host_free(t->host);
    rq_epoch_collect(t->env.epoch);
    rc = rq_engine_close(t->engine, !t->fenced, &why);
    if (rc != RQ_OK && !t->fenced) fail_msg("%s", why.message);
    rq_epoch_free(t->env.epoch);
    rq_thread_executor_free(t->env.executor);
    rq_vfs_free(t->env.vfs);
}

/* --- both servers ----------------------------------------------------------------------------- */

static void setup(two *t)
{
    rq_error why = {0};
    *t = (two){0};
    real_env_open(&t->files);
    real_env_open(&t->storage);
    assert_ok(
        rq_shared_posix_new(t->storage.env.vfs, t->storage.env.executor, NULL, NULL, &t->shared));
    for (size_t i = 0; i < 3; i++)
        node_start(&t->node[i], SECRET, 1, 10000);
    world_init_real(&t->w, &t->files.env);
    const int64_t codes[2] = {t->w.start_code + 1, 77};
    for (size_t i = 0; i < 2; i++) {
        snprintf(t->name[i], sizeof t->name[i], "localhost,%u,%lld", t->node[i].port,
                 (long long)codes[i]);
        if (rq_tenure_begin(t->shared, t->name[i], &t->tenure[i], &why) != RQ_OK)
            fail_msg("%s", why.message);
    }
    t->w.make_calls = make_calls;
    t->w.free_calls = free_calls;
    t->w.calls_ctx = t;
    t->w.port = t->node[0].port;
    t->w.tenure = t->tenure[0];
    t->w.server_name = t->name[0];
    if (world_open(&t->w) != RQ_OK) fail_msg("%s", t->w.why.message);
    open_second(t);
    while (!rq_duty_is_taken(t->duty))
        sched_yield();
}

static void teardown(two *t)
{
    world *w = &t->w;
    /* In the order in which a cluster stops: the master's calls first. */
    OK(world_close(w, true));
    close_second(t);
    world_clear(w);
    for (size_t i = 0; i < 2; i++) {
        if (i == 0 || !t->fenced) assert_ok(rq_tenure_end(t->tenure[i], NULL));
        rq_tenure_free(t->tenure[i]);
    }
    for (size_t i = 0; i < 3; i++)
        node_stop(&t->node[i]);
    rq_shared_free(t->shared);
    real_env_close(&t->storage);
    real_env_close(&t->files);
}

/* The number of the table's regions that requests find on the second server; the others are on the
 * first. */
static size_t on_second(two *t, const char *rows)
{
    size_t count = 0;
    rq_epoch_member m = {0}, n = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    rq_epoch_pin(t->env.epoch, &n);
    for (; *rows != '\0'; rows++) {
        const rq_catalog_region *r;
        const rq_host_region *there;
        assert_ok(rq_catalog_locate(t->w.catalog, RQ_SLICE_LIT("t"),
                                    rq_slice_of((const uint8_t *)rows, 1), &r, NULL));
        assert_int_equal(r->state, RQ_REGION_OPEN);
        bool second = strcmp(r->server->text, t->name[1]) == 0;
        assert_true(second || strcmp(r->server->text, t->name[0]) == 0);
        assert_int_equal(r->region != NULL, !second);
        rq_err rc;
        while ((rc = rq_host_find(t->host, r->info->name, &there, NULL)) == RQ_E_REGION_OPENING)
            sched_yield(); /* the master's response is in flight */
        if (second || rc != RQ_E_REGION_MOVED)
            assert_int_equal(rc, second ? RQ_OK : RQ_E_NOT_SERVING_REGION);
        count += second;
    }
    rq_epoch_unpin(t->env.epoch, &n);
    rq_epoch_unpin(t->w.env->epoch, &m);
    return count;
}

/* Another process that still believes that it is the master. */
static void try_deposed_master(two *t)
{
    node old;
    rq_arena a = {0};
    rq_region_info info;
    rq_slice request;
    rq_error why;
    assert_ok(rq_region_info_make(&a, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"), (rq_slice){0},
                                  (rq_slice){0}, 1, 0, &info));
    const rq_order o = {
        .kind = RQ_CALL_CLOSE, .id = 1, .master_ms = t->w.start_code - 1, .info = info};
    assert_ok(rq__orders_encode(&o, 1, 77, &a, &request));
    node_start(&old, SECRET, 1, 10000);
    assert_int_equal(ask(&old, t->node[1].name, "ExecuteProcedures", request, &why),
                     RQ_E_DO_NOT_RETRY);
    if (strstr(why.message, "has replaced it") == NULL) fail_msg("%s", why.message);
    /* A report to a process that is not the master. */
    assert_int_equal(ask(&t->node[1], old.name, "ReportProcedureDone", (rq_slice){0}, &why),
                     RQ_E_SERVER_NOT_RUNNING);
    node_stop(&old);
    rq_arena_clear(&a);
}

static void tables_are_on_both_servers(void **state)
{
    (void)state;
    two t;
    setup(&t);
    world *w = &t.w;
    OK(world_create(w, "t", "f g", "c m t"));
    assert_int_equal(on_second(&t, "adnz"), 2);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    assert_int_equal(on_second(&t, "adnz"), 2);
    OK(world_modify(w, "t", "f:VERSIONS=3 g"));
    assert_int_equal(on_second(&t, "adnz"), 2);
    try_deposed_master(&t);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    teardown(&t);
}

static void put_row(rq_region *region, rq_slice row)
{
    rq_error why = {0};
    rq_cell cell = {.row = row.ptr,
                    .row_len = (uint16_t)row.len,
                    .family = (const uint8_t *)"f",
                    .family_len = 1,
                    .value = (const uint8_t *)"v",
                    .value_len = 1,
                    .timestamp = RQ_TIMESTAMP_LATEST,
                    .type = RQ_TYPE_PUT};
    rq_mutation m = {.type = RQ_MUTATE_PUT,
                     .row = row,
                     .cells = &cell,
                     .cell_count = 1,
                     .time_range = RQ_TIME_RANGE_ALL};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    if (rq_region_write_sync(region, &op, 1, &why) != RQ_OK) fail_msg("%s", why.message);
    rq_cellblock_clear(&op.result);
}

static bool all_are_open(two *t)
{
    bool open = true;
    rq_epoch_member m = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    const rq_catalog_table *table = rq_catalog_table_find(t->w.catalog, RQ_SLICE_LIT("t"));
    for (size_t i = 0; i < table->region_count; i++)
        open &= rq_catalog_table_region(table, i)->state == RQ_REGION_OPEN;
    rq_epoch_unpin(t->w.env->epoch, &m);
    return open;
}

/* The number of the table's regions that are open in the master's process. */
static size_t at_master(two *t)
{
    size_t count = 0;
    rq_epoch_member m = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    const rq_catalog_table *table = rq_catalog_table_find(t->w.catalog, RQ_SLICE_LIT("t"));
    for (size_t i = 0; i < table->region_count; i++)
        count += rq_catalog_table_region(table, i)->region != NULL;
    rq_epoch_unpin(t->w.env->epoch, &m);
    return count;
}

/* Puts each row into its region, wherever the region is open. */
static void put_rows(two *t, const char *rows)
{
    for (; *rows != '\0'; rows++) {
        rq_epoch_member m = {0};
        const rq_catalog_region *r;
        rq_slice row = rq_slice_of((const uint8_t *)rows, 1);
        rq_epoch_pin(t->w.env->epoch, &m);
        assert_ok(rq_catalog_locate(t->w.catalog, RQ_SLICE_LIT("t"), row, &r, NULL));
        bool second = strcmp(r->server->text, t->name[1]) == 0;
        rq_region *region = rq_host_ref(second ? t->host : t->w.host, r->info);
        rq_epoch_unpin(t->w.env->epoch, &m);
        assert_non_null(region);
        put_row(region, row);
        rq_region_unref(region);
    }
}

static rq_err move_region(two *t, const char *row, const char *server)
{
    rq_arena a = {0};
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_error why = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    assert_ok(rq_catalog_locate(t->w.catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, NULL));
    rq_ddl d = {.kind = RQ_DDL_MOVE_REGION,
                .ns = RQ_SLICE_LIT("default"),
                .qualifier = RQ_SLICE_LIT("t"),
                .of.one_region = {.region = rq_arena_copy(&a, rq_slice_cstr(r->info->encoded)),
                                  .server = rq_slice_cstr(server)}};
    rq_epoch_unpin(t->w.env->epoch, &m);
    rq_err rc = rq__catalog_ddl_sync(t->w.catalog, &d, &why);
    rq_arena_clear(&a);
    return rc;
}

/* A request to the former server is answered with the region's new server. */
static void expect_moved_to(two *t, rq_host *from, const char *row, const char *server)
{
    rq_epoch_member m = {0}, n = {0};
    const rq_catalog_region *r;
    const rq_host_region *there;
    rq_error why = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    rq_epoch_pin(t->env.epoch, &n);
    assert_ok(rq_catalog_locate(t->w.catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, NULL));
    assert_string_equal(r->server->text, server);
    assert_int_equal(rq_host_find(from, r->info->name, &there, &why), RQ_E_REGION_MOVED);
    rq_epoch_unpin(t->env.epoch, &n);
    rq_epoch_unpin(t->w.env->epoch, &m);
}

/* Moves the regions of these rows, a letter each, to the server. */
static void move_rows(two *t, const char *rows, const char *server)
{
    for (; *rows != '\0'; rows++) {
        const char row[] = {*rows, '\0'};
        assert_ok(move_region(t, row, server));
    }
}

static void regions_move_between_servers(void **state)
{
    (void)state;
    two t;
    setup(&t);
    world *w = &t.w;
    OK(world_create(w, "t", "f g", "c m t"));
    put_rows(&t, "adnz");
    move_rows(&t, "adnz", t.name[1]);
    move_rows(&t, "adnz", t.name[1]); /* the regions are already there */
    assert_int_equal(on_second(&t, "adnz"), 4);
    OK(move_region(&t, "d", t.name[0]));
    expect_moved_to(&t, t.host, "d", t.name[0]);
    assert_int_equal(on_second(&t, "adnz"), 3);
    assert_int_equal(move_region(&t, "a", "localhost,1,1"), RQ_E_DO_NOT_RETRY);
    move_rows(&t, "anz", t.name[0]);
    char *rows = world_rows(w, "t");
    assert_string_equal(rows, "a d n z ");
    free(rows);
    teardown(&t);
}

static void balance(two *t, bool dry, bool ran, size_t planned)
{
    const rq_balance_options o = {.dry = dry};
    rq_balance done;
    assert_ok(rq_catalog_balance(t->w.catalog, &o, &done));
    assert_int_equal(done.ran, ran);
    assert_int_equal(done.planned, planned);
    assert_int_equal(done.begun, dry ? 0 : planned);
}

/* Like a server that restarts after others have taken its regions. */
static void a_server_without_regions_gets_some(void **state)
{
    (void)state;
    two t;
    bool before;
    setup(&t);
    world *w = &t.w;
    OK(world_create(w, "t", "f g", "c m t"));
    put_rows(&t, "adnz");
    move_rows(&t, "adnz", t.name[0]);
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_BALANCER, false, &before, &w->why));
    balance(&t, false, false, 0);
    balance(&t, true, true, 2);
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_BALANCER, true, &before, &w->why));
    balance(&t, false, true, 2);
    while (at_master(&t) > 2 || !all_are_open(&t))
        sched_yield();
    assert_int_equal(on_second(&t, "adnz"), 2);
    balance(&t, false, true, 0);
    teardown(&t);
}

static void drains(two *t, size_t server, bool drains)
{
    rq_error why = {0};
    if (rq_catalog_drain(t->w.catalog, t->node[server].name, drains, &why) != RQ_OK)
        fail_msg("%s", why.message);
    assert_int_equal(rq_catalog_is_draining(t->w.catalog, t->node[server].name), drains);
}

/* All regions of table t are brought back to the second server; an unknown region in the list is
 * ignored. */
static void bring_back(two *t)
{
    char names[5][RQ_ENCODED_NAME_LEN + 1] = {"0123456789abcdef0123456789abcdef"};
    rq_slice list[5] = {rq_slice_cstr(names[0])};
    rq_epoch_member m = {0};
    rq_error why = {0};
    rq_epoch_pin(t->w.env->epoch, &m);
    const rq_catalog_table *table = rq_catalog_table_find(t->w.catalog, RQ_SLICE_LIT("t"));
    assert_int_equal(table->region_count, 4);
    for (size_t i = 1; i < 5; i++) {
        snprintf(names[i], sizeof names[i], "%s",
                 rq_catalog_table_region(table, i - 1)->info->encoded);
        list[i] = rq_slice_cstr(names[i]);
    }
    rq_epoch_unpin(t->w.env->epoch, &m);
    assert_ok(rq_catalog_bring(t->w.catalog, t->node[1].name, list, 5, &why));
    while (at_master(t) > 0 || !all_are_open(t))
        sched_yield();
    assert_int_equal(on_second(t, "adnz"), 4);
}

static void a_decommissioned_server_gets_no_region(void **state)
{
    (void)state;
    two t;
    setup(&t);
    world *w = &t.w;
    OK(world_create(w, "t", "f g", "c m t"));
    put_rows(&t, "adnz");
    assert_int_equal(on_second(&t, "adnz"), 2);
    drains(&t, 1, true);
    assert_int_equal(on_second(&t, "adnz"), 2); /* regions stay until they are moved */
    assert_ok(rq_catalog_offload(w->catalog, t.node[1].name, &w->why));
    while (at_master(&t) < 4 || !all_are_open(&t))
        sched_yield();
    assert_int_equal(on_second(&t, "adnz"), 0);
    balance(&t, false, true, 0);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    assert_int_equal(on_second(&t, "adnz"), 0);
    /* No other server can take the first server's regions. */
    drains(&t, 0, true);
    assert_int_equal(rq_catalog_offload(w->catalog, t.node[0].name, &w->why), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(w->why.message, "no other server takes regions"));
    drains(&t, 0, false);
    drains(&t, 1, false);
    bring_back(&t);
    move_rows(&t, "adnz", t.name[0]);
    char *rows = world_rows(w, "t");
    assert_string_equal(rows, "a d n z ");
    free(rows);
    teardown(&t);
}

/* The second server is fenced while it runs, as if the network had cut it off. */
static void regions_of_a_dead_server_are_opened_elsewhere(void **state)
{
    (void)state;
    two t;
    uint64_t quiet;
    rq_error why = {0};
    setup(&t);
    world *w = &t.w;
    OK(world_create(w, "t", "f g", "c m t"));
    assert_int_equal(on_second(&t, "adnz"), 2);
    put_rows(&t, "adnz");
    if (rq_wal_fence(t.shared, t.name[1], t.name[0], &quiet, &why) != RQ_OK)
        fail_msg("%s", why.message);
    rq_remote_server_down(t.remote, t.node[1].name);
    rq_catalog_server_down(w->catalog, t.node[1].name);
    /* called twice: the second call finds nothing to do */
    rq_catalog_server_down(w->catalog, t.node[1].name);
    while (at_master(&t) < 4)
        sched_yield();
    char *rows = world_rows(w, "t");
    assert_string_equal(rows, "a d n z ");
    free(rows);
    t.fenced = true;
    teardown(&t);
}

/* The second server's reports do not arrive, but it answers calls. The third server does not
 * answer, as if cut off. Only the answers distinguish the two: without them no server is declared
 * dead. */
static void a_server_that_cannot_be_reached_is_given_up(void **state)
{
    (void)state;
    two t;
    rq_error why = {0};
    const rq_server_name name = {.host = "localhost", .port = 1, .start_code = 1}, *third;
    const rq_silence_limits limits = {.silent_ns = 400000000, .one_way_ns = 800000000};
    rq_silence s = {0};
    rq_arena a = {0};
    setup(&t);
    third = rq_server_name_new(&name);
    assert_non_null(third);
    rq_duty_end(t.duty);
    t.duty = NULL;
    if (rq_remote_server_up(t.remote, third, &why) != RQ_OK) fail_msg("%s", why.message);
    while (s.count == 0) {
        rq_arena_clear(&a);
        assert_ok(rq_remote_silent(t.remote, &limits, &a, &s));
        sched_yield();
    }
    assert_int_equal(s.count, 1);
    assert_string_equal(s.servers[0].name->text, third->text);
    rq_remote_server_down(t.remote, s.servers[0].name);
    rq_server_name_unref(s.servers[0].name);
    rq_server_name_unref(third);
    rq_arena_clear(&a);
    teardown(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_on_both_servers),
        cmocka_unit_test(regions_move_between_servers),
        cmocka_unit_test(a_server_without_regions_gets_some),
        cmocka_unit_test(a_decommissioned_server_gets_no_region),
        cmocka_unit_test(regions_of_a_dead_server_are_opened_elsewhere),
        cmocka_unit_test(a_server_that_cannot_be_reached_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
