/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks compared with the rows' bytes: different ranks have the order of the rows, whatever rows
 * the ranking was made from, also for rows outside of their range. */
#include "base/macros.h"
#include "base/random.h"
#include "store/row_rank.h"

#include "../../seeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct row {
    uint8_t bytes[40];
    size_t len;
} row;

static rq_slice slice_of(const row *r)
{
    return rq_slice_of(r->bytes, r->len);
}

/* Few different bytes, so that rows have common prefixes and differ late; `digits` percent of the
 * bytes are digits. */
static void make(rq_random *random, unsigned digits, const char *prefix, row *ret)
{
    static const uint8_t others[] = {0, '-', '0' - 1, '9' + 1, 'a', 0x7f, 0x80, 0xff};
    ret->len = strlen(prefix);
    memcpy(ret->bytes, prefix, ret->len);
    if (rq_random_below(random, 20) == 0) ret->len = rq_random_below(random, ret->len + 1);
    for (uint64_t n = rq_random_below(random, 20); n > 0; n--) {
        bool digit = rq_random_below(random, 100) < digits;
        ret->bytes[ret->len++] = digit ? (uint8_t)('0' + rq_random_below(random, 10))
                                       : others[rq_random_below(random, sizeof others)];
    }
}

static void different_ranks_order_as_the_rows_do(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "row-", "user", "00000000", "aaaaaaaaaaaaaaaa"};
    uint64_t seed = seeds_number("RQ_SEED", 20261122);
    rq_random random;
    rq_random_seed(&random, seed);
    print_message("RQ_SEED=%llu\n", (unsigned long long)seed);
    unsigned different = 0;
    for (int round = 0; round < 2000; round++) {
        const char *prefix = prefixes[rq_random_below(&random, RQ_ARRAY_LEN(prefixes))];
        unsigned digits = (unsigned)rq_random_below(&random, 3) * 50;
        row rows[20];
        for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++)
            make(&random, digits, prefix, &rows[i]);
        bool in_order = rq_slice_compare(slice_of(&rows[0]), slice_of(&rows[1])) <= 0;
        rq_ranking made = rq__ranking_of(slice_of(&rows[!in_order]), slice_of(&rows[in_order]));
        const rq_ranking *ranking = round % 5 == 0 ? NULL : &made;
        for (size_t i = 1; i < RQ_ARRAY_LEN(rows); i++) {
            uint64_t a = rq__row_rank(ranking, rows[i - 1].bytes, rows[i - 1].len);
            uint64_t b = rq__row_rank(ranking, rows[i].bytes, rows[i].len);
            if (a == b) continue;
            int c = rq_slice_compare(slice_of(&rows[i - 1]), slice_of(&rows[i]));
            assert_true(c != 0 && (c < 0) == (a < b));
            different++;
        }
    }
    assert_true(different > 10000); /* of 38,000: ranks that are mostly equal would be useless */
}

static void a_ranking_is_the_same_if_it_is_made_of_the_same(void **state)
{
    (void)state;
    rq_ranking numbers = rq__ranking_of(RQ_SLICE_LIT("row-0000001"), RQ_SLICE_LIT("row-0999999"));
    rq_ranking words = rq__ranking_of(RQ_SLICE_LIT("row-a"), RQ_SLICE_LIT("row-z"));
    rq_ranking none = rq__ranking_of(RQ_SLICE_LIT("a"), RQ_SLICE_LIT("z"));
    assert_true(numbers.digits && !words.digits);
    assert_true(rq__ranking_same(&none, NULL));
    assert_false(rq__ranking_same(&words, NULL));
    assert_false(rq__ranking_same(&words, &numbers));
    assert_true(rq__ranking_same(&numbers, &numbers));
    rq_ranking digits = rq__ranking_of(RQ_SLICE_LIT("1"), RQ_SLICE_LIT("2"));
    assert_true(digits.len == none.len && digits.digits);
    assert_false(rq__ranking_same(&digits, &none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_ranks_order_as_the_rows_do),
        cmocka_unit_test(a_ranking_is_the_same_if_it_is_made_of_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
