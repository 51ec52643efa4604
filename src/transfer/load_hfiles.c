/* SPDX-License-Identifier: Apache-2.0 */
/* See load_hfiles.h. Rounds: files that span regions are divided, one piece for each region; then the
 * files that are left are loaded, one call for each region. A call that fails because regions have
 * changed is made again in a later round, with the regions read anew. */
#include "transfer/load_hfiles.h"

#include "base/clock.h"
#include "base/pb.h"
#include "hfile/reader.h"
#include "transfer/hfiles.h"
#include "transfer/load_files.h"
#include "transfer/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS_MAX 10 /* HBASE: hbase.bulkload.retries.number */
#define PAUSE_NS 500000000

/* --- dividing --------------------------------------------------------------------------------- */

/* A file that is written as several, one after another. */
typedef struct division {
    rq__load_job *job;
    const rq__load_file *file;
    size_t region; /* of the piece that is being written */
    size_t count;  /* pieces that were begun */
    rq_hfile_writer *piece;
} division;

/* REQUIRES: the row is not before the region. */
static bool is_in_region(const rq_client_table *t, size_t region, rq_slice row)
{
    rq_slice end = rq_client_table_region(t, region).end;
    return end.len == 0 || rq_slice_compare(row, end) < 0;
}

/* RQ__NO_REGION: none that is open has the row, as while one is split or moved. */
static size_t region_of(const rq_client_table *t, rq_slice row)
{
    size_t low = 0, high = rq_client_table_regions(t); /* regions that start at or before the row */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rq_slice_compare(rq_client_table_region(t, mid).start, row) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && is_in_region(t, low - 1, row) ? low - 1 : RQ__NO_REGION;
}

/* Whether regions, from that one on, have all rows up to the last. */
static bool are_rows_in_regions(const rq_client_table *t, size_t region, rq_slice last)
{
    size_t count = rq_client_table_regions(t);
    for (; !is_in_region(t, region, last); region++)
        if (region + 1 == count || rq_slice_compare(rq_client_table_region(t, region + 1).start,
                                                    rq_client_table_region(t, region).end) > 0)
            return false;
    return true;
}

static rq_err no_region(const rq__load_job *j, const rq__load_file *f, rq_error *why)
{
    return rq_fail(why, RQ_E_NOT_SERVING_REGION,
                   "bulk load: table %s has no open region for some rows of %s/%s",
                   j->l->link->name, j->l->path, f->path);
}

static rq_err end_piece(division *d, rq_error *why)
{
    if (d->piece == NULL) return RQ_OK;
    rq_err rc = rq_hfile_writer_finish(d->piece, NULL, why);
    rq_hfile_writer_close(d->piece);
    d->piece = NULL;
    return rc;
}

static rq_err begin_piece(division *d, rq_slice row, rq_error *why)
{
    rq__load_job *j = d->job;
    const char *path = rq__load_piece_of(j, d->file->path, d->file->family, d->count);
    if (path == NULL) return rq_no_memory(why);
    d->region = region_of(j->l->link->table, row);
    if (d->region == RQ__NO_REGION) return no_region(j, d->file, why);
    d->count++;
    RQ_TRY(rq__drop_file(j->l->vfs, path, why)); /* of a run that was killed */
    return rq__hfile_begin_at(j->l->vfs, path, d->file->family, &d->piece, why);
}

static rq_err put_cell(division *d, const rq_cell *c, rq_error *why)
{
    rq_slice row = rq_cell_row(c);
    if (d->piece == NULL || !is_in_region(d->job->l->link->table, d->region, row)) {
        RQ_TRY(end_piece(d, why));
        RQ_TRY(begin_piece(d, row, why));
    }
    return rq_hfile_writer_append(d->piece, c, why);
}

static rq_err put_cells(division *d, rq_hfile_reader *r, rq_error *why)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, why);
    while (rc == RQ_OK) {
        rc = put_cell(d, rq_hfile_scanner_cell(&s), why);
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return rc == RQ_E_END ? end_piece(d, why) : rc;
}

/* The pieces, durable. */
static rq_err write_pieces(division *d, rq_error *why)
{
    rq_hfile_reader *r;
    rq_vfs *v = d->job->l->vfs;
    rq_slice family = d->file->family->name;
    const char *folder = rq_arena_printf(&d->job->arena, RQ__LOAD_PIECES "/%.*s", (int)family.len,
                                         (const char *)family.ptr);
    if (folder == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_mkdirs(v, folder, why));
    RQ_TRY(rq_hfile_reader_open(v, d->file->path, NULL, false, &r, why));
    rq_err rc = put_cells(d, r, why);
    rq_hfile_writer_close(d->piece);
    rq_hfile_reader_unref(r);
    return rc == RQ_OK ? rq_vfs_sync_dir(v, folder, why) : rc;
}

static rq__journal_line line_of(const rq__load_file *f, rq__load_state state)
{
    return (rq__journal_line){
        .path = f->path, .state = state, .size = f->size, .mtime_ms = f->mtime_ms};
}

