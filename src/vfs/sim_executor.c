/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated executor: every task on one thread, in an order drawn from the seed.
 *
 * Each task runs on a fiber (with its own stack), so that it can wait for a latch while others run
 * and continue as soon as the latch is open, independent of other tasks' stacks. Each step chooses
 * among: the first task of each idle lane, any task of the lowest rank of each pool, any fiber
 * whose wait is over. Time advances a little with each step and file call, and jumps when nothing
 * can run. */
#include <stdio.h>
#include <stdlib.h>

#include "vfs/sim_priv.h"

#include "base/fiber.h"
#include "base/task_queue.h"
#include "base/timer_list.h"

#define CLOCK_START_MS 1767225600000 /* 2026-01-01 */

typedef struct sim_lane {
    rq_lane base;
    struct sim_lane *next;
    sim_executor *ex;
    rq_task_queue tasks;
    bool busy; /* its task waits on a latch */
} sim_lane;

typedef struct fiber {
    rq_fiber base;
    struct fiber *next;
    sim_executor *ex;
    rq_task *task;
    sim_lane *lane;      /* NULL: of a pool */
    rq_latch *for_latch; /* the latch it waits for */
    sim_lane *for_lane;
    bool done;
} fiber;

struct sim_executor {
    rq_executor base;
    rq_sim *sim;
    rq_random schedule;
    rq_random chance; /* the engine's random numbers */
    uint64_t now_ns;
    int64_t wall_ms; /* by how much the wall clock was set forward */
    rq_task_queue pools[RQ_POOL_COUNT];
    rq_task_queue ranked[RQ_POOL_COUNT]; /* by rank */
    sim_lane *lanes;
    rq_timer_list timers;
    fiber *waiting; /* in the order they began to wait */
    fiber *spare;
    fiber *current;
};

rq_executor *rq__sim_executor_base(sim_executor *ex)
{
    return &ex->base;
}

void rq__sim_executor_tick(sim_executor *ex, uint64_t ns)
{
    ex->now_ns += ns;
}

/* --- queues ------------------------------------------------------------------------------- */

/* Number of tasks of the lowest rank: any of them may be next. */
static size_t queue_ready(const rq_task_queue *q)
{
    size_t count = 0;
    for (const rq_task *t = q->head; t != NULL && rq_task_rank(t) == rq_task_rank(q->head);
         t = t->next)
        count++;
    return count;
}

/* --- fibers ------------------------------------------------------------------------------- */

/* A fiber runs tasks forever; between two tasks it is a spare. */
static void fiber_main(rq_fiber *base)
{
    fiber *f = RQ_CONTAINER_OF(base, fiber, base);
    for (;;) {
        f->task->run(f->task);
        f->done = true;
        rq_fiber_leave(base);
    }
}

static fiber *fiber_new(sim_executor *ex)
{
    rq_fiber *base = rq_fiber_new(sizeof(fiber), fiber_main);
    RQ_ASSERT(base != NULL);
    fiber *f = RQ_CONTAINER_OF(base, fiber, base);
    f->ex = ex;
    return f;
}

/* Runs a fiber until its task ends or waits. */
static void fiber_enter(fiber *f)
{
    sim_executor *ex = f->ex;
    RQ_ASSERT(ex->current == NULL);
    ex->current = f;
    rq_fiber_enter(&f->base);
    ex->current = NULL;
    if (f->done) {
        if (f->lane != NULL) f->lane->busy = false;
        f->task = NULL;
        f->lane = NULL;
        f->next = ex->spare;
        ex->spare = f;
        return;
    }
    fiber **at = &ex->waiting;
    while (*at != NULL)
        at = &(*at)->next;
    f->next = NULL;
    *at = f;
}

