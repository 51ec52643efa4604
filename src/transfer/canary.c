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
    rq_buf fields;       /* of the scan: the first key of a row, without its value */
    bool master_answers; /* false once it has not answered a request */
} canary_job;

static rq_err ignore_row(void *ctx, rq_op_result *row, rq_error *why)
{
    (void)ctx;
    (void)row;
    (void)why;
    return RQ_OK;
}

static void report(const canary_job *j, rq_canary_kind kind, const char *table, rq_err rc,
                   const char *why)
{
    const rq_canary_read r = {.kind = kind, .table = table, .err = rc, .why = why};
    j->c->read(j->c->ctx, &r);
}

/* After a failed read: whether the table is disabled or dropped, or is being so. Asks the master after each failure. If
 * the master does not answer once, it is not asked again, and failures are reported as they are. */
static bool is_out_of_service(canary_job *j, const char *table)
{
    rq_error why = {.code = RQ_OK};
    bool is_enabled = true;
    if (!j->master_answers) return false;
    rq_err rc = rq_client_table_is_enabled(j->client, table, &is_enabled, &why);
    j->master_answers = rc == RQ_OK || rc == RQ_E_TABLE_NOT_FOUND;
    return rc == RQ_E_TABLE_NOT_FOUND || (rc == RQ_OK && !is_enabled);
}

static void skip(const canary_job *j, const char *table)
{
    report(j, RQ_CANARY_SKIPPED, table, RQ_OK, "not enabled");
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

/* Reads and reports the i-th region. False: the table is out of service, so its other regions need not be read. */
static bool read_region(canary_job *j, rq__link *l, const char *table, size_t i)
{
    rq_error why = {.code = RQ_OK};
    rq_canary_read r = {.kind = RQ_CANARY_REGION, .table = table};
    int64_t begun = rq_client_now_ns();
    r.err = is_served(l, i) ? read_rows(j, l, rq_client_table_region(l->table, i), &why)
                            : rq_fail(&why, RQ_E_NOT_SERVING_REGION,
                                      "table %s: the region has no server", table);
    r.ns = rq_client_now_ns() - begun;
    r.why = why.message;
    if (r.err != RQ_OK && is_out_of_service(j, table)) return false;
    /* The region list may be newer than the plan: a region that is gone was read as part of its
     * successor. */
    if (i < rq_client_table_regions(l->table)) r.region = rq_client_table_region(l->table, i);
    j->c->read(j->c->ctx, &r);
    return true;
}

static bool all_served(const rq__link *l)
{
    size_t i = 0;
    while (i < rq_client_table_regions(l->table) && is_served(l, i))
        i++;
    return i == rq_client_table_regions(l->table);
}

/* While a region is moved or split, it has no server for a moment. So the region list is read again, at most as
 * often as a read of a region is retried; these pauses serve all regions of the table. */
static rq_err wait_for_servers(const canary_job *j, rq__link *l, rq_error *why)
{
    for (unsigned i = 0; i < j->c->options->client.retries && !all_served(l); i++) {
        rq_client_pause(j->client, PAUSE_NS << i);
        RQ_TRY(rq_client_table_read(l->table, why));
    }
    return RQ_OK;
}

static rq_err open_table(const canary_job *j, const char *table, rq__link *l, rq_error *why)
{
    RQ_TRY(rq__link_share(j->client, table, l, why));
    return wait_for_servers(j, l, why);
}

static bool read_regions(canary_job *j, rq__link *l, const char *table)
{
    bool serves = true;
    for (size_t i = 0; serves && i < rq_client_table_regions(l->table); i++)
        serves = read_region(j, l, table, i);
    return serves;
}

static void read_table(canary_job *j, const char *table)
{
    rq__link link;
    rq_error why = {.code = RQ_OK};
    rq_err rc = open_table(j, table, &link, &why);
    bool serves = rc == RQ_OK ? read_regions(j, &link, table) : !is_out_of_service(j, table);
    rq__link_close(&link);
    if (!serves)
        skip(j, table);
    else if (rc != RQ_OK)
        report(j, RQ_CANARY_TABLE, table, rc, why.message);
}

/* hbase:meta, which no map of regions has. */
static void read_meta(const canary_job *j)
{
    rq_error why = {.code = RQ_OK};
    rq_canary_read r = {.kind = RQ_CANARY_REGION, .table = "hbase:meta", .why = why.message};
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
        report(j, RQ_CANARY_TABLE, name, rc, why.message);
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
    if (rc != RQ_OK)
        report(j, RQ_CANARY_TABLE, name, rc, why.message);
    else if (is_enabled)
        read_by_name(j, name);
    else
        skip(j, name);
}

rq_err rq_canary_run(const rq_canary *c, rq_error *why)
{
    static const rq_transfer_scan first = {.first_key_only = true, .no_values = true};
    rq_client_options o = c->options->client;
    canary_job j = {.c = c, .master_answers = true};
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
