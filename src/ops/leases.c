/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners between their calls: a table by id, a list by age. A request takes its scanner out of
 * the table and returns it with a new lease; a scanner that no request takes is closed when its
 * lease ends.
 *
 * A scanner that reached its end is remembered for a while: old clients close it once more, and a
 * retry of its last call must be distinguished from an error. HBASE: RSRpcServices.closedScanners.
 *
 * Memory. A scanner with its filter and columns is charged from its opening until it is freed, to
 * the sum of all scanners and to the connection of its last call (clients change connections). Of
 * the free memory
 *
 *  - a connection with up to SMALL_BYTES takes what it needs,
 *  - any other may only take as much as leaves a third of its own total free, and an eighth of the
 *    limit.
 *
 * So a single connection may use three quarters, a later one a share of the rest, and connections
 * with few scanners always find room. Only opening a scanner is refused. The growth of an open
 * scanner, for a row's key, is charged but never refused.
 *
 * Scanners of a closed connection are orphans. They are closed after RQ__ORPHAN_NS, or earlier when
 * an opening finds no room: a few at once, so that no opening takes long, the others by the timer.
 *
 * One mutex guards the table; it is never held while a scanner is opened, read or closed. The table
 * grows by one bucket at a time (linear hashing), and a step visits at most the scanners of one
 * bucket or CLOSED_AT_ONCE. */
#include "ops/leases.h"

#include "base/long_free.h"

#include <pthread.h>
#include <stdlib.h>

#define PAGE 4096      /* buckets allocated at a time, and at first */
#define PAGES_MAX 4096 /* beyond, chains grow */
#define CLOSED 4096    /* remembered; a ring by id */

/* Size of a holder with the beginning of its arena: enough for a scan of one family and short
 * rows. */
#define HOLDER_BYTES ((size_t)2304)
#define HOLDER_CHARGE (HOLDER_BYTES + 16 + sizeof(void *)) /* with malloc's head and a bucket */
#define SMALL_BYTES ((size_t)64 << 10)
#define CLOSED_AT_ONCE 128 /* scanners: some tens of microseconds */
#define TICK_NS 1000000000ull
#define SOON_NS 1000000ull

typedef struct closed_scanner {
    uint64_t id;
    uint64_t last_seq;
} closed_scanner;

struct rq_scan_owner {
    size_t charged;
    size_t count;          /* of its scanners */
    rq__scan_holder *idle; /* those that are not busy */
    bool gone;             /* its connection */
    bool listed;           /* among the table's orphans */
    uint64_t gone_ns;
    rq_scan_owner *newer, *older; /* orphans */
};

/* Made with the first scanner: these are 128 kB, and an embedded database often has none. */
typedef struct scanner_tables {
    rq__scan_holder **pages[PAGES_MAX]; /* of buckets */
    rq__scan_holder *first_page[PAGE];
    closed_scanner closed[CLOSED];
} scanner_tables;

struct rq__leases {
    rq_env env;
    rq_lane *lane;
    uint64_t lease_ns;
    size_t bytes_max;
    rq_timer timer;
    pthread_mutex_t lock;
    uint64_t first_id; /* const */
    uint64_t next_id RQ_GUARDED_BY(lock);
    uint64_t expired RQ_GUARDED_BY(lock); /* scanners whose lease ended */
    scanner_tables *tables RQ_GUARDED_BY(lock);
    size_t bucket_count RQ_GUARDED_BY(lock);
    size_t bucket_mask RQ_GUARDED_BY(lock);      /* 2^n - 1, >= bucket_count - 1 */
    rq__scan_holder *oldest RQ_GUARDED_BY(lock); /* of those that are not busy */
    rq__scan_holder *newest RQ_GUARDED_BY(lock);
    size_t count RQ_GUARDED_BY(lock);
    size_t charged RQ_GUARDED_BY(lock);
    rq_scan_owner *oldest_gone RQ_GUARDED_BY(lock); /* with idle scanners */
    rq_scan_owner *newest_gone RQ_GUARDED_BY(lock);
    bool needs_memory RQ_GUARDED_BY(lock); /* no orphan stays */
    bool stopping RQ_GUARDED_BY(lock);
};

