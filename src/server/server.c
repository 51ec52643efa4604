/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles a server: creates the rooms' objects in this order, connects them, and closes them in
 * reverse order.
 *
 *   settings ─► ports checked ─► folder, root (lock, versions) ─► executor, epoch ─► engine (log)
 *   ─► catalog ─► loops ─► services ─► RPC listeners ─► registry ─► loops run
 *
 * Ports are checked before the folder is touched, so that "port in use" changes nothing on disk.
 * The catalog needs the ports that clients are told before the server listens: the ports
 * are bound first, which keeps them from other processes while the data is opened, and served last.
 */
#include "server/server.h"

#include "backup/control.h"
#include "base/address.h"
#include "base/log.h"
#include "base/machine.h"
#include "catalog/catalog.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "net/check.h"
#include "ops/ops.h"
#include "quota/quota.h"
#include "registry/registry.h"
#include "replication/replication.h"
#include "server/events.h"
#include "server/info.h"
#include "server/listen.h"
#include "server/relief.h"
#include "server/reload.h"
#include "server/report.h"
#include "server/security.h"
#include "server/server_priv.h"
#include "service/admin.h"
#include "service/service.h"
#include "service/user_metrics.h"
#include "vfs/intake.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READERS_MIN 4
#define READERS_MAX 64

#define DRAIN_TIMEOUT_MS 30000
#define ROW_BUDGETS 3 /* a row in a response may take this many budgets of responses */

struct rq_server {
    rq_log *log;       /* the caller's */
    rq_config *config; /* likewise */
    rq_events events;
    rq_listen listen;
    rq_listen_held held;                  /* until the server listens */
    const char *addresses[RQ_LISTEN_MAX]; /* of `listen` */
    rq_vfs *vfs;
    char *data_path; /* absolute, no symbolic links */
    rq_intake *intake;
    rq_intake *replicated;
    rq_executor *executor;
    rq_epoch *epoch;
    rq_env env;
    rq_root *root;
    rq_engine *engine;
    rq_host *host_of_regions;
    rq_catalog *catalog;
    rq_catalog_answers catalog_answers; /* by ClientMetaService, from the catalog */
    _Atomic bool has_catalog;           /* for compactions that begin before the catalog is open */
    rq_loops *loops;
    rq_budget *budget;
    rq_budget *answers;
    rq_budget *unread;
    rq_relief relief;
    rq_transform_kind transform; /* `make` NULL: none */
    rq_ops *ops;
    rq_metrics *metrics;
    char zk_quorum[RQ_HOST_PORT_MAX];
    rq_reload reload;
    rq_client_service *client;
    rq_replication *replication;
    rq_quotas *quotas;
    rq_admin_services *admin;
    rq_rpc_server *master;
    rq_rpc_server *rs;
    rq_registry *registry;
    rq_slow_log *slow;
    rq_user_metrics *users; /* NULL: requests are not counted by user */
    rq_info_place info;
    rq_http *http;
    rq_control *control; /* NULL: the file system has no sockets */
    bool folder_is_new;  /* it was empty or missing */
    bool loops_running;
    char host[RQ_HOST_SIZE]; /* sent to clients */
    uint16_t zk_port, rs_port;
    char address[4 * RQ_HOST_PORT_MAX + 4096 + 64];
};

/* --- opening ---------------------------------------------------------------------------------- */

rq_err rq_server_folder_mode(const rq_config *config, unsigned *ret, rq_error *why)
{
    const char *text = rq_config_text(config, RQ_SET_DATA_MODE);
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (end == text || *end != '\0' || mode > 0777 || (mode & 0700) != 0700)
        return rq_fail(why, RQ_E_CONFIG,
                       "setting rorqual.data.mode: '%s' is not a mode from 0700 to 0777 that gives "
                       "the owner all rights",
                       text);
    *ret = (unsigned)mode;
    return RQ_OK;
}

