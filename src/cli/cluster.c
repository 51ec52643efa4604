/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. Regions come first; servers, tables and namespaces are their sums. */
#include "cli/cluster.h"

#include "catalog/folder.h"
#include "cli/args.h"
#include "descriptor/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_S 5

/* --- options ---------------------------------------------------------------------------------- */

int rq__cluster_where_resolve(rq__cluster_where *w, const char *command)
{
    rq_client_options *c = &w->client;
    if ((c->zookeeper != NULL) + (c->bootstrap != NULL) + (w->data != NULL) > 1)
        return rq__refuse(command, "%s and %s exclude each other",
                          c->zookeeper != NULL ? "--zk" : "--bootstrap",
                          w->data != NULL ? "--data" : "--bootstrap");
    const char *at = c->zookeeper != NULL ? c->zookeeper : c->bootstrap;
    if (at != NULL && !rq_client_is_address(at))
        return rq__refuse(command, "'%s' is not host:port", at);
    if (at == NULL) c->zookeeper = "127.0.0.1:2181";
    c->rpc_timeout_ms = (unsigned)(w->timeout_s == 0 ? TIMEOUT_S : w->timeout_s) * 1000;
    return -1;
}

rq_err rq__cluster_open(const rq__cluster_where *w, rq__cluster_link *ret, rq_error *why)
{
    *ret = (rq__cluster_link){.where = w};
    if (w->data != NULL) return rq_vfs_posix_new(w->data, &ret->vfs, why);
    return rq_client_open(&w->client, &ret->client, why);
}

void rq__cluster_close(rq__cluster_link *l)
{
    rq_client_close(l->client);
    if (l->vfs != NULL) rq_vfs_free(l->vfs);
    *l = (rq__cluster_link){0};
}

void rq__cluster_clear(rq__cluster *c)
{
    rq_arena_clear(&c->arena);
    rq_cluster_status_clear(&c->status);
    *c = (rq__cluster){0};
}

void rq__cluster_print_failure(const rq__cluster_where *w, const char *command, rq_err rc,
                               const rq_error *why)
{
    const char *text = why->message[0] != '\0' ? why->message : rq_err_text(rc);
    bool is_named = w->data == NULL || strstr(text, w->data) != NULL;
    fprintf(stderr, "rorqual %s: %s%s%s\n", command, is_named ? "" : w->data, is_named ? "" : ": ",
            text);
}

/* --- sums ------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const rq__cluster_row *x = a, *y = b;
    int order = rq_slice_compare(x->name, y->name);
    return order != 0 ? order : rq_slice_compare(x->encoded, y->encoded);
}

static void sort(rq__cluster_rows *rows)
{
    if (rows->count > 1) qsort(rows->list, rows->count, sizeof *rows->list, by_name);
}

static rq_err make_room(rq__cluster *c, rq__cluster_rows *rows, size_t count)
{
    rows->list = rq_arena_calloc(&c->arena, count + 1, sizeof *rows->list);
    return rows->list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* Adds all figures except the number of regions, which tables have from the master. */
static void add_load(rq__cluster_row *to, const rq__cluster_row *r)
{
    to->stores += r->stores;
    to->files += r->files;
    to->bytes += r->bytes;
    to->memstore_bytes += r->memstore_bytes;
    to->reads += r->reads;
    to->writes += r->writes;
    to->compacting += r->compacting;
}

static void add_counts(rq__cluster_row *to, const rq__cluster_row *r)
{
    to->regions += r->regions;
    to->open += r->open;
    to->in_transition += r->in_transition;
}

/* The name of a region begins with its table's name, and that with its namespace's. */
static rq_slice until(rq_slice s, char end)
{
    const uint8_t *at = s.len == 0 ? NULL : memchr(s.ptr, end, s.len);
    return at == NULL ? s : rq_slice_of(s.ptr, (size_t)(at - s.ptr));
}

static rq_slice namespace_of(rq_slice table)
{
    rq_slice ns = until(table, ':');
    return ns.len == table.len ? RQ_SLICE_LIT("default") : ns;
}

static rq__cluster_row *find(const rq__cluster_rows *rows, rq_slice name, rq_slice encoded)
{
    const rq__cluster_row key = {.name = name, .encoded = encoded};
    if (rows->count == 0) return NULL;
    return bsearch(&key, rows->list, rows->count, sizeof key, by_name);
}

/* Adds tables that the master's list lacks (hbase:meta) but that have regions. REQUIRES: tables and
 * regions are sorted. */