/* --- the table by id; all REQUIRE the lock, and but for find and make_tables, the tables --------- */

static bool make_tables(rq__leases *t)
{
    if (RQ_LIKELY(t->tables != NULL)) return true;
    t->tables = calloc(1, sizeof *t->tables);
    if (t->tables == NULL) return false;
    t->tables->pages[0] = t->tables->first_page;
    t->bucket_mask = PAGE - 1;
    t->bucket_count = PAGE;
    return true;
}

static rq__scan_holder **bucket_at(rq__leases *t, size_t i)
{
    return &t->tables->pages[i / PAGE][i % PAGE];
}

static rq__scan_holder **bucket_of(rq__leases *t, uint64_t id)
{
    size_t i = (size_t)id & t->bucket_mask;
    if (i >= t->bucket_count) i &= t->bucket_mask >> 1;
    return bucket_at(t, i);
}

/* Splits the next bucket. Without memory for a page the chains get longer. */
static void add_bucket(rq__leases *t)
{
    size_t added = t->bucket_count;
    if (added / PAGE >= PAGES_MAX) return;
    rq__scan_holder ***page = &t->tables->pages[added / PAGE];
    if (*page == NULL) *page = calloc(PAGE, sizeof **page);
    if (*page == NULL) return;
    if (added > t->bucket_mask) t->bucket_mask = t->bucket_mask * 2 + 1;
    rq__scan_holder **from = bucket_at(t, added & (t->bucket_mask >> 1));
    rq__scan_holder **to = bucket_at(t, added);
    t->bucket_count++;
    while (*from != NULL) {
        rq__scan_holder *h = *from;
        if (((size_t)h->id & t->bucket_mask) != added) {
            from = &h->hash_next;
            continue;
        }
        *from = h->hash_next;
        h->hash_next = *to;
        *to = h;
    }
}

static rq__scan_holder *find(rq__leases *t, uint64_t id)
{
    rq__scan_holder *h = t->tables == NULL ? NULL : *bucket_of(t, id);
    while (h != NULL && h->id != id)
        h = h->hash_next;
    return h;
}

static void link_hash(rq__leases *t, rq__scan_holder *h)
{
    if (t->count++ >= t->bucket_count) add_bucket(t);
    rq__scan_holder **bucket = bucket_of(t, h->id);
    h->hash_next = *bucket;
    *bucket = h;
}

static void unlink_hash(rq__leases *t, rq__scan_holder *h)
{
    rq__scan_holder **p = bucket_of(t, h->id);
    while (*p != h)
        p = &(*p)->hash_next;
    *p = h->hash_next;
    t->count--;
}

/* --- the list by age; REQUIRE the lock -------------------------------------------------------- */

static void unlink_age(rq__leases *t, rq__scan_holder *h)
{
    if (h->newer != NULL)
        h->newer->older = h->older;
    else
        t->newest = h->older;
    if (h->older != NULL)
        h->older->newer = h->newer;
    else
        t->oldest = h->newer;
    h->newer = h->older = NULL;
}

static void link_newest(rq__leases *t, rq__scan_holder *h)
{
    h->older = t->newest;
    h->newer = NULL;
    if (t->newest != NULL)
        t->newest->newer = h;
    else
        t->oldest = h;
    t->newest = h;
}

/* --- owners; REQUIRE the lock ----------------------------------------------------------------- */

rq_scan_owner *rq_scan_owner_get(void **state)
{
    if (*state == NULL) *state = calloc(1, sizeof(rq_scan_owner));
    return *state;
}

static void list_orphans(rq__leases *t, rq_scan_owner *o)
{
    if (!o->gone || o->listed || o->idle == NULL) return;
    o->listed = true;
    o->gone_ns = t->env.executor->now_ns(t->env.executor);
    o->older = t->newest_gone;
    o->newer = NULL;
    if (t->newest_gone != NULL)
        t->newest_gone->newer = o;
    else
        t->oldest_gone = o;
    t->newest_gone = o;
}