rq_err rq__server_make_folder(const char *path, unsigned mode, rq_error *why)
{
    struct stat st;
    if (mkdir(path, mode) == 0) return RQ_OK;
    if (errno != EEXIST)
        return rq_fail(why, RQ_E_IO, "cannot create data folder %s: %s", path, strerror(errno));
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return rq_fail(why, RQ_E_IO, "data folder %s: not a folder", path);
    if (access(path, R_OK | W_OK | X_OK) != 0)
        return rq_fail(why, RQ_E_PERMISSION, "data folder %s: %s", path, strerror(errno));
    return RQ_OK;
}

/* As many reads as a device is given at a time, but each takes some memory. */
static unsigned readers_of(const rq_config *c)
{
    uint64_t megabytes = rq_engine_memory_budget(c) >> 20;
    return megabytes < READERS_MIN ? READERS_MIN
                                   : (unsigned)(megabytes < READERS_MAX ? megabytes : READERS_MAX);
}

rq_err rq__server_threads(const rq_config *config, rq_executor **ret, rq_epoch **ret_epoch,
                          rq_error *why)
{
    unsigned compactions = (unsigned)rq_config_int(config, RQ_SET_COMPACTION_THREADS);
    unsigned large = (unsigned)rq_config_int(config, RQ_SET_COMPACTION_THREADS_LARGE);
    const unsigned threads[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = readers_of(config),
        [RQ_POOL_FLUSH] = 2,
        [RQ_POOL_COMPACT] = compactions == 0 ? 1 : compactions,
        [RQ_POOL_COMPACT_LARGE] = large == 0 ? 1 : large,
        [RQ_POOL_CODEC] = 1,
        [RQ_POOL_CALL] = 24,
        [RQ_POOL_WORK] = 4,
    };
    if (rq_thread_executor_new(threads, ret) != RQ_OK || rq_epoch_new(ret_epoch) != RQ_OK)
        return rq_no_memory(why);
    return RQ_OK;
}

/* Runs before the folder is opened, so that health checks are answered while recovery reads it. */
static rq_err open_pages(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_http_options http = {.fd = s->info.fd,
                            .executor = s->executor,
                            .log = s->log,
                            .config = o->config,
                            .version = RQ_VERSION};
    if (!s->info.on) return RQ_OK;
    s->info.fd = -1;
    return rq_http_open(&http, &s->http, why);
}

static rq_err open_environment(rq_server *s, const rq_server_options *o, rq_error *why)
{
    unsigned mode;
    RQ_TRY(rq_server_folder_mode(o->config, &mode, why));
    RQ_TRY(rq__server_make_folder(o->data, mode, why));
    RQ_TRY(rq_vfs_posix_new(o->data, &s->vfs, why));
    rq_vfs_posix_set_mode(s->vfs, mode);
    rq_vfs_posix_on_slow(s->vfs, rq__events_slow, &s->events);
    rq_vfs_posix_set_slow(s->vfs, rq__slow_ns_of(o->config));
    s->reload.vfs = s->vfs;
    s->reload.executor = s->executor;
    s->data_path = realpath(o->data, NULL);
    if (s->data_path == NULL)
        return rq_fail(why, RQ_E_IO, "data folder %s: %s", o->data, strerror(errno));
    RQ_TRY(rq_intake_new(rq_config_text(o->config, RQ_SET_BULK_FOLDERS), s->vfs, s->data_path,
                         &s->intake, why));
    RQ_TRY(rq_intake_new_replicated(rq_config_text(o->config, RQ_SET_REPLICATION_BULK_FOLDERS),
                                    s->vfs, s->data_path, &s->replicated, why));
    s->env = (rq_env){.vfs = s->vfs, .executor = s->executor, .epoch = s->epoch, .log = s->log};
    RQ_TRY(rq_root_open(&s->env, &s->root, why));
    s->folder_is_new = rq_root_is_new(s->root);
    return RQ_OK;
}

static void region_failed(void *context, rq_region *r, const rq_error *why)
{
    rq_server *s = context;
    rq_log_error(s->log, "region", "region %s: %s", rq_region_get_info(r)->encoded, why->message);
    if (s->catalog != NULL) rq_catalog_region_failed(s->catalog, r, why);
}

