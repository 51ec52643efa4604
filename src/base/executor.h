/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution: tasks, lanes, pools, timers and latches. The engine starts no thread and reads no
 * clock itself; it is given an rq_env. The real environment runs lanes on event loops and pools on
 * threads. The simulated one (vfs/sim.h) runs everything on one thread, in an order drawn from a
 * seed, so that a failing run can be replayed.
 *
 *  - A *lane* runs its tasks one after another on one thread, in the order they were posted. It is
 *    an event loop or a serial worker (procedures). A request stays on its connection's lane.
 *  - A *pool* runs tasks in parallel; they may block on files.
 *  - A *latch* lets a pool task or a tool wait for an asynchronous result. Event loops must not
 *    wait.
 */
#ifndef RQ_BASE_EXECUTOR_H
#define RQ_BASE_EXECUTOR_H

#include "base/err.h"

#include <stdint.h>

/* A task is embedded in the object it works on (RQ_CONTAINER_OF finds the object). It belongs to
 * the executor from post until run() is entered; then its owner may free it or post it again. */
typedef struct rq_task {
    struct rq_task *next;
    void (*run)(struct rq_task *task);
} rq_task;

typedef struct rq_ranked_task {
    rq_task task;
    int32_t rank; /* the executor's, while the task is queued */
} rq_ranked_task;

typedef struct rq_lane rq_lane;

struct rq_lane {
    /* Callable from any thread; never blocks. FIFO per posting thread. */
    void (*post)(rq_lane *lane, rq_task *task);
    /* From now on `task` runs on the lane whenever the descriptor `fd` is readable, until the lane ends; both stay valid until then.
     * One descriptor for each lane. False: not possible. On the lane's thread. NULL: lanes of this kind wait for no
     * descriptor. */
    bool (*watch)(rq_lane *lane, int fd, rq_task *task);
};

static inline void rq_lane_post(rq_lane *lane, rq_task *task)
{
    lane->post(lane, task);
}

typedef enum rq_pool {
    RQ_POOL_READ,    /* block reads that a request waits for, and long writes (region/token.c) */
    RQ_POOL_FLUSH,   /* normal priority; never throttled by compaction */
    RQ_POOL_COMPACT, /* low priority */
    RQ_POOL_COMPACT_LARGE, /* low priority, for large compactions */
    RQ_POOL_CODEC,         /* decoding and compression that would hold an event loop */
    RQ_POOL_CALL,          /* RPC calls that block, perhaps for minutes; excess calls are queued */
    RQ_POOL_WORK,          /* procedures and all other work; tasks may wait on latches */
    RQ_POOL_COUNT
} rq_pool;

/* A one-shot timer, embedded like a task. */
typedef struct rq_timer {
    rq_task task; /* run on `lane` when due */
    rq_lane *lane;
    uint64_t due_ns;       /* by the executor's monotonic clock */
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
    /* Runs after unranked tasks, lowest rank first; ties in submission order. */
    void (*submit_ranked)(rq_executor *ex, rq_pool pool, rq_ranked_task *task, int32_t rank);
    /* If `task` is queued in that pool with a higher rank, lowers its rank to `rank`, so that it
     * runs earlier. Otherwise does nothing: the task may be elsewhere, or freed. */
    void (*raise)(rq_executor *ex, rq_pool pool, const rq_ranked_task *task, int32_t rank);
    /* Makes a serial lane: a thread (real) or a queue (simulated). Freed with lane_free. */
    rq_err (*lane_new)(rq_executor *ex, const char *name, rq_lane **ret);
    void (*lane_free)(rq_executor *ex, rq_lane *lane); /* waits until the lane is idle */
    void (*timer_arm)(rq_executor *ex, rq_timer *timer, rq_lane *lane, uint64_t delay_ns);
    /* True: the timer will not run. False: it runs, has run, or was never armed. */
    bool (*timer_cancel)(rq_executor *ex, rq_timer *timer);
    void (*latch_init)(rq_executor *ex, rq_latch *latch);
    void (*latch_open)(rq_latch *latch, rq_err rc); /* any thread, once */
    rq_err (*latch_wait)(rq_latch *latch);          /* returns the rc it was opened with */
    void (*latch_destroy)(rq_latch *latch);
    /* Makes a pool's thread sleep. Unlike a latch, sleep keeps the thread's place in the pool. */
    void (*sleep)(rq_executor *ex, uint64_t ns);
    /* Lets other threads use the processor; called by a pool's thread in long work, since the
     * scheduler's own time slices last milliseconds. */
    void (*yield)(rq_executor *ex);
    uint64_t (*now_ns)(rq_executor *ex); /* monotonic */
    int64_t (*now_ms)(rq_executor *ex);  /* wall clock, milliseconds since 1970 */
    uint64_t (*random)(rq_executor *ex); /* 64 random bits, any thread */
};

/* The real executor: threads[pool] workers per pool, the first one of each started at once, the others
 * when there is work for them. */
RQ_NODISCARD
rq_err rq_thread_executor_new(const unsigned threads[RQ_POOL_COUNT], rq_executor **ret);
/* As rq_thread_executor_new, but starts the threads of pools and lanes with their first task: a process that only reads
 * should not pay for threads that it does not use. */
RQ_NODISCARD
rq_err rq_thread_executor_new_lazy(const unsigned threads[RQ_POOL_COUNT], rq_executor **ret);
/* Changes the number of a pool's tasks that run at the same time; running tasks are not stopped. 0:
 * no change. Any thread. */
void rq_thread_executor_resize(rq_executor *ex, rq_pool pool, unsigned threads);
struct rq_log;
/* Logs each pool's threads and queued tasks. Any thread. */
void rq_thread_executor_report(rq_executor *ex, const struct rq_log *log);
/* Waits until running and queued tasks have ended. Armed timers are dropped. NULL is allowed.
 * REQUIRES: every lane was freed. */
void rq_thread_executor_free(rq_executor *ex);

#endif
