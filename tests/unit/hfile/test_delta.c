/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delta encodings alone: random sorted cells, encoded, decoded and resumed from every checkpoint,
 * compared with the plain list. Blocks truncated anywhere and blocks with changed bytes never cause
 * access outside the block. HFILE_SEED replays a failure.
 */
#include "../../seeds.h"
#include "cells.h"
#include "hfile/delta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct block {
    uint64_t seed;
    rq_random random;
    rq__delta_shape shape;
    bool packs_tags;
    cell_list list;
    rq_buf encoded;
    rq_buf plain; /* the cells as in memory */
} block;

#define CHECK(b, cond)                                                                             \
    do {                                                                                           \
        if (!(cond))                                                                               \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(b)->seed, __LINE__, #cond);    \
    } while (0)

static unsigned pick(block *b, unsigned n)
{
    return (unsigned)rq_random_below(&b->random, n);
}

/* Makes timestamps of every sign and size, repeated values, and large differences between
 * neighbours. */
static void disturb(block *b)
{
    for (size_t i = 0; i < b->list.count; i++) {
        rq_cell *c = &b->list.cells[i];
        if (pick(b, 4) == 0) c->timestamp = (int64_t)(rq_random_next(&b->random) >> pick(b, 64));
        if (pick(b, 20) == 0) c->timestamp = pick(b, 2) ? INT64_MIN : INT64_MAX;
        if (i > 0 && pick(b, 3) == 0) {
            c->value = c[-1].value;
            c->value_len = c[-1].value_len;
        }
        if (pick(b, 10) == 0) c->seqid = rq_random_next(&b->random) >> 1;
    }
}

static rq_err encode(rq__delta_shape shape, const rq_cell *cell, const rq_cell *last,
                     rq__tag_dictionary *tags, rq_buf *out)
{
    rq__delta_shared shared = {0};
    if (last != NULL) shared = rq__delta_shared_of(cell, last);
    return rq__delta_encode(shape, cell, last, shared, tags, out);
}

static void block_begin(block *b, uint64_t seed)
{
    static const rq_block_encoding encodings[] = {RQ_ENCODING_PREFIX, RQ_ENCODING_DIFF,
                                                  RQ_ENCODING_FAST_DIFF};
    *b = (block){.seed = seed};
    rq_random_seed(&b->random, seed);
    b->shape.encoding = encodings[pick(b, 3)];
    b->shape.has_tags = pick(b, 3) != 0;
    b->shape.has_mvcc = pick(b, 3) != 0;
    b->packs_tags = b->shape.has_tags && pick(b, 2);
    cell_shape shape = {
        .count = 1 + pick(b, 800),
        .row_space = 1 + pick(b, 500),
        .column_space = 1 + pick(b, 40),
        .value_max = pick(b, 3) == 0 ? 1000 : 6,
        .tags = true,
        .deletes = pick(b, 2),
    };
    cell_list_make(&b->list, &b->random, &shape);
    disturb(b);
    rq__tag_dictionary tags = {0};
    for (size_t i = 0; i < b->list.count; i++) {
        const rq_cell *c = &b->list.cells[i];
        CHECK(b, encode(b->shape, c, i == 0 ? NULL : c - 1, b->packs_tags ? &tags : NULL,
                        &b->encoded) == RQ_OK);
    }
    rq__tag_dictionary_clear(&tags);
    if (b->packs_tags)
        CHECK(b, rq__delta_unpack_tags(b->shape, rq_buf_slice(&b->encoded), &b->plain) == RQ_OK);
    else
        CHECK(b, rq_buf_append(&b->plain, b->encoded.ptr, b->encoded.len) == RQ_OK);
}

static void block_end(block *b)
{
    rq_buf_clear(&b->plain);
    rq_buf_clear(&b->encoded);
    cell_list_clear(&b->list);
}

static void expect_cell(const block *b, const rq_cell *got, const rq_cell *model)
{
    CHECK(b, rq_slice_eq(rq_cell_row(got), rq_cell_row(model)));
    CHECK(b, rq_slice_eq(rq_cell_family(got), rq_cell_family(model)));
    CHECK(b, rq_slice_eq(rq_cell_qualifier(got), rq_cell_qualifier(model)));
    CHECK(b, got->timestamp == model->timestamp && got->type == model->type);
    CHECK(b, rq_slice_eq(rq_cell_value(got), rq_cell_value(model)));
    CHECK(b, got->seqid == (b->shape.has_mvcc ? model->seqid : 0));
    CHECK(b, rq_slice_eq(rq_slice_of(got->tags, got->tags_len),
                         rq_slice_of(model->tags, b->shape.has_tags ? model->tags_len : 0)));
}

/* Decodes from `d`, which is at cell `i`, to the end. */
static void expect_rest(const block *b, rq__delta *d, size_t i)
{
    for (; d->next_pos < b->plain.len; i++) {
        CHECK(b, rq__delta_next(d, b->shape, rq_buf_slice(&b->plain)) == RQ_OK);
        CHECK(b, i < b->list.count);
        expect_cell(b, &d->cell, &b->list.cells[i]);
    }
    CHECK(b, i == b->list.count);
}

