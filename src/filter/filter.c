/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of this room: the calls a scanner makes, with the additions that HBase's
 * FilterWrapper makes to the client's filter at the top. */
#include "filter/filter.h"

#include "filter/filter_priv.h"

void rq_filter_set_reversed(rq_filter *f, bool reversed)
{
    f->reversed = reversed;
    if (f->cls->set_reversed != NULL) f->cls->set_reversed(f, reversed);
}

/* Evaluating this many parts takes about as long as reading a cell. */
#define PARTS_OF_A_STEP 16

uint32_t rq_filter_clock(const rq_filter *f, uint32_t steps)
{
    uint32_t times = f == NULL ? 0 : f->parts / PARTS_OF_A_STEP;
    return times < 2 ? steps : times >= steps ? 1 : steps / times;
}

void rq_filter_set_seed(rq_filter *f, uint64_t seed)
{
    if (f->cls->set_seed != NULL) f->cls->set_seed(f, seed);
}

uint32_t rq_filter_parts(const rq_filter *f)
{
    return f->parts;
}

rq_pace *rq_filter_pace(const rq_filter *f)
{
    return f->pace;
}

void rq_filter_reset(rq_filter *f)
{
    f->row_at = 0;
    f->row_cells_done = false;
    if (f->cls->reset == NULL) return;
    f->ended = RQ__ENDED_UNKNOWN;
    f->cls->reset(f);
}

bool rq_filter_all_remaining(rq_filter *f)
{
    return rq__filter_all_remaining(f);
}

bool rq_filter_may_end(const rq_filter *f)
{
    return f->may_end;
}

bool rq_filter_may_transform(const rq_filter *f)
{
    return f->may_transform;
}

bool rq_filter_judges_rows(const rq_filter *f)
{
    return f->judges_rows;
}

bool rq_filter_resets(const rq_filter *f)
{
    return f->resets;
}

bool rq_filter_ends_at_cells(const rq_filter *f)
{
    return f->ends_at_cells;
}

/* In one step: rows are short, and the callers cannot repeat the call. */
static rq_err row_key_in_one_step(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    bool paused = f->pace->may_pause;
    if (paused) f->pace->whole_left = RQ_PACE_WHOLE;
    f->pace->may_pause = false;
    rq_err rc = rq__filter_row_key(f, row, ret, why);
    f->pace->may_pause = paused;
    return rc;
}

rq_err rq_filter_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    if (rq__filter_all_remaining(f)) {
        *ret = true;
        return RQ_OK;
    }
    return f->pace != NULL ? row_key_in_one_step(f, row, ret, why)
                           : rq__filter_row_key(f, row, ret, why);
}

bool rq_filter_has_row_hints(const rq_filter *f)
{
    return f->hints_rows && f->forgets_rows;
}

bool rq_filter_row_hint(rq_filter *f, rq_slice row, rq_slice *ret)
{
    if (!rq_filter_has_row_hints(f) || !f->cls->row_hint(f, row, ret)) return false;
    if (ret->len > RQ_ROW_LEN_MAX) ret->len = RQ_ROW_LEN_MAX; /* nearer, and no less true */
    return ret->len == 0 || rq_slice_compare(row, *ret) < 0;
}

rq_err rq_filter_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    rq_filter_code code;
    RQ_TRY(rq__filter_cell(f, cell, &code, why));
    if (code == RQ__FILTER_NO_CODE) return rq__filter_throw(why, RQ__NULL_POINTER);
    *ret = code;
    return RQ_OK;
}

rq_err rq_filter_resume_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    f->pace->resuming = true;
    rq_err rc = rq_filter_cell(f, cell, ret, why);
    f->pace->resuming = false;
    return rc;
}

void rq_filter_transform_cell(rq_filter *f, const rq_cell *in, rq_cell *ret)
{
    if (f->cls->transform != NULL)
        f->cls->transform(f, in, ret);
    else if (ret != in)
        *ret = *in;
}