static void region_grown(void *context, rq_region *r)
{
    rq_server *s = context;
    if (atomic_load(&s->has_catalog)) rq_catalog_region_grown(s->catalog, r);
}

static rq_err open_data(rq_server *s, const rq_server_options *o, const rq_ports *p, rq_error *why)
{
    rq_engine_options engine = {
        .config = o->config,
        .region_failed = region_failed,
        .region_grown = region_grown,
        .context = s,
    };
    int64_t now = s->executor->now_ms(s->executor);
    const rq_server_name name = {.host = s->host, .port = p->rs, .start_code = now};
    rq_catalog_options catalog = {
        .master = {.host = s->host, .port = p->master, .start_code = now},
        .info_port = rq__info_client_port(&s->info, &s->listen, s->host),
        .config = o->config,
        .procedure_bytes_max = (size_t)rq_engine_memory_budget(o->config) / 16,
    };
    RQ_TRY(rq_engine_open(&s->env, &engine, &s->engine, why));
    if (rq_host_new(s->engine, &name, o->config, &s->host_of_regions) != RQ_OK)
        return rq_no_memory(why);
    catalog.host = s->host_of_regions;
    RQ_TRY(rq_catalog_open(s->root, &catalog, &s->catalog, why));
    atomic_store(&s->has_catalog, true);
    return RQ_OK;
}

static rq_err reload_for_client(void *ctx, rq_error *why)
{
    return rq_server_reload(ctx, why);
}

/* Opens what observes the other rooms: metrics, the slow log. */
static rq_err open_observers(rq_server *s, const rq_server_options *o, rq_error *why)
{
    const rq_metrics_sources metrics = {.env = &s->env,
                                        .engine = s->engine,
                                        .catalog = s->catalog,
                                        .ops = s->ops,
                                        .loops = s->loops,
                                        .requests = s->budget,
                                        .answers = s->answers,
                                        .unread = s->unread,
                                        .replication = s->replication,
                                        .memory_budget = rq_engine_memory_budget(s->config),
                                        .zk_quorum = s->zk_quorum,
                                        .lane = rq_loop_lane(rq_loops_get(s->loops, 0))};
    rq_slow_limits limits = rq_slow_limits_of(o->config);
    unsigned places = (unsigned)rq_config_int(o->config, RQ_SET_SLOW_PLACES);
    rq_err rc = rq_slow_log_new(places, &limits, &s->slow);
    if (rc == RQ_OK) rc = rq_metrics_new(&metrics, &s->metrics);
    s->reload.slow = s->slow;
    return rc == RQ_OK ? rc : rq_fail(why, rc, "cannot create metrics: %s", rq_err_text(rc));
}

static rq_err open_user_metrics(rq_server *s, const rq_server_options *o, rq_error *why)
{
    if (rq_config_int(o->config, RQ_SET_USER_METRICS) == 0) return RQ_OK;
    s->users = rq_user_metrics_new(o->policy);
    return s->users != NULL ? RQ_OK : rq_no_memory(why);
}

/* The usual reason is that store files have used up the descriptors. */
rq_err rq__server_loops_failed(rq_err rc, rq_error *why)
{
    rq_process_usage u;
    rq_machine_process(&u);
    return rq_fail(why, rc,
                   "cannot create event loops: %s; the limit of open files is %llu (ulimit -n, "
                   "LimitNOFILE of a service), and each store file needs one",
                   rq_err_text(rc), (unsigned long long)u.open_files_max);
}

static rq_err open_loops(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_loops_options loops = {.count = (unsigned)rq_config_int(o->config, RQ_SET_LOOPS),
                              .restless = rq_config_int(o->config, RQ_SET_LOOPS_RESTLESS) != 0,
                              .executor = s->executor,
                              .epoch = s->epoch,
                              .log = s->log};
    rq_err rc = rq_loops_new(&loops, &s->loops);
    if (rc == RQ_E_UNSUPPORTED) RQ_TRY(rq_loops_check(why));
    return rc == RQ_OK ? RQ_OK : rq__server_loops_failed(rc, why);
}

