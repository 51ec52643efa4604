/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets: granted and refused bytes, the order in which waiters wake, and which connections are
 * evicted. */
#include "net/budget.h"

#include "../base/unit.h"

#define MAX ((size_t)1000)

/* A lane that only records posted tasks. */
struct lane {
    rq_lane lane;
    rq_task *posted[16];
    unsigned count;
};

static void post(rq_lane *lane, rq_task *task)
{
    struct lane *l = RQ_CONTAINER_OF(lane, struct lane, lane);
    l->posted[l->count++] = task;
}

struct world {
    struct lane lane;
    rq_budget *budget;
};

static void begin(struct world *w)
{
    *w = (struct world){.lane.lane.post = post};
    assert_int_equal(rq_budget_new(MAX, &w->budget), RQ_OK);
}

static void end(struct world *w)
{
    assert_int_equal(rq_budget_used(w->budget), 0);
    rq_budget_free(w->budget);
}

static void queue(struct world *w, rq_budget_waiter *waiter, size_t bytes, bool prompt)
{
    *waiter = (rq_budget_waiter){.lane = &w->lane.lane, .bytes = bytes, .prompt = prompt};
    rq_budget_wait(w->budget, waiter);
}

static void expect_woken(struct world *w, rq_budget_waiter *waiter)
{
    assert_int_equal(w->lane.count, 1);
    assert_ptr_equal(w->lane.posted[0], &waiter->task);
    w->lane.count = 0;
    rq_budget_woken(w->budget, waiter);
}

static void only_reserve_charges_use_the_reserve(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_true(rq_budget_try(w.budget, MAX));
    assert_true(rq_budget_is_full(w.budget));
    assert_false(rq_budget_try(w.budget, 1));
    assert_true(rq_budget_try_reserve(w.budget, MAX / 4));
    assert_false(rq_budget_try_reserve(w.budget, 1));
    rq_budget_give(w.budget, MAX + MAX / 4);
    end(&w);
}

static void prompt_waiters_wake_first_and_from_the_reserve(void **state)
{
    (void)state;
    struct world w;
    rq_budget_waiter patient, prompt;
    begin(&w);
    assert_true(rq_budget_overdraw(w.budget, &w));
    rq_budget_force(w.budget, MAX + MAX / 4);
    queue(&w, &patient, 100, false);
    queue(&w, &prompt, 100, true);
    assert_int_equal(w.lane.count, 0);
    rq_budget_give(w.budget, MAX / 4);
    expect_woken(&w, &prompt);
    /* not yet: a waiter without priority needs more free bytes */
    rq_budget_give(w.budget, MAX / 10);
    assert_int_equal(w.lane.count, 0);
    rq_budget_give(w.budget, MAX / 10);
    expect_woken(&w, &patient);
    rq_budget_give(w.budget, MAX - MAX / 5);
    rq_budget_end_overdraft(w.budget, &w);
    end(&w);
}

/* Such a waiter would only queue again, repeatedly, while a call holds the overdraft. */
static void a_waiter_for_which_there_is_no_room_is_not_woken(void **state)
{
    (void)state;
    struct world w;
    rq_budget_waiter waiter;
    begin(&w);
    assert_true(rq_budget_overdraw(w.budget, &w));
    rq_budget_force(w.budget, MAX / 2);
    queue(&w, &waiter, MAX, false);
    assert_int_equal(w.lane.count, 0);
    rq_budget_end_overdraft(w.budget, &w); /* the waiter may take the overdraft now */
    expect_woken(&w, &waiter);
    rq_budget_give(w.budget, MAX / 2);
    end(&w);
}

/* A waiter that does not take the overdraft must not be woken for it: the wake-up would be lost. */
static void the_overdraft_goes_to_a_waiter_that_takes_it(void **state)
{
    (void)state;
    struct world w;
    rq_budget_waiter patient, large;
    begin(&w);
    assert_true(rq_budget_overdraw(w.budget, &w));
    rq_budget_force(w.budget, MAX);
    queue(&w, &patient, 0, false);
    queue(&w, &large, MAX, false);
    assert_int_equal(w.lane.count, 0);
    rq_budget_end_overdraft(w.budget, &w);
    expect_woken(&w, &large);
    assert_true(rq_budget_overdraw(w.budget, &large));
    rq_budget_end_overdraft(w.budget, &large); /* no other waiter may take the overdraft */
    assert_int_equal(w.lane.count, 0);
    rq_budget_give(w.budget, MAX);
    expect_woken(&w, &patient);
    end(&w);
}