static rq_err sum_tables(rq__cluster *c)
{
    rq__cluster_rows more = {0};
    RQ_TRY(make_room(c, &more, c->tables.count + c->regions.count));
    memcpy(more.list, c->tables.list, c->tables.count * sizeof *more.list);
    more.count = c->tables.count;
    rq__cluster_row *table = NULL;
    bool is_counted = false;
    for (size_t i = 0; i < c->regions.count; i++) {
        const rq__cluster_row *r = &c->regions.list[i];
        rq_slice name = until(r->name, ',');
        if (table == NULL || !rq_slice_eq(table->name, name)) {
            rq__cluster_rows known = {more.list, c->tables.count};
            table = find(&known, name, (rq_slice){0});
            is_counted = table != NULL;
            if (table == NULL) {
                table = &more.list[more.count++];
                *table = (rq__cluster_row){.name = name, .state = "enabled"};
            }
        }
        add_load(table, r);
        if (!is_counted) add_counts(table, r);
    }
    sort(&more);
    c->tables = more;
    return RQ_OK;
}

/* There are few servers, so the search is linear. */
static rq_err sum_namespaces(rq__cluster *c)
{
    RQ_TRY(make_room(c, &c->namespaces, c->tables.count));
    for (size_t i = 0; i < c->tables.count; i++) {
        const rq__cluster_row *t = &c->tables.list[i];
        rq_slice name = namespace_of(t->name);
        size_t at = 0;
        while (at < c->namespaces.count && !rq_slice_eq(c->namespaces.list[at].name, name))
            at++;
        rq__cluster_row *n = &c->namespaces.list[at];
        if (at == c->namespaces.count) {
            *n = (rq__cluster_row){.name = name, .state = ""};
            c->namespaces.count++;
        }
        add_load(n, t);
        add_counts(n, t);
        add_load(&c->total, t);
        add_counts(&c->total, t);
    }
    sort(&c->namespaces);
    return RQ_OK;
}

/* --- a cluster -------------------------------------------------------------------------------- */

/* Cuts the name "table,start,time.encoded." to "table,start". Names without time and encoded name
 * (hbase:meta's) are kept whole. */
static void set_name(rq__cluster_row *row, rq_slice name)
{
    size_t len = name.len;
    row->name = name;
    if (len < RQ_ENCODED_NAME_LEN + 2 || name.ptr[len - 1] != '.' ||
        name.ptr[len - RQ_ENCODED_NAME_LEN - 2] != '.')
        return;
    row->encoded = rq_slice_of(name.ptr + len - RQ_ENCODED_NAME_LEN - 1, RQ_ENCODED_NAME_LEN);
    len -= RQ_ENCODED_NAME_LEN + 2;
    while (len > 0 && name.ptr[len - 1] != ',')
        len--;
    if (len > 0) row->name.len = len - 1;
}

static rq__cluster_row region_row(const rq_region_status *r, size_t server)
{
    rq__cluster_row row = {.state = "",
                           .server = server,
                           .regions = 1,
                           .open = 1,
                           .stores = r->stores,
                           .files = r->files,
                           .bytes = (uint64_t)r->size_mb << 20,
                           .memstore_bytes = (uint64_t)r->memstore_mb << 20,
                           .reads = r->reads,
                           .writes = r->writes,
                           .compacting = r->compacts};
    set_name(&row, r->name);
    return row;
}

static rq_err take_servers(rq__cluster *c)
{
    const rq_cluster_status *s = &c->status;
    RQ_TRY(make_room(c, &c->servers, s->server_count));
    RQ_TRY(make_room(c, &c->regions, s->region_count));
    for (size_t i = 0; i < s->server_count; i++) {
        const rq_server_status *from = &s->servers[i];
        char *name = rq_arena_printf(&c->arena, "%.*s:%u", (int)from->name.host.len,
                                     (const char *)from->name.host.ptr, from->name.port);
        if (name == NULL) return RQ_E_NO_MEMORY;
        rq__cluster_row *to = &c->servers.list[c->servers.count++];
        *to = (rq__cluster_row){.name = rq_slice_cstr(name),
                                .state = "",
                                .requests_s = from->requests_per_s,
                                .heap_used = (uint64_t)from->heap_used_mb << 20,
                                .heap_max = (uint64_t)from->heap_max_mb << 20,
                                .start_ms = from->name.start_ms};
        for (size_t r = 0; r < from->region_count; r++) {
            rq__cluster_row row = region_row(&s->regions[from->first_region + r], i);
            add_load(to, &row);
            add_counts(to, &row);
            c->regions.list[c->regions.count++] = row;
        }
    }
    sort(&c->regions);
    return RQ_OK;
}

static const char *state_of(const rq_table_status *t)
{
    if (t->in_transition > 0) return "changing";
    return t->total > 0 && t->closed == t->total ? "disabled" : "enabled";
}

