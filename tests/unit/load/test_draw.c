/* SPDX-License-Identifier: Apache-2.0 */
/* The distributions compared with their definitions: frequencies and probabilities by Pearson's chi
 * square, with a limit of five standard deviations above the mean (about one false alarm in
 * millions of seeds). */
#include "unit.h"

#include "load/draw.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 200000 };

static void assert_fits(const uint64_t *seen, const double *expected, size_t n)
{
    double chi = 0;
    double classes = 0;
    double rest_seen = 0;
    double rest_expected = 0;
    for (size_t i = 0; i < n; i++) {
        double e = expected[i] * DRAWS;
        if (e < 10) { /* too rare to test alone: tested together */
            rest_seen += (double)seen[i];
            rest_expected += e;
            continue;
        }
        chi += ((double)seen[i] - e) * ((double)seen[i] - e) / e;
        classes++;
    }
    if (rest_expected > 10) {
        chi += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
        classes++;
    }
    double freedom = classes - 1;
    if (chi > freedom + 5 * sqrt(2 * freedom) + 15) {
        printf("chi square %.1f at %.0f degrees of freedom\n", chi, freedom);
        assert_true(false);
    }
}

static void zipf_probabilities(double *p, size_t n, double theta)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += p[k] = pow((double)k + 1, -theta);
    for (size_t k = 0; k < n; k++)
        p[k] /= sum;
}

static void ranks_of_zipf_are_as_probable_as_their_power(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 10, 1000};
    static const double thetas[] = {0.5, 0.99, 1.0, 1.5};
    static double p[1000];
    static uint64_t seen[1000];
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (size_t s = 0; s < 5; s++)
        for (size_t t = 0; t < 4; t++) {
            rq_zipf z;
            memset(seen, 0, sizeof seen);
            rq_zipf_init(&z, sizes[s], thetas[t]);
            for (int i = 0; i < DRAWS; i++) {
                uint64_t k = rq_zipf_draw(&z, &r);
                assert_true(k < sizes[s]);
                seen[k]++;
            }
            zipf_probabilities(p, sizes[s], thetas[t]);
            if (sizes[s] > 1) assert_fits(seen, p, sizes[s]);
        }
}

static void a_grown_zipf_is_one_made_at_that_size(void **state)
{
    (void)state;
    rq_random r[2];
    rq_zipf grown;
    rq_zipf made;
    uint64_t seed = unit_seed();
    rq_zipf_init(&grown, 10, 0.99);
    rq__zipf_grow(&grown, 12345);
    rq_zipf_init(&made, 12345, 0.99);
    for (int i = 0; i < 2; i++)
        rq_random_seed(&r[i], seed);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(rq_zipf_draw(&grown, &r[0]), rq_zipf_draw(&made, &r[1]));
}

static void uniform_keys_are_equally_probable(void **state)
{
    (void)state;
    static double p[997];
    static uint64_t seen[997];
    rq_keys k;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    rq__keys_init(&k, RQ_KEYS_UNIFORM, 997, 0.99);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < 997; i++)
        p[i] = 1.0 / 997;
    for (int i = 0; i < DRAWS; i++)
        seen[rq__keys_draw(&k, 997, &r)]++;
    assert_fits(seen, p, 997);
}

static void latest_counts_back_from_the_newest_while_keys_are_added(void **state)
{
    (void)state;
    enum { WINDOW = 500 };
    static double p[10000];
    static uint64_t seen[10000];
    rq_keys k;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    rq__keys_init(&k, RQ_KEYS_LATEST, 100, 0.99);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < DRAWS; i++) {
        /* alternates between 9,000 and 9,001 rows: the probabilities hardly change */
        uint64_t n = 9000 + (uint64_t)i % 2;
        uint64_t key = rq__keys_draw(&k, n, &r);
        assert_true(key < n);
        seen[n - 1 - key]++;
    }
    zipf_probabilities(p, 9000, 0.99);
    assert_fits(seen, p, WINDOW);
}

static void scattered_keys_keep_the_weight_of_their_ranks(void **state)
{
    (void)state;
    static uint64_t seen[1000];
    static double p[1000];
    rq_keys k;
    rq_random r;
    uint64_t most = 0;
    rq_random_seed(&r, unit_seed());
    rq__keys_init(&k, RQ_KEYS_ZIPFIAN, 1000, 0.99);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t key = rq__keys_draw(&k, 1000, &r);
        assert_true(key < 1000);
        seen[key]++;
    }
    for (size_t i = 0; i < 1000; i++)
        most = seen[i] > most ? seen[i] : most;
    zipf_probabilities(p, 1000, 0.99);
    assert_true((double)most >= p[0] * DRAWS * 0.95);
    assert_true((double)most <= p[0] * DRAWS * 1.6); /* another rank may map to the same key */
}

static void sequential_goes_round_and_hot_stays_with_few(void **state)
{
    (void)state;
    rq_keys k;
    rq_random r;
    int hot = 0;
    rq_random_seed(&r, unit_seed());
    rq__keys_init(&k, RQ_KEYS_SEQUENTIAL, 7, 0.99);
    for (uint64_t i = 0; i < 30; i++)
        assert_int_equal(rq__keys_draw(&k, 7, &r), i % 7);
    rq__keys_init(&k, RQ_KEYS_HOT, 100000, 0.99);
    for (int i = 0; i < DRAWS; i++)
        hot += rq__keys_draw(&k, 100000, &r) < 16;
    assert_true(hot > DRAWS * 0.985);
    assert_true(hot < DRAWS * 0.995);
}

static void mixing_can_be_undone(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (int i = 0; i < 100000; i++) {
        uint64_t x = rq_random_next(&r) >> rq_random_below(&r, 64);
        assert_int_equal(rq__unmix64(rq__mix64(x)), x);
    }
}

static void lengths_keep_their_bounds_and_their_mean(void **state)
{
    (void)state;
    static const char *const texts[] = {"100", "50-200", "0-1", "exp:100"};
    rq_random r;
    rq_sizes s;
    rq_random_seed(&r, unit_seed());
    for (int t = 0; t < 4; t++) {
        double sum = 0;
        assert_true(rq_sizes_parse(texts[t], &s));
        for (int i = 0; i < DRAWS; i++) {
            uint32_t len = rq__sizes_of(&s, rq_random_next(&r));
            assert_true(len <= rq__sizes_max(&s));
            if (s.kind != RQ_SIZES_EXPONENTIAL) assert_true(len >= s.low);
            sum += len;
        }
        assert_true(fabs(sum / DRAWS - rq__sizes_mean(&s)) < 0.02 * rq__sizes_mean(&s) + 0.5);
    }
}

static void malformed_lengths_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "x",   "5-",          "5-4",
                                        "exp:", "10 ", "99999999999", "1-2-3"};
    rq_sizes s;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(rq_sizes_parse(texts[i], &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_zipf_are_as_probable_as_their_power),
        cmocka_unit_test(a_grown_zipf_is_one_made_at_that_size),
        cmocka_unit_test(uniform_keys_are_equally_probable),
        cmocka_unit_test(latest_counts_back_from_the_newest_while_keys_are_added),
        cmocka_unit_test(scattered_keys_keep_the_weight_of_their_ranks),
        cmocka_unit_test(sequential_goes_round_and_hot_stays_with_few),
        cmocka_unit_test(mixing_can_be_undone),
        cmocka_unit_test(lengths_keep_their_bounds_and_their_mean),
        cmocka_unit_test(malformed_lengths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
