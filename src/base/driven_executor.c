/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor without threads: tasks run on the threads that call. A caller that waits for a latch, sleeps
 * or asks for work (rq_driven_…) becomes the driver, unless another thread is. The driver takes task after
 * task and runs each on a fiber, so that a task can wait in the middle while others run.
 *
 *     submit, post, timers ─► queues ─► driver ─► fiber ─► end, or wait ─► list of waiting fibers ─► driver
 *
 *  1. One thread drives at a time. Other callers sleep until what they wait for has happened, or the driver
 *     has left; then one of them drives. Nothing runs while no thread is in a call.
 *  2. Order of choice: lanes, blocks and decoding that others wait for; then flushes, calls and procedures
 *     in turn; then compactions. Each eighth choice is made in the reverse order, so that nothing waits for
 *     ever. Within a class, a begun task comes before a new one.
 *  3. A task that yields gives the driver back, which may end its time slice there.
 *  4. A pool runs as many tasks at a time as its limit says: begun tasks that do not wait on a latch
 *     count, in RQ_POOL_CALL those, too (see thread_executor.c).
 *  5. If there is no memory for a fiber, the tasks wait; the driver tries again later.
 *
 * Lock: one, for everything here, latches included. No task runs under it.
 */
#include "base/driven_executor.h"

#include "base/clock.h"
#include "base/fiber.h"
#include "base/random.h"
#include "base/task_queue.h"
#include "base/timer_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* How long a driver sleeps before it tries again to make a fiber. */
#define RETRY_NS ((uint64_t)10 * 1000 * 1000)
#define REVERSED_EACH 8
#define NO_DESCRIPTOR (-1)

typedef enum class {
    CLASS_URGENT, /* lanes, reads, decoding */
    CLASS_NORMAL,
    CLASS_LATER,
    CLASS_COUNT
} class;

static const class class_of_pool[RQ_POOL_COUNT] = {
    [RQ_POOL_READ] = CLASS_URGENT,         [RQ_POOL_CODEC] = CLASS_URGENT,
    [RQ_POOL_FLUSH] = CLASS_NORMAL,        [RQ_POOL_CALL] = CLASS_NORMAL,
    [RQ_POOL_WORK] = CLASS_NORMAL,         [RQ_POOL_COMPACT] = CLASS_LATER,
    [RQ_POOL_COMPACT_LARGE] = CLASS_LATER,
};

typedef struct lane {
    rq_lane base;
    struct lane *next;
    struct driven *ex;
    rq_task_queue tasks;
    bool busy; /* its task has begun */
} lane;

typedef struct pool {
    rq_task_queue tasks, ranked;
    unsigned limit;
    unsigned begun;
    unsigned on_latch; /* of the begun ones */
} pool;

typedef struct worker {
    rq_fiber fiber;
    struct worker *next;
    struct driven *ex;
    rq_task *task;
    lane *lane; /* NULL: of a pool */
    rq_pool pool;
    rq_latch *latch; /* it waits for this … */
    uint64_t due_ns; /* … or until this time; 0: it has yielded */
} worker;

typedef struct driven {
    rq_executor base;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for callers that sleep */
    unsigned sleepers;
    bool is_driven;
    pthread_t driver; /* if is_driven */
    worker *current;  /* the driver is on this fiber */
    pool pools[RQ_POOL_COUNT];
    unsigned next_pool; /* to begin the choice with */
    unsigned choices;
    lane *lanes;
    rq_timer_list timers;
    worker *waiting; /* fibers of begun tasks; the one that gave up the driver last is at the end */
    worker *spare;
    bool lacks_fiber;
    _Atomic size_t unfinished; /* tasks queued or begun */
    _Atomic uint64_t next_due; /* of timers; UINT64_MAX: none */
    int event;                 /* an eventfd, readable while there may be work */
    _Atomic bool is_rung;      /* whether it is readable */
    rq_random random;
} driven;

static driven *of(rq_executor *base)
{
    return RQ_CONTAINER_OF(base, driven, base);
}

static void lock(driven *ex)
{
    int rc = pthread_mutex_lock(&ex->lock);
    RQ_ASSERT(rc == 0);
}

static void unlock(driven *ex)
{
    int rc = pthread_mutex_unlock(&ex->lock);
    RQ_ASSERT(rc == 0);
}

static uint64_t now_ns(rq_executor *base)
{
    (void)base;
    return rq_clock_ns(CLOCK_MONOTONIC);
}

