/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memstore's skip list; contract in segment.h. Every Put ends here, every Get begins here.
 *
 * A node is one piece of a slab. Its links are stored *before* it, so that the lowest link, the
 * sequence id and the key are adjacent, mostly in one cache line, whatever the node's height (as in
 * RocksDB's InlineSkipList):
 *
 *      link[h-1] … link[1] link[0] | seqid | be32 length, KeyValue with tags
 *                                  ^ node    link = { rank of the next node, next }
 *
 * An insert into a million cells is a chain of cache misses; a node that is not read costs nothing.
 * Therefore a link contains its target's *rank* (row_rank.h), a number that orders most rows
 * without their bytes, and only nodes before the key are read. The rows' common prefix is
 * determined when the segment has 64 and again when it has 1,024 cells; then all ranks are
 * recomputed.
 *
 * Invariants:
 *  1. One writer. It sets a node's links before it publishes the node with a release store, lowest
 *     level first; readers load with acquire. A reader therefore sees a whole node or none.
 *  2. A replaced node keeps its links: a reader at that node continues into the list.
 *  3. Slabs are only freed with the segment. Cell bytes never move.
 *  4. Links of a level are a subsequence of the level below, in cell order.
 *  5. A link's rank may for a moment belong to another node than its target, but never to one that
 *     orders before the target: an insert stores the target first, a removal the rank first. A
 *     reader that follows a link because of its rank loads the target again after the rank.
 *  6. No search begins at a fence that was replaced: nodes inserted later after its position are
 *     not reachable from it.
 *  7. `epoch` is odd while ranks are recomputed. Readers then compare bytes, and repeat the search
 *     if the epoch has changed.
 *
 * Slabs grow from 4 kB (an empty region costs nothing before its first cell) to 2 MiB; the latter
 * are huge pages from a pool (slab_pool.h).
 */
#include "store/segment.h"

#include "store/segment_ahead.h"
#include "store/segment_search.h"
#include "store/slab_pool.h"

#include <stdlib.h>

#define PREFETCH 8 /* nodes prefetched ahead when many are linked in order */
#define NEAR_TRY 3 /* levels climbed from the last node if the previous key was not near */
/* If the key is in the row of the last node, this many steps along the lowest level are tried
 * before the search climbs: ROW_STEPS_FIRST for the second cell of a row, whose distance becomes
 * the stride; ROW_STEPS for later cells, after a leap of one stride. */
#define ROW_STEPS_FIRST 8
#define ROW_STEPS 4
#define STRIDE_MAX 64
#define RANK_FIRST_AT 64 /* cells */
#define RANK_AGAIN_AT 1024

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_segment_new(rq_cell_order order, rq_segment **ret)
{
    return rq__segment_new_in(NULL, order, ret);
}

rq_err rq__segment_new_in(rq_slab_pool *pool, rq_cell_order order, rq_segment **ret)
{
    rq_segment *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    atomic_init(&s->refs, 1);
    s->pool = pool;
    s->order = order;
    s->rank_at = order == RQ_ORDER_META ? 0 : RANK_FIRST_AT;
    s->next_slab = SLAB_FIRST;
    s->fences_at = FENCES_FROM;
    s->filter_at = FILTER_FROM;
    s->random = 0x9e3779b97f4a7c15u; /* a constant, so that a simulated run can be repeated */
    atomic_init(&s->height, 1);
    rq__segment_count_heap(s, sizeof *s);
    atomic_init(&s->min_ts, INT64_MAX);
    atomic_init(&s->max_ts, INT64_MIN);
    atomic_init(&s->min_seqid, UINT64_MAX);
    for (unsigned i = 0; i < HEIGHT_MAX; i++) {
        s->path[i] = head_of(s);
        atomic_init(&s->head_links[i].rank, RQ_RANK_MAX);
    }
    *ret = s;
    return RQ_OK;
}

