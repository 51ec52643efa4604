/* SPDX-License-Identifier: Apache-2.0 */
/* The executor without threads: when tasks run and in which order; several threads that drive the
 * executor. */
#include "unit.h"

#include "base/driven_executor.h"
#include "base/macros.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static rq_executor *new_executor(unsigned limit)
{
    unsigned limits[RQ_POOL_COUNT];
    rq_executor *ex;
    for (int i = 0; i < RQ_POOL_COUNT; i++)
        limits[i] = limit;
    assert_int_equal(rq_driven_executor_new(limits, &ex), RQ_OK);
    return ex;
}

/* A task that appends its letter to the text. */
typedef struct letter {
    rq_task task;
    rq_ranked_task ranked;
    char name;
    char *text; /* owned by the test */
} letter;

static void write_letter(const letter *l)
{
    size_t len = strlen(l->text);
    l->text[len] = l->name;
    l->text[len + 1] = '\0';
}

static void letter_run(rq_task *task)
{
    write_letter(RQ_CONTAINER_OF(task, letter, task));
}

static void ranked_run(rq_task *task)
{
    write_letter(RQ_CONTAINER_OF(task, letter, ranked.task));
}

static letter letter_of(char name, char *text)
{
    return (letter){
        .task.run = letter_run, .ranked.task.run = ranked_run, .name = name, .text = text};
}

/* --- when tasks run --------------------------------------------------------------------------- */

static void nothing_runs_outside_of_calls(void **state)
{
    (void)state;
    char text[8] = "";
    rq_executor *ex = new_executor(1);
    letter a = letter_of('a', text), b = letter_of('b', text), c = letter_of('c', text);
    ex->submit(ex, RQ_POOL_WORK, &a.task);
    assert_string_equal(text, "");
    rq_driven_help(ex, 0);
    assert_string_equal(text, "a");
    ex->submit(ex, RQ_POOL_WORK, &b.task);
    ex->sleep(ex, 1); /* a sleeping caller runs tasks */
    assert_true(rq_driven_run(ex, NULL, NULL, UINT64_MAX));
    assert_string_equal(text, "ab");
    ex->submit(ex, RQ_POOL_WORK, &c.task);
    rq_driven_executor_free(ex);
    assert_string_equal(text, "abc");
}

static void urgent_tasks_come_first(void **state)
{
    (void)state;
    char text[16] = "";
    rq_executor *ex = new_executor(1);
    rq_lane *lane;
    letter compaction = letter_of('c', text), flush = letter_of('f', text),
           a = letter_of('1', text), b = letter_of('2', text), low = letter_of('l', text),
           high = letter_of('h', text);
    assert_int_equal(ex->lane_new(ex, "test", &lane), RQ_OK);
    ex->submit(ex, RQ_POOL_COMPACT, &compaction.task);
    ex->submit_ranked(ex, RQ_POOL_FLUSH, &low.ranked, 5);
    ex->submit_ranked(ex, RQ_POOL_FLUSH, &high.ranked, 7);
    ex->raise(ex, RQ_POOL_FLUSH, &high.ranked, 1);
    ex->submit(ex, RQ_POOL_FLUSH, &flush.task);
    rq_lane_post(lane, &a.task);
    rq_lane_post(lane, &b.task);
    rq_driven_run(ex, NULL, NULL, UINT64_MAX);
    assert_string_equal(text, "12fhlc");
    ex->lane_free(ex, lane);
    rq_driven_executor_free(ex);
}

/* A long task that can be interrupted where it yields. */
typedef struct long_task {
    rq_task task;
    rq_executor *executor;
    unsigned steps, left;
    bool *stop; /* the task ends early when this is set */
} long_task;

static void long_run(rq_task *task)
{
    long_task *l = RQ_CONTAINER_OF(task, long_task, task);
    while (l->left > 0 && (l->stop == NULL || !*l->stop)) {
        l->left--;
        l->steps++;
        l->executor->yield(l->executor);
    }
}

static void a_slice_ends_where_a_task_yields(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    long_task l = {.task.run = long_run, .executor = ex, .left = 10};
    ex->submit(ex, RQ_POOL_FLUSH, &l.task);
    for (unsigned i = 1; i <= 10; i++) {
        rq_driven_help(ex, 0); /* chooses one task */
        assert_int_equal(l.steps, i);
    }
    rq_driven_executor_free(ex);
    assert_int_equal(l.steps, 10);
}

