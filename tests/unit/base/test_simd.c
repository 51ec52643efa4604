/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the machine's implementation of base/simd.h with the plain one, and the plain one with
 * arithmetic. */
#include "simd_forms.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void random_pair(rq_random *r, uint8_t *a, uint8_t *b)
{
    for (int i = 0; i < 16; i++) {
        a[i] = (uint8_t)rq_random_next(r);
        b[i] = rq_random_below(r, 3) == 0 ? a[i] : (uint8_t)rq_random_next(r);
    }
}

static void forms_agree(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 7);
    for (int round = 0; round < 20000; round++) {
        uint8_t a[16], b[16];
        simd_results ours, plain;
        memset(&ours, 0, sizeof ours);
        memset(&plain, 0, sizeof plain);
        random_pair(&random, a, b);
        simd_all(a, b, &ours);
        simd_plain(a, b, &plain);
        assert_memory_equal(&ours, &plain, sizeof ours);
    }
}

static void plain_form_is_arithmetic(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 8);
    for (int round = 0; round < 2000; round++) {
        uint8_t a[16], b[16];
        simd_results plain;
        uint64_t nibbles = 0;
        random_pair(&random, a, b);
        simd_plain(a, b, &plain);
        for (int i = 0; i < 16; i++) {
            assert_int_equal(plain.either[i], a[i] | b[i]);
            assert_int_equal(plain.equal[i], a[i] == b[i] ? 255 : 0);
            assert_int_equal(plain.least[i], a[i] < b[i] ? a[i] : b[i]);
            assert_int_equal(plain.difference[i], a[i] > b[i] ? a[i] - b[i] : 0);
            assert_int_equal(plain.splat[i], a[3]);
            assert_int_equal(plain.pair[i], i < 8 ? a[i] : b[i - 8]);
            assert_int_equal(plain.mask_a >> i & 1, a[i] >> 7);
            assert_int_equal(plain.mask_equal >> i & 1, a[i] == b[i]);
            nibbles |= (uint64_t)(a[i] < 15 ? a[i] : 15) << (60 - 4 * i);
        }
        assert_true(plain.nibbles == nibbles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(plain_form_is_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
