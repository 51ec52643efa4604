/* SPDX-License-Identifier: Apache-2.0 */
/* Filters on column names and on the number of columns seen in a row: ColumnCountGetFilter,
 * ColumnPaginationFilter, ColumnPrefixFilter, MultipleColumnPrefixFilter, ColumnRangeFilter,
 * FirstKeyOnlyFilter, FirstKeyValueMatchingQualifiersFilter. HBASE: the classes of these names. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

/* HBASE: PrivateCellUtil.createFirstOnRowCol(cell, qualifier). */
static rq_err hint_column(const rq_cell *cell, rq_slice qualifier, rq_cell *ret, bool *has)
{
    *ret = rq_cell_first_on_column(rq_cell_row(cell), rq_cell_family(cell), qualifier);
    *has = true;
    return RQ_OK;
}

static int compare_qualifier(const rq_cell *cell, rq_slice qualifier)
{
    return rq_slice_compare(rq_cell_qualifier(cell), qualifier);
}

/* --- ColumnCountGetFilter: the first columns of a row; in a scan the first row's only --------- */
typedef struct count_filter {
    rq_filter base;
    int32_t limit;
    int32_t count;
} count_filter;

static void count_reset(rq_filter *f)
{
    ((count_filter *)f)->count = 0;
}

static bool count_all_remaining(rq_filter *f)
{
    const count_filter *c = (const count_filter *)f;
    return c->count > c->limit;
}

static rq_err count_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    count_filter *c = (count_filter *)f;
    if (c->count < INT32_MAX) c->count++;
    *ret = count_all_remaining(f) ? RQ_FILTER_NEXT_COL : RQ_FILTER_INCLUDE_AND_NEXT_COL;
    return RQ_OK;
}

static const rq_filter_class count_class = {
    .reset = count_reset,
    .all_remaining = count_all_remaining,
    .cell = count_cell,
};

rq_err rq__parse_column_count_get(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ColumnCountGetFilter *m =
        rq__parse_message(p, &pb__column_count_get_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    if (m->limit < 0) return rq__parse_illegal(p, "limit be positive %d", m->limit);
    count_filter *f = (count_filter *)rq__parse_new_filter(p, sizeof *f, &count_class);
    if (f == NULL) return rq__parse_failed(p);
    f->limit = m->limit;
    *ret = &f->base;
    return RQ_OK;
}

/* --- ColumnPaginationFilter: `limit` columns from the offset-th, or from a name --------------- */
typedef struct pagination_filter {
    rq_filter base;
    bool by_name;
    rq_slice column_offset;
    int32_t limit;
    int32_t offset;
    int32_t count;
} pagination_filter;

static void pagination_reset(rq_filter *f)
{
    ((pagination_filter *)f)->count = 0;
}

static rq_err pagination_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)why;
    pagination_filter *p = (pagination_filter *)f;
    if (p->by_name) {
        if (p->count >= p->limit)
            *ret = RQ_FILTER_NEXT_ROW;
        else if (p->count == 0 && compare_qualifier(cell, p->column_offset) < 0)
            *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
        else
            *ret = RQ_FILTER_INCLUDE_AND_NEXT_COL, p->count++;
        return RQ_OK;
    }
    /* HBase's sum is an int and wraps: with an offset, a huge limit includes nothing. */
    if (p->count >= (int32_t)((uint32_t)p->offset + (uint32_t)p->limit)) {
        *ret = RQ_FILTER_NEXT_ROW;
        return RQ_OK;
    }
    *ret = p->count < p->offset ? RQ_FILTER_NEXT_COL : RQ_FILTER_INCLUDE_AND_NEXT_COL;
    p->count++;
    return RQ_OK;
}

static rq_err pagination_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return hint_column(cell, ((pagination_filter *)f)->column_offset, ret, has);
}

static const rq_filter_class pagination_class = {
    .reset = pagination_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = pagination_cell,
    .hint = pagination_hint,
};

