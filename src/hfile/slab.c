/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks, bitmaps, first fit (slab.h). Under AddressSanitizer everything is malloc's, so that it
 * sees a piece's end.
 *
 * Invariants: longest[i] is at least the length of the longest free run in chunk i of the index.
 * Taking a piece may leave it too large; a search that finds no such run corrects it. groups[g] sums up
 * GROUP chunks, so that a cache of many chunks is searched in few steps. Both keep short the time for which
 * taking a piece holds the lock.
 */
#include "hfile/slab.h"

#include "base/huge.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES RQ_HUGE_BYTES
#define UNIT_BYTES ((size_t)1024)
#define UNITS (CHUNK_BYTES / UNIT_BYTES)
#define PIECE_MIN ((size_t)2 * 1024)
#define PIECE_MAX ((size_t)1 << 20)

#define GROUP 64 /* chunks */

#define USE_CHUNKS !RQ_ASAN

#define READY_FROM 4 /* chunks in use: a small cache does not pay for one it may never need */
/* Chunks made ready, as a share of those in use; at least and at most this many. */
#define READY_SHARE 8
#define READY_MIN 2
#define READY_MAX 16

typedef struct chunk {
    rq_huge_part part;
    uint32_t used; /* units */
    bool advised;  /* a huge page was requested */
    uint64_t taken[UNITS / 64];
} chunk;

/* Summary of GROUP chunks that are neighbours in the index. */
typedef struct group {
    uint16_t longest; /* maximum of longest[i] over the chunks in use */
    bool has_empty;
} group;

struct rq__slab {
    pthread_mutex_t lock;
    rq_huge_index chunks RQ_GUARDED_BY(lock);
    uint32_t *longest; /* per chunk: upper bound of the longest free run, in units */
    size_t longest_cap;
    group *groups;        /* as many as longest_cap chunks need */
    rq_huge_unused empty; /* chunks nothing is cut from */

    rq_huge_stock stock;
    size_t most; /* chunks, up to which some are made ready */
};

rq_err rq__slab_new(rq__slab **ret)
{
    rq__slab *s = calloc(1, sizeof(*s));
    if (s == NULL) return RQ_E_NO_MEMORY;
    (void)pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return RQ_OK;
}

static chunk *chunk_at(const rq__slab *s, size_t at)
{
    return RQ_CONTAINER_OF(s->chunks.parts[at], chunk, part);
}

static void chunk_free(chunk *c)
{
    rq_huge_unmap(c->part.base);
    free(c);
}

