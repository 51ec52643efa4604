/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops: N threads, each owning its sockets and running its lane (base/executor.h); or one loop
 * without a thread, which its caller drives.
 *
 * One iteration of a loop:
 *
 *   1. readable sockets, due timers, posted tasks (those of other threads for at most RQ_TURN_NS, the rest in the
 *      next iteration);
 *   2. tasks that step 1 posted to this lane (writes go to their regions and to the log);
 *   3. tasks that step 2 posted, one round (acknowledgements leave in this iteration); then
 *      deferred tasks, for at most RQ_TURN_NS: long work, and connections that used up their turn;
 *   4. every stream with new output is written, one system call each;
 *   5. the epoch's read section ends, and retired memory that no thread can see is freed.
 * Tasks posted by step 3 run in the next iteration, after its sockets.
 *
 * Only files that include loop_priv.h use libuv.
 */
#ifndef RQ_NET_LOOP_H
#define RQ_NET_LOOP_H

#include "base/epoch.h"
#include "base/executor.h"
#include "base/histogram.h"
#include "base/log.h"

typedef struct rq_loops rq_loops;
typedef struct rq_loop rq_loop;

typedef struct rq_loops_options {
    unsigned count; /* 0: one per processor that this process may use */
    bool driven;    /* one loop without a thread: see rq_loop_turn */
    /* Called around each wait of a driven loop, to release and take a lock that guards the loop;
     * may be NULL. */
    void (*before_wait)(void *ctx);
    void (*after_wait)(void *ctx);
    void *ctx;
    bool restless;         /* tests: every stream moves to another loop after each read */
    rq_executor *executor; /* frees the memory of large answers (base/long_free.h); may be NULL */
    rq_epoch *epoch;       /* every loop joins it; may be NULL */
    const rq_log *log;     /* may be NULL */
} rq_loops_options;

/* Creates the loops without starting them. */
RQ_NODISCARD
rq_err rq_loops_new(const rq_loops_options *options, rq_loops **ret);
/* Starts the threads. At most once. */
RQ_NODISCARD
rq_err rq_loops_start(rq_loops *loops);
/* Stops listening, closes every stream (on_close is called), runs posted tasks until none is
 * left, and joins the threads. REQUIRES: no thread posts afterwards. No-op if not started. */
void rq_loops_stop(rq_loops *loops);
void rq_loops_free(rq_loops *loops);
/* Waits until every loop has run the tasks posted before the call. Returns at once if the loops
 * do not run. Not from a loop's thread. */
void rq_loops_sync(rq_loops *loops);

/* Posts a task to each loop, unless the task of an earlier call still waits there. False: a task has waited for
 * `patience_ns` or longer, so its loop hangs, or the machine is very busy; with patience_ns 0, any task of an earlier
 * call still waits. Never blocks; any thread. REQUIRES: between rq_loops_start and rq_loops_stop. */
bool rq_loops_pulse(rq_loops *loops, uint64_t patience_ns);

/* --- a driven loop ----------------------------------------------------------------------------
 *
 * One thread at a time uses a driven loop. Exceptions: other threads may use the loop while it waits (before_wait,
 * after_wait), and any thread may call rq_loop_wake or post to the loop's lane. A driven loop has no listeners, and
 * rq_loops_start is not called. rq_loops_stop ends the loop's streams before it returns. */

/* One iteration of the loop: waits at most timeout_ns for an event and handles all pending events. It
 * may return earlier without an event. */
void rq_loop_turn(rq_loop *loop, int64_t timeout_ns);
/* Writes the streams' output. Call it between turns, after calls that wrote to, opened or closed streams. If the loop
 * has other work to do, its descriptor becomes readable, which also ends the wait of a turn. */
void rq_loop_flush(rq_loop *loop);
/* For callers that wait by themselves: the descriptor is readable when rq_loop_turn has something to do. From the time
 * rq_loop_due on (INT64_MAX: never) it has something to do even if the descriptor is not readable. */
int rq_loop_descriptor(const rq_loop *loop);
int64_t rq_loop_due(const rq_loop *loop);
/* Ends the wait of a turn in another thread, or of the next one. Any thread. */
void rq_loop_wake(rq_loop *loop);
/* Makes the loop's timers due now. */
void rq_loop_hasten_timers(rq_loop *loop);

unsigned rq_loops_count(const rq_loops *loops);
rq_loop *rq_loops_get(rq_loops *loops, unsigned index);

/* The loop's lane, to post tasks from any thread. Valid until rq_loops_free. A driven loop waits for no descriptor
 * (rq_lane.watch). */
rq_lane *rq_loop_lane(rq_loop *loop);
/* Posts a task that is one slice of long work. Deferred tasks run in order, some in each
 * iteration, so that they do not delay sockets. Loop's thread only. */
void rq_loop_defer(rq_loop *loop, rq_task *task);
#define RQ_TURN_NS 2000000
/* Whether this iteration has lasted RQ_TURN_NS by `now_ns`; further work should be deferred. */
bool rq_loop_turn_is_over(const rq_loop *loop, uint64_t now_ns);
unsigned rq_loop_index(const rq_loop *loop);
/* True on the loop's own thread. */
bool rq_loop_is_current(const rq_loop *loop);
/* The monotonic clock at the beginning of this iteration. Loop's thread only. */
uint64_t rq_loop_now_ns(const rq_loop *loop);
/* The monotonic clock, read now. Any thread. */
uint64_t rq_loop_clock_ns(void);
/* Any thread; not a consistent snapshot. */
typedef struct rq_loop_stats {
    uint64_t iterations;
    uint64_t current_ns; /* duration of the running iteration so far; 0: the loop sleeps */
    rq_times_sum times;  /* of all iterations, estimated from a sample */
} rq_loop_stats;
void rq_loop_get_stats(const rq_loop *loop, rq_loop_stats *ret);
/* Logs what each loop does: since when its iteration runs, or that it sleeps. Any thread. */
void rq_loops_report(const rq_loops *loops, const rq_log *log);

/* A one-shot timer, embedded in its owner; all zero is idle. Its accuracy is a millisecond, on a driven loop that of
 * the turn's wait. Unlike an executor's timer it wakes no other thread. All calls on the loop's thread. */
typedef struct rq_loop_timer {
    struct rq_loop_timer *next, *prev, *child; /* the loop's */
    uint64_t due_ns;
    bool armed;
    void (*run)(struct rq_loop_timer *timer);
} rq_loop_timer;

/* Arms the timer, or changes the time of an armed one. `run` may arm it again. */
void rq_loop_timer_arm(rq_loop *loop, rq_loop_timer *timer, uint64_t delay_ns);
void rq_loop_timer_cancel(rq_loop *loop, rq_loop_timer *timer);

#endif
