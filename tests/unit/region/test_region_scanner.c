/* SPDX-License-Identifier: Apache-2.0 */
/* The region scanner by example: rows that are returned in parts and completed, decisions of
 * filters about rows, the result at each limit, and HBase's errors. */
#include "by_hand.h"

#include "filter/language.h"
#include "region/region_scanner_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fixture {
    by_hand world;
    uint64_t seqid;
    rq_arena arena;
    rq_read_ctx ctx;
    rq_scan scan;
    rq_scan_limits limits;
    rq_region_scanner *scanner;
    rq_cellblock out;
    rq_scan_state state;
    rq_error why;
    char text[2048];
} fixture;

/* Families f and g, rows r1 … r<rows>, columns a … in each: timestamp 1, value = the column. */
static fixture *make(int rows, int columns)
{
    rq_family_schema families[2] = {
        {.name = RQ_SLICE_LIT("f"), .max_versions = 3, .ttl_s = RQ_TTL_FOREVER, .block_bytes = 256},
        {.name = RQ_SLICE_LIT("g"), .max_versions = 3, .ttl_s = RQ_TTL_FOREVER, .block_bytes = 256},
    };
    fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    by_hand_init(&f->world, 1, families, 2, RQ_ORDER_DEFAULT, 1 << 20);
    f->ctx.may_block = true;
    f->scan = (rq_scan){
        .include_start = true,
        .max_versions = 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
        .cache_blocks = true,
    };
    for (int r = 1; r <= rows; r++) {
        for (int i = 0; i < 2 * columns; i++) {
            char row[8];
            char column[2] = {(char)('a' + i % columns), 0};
            int len = snprintf(row, sizeof(row), "r%d", r);
            rq_cell c = {
                .row = (const uint8_t *)row,
                .row_len = (uint16_t)len,
                .family = (const uint8_t *)(i < columns ? "f" : "g"),
                .family_len = 1,
                .qualifier = (const uint8_t *)column,
                .qualifier_len = 1,
                .timestamp = 1,
                .type = RQ_TYPE_PUT,
                .seqid = ++f->seqid,
                .value = (const uint8_t *)column,
                .value_len = 1,
            };
            by_hand_add(&f->world, i < columns ? 0 : 1, &c);
        }
    }
    return f;
}

static void flush(fixture *f)
{
    for (size_t i = 0; i < 2; i++) {
        by_hand_rotate(&f->world, i);
        by_hand_flush(&f->world, i, by_hand_smallest_read_point(&f->world), NULL);
    }
}

static rq_err open_scan(fixture *f)
{
    return rq_region_scanner_open(&f->world.region, &f->scan, 0, &f->arena, &f->scanner, &f->why);
}

static void close_scan(fixture *f)
{
    rq_region_scanner_close(f->scanner);
    f->scanner = NULL;
    rq_cellblock_reset(&f->out);
    rq_arena_reset(&f->arena);
}

static void drop(fixture *f)
{
    close_scan(f);
    rq_cellblock_clear(&f->out);
    rq_read_ctx_clear(&f->ctx);
    rq_arena_clear(&f->arena);
    by_hand_clear(&f->world);
    free(f);
}

/* One result as text: "r1 f:a f:b" */
static const char *next(fixture *f)
{
    rq_cellblock_reset(&f->out);
    rq_err rc =
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why);
    assert_int_equal(rc, RQ_OK);
    char *p = f->text;
    char *end = f->text + sizeof(f->text);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&f->out.bytes));
    rq_cell cell;
    *p = '\0';
    while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK) {
        if (p == f->text) p += snprintf(p, (size_t)(end - p), "%.*s", cell.row_len, cell.row);
        p += snprintf(p, (size_t)(end - p), " %.*s:%.*s", cell.family_len, cell.family,
                      (int)cell.qualifier_len, cell.qualifier);
    }
    return f->text;
}

#define assert_next(f, text, expected_state)                                                       \
    do {                                                                                           \
        assert_string_equal(next(f), text);                                                        \
        assert_int_equal((f)->state, expected_state);                                              \
    } while (0)

/* --- filters ---------------------------------------------------------------------------------- */
static void append_field(rq_buf *b, unsigned field, const char *bytes, size_t len)
{
    assert_int_equal(rq_buf_append_varint(b, field << 3 | 2), RQ_OK);
    assert_int_equal(rq_buf_append_varint(b, len), RQ_OK);
    assert_int_equal(rq_buf_append(b, bytes, len), RQ_OK);
}

static void append_number(rq_buf *b, unsigned field, uint64_t n)
{
    assert_int_equal(rq_buf_append_varint(b, field << 3), RQ_OK);
    assert_int_equal(rq_buf_append_varint(b, n), RQ_OK);
}

