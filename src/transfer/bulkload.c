/* SPDX-License-Identifier: Apache-2.0 */
/* See bulkload.h. */
#include "transfer/bulkload.h"

#include "base/clock.h"
#include "transfer/feed.h"
#include "transfer/files.h"
#include "transfer/hfiles.h"
#include "transfer/load_hfiles.h"
#include "transfer/runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOBS 4
#define PART_BYTES ((uint64_t)64 * 1024 * 1024)
#define MEMORY ((uint64_t)512 * 1024 * 1024)
#define PASS_BYTES 65536 /* are counted against the rate at once */
#define RUNS_FOLDER "_rorqual_runs"
#define ORDER_BITS 32 /* rows of a part, at most: a part has fewer bytes */

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
    rq__runs runs;
} bulk_job;

/* A thread's. */
typedef struct bulk_tools {
    rq__feed feed;
    rq__row_sorter sorter;
    uint64_t passed;
} bulk_tools;

/* --- rows to runs ----------------------------------------------------------------------------- */

static rq_err pass(rq__crew *crew, bulk_tools *t, uint64_t least, rq_error *why)
{
    uint64_t position = rq__feed_position(&t->feed);
    uint64_t more = position > t->passed ? position - t->passed : 0;
    if (more < least) return RQ_OK;
    t->passed = position;
    atomic_fetch_add(&crew->done, more);
    atomic_fetch_add(&crew->bytes, more);
    return rq__crew_pass(crew, more, why);
}

static rq_err sort_rows(rq__crew *crew, bulk_tools *t, size_t part, rq_error *why)
{
    rq__feed_row row;
    rq_err rc;
    uint64_t n = 0, cells = 0;
    t->passed = rq__feed_position(&t->feed);
    while ((rc = rq__feed_next(&t->feed, &row, why)) == RQ_OK) {
        RQ_TRY(rq__sort_add(&t->sorter, (uint64_t)part << ORDER_BITS | n++, row.row, row.cells,
                            row.count, why));
        RQ_TRY(pass(crew, t, PASS_BYTES, why));
        cells += row.count;
    }
    if (rc != RQ_E_END) return rc;
    atomic_fetch_add(&crew->rows, n);
    atomic_fetch_add(&crew->cells, cells);
    return pass(crew, t, 0, why);
}

static rq_err do_part(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    bulk_tools *t = tools;
    const bulk_job *j = crew->ctx;
    const rq__file_part *p = &j->files.parts[part];
    rq_err rc = rq__feed_open(crew, &j->feed, j->files.vfs, p->path, p->from, p->to, &t->feed, why);
    if (rc == RQ_OK) rc = sort_rows(crew, t, part, why);
    rq__feed_close(&t->feed);
    return rc == RQ_OK ? rq__sort_flush(&t->sorter, why) : rc;
}

static uint64_t jobs_of(const bulk_job *j)
{
    return j->b->options->jobs == 0 ? JOBS : j->b->options->jobs;
}

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    bulk_job *j = crew->ctx;
    bulk_tools *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->sorter.runs = &j->runs;
    t->sorter.memory = (size_t)((j->b->memory == 0 ? MEMORY : j->b->memory) / jobs_of(j));
    *ret = t;
    return RQ_OK;
}

static void close_tools(void *tools)
{
    bulk_tools *t = tools;
    if (t == NULL) return;
    rq__row_sorter_clear(&t->sorter);
    free(t);
}

static rq_err make_runs(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->files.part_count; i++)
        bytes += j->files.parts[i].to - j->files.parts[i].from;
    rq__crew crew = {.options = j->b->options,
                     .count = j->files.part_count,
                     .units = bytes,
                     .ctx = j,
                     .open = open_tools,
                     .close = close_tools,
                     .work = do_part};
    j->runs = (rq__runs){.vfs = j->vfs, .folder = RUNS_FOLDER};
    RQ_TRY(rq_vfs_remove_tree(j->vfs, RUNS_FOLDER, why)); /* of a run that was killed */
    RQ_TRY(rq_vfs_mkdirs(j->vfs, RUNS_FOLDER, why));
    return rq__crew_run(&crew, &ret->read, why);
}

/* --- runs to HFiles --------------------------------------------------------------------------- */

