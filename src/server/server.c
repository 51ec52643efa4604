/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The assembly: which room gets which other, in what order they start, and the reverse at the end.
 *
 *   settings ─► ports looked at ─► folder, root (lock, versions) ─► executor, epoch ─► engine (log)
 *   ─► catalog ─► loops ─► services ─► RPC listeners ─► registry ─► loops run
 *
 * Ports are tried before the folder is touched, so that "port in use" leaves no trace. The catalog
 * must know the ports it tells clients; with port 0 they are known only once bound, so a free one
 * is picked first and bound for good later.
 */
#include "server/server.h"

#include "catalog/catalog.h"
#include "server/relief.h"
#include "registry/registry.h"
#include "service/admin.h"
#include "service/service.h"
#include "server/security.h"
#include "vfs/intake.h"
#include "vfs/vfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRAIN_TIMEOUT_MS 30000
#define HOST_SIZE 256

struct rq_server {
    rq_log log;
    rq_vfs *vfs;
    char *data_path; /* absolute, no symbolic links */
    rq_intake *intake;
    rq_executor *executor;
    rq_epoch *epoch;
    rq_env env;
    rq_root *root;
    rq_engine *engine;
    rq_catalog *catalog;
    _Atomic bool has_catalog; /* what compactions, begun while it opens, may look at */
    rq_loops *loops;
    rq_budget *budget;
    rq_budget *answers;
    rq_budget *unread;
    rq_relief relief;
    rq_client_service *client;
    rq_admin_services *admin;
    rq_rpc_server *master;
    rq_rpc_server *rs;
    rq_registry *registry;
    bool loops_running;
    char host[HOST_SIZE]; /* that clients are told */
    uint16_t zk_port, rs_port;
    char address[HOST_SIZE * 4 + 4096];
};

/* --- ports ------------------------------------------------------------------------------------ */

static rq_err fill_address(const char *listen_on, uint16_t port, struct sockaddr_storage *ret,
                           socklen_t *ret_len, rq_error *why)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, listen_on, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *ret_len = sizeof *v4;
        return RQ_OK;
    }
    if (inet_pton(AF_INET6, listen_on, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *ret_len = sizeof *v6;
        return RQ_OK;
    }
    return rq_fail(why, RQ_E_CONFIG, "--listen %s: not a numeric address", listen_on);
}

/* Binds to `*port` for a moment; 0 is replaced by a free one. */
static rq_err try_port(const char *option, const char *listen_on, uint16_t *port, int *ret_fd,
                       rq_error *why)
{
    struct sockaddr_storage address;
    socklen_t len;
    int one = 1;
    RQ_TRY(fill_address(listen_on, *port, &address, &len, why));
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return rq_fail(why, RQ_E_IO, "cannot make a socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 1) != 0) {
        int e = errno;
        close(fd);
        return rq_fail(why, RQ_E_CONFIG,
                       "cannot listen on %s port %u: %s (%s takes another; 0 picks a free one)",
                       listen_on, *port, strerror(e), option);
    }
    getsockname(fd, (struct sockaddr *)&address, &len);
    *port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                               : ((struct sockaddr_in6 *)&address)->sin6_port);
    *ret_fd = fd;
    return RQ_OK;
}

typedef struct ports {
    uint16_t zk, master, rs;
} ports;

/* All three are held at once, so that two zeros do not become the same port. */
static rq_err try_ports(const rq_server_options *o, ports *p, rq_error *why)
{
    int fds[3] = {-1, -1, -1};
    rq_err rc = try_port("--zk-port", o->listen, &p->zk, &fds[0], why);
    if (rc == RQ_OK) rc = try_port("--master-port", o->listen, &p->master, &fds[1], why);
    if (rc == RQ_OK) rc = try_port("--rs-port", o->listen, &p->rs, &fds[2], why);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    return rc;
}

/* What clients are told: as asked for, else the host's name where any address is listened on. */
static void advertised_host(const rq_server_options *o, char out[HOST_SIZE])
{
    if (o->advertise != NULL && o->advertise[0] != '\0') {
        snprintf(out, HOST_SIZE, "%s", o->advertise);
    } else if (strcmp(o->listen, "0.0.0.0") == 0 || strcmp(o->listen, "::") == 0) {
        if (gethostname(out, HOST_SIZE) != 0) snprintf(out, HOST_SIZE, "localhost");
        out[HOST_SIZE - 1] = '\0';
    } else {
        snprintf(out, HOST_SIZE, "%s", o->listen);
    }
}

/* --- opening ---------------------------------------------------------------------------------- */

rq_err rq_server_folder_mode(const rq_config *config, unsigned *ret, rq_error *why)
{
    const char *text = rq_config_text(config, RQ_SET_DATA_MODE);
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (end == text || *end != '\0' || mode > 0777 || (mode & 0700) != 0700)
        return rq_fail(
            why, RQ_E_CONFIG,
            "setting rorqual.data.mode: '%s' is not a mode from 0700 to 0777 that leaves "
            "the owner everything",
            text);
    *ret = (unsigned)mode;
    return RQ_OK;
}

