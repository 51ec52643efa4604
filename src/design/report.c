/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a design, and its reports as text and JSON. */
#include "design/design.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define HOT 1.5          /* busiest server ÷ mean, from which a design is called hot */
#define NAMES_MANY 0.2   /* of all bytes */
#define REGIONS_MANY 200 /* on a server */

/* "24 ", "1.5 M", "1.5 G": a unit may follow */
static const char *amount(double v, rq_arena *a)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t i = 0;
    for (; fabs(v) >= 1000 && i + 1 < RQ_ARRAY_LEN(prefixes); i++)
        v /= 1000;
    const char *text = i == 0 ? rq_arena_printf(a, "%.3g ", v)
                              : rq_arena_printf(a, "%.*f %s", v < 10 ? 1 : 0, v, prefixes[i]);
    return text == NULL ? "" : text;
}

bool rq_review_is_hot(const rq_review *r)
{
    return r->outlooks[0].plan->servers > 1 && r->outlooks[0].imbalance >= HOT;
}

/* The remedies are in the order of their cost: the first that is nearly as good as the best one. */
static const rq_outlook *best_of(const rq_review *r)
{
    double least = r->outlooks[0].imbalance;
    for (size_t i = 1; i < r->count; i++)
        least = fmin(least, r->outlooks[i].imbalance);
    for (size_t i = 0; i < r->count; i++)
        if (r->outlooks[i].imbalance <= 1.15 * least) return &r->outlooks[i];
    return &r->outlooks[0];
}

/* --- the verdict ------------------------------------------------------------------------------ */

typedef struct writer {
    rq_buf text;
    rq_arena *arena;
} writer;

static rq_err hot_spot(writer *w, const rq_outlook *o)
{
    const rq_plan *p = o->plan;
    if (p->servers < 2 || o->imbalance < HOT) return RQ_OK;
    RQ_TRY(rq_buf_printf(
        &w->text,
        "Hot spot: the busiest of %" PRIu64 " servers takes %.0f %% of the load; %.0f %% would be "
        "even. The busiest region takes %.0f %%.\n",
        p->servers, 100 * o->busiest_share, 100.0 / (double)p->servers, 100 * o->hottest_region));
    if (p->hottest_first > 1.0 / (double)p->servers)
        RQ_TRY(rq_buf_printf(
            &w->text,
            "One value of the key's first part takes %.0f %% of the writes. Its new rows are "
            "together: only a salt over further parts divides them.\n",
            100 * p->hottest_first));
    if (o->moves && o->hottest_region > 0.3)
        RQ_TRY(rq_buf_printf(&w->text,
                             "The hot region moves through the keys: rows come in the order of "
                             "their keys, so that splits do not help.\n"));
    if (o->regions_at_start < p->servers)
        RQ_TRY(rq_buf_printf(&w->text,
                             "The table begins with %" PRIu64 " region%s: fewer than servers.\n",
                             o->regions_at_start, o->regions_at_start == 1 ? "" : "s"));
    return RQ_OK;
}

static rq_err remedy(writer *w, const rq_review *r)
{
    const rq_outlook *o = &r->outlooks[0], *best = best_of(r);
    if (o->plan->servers < 2 || o->imbalance < HOT) return RQ_OK;
    if (best == o)
        return rq_buf_printf(&w->text, "No remedy was found: change the key, or the load.\n");
    return rq_buf_printf(&w->text,
                         "Remedy: %s, key \"%s\", %" PRIu64
                         " regions at the start: the busiest server takes "
                         "%.2f times the mean, not %.2f. Its cost: %s.\n",
                         best->plan->name, best->plan->key, best->regions_at_start, best->imbalance,
                         o->imbalance, best->plan->cost);
}

static rq_err names(writer *w, const rq_review *r)
{
    const rq_outlook *o = &r->outlooks[0];
    if (r->schema == NULL) return RQ_OK;
    rq_row_bytes b = rq__schema_row_bytes(r->schema, o->plan->key_length);
    double shortest = 2 * b.cells, rows = o->bytes / b.all;
    if (b.names <= shortest || b.names / b.all < NAMES_MANY) return RQ_OK;
    return rq_buf_printf(
        &w->text,
        "Names of families and columns are %.0f %% of all bytes: names of one letter save %sB of "
        "%sB (before compression; block encodings save most of it, too).\n",
        100 * b.names / b.all, amount(rows * (b.names - shortest), w->arena),
        amount(o->bytes, w->arena));
}

static rq_err sizes(writer *w, const rq_outlook *o)
{
    double each = (double)o->regions_at_end / (double)o->plan->servers;
    if (o->unsplittable > 0)
        RQ_TRY(rq_buf_printf(
            &w->text, "%" PRIu64 " region%s too large and cannot be split: one row, or too few.\n",
            o->unsplittable, o->unsplittable == 1 ? " is" : "s are"));
    if (each > REGIONS_MANY)
        RQ_TRY(rq_buf_printf(
            &w->text, "%.0f regions on each server at the end; %d are many: use larger regions.\n",
            each, REGIONS_MANY));
    return RQ_OK;
}

