/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a ReplicateWALEntryRequest: its entries, and their cells in the cell block. HBASE: ReplicationSink. */
#ifndef RQ_REPLICATION_ENTRIES_H
#define RQ_REPLICATION_ENTRIES_H

#include "cell/cellblock.h"

#include "proto/admin.pb-c.h"

/* Borrows the request and its cells. */
typedef struct rq_entries {
    const Pb__ReplicateWALEntryRequest *request;
    rq_cursor cells; /* at the next cell */
    size_t at;       /* index of the next cell's entry; SIZE_MAX: before the first */
    int64_t left;    /* cells of this entry that are not taken yet */
} rq_entries;

/* A mutation: consecutive cells of one row and one type. */
typedef struct rq_entries_edit {
    rq_cursor cells; /* from its first cell to the end of its last cell */
    size_t count;    /* cells */
    bool deletes;
} rq_entries_edit;

void rq_entries_begin(rq_entries *e, const Pb__ReplicateWALEntryRequest *request, rq_slice cells);
/* Reads the next cell, of this entry or a later one, without taking it. *ret_behind: the position behind the cell.
 * RQ_E_END: there is no further cell. RQ_E_DO_NOT_RETRY: the entry announces more cells than the cell block has. */
RQ_NODISCARD
rq_err rq_entries_peek(rq_entries *e, rq_cursor *ret_behind, rq_cell *ret, rq_error *why);
/* Takes the cell of the last rq_entries_peek. */
void rq_entries_take(rq_entries *e, rq_cursor behind);
/* Takes the mutation that begins with `first`, the cell of the last rq_entries_peek. A mutation ends where the row or
 * the type of the cells changes. HBASE: ReplicationSink.isNewRowOrType */
RQ_NODISCARD
rq_err rq_entries_take_edit(rq_entries *e, const rq_cell *first, rq_cursor behind,
                            rq_entries_edit *ret, rq_error *why);
/* Whether the cell is an event of the source's log instead of data. HBASE: WALEdit.METAFAMILY. */
bool rq_entries_is_event(const rq_cell *c);
bool rq_entries_is_bulk_load(const rq_cell *c);

/* The key of the next cell's entry. REQUIRES: rq_entries_peek has found a cell. */
static inline const Pb__WALKey *rq_entries_key(const rq_entries *e)
{
    return e->request->entry[e->at]->key;
}
static inline rq_slice rq_entries_table(const rq_entries *e)
{
    const Pb__WALKey *key = rq_entries_key(e);
    return rq_slice_of(key->table_name.data, key->table_name.len);
}
/* RQ_E_DO_NOT_RETRY: the entry has passed more clusters than a record of the log can name. */
RQ_NODISCARD
rq_err rq_entries_check_clusters(const rq_entries *e, rq_error *why);

#endif
