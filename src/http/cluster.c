/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster on the status page of its active master: servers and tables, with their regions, as the master's view has
 * them. What a server does is from its last report.
 *
 * All regions are counted within one epoch section, in one pass, with a binary search for the server where it differs from that of
 * the region before: with 100,000 regions some milliseconds. The first SERVERS_SHOWN servers and the TABLES_SHOWN tables with
 * most regions are shown.
 */
#include "http/http_priv.h"

#include <stdlib.h>

#define SERVERS_SHOWN 100
#define DEAD_SHOWN 20
#define TABLES_SHOWN 100

typedef struct counts {
    uint64_t regions, open, closed, failed; /* the others are on their way */
} counts;

typedef struct table_row {
    char *name; /* in the arena */
    rq_table_state state;
    counts counts;
} table_row;

typedef struct survey {
    const rq_http_sources *from;
    rq_arena arena;
    const rq_server_name **servers, **dead; /* references */
    size_t server_count, dead_count;
    uint64_t *open_on; /* regions, by server */
    const rq_server_name *
        last; /* the server of the region before; borrowed from the view, within the epoch section */
    size_t last_at;
    uint64_t elsewhere; /* open on servers that are not up any more */
    table_row *tables;
    size_t table_count;
    counts all;
    rq__failures failures;
} survey;

/* --- counting ----------------------------------------------------------------------------------- */

static void add_open(survey *s, const rq_server_name *server)
{
    if (server != s->last || server == NULL) {
        s->last = server;
        s->last_at = rq_server_names_find(s->servers, s->server_count, server);
    }
    if (s->last_at < s->server_count)
        s->open_on[s->last_at]++;
    else
        s->elsewhere++;
}

static rq_err add_region(survey *s, const rq_catalog_region *r, counts *to)
{
    to->regions++;
    to->open += r->state == RQ_REGION_OPEN;
    to->closed += r->state == RQ_REGION_CLOSED || r->state == RQ_REGION_OFFLINE;
    to->failed += r->state == RQ_REGION_FAILED_OPEN;
    if (r->state == RQ_REGION_OPEN) add_open(s, r->server);
    return r->state == RQ_REGION_FAILED_OPEN ? rq__failures_add(&s->failures, &s->arena, r) : RQ_OK;
}

static rq_err add_table(void *ctx, const rq_catalog_table *t, void *to)
{
    survey *s = ctx;
    table_row *row = to;
    row->name = rq_arena_cstr(&s->arena, t->schema->name);
    if (row->name == NULL) return RQ_E_NO_MEMORY;
    row->state = t->state;
    for (size_t i = 0; i < t->region_count; i++)
        RQ_TRY(add_region(s, rq_catalog_table_region(t, i), &row->counts));
    s->all.regions += row->counts.regions;
    s->all.open += row->counts.open;
    s->all.closed += row->counts.closed;
    s->all.failed += row->counts.failed;
    return RQ_OK;
}

static int most_regions_first(const void *a, const void *b)
{
    const table_row *x = a, *y = b;
    if (x->counts.regions != y->counts.regions)
        return x->counts.regions > y->counts.regions ? -1 : 1;
    return strcmp(x->name, y->name);
}

static rq_err look(survey *s)
{
    rq_catalog *c = s->from->catalog;
    void *rows = NULL;
    RQ_TRY(rq_catalog_servers(c, &s->arena, &s->servers, &s->server_count));
    RQ_TRY(rq_catalog_dead_servers(c, &s->arena, &s->dead, &s->dead_count));
    s->open_on = rq_arena_calloc(&s->arena, s->server_count + 1, sizeof *s->open_on);
    if (s->open_on == NULL) return RQ_E_NO_MEMORY;
    rq_err rc =
        rq__table_rows(s->from, &s->arena, sizeof *s->tables, add_table, s, &rows, &s->table_count);
    s->tables = rows;
    if (rc == RQ_OK) qsort(s->tables, s->table_count, sizeof *s->tables, most_regions_first);
    return rc;
}

static void clear(survey *s)
{
    for (size_t i = 0; i < s->server_count; i++)
        rq_server_name_unref(s->servers[i]);
    for (size_t i = 0; i < s->dead_count; i++)
        rq_server_name_unref(s->dead[i]);
    rq_arena_clear(&s->arena);
}

/* --- servers ------------------------------------------------------------------------------------- */

/* The name leads to the server's own pages. */
static void put_name(rq__text *t, const rq_server_name *name, const rq_server_load *load)
{
    bool has_pages = load != NULL && load->info_port > 0 && load->info_port <= UINT16_MAX;
    rq__put(t, "<td class=t>");
    if (has_pages) {
        rq__put(t, "<a href=\"http://");
        rq__put_html_cstr(t, RQ_HOST_PORT(name->host, (uint16_t)load->info_port));
        rq__put(t, "/\">");
    }
    rq__put_html_cstr(t, name->text);
    rq__put(t, "%s</td>", has_pages ? "</a>" : "");
}

