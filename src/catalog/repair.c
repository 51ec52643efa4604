/* SPDX-License-Identifier: Apache-2.0 */
/* Operations for an operator: flushing the procedure store's region; setting states, as HBCK2 does.
 * The latter take no locks of procedures, because they are used when a procedure is stuck. HBASE:
 * MasterRpcServices.setTableStateInMeta, setRegionStateInMeta. */
#include "catalog/ddl_priv.h"

#include <string.h>

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
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, why);
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
    if (rc == RQ_OK) rc = rq__meta_commit(c, &b, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_set_table_state(rq_catalog *c, rq_slice ns, rq_slice qualifier,
                                  rq_table_state state, rq_table_state *ret_before, rq_error *why)
{
    RQ_TRY(rq_table_name_check(ns, qualifier, why));
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
    if (rc == RQ_OK && (unsigned)state > RQ_TABLE_ENABLING) /* protobuf-c passes on any number */
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "unknown table state %d", (int)state);
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
    if (node->pub.server != NULL || state == RQ_REGION_OPEN) return RQ_OK;
    rq__proc key = {
        .ns = node->info.ns, .qualifier = node->info.qualifier, .table = node->info.table};
    /* The region may have been opened meanwhile: then it is treated as after a close. */
    return rq__take_down(c, &key, &node->info, 1, state, false, NULL, why);
}

/* The region that an encoded name names, or is a replica of: it has the row in hbase:meta. */
typedef struct named_region {
    rq_slice ns, qualifier, encoded;
    const char *column; /* "state", "state_0001" */
    rq_region_state state;
} named_region;

static rq_err name_region(const rq_catalog_region *r, rq_slice encoded, rq_arena *a,
                          named_region *ret)
{
    const rq_region_info *i = r->info;
    *ret = (named_region){.ns = rq_arena_copy(a, i->ns),
                          .qualifier = rq_arena_copy(a, i->qualifier),
                          .encoded = encoded,
                          .column = "state",
                          .state = r->state};
    if (i->replica_id > 0) {
        rq_region_info *first = rq_arena_calloc(a, 1, sizeof *first);
        if (first == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_region_info_make(a, i->ns, i->qualifier, i->start_key, i->end_key, i->region_id,
                                   0, first));
        ret->encoded = rq_slice_cstr(first->encoded);
        ret->column = rq_arena_printf(a, "state_%04X", (unsigned)i->replica_id);
    }
    return ret->ns.ptr == NULL || ret->qualifier.ptr == NULL || ret->column == NULL ? RQ_E_NO_MEMORY
                                                                                    : RQ_OK;
}

static rq_err fail_unknown(rq_slice encoded, rq_error *why)
{
    return rq_fail(why, RQ_E_UNKNOWN_REGION, "%.*s", (int)encoded.len, (const char *)encoded.ptr);
}

static rq_err find_named(rq_catalog *c, rq_slice encoded, rq_arena *a, named_region *ret,
                         rq_error *why)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(c, encoded);
    rq_err rc = r == NULL ? RQ_E_UNKNOWN_REGION : name_region(r, encoded, a, ret);
    rq_epoch_unpin(c->env->epoch, &m);
    if (rc == RQ_E_UNKNOWN_REGION) return fail_unknown(encoded, why);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* A replica's state is in hbase:meta only: the region itself answers under its name. */
static rq_err put_state(rq_catalog *c, const named_region *r, const char *name,
                        rq_region_state shown, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, r->ns, r->qualifier, &t, why));
    size_t at = rq__table_find(c, t, r->encoded);
    rq_err rc = RQ_OK;
    if (at == t->pub.region_count)
        rc = fail_unknown(r->encoded, why);
    else
        rc = put_one(c, rq__table_region(t, at)->info.name, "info", r->column, rq_slice_cstr(name),
                     why);
    if (rc == RQ_OK && strcmp(r->column, "state") == 0) rc = show_region(c, t, at, shown, why);
    rq__table_node_unref(t);
    return rc;
}

rq_err rq_catalog_set_region_state(rq_catalog *c, rq_slice encoded, const char *name,
                                   rq_region_state shown, rq_region_state *ret_before,
                                   rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    named_region r = {0};
    rq_err rc = find_named(c, encoded, &a, &r, why);
    if (rc == RQ_OK) *ret_before = r.state;
    if (rc == RQ_OK) rc = put_state(c, &r, name, shown, why);
    rq_arena_clear(&a);
    return rc;
}
