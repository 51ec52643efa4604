/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a new table from a snapshot (clone), or resets the snapshot's table to it (restore).
 *
 *   clone    folders with links to the snapshot's files ─ regions opened ─ meta (commit) ─ view
 *   restore  the same folders ─ meta (commit): the new regions in place of the old ones ─
 *            descriptor and view ─ the old regions archived
 *
 * Both create regions with new names (unlike HBase, which restores in place). So until the commit the
 * old table is unchanged, and no record in the log, written for an earlier region, is replayed into a
 * new one. Links point to the original file, even if the snapshot itself was taken of a clone
 * (region/region_files.h). The snapshot is locked, so it cannot be deleted meanwhile. HBASE:
 * CloneSnapshotProcedure, RestoreSnapshotProcedure, RestoreSnapshotHelper. */
#include "catalog/ddl_priv.h"
#include "catalog/descriptor_change.h"
#include "catalog/snapshot_manifest.h"
#include "catalog/tableinfo.h"
#include "catalog/tracker.h"
#include "region/tracking.h"
#include "vfs/batch.h"

#include "base/pb_arena.h"
#include "proto/hbase.pb-c.h"

#include <stdlib.h>

/* --- checks ----------------------------------------------------------------------------------- */

static rq_err check_expiry(rq_catalog *c, const rq__proc *p, rq_arena *a, rq_error *why)
{
    rq__snapshot_info info;
    rq_slice name = p->of.snapshot.name;
    RQ_TRY(rq__snapshot_info_read(c->env->vfs, name, a, &info, why));
    if (!rq__snapshot_is_expired(&info, rq__catalog_wall_ms(c))) return RQ_OK;
    return rq_fail(why, RQ_E_SNAPSHOT_EXPIRED, "TTL for snapshot '%.*s' has already expired.",
                   (int)name.len, (const char *)name.ptr);
}

/* Reads the snapshot and checks that each of its files is there. */
static rq_err check_snapshot(rq_catalog *c, const rq__proc *p, bool same_table, rq_error *why)
{
    rq_arena a = {0};
    rq__snapshot s;
    RQ_TRY(rq__snapshot_name_check(p->of.snapshot.name, why));
    rq_err rc = check_expiry(c, p, &a, why);
    if (rc == RQ_OK) rc = rq__snapshot_read(c->env->vfs, p->of.snapshot.name, &a, &s, why);
    if (rc == RQ_OK && same_table && !rq_slice_eq(s.regions[0].info.table, p->table))
        rc = rq_fail(why, RQ_E_SNAPSHOT_RESTORE,
                     "Snapshot '%.*s' is of table %.*s: it cannot be restored to table %.*s, which "
                     "exists",
                     (int)p->of.snapshot.name.len, (const char *)p->of.snapshot.name.ptr,
                     (int)s.regions[0].info.table.len, (const char *)s.regions[0].info.table.ptr,
                     (int)p->table.len, (const char *)p->table.ptr);
    if (rc == RQ_OK) rc = rq__snapshot_verify(c->env->vfs, &s, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__clone_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq_table_name_check(p->ns, p->qualifier, why));
    RQ_TRY(rq__name_len_check("Table qualifier", p->qualifier, why));
    RQ_TRY(rq__internal_check(p, why));
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    bool there = rq_catalog_namespace_find(c, p->ns) != NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    if (!there)
        return rq_fail(why, RQ_E_NAMESPACE_NOT_FOUND, "%.*s", (int)p->ns.len,
                       (const char *)p->ns.ptr);
    return check_snapshot(c, p, false, why);
}

static rq_err check_disabled(rq_catalog *c, const rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_state state = t->pub.state;
    rq__table_node_unref(t);
    if (state == RQ_TABLE_DISABLED) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "java.lang.UnsupportedOperationException: Table '%.*s' must be disabled in "
                   "order to perform a restore operation.",
                   (int)p->table.len, (const char *)p->table.ptr);
}

rq_err rq__restore_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(check_snapshot(c, p, true, why));
    return check_disabled(c, p, why);
}

