/* SPDX-License-Identifier: Apache-2.0 */
/* See count.h. Each range counts into a map of its own, which is added to the total when the range
 * ends. */
#include "transfer/count.h"

#include "transfer/sweep.h"

#include <pthread.h>
#include <stdlib.h>

#define COLUMNS_MAX 100000
#define SLOTS_MIN 64

/* --- rows ------------------------------------------------------------------------------------- */

static rq_err no_state(rq__sweep *s, void **ret, rq_error *why)
{
    (void)s;
    (void)why;
    *ret = NULL;
    return RQ_OK;
}

static void drop_nothing(void *state)
{
    (void)state;
}

static rq_err ignore_row(void *state, rq_op_result *row, rq_error *why)
{
    (void)state;
    (void)row;
    (void)why;
    return RQ_OK;
}

rq_err rq_count_rows(const rq_transfer_options *o, const char *table, rq_transfer_scan scan,
                     rq_transfer_counts *ret, rq_error *why)
{
    scan.no_values = true;
    scan.first_key_only = scan.columns == NULL; /* with columns: of any of them */
    *ret = (rq_transfer_counts){0};
    rq__sweep s = {.options = o,
                   .table = table,
                   .scan = &scan,
                   .open = no_state,
                   .close = drop_nothing,
                   .row = ignore_row};
    return rq__sweep_run(&s, ret, why);
}

/* --- a map of columns ------------------------------------------------------------------------- */

/* Open addressing; slots hold an index in `columns` + 1. */
typedef struct column_map {
    rq_arena arena;
    rq_column_count *columns;
    size_t count, cap;
    uint32_t *slots;
    size_t slot_count;
    rq_column_count others;
} column_map;

static void map_clear(column_map *m)
{
    rq_arena_clear(&m->arena);
    free(m->columns);
    free(m->slots);
    *m = (column_map){0};
}

