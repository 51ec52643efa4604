/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a backup by its time from a folder of backups. Entries that are not finished backups
 * (interrupted ones, backups on which a server was started, other folders) are skipped; a damaged
 * list is an error, as its backup might be the one. */
#include "backup/backup.h"
#include "backup/marker.h"
#include "base/buf.h"
#include "catalog/root.h"

#include <stdio.h>
#include <stdlib.h>

/* RQ_E_NOT_FOUND, RQ_E_STATE: the folder is not a finished backup. */
static rq_err time_of(const char *folder, int64_t *ret_ms, rq_error *why)
{
    rq_arena arena = {0};
    rq_backup_list list = {0};
    rq_error own = {0};
    rq_vfs *v;
    RQ_TRY(rq_vfs_posix_new(folder, &v, why));
    rq_err rc = rq_root_check_finished(v, &own);
    if (rc == RQ_OK) rc = rq__backup_list_read(v, &arena, &list, &own);
    *ret_ms = list.taken_ms;
    rq_arena_clear(&arena);
    rq_vfs_free(v);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", folder, own.message);
}

/* Takes the entry if it is a newer backup than *ret and not too new. */
static rq_err look_at(const char *folder, const char *name, int64_t to_ms, char **ret,
                      int64_t *ret_taken_ms, rq_error *why)
{
    char *path = NULL;
    int64_t taken_ms = 0;
    rq_error own = {0};
    if (asprintf(&path, "%s/%s", folder, name) < 0) return rq_no_memory(why);
    rq_err rc = time_of(path, &taken_ms, &own);
    bool takes = rc == RQ_OK && taken_ms <= to_ms && (*ret == NULL || taken_ms > *ret_taken_ms);
    if (takes) {
        free(*ret);
        *ret = path;
        *ret_taken_ms = taken_ms;
        return RQ_OK;
    }
    free(path);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND || rc == RQ_E_STATE) return RQ_OK;
    return rq_fail(why, rc, "%s", own.message);
}

rq_err rq_backup_newest(const char *folder, int64_t to_ms, char **ret, int64_t *ret_taken_ms,
                        rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_vfs *v;
    *ret = NULL;
    RQ_TRY(rq_vfs_posix_new(folder, &v, why));
    rq_err rc = rq_vfs_list(v, "", &arena, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (entries[i].is_dir) rc = look_at(folder, entries[i].name, to_ms, ret, ret_taken_ms, why);
    if (rc == RQ_OK && *ret == NULL)
        rc = rq_fail(why, RQ_E_NOT_FOUND, "%s has no finished backup from that time or earlier",
                     folder);
    if (rc != RQ_OK) {
        free(*ret);
        *ret = NULL;
    }
    rq_arena_clear(&arena);
    rq_vfs_free(v);
    return rc;
}
