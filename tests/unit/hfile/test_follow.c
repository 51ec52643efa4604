/* SPDX-License-Identifier: Apache-2.0 */
/* How scanners read ahead: which bytes the operating system is asked for, and that it makes no
 * difference to what they see. */
#include "../base/unit.h"

#include "memory_vfs.h"

#include "hfile/reader.h"
#include "hfile/writer.h"

#include <stdio.h>

#define ROWS 20000
#define VALUE 200
#define BLOCK 4096
#define CHUNKS 65536

typedef struct world {
    memory_vfs vfs;
    rq_block_cache *cache;
    rq_hfile_reader *reader;
    rq_error why;
} world;

/* What was asked for. */
static struct {
    uint64_t calls, bytes, from, to;
} asked;

static void will_need(rq_file *f, uint64_t off, uint64_t len)
{
    (void)f;
    asked.calls++;
    asked.bytes += len;
    if (asked.from == 0) asked.from = off;
    asked.to = off + len;
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

static void begin(world *w, unsigned again_percent)
{
    memset(w, 0, sizeof *w);
    memory_vfs_init(&w->vfs, 1);
    write_rows(w);
    w->vfs.base.will_need = will_need;
    assert_int_equal(rq_block_cache_new(1 << 20, &w->cache), RQ_OK);
    assert_int_equal(rq_hfile_reader_open(&w->vfs.base, "f", w->cache, false, &w->reader, &w->why),
                     RQ_OK);
    w->vfs.again_percent = again_percent;
    memset(&asked, 0, sizeof asked);
}

static void end(world *w)
{
    rq_hfile_reader_unref(w->reader);
    rq_block_cache_free(w->cache);
    memory_vfs_clear(&w->vfs);
}

/* Reads `count` rows from row `from`. `parks`: as between two calls of a client, the scanner is given
 * up now and then, and another one goes on at its place. Returns the bytes read. */
static uint64_t scan(world *w, int from, int count, bool blocks, bool parks)
{
    rq_read_ctx ctx = {.may_block = blocks};
    rq_hfile_scanner s;
    rq_hfile_place place = {0};
    char row[16];
    uint64_t read = 0;
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
            read += ctx.block_bytes_read;
            rq_read_ctx_clear(&ctx);
            ctx = (rq_read_ctx){.may_block = blocks};
            rq_hfile_scanner_clear(&s);
            rq_hfile_scanner_init(&s, w->reader);
        }
    }
    read += ctx.block_bytes_read;
    rq_read_ctx_clear(&ctx);
    rq_hfile_scanner_clear(&s);
    return read;
}

static void a_long_scan_is_read_ahead(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        world w;
        begin(&w, way < 2 ? 0 : 30);
        uint64_t read = scan(&w, 0, ROWS, way % 2 == 0, way >= 1);
        /* All but the first blocks, once; in much fewer steps than blocks. */
        assert_true(asked.bytes >= read * 9 / 10);
        assert_true(asked.bytes <= rq_hfile_reader_info(w.reader)->size_bytes);
        assert_true(asked.calls >= 3 && asked.calls < 60);
        assert_true(asked.to <= rq_hfile_reader_info(w.reader)->size_bytes);
        end(&w);
    }
}

static uint64_t offset_of(world *w, int row)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    char name[16];
    row_of(name, row);
    rq_cell key = rq_cell_first_on_row(rq_slice_cstr(name));
    rq_hfile_scanner_init(&s, w->reader);
    assert_int_equal(rq_hfile_scanner_seek(&s, &ctx, &key, &w->why), RQ_OK);
    uint64_t offset = rq_hfile_scanner_offset(&s);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return offset;
}

/* What a scan leaves unread at its end is less than what it has read, and a short one asks for
 * nothing. */
static void a_scan_that_stops_has_read_little_in_vain(void **state)
{
    (void)state;
    for (int count = 1; count < ROWS / 2; count = count * 3 / 2 + 1) {
        world w;
        begin(&w, 0);
        uint64_t begun = offset_of(&w, 1000);
        uint64_t read = scan(&w, 1000, count, false, false);
        if (count < 30) assert_int_equal(asked.calls, 0);
        /* The first block is in the cache now; the chunks of index and bloom lie between. */
        if (asked.calls > 0) assert_true(asked.to - begun <= 2 * read + CHUNKS);
        end(&w);
    }
}

static void reads_in_places_ask_for_nothing(void **state)
{
    (void)state;
    world w;
    rq_random random;
    begin(&w, 30);
    rq_random_seed(&random, 3);
    for (int i = 0; i < 500; i++)
        scan(&w, (int)rq_random_below(&random, ROWS - 10), 5, i % 2 == 0, false);
    assert_int_equal(asked.calls, 0);
    end(&w);
}

/* What is in the block cache is not asked for. */
static void a_cached_scan_asks_for_nothing(void **state)
{
    (void)state;
    world w;
    begin(&w, 0);
    (void)scan(&w, 0, 1000, true, false);
    memset(&asked, 0, sizeof asked);
    (void)scan(&w, 0, 900, true, false);
    assert_int_equal(asked.calls, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_scan_is_read_ahead),
        cmocka_unit_test(a_scan_that_stops_has_read_little_in_vain),
        cmocka_unit_test(reads_in_places_ask_for_nothing),
        cmocka_unit_test(a_cached_scan_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
