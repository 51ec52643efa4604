/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus' text format, version 0.0.4. A metric's values follow its HELP and TYPE lines.
 * Durations are in seconds. The bounds of histogram buckets are powers of two in nanoseconds: the
 * server's own buckets end there too, so each count is exact.
 */
#include "metrics/metrics_priv.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "rorqual_"
#define FIRST_BOUND 13 /* 2^13 ns: 8 µs */
#define LAST_BOUND 35  /* 2^35 ns: 34 s */
#define TABLE_STEP 2   /* every second bound, where there are many histograms */

/* The value in seconds if its unit is a time, else itself. */
static double in_base_unit(rq__unit unit, double value)
{
    return unit == RQ__NS ? value / 1e9 : unit == RQ__MS ? value / 1e3 : value;
}

rq_err rq__append_number(rq_buf *out, double value)
{
    bool is_whole = value >= -1e15 && value <= 1e15 && (double)(long long)value == value;
    return is_whole ? rq_buf_printf(out, "%lld", (long long)value)
                    : rq_buf_printf(out, "%.12g", value);
}

static rq_err put(rq_buf *out, const char *text)
{
    return rq_buf_append(out, text, strlen(text));
}

/* A label's value: backslash, quotation mark and line end are escaped. */
static rq_err put_label(rq_buf *out, const char *name, rq_slice value)
{
    RQ_TRY(rq_buf_printf(out, "%s=\"", name));
    for (size_t i = 0; i < value.len; i++) {
        uint8_t b = value.ptr[i];
        if (b == '\\' || b == '"') RQ_TRY(rq_buf_append_u8(out, '\\'));
        if (b == '\n')
            RQ_TRY(put(out, "\\n"));
        else
            RQ_TRY(rq_buf_append_u8(out, b));
    }
    return rq_buf_append_u8(out, '"');
}

static rq_err put_head(rq_buf *out, const char *prefix, const char *name, rq__kind kind,
                       const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    return rq_buf_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name,
                         kinds[kind]);
}

static rq_err put_value(rq_buf *out, rq__unit unit, double value)
{
    RQ_TRY(rq_buf_append_u8(out, ' '));
    RQ_TRY(rq__append_number(out, in_base_unit(unit, value)));
    return rq_buf_append_u8(out, '\n');
}

/* --- figures of the server -------------------------------------------------------------------- */

/* The sample's labels without braces. *ret: there are some. */
static rq_err put_labels(rq_buf *out, const rq__metric_info *info, const rq_metric_sample *s,
                         bool *ret)
{
    bool has_label = info->label[0] != '\0';
    *ret = has_label || s->table != NULL;
    if (s->table != NULL) {
        RQ_TRY(put_label(out, "namespace", s->table->ns));
        RQ_TRY(rq_buf_append_u8(out, ','));
        RQ_TRY(put_label(out, "table", s->table->qualifier));
        if (has_label) RQ_TRY(rq_buf_append_u8(out, ','));
    }
    return has_label ? put_label(out, info->label, rq_slice_cstr(s->label)) : RQ_OK;
}

static rq_err put_bucket(rq_buf *out, const rq__metric_info *info, const rq_metric_sample *s,
                         const char *bound, uint64_t count)
{
    bool labelled;
    RQ_TRY(rq_buf_printf(out, "%s_bucket{", info->name));
    RQ_TRY(put_labels(out, info, s, &labelled));
    return rq_buf_printf(out, "%sle=\"%s\"} %llu\n", labelled ? "," : "", bound,
                         (unsigned long long)count);
}

static rq_err put_part(rq_buf *out, const rq__metric_info *info, const char *suffix,
                       const rq_metric_sample *s)
{
    bool labelled;
    RQ_TRY(rq_buf_printf(out, "%s%s", info->name, suffix));
    size_t at = out->len;
    RQ_TRY(rq_buf_append_u8(out, '{'));
    RQ_TRY(put_labels(out, info, s, &labelled));
    if (labelled) return rq_buf_append_u8(out, '}');
    out->len = at;
    return RQ_OK;
}

