/* SPDX-License-Identifier: Apache-2.0 */
/* Shards by hash, each with its own lock. A shard is a queue of entries by age, in chunks that
 * never move, and a hash table with chains through the entries. The table grows by one chain at a
 * time (linear hashing), so no operation ever rebuilds it.
 *
 *    id = shard (4 bits) | position (28 bits); positions count up as entries are added at the back,
 *    down as older ones are added at the front, and wrap around.
 *
 * Memory: entry 32 bytes + chain heads 2 to 2.5 (4 for two entries, a fifth of them unused) +
 * chunks 0.5 + the id in the region's list 4 to 4.5: less than 40 bytes per nonce. */
#include "region/nonces.h"

#include "base/bytes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_BITS 4
#define SHARDS (1u << SHARD_BITS)
#define POSITION_BITS (32 - SHARD_BITS)
#define POSITION_MASK ((1u << POSITION_BITS) - 1)
#define NONE UINT32_MAX /* the end of a chain */

#define CHUNK 64 /* entries */
#define CHUNKS_FIRST 8
#define HEADS_FIRST 16
/* The unit of time is 2^26 ns, 67 ms: 32 bits are enough for nine years. */
#define UNIT_SHIFT 26
/* Shards fill unevenly: with this slack, each of count_max nonces finds room. */
#define SHARE_SLACK 24 /* 1/24 of a share; 1/24 of 62,500 is ten standard deviations */
#define SHARE_MORE 64
#define EXPIRE_PIECE 512

typedef struct entry {
    uint64_t group, nonce;
    uint64_t seqid; /* 0: its operation did not happen */
    uint32_t time;  /* units */
    uint32_t next;  /* position in its chain */
} entry;

typedef struct shard {
    pthread_mutex_t lock;
    entry **chunks; /* by position / CHUNK modulo chunk_room; NULL: not allocated */
    uint32_t chunk_room;
    uint32_t chunk_count;
    uint32_t first, count; /* positions of the queue */
    uint32_t *heads;
    uint32_t buckets, head_room;
    uint32_t dead; /* entries without a number */
} shard;

struct rq__nonces {
    rq_executor *executor;
    uint64_t seed;
    uint64_t life_ms;
    uint64_t origin_ns; /* one lifetime before the table was created, in the clock of time_now */
    uint32_t life;      /* units */
    uint32_t shard_max;
    _Atomic uint64_t dropped;
    _Atomic uint32_t floor; /* in units: when the entry that was dropped last was added */
    shard shards[SHARDS];
};

/* --- time ------------------------------------------------------------------------------------- */

/* The origin is early enough for ages that reach back before the table was created. */
static uint32_t time_now(const rq__nonces *n)
{
    uint64_t since = n->executor->now_ns(n->executor) - n->origin_ns;
    return (uint32_t)(since >> UNIT_SHIFT) + n->life + 1;
}

static uint32_t units_of_ms(uint64_t ms)
{
    uint64_t units = (ms * 1000000) >> UNIT_SHIFT;
    return units > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)units;
}

static bool is_expired(const rq__nonces *n, const entry *e, uint32_t now)
{
    return now - e->time > n->life;
}

/* --- places ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const rq__nonces *n, uint64_t group, uint64_t nonce)
{
    uint64_t h = (group ^ n->seed) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32 ^ nonce) * UINT64_C(0xd6e8feb86659fd93);
    h = (h ^ h >> 32 ^ n->seed) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

static shard *shard_of(rq__nonces *n, uint64_t hash)
{
    return &n->shards[hash >> (64 - SHARD_BITS)];
}

static entry *entry_at(const shard *s, uint32_t position)
{
    return &s->chunks[position / CHUNK & (s->chunk_room - 1)][position % CHUNK];
}

static bool holds(const shard *s, uint32_t position)
{
    return ((position - s->first) & POSITION_MASK) < s->count;
}

static uint32_t behind_last(const shard *s)
{
    return (s->first + s->count) & POSITION_MASK;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static uint32_t chunks_spanned(uint32_t first, uint32_t count)
{
    return (first % CHUNK + count + CHUNK - 1) / CHUNK;
}

static rq_err chunk_list_grow(shard *s)
{
    uint32_t room = s->chunk_room == 0 ? CHUNKS_FIRST : s->chunk_room * 2;
    entry **list = calloc(room, sizeof(entry *));
    if (list == NULL) return RQ_E_NO_MEMORY;
    uint32_t spanned = s->count == 0 ? 0 : chunks_spanned(s->first, s->count);
    for (uint32_t i = 0; i < spanned; i++) {
        uint32_t c = (s->first / CHUNK + i) & (POSITION_MASK / CHUNK);
        list[c & (room - 1)] = s->chunks[c & (s->chunk_room - 1)];
    }
    free(s->chunks);
    s->chunks = list;
    s->chunk_room = room;
    return RQ_OK;
}

/* Allocates the chunk of the position, which is next to the queue's end or beginning. */
static rq_err chunk_need(shard *s, uint32_t position, uint32_t first)
{
    if (s->chunk_room < chunks_spanned(first, s->count + 1)) RQ_TRY(chunk_list_grow(s));
    entry **at = &s->chunks[position / CHUNK & (s->chunk_room - 1)];
    if (*at != NULL) return RQ_OK;
    *at = malloc(CHUNK * sizeof(entry));
    if (*at == NULL) return RQ_E_NO_MEMORY;
    s->chunk_count++;
    return RQ_OK;
}

