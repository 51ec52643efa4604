/* SPDX-License-Identifier: Apache-2.0 */
/* See bulkload.h. */
#include "transfer/bulkload.h"

#include "transfer/bulk_sort.h"
#include "transfer/hfiles.h"
#include "transfer/load_hfiles.h"
#include "transfer/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES ((uint64_t)64 * 1024 * 1024)
#define MEMORY ((uint64_t)512 * 1024 * 1024)
#define WORK_FOLDER "_rorqual_runs"
#define DRAFTS "_rorqual_hfiles" /* HFiles until all are whole */

typedef struct bulk_job {
    const rq_bulkload *b;
    rq__link link;
    rq_arena arena;
    rq_table_schema *schema;
    const char *token;
    const char *folder; /* absolute: where the HFiles are, or are made */
    rq_vfs *vfs;        /* on it */
    rq_file *lock;
    rq__files files; /* the input */
    rq__columns columns;
    rq__feed_options feed;
    rq__bulk_work work;
    bool has_made_output; /* the output folder is this command's */
} bulk_job;

/* --- text to HFiles --------------------------------------------------------------------------- */

static uint64_t memory_of(const bulk_job *j)
{
    return j->b->memory == 0 ? MEMORY : j->b->memory;
}

static rq_err sort_input(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    const rq__bulk_sort s = {.options = j->b->options,
                             .files = &j->files,
                             .feed = &j->feed,
                             .work = &j->work,
                             .memory = memory_of(j)};
    return rq__bulk_sort_run(&s, &ret->read, why);
}

/* Into DRAFTS, where an earlier run may have left some. */
static rq_err merge(bulk_job *j, rq__runs *runs, rq_error *why)
{
    rq__range *ranges;
    rq__hfiles h = {.vfs = j->vfs, .folder = DRAFTS, .schema = j->schema};
    if (rq__ranges_of(j->link.table, (rq_slice){0}, (rq_slice){0}, &j->arena, &ranges,
                      &h.range_count) != RQ_OK)
        return rq_no_memory(why);
    h.ranges = ranges;
    runs->memory = memory_of(j);
    RQ_TRY(rq_vfs_remove_tree(j->vfs, DRAFTS, why));
    rq_err rc = rq__runs_merge(runs, rq__hfiles_put, &h, why);
    if (rc == RQ_OK) rc = rq__hfiles_end(&h, why);
    rq__hfiles_clear(&h);
    j->work.files = h.files;
    return rc;
}

static rq_err drop_runs(const rq__runs *runs, rq_error *why)
{
    char path[512];
    for (size_t i = 0; i < runs->count; i++) {
        if (runs->names[i].part == RQ__RUN_MERGED) continue; /* removed by the merge */
        rq__run_path(runs->folder, &runs->names[i], path, sizeof path);
        RQ_TRY(rq__drop_file(runs->vfs, path, why));
    }
    return RQ_OK;
}

static rq_err make_hfiles(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    rq__runs runs;
    RQ_TRY(sort_input(j, ret, why));
    rq_err rc = rq__work_list_runs(&j->work, &runs, why);
    if (rc == RQ_OK) rc = merge(j, &runs, why);
    if (rc == RQ_OK) rc = rq__work_set_step(&j->work, RQ__BULK_MERGED, why);
    if (rc == RQ_OK) rc = drop_runs(&runs, why);
    rq__runs_clear(&runs);
    return rc;
}

/* Moves the HFiles of a family to their folder, except those that an earlier run has moved. */
static rq_err publish_family(bulk_job *j, const char *family, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    const char *folder = rq_arena_printf(&j->arena, DRAFTS "/%s", family);
    if (folder == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list(j->vfs, folder, &j->arena, &list, &count, why));
    RQ_TRY(rq_vfs_mkdirs(j->vfs, family, why));
    for (size_t i = 0; i < count; i++) {
        const char *from = rq_arena_printf(&j->arena, "%s/%s", folder, list[i].name);
        const char *to = rq_arena_printf(&j->arena, "%s/%s", family, list[i].name);
        if (from == NULL || to == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_move(j->vfs, from, to, why));
    }
    return rq_vfs_sync_dir(j->vfs, folder, why);
}

static rq_err publish(bulk_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(j->vfs, DRAFTS, &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++)
        RQ_TRY(publish_family(j, list[i].name, why));
    return rq_vfs_remove_tree(j->vfs, DRAFTS, why);
}

/* --- folders ---------------------------------------------------------------------------------- */

/* The path behind "file:", "file://" or "file:///". */
static const char *local_path(const char *token)
{
    if (strncmp(token, "file:", 5) == 0) token += 5;
    if (strncmp(token, "//", 2) == 0) token += 2;
    return token[0] == '/' ? token : NULL;
}

/* The staging folder of the earlier run, if there is one; its HFiles are needed once the runs are
 * merged. */
