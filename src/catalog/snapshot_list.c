/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of snapshots. HBASE: SnapshotManager.getCompletedSnapshots.
 *
 * Clients ask for the list often, and each snapshot is a file to be read, so the list is cached if it has
 * at most KEPT_MAX bytes. It is read again
 *   1. after a procedure has taken or deleted a snapshot (snapshots_changed, counted after the change)
 *   2. when the modification time of .hbase-snapshot/ has changed: another program (ExportSnapshot) has
 *      added or removed a snapshot. If this time is less than SETTLED_MS ago, the list is always read,
 *      because a second change might leave the same time
 *   3. always, while there is a snapshot's folder whose description is missing or damaged: a program may
 *      be writing it.
 * If a program changes the description of a snapshot in place, the cached list stays outdated.
 */
#include "catalog/ddl_priv.h"
#include "catalog/snapshot_manifest.h"

#define KEPT_MAX ((size_t)4 << 20)
#define SETTLED_MS 2000

/* The state with which the cached list is compared. */
typedef struct state {
    uint64_t changes;
    int64_t folder_ms;
    bool is_settled;
} state;

typedef struct reading {
    rq_arena *arena;
    rq_snapshot *list;
    size_t count;
    bool is_whole; /* every snapshot's folder has a valid description */
} reading;

void rq__snapshot_list_init(rq_catalog *c)
{
    pthread_mutex_init(&c->snapshot_list.lock, NULL);
}

void rq__snapshot_list_clear(rq_catalog *c)
{
    rq_arena_clear(&c->snapshot_list.arena);
    pthread_mutex_destroy(&c->snapshot_list.lock);
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err add_one(rq_catalog *c, const char *name, reading *r, rq_error *why)
{
    rq__snapshot_info info;
    rq_error own = {0};
    rq_err rc = rq__snapshot_info_read(c->env->vfs, rq_slice_cstr(name), r->arena, &info, &own);
    if (rc == RQ_E_SNAPSHOT_CORRUPT)
        rq_log_write_limited(c->env->log, &c->corrupt_snapshots, RQ_LOG_WARN, "catalog",
                             "found a corrupted snapshot: %s", own.message);
    if (rc == RQ_E_SNAPSHOT_NOT_FOUND || rc == RQ_E_SNAPSHOT_CORRUPT) {
        r->is_whole = false;
        return RQ_OK;
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    r->list[r->count++] = (rq_snapshot){.name = info.name,
                                        .table = info.table,
                                        .description = info.bytes,
                                        .created_ms = info.created_ms,
                                        .ttl_s = info.ttl_s};
    return RQ_OK;
}

static rq_err read_all(rq_catalog *c, reading *r, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(c->env->vfs, RQ__SNAPSHOT_DIR, r->arena, &entries, &count, why));
    r->list = rq_arena_calloc(r->arena, count + 1, sizeof *r->list);
    if (r->list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if (entries[i].is_dir && entries[i].name[0] != '.')
            RQ_TRY(add_one(c, entries[i].name, r, why));
    return RQ_OK;
}

/* --- what is kept ----------------------------------------------------------------------------- */

static rq_err copy(rq_arena *arena, const rq_snapshot *from, size_t count, rq_snapshot **ret)
{
    rq_snapshot *list = rq_arena_alloc(arena, (count + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        list[i] = from[i];
        list[i].name = rq_arena_copy(arena, from[i].name);
        list[i].table = rq_arena_copy(arena, from[i].table);
        list[i].description = rq_arena_copy(arena, from[i].description);
        if (list[i].name.ptr == NULL || list[i].table.ptr == NULL ||
            list[i].description.ptr == NULL)
            return RQ_E_NO_MEMORY;
    }
    *ret = list;
    return RQ_OK;
}

/* Taken before the list is read, so that a change meanwhile makes the list outdated. */
static state look(rq_catalog *c)
{
    rq_stat st = {.mtime_ms = 0};
    state s = {.changes = atomic_load(&c->snapshots_changed)};
    s.is_settled = rq_vfs_stat(c->env->vfs, RQ__SNAPSHOT_DIR, &st, NULL) == RQ_OK &&
                   st.mtime_ms + SETTLED_MS < rq__catalog_wall_ms(c);
    s.folder_ms = st.mtime_ms;
    return s;
}

/* *ret_found false: there is none, or it is old. */
static rq_err take_kept(rq_catalog *c, const state *now, rq_arena *arena, rq_snapshot **ret,
                        size_t *ret_count, bool *ret_found)
{
    rq__snapshot_list *kept = &c->snapshot_list;
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&kept->lock);
    *ret_found = kept->is_valid && kept->changes == now->changes &&
                 kept->folder_ms == now->folder_ms && now->is_settled;
    if (*ret_found) {
        rc = copy(arena, kept->list, kept->count, ret);
        *ret_count = kept->count;
    }
    pthread_mutex_unlock(&kept->lock);
    return rc;
}

/* Caches the list; without memory it is not cached. */
static void keep(rq_catalog *c, const state *then, const reading *r)
{
    rq__snapshot_list *kept = &c->snapshot_list;
    if (!then->is_settled || !r->is_whole) return;
    pthread_mutex_lock(&kept->lock);
    rq_arena_clear(&kept->arena);
    rq_arena_init(&kept->arena);
    kept->is_valid = copy(&kept->arena, r->list, r->count, &kept->list) == RQ_OK &&
                     kept->arena.total_bytes <= KEPT_MAX;
    kept->count = r->count;
    kept->changes = then->changes;
    kept->folder_ms = then->folder_ms;
    if (!kept->is_valid) rq_arena_clear(&kept->arena);
    pthread_mutex_unlock(&kept->lock);
}

rq_err rq_catalog_snapshots(rq_catalog *c, rq_arena *arena, rq_snapshot **ret, size_t *ret_count,
                            rq_error *why)
{
    bool found;
    reading r = {.arena = arena, .is_whole = true};
    *ret_count = 0;
    state now = look(c);
    rq_err rc = take_kept(c, &now, arena, ret, ret_count, &found);
    if (rc != RQ_OK) return rq_no_memory(why);
    if (found) return RQ_OK;
    RQ_TRY(read_all(c, &r, why));
    keep(c, &now, &r);
    *ret = r.list;
    *ret_count = r.count;
    return RQ_OK;
}
