/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event loops: N threads, each owning its sockets and running its lane (base/executor.h).
 *
 * One iteration of a loop is:
 *   1. sockets that are readable, timers that are due, tasks that were posted;
 *   2. tasks that 1 posted to this lane (writes go to their regions and to the log);
 *   3. tasks that 2 posted, once (acknowledgements go out with this iteration);
 *      then deferred tasks, for RQ_TURN_NS: long work, and connections whose turn was over;
 *   4. every stream with new output is written, one system call each;
 *   5. the epoch's read section ends and what everybody has passed is released.
 * What 3 posts runs in the next iteration, after sockets were looked at.
 *
 * libuv stands in the files that include loop_priv.h alone.
 */
#ifndef RQ_NET_LOOP_H
#define RQ_NET_LOOP_H

#include "base/epoch.h"
#include "base/executor.h"
#include "base/log.h"

typedef struct rq_loops rq_loops;
typedef struct rq_loop rq_loop;

typedef struct rq_loops_options {
    unsigned count;    /* 0: one per processor that this process may use */
    bool restless;     /* tests: every stream goes to another loop after each of its turns */
    rq_epoch *epoch;   /* joined by every loop; may be NULL */
    const rq_log *log; /* may be NULL */
} rq_loops_options;

/* Creates the loops; nothing runs yet. */
RQ_NODISCARD
rq_err rq_loops_new(const rq_loops_options *options, rq_loops **ret);
/* Starts the threads; once. */
RQ_NODISCARD
rq_err rq_loops_start(rq_loops *loops);
/* Stops listening, closes every stream (on_close is called), runs what was posted until nothing is
 * left, and joins the threads. Nobody may post afterwards. Harmless when not started. */
void rq_loops_stop(rq_loops *loops);
void rq_loops_free(rq_loops *loops);
/* Waits until every loop has run what was posted to it before. Returns at once when they do not
 * run. Not from a loop's thread. */
void rq_loops_sync(rq_loops *loops);

/* True when every loop has run a task since the previous call. Never waits. REQUIRES: between
 * rq_loops_start and rq_loops_stop; one thread. */
bool rq_loops_pulse(rq_loops *loops);

unsigned rq_loops_count(const rq_loops *loops);
rq_loop *rq_loops_get(rq_loops *loops, unsigned index);

/* What posts tasks to the loop; any thread. Valid until rq_loops_free. */
rq_lane *rq_loop_lane(rq_loop *loop);
/* Posts a task that is a slice of long work: such tasks run in order, some in each iteration, so that
 * many of them keep no socket waiting. Loop's thread only. */
void rq_loop_defer(rq_loop *loop, rq_task *task);
#define RQ_TURN_NS 2000000
/* What this iteration has begun by `now_ns` is enough: the rest shall be deferred. */
bool rq_loop_turn_is_over(const rq_loop *loop, uint64_t now_ns);
/* REQUIRES: `lane` was given by rq_loop_lane. */
rq_loop *rq_loop_of_lane(rq_lane *lane);
unsigned rq_loop_index(const rq_loop *loop);
/* True on the loop's own thread. */
bool rq_loop_is_current(const rq_loop *loop);
/* Monotonic, taken when this iteration began. Loop's thread only. */
uint64_t rq_loop_now_ns(const rq_loop *loop);
/* The same clock, read now. Any thread. */
uint64_t rq_loop_clock_ns(void);

/* A one-shot timer of millisecond accuracy; embedded in its owner, all-zero when idle. Unlike an
 * executor's timer it wakes nobody else up. All calls on the loop's thread. */
typedef struct rq_loop_timer {
    struct rq_loop_timer *next, *prev; /* the loop's */
    uint64_t due_ns;
    bool armed;
    void (*run)(struct rq_loop_timer *timer);
} rq_loop_timer;

/* Arms, or moves an armed timer. `run` may arm it again. */
void rq_loop_timer_arm(rq_loop *loop, rq_loop_timer *timer, uint64_t delay_ns);
void rq_loop_timer_cancel(rq_loop *loop, rq_loop_timer *timer);

#endif