static void stop_run(rq_task *task)
{
    long_task *l = RQ_CONTAINER_OF(task, long_task, task);
    *l->stop = true;
}

/* A flush that yields endlessly does not keep a compaction from running. */
static void nothing_waits_for_ever(void **state)
{
    (void)state;
    bool stop = false;
    rq_executor *ex = new_executor(1);
    long_task flush = {.task.run = long_run, .executor = ex, .left = 1000000, .stop = &stop};
    long_task compaction = {.task.run = stop_run, .stop = &stop};
    ex->submit(ex, RQ_POOL_FLUSH, &flush.task);
    ex->submit(ex, RQ_POOL_COMPACT, &compaction.task);
    rq_driven_run(ex, NULL, NULL, UINT64_MAX);
    assert_true(stop && flush.steps < 100);
    rq_driven_executor_free(ex);
}

/* --- waiting ---------------------------------------------------------------------------------- */

typedef struct waiter {
    rq_task task;
    rq_executor *executor;
    rq_latch *waits, *opens;
    unsigned *begun, *ended; /* owned by the test */
    rq_err rc;
} waiter;

static void waiter_run(rq_task *task)
{
    waiter *w = RQ_CONTAINER_OF(task, waiter, task);
    if (w->begun != NULL) ++*w->begun;
    if (w->waits != NULL) w->rc = w->executor->latch_wait(w->waits);
    if (w->ended != NULL) ++*w->ended;
    if (w->opens != NULL) w->executor->latch_open(w->opens, w->rc);
}

/* The second one, in the same queue, opens the latch of the first. */
static void a_task_waits_for_another_one_of_its_pool(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    rq_latch one, two;
    ex->latch_init(ex, &one);
    ex->latch_init(ex, &two);
    waiter a = {.task.run = waiter_run, .executor = ex, .waits = &one, .opens = &two};
    waiter b = {.task.run = waiter_run, .executor = ex, .opens = &one, .rc = RQ_E_CORRUPT};
    ex->submit(ex, RQ_POOL_WORK, &a.task);
    ex->submit(ex, RQ_POOL_WORK, &b.task);
    assert_int_equal(ex->latch_wait(&two), RQ_E_CORRUPT);
    assert_int_equal(ex->latch_wait(&two), RQ_E_CORRUPT); /* the latch is open */
    ex->latch_destroy(&one);
    ex->latch_destroy(&two);
    rq_driven_executor_free(ex);
}

/* Calls that wait on a latch still count against the pool's limit, because each has a stack. */
static void waiting_calls_keep_their_place(void **state)
{
    (void)state;
    enum { CALLS = 5 };
    rq_executor *ex = new_executor(2);
    rq_latch latch;
    waiter w[CALLS];
    unsigned begun = 0, ended = 0;
    ex->latch_init(ex, &latch);
    for (int i = 0; i < CALLS; i++) {
        w[i] = (waiter){.task.run = waiter_run,
                        .executor = ex,
                        .waits = &latch,
                        .begun = &begun,
                        .ended = &ended};
        ex->submit(ex, RQ_POOL_CALL, &w[i].task);
    }
    for (int i = 0; i < 2 * CALLS; i++)
        rq_driven_help(ex, 0);
    assert_int_equal(begun, 2);
    ex->latch_open(&latch, RQ_OK);
    rq_driven_finish_pool(ex, RQ_POOL_CALL);
    assert_int_equal(ended, CALLS);
    ex->latch_destroy(&latch);
    rq_driven_executor_free(ex);
}

typedef struct sleeper {
    rq_task task;
    rq_executor *executor;
    bool slept;
} sleeper;

static void sleeper_run(rq_task *task)
{
    sleeper *s = RQ_CONTAINER_OF(task, sleeper, task);
    s->executor->sleep(s->executor, 2000000);
    s->slept = true;
}

