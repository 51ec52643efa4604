/* SPDX-License-Identifier: Apache-2.0 */
/* The column language, lines in parts, names of families, the manifest of hashes. */
#include "unit.h"

#include "transfer/columns.h"
#include "transfer/feed.h"
#include "transfer/hashdir.h"
#include "transfer/lines.h"
#include "transfer/ranges.h"
#include "vfs/memory.h"

#include <stdio.h>

static const char *problem_of(const char *columns, const char *line)
{
    rq__columns c;
    rq__line l;
    rq_err rc;
    const rq_text_format f = {.columns = columns, .separator = '|', .has_quotes = true};
    assert_int_equal(rq__columns_parse(&f, &c, NULL), RQ_OK);
    assert_int_equal(rq__line_init(&c, &l), RQ_OK);
    const char *problem = rq__line_parse(&c, rq_slice_cstr(line), &l, &rc);
    assert_int_equal(rc, RQ_OK);
    rq__line_clear(&l);
    rq__columns_clear(&c);
    return problem;
}

static void bad_lines_have_the_reasons_of_importtsv(void **state)
{
    (void)state;
    assert_null(problem_of("HBASE_ROW_KEY,a,b", "r|x|y"));
    assert_null(problem_of("HBASE_ROW_KEY,a,b", "r|x"));
    assert_null(problem_of("HBASE_ROW_KEY,a,b", "r|\"x|\"\"\"|y"));
    assert_string_equal(problem_of("HBASE_ROW_KEY,a", "r"), "No delimiter");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a", ""), "No delimiter");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a", "r|x|y"), "Excessive columns");
    assert_string_equal(problem_of("a,b,HBASE_ROW_KEY", "x|y"), "No row key");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a,HBASE_TS_KEY", "r|x"), "No timestamp");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a,HBASE_TS_KEY", "r|x|7x"), "Invalid timestamp");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a,HBASE_CELL_TTL", "r|x|y"), "Invalid TTL");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a", "r|\"x"), "Unfinished quotes");
    assert_string_equal(problem_of("HBASE_ROW_KEY,a", "|x"), "Empty value for ROW KEY.");
}

static void columns_that_make_no_sense_are_refused(void **state)
{
    static const char *const wrong[] = {"a,b",
                                        "HBASE_ROW_KEY",
                                        "HBASE_ROW_KEY,HBASE_ROW_KEY,a",
                                        "",
                                        "HBASE_ROW_KEY,,a",
                                        "HBASE_ROW_KEY,:q",
                                        "HBASE_ROW_KEY,a,HBASE_CELL_VISIBILITY"};
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++) {
        rq__columns c;
        const rq_text_format f = {.columns = wrong[i], .separator = '\t'};
        assert_int_not_equal(rq__columns_parse(&f, &c, NULL), RQ_OK);
        rq__columns_clear(&c);
    }
}

/* Reads the file in parts of `step` bytes; the lines must be 0, 1, 2 … */
static void read_lines(rq_vfs *v, uint64_t size, uint64_t step, int count)
{
    int next = 0;
    for (uint64_t from = 0; from < size; from += step) {
        rq__lines l;
        rq_slice text;
        rq_err rc = rq__lines_open(v, "f", false, &l, NULL);
        if (rc == RQ_OK) rc = rq__lines_seek(&l, from, NULL);
        while (rc == RQ_OK && (rc = rq__lines_next(&l, from + step, &text, NULL)) == RQ_OK) {
            char wanted[16];
            snprintf(wanted, sizeof wanted, "%d", next++);
            assert_int_equal(text.len, strlen(wanted));
            assert_memory_equal(text.ptr, wanted, text.len);
        }
        assert_int_equal(rc, RQ_E_END);
        rq__lines_close(&l);
    }
    assert_int_equal(next, count);
}

