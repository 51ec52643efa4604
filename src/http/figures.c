/* SPDX-License-Identifier: Apache-2.0 */
/* The pages for monitors, whose text the metrics room writes. */
#include "http/http_priv.h"

static bool is_true(const char *value)
{
    return value != NULL && strcasecmp(value, "true") == 0;
}

static void take_result(rq__page *p, rq_err rc)
{
    if (rc == RQ_E_RESULT_TOO_LARGE)
        rq__page_fail(
            p, RQ__HTTP_BROKEN,
            "the page would need too much memory: omit the parameter regions, or request a part "
            "(/jmx?qry=BEAN, /prometheus?qry=METRIC)");
    else
        p->text.rc = rc;
}

void rq__metrics_page(const rq__request *r, rq__page *p)
{
    take_result(p, rq_metrics_prometheus(r->from->metrics, rq__parameter(r, "regions") != NULL,
                                         &p->text.buf));
}

/* HBASE: PrometheusHadoopServlet; description=true, qry=PART. */
void rq__prometheus_page(const rq__request *r, rq__page *p)
{
    take_result(p, rq_metrics_hadoop_prometheus(r->from->metrics,
                                                is_true(rq__parameter(r, "description")),
                                                rq__parameter(r, "qry"), &p->text.buf));
}

/* HBASE: JMXJsonServlet. */
void rq__jmx_page(const rq__request *r, rq__page *p)
{
    rq_metrics_query query = {.qry = rq__parameter(r, "qry"),
                              .get = rq__parameter(r, "get"),
                              .excl = rq__parameter(r, "excl"),
                              .description = is_true(rq__parameter(r, "description"))};
    rq_err rc = rq_metrics_jmx(r->from->metrics, &query, &p->text.buf);
    if (rc == RQ_E_ILLEGAL_ARGUMENT)
        p->status = RQ__HTTP_BAD; /* the text says why */
    else
        take_result(p, rc);
}
