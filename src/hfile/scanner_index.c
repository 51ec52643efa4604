/* SPDX-License-Identifier: Apache-2.0 */
/* A scanner's way through the index to a data block, and from one block to the next; read-ahead for scanners that
 * read in sequence.
 *
 *   root ─ (intermediate …) ─ leaf ─ data block
 *
 * path[level] is the entry taken in each index level. The last index block (`leaf`; the root if
 * there is one level) stays pinned with the data block, so that moving to the next block needs no
 * search. Blocks above the leaf are looked up again in the cache when a leaf ends, once in some
 * thousand blocks. */
#include "hfile/scanner_priv.h"
#include "hfile/window.h"

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

/* *ret: of the entries of an index block. */
static rq_err choose(const rq_hfile_scanner *s, rq_hfile_block *b, uint32_t level, rq__choice c,
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
        *ret = c.edge == RQ__EDGE_FIRST ? 0 : v.count - 1;
        return RQ_OK;
    }
    rq__sidecar *marks;
    RQ_TRY(rq__scanner_sidecar(s, b, false, &marks, why));
    int64_t at = c.before ? rq__index_floor_before(v, marks, order, c.key)
                          : rq__index_floor(v, marks, order, c.key);
    *ret = at < 0 ? 0 : (uint32_t)at;
    return RQ_OK;
}

/* --- reading ahead ---------------------------------------------------------------------------- */
/* For a scanner that has moved through FOLLOW_AFTER blocks in sequence, the next blocks are read in advance: by windows
 * (window.h), or by the operating system. Without this threshold each of many short scans, which read two adjacent
 * blocks, would read four. GAP_MAX: index and bloom blocks may lie between two data blocks.
 *
 * Windows are for scanners on event loops, which work while other threads read, and only for blocks that are not in
 * the cache. The bytes read in advance are at most as many as the scan has moved through (but PART_MIN are always
 * allowed), and at most AHEAD_MAX: they are wasted if the scan stops.
 *
 * For each next part of the file the vfs tells how it is best read (rq_file_plan_read). A scan does not change to the
 * operating system's read-ahead if the bytes OS_AHEAD_MAX farther on are to be read past the page cache: the operating
 * system would read far into parts that windows read, too. So a short part that the page cache is to keep is read by a
 * window through the page cache.
 *
 * When planning reaches the end of a leaf index block, it continues with the data blocks of the next leaf. A window of
 * its own reads this leaf in advance. */

#define FOLLOW_AFTER 4 /* blocks; a scan of 100 rows of 1 kB reads up to three */
#define GAP_MAX ((uint64_t)1 << 20)
/* Bytes. A device needs several reads at the same time to reach its full rate. */
#define AHEAD_MAX ((uint64_t)4 << 20)
#define PART_MIN ((uint64_t)256 << 10)    /* bytes that are planned together */
#define OS_AHEAD_MAX ((uint64_t)16 << 20) /* the operating system does not read farther ahead */
#define RATIO_MAX 64

