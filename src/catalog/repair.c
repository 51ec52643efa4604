/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator does by hand: flushes the master's region; sets states, as HBCK2 does, without
 * the locks of procedures, because it is used when one of them is stuck. HBASE:
 * MasterRpcServices.setTableStateInMeta, setRegionStateInMeta. */
#include "catalog/ddl_priv.h"

rq_err rq_catalog_flush_store(rq_catalog *c, rq_error *why)
{
    rq_region *store;
    bool flushed;
    RQ_TRY(rq__store_ref(c, &store, why));
    rq_err rc = rq_region_flush(store, (rq_slice){NULL, 0}, &flushed, why);
    rq_region_unref(store);
    return rc;
}

static rq_err put_one(rq_catalog *c, rq_slice row, const char *family, const char *qualifier,
                      rq_slice value, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__batch_put(&b, row, family, rq_slice_cstr(qualifier), value);
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, true, why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err write_table_state(rq_catalog *c, rq_slice table, rq_table_state state, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__meta_put_table_state(&b, table, state);
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, true, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_set_table_state(rq_catalog *c, rq_slice ns, rq_slice qualifier,
                                  rq_table_state state, rq_table_state *ret_before, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    /* Only names the table for the functions that change the view. */
    rq__proc key = {.ns = ns, .qualifier = qualifier};
    key.table = rq_table_name_join(&a, ns, qualifier);
    rq__table_node *t = NULL;
    rq_err rc = key.table.ptr == NULL ? rq_no_memory(why)
                                      : rq__catalog_table_ref(c, ns, qualifier, &t, why);
    if (rc == RQ_OK && t->pub.schema->is_meta)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "hbase:meta is always enabled");
    if (rc == RQ_OK) *ret_before = t->pub.state;
    if (rc == RQ_OK) rc = write_table_state(c, key.table, state, why);
    if (rc == RQ_OK) rc = rq__publish_state(c, &key, NULL, state, why);
    if (t != NULL) rq__table_node_unref(t);
    rq_arena_clear(&a);
    return rc;
}

/* A region that is open is shown as open, whatever hbase:meta says. */
static rq_err show_region(rq_catalog *c, const rq__table_node *t, size_t at, rq_region_state state,
                          rq_error *why)
{
    const rq__region_node *node = rq__table_region(t, at);
    if (node->pub.region != NULL || state == RQ_REGION_OPEN) return RQ_OK;
    rq__proc key = {
        .ns = node->info.ns, .qualifier = node->info.qualifier, .table = node->info.table};
    rq_region **open;
    size_t count;
    RQ_TRY(rq__publish_closed(c, &key, &node->info, 1, state, &open, &count, why));
    /* It was opened meanwhile: as when a region is closed. */
    (void)rq__close_regions(c, open, count, false, NULL);
    rq__unref_regions(open, count);
    return RQ_OK;
}

rq_err rq_catalog_set_region_state(rq_catalog *c, rq_slice encoded, const char *name,
                                   rq_region_state shown, rq_region_state *ret_before,
                                   rq_error *why)
{
    rq_epoch_member m = {0};
    rq_arena a;
    rq_slice ns = {0}, qualifier = {0};
    rq_arena_init(&a);
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(c, encoded);
    if (r != NULL) {
        ns = rq_arena_copy(&a, r->info->ns);
        qualifier = rq_arena_copy(&a, r->info->qualifier);
        *ret_before = r->state;
    }
    rq_epoch_unpin(c->env->epoch, &m);
    rq__table_node *t = NULL;
    rq_err rc = RQ_OK;
    if (r == NULL)
        rc = rq_fail(why, RQ_E_UNKNOWN_REGION, "%.*s", (int)encoded.len, (const char *)encoded.ptr);
    else if (ns.ptr == NULL || qualifier.ptr == NULL)
        rc = rq_no_memory(why);
    else
        rc = rq__catalog_table_ref(c, ns, qualifier, &t, why);
    size_t at = rc == RQ_OK ? rq__table_find(c, t, encoded) : 0;
    if (rc == RQ_OK && at == t->pub.region_count)
        rc = rq_fail(why, RQ_E_UNKNOWN_REGION, "%.*s", (int)encoded.len, (const char *)encoded.ptr);
    if (rc == RQ_OK)
        rc = put_one(c, rq__table_region(t, at)->info.name, "info", "state", rq_slice_cstr(name),
                     why);
    if (rc == RQ_OK) rc = show_region(c, t, at, shown, why);
    if (t != NULL) rq__table_node_unref(t);
    rq_arena_clear(&a);
    return rc;
}
