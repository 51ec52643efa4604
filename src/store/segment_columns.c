/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a memstore segment's qualifiers, kept while they are few and short. A get of a whole
 * row that has found the newest version of each of them can stop without reading older versions. */
#include "store/segment_list.h"

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
    if (count > RQ_SEGMENT_COLUMNS_MAX || c->type != RQ_TYPE_PUT || is_known(s, count, qualifier))
        return;
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
