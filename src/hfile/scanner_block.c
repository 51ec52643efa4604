/* SPDX-License-Identifier: Apache-2.0 */
/* A scanner's search inside a data block: by the block's sidecar, cell by cell, or over the differences of a
 * delta-encoded block.
 *
 * Cells are checked as they are parsed: a payload's checksum proves that it is what was written,
 * not that it is well-formed. */
#include "hfile/scanner_priv.h"

#include <stdlib.h>

rq_err rq__scanner_bad_cell(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                            rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %llu (%s): malformed cell at byte %zu",
                   s->reader->path, (unsigned long long)b->offset,
                   rq_block_kind_name((rq_block_kind)b->kind), pos);
}

/* --- the sidecar ------------------------------------------------------------------------------ */

typedef struct block_parser {
    const rq_hfile_scanner *s;
    const rq_hfile_block *b;
    rq_error *why;
} block_parser;

static rq_err parse_for_sidecar(void *arg, uint32_t at, rq_cell *ret)
{
    block_parser *p = arg;
    size_t next;
    return rq__scanner_cell_at(p->s, p->b, at, ret, &next, p->why);
}

/* The offsets of all cells, or RQ_E_NO_MEMORY. */
static rq_err list_cells(const rq_hfile_scanner *s, const rq_hfile_block *b, uint32_t **ret,
                         uint32_t *ret_count, rq_error *why)
{
    rq_cell cell;
    uint32_t cap = 256;
    uint32_t count = 0;
    uint32_t *at = malloc(cap * sizeof(*at));
    if (at == NULL) return RQ_E_NO_MEMORY;
    for (size_t pos = 0; pos < b->payload_len;) {
        if (count == cap) {
            uint32_t *more = realloc(at, 2 * (size_t)cap * sizeof(*at));
            if (more == NULL) {
                free(at);
                return RQ_E_NO_MEMORY;
            }
            at = more;
            cap *= 2;
        }
        at[count++] = (uint32_t)pos;
        rq_slice row;
        size_t len =
            rq__plain_len(b->payload + pos, b->payload_len - pos, rq__scanner_shape(s), &row);
        pos += len;
        rq_err rc = len > 0 ? RQ_OK : rq__scanner_cell_at(s, b, pos, &cell, &pos, why);
        if (rc != RQ_OK) {
            free(at);
            return rc;
        }
    }
    *ret = at;
    *ret_count = count;
    return RQ_OK;
}

static rq_err make_plain_sidecar(const rq_hfile_scanner *s, rq_hfile_block *b, rq__sidecar **ret,
                                 rq_error *why)
{
    uint32_t *at;
    uint32_t count;
    RQ_TRY(list_cells(s, b, &at, &count, why));
    block_parser parser = {s, b, why};
    rq_err rc =
        rq__sidecar_new(b->slab, at, count, s->reader->info.order, parse_for_sidecar, &parser, ret);
    free(at);
    return rc;
}

/* Builds and publishes the block's sidecar. Out of memory there is none, which is not an error. */
static rq_err build_sidecar(const rq_hfile_scanner *s, rq_hfile_block *b, rq__sidecar **ret,
                            rq_error *why)
{
    rq__sidecar *side = NULL;
    *ret = NULL;
    rq_err rc = RQ_OK;
    if (b->kind != RQ_BLOCK_DATA) {
        side = rq__index_marks(b->slab, rq__index_view_of(b->payload), s->reader->info.order);
    } else if (rq__scanner_is_delta(s)) {
        rc = rq__delta_checkpoints(b->slab, rq__reader_delta_shape(s->reader), rq__payload_of(b),
                                   &side);
        if (rc == RQ_E_CORRUPT)
            rc = rq__fail_block(why, s->reader, b, "malformed differences between its cells");
    } else {
        rc = make_plain_sidecar(s, b, &side, why);
    }
    if (rc == RQ_E_NO_MEMORY) return RQ_OK;
    if (rc != RQ_OK || side == NULL) return rc;
    rq__sidecar *there = NULL;
    if (atomic_compare_exchange_strong_explicit(&b->sidecar, &there, side, memory_order_acq_rel,
                                                memory_order_acquire)) {
        rq__cache_grow(b, side->heap_len);
        *ret = side;
    } else {
        rq__sidecar_free(b->slab, side);
        *ret = there;
    }
    return RQ_OK;
}

rq_err rq__scanner_sidecar(const rq_hfile_scanner *s, rq_hfile_block *b, bool wanted,
                           rq__sidecar **ret, rq_error *why)
{
    *ret = atomic_load_explicit(&b->sidecar, memory_order_acquire);
    if (*ret != NULL) {
        rq__sidecar_prefetch(*ret);
        return RQ_OK;
    }
    uint8_t searches = atomic_load_explicit(&b->searches, memory_order_relaxed);
    if (searches < 2)
        atomic_store_explicit(&b->searches, (uint8_t)(searches + 1), memory_order_relaxed);
    return wanted || searches >= 1 ? build_sidecar(s, b, ret, why) : RQ_OK;
}

