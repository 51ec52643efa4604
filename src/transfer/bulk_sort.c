/* SPDX-License-Identifier: Apache-2.0 */
/* See bulk_sort.h. */
#include "transfer/bulk_sort.h"

#include <stdlib.h>

#define JOBS 4
#define PASS_BYTES 65536 /* are counted against the rate at once */
#define ORDER_BITS 40    /* rows of a part, at most; a file of CSV is one part, whatever its size */

/* A thread's. */
typedef struct sort_tools {
    rq__feed feed;
    rq__row_sorter sorter;
    uint64_t rows, cells, passed; /* of the part that is being done */
} sort_tools;

static rq_err pass(rq__crew *crew, sort_tools *t, uint64_t least, rq_error *why)
{
    uint64_t position = rq__feed_position(&t->feed);
    uint64_t more = position > t->passed ? position - t->passed : 0;
    if (more < least) return RQ_OK;
    t->passed = position;
    atomic_fetch_add(&crew->done, more);
    atomic_fetch_add(&crew->bytes, more);
    return rq__crew_pass(crew, more, why);
}

static rq_err sort_rows(rq__crew *crew, sort_tools *t, size_t part, rq_error *why)
{
    rq__feed_row row;
    rq_err rc;
    t->rows = t->cells = 0;
    t->passed = rq__feed_position(&t->feed);
    while ((rc = rq__feed_next(&t->feed, &row, why)) == RQ_OK) {
        RQ_TRY(rq__sort_add(&t->sorter, (uint64_t)part << ORDER_BITS | t->rows++, row.row,
                            row.cells, row.count, why));
        RQ_TRY(pass(crew, t, PASS_BYTES, why));
        t->cells += row.count;
    }
    if (rc != RQ_E_END) return rc;
    RQ_TRY(pass(crew, t, 0, why));
    return rq__sort_flush(&t->sorter, why);
}

static rq_err do_part(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    sort_tools *t = tools;
    const rq__bulk_sort *s = crew->ctx;
    const rq__file_part *p = &s->files->parts[part];
    t->sorter.part = part;
    t->sorter.runs = 0;
    rq_err rc = rq__feed_open(crew, s->feed, s->files->vfs, p->path, p->from, p->to, &t->feed, why);
    if (rc == RQ_OK) rc = sort_rows(crew, t, part, why);
    rq__feed_close(&t->feed);
    RQ_TRY(rc);
    atomic_fetch_add(&crew->rows, t->rows);
    atomic_fetch_add(&crew->cells, t->cells);
    return rq__work_note_part(s->work, part, t->rows, t->cells, t->sorter.runs, why);
}

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    const rq__bulk_sort *s = crew->ctx;
    uint64_t jobs = s->options->jobs == 0 ? JOBS : s->options->jobs;
    sort_tools *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->sorter.vfs = s->work->vfs;
    t->sorter.folder = s->work->folder;
    t->sorter.memory = (size_t)(s->memory / jobs);
    *ret = t;
    return RQ_OK;
}

static void close_tools(void *tools)
{
    sort_tools *t = tools;
    if (t == NULL) return;
    rq__row_sorter_clear(&t->sorter);
    free(t);
}

rq_err rq__bulk_sort_run(const rq__bulk_sort *s, rq_transfer_counts *ret, rq_error *why)
{
    const rq__plan *plan = &s->work->plan;
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->files->part_count; i++)
        if (!plan->is_done[i]) bytes += s->files->parts[i].to - s->files->parts[i].from;
    rq__crew crew = {.options = s->options,
                     .count = s->files->part_count,
                     .is_done = plan->is_done,
                     .units = bytes,
                     .ctx = (void *)(uintptr_t)s,
                     .open = open_tools,
                     .close = close_tools,
                     .work = do_part};
    return rq__crew_run(&crew, ret, why);
}
