/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A position in an HFile: the innermost step of every Get and Scan.
 *
 *   root ─ (intermediate …) ─ leaf ─ data block ─ cell
 *
 * path[level] is the entry taken in each index level. The last index block (`leaf`; the root if
 * there is one level) stays pinned with the data block, so that moving to the next block needs no
 * search. Blocks above the leaf are looked up again in the cache when a leaf ends, once in some
 * thousand blocks.
 *
 * Every move first collects all blocks it needs in a `target` and only then changes the scanner, so
 * that RQ_E_AGAIN leaves it unchanged.
 *
 * Cells are checked as they are parsed: a payload's checksum proves that it is what was written,
 * not that it is well-formed.
 */
#include "hfile/reader.h"

#include "hfile/plain.h"
#include "hfile/reader_priv.h"

#include <stdlib.h>

/* --- a place in a block ----------------------------------------------------------------------- */

/* The destination of a move. Its blocks are references owned by the target until it is taken or
 * dropped, except an index block that the reader holds. */
typedef struct target {
    rq__lent_block leaf;
    rq_hfile_block *block;
    uint32_t path[RQ_HFILE_INDEX_LEVELS_MAX];
    size_t pos, next_pos;
    rq_cell cell;
} target;

static void target_drop(target *t)
{
    rq__lent_return(t->leaf);
    rq__hfile_block_unref(t->block);
    t->leaf = (rq__lent_block){0};
    t->block = NULL;
}

static rq_err bad_cell(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                       rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %llu (%s): malformed cell at byte %zu",
                   s->reader->path, (unsigned long long)b->offset,
                   rq_block_kind_name((rq_block_kind)b->kind), pos);
}

static inline rq__plain_shape shape_of(const rq_hfile_scanner *s)
{
    return (rq__plain_shape){s->reader->info.has_tags, s->reader->info.has_mvcc};
}

static inline rq_err cell_at(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                             rq_cell *ret, size_t *ret_next, rq_error *why)
{
    size_t len = rq__plain_parse(b->payload + pos, b->payload_len - pos, shape_of(s), ret);
    if (RQ_UNLIKELY(len == 0)) return bad_cell(s, b, pos, why);
    *ret_next = pos + len;
    return RQ_OK;
}

typedef struct block_parser {
    const rq_hfile_scanner *s;
    const rq_hfile_block *b;
    rq_error *why;
} block_parser;

