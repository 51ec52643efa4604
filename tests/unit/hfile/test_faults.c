/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged bytes and failing disks: every flipped bit and every truncation is detected and reported,
 * every failing call is reported and has no side effects. HFILE_SEED replays. */
#include "../../seeds.h"
#include "cells.h"
#include "hfile/check.h"
#include "hfile/reader_priv.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct bench {
    uint64_t seed;
    rq_random random;
    memory_vfs vfs;
    cell_list list;
    rq_hfile_options options;
} bench;

static void bench_begin(bench *b, uint64_t seed)
{
    static const rq_compression kinds[] = {RQ_COMPRESSION_NONE, RQ_COMPRESSION_GZ,
                                           RQ_COMPRESSION_SNAPPY, RQ_COMPRESSION_LZ4,
                                           RQ_COMPRESSION_ZSTD};
    *b = (bench){.seed = seed};
    rq_random_seed(&b->random, seed);
    memory_vfs_init(&b->vfs, seed);
    cell_shape shape = {.count = 400,
                        .row_space = 200,
                        .column_space = 9,
                        .value_max = 60,
                        .tags = true,
                        .deletes = true};
    cell_list_make(&b->list, &b->random, &shape);
    b->options = rq_hfile_options_default();
    b->options.compression = kinds[seed % 5];
    b->options.bloom = (rq_bloom_type)(seed % 3);
    b->options.encoding = seed % 7 == 0 ? RQ_ENCODING_ROW_INDEX_V1 : RQ_ENCODING_NONE;
    b->options.block_bytes = 700;
    b->options.index_chunk_bytes = 300;
    b->options.index_entries_min = 3;
    b->options.bloom_chunk_bytes = 128;
    b->options.checksum = seed % 2 ? RQ_CHECKSUM_CRC32C : RQ_CHECKSUM_CRC32;
}

static void bench_end(bench *b)
{
    cell_list_clear(&b->list);
    memory_vfs_clear(&b->vfs);
}

static rq_err write_file(bench *b, rq_error *why)
{
    rq_hfile_writer *w;
    RQ_TRY(rq_hfile_writer_open(&b->vfs.base, "dir/f", &b->options, &w, why));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < b->list.count && rc == RQ_OK; i++)
        rc = rq_hfile_writer_append(w, &b->list.cells[i], why);
    if (rc == RQ_OK) rc = rq_hfile_writer_set_store_info(w, 5, false, NULL, 0, why);
    if (rc == RQ_OK) rc = rq_hfile_writer_finish(w, NULL, why);
    rq_hfile_writer_close(w);
    return rc;
}

static rq_err check_file(bench *b, rq_error *why)
{
    rq_hfile_reader *r;
    rq_hfile_report report;
    RQ_TRY(rq_hfile_reader_open(&b->vfs.base, "dir/f", NULL, false, &r, why));
    rq_err rc = rq_hfile_check(r, &report, why);
    if (rc == RQ_OK) assert_int_equal(report.cells, b->list.count);
    rq_hfile_reader_unref(r);
    return rc;
}

static uint64_t first_seed(void)
{
    uint64_t seed = seeds_number("HFILE_SEED", 7);
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static void a_whole_file_passes_the_check(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(), last = seed + 30; seed < last; seed++) {
        bench b;
        rq_error why = {0};
        bench_begin(&b, seed);
        assert_int_equal(write_file(&b, &why), RQ_OK);
        if (check_file(&b, &why) != RQ_OK) fail_msg("%s", why.message);
        bench_end(&b);
    }
}

static void expect_named(bench *b, rq_err rc, const rq_error *why, const char *what, size_t at)
{
    if (rc != RQ_E_CORRUPT || strstr(why->message, "dir/f") == NULL ||
        strstr(why->message, "offset") == NULL)
        fail_msg("seed %llu: %s at %zu of %zu: %s \"%s\"", (unsigned long long)b->seed, what, at,
                 memory_vfs_bytes(&b->vfs, "dir/f")->len, rq_err_name(rc), why->message);
}

static void every_flipped_bit_is_found_with_file_and_offset(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed(), last = seed + 20; seed < last; seed++) {
        bench b;
        rq_error why = {0};
        bench_begin(&b, seed);
        assert_int_equal(write_file(&b, &why), RQ_OK);
        rq_buf *bytes = memory_vfs_bytes(&b.vfs, "dir/f");
        for (int i = 0; i < 400; i++) {
            /* Half of the damage is in the last sixth: the part that is read when the file is
             * opened. */
            size_t span = i % 2 ? bytes->len : bytes->len / 6;
            size_t at = bytes->len - 1 - rq_random_below(&b.random, span);
            uint8_t bit = (uint8_t)(1u << rq_random_below(&b.random, 8));
            bytes->ptr[at] ^= bit;
            why = (rq_error){0};
            expect_named(&b, check_file(&b, &why), &why, "flip", at);
            bytes->ptr[at] ^= bit;
        }
        bench_end(&b);
    }
}

