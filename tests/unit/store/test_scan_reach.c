/* SPDX-License-Identifier: Apache-2.0 */
/* The files, blocks and cells that a read accesses: it skips those that it does not need, and its
 * result does not depend on the skipping. */
#include "by_example.h"

#include "base/random.h"
#include "hfile/format.h"
#include "store/row_get.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- files and blocks that are not read ------------------------------------------------------- */
static void a_get_that_the_memstore_answers_reads_no_data_block(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.max_versions = 1;
    fixture *f = make(&schema, 1);
    for (int i = 0; i < 3; i++) {
        put(f, "r", "a", 10 + i, "old");
        flush(f);
    }
    put(f, "r", "a", 20, "new");
    rq_slice a = RQ_SLICE_LIT("a");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("f"), .qualifiers = &a, .qualifier_count = 1};
    rq_scan s = get_row("r");
    s.families = &wanted;
    s.family_count = 1;
    uint64_t before = f->ctx.blocks_used;
    assert_string_equal(read_all(f, &s), "r/f:a@20=new");
    assert_int_equal(f->ctx.blocks_used, before);
    /* Without a named column no file may be skipped. */
    s.family_count = 0;
    assert_string_equal(read_all(f, &s), "r/f:a@20=new");
    assert_true(f->ctx.blocks_used > before);
    drop(f);
}

static uint64_t data_blocks(const fixture *f)
{
    rq_block_cache_stats stats;
    rq_block_cache_get_stats(f->world.cache, &stats);
    return stats.hits[RQ_BLOCK_DATA] + stats.misses[RQ_BLOCK_DATA];
}

static void blooms_and_ranges_keep_reads_off_files(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 10, "x");
    put(f, "m", "q", 10, "x");
    put(f, "z", "q", 10, "x");
    flush(f);
    uint64_t before = data_blocks(f);
    rq_scan s = get_row("k");
    assert_string_equal(read_all(f, &s), ""); /* most likely denied by the bloom filter */
    s = get_row("zz");
    assert_string_equal(read_all(f, &s), ""); /* after the file's last key */
    s = everything();
    s.time_range = (rq_time_range){11, 20};
    assert_string_equal(read_all(f, &s), "");
    s.time_range = (rq_time_range){1, 10};
    assert_string_equal(read_all(f, &s), "");
    s = everything();
    s.stop_row = RQ_SLICE_LIT("A");
    assert_string_equal(read_all(f, &s), "");
    assert_int_equal(data_blocks(f), before);
    s = get_row("m");
    assert_string_equal(read_all(f, &s), "m/f:q@10=x");
    assert_true(data_blocks(f) > before);
    drop(f);
}

/* Damages a chunk of the only file's bloom filter. */
static void damage_bloom(fixture *f)
{
    rq_buf *file = memory_vfs_bytes(&f->world.vfs, f->world.stores[0].files[0].name);
    assert_non_null(file);
    uint8_t *chunk = memmem(file->ptr, file->len, "BLMFBLK2", 8);
    assert_non_null(chunk);
    chunk[RQ_HFILE_HEADER_LEN] ^= 0x55;
}

static void a_damaged_bloom_hides_nothing(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 10, "x");
    put(f, "m", "q", 10, "x");
    put(f, "z", "q", 10, "x");
    flush(f);
    damage_bloom(f);
    for (int i = 0; i < 3; i++) { /* first detected, later remembered */
        rq_scan s = get_row("m");
        assert_string_equal(read_all(f, &s), "m/f:q@10=x");
        s = get_row("k");
        assert_string_equal(read_all(f, &s), "");
    }
    drop(f);
}

static void blocks_enter_the_cache_if_family_and_scan_let_them(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        rq_family_schema schema = family("f");
        schema.block_cache = round != 0;
        fixture *f = make(&schema, 1);
        put(f, "m", "q", 10, "x");
        flush(f);
        rq_scan s = everything();
        s.cache_blocks = round != 1;
        assert_string_equal(read_all(f, &s), "m/f:q@10=x");
        rq_block_cache_stats stats;
        rq_block_cache_get_stats(f->world.cache, &stats);
        assert_int_equal(stats.inserted[RQ_BLOCK_DATA], round == 2);
        drop(f);
    }
}

