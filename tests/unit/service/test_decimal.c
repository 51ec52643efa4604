/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with two decimal places, compared with 128-bit integers and with BigDecimal's results;
 * and the interpreters' rules for absent values. */
#include "service/interpreter.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t state;

static uint64_t next_random(void)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Bytes.toBytes(new BigDecimal(unscaled, scale)), with `extra` sign bytes more than needed. */
static rq_slice bytes_of(__int128 unscaled, int32_t scale, size_t extra, uint8_t *out)
{
    rq_put_be32(out, (uint32_t)scale);
    size_t len = 16;
    uint8_t whole[16];
    for (size_t i = 0; i < 16; i++)
        whole[i] = (uint8_t)((unsigned __int128)unscaled >> (8 * (15 - i)));
    size_t skip = 0;
    while (skip < 15 && whole[skip] == (unscaled < 0 ? 0xff : 0) &&
           (whole[skip + 1] & 0x80) == (unscaled < 0 ? 0x80 : 0))
        skip++;
    len -= skip;
    memset(out + 4, unscaled < 0 ? 0xff : 0, extra);
    memcpy(out + 4 + extra, whole + skip, len);
    return rq_slice_of(out, 4 + extra + len);
}

static void assert_is(const rq__decimal *d, __int128 hundredths)
{
    uint8_t expected[64];
    rq_buf got = {0};
    rq_slice bytes = bytes_of(hundredths, 2, 0, expected);
    assert_int_equal(rq__decimal_write(d, &got), RQ_OK);
    assert_int_equal(got.len, bytes.len);
    assert_memory_equal(got.ptr, bytes.ptr, bytes.len);
    rq_buf_clear(&got);
}

/* Rounds half to even. */
static __int128 divide_rounded(__int128 n, __int128 by)
{
    __int128 q = n / by;
    __int128 rest = n % by;
    if (rest < 0) rest = -rest;
    if (rest * 2 > by || (rest * 2 == by && q % 2 != 0)) q += n < 0 ? -1 : 1;
    return q;
}

static __int128 random_number(void)
{
    unsigned bits = (unsigned)(next_random() % 62);
    int64_t v = (int64_t)(next_random() >> (63 - bits));
    return next_random() % 2 == 0 ? v : -(__int128)v;
}

static void parse(__int128 unscaled, int32_t scale, rq__decimal *ret)
{
    uint8_t bytes[64];
    assert_int_equal(rq__decimal_parse(bytes_of(unscaled, scale, next_random() % 3, bytes), ret),
                     RQ_OK);
}

static void test_rounds_half_to_even(void **unused)
{
    (void)unused;
    rq__decimal d = {0};
    for (int i = 0; i < 20000; i++) {
        __int128 n = random_number();
        int32_t scale = (int32_t)(next_random() % 24) - 6;
        if (scale < 0) n %= 1000000000;
        if (next_random() % 4 == 0) n = n / 10 * 10 + (n < 0 ? -5 : 5); /* exact halves */
        parse(n, scale, &d);
        __int128 by = 1;
        for (int32_t s = 2; s < scale; s++)
            by *= 10;
        __int128 expected = divide_rounded(n, by);
        for (int32_t s = scale; s < 2; s++)
            expected *= 10;
        assert_is(&d, expected);
    }
    rq__decimal_clear(&d);
}

static void test_adds_multiplies_compares(void **unused)
{
    (void)unused;
    rq__decimal a = {0}, b = {0}, product = {0};
    for (int i = 0; i < 20000; i++) {
        __int128 x = random_number();
        __int128 y = next_random() % 5 == 0 ? -x : random_number();
        parse(x, 2, &a);
        parse(y, 2, &b);
        assert_int_equal(rq__decimal_compare(&a, &b), (x > y) - (x < y));
        assert_int_equal(rq__decimal_multiply(&a, &b, &product), RQ_OK);
        assert_is(&product, divide_rounded(x * y, 100));
        assert_int_equal(rq__decimal_add(&a, &b), RQ_OK);
        assert_is(&a, x + y);
    }
    rq__decimal_clear(&a);
    rq__decimal_clear(&b);
    rq__decimal_clear(&product);
}

