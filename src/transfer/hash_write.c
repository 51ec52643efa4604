/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the folder of hashes (verify.h, hashdir.h). Each region's hashes go to a file of their own
 * first, _rorqual/hash/NNNNN.hashes; when all are complete they are joined to MapFiles, and the
 * manifest is written last: a folder with a manifest is complete. */
#include "transfer/batches.h"
#include "transfer/hashdir.h"
#include "transfer/out.h"
#include "transfer/plan.h"
#include "transfer/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAN_FOLDER "_rorqual/hash"
#define REGIONS_PER_FILE 100

typedef struct hash_job {
    const rq_verify *verify;
    rq_vfs *vfs;
    bool has_made_folder;
    rq_file *lock;
    rq_arena arena;
    rq__plan plan;
    rq__range *ranges; /* of the plan */
} hash_job;

typedef struct hash_state {
    const hash_job *job;
    rq__batcher batcher;
    rq__seq_writer out;
} hash_state;

static void spool_path(size_t part, char ret[64])
{
    snprintf(ret, 64, PLAN_FOLDER "/%05zu.hashes", part);
}

/* --- a range ---------------------------------------------------------------------------------- */

static rq_err take_batch(void *ctx, rq_slice key, const uint8_t hash[RQ__HASH_LEN], rq_error *why)
{
    hash_state *s = ctx;
    return rq__seq_append(&s->out, key, rq_slice_of(hash, RQ__HASH_LEN), why);
}

static rq_err open_state(rq__sweep *sweep, void **ret, rq_error *why)
{
    hash_state *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->job = sweep->ctx;
    const rq_verify *v = s->job->verify;
    rq__batcher_init(&s->batcher, v->batch_bytes, v->ignores_times, take_batch, s);
    *ret = s;
    return RQ_OK;
}

static void close_state(void *state)
{
    hash_state *s = state;
    rq__seq_writer_close(&s->out);
    rq__batcher_clear(&s->batcher);
    free(s);
}

static size_t part_of(const hash_state *s, const rq__range *range)
{
    return (size_t)(range - s->job->ranges);
}

static rq_err begin_range(void *state, const rq__range *range, rq_error *why)
{
    hash_state *s = state;
    char path[64];
    spool_path(part_of(s, range), path);
    RQ_TRY(rq__seq_writer_open(s->job->vfs, path, RQ__CLASS_BYTES, &s->out, why));
    return rq__batcher_begin(&s->batcher, range->start, why);
}

static rq_err take_row(void *state, rq_op_result *row, rq_error *why)
{
    return rq__batcher_add(&((hash_state *)state)->batcher, row, why);
}

static rq_err end_range(void *state, const rq__range *range, rq_error *why)
{
    hash_state *s = state;
    RQ_TRY(rq__batcher_end(&s->batcher, why));
    RQ_TRY(rq__seq_writer_finish(&s->out, why));
    rq__seq_writer_close(&s->out);
    return rq__plan_note_done(&s->job->plan, part_of(s, range), "hashed\n", why);
}

/* --- joining ---------------------------------------------------------------------------------- */

