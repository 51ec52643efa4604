/* SPDX-License-Identifier: Apache-2.0 */
/* The cells a read returns, by example: versions, the four deletes, TTL, time ranges, raw scans,
 * and the cells that flush and compaction keep. Most were observed on a real HBase 2.6.1. Results
 * are written as text: "row/family:qualifier@timestamp=value", for markers D (Delete), DC
 * (DeleteColumn), DF (DeleteFamily), DFV (DeleteFamilyVersion) instead of the value. */
#include "by_hand.h"

#include "base/random.h"
#include "hfile/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fixture {
    by_hand world;
    uint64_t seqid;
    rq_read_ctx ctx;
    char text[4096];
} fixture;

static rq_family_schema family(const char *name)
{
    return (rq_family_schema){
        .name = rq_slice_cstr(name),
        .max_versions = 5,
        .ttl_s = RQ_TTL_FOREVER,
        .block_bytes = 65536,
        .block_cache = true,
        .bloom = RQ_BLOOM_ROW,
    };
}

static fixture *make(const rq_family_schema *families, size_t count)
{
    fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    by_hand_init(&f->world, 1, families, count, RQ_ORDER_DEFAULT, 1 << 20);
    f->ctx.may_block = true;
    return f;
}

static void drop(fixture *f)
{
    rq_read_ctx_clear(&f->ctx);
    by_hand_clear(&f->world);
    free(f);
}

static void add(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type,
                const char *value)
{
    rq_cell c = {
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = f->world.stores[0].schema.name.ptr,
        .family_len = (uint8_t)f->world.stores[0].schema.name.len,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = type,
        .seqid = ++f->seqid,
        .value = (const uint8_t *)value,
        .value_len = (uint32_t)strlen(value),
    };
    by_hand_add(&f->world, 0, &c);
}

static void put(fixture *f, const char *row, const char *qualifier, int64_t ts, const char *value)
{
    add(f, row, qualifier, ts, RQ_TYPE_PUT, value);
}

static void put_ttl(fixture *f, const char *row, const char *qualifier, int64_t ts, int64_t ttl_ms)
{
    uint8_t tag[11] = {0, 9, RQ_TAG_TTL};
    rq_put_be64(tag + 3, (uint64_t)ttl_ms);
    rq_cell c = {
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = f->world.stores[0].schema.name.ptr,
        .family_len = (uint8_t)f->world.stores[0].schema.name.len,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = RQ_TYPE_PUT,
        .seqid = ++f->seqid,
        .value = (const uint8_t *)"t",
        .value_len = 1,
        .tags = tag,
        .tags_len = sizeof(tag),
    };
    by_hand_add(&f->world, 0, &c);
}

static void del(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type)
{
    add(f, row, qualifier, ts, type, "");
}

static void flush(fixture *f)
{
    by_hand_rotate(&f->world, 0);
    by_hand_flush(&f->world, 0, by_hand_smallest_read_point(&f->world), NULL);
}

static void compact(fixture *f, bool major)
{
    size_t n = f->world.stores[0].version.file_count;
    if (!major) assert_true(n > 2);
    by_hand_compact(&f->world, 0, major ? 0 : 1, major ? n : n - 1,
                    by_hand_smallest_read_point(&f->world), NULL);
}

static const char *describe(fixture *f, const rq_cellblock *out)
{
    char *p = f->text;
    char *end = f->text + sizeof(f->text);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&out->bytes));
    rq_cell cell;
    *p = '\0';
    while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK) {
        const char *mark = cell.type == RQ_TYPE_DELETE                  ? "D"
                           : cell.type == RQ_TYPE_DELETE_COLUMN         ? "DC"
                           : cell.type == RQ_TYPE_DELETE_FAMILY         ? "DF"
                           : cell.type == RQ_TYPE_DELETE_FAMILY_VERSION ? "DFV"
                                                                        : "=";
        p += snprintf(p, (size_t)(end - p), "%s%.*s/%.*s:%.*s@%lld%s%.*s", p == f->text ? "" : " ",
                      cell.row_len, cell.row, cell.family_len, cell.family, (int)cell.qualifier_len,
                      cell.qualifier, (long long)cell.timestamp, mark, (int)cell.value_len,
                      cell.value);
    }
    return f->text;
}