static rq_err take_token(bulk_job *j, rq_error *why)
{
    const rq_bulkload *b = j->b;
    const char *place = b->output == NULL ? j->work.place : NULL;
    const char *path = place == NULL ? NULL : local_path(place);
    if (b->only_writes) return RQ_OK;
    if (path != NULL && access(path, R_OK | W_OK | X_OK) == 0) {
        j->token = rq_arena_cstr(&j->arena, rq_slice_cstr(place));
        return j->token == NULL ? rq_no_memory(why) : RQ_OK;
    }
    if (place == NULL && b->output == NULL && j->work.step == RQ__BULK_MERGED)
        return rq_fail(why, RQ_E_CORRUPT,
                       "file %s/place is missing: remove the folder to start over", j->work.shown);
    if (place != NULL && j->work.step == RQ__BULK_MERGED)
        return rq_fail(why, RQ_E_NOT_FOUND,
                       "the earlier run's HFiles in %s no longer exist: remove %s to start over",
                       place, j->work.shown);
    return rq__load_prepare(&j->link, &j->arena, &j->token, why);
}

static rq_err take_staging(bulk_job *j, rq_error *why)
{
    const char *path = local_path(j->token);
    if (path == NULL || access(path, R_OK | W_OK | X_OK) != 0)
        return rq_fail(why, RQ_E_PERMISSION,
                       "the server's staging folder %s is not on this machine, or this user may "
                       "not write to it: use --output FOLDER with a folder that has the same path "
                       "on this machine and on the server (a Rorqual server loads from a folder if "
                       "rorqual.bulkload.folders lists it)",
                       j->token);
    j->folder = path;
    return j->b->progress == NULL ? RQ_OK : rq__work_set_place(&j->work, j->token, why);
}

static rq_err take_output(bulk_job *j, const char *path, bool makes, rq_error *why)
{
    j->has_made_output = makes && mkdir(path, 0777) == 0;
    if (makes && !j->has_made_output && errno != EEXIST)
        return rq_fail(why, RQ_E_IO, "cannot make %s: %s", path, strerror(errno));
    char *absolute = realpath(path, NULL);
    if (absolute == NULL)
        return rq_fail(why, errno == ENOENT ? RQ_E_NOT_FOUND : RQ_E_IO, "%s: %s", path,
                       strerror(errno));
    j->folder = rq_arena_cstr(&j->arena, rq_slice_cstr(absolute));
    free(absolute);
    return j->folder == NULL ? rq_no_memory(why) : RQ_OK;
}

/* HFiles of somebody else would be loaded, too. */
static rq_err check_empty(bulk_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list(j->vfs, "", &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++)
        if (list[i].name[0] != '_' ||
            rq_table_schema_family(j->schema, rq_slice_cstr(list[i].name)) != NULL)
            return rq_fail(why, RQ_E_EXISTS, "%s is not empty (%s)", j->folder, list[i].name);
    return RQ_OK;
}

static rq_err open_folder(bulk_job *j, rq_error *why)
{
    const rq_bulkload *b = j->b;
    const char *path = b->has_hfiles ? b->input : b->output;
    RQ_TRY(path == NULL ? take_staging(j, why) : take_output(j, path, !b->has_hfiles, why));
    RQ_TRY(rq_vfs_posix_new(j->folder, &j->vfs, why));
    return rq_vfs_lock(j->vfs, NULL, &j->lock, why);
}

/* --- the work folder -------------------------------------------------------------------------- */