rq_err rq__parse_column_pagination(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ColumnPaginationFilter *m =
        rq__parse_message(p, &pb__column_pagination_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    if (m->limit < 0) return rq__parse_illegal(p, "limit must be positive %d", m->limit);
    if (!m->has_column_offset && m->offset < 0)
        return rq__parse_illegal(p, "offset must be positive %d", m->offset);
    pagination_filter *f =
        (pagination_filter *)rq__parse_new_filter(p, sizeof *f, &pagination_class);
    if (f == NULL) return rq__parse_failed(p);
    f->limit = m->limit;
    f->offset = m->offset;
    f->by_name = m->has_column_offset;
    f->column_offset = rq__slice_of_pb(m->column_offset);
    *ret = &f->base;
    return RQ_OK;
}

/* --- ColumnPrefixFilter ----------------------------------------------------------------------- */
typedef struct column_prefix_filter {
    rq_filter base;
    rq_slice prefix;
} column_prefix_filter;

static rq_err column_prefix_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret,
                                 rq_error *why)
{
    (void)why;
    rq_slice prefix = ((column_prefix_filter *)f)->prefix;
    bool shorter = cell->qualifier_len < prefix.len;
    size_t len = shorter ? cell->qualifier_len : prefix.len;
    int c = rq_bytes_compare(cell->qualifier, len, prefix.ptr, len);
    if (c < 0 || (c == 0 && shorter))
        *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
    else
        *ret = c > 0 ? RQ_FILTER_NEXT_ROW : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static rq_err column_prefix_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return hint_column(cell, ((column_prefix_filter *)f)->prefix, ret, has);
}

static const rq_filter_class column_prefix_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = column_prefix_cell,
    .hint = column_prefix_hint,
    .hinting = true,
};

rq_err rq__parse_column_prefix(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ColumnPrefixFilter *m =
        rq__parse_message(p, &pb__column_prefix_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    column_prefix_filter *f =
        (column_prefix_filter *)rq__parse_new_filter(p, sizeof *f, &column_prefix_class);
    if (f == NULL) return rq__parse_failed(p);
    f->prefix = rq__slice_of_pb(m->prefix);
    *ret = &f->base;
    return RQ_OK;
}

/* --- A sorted set of names -------------------------------------------------------------------- */
static rq_slice *sorted_slices(rq__parse *p, const ProtobufCBinaryData *names, size_t count)
{
    rq_slice *sorted = rq__parse_calloc(p, count, sizeof *sorted);
    if (sorted == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = rq__slice_of_pb(names[i]);
    if (count > 1) qsort(sorted, count, sizeof *sorted, rq_slice_order);
    return sorted;
}

/* Number of sorted names at or before `name`. */
static size_t count_up_to(const rq_slice *sorted, size_t count, rq_slice name)
{
    size_t low = 0;
    while (low < count) {
        size_t mid = low + (count - low) / 2;
        if (rq_slice_compare(sorted[mid], name) <= 0)
            low = mid + 1;
        else
            count = mid;
    }
    return low;
}

/* --- MultipleColumnPrefixFilter --------------------------------------------------------------- */
typedef struct multiple_prefix_filter {
    rq_filter base;
    rq_slice *prefixes; /* ascending, distinct */
    size_t count;
    rq_slice next; /* the hint for the last SEEK_NEXT_USING_HINT */
} multiple_prefix_filter;

static rq_err multiple_prefix_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret,
                                   rq_error *why)
{
    (void)why;
    multiple_prefix_filter *m = (multiple_prefix_filter *)f;
    rq_slice qualifier = rq_cell_qualifier(cell);
    size_t n = count_up_to(m->prefixes, m->count, qualifier);
    /* Only the last prefix at or before the qualifier is checked, as in HBase: with prefixes "a"
     * and "ab", "abz" matches "ab", but "aa" matches "a" as well. */
    if (m->count == 0 || (n > 0 && rq_slice_starts_with(qualifier, m->prefixes[n - 1]))) {
        *ret = RQ_FILTER_INCLUDE;
    } else if (n == m->count) {
        *ret = RQ_FILTER_NEXT_ROW;
    } else {
        m->next = m->prefixes[n];
        *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
    }
    return RQ_OK;
}

static rq_err multiple_prefix_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return hint_column(cell, ((multiple_prefix_filter *)f)->next, ret, has);
}

static const rq_filter_class multiple_prefix_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = multiple_prefix_cell,
    .hint = multiple_prefix_hint,
    .hinting = true,
};

