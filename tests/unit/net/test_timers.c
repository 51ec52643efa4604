/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of a loop's timers: its order, and the cost of timers with any delays. */
#include "net/timers.h"

#include "../base/unit.h"

#include "base/clock.h"

enum { MODEL = 300, STEPS = 20000 };

static void check_soonest(const rq_loop_timer *root, const rq_loop_timer *all)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < MODEL; i++)
        if (all[i].armed && all[i].due_ns < least) least = all[i].due_ns;
    assert_true((root == NULL) == (least == UINT64_MAX));
    if (root != NULL) assert_true(root->due_ns == least);
}

static void the_root_is_the_soonest_whatever_comes_and_goes(void **state)
{
    (void)state;
    uint64_t random = unit_seed();
    rq_loop_timer all[MODEL] = {0}, *root = NULL;
    for (int step = 0; step < STEPS; step++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        rq_loop_timer *t = &all[(random >> 33) % MODEL];
        if (t->armed) {
            rq__timers_remove(&root, t);
        } else {
            t->due_ns = (random >> 45) % 100;
            rq__timers_add(&root, t);
        }
        t->armed = !t->armed;
        if (step % 1000 == 999) rq__timers_hasten(&root);
        check_soonest(root, all);
    }
    uint64_t before = 0;
    while (root != NULL) {
        rq_loop_timer *t = root;
        assert_true(t->due_ns >= before);
        before = t->due_ns;
        rq__timers_remove(&root, t);
        t->armed = false;
    }
    check_soonest(root, all);
}

/* CPU seconds for `count` timers, each due before those already armed. */
static double cost(rq_loop *loop, rq_loop_timer *timers, size_t count)
{
    uint64_t before = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < count; i++)
        rq_loop_timer_arm(loop, &timers[i], 1000000000000 - i * 1000000);
    for (size_t i = 0; i < count; i++)
        rq_loop_timer_cancel(loop, &timers[i]);
    return (double)(rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
}

/* A client chooses the delay of its request for a procedure's end. 32 times as many timers cost
 * about 40 times as much; if each were compared with all others, 1,000 times. */
static void timers_that_are_due_in_reverse_cost_no_more(void **state)
{
    (void)state;
    enum { FEW = 2000, MANY = 32 * FEW };
    static rq_loop_timer timers[MANY];
    rq_loops *loops;
    assert_int_equal(rq_loops_new(&(rq_loops_options){.driven = true}, &loops), RQ_OK);
    rq_loop *loop = rq_loops_get(loops, 0);
    double few = cost(loop, timers, FEW), many = cost(loop, timers, MANY);
    assert_true(many < 300 * few + 0.05);
    rq_loops_stop(loops);
    rq_loops_free(loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_is_the_soonest_whatever_comes_and_goes),
        cmocka_unit_test(timers_that_are_due_in_reverse_cost_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
