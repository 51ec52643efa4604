/* SPDX-License-Identifier: Apache-2.0 */
/* Event loops on libuv: threads, tasks from other threads, timers, and the work at the end of each
 * iteration. Contracts in loop.h, invariants in loop_priv.h. */
#include "net/check.h"
#include "net/loop_priv.h"
#include "net/timers.h"

#include "base/clock.h"
#include "base/signals.h"
#include "base/work_limit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- time and sections ---------------------------------------------------------------------- */

uint64_t rq_loop_clock_ns(void)
{
    return rq_clock_ns(CLOCK_MONOTONIC);
}

void rq__loop_enter(rq_loop *loop)
{
    if (loop->in_section) return;
    loop->in_section = true;
    loop->now_ns = rq_loop_clock_ns();
    atomic_store_explicit(&loop->load.entered, loop->now_ns, memory_order_relaxed);
    if (loop->loops->epoch != NULL) rq_epoch_enter(loop->loops->epoch, &loop->member);
}

RQ_COLD static void take_time(rq_loop *loop)
{
    rq_times_add(&loop->load.times, rq_loop_clock_ns() - loop->now_ns, RQ__LOOP_SAMPLE);
}

static void leave(rq_loop *loop)
{
    uint64_t count = atomic_load_explicit(&loop->load.iterations, memory_order_relaxed) + 1;
    atomic_store_explicit(&loop->load.iterations, count, memory_order_relaxed);
    if (RQ_UNLIKELY(count % RQ__LOOP_SAMPLE == 0)) take_time(loop);
    loop->in_section = false;
    rq_work_end();
    atomic_store_explicit(&loop->load.entered, 0, memory_order_relaxed);
    if (loop->loops->epoch == NULL) return;
    rq_epoch_exit(loop->loops->epoch, &loop->member);
    rq_epoch_collect(loop->loops->epoch);
}

uint64_t rq_loop_now_ns(const rq_loop *loop)
{
    return loop->now_ns;
}

bool rq_loop_is_current(const rq_loop *loop)
{
    return atomic_load_explicit(&loop->running, memory_order_acquire) &&
           pthread_equal(pthread_self(), loop->thread);
}

unsigned rq_loop_index(const rq_loop *loop)
{
    return loop->index;
}

rq_lane *rq_loop_lane(rq_loop *loop)
{
    return &loop->lane;
}

/* REQUIRES: `lane` was returned by rq_loop_lane. */
static rq_loop *loop_of_lane(rq_lane *lane)
{
    return RQ_CONTAINER_OF(lane, rq_loop, lane);
}

/* ---- tasks ------------------------------------------------------------------------ */

static void post_local(rq_loop *loop, rq_task *task)
{
    task->next = NULL;
    *loop->tasks_end = task;
    loop->tasks_end = &task->next;
}

static void post_arrived(rq_loop *loop, rq_task *task)
{
    task->next = NULL;
    *loop->arrived_end = task;
    loop->arrived_end = &task->next;
}

static void loop_post(rq_lane *lane, rq_task *task)
{
    rq_loop *loop = loop_of_lane(lane);
    if (rq_loop_is_current(loop)) {
        (RQ_UNLIKELY(loop->in_watched) ? post_arrived : post_local)(loop, task);
        return;
    }
    rq_task *head = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    do {
        task->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&loop->inbox, &head, task, memory_order_release,
                                                    memory_order_relaxed));
    if (atomic_exchange(&loop->signalled, true) || !atomic_load(&loop->asleep)) return;
    if (loop->loops->driven)
        rq_loop_wake(loop);
    else
        loop->loops->libuv.uv_async_send(&loop->wake);
}

/* Appends the tasks posted by other threads to `arrived`, oldest first. */
static void take_inbox(rq_loop *loop)
{
    if (!atomic_load_explicit(&loop->signalled, memory_order_relaxed)) return;
    atomic_store(&loop->signalled, false); /* before the exchange: a later post must wake the loop
                                            * again */
    rq_task *newest = atomic_exchange_explicit(&loop->inbox, NULL, memory_order_acquire);
    rq_task *oldest = NULL;
    while (newest != NULL) {
        rq_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        rq_task *next = oldest->next;
        post_arrived(loop, oldest);
        oldest = next;
    }
}

