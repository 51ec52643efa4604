/* SPDX-License-Identifier: Apache-2.0 */
/* The executor with threads (base/executor.h): lanes, pools, ranks, timers. */
#include "unit.h"

#include "base/executor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static rq_executor *new_executor(unsigned workers)
{
    unsigned threads[RQ_POOL_COUNT] = {workers, workers, workers, workers};
    rq_executor *ex;
    assert_int_equal(rq_thread_executor_new(threads, &ex), RQ_OK);
    return ex;
}

/* --- lanes -------------------------------------------------------------------------------- */

#define POSTERS 4
#define POSTS 5000

typedef struct numbered {
    rq_task task;
    int poster;
    int number;
    int *last; /* per poster; accessed only on the lane, so no atomics are needed */
    bool in_order;
} numbered;

typedef struct poster {
    rq_lane *lane;
    numbered *tasks;
} poster;

static void numbered_run(rq_task *task)
{
    numbered *n = RQ_CONTAINER_OF(task, numbered, task);
    n->in_order = n->last[n->poster] == n->number - 1;
    n->last[n->poster] = n->number;
}

static void *post_all(void *arg)
{
    poster *p = arg;
    for (int i = 0; i < POSTS; i++)
        rq_lane_post(p->lane, &p->tasks[i].task);
    return NULL;
}

static void a_lane_keeps_each_posters_order(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    rq_lane *lane;
    assert_int_equal(ex->lane_new(ex, "test", &lane), RQ_OK);
    int last[POSTERS] = {0};
    poster posters[POSTERS];
    pthread_t threads[POSTERS];
    for (int p = 0; p < POSTERS; p++) {
        posters[p].lane = lane;
        posters[p].tasks = calloc(POSTS, sizeof(numbered));
        assert_non_null(posters[p].tasks);
        for (int i = 0; i < POSTS; i++)
            posters[p].tasks[i] =
                (numbered){.task.run = numbered_run, .poster = p, .number = i + 1, .last = last};
    }
    for (int p = 0; p < POSTERS; p++)
        assert_int_equal(pthread_create(&threads[p], NULL, post_all, &posters[p]), 0);
    for (int p = 0; p < POSTERS; p++)
        pthread_join(threads[p], NULL);
    ex->lane_free(ex, lane); /* waits until all have run */
    for (int p = 0; p < POSTERS; p++) {
        for (int i = 0; i < POSTS; i++)
            assert_true(posters[p].tasks[i].in_order);
        free(posters[p].tasks);
    }
    rq_thread_executor_free(ex);
}

/* --- pools -------------------------------------------------------------------------------- */

typedef struct opener {
    rq_task task;
    rq_latch *opens;
    rq_latch *waits_for;
    rq_err rc;
} opener;

static void opener_run(rq_task *task)
{
    opener *o = RQ_CONTAINER_OF(task, opener, task);
    if (o->opens != NULL) o->opens->executor->latch_open(o->opens, o->rc);
    if (o->waits_for != NULL) o->rc = o->waits_for->executor->latch_wait(o->waits_for);
}

static void tasks_of_a_pool_run_side_by_side(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(2);
    rq_latch a, b;
    ex->latch_init(ex, &a);
    ex->latch_init(ex, &b);
    opener first = {.task.run = opener_run, .opens = &a, .waits_for = &b, .rc = RQ_E_END};
    opener second = {.task.run = opener_run, .opens = &b, .waits_for = &a, .rc = RQ_E_AGAIN};
    ex->submit(ex, RQ_POOL_READ, &first.task);
    ex->submit(ex, RQ_POOL_READ, &second.task);
    rq_thread_executor_free(ex);
    assert_int_equal(first.rc, RQ_E_AGAIN);
    assert_int_equal(second.rc, RQ_E_END);
}

/* The tasks that it waits for are queued behind it in a pool with one thread. */
static void a_waiting_task_gives_its_place_to_others(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    enum { DEPTH = 20 };
    rq_latch latches[DEPTH + 1];
    opener tasks[DEPTH + 1];
    for (int i = 0; i <= DEPTH; i++)
        ex->latch_init(ex, &latches[i]);
    for (int i = 0; i < DEPTH; i++)
        tasks[i] = (opener){.task.run = opener_run, .waits_for = &latches[i + 1], .rc = RQ_OK};
    tasks[DEPTH] = (opener){.task.run = opener_run, .opens = &latches[DEPTH], .rc = RQ_E_END};
    for (int i = 1; i < DEPTH; i++)
        tasks[i].opens = &latches[i];
    for (int i = 0; i <= DEPTH; i++)
        ex->submit(ex, RQ_POOL_WORK, &tasks[i].task);
    assert_int_equal(ex->latch_wait(&latches[DEPTH]), RQ_E_END);
    void (*destroy)(rq_latch *) = ex->latch_destroy;
    rq_thread_executor_free(ex); /* other waiting tasks may not have ended yet */
    for (int i = 0; i <= DEPTH; i++)
        destroy(&latches[i]);
}

