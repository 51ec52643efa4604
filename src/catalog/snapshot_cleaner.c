/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes expired snapshots, by procedures; and rq_catalog_snapshot_done. HBASE:
 * SnapshotCleanerChore, SnapshotManager.isSnapshotDone. */
#include "catalog/ddl_priv.h"
#include "catalog/snapshot_manifest.h"

#include <stdlib.h>

/* An unfinished procedure that takes a snapshot of that name. */
static bool is_being_taken(rq_catalog *c, rq_slice name)
{
    rq__procedures *ps = &c->procedures;
    bool found = false;
    pthread_mutex_lock(&ps->lock);
    for (const rq__proc *p = ps->active; p != NULL && !found; p = p->next)
        found = p->ops->kind == RQ_DDL_SNAPSHOT && rq_slice_eq(p->of.snapshot.name, name);
    pthread_mutex_unlock(&ps->lock);
    return found;
}

rq_err rq_catalog_snapshot_done(rq_catalog *c, rq_slice name, bool *ret)
{
    *ret = rq__snapshot_name_check(name, NULL) == RQ_OK && rq__snapshot_exists(c->env->vfs, name);
    return *ret || is_being_taken(c, name) ? RQ_OK : RQ_E_SNAPSHOT_UNKNOWN;
}

/* --- expiry ----------------------------------------------------------------------------------- */

typedef struct deletion {
    rq_ddl ddl;
    rq_catalog *catalog;
    char name[];
} deletion;

static void deleted(rq_ddl *ddl)
{
    deletion *d = RQ_CONTAINER_OF(ddl, deletion, ddl);
    if (ddl->rc == RQ_OK)
        rq_log_info(d->catalog->env->log, "catalog", "deleted expired snapshot %s", d->name);
    else if (ddl->rc != RQ_E_SNAPSHOT_NOT_FOUND) /* deleted meanwhile */
        rq_log_warn(d->catalog->env->log, "catalog", "cannot delete expired snapshot %s: %s",
                    d->name, ddl->why.message);
    free(d);
}

/* Does not wait for the procedure, because a stop of the catalog waits for the caller. */
static rq_err delete_one(rq_catalog *c, rq_slice name)
{
    deletion *d = calloc(1, sizeof *d + name.len + 1);
    if (d == NULL) return RQ_E_NO_MEMORY;
    memcpy(d->name, name.ptr, name.len);
    d->catalog = c;
    d->ddl = (rq_ddl){.kind = RQ_DDL_DELETE_SNAPSHOT,
                      .ns = RQ_SLICE_LIT(RQ_SNAPSHOT_NS),
                      .qualifier = rq_slice_cstr(d->name),
                      .submitted = deleted};
    rq_catalog_submit(c, &d->ddl);
    return RQ_OK;
}

static rq_err run_round(rq_catalog *c, rq_error *why)
{
    rq_arena a = {0};
    rq_snapshot *list;
    size_t count;
    if (!rq_catalog_switch_get(c, RQ_SWITCH_SNAPSHOT_CLEANUP)) return RQ_OK;
    int64_t now = rq__catalog_wall_ms(c);
    rq_err rc = rq_catalog_snapshots(c, &a, &list, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        const rq__snapshot_info info = {.created_ms = list[i].created_ms, .ttl_s = list[i].ttl_s};
        if (rq__snapshot_is_expired(&info, now)) rc = delete_one(c, list[i].name);
    }
    rq_arena_clear(&a);
    return rc;
}

/* --- on its own ------------------------------------------------------------------------------- */

static void work(rq_catalog *c)
{
    rq_error why = {0};
    if (run_round(c, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "cannot list or delete expired snapshots: %s",
                    why.message);
}

void rq__snapshot_cleaner_start(rq_catalog *c)
{
    rq__chore_start(&c->snapshot_cleaner, c, work);
}