void rq__slab_free(rq__slab *s)
{
    if (s == NULL) return;
    rq_huge_stock_stop(&s->stock);
    for (size_t i = 0; i < s->chunks.count; i++) {
        RQ_ASSERT(chunk_at(s, i)->used == 0);
        chunk_free(chunk_at(s, i));
    }
    rq_huge_index_clear(&s->chunks);
    free(s->longest);
    free(s->groups);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

/* The first unit at or behind `from` whose bit is `value`; UNITS if there is none. */
static size_t next_bit(const chunk *c, size_t from, bool value)
{
    while (from < UNITS) {
        uint64_t word = c->taken[from / 64];
        if (!value) word = ~word;
        word >>= from % 64;
        if (word != 0) return from + (size_t)__builtin_ctzll(word);
        from = (from / 64 + 1) * 64;
    }
    return UNITS;
}

static void set_bits(chunk *c, size_t from, size_t units, bool value)
{
    for (size_t i = from; i < from + units;) {
        size_t n = 64 - i % 64;
        if (n > from + units - i) n = from + units - i;
        uint64_t mask = (n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1) << i % 64;
        if (value)
            c->taken[i / 64] |= mask;
        else
            c->taken[i / 64] &= ~mask;
        i += n;
    }
    c->used = (uint32_t)(value ? c->used + units : c->used - units);
}

static uint32_t longest_run(const chunk *c)
{
    size_t longest = 0;
    for (size_t at = next_bit(c, 0, false); at < UNITS;) {
        size_t end = next_bit(c, at, true);
        if (end - at > longest) longest = end - at;
        at = next_bit(c, end, false);
    }
    return (uint32_t)longest;
}

/* UNITS: the chunk has no run that long. */
static size_t first_fit(const chunk *c, size_t units)
{
    size_t at = next_bit(c, 0, false);
    while (at < UNITS) {
        size_t end = next_bit(c, at, true);
        if (end - at >= units) return at;
        at = next_bit(c, end, false);
    }
    return UNITS;
}

/* Of the free run that the unit is in. */
static uint32_t run_around(const chunk *c, size_t unit)
{
    size_t from = unit;
    while (from > 0 && (c->taken[(from - 1) / 64] >> (from - 1) % 64 & 1) == 0)
        from--;
    return (uint32_t)(next_bit(c, unit, true) - from);
}

/* For a chunk that was not made ready: asks for a huge page once the chunk is nearly full, and so
 * mostly touched. The kernel then merges the pages in the background, some megabytes per second. If
 * asked before the first touch, it would do so in the page fault, on the loop that reads a block:
 * up to a millisecond with fragmented memory. */
static void advise(chunk *c)
{
    if (c->advised || c->used < UNITS / 8 * 7) return;
    c->advised = true;
    rq_huge_advise(c->part.base);
}

/* --- the search for room ---------------------------------------------------------------------- */

static void sum_up(rq__slab *s, size_t g)
{
    size_t end = (g + 1) * GROUP < s->chunks.count ? (g + 1) * GROUP : s->chunks.count;
    group sum = {0};
    for (size_t at = g * GROUP; at < end; at++) {
        bool is_empty = s->longest[at] == UNITS;
        sum.has_empty |= is_empty;
        if (!is_empty && s->longest[at] > sum.longest) sum.longest = (uint16_t)s->longest[at];
    }
    s->groups[g] = sum;
}

/* After the chunks from this place on have moved in the index. */
static void sum_up_from(rq__slab *s, size_t at)
{
    for (size_t g = at / GROUP; g * GROUP < s->chunks.count; g++)
        sum_up(s, g);
}

static void set_longest(rq__slab *s, size_t at, uint32_t longest)
{
    group *g = &s->groups[at / GROUP];
    bool only_grows = longest < UNITS && longest >= s->longest[at];
    s->longest[at] = longest;
    if (!only_grows)
        sum_up(s, at / GROUP);
    else if (longest > g->longest)
        g->longest = (uint16_t)longest;
}

/* Room in the arrays for one more. */
static bool room_for_chunk(rq__slab *s)
{
    if (!rq_huge_index_reserve(&s->chunks)) return false;
    if (s->longest_cap == s->chunks.cap) return true;
    uint32_t *longest = realloc(s->longest, s->chunks.cap * sizeof(*longest));
    if (longest == NULL) return false;
    s->longest = longest;
    group *groups = realloc(s->groups, (s->chunks.cap / GROUP + 1) * sizeof(*groups));
    if (groups == NULL) return false;
    s->groups = groups;
    s->longest_cap = s->chunks.cap;
    return true;
}

static chunk *chunk_new(void)
{
    chunk *c = calloc(1, sizeof(*c));
    if (c == NULL) return NULL;
    c->part.base = rq_huge_map();
    if (c->part.base != NULL) return c;
    free(c);
    return NULL;
}

/* There is room. Returns its place. */
static size_t insert_chunk(rq__slab *s, chunk *c)
{
    size_t at = rq_huge_index_insert(&s->chunks, &c->part);
    memmove(s->longest + at + 1, s->longest + at,
            (s->chunks.count - 1 - at) * sizeof(s->longest[0]));
    s->longest[at] = UNITS;
    sum_up_from(s, at);
    s->empty.count++;
    return at;
}

static bool add_chunk(rq__slab *s, size_t *ret_at)
{
    if (!room_for_chunk(s)) return false;
    chunk *c = chunk_new();
    if (c == NULL) return false;
    *ret_at = insert_chunk(s, c);
    return true;
}

static void remove_chunk(rq__slab *s, size_t at)
{
    rq_huge_index_remove(&s->chunks, at);
    memmove(s->longest + at, s->longest + at + 1, (s->chunks.count - at) * sizeof(s->longest[0]));
    sum_up_from(s, at);
}

/* The first chunk of the group whose longest[] is from `least` to `most`; the number of chunks if there is none. */
static size_t first_between(const rq__slab *s, size_t g, uint32_t least, uint32_t most)
{
    for (size_t at = g * GROUP; at < (g + 1) * GROUP && at < s->chunks.count; at++)
        if (s->longest[at] >= least && s->longest[at] <= most) return at;
    return s->chunks.count;
}

/* The first used chunk with room, else the first empty one. */
static size_t chunk_with_room(const rq__slab *s, uint32_t units)
{
    size_t end = (s->chunks.count + GROUP - 1) / GROUP, empty = end;
    for (size_t g = 0; g < end; g++) {
        if (s->groups[g].longest >= units) return first_between(s, g, units, UNITS - 1);
        if (empty == end && s->groups[g].has_empty) empty = g;
    }
    return empty == end ? s->chunks.count : first_between(s, empty, UNITS, UNITS);
}

/* The last empty chunk; the number of chunks if there is none. */
static size_t last_empty(const rq__slab *s)
{
    for (size_t g = (s->chunks.count + GROUP - 1) / GROUP; g-- > 0;) {
        if (!s->groups[g].has_empty) continue;
        size_t at = (g + 1) * GROUP < s->chunks.count ? (g + 1) * GROUP : s->chunks.count;
        while (s->longest[--at] < UNITS) {
        }
        return at;
    }
    return s->chunks.count;
}

/* Finds a chunk with a run that long, perhaps a new one, and where the run begins. */
static bool find_room(rq__slab *s, uint32_t units, size_t *ret_at, size_t *ret_unit)
{
    for (;;) {
        *ret_at = chunk_with_room(s, units);
        if (*ret_at == s->chunks.count) break;
        const chunk *c = chunk_at(s, *ret_at);
        *ret_unit = first_fit(c, units);
        if (*ret_unit < UNITS) return true;
        set_longest(s, *ret_at, longest_run(c));
    }
    *ret_unit = 0;
    return add_chunk(s, ret_at);
}

/* --- made ready ahead ------------------------------------------------------------------------- */

static bool is_short(const rq_huge_stock *stock)
{
    const rq__slab *s = RQ_CONTAINER_OF(stock, rq__slab, stock);
    size_t in_use = s->chunks.count - s->empty.count;
    size_t ready = in_use / READY_SHARE;
    if (ready < READY_MIN) ready = READY_MIN;
    if (ready > READY_MAX) ready = READY_MAX;
    return in_use >= READY_FROM && s->empty.count < ready && s->chunks.count < s->most;
}

static bool keep(rq_huge_stock *stock, void *base)
{
    rq__slab *s = RQ_CONTAINER_OF(stock, rq__slab, stock);
    if (!is_short(stock) || !room_for_chunk(s)) return false;
    chunk *c = calloc(1, sizeof(*c));
    if (c == NULL) return false;
    c->part.base = base;
    c->advised = true;
    (void)insert_chunk(s, c);
    return true;
}

void rq__slab_set_most(rq__slab *s, uint64_t bytes_max)
{
    (void)pthread_mutex_lock(&s->lock);
    s->most = (size_t)(bytes_max / CHUNK_BYTES);
    (void)pthread_mutex_unlock(&s->lock);
}

void rq__slab_make_ready(rq__slab *s, rq_executor *executor, uint64_t bytes_max)
{
    s->stock =
        (rq_huge_stock){.executor = executor, .lock = &s->lock, .is_short = is_short, .keep = keep};
    rq__slab_set_most(s, bytes_max);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static size_t round_up(size_t size)
{
    size_t step = UNIT_BYTES;
    while (step * 32 < size / 2)
        step *= 2;
    return (size + step - 1) / step * step;
}

static bool is_in_chunks(const rq__slab *s, size_t size)
{
    return USE_CHUNKS && s != NULL && size >= PIECE_MIN && size <= PIECE_MAX;
}

void *rq__slab_take(rq__slab *s, size_t size, size_t *ret_charge)
{
    if (!is_in_chunks(s, size)) {
        void *p = malloc(size);
        /* Includes malloc's own word; odd, so that it never equals the size of a piece of a
         * chunk. */
        if (p != NULL) *ret_charge = (malloc_usable_size(p) + sizeof(size_t)) | 1;
        return p;
    }
    size_t rounded = round_up(size);
    uint32_t units = (uint32_t)(rounded / UNIT_BYTES);
    uint8_t *piece = NULL;
    (void)pthread_mutex_lock(&s->lock);
    size_t at, unit;
    if (find_room(s, units, &at, &unit)) {
        chunk *c = chunk_at(s, at);
        if (c->used == 0) rq_huge_unused_take(&s->empty);
        set_bits(c, unit, units, true);
        if (s->longest[at] == UNITS)
            set_longest(s, at, UNITS - 1); /* marks it as not empty for chunk_with_room */
        advise(c);
        piece = c->part.base + unit * UNIT_BYTES;
    }
    bool refill = rq_huge_stock_claim(&s->stock);
    (void)pthread_mutex_unlock(&s->lock);
    if (refill) rq_huge_stock_refill(&s->stock);
    *ret_charge = rounded;
    return piece;
}

void rq__slab_give(rq__slab *s, void *piece, size_t charge)
{
    if (piece == NULL) return;
    if (charge % UNIT_BYTES != 0) {
        free(piece);
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    size_t at;
    chunk *c = RQ_CONTAINER_OF(rq_huge_index_of(&s->chunks, piece, &at), chunk, part);
    size_t unit = (size_t)((uint8_t *)piece - c->part.base) / UNIT_BYTES;
    set_bits(c, unit, charge / UNIT_BYTES, false);
    uint32_t run = run_around(c, unit);
    if (run > s->longest[at]) set_longest(s, at, run);
    if (c->used == 0) s->empty.count++;
    (void)pthread_mutex_unlock(&s->lock);
}

/* One at a time, so that no thread waits for the kernel. */
static chunk *take_empty(rq__slab *s)
{
    chunk *c = NULL;
    (void)pthread_mutex_lock(&s->lock);
    size_t at = last_empty(s);
    if (at < s->chunks.count) {
        c = chunk_at(s, at);
        RQ_ASSERT(c->used == 0);
        remove_chunk(s, at);
        rq_huge_unused_take(&s->empty);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return c;
}

void rq__slab_trim(rq__slab *s, unsigned share)
{
    (void)pthread_mutex_lock(&s->lock);
    size_t count = rq_huge_unused_excess(&s->empty, share);
    (void)pthread_mutex_unlock(&s->lock);
    for (; count > 0; count--) {
        chunk *c = take_empty(s);
        if (c == NULL) break;
        chunk_free(c);
    }
    (void)pthread_mutex_lock(&s->lock);
    rq_huge_unused_restart(&s->empty);
    (void)pthread_mutex_unlock(&s->lock);
}

uint64_t rq__slab_mapped(rq__slab *s)
{
    (void)pthread_mutex_lock(&s->lock);
    uint64_t mapped = s->chunks.count * CHUNK_BYTES;
    (void)pthread_mutex_unlock(&s->lock);
    return mapped;
}
