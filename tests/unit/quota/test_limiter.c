/* SPDX-License-Identifier: Apache-2.0 */
/* Limiters: waits and texts of HBase's rate limiters, corrections, changed limits. */
#include "quota/limiter.h"

#include "../base/unit.h"

#include <string.h>

static const rq__refill average = {.fixed = false, .interval_ms = 1000};

static Pb__TimedQuota timed(Pb__TimeUnit unit, uint64_t limit)
{
    Pb__TimedQuota q = PB__TIMED_QUOTA__INIT;
    q.time_unit = unit;
    q.has_soft_limit = 1;
    q.soft_limit = limit;
    return q;
}

static rq__limiter *limiter(rq__budget b, Pb__TimeUnit unit, uint64_t limit,
                            const rq__refill *refill)
{
    Pb__Throttle t = PB__THROTTLE__INIT;
    Pb__TimedQuota q = timed(unit, limit);
    *rq__throttle_place(&t, b) = &q;
    rq__limiter *l = rq__limiter_new(&t, refill);
    assert_non_null(l);
    return l;
}

static const rq__demand one_write = {.writes = 1, .write_bytes = 100, .write_units = 1};

static void passes(rq__limiter *l, const rq__demand *d, int64_t now)
{
    rq_error why = {.code = RQ_OK};
    assert_int_equal(rq__limiter_check(l, d, now, &why), RQ_OK);
    rq__limiter_take(l, d);
}

static void fails(rq__limiter *l, const rq__demand *d, int64_t now, const char *text)
{
    rq_error why = {.code = RQ_OK};
    assert_int_equal(rq__limiter_check(l, d, now, &why), RQ_E_THROTTLED);
    assert_string_equal(why.message, text);
}

static void requests_are_refilled_with_time(void **state)
{
    (void)state;
    rq__limiter *l = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__SECONDS, 10, &average);
    for (int i = 0; i < 10; i++)
        passes(l, &one_write, 5000);
    fails(l, &one_write, 5000, "number of requests exceeded - wait 100ms");
    fails(l, &one_write, 5099, "number of requests exceeded - wait 100ms");
    passes(l, &one_write, 5100);
    fails(l, &one_write, 5100, "number of requests exceeded - wait 100ms");
    for (int i = 0; i < 10; i++)
        passes(l, &one_write, 9000); /* never more than the limit */
    fails(l, &one_write, 9000, "number of requests exceeded - wait 100ms");
    rq__limiter_unref(l);
}

static void waits_are_printed_in_hours_and_minutes(void **state)
{
    (void)state;
    static const struct {
        Pb__TimeUnit unit;
        uint64_t limit;
        const char *wait;
    } cases[] = {
        {PB__TIME_UNIT__SECONDS, 1, "1sec, 0ms"},
        {PB__TIME_UNIT__MINUTES, 1, "1min, 0ms"},
        {PB__TIME_UNIT__HOURS, 1, "1hr, 0ms"},
        {PB__TIME_UNIT__DAYS, 1, "24hrs, 0ms"},
        {PB__TIME_UNIT__MINUTES, 7, "8sec, 571ms"},
        {PB__TIME_UNIT__HOURS, 7, "8mins, 34sec, 285ms"},
        {PB__TIME_UNIT__DAYS, 7, "3hrs, 25mins, 42sec, 857ms"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        char text[128];
        rq__limiter *l = limiter(RQ__BUDGET_WRITES, cases[i].unit, cases[i].limit, &average);
        for (uint64_t k = 0; k < cases[i].limit; k++)
            passes(l, &one_write, 0);
        snprintf(text, sizeof text, "number of write requests exceeded - wait %s", cases[i].wait);
        fails(l, &one_write, 0, text);
        rq__limiter_unref(l);
    }
}

static void intervals_are_refilled_at_once(void **state)
{
    (void)state;
    const rq__refill fixed = {.fixed = true, .interval_ms = 500};
    rq__limiter *l = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__SECONDS, 4, &fixed);
    for (int i = 0; i < 4; i++)
        passes(l, &one_write, 100);
    fails(l, &one_write, 100, "number of requests exceeded - wait 500ms");
    fails(l, &one_write, 350, "number of requests exceeded - wait 250ms");
    passes(l, &one_write, 600); /* half of the limit */
    passes(l, &one_write, 600);
    fails(l, &one_write, 600, "number of requests exceeded - wait 500ms");
    rq__limiter_unref(l);
}

