/* SPDX-License-Identifier: Apache-2.0 */
/* Replicated bulk loads; contract in bulk_replicated.h. Runs on RQ_POOL_CALL. */
#include "ops/bulk_replicated.h"

#include "hfile/reader.h"
#include "ops/ops_priv.h"
#include "region/bulk_load.h"

#include <string.h>

#define ROWS_BYTES ((size_t)256 * 1024) /* of cells written at a time */
#define CELLS 512

typedef struct job {
    rq_op_bulk_replicated *b;
    rq_ops *ops;
    rq_intake_visit visit;
    rq_error *why;
} job;

/* --- the file --------------------------------------------------------------------------------- */

/* Opens the file at one of its two places. */
static rq_err open_at(job *j, const char *said, rq_bulk_file *ret, rq_hfile_reader **ret_reader,
                      rq_error *why)
{
    rq_file *file;
    const char *path = rq__bulk_local_path(said);
    if (path == NULL) return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s is not on this machine", said);
    RQ_TRY(rq_intake_find(&j->visit, path, &ret->source, &ret->path, why));
    RQ_TRY(rq_vfs_open(ret->source, ret->path, RQ_OPEN_READ | RQ_OPEN_BENEATH, &file, why));
    return rq_hfile_reader_open_file(file, said, ret_reader, why);
}

static rq_err open_file(job *j, size_t i, rq_bulk_file *ret, rq_hfile_reader **ret_reader)
{
    rq_error first;
    rq_error second;
    rq_error_clear(&first);
    rq_error_clear(&second);
    *ret = (rq_bulk_file){.family = j->b->bulk.files[i].family, .name = j->b->bulk.files[i].path};
    if (open_at(j, j->b->bulk.files[i].path, ret, ret_reader, &first) == RQ_OK) return RQ_OK;
    rq_err rc = j->b->archived[i] == NULL ? RQ_E_NOT_FOUND
                                          : open_at(j, j->b->archived[i], ret, ret_reader, &second);
    if (rc == RQ_OK) return RQ_OK;
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(j->why);
    return rq_fail(j->why, RQ_E_DO_NOT_RETRY,
                   "a file of a replicated bulk load cannot be read: %.700s (see "
                   "rorqual.replication.bulkload.folders and rorqual.replication.bulkload.missing)",
                   first.message);
}

/* --- where its rows are ----------------------------------------------------------------------- */

/* The region of a row, with a reference. */
static rq_err region_of(job *j, rq_slice row, rq_region **ret)
{
    const rq_catalog_region *r;
    rq_epoch_member m = {0};
    rq_epoch_pin(j->ops->env.epoch, &m);
    rq_err rc = rq_catalog_locate(j->ops->catalog, j->b->table, row, &r, NULL);
    if (rc == RQ_OK && r->region == NULL) rc = RQ_E_NOT_SERVING_REGION;
    if (rc == RQ_OK) *ret = rq_region_ref(r->region);
    rq_epoch_unpin(j->ops->env.epoch, &m);
    if (rc == RQ_OK) return RQ_OK;
    bool no_table = rc == RQ_E_TABLE_NOT_FOUND;
    return rq_fail(j->why, rc, no_table ? "'%.*s'" : "a region of %.*s is not online",
                   (int)j->b->table.len, (const char *)j->b->table.ptr);
}

static rq_err load_whole(job *j, rq_region *r, const rq_bulk_file *file, bool *ret_loaded)
{
    rq_bulk_load l = {.files = file,
                      .file_count = 1,
                      .assign_seqid = true,
                      .copy = true,
                      .clusters = j->b->clusters};
    RQ_TRY(rq__bulk_ships(&j->b->bulk, &l));
    return rq_region_bulk_load(r, &l, ret_loaded, j->why);
}

/* --- row by row ------------------------------------------------------------------------------- */

/* Cells of one region, each a mutation; bytes are in the arena. */
typedef struct writes {
    rq_arena arena;
    rq_region *region;
    rq_row_op ops[CELLS];
    rq_mutation mutations[CELLS];
    rq_cell cells[CELLS];
    size_t count;
} writes;

static rq_err flush_writes(job *j, writes *w)
{
    if (w->count == 0) return RQ_OK;
    rq_err rc = rq_region_write_sync(w->region, w->ops, w->count, j->why);
    for (size_t i = 0; i < w->count; i++)
        rq_row_op_clear(&w->ops[i]);
    w->count = 0;
    rq_arena_reset(&w->arena);
    return rc;
}

static rq_err copy_cell(writes *w, const rq_cell *from, rq_cell *to)
{
    size_t len = (size_t)from->row_len + from->family_len + from->qualifier_len + from->value_len +
                 from->tags_len;
    uint8_t *p = rq_arena_alloc(&w->arena, len + 1);
    if (p == NULL) return RQ_E_NO_MEMORY;
    *to = *from;
    to->seqid = 0;
    to->row = memcpy(p, from->row, from->row_len);
    p += from->row_len;
    to->family = memcpy(p, from->family, from->family_len);
    p += from->family_len;
    if (from->qualifier_len > 0) memcpy(p, from->qualifier, from->qualifier_len);
    to->qualifier = p;
    p += from->qualifier_len;
    if (from->value_len > 0) memcpy(p, from->value, from->value_len);
    to->value = p;
    p += from->value_len;
    if (from->tags_len > 0) to->tags = memcpy(p, from->tags, from->tags_len);
    return RQ_OK;
}

