/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to the log of a tenure of the shared folder: a write and an fdatasync on the stripe's lane.
 *
 * After the sync, before a write is acknowledged, the lease must be valid, or a look at the guard must find
 * it open. In both cases a revoker notes the lengths after the sync: a revoker closes the guard first and
 * then waits until the lease has run out.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vfs/shared_posix_log.h"

typedef struct folder_slog {
    rq_slog base;
    rq_file *files[RQ_SLOG_STRIPES];
} folder_slog;

void rq__folder_stripe_path(const char *dir, uint64_t number, unsigned stripe,
                            char ret[static RQ__FILE_MAX])
{
    snprintf(ret, RQ__FILE_MAX, "%s/%016llx.%u", dir, (unsigned long long)number, stripe);
}

void rq__folder_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX])
{
    const rq__folder_tenure *t = (const rq__folder_tenure *)log->tenure;
    snprintf(ret, RQ_SLOG_NAME_MAX, "%s/%016llx.%u", t->dir, (unsigned long long)log->number,
             stripe);
}

void rq__folder_slog_close(rq_slog *base)
{
    folder_slog *log = (folder_slog *)base;
    for (unsigned i = 0; i < RQ_SLOG_STRIPES; i++) {
        /* What was acknowledged is synced. */
        rq_err closed = rq_file_close(log->files[i]);
        (void)closed;
    }
    free(log);
}

rq_err rq__folder_slog_open(rq_tenure *base, uint64_t number, rq_slog **ret, rq_error *why)
{
    rq__folder_tenure *t = (rq__folder_tenure *)base;
    rq__folder *f = rq__folder_of(base->shared);
    folder_slog *log = calloc(1, sizeof *log);
    if (log == NULL) return rq_no_memory(why);
    log->base = (rq_slog){.tenure = base, .number = number};
    rq_err rc = RQ_OK;
    for (unsigned i = 0; i < RQ_SLOG_STRIPES && rc == RQ_OK; i++) {
        char path[RQ__FILE_MAX];
        rq__folder_stripe_path(t->dir, number, i, path);
        rc = rq_vfs_open(f->vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL,
                         &log->files[i], why);
    }
    if (rc == RQ_OK) rc = rq_vfs_sync_dir(f->vfs, t->dir, why);
    if (rc == RQ_OK) rc = rq__folder_renew(t, why);
    if (rc != RQ_OK) {
        rq__folder_slog_close(&log->base);
        /* The folder of a tenure that has ended may be gone. */
        rq_err over = rq__folder_renew(t, NULL);
        return over == RQ_E_SERVER_ABORTED ? over : rc;
    }
    *ret = &log->base;
    return RQ_OK;
}

/* Looks at the guard first: after a fence the files belong to the revoker. A server paused after
 * the look removes them nonetheless; they are then missing at the seal, or the seal is already
 * written. */
rq_err rq__folder_slog_drop(rq_tenure *base, uint64_t number, rq_error *why)
{
    rq__folder_tenure *t = (rq__folder_tenure *)base;
    RQ_TRY(rq__folder_renew(t, why));
    for (unsigned i = 0; i < RQ_SLOG_STRIPES; i++) {
        char path[RQ__FILE_MAX];
        rq_error detail = {.code = RQ_OK};
        rq__folder_stripe_path(t->dir, number, i, path);
        rq_err rc = rq_vfs_remove(rq__folder_of(base->shared)->vfs, path, &detail);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    }
    return RQ_OK;
}

static rq_err confirm(rq__folder_tenure *t)
{
    if (rq_shared_now_ns(t->base.shared) < rq_tenure_valid_until(&t->base)) return RQ_OK;
    return rq__folder_renew(t, NULL);
}

static void append(rq_task *task)
{
    rq_slog_write *w = RQ_CONTAINER_OF(task, rq_slog_write, task);
    folder_slog *log = (folder_slog *)w->log;
    rq_file *file = log->files[w->stripe];
    rq_err rc = rq_file_write(file, w->bytes.ptr, w->bytes.len, w->off, NULL);
    if (rc == RQ_OK) rc = rq_file_sync(file, NULL);
    if (rc == RQ_OK) rc = confirm((rq__folder_tenure *)log->base.tenure);
    rq__slog_write_end(w, rc);
}

void rq__folder_slog_submit(rq_slog *log, rq_slog_write *w)
{
    rq__folder_tenure *t = (rq__folder_tenure *)log->tenure;
    w->task.run = append;
    rq_lane_post(t->lanes[w->stripe], &w->task);
}