/* The memory of requests, of responses being made, and of unread ones. */
static rq_err open_budgets(rq_server *s, const rq_server_options *o, rq_error *why)
{
    uint64_t requests = (uint64_t)rq_config_int(o->config, RQ_SET_QUEUE_MAX);
    if (requests == 0) requests = rq_engine_memory_budget(o->config) / 8;
    size_t answers = (size_t)rq_engine_memory_budget(o->config) / 8;
    rq_err rc = rq_budget_new((size_t)requests, &s->budget);
    if (rc == RQ_OK) rc = rq_budget_new(answers, &s->answers);
    if (rc == RQ_OK) rc = rq_budget_new(answers / 2, &s->unread);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    rq_budget_frees_on(s->budget, s->executor);
    if (o->transform != NULL) s->transform = *o->transform;
    if (s->transform.budget == NULL) s->transform.budget = s->budget;
    if (o->trim != NULL) {
        rq__relief_init(&s->relief, s->executor, o->trim);
        rq_budget_on_relief(s->budget, rq__relief_begin, &s->relief);
        rq_budget_on_relief(s->answers, rq__relief_begin, &s->relief);
        rq_budget_on_relief(s->unread, rq__relief_begin, &s->relief);
    }
    return RQ_OK;
}

static const rq_gate_policy *policy_of(const rq_server *s, const rq_server_options *o)
{
    return s->users != NULL ? rq_user_metrics_policy(s->users) : o->policy;
}

static rq_err open_ops(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_ops_options ops = {.env = &s->env,
                          .engine = s->engine,
                          .catalog = s->catalog,
                          .config = o->config,
                          .policy = policy_of(s, o),
                          .row_bytes_max = ROW_BUDGETS * rq_budget_max(s->answers),
                          .lane = rq_loop_lane(rq_loops_get(s->loops, 0)),
                          .intake = s->intake,
                          .replicated = s->replicated,
                          .data_path = s->data_path};
    RQ_TRY(rq_ops_new(&ops, &s->ops, why));
    rq_replication_options replication = {.env = &s->env,
                                          .engine = s->engine,
                                          .catalog = s->catalog,
                                          .config = o->config,
                                          .data_path = s->data_path};
    return rq_replication_new(&replication, &s->replication, why);
}

/* ClientService and quotas, and the settings that a reload changes. */
static rq_err open_client_service(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_client_service_options client = {.env = &s->env,
                                        .engine = s->engine,
                                        .catalog = s->catalog,
                                        .config = o->config,
                                        .ops = s->ops,
                                        .loops = s->loops};
    RQ_TRY(rq_client_service_new(&client, &s->client, why));
    s->reload.engine = s->engine;
    s->reload.ops = s->ops;
    s->reload.client = s->client;
    rq_quotas_options quotas = {.env = &s->env,
                                .catalog = s->catalog,
                                .ops = s->ops,
                                .config = o->config,
                                .lane = rq_loop_lane(rq_loops_get(s->loops, 0)),
                                .next = policy_of(s, o)};
    RQ_TRY(rq_quotas_open(&quotas, &s->quotas, why));
    s->reload.quotas = s->quotas;
    return RQ_OK;
}

static rq_err open_admin_services(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_admin_services_options admin = {.env = &s->env,
                                       .engine = s->engine,
                                       .catalog = s->catalog,
                                       .config = o->config,
                                       .metrics = s->metrics,
                                       .reload = reload_for_client,
                                       .reload_ctx = s,
                                       .slow = s->slow,
                                       .users = s->users,
                                       .loops = s->loops,
                                       .client = s->client,
                                       .replication = s->replication,
                                       .quotas = s->quotas,
                                       .stop = o->stop,
                                       .stop_ctx = o->stop_ctx};
    return rq_admin_services_new(&admin, &s->admin, why);
}

static rq_err open_services(rq_server *s, const rq_server_options *o, rq_error *why)
{
    RQ_TRY(open_loops(s, o, why));
    RQ_TRY(open_budgets(s, o, why));
    RQ_TRY(open_user_metrics(s, o, why));
    RQ_TRY(open_ops(s, o, why));
    RQ_TRY(open_observers(s, o, why));
    RQ_TRY(open_client_service(s, o, why));
    return open_admin_services(s, o, why);
}