static void expect_condemned(struct world *w, rq_debtor *d, bool owes)
{
    assert_true(w->lane.count > 0);
    assert_ptr_equal(w->lane.posted[0], &d->task);
    memmove(w->lane.posted, w->lane.posted + 1, --w->lane.count * sizeof w->lane.posted[0]);
    assert_int_equal(rq__budget_confirm_eviction(w->budget, d), owes);
}

static void the_oldest_debtors_are_condemned_as_many_as_it_takes(void **state)
{
    (void)state;
    struct world w;
    rq_debtor d[8];
    memset(d, 0, sizeof d);
    begin(&w);
    for (int i = 0; i < 8; i++)
        d[i].lane = &w.lane.lane;
    for (int round = 1; round <= 4; round++) /* small steps: no debt consists of one large
                                              * response */
        for (int i = 0; i < 6; i++)
            rq__budget_owe(w.budget, &d[i], (size_t)round * 50, false);
    rq__budget_owe(w.budget, &d[0], 200,
                   true); /* d[0] has read everything before: now it is the newest debtor */
    assert_int_equal(rq_budget_used(w.budget), 1200);
    assert_int_equal(w.lane.count, 0);
    rq__budget_owe(w.budget, &d[6], 60, false);
    assert_int_equal(w.lane.count, 1); /* d[1]: evicting its 200 bytes suffices */
    rq__budget_owe(w.budget, &d[7], 60, false);
    rq__budget_owe(w.budget, &d[6], 120, false);
    rq__budget_owe(w.budget, &d[6], 180, false);
    assert_int_equal(w.lane.count, 1);
    rq__budget_owe(w.budget, &d[6], 240, false);
    assert_int_equal(w.lane.count, 2); /* d[2] is evicted, too */
    rq__budget_owe(w.budget, &d[1], 0, false);
    expect_condemned(&w, &d[1], false); /* d[1] owes nothing any more */
    expect_condemned(&w, &d[2], true);
    assert_true(rq__budget_is_debtor(w.budget, &d[2]));
    for (int i = 0; i < 8; i++)
        rq__budget_owe(w.budget, &d[i], 0, false);
    assert_int_equal(w.lane.count, 0);
    end(&w);
}

static void what_one_large_answer_goes_over_is_no_reason_to_condemn(void **state)
{
    (void)state;
    struct world w;
    rq_debtor large = {.lane = NULL}, small = {.lane = NULL};
    begin(&w);
    large.lane = small.lane = &w.lane.lane;
    rq__budget_owe(w.budget, &large, 20 * MAX, false);
    rq__budget_owe(w.budget, &small, 50, false);
    assert_int_equal(w.lane.count, 0);
    for (size_t bytes = 100; bytes <= 250; bytes += 50)
        rq__budget_owe(w.budget, &small, bytes, false);
    assert_int_equal(w.lane.count, 0);
    rq__budget_owe(w.budget, &small, 300, false); /* the reserve is used up nevertheless */
    expect_condemned(&w, &large, true);
    rq__budget_owe(w.budget, &large, 0, false);
    rq__budget_owe(w.budget, &small, 0, false);
    end(&w);
}

static unsigned reliefs;

static bool relieved(void *ctx)
{
    (void)ctx;
    return ++reliefs > 1; /* the first report of relief is not accepted */
}

static void relief_is_reported_once_after_pressure(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    rq_budget_on_relief(w.budget, relieved, NULL);
    assert_true(rq_budget_try(w.budget, MAX / 4));
    rq_budget_give(w.budget, MAX / 4);
    assert_int_equal(reliefs, 0);
    assert_true(rq_budget_try(w.budget, MAX));
    rq_budget_give(w.budget, MAX / 2);
    assert_int_equal(reliefs, 0);
    for (int i = 0; i < 3; i++)
        rq_budget_give(w.budget, MAX / 8 + 20); /* used falls from 500 to 65 */
    assert_int_equal(reliefs, 1);
    rq_budget_give(w.budget, 5);
    rq_budget_give(w.budget, 60);
    assert_int_equal(reliefs, 2);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_reserve_charges_use_the_reserve),
        cmocka_unit_test(prompt_waiters_wake_first_and_from_the_reserve),
        cmocka_unit_test(a_waiter_for_which_there_is_no_room_is_not_woken),
        cmocka_unit_test(the_overdraft_goes_to_a_waiter_that_takes_it),
        cmocka_unit_test(the_oldest_debtors_are_condemned_as_many_as_it_takes),
        cmocka_unit_test(what_one_large_answer_goes_over_is_no_reason_to_condemn),
        cmocka_unit_test(relief_is_reported_once_after_pressure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
