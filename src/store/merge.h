/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several sources of cells (memstore segments, HFiles) as one sequence in cell order: what lies
 * beneath every scan, flush and compaction. HBASE: KeyValueHeap, ReversedKeyValueHeap,
 * StoreFileScanner, SegmentScanner.
 *
 *     begin, add_segment / add_file …, start      no I/O
 *     loop: top                                   all I/O is here; RQ_E_AGAIN leaves all as it was
 *           step | seek | previous_row            say where to go next; no I/O
 *     park                                        gives up the sources, keeps the place
 *     begin, add …, resume                        goes on there, on whatever holds the cells now
 *
 * Cells with a sequence id above the read point do not exist. Of equal keys the newer sequence id
 * comes first, of wholly equal cells the one of the younger source.
 *
 * Forward, a min-heap of the sources' current cells. A file may be *lazy*: when it is to be sought
 * to a column, and its newest timestamp is known, it stands in the heap with the first key it could
 * have there, and is touched only when that key comes to the top. So a read that finds what it
 * wants in the memstore never touches the files.
 *
 * Reversed, rows come in descending order and the cells of a row in ascending order. All sources
 * stand on their last cell before a bound; the largest of these rows is the next one, the sources
 * that have it are sought to its beginning and merged forward as above until the row is over.
 *
 * Invariants:
 * 1. A source in the heap has a cell (real or lazy) that is not behind any cell it still has to
 *    deliver; only the top source may be on its way (NEXT, SKIP, SEEK).
 * 2. Keys given to seek are copied; nothing borrowed outlives the call.
 * 3. While a *run* is known (`run`), the top source alone has cells in the row at hand: it may be
 *    stepped without being compared with the others until that row is over.
 * 4. `current` is the top source's cell while that is READY and nothing is pending: whoever changes
 *    a source, the heap or the target clears it. So looking again costs nothing.
 */
#ifndef RQ_STORE_MERGE_H
#define RQ_STORE_MERGE_H

#include "store/file_choice.h"
#include "store/scan_key.h"

typedef enum rq__source_state {
    RQ__SOURCE_SEEK, /* to its goal */
    RQ__SOURCE_NEXT, /* its cell was taken */
    RQ__SOURCE_SKIP, /* stands on a cell that does not exist for this read */
    RQ__SOURCE_READY,
    RQ__SOURCE_LAZY,
    RQ__SOURCE_END,
    RQ__SOURCE_BEFORE, /* reversed: to its last cell before the bound */
    RQ__SOURCE_PARKED, /* reversed: on it; waits for its row */
    RQ__SOURCE_NONE,   /* reversed: there is none */
} rq__source_state;

typedef struct rq__source {
    const rq_cell *cell;
    rq_segment *segment; /* NULL: a file */
    const rq_store_file *meta;
    rq__source_state state;
    uint32_t rank;        /* higher: younger */
    bool is_plain;        /* a file whose cells stand as KeyValues in their blocks */
    bool check_bloom;     /* a get's file: its bloom is asked before the first seek */
    bool check_seqid;     /* it may hold cells above the read point */
    bool check_floor;     /* it may hold cells that were taken before park */
    bool is_odd;          /* a run's cells are not all to be shown as they stand in the file */
    bool from_start;      /* the seek may go backward */
    rq_hfile_place place; /* where the file stood before park: the first seek starts there */
    const rq_cell *goal;  /* of SEEK: the merge's target, or where it starts without markers */
    rq_cell own;          /* the current cell where it is no view of the file's, or the lazy key */
    rq_segment_cursor cursor;
    rq_hfile_scanner file;
} rq__source;

typedef struct rq__merge {
    rq_arena *arena;
    rq_arena *lent;  /* of the sources while it is not parked; NULL: `arena` */
    rq_slice family; /* outlives the merge */
    rq_cell_order order;
    uint64_t read_point;
    bool reversed;
    bool lazy;
    bool use_bloom;
    rq__bloom_question bloom;
    /* Where files without family deletes may start; NULL: nowhere else. */
    const rq_cell *start_without_markers;

    const rq_cell *current; /* what top gave, until the next step, seek or park; else NULL */
    rq__source *run;        /* see invariant 3; NULL: not known */
    bool run_stopped;       /* inside the row, where a block ends: it is worth looking again */
    rq__source *sources;
    rq__source **heap;
    rq_hfile_place *places; /* where files stood when they were parked */
    uint32_t place_count;
    uint32_t place_cap;
    uint32_t source_count;
    uint32_t source_cap;
    uint32_t heap_len;
    uint32_t opened; /* sources before it stand where they were first sought to */
    bool is_open;
    bool seeking; /* what lies before the target is passed over */
    bool in_row;  /* reversed: the heap is the row's */
    bool at_end;
    enum { RQ__FLOOR_NONE, RQ__FLOOR_AT, RQ__FLOOR_AFTER } floor; /* of the target, on resume */
    uint64_t floor_seqid;
    rq__kept_key target; /* its seqid is the largest: before all cells of an equal key */
    /* reversed */
    rq__kept_key bound; /* rows to come lie before it */
    rq__kept_bytes row; /* the row at hand, or last at hand */
    bool has_hint;      /* the target is where to start in its row, if that row comes */
} rq__merge;

