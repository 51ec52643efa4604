/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a row's cells in order; see newest.h. Within a column newer cells come first, and
 * markers before puts of the same timestamp; markers of a family come before its columns. */
#include "catalog/newest.h"

void rq__newest_row(rq__newest *n)
{
    n->has_family = n->has_column = n->ignored = false;
}

void rq__newest_clear(rq__newest *n)
{
    rq_buf_clear(&n->family);
    rq_buf_clear(&n->qualifier);
}

static rq_err set(rq_buf *b, rq_slice s)
{
    rq_buf_reset(b);
    return rq_buf_append(b, s.ptr, s.len);
}

static rq_err enter_column(rq__newest *n, const rq_cell *c)
{
    if (!n->has_family || !rq_slice_eq(rq_buf_slice(&n->family), rq_cell_family(c))) {
        RQ_TRY(set(&n->family, rq_cell_family(c)));
        n->has_family = true;
        n->has_column = false;
        n->family_upto = -1;
        n->family_at_count = 0;
    }
    if (n->has_column && rq_slice_eq(rq_buf_slice(&n->qualifier), rq_cell_qualifier(c)))
        return RQ_OK;
    RQ_TRY(set(&n->qualifier, rq_cell_qualifier(c)));
    n->has_column = true;
    n->column_upto = n->column_at = -1;
    n->found = false;
    return RQ_OK;
}

static void raise(int64_t *to, int64_t timestamp)
{
    if (timestamp > *to) *to = timestamp;
}

static void take_marker(rq__newest *n, const rq_cell *c)
{
    switch (c->type) {
    case RQ_TYPE_DELETE_FAMILY:
        raise(&n->family_upto, c->timestamp);
        break;
    case RQ_TYPE_DELETE_FAMILY_VERSION: /* no server writes more of them to a row than are kept */
        if (n->family_at_count < RQ__NEWEST_VERSIONS)
            n->family_at[n->family_at_count++] = c->timestamp;
        break;
    case RQ_TYPE_DELETE_COLUMN:
        raise(&n->column_upto, c->timestamp);
        break;
    default:
        n->column_at = c->timestamp;
        break;
    }
}

static bool is_hidden(const rq__newest *n, int64_t timestamp)
{
    for (size_t i = 0; i < n->family_at_count; i++)
        if (n->family_at[i] == timestamp) return true;
    return timestamp <= n->family_upto || timestamp <= n->column_upto || timestamp == n->column_at;
}

rq_err rq__newest_take(rq__newest *n, const rq_cell *c, bool *ret)
{
    *ret = false;
    if (c->timestamp < 0 || c->timestamp > RQ__MS_READ_MAX) {
        n->ignored = true;
        return RQ_OK;
    }
    RQ_TRY(enter_column(n, c));
    if (rq_cell_is_delete(c)) {
        take_marker(n, c);
        return RQ_OK;
    }
    *ret = !n->found && !is_hidden(n, c->timestamp);
    n->found |= *ret;
    return RQ_OK;
}
