/* SPDX-License-Identifier: Apache-2.0 */
/* See import.h. */
#include "transfer/import.h"

#include "base/pb.h"
#include "transfer/files.h"
#include "transfer/link.h"
#include "transfer/mutations.h"
#include "transfer/out.h"
#include "transfer/plan.h"
#include "transfer/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PART_BYTES ((uint64_t)64 * 1024 * 1024)
#define PASS_BYTES 65536 /* are counted against the rate at once */

/* The whole import. */
typedef struct import_job {
    const rq_import *i;
    rq__files files;
    rq__plan plan;
    rq_arena arena;
    rq__columns columns;
    rq__feed_options source;
    char cluster[64];
    bool has_plan;
    _Atomic bool has_sent; /* a row: the next run must give it the same time */
} import_job;

/* A thread's. */
typedef struct import_tools {
    rq__link link; /* first */
    rq__feed source;
    rq_buf more; /* further fields of a mutation */
    rq__sorter sorter;
    /* of the part that is being done */
    uint64_t rows, cells, passed;
} import_tools;

/* --- mutations -------------------------------------------------------------------------------- */

static rq_err put_more(const import_job *j, import_tools *t, const rq__feed_row *row)
{
    rq_buf_reset(&t->more);
    RQ_TRY(rq__put_attributes(&t->more, row->attributes));
    RQ_TRY(rq__put_labels(&t->more, row->labels));
    return j->i->durability == 0 ? RQ_OK
                                 : rq_pb_put_number(&t->more, 6, (uint64_t)j->i->durability);
}

/* --- a part ----------------------------------------------------------------------------------- */

static rq_err pass(rq__crew *crew, import_tools *t, uint64_t least, rq_error *why)
{
    uint64_t position = rq__feed_position(&t->source);
    uint64_t more = position > t->passed ? position - t->passed : 0;
    if (more < least) return RQ_OK;
    t->passed = position;
    atomic_fetch_add(&crew->done, more);
    return rq__crew_pass(crew, more, why);
}

static rq_err copy_rows(rq__crew *crew, import_tools *t, rq_error *why)
{
    import_job *j = crew->ctx;
    rq__feed_row row;
    rq_err rc;
    t->passed = rq__feed_position(&t->source);
    while ((rc = rq__feed_next(&t->source, &row, why)) == RQ_OK) {
        if (put_more(j, t, &row) != RQ_OK) return rq_no_memory(why);
        j->has_sent = true;
        RQ_TRY(rq__link_add_row(&t->link, &t->sorter, row.row, row.cells, row.count,
                                rq_buf_slice(&t->more), why));
        RQ_TRY(rq__link_ease(&t->link, why));
        RQ_TRY(pass(crew, t, PASS_BYTES, why));
        t->rows++;
        t->cells += row.count;
    }
    return rc == RQ_E_END ? pass(crew, t, 0, why) : rc;
}

static rq_err do_part(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    import_tools *t = tools;
    const import_job *j = crew->ctx;
    const rq__file_part *p = &j->files.parts[part];
    char counts[96];
    t->rows = t->cells = 0;
    rq_err rc =
        rq__feed_open(crew, &j->source, j->files.vfs, p->path, p->from, p->to, &t->source, why);
    if (rc == RQ_OK) rc = copy_rows(crew, t, why);
    if (rc == RQ_OK) rc = rq__link_drain(&t->link, why);
    rq__feed_close(&t->source);
    RQ_TRY(rc);
    snprintf(counts, sizeof counts, "rows %" PRIu64 " cells %" PRIu64 "\n", t->rows, t->cells);
    RQ_TRY(rq__plan_note_done(&j->plan, part, counts, why));
    atomic_fetch_add(&crew->rows, t->rows);
    atomic_fetch_add(&crew->cells, t->cells);
    atomic_fetch_add(&crew->bytes, p->to - p->from);
    return RQ_OK;
}

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    const import_job *j = crew->ctx;
    return rq__link_tools(&j->i->options->client, j->i->table, sizeof(import_tools), ret, why);
}