static void set_filter(fixture *f, const char *name, rq_buf *pb)
{
    char java[128];
    snprintf(java, sizeof(java), "org.apache.hadoop.hbase.filter.%s", name);
    rq_err rc =
        rq_filter_parse(rq_slice_cstr(java), rq_buf_slice(pb), &f->arena, &f->scan.filter, &f->why);
    rq_buf_clear(pb);
    assert_int_equal(rc, RQ_OK);
}

static void set_number_filter(fixture *f, const char *name, uint64_t n)
{
    rq_buf pb = {0};
    append_number(&pb, 1, n);
    set_filter(f, name, &pb);
}

/* Sets a filter family:a = "a"; rows without the column do not pass. */
static void set_value_filter(fixture *f, const char *family, const char *value)
{
    rq_buf array = {0};
    rq_buf binary = {0};
    rq_buf comparator = {0};
    rq_buf pb = {0};
    append_field(&array, 1, value, strlen(value));
    append_field(&binary, 1, (const char *)array.ptr, array.len);
    const char *name = "org.apache.hadoop.hbase.filter.BinaryComparator";
    append_field(&comparator, 1, name, strlen(name));
    append_field(&comparator, 2, (const char *)binary.ptr, binary.len);
    append_field(&pb, 1, family, 1);
    append_field(&pb, 2, "a", 1);
    append_number(&pb, 3, 2); /* EQUAL */
    append_field(&pb, 4, (const char *)comparator.ptr, comparator.len);
    append_number(&pb, 5, 1); /* rows without the column do not pass */
    append_number(&pb, 6, 1); /* the newest version decides */
    set_filter(f, "SingleColumnValueFilter", &pb);
    rq_buf_clear(&array);
    rq_buf_clear(&binary);
    rq_buf_clear(&comparator);
}

/* --- rows ------------------------------------------------------------------------------------- */
static void rows_come_one_by_one_and_the_last_says_so(void **state)
{
    (void)state;
    fixture *f = make(3, 2);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r3 f:a f:b g:a g:b", RQ_SCAN_DONE);
    assert_next(f, "", RQ_SCAN_DONE);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_scanned, 3);
    drop(f);
}

static void bounds_are_inclusive_as_asked_in_both_directions(void **state)
{
    (void)state;
    fixture *f = make(4, 1);
    for (int round = 0; round < 2; round++) {
        f->scan.reversed = false;
        f->scan.start_row = RQ_SLICE_LIT("r1");
        f->scan.stop_row = RQ_SLICE_LIT("r3");
        f->scan.include_start = false;
        f->scan.include_stop = false;
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
        close_scan(f);
        f->scan.include_start = f->scan.include_stop = true;
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
        close_scan(f);
        f->scan.reversed = true;
        f->scan.start_row = RQ_SLICE_LIT("r4");
        f->scan.stop_row = RQ_SLICE_LIT("r2");
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r4 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_MORE);
        assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
        close_scan(f);
        f->scan.include_start = f->scan.include_stop = false;
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
        close_scan(f);
        f->scan.start_row = f->scan.stop_row = (rq_slice){0};
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r4 f:a g:a", RQ_SCAN_MORE);
        close_scan(f);
        flush(f);
    }
    drop(f);
}

/* --- limits ----------------------------------------------------------------------------------- */
static void a_batch_cuts_the_row_and_the_next_answer_goes_on(void **state)
{
    (void)state;
    fixture *f = make(2, 2);
    f->limits.cells = 3;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a", RQ_SCAN_BATCH_REACHED);
    rq_region_scanner_suspend(f->scanner);
    flush(f);
    assert_next(f, "r1 g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a", RQ_SCAN_BATCH_REACHED);
    assert_next(f, "r2 g:b", RQ_SCAN_DONE);
    close_scan(f);
    /* A batch that ends at the end of the row leaves no part. */
    f->limits.cells = 4;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
    drop(f);
}

static void a_cut_row_without_more_to_show_is_followed_by_the_next(void **state)
{
    (void)state;
    fixture *f = make(2, 1);
    for (int64_t ts = 2; ts <= 3; ts++) {
        rq_cell c = {.row = (const uint8_t *)"r1",
                     .row_len = 2,
                     .family = (const uint8_t *)"g",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)"a",
                     .qualifier_len = 1,
                     .timestamp = ts,
                     .type = RQ_TYPE_PUT,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 1, &c);
    }
    f->limits.cells = 2; /* older versions follow, which are not returned */
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_BATCH_REACHED);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
    drop(f);
}

static void bytes_stop_between_rows_or_inside_where_allowed(void **state)
{
    (void)state;
    fixture *f = make(3, 2);
    f->limits.bytes = 1;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_BYTES_REACHED);
    f->limits.may_stop_inside_row = true;
    assert_next(f, "r2 f:a", RQ_SCAN_BYTES_REACHED_MID_ROW);
    f->limits.bytes = rq_result_bytes(&f->out) * 2;
    assert_next(f, "r2 f:b g:a", RQ_SCAN_BYTES_REACHED_MID_ROW);
    assert_next(f, "r2 g:b", RQ_SCAN_MORE);
    f->limits.bytes = 0;
    assert_next(f, "r3 f:a f:b g:a g:b", RQ_SCAN_DONE);
    drop(f);
}