typedef struct sleeper {
    rq_task task;
    rq_executor *ex;
    const _Atomic bool *before;
    bool saw;
    _Atomic bool done;
} sleeper;

static void sleeper_run(rq_task *task)
{
    sleeper *s = RQ_CONTAINER_OF(task, sleeper, task);
    s->saw = s->before == NULL || atomic_load(s->before);
    uint64_t began = s->ex->now_ns(s->ex);
    s->ex->sleep(s->ex, 20000000);
    s->saw &= s->ex->now_ns(s->ex) - began >= 20000000;
    atomic_store(&s->done, true);
}

static void a_sleeping_task_keeps_its_place(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    sleeper first = {.task.run = sleeper_run, .ex = ex};
    sleeper second = {.task.run = sleeper_run, .ex = ex, .before = &first.done};
    ex->submit(ex, RQ_POOL_COMPACT, &first.task);
    ex->submit(ex, RQ_POOL_COMPACT, &second.task);
    rq_thread_executor_free(ex);
    assert_true(first.saw && second.saw);
}

typedef struct chained {
    rq_task task;
    rq_executor *ex;
    int left;
} chained;

static void chained_run(rq_task *task)
{
    chained *c = RQ_CONTAINER_OF(task, chained, task);
    if (--c->left > 0) c->ex->submit(c->ex, (rq_pool)(c->left % RQ_POOL_COUNT), &c->task);
}

static void free_waits_for_tasks_that_submit_more(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    chained c = {.task.run = chained_run, .ex = ex, .left = 1000};
    ex->submit(ex, RQ_POOL_FLUSH, &c.task);
    rq_thread_executor_free(ex);
    assert_int_equal(c.left, 0);
}

/* --- timers ------------------------------------------------------------------------------- */

typedef struct wake_call {
    rq_timer timer;
    rq_executor *ex;
    rq_latch latch;
    int *count;
    int fired_as;
} wake_call;

static void wake_call_run(rq_task *task)
{
    wake_call *a = RQ_CONTAINER_OF(task, wake_call, timer.task);
    a->fired_as = ++*a->count;
    a->ex->latch_open(&a->latch, RQ_OK);
}

static void wake_call_init(wake_call *a, rq_executor *ex, int *count)
{
    *a = (wake_call){.timer.task.run = wake_call_run, .ex = ex, .count = count};
    ex->latch_init(ex, &a->latch);
}

#define HOUR_NS UINT64_C(3600000000000)

static void timers_fire_in_the_order_they_are_due(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    rq_lane *lane;
    assert_int_equal(ex->lane_new(ex, "test", &lane), RQ_OK);
    int count = 0;
    wake_call late, early, never;
    wake_call_init(&late, ex, &count);
    wake_call_init(&early, ex, &count);
    wake_call_init(&never, ex, &count);
    ex->timer_arm(ex, &late.timer, lane, HOUR_NS);
    ex->timer_arm(ex, &early.timer, lane, 1000000);
    assert_int_equal(ex->latch_wait(&early.latch), RQ_OK); /* it did not wait for the other */
    assert_true(ex->timer_cancel(ex, &late.timer));
    ex->timer_arm(ex, &never.timer, lane, 1000000);
    bool cancelled =
        ex->timer_cancel(ex, &never.timer); /* unless this thread was stopped for so long */
    assert_false(ex->timer_cancel(ex, &never.timer));
    ex->timer_arm(ex, &late.timer, lane, 5000000); /* due after the cancelled one */
    assert_int_equal(ex->latch_wait(&late.latch), RQ_OK);
    assert_int_equal(early.fired_as, 1);
    assert_int_equal(never.fired_as, cancelled ? 0 : 2);
    assert_int_equal(late.fired_as, cancelled ? 2 : 3);
    assert_false(ex->timer_cancel(ex, &late.timer));
    /* Freeing the executor disarms a timer that is armed again. */
    ex->timer_arm(ex, &never.timer, lane, UINT64_MAX);
    ex->lane_free(ex, lane);
    rq_thread_executor_free(ex);
    assert_false(never.timer.armed);
}

