/* SPDX-License-Identifier: Apache-2.0 */
/* Moves files that no server reads to .rorqual/aside/<n>/, under their old paths: each file gets
 * its new name, durably, before the old one is removed. fsck.h tells when this is allowed. */
#include "catalog/fsck_priv.h"

#define ASIDE ".rorqual/aside"
#define DEPTH_MAX 16

/* NULL: it may be done. */
static const char *why_not(const rq__fsck *k)
{
    if (!k->ours || k->foreign) return "Apache HBase was the last to use the folder";
    if (k->was_open) return "the server was not stopped cleanly";
    if (k->log_damaged) return "the log is damaged";
    if (k->unfinished > 0) return "a procedure is unfinished";
    if (!k->meta_whole) return "hbase:meta or the procedures cannot be read completely";
    return NULL;
}

/* Whether another region's file or a snapshot refers to the file, or to one in the folder. */
static bool is_referred_to(const rq__fsck *k, const char *path)
{
    return rq__fsck_has_path(&k->targets, path) || rq__fsck_has_path(&k->target_dirs, path);
}

static rq_err move_file(rq__fsck *k, const char *from, const char *to_root, rq_error *why)
{
    char *to = rq_arena_printf(&k->arena, "%s/%s", to_root, from);
    return to == NULL ? RQ_E_NO_MEMORY : rq_vfs_move(k->vfs, from, to, why);
}

static rq_err move_tree(rq__fsck *k, const char *from, const char *to_root, unsigned depth,
                        rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    char *to = rq_arena_printf(&k->arena, "%s/%s", to_root, from);
    if (to == NULL) return RQ_E_NO_MEMORY;
    if (depth == DEPTH_MAX) return rq_fail(why, RQ_E_STATE, "%s: too deep", from);
    RQ_TRY(rq_vfs_mkdirs(k->vfs, to, why));
    RQ_TRY(rq__fsck_list(k, from, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *path = rq_arena_printf(&k->arena, "%s/%s", from, entries[i].name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        if (entries[i].is_dir && !entries[i].is_link)
            RQ_TRY(move_tree(k, path, to_root, depth + 1, why));
        else
            RQ_TRY(move_file(k, path, to_root, why));
    }
    return rq_vfs_remove(k->vfs, from, why);
}

/* An unused number. */
rq_err rq__fsck_find_place(rq__fsck *k, const char **ret, rq_error *why)
{
    for (unsigned n = 1;; n++) {
        rq_stat st;
        rq_error own = {0};
        *ret = rq_arena_printf(&k->arena, ASIDE "/%u", n);
        if (*ret == NULL) return RQ_E_NO_MEMORY;
        rq_err rc = rq_vfs_stat(k->vfs, *ret, &st, &own);
        if (rc == RQ_E_NOT_FOUND) return RQ_OK;
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    }
}

rq_err rq__fsck_move(rq__fsck *k, const char *path, const char *to_root, rq_error *why)
{
    rq_stat st;
    RQ_TRY(rq_vfs_stat(k->vfs, path, &st, why));
    rq_err rc = st.is_dir ? move_tree(k, path, to_root, 0, why) : move_file(k, path, to_root, why);
    if (rc != RQ_OK) return rc;
    RQ_TRY(rq_vfs_sync_parent(k->vfs, path, why));
    k->totals.moved++;
    rq__fsck_report(k, RQ_FINDING_NOTE, path, "moved to %s/%s", to_root, path);
    return RQ_OK;
}

/* A region's manifest is moved with its folder. */
static rq_err move_manifest(rq__fsck *k, const char *path, const char *to_root, rq_error *why)
{
    if (strncmp(path, "data/", 5) != 0) return RQ_OK;
    for (int i = 0; i < 2; i++) {
        bool there;
        const char *slot =
            rq_arena_printf(&k->arena, ".rorqual/regions%s.%d", strrchr(path, '/'), i);
        if (slot == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_vfs_exists(k->vfs, slot, &there, why));
        if (there) RQ_TRY(rq__fsck_move(k, slot, to_root, why));
    }
    return RQ_OK;
}

rq_err rq__fsck_move_region(rq__fsck *k, const char *dir, const char *to_root, rq_error *why)
{
    RQ_TRY(rq__fsck_move(k, dir, to_root, why));
    return move_manifest(k, dir, to_root, why);
}

rq_err rq__fsck_repair(rq__fsck *k, rq_error *why)
{
    const char *to_root;
    const char *reason = why_not(k);
    if (k->orphans.first == NULL) return RQ_OK;
    if (reason != NULL) {
        rq__fsck_report(k, RQ_FINDING_NOTE, "", "nothing was moved: %s", reason);
        return RQ_OK;
    }
    RQ_TRY(rq__fsck_find_place(k, &to_root, why));
    for (const rq__fsck_path *p = k->orphans.first; p != NULL; p = p->next) {
        if (is_referred_to(k, p->path)) {
            rq__fsck_report(k, RQ_FINDING_NOTE, p->path,
                            "stays: other regions or a snapshot need it");
            continue;
        }
        RQ_TRY(rq__fsck_move_region(k, p->path, to_root, why));
    }
    return RQ_OK;
}
