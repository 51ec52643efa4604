/* SPDX-License-Identifier: Apache-2.0 */
/* FilterList, within the room: its children, and hooks shared by AND and OR. */
#ifndef RQ_FILTER_LIST_H
#define RQ_FILTER_LIST_H

#include "filter/filter_priv.h"

typedef struct rq__list {
    rq_filter base;
    rq_filter **children;
    bool *included; /* children whose transform is applied; AND: all */
    size_t count;
    bool is_long; /* it has more than RQ__LIST_LONG filters, including nested lists: it checks
                   * the pace itself */
} rq__list;

/* A longer list may take long for one cell or row, whatever its filters are. */
#define RQ__LIST_LONG 64

/* Call before a cell is passed to the children (or, after a pause, to the rest of them). True:
 * return RQ_E_AGAIN. */
static inline bool rq__list_is_due(const rq__list *l)
{
    if (RQ_LIKELY(!l->is_long)) return false;
    l->base.pace->resuming = false; /* no child has paused */
    return rq__pace_is_due(l->base.pace);
}
/* Counts `asked` calls of children. */
static inline void rq__list_spend(const rq__list *l, size_t asked)
{
    if (l->is_long) l->base.pace->slice_left -= (int64_t)asked;
}

struct Pb__FilterList;

/* Compares in scan direction. HBASE: FilterListBase.compareCell. */
int rq__list_compare(const rq__list *l, const rq_cell *a, const rq_cell *b);

void rq__list_transform(rq_filter *f, const rq_cell *in, rq_cell *ret);
rq_err rq__list_row_cells(rq_filter *f, rq_filter_cells *cells);
bool rq__list_sees_row_cells(const rq_filter *f);
bool rq__list_has_filter_row(const rq_filter *f);
bool rq__list_is_family_essential(rq_filter *f, rq_slice family);
void rq__list_set_reversed(rq_filter *f, bool reversed);
void rq__list_set_seed(rq_filter *f, uint64_t seed);

/* Parses the children into a new list. */
rq_err rq__list_init(rq__parse *p, rq__list *l, const struct Pb__FilterList *m);
rq_err rq__list_new_all(rq__parse *p, const struct Pb__FilterList *m, rq_filter **ret);
rq_err rq__list_new_one(rq__parse *p, const struct Pb__FilterList *m, rq_filter **ret);

#endif
