/* SPDX-License-Identifier: Apache-2.0 */
/* The column language, lines in parts, names of families, the manifest of hashes. */
#include "unit.h"

#include "base/clock.h"
#include "base/pb.h"
#include "client/client.h"
#include "transfer/columns.h"
#include "transfer/feed.h"
#include "transfer/files.h"
#include "transfer/hashdir.h"
#include "transfer/lines.h"
#include "transfer/ranges.h"
#include "transfer/text_row.h"
#include "vfs/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- rows as lines ------------------------------------------------------------------------------ */

static void put_cell(rq_buf *to, const char *qualifier, const char *value, uint64_t time)
{
    size_t at;
    assert_int_equal(rq_pb_begin(to, 1, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(to, 1, RQ_SLICE_LIT("row")), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(to, 2, RQ_SLICE_LIT("f")), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(to, 3, rq_slice_cstr(qualifier)), RQ_OK);
    assert_int_equal(rq_pb_put_number(to, 4, time), RQ_OK);
    assert_int_equal(rq_pb_put_number(to, 5, RQ_TYPE_PUT), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(to, 6, rq_slice_cstr(value)), RQ_OK);
    assert_int_equal(rq_pb_end(to, at), RQ_OK);
}

/* Writes the line of the row with these cells. */
static void put_line(const char *columns, const rq_buf *cells, rq_buf *out)
{
    rq__columns c;
    rq__line l;
    uint64_t count;
    const rq_text_format f = {.columns = columns, .separator = '|'};
    rq_op_result row = {.row.inline_cells = rq_buf_slice(cells)};
    assert_int_equal(rq__columns_parse(&f, &c, NULL), RQ_OK);
    assert_int_equal(rq__line_init(&c, &l), RQ_OK);
    rq_buf_reset(out);
    assert_int_equal(rq__text_put_row(&c, &l, &row, out, &count, NULL), RQ_OK);
    assert_int_equal(rq_buf_append_u8(out, 0), RQ_OK);
    rq__line_clear(&l);
    rq__columns_clear(&c);
}

static void a_line_has_the_newest_of_each_column(void **state)
{
    rq_buf cells = {0}, out = {0};
    (void)state;
    put_cell(&cells, "b", "", 9);
    put_cell(&cells, "b", "older", 8);
    put_cell(&cells, "c", "C", 12);
    put_cell(&cells, "", "none", 3);
    put_line("f:c,HBASE_ROW_KEY,f:b,HBASE_TS_KEY,f:x,f:c,f,HBASE_CELL_TTL", &cells, &out);
    assert_string_equal((const char *)out.ptr, "C|row||12||C|none|\n");
    rq_buf_clear(&cells);
    put_line("HBASE_ROW_KEY,f:b", &cells, &out);
    assert_string_equal((const char *)out.ptr, "|\n");
    rq_buf_clear(&out);
}

/* A search of the row for each column would not end within this test's limit. */
static void wide_rows_cost_less_than_their_square(void **state)
{
    enum { COLUMNS = 300000 };
    rq_buf cells = {0}, columns = {0}, out = {0};
    (void)state;
    assert_int_equal(rq_buf_printf(&columns, "HBASE_ROW_KEY"), RQ_OK);
    for (int i = 0; i < COLUMNS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%06d", i);
        put_cell(&cells, name, name + 5, 1);
        assert_int_equal(rq_buf_printf(&columns, ",f:%06d", COLUMNS - 1 - i), RQ_OK);
    }
    assert_int_equal(rq_buf_append_u8(&columns, 0), RQ_OK);
    put_line((const char *)columns.ptr, &cells, &out);
    assert_int_equal(out.len, 3 + 2 * COLUMNS + 2);
    assert_memory_equal(out.ptr, "row|9|8|7|6|5|4|3|2|1|0|9|", 26);
    rq_buf_clear(&cells);
    rq_buf_clear(&columns);
    rq_buf_clear(&out);
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

static uint64_t processor_ns(void)
{
    return rq_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The processor's time to read a file of empty lines, which must be as many as it has bytes. */
static uint64_t time_of_lines(char end, size_t count)
{
    rq_vfs *v;
    rq__lines l;
    rq_slice text;
    rq_err rc;
    size_t n = 0;
    char *bytes = malloc(count);
    assert_non_null(bytes);
    memset(bytes, end, count);
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", rq_slice_of(bytes, count), NULL), RQ_OK);
    assert_int_equal(rq__lines_open(v, "f", false, &l, NULL), RQ_OK);
    uint64_t begun = processor_ns();
    while ((rc = rq__lines_next(&l, UINT64_MAX, &text, NULL)) == RQ_OK)
        n++;
    uint64_t taken = processor_ns() - begun;
    assert_int_equal(rc, RQ_E_END);
    assert_int_equal(n, count);
    rq__lines_close(&l);
    rq_vfs_free(v);
    free(bytes);
    return taken;
}

/* Lines end with CR only: the search for LF must not read the rest of the file again for each line. */
static void lines_that_end_with_cr_cost_no_more(void **state)
{
    const size_t count = 2000000;
    (void)state;
    uint64_t lf = time_of_lines('\n', count), cr = time_of_lines('\r', count);
    assert_true(cr < 20 * lf + 1000000000);
}

/* A file that is truncated while it is read is an error; it must not become an endless series of empty lines. */
static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
    rq_vfs *v;
    rq_file *f;
    rq__lines l;
    rq_slice text;
    rq_buf b = {0};
    rq_err rc = RQ_OK;
    size_t count = 0;
    (void)state;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(rq_buf_printf(&b, "%d\n", i), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", rq_buf_slice(&b), NULL), RQ_OK);
    assert_int_equal(rq__lines_open(v, "f", false, &l, NULL), RQ_OK);
    assert_int_equal(rq_vfs_open(v, "f", RQ_OPEN_WRITE, &f, NULL), RQ_OK);
    assert_int_equal(rq_file_truncate(f, 400000, NULL), RQ_OK);
    (void)rq_file_close(f);
    for (; rc == RQ_OK && count < 200000; count++)
        rc = rq__lines_next(&l, UINT64_MAX, &text, NULL);
    assert_int_equal(rc, RQ_E_CORRUPT);
    assert_true(count < 100000);
    rq__lines_close(&l);
    rq_buf_clear(&b);
    rq_vfs_free(v);
}

/* The part's rows do not exist, and must not be counted as imported. */
static void a_part_behind_the_end_of_its_file_is_an_error(void **state)
{
    static const rq_transfer_format formats[] = {RQ_FORMAT_TSV, RQ_FORMAT_CSV, RQ_FORMAT_JSON};
    rq_vfs *v;
    (void)state;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "f", RQ_SLICE_LIT("a\tb\nc\td\n"), NULL), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(formats); i++) {
        rq__crew crew = {0};
        rq__feed feed;
        rq_error why = {.code = RQ_OK};
        const rq__feed_options o = {.format = formats[i]};
        assert_int_equal(rq__feed_open(&crew, &o, v, "f", 4, 8, &feed, NULL), RQ_OK);
        rq__feed_close(&feed);
        assert_int_equal(rq__feed_open(&crew, &o, v, "f", 4, 9, &feed, &why), RQ_E_CORRUPT);
        assert_non_null(strstr(why.message, "shorter"));
        rq__feed_close(&feed);
    }
    rq_vfs_free(v);
}

/* A pipe has no size: nothing would be read, but success reported. An empty file of an export was
 * truncated. */
static void what_has_no_parts_must_be_an_empty_text(void **state)
{
    char folder[] = "/tmp/transfer-XXXXXX", pipe[64], empty[64];
    rq__files f;
    rq_error why = {.code = RQ_OK};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    snprintf(empty, sizeof empty, "%s/empty", folder);
    FILE *file = fopen(empty, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rq__files_open(folder, &f, NULL), RQ_OK);
    assert_int_equal(rq__files_split(&f, 100, NULL), RQ_OK);
    assert_int_equal(f.part_count, 0);
    assert_int_equal(rq__files_check_results(&f, &why), RQ_E_CORRUPT);
    assert_non_null(strstr(why.message, "empty"));
    rq__files_close(&f);
    rq_error_clear(&why);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_not_equal(rq__files_open(pipe, &f, &why), RQ_OK);
    assert_non_null(strstr(why.message, "not a regular file"));
    rq__files_close(&f);
    assert_int_not_equal(rq__files_open(folder, &f, NULL), RQ_OK);
    rq__files_close(&f);
    assert_int_equal(unlink(pipe) | unlink(empty) | rmdir(folder), 0);
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
    assert_int_equal(rq__hash_manifest_parse(RQ_SLICE_LIT("table=t\ntargetBatchSize=1\n"
                                                          "numHashFiles=1\n\0startRowHex=61\n"),
                                             &a, &read, NULL),
                     RQ_E_CORRUPT);
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
        cmocka_unit_test(a_line_has_the_newest_of_each_column),
        cmocka_unit_test(wide_rows_cost_less_than_their_square),
        cmocka_unit_test(parts_have_each_line_once),
        cmocka_unit_test(lines_that_end_with_cr_cost_no_more),
        cmocka_unit_test(a_file_that_shrinks_while_it_is_read_is_an_error),
        cmocka_unit_test(a_part_behind_the_end_of_its_file_is_an_error),
        cmocka_unit_test(what_has_no_parts_must_be_an_empty_text),
        cmocka_unit_test(families_get_their_new_names),
        cmocka_unit_test(a_manifest_is_read_as_it_was_written),
        cmocka_unit_test(ranges_are_read_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