/* Pieces instead of the i-th file, which remains where it is. */
static rq_err divide(rq__load_job *j, size_t i, rq_error *why)
{
    const rq__load_file f = j->files[i];
    division d = {.job = j, .file = &f};
    RQ_TRY(write_pieces(&d, why));
    rq__journal_line line = line_of(&f, RQ__LOAD_DIVIDED);
    line.pieces = d.count;
    RQ_TRY(rq__journal_note(&j->journal, &line, 1, why));
    for (size_t k = 0; k < d.count; k++)
        RQ_TRY(rq__load_add_file(j, rq__load_piece_of(j, f.path, f.family, k), f.family, why));
    j->files[i].is_done = true;
    j->l->divided += d.count - 1;
    return RQ_OK;
}

static int compare_regions(const void *a, const void *b)
{
    const rq__load_file *x = a, *y = b;
    return x->region != y->region ? (x->region > y->region) - (x->region < y->region)
                                  : strcmp(x->path, y->path);
}

/* Forgets files that are done; the others are sorted by region. */
static void sort_files(rq__load_job *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!j->files[i].is_done) j->files[n++] = j->files[i];
    j->count = n;
    if (n > 0) qsort(j->files, n, sizeof *j->files, compare_regions);
}

/* Gives the i-th file its region, or divides it. */
static rq_err place_file(rq__load_job *j, size_t i, rq_error *why)
{
    const rq_client_table *t = j->l->link->table;
    rq__load_file *f = &j->files[i];
    f->region = region_of(t, f->first);
    if (f->region != RQ__NO_REGION && is_in_region(t, f->region, f->last)) return RQ_OK;
    if (f->region != RQ__NO_REGION && are_rows_in_regions(t, f->region, f->last))
        return divide(j, i, why);
    f->region = RQ__NO_REGION;
    j->why = (rq_error){.code = RQ_OK};
    (void)no_region(j, f, &j->why);
    return RQ_OK;
}

/* Afterwards every file that is left fits its region or has none, and they are sorted. */
static rq_err fit(rq__load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->count; i++) /* pieces are added behind */
        if (!j->files[i].is_done) RQ_TRY(place_file(j, i, why));
    sort_files(j);
    return RQ_OK;
}

/* --- loading ---------------------------------------------------------------------------------- */

/* The files of a region. */
typedef struct load_group {
    rq__load_file *files;
    size_t count, region;
} load_group;

static rq_err put_path(rq_buf *b, const rq__load_job *j, const rq__load_file *f)
{
    size_t at;
    rq_buf path = {0};
    RQ_TRY(rq_pb_begin(b, 2, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, f->family->name));
    rq_err rc = rq_buf_printf(&path, "file:%s/%s", j->l->path, f->path);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(b, 2, rq_buf_slice(&path));
    rq_buf_clear(&path);
    RQ_TRY(rc);
    return rq_pb_end(b, at);
}

/* BulkLoadHFileRequest { region 1, family_path 2 { family 1, path 2 }, assign_seq_num 3,
 * bulk_token 5, copy_file 6 } of the files of a region. */
static rq_err put_request(rq_buf *b, const rq__load_job *j, const load_group *g, bool with_token)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 1, &at));
    RQ_TRY(rq_pb_put_number(b, 1, 1));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_client_table_region(j->l->link->table, g->region).name));
    RQ_TRY(rq_pb_end(b, at));
    for (size_t i = 0; i < g->count; i++)
        RQ_TRY(put_path(b, j, &g->files[i]));
    RQ_TRY(rq_pb_put_number(b, 3, 1));
    if (with_token) RQ_TRY(rq_pb_put_bytes(b, 5, rq_slice_cstr(j->l->token)));
    return rq_pb_put_number(b, 6, j->l->keeps_files);
}

/* BulkLoadHFileResponse { loaded 1, required }. RQ_E_AGAIN: not loaded. */
static rq_err take_answer(const rq_buf *answer, rq_error *why)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(answer));
    rq_pb_field f;
    rq_err rc, ret = RQ_E_MALFORMED;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_VARINT) ret = f.value != 0 ? RQ_OK : RQ_E_AGAIN;
    if (rc == RQ_E_END && ret != RQ_E_MALFORMED) return ret;
    return rq_fail(why, RQ_E_MALFORMED,
                   "bulk load: the server's response does not say whether the files were loaded");
}

