/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of a cluster; see node.h.
 *
 * The keeper is a thread of its own. It wakes when the cluster's state in ZooKeeper has changed, and every 200 ms, and
 * checks this state and the tenure. When this process is elected, the keeper starts the opener, a thread that makes the
 * process the master (node_master.c). If another process is elected later, or the tenure has ended, or the master has
 * refused this server, this process is lost: the caller ends it at once, as after a crash, because its regions may
 * belong to other servers by then. These open the regions from its log.
 */
#include "server/node_priv.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/answers.h"
#include "net/check.h"
#include "server/security.h"
#include "server/server_priv.h"
#include "service/service.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALL_TIMEOUT_MS 5000 /* of calls between servers, at most */
#define DRAIN_TIMEOUT_MS 30000
#define LOOK_MS 200
#define PATIENCE_NS UINT64_C(2000000000) /* then a loop that runs no task hangs */
#define JOIN_LOOK_MS 20
#define SILENCE_MS_MIN 1500
#define ONE_WAY_MS_MIN (6 * RQ_DUTY_PERIOD_MS)

/* --- the end ------------------------------------------------------------------------------------- */

void rq__node_lost(rq_node *n, const rq_error *why)
{
    pthread_mutex_lock(&n->lock);
    bool first = !n->is_lost && !n->stopping;
    n->is_lost = true;
    pthread_mutex_unlock(&n->lock);
    if (first && n->o.lost != NULL) n->o.lost(n->o.lost_ctx, why);
}

static void region_failed(void *ctx, rq_region *r, const rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    (void)rq_fail(&own, RQ_E_SERVER_ABORTED,
                  "region %s failed: %s. This server ends; other servers open its regions",
                  rq_region_get_info(r)->encoded, why->message);
    rq__node_lost(ctx, &own);
}

static void refused(void *ctx, rq_err rc, const rq_error *why)
{
    const rq_peer_role *role = ctx;
    rq_error own = {.code = RQ_OK};
    (void)rq_fail(&own, rc, "the master rejects this server: %s",
                  why == NULL ? rq_err_text(rc) : why->message);
    rq__node_lost(role->ctx, &own);
}

/* --- storage, engine ------------------------------------------------------------------------------- */

static const rq_server_name *name_of(const rq_node *n, uint16_t port, int64_t code)
{
    const rq_server_name name = {.host = n->name, .port = port, .start_code = code};
    return rq_server_name_new(&name);
}

static void storage_lost(void *ctx, const rq_error *why)
{
    rq__node_lost(ctx, why);
}

static rq_err open_storage(rq_node *n, const rq_ports *ports, rq_error *why)
{
    unsigned mode;
    const rq_cluster_process self = {
        .host = n->name, .port = ports->rs, .lost = storage_lost, .lost_ctx = n};
    RQ_TRY(rq_server_folder_mode(n->o.config, &mode, why));
    RQ_TRY(rq__server_threads(n->o.config, &n->env.executor, &n->env.epoch, why));
    RQ_TRY(rq__node_open_pages(n, why));
    RQ_TRY(rq__cluster_store_open(&n->place, mode, n->env.executor, &self, &n->store, why));
    RQ_TRY(rq__node_open_evictions(n, why));
    n->env.vfs = n->store.files;
    n->env.log = n->o.log;
    if (n->store.files_path != NULL)
        RQ_TRY(rq_intake_new(rq_config_text(n->o.config, RQ_SET_BULK_FOLDERS), n->store.files,
                             n->store.files_path, &n->intake, why));
    n->server = name_of(n, ports->rs, n->store.start_code);
    n->master = name_of(n, ports->master, n->store.start_code);
    if (n->server == NULL || n->master == NULL) return rq_no_memory(why);
    return rq_tenure_begin(n->store.shared, n->server->text, &n->tenure, why);
}

static rq_err open_engine(rq_node *n, rq_error *why)
{
    const rq_engine_options o = {.config = n->o.config,
                                 .region_failed = region_failed,
                                 .context = n,
                                 .tenure = n->tenure,
                                 .server_name = n->server->text};
    RQ_TRY(rq_engine_open(&n->env, &o, &n->engine, why));
    if (rq_host_new(n->engine, n->server, n->o.config, &n->host) != RQ_OK) return rq_no_memory(why);
    rq_host_name_itself(n->host);
    return RQ_OK;
}