static rq_scan everything(void)
{
    return (rq_scan){
        .include_start = true,
        .max_versions = INT32_MAX,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
        .cache_blocks = true,
    };
}

static rq_scan get_row(const char *row)
{
    rq_scan s = everything();
    s.is_get = true;
    s.start_row = s.stop_row = rq_slice_cstr(row);
    s.include_stop = true;
    return s;
}

static const char *read_all(fixture *f, const rq_scan *scan)
{
    rq_arena arena;
    rq_arena_init(&arena);
    rq_region_scanner *s;
    rq_error why = {0};
    if (rq_region_scanner_open(&f->world.region, scan, 0, &arena, &s, &why) != RQ_OK) {
        snprintf(f->text, sizeof(f->text), "%s", why.message);
        rq_arena_clear(&arena);
        return f->text;
    }
    rq_cellblock out = {0};
    rq_scan_limits limits = {0};
    rq_scan_state state;
    do {
        assert_int_equal(rq_region_scanner_next(s, &limits, &f->ctx, &out, &state, &why), RQ_OK);
    } while (state != RQ_SCAN_DONE);
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&f->ctx);
    describe(f, &out);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return f->text;
}

static const char *raw(fixture *f)
{
    rq_scan s = everything();
    s.raw = true;
    return read_all(f, &s);
}

static const char *all(fixture *f)
{
    rq_scan s = everything();
    return read_all(f, &s);
}

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
    /* A flush drops what is hidden and keeps the markers. */
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
    /* Deleting the newest makes the next older one current. */
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
    /* HBase's ExplicitColumnTracker takes one more when the minimum is made of fresh ones. */
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
        /* b@1 was pushed out before b@4 was deleted, and stays out. */
        assert_string_equal(all(f), "r/f:a@2=after r/f:b@3=v r/f:b@2=v");
        if (round == 0)
            flush(f);
        else
            compact(f, true);
    }
    assert_string_equal(raw(f), "r/f:a@2=after r/f:b@3=v r/f:b@2=v");
    drop(f);
}

/* The cells of one batch have one number. */
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

/* Markers that were written in the order of their timestamps' age are the most work. */
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

/* --- rows that the read point hides ------------------------------------------------------------ */

#define HIDDEN_ROWS 5000

static void put_hidden_rows(fixture *f)
{
    for (int i = 0; i < HIDDEN_ROWS; i++) {
        char row[16];
        (void)snprintf(row, sizeof row, "m%05d", i);
        put(f, row, "q", 1, "v");
    }
}

/* Reads two rows around many that were written after the scanner was opened, in slices; returns the
 * number of slices. */
static unsigned read_around_hidden_rows(bool reversed, bool in_file)
{
    rq_family_schema schema = family("f");
    fixture *f = make(&schema, 1);
    put(f, "a", "q", 1, "v");
    put(f, "z", "q", 1, "v");
    flush(f);
    f->world.region.read_point = f->seqid;
    rq_scan s = everything();
    s.reversed = reversed;
    rq_region_scanner *scanner;
    rq_arena arena = {0};
    assert_int_equal(rq_region_scanner_open(&f->world.region, &s, 0, &arena, &scanner, NULL),
                     RQ_OK);
    put_hidden_rows(f);
    if (in_file) flush(f);
    rq_cellblock out = {0};
    rq_scan_limits limits = {.yield_ns = 1};
    rq_scan_state state = RQ_SCAN_MORE;
    unsigned slices = 1;
    while (state != RQ_SCAN_DONE) {
        rq_err rc = rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &state, NULL);
        slices += rc == RQ_E_AGAIN;
        assert_true(slices < HIDDEN_ROWS);
        if (rc == RQ_E_AGAIN)
            rq_region_scanner_suspend(scanner);
        else
            assert_int_equal(rc, RQ_OK);
    }
    assert_string_equal(describe(f, &out),
                        reversed ? "z/f:q@1=v a/f:q@1=v" : "a/f:q@1=v z/f:q@1=v");
    rq_region_scanner_close(scanner);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    drop(f);
    return slices;
}

