/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs what: tasks, lanes, pools, timers, latches. The engine starts no thread and reads no
 * clock by itself; it is given an rq_env. The real environment runs lanes on event loops and pools
 * on threads; the simulated one (vfs/sim.h) runs everything on one thread in an order drawn from a
 * seed, so that a failing run replays.
 *
 *  - A *lane* runs its tasks one after another, in the order they were posted, on one thread: an
 *    event loop, or a serial worker (procedures). A request stays on its connection's lane.
 *  - A *pool* runs tasks side by side; they may block on files.
 *  - A *latch* lets a pool task or a tool (never a loop) wait for something asynchronous.
 */
#ifndef RQ_BASE_EXECUTOR_H
#define RQ_BASE_EXECUTOR_H

#include "base/err.h"

#include <stdint.h>

/* Embedded in the object it works on (RQ_CONTAINER_OF back). It belongs to the executor from post
 * until run() is entered; then the owner may free or post it again. */
typedef struct rq_task {
    struct rq_task *next;
    void (*run)(struct rq_task *task);
} rq_task;

typedef struct rq_ranked_task {
    rq_task task;
    int32_t rank; /* the executor's, while it waits in a pool's queue */
} rq_ranked_task;

typedef struct rq_lane rq_lane;

struct rq_lane {
    /* Any thread, never blocks, FIFO per posting thread. */
    void (*post)(rq_lane *lane, rq_task *task);
};

static inline void rq_lane_post(rq_lane *lane, rq_task *task)
{
    lane->post(lane, task);
}

typedef enum rq_pool {
    RQ_POOL_READ,          /* block reads a request waits for */
    RQ_POOL_FLUSH,         /* normal priority; never throttled by compaction */
    RQ_POOL_COMPACT,       /* low priority */
    RQ_POOL_COMPACT_LARGE, /* the same, for those that take long */
    RQ_POOL_CODEC,         /* decoding and compression that would hold an event loop */
    RQ_POOL_WORK,          /* procedures and everything else; tasks may wait on latches */
    RQ_POOL_COUNT
} rq_pool;

/* A one-shot timer; embedded like a task. */
typedef struct rq_timer {
    rq_task task; /* run on `lane` when due */
    rq_lane *lane;
    uint64_t due_ns;       /* of the executor's monotonic clock */
    struct rq_timer *next; /* the executor's */
    bool armed;
} rq_timer;

typedef struct rq_latch {
    struct rq_executor *executor;
    rq_err rc;
    bool open;
    void *impl[16]; /* the executor's: mutex and condition; see thread_executor.c */
} rq_latch;

typedef struct rq_executor rq_executor;

struct rq_executor {
    void (*submit)(rq_executor *ex, rq_pool pool, rq_task *task);
    /* Behind all that has no rank the lowest begins first, of equal ones who came first. */
    void (*submit_ranked)(rq_executor *ex, rq_pool pool, rq_ranked_task *task, int32_t rank);
    /* Where a task waits in that pool's queue with a higher rank, it takes this one. The task may
     * be anywhere else, and need not exist any more. */
    void (*raise)(rq_executor *ex, rq_pool pool, const rq_ranked_task *task, int32_t rank);
    /* A serial lane of its own thread (real) or queue (simulated); freed with lane_free. */
    rq_err (*lane_new)(rq_executor *ex, const char *name, rq_lane **ret);
    void (*lane_free)(rq_executor *ex, rq_lane *lane); /* waits until the lane is idle */
    void (*timer_arm)(rq_executor *ex, rq_timer *timer, rq_lane *lane, uint64_t delay_ns);
    /* True: it will not run. False: it runs, ran, or was never armed. */
    bool (*timer_cancel)(rq_executor *ex, rq_timer *timer);
    void (*latch_init)(rq_executor *ex, rq_latch *latch);
    void (*latch_open)(rq_latch *latch, rq_err rc); /* any thread, once */
    rq_err (*latch_wait)(rq_latch *latch);          /* returns the rc it was opened with */
    void (*latch_destroy)(rq_latch *latch);
    /* A pool's thread waits for nobody: it keeps its place in the pool, unlike on a latch. */
    void (*sleep)(rq_executor *ex, uint64_t ns);
    /* A pool's thread at work for long lets go whoever waits for the processor: the system's own
     * turns take milliseconds. */
    void (*yield)(rq_executor *ex);
    uint64_t (*now_ns)(rq_executor *ex); /* monotonic */
    int64_t (*now_ms)(rq_executor *ex);  /* wall clock, milliseconds since 1970 */
    uint64_t (*random)(rq_executor *ex); /* 64 random bits, any thread */
};

/* The real one: `threads[pool]` workers per pool, started on first use. */
RQ_NODISCARD
rq_err rq_thread_executor_new(const unsigned threads[RQ_POOL_COUNT], rq_executor **ret);
struct rq_log;
/* Logs each pool's threads and what waits for them. Any thread. */
void rq_thread_executor_report(rq_executor *ex, const struct rq_log *log);
/* Waits for running and queued tasks; armed timers are dropped. */
void rq_thread_executor_free(rq_executor *ex);

#endif