static void parts_have_each_line_once(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    (void)state;
    rq_vfs *v;
    rq_buf b = {0};
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(rq_buf_printf(&b, "%d%s", i, ends[i % 3]), RQ_OK);
    assert_int_equal(rq_buf_printf(&b, "3000"), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", rq_buf_slice(&b), NULL), RQ_OK);
    for (uint64_t step = 1; step < 40; step++)
        read_lines(v, b.len, step, 3001);
    read_lines(v, b.len, 1000, 3001);
    rq_buf_clear(&b);
    rq_vfs_free(v);
}

static void families_get_their_new_names(void **state)
{
    rq_cell c = {.family = (const uint8_t *)"cf", .family_len = 2};
    (void)state;
    rq__rename_family("c:x,cf:new,cf2:y", &c);
    assert_int_equal(c.family_len, 3);
    assert_memory_equal(c.family, "new", 3);
    rq__rename_family("cf:no", &c);
    assert_memory_equal(c.family, "new", 3);
    rq__rename_family(NULL, &c);
    assert_int_equal(rq__check_renames("a:b,c:d", NULL), RQ_OK);
    assert_int_not_equal(rq__check_renames("a:b,c", NULL), RQ_OK);
    assert_int_not_equal(rq__check_renames(":b", NULL), RQ_OK);
    assert_int_not_equal(rq__check_renames("a:", NULL), RQ_OK);
}

static void a_manifest_is_read_as_it_was_written(void **state)
{
    rq_vfs *v;
    rq_arena a = {0};
    rq__hash_manifest m = {.table = (char[]){"ns:t=1"},
                           .families = "a,b",
                           .batch_bytes = 100,
                           .files = 3,
                           .versions = 2,
                           .from_ms = 5,
                           .to_ms = 9,
                           .start = RQ_SLICE_LIT("\x00\xff"),
                           .is_raw = true};
    (void)state;
    rq__hash_manifest read;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq__hash_manifest_write(v, &m, NULL), RQ_OK);
    assert_int_equal(rq__hash_manifest_read(v, &a, &read, NULL), RQ_OK);
    assert_string_equal(read.table, "ns:t=1");
    assert_string_equal(read.families, "a,b");
    assert_int_equal(read.batch_bytes, 100);
    assert_int_equal(read.versions, 2);
    assert_int_equal(read.to_ms, 9);
    assert_true(rq_slice_eq(read.start, m.start) && read.stop.len == 0 && read.is_raw);
    assert_int_equal(
        rq__hash_manifest_parse(RQ_SLICE_LIT("table=t\ntargetBatchSize=1\n"
                                             "numHashFiles=1\nhashAlgorithm=SHA-256\n"),
                                &a, &read, NULL),
        RQ_E_UNSUPPORTED);
    rq_arena_clear(&a);
    rq_vfs_free(v);
}

static void ranges_are_read_as_they_were_written(void **state)
{
    rq_arena a = {0};
    rq__range read;
    const rq__range r = {RQ_SLICE_LIT("a\x00"), {0}};
    (void)state;
    assert_string_equal(rq__range_text(&r, &a), "6100 -");
    assert_true(rq__range_parse("6100 -", &a, &read));
    assert_true(rq_slice_eq(read.start, r.start) && read.stop.len == 0);
    assert_false(rq__range_parse("610 -", &a, &read));
    assert_false(rq__range_parse("6100", &a, &read));
    assert_false(rq__range_parse("zz -", &a, &read));
    assert_true(rq__range_share(&r, RQ_SLICE_LIT("a\x00")) < 0.01);
    assert_true(rq__range_share(&r, RQ_SLICE_LIT("\xff")) > 0.9);
    rq_arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_lines_have_the_reasons_of_importtsv),
        cmocka_unit_test(columns_that_make_no_sense_are_refused),
        cmocka_unit_test(parts_have_each_line_once),
        cmocka_unit_test(families_get_their_new_names),
        cmocka_unit_test(a_manifest_is_read_as_it_was_written),
        cmocka_unit_test(ranges_are_read_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
