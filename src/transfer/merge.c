/* SPDX-License-Identifier: Apache-2.0 */
/* Merges runs (runs.h), at most FAN_IN at a time; if there are more, they are first merged to
 * larger runs. Runs are our own files, but their bytes are checked nonetheless. */
#include "transfer/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FAN_IN 128
#define HEAD (8 + 2) /* behind the length: order, length of the row */
/* Bytes of one row that are collected before repeated cells are dropped. */
#define ROW_BYTES_MIN ((size_t)1 << 20)

typedef struct run {
    rq__in in;
    char path[512];
    rq_slice record; /* without its length; valid until the next record is read */
    rq_slice row;
    uint64_t order;
} run;

typedef struct merger {
    run *heap[FAN_IN]; /* the smallest first */
    size_t count;
    run runs[FAN_IN];
    size_t opened;
} merger;

/* --- runs ------------------------------------------------------------------------------------- */

static rq_err damaged(const run *r, rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s is damaged at byte %" PRIu64, r->path,
                   rq__in_position(&r->in));
}

/* RQ_E_END: the run has ended. */
static rq_err read_record(run *r, rq_error *why)
{
    rq_slice s;
    rq__in_skip(&r->in, r->record.len);
    r->record = (rq_slice){0};
    RQ_TRY(rq__in_peek(&r->in, 4, &s, why));
    if (s.len == 0) return RQ_E_END;
    if (s.len < 4) return damaged(r, why);
    size_t len = rq_get_be32(s.ptr);
    rq__in_skip(&r->in, 4);
    if (len < HEAD || len > rq__in_left(&r->in)) return damaged(r, why);
    RQ_TRY(rq__in_peek(&r->in, len, &s, why));
    if (s.len < len) return damaged(r, why);
    r->record = s;
    r->order = rq_get_be64(s.ptr);
    r->row = rq_slice_of(s.ptr + HEAD, rq_get_be16(s.ptr + 8));
    return r->row.len > len - HEAD ? damaged(r, why) : RQ_OK;
}

static bool is_less(const run *a, const run *b)
{
    int c = rq_slice_compare(a->row, b->row);
    return c != 0 ? c < 0 : a->order < b->order;
}

static void sink(merger *m, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        if (left < m->count && is_less(m->heap[left], m->heap[least])) least = left;
        if (left + 1 < m->count && is_less(m->heap[left + 1], m->heap[least])) least = left + 1;
        if (least == i) return;
        run *r = m->heap[i];
        m->heap[i] = m->heap[least];
        m->heap[least] = r;
        i = least;
    }
}

static rq_err open_runs(merger *m, const rq__runs *all, size_t first, size_t count, rq_error *why)
{
    *m = (merger){0};
    for (size_t i = 0; i < count; i++) {
        run *r = &m->runs[i];
        rq__run_path(all->folder, &all->names[first + i], r->path, sizeof r->path);
        m->opened++;
        RQ_TRY(rq__in_open(all->vfs, r->path, &r->in, why));
        rq_err rc = read_record(r, why);
        if (rc == RQ_OK) m->heap[m->count++] = r;
        if (rc != RQ_OK && rc != RQ_E_END) return rc;
    }
    for (size_t i = m->count / 2; i-- > 0;)
        sink(m, i);
    return RQ_OK;
}

static void close_runs(merger *m)
{
    for (size_t i = 0; i < m->opened; i++)
        rq__in_close(&m->runs[i].in);
}

/* Takes the smallest record off the heap, and the next record of its run in. */
static rq_err advance(merger *m, rq_error *why)
{
    rq_err rc = read_record(m->heap[0], why);
    if (rc == RQ_E_END) m->heap[0] = m->heap[--m->count];
    if (rc != RQ_OK && rc != RQ_E_END) return rc;
    sink(m, 0);
    return RQ_OK;
}

/* --- rows to cells ---------------------------------------------------------------------------- */

typedef struct row_cell {
    rq_cell cell;
    size_t rank; /* in the input */
} row_cell;

/* All records of a row. */
typedef struct group {
    rq_buf bytes; /* each: be32 length, cells */
    rq_buf row;
    row_cell *cells;
    size_t count, cap;
    size_t memory;     /* 0: no limit */
    size_t shrinks_at; /* bytes: beyond, repeated cells are dropped */
} group;