static rq_err take_tables(rq__cluster *c)
{
    const rq_cluster_status *s = &c->status;
    RQ_TRY(make_room(c, &c->tables, s->table_count));
    for (size_t i = 0; i < s->table_count; i++) {
        const rq_table_status *from = &s->tables[i];
        rq_slice name = rq_table_name_join(&c->arena, from->ns, from->qualifier);
        if (name.ptr == NULL) return RQ_E_NO_MEMORY;
        c->tables.list[c->tables.count++] = (rq__cluster_row){.name = name,
                                                              .state = state_of(from),
                                                              .regions = from->total,
                                                              .open = from->open,
                                                              .in_transition = from->in_transition};
    }
    sort(&c->tables);
    return sum_tables(c);
}

static rq_err look_at_cluster(rq__cluster_link *l, rq__cluster *c, rq_error *why)
{
    c->is_live = true;
    RQ_TRY(rq_client_status(l->client, &c->status, why));
    RQ_TRY(take_servers(c));
    RQ_TRY(take_tables(c));
    return sum_namespaces(c);
}

/* --- a folder --------------------------------------------------------------------------------- */

static rq_err take_folder(rq__cluster *c, const rq_folder *f)
{
    RQ_TRY(make_room(c, &c->regions, f->region_count));
    RQ_TRY(make_room(c, &c->tables, f->table_count));
    for (size_t i = 0; i < f->region_count; i++) {
        const rq_folder_region *from = &f->regions[i];
        rq__cluster_row *to = &c->regions.list[c->regions.count++];
        *to = (rq__cluster_row){.state = "",
                                .regions = 1,
                                .stores = from->stores,
                                .files = from->files,
                                .bytes = from->bytes};
        set_name(to, from->info.name);
    }
    for (size_t i = 0; i < f->table_count; i++) {
        c->tables.list[c->tables.count++] = (rq__cluster_row){
            .name = f->tables[i].name, .state = f->tables[i].disabled ? "disabled" : "enabled"};
    }
    sort(&c->regions);
    sort(&c->tables);
    for (size_t i = 0; i < c->regions.count; i++) {
        rq__cluster_row *t = find(&c->tables, until(c->regions.list[i].name, ','), (rq_slice){0});
        if (t != NULL) t->regions++;
    }
    return sum_tables(c);
}

static rq_err look_at_folder(rq__cluster_link *l, rq__cluster *c, rq_error *why)
{
    rq_folder f;
    rq_err rc = rq_folder_read(l->vfs, &c->arena, &f, why);
    if (rc == RQ_E_LOCKED) {
        why->code = RQ_OK;
        return rq_fail(why, rc,
                       "a server runs on this folder: ask the server instead (without --data)");
    }
    RQ_TRY(rc);
    c->was_open = f.was_open;
    c->log_records = f.log_records;
    c->problems = f.problems;
    RQ_TRY(take_folder(c, &f));
    return sum_namespaces(c);
}

rq_err rq__cluster_look(rq__cluster_link *l, rq__cluster *ret, rq_error *why)
{
    *ret = (rq__cluster){.taken_ns = rq_client_now_ns()};
    rq_err rc = l->vfs != NULL ? look_at_folder(l, ret, why) : look_at_cluster(l, ret, why);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- rates ------------------------------------------------------------------------------------ */

static void add_rates(rq__cluster_row *to, const rq__cluster_row *r)
{
    if (to == NULL) return;
    to->reads_s += r->reads_s;
    to->writes_s += r->writes_s;
}

void rq__cluster_rates(rq__cluster *now, const rq__cluster *before)
{
    double seconds = (double)(now->taken_ns - before->taken_ns) / 1e9;
    if (seconds <= 0) return;
    for (size_t i = 0; i < now->regions.count; i++) {
        rq__cluster_row *r = &now->regions.list[i];
        const rq__cluster_row *old = find(&before->regions, r->name, r->encoded);
        if (old == NULL || r->reads < old->reads || r->writes < old->writes) continue;
        r->reads_s = (double)(r->reads - old->reads) / seconds;
        r->writes_s = (double)(r->writes - old->writes) / seconds;
        rq__cluster_row *t = find(&now->tables, until(r->name, ','), (rq_slice){0});
        add_rates(t, r);
        if (t != NULL) add_rates(find(&now->namespaces, namespace_of(t->name), (rq_slice){0}), r);
        if (r->server < now->servers.count) add_rates(&now->servers.list[r->server], r);
        add_rates(&now->total, r);
    }
}

const char *rq__amount(double n, bool bytes, char ret[RQ__AMOUNT_SIZE])
{
    const char *units = bytes ? " KMGTPE" : " kMGTPE";
    double base = bytes ? 1024 : 1000;
    size_t unit = 0;
    while (n >= base && units[unit + 1] != '\0') {
        n /= base;
        unit++;
    }
    if (unit == 0)
        snprintf(ret, RQ__AMOUNT_SIZE, "%.0f", n);
    else
        snprintf(ret, RQ__AMOUNT_SIZE, n < 100 ? "%.1f%c" : "%.0f%c", n, units[unit]);
    return ret;
}
