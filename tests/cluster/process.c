/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of a cluster, for tests/e2e/cluster.py: a member of ZooKeeper with an engine on a shared folder,
 * that clients find by HBase's znodes. Who is elected when it starts has hbase:meta, and fences the servers that
 * leave rs/; the others take regions. It is not what `rorqual server --cluster` will be: no process becomes
 * master later, nobody ends in order, and only ClientService and MasterService are served. Prints
 *
 *     master NAME | server NAME      it serves
 *     down NAME                      the master has fenced that server; its regions are reopened
 *
 * process QUORUM ROOT FOLDER PORT SECRET_FILE SESSION_MS; ends at once when its input ends.
 */
#include "registry/zk_client.h"
#include "registry/zk_member.h"
#include "registry/znode_values.h"

#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/root.h"
#include "cluster/duty.h"
#include "ops/ops.h"
#include "peers/peers.h"
#include "peers/service.h"
#include "service/admin.h"
#include "vfs/shared.h"
#include "vfs/vfs.h"
#include "wal/head.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLUSTER_ID "5b1d2a44-93c0-4a0e-8b2f-000000000002"
#define MEGABYTES ((size_t)1 << 20)

typedef struct process {
    rq_log log;
    rq_env env;
    rq_vfs *shared_vfs;
    rq_shared *shared;
    rq_tenure *tenure;
    rq_config *config;
    rq_engine *engine;
    rq_host *host;
    const rq_server_name *server, *master;
    rq_loops *loops;
    rq_budget *budget;
    rq_ops *ops;
    rq_client_service *client;
    rq_secret secret;
    rq_sides *sides;
    rq_peer_service *incoming;
    rq_peers *peers;
    rq_peer_role role;
    rq_orders *orders;
    rq_duty *duty;
    rq_member *_Atomic member;
    /* The master's. */
    rq_root *root;
    rq_remote *remote;
    rq_catalog *catalog;
    rq_admin_services *admin;
} process;

/* For what this program cannot go on without. */
static void must(rq_err rc, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why == NULL ? "" : why->message);
    exit(1);
}

static void say(const char *what, const char *name)
{
    printf("%s %s\n", what, name);
    fflush(stdout);
}

/* --- names ------------------------------------------------------------------------------------ */

static const rq_server_name *name_of(const char *port, unsigned more, int64_t code)
{
    const rq_server_name n = {.host = "localhost",
                              .port = (uint16_t)(strtoul(port, NULL, 10) + more),
                              .start_code = code};
    return rq_server_name_new(&n);
}

/* The active master takes calls of servers at its server's port, the one before. */
static const rq_server_name *active(void *ctx)
{
    const process *p = ctx;
    rq_arena a = {0};
    rq_member_view v;
    unsigned port;
    long long code;
    const rq_server_name *ret = NULL;
    if (p->member != NULL && rq_member_look(p->member, &a, &v) == RQ_OK &&
        sscanf(v.active, "localhost,%u,%lld", &port, &code) == 2) {
        const rq_server_name n = {
            .host = "localhost", .port = (uint16_t)(port - 1), .start_code = code};
        ret = rq_server_name_new(&n);
    }
    rq_arena_clear(&a);
    return ret;
}

/* --- all -------------------------------------------------------------------------------------- */

static void open_storage(process *p, const char *folder, const char *port)
{
    static const unsigned threads[RQ_POOL_COUNT] = {4, 2, 1, 1, 1, 8, 4};
    char files[512], shared[512];
    rq_error why = {0};
    snprintf(files, sizeof files, "%s/files", folder);
    snprintf(shared, sizeof shared, "%s/shared", folder);
    must(rq_thread_executor_new(threads, &p->env.executor), NULL);
    must(rq_epoch_new(&p->env.epoch), NULL);
    must(rq_vfs_posix_new(files, &p->env.vfs, &why), &why);
    must(rq_vfs_posix_new(shared, &p->shared_vfs, &why), &why);
    must(rq_shared_posix_new(p->shared_vfs, p->env.executor, NULL, NULL, &p->shared), NULL);
    int64_t code = p->env.executor->now_ms(p->env.executor);
    p->server = name_of(port, 0, code);
    p->master = name_of(port, 1, code);
    must(rq_tenure_begin(p->shared, p->server->text, &p->tenure, &why), &why);
    must(rq_config_new(&p->config), NULL);
    const rq_engine_options engine = {
        .config = p->config, .tenure = p->tenure, .server_name = p->server->text};
    must(rq_engine_open(&p->env, &engine, &p->engine, &why), &why);
    must(rq_host_new(p->engine, p->server, p->config, &p->host), NULL);
}

