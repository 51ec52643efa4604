/* SPDX-License-Identifier: Apache-2.0 */
/* FilterList with MUST_PASS_ALL: a child sees a cell only while the children before it include it,
 * and the widest step of the answers is taken. HBASE: FilterListWithAND 2.6.1.
 *
 * Children that give hints (rq_filter_class.hinting) are asked even behind one that has excluded
 * the cell: a hint may skip much more. Of several hints the farthest counts, because all children
 * must pass. */
#include "filter/list.h"

#include "proto/filter.pb-c.h"

typedef struct all_list {
    rq__list list;
    bool *hinted; /* children that answered the last cell with SEEK_NEXT_USING_HINT */
    bool any_hinted;
    bool paused; /* at child `paused_at`, when the children before it had resulted in
                  * `paused_code` */
    rq_filter_code paused_code;
    size_t paused_at;
    bool any_hinting;       /* some child may be worth asking although the cell is excluded
                             * already */
    rq_filter *plain_first; /* the first child, if it never ends the scan and the list answers SKIP
                             * whenever it does; else NULL */
} all_list;

static bool skips_versions(rq_filter_code c)
{
    return c == RQ_FILTER_INCLUDE_AND_NEXT_COL || c == RQ_FILTER_NEXT_COL;
}

static bool skips_row(rq_filter_code c)
{
    return c == RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW || c == RQ_FILTER_NEXT_ROW;
}

/* HBASE: FilterListWithAND.mergeReturnCode is a table of 49 entries, with these rules: a hint beats
 * everything; the cell is included if both include it; the step is the wider of both (next cell,
 * next column, next row). */
static rq_filter_code merge(rq_filter_code a, rq_filter_code b)
{
    if (a == RQ_FILTER_SEEK_NEXT_USING_HINT || b == RQ_FILTER_SEEK_NEXT_USING_HINT)
        return RQ_FILTER_SEEK_NEXT_USING_HINT;
    bool include = rq__filter_code_includes(a) && rq__filter_code_includes(b);
    if (skips_row(a) || skips_row(b))
        return include ? RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW : RQ_FILTER_NEXT_ROW;
    if (skips_versions(a) || skips_versions(b))
        return include ? RQ_FILTER_INCLUDE_AND_NEXT_COL : RQ_FILTER_NEXT_COL;
    return include ? RQ_FILTER_INCLUDE : RQ_FILTER_SKIP;
}

static void forget_hints(all_list *l)
{
    if (l->any_hinted) memset(l->hinted, false, l->list.count);
    l->any_hinted = false;
}

static void note_hint(all_list *l, size_t i)
{
    l->hinted[i] = true;
    l->any_hinted = true;
}

static void all_reset(rq_filter *f)
{
    all_list *l = (all_list *)f;
    for (size_t i = 0; i < l->list.count; i++)
        rq_filter_reset(l->list.children[i]);
    forget_hints(l);
}

static bool all_all_remaining(rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    for (size_t i = 0; i < l->count; i++)
        if (rq__filter_all_remaining(l->children[i])) return true;
    return false;
}

/* Every child is asked even after one has excluded the row: some keep state about it
 * (PrefixFilter). If a hinting child accepts the row, the row is not excluded by its key, or the
 * hint would never be asked for. */
static rq_err all_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    const rq__list *l = (const rq__list *)f;
    bool filtered = false;
    bool hinting_passed = false;
    rq__list_spend(l, l->count);
    for (size_t i = 0; i < l->count; i++) {
        rq_filter *child = l->children[i];
        if (rq__filter_all_remaining(child)) {
            *ret = true;
            return RQ_OK;
        }
        bool out;
        RQ_TRY(rq__filter_row_key(child, row, &out, why));
        if (out)
            filtered = true;
        else if (child->cls->hinting)
            hinting_passed = true;
    }
    *ret = filtered && !hinting_passed;
    return RQ_OK;
}

/* A row must pass all children, so it is at or behind the farthest hint. (No hinting child takes
 * part, because those keep state about rows.) */
static bool all_row_hint(const rq_filter *f, rq_slice row, rq_slice *ret)
{
    const rq__list *l = (const rq__list *)f;
    bool has = false;
    for (size_t i = 0; i < l->count; i++) {
        rq_slice hint;
        if (!rq_filter_row_hint(l->children[i], row, &hint)) continue;
        if (!has || hint.len == 0 || rq_slice_compare(hint, *ret) > 0) *ret = hint;
        has = true;
        if (hint.len == 0) break; /* behind all rows */
    }
    return has;
}

static rq_err ask_hinting_from(all_list *l, size_t from, const rq_cell *cell, rq_error *why)
{
    for (size_t i = from; i < l->list.count; i++) {
        rq_filter *child = l->list.children[i];
        if (!child->cls->hinting) continue;
        rq_filter_code own;
        RQ_TRY(rq__filter_cell(child, cell, &own, why));
        if (own == RQ_FILTER_SEEK_NEXT_USING_HINT) note_hint(l, i);
    }
    return RQ_OK;
}

/* Asks the hinting children from `from` on, although the cell is excluded. They must not pause: a
 * pause is resumed as if the children before had included the cell. */
static rq_err ask_hinting(all_list *l, size_t from, const rq_cell *cell, rq_error *why)
{
    rq_pace *pace = l->list.base.pace;
    if (pace == NULL) return ask_hinting_from(l, from, cell, why);
    bool may_pause = pace->may_pause;
    pace->may_pause = false;
    rq_err rc = ask_hinting_from(l, from, cell, why);
    pace->may_pause = may_pause;
    return rc;
}

static void pause_at(all_list *l, size_t i, rq_filter_code code)
{
    l->paused = true;
    l->paused_at = i;
    l->paused_code = code;
}