static uint64_t hash(rq_slice family, rq_slice qualifier)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < family.len; i++)
        h = (h ^ family.ptr[i]) * 1099511628211u;
    h = (h ^ ':') * 1099511628211u;
    for (size_t i = 0; i < qualifier.len; i++)
        h = (h ^ qualifier.ptr[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static uint32_t *slot_of(const column_map *m, rq_slice family, rq_slice qualifier)
{
    for (size_t i = hash(family, qualifier) & (m->slot_count - 1);;
         i = (i + 1) & (m->slot_count - 1)) {
        uint32_t at = m->slots[i];
        if (at == 0 || (rq_slice_eq(m->columns[at - 1].family, family) &&
                        rq_slice_eq(m->columns[at - 1].qualifier, qualifier)))
            return &m->slots[i];
    }
}

static rq_err grow(column_map *m)
{
    size_t slots = m->slot_count == 0 ? SLOTS_MIN : 2 * m->slot_count;
    uint32_t *fresh = calloc(slots, sizeof *fresh);
    rq_column_count *bigger = realloc(m->columns, slots / 2 * sizeof *bigger);
    if (bigger != NULL) m->columns = bigger;
    if (fresh == NULL || bigger == NULL) {
        free(fresh);
        return RQ_E_NO_MEMORY;
    }
    free(m->slots);
    m->slots = fresh;
    m->slot_count = slots;
    m->cap = slots / 2;
    for (size_t i = 0; i < m->count; i++)
        *slot_of(m, m->columns[i].family, m->columns[i].qualifier) = (uint32_t)i + 1;
    return RQ_OK;
}

static rq_err find(column_map *m, rq_slice family, rq_slice qualifier, rq_column_count **ret)
{
    if (m->count == m->cap) RQ_TRY(grow(m));
    uint32_t *slot = slot_of(m, family, qualifier);
    if (*slot == 0 && m->count == COLUMNS_MAX) {
        *ret = &m->others;
        return RQ_OK;
    }
    if (*slot == 0) {
        rq_column_count fresh = {rq_arena_copy(&m->arena, family),
                                 rq_arena_copy(&m->arena, qualifier), 0, 0, 0};
        if (fresh.family.ptr == NULL || fresh.qualifier.ptr == NULL) return RQ_E_NO_MEMORY;
        m->columns[m->count++] = fresh;
        *slot = (uint32_t)m->count;
    }
    *ret = &m->columns[*slot - 1];
    return RQ_OK;
}

static void add(rq_column_count *to, const rq_column_count *from)
{
    to->rows += from->rows;
    to->cells += from->cells;
    to->bytes += from->bytes;
}

static rq_err add_map(column_map *to, const column_map *from)
{
    for (size_t i = 0; i < from->count; i++) {
        rq_column_count *c;
        RQ_TRY(find(to, from->columns[i].family, from->columns[i].qualifier, &c));
        add(c, &from->columns[i]);
    }
    add(&to->others, &from->others);
    return RQ_OK;
}

/* --- cells ------------------------------------------------------------------------------------ */

typedef struct cell_job {
    pthread_mutex_t lock;
    column_map all RQ_GUARDED_BY(lock);
} cell_job;

typedef struct cell_state {
    cell_job *job;
    column_map map;
    rq_buf column; /* row, family and qualifier of the last cell; a row may come in parts */
} cell_state;

static rq_err open_state(rq__sweep *s, void **ret, rq_error *why)
{
    cell_state *c = calloc(1, sizeof *c);
    if (c == NULL) return rq_no_memory(why);
    c->job = s->ctx;
    *ret = c;
    return RQ_OK;
}

static void close_state(void *state)
{
    cell_state *c = state;
    map_clear(&c->map);
    rq_buf_clear(&c->column);
    free(c);
}

/* Whether the cell is the first of its column in its row. */
static rq_err is_first(cell_state *s, const rq_cell *c, bool *ret)
{
    rq_slice parts[] = {rq_cell_row(c), rq_cell_family(c), rq_cell_qualifier(c)};
    size_t at = 0;
    bool same = s->column.len == parts[0].len + parts[1].len + parts[2].len + 2;
    for (size_t i = 0; same && i < 3; at += parts[i++].len + 1)
        same = memcmp(s->column.ptr + at, parts[i].ptr, parts[i].len) == 0 &&
               (i == 2 || s->column.ptr[at + parts[i].len] == (uint8_t)parts[i].len);
    *ret = !same;
    if (same) return RQ_OK;
    rq_buf_reset(&s->column);
    for (size_t i = 0; i < 3; i++) {
        RQ_TRY(rq_buf_append(&s->column, parts[i].ptr, parts[i].len));
        if (i < 2) RQ_TRY(rq_buf_append_u8(&s->column, (uint8_t)parts[i].len));
    }
    return RQ_OK;
}

static rq_err count_cell(cell_state *s, const rq_cell *c)
{
    rq_column_count *to;
    bool first;
    RQ_TRY(is_first(s, c, &first));
    RQ_TRY(find(&s->map, rq_cell_family(c), rq_cell_qualifier(c), &to));
    to->rows += first;
    to->cells++;
    to->bytes += rq_cell_serialized_len(c, false);
    return RQ_OK;
}

static rq_err count_row(void *state, rq_op_result *row, rq_error *why)
{
    rq_cell c;
    rq_err rc;
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK)
        if (count_cell(state, &c) != RQ_OK) return rq_no_memory(why);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static rq_err end_range(void *state, const rq__range *range, rq_error *why)
{
    cell_state *s = state;
    (void)range;
    pthread_mutex_lock(&s->job->lock);
    rq_err rc = add_map(&s->job->all, &s->map);
    pthread_mutex_unlock(&s->job->lock);
    map_clear(&s->map);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static int by_column(const void *a, const void *b)
{
    const rq_column_count *x = a, *y = b;
    int order = rq_slice_compare(x->family, y->family);
    return order != 0 ? order : rq_slice_compare(x->qualifier, y->qualifier);
}

rq_err rq_count_cells(const rq_transfer_options *o, const char *table, const rq_transfer_scan *scan,
                      rq_cell_counts *ret, rq_transfer_counts *ret_all, rq_error *why)
{
    cell_job job = {.lock = PTHREAD_MUTEX_INITIALIZER};
    *ret_all = (rq_transfer_counts){0};
    rq__sweep s = {.options = o,
                   .table = table,
                   .scan = scan,
                   .ctx = &job,
                   .open = open_state,
                   .close = close_state,
                   .row = count_row,
                   .end = end_range};
    rq_err rc = rq__sweep_run(&s, ret_all, why);
    if (job.all.count > 1)
        qsort(job.all.columns, job.all.count, sizeof *job.all.columns, by_column);
    free(job.all.slots);
    *ret = (rq_cell_counts){job.all.arena, job.all.columns, job.all.count, job.all.others};
    return rc;
}

void rq_cell_counts_clear(rq_cell_counts *c)
{
    rq_arena_clear(&c->arena);
    free(c->columns);
    *c = (rq_cell_counts){0};
}
