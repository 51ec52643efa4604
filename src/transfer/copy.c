/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. The rows of an answer are collected in the batch, which is sent before the next
 * answer is asked for. With a progress folder, the ranges are those of the first run (plan.h): a
 * completed range is recorded, and a later run skips it. */
#include "transfer/copy.h"

#include "transfer/feed.h"
#include "transfer/mutations.h"
#include "transfer/out.h"
#include "transfer/plan.h"
#include "transfer/sweep.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct copy_job {
    const rq_copy *copy;
    rq_arena arena;
    rq_vfs *vfs;          /* of the progress; NULL: none is kept */
    bool has_made_folder; /* this run, or the one that it continues */
    rq_file *lock;
    bool has_plan;
    rq__plan plan;
    rq__range *ranges;     /* of the plan */
    _Atomic bool has_done; /* a range, in this run */
} copy_job;

typedef struct copy_state {
    copy_job *job;
    const rq_copy *copy;
    rq__link target;
    rq__sorter sorter;
    rq_cell *cells;
    size_t cap;
} copy_state;

static rq_err open_state(rq__sweep *s, void **ret, rq_error *why)
{
    copy_state *c = calloc(1, sizeof *c);
    if (c == NULL) return rq_no_memory(why);
    c->job = s->ctx;
    c->copy = c->job->copy;
    *ret = c;
    return rq__link_open(&c->copy->target_client, c->copy->target, &c->target, why);
}

static void close_state(void *state)
{
    copy_state *c = state;
    rq__link_close(&c->target);
    rq__sorter_clear(&c->sorter);
    free(c->cells);
    free(c);
}

static rq_err make_room(copy_state *s, size_t count)
{
    if (count < s->cap) return RQ_OK;
    size_t cap = s->cap == 0 ? 64 : 2 * s->cap;
    rq_cell *bigger = realloc(s->cells, cap * sizeof *bigger);
    if (bigger == NULL) return RQ_E_NO_MEMORY;
    s->cells = bigger;
    s->cap = cap;
    return RQ_OK;
}

static rq_err take_row(void *state, rq_op_result *row, rq_error *why)
{
    copy_state *s = state;
    size_t count = 0;
    rq_cell c;
    rq_err rc;
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK) {
        if (make_room(s, count) != RQ_OK) return rq_no_memory(why);
        rq__rename_family(s->copy->renames, &c);
        s->cells[count++] = c;
    }
    if (rc != RQ_E_END) return rc;
    if (count == 0) return RQ_OK;
    return rq__link_add_row(&s->target, &s->sorter, rq_cell_row(&s->cells[0]), s->cells, count,
                            (rq_slice){0}, why);
}

static rq_err rest(void *state, rq_error *why)
{
    return rq__link_ease(&((copy_state *)state)->target, why);
}

static rq_err end_range(void *state, const rq__range *range, rq_error *why)
{
    copy_state *s = state;
    RQ_TRY(rq__link_drain(&s->target, why));
    if (s->job->vfs == NULL) return RQ_OK;
    RQ_TRY(rq__plan_note_done(&s->job->plan, (size_t)(range - s->job->ranges), "", why));
    s->job->has_done = true;
    return RQ_OK;
}

/* --- the progress ----------------------------------------------------------------------------- */

static const char *address(const rq_client_options *o)
{
    const char *at = o->zookeeper != NULL ? o->zookeeper : o->bootstrap;
    return at != NULL ? at : "";
}

/* Identifies the copy in a line of text: a command with another copy in the same folder is
 * refused. */