/* A lease that has run out is renewed, unless the tenure has ended: then the keeper ends the process. */
static bool may_answer(void *ctx)
{
    const rq_node *n = ctx;
    return rq_shared_now_ns(n->store.shared) < rq_tenure_valid_until(n->tenure);
}

/* --- services -------------------------------------------------------------------------------------- */

static rq_err open_loops(rq_node *n, rq_error *why)
{
    const rq_config *c = n->o.config;
    const rq_loops_options o = {.count = (unsigned)rq_config_int(c, RQ_SET_LOOPS),
                                .restless = rq_config_int(c, RQ_SET_LOOPS_RESTLESS) != 0,
                                .executor = n->env.executor,
                                .epoch = n->env.epoch,
                                .log = n->o.log};
    rq_err rc = rq_loops_new(&o, &n->loops);
    if (rc == RQ_E_UNSUPPORTED) RQ_TRY(rq_loops_check(why));
    if (rc != RQ_OK) return rq__server_loops_failed(rc, why);
    rq_loops_hold_answers(n->loops, may_answer, n);
    uint64_t share = rq_engine_memory_budget(c) / 8;
    uint64_t requests = (uint64_t)rq_config_int(c, RQ_SET_QUEUE_MAX);
    rc = rq_budget_new((size_t)(requests == 0 ? share : requests), &n->budget);
    if (rc == RQ_OK) rc = rq_budget_new((size_t)share, &n->answers);
    if (rc == RQ_OK) rc = rq_budget_new((size_t)share / 2, &n->unread);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    rq_budget_frees_on(n->budget, n->env.executor);
    return RQ_OK;
}

static uint16_t info_port_of(const rq_node *n)
{
    return rq__info_client_port(&n->info, &n->listen, n->name);
}

static rq_err open_ops(rq_node *n, rq_error *why)
{
    const rq_ops_options o = {.env = &n->env,
                              .engine = n->engine,
                              .config = n->o.config,
                              .policy = n->o.policy,
                              .row_bytes_max = 3 * rq_budget_max(n->answers),
                              .lane = rq_loop_lane(rq_loops_get(n->loops, 0)),
                              .cluster_id = n->store.cluster_id,
                              .intake = n->intake,
                              .data_path = n->store.files_path};
    return rq_ops_new(&o, &n->ops, why);
}

/* ClientService, and the settings that a reload changes. */
static rq_err open_client_service(rq_node *n, rq_error *why)
{
    const rq_client_service_options o = {.env = &n->env,
                                         .engine = n->engine,
                                         .host = n->host,
                                         .config = n->o.config,
                                         .ops = n->ops,
                                         .loops = n->loops};
    RQ_TRY(rq_client_service_new(&o, &n->client, why));
    n->reload.executor = n->env.executor;
    n->reload.engine = n->engine;
    n->reload.ops = n->ops;
    n->reload.client = n->client;
    n->reload.slow = n->slow;
    return RQ_OK;
}

static rq_err open_own_admin(rq_node *n, rq_error *why)
{
    const rq_admin_services_options o = {.env = &n->env,
                                         .engine = n->engine,
                                         .host = n->host,
                                         .config = n->o.config,
                                         .info_port = info_port_of(n),
                                         .reload = rq__node_reload_for_client,
                                         .reload_ctx = n,
                                         .slow = n->slow,
                                         .loops = n->loops,
                                         .client = n->client,
                                         .router = n->sink.router,
                                         .sink = &n->sink.counters,
                                         .stop = n->o.stop,
                                         .stop_ctx = n->o.stop_ctx};
    return rq_admin_services_new(&o, &n->own_admin, why);
}

/* The limits after which the master gives a server up. A server that is not heard at all has the time of a ZooKeeper
 * session. A server that answers but sends no reports has at least six periods of reports, because a pool's threads
 * send reports and may be busy for long, for example with a slow disk. */
rq_silence_limits rq__node_silence(const rq_node *n)
{
    uint64_t session = (uint64_t)rq_config_int(n->o.config, RQ_SET_ZK_SESSION);
    uint64_t silent = session > SILENCE_MS_MIN ? session : SILENCE_MS_MIN;
    uint64_t one_way = 2 * silent > ONE_WAY_MS_MIN ? 2 * silent : ONE_WAY_MS_MIN;
    return (rq_silence_limits){.silent_ns = silent * 1000000, .one_way_ns = one_way * 1000000};
}