static void chunk_free(shard *s, uint32_t position)
{
    entry **at = &s->chunks[position / CHUNK & (s->chunk_room - 1)];
    free(*at);
    *at = NULL;
    s->chunk_count--;
}

static void chunks_clear(shard *s)
{
    for (uint32_t i = 0; i < s->chunk_room; i++)
        free(s->chunks[i]);
    free(s->chunks);
    free(s->heads);
    s->chunks = NULL;
    s->heads = NULL;
    s->chunk_room = s->chunk_count = s->buckets = s->head_room = s->count = s->dead = 0;
}

/* --- chains ----------------------------------------------------------------------------------- */

/* The largest power of two that is at most v. */
static uint32_t floor_power(uint32_t v)
{
    return 1u << (31 - __builtin_clz(v));
}

static uint32_t *head_of(const shard *s, uint64_t hash)
{
    uint32_t low = floor_power(s->buckets);
    uint32_t b = (uint32_t)hash & (2 * low - 1);
    return &s->heads[b < s->buckets ? b : b & (low - 1)];
}

static rq_err heads_need(shard *s)
{
    if (s->heads != NULL) return RQ_OK;
    s->heads = malloc(HEADS_FIRST * sizeof *s->heads);
    if (s->heads == NULL) return RQ_E_NO_MEMORY;
    for (uint32_t i = 0; i < HEADS_FIRST; i++)
        s->heads[i] = NONE;
    s->buckets = s->head_room = HEADS_FIRST;
    return RQ_OK;
}

/* Adds a chain, which takes over its share of another one. Without memory the chains only get
 * longer. */
static void chains_split(const rq__nonces *n, shard *s)
{
    if (s->buckets == s->head_room) {
        uint32_t room = s->head_room + s->head_room / 4;
        uint32_t *heads = realloc(s->heads, room * sizeof *heads);
        if (heads == NULL) return;
        s->heads = heads;
        s->head_room = room;
    }
    uint32_t low = floor_power(s->buckets);
    uint32_t *from = &s->heads[s->buckets - low];
    uint32_t *to = &s->heads[s->buckets];
    *to = NONE;
    while (*from != NONE) {
        entry *e = entry_at(s, *from);
        if (((uint32_t)hash_of(n, e->group, e->nonce) & (2 * low - 1)) == s->buckets) {
            *to = *from;
            *from = e->next;
            to = &e->next;
            *to = NONE;
        } else {
            from = &e->next;
        }
    }
    s->buckets++;
}

static void chain_add(const rq__nonces *n, shard *s, uint32_t position, uint64_t hash)
{
    uint32_t *head = head_of(s, hash);
    entry_at(s, position)->next = *head;
    *head = position;
    if (s->count > 2 * s->buckets) chains_split(n, s);
}

static void chain_remove(const rq__nonces *n, const shard *s, uint32_t position)
{
    const entry *e = entry_at(s, position);
    uint32_t *at = head_of(s, hash_of(n, e->group, e->nonce));
    while (*at != position)
        at = &entry_at(s, *at)->next;
    *at = e->next;
}

/* Its position, or NONE. */
static uint32_t chain_find(const shard *s, uint64_t hash, uint64_t group, uint64_t nonce)
{
    uint32_t position = s->count == 0 ? NONE : *head_of(s, hash);
    while (position != NONE) {
        const entry *e = entry_at(s, position);
        if (e->nonce == nonce && e->group == group) break;
        position = e->next;
    }
    return position;
}

/* --- the queue -------------------------------------------------------------------------------- */

static void pop_first(const rq__nonces *n, shard *s)
{
    uint32_t position = s->first;
    chain_remove(n, s, position);
    s->dead -= entry_at(s, position)->seqid == 0;
    s->first = (s->first + 1) & POSITION_MASK;
    s->count--;
    if (s->first % CHUNK == 0 || s->count == 0) chunk_free(s, position);
    if (s->count == 0) chunks_clear(s);
}

