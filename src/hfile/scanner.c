/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A position in an HFile: the innermost step of every Get and Scan.
 *
 * A move finds a data block (scanner_index.c) and a cell inside it (scanner_block.c); this file combines
 * the two for each kind of move, and changes the scanner at the end.
 */
#include "hfile/scanner_priv.h"
#include "hfile/window.h"

#include <stdlib.h>

/* --- life ------------------------------------------------------------------------------------- */

void rq__hfile_scanner_release(rq_hfile_scanner *s)
{
    rq__lent_return(rq__scanner_leaf(s));
    rq__hfile_block_unref(s->block);
    s->leaf = s->block = NULL;
}

void rq_hfile_scanner_init(rq_hfile_scanner *s, rq_hfile_reader *r)
{
    memset(s, 0, sizeof(*s));
    s->reader = rq_hfile_reader_ref(r);
    s->owns_reader = true;
}

void rq_hfile_scanner_init_borrowed(rq_hfile_scanner *s, rq_hfile_reader *r)
{
    memset(s, 0, sizeof(*s));
    s->reader = r;
}

void rq_hfile_scanner_clear(rq_hfile_scanner *s)
{
    rq__hfile_scanner_release(s);
    if (s->follows) rq__reader_follow(s->reader, false);
    if (s->owns_reader) rq_hfile_reader_unref(s->reader);
    s->follows = false;
    s->reader = NULL;
    if (s->walk == NULL) return;
    rq__delta_clear(s->walk);
    rq__delta_clear(s->spare);
    free(s->walk < s->spare ? s->walk : s->spare); /* one allocation */
    s->walk = s->spare = NULL;
}

/* --- the end of a move ------------------------------------------------------------------------ */

static inline void set_position(rq_hfile_scanner *s, const rq__target *t)
{
    s->pos = (uint32_t)t->pos;
    s->next_pos = (uint32_t)t->next_pos;
    s->cell = t->cell;
    rq__delta *was = s->walk; /* NULL, both, but in delta-encoded files */
    s->walk = s->spare;
    s->spare = was;
}

/* Ends a move: the scanner takes over the target, stays where it was, or becomes invalid. */
static rq_err finish_move(rq_hfile_scanner *s, rq__target *t, rq_err rc)
{
    if (rc == RQ_E_AGAIN) {
        rq__target_drop(t);
        return rc;
    }
    /* Other scans of the file, such as a compaction, leave the windows to the scans that asked for them. */
    if (s->trail.planned != 0 && s->block != NULL && s->block != t->block)
        rq__window_release(s->reader, s->block->offset);
    rq__hfile_scanner_release(s);
    if (rc != RQ_OK) {
        rq__target_drop(t);
        return rc;
    }
    s->leaf = t->leaf.block;
    s->owns_leaf = t->leaf.owned;
    s->block = t->block;
    memcpy(s->path, t->path, s->reader->info.data_index_levels * sizeof(s->path[0]));
    set_position(s, t);
    return RQ_UNLIKELY(s->reader->half != NULL) ? rq__half_check(s) : RQ_OK;
}

/* Restricts a seek key to the half: a forward seek goes to the half's first row or behind it, a
 * backward seek to a cell before the half's end. */
static inline const rq_cell *within_half(const rq_hfile_reader *r, const rq_cell *key, bool forward)
{
    const rq__half *h = r->half;
    if (RQ_LIKELY(h == NULL) || h->top != forward) return key;
    int c = rq_cell_compare_key(r->info.order, key, &h->key);
    return (forward ? c < 0 : c > 0) ? &h->key : key;
}

/* Replaces the target's block by its neighbour. */
static rq_err step_target(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__edge side, rq__target *t,
                          rq_error *why)
{
    rq__target beside = {0};
    rq_err rc = rq__scanner_step(s, ctx, t->leaf, t->path, side, &beside, why);
    rq__target_drop(t);
    *t = beside;
    return rc;
}

/* --- seeking ---------------------------------------------------------------------------------- */