rq_segment *rq_segment_ref(rq_segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void rq_segment_unref(rq_segment *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    rq__slab_pool_count(s->pool,
                        -(int64_t)atomic_load_explicit(&s->heap_bytes, memory_order_relaxed));
    rq__segment_free_slabs(s);
    rq__fences_free(s->making != NULL ? s->making
                                      : atomic_load_explicit(&s->fences, memory_order_relaxed));
    rq__row_filter_free(atomic_load_explicit(&s->filter, memory_order_relaxed));
    free(s);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Half of the nodes of a level are also on the next one. Reading a link is cheap and reading a
 * node is not, so many short steps down cost less than few long steps to the side: at a million
 * cells a quarter less than with one in four (bench/segment.c). */
static unsigned random_height(rq_segment *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    /* the top bit limits the count */
    unsigned height = 1 + (unsigned)__builtin_ctzll(s->random | (uint64_t)1 << 63);
    return height > HEIGHT_MAX ? HEIGHT_MAX : height;
}

rq_err rq_segment_prepare(rq_segment *s, const rq_cell *cell, rq_segment_node **ret)
{
    size_t len = rq_cell_serialized_len(cell, true);
    if (len > INT32_MAX) return RQ_E_INVALID;
    rq_segment_node *n = rq__segment_alloc(s, random_height(s), 4 + len);
    if (n == NULL) return RQ_E_NO_MEMORY;
    rq_put_be32(n->bytes, (uint32_t)len);
    rq_cell_serialize(cell, true, n->bytes + 4);
    *ret = n;
    return RQ_OK;
}

rq_slice rq_segment_node_bytes(const rq_segment_node *n)
{
    return rq_slice_of(n->bytes, 4 + (size_t)rq_get_be32(n->bytes));
}

void rq_segment_node_stamp(rq_segment_node *n, int64_t timestamp)
{
    rq_put_be64(n->bytes + 4 + rq_get_be32(n->bytes + 4) - 1, (uint64_t)timestamp);
}

static void note(rq_segment *s, const rq_cell *c, size_t bytes)
{
#define LOAD(field) atomic_load_explicit(&s->field, memory_order_relaxed)
#define STORE(field, v) atomic_store_explicit(&s->field, v, memory_order_relaxed)
    STORE(cells, LOAD(cells) + 1);
    if (c->tags_len > 0) STORE(has_tags, true);
    STORE(data_bytes, LOAD(data_bytes) + bytes);
    if (c->timestamp < LOAD(min_ts)) STORE(min_ts, c->timestamp);
    if (c->timestamp > LOAD(max_ts)) STORE(max_ts, c->timestamp);
    if (c->seqid < LOAD(min_seqid)) STORE(min_seqid, c->seqid);
    if (c->seqid > LOAD(max_seqid)) STORE(max_seqid, c->seqid);
}

static void forget_replaced(rq_segment *s, const rq_segment_node *old)
{
    STORE(cells, LOAD(cells) - 1);
    STORE(data_bytes, LOAD(data_bytes) - rq_get_be32(old->bytes));
#undef LOAD
#undef STORE
}

/* --- ranks, anew */

static const rq_segment_node *last_of(const rq_segment *s)
{
    const rq_segment_node *at = head_of(s);
    for (unsigned level = HEIGHT_MAX; level-- > 0;)
        while (next_of(at, level) != NULL)
            at = next_of(at, level);
    return at;
}

static void change_begins(rq_segment *s)
{
    atomic_fetch_add(&s->epoch, 1);
}

static void change_ends(rq_segment *s)
{
    atomic_fetch_add_explicit(&s->epoch, 1, memory_order_release);
}

static uint64_t node_rank(const rq_segment *s, const rq_segment_node *n)
{
    rq_cell c;
    if (n == NULL) return RQ_RANK_MAX;
    node_cell(n, &c);
    return rank_of(s, c.row, c.row_len);
}

static void rank_again(rq_segment *s)
{
    rq_ranking *r = &s->rankings[s->rank_at == RANK_FIRST_AT ? 0 : 1];
    s->rank_at = s->rank_at == RANK_FIRST_AT ? RANK_AGAIN_AT : 0;
    rq_cell first;
    rq_cell last;
    node_cell(next_of(head_of(s), 0), &first);
    node_cell(last_of(s), &last);
    rq_ranking now = rq__ranking_of(rq_cell_row(&first), rq_cell_row(&last));
    const rq_ranking *old = atomic_load_explicit(&s->ranking, memory_order_relaxed);
    if (rq__ranking_same(&now, old)) return;
    *r = now;
    change_begins(s);
    atomic_store_explicit(&s->ranking, r, memory_order_release);
    for (unsigned level = 0; level < HEIGHT_MAX; level++) {
        rq_segment_node *at = head_of(s);
        while (at != NULL) {
            rq_segment_node *next = next_of(at, level);
            atomic_store_explicit(&link_of(at, level)->rank, node_rank(s, next),
                                  memory_order_release);
            at = next;
        }
    }
    s->last_rank = node_rank(s, s->last);
    change_ends(s);
}

/* --- linking */

/* Advances the path past `next`, which is before the key. Its height follows from the path: it
 * is on each level whose link leads to it. */
static void step_over(rq_segment *s, rq_segment_node *next, unsigned known)
{
    for (unsigned i = 1; i < known && next_of(s->path[i], i) == next; i++)
        s->path[i] = next;
    s->path[0] = next;
}

typedef enum near { NEAR_FOUND, NEAR_NOT, NEAR_LOST } near;

/* Whether the path's node is the last one before the column's newest version, and the key is newer:
 * the node then is before the key, although no comparison has ordered the two. */
static bool is_at_column(const rq_segment *s, const probe *key)
{
    const rq_segment_node *next = next_of(s->path[0], 0);
    return next != NULL && has_name(next, key) && is_newer(key, next) && !has_name(s->path[0], key);
}

/* Advances the path by `stride` nodes; only the last of them is compared. NEAR_NOT: it is before the key, and the
 * next may be, too. NEAR_LOST: it is not, and the path is invalid. */
static near leap(rq_segment *s, const probe *key, unsigned known)
{
    for (unsigned i = 0; i < s->stride; i++) {
        rq_segment_node *next = next_of(s->path[0], 0);
        if (next == NULL) return NEAR_LOST;
        step_over(s, next, known);
    }
    if (RQ_LIKELY(is_at_column(s, key))) return NEAR_FOUND;
    return node_compare(s->order, s->path[0], key) < 0 ? NEAR_NOT : NEAR_LOST;
}

/*
 * Searches in the row of the last node. The columns of a row are written in order, and between two
 * of them are as many nodes as the column has versions, usually the same number for each column. So
 * taking that many steps (`stride`) on the lowest level needs fewer comparisons than climbing and
 * descending.
 *
 *    last                        the key, c2 v4, belongs here
 *     │                                │
 *    c1 v4 ─ c1 v3 ─ c1 v2 ─ c1 v1 ──┴── c2 v3 ─ c2 v2 …      stride 3
 *
 * NEAR_LOST: there were fewer nodes, the path is past the key. NEAR_NOT: the key is farther away.
 * The path may have come nearer to it; it is valid on `known` levels and starts at `last`, as
 * before.
 */
static near find_in_row(rq_segment *s, probe *key, unsigned known)
{
    for (unsigned i = 0; i < s->last_height; i++)
        s->path[i] = s->last;
    s->path_levels = known;
    if (s->stride > 0) {
        near found = leap(s, key, known);
        if (found != NEAR_NOT) return found;
    }
    unsigned steps = s->stride;
    unsigned most = steps + (s->stride == 0 ? ROW_STEPS_FIRST : ROW_STEPS);
    if (most > STRIDE_MAX) most = STRIDE_MAX;
    rq_segment_node *next;
    for (; leads_on(s, link_of(s->path[0], 0), key, &next); steps++) {
        if (steps == most) return NEAR_NOT;
        step_over(s, next, known);
    }
    s->stride = steps;
    return NEAR_FOUND;
}

/*
 * Fills s->path for the key, starting at the last linked node (Pugh's search finger). Keys often
 * come in order (one batch, time series, a sorted replay): then the key belongs shortly after that
 * node. The path of its insertion is still valid, with the node itself on its own levels. From
 * there the search climbs until a level's link leads past the key, and descends there: one step for
 * each doubling of the distance, over nodes that are still in the caches.
 *
 *    level 2   path[2] ───────────────────────► past the key: descend from here
 *    level 1   path[1] ──► last ──► a ──► …     climb: its link is before the key
 *    level 0               last ──► b ──► …     climb
 *
 * False: the key is not near, and the path must be found from a fence or the head. If keys arrive
 * in no order, only NEAR_TRY levels are tried, which costs little. A row in which steps along the
 * lowest level have failed (many versions, or columns in no order) does not try them again.
 */
static bool find_near(rq_segment *s, probe *key)
{
    rq_segment_node *last = s->last;
    rq_segment_node *at = last;
    rq_segment_node *next = NULL;
    bool same_rank = last != NULL && s->last_rank == key->rank;
    if (!same_rank) {
        s->steps_fail = false;
        s->stride = 0;
    }
    if (last == NULL || s->last_rank > key->rank) return false;
    unsigned known = s->path_levels > s->last_height ? s->path_levels : s->last_height;
    /* A key of a higher rank is behind `last`. With an equal rank the bytes must be compared,
     * unless find_in_row leaps: its comparison after the leap also shows that `last` is before
     * the key. */
    bool leaps = same_rank && !s->steps_fail && s->stride > 0;
    if (same_rank && !leaps && node_compare(s->order, last, key) >= 0) return false;
    if (same_rank && !s->steps_fail) {
        near found = find_in_row(s, key, known);
        if (found == NEAR_FOUND) return true;
        s->steps_fail = true;
        if (found == NEAR_LOST) return false;
    }
    unsigned limit = same_rank || s->in_order || known < NEAR_TRY ? known : NEAR_TRY;
    unsigned level = 0;
    for (;; level++) {
        if (level == limit) return false;
        /* Below its height `last` itself precedes the key; above, the path's node does. */
        at = level < s->last_height ? last : s->path[level];
        if (!leads_on(s, link_of(at, level), key, &next)) break;
    }
    for (unsigned i = level; i < s->last_height; i++)
        s->path[i] = last;
    s->path_levels = known;
    rq__segment_descend(s, at, level, next, key, s->path);
    return true;
}

static void find_whole_path(rq_segment *s, probe *key)
{
    s->path_levels = atomic_load_explicit(&s->height, memory_order_relaxed);
    rq__segment_find_before(s, key, s->path);
}

/* Fills s->path on at least `levels` levels, as far as the list has them. */
static void find_path(rq_segment *s, probe *key, unsigned levels)
{
    unsigned height = atomic_load_explicit(&s->height, memory_order_relaxed);
    if (levels > height) levels = height;
    s->in_order = find_near(s, key);
    if (s->in_order) {
        if (s->path_levels >= levels) return;
        if (s->path_levels > FENCE_LEVEL &&
            rq__segment_find_above(s, s->before, key, levels, s->path)) {
            s->path_levels = levels;
            return;
        }
    }
    if (rq__segment_find_from_fence(s, key, s->path, levels, &s->before) != NULL)
        s->path_levels = levels > FENCE_LEVEL + 1 ? levels : FENCE_LEVEL + 1;
    else
        find_whole_path(s, key);
}

static void copy_link(link *to, const link *from)
{
    atomic_store_explicit(&to->to, atomic_load_explicit(&from->to, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->rank, atomic_load_explicit(&from->rank, memory_order_relaxed),
                          memory_order_relaxed);
}

/* Removes a replaced node from the levels that the new node does not have. A reader could
 * combine an old rank with a new target, hence the change of the epoch. */
static void take_off(rq_segment *s, const rq_segment_node *old, unsigned from, unsigned height)
{
    if (from >= height) return;
    change_begins(s);
    for (unsigned i = from; i < height; i++) {
        link *l = link_of(s->path[i], i);
        const link *behind = link_of(old, i);
        atomic_store_explicit(&l->rank, atomic_load_explicit(&behind->rank, memory_order_relaxed),
                              memory_order_release);
        atomic_store_explicit(&l->to, atomic_load_explicit(&behind->to, memory_order_relaxed),
                              memory_order_release);
    }
    change_ends(s);
}

/* Height of the node with this key: the levels on which the path leads to it. Completes the path
 * up to there. */
static unsigned height_of(rq_segment *s, const rq_segment_node *n, probe *key)
{
    unsigned height = 0;
    for (; height < atomic_load_explicit(&s->height, memory_order_relaxed); height++) {
        if (height == s->path_levels) find_whole_path(s, key);
        if (next_of(s->path[height], height) != n) break;
    }
    return height;
}

static inline void work_on_fences(rq_segment *s)
{
    size_t cells = rq_segment_cell_count(s);
    if (s->making != NULL) {
        if (cells % RQ__FENCE_WORK_EVERY == 0) rq__segment_fences_work(s);
    } else if (cells >= s->fences_at) {
        rq__segment_fences_begin(s);
    }
}

/* Links a node. in_row: it is in the row of the node linked before it. */
static void link_node(rq_segment *s, rq_segment_node *n, uint64_t seqid, bool in_row)
{
    unsigned height = (unsigned)n->height;
    n->seqid = seqid;
    rq_cell cell;
    probe key = probe_of(n, &cell);
    key.rank = in_row ? s->last_rank : rank_of(s, cell.row, cell.row_len);
    if (!in_row) rq__segment_filter_note(s, &cell);
    if (atomic_load_explicit(&s->column_count, memory_order_relaxed) <= RQ_SEGMENT_COLUMNS_MAX)
        rq__segment_note_column(s, &cell);
    find_path(s, &key, height);
    /* If a node has an equal key, the search has compared it and set key.equal: the search compares
     * every node of the key's rank at which it stops, on that level or on the one above. */
    rq_segment_node *old = next_of(s->path[0], 0);
    if (old != key.equal) old = NULL;
    unsigned old_height = old == NULL ? 0 : height_of(s, old, &key);

    if (height > atomic_load_explicit(&s->height, memory_order_relaxed))
        atomic_store_explicit(&s->height, height,
                              memory_order_relaxed); /* path is the head there */
    for (unsigned i = 0; i < height; i++)
        copy_link(link_of(n, i), link_of(i < old_height ? old : s->path[i], i));
    /* Publication, lowest level first. From the first store on readers can find the node, whose own
     * links were set above; the release makes its bytes and links visible with it. Target before
     * rank (invariant 5): between the two stores the link has the rank of the former target, which
     * is not before `n`. A reader that compares that rank can only stop too early, at `n`, whose
     * sequence id is above its read point; it never passes a node that is not before its key. */
    for (unsigned i = 0; i < height; i++) {
        link *l = link_of(s->path[i], i);
        atomic_store_explicit(&l->to, n, memory_order_release);
        atomic_store_explicit(&l->rank, key.rank, memory_order_release);
    }
    if (old != NULL) {
        take_off(s, old, height, old_height);
        forget_replaced(s, old);
        if (old_height > FENCE_LEVEL) rq__segment_fences_forget(s, old, &key);
    }
    s->last = n;
    s->last_rank = key.rank;
    s->last_height = height;
    note(s, &cell, rq_get_be32(n->bytes));
    if (s->rank_at != 0 && rq_segment_cell_count(s) >= s->rank_at) rank_again(s);
    work_on_fences(s);
}

void rq__segment_link(rq_segment *s, rq_segment_node *n, uint64_t seqid)
{
    link_node(s, n, seqid, false);
}

/* Links cells of one row. */
static void link_row(const rq_segment_pending *row, size_t count, uint64_t seqid, int64_t now_ms)
{
    rq_segment_note_write(row->segment, now_ms);
    for (size_t i = 0; i < count; i++)
        link_node(row->segment, row[i].node, seqid, i > 0);
}

void rq_segment_link_batch(const rq_segment_pending *list, size_t count, uint64_t seqid,
                           int64_t now_ms)
{
    size_t cells[RQ__SEGMENT_ROWS_AHEAD];
    if (count == 1) {
        link_row(list, 1, seqid, now_ms);
        return;
    }
    while (count > 0) {
        size_t rows = rq__segment_ahead(list, count, cells);
        for (size_t i = 0; i < rows; i++) {
            link_row(list, cells[i], seqid, now_ms);
            list += cells[i];
            count -= cells[i];
        }
    }
}

/* Equal cells in the order given: the later one replaces the earlier. */
static int fresh_compare(const void *a, const void *b, void *order)
{
    const rq_segment_fresh *x = (const rq_segment_fresh *)a;
    const rq_segment_fresh *y = (const rq_segment_fresh *)b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    rq_cell cx, cy;
    node_cell(x->node, &cx);
    node_cell(y->node, &cy);
    cx.seqid = x->seqid;
    cy.seqid = y->seqid;
    int c = rq_cell_compare(*(const rq_cell_order *)order, &cx, &cy);
    if (c != 0) return c;
    return x->place < y->place ? -1 : x->place > y->place;
}

void rq_segment_link_all(rq_segment *s, rq_segment_fresh *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rq_cell cell;
        node_cell(list[i].node, &cell);
        list[i].rank = rank_of(s, cell.row, cell.row_len);
        list[i].place = i;
    }
    qsort_r(list, count, sizeof *list, fresh_compare, &s->order);
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH < count) {
            const char *soon = (const char *)list[i + PREFETCH].node;
            __builtin_prefetch(soon);
            __builtin_prefetch(soon + RQ_CACHE_LINE);
        }
        rq__segment_link(s, list[i].node, list[i].seqid);
    }
}

