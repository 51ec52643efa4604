/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of a memstore's rows (row_filter.h), which exists from some thousand cells on: gets of
 * rows that are not in the segment end there. */
#include "store/segment_list.h"

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
