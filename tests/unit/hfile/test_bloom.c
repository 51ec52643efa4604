/* SPDX-License-Identifier: Apache-2.0 */
/* Bloom hashes and chunk shapes against numbers of HBase 2.6.1, and block-index keys that are
 * constructed between two cells. */
#include "base/random.h"
#include "cells.h"
#include "hfile/bloom.h"
#include "hfile/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct hash_row {
    int type;
    const char *key;
    size_t len;
    int32_t seed, hash;
} hash_row;

/* HBASE: Hash.getInstance(type).hash(new ByteArrayHashKey(key), seed) */
static const hash_row hashes[] = {
    {0, "", 0, 0, -559038737},
    {0, "", 0, 1, -559038736},
    {0, "", 0, -559038737, -1118077474},
    {0, "a", 1, 0, 1490454280},
    {0, "a", 1, 1, 1118926449},
    {0, "a", 1, -559038737, -584780549},
    {0, "ro", 2, 0, 2054230066},
    {0, "ro", 2, 1, 1233914581},
    {0, "ro", 2, -559038737, 1534743169},
    {0, "row", 3, 0, -994891805},
    {0, "row", 3, 1, 23635398},
    {0, "row", 3, -559038737, -1257867682},
    {0, "row1", 4, 0, -369613114},
    {0, "row1", 4, 1, -1469411219},
    {0, "row1", 4, -559038737, 581306858},
    {0, "hello, world", 12, 0, 1503810069},
    {0, "hello, world", 12, 1, 902290430},
    {0, "hello, world", 12, -559038737, 78089109},
    {0, "a longer key with many bytes in it \xff\xfe", 37, 0, 355198980},
    {0, "a longer key with many bytes in it \xff\xfe", 37, 1, 1463225134},
    {0, "a longer key with many bytes in it \xff\xfe", 37, -559038737, 130929184},
    {1, "", 0, 0, 0},
    {1, "", 0, 1, 1540447798},
    {1, "", 0, -559038737, 1552874934},
    {1, "a", 1, 0, -1838653602},
    {1, "a", 1, 1, 626045324},
    {1, "a", 1, -559038737, 1262581116},
    {1, "ro", 2, 0, 1839992943},
    {1, "ro", 2, 1, 824801098},
    {1, "ro", 2, -559038737, 629491780},
    {1, "row", 3, 0, 1921263513},
    {1, "row", 3, 1, 2092407040},
    {1, "row", 3, -559038737, 421453661},
    {1, "row1", 4, 0, 155469074},
    {1, "row1", 4, 1, -1167149559},
    {1, "row1", 4, -559038737, 694238326},
    {1, "hello, world", 12, 0, 1263312256},
    {1, "hello, world", 12, 1, -264428720},
    {1, "hello, world", 12, -559038737, 2077296966},
    {1, "a longer key with many bytes in it \xff\xfe", 37, 0, 923581904},
    {1, "a longer key with many bytes in it \xff\xfe", 37, 1, 1020157401},
    {1, "a longer key with many bytes in it \xff\xfe", 37, -559038737, 1954966546},
    {2, "", 0, 0, 0},
    {2, "", 0, 1, 1364076727},
    {2, "", 0, -559038737, 233162409},
    {2, "a", 1, 0, 1009084850},
    {2, "a", 1, 1, 1485495528},
    {2, "a", 1, -559038737, -2005738552},
    {2, "ro", 2, 0, -313198603},
    {2, "ro", 2, 1, -1763239996},
    {2, "ro", 2, -559038737, -302544851},
    {2, "row", 3, 0, -2119396515},
    {2, "row", 3, 1, -1778037571},
    {2, "row", 3, -559038737, -768820272},
    {2, "row1", 4, 0, -1126219893},
    {2, "row1", 4, 1, 1413531831},
    {2, "row1", 4, -559038737, -1153517605},
    {2, "hello, world", 12, 0, 345750399},
    {2, "hello, world", 12, 1, 1868346089},
    {2, "hello, world", 12, -559038737, 721288243},
    {2, "a longer key with many bytes in it \xff\xfe", 37, 0, 1053312992},
    {2, "a longer key with many bytes in it \xff\xfe", 37, 1, -1453317226},
    {2, "a longer key with many bytes in it \xff\xfe", 37, -559038737, 356500440},
};