rq_err rq_segment_add(rq_segment *s, const rq_cell *cell)
{
    rq_segment_node *n;
    RQ_TRY(rq_segment_prepare(s, cell, &n));
    rq__segment_link(s, n, cell->seqid);
    return RQ_OK;
}

/* --- hints ------------------------------------------------------------------------------------ */

void rq_segment_prefetch(const void *segment)
{
    /* Without the upper levels of path and head, which a small list does not have. */
    const char *p = segment;
    const size_t levels = offsetof(rq_segment, path_levels);
    const size_t head = offsetof(rq_segment, head_links[12]);
    rq_prefetch_bytes(p, offsetof(rq_segment, path[8]));
    rq_prefetch_bytes(p + levels, offsetof(rq_segment, head_links) - levels);
    rq_prefetch_bytes(p + head, sizeof(rq_segment) - head);
}

const void *rq_segment_tail(const rq_segment *s)
{
    return s->slabs == NULL ? NULL : (const uint8_t *)s->slabs + s->used;
}

/* --- sizes ------------------------------------------------------------------------------------ */

size_t rq_segment_cell_count(const rq_segment *s)
{
    return atomic_load_explicit(&s->cells, memory_order_relaxed);
}

size_t rq_segment_heap_bytes(const rq_segment *s)
{
    return atomic_load_explicit(&s->heap_bytes, memory_order_relaxed);
}

