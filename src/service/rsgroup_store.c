/* SPDX-License-Identifier: Apache-2.0 */
/* The groups in hbase:rsgroup: a row per group, m:i = RSGroupInfo. The group "default" has no row:
 * it has all servers and tables that are in no other group. HBASE: RSGroupInfoManagerImpl, which
 * writes a row of "default" but never reads it. */
#include "service/rsgroup.h"

#include "base/pb_arena.h"
#include "service/messages.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TABLE RQ_SLICE_LIT("hbase:rsgroup")
#define FAMILY "m"
#define QUALIFIER RQ_SLICE_LIT("i")

/* --- places ----------------------------------------------------------------------------------- */

static int order_servers(const void *a, const void *b)
{
    const Pb__ServerName *x = ((const rq__place *)a)->what, *y = ((const rq__place *)b)->what;
    int c = strcasecmp(x->host_name, y->host_name);
    return c != 0 ? c : (x->port > y->port) - (x->port < y->port);
}

static int order_tables(const void *a, const void *b)
{
    const Pb__TableName *x = ((const rq__place *)a)->what, *y = ((const rq__place *)b)->what;
    int c = rq_slice_compare(rq__pb_slice(x->namespace_), rq__pb_slice(y->namespace_));
    return c != 0 ? c : rq_slice_compare(rq__pb_slice(x->qualifier), rq__pb_slice(y->qualifier));
}

static int by_rank(const rq__place *a, const rq__place *b)
{
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int sort_servers(const void *a, const void *b)
{
    int c = order_servers(a, b);
    return c != 0 ? c : by_rank(a, b);
}

static int sort_tables(const void *a, const void *b)
{
    int c = order_tables(a, b);
    return c != 0 ? c : by_rank(a, b);
}

/* Keeps the first place of each thing. */
static void sort_places(rq__places *p)
{
    size_t kept = 0;
    if (p->count == 0) return;
    qsort(p->list, p->count, sizeof *p->list,
          p->order == order_tables ? sort_tables : sort_servers);
    for (size_t i = 1; i < p->count; i++)
        if (p->order(&p->list[i], &p->list[kept]) != 0) p->list[++kept] = p->list[i];
    p->count = kept + 1;
}

static void add_place(rq__places *p, const void *what, Pb__RSGroupInfo *group)
{
    p->list[p->count] = (rq__place){what, group, p->count};
    p->count++;
}

static const rq__place *find(const rq__places *p, const void *what)
{
    rq__place key = {.what = what};
    return p->count == 0 ? NULL : bsearch(&key, p->list, p->count, sizeof *p->list, p->order);
}

static rq_err places_of(rq_arena *arena, const void *const *list, size_t count,
                        int (*order)(const void *a, const void *b), rq__places *ret)
{
    *ret =
        (rq__places){.list = rq_arena_calloc(arena, count + 1, sizeof *ret->list), .order = order};
    if (ret->list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        add_place(ret, list[i], NULL);
    sort_places(ret);
    return RQ_OK;
}

rq_err rq__places_of_servers(rq_arena *arena, Pb__ServerName *const *list, size_t count,
                             rq__places *ret)
{
    return places_of(arena, (const void *const *)list, count, order_servers, ret);
}

rq_err rq__places_of_tables(rq_arena *arena, Pb__TableName *const *list, size_t count,
                            rq__places *ret)
{
    return places_of(arena, (const void *const *)list, count, order_tables, ret);
}

/* Where everything is now. */
static rq_err note_places(rq__groups *g)
{
    size_t servers = 1, tables = 1;
    for (size_t i = 0; i < g->count; i++) {
        servers += g->list[i]->n_servers;
        tables += g->list[i]->n_tables;
    }
    g->servers = (rq__places){.list = rq_arena_calloc(g->arena, servers, sizeof(rq__place)),
                              .order = order_servers};
    g->tables = (rq__places){.list = rq_arena_calloc(g->arena, tables, sizeof(rq__place)),
                             .order = order_tables};
    if (g->servers.list == NULL || g->tables.list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < g->count; i++) {
        Pb__RSGroupInfo *of = g->list[i];
        for (size_t k = 0; k < of->n_servers; k++)
            add_place(&g->servers, of->servers[k], of);
        for (size_t k = 0; k < of->n_tables; k++)
            add_place(&g->tables, of->tables[k], of);
    }
    sort_places(&g->servers);
    sort_places(&g->tables);
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err add_group(rq__groups *g, Pb__RSGroupInfo *m)
{
    if (g->count == g->cap) {
        size_t cap = g->cap == 0 ? 8 : g->cap * 2;
        Pb__RSGroupInfo **more = rq_arena_alloc(g->arena, cap * sizeof(Pb__RSGroupInfo *));
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (g->count > 0) memcpy(more, g->list, g->count * sizeof(Pb__RSGroupInfo *));
        g->list = more;
        g->cap = cap;
    }
    g->list[g->count++] = m;
    return RQ_OK;
}

/* Any client may write to the table: malformed rows are skipped. */
static rq_err read_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    rq__groups *g = ctx;
    rq_pb_arena memory;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        if (!rq_slice_eq(rq_cell_qualifier(&cells[i]), QUALIFIER)) continue;
        rq_pb_arena_init(&memory, g->arena);
        Pb__RSGroupInfo *m =
            pb__rsgroup_info__unpack(&memory.allocator, cells[i].value_len, cells[i].value);
        if (memory.exhausted) return RQ_E_NO_MEMORY;
        bool is_good = m != NULL && rq_slice_eq(rq_slice_cstr(m->name), rq_cell_row(&cells[i])) &&
                       strcmp(m->name, RQ__DEFAULT_GROUP) != 0;
        if (is_good) RQ_TRY(add_group(g, m));
    }
    return RQ_OK;
}

static rq_err add_own_server(rq__groups *g, Pb__RSGroupInfo *of)
{
    const rq_server_name *self = rq_catalog_server(g->services->catalog);
    Pb__ServerName *m = rq__server_name_message(g->arena, self);
    of->servers = rq_arena_alloc(g->arena, sizeof(Pb__ServerName *));
    if (m == NULL || of->servers == NULL) return RQ_E_NO_MEMORY;
    m->has_start_code = 0; /* an address */
    if (rq__group_of_server(g, m) == NULL) of->servers[of->n_servers++] = m;
    return RQ_OK;
}

static rq_err add_other_tables(rq__groups *g, Pb__RSGroupInfo *of)
{
    rq_epoch_member m = {0};
    const rq_catalog_table *const *tables;
    size_t count;
    rq_err rc = RQ_OK;
    rq_epoch_pin(g->services->env.epoch, &m);
    rq_catalog_tables(g->services->catalog, &tables, &count);
    of->tables = rq_arena_alloc(g->arena, (count + 1) * sizeof(Pb__TableName *));
    if (of->tables == NULL) rc = RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_slice ns = rq_arena_copy(g->arena, tables[i]->schema->ns);
        rq_slice qualifier = rq_arena_copy(g->arena, tables[i]->schema->qualifier);
        Pb__TableName *name = rq__table_name_message(g->arena, ns, qualifier);
        if (ns.ptr == NULL || qualifier.ptr == NULL || name == NULL)
            rc = RQ_E_NO_MEMORY;
        else if (rq__group_of_table(g, name) == NULL)
            of->tables[of->n_tables++] = name;
    }
    rq_epoch_unpin(g->services->env.epoch, &m);
    return rc;
}