static void columns_far_apart_are_sought_not_walked_to(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.block_bytes = 256;
    fixture *f = make(&schema, 1);
    char q[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(q, sizeof(q), "%05d", i);
        put(f, "r", q, 1, "v");
    }
    flush(f);
    rq_slice columns[] = {RQ_SLICE_LIT("00010"), RQ_SLICE_LIT("02500"), RQ_SLICE_LIT("04990")};
    rq_scan_family wanted = {
        .family = RQ_SLICE_LIT("f"), .qualifiers = columns, .qualifier_count = 3};
    rq_scan s = get_row("r");
    s.families = &wanted;
    s.family_count = 1;
    uint64_t before = data_blocks(f);
    assert_string_equal(read_all(f, &s), "r/f:00010@1=v r/f:02500@1=v r/f:04990@1=v");
    assert_true(data_blocks(f) - before < 20);
    drop(f);
}

static rq_err count_looks(void *context, rq_error *why)
{
    unsigned *left = context;
    if (*left == 0) return rq_fail(why, RQ_E_CANCELLED, "enough");
    --*left;
    return RQ_OK;
}

static void a_rewrite_that_drops_everything_is_looked_after_too(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    for (int i = 0; i < 1000; i++) {
        char row[8];
        snprintf(row, sizeof row, "r%03d", i);
        put(f, row, "q", 1, "v");
        del(f, row, "q", 1, RQ_TYPE_DELETE_COLUMN);
    }
    flush(f);
    const rq_store_version *v = &f->world.stores[0].version;
    unsigned looks = 1;
    rq_rewrite_options o = {.store = &f->world.stores[0],
                            .files = v->files,
                            .file_count = v->file_count,
                            .major = true,
                            .smallest_read_point = f->seqid,
                            .now_ms = f->world.now_ms,
                            .look = count_looks,
                            .look_context = &looks};
    rq_rewrite_scanner *s;
    rq_cell cell;
    assert_int_equal(rq__rewrite_scanner_open(&o, &s, NULL), RQ_OK);
    assert_int_equal(rq__rewrite_scanner_next(s, &cell, NULL), RQ_E_CANCELLED);
    rq__rewrite_scanner_close(s);
    looks = 100;
    assert_int_equal(rq__rewrite_scanner_open(&o, &s, NULL), RQ_OK);
    assert_int_equal(rq__rewrite_scanner_next(s, &cell, NULL), RQ_E_END);
    rq__rewrite_scanner_close(s);
    assert_in_range(looks, 90, 98);
    drop(f);
}

/* --- many cells to skip ----------------------------------------------------------------------- */

#define MANY 5000

static uint64_t passed_by_get(fixture *f, const char *qualifier, const char *expected)
{
    rq_slice column = rq_slice_cstr(qualifier);
    rq_scan_family wanted = {
        .family = RQ_SLICE_LIT("f"), .qualifiers = &column, .qualifier_count = 1};
    rq_scan s = get_row("r");
    s.max_versions = 1;
    s.families = &wanted;
    s.family_count = 1;
    uint64_t before = f->ctx.cells_passed;
    assert_string_equal(read_all(f, &s), expected);
    return f->ctx.cells_passed - before;
}

