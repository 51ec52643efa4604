/* SPDX-License-Identifier: Apache-2.0 */
/* How much time a source leaves to clients while it catches up (replication/pace.h). */
#include "../base/unit.h"

#include "replication/pace.h"

#define MB ((uint64_t)1 << 20)
#define MS ((uint64_t)1000000)

/* The rest after a batch that filled up before the end of the log. */
static uint64_t rest(rq__pace *p, uint64_t begun_ns, uint64_t confirmed_ns, uint64_t backlog)
{
    rq__pace_batch b = {.begun_ns = begun_ns, .confirmed_ns = confirmed_ns, .backlog = backlog};
    return rq__pace_rest_ns(p, &b);
}

static uint64_t rest_at_end(uint64_t begun_ns, uint64_t confirmed_ns, uint64_t backlog)
{
    rq__pace p = {0};
    rq__pace_batch b = {.begun_ns = begun_ns,
                        .confirmed_ns = confirmed_ns,
                        .reached_end = true,
                        .backlog = backlog};
    assert_int_equal(rq__pace_gather_ns(&b), rq__pace_rest_ns(&p, &b));
    return rq__pace_rest_ns(&p, &b);
}

static void full_batches_follow_each_other_at_once(void **state)
{
    (void)state;
    rq__pace p = {0};
    assert_int_equal(rest(&p, 10 * MS, 15 * MS, MB), 0);
    assert_int_equal(rest(&p, 10 * MS, 10 * MS, 0), 0);
    assert_int_equal(rq__pace_batch_bytes(MB, 4 * MB), 4 * MB);
}

static void records_gather_after_a_batch_that_had_all(void **state)
{
    (void)state;
    assert_int_equal(rest_at_end(7 * MS, 7 * MS, 0), 10 * MS);
    assert_int_equal(rest_at_end(7 * MS, 8 * MS, MB), 9 * MS);
    /* A peer whose answer takes longer has let enough records gather. */
    assert_int_equal(rest_at_end(7 * MS, 17 * MS, MB), 0);
    assert_int_equal(rest_at_end(7 * MS, 700 * MS, MB), 0);
}

static void half_of_the_time_is_the_clients(void **state)
{
    (void)state;
    rq__pace p = {0};
    assert_int_equal(rest(&p, 10 * MS, 15 * MS, 100 * MB), 5 * MS);
    assert_int_equal(rest(&p, 20 * MS, 23 * MS, 99 * MB), 3 * MS);
    /* The time in which a slow peer answers counts as rest. */
    assert_true(rest(&p, 30 * MS, 930 * MS, 98 * MB) <= 50 * MS);
    assert_true(rq__pace_batch_bytes(100 * MB, 4 * MB) < 4 * MB);
    assert_int_equal(rq__pace_batch_bytes(100 * MB, 1024), 1024);
}

static void a_backlog_that_grows_leaves_no_time_for_rests(void **state)
{
    (void)state;
    rq__pace p = {0};
    uint64_t now = 10 * MS, backlog = 100 * MB;
    assert_int_not_equal(rest(&p, now, now + MS, backlog), 0);
    now += 1100 * MS;
    /* the backlog has grown */
    assert_int_equal(rest(&p, now, now + MS, backlog + MB), 0);
    now += 1100 * MS;
    /* the backlog has shrunk since */
    assert_int_not_equal(rest(&p, now, now + MS, backlog), 0);
    assert_int_equal(rest(&p, now, now + MS, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_batches_follow_each_other_at_once),
        cmocka_unit_test(records_gather_after_a_batch_that_had_all),
        cmocka_unit_test(half_of_the_time_is_the_clients),
        cmocka_unit_test(a_backlog_that_grows_leaves_no_time_for_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