rq_err rq__groups_read(rq_admin_services *s, rq_arena *arena, rq__groups *ret, rq_error *why)
{
    *ret = (rq__groups){.services = s, .arena = arena};
    RQ_TRY(rq_catalog_need_rsgroup_table(s->catalog, why));
    RQ_TRY(rq_catalog_each_row(s->catalog, TABLE, read_row, ret, why));
    Pb__RSGroupInfo *rest = rq_arena_alloc(arena, sizeof *rest);
    if (rest == NULL) return RQ_E_NO_MEMORY;
    pb__rsgroup_info__init(rest);
    rest->name = (char *)(uintptr_t)RQ__DEFAULT_GROUP;
    RQ_TRY(note_places(ret));
    RQ_TRY(add_own_server(ret, rest));
    RQ_TRY(add_other_tables(ret, rest));
    RQ_TRY(add_group(ret, rest));
    return note_places(ret);
}

/* --- finding ---------------------------------------------------------------------------------- */

Pb__RSGroupInfo *rq__group_find(const rq__groups *g, const char *name)
{
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->list[i]->name, name) == 0) return g->list[i];
    return NULL;
}

Pb__RSGroupInfo *rq__group_of_server(const rq__groups *g, const Pb__ServerName *server)
{
    const rq__place *p = find(&g->servers, server);
    return p == NULL ? NULL : p->group;
}

Pb__RSGroupInfo *rq__group_of_table(const rq__groups *g, const Pb__TableName *table)
{
    const rq__place *p = find(&g->tables, table);
    return p == NULL ? NULL : p->group;
}

/* --- changing --------------------------------------------------------------------------------- */

/* Removes them from a list; returns how many are left. */
static size_t drop(const void **list, size_t count, const rq__places *gone)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (find(gone, list[i]) == NULL) list[kept++] = list[i];
    return kept;
}

void rq__groups_drop_servers(rq__groups *g, const rq__places *gone)
{
    for (size_t i = 0; i < g->count; i++)
        g->list[i]->n_servers =
            drop((const void **)g->list[i]->servers, g->list[i]->n_servers, gone);
}

void rq__groups_drop_tables(rq__groups *g, const rq__places *gone)
{
    for (size_t i = 0; i < g->count; i++)
        g->list[i]->n_tables = drop((const void **)g->list[i]->tables, g->list[i]->n_tables, gone);
}

/* --- writing ---------------------------------------------------------------------------------- */

rq_err rq__groups_write(const rq__groups *g, const char *const *gone, size_t gone_count,
                        Pb__RSGroupInfo *const *changed, size_t count, rq_error *why)
{
    rq_row_change *list = rq_arena_calloc(g->arena, gone_count + count, sizeof *list);
    size_t n = 0;
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < gone_count; i++)
        list[n++] = (rq_row_change){.row = rq_slice_cstr(gone[i])};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(changed[i]->name, RQ__DEFAULT_GROUP) == 0) continue;
        size_t len = pb__rsgroup_info__get_packed_size(changed[i]);
        uint8_t *bytes = rq_arena_alloc(g->arena, len + 1);
        if (bytes == NULL) return RQ_E_NO_MEMORY;
        (void)pb__rsgroup_info__pack(changed[i], bytes);
        list[n++] = (rq_row_change){rq_slice_cstr(changed[i]->name), rq_slice_of(bytes, len)};
    }
    return rq_catalog_rows_change(g->services->catalog, TABLE, FAMILY, QUALIFIER, list, n, why);
}
