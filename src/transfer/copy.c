/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. The rows of an answer are collected in the batch, which is sent before the next answer
 * is asked for. */
#include "transfer/copy.h"

#include "transfer/feed.h"
#include "transfer/mutations.h"
#include "transfer/sweep.h"

#include <stdlib.h>

typedef struct copy_state {
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
    c->copy = s->ctx;
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
    (void)range;
    return rq__link_drain(&((copy_state *)state)->target, why);
}

rq_err rq_copy_run(const rq_copy *c, rq_transfer_counts *ret, rq_error *why)
{
    *ret = (rq_transfer_counts){0};
    rq__sweep s = {.options = c->options,
                   .table = c->table,
                   .scan = &c->scan,
                   .ctx = (void *)(uintptr_t)c,
                   .open = open_state,
                   .close = close_state,
                   .row = take_row,
                   .rest = rest,
                   .end = end_range};
    RQ_TRY(rq__check_renames(c->renames, why));
    return rq__sweep_run(&s, ret, why);
}