static rq_err add_write(job *j, writes *w, const rq_cell *c)
{
    size_t i = w->count;
    RQ_TRY(copy_cell(w, c, &w->cells[i]));
    w->mutations[i] =
        (rq_mutation){.type = c->type == RQ_TYPE_PUT ? RQ_MUTATE_PUT : RQ_MUTATE_DELETE,
                      .row = rq_cell_row(&w->cells[i]),
                      .cells = &w->cells[i],
                      .cell_count = 1,
                      .time_range = RQ_TIME_RANGE_ALL};
    w->ops[i] = (rq_row_op){
        .mutations = &w->mutations[i], .mutation_count = 1, .cluster_ids = j->b->clusters};
    w->count++;
    return RQ_OK;
}

static rq_err write_cell(job *j, writes *w, const rq_cell *c)
{
    bool fits =
        w->region != NULL && rq_region_info_contains(rq_region_get_info(w->region), rq_cell_row(c));
    if (!fits || w->count == CELLS || w->arena.total_bytes > ROWS_BYTES) RQ_TRY(flush_writes(j, w));
    if (!fits) {
        rq_region_unref(w->region);
        w->region = NULL;
        RQ_TRY(region_of(j, rq_cell_row(c), &w->region));
    }
    return add_write(j, w, c);
}

static rq_err write_rows(job *j, rq_hfile_reader *reader)
{
    rq_hfile_scanner s;
    rq_read_ctx ctx = {.may_block = true};
    writes *w = rq_arena_calloc(j->b->bulk.op.arena, 1, sizeof *w);
    if (w == NULL) return rq_no_memory(j->why);
    rq_arena_init(&w->arena);
    rq_hfile_scanner_init(&s, reader);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, j->why);
    while (rc == RQ_OK) {
        rc = write_cell(j, w, rq_hfile_scanner_cell(&s));
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, j->why);
    }
    if (rc == RQ_E_END) rc = flush_writes(j, w);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_region_unref(w->region);
    rq_arena_clear(&w->arena);
    return rc;
}

/* --- all files -------------------------------------------------------------------------------- */

static rq_err load_file(job *j, const rq_bulk_file *file, rq_hfile_reader *reader)
{
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    rq_cell first;
    rq_region *r;
    bool loaded = false;
    if (info->entry_count == 0) return RQ_OK;
    RQ_TRY(rq_cell_parse_stored_key(info->first_key, &first, j->why));
    RQ_TRY(region_of(j, rq_cell_row(&first), &r));
    rq_err rc = load_whole(j, r, file, &loaded);
    rq_region_unref(r);
    return rc != RQ_OK || loaded ? rc : write_rows(j, reader);
}

/* RQ_E_DO_NOT_RETRY from open_file: it cannot be read here. */
static rq_err take_file(job *j, size_t i)
{
    rq_bulk_file file;
    rq_hfile_reader *reader;
    rq_err rc = open_file(j, i, &file, &reader);
    if (rc == RQ_E_DO_NOT_RETRY && j->ops->skips_missing) {
        rq_log_write_limited(j->ops->env.log, &j->ops->skipped_files, RQ_LOG_WARN, "replication",
                             "bulk load into table %.*s skips a file: %s", (int)j->b->table.len,
                             (const char *)j->b->table.ptr, j->why->message);
        rq_error_clear(j->why);
        j->b->skipped++;
        return RQ_OK;
    }
    if (rc != RQ_OK) return rc;
    rc = load_file(j, &file, reader);
    rq_hfile_reader_unref(reader);
    j->b->loaded += rc == RQ_OK;
    return rc;
}

static rq_err work(rq_op_bulk *bulk)
{
    rq_op_bulk_replicated *b = RQ_CONTAINER_OF(bulk, rq_op_bulk_replicated, bulk);
    job j = {.b = b, .ops = bulk->op.seat->ops, .why = &bulk->op.why};
    if (rq__bulk_was_here(bulk)) return RQ_OK;
    if (j.ops->replicated == NULL)
        return rq_fail(j.why, RQ_E_UNSUPPORTED, "replicated bulk loads are disabled");
    RQ_TRY(rq_intake_begin(j.ops->replicated, bulk->op.arena, &j.visit));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < bulk->file_count && rc == RQ_OK; i++)
        rc = take_file(&j, i);
    rq_intake_end(&j.visit);
    bulk->loaded = rc == RQ_OK;
    return rc;
}

void rq_op_bulk_replicated_start(rq_op_bulk_replicated *b)
{
    rq__bulk_start(&b->bulk, RQ_OP_BULK_LOAD, work);
}