/* `usual`, but so short that it fits `parts` times into the limit of silence. */
static unsigned within_silence_ms(const rq_node *n, unsigned usual, unsigned parts)
{
    uint64_t most = rq__node_silence(n).silent_ns / 1000000 / parts;
    return usual < most ? usual : (unsigned)most;
}

/* Calls between servers, both ways. */
static rq_err open_peers(rq_node *n, rq_error *why)
{
    rq_err rc = rq_sides_new(n->o.log, &n->sides);
    const rq_peer_service_options in = {.secret = &n->secret,
                                        .names = &n->server,
                                        .name_count = 1,
                                        .sides = n->sides,
                                        .apply = rq_admin_apply_entries,
                                        .apply_ctx = n->own_admin,
                                        .log = n->o.log};
    if (rc == RQ_OK) rc = rq_peer_service_new(&in, &n->incoming);
    const rq_peers_options out = {.loop = rq_loops_get(n->loops, 0),
                                  .secret = &n->secret,
                                  .log = n->o.log,
                                  .timeout_ms = within_silence_ms(n, CALL_TIMEOUT_MS, 2)};
    if (rc == RQ_OK) rc = rq_peers_new(&out, &n->peers);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

rq_err rq__node_listen(rq_node *n, uint16_t port, const char *name, const rq_rpc_service *services,
                       size_t count, rq_rpc_server **ret, rq_error *why)
{
    const rq_rpc_server_options o = {.loops = n->loops,
                                     .executor = n->env.executor,
                                     .budget = n->budget,
                                     .answers = n->answers,
                                     .unread = n->unread,
                                     .addresses = n->addresses,
                                     .address_count = n->listen.count,
                                     .port = port,
                                     .services = services,
                                     .service_count = count,
                                     .cluster_id = n->store.cluster_id,
                                     .request_bytes_max =
                                         (size_t)rq_config_int(n->o.config, RQ_SET_REQUEST_MAX),
                                     .log = n->o.log,
                                     .slow = n->slow,
                                     .name = name};
    return rq_rpc_server_open(&o, ret, why);
}

static rq_err open_services(rq_node *n, rq_error *why)
{
    RQ_TRY(open_loops(n, why));
    RQ_TRY(open_ops(n, why));
    RQ_TRY(rq__node_open_observers(n, why));
    RQ_TRY(rq__node_open_sink(n, why));
    RQ_TRY(open_client_service(n, why));
    RQ_TRY(open_own_admin(n, why));
    RQ_TRY(open_peers(n, why));
    rq_member_answers_init(&n->answers_of, n->store.cluster_id);
    const rq_rpc_service services[] = {
        rq_client_service_methods(n->client), rq_host_admin_service_methods(n->own_admin),
        rq_peer_service_methods(n->incoming), rq_meta_service_methods(&n->answers_of.answers)};
    RQ_TRY(rq__node_listen(n, n->server->port, "HRegionServer", services, RQ_ARRAY_LEN(services),
                           &n->rs_server, why));
    rq_metrics_serve(n->metrics, NULL, n->rs_server);
    rq_err rc = rq_loops_start(n->loops);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start event loops: %s", rq_err_text(rc));
    n->loops_run = true;
    return RQ_OK;
}

/* --- the roles ------------------------------------------------------------------------------------- */

const rq_server_name *rq__node_active(const rq_member_view *v)
{
    rq_arena a = {0};
    rq_server_name name;
    const char *text = rq_member_active_server(v);
    bool known = text != NULL && rq_member_name_of(text, &a, &name);
    const rq_server_name *ret = known ? rq_server_name_new(&name) : NULL;
    rq_arena_clear(&a);
    return ret;
}

/* The server in the active master's process takes the calls to the master. */
static const rq_server_name *active(void *ctx)
{
    rq_node *n = ctx;
    rq_arena a = {0};
    rq_member_view v;
    rq_member *m = atomic_load(&n->answers_of.member);
    bool known = m != NULL && rq_member_look(m, &a, &v) == RQ_OK;
    const rq_server_name *ret = known ? rq__node_active(&v) : NULL;
    rq_arena_clear(&a);
    return ret;
}

/* Whether all loops run. Reports and answers to the master claim that this server serves clients, so they are sent only
 * while this holds. A loop that hangs is noticed within a quarter of the limit of silence. */
static bool serves(void *ctx)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    unsigned patience_ms = within_silence_ms(n, PATIENCE_NS / 1000000, 4);
    return rq_loops_pulse(n->loops, (uint64_t)patience_ms * 1000000);
}

