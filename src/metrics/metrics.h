/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a server, in four formats: Prometheus text, HBase's /jmx, HBase's /prometheus, and
 * a snapshot for pages and messages.
 *
 *   engine, log, cache, ops, rpc, loops, catalog ─► collect ─► snapshot ─► prometheus │ jmx │ status
 *
 * Each metric is one line of metrics.def: name, kind, unit, help, and the bean and attribute under
 * which HBase shows it. All formats are generated from that table.
 *
 * Unless noted, functions may be called by any thread that is outside an epoch section, except
 * event loops, and by several threads at a time. None waits for a loop. Locks that loops take too
 * are held only for the copy of a few words.
 */
#ifndef RQ_METRICS_METRICS_H
#define RQ_METRICS_METRICS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/histogram.h"
#include "catalog/catalog.h"
#include "net/budget.h"
#include "net/loop.h"
#include "ops/ops.h"
#include "region/region_info.h"
#include "replication/replication.h"
#include "rpc/server.h"

typedef struct rq_metrics rq_metrics;

/* All borrowed; they outlive the rq_metrics. A source that is NULL (tests) has no metrics. */
typedef struct rq_metrics_sources {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;
    /* Of a server of a cluster, which has a catalog only while it is the master (rq_metrics_lead): its names. NULL: the
     * catalog's. */
    const rq_server_name *server, *master;
    const char *cluster_id; /* NULL: the catalog's */
    rq_ops *ops;
    rq_loops *loops;
    rq_budget *requests, *answers, *unread;
    rq_replication *replication;
    const rq_sink *sink; /* of a server of a cluster, which has no rq_replication; else NULL */
    /* The same: the peers of its sources, as rq_replication_status lists them, and the number of ended logs that the cluster
     * keeps for them. */
    rq_err (*peers)(void *ctx, rq_arena *arena, rq_source_status **ret, size_t *ret_count,
                    uint32_t *ret_kept);
    void *peers_ctx;
    uint64_t memory_budget; /* bytes */
    size_t text_bytes_max;  /* of one output; 0: an eighth of the budget, at least 64 MB */
    const char
        *zk_quorum; /* as clients are told; may be filled in after rq_metrics_new; may be NULL */
    rq_lane
        *lane; /* runs the timer that measures rates, every RQ_METRICS_PERIOD_NS; NULL: no rates */
} rq_metrics_sources;

/* HBASE: hbase.regionserver.metrics.period */
#define RQ_METRICS_PERIOD_NS (5 * 1000000000ull)

RQ_NODISCARD
rq_err rq_metrics_new(const rq_metrics_sources *from, rq_metrics **ret);
/* Sets the RPC servers: call it when they are open, and with NULL, NULL before they close. REQUIRES: when they close, no
 * other call on `m` runs. */
void rq_metrics_serve(rq_metrics *m, rq_rpc_server *master, rq_rpc_server *rs);
/* The server of a cluster has become the master: adds the metrics of the catalog, which lives until no call on `m` runs any
 * more. */
void rq_metrics_lead(rq_metrics *m, rq_catalog *catalog);
/* REQUIRES: the lane has ended, no other call is running. NULL is fine. */
void rq_metrics_free(rq_metrics *m);

/* The number of requests, and the rates of the last period. Reads no regions, so event loops may
 * call rq_metrics_get_rates. */
typedef struct rq_metrics_rates {
    uint64_t requests; /* operations of clients since the start, a batch as one */
    double requests_per_second, reads_per_second, writes_per_second;
} rq_metrics_rates;
void rq_metrics_get_rates(rq_metrics *m, rq_metrics_rates *ret);

/* --- the figures ------------------------------------------------------------------------------ */
typedef enum rq_metric {
#define METRIC(id, ...) RQ_METRIC_##id,
#include "metrics/metrics.def"
    RQ_METRIC_COUNT
} rq_metric;

typedef enum rq_load_metric {
#define LOAD(id, ...) RQ_LOAD_##id,
#include "metrics/metrics.def"
    RQ_LOAD_COUNT
} rq_load_metric;

typedef struct rq_metric_sample {
    rq_metric metric;
    const struct rq_metrics_table *table; /* NULL: it is the server's */
    const char *label;                    /* "": it has none */
    double value;              /* in the unit of metrics.def: bytes, nanoseconds, milliseconds */
    const rq_times_sum *times; /* of a histogram; else NULL */
} rq_metric_sample;

typedef struct rq_metrics_table {
    rq_slice ns, qualifier;
    rq_table_state state;
    size_t regions_by_state[RQ_REGION_STATES];
    double loads[RQ_LOAD_COUNT];
} rq_metrics_table;

typedef struct rq_metrics_region {
    const rq_metrics_table *table;
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    double loads[RQ_LOAD_COUNT];
} rq_metrics_region;

typedef struct rq_metrics_snapshot {
    rq_metric_sample *samples; /* by metric, in the order of metrics.def */
    size_t sample_count;
    double loads[RQ_LOAD_COUNT]; /* of the server */
    rq_metrics_table *tables;    /* by namespace, then name */
    size_t table_count;
    rq_metrics_region *regions; /* open ones; NULL: not wanted */
    size_t region_count;
} rq_metrics_snapshot;

/* Takes a snapshot of all metrics, allocated from the arena. `by_region`: with a value per
 * region. */
RQ_NODISCARD
rq_err rq_metrics_collect(rq_metrics *m, bool by_region, rq_arena *arena, rq_metrics_snapshot *ret);
/* The metric's value with that label, or for "" the sum over all labels; 0 if there is none. */
double rq_metrics_value(const rq_metrics_snapshot *s, rq_metric metric, const char *label);

/* --- forms ------------------------------------------------------------------------------------ */
/* Each appends to `out`. The only error, unless noted, is RQ_E_NO_MEMORY; `out` then holds a part
 * of the text. */

/* The content type of rq_metrics_prometheus and rq_metrics_hadoop_prometheus. */
#define RQ_METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Prometheus' text format: metrics of the server, of each table and, if `by_region`, of each open
 * region. */
RQ_NODISCARD
rq_err rq_metrics_prometheus(rq_metrics *m, bool by_region, rq_buf *out);

/* The parameters of HBase's /jmx, decoded; NULL: not given. */
typedef struct rq_metrics_query {
    const char *qry;  /* an ObjectName pattern, as "Hadoop:service=HBase,name=RegionServer,*" */
    const char *get;  /* "BEAN::ATTRIBUTE", or "BEAN::PATTERN,PATTERN" with * in them */
    const char *excl; /* beans that are left out */
    bool description; /* with the help texts */
} rq_metrics_query;
/* HBase's JSON: {"beans": [{"name": …, "modelerType": …, ATTRIBUTE: VALUE, …}, …]}.
 * RQ_E_ILLEGAL_ARGUMENT: a parameter for which HBase answers 400 (Bad Request); `out` has the body
 * of that response. HBASE: JMXJsonServlet, JSONBean. */
#define RQ_METRICS_JSON_TYPE "application/json; charset=utf8"
RQ_NODISCARD
rq_err rq_metrics_jmx(rq_metrics *m, const rq_metrics_query *query, rq_buf *out);

/* The metrics under the names of HBase's /prometheus. `qry` (may be NULL): only names that contain
 * it; `description`: with help texts. HBASE: PrometheusHadoopServlet. */
RQ_NODISCARD
rq_err rq_metrics_hadoop_prometheus(rq_metrics *m, bool description, const char *qry, rq_buf *out);

#endif