static void unlist_orphans(rq__leases *t, rq_scan_owner *o)
{
    if (!o->listed || o->idle != NULL) return;
    o->listed = false;
    if (o->newer != NULL)
        o->newer->older = o->older;
    else
        t->newest_gone = o->older;
    if (o->older != NULL)
        o->older->newer = o->newer;
    else
        t->oldest_gone = o->newer;
}

static void drop_owner(rq_scan_owner *o)
{
    if (o->gone && o->count == 0) free(o);
}

static void link_idle(rq__leases *t, rq__scan_holder *h)
{
    rq_scan_owner *o = h->owner;
    h->owner_prev = NULL;
    h->owner_next = o->idle;
    if (o->idle != NULL) o->idle->owner_prev = h;
    o->idle = h;
    list_orphans(t, o);
}

static void unlink_idle(rq__leases *t, rq__scan_holder *h)
{
    rq_scan_owner *o = h->owner;
    if (h->owner_next != NULL) h->owner_next->owner_prev = h->owner_prev;
    if (h->owner_prev != NULL)
        h->owner_prev->owner_next = h->owner_next;
    else
        o->idle = h->owner_next;
    h->owner_next = h->owner_prev = NULL;
    unlist_orphans(t, o);
}

static void join_owner(rq__scan_holder *h, rq_scan_owner *o)
{
    h->owner = o;
    o->count++;
    o->charged += h->charged;
}

static void leave_owner(rq__scan_holder *h)
{
    rq_scan_owner *o = h->owner;
    o->count--;
    o->charged -= h->charged;
    h->owner = NULL;
    drop_owner(o);
}

/* --- memory; REQUIRE the lock ----------------------------------------------------------------- */

/* Whether `own` bytes are a share that a connection may have, while others have `rest`. */
static bool is_share(const rq__leases *t, size_t own, size_t rest)
{
    if (own > t->bytes_max || rest > t->bytes_max - own) return false;
    size_t left = t->bytes_max - own - rest;
    return own <= SMALL_BYTES || (left >= own / 3 && left >= t->bytes_max / 8);
}

static bool fits(const rq__leases *t, const rq_scan_owner *o, size_t bytes)
{
    return is_share(t, o->charged + bytes, t->charged - o->charged);
}

static void charge(rq__leases *t, rq__scan_holder *h, size_t bytes)
{
    h->charged += bytes;
    h->owner->charged += bytes;
    t->charged += bytes;
}

static void arm(rq__leases *t, uint64_t delay_ns)
{
    t->env.executor->timer_arm(t->env.executor, &t->timer, t->lane, delay_ns);
}

static void arm_tick(rq__leases *t)
{
    uint64_t quarter = t->lease_ns / 4 + SOON_NS;
    arm(t, quarter < TICK_NS ? quarter : TICK_NS);
}

/* Removes it from the table; the caller frees it. REQUIRES: it is not busy. */
static void detach(rq__leases *t, rq__scan_holder *h)
{
    unlink_age(t, h);
    unlink_hash(t, h);
    unlink_idle(t, h);
    t->charged -= h->charged;
    leave_owner(h);
}

/* Detaches orphans until there is room, at most CLOSED_AT_ONCE; returns a chain by hash_next. If
 * that is not enough, the timer closes the others soon. */
static rq__scan_holder *reclaim(rq__leases *t, const rq_scan_owner *o, size_t bytes)
{
    rq__scan_holder *chain = NULL;
    for (unsigned i = 0; i < CLOSED_AT_ONCE && t->oldest_gone != NULL && !fits(t, o, bytes); i++) {
        rq__scan_holder *h = t->oldest_gone->idle;
        detach(t, h);
        h->hash_next = chain;
        chain = h;
    }
    if (t->oldest_gone != NULL && !t->needs_memory && !fits(t, o, bytes)) {
        t->needs_memory = true;
        if (t->env.executor->timer_cancel(t->env.executor, &t->timer)) arm(t, SOON_NS);
    }
    return chain;
}

/* --- freeing; without the lock ---------------------------------------------------------------- */

/* `ex` frees what is large (a filter may have 64 MB); NULL: it is freed here. */
static void free_holder(rq_executor *ex, rq__scan_holder *h)
{
    rq_region_scanner_close(h->scanner);
    if (h->region != NULL) rq_region_unref(h->region);
    rq_buf_clear(&h->partial_row_bytes);
    rq_long_clear_arena(ex, &h->arena);
    free(h);
}

