/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memstore's skip list; contract in segment.h. Every Put ends here, every Get begins here.
 *
 * A node is one piece of a slab; its links stand *in front* of it, so that the lowest link, the
 * prefix, the sequence id and the key lie side by side, mostly in one cache line, whatever the
 * node's height (the idea of RocksDB's InlineSkipList):
 *
 *      next[h-1] … next[1] next[0] | prefix seqid height | be32 length, KeyValue with tags
 *                                  ^ node
 *
 * `prefix` is the row's first eight bytes as a number, zero-filled: two different prefixes order
 * their rows, equal ones do not decide. hbase:meta's rows have an order of their own; there it is
 * 0.
 *
 * Invariants:
 *  1. One writer. It sets a node's links before it publishes the node with a release store, lowest
 *     level first; readers load with acquire. A reader therefore sees a whole node or none.
 *  2. A replaced node keeps its links: a reader standing on it goes on into the list.
 *  3. Slabs are only freed with the segment. Cell bytes never move.
 *  4. Links of a level are a subsequence of the level below, in cell order.
 *
 * Slabs grow from 4 kB (an empty region costs nothing before its first cell) to 2 MiB, which are
 * asked for as huge pages: an insert into a million cells is a dozen cache misses, and without huge
 * pages nearly as many TLB misses on top.
 */
#include "store/segment.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HEIGHT_MAX 12 /* 4^12 cells: far above what fits in a memstore */
#define SLAB_FIRST ((size_t)4 * 1024)
#define SLAB_MAX ((size_t)2 * 1024 * 1024)
#define SLAB_MAPPED ((size_t)256 * 1024) /* from here on by mmap, below by malloc */
#define CACHE_LINE 64
/* Nodes of at least this size begin on a cache line; the lost bytes are under 6 %. */
#define ALIGN_FROM ((size_t)512)

struct rq_segment_node {
    uint64_t prefix;
    uint64_t seqid;
    uint8_t height;
    uint8_t bytes[];
};

#define NODE_HEADER offsetof(rq_segment_node, bytes)

typedef _Atomic(rq_segment_node *) link;

typedef struct slab {
    struct slab *older;
    size_t size; /* with this header */
    size_t used;
} slab;

struct rq_segment {
    _Atomic unsigned refs;
    rq_cell_order order;
    /* the writer's */
    slab *slabs; /* newest first; allocation from the newest */
    size_t next_slab;
    uint64_t random;
    rq_segment_node *path[HEIGHT_MAX]; /* where the last link went in; NULL: never */
    rq_segment_node *last;
    /* written by the writer alone, read by anybody */
    _Atomic unsigned height;
    _Atomic size_t cells;
    _Atomic size_t heap_bytes;
    _Atomic size_t data_bytes;
    _Atomic int64_t min_ts, max_ts;
    _Atomic uint64_t min_seqid, max_seqid;
    _Atomic bool has_tags;
    /* the head: a node of full height in front of everything */
    link head_links[HEIGHT_MAX];
    _Alignas(8) uint8_t head_node[sizeof(rq_segment_node)];
};

static inline link *link_of(const rq_segment_node *n, unsigned level)
{
    return (link *)(uintptr_t)n - 1 - level;
}

static inline rq_segment_node *head_of(const rq_segment *s)
{
    return (rq_segment_node *)(uintptr_t)s->head_node;
}

static inline rq_segment_node *next_of(const rq_segment_node *n, unsigned level)
{
    return atomic_load_explicit(link_of(n, level), memory_order_acquire);
}

/* --- keys ------------------------------------------------------------------------------------- */

static uint64_t prefix_of(rq_cell_order order, const uint8_t *row, size_t len)
{
    if (order == RQ_ORDER_META) return 0;
    if (len >= 8) return rq_get_be64(row);
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++)
        v |= (uint64_t)row[i] << (56 - 8 * i);
    return v;
}

