/* SPDX-License-Identifier: Apache-2.0 */
/* See load_hfiles.h. Rounds: of the files that are left, those that fit a region are loaded, one call
 * for each region, and the others are divided at the region's end. A call that fails because regions
 * have changed is made again in a later round, with the regions read anew. */
#include "transfer/load_hfiles.h"

#include "base/clock.h"
#include "base/pb.h"
#include "hfile/reader.h"
#include "transfer/hfiles.h"
#include "transfer/load_journal.h"
#include "transfer/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS_MAX 10 /* HBASE: hbase.bulkload.retries.number */
#define PAUSE_NS 500000000
#define HALVES "_rorqual_halves"
#define LOW ".bottom"
#define HIGH ".top"
#define AGAIN ".again"
#define SETTLE_NS 50000000
#define SETTLES_MAX 200 /* checks of files that an earlier call may be loading: 10 s */

typedef struct load_file {
    const char *path; /* in the vfs */
    const rq_family_schema *family;
    rq_slice first, last; /* rows; in the arena */
    size_t region;        /* that has the first row, in this round */
    bool is_called;       /* a call of this run has named it */
    bool is_done;
} load_file;

typedef struct load_job {
    rq__load *l;
    rq_arena arena;
    load_file *files;
    size_t count, cap;
    rq__load_journal journal;
    unsigned settles; /* looks, so far */
    rq_error why;     /* of the last call that failed */
} load_job;

/* --- the files -------------------------------------------------------------------------------- */

static rq_err row_of_key(rq_slice key, rq_arena *arena, rq_slice *ret, rq_error *why)
{
    rq_cell c;
    RQ_TRY(rq_cell_parse_stored_key(key, &c, why));
    *ret = rq_arena_copy(arena, rq_cell_row(&c));
    return ret->ptr == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err push(load_job *j, const load_file *f, rq_error *why)
{
    if (j->count == j->cap) {
        size_t cap = j->cap == 0 ? 64 : 2 * j->cap;
        load_file *bigger = realloc(j->files, cap * sizeof *bigger);
        if (bigger == NULL) return rq_no_memory(why);
        j->files = bigger;
        j->cap = cap;
    }
    j->files[j->count++] = *f;
    return RQ_OK;
}

/* A file without cells is passed over. */
static rq_err add_file(load_job *j, const char *path, const rq_family_schema *family, rq_error *why)
{
    rq_hfile_reader *r;
    load_file f = {.path = path, .family = family};
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(rq_hfile_reader_open(j->l->vfs, path, NULL, false, &r, why));
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    rq_err rc = RQ_OK;
    if (info->entry_count > 0) {
        rc = row_of_key(info->first_key, &j->arena, &f.first, why);
        if (rc == RQ_OK) rc = row_of_key(info->last_key, &j->arena, &f.last, why);
        if (rc == RQ_OK) rc = push(j, &f, why);
    }
    rq_hfile_reader_unref(r);
    return rc;
}

/* --- after a kill ----------------------------------------------------------------------------- */

/* How many names the file has; 0: it is gone. */
static size_t names_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_nlink : 0;
}

/* For a file that an earlier run has named in a call: waits while that call is loading it. *path
 * NULL: it is loaded; otherwise *path is its new name. */
static rq_err settle(load_job *j, const char **path, rq_error *why)
{
    const char *full = rq_arena_printf(&j->arena, "%s/%s", j->l->path, *path);
    const char *again = rq_arena_printf(&j->arena, "%s" AGAIN, *path);
    const char *full_again = rq_arena_printf(&j->arena, "%s/%s", j->l->path, again);
    if (full == NULL || again == NULL || full_again == NULL) return rq_no_memory(why);
    for (; j->settles < SETTLES_MAX && names_of(full) > 1; j->settles++)
        rq_clock_sleep_ns(SETTLE_NS);
    if (rename(full, full_again) == 0) {
        *path = again;
        return RQ_OK;
    }
    if (errno != ENOENT)
        return rq_fail(why, RQ_E_IO, "cannot rename %s: %s", full, strerror(errno));
    *path = NULL;
    return RQ_OK;
}