static bool take_cell(rq_cursor *c, rq_cell *ret)
{
    uint8_t family_len;
    uint32_t qualifier_len, value_len;
    uint16_t tags_len;
    uint64_t time;
    rq_slice family, qualifier, tags, value;
    if (!rq_cursor_u8(c, &family_len) || !rq_cursor_bytes(c, family_len, &family)) return false;
    if (!rq_cursor_be32(c, &qualifier_len) || !rq_cursor_bytes(c, qualifier_len, &qualifier))
        return false;
    if (!rq_cursor_be64(c, &time) || !rq_cursor_u8(c, &ret->type)) return false;
    if (!rq_cursor_be16(c, &tags_len) || !rq_cursor_bytes(c, tags_len, &tags)) return false;
    if (!rq_cursor_be32(c, &value_len) || !rq_cursor_bytes(c, value_len, &value)) return false;
    ret->family = family.ptr;
    ret->family_len = family_len;
    ret->qualifier = qualifier.ptr;
    ret->qualifier_len = qualifier_len;
    ret->timestamp = (int64_t)time;
    ret->tags = tags_len == 0 ? NULL : tags.ptr;
    ret->tags_len = tags_len;
    ret->value = value.ptr;
    ret->value_len = value_len;
    return true;
}

static rq_err add_cell(group *g, const rq_cell *c)
{
    if (g->count == g->cap) {
        size_t cap = g->cap == 0 ? 32 : 2 * g->cap;
        row_cell *bigger = realloc(g->cells, cap * sizeof *bigger);
        if (bigger == NULL) return RQ_E_NO_MEMORY;
        g->cells = bigger;
        g->cap = cap;
    }
    g->cells[g->count] = (row_cell){*c, g->count};
    g->count++;
    return RQ_OK;
}

/* The later of equal cells first. */
static int compare_cells(const void *a, const void *b)
{
    const row_cell *x = a, *y = b;
    int c = rq_cell_compare_key(RQ_ORDER_DEFAULT, &x->cell, &y->cell);
    return c != 0 ? c : (x->rank < y->rank) - (x->rank > y->rank);
}

static void sort_cells(group *g)
{
    bool sorted = true;
    for (size_t i = 1; sorted && i < g->count; i++)
        sorted = compare_cells(&g->cells[i - 1], &g->cells[i]) < 0;
    if (!sorted) qsort(g->cells, g->count, sizeof *g->cells, compare_cells);
}

static rq_err parse_cells(group *g)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&g->bytes));
    g->count = 0;
    while (rq_cursor_left(&c) > 0) {
        rq_cell cell = {.row = g->row.ptr, .row_len = (uint16_t)g->row.len};
        if (!take_cell(&c, &cell)) return RQ_E_CORRUPT;
        RQ_TRY(add_cell(g, &cell));
    }
    sort_cells(g);
    return RQ_OK;
}

static rq_err parse(group *g, rq_error *why)
{
    rq_err rc = parse_cells(g);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "a run of the sort is damaged");
}

/* Whether the cell before it, which is later in the input, has the same key. */
static bool is_repeated(const group *g, size_t i)
{
    return i > 0 &&
           rq_cell_compare_key(RQ_ORDER_DEFAULT, &g->cells[i - 1].cell, &g->cells[i].cell) == 0;
}

/* The bytes of a cell in a record: from the length of its family to the end of its value. */
static rq_slice bytes_of(const rq_cell *c)
{
    return rq_slice_of(c->family - 1, (size_t)(c->value + c->value_len - (c->family - 1)));
}

/* Drops the repeated cells of the row. Fails if the remaining cells need more than half of the memory. g->shrinks_at is
 * the size at which the next call is due: twice the remaining bytes. */
static rq_err shrink(group *g, rq_error *why)
{
    rq_buf kept = {0};
    size_t count = 0;
    RQ_TRY(parse(g, why));
    for (size_t i = 0; i < g->count; i++) {
        rq_slice bytes = bytes_of(&g->cells[i].cell);
        if (is_repeated(g, i)) continue;
        if (rq_buf_append(&kept, bytes.ptr, bytes.len) != RQ_OK) {
            rq_buf_clear(&kept);
            return rq_no_memory(why);
        }
        count++;
    }
    rq_buf_clear(&g->bytes);
    g->bytes = kept;
    g->shrinks_at = 2 * kept.len < ROW_BYTES_MIN ? ROW_BYTES_MIN : 2 * kept.len;
    if (g->memory == 0 || kept.len + count * sizeof *g->cells <= g->memory / 2) return RQ_OK;
    char row[256];
    rq_bytes_to_string(rq_buf_slice(&g->row), row, sizeof row);
    return rq_fail(why, RQ_E_ROW_TOO_BIG,
                   "row %s of the input has at least %zu different cells, which do not fit into "
                   "%zu bytes of memory",
                   row, count, g->memory);
}