/* The node's own bytes are trusted: prepare wrote them. */
static void node_cell(const rq_segment_node *n, rq_cell *ret)
{
    const uint8_t *p = n->bytes;
    uint32_t total = rq_get_be32(p);
    const uint8_t *kv = p + 4;
    uint32_t key_len = rq_get_be32(kv);
    uint32_t value_len = rq_get_be32(kv + 4);
    uint16_t row_len = rq_get_be16(kv + 8);
    const uint8_t *row = kv + 10;
    uint8_t family_len = row[row_len];
    const uint8_t *family = row + row_len + 1;
    const uint8_t *key_end = kv + 8 + key_len;
    uint32_t with_value = 8 + key_len + value_len;
    *ret = (rq_cell){
        .row = row,
        .row_len = row_len,
        .family = family,
        .family_len = family_len,
        .qualifier = family + family_len,
        .qualifier_len = key_len - RQ_KEY_FIXED_LEN - row_len - family_len,
        .timestamp = (int64_t)rq_get_be64(key_end - 9),
        .type = key_end[-1],
        .value = key_end,
        .value_len = value_len,
        .seqid = n->seqid,
    };
    if (total > with_value) {
        ret->tags_len = rq_get_be16(kv + with_value);
        ret->tags = kv + with_value + 2;
    }
}

/* A key to look for, with what is compared first. */
typedef struct probe {
    const rq_cell *cell;
    uint64_t prefix;
} probe;

static inline int node_compare(const rq_segment *s, const rq_segment_node *n, const probe *key)
{
    if (n->prefix != key->prefix) return n->prefix < key->prefix ? -1 : 1;
    rq_cell c;
    node_cell(n, &c);
    return rq_cell_compare(s->order, &c, key->cell);
}

static probe probe_of(const rq_segment *s, const rq_cell *key)
{
    return (probe){key, prefix_of(s->order, key->row, key->row_len)};
}

/* The last node before the key; with `path` that node on every level of the list. */
static rq_segment_node *find_before(const rq_segment *s, const probe *key, rq_segment_node **path)
{
    rq_segment_node *at = head_of(s);
    rq_segment_node *known_behind = NULL; /* compared already, one level above */
    unsigned level = atomic_load_explicit(&s->height, memory_order_relaxed);
    while (level-- > 0) {
        for (;;) {
            rq_segment_node *next = next_of(at, level);
            if (next == NULL || next == known_behind) break;
            /* Half of the comparisons end in a step down: have that node on its way. */
            if (level > 0) __builtin_prefetch(next_of(at, level - 1));
            if (node_compare(s, next, key) >= 0) {
                known_behind = next;
                break;
            }
            at = next;
        }
        if (path != NULL) path[level] = at;
    }
    return at;
}

