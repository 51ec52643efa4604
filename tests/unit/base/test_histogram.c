/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram against a sorted list of the same values. */
#include "unit.h"

#include "base/random.h"
#include "base/histogram.h"

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const double percents[] = {0.01, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100};

static void percentiles_match_the_sorted_values_to_a_thousandth(void **state)
{
    (void)state;
    enum { COUNT = 20000, ROUNDS = 20 };
    uint64_t *values = calloc(COUNT, sizeof *values);
    rq_histogram h;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    assert_int_equal(rq_histogram_init(&h), RQ_OK);
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0;
        size_t count = 1 + rq_random_below(&r, COUNT);
        rq_histogram_reset(&h);
        for (size_t i = 0; i < count; i++) {
            /* Random magnitude: as many small values as large ones. */
            values[i] = rq_random_next(&r) >> (22 + rq_random_below(&r, 42));
            rq_histogram_add(&h, values[i]);
            sum += (double)values[i];
        }
        qsort(values, count, sizeof *values, by_value);
        assert_int_equal(h.total, count);
        assert_int_equal(h.min, values[0]);
        assert_int_equal(h.max, values[count - 1]);
        assert_true(rq_histogram_mean(&h) >= sum / (double)count * 0.999999);
        for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
            size_t rank = (size_t)(percents[i] / 100 * (double)count + 0.9999999);
            uint64_t exact = values[rank > 0 ? (rank > count ? count : rank) - 1 : 0];
            uint64_t got = rq_histogram_percentile(&h, percents[i]);
            assert_true(got >= exact);
            assert_true((double)got <= (double)exact * 1.001 + 0.5);
        }
    }
    rq_histogram_clear(&h);
    free(values);
}

static void merging_is_the_same_as_adding_everything_to_one(void **state)
{
    (void)state;
    rq_histogram parts[2];
    rq_histogram whole;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    assert_int_equal(rq_histogram_init(&whole), RQ_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rq_histogram_init(&parts[i]), RQ_OK);
    for (int i = 0; i < 10000; i++) {
        uint64_t v = rq_random_below(&r, 10000000);
        rq_histogram_add(&parts[i % 3 == 0], v);
        rq_histogram_add(&whole, v);
    }
    rq_histogram_merge(&parts[0], &parts[1]);
    assert_int_equal(parts[0].total, whole.total);
    assert_int_equal(parts[0].min, whole.min);
    assert_int_equal(parts[0].max, whole.max);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
        assert_int_equal(rq_histogram_percentile(&parts[0], percents[i]),
                         rq_histogram_percentile(&whole, percents[i]));
    rq_histogram_clear(&whole);
    rq_histogram_clear(&parts[0]);
    rq_histogram_clear(&parts[1]);
}

static void an_empty_one_and_one_beyond_its_range_answer(void **state)
{
    (void)state;
    rq_histogram h;
    assert_int_equal(rq_histogram_init(&h), RQ_OK);
    assert_int_equal(rq_histogram_percentile(&h, 50), 0);
    assert_true(rq_histogram_mean(&h) <= 0);
    rq_histogram_add(&h, UINT64_MAX);
    assert_int_equal(rq_histogram_percentile(&h, 50), RQ_HISTOGRAM_MAX);
    rq_histogram_clear(&h);
}

/* Compares the coarse histogram with counts of the values; the bounds used are those where it is
 * exact. */
static void a_servers_histogram_counts_up_to_a_power_of_two_exactly(void **state)
{
    (void)state;
    rq_times t = {0};
    rq_times_sum s = {0};
    rq_random r;
    rq_random_seed(&r, unit_seed());
    enum { COUNT = 5000 };
    uint64_t values[COUNT], sum = 0;
    for (int i = 0; i < COUNT; i++) {
        values[i] = rq_random_next(&r) >> (22 + rq_random_below(&r, 42));
        sum += values[i];
        if (i % 2 == 0)
            rq_times_add(&t, values[i], 1);
        else
            rq_times_add_shared(&t, values[i], 1);
    }
    rq_times_read(&t, &s);
    assert_int_equal(rq_times_count(&s), COUNT);
    assert_int_equal(s.sum_ns, sum);
    for (unsigned power = 0; power <= RQ_HISTOGRAM_POWERS; power++) {
        uint64_t bound = (UINT64_C(1) << power) - 1, below = 0;
        for (int i = 0; i < COUNT; i++)
            below += values[i] <= bound;
        assert_int_equal(rq_times_count_up_to(&s, bound), below);
    }
    qsort(values, COUNT, sizeof *values, by_value);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        size_t rank = (size_t)(percents[i] / 100 * COUNT + 0.9999999);
        uint64_t exact = values[rank > 0 ? rank - 1 : 0];
        uint64_t found = rq_times_percentile_ns(&s, percents[i]);
        assert_true(found >= exact && found <= exact + exact / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_match_the_sorted_values_to_a_thousandth),
        cmocka_unit_test(merging_is_the_same_as_adding_everything_to_one),
        cmocka_unit_test(an_empty_one_and_one_beyond_its_range_answer),
        cmocka_unit_test(a_servers_histogram_counts_up_to_a_power_of_two_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
