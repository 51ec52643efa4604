/* SPDX-License-Identifier: Apache-2.0 */
/* Restore, and the check of a backup against its list; contract in backup.h. */
#include "backup/backup.h"

#include "backup/copy.h"
#include "backup/marker.h"
#include "base/checksum.h"
#include "catalog/root.h"

#include <stdlib.h>

typedef struct restore {
    const rq_backup_options *options;
    rq_vfs *source;
    rq_file *lock; /* of the source, so that no server starts on it */
    rq_copy copy;
    rq_arena arena;
    rq_backup_list list;
} restore;

static rq_err open_source(restore *r, rq_error *why)
{
    rq_error own = {0};
    RQ_TRY(rq_vfs_posix_new(r->options->source, &r->source, why));
    rq_err rc = rq_root_check_finished(r->source, &own);
    if (rc == RQ_OK) rc = rq_vfs_lock(r->source, NULL, &r->lock, &own);
    if (rc == RQ_OK) rc = rq__backup_list_read(r->source, &r->arena, &r->list, &own);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", r->options->source, own.message);
}

static void clear(restore *r)
{
    (void)rq_file_close(r->lock);
    rq_vfs_free(r->source);
    rq__copy_clear(&r->copy);
    rq_arena_clear(&r->arena);
}

/* --- one file --------------------------------------------------------------------------------- */

static rq_err differs(const restore *r, const rq_listed_file *f, const char *what, rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s/%s: %s: the backup is damaged", r->options->source,
                   f->path, what);
}

static rq_err open_listed(restore *r, const rq_listed_file *f, rq_file **ret, rq_error *why)
{
    uint64_t size = 0;
    rq_error own = {0};
    rq_err rc = rq_vfs_open(r->source, f->path, RQ_OPEN_READ, ret, &own);
    if (rc == RQ_E_NOT_FOUND) return differs(r, f, "the file is missing", why);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    rc = rq_file_size(*ret, &size, why);
    if (rc == RQ_OK && size != f->size) rc = differs(r, f, "its size is not the listed one", why);
    if (rc != RQ_OK) (void)rq_file_close(*ret);
    return rc;
}

static rq_err restore_file(restore *r, const rq_listed_file *f, rq_error *why)
{
    rq_file *from;
    uint32_t crc;
    uint64_t linked = r->copy.linked_files;
    RQ_TRY(open_listed(r, f, &from, why));
    rq_err rc = rq__copy_file(&r->copy, f->path, from, f->size, f->kind == 'f', &crc, why);
    bool was_read = r->copy.checksums || r->copy.linked_files == linked;
    if (rc == RQ_OK && f->has_crc && was_read && crc != f->crc)
        rc = differs(r, f, "its checksum is not the listed one", why);
    (void)rq_file_close(from); /* only read */
    return rc;
}

static rq_err restore_all(restore *r, rq_error *why)
{
    const rq_backup_progress *p = r->options->progress;
    p->begin(p->ctx, "copying", r->list.bytes);
    for (size_t i = 0; i < r->list.count; i++) {
        const rq_listed_file *f = &r->list.files[i];
        RQ_TRY(f->kind == 'd' ? rq__copy_dir(&r->copy, f->path, why) : restore_file(r, f, why));
    }
    p->begin(p->ctx, "making durable", 0);
    RQ_TRY(rq__copy_sync(&r->copy, why));
    return rq__copy_finish(&r->copy, why);
}

static void sum_up(const restore *r, rq_backup_result *ret)
{
    *ret = (rq_backup_result){.was_running = r->list.was_running,
                              .taken_ms = r->list.taken_ms,
                              .files = r->list.count,
                              .bytes = r->list.bytes,
                              .linked_files = r->copy.linked_files,
                              .linked_bytes = r->copy.linked_bytes};
}

rq_err rq_restore(const rq_backup_options *o, rq_backup_result *ret, rq_error *why)
{
    restore r = {.options = o};
    rq_err rc = open_source(&r, why);
    if (rc == RQ_OK) rc = rq__copy_begin(o->target, o->source, "restore", &r.copy, why);
    if (rc == RQ_OK) {
        r.copy.may_link = !o->never_link;
        r.copy.checksums = !o->no_verify;
        r.copy.step = o->progress->step;
        r.copy.ctx = o->progress->ctx;
        rc = restore_all(&r, why);
    }
    sum_up(&r, ret);
    clear(&r);
    return rc;
}

/* --- the check -------------------------------------------------------------------------------- */

static rq_err check_file(restore *r, const rq_listed_file *f, uint8_t *buf, size_t room,
                         rq_error *why)
{
    rq_file *from;
    uint32_t crc = 0;
    RQ_TRY(open_listed(r, f, &from, why));
    rq_err rc = RQ_OK;
    for (uint64_t at = 0; at < f->size && rc == RQ_OK;) {
        size_t n = 0;
        rc = rq_file_read(from, buf, room, at, &n, why);
        if (rc == RQ_OK && n == 0) rc = differs(r, f, "the file became shorter", why);
        crc = rq_crc32c(crc, buf, n);
        at += n;
        r->options->progress->step(r->options->progress->ctx, n);
    }
    if (rc == RQ_OK && f->has_crc && crc != f->crc)
        rc = differs(r, f, "its checksum is not the listed one", why);
    (void)rq_file_close(from); /* only read */
    return rc;
}

rq_err rq_backup_check(const rq_backup_options *o, rq_backup_result *ret, rq_error *why)
{
    restore r = {.options = o};
    size_t room = (size_t)1024 * 1024;
    uint8_t *buf = malloc(room);
    rq_err rc = buf == NULL ? rq_no_memory(why) : open_source(&r, why);
    if (rc == RQ_OK) o->progress->begin(o->progress->ctx, "checking", r.list.bytes);
    for (size_t i = 0; i < r.list.count && rc == RQ_OK; i++)
        if (r.list.files[i].kind != 'd') rc = check_file(&r, &r.list.files[i], buf, room, why);
    sum_up(&r, ret);
    free(buf);
    clear(&r);
    return rc;
}
