/* SPDX-License-Identifier: Apache-2.0 */
/* The memstore's skip list compared with a sorted array. */
#include "base/asan.h"
#include "base/random.h"
#include "store/segment_list.h"

#include "numbered.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct model_cell {
    char row[24];
    char qualifier[8];
    char value[400];
    rq_cell cell;
} model_cell;

typedef struct model {
    rq_random random;
    rq_cell_order order;
    bool decimal;       /* rows are mostly padded numbers */
    model_cell **cells; /* in order, unique by key and seqid */
    size_t count;
} model;

static void fill(model *m, model_cell *c)
{
    static const uint8_t types[] = {RQ_TYPE_PUT, RQ_TYPE_PUT, RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN,
                                    RQ_TYPE_DELETE_FAMILY};
    static const char *const meta_rows[] = {"t,%03u,1.x.", "t,,%u", "t%u,a,b,9", "%u"};
    unsigned n = (unsigned)rq_random_below(&m->random, 200);
    if (m->order == RQ_ORDER_META)
        snprintf(c->row, sizeof c->row, meta_rows[n % 4], n);
    else if (m->decimal)
        snprintf(c->row, sizeof c->row, "id-%018u", n * 7919u);
    else
        snprintf(c->row, sizeof c->row, "%.*s%u", (int)(n % 12), "common-prefix", n);
    /* Once ranks are made for digits: truncated rows, or rows with the bytes next to '0' and
     * '9'. */
    if (m->decimal && m->count > 1100 && n % 5 == 0)
        c->row[rq_random_below(&m->random, 21)] = "/:\x01~\0"[rq_random_below(&m->random, 5)];
    snprintf(c->qualifier, sizeof c->qualifier, "q%u", (unsigned)rq_random_below(&m->random, 3));
    size_t len = rq_random_below(&m->random, 10) == 0 ? 399 : 8;
    snprintf(c->value, sizeof c->value, "%0*" PRIu64, (int)len,
             rq_random_next(&m->random) % 100000);
    c->cell = (rq_cell){
        .row = (uint8_t *)c->row,
        .row_len = (uint16_t)strlen(c->row),
        .family = (const uint8_t *)"fg",
        .family_len = rq_random_below(&m->random, 10) == 0 ? 2 : 1,
        .qualifier = (uint8_t *)c->qualifier,
        .qualifier_len = (uint32_t)strlen(c->qualifier),
        .value = (uint8_t *)c->value,
        .value_len = (uint32_t)len,
        .timestamp = (int64_t)rq_random_below(&m->random, 5),
        .type = types[rq_random_below(&m->random, sizeof types)],
        .seqid = 1 + rq_random_below(&m->random, 4),
    };
    /* without family and qualifier: after all cells of its row */
    if (rq_random_below(&m->random, 20) == 0) {
        c->cell.type = RQ_TYPE_MINIMUM;
        if (rq_random_below(&m->random, 4) > 0) c->cell.qualifier_len = 0;
        if (rq_random_below(&m->random, 4) > 0) c->cell.family_len = 0;
    }
}

/* Index of the first cell >= key. */
static size_t model_seek(const model *m, const rq_cell *key)
{
    size_t i = 0;
    while (i < m->count && rq_cell_compare(m->order, &m->cells[i]->cell, key) < 0)
        i++;
    return i;
}

static void model_add(model *m, model_cell *c)
{
    size_t i = model_seek(m, &c->cell);
    if (i < m->count && rq_cell_compare(m->order, &m->cells[i]->cell, &c->cell) == 0) {
        free(m->cells[i]);
    } else {
        memmove(&m->cells[i + 1], &m->cells[i], (m->count - i) * sizeof *m->cells);
        m->count++;
    }
    m->cells[i] = c;
}

static void assert_same(const model *m, size_t i, const rq_segment_cursor *c, uint64_t seed)
{
    rq_cell got;
    if (i == m->count) {
        if (rq__segment_cursor_valid(c)) fail_msg("seed %" PRIu64 ": a cell behind the end", seed);
        return;
    }
    if (!rq__segment_cursor_valid(c)) fail_msg("seed %" PRIu64 ": cell %zu is missing", seed, i);
    rq__segment_cursor_cell(c, &got);
    const rq_cell *want = &m->cells[i]->cell;
    if (rq_cell_compare(m->order, &got, want) != 0 ||
        !rq_slice_eq(rq_cell_value(&got), rq_cell_value(want)))
        fail_msg("seed %" PRIu64 ": cell %zu differs", seed, i);
}