/* A file that a run finds: new, or left by an earlier one. */
static rq_err take_file(load_job *j, const char *path, const rq_family_schema *family,
                        rq_error *why)
{
    if (path == NULL) return rq_no_memory(why);
    rq__load_state state = rq__journal_state(&j->journal, path);
    if (state == RQ__LOAD_DONE || state == RQ__LOAD_DIVIDED) return RQ_OK;
    if (state == RQ__LOAD_CALLED && !j->l->keeps_files) RQ_TRY(settle(j, &path, why));
    return path == NULL ? RQ_OK : add_file(j, path, family, why);
}

/* The length of the name without the last LOW or HIGH and the part after it; 0: it has none. */
static size_t base_len(const char *name)
{
    size_t len = 0;
    for (const char *at = name; (at = strchr(at, '.')) != NULL; at++)
        if (strncmp(at, LOW, strlen(LOW)) == 0 || strncmp(at, HIGH, strlen(HIGH)) == 0)
            len = (size_t)(at - name);
    return len;
}

/* Whether the file that the half is of has two whole halves. */
static bool is_half_of_divided(load_job *j, const char *family, const char *name)
{
    int len = (int)base_len(name);
    const char *file = rq_arena_printf(&j->arena, "%s/%.*s", family, len, name);
    const char *half = rq_arena_printf(&j->arena, HALVES "/%s/%.*s", family, len, name);
    return len > 0 && file != NULL && half != NULL &&
           (rq__journal_state(&j->journal, file) == RQ__LOAD_DIVIDED ||
            rq__journal_state(&j->journal, half) == RQ__LOAD_DIVIDED);
}

/* --- the folder ------------------------------------------------------------------------------- */

static bool is_hidden(const char *name)
{
    return name[0] == '_' || name[0] == '.';
}

