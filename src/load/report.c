/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a run, for people, for programs, and as a time series. */
#include "load/load.h"

#include "base/macros.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    double percent;
} percentiles[] = {
    {"p50", 50}, {"p75", 75},     {"p90", 90},       {"p95", 95},
    {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99},
};

static double per(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static bool any_step(const rq_load_report *r, int i)
{
    return r->steps[i].counts != NULL && r->steps[i].total > 0;
}

static int steps_used(const rq_load_report *r)
{
    int n = 0;
    for (int i = 0; i < RQ_LOAD_STEPS; i++)
        n += any_step(r, i);
    return n;
}

/* --- for people ------------------------------------------------------------------------------- */

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* The table fits a terminal of 80 columns: the JSON also has the minimum and other percentiles. */
static bool is_printed(size_t i)
{
    return percentiles[i].percent != 75 && percentiles[i].percent != 90;
}

static void print_latency_head(FILE *out)
{
    fprintf(out, "  %-17s %7s", "ms", "mean");
    for (size_t i = 0; i < RQ_ARRAY_LEN(percentiles); i++)
        if (is_printed(i)) fprintf(out, " %7s", percentiles[i].name);
    fprintf(out, " %7s\n", "max");
}

static void print_ms(double n, FILE *out)
{
    fprintf(out, " %7.*f", n < 1000 ? 3 : n < 100000 ? 1 : 0, n);
}

static void print_latency(const char *name, const rq_histogram *h, FILE *out)
{
    fprintf(out, "  %-17s", name);
    print_ms(rq_histogram_mean(h) / 1e6, out);
    for (size_t i = 0; i < RQ_ARRAY_LEN(percentiles); i++)
        if (is_printed(i)) print_ms(ms(rq_histogram_percentile(h, percentiles[i].percent)), out);
    print_ms(ms(h->max), out);
    fputc('\n', out);
}

static void print_errors(const rq_load_report *r, FILE *out)
{
    for (size_t i = 0; i < r->error_count; i++) {
        const rq_load_error *e = &r->errors[i];
        fprintf(out, "  %-28s %" PRIu64 " repeated, %" PRIu64 " failed%s%s\n", e->kind, e->retried,
                e->failed, e->text[0] != 0 ? ": " : "", e->text);
    }
}

static void print_process(const rq_load_options *o, const rq_load_report *r, FILE *out)
{
    double ops = (double)r->operations;
    if (o->server_pid == 0) return;
    if (r->server_cpu_s < 0) {
        fprintf(out, "server: there is no process %d on this machine\n", o->server_pid);
        return;
    }
    fprintf(out,
            "server: %.2f µs CPU per operation (%.0f operations per CPU second), %.0f %% of a core",
            per(r->server_cpu_s * 1e6, ops), per(ops, r->server_cpu_s),
            100 * per(r->server_cpu_s, r->seconds));
    if (r->server_rss >= 0)
        fprintf(out, ", resident %.1f MB (peak %.1f)", (double)r->server_rss / 1e6,
                (double)r->server_peak_rss / 1e6);
    fputc('\n', out);
}

void rq_load_print(const rq_load_options *o, const rq_load_report *r, FILE *out)
{
    unsigned lanes = o->client.lanes;
    fprintf(out, "%s: %zu region%s on %zu server%s, %u connection%s x %u deep", o->workload,
            r->regions, r->regions == 1 ? "" : "s", r->servers, r->servers == 1 ? "" : "s", lanes,
            lanes == 1 ? "" : "s", o->depth);
    if (o->rate > 0) fprintf(out, ", %.0f/s scheduled", o->rate);
    if (r->loaded > 0) fprintf(out, "; %" PRIu64 " loaded in %.1f s", r->loaded, r->load_seconds);
    fprintf(out, "\n%.0f operations/s (%" PRIu64 " in %.2f s)",
            per((double)r->operations, r->seconds), r->operations, r->seconds);
    if (r->rows_read > 0)
        fprintf(out, "; read %.0f rows/s, %.1f MB/s", per((double)r->rows_read, r->seconds),
                per((double)r->bytes_read / 1e6, r->seconds));
    if (r->rows_written > 0)
        fprintf(out, "; wrote %.0f rows/s, %.1f MB/s", per((double)r->rows_written, r->seconds),
                per((double)r->bytes_written / 1e6, r->seconds));
    fprintf(out, "\nlatency%s\n", o->rate > 0 ? " from the scheduled time of each operation" : "");
    print_latency_head(out);
    print_latency("all", &r->latency, out);
    for (int i = 0; i < RQ_LOAD_STEPS && steps_used(r) > 1; i++)
        if (any_step(r, i)) print_latency(rq__load_step_name((rq_load_step)i), &r->steps[i], out);
    print_process(o, r, out);
    if (r->own_cpu_s >= 0 && r->own_cpu_s > 0.9 * r->seconds && o->rate <= 0)
        fprintf(out, "the generator used %.0f %% of a core: it may be the limit\n",
                100 * per(r->own_cpu_s, r->seconds));
    if (r->misses > 0) fprintf(out, "rows not found: %" PRIu64 "\n", r->misses);
    if (r->error_count > 0) fprintf(out, "errors: %" PRIu64 " operations failed\n", r->failed);
    print_errors(r, out);
    if (o->verify)
        fprintf(out, "verified: %" PRIu64 " rows and values, %" PRIu64 " wrong%s%s\n", r->checked,
                r->wrong, r->wrong > 0 ? "; the first: " : "", r->wrong_text);
    if (r->gave_up) fprintf(out, "ended early: no operation succeeded for %.0f s\n", o->give_up_s);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p != 0; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f) /* as Latin-1: any byte gives valid JSON */
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

static void json_latency(const rq_histogram *h, FILE *out)
{
    fprintf(out, "{\"count\": %" PRIu64 ", \"mean\": %.2f, \"min\": %.2f", h->total,
            rq_histogram_mean(h) / 1e3, h->total > 0 ? us(h->min) : 0);
    for (size_t i = 0; i < RQ_ARRAY_LEN(percentiles); i++)
        fprintf(out, ", \"%s\": %.2f", percentiles[i].name,
                us(rq_histogram_percentile(h, percentiles[i].percent)));
    fprintf(out, ", \"max\": %.2f}", us(h->max));
}

static void json_series(const rq_load_report *r, FILE *out)
{
    for (size_t i = 0; i < r->point_count; i++) {
        const rq_load_point *p = &r->points[i];
        fprintf(out,
                "%s{\"at_s\": %.3f, \"rate\": %.1f, \"p50\": %.2f, \"p99\": %.2f, "
                "\"p99.9\": %.2f, \"max\": %.2f, \"errors\": %" PRIu64 "}",
                i == 0 ? "" : ", ", p->at_s, p->rate, us(p->p50_ns), us(p->p99_ns), us(p->p999_ns),
                us(p->max_ns), p->errors);
    }
}

void rq_load_print_json(const rq_load_options *o, const rq_load_report *r, FILE *out)
{
    double ops = (double)r->operations;
    const char *comma = "";
    fprintf(out, "{\"workload\": ");
    json_text(o->workload, out);
    fprintf(out, ", \"cluster\": ");
    json_text(r->cluster_id, out);
    fprintf(out,
            ", \"connections\": %u, \"depth\": %u, \"records\": %" PRIu64 ", \"seed\": %" PRIu64
            ", \"regions\": %zu, \"servers\": %zu, \"rate_wanted\": %.1f, \"awake\": %s, ",
            o->client.lanes, o->depth, o->records, o->seed, r->regions, r->servers, o->rate,
            o->awake ? "true" : "false");
    fprintf(out,
            "\"seconds\": %.4f, \"load_seconds\": %.4f, \"operations\": %" PRIu64
            ", \"rate\": %.2f, \"failed\": %" PRIu64 ", ",
            r->seconds, r->load_seconds, r->operations, per(ops, r->seconds), r->failed);
    fprintf(
        out,
        "\"rows_read\": %" PRIu64 ", \"rows_written\": %" PRIu64 ", \"cells_read\": %" PRIu64
        ", \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64 ", \"misses\": %" PRIu64 ", ",
        r->rows_read, r->rows_written, r->cells_read, r->bytes_read, r->bytes_written, r->misses);
    fprintf(out, "\"calls\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", ",
            r->traffic.calls, r->traffic.sent, r->traffic.received);
    fprintf(out,
            "\"verify\": %s, \"checked\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"wrong_text\": ",
            o->verify ? "true" : "false", r->checked, r->wrong);
    json_text(r->wrong_text, out);
    fprintf(out, ", \"gave_up\": %s, \"connects\": %" PRIu64 ", ", r->gave_up ? "true" : "false",
            r->connects);
    if (r->server_cpu_s >= 0)
        fprintf(out, "\"server_cpu_s\": %.6f, \"server_cpu_us_per_op\": %.4f, ", r->server_cpu_s,
                per(r->server_cpu_s * 1e6, ops));
    if (r->server_rss >= 0)
        fprintf(out, "\"server_rss\": %" PRId64 ", \"server_peak_rss\": %" PRId64 ", ",
                r->server_rss, r->server_peak_rss);
    fprintf(out, "\"own_cpu_s\": %.6f, \"latency_us\": {\"all\": ", r->own_cpu_s);
    json_latency(&r->latency, out);
    for (int i = 0; i < RQ_LOAD_STEPS; i++) {
        if (!any_step(r, i)) continue;
        fprintf(out, ", \"%s\": ", rq__load_step_name((rq_load_step)i));
        json_latency(&r->steps[i], out);
    }
    fprintf(out, "}, \"errors\": [");
    for (size_t i = 0; i < r->error_count; i++, comma = ", ") {
        const rq_load_error *e = &r->errors[i];
        fprintf(out, "%s{\"kind\": ", comma);
        json_text(e->kind, out);
        fprintf(out, ", \"repeated\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"text\": ", e->retried,
                e->failed);
        json_text(e->text, out);
        fputc('}', out);
    }
    fprintf(out, "], \"series\": [");
    json_series(r, out);
    fprintf(out, "]}\n");
}

/* --- CSV -------------------------------------------------------------------------------------- */

void rq_load_print_csv(const rq_load_report *r, FILE *out)
{
    fprintf(out, "at_s,operations_per_s,p50_us,p99_us,p99.9_us,max_us,errors\n");
    for (size_t i = 0; i < r->point_count; i++) {
        const rq_load_point *p = &r->points[i];
        fprintf(out, "%.3f,%.1f,%.2f,%.2f,%.2f,%.2f,%" PRIu64 "\n", p->at_s, p->rate, us(p->p50_ns),
                us(p->p99_ns), us(p->p999_ns), us(p->max_ns), p->errors);
    }
}