static rq_err make_hfiles(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    rq__range *ranges;
    rq__hfiles h = {.vfs = j->vfs, .folder = "", .schema = j->schema};
    if (rq__ranges_of(j->link.table, (rq_slice){0}, (rq_slice){0}, &j->arena, &ranges,
                      &h.range_count) != RQ_OK)
        return rq_no_memory(why);
    h.ranges = ranges;
    rq_err rc = rq__runs_merge(&j->runs, rq__hfiles_put, &h, why);
    if (rc == RQ_OK) rc = rq__hfiles_end(&h, why);
    rq__hfiles_clear(&h);
    ret->written = h.files;
    return rc == RQ_OK ? rq_vfs_remove_tree(j->vfs, RUNS_FOLDER, why) : rc;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* The path behind "file:", "file://" or "file:///". */
static const char *local_path(const char *token)
{
    if (strncmp(token, "file:", 5) == 0) token += 5;
    if (strncmp(token, "//", 2) == 0) token += 2;
    return token[0] == '/' ? token : NULL;
}

static rq_err take_staging(bulk_job *j, rq_error *why)
{
    const char *path = local_path(j->token);
    if (path != NULL && access(path, R_OK | W_OK | X_OK) == 0) {
        j->folder = path;
        return RQ_OK;
    }
    return rq_fail(why, RQ_E_PERMISSION,
                   "the server's staging folder %s is not on this machine, or not open to this "
                   "user: --output FOLDER takes a folder that both see by the same path (a Rorqual "
                   "server loads from it if rorqual.bulkload.folders lists it)",
                   j->token);
}

static rq_err take_output(bulk_job *j, const char *path, bool makes, rq_error *why)
{
    if (makes && mkdir(path, 0777) != 0 && errno != EEXIST)
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
        if (list[i].name[0] != '_')
            return rq_fail(why, RQ_E_EXISTS, "%s is not empty (%s)", j->folder, list[i].name);
    return RQ_OK;
}

static rq_err open_folder(bulk_job *j, rq_error *why)
{
    const rq_bulkload *b = j->b;
    const char *path = b->has_hfiles ? b->input : b->output;
    RQ_TRY(path == NULL ? take_staging(j, why) : take_output(j, path, !b->has_hfiles, why));
    RQ_TRY(rq_vfs_posix_new(j->folder, &j->vfs, why));
    RQ_TRY(rq_vfs_lock(j->vfs, NULL, &j->lock, why));
    return b->has_hfiles ? RQ_OK : check_empty(j, why);
}

/* --- the whole -------------------------------------------------------------------------------- */

static rq_err open_input(bulk_job *j, rq_error *why)
{
    const rq_bulkload *b = j->b;
    if (b->format == RQ_FORMAT_TSV || b->format == RQ_FORMAT_CSV) {
        RQ_TRY(rq__columns_parse(&b->text, &j->columns, why));
        j->feed.columns = &j->columns;
    }
    j->feed.format = b->format;
    j->feed.fails_on_bad_lines = b->fails_on_bad_lines;
    j->feed.now_ms = b->now_ms != 0 ? b->now_ms : (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
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

static rq_err run(bulk_job *j, rq_bulkload_counts *ret, rq_error *why)
{
    const rq_bulkload *b = j->b;
    if (!b->has_hfiles) RQ_TRY(open_input(j, why));
    RQ_TRY(rq__link_open(&b->options->client, b->table, &j->link, why));
    RQ_TRY(rq__table_schema_ask(&j->link, &j->schema, why));
    if (!b->only_writes) RQ_TRY(rq__load_prepare(&j->link, &j->arena, &j->token, why));
    RQ_TRY(open_folder(j, why));
    if (!b->has_hfiles) {
        RQ_TRY(make_runs(j, ret, why));
        RQ_TRY(make_hfiles(j, ret, why));
        if (ret->written == 0) return RQ_OK; /* no line had a cell */
    }
    return b->only_writes ? RQ_OK : load(j, ret, why);
}

rq_err rq_bulkload_run(const rq_bulkload *b, rq_bulkload_counts *ret, rq_error *why)
{
    bulk_job j = {.b = b};
    rq_error ignored;
    rq_error_clear(&ignored);
    *ret = (rq_bulkload_counts){0};
    rq_err rc = run(&j, ret, why);
    if (rc != RQ_OK && j.vfs != NULL) (void)!rq_vfs_remove_tree(j.vfs, RUNS_FOLDER, &ignored);
    (void)rq_file_close(j.lock);
    if (j.vfs != NULL) rq_vfs_free(j.vfs);
    if (j.token != NULL) {
        rq_err cleaned = rq__load_cleanup(&j.link, j.token, rc == RQ_OK ? why : &ignored);
        if (rc == RQ_OK) rc = cleaned;
    }
    rq_table_schema_unref(j.schema);
    rq__link_close(&j.link);
    rq__files_close(&j.files);
    rq__columns_clear(&j.columns);
    rq_arena_clear(&j.arena);
    return rc;
}
