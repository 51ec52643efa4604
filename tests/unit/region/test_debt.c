/* SPDX-License-Identifier: Apache-2.0 */
/* Delayed responses: writers are slowed to the rate of flushes, however many there are. */
#include "base/random.h"
#include "region/debt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)
#define MB ((uint64_t)1000 * 1000)
#define DELAY_MAX_NS (SECOND_NS / 20)

static void debt_with_pace(rq__debt *d, uint64_t bytes_per_s)
{
    *d = (rq__debt){0};
    rq__debt_init(d);
    rq__debt_drained(d, bytes_per_s, 0, SECOND_NS);
}

/* Bytes per second of writers that write again as soon as they are answered. */
static double admitted(rq__debt *d, unsigned writers, uint64_t bytes, double depth,
                       uint64_t *ret_longest)
{
    uint64_t answered[64] = {0};
    uint64_t total = 0, now = 2 * SECOND_NS;
    const uint64_t begun = now, end = now + SECOND_NS;
    assert_true(writers <= 64);
    for (unsigned i = 0; i < writers; i++)
        answered[i] = now;
    *ret_longest = 0;
    while (now < end) {
        unsigned next = 0;
        for (unsigned i = 1; i < writers; i++)
            if (answered[i] < answered[next]) next = i;
        /* Each response takes time, even if it is not delayed. */
        now = answered[next] > now ? answered[next] : now + 1000;
        uint64_t delay = rq__debt_delay_ns(d, bytes, depth, now);
        if (delay > *ret_longest) *ret_longest = delay;
        answered[next] = now + delay;
        total += bytes;
    }
    return (double)total * (double)SECOND_NS / (double)(now - begun);
}

static void all_writers_together_keep_the_pace_of_flushes(void **state)
{
    (void)state;
    static const unsigned writers[] = {1, 2, 7, 64};
    static const double depths[] = {0, 0.25, 0.5, 1};
    for (size_t w = 0; w < 4; w++)
        for (size_t i = 0; i < 4; i++) {
            rq__debt d;
            uint64_t longest;
            debt_with_pace(&d, 100 * MB);
            double allowed = 100e6 * (1.5 - depths[i]);
            double seen = admitted(&d, writers[w], 10000, depths[i], &longest);
            rq__debt_clear(&d);
            assert_true(seen > allowed * 0.9 && seen < allowed * 1.1);
            /* No writer waits longer than the bytes of all writers take, plus the timer's
             * minimum. */
            double turn = (double)writers[w] * 10000 / allowed * 1e9 + 2 * 50000;
            assert_true((double)longest <= turn);
        }
}

static void no_answer_is_later_than_the_most(void **state)
{
    (void)state;
    rq__debt d;
    uint64_t longest;
    debt_with_pace(&d, 1000);
    (void)admitted(&d, 64, MB, 1, &longest);
    assert_int_equal(longest, DELAY_MAX_NS);
    assert_int_equal(rq__debt_delay_ns(&d, UINT64_MAX / 2, 1, 10 * SECOND_NS), DELAY_MAX_NS);
    rq__debt_clear(&d);
}

static void without_a_pace_the_depth_alone_counts(void **state)
{
    (void)state;
    rq__debt d = {0};
    rq__debt_init(&d);
    assert_int_equal(rq__debt_delay_ns(&d, 10, 0, SECOND_NS), 0);
    assert_int_equal(rq__debt_delay_ns(&d, 10, 0.5, SECOND_NS), DELAY_MAX_NS / 2);
    assert_int_equal(rq__debt_delay_ns(&d, 10, 1, SECOND_NS), DELAY_MAX_NS);
    rq__debt_clear(&d);
}

/* Flushes that overlap count once with the time that they took together, and old rates are
 * forgotten. */
static void the_pace_is_what_flushes_drain_together(void **state)
{
    (void)state;
    rq__debt d = {0};
    rq__debt_init(&d);
    uint64_t now = SECOND_NS;
    for (int i = 0; i < 50; i++) {
        rq__debt_drained(&d, 10 * MB, now, now + SECOND_NS);
        rq__debt_drained(&d, 10 * MB, now + SECOND_NS / 2, now + SECOND_NS);
        now += SECOND_NS;
        assert_true(d.pace < 21 * MB);
    }
    assert_true(d.pace > 18 * MB);
    for (int i = 0; i < 20; i++) {
        now += 10 * SECOND_NS; /* idle time, which does not count as time of flushes */
        rq__debt_drained(&d, 5 * MB, now, now + SECOND_NS);
        now += SECOND_NS;
    }
    assert_true(d.pace > 4 * MB && d.pace < 6 * MB);
    rq__debt_clear(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_writers_together_keep_the_pace_of_flushes),
        cmocka_unit_test(no_answer_is_later_than_the_most),
        cmocka_unit_test(without_a_pace_the_depth_alone_counts),
        cmocka_unit_test(the_pace_is_what_flushes_drain_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
