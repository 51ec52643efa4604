/* SPDX-License-Identifier: Apache-2.0 */
/* The cells a read returns, by example: versions, the four deletes, TTL, time ranges, raw scans,
 * and the cells that flush and compaction keep. Most were observed on a real HBase 2.6.1. */
#include "by_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* --- deletes ---------------------------------------------------------------------------------- */
static void raw_scan_shows_markers_before_the_puts_they_hide(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    for (int64_t ts = 1; ts <= 3; ts++) {
        char v[2] = {(char)('0' + ts), 0};
        put(f, "r", "a", ts, v);
        put(f, "r", "b", ts, v);
    }
    del(f, "r", "a", 3, RQ_TYPE_DELETE);
    del(f, "r", "a", 2, RQ_TYPE_DELETE);
    del(f, "r", "b", 2, RQ_TYPE_DELETE_COLUMN);
    assert_string_equal(raw(f), "r/f:a@3D r/f:a@3=3 r/f:a@2D r/f:a@2=2 r/f:a@1=1 "
                                "r/f:b@3=3 r/f:b@2DC r/f:b@2=2 r/f:b@1=1");
    assert_string_equal(all(f), "r/f:a@1=1 r/f:b@3=3");
    /* A flush drops hidden puts and keeps the markers. */
    flush(f);
    assert_string_equal(raw(f), "r/f:a@3D r/f:a@2D r/f:a@1=1 r/f:b@3=3 r/f:b@2DC");
    assert_string_equal(all(f), "r/f:a@1=1 r/f:b@3=3");
    compact(f, true);
    assert_string_equal(raw(f), "r/f:a@1=1 r/f:b@3=3");
    drop(f);
}

static void markers_hide_later_puts_with_older_timestamps_until_a_major_compaction(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "r", "a", 5, "x");
    del(f, "r", "a", 10, RQ_TYPE_DELETE_COLUMN);
    put(f, "r", "a", 7, "y");
    assert_string_equal(all(f), "");
    flush(f);
    assert_string_equal(raw(f), "r/f:a@10DC");
    put(f, "r", "a", 8, "z");
    assert_string_equal(all(f), "");
    compact(f, true);
    assert_string_equal(all(f), "r/f:a@8=z");
    put(f, "r", "a", 6, "w");
    assert_string_equal(all(f), "r/f:a@8=z r/f:a@6=w");
    drop(f);
}

static void family_markers_reach_all_columns_also_from_behind_the_empty_qualifiers_puts(
    void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "r", "", 9, "e");
    put(f, "r", "a", 3, "a");
    put(f, "r", "a", 5, "b");
    put(f, "r", "b", 6, "c");
    del(f, "r", "", 5, RQ_TYPE_DELETE_FAMILY);
    del(f, "r", "", 6, RQ_TYPE_DELETE_FAMILY_VERSION);
    rq_slice a = RQ_SLICE_LIT("a");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("f"), .qualifiers = &a, .qualifier_count = 1};
    for (int round = 0; round < 2; round++) {
        rq_scan s = everything();
        s.max_versions = 1;
        assert_string_equal(read_all(f, &s), "r/f:@9=e");
        s.families = &wanted;
        s.family_count = 1;
        assert_string_equal(read_all(f, &s), "");
        s = get_row("r");
        s.families = &wanted;
        s.family_count = 1;
        assert_string_equal(read_all(f, &s), "");
        flush(f);
    }
    drop(f);
}

