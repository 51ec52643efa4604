/* SPDX-License-Identifier: Apache-2.0 */
/* Filters around one other filter: SkipFilter, WhileMatchFilter and FilterWrapper (the server's own
 * wrapper, which is a normal filter on the wire). HBASE: the classes of these names.
 *
 * What they do not forward matters too: SkipFilter never passes the row key to its filter, and
 * neither of the first two forwards hints, filterRowCells or the reversed flag. */
#include "filter/wrap.h"

#include "proto/filter.pb-c.h"

typedef rq__wrapping wrapping;

static rq_filter *inner_of(const rq_filter *f)
{
    return ((const wrapping *)f)->inner;
}

static void pass_transform(rq_filter *f, const rq_cell *in, rq_cell *ret)
{
    rq_filter_transform_cell(inner_of(f), in, ret);
}

static bool pass_is_family_essential(rq_filter *f, rq_slice family)
{
    return rq_filter_is_family_essential(inner_of(f), family);
}

static void pass_seed(rq_filter *f, uint64_t seed)
{
    rq_filter_set_seed(inner_of(f), seed);
}

static rq_err cell_trips(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    wrapping *w = (wrapping *)f;
    RQ_TRY(rq__filter_cell(w->inner, cell, ret, why));
    if (*ret != RQ_FILTER_INCLUDE) w->tripped = true;
    return RQ_OK;
}

static rq_err parse_wrapping(rq__parse *p, const rq_filter_class *cls, const Pb__Filter *inner,
                             rq_filter **ret)
{
    wrapping *w = (wrapping *)rq__parse_new_filter(p, sizeof *w, cls);
    if (w == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__parse_child(p, inner, &w->inner));
    w->base.ends_at_cells = w->inner->ends_at_cells;
    *ret = &w->base;
    return RQ_OK;
}

/* --- SkipFilter: one cell that does not pass takes the row with it ---------------------------- */
static void skip_reset(rq_filter *f)
{
    wrapping *w = (wrapping *)f;
    rq_filter_reset(w->inner);
    w->tripped = false;
}

static bool skip_row(rq_filter *f)
{
    return ((wrapping *)f)->tripped;
}

static const rq_filter_class skip_class = {
    .reset = skip_reset,
    .row_key = rq__filter_row_key_passes,
    .cell = cell_trips,
    .transform = pass_transform,
    .has_filter_row = rq__filter_has_filter_row,
    .row = skip_row,
    .is_family_essential = pass_is_family_essential,
    .set_seed = pass_seed,
};

rq_err rq__parse_skip(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__SkipFilter *m = rq__parse_message(p, &pb__skip_filter__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p) : parse_wrapping(p, &skip_class, m->filter, ret);
}

/* --- WhileMatchFilter: the first no ends the scan --------------------------------------------- */
static void while_reset(rq_filter *f)
{
    rq_filter_reset(inner_of(f));
}

static bool while_all_remaining(rq_filter *f)
{
    const wrapping *w = (const wrapping *)f;
    return w->tripped || rq__filter_all_remaining(w->inner);
}

static rq_err while_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    wrapping *w = (wrapping *)f;
    if (while_all_remaining(f)) {
        *ret = true;
        return RQ_OK;
    }
    RQ_TRY(rq__filter_row_key(w->inner, row, ret, why));
    if (*ret) w->tripped = true;
    return RQ_OK;
}

static bool while_row(rq_filter *f)
{
    wrapping *w = (wrapping *)f;
    bool out = rq_filter_row(w->inner);
    if (out) w->tripped = true;
    return out;
}

static const rq_filter_class while_class = {
    .reset = while_reset,
    .all_remaining = while_all_remaining,
    .row_key = while_row_key,
    .cell = cell_trips,
    .transform = pass_transform,
    .has_filter_row = rq__filter_has_filter_row,
    .row = while_row,
    .is_family_essential = pass_is_family_essential,
    .set_seed = pass_seed,
};

rq_err rq__parse_while_match(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__WhileMatchFilter *m =
        rq__parse_message(p, &pb__while_match_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    RQ_TRY(parse_wrapping(p, &while_class, m->filter, ret));
    (*ret)->ends_at_cells = true;
    return RQ_OK;
}

/* --- FilterWrapper ---------------------------------------------------------------------------- */
static void wrapper_reset(rq_filter *f)
{
    rq_filter_reset(inner_of(f));
}

static bool wrapper_all_remaining(rq_filter *f)
{
    return rq__filter_all_remaining(inner_of(f));
}

static rq_err wrapper_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    return rq_filter_row_key(inner_of(f), row, ret, why);
}

static rq_err wrapper_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    return rq__filter_cell(inner_of(f), cell, ret, why);
}

static rq_err wrapper_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    return rq_filter_next_cell_hint(inner_of(f), cell, ret, has);
}

static bool wrapper_has_filter_row(const rq_filter *f)
{
    return rq_filter_has_filter_row(inner_of(f));
}

static rq_err wrapper_row_cells(rq_filter *f, rq_filter_cells *cells)
{
    rq_filter_row_verdict verdict;
    return rq__filter_row_end(inner_of(f), f->pace, cells, &verdict);
}

static bool wrapper_row(rq_filter *f)
{
    return rq_filter_row(inner_of(f));
}

static const rq_filter_class wrapper_class = {
    .reset = wrapper_reset,
    .all_remaining = wrapper_all_remaining,
    .row_key = wrapper_row_key,
    .cell = wrapper_cell,
    .transform = pass_transform,
    .hint = wrapper_hint,
    .has_filter_row = wrapper_has_filter_row,
    .row_cells = wrapper_row_cells,
    .row = wrapper_row,
    .is_family_essential = pass_is_family_essential,
    .set_seed = pass_seed,
};

rq_err rq__parse_filter_wrapper(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__FilterWrapper *m = rq__parse_message(p, &pb__filter_wrapper__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    RQ_TRY(parse_wrapping(p, &wrapper_class, m->filter, ret));
    RQ_TRY(rq__parse_pace(p, &(*ret)->pace));
    (*ret)->may_end = ((const wrapping *)*ret)->inner->may_end;
    return RQ_OK;
}
