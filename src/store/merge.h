/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges several sources of cells (memstore segments, HFiles) into one sequence in cell order, for
 * every scan, flush and compaction. HBASE: KeyValueHeap, ReversedKeyValueHeap, StoreFileScanner,
 * SegmentScanner.
 *
 *     begin, add_segment / add_file …, start      no I/O
 *     loop: top                                   all I/O; RQ_E_AGAIN leaves everything unchanged
 *           step | seek | previous_row            says where to go next; no I/O
 *     park                                        releases the sources, keeps the position
 *     begin, add …, resume                        continues there, on the current sources
 *
 * Cells with a sequence id above the read point are skipped. Of equal keys the newer sequence id
 * comes first, of fully equal cells the one from the younger source.
 *
 * Forward, it is a min-heap of the sources' current cells. A file may be *lazy*: to seek it to a
 * column, if its newest timestamp is known, it is put into the heap with the smallest key it could
 * have there, and is read only when that key reaches the top. So a read that finds its cells in the
 * memstore never reads the files.
 *
 * Reversed, rows come in descending order and the cells of a row in ascending order. All sources
 * are at their last cell before a bound. The largest of these rows is the next one; the sources
 * that have it seek to its beginning and are merged forward, as above, until the row ends.
 *
 * Invariants:
 * 1. A source in the heap has a cell (real or lazy) that is not behind any cell it still has to
 *    deliver; only the top source may have a move pending (NEXT, SEEK). Any may be at an invisible
 *    cell (SKIP).
 * 2. Keys passed to seek are copied; nothing borrowed outlives the call.
 * 3. While a *run* is known (`run`), only the top source has cells in the current row: it may be
 *    stepped without comparisons with the others until that row ends.
 * 4. `current` is the top source's cell while that is READY and nothing is pending. Any change of
 *    a source, the heap or the target clears it. So calling top again costs nothing.
 */
#ifndef RQ_STORE_MERGE_H
#define RQ_STORE_MERGE_H

#include "store/file_choice.h"
#include "store/scan_key.h"

typedef enum rq__source_state {
    RQ__SOURCE_SEEK, /* must seek to its goal */
    RQ__SOURCE_NEXT, /* its cell was taken; must step */
    RQ__SOURCE_SKIP, /* is at a cell invisible to this read; must step */
    RQ__SOURCE_READY,
    RQ__SOURCE_LAZY,
    RQ__SOURCE_END,
    RQ__SOURCE_BEFORE, /* reversed: must seek to its last cell before the bound */
    RQ__SOURCE_PARKED, /* reversed: at that cell; waits for its row */
    RQ__SOURCE_NONE,   /* reversed: it has no cell before the bound */
} rq__source_state;

typedef struct rq__source {
    const rq_cell *cell;
    rq_segment *segment; /* NULL: a file */
    const rq_store_file *meta;
    rq__source_state state;
    uint32_t rank;        /* higher means younger */
    bool is_plain;        /* a file with plain KeyValues in its blocks */
    bool check_bloom;     /* a get's file: check its bloom before the first seek */
    bool check_seqid;     /* it may have cells above the read point */
    bool check_floor;     /* it may have cells that were returned before park */
    bool is_odd;          /* not all cells of a run can be returned as stored */
    bool from_start;      /* the seek may go backward */
    rq_hfile_place place; /* position before park: the first seek starts there */
    const rq_cell *goal;  /* target of SEEK: the merge's target, or start_without_markers */
    rq_cell own;          /* storage for a current cell that is not a view on the file, or for
                           * the lazy key */
    rq_segment_cursor cursor;
    rq_hfile_scanner file;
} rq__source;

typedef struct rq__merge {
    rq_arena *arena;
    rq_arena *lent;  /* for the sources while not parked; NULL: `arena` */
    rq_slice family; /* must outlive the merge */
    rq_cell_order order;
    uint64_t read_point;
    bool reversed;
    bool lazy;
    bool use_bloom;
    bool expects_walk; /* behind its start it steps, for some rows */
    rq__bloom_question bloom;
    /* Start key for files without family deletes; NULL: the same as others. */
    const rq_cell *start_without_markers;

    const rq_cell *current; /* the cell returned by top, until the next step, seek or park; else
                             * NULL */
    rq__source *run;        /* see invariant 3; NULL: unknown */
    bool run_stopped;       /* the run was stopped inside the row by a block's end; find_run may
                             * be called again */
    rq__source *sources;
    rq__source **heap;
    rq_hfile_place *places; /* positions of files when they were parked */
    uint32_t place_count;
    uint32_t place_cap;
    uint32_t place_next; /* index in `places` where the search for the next file begins */
    uint32_t source_count;
    uint32_t source_cap;
    uint32_t heap_len;
    uint32_t second; /* index in `heap` of the source that comes after the top one; 0: not known */
    uint32_t opened; /* sources before this index have done their first seek */
    bool is_open;
    bool seeking; /* cells before the target are skipped */
    bool in_row;  /* reversed: the heap contains the current row */
    bool at_end;
    enum {
        RQ__FLOOR_NONE,
        RQ__FLOOR_AT,
        RQ__FLOOR_AFTER
    } floor; /* on resume: start at or after
                                                                   * the target */
    uint64_t floor_seqid;
    rq__kept_key target; /* its seqid is the largest: before all cells with an equal key */
    /* reversed */
    rq__kept_key bound; /* the following rows are before it */
    rq__kept_bytes row; /* the current row, or the last one */
    bool has_hint;      /* seek_back: if the target's row comes next, it starts at the target */
    /* Invisible cells that top may pass before it returns RQ_E_AGAIN; the caller sets it anew.
     * UINT32_MAX: any number. */
    uint32_t hidden_left;
} rq__merge;

