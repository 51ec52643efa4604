/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog whose calls go over connections to its own host: the same changes as with function
 * calls, while connections are lost. */
#include "../catalog/world.h"
#include "../region/fixture.h"
#include "nodes.h"

#include <stdatomic.h>
#include <unistd.h>

typedef struct line {
    node master, server;
    rq_remote *remote;
    rq_orders *orders;
    rq_peer_role sends, reports;
} line;

static const rq_server_name *active(void *ctx)
{
    return rq_server_name_ref(((line *)ctx)->master.name);
}

static void send_calls(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    rq_region_calls calls = rq_remote_calls(((line *)ctx)->remote);
    calls.send(calls.ctx, kind, list, count);
}

static bool load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret)
{
    rq_region_calls calls = rq_remote_calls(((line *)ctx)->remote);
    return calls.load(calls.ctx, server, info, ret);
}

static const rq_server_name *place(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last)
{
    rq_region_calls calls = rq_remote_calls(((line *)ctx)->remote);
    return calls.place(calls.ctx, info, last);
}

static void stop(void *ctx)
{
    line *l = ctx;
    rq_region_calls calls = rq_remote_calls(l->remote);
    calls.stop(calls.ctx);
    node_stop_calling(&l->master);
    node_stop_calling(&l->server);
    rq_orders_stop(l->orders);
    rq_sides_set_master(l->master.sides, NULL);
    rq_sides_set_orders(l->server.sides, NULL);
}

static void make_calls(void *ctx, world *w, rq_region_calls *ret)
{
    line *l = ctx;
    node_rename(&l->server, rq_host_name(w->host));
    l->sends = (rq_peer_role){.peers = l->master.peers, .self = l->master.name};
    l->reports = (rq_peer_role){
        .peers = l->server.peers, .self = l->server.name, .active = active, .ctx = l};
    const rq_orders_options orders = {
        .host = w->host, .report = rq_peers_report, .ctx = &l->reports};
    const rq_remote_options remote = {
        .env = w->env, .master_ms = w->start_code, .send = rq_peers_send, .ctx = &l->sends};
    assert_int_equal(rq_orders_new(&orders, &l->orders), RQ_OK);
    assert_int_equal(rq_remote_new(&remote, &l->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(l->remote, rq_host_name(w->host), NULL), RQ_OK);
    rq_sides_set_master(l->master.sides, l->remote);
    rq_sides_set_orders(l->server.sides, l->orders);
    *ret =
        (rq_region_calls){.send = send_calls, .load = load, .place = place, .stop = stop, .ctx = l};
}

static void free_calls(void *ctx)
{
    line *l = ctx;
    rq_orders_free(l->orders);
    rq_remote_free(l->remote);
}

static void open_world(world *w, real_env *e, line *l)
{
    real_env_open(e);
    node_start(&l->master, "the secret of this cluster", 1, 5000);
    node_start(&l->server, "the secret of this cluster", 2, 5000);
    world_init_real(w, &e->env);
    w->make_calls = make_calls;
    w->free_calls = free_calls;
    w->calls_ctx = l;
    w->port = l->server.port;
    if (world_open(w) != RQ_OK) fail_msg("%s", w->why.message);
}

static void close_world(world *w, real_env *e, line *l)
{
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
    world_end(w);
    node_stop(&l->master);
    node_stop(&l->server);
    real_env_close(e);
}

static void change_everything(world *w)
{
    OK(world_create(w, "t", "f g", "c m t"));
    for (const char *row = "adnuz"; *row != '\0'; row++) {
        const char text[] = {*row, '\0'};
        OK(world_put(w, "t", text, "f"));
    }
    OK(world_split(w, "t", "d", "f"));
    OK(world_transit(w, RQ_DDL_UNASSIGN_REGION, "t", "n"));
    OK(world_transit(w, RQ_DDL_ASSIGN_REGION, "t", "n"));
    OK(world_modify(w, "t", "f:VERSIONS=3 g"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_merge(w, "t", "n u", true));
    char *rows = world_rows(w, "t");
    assert_string_equal(rows, "a d n u z ");
    free(rows);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_truncate(w, "t", true));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
}

static void a_catalog_changes_over_connections(void **state)
{
    (void)state;
    real_env e;
    world w;
    line l;
    open_world(&w, &e, &l);
    change_everything(&w);
    close_world(&w, &e, &l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_catalog_changes_over_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