/* Runs the tasks of other threads, at least one and until *until_ns (0: the time begins now): a client decides how many of its
 * calls have waited for a block, and each may go on for a slice. A driven loop has one client. A single task needs no clock. */
static void run_arrived(rq_loop *loop, uint64_t *until_ns)
{
    bool limited = !loop->loops->driven;
    if (limited && *until_ns == 0 && loop->arrived->next != NULL)
        *until_ns = rq_loop_clock_ns() + RQ_TURN_NS;
    do {
        rq_task *task = loop->arrived;
        loop->arrived = task->next;
        if (loop->arrived == NULL) loop->arrived_end = &loop->arrived;
        rq_work_begin();
        task->run(task);
    } while (loop->arrived != NULL && !(limited && rq_loop_clock_ns() >= *until_ns));
}

/* Runs the tasks that are queued now; tasks posted by them wait for the next round. */
static void run_tasks(rq_loop *loop, uint64_t *until_ns)
{
    take_inbox(loop);
    rq_task *task = loop->tasks;
    loop->tasks = NULL;
    loop->tasks_end = &loop->tasks;
    while (task != NULL) {
        rq_task *next = task->next; /* run() may free or post the task */
        rq_work_begin();
        task->run(task);
        task = next;
    }
    if (loop->arrived != NULL) run_arrived(loop, until_ns);
}

void rq_loop_defer(rq_loop *loop, rq_task *task)
{
    task->next = NULL;
    *loop->deferred_end = task;
    loop->deferred_end = &task->next;
}

bool rq_loop_turn_is_over(const rq_loop *loop, uint64_t now_ns)
{
    return now_ns > loop->now_ns + RQ_TURN_NS;
}

/* Runs the deferred tasks that are queued now while there is time, at least one. */
RQ_COLD static void run_deferred(rq_loop *loop)
{
    uint64_t end = rq_loop_clock_ns() + RQ_TURN_NS;
    rq_task **last = loop->deferred_end;
    bool more = true;
    while (more) {
        rq_task *task = loop->deferred;
        loop->deferred = task->next;
        more = &task->next != last && rq_loop_clock_ns() < end;
        if (loop->deferred == NULL) loop->deferred_end = &loop->deferred;
        rq_work_begin();
        task->run(task);
    }
}

static bool has_taken_tasks(const rq_loop *loop)
{
    return loop->tasks != NULL || loop->arrived != NULL || loop->deferred != NULL;
}

bool rq__loop_has_tasks(rq_loop *loop)
{
    return has_taken_tasks(loop) || atomic_load(&loop->signalled);
}

RQ_COLD static void stop_step(rq_loop *loop);

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* an active idle handle keeps the loop from sleeping; the work is done in
                 * iteration_end */
}

void rq__loop_iteration_end(rq_loop *loop)
{
    if (!loop->in_section) {
        if (!rq__loop_has_tasks(loop) &&
            !atomic_load_explicit(&loop->stopping, memory_order_relaxed))
            return;
        rq__loop_enter(loop);
    }
    uint64_t until_ns = 0;
    run_tasks(loop, &until_ns);
    if (loop->tasks != NULL) run_tasks(loop, &until_ns); /* sends what the first round completed */
    if (RQ_UNLIKELY(loop->deferred != NULL)) run_deferred(loop);
    rq__loop_flush(loop);
    rq__loop_balance(loop);
    if (atomic_load_explicit(&loop->stopping, memory_order_relaxed)) stop_step(loop);
    leave(loop);
}

/* After this the loop waits for its sockets; if it has tasks, it only polls them. */
static void on_prepare(uv_prepare_t *h)
{
    rq_loop *loop = RQ_CONTAINER_OF(h, rq_loop, prepare);
    rq__loop_iteration_end(loop);
    if (!loop->handles_open || loop->loops->driven) return;
    bool busy = has_taken_tasks(loop);
    if (!busy) {
        atomic_store(&loop->asleep, true);
        busy = atomic_load(&loop->signalled); /* threads that posted before saw us awake */
        if (busy) atomic_store(&loop->asleep, false);
    }
    if (busy)
        loop->loops->libuv.uv_idle_start(&loop->idle, on_idle);
    else
        loop->loops->libuv.uv_idle_stop(&loop->idle);
}

