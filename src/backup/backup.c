/* SPDX-License-Identifier: Apache-2.0 */
/* Backup; contract in backup.h. The log is copied first to keep its hold short. */
#include "backup/backup.h"

#include "backup/copy.h"
#include "backup/marker.h"
#include "backup/previous.h"
#include "backup/session.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLUSTER_ID "hbase.id"
#define CLUSTER_ID_MAX ((size_t)64 * 1024)

typedef struct backup {
    const rq_backup_options *options;
    rq_source source;
    rq_copy copy;
    rq__previous *previous; /* of an incremental backup */
    rq_backup_list list;    /* `files` on the heap */
    uint64_t problems;
} backup;

static int64_t wall_clock_ms(void)
{
    return (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
}

/* --- parts ------------------------------------------------------------------------------------ */

static rq_err copy_from_file(backup *b, const rq_source_part *part, uint32_t *ret_crc,
                             rq_error *why)
{
    rq_file *from;
    RQ_TRY(rq__source_open_part(&b->source, part, &from, why));
    rq_err rc = rq__copy_file(&b->copy, part->path, from, part->size, part->kind == RQ_IMAGE_FILE,
                              ret_crc, why);
    (void)rq_file_close(from); /* only read */
    return rc;
}

/* Links the file of the earlier backup. Without checksums its entry is taken over. */
static rq_err link_earlier(backup *b, const rq_listed_file *earlier, rq_listed_file *f,
                           rq_error *why)
{
    rq_file *from;
    RQ_TRY(rq__previous_open_file(b->previous, earlier, &from, why));
    rq_err rc = rq__copy_link(&b->copy, f->path, from, f->size, &f->crc, why);
    (void)rq_file_close(from); /* only read */
    if (rc != RQ_OK) return rc;
    f->has_crc = b->copy.checksums || earlier->has_crc;
    if (!b->copy.checksums)
        f->crc = earlier->crc;
    else if (earlier->has_crc && f->crc != earlier->crc)
        return rq__previous_differs(b->previous, earlier, "its checksum is not the listed one",
                                    why);
    return RQ_OK;
}

static const rq_listed_file *earlier_of(const backup *b, const rq_source_part *part)
{
    if (b->previous == NULL || part->kind != RQ_IMAGE_FILE || part->bytes != NULL) return NULL;
    return rq__previous_find(b->previous, part->path, part->size);
}

static rq_err copy_part(backup *b, const rq_source_part *part, rq_error *why)
{
    rq_listed_file f = {.kind = part->kind == RQ_IMAGE_DIR    ? 'd'
                                : part->kind == RQ_IMAGE_FILE ? 'f'
                                                              : 'c',
                        .size = part->size,
                        .path = part->path,
                        .has_crc = part->kind != RQ_IMAGE_DIR};
    uint64_t linked = b->copy.linked_files;
    const rq_listed_file *earlier = earlier_of(b, part);
    rq_err rc = RQ_OK;
    if (earlier != NULL)
        rc = link_earlier(b, earlier, &f, why);
    else if (part->kind == RQ_IMAGE_DIR)
        rc = rq__copy_dir(&b->copy, part->path, why);
    else if (part->bytes != NULL)
        rc = rq__copy_bytes(&b->copy, part->path, rq_slice_of(part->bytes, (size_t)part->size),
                            &f.crc, why);
    else
        rc = copy_from_file(b, part, &f.crc, why);
    if (earlier == NULL && b->copy.linked_files != linked) f.has_crc = b->copy.checksums;
    b->list.files[b->list.count++] = f;
    b->list.bytes += part->size;
    return rc;
}

static bool is_first(const rq_source_part *p)
{
    return p->kind == RQ_IMAGE_LOG;
}

static rq_err copy_parts(backup *b, bool first, rq_error *why)
{
    for (size_t i = 0; i < b->source.count; i++)
        if (is_first(&b->source.parts[i]) == first) RQ_TRY(copy_part(b, &b->source.parts[i], why));
    return RQ_OK;
}

/* --- check of the copy ------------------------------------------------------------------------ */

static void count_finding(void *ctx, rq_finding level, const char *place, const char *text)
{
    backup *b = ctx;
    const rq_findings *f = &b->options->progress->findings;
    if (level != RQ_FINDING_PROBLEM) return; /* notes concern the source */
    b->problems++;
    f->report(f->ctx, level, place, text);
}

static void pass_step(void *ctx, uint64_t bytes)
{
    const backup *b = ctx;
    b->options->progress->step(b->options->progress->ctx, bytes);
}

static rq_err look_through(backup *b, rq_error *why)
{
    const rq_backup_progress *p = b->options->progress;
    rq_fsck_options o = {.deep = true, .is_copy = true, .findings = {count_finding, pass_step, b}};
    rq_fsck_totals totals;
    p->begin(p->ctx, "checking", b->list.bytes);
    RQ_TRY(rq_fsck(b->copy.vfs, &o, &totals, why));
    if (b->problems == 0) return RQ_OK;
    return rq_fail(
        why, RQ_E_CORRUPT,
        "the copy has the %llu problems listed above: either the source is damaged (check: rorqual "
        "fsck --blocks %s), or the copy was damaged while it was written",
        (unsigned long long)b->problems, b->options->source);
}

/* --- all -------------------------------------------------------------------------------------- */

static rq_err copy_all(backup *b, rq_error *why)
{
    const rq_backup_progress *p = b->options->progress;
    b->list.files = calloc(b->source.count + 1, sizeof *b->list.files);
    if (b->list.files == NULL) return rq_no_memory(why);
    p->begin(p->ctx, "copying", b->source.bytes);
    RQ_TRY(copy_parts(b, true, why));
    RQ_TRY(rq__source_log_done(&b->source, why));
    RQ_TRY(copy_parts(b, false, why));
    p->begin(p->ctx, "making durable", 0);
    return rq__copy_sync(&b->copy, why);
}

/* Checked before the target is changed. Only a backup of the same cluster shares its files. */
static rq_err take_previous(backup *b, rq_error *why)
{
    const char *source = b->options->source, *folder = b->options->previous;
    rq_vfs *v;
    rq_arena arena = {0};
    rq_slice own, theirs;
    RQ_TRY(rq__previous_open(folder, &b->previous, why));
    RQ_TRY(rq_vfs_posix_new(source, &v, why));
    rq_err rc = rq_vfs_read_file(v, CLUSTER_ID, CLUSTER_ID_MAX, &arena, &own, why);
    if (rc == RQ_E_NOT_FOUND) rc = rq_fail(why, rc, "%s is not a data folder", source);
    if (rc == RQ_OK) rc = rq__previous_read(b->previous, CLUSTER_ID, &arena, &theirs, why);
    if (rc == RQ_OK && !rq_slice_eq(own, theirs))
        rc =
            rq_fail(why, RQ_E_INVALID, "%s is a backup of another cluster than %s", folder, source);
    rq_arena_clear(&arena);
    rq_vfs_free(v);
    return rc;
}

static rq_err run(backup *b, rq_error *why)
{
    char name[64];
    const rq_backup_options *o = b->options;
    if (o->previous != NULL) RQ_TRY(take_previous(b, why));
    RQ_TRY(rq__copy_begin(o->target, o->source, "backup", &b->copy, why));
    b->copy.may_link = !o->never_link;
    b->copy.checksums = !o->no_verify;
    b->copy.step = o->progress->step;
    b->copy.ctx = o->progress->ctx;
    snprintf(name, sizeof name, "backup by process %ld", (long)getpid());
    b->list.taken_ms = wall_clock_ms();
    RQ_TRY(rq__source_open(o->source, name, &b->source, why));
    b->list.source = o->source;
    b->list.was_running = b->source.is_running;
    RQ_TRY(copy_all(b, why));
    if (!o->no_verify) RQ_TRY(look_through(b, why));
    RQ_TRY(rq__backup_list_write(b->copy.vfs, &b->list, why));
    return rq__copy_finish(&b->copy, why);
}

rq_err rq_backup(const rq_backup_options *o, rq_backup_result *ret, rq_error *why)
{
    backup b = {.options = o};
    rq_err rc = run(&b, why);
    *ret = (rq_backup_result){.was_running = b.list.was_running,
                              .taken_ms = b.list.taken_ms,
                              .files = b.list.count,
                              .bytes = b.list.bytes,
                              .linked_files = b.copy.linked_files,
                              .linked_bytes = b.copy.linked_bytes,
                              .problems = b.problems};
    rq_source_close(&b.source);
    rq__previous_close(b.previous);
    rq__copy_clear(&b.copy);
    free(b.list.files);
    return rc;
}