static void serve(process *p, uint16_t port, const rq_rpc_service *services, size_t count)
{
    rq_error why = {0};
    rq_rpc_server *server;
    const rq_rpc_server_options o = {.loops = p->loops,
                                     .executor = p->env.executor,
                                     .budget = p->budget,
                                     .port = port,
                                     .services = services,
                                     .service_count = count,
                                     .cluster_id = CLUSTER_ID,
                                     .log = &p->log};
    must(rq_rpc_server_open(&o, &server, &why), &why);
}

static void open_services(process *p)
{
    rq_error why = {0};
    const rq_loops_options loops = {.count = 2, .epoch = p->env.epoch, .log = &p->log};
    must(rq_loops_new(&loops, &p->loops), NULL);
    must(rq_budget_new(64 * MEGABYTES, &p->budget), NULL);
    rq_loop *loop = rq_loops_get(p->loops, 0);
    const rq_ops_options ops = {
        .env = &p->env, .engine = p->engine, .config = p->config, .lane = rq_loop_lane(loop)};
    must(rq_ops_new(&ops, &p->ops, &why), &why);
    const rq_client_service_options client = {.env = &p->env,
                                              .engine = p->engine,
                                              .host = p->host,
                                              .config = p->config,
                                              .ops = p->ops,
                                              .loops = p->loops};
    must(rq_client_service_new(&client, &p->client, &why), &why);
    must(rq_sides_new(&p->log, &p->sides), NULL);
    const rq_peer_service_options incoming = {.secret = &p->secret,
                                              .names = &p->server,
                                              .name_count = 1,
                                              .sides = p->sides,
                                              .log = &p->log};
    must(rq_peer_service_new(&incoming, &p->incoming), NULL);
    const rq_peers_options peers = {
        .loop = loop, .secret = &p->secret, .log = &p->log, .timeout_ms = 5000};
    must(rq_peers_new(&peers, &p->peers), NULL);
    const rq_rpc_service services[] = {rq_client_service_methods(p->client),
                                       rq_peer_service_methods(p->incoming)};
    must(rq_loops_start(p->loops), NULL);
    serve(p, p->server->port, services, 2);
    p->role = (rq_peer_role){.peers = p->peers, .self = p->server, .active = active, .ctx = p};
}

static void take_orders(process *p)
{
    const rq_orders_options o = {.host = p->host, .report = rq_peers_report, .ctx = &p->role};
    must(rq_orders_new(&o, &p->orders), NULL);
    rq_sides_set_orders(p->sides, p->orders);
}

/* --- membership ------------------------------------------------------------------------------- */

static void changed(void *ctx)
{
    (void)ctx; /* whoever waits looks again soon */
}

static rq_member_state elected(process *p, char **argv)
{
    rq_error why = {0};
    rq_member *m;
    rq_member_state state = RQ_MEMBER_JOINING;
    const rq_member_options o = {.executor = p->env.executor,
                                 .quorum = argv[1],
                                 .root = argv[2],
                                 .session_ms = atoi(argv[6]),
                                 .server = *p->server,
                                 .master = *p->master,
                                 .cluster_id = CLUSTER_ID,
                                 .changed = changed};
    must(rq_member_open(&o, &m, &why), &why);
    p->member = m;
    while (state == RQ_MEMBER_JOINING) {
        rq_arena a = {0};
        rq_member_view v;
        if (rq_member_look(m, &a, &v) == RQ_OK && v.active[0] != '\0') state = v.state;
        rq_arena_clear(&a);
        (void)poll(NULL, 0, 20);
    }
    return state;
}

/* --- the master ------------------------------------------------------------------------------- */

static void on_zk(void *ctx, uint64_t session, rq__zk_event_kind kind)
{
    (void)ctx;
    (void)session;
    (void)kind;
}

