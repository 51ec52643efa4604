/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes rows of the tables in which other parts of the server keep their data: hbase:quota,
 * hbase:rsgroup. */
#include "catalog/ddl_priv.h"

#include "catalog/system_tables.h"

#include <stdio.h>

/* Clients choose the names that are parts of rows. HBASE: Mutation.checkRow. */
static rq_err check_row(rq_slice row, rq_error *why)
{
    if (row.len <= RQ_ROW_LEN_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Row length %zu is > %d", row.len, RQ_ROW_LEN_MAX);
}

static rq_err first_region(rq_catalog *c, rq_slice table, rq_slice row, rq_region **ret,
                           rq_error *why)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(c->env->epoch, &m);
    rq_err rc = rq_catalog_locate(c, table, row, &r, why);
    if (rc == RQ_OK && r->region == NULL)
        rc = rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is not online on %s", r->info->encoded,
                     c->server->text);
    if (rc == RQ_OK) *ret = rq_region_ref(r->region);
    rq_epoch_unpin(c->env->epoch, &m);
    return rc;
}

static rq_err write_row(rq_catalog *c, rq_slice table, const rq__batch *b, rq_slice row,
                        rq_error *why)
{
    rq_region *r;
    RQ_TRY(first_region(c, table, row, &r, why));
    rq_err rc = rq__batch_commit(b, r, true, why);
    rq_region_unref(r);
    return rc;
}

rq_err rq_catalog_row_put(rq_catalog *c, rq_slice table, rq_slice row, const char *family,
                          rq_slice qualifier, rq_slice value, rq_error *why)
{
    RQ_TRY(check_row(row, why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__batch_put(&b, row, family, qualifier, value);
    if (rc == RQ_OK) rc = write_row(c, table, &b, row, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_row_delete(rq_catalog *c, rq_slice table, rq_slice row, const char *family,
                             const rq_slice *qualifier, rq_error *why)
{
    RQ_TRY(check_row(row, why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = qualifier == NULL ? rq__batch_delete_family(&b, row, family)
                                  : rq__batch_delete_column(&b, row, family, *qualifier);
    if (rc == RQ_OK) rc = write_row(c, table, &b, row, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_rows_change(rq_catalog *c, rq_slice table, const char *family, rq_slice qualifier,
                              const rq_row_change *list, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        RQ_TRY(check_row(list[i].row, why));
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = list[i].value.ptr == NULL
                 ? rq__batch_delete_column(&b, list[i].row, family, qualifier)
                 : rq__batch_put(&b, list[i].row, family, qualifier, list[i].value);
    if (rc == RQ_OK) rc = write_row(c, table, &b, (rq_slice){0}, why);
    rq_arena_clear(&a);
    return rc;
}

/* The regions of the table, referenced; a region that is closed is an error. */
static rq_err open_regions(rq_catalog *c, rq_slice table, rq_arena *arena, rq_region ***ret,
                           size_t *ret_count, rq_error *why)
{
    rq_epoch_member m = {0};
    rq_err rc = RQ_OK;
    size_t n = 0;
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(c, table);
    if (t == NULL)
        rc = rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)table.len, (const char *)table.ptr);
    rq_region **list = rc == RQ_OK ? rq_arena_calloc(arena, t->region_count, sizeof *list) : NULL;
    if (rc == RQ_OK && list == NULL) rc = rq_no_memory(why);
    for (size_t i = 0; rc == RQ_OK && i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (r->region == NULL)
            rc = rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is not online on %s", r->info->encoded,
                         c->server->text);
        else
            list[n++] = rq_region_ref(r->region);
    }
    rq_epoch_unpin(c->env->epoch, &m);
    *ret = list;
    *ret_count = n;
    return rc;
}

rq_err rq_catalog_each_row(rq_catalog *c, rq_slice table,
                           rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                              rq_error *why),
                           void *ctx, rq_error *why)
{
    rq_arena a;
    rq_region **list = NULL;
    size_t count = 0;
    rq_arena_init(&a);
    rq_err rc = open_regions(c, table, &a, &list, &count, why);
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK) rc = rq__region_each_row(list[i], NULL, NULL, callback, ctx, why);
        rq_region_unref(list[i]);
    }
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_row(rq_catalog *c, rq_slice table, rq_slice row,
                      rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                         rq_error *why),
                      void *ctx, rq_error *why)
{
    rq_region *r;
    RQ_TRY(check_row(row, why));
    RQ_TRY(first_region(c, table, row, &r, why));
    rq_err rc = rq__region_row(r, row, callback, ctx, why);
    rq_region_unref(r);
    return rc;
}

static rq_err need_table(rq_catalog *c, rq__system_table which, const char *qualifier,
                         rq_error *why)
{
    char name[32];
    rq_epoch_member m = {0};
    snprintf(name, sizeof name, "hbase:%s", qualifier);
    rq_epoch_pin(c->env->epoch, &m);
    bool there = rq_catalog_table_find(c, rq_slice_cstr(name)) != NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    if (there) return RQ_OK;
    rq_table_schema *schema;
    RQ_TRY(rq__system_schema(which, &schema, why));
    rq_ddl d = {.kind = RQ_DDL_CREATE_TABLE,
                .ns = RQ_SLICE_LIT("hbase"),
                .qualifier = rq_slice_cstr(qualifier),
                .of.create.schema = rq_table_schema_pb(schema)};
    rq_err rc = rq__catalog_ddl_sync(c, &d, why);
    rq_table_schema_unref(schema);
    return rc == RQ_E_TABLE_EXISTS ? RQ_OK : rc;
}

rq_err rq_catalog_need_quota_table(rq_catalog *c, rq_error *why)
{
    return need_table(c, RQ__QUOTA, "quota", why);
}

rq_err rq_catalog_need_rsgroup_table(rq_catalog *c, rq_error *why)
{
    return need_table(c, RQ__RSGROUP, "rsgroup", why);
}

void rq_catalog_on_quotas_dropped(rq_catalog *c, void (*dropped)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&c->quotas_lock);
    c->quotas_dropped = dropped;
    c->quotas_ctx = ctx;
    pthread_mutex_unlock(&c->quotas_lock);
}

/* HBASE: MasterQuotasObserver.postDeleteTable, postDeleteNamespace, unless hbase.quota.remove.on.table.delete is false. */
rq_err rq__drop_quotas(rq_catalog *c, char kind, rq_slice name, rq_error *why)
{
    if (c->config == NULL || rq_config_int(c->config, RQ_SET_QUOTA) == 0 ||
        rq_config_int(c->config, RQ_SET_QUOTA_REMOVE) == 0)
        return RQ_OK;
    rq_arena a;
    rq_arena_init(&a);
    char *row = rq_arena_printf(&a, "%c.%.*s", kind, (int)name.len, (const char *)name.ptr);
    const rq_slice quota = RQ_SLICE_LIT("hbase:quota");
    rq_err rc = row == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK) rc = rq_catalog_row_delete(c, quota, rq_slice_cstr(row), "q", NULL, why);
    if (rc == RQ_OK) rc = rq_catalog_row_delete(c, quota, rq_slice_cstr(row), "u", NULL, why);
    rq_arena_clear(&a);
    if (rc == RQ_E_TABLE_NOT_FOUND) { /* no quota was ever set */
        if (why != NULL) why->code = RQ_OK;
        return RQ_OK;
    }
    RQ_TRY(rc);
    pthread_mutex_lock(&c->quotas_lock);
    if (c->quotas_dropped != NULL) c->quotas_dropped(c->quotas_ctx);
    pthread_mutex_unlock(&c->quotas_lock);
    return RQ_OK;
}
