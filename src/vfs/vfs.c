/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks in front of every storage implementation: paths are checked here, once, so that no
 * implementation can be led out of its root; and the small compositions (make folders, whole small
 * files) that keep the durability rules of vfs.h for their callers.
 */
#include "vfs/vfs.h"

#include <stdio.h>
#include <stdlib.h>

#include "vfs/vfs_priv.h"

/* Whether a part of the path is longer than the names of file systems. */
static bool has_long_name(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n > RQ_NAME_MAX) return true;
        if (path[n] == '\0') return false;
        path += n + 1;
    }
}

/* Relative, without empty, "." or ".." components. "" is the root, where a folder is allowed. */
static rq_err path_check(const char *path, bool may_be_root, rq_error *why)
{
    if (path == NULL) return rq_fail(why, RQ_E_INVALID, "no path");
    if (path[0] == '\0' && may_be_root) return RQ_OK;
    size_t len = strlen(path);
    if (len >= RQ_PATH_MAX) return rq_fail(why, RQ_E_INVALID, "path of %zu bytes is too long", len);
    if (has_long_name(path))
        return rq_fail(why, RQ_E_INVALID, "\"%s\" has a name of more than %d bytes", path,
                       RQ_NAME_MAX);
    const char *part = path;
    for (;;) {
        size_t n = strcspn(part, "/");
        bool dots = (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.');
        if (n == 0 || dots) return rq_fail(why, RQ_E_INVALID, "bad path \"%s\"", path);
        if (part[n] == '\0') return RQ_OK;
        part += n + 1;
    }
}

/* The path's folder; "" for a name in the root. */
static void path_parent(const char *path, char parent[static RQ_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    memcpy(parent, path, len);
    parent[len] = '\0';
}

/* --- files -------------------------------------------------------------------------------- */

rq_err rq_vfs_open(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    return v->open(v, path, flags, ret, why);
}

rq_err rq_file_close(rq_file *f)
{
    return f == NULL ? RQ_OK : f->vfs->close(f);
}

void rq_file_drop_behind(rq_file *f, uint64_t off, uint64_t len)
{
    if (f->vfs->drop_behind != NULL && len > 0) f->vfs->drop_behind(f, off, len);
}

rq_read_plan rq_file_plan_read(rq_file *f, uint64_t off, uint64_t len)
{
    return f->vfs->plan_read == NULL ? RQ_READ_AHEAD : f->vfs->plan_read(f, off, len);
}

void rq_file_in_sequence(rq_file *f, bool on)
{
    if (f->vfs->in_sequence != NULL) f->vfs->in_sequence(f, on);
}

rq_err rq_file_truncate(rq_file *f, uint64_t size, rq_error *why)
{
    return f->vfs->truncate(f, size, why);
}

rq_err rq_file_size(rq_file *f, uint64_t *ret, rq_error *why)
{
    return f->vfs->size(f, ret, why);
}

rq_err rq_file_opened_size(rq_file *f, uint64_t *ret, rq_error *why)
{
    return f->vfs->opened_size == NULL ? f->vfs->size(f, ret, why)
                                       : f->vfs->opened_size(f, ret, why);
}

rq_err rq_file_identify(rq_file *f, rq_file_id *ret, rq_error *why)
{
    return f->vfs->identify(f, ret, why);
}

rq_err rq_file_link(rq_file *f, rq_vfs *to, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    if (to->link_file != f->vfs->link_file)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s: other storage", path);
    return f->vfs->link_file(f, to, path, why);
}

rq_err rq_file_share(rq_file *f, rq_vfs *to, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    if (f->vfs->share_file == NULL || to->share_file != f->vfs->share_file)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s: other storage", path);
    return f->vfs->share_file(f, to, path, why);
}

/* --- names -------------------------------------------------------------------------------- */

rq_err rq_vfs_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    if (path != NULL && has_long_name(path))
        return rq_fail(why, RQ_E_NOT_FOUND, "\"%s\" has a name of more than %d bytes", path,
                       RQ_NAME_MAX);
    RQ_TRY(path_check(path, true, why));
    return v->stat(v, path, ret, why);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const rq_dir_entry *)a)->name, ((const rq_dir_entry *)b)->name);
}

rq_err rq_vfs_list(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                   size_t *ret_count, rq_error *why)
{
    RQ_TRY(path_check(dir, true, why));
    rq_dir_entry *entries = NULL;
    size_t count = 0;
    RQ_TRY(v->list(v, dir, arena, &entries, &count, why));
    if (count > 1) qsort(entries, count, sizeof *entries, compare_entries);
    *ret = entries;
    *ret_count = count;
    return RQ_OK;
}

