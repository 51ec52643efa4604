/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's tables: found by name in a hash table, and kept as long as the client exists. Only the MAPS_MAX
 * tables used last keep their region maps; the map of another table is read again when an operation needs it.
 * The map of a table opened by rq_client_table_open is kept until the caller, who reads it, closes the table.
 *
 *     newest ─► … ─► oldest      tables with a map that may be dropped, by their last use
 */
#include "client/client_priv.h"

#include <stdlib.h>

#define MAPS_MAX 1000

/* --- maps by their last use ------------------------------------------------------------------- */

static void unlink_map(rq_client *c, rq_client_table *t)
{
    *(t->newer == NULL ? &c->newest : &t->newer->older) = t->older;
    *(t->older == NULL ? &c->oldest : &t->older->newer) = t->newer;
    t->is_listed = false;
    c->map_count--;
}

static void link_map(rq_client *c, rq_client_table *t)
{
    t->newer = NULL;
    t->older = c->newest;
    *(c->newest == NULL ? &c->oldest : &c->newest->newer) = t;
    c->newest = t;
    t->is_listed = true;
    c->map_count++;
}

void rq__map_used(rq_client_table *t)
{
    rq_client *c = t->client;
    if (RQ_LIKELY(c->newest == t) || !t->is_listed) return;
    unlink_map(c, t);
    link_map(c, t);
}

static void drop_map(rq_client *c, rq_client_table *t)
{
    unlink_map(c, t);
    rq_arena_clear(&t->arena);
    free(t->regions);
    t->regions = NULL;
    t->region_count = 0;
    if (!t->refreshing) rq_buf_clear(&t->request);
}

void rq__map_replaced(rq_client_table *t)
{
    rq_client *c = t->client;
    if (t->keeps_map) return;
    if (!t->is_listed) link_map(c, t);
    rq__map_used(t);
    if (c->map_count > MAPS_MAX) drop_map(c, c->oldest);
}

/* --- by name ---------------------------------------------------------------------------------- */

static rq_client_table **bucket_of(const rq_client *c, const char *name)
{
    return &c->buckets[rq__text_hash(name) & (c->bucket_count - 1)];
}

static rq_err grow_buckets(rq_client *c)
{
    if (c->table_count < c->bucket_count) return RQ_OK;
    size_t count = c->bucket_count == 0 ? 16 : 2 * c->bucket_count;
    rq_client_table **buckets = calloc(count, sizeof(rq_client_table *));
    if (buckets == NULL) return RQ_E_NO_MEMORY;
    free(c->buckets);
    c->buckets = buckets;
    c->bucket_count = count;
    for (rq_client_table *t = c->tables; t != NULL; t = t->next) {
        rq_client_table **bucket = bucket_of(c, t->name);
        t->same_bucket = *bucket;
        *bucket = t;
    }
    return RQ_OK;
}

static rq_err table_new(rq_client *c, const char *name, rq_client_table **ret)
{
    RQ_TRY(grow_buckets(c));
    rq_client_table *t = calloc(1, sizeof *t);
    if (t == NULL || (t->name = strdup(name)) == NULL) {
        free(t);
        return RQ_E_NO_MEMORY;
    }
    t->client = c;
    if (strncmp(name, "hbase:", 6) == 0) t->priority = RQ__PRIORITY_META; /* HBASE: calcPriority */
    rq_client_table **bucket = bucket_of(c, name);
    t->same_bucket = *bucket;
    *bucket = t;
    t->next = c->tables;
    if (c->tables != NULL) c->tables->prev = t;
    c->tables = t;
    c->table_count++;
    *ret = t;
    return RQ_OK;
}

static void table_free(rq_client_table *t)
{
    rq_arena_clear(&t->arena);
    rq_arena_clear(&t->next_arena);
    rq_buf_clear(&t->request);
    free(t->regions);
    free(t->next_regions);
    free(t->refresh_text);
    free(t->name);
    free(t);
}

void rq__tables_free(rq_client *c)
{
    while (c->tables != NULL) {
        rq_client_table *t = c->tables;
        c->tables = t->next;
        table_free(t);
    }
    free(c->buckets);
}

/* REQUIRES: its map is not in the list by last use, and is not being read. */
static void forget_table(rq_client *c, rq_client_table *t)
{
    rq_client_table **at = bucket_of(c, t->name);
    while (*at != t)
        at = &(*at)->same_bucket;
    *at = t->same_bucket;
    *(t->prev == NULL ? &c->tables : &t->prev->next) = t->next;
    if (t->next != NULL) t->next->prev = t->prev;
    c->table_count--;
    table_free(t);
}