static void write_meta_znode(process *p, char **argv)
{
    rq_arena a = {0};
    rq_error why = {0};
    rq_lane *lane;
    rq__zk *zk;
    rq_slice value;
    char path[256];
    snprintf(path, sizeof path, "%s/meta-region-server", argv[2]);
    must(p->env.executor->lane_new(p->env.executor, "zk", &lane), NULL);
    const rq__zk_options o = {.quorum = argv[1], .timeout_ms = 10000, .lane = lane, .event = on_zk};
    must(rq__zk_open(&o, &zk, &why), &why);
    must(rq__znode_meta(p->master->text, p->server, &a, &value), NULL);
    rq_err rc = RQ_E_IO;
    for (int i = 0; i < 500 && rc != RQ_OK; i++) {
        why = (rq_error){0};
        rc = rq__zk_create(zk, path, value, false, &why);
        (void)poll(NULL, 0, 20);
    }
    must(rc, &why);
    rq_arena_clear(&a);
}

static void open_master(process *p, char **argv)
{
    rq_error why = {0};
    must(rq_root_open(&p->env, &p->root, &why), &why);
    const rq_remote_options remote = {.env = &p->env,
                                      .master_ms = p->server->start_code,
                                      .send = rq_peers_send,
                                      .home = p->server,
                                      .ctx = &p->role};
    must(rq_remote_new(&remote, &p->remote), NULL);
    must(rq_remote_server_up(p->remote, p->server, &why), &why);
    rq_sides_set_master(p->sides, p->remote);
    take_orders(p);
    const rq_region_calls calls = rq_remote_calls(p->remote);
    const rq_catalog_options catalog = {
        .master = *p->master, .host = p->host, .config = p->config, .calls = &calls};
    must(rq_catalog_open(p->root, &catalog, &p->catalog, &why), &why);
    const rq_admin_services_options admin = {.env = &p->env,
                                             .engine = p->engine,
                                             .catalog = p->catalog,
                                             .config = p->config,
                                             .loops = p->loops,
                                             .client = p->client};
    must(rq_admin_services_new(&admin, &p->admin, &why), &why);
    const rq_rpc_service services[] = {rq_master_service_methods(p->admin)};
    serve(p, p->master->port, services, 1);
    write_meta_znode(p, argv);
}

static bool is_there(const rq_member_view *v, const char *name)
{
    for (size_t i = 0; i < v->server_count; i++)
        if (strcmp(v->servers[i], name) == 0) return true;
    return false;
}

static void give_up(process *p, const rq_server_name *s)
{
    rq_error why = {0};
    uint64_t quiet;
    must(rq_wal_fence(p->shared, s->text, p->server->text, &quiet, &why), &why);
    rq_remote_server_down(p->remote, s);
    rq_catalog_server_down(p->catalog, s);
    say("down", s->text);
}

/* Of servers that have reported, those that have left rs/. */
static void look_for_dead(process *p)
{
    rq_arena a = {0};
    rq_member_view v;
    const rq_server_name **list;
    size_t count, total;
    must(rq_remote_servers(p->remote, SIZE_MAX, &a, &list, &count, &total), NULL);
    bool knows = rq_member_look(p->member, &a, &v) == RQ_OK && v.connected;
    for (size_t i = 0; i < count; i++) {
        if (knows && !is_there(&v, list[i]->text) && strcmp(list[i]->text, p->server->text) != 0)
            give_up(p, list[i]);
        rq_server_name_unref(list[i]);
    }
    rq_arena_clear(&a);
}

int main(int argc, char **argv)
{
    process p = {.log = {.fd = 2, .level = RQ_LOG_WARN}};
    rq_error why = {0};
    if (argc != 7) return 2;
    p.env.log = &p.log;
    must(rq_secret_read(argv[5], &p.secret, &why), &why);
    open_storage(&p, argv[3], argv[4]);
    open_services(&p);
    bool is_master = elected(&p, argv) == RQ_MEMBER_ACTIVE;
    if (is_master) {
        open_master(&p, argv);
    } else {
        rq_host_name_itself(p.host);
        take_orders(&p);
        const rq_duty_options duty = {
            .host = p.host, .period_ms = 500, .report = rq_peers_report, .ctx = &p.role};
        must(rq_duty_begin(&duty, &p.duty), NULL);
        while (!rq_duty_is_taken(p.duty))
            (void)poll(NULL, 0, 20);
    }
    say(is_master ? "master" : "server", p.server->text);
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (poll(&in, 1, 100) == 0)
        if (is_master) look_for_dead(&p);
    _exit(0); /* as killed */
}
