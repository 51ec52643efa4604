/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared storage in a folder that all servers see, on any rq_vfs. For development: a file system
 * checks no guard at a write, so rule 3 of shared.h rests on the lease.
 *
 *     tenure/NAME/guard       u64 token (in hexadecimal), then '+' (open) or '-' (fenced)
 *     tenure/NAME/N.S         stripe S of ledger N
 *     tenure/NAME/sealed      lengths at the end of the tenure; made once
 *     object/NAME/G           generation G, complete with its first byte
 *     set/NAME/KEY            an empty file
 *
 *  1. A file that others may read is written under a temporary name and linked: it appears
 *     complete, or another server's file has the name already. Only the guard is ever overwritten,
 *     one byte, from '+' to '-'.
 *  2. A name that is relied upon is synced first, whoever made it: its maker may have died before.
 *
 * A network file system must show a new name, and an open after another server's close must show
 * its bytes (NFS: mount with lookupcache=none).
 */
#include "vfs/shared_posix.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

static uint64_t boot_clock(void *ctx)
{
    (void)ctx;
    return rq_clock_ns(CLOCK_BOOTTIME);
}

static uint64_t folder_now_ns(const rq_shared *s)
{
    const rq__folder *f = (const rq__folder *)s;
    return f->clock(f->clock_ctx);
}

/* --- files that appear whole --------------------------------------------------------------- */

static rq_err write_temporary(rq__folder *f, const char *path, rq_slice bytes, rq_error *why)
{
    rq_file *file;
    RQ_TRY(rq_vfs_open(f->vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &file, why));
    rq_err rc = bytes.len == 0 ? RQ_OK : rq_file_write(file, bytes.ptr, bytes.len, 0, why);
    if (rc == RQ_OK) rc = rq_file_sync(file, why);
    rq_err closed = rq_file_close(file);
    return rc != RQ_OK || closed == RQ_OK ? rc : rq_fail(why, closed, "cannot close %s", path);
}

rq_err rq__folder_publish(rq__folder *f, const char *dir, const char *name, rq_slice bytes,
                          rq_error *why)
{
    char temporary[RQ__FILE_MAX], path[RQ__FILE_MAX];
    snprintf(temporary, sizeof temporary, "%s/" RQ__TEMPORARY "%016llx", dir,
             (unsigned long long)f->executor->random(f->executor));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = write_temporary(f, temporary, bytes, &detail);
    if (rc == RQ_OK) rc = rq_vfs_link(f->vfs, temporary, path, &detail);
    /* One that stays is swept, or removed with its folder. */
    rq_err swept = rq_vfs_remove(f->vfs, temporary, NULL);
    (void)swept;
    if (rc == RQ_OK || rc == RQ_E_EXISTS) RQ_TRY(rq_vfs_sync_dir(f->vfs, dir, why));
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq__folder_has(rq__folder *f, const char *dir, const char *name, bool *ret, rq_error *why)
{
    char path[RQ__FILE_MAX];
    rq_stat st;
    rq_error detail = {.code = RQ_OK};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    rq_err rc = rq_vfs_stat(f->vfs, path, &st, &detail);
    *ret = rc == RQ_OK;
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* --- sets ---------------------------------------------------------------------------------- */

static rq_err create_empty(rq__folder *f, const char *path, rq_error *why)
{
    rq_file *file;
    RQ_TRY(rq_vfs_open(f->vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &file, why));
    return rq_file_close(file);
}

static rq_err folder_set_put(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    rq__folder *f = rq__folder_of(s);
    char dir[RQ__DIR_MAX], path[RQ__FILE_MAX];
    snprintf(dir, sizeof dir, "set/%s", name);
    snprintf(path, sizeof path, "%s/%s", dir, key);
    if (create_empty(f, path, NULL) == RQ_E_NOT_FOUND) RQ_TRY(rq_vfs_mkdirs(f->vfs, dir, why));
    RQ_TRY(create_empty(f, path, why));
    return rq_vfs_sync_dir(f->vfs, dir, why);
}

static rq_err folder_set_del(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    rq__folder *f = rq__folder_of(s);
    char dir[RQ__DIR_MAX], path[RQ__FILE_MAX];
    rq_error detail = {.code = RQ_OK};
    snprintf(dir, sizeof dir, "set/%s", name);
    snprintf(path, sizeof path, "%s/%s", dir, key);
    rq_err rc = rq_vfs_remove(f->vfs, path, &detail);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) rc = rq_vfs_sync_dir(f->vfs, dir, &detail);
    /* There may be no folder. */
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static rq_err folder_set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                              size_t *ret_count, rq_error *why)
{
    char dir[RQ__DIR_MAX];
    rq_dir_entry *entries;
    size_t count;
    snprintf(dir, sizeof dir, "set/%s", name);
    RQ_TRY(rq_vfs_list_if_any(rq__folder_of(s)->vfs, dir, arena, &entries, &count, why));
    const char **keys = rq_arena_calloc(arena, count, sizeof *keys);
    if (keys == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        keys[i] = entries[i].name;
    *ret = keys;
    *ret_count = count;
    return RQ_OK;
}

static void folder_free(rq_shared *s)
{
    free(s);
}

static const rq_shared functions = {
    .tenure_begin = rq__folder_tenure_begin,
    .tenure_end = rq__folder_tenure_end,
    .tenure_free = rq__folder_tenure_free,
    .tenure_revoke = rq__folder_tenure_revoke,
    .now_ns = folder_now_ns,
    .slog_open = rq__folder_slog_open,
    .slog_submit = rq__folder_slog_submit,
    .slog_name = rq__folder_slog_name,
    .slog_close = rq__folder_slog_close,
    .slog_drop = rq__folder_slog_drop,
    .slog_lengths = rq__folder_slog_lengths,
    .slog_read = rq__folder_slog_read,
    .slog_remove = rq__folder_slog_remove,
    .object_cas = rq__folder_object_cas,
    .object_get = rq__folder_object_get,
    .set_put = folder_set_put,
    .set_del = folder_set_del,
    .set_list = folder_set_list,
    .free = folder_free,
};

rq_err rq_shared_posix_new(rq_vfs *vfs, rq_executor *executor, uint64_t (*clock)(void *ctx),
                           void *clock_ctx, rq_shared **ret)
{
    rq__folder *f = calloc(1, sizeof *f);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->base = functions;
    f->vfs = vfs;
    f->executor = executor;
    f->clock = clock == NULL ? boot_clock : clock;
    f->clock_ctx = clock_ctx;
    *ret = &f->base;
    return RQ_OK;
}