static void quiet_in(void *ctx, const char *server, uint64_t ns)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    rq_tenure_quiet_in(n->store.shared, server, ns);
}

static uint64_t lease_expired_ms(void *ctx)
{
    const rq_peer_role *role = ctx;
    return rq__node_lease_expired_ms(role->ctx);
}

rq_err rq__node_take_orders(rq_node *n, rq_error *why)
{
    const rq_orders_options o = {.host = n->host,
                                 .report = rq_peers_report,
                                 .serves = serves,
                                 .quiet_in = quiet_in,
                                 .ctx = &n->role};
    if (rq_orders_new(&o, &n->orders) != RQ_OK) return rq_no_memory(why);
    rq_sides_set_orders(n->sides, n->orders);
    return RQ_OK;
}

void rq__node_refuse_orders(rq_node *n)
{
    if (n->orders == NULL) return;
    rq_sides_set_orders(n->sides, NULL);
    rq_orders_stop(n->orders);
    rq_orders_free(n->orders);
    n->orders = NULL;
}

static rq_err report_for_duty(rq_node *n, rq_error *why)
{
    const rq_duty_options o = {.host = n->host,
                               .info_port = info_port_of(n),
                               .period_ms = within_silence_ms(n, RQ_DUTY_PERIOD_MS, 3),
                               .report = rq_peers_report,
                               .sink = rq__node_sink_load,
                               .sources = rq__node_source_loads,
                               .serves = serves,
                               .lease_expired_ms = lease_expired_ms,
                               .fatal = refused,
                               .ctx = &n->role};
    return rq_duty_begin(&o, &n->duty) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* --- membership ------------------------------------------------------------------------------------ */

void rq__node_stir(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->stirred = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
}

static void member_changed(void *ctx)
{
    rq__node_stir(ctx);
}

/* Waits until something has changed, or for `ms`. False: the keeper is to end. */
static bool wait_for_change(rq_node *n, int ms)
{
    uint64_t end = rq_clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&n->lock);
    int rc = 0;
    while (!n->stirred && !n->stopping && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&n->wake, &n->lock, &until);
    n->stirred = false;
    bool goes_on = !n->stopping;
    pthread_mutex_unlock(&n->lock);
    return goes_on;
}

static rq_err check_joined(const rq_node *n, const rq_member_view *v, bool in_time, rq_error *why)
{
    if (v->state == RQ_MEMBER_REFUSED) return rq_fail(why, RQ_E_CONFIG, "%s", v->trouble);
    if (v->state != RQ_MEMBER_JOINING) return RQ_OK;
    if (in_time) return RQ_E_AGAIN;
    return rq_fail(why, RQ_E_TIMEOUT,
                   "no ZooKeeper session at %s within %lld ms (zookeeper.session.timeout)%s%s",
                   n->place.quorum, (long long)rq_config_int(n->o.config, RQ_SET_ZK_SESSION),
                   v->trouble[0] == '\0' ? "" : ": ", v->trouble);
}

static rq_err wait_until_joined(rq_node *n, rq_error *why)
{
    rq_executor *ex = n->env.executor;
    uint64_t limit = (uint64_t)rq_config_int(n->o.config, RQ_SET_ZK_SESSION) * 1000000;
    uint64_t begin = ex->now_ns(ex);
    rq_err rc = RQ_E_AGAIN;
    while (rc == RQ_E_AGAIN) {
        rq_arena a = {0};
        rq_member_view v;
        rc = rq_member_look(atomic_load(&n->answers_of.member), &a, &v);
        if (rc == RQ_OK) rc = check_joined(n, &v, ex->now_ns(ex) - begin < limit, why);
        rq_arena_clear(&a);
        if (rc == RQ_E_AGAIN) (void)wait_for_change(n, JOIN_LOOK_MS);
    }
    return rc;
}

