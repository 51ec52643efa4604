/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of cells: a total order, keys as bounds, round trips of bytes, refusal of bad bytes.
 * Inputs are random; the seed is printed, and SEED repeats a run. */
#include "cell/cellblock.h"

#include "../../seeds.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define ROUNDS 20000

static rq_random dice;

static size_t below(size_t n)
{
    return (size_t)rq_random_below(&dice, n);
}

typedef struct random_cell {
    rq_cell cell;
    uint8_t bytes[700];
} random_cell;

/* Short strings of few letters, which collide often; occasionally a long string. */
static size_t random_bytes(uint8_t *out, size_t max)
{
    size_t len = below(10) == 0 ? below(max + 1) : below(max < 4 ? max + 1 : 4);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t) "ab\0\xff"[below(4)];
    return len;
}

static void fill(random_cell *r, bool with_tags)
{
    static const uint8_t types[] = {RQ_TYPE_PUT, RQ_TYPE_DELETE, RQ_TYPE_DELETE_FAMILY_VERSION,
                                    RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    uint8_t *b = r->bytes;
    rq_cell *c = &r->cell;
    *c = (rq_cell){
        .type = types[below(sizeof types)], .timestamp = (int64_t)below(4), .seqid = below(3)};
    c->row = b, c->row_len = (uint16_t)random_bytes(b, 150), b += c->row_len;
    c->family = b, c->family_len = (uint8_t)random_bytes(b, 127), b += c->family_len;
    c->qualifier = b, c->qualifier_len = (uint32_t)random_bytes(b, 150), b += c->qualifier_len;
    c->value = b, c->value_len = (uint32_t)random_bytes(b, 150), b += c->value_len;
    if (!with_tags || below(2) == 0) return;
    c->tags = b;
    for (size_t n = 1 + below(3); n > 0; n--) {
        size_t len = 1 + below(5);
        rq_put_be16(b, (uint16_t)len);
        b[2] = (uint8_t)(below(2) ? RQ_TAG_TTL : 1 + below(7));
        memset(b + 3, (int)n, len - 1);
        b += 2 + len;
    }
    c->tags_len = (uint16_t)(b - c->tags);
}

static int naive_compare(const rq_cell *a, const rq_cell *b)
{
    int c = rq_slice_compare(rq_cell_row(a), rq_cell_row(b));
    if (c == 0) c = rq_slice_compare(rq_cell_family(a), rq_cell_family(b));
    if (c == 0) c = rq_slice_compare(rq_cell_qualifier(a), rq_cell_qualifier(b));
    if (c == 0) c = (a->timestamp < b->timestamp) - (a->timestamp > b->timestamp);
    if (c == 0) c = (int)b->type - (int)a->type;
    if (c == 0) c = (a->seqid < b->seqid) - (a->seqid > b->seqid);
    return c;
}

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static void order_is_that_of_the_parts(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        random_cell a;
        random_cell b;
        fill(&a, false);
        fill(&b, false);
        assert_int_equal(sign(rq_cell_compare(RQ_ORDER_DEFAULT, &a.cell, &b.cell)),
                         sign(naive_compare(&a.cell, &b.cell)));
        rq_cell same_seqid = b.cell;
        same_seqid.seqid = a.cell.seqid;
        assert_int_equal(sign(rq_cell_compare_key(RQ_ORDER_DEFAULT, &a.cell, &b.cell)),
                         sign(naive_compare(&a.cell, &same_seqid)));
        assert_int_equal(rq_cell_same_row(&a.cell, &b.cell),
                         rq_slice_eq(rq_cell_row(&a.cell), rq_cell_row(&b.cell)));
        bool same_column = rq_slice_eq(rq_cell_family(&a.cell), rq_cell_family(&b.cell)) &&
                           rq_slice_eq(rq_cell_qualifier(&a.cell), rq_cell_qualifier(&b.cell));
        assert_int_equal(rq_cell_same_column(&a.cell, &b.cell), same_column);
        assert_int_equal(rq_cell_compare_column(&a.cell, &b.cell) == 0, same_column);
    }
}

static void bounds_enclose_what_they_bound(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        random_cell r;
        fill(&r, false);
        const rq_cell *c = &r.cell;
        rq_slice row = rq_cell_row(c);
        rq_slice family = rq_cell_family(c);
        rq_slice qualifier = rq_cell_qualifier(c);
        rq_cell first = rq_cell_first_on_row(row);
        rq_cell last = rq_cell_last_on_row(row);
        rq_cell first_column = rq_cell_first_on_column(row, family, qualifier);
        rq_cell first_ts = rq_cell_first_on_column_ts(row, family, qualifier, c->timestamp);
        rq_cell last_column = rq_cell_last_on_column(row, family, qualifier);
        /* The first cell of a row without a column and the end of the row differ only in their
         * type. */
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, &first, c) < 0);
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, c, &last) < 0);
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, &last, c) > 0);
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, &first_column, c) < 0);
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, &first_ts, c) < 0);
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, c, &last_column) < 0);
        rq_cell newer = *c;
        newer.timestamp++;
        assert_true(rq_cell_compare(RQ_ORDER_DEFAULT, &newer, &first_ts) < 0);
    }
}