/* Index of the first cell of the block that is not before the key, by its sidecar; `count` if all
 * are. */
static rq_err search(const rq_hfile_scanner *s, const rq_hfile_block *b, const rq__sidecar *side,
                     const rq_cell *key, uint32_t *ret, rq_error *why)
{
    rq_cell cell;
    size_t next;
    uint32_t low;
    uint32_t high;
    rq__sidecar_narrow(side, key, &low, &high);
    const uint32_t *at = rq__sidecar_at(side);
    if (low < high) rq__sidecar_prefetch_cell(side, low, b->payload);
    /* For a key at the beginning of its row the first candidate is mostly the result, and it is
     * read in any case: a binary search would touch other cells of the row. */
    bool at_low = key->qualifier_len == 0;
    while (low < high) {
        uint32_t mid = at_low ? low : low + (high - low) / 2;
        at_low = false;
        RQ_TRY(rq__scanner_cell_at(s, b, at[mid], &cell, &next, why));
        if (rq_cell_compare_key(s->reader->info.order, &cell, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *ret = low;
    return RQ_OK;
}

/* --- the same over differences ---------------------------------------------------------------- */
/* In a delta-encoded file a move ends in `spare`, which holds the whole key; the scanner's cell
 * points into `walk` until the move is complete, and then the two are exchanged. */

static rq_err delta_ready(rq_hfile_scanner *s)
{
    if (RQ_LIKELY(s->spare != NULL)) return RQ_OK;
    rq__delta *both = calloc(2, sizeof(*both));
    if (both == NULL) return RQ_E_NO_MEMORY;
    s->walk = both;
    s->spare = both + 1;
    return RQ_OK;
}

/* Sets the target's cell from the spare. */
static void delta_arrive(const rq_hfile_scanner *s, rq__target *t)
{
    t->pos = s->spare->pos;
    t->next_pos = s->spare->next_pos;
    t->cell = s->spare->cell;
}

static rq_err delta_first(rq_hfile_scanner *s, rq__target *t, rq_error *why)
{
    RQ_TRY(delta_ready(s));
    rq__delta_rewind(s->spare);
    RQ_TRY(rq__scanner_delta_next(s, t->block, s->spare, why));
    delta_arrive(s, t);
    return RQ_OK;
}

/* Moves to the first cell behind the spare's that is not before the key, and at or behind `from`. */
static rq_err delta_walk_to(rq_hfile_scanner *s, rq__target *t, const rq_cell *key, size_t from,
                            bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    *ret_found = false;
    while (s->spare->next_pos < b->payload_len) {
        RQ_TRY(rq__scanner_delta_next(s, b, s->spare, why));
        if (s->spare->pos < from ||
            rq_cell_compare_key(s->reader->info.order, &s->spare->cell, key) < 0)
            continue;
        delta_arrive(s, t);
        *ret_found = true;
        return RQ_OK;
    }
    return RQ_OK;
}

static rq_err delta_find_from(rq_hfile_scanner *s, rq__target *t, size_t pos, const rq_cell *key,
                              bool *ret_found, rq_error *why)
{
    RQ_TRY(delta_ready(s));
    rq__delta_rewind(s->spare);
    return delta_walk_to(s, t, key, pos, ret_found, why);
}

/* With `from_here` the block is the scanner's own, and cells up to the current one are skipped. */
static rq_err delta_find_at_or_behind(rq_hfile_scanner *s, rq__target *t, bool from_here,
                                      const rq_cell *key, bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(delta_ready(s));
    RQ_TRY(rq__scanner_sidecar(s, b, false, &side, why));
    int64_t at = side == NULL ? -1 : rq__delta_checkpoint_before(side, s->reader->info.order, key);
    if (from_here && (at < 0 || rq__delta_checkpoint_pos(side, (uint32_t)at) <= s->pos))
        RQ_TRY(rq__delta_copy(s->spare, s->walk));
    else if (at >= 0)
        RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, rq__payload_of(b)));
    else
        rq__delta_rewind(s->spare);
    return delta_walk_to(s, t, key, 0, ret_found, why);
}

static rq_err delta_find_last_before(rq_hfile_scanner *s, rq__target *t, const rq_cell *key,
                                     bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(delta_ready(s));
    RQ_TRY(rq__scanner_sidecar(s, b, true, &side, why));
    if (side == NULL) return RQ_E_NO_MEMORY;
    int64_t at = (int64_t)side->count - 1;
    if (key != NULL) at = rq__delta_checkpoint_before(side, s->reader->info.order, key);
    *ret_found = at >= 0;
    if (at < 0) return RQ_OK;
    /* Walks once to find the position and once more to get there, because a walk cannot step
     * back. */
    RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, rq__payload_of(b)));
    uint32_t steps = 0;
    for (; s->spare->next_pos < b->payload_len; steps++) {
        RQ_TRY(rq__scanner_delta_next(s, b, s->spare, why));
        if (key != NULL && rq_cell_compare_key(s->reader->info.order, &s->spare->cell, key) >= 0)
            break;
    }
    RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, rq__payload_of(b)));
    for (; steps > 0; steps--)
        RQ_TRY(rq__scanner_delta_next(s, b, s->spare, why));
    delta_arrive(s, t);
    return RQ_OK;
}

