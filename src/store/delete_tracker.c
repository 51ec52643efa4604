/* SPDX-License-Identifier: Apache-2.0 */
/* See delete_tracker.h. HBASE: ScanDeleteTracker. */
#include "store/delete_tracker.h"

static bool same_qualifier(const rq__delete_tracker *t, const rq_cell *cell)
{
    return rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&t->column));
}

static rq_err add_version(rq__delete_tracker *t, int64_t ts)
{
    if (t->version_count != 0 && t->versions[t->version_count - 1] == ts) return RQ_OK;
    if (t->version_count == t->version_cap) {
        uint32_t cap = t->version_cap == 0 ? 16 : 2 * t->version_cap;
        int64_t *versions = rq_arena_alloc(t->arena, cap * sizeof(*versions));
        if (versions == NULL) return RQ_E_NO_MEMORY;
        if (t->version_count != 0)
            memcpy(versions, t->versions, t->version_count * sizeof(*versions));
        t->versions = versions;
        t->version_cap = cap;
    }
    t->versions[t->version_count++] = ts;
    return RQ_OK;
}

rq_err rq__delete_tracker_add(rq__delete_tracker *t, const rq_cell *cell)
{
    /* Cells below the family marker are hidden in any case. */
    if (t->has_family && cell->timestamp <= t->family_ts) return RQ_OK;
    if (cell->type == RQ_TYPE_DELETE_FAMILY) {
        t->has_family = true;
        t->family_ts = cell->timestamp;
        return RQ_OK;
    }
    if (cell->type == RQ_TYPE_DELETE_FAMILY_VERSION) return add_version(t, cell->timestamp);
    if (t->has_column && cell->type < t->column_type && same_qualifier(t, cell))
        return RQ_OK; /* a Delete below a DeleteColumn */
    RQ_TRY(rq__kept_bytes_set(&t->column, t->arena, cell->qualifier, cell->qualifier_len));
    t->has_column = true;
    t->column_type = cell->type;
    t->column_ts = cell->timestamp;
    return RQ_OK;
}

static bool has_version(const rq__delete_tracker *t, int64_t ts)
{
    uint32_t lo = 0;
    uint32_t hi = t->version_count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (t->versions[mid] == ts) return true;
        if (t->versions[mid] > ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

rq__deleted rq__delete_tracker_check(rq__delete_tracker *t, const rq_cell *cell)
{
    if (t->has_family && cell->timestamp <= t->family_ts) return RQ__COLUMN_DELETED;
    if (t->version_count != 0 && has_version(t, cell->timestamp)) return RQ__VERSION_DELETED;
    if (!t->has_column) return RQ__NOT_DELETED;
    if (same_qualifier(t, cell)) {
        if (t->column_type == RQ_TYPE_DELETE_COLUMN) return RQ__COLUMN_DELETED;
        if (cell->timestamp == t->column_ts) return RQ__VERSION_DELETED;
    }
    /* The marker does not reach this cell: it is in the next column, or older than the deleted
     * version. */
    t->has_column = false;
    return RQ__NOT_DELETED;
}

bool rq__delete_tracker_hides_column(const rq__delete_tracker *t, const rq_cell *cell)
{
    if (t->has_family && cell->timestamp <= t->family_ts) return true;
    /* At the empty qualifier an older DeleteFamily may follow the DeleteColumn. */
    return t->has_column && t->column_type == RQ_TYPE_DELETE_COLUMN && cell->qualifier_len > 0 &&
           cell->timestamp <= t->column_ts && same_qualifier(t, cell);
}

/* At one timestamp DeleteFamily and DeleteColumn come first, which hide more than a version. */
bool rq__delete_tracker_hides_version(const rq__delete_tracker *t, const rq_cell *cell)
{
    if (cell->type > RQ_TYPE_DELETE_FAMILY_VERSION) return false;
    if (t->version_count != 0 && has_version(t, cell->timestamp)) return true;
    return t->has_column && t->column_type == RQ_TYPE_DELETE && cell->timestamp == t->column_ts &&
           same_qualifier(t, cell);
}