static bool same_cell(const rq_cell *a, const rq_cell *b)
{
    return rq_cell_compare_key(RQ_ORDER_DEFAULT, a, b) == 0 &&
           rq_slice_eq(rq_cell_value(a), rq_cell_value(b)) && a->tags_len == b->tags_len &&
           (a->tags_len == 0 || memcmp(a->tags, b->tags, a->tags_len) == 0);
}

static void bytes_come_back_and_no_part_of_them_is_a_cell(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS / 20; i++) {
        random_cell r;
        fill(&r, true);
        size_t len = rq_cell_serialized_len(&r.cell, true);
        /* exact size, so that ASan detects an overrun by one byte */
        uint8_t *bytes = malloc(len + 1);
        assert_non_null(bytes);
        rq_cell_serialize(&r.cell, true, bytes);
        rq_cell back;
        rq_error why = {0};
        assert_int_equal(rq__cell_parse(rq_slice_of(bytes, len), &back, &why), RQ_OK);
        assert_true(same_cell(&r.cell, &back));
        assert_int_equal(back.seqid, 0);
        size_t without_tags = rq_cell_serialized_len(&r.cell, false);
        for (size_t n = 0; n <= len + 1; n++) {
            rq_err rc = rq__cell_parse(rq_slice_of(bytes, n), &back, NULL);
            assert_int_equal(rc, n == len || n == without_tags ? RQ_OK : RQ_E_MALFORMED);
        }
        size_t key_len = rq_cell_key_len(&r.cell);
        rq_cell_serialize_key(&r.cell, bytes);
        assert_int_equal(rq__cell_parse_key(rq_slice_of(bytes, key_len), &back, &why), RQ_OK);
        assert_int_equal(rq_cell_compare_key(RQ_ORDER_DEFAULT, &back, &r.cell), 0);
        free(bytes);
    }
}

/* A parsed cell is copied in one piece, a cell with separate parts part by part. Later changes of
 * its fields are written in both cases. */
static void a_parsed_cell_is_written_as_its_parts_are(void **state)
{
    (void)state;
    static random_cell r;
    static uint8_t bytes[1024], whole[1024], parts[1024];
    for (int n = 0; n < ROUNDS; n++) {
        fill(&r, true);
        rq_cell_serialize(&r.cell, true, bytes);
        rq_cell parsed;
        size_t len = rq_cell_serialized_len(&r.cell, true);
        assert_int_equal(rq__cell_parse(rq_slice_of(bytes, len), &parsed, NULL), RQ_OK);
        if (below(2)) parsed.timestamp = r.cell.timestamp = (int64_t)below(1000);
        if (below(2)) parsed.type = r.cell.type = RQ_TYPE_DELETE;
        if (below(4) == 0) parsed.value_len = r.cell.value_len = 0;
        if (below(4) == 0) parsed.tags_len = r.cell.tags_len = 0;
        len = rq_cell_serialized_len(&r.cell, true);
        assert_int_equal(rq_cell_serialized_len(&parsed, true), len);
        rq_cell_serialize(&parsed, true, whole);
        rq_cell_serialize(&r.cell, true, parts);
        assert_memory_equal(whole, parts, len);
    }
}

static void flipped_bytes_never_reach_outside(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        random_cell r;
        fill(&r, true);
        size_t len = rq_cell_serialized_len(&r.cell, true);
        uint8_t *bytes = malloc(len);
        assert_non_null(bytes);
        rq_cell_serialize(&r.cell, true, bytes);
        for (size_t n = 1 + below(3); n > 0; n--)
            bytes[below(below(2) ? len : 12)] = (uint8_t)rq_random_next(&dice);
        rq_cell back;
        if (rq__cell_parse(rq_slice_of(bytes, len), &back, NULL) == RQ_OK) {
            uint8_t *again = malloc(len);
            assert_non_null(again);
            if (rq_cell_serialized_len(&back, true) == len) {
                rq_cell_serialize(&back, true, again);
                assert_memory_equal(again, bytes, len);
            } else { /* an empty tags part is not written */
                assert_int_equal(rq_cell_serialized_len(&back, true), len - 2);
            }
            rq_slice tag;
            (void)rq_cell_tag(&back, RQ_TAG_TTL, &tag);
            free(again);
        }
        free(bytes);
    }
}