static void a_long_filtered_stretch_ends_at_the_deadline_with_nothing(void **state)
{
    (void)state;
    fixture *f = make(90, 1);
    f->limits.deadline_ns = f->world.now_ns + 1;
    set_value_filter(f, "f", "x");
    assert_int_equal(open_scan(f), RQ_OK);
    int beats = 0;
    do {
        assert_string_equal(next(f), "");
        beats += f->state == RQ_SCAN_TIME_REACHED;
        assert_true(rq_region_scanner_current_row(f->scanner).len > 0);
    } while (f->state != RQ_SCAN_DONE);
    assert_true(beats >= 3);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_filtered, 90);
    drop(f);
}

/* Adds cells to row r1, family g. */
static void widen(fixture *f, int cells, const rq_slice value)
{
    for (int i = 0; i < cells; i++) {
        char q[8];
        int len = snprintf(q, sizeof(q), "q%04d", i);
        rq_cell c = {.row = (const uint8_t *)"r1",
                     .row_len = 2,
                     .family = (const uint8_t *)"g",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)q,
                     .qualifier_len = (uint32_t)len,
                     .timestamp = 1,
                     .type = RQ_TYPE_PUT,
                     .value = value.ptr,
                     .value_len = (uint32_t)value.len,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 1, &c);
    }
}

/* Reads the next result in slices as short as possible. */
static rq_err next_in_slices(fixture *f, unsigned *ret_yields)
{
    f->limits.yield_ns = 1;
    *ret_yields = 0;
    rq_err rc;
    while ((rc = rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state,
                                        &f->why)) == RQ_E_AGAIN) {
        assert_null(f->ctx.need.reader);
        if (++*ret_yields % 3 == 0) rq_region_scanner_suspend(f->scanner);
    }
    return rc;
}

static void a_spent_slice_gives_the_thread_back_inside_a_row(void **state)
{
    (void)state;
    fixture *f = make(1, 1);
    unsigned yields;
    widen(f, 2000, (rq_slice){0});
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->state, RQ_SCAN_DONE);
    assert_int_equal(f->out.count, 2002);
    assert_true(yields >= 10);
    drop(f);
}

static void long_values_end_a_slice_too(void **state)
{
    (void)state;
    enum { CELLS = 5, BYTES = 3 << 20 };
    fixture *f = make(1, 1);
    unsigned yields;
    uint8_t *value = calloc(1, BYTES);
    widen(f, CELLS, rq_slice_of(value, BYTES));
    free(value);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->out.count, CELLS + 2);
    assert_true(yields >= CELLS - 1);
    drop(f);
}

/* The limit counts all slices and both families, and each part of a row separately. */
static void a_row_above_its_limit_is_refused(void **state)
{
    (void)state;
    fixture *f = make(2, 1);
    unsigned yields;
    widen(f, 2000, (rq_slice){0});
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    uint64_t all = f->out.bytes.len;
    close_scan(f);

    f->scan.row_bytes_max = all;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    close_scan(f);

    f->scan.row_bytes_max = all - 1;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_E_ROW_TOO_BIG);
    assert_true(yields >= 10);
    assert_int_equal(f->out.count, 0);
    assert_int_equal(next_in_slices(f, &yields), RQ_E_ROW_TOO_BIG); /* no part of the row follows */
    assert_int_equal(f->out.count, 0);
    close_scan(f);

    f->limits = (rq_scan_limits){.bytes = all / 2, .may_stop_inside_row = true};
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->state, RQ_SCAN_BYTES_REACHED_MID_ROW);
    close_scan(f);
    drop(f);
}

/* --- rows and filters ------------------------------------------------------------------------- */
static void a_page_filter_ends_the_scan(void **state)
{
    (void)state;
    fixture *f = make(4, 1);
    set_number_filter(f, "PageFilter", 2);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_DONE);
    drop(f);
}

static void set_language_filter(fixture *f, const char *text)
{
    rq_slice class_name;
    rq_slice bytes;
    assert_int_equal(
        rq_filter_language_compile(rq_slice_cstr(text), &f->arena, &class_name, &bytes, &f->why),
        RQ_OK);
    assert_int_equal(rq_filter_parse(class_name, bytes, &f->arena, &f->scan.filter, &f->why),
                     RQ_OK);
}

/* How often reading a row of 3,000 cells in the shortest slices pauses, with 200 filters of the
 * class around each of its cells. The cells must be those of one slice. */