static void a_request_beyond_the_limit_is_possible(void **state)
{
    (void)state;
    const rq__demand many = {.writes = 100, .write_bytes = 10000, .write_units = 10};
    rq__limiter *l = limiter(RQ__BUDGET_WRITES, PB__TIME_UNIT__SECONDS, 10, &average);
    passes(l, &many, 0);
    fails(l, &one_write, 1000, "number of write requests exceeded - wait 8sec, 100ms");
    rq__limiter_unref(l);
}

static void the_true_cost_corrects_the_estimate(void **state)
{
    (void)state;
    const rq__demand more = {.write_bytes = 900}, back = {.write_bytes = -950};
    rq__limiter *l = limiter(RQ__BUDGET_WRITE_BYTES, PB__TIME_UNIT__SECONDS, 1000, &average);
    passes(l, &one_write, 0);
    rq__limiter_correct(l, &more);
    fails(l, &one_write, 0, "write size limit exceeded - wait 100ms");
    rq__limiter_correct(l, &back);
    passes(l, &one_write, 0);
    rq__limiter_unref(l);
}

static void what_was_used_stays_used_under_a_new_limit(void **state)
{
    (void)state;
    rq__limiter *l = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__DAYS, 2, &average);
    rq__limiter *more = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__DAYS, 3, &average);
    rq__limiter *less = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__DAYS, 1, &average);
    passes(l, &one_write, 0);
    passes(l, &one_write, 0);
    rq__limiter_update(l, more);
    passes(l, &one_write, 0);
    rq__limiter_update(l, less);
    fails(l, &one_write, 0, "number of requests exceeded - wait 24hrs, 0ms");
    rq__limiter_unref(l);
    rq__limiter_unref(more);
    rq__limiter_unref(less);
}

static void atomic_requests_have_their_budget(void **state)
{
    (void)state;
    const rq__demand atomic = {.writes = 1, .reads = 1, .write_bytes = 100, .is_atomic = true};
    rq__limiter *l = limiter(RQ__BUDGET_ATOMIC_REQUESTS, PB__TIME_UNIT__SECONDS, 2, &average);
    passes(l, &atomic, 0);
    fails(l, &atomic, 0, "atomic request number exceeded - wait 1sec, 0ms");
    passes(l, &one_write, 0);
    rq__limiter_unref(l);
}

/* Any client may write such numbers to hbase:quota. Java's conversions saturate at the type's
 * limits. */
static void extreme_limits_are_kept(void **state)
{
    (void)state;
    static const char longest[] =
        "number of requests exceeded - wait 2562047788015hrs, 12mins, 55sec, 807ms";
    const rq__refill fixed = {.fixed = true, .interval_ms = 1000};
    const rq__demand units = {.writes = 1, .write_bytes = 1, .write_units = INT64_MAX};
    static const uint64_t large[] = {INT64_MAX - 1, INT64_MAX, UINT64_MAX};
    for (int how = 0; how < 2; how++) {
        const rq__refill *refill = how == 0 ? &average : &fixed;
        rq__limiter *none = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__SECONDS, 0, refill);
        rq_error why = {.code = RQ_OK};
        const rq__demand two = {.reads = 2, .read_bytes = 1};
        /* as if two ops took the last request at the same time */
        none->rates[RQ__BUDGET_REQUESTS].left = -1;
        fails(none, &two, 0, longest);
        fails(none, &two, 100000, longest);
        rq__limiter_unref(none);
        for (size_t i = 0; i < RQ_ARRAY_LEN(large); i++) {
            rq__limiter *l = limiter(RQ__BUDGET_REQUESTS, PB__TIME_UNIT__DAYS, large[i], refill);
            for (int k = 0; k < 3; k++)
                passes(l, &one_write, k * 86399999);
            rq__limiter_unref(l);
        }
        rq__limiter *l = limiter(RQ__BUDGET_WRITE_UNITS, PB__TIME_UNIT__SECONDS, 1, refill);
        assert_int_equal(rq__limiter_check(l, &units, 0, &why), RQ_E_THROTTLED);
        rq__limiter_take(l, &units);
        rq__limiter_take(l, &units);
        rq__limiter_take(l, &units);
        assert_int_equal(rq__limiter_check(l, &units, 1, &why), RQ_E_THROTTLED);
        rq__limiter_unref(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extreme_limits_are_kept),
        cmocka_unit_test(requests_are_refilled_with_time),
        cmocka_unit_test(waits_are_printed_in_hours_and_minutes),
        cmocka_unit_test(intervals_are_refilled_at_once),
        cmocka_unit_test(a_request_beyond_the_limit_is_possible),
        cmocka_unit_test(the_true_cost_corrects_the_estimate),
        cmocka_unit_test(what_was_used_stays_used_under_a_new_limit),
        cmocka_unit_test(atomic_requests_have_their_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