/* REQUIRES: lock. Call it when a task can run, or when an event for which a caller may wait has happened. */
static void announce(driven *ex)
{
    uint64_t one = 1;
    if (ex->sleepers > 0) pthread_cond_broadcast(&ex->changed);
    if (ex->event == NO_DESCRIPTOR) return;
    atomic_store_explicit(&ex->is_rung, true, memory_order_relaxed);
    ssize_t n = write(ex->event, &one, sizeof one); /* EAGAIN: it is readable */
    (void)n;
}

/* REQUIRES: lock; nothing can run, and no thread drives. Unless the descriptor ceases to be readable then, an event
 * loop calls for ever. */
static void silence(driven *ex)
{
    uint64_t count;
    if (!atomic_load_explicit(&ex->is_rung, memory_order_relaxed)) return;
    atomic_store_explicit(&ex->is_rung, false, memory_order_relaxed);
    ssize_t n = read(ex->event, &count, sizeof count); /* EAGAIN: it is not readable */
    (void)n;
}

/* REQUIRES: lock. The fiber that this thread is on, or NULL. */
static worker *this_worker(const driven *ex)
{
    return ex->is_driven && pthread_equal(ex->driver, pthread_self()) ? ex->current : NULL;
}

/* --- queues ----------------------------------------------------------------------------------- */

static void submit(rq_executor *base, rq_pool kind, rq_task *task)
{
    driven *ex = of(base);
    lock(ex);
    atomic_fetch_add_explicit(&ex->unfinished, 1, memory_order_relaxed);
    rq_task_queue_push(&ex->pools[kind].tasks, task);
    announce(ex);
    unlock(ex);
}

static void submit_ranked(rq_executor *base, rq_pool kind, rq_ranked_task *task, int32_t rank)
{
    driven *ex = of(base);
    lock(ex);
    atomic_fetch_add_explicit(&ex->unfinished, 1, memory_order_relaxed);
    rq_task_queue_insert(&ex->pools[kind].ranked, task, rank);
    announce(ex);
    unlock(ex);
}

static void raise_rank(rq_executor *base, rq_pool kind, const rq_ranked_task *task, int32_t rank)
{
    driven *ex = of(base);
    lock(ex);
    rq_task_queue_raise(&ex->pools[kind].ranked, task, rank);
    unlock(ex);
}

/* REQUIRES: lock. */
static void push(lane *l, rq_task *task)
{
    atomic_fetch_add_explicit(&l->ex->unfinished, 1, memory_order_relaxed);
    rq_task_queue_push(&l->tasks, task);
}

static void post(rq_lane *base, rq_task *task)
{
    lane *l = RQ_CONTAINER_OF(base, lane, base);
    lock(l->ex);
    push(l, task);
    announce(l->ex);
    unlock(l->ex);
}

/* --- timers ----------------------------------------------------------------------------------- */

/* REQUIRES: lock. */
static void note_due(driven *ex)
{
    uint64_t due = ex->timers.first == NULL ? UINT64_MAX : ex->timers.first->due_ns;
    atomic_store_explicit(&ex->next_due, due, memory_order_relaxed);
}

static void timer_arm(rq_executor *base, rq_timer *timer, rq_lane *on, uint64_t delay_ns)
{
    driven *ex = of(base);
    uint64_t now = now_ns(base);
    lock(ex);
    rq_timer_list_arm(&ex->timers, timer, on, now, delay_ns);
    note_due(ex);
    if (ex->timers.first == timer) announce(ex); /* the next one to wait for has changed */
    unlock(ex);
}

static bool timer_cancel(rq_executor *base, rq_timer *timer)
{
    driven *ex = of(base);
    lock(ex);
    bool was_armed = rq_timer_list_cancel(&ex->timers, timer);
    if (was_armed) note_due(ex);
    unlock(ex);
    return was_armed;
}

/* REQUIRES: lock. */
static void fire_timers(driven *ex)
{
    rq_timer *t;
    if (ex->timers.first == NULL) return;
    uint64_t now = now_ns(&ex->base);
    while ((t = rq_timer_list_take_due(&ex->timers, now)) != NULL)
        push(RQ_CONTAINER_OF(t->lane, lane, base), &t->task);
    note_due(ex);
}

/* --- fibers ----------------------------------------------------------------------------------- */