static rq_err parse_for_sidecar(void *arg, uint32_t at, rq_cell *ret)
{
    block_parser *p = arg;
    size_t next;
    return cell_at(p->s, p->b, at, ret, &next, p->why);
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
        size_t len = rq__plain_len(b->payload + pos, b->payload_len - pos, shape_of(s), &row);
        pos += len;
        rq_err rc = len > 0 ? RQ_OK : cell_at(s, b, pos, &cell, &pos, why);
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

static inline rq_slice payload_of(const rq_hfile_block *b)
{
    return rq_slice_of(b->payload, b->payload_len);
}

static inline bool is_delta(const rq_hfile_scanner *s)
{
    return rq__encoding_is_delta(s->reader->info.encoding);
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
    } else if (is_delta(s)) {
        rc =
            rq__delta_checkpoints(b->slab, rq__reader_delta_shape(s->reader), payload_of(b), &side);
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

/* The sidecar, if the block has one or this is its second search. */
static rq_err sidecar_of(const rq_hfile_scanner *s, rq_hfile_block *b, bool wanted,
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
        RQ_TRY(cell_at(s, b, at[mid], &cell, &next, why));
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

static rq_err delta_next(const rq_hfile_scanner *s, const rq_hfile_block *b, rq__delta *d,
                         rq_error *why)
{
    rq_err rc = rq__delta_next(d, rq__reader_delta_shape(s->reader), payload_of(b));
    return RQ_UNLIKELY(rc == RQ_E_CORRUPT) ? bad_cell(s, b, d->pos, why) : rc;
}

/* Sets the target's cell from the spare. */
static void delta_arrive(const rq_hfile_scanner *s, target *t)
{
    t->pos = s->spare->pos;
    t->next_pos = s->spare->next_pos;
    t->cell = s->spare->cell;
}

static rq_err delta_first(rq_hfile_scanner *s, target *t, rq_error *why)
{
    RQ_TRY(delta_ready(s));
    rq__delta_rewind(s->spare);
    RQ_TRY(delta_next(s, t->block, s->spare, why));
    delta_arrive(s, t);
    return RQ_OK;
}

/* Moves to the first cell behind the spare's that is not before the key, and at or behind `from`. */
static rq_err delta_walk_to(rq_hfile_scanner *s, target *t, const rq_cell *key, size_t from,
                            bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    *ret_found = false;
    while (s->spare->next_pos < b->payload_len) {
        RQ_TRY(delta_next(s, b, s->spare, why));
        if (s->spare->pos < from ||
            rq_cell_compare_key(s->reader->info.order, &s->spare->cell, key) < 0)
            continue;
        delta_arrive(s, t);
        *ret_found = true;
        return RQ_OK;
    }
    return RQ_OK;
}

static rq_err delta_find_from(rq_hfile_scanner *s, target *t, size_t pos, const rq_cell *key,
                              bool *ret_found, rq_error *why)
{
    RQ_TRY(delta_ready(s));
    rq__delta_rewind(s->spare);
    return delta_walk_to(s, t, key, pos, ret_found, why);
}

/* With `from_here` the block is the scanner's own, and cells up to the current one are skipped. */
static rq_err delta_find_at_or_behind(rq_hfile_scanner *s, target *t, bool from_here,
                                      const rq_cell *key, bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(delta_ready(s));
    RQ_TRY(sidecar_of(s, b, false, &side, why));
    int64_t at = side == NULL ? -1 : rq__delta_checkpoint_before(side, s->reader->info.order, key);
    if (from_here && (at < 0 || rq__delta_checkpoint_pos(side, (uint32_t)at) <= s->pos))
        RQ_TRY(rq__delta_copy(s->spare, s->walk));
    else if (at >= 0)
        RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, payload_of(b)));
    else
        rq__delta_rewind(s->spare);
    return delta_walk_to(s, t, key, 0, ret_found, why);
}

static rq_err delta_find_last_before(rq_hfile_scanner *s, target *t, const rq_cell *key,
                                     bool *ret_found, rq_error *why)
{
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(delta_ready(s));
    RQ_TRY(sidecar_of(s, b, true, &side, why));
    if (side == NULL) return RQ_E_NO_MEMORY;
    int64_t at = (int64_t)side->count - 1;
    if (key != NULL) at = rq__delta_checkpoint_before(side, s->reader->info.order, key);
    *ret_found = at >= 0;
    if (at < 0) return RQ_OK;
    /* Walks once to find the position and once more to get there, because a walk cannot step
     * back. */
    RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, payload_of(b)));
    uint32_t steps = 0;
    for (; s->spare->next_pos < b->payload_len; steps++) {
        RQ_TRY(delta_next(s, b, s->spare, why));
        if (key != NULL && rq_cell_compare_key(s->reader->info.order, &s->spare->cell, key) >= 0)
            break;
    }
    RQ_TRY(rq__delta_restore(s->spare, side, (uint32_t)at, payload_of(b)));
    for (; steps > 0; steps--)
        RQ_TRY(delta_next(s, b, s->spare, why));
    delta_arrive(s, t);
    return RQ_OK;
}

/* --- in either kind of block ------------------------------------------------------------------ */