static void on_check(uv_check_t *h)
{
    rq_loop *loop = RQ_CONTAINER_OF(h, rq_loop, check);
    if (!loop->loops->driven) atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
    rq__loop_iteration_end(loop);
}

static void on_wake(uv_async_t *h)
{
    rq__loop_enter(RQ_CONTAINER_OF(h, rq_loop, wake));
}

/* ---- the watched descriptor ------------------------------------------------------------------ */

static void on_watched(uv_poll_t *h, int status, int events)
{
    rq_loop *loop = RQ_CONTAINER_OF(h, rq_loop, watch);
    (void)status;
    (void)events;
    rq__loop_enter(loop);
    rq_work_begin();
    loop->in_watched = true;
    loop->watched->run(loop->watched);
    loop->in_watched = false;
}

static bool loop_watch(rq_lane *lane, int fd, rq_task *task)
{
    rq_loop *loop = loop_of_lane(lane);
    const rq__uv *uv = &loop->loops->libuv;
    RQ_ASSERT(rq_loop_is_current(loop) && loop->watched == NULL);
    if (loop->loops->driven || !loop->handles_open) return false;
    if (uv->uv_poll_init(&loop->uv, &loop->watch, fd) != 0) return false;
    loop->watched = task;
    return uv->uv_poll_start(&loop->watch, UV_READABLE, on_watched) == 0;
}

/* ---- timers --------------------------------------------------------------------------------- */

static void on_clock(uv_timer_t *h);

/* Sets libuv's timer to our next timer. */
static void clock_set(rq_loop *loop)
{
    if (!loop->handles_open || loop->loops->driven) return;
    if (loop->timers == NULL) {
        loop->loops->libuv.uv_timer_stop(&loop->clock);
        return;
    }
    uint64_t due = loop->timers->due_ns;
    uint64_t now = rq_loop_clock_ns();
    uint64_t ms = due <= now ? 0 : (due - now + 999999) / 1000000;
    loop->loops->libuv.uv_update_time(&loop->uv);
    loop->loops->libuv.uv_timer_start(&loop->clock, on_clock, ms, 0);
}

static void timer_remove(rq_loop *loop, rq_loop_timer *t)
{
    rq__timers_remove(&loop->timers, t);
    t->armed = false;
}

void rq_loop_timer_arm(rq_loop *loop, rq_loop_timer *timer, uint64_t delay_ns)
{
    if (timer->armed) timer_remove(loop, timer);
    timer->due_ns = rq_loop_clock_ns() + delay_ns;
    rq__timers_add(&loop->timers, timer);
    timer->armed = true;
    if (loop->timers == timer) clock_set(loop);
}

void rq_loop_timer_cancel(rq_loop *loop, rq_loop_timer *timer)
{
    if (timer->armed) timer_remove(loop, timer); /* libuv's timer may fire once for nothing */
}

void rq__loop_run_timers(rq_loop *loop)
{
    rq__loop_enter(loop);
    uint64_t now = rq_loop_clock_ns();
    while (loop->timers != NULL && loop->timers->due_ns <= now) {
        rq_loop_timer *t = loop->timers;
        timer_remove(loop, t);
        rq_work_begin();
        t->run(t);
        if (rq_loop_turn_is_over(loop, rq_loop_clock_ns())) break; /* the rest is due in the next */
    }
    clock_set(loop);
}

static void on_clock(uv_timer_t *h)
{
    rq__loop_run_timers(RQ_CONTAINER_OF(h, rq_loop, clock));
}

void rq_loop_get_stats(const rq_loop *loop, rq_loop_stats *ret)
{
    const rq_load *l = &loop->load;
    uint64_t now = rq_loop_clock_ns();
    uint64_t entered = atomic_load_explicit(&l->entered, memory_order_relaxed);
    *ret = (rq_loop_stats){
        .iterations = atomic_load_explicit(&l->iterations, memory_order_relaxed),
        .current_ns = entered == 0 || entered > now ? 0 : now - entered,
    };
    rq_times_read(&l->times, &ret->times);
}