static void others_run_while_a_task_sleeps(void **state)
{
    (void)state;
    char text[8] = "";
    rq_executor *ex = new_executor(2);
    sleeper s = {.task.run = sleeper_run, .executor = ex};
    letter a = letter_of('a', text);
    ex->submit(ex, RQ_POOL_WORK, &s.task);
    rq_driven_help(ex, 0);
    uint64_t due = rq_driven_due(ex);
    assert_true(due != UINT64_MAX);
    ex->submit(ex, RQ_POOL_WORK, &a.task);
    rq_driven_run(ex, NULL, NULL, UINT64_MAX);
    assert_true(s.slept && ex->now_ns(ex) >= due);
    assert_string_equal(text, "a");
    rq_driven_executor_free(ex);
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void a_run_ends_at_its_wish_or_its_time(void **state)
{
    (void)state;
    bool stop = false, never = false;
    rq_executor *ex = new_executor(1);
    long_task stops = {.task.run = stop_run, .stop = &stop};
    uint64_t until = ex->now_ns(ex) + 1000000;
    assert_false(rq_driven_run(ex, is_true, &never, until)); /* no task to run: the caller sleeps */
    assert_true(ex->now_ns(ex) >= until);
    ex->submit(ex, RQ_POOL_WORK, &stops.task);
    assert_true(rq_driven_run(ex, is_true, &stop, UINT64_MAX));
    assert_true(stop);
    rq_driven_executor_free(ex);
}

/* --- signals ---------------------------------------------------------------------------------- */

typedef struct masked {
    rq_task task;
    rq_executor *executor;
    bool before, after; /* whether SIGUSR1 was blocked at that point */
} masked;

static bool blocks_signal(void)
{
    sigset_t now;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGUSR1) == 1;
}

static void masked_run(rq_task *task)
{
    masked *m = RQ_CONTAINER_OF(task, masked, task);
    m->before = blocks_signal();
    m->executor->yield(m->executor);
    m->after = blocks_signal();
}

static void set_blocked(bool blocked)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    (void)pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &one, NULL);
}

/* A program may block signals at any time: a task has the signal mask of the thread that runs it,
 * not of the thread that made its fiber. */
static void tasks_have_their_threads_signals(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(1);
    masked m = {.task.run = masked_run, .executor = ex};
    set_blocked(true);
    ex->submit(ex, RQ_POOL_WORK, &m.task);
    rq_driven_help(ex, 0);
    assert_true(m.before && blocks_signal());
    set_blocked(false);
    rq_driven_help(ex, 0);
    assert_false(m.after || blocks_signal());
    set_blocked(true);
    rq_driven_executor_free(ex);
    set_blocked(false);
}

/* --- timers ----------------------------------------------------------------------------------- */

typedef struct alarm_timer {
    rq_timer timer;
    letter letter;
} alarm_timer;

static void alarm_run(rq_task *task)
{
    write_letter(&RQ_CONTAINER_OF(task, alarm_timer, timer.task)->letter);
}

