/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that compare one part of the cell with a comparator: RowFilter, FamilyFilter,
 * QualifierFilter, ValueFilter. HBASE: CompareFilter and the classes of these names. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

typedef struct compare_filter {
    rq_filter base;
    rq_compare_op op;
    rq_comparator *comparator; /* NULL: the client sent none */
    bool row_out;              /* RowFilter: its answer for this row */
} compare_filter;

static rq_err parse_compare(rq__parse *p, const rq_filter_class *cls, const Pb__CompareFilter *m,
                            rq_filter **ret)
{
    compare_filter *f = (compare_filter *)rq__parse_new_filter(p, sizeof *f, cls);
    if (f == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__parse_op(p, (int)m->compare_op, &f->op));
    if (m->comparator != NULL)
        RQ_TRY(rq__parse_comparator_of_filter(p, m->comparator, &f->comparator));
    *ret = &f->base;
    return RQ_OK;
}

static rq_err answer(rq_filter *f, rq_slice bytes, rq_filter_code no, rq_filter_code *ret,
                     rq_error *why)
{
    const compare_filter *c = (const compare_filter *)f;
    bool out;
    RQ_TRY(rq__filter_compare(c->op, c->comparator, bytes, &out, why));
    *ret = out ? no : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

/* --- RowFilter -------------------------------------------------------------------------------- */
static void row_reset(rq_filter *f)
{
    ((compare_filter *)f)->row_out = false;
}

static rq_err row_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    compare_filter *c = (compare_filter *)f;
    bool out;
    RQ_TRY(rq__filter_compare(c->op, c->comparator, row, &out, why));
    if (out) c->row_out = true;
    *ret = c->row_out;
    return RQ_OK;
}

/* Whether the filter has row hints: it compares rows with plain bytes. In a forward scan all rows
 * before these bytes come first and all rows behind them last; the filter excludes one of the two
 * parts. */
static bool row_hints(const compare_filter *c)
{
    return c->comparator != NULL && c->comparator->is_binary && c->comparator->value.len > 0 &&
           c->op != RQ_NOT_EQUAL && c->op != RQ_NO_OP;
}

static bool row_row_hint(const rq_filter *f, rq_slice row, rq_slice *ret)
{
    const compare_filter *c = (const compare_filter *)f;
    rq_slice value = c->comparator->value;
    int order = rq_slice_compare(row, value);
    bool wants_less = c->op == RQ_LESS || c->op == RQ_LESS_OR_EQUAL;
    bool wants_greater = c->op == RQ_GREATER || c->op == RQ_GREATER_OR_EQUAL;
    *ret = order < 0 ? value : (rq_slice){0};
    return order < 0 ? !wants_less : !wants_greater && (order > 0 || c->op == RQ_LESS);
}

static rq_err row_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    *ret = ((compare_filter *)f)->row_out ? RQ_FILTER_NEXT_ROW : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static bool row_row(rq_filter *f)
{
    return ((compare_filter *)f)->row_out;
}

static const rq_filter_class row_class = {
    .reset = row_reset,
    .row_key = row_row_key,
    .row_hint = row_row_hint,
    .cell = row_cell,
    .row = row_row,
    .forgets_rows = true,
};

rq_err rq__parse_row(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__RowFilter *m = rq__parse_message(p, &pb__row_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    RQ_TRY(parse_compare(p, &row_class, m->compare_filter, ret));
    (*ret)->hints_rows = row_hints((const compare_filter *)*ret);
    return RQ_OK;
}

/* --- FamilyFilter ----------------------------------------------------------------------------- */
static rq_err family_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    if (cell->family_len > 0) return answer(f, rq_cell_family(cell), RQ_FILTER_NEXT_ROW, ret, why);
    *ret = RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static const rq_filter_class family_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = family_cell,
    .forgets_rows = true,
};

rq_err rq__parse_family(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__FamilyFilter *m = rq__parse_message(p, &pb__family_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p)
                     : parse_compare(p, &family_class, m->compare_filter, ret);
}

/* --- QualifierFilter -------------------------------------------------------------------------- */
static rq_err qualifier_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    return answer(f, rq_cell_qualifier(cell), RQ_FILTER_SKIP, ret, why);
}

static const rq_filter_class qualifier_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = qualifier_cell,
    .forgets_rows = true,
    .compares_only = true,
};

rq_err rq__parse_qualifier(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__QualifierFilter *m = rq__parse_message(p, &pb__qualifier_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p)
                     : parse_compare(p, &qualifier_class, m->compare_filter, ret);
}

/* --- ValueFilter ------------------------------------------------------------------------------ */
static rq_err value_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    return answer(f, rq_cell_value(cell), RQ_FILTER_SKIP, ret, why);
}

static const rq_filter_class value_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = value_cell,
    .forgets_rows = true,
    .compares_only = true,
};

rq_err rq__parse_value(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__ValueFilter *m = rq__parse_message(p, &pb__value_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p) : parse_compare(p, &value_class, m->compare_filter, ret);
}
