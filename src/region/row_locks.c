/* SPDX-License-Identifier: Apache-2.0 */
/* Locked rows in a hash table. A lock's memory is part of the set of the write that has locked the row. See row_locks.h. */
#include "region/row_locks.h"

#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <stdlib.h>

#define BUCKETS_MIN 16
/* Rows that are looked up in the time of a step (base/meter.h). */
#define ROWS_PER_STEP 8

struct rq__row_lock {
    rq__row_lock *next_of_hash;
    rq__row_lock *next, *prev;
    uint64_t hash;
    rq_slice row; /* of the op */
    rq__row_set *owner;
    rq__row_set *first_waiting, *last_waiting; /* the longest wait first */
};

struct rq__row_set {
    rq_write *write;
    rq__row_set *next_waiting;
    size_t count, held; /* the first ones are locked; it waits for the next one */
    rq__row_lock locks[];
};

/* --- the rows of an op ------------------------------------------------------------------------ */

/* The mutations of an op without `multi_row` have one row. */
static size_t row_count(const rq_row_op *op)
{
    size_t mutations = op->multi_row || op->mutation_count == 0 ? op->mutation_count : 1;
    return op->condition_count + mutations;
}

static rq_slice row_at(const rq_row_op *op, size_t i)
{
    return i < op->condition_count ? op->conditions[i].row
                                   : op->mutations[i - op->condition_count].row;
}

/* --- the table -------------------------------------------------------------------------------- */

/* A product of 128 bits with a secret factor: no pair of rows has the same hash for every seed. */
static uint64_t hash_of(uint64_t seed, rq_slice row)
{
    uint64_t h = seed ^ row.len;
    for (size_t i = 0; i < row.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, row.ptr + i, row.len - i < 8 ? row.len - i : 8);
        unsigned __int128 p = (unsigned __int128)(h ^ word) * (seed | 1);
        h = (uint64_t)p ^ (uint64_t)(p >> 64) ^ seed;
    }
    return h ^ h >> 32;
}

static rq__row_lock *find(const rq__row_locks *l, rq_slice row)
{
    if (l->count == 0) return NULL;
    uint64_t hash = hash_of(l->seed, row);
    rq__row_lock *lock = l->buckets[hash & l->mask];
    while (lock != NULL && !(lock->hash == hash && rq_slice_eq(lock->row, row)))
        lock = lock->next_of_hash;
    return lock;
}

static void put_into_bucket(rq__row_locks *l, rq__row_lock *lock)
{
    rq__row_lock **bucket = &l->buckets[lock->hash & l->mask];
    lock->next_of_hash = *bucket;
    *bucket = lock;
}

/* Room for `more` locks. Without memory for more buckets the chains get longer. */
static rq_err table_need(rq__row_locks *l, size_t more, rq_executor *ex)
{
    size_t size = l->buckets == NULL ? BUCKETS_MIN : l->mask + 1;
    while (size < l->count + more)
        size *= 2;
    if (l->buckets != NULL && size == l->mask + 1) return RQ_OK;
    rq__row_lock **buckets = calloc(size, sizeof(rq__row_lock *));
    if (buckets == NULL) return l->buckets == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (l->buckets == NULL) l->seed = ex->random(ex);
    free(l->buckets);
    l->buckets = buckets;
    l->mask = size - 1;
    for (rq__row_lock *lock = l->first; lock != NULL; lock = lock->next)
        put_into_bucket(l, lock);
    return RQ_OK;
}

static void table_add(rq__row_locks *l, rq__row_lock *lock)
{
    lock->hash = hash_of(l->seed, lock->row);
    put_into_bucket(l, lock);
    lock->prev = l->last;
    *(l->last == NULL ? &l->first : &l->last->next) = lock;
    l->last = lock;
    l->count++;
}

/* An idle region has no table. */
static void table_remove(rq__row_locks *l, rq__row_lock *lock)
{
    rq__row_lock **at = &l->buckets[lock->hash & l->mask];
    while (*at != lock)
        at = &(*at)->next_of_hash;
    *at = lock->next_of_hash;
    *(lock->prev == NULL ? &l->first : &lock->prev->next) = lock->next;
    *(lock->next == NULL ? &l->last : &lock->next->prev) = lock->prev;
    if (--l->count > 0) return;
    free(l->buckets);
    l->buckets = NULL;
    l->mask = 0;
}

/* --- waits ------------------------------------------------------------------------------------ */

void rq__row_wait_begin(rq_region *r, rq_write *w)
{
    rq__batch *b = rq__batch_of(w);
    if (b->waits_since_ns == 0) b->waits_since_ns = r->env.executor->now_ns(r->env.executor);
    w->next = NULL;
    atomic_fetch_add_explicit(&r->engine->row_waits, 1, memory_order_relaxed);
}

void rq__row_wait_end(rq_region *r)
{
    atomic_fetch_sub_explicit(&r->engine->row_waits, 1, memory_order_relaxed);
}

static void wake(rq_region *r, rq_write *w)
{
    w->next = NULL;
    rq__row_wait_end(r);
    r->row_locks.wakes++;
    rq__region_enqueue(r, &rq__batch_of(w)->list.work);
}

bool rq__row_locks_are_free(const rq_region *r, const rq_row_op *op, const rq_write *w)
{
    size_t count = r->row_locks.count == 0 ? 0 : row_count(op);
    for (size_t i = 0; i < count; i++) {
        const rq__row_lock *lock = find(&r->row_locks, row_at(op, i));
        if (lock != NULL && lock->owner->write != w) return false;
    }
    return true;
}

/* --- locking ---------------------------------------------------------------------------------- */

