/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that each snapshot's manifest can be read, and that every file it names is in data/, mobdir/
 * or archive/. A repair does not move files and regions that a snapshot needs. A folder without
 * .snapshotinfo was left by an interrupted commit or deletion. */
#include "catalog/fsck_priv.h"
#include "catalog/snapshot_manifest.h"

/* A repair would move the files to a folder in which the snapshot does not look for them. */
static rq_err note_needed(rq__fsck *k, const rq__snapshot *s, rq_error *why)
{
    for (const rq__fsck_path *p = k->orphans.first; p != NULL; p = p->next)
        if (rq__snapshot_names(s, strrchr(p->path, '/') + 1))
            RQ_TRY(rq__fsck_note_target(k, p->path) == RQ_OK ? RQ_OK : rq_no_memory(why));
    return RQ_OK;
}

static rq_err look_at_snapshot(rq__fsck *k, const char *name, rq_error *why)
{
    rq_arena a = {0};
    rq__snapshot s;
    rq__snapshot_info info;
    rq_error own = {0};
    rq_slice key = rq_slice_cstr(name);
    const char *place = rq__snapshot_path(&k->arena, RQ__SNAPSHOT_DIR, key, "");
    if (place == NULL) return rq_no_memory(why);
    rq_err rc = rq__snapshot_info_read(k->vfs, key, &a, &info, &own);
    if (rc == RQ_E_SNAPSHOT_NOT_FOUND) {
        rq__fsck_report(k, RQ_FINDING_NOTE, place,
                        "is not a snapshot: it was not finished, or was deleted in part");
        rc = RQ_OK;
    } else {
        if (rc == RQ_OK) rc = rq__snapshot_read(k->vfs, key, &a, &s, &own);
        if (rc == RQ_OK) rc = note_needed(k, &s, &own);
        if (rc == RQ_OK) rc = rq__snapshot_verify(k->vfs, &s, &own);
        if (rc == RQ_E_SNAPSHOT_CORRUPT) {
            rq__fsck_report(k, RQ_FINDING_PROBLEM, place, "%s", own.message);
            rc = RQ_OK;
        }
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", place, own.message);
}

rq_err rq__fsck_snapshots(rq__fsck *k, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq__fsck_list(k, RQ__SNAPSHOT_DIR, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (entries[i].is_dir && entries[i].name[0] != '.')
            RQ_TRY(look_at_snapshot(k, entries[i].name, why));
    return RQ_OK;
}
