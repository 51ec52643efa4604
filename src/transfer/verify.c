/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two tables, or a table with a folder of hashes (verify.h). Each range of the first table
 * is hashed in batches; some thousand batches at a time are then compared with the other table's
 * rows. */
#include "transfer/verify.h"

#include "transfer/batches.h"
#include "transfer/hashdir.h"

#include <stdlib.h>

#define LIST_MAX 5000 /* batches that are kept in memory, for each thread */

/* --- two tables ------------------------------------------------------------------------------- */

typedef struct tables_state {
    const rq_verify *verify;
    rq__sweep *sweep;
    rq__link other;
    rq__batcher batcher;
    rq__hash_list list;
    const rq__range *range;
} tables_state;

static rq_err take_batch(void *ctx, rq_slice key, const uint8_t hash[RQ__HASH_LEN], rq_error *why)
{
    tables_state *s = ctx;
    return rq__hash_list_add(&s->list, key, hash) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err open_tables(rq__sweep *sweep, void **ret, rq_error *why)
{
    tables_state *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->verify = sweep->ctx;
    s->sweep = sweep;
    *ret = s;
    rq__batcher_init(&s->batcher, s->verify->batch_bytes, s->verify->ignores_times, take_batch, s);
    return rq__link_open(&s->verify->other_client, s->verify->other, &s->other, why);
}

static void close_tables(void *state)
{
    tables_state *s = state;
    rq__link_close(&s->other);
    rq__batcher_clear(&s->batcher);
    rq__hash_list_clear(&s->list);
    free(s);
}

static rq_err begin_range(void *state, const rq__range *range, rq_error *why)
{
    tables_state *s = state;
    s->range = range;
    rq__hash_list_reset(&s->list);
    return rq__batcher_begin(&s->batcher, range->start, why);
}

static rq_err take_row(void *state, rq_op_result *row, rq_error *why)
{
    return rq__batcher_add(&((tables_state *)state)->batcher, row, why);
}

static rq_err compare(tables_state *s, rq_slice end, rq_error *why)
{
    rq_scan scan = rq__scan_of(&s->verify->scan, (rq_slice){0}, end, &s->sweep->fields);
    RQ_TRY(rq__hash_list_compare(&s->list, &scan, &s->other, s->verify->ignores_times,
                                 &s->sweep->crew, why));
    rq__hash_list_reset(&s->list);
    return RQ_OK;
}

static rq_err rest(void *state, rq_error *why)
{
    tables_state *s = state;
    if (s->list.count < LIST_MAX) return RQ_OK;
    return compare(s, rq_buf_slice(&s->batcher.key), why);
}

static rq_err end_range(void *state, const rq__range *range, rq_error *why)
{
    tables_state *s = state;
    RQ_TRY(rq__batcher_end(&s->batcher, why));
    return compare(s, range->stop, why);
}

rq_err rq_verify_tables(const rq_verify *v, rq_transfer_counts *ret, rq_error *why)
{
    rq__sweep s = {.options = v->options,
                   .table = v->table,
                   .scan = &v->scan,
                   .ctx = (void *)(uintptr_t)v,
                   .open = open_tables,
                   .close = close_tables,
                   .begin = begin_range,
                   .row = take_row,
                   .rest = rest,
                   .end = end_range};
    *ret = (rq_transfer_counts){0};
    return rq__sweep_run(&s, ret, why);
}

/* --- a table and a folder --------------------------------------------------------------------- */

/* The batches between two adjacent positions are a part of the work. */
typedef struct folder_part {
    rq__hash_place place;
    rq_slice key; /* of its first batch */
} folder_part;

typedef struct folder_job {
    const rq_verify *verify;
    rq_vfs *vfs;
    rq_arena arena;
    rq_buf fields;
    rq__hash_manifest manifest;
    folder_part *parts;
    size_t count, cap;
} folder_job;

static rq_err add_part(folder_job *j, rq__hash_place place, rq_slice key)
{
    if (j->count == j->cap) {
        size_t cap = j->cap == 0 ? 64 : 2 * j->cap;
        folder_part *bigger = realloc(j->parts, cap * sizeof *bigger);
        if (bigger == NULL) return RQ_E_NO_MEMORY;
        j->parts = bigger;
        j->cap = cap;
    }
    rq_slice copy = rq_arena_copy(&j->arena, key);
    if (copy.ptr == NULL) return RQ_E_NO_MEMORY;
    j->parts[j->count++] = (folder_part){place, copy};
    return RQ_OK;
}

/* Reads all batches once: they must be in order. */
static rq_err find_parts(folder_job *j, rq_error *why)
{
    rq__hash_reader r;
    rq__hash_place place;
    rq_buf last = {0};
    rq_slice key;
    uint8_t hash[RQ__HASH_LEN];
    rq_err rc;
    uint64_t n = 0;
    rq__hash_reader_init(j->vfs, j->manifest.files, (rq__hash_place){0, 0}, &r);
    while ((rc = rq__hash_next(&r, &key, hash, &place, why)) == RQ_OK) {
        if (n > 0 && rq_slice_compare(key, rq_buf_slice(&last)) <= 0)
            rc = rq_fail(why, RQ_E_CORRUPT, "%s: keys are not in order", r.path);
        rq_buf_reset(&last);
        if (rc == RQ_OK && rq_buf_append(&last, key.ptr, key.len) != RQ_OK) rc = rq_no_memory(why);
        if (rc == RQ_OK && n++ % LIST_MAX == 0 && add_part(j, place, key) != RQ_OK)
            rc = rq_no_memory(why);
        if (rc != RQ_OK) break;
    }
    rq__hash_reader_close(&r);
    rq_buf_clear(&last);
    return rc == RQ_E_END ? RQ_OK : rc;
}

typedef struct folder_tools {
    rq__link link; /* first */
    rq__hash_list list;
} folder_tools;

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    const folder_job *j = crew->ctx;
    return rq__link_tools(&j->verify->options->client, j->verify->table, sizeof(folder_tools), ret,
                          why);
}