static void timers_fire_in_calls(void **state)
{
    (void)state;
    char text[8] = "";
    rq_executor *ex = new_executor(1);
    rq_lane *lane;
    alarm_timer a = {.timer.task.run = alarm_run, .letter = letter_of('a', text)};
    alarm_timer b = {.timer.task.run = alarm_run, .letter = letter_of('b', text)};
    alarm_timer later = {.timer.task.run = alarm_run, .letter = letter_of('c', text)};
    assert_int_equal(ex->lane_new(ex, "test", &lane), RQ_OK);
    ex->timer_arm(ex, &later.timer, lane, UINT64_MAX);
    ex->timer_arm(ex, &a.timer, lane, 0);
    ex->timer_arm(ex, &b.timer, lane, 1000);
    assert_true(rq_driven_due(ex) == a.timer.due_ns);
    assert_string_equal(text, "");
    while (text[0] == '\0' || text[1] == '\0')
        rq_driven_run(ex, NULL, NULL, UINT64_MAX);
    assert_string_equal(text, "ab");
    assert_false(ex->timer_cancel(ex, &a.timer));
    ex->timer_arm(ex, &a.timer, lane, 1000000000000);
    assert_true(ex->timer_cancel(ex, &a.timer));
    ex->lane_free(ex, lane);
    rq_driven_executor_free(ex); /* disarms the timer that is still armed */
    assert_false(later.timer.armed);
    assert_string_equal(text, "ab");
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void the_descriptor_is_readable_when_tasks_wait(void **state)
{
    (void)state;
    char text[8] = "";
    rq_executor *ex = new_executor(1);
    letter a = letter_of('a', text);
    bool never = false;
    int fd = rq_driven_descriptor(ex);
    assert_true(fd >= 0 && rq_driven_descriptor(ex) == fd);
    assert_true(is_readable(fd)); /* an earlier event may be unread */
    while (is_readable(fd))       /* until a run has found that nothing is left */
        rq_driven_run(ex, is_true, &never, ex->now_ns(ex) + 1000000);
    ex->submit(ex, RQ_POOL_WORK, &a.task);
    assert_true(is_readable(fd));
    rq_driven_help(ex, 0);
    assert_string_equal(text, "a");
    while (is_readable(fd))
        rq_driven_run(ex, is_true, &never, ex->now_ns(ex) + 1000000);
    rq_driven_wake(ex);
    assert_true(is_readable(fd));
    rq_driven_executor_free(ex);
}

/* An event loop that finds the descriptor readable asks for work. If the descriptor stays readable when there is none,
 * the loop asks for ever. */
static void the_descriptor_is_not_readable_without_tasks(void **state)
{
    (void)state;
    char text[8] = "";
    rq_executor *ex = new_executor(1);
    rq_lane *lane;
    assert_int_equal(ex->lane_new(ex, "lane", &lane), RQ_OK);
    letter a = letter_of('a', text), b = letter_of('b', text);
    int fd = rq_driven_descriptor(ex);
    rq_driven_help(ex, 0);
    assert_false(is_readable(fd));
    ex->submit(ex, RQ_POOL_WORK, &a.task);
    rq_driven_help(ex, 0); /* the slice ends with the last task */
    rq_driven_help(ex, 0);
    assert_false(is_readable(fd));
    ex->submit(ex, RQ_POOL_WORK, &b.task);
    assert_true(rq_driven_run(ex, NULL, NULL, UINT64_MAX)); /* ends with the last task */
    assert_string_equal(text, "ab");
    assert_false(is_readable(fd));
    rq_driven_wake(ex);
    assert_true(rq_driven_run(ex, NULL, NULL, UINT64_MAX)); /* finds no task */
    assert_false(is_readable(fd));
    rq_timer late = {.task.run = letter_run};
    ex->timer_arm(ex, &late, lane, (uint64_t)3600 * 1000000000);
    assert_true(is_readable(fd)); /* rq_driven_due has changed */
    rq_driven_help(ex, 0);
    assert_false(is_readable(fd));
    assert_true(ex->timer_cancel(ex, &late));
    ex->lane_free(ex, lane);
    rq_driven_executor_free(ex);
}

/* --- several threads -------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 500 };

typedef struct caller {
    rq_executor *executor;
    rq_lane *lane;
    pthread_t thread;
    unsigned right;
} caller;

/* Two tasks, one on a pool and one on the lane that all threads share: the first waits for the
 * second. */
static void *call(void *arg)
{
    caller *c = arg;
    rq_executor *ex = c->executor;
    for (int i = 0; i < ROUNDS; i++) {
        rq_latch one, two;
        ex->latch_init(ex, &one);
        ex->latch_init(ex, &two);
        waiter a = {.task.run = waiter_run, .executor = ex, .waits = &one, .opens = &two};
        waiter b = {.task.run = waiter_run, .executor = ex, .opens = &one, .rc = RQ_E_END};
        ex->submit(ex, RQ_POOL_WORK, &a.task);
        rq_lane_post(c->lane, &b.task);
        if (i % 16 == 0) rq_driven_help(ex, 1000);
        c->right += ex->latch_wait(&two) == RQ_E_END;
        ex->latch_destroy(&one);
        ex->latch_destroy(&two);
    }
    return NULL;
}

static void threads_drive_for_each_other(void **state)
{
    (void)state;
    rq_executor *ex = new_executor(2);
    rq_lane *lane;
    caller callers[THREADS];
    assert_int_equal(ex->lane_new(ex, "test", &lane), RQ_OK);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){.executor = ex, .lane = lane};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].right, ROUNDS);
    }
    ex->lane_free(ex, lane);
    rq_driven_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_runs_outside_of_calls),
        cmocka_unit_test(urgent_tasks_come_first),
        cmocka_unit_test(a_slice_ends_where_a_task_yields),
        cmocka_unit_test(nothing_waits_for_ever),
        cmocka_unit_test(a_task_waits_for_another_one_of_its_pool),
        cmocka_unit_test(waiting_calls_keep_their_place),
        cmocka_unit_test(others_run_while_a_task_sleeps),
        cmocka_unit_test(a_run_ends_at_its_wish_or_its_time),
        cmocka_unit_test(tasks_have_their_threads_signals),
        cmocka_unit_test(timers_fire_in_calls),
        cmocka_unit_test(the_descriptor_is_readable_when_tasks_wait),
        cmocka_unit_test(the_descriptor_is_not_readable_without_tasks),
        cmocka_unit_test(threads_drive_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
