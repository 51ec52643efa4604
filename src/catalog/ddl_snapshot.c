/* SPDX-License-Identifier: Apache-2.0 */
/* Takes and deletes snapshots; the layout on disk is in snapshot_manifest.h.
 *
 *   take     .tmp/NAME emptied ─ files of all regions listed ─ manifest and info written there ─
 *            manifest moved to NAME/ ─ info moved (commit)
 *   delete   info removed (commit) ─ folder removed
 *
 * The procedure holds the archive (vfs/retention.h) from before the first region is listed until the
 * snapshot exists; from then on the cleaner keeps the files that the manifest names. The table is
 * locked, so its regions neither split nor merge meanwhile. After a crash before the commit everything
 * is listed again. HBASE: SnapshotManager, SnapshotProcedure. */
#include "catalog/ddl_priv.h"
#include "catalog/snapshot_manifest.h"
#include "vfs/retention.h"

#include <stdlib.h>

static rq_slice name_of(const rq__proc *p)
{
    return p->of.snapshot.name;
}

/* --- holding files ---------------------------------------------------------------------------- */

rq_err rq__hold_archive(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_arena a = {0};
    if (p->holder != NULL) return RQ_OK;
    const char *name =
        rq_arena_printf(&a, "snapshot %.*s", (int)name_of(p).len, (const char *)name_of(p).ptr);
    rq_err rc = name == NULL ? RQ_E_NO_MEMORY
                             : rq_retention_hold(rq_engine_retention(c->engine), name,
                                                 rq__catalog_wall_ms(c), &p->holder);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

void rq__release_archive(rq__proc *p)
{
    rq_holder_release(p->holder);
    p->holder = NULL;
}

/* --- checks ----------------------------------------------------------------------------------- */

static rq_err check_new(rq_catalog *c, const rq__proc *p, rq_error *why)
{
    if (!rq__snapshot_exists(c->env->vfs, name_of(p))) return RQ_OK;
    return rq_fail(why, RQ_E_SNAPSHOT_EXISTS, "Snapshot '%.*s' already stored on the filesystem.",
                   (int)name_of(p).len, (const char *)name_of(p).ptr);
}

static rq_err table_of(rq_catalog *c, const rq__proc *p, rq__table_node **ret, rq_error *why)
{
    if (rq__catalog_table_ref(c, p->ns, p->qualifier, ret, NULL) == RQ_OK) return RQ_OK;
    return rq_fail(why, RQ_E_SNAPSHOT_CREATION, "Table '%.*s' doesn't exist, can't take snapshot.",
                   (int)p->table.len, (const char *)p->table.ptr);
}

rq_err rq__snapshot_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(rq__snapshot_name_check(name_of(p), why));
    RQ_TRY(rq__name_len_check("Snapshot name", name_of(p), why));
    RQ_TRY(check_new(c, p, why));
    RQ_TRY(table_of(c, p, &t, why));
    rq__table_node_unref(t);
    return RQ_OK;
}

/* A disabled table has no memstores. Clients without a procedure expect the type DISABLED, which is
 * appended to the description: in a protobuf message the last value of a field counts. HBASE:
 * SnapshotManager.snapshotDisabledTable; SnapshotProcedure keeps the client's type. */
static rq_err set_disabled(rq__proc *p)
{
    static const uint8_t type[] = {4 << 3, 0};
    p->of.snapshot.flush = false;
    if (!p->of.snapshot.names_disabled) return RQ_OK;
    rq_slice old = p->of.snapshot.description;
    uint8_t *bytes = rq_arena_alloc(&p->arena, old.len + sizeof type);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    memcpy(bytes, old.ptr, old.len);
    memcpy(bytes + old.len, type, sizeof type);
    p->of.snapshot.description = rq_slice_of(bytes, old.len + sizeof type);
    return RQ_OK;
}

