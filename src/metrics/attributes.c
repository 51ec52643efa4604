/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of HBase's beans, computed from a snapshot: those listed in metrics.def and
 * attributes.def, histograms in the form of HBase's MutableTimeHistogram, tables and regions in the
 * form of HBase's aggregate sources. */
#include "metrics/metrics_priv.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 512
#define SLOW_NS 1000000000ull

typedef struct walk {
    const rq_metrics *m;
    const rq_metrics_snapshot *s;
    rq__bean bean;
    const rq_metrics_table *table; /* see rq__bean_ref */
    rq__attribute_visit visit;
    void *ctx;
} walk;

static rq_err emit(const walk *w, const char *name, rq__kind kind, double value, const char *help)
{
    rq__attribute_value v = {
        .bean = w->bean, .name = name, .kind = kind, .value = value, .help = help};
    return w->visit(w->ctx, &v);
}

static rq_err emit_text(const walk *w, const char *name, const char *text)
{
    rq__attribute_value v = {
        .bean = w->bean, .name = name, .kind = RQ__GAUGE, .text = text, .help = ""};
    return w->visit(w->ctx, &v);
}

/* --- tags ------------------------------------------------------------------------------------- */

/* A server of a cluster does not know all servers. */
static rq_err emit_master_tags(const walk *w, const rq_server_name *server)
{
    bool is_active = atomic_load(&w->m->catalog) != NULL;
    RQ_TRY(emit_text(w, "tag.isActiveMaster", is_active ? "true" : "false"));
    if (w->m->from.catalog == NULL) return RQ_OK;
    RQ_TRY(emit_text(w, "tag.liveRegionServers", server->text));
    return emit_text(w, "tag.deadRegionServers", "");
}

static rq_err emit_tags(const walk *w)
{
    const rq_metrics_sources *from = &w->m->from;
    const char *context = rq__beans[w->bean].context;
    const rq_server_name *server = rq__metrics_server(w->m);
    if (context[0] == '\0' || server == NULL) return RQ_OK;
    const rq_server_name *master =
        from->master != NULL ? from->master : rq_catalog_master(from->catalog);
    RQ_TRY(emit_text(w, "tag.Context", context));
    if (w->bean == RQ__BEAN_SERVER || w->bean == RQ__BEAN_MASTER) {
        const char *id = from->cluster_id != NULL
                             ? from->cluster_id
                             : rq_root_cluster_id(rq_catalog_root(from->catalog));
        bool is_master = w->bean == RQ__BEAN_MASTER;
        if (from->zk_quorum != NULL) RQ_TRY(emit_text(w, "tag.zookeeperQuorum", from->zk_quorum));
        RQ_TRY(emit_text(w, "tag.serverName", is_master ? master->text : server->text));
        RQ_TRY(emit_text(w, "tag.clusterId", id));
    }
    if (w->bean == RQ__BEAN_MASTER) RQ_TRY(emit_master_tags(w, server));
    return emit_text(w, "tag.Hostname", server->host);
}

/* --- histograms ------------------------------------------------------------------------------- */

static rq_err emit_part(const walk *w, const char *name, const char *suffix, double value,
                        const char *help)
{
    char full[NAME_MAX_BYTES];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    return emit(w, full, RQ__GAUGE, value, help);
}

/* The number of durations from `from` to `to` ms. HBase leaves out ranges without any. */
static rq_err emit_range(const walk *w, const char *name, unsigned from, const char *to,
                         uint64_t count, const char *help)
{
    char full[NAME_MAX_BYTES];
    if (count == 0) return RQ_OK;
    snprintf(full, sizeof full, "%s_TimeRangeCount_%u-%s", name, from, to);
    return emit(w, full, RQ__COUNTER, (double)count, help);
}

static rq_err emit_ranges(const walk *w, const char *name, const rq_times_sum *t, const char *help)
{
    static const unsigned bounds[] = {1,    3,     10,    30,    100,    300,    1000,
                                      3000, 10000, 30000, 60000, 120000, 300000, 600000};
    unsigned before = 0;
    uint64_t counted = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(bounds); i++) {
        char text[16];
        uint64_t up_to = rq_times_count_up_to(t, (uint64_t)bounds[i] * 1000000);
        snprintf(text, sizeof text, "%u", bounds[i]);
        RQ_TRY(emit_range(w, name, before, text, up_to - counted, help));
        before = bounds[i];
        counted = up_to;
    }
    return emit_range(w, name, before, "inf", rq_times_count(t) - counted, help);
}

