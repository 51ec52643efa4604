/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summaries of a memstore segment's contents, which let gets read less of it:
 *
 *   rows        a filter (row_filter.h), kept from FILTER_FROM cells on: a get of a row that is not in
 *               the segment ends there
 *   qualifiers  a list, kept while they are few and short: a get of a whole row that has found the
 *               newest version of each of them stops without reading older versions
 */
#include "store/segment_list.h"

/* --- rows ------------------------------------------------------------------------------------- */

static rq_row_filter *filter_add_layer(rq_segment *s, rq_row_filter *older)
{
    rq_row_filter *f = rq__row_filter_new(older);
    if (f != NULL) rq__segment_count_heap(s, (int64_t)rq__row_filter_bytes(f));
    return f;
}

/* With the rows of all cells so far; NULL: out of memory; reads are slower without it. */
static rq_row_filter *filter_begin(rq_segment *s)
{
    s->filter_at = 2 * rq_segment_cell_count(s);
    rq_row_filter *f = filter_add_layer(s, NULL);
    if (f == NULL) return NULL;
    rq_cell c;
    for (const rq_segment_node *n = next_of(head_of(s), 0); n != NULL; n = next_of(n, 0)) {
        node_cell(n, &c);
        rq__row_filter_add(f, rq__row_hash(c.row, c.row_len));
    }
    atomic_store_explicit(&s->filter, f, memory_order_release);
    return f;
}

void rq__segment_filter_note(rq_segment *s, const rq_cell *c)
{
    rq_row_filter *f = atomic_load_explicit(&s->filter, memory_order_relaxed);
    if (f == NULL) {
        if (rq_segment_cell_count(s) < s->filter_at) return;
        f = filter_begin(s);
        if (f == NULL) return;
    }
    if (RQ_UNLIKELY(rq__row_filter_is_full(f))) {
        rq_row_filter *more = filter_add_layer(s, f);
        if (more != NULL) { /* else the full one tells less */
            f = more;
            atomic_store_explicit(&s->filter, f, memory_order_release);
        }
    }
    rq__row_filter_add(f, rq__row_hash(c->row, c->row_len));
}

bool rq__segment_may_have_row(const rq_segment *s, uint64_t row_hash)
{
    const rq_row_filter *f = atomic_load_explicit(&s->filter, memory_order_acquire);
    return f == NULL || rq__row_filter_may_have(f, row_hash);
}

/* --- qualifiers ------------------------------------------------------------------------------- */

static bool is_column(const column *c, rq_slice qualifier)
{
    return c->len == qualifier.len && memcmp(c->bytes, qualifier.ptr, qualifier.len) == 0;
}

static bool is_known(rq_segment *s, unsigned count, rq_slice qualifier)
{
    /* Mostly the column of the previous cell, or the one behind it. */
    for (unsigned tried = 0, at = s->column_at; tried < count; tried++, at++) {
        if (at == count) at = 0;
        if (!is_column(&s->columns[at], qualifier)) continue;
        s->column_at = at;
        return true;
    }
    return false;
}

void rq__segment_note_column(rq_segment *s, const rq_cell *c)
{
    unsigned count = atomic_load_explicit(&s->column_count, memory_order_relaxed);
    rq_slice qualifier = rq_cell_qualifier(c);
    if (c->type != RQ_TYPE_PUT || is_known(s, count, qualifier)) return;
    if (count < RQ_SEGMENT_COLUMNS_MAX && qualifier.len <= COLUMN_BYTES_MAX) {
        s->columns[count].len = (uint8_t)qualifier.len;
        if (qualifier.len > 0) memcpy(s->columns[count].bytes, qualifier.ptr, qualifier.len);
        count++;
    } else {
        count = RQ_SEGMENT_COLUMNS_MAX + 1;
    }
    atomic_store_explicit(&s->column_count, count, memory_order_release);
}

size_t rq__segment_column_count(const rq_segment *s)
{
    unsigned count = atomic_load_explicit(&s->column_count, memory_order_acquire);
    return count > RQ_SEGMENT_COLUMNS_MAX ? SIZE_MAX : count;
}

rq_slice rq__segment_column(const rq_segment *s, size_t i)
{
    return rq_slice_of(s->columns[i].bytes, s->columns[i].len);
}