static uint64_t first_seed(void)
{
    return seeds_number("HFILE_SEED", 20261121);
}

static void cells_come_back_as_they_were(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed < first_seed() + 300; seed++) {
        block b;
        block_begin(&b, seed);
        rq__delta d = {0};
        expect_rest(&b, &d, 0);
        rq__delta_rewind(&d);
        expect_rest(&b, &d, 0);
        rq__delta_clear(&d);
        block_end(&b);
    }
}

static void reading_goes_on_from_checkpoints_and_copies(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed < first_seed() + 100; seed++) {
        block b;
        block_begin(&b, seed);
        rq__sidecar *s;
        rq_slice payload = rq_buf_slice(&b.plain);
        CHECK(&b, rq__delta_checkpoints(NULL, b.shape, payload, &s) == RQ_OK);
        size_t n = RQ__DELTA_CELLS_PER_CHECKPOINT;
        CHECK(&b, s->count == (b.list.count + n - 1) / n);
        rq__delta d = {0};
        rq__delta copy = {0};
        for (uint32_t i = 0; i < s->count; i++) {
            CHECK(&b, rq__delta_restore(&d, s, i, payload) == RQ_OK);
            expect_cell(&b, &d.cell, &b.list.cells[i * n]);
            CHECK(&b, d.pos == rq__delta_checkpoint_pos(s, i));
            CHECK(&b, rq__delta_copy(&copy, &d) == RQ_OK);
            expect_cell(&b, &copy.cell, &b.list.cells[i * n]);
            expect_rest(&b, &d, i * n + 1);
            expect_rest(&b, &copy, i * n + 1);
        }
        rq__delta_clear(&copy);
        rq__delta_clear(&d);
        rq__sidecar_free(NULL, s);
        block_end(&b);
    }
}

#define LONG_ROW 30000
#define ALIKE_CELLS 40000

/* The common prefix has the right length, and ends with the shorter string even if the bytes behind both are equal. */
static void shared_bytes_are_counted_exactly(void **state)
{
    (void)state;
    uint8_t a[80], b[80];
    for (size_t len = 0; len < 40; len++) {
        for (size_t differ = 0; differ <= len; differ++) {
            for (size_t more = 0; more < 20; more += 3) {
                memset(a, 'x', sizeof a);
                memset(b, 'x', sizeof b);
                b[differ] = 'y';
                rq_cell one = {.row = a,
                               .row_len = (uint16_t)len,
                               .qualifier = a,
                               .qualifier_len = (uint32_t)len};
                rq_cell other = {.row = b,
                                 .row_len = (uint16_t)(len + more),
                                 .qualifier = b,
                                 .qualifier_len = (uint32_t)(len + more)};
                rq__delta_shared s = rq__delta_shared_of(&one, &other);
                assert_int_equal(s.row, differ);
                assert_int_equal(s.same_row, differ == len && more == 0);
                other.row = a;
                other.row_len = one.row_len;
                s = rq__delta_shared_of(&one, &other);
                assert_true(s.same_row);
                assert_int_equal(s.qualifier, differ);
            }
        }
    }
}

/* A block can encode in few bytes that a long key is repeated. A client may load a file with such
 * blocks; the memory of its checkpoints is at most a constant factor of the block's size. */
static void many_long_keys_make_few_checkpoints(void **state)
{
    (void)state;
    static const rq_block_encoding encodings[] = {RQ_ENCODING_PREFIX, RQ_ENCODING_DIFF,
                                                  RQ_ENCODING_FAST_DIFF};
    uint8_t *row = calloc(1, LONG_ROW);
    assert_non_null(row);
    for (size_t e = 0; e < RQ_ARRAY_LEN(encodings); e++) {
        rq__delta_shape shape = {.encoding = encodings[e]};
        rq_cell c = {.row = row,
                     .row_len = LONG_ROW,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = ALIKE_CELLS,
                     .type = RQ_TYPE_PUT};
        rq_cell last = c;
        rq_buf bytes = {0};
        for (int i = 0; i < ALIKE_CELLS; i++, c.timestamp--) {
            assert_int_equal(encode(shape, &c, i == 0 ? NULL : &last, NULL, &bytes), RQ_OK);
            last = c;
        }
        rq__sidecar *s;
        rq_slice payload = rq_buf_slice(&bytes);
        assert_int_equal(rq__delta_checkpoints(NULL, shape, payload, &s), RQ_OK);
        assert_true(s->heap_len < 3 * bytes.len + (size_t)2 * LONG_ROW);
        assert_true(s->count > 4);
        rq__delta d = {0};
        rq_cell key = last;
        int64_t at = rq__delta_checkpoint_before(s, RQ_ORDER_DEFAULT, &key);
        assert_int_equal(at, s->count - 1);
        assert_int_equal(rq__delta_restore(&d, s, (uint32_t)at, payload), RQ_OK);
        while (d.next_pos < payload.len)
            assert_int_equal(rq__delta_next(&d, shape, payload), RQ_OK);
        assert_int_equal(rq_cell_compare_key(RQ_ORDER_DEFAULT, &d.cell, &last), 0);
        rq__delta_clear(&d);
        rq__sidecar_free(NULL, s);
        rq_buf_clear(&bytes);
    }
    free(row);
}