static const char *describe(const rq_copy *c, rq_arena *arena)
{
    const rq_transfer_scan *s = &c->scan;
    const char *from = address(&c->options->client), *to = address(&c->target_client);
    const char *rows = rq__range_text(&(rq__range){s->start, s->stop}, arena);
    char *text = rq_arena_printf(
        arena,
        "copy from=%s table=%s to=%s target=%s rows=%s versions=%" PRIu64 " times=%" PRId64
        "..%" PRId64 " raw=%d columns=%s renames=%s prefix=%s regex=%s",
        from, c->table, to, c->target, rows == NULL ? "" : rows, s->versions, s->from_ms, s->to_ms,
        s->is_raw, s->columns != NULL ? s->columns : "", c->renames != NULL ? c->renames : "",
        s->row_prefix != NULL ? s->row_prefix : "", s->row_regex != NULL ? s->row_regex : "");
    for (char *end = text; end != NULL && (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    return rows == NULL ? NULL : text;
}

/* A run that continues must know whether the folder may go at the end. The file goes with the
 * plan. */
static rq_err note_made(copy_job *j, const char *name, rq_error *why)
{
    const char *path = rq_arena_printf(&j->arena, "%s/made", name);
    rq_error mine = {.code = RQ_OK};
    rq_slice text;
    if (path == NULL) return rq_no_memory(why);
    if (j->has_made_folder) return rq__put_file(j->vfs, path, (rq_slice){0}, why);
    rq_err rc = rq_vfs_read_file(j->vfs, path, 0, &j->arena, &text, &mine);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", mine.message);
    j->has_made_folder = rc == RQ_OK;
    return RQ_OK;
}

static rq_err take_plan(copy_job *j, rq__range *now, size_t count, rq_error *why)
{
    const char **texts = rq_arena_calloc(&j->arena, count + 1, sizeof *texts);
    const char *what = describe(j->copy, &j->arena);
    const char *name = rq__plan_name(&j->arena, "copytable", j->copy->target);
    if (texts == NULL || what == NULL || name == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if ((texts[i] = rq__range_text(&now[i], &j->arena)) == NULL) return rq_no_memory(why);
    RQ_TRY(rq__plan_open(j->vfs, name, what, texts, count, false, &j->plan, why));
    j->ranges = rq_arena_calloc(&j->arena, j->plan.count + 1, sizeof *j->ranges);
    if (j->ranges == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < j->plan.count; i++)
        if (!rq__range_parse(j->plan.parts[i], &j->arena, &j->ranges[i]))
            return rq_fail(why, RQ_E_CORRUPT, "%s/%s/plan is damaged", j->copy->progress, name);
    j->has_plan = true;
    return note_made(j, name, why);
}

static rq_err open_progress(copy_job *j, rq_error *why)
{
    const rq_copy *c = j->copy;
    rq__range *ranges;
    size_t count;
    if (c->progress == NULL) return RQ_OK;
    RQ_TRY(rq__open_folder(c->progress, 0777, &j->vfs, &j->has_made_folder, why));
    RQ_TRY(rq_vfs_lock(j->vfs, NULL, &j->lock, why));
    RQ_TRY(rq__ranges_ask(&c->options->client, c->table, c->scan.start, c->scan.stop, &j->arena,
                          &ranges, &count, why));
    return take_plan(j, ranges, count, why);
}

/* The plan is needed no more after the end, nor after a failure before which no range was finished;
 * then the progress folder goes, too, if it was made for this copy. */
static rq_err forget(copy_job *j, rq_err rc, rq_error *why)
{
    rq_error ignored = {.code = RQ_OK};
    if (j->vfs == NULL) return rc;
    if (rc != RQ_OK && j->has_plan && (j->plan.done > 0 || j->has_done)) return rc;
    if (j->has_plan) {
        rq_err gone = rq__plan_remove(&j->plan, rc == RQ_OK ? why : &ignored);
        if (gone != RQ_OK) return rc == RQ_OK ? gone : rc;
    }
    if (j->has_made_folder && j->lock != NULL) rq__drop_empty_folder(j->copy->progress);
    return rc;
}

static void clean(copy_job *j)
{
    rq__plan_close(&j->plan);
    rq_arena_clear(&j->arena);
    (void)rq_file_close(j->lock);
    if (j->vfs != NULL) rq_vfs_free(j->vfs);
}

/* --- the whole -------------------------------------------------------------------------------- */

rq_err rq_copy_run(const rq_copy *c, rq_transfer_counts *ret, rq_error *why)
{
    copy_job j = {.copy = c};
    *ret = (rq_transfer_counts){0};
    RQ_TRY(rq__check_renames(c->renames, why));
    rq_err rc = open_progress(&j, why);
    rq__sweep s = {.options = c->options,
                   .table = c->table,
                   .scan = &c->scan,
                   .ctx = &j,
                   .is_done = j.plan.is_done,
                   .ranges = j.ranges,
                   .range_count = j.plan.count,
                   .open = open_state,
                   .close = close_state,
                   .row = take_row,
                   .rest = rest,
                   .end = end_range};
    ret->parts_kept = j.plan.done;
    if (rc == RQ_OK) rc = rq__sweep_run(&s, ret, why);
    rc = forget(&j, rc, why);
    clean(&j);
    return rc;
}