static unsigned pauses_with_many(fixture *f, const char *one)
{
    enum { FILTERS = 200 };
    rq_buf text = {0};
    unsigned yields;
    for (unsigned i = 0; i < FILTERS; i++)
        assert_int_equal(rq_buf_printf(&text, "%s%s", i > 0 ? " AND " : "", one), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&text, 0), RQ_OK);
    set_language_filter(f, (const char *)text.ptr);
    assert_int_equal(open_scan(f), RQ_OK);
    f->limits.yield_ns = 0;
    assert_int_equal(
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
        RQ_OK);
    rq_buf whole = f->out.bytes;
    f->out = (rq_cellblock){0};
    close_scan(f);
    set_language_filter(f, (const char *)text.ptr);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(next_in_slices(f, &yields), RQ_OK);
    assert_int_equal(f->out.bytes.len, whole.len);
    assert_memory_equal(f->out.bytes.ptr, whole.ptr, whole.len);
    close_scan(f);
    rq_buf_clear(&whole);
    rq_buf_clear(&text);
    return yields;
}

/* The filters that look at all cells at the end of the row are asked in slices, too; others see the same cells before. */
static void the_end_of_a_row_gives_the_thread_back(void **state)
{
    (void)state;
    fixture *f = make(1, 1);
    widen(f, 3000, (rq_slice){0});
    unsigned plain = pauses_with_many(f, "SingleColumnValueFilter('f', 'a', =, 'binary:a')");
    unsigned more = pauses_with_many(f, "SingleColumnValueExcludeFilter('f', 'a', =, 'binary:a')");
    print_message("%u pauses, %u\n", plain, more);
    assert_true(more >= plain + 200 * 3000 / RQ_PACE_SLICE);
    more = pauses_with_many(f, "DependentColumnFilter('f', 'a', false)");
    assert_true(more >= plain + 200 * 3000 / RQ_PACE_SLICE);
    drop(f);
}

/* How many rows were read to find those that the filter passes. */
static uint64_t rows_looked_at(fixture *f, const char *filter, bool counts_rows,
                               const char *expected)
{
    char found[256] = "";
    set_language_filter(f, filter);
    f->scan.counts_rows = counts_rows;
    assert_int_equal(open_scan(f), RQ_OK);
    do {
        const char *answer = next(f);
        strncat(found, answer, strcspn(answer, " "));
    } while (f->state != RQ_SCAN_DONE);
    assert_string_equal(found, expected);
    uint64_t rows = rq_region_scanner_stats(f->scanner)->rows_scanned;
    close_scan(f);
    return rows;
}

static void uncounted_rows_are_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *found;
        uint64_t looked_at, all;
    } examples[] = {
        {"PrefixFilter('r7')", "r7", 2, 7},
        {"RowFilter(>, 'binary:r7')", "r8r9", 4, 9},
        {"RowFilter(=, 'binary:r7')", "r7", 3, 9},
        {"RowFilter(<, 'binary:r3')", "r1r2", 3, 9},
        {"RowFilter(<=, 'binary:r3')", "r1r2r3", 4, 9},
        {"RowFilter(!=, 'binary:r3')", "r1r2r4r5r6r7r8r9", 9, 9},
        {"RowFilter(<, 'binary:r2') OR RowFilter(=, 'binary:r7')", "r1r7", 4, 9},
        {"RowFilter(<, 'binary:r3') AND RowFilter(>, 'binary:r6')", "", 2, 9},
        {"PrefixFilter('r3') OR PrefixFilter('r7')", "r3r7", 4, 7},
        {"PrefixFilter('r3') AND RowFilter(>, 'binary:r7')", "", 1, 3},
        {"PrefixFilter('r7') AND QualifierFilter(=, 'binary:a')", "r7", 2, 7},
        {"PrefixFilter('r7') OR QualifierFilter(=, 'binary:z')", "r7", 9, 9},
        {"PrefixFilter('r7') AND InclusiveStopFilter('r8')", "r7", 7, 7},
    };
    for (int flushed = 0; flushed < 2; flushed++) {
        fixture *f = make(9, 1);
        if (flushed) flush(f);
        for (size_t i = 0; i < RQ_ARRAY_LEN(examples); i++) {
            assert_int_equal(rows_looked_at(f, examples[i].filter, false, examples[i].found),
                             examples[i].looked_at);
            assert_int_equal(rows_looked_at(f, examples[i].filter, true, examples[i].found),
                             examples[i].all);
        }
        drop(f);
    }
}

static void put_value(fixture *f, const char *row, const char *value)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)"a",
                 .qualifier_len = 1,
                 .timestamp = 5,
                 .type = RQ_TYPE_PUT,
                 .seqid = ++f->seqid,
                 .value = (const uint8_t *)value,
                 .value_len = (uint32_t)strlen(value)};
    by_hand_add(&f->world, 0, &c);
}