static void a_flush_keeps_what_an_open_scanner_still_sees(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.max_versions = 1;
    fixture *f = make(&schema, 1);
    put(f, "r", "a", 1, "old");
    uint64_t point = rq__region_read_point_acquire(&f->world.region, 0);
    put(f, "r", "a", 2, "new");
    put(f, "r", "b", 1, "gone");
    del(f, "r", "b", 1, RQ_TYPE_DELETE);
    flush(f);
    assert_string_equal(raw(f), "r/f:a@2=new r/f:a@1=old r/f:b@1D r/f:b@1=gone");
    compact(f, true);
    assert_string_equal(raw(f), "r/f:a@2=new r/f:a@1=old r/f:b@1D r/f:b@1=gone");
    rq__region_read_point_release(&f->world.region, point);
    compact(f, true);
    assert_string_equal(raw(f), "r/f:a@2=new");
    drop(f);
}

static void a_minor_compaction_keeps_markers_and_drops_what_they_hide(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "q", "a", 1, "oldest");
    flush(f);
    put(f, "r", "a", 1, "x");
    flush(f);
    del(f, "r", "a", 1, RQ_TYPE_DELETE);
    del(f, "r", "", 1, RQ_TYPE_DELETE_FAMILY);
    flush(f);
    compact(f, false);
    assert_string_equal(raw(f), "q/f:a@1=oldest r/f:@1DF r/f:a@1D");
    compact(f, true);
    assert_string_equal(raw(f), "q/f:a@1=oldest");
    drop(f);
}

static void keep_deleted_cells_shows_the_past_behind_a_marker(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.keep_deleted = RQ_KEEP_DELETED_TRUE;
    fixture *f = make(&schema, 1);
    put(f, "r", "a", 2, "x");
    del(f, "r", "a", 4, RQ_TYPE_DELETE_COLUMN);
    put(f, "r", "a", 6, "y");
    flush(f);
    compact(f, true);
    assert_string_equal(raw(f), "r/f:a@6=y r/f:a@4DC r/f:a@2=x");
    rq_scan s = everything();
    assert_string_equal(read_all(f, &s), "r/f:a@6=y");
    s.time_range = (rq_time_range){0, 4};
    assert_string_equal(read_all(f, &s), "r/f:a@2=x");
    s.time_range = (rq_time_range){0, 5};
    assert_string_equal(read_all(f, &s), "");
    drop(f);
}

/* --- versions, time --------------------------------------------------------------------------- */
static void the_newest_write_of_a_version_wins(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "r", "a", 1, "first");
    flush(f);
    put(f, "r", "a", 1, "second");
    flush(f);
    put(f, "r", "a", 1, "third");
    assert_string_equal(all(f), "r/f:a@1=third");
    flush(f);
    compact(f, true);
    assert_string_equal(raw(f), "r/f:a@1=third");
    drop(f);
}

static void versions_above_the_familys_are_gone_at_once_and_from_disk_at_the_flush(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.max_versions = 2;
    fixture *f = make(&schema, 1);
    for (int64_t ts = 1; ts <= 4; ts++) {
        char v[2] = {(char)('0' + ts), 0};
        put(f, "r", "a", ts, v);
    }
    assert_string_equal(all(f), "r/f:a@4=4 r/f:a@3=3");
    assert_string_equal(raw(f), "r/f:a@4=4 r/f:a@3=3 r/f:a@2=2 r/f:a@1=1");
    flush(f);
    assert_string_equal(raw(f), "r/f:a@4=4 r/f:a@3=3");
    /* Deleting the newest version makes the next older one current. */
    del(f, "r", "a", 4, RQ_TYPE_DELETE);
    assert_string_equal(all(f), "r/f:a@3=3");
    drop(f);
}

static void a_time_range_counts_versions_inside_it(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    for (int64_t ts = 1; ts <= 5; ts++) {
        char v[2] = {(char)('0' + ts), 0};
        put(f, "r", "a", ts, v);
    }
    for (int round = 0; round < 2; round++) {
        rq_scan s = everything();
        s.max_versions = 1;
        s.time_range = (rq_time_range){2, 4};
        assert_string_equal(read_all(f, &s), "r/f:a@3=3");
        rq_scan_family own = {
            .family = RQ_SLICE_LIT("f"), .has_time_range = true, .time_range = {1, 3}};
        s.families = &own;
        s.family_count = 1;
        assert_string_equal(read_all(f, &s), "r/f:a@2=2");
        flush(f);
    }
    drop(f);
}