void rq_loops_report(const rq_loops *loops, const rq_log *log)
{
    uint64_t now = rq_loop_clock_ns();
    for (unsigned i = 0; i < loops->count; i++) {
        const rq_load *load = &loops->loop[i].load;
        uint64_t entered = atomic_load_explicit(&load->entered, memory_order_relaxed);
        unsigned permille = atomic_load_explicit(&load->permille, memory_order_relaxed);
        if (entered == 0 || entered > now)
            rq_log_info(log, "report", "loop %u: waiting for sockets, %u.%u %% busy", i,
                        permille / 10, permille % 10);
        else
            rq_log_info(log, "report", "loop %u: in one iteration for %.3f ms, %u.%u %% busy", i,
                        (double)(now - entered) / 1e6, permille / 10, permille % 10);
    }
}

/* ---- the loops ------------------------------------------------------------------------------- */

static rq_err err_of_uv(int rc)
{
    if (rc == UV_ENOMEM) return RQ_E_NO_MEMORY;
    return rc == 0 ? RQ_OK : RQ_E_IO;
}

#ifdef RQ_LIBRARIES_LINKED

static rq_err load_libuv(rq__uv *ret, rq_error *why)
{
    (void)why;
    *ret = (rq__uv){RQ__UV_FUNCTIONS(RQ_LIBRARY_LINKED)};
    return RQ_OK;
}

#else

static rq_err load_libuv(rq__uv *ret, rq_error *why)
{
    static const char *const names[] = {RQ__UV_FUNCTIONS(RQ_LIBRARY_NAME) NULL};
    static const rq_library library = {"An event loop", {"libuv.so.1"}, names};
    return rq_library_load(&library, ret, why);
}

#endif

rq_err rq_loops_check(rq_error *why)
{
    rq__uv unused;
    return load_libuv(&unused, why);
}

static rq_err loop_init(rq_loops *loops, unsigned index)
{
    rq_loop *loop = &loops->loop[index];
    loop->lane.post = loop_post;
    loop->lane.watch = loop_watch;
    loop->loops = loops;
    loop->index = index;
    loop->bell_fd = -1;
    loop->tasks_end = &loop->tasks;
    loop->arrived_end = &loop->arrived;
    loop->deferred_end = &loop->deferred;
    loop->sweep.run = rq__loop_sweep;
    rq__crowd_init(loop);
    loop->held.run = rq__loop_try_held;
    atomic_store(&loop->asleep, loops->driven);
    loop->scratch = malloc(RQ__SCRATCH_BYTES);
    if (loop->scratch == NULL) return RQ_E_NO_MEMORY;
    if (!rq__loop_has_descriptors()) return RQ_E_IO;
    if (index == 0) RQ_TRY(load_libuv(&loops->libuv, NULL));
    RQ_TRY(err_of_uv(loop->loops->libuv.uv_loop_init(&loop->uv)));
    loop->uv_open = loop->handles_open = true;
    RQ_TRY(err_of_uv(loop->loops->libuv.uv_async_init(&loop->uv, &loop->wake, on_wake)));
    loop->loops->libuv.uv_prepare_init(&loop->uv, &loop->prepare);
    loop->loops->libuv.uv_prepare_start(&loop->prepare, on_prepare);
    loop->loops->libuv.uv_check_init(&loop->uv, &loop->check);
    loop->loops->libuv.uv_check_start(&loop->check, on_check);
    loop->loops->libuv.uv_idle_init(&loop->uv, &loop->idle);
    loop->loops->libuv.uv_timer_init(&loop->uv, &loop->clock);
    return loops->driven ? rq__loop_open_bell(loop) : RQ_OK;
}

/* The processors this process may run on; in a container or under taskset, fewer than the machine
 * has. */
static unsigned processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    long all = n > 0 ? n : sysconf(_SC_NPROCESSORS_ONLN); /* more than the set can hold */
    return all > 0 ? (unsigned)all : 1;
}