/* --- what is to be made ----------------------------------------------------------------------- */

/* The snapshot's descriptor under the table's own name. */
static rq_err rename_schema(const rq__proc *p, rq_slice pb, rq_arena *a, rq_table_schema **ret,
                            rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, a);
    Pb__TableSchema *m = pb__table_schema__unpack(&memory.allocator, pb.len, pb.ptr);
    if (m == NULL && memory.exhausted) return rq_no_memory(why);
    if (m == NULL)
        return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT, "the snapshot's table descriptor is malformed");
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = (ProtobufCBinaryData){p->ns.len, (uint8_t *)(uintptr_t)p->ns.ptr};
    name.qualifier =
        (ProtobufCBinaryData){p->qualifier.len, (uint8_t *)(uintptr_t)p->qualifier.ptr};
    m->table_name = &name;
    return rq__descriptor_from(m, ret, why);
}

/* HBASE: an unknown tracker is a class that it does not find. */
static rq_err set_tracker(const rq__proc *p, rq_table_schema **schema, rq_error *why)
{
    rq_table_schema *changed = NULL;
    rq_slice tracker = p->of.snapshot.tracker;
    if (tracker.len == 0) return RQ_OK;
    if (rq_tracker_parse(tracker) == RQ_TRACKER_UNKNOWN)
        return rq_fail(why, RQ_E_IOEXCEPTION,
                       "java.lang.RuntimeException: java.lang.RuntimeException: "
                       "java.lang.ClassNotFoundException: Class %.*s not found",
                       tracker.len > 256 ? 256 : (int)tracker.len, (const char *)tracker.ptr);
    RQ_TRY(rq__tracker_change(*schema, NULL, tracker, &changed, why));
    if (changed != NULL) {
        rq_table_schema_unref(*schema);
        *schema = changed;
    }
    return rq__tracker_check_create(*schema, why);
}

static rq_err take_schema(rq__proc *p, const rq__snapshot *s, rq_arena *a, rq_error *why)
{
    rq_table_schema *schema;
    RQ_TRY(rename_schema(p, s->schema, a, &schema, why));
    rq_err rc = set_tracker(p, &schema, why);
    rq_table_schema_unref(p->schema);
    p->schema = schema;
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(schema));
    return rc == RQ_OK && p->descriptor.ptr == NULL ? rq_no_memory(why) : rc;
}

/* A region for each of the snapshot, in the same order. */
static rq_err take_regions(rq_catalog *c, rq__proc *p, const rq__snapshot *s, rq_error *why)
{
    rq_slice *keys = rq_arena_calloc(&p->arena, s->count + 1, sizeof *keys);
    if (keys == NULL) return rq_no_memory(why);
    for (size_t i = 1; i < s->count; i++) {
        keys[i - 1] = rq_arena_copy(&p->arena, s->regions[i].info.start_key);
        if (keys[i - 1].ptr == NULL) return rq_no_memory(why);
    }
    return rq__make_regions(c, p, keys, s->count - 1, why);
}

static rq_err prepare(rq_catalog *c, rq__proc *p, bool is_new, rq_error *why)
{
    rq_arena a = {0};
    rq__snapshot s;
    rq_err rc = rq__snapshot_read(c->env->vfs, p->of.snapshot.name, &a, &s, why);
    if (rc == RQ_OK) rc = rq__namespace_quota_check(c, p, (int64_t)s.count, is_new, why);
    if (rc == RQ_OK) rc = take_schema(p, &s, &a, why);
    if (rc == RQ_OK) rc = take_regions(c, p, &s, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__clone_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) == RQ_OK) {
        rq__table_node_unref(t);
        return rq__fail_table(RQ_E_TABLE_EXISTS, p, why);
    }
    return prepare(c, p, true, why);
}

rq_err rq__restore_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(check_disabled(c, p, why));
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_err rc = rq__copy_infos(p, t, &p->old_regions, &p->old_region_count);
    rq__table_node_unref(t);
    if (rc != RQ_OK) return rq_no_memory(why);
    RQ_TRY(rq__add_parents(c, p, why));
    return prepare(c, p, false, why);
}

