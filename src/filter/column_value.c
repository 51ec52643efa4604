/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that decide by one named column: SingleColumnValueFilter (about the row, by the column's
 * value), SingleColumnValueExcludeFilter (the same, without returning the column),
 * ColumnValueFilter (that column's cells only), DependentColumnFilter (cells with the same
 * timestamp as that column's). HBASE: the classes of these names. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

typedef struct column {
    rq_slice family; /* absent on the wire means empty */
    rq_slice qualifier;
} column;

static bool is_column(const column *c, const rq_cell *cell)
{
    return rq_short_eq(cell->qualifier, cell->qualifier_len, c->qualifier.ptr, c->qualifier.len) &&
           rq_short_eq(cell->family, cell->family_len, c->family.ptr, c->family.len);
}

/* --- SingleColumnValueFilter ------------------------------------------------------------------ */
typedef struct single_filter {
    rq_filter base;
    column column;
    rq_compare_op op;
    rq_comparator *comparator;
    bool filter_if_missing;
    bool latest_version_only;
    bool found;
    bool matched;
} single_filter;

static void single_reset(rq_filter *f)
{
    single_filter *s = (single_filter *)f;
    s->found = s->matched = false;
}

static rq_err single_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    single_filter *s = (single_filter *)f;
    *ret = RQ_FILTER_INCLUDE;
    if (s->matched) return RQ_OK;
    if (s->latest_version_only && s->found) {
        *ret = RQ_FILTER_NEXT_ROW;
        return RQ_OK;
    }
    if (!is_column(&s->column, cell)) return RQ_OK;
    if (RQ_UNLIKELY(s->op == RQ_NO_OP)) { /* unlike the comparing filters, this one cannot handle
                                           * NO_OP */
        int c;
        RQ_TRY(rq_comparator_compare(s->comparator, rq_cell_value(cell), &c, why));
        return rq__filter_throw(why, "java.lang.RuntimeException: Unknown Compare op NO_OP");
    }
    bool out;
    RQ_TRY(rq__filter_compare(s->op, s->comparator, rq_cell_value(cell), &out, why));
    s->found = true; /* behind the comparison, which may pause */
    if (!out)
        s->matched = true;
    else if (s->latest_version_only)
        *ret = RQ_FILTER_NEXT_ROW;
    return RQ_OK;
}

static bool single_row(rq_filter *f)
{
    const single_filter *s = (const single_filter *)f;
    return s->found ? !s->matched : s->filter_if_missing;
}

static bool single_is_family_essential(rq_filter *f, rq_slice family)
{
    const single_filter *s = (const single_filter *)f;
    return !s->filter_if_missing || rq_slice_eq(family, s->column.family);
}

static const rq_filter_class single_class = {
    .reset = single_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = single_cell,
    .has_filter_row = rq__filter_has_filter_row,
    .row = single_row,
    .is_family_essential = single_is_family_essential,
    .forgets_rows = true,
};

static rq_err exclude_row_cells(rq_filter *f, rq_filter_cells *cells)
{
    const single_filter *s = (const single_filter *)f;
    for (;;) {
        rq__few_cells few;
        RQ_TRY(rq__filter_next_cells(f, f->pace, 1, cells, &few));
        if (few.count == 0) return RQ_OK;
        for (size_t i = 0; i < few.count; i++)
            if (is_column(&s->column, &few.cells[i])) few.keep[i] = false;
    }
}

static const rq_filter_class single_exclude_class = {
    .reset = single_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = single_cell,
    .has_filter_row = rq__filter_has_filter_row,
    .row_cells = exclude_row_cells,
    .row = single_row,
    .is_family_essential = single_is_family_essential,
    .forgets_rows = true,
};

static rq_err parse_single(rq__parse *p, const rq_filter_class *cls,
                           const Pb__SingleColumnValueFilter *m, rq_filter **ret)
{
    single_filter *f = (single_filter *)rq__parse_new_filter(p, sizeof *f, cls);
    if (f == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__parse_op(p, (int)m->compare_op, &f->op));
    RQ_TRY(rq__parse_comparator_of_filter(p, m->comparator, &f->comparator));
    if (cls->row_cells != NULL) RQ_TRY(rq__parse_pace(p, &f->base.pace));
    f->column.family = rq__slice_of_pb(m->column_family);
    f->column.qualifier = rq__slice_of_pb(m->column_qualifier);
    f->filter_if_missing = m->filter_if_missing;
    f->latest_version_only = m->latest_version_only;
    *ret = &f->base;
    return RQ_OK;
}

rq_err rq__parse_single_column_value(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__SingleColumnValueFilter *m =
        rq__parse_message(p, &pb__single_column_value_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p) : parse_single(p, &single_class, m, ret);
}

rq_err rq__parse_single_column_value_exclude(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__SingleColumnValueExcludeFilter *m =
        rq__parse_message(p, &pb__single_column_value_exclude_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p)
                     : parse_single(p, &single_exclude_class, m->single_column_value_filter, ret);
}

/* --- ColumnValueFilter ------------------------------------------------------------------------ */
typedef struct column_value_filter {
    rq_filter base;
    column column;
    rq_compare_op op;
    rq_comparator *comparator;
    bool found; /* the column has passed: the rest of the row has no more of it */
} column_value_filter;