void rq__merge_init(rq__merge *m, rq_arena *arena, rq_slice family, rq_cell_order order,
                    uint64_t read_point);

/* Sources live in `lent` from now on, NULL: in the merge's own arena. A merge that rests for long
 * keeps no memory for them. REQUIRES: parked, or not begun. */
void rq__merge_lend(rq__merge *m, rq_arena *lent);

/* --- the sources, oldest first ---------------------------------------------------------------- */
/* `count` is how many will be added at most. */
RQ_NODISCARD
rq_err rq__merge_begin(rq__merge *m, size_t count);
void rq__merge_add_segment(rq__merge *m, rq_segment *segment);
void rq__merge_add_file(rq__merge *m, const rq_store_file *file);

/* From the first cell at or behind the key. */
RQ_NODISCARD
rq_err rq__merge_start(rq__merge *m, const rq_cell *key);
/* Reversed: from the last row before the key; has_key false: the last of all. */
RQ_NODISCARD
rq_err rq__merge_start_before(rq__merge *m, bool has_key, const rq_cell *key);
/* Where park left it. */
void rq__merge_resume(rq__merge *m);
RQ_NODISCARD
rq_err rq__merge_park(rq__merge *m);
/* Gives up the sources and the place. */
void rq__merge_clear(rq__merge *m);

/* --- the sequence ----------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__merge_find_top(rq__merge *m, rq_read_ctx *ctx, const rq_cell **ret, rq_error *why);
/* The cell to look at, until the next call. RQ_E_END, RQ_E_AGAIN. */
RQ_NODISCARD
static inline rq_err rq__merge_top(rq__merge *m, rq_read_ctx *ctx, const rq_cell **ret,
                                   rq_error *why)
{
    *ret = m->current;
    return m->current != NULL ? RQ_OK : rq__merge_find_top(m, ctx, ret, why);
}
/* Behind the cell top gave. */
void rq__merge_step(rq__merge *m);

/* The cell top gave is the first looked at of its row: is it a run's? Ends with the row, and with
 * the sources' part of it. */
void rq__merge_find_run(rq__merge *m);
typedef enum rq__merge_moved {
    RQ__MERGE_STEPPED, /* as by step: ask top */
    RQ__MERGE_IN_ROW,  /* `current` is the next cell, and of the same row */
    RQ__MERGE_ROW_OVER /* there are no more cells of the row; for the next one ask top */
} rq__merge_moved;
rq__merge_moved rq__merge_step_in_run(rq__merge *m, rq_hfile_move moved);
/* Behind the cell top gave, which is in the row of find_run; no I/O. */
static inline rq__merge_moved rq__merge_step_in_row(rq__merge *m)
{
    rq__source *s = m->run;
    if (s == NULL) {
        rq__merge_step(m);
        return RQ__MERGE_STEPPED;
    }
    rq_hfile_move moved = rq_hfile_scanner_next_here(&s->file);
    if (RQ_LIKELY(moved == RQ_HFILE_SAME_ROW && !s->is_odd)) return RQ__MERGE_IN_ROW;
    return rq__merge_step_in_run(m, moved);
}
/* The run's source was walked (hfile/walk.h) to another cell that is there: the one to look at, or
 * one of a row that others may stand before. */
void rq__merge_walked(rq__merge *m, bool before_others);
/* To the next row if that can be reached at once: no I/O, no search. False: nothing has changed.
 * `in_row`: the cell top gave is in the row of find_run; else of any row. */
bool rq__merge_skip_row_here(rq__merge *m, bool in_row);
/* The KeyValue around a plain file's cell, as it stands in its block; its tags are not part of it.
 */
static inline rq_slice rq__plain_keyvalue(const rq_cell *c)
{
    return rq_slice_of(c->row - 10, (size_t)(c->value + c->value_len - c->row) + 10);
}
/* That of `current`. False: it stands nowhere. */
static inline bool rq__merge_keyvalue(const rq__merge *m, rq_slice *ret)
{
    const rq_cell *c = m->current;
    if (c == NULL || !m->heap[0]->is_plain) return false;
    *ret = rq__plain_keyvalue(c);
    return true;
}
/* Forward to the first cell at or behind the key; reversed: in the row at hand. */
RQ_NODISCARD
rq_err rq__merge_seek(rq__merge *m, const rq_cell *key);
/* Reversed: leaves the row at hand. */
RQ_NODISCARD
rq_err rq__merge_previous_row(rq__merge *m);
/* Reversed, to another row: the last row at or before the key's; in the key's own row, from the
 * key on. */
RQ_NODISCARD
rq_err rq__merge_seek_back(rq__merge *m, const rq_cell *key);

#endif