/* Takes all records of the smallest row. */
static rq_err take_group(merger *m, group *g, rq_error *why)
{
    const run *r = m->heap[0];
    rq_buf_reset(&g->row);
    rq_buf_reset(&g->bytes);
    g->shrinks_at = ROW_BYTES_MIN;
    if (rq_buf_append(&g->row, r->row.ptr, r->row.len) != RQ_OK) return rq_no_memory(why);
    while (m->count > 0 && rq_slice_eq(m->heap[0]->row, rq_buf_slice(&g->row))) {
        r = m->heap[0];
        size_t head = HEAD + r->row.len;
        if (rq_buf_append(&g->bytes, r->record.ptr + head, r->record.len - head) != RQ_OK)
            return rq_no_memory(why);
        if (g->bytes.len > g->shrinks_at) RQ_TRY(shrink(g, why));
        RQ_TRY(advance(m, why));
    }
    return parse(g, why);
}

static rq_err merge_cells(merger *m, size_t memory,
                          rq_err (*cell)(void *, const rq_cell *, rq_error *), void *ctx,
                          rq_error *why)
{
    group g = {.memory = memory};
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && m->count > 0) {
        rc = take_group(m, &g, why);
        for (size_t i = 0; rc == RQ_OK && i < g.count; i++)
            if (!is_repeated(&g, i)) rc = cell(ctx, &g.cells[i].cell, why);
    }
    rq_buf_clear(&g.bytes);
    rq_buf_clear(&g.row);
    free(g.cells);
    return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

static rq_err write_run(merger *m, rq__out *out, rq_error *why)
{
    while (m->count > 0) {
        const run *r = m->heap[0];
        if (rq_buf_append_be32(&out->buf, (uint32_t)r->record.len) != RQ_OK ||
            rq_buf_append(&out->buf, r->record.ptr, r->record.len) != RQ_OK)
            return rq_no_memory(why);
        RQ_TRY(rq__out_ease(out, why));
        RQ_TRY(advance(m, why));
    }
    return rq__out_flush(out, why);
}

/* Only this merge uses a run that was merged from others. */
static rq_err drop_merged(const rq__runs *r, size_t first, size_t count, rq_error *why)
{
    char path[512];
    for (size_t i = first; i < first + count; i++) {
        if (r->names[i].part != RQ__RUN_MERGED) continue;
        rq__run_path(r->folder, &r->names[i], path, sizeof path);
        RQ_TRY(rq_vfs_remove(r->vfs, path, why));
    }
    return RQ_OK;
}

/* Merges the FAN_IN runs from `first` on into one, which becomes the last run. */
static rq_err merge_some(rq__runs *r, merger *m, size_t first, uint64_t number, rq_error *why)
{
    char path[512];
    rq__out out = {0};
    const rq__run_name name = {RQ__RUN_MERGED, number};
    rq__run_path(r->folder, &name, path, sizeof path);
    rq_err rc = open_runs(m, r, first, FAN_IN, why);
    if (rc == RQ_OK) rc = rq__out_open(r->vfs, path, &out, why);
    if (rc == RQ_OK) rc = write_run(m, &out, why);
    rq__out_close(&out);
    close_runs(m);
    if (rc == RQ_OK) rc = rq__runs_add(r, RQ__RUN_MERGED, 1, why);
    if (rc != RQ_OK) return rc;
    r->names[r->count - 1].number = number;
    return drop_merged(r, first, FAN_IN, why);
}

rq_err rq__runs_merge(rq__runs *r, rq_err (*cell)(void *ctx, const rq_cell *c, rq_error *why),
                      void *ctx, rq_error *why)
{
    size_t first = 0;
    uint64_t merged = 0;
    rq_err rc = RQ_OK;
    merger *m = calloc(1, sizeof *m);
    if (m == NULL) return rq_no_memory(why);
    for (; rc == RQ_OK && r->count - first > FAN_IN; first += FAN_IN)
        rc = merge_some(r, m, first, merged++, why);
    if (rc == RQ_OK) {
        size_t left = r->count - first;
        rc = open_runs(m, r, first, left, why);
        if (rc == RQ_OK) rc = merge_cells(m, r->memory, cell, ctx, why);
        close_runs(m);
        if (rc == RQ_OK) rc = drop_merged(r, first, left, why);
    }
    free(m);
    return rc;
}