static const rq_transform_kind *transform_of(const rq_server *s)
{
    return s->transform.make != NULL ? &s->transform : NULL;
}

static rq_err listen_rpc(rq_server *s, uint16_t port, bool master, rq_rpc_server **ret,
                         rq_error *why)
{
    rq_rpc_service services[6];
    size_t count = 0;
    services[count++] = rq_meta_service_methods(&s->catalog_answers.answers);
    if (master) {
        services[count++] = rq_master_service_methods(s->admin);
        services[count++] = rq_master_admin_service_methods(s->admin);
        services[count++] = rq_hbck_service_methods(s->admin);
        services[count++] = rq_lock_service_methods(s->admin);
        services[count++] = rq_status_service_methods(s->admin);
    } else {
        services[count++] = rq_client_service_methods(s->client);
        services[count++] = rq_admin_service_methods(s->admin);
        services[count++] = rq_bootstrap_service_methods(s->catalog);
    }
    rq_rpc_server_options options = {
        .loops = s->loops,
        .executor = s->executor,
        .budget = s->budget,
        .answers = s->answers,
        .unread = s->unread,
        .addresses = s->addresses,
        .address_count = s->listen.count,
        .port = port,
        .services = services,
        .service_count = count,
        .cluster_id = rq_root_cluster_id(s->root),
        .request_bytes_max = (size_t)rq_config_int(s->config, RQ_SET_REQUEST_MAX),
        .log = s->log,
        .slow = s->slow,
        .name = master ? "HMaster" : "HRegionServer",
        .transform = transform_of(s),
    };
    return rq_rpc_server_open(&options, ret, why);
}

static rq_err open_listeners(rq_server *s, const rq_ports *p, rq_error *why)
{
    rq_registry_options registry = {.env = &s->env,
                                    .loops = s->loops,
                                    .catalog = s->catalog,
                                    .addresses = s->addresses,
                                    .address_count = s->listen.count,
                                    .zk_port = p->zk,
                                    .zk_root = rq_config_text(s->config, RQ_SET_ZNODE_PARENT),
                                    .memory_max = (size_t)rq_engine_memory_budget(s->config) / 32,
                                    .unread = s->unread,
                                    .transform = transform_of(s)};
    s->catalog_answers = rq_catalog_answers_of(s->catalog);
    RQ_TRY(listen_rpc(s, p->master, true, &s->master, why));
    RQ_TRY(listen_rpc(s, p->rs, false, &s->rs, why));
    RQ_TRY(rq_registry_open(&registry, &s->registry, why));
    rq_metrics_serve(s->metrics, s->master, s->rs);
    rq_err rc = rq_loops_start(s->loops);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start event loops: %s", rq_err_text(rc));
    s->loops_running = true;
    return RQ_OK;
}

/* Backups and fsck of a running server need it; the server does not. */
static void open_control(rq_server *s)
{
    rq_error why = {0};
    rq_control_options o = {.env = &s->env, .catalog = s->catalog, .folder = s->data_path};
    if (rq_control_open(&o, &s->control, &why) != RQ_OK)
        rq_log_warn(s->log, "server",
                    "backups of the running server and fsck while it runs are not possible: %s",
                    why.message);
}

/* The caller logs their number. */
static void log_unused(const rq_log *log, const rq_config *c)
{
    for (size_t i = 0; rq_config_unused(c, i) != NULL; i++)
        rq_log_debug(log, "server", "HBase's setting %s has no effect here",
                     rq_config_unused(c, i));
}

static void ready_text(rq_server *s, const rq_ports *p)
{
    s->zk_port = p->zk;
    s->rs_port = p->rs;
    (void)rq_host_port(s->host, p->zk, s->zk_quorum);
    int n = snprintf(s->address, sizeof s->address, "zookeeper %s, master %s, regionserver %s",
                     RQ_HOST_PORT(s->host, p->zk), RQ_HOST_PORT(s->host, p->master),
                     RQ_HOST_PORT(s->host, p->rs));
    if (s->info.on) /* under the host name that clients are told, if it leads to the pages */
        n += snprintf(s->address + n, sizeof s->address - (size_t)n, ", http %s",
                      RQ_HOST_PORT(rq__info_client_port(&s->info, &s->listen, s->host) != 0
                                       ? s->host
                                       : s->info.host,
                                   s->info.port));
    snprintf(s->address + n, sizeof s->address - (size_t)n, ", data %s", s->data_path);
}