static void damaged_blocks_never_lead_outside(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(); seed < first_seed() + 300; seed++) {
        block b;
        block_begin(&b, seed);
        for (int round = 0; round < 5; round++) {
            size_t len = pick(&b, (unsigned)b.encoded.len) + 1;
            /* exact size, so that a sanitizer detects an overrun by one byte */
            uint8_t *bytes = malloc(len);
            assert_non_null(bytes);
            memcpy(bytes, b.encoded.ptr, len);
            for (unsigned i = pick(&b, 4); i > 0; i--)
                bytes[pick(&b, (unsigned)len)] = (uint8_t)rq_random_next(&b.random);
            rq_buf out = {0};
            rq_slice payload = rq_slice_of(bytes, len);
            if (b.packs_tags && rq__delta_unpack_tags(b.shape, payload, &out) == RQ_OK)
                payload = rq_buf_slice(&out);
            rq__delta d = {0};
            uint64_t sum = 0;
            while (d.next_pos < payload.len && rq__delta_next(&d, b.shape, payload) == RQ_OK) {
                for (uint32_t i = 0; i < d.cell.value_len; i++)
                    sum += d.cell.value[i];
                for (uint32_t i = 0; i < d.cell.tags_len; i++)
                    sum += d.cell.tags[i];
                for (uint32_t i = 0; i < d.key_len; i++)
                    sum += d.key[i];
            }
            CHECK(&b, sum != UINT64_MAX);
            rq__delta_clear(&d);
            rq_buf_clear(&out);
            free(bytes);
        }
        block_end(&b);
    }
}

/* Cells of a few bytes with the same tag of 60 KB, until the decoded cells take `whole` bytes. */
static void put_cells_of_a_long_tag(rq__delta_shape shape, size_t whole, rq_buf *out)
{
    const size_t tag_len = 60000;
    rq__tag_dictionary dictionary = {0};
    uint8_t *tags = calloc(1, 2 + tag_len);
    assert_non_null(tags);
    rq_put_be16(tags, (uint16_t)tag_len);
    rq_cell last = {0};
    for (size_t i = 0; i < whole / tag_len; i++) {
        rq_cell c = {.row = (const uint8_t *)"r",
                     .row_len = 1,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = (int64_t)(whole - i),
                     .type = RQ_TYPE_PUT,
                     .tags = tags,
                     .tags_len = (uint16_t)(2 + tag_len)};
        assert_int_equal(encode(shape, &c, i == 0 ? NULL : &last, &dictionary, out), RQ_OK);
        last = c;
    }
    rq__tag_dictionary_clear(&dictionary);
    free(tags);
}

/* A block of 200 KB whose tags decode to 1000 MB is damage or an attack, and is refused before it
 * takes much memory. A decoded size of 60 MB is possible in a family with large blocks. */
static void a_small_block_does_not_become_a_gigabyte(void **state)
{
    (void)state;
    rq__delta_shape shape = {.encoding = RQ_ENCODING_FAST_DIFF, .has_tags = true};
    for (int hostile = 0; hostile < 2; hostile++) {
        rq_buf packed = {0}, out = {0};
        put_cells_of_a_long_tag(shape, hostile ? 1000000000 : 60000000, &packed);
        assert_true(packed.len < 300000);
        assert_int_equal(rq__delta_unpack_tags(shape, rq_buf_slice(&packed), &out),
                         hostile ? RQ_E_CORRUPT : RQ_OK);
        assert_true(out.cap < 300000000);
        rq_buf_clear(&packed);
        rq_buf_clear(&out);
    }
}

static void tags_that_are_none_are_refused(void **state)
{
    (void)state;
    rq__tag_dictionary tags = {0};
    rq_buf out = {0};
    assert_int_equal(rq__tag_dictionary_pack(&tags, RQ_SLICE_LIT("\0\5ab"), &out), RQ_E_INVALID);
    rq__tag_dictionary_clear(&tags);
    rq_buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_come_back_as_they_were),
        cmocka_unit_test(reading_goes_on_from_checkpoints_and_copies),
        cmocka_unit_test(shared_bytes_are_counted_exactly),
        cmocka_unit_test(many_long_keys_make_few_checkpoints),
        cmocka_unit_test(damaged_blocks_never_lead_outside),
        cmocka_unit_test(a_small_block_does_not_become_a_gigabyte),
        cmocka_unit_test(tags_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