static void free_chain(const rq__leases *t, rq__scan_holder *chain)
{
    while (chain != NULL) {
        rq__scan_holder *next = chain->hash_next;
        free_holder(t->env.executor, chain);
        chain = next;
    }
}

/* The next scanner to close: its lease is over, or its connection closed long ago. REQUIRES:
 * lock. */
static rq__scan_holder *overdue(rq__leases *t, uint64_t now)
{
    const rq_scan_owner *o = t->oldest_gone;
    if (t->oldest != NULL && t->oldest->expires_ns <= now) return t->oldest;
    return o != NULL && (t->needs_memory || o->gone_ns + RQ__ORPHAN_NS <= now) ? o->idle : NULL;
}

static void expire(rq_task *task)
{
    rq__leases *t = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq__leases, timer);
    uint64_t now = t->env.executor->now_ns(t->env.executor);
    rq__scan_holder *chain = NULL, *h;
    pthread_mutex_lock(&t->lock);
    for (unsigned i = 0; i < CLOSED_AT_ONCE && (h = overdue(t, now)) != NULL; i++) {
        t->expired += h->expires_ns <= now;
        detach(t, h);
        h->hash_next = chain;
        chain = h;
    }
    if (t->oldest_gone == NULL) t->needs_memory = false;
    if (t->stopping)
        ;
    else if (overdue(t, now) != NULL)
        arm(t, SOON_NS);
    else
        arm_tick(t);
    pthread_mutex_unlock(&t->lock);
    free_chain(t, chain);
}

/* --- the table's life ------------------------------------------------------------------------- */

