/* SPDX-License-Identifier: Apache-2.0 */
/* The rq_metrics object: its sources, and the rates, which a timer measures. */
#include "metrics/metrics_priv.h"

#include <stdlib.h>

static void measure(rq__rate *r, uint64_t count, uint64_t passed_ns)
{
    uint64_t before = atomic_exchange_explicit(&r->before, count, memory_order_relaxed);
    double more = count > before ? (double)(count - before) : 0;
    atomic_store_explicit(&r->per_second, passed_ns == 0 ? 0 : more * 1e9 / (double)passed_ns,
                          memory_order_relaxed);
}

static void arm(rq_metrics *m)
{
    rq_executor *executor = m->from.env->executor;
    executor->timer_arm(executor, &m->timer, m->from.lane, RQ_METRICS_PERIOD_NS);
}

static void tick(rq_task *task)
{
    rq_metrics *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq_metrics, timer);
    rq_executor *executor = m->from.env->executor;
    uint64_t now = executor->now_ns(executor), passed = now - m->ticked_ns;
    rq__op_counts n;
    rq__op_counts_read(m->from.ops, &n);
    m->ticked_ns = now;
    measure(&m->requests, n.requests, passed);
    measure(&m->reads, n.reads, passed);
    measure(&m->writes, n.writes, passed);
    arm(m);
}

#define TEXT_BYTES_LEAST ((size_t)64 << 20)

rq_err rq__text_fits(const rq_metrics *m, const rq_buf *out)
{
    size_t max = m->from.text_bytes_max;
    if (max == 0) max = (size_t)(m->from.memory_budget / 8);
    if (m->from.text_bytes_max == 0 && max < TEXT_BYTES_LEAST) max = TEXT_BYTES_LEAST;
    return out->len <= max ? RQ_OK : RQ_E_RESULT_TOO_LARGE;
}

rq_err rq_metrics_new(const rq_metrics_sources *from, rq_metrics **ret)
{
    rq_metrics *m = calloc(1, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    m->from = *from;
    atomic_init(&m->catalog, from->catalog);
    m->timer.task.run = tick;
    if (from->lane != NULL && from->ops != NULL) {
        m->ticked_ns = from->env->executor->now_ns(from->env->executor);
        arm(m);
    }
    *ret = m;
    return RQ_OK;
}

void rq_metrics_serve(rq_metrics *m, rq_rpc_server *master, rq_rpc_server *rs)
{
    atomic_store(&m->master, master);
    atomic_store(&m->rs, rs);
}

void rq_metrics_lead(rq_metrics *m, rq_catalog *catalog)
{
    atomic_store(&m->catalog, catalog);
}

const rq_server_name *rq__metrics_server(const rq_metrics *m)
{
    if (m->from.server != NULL) return m->from.server;
    return m->from.catalog == NULL ? NULL : rq_catalog_server(m->from.catalog);
}

void rq_metrics_free(rq_metrics *m)
{
    if (m == NULL) return;
    rq_executor *executor = m->from.env->executor;
    if (m->timer.armed) executor->timer_cancel(executor, &m->timer);
    free(m);
}

void rq_metrics_get_rates(rq_metrics *m, rq_metrics_rates *ret)
{
    rq__op_counts n = {0};
    if (m->from.ops != NULL) rq__op_counts_read(m->from.ops, &n);
    *ret = (rq_metrics_rates){
        .requests = n.requests,
        .requests_per_second = atomic_load_explicit(&m->requests.per_second, memory_order_relaxed),
        .reads_per_second = atomic_load_explicit(&m->reads.per_second, memory_order_relaxed),
        .writes_per_second = atomic_load_explicit(&m->writes.per_second, memory_order_relaxed),
    };
}
