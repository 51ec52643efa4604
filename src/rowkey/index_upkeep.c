/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The background repairer of an index: a thread that calls the repair (index_read.c) again and again. Between two
 * repairs it pauses for the interval, and at least as long as the last repair took, so that it works for at most half of
 * the time.
 *
 * Lock: `lock` guards `stops`, the counts and the last failure; it is not held during a repair. A repair asks
 * rq__upkeep_stops between rows, and when a scan returns a cursor because it has found no row for long, so that closing
 * an index does not wait for the rest of a large table.
 */
#include "rowkey/index_priv.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

#define MS_NS UINT64_C(1000000)

struct rq__upkeep {
    rq_index *index;
    uint64_t every_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stops RQ_GUARDED_BY(lock);
    uint64_t repairs RQ_GUARDED_BY(lock);      /* ended ones, also those that failed */
    rq_index_repairs sums RQ_GUARDED_BY(lock); /* of all repairs */
    rq_err rc RQ_GUARDED_BY(lock);             /* of the last repair */
    rq_failure failure RQ_GUARDED_BY(lock);
};

bool rq__upkeep_stops(rq__upkeep *u)
{
    if (u == NULL) return false;
    pthread_mutex_lock(&u->lock);
    bool stops = u->stops;
    pthread_mutex_unlock(&u->lock);
    return stops;
}

static void add(rq_index_repairs *sums, const rq_index_repairs *r)
{
    sums->rows += r->rows;
    sums->entries += r->entries;
    sums->added += r->added;
    sums->removed += r->removed;
    sums->duplicates += r->duplicates;
}

/* REQUIRES: lock, which is released meanwhile. */
static void pause_for(rq__upkeep *u, uint64_t ns)
{
    uint64_t until = rq_clock_ns(CLOCK_MONOTONIC) + ns;
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    while (!u->stops && rq_clock_ns(CLOCK_MONOTONIC) < until)
        pthread_cond_timedwait(&u->stopped, &u->lock, &t);
}

/* REQUIRES: lock, which is released meanwhile. Returns how long the repair took, in nanoseconds. */
static uint64_t repair_once(rq__upkeep *u)
{
    rq_failure failure = {.size = sizeof failure};
    rq_index_repairs r = {.size = sizeof r};
    uint64_t begun = rq_clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&u->lock);
    rq_err rc = rq__index_repair(u->index, &r, &failure);
    pthread_mutex_lock(&u->lock);
    add(&u->sums, &r);
    u->repairs++;
    u->rc = rc;
    u->failure = failure;
    return rq_clock_ns(CLOCK_MONOTONIC) - begun;
}

static void *work(void *arg)
{
    rq__upkeep *u = arg;
    pthread_mutex_lock(&u->lock);
    while (!u->stops) {
        uint64_t took = repair_once(u);
        pause_for(u, took > u->every_ns ? took : u->every_ns);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

rq_err rq__upkeep_start(rq_index *x, uint32_t every_ms, rq_failure *why)
{
    if (x->table->db->backend->no_threads)
        return rq__index_fail(
            why, RQ_E_UNSUPPORTED,
            "repair_every_ms needs a thread, which a database with no_threads does not have");
    rq__upkeep *u = calloc(1, sizeof *u);
    if (u == NULL) return rq__index_fail(why, RQ_E_NO_MEMORY, "out of memory, for an index");
    u->index = x;
    u->every_ns = every_ms * MS_NS;
    pthread_mutex_init(&u->lock, NULL);
    rq_clock_cond_init(&u->stopped);
    x->upkeep = u; /* before the thread begins */
    if (rq__thread_start(&u->thread, work, u)) return RQ_OK;
    x->upkeep = NULL;
    pthread_cond_destroy(&u->stopped);
    pthread_mutex_destroy(&u->lock);
    free(u);
    return rq__index_fail(why, RQ_E_NO_MEMORY,
                          "cannot start a thread, for the repairs of an index");
}

void rq__upkeep_stop(rq_index *x)
{
    rq__upkeep *u = x->upkeep;
    if (u == NULL) return;
    pthread_mutex_lock(&u->lock);
    u->stops = true;
    pthread_cond_signal(&u->stopped);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->thread, NULL);
    pthread_cond_destroy(&u->stopped);
    pthread_mutex_destroy(&u->lock);
    free(u);
    x->upkeep = NULL;
}

rq_err rq_index_repaired(rq_index *index, uint64_t *ret_count, rq_index_repairs *ret_sums,
                         rq_failure *failure)
{
    RQ_TRY(rq_needs(index, "index", failure));
    RQ_TRY(rq_db_needs_home(index->table->db, failure)); /* before the lock */
    rq_why why;
    rq_why_clear(&why);
    if (ret_sums != NULL && rq_sized_result(ret_sums, offsetof(rq_index_repairs, added),
                                            "rq_index_repairs", &why.error) != RQ_OK)
        return rq_fill_failure(failure, RQ_E_INVALID, &why);
    rq__upkeep *u = index->upkeep;
    if (u == NULL)
        return rq__index_fail(failure, RQ_E_STATE, "the index was opened without repair_every_ms");
    pthread_mutex_lock(&u->lock);
    if (ret_count != NULL) *ret_count = u->repairs;
    if (ret_sums != NULL) rq_fill_sized(ret_sums, &u->sums, sizeof u->sums);
    rq_err rc = u->rc;
    rq_failure last = u->failure;
    pthread_mutex_unlock(&u->lock);
    return rq__copy_failure(&last, rc, failure);
}