static void pop_last(const rq__nonces *n, shard *s)
{
    uint32_t position = (behind_last(s) - 1) & POSITION_MASK;
    chain_remove(n, s, position);
    s->dead -= entry_at(s, position)->seqid == 0;
    s->count--;
    if (position % CHUNK == 0 || s->count == 0) chunk_free(s, position);
    if (s->count == 0) chunks_clear(s);
}

static void expire(const rq__nonces *n, shard *s, uint32_t now, unsigned most)
{
    while (s->count > 0 && most-- > 0 && is_expired(n, entry_at(s, s->first), now))
        pop_first(n, s);
}

/* The shard is full: the oldest goes. */
static void drop_first(rq__nonces *n, shard *s)
{
    const entry *e = entry_at(s, s->first);
    if (e->seqid != 0) {
        atomic_fetch_add_explicit(&n->dropped, 1, memory_order_relaxed);
        if (e->time > atomic_load_explicit(&n->floor, memory_order_relaxed))
            atomic_store_explicit(&n->floor, e->time, memory_order_relaxed);
    }
    pop_first(n, s);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq__nonces_new(rq_executor *ex, size_t count_max, uint64_t life_ms, rq__nonces **ret)
{
    rq__nonces *n = calloc(1, sizeof *n);
    if (n == NULL) return RQ_E_NO_MEMORY;
    size_t share = count_max / SHARDS;
    share += share / SHARE_SLACK + SHARE_MORE;
    n->executor = ex;
    n->seed = ex->random(ex);
    n->life_ms = life_ms;
    n->life = units_of_ms(life_ms) + 1;
    n->origin_ns = ex->now_ns(ex);
    n->shard_max = share < POSITION_MASK / 2 ? (uint32_t)share : POSITION_MASK / 2;
    for (unsigned i = 0; i < SHARDS; i++)
        pthread_mutex_init(&n->shards[i].lock, NULL);
    *ret = n;
    return RQ_OK;
}

void rq__nonces_free(rq__nonces *n)
{
    if (n == NULL) return;
    for (unsigned i = 0; i < SHARDS; i++) {
        chunks_clear(&n->shards[i]);
        pthread_mutex_destroy(&n->shards[i].lock);
    }
    free(n);
}

/* --- operations ------------------------------------------------------------------------------- */

uint64_t rq__nonces_find(rq__nonces *n, uint64_t group, uint64_t nonce)
{
    uint64_t hash = hash_of(n, group, nonce);
    shard *s = shard_of(n, hash);
    uint64_t seqid = 0;
    pthread_mutex_lock(&s->lock);
    uint32_t position = chain_find(s, hash, group, nonce);
    if (position != NONE && !is_expired(n, entry_at(s, position), time_now(n)))
        seqid = entry_at(s, position)->seqid;
    pthread_mutex_unlock(&s->lock);
    return seqid;
}

/* REQUIRES: lock. */
static rq_err push_last(rq__nonces *n, shard *s, uint64_t hash, const entry *e, uint32_t *ret)
{
    if (s->count >= n->shard_max) drop_first(n, s);
    RQ_TRY(heads_need(s));
    uint32_t position = behind_last(s);
    RQ_TRY(chunk_need(s, position, s->first));
    *entry_at(s, position) = *e;
    s->count++;
    chain_add(n, s, position, hash);
    *ret = position;
    return RQ_OK;
}

/* REQUIRES: lock, room in the shard. */
static rq_err push_first(const rq__nonces *n, shard *s, uint64_t hash, const entry *e)
{
    RQ_TRY(heads_need(s));
    uint32_t position = (s->first - 1) & POSITION_MASK;
    RQ_TRY(chunk_need(s, position, position));
    *entry_at(s, position) = *e;
    s->first = position;
    s->count++;
    chain_add(n, s, position, hash);
    return RQ_OK;
}

rq_err rq__nonces_add(rq__nonces *n, uint64_t group, uint64_t nonce, uint64_t seqid,
                      rq__nonce_id *ret)
{
    uint64_t hash = hash_of(n, group, nonce);
    shard *s = shard_of(n, hash);
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&s->lock);
    uint32_t now = time_now(n);
    expire(n, s, now, 2);
    uint32_t position = chain_find(s, hash, group, nonce);
    entry *old = position == NONE ? NULL : entry_at(s, position);
    if (old != NULL && old->seqid == 0 && now - old->time < n->life / 8) {
        old->seqid = seqid; /* the next attempt of what did not happen */
        s->dead--;
    } else if (old == NULL || old->seqid == 0 || is_expired(n, old, now)) {
        entry e = {.group = group, .nonce = nonce, .seqid = seqid, .time = now};
        rc = push_last(n, s, hash, &e, &position); /* before an older one in its chain */
    }
    pthread_mutex_unlock(&s->lock);
    if (rc != RQ_OK) return rc;
    *ret = (rq__nonce_id)(s - n->shards) << POSITION_BITS | position;
    return RQ_OK;
}