/* Adds several cells at once, unordered, one of them twice. */
static void add_many(rq_segment *s, model *m)
{
    rq_segment_fresh list[40];
    size_t count = 1 + rq_random_below(&m->random, RQ_ARRAY_LEN(list) - 1);
    for (size_t i = 0; i < count; i++) {
        model_cell *fresh = calloc(1, sizeof *fresh);
        fill(m, fresh);
        assert_int_equal(rq_segment_prepare(s, &fresh->cell, &list[i].node), RQ_OK);
        list[i].seqid = fresh->cell.seqid;
        model_add(m, fresh);
    }
    rq_segment_link_all(s, list, count);
}

static void check_against_model(uint64_t seed, rq_cell_order order, bool decimal)
{
    enum { ADDS = 1600 }; /* enough for both renewals of the ranks */
    model m = {.order = order, .decimal = decimal};
    m.cells = calloc(ADDS * 5, sizeof(model_cell *));
    rq_segment *s;
    rq_segment_cursor c;
    rq_random_seed(&m.random, seed);
    assert_int_equal(rq_segment_new(order, &s), RQ_OK);
    for (size_t n = 0; n < ADDS; n++) {
        model_cell *fresh = calloc(1, sizeof *fresh);
        fill(&m, fresh);
        if (rq_random_below(&m.random, 8) == 0) { /* prepared but not linked */
            rq_segment_node *a;
            rq_segment_node *b;
            assert_int_equal(rq_segment_prepare(s, &fresh->cell, &a), RQ_OK);
            assert_int_equal(rq_segment_prepare(s, &fresh->cell, &b), RQ_OK);
            rq_segment_rollback(s, a);
            free(fresh);
            continue;
        }
        assert_int_equal(rq_segment_add(s, &fresh->cell), RQ_OK);
        model_add(&m, fresh);
        if (rq_random_below(&m.random, 16) == 0) add_many(s, &m);
        model_cell wanted;
        fill(&m, &wanted);
        size_t at = model_seek(&m, &wanted.cell);
        rq__segment_seek(&c, s, &wanted.cell);
        assert_same(&m, at, &c, seed);
        rq__segment_seek_before(&c, s, &wanted.cell);
        assert_same(&m, at == 0 ? m.count : at - 1, &c, seed);
    }
    rq_segment_first(&c, s);
    size_t bytes = 0;
    for (size_t i = 0; i < m.count; i++) {
        assert_same(&m, i, &c, seed);
        rq__segment_cursor_next(&c);
        bytes += rq_cell_serialized_len(&m.cells[i]->cell, true);
    }
    assert_false(rq__segment_cursor_valid(&c));
    assert_int_equal(rq_segment_cell_count(s), m.count);
    assert_int_equal(rq_segment_data_bytes(s), bytes);
    for (size_t i = 0; i < m.count; i++)
        free(m.cells[i]);
    free(m.cells);
    rq_segment_unref(s);
}

static void a_segment_holds_what_a_sorted_array_would(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        check_against_model(seed, seed % 4 == 0 ? RQ_ORDER_META : RQ_ORDER_DEFAULT, seed % 2 == 1);
}

static void an_empty_segment_is_small_and_says_so(void **state)
{
    (void)state;
    rq_segment *s;
    int64_t min;
    int64_t max;
    rq_segment_cursor c;
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
    assert_true(rq_segment_heap_bytes(s) < 1024);
    rq__segment_time_range(s, &min, &max);
    assert_true(min > max);
    rq_segment_first(&c, s);
    assert_false(rq__segment_cursor_valid(&c));
    char row[16];
    rq_cell one = numbered(row, 1, 1);
    assert_int_equal(rq_segment_add(s, &one), RQ_OK);
    assert_true(rq_segment_heap_bytes(s) < 8192);
    rq_segment_unref(s);
}

static void rolled_back_memory_is_used_again(void **state)
{
    (void)state;
    rq_segment *s;
    static uint8_t big[300000];
    char row[16];
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
    rq_cell c = numbered(row, 1, 1);
    assert_int_equal(rq_segment_add(s, &c), RQ_OK);
    size_t before = rq_segment_heap_bytes(s);
    for (int i = 0; i < 100; i++) {
        rq_segment_node *n;
        rq_segment_node *more;
        rq_cell d = numbered(row, 2, 2);
        d.value = big;
        d.value_len = sizeof big;
        assert_int_equal(rq_segment_prepare(s, &c, &n), RQ_OK);
        assert_int_equal(rq_segment_prepare(s, &d, &more), RQ_OK);
        rq_segment_rollback(s, n);
    }
    assert_int_equal(rq_segment_heap_bytes(s), before);
    rq_segment_unref(s);
}