rq_err rq_filter_next_cell_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    *has = false;
    if (f->cls->hint == NULL) return RQ_OK;
    f->ended = RQ__ENDED_UNKNOWN;
    return f->cls->hint(f, cell, ret, has);
}

bool rq_filter_has_filter_row(const rq_filter *f)
{
    return f->cls->has_filter_row != NULL && f->cls->has_filter_row(f);
}

bool rq_filter_sees_row_cells(const rq_filter *f)
{
    return f->cls->sees_row_cells != NULL ? f->cls->sees_row_cells(f) : f->cls->row_cells != NULL;
}

bool rq_filter_row(rq_filter *f)
{
    if (f->cls->row == NULL) return false;
    f->ended = RQ__ENDED_UNKNOWN;
    return f->cls->row(f);
}

rq_err rq__filter_next_cells(rq_filter *f, rq_pace *pace, unsigned units, rq_filter_cells *cells,
                             rq__few_cells *ret)
{
    size_t at = f->row_at;
    *ret = (rq__few_cells){0};
    if (at == cells->count) {
        f->row_at = 0;
        return RQ_OK;
    }
    if (pace->slice_left < units) return RQ_E_AGAIN;
    if (at < cells->begin || at >= cells->end) RQ_TRY(cells->move(cells, at));
    size_t affordable = (size_t)pace->slice_left / units;
    size_t count = cells->end - at;
    if (count > affordable) count = affordable;
    pace->slice_left -= (int64_t)(count * units);
    f->row_at += count;
    *ret = (rq__few_cells){&cells->cells[at - cells->begin], cells->keep + at, count};
    return RQ_OK;
}

/* Looking through this many flags takes about a unit. */
#define FLAGS_OF_A_UNIT 256

rq_err rq__filter_row_end(rq_filter *f, rq_pace *pace, rq_filter_cells *cells,
                          rq_filter_row_verdict *ret)
{
    size_t count = cells->count;
    if (!f->row_cells_done) RQ_TRY(rq__filter_row_cells(f, cells));
    f->row_cells_done = true;
    if (pace != NULL && count > 0) {
        if (pace->slice_left <= 0) return RQ_E_AGAIN;
        pace->slice_left -= (int64_t)(count / FLAGS_OF_A_UNIT + 1);
    }
    f->row_cells_done = false;
    *ret = RQ_FILTER_ROW_NOT_CALLED;
    if (count == 0 || memchr(cells->keep, true, count) == NULL) return RQ_OK;
    *ret = RQ_FILTER_ROW_INCLUDE;
    if (!rq_filter_row(f)) return RQ_OK;
    memset(cells->keep, false, count);
    *ret = RQ_FILTER_ROW_EXCLUDE;
    return RQ_OK;
}

rq_err rq_filter_row_end(rq_filter *f, rq_filter_cells *cells, rq_filter_row_verdict *ret)
{
    return rq__filter_row_end(f, f->pace, cells, ret);
}

rq_filter_row_verdict rq_filter_row_done(rq_filter *f, const rq_cell *cells, size_t count,
                                         bool *keep)
{
    rq_filter_cells all = {.count = count, .keep = keep, .cells = cells, .end = count};
    rq_filter_row_verdict verdict;
    rq_err rc;
    while ((rc = rq_filter_row_end(f, &all, &verdict)) == RQ_E_AGAIN)
        f->pace->slice_left = RQ_PACE_SLICE;
    RQ_ASSERT(rc == RQ_OK); /* there is no other window */
    return verdict;
}

bool rq_filter_is_family_essential(rq_filter *f, rq_slice family)
{
    return f->cls->is_family_essential == NULL || f->cls->is_family_essential(f, family);
}

rq_err rq__filter_row_key_passes(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    (void)f, (void)row, (void)why;
    *ret = false;
    return RQ_OK;
}

bool rq__filter_has_filter_row(const rq_filter *f)
{
    (void)f;
    return true;
}

rq_cell rq__filter_first_on_row(rq_slice row)
{
    if (row.len > RQ_ROW_LEN_MAX) row.len = RQ_ROW_LEN_MAX;
    return rq_cell_first_on_row(row);
}