static rq_err emit_times(const walk *w, const char *name, const rq_times_sum *t, const char *help)
{
    static const struct {
        const char *suffix;
        double percent;
    } places[] = {
        {"_min", 0},
        {"_max", 100},
        {"_25th_percentile", 25},
        {"_median", 50},
        {"_75th_percentile", 75},
        {"_90th_percentile", 90},
        {"_95th_percentile", 95},
        {"_98th_percentile", 98},
        {"_99th_percentile", 99},
        {"_99.9th_percentile", 99.9},
    };
    char full[NAME_MAX_BYTES];
    uint64_t count = rq_times_count(t);
    snprintf(full, sizeof full, "%s_num_ops", name);
    RQ_TRY(emit(w, full, RQ__COUNTER, (double)count, help));
    double mean = count == 0 ? 0 : (double)t->sum_ns / (double)count;
    RQ_TRY(emit_part(w, name, "_mean", mean / 1e6, help));
    for (size_t i = 0; i < RQ_ARRAY_LEN(places); i++) {
        double ns = (double)rq_times_percentile_ns(t, places[i].percent);
        RQ_TRY(emit_part(w, name, places[i].suffix, ns / 1e6, help));
    }
    return emit_ranges(w, name, t, help);
}

static const rq_times_sum *times_of(const walk *w, unsigned metric, const char *label)
{
    for (size_t i = 0; i < w->s->sample_count; i++) {
        const rq_metric_sample *x = &w->s->samples[i];
        if (x->metric == metric && x->table == w->table && strcmp(x->label, label) == 0)
            return x->times;
    }
    return NULL;
}

/* --- lines of the tables ---------------------------------------------------------------------- */

static double share(const rq_metrics_snapshot *s, const rq__attribute *a)
{
    double part = rq_metrics_value(s, a->metric, "");
    double all = part + rq_metrics_value(s, a->other, "");
    return all > 0 ? a->factor * part / all : 0;
}

static double slow_of(const rq_times_sum *t)
{
    return (double)(rq_times_count(t) - rq_times_count_up_to(t, SLOW_NS));
}

static rq_err emit_attribute(const walk *w, const rq__attribute *a)
{
    const rq_times_sum none = {0}, *t;
    switch (a->source) {
    case RQ__FROM_METRIC:
        return emit(w, a->name, a->kind, a->factor * rq_metrics_value(w->s, a->metric, a->label),
                    rq__metrics[a->metric].help);
    case RQ__FROM_LOAD:
        return emit(w, a->name, a->kind, w->s->loads[a->metric], rq__loads[a->metric].help);
    case RQ__FROM_SHARE:
        return emit(w, a->name, a->kind, share(w->s, a), rq__metrics[a->metric].help);
    case RQ__FROM_TIMES:
        t = times_of(w, a->metric, a->label);
        return emit_times(w, a->name, t == NULL ? &none : t, rq__metrics[a->metric].help);
    case RQ__FROM_SLOW:
        t = times_of(w, a->metric, a->label);
        return emit(w, a->name, a->kind, t == NULL ? 0 : slow_of(t), rq__metrics[a->metric].help);
    case RQ__FROM_NOTHING:
        break;
    }
    return emit(w, a->name, a->kind, a->factor, "");
}

static rq_err emit_lines(const walk *w)
{
    for (size_t i = 0; i < RQ_METRIC_COUNT; i++) {
        const rq__metric_info *info = &rq__metrics[i];
        if (info->bean == w->bean)
            RQ_TRY(emit(w, info->attribute, info->kind, rq_metrics_value(w->s, (rq_metric)i, ""),
                        info->help));
    }
    for (size_t i = 0; i < RQ_LOAD_COUNT && w->bean == RQ__BEAN_SERVER; i++) {
        const rq__load_info *info = &rq__loads[i];
        if (info->attribute[0] != '\0' && (info->levels & RQ__SERVER) != 0)
            RQ_TRY(emit(w, info->attribute, info->kind, w->s->loads[i], info->help));
    }
    for (size_t i = 0; i < rq__attribute_count; i++)
        if (rq__attributes[i].bean == w->bean) RQ_TRY(emit_attribute(w, &rq__attributes[i]));
    return RQ_OK;
}