static void close_tools(void *tools)
{
    import_tools *t = tools;
    if (t == NULL) return;
    rq__link_close(&t->link);
    rq_buf_clear(&t->more);
    rq__sorter_clear(&t->sorter);
    free(t);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* A cluster without labels would ignore them, and show the cells to everybody. */
static rq_err check_labels(const import_job *j, rq_client *c, rq_error *why)
{
    bool has_labels = true;
    if (j->source.columns == NULL || j->columns.labels == SIZE_MAX) return RQ_OK;
    RQ_TRY(rq_client_has_visibility_labels(c, &has_labels, why));
    return has_labels ? RQ_OK
                      : rq_fail(why, RQ_E_UNSUPPORTED,
                                "HBASE_CELL_VISIBILITY: the cluster has no visibility labels");
}

/* The table must exist before anything is written, and the progress folder belongs to this
 * cluster. */
static rq_err look_at_cluster(import_job *j, rq_error *why)
{
    rq__link link;
    rq_err rc = rq__link_open(&j->i->options->client, j->i->table, &link, why);
    if (rc == RQ_OK) rc = check_labels(j, link.client, why);
    if (rc == RQ_OK)
        snprintf(j->cluster, sizeof j->cluster, "%s", rq_client_cluster_id(link.client));
    rq__link_close(&link);
    return rc;
}

static rq_err open_plan(import_job *j, rq_error *why)
{
    const rq_import *i = j->i;
    const char *what = rq_arena_printf(
        &j->arena,
        "import table=%s cluster=%s format=%s columns=%s separator=%d escape=%d renames=%s",
        i->table, j->cluster, rq_transfer_format_name(i->format),
        i->text.columns != NULL ? i->text.columns : "", i->text.separator, i->text.has_escapes,
        i->renames != NULL ? i->renames : "");
    const char *name = rq__plan_name(&j->arena, "import", i->table);
    if (what == NULL || name == NULL) return rq_no_memory(why);
    RQ_TRY(rq__files_split(&j->files, rq__feed_splits(&j->source) ? PART_BYTES : UINT64_MAX, why));
    return rq__files_plan(&j->files, i->progress, name, what, &j->plan, why);
}

static rq_err prepare(import_job *j, rq_error *why)
{
    const rq_import *i = j->i;
    RQ_TRY(rq__check_renames(i->renames, why));
    if (i->format == RQ_FORMAT_TSV || i->format == RQ_FORMAT_CSV) {
        RQ_TRY(rq__columns_parse(&i->text, &j->columns, why));
        j->source.columns = &j->columns;
    }
    j->source.format = i->format;
    j->source.fails_on_bad_lines = i->fails_on_bad_lines;
    j->source.renames = i->renames;
    RQ_TRY(rq__files_open(i->input, &j->files, why));
    if (i->format == RQ_FORMAT_SEQUENCE) RQ_TRY(rq__files_check_results(&j->files, why));
    RQ_TRY(look_at_cluster(j, why));
    RQ_TRY(open_plan(j, why));
    j->has_plan = true;
    j->source.now_ms = i->now_ms != 0 ? i->now_ms : j->plan.stamp_ms;
    return RQ_OK;
}

static uint64_t bytes_left(const import_job *j)
{
    uint64_t n = 0;
    for (size_t i = 0; i < j->plan.count; i++)
        if (!j->plan.is_done[i]) n += j->files.parts[i].to - j->files.parts[i].from;
    return n;
}

/* The plan is needed no more after the end, nor after a failure before which nothing was sent; then the progress
 * folder goes, too, if this command has made it. */
static rq_err forget(import_job *j, rq_err rc, rq_error *why)
{
    rq_error ignored = {.code = RQ_OK};
    if (rc == RQ_OK) return rq__plan_remove(&j->plan, why);
    bool is_new = !j->has_plan || !(j->plan.is_resumed || j->has_sent);
    if (is_new && j->has_plan && rq__plan_remove(&j->plan, &ignored) != RQ_OK) return rc;
    if (is_new && j->files.has_made_progress) rq__drop_empty_folder(j->i->progress);
    return rc;
}

rq_err rq_import_run(const rq_import *i, rq_transfer_counts *ret, rq_error *why)
{
    import_job j = {.i = i};
    *ret = (rq_transfer_counts){0};
    rq_err rc = prepare(&j, why);
    if (rc == RQ_OK) {
        rq__crew crew = {.options = i->options,
                         .count = j.plan.count,
                         .is_done = j.plan.is_done,
                         .units = bytes_left(&j),
                         .ctx = &j,
                         .open = open_tools,
                         .close = close_tools,
                         .work = do_part};
        ret->parts_kept = j.plan.done;
        rc = rq__crew_run(&crew, ret, why);
    }
    rc = forget(&j, rc, why);
    rq__plan_close(&j.plan);
    rq__files_close(&j.files);
    rq__columns_clear(&j.columns);
    rq_arena_clear(&j.arena);
    return rc;
}