static void task_run(sim_executor *ex, rq_task *task, sim_lane *lane)
{
    fiber *f = ex->spare;
    if (f != NULL)
        ex->spare = f->next;
    else
        f = fiber_new(ex);
    f->task = task;
    f->lane = lane;
    f->done = false;
    if (lane != NULL) lane->busy = true;
    fiber_enter(f);
}

static bool lane_idle(const sim_lane *l)
{
    return !l->busy && l->tasks.count == 0;
}

static bool fiber_ready(const fiber *f)
{
    if (f->for_latch != NULL) return f->for_latch->open;
    return lane_idle(f->for_lane);
}

/* --- the choice --------------------------------------------------------------------------- */

static void timers_fire(sim_executor *ex)
{
    rq_timer *t;
    while ((t = rq_timer_list_take_due(&ex->timers, ex->now_ns)) != NULL)
        rq_lane_post(t->lane, &t->task);
}

static size_t runnable_count(const sim_executor *ex)
{
    size_t count = 0;
    for (const sim_lane *l = ex->lanes; l != NULL; l = l->next)
        count += !l->busy && l->tasks.count > 0;
    for (int p = 0; p < RQ_POOL_COUNT; p++)
        count += ex->pools[p].count + queue_ready(&ex->ranked[p]);
    for (const fiber *f = ex->waiting; f != NULL; f = f->next)
        count += fiber_ready(f);
    return count;
}

static void runnable_run(sim_executor *ex, size_t pick)
{
    for (sim_lane *l = ex->lanes; l != NULL; l = l->next) {
        if (l->busy || l->tasks.count == 0) continue;
        if (pick-- == 0) {
            task_run(ex, rq_task_queue_take(&l->tasks, 0), l);
            return;
        }
    }
    for (int p = 0; p < RQ_POOL_COUNT; p++) {
        size_t plain = ex->pools[p].count, ready = plain + queue_ready(&ex->ranked[p]);
        if (pick < ready) {
            rq_task *task = pick < plain ? rq_task_queue_take(&ex->pools[p], pick)
                                         : rq_task_queue_take(&ex->ranked[p], pick - plain);
            task_run(ex, task, NULL);
            return;
        }
        pick -= ready;
    }
    for (fiber **at = &ex->waiting; *at != NULL; at = &(*at)->next) {
        fiber *f = *at;
        if (!fiber_ready(f) || pick-- > 0) continue;
        *at = f->next;
        f->for_latch = NULL;
        f->for_lane = NULL;
        fiber_enter(f);
        return;
    }
    RQ_ASSERT(false && "nothing to run");
}

static bool step(sim_executor *ex)
{
    ex->now_ns += 1000 + rq_random_below(&ex->schedule, 20000);
    timers_fire(ex);
    size_t count = runnable_count(ex);
    if (count == 0) return false;
    runnable_run(ex, rq_random_below(&ex->schedule, count));
    return true;
}

/* Runs one step, letting time jump if necessary. Since a task waits, it is a deadlock if nothing
 * can run. */
static void step_or_jump(sim_executor *ex)
{
    if (step(ex)) return;
    if (ex->timers.first == NULL) {
        size_t waiting = 0;
        for (const fiber *f = ex->waiting; f != NULL; f = f->next)
            waiting++;
        fprintf(stderr, "simulation, seed %llu: deadlock: nothing can run, %zu tasks wait\n",
                (unsigned long long)ex->sim->seed, waiting);
        abort();
    }
    if (ex->timers.first->due_ns > ex->now_ns) ex->now_ns = ex->timers.first->due_ns;
}

bool rq_sim_step(rq_sim *sim)
{
    return step(sim->executor);
}

void rq_sim_run(rq_sim *sim)
{
    while (step(sim->executor)) {
    }
}

rq_err rq_sim_run_until(rq_sim *sim, rq_latch *latch)
{
    RQ_ASSERT(sim->executor->current == NULL);
    while (!latch->open)
        step_or_jump(sim->executor);
    return latch->rc;
}

