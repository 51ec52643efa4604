/* SPDX-License-Identifier: Apache-2.0 */
/* Alters a table: writing the new descriptor file is the commit. Then the regions are reopened with the
 * new descriptor, a few at a time, so that most of the table stays online. A region that is being
 * reopened answers RegionOpeningException, and clients retry. HBASE: ModifyTableProcedure,
 * ReopenTableRegionsProcedure. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

#include "catalog/descriptor_change.h"
#include "catalog/tableinfo.h"
#include "catalog/tracker.h"
#include "region/mob_cleaner.h"

#define REOPEN_AT_ONCE 16

static rq_err new_schema(rq__proc *p, const rq_table_schema *old, rq_error *why)
{
    rq_table_schema_unref(p->schema);
    p->schema = NULL;
    switch (p->ops->kind) {
    case RQ_DDL_ADD_FAMILY:
        return rq__descriptor_change(old, RQ__FAMILY_ADD, p->of.alter.family_schema, &p->schema,
                                     why);
    case RQ_DDL_MODIFY_FAMILY:
        return rq__descriptor_change(old, RQ__FAMILY_MODIFY, p->of.alter.family_schema, &p->schema,
                                     why);
    case RQ_DDL_DELETE_FAMILY:
        return rq__descriptor_change(old, RQ__FAMILY_DELETE, p->of.alter.family, &p->schema, why);
    default:
        return rq__descriptor_parse(p->of.alter.schema, false, &p->schema, why);
    }
}

static rq_err removed_families(rq__proc *p, const rq_table_schema *old)
{
    p->of.alter.removed = rq_arena_calloc(&p->arena, old->family_count, sizeof(rq_slice));
    if (p->of.alter.removed == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < old->family_count; i++) {
        if (rq_table_schema_family(p->schema, old->families[i].name) != NULL) continue;
        rq_slice name = rq_arena_copy(&p->arena, old->families[i].name);
        if (name.ptr == NULL) return RQ_E_NO_MEMORY;
        p->of.alter.removed[p->of.alter.removed_count++] = name;
    }
    return RQ_OK;
}

/* HBASE: ModifyTableProcedure.preflightChecks with reopenRegions = false. */
static rq_err check_no_reopen(rq__proc *p, const rq_table_schema *old, rq_error *why)
{
    if (!p->of.alter.no_reopen) return RQ_OK;
    if (old->family_count != p->schema->family_count || p->of.alter.removed_count > 0)
        return rq_fail(why, RQ_E_HBASE_IO,
                       "Cannot add or remove column families when this modification won't reopen "
                       "regions.");
    return RQ_OK;
}

static bool same_attributes(const rq_attributes *a, const rq_attributes *b, const char *but)
{
    for (size_t i = 0; i < a->count; i++) {
        const rq_attribute *one = &a->items[i];
        if (but != NULL && rq_slice_eq(one->key, rq_slice_cstr(but))) continue;
        bool found = false;
        for (size_t k = 0; k < b->count && !found; k++)
            found = rq_slice_eq(one->key, b->items[k].key) &&
                    rq_slice_eq(one->value, b->items[k].value);
        if (!found) return false;
    }
    return true;
}

/* The catalog depends on the schema of hbase:meta. Only REGION_REPLICATION may change, which does not
 * affect meta's region. */
static rq_err check_meta(const rq__proc *p, const rq_table_schema *old, rq_error *why)
{
    static const char free_one[] = "REGION_REPLICATION";
    if (!old->is_meta) return RQ_OK;
    const rq_table_schema *s = p->schema;
    bool same = s->is_meta && s->family_count == old->family_count &&
                same_attributes(&s->attributes, &old->attributes, free_one) &&
                same_attributes(&old->attributes, &s->attributes, free_one);
    for (size_t i = 0; same && i < old->family_count; i++) {
        const rq_attributes *x = &s->families[i].attributes, *y = &old->families[i].attributes;
        same = rq_slice_eq(s->families[i].name, old->families[i].name) &&
               same_attributes(x, y, NULL) && same_attributes(y, x, NULL);
    }
    return same ? RQ_OK
                : rq_fail(
                      why, RQ_E_DO_NOT_RETRY,
                      "hbase:meta cannot be altered on this server, except for REGION_REPLICATION");
}

