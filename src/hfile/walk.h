/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves from cell to cell and from row to row in a scanner's block without updating the scanner,
 * for loops that examine thousands of cells and want few of them (store/row_pass.c). The functions
 * are inline because a call, or an update of the scanner, costs as much as the move itself.
 *
 *     begin (at the scanner's position) ─ next_row, next ─ … ─ end (moves the scanner there)
 *
 * Only for plain cells of whole files (rq_hfile_reader_is_plain). The scanner keeps its block
 * pinned and must not be moved between begin and end. The block's bytes are untrusted: a move to a
 * malformed cell is not made, and the scanner's own next reports the error.
 */
#ifndef RQ_HFILE_WALK_H
#define RQ_HFILE_WALK_H

#include "hfile/plain.h"
#include "hfile/reader.h"

typedef struct rq_hfile_walk {
    const uint8_t *payload;
    size_t len;
    rq__plain_shape shape;
    size_t pos, next_pos; /* offset of the cell, and behind it */
    rq_cell cell;         /* a view on the block */
} rq_hfile_walk;

/* REQUIRES: positioned, in a file that is_plain. */
void rq_hfile_walk_begin(rq_hfile_walk *w, const rq_hfile_scanner *s);
void rq_hfile_walk_end(const rq_hfile_walk *w, rq_hfile_scanner *s);

static inline bool rq__walk_to(rq_hfile_walk *w, size_t pos)
{
    const uint8_t *p = w->payload + pos;
    size_t left = w->len - pos;
    size_t len = rq__plain_parse_alike(p, left, w->shape, &w->cell);
    if (RQ_UNLIKELY(len == 0)) len = rq__plain_parse(p, left, w->shape, &w->cell);
    if (RQ_UNLIKELY(len == 0)) return false;
    w->pos = pos;
    w->next_pos = pos + len;
    return true;
}

/* Moves to the next cell, like rq_hfile_scanner_next_here. */
static inline rq_hfile_move rq_hfile_walk_next(rq_hfile_walk *w)
{
    const uint8_t *row = w->cell.row;
    size_t row_len = w->cell.row_len;
    if (RQ_UNLIKELY(w->next_pos >= w->len) || RQ_UNLIKELY(!rq__walk_to(w, w->next_pos)))
        return RQ_HFILE_NOT_MOVED;
    return w->cell.row_len == row_len && rq__plain_same_row(row - 2, w->cell.row - 2, row_len)
               ? RQ_HFILE_SAME_ROW
               : RQ_HFILE_NEW_ROW;
}

/* Moves to the first cell of the next row, if it is in the block. */
static inline bool rq_hfile_walk_next_row(rq_hfile_walk *w)
{
    size_t pos = w->next_pos;
    while (pos < w->len) {
        size_t len = rq__plain_len_in_row(w->payload + pos, w->len - pos, w->shape, w->cell.row,
                                          w->cell.row_len);
        if (len == 0) return rq__walk_to(w, pos);
        pos += len;
    }
    return false;
}

#endif
