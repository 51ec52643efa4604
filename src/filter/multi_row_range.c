/* SPDX-License-Identifier: Apache-2.0 */
/* MultiRowRangeFilter: rows of several ranges; between two ranges the hint is the start of the
 * next. HBASE: MultiRowRangeFilter 2.6.1.
 *
 * The ranges are sorted by start row and merged once, when the filter is parsed. A reversed scan
 * visits the same ranges from the last to the first and compares stop rows; the search below then
 * uses the ranges in that order. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

typedef struct row_range {
    rq_slice start, stop; /* empty: open */
    bool start_inclusive, stop_inclusive;
    size_t position; /* as sent: keeps the sort stable */
} row_range;

typedef struct multi_range_filter {
    rq_filter base;
    row_range *ranges; /* sorted and merged; in scan order once `started` */
    size_t count;
    row_range current; /* the range the last row was in or before */
    size_t near;       /* index of the current range; the next row is mostly in this one or the
                        * next */
    bool distinct;     /* no two ranges have the same border, so every search algorithm finds the
                        * same one */
    bool has_current;
    bool started;
    bool found_first;
    bool exclusive; /* the last search hit the excluded border of a range */
    bool done;
    rq_filter_code code; /* the answer for all cells of the row; none before the first row key */
} multi_range_filter;

/* --- Ranges ----------------------------------------------------------------------------------- */
static bool is_valid(const row_range *r)
{
    if (r->start.len == 0 || r->stop.len == 0) return true;
    int c = rq_slice_compare(r->start, r->stop);
    return c < 0 || (c == 0 && r->stop_inclusive);
}

static bool contains(const row_range *r, rq_slice row)
{
    int from_start = rq_slice_compare(row, r->start);
    if (from_start < 0 || (from_start == 0 && !r->start_inclusive)) return false;
    if (r->stop.len == 0) return true;
    int from_stop = rq_slice_compare(row, r->stop);
    return from_stop < 0 || (from_stop == 0 && r->stop_inclusive);
}

static int by_start(const void *a, const void *b)
{
    const row_range *x = a;
    const row_range *y = b;
    int c = rq_slice_compare(x->start, y->start);
    return c != 0 ? c : (x->position > y->position) - (x->position < y->position);
}

/* Whether a range that ends at `last` reaches the start of `next`. */
static bool touches(const row_range *last, const row_range *next)
{
    int c = rq_slice_compare(last->stop, next->start);
    return c > 0 || (c == 0 && (last->stop_inclusive || next->start_inclusive));
}

/* HBASE: MultiRowRangeFilter.sortAndMerge, step by step: its special cases (a range added twice
 * before an open one) determine which row a scan seeks to, so they are kept. `out` has room for
 * four times the input. */
static size_t merge_ranges(row_range *in, size_t count, row_range *out)
{
    size_t n = 0;
    if (count == 1) out[n++] = in[0];
    row_range last = in[0];
    for (size_t i = 1; i < count; i++) {
        row_range range = in[i];
        if (last.stop.len == 0) {
            out[n++] = last;
            break;
        }
        if (!touches(&last, &range)) {
            out[n++] = last;
            if (i + 1 == count) out[n++] = range;
            last = range;
            continue;
        }
        if (range.stop.len == 0) {
            last.stop = range.stop;
            last.stop_inclusive = range.stop_inclusive;
            out[n++] = last;
            break;
        }
        int c = rq_slice_compare(last.stop, range.stop);
        if (c >= 0) { /* inside the last one */
            if (c == 0 && range.stop_inclusive) last.stop_inclusive = true;
            if (i + 1 == count) out[n++] = last;
            continue;
        }
        last.stop = range.stop;
        last.stop_inclusive = range.stop_inclusive;
        if (i + 1 == count) {
            out[n++] = last;
            break;
        }
        range = in[++i];
        while (touches(&last, &range) && range.stop.len > 0) {
            if (rq_slice_compare(last.stop, range.stop) >= 0) {
                if (range.stop_inclusive) last.stop_inclusive = true;
            } else {
                last.stop = range.stop;
                last.stop_inclusive = range.stop_inclusive;
            }
            if (++i == count) break;
            range = in[i];
        }
        if (range.stop.len == 0) {
            if (!touches(&last, &range)) {
                out[n++] = last;
                out[n++] = range;
            } else {
                last.stop = range.stop;
                last.stop_inclusive = range.stop_inclusive;
                out[n++] = last;
                break;
            }
        }
        out[n++] = last;
        if (i + 1 == count) out[n++] = range;
        last = range;
    }
    return n;
}

/* --- Search ----------------------------------------------------------------------------------- */
static rq_slice border_of(const multi_range_filter *m, const row_range *r)
{
    return m->base.reversed ? r->stop : r->start;
}

static bool border_inclusive(const multi_range_filter *m, const row_range *r)
{
    return m->base.reversed ? r->stop_inclusive : r->start_inclusive;
}

#define BEFORE_FIRST SIZE_MAX

/* Compares the i-th border with the row, in scan order. */
static int compare_border(const multi_range_filter *m, size_t i, rq_slice row)
{
    int c = rq_slice_compare(border_of(m, &m->ranges[i]), row);
    return m->base.reversed ? -c : c;
}

/* Finds *low such that the borders before *low are before the row and those behind are not. If two
 * ranges have the same border, the steps must be those of Java's Collections.binarySearch, because
 * they determine which one is found; otherwise the search starts where the last one ended. True:
 * the border at *low equals the row. */
