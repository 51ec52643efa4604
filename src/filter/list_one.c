/* SPDX-License-Identifier: Apache-2.0 */
/* FilterList with MUST_PASS_ONE: every child is asked, and the narrowest step of the answers is
 * taken, so that no child misses a cell. HBASE: FilterListWithOR 2.6.1.
 *
 * If a child's wide step was not taken (it answered NEXT_COL, another child SKIP), the child
 * must not see the cells it meant to skip, or its counters would be wrong. So its last answer
 * and cell are kept, and while the current cell is inside that step the answer is repeated
 * without asking the child. Cells are views that are valid during the call, so the kept one is a
 * copy of its key.
 *
 * For a child that gave a hint, HBase computes the hint for the kept cell each time; in nested
 * lists each level would do this for all levels below it. The hint is computed once and kept with
 * the cell, and serves a list around this one that asks for the hint of an equal cell. */
#include "filter/list.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

typedef struct child_state {
    bool has_code;
    bool has_cell;
    bool knows_hint; /* the child's hint for `cell` is `hint`, or none; until its next call */
    bool has_hint;
    rq_filter_code code;
    rq_cell cell; /* its bytes are in `key`; no value */
    rq_cell hint;
    rq_buf key;
} child_state;

typedef struct one_list {
    rq__list list;
    rq_arena *arena; /* of the filter: charged for the states' memory */
    child_state *states;
    bool paused; /* at child `paused_at`, when the children before it had resulted in
                  * `paused_code` */
    rq_filter_code paused_code;
    size_t paused_at;
} one_list;

static bool includes(rq_filter_code c)
{
    return rq__filter_code_includes(c);
}

/* How far a code moves the scanner: 0 next cell, 1 next column, 2 next row. */
static int step_of(rq_filter_code c)
{
    switch (c) {
    case RQ_FILTER_INCLUDE:
    case RQ_FILTER_SKIP:
    case RQ_FILTER_SEEK_NEXT_USING_HINT: /* not known: the least */
        return 0;
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
    case RQ_FILTER_NEXT_COL:
        return 1;
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
    case RQ_FILTER_NEXT_ROW:
        return 2;
    }
    return 0;
}

/* HBASE: FilterListWithOR.mergeReturnCode: the cell is included if either includes it; the step is
 * the narrower one; a hint remains only if both give one. */
static rq_filter_code merge(rq_filter_code a, rq_filter_code b)
{
    if (a == RQ_FILTER_SEEK_NEXT_USING_HINT && b == a) return a;
    bool include = includes(a) || includes(b);
    int step = step_of(a) < step_of(b) ? step_of(a) : step_of(b);
    switch (step) {
    case 0:
        return include ? RQ_FILTER_INCLUDE : RQ_FILTER_SKIP;
    case 1:
        return include ? RQ_FILTER_INCLUDE_AND_NEXT_COL : RQ_FILTER_NEXT_COL;
    default:
        return include ? RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW : RQ_FILTER_NEXT_ROW;
    }
}

static rq_err keep_cell(rq_arena *arena, child_state *s, const rq_cell *cell)
{
    s->has_cell = s->knows_hint = false;
    rq_buf_reset(&s->key);
    size_t len = (size_t)cell->row_len + cell->family_len + cell->qualifier_len;
    RQ_TRY(rq__filter_reserve(arena, &s->key, len + 1)); /* + 1: never NULL */
    uint8_t *out = s->key.ptr;
    s->cell = *cell;
    s->cell.value = NULL;
    s->cell.value_len = 0;
    s->cell.tags = NULL;
    s->cell.tags_len = 0;
    s->cell.row = memcpy(out, cell->row, cell->row_len);
    out += cell->row_len;
    s->cell.family = out;
    if (cell->family_len > 0) memcpy(out, cell->family, cell->family_len);
    out += cell->family_len;
    s->cell.qualifier = out;
    if (cell->qualifier_len > 0) memcpy(out, cell->qualifier, cell->qualifier_len);
    s->has_cell = true;
    return RQ_OK;
}

static bool is_kept(const child_state *s, const rq_cell *cell)
{
    return s->has_cell && s->has_code && s->code == RQ_FILTER_SEEK_NEXT_USING_HINT &&
           (cell == &s->cell || rq_cell_compare(RQ_ORDER_DEFAULT, cell, &s->cell) == 0);
}

