/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.def, beans.def and attributes.def as arrays. */
#include "metrics/metrics_priv.h"

const rq__bean_info rq__beans[RQ__BEAN_NONE] = {
#define X(id, name, type, record, context) [RQ__BEAN_##id] = {name, type, record, context},
#include "metrics/beans.def"
#undef X
};

const rq__metric_info rq__metrics[RQ_METRIC_COUNT] = {
#define METRIC(id, kind, unit, name, label, bean, attribute, help)                                 \
    [RQ_METRIC_##id] = {RQ__##kind, RQ__##unit, name, label, RQ__BEAN_##bean, attribute, help},
#include "metrics/metrics.def"
};

#define ADD false
#define MAX true
#define SERVER RQ__SERVER
#define TABLE RQ__TABLE
#define REGION RQ__REGION
const rq__load_info rq__loads[RQ_LOAD_COUNT] = {
#define LOAD(id, kind, unit, name, sum, levels, attribute, help)                                   \
    [RQ_LOAD_##id] = {RQ__##kind, RQ__##unit, name, sum, levels, attribute, help},
#include "metrics/metrics.def"
};
#undef ADD
#undef MAX
#undef SERVER
#undef TABLE
#undef REGION

const rq__attribute rq__attributes[] = {
#define LINE(bean, attribute, kind, from, metric, other, label, factor)                            \
    {RQ__BEAN_##bean, attribute, RQ__##kind, RQ__FROM_##from, metric, other, label, factor},
#define VALUE(bean, attribute, kind, figure, label)                                                \
    LINE(bean, attribute, kind, METRIC, RQ_METRIC_##figure, 0, label, 1)
#define SCALED(bean, attribute, kind, figure, divisor)                                             \
    LINE(bean, attribute, kind, METRIC, RQ_METRIC_##figure, 0, "", 1.0 / (divisor))
#define TABLES_SUM(bean, attribute, kind, load)                                                    \
    LINE(bean, attribute, kind, LOAD, RQ_LOAD_##load, 0, "", 1)
#define SHARE(bean, attribute, factor, part, other)                                                \
    LINE(bean, attribute, GAUGE, SHARE, RQ_METRIC_##part, RQ_METRIC_##other, "", factor)
#define SLOW(bean, attribute, figure, label)                                                       \
    LINE(bean, attribute, COUNTER, SLOW, RQ_METRIC_##figure, 0, label, 1)
#define TIMES(bean, attribute, figure, label)                                                      \
    LINE(bean, attribute, TIMES, TIMES, RQ_METRIC_##figure, 0, label, 1)
#define FIXED(bean, attribute, kind, value) LINE(bean, attribute, kind, NOTHING, 0, 0, "", value)
#include "metrics/attributes.def"
#undef LINE
};

const size_t rq__attribute_count = RQ_ARRAY_LEN(rq__attributes);
