/* SPDX-License-Identifier: Apache-2.0 */
/* When scanners advise the operating system of sequential reads; their rows do not depend on the advice. */
#include "../base/unit.h"

#include "memory_vfs.h"

#include "hfile/reader.h"
#include "hfile/writer.h"

#include <stdio.h>

#define ROWS 20000
#define VALUE 200
#define BLOCK 4096

typedef struct world {
    memory_vfs vfs;
    rq_block_cache *cache;
    rq_hfile_reader *reader;
    rq_error why;
} world;

/* The advice that the file received. */
static struct {
    bool on;
    unsigned changes;
    uint64_t reads_on, reads_off; /* reads of blocks, since the last reset */
} advice;

static void in_sequence(rq_file *f, bool on)
{
    (void)f;
    assert_int_equal(advice.on, !on); /* no advice is given twice */
    advice.on = on;
    advice.changes++;
}

static rq_err (*read_file)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                           rq_error *why);
static unsigned again_percent;
static rq_random chance;

static rq_err count_read(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                         rq_error *why)
{
    uint64_t *count = advice.on ? &advice.reads_on : &advice.reads_off;
    (*count)++;
    return read_file(f, buf, len, off, ret_len, why);
}

static rq_err count_try_read(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    if (rq_random_below(&chance, 100) < again_percent) return RQ_E_AGAIN;
    return count_read(f, buf, len, off, ret_len, NULL);
}

static void row_of(char row[16], int i)
{
    snprintf(row, 16, "row%08d", i);
}

static void write_rows(world *w)
{
    static uint8_t value[VALUE];
    rq_hfile_options options = rq_hfile_options_default();
    rq_hfile_writer *writer;
    options.block_bytes = BLOCK;
    assert_int_equal(rq_hfile_writer_open(&w->vfs.base, "f", &options, &writer, &w->why), RQ_OK);
    for (int i = 0; i < ROWS; i++) {
        char row[16];
        row_of(row, i);
        rq_cell cell = {.row = (const uint8_t *)row,
                        .row_len = (uint16_t)strlen(row),
                        .family = (const uint8_t *)"f",
                        .family_len = 1,
                        .qualifier = (const uint8_t *)"q",
                        .qualifier_len = 1,
                        .timestamp = 1,
                        .type = RQ_TYPE_PUT,
                        .value = value,
                        .value_len = VALUE};
        assert_int_equal(rq_hfile_writer_append(writer, &cell, &w->why), RQ_OK);
    }
    assert_int_equal(rq_hfile_writer_finish(writer, NULL, &w->why), RQ_OK);
    rq_hfile_writer_close(writer);
}

static void begin(world *w, unsigned percent)
{
    memset(w, 0, sizeof *w);
    memory_vfs_init(&w->vfs, 1);
    write_rows(w);
    read_file = w->vfs.base.read;
    w->vfs.base.read = count_read;
    w->vfs.base.try_read = count_try_read;
    w->vfs.base.in_sequence = in_sequence;
    assert_int_equal(rq_block_cache_new(1 << 20, &w->cache), RQ_OK);
    assert_int_equal(rq_hfile_reader_open(&w->vfs.base, "f", w->cache, false, &w->reader, &w->why),
                     RQ_OK);
    again_percent = percent;
    rq_random_seed(&chance, 2);
    memset(&advice, 0, sizeof advice);
}

static void end(world *w)
{
    rq_hfile_reader_unref(w->reader);
    rq_block_cache_free(w->cache);
    memory_vfs_clear(&w->vfs);
}

/* Reads `count` rows from row `from`. `parks`: sometimes the scanner is freed and another one
 * continues at its position, as between two calls of a client. */
static void scan(world *w, int from, int count, bool blocks, bool parks)
{
    rq_read_ctx ctx = {.may_block = blocks};
    rq_hfile_scanner s;
    rq_hfile_place place = {0};
    char row[16];
    rq_hfile_scanner_init(&s, w->reader);
    for (int i = 0; i < count; i++) {
        row_of(row, from + i);
        rq_cell key = rq_cell_first_on_row(rq_slice_cstr(row));
        bool seeks = rq_hfile_scanner_cell(&s) == NULL;
        rq_err rc;
        while ((rc = seeks ? rq_hfile_scanner_seek_from(&s, &ctx, &key, &place, &w->why)
                           : rq_hfile_scanner_next(&s, &ctx, &w->why)) == RQ_E_AGAIN) {
            assert_true(rq_read_ctx_needs(&ctx));
            assert_int_equal(rq_read_ctx_fulfil(&ctx, &w->why), RQ_OK);
        }
        assert_int_equal(rc, RQ_OK);
        assert_true(rq_slice_eq(rq_cell_row(rq_hfile_scanner_cell(&s)), rq_slice_cstr(row)));
        if (parks && i % 97 == 0) {
            place = rq_hfile_scanner_place(&s);
            rq_read_ctx_clear(&ctx);
            ctx = (rq_read_ctx){.may_block = blocks};
            rq_hfile_scanner_clear(&s);
            rq_hfile_scanner_init(&s, w->reader);
        }
    }
    rq_read_ctx_clear(&ctx);
    rq_hfile_scanner_clear(&s);
}

static void a_long_scan_advises_sequential_reads(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        world w;
        begin(&w, way < 2 ? 0 : 30);
        scan(&w, 0, ROWS, way % 2 == 0, way >= 1);
        assert_true(advice.reads_off <= 4); /* the first blocks of the scan */
        assert_true(advice.reads_on > ROWS * (uint64_t)VALUE / BLOCK);
        assert_false(advice.on); /* the scan has ended */
        end(&w);
    }
}

static void a_short_scan_is_not(void **state)
{
    (void)state;
    world w;
    rq_random random;
    begin(&w, 30);
    rq_random_seed(&random, 3);
    for (int i = 0; i < 500; i++) {
        int count = 1 + (int)rq_random_below(&random, 30); /* at most three blocks */
        scan(&w, (int)rq_random_below(&random, ROWS - 40), count, i % 2 == 0, false);
    }
    assert_int_equal(advice.changes, 0);
    end(&w);
}

/* The first of several scanners sets the advice, and the last one resets it. */
static void several_scanners_share_one_advice(void **state)
{
    (void)state;
    world w;
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s[3];
    begin(&w, 0);
    for (int i = 0; i < 3; i++) {
        rq_hfile_scanner_init(&s[i], w.reader);
        assert_int_equal(rq_hfile_scanner_seek_first(&s[i], &ctx, &w.why), RQ_OK);
        for (int rows = 0; rows < 200; rows++)
            assert_int_equal(rq_hfile_scanner_next(&s[i], &ctx, &w.why), RQ_OK);
        assert_true(advice.on);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(advice.on);
        rq_hfile_scanner_clear(&s[i]);
    }
    assert_int_equal(advice.changes, 2);
    rq_read_ctx_clear(&ctx);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_scan_advises_sequential_reads),
        cmocka_unit_test(a_short_scan_is_not),
        cmocka_unit_test(several_scanners_share_one_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