/* The child's hint for the cell. */
static rq_err child_hint(const one_list *l, size_t i, const rq_cell *cell, rq_cell *ret, bool *has)
{
    child_state *s = &l->states[i];
    if (!is_kept(s, cell)) {
        s->knows_hint = false;
        return rq_filter_next_cell_hint(l->list.children[i], cell, ret, has);
    }
    if (!s->knows_hint)
        RQ_TRY(rq_filter_next_cell_hint(l->list.children[i], &s->cell, &s->hint, &s->has_hint));
    s->knows_hint = true;
    *ret = s->hint;
    *has = s->has_hint;
    return RQ_OK;
}

/* Whether `cell` is still inside the step that the child asked for last; *ret is that step. */
static rq_err still_skipping(const one_list *l, size_t i, const rq_cell *cell, rq_filter_code *ret,
                             bool *skipping)
{
    child_state *s = &l->states[i];
    *skipping = false;
    if (!s->has_cell || !s->has_code) return RQ_OK;
    switch (s->code) {
    case RQ_FILTER_INCLUDE:
    case RQ_FILTER_SKIP:
        return RQ_OK;
    case RQ_FILTER_SEEK_NEXT_USING_HINT: {
        rq_cell hint;
        bool has;
        RQ_TRY(child_hint(l, i, &s->cell, &hint, &has));
        *skipping = has && rq__list_compare(&l->list, cell, &hint) < 0;
        *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
        return RQ_OK;
    }
    case RQ_FILTER_NEXT_COL:
    case RQ_FILTER_INCLUDE_AND_NEXT_COL:
        /* The row is the same: reset() forgets the cell. */
        *skipping = rq_cell_same_column(&s->cell, cell);
        *ret = RQ_FILTER_NEXT_COL;
        return RQ_OK;
    case RQ_FILTER_NEXT_ROW:
    case RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW:
        /* "Next row" applies to the current family only. */
        *skipping = rq_slice_eq(rq_cell_family(&s->cell), rq_cell_family(cell));
        *ret = RQ_FILTER_NEXT_ROW;
        return RQ_OK;
    }
    return RQ_OK;
}

static rq_err remember(rq_arena *arena, child_state *s, const rq_cell *cell, rq_filter_code code,
                       bool repeated)
{
    s->has_code = code != RQ__FILTER_NO_CODE;
    s->code = code;
    s->knows_hint = false;
    if (!s->has_code || code == RQ_FILTER_INCLUDE || code == RQ_FILTER_SKIP) {
        s->has_cell = false;
        return RQ_OK;
    }
    /* Repeated column or row steps compare by column or family, which are unchanged. */
    if (repeated && code != RQ_FILTER_SEEK_NEXT_USING_HINT) return RQ_OK;
    return keep_cell(arena, s, cell);
}

static void one_reset(rq_filter *f)
{
    one_list *l = (one_list *)f;
    for (size_t i = 0; i < l->list.count; i++) {
        rq_filter_reset(l->list.children[i]);
        l->list.included[i] = false;
        l->states[i].has_code = false;
        l->states[i].has_cell = false;
        l->states[i].knows_hint = false;
    }
}

static bool one_all_remaining(rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        if (!rq__filter_all_remaining(l->children[i])) return false;
    return l->count > 0;
}

static rq_err one_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    const rq__list *l = (const rq__list *)f;
    bool all_out = l->count > 0;
    rq__list_spend(l, l->count);
    for (size_t i = 0; i < l->count; i++) {
        if (rq__filter_all_remaining(l->children[i])) continue;
        bool out;
        RQ_TRY(rq__filter_row_key(l->children[i], row, &out, why));
        if (!out) all_out = false;
    }
    *ret = all_out;
    return RQ_OK;
}

/* A row may pass any child, so the nearest hint counts. A child that has ended, or wants no more
 * rows, has none. */
static bool one_row_hint(const rq_filter *f, rq_slice row, rq_slice *ret)
{
    const rq__list *l = (const rq__list *)f;
    bool has = false;
    for (size_t i = 0; i < l->count; i++) {
        if (rq__filter_all_remaining(l->children[i])) continue;
        rq_slice hint;
        if (!rq_filter_row_hint(l->children[i], row, &hint)) return false;
        if (!has || (hint.len > 0 && (ret->len == 0 || rq_slice_compare(hint, *ret) < 0)))
            *ret = hint;
        has = true;
    }
    return has;
}