/* A fiber runs tasks for ever; between two of them it is a spare. */
static void worker_main(rq_fiber *f)
{
    worker *w = RQ_CONTAINER_OF(f, worker, fiber);
    for (;;) {
        w->task->run(w->task); /* which may free the task */
        w->task = NULL;
        rq_fiber_leave(f);
    }
}

/* REQUIRES: lock. */
static bool have_spare(driven *ex)
{
    if (ex->spare == NULL) {
        rq_fiber *f = rq_fiber_new(sizeof(worker), worker_main);
        if (f != NULL) {
            ex->spare = RQ_CONTAINER_OF(f, worker, fiber);
            ex->spare->ex = ex;
        }
    }
    ex->lacks_fiber = ex->spare == NULL;
    return ex->spare != NULL;
}

/* REQUIRES: lock. The worker's task has ended. */
static void finish(driven *ex, worker *w)
{
    if (w->lane != NULL) {
        w->lane->busy = false;
    } else {
        ex->pools[w->pool].begun--;
    }
    w->lane = NULL;
    w->next = ex->spare;
    ex->spare = w;
    atomic_fetch_sub_explicit(&ex->unfinished, 1, memory_order_release);
    if (ex->sleepers > 0) pthread_cond_broadcast(&ex->changed);
}

/* REQUIRES: lock, given up meanwhile; this thread drives. Runs the worker until its task ends or waits. */
static void enter(driven *ex, worker *w)
{
    ex->current = w;
    unlock(ex);
    rq_fiber_enter(&w->fiber);
    lock(ex);
    ex->current = NULL;
    if (w->task == NULL) {
        finish(ex, w);
        return;
    }
    worker **at = &ex->waiting;
    while (*at != NULL)
        at = &(*at)->next;
    w->next = NULL;
    *at = w;
}

/* REQUIRES: lock, given up meanwhile; this thread is on the fiber. */
static void leave(driven *ex, worker *w, rq_latch *latch, uint64_t due_ns)
{
    bool gives_place = latch != NULL && w->lane == NULL;
    w->latch = latch;
    w->due_ns = due_ns;
    if (gives_place) ex->pools[w->pool].on_latch++;
    unlock(ex);
    rq_fiber_leave(&w->fiber);
    lock(ex);
    if (gives_place) ex->pools[w->pool].on_latch--;
}

static bool is_ready(const worker *w, uint64_t now)
{
    if (w->latch != NULL) return w->latch->open;
    return w->due_ns <= now;
}

/* --- the choice ------------------------------------------------------------------------------- */

static class class_of(const worker *w)
{
    return w->lane != NULL ? CLASS_URGENT : class_of_pool[w->pool];
}

/* REQUIRES: lock. Takes a begun task of the class that can go on. */
static worker *take_ready(driven *ex, class wanted, uint64_t now)
{
    for (worker **at = &ex->waiting; *at != NULL; at = &(*at)->next) {
        worker *w = *at;
        if (class_of(w) != wanted || !is_ready(w, now)) continue;
        *at = w->next;
        return w;
    }
    return NULL;
}

/* REQUIRES: lock. */
static bool may_begin(const pool *p, rq_pool kind)
{
    unsigned counted = kind == RQ_POOL_CALL ? p->begun : p->begun - p->on_latch;
    return p->tasks.count + p->ranked.count > 0 && counted < p->limit;
}

/* REQUIRES: lock; there is a spare fiber. */
static worker *begin(driven *ex, rq_task *task, lane *l, rq_pool kind)
{
    worker *w = ex->spare;
    ex->spare = w->next;
    w->task = task;
    w->lane = l;
    w->pool = kind;
    if (l != NULL)
        l->busy = true;
    else
        ex->pools[kind].begun++;
    return w;
}

/* REQUIRES: lock. Begins a new task of the class. */
static worker *take_new(driven *ex, class wanted)
{
    for (lane *l = wanted == CLASS_URGENT ? ex->lanes : NULL; l != NULL; l = l->next) {
        if (l->busy || l->tasks.count == 0) continue;
        return have_spare(ex) ? begin(ex, rq__task_queue_pop(&l->tasks), l, RQ_POOL_WORK) : NULL;
    }
    for (unsigned i = 0; i < RQ_POOL_COUNT; i++) {
        rq_pool kind = (rq_pool)((ex->next_pool + i) % RQ_POOL_COUNT);
        pool *p = &ex->pools[kind];
        if (class_of_pool[kind] != wanted || !may_begin(p, kind)) continue;
        if (!have_spare(ex)) return NULL;
        ex->next_pool = kind + 1;
        rq_task *task = rq__task_queue_pop(&p->tasks);
        return begin(ex, task != NULL ? task : rq__task_queue_pop(&p->ranked), NULL, kind);
    }
    return NULL;
}