/* --- tables and regions ----------------------------------------------------------------------- */

/* HBase's names: Namespace_NS_table_NAME[_region_ENCODED]_metric_ATTRIBUTE. */
static rq_err emit_loads(const walk *w, const rq_metrics_table *t, const char *region,
                         const double *loads, unsigned level)
{
    for (size_t i = 0; i < RQ_LOAD_COUNT; i++) {
        const rq__load_info *info = &rq__loads[i];
        char name[NAME_MAX_BYTES];
        if (info->attribute[0] == '\0' || (info->levels & level) == 0) continue;
        snprintf(name, sizeof name, "Namespace_%.*s_table_%.*s%s%s_metric_%s", (int)t->ns.len,
                 (const char *)t->ns.ptr, (int)t->qualifier.len, (const char *)t->qualifier.ptr,
                 region == NULL ? "" : "_region_", region == NULL ? "" : region, info->attribute);
        RQ_TRY(emit(w, name, info->kind, loads[i], info->help));
    }
    return RQ_OK;
}

static rq_err emit_tables(const walk *w)
{
    for (size_t i = 0; i < w->s->table_count; i++) {
        const rq_metrics_table *t = &w->s->tables[i];
        RQ_TRY(emit_loads(w, t, NULL, t->loads, RQ__TABLE));
    }
    return RQ_OK;
}

static rq_err emit_regions(const walk *w)
{
    for (size_t i = 0; i < w->s->region_count; i++) {
        const rq_metrics_region *r = &w->s->regions[i];
        RQ_TRY(emit_loads(w, r->table, r->encoded, r->loads, RQ__REGION));
    }
    return RQ_OK;
}

rq_err rq__attributes_each(const rq_metrics *m, const rq_metrics_snapshot *s,
                           const rq__bean_ref *bean, rq__attribute_visit visit, void *ctx)
{
    const walk w = {
        .m = m, .s = s, .bean = bean->bean, .table = bean->table, .visit = visit, .ctx = ctx};
    RQ_TRY(emit_tags(&w));
    RQ_TRY(emit_lines(&w));
    if (w.bean == RQ__BEAN_TABLES) return emit_tables(&w);
    return w.bean == RQ__BEAN_REGIONS ? emit_regions(&w) : RQ_OK;
}

/* --- beans ------------------------------------------------------------------------------------ */

static rq_err visit_table(const rq_metrics_table *t, rq__bean_visit visit, void *ctx)
{
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "_Namespace_%.*s_table_%.*s", (int)t->ns.len,
             (const char *)t->ns.ptr, (int)t->qualifier.len, (const char *)t->qualifier.ptr);
    return visit(ctx, &(rq__bean_ref){.bean = RQ__BEAN_TABLE_REQUESTS, .table = t, .name = name});
}

/* Samples of one table stand together. */
static rq_err visit_tables(const rq_metrics_snapshot *s, rq__bean_visit visit, void *ctx)
{
    const rq_metrics_table *last = NULL;
    for (size_t i = 0; i < s->sample_count; i++) {
        const rq_metric_sample *x = &s->samples[i];
        if (x->metric != RQ_METRIC_TABLE_OP_TIMES || x->table == last) continue;
        last = x->table;
        RQ_TRY(visit_table(last, visit, ctx));
    }
    return RQ_OK;
}

rq_err rq__beans_each(const rq_metrics_snapshot *s, rq__bean_visit visit, void *ctx)
{
    for (int bean = 0; bean < RQ__BEAN_NONE; bean++) {
        if (bean == RQ__BEAN_TABLE_REQUESTS)
            RQ_TRY(visit_tables(s, visit, ctx));
        else
            RQ_TRY(visit(ctx, &(rq__bean_ref){.bean = (rq__bean)bean, .name = ""}));
    }
    return RQ_OK;
}