rq_err rq_vfs_exists(rq_vfs *v, const char *path, bool *ret, rq_error *why)
{
    rq_stat st;
    rq_error detail = {0};
    rq_err rc = rq_vfs_stat(v, path, &st, &detail);
    *ret = rc == RQ_OK;
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_vfs_list_if_any(rq_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    rq_error detail = {0};
    rq_err rc = rq_vfs_list(v, dir, arena, ret, ret_count, &detail);
    if (rc == RQ_E_NOT_FOUND) {
        *ret = NULL;
        *ret_count = 0;
        return RQ_OK;
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_vfs_mkdir(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    return v->mkdir(v, path, why);
}

/* Makes one folder and syncs its name. */
static rq_err mkdir_durable(rq_vfs *v, const char *path, bool *ret_made, rq_error *why)
{
    rq_error detail = {0};
    rq_err rc = v->mkdir(v, path, &detail);
    *ret_made = rc == RQ_OK;
    if (rc == RQ_E_EXISTS) {
        /* Its creator may have crashed before syncing its name. */
        rq_stat st;
        RQ_TRY(v->stat(v, path, &st, why));
        if (!st.is_dir) return rq_fail(why, RQ_E_EXISTS, "%s is not a folder", path);
    } else if (rc != RQ_OK) {
        return rq_fail(why, rc, "%s", detail.message);
    }
    return rq_vfs_sync_parent(v, path, why);
}

static rq_err sync_name_above(rq_vfs *v, const char *path, rq_error *why)
{
    char parent[RQ_PATH_MAX];
    path_parent(path, parent);
    if (parent[0] == '\0') return RQ_OK; /* the root's own name is not our concern */
    return rq_vfs_sync_parent(v, parent, why);
}

/* Folders are created from the top, and each name is synced before anything is put below it. So in
 * an existing path only the last name can be unsynced, after a crash or a failed sync (but not after a batch: batch.h);
 * only that name is synced again, before anything is put below it or as the end of the path. */
rq_err rq_vfs_mkdirs(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    char sub[RQ_PATH_MAX];
    size_t len = strlen(path), total = len;
    memcpy(sub, path, len + 1);
    for (;;) { /* upwards, until a folder can be created or exists */
        rq_error detail = {0};
        bool made;
        rq_err rc = mkdir_durable(v, sub, &made, &detail);
        if (rc == RQ_OK && made) rc = sync_name_above(v, sub, &detail);
        if (rc == RQ_OK) break;
        char *slash = strrchr(sub, '/');
        if (rc != RQ_E_NOT_FOUND || slash == NULL) return rq_fail(why, rc, "%s", detail.message);
        *slash = '\0';
        len = (size_t)(slash - sub);
    }
    while (len < total) { /* and down again */
        sub[len] = '/';
        len = strlen(sub);
        bool made;
        RQ_TRY(mkdir_durable(v, sub, &made, why));
    }
    return RQ_OK;
}

rq_err rq_vfs_sync_path(rq_vfs *v, const char *dir, rq_error *why)
{
    char path[RQ_PATH_MAX];
    RQ_TRY(path_check(dir, false, why));
    memcpy(path, dir, strlen(dir) + 1);
    RQ_TRY(rq_vfs_sync_dir(v, path, why));
    for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
        *slash = '\0';
        RQ_TRY(rq_vfs_sync_dir(v, path, why));
    }
    return rq_vfs_sync_dir(v, "", why);
}

rq_err rq_vfs_remove(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    return v->remove(v, path, why);
}

rq_err rq_vfs_remove_file(rq_vfs *v, const char *path, const rq_file_id *id, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    return v->remove_file(v, path, id, why);
}

/* Removes files, empty folders and symbolic links (never their targets) directly; only enters
 * folders that are not empty, which `remove` reports. */
static rq_err remove_tree(rq_vfs *v, const char *path, unsigned depth, rq_error *why)
{
    rq_error detail = {0};
    rq_err rc = v->remove(v, path, &detail);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_E_EXISTS) return rq_fail(why, rc, "%s", detail.message);
    if (depth > RQ_PATH_MAX / 2) return rq_fail(why, RQ_E_INVALID, "%s: too deep", path);
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rc = rq_vfs_list(v, path, &arena, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        char *sub = rq_arena_printf(&arena, "%s/%s", path, entries[i].name);
        rc = sub == NULL ? rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path)
                         : remove_tree(v, sub, depth + 1, why);
    }
    rq_arena_clear(&arena);
    return rc != RQ_OK ? rc : rq_vfs_remove(v, path, why);
}

rq_err rq_vfs_remove_tree(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    return remove_tree(v, path, 0, why);
}

rq_err rq_vfs_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    RQ_TRY(path_check(from, false, why));
    RQ_TRY(path_check(to, false, why));
    return v->link(v, from, to, why);
}

/* Another thread may remove the new folder before its first name is created. */
#define LINK_TRIES_MAX 16