typedef struct shape_row {
    uint32_t bytes_hint;
    float error_rate;
    uint32_t bytes, hash_count, max_keys;
} shape_row;

/* HBASE: BloomFilterUtil.createBySize(hint, rate, MURMUR_HASH, 7, ROW) */
static const shape_row shapes[] = {
    {128, 0.01f, 128, 7, 106},           {128, 0.0050125583f, 128, 8, 92},
    {128, 0.001f, 128, 10, 71},          {1000, 0.01f, 1024, 7, 853},
    {1000, 0.0050125583f, 1024, 8, 742}, {1000, 0.001f, 1024, 10, 569},
    {131072, 0.01f, 131072, 7, 109306},  {131072, 0.0050125583f, 131072, 8, 95069},
    {131072, 0.001f, 131072, 10, 72931},
};

static void hashes_are_hbases(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(hashes); i++) {
        const hash_row *h = &hashes[i];
        assert_int_equal(
            rq__bloom_hash((rq__hash_type)h->type, rq_slice_of(h->key, h->len), h->seed), h->hash);
    }
}

static void chunks_are_shaped_as_hbases(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(shapes); i++) {
        rq__bloom_chunk c = rq__bloom_chunk_shape(shapes[i].bytes_hint, shapes[i].error_rate);
        assert_int_equal(c.len, shapes[i].bytes);
        assert_int_equal(c.hash_count, shapes[i].hash_count);
        assert_int_equal(c.max_keys, shapes[i].max_keys);
    }
}

static void folding_forgets_no_key(void **state)
{
    (void)state;
    for (unsigned keys = 1; keys < 300; keys += 7) {
        rq__bloom_chunk c = rq__bloom_chunk_shape(1024, 0.01f);
        c.bits = calloc(1, c.len);
        assert_non_null(c.bits);
        for (unsigned i = 0; i < keys; i++)
            rq__bloom_chunk_add(&c, rq_slice_of(&i, sizeof(i)));
        uint32_t before = c.len;
        rq__bloom_chunk_fold(&c);
        assert_true(keys * 2 >= 853 || c.len < before);
        for (unsigned i = 0; i < keys; i++)
            assert_true(rq__bloom_test(rq_slice_of(c.bits, c.len), RQ__HASH_MURMUR, c.hash_count,
                                       rq_slice_of(&i, sizeof(i))));
        free(c.bits);
    }
}

/* The constructed key satisfies left < key <= right, and is never longer than right. */
static void made_up_index_keys_lie_between_their_blocks(void **state)
{
    (void)state;
    rq_random random;
    rq_buf key = {0};
    for (uint64_t seed = 1; seed < 20; seed++) {
        rq_random_seed(&random, seed);
        cell_shape shape = {.count = 500,
                            .row_space = seed % 2 ? 5 : 400,
                            .column_space = 50,
                            .deletes = true,
                            .order = seed % 5 ? RQ_ORDER_DEFAULT : RQ_ORDER_META};
        cell_list list;
        cell_list_make(&list, &random, &shape);
        for (size_t i = 1; i < list.count; i++) {
            const rq_cell *left = &list.cells[i - 1];
            const rq_cell *right = &list.cells[i];
            rq_cell c;
            if (rq_cell_compare_key(shape.order, left, right) == 0) continue;
            assert_int_equal(rq__index_key_between(shape.order, left, right, &key), RQ_OK);
            assert_int_equal(rq__cell_parse_key(rq_buf_slice(&key), &c, NULL), RQ_OK);
            assert_true(rq_cell_compare_key(shape.order, left, &c) < 0);
            assert_true(rq_cell_compare_key(shape.order, &c, right) <= 0);
            assert_true(key.len <= rq_cell_key_len(right));
        }
        cell_list_clear(&list);
    }
    rq_buf_clear(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_hbases),
        cmocka_unit_test(chunks_are_shaped_as_hbases),
        cmocka_unit_test(folding_forgets_no_key),
        cmocka_unit_test(made_up_index_keys_lie_between_their_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
