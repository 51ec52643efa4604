/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a row; contract in parts.h. */
#include "client/parts.h"

#include "base/macros.h"

rq_slice rq__parts_key(const rq__parts *p)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&p->cells.bytes));
    rq_cell cell;
    if (p->cells.count == 0 || rq_cellblock_next(&c, &cell, NULL) != RQ_OK) return (rq_slice){0};
    return rq_cell_row(&cell);
}

rq_err rq__parts_continue(const rq__parts *p, rq_result_view row, rq_cursor cells, bool *ret)
{
    rq_cell cell;
    *ret = false;
    if (p->cells.count == 0) return RQ_OK;
    rq_err rc = rq_result_next(&row, &cells, &cell);
    if (rc == RQ_E_END) return RQ_OK;
    RQ_TRY(rc);
    *ret = rq_slice_eq(rq_cell_row(&cell), rq__parts_key(p));
    return RQ_OK;
}

rq_err rq__parts_add(rq__parts *p, const rq_cell *cell, bool stale)
{
    p->cells.with_tags = true;
    p->stale = p->stale || stale;
    return rq_cellblock_append(&p->cells, cell);
}

bool rq__parts_row(const rq__parts *p, rq_result_view *ret, rq_cursor *ret_cells)
{
    *ret = (rq_result_view){.present = true, .stale = p->stale, .count = p->cells.count};
    *ret_cells = rq_cursor_of(rq_buf_slice(&p->cells.bytes));
    return p->cells.count > 0;
}

void rq__parts_drop(rq__parts *p)
{
    rq_cellblock_reset(&p->cells);
    p->stale = false;
}

void rq__parts_clear(rq__parts *p)
{
    rq_cellblock_clear(&p->cells);
}