static void report(const rq_server *s, const rq_log *log)
{
    rq_report_sources from = {.log = log,
                              .loops = s->loops,
                              .master = s->master,
                              .rs = s->rs,
                              .executor = s->executor,
                              .catalog = s->catalog};
    rq__report_write(&from);
}

static void report_to(void *ctx, int fd)
{
    const rq_log log = {.fd = fd};
    report(ctx, &log);
}

static void serve_pages(rq_server *s)
{
    rq_http_sources from = {.env = &s->env,
                            .server = rq_catalog_server(s->catalog),
                            .engine = s->engine,
                            .catalog = s->catalog,
                            .ops = s->ops,
                            .master = s->master,
                            .rs = s->rs,
                            .metrics = s->metrics,
                            .slow = s->slow,
                            .folder = s->data_path,
                            .report = report_to,
                            .report_ctx = s};
    rq_http_serve(s->http, &from);
}

static rq_err open_all(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_ports p = {
        .zk = (uint16_t)rq_config_int(o->config, RQ_SET_ZK_PORT),
        .master = (uint16_t)rq_config_int(o->config, RQ_SET_MASTER_PORT),
        .rs = (uint16_t)rq_config_int(o->config, RQ_SET_RS_PORT),
    };
    RQ_TRY(rq__security_check(o->config, s->log, why));
    RQ_TRY(rq__listen_resolve(o->listen, &s->listen, why));
    for (unsigned i = 0; i < s->listen.count; i++)
        s->addresses[i] = s->listen.address[i];
    RQ_TRY(rq__listen_hold(&s->listen, &p, &s->held, why));
    rq__listen_host(&s->listen, o->advertise, s->host);
    RQ_TRY(rq__info_place_of(o->config, &s->info, why));
    RQ_TRY(rq__info_bind(&s->info, &p, s->log, why));
    RQ_TRY(rq__server_threads(o->config, &s->executor, &s->epoch, why));
    RQ_TRY(open_pages(s, o, why));
    RQ_TRY(open_environment(s, o, why));
    rq__events_begin(&s->events, &s->env, o);
    RQ_TRY(open_data(s, o, &p, why));
    RQ_TRY(open_services(s, o, why));
    RQ_TRY(open_listeners(s, &p, why));
    rq__listen_release(&s->held);
    open_control(s);
    ready_text(s, &p);
    serve_pages(s);
    return RQ_OK;
}

rq_err rq_server_open(const rq_server_options *o, rq_server **ret, rq_error *why)
{
    rq_server *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->log = o->log;
    rq__log_configure(s->log, o->config);
    s->config = o->config;
    s->info.fd = -1;
    s->reload =
        (rq_reload){.log = s->log, .config = o->config, .reread = o->reread, .ctx = o->reread_ctx};
    pthread_mutex_init(&s->reload.lock, NULL);
    rq_err rc = open_all(s, o, why);
    if (rc != RQ_OK) {
        rq_server_close(s, NULL);
        return rc;
    }
    rq__events_opened(&s->events, s->engine, o->config, s->data_path, s->folder_is_new, s->address);
    log_unused(s->log, o->config);
    for (unsigned i = 0; i < s->listen.count; i++)
        rq__security_warn_listening(s->log, s->listen.address[i]);
    if (s->info.on) rq__security_warn_pages(s->log, s->info.address);
    *ret = s;
    return RQ_OK;
}

const char *rq_server_folder(const rq_server *s)
{
    return s->data_path;
}

const char *rq_server_ready_text(const rq_server *s)
{
    return s->address;
}

const char *rq_server_host(const rq_server *s, uint16_t *ret_zk_port, uint16_t *ret_rs_port)
{
    *ret_zk_port = s->zk_port;
    *ret_rs_port = s->rs_port;
    return s->host;
}