static rq_err join_cluster(rq_node *n, rq_error *why)
{
    rq_member *m;
    const rq_member_options o = {.executor = n->env.executor,
                                 .quorum = n->place.quorum,
                                 .root = n->place.root,
                                 .session_ms = (int)rq_config_int(n->o.config, RQ_SET_ZK_SESSION),
                                 .server = *n->server,
                                 .master = *n->master,
                                 .server_info_port = info_port_of(n),
                                 .master_info_port = info_port_of(n),
                                 .cluster_id = n->store.cluster_id,
                                 .changed = member_changed,
                                 .ctx = n};
    RQ_TRY(rq_member_open(&o, &m, why));
    atomic_store(&n->answers_of.member, m);
    return wait_until_joined(n, why);
}

/* --- the keeper ------------------------------------------------------------------------------------ */

/* If a loop of this server hangs, the master takes the regions away. In case no master does (perhaps its own loops
 * hang, too), the process ends itself after a longer time. */
static rq_err check_loops(const rq_node *n, rq_error *why)
{
    uint64_t limit = rq__node_silence(n).one_way_ns;
    if (rq_loops_pulse(n->loops, limit)) return RQ_OK;
    return rq_fail(why, RQ_E_SERVER_ABORTED, "an event loop has not run for %llu s",
                   (unsigned long long)(limit / 1000000000));
}

/* A new master waits for the reports of all servers. */
static void report_to_another(rq_node *n, const rq_member_view *v)
{
    if (strcmp(v->active, n->reported_to) == 0) return;
    snprintf(n->reported_to, sizeof n->reported_to, "%s", v->active);
    rq_duty_now(n->duty);
}

static rq_err follow(rq_node *n, const rq_member_view *v, rq_error *why)
{
    if (v->state == RQ_MEMBER_REFUSED) return rq_fail(why, RQ_E_CONFIG, "%s", v->trouble);
    if (rq_tenure_valid_until(n->tenure) == 0)
        return rq_fail(why, RQ_E_SERVER_ABORTED,
                       "%s may no longer write to the storage: another server has fenced it",
                       n->server->text);
    if (rq__node_check_lease(n)) rq_duty_now(n->duty);
    RQ_TRY(check_loops(n, why));
    if (rq__node_ends_with_cluster(n, v)) return RQ_OK;
    if (v->state == RQ_MEMBER_STANDBY && n->opener_runs)
        return rq_fail(why, RQ_E_SERVER_ABORTED, "%s is no longer the active master, %s is",
                       n->master->text, v->active);
    if (v->state == RQ_MEMBER_STANDBY) n->was_standby = true;
    if (v->state == RQ_MEMBER_ACTIVE && !n->opener_runs) return rq__node_become_master(n, why);
    report_to_another(n, v);
    rq__node_watch_master(n, v);
    rq__node_take_catalog(n);
    return rq__node_remote(n) == NULL ? RQ_OK : rq__node_look_after(n, v, why);
}

static bool look_once(rq_node *n)
{
    rq_arena a = {0};
    rq_error why = {.code = RQ_OK};
    rq_member_view v;
    rq_err rc = rq_member_look(atomic_load(&n->answers_of.member), &a, &v);
    if (rc == RQ_OK) rc = follow(n, &v, &why);
    rq_arena_clear(&a);
    if (rc == RQ_OK || rc == RQ_E_NO_MEMORY) return true; /* it is looked at again */
    if (why.code == RQ_OK) (void)rq_fail(&why, rc, "%s", rq_err_text(rc));
    rq__node_lost(n, &why);
    return false;
}

static void *keep(void *ctx)
{
    rq_node *n = ctx;
    while (look_once(n) && wait_for_change(n, rq__node_lease_look_ms(n, LOOK_MS)))
        ;
    return NULL;
}

static rq_err start_keeper(rq_node *n, rq_error *why)
{
    int rc = pthread_create(&n->keeper, NULL, keep, n);
    if (rc != 0) return rq_fail(why, RQ_E_IO, "cannot start a thread: %s", strerror(rc));
    n->keeper_runs = true;
    return RQ_OK;
}

static void stop_keeper(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->stopping = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    if (n->keeper_runs) pthread_join(n->keeper, NULL);
}

/* --- opening --------------------------------------------------------------------------------------- */