/* Changes one of the file's statistics; false: no more statistics. */
static bool change_statistic(rq_hfile_info *info, unsigned which)
{
    switch (which) {
    case 0:
        info->entry_count++;
        return true;
    case 1:
        info->entry_count--;
        return true;
    case 2:
        info->max_memstore_ts++;
        return true;
    case 3:
        info->max_memstore_ts--;
        return true;
    case 4:
        info->delete_family_count++;
        return true;
    case 5:
        info->delete_family_count--;
        return true;
    case 6:
        info->min_ts = info->max_ts + 1; /* a smaller value is allowed: HBase's is smaller */
        return true;
    case 7:
        info->max_ts++;
        return true;
    case 8:
        info->max_ts--;
        return true;
    case 9:
        info->last_key.len--;
        return true;
    default:
        return false;
    }
}

/* Checksums protect the statistics: only an error of the writer makes them wrong. */
static void sums_that_are_not_the_cells_are_found(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    assert_int_equal(write_file(&b, &why), RQ_OK);
    for (unsigned which = 0;; which++) {
        rq_hfile_reader *r;
        rq_hfile_report report;
        assert_int_equal(rq_hfile_reader_open(&b.vfs.base, "dir/f", NULL, false, &r, &why), RQ_OK);
        bool changed = change_statistic(&r->info, which);
        rq_err rc = rq_hfile_check(r, &report, &why);
        if (rc != (changed ? RQ_E_CORRUPT : RQ_OK))
            fail_msg("changed statistic %u: %s %s", which, rq_err_name(rc), why.message);
        why = (rq_error){0};
        rq_hfile_reader_unref(r);
        if (!changed) break;
    }
    bench_end(&b);
}

static void every_cut_is_found(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    assert_int_equal(write_file(&b, &why), RQ_OK);
    rq_buf *bytes = memory_vfs_bytes(&b.vfs, "dir/f");
    size_t whole = bytes->len;
    for (size_t len = 0; len < whole; len += 1 + len % 13) {
        bytes->len = len;
        rq_err rc = check_file(&b, &why);
        if (rc != RQ_E_CORRUPT) fail_msg("cut at %zu of %zu: %s", len, whole, rq_err_name(rc));
    }
    bytes->len = whole;
    bench_end(&b);
}

/* A power cut may leave any bytes at the version's position: a file without a valid trailer is
 * torn. It must not be taken for a file of another version, because then the region would not
 * open. */
static void a_torn_end_is_no_other_version(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    assert_int_equal(write_file(&b, &why), RQ_OK);
    rq_buf *bytes = memory_vfs_bytes(&b.vfs, "dir/f");
    rq_hfile_reader *r;
    for (uint32_t major = 0; major < 5; major++) {
        for (uint32_t minor = 0; minor < 5; minor++) {
            if (major == 3) continue; /* this file's own version */
            rq_put_be32(bytes->ptr + bytes->len - 4, minor << 24 | major);
            assert_int_equal(rq_hfile_reader_open(&b.vfs.base, "dir/f", NULL, false, &r, &why),
                             RQ_E_CORRUPT);
        }
    }
    bench_end(&b);
}

static void a_failing_write_or_sync_fails_the_writer_and_leaves_no_file(void **state)
{
    (void)state;
    bench b;
    bench_begin(&b, first_seed());
    b.list.count = 300;
    rq_err rc;
    uint64_t n = 0;
    do {
        rq_error why = {0};
        b.vfs.calls = 0;
        b.vfs.fail_at = ++n;
        rc = write_file(&b, &why);
        if (rc != RQ_OK) {
            assert_int_equal(rc, RQ_E_IO);
            assert_null(memory_vfs_bytes(&b.vfs, "dir/f"));
        }
    } while (rc != RQ_OK);
    assert_true(n >= 4); /* write, sync, sync of the folder, and the round without a failure */
    assert_true(b.vfs.dir_syncs > 0);
    bench_end(&b);
}

static void a_failing_read_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    assert_int_equal(write_file(&b, &why), RQ_OK);
    rq_err rc;
    uint64_t n = 0;
    do {
        why = (rq_error){0};
        b.vfs.calls = 0;
        b.vfs.fail_at = ++n;
        rc = check_file(&b, &why);
        if (rc != RQ_OK) assert_int_equal(rc, RQ_E_IO);
    } while (rc != RQ_OK);
    assert_true(n > 20);
    bench_end(&b);
}