static void test_refuses_invalid_and_oversized_input(void **unused)
{
    (void)unused;
    rq__decimal d = {0};
    uint8_t bytes[5000] = {0};
    assert_int_equal(rq__decimal_parse(rq_slice_of(bytes, 4), &d), RQ_E_NULL_POINTER);
    assert_int_equal(rq__decimal_parse(rq_slice_of(bytes, sizeof bytes), &d), RQ_E_UNSUPPORTED);
    rq_put_be32(bytes, 0x80000000);
    assert_int_equal(rq__decimal_parse(rq_slice_of(bytes, 5), &d), RQ_E_UNSUPPORTED);
    rq_put_be32(bytes, 20000);
    memset(bytes + 4, 0x7f, 4096);
    assert_int_equal(rq__decimal_parse(rq_slice_of(bytes, 4100), &d), RQ_OK);
    assert_is(&d, 0); /* 9,864 digits with a scale of 20,000 */
    rq_put_be32(bytes, (uint32_t)-20000);
    assert_int_equal(rq__decimal_parse(rq_slice_of(bytes, 4100), &d), RQ_OK);
    rq__decimal_clear(&d);
}

static void test_absent_numbers(void **unused)
{
    (void)unused;
    rq__number sum = {0}, n = {0}, scratch = {0};
    rq_cell cell = {.value = (const uint8_t *)"12345678", .value_len = 7};
    rq_error why = {0};
    assert_int_equal(rq__number_read(RQ__INTERPRETER_LONG, &cell, &n, &why), RQ_OK);
    assert_false(n.present);
    assert_int_equal(rq__number_add(RQ__INTERPRETER_LONG, &sum, &n), RQ_OK);
    assert_int_equal(rq__number_add_square(RQ__INTERPRETER_LONG, &sum, &n, &scratch), RQ_OK);
    assert_false(sum.present);
    rq_buf out = {0};
    assert_int_equal(rq__number_write(RQ__INTERPRETER_LONG, &sum, &out), RQ_E_NULL_POINTER);
    cell.value_len = 8;
    assert_int_equal(rq__number_read(RQ__INTERPRETER_LONG, &cell, &n, &why), RQ_OK);
    assert_int_equal(rq__number_add(RQ__INTERPRETER_LONG, &sum, &n), RQ_OK);
    assert_true(sum.present);
    assert_int_equal(sum.l, 0x3132333435363738);
    cell.value_len = 3;
    assert_int_equal(rq__number_read(RQ__INTERPRETER_DECIMAL, &cell, &n, &why), RQ_E_NULL_POINTER);
    rq_buf_clear(&out);
    rq__number_clear(&sum);
    rq__number_clear(&n);
    rq__number_clear(&scratch);
}

static void test_doubles_order_as_in_java(void **unused)
{
    (void)unused;
    const double ascending[] = {-INFINITY, -1, -0.0, 0.0, 1, INFINITY, NAN};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) {
            rq__number a = {.present = true, .d = ascending[i]};
            rq__number b = {.present = true, .d = ascending[j]};
            assert_int_equal(rq__number_compare(RQ__INTERPRETER_DOUBLE, &a, &b), (i > j) - (i < j));
        }
}

int main(int argc, char **argv)
{
    const char *seed = argc > 1 ? argv[1] : getenv("SEED");
    state = seed != NULL ? strtoull(seed, NULL, 10) : 20261121;
    printf("# seed %llu\n", (unsigned long long)state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_half_to_even),
        cmocka_unit_test(test_adds_multiplies_compares),
        cmocka_unit_test(test_refuses_invalid_and_oversized_input),
        cmocka_unit_test(test_absent_numbers),
        cmocka_unit_test(test_doubles_order_as_in_java),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