static void expired_versions_are_hidden_but_min_versions_are_kept(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.ttl_s = 5;
    fixture *f = make(&schema, 1);
    f->world.now_ms = 10000;
    put(f, "r", "a", 1000, "1");
    put(f, "r", "a", 2000, "2");
    put(f, "r", "a", 7000, "7");
    assert_string_equal(all(f), "r/f:a@7000=7");
    f->world.stores[0].schema.min_versions = 2;
    assert_string_equal(all(f), "r/f:a@7000=7 r/f:a@2000=2");
    /* HBase's ExplicitColumnTracker returns one more version if unexpired versions already make the
     * minimum. */
    f->world.stores[0].schema.min_versions = 1;
    assert_string_equal(all(f), "r/f:a@7000=7");
    rq_slice a = RQ_SLICE_LIT("a");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("f"), .qualifiers = &a, .qualifier_count = 1};
    rq_scan s = everything();
    s.families = &wanted;
    s.family_count = 1;
    assert_string_equal(read_all(f, &s), "r/f:a@7000=7 r/f:a@2000=2");
    f->world.stores[0].schema.min_versions = 0;
    flush(f);
    assert_string_equal(raw(f), "r/f:a@7000=7");
    f->world.now_ms = 20000;
    assert_string_equal(all(f), "");
    drop(f);
}

static void a_cells_own_ttl_hides_it_and_shows_what_it_covered(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    f->world.now_ms = 10000;
    put(f, "r", "a", 4000, "below");
    put_ttl(f, "r", "a", 5000, 4000);
    rq_scan s = everything();
    s.max_versions = 1;
    assert_string_equal(read_all(f, &s), "r/f:a@4000=below");
    f->world.now_ms = 9000;
    assert_string_equal(read_all(f, &s), "r/f:a@5000=t");
    f->world.now_ms = 9001;
    assert_string_equal(read_all(f, &s), "r/f:a@4000=below");
    flush(f);
    assert_string_equal(raw(f), "r/f:a@4000=below");
    drop(f);
}

static void new_version_behavior_looks_at_the_order_of_writing(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.new_version_behavior = true;
    schema.max_versions = 3;
    fixture *f = make(&schema, 1);
    put(f, "r", "a", 1, "before");
    del(f, "r", "a", 9, RQ_TYPE_DELETE_COLUMN);
    put(f, "r", "a", 2, "after");
    for (int64_t ts = 1; ts <= 4; ts++)
        put(f, "r", "b", ts, "v");
    del(f, "r", "b", 4, RQ_TYPE_DELETE);
    for (int round = 0; round < 3; round++) {
        /* b@1 exceeded VERSIONS before b@4 was deleted, and stays dropped. */
        assert_string_equal(all(f), "r/f:a@2=after r/f:b@3=v r/f:b@2=v");
        if (round == 0)
            flush(f);
        else
            compact(f, true);
    }
    assert_string_equal(raw(f), "r/f:a@2=after r/f:b@3=v r/f:b@2=v");
    drop(f);
}

/* The cells of one batch have one sequence id. */
static void of_two_family_markers_of_one_batch_the_newer_counts(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.new_version_behavior = true;
    fixture *f = make(&schema, 1);
    for (int64_t ts = 5; ts <= 8; ts++)
        put(f, "r", "a", ts, "v");
    del(f, "r", "", 7, RQ_TYPE_DELETE_FAMILY);
    f->seqid--;
    del(f, "r", "", 5, RQ_TYPE_DELETE_FAMILY);
    for (int round = 0; round < 3; round++) {
        assert_string_equal(all(f), "r/f:a@8=v");
        if (round == 0)
            flush(f);
        else
            compact(f, true);
    }
    drop(f);
}