/* Writes a row's columns one after another, repeatedly: each write is inserted a few cells after
 * the previous one. */
static void wide_rows_are_written_again(void **state)
{
    (void)state;
    enum { CELLS = 3000 };
    for (uint64_t seed = 1; seed <= 12; seed++) {
        model m = {.order = RQ_ORDER_DEFAULT};
        m.cells = calloc(CELLS, sizeof(model_cell *));
        rq_segment *s;
        rq_random_seed(&m.random, seed);
        assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
        for (uint64_t n = 0; n < CELLS;) {
            unsigned row = (unsigned)rq_random_below(&m.random, seed % 3 == 0 ? 2 : 40);
            uint64_t leave_out = 1 + rq_random_below(&m.random, 9);
            for (unsigned at_column = 0; at_column < 30 && n < CELLS; at_column++, n++) {
                model_cell *fresh = calloc(1, sizeof *fresh);
                if (rq_random_below(&m.random, leave_out) > 0) at_column++;
                /* sometimes with an equal key */
                fresh->cell = numbered(fresh->row, row, 1 + n / 100);
                snprintf(fresh->qualifier, sizeof fresh->qualifier, "q%03u", at_column);
                snprintf(fresh->value, sizeof fresh->value, "%" PRIu64, n);
                fresh->cell.qualifier = (uint8_t *)fresh->qualifier;
                fresh->cell.qualifier_len = 4;
                fresh->cell.value = (uint8_t *)fresh->value;
                fresh->cell.value_len = (uint32_t)strlen(fresh->value);
                assert_int_equal(rq_segment_add(s, &fresh->cell), RQ_OK);
                model_add(&m, fresh);
            }
        }
        rq_segment_cursor c;
        rq_segment_first(&c, s);
        for (size_t i = 0; i < m.count; i++) {
            rq_segment_cursor found;
            assert_same(&m, i, &c, seed);
            rq__segment_seek(&found, s, &m.cells[i]->cell);
            assert_same(&m, i, &found, seed);
            rq__segment_cursor_next(&c);
        }
        assert_false(rq__segment_cursor_valid(&c));
        for (size_t i = 0; i < m.count; i++)
            free(m.cells[i]);
        free(m.cells);
        rq_segment_unref(s);
    }
}

/* --- batches ---------------------------------------------------------------------------------- */

/* Two families' segments, filled by batches or cell by cell. */
typedef struct families {
    rq_segment *segments[2];
    rq_segment_pending batch[200];
} families;

static void families_open(families *f)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &f->segments[i]), RQ_OK);
}

static void families_link(families *f, size_t count, uint64_t seqid, bool together)
{
    if (together) rq_segment_link_batch(f->batch, count, seqid, 7);
    for (size_t i = 0; i < count && !together; i++)
        rq__segment_link(f->batch[i].segment, f->batch[i].node, seqid);
}

/* Compares in order as well, which does not depend on the search of either list. */
static void assert_alike(const rq_segment *a, const rq_segment *b, uint64_t seed)
{
    rq_segment_cursor x, y;
    rq_cell cx, cy, before = {0};
    assert_int_equal(rq_segment_cell_count(a), rq_segment_cell_count(b));
    rq_segment_first(&x, a);
    for (rq_segment_first(&y, b); rq__segment_cursor_valid(&y); rq__segment_cursor_next(&y)) {
        assert_true(rq__segment_cursor_valid(&x));
        rq__segment_cursor_cell(&x, &cx);
        rq__segment_cursor_cell(&y, &cy);
        if (rq_cell_compare(RQ_ORDER_DEFAULT, &cx, &cy) != 0 ||
            !rq_slice_eq(rq_cell_value(&cx), rq_cell_value(&cy)))
            fail_msg("seed %" PRIu64 ": a cell differs", seed);
        if (before.row != NULL && rq_cell_compare(RQ_ORDER_DEFAULT, &before, &cx) >= 0)
            fail_msg("seed %" PRIu64 ": a cell is not behind the one before it", seed);
        before = cx;
        rq__segment_cursor_next(&x);
    }
    assert_false(rq__segment_cursor_valid(&x));
}

