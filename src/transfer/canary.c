/* SPDX-License-Identifier: Apache-2.0 */
/* See canary.h. */
#include "transfer/canary.h"

#include "base/arena.h"
#include "client/status.h"
#include "transfer/link.h"
#include "transfer/scan.h"

typedef struct canary_job {
    const rq_canary *c;
    rq_buf fields; /* of the scan: the first key of a row, without its value */
} canary_job;

static rq_err ignore_row(void *ctx, rq_op_result *row, rq_error *why)
{
    (void)ctx;
    (void)row;
    (void)why;
    return RQ_OK;
}

static void read_region(canary_job *j, rq__link *l, const char *table, size_t i)
{
    static const rq__scan_calls calls = {.row = ignore_row};
    rq_error why = {.code = RQ_OK};
    rq_client_region region = rq_client_table_region(l->table, i);
    rq_canary_read r = {.table = table};
    rq_arena arena = {0};
    rq_slice start = rq_arena_copy(&arena, region.start), end = rq_arena_copy(&arena, region.end);
    rq_scan scan = rq__scan_of(NULL, start, end, &j->fields);
    scan.limit = 1;
    int64_t begun = rq_client_now_ns();
    r.err = start.ptr == NULL || end.ptr == NULL ? rq_no_memory(&why)
                                                 : rq__link_scan(l, &scan, &calls, &why);
    r.ns = rq_client_now_ns() - begun;
    r.why = why.message;
    /* The region list may be newer than the plan: a region that is gone was read as part of its
     * successor. */
    if (i < rq_client_table_regions(l->table)) r.region = rq_client_table_region(l->table, i);
    j->c->read(j->c->ctx, &r);
    rq_arena_clear(&arena);
}

static void read_table(canary_job *j, const char *table)
{
    rq__link link;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq__link_open(&j->c->options->client, table, &link, &why);
    if (rc == RQ_OK) {
        for (size_t i = 0; i < rq_client_table_regions(link.table); i++)
            read_region(j, &link, table, i);
    } else {
        const rq_canary_read r = {.table = table, .err = rc, .why = why.message};
        j->c->read(j->c->ctx, &r);
    }
    rq__link_close(&link);
}

/* hbase:meta, which no map of regions has. */
static void read_meta(canary_job *j, rq_client *client)
{
    rq_error why = {.code = RQ_OK};
    rq_canary_read r = {.table = "hbase:meta", .why = why.message};
    int64_t begun = rq_client_now_ns();
    r.err = rq_client_ping(client, false, &why);
    r.ns = rq_client_now_ns() - begun;
    j->c->read(j->c->ctx, &r);
}

/* Tables that have open regions. */
static rq_err read_all(canary_job *j, rq_error *why)
{
    rq_client *client = NULL;
    rq_cluster_status status = {0};
    rq_arena arena = {0};
    rq_err rc = rq_client_open(&j->c->options->client, &client, why);
    if (rc == RQ_OK) rc = rq_client_status(client, &status, why);
    for (size_t i = 0; rc == RQ_OK && i < status.table_count; i++) {
        const rq_table_status *t = &status.tables[i];
        if (t->open == 0) continue;
        const char *name =
            rq_arena_printf(&arena, "%.*s:%.*s", (int)t->ns.len, (const char *)t->ns.ptr,
                            (int)t->qualifier.len, (const char *)t->qualifier.ptr);
        if (name == NULL)
            rc = rq_no_memory(why);
        else if (strcmp(name, "hbase:meta") == 0)
            read_meta(j, client);
        else
            read_table(j, strncmp(name, "default:", 8) == 0 ? name + 8 : name);
    }
    rq_cluster_status_clear(&status);
    rq_client_close(client);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq_canary_run(const rq_canary *c, rq_error *why)
{
    static const rq_transfer_scan first = {.first_key_only = true, .no_values = true};
    canary_job j = {.c = c};
    rq_err rc = rq__scan_fields(&j.fields, &first, why);
    for (size_t i = 0; rc == RQ_OK && i < c->table_count; i++)
        read_table(&j, c->tables[i]);
    if (rc == RQ_OK && c->table_count == 0) rc = read_all(&j, why);
    rq_buf_clear(&j.fields);
    return rc;
}