/* Moves the target to its block's first cell. */
static rq_err find_first(rq_hfile_scanner *s, target *t, rq_error *why)
{
    if (is_delta(s)) return delta_first(s, t, why);
    t->pos = 0;
    return cell_at(s, t->block, 0, &t->cell, &t->next_pos, why);
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

/* The offset of the first cell at or behind `pos` whose row is not before the key's. The first
 * search of a block walks through half of it here, so only a cell's lengths and row are read; a
 * malformed cell ends the walk, and is reported by the code that parses it. */
static size_t skip_rows_before(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                               const rq_cell *key)
{
    while (pos < b->payload_len) {
        rq_slice row;
        size_t len = rq__plain_len(b->payload + pos, b->payload_len - pos, shape_of(s), &row);
        if (len == 0 || !is_row_before(row.ptr, row.len, key->row, key->row_len)) break;
        pos += len;
    }
    return pos;
}

/* Moves the target to the first cell of its block that is neither before `pos` nor before the key. */
static rq_err find_from(rq_hfile_scanner *s, target *t, size_t pos, const rq_cell *key,
                        bool *ret_found, rq_error *why)
{
    if (is_delta(s)) return delta_find_from(s, t, pos, key, ret_found, why);
    for (; pos < t->block->payload_len; pos = t->next_pos) {
        RQ_TRY(cell_at(s, t->block, pos, &t->cell, &t->next_pos, why));
        if (rq_cell_compare_key(s->reader->info.order, &t->cell, key) >= 0) {
            t->pos = pos;
            *ret_found = true;
            return RQ_OK;
        }
    }
    *ret_found = false;
    return RQ_OK;
}

/* Moves the target to the first cell of its block at or behind the key; with `from_here` the block
 * is the scanner's own and its current cell is before the key. *ret_found is false if there is
 * none. */
static rq_err find_at_or_behind(rq_hfile_scanner *s, target *t, bool from_here, const rq_cell *key,
                                bool *ret_found, rq_error *why)
{
    if (is_delta(s)) return delta_find_at_or_behind(s, t, from_here, key, ret_found, why);
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(sidecar_of(s, b, false, &side, why));
    if (side != NULL) {
        uint32_t i;
        RQ_TRY(search(s, b, side, key, &i, why));
        *ret_found = i < side->count;
        if (!*ret_found) return RQ_OK;
        t->pos = rq__sidecar_at(side)[i];
        return cell_at(s, b, t->pos, &t->cell, &t->next_pos, why);
    }
    size_t pos = from_here ? s->next_pos : 0;
    if (s->reader->info.order == RQ_ORDER_DEFAULT) pos = skip_rows_before(s, b, pos, key);
    return find_from(s, t, pos, key, ret_found, why);
}

/* Moves the target to the last cell of its block that is before the key, or to the last one if key
 * is NULL. */
static rq_err find_last_before(rq_hfile_scanner *s, target *t, const rq_cell *key, bool *ret_found,
                               rq_error *why)
{
    if (is_delta(s)) return delta_find_last_before(s, t, key, ret_found, why);
    rq_hfile_block *b = t->block;
    rq__sidecar *side;
    RQ_TRY(sidecar_of(s, b, true, &side, why));
    if (side == NULL) return RQ_E_NO_MEMORY;
    uint32_t i = side->count;
    if (key != NULL) RQ_TRY(search(s, b, side, key, &i, why));
    *ret_found = i > 0;
    if (i == 0) return RQ_OK;
    t->pos = rq__sidecar_at(side)[i - 1];
    return cell_at(s, b, t->pos, &t->cell, &t->next_pos, why);
}

/* --- the index -------------------------------------------------------------------------------- */

typedef enum edge { EDGE_FIRST, EDGE_LAST } edge;

static rq_block_kind kind_of_level(const rq_hfile_reader *r, uint32_t level)
{
    return level + 1 == r->info.data_index_levels ? RQ_BLOCK_LEAF_INDEX
                                                  : RQ_BLOCK_INTERMEDIATE_INDEX;
}

/* Loads the child at path[level] of `parent`: the index block of the next level. */
static rq_err child(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block parent, uint32_t entry,
                    uint32_t level, rq__lent_block *ret, rq_error *why)
{
    rq__index_entry e = rq__index_at(rq__index_view_of(parent.block->payload), entry);
    size_t slot = level == 1 ? s->reader->held_children + entry : SIZE_MAX;
    return rq__reader_at_hand(s->reader, ctx, slot, e.offset, e.size,
                              kind_of_level(s->reader, level), ret, why);
}

RQ_COLD static rq_err has_changed(const rq_hfile_scanner *s, const rq_hfile_block *b, rq_error *why)
{
    return rq__fail_block(why, s->reader, b,
                          "the block has fewer entries than when it was read first");
}

/* How a descent chooses an entry of an index block. */
typedef struct choice {
    const uint32_t *path; /* the entries themselves; NULL: by key */
    const rq_cell *key;   /* NULL: by edge */
    bool before;          /* strictly before the key */
    edge edge;
} choice;

/* *ret: of the entries of an index block. */
static rq_err choose(const rq_hfile_scanner *s, rq_hfile_block *b, uint32_t level, choice c,
                     uint32_t *ret, rq_error *why)
{
    rq__index_view v = rq__index_view_of(b->payload);
    rq_cell_order order = s->reader->info.order;
    if (c.path != NULL) {
        if (c.path[level] >= v.count) return has_changed(s, b, why);
        *ret = c.path[level];
        return RQ_OK;
    }
    if (c.key == NULL) {
        *ret = c.edge == EDGE_FIRST ? 0 : v.count - 1;
        return RQ_OK;
    }
    rq__sidecar *marks;
    RQ_TRY(sidecar_of(s, b, false, &marks, why));
    int64_t at = c.before ? rq__index_floor_before(v, marks, order, c.key)
                          : rq__index_floor(v, marks, order, c.key);
    *ret = at < 0 ? 0 : (uint32_t)at;
    return RQ_OK;
}

/* --- reading ahead ---------------------------------------------------------------------------- */
/* The operating system's read-ahead is turned on for a scanner that has moved through some blocks in
 * sequence. If it were on from the beginning, each of many short scans, which read two adjacent blocks,
 * would make it read four. GAP_MAX: index and bloom blocks may lie between two data blocks. */

#define FOLLOW_AFTER 4 /* blocks; a scan of 100 rows of 1 kB reads up to three */
#define GAP_MAX ((uint64_t)1 << 20)

/* The trail behind a move to this block. */
static rq_hfile_trail trail_to(const rq_hfile_trail *from, uint64_t offset, uint32_t size)
{
    rq_hfile_trail to = {.begun = offset, .end = offset + size};
    bool stays = from->end == to.end;
    bool follows = from->end != 0 && offset >= from->end && offset - from->end <= GAP_MAX;
    if (stays || follows) to.begun = from->begun;
    return to;
}

static void follow(rq_hfile_scanner *s, bool on)
{
    if (RQ_LIKELY(s->follows == on)) return;
    s->follows = on;
    rq__reader_follow(s->reader, on);
}

static rq_err load_data(rq_hfile_scanner *s, rq_read_ctx *ctx, target *t, rq_error *why)
{
    uint32_t last = s->reader->info.data_index_levels - 1;
    rq__index_entry e = rq__index_at(rq__index_view_of(t->leaf.block->payload), t->path[last]);
    if (s->block != NULL && s->block->offset == e.offset) {
        t->block = rq__block_ref(s->block);
        return RQ_OK;
    }
    rq_hfile_trail trail = trail_to(&s->trail, e.offset, e.size);
    ctx->follows = trail.end - trail.begun >= FOLLOW_AFTER * (uint64_t)e.size;
    follow(s, ctx->follows);
    rq_err rc = rq__reader_block(s->reader, ctx, e.offset, e.size, RQ_BLOCK_DATA, &t->block, why);
    ctx->follows = false;
    if (rc == RQ_OK) s->trail = trail;
    return rc;
}

/* Descends from index block `b` of `level` (whose reference it takes over) to the last index block. */
static rq_err descend_to_leaf(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block b,
                              uint32_t level, choice c, target *t, rq_error *why)
{
    uint32_t levels = s->reader->info.data_index_levels;
    for (;; level++) {
        rq_err rc = choose(s, b.block, level, c, &t->path[level], why);
        if (rc == RQ_OK && level + 1 == levels) break;
        rq__lent_block below;
        if (rc == RQ_OK) rc = child(s, ctx, b, t->path[level], level + 1, &below, why);
        rq__lent_return(b);
        RQ_TRY(rc);
        b = below;
    }
    t->leaf = b;
    return RQ_OK;
}

static rq_err descend(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block b, uint32_t level,
                      choice c, target *t, rq_error *why)
{
    RQ_TRY(descend_to_leaf(s, ctx, b, level, c, t, why));
    return load_data(s, ctx, t, why);
}

static rq_err descend_from_root(rq_hfile_scanner *s, rq_read_ctx *ctx, choice c, target *t,
                                rq_error *why)
{
    if (s->reader->info.entry_count == 0) return RQ_E_END;
    rq__lent_block root;
    RQ_TRY(rq__reader_root(s->reader, ctx, &root, why));
    return descend(s, ctx, root, 0, c, t, why);
}

static inline rq__lent_block lend_again(rq__lent_block b)
{
    if (b.owned) (void)rq__block_ref(b.block);
    return b;
}

static inline rq__lent_block leaf_of(const rq_hfile_scanner *s)
{
    return (rq__lent_block){s->leaf, s->owns_leaf};
}

/* Moves to the data block next to that of (leaf, path); RQ_E_END at the file's edge. */
static rq_err step(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block leaf, const uint32_t *path,
                   edge side, target *t, rq_error *why)
{
    uint32_t levels = s->reader->info.data_index_levels;
    uint32_t last = levels - 1;
    bool forward = side == EDGE_FIRST; /* its neighbour's nearest edge */
    memcpy(t->path, path, levels * sizeof(path[0]));
    uint32_t count = rq__index_view_of(leaf.block->payload).count;
    if (forward ? path[last] + 1 < count : path[last] > 0) {
        t->path[last] = forward ? path[last] + 1 : path[last] - 1;
        t->leaf = lend_again(leaf);
        return load_data(s, ctx, t, why);
    }
    /* Goes down the path again to the lowest level that has a neighbour. */
    rq__lent_block turn = {0};
    uint32_t turn_level = 0;
    rq__lent_block b;
    if (last == 0) return RQ_E_END;
    RQ_TRY(rq__reader_root(s->reader, ctx, &b, why));
    rq_err rc = RQ_OK;
    for (uint32_t level = 0;; level++) {
        count = rq__index_view_of(b.block->payload).count;
        if (path[level] >= count) {
            rc = has_changed(s, b.block, why);
            break;
        }
        if (forward ? path[level] + 1 < count : path[level] > 0) {
            rq__lent_return(turn);
            turn = lend_again(b);
            turn_level = level;
        }
        if (level + 1 == last) break;
        rq__lent_block below;
        rc = child(s, ctx, b, path[level], level + 1, &below, why);
        if (rc != RQ_OK) break;
        rq__lent_return(b);
        b = below;
    }
    rq__lent_return(b);
    if (rc == RQ_OK && turn.block == NULL) rc = RQ_E_END;
    if (rc == RQ_OK) {
        t->path[turn_level] = forward ? path[turn_level] + 1 : path[turn_level] - 1;
        rc = child(s, ctx, turn, t->path[turn_level], turn_level + 1, &b, why);
    }
    rq__lent_return(turn);
    RQ_TRY(rc);
    return descend(s, ctx, b, turn_level + 1, (choice){.edge = side}, t, why);
}

/* --- moves ------------------------------------------------------------------------------------ */

static inline void set_position(rq_hfile_scanner *s, const target *t)
{
    s->pos = (uint32_t)t->pos;
    s->next_pos = (uint32_t)t->next_pos;
    s->cell = t->cell;
    rq__delta *was = s->walk; /* NULL, both, but in delta-encoded files */
    s->walk = s->spare;
    s->spare = was;
}

void rq__hfile_scanner_release(rq_hfile_scanner *s)
{
    rq__lent_return(leaf_of(s));
    rq__hfile_block_unref(s->block);
    s->leaf = s->block = NULL;
}

/* Ends a move: the scanner takes over the target, stays where it was, or becomes invalid. */
static rq_err finish_move(rq_hfile_scanner *s, target *t, rq_err rc)
{
    if (rc == RQ_E_AGAIN) {
        target_drop(t);
        return rc;
    }
    rq__hfile_scanner_release(s);
    if (rc != RQ_OK) {
        target_drop(t);
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
static rq_err step_target(rq_hfile_scanner *s, rq_read_ctx *ctx, edge side, target *t,
                          rq_error *why)
{
    target beside = {0};
    rq_err rc = step(s, ctx, t->leaf, t->path, side, &beside, why);
    target_drop(t);
    *t = beside;
    return rc;
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

rq_err rq_hfile_scanner_seek_first(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    target t = {0};
    if (RQ_UNLIKELY(s->reader->half != NULL) && s->reader->half->top)
        return rq_hfile_scanner_seek(s, ctx, &s->reader->half->key, why);
    rq_err rc = descend_from_root(s, ctx, (choice){.edge = EDGE_FIRST}, &t, why);
    if (rc == RQ_OK) rc = find_first(s, &t, why);
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
                            const rq_hfile_place *place, target *t, bool *ret_found, rq_error *why)
{
    rq__lent_block root;
    bool is_later;
    *ret_found = false;
    RQ_TRY(rq__reader_root(s->reader, ctx, &root, why));
    RQ_TRY(descend_to_leaf(s, ctx, root, 0, (choice){.path = place->path}, t, why));
    uint32_t at = t->path[s->reader->info.data_index_levels - 1];
    RQ_TRY(next_begins_before(s, t->leaf, at, key, &is_later, why));
    if (is_later) return RQ_OK;
    RQ_TRY(load_data(s, ctx, t, why));
    return find_from(s, t, place->pos, key, ret_found, why);
}

rq_err rq_hfile_scanner_seek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                             rq_error *why)
{
    return rq_hfile_scanner_seek_from(s, ctx, key, NULL, why);
}

rq_err rq_hfile_scanner_seek_from(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                  const rq_hfile_place *place, rq_error *why)
{
    target t = {0};
    bool found = true;
    key = within_half(s->reader, key, true);
    if (place != NULL && place->file != 0 && rq_hfile_scanner_is_of(s, place)) {
        s->trail = place->trail;
        rq_err rc = find_at_place(s, ctx, key, place, &t, &found, why);
        if (rc != RQ_OK || found) return finish_move(s, &t, rc);
        target_drop(&t);
    }
    rq_err rc = descend_from_root(s, ctx, (choice){.key = key}, &t, why);
    if (rc == RQ_OK) rc = find_at_or_behind(s, &t, false, key, &found, why);
    if (rc == RQ_OK && !found) {
        /* The next block's first cell: its index key is behind the key, so the cell is too. */
        rc = step_target(s, ctx, EDGE_FIRST, &t, why);
        if (rc == RQ_OK) rc = find_first(s, &t, why);
    }
    return finish_move(s, &t, rc);
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
        RQ_TRY(next_begins_before(s, leaf_of(s), at, key, &is_later, why));
        if (is_later) return rq_hfile_scanner_seek(s, ctx, key, why);
        target t = {.block = s->block};
        bool found;
        rq_err rc = find_at_or_behind(s, &t, true, key, &found, why);
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
    target t = {0};
    bool found = true;
    key = within_half(s->reader, key, false);
    /* A key of this form is the first possible one of its row or column, and no cell's: a block with this
     * index key only has cells behind it, so the search begins in the block before. A cell's key may be
     * the index key of a block that has cells before the key (rq__index_key_behind). */
    bool before = key->type == RQ_TYPE_MAXIMUM && key->timestamp == RQ_TIMESTAMP_LATEST;
    rq_err rc = descend_from_root(s, ctx, (choice){.key = key, .before = before}, &t, why);
    if (rc == RQ_OK) rc = find_last_before(s, &t, key, &found, why);
    if (rc == RQ_OK && !found) {
        /* The index key may be shorter than the first cell's key, and the key may lie between
         * them. */
        rc = step_target(s, ctx, EDGE_LAST, &t, why);
        if (rc == RQ_OK) rc = find_last_before(s, &t, NULL, &found, why);
    }
    return finish_move(s, &t, rc);
}

static rq_err next_block(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why)
{
    target t = {0};
    rq_err rc = step(s, ctx, leaf_of(s), s->path, EDGE_FIRST, &t, why);
    if (rc == RQ_OK) rc = find_first(s, &t, why);
    return finish_move(s, &t, rc);
}

/* In place: no block can be missing, and the previous cell is no longer needed. */
static rq_err next_delta(rq_hfile_scanner *s, rq_error *why)
{
    rq_err rc = delta_next(s, s->block, s->walk, why);
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
    if (is_delta(s)) return next_delta(s, why);
    size_t next;
    rq_err rc = cell_at(s, s->block, pos, &s->cell, &next, why);
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        rq__hfile_scanner_release(s);
        return rc;
    }
    s->pos = (uint32_t)pos;
    s->next_pos = (uint32_t)next;
    return RQ_UNLIKELY(s->reader->half != NULL) ? rq__half_check(s) : RQ_OK;
}

/* --- the middle of the file ------------------------------------------------------------------- */

rq_err rq_hfile_midkey(rq_hfile_reader *r, rq_read_ctx *ctx, rq_buf *out, rq_error *why)
{
    if (r->info.entry_count == 0 || r->half != NULL) return RQ_E_END;
    rq__lent_block lent;
    RQ_TRY(rq__reader_root(r, ctx, &lent, why));
    const rq_hfile_block *root = lent.block;
    rq__index_view v = rq__index_view_of(root->payload);
    rq_err rc;
    if (r->info.data_index_levels == 1) {
        rq_slice key = rq__index_at(v, v.count / 2).key;
        rc = rq_buf_append(out, key.ptr, key.len);
        rq__lent_return(lent);
        return rc;
    }
    const uint8_t *mid = root->payload + root->payload_len - RQ__INDEX_MID_KEY_LEN;
    uint32_t entry = rq_get_be32(mid + 12);
    rq_hfile_block *leaf;
    rc = rq__reader_block(r, ctx, rq_get_be64(mid), rq_get_be32(mid + 8), RQ_BLOCK_LEAF_INDEX,
                          &leaf, why);
    if (rc == RQ_OK) {
        v = rq__index_view_of(leaf->payload);
        if (entry < v.count) {
            rq_slice key = rq__index_at(v, entry).key;
            rc = rq_buf_append(out, key.ptr, key.len);
        } else {
            rc = rq__fail_block(why, r, root, "its middle key is outside the leaf it names");
        }
        rq__hfile_block_unref(leaf);
    }
    rq__lent_return(lent);
    return rc;
}