static rq_err make_folder(const char *path, unsigned mode, rq_error *why)
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

static rq_err open_environment(rq_server *s, const rq_server_options *o, rq_error *why)
{
    unsigned compactions = (unsigned)rq_config_int(o->config, RQ_SET_COMPACTION_THREADS);
    unsigned large = (unsigned)rq_config_int(o->config, RQ_SET_COMPACTION_THREADS_LARGE);
    const unsigned threads[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = 4,
        [RQ_POOL_FLUSH] = 2,
        [RQ_POOL_COMPACT] = compactions == 0 ? 1 : compactions,
        [RQ_POOL_COMPACT_LARGE] = large == 0 ? 1 : large,
        [RQ_POOL_CODEC] = 1,
        [RQ_POOL_WORK] = 4,
    };
    unsigned mode;
    RQ_TRY(rq_server_folder_mode(o->config, &mode, why));
    RQ_TRY(make_folder(o->data, mode, why));
    RQ_TRY(rq_vfs_posix_new(o->data, &s->vfs, why));
    rq_vfs_posix_set_mode(s->vfs, mode);
    s->data_path = realpath(o->data, NULL);
    if (s->data_path == NULL)
        return rq_fail(why, RQ_E_IO, "data folder %s: %s", o->data, strerror(errno));
    RQ_TRY(rq_intake_new(rq_config_text(o->config, RQ_SET_BULK_FOLDERS), s->vfs, s->data_path,
                         &s->intake, why));
    if (rq_thread_executor_new(threads, &s->executor) != RQ_OK || rq_epoch_new(&s->epoch) != RQ_OK)
        return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    s->env = (rq_env){.vfs = s->vfs, .executor = s->executor, .epoch = s->epoch, .log = &s->log};
    return rq_root_open(&s->env, &s->root, why);
}

static void region_failed(void *context, rq_region *r, const rq_error *why)
{
    rq_server *s = context;
    rq_log_error(&s->log, "region", "%s: %s", rq_region_get_info(r)->encoded, why->message);
    if (s->catalog != NULL) rq_catalog_region_failed(s->catalog, r, why);
}

static void region_grown(void *context, rq_region *r)
{
    rq_server *s = context;
    if (atomic_load(&s->has_catalog)) rq_catalog_region_grown(s->catalog, r);
}

static rq_err open_data(rq_server *s, const rq_server_options *o, const ports *p, const char *host,
                        rq_error *why)
{
    rq_engine_options engine = {
        .config = o->config,
        .region_failed = region_failed,
        .region_grown = region_grown,
        .context = s,
    };
    int64_t now = s->executor->now_ms(s->executor);
    rq_catalog_options catalog = {
        .server = {.host = host, .port = p->rs, .start_code = now},
        .master = {.host = host, .port = p->master, .start_code = now},
        .config = o->config,
    };
    RQ_TRY(rq_engine_open(&s->env, &engine, &s->engine, why));
    RQ_TRY(rq_catalog_open(s->engine, s->root, &catalog, &s->catalog, why));
    atomic_store(&s->has_catalog, true);
    return RQ_OK;
}

static rq_err open_services(rq_server *s, const rq_server_options *o, rq_error *why)
{
    rq_loops_options loops = {.count = (unsigned)rq_config_int(o->config, RQ_SET_LOOPS),
                              .restless = rq_config_int(o->config, RQ_SET_LOOPS_RESTLESS) != 0,
                              .epoch = s->epoch,
                              .log = &s->log};
    rq_err rc = rq_loops_new(&loops, &s->loops);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot make event loops: %s", rq_err_text(rc));
    uint64_t requests = (uint64_t)rq_config_int(o->config, RQ_SET_QUEUE_MAX);
    if (requests == 0) requests = rq_engine_memory_budget(o->config) / 8;
    rc = rq_budget_new((size_t)requests, &s->budget);
    size_t answers = (size_t)rq_engine_memory_budget(o->config) / 16;
    if (rc == RQ_OK) rc = rq_budget_new(answers, &s->answers);
    if (rc == RQ_OK) rc = rq_budget_new(answers, &s->unread);
    if (rc != RQ_OK) return rq_fail(why, rc, "out of memory");
    if (o->trim != NULL) {
        rq_relief_init(&s->relief, s->executor, o->trim);
        rq_budget_on_relief(s->budget, rq_relief_begin, &s->relief);
        rq_budget_on_relief(s->answers, rq_relief_begin, &s->relief);
        rq_budget_on_relief(s->unread, rq_relief_begin, &s->relief);
    }
    rq_client_service_options client = {.env = &s->env,
                                        .engine = s->engine,
                                        .catalog = s->catalog,
                                        .config = o->config,
                                        .loops = s->loops,
                                        .intake = s->intake,
                                        .data_path = s->data_path};
    RQ_TRY(rq_client_service_new(&client, &s->client, why));
    rq_admin_services_options admin = {.env = &s->env,
                                       .engine = s->engine,
                                       .catalog = s->catalog,
                                       .config = o->config,
                                       .loops = s->loops};
    return rq_admin_services_new(&admin, &s->admin, why);
}