void rq__merge_init(rq__merge *m, rq_arena *arena, rq_slice family, rq_cell_order order,
                    uint64_t read_point);

/* Allocates the sources in `lent` from now on; NULL: in the merge's own arena. So a merge that
 * is parked for long keeps no memory for them. REQUIRES: parked, or not begun. */
void rq__merge_lend(rq__merge *m, rq_arena *lent);

/* --- the sources, oldest first ---------------------------------------------------------------- */
/* Begins adding sources, at most `count`. */
RQ_NODISCARD
rq_err rq__merge_begin(rq__merge *m, size_t count);
void rq__merge_add_segment(rq__merge *m, rq_segment *segment);
void rq__merge_add_file(rq__merge *m, const rq_store_file *file);

/* Starts at the first cell at or behind the key. */
RQ_NODISCARD
rq_err rq__merge_start(rq__merge *m, const rq_cell *key);
/* Reversed: starts at the last row before the key; has_key false: at the last row. */
RQ_NODISCARD
rq_err rq__merge_start_before(rq__merge *m, bool has_key, const rq_cell *key);
/* Continues at the position of park. */
void rq__merge_resume(rq__merge *m);
RQ_NODISCARD
rq_err rq__merge_park(rq__merge *m);
/* Releases the sources and drops the position. */
void rq__merge_clear(rq__merge *m);

/* --- the sequence ----------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__merge_find_top(rq__merge *m, rq_read_ctx *ctx, const rq_cell **ret, rq_error *why);
/* Returns the current cell, valid until the next call. RQ_E_END. RQ_E_AGAIN: ctx names a missing
 * block, or it has no need and hidden_left is 0. */
RQ_NODISCARD
static inline rq_err rq__merge_top(rq__merge *m, rq_read_ctx *ctx, const rq_cell **ret,
                                   rq_error *why)
{
    *ret = m->current;
    return m->current != NULL ? RQ_OK : rq__merge_find_top(m, ctx, ret, why);
}
/* Moves past the cell returned by top. */
void rq__merge_step(rq__merge *m);

/* Called when top returned the first cell of a row: detects a run (invariant 3). The run ends with
 * the row, or earlier at the end of the source's current block. */
void rq__merge_find_run(rq__merge *m);
typedef enum rq__merge_moved {
    RQ__MERGE_STEPPED, /* as after step: call top */
    RQ__MERGE_IN_ROW,  /* `current` is the next cell, in the same row */
    RQ__MERGE_ROW_OVER /* the row has no more cells; call top for the next one */
} rq__merge_moved;
rq__merge_moved rq__merge_step_in_run(rq__merge *m, rq_hfile_move moved);
/* Moves past the cell returned by top, which is in the row of find_run. No I/O. */
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
/* Called after the run's source was moved (hfile/walk.h) to another visible cell.
 * `before_others`: the cell comes before those of all other sources; otherwise its row must be
 * compared with theirs. */
void rq__merge_walked(rq__merge *m, bool before_others);
/* The first of the rows at which the sources other than the top one are. False: the top source is
 * the only one. REQUIRES: top returned a cell. */
bool rq__merge_bound(const rq__merge *m, rq_slice *ret);
/* Called after the top source was moved to a visible cell of the same or a later row: orders the
 * sources again. REQUIRES: not lazy, so that each source has its cell. */
void rq__merge_moved_top(rq__merge *m);
/* Moves to the next row if that needs no I/O and no search. False: unchanged. `in_row`: the cell
 * returned by top is in the row of find_run. */
bool rq__merge_skip_row_here(rq__merge *m, bool in_row);
/* The KeyValue of a plain file's cell, as stored in its block, without tags. */
static inline rq_slice rq__plain_keyvalue(const rq_cell *c)
{
    return rq_slice_of(c->row - 10, (size_t)(c->value + c->value_len - c->row) + 10);
}
/* The stored KeyValue of `current`. False: there is none. */
static inline bool rq__merge_keyvalue(const rq__merge *m, rq_slice *ret)
{
    const rq_cell *c = m->current;
    if (c == NULL || !m->heap[0]->is_plain) return false;
    *ret = rq__plain_keyvalue(c);
    return true;
}
/* Seeks forward to the first cell at or behind the key; reversed: within the current row. */
RQ_NODISCARD
rq_err rq__merge_seek(rq__merge *m, const rq_cell *key);
/* Reversed: leaves the current row. */
RQ_NODISCARD
rq_err rq__merge_previous_row(rq__merge *m);
/* Reversed: seeks to the last row at or before the key's; in the key's own row, starts at the
 * key. */
RQ_NODISCARD
rq_err rq__merge_seek_back(rq__merge *m, const rq_cell *key);

#endif