#define ORDERED_MARKERS 3000

/* Markers written in descending order of their timestamps cause the most work. */
static void the_clock_is_read_as_often_as_the_work_of_deletes_needs(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    schema.new_version_behavior = true;
    schema.max_versions = INT32_MAX;
    fixture *f = make(&schema, 1);
    for (int64_t i = 0; i < ORDERED_MARKERS; i++) {
        put(f, "r", "a", 10 + i, "v");
        del(f, "r", "", 10 + ORDERED_MARKERS - i, RQ_TYPE_DELETE_FAMILY);
    }
    f->world.region.read_point = f->seqid;
    rq_scan s = everything();
    rq_scan_limits limits = {.yield_ns = UINT64_MAX};
    rq_scan_state ended;
    rq_region_scanner *scanner;
    rq_cellblock out = {0};
    rq_arena arena = {0};
    uint64_t looks = f->world.clock_looks;
    assert_int_equal(rq_region_scanner_open(&f->world.region, &s, 0, &arena, &scanner, NULL),
                     RQ_OK);
    assert_int_equal(rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &ended, NULL), RQ_OK);
    assert_true(f->world.clock_looks - looks > ORDERED_MARKERS / 8);
    rq_region_scanner_close(scanner);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    drop(f);
}

/* --- rows, columns ---------------------------------------------------------------------------- */
static void a_store_limit_and_offset_count_cells_of_the_row(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    const char *rows[] = {"q", "r"};
    const char *qualifiers[] = {"a", "b", "c", "d"};
    for (size_t r = 0; r < 2; r++)
        for (size_t q = 0; q < 4; q++)
            put(f, rows[r], qualifiers[q], 1, "v");
    rq_scan s = everything();
    s.store_limit = 2;
    s.store_offset = 1;
    assert_string_equal(read_all(f, &s), "q/f:b@1=v q/f:c@1=v r/f:b@1=v r/f:c@1=v");
    s.store_offset = 9;
    assert_string_equal(read_all(f, &s), "");
    drop(f);
}

static void a_raw_scan_refuses_columns(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    rq_slice a = RQ_SLICE_LIT("a");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("f"), .qualifiers = &a, .qualifier_count = 1};
    rq_scan s = everything();
    s.raw = true;
    s.families = &wanted;
    s.family_count = 1;
    assert_string_equal(read_all(f, &s), "Cannot specify any column for a raw scan");
    drop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_scan_shows_markers_before_the_puts_they_hide),
        cmocka_unit_test(markers_hide_later_puts_with_older_timestamps_until_a_major_compaction),
        cmocka_unit_test(
            family_markers_reach_all_columns_also_from_behind_the_empty_qualifiers_puts),
        cmocka_unit_test(a_flush_keeps_what_an_open_scanner_still_sees),
        cmocka_unit_test(a_minor_compaction_keeps_markers_and_drops_what_they_hide),
        cmocka_unit_test(keep_deleted_cells_shows_the_past_behind_a_marker),
        cmocka_unit_test(the_newest_write_of_a_version_wins),
        cmocka_unit_test(versions_above_the_familys_are_gone_at_once_and_from_disk_at_the_flush),
        cmocka_unit_test(a_time_range_counts_versions_inside_it),
        cmocka_unit_test(expired_versions_are_hidden_but_min_versions_are_kept),
        cmocka_unit_test(a_cells_own_ttl_hides_it_and_shows_what_it_covered),
        cmocka_unit_test(new_version_behavior_looks_at_the_order_of_writing),
        cmocka_unit_test(of_two_family_markers_of_one_batch_the_newer_counts),
        cmocka_unit_test(the_clock_is_read_as_often_as_the_work_of_deletes_needs),
        cmocka_unit_test(a_store_limit_and_offset_count_cells_of_the_row),
        cmocka_unit_test(a_raw_scan_refuses_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