static bool find_border(const multi_range_filter *m, rq_slice row, size_t *low)
{
    size_t high = m->count;
    *low = 0;
    if (m->distinct && compare_border(m, m->near, row) <= 0) {
        *low = m->near;
        if (m->near + 2 < m->count && compare_border(m, m->near + 1, row) >= 0) high = m->near + 2;
    }
    while (*low < high) {
        size_t mid = (*low + high - 1) / 2;
        int c = compare_border(m, mid, row);
        if (c == 0) {
            *low = mid;
            return true;
        }
        if (c < 0)
            *low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* HBASE: RangeIteration.getNextRangeIndex. */
static size_t next_range_index(multi_range_filter *m, rq_slice row)
{
    size_t low;
    if (find_border(m, row, &low)) {
        if (!border_inclusive(m, &m->ranges[low])) m->exclusive = true;
        return low;
    }
    if (low > 0 && contains(&m->ranges[low - 1], row)) return low - 1;
    if (low == 0 && !contains(&m->ranges[0], row)) return BEFORE_FIRST;
    m->found_first = true;
    return low;
}

static void start(multi_range_filter *m)
{
    m->started = true;
    for (size_t i = 0, j = m->count - 1; m->base.reversed && i < j; i++, j--) {
        row_range r = m->ranges[i];
        m->ranges[i] = m->ranges[j];
        m->ranges[j] = r;
    }
    m->distinct = true;
    for (size_t i = 1; i < m->count; i++)
        m->distinct &= compare_border(m, i - 1, border_of(m, &m->ranges[i])) < 0;
}

/* --- Hooks ------------------------------------------------------------------------------------ */
static bool range_all_remaining(rq_filter *f)
{
    return ((multi_range_filter *)f)->done;
}

static rq_err range_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    (void)why;
    multi_range_filter *m = (multi_range_filter *)f;
    *ret = m->done;
    if (m->done) return RQ_OK;
    if (!m->started) start(m);
    m->code = RQ_FILTER_INCLUDE;
    if (m->found_first && contains(&m->current, row)) return RQ_OK;

    size_t index = next_range_index(m, row);
    if (index != BEFORE_FIRST && index >= m->count) {
        m->done = true;
        m->code = RQ_FILTER_NEXT_ROW;
        return RQ_OK;
    }
    m->near = index == BEFORE_FIRST ? 0 : index;
    m->current = m->ranges[m->near];
    m->has_current = true;
    if (m->exclusive) {
        m->exclusive = false;
        m->code = RQ_FILTER_NEXT_ROW;
    } else if (!m->found_first) {
        if (index == BEFORE_FIRST) m->code = RQ_FILTER_SEEK_NEXT_USING_HINT;
        m->found_first = true;
    } else if (!contains(&m->current, row)) {
        m->code = RQ_FILTER_SEEK_NEXT_USING_HINT;
    }
    return RQ_OK;
}

static rq_err range_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    *ret = ((const multi_range_filter *)f)->code;
    return RQ_OK;
}

static rq_err range_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    (void)cell;
    const multi_range_filter *m = (const multi_range_filter *)f;
    *has = m->has_current;
    if (*has) *ret = rq__filter_first_on_row(border_of(m, &m->current));
    return RQ_OK;
}

static const rq_filter_class range_class = {
    .all_remaining = range_all_remaining,
    .row_key = range_row_key,
    .cell = range_cell,
    .hint = range_hint,
    .hinting = true,
};

/* --- Parsing ---------------------------------------------------------------------------------- */
static rq_err check_ranges(rq__parse *p, const row_range *ranges, size_t count)
{
    size_t invalid = 0;
    const row_range *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_valid(&ranges[i])) continue;
        if (invalid++ == 0) first = &ranges[i];
    }
    if (invalid == 0) return RQ_OK;
    /* HBase lists them all, spelt so. */
    return rq__parse_illegal(
        p, "%zu invaild ranges.\nInvalid range: start row => %.*s, stop row => %.*s\n", invalid,
        (int)(first->start.len < 150 ? first->start.len : 150), (const char *)first->start.ptr,
        (int)(first->stop.len < 150 ? first->stop.len : 150), (const char *)first->stop.ptr);
}

rq_err rq__parse_multi_row_range(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__MultiRowRangeFilter *m =
        rq__parse_message(p, &pb__multi_row_range_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    size_t count = m->n_row_range_list;
    if (count == 0) return rq__parse_illegal(p, "No ranges found.");
    multi_range_filter *f = (multi_range_filter *)rq__parse_new_filter(p, sizeof *f, &range_class);
    row_range *sorted = rq__parse_calloc(p, count, sizeof *sorted);
    if (f == NULL || sorted == NULL) return rq__parse_failed(p);
    f->code = RQ__FILTER_NO_CODE;
    f->ranges = rq__parse_calloc(p, count, 4 * sizeof *f->ranges);
    if (f->ranges == NULL) return rq__parse_failed(p);
    for (size_t i = 0; i < count; i++) {
        const Pb__RowRange *r = m->row_range_list[i];
        sorted[i] = (row_range){
            .start = rq__slice_of_pb(r->start_row),
            .stop = rq__slice_of_pb(r->stop_row),
            .start_inclusive = r->start_row_inclusive,
            .stop_inclusive = r->stop_row_inclusive,
            .position = i,
        };
    }
    qsort(sorted, count, sizeof *sorted, by_start);
    RQ_TRY(check_ranges(p, sorted, count));
    f->count = merge_ranges(sorted, count, f->ranges);
    if (f->count == 0) return rq__parse_illegal(p, "No valid ranges found.");
    *ret = &f->base;
    return RQ_OK;
}
