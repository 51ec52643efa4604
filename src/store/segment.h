/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memstore segment: an arena skip list of cells. One writer (the region's token holder), any
 * number of readers without locks; freed whole. A cell equal in key and sequence id to one already
 * there replaces it (HBASE: CellSet over ConcurrentSkipListMap.put), readers see the one or the
 * other. Cell bytes never move: views from a cursor live as long as the segment.
 *
 * A write copies each cell once: rq_segment_prepare puts it, as a length-prefixed KeyValue, into
 * the segment's memory, where the log takes it from; after the log has accepted the record
 * rq_segment_link makes it readable and cannot fail. A cell that is prepared and not linked is
 * given back with rq_segment_rollback.
 */
#ifndef RQ_STORE_SEGMENT_H
#define RQ_STORE_SEGMENT_H

#include "cell/cell.h"

typedef struct rq_segment rq_segment;
struct rq_slab_pool;

RQ_NODISCARD
rq_err rq_segment_new(rq_cell_order order, rq_segment **ret);
/* With slabs of a pool (store/slab_pool.h), which outlives the segment. */
RQ_NODISCARD
rq_err rq_segment_new_in(struct rq_slab_pool *pool, rq_cell_order order, rq_segment **ret);
rq_segment *rq_segment_ref(rq_segment *s);
void rq_segment_unref(rq_segment *s); /* frees with the last reference; NULL is fine */

/* REQUIRES: one writer at a time. Copies the cell with tags and seqid. */
RQ_NODISCARD
rq_err rq_segment_add(rq_segment *s, const rq_cell *cell);

/* --- the same in two steps (the writer) ------------------------------------------------------- */
typedef struct rq_segment_node rq_segment_node;

/* Copies the cell (its seqid does not matter yet). The only error is RQ_E_NO_MEMORY, or
 * RQ_E_INVALID for lengths no KeyValue can have. */
RQ_NODISCARD
rq_err rq_segment_prepare(rq_segment *s, const rq_cell *cell, rq_segment_node **ret);
/* be32 length and KeyValue with tags: one cell of a cell block. */
rq_slice rq_segment_node_bytes(const rq_segment_node *n);
/* Readable from here on. Prepared nodes may be linked in any order. */
void rq_segment_link(rq_segment *s, rq_segment_node *n, uint64_t seqid);
/* A batch's cells, in this order; they may be of several segments. */
typedef struct rq_segment_pending {
    rq_segment *segment;
    rq_segment_node *node;
} rq_segment_pending;
void rq_segment_link_batch(const rq_segment_pending *list, size_t count, uint64_t seqid,
                           int64_t now_ms);
/* Cells are linked now: since when there are any. Beside the writer, or before there is one. */
void rq_segment_note_write(rq_segment *s, int64_t now_ms);
/* Many at once: puts the list into key order and links it, which takes a fraction of the time that
 * as many links in no order take. Equal cells: the later in the list wins, as by single links. */
typedef struct rq_segment_fresh {
    rq_segment_node *node;
    uint64_t seqid;
    uint64_t rank; /* the segment's, like the next */
    size_t place;
} rq_segment_fresh;
void rq_segment_link_all(rq_segment *s, rq_segment_fresh *list, size_t count);
/* Gives back `n` and everything prepared after it. REQUIRES: none of it was linked. */
void rq_segment_rollback(rq_segment *s, rq_segment_node *n);

/* A hint: asks memory for what a write looks at. The segment may be gone, or NULL. */
void rq_segment_ask_for(const void *segment);
/* Where the next cell goes, mostly. The writer's. */
const void *rq_segment_tail(const rq_segment *s);

/* A hint, any thread that may read the segments: these rows will be looked for, or written; what
 * that looks at is asked for, side by side. */
typedef struct rq_segment_row {
    const rq_segment *segment;
    rq_slice row;
    bool writes;
} rq_segment_row;
void rq_segment_expect_rows(const rq_segment_row *rows, size_t count);

/* Any thread. False: no cell of a row with this rq_row_hash (store/row_filter.h) was linked before
 * the segment was read at the caller's read point; then a search finds nothing. */
bool rq_segment_may_have_row(const rq_segment *s, uint64_t row_hash);

#define RQ_SEGMENT_COLUMNS_MAX 12
/* How many different qualifiers the puts have that may be seen at the caller's read point;
 * SIZE_MAX: not known, for they are many or long. Any thread. */
size_t rq_segment_column_count(const rq_segment *s);
/* One of them; i below the count. Valid as long as the segment. */
rq_slice rq_segment_column(const rq_segment *s, size_t i);

/* Any thread; counts are the writer's latest. */
size_t rq_segment_cell_count(const rq_segment *s);
/* What the segment holds in memory, whole slabs: charged against the memstore ceiling. */
size_t rq_segment_heap_bytes(const rq_segment *s);
/* Sum of serialized cells: HBase's memstore data size, compared with the flush size. */
size_t rq_segment_data_bytes(const rq_segment *s);
/* Whether a cell with tags was ever added. */
bool rq_segment_has_tags(const rq_segment *s);
/* Over all cells; min > max when empty. */
void rq_segment_time_range(const rq_segment *s, int64_t *ret_min, int64_t *ret_max);
void rq_segment_seqid_range(const rq_segment *s, uint64_t *ret_min, uint64_t *ret_max);
/* When the first write was noted; 0: none was. */
int64_t rq_segment_written_since(const rq_segment *s);

/* A position; plain value, on the stack or in a scanner. Not valid after the segment is freed. */
#define RQ_SEGMENT_SCOUTS 8
typedef struct rq_segment_cursor {
    const rq_segment *segment;
    const rq_segment_node *node; /* NULL: behind the end */
    /* The cursor's own (segment_cursor.c). */
    unsigned steps;
    unsigned stop_count;
    const rq_segment_node *turn;
    const rq_segment_node *stops[RQ_SEGMENT_SCOUTS + 1];
    const rq_segment_node *scouts[RQ_SEGMENT_SCOUTS], *ends[RQ_SEGMENT_SCOUTS];
} rq_segment_cursor;

/* The first cell >= key (whole order with seqid). */
void rq_segment_seek(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key);
void rq_segment_first(rq_segment_cursor *c, const rq_segment *s);
/* The last cell < key; behind the end if none. */
void rq_segment_seek_before(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key);
static inline bool rq_segment_cursor_valid(const rq_segment_cursor *c)
{
    return c->node != NULL;
}
/* REQUIRES: valid. */
void rq_segment_cursor_cell(const rq_segment_cursor *c, rq_cell *ret);
void rq_segment_cursor_next(rq_segment_cursor *c);

#endif