static void close_tools(void *tools)
{
    folder_tools *t = tools;
    if (t == NULL) return;
    rq__link_close(&t->link);
    rq__hash_list_clear(&t->list);
    free(t);
}

/* The part's batches: from its key to the next part's key. */
static rq_err read_part(const folder_job *j, size_t part, rq__hash_list *list, rq_error *why)
{
    rq__hash_reader r;
    rq__hash_place place;
    rq_slice key;
    uint8_t hash[RQ__HASH_LEN];
    rq_err rc;
    rq__hash_list_reset(list);
    rq__hash_reader_init(j->vfs, j->manifest.files, j->parts[part].place, &r);
    while ((rc = rq__hash_next(&r, &key, hash, &place, why)) == RQ_OK) {
        if (part + 1 < j->count && rq_slice_compare(key, j->parts[part + 1].key) >= 0) break;
        if (rq_slice_compare(key, j->parts[part].key) < 0) continue;
        if (rq__hash_list_add(list, key, hash) != RQ_OK) {
            rc = rq_no_memory(why);
            break;
        }
    }
    rq__hash_reader_close(&r);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err do_part(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    folder_tools *t = tools;
    const folder_job *j = crew->ctx;
    rq_slice end = part + 1 < j->count ? j->parts[part + 1].key : j->manifest.stop;
    RQ_TRY(read_part(j, part, &t->list, why));
    RQ_TRY(rq__crew_pass(crew, t->list.count * j->manifest.batch_bytes, why));
    const rq_transfer_scan what = rq__hash_manifest_scan(&j->manifest);
    rq_scan scan = rq__scan_of(&what, (rq_slice){0}, end, &j->fields);
    RQ_TRY(rq__hash_list_compare(&t->list, &scan, &t->link, j->verify->ignores_times, crew, why));
    atomic_fetch_add(&crew->done, 1);
    return RQ_OK;
}

static rq_err prepare(folder_job *j, rq_error *why)
{
    RQ_TRY(rq_vfs_posix_new(j->verify->folder, &j->vfs, why));
    RQ_TRY(rq__hash_manifest_read(j->vfs, &j->arena, &j->manifest, why));
    rq_transfer_scan scan = rq__hash_manifest_scan(&j->manifest);
    RQ_TRY(rq__scan_fields(&j->fields, &scan, why));
    return find_parts(j, why);
}

rq_err rq_verify_folder(const rq_verify *v, rq_transfer_counts *ret, rq_error *why)
{
    folder_job j = {.verify = v};
    *ret = (rq_transfer_counts){0};
    rq_err rc = prepare(&j, why);
    if (rc == RQ_OK) {
        rq__crew crew = {.options = v->options,
                         .count = j.count,
                         .units = j.count,
                         .ctx = &j,
                         .open = open_tools,
                         .close = close_tools,
                         .work = do_part};
        rc = rq__crew_run(&crew, ret, why);
    }
    free(j.parts);
    rq_buf_clear(&j.fields);
    rq_arena_clear(&j.arena);
    if (j.vfs != NULL) rq_vfs_free(j.vfs);
    return rc;
}
