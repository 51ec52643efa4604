/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a request and their cells; contract in entries.h. */
#include "replication/entries.h"

#include "wal/record.h"

void rq_entries_begin(rq_entries *e, const Pb__ReplicateWALEntryRequest *request, rq_slice cells)
{
    *e = (rq_entries){.request = request, .cells = rq_cursor_of(cells), .at = SIZE_MAX};
}

/* Goes to the next entry that has cells, if the current one has no more. */
static rq_err find_entry(rq_entries *e)
{
    const Pb__ReplicateWALEntryRequest *r = e->request;
    while (e->left <= 0) {
        if (e->at + 1 >= r->n_entry) return RQ_E_END;
        const Pb__WALEntry *entry = r->entry[++e->at];
        e->left = entry->has_associated_cell_count ? entry->associated_cell_count : 0;
    }
    return RQ_OK;
}

/* Reads a cell of the current entry. HBASE: ReplicationSink throws too if there is none. */
static rq_err read_cell(const rq_entries *e, rq_cursor *at, rq_cell *ret, rq_error *why)
{
    rq_err rc = rq_cellblock_next(at, ret, why);
    if (rc != RQ_E_END) return rc;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "entry %zu of the batch announces %lld more cells than the cell block has",
                   e->at, (long long)e->left);
}

rq_err rq_entries_peek(rq_entries *e, rq_cursor *ret_behind, rq_cell *ret, rq_error *why)
{
    RQ_TRY(find_entry(e));
    *ret_behind = e->cells;
    return read_cell(e, ret_behind, ret, why);
}

void rq_entries_take(rq_entries *e, rq_cursor behind)
{
    e->cells = behind;
    e->left--;
}

static bool is_named(const rq_cell *c, const char *qualifier)
{
    return rq_slice_eq(rq_cell_family(c), rq_slice_cstr("METAFAMILY")) &&
           rq_slice_eq(rq_cell_qualifier(c), rq_slice_cstr(qualifier));
}

bool rq_entries_is_bulk_load(const rq_cell *c)
{
    return is_named(c, "HBASE::BULK_LOAD"); /* HBASE: WALEdit.BULK_LOAD */
}

bool rq_entries_is_event(const rq_cell *c)
{
    return rq_entries_is_bulk_load(c) || is_named(c, "HBASE::REPLICATION_MARKER");
}

static bool continues(const rq_cell *first, const rq_cell *c)
{
    return c->type == first->type && rq_slice_eq(rq_cell_row(c), rq_cell_row(first)) &&
           !rq_entries_is_event(c);
}

rq_err rq_entries_take_edit(rq_entries *e, const rq_cell *first, rq_cursor behind,
                            rq_entries_edit *ret, rq_error *why)
{
    const uint8_t *from = e->cells.ptr;
    *ret = (rq_entries_edit){.deletes = first->type != RQ_TYPE_PUT};
    for (;;) {
        rq_cell c;
        ret->count++;
        rq_entries_take(e, behind);
        if (e->left <= 0) break;
        RQ_TRY(read_cell(e, &behind, &c, why));
        if (!continues(first, &c)) break;
    }
    ret->cells = rq_cursor_of(rq_slice_of(from, (size_t)(e->cells.ptr - from)));
    return RQ_OK;
}

rq_err rq_entries_check_clusters(const rq_entries *e, rq_error *why)
{
    const Pb__WALKey *key = rq_entries_key(e);
    if (key->n_cluster_ids <= RQ_WAL_CLUSTERS_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "entry %zu of the batch has passed %zu clusters, more than the limit of %d",
                   e->at, key->n_cluster_ids, RQ_WAL_CLUSTERS_MAX);
}