static void clocks_and_chance_move(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    uint64_t t = ex->now_ns(ex);
    assert_true(ex->now_ns(ex) >= t);
    assert_true(ex->now_ms(ex) > 1700000000000);
    assert_true(ex->random(ex) != ex->random(ex));
    rq_thread_executor_free(ex);
}

/* --- ranks -------------------------------------------------------------------------------- */

typedef struct ranked {
    rq_ranked_task task;
    int name;
    int *order; /* written by one worker: no atomics are needed */
    int *count;
} ranked;

static void ranked_run(rq_task *task)
{
    ranked *r = RQ_CONTAINER_OF(task, ranked, task.task);
    r->order[(*r->count)++] = r->name;
}

typedef struct door {
    rq_task task;
    rq_latch entered;
    _Atomic bool open;
} door;

static void stand_in_the_way(rq_task *task)
{
    door *d = RQ_CONTAINER_OF(task, door, task);
    d->entered.executor->latch_open(&d->entered, RQ_OK);
    while (!atomic_load(&d->open)) /* while a task waits on a latch, its thread runs other tasks */
        d->entered.executor->sleep(d->entered.executor, 100000);
}

static void the_lowest_rank_begins_first(void **state)
{
    (void)state;
    static const int ranks[] = {5, 3, 5, -2, 3, 0, 9, 9};
    static const int expected[] = {8, 3, 5, 1, 4, 0, 2, 6, 7};
    rq_executor *ex = new_executor(1);
    int order[9] = {0}, count = 0;
    ranked tasks[9];
    door d = {.task.run = stand_in_the_way};
    ex->latch_init(ex, &d.entered);
    ex->submit(ex, RQ_POOL_COMPACT, &d.task);
    (void)ex->latch_wait(&d.entered);
    for (int i = 0; i < 9; i++) {
        tasks[i] = (ranked){{.task.run = ranked_run}, i, order, &count};
        ex->submit_ranked(ex, RQ_POOL_COMPACT, &tasks[i].task, i == 8 ? 7 : ranks[i]);
    }
    ex->raise(ex, RQ_POOL_COMPACT, &tasks[8].task, -7); /* runs before all others */
    ex->raise(ex, RQ_POOL_COMPACT, &tasks[3].task, 4);  /* rank -2 runs before rank 4: no change */
    ex->raise(ex, RQ_POOL_WORK, &tasks[7].task, -9);    /* not queued in this pool */
    atomic_store(&d.open, true);
    rq_thread_executor_free(ex);
    assert_int_equal(count, 9);
    assert_memory_equal(order, expected, sizeof expected);
}

/* --- a pool whose size changes ------------------------------------------------------------------ */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned running, most, ended;
    bool open;
} gate;

typedef struct passer {
    rq_task task;
    gate *gate;
} passer;

/* Waits without a latch, so that it keeps its thread. */
static void pass(rq_task *task)
{
    gate *g = RQ_CONTAINER_OF(task, passer, task)->gate;
    pthread_mutex_lock(&g->mutex);
    g->running++;
    if (g->running > g->most) g->most = g->running;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
    sched_yield();
    pthread_mutex_lock(&g->mutex);
    g->running--;
    g->ended++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static void await(gate *g, const unsigned *value, unsigned wanted)
{
    pthread_mutex_lock(&g->mutex);
    while (*value != wanted)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void set_open(gate *g, bool open)
{
    pthread_mutex_lock(&g->mutex);
    g->open = open;
    g->most = g->ended = 0;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static void a_pool_grows_and_shrinks(void **state)
{
    (void)state;
    enum { TASKS = 200 };
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    passer tasks[TASKS];
    rq_executor *ex = new_executor(1);
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (passer){.task.run = pass, .gate = &g};
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++)
            ex->submit(ex, RQ_POOL_COMPACT, &tasks[i].task);
        await(&g, &g.running, 1); /* the other tasks wait for a thread */
        rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 3);
        await(&g, &g.running, 3);
        rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 5);
        await(&g, &g.running, 5);
        rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 2); /* running tasks are not interrupted */
        assert_int_equal(g.most, 5);
        set_open(&g, true);
        await(&g, &g.ended, 8);
        set_open(&g, true);
        for (int i = 0; i < TASKS; i++)
            ex->submit(ex, RQ_POOL_COMPACT, &tasks[i].task);
        await(&g, &g.ended, TASKS);
        assert_true(g.most <= 2);
        rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 0); /* no change */
        rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 1);
        set_open(&g, false);
    }
    rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 4);
    rq_thread_executor_resize(ex, RQ_POOL_COMPACT, 1);
    rq_thread_executor_free(ex);
}

