/* SPDX-License-Identifier: Apache-2.0 */
/* The sink's age: the time between a write on its source and its application here. */
#include "replication/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t age_after(int64_t write_ms, int64_t now_ms)
{
    rq_sink s = {0};
    rq_sink_count(&s, 1, write_ms, now_ms, true);
    return rq_sink_age_ms(&s);
}

static void ages_of_all_times(void **state)
{
    (void)state;
    assert_int_equal(age_after(1000, 1200), 200);
    assert_int_equal(age_after(1200, 1000), 0); /* the source's clock is ahead */
    assert_int_equal(age_after(INT64_MAX, 1000), 0);
    assert_true(age_after(INT64_MIN, 1000) == (UINT64_C(1) << 63) + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ages_of_all_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