rq_err rq__alter_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_schema *old = t->pub.schema;
    rq_err rc = new_schema(p, old, why);
    if (rc == RQ_OK && !rq_slice_eq(p->schema->name, old->name))
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "the descriptor belongs to another table");
    if (rc == RQ_OK) rc = rq__descriptor_check(c->config, p->schema, why);
    if (rc == RQ_OK) rc = rq__cluster_check_schema(c, p->schema, why);
    if (rc == RQ_OK)
        rc = rq__tracker_check_alter(old, p->schema, t->pub.state == RQ_TABLE_ENABLED, why);
    if (rc == RQ_OK) rc = check_meta(p, old, why);
    if (rc == RQ_OK) rc = removed_families(p, old);
    if (rc == RQ_OK) rc = check_no_reopen(p, old, why);
    int replication = rq_catalog_replication(old);
    rq__table_node_unref(t);
    if (rc != RQ_OK) return rc;
    p->of.alter.fewer_replicas = rq_catalog_replication(p->schema) < replication;
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(p->schema));
    return p->descriptor.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- another store-file tracker --------------------------------------------------------------- */

/* HBASE: the constructor of ModifyStoreFileTrackerProcedure. */
rq_err rq__tracker_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__tracker_check_target(p->of.alter.tracker, why));
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_state state = t->pub.state;
    rq__table_node_unref(t);
    if (state != RQ_TABLE_ENABLED && state != RQ_TABLE_ENABLING)
        return rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    return RQ_OK;
}

static rq_err tracker_schema(rq__proc *p, const rq__table_node *t, rq_error *why)
{
    if (t->pub.state != RQ_TABLE_ENABLED) return rq__fail_table(RQ_E_TABLE_NOT_ENABLED, p, why);
    rq_table_schema_unref(p->schema);
    p->schema = NULL;
    const rq_slice *family = p->ops->kind == RQ_DDL_FAMILY_TRACKER ? &p->of.alter.family : NULL;
    RQ_TRY(rq__tracker_change(t->pub.schema, family, p->of.alter.tracker, &p->schema, why));
    if (p->schema == NULL) { /* it has that one */
        p->schema = rq_table_schema_ref(t->pub.schema);
        p->of.alter.no_reopen = true;
    }
    return check_meta(p, t->pub.schema, why);
}

rq_err rq__tracker_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = tracker_schema(p, t, why);
    rq__table_node_unref(t);
    if (rc != RQ_OK) return rc;
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(p->schema));
    return p->descriptor.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- steps ------------------------------------------------------------------------------------ */

rq_err rq__alter_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__tableinfo_write(c->env->vfs, p->schema, why)); /* again after a restart */
    p->committed = true;
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_state state = t->pub.state;
    rq__table_node_unref(t);
    return rq__publish_state(c, p, p->schema, state, why);
}

static rq_err remove_families(rq_catalog *c, const rq__proc *p, const rq_region_info *info,
                              rq_error *why)
{
    for (size_t i = 0; i < p->of.alter.removed_count; i++)
        RQ_TRY(rq_region_remove_family(c->engine, info, p->of.alter.removed[i], why));
    return RQ_OK;
}

/* The regions from p->at on, at once. Stages: 0 closing, 1 opening. */
static rq_err reopen_some(rq_catalog *c, rq__proc *p, size_t count, rq_error *why)
{
    rq_region_info *infos = p->infos + p->at;
    if (p->stage == 0) {
        /* A failure was logged; the edits stay in the log. */
        RQ_TRY(rq__take_down(c, p, infos, count, RQ_REGION_OPENING, false, NULL, why));
        for (size_t i = 0; i < count; i++)
            RQ_TRY(remove_families(c, p, &infos[i], why));
        p->opened = rq__opened_new(infos, count, p->schema);
        if (p->opened == NULL) return rq_no_memory(why);
        p->opened_count = count;
        p->stage = 1;
    }
    RQ_TRY(rq__open_regions(c, p, p->opened, count, why));
    RQ_TRY(rq__publish_nodes(c, p, p->opened, count, false, why));
    RQ_TRY(rq__meta_note_opened(c, p->opened, count, why));
    rq__opened_done(c, p);
    return RQ_OK;
}