rq_err rq__parse_multiple_column_prefix(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__MultipleColumnPrefixFilter *m =
        rq__parse_message(p, &pb__multiple_column_prefix_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    multiple_prefix_filter *f =
        (multiple_prefix_filter *)rq__parse_new_filter(p, sizeof *f, &multiple_prefix_class);
    if (f == NULL) return rq__parse_failed(p);
    f->count = m->n_sorted_prefixes;
    f->prefixes = sorted_slices(p, m->sorted_prefixes, f->count);
    if (f->prefixes == NULL) return rq__parse_failed(p);
    for (size_t i = 1; i < f->count; i++)
        if (rq_slice_eq(f->prefixes[i - 1], f->prefixes[i]))
            return rq__parse_illegal(p, "prefixes must be distinct");
    *ret = &f->base;
    return RQ_OK;
}

/* --- ColumnRangeFilter ------------------------------------------------------------------------ */
typedef struct range_filter {
    rq_filter base;
    rq_slice min, max;
    bool has_min, has_max, min_inclusive, max_inclusive;
} range_filter;

static rq_err range_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)why;
    const range_filter *r = (const range_filter *)f;
    int from_min = r->has_min ? compare_qualifier(cell, r->min) : 1;
    if (from_min < 0) {
        *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
    } else if (from_min == 0 && !r->min_inclusive) {
        *ret = RQ_FILTER_NEXT_COL;
    } else {
        int from_max = r->has_max ? compare_qualifier(cell, r->max) : -1;
        bool in = from_max < 0 || (from_max == 0 && r->max_inclusive);
        *ret = in ? RQ_FILTER_INCLUDE : RQ_FILTER_NEXT_ROW;
    }
    return RQ_OK;
}

static rq_err range_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return hint_column(cell, ((range_filter *)f)->min, ret, has);
}

static const rq_filter_class range_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = range_cell,
    .hint = range_hint,
    .hinting = true,
};

rq_err rq__parse_column_range(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ColumnRangeFilter *m =
        rq__parse_message(p, &pb__column_range_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    range_filter *f = (range_filter *)rq__parse_new_filter(p, sizeof *f, &range_class);
    if (f == NULL) return rq__parse_failed(p);
    f->has_min = m->has_min_column;
    f->min = rq__slice_of_pb(m->min_column);
    f->min_inclusive = m->min_column_inclusive;
    f->has_max = m->has_max_column;
    f->max = rq__slice_of_pb(m->max_column);
    f->max_inclusive = m->max_column_inclusive;
    *ret = &f->base;
    return RQ_OK;
}

/* --- FirstKeyOnlyFilter, FirstKeyValueMatchingQualifiersFilter -------------------------------- */
typedef struct first_filter {
    rq_filter base;
    rq_slice *qualifiers; /* ascending; NULL: matches any cell */
    size_t count;
    bool found;
} first_filter;

static void first_reset(rq_filter *f)
{
    ((first_filter *)f)->found = false;
}

static rq_err first_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)why;
    first_filter *first = (first_filter *)f;
    if (first->found) {
        *ret = RQ_FILTER_NEXT_ROW;
        return RQ_OK;
    }
    if (first->qualifiers == NULL) {
        first->found = true;
    } else {
        rq_slice qualifier = rq_cell_qualifier(cell);
        size_t n = count_up_to(first->qualifiers, first->count, qualifier);
        first->found = n > 0 && rq_slice_eq(first->qualifiers[n - 1], qualifier);
    }
    *ret = RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static const rq_filter_class first_class = {
    .reset = first_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = first_cell,
    .forgets_rows = true,
};

rq_err rq__parse_first_key_only(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    if (rq__parse_message(p, &pb__first_key_only_filter__descriptor, bytes) == NULL)
        return rq__parse_failed(p);
    *ret = rq__parse_new_filter(p, sizeof(first_filter), &first_class);
    return *ret == NULL ? rq__parse_failed(p) : RQ_OK;
}

rq_err rq__parse_first_key_value_matching_qualifiers(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__FirstKeyValueMatchingQualifiersFilter *m =
        rq__parse_message(p, &pb__first_key_value_matching_qualifiers_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    first_filter *f = (first_filter *)rq__parse_new_filter(p, sizeof *f, &first_class);
    if (f == NULL) return rq__parse_failed(p);
    f->count = m->n_qualifiers;
    f->qualifiers = sorted_slices(p, m->qualifiers, f->count);
    if (f->qualifiers == NULL) return rq__parse_failed(p);
    *ret = &f->base;
    return RQ_OK;
}