/* The problems and their remedies, a sentence a line; "" if there are none. In the arena; NULL: no
 * memory. */
static const char *verdict_of(const rq_review *r, rq_arena *arena)
{
    writer w = {.arena = arena};
    rq_err rc = hot_spot(&w, &r->outlooks[0]);
    if (rc == RQ_OK) rc = remedy(&w, r);
    if (rc == RQ_OK) rc = names(&w, r);
    if (rc == RQ_OK) rc = sizes(&w, &r->outlooks[0]);
    for (size_t i = 0; rc == RQ_OK && r->advice != NULL && i < r->advice->count; i++)
        rc = rq_buf_printf(&w.text, "Key: %s.\n", r->advice->items[i]);
    const char *text = rc == RQ_OK ? rq_arena_cstr(arena, rq_buf_slice(&w.text)) : NULL;
    rq_buf_clear(&w.text);
    return text;
}

/* --- text ------------------------------------------------------------------------------------- */

static rq_err print_schema(const rq_review *r, rq_buf *out, rq_arena *a)
{
    const rq_outlook *o = &r->outlooks[0];
    const rq_plan *p = o->plan;
    RQ_TRY(
        rq_buf_printf(out, "table %s%s%s\n", r->table, p->key[0] == '\0' ? "" : ", key ", p->key));
    RQ_TRY(rq_buf_printf(out,
                         "%" PRIu64 " servers, %sh, %s writes, %s reads, %sB in %" PRIu64
                         " regions at the end\n",
                         p->servers, amount(p->period_s / 3600, a), amount(p->writes, a),
                         amount(p->reads, a), amount(o->bytes, a), o->regions_at_end));
    if (r->schema == NULL) return rq_buf_printf(out, "\n");
    rq_row_bytes b = rq__schema_row_bytes(r->schema, p->key_length);
    return rq_buf_printf(
        out, "a row: %.0f bytes in %.3g cells: keys %.0f %%, names %.0f %% (key of %.1f bytes)\n\n",
        b.all, b.cells, 100 * b.keys / b.all, 100 * b.names / b.all, p->key_length);
}

static rq_err print_outlook(const rq_outlook *o, rq_buf *out)
{
    const rq_plan *p = o->plan;
    return rq_buf_printf(out,
                         "%-12s %8.2f x %8.1f %% %8.1f %% %8" PRIu64 " %8" PRIu64 " %7" PRIu64
                         " %7" PRIu64 " %7.1f\n",
                         p->name, o->imbalance, 100 * o->busiest_share, 100 * o->hottest_region,
                         o->regions_at_start, o->regions_at_end, o->splits, p->scans,
                         p->key_length);
}

static rq_err print_all(const rq_review *r, rq_buf *out, rq_arena *a)
{
    RQ_TRY(print_schema(r, out, a));
    RQ_TRY(rq_buf_printf(out, "%-12s %10s %10s %10s %8s %8s %7s %7s %7s\n", "", "BUSIEST/",
                         "BUSIEST", "HOTTEST", "REGIONS", "REGIONS", "", "SCANS", "KEY"));
    RQ_TRY(rq_buf_printf(out, "%-12s %10s %10s %10s %8s %8s %7s %7s %7s\n", "KEY", "MEAN", "SERVER",
                         "REGION", "BEFORE", "AFTER", "SPLITS", "A RANGE", "BYTES"));
    for (size_t i = 0; i < r->count; i++)
        RQ_TRY(print_outlook(&r->outlooks[i], out));
    const char *verdict = verdict_of(r, a);
    if (verdict == NULL) return RQ_E_NO_MEMORY;
    return rq_buf_printf(out, "\n%s", verdict[0] == '\0' ? "No hot spot.\n" : verdict);
}

rq_err rq_report_text(const rq_review *r, rq_buf *out)
{
    rq_arena arena = {0};
    rq_err rc = print_all(r, out, &arena);
    rq_arena_clear(&arena);
    return rc;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* "<" is escaped, so that the text may stand in a page. */
static rq_err json_text(const char *name, const char *text, rq_buf *out)
{
    RQ_TRY(rq_buf_printf(out, "\"%s\":\"", name));
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            RQ_TRY(rq_buf_printf(out, "\\%c", c));
        else if (c < 0x20 || c == '<')
            RQ_TRY(rq_buf_printf(out, "\\u%04x", c));
        else
            RQ_TRY(rq_buf_append_u8(out, c));
    }
    return rq_buf_append(out, "\"", 1);
}

static rq_err json_number(const char *name, double v, rq_buf *out)
{
    return rq_buf_printf(out, ",\"%s\":%.*g", name, v < 1e15 ? 15 : 6, round(v * 1e6) / 1e6);
}