static void unknown_types_and_negative_lengths_are_refused(void **state)
{
    (void)state;
    static const uint8_t row[] = "r";
    rq_cell c =
        rq_cell_first_on_column_ts(rq_slice_of(row, 1), RQ_SLICE_LIT("f"), RQ_SLICE_LIT("q"), 5);
    uint8_t bytes[64];
    size_t len = rq_cell_serialized_len(&c, false);
    for (unsigned type = 0; type < 256; type++) {
        c.type = (uint8_t)type;
        rq_cell_serialize(&c, false, bytes);
        rq_cell back;
        bool known = type == 0 || type == 4 || type == 8 || type == 10 || type == 12 ||
                     type == 14 || type == 255;
        assert_int_equal(rq__cell_parse(rq_slice_of(bytes, len), &back, NULL),
                         known ? RQ_OK : RQ_E_MALFORMED);
    }
    c.type = RQ_TYPE_PUT;
    static const struct {
        size_t at;
        uint8_t byte;
    } negative[] = {{0, 0x80}, {4, 0x80}, {8, 0x80}, {11, 0x80}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(negative); i++) {
        rq_cell back;
        rq_cell_serialize(&c, false, bytes);
        bytes[negative[i].at] = negative[i].byte;
        assert_int_equal(rq__cell_parse(rq_slice_of(bytes, len), &back, NULL), RQ_E_MALFORMED);
    }
}

static void tag_is_the_first_of_its_type(void **state)
{
    (void)state;
    static const uint8_t tags[] = {0, 3, 1,          'a', 'b', 0, 1,          2,
                                   0, 2, RQ_TAG_TTL, 'x', 0,   2, RQ_TAG_TTL, 'y'};
    rq_cell c = rq_cell_first_on_row(RQ_SLICE_LIT("r"));
    c.tags = tags;
    c.tags_len = sizeof tags;
    rq_slice tag;
    assert_true(rq_cell_tag(&c, RQ_TAG_TTL, &tag));
    assert_true(rq_slice_eq(tag, RQ_SLICE_LIT("x")));
    assert_true(rq_cell_tag(&c, 1, &tag));
    assert_true(rq_slice_eq(tag, RQ_SLICE_LIT("ab")));
    assert_true(rq_cell_tag(&c, 2, &tag));
    assert_int_equal(tag.len, 0);
    assert_false(rq_cell_tag(&c, 3, &tag));
}

static void block_gives_back_its_cells_and_can_be_cut(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        rq_cellblock b = {.with_tags = below(2) == 0};
        random_cell cells[20];
        size_t kept = below(20);
        for (size_t n = 0; n < kept; n++) {
            fill(&cells[n], true);
            assert_int_equal(rq_cellblock_append(&b, &cells[n].cell), RQ_OK);
        }
        rq_cellblock_mark mark = rq_cellblock_get_mark(&b);
        for (size_t n = below(5); n > 0; n--) {
            random_cell more;
            fill(&more, true);
            assert_int_equal(rq_cellblock_append(&b, &more.cell), RQ_OK);
        }
        rq_cellblock_truncate(&b, mark);
        assert_int_equal(b.count, kept);
        rq_cursor cursor = rq_cursor_of(rq_buf_slice(&b.bytes));
        for (size_t n = 0; n < kept; n++) {
            rq_cell back;
            rq_cell expected = cells[n].cell;
            if (!b.with_tags) expected.tags_len = 0;
            assert_int_equal(rq_cellblock_next(&cursor, &back, NULL), RQ_OK);
            assert_true(same_cell(&expected, &back));
        }
        rq_cell none;
        assert_int_equal(rq_cellblock_next(&cursor, &none, NULL), RQ_E_END);
        if (b.bytes.len > 0) { /* truncated inside its last cell */
            cursor = rq_cursor_of(rq_slice_of(b.bytes.ptr, b.bytes.len - 1));
            rq_err rc;
            while ((rc = rq_cellblock_next(&cursor, &none, NULL)) == RQ_OK)
                continue;
            assert_int_equal(rc, RQ_E_MALFORMED);
        }
        rq_cellblock_clear(&b);
    }
}

int main(void)
{
    uint64_t seed = seeds_number("SEED", (uint64_t)time(NULL));
    printf("SEED=%llu\n", (unsigned long long)seed);
    rq_random_seed(&dice, seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_that_of_the_parts),
        cmocka_unit_test(bounds_enclose_what_they_bound),
        cmocka_unit_test(bytes_come_back_and_no_part_of_them_is_a_cell),
        cmocka_unit_test(a_parsed_cell_is_written_as_its_parts_are),
        cmocka_unit_test(flipped_bytes_never_reach_outside),
        cmocka_unit_test(unknown_types_and_negative_lengths_are_refused),
        cmocka_unit_test(tag_is_the_first_of_its_type),
        cmocka_unit_test(block_gives_back_its_cells_and_can_be_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
