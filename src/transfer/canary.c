/* SPDX-License-Identifier: Apache-2.0 */
/* See canary.h. */
#include "transfer/canary.h"

#include "base/arena.h"
#include "client/status.h"
#include "transfer/link.h"
#include "transfer/scan.h"

#define PAUSE_NS 100000000 /* before the first repetition; doubled each time */

typedef struct canary_job {
    const rq_canary *c;
    rq_client *client;
    rq_buf fields; /* of the scan: the first key of a row, without its value */
} canary_job;

static rq_err ignore_row(void *ctx, rq_op_result *row, rq_error *why)
{
    (void)ctx;
    (void)row;
    (void)why;
    return RQ_OK;
}

/* Reports that a whole table could not be read. */
static void report(const canary_job *j, const char *table, rq_err rc, const rq_error *why)
{
    const rq_canary_read r = {.table = table, .err = rc, .why = why->message};
    j->c->read(j->c->ctx, &r);
}

/* Reads the region's first row. */
static rq_err read_rows(canary_job *j, rq__link *l, rq_client_region region, rq_error *why)
{
    static const rq__scan_calls calls = {.row = ignore_row};
    rq_arena arena = {0};
    rq_slice start = rq_arena_copy(&arena, region.start), end = rq_arena_copy(&arena, region.end);
    rq_scan scan = rq__scan_of(NULL, start, end, &j->fields);
    scan.limit = 1;
    rq_err rc = start.ptr == NULL || end.ptr == NULL ? rq_no_memory(why)
                                                     : rq__link_scan(l, &scan, &calls, why);
    rq_arena_clear(&arena);
    return rc;
}

static bool is_served(const rq__link *l, size_t i)
{
    return rq_client_table_region(l->table, i).host[0] != '\0';
}

static void read_region(canary_job *j, rq__link *l, const char *table, size_t i)
{
    rq_error why = {.code = RQ_OK};
    rq_canary_read r = {.table = table};
    int64_t begun = rq_client_now_ns();
    r.err = is_served(l, i) ? read_rows(j, l, rq_client_table_region(l->table, i), &why)
                            : rq_fail(&why, RQ_E_NOT_SERVING_REGION,
                                      "table %s: the region has no server", table);
    r.ns = rq_client_now_ns() - begun;
    r.why = why.message;
    /* The region list may be newer than the plan: a region that is gone was read as part of its
     * successor. */
    if (i < rq_client_table_regions(l->table)) r.region = rq_client_table_region(l->table, i);
    j->c->read(j->c->ctx, &r);
}

static bool all_served(const rq__link *l)
{
    size_t i = 0;
    while (i < rq_client_table_regions(l->table) && is_served(l, i))
        i++;
    return i == rq_client_table_regions(l->table);
}

static void pause_for(rq__link *l, int64_t ns)
{
    int64_t until = rq_client_now_ns() + ns;
    for (int64_t now = until - ns; now < until; now = rq_client_now_ns())
        rq_client_poll(l->client, until - now);
}

/* While a region is moved or split, it has no server for a moment. So the region list is read again, at most as
 * often as a read of a region is retried; these pauses serve all regions of the table. */
static rq_err wait_for_servers(const canary_job *j, rq__link *l, rq_error *why)
{
    for (unsigned i = 0; i < j->c->options->client.retries && !all_served(l); i++) {
        pause_for(l, PAUSE_NS << i);
        RQ_TRY(rq_client_table_read(l->table, why));
    }
    return RQ_OK;
}

static rq_err open_table(const canary_job *j, const char *table, rq__link *l, rq_error *why)
{
    RQ_TRY(rq__link_share(j->client, table, l, why));
    return wait_for_servers(j, l, why);
}

static void read_table(canary_job *j, const char *table)
{
    rq__link link;
    rq_error why = {.code = RQ_OK};
    rq_err rc = open_table(j, table, &link, &why);
    if (rc != RQ_OK) report(j, table, rc, &why);
    for (size_t i = 0; rc == RQ_OK && i < rq_client_table_regions(link.table); i++)
        read_region(j, &link, table, i);
    rq__link_close(&link);
}

/* hbase:meta, which no map of regions has. */
static void read_meta(const canary_job *j)
{
    rq_error why = {.code = RQ_OK};
    rq_canary_read r = {.table = "hbase:meta", .why = why.message};
    int64_t begun = rq_client_now_ns();
    r.err = rq_client_ping(j->client, false, &why);
    r.ns = rq_client_now_ns() - begun;
    j->c->read(j->c->ctx, &r);
}

static void read_by_name(canary_job *j, const char *name)
{
    if (strcmp(name, "hbase:meta") == 0)
        read_meta(j);
    else
        read_table(j, strncmp(name, "default:", 8) == 0 ? name + 8 : name);
}

/* A table with an open region counts as enabled; for another one the master is asked. A table that no longer exists is
 * skipped. */
static void read_if_enabled(canary_job *j, const char *name, bool has_open)
{
    rq_error why = {.code = RQ_OK};
    bool is_enabled = true;
    rq_err rc = has_open ? RQ_OK : rq_client_table_is_enabled(j->client, name, &is_enabled, &why);
    if (rc == RQ_E_TABLE_NOT_FOUND) return;
    if (rc != RQ_OK)
        report(j, name, rc, &why);
    else if (is_enabled)
        read_by_name(j, name);
}

static rq_err read_each(canary_job *j, const rq_cluster_status *status, rq_arena *arena,
                        rq_error *why)
{
    for (size_t i = 0; i < status->table_count; i++) {
        const rq_table_status *t = &status->tables[i];
        if (t->total == 0) continue; /* HBase reports none for a disabled table */
        const char *name =
            rq_arena_printf(arena, "%.*s:%.*s", (int)t->ns.len, (const char *)t->ns.ptr,
                            (int)t->qualifier.len, (const char *)t->qualifier.ptr);
        if (name == NULL) return rq_no_memory(why);
        read_if_enabled(j, name, t->open > 0);
    }
    return RQ_OK;
}

static rq_err read_all(canary_job *j, rq_error *why)
{
    rq_cluster_status status = {0};
    rq_arena arena = {0};
    rq_err rc = rq_client_status(j->client, &status, why);
    if (rc == RQ_OK) rc = read_each(j, &status, &arena, why);
    rq_cluster_status_clear(&status);
    rq_arena_clear(&arena);
    return rc;
}

static void read_named(canary_job *j, const char *name)
{
    rq_error why = {.code = RQ_OK};
    bool is_enabled;
    rq_err rc = rq_client_table_is_enabled(j->client, name, &is_enabled, &why);
    if (rc == RQ_OK && !is_enabled)
        rc = rq_fail(&why, RQ_E_TABLE_NOT_ENABLED, "table %s is not enabled", name);
    if (rc == RQ_OK)
        read_by_name(j, name);
    else
        report(j, name, rc, &why);
}

rq_err rq_canary_run(const rq_canary *c, rq_error *why)
{
    static const rq_transfer_scan first = {.first_key_only = true, .no_values = true};
    rq_client_options o = c->options->client;
    canary_job j = {.c = c};
    o.with_unserved = true;
    rq_err rc = rq__scan_fields(&j.fields, &first, why);
    if (rc == RQ_OK) rc = rq_client_open(&o, &j.client, why);
    for (size_t i = 0; rc == RQ_OK && i < c->table_count; i++)
        read_named(&j, c->tables[i]);
    if (rc == RQ_OK && c->table_count == 0) rc = read_all(&j, why);
    rq_client_close(j.client);
    rq_buf_clear(&j.fields);
    return rc;
}