typedef struct pair {
    rq_task waits, opens;
    rq_latch inner, done;
} pair;

static void pair_waits(rq_task *task)
{
    pair *p = RQ_CONTAINER_OF(task, pair, waits);
    p->done.executor->latch_open(&p->done, p->inner.executor->latch_wait(&p->inner));
}

static void pair_opens(rq_task *task)
{
    pair *p = RQ_CONTAINER_OF(task, pair, opens);
    p->inner.executor->latch_open(&p->inner, RQ_OK);
}

typedef struct resizer {
    rq_executor *ex;
    _Atomic unsigned pairs; /* begun so far */
    _Atomic bool stops;
} resizer;

/* Changes the limit once for each pair. More changes would wake workers, which would find a forgotten task. */
static void *resize_often(void *arg)
{
    resizer *r = arg;
    for (unsigned seen = 0; !atomic_load(&r->stops);) {
        unsigned now = atomic_load(&r->pairs);
        if (now != seen)
            rq_thread_executor_resize(r->ex, RQ_POOL_READ, 1 + now * 5 % 7);
        else
            sched_yield();
        seen = now;
    }
    return NULL;
}

/* A worker that is woken for a task may have to park, or another one may take the task first. One pair of tasks follows the
 * other, so that workers fall asleep and are woken all the time. */
static void no_task_is_forgotten_while_the_limit_changes(void **state)
{
    (void)state;
    pthread_t changer;
    rq_executor *ex = new_executor(4);
    resizer r = {.ex = ex};
    assert_int_equal(pthread_create(&changer, NULL, resize_often, &r), 0);
    for (int i = 0; i < 3000; i++) {
        pair p = {.waits.run = pair_waits, .opens.run = pair_opens};
        ex->latch_init(ex, &p.inner);
        ex->latch_init(ex, &p.done);
        atomic_fetch_add(&r.pairs, 1);
        ex->submit(ex, RQ_POOL_READ, &p.waits);
        ex->submit(ex, RQ_POOL_READ, &p.opens);
        (void)ex->latch_wait(&p.done);
        ex->latch_destroy(&p.done);
        ex->latch_destroy(&p.inner);
    }
    atomic_store(&r.stops, true);
    pthread_join(changer, NULL);
    rq_thread_executor_free(ex);
}

/* --- lazy pools --------------------------------------------------------------------------- */

static unsigned threads_of_process(void)
{
    unsigned n = 0;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Threads: %u", &n) == 1) break;
    fclose(f);
    return n;
}

/* The kernel may list a thread for a while after it was joined. */
static void await_threads(unsigned wanted)
{
    while (threads_of_process() != wanted)
        sched_yield();
}

static void submit_open(rq_executor *ex, gate *g, passer *task, rq_pool pool)
{
    set_open(g, true);
    *task = (passer){.task.run = pass, .gate = g};
    ex->submit(ex, pool, &task->task);
}

static void a_lazy_executor_starts_threads_for_tasks(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {2, 2, 2, 2, 2, 2, 2};
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    /* ThreadSanitizer adds a thread when the first thread starts */
    const unsigned before = RQ_TSAN ? 2 : 1;
    rq_executor *ex = new_executor(1);
    rq_thread_executor_free(ex);
    await_threads(before);
    assert_int_equal(rq_thread_executor_new_lazy(threads, &ex), RQ_OK);
    await_threads(before + 1); /* the timers' thread */
    for (int pool = 0; pool < RQ_POOL_COUNT; pool++) {
        passer task;
        submit_open(ex, &g, &task, (rq_pool)pool);
        await(&g, &g.ended, 1);
        await_threads(before + 2 + (unsigned)pool);
    }
    rq_thread_executor_free(ex);
    assert_int_equal(rq_thread_executor_new_lazy(threads, &ex), RQ_OK);
    rq_thread_executor_free(ex); /* the pools have started no thread */
}

