/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP pages, metrics, slow log and report (SIGQUIT) of a server of a cluster; see node.h.
 *
 * The pages and metrics are those of this process. While it is the active master, they also have the states of all tables and
 * regions, and the procedures. The port is opened before the process joins, so that health checks are answered meanwhile.
 */
#include "server/node_priv.h"

#include "server/report.h"

#include <unistd.h>

rq_err rq__node_open_pages(rq_node *n, rq_error *why)
{
    rq_http_options o = {.fd = n->info.fd,
                         .executor = n->env.executor,
                         .log = n->o.log,
                         .config = n->o.config,
                         .version = RQ_VERSION};
    if (!n->info.on) return RQ_OK;
    n->info.fd = -1;
    return rq_http_open(&o, &n->http, why);
}

rq_err rq__node_open_observers(rq_node *n, rq_error *why)
{
    const rq_metrics_sources metrics = {.env = &n->env,
                                        .engine = n->engine,
                                        .server = n->server,
                                        .master = n->master,
                                        .cluster_id = n->store.cluster_id,
                                        .ops = n->ops,
                                        .loops = n->loops,
                                        .sink = &n->sink.counters,
                                        .peers = rq__node_peers,
                                        .peers_ctx = n,
                                        .requests = n->budget,
                                        .answers = n->answers,
                                        .unread = n->unread,
                                        .memory_budget = rq_engine_memory_budget(n->o.config),
                                        .zk_quorum = n->place.quorum,
                                        .lane = rq_loop_lane(rq_loops_get(n->loops, 0))};
    rq_slow_limits limits = rq_slow_limits_of(n->o.config);
    unsigned places = (unsigned)rq_config_int(n->o.config, RQ_SET_SLOW_PLACES);
    rq_err rc = rq_slow_log_new(places, &limits, &n->slow);
    if (rc == RQ_OK) rc = rq_metrics_new(&metrics, &n->metrics);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "cannot create metrics: %s", rq_err_text(rc));
}

static void report(const rq_node *n, const rq_log *log)
{
    const rq_report_sources from = {.log = log,
                                    .loops = n->loops,
                                    .master = atomic_load(&n->led.server),
                                    .rs = n->rs_server,
                                    .executor = n->env.executor,
                                    .catalog = atomic_load(&n->led.catalog)};
    rq__report_write(&from);
}

static void report_to(void *ctx, int fd)
{
    const rq_log log = {.fd = fd};
    report(ctx, &log);
}

void rq_node_report(rq_node *n)
{
    report(n, n->o.log);
}

static void serve(rq_node *n)
{
    const rq_http_sources from = {.env = &n->env,
                                  .server = n->server,
                                  .engine = n->engine,
                                  .catalog = atomic_load(&n->led.catalog),
                                  .ops = n->ops,
                                  .master = atomic_load(&n->led.server),
                                  .rs = n->rs_server,
                                  .metrics = n->metrics,
                                  .slow = n->slow,
                                  .folder = n->place.store,
                                  .is_member = true,
                                  .report = report_to,
                                  .report_ctx = n};
    rq_http_serve(n->http, &from);
}

/* The opener may have made this process the master already. */
void rq__node_serve_pages(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->serves_pages = true;
    serve(n);
    pthread_mutex_unlock(&n->lock);
}

void rq__node_lead_pages(rq_node *n, rq_catalog *catalog)
{
    atomic_store(&n->led.catalog, catalog);
    atomic_store(&n->led.server, n->master_server);
    rq_metrics_serve(n->metrics, n->master_server, n->rs_server);
    rq_metrics_lead(n->metrics, catalog);
    pthread_mutex_lock(&n->lock);
    if (n->serves_pages) serve(n);
    pthread_mutex_unlock(&n->lock);
}

void rq__node_withdraw_pages(rq_node *n)
{
    rq_http_withdraw(n->http);
    if (n->metrics != NULL) rq_metrics_serve(n->metrics, NULL, NULL);
}

void rq__node_close_pages(rq_node *n)
{
    rq_http_close(n->http);
    if (n->info.fd >= 0) close(n->info.fd);
}
