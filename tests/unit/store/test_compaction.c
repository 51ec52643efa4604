/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a compaction selects by HBase's exploring policy. The cases with numbers can be
 * followed by hand; the random ones check properties of every selection. */
#include "base/random.h"
#include "store/compaction.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const rq_compaction_settings settings = {
    .min_files = 3,
    .max_files = 5,
    .ratio = 1.2,
    .min_bytes = 10,
    .max_bytes = 1000,
    .blocking_files = 16,
};

static const rq_family_schema family = {.ttl_s = RQ_TTL_FOREVER};

static rq_compaction_choice choose(const uint64_t *sizes, size_t count, bool major)
{
    rq_store_file files[64] = {0};
    for (size_t i = 0; i < count; i++)
        files[i].size_bytes = sizes[i];
    return rq_compaction_choose(&settings, &family, files, count, major, false, 0);
}

static void the_longest_run_in_ratio_is_taken(void **state)
{
    (void)state;
    static const struct {
        uint64_t sizes[8];
        size_t count;
        size_t first, taken;
    } cases[] = {
        {{121, 50, 25, 12, 12}, 5, 1, 4}, /* 121 > 1.2 * 99 */
        {{118, 50, 25, 12, 12}, 5, 0, 5},
        {{251, 253, 251}, 3, 0, 3},      /* equal sizes are compacted together */
        {{300, 151, 153, 151}, 4, 0, 4}, /* 300 <= 1.2 * 455 */
        {{1, 1}, 2, 0, 0},               /* too few files */
        {{1, 1, 1, 1, 1, 1}, 6, 0, 5},   /* at most max_files */
        {{900, 80, 30, 10}, 4, 0, 0},    /* each is larger than the sum of the following ones */
        {{2000, 12, 12, 12}, 4, 1, 3},   /* files above the maximum at the front are skipped */
        {{3, 2, 1, 1}, 4, 0, 4},         /* below min_bytes the ratio does not matter */
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_compaction_choice c = choose(cases[i].sizes, cases[i].count, false);
        if (c.count != cases[i].taken || (c.count > 0 && c.first != cases[i].first))
            fail_msg("case %zu: took %zu from %zu", i, c.count, c.first);
    }
}

static void a_major_compaction_takes_all(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {5000, 1, 900, 3, 3, 3, 3, 3};
    rq_compaction_choice c = choose(sizes, RQ_ARRAY_LEN(sizes), true);
    assert_int_equal(c.count, RQ_ARRAY_LEN(sizes));
    assert_true(c.all_files);
    assert_true(c.major);
    c = choose(sizes, 0, true);
    assert_int_equal(c.count, 0);
}

static void a_store_at_its_blocking_count_is_never_stuck(void **state)
{
    (void)state;
    rq_compaction_settings large = settings;
    rq_store_file files[16] = {0};
    large.max_bytes = UINT64_MAX;
    files[15].size_bytes = 20;
    for (size_t i = 15; i > 0; i--)
        files[i - 1].size_bytes = files[i].size_bytes * 3; /* no selection satisfies the ratio */
    rq_compaction_choice c = rq_compaction_choose(&large, &family, files + 1, 15, false, false, 0);
    assert_int_equal(c.count, 0);
    c = rq_compaction_choose(&large, &family, files, 16, false, false, 0);
    assert_int_equal(c.first, 13); /* the files with the smallest sum */
    assert_true(c.count >= settings.min_files);
}

static void every_choice_is_a_legal_run(void **state)
{
    (void)state;
    rq_random random;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t sizes[20];
        rq_random_seed(&random, seed);
        size_t count = rq_random_below(&random, 16);
        for (size_t i = 0; i < count; i++)
            sizes[i] = 1 + rq_random_below(&random, rq_random_below(&random, 2) ? 30 : 1500);
        rq_compaction_choice c = choose(sizes, count, false);
        if (c.count == 0) continue;
        uint64_t total = 0;
        bool ok = c.count >= settings.min_files && c.count <= settings.max_files &&
                  c.first + c.count <= count && c.all_files == (c.count == count) && !c.major;
        for (size_t i = 0; ok && i < c.count; i++)
            total += sizes[c.first + i];
        for (size_t i = 0; ok && i < c.count && total >= settings.min_bytes; i++)
            ok =
                (double)sizes[c.first + i] <= (double)(total - sizes[c.first + i]) * settings.ratio;
        ok = ok && total <= settings.max_bytes;
        if (!ok) fail_msg("seed %" PRIu64 ": %zu files from %zu", seed, c.count, c.first);
    }
}