static rq_err one_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    one_list *l = (one_list *)f;
    rq_filter_code code = RQ__FILTER_NO_CODE;
    bool resumes = l->paused && f->pace->resuming;
    if (RQ_UNLIKELY(!resumes && rq__list_is_due(&l->list))) return RQ_E_AGAIN;
    if (resumes) code = l->paused_code;
    for (size_t i = resumes ? l->paused_at : 0; i < l->list.count; i++, resumes = false) {
        rq_filter *child = l->list.children[i];
        l->list.included[i] = false;
        l->paused = false;
        if (rq__filter_all_remaining(child)) continue;
        rq_filter_code own;
        bool repeated = false;
        if (!resumes) RQ_TRY(still_skipping(l, i, cell, &own, &repeated));
        /* The hint's bytes may be the child's, which may overwrite them and then pause. */
        if (!repeated) l->states[i].knows_hint = false;
        rq_err rc = repeated ? RQ_OK : rq__filter_cell(child, cell, &own, why);
        if (RQ_UNLIKELY(rc == RQ_E_AGAIN)) {
            l->paused = true;
            l->paused_at = i;
            l->paused_code = code;
        }
        RQ_TRY(rc);
        RQ_TRY(remember(l->arena, &l->states[i], cell, own, repeated));
        if (code == RQ__FILTER_NO_CODE)
            code = own;
        else if (own == RQ__FILTER_NO_CODE)
            return rq__filter_throw(why, RQ__NULL_POINTER);
        else
            code = merge(code, own);
        l->list.included[i] = includes(own);
    }
    rq__list_spend(&l->list, l->list.count);
    if (code == RQ__FILTER_NO_CODE) /* no child was asked */
        code = l->list.count == 0 ? RQ_FILTER_INCLUDE : RQ_FILTER_SKIP;
    *ret = code;
    return RQ_OK;
}

static bool one_row(rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    rq__list_spend(l, l->count);
    for (size_t i = 0; i < l->count; i++)
        if (!rq_filter_row(l->children[i])) return false;
    return l->count > 0;
}

/* The nearest hint; none at all if one child has none, since that child may want any cell. */
static rq_err one_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++) {
        if (rq__filter_all_remaining(l->children[i])) continue;
        rq_cell hint;
        bool has_hint;
        RQ_TRY(child_hint((one_list *)f, i, cell, &hint, &has_hint));
        if (!has_hint) {
            *has = false;
            return RQ_OK;
        }
        if (!*has || rq__list_compare(l, ret, &hint) > 0) *ret = hint;
        *has = true;
    }
    return RQ_OK;
}

static const rq_filter_class one_class = {
    .reset = one_reset,
    .all_remaining = one_all_remaining,
    .row_key = one_row_key,
    .row_hint = one_row_hint,
    .cell = one_cell,
    .transform = rq__list_transform,
    .hint = one_hint,
    .has_filter_row = rq__list_has_filter_row,
    .row_cells = rq__list_row_cells,
    .sees_row_cells = rq__list_sees_row_cells,
    .row = one_row,
    .is_family_essential = rq__list_is_family_essential,
    .set_reversed = rq__list_set_reversed,
    .set_seed = rq__list_set_seed,
};

static void release_states(void *thing)
{
    one_list *l = thing;
    for (size_t i = 0; i < l->list.count; i++)
        rq_buf_clear(&l->states[i].key);
}

rq_err rq__list_new_one(rq__parse *p, const Pb__FilterList *m, rq_filter **ret)
{
    one_list *l = (one_list *)rq__parse_new_filter(p, sizeof *l, &one_class);
    if (l == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__list_init(p, &l->list, m));
    l->list.base.may_end = l->list.count > 0;
    for (size_t i = 0; i < l->list.count; i++) {
        l->list.base.may_end &= l->list.children[i]->may_end;
        l->list.base.hints_rows &= l->list.children[i]->hints_rows;
    }
    l->arena = p->arena;
    l->states = rq__parse_calloc(p, l->list.count, sizeof *l->states);
    if (l->states == NULL) return rq__parse_failed(p);
    RQ_TRY(rq_arena_link(p->arena, release_states, l));
    *ret = &l->list.base;
    return RQ_OK;
}
