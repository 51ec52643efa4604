/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of a scanner inside its block, for code that reads many cells: no I/O, no search, and the
 * result tells what the move has shown about the rows of the two cells. Only for plain cells of
 * whole files: all other cases are left to rq_hfile_scanner_next, which also reports malformed
 * cells. */
#include "hfile/plain.h"
#include "hfile/reader.h"
#include "hfile/reader_priv.h"
#include "hfile/walk.h"

/* Cells of a row that are skipped one by one; beyond that a seek is as fast. */
#define PASS_MAX 64
/* Longest step back; after a search that was not over then, so many are left to seeks. */
#define BACK_MAX 8
#define BACK_WAIT 31

bool rq_hfile_reader_is_plain(const rq_hfile_reader *r)
{
    return r->half == NULL && !rq__encoding_is_delta(r->info.encoding);
}

static inline rq__plain_shape shape_of(const rq_hfile_reader *r)
{
    return (rq__plain_shape){r->info.has_tags, r->info.has_mvcc};
}

static inline bool took(rq_hfile_scanner *s, size_t pos, size_t len)
{
    if (len == 0) return false;
    s->pos = (uint32_t)pos;
    s->next_pos = (uint32_t)(pos + len);
    return true;
}

/* Makes the valid cell at `pos` the scanner's current one. */
static bool move_to(rq_hfile_scanner *s, size_t pos)
{
    const rq_hfile_block *b = s->block;
    return took(
        s, pos,
        rq__plain_parse(b->payload + pos, b->payload_len - pos, shape_of(s->reader), &s->cell));
}

/* A faster move_to for most cells. False: it does not apply, and the cell may still be valid. */
static inline bool move_to_alike(rq_hfile_scanner *s, size_t pos)
{
    const rq_hfile_block *b = s->block;
    return took(s, pos,
                rq__plain_parse_alike(b->payload + pos, b->payload_len - pos, shape_of(s->reader),
                                      &s->cell));
}

rq_hfile_move rq_hfile_scanner_next_here(rq_hfile_scanner *s)
{
    size_t pos = s->next_pos;
    const uint8_t *row = s->cell.row;
    size_t row_len = s->cell.row_len;
    if (RQ_UNLIKELY(pos >= s->block->payload_len)) return RQ_HFILE_NOT_MOVED;
    if (RQ_UNLIKELY(!move_to_alike(s, pos))) {
        if (!move_to(s, pos)) return RQ_HFILE_NOT_MOVED;
        if (row_len != s->cell.row_len) return RQ_HFILE_NEW_ROW;
    }
    return rq__plain_same_row(row - 2, s->cell.row - 2, row_len) ? RQ_HFILE_SAME_ROW
                                                                 : RQ_HFILE_NEW_ROW;
}

bool rq_hfile_scanner_skip_row_here(rq_hfile_scanner *s)
{
    const uint8_t *payload = s->block->payload;
    const size_t end = s->block->payload_len;
    const rq__plain_shape shape = shape_of(s->reader);
    const uint8_t *row = s->cell.row;
    const size_t row_len = s->cell.row_len;
    size_t pos = s->next_pos;
    for (unsigned i = 0; i < PASS_MAX && pos < end; i++) {
        size_t len = rq__plain_len_in_row(payload + pos, end - pos, shape, row, row_len);
        /* If the cell there is valid, it is in another row. */
        if (len == 0) return move_to_alike(s, pos) || move_to(s, pos);
        pos += len;
    }
    return false;
}

/* --- back ------------------------------------------------------------------------------------- */

/* The index of the scanner's cell. */
static uint32_t index_here(const rq_hfile_scanner *s, const rq__sidecar *side)
{
    const uint32_t *at = rq__sidecar_at(side);
    uint32_t low = 0;
    uint32_t high = side->count - 1;
    while (low < high) {
        uint32_t mid = low + (high - low + 1) / 2;
        if (at[mid] <= s->pos)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* All cells of a block with a sidecar are valid: they were parsed when it was made. */
static bool is_before(const rq_hfile_scanner *s, const rq__sidecar *side, uint32_t i,
                      const rq_cell *key)
{
    const rq_hfile_block *b = s->block;
    size_t pos = rq__sidecar_at(side)[i];
    rq_cell cell;
    return rq__plain_parse(b->payload + pos, b->payload_len - pos, shape_of(s->reader), &cell) >
               0 &&
           rq_cell_compare_key(s->reader->info.order, &cell, key) < 0;
}

/* Finds the last cell before the key, *ret_before, searching backward from the scanner's cell in
 * steps that double. False: it is not in this block, or too far away. */
static bool find_back(rq_hfile_scanner *s, const rq__sidecar *side, const rq_cell *key,
                      uint32_t *ret_before)
{
    uint32_t high = index_here(s, side);
    uint32_t low = high;
    for (uint32_t step = 1;; step *= 2) {
        if (step > BACK_MAX) {
            s->back_wait = BACK_WAIT;
            return false;
        }
        if (step > high) return false; /* it may be in the block before */
        low = high - step;
        if (is_before(s, side, low, key)) break;
        high = low;
    }
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (is_before(s, side, mid, key))
            low = mid;
        else
            high = mid;
    }
    *ret_before = low;
    return true;
}

static bool move_back(rq_hfile_scanner *s, const rq_cell *key, uint32_t behind)
{
    if (s->block == NULL) return false;
    if (s->back_wait > 0) {
        s->back_wait--;
        return false;
    }
    if (rq_cell_compare_key(s->reader->info.order, &s->cell, key) < 0) return false;
    const rq__sidecar *side = atomic_load_explicit(&s->block->sidecar, memory_order_acquire);
    uint32_t before;
    return side != NULL && find_back(s, side, key, &before) &&
           move_to(s, rq__sidecar_at(side)[before + behind]);
}

bool rq_hfile_scanner_back_before_here(rq_hfile_scanner *s, const rq_cell *key)
{
    return move_back(s, key, 0);
}

bool rq_hfile_scanner_back_to_here(rq_hfile_scanner *s, const rq_cell *key)
{
    return move_back(s, key, 1);
}

/* --- without the scanner ---------------------------------------------------------------------- */
void rq_hfile_walk_begin(rq_hfile_walk *w, const rq_hfile_scanner *s)
{
    *w = (rq_hfile_walk){
        .payload = s->block->payload,
        .len = s->block->payload_len,
        .shape = shape_of(s->reader),
        .pos = s->pos,
        .next_pos = s->next_pos,
        .cell = s->cell,
    };
}

void rq_hfile_walk_end(const rq_hfile_walk *w, rq_hfile_scanner *s)
{
    RQ_ASSERT(s->block != NULL && s->block->payload == w->payload);
    s->pos = (uint32_t)w->pos;
    s->next_pos = (uint32_t)w->next_pos;
    s->cell = w->cell;
}