rq_err rq_hfile_scanner_seek_first(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    rq__target t = {0};
    if (RQ_UNLIKELY(s->reader->half != NULL) && s->reader->half->top)
        return rq_hfile_scanner_seek(s, ctx, &s->reader->half->key, why);
    rq_err rc = rq__scanner_descend(s, ctx, (rq__choice){.edge = RQ__EDGE_FIRST}, &t, why);
    if (rc == RQ_OK) rc = rq__scanner_find_first(s, &t, why);
    return finish_move(s, &t, rc);
}

rq_hfile_place rq_hfile_scanner_place(const rq_hfile_scanner *s)
{
    const rq_hfile_reader *r = s->reader;
    if (s->block == NULL || r->cached == NULL) return (rq_hfile_place){0};
    rq_hfile_place place = {
        .file = rq__reader_file_id(r),
        .block = s->block->offset,
        .pos = s->pos,
        .trail = s->trail,
    };
    memcpy(place.path, s->path, r->info.data_index_levels * sizeof(s->path[0]));
    return place;
}

uint64_t rq_hfile_scanner_offset(const rq_hfile_scanner *s)
{
    return s->block == NULL ? 0 : s->block->offset;
}

bool rq_hfile_scanner_is_of(const rq_hfile_scanner *s, const rq_hfile_place *place)
{
    return s->reader->cached != NULL && place->file == rq__reader_file_id(s->reader);
}

/* Whether the block behind entry `at` of the leaf begins at or before the key, so that the key is not in
 * this one. */
static rq_err next_begins_before(const rq_hfile_scanner *s, rq__lent_block leaf, uint32_t at,
                                 const rq_cell *key, bool *ret, rq_error *why)
{
    rq__index_view v = rq__index_view_of(leaf.block->payload);
    rq_cell next_key;
    *ret = false;
    if (at + 1 >= v.count) return RQ_OK;
    RQ_TRY(rq_cell_parse_stored_key(rq__index_at(v, at + 1).key, &next_key, why));
    *ret = rq_cell_compare_key(s->reader->info.order, &next_key, key) <= 0;
    return RQ_OK;
}

/* Moves the target to the first cell of the place's block that is neither before the place nor before
 * the key. Of many equal keys, which may take several blocks, a search by key finds the first. */
static rq_err find_at_place(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                            const rq_hfile_place *place, rq__target *t, bool *ret_found,
                            rq_error *why)
{
    rq__lent_block root;
    bool is_later;
    *ret_found = false;
    RQ_TRY(rq__reader_root(s->reader, ctx, &root, why));
    RQ_TRY(rq__scanner_descend_to_leaf(s, ctx, root, 0, (rq__choice){.path = place->path}, t, why));
    uint32_t at = t->path[s->reader->info.data_index_levels - 1];
    RQ_TRY(next_begins_before(s, t->leaf, at, key, &is_later, why));
    if (is_later) return RQ_OK;
    RQ_TRY(rq__scanner_load(s, ctx, t, why));
    return rq__scanner_find_from(s, t, place->pos, key, ret_found, why);
}

rq_err rq_hfile_scanner_seek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                             rq_error *why)
{
    return rq_hfile_scanner_seek_from(s, ctx, key, NULL, why);
}

rq_err rq_hfile_scanner_seek_from(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                  const rq_hfile_place *place, rq_error *why)
{
    rq__target t = {0};
    bool found = true, left_place = false;
    key = within_half(s->reader, key, true);
    if (place != NULL && place->file != 0 && rq_hfile_scanner_is_of(s, place)) {
        s->trail = place->trail;
        rq_err rc = find_at_place(s, ctx, key, place, &t, &found, why);
        if (rc != RQ_OK || found) return finish_move(s, &t, rc);
        rq__target_drop(&t);
        left_place = true;
    }
    rq_err rc = rq__scanner_descend(s, ctx, (rq__choice){.key = key}, &t, why);
    if (rc == RQ_OK) rc = rq__scanner_find_at_or_behind(s, &t, false, key, &found, why);
    if (rc == RQ_OK && !found) {
        /* The next block's first cell: its index key is behind the key, so the cell is too. */
        rc = step_target(s, ctx, RQ__EDGE_FIRST, &t, why);
        if (rc == RQ_OK) rc = rq__scanner_find_first(s, &t, why);
    }
    rc = finish_move(s, &t, rc);
    if (rc == RQ_OK && left_place && place->trail.planned != 0)
        rq__window_release(s->reader, place->block);
    return rc;
}