size_t rq_segment_data_bytes(const rq_segment *s)
{
    return atomic_load_explicit(&s->data_bytes, memory_order_relaxed);
}

bool rq__segment_has_tags(const rq_segment *s)
{
    return atomic_load_explicit(&s->has_tags, memory_order_relaxed);
}

void rq__segment_time_range(const rq_segment *s, int64_t *ret_min, int64_t *ret_max)
{
    *ret_min = atomic_load_explicit(&s->min_ts, memory_order_relaxed);
    *ret_max = atomic_load_explicit(&s->max_ts, memory_order_relaxed);
}

void rq_segment_seqid_range(const rq_segment *s, uint64_t *ret_min, uint64_t *ret_max)
{
    *ret_min = atomic_load_explicit(&s->min_seqid, memory_order_relaxed);
    *ret_max = atomic_load_explicit(&s->max_seqid, memory_order_relaxed);
}

void rq_segment_note_write(rq_segment *s, int64_t now_ms)
{
    if (atomic_load_explicit(&s->written_since_ms, memory_order_relaxed) == 0)
        atomic_store_explicit(&s->written_since_ms, now_ms, memory_order_relaxed);
}

int64_t rq_segment_written_since(const rq_segment *s)
{
    return atomic_load_explicit(&s->written_since_ms, memory_order_relaxed);
}