static void column_value_reset(rq_filter *f)
{
    ((column_value_filter *)f)->found = false;
}

static rq_err column_value_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret,
                                rq_error *why)
{
    column_value_filter *c = (column_value_filter *)f;
    if (!is_column(&c->column, cell)) {
        *ret = c->found ? RQ_FILTER_NEXT_ROW : RQ_FILTER_NEXT_COL;
        return RQ_OK;
    }
    c->found = true;
    bool out;
    RQ_TRY(rq__filter_compare(c->op, c->comparator, rq_cell_value(cell), &out, why));
    *ret = out ? RQ_FILTER_SKIP : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static bool column_value_is_family_essential(rq_filter *f, rq_slice family)
{
    return rq_slice_eq(family, ((column_value_filter *)f)->column.family);
}

static const rq_filter_class column_value_class = {
    .reset = column_value_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = column_value_cell,
    .is_family_essential = column_value_is_family_essential,
    .forgets_rows = true,
};

rq_err rq__parse_column_value(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ColumnValueFilter *m =
        rq__parse_message(p, &pb__column_value_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    column_value_filter *f =
        (column_value_filter *)rq__parse_new_filter(p, sizeof *f, &column_value_class);
    if (f == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__parse_op(p, (int)m->compare_op, &f->op));
    RQ_TRY(rq__parse_comparator_of_filter(p, m->comparator, &f->comparator));
    f->column.family = rq__slice_of_pb(m->family);
    f->column.qualifier = rq__slice_of_pb(m->qualifier);
    *ret = &f->base;
    return RQ_OK;
}

/* --- DependentColumnFilter -------------------------------------------------------------------- */
typedef struct dependent_filter {
    rq_filter base;
    column column;
    rq_compare_op op;
    rq_comparator *comparator; /* NULL: any value */
    bool drop;                 /* the column itself is not returned */
    rq_arena *arena;           /* of the filter: charged for … */
    rq_buf stamps; /* int64_t of this row's matching cells, descending as the cells of a column */
} dependent_filter;

static void dependent_reset(rq_filter *f)
{
    rq_buf_reset(&((dependent_filter *)f)->stamps);
}

static rq_err dependent_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    dependent_filter *d = (dependent_filter *)f;
    *ret = RQ_FILTER_INCLUDE;
    if (!is_column(&d->column, cell)) return RQ_OK; /* judged at the end of the row */
    if (d->comparator != NULL) {
        bool out;
        RQ_TRY(rq__filter_compare(d->op, d->comparator, rq_cell_value(cell), &out, why));
        if (out) {
            *ret = RQ_FILTER_SKIP;
            return RQ_OK;
        }
    }
    RQ_TRY(rq__filter_reserve(d->arena, &d->stamps, sizeof cell->timestamp));
    RQ_TRY(rq_buf_append(&d->stamps, &cell->timestamp, sizeof cell->timestamp));
    if (d->drop) *ret = RQ_FILTER_SKIP;
    return RQ_OK;
}

static int compare_stamps(const void *a, const void *b)
{
    int64_t x;
    int64_t y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* Units of a search among the stamps of a row. */
#define SEARCH_UNITS 4

static rq_err dependent_row_cells(rq_filter *f, rq_filter_cells *cells)
{
    const dependent_filter *d = (const dependent_filter *)f;
    size_t stamps = d->stamps.len / sizeof(int64_t);
    for (;;) {
        rq__few_cells few;
        RQ_TRY(rq__filter_next_cells(f, f->pace, SEARCH_UNITS, cells, &few));
        if (few.count == 0) return RQ_OK;
        for (size_t i = 0; i < few.count; i++)
            if (stamps == 0 || bsearch(&few.cells[i].timestamp, d->stamps.ptr, stamps,
                                       sizeof(int64_t), compare_stamps) == NULL)
                few.keep[i] = false;
    }
}

static const rq_filter_class dependent_class = {
    .reset = dependent_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = dependent_cell,
    .has_filter_row = rq__filter_has_filter_row,
    .row_cells = dependent_row_cells,
};

rq_err rq__parse_dependent_column(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__DependentColumnFilter *m =
        rq__parse_message(p, &pb__dependent_column_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    dependent_filter *f = (dependent_filter *)rq__parse_new_filter(p, sizeof *f, &dependent_class);
    if (f == NULL) return rq__parse_failed(p);
    const Pb__CompareFilter *compare = m->compare_filter;
    RQ_TRY(rq__parse_op(p, (int)compare->compare_op, &f->op));
    if (compare->comparator != NULL)
        RQ_TRY(rq__parse_comparator_of_filter(p, compare->comparator, &f->comparator));
    f->column.family = rq__slice_of_pb(m->column_family);
    f->column.qualifier = rq__slice_of_pb(m->column_qualifier);
    f->drop = m->drop_dependent_column;
    f->arena = p->arena;
    RQ_TRY(rq__parse_pace(p, &f->base.pace));
    RQ_TRY(rq__parse_own_buf(p, &f->stamps));
    *ret = &f->base;
    return RQ_OK;
}