static rq_err copy_spool(const hash_job *j, size_t part, rq__map_writer *w, rq_error *why)
{
    char path[64];
    rq__seq_reader r;
    rq_slice key, hash;
    spool_path(part, path);
    rq_err rc = rq__seq_reader_open(j->vfs, path, RQ__CLASS_BYTES, &r, why);
    while (rc == RQ_OK && (rc = rq__seq_next(&r, UINT64_MAX, &key, &hash, why)) == RQ_OK)
        rc = hash.len == RQ__HASH_LEN ? rq__map_append(w, key, hash.ptr, why)
                                      : rq_fail(why, RQ_E_CORRUPT, "%s is damaged", path);
    rq__seq_reader_close(&r);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* The i-th of `files` files has the ranges from here. */
static size_t first_part(const hash_job *j, uint64_t i, uint64_t files)
{
    return (size_t)(j->plan.count * i / files);
}

static rq_err write_file(const hash_job *j, uint64_t i, uint64_t files, rq_error *why)
{
    rq__map_writer w;
    rq_err rc = rq__map_writer_open(j->vfs, (size_t)i, &w, why);
    for (size_t p = first_part(j, i, files); rc == RQ_OK && p < first_part(j, i + 1, files); p++)
        rc = copy_spool(j, p, &w, why);
    if (rc == RQ_OK) rc = rq__map_writer_finish(&w, why);
    rq__map_writer_close(&w);
    return rc;
}

static rq_err join(hash_job *j, rq_error *why)
{
    const rq_verify *v = j->verify;
    uint64_t files = v->files != 0 ? v->files : j->plan.count / REGIONS_PER_FILE;
    if (files == 0) files = 1;
    if (files > j->plan.count) files = j->plan.count;
    rq_slice *rows = rq_arena_calloc(&j->arena, files, sizeof *rows);
    if (rows == NULL) return rq_no_memory(why);
    for (uint64_t i = 1; i < files; i++)
        rows[i - 1] = j->ranges[first_part(j, i, files)].start;
    for (uint64_t i = 0; i < files; i++)
        RQ_TRY(write_file(j, i, files, why));
    RQ_TRY(rq__hash_partitions_write(j->vfs, rows, files - 1, why));
    const rq__hash_manifest m = {.table = (char *)(uintptr_t)v->table,
                                 .families = v->scan.columns,
                                 .batch_bytes =
                                     v->batch_bytes == 0 ? RQ__HASH_BATCH_BYTES : v->batch_bytes,
                                 .files = files,
                                 .scan_batch = v->scan.batch,
                                 .versions = v->scan.versions,
                                 .from_ms = v->scan.from_ms,
                                 .to_ms = v->scan.to_ms,
                                 .start = v->scan.start,
                                 .stop = v->scan.stop,
                                 .is_raw = v->scan.is_raw};
    return rq__hash_manifest_write(j->vfs, &m, why);
}

/* --- the whole -------------------------------------------------------------------------------- */

static rq_err check_folder(hash_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    rq_stat st;
    const char *folder = j->verify->folder;
    if (rq_vfs_stat(j->vfs, "manifest", &st, NULL) == RQ_OK)
        return rq_fail(why, RQ_E_EXISTS, "folder %s has finished hashes already", folder);
    if (rq_vfs_stat(j->vfs, PLAN_FOLDER, &st, NULL) == RQ_OK) return RQ_OK;
    RQ_TRY(rq_vfs_list(j->vfs, "", &j->arena, &list, &count, why));
    return count == 0 ? RQ_OK
                      : rq_fail(why, RQ_E_EXISTS, "%s is not empty (%s)", folder, list[0].name);
}

static const char *describe(const rq_verify *v, rq_arena *arena)
{
    const rq_transfer_scan *s = &v->scan;
    const char *rows = rq__range_text(&(rq__range){s->start, s->stop}, arena);
    if (rows == NULL) return NULL;
    return rq_arena_printf(arena,
                           "hash table=%s rows=%s versions=%" PRIu64 " times=%" PRId64 "..%" PRId64
                           " raw=%d batch=%" PRIu64 " columns=%s bytes=%" PRIu64 " ignore=%d",
                           v->table, rows, s->versions, s->from_ms, s->to_ms, s->is_raw, s->batch,
                           s->columns != NULL ? s->columns : "", v->batch_bytes, v->ignores_times);
}

static rq_err make_plan(hash_job *j, rq_error *why)
{
    const rq_verify *v = j->verify;
    rq__range *ranges;
    size_t count;
    RQ_TRY(rq__ranges_ask(&v->options->client, v->table, v->scan.start, v->scan.stop, &j->arena,
                          &ranges, &count, why));
    const char **texts = rq_arena_calloc(&j->arena, count + 1, sizeof *texts);
    const char *what = describe(v, &j->arena);
    if (texts == NULL || what == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if ((texts[i] = rq__range_text(&ranges[i], &j->arena)) == NULL) return rq_no_memory(why);
    RQ_TRY(rq__plan_open(j->vfs, PLAN_FOLDER, what, texts, count, false, &j->plan, why));
    j->ranges = rq_arena_calloc(&j->arena, j->plan.count + 1, sizeof *j->ranges);
    if (j->ranges == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < j->plan.count; i++)
        if (!rq__range_parse(j->plan.parts[i], &j->arena, &j->ranges[i]))
            return rq_fail(why, RQ_E_CORRUPT, PLAN_FOLDER "/plan is damaged");
    return RQ_OK;
}

static rq_err prepare(hash_job *j, rq_error *why)
{
    const rq_verify *v = j->verify;
    if (v->scan.columns != NULL && strchr(v->scan.columns, ':') != NULL)
        return rq_fail(why, RQ_E_INVALID, "hashes can cover whole families, not single columns");
    RQ_TRY(rq__open_folder(v->folder, 0777, &j->vfs, &j->has_made_folder, why));
    RQ_TRY(rq_vfs_lock(j->vfs, NULL, &j->lock, why));
    RQ_TRY(check_folder(j, why));
    return make_plan(j, why);
}

static rq_err hash_ranges(hash_job *j, rq_transfer_counts *ret, rq_error *why)
{
    const rq_verify *v = j->verify;
    rq__sweep s = {.options = v->options,
                   .table = v->table,
                   .scan = &v->scan,
                   .ctx = j,
                   .ranges = j->ranges,
                   .range_count = j->plan.count,
                   .is_done = j->plan.is_done,
                   .open = open_state,
                   .close = close_state,
                   .begin = begin_range,
                   .row = take_row,
                   .end = end_range};
    ret->parts_kept = j->plan.done;
    return rq__sweep_run(&s, ret, why);
}

rq_err rq_verify_write(const rq_verify *v, rq_transfer_counts *ret, rq_error *why)
{
    hash_job j = {.verify = v};
    *ret = (rq_transfer_counts){0};
    rq_err rc = prepare(&j, why);
    if (rc == RQ_OK) rc = hash_ranges(&j, ret, why);
    if (rc == RQ_OK) rc = join(&j, why);
    if (rc == RQ_OK) rc = rq_vfs_remove_tree(j.vfs, "_rorqual", why);
    if (rc != RQ_OK && j.has_made_folder && j.lock != NULL) rq__drop_empty_folder(v->folder);
    rq__plan_close(&j.plan);
    rq_arena_clear(&j.arena);
    (void)rq_file_close(j.lock);
    if (j.vfs != NULL) rq_vfs_free(j.vfs);
    return rc;
}