/* HBASE: RegionScannerImpl.nextRow; as in 2.6.1, except for reversed scans. */
static void a_cell_may_end_the_scan_in_a_row_that_is_left_out_by_its_key(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *found, *backwards;
    } examples[] = {
        {"WHILE (ValueFilter(=, 'binary:a')) AND RowFilter(!=, 'binary:r3')", "r1r2", "r5r4r2r1"},
        {"RowFilter(!=, 'binary:r3') AND WHILE (ValueFilter(=, 'binary:a'))", "r1r2r4r5",
         "r5r4r2r1"},
        {"(WHILE (ValueFilter(=, 'binary:a')) OR PrefixFilter('z')) AND RowFilter(!=, 'binary:r3')",
         "r1r2", "r5r4r2r1"},
        {"WHILE (ValueFilter(=, 'binary:a')) AND PrefixFilter('r4')", "", "r4"},
        {"WHILE (ValueFilter(=, 'binary:a')) AND RowFilter(!=, 'binary:r2')", "r1", "r5r4"},
    };
    const rq_scan_family one = {.family = RQ_SLICE_LIT("f")};
    for (int round = 0; round < 16; round++) {
        fixture *f = make(5, 1);
        put_value(f, "r3", "x");
        if ((round & 1) != 0) flush(f);
        if ((round & 2) != 0) f->limits.bytes = 1;
        f->scan.reversed = (round & 4) != 0;
        f->scan.families = &one;
        f->scan.family_count = (round & 8) != 0;
        for (size_t i = 0; i < RQ_ARRAY_LEN(examples); i++) {
            const char *expected = f->scan.reversed ? examples[i].backwards : examples[i].found;
            (void)rows_looked_at(f, examples[i].filter, false, expected);
        }
        drop(f);
    }
}

static void a_column_count_get_filter_in_a_scan_ends_it_after_the_first_row(void **state)
{
    (void)state;
    fixture *f = make(3, 3);
    set_number_filter(f, "ColumnCountGetFilter", 2);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b", RQ_SCAN_DONE);
    drop(f);
}

static void families_on_demand_are_read_for_kept_rows_and_sorted_in(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        fixture *f = make(2, 2);
        rq_cell other = {.row = (const uint8_t *)"r1",
                         .row_len = 2,
                         .family = (const uint8_t *)"g",
                         .family_len = 1,
                         .qualifier = (const uint8_t *)"a",
                         .qualifier_len = 1,
                         .timestamp = 5,
                         .type = RQ_TYPE_PUT,
                         .seqid = ++f->seqid,
                         .value = (const uint8_t *)"x",
                         .value_len = 1};
        by_hand_add(&f->world, 1, &other);
        if (round == 1) flush(f);
        set_value_filter(f, "g", "a"); /* r1 has another value by now */
        f->scan.load_families_on_demand = true;
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
        drop(f);
    }
}

/* The row in the order of its families, whether they are read on demand or not; sorting 2 MB takes several slices. */
static void families_on_demand_are_sorted_in_slices(void **state)
{
    (void)state;
    enum { CELLS = 2000, BYTES = 1000 };
    static const uint8_t value[BYTES];
    fixture *f = make(2, 2);
    rq_cellblock expected = {0};
    unsigned yields[2];
    widen(f, CELLS, rq_slice_of(value, BYTES));
    for (int on_demand = 0; on_demand < 2; on_demand++) {
        set_value_filter(f, "g", "a");
        f->scan.load_families_on_demand = on_demand == 1;
        assert_int_equal(open_scan(f), RQ_OK);
        assert_int_equal(next_in_slices(f, &yields[on_demand]), RQ_OK);
        assert_int_equal(f->out.count, CELLS + 4);
        if (on_demand == 1) {
            assert_int_equal(f->out.bytes.len, expected.bytes.len);
            assert_memory_equal(f->out.bytes.ptr, expected.bytes.ptr, expected.bytes.len);
        } else {
            expected = f->out;
            f->out = (rq_cellblock){0};
        }
        close_scan(f);
    }
    assert_true(yields[1] >= yields[0] + CELLS * BYTES / (128 << 10));
    rq_cellblock_clear(&expected);
    drop(f);
}

static void a_row_filter_keeps_rows_whole_whatever_the_limits(void **state)
{
    (void)state;
    fixture *f = make(2, 2);
    set_value_filter(f, "f", "a");
    f->limits.bytes = 1;
    f->limits.may_stop_inside_row = true;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b g:a g:b", RQ_SCAN_BYTES_REACHED);
    assert_next(f, "r2 f:a f:b g:a g:b", RQ_SCAN_DONE);
    drop(f);
}