/* Identifies the load in a line of text: another load with the same folder is refused. */
static const char *describe(bulk_job *j)
{
    const rq_bulkload *b = j->b;
    char *input = realpath(b->input, NULL);
    char *text = rq_arena_printf(
        &j->arena,
        "bulkload table=%s cluster=%s input=%s format=%s columns=%s separator=%d escape=%d "
        "skip-empty=%d timestamp=%" PRId64 " output=%s load=%d keep=%d",
        b->table, rq_client_cluster_id(j->link.client), input == NULL ? b->input : input,
        rq_transfer_format_name(b->format), b->text.columns != NULL ? b->text.columns : "",
        b->text.separator, b->text.has_escapes, b->text.skips_empty, b->now_ms,
        b->output != NULL ? b->output : "", !b->only_writes, b->keeps_files);
    free(input);
    for (char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return text;
}

/* `own`: the folder given by the user, which is read first because it may name the staging
 * folder. */
static rq_err open_work(bulk_job *j, bool own, rq_error *why)
{
    const rq_bulkload *b = j->b;
    if (b->has_hfiles || own != (b->progress != NULL)) return RQ_OK;
    const char *what = describe(j);
    const char *name = own ? rq__plan_name(&j->arena, "bulkload", b->table) : WORK_FOLDER;
    if (what == NULL || name == NULL) return rq_no_memory(why);
    RQ_TRY(rq__work_open(b->progress, j->vfs, j->folder, name, what, &j->files, &j->work, why));
    if (b->now_ms == 0) j->feed.now_ms = j->work.plan.stamp_ms;
    return RQ_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static rq_err open_input(bulk_job *j, rq_error *why)
{
    const rq_bulkload *b = j->b;
    if (b->format == RQ_FORMAT_TSV || b->format == RQ_FORMAT_CSV) {
        RQ_TRY(rq__columns_parse(&b->text, &j->columns, why));
        if (j->columns.labels != SIZE_MAX)
            return rq_fail(why, RQ_E_UNSUPPORTED,
                           "HBASE_CELL_VISIBILITY: only `rorqual import` can send labels");
        j->feed.columns = &j->columns;
    }
    j->feed.format = b->format;
    j->feed.fails_on_bad_lines = b->fails_on_bad_lines;
    j->feed.now_ms = b->now_ms;
    RQ_TRY(rq__files_open(b->input, &j->files, why));
    return rq__files_split(&j->files, rq__feed_splits(&j->feed) ? PART_BYTES : UINT64_MAX, why);
}

static rq_err load(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    rq__load l = {.link = &j->link,
                  .schema = j->schema,
                  .vfs = j->vfs,
                  .path = j->folder,
                  .token = j->token,
                  .keeps_files = j->b->keeps_files};
    rq_err rc = rq__load_run(&l, why);
    ret->loaded = l.loaded;
    ret->divided = l.divided;
    return rc;
}

/* The steps that are left. */
static rq_err go_on(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    rq__bulk_work *w = &j->work;
    if (w->step == RQ__BULK_SORTING) {
        RQ_TRY(check_empty(j, why));
        RQ_TRY(make_hfiles(j, ret, why));
    }
    if (w->step == RQ__BULK_MERGED) {
        RQ_TRY(publish(j, why));
        if (j->b->only_writes) return RQ_OK;
        if (w->files > 0) RQ_TRY(load(j, ret, why));
        RQ_TRY(rq__work_set_step(w, RQ__BULK_LOADED, why));
    }
    return rq__load_end(j->vfs, why);
}

/* Whether an earlier run has loaded everything and removed the staging folder. */
static bool is_over(const bulk_job *j)
{
    const char *place = j->b->output == NULL ? j->work.place : NULL;
    const char *path = place == NULL ? NULL : local_path(place);
    if (j->work.is_over && j->b->output == NULL) return true;
    return j->work.step == RQ__BULK_LOADED && path != NULL && access(path, F_OK) != 0 &&
           errno == ENOENT;
}

static rq_err run_text(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    rq__bulk_work *w = &j->work;
    RQ_TRY(open_work(j, true, why));
    if (!is_over(j)) {
        RQ_TRY(take_token(j, why));
        RQ_TRY(open_folder(j, why));
        RQ_TRY(open_work(j, false, why));
        ret->read.parts_kept = w->plan.done;
        RQ_TRY(go_on(j, ret, why));
    }
    ret->is_continued = w->plan.is_resumed;
    ret->written = w->files;
    ret->read.rows = w->rows;
    ret->read.cells = w->cells;
    return RQ_OK;
}

static rq_err run_hfiles(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    RQ_TRY(take_token(j, why));
    RQ_TRY(open_folder(j, why));
    RQ_TRY(load(j, ret, why));
    return rq__load_end(j->vfs, why);
}

static rq_err run(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    const rq_bulkload *b = j->b;
    if (!b->has_hfiles) RQ_TRY(open_input(j, why));
    RQ_TRY(rq__link_open(&b->options->client, b->table, &j->link, why));
    RQ_TRY(rq__table_schema_ask(&j->link, &j->schema, why));
    return b->has_hfiles ? run_hfiles(j, ret, why) : run_text(j, ret, why);
}

/* Removes what the load does not need any more. After an error the work folder stays for the next
 * run if any part is sorted (`sorted`: by this run); then the server's staging folder stays, too,
 * if the work folder names it. The work folder is removed last: if removing the staging folder
 * fails, another run finds its name in the work folder. */
static rq_err clean_up(bulk_job *j, uint64_t sorted, rq_err rc, rq_error *why)
{
    rq_error ignored;
    rq_error_clear(&ignored);
    rq_error *own = rc == RQ_OK ? why : &ignored;
    rq_err cleaned = RQ_OK;
    bool is_begun = j->work.step != RQ__BULK_SORTING || j->work.plan.done + sorted > 0;
    bool forgets = rc == RQ_OK || (j->work.is_open && !is_begun);
    if (j->token != NULL && (forgets || j->work.place == NULL))
        cleaned = rq__load_cleanup(&j->link, j->token, own);
    if (cleaned == RQ_OK && forgets) cleaned = rq__work_remove(&j->work, own);
    if (rc == RQ_OK) return cleaned;
    if (j->work.has_made_progress) rq__drop_empty_folder(j->b->progress);
    if (j->has_made_output) rq__drop_empty_folder(j->b->output);
    return rc;
}

rq_err rq_bulkload_run(const rq_bulkload *b, rq_bulkload_counts *ret, rq_error *why)
{
    bulk_job j = {.b = b};
    *ret = (rq_bulkload_counts){0};
    rq_err rc = run(&j, ret, why);
    rc = clean_up(&j, ret->read.parts, rc, why);
    (void)rq_file_close(j.lock);
    if (j.vfs != NULL) rq_vfs_free(j.vfs);
    rq__work_close(&j.work);
    rq_table_schema_unref(j.schema);
    rq__link_close(&j.link);
    rq__files_close(&j.files);
    rq__columns_clear(&j.columns);
    rq_arena_clear(&j.arena);
    return rc;
}
