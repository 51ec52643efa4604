/* SPDX-License-Identifier: Apache-2.0 */
/* A second event loop is used only while two loops together complete more calls than one. Loops and clients are
 * modelled by formulas, with a simulated clock. */
#include "net/spread.h"

#include "base/random.h"
#include "../base/unit.h"

#define WINDOW_NS 100000000ull

typedef struct world {
    rq__trial trial;
    rq_random random;
    uint64_t now_ns, work;
    unsigned one, two; /* work per millisecond with one loop and with two */
    unsigned noise;    /* random deviation in thousandths */
    bool is_full;      /* one loop has no idle time */
    bool is_spread;
    unsigned sent, taken_back, kept;
    uint64_t spread_ns; /* time with both loops */
} world;

static void init(world *w, unsigned one, unsigned two, bool is_full)
{
    *w = (world){.one = one, .two = two, .is_full = is_full, .now_ns = 5 * WINDOW_NS};
    rq_random_seed(&w->random, 1);
}

static void window(world *w)
{
    uint64_t per_ms = w->is_spread ? w->two : w->one;
    uint64_t done = per_ms * WINDOW_NS / 1000000;
    if (w->noise > 0)
        done = done * (1000 - w->noise + rq_random_below(&w->random, 2 * w->noise + 1)) / 1000;
    w->now_ns += WINDOW_NS;
    w->work += done;
    if (w->is_spread) w->spread_ns += WINDOW_NS;
    rq__trial_look look = {.now_ns = w->now_ns,
                           .work = w->work,
                           .is_wanted = per_ms > 0 && !w->is_spread,
                           .is_full = w->is_full && !w->is_spread};
    switch (rq__trial_go_on(&w->trial, &look)) {
    case RQ__TRIAL_SEND:
        assert_false(w->is_spread);
        w->is_spread = true;
        w->sent++;
        break;
    case RQ__TRIAL_TAKE_BACK:
        assert_true(w->is_spread);
        w->is_spread = false;
        w->taken_back++;
        break;
    case RQ__TRIAL_KEEP:
        assert_true(w->is_spread);
        w->kept++;
        break;
    case RQ__TRIAL_WAIT:
        break;
    }
}

static void windows(world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        window(w);
}

static void help_is_kept_if_more_is_done(void **state)
{
    (void)state;
    world w;
    init(&w, 100, 180, true);
    windows(&w, 10);
    assert_true(w.is_spread);
    assert_int_equal(w.sent, 1);
    assert_int_equal(w.kept, 1);
    assert_true(rq__trial_may_begin(&w.trial, w.now_ns));
}

static void help_is_taken_back_if_less_is_done(void **state)
{
    (void)state;
    world w;
    init(&w, 100, 80, true);
    windows(&w, 10);
    assert_false(w.is_spread);
    assert_int_equal(w.taken_back, 1);
    assert_false(rq__trial_may_begin(&w.trial, w.now_ns));
    windows(&w, 15);
    assert_int_equal(w.sent, 1); /* the next trial starts after 2 s */
    windows(&w, 10);
    assert_int_equal(w.sent, 2);
}

/* Ten minutes in which a second loop does not help: a trial loses a fifth of the work, and trials
 * take less than a fiftieth of the time. */
static void trials_become_rare(void **state)
{
    (void)state;
    world w;
    init(&w, 100, 80, true);
    windows(&w, 6000);
    assert_false(w.is_spread);
    assert_in_range(w.taken_back, 15, 25);
    assert_true(w.spread_ns < 6000 * WINDOW_NS / 50);
    assert_true(w.work > 6000 * WINDOW_NS / 1000000 * 100 / 1000 * 997);
    w.two = 150; /* the clients have changed */
    windows(&w, 400);
    assert_true(w.is_spread);
}

/* A full loop that does the same work alone is more efficient alone. A loop that is not full gets
 * help: the amount of work is the same either way, but responses are sooner. */
static void as_much_is_enough_for_a_loop_that_has_time(void **state)
{
    (void)state;
    world w;
    init(&w, 100, 100, true);
    windows(&w, 10);
    assert_false(w.is_spread);
    init(&w, 100, 100, false);
    windows(&w, 10);
    assert_true(w.is_spread);
    init(&w, 100, 80, false);
    windows(&w, 10);
    assert_false(w.is_spread);
}

static void nothing_is_learnt_from_clients_that_stop(void **state)
{
    (void)state;
    world w;
    init(&w, 100, 180, true);
    windows(&w, 2);
    w.one = 0; /* the clients stop before the trial */
    windows(&w, 10);
    assert_int_equal(w.sent, 0);
    w.one = 100;
    while (!w.is_spread)
        window(&w);
    w.two = 0; /* the clients stop during the trial */
    while (w.is_spread)
        window(&w);
    assert_int_equal(w.taken_back, 1);
    assert_true(rq__trial_may_begin(&w.trial, w.now_ns));
}

static void measurements_may_vary(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        bool helps = seed % 2 == 0;
        world w;
        init(&w, 1000, helps ? 1300 : 850, true);
        w.noise = 100;
        rq_random_seed(&w.random, seed);
        while (w.kept + w.taken_back == 0)
            window(&w);
        assert_int_equal(w.kept, helps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_is_kept_if_more_is_done),
        cmocka_unit_test(help_is_taken_back_if_less_is_done),
        cmocka_unit_test(trials_become_rare),
        cmocka_unit_test(as_much_is_enough_for_a_loop_that_has_time),
        cmocka_unit_test(nothing_is_learnt_from_clients_that_stop),
        cmocka_unit_test(measurements_may_vary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
