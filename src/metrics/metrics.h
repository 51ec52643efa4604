/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a server, in the forms in which they are read: Prometheus text, HBase's /jmx,
 * HBase's /prometheus, and a snapshot for pages and messages.
 *
 *   engine, log, cache, ops, rpc, loops, catalog ─► collect ─► snapshot ─► prometheus │ jmx │ status
 *
 * Each figure is one line of metrics.def: name, kind, unit, help, and the bean and attribute under
 * which HBase shows it. A form lists what the table lists; none has figures of its own.
 *
 * Every function may be called by any thread that is outside a read section of the epoch, event loops
 * excepted, also by several at a time. None waits for a loop, and none takes a lock that a loop waits
 * for while more than a few words are read under it.
 */
#ifndef RQ_METRICS_METRICS_H
#define RQ_METRICS_METRICS_H

#include "base/buf.h"
#include "base/env.h"
#include "net/budget.h"
#include "net/loop.h"
#include "ops/ops.h"
#include "rpc/server.h"

typedef struct rq_metrics rq_metrics;

/* All borrowed; they outlive the rq_metrics. What is NULL has no figures (tests). */
typedef struct rq_metrics_sources {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_ops *ops;
    rq_loops *loops;
    rq_budget *requests, *answers, *unread;
    rq_lane
        *lane; /* runs the timer that measures rates, every RQ_METRICS_PERIOD_NS; NULL: no rates */
} rq_metrics_sources;

/* HBASE: hbase.regionserver.metrics.period */
#define RQ_METRICS_PERIOD_NS (5 * 1000000000ull)

RQ_NODISCARD
rq_err rq_metrics_new(const rq_metrics_sources *from, rq_metrics **ret);
/* The RPC servers, once they are open; NULL, NULL before they close. REQUIRES: no other call runs. */
void rq_metrics_serve(rq_metrics *m, rq_rpc_server *master, rq_rpc_server *rs);
/* REQUIRES: the lane has ended, no other call is running. NULL is fine. */
void rq_metrics_free(rq_metrics *m);

/* --- forms ------------------------------------------------------------------------------------ */
/* Each appends to `out`, and fails with RQ_E_NO_MEMORY alone unless it says more; `out` then holds a
 * part. */

/* The content type of rq_metrics_prometheus and rq_metrics_hadoop_prometheus. */
#define RQ_METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Prometheus' text format: figures of the server and of each table; `by_region`: of each open region
 * as well. */
RQ_NODISCARD
rq_err rq_metrics_prometheus(rq_metrics *m, bool by_region, rq_buf *out);

/* The parameters of HBase's /jmx, decoded; NULL: not given. */
typedef struct rq_metrics_query {
    const char *qry;  /* an ObjectName pattern, as "Hadoop:service=HBase,name=RegionServer,*" */
    const char *get;  /* "BEAN::ATTRIBUTE", or "BEAN::PATTERN,PATTERN" with * in them */
    const char *excl; /* beans that are left out */
    bool description; /* with the help texts */
} rq_metrics_query;
/* HBase's JSON: {"beans": [{"name": …, "modelerType": …, ATTRIBUTE: VALUE, …}, …]}. Errors are those for
 * which HBase answers 400 (Bad Request); for them `out` is what is sent: RQ_E_ILLEGAL_ARGUMENT.
 * HBASE: JMXJsonServlet, JSONBean. */
#define RQ_METRICS_JSON_TYPE "application/json; charset=utf8"
RQ_NODISCARD
rq_err rq_metrics_jmx(rq_metrics *m, const rq_metrics_query *query, rq_buf *out);

/* The figures under the names of HBase's /prometheus. `qry` (may be NULL): only names that contain it;
 * `description`: with help texts. HBASE: PrometheusHadoopServlet. */
RQ_NODISCARD
rq_err rq_metrics_hadoop_prometheus(rq_metrics *m, bool description, const char *qry, rq_buf *out);

#endif