static rq_err link_in_folder(rq_vfs *v, const char *from, const char *dir, const char *to,
                             rq_error *why)
{
    rq_err rc = RQ_E_NOT_FOUND;
    rq_error own = {0};
    for (int tries = 0; rc == RQ_E_NOT_FOUND && tries < LINK_TRIES_MAX; tries++) {
        rq_stat st;
        if (tries > 0) RQ_TRY(v->stat(v, from, &st, why)); /* or is it this that is missing? */
        own = (rq_error){0};
        rc = dir[0] == '\0' ? RQ_OK : rq_vfs_mkdirs(v, dir, &own);
        if (rc == RQ_OK) rc = v->link(v, from, to, &own);
    }
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

rq_err rq_vfs_move(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    RQ_TRY(path_check(from, false, why));
    RQ_TRY(path_check(to, false, why));
    char dir[RQ_PATH_MAX];
    path_parent(to, dir);
    RQ_TRY(link_in_folder(v, from, dir, to, why));
    RQ_TRY(v->sync_dir(v, dir, why));
    return v->remove(v, from, why);
}

rq_err rq_vfs_sync_file(rq_vfs *v, const char *path, rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(v, path, RQ_OPEN_WRITE, &f, why));
    rq_err rc = rq_file_sync(f, why);
    rq_err closed = rq_file_close(f);
    return rc != RQ_OK || closed == RQ_OK ? rc : rq_fail(why, closed, "cannot close %s", path);
}

rq_err rq_vfs_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    RQ_TRY(path_check(dir, true, why));
    return v->sync_dir(v, dir, why);
}

rq_err rq_vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why)
{
    RQ_TRY(path_check(path, false, why));
    char parent[RQ_PATH_MAX];
    path_parent(path, parent);
    return v->sync_dir(v, parent, why);
}

rq_err rq__vfs_sync_parent(rq_vfs *v, const char *path, rq_error *why)
{
    char parent[RQ_PATH_MAX];
    RQ_TRY(path_check(path, false, why));
    path_parent(path, parent);
    return v->sync_dir(v, parent, why);
}

rq_err rq_vfs_lock(rq_vfs *v, const char *path, rq_file **ret, rq_error *why)
{
    if (path != NULL) RQ_TRY(path_check(path, false, why));
    return v->lock(v, path, ret, why);
}

rq_err rq_vfs_restrict_mode(rq_vfs *v, const char *path, unsigned *ret_was, rq_error *why)
{
    *ret_was = 0;
    RQ_TRY(path_check(path, true, why));
    return v->restrict_mode == NULL ? RQ_OK : v->restrict_mode(v, path, ret_was, why);
}

bool rq_vfs_has_clients(const rq_vfs *v)
{
    return v->evict != NULL;
}

rq_err rq_vfs_evict(rq_vfs *v, const char *client, rq_error *why)
{
    return v->evict == NULL ? RQ_OK : v->evict(v, client, why);
}

/* --- whole small files -------------------------------------------------------------------- */

rq_err rq_vfs_read_file(rq_vfs *v, const char *path, size_t max_len, rq_arena *arena, rq_slice *ret,
                        rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(v, path, RQ_OPEN_READ, &f, why));
    uint64_t size = 0;
    size_t len = 0;
    uint8_t *buf = NULL;
    rq_err rc = rq_file_opened_size(f, &size, why);
    if (rc == RQ_OK && size > max_len)
        rc = rq_fail(why, RQ_E_INVALID, "%s has %llu bytes, more than the allowed %zu", path,
                     (unsigned long long)size, max_len);
    if (rc == RQ_OK) {
        buf = rq_arena_alloc(arena, (size_t)size);
        if (buf == NULL) rc = rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path);
    }
    if (rc == RQ_OK) rc = rq_file_read(f, buf, (size_t)size, 0, &len, why);
    (void)rq_file_close(f); /* nothing was written */
    if (rc == RQ_OK) *ret = rq_slice_of(buf, len);
    return rc;
}

rq_err rq_vfs_write_new_file(rq_vfs *v, const char *path, rq_slice bytes, rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(v, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &f, why));
    /* An empty file has no bytes to sync; its name is made durable below. */
    rq_err rc = bytes.len == 0 ? RQ_OK : rq_file_write(f, bytes.ptr, bytes.len, 0, why);
    if (rc == RQ_OK && bytes.len > 0) rc = rq_file_sync(f, why);
    rq_err closed = rq_file_close(f);
    if (rc == RQ_OK && closed != RQ_OK) rc = rq_fail(why, closed, "cannot close %s", path);
    if (rc == RQ_OK) rc = rq__vfs_sync_parent(v, path, why);
    if (rc != RQ_OK) (void)v->remove(v, path, NULL); /* the first error is the one that counts */
    return rc;
}

rq_err rq_vfs_sync_all(rq_vfs *v, rq_error *why)
{
    return v->sync_all != NULL
               ? v->sync_all(v, why)
               : rq_fail(why, RQ_E_UNSUPPORTED, "this storage cannot sync as a whole");
}

rq_err rq_vfs_defer(rq_vfs *v, bool on, rq_error *why)
{
    return v->defer == NULL ? RQ_OK : v->defer(v, on, why);
}

void rq_vfs_free(rq_vfs *v)
{
    if (v != NULL) v->free(v);
}