/* --- suspension ------------------------------------------------------------------------------- */
static void a_scanner_reads_at_its_point_through_flush_and_compaction(void **state)
{
    (void)state;
    fixture *f = make(3, 1);
    flush(f);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    rq_region_scanner_suspend(f->scanner);
    for (int i = 2; i <= 3; i++) {
        char row[3] = {'r', (char)('0' + i), 0};
        rq_cell c = {.row = (const uint8_t *)row,
                     .row_len = 2,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = 9,
                     .type = RQ_TYPE_DELETE_FAMILY,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 0, &c);
    }
    flush(f);
    by_hand_compact(&f->world, 0, 0, f->world.stores[0].version.file_count,
                    by_hand_smallest_read_point(&f->world), NULL);
    assert_next(f, "r2 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r3 f:a g:a", RQ_SCAN_DONE);
    close_scan(f);
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_MORE);
    assert_next(f, "r2 g:a", RQ_SCAN_MORE);
    assert_next(f, "r3 g:a", RQ_SCAN_DONE);
    drop(f);
}

static void a_staged_read_sees_what_is_not_visible_yet(void **state)
{
    (void)state;
    fixture *f = make(2, 1);
    uint64_t visible = f->world.region.read_point;
    rq_cell c = {.row = (const uint8_t *)"r1",
                 .row_len = 2,
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)"z",
                 .qualifier_len = 1,
                 .timestamp = 2,
                 .type = RQ_TYPE_PUT,
                 .seqid = ++f->seqid};
    by_hand_add(&f->world, 0, &c);
    f->world.region.read_point = visible;
    f->scan.is_get = true;
    f->scan.include_stop = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a g:a", RQ_SCAN_DONE);
    close_scan(f);
    rq__token_slice slice = {.until_ns = UINT64_MAX};
    assert_int_equal(rq__staged_read_row(&f->world.region, &f->scan, &f->arena, &f->ctx, &slice,
                                         &f->out, &f->why),
                     RQ_OK);
    assert_int_equal(f->out.count, 3);
    assert_int_equal(f->world.region.open_count, 0);
    drop(f);
}

static void an_existence_check_stops_at_the_first_cell(void **state)
{
    (void)state;
    fixture *f = make(1, 3);
    f->scan.is_get = true;
    f->scan.check_existence_only = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("g")};
    f->scan.families = &wanted;
    f->scan.family_count = 1;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 g:a", RQ_SCAN_DONE);
    drop(f);
}

/* --- errors ----------------------------------------------------------------------------------- */
static void wrong_questions_get_hbases_errors(void **state)
{
    (void)state;
    fixture *f = make(1, 1);
    rq_scan_family wanted = {.family = RQ_SLICE_LIT("nope")};
    f->scan.families = &wanted;
    f->scan.family_count = 1;
    assert_int_equal(open_scan(f), RQ_E_NO_SUCH_FAMILY);
    assert_non_null(strstr(f->why.message, "Column family nope does not exist in region t,,1."));
    f->why = (rq_error){0};
    /* Checked before any other error. */
    rq_slice column = RQ_SLICE_LIT("a");
    rq_scan_family both[] = {
        {.family = RQ_SLICE_LIT("g"), .qualifiers = &column, .qualifier_count = 1}, wanted};
    f->scan.families = both;
    f->scan.family_count = 2;
    f->scan.raw = true;
    assert_int_equal(open_scan(f), RQ_E_NO_SUCH_FAMILY);
    f->scan.raw = false;
    f->scan.family_count = 0;
    f->why = (rq_error){0};

    f->world.region.info.end_key = RQ_SLICE_LIT("m");
    f->scan.is_get = true;
    f->scan.start_row = f->scan.stop_row = RQ_SLICE_LIT("r1");
    assert_int_equal(open_scan(f), RQ_E_WRONG_REGION);
    assert_false(
        rq_err_do_not_retry(RQ_E_WRONG_REGION)); /* HBase's clients look for the region again */
    assert_non_null(strstr(f->why.message, "Requested row out of range for Get on HRegion t,,1."));
    assert_non_null(strstr(f->why.message, "startKey='', getEndKey()='m', row='r1'"));
    f->world.region.info.end_key = (rq_slice){0};
    f->scan.is_get = false;
    f->scan.start_row = f->scan.stop_row = (rq_slice){0};
    f->why = (rq_error){0};

    set_value_filter(f, "g", "a");
    f->scan.batch = 2;
    assert_int_equal(open_scan(f), RQ_E_INCOMPATIBLE_FILTER);
    assert_string_equal(f->why.message, "Cannot set batch on a scan using a filter that returns "
                                        "true for filter.hasFilterRow");
    f->scan.batch = 0;
    f->why = (rq_error){0};

    f->scan.reversed = true;
    f->scan.load_families_on_demand = true;
    assert_int_equal(open_scan(f), RQ_E_DO_NOT_RETRY);
    assert_string_equal(f->why.message, "Reverse scan with loading CFs on demand is not supported");
    f->scan.reversed = false;
    f->why = (rq_error){0};

    f->world.region.closing = true;
    assert_int_equal(open_scan(f), RQ_E_NOT_SERVING_REGION);
    assert_non_null(strstr(f->why.message, " is closing"));
    assert_int_equal(f->world.region.open_count, 0);
    assert_int_equal(f->world.region.refs, 1);
    drop(f);
}

