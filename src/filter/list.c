/* SPDX-License-Identifier: Apache-2.0 */
/* FilterList: the part common to AND (list_all.c) and OR (list_one.c). HBASE: FilterListBase. */
#include "filter/list.h"

#include "proto/filter.pb-c.h"

int rq__list_compare(const rq__list *l, const rq_cell *a, const rq_cell *b)
{
    int c = rq_cell_compare(RQ_ORDER_DEFAULT, a, b);
    return l->base.reversed ? -c : c;
}

void rq__list_transform(rq_filter *f, const rq_cell *in, rq_cell *ret)
{
    const rq__list *l = (const rq__list *)f;
    rq_cell cell = *in;
    for (size_t i = 0; i < l->count; i++)
        if (l->included[i]) rq_filter_transform_cell(l->children[i], &cell, &cell);
    *ret = cell;
}

rq_err rq__list_row_cells(rq_filter *f, rq_filter_cells *cells)
{
    const rq__list *l = (const rq__list *)f;
    for (; f->row_at < l->count; f->row_at++) {
        if (l->is_long && f->pace->slice_left <= 0) return RQ_E_AGAIN;
        RQ_TRY(rq__filter_row_cells(l->children[f->row_at], cells));
        rq__list_spend(l, 1);
    }
    f->row_at = 0;
    return RQ_OK;
}

bool rq__list_sees_row_cells(const rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        if (rq_filter_sees_row_cells(l->children[i])) return true;
    return false;
}

bool rq__list_has_filter_row(const rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        if (rq_filter_has_filter_row(l->children[i])) return true;
    return false;
}

bool rq__list_is_family_essential(rq_filter *f, rq_slice family)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        if (rq_filter_is_family_essential(l->children[i], family)) return true;
    return l->count == 0;
}

void rq__list_set_reversed(rq_filter *f, bool reversed)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        rq_filter_set_reversed(l->children[i], reversed);
}

void rq__list_set_seed(rq_filter *f, uint64_t seed)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        rq_filter_set_seed(l->children[i], seed + i);
}

rq_err rq__list_init(rq__parse *p, rq__list *l, const Pb__FilterList *m)
{
    l->count = m->n_filters;
    p->in_lists += l->count;
    rq_pace *pace;
    if (p->in_lists > RQ__LIST_LONG) RQ_TRY(rq__parse_pace(p, &pace));
    l->children = rq__parse_calloc(p, l->count, sizeof *l->children);
    l->included = rq__parse_calloc(p, l->count, sizeof *l->included);
    if (l->children == NULL || l->included == NULL) return rq__parse_failed(p);
    for (size_t i = 0; i < l->count; i++)
        RQ_TRY(rq__parse_child(p, m->filters[i], &l->children[i]));
    l->base.pace = p->pace;
    l->is_long = p->in_lists > RQ__LIST_LONG;
    l->base.forgets_rows = true;
    l->base.judges_rows = false;
    for (size_t i = 0; i < l->count; i++) {
        l->base.forgets_rows &= l->children[i]->forgets_rows;
        l->base.judges_rows |= l->children[i]->judges_rows;
        l->base.ends_at_cells |= l->children[i]->ends_at_cells;
    }
    return RQ_OK;
}

rq_err rq__parse_filter_list(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__FilterList *m = rq__parse_message(p, &pb__filter_list__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    switch ((int)m->operator_) {
    case PB__FILTER_LIST__OPERATOR__MUST_PASS_ALL:
        return rq__list_new_all(p, m, ret);
    case PB__FILTER_LIST__OPERATOR__MUST_PASS_ONE:
        return rq__list_new_one(p, m, ret);
    default:
        return rq__parse_illegal(p, "Invalid operator: %d", (int)m->operator_);
    }
}