static const char *role_of(const survey *s, const rq_server_name *name)
{
    if (strcmp(name->text, s->from->server->text) == 0) return "the active master";
    return rq_catalog_is_draining(s->from->catalog, name) ? "decommissioned" : "live";
}

static void put_server(rq__text *t, const survey *s, size_t at)
{
    rq_server_load load;
    const rq_server_name *name = s->servers[at];
    bool has = rq_catalog_server_load(s->from->catalog, name, &load);
    rq__put(t, "<tr>");
    put_name(t, name, has ? &load : NULL);
    rq__put(t, "<td>%s</td>", role_of(s, name));
    rq__cell_count(t, s->open_on[at]);
    if (has) {
        rq__cell_count(t, load.requests_per_second);
        rq__cell_count(t, load.reads);
        rq__cell_count(t, load.writes);
        rq__cell_bytes(t, (uint64_t)load.used_heap_mb << 20);
    } else {
        rq__put(t, "<td colspan=4>no report yet</td>");
    }
    rq__put(t, "</tr>\n");
}

static void put_dead(rq__text *t, const survey *s)
{
    for (size_t i = 0; i < s->dead_count && i < DEAD_SHOWN; i++) {
        rq__put(t, "<tr>");
        put_name(t, s->dead[i], NULL);
        rq__put(t, "<td>dead</td><td colspan=5></td></tr>\n");
    }
}

static void put_more(rq__text *t, size_t count, size_t shown, const char *what)
{
    if (count <= shown) return;
    rq__put(t, "<p class=dim>and ");
    rq__put_count(t, count - shown);
    rq__put(t, " more %s</p>\n", what);
}

static void put_servers(rq__text *t, const survey *s)
{
    rq__put(t, "<h2>Servers of the cluster</h2>\n<div class=s><table><tr><th>server<th>state<th "
               "class=n>open regions<th class=n>requests per second<th class=n>reads<th "
               "class=n>writes<th class=n>memory</tr>\n");
    for (size_t i = 0; i < s->server_count && i < SERVERS_SHOWN; i++)
        put_server(t, s, i);
    put_dead(t, s);
    rq__put(t, "</table></div>\n");
    put_more(t, s->server_count, SERVERS_SHOWN, "servers: rorqual cluster status lists all");
    put_more(t, s->dead_count, DEAD_SHOWN, "dead servers");
}

/* --- regions, tables ------------------------------------------------------------------------------- */

static uint64_t moving(const counts *c)
{
    return c->regions - c->open - c->closed - c->failed;
}

static void put_sums(rq__text *t, const survey *s)
{
    rq__put(t, "<p>");
    rq__put_count(t, s->all.regions);
    rq__put(t, " regions of %zu tables: ", s->table_count);
    rq__put_count(t, s->all.open);
    rq__put(t, " open, ");
    rq__put_count(t, moving(&s->all));
    rq__put(t, " in transition, ");
    rq__put_count(t, s->all.closed);
    rq__put(t, " closed, ");
    rq__put_count(t, s->all.failed);
    rq__put(t, " failed");
    if (s->elsewhere > 0) {
        rq__put(t, "; ");
        rq__put_count(t, s->elsewhere);
        rq__put(t, " of the open ones were on servers that have ended");
    }
    rq__put(t, "</p>\n");
}

static void put_table(rq__text *t, const table_row *r)
{
    rq__put(t, "<tr><td class=t>");
    rq__put_html_cstr(t, r->name);
    rq__put(t, "</td><td>%s</td>", rq__table_state_text(r->state));
    rq__cell_count(t, r->counts.regions);
    rq__cell_count(t, r->counts.open);
    rq__cell_count(t, moving(&r->counts));
    rq__cell_count(t, r->counts.closed);
    rq__cell_count(t, r->counts.failed);
    rq__put(t, "</tr>\n");
}

static void put_tables(rq__text *t, const survey *s)
{
    rq__put(t, "<h2>Tables of the cluster</h2>\n<div class=s><table><tr><th>table<th>state<th "
               "class=n>regions<th class=n>open<th class=n>in transition<th class=n>closed<th "
               "class=n>failed</tr>\n");
    for (size_t i = 0; i < s->table_count && i < TABLES_SHOWN; i++)
        put_table(t, &s->tables[i]);
    rq__put(t, "</table></div>\n");
    put_more(t, s->table_count, TABLES_SHOWN, "tables, with fewer regions");
}

void rq__put_cluster(rq__text *t, const rq_http_sources *from)
{
    survey s = {.from = from};
    rq_err rc = look(&s);
    if (rc == RQ_OK) {
        rq__failures_put(t, &s.failures);
        put_servers(t, &s);
        put_sums(t, &s);
        put_tables(t, &s);
    } else if (t->rc == RQ_OK) {
        t->rc = rc;
    }
    clear(&s);
}