static void many_markers_of_one_version_are_passed_by_a_seek(void **state)
{
    (void)state;
    static const uint8_t types[] = {RQ_TYPE_PUT, RQ_TYPE_DELETE, RQ_TYPE_DELETE_FAMILY_VERSION,
                                    RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    for (size_t t = 0; t < RQ_ARRAY_LEN(types); t++) {
        for (int on_disk = 0; on_disk < 2; on_disk++) {
            rq_family_schema schema = family("f");
            fixture *f = make(&schema, 1);
            bool of_family =
                types[t] == RQ_TYPE_DELETE_FAMILY || types[t] == RQ_TYPE_DELETE_FAMILY_VERSION;
            bool hides_older =
                types[t] == RQ_TYPE_DELETE_FAMILY || types[t] == RQ_TYPE_DELETE_COLUMN;
            put(f, "r", "a", 6, "old");
            put(f, "r", "b", 9, "next");
            for (int i = 0; i < MANY; i++)
                add(f, "r", of_family ? "" : "a", 7, types[t], "");
            if (on_disk) flush(f);
            uint64_t passed = passed_by_get(f, "b", "r/f:b@9=next");
            assert_in_range(passed, 0, 512);
            const char *a = types[t] == RQ_TYPE_PUT ? "r/f:a@7=" : hides_older ? "" : "r/f:a@6=old";
            passed = passed_by_get(f, "a", a);
            assert_in_range(passed, 0, 512);
            drop(f);
        }
    }
}

/* HBase records each of them. */
static void many_markers_of_other_columns_are_not_read(void **state)
{
    (void)state;
    static const uint8_t types[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN};
    for (int variant = 0; variant < 8; variant++) {
        rq_family_schema schema = family("f");
        schema.new_version_behavior = variant % 4 >= 2;
        fixture *f = make(&schema, 1);
        put(f, "r", "a", 5, "first");
        for (int i = 0; i < MANY; i++) {
            char column[16];
            snprintf(column, sizeof column, "m%05d", i);
            add(f, "r", column, 7, types[variant % 2], "");
        }
        put(f, "r", "m02500x", 5, "middle");
        put(f, "r", "z", 5, "last");
        if (variant >= 4) flush(f);
        assert_in_range(passed_by_get(f, "a", "r/f:a@5=first"), 0, 512);
        assert_in_range(passed_by_get(f, "b", ""), 0, 512);
        assert_in_range(passed_by_get(f, "m02500x", "r/f:m02500x@5=middle"), 0, 512);
        assert_in_range(passed_by_get(f, "m03000", ""), 0, 512); /* it has a marker itself */
        assert_in_range(passed_by_get(f, "z", "r/f:z@5=last"), 0, 512);
        drop(f);
    }
}

/* Reads the row "r" on the fast path; the last `hidden` cells are not visible yet. */
static bool get_answers(fixture *f, uint64_t hidden)
{
    const rq_store *store = &f->world.stores[0];
    rq_scan s = get_row("r");
    rq_arena arena;
    rq_cellblock out = {0};
    rq_error why;
    bool answered;
    rq_arena_init(&arena);
    s.max_versions = 1;
    assert_int_equal(rq_store_get_row(store, rq_store_version_now(store), &s, NULL,
                                      f->seqid - hidden, f->world.now_ms, &arena, &f->ctx, &out,
                                      &answered, &why),
                     RQ_OK);
    if (answered) assert_int_equal(out.count, 1);
    rq_read_ctx_clear(&f->ctx);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return answered;
}

/* A get on an event loop leaves them to a scanner, which yields. */
static void many_cells_that_are_not_visible_yet_are_left_to_a_scanner(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.max_versions = 1;
    fixture *f = make(&schema, 1);
    for (int i = 0; i < MANY; i++)
        put(f, "r", "a", 10 + i, "v");
    assert_true(get_answers(f, 0));
    assert_true(get_answers(f, 30));
    assert_false(get_answers(f, 100));
    assert_false(get_answers(f, MANY - 1));
    drop(f);
}

typedef struct cell_of_row {
    char qualifier;
    int64_t ts;
    uint8_t type;
} cell_of_row;

/* Whether a put of the column at this time is hidden by one of the row's markers. */
static bool is_hidden(const cell_of_row *cells, size_t count, char qualifier, int64_t ts)
{
    for (size_t i = 0; i < count; i++) {
        const cell_of_row *c = &cells[i];
        bool mine = c->qualifier == qualifier;
        if (c->type == RQ_TYPE_DELETE_FAMILY && ts <= c->ts) return true;
        if (c->type == RQ_TYPE_DELETE_FAMILY_VERSION && ts == c->ts) return true;
        if (c->type == RQ_TYPE_DELETE_COLUMN && mine && ts <= c->ts) return true;
        if (c->type == RQ_TYPE_DELETE && mine && ts == c->ts) return true;
    }
    return false;
}

/* Writes the expected result of a read of all columns into `text`, in the form of `describe`. */
static void expect_row(const cell_of_row *cells, size_t count, rq_time_range range, int versions,
                       char *text, size_t room)
{
    char *p = text;
    *p = 0;
    for (const char *q = " ab"; *q != 0; q++) {
        char qualifier = *q == ' ' ? 0 : *q;
        int taken = 0;
        for (int64_t ts = 9; ts >= 0 && taken < versions; ts--) {
            bool has = false;
            for (size_t i = 0; i < count; i++)
                has |= cells[i].qualifier == qualifier && cells[i].ts == ts &&
                       cells[i].type == RQ_TYPE_PUT;
            if (!has || ts < range.min || ts >= range.max || is_hidden(cells, count, qualifier, ts))
                continue;
            taken++;
            p += snprintf(p, room - (size_t)(p - text), "%sr/f:%.1s@%lld=", p == text ? "" : " ",
                          qualifier == 0 ? "" : q, (long long)ts);
        }
    }
}

/* Skipping cells loses no result: rows with many versions of few columns, compared with a naive
 * implementation of deletes. */
static void what_is_skipped_changes_nothing(void **state)
{
    (void)state;
    static const uint8_t types[] = {RQ_TYPE_PUT,           RQ_TYPE_PUT,
                                    RQ_TYPE_DELETE,        RQ_TYPE_DELETE_FAMILY_VERSION,
                                    RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    rq_random random;
    rq_random_seed(&random, 7);
    for (int round = 0; round < 400; round++) {
        rq_family_schema schema = family("f");
        schema.max_versions = 1000;
        fixture *f = make(&schema, 1);
        cell_of_row cells[300];
        size_t count = 1 + rq_random_below(&random, RQ_ARRAY_LEN(cells));
        size_t first_type = rq_random_below(&random, RQ_ARRAY_LEN(types));
        size_t kinds = 1 + rq_random_below(&random, RQ_ARRAY_LEN(types));
        uint32_t times = (uint32_t)(1 + rq_random_below(&random, 9));
        for (size_t i = 0; i < count; i++) {
            cell_of_row *c = &cells[i];
            c->type = types[(first_type + rq_random_below(&random, kinds)) % RQ_ARRAY_LEN(types)];
            c->ts = (int64_t)rq_random_below(&random, times + 1);
            c->qualifier = (char[]){0, 'a', 'b'}[rq_random_below(&random, 3)];
            if (c->type == RQ_TYPE_DELETE_FAMILY || c->type == RQ_TYPE_DELETE_FAMILY_VERSION)
                c->qualifier = 0;
            char name[2] = {c->qualifier, 0};
            add(f, "r", name, c->ts, c->type, "");
            if (rq_random_below(&random, 100) == 0) flush(f);
        }
        for (int look = 0; look < 4; look++) {
            char expected[4096];
            rq_scan s = look % 2 == 0 ? everything() : get_row("r");
            int versions = 1 + (int)rq_random_below(&random, 10);
            s.max_versions = versions;
            if (look >= 2)
                s.time_range = (rq_time_range){0, 1 + (int64_t)rq_random_below(&random, 9)};
            expect_row(cells, count, s.time_range, versions, expected, sizeof expected);
            assert_string_equal(read_all(f, &s), expected);
        }
        drop(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_that_the_memstore_answers_reads_no_data_block),
        cmocka_unit_test(blooms_and_ranges_keep_reads_off_files),
        cmocka_unit_test(a_damaged_bloom_hides_nothing),
        cmocka_unit_test(blocks_enter_the_cache_if_family_and_scan_let_them),
        cmocka_unit_test(columns_far_apart_are_sought_not_walked_to),
        cmocka_unit_test(a_rewrite_that_drops_everything_is_looked_after_too),
        cmocka_unit_test(many_markers_of_one_version_are_passed_by_a_seek),
        cmocka_unit_test(many_markers_of_other_columns_are_not_read),
        cmocka_unit_test(many_cells_that_are_not_visible_yet_are_left_to_a_scanner),
        cmocka_unit_test(what_is_skipped_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