/* --- many rows at once ------------------------------------------------------------------------ */
static rq_scan_family family_f = {.family = RQ_SLICE_LIT("f")};

static void read_only_family_f(fixture *f)
{
    f->scan.families = &family_f;
    f->scan.family_count = 1;
}

static void add(fixture *f, const char *row, const char *column, uint8_t type, int64_t timestamp)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)column,
                 .qualifier_len = (uint32_t)strlen(column),
                 .timestamp = timestamp,
                 .type = type,
                 .seqid = ++f->seqid};
    by_hand_add(&f->world, 0, &c);
}

static uint32_t take(fixture *f, uint32_t *cells, uint32_t max)
{
    rq_scan_rows rows = {.cells = cells, .max = max};
    rq_cellblock_reset(&f->out);
    assert_int_equal(rq_region_scanner_take_rows(f->scanner, &f->limits, &f->out, &rows, &f->state),
                     RQ_OK);
    return rows.count;
}

static void rows_are_taken_until_a_limit(void **state)
{
    (void)state;
    uint32_t cells[8];
    fixture *f = make(9, 2);
    read_only_family_f(f);
    f->scan.stop_row = RQ_SLICE_LIT("r9");
    assert_int_equal(open_scan(f), RQ_OK);
    assert_int_equal(take(f, cells, 8), 0); /* nothing has been read yet */
    assert_next(f, "r1 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 2), 2);
    assert_int_equal(f->state, RQ_SCAN_MORE);
    assert_int_equal(cells[0], 2);
    assert_next(f, "r4 f:a f:b", RQ_SCAN_MORE);
    f->limits.bytes = 1;
    assert_int_equal(take(f, cells, 8), 1);
    assert_int_equal(f->state, RQ_SCAN_BYTES_REACHED);
    f->limits.bytes = 0;
    assert_next(f, "r6 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 8), 2);
    assert_int_equal(f->state, RQ_SCAN_DONE);
    assert_int_equal(rq_region_scanner_stats(f->scanner)->rows_scanned, 8);
    assert_string_equal(next(f), "");
    drop(f);
}

static void a_taken_row_above_its_limit_is_refused(void **state)
{
    (void)state;
    uint32_t cells[8];
    fixture *f = make(3, 2);
    read_only_family_f(f);
    for (int i = 0; i < 50; i++) {
        char column[8];
        (void)snprintf(column, sizeof column, "c%02d", i);
        add(f, "r3", column, RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    f->scan.row_bytes_max = 200;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:a f:b", RQ_SCAN_MORE);
    assert_int_equal(take(f, cells, 8), 1);
    assert_int_equal(
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
        RQ_E_ROW_TOO_BIG);
    drop(f);
}

/* Taking 1,024 cells ends inside the row; its rest follows, and a batch still ends where
 * requested. */
static void a_wide_row_is_completed_by_the_next_call(void **state)
{
    (void)state;
    uint32_t cells[8];
    fixture *f = make(1, 1);
    read_only_family_f(f);
    for (int i = 0; i < 3000; i++) {
        char column[8];
        (void)snprintf(column, sizeof column, "c%04d", i);
        add(f, "r2", column, RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    for (int cut = 0; cut < 2; cut++) {
        f->limits = (rq_scan_limits){.may_stop_inside_row = cut == 1, .bytes = cut == 1 ? 9000 : 0};
        assert_int_equal(open_scan(f), RQ_OK);
        assert_next(f, "r1 f:a", RQ_SCAN_MORE);
        assert_int_equal(take(f, cells, 8), 0);
        uint32_t taken = f->out.count;
        assert_true(taken > 0 && taken <= 1024);
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
        assert_int_equal(f->state, cut == 1 ? RQ_SCAN_BYTES_REACHED_MID_ROW : RQ_SCAN_DONE);
        assert_int_equal(f->out.count, cut == 1 ? taken : 3000);
        close_scan(f);
    }
    drop(f);
}

/* Rows that can be taken at once alternate with rows that cannot: a call takes one row. */
static void the_clock_is_read_after_rows_not_after_calls(void **state)
{
    (void)state;
    uint32_t cells[8];
    fixture *f = make(0, 0);
    read_only_family_f(f);
    for (int i = 0; i < 64; i++) {
        char row[8];
        (void)snprintf(row, sizeof row, "r%02d", i);
        if (i % 2 == 0) add(f, row, "a", RQ_TYPE_DELETE, 2);
        add(f, row, "a", RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    f->limits.deadline_ns = UINT64_MAX;
    assert_int_equal(open_scan(f), RQ_OK);
    uint64_t looks = f->world.clock_looks;
    unsigned calls = 0;
    for (f->state = RQ_SCAN_MORE; f->state != RQ_SCAN_DONE;) {
        calls += take(f, cells, 8) > 0;
        if (f->state == RQ_SCAN_DONE) break;
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
    }
    assert_true(calls > 16);
    assert_in_range(f->world.clock_looks - looks, 1, 64 / 8);
    drop(f);
}

/* How many of the rows, each with one column of two versions, take_rows tried to take at once. */
static unsigned rows_begun_by_taking(fixture *f, unsigned rows)
{
    uint32_t cells[8];
    unsigned begun = 0;
    for (unsigned i = 0; i < rows; i++) {
        assert_int_equal(take(f, cells, 8), 0);
        begun += f->out.count > 0;
        assert_int_equal(
            rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why),
            RQ_OK);
        assert_int_equal(f->out.count, 2);
    }
    assert_int_equal(f->state, RQ_SCAN_DONE);
    return begun;
}

/* Taking at once returns only one cell of each row, and costs more than it saves. */
static void rows_of_a_kind_that_is_not_taken_are_tried_now_and_then(void **state)
{
    (void)state;
    fixture *f = make(0, 0);
    read_only_family_f(f);
    f->scan.max_versions = 2;
    for (int i = 0; i < 32; i++) {
        char row[8];
        (void)snprintf(row, sizeof row, "r%02d", i);
        add(f, row, "a", RQ_TYPE_PUT, 2);
        add(f, row, "a", RQ_TYPE_PUT, 1);
    }
    f->world.region.read_point = f->seqid;
    assert_int_equal(open_scan(f), RQ_OK);
    assert_in_range(rows_begun_by_taking(f, 32), 2, 5);
    drop(f);
}

/* The filter has finished with a column: the column's marker hides nothing, and the versions after
 * the marker do not begin a new column. */
static void a_marker_in_a_column_that_the_filter_has_left_is_skipped(void **state)
{
    (void)state;
    fixture *f = make(1, 1);
    read_only_family_f(f);
    add(f, "r1", "b", RQ_TYPE_PUT, 9);
    add(f, "r1", "b", RQ_TYPE_DELETE, 5);
    add(f, "r1", "b", RQ_TYPE_PUT, 3);
    add(f, "r1", "c", RQ_TYPE_PUT, 1);
    add(f, "r1", "d", RQ_TYPE_PUT, 1);
    f->world.region.read_point = f->seqid;
    set_language_filter(f, "ColumnPaginationFilter(1, 2)");
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:c", RQ_SCAN_DONE); /* from the memstore */
    close_scan(f);
    flush(f);
    set_language_filter(f, "ColumnPaginationFilter(1, 2)");
    assert_int_equal(open_scan(f), RQ_OK);
    assert_next(f, "r1 f:c", RQ_SCAN_DONE);
    drop(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_one_by_one_and_the_last_says_so),
        cmocka_unit_test(bounds_are_inclusive_as_asked_in_both_directions),
        cmocka_unit_test(a_batch_cuts_the_row_and_the_next_answer_goes_on),
        cmocka_unit_test(a_cut_row_without_more_to_show_is_followed_by_the_next),
        cmocka_unit_test(bytes_stop_between_rows_or_inside_where_allowed),
        cmocka_unit_test(a_long_filtered_stretch_ends_at_the_deadline_with_nothing),
        cmocka_unit_test(a_spent_slice_gives_the_thread_back_inside_a_row),
        cmocka_unit_test(a_page_filter_ends_the_scan),
        cmocka_unit_test(uncounted_rows_are_skipped),
        cmocka_unit_test(a_cell_may_end_the_scan_in_a_row_that_is_left_out_by_its_key),
        cmocka_unit_test(a_column_count_get_filter_in_a_scan_ends_it_after_the_first_row),
        cmocka_unit_test(families_on_demand_are_read_for_kept_rows_and_sorted_in),
        cmocka_unit_test(families_on_demand_are_sorted_in_slices),
        cmocka_unit_test(long_values_end_a_slice_too),
        cmocka_unit_test(the_end_of_a_row_gives_the_thread_back),
        cmocka_unit_test(a_row_above_its_limit_is_refused),
        cmocka_unit_test(a_row_filter_keeps_rows_whole_whatever_the_limits),
        cmocka_unit_test(a_scanner_reads_at_its_point_through_flush_and_compaction),
        cmocka_unit_test(a_staged_read_sees_what_is_not_visible_yet),
        cmocka_unit_test(an_existence_check_stops_at_the_first_cell),
        cmocka_unit_test(wrong_questions_get_hbases_errors),
        cmocka_unit_test(rows_are_taken_until_a_limit),
        cmocka_unit_test(a_taken_row_above_its_limit_is_refused),
        cmocka_unit_test(a_wide_row_is_completed_by_the_next_call),
        cmocka_unit_test(the_clock_is_read_after_rows_not_after_calls),
        cmocka_unit_test(rows_of_a_kind_that_is_not_taken_are_tried_now_and_then),
        cmocka_unit_test(a_marker_in_a_column_that_the_filter_has_left_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