static void a_lazy_lane_starts_its_thread_for_a_task(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    gate g = {
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = true};
    const unsigned before = RQ_TSAN ? 2 : 1;
    rq_executor *ex = new_executor(1);
    rq_lane *lanes[2];
    rq_thread_executor_free(ex);
    await_threads(before);
    assert_int_equal(rq_thread_executor_new_lazy(threads, &ex), RQ_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ex->lane_new(ex, "test", &lanes[i]), RQ_OK);
    await_threads(before + 1); /* the timers' thread */
    passer task = {.task.run = pass, .gate = &g};
    rq_lane_post(lanes[0], &task.task);
    await(&g, &g.ended, 1);
    await_threads(before + 2);
    for (int i = 0; i < 2; i++)
        ex->lane_free(ex, lanes[i]);
    rq_thread_executor_free(ex);
}

#if !RQ_ASAN && !RQ_TSAN /* sanitizers need unlimited address space */
typedef struct crowd {
    pthread_mutex_t may_end; /* held as long as the threads must stay */
    pthread_t threads[4096];
    unsigned count;
} crowd;

static void *stay(void *arg)
{
    crowd *c = arg;
    pthread_mutex_lock(&c->may_end);
    pthread_mutex_unlock(&c->may_end);
    return NULL;
}

/* Starts threads until no address space is left for another stack. */
static void fill_address_space(crowd *c)
{
    pthread_mutex_init(&c->may_end, NULL);
    pthread_mutex_lock(&c->may_end);
    c->count = 0;
    while (pthread_create(&c->threads[c->count], NULL, stay, c) == 0)
        assert_true(++c->count < 4096);
}

static void crowd_leaves(crowd *c)
{
    pthread_mutex_unlock(&c->may_end);
    while (c->count > 0)
        pthread_join(c->threads[--c->count], NULL);
    pthread_mutex_destroy(&c->may_end);
}

static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu", &pages), 1);
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Tasks submitted while no thread can be started run as soon as one can; also when the executor is
 * freed. */
static void tasks_wait_for_a_thread(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    static crowd c;
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    passer tasks[4];
    rq_lane *lanes[2];
    rq_executor *ex;
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    little = before;
    little.rlim_cur = address_space() + ((rlim_t)64 << 20);
    for (int ends = 0; ends < 2; ends++) {
        assert_int_equal(rq_thread_executor_new_lazy(threads, &ex), RQ_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(ex->lane_new(ex, "test", &lanes[i]), RQ_OK);
        assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
        fill_address_space(&c);
        submit_open(ex, &g, &tasks[0], RQ_POOL_FLUSH);
        tasks[1] = (passer){.task.run = pass, .gate = &g};
        ex->submit(ex, RQ_POOL_WORK, &tasks[1].task);
        for (int i = 0; i < 2; i++) {
            tasks[2 + i] = (passer){.task.run = pass, .gate = &g};
            rq_lane_post(lanes[i], &tasks[2 + i].task);
        }
        pthread_mutex_lock(&g.mutex);
        assert_int_equal(g.ended + g.running, 0);
        pthread_mutex_unlock(&g.mutex);
        crowd_leaves(&c);
        if (ends == 0) await(&g, &g.ended, 4);
        for (int i = 0; i < 2; i++)
            ex->lane_free(ex, lanes[i]);
        rq_thread_executor_free(ex);
        assert_int_equal(g.ended, 4);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lazy_executor_starts_threads_for_tasks),
        cmocka_unit_test(a_lazy_lane_starts_its_thread_for_a_task),
#if !RQ_ASAN && !RQ_TSAN
        cmocka_unit_test(tasks_wait_for_a_thread),
#endif
        cmocka_unit_test(a_lane_keeps_each_posters_order),
        cmocka_unit_test(tasks_of_a_pool_run_side_by_side),
        cmocka_unit_test(a_waiting_task_gives_its_place_to_others),
        cmocka_unit_test(a_sleeping_task_keeps_its_place),
        cmocka_unit_test(a_pool_grows_and_shrinks),
        cmocka_unit_test(no_task_is_forgotten_while_the_limit_changes),
        cmocka_unit_test(free_waits_for_tasks_that_submit_more),
        cmocka_unit_test(timers_fire_in_the_order_they_are_due),
        cmocka_unit_test(the_lowest_rank_begins_first),
        cmocka_unit_test(clocks_and_chance_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