static rq_err reopen_all(rq_catalog *c, rq__proc *p, rq_error *why)
{
    while (p->at < p->info_count) {
        size_t left = p->info_count - p->at;
        size_t count = left < REOPEN_AT_ONCE ? left : REOPEN_AT_ONCE;
        RQ_TRY(reopen_some(c, p, count, why));
        rq__proc_forget_opened(p); /* those in a view stay open */
        p->at += count;
        p->stage = 0;
    }
    return RQ_OK;
}

/* Collects the columns of replicas that the table no longer has. */
typedef struct excess {
    rq_slice table;
    int copies;
    rq__batch batch;
} excess;

static rq_err find_excess(void *ctx, const rq__meta_row *row, rq_error *why)
{
    excess *e = ctx;
    (void)why;
    if (row->malformed != NULL || row->is_table || !rq_slice_eq(row->info.table, e->table))
        return RQ_OK;
    rq_region_info own; /* the row is freed before the batch */
    RQ_TRY(rq_region_info_copy(e->batch.arena, &row->info, &own));
    return rq__meta_delete_replicas(&e->batch, &own, e->copies, row->last_replica);
}

static rq_err remove_excess_replicas(rq_catalog *c, const rq__proc *p, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    excess e = {.table = p->table, .copies = rq_catalog_replication(p->schema)};
    rq__batch_init(&e.batch, &a, rq__catalog_now_ms(c));
    rq_region *meta = NULL;
    rq_err rc = rq__meta_ref(c, &meta, why);
    if (rc == RQ_OK) rc = rq__meta_scan_table(meta, e.table, find_excess, &e, why);
    for (size_t i = 0; i < e.batch.count && rc == RQ_OK;) {
        const rq__batch part = rq__batch_part(&e.batch, i);
        rc = rq__batch_commit(&part, meta, false, why);
        i += part.count;
    }
    if (meta != NULL) rq_region_unref(meta);
    rq_arena_clear(&a);
    return rc;
}

static rq_err list_infos(rq_catalog *c, rq__proc *p, bool *ret_enabled, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    *ret_enabled = t->pub.state == RQ_TABLE_ENABLED;
    rq_err rc = RQ_OK;
    if (p->infos == NULL) rc = rq__copy_infos(p, t, &p->infos, &p->info_count);
    rq__table_node_unref(t);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

/* Removes the deleted families from the regions of a disabled table. Regions that are still open are
 * closed first: SetTableStateInMeta disables a table without closing them, even during this procedure. */
static rq_err remove_closed(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (p->of.alter.removed_count > 0) RQ_TRY(rq__close_left_open(c, p, why));
    for (size_t i = 0; i < p->info_count; i++)
        RQ_TRY(remove_families(c, p, &p->infos[i], why));
    return RQ_OK;
}

rq_err rq__alter_reopen(rq_catalog *c, rq__proc *p, rq_error *why)
{
    bool enabled;
    RQ_TRY(rq__need_schema(p, why));
    if (p->schema->is_meta)
        return RQ_OK; /* meta's region need not know of any change allowed
                                           * here */
    if (p->stage == 0 && p->at == 0 && p->calls == NULL) {
        rq__proc_forget_opened(p); /* those in a view stay open */
        p->infos = NULL;           /* as they are now */
    }
    bool goes_on = p->stage > 0 || p->at > 0;
    RQ_TRY(list_infos(c, p, &enabled, why));
    if ((enabled || goes_on) && !(p->of.alter.no_reopen && !p->resumed))
        RQ_TRY(reopen_all(c, p, why));
    if (!enabled) RQ_TRY(remove_closed(c, p, why));
    if (p->of.alter.fewer_replicas || p->resumed) RQ_TRY(remove_excess_replicas(c, p, why));
    for (size_t i = 0; i < p->of.alter.removed_count; i++)
        RQ_TRY(rq_mob_archive(c->engine, p->table, p->of.alter.removed[i], NULL, 0, why));
    return RQ_OK;
}