static rq_err hold_ports(rq_node *n, rq_ports *p, rq_error *why)
{
    *p = (rq_ports){.without_zk = true,
                    .master = (uint16_t)rq_config_int(n->o.config, RQ_SET_MASTER_PORT),
                    .rs = (uint16_t)rq_config_int(n->o.config, RQ_SET_RS_PORT)};
    RQ_TRY(rq__listen_resolve(n->o.listen, &n->listen, why));
    for (unsigned i = 0; i < n->listen.count; i++)
        n->addresses[i] = n->listen.address[i];
    RQ_TRY(rq__listen_hold(&n->listen, p, &n->held, why));
    rq__listen_host(&n->listen, n->o.advertise, n->name);
    RQ_TRY(rq__info_place_of(n->o.config, &n->info, why));
    n->info.may_move |= !n->info.is_explicit; /* a machine may have several servers */
    return rq__info_bind(&n->info, p, n->o.log, why);
}

static rq_err make_ready_text(rq_node *n, const rq_ports *p, rq_error *why)
{
    n->ready = rq_arena_printf(
        &n->arena, "cluster %s%s, master %s, regionserver %s%s%s, store %s", n->place.quorum,
        n->place.root, RQ_HOST_PORT(n->name, p->master), RQ_HOST_PORT(n->name, p->rs),
        n->info.on ? ", http " : "",
        n->info.on ? RQ_HOST_PORT(info_port_of(n) != 0 ? n->name : n->info.host, n->info.port) : "",
        n->place.store);
    return n->ready == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err open_all(rq_node *n, rq_error *why)
{
    rq_ports p;
    const char *root = rq_config_text(n->o.config, RQ_SET_ZNODE_PARENT);
    RQ_TRY(rq__security_check(n->o.config, n->o.log, why));
    RQ_TRY(rq__cluster_parse(n->o.cluster, root, &n->arena, &n->place, why));
    RQ_TRY(rq_secret_read(n->place.secret, &n->secret, why));
    RQ_TRY(hold_ports(n, &p, why));
    RQ_TRY(make_ready_text(n, &p, why));
    RQ_TRY(open_storage(n, &p, why));
    RQ_TRY(open_engine(n, why));
    RQ_TRY(open_services(n, why));
    n->role = (rq_peer_role){.peers = n->peers, .self = n->server, .active = active, .ctx = n};
    RQ_TRY(rq__node_take_orders(n, why));
    RQ_TRY(join_cluster(n, why));
    RQ_TRY(rq__node_open_source(n, why));
    RQ_TRY(report_for_duty(n, why));
    RQ_TRY(rq__node_watch_masters(n, why));
    RQ_TRY(start_keeper(n, why));
    rq__node_serve_pages(n);
    return RQ_OK;
}

static void init_wake(rq_node *n)
{
    rq_clock_cond_init(&n->wake);
    rq_clock_cond_init(&n->caretaker.wake);
    pthread_mutex_init(&n->lock, NULL);
}

static void warn_unserved(const rq_node *n)
{
    if (rq_config_int(n->o.config, RQ_SET_QUOTA) != 0)
        rq_log_warn(n->o.log, "server",
                    "hbase.quota.enabled has no effect: a cluster does not support quotas yet");
}

rq_err rq__node_can_open(rq_error *why)
{
    return rq_member_can_open(why);
}

rq_err rq_node_open(const rq_server_options *o, rq_node **ret, rq_error *why)
{
    rq_node *n = calloc(1, sizeof *n);
    if (n == NULL) return rq_no_memory(why);
    n->o = *o;
    n->info.fd = -1;
    n->reload =
        (rq_reload){.log = o->log, .config = o->config, .reread = o->reread, .ctx = o->reread_ctx};
    pthread_mutex_init(&n->reload.lock, NULL);
    init_wake(n);
    rq__log_configure(o->log, o->config);
    rq_err rc = open_all(n, why);
    if (rc != RQ_OK) {
        (void)rq_node_close(n, NULL);
        return rc;
    }
    for (unsigned i = 0; i < n->listen.count; i++)
        rq__security_warn_listening(o->log, n->listen.address[i]);
    warn_unserved(n);
    rq_log_info(o->log, "cluster", "server %s has joined cluster %s", n->server->text,
                n->store.cluster_id);
    *ret = n;
    return RQ_OK;
}

rq_err rq_node_reload(rq_node *n, rq_error *why)
{
    return rq__reload_run(&n->reload, why);
}

rq_err rq__node_reload_for_client(void *ctx, rq_error *why)
{
    return rq_node_reload(ctx, why);
}

const char *rq_node_ready_text(const rq_node *n)
{
    return n->ready;
}

bool rq_node_pulse(rq_node *n)
{
    return rq_loops_pulse(n->loops, PATIENCE_NS);
}

/* --- closing --------------------------------------------------------------------------------------- */

static void stop_serving(rq_node *n)
{
    rq__node_leaves(n);
    rq_duty_leave(n->duty);
    rq_duty_end(n->duty);
    rq__node_refuse_orders(n);
    rq__node_stop_master(n);
    rq__node_stop_sink(n);
    if (n->loops_run) {
        if (n->master_server != NULL) rq_rpc_server_drain(n->master_server, 0);
        if (n->rs_server != NULL) rq_rpc_server_drain(n->rs_server, DRAIN_TIMEOUT_MS);
        if (n->master_server != NULL) rq_rpc_server_drain(n->master_server, DRAIN_TIMEOUT_MS);
        rq_peers_stop(n->peers);
        rq__node_disconnect_sink(n);
    }
    if (n->rs_server != NULL) rq_rpc_server_close(n->rs_server);
    if (n->master_server != NULL) rq_rpc_server_close(n->master_server);
    if (n->loops != NULL) rq_loops_stop(n->loops);
    rq_metrics_free(n->metrics);
    rq_master_watch_free(n->watch);
    rq_peers_free(n->peers);
    rq__node_free_sink(n);
    rq_admin_services_free(n->admin);
    rq_admin_services_free(n->own_admin);
    rq_client_service_free(n->client);
    rq_peer_service_free(n->incoming);
    rq_slow_log_free(n->slow);
    rq_ops_free(n->ops);
}

/* Regions first, then the log: whoever opens a region finds it closed in order. */
static rq_err close_data(rq_node *n, rq_error *why)
{
    bool interrupted = n->opener_runs && n->catalog == NULL;
    rq_err first = rq__node_close_master(n, why);
    if (n->host != NULL) {
        rq_err rc = rq_host_close_rest(n->host, false, first == RQ_OK ? why : NULL);
        if (first == RQ_OK) first = rc;
    }
    rq_host_free(n->host);
    if (n->engine != NULL) {
        /* A master whose start was interrupted has not flushed what it wrote. */
        bool clean = first == RQ_OK && !interrupted;
        rq_err rc = rq_engine_close(n->engine, clean, first == RQ_OK ? why : NULL);
        if (first == RQ_OK) first = rc;
    }
    return first;
}

static void close_storage(rq_node *n)
{
    rq_tenure_free(n->tenure);
    rq_intake_free(n->intake);
    rq__node_close_evictions(n);
    rq__cluster_store_close(&n->store);
    if (n->loops != NULL) rq_loops_free(n->loops);
    if (n->budget != NULL) rq_budget_free(n->budget);
    if (n->answers != NULL) rq_budget_free(n->answers);
    if (n->unread != NULL) rq_budget_free(n->unread);
    rq__node_close_pages(n);
    rq__listen_release(&n->held);
    rq_epoch_free(n->env.epoch);
    if (n->env.executor != NULL) rq_thread_executor_free(n->env.executor);
}

rq_err rq_node_close(rq_node *n, rq_error *why)
{
    if (n == NULL) return RQ_OK;
    stop_keeper(n);
    rq__node_stop_caretaker(n);
    rq__node_stop_opener(n);
    rq__node_withdraw_pages(n);
    stop_serving(n);
    rq__node_close_source(n);
    rq_err rc = close_data(n, why);
    rq__node_leave_log(n);
    rq_member_close(atomic_load(&n->answers_of.member));
    rq__node_has_left(n);
    rq_sides_free(n->sides);
    close_storage(n);
    rq_server_name_unref(n->server);
    rq_server_name_unref(n->master);
    explicit_bzero(&n->secret, sizeof n->secret);
    rq__revoked_clear(&n->revoked);
    rq_arena_clear(&n->arena);
    pthread_cond_destroy(&n->caretaker.wake);
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_mutex_destroy(&n->reload.lock);
    free(n);
    return rc;
}