/* Newer and older versions and markers, including the type with its own sort rule. */
static void draw_version(rq_random *random, rq_cell *c)
{
    static const uint8_t types[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN,
                                    RQ_TYPE_DELETE_FAMILY_VERSION, RQ_TYPE_DELETE_FAMILY,
                                    RQ_TYPE_MINIMUM};
    c->timestamp = 100 + (int64_t)rq_random_below(random, 3);
    if (rq_random_below(random, 16) == 0)
        c->type = types[rq_random_below(random, RQ_ARRAY_LEN(types))];
}

/* Rows of few or many columns in either family, of small or large cells, some columns twice. */
static size_t prepare_batch(families *to[2], rq_random *random, unsigned rows)
{
    static const uint8_t value[700];
    size_t count = 0;
    size_t wanted = 1 + rq_random_below(random, RQ_ARRAY_LEN(to[0]->batch));
    while (count < wanted) {
        char row[24], qualifier[8];
        rq_cell c = numbered(row, (unsigned)rq_random_below(random, rows), 0);
        rq_cell as_put = c;
        size_t columns = rq_random_below(random, 3) == 0 ? 1 : 1 + rq_random_below(random, 30);
        bool versions = rq_random_below(random, 4) == 0;
        for (size_t n = 0; n < columns && count < wanted; n++, count++) {
            size_t family = n < columns / 2;
            c = as_put;
            if (versions) draw_version(random, &c);
            snprintf(qualifier, sizeof qualifier, "q%03zu", n - n % 7 / 6);
            c.qualifier = (uint8_t *)qualifier;
            c.qualifier_len = 4;
            c.value = value;
            c.value_len = rq_random_below(random, 4) == 0 ? sizeof value : 20;
            for (int i = 0; i < 2; i++) {
                rq_segment_pending *p = &to[i]->batch[count];
                p->segment = to[i]->segments[family];
                assert_int_equal(rq_segment_prepare(p->segment, &c, &p->node), RQ_OK);
            }
        }
    }
    return count;
}

static void a_batch_is_linked_as_its_cells_one_by_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        families a, b;
        families *both[2] = {&a, &b};
        rq_random random;
        rq_random_seed(&random, seed);
        families_open(&a);
        families_open(&b);
        unsigned rows = seed % 2 == 0 ? 100 : 4000;
        for (uint64_t n = 1; n <= 150; n++) {
            size_t count = prepare_batch(both, &random, rows);
            families_link(&a, count, n, true);
            families_link(&b, count, n, false);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(rq_segment_written_since(a.segments[i]), 7);
            assert_alike(a.segments[i], b.segments[i], seed);
            rq_segment_unref(a.segments[i]);
            rq_segment_unref(b.segments[i]);
        }
    }
}

/* --- many cells: searches begin at fences ----------------------------------------------------- */

#define MANY 12000

/* The row of the nth insert: several orders of arrival, and rows that ranks cannot distinguish. */
static unsigned arriving(rq_random *random, unsigned shape, unsigned n)
{
    switch (shape) {
    case 0:
        return (unsigned)rq_random_below(random, 1000000);
    case 1:
        return n; /* ascending order */
    case 2:
        return MANY - n; /* descending order */
    case 3:
        return n % 64 == 0 ? (unsigned)rq_random_below(random, 1000000) : 500000 + n;
    case 4:
        return (unsigned)rq_random_below(random, MANY / 2); /* two inserts per row on average */
    default:
        return n < MANY / 2 ? 2 * n : 2 * (MANY - n) + 1; /* ascending, then descending */
    }
}

static rq_cell many_cell(char row[40], unsigned shape, unsigned n)
{
    /* In even shapes the digits are within the bytes that make ranks, in odd ones after those
     * bytes. */
    snprintf(row, 40, shape % 2 == 0 ? "r%07u" : "r%c-same-for-all-%07u",
             shape % 2 == 0 ? n : 'a' + n / 250000 % 26, n);
    return (rq_cell){.row = (uint8_t *)row,
                     .row_len = (uint16_t)strlen(row),
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = 1,
                     .type = RQ_TYPE_PUT,
                     .seqid = 1};
}

static unsigned many_number(const rq_cell *c)
{
    return (unsigned)strtoul((const char *)c->row + c->row_len - 7, NULL, 10);
}