/* Any client may set these values. */
static void periods_and_times_of_any_size_do_not_overflow(void **state)
{
    (void)state;
    static const rq_family_schema expiring = {.ttl_s = 10};
    static const int64_t ends[] = {INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < RQ_ARRAY_LEN(ends); i++) {
        for (size_t k = 0; k < RQ_ARRAY_LEN(ends); k++) {
            rq_compaction_settings s = settings;
            rq_store_file f = {
                .size_bytes = 1, .min_ts = ends[k], .max_ts = INT64_MAX - 1, .create_time_ms = 1};
            s.major_period_ms = ends[i];
            s.major_jitter = 0.5;
            rq_compaction_choice c =
                rq_compaction_choose(&s, &expiring, &f, 1, false, false, INT64_C(1) << 40);
            bool due = ends[i] > 0 && ends[i] < INT64_MAX / 2 && ends[k] < INT64_C(1) << 40;
            assert_int_equal(c.major, due);
        }
    }
}

/* Stepping one millisecond at a time from now to 1970 would take hours. */
static void small_windows_are_skipped_in_one_step(void **state)
{
    (void)state;
    rq_compaction_settings s = settings;
    rq_store_file files[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        files[i].size_bytes = 5;
        files[i].min_ts = 1000;
        files[i].max_ts = 1000;
    }
    s.policy = RQ_COMPACT_DATE_TIERED;
    s.tiered = (rq_tier_settings){
        .max_age_ms = INT64_MAX, .incoming_min = 6, .base_window_ms = 1, .max_tier_age_ms = 1000};
    static const uint32_t per_tier[] = {2, 1000, 999999999};
    for (size_t i = 0; i < RQ_ARRAY_LEN(per_tier); i++) {
        s.tiered.windows_per_tier = per_tier[i];
        rq_compaction_choice c =
            rq_compaction_choose(&s, &family, files, 3, false, false, 1700000000000);
        assert_int_equal(c.count, 3);
        s.tiered.max_tier_age_ms = INT64_MAX;
        c = rq_compaction_choose(&s, &family, files, 3, false, false, 1700000000000);
        assert_int_equal(c.count, 3);
        s.tiered.max_tier_age_ms = 1000;
    }
}

/* Quiet stores: the merged files satisfy the off-peak ratio and are not small, so a round writes at
 * most 1 + ratio bytes for each byte of its smaller files. The number of rounds is finite. */
static void a_quiet_store_is_merged_within_the_ratio(void **state)
{
    (void)state;
    rq_random random;
    rq_compaction_settings s = settings;
    rq_random_seed(&random, 7);
    s.offpeak_ratio = 5;
    s.offpeak_max_bytes = 100000;
    s.min_bytes = 100;
    for (int i = 0; i < 2000; i++) {
        rq_store_file files[32] = {0};
        size_t count = rq_random_below(&random, 20);
        for (size_t k = 0; k < count; k++)
            files[k].size_bytes = 1 + rq_random_below(&random, 1u << rq_random_below(&random, 18));
        for (;;) {
            rq_compaction_choice c = rq_compaction_choose_quiet(&s, files, count);
            if (c.count == 0) break;
            uint64_t sum = 0, most = 0;
            for (size_t k = c.first; k < c.first + c.count; k++) {
                sum += files[k].size_bytes;
                if (files[k].size_bytes > most) most = files[k].size_bytes;
            }
            assert_in_range(c.count, 2, s.max_files);
            assert_true(c.first + c.count <= count && sum >= s.min_bytes);
            assert_true(most <= s.offpeak_max_bytes && most <= 5 * (sum - most));
            assert_int_equal(c.all_files, c.count == count);
            files[c.first].size_bytes = sum;
            memmove(files + c.first + 1, files + c.first + c.count,
                    (count - c.first - c.count) * sizeof files[0]);
            count -= c.count - 1;
        }
        uint64_t a = files[0].size_bytes, b = files[1].size_bytes;
        if (count == 2 && a + b >= s.min_bytes && a + b <= s.offpeak_max_bytes)
            assert_true(a > 5 * b || b > 5 * a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_run_in_ratio_is_taken),
        cmocka_unit_test(a_major_compaction_takes_all),
        cmocka_unit_test(a_store_at_its_blocking_count_is_never_stuck),
        cmocka_unit_test(every_choice_is_a_legal_run),
        cmocka_unit_test(periods_and_times_of_any_size_do_not_overflow),
        cmocka_unit_test(small_windows_are_skipped_in_one_step),
        cmocka_unit_test(a_quiet_store_is_merged_within_the_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