static void rows_written_since_the_scan_began_end_its_slices(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_in_range(read_around_hidden_rows(i % 2 == 1, i >= 2), 3, HIDDEN_ROWS / 128);
}

/* They are not the call's last word: it answers in its time, and goes on. */
static void rows_written_since_the_scan_began_end_its_calls(void **state)
{
    (void)state;
    rq_family_schema schema = family("f");
    for (int i = 0; i < 4; i++) {
        fixture *f = make(&schema, 1);
        rq_scan s = everything();
        rq_region_scanner *scanner;
        rq_arena arena = {0};
        rq_cellblock out = {0};
        /* The clock is behind both. */
        rq_scan_limits limits = {.yield_ns = 1, .deadline_ns = 1, .may_stop_inside_row = true};
        rq_scan_state got = RQ_SCAN_MORE;
        unsigned calls = 0, empty = 0;
        put(f, "a", "q", 1, "v");
        put(f, "z", "q", 1, "v");
        flush(f);
        f->world.region.read_point = f->seqid;
        s.reversed = i % 2 == 1;
        assert_int_equal(rq_region_scanner_open(&f->world.region, &s, 0, &arena, &scanner, NULL),
                         RQ_OK);
        put_hidden_rows(f);
        if (i >= 2) flush(f);
        while (got != RQ_SCAN_DONE) {
            uint32_t before = out.count;
            rq_err rc = rq_region_scanner_next(scanner, &limits, &f->ctx, &out, &got, NULL);
            assert_true(++calls < HIDDEN_ROWS);
            if (rc == RQ_E_AGAIN) {
                rq_region_scanner_suspend(scanner);
                continue;
            }
            assert_int_equal(rc, RQ_OK);
            empty += got != RQ_SCAN_DONE && out.count == before;
        }
        assert_in_range(empty, 3, HIDDEN_ROWS / 128);
        assert_string_equal(describe(f, &out),
                            s.reversed ? "z/f:q@1=v a/f:q@1=v" : "a/f:q@1=v z/f:q@1=v");
        rq_region_scanner_close(scanner);
        rq_cellblock_clear(&out);
        rq_arena_clear(&arena);
        drop(f);
    }
}

/* --- what is not touched ---------------------------------------------------------------------- */
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
    /* Without the column no file may be left out. */
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
    assert_string_equal(read_all(f, &s), ""); /* by the bloom, most likely */
    s = get_row("zz");
    assert_string_equal(read_all(f, &s), ""); /* behind the last key */
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

/* A chunk of the only file's bloom. */
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
    for (int i = 0; i < 3; i++) { /* noticed, and later known */
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

/* The result of a read of all columns, as described by `describe`. */
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

/* The ways to pass skipped cells lose nothing: rows of many versions of few columns, compared with
 * the rules of deletes said naively. */
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
        cmocka_unit_test(rows_written_since_the_scan_began_end_its_slices),
        cmocka_unit_test(rows_written_since_the_scan_began_end_its_calls),
        cmocka_unit_test(a_get_that_the_memstore_answers_reads_no_data_block),
        cmocka_unit_test(blooms_and_ranges_keep_reads_off_files),
        cmocka_unit_test(a_damaged_bloom_hides_nothing),
        cmocka_unit_test(blocks_enter_the_cache_if_family_and_scan_let_them),
        cmocka_unit_test(columns_far_apart_are_sought_not_walked_to),
        cmocka_unit_test(many_markers_of_one_version_are_passed_by_a_seek),
        cmocka_unit_test(what_is_skipped_changes_nothing),
        cmocka_unit_test(a_rewrite_that_drops_everything_is_looked_after_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
