/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep.h. */
#include "transfer/sweep.h"

#include <stdlib.h>

#define UNITS 1000 /* of a range's progress */

typedef struct sweep_tools {
    rq__sweep *sweep;
    rq__link link;
    void *state;
    const rq__range *range;
    uint64_t rows, cells, bytes, units; /* since the last answer; units of the range */
    rq__row_parts parts;
    rq_slice last;
    uint8_t last_row[RQ_ROW_LEN_MAX];
} sweep_tools;

/* The row's cells, and what they weigh. */
static rq_err weigh(sweep_tools *t, const rq_op_result *row)
{
    rq_cell c;
    rq_err rc;
    rq_result_view view = row->row;
    rq_cursor cells = row->cells;
    uint64_t count = 0;
    while ((rc = rq_result_next(&view, &cells, &c)) == RQ_OK) {
        if (count++ == 0) {
            memcpy(t->last_row, c.row, c.row_len);
            t->last = rq_slice_of(t->last_row, c.row_len);
        }
        t->bytes += rq_cell_serialized_len(&c, false);
    }
    t->cells += count;
    t->rows += count > 0 && rq__row_begins(&t->parts, t->last, row->row.partial);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err take_row(void *ctx, rq_op_result *row, rq_error *why)
{
    sweep_tools *t = ctx;
    rq_op_result copy = *row;
    if (weigh(t, row) != RQ_OK)
        return rq_fail(why, RQ_E_MALFORMED, "the server's response is malformed");
    return t->sweep->row(t->state, &copy, why);
}

static void count(sweep_tools *t)
{
    rq__crew *crew = &t->sweep->crew;
    atomic_fetch_add(&crew->rows, t->rows);
    atomic_fetch_add(&crew->cells, t->cells);
    atomic_fetch_add(&crew->bytes, t->bytes);
    uint64_t units = (uint64_t)(rq__range_share(t->range, t->last) * UNITS);
    if (units > t->units) {
        atomic_fetch_add(&crew->done, units - t->units);
        t->units = units;
    }
    t->rows = t->cells = t->bytes = 0;
}

static rq_err rest(void *ctx, rq_error *why)
{
    sweep_tools *t = ctx;
    uint64_t bytes = t->bytes;
    count(t);
    if (t->sweep->rest != NULL) RQ_TRY(t->sweep->rest(t->state, why));
    return rq__crew_pass(&t->sweep->crew, bytes, why);
}

static rq_err work(rq__crew *crew, void *tools, size_t part, rq_error *why)
{
    sweep_tools *t = tools;
    rq__sweep *s = t->sweep;
    const rq__scan_calls calls = {take_row, rest, t};
    t->range = &s->ranges[part];
    t->units = 0;
    t->last = t->range->start;
    t->parts.may_go_on = false;
    if (s->begin != NULL) RQ_TRY(s->begin(t->state, t->range, why));
    rq_scan scan = rq__scan_of(s->scan, t->range->start, t->range->stop, &s->fields);
    RQ_TRY(rq__link_scan(&t->link, &scan, &calls, why));
    if (s->end != NULL) RQ_TRY(s->end(t->state, t->range, why));
    atomic_fetch_add(&crew->done, UNITS - t->units);
    return RQ_OK;
}

static rq_err open_tools(rq__crew *crew, void **ret, rq_error *why)
{
    rq__sweep *s = crew->ctx;
    sweep_tools *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    *ret = t;
    t->sweep = s;
    RQ_TRY(rq__link_open(&s->options->client, s->table, &t->link, why));
    return s->open(s, &t->state, why);
}

static void close_tools(void *tools)
{
    sweep_tools *t = tools;
    if (t == NULL) return;
    if (t->state != NULL) t->sweep->close(t->state);
    rq__link_close(&t->link);
    free(t);
}

rq_err rq__sweep_run(rq__sweep *s, rq_transfer_counts *ret, rq_error *why)
{
    rq_err rc = rq__scan_fields(&s->fields, s->scan, why);
    if (rc == RQ_OK && s->ranges == NULL)
        rc = rq__ranges_ask(&s->options->client, s->table, s->scan->start, s->scan->stop, &s->arena,
                            &s->ranges, &s->range_count, why);
    if (rc == RQ_OK) {
        size_t left = s->range_count;
        for (size_t i = 0; s->is_done != NULL && i < s->range_count; i++)
            left -= s->is_done[i];
        s->crew = (rq__crew){.options = s->options,
                             .count = s->range_count,
                             .is_done = s->is_done,
                             .units = UNITS * left,
                             .ctx = s,
                             .open = open_tools,
                             .close = close_tools,
                             .work = work};
        rc = rq__crew_run(&s->crew, ret, why);
    }
    rq_buf_clear(&s->fields);
    rq_arena_clear(&s->arena);
    return rc;
}