/* One call. RQ_E_AGAIN: not loaded; for requests with a token the server gives no reason. */
static rq_err call(rq__load_job *j, const load_group *g, bool with_token, bool *ret_retry,
                   rq_error *why)
{
    rq_buf request = {0}, answer = {0};
    rq_client_failure failure = {.retry = false};
    rq_err rc = put_request(&request, j, g, with_token);
    if (rc == RQ_OK)
        rc = rq_client_call_region(j->l->link->table, g->region, "BulkLoadHFile",
                                   rq_buf_slice(&request), &answer, &failure);
    *ret_retry = failure.retry;
    if (rc != RQ_OK) {
        size_t len = strcspn(failure.text, "\n");
        rc = rq_fail(why, rc, "bulk load: %.*s", (int)len, failure.text);
    } else {
        rc = take_answer(&answer, why);
    }
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

static rq_err note(rq__load_job *j, const load_group *g, rq__load_state state, rq_error *why)
{
    rq__journal_line *lines = calloc(g->count, sizeof *lines);
    if (lines == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < g->count; i++)
        lines[i] = line_of(&g->files[i], state);
    rq_err rc = rq__journal_note(&j->journal, lines, g->count, why);
    free(lines);
    return rc;
}

/* Without a token the server tells why it does not load. */
static rq_err load_region(rq__load_job *j, const load_group *g, bool *ret_retry, rq_error *why)
{
    RQ_TRY(note(j, g, RQ__LOAD_CALLED, why));
    for (size_t i = 0; i < g->count; i++)
        g->files[i].is_called = true;
    rq_err rc = call(j, g, true, ret_retry, why);
    if (rc == RQ_E_AGAIN) rc = call(j, g, false, ret_retry, why);
    if (rc == RQ_E_AGAIN) {
        *ret_retry = true;
        return rq_fail(why, RQ_E_IOEXCEPTION, "bulk load: the server did not load the files");
    }
    if (rc == RQ_OK) rc = note(j, g, RQ__LOAD_DONE, why);
    for (size_t i = 0; rc == RQ_OK && i < g->count; i++)
        g->files[i].is_done = true;
    if (rc == RQ_OK) j->l->loaded += g->count;
    if (rc == RQ_E_WRONG_REGION || rc == RQ_E_NOT_SERVING_REGION) *ret_retry = true;
    return rc;
}

/* The answer of a call may be lost: if its files were moved, the call was executed. */
static rq_err pass_over_loaded(rq__load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->count; i++) {
        rq__load_file *f = &j->files[i];
        size_t names;
        if (f->is_done || !f->is_called || j->l->keeps_files) continue;
        RQ_TRY(rq__load_count_names(j, f->path, &names, why));
        f->is_done = names == 0;
        j->l->loaded += f->is_done;
    }
    return RQ_OK;
}

static load_group group_at(const rq__load_job *j, size_t from)
{
    load_group g = {.files = j->files + from, .region = j->files[from].region};
    while (from + g.count < j->count && g.files[g.count].region == g.region)
        g.count++;
    return g;
}

/* Loads the remaining files, one call for each region; temporary errors are kept in j->why.
 * REQUIRES: the files are sorted, and none is done. */
static rq_err load_round(rq__load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->count;) {
        bool retry = false;
        rq_error mine = {.code = RQ_OK};
        load_group g = group_at(j, i);
        i += g.count;
        if (g.region == RQ__NO_REGION) continue;
        rq_err rc = load_region(j, &g, &retry, &mine);
        if (rc != RQ_OK && !retry) return rq_fail(why, rc, "%s", mine.message);
        if (rc != RQ_OK) j->why = mine;
    }
    return RQ_OK;
}

static size_t files_left(const rq__load_job *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->count; i++)
        n += !j->files[i].is_done;
    return n;
}

static rq_err load_all(rq__load_job *j, rq_error *why)
{
    for (unsigned round = 0; files_left(j) > 0; round++) {
        if (round == ROUNDS_MAX) return rq_fail(why, j->why.code, "%s", j->why.message);
        if (round > 0) {
            rq_clock_sleep_ns(PAUSE_NS);
            RQ_TRY(rq_client_table_read(j->l->link->table, why));
            RQ_TRY(pass_over_loaded(j, why));
        }
        RQ_TRY(fit(j, why));
        RQ_TRY(load_round(j, why));
    }
    return RQ_OK;
}

/* A folder that cannot be written has no journal: its files are copied, and after a kill all of
 * them again. */
static rq_err open_journal(rq__load_job *j, rq_error *why)
{
    const rq__load *l = j->l;
    const char *what = rq_arena_printf(&j->arena, "table=%s cluster=%s", l->link->name,
                                       rq_client_cluster_id(l->link->client));
    if (what == NULL) return rq_no_memory(why);
    RQ_TRY(rq__journal_open(l->vfs, what, &j->journal, why));
    j->journal.is_off = l->keeps_files && access(l->path, W_OK) != 0;
    return RQ_OK;
}

rq_err rq__load_run(rq__load *l, rq_error *why)
{
    rq__load_job j = {.l = l};
    rq_err rc = open_journal(&j, why);
    if (rc == RQ_OK) rc = rq__load_list_files(&j, why);
    if (rc == RQ_OK && j.count == 0 && !j.journal.is_resumed)
        rc = rq_fail(why, RQ_E_NOT_FOUND, "%s has no HFile with cells", l->path);
    if (rc == RQ_OK) rc = load_all(&j, why);
    rq__journal_close(&j.journal);
    free(j.files);
    rq_arena_clear(&j.arena);
    return rc;
}

rq_err rq__load_end(rq_vfs *v, rq_error *why)
{
    RQ_TRY(rq__journal_remove(v, why));
    return rq_vfs_remove_tree(v, RQ__LOAD_PIECES, why);
}