static rq_err listen_rpc(rq_server *s, const rq_server_options *o, uint16_t port, bool master,
                         rq_rpc_server **ret, rq_error *why)
{
    rq_rpc_service services[4];
    size_t count = 0;
    services[count++] = rq_meta_service_methods(s->catalog);
    if (master) {
        services[count++] = rq_master_service_methods(s->admin);
        services[count++] = rq_master_admin_service_methods(s->admin);
        services[count++] = rq_hbck_service_methods(s->admin);
    } else {
        services[count++] = rq_client_service_methods(s->client);
        services[count++] = rq_admin_service_methods(s->admin);
    }
    rq_rpc_server_options options = {
        .loops = s->loops,
        .executor = s->executor,
        .budget = s->budget,
        .answers = s->answers,
        .unread = s->unread,
        .address = o->listen,
        .port = port,
        .services = services,
        .service_count = count,
        .cluster_id = rq_root_cluster_id(s->root),
        .request_bytes_max = (size_t)rq_config_int(o->config, RQ_SET_REQUEST_MAX),
        .log = &s->log,
    };
    return rq_rpc_server_open(&options, ret, why);
}

static rq_err open_listeners(rq_server *s, const rq_server_options *o, const ports *p,
                             rq_error *why)
{
    rq_registry_options registry = {.env = &s->env,
                                    .loops = s->loops,
                                    .catalog = s->catalog,
                                    .address = o->listen,
                                    .zk_port = p->zk,
                                    .memory_max = (size_t)rq_engine_memory_budget(o->config) / 32,
                                    .unread = s->unread};
    RQ_TRY(listen_rpc(s, o, p->master, true, &s->master, why));
    RQ_TRY(listen_rpc(s, o, p->rs, false, &s->rs, why));
    RQ_TRY(rq_registry_open(&registry, &s->registry, why));
    rq_err rc = rq_loops_start(s->loops);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start event loops: %s", rq_err_text(rc));
    s->loops_running = true;
    return RQ_OK;
}

rq_err rq_server_open(const rq_server_options *o, rq_server **ret, rq_error *why)
{
    ports p = {o->zk_port, o->master_port, o->rs_port};
    RQ_TRY(rq_security_check(o->config, &o->log, why));
    RQ_TRY(try_ports(o, &p, why));
    rq_server *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    s->log = o->log;
    advertised_host(o, s->host);
    rq_err rc = open_environment(s, o, why);
    if (rc == RQ_OK) rc = open_data(s, o, &p, s->host, why);
    if (rc == RQ_OK) rc = open_services(s, o, why);
    if (rc == RQ_OK) rc = open_listeners(s, o, &p, why);
    if (rc != RQ_OK) {
        rq_server_close(s, NULL);
        return rc;
    }
    s->zk_port = p.zk;
    s->rs_port = p.rs;
    snprintf(s->address, sizeof s->address,
             "zookeeper %s:%u, master %s:%u, regionserver %s:%u, data %s", s->host, p.zk, s->host,
             p.master, s->host, p.rs, s->data_path);
    rq_security_warn_listening(&s->log, o->listen);
    *ret = s;
    return RQ_OK;
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

bool rq_server_pulse(rq_server *s)
{
    return rq_loops_pulse(s->loops);
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
    if (s->rs != NULL) rq_rpc_server_close(s->rs);
    if (s->master != NULL) rq_rpc_server_close(s->master);
    if (s->loops != NULL) rq_loops_stop(s->loops);
    rq_admin_services_free(s->admin);
    rq_client_service_free(s->client);
}

rq_err rq_server_close(rq_server *s, rq_error *why)
{
    rq_err first = RQ_OK;
    if (s == NULL) return RQ_OK;
    if (s->catalog != NULL) rq_catalog_stop(s->catalog); /* calls wait for procedures */
    stop_serving(s);
    if (s->catalog != NULL) first = rq_catalog_close(s->catalog, true, why);
    if (s->engine != NULL) {
        rq_err rc = rq_engine_close(s->engine, first == RQ_OK, why);
        if (first == RQ_OK) first = rc;
        if (first == RQ_OK && s->catalog != NULL) rq_root_stopped_cleanly(s->root);
    }
    rq_root_close(s->root);
    if (s->loops != NULL) rq_loops_free(s->loops);
    if (s->budget != NULL) rq_budget_free(s->budget);
    if (s->answers != NULL) rq_budget_free(s->answers);
    if (s->unread != NULL) rq_budget_free(s->unread);
    rq_epoch_free(s->epoch);
    if (s->executor != NULL) rq_thread_executor_free(s->executor);
    rq_intake_free(s->intake);
    rq_vfs_free(s->vfs);
    free(s->data_path);
    free(s);
    return first;
}