rq_err rq_loops_new(const rq_loops_options *options, rq_loops **ret)
{
    unsigned count = options->driven ? 1 : options->count > 0 ? options->count : processors();
    rq_loops *loops = calloc(1, sizeof *loops + count * sizeof loops->loop[0]);
    if (loops == NULL) return RQ_E_NO_MEMORY;
    loops->epoch = options->epoch;
    loops->log = options->log;
    loops->restless = options->restless;
    loops->driven = options->driven;
    loops->before_wait = options->before_wait;
    loops->after_wait = options->after_wait;
    loops->ctx = options->ctx;
    pthread_mutex_init(&loops->lock, NULL);
    pthread_cond_init(&loops->changed, NULL);
    for (; loops->count < count; loops->count++) {
        loops->loop[loops->count].pool.executor = options->executor;
        rq_err rc = loop_init(loops, loops->count);
        if (rc != RQ_OK) {
            loops->count++; /* free this one's resources */
            loops->stopped = true;
            rq_loops_free(loops);
            return rc;
        }
    }
    *ret = loops;
    return RQ_OK;
}

static void *loop_main(void *arg)
{
    rq_loop *loop = arg;
    char name[16];
    snprintf(name, sizeof name, "rq-loop-%u", loop->index);
    pthread_setname_np(pthread_self(), name);
    loop->thread = pthread_self();
    atomic_store_explicit(&loop->running, true, memory_order_release);
    if (loop->loops->epoch != NULL) rq_epoch_join(loop->loops->epoch, &loop->member);
    loop->now_ns = rq_loop_clock_ns();
    loop->loops->libuv.uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (loop->in_section) leave(loop);
    if (loop->loops->epoch != NULL) rq_epoch_leave(loop->loops->epoch, &loop->member);
    return NULL;
}