static rq_err list_halves(load_job *j, const rq_family_schema *family, const char *name,
                          rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    const char *folder = rq_arena_printf(&j->arena, HALVES "/%s", name);
    if (folder == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(j->l->vfs, folder, &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++)
        if (is_half_of_divided(j, name, list[i].name))
            RQ_TRY(take_file(j, rq_arena_printf(&j->arena, "%s/%s", folder, list[i].name), family,
                             why));
    return RQ_OK;
}

static rq_err list_family(load_job *j, const char *name, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    const rq_family_schema *family = rq_table_schema_family(j->l->schema, rq_slice_cstr(name));
    if (family == NULL)
        return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "%s/%s: table %s has no column family %s",
                       j->l->path, name, j->l->link->name, name);
    RQ_TRY(rq_vfs_list(j->l->vfs, name, &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++)
        if (!list[i].is_dir && !is_hidden(list[i].name))
            RQ_TRY(
                take_file(j, rq_arena_printf(&j->arena, "%s/%s", name, list[i].name), family, why));
    return list_halves(j, family, name, why);
}

static rq_err list_files(load_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list(j->l->vfs, "", &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (is_hidden(list[i].name)) continue;
        if (!list[i].is_dir)
            return rq_fail(why, RQ_E_INVALID,
                           "%s/%s is a file: HFiles are in a folder for each family", j->l->path,
                           list[i].name);
        RQ_TRY(list_family(j, list[i].name, why));
    }
    return RQ_OK;
}

/* --- dividing --------------------------------------------------------------------------------- */

static rq_err copy_cells(rq_hfile_reader *r, rq_slice at, rq_hfile_writer *low,
                         rq_hfile_writer *high, rq_error *why)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, why);
    while (rc == RQ_OK) {
        const rq_cell *c = rq_hfile_scanner_cell(&s);
        bool is_low = rq_slice_compare(rq_cell_row(c), at) < 0;
        rc = rq_hfile_writer_append(is_low ? low : high, c, why);
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* A half of the file. */
static rq_err open_half(load_job *j, const load_file *f, const char *which, rq_hfile_writer **ret,
                        const char **ret_path, rq_error *why)
{
    const char *name = strrchr(f->path, '/') + 1;
    const char *folder = rq_arena_printf(&j->arena, HALVES "/%.*s", (int)f->family->name.len,
                                         (const char *)f->family->name.ptr);
    *ret_path =
        folder == NULL ? NULL : rq_arena_printf(&j->arena, "%s/%.200s%s", folder, name, which);
    if (*ret_path == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_mkdirs(j->l->vfs, folder, why));
    RQ_TRY(rq__drop_file(j->l->vfs, *ret_path, why));
    return rq__hfile_begin_at(j->l->vfs, *ret_path, f->family, ret, why);
}

/* Two files instead of the i-th, which remains where it is. */
static rq_err divide(load_job *j, size_t i, rq_slice at, rq_error *why)
{
    const load_file f = j->files[i];
    const char *paths[2] = {NULL, NULL};
    rq_hfile_writer *halves[2] = {NULL, NULL};
    rq_hfile_reader *r;
    RQ_TRY(rq_hfile_reader_open(j->l->vfs, f.path, NULL, false, &r, why));
    rq_err rc = open_half(j, &f, LOW, &halves[0], &paths[0], why);
    if (rc == RQ_OK) rc = open_half(j, &f, HIGH, &halves[1], &paths[1], why);
    if (rc == RQ_OK) rc = copy_cells(r, at, halves[0], halves[1], why);
    for (size_t k = 0; k < 2; k++) {
        if (rc == RQ_OK) rc = rq_hfile_writer_finish(halves[k], NULL, why);
        rq_hfile_writer_close(halves[k]);
    }
    rq_hfile_reader_unref(r);
    if (rc == RQ_OK) rc = rq__journal_note(&j->journal, RQ__LOAD_DIVIDED, &f.path, 1, why);
    for (size_t k = 0; rc == RQ_OK && k < 2; k++)
        rc = add_file(j, paths[k], f.family, why);
    if (rc != RQ_OK) return rc;
    j->files[i].is_done = true;
    j->l->divided++;
    return RQ_OK;
}

static size_t region_of(const rq_client_table *t, rq_slice row)
{
    size_t low = 0, high = rq_client_table_regions(t);
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (rq_slice_compare(rq_client_table_region(t, mid).start, row) <= 0)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Afterwards every file that is left fits its region. */
static rq_err fit(load_job *j, rq_error *why)
{
    const rq_client_table *t = j->l->link->table;
    for (size_t i = 0; i < j->count; i++) { /* halves are added behind */
        load_file *f = &j->files[i];
        if (f->is_done) continue;
        f->region = region_of(t, f->first);
        rq_slice end = rq_arena_copy(&j->arena, rq_client_table_region(t, f->region).end);
        if (end.ptr == NULL) return rq_no_memory(why);
        if (end.len > 0 && rq_slice_compare(f->last, end) >= 0) RQ_TRY(divide(j, i, end, why));
    }
    return RQ_OK;
}

/* --- loading ---------------------------------------------------------------------------------- */

static bool goes_to(const load_file *f, size_t region)
{
    return !f->is_done && f->region == region;
}

static rq_err put_path(rq_buf *b, const load_job *j, const load_file *f)
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
static rq_err put_request(rq_buf *b, const load_job *j, size_t region, bool with_token)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 1, &at));
    RQ_TRY(rq_pb_put_number(b, 1, 1));
    RQ_TRY(rq_pb_put_bytes(b, 2, rq_client_table_region(j->l->link->table, region).name));
    RQ_TRY(rq_pb_end(b, at));
    for (size_t i = 0; i < j->count; i++)
        if (goes_to(&j->files[i], region)) RQ_TRY(put_path(b, j, &j->files[i]));
    RQ_TRY(rq_pb_put_number(b, 3, 1));
    if (with_token) RQ_TRY(rq_pb_put_bytes(b, 5, rq_slice_cstr(j->l->token)));
    return rq_pb_put_number(b, 6, j->l->keeps_files);
}

static bool was_loaded(const rq_buf *answer)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(answer));
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_VARINT) return f.value != 0;
    return false;
}