/* Seeks must find the same node as a walk along the lowest links, which uses no fence. */
static void seeks_find_what_walking_finds(rq_segment *s, rq_random *random, unsigned shape)
{
    size_t count = 0;
    unsigned *walked = calloc(rq_segment_cell_count(s), sizeof *walked);
    rq_segment_cursor c;
    rq_cell got;
    char row[40];
    for (rq_segment_first(&c, s); rq__segment_cursor_valid(&c); rq__segment_cursor_next(&c)) {
        rq__segment_cursor_cell(&c, &got);
        assert_true(count < rq_segment_cell_count(s));
        walked[count++] = many_number(&got);
        if (count > 1) assert_true(walked[count - 2] < walked[count - 1]);
    }
    assert_int_equal(count, rq_segment_cell_count(s));
    for (int i = 0; i < 500; i++) {
        unsigned n = i % 2 == 0 ? walked[rq_random_below(random, count)]
                                : (unsigned)rq_random_below(random, 1100000);
        size_t from = 0;
        for (size_t to = count; from < to;) {
            size_t mid = (from + to) / 2;
            if (walked[mid] < n)
                from = mid + 1;
            else
                to = mid;
        }
        rq_cell key = many_cell(row, shape, n);
        rq__segment_seek(&c, s, &key);
        assert_int_equal(rq__segment_cursor_valid(&c), from < count);
        if (from < count) {
            rq__segment_cursor_cell(&c, &got);
            assert_int_equal(many_number(&got), walked[from]);
        }
        rq__segment_seek_before(&c, s, &key);
        assert_int_equal(rq__segment_cursor_valid(&c), from > 0);
        if (from > 0) {
            rq__segment_cursor_cell(&c, &got);
            assert_int_equal(many_number(&got), walked[from - 1]);
        }
    }
    free(walked);
}

/* Every level is a subset of the one below, in the same order; a fence has the height that it
 * states. */
static void levels_are_parts_of_each_other(const rq_segment *s)
{
    for (unsigned level = 1; level < HEIGHT_MAX; level++) {
        const rq_segment_node *below = head_of(s);
        for (const rq_segment_node *n = next_of(head_of(s), level); n != NULL;
             n = next_of(n, level)) {
            while (below != NULL && below != n)
                below = next_of(below, level - 1);
            assert_ptr_equal(below, n);
        }
    }
    const rq_fences *f = atomic_load(&s->fences);
    size_t high = 0;
    for (unsigned above = 1; f != NULL && above <= RQ_FENCE_ABOVE_MAX; above++) {
        const rq_segment_node *n = head_of(s);
        for (size_t i = 0; i < rq__fences_count(f); i++) {
            if (rq__fences_above(f, i) < above || !rq__fences_holds(f, i)) continue;
            while (n != NULL && n != rq__fences_node(f, i))
                n = next_of(n, FENCE_LEVEL + above);
            assert_non_null(n);
            high++;
        }
    }
    assert_true(f == NULL || high > rq__fences_count(f) / 4); /* 7/8 are expected */
}

static void many_cells_are_found_from_fences(void **state)
{
    (void)state;
    static uint8_t seen[1100000];
    for (unsigned shape = 0; shape < 6; shape++) {
        rq_segment *s;
        rq_random random;
        char row[40];
        size_t distinct = 0;
        memset(seen, 0, sizeof seen);
        rq_random_seed(&random, shape + 1);
        assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
        for (unsigned n = 0; n < MANY; n++) {
            unsigned number = arriving(&random, shape, n);
            rq_cell c = many_cell(row, shape, number);
            distinct += !seen[number];
            seen[number] = 1;
            assert_int_equal(rq_segment_add(s, &c), RQ_OK);
            if (n % 3001 == 3000) seeks_find_what_walking_finds(s, &random, shape);
        }
        assert_int_equal(rq_segment_cell_count(s), distinct);
        seeks_find_what_walking_finds(s, &random, shape);
        levels_are_parts_of_each_other(s);
        rq_segment_unref(s);
    }
}

/* Rows of twenty columns, written repeatedly: most searches begin at the previous cell, and the
 * paths of high nodes at fences. */