rq_err rq_server_connect(rq_server *s, rq_server_port port, rq_memory_peer **ret)
{
    if (port == RQ_PORT_ZOOKEEPER) return rq_memory_connect(rq_registry_listener(s->registry), ret);
    rq_rpc_server *rpc = port == RQ_PORT_MASTER ? s->master : s->rs;
    return rq_memory_connect(rq_rpc_server_listener(rpc), ret);
}

rq_err rq_server_reload(rq_server *s, rq_error *why)
{
    return rq__reload_run(&s->reload, why);
}

void rq_server_report(rq_server *s)
{
    report(s, s->log);
}

bool rq_server_folder_is_new(const rq_server *s)
{
    return s->folder_is_new;
}

bool rq_server_pulse(rq_server *s)
{
    return rq_loops_pulse(s->loops, 0);
}

/* --- closing ---------------------------------------------------------------------------------- */

static void stop_serving(rq_server *s)
{
    if (s->loops_running) {
        /* Both end their deaf peers at the same time. */
        if (s->master != NULL) rq_rpc_server_drain(s->master, 0);
        if (s->rs != NULL) rq_rpc_server_drain(s->rs, DRAIN_TIMEOUT_MS);
        if (s->master != NULL) rq_rpc_server_drain(s->master, DRAIN_TIMEOUT_MS);
    }
    rq_registry_close(s->registry);
    if (s->metrics != NULL) rq_metrics_serve(s->metrics, NULL, NULL);
    if (s->rs != NULL) rq_rpc_server_close(s->rs);
    if (s->master != NULL) rq_rpc_server_close(s->master);
    rq_quotas_stop(s->quotas);
    if (s->loops != NULL) rq_loops_stop(s->loops);
    rq_admin_services_free(s->admin);
    rq_client_service_free(s->client);
    rq_replication_free(s->replication);
    rq_metrics_free(s->metrics);
    rq_quotas_close(s->quotas);
    rq_slow_log_free(s->slow);
    rq_ops_free(s->ops);
    rq_user_metrics_free(s->users);
}

rq_err rq_server_close(rq_server *s, rq_error *why)
{
    rq_err first = RQ_OK;
    if (s == NULL) return RQ_OK;
    /* Regions that were not opened still need their records of the log. */
    bool keeps_log = s->catalog != NULL && rq_catalog_in_maintenance(s->catalog);
    if (s->engine != NULL) rq__events_stopping(&s->events, s->engine);
    rq_http_withdraw(s->http);
    rq_control_close(s->control);                        /* what it holds up goes on */
    if (s->catalog != NULL) rq_catalog_stop(s->catalog); /* calls wait for procedures */
    rq_replication_stop(s->replication);
    stop_serving(s);
    if (s->catalog != NULL) first = rq_catalog_close(s->catalog, true, why);
    rq_host_free(s->host_of_regions);
    if (s->engine != NULL) {
        rq__events_closed(&s->events, s->engine);
        rq_err rc = rq_engine_close(s->engine, first == RQ_OK && !keeps_log, why);
        if (first == RQ_OK) first = rc;
        if (first == RQ_OK && !keeps_log && s->catalog != NULL) rq_root_stopped_cleanly(s->root);
    }
    rq_root_close(s->root);
    if (s->loops != NULL) rq_loops_free(s->loops);
    if (s->budget != NULL) rq_budget_free(s->budget);
    if (s->answers != NULL) rq_budget_free(s->answers);
    if (s->unread != NULL) rq_budget_free(s->unread);
    rq_http_close(s->http);
    if (s->info.fd >= 0) close(s->info.fd);
    rq__listen_release(&s->held);
    rq__events_stopped(&s->events, first, why);
    rq_epoch_free(s->epoch);
    if (s->executor != NULL) rq_thread_executor_free(s->executor);
    rq_intake_free(s->intake);
    rq_intake_free(s->replicated);
    rq_vfs_free(s->vfs);
    free(s->data_path);
    pthread_mutex_destroy(&s->reload.lock);
    free(s);
    return first;
}
