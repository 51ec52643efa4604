/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are read without a thread (rq_read_ctx_begin): the block is that of an ordinary read, and whatever cannot be
 * done on an event loop is left to rq_read_ctx_fulfil. */
#include "../base/unit.h"

#include "cells.h"
#include "hfile/cache_priv.h"
#include "hfile/reader_priv.h"
#include "hfile/second_level.h"
#include "hfile/writer.h"
#include "memory_vfs.h"
#include "vfs/reads_priv.h"

#include <errno.h>

#define BLOCK 4096

typedef struct world {
    rq_random random;
    memory_vfs vfs;
    cell_list list;
    rq_block_cache *cache;
    rq_hfile_reader *reader;
    rq_hfile_scanner scanner;
    rq_lane lane;
    rq_reads_shared shared;
    rq_reads *reads;
    rq_read_ctx ctx;
    rq_error why;
} world;

/* The begun read, which ends when the test calls deliver. */
static struct {
    rq_file *file;
    rq_read *read;
    unsigned asked, posted;
    bool refuses;
} io;

static bool begin_read(rq_file *f, rq_reads *q, rq_read *r, uint64_t off, size_t len)
{
    io.asked++;
    if (io.refuses || !rq__read_take(q, r, off, len)) return false;
    io.file = f;
    io.read = r;
    return true;
}

static void post(rq_lane *lane, rq_task *task)
{
    (void)lane, (void)task;
    io.posted++;
}

/* Ends the read with at most this many bytes. */
static void deliver(size_t most)
{
    size_t got;
    rq_error why;
    size_t len = io.read->len < most ? io.read->len : most;
    assert_int_equal(io.file->vfs->read(io.file, io.read->bytes, len, io.read->from, &got, &why),
                     RQ_OK);
    rq__read_ended(io.read, (int32_t)got);
}

static void begin(world *w, const cell_shape *shape, const rq_hfile_options *options)
{
    memset(w, 0, sizeof *w);
    memset(&io, 0, sizeof io);
    rq_random_seed(&w->random, 3);
    memory_vfs_init(&w->vfs, 1);
    w->vfs.again_percent = 100; /* nothing is in the page cache */
    w->vfs.base.begin_read = begin_read;
    cell_list_make(&w->list, &w->random, shape);
    assert_int_equal(cell_list_write(&w->list, &w->vfs.base, "f", options, &w->why), RQ_OK);
    assert_int_equal(rq_block_cache_new((uint64_t)16 << 20, &w->cache), RQ_OK);
    assert_int_equal(rq_hfile_reader_open(&w->vfs.base, "f", w->cache, false, &w->reader, &w->why),
                     RQ_OK);
    rq_hfile_scanner_init(&w->scanner, w->reader);
    w->lane.post = post;
    w->shared.bytes_max = (uint64_t)8 << 20;
    assert_int_equal(rq_reads_new(&w->lane, &w->shared, &w->reads), RQ_OK);
}

static void end(world *w)
{
    rq_read_ctx_clear(&w->ctx);
    rq_hfile_scanner_clear(&w->scanner);
    assert_int_equal(w->shared.bytes, 0);
    rq_reads_free(w->reads);
    rq_hfile_reader_unref(w->reader);
    rq_block_cache_free(w->cache);
    cell_list_clear(&w->list);
    memory_vfs_clear(&w->vfs);
}

static void begin_small(world *w, rq_compression compression)
{
    cell_shape shape = {.count = 2000, .row_space = 1000, .column_space = 5, .value_max = 100};
    rq_hfile_options o = rq_hfile_options_default();
    o.block_bytes = BLOCK;
    o.compression = compression;
    begin(w, &shape, &o);
}

static rq_err seek(world *w, size_t cell)
{
    return rq_hfile_scanner_seek(&w->scanner, &w->ctx, &w->list.cells[cell], &w->why);
}

/* Seeks, without a thread unless the operating system reads ahead; returns the number of blocks that were read. */
static unsigned seek_by_begun_reads(world *w, size_t cell)
{
    unsigned begun = 0;
    rq_task task;
    rq_err rc;
    while ((rc = seek(w, cell)) == RQ_E_AGAIN) {
        bool follows = w->ctx.need.follows;
        assert_true(rq_read_ctx_begin(&w->ctx, w->reads, &task) != follows);
        if (!follows) {
            assert_ptr_equal(io.read->task, &task);
            deliver(SIZE_MAX);
        }
        assert_int_equal((follows ? rq_read_ctx_fulfil : rq_read_ctx_take)(&w->ctx, &w->why),
                         RQ_OK);
        assert_null(w->ctx.need.reader);
        begun++;
    }
    assert_int_equal(rc, RQ_OK);
    assert_int_equal(rq_cell_compare_key(RQ_ORDER_DEFAULT, rq_hfile_scanner_cell(&w->scanner),
                                         &w->list.cells[cell]),
                     0);
    return begun;
}

static void every_cell_is_found(void **state)
{
    static const rq_compression kinds[] = {RQ_COMPRESSION_NONE, RQ_COMPRESSION_ZSTD};
    (void)state;
    for (size_t k = 0; k < RQ_ARRAY_LEN(kinds); k++) {
        world w;
        unsigned begun = 0;
        begin_small(&w, kinds[k]);
        for (size_t i = 0; i < w.list.count; i++) {
            begun += seek_by_begun_reads(&w, i * 1103 % w.list.count);
            rq_read_ctx_unpin(&w.ctx);
        }
        assert_int_equal(w.ctx.blocks_read, begun); /* each block once: the cache has them now */
        assert_true(begun > 10);
        assert_true(w.shared.begun > 10);
        assert_int_equal(w.shared.failed, 0);
        end(&w);
    }
}

