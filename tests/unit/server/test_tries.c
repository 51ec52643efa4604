/* SPDX-License-Identifier: Apache-2.0 */
/* Failing attempts: when they are repeated, and how often the failure is logged. */
#include "server/tries.h"
#include "../base/unit.h"

#define S UINT64_C(1000000000)
#define LOOK_NS (S / 5)

static void pauses_grow_and_few_failures_are_logged(void **state)
{
    (void)state;
    rq__tries t = {0};
    unsigned attempts = 0, lines = 0, reported = 0;
    uint64_t last = 0, longest = 0;
    for (uint64_t now = S; now <= 61 * S; now += LOOK_NS) {
        if (!rq__tries_is_due(&t, "a", now)) continue;
        if (attempts++ > 0 && now - last > longest) longest = now - last;
        last = now;
        unsigned failed = rq__tries_failed(&t, "a", now);
        lines += failed > 0;
        reported += failed;
    }
    /* After 0.2, 0.4, … 6.4 s, then every 10 s. */
    assert_in_range(attempts, 8, 14);
    assert_in_range(longest, 10 * S, 10 * S + LOOK_NS);
    assert_in_range(lines, 2, 3);
    assert_in_range(reported, lines, attempts);
    assert_int_equal(rq__tries_succeeded(&t, "a"), attempts);
    assert_null(t.list);
}

static void the_first_failure_is_logged_and_the_next_one_says_how_many(void **state)
{
    (void)state;
    rq__tries t = {0};
    assert_int_equal(rq__tries_failed(&t, "a", S), 1);
    assert_int_equal(rq__tries_failed(&t, "a", 2 * S), 0);
    assert_int_equal(rq__tries_failed(&t, "a", 3 * S), 0);
    assert_int_equal(rq__tries_failed(&t, "a", 31 * S), 3);
    assert_int_equal(rq__tries_failed(&t, "a", 32 * S), 0);
    rq__tries_clear(&t);
}

static void names_do_not_wait_for_each_other(void **state)
{
    (void)state;
    rq__tries t = {0};
    assert_int_equal(rq__tries_failed(&t, "a", S), 1);
    assert_false(rq__tries_is_due(&t, "a", S + 1));
    assert_true(rq__tries_has_failed(&t, "a"));
    assert_false(rq__tries_has_failed(&t, "b"));
    assert_true(rq__tries_is_due(&t, "b", S + 1));
    assert_int_equal(rq__tries_failed(&t, "b", S + 1), 1);
    assert_int_equal(rq__tries_succeeded(&t, "a"), 1);
    assert_true(rq__tries_is_due(&t, "a", S + 1));
    assert_int_equal(rq__tries_succeeded(&t, "a"), 0);
    assert_false(rq__tries_is_due(&t, "b", S + 1));
    rq__tries_clear(&t);
    assert_null(t.list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_and_few_failures_are_logged),
        cmocka_unit_test(the_first_failure_is_logged_and_the_next_one_says_how_many),
        cmocka_unit_test(names_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