void rq__nonces_forget(rq__nonces *n, rq__nonce_id id)
{
    shard *s = &n->shards[id >> POSITION_BITS];
    uint32_t position = id & POSITION_MASK;
    pthread_mutex_lock(&s->lock);
    if (holds(s, position) && entry_at(s, position)->seqid != 0) {
        entry_at(s, position)->seqid = 0;
        s->dead++;
        if (((position + 1) & POSITION_MASK) == behind_last(s)) pop_last(n, s);
    }
    pthread_mutex_unlock(&s->lock);
}

rq_err rq__nonces_add_old(rq__nonces *n, const rq__nonce *old)
{
    uint64_t hash = hash_of(n, old->group, old->nonce);
    shard *s = shard_of(n, hash);
    rq_err rc = RQ_OK;
    uint32_t age = units_of_ms(old->age_ms);
    if (age >= n->life) return RQ_OK;
    pthread_mutex_lock(&s->lock);
    if (chain_find(s, hash, old->group, old->nonce) != NONE) {
    } else if (s->count >= n->shard_max) {
        atomic_fetch_add_explicit(&n->dropped, 1, memory_order_relaxed);
    } else {
        entry e = {.group = old->group,
                   .nonce = old->nonce,
                   .seqid = old->seqid,
                   .time = time_now(n) - age};
        rc = push_first(n, s, hash, &e);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

bool rq__nonces_get(rq__nonces *n, rq__nonce_id id, rq__nonce *ret)
{
    shard *s = &n->shards[id >> POSITION_BITS];
    uint32_t position = id & POSITION_MASK;
    pthread_mutex_lock(&s->lock);
    uint32_t now = time_now(n);
    const entry *e = holds(s, position) ? entry_at(s, position) : NULL;
    bool found = e != NULL && e->seqid != 0 && !is_expired(n, e, now);
    if (found) {
        uint64_t age_ms = ((uint64_t)(now - e->time) << UNIT_SHIFT) / 1000000;
        *ret = (rq__nonce){e->group, e->nonce, e->seqid, age_ms};
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void rq__nonces_expire(rq__nonces *n)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        shard *s = &n->shards[i];
        pthread_mutex_lock(&s->lock);
        expire(n, s, time_now(n), EXPIRE_PIECE);
        pthread_mutex_unlock(&s->lock);
    }
}

uint64_t rq__nonces_useless_before_ns(rq__nonces *n)
{
    uint32_t now = time_now(n);
    uint32_t before = now - n->life;
    uint32_t floor = atomic_load_explicit(&n->floor, memory_order_relaxed);
    if (floor > before) before = floor;
    uint64_t age_ns = (uint64_t)(now - before) << UNIT_SHIFT;
    uint64_t now_ns = n->executor->now_ns(n->executor);
    return age_ns < now_ns ? now_ns - age_ns : 0;
}

uint64_t rq__nonces_life_ms(const rq__nonces *n)
{
    return n->life_ms;
}

void rq__nonces_get_stats(rq__nonces *n, rq__nonces_stats *ret)
{
    *ret = (rq__nonces_stats){.dropped = atomic_load(&n->dropped), .bytes = sizeof *n};
    for (unsigned i = 0; i < SHARDS; i++) {
        shard *s = &n->shards[i];
        pthread_mutex_lock(&s->lock);
        ret->count += s->count - s->dead;
        ret->bytes += s->chunk_count * CHUNK * sizeof(entry) + s->chunk_room * sizeof(entry *) +
                      s->head_room * sizeof *s->heads;
        pthread_mutex_unlock(&s->lock);
    }
}

/* --- the list --------------------------------------------------------------------------------- */

rq_err rq__nonce_list_reserve(rq__nonce_list *l)
{
    if (RQ_LIKELY(l->count < l->room)) return RQ_OK;
    size_t room = l->room < 16 ? 16 : l->room + l->room / 8;
    rq__nonce_id *ids = realloc(l->ids, room * sizeof *ids);
    if (ids == NULL) return RQ_E_NO_MEMORY;
    l->ids = ids;
    l->room = room;
    return RQ_OK;
}

void rq__nonce_list_add(rq__nonce_list *l, rq__nonce_id id)
{
    l->ids[l->count++] = id;
}

void rq__nonce_list_drop(rq__nonce_list *l, size_t count)
{
    l->count -= count;
    if (l->count == 0)
        rq__nonce_list_clear(l);
    else
        memmove(l->ids, l->ids + count, l->count * sizeof *l->ids);
}

void rq__nonce_list_clear(rq__nonce_list *l)
{
    free(l->ids);
    *l = (rq__nonce_list){0};
}