/* REQUIRES: lock, given up meanwhile; this thread drives. False: nothing can run now. */
static bool step(driven *ex)
{
    fire_timers(ex);
    if (atomic_load_explicit(&ex->unfinished, memory_order_relaxed) == 0) return false;
    bool reversed = ++ex->choices % REVERSED_EACH == 0;
    uint64_t now = ex->waiting == NULL ? 0 : now_ns(&ex->base);
    for (int i = 0; i < CLASS_COUNT; i++) {
        class wanted = (class)(reversed ? CLASS_COUNT - 1 - i : i);
        worker *w = take_ready(ex, wanted, now);
        if (w == NULL) w = take_new(ex, wanted);
        if (w == NULL) continue;
        enter(ex, w);
        return true;
    }
    return false;
}

/* REQUIRES: lock. The time at which something can run that cannot run now; UINT64_MAX: none. */
static uint64_t next_time(const driven *ex)
{
    uint64_t next = ex->timers.first == NULL ? UINT64_MAX : ex->timers.first->due_ns;
    for (const worker *w = ex->waiting; w != NULL; w = w->next)
        if (w->latch == NULL && w->due_ns < next) next = w->due_ns;
    if (ex->lacks_fiber) {
        uint64_t again = now_ns(NULL) + RETRY_NS;
        if (again < next) next = again;
    }
    return next;
}

/* --- driving ---------------------------------------------------------------------------------- */

/* The aim of a driver. Driving ends when `done` says so (under the lock; it must not block), at the time
 * `until_ns`, or, with `leaves_when_idle`, when nothing can run. */
typedef struct drive_aim {
    bool (*done)(const driven *ex, void *arg);
    void *arg;
    uint64_t until_ns;
    bool leaves_when_idle;
} drive_aim;

/* REQUIRES: lock. */
static bool is_reached(const driven *ex, const drive_aim *aim)
{
    return (aim->done != NULL && aim->done(ex, aim->arg)) ||
           (aim->until_ns != UINT64_MAX && now_ns(NULL) >= aim->until_ns);
}

/* REQUIRES: lock, given up meanwhile. */
static void sleep_until(driven *ex, uint64_t ns)
{
    ex->sleepers++;
    if (ns >= (uint64_t)INT64_MAX) {
        pthread_cond_wait(&ex->changed, &ex->lock);
    } else {
        struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
        (void)pthread_cond_timedwait(&ex->changed, &ex->lock, &until);
    }
    ex->sleepers--;
}

/* REQUIRES: lock, given up meanwhile; no thread drives. True: the aim is reached. */
static bool drive_now(driven *ex, const drive_aim *aim)
{
    bool ran = true, reached = false;
    ex->is_driven = true;
    ex->driver = pthread_self();
    while (ran && !reached) {
        ran = step(ex);
        reached = is_reached(ex, aim);
    }
    ex->is_driven = false;
    if (!ran) silence(ex);
    if (ex->sleepers > 0) pthread_cond_broadcast(&ex->changed); /* one of them drives */
    return reached || (!ran && aim->leaves_when_idle);
}

/* REQUIRES: lock, given up meanwhile; this thread is on no fiber. */
static void drive(driven *ex, const drive_aim *aim)
{
    while (!is_reached(ex, aim)) {
        if (!ex->is_driven && drive_now(ex, aim)) return;
        uint64_t next = ex->is_driven ? UINT64_MAX : next_time(ex);
        sleep_until(ex, next < aim->until_ns ? next : aim->until_ns);
    }
}

/* --- latches, sleep, lanes -------------------------------------------------------------------- */

static void latch_init(rq_executor *base, rq_latch *latch)
{
    *latch = (rq_latch){.executor = base};
}

static void latch_open(rq_latch *latch, rq_err rc)
{
    driven *ex = of(latch->executor);
    lock(ex);
    RQ_ASSERT(!latch->open);
    latch->rc = rc;
    latch->open = true;
    announce(ex);
    unlock(ex); /* the latch may be gone from here on */
}

