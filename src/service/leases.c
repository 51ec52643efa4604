/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanners between their calls: a table by id, a list by age. A request takes its scanner out
 * and gives it back with a new lease; what nobody asks for is closed when its lease ends.
 *
 * A scanner that ended by itself is remembered for a while: old clients close it once more, and a
 * retry of its last call must be told from a mistake. HBASE: RSRpcServices.closedScanners.
 *
 * One mutex guards the table; it is never held while a scanner is opened, read or closed.
 */
#include "service/client_priv.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 4096
#define CLOSED 4096 /* remembered; a ring by id */

typedef struct closed_scanner {
    uint64_t id;
    uint64_t last_seq;
} closed_scanner;

struct rq__leases {
    rq_env env;
    rq_lane *lane;
    uint64_t lease_ns;
    rq_timer timer;
    pthread_mutex_t lock;
    uint64_t next_id RQ_GUARDED_BY(lock);
    rq__scan_holder *buckets[BUCKETS] RQ_GUARDED_BY(lock);
    rq__scan_holder *oldest RQ_GUARDED_BY(lock); /* of those that are not busy */
    rq__scan_holder *newest RQ_GUARDED_BY(lock);
    size_t count RQ_GUARDED_BY(lock);
    closed_scanner closed[CLOSED] RQ_GUARDED_BY(lock);
    bool stopping RQ_GUARDED_BY(lock);
};

static rq__scan_holder **bucket_of(rq__leases *t, uint64_t id)
{
    return &t->buckets[id % BUCKETS];
}

static rq__scan_holder *find(rq__leases *t, uint64_t id)
{
    rq__scan_holder *h = *bucket_of(t, id);
    while (h != NULL && h->id != id)
        h = h->hash_next;
    return h;
}

static void unlink_hash(rq__leases *t, rq__scan_holder *h)
{
    rq__scan_holder **p = bucket_of(t, h->id);
    while (*p != h)
        p = &(*p)->hash_next;
    *p = h->hash_next;
    t->count--;
}

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

static void free_holder(rq__scan_holder *h)
{
    rq_region_scanner_close(h->scanner);
    if (h->region != NULL) rq_region_unref(h->region);
    rq_buf_clear(&h->partial_row_bytes);
    rq_arena_clear(&h->arena);
    free(h);
}

static void arm(rq__leases *t)
{
    t->env.executor->timer_arm(t->env.executor, &t->timer, t->lane, t->lease_ns / 4 + 1000000);
}

/* Closes what is overdue, one at a time, so that the lock is not held while a scanner goes. */
static void expire(rq_task *task)
{
    rq__leases *t = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq__leases, timer);
    uint64_t now = t->env.executor->now_ns(t->env.executor);
    for (;;) {
        pthread_mutex_lock(&t->lock);
        rq__scan_holder *h = t->oldest;
        bool overdue = h != NULL && h->expires_ns <= now;
        if (overdue) {
            unlink_age(t, h);
            unlink_hash(t, h);
        } else if (!t->stopping) {
            arm(t);
        }
        pthread_mutex_unlock(&t->lock);
        if (!overdue) return;
        free_holder(h);
    }
}

rq_err rq__leases_new(const rq_env *env, uint64_t lease_ms, rq_lane *lane, rq__leases **ret)
{
    rq__leases *t = calloc(1, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->env = *env;
    t->lane = lane;
    t->lease_ns = lease_ms * 1000000;
    t->timer.task.run = expire;
    /* As HBase's ScannerIdGenerator: the upper half differs from start to start, so that an id of a
     * former life of the server is unknown and not somebody else's. */
    t->next_id = env->executor->random(env->executor) << 32 & INT64_MAX;
    pthread_mutex_init(&t->lock, NULL);
    arm(t);
    *ret = t;
    return RQ_OK;
}

void rq__leases_free(rq__leases *t)
{
    if (t == NULL) return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_mutex_unlock(&t->lock);
    t->env.executor->timer_cancel(t->env.executor, &t->timer);
    for (size_t i = 0; i < BUCKETS; i++) {
        rq__scan_holder *next;
        for (rq__scan_holder *h = t->buckets[i]; h != NULL; h = next) {
            next = h->hash_next;
            free_holder(h);
        }
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

rq_err rq__lease_new(rq__leases *t, rq__scan_holder **ret)
{
    rq__scan_holder *h = calloc(1, sizeof *h);
    if (h == NULL) return RQ_E_NO_MEMORY;
    h->busy = true;
    pthread_mutex_lock(&t->lock);
    h->id = ++t->next_id;
    h->hash_next = *bucket_of(t, h->id);
    *bucket_of(t, h->id) = h;
    t->count++;
    pthread_mutex_unlock(&t->lock);
    *ret = h;
    return RQ_OK;
}

rq_err rq__lease_take(rq__leases *t, uint64_t id, rq__scan_holder **ret, uint64_t *ret_last_seq)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&t->lock);
    rq__scan_holder *h = find(t, id);
    const closed_scanner *closed = &t->closed[id % CLOSED];
    if (h != NULL && h->busy) {
        rc = RQ_E_LEASE;
    } else if (h != NULL) {
        unlink_age(t, h);
        h->busy = true;
        *ret = h;
    } else if (closed->id == id) {
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
    h->busy = false;
    link_newest(t, h);
    pthread_mutex_unlock(&t->lock);
}

void rq__lease_close(rq__leases *t, rq__scan_holder *h, bool remember)
{
    pthread_mutex_lock(&t->lock);
    unlink_hash(t, h);
    if (remember) t->closed[h->id % CLOSED] = (closed_scanner){h->id, h->next_call_seq};
    pthread_mutex_unlock(&t->lock);
    free_holder(h);
}

size_t rq__leases_count(rq__leases *t)
{
    pthread_mutex_lock(&t->lock);
    size_t count = t->count;
    pthread_mutex_unlock(&t->lock);
    return count;
}
