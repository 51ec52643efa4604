/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes and truncates a disabled table. Delete: the table's rows in meta are removed, then the folders.
 * Truncate: new region folders, new rows in meta instead of the old ones, removal of the old folders, then the new
 * regions are opened. The rows are written in parts (ddl_parts.c). HBASE: DeleteTableProcedure,
 * TruncateTableProcedure. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

#include "catalog/tableinfo.h"
#include "region/mob_cleaner.h"
#include "vfs/batch.h"

/* HBASE: HMaster.checkTableModifiable. */
static rq_err check_modifiable(rq_catalog *c, rq__proc *p, rq__table_node **ret, rq_error *why)
{
    if (rq_slice_eq(p->table, RQ_SLICE_LIT("hbase:meta")))
        return rq_fail(why, RQ_E_IOEXCEPTION, "Can't modify catalog tables");
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    if (t->pub.state != RQ_TABLE_DISABLED) {
        rq_table_state state = t->pub.state;
        rq__table_node_unref(t);
        return rq__fail_state(RQ_E_TABLE_NOT_DISABLED, "Not DISABLED; ", p, state, why);
    }
    *ret = t;
    return RQ_OK;
}

/* --- delete ----------------------------------------------------------------------------------- */

rq_err rq__delete_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(check_modifiable(c, p, &t, why));
    rq_err rc = rq__copy_infos(p, t, &p->old_regions, &p->old_region_count);
    rq__table_node_unref(t);
    return rc == RQ_OK ? rq__add_parents(c, p, why) : rc;
}

/* The table's state, and then the regions. */
static rq_err delete_row(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    (void)c;
    return i == 0 ? rq__meta_delete_table(b, p->table)
                  : rq__meta_delete_region(b, &p->old_regions[i - 1]);
}

rq_err rq__delete_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__close_left_open(c, p, why));
    RQ_TRY(rq__parts_write(c, p, p->old_region_count + 1, 0, delete_row, why));
    rq__edit e;
    RQ_TRY(rq__edit_begin(&c->views, &e));
    rq_err rc = rq__edit_remove_table(&e, p->ns, p->qualifier);
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rc;
}

/* The folder is synced even if the name is gone: it may have been removed just before a crash. */
static rq_err remove_table_folder(const rq__proc *p, rq_vfs *batch, rq_error *why)
{
    rq_arena a = {0};
    char *dir = rq__table_dir(&a, p->ns, p->qualifier);
    rq_err rc = dir == NULL ? rq_no_memory(why) : rq_vfs_remove_tree(batch, dir, why);
    if (rc == RQ_OK) rc = rq_vfs_sync_parent(batch, dir, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__delete_remove(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq__archive_regions(c, p->old_regions, p->old_region_count, why));
    rq_engine_forget_table(c->engine, p->ns, p->qualifier);
    RQ_TRY(rq_vfs_batch_new(c->env->vfs, &batch, why));
    rq_err rc = rq__remove_regions(c, p->old_regions, p->old_region_count, batch, why);
    if (rc == RQ_OK) rc = remove_table_folder(p, batch, why);
    RQ_TRY(rq_vfs_batch_end(batch, c->env->executor, rc, why));
    /* Only now no other server can have one of the regions open, even if a deposed master has told it to. */
    RQ_TRY(rq_mob_archive(c->engine, p->table, (rq_slice){0}, NULL, 0, why));
    return rq__drop_quotas(c, 't', p->table, why);
}

/* --- truncate --------------------------------------------------------------------------------- */

/* HBASE: preflightChecks(env, false) runs in the procedure's constructor, so that the client gets
 * an error before the procedure exists. */
rq_err rq__truncate_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__catalog_table_ref(c, p->ns, p->qualifier, &t, why));
    rq_table_state state = t->pub.state;
    rq__table_node_unref(t);
    if (state != RQ_TABLE_DISABLED && state != RQ_TABLE_DISABLING)
        return rq__fail_table(RQ_E_TABLE_NOT_DISABLED, p, why);
    return RQ_OK;
}

rq_err rq__truncate_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(check_modifiable(c, p, &t, why));
    rq_err rc = rq__copy_infos(p, t, &p->old_regions, &p->old_region_count);
    if (rc == RQ_OK) {
        p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(t->pub.schema));
        rq_table_schema_unref(p->schema);
        p->schema = rq_table_schema_ref(t->pub.schema);
        if (p->descriptor.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    rq__table_node_unref(t);
    if (rc != RQ_OK) return rc;
    rq_slice *keys = rq_arena_calloc(&p->arena, p->old_region_count, sizeof *keys);
    if (keys == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < p->old_region_count && p->of.truncate.preserve_splits; i++)
        if (p->old_regions[i].start_key.len > 0) keys[n++] = p->old_regions[i].start_key;
    RQ_TRY(rq__make_regions(c, p, keys, n, why));
    return rq__add_parents(c, p, why);
}

