/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memstore segment: a skip list of cells in an arena. One writer (the region's token holder), any
 * number of readers without locks; freed as a whole. A cell with the same key and sequence id as an
 * existing one replaces it (HBASE: CellSet over ConcurrentSkipListMap.put); readers see one or the
 * other. Cell bytes never move: views from a cursor are valid as long as the segment.
 *
 * A write copies each cell once. rq_segment_prepare stores it as a length-prefixed KeyValue in the
 * segment's memory, from which the log copies it. After the log has accepted the record,
 * rq__segment_link makes the cell readable and cannot fail. A prepared cell that is not linked is
 * freed with rq_segment_rollback.
 */
#ifndef RQ_STORE_SEGMENT_H
#define RQ_STORE_SEGMENT_H

#include "cell/cell.h"

typedef struct rq_segment rq_segment;
struct rq_slab_pool;

RQ_NODISCARD
rq_err rq_segment_new(rq_cell_order order, rq_segment **ret);
/* Like rq_segment_new, with memory from a slab pool (store/slab_pool.h), which must outlive the
 * segment. */
RQ_NODISCARD
rq_err rq__segment_new_in(struct rq_slab_pool *pool, rq_cell_order order, rq_segment **ret);
rq_segment *rq_segment_ref(rq_segment *s);
void rq_segment_unref(rq_segment *s); /* frees with the last reference; NULL is allowed */

/* Adds a cell; copies it with tags and seqid. REQUIRES: one writer at a time. */
RQ_NODISCARD
rq_err rq_segment_add(rq_segment *s, const rq_cell *cell);

/* --- the same in two steps (the writer) ------------------------------------------------------- */
typedef struct rq_segment_node rq_segment_node;

/* Copies the cell (its seqid is not used yet). Errors: RQ_E_NO_MEMORY; RQ_E_INVALID for lengths
 * that no KeyValue can have. */
RQ_NODISCARD
rq_err rq_segment_prepare(rq_segment *s, const rq_cell *cell, rq_segment_node **ret);
/* The node's cell as an entry of a cell block: be32 length and KeyValue with tags. */
rq_slice rq_segment_node_bytes(const rq_segment_node *n);
/* Sets the timestamp of a prepared cell. */
void rq_segment_node_stamp(rq_segment_node *n, int64_t timestamp);
/* Makes a prepared cell readable. Prepared nodes may be linked in any order. */
void rq__segment_link(rq_segment *s, rq_segment_node *n, uint64_t seqid);
/* Links a batch's cells, in this order; they may be in several segments. */
typedef struct rq_segment_pending {
    rq_segment *segment;
    rq_segment_node *node;
} rq_segment_pending;
void rq_segment_link_batch(const rq_segment_pending *list, size_t count, uint64_t seqid,
                           int64_t now_ms);
/* Records the time of the first write. Called by the writer, or before there is one. */
void rq_segment_note_write(rq_segment *s, int64_t now_ms);
/* Links many cells: sorts the list by key first, which takes a fraction of the time of linking
 * them unordered. Of equal cells the later in the list wins, as with single links. */
typedef struct rq_segment_fresh {
    rq_segment_node *node;
    uint64_t seqid;
    uint64_t rank; /* used by the segment, like `place` */
    size_t place;
} rq_segment_fresh;
void rq_segment_link_all(rq_segment *s, rq_segment_fresh *list, size_t count);
/* Frees `n` and everything prepared after it. REQUIRES: none of it was linked. */
void rq_segment_rollback(rq_segment *s, rq_segment_node *n);

/* A hint: prefetches what a write reads first. The segment may be freed, or NULL. */
void rq_segment_prefetch(const void *segment);
/* Address where the next cell will probably be stored. Called by the writer. */
const void *rq_segment_tail(const rq_segment *s);

/* A hint: these rows will be searched, or written. Prefetches what that reads, interleaved for
 * all rows. Any thread that may read the segments. */
typedef struct rq_segment_row {
    const rq_segment *segment;
    rq_slice row;
    bool writes;
} rq_segment_row;
void rq_segment_expect_rows(const rq_segment_row *rows, size_t count);

/* Whether the segment may contain a row with this rq__row_hash (store/row_filter.h), at the
 * caller's read point. False: a search would find nothing. Any thread. */
bool rq__segment_may_have_row(const rq_segment *s, uint64_t row_hash);

#define RQ_SEGMENT_COLUMNS_MAX 12
/* Number of different qualifiers of puts that are visible at the caller's read point. SIZE_MAX:
 * unknown, because they are many or long. Any thread. */
size_t rq__segment_column_count(const rq_segment *s);
/* One of these qualifiers; i below the count. Valid as long as the segment. */
rq_slice rq__segment_column(const rq_segment *s, size_t i);

/* Any thread; the writer's latest counts. */
size_t rq_segment_cell_count(const rq_segment *s);
/* Memory of the segment, including whole slabs; charged against the memstore ceiling. */
size_t rq_segment_heap_bytes(const rq_segment *s);
/* Sum of the serialized cells: HBase's memstore data size, compared with the flush size. */
size_t rq_segment_data_bytes(const rq_segment *s);
/* Whether a cell with tags was ever added. */
bool rq__segment_has_tags(const rq_segment *s);
/* Over all cells; min > max if there is none. */
void rq__segment_time_range(const rq_segment *s, int64_t *ret_min, int64_t *ret_max);
void rq_segment_seqid_range(const rq_segment *s, uint64_t *ret_min, uint64_t *ret_max);
/* Time of the first write; 0: none was recorded. */
int64_t rq_segment_written_since(const rq_segment *s);

/* A position: a plain value, on the stack or in a scanner. Invalid after the segment is freed. */
#define RQ_SEGMENT_SCOUTS 8
typedef struct rq_segment_cursor {
    const rq_segment *segment;
    const rq_segment_node *node; /* NULL: past the end */
    /* Internal (segment_cursor.c). */
    unsigned steps;
    unsigned begin;    /* step at which scouts start */
    unsigned hurry_to; /* before this step all scouts advance */
    unsigned stop_count;
    size_t fence;                   /* the next stop, an index in `fences` */
    const struct rq_fences *fences; /* NULL: stops are found by links only */
    const rq_segment_node *turn;
    const rq_segment_node *stops[RQ_SEGMENT_SCOUTS + 1];
    const rq_segment_node *scouts[RQ_SEGMENT_SCOUTS], *ends[RQ_SEGMENT_SCOUTS];
} rq_segment_cursor;

/* Moves to the first cell >= key, in the full order with seqid. */
void rq__segment_seek(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key);
void rq_segment_first(rq_segment_cursor *c, const rq_segment *s);
/* A hint, right after a seek to a cell: the caller will probably read some dozens of cells or more.
 * Prefetches earlier than without it. */
void rq__segment_expect_walk(rq_segment_cursor *c);
/* Moves to the last cell < key; past the end if there is none. */
void rq__segment_seek_before(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key);
static inline bool rq__segment_cursor_valid(const rq_segment_cursor *c)
{
    return c->node != NULL;
}
/* REQUIRES: valid. */
void rq__segment_cursor_cell(const rq_segment_cursor *c, rq_cell *ret);
void rq__segment_cursor_next(rq_segment_cursor *c);
/* Moves back to a node that the cursor was at. */
static inline void rq__segment_cursor_return(rq_segment_cursor *c, const rq_segment_node *node)
{
    c->node = node;
}

#endif