rq_err rq__leases_new(const rq_env *env, uint64_t lease_ms, size_t bytes_max, rq_lane *lane,
                      rq__leases **ret)
{
    rq__leases *t = calloc(1, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->env = *env;
    t->lane = lane;
    t->lease_ns = lease_ms * 1000000;
    t->bytes_max = bytes_max;
    t->timer.task.run = expire;
    /* Like HBase's ScannerIdGenerator: the upper half differs from start to start, so that an id
     * from before a restart is unknown instead of another client's. */
    t->first_id = t->next_id = env->executor->random(env->executor) << 32 & INT64_MAX;
    pthread_mutex_init(&t->lock, NULL);
    arm_tick(t);
    *ret = t;
    return RQ_OK;
}

static rq__scan_holder *any(rq__leases *t)
{
    for (size_t i = 0; i < t->bucket_count; i++)
        if (*bucket_at(t, i) != NULL) return *bucket_at(t, i);
    return NULL;
}

void rq__leases_stop(rq__leases *t)
{
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_mutex_unlock(&t->lock);
    t->env.executor->timer_cancel(t->env.executor, &t->timer);
}

void rq__leases_free(rq__leases *t)
{
    if (t == NULL) return;
    rq__leases_stop(t);
    for (rq__scan_holder *h = t->oldest; h != NULL; h = t->oldest) {
        detach(t, h);
        free_holder(NULL, h);
    }
    RQ_ASSERT(any(t) == NULL); /* the others are busy */
    for (size_t i = 1; t->tables != NULL && i < PAGES_MAX && t->tables->pages[i] != NULL; i++)
        free(t->tables->pages[i]);
    free(t->tables);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void rq__lease_owner_gone(rq__leases *t, rq_scan_owner *o)
{
    pthread_mutex_lock(&t->lock);
    o->gone = true;
    list_orphans(t, o);
    drop_owner(o);
    pthread_mutex_unlock(&t->lock);
}

/* --- a scanner's life ------------------------------------------------------------------------- */

/* The meter of a scanner's arena. */
static bool may_grow(void *ctx, size_t bytes)
{
    rq__scan_holder *h = ctx;
    rq__leases *t = h->leases;
    rq__scan_holder *chain = NULL;
    pthread_mutex_lock(&t->lock);
    if (!h->opened && !fits(t, h->owner, bytes)) {
        chain = reclaim(t, h->owner, bytes);
        h->refused = !fits(t, h->owner, bytes);
        h->never_fits = h->refused && !is_share(t, h->charged + bytes, 0);
    }
    if (!h->refused) charge(t, h, bytes);
    pthread_mutex_unlock(&t->lock);
    free_chain(t, chain);
    return !h->refused;
}

rq_err rq__lease_new(rq__leases *t, rq_scan_owner *owner, rq__scan_holder **ret)
{
    rq__scan_holder *h = malloc(HOLDER_BYTES);
    if (h == NULL) return RQ_E_NO_MEMORY;
    *h = (rq__scan_holder){.leases = t, .busy = true};
    rq_arena_lend(&h->arena, h->first_bytes, HOLDER_BYTES - offsetof(rq__scan_holder, first_bytes));
    rq_arena_meter(&h->arena, may_grow, h);
    rq__scan_holder *chain = NULL;
    pthread_mutex_lock(&t->lock);
    if (RQ_UNLIKELY(!fits(t, owner, HOLDER_CHARGE))) chain = reclaim(t, owner, HOLDER_CHARGE);
    bool has_room = fits(t, owner, HOLDER_CHARGE), has_memory = make_tables(t);
    if (has_room && has_memory) {
        join_owner(h, owner);
        charge(t, h, HOLDER_CHARGE);
        h->id = ++t->next_id;
        link_hash(t, h);
    }
    pthread_mutex_unlock(&t->lock);
    free_chain(t, chain);
    if (!has_room || !has_memory) {
        free(h);
        return has_room ? RQ_E_NO_MEMORY : RQ_E_CALL_QUEUE_TOO_BIG;
    }
    *ret = h;
    return RQ_OK;
}

static void take(rq__leases *t, rq__scan_holder *h, rq_scan_owner *owner)
{
    unlink_age(t, h);
    unlink_idle(t, h);
    if (h->owner != owner) {
        leave_owner(h);
        join_owner(h, owner);
    }
    h->busy = true;
}

rq_err rq__lease_take(rq__leases *t, uint64_t id, rq_scan_owner *owner, rq__scan_holder **ret,
                      uint64_t *ret_last_seq)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&t->lock);
    rq__scan_holder *h = find(t, id);
    const closed_scanner *closed = t->tables == NULL ? NULL : &t->tables->closed[id % CLOSED];
    if (h != NULL && h->busy) {
        rc = RQ_E_LEASE;
    } else if (h != NULL) {
        take(t, h, owner);
        *ret = h;
    } else if (closed != NULL && closed->id == id && id != 0) { /* 0: none is remembered there */
        *ret_last_seq = closed->last_seq;
        rc = RQ_E_END;
    } else {
        rc = RQ_E_UNKNOWN_SCANNER;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void rq__lease_give_back(rq__leases *t, rq__scan_holder *h)
{
    h->expires_ns = t->env.executor->now_ns(t->env.executor) + t->lease_ns;
    pthread_mutex_lock(&t->lock);
    if (h->partial_row_bytes.cap != h->row_charged) { /* it only grows */
        charge(t, h, h->partial_row_bytes.cap - h->row_charged);
        h->row_charged = h->partial_row_bytes.cap;
    }
    h->busy = false;
    link_newest(t, h);
    link_idle(t, h);
    pthread_mutex_unlock(&t->lock);
}

void rq__lease_close(rq__leases *t, rq__scan_holder *h, bool remember)
{
    pthread_mutex_lock(&t->lock);
    unlink_hash(t, h);
    t->charged -= h->charged;
    leave_owner(h);
    if (remember) t->tables->closed[h->id % CLOSED] = (closed_scanner){h->id, h->next_call_seq};
    pthread_mutex_unlock(&t->lock);
    free_holder(t->env.executor, h);
}

void rq__leases_get_stats(rq__leases *t, rq_scanner_stats *ret)
{
    pthread_mutex_lock(&t->lock);
    *ret = (rq_scanner_stats){.open = t->count,
                              .bytes = t->charged,
                              .bytes_max = t->bytes_max,
                              .opened = t->next_id - t->first_id,
                              .expired = t->expired};
    pthread_mutex_unlock(&t->lock);
}