rq_err rq_hfile_scanner_reseek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                               rq_error *why)
{
    if (s->block == NULL) return rq_hfile_scanner_seek(s, ctx, key, why);
    rq_cell_order order = s->reader->info.order;
    if (rq_cell_compare_key(order, &s->cell, key) >= 0) return RQ_OK;
    /* In this block, if the next entry in the leaf begins behind the key. */
    uint32_t at = s->path[s->reader->info.data_index_levels - 1];
    if (at + 1 < rq__index_view_of(s->leaf->payload).count) {
        bool is_later;
        RQ_TRY(next_begins_before(s, rq__scanner_leaf(s), at, key, &is_later, why));
        if (is_later) return rq_hfile_scanner_seek(s, ctx, key, why);
        rq__target t = {.block = s->block};
        bool found;
        rq_err rc = rq__scanner_find_at_or_behind(s, &t, true, key, &found, why);
        if (rc == RQ_OK && found) {
            set_position(s, &t);
            return RQ_UNLIKELY(s->reader->half != NULL) ? rq__half_check(s) : RQ_OK;
        }
        if (rc != RQ_OK) {
            rq__hfile_scanner_release(s);
            return rc;
        }
    }
    return rq_hfile_scanner_seek(s, ctx, key, why);
}

rq_err rq_hfile_scanner_seek_before(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                    rq_error *why)
{
    rq__target t = {0};
    bool found = true;
    key = within_half(s->reader, key, false);
    /* A key of this form is the first possible one of its row or column, and no cell's: a block with this
     * index key only has cells behind it, so the search begins in the block before. A cell's key may be
     * the index key of a block that has cells before the key (rq__index_key_behind). */
    bool before = key->type == RQ_TYPE_MAXIMUM && key->timestamp == RQ_TIMESTAMP_LATEST;
    rq_err rc = rq__scanner_descend(s, ctx, (rq__choice){.key = key, .before = before}, &t, why);
    if (rc == RQ_OK) rc = rq__scanner_find_last_before(s, &t, key, &found, why);
    if (rc == RQ_OK && !found) {
        /* The index key may be shorter than the first cell's key, and the key may lie between
         * them. */
        rc = step_target(s, ctx, RQ__EDGE_LAST, &t, why);
        if (rc == RQ_OK) rc = rq__scanner_find_last_before(s, &t, NULL, &found, why);
    }
    return finish_move(s, &t, rc);
}

/* --- stepping --------------------------------------------------------------------------------- */

static rq_err next_block(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    rq__target t = {0};
    rq_err rc = rq__scanner_step(s, ctx, rq__scanner_leaf(s), s->path, RQ__EDGE_FIRST, &t, why);
    if (rc == RQ_OK) rc = rq__scanner_find_first(s, &t, why);
    return finish_move(s, &t, rc);
}

/* In place: no block can be missing, and the previous cell is no longer needed. */
static rq_err next_delta(rq_hfile_scanner *s, rq_error *why)
{
    rq_err rc = rq__scanner_delta_next(s, s->block, s->walk, why);
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        rq__hfile_scanner_release(s);
        return rc;
    }
    s->pos = s->walk->pos;
    s->next_pos = s->walk->next_pos;
    s->cell = s->walk->cell;
    return RQ_UNLIKELY(s->reader->half != NULL) ? rq__half_check(s) : RQ_OK;
}

rq_err rq_hfile_scanner_next(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    RQ_ASSERT(s->block != NULL);
    size_t pos = s->next_pos;
    if (RQ_UNLIKELY(pos >= s->block->payload_len)) return next_block(s, ctx, why);
    if (rq__scanner_is_delta(s)) return next_delta(s, why);
    size_t next = 0;
    rq_err rc = rq__scanner_cell_at(s, s->block, pos, &s->cell, &next, why);
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        rq__hfile_scanner_release(s);
        return rc;
    }
    s->pos = (uint32_t)pos;
    s->next_pos = (uint32_t)next;
    return RQ_UNLIKELY(s->reader->half != NULL) ? rq__half_check(s) : RQ_OK;
}