/* A table that rq_client_table_open has opened is not returned, because its opener may close it. */
rq_err rq_client_table_get(rq_client *c, const char *name, rq_client_table **ret)
{
    rq_client_table *t = c->bucket_count == 0 ? NULL : *bucket_of(c, name);
    while (t != NULL && (t->keeps_map || strcmp(t->name, name) != 0))
        t = t->same_bucket;
    *ret = t;
    if (t != NULL) return RQ_OK;
    RQ_TRY(table_new(c, name, ret));
    if (strcmp(name, "hbase:meta") == 0) rq__map_refresh(*ret); /* known at once */
    return RQ_OK;
}

rq_err rq_client_table_open(rq_client *c, const char *name, rq_client_table **ret, rq_error *why)
{
    rq_client_table *t;
    if (table_new(c, name, &t) != RQ_OK) return rq_no_memory(why);
    t->keeps_map = true;
    for (unsigned attempt = 0;; attempt++) {
        rq__map_refresh(t);
        while (t->refreshing)
            rq_client_poll(c, 10000000);
        if (t->refresh_err == RQ_OK && t->region_count > 0) break;
        rq_err rc = rq__map_empty_error(t);
        if (attempt >= 3 || c->stopped) {
            (void)rq_fail(why, rc, "table %s: %s", name,
                          t->refresh_err != RQ_OK ? rq__refresh_text(t)
                          : t->has_rows
                              ? "none of its regions has a server"
                              : "the table does not exist: hbase:meta has no region of it");
            forget_table(c, t);
            return rc;
        }
        rq_client_pause(c, (int64_t)c->options.pause_ms * 1000000);
    }
    *ret = t;
    return RQ_OK;
}

void rq_client_table_close(rq_client_table *t)
{
    rq_client *c = t->client;
    while (t->refreshing)
        rq_client_poll(c, 10000000);
    forget_table(c, t);
}

size_t rq_client_table_regions(const rq_client_table *t)
{
    return t->region_count;
}

size_t rq_client_table_servers(const rq_client_table *t)
{
    return rq__servers_count(t->client);
}

rq_err rq_client_table_read(rq_client_table *t, rq_error *why)
{
    rq_client *c = t->client;
    rq__repeat repeat = {.max = c->options.retries, .until_ns = rq_client_now_ns() + c->timeout_ns};
    do {
        rq__map_refresh(t);
        while (t->refreshing)
            rq_client_poll(c, 10000000);
    } while (rq__client_again(c, &repeat, t->refresh_err, !rq_err_do_not_retry(t->refresh_err)));
    return t->refresh_err == RQ_OK
               ? RQ_OK
               : rq_fail(why, t->refresh_err, "table %s: %s", t->name, rq__refresh_text(t));
}

/* A region's specifier is a field with { type 1, value 2 }: its name. */
static rq_slice name_of(rq_slice specifier)
{
    rq_cursor c = rq_cursor_of(specifier);
    rq_pb_field f;
    if (rq_pb_next(&c, &f) != RQ_OK) return (rq_slice){0};
    c = rq_cursor_of(f.bytes);
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 2) return f.bytes;
    return (rq_slice){0};
}

static rq_client_region region_of(const rq_client_table *t, const rq__region *r)
{
    static const rq__address nowhere = {.port = 0};
    const rq__address *at =
        r->server == RQ__NO_SERVER ? &nowhere : &t->client->servers[r->server].at;
    return (rq_client_region){.name = name_of(r->specifier),
                              .start = r->start,
                              .end = r->end,
                              .host = at->host,
                              .port = at->port,
                              .start_code = r->start_code};
}

rq_client_region rq_client_table_region(const rq_client_table *t, size_t i)
{
    return region_of(t, &t->regions[i]);
}

rq_err rq_client_table_find(const rq_client_table *t, rq_slice row, rq_client_region *ret)
{
    if (t->region_count == 0) return rq__map_empty_error(t);
    const rq__region *r = rq__map_locate(t, row);
    if (r == NULL || r->server == RQ__NO_SERVER) return RQ_E_NOT_SERVING_REGION;
    *ret = region_of(t, r);
    return RQ_OK;
}

int64_t rq_client_table_read_at(const rq_client_table *t)
{
    return t->refreshed_ns;
}