/* The trail behind a move to this block. */
static rq_hfile_trail trail_to(const rq_hfile_trail *from, uint64_t offset, uint32_t size)
{
    rq_hfile_trail to = {.begun = offset, .end = offset + size};
    bool stays = from->end == to.end;
    bool follows = from->end != 0 && offset >= from->end && offset - from->end <= GAP_MAX;
    if (stays || follows) {
        to.begun = from->begun;
        to.planned = from->planned;
        to.leaf_asked = from->leaf_asked;
        to.os_reads_ahead = from->os_reads_ahead;
    }
    return to;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The data blocks from `begin` on that are planned together. */
typedef struct file_part {
    rq__block_place blocks[RQ__WINDOW_BLOCKS];
    uint32_t count;
    uint64_t begin, end;
} file_part;

/* Bytes in memory for each byte on disk, rounded up. */
static uint64_t ratio_of(const rq_hfile_reader *r)
{
    if (r->trailer.compression == RQ_COMPRESSION_NONE || r->data_end == 0) return 1;
    return min64(r->trailer.total_uncompressed_len / r->data_end + 1, RATIO_MAX);
}

/* Collects blocks of the leaf from entry *at on: one block, or several of at most `len` bytes together. False: there is
 * no block, or the first one is too long for a window. */
static bool collect_part(const rq_hfile_reader *r, rq__index_view leaf, uint32_t *at, uint64_t len,
                         file_part *ret)
{
    ret->count = 0;
    for (; *at < leaf.count && ret->count < RQ__WINDOW_BLOCKS; ++*at) {
        rq__index_entry e = rq__index_at(leaf, *at);
        uint64_t end = e.offset + e.size;
        if (ret->count == 0)
            ret->begin = e.offset;
        else if (e.offset < ret->end || end - ret->begin > len)
            break;
        if (end > r->data_end || end - ret->begin > RQ__WINDOW_BYTES) break;
        ret->blocks[ret->count++] = (rq__block_place){e.offset, e.size};
        ret->end = end;
    }
    return ret->count > 0;
}

/* Memory for the blocks of a part, with the allocator's overhead (slab.h). */
static uint64_t memory_of(const rq_hfile_reader *r, const file_part *part)
{
    uint64_t bytes = (part->end - part->begin) * ratio_of(r);
    return bytes + bytes / 16 + part->count * (sizeof(rq_hfile_block) + 1024) + 4096;
}

/* Whether the operating system is to read the part ahead; `plan`: the part's. If the operating system reads ahead for
 * this scan already, it may be the reason why the part is in the page cache, and it has perhaps begun with the bytes
 * behind the part: no window may read these again. */
static bool os_is_to_read(const rq_hfile_reader *r, const file_part *part, rq_read_plan plan,
                          bool os_reads_ahead)
{
    if (plan == RQ_READ_PAST || (plan == RQ_READ_CACHED && !os_reads_ahead)) return false;
    uint64_t len = part->end - part->begin;
    uint64_t later = min64(part->begin + OS_AHEAD_MAX, r->data_end - len);
    return rq_file_plan_read(r->file, later, len) != RQ_READ_PAST;
}

/* Plans a part. False: there is no memory for its window now, so it has to be planned later. A scan that has windows
 * waits until it has used one; a scan that has none (there are many scans then) reads single blocks meanwhile. */
static bool plan_part(rq_hfile_reader *r, const file_part *part, rq_hfile_trail *trail)
{
    rq__window_spec spec = {.blocks = part->blocks,
                            .count = part->count,
                            .kind = RQ_BLOCK_DATA,
                            .memory = memory_of(r, part)};
    rq__window_room room = rq__window_room_for(r, &spec);
    if (room == RQ__ROOM_LATER && trail->planned > trail->end) return false;
    rq_read_plan plan = rq_file_plan_read(r->file, part->begin, part->end - part->begin);
    trail->os_reads_ahead =
        room == RQ__ROOM_NEVER || os_is_to_read(r, part, plan, trail->os_reads_ahead);
    if (trail->os_reads_ahead || plan == RQ_READ_CACHED) return true;
    spec.past = plan == RQ_READ_PAST;
    return room == RQ__ROOM_NOW && rq__window_ask(r, &spec);
}

/* `most`: bytes behind the trail that may be planned; `len`: bytes of one part. */
typedef struct planning {
    uint64_t most, len;
} planning;

static planning planning_of(const rq_hfile_reader *r, const rq_hfile_trail *trail)
{
    uint64_t most = min64(max64(trail->end - trail->begun, PART_MIN), AHEAD_MAX);
    return (planning){most, min64(max64(most / 4, PART_MIN), rq__window_len_max(r))};
}

/* Plans the leaf's blocks from entry `at` on. True: all up to the leaf's end are planned, and more may be. */
static bool plan_leaf(rq_hfile_reader *r, rq__index_view leaf, uint32_t at, planning p,
                      rq_hfile_trail *trail)
{
    while (trail->planned - trail->end + p.len <= p.most) {
        file_part part;
        while (at < leaf.count && rq__index_at(leaf, at).offset < trail->planned)
            at++;
        if (at == leaf.count) return true;
        uint64_t known = rq__window_end_at(r, rq__index_at(leaf, at).offset);
        if (known > 0) {
            trail->planned = known;
            continue;
        }
        if (!collect_part(r, leaf, &at, p.len / ratio_of(r), &part)) {
            trail->os_reads_ahead = true;
            return false;
        }
        if (!plan_part(r, &part, trail)) return false;
        trail->planned = part.end;
    }
    return false;
}

/* Asks for a window with this leaf index block only. */
static void ask_for_leaf(rq_hfile_reader *r, rq__index_entry e, rq_hfile_trail *trail)
{
    uint64_t end = e.offset + e.size;
    if (trail->leaf_asked == e.offset || e.size > RQ__WINDOW_BYTES || end > r->data_end) return;
    file_part part = {.count = 1, .begin = e.offset, .end = end};
    part.blocks[0] = (rq__block_place){e.offset, e.size};
    rq__window_spec spec = {.blocks = part.blocks,
                            .count = 1,
                            .kind = RQ_BLOCK_LEAF_INDEX,
                            .past = rq_file_plan_read(r->file, e.offset, e.size) == RQ_READ_PAST,
                            .memory = memory_of(r, &part)};
    if (rq__window_ask(r, &spec)) trail->leaf_asked = e.offset;
}

/* *ret: the leaf after the target's. False: there is none, or it is not in memory; in that case it is asked for, and a
 * later call finds it. Only in files with two levels of index: if there are more, an intermediate block covers some
 * hundred thousand data blocks, so scans seldom reach its end. An error is reported when the scan reaches the leaf. */
static bool next_leaf(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq__target *t,
                      rq_hfile_trail *trail, rq__lent_block *ret)
{
    rq_read_ctx own = {.dont_cache = ctx->dont_cache}; /* so that ctx does not need the leaf */
    rq__lent_block root;
    rq_error why;
    bool has = false;
    if (s->reader->info.data_index_levels != 2) return false;
    rq_error_clear(&why);
    if (rq__reader_root(s->reader, &own, &root, &why) == RQ_OK) {
        rq__index_view v = rq__index_view_of(root.block->payload);
        uint32_t next = t->path[0] + 1;
        rq_err rc = next < v.count ? child(s, &own, root, next, 1, ret, &why) : RQ_E_END;
        if (rc == RQ_E_AGAIN) ask_for_leaf(s->reader, rq__index_at(v, next), trail);
        has = rc == RQ_OK;
        rq__lent_return(root);
    }
    rq_read_ctx_take_over(ctx, &own);
    return has;
}

/* Plans the blocks behind those of the trail, in the target's leaf and in the next one, but no farther. */
static void plan_next(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq__target *t,
                      rq_hfile_trail *trail)
{
    rq_hfile_reader *r = s->reader;
    rq__index_view leaf = rq__index_view_of(t->leaf.block->payload);
    rq__lent_block next;
    planning p = planning_of(r, trail);
    if (trail->planned < trail->end) trail->planned = trail->end;
    if (!plan_leaf(r, leaf, t->path[r->info.data_index_levels - 1] + 1, p, trail) ||
        !next_leaf(s, ctx, t, trail, &next))
        return;
    (void)plan_leaf(r, rq__index_view_of(next.block->payload), 0, p, trail);
    rq__lent_return(next);
}

static void look_ahead(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq__target *t, uint64_t offset,
                       rq_hfile_trail *trail)
{
    if (ctx->may_block || !rq__windows_are_possible(s->reader) ||
        rq__window_len_max(s->reader) < PART_MIN)
        trail->os_reads_ahead = true;
    else if (!rq__cache_has(s->reader->cached, offset))
        plan_next(s, ctx, t, trail);
}

static const rq__sidecar *sidecar_of(rq_hfile_block *b)
{
    return atomic_load_explicit(&b->sidecar, memory_order_acquire);
}

static void follow(rq_hfile_scanner *s, bool on)
{
    if (RQ_LIKELY(s->follows == on)) return;
    s->follows = on;
    rq__reader_follow(s->reader, on);
}

rq_err rq__scanner_load(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__target *t, rq_error *why)
{
    uint32_t at = t->path[s->reader->info.data_index_levels - 1];
    rq__index_entry e = rq__index_at(rq__index_view_of(t->leaf.block->payload), at);
    const rq__sidecar *index = sidecar_of(t->leaf.block);
    if (s->block != NULL && s->block->offset == e.offset) {
        t->block = rq__block_ref(s->block);
        return RQ_OK;
    }
    rq_hfile_trail trail = trail_to(&s->trail, e.offset, e.size);
    bool in_sequence = trail.end - trail.begun >= FOLLOW_AFTER * (uint64_t)e.size;
    if (in_sequence) look_ahead(s, ctx, t, e.offset, &trail);
    ctx->follows = in_sequence && trail.os_reads_ahead;
    follow(s, ctx->follows);
    rq__sidecar_prefetch_hinted(index, at);
    rq_err rc = rq__reader_block(s->reader, ctx, e.offset, e.size, RQ_BLOCK_DATA, &t->block, why);
    ctx->follows = false;
    if (rc == RQ_OK) {
        s->trail = trail;
        rq__sidecar_set_hint(index, at, sidecar_of(t->block));
    } else if (in_sequence) { /* so that the same blocks are not planned again */
        s->trail.planned = trail.planned;
        s->trail.leaf_asked = trail.leaf_asked;
        s->trail.os_reads_ahead = trail.os_reads_ahead;
    }
    return rc;
}

rq_err rq__scanner_descend_to_leaf(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block b,
                                   uint32_t level, rq__choice c, rq__target *t, rq_error *why)
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
                      rq__choice c, rq__target *t, rq_error *why)
{
    RQ_TRY(rq__scanner_descend_to_leaf(s, ctx, b, level, c, t, why));
    return rq__scanner_load(s, ctx, t, why);
}

rq_err rq__scanner_descend(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__choice c, rq__target *t,
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

rq_err rq__scanner_step(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block leaf,
                        const uint32_t *path, rq__edge side, rq__target *t, rq_error *why)
{
    uint32_t levels = s->reader->info.data_index_levels;
    uint32_t last = levels - 1;
    bool forward = side == RQ__EDGE_FIRST; /* its neighbour's nearest edge */
    memcpy(t->path, path, levels * sizeof(path[0]));
    uint32_t count = rq__index_view_of(leaf.block->payload).count;
    if (forward ? path[last] + 1 < count : path[last] > 0) {
        t->path[last] = forward ? path[last] + 1 : path[last] - 1;
        t->leaf = lend_again(leaf);
        return rq__scanner_load(s, ctx, t, why);
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
    return descend(s, ctx, b, turn_level + 1, (rq__choice){.edge = side}, t, why);
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