static rq_err put_histogram(rq_buf *out, const rq__metric_info *info, const rq_metric_sample *s)
{
    uint64_t total = rq_times_count(s->times);
    unsigned step = s->metric == RQ_METRIC_TABLE_OP_TIMES ? TABLE_STEP : 1;
    for (unsigned power = FIRST_BOUND; power <= LAST_BOUND; power += step) {
        char bound[32];
        uint64_t end = UINT64_C(1) << power;
        snprintf(bound, sizeof bound, "%.12g", (double)end / 1e9);
        RQ_TRY(put_bucket(out, info, s, bound, rq_times_count_up_to(s->times, end - 1)));
    }
    RQ_TRY(put_bucket(out, info, s, "+Inf", total));
    RQ_TRY(put_part(out, info, "_sum", s));
    RQ_TRY(put_value(out, RQ__NS, (double)s->times->sum_ns));
    RQ_TRY(put_part(out, info, "_count", s));
    return put_value(out, RQ__COUNT, (double)total);
}

static rq_err put_sample(rq_buf *out, const rq__metric_info *info, const rq_metric_sample *s)
{
    if (info->kind == RQ__TIMES) return put_histogram(out, info, s);
    RQ_TRY(put_part(out, info, "", s));
    return put_value(out, info->unit, s->value);
}

static rq_err put_metrics(rq_buf *out, const rq_metrics_snapshot *s)
{
    size_t next = 0;
    for (size_t i = 0; i < RQ_METRIC_COUNT; i++) {
        const rq__metric_info *info = &rq__metrics[i];
        RQ_TRY(put_head(out, "", info->name, info->kind, info->help));
        for (; next < s->sample_count && s->samples[next].metric == i; next++)
            RQ_TRY(put_sample(out, info, &s->samples[next]));
    }
    return RQ_OK;
}

/* --- figures of tables and regions ------------------------------------------------------------ */

static rq_err put_table_load(rq_buf *out, const rq_metrics_table *t, size_t load)
{
    const rq__load_info *info = &rq__loads[load];
    RQ_TRY(rq_buf_printf(out, PREFIX "table_%s{", info->name));
    RQ_TRY(put_label(out, "namespace", t->ns));
    RQ_TRY(rq_buf_append_u8(out, ','));
    RQ_TRY(put_label(out, "table", t->qualifier));
    RQ_TRY(rq_buf_append_u8(out, '}'));
    return put_value(out, info->unit, t->loads[load]);
}

static rq_err put_region_load(rq_buf *out, const rq_metrics_region *r, size_t load)
{
    const rq__load_info *info = &rq__loads[load];
    RQ_TRY(rq_buf_printf(out, PREFIX "region_%s{", info->name));
    RQ_TRY(put_label(out, "namespace", r->table->ns));
    RQ_TRY(rq_buf_append_u8(out, ','));
    RQ_TRY(put_label(out, "table", r->table->qualifier));
    RQ_TRY(rq_buf_printf(out, ",region=\"%s\"}", r->encoded));
    return put_value(out, info->unit, r->loads[load]);
}

static rq_err put_load(const rq_metrics *m, rq_buf *out, const rq_metrics_snapshot *s, size_t load)
{
    const rq__load_info *info = &rq__loads[load];
    if ((info->levels & RQ__SERVER) != 0) {
        RQ_TRY(put_head(out, PREFIX, info->name, info->kind, info->help));
        RQ_TRY(rq_buf_printf(out, PREFIX "%s", info->name));
        RQ_TRY(put_value(out, info->unit, s->loads[load]));
    }
    if ((info->levels & RQ__TABLE) != 0) {
        RQ_TRY(put_head(out, PREFIX "table_", info->name, info->kind, info->help));
        for (size_t i = 0; i < s->table_count; i++) {
            RQ_TRY(put_table_load(out, &s->tables[i], load));
            RQ_TRY(rq__text_fits(m, out));
        }
    }
    if ((info->levels & RQ__REGION) != 0 && s->regions != NULL) {
        RQ_TRY(put_head(out, PREFIX "region_", info->name, info->kind, info->help));
        for (size_t i = 0; i < s->region_count; i++) {
            RQ_TRY(put_region_load(out, &s->regions[i], load));
            RQ_TRY(rq__text_fits(m, out));
        }
    }
    return RQ_OK;
}

rq_err rq_metrics_prometheus(rq_metrics *m, bool by_region, rq_buf *out)
{
    rq_arena arena;
    rq_metrics_snapshot s;
    rq_arena_init(&arena);
    rq_err rc = rq_metrics_collect(m, by_region, &arena, &s);
    if (rc == RQ_OK) rc = put_metrics(out, &s);
    for (size_t i = 0; i < RQ_LOAD_COUNT && rc == RQ_OK; i++)
        rc = put_load(m, out, &s, i);
    rq_arena_clear(&arena);
    return rc;
}
