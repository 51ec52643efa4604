/* SPDX-License-Identifier: Apache-2.0 */
/* Names and bytes of references and links. */
#include "../base/unit.h"

#include "base/random.h"
#include "store/reference.h"

#define R1 "5a2f7d9c0b1e4c3d8e6f7a8b9c0d1e2f"
#define R2 "00112233445566778899aabbccddeeff"

static void takes(const char *name, const char *ns, const char *table, const char *region,
                  const char *file, const char *parent)
{
    rq_store_name n;
    rq_store_name_parse(rq_slice_cstr(name), &n);
    assert_int_equal(n.is_link, table != NULL);
    assert_int_equal(n.is_reference, parent != NULL);
    assert_true(rq_slice_eq(n.file, rq_slice_cstr(file)));
    if (table != NULL) {
        assert_true(rq_slice_eq(n.table, rq_slice_cstr(table)));
        assert_true(rq_slice_eq(n.region, rq_slice_cstr(region)));
        assert_true(rq_slice_eq(n.ns, rq_slice_cstr(ns == NULL ? "" : ns)));
    }
    if (parent != NULL) assert_true(rq_slice_eq(n.parent, rq_slice_cstr(parent)));
}

static void names_are_taken_apart_as_hbase_does(void **state)
{
    (void)state;
    takes("abc123", NULL, NULL, NULL, "abc123", NULL);
    takes("abc_SeqId_7_", NULL, NULL, NULL, "abc_SeqId_7_", NULL);
    takes("abc." R1, NULL, NULL, NULL, "abc", R1);
    takes("abc_SeqId_7_." R1, NULL, NULL, NULL, "abc_SeqId_7_", R1);
    takes("t=" R1 "-abc", NULL, "t", R1, "abc", NULL);
    takes("n=t=" R1 "-abc", "n", "t", R1, "abc", NULL);
    takes("n.s=t-a.b=" R1 "-abc", "n.s", "t-a.b", R1, "abc", NULL);
    takes("t.x=" R1 "-abc." R2, NULL, "t.x", R1, "abc", R2);
    takes("t=" R1, NULL, NULL, NULL, "t=" R1, NULL);
    takes("=" R1 "-abc", NULL, NULL, NULL, "=" R1 "-abc", NULL);
    takes("abc.", NULL, NULL, NULL, "abc.", NULL);
}

static void bytes_come_back(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, unit_seed());
    for (int i = 0; i < 2000; i++) {
        uint8_t row[300];
        size_t len = rq_random_below(&random, sizeof row);
        for (size_t k = 0; k < len; k++)
            row[k] = (uint8_t)rq_random_next(&random);
        rq_hfile_half half = {.row = rq_slice_of(row, len), .top = rq_random_below(&random, 2)};
        rq_hfile_half back;
        rq_buf b = {0};
        assert_int_equal(rq_reference_encode(&half, &b), RQ_OK);
        assert_int_equal(rq_reference_decode(rq_buf_slice(&b), &back, NULL), RQ_OK);
        assert_true(rq_slice_eq(half.row, back.row));
        assert_int_equal(half.top, back.top);
        /* Truncated bytes are not a reference. */
        rq_slice cut = rq_slice_of(b.ptr, rq_random_below(&random, (uint32_t)b.len));
        assert_int_equal(rq_reference_decode(cut, &back, NULL), RQ_E_CORRUPT);
        rq_buf_clear(&b);
    }
}

/* The bytes of Reference.createBottomReference("k").toByteArray() in HBase 2.6.1. */
static void bytes_are_hbases(void **state)
{
    (void)state;
    static const uint8_t theirs[] = {'P',  'B',  'U',  'F',  0x0a, 13,   0,    1,    'k',  0, 0x7f,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x10, 1};
    rq_hfile_half half = {.row = RQ_SLICE_LIT("k")};
    rq_buf b = {0};
    assert_int_equal(rq_reference_encode(&half, &b), RQ_OK);
    assert_true(rq_slice_eq(rq_buf_slice(&b), rq_slice_of(theirs, sizeof theirs)));
    rq_buf_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart_as_hbase_does),
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(bytes_are_hbases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
