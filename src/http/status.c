/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page for people: one page without scripts, with its style sheet inside, light or dark
 * as the browser is set. Programs read /metrics.
 *
 * Regions are counted within one epoch section, which with ten thousand regions delays the release
 * of memory for some milliseconds and blocks no thread. The largest TABLES_SHOWN tables are shown.
 */
#include "http/http_priv.h"

#include "hfile/block_cache.h"
#include "wal/wal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TABLES_SHOWN 100
#define SLOW_SHOWN 10
#define REFRESH_MAX_S 3600

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b2430;--dim:#5d6a7a;--back:#f6f7f9;--card:#fff;"
    "--line:#dde2e8;--blue:#1d6fb8;--bad:#b3261e;--badback:#fdeceb}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--dim:#98a4b3;--back:#12161c;"
    "--card:#1b2129;--line:#303944;--blue:#6cb2f0;--bad:#ff8a80;--badback:#3a1f1e}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:76rem;padding:1.25rem;background:var(--back);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "header{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;align-items:baseline;"
    "border-bottom:1px solid var(--line);padding-bottom:.6rem;margin-bottom:1rem}"
    "h1{font-size:1.35rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .5rem}"
    "a{color:var(--blue);text-decoration:none}a:hover{text-decoration:underline}"
    "nav{display:flex;flex-wrap:wrap;gap:0 1rem;margin-left:auto}"
    ".dim{color:var(--dim)}"
    ".tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:.75rem}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem "
    ".8rem}"
    ".tile b{display:block;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}"
    ".tile span{color:var(--dim);font-size:.85rem}"
    ".bar{height:5px;border-radius:3px;background:var(--line);margin-top:.4rem;overflow:hidden}"
    ".bar i{display:block;height:100%;background:var(--blue)}"
    ".s{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{padding:.3rem .7rem;text-align:left;border-top:1px solid var(--line);vertical-align:top}"
    "tr:first-child th,tr:first-child td{border-top:0}"
    "th{color:var(--dim);font-weight:500;font-size:.85rem;white-space:nowrap}"
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".w{white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".t{overflow-wrap:anywhere;min-width:9rem}"
    ".q td{border-top:0;padding-top:0;color:var(--dim);overflow-wrap:anywhere}"
    "@media(max-width:46rem){nav{margin-left:0}.t{min-width:11rem}"
    ".tiles{grid-template-columns:repeat(2,1fr)}}"
    ".bad{background:var(--badback);color:var(--bad);border:1px solid var(--bad);border-radius:8px;"
    "padding:.5rem .8rem;margin:1rem 0;overflow-wrap:anywhere}";

void rq__html_begin(rq__page *p, const char *title)
{
    rq__put(&p->text, "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
                      "<meta name=viewport content=\"width=device-width,initial-scale=1\"><title>");
    rq__put_html_cstr(&p->text, title);
    rq__put(&p->text, " · Rorqual</title><style>%s</style></head><body>\n<header><h1>", style);
    rq__put_html_cstr(&p->text, title);
    rq__put(&p->text, "</h1><nav><a href=\"/\">status</a><a href=\"/debug/slow\">slow calls</a>"
                      "<a href=\"/stacks\">threads</a><a href=\"/metrics\">metrics</a>"
                      "<a href=\"/jmx\">jmx</a><a href=\"/conf\">settings</a></nav></header>\n");
}

void rq__html_end(rq__page *p)
{
    rq__put(&p->text, "</body></html>\n");
}

/* --- tables and regions ----------------------------------------------------------------------- */

typedef struct table_row {
    char *name; /* in the arena */
    rq_table_state state;
    uint64_t regions, open, bytes, memstore_bytes, files, reads, writes, compacting;
} table_row;

typedef struct survey {
    rq_arena arena;
    table_row *tables;
    size_t count;
    table_row all;
    rq__failures failures;
} survey;

rq_err rq__failures_add(rq__failures *f, rq_arena *arena, const rq_catalog_region *r)
{
    if (f->count++ >= RQ__FAILURES_SHOWN) return RQ_OK;
    char **region = &f->list[f->count - 1].region, **text = &f->list[f->count - 1].text;
    *region = rq_arena_cstr(arena, r->info->name);
    *text = rq_arena_cstr(arena, rq_slice_cstr(r->failure == NULL ? "" : r->failure));
    return *region == NULL || *text == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void add_load(table_row *row, const rq_region *region)
{
    rq_region_load load;
    rq_region_get_load(region, &load);
    row->open++;
    row->bytes += load.storefile_bytes;
    row->memstore_bytes += load.memstore_bytes;
    row->files += load.storefiles;
    row->reads += load.read_requests;
    row->writes += load.write_requests;
    row->compacting += rq_region_compaction_state(region) != 0;
}

static void add_row(table_row *to, const table_row *r)
{
    to->regions += r->regions;
    to->open += r->open;
    to->bytes += r->bytes;
    to->memstore_bytes += r->memstore_bytes;
    to->files += r->files;
    to->reads += r->reads;
    to->writes += r->writes;
    to->compacting += r->compacting;
}

static rq_err look_at_table(void *ctx, const rq_catalog_table *t, void *to)
{
    survey *s = ctx;
    table_row *row = to;
    row->name = rq_arena_cstr(&s->arena, t->schema->name);
    if (row->name == NULL) return RQ_E_NO_MEMORY;
    row->state = t->state;
    row->regions = t->region_count;
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (r->region != NULL)
            add_load(row, r->region);
        else if (r->state == RQ_REGION_FAILED_OPEN)
            RQ_TRY(rq__failures_add(&s->failures, &s->arena, r));
    }
    add_row(&s->all, row);
    return RQ_OK;
}

static rq_err add_rows(const rq_catalog_table *const *tables, size_t count, size_t size,
                       rq_err (*add)(void *ctx, const rq_catalog_table *t, void *row), void *ctx,
                       uint8_t *rows)
{
    for (size_t i = 0; i < count; i++)
        RQ_TRY(add(ctx, tables[i], rows + i * size));
    return RQ_OK;
}

rq_err rq__table_rows(const rq_http_sources *from, rq_arena *arena, size_t size,
                      rq_err (*add)(void *ctx, const rq_catalog_table *t, void *row), void *ctx,
                      void **ret, size_t *ret_count)
{
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    rq_epoch_pin(from->env->epoch, &m);
    rq_catalog_tables(from->catalog, &tables, ret_count);
    *ret = rq_arena_calloc(arena, *ret_count + 1, size);
    rq_err rc = *ret == NULL ? RQ_E_NO_MEMORY : add_rows(tables, *ret_count, size, add, ctx, *ret);
    rq_epoch_unpin(from->env->epoch, &m);
    return rc;
}

static rq_err look_at_catalog(const rq_http_sources *from, survey *s)
{
    void *rows = NULL;
    rq_err rc =
        rq__table_rows(from, &s->arena, sizeof *s->tables, look_at_table, s, &rows, &s->count);
    s->tables = rows;
    return rc;
}

/* --- the regions of a cluster's server --------------------------------------------------------- */

static int by_table(const void *a, const void *b)
{
    const rq_region_info *x = rq_region_get_info(*(rq_region *const *)a);
    const rq_region_info *y = rq_region_get_info(*(rq_region *const *)b);
    int order = rq_slice_compare(x->ns, y->ns);
    return order != 0 ? order : rq_slice_compare(x->qualifier, y->qualifier);
}

static rq_err name_row(survey *s, const rq_region_info *info, table_row *row)
{
    bool is_default = rq_slice_eq(info->ns, RQ_SLICE_LIT("default"));
    row->name = rq_arena_printf(&s->arena, "%.*s%s%.*s", is_default ? 0 : (int)info->ns.len,
                                (const char *)info->ns.ptr, is_default ? "" : ":",
                                (int)info->qualifier.len, (const char *)info->qualifier.ptr);
    return row->name == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* A row for each table that has regions here. `list`: by table. */
static rq_err add_own_rows(survey *s, rq_region *const *list, size_t count)
{
    s->tables = rq_arena_calloc(&s->arena, count + 1, sizeof *s->tables);
    if (s->tables == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        table_row one = {0};
        bool is_new = i == 0 || by_table(&list[i - 1], &list[i]) != 0;
        if (is_new) RQ_TRY(name_row(s, rq_region_get_info(list[i]), &s->tables[s->count++]));
        one.regions = 1;
        add_load(&one, list[i]);
        add_row(&s->tables[s->count - 1], &one);
        add_row(&s->all, &one);
    }
    return RQ_OK;
}

static rq_err look_at_own(rq_engine *engine, survey *s)
{
    rq_region **list;
    size_t count;
    RQ_TRY(rq_engine_regions(engine, &s->arena, &list, &count));
    if (count > 1) qsort(list, count, sizeof *list, by_table);
    rq_err rc = add_own_rows(s, list, count);
    for (size_t i = 0; i < count; i++)
        rq_region_unref(list[i]);
    return rc;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int largest_first(const void *a, const void *b)
{
    const table_row *x = a, *y = b;
    uint64_t xs = x->bytes + x->memstore_bytes, ys = y->bytes + y->memstore_bytes;
    if (xs != ys) return xs > ys ? -1 : 1;
    return strcmp(x->name, y->name);
}

static rq_err look(const rq_http_sources *from, survey *s)
{
    rq_err rc = from->is_member ? look_at_own(from->engine, s) : look_at_catalog(from, s);
    if (rc == RQ_OK) qsort(s->tables, s->count, sizeof *s->tables, largest_first);
    return rc;
}

const char *rq__table_state_text(rq_table_state state)
{
    static const char *const states[] = {[RQ_TABLE_ENABLED] = "enabled",
                                         [RQ_TABLE_DISABLED] = "disabled",
                                         [RQ_TABLE_DISABLING] = "disabling",
                                         [RQ_TABLE_ENABLING] = "enabling"};
    return states[state];
}

void rq__cell_count(rq__text *t, uint64_t n)
{
    rq__put(t, "<td class=n>");
    rq__put_count(t, n);
    rq__put(t, "</td>");
}

void rq__cell_bytes(rq__text *t, uint64_t n)
{
    rq__put(t, "<td class=n>");
    rq__put_bytes(t, n);
    rq__put(t, "</td>");
}

static void put_table(rq__text *t, const table_row *r)
{
    rq__put(t, "<tr><td class=t>");
    rq__put_html_cstr(t, r->name);
    rq__put(t, "</td><td>%s</td>", rq__table_state_text(r->state));
    rq__cell_count(t, r->regions);
    rq__cell_count(t, r->open);
    rq__cell_bytes(t, r->bytes);
    rq__cell_count(t, r->files);
    rq__cell_bytes(t, r->memstore_bytes);
    rq__cell_count(t, r->reads);
    rq__cell_count(t, r->writes);
    rq__cell_count(t, r->compacting);
    rq__put(t, "</tr>\n");
}

static void put_tables(rq__text *t, const survey *s, bool is_member)
{
    rq__put(t, "<h2>Tables%s</h2>\n", is_member ? " with regions on this server" : "");
    rq__put(t, "<div class=s><table><tr><th>table<th>state<th class=n>regions<th "
               "class=n>open<th class=n>files' size<th class=n>files<th class=n>memstores<th "
               "class=n>reads<th class=n>writes<th class=n>compacting</tr>\n");
    for (size_t i = 0; i < s->count && i < TABLES_SHOWN; i++)
        put_table(t, &s->tables[i]);
    rq__put(t, "</table></div>\n");
    if (s->count <= TABLES_SHOWN) return;
    rq__put(t, "<p class=dim>and ");
    rq__put_count(t, s->count - TABLES_SHOWN);
    rq__put(t, " smaller ones: <a href=\"/metrics\">/metrics</a> has all</p>\n");
}

void rq__failures_put(rq__text *t, const rq__failures *f)
{
    if (f->count == 0) return;
    rq__put(t, "<div class=bad><b>");
    rq__put_count(t, f->count);
    rq__put(t, " region%s could not be opened</b>", f->count == 1 ? "" : "s");
    for (size_t i = 0; i < f->count && i < RQ__FAILURES_SHOWN; i++) {
        rq__put(t, "<br>");
        rq__put_html_cstr(t, f->list[i].region);
        rq__put(t, ": ");
        rq__put_html_cstr(t, f->list[i].text);
    }
    rq__put(t, "</div>\n");
}

/* --- procedures ------------------------------------------------------------------------------- */

static void put_parked(rq__text *t, const rq_procedure *p)
{
    const char *dot = strrchr(p->java_class, '.');
    rq__put(t, "<br>%llu: ", (unsigned long long)p->id);
    rq__put_html_cstr(t, dot == NULL ? p->java_class : dot + 1);
    rq__put(t, " of ");
    rq__put_html(t, p->ns);
    rq__put(t, ":");
    rq__put_html(t, p->qualifier);
    rq__put(t, ", step %s: ", p->step == NULL ? "" : p->step);
    rq__put_html_cstr(t, p->message == NULL ? "" : p->message);
}

/* Parked procedures: a step of each failed, and operations that conflict with them are refused. */
static void put_procedures(rq__text *t, rq_catalog *c)
{
    rq_arena arena = {0};
    rq_procedure_counts n;
    rq_procedure *list;
    size_t count = 0, shown = 0;
    rq_catalog_procedure_counts(c, &n);
    if (n.parked == 0) return;
    rq_err rc = rq_catalog_unfinished_procedures(c, &arena, &list, &count);
    if (rc != RQ_OK) {
        t->rc = rc;
        count = 0;
    }
    rq__put(t, "<div class=bad><b>");
    rq__put_count(t, n.parked);
    rq__put(
        t,
        " procedure%s parked: a step failed</b>. If the error may pass, it is tried again every 10 "
        "minutes; HBCK2's bypass tries it at once, and ends it",
        n.parked == 1 ? " is" : "s are");
    for (size_t i = 0; i < count && shown < RQ__FAILURES_SHOWN; i++) {
        if (!list[i].parked) continue;
        put_parked(t, &list[i]);
        shown++;
    }
    rq__put(t, "</div>\n");
    rq_arena_clear(&arena);
}

/* --- tiles ------------------------------------------------------------------------------------ */

static void tile_begin(rq__text *t, const char *label)
{
    rq__put(t, "<div class=tile><span>%s</span><b>", label);
}

static void tile_end(rq__text *t, const char *note)
{
    rq__put(t, "</b><span>%s</span></div>\n", note);
}

static void bar(rq__text *t, uint64_t part, uint64_t all)
{
    double percent = all == 0 ? 0 : part >= all ? 100 : (double)part * 100 / (double)all;
    rq__put(t, "<div class=bar><i style=\"width:%.1f%%\"></i></div>", percent);
}

static void bytes_tile(rq__text *t, const char *label, uint64_t part, uint64_t all)
{
    tile_begin(t, label);
    rq__put_bytes(t, part);
    rq__put(t, "</b><span>of ");
    rq__put_bytes(t, all);
    rq__put(t, "</span>");
    bar(t, part, all);
    rq__put(t, "</div>\n");
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return 0;
    int got = fscanf(f, "%lu %lu", &size, &resident);
    fclose(f);
    return got == 2 ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

typedef struct sums {
    rq_rpc_stats rs, master;
    rq_engine_stats engine;
    rq_block_cache_stats cache;
    rq_wal_stats wal;
} sums;

static void add_up(const rq_http_sources *from, sums *s)
{
    s->rs = rq_rpc_server_stats(from->rs);
    s->master = from->master == NULL ? (rq_rpc_stats){0} : rq_rpc_server_stats(from->master);
    rq_engine_get_stats(from->engine, &s->engine);
    rq_block_cache_get_stats(rq_engine_block_cache(from->engine), &s->cache);
    rq_wal_get_stats(rq_engine_wal(from->engine), &s->wal);
}

static uint64_t per_second(uint64_t now, uint64_t before, uint64_t ns)
{
    return now <= before || ns == 0 ? 0 : (uint64_t)((double)(now - before) * 1e9 / (double)ns);
}

static void rate_tile(rq__text *t, const char *label, uint64_t now, uint64_t before, uint64_t ns)
{
    char note[64];
    tile_begin(t, label);
    rq__put_count(t, per_second(now, before, ns));
    snprintf(note, sizeof note, "per second, over %.1f&nbsp;s", (double)ns / 1e9);
    tile_end(t, note);
}

/* Rates since the page was last requested; at the first request, since the server's start. */
static void put_rates(rq__text *t, const rq__request *r, const table_row *all)
{
    rq_executor *executor = r->from->env->executor;
    uint64_t now = rq_loop_clock_ns();
    int64_t up_ms = executor->now_ms(executor) - r->from->server->start_code;
    uint64_t up_ns = up_ms > 0 ? (uint64_t)up_ms * 1000000 : 1;
    /* The sums decrease when a table is dropped. */
    bool is_first =
        r->rates->at_ns == 0 || all->reads < r->rates->reads || all->writes < r->rates->writes;
    rq__rates before = is_first ? (rq__rates){.at_ns = now - up_ns} : *r->rates;
    rate_tile(t, "Reads", all->reads, before.reads, now - before.at_ns);
    rate_tile(t, "Writes", all->writes, before.writes, now - before.at_ns);
    *r->rates = (rq__rates){.at_ns = now, .reads = all->reads, .writes = all->writes};
}

static void put_tiles(rq__text *t, const rq__request *r, const survey *s, const sums *u)
{
    char note[128];
    rq__put(t, "<div class=tiles>\n");
    put_rates(t, r, &s->all);
    tile_begin(t, "Calls in flight");
    rq__put_count(t, u->rs.calls_in_flight + u->master.calls_in_flight);
    unsigned long long connections = u->rs.connections + u->master.connections;
    snprintf(note, sizeof note, "%llu connection%s", connections, connections == 1 ? "" : "s");
    tile_end(t, note);
    bytes_tile(t, "Resident memory", resident_bytes(),
               rq_engine_memory_budget(rq__http_config(r->http)));
    bytes_tile(t, "Memstores", u->engine.memstore_bytes_held, u->engine.memstore_bytes_max);
    bytes_tile(t, "Block cache", u->cache.used_bytes, u->cache.capacity_bytes);
    tile_begin(t, "Log");
    rq__put_bytes(t, u->wal.log_bytes);
    snprintf(note, sizeof note, "mean sync %.2f ms",
             u->wal.syncs == 0 ? 0.0 : (double)u->wal.sync_ns / 1e6 / (double)u->wal.syncs);
    tile_end(t, note);
    tile_begin(t, "Regions");
    rq__put_count(t, s->all.open);
    if (r->from->is_member)
        snprintf(note, sizeof note, "open here, of %zu tables", s->count);
    else
        snprintf(note, sizeof note, "open, of %llu in %zu tables",
                 (unsigned long long)s->all.regions, s->count);
    tile_end(t, note);
    rq__put(t, "</div>\n");
}

/* --- operations, flushes, compactions --------------------------------------------------------- */

static void cell_duration(rq__text *t, uint64_t ns)
{
    rq__put(t, "<td class=n>");
    if (ns == 0)
        rq__put(t, "–"); /* none was timed */
    else
        rq__put_duration(t, ns);
    rq__put(t, "</td>");
}

static void put_operation(rq__text *t, rq_op_kind kind, const rq_op_stats *s)
{
    rq__put(t, "<tr><td>%s</td>", rq_op_kind_text(kind));
    rq__cell_count(t, s->ops);
    rq__cell_count(t, s->parts);
    rq__cell_count(t, s->failed);
    rq__cell_count(t, s->cells);
    cell_duration(t, s->ops == 0 ? 0 : s->times.sum_ns / s->ops);
    cell_duration(t, rq_times_percentile_ns(&s->times, 99));
    rq__put(t, "</tr>\n");
}

static void put_operations(rq__text *t, rq_ops *ops)
{
    int rows = 0;
    rq__put(t, "<h2>Operations since the start</h2>\n");
    for (int kind = 0; kind < RQ_OP_KINDS; kind++) {
        rq_op_stats s;
        rq_ops_stats(ops, (rq_op_kind)kind, &s);
        if (s.ops == 0 && s.parts == 0) continue;
        if (rows++ == 0)
            rq__put(t, "<div class=s><table><tr><th>operation<th class=n>count<th class=n>in "
                       "batches<th class=n>failed<th class=n>cells<th class=n>mean<th "
                       "class=n>99th percentile</tr>\n");
        put_operation(t, (rq_op_kind)kind, &s);
    }
    rq__put(t, rows == 0 ? "<p>none</p>\n" : "</table></div>\n");
}

static void put_background(rq__text *t, const survey *s, const sums *u)
{
    const rq_engine_stats *e = &u->engine;
    rq__put(t, "<h2>Flushes and compactions</h2>\n<div class=s><table><tr><th>work<th "
               "class=n>queued<th class=n>done<th class=n>bytes<th>now</tr>\n<tr><td>flushes</td>");
    rq__cell_count(t, e->flush_queue);
    rq__cell_count(t, e->flushes);
    rq__cell_bytes(t, e->flushed_bytes);
    rq__put(t, "<td></td></tr>\n<tr><td>compactions</td>");
    rq__cell_count(t, e->compaction_queue);
    rq__cell_count(t, e->compactions);
    rq__cell_bytes(t, e->compacted_bytes);
    rq__put(t, "<td class=w>regions that compact or wait for it: ");
    rq__put_count(t, s->all.compacting);
    rq__put(t, "</td></tr>\n</table></div>\n");
    if (e->delayed_writes + e->refused_writes == 0) return;
    rq__put(t, "<p>Writes delayed because memstores were near their limit: ");
    rq__put_count(t, e->delayed_writes);
    rq__put(t, " delayed, ");
    rq__put_count(t, e->refused_writes);
    rq__put(t, " refused</p>\n");
}

/* --- the page --------------------------------------------------------------------------------- */

/* The two largest units. */
static void put_duration(rq__text *t, int64_t s)
{
    if (s >= 86400)
        rq__put(t, "%lld d %d h", (long long)(s / 86400), (int)(s / 3600 % 24));
    else if (s >= 3600)
        rq__put(t, "%d h %d min", (int)(s / 3600), (int)(s / 60 % 60));
    else if (s >= 60)
        rq__put(t, "%d min %d s", (int)(s / 60), (int)(s % 60));
    else
        rq__put(t, "%d s", (int)s);
}

static void put_head(rq__text *t, const rq__request *r)
{
    const rq_server_name *name = r->from->server;
    rq_executor *executor = r->from->env->executor;
    int64_t up_s = (executor->now_ms(executor) - name->start_code) / 1000;
    rq__put(t, "<p class=dim>Rorqual %s · ", rq__http_version(r->http));
    rq__put_html_cstr(t, name->text);
    rq__put(t, " · up ");
    put_duration(t, up_s);
    rq__put(t, r->from->is_member ? " · store " : " · data folder ");
    rq__put_html_cstr(t, r->from->folder);
    if (r->from->is_member)
        rq__put(t, " · %s",
                r->from->catalog == NULL ? "not the active master, whose page shows the cluster"
                                         : "the active master");
    rq__put(t, "</p>\n");
}

/* ?refresh=SECONDS: the browser asks again. */
static unsigned refresh_of(const rq__request *r)
{
    const char *text = rq__parameter(r, "refresh");
    unsigned long s = text == NULL ? 0 : strtoul(text, NULL, 10);
    return s > REFRESH_MAX_S ? REFRESH_MAX_S : (unsigned)s;
}

void rq__status_page(const rq__request *r, rq__page *p)
{
    survey s = {0};
    sums u;
    rq_err rc = look(r->from, &s);
    if (rc != RQ_OK) {
        rq_arena_clear(&s.arena);
        p->text.rc = rc;
        return;
    }
    add_up(r->from, &u);
    p->refresh_s = refresh_of(r);
    rq__html_begin(p, r->from->server->host);
    put_head(&p->text, r);
    rq__failures_put(&p->text, &s.failures);
    if (r->from->catalog != NULL) put_procedures(&p->text, r->from->catalog);
    if (r->from->catalog != NULL && r->from->is_member) {
        rq__put_cluster(&p->text, r->from);
        rq__put(&p->text, "<h2>This server</h2>\n");
    }
    put_tiles(&p->text, r, &s, &u);
    put_tables(&p->text, &s, r->from->is_member);
    put_operations(&p->text, r->from->ops);
    put_background(&p->text, &s, &u);
    rq__put(&p->text, "<h2>Slow and large calls</h2>\n");
    rq__slow_rows(r, p, SLOW_SHOWN);
    rq__html_end(p);
    rq_arena_clear(&s.arena);
}