/* Rows of RQ_DESIGN_STEPS numbers, per second. */
static rq_err json_heat(const rq_outlook *o, double step_s, rq_buf *out)
{
    RQ_TRY(rq_buf_printf(out, ",\"heat\":["));
    for (size_t band = 0; band < o->bands; band++) {
        RQ_TRY(rq_buf_printf(out, "%s[", band == 0 ? "" : ","));
        for (size_t i = 0; i < RQ_DESIGN_STEPS; i++)
            RQ_TRY(rq_buf_printf(out, "%s%.4g", i == 0 ? "" : ",",
                                 (double)o->heat[band * RQ_DESIGN_STEPS + i] / step_s));
        RQ_TRY(rq_buf_printf(out, "]"));
    }
    return rq_buf_printf(out, "]");
}

static rq_err json_servers(const rq_outlook *o, double step_s, rq_buf *out)
{
    RQ_TRY(rq_buf_printf(out, ",\"servers\":["));
    for (uint64_t s = 0; s < o->plan->servers; s++) {
        RQ_TRY(rq_buf_printf(out, "%s[", s == 0 ? "" : ","));
        for (size_t i = 0; i < RQ_DESIGN_STEPS; i++)
            RQ_TRY(rq_buf_printf(out, "%s%.4g", i == 0 ? "" : ",",
                                 o->server_load[s * RQ_DESIGN_STEPS + i] / step_s));
        RQ_TRY(rq_buf_printf(out, "]"));
    }
    return rq_buf_printf(out, "]");
}

static rq_err json_bands(const rq_outlook *o, rq_buf *out)
{
    RQ_TRY(rq_buf_printf(out, ",\"bands\":["));
    for (size_t i = 0; i < o->bands; i++) {
        RQ_TRY(rq_buf_printf(out, "%s{", i == 0 ? "" : ","));
        RQ_TRY(json_text("key", o->band_key[i], out));
        RQ_TRY(rq_buf_printf(out, "}"));
    }
    return rq_buf_printf(out, "]");
}

static rq_err json_outlook(const rq_outlook *o, rq_buf *out)
{
    const rq_plan *p = o->plan;
    double step_s = p->period_s / RQ_DESIGN_STEPS;
    RQ_TRY(rq_buf_printf(out, "{"));
    RQ_TRY(json_text("name", p->name, out));
    RQ_TRY(rq_buf_printf(out, ","));
    RQ_TRY(json_text("key", p->key, out));
    RQ_TRY(rq_buf_printf(out, ","));
    RQ_TRY(json_text("cost", p->cost, out));
    RQ_TRY(rq_buf_printf(out, ","));
    RQ_TRY(json_text("hottestKey", o->hottest_key, out));
    RQ_TRY(json_number("imbalance", o->imbalance, out));
    RQ_TRY(json_number("busiestServerShare", o->busiest_share, out));
    RQ_TRY(json_number("hottestRegionShare", o->hottest_region, out));
    RQ_TRY(json_number("hottestFirstValueShare", p->hottest_first, out));
    RQ_TRY(rq_buf_printf(out, ",\"moves\":%s", o->moves ? "true" : "false"));
    RQ_TRY(json_number("meanServerPerSecond", o->mean_load / step_s, out));
    RQ_TRY(json_number("peakServerPerSecond", o->peak_load / step_s, out));
    RQ_TRY(json_number("regionsAtStart", (double)o->regions_at_start, out));
    RQ_TRY(json_number("regionsAtEnd", (double)o->regions_at_end, out));
    RQ_TRY(json_number("splits", (double)o->splits, out));
    RQ_TRY(json_number("unsplittableRegions", (double)o->unsplittable, out));
    RQ_TRY(json_number("bytes", o->bytes, out));
    RQ_TRY(json_number("rowBytes", p->row_bytes, out));
    RQ_TRY(json_number("keyLength", p->key_length, out));
    RQ_TRY(json_number("scansPerRange", (double)p->scans, out));
    RQ_TRY(json_bands(o, out));
    RQ_TRY(json_heat(o, step_s, out));
    RQ_TRY(json_servers(o, step_s, out));
    return rq_buf_printf(out, "}");
}

static rq_err json_all(const rq_review *r, rq_buf *out, rq_arena *a)
{
    const rq_plan *p = r->outlooks[0].plan;
    const char *verdict = verdict_of(r, a);
    if (verdict == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_buf_printf(out, "{"));
    RQ_TRY(json_text("table", r->table, out));
    RQ_TRY(json_number("serverCount", (double)p->servers, out));
    RQ_TRY(json_number("periodSeconds", p->period_s, out));
    RQ_TRY(json_number("writes", p->writes, out));
    RQ_TRY(json_number("reads", p->reads, out));
    RQ_TRY(rq_buf_printf(out, ",\"isHot\":%s,", rq_review_is_hot(r) ? "true" : "false"));
    RQ_TRY(json_text("verdict", verdict, out));
    RQ_TRY(rq_buf_printf(out, ",\"variants\":["));
    for (size_t i = 0; i < r->count; i++) {
        if (i > 0) RQ_TRY(rq_buf_printf(out, ","));
        RQ_TRY(json_outlook(&r->outlooks[i], out));
    }
    return rq_buf_printf(out, "]}");
}

rq_err rq_report_json(const rq_review *r, rq_buf *out)
{
    rq_arena arena = {0};
    rq_err rc = json_all(r, out, &arena);
    rq_arena_clear(&arena);
    return rc;
}