/* Asks all children from `i` on, after `code`. `first`: the answer that the first child has already
 * given; RQ__FILTER_NO_CODE: it was not asked. */
static rq_err ask_from(all_list *l, size_t i, rq_filter_code code, rq_filter_code first,
                       const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    while (i < l->list.count && rq__filter_code_includes(code)) {
        rq_filter *child = l->list.children[i++];
        rq_filter_code own = first;
        if (i > 1 || first == RQ__FILTER_NO_CODE) {
            if (rq__filter_all_remaining(child)) {
                code = RQ_FILTER_NEXT_ROW;
                break;
            }
            rq_err rc = rq__filter_cell(child, cell, &own, why);
            if (RQ_UNLIKELY(rc == RQ_E_AGAIN)) pause_at(l, i - 1, code);
            RQ_TRY(rc);
        }
        if (own == RQ_FILTER_INCLUDE) continue;
        if (own == RQ_FILTER_SKIP && code == RQ_FILTER_INCLUDE) {
            code = RQ_FILTER_SKIP; /* what merge would return; most children answer so */
            break;
        }
        if (own == RQ__FILTER_NO_CODE) return rq__filter_throw(why, RQ__NULL_POINTER);
        if (own == RQ_FILTER_SEEK_NEXT_USING_HINT) note_hint(l, i - 1);
        code = merge(code, own);
    }
    rq__list_spend(&l->list, i);
    if (l->any_hinting) RQ_TRY(ask_hinting(l, i, cell, why));
    *ret = l->any_hinted ? RQ_FILTER_SEEK_NEXT_USING_HINT : code;
    return RQ_OK;
}

static rq_err ask_children(all_list *l, rq_filter_code first, const rq_cell *cell,
                           rq_filter_code *ret, rq_error *why)
{
    if (l->any_hinted) forget_hints(l);
    return ask_from(l, 0, RQ_FILTER_INCLUDE, first, cell, ret, why);
}

/* Most cells are excluded by the first child, often one that only compares. */
static rq_err all_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    all_list *l = (all_list *)f;
    if (RQ_UNLIKELY(l->paused)) {
        l->paused = false;
        if (f->pace->resuming)
            return ask_from(l, l->paused_at, l->paused_code, RQ__FILTER_NO_CODE, cell, ret, why);
    }
    if (RQ_UNLIKELY(rq__list_is_due(&l->list))) return RQ_E_AGAIN;
    rq_filter *first = l->plain_first;
    if (first == NULL) return ask_children(l, RQ__FILTER_NO_CODE, cell, ret, why);
    RQ_TRY(first->cls->cell(first, cell, ret, why));
    return *ret == RQ_FILTER_SKIP ? RQ_OK : ask_children(l, *ret, cell, ret, why);
}

static bool all_row(rq_filter *f)
{
    const rq__list *l = (const rq__list *)f;
    rq__list_spend(l, l->count);
    for (size_t i = 0; i < l->count; i++)
        if (rq_filter_row(l->children[i])) return true;
    return false;
}

/* A child without a hint (an exhausted FuzzyRowFilter) is ignored; HBase throws
 * NullPointerException there unless it is the first. */
static rq_err all_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    const all_list *l = (const all_list *)f;
    for (size_t i = 0; i < l->list.count; i++) {
        rq_filter *child = l->list.children[i];
        if (!l->hinted[i] || rq__filter_all_remaining(child)) continue;
        rq_cell hint;
        bool has_hint;
        RQ_TRY(rq_filter_next_cell_hint(child, cell, &hint, &has_hint));
        if (!has_hint) continue;
        if (!*has || rq__list_compare(&l->list, ret, &hint) < 0) *ret = hint;
        *has = true;
    }
    return RQ_OK;
}

static const rq_filter_class all_class = {
    .reset = all_reset,
    .all_remaining = all_all_remaining,
    .row_key = all_row_key,
    .row_hint = all_row_hint,
    .cell = all_cell,
    .transform = rq__list_transform,
    .hint = all_hint,
    .has_filter_row = rq__list_has_filter_row,
    .row_cells = rq__list_row_cells,
    .sees_row_cells = rq__list_sees_row_cells,
    .row = all_row,
    .is_family_essential = rq__list_is_family_essential,
    .set_reversed = rq__list_set_reversed,
    .set_seed = rq__list_set_seed,
};

rq_err rq__list_new_all(rq__parse *p, const Pb__FilterList *m, rq_filter **ret)
{
    all_list *l = (all_list *)rq__parse_new_filter(p, sizeof *l, &all_class);
    if (l == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__list_init(p, &l->list, m));
    memset(l->list.included, true, l->list.count);
    l->list.base.may_end = l->list.base.may_transform = false;
    bool hints_rows = false;
    l->list.base.resets = false;
    for (size_t i = 0; i < l->list.count; i++) {
        l->list.base.may_end |= l->list.children[i]->may_end;
        l->list.base.may_transform |= l->list.children[i]->may_transform;
        hints_rows |= l->list.children[i]->hints_rows;
        l->list.base.resets |=
            l->list.children[i]->resets || l->list.children[i]->cls->hint != NULL;
        l->any_hinting |= l->list.children[i]->cls->hinting;
    }
    l->list.base.hints_rows = hints_rows;
    rq_filter *first = l->list.count > 0 ? l->list.children[0] : NULL;
    if (first != NULL && first->cls->compares_only && !l->any_hinting) l->plain_first = first;
    l->hinted = rq__parse_calloc(p, l->list.count, sizeof *l->hinted);
    if (l->hinted == NULL) return rq__parse_failed(p);
    *ret = &l->list.base;
    return RQ_OK;
}