/* --- the links -------------------------------------------------------------------------------- */

typedef struct layout_work {
    rq_catalog *catalog;
    const rq__proc *proc;
    const rq__snapshot *snapshot;
    rq_vfs *batch;
    pthread_mutex_t lock;
    rq_err rc;
    rq_error why;
} layout_work;

static void lay_out_one(void *ctx, size_t i)
{
    layout_work *w = ctx;
    rq_error why = {0};
    const rq__snapshot_region *from = &w->snapshot->regions[i];
    rq_err rc = rq_region_create_linked(w->catalog->engine, w->batch, &w->proc->regions[i],
                                        w->proc->schema, &from->info, &from->files, &why);
    if (rc == RQ_OK) return;
    pthread_mutex_lock(&w->lock);
    if (w->rc == RQ_OK) {
        w->rc = rc;
        (void)rq_fail(&w->why, rc, "%s", why.code != RQ_OK ? why.message : rq_err_text(rc));
    }
    pthread_mutex_unlock(&w->lock);
}

static rq_err lay_out_regions(rq_catalog *c, const rq__proc *p, const rq__snapshot *s,
                              rq_vfs *batch, rq_error *why)
{
    if (s->count != p->region_count)
        return rq_fail(why, RQ_E_SNAPSHOT_CORRUPT,
                       "the snapshot now has %zu regions, but had %zu when the operation began",
                       s->count, p->region_count);
    layout_work w = {.catalog = c, .proc = p, .snapshot = s, .batch = batch};
    pthread_mutex_init(&w.lock, NULL);
    rq_parallel(c->env->executor, s->count, lay_out_one, &w);
    pthread_mutex_destroy(&w.lock);
    return w.rc == RQ_OK ? RQ_OK : rq_fail(why, w.rc, "%s", w.why.message);
}

static rq_err lay_out(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_arena a = {0};
    rq__snapshot s;
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__hold_archive(c, p, why));
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &batch, why));
    rq_err rc = rq__snapshot_read(c->env->vfs, p->of.snapshot.name, &a, &s, why);
    if (rc == RQ_OK) rc = lay_out_regions(c, p, &s, batch, why);
    if (rc == RQ_OK)
        rc =
            rq_mob_create_linked(c->engine, batch, p->schema, s.regions[0].info.table, &s.mob, why);
    rc = rq_vfs_batch_end(batch, c->env->executor, rc, why);
    rq_arena_clear(&a);
    if (rc == RQ_OK) rq__release_archive(p);
    return rc;
}

/* Does nothing once the clone is committed: compactions may have replaced the linked files since, and the
 * snapshot may be gone. */
rq_err rq__clone_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    if (rq__create_seen(c, p) == RQ__COMMIT_YES) return RQ_OK;
    RQ_TRY(rq__tableinfo_write(c->env->vfs, p->schema, why));
    return lay_out(c, p, why);
}

rq_err rq__clone_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    rq__release_archive(p); /* an undo may take long */
    RQ_TRY(rq__create_undo(c, p, why));
    if (p->schema != NULL && rq_mob_remove_linked(c->engine, p->schema, &own) != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot remove the regions of a failed clone or restore of a snapshot; they "
                    "are unused: %s",
                    own.message);
    return RQ_OK;
}

rq_err rq__restore_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    if (rq__truncate_seen(c, p) == RQ__COMMIT_YES) return RQ_OK;
    RQ_TRY(rq__close_left_open(c, p, why));
    return lay_out(c, p, why);
}

/* --- restore: the commit and what follows ------------------------------------------------------ */

rq_err rq__restore_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return rq__replace_rows(c, p, why);
}

rq_err rq__restore_publish(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__tableinfo_write(c->env->vfs, p->schema, why));
    return rq__publish_new_regions(c, p, RQ_TABLE_DISABLED, RQ_REGION_CLOSED, why);
}

/* MOB files stay where they are: the cleaner archives those that no region refers to any more. */
rq_err rq__restore_remove(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return rq__destroy_regions(c, p->old_regions, p->old_region_count, why);
}