rq_err rq_loops_start(rq_loops *loops)
{
    /* Loop threads block all signals: the main thread handles them, and SIGPIPE is never wanted
     * (writes return EPIPE). */
    sigset_t all, before;
    RQ_ASSERT(!loops->driven);
    rq_thread_signals(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rq_err rc = RQ_OK;
    for (unsigned i = 0; i < loops->count && rc == RQ_OK; i++) {
        rq_loop *loop = &loops->loop[i];
        loop->created = pthread_create(&loop->joinable, NULL, loop_main, loop) == 0;
        if (!loop->created) rc = RQ_E_NO_MEMORY;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != RQ_OK) {
        rq_loops_stop(loops);
        return rc;
    }
    pthread_mutex_lock(&loops->lock);
    loops->started = true;
    for (rq_listener *l = loops->listeners; l != NULL; l = l->next) {
        if (l->stopped) continue;
        l->tasks++;
        rq_lane_post(&loops->loop[0].lane, &l->start_task);
    }
    pthread_mutex_unlock(&loops->lock);
    return RQ_OK;
}

/* One step of the shutdown, at the end of an iteration: closes open streams; once there are none
 * and nothing is posted, closes the loop's own handles, and uv_run returns. */
RQ_COLD static void stop_step(rq_loop *loop)
{
    if (!loop->handles_open) return;
    for (rq_stream *s = loop->streams; s != NULL; s = s->next)
        rq_stream_close(s, RQ_E_CANCELLED);
    if (loop->streams != NULL || rq__loop_has_tasks(loop)) return;
    loop->handles_open = false;
    loop->loops->libuv.uv_close((uv_handle_t *)&loop->wake, NULL);
    loop->loops->libuv.uv_close((uv_handle_t *)&loop->prepare, NULL);
    loop->loops->libuv.uv_close((uv_handle_t *)&loop->check, NULL);
    loop->loops->libuv.uv_close((uv_handle_t *)&loop->idle, NULL);
    loop->loops->libuv.uv_close((uv_handle_t *)&loop->clock, NULL);
    if (loop->watched != NULL) loop->loops->libuv.uv_close((uv_handle_t *)&loop->watch, NULL);
    if (loop->loops->driven) loop->loops->libuv.uv_close((uv_handle_t *)&loop->bell, NULL);
}

static void run_nothing(rq_task *task)
{
    (void)task;
}

void rq_loops_stop(rq_loops *loops)
{
    if (loops->stopped) return;
    /* Listeners first: afterwards no loop passes a connection to a loop that has ended. */
    for (rq_listener *l = loops->listeners; l != NULL; l = l->next)
        rq_listener_stop(l, false);
    pthread_mutex_lock(&loops->lock);
    loops->stopped = true;
    loops->moves_stopped = true; /* and no stream sets out for one */
    while (loops->moving > 0)
        pthread_cond_wait(&loops->changed, &loops->lock);
    pthread_mutex_unlock(&loops->lock);
    if (loops->driven) rq__loop_stop_driven(&loops->loop[0]);
    for (unsigned i = 0; i < loops->count; i++) {
        rq_loop *loop = &loops->loop[i];
        if (!loop->created) continue;
        atomic_store(&loop->stopping, true);
        loop->stop_task.run = run_nothing;
        rq_lane_post(&loop->lane, &loop->stop_task);
    }
    for (unsigned i = 0; i < loops->count; i++)
        if (loops->loop[i].created) pthread_join(loops->loop[i].joinable, NULL);
}

struct sync {
    rq_task task;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void run_sync(rq_task *task)
{
    struct sync *y = RQ_CONTAINER_OF(task, struct sync, task);
    pthread_mutex_lock(&y->lock);
    y->done = true;
    pthread_cond_signal(&y->changed);
    pthread_mutex_unlock(&y->lock);
}

static void sync_one(rq_loop *loop)
{
    struct sync y = {.task = {NULL, run_sync}};
    pthread_mutex_init(&y.lock, NULL);
    pthread_cond_init(&y.changed, NULL);
    rq_lane_post(&loop->lane, &y.task);
    pthread_mutex_lock(&y.lock);
    while (!y.done)
        pthread_cond_wait(&y.changed, &y.lock);
    pthread_mutex_unlock(&y.lock);
    pthread_mutex_destroy(&y.lock);
    pthread_cond_destroy(&y.changed);
}

void rq_loops_sync(rq_loops *loops)
{
    if (!rq__loops_live(loops)) return;
    for (unsigned i = 0; i < loops->count; i++)
        sync_one(&loops->loop[i]);
}

static void run_pulse(rq_task *task)
{
    atomic_store(&RQ_CONTAINER_OF(task, rq_loop, pulse)->pulse_since_ns, 0);
}

bool rq_loops_pulse(rq_loops *loops, uint64_t patience_ns)
{
    bool all = true;
    for (unsigned i = 0; i < loops->count; i++) {
        rq_loop *loop = &loops->loop[i];
        uint64_t since = 0, now = rq_loop_clock_ns();
        if (!atomic_compare_exchange_strong(&loop->pulse_since_ns, &since, now)) {
            all &= now < since ||
                   now - since < patience_ns; /* before: another thread has just given it */
            continue;
        }
        loop->pulse.run = run_pulse;
        rq_lane_post(&loop->lane, &loop->pulse);
    }
    return all;
}

static void close_handle(uv_handle_t *h, void *arg)
{
    rq_loop *loop = arg;
    loop->loops->libuv.uv_close(h, NULL);
}

static void loop_clear(rq_loop *loop)
{
    if (loop->handles_open) { /* never ran: let libuv close its handles */
        loop->handles_open = false;
        loop->loops->libuv.uv_walk(&loop->uv, close_handle, loop);
        loop->loops->libuv.uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
    if (loop->bell_fd >= 0) close(loop->bell_fd);
    if (loop->uv_open) loop->loops->libuv.uv_loop_close(&loop->uv);
    rq__out_pool_clear(&loop->pool);
    free(loop->scratch);
}

void rq_loops_free(rq_loops *loops)
{
    if (loops == NULL) return;
    rq_loops_stop(loops);
    for (unsigned i = 0; i < loops->count; i++)
        loop_clear(&loops->loop[i]);
    pthread_cond_destroy(&loops->changed);
    pthread_mutex_destroy(&loops->lock);
    free(loops);
}

unsigned rq_loops_count(const rq_loops *loops)
{
    return loops->count;
}

rq_loop *rq_loops_get(rq_loops *loops, unsigned index)
{
    RQ_ASSERT(index < loops->count);
    return &loops->loop[index];
}