/* --- memory ----------------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* A mapping aligned to its own size where that makes huge pages possible. */
static void *map_slab(size_t size)
{
    if (size != SLAB_MAX) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    uint8_t *p =
        mmap(NULL, 2 * SLAB_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t front = (size_t)(-(uintptr_t)p & (SLAB_MAX - 1));
    if (front > 0) munmap(p, front);
    if (front < SLAB_MAX) munmap(p + front + SLAB_MAX, SLAB_MAX - front);
    madvise(p + front, SLAB_MAX, MADV_HUGEPAGE); /* advice: without it only slower */
    return p + front;
}

static void free_slab(slab *b)
{
    if (b->size >= SLAB_MAPPED)
        munmap(b, b->size);
    else
        free(b);
}

static bool add_slab(rq_segment *s, size_t need)
{
    size_t size = s->next_slab;
    if (sizeof(slab) + need + CACHE_LINE > size)
        size = round_up(sizeof(slab) + need + CACHE_LINE, 4096);
    slab *b = size >= SLAB_MAPPED ? map_slab(size) : malloc(size);
    if (b == NULL) return false;
    b->size = size;
    b->used = sizeof *b;
    b->older = s->slabs;
    s->slabs = b;
    if (s->next_slab < SLAB_MAX) s->next_slab *= s->next_slab < SLAB_MAPPED ? 4 : 2;
    if (s->next_slab > SLAB_MAX) s->next_slab = SLAB_MAX;
    atomic_store_explicit(&s->heap_bytes,
                          atomic_load_explicit(&s->heap_bytes, memory_order_relaxed) + size,
                          memory_order_relaxed);
    return true;
}

/* Where `lead` bytes of links end and the node begins, in the newest slab; 0: no room. */
static size_t place_in(const slab *b, size_t lead, size_t size)
{
    size_t at = round_up(b->used + lead, 8);
    if (size >= ALIGN_FROM) {
        /* The lowest link opens the line. */
        uintptr_t address = (uintptr_t)b + at - sizeof(link);
        at += (size_t)(-address & (CACHE_LINE - 1));
    }
    return at + size <= b->size ? at : 0;
}

static rq_segment_node *alloc_node(rq_segment *s, unsigned height, size_t payload)
{
    size_t lead = height * sizeof(link);
    size_t size = NODE_HEADER + payload;
    size_t at = s->slabs == NULL ? 0 : place_in(s->slabs, lead, size);
    if (at == 0) {
        if (!add_slab(s, lead + size + CACHE_LINE)) return NULL;
        at = place_in(s->slabs, lead, size);
    }
    s->slabs->used = at + size;
    rq_segment_node *n = (rq_segment_node *)((uint8_t *)s->slabs + at);
    n->height = (uint8_t)height;
    return n;
}

void rq_segment_rollback(rq_segment *s, rq_segment_node *n)
{
    uint8_t *p = (uint8_t *)n;
    while (p < (uint8_t *)s->slabs || p >= (uint8_t *)s->slabs + s->slabs->size) {
        slab *b = s->slabs;
        s->slabs = b->older;
        atomic_store_explicit(&s->heap_bytes,
                              atomic_load_explicit(&s->heap_bytes, memory_order_relaxed) - b->size,
                              memory_order_relaxed);
        free_slab(b);
        RQ_ASSERT(s->slabs != NULL);
    }
    s->slabs->used = (size_t)(p - (uint8_t *)s->slabs) - n->height * sizeof(link);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_segment_new(rq_cell_order order, rq_segment **ret)
{
    rq_segment *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    atomic_init(&s->refs, 1);
    s->order = order;
    s->next_slab = SLAB_FIRST;
    s->random = 0x9e3779b97f4a7c15u; /* the same in each: a simulated run must repeat */
    atomic_init(&s->height, 1);
    atomic_init(&s->heap_bytes, sizeof *s);
    atomic_init(&s->min_ts, INT64_MAX);
    atomic_init(&s->max_ts, INT64_MIN);
    atomic_init(&s->min_seqid, UINT64_MAX);
    for (unsigned i = 0; i < HEIGHT_MAX; i++)
        s->path[i] = head_of(s);
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
    slab *older;
    for (slab *b = s->slabs; b != NULL; b = older) {
        older = b->older;
        free_slab(b);
    }
    free(s);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* One in four nodes stands on the next level too. */
static unsigned random_height(rq_segment *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    /* the top bit is set so that the count ends */
    unsigned zeros = (unsigned)__builtin_ctzll(s->random | (uint64_t)1 << 63);
    unsigned height = 1 + zeros / 2;
    return height > HEIGHT_MAX ? HEIGHT_MAX : height;
}

rq_err rq_segment_prepare(rq_segment *s, const rq_cell *cell, rq_segment_node **ret)
{
    size_t len = rq_cell_serialized_len(cell, true);
    if (len > INT32_MAX) return RQ_E_INVALID;
    rq_segment_node *n = alloc_node(s, random_height(s), 4 + len);
    if (n == NULL) return RQ_E_NO_MEMORY;
    n->prefix = prefix_of(s->order, cell->row, cell->row_len);
    rq_put_be32(n->bytes, (uint32_t)len);
    rq_cell_serialize(cell, true, n->bytes + 4);
    *ret = n;
    return RQ_OK;
}

rq_slice rq_segment_node_bytes(const rq_segment_node *n)
{
    return rq_slice_of(n->bytes, 4 + (size_t)rq_get_be32(n->bytes));
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

/*
 * Fills s->path for the key. Keys often come in order (one batch, time series): when the key
 * belongs right behind the node linked last, the path of then still holds, with that node on its
 * levels.
 */
static void find_path(rq_segment *s, const probe *key)
{
    rq_segment_node *last = s->last;
    if (last != NULL && node_compare(s, last, key) < 0) {
        rq_segment_node *next = next_of(last, 0);
        if (next == NULL || node_compare(s, next, key) >= 0) {
            unsigned height = atomic_load_explicit(&s->height, memory_order_relaxed);
            for (unsigned i = 0; i < last->height && i < height; i++)
                s->path[i] = last;
            return;
        }
    }
    find_before(s, key, s->path);
}

void rq_segment_link(rq_segment *s, rq_segment_node *n, uint64_t seqid)
{
    n->seqid = seqid;
    rq_cell cell;
    node_cell(n, &cell);
    probe key = {&cell, n->prefix};
    find_path(s, &key);
    rq_segment_node *old = next_of(s->path[0], 0);
    if (old != NULL && node_compare(s, old, &key) != 0) old = NULL;
    unsigned old_height = old == NULL ? 0 : old->height;

    if (n->height > atomic_load_explicit(&s->height, memory_order_relaxed))
        atomic_store_explicit(&s->height, n->height,
                              memory_order_relaxed); /* path is the head there */
    for (unsigned i = 0; i < n->height; i++) {
        rq_segment_node *next = next_of(i < old_height ? old : s->path[i], i);
        atomic_store_explicit(link_of(n, i), next, memory_order_relaxed);
    }
    for (unsigned i = 0; i < n->height; i++)
        atomic_store_explicit(link_of(s->path[i], i), n, memory_order_release);
    for (unsigned i = n->height; i < old_height; i++)
        atomic_store_explicit(link_of(s->path[i], i), next_of(old, i), memory_order_release);
    s->last = n;
    if (old != NULL) forget_replaced(s, old);
    note(s, &cell, rq_get_be32(n->bytes));
}

rq_err rq_segment_add(rq_segment *s, const rq_cell *cell)
{
    rq_segment_node *n;
    RQ_TRY(rq_segment_prepare(s, cell, &n));
    rq_segment_link(s, n, cell->seqid);
    return RQ_OK;
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

bool rq_segment_has_tags(const rq_segment *s)
{
    return atomic_load_explicit(&s->has_tags, memory_order_relaxed);
}

void rq_segment_time_range(const rq_segment *s, int64_t *ret_min, int64_t *ret_max)
{
    *ret_min = atomic_load_explicit(&s->min_ts, memory_order_relaxed);
    *ret_max = atomic_load_explicit(&s->max_ts, memory_order_relaxed);
}

void rq_segment_seqid_range(const rq_segment *s, uint64_t *ret_min, uint64_t *ret_max)
{
    *ret_min = atomic_load_explicit(&s->min_seqid, memory_order_relaxed);
    *ret_max = atomic_load_explicit(&s->max_seqid, memory_order_relaxed);
}

/* --- reading ---------------------------------------------------------------------------------- */

void rq_segment_seek(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key)
{
    probe p = probe_of(s, key);
    c->segment = s;
    c->node = next_of(find_before(s, &p, NULL), 0);
}

void rq_segment_first(rq_segment_cursor *c, const rq_segment *s)
{
    c->segment = s;
    c->node = next_of(head_of(s), 0);
}

void rq_segment_seek_before(rq_segment_cursor *c, const rq_segment *s, const rq_cell *key)
{
    probe p = probe_of(s, key);
    const rq_segment_node *n = find_before(s, &p, NULL);
    c->segment = s;
    c->node = n == head_of(s) ? NULL : n;
}

void rq_segment_cursor_cell(const rq_segment_cursor *c, rq_cell *ret)
{
    node_cell(c->node, ret);
}

void rq_segment_cursor_next(rq_segment_cursor *c)
{
    c->node = next_of(c->node, 0);
}
