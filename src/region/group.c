/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one batch that share a log record and a sequence id: collected cell by cell, staged and
 * linked together, or taken back. Under the token. Invariant 1 of write.c: cells enter a memstore
 * only after the log has accepted them. */
#include "region/engine_priv.h"

#include <stdlib.h>

/* Not zeroed: most of it is room. */
void rq__group_begin(rq__group *g)
{
    g->cells = g->first_cells;
    g->slices = g->first_slices;
    g->room = RQ__GROUP_ROOM;
    g->count = 0;
    g->bytes = 0;
    g->staged_bytes = 0;
}

void rq__group_end(rq__group *g)
{
    RQ_ASSERT(g->count == 0);
    if (g->room == RQ__GROUP_ROOM) return;
    free(g->cells);
    free(g->slices);
}

static rq_err group_grow(rq__group *g)
{
    size_t room = g->room * 2;
    rq_segment_pending *cells = malloc(room * sizeof *cells);
    rq_slice *slices = malloc(room * sizeof *slices);
    if (cells == NULL || slices == NULL) {
        free(cells);
        free(slices);
        return RQ_E_NO_MEMORY;
    }
    memcpy(cells, g->cells, g->count * sizeof *cells);
    memcpy(slices, g->slices, g->count * sizeof *slices);
    if (g->room > RQ__GROUP_ROOM) {
        free(g->cells);
        free(g->slices);
    }
    g->cells = cells;
    g->slices = slices;
    g->room = room;
    return RQ_OK;
}

rq_err rq__group_add(rq_region *r, rq__region_store *s, const rq_cell *cell, int64_t latest_ms)
{
    rq__group *g = r->group;
    if (RQ_UNLIKELY(g->count == g->room)) RQ_TRY(group_grow(g));
    rq_segment *segment = rq_store_active(s->store);
    rq_segment_node *node;
    RQ_TRY(rq_segment_prepare(segment, cell, &node));
    if (cell->timestamp == RQ_TIMESTAMP_LATEST) rq_segment_node_stamp(node, latest_ms);
    rq_slice bytes = rq_segment_node_bytes(node);
    g->cells[g->count] = (rq_segment_pending){segment, node};
    g->slices[g->count] = bytes;
    g->bytes += bytes.len;
    g->count++;
    return RQ_OK;
}

void rq__group_rollback(rq_region *r, size_t count)
{
    rq__group *g = r->group;
    /* Last in, first out: a segment can only take back its newest cell. */
    while (g->count > count) {
        g->count--;
        g->bytes -= g->slices[g->count].len;
        rq_segment_rollback(g->cells[g->count].segment, g->cells[g->count].node);
    }
}

static rq_err stage(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                    uint64_t seqid)
{
    rq__group *g = r->group;
    if (g->durability == RQ_SKIP_WAL) {
        atomic_fetch_add_explicit(&r->engine->writes_without_wal, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->engine->bytes_without_wal, g->bytes, memory_order_relaxed);
        return RQ_OK;
    }
    rq_wal_record record = {
        .kind = RQ_WAL_EDIT,
        .sequence_id = seqid,
        .write_time_ms = now_ms,
        .nonce_group = nonce_group,
        .nonce = nonce,
        .cluster_ids = g->cluster_ids,
        .scopes = r->log_scopes,
        .vital = g->vital,
    };
    rq_lsn lsn;
    RQ_TRY(rq_wal_stage(r->engine->wal, r->log, &record, g->slices, g->count, &lsn));
    r->staged_lsn = lsn;
    if (g->durability == RQ_FSYNC_WAL)
        r->sync_horizon = lsn;
    else if (g->durability != RQ_ASYNC_WAL)
        r->write_horizon = lsn;
    return RQ_OK;
}

rq_err rq__group_commit(rq_region *r, int64_t now_ms, uint64_t nonce_group, uint64_t nonce,
                        rq_error *why)
{
    rq__group *g = r->group;
    if (g->count == 0) return RQ_OK;
    uint64_t seqid = r->staged_seqid + 1;
    rq_err rc = stage(r, now_ms, nonce_group, nonce, seqid);
    r->log_is_full = rc == RQ_E_NO_SPACE;
    if (rc != RQ_OK) {
        rq__group_rollback(r, 0);
        return rq_fail(why, rc, "the write-ahead log did not accept the record: %s",
                       rq_err_text(rc));
    }
    r->staged_seqid = seqid;
    rq_segment_link_batch(g->cells, g->count, seqid, now_ms);
    g->staged_bytes += g->bytes;
    g->count = 0;
    g->bytes = 0;
    return RQ_OK;
}