/* --- in either kind of block ------------------------------------------------------------------ */

rq_err rq__scanner_find_first(rq_hfile_scanner *s, rq__target *t, rq_error *why)
{
    if (rq__scanner_is_delta(s)) return delta_first(s, t, why);
    t->pos = 0;
    return rq__scanner_cell_at(s, t->block, 0, &t->cell, &t->next_pos, why);
}

static inline bool is_row_before(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
    size_t len = a_len < b_len ? a_len : b_len;
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        uint64_t x = rq_get_be64(a + i), y = rq_get_be64(b + i);
        if (x != y) return x < y;
    }
    for (; i < len; i++)
        if (a[i] != b[i]) return a[i] < b[i];
    return a_len < b_len;
}

/* The offset of the first cell, from `pos` on, whose row sorts at or after the key's row. The first
 * search of a block walks through half of it here, so only a cell's lengths and row are read; a
 * malformed cell ends the walk, and is reported by the code that parses it. */
static size_t skip_rows_before(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                               const rq_cell *key)
{
    while (pos < b->payload_len) {
        rq_slice row;
        size_t len =
            rq__plain_len(b->payload + pos, b->payload_len - pos, rq__scanner_shape(s), &row);
        if (len == 0 || !is_row_before(row.ptr, row.len, key->row, key->row_len)) break;
        pos += len;
    }
    return pos;
}

rq_err rq__scanner_find_from(rq_hfile_scanner *s, rq__target *t, size_t pos, const rq_cell *key,
                             bool *ret_found, rq_error *why)
{
    if (rq__scanner_is_delta(s)) return delta_find_from(s, t, pos, key, ret_found, why);
    for (; pos < t->block->payload_len; pos = t->next_pos) {
        RQ_TRY(rq__scanner_cell_at(s, t->block, pos, &t->cell, &t->next_pos, why));
        if (rq_cell_compare_key(s->reader->info.order, &t->cell, key) >= 0) {
            t->pos = pos;
            *ret_found = true;
            return RQ_OK;
        }
    }
    *ret_found = false;
    return RQ_OK;
}

rq_err rq__scanner_find_at_or_behind(rq_hfile_scanner *s, rq__target *t, bool from_here,
                                     const rq_cell *key, bool *ret_found, rq_error *why)
{
    if (rq__scanner_is_delta(s))
        return delta_find_at_or_behind(s, t, from_here, key, ret_found, why);
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(rq__scanner_sidecar(s, b, false, &side, why));
    if (side != NULL) {
        uint32_t i;
        RQ_TRY(search(s, b, side, key, &i, why));
        *ret_found = i < side->count;
        if (!*ret_found) return RQ_OK;
        t->pos = rq__sidecar_at(side)[i];
        return rq__scanner_cell_at(s, b, t->pos, &t->cell, &t->next_pos, why);
    }
    size_t pos = from_here ? s->next_pos : 0;
    if (s->reader->info.order == RQ_ORDER_DEFAULT) pos = skip_rows_before(s, b, pos, key);
    return rq__scanner_find_from(s, t, pos, key, ret_found, why);
}

rq_err rq__scanner_find_last_before(rq_hfile_scanner *s, rq__target *t, const rq_cell *key,
                                    bool *ret_found, rq_error *why)
{
    if (rq__scanner_is_delta(s)) return delta_find_last_before(s, t, key, ret_found, why);
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(rq__scanner_sidecar(s, b, true, &side, why));
    if (side == NULL) return RQ_E_NO_MEMORY;
    uint32_t i = side->count;
    if (key != NULL) RQ_TRY(search(s, b, side, key, &i, why));
    *ret_found = i > 0;
    if (i == 0) return RQ_OK;
    t->pos = rq__sidecar_at(side)[i - 1];
    return rq__scanner_cell_at(s, b, t->pos, &t->cell, &t->next_pos, why);
}