/* A thread then reads the block, and reports an error if there is one. */
static void a_failed_or_short_read_is_left_to_a_thread(void **state)
{
    (void)state;
    world w;
    rq_task task;
    begin_small(&w, RQ_COMPRESSION_NONE);
    static const size_t most[] = {0, 1, RQ_HFILE_HEADER_LEN, BLOCK / 2};
    for (size_t i = 0; i < RQ_ARRAY_LEN(most); i++) {
        rq_err rc;
        unsigned again = 0;
        while ((rc = seek(&w, 1999 - 400 * i)) == RQ_E_AGAIN) {
            rq_read_need need = w.ctx.need;
            assert_true(rq_read_ctx_begin(&w.ctx, w.reads, &task));
            if (i % 2 == 0)
                deliver(most[i]);
            else
                rq__read_ended(io.read, -EIO);
            assert_int_equal(rq_read_ctx_take(&w.ctx, &w.why), RQ_E_AGAIN);
            assert_ptr_equal(w.ctx.need.reader, need.reader);
            assert_int_equal(w.ctx.need.offset, need.offset);
            assert_int_equal(w.shared.bytes, 0);
            assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &w.why), RQ_OK);
            again++;
        }
        assert_int_equal(rc, RQ_OK);
        assert_true(again > 0);
    }
    end(&w);
}

static void damage_is_reported_as_by_a_thread(void **state)
{
    (void)state;
    world w;
    rq_task task;
    rq_error expected;
    rq_error_clear(&expected);
    begin_small(&w, RQ_COMPRESSION_NONE);
    assert_int_equal(seek(&w, 1000), RQ_E_AGAIN);
    while (w.ctx.need.kind != RQ_BLOCK_DATA) {
        assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &w.why), RQ_OK);
        assert_int_equal(seek(&w, 1000), RQ_E_AGAIN);
    }
    memory_vfs_bytes(&w.vfs, "f")->ptr[w.ctx.need.offset + 100] ^= 4;
    assert_true(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    deliver(SIZE_MAX);
    assert_int_equal(rq_read_ctx_take(&w.ctx, &w.why), RQ_E_CORRUPT);
    assert_null(w.ctx.need.reader);
    assert_int_equal(seek(&w, 1000), RQ_E_AGAIN);
    assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &expected), RQ_E_CORRUPT);
    assert_string_equal(w.why.message, expected.message);
    end(&w);
}

/* An event loop does not decompress it. */
static void a_block_that_is_long_in_memory_is_left_to_a_thread(void **state)
{
    (void)state;
    world w;
    rq_task task;
    cell_shape shape = {.count = 3000, .row_space = 3000, .column_space = 2, .value_max = 1};
    rq_hfile_options o = rq_hfile_options_default();
    o.block_bytes = RQ__LOAD_AT_ONCE_MAX + 1000;
    o.compression = RQ_COMPRESSION_ZSTD;
    shape.count = 20000;
    begin(&w, &shape, &o);
    assert_int_equal(seek(&w, 10), RQ_E_AGAIN);
    while (w.ctx.need.kind != RQ_BLOCK_DATA) {
        assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &w.why), RQ_OK);
        assert_int_equal(seek(&w, 10), RQ_E_AGAIN);
    }
    rq_read_need need = w.ctx.need;
    if (need.size <= RQ__LOAD_AT_ONCE_MAX) {
        assert_true(rq_read_ctx_begin(&w.ctx, w.reads, &task));
        deliver(SIZE_MAX);
        assert_int_equal(rq_read_ctx_take(&w.ctx, &w.why), RQ_E_AGAIN);
    } else {
        assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    }
    assert_ptr_equal(w.ctx.need.reader, need.reader);
    assert_int_equal(w.ctx.need.offset, need.offset);
    assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &w.why), RQ_OK);
    assert_int_equal(seek(&w, 10), RQ_OK);
    end(&w);
}

static void what_cannot_be_begun_is_left_to_a_thread(void **state)
{
    (void)state;
    world w;
    rq_task task;
    begin_small(&w, RQ_COMPRESSION_NONE);
    assert_int_equal(seek(&w, 1000), RQ_E_AGAIN);
    assert_false(rq_read_ctx_begin(&w.ctx, NULL, &task)); /* a seat without them */
    io.refuses = true;
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    assert_int_equal(io.asked, 1);
    io.refuses = false;
    rq_read_need need = w.ctx.need;
    w.ctx.need.size = UINT32_MAX; /* a damaged index */
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    w.ctx.need.size = 3;
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    w.ctx.need = need;
    w.ctx.need.offset = UINT64_MAX;
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    w.ctx.need = need;
    w.ctx.need.follows = true; /* the operating system reads ahead */
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    w.ctx.need = need;
    w.shared.bytes_max = 100;
    assert_false(rq_read_ctx_begin(&w.ctx, w.reads, &task));
    assert_int_equal(w.shared.begun, 0);
    assert_int_equal(rq_read_ctx_fulfil(&w.ctx, &w.why), RQ_OK);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_found),
        cmocka_unit_test(a_failed_or_short_read_is_left_to_a_thread),
        cmocka_unit_test(damage_is_reported_as_by_a_thread),
        cmocka_unit_test(a_block_that_is_long_in_memory_is_left_to_a_thread),
        cmocka_unit_test(what_cannot_be_begun_is_left_to_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