static void cells_out_of_order_are_refused(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    rq_hfile_writer *w;
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "dir/f", &b.options, &w, &why), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(w, &b.list.cells[10], &why), RQ_OK);
    /* The same key with another sequence id is accepted. */
    assert_int_equal(rq_hfile_writer_append(w, &b.list.cells[10], &why), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(w, &b.list.cells[9], &why), RQ_E_INVALID);
    assert_non_null(strstr(why.message, "out of order"));
    rq_hfile_writer_close(w);
    assert_null(memory_vfs_bytes(&b.vfs, "dir/f"));
    bench_end(&b);
}

static void reserved_keys_and_bad_options_are_refused(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    rq_hfile_writer *w;
    rq_hfile_options bad = b.options;
    /* HBase once had an encoding with this number, and removed it */
    bad.encoding = (rq_block_encoding)5;
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "f", &bad, &w, &why), RQ_E_UNSUPPORTED);
    bad = b.options;
    bad.compression = RQ_COMPRESSION_BROTLI;
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "f", &bad, &w, NULL), RQ_E_UNSUPPORTED);
    bad = b.options;
    bad.block_bytes = 0;
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "f", &bad, &w, NULL), RQ_E_INVALID);
    assert_null(memory_vfs_bytes(&b.vfs, "f"));
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "f", &b.options, &w, NULL), RQ_OK);
    assert_int_equal(
        rq_hfile_writer_append_file_info(w, RQ_SLICE_LIT("hfile.X"), RQ_SLICE_LIT("v"), NULL),
        RQ_E_INVALID);
    assert_int_equal(
        rq_hfile_writer_append_file_info(w, RQ_SLICE_LIT("X"), RQ_SLICE_LIT("v"), NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(w, NULL, NULL), RQ_OK);
    rq_hfile_writer_close(w);
    rq_hfile_reader *r;
    rq_slice v;
    assert_int_equal(rq_hfile_reader_open(&b.vfs.base, "f", NULL, false, &r, NULL), RQ_OK);
    assert_true(rq_hfile_reader_file_info(r, RQ_SLICE_LIT("X"), &v));
    assert_true(rq_slice_eq(v, RQ_SLICE_LIT("v")));
    assert_false(rq_hfile_reader_file_info(r, RQ_SLICE_LIT("Y"), &v));
    rq_hfile_reader_unref(r);
    /* An existing file is never overwritten. */
    assert_int_equal(rq_hfile_writer_open(&b.vfs.base, "f", &b.options, &w, NULL), RQ_E_EXISTS);
    assert_non_null(memory_vfs_bytes(&b.vfs, "f"));
    bench_end(&b);
}

/* HBASE: 0.98 wrote version 2.3, which differs in the trailer's size alone. */
static void a_file_of_version_2_is_read(void **state)
{
    (void)state;
    bench b;
    rq_error why = {0};
    bench_begin(&b, first_seed());
    assert_int_equal(write_file(&b, &why), RQ_OK);
    rq_buf *bytes = memory_vfs_bytes(&b.vfs, "dir/f");
    size_t trailer = bytes->len - RQ_HFILE_TRAILER_LEN;
    bytes->len = trailer + RQ_HFILE_TRAILER_V2_LEN; /* the message is shorter; the rest is zeros */
    rq_put_be32(bytes->ptr + bytes->len - 4, 3u << 24 | 2);
    rq_hfile_reader *r;
    rq_hfile_scanner s;
    rq_read_ctx ctx = {.may_block = true};
    if (rq_hfile_reader_open(&b.vfs.base, "dir/f", NULL, false, &r, &why) != RQ_OK)
        fail_msg("%s", why.message);
    rq_hfile_scanner_init(&s, r);
    size_t count = 0;
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, &why);
    for (; rc == RQ_OK; rc = rq_hfile_scanner_next(&s, &ctx, &why))
        count++;
    assert_int_equal(rc, RQ_E_END);
    assert_int_equal(count, b.list.count);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_hfile_reader_unref(r);
    /* Before version 2.3 the trailer was not protobuf. */
    rq_put_be32(bytes->ptr + bytes->len - 4, 2u << 24 | 2);
    assert_int_equal(rq_hfile_reader_open(&b.vfs.base, "dir/f", NULL, false, &r, &why),
                     RQ_E_UNSUPPORTED);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_passes_the_check),
        cmocka_unit_test(every_flipped_bit_is_found_with_file_and_offset),
        cmocka_unit_test(sums_that_are_not_the_cells_are_found),
        cmocka_unit_test(every_cut_is_found),
        cmocka_unit_test(a_torn_end_is_no_other_version),
        cmocka_unit_test(a_failing_write_or_sync_fails_the_writer_and_leaves_no_file),
        cmocka_unit_test(a_failing_read_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_file_of_version_2_is_read),
        cmocka_unit_test(cells_out_of_order_are_refused),
        cmocka_unit_test(reserved_keys_and_bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