void rq_sim_set_clock(rq_sim *sim, int64_t forward_ms)
{
    sim->executor->wall_ms += forward_ms;
}

void rq_sim_advance(rq_sim *sim, uint64_t ns)
{
    sim_executor *ex = sim->executor;
    uint64_t until = ex->now_ns + ns;
    for (;;) {
        while (step(ex)) {
        }
        if (ex->timers.first == NULL || ex->timers.first->due_ns > until) break;
        if (ex->timers.first->due_ns > ex->now_ns) ex->now_ns = ex->timers.first->due_ns;
    }
    if (ex->now_ns < until) ex->now_ns = until;
}

/* --- the executor's verbs ----------------------------------------------------------------- */

static sim_executor *executor_of(rq_executor *base)
{
    return (sim_executor *)base;
}

static void sim_submit(rq_executor *base, rq_pool pool, rq_task *task)
{
    rq_task_queue_push(&executor_of(base)->pools[pool], task);
}

static void sim_submit_ranked(rq_executor *base, rq_pool pool, rq_ranked_task *task, int32_t rank)
{
    rq_task_queue_insert(&executor_of(base)->ranked[pool], task, rank);
}

static void sim_raise(rq_executor *base, rq_pool pool, const rq_ranked_task *task, int32_t rank)
{
    rq_task_queue_raise(&executor_of(base)->ranked[pool], task, rank);
}

static void sim_lane_post(rq_lane *base, rq_task *task)
{
    rq_task_queue_push(&((sim_lane *)base)->tasks, task);
}

static rq_err sim_lane_new(rq_executor *base, const char *name, rq_lane **ret)
{
    (void)name;
    sim_executor *ex = executor_of(base);
    sim_lane *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    l->base.post = sim_lane_post;
    l->ex = ex;
    rq_task_queue_init(&l->tasks);
    l->next = ex->lanes;
    ex->lanes = l;
    *ret = &l->base;
    return RQ_OK;
}

rq_err rq_sim_lane_new(rq_sim *sim, rq_lane **ret)
{
    return sim_lane_new(&sim->executor->base, "test", ret);
}

/* Runs others until the condition that the current task waits for holds. */
static void fiber_wait(sim_executor *ex, rq_latch *latch, sim_lane *lane)
{
    fiber *f = ex->current;
    f->for_latch = latch;
    f->for_lane = lane;
    rq_fiber_leave(&f->base);
}

static void sim_lane_free(rq_executor *base, rq_lane *lane)
{
    if (lane == NULL) return;
    sim_executor *ex = executor_of(base);
    sim_lane *l = (sim_lane *)lane;
    RQ_ASSERT(ex->current == NULL || ex->current->lane != l);
    while (!lane_idle(l)) {
        if (ex->current != NULL)
            fiber_wait(ex, NULL, l);
        else
            step_or_jump(ex);
    }
    sim_lane **at = &ex->lanes;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    free(l);
}

static void sim_timer_arm(rq_executor *base, rq_timer *timer, rq_lane *lane, uint64_t delay_ns)
{
    sim_executor *ex = executor_of(base);
    rq_timer_list_arm(&ex->timers, timer, lane, ex->now_ns, delay_ns);
}

static bool sim_timer_cancel(rq_executor *base, rq_timer *timer)
{
    return rq_timer_list_cancel(&executor_of(base)->timers, timer);
}

static void sim_latch_init(rq_executor *base, rq_latch *latch)
{
    memset(latch, 0, sizeof *latch);
    latch->executor = base;
}

static void sim_latch_open(rq_latch *latch, rq_err rc)
{
    RQ_ASSERT(!latch->open);
    latch->rc = rc;
    latch->open = true;
}

static rq_err sim_latch_wait(rq_latch *latch)
{
    sim_executor *ex = executor_of(latch->executor);
    while (!latch->open) {
        if (ex->current != NULL)
            fiber_wait(ex, latch, NULL);
        else
            step_or_jump(ex);
    }
    return latch->rc;
}