static bool latch_is_open(const driven *ex, void *latch)
{
    (void)ex;
    return ((const rq_latch *)latch)->open;
}

static rq_err latch_wait(rq_latch *latch)
{
    driven *ex = of(latch->executor);
    lock(ex);
    worker *w = this_worker(ex);
    if (w == NULL)
        drive(ex, &(drive_aim){.done = latch_is_open, .arg = latch, .until_ns = UINT64_MAX});
    while (!latch->open)
        leave(ex, w, latch, 0);
    rq_err rc = latch->rc;
    unlock(ex);
    return rc;
}

static void latch_destroy(rq_latch *latch)
{
    latch->executor = NULL;
}

static void sleep_ns(rq_executor *base, uint64_t ns)
{
    driven *ex = of(base);
    uint64_t until = now_ns(base) + ns;
    lock(ex);
    worker *w = this_worker(ex);
    if (w != NULL)
        leave(ex, w, NULL, until);
    else
        drive(ex, &(drive_aim){.until_ns = until});
    unlock(ex);
}

static void yield(rq_executor *base)
{
    driven *ex = of(base);
    lock(ex);
    worker *w = this_worker(ex);
    if (w != NULL) leave(ex, w, NULL, 0);
    unlock(ex);
}

static rq_err lane_new(rq_executor *base, const char *name, rq_lane **ret)
{
    driven *ex = of(base);
    lane *l = calloc(1, sizeof *l);
    (void)name;
    if (l == NULL) return RQ_E_NO_MEMORY;
    l->base.post = post;
    l->ex = ex;
    rq_task_queue_init(&l->tasks);
    lock(ex);
    l->next = ex->lanes;
    ex->lanes = l;
    unlock(ex);
    *ret = &l->base;
    return RQ_OK;
}

static bool lane_is_idle(const driven *ex, void *arg)
{
    const lane *l = arg;
    (void)ex;
    return !l->busy && l->tasks.count == 0;
}

static void lane_free(rq_executor *base, rq_lane *given)
{
    driven *ex = of(base);
    if (given == NULL) return;
    lane *l = RQ_CONTAINER_OF(given, lane, base);
    lock(ex);
    worker *w = this_worker(ex);
    RQ_ASSERT(w == NULL || w->lane != l);
    if (w == NULL) drive(ex, &(drive_aim){.done = lane_is_idle, .arg = l, .until_ns = UINT64_MAX});
    while (!lane_is_idle(ex, l))
        leave(ex, w, NULL, 0);
    lane **at = &ex->lanes;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    unlock(ex);
    free(l);
}

/* --- clocks, chance --------------------------------------------------------------------------- */