/* The op's rows, ascending, each once; malloc'ed. NULL: no memory. */
static rq_slice *list_rows(const rq_row_op *op, size_t *ret_count)
{
    size_t count = row_count(op);
    rq_slice *rows = malloc((count + 1) * sizeof *rows);
    if (rows == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        rows[i] = row_at(op, i);
    if (count > 1) qsort(rows, count, sizeof *rows, rq_slice_order);
    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !rq_slice_eq(rows[i], rows[i - 1])) rows[(*ret_count)++] = rows[i];
    return rows;
}

/* NULL: no memory. */
static rq__row_set *new_set(rq_region *r, const rq_row_op *op, rq_write *w)
{
    size_t count;
    rq_slice *rows = list_rows(op, &count);
    rq__row_set *set = rows == NULL ? NULL : calloc(1, sizeof *set + count * sizeof set->locks[0]);
    /* Locks that were entered meanwhile make the chains longer, until the next set. */
    if (set != NULL && table_need(&r->row_locks, count, r->env.executor) != RQ_OK) {
        free(set);
        set = NULL;
    }
    if (set != NULL) {
        set->write = w;
        set->count = count;
        for (size_t i = 0; i < count; i++)
            set->locks[i] = (rq__row_lock){.row = rows[i], .owner = set};
        r->meter.steps += count / ROWS_PER_STEP;
    }
    free(rows);
    return set;
}

/* Locks further rows, up to one that another write has locked: then it waits for that. True: it has all. */
static bool lock_on(rq__row_locks *l, rq__row_set *set)
{
    while (set->held < set->count) {
        rq__row_lock *lock = find(l, set->locks[set->held].row);
        if (lock != NULL) {
            set->next_waiting = NULL;
            *(lock->first_waiting == NULL ? &lock->first_waiting
                                          : &lock->last_waiting->next_waiting) = set;
            lock->last_waiting = set;
            return false;
        }
        table_add(l, &set->locks[set->held++]);
    }
    return true;
}

rq__row_set *rq__row_locks_take(rq_region *r, const rq_row_op *op, rq_write *w)
{
    rq__row_set *set = new_set(r, op, w);
    if (set == NULL) return NULL;
    bool has_all = lock_on(&r->row_locks, set);
    RQ_ASSERT(has_all);
    return set;
}

rq_err rq__row_locks_wait(rq_region *r, const rq_row_op *op, rq_write *w)
{
    rq__row_set *set = new_set(r, op, w);
    if (set == NULL) return RQ_E_NO_MEMORY;
    bool has_all = lock_on(&r->row_locks, set);
    RQ_ASSERT(!has_all);
    rq__row_wait_begin(r, w);
    return RQ_OK;
}

/* The row goes to the write that has waited longest. */
static void unlock(rq_region *r, rq__row_lock *lock)
{
    rq__row_locks *l = &r->row_locks;
    rq__row_set *set = lock->first_waiting;
    if (set != NULL) {
        rq__row_lock *own = &set->locks[set->held++];
        own->first_waiting = set->next_waiting;
        own->last_waiting = lock->last_waiting;
        table_add(l, own); /* first: an empty table loses its buckets */
    }
    table_remove(l, lock);
    if (set == NULL || !lock_on(l, set)) return;
    rq__batch_of(set->write)->rows = set;
    wake(r, set->write);
}

void rq__row_locks_free(rq_region *r, rq__row_set *set)
{
    for (size_t i = 0; i < set->held; i++)
        unlock(r, &set->locks[i]);
    free(set);
}

/* --- waits that end early --------------------------------------------------------------------- */

/* Takes out of the lock's queue the sets whose wait `is_over`, in their order. */
static rq__row_set **take_some(rq__row_lock *lock, rq_region *r,
                               bool (*is_over)(rq_write *w, uint64_t before_ns), uint64_t before_ns,
                               rq__row_set **end)
{
    rq__row_set **link = &lock->first_waiting;
    lock->last_waiting = NULL;
    for (rq__row_set *set = *link; set != NULL; set = *link) {
        r->meter.steps++;
        if (!is_over(set->write, before_ns)) {
            link = &set->next_waiting;
            lock->last_waiting = set;
            continue;
        }
        *link = set->next_waiting;
        *end = set;
        end = &set->next_waiting;
    }
    return end;
}

/* A list by `next_waiting`. */
static rq__row_set *take_over(rq_region *r, bool (*is_over)(rq_write *w, uint64_t before_ns),
                              uint64_t before_ns)
{
    rq__row_set *first = NULL;
    rq__row_set **end = &first;
    for (rq__row_lock *lock = r->row_locks.first; lock != NULL; lock = lock->next)
        end = take_some(lock, r, is_over, before_ns, end);
    *end = NULL;
    return first;
}

static bool has_gone(rq_write *w, uint64_t before_ns)
{
    (void)before_ns;
    return rq__write_has_gone(w);
}

static bool has_expired(rq_write *w, uint64_t before_ns)
{
    return rq__batch_of(w)->waits_since_ns <= before_ns;
}

void rq__row_locks_wake_gone(rq_region *r)
{
    rq__row_set *set = take_over(r, has_gone, 0);
    while (set != NULL) {
        rq__row_set *next = set->next_waiting;
        rq_write *w = set->write;
        rq__row_locks_free(r, set);
        wake(r, w);
        set = next;
    }
}

rq_write **rq__row_locks_take_expired(rq_region *r, uint64_t before_ns, rq_write **end)
{
    rq__row_set *set = take_over(r, has_expired, before_ns);
    while (set != NULL) {
        rq__row_set *next = set->next_waiting;
        *end = set->write;
        end = &set->write->next;
        rq__row_wait_end(r);
        rq__row_locks_free(r, set);
        set = next;
    }
    *end = NULL;
    return end;
}