static void rows_of_many_columns_keep_their_levels(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 4; seed++) {
        rq_segment *s;
        rq_random random;
        char row[40];
        char qualifier[8];
        rq_random_seed(&random, seed);
        assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
        unsigned number = 0;
        for (unsigned n = 0; n < 100000; n++) {
            if (n % 20 == 0) number = (unsigned)rq_random_below(&random, 700);
            rq_cell c = many_cell(row, 1, number);
            c.qualifier_len = (uint32_t)snprintf(qualifier, sizeof qualifier, "q%02u", n % 20);
            c.qualifier = (const uint8_t *)qualifier;
            c.timestamp = 1 + n / 20 / (seed % 2 == 0 ? 1 : 300); /* some cells are replaced */
            assert_int_equal(rq_segment_add(s, &c), RQ_OK);
        }
        levels_are_parts_of_each_other(s);
        rq_segment_unref(s);
    }
}

/* Ranks are made from the common prefix of the first thousand rows. All rows after those have the
 * highest rank, so fences there differ only in their bytes. */
static void a_replaced_fence_is_not_begun_at_whatever_its_rank(void **state)
{
    (void)state;
    rq_segment *s;
    rq_random random;
    char row[40];
    rq_random_seed(&random, 1);
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
    for (unsigned n = 0; n < 1100 + MANY; n++) {
        rq_cell c = many_cell(row, 1, 2 * (unsigned)rq_random_below(&random, 125000));
        if (n >= 1100) row[0] = 'z';
        assert_int_equal(rq_segment_add(s, &c), RQ_OK);
    }
    /* each is replaced, then a cell is put directly after it */
    for (unsigned n = 0; n < 1000; n++) {
        rq_segment_cursor at;
        rq_cell old;
        char copy[40];
        rq_cell key = many_cell(row, 1, (unsigned)rq_random_below(&random, 250000));
        row[0] = 'z';
        rq__segment_seek(&at, s, &key);
        if (!rq__segment_cursor_valid(&at)) continue;
        rq__segment_cursor_cell(&at, &old);
        memcpy(copy, old.row, old.row_len);
        old.row = (const uint8_t *)copy;
        assert_int_equal(rq_segment_add(s, &old), RQ_OK);
        copy[old.row_len] = 'x';
        rq_cell behind = old;
        behind.row_len++;
        assert_int_equal(rq_segment_add(s, &behind), RQ_OK);
        rq__segment_seek(&at, s, &behind);
        assert_true(rq__segment_cursor_valid(&at));
        rq__segment_cursor_cell(&at, &old);
        assert_true(rq_cell_same_row(&old, &behind));
    }
    rq_segment_unref(s);
}

/* A segment takes at most 1.5 times the bytes of cells of 100 bytes. Part `memory` of make
 * bench-rpc measures this on a whole server. Fences count with their reserved memory, most of which
 * is never touched. */
static void a_hundred_bytes_take_half_as_much_again_at_most(void **state)
{
    rq_segment *s;
    rq_random random;
    static const uint8_t value[57];
    char row[24];
    (void)state;
    rq_random_seed(&random, 1);
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s), RQ_OK);
    for (size_t i = 0; i < 100000; i++) {
        snprintf(row, sizeof row, "%016" PRIx64, rq_random_next(&random));
        rq_cell c = {.row = (uint8_t *)row,
                     .row_len = 16,
                     .family = (const uint8_t *)"cf",
                     .family_len = 2,
                     .qualifier = (const uint8_t *)"q0000",
                     .qualifier_len = 5,
                     .value = value,
                     .value_len = sizeof value,
                     .type = RQ_TYPE_PUT,
                     .seqid = i};
        assert_int_equal(rq_segment_add(s, &c), RQ_OK);
    }
    size_t plain = (100 + RQ_RED_ZONE) * rq_segment_cell_count(s);
    assert_in_range(rq_segment_heap_bytes(s), plain, plain * 155 / 100);
    rq_segment_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_holds_what_a_sorted_array_would),
        cmocka_unit_test(an_empty_segment_is_small_and_says_so),
        cmocka_unit_test(rolled_back_memory_is_used_again),
        cmocka_unit_test(wide_rows_are_written_again),
        cmocka_unit_test(a_batch_is_linked_as_its_cells_one_by_one),
        cmocka_unit_test(many_cells_are_found_from_fences),
        cmocka_unit_test(rows_of_many_columns_keep_their_levels),
        cmocka_unit_test(a_replaced_fence_is_not_begun_at_whatever_its_rank),
        cmocka_unit_test(a_hundred_bytes_take_half_as_much_again_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