static int64_t now_ms(rq_executor *base)
{
    (void)base;
    return (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
}

static uint64_t random_number(rq_executor *base)
{
    driven *ex = of(base);
    lock(ex);
    uint64_t v = rq_random_next(&ex->random);
    unlock(ex);
    return v;
}

/* --- driving by callers ----------------------------------------------------------------------- */

void rq_driven_help(rq_executor *base, uint64_t slice_ns)
{
    driven *ex = of(base);
    if (RQ_LIKELY(atomic_load_explicit(&ex->unfinished, memory_order_relaxed) == 0 &&
                  !atomic_load_explicit(&ex->is_rung, memory_order_relaxed))) {
        uint64_t due = atomic_load_explicit(&ex->next_due, memory_order_relaxed);
        if (RQ_LIKELY(due == UINT64_MAX || due > now_ns(base))) return;
    }
    drive_aim aim = {.until_ns = now_ns(base) + slice_ns, .leaves_when_idle = true};
    lock(ex);
    if (!ex->is_driven) (void)drive_now(ex, &aim);
    unlock(ex);
}

/* A timer that is due is a task that has not been posted yet. */
static bool is_finished(const driven *ex, void *arg)
{
    (void)arg;
    return atomic_load_explicit(&ex->unfinished, memory_order_relaxed) == 0 &&
           (ex->timers.first == NULL || ex->timers.first->due_ns > now_ns(NULL));
}

typedef struct wish {
    bool (*done)(void *arg);
    void *arg;
} wish;

static bool is_fulfilled(const driven *ex, void *arg)
{
    const wish *w = arg;
    (void)ex;
    return w->done(w->arg);
}

bool rq_driven_run(rq_executor *base, bool (*done)(void *arg), void *arg, uint64_t until_ns)
{
    driven *ex = of(base);
    wish w = {done, arg};
    drive_aim aim = {
        .done = done == NULL ? is_finished : is_fulfilled, .arg = &w, .until_ns = until_ns};
    lock(ex);
    drive(ex, &aim);
    bool reached = aim.done(ex, aim.arg);
    /* The aim may have been reached before, or by, the last task. A timer that is due has a descriptor of its caller's. */
    if (!ex->is_driven && atomic_load_explicit(&ex->unfinished, memory_order_relaxed) == 0)
        silence(ex);
    unlock(ex);
    return reached;
}

static bool is_pool_empty(const driven *ex, void *arg)
{
    const pool *p = &ex->pools[*(const rq_pool *)arg];
    return p->begun == 0 && p->tasks.count + p->ranked.count == 0;
}

void rq_driven_finish_pool(rq_executor *base, rq_pool kind)
{
    driven *ex = of(base);
    lock(ex);
    drive(ex, &(drive_aim){.done = is_pool_empty, .arg = &kind, .until_ns = UINT64_MAX});
    unlock(ex);
}

void rq_driven_wake(rq_executor *base)
{
    driven *ex = of(base);
    lock(ex);
    announce(ex);
    unlock(ex);
}

int rq_driven_descriptor(rq_executor *base)
{
    driven *ex = of(base);
    lock(ex);
    if (ex->event == NO_DESCRIPTOR) {
        ex->event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        atomic_store_explicit(&ex->is_rung, ex->event != NO_DESCRIPTOR, memory_order_relaxed);
    }
    int fd = ex->event;
    unlock(ex);
    return fd;
}

uint64_t rq_driven_due(rq_executor *base)
{
    driven *ex = of(base);
    lock(ex);
    uint64_t next = next_time(ex);
    unlock(ex);
    return next;
}

/* --- life ------------------------------------------------------------------------------------- */

static uint64_t random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) return seed;
    return now_ns(NULL) ^ ((uint64_t)getpid() << 40); /* early in a machine's boot */
}

rq_err rq_driven_executor_new(const unsigned limits[RQ_POOL_COUNT], rq_executor **ret)
{
    driven *ex = calloc(1, sizeof *ex);
    if (ex == NULL) return RQ_E_NO_MEMORY;
    ex->base = (rq_executor){
        .submit = submit,
        .submit_ranked = submit_ranked,
        .raise = raise_rank,
        .lane_new = lane_new,
        .lane_free = lane_free,
        .timer_arm = timer_arm,
        .timer_cancel = timer_cancel,
        .latch_init = latch_init,
        .latch_open = latch_open,
        .latch_wait = latch_wait,
        .latch_destroy = latch_destroy,
        .sleep = sleep_ns,
        .yield = yield,
        .now_ns = now_ns,
        .now_ms = now_ms,
        .random = random_number,
    };
    if (!have_spare(ex)) { /* the first one; without it nothing would ever run */
        free(ex);
        return RQ_E_NO_MEMORY;
    }
    pthread_mutex_init(&ex->lock, NULL);
    rq_clock_cond_init(&ex->changed);
    rq_random_seed(&ex->random, random_seed());
    atomic_init(&ex->next_due, UINT64_MAX);
    ex->event = NO_DESCRIPTOR;
    for (int i = 0; i < RQ_POOL_COUNT; i++) {
        ex->pools[i].limit = limits[i] == 0 ? 1 : limits[i];
        rq_task_queue_init(&ex->pools[i].tasks);
        rq_task_queue_init(&ex->pools[i].ranked);
    }
    *ret = &ex->base;
    return RQ_OK;
}

void rq_driven_executor_free(rq_executor *base)
{
    if (base == NULL) return;
    driven *ex = of(base);
    for (rq_timer *t = ex->timers.first; t != NULL; t = t->next)
        t->armed = false;
    ex->timers = (rq_timer_list){0};
    (void)rq_driven_run(base, NULL, NULL, UINT64_MAX);
    RQ_ASSERT(ex->lanes == NULL && ex->waiting == NULL);
    for (worker *w = ex->spare, *next; w != NULL; w = next) {
        next = w->next;
        rq_fiber_free(&w->fiber);
    }
    if (ex->event != NO_DESCRIPTOR) close(ex->event);
    pthread_cond_destroy(&ex->changed);
    pthread_mutex_destroy(&ex->lock);
    free(ex);
}