rq_err rq__truncate_layout(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__close_left_open(c, p, why));
    return rq__create_regions_durably(c, p, why);
}

rq_err rq__publish_new_regions(rq_catalog *c, rq__proc *p, rq_table_state state,
                               rq_region_state unopened, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    rq__region_node **nodes = calloc(p->region_count + 1, sizeof(rq__region_node *));
    if (nodes == NULL) return rq_no_memory(why);
    int64_t now = rq__catalog_wall_ms(c);
    rq_err rc = RQ_OK;
    size_t n = 0;
    for (; n < p->region_count && rc == RQ_OK; n++) {
        nodes[n] = p->opened != NULL && p->opened[n].node != NULL
                       ? rq__region_node_ref(p->opened[n].node)
                       : rq__region_node_new(&p->regions[n], unopened, NULL, NULL, -1, now, NULL);
        if (nodes[n] == NULL) rc = rq_no_memory(why);
    }
    if (rc == RQ_OK) rc = rq__publish_table(c, p->schema, state, nodes, n, why);
    for (size_t i = 0; i < n; i++)
        rq__region_node_unref(nodes[i]);
    free(nodes);
    return rc;
}

/* The new regions, the first of them last: it is the commit. Then the old ones. */
static rq_err replace_row(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    size_t n = p->region_count;
    (void)c;
    return i < n ? rq__meta_put_region(b, &p->regions[n - 1 - i], RQ_REGION_CLOSED, NULL, -1)
                 : rq__meta_delete_region(b, &p->old_regions[i - n]);
}

rq_err rq__replace_rows(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return rq__parts_write(c, p, p->region_count + p->old_region_count, p->region_count - 1,
                           replace_row, why);
}

/* The same, with the table's state before the old regions. */
static rq_err truncate_row(rq_catalog *c, const rq__proc *p, size_t i, rq__batch *b)
{
    if (i == p->region_count) return rq__meta_put_table_state(b, p->table, RQ_TABLE_ENABLING);
    return replace_row(c, p, i < p->region_count ? i : i - 1, b);
}

rq_err rq__truncate_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    size_t count = p->region_count + 1 + p->old_region_count;
    RQ_TRY(rq__parts_write(c, p, count, p->region_count - 1, truncate_row, why));
    return rq__publish_new_regions(c, p, RQ_TABLE_ENABLING, RQ_REGION_OPENING, why);
}

rq_err rq__truncate_remove(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__destroy_regions(c, p->old_regions, p->old_region_count, why));
    return rq_mob_archive(c->engine, p->table, (rq_slice){0}, p->regions, p->region_count, why);
}

rq_err rq__truncate_finish(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__need_schema(p, why));
    RQ_TRY(rq__need_opened(p, p->regions, p->region_count, why));
    if (p->region_count > 0) /* a repetition opens those that are not */
        RQ_TRY(rq__open_regions(c, p, p->opened, p->opened_count, why));
    RQ_TRY(rq__meta_put_opened(c, p, true, why));
    RQ_TRY(rq__publish_new_regions(c, p, RQ_TABLE_ENABLED, RQ_REGION_OPENING, why));
    rq__opened_served(p->opened, p->opened_count);
    rq__opened_done(c, p);
    return RQ_OK;
}

/* Looks for the first of the new regions: its row is the commit. */
rq__commit_state rq__truncate_seen(rq_catalog *c, const rq__proc *p)
{
    rq__table_node *t;
    bool found = false;
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK) return RQ__COMMIT_UNKNOWN;
    if (p->region_count > 0) found = rq__table_index(t, &p->regions[0]) < t->pub.region_count;
    rq__table_node_unref(t);
    return found ? RQ__COMMIT_YES : RQ__COMMIT_NO;
}

rq_err rq__truncate_undo(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    rq__release_archive(p); /* of a restore; an undo may take long */
    RQ_TRY(rq__parts_undo(c, p, why));
    if (rq__destroy_regions(c, p->regions, p->region_count, &own) != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot remove the new regions of a failed truncate; they are unused: %s",
                    own.message);
    return RQ_OK;
}