static rq_err prepare(rq__proc *p, const rq__table_node *t, rq_error *why)
{
    if (t->pub.state != RQ_TABLE_ENABLED && t->pub.state != RQ_TABLE_DISABLED)
        return rq_fail(why, RQ_E_SNAPSHOT_CREATION, "Table is not entirely open or closed");
    p->descriptor = rq_arena_copy(&p->arena, rq_table_schema_pb(t->pub.schema));
    if (p->descriptor.ptr == NULL) return rq_no_memory(why);
    return t->pub.state == RQ_TABLE_DISABLED ? set_disabled(p) : RQ_OK;
}

rq_err rq__snapshot_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    RQ_TRY(check_new(c, p, why));
    RQ_TRY(table_of(c, p, &t, why));
    rq_err rc = prepare(p, t, why);
    rq__table_node_unref(t);
    return rc;
}

/* --- the working folder ----------------------------------------------------------------------- */

static rq_err remove_folder(rq_catalog *c, const char *dir, rq_slice name, rq_error *why)
{
    rq_arena a = {0};
    const char *path = rq__snapshot_path(&a, dir, name, "");
    rq_err rc = path == NULL ? rq_no_memory(why) : rq_vfs_remove_tree(c->env->vfs, path, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__snapshot_begin(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_vfs *v = c->env->vfs;
    if (rq__snapshot_seen(c, p) == RQ__COMMIT_YES) return RQ_OK;
    /* A manifest without its info is what an interrupted commit leaves: another may follow. */
    RQ_TRY(remove_folder(c, RQ__SNAPSHOT_TMP, name_of(p), why));
    RQ_TRY(remove_folder(c, RQ__SNAPSHOT_DIR, name_of(p), why));
    rq_arena a = {0};
    const char *path = rq__snapshot_path(&a, RQ__SNAPSHOT_TMP, name_of(p), "");
    const char *info = rq__snapshot_path(&a, RQ__SNAPSHOT_TMP, name_of(p), RQ__SNAPSHOT_INFO);
    rq_err rc = path == NULL || info == NULL ? rq_no_memory(why) : rq_vfs_mkdirs(v, path, why);
    if (rc == RQ_OK) rc = rq_vfs_write_new_file(v, info, p->of.snapshot.description, why);
    rq_arena_clear(&a);
    return rc;
}

/* --- the regions ------------------------------------------------------------------------------ */

/* A region, and its part of the manifest. */
typedef struct part {
    const rq_region_info *info;
    const rq_region_call *call; /* NULL: closed */
    rq_buf bytes;
    rq_err rc;
    rq_error why;
} part;

typedef struct collecting {
    rq_catalog *catalog;
    rq_table_schema *schema;
    part *parts;
    size_t count;
} collecting;

static void collect_one(void *ctx, size_t i)
{
    const collecting *k = ctx;
    part *p = &k->parts[i];
    rq_arena a = {0};
    rq_region_files files;
    const rq_region_files *list = &files;
    p->rc = RQ_OK;
    if (p->call != NULL)
        list = &p->call->files;
    else
        p->rc =
            rq_region_files_of_closed(k->catalog->engine, p->info, k->schema, &a, &files, &p->why);
    if (p->rc == RQ_OK) p->rc = rq__snapshot_put_region(&p->bytes, p->info, list);
    rq_arena_clear(&a);
}

/* Adds the split parents, because daughters may refer to their files. Merged regions have no row in meta,
 * and are not in HBase's manifests either: the names of references tell which files they refer to. */
static void add_split_parents(collecting *k, const rq__proc *p)
{
    for (size_t i = 0; i < p->old_region_count; i++)
        if (p->old_regions[i].split && p->old_regions[i].offline)
            k->parts[k->count++] = (part){.info = &p->old_regions[i]};
}

/* RQ_E_STATE: *ret_unflushed is closed and has records in the log: a disable could not flush it. */
static rq_err join_parts(const collecting *k, rq_buf *out, const rq_region_info **ret_unflushed,
                         rq_error *why)
{
    for (size_t i = 0; i < k->count; i++) {
        const part *p = &k->parts[i];
        *ret_unflushed = p->info;
        if (p->rc == RQ_E_STATE && p->call == NULL) return p->rc;
        if (p->rc != RQ_OK)
            return rq_fail(why, p->rc, "region %s: %s", p->info->encoded,
                           p->why.code != RQ_OK ? p->why.message : rq_err_text(p->rc));
        if (rq_buf_append(out, p->bytes.ptr, p->bytes.len) != RQ_OK) return rq_no_memory(why);
    }
    return RQ_OK;
}

/* --- the regions that are open: their servers list the files --------------------------------------- */

static rq_err add_call(rq__calls *k, const rq__proc *p, rq__region_node *n, rq_error *why)
{
    if (n->pub.server == NULL)
        return rq_fail(why, RQ_E_SNAPSHOT_CREATION, "region %s is %s, not OPEN", n->info.encoded,
                       rq__region_state_name(n->pub.state));
    rq_region_call *call = &k->list[k->count];
    call->flush = p->of.snapshot.flush;
    rq__calls_of_node(k, k->count++, n);
    return RQ_OK;
}

static rq_err ask_files(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    size_t count = t->pub.state == RQ_TABLE_ENABLED ? t->pub.region_count : 0;
    rq__calls *k = rq__calls_new(c, p, RQ_CALL_LIST_FILES, count);
    rq_err rc = k == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK && rq__calls_with_arenas(k) != RQ_OK) rc = rq_no_memory(why);
    if (k != NULL) k->count = 0;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = add_call(k, p, rq__table_region(t, i), why);
    if (rc == RQ_OK) return rq__calls_send(k);
    rq__calls_free(k);
    return rc;
}

/* Fills p->files with the reports of the servers: the files of each open region. */
static rq_err take_files(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    RQ_TRY(p->calls != NULL ? rq__calls_wait(p) : ask_files(c, p, t, why));
    p->files = p->calls;
    p->calls = NULL;
    for (size_t i = 0; i < p->files->count; i++) {
        const rq_region_call *call = &p->files->list[i];
        if (call->rc != RQ_OK)
            return rq_fail(why, call->rc, "region %s: %s", call->info->encoded,
                           call->why != NULL ? call->why->message : rq_err_text(call->rc));
    }
    return RQ_OK;
}

/* --- MOB files ---------------------------------------------------------------------------------- */

/* Lists the MOB files, then asks the other servers which of them are being written. Without MOB families nobody is asked. */
static rq_err ask_mob(rq_catalog *c, rq__proc *p, const rq_table_schema *s, rq_error *why)
{
    rq__calls *k;
    RQ_TRY(rq_mob_files_list(c->engine, s, &p->arena, &p->mob, why));
    if (p->mob.count == 0) return RQ_OK;
    rq_err rc = rq__calls_for_mob_writes(c, p, &k);
    if (rc != RQ_OK) return rq_no_memory(why);
    return rq__calls_send(k);
}

/* Nothing refers to the incomplete files of a server that has ended. A server that runs and has not answered, for example one
 * of an earlier version, may be writing any of the files. */
static rq_err check_answers(const rq_catalog *c, const rq__calls *k, rq_error *why)
{
    rq_err rc = rq__calls_undone(k);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    for (size_t i = 0; i < k->count; i++) {
        const rq_region_call *call = &k->list[i];
        if (call->rc == RQ_OK || !rq__catalog_server_is_up(c, call->server)) continue;
        return rq_fail(why, RQ_E_SNAPSHOT_CREATION,
                       "%s has not listed the MOB files that it is writing: %s", call->server->text,
                       call->why != NULL ? call->why->message : rq_err_text(call->rc));
    }
    return RQ_OK;
}

/* REQUIRES: all calls have reported. */
static rq_err measure_mob(rq_catalog *c, rq__proc *p, const rq_table_schema *s, rq_error *why)
{
    rq_mob_writers w;
    rq_arena a = {0};
    RQ_TRY(check_answers(c, p->calls, why));
    rq_err rc = rq__mob_writers_of(p->calls, &a, &w);
    if (rc != RQ_OK) {
        rq_arena_clear(&a);
        return rq_no_memory(why);
    }
    if (w.file_count > 1) qsort(w.files, w.file_count, sizeof *w.files, rq_slice_order);
    rc = rq_mob_files_measure(c->engine, s, w.files, w.file_count, &p->arena, &p->mob, why);
    rq_arena_clear(&a);
    return rc;
}

/* Fills p->mob. REQUIRES: the regions' files were listed: the MOB files to which they refer exist by then. */
static rq_err take_mob(rq_catalog *c, rq__proc *p, const rq_table_schema *s, rq_error *why)
{
    RQ_TRY(p->calls != NULL ? rq__calls_wait(p) : ask_mob(c, p, s, why));
    if (p->calls == NULL) return RQ_OK;
    rq_err rc = measure_mob(c, p, s, why);
    rq__calls_drop(p);
    return rc;
}

/* HBASE: MobUtils.getMobRegionInfo. */
static rq_err add_mob(const rq__proc *p, const rq_table_schema *s, rq_buf *out, rq_error *why)
{
    rq_arena a = {0};
    rq_region_info info;
    if (p->mob.count == 0) return RQ_OK;
    rq_err rc = rq_region_info_make(&a, s->ns, s->qualifier, RQ_SLICE_LIT(".mob"), (rq_slice){0}, 0,
                                    0, &info);
    if (rc == RQ_OK) rc = rq__snapshot_put_region(out, &info, &p->mob);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* --- all of them -------------------------------------------------------------------------------- */

static rq_err list_parts(collecting *k, const rq__proc *p, const rq__table_node *t)
{
    k->parts = calloc(t->pub.region_count + p->old_region_count + 1, sizeof *k->parts);
    if (k->parts == NULL) return RQ_E_NO_MEMORY;
    if (t->pub.state == RQ_TABLE_ENABLED) {
        for (size_t i = 0; i < p->files->count; i++)
            k->parts[k->count++] =
                (part){.info = p->files->list[i].info, .call = &p->files->list[i]};
    } else {
        for (size_t i = 0; i < t->pub.region_count; i++)
            k->parts[k->count++] = (part){.info = &rq__table_region(t, i)->info};
    }
    add_split_parents(k, p);
    return RQ_OK;
}

static rq_err collect(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_buf *out,
                      const rq_region_info **ret_unflushed, rq_error *why)
{
    collecting k = {.catalog = c, .schema = t->pub.schema};
    rq_err rc = list_parts(&k, p, t);
    if (rc != RQ_OK) return rq_no_memory(why);
    rq_parallel(c->env->executor, k.count, collect_one, &k);
    rc = join_parts(&k, out, ret_unflushed, why);
    if (rc == RQ_OK) rc = add_mob(p, t->pub.schema, out, why);
    for (size_t i = 0; i < k.count; i++)
        rq_buf_clear(&k.parts[i].bytes);
    free(k.parts);
    return rc;
}

static rq_err write_manifest(rq_catalog *c, const rq__proc *p, rq_slice bytes, rq_error *why)
{
    rq_vfs *v = c->env->vfs;
    rq_arena a = {0};
    rq_error own = {0};
    const char *path = rq__snapshot_path(&a, RQ__SNAPSHOT_TMP, name_of(p), RQ__SNAPSHOT_MANIFEST);
    rq_err rc = path == NULL ? rq_no_memory(why) : rq_vfs_remove(v, path, &own);
    if (rc == RQ_E_NOT_FOUND) rc = RQ_OK; /* otherwise it is of an earlier attempt */
    if (rc == RQ_OK) rc = rq_vfs_write_new_file(v, path, bytes, why);
    rq_arena_clear(&a);
    return rc;
}

/* The closed region whose records only the log has. */
static rq_err note_unflushed(rq__proc *p, const rq__table_node *t, const rq_region_info *info,
                             rq_error *why)
{
    p->infos = rq_arena_calloc(&p->arena, 1, sizeof *p->infos);
    if (p->infos == NULL || rq_region_info_copy(&p->arena, info, p->infos) != RQ_OK)
        return rq_no_memory(why);
    rq_table_schema_unref(p->schema);
    p->schema = rq_table_schema_ref(t->pub.schema);
    p->stage = 2;
    return RQ_OK;
}

static rq_err write_parts(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    rq_buf bytes = {0};
    const rq_region_info *unflushed = NULL;
    p->old_region_count = 0;
    rq_err rc = rq__add_parents(c, p, why);
    if (rc == RQ_OK) rc = rq__snapshot_put_schema(&bytes, rq_table_schema_pb(t->pub.schema));
    if (rc == RQ_OK) rc = collect(c, p, t, &bytes, &unflushed, why);
    if (rc == RQ_E_STATE && unflushed != NULL)
        rc = note_unflushed(p, t, unflushed, why);
    else if (rc == RQ_OK)
        rc = write_manifest(c, p, rq_buf_slice(&bytes), why);
    p->old_region_count = 0; /* these are left unchanged */
    rq_buf_clear(&bytes);
    return rc;
}

/* Stages: 0 asks the servers for the files of open regions. 1 lists the MOB files and asks the servers which of them are being
 * written. 3 writes the manifest; if it finds a closed region whose edits are only in the log, 2 flushes the edits, and 1
 * follows again. */
static rq_err collect_stage(rq_catalog *c, rq__proc *p, const rq__table_node *t, rq_error *why)
{
    if (p->stage == 0) {
        RQ_TRY(take_files(c, p, t, why));
        p->stage = 1;
    }
    if (p->stage == 2) {
        RQ_TRY(rq__bring_into_files(c, p, p->infos, p->schema, why));
        p->stage = 1;
    }
    if (p->stage == 1) {
        RQ_TRY(take_mob(c, p, t->pub.schema, why));
        p->stage = 3;
    }
    return write_parts(c, p, t, why);
}

rq_err rq__snapshot_collect(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq__table_node *t;
    if (rq__snapshot_seen(c, p) == RQ__COMMIT_YES) return RQ_OK;
    RQ_TRY(rq__hold_archive(c, p, why));
    RQ_TRY(table_of(c, p, &t, why));
    rq_err rc;
    do
        rc = collect_stage(c, p, t, why);
    while (rc == RQ_OK && p->stage == 2);
    rq__table_node_unref(t);
    if (rc == RQ_E_AGAIN) return rc;
    rq__calls_free(p->files);
    p->files = NULL;
    return rc;
}

/* --- the commit ------------------------------------------------------------------------------- */

/* May be repeated: a file that is no longer there was moved by an earlier attempt. */
static rq_err move_once(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    rq_stat st;
    bool moved =
        rq_vfs_stat(v, from, &st, NULL) == RQ_E_NOT_FOUND && rq_vfs_stat(v, to, &st, NULL) == RQ_OK;
    return moved ? rq_vfs_sync_parent(v, to, why) : rq_vfs_move(v, from, to, why);
}

static rq_err move_file(rq_catalog *c, rq_slice name, const char *file, rq_error *why)
{
    rq_arena a = {0};
    const char *from = rq__snapshot_path(&a, RQ__SNAPSHOT_TMP, name, file);
    const char *to = rq__snapshot_path(&a, RQ__SNAPSHOT_DIR, name, file);
    rq_err rc =
        from == NULL || to == NULL ? rq_no_memory(why) : move_once(c->env->vfs, from, to, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__snapshot_complete(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_slice name = name_of(p);
    if (rq__snapshot_seen(c, p) != RQ__COMMIT_YES) {
        RQ_TRY(move_file(c, name, RQ__SNAPSHOT_MANIFEST, why));
        RQ_TRY(move_file(c, name, RQ__SNAPSHOT_INFO, why));
    }
    p->committed = true;
    atomic_fetch_add(&c->snapshots_changed, 1);
    atomic_fetch_add(&c->snapshots_made, 1); /* before the files are released */
    rq__release_archive(p);
    return remove_folder(c, RQ__SNAPSHOT_TMP, name, why);
}

/* Whether .snapshotinfo is in place; unknown if that cannot be read now. */
static rq__commit_state in_place(rq_catalog *c, rq_slice name)
{
    rq_arena a = {0};
    rq_stat st;
    const char *info = rq__snapshot_path(&a, RQ__SNAPSHOT_DIR, name, RQ__SNAPSHOT_INFO);
    rq_err rc = info == NULL ? RQ_E_NO_MEMORY : rq_vfs_stat(c->env->vfs, info, &st, NULL);
    rq_arena_clear(&a);
    if (rc == RQ_OK) return RQ__COMMIT_YES;
    return rc == RQ_E_NOT_FOUND ? RQ__COMMIT_NO : RQ__COMMIT_UNKNOWN;
}

rq__commit_state rq__snapshot_seen(rq_catalog *c, const rq__proc *p)
{
    return in_place(c, name_of(p));
}

rq_err rq__snapshot_undo(rq_catalog *c, rq__proc *p)
{
    rq_error why = {0};
    rq_err rc = remove_folder(c, RQ__SNAPSHOT_TMP, name_of(p), &why);
    if (rc == RQ_OK) rc = remove_folder(c, RQ__SNAPSHOT_DIR, name_of(p), &why);
    if (rc != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot remove the folder of a failed snapshot; it is unused: %s", why.message);
    rq__release_archive(p);
    return RQ_OK;
}

/* --- deleting: the snapshot's name stands in place of a table's ------------------------------- */

rq_err rq__snapshot_delete_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__snapshot_name_check(p->qualifier, why));
    if (rq__snapshot_exists(c->env->vfs, p->qualifier)) return RQ_OK;
    return rq_fail(why, RQ_E_SNAPSHOT_NOT_FOUND, "Snapshot '%.*s' doesn't exist on the filesystem",
                   (int)p->qualifier.len, (const char *)p->qualifier.ptr);
}

rq_err rq__snapshot_delete_commit(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_vfs *v = c->env->vfs;
    rq_arena a = {0};
    rq_stat st;
    rq_err rc = RQ_OK;
    const char *dir = rq__snapshot_path(&a, RQ__SNAPSHOT_DIR, p->qualifier, "");
    const char *info = rq__snapshot_path(&a, RQ__SNAPSHOT_DIR, p->qualifier, RQ__SNAPSHOT_INFO);
    if (dir == NULL || info == NULL)
        rc = rq_no_memory(why);
    else if (rq_vfs_stat(v, info, &st, NULL) != RQ_E_NOT_FOUND)
        rc = rq_vfs_remove(v, info, why);
    if (rc == RQ_OK && rq_vfs_stat(v, dir, &st, NULL) != RQ_E_NOT_FOUND)
        rc = rq_vfs_sync_dir(v, dir, why);
    rq_arena_clear(&a);
    atomic_fetch_add(&c->snapshots_changed, 1); /* also if only the sync has failed */
    if (rc == RQ_OK) p->committed = true;
    return rc;
}

rq_err rq__snapshot_delete_files(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return remove_folder(c, RQ__SNAPSHOT_DIR, p->qualifier, why);
}

rq__commit_state rq__snapshot_delete_seen(rq_catalog *c, const rq__proc *p)
{
    rq__commit_state state = in_place(c, p->qualifier);
    if (state == RQ__COMMIT_UNKNOWN) return state;
    return state == RQ__COMMIT_YES ? RQ__COMMIT_NO : RQ__COMMIT_YES;
}