static void sim_latch_destroy(rq_latch *latch)
{
    latch->executor = NULL;
}

typedef struct nap {
    rq_timer timer;
    rq_latch latch;
} nap;

static void wake(rq_task *task)
{
    nap *n = RQ_CONTAINER_OF(task, nap, timer.task);
    sim_latch_open(&n->latch, RQ_OK);
}

/* By a timer on a lane of its own. */
static void sim_sleep(rq_executor *base, uint64_t ns)
{
    nap n = {.timer.task.run = wake};
    rq_lane *lane;
    if (sim_lane_new(base, "nap", &lane) != RQ_OK) return;
    sim_latch_init(base, &n.latch);
    sim_timer_arm(base, &n.timer, lane, ns);
    (void)sim_latch_wait(&n.latch);
    sim_latch_destroy(&n.latch);
    sim_lane_free(base, lane);
}

static void sim_yield(rq_executor *base)
{
    (void)base; /* a task runs to its end or to where it waits */
}

static uint64_t sim_now_ns(rq_executor *base)
{
    return executor_of(base)->now_ns;
}

static int64_t sim_now_ms(rq_executor *base)
{
    const sim_executor *ex = executor_of(base);
    return CLOCK_START_MS + ex->wall_ms + (int64_t)(ex->now_ns / 1000000);
}

static uint64_t sim_random(rq_executor *base)
{
    return rq_random_next(&executor_of(base)->chance);
}

/* --- life --------------------------------------------------------------------------------- */

rq_err rq__sim_executor_new(rq_sim *sim, sim_executor **ret)
{
    sim_executor *ex = calloc(1, sizeof *ex);
    if (ex == NULL) return RQ_E_NO_MEMORY;
    ex->sim = sim;
    ex->base = (rq_executor){
        .submit = sim_submit,
        .submit_ranked = sim_submit_ranked,
        .raise = sim_raise,
        .lane_new = sim_lane_new,
        .lane_free = sim_lane_free,
        .timer_arm = sim_timer_arm,
        .timer_cancel = sim_timer_cancel,
        .latch_init = sim_latch_init,
        .latch_open = sim_latch_open,
        .latch_wait = sim_latch_wait,
        .latch_destroy = sim_latch_destroy,
        .sleep = sim_sleep,
        .yield = sim_yield,
        .now_ns = sim_now_ns,
        .now_ms = sim_now_ms,
        .random = sim_random,
    };
    rq_random_seed(&ex->schedule, sim->seed ^ 0x73636865u);
    rq_random_seed(&ex->chance, sim->seed ^ 0x6368616eu);
    ex->now_ns = 1000000000u;
    for (int p = 0; p < RQ_POOL_COUNT; p++)
        rq_task_queue_init(&ex->pools[p]), rq_task_queue_init(&ex->ranked[p]);
    *ret = ex;
    return RQ_OK;
}

void rq__sim_executor_reset(sim_executor *ex)
{
    RQ_ASSERT(ex->current == NULL && ex->waiting == NULL);
    for (int p = 0; p < RQ_POOL_COUNT; p++)
        RQ_ASSERT(ex->pools[p].count == 0 && ex->ranked[p].count == 0);
    for (const sim_lane *l = ex->lanes; l != NULL; l = l->next)
        RQ_ASSERT(l->tasks.count == 0);
    for (rq_timer *t = ex->timers.first; t != NULL; t = t->next)
        t->armed = false;
    ex->timers = (rq_timer_list){0};
}

void rq__sim_executor_free(sim_executor *ex)
{
    if (ex == NULL) return;
    rq__sim_executor_reset(ex);
    RQ_ASSERT(ex->lanes == NULL);
    fiber *next;
    for (fiber *f = ex->spare; f != NULL; f = next) {
        next = f->next;
        rq_fiber_free(&f->base);
    }
    free(ex);
}