/* One call. RQ_E_AGAIN: not loaded; for requests with a token the server gives no reason. */
static rq_err call(load_job *j, size_t region, bool with_token, bool *ret_retry, rq_error *why)
{
    rq_buf request = {0}, answer = {0};
    rq_client_failure failure = {.retry = false};
    rq_err rc = put_request(&request, j, region, with_token);
    if (rc == RQ_OK)
        rc = rq_client_call_region(j->l->link->table, region, "BulkLoadHFile",
                                   rq_buf_slice(&request), &answer, &failure);
    *ret_retry = failure.retry;
    if (rc != RQ_OK) {
        size_t len = strcspn(failure.text, "\n");
        rc = rq_fail(why, rc, "bulk load: %.*s", (int)len, failure.text);
    } else if (!was_loaded(&answer)) {
        rc = RQ_E_AGAIN;
    }
    rq_buf_clear(&request);
    rq_buf_clear(&answer);
    return rc;
}

static rq_err note(load_job *j, size_t region, rq__load_state state, rq_error *why)
{
    size_t n = 0;
    const char **paths = rq_arena_calloc(&j->arena, j->count, sizeof *paths);
    if (paths == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < j->count; i++)
        if (goes_to(&j->files[i], region)) {
            j->files[i].is_called = true;
            paths[n++] = j->files[i].path;
        }
    return rq__journal_note(&j->journal, state, paths, n, why);
}

/* Without a token the server tells why it does not load. */
static rq_err load_region(load_job *j, size_t region, bool *ret_retry, rq_error *why)
{
    RQ_TRY(note(j, region, RQ__LOAD_CALLED, why));
    rq_err rc = call(j, region, true, ret_retry, why);
    if (rc == RQ_E_AGAIN) rc = call(j, region, false, ret_retry, why);
    if (rc == RQ_E_AGAIN) {
        *ret_retry = true;
        return rq_fail(why, RQ_E_IOEXCEPTION, "bulk load: the server did not load the files");
    }
    if (rc == RQ_OK) rc = note(j, region, RQ__LOAD_DONE, why);
    for (size_t i = 0; rc == RQ_OK && i < j->count; i++)
        if (goes_to(&j->files[i], region)) {
            j->files[i].is_done = true;
            j->l->loaded++;
        }
    if (rc == RQ_E_WRONG_REGION || rc == RQ_E_NOT_SERVING_REGION) *ret_retry = true;
    return rc;
}

/* The answer of a call may be lost: if its files were moved, the call was executed. */
static rq_err pass_over_loaded(load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->count; i++) {
        load_file *f = &j->files[i];
        if (f->is_done || !f->is_called || j->l->keeps_files) continue;
        const char *full = rq_arena_printf(&j->arena, "%s/%s", j->l->path, f->path);
        if (full == NULL) return rq_no_memory(why);
        f->is_done = names_of(full) == 0;
        j->l->loaded += f->is_done;
    }
    return RQ_OK;
}

/* Loads the remaining files; temporary errors are kept in j->why. */
static rq_err load_round(load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->count; i++) {
        bool retry = false;
        rq_error mine = {.code = RQ_OK};
        if (j->files[i].is_done) continue;
        rq_err rc = load_region(j, j->files[i].region, &retry, &mine);
        if (rc == RQ_OK) continue;
        if (!retry) return rq_fail(why, rc, "%s", mine.message);
        j->why = mine;
    }
    return RQ_OK;
}

static size_t files_left(const load_job *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->count; i++)
        n += !j->files[i].is_done;
    return n;
}

static rq_err load_all(load_job *j, rq_error *why)
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
static rq_err open_journal(load_job *j, rq_error *why)
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
    load_job j = {.l = l};
    rq_err rc = open_journal(&j, why);
    if (rc == RQ_OK) rc = list_files(&j, why);
    if (rc == RQ_OK && j.count == 0 && !j.journal.is_resumed)
        rc = rq_fail(why, RQ_E_NOT_FOUND, "%s has no HFile with cells", l->path);
    if (rc == RQ_OK) rc = load_all(&j, why);
    rq__journal_close(&j.journal);
    free(j.files);
    rq_arena_clear(&j.arena);
    return rc;
}

rq_err rq__load_end(const rq__load *l, rq_error *why)
{
    RQ_TRY(rq__journal_remove(l->vfs, why));
    return rq_vfs_remove_tree(l->vfs, HALVES, why);
}
