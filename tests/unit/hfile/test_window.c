/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that long scans read in advance: whatever happens to these reads, and whenever they happen, scans return
 * the rows of the file, and the memory stays within its bound. */
#include "../base/unit.h"

#include "cells.h"
#include "hfile/cache_priv.h"
#include "hfile/reader.h"
#include "hfile/reader_priv.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 24000
#define VALUE 300
#define BLOCK 4096
#define CACHE ((uint64_t)64 << 20)
#define TASKS_MAX 1024

/* --- an executor whose tasks run when the test says so ----------------------------------------- */

static struct {
    rq_executor base;
    rq_task *tasks[TASKS_MAX];
    size_t count;
    uint64_t now_ns;
    size_t asked; /* tasks of RQ_POOL_READ so far */
    size_t most;  /* maximum of waiting tasks */
    bool rests;   /* they run only if a scan waits for one */
} manual;

static void run_one(size_t at)
{
    rq_task *task = manual.tasks[at];
    manual.tasks[at] = manual.tasks[--manual.count];
    task->run(task);
}

static void run_first(void)
{
    rq_task *task = manual.tasks[0];
    memmove(manual.tasks, manual.tasks + 1, --manual.count * sizeof manual.tasks[0]);
    task->run(task);
}

static void run_all(void)
{
    while (manual.count > 0)
        run_one(0);
}

static void submit(rq_executor *ex, rq_pool pool, rq_task *task)
{
    (void)ex;
    assert_true(manual.count < TASKS_MAX);
    manual.tasks[manual.count++] = task;
    if (pool == RQ_POOL_READ) manual.asked++;
    if (pool == RQ_POOL_READ && manual.count > manual.most) manual.most = manual.count;
}

static void latch_init(rq_executor *ex, rq_latch *latch)
{
    *latch = (rq_latch){.executor = ex};
}

static void latch_open(rq_latch *latch, rq_err rc)
{
    latch->rc = rc;
    latch->open = true;
}

static rq_err latch_wait(rq_latch *latch)
{
    while (!latch->open) {
        assert_true(manual.count > 0); /* else it would wait forever */
        run_one(0);
    }
    return latch->rc;
}

static void latch_destroy(rq_latch *latch)
{
    (void)latch;
}

static uint64_t manual_now(rq_executor *ex)
{
    (void)ex;
    return manual.now_ns;
}

/* --- a file ------------------------------------------------------------------------------------ */

typedef struct world {
    memory_vfs vfs;
    rq_block_cache *cache;
    rq_hfile_reader *reader;
    rq_random random;
    rq_error why;
} world;

static rq_err (*read_bytes)(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                            rq_error *why);

/* What the file's reads do. */
static struct {
    uint64_t bad_from, bad_to; /* reads of these bytes fail */
    uint64_t cut_at;           /* the file ends here; 0: at its end */
    unsigned plans;            /* percentage of parts that are to be read in windows */
    size_t large, small;       /* reads of several blocks, and others */
    size_t past;               /* of them past the page cache */
    uint64_t bytes;
    uint64_t ahead_from, ahead_to; /* for these bytes RQ_READ_AHEAD is planned */
    size_t os_reads_ahead;         /* how often that was turned on */
} io;

static rq_err read_or_fail(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                           rq_error *why)
{
    (*(len > 3 * BLOCK ? &io.large : &io.small))++;
    io.bytes += len;
    if (off < io.bad_to && off + len > io.bad_from)
        return rq_fail(why, RQ_E_IO, "these bytes cannot be read");
    if (io.cut_at > 0 && off + len > io.cut_at) len = off < io.cut_at ? io.cut_at - off : 0;
    return read_bytes(f, buf, len, off, ret_len, why);
}

static rq_err read_past(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                        rq_error *why)
{
    io.past++;
    return read_or_fail(f, buf, len, off, ret_len, why);
}

static rq_read_plan plan_read(rq_file *f, uint64_t off, uint64_t len)
{
    (void)f;
    assert_true(len > 0);
    unsigned draw = (unsigned)(off * UINT64_C(0x9e3779b97f4a7c15) >> 32) % 100;
    if (off >= io.ahead_from && off < io.ahead_to) return RQ_READ_AHEAD;
    return draw < io.plans ? RQ_READ_PAST : draw % 2 == 0 ? RQ_READ_AHEAD : RQ_READ_CACHED;
}

static void in_sequence(rq_file *f, bool on)
{
    (void)f;
    io.os_reads_ahead += on;
}

static void row_of(char row[16], int i)
{
    snprintf(row, 16, "row%08d", i);
}

static void write_rows(world *w, const rq_hfile_options *options)
{
    static uint8_t value[VALUE];
    rq_hfile_writer *writer;
    assert_int_equal(rq_hfile_writer_open(&w->vfs.base, "f", options, &writer, &w->why), RQ_OK);
    for (int i = 0; i < ROWS; i++) {
        char row[16];
        row_of(row, i);
        for (size_t k = 0; k + sizeof(uint64_t) <= VALUE; k += sizeof(uint64_t))
            rq_put_be64(value + k, rq_random_next(&w->random) & UINT64_C(0xff0303ff0303ff03));
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

static void open_again(world *w)
{
    assert_int_equal(rq_hfile_reader_open(&w->vfs.base, "f", w->cache, false, &w->reader, &w->why),
                     RQ_OK);
}

static void begin_with(world *w, const rq_hfile_options *options, uint64_t cache_bytes)
{
    memset(w, 0, sizeof *w);
    memset(&io, 0, sizeof io);
    memset(&manual, 0, sizeof manual);
    manual.base = (rq_executor){.submit = submit,
                                .latch_init = latch_init,
                                .latch_open = latch_open,
                                .latch_wait = latch_wait,
                                .latch_destroy = latch_destroy,
                                .now_ns = manual_now};
    io.plans = 100;
    memory_vfs_init(&w->vfs, 1);
    rq_random_seed(&w->random, 5);
    write_rows(w, options);
    read_bytes = w->vfs.base.read;
    w->vfs.base.read = read_or_fail;
    w->vfs.base.plan_read = plan_read;
    w->vfs.base.read_past = read_past;
    w->vfs.base.in_sequence = in_sequence;
    w->vfs.again_percent = 100; /* nothing is in the page cache */
    assert_int_equal(rq_block_cache_new(cache_bytes, &w->cache), RQ_OK);
    rq_block_cache_make_ready(w->cache, &manual.base);
    run_all();
    open_again(w);
    memset(&io, 0, sizeof io);
    io.plans = 100;
    manual.asked = manual.most = 0;
}

static rq_hfile_options small_blocks(void)
{
    rq_hfile_options o = rq_hfile_options_default();
    o.block_bytes = BLOCK;
    return o;
}

static void begin(world *w)
{
    rq_hfile_options o = small_blocks();
    begin_with(w, &o, CACHE);
}

/* With some twenty leaves of the index. */
static void begin_with_leaves(world *w)
{
    rq_hfile_options o = small_blocks();
    o.index_chunk_bytes = 3000;
    begin_with(w, &o, CACHE);
    assert_int_equal(w->reader->info.data_index_levels, 2);
}

static void end(world *w)
{
    rq_hfile_reader_unref(w->reader);
    rq_block_cache_free(w->cache); /* runs what is left */
    memory_vfs_clear(&w->vfs);
}

static uint64_t window_bytes(const world *w)
{
    assert_true(w->cache->windows.bytes <= rq__windows_bytes_max(w->cache->capacity));
    return w->cache->windows.bytes;
}

/* --- scans ------------------------------------------------------------------------------------- */

/* A scan as a server's event loop makes it. */
typedef struct scan {
    rq_read_ctx ctx;
    rq_hfile_scanner s;
    rq_hfile_place place;
    int next; /* the row that is expected */
    rq_err rc;
    rq_task task;
    bool waits;      /* for the task */
    unsigned waited; /* how often a block was not in memory */
    world *w;
} scan;

static void scan_init(scan *x, world *w, int from, bool cache)
{
    *x = (scan){.ctx = {.dont_cache = !cache}, .next = from, .w = w};
    rq_hfile_scanner_init(&x->s, w->reader);
}

/* As at the end of a slice, or between two calls of a client. */
static void park(scan *x, world *w)
{
    rq_read_ctx_clear(&x->ctx);
    if (rq_hfile_scanner_cell(&x->s) != NULL) x->place = rq_hfile_scanner_place(&x->s);
    rq_hfile_scanner_clear(&x->s);
    rq_hfile_scanner_init(&x->s, w->reader);
}

static void scan_clear(scan *x)
{
    rq_read_ctx_clear(&x->ctx);
    rq_hfile_scanner_clear(&x->s);
}

static rq_err move(scan *x, world *w)
{
    char row[16];
    row_of(row, x->next);
    rq_cell key = rq_cell_first_on_row(rq_slice_cstr(row));
    return rq_hfile_scanner_cell(&x->s) == NULL
               ? rq_hfile_scanner_seek_from(&x->s, &x->ctx, &key, &x->place, &w->why)
               : rq_hfile_scanner_next(&x->s, &x->ctx, &w->why);
}

static void run_fulfil(rq_task *task)
{
    scan *x = RQ_CONTAINER_OF(task, scan, task);
    x->rc = rq_read_ctx_fulfil(&x->ctx, &x->w->why);
    x->waits = false;
}

/* Reads the block in a task of its own, or waits for the task that reads its window. */
static void get_block(scan *x, world *w)
{
    x->task.run = run_fulfil;
    x->waits = true;
    if (rq_random_below(&w->random, 2) == 0 || !rq_read_ctx_wait(&x->ctx, &x->task))
        run_fulfil(&x->task);
    while (x->waits) {
        assert_true(manual.count > 0);
        run_one(rq_random_below(&w->random, manual.count));
    }
}

/* Reads up to `count` rows; false: the scan has ended, by x->rc. */
static bool go_on(scan *x, world *w, int count)
{
    for (int i = 0; i < count; i++) {
        char row[16];
        while ((x->rc = move(x, w)) == RQ_E_AGAIN) {
            assert_true(rq_read_ctx_needs(&x->ctx));
            x->waited++;
            if (!manual.rests && rq_random_below(&w->random, 2) == 0 && manual.count > 0)
                run_one(rq_random_below(&w->random, manual.count));
            get_block(x, w);
            if (x->rc != RQ_OK) return false;
            (void)window_bytes(w);
        }
        if (x->rc != RQ_OK) return false;
        row_of(row, x->next++);
        assert_true(rq_slice_eq(rq_cell_row(rq_hfile_scanner_cell(&x->s)), rq_slice_cstr(row)));
    }
    return true;
}

static void scan_to_end(scan *x, world *w)
{
    while (go_on(x, w, 1 + (int)rq_random_below(&w->random, 300))) {
        if (rq_random_below(&w->random, 3) == 0) park(x, w);
        if (rq_random_below(&w->random, 3) == 0) run_all();
    }
}

/* --- tests ------------------------------------------------------------------------------------- */

static void a_long_scan_reads_windows(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        world w;
        scan x;
        begin(&w);
        scan_init(&x, &w, 0, cache == 1);
        while (go_on(&x, &w, 50))
            run_all();
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        /* Few blocks are read by themselves, and none twice. */
        assert_true(io.large > 5);
        assert_true(io.small < 20);
        assert_int_equal(io.past, io.large);
        assert_int_equal(io.os_reads_ahead, 0);
        assert_true(io.bytes < w.reader->data_end + io.large * 2 * RQ_READ_ALIGN);
        assert_int_equal(window_bytes(&w), 0); /* all were used */
        scan_clear(&x);
        end(&w);
    }
}

/* Windows continue behind the end of a leaf index block: the scan waits neither for the next leaf nor for its data
 * blocks. */
static void windows_go_on_in_the_next_leaf(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        world w;
        scan x;
        rq_hfile_options o = small_blocks();
        o.index_chunk_bytes = 8000;
        begin_with(&w, &o, CACHE);
        assert_int_equal(w.reader->info.data_index_levels, 2);
        scan_init(&x, &w, 0, cache == 1);
        while (go_on(&x, &w, 50))
            run_all();
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        assert_true(w.reader->held_count > 7); /* leaves */
        assert_in_range(x.waited, 1, 10);
        assert_true(io.bytes < w.reader->data_end + (io.large + io.small) * 2 * RQ_READ_ALIGN);
        assert_int_equal(window_bytes(&w), 0);
        scan_clear(&x);
        end(&w);
    }
}

/* A leaf that cannot be read in advance is not asked for again for each block, and the scan reports the error when it
 * reaches the leaf. */
static void a_leaf_that_cannot_be_read_is_reported_at_its_place(void **state)
{
    (void)state;
    world w;
    scan x;
    rq_hfile_options o = small_blocks();
    o.index_chunk_bytes = 8000;
    begin_with(&w, &o, CACHE);
    rq_hfile_block *root = rq__reader_held(w.reader, RQ__HELD_ROOT);
    if (root == NULL) {
        scan_init(&x, &w, 0, true);
        assert_true(go_on(&x, &w, 1));
        scan_clear(&x);
        root = rq__reader_held(w.reader, RQ__HELD_ROOT);
    }
    assert_non_null(root);
    rq__index_entry leaf = rq__index_at(rq__index_view_of(root->payload), 3);
    rq__index_entry before = rq__index_at(rq__index_view_of(root->payload), 2);
    io.bad_from = leaf.offset;
    io.bad_to = leaf.offset + leaf.size;
    scan_init(&x, &w, 0, true);
    while (go_on(&x, &w, 50))
        run_all();
    assert_int_equal(x.rc, RQ_E_IO);
    /* At least half of the rows before the block of leaf 2; a row in the file is little longer than its value. */
    assert_true((uint64_t)x.next * VALUE > before.offset / 2);
    io.bad_from = io.bad_to = 0;
    size_t bad_reads = io.small;
    scan_clear(&x);
    scan_init(&x, &w, 0, true);
    while (go_on(&x, &w, 50))
        run_all();
    assert_int_equal(x.rc, RQ_E_END);
    assert_int_equal(x.next, ROWS);
    assert_true(bad_reads < 30);
    scan_clear(&x);
    end(&w);
}

/* A scan that is suspended inside a block finds the block again, also if its blocks are not cached. */
static void a_suspended_scan_reads_no_block_twice(void **state)
{
    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        world w;
        scan x;
        begin(&w);
        scan_init(&x, &w, 0, cache == 1);
        while (go_on(&x, &w, 1 + (int)rq_random_below(&w.random, 20))) {
            park(&x, &w);
            run_all();
        }
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        assert_true(io.small < 20);
        assert_true(io.bytes < w.reader->data_end + io.large * 2 * RQ_READ_ALIGN + 20 * 2 * BLOCK);
        assert_int_equal(window_bytes(&w), 0);
        scan_clear(&x);
        end(&w);
    }
}

/* The cache's blocks of the file are dropped by an operator. */
static void windows_of_an_evicted_file_are_read_again(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        world w;
        scan x;
        way / 2 == 0 ? begin(&w) : begin_with_leaves(&w);
        scan_init(&x, &w, 0, way % 2 == 1);
        while (go_on(&x, &w, 700)) {
            (void)rq__cache_evict_file(w.reader->cached);
            park(&x, &w);
            run_all();
        }
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        scan_clear(&x);
        end(&w);
    }
}

/* In any order of events, with any plan, encoding and compression, through caches that are too small. */
static void rows_do_not_depend_on_when_windows_are_read(void **state)
{
    (void)state;
    static const uint64_t caches[] = {CACHE, 32 << 20, 1 << 20};
    for (unsigned i = 0; i < 18; i++) {
        world w;
        scan x;
        rq_hfile_options o = small_blocks();
        o.index_chunk_bytes = i % 2 == 0 ? 3000 : o.index_chunk_bytes;
        o.compression = i % 3 == 1 ? RQ_COMPRESSION_ZSTD : RQ_COMPRESSION_NONE;
        o.encoding = i % 3 == 2 ? RQ_ENCODING_FAST_DIFF : RQ_ENCODING_NONE;
        begin_with(&w, &o, caches[i / 2 % 3]);
        rq_random_seed(&w.random, i);
        io.plans = i % 4 == 3 ? 50 : 100;
        w.vfs.again_percent = i % 5 == 4 ? 60 : 100;
        scan_init(&x, &w, (int)rq_random_below(&w.random, 100), i % 2 == 0);
        scan_to_end(&x, &w);
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        scan_clear(&x);
        end(&w);
    }
}

static void short_and_reversed_scans_read_none(void **state)
{
    (void)state;
    world w;
    begin(&w);
    for (int i = 0; i < 300; i++) {
        scan x;
        scan_init(&x, &w, (int)rq_random_below(&w.random, ROWS - 40), false);
        assert_true(go_on(&x, &w, 1 + (int)rq_random_below(&w.random, 20)));
        scan_clear(&x);
    }
    scan x;
    scan_init(&x, &w, 0, false);
    for (int i = 1000; i > 0; i--) {
        char row[16];
        row_of(row, i);
        rq_cell key = rq_cell_first_on_row(rq_slice_cstr(row));
        rq_err rc;
        while ((rc = rq_hfile_scanner_seek_before(&x.s, &x.ctx, &key, &w.why)) == RQ_E_AGAIN)
            assert_int_equal(rq_read_ctx_fulfil(&x.ctx, &w.why), RQ_OK);
        assert_int_equal(rc, RQ_OK);
    }
    scan_clear(&x);
    assert_int_equal(manual.asked, 0);
    end(&w);
}

/* A scan that stops has read at most as much again as it used, and not more than 4 MB. */
static void a_scan_that_stops_wastes_little(void **state)
{
    (void)state;
    for (int rows = 100; rows < ROWS; rows += 1700) {
        world w;
        scan x;
        begin(&w);
        scan_init(&x, &w, 0, false);
        assert_true(go_on(&x, &w, rows));
        run_all();
        uint64_t used = x.s.trail.end - x.s.trail.begun;
        uint64_t most = used < 256 << 10 ? 256 << 10 : used;
        if (most > 4 << 20) most = 4 << 20;
        assert_true(io.bytes <= used + most + (io.large + 1) * 2 * RQ_READ_ALIGN);
        scan_clear(&x);
        end(&w);
    }
}

/* The error of a window is that of the block that cannot be read, when the scan comes to it. */
static void an_error_is_reported_at_its_block(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        world w;
        scan x;
        begin(&w);
        rq_random_seed(&w.random, (uint64_t)i);
        io.bad_from = 1000000 + rq_random_below(&w.random, 1000000);
        io.bad_to = io.bad_from + 1;
        if (i % 2 == 1) {
            io.cut_at = io.bad_from;
            io.bad_from = io.bad_to = 0;
        }
        scan_init(&x, &w, 0, i % 3 == 0);
        scan_to_end(&x, &w);
        assert_int_equal(x.rc, i % 2 == 1 ? RQ_E_CORRUPT : RQ_E_IO);
        uint64_t bad = i % 2 == 1 ? io.cut_at : io.bad_from;
        assert_true(x.s.trail.end == 0 || x.s.trail.end <= bad);
        assert_true((uint64_t)x.next * (VALUE + 40) > bad - 2 * BLOCK);
        /* What is readable again is read. */
        io.bad_from = io.bad_to = io.cut_at = 0;
        scan_clear(&x);
        scan_init(&x, &w, x.next, false);
        scan_to_end(&x, &w);
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        scan_clear(&x);
        end(&w);
    }
}

/* The scan and the file are closed, or the server is stopped, before the windows have been read. */
static void windows_may_outlive_the_scan(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        int way = i % 3;
        world w;
        scan x;
        i < 3 ? begin(&w) : begin_with_leaves(&w);
        scan_init(&x, &w, 0, false);
        while (!(i < 3 ? manual.count > 0 : x.s.trail.leaf_asked > 0))
            assert_true(go_on(&x, &w, 1));
        scan_clear(&x);
        assert_true(window_bytes(&w) > 0);
        if (way == 0) {
            run_all();
            rq_hfile_reader_unref(w.reader);
        } else if (way == 1) {
            rq_hfile_reader_unref(w.reader);
            run_all();
        } else {
            rq_hfile_reader_unref(w.reader);
        }
        if (way < 2) {
            assert_int_equal(window_bytes(&w), 0);
            assert_int_equal(w.cache->windows.count, 0);
        }
        rq_block_cache_free(w.cache);
        assert_int_equal(manual.count, 0);
        memory_vfs_clear(&w.vfs);
    }
}

/* Where memory has room for a few windows, as many scans as there are files in a region share it: none reads a byte
 * twice, and none uses the operating system's read-ahead, which reads what others' windows read. */
static void scans_that_share_little_memory_read_nothing_twice(void **state)
{
    (void)state;
    enum { SCANS = 4 };
    world w;
    static scan scans[SCANS];
    rq_hfile_options o = small_blocks();
    begin_with(&w, &o, 32 << 20);
    for (int i = 0; i < SCANS; i++)
        scan_init(&scans[i], &w, i * (ROWS / SCANS), false);
    for (int at = 0; at < ROWS / SCANS; at += 50)
        for (int i = 0; i < SCANS; i++) {
            assert_true(go_on(&scans[i], &w, 50));
            if (rq_random_below(&w.random, 4) == 0) run_all();
        }
    assert_int_equal(io.os_reads_ahead, 0);
    /* In addition, what the windows hold ahead of each scan at its end, which is in the next scan's part. */
    uint64_t ahead = SCANS * ((uint64_t)1 << 20);
    assert_true(io.bytes < w.reader->data_end + ahead + io.large * 2 * RQ_READ_ALIGN);
    for (int i = 0; i < SCANS; i++)
        scan_clear(&scans[i]);
    end(&w);
}

/* A part that the page cache is to keep is read by windows, too, unless the rest of the file is like it. */
static void a_short_part_does_not_turn_read_ahead_on(void **state)
{
    (void)state;
    for (int rest = 0; rest < 2; rest++) {
        world w;
        scan x;
        begin(&w);
        io.ahead_from = 2 << 20;
        io.ahead_to = rest == 0 ? 3 << 20 : UINT64_MAX;
        scan_init(&x, &w, 0, false);
        while (go_on(&x, &w, 50))
            run_all();
        assert_int_equal(x.rc, RQ_E_END);
        assert_int_equal(x.next, ROWS);
        assert_int_equal(io.os_reads_ahead > 0, rest == 1);
        if (rest == 0) assert_true(io.past < io.large);
        scan_clear(&x);
        end(&w);
    }
}

/* Only a few windows are in the pool at a time, so that the read of a get is not queued behind the windows of all
 * scans. */
static void few_windows_are_in_the_pool(void **state)
{
    (void)state;
    enum { SCANS = 12 };
    world w;
    static scan scans[SCANS];
    begin(&w);
    manual.rests = true;
    for (int i = 0; i < SCANS; i++) {
        scan_init(&scans[i], &w, i * (ROWS / SCANS), false);
        for (uint32_t before = w.cache->windows.count; w.cache->windows.count == before;)
            assert_true(go_on(&scans[i], &w, 1));
    }
    assert_true(w.cache->windows.tasks > 8);
    assert_true(manual.most <= 8);
    run_all();
    assert_int_equal(w.cache->windows.tasks, 0);
    assert_true(manual.most <= 8);
    for (int i = 0; i < SCANS; i++)
        scan_clear(&scans[i]);
    end(&w);
}

static void stop_waiting(rq_task *task)
{
    RQ_CONTAINER_OF(task, scan, task)->waits = false;
}

/* Windows of other scans that nobody waits for yet are read later. */
static void a_window_that_is_waited_for_is_read_next(void **state)
{
    (void)state;
    enum { SCANS = 12 };
    world w;
    static scan scans[SCANS];
    begin(&w);
    manual.rests = true;
    for (int i = 0; i < SCANS; i++) {
        scan_init(&scans[i], &w, i * (ROWS / SCANS), false);
        for (uint32_t before = w.cache->windows.count; w.cache->windows.count == before;)
            assert_true(go_on(&scans[i], &w, 1));
    }
    /* The last ones' windows are the last in the queue; they are waited for one after the other. */
    const rq__window *queued = w.cache->windows.queued, *last = w.cache->windows.last_queued;
    assert_true(queued != NULL && queued != last);
    for (int i = SCANS - 2; i < SCANS; i++) {
        scan *x = &scans[i];
        while ((x->rc = move(x, &w)) == RQ_OK)
            x->next++;
        assert_int_equal(x->rc, RQ_E_AGAIN);
        x->task.run = stop_waiting;
        x->waits = true;
        assert_true(rq_read_ctx_wait(&x->ctx, &x->task));
    }
    assert_ptr_not_equal(w.cache->windows.last_queued, last);
    /* Each task that ends submits one: the windows are read by the tasks behind those in the pool now. */
    for (size_t in_pool = manual.count; in_pool > 0; in_pool--)
        run_first();
    for (int i = 0; i < 2; i++) {
        run_first();
        assert_false(scans[SCANS - 2 + i].waits);
        assert_true(i == 1 || scans[SCANS - 1].waits);
    }
    run_all();
    assert_int_equal(w.cache->windows.tasks, 0);
    for (int i = 0; i < SCANS; i++)
        scan_clear(&scans[i]);
    end(&w);
}

/* Scans for which there is no memory go on without windows. */
static void many_scans_stay_within_the_bound(void **state)
{
    (void)state;
    enum { SCANS = 300 };
    world w;
    static scan scans[SCANS];
    rq_hfile_options o = small_blocks();
    begin_with(&w, &o, 32 << 20);
    rq_block_cache_stats stats;
    for (int i = 0; i < SCANS; i++)
        scan_init(&scans[i], &w, i * 20, false);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SCANS; i++) {
            assert_true(go_on(&scans[i], &w, 100));
            park(&scans[i], &w);
        }
        run_all();
    }
    assert_true(window_bytes(&w) > 0);
    rq_block_cache_get_stats(w.cache, &stats);
    assert_int_equal(stats.capacity_bytes, (32 << 20) - rq__windows_bytes_max(32 << 20));
    for (int i = 0; i < SCANS; i++)
        scan_clear(&scans[i]);
    /* Their windows are left; a trim frees those that are old, and returns their share of the cache. */
    rq_block_cache_trim(w.cache, 1);
    assert_true(window_bytes(&w) > 0);
    manual.now_ns += UINT64_C(10000000000);
    rq_block_cache_trim(w.cache, 1);
    assert_int_equal(window_bytes(&w), 0);
    rq_block_cache_get_stats(w.cache, &stats);
    assert_int_equal(stats.capacity_bytes, 32 << 20);
    end(&w);
}

/* Memory that stopped scans have left behind is for those that still read. */
static void old_windows_make_room(void **state)
{
    (void)state;
    world w;
    scan x;
    rq_hfile_options o = small_blocks();
    begin_with(&w, &o, 32 << 20);
    for (int i = 0; i < 26; i++) {
        scan_init(&x, &w, i * 830, false);
        assert_true(go_on(&x, &w, 200));
        run_all();
        scan_clear(&x);
    }
    size_t asked = manual.asked;
    scan_init(&x, &w, 22500, false);
    assert_true(go_on(&x, &w, 200));
    assert_int_equal(manual.asked, asked); /* all memory is in use */
    scan_clear(&x);
    manual.now_ns += UINT64_C(10000000000);
    scan_init(&x, &w, 23400, false);
    assert_true(go_on(&x, &w, 200));
    assert_true(manual.asked > asked);
    scan_clear(&x);
    end(&w);
}

/* --- threads ----------------------------------------------------------------------------------- */

typedef struct cacher {
    scan x;
    bool went_on;
    _Atomic bool ended; /* relaxed: it orders nothing else between the threads */
} cacher;

static void *cache_blocks(void *arg)
{
    cacher *c = arg;
    c->went_on = go_on(&c->x, c->x.w, 40);
    atomic_store_explicit(&c->ended, true, memory_order_relaxed);
    return NULL;
}

/* A scan whose blocks are not cached uses a block that another scan takes out of the window and caches meanwhile.
 * (ThreadSanitizer watches the block's fields.) */
static void a_block_is_cached_while_another_scan_uses_it(void **state)
{
    (void)state;
    world w;
    scan x;
    cacher c = {.ended = false};
    pthread_t thread;
    begin(&w);
    scan_init(&x, &w, 0, false);
    assert_true(go_on(&x, &w, 200));
    run_all();
    assert_true(go_on(&x, &w, 200));
    while (x.s.pos != 0) /* up to a block's first row */
        assert_true(go_on(&x, &w, 1));
    rq_hfile_block *block = x.s.block;
    scan_init(&c.x, &w, x.next - 30, true);
    assert_int_equal(pthread_create(&thread, NULL, cache_blocks, &c), 0);
    while (!atomic_load_explicit(&c.ended, memory_order_relaxed))
        sched_yield();
    for (int i = 0; i < 3; i++) { /* the second search in a block makes a table of it */
        char row[16];
        row_of(row, x.next++);
        rq_cell key = rq_cell_first_on_row(rq_slice_cstr(row));
        assert_int_equal(rq_hfile_scanner_reseek(&x.s, &x.ctx, &key, &w.why), RQ_OK);
        assert_ptr_equal(x.s.block, block);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(c.went_on);
    assert_true(block->resident);
    assert_non_null(atomic_load(&block->sidecar));
    scan_clear(&c.x);
    scan_clear(&x);
    end(&w);
}

enum { THREADS = 4 };

typedef struct worker {
    world *w;
    uint64_t seed;
    const char *broken;
    rq_task task;
    sem_t ended; /* the task */
    rq_read_ctx *ctx;
    rq_err rc; /* of the task */
} worker;

static void fulfil_for(rq_task *task)
{
    worker *me = RQ_CONTAINER_OF(task, worker, task);
    me->rc = rq_read_ctx_fulfil(me->ctx, NULL);
    sem_post(&me->ended);
}

static rq_err get_block_on_thread(worker *me, rq_random *random, rq_read_ctx *ctx)
{
    me->task.run = fulfil_for;
    me->ctx = ctx;
    if (rq_random_below(random, 2) == 0 || !rq_read_ctx_wait(ctx, &me->task)) fulfil_for(&me->task);
    while (sem_wait(&me->ended) != 0) {
    }
    return me->rc;
}

static void scan_on_thread(worker *me, rq_random *random, int from, int count)
{
    rq_read_ctx ctx = {.dont_cache = rq_random_below(random, 2) == 0};
    rq_hfile_scanner s;
    char row[16];
    rq_hfile_scanner_init(&s, me->w->reader);
    for (int i = from; i < from + count && me->broken == NULL; i++) {
        row_of(row, i);
        rq_cell key = rq_cell_first_on_row(rq_slice_cstr(row));
        rq_err rc;
        while ((rc = i == from ? rq_hfile_scanner_seek(&s, &ctx, &key, NULL)
                               : rq_hfile_scanner_next(&s, &ctx, NULL)) == RQ_E_AGAIN)
            if (get_block_on_thread(me, random, &ctx) != RQ_OK)
                me->broken = "a block cannot be read";
        if (rc != RQ_OK)
            me->broken = "a row is missing";
        else if (!rq_slice_eq(rq_cell_row(rq_hfile_scanner_cell(&s)), rq_slice_cstr(row)))
            me->broken = "another row";
        if (i % 64 == 0) rq_read_ctx_clear(&ctx);
    }
    rq_read_ctx_clear(&ctx);
    rq_hfile_scanner_clear(&s);
}

static void *work(void *arg)
{
    worker *me = arg;
    rq_random random;
    rq_random_seed(&random, me->seed);
    for (int i = 0; i < 12 && me->broken == NULL; i++) {
        int count = 100 + (int)rq_random_below(&random, ROWS / 2);
        scan_on_thread(me, &random, (int)rq_random_below(&random, (uint64_t)(ROWS - count)), count);
    }
    return NULL;
}

static rq_err no_try_read(rq_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    (void)f;
    (void)buf;
    (void)len;
    (void)off;
    (void)ret_len;
    return RQ_E_AGAIN;
}

static void threads_share_windows(void **state)
{
    (void)state;
    world w;
    begin_with_leaves(&w);
    rq_hfile_reader_unref(w.reader);
    rq_block_cache_free(w.cache);
    w.vfs.base.read = read_bytes; /* without counters */
    w.vfs.base.try_read = no_try_read;
    w.vfs.base.read_past = NULL;
    w.vfs.base.in_sequence = NULL;
    rq_executor *executor;
    const unsigned threads[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = 3,          [RQ_POOL_FLUSH] = 1, [RQ_POOL_COMPACT] = 1,
        [RQ_POOL_COMPACT_LARGE] = 1, [RQ_POOL_CODEC] = 1, [RQ_POOL_CALL] = 1,
        [RQ_POOL_WORK] = 1};
    assert_int_equal(rq_thread_executor_new(threads, &executor), RQ_OK);
    assert_int_equal(rq_block_cache_new(32 << 20, &w.cache), RQ_OK);
    rq_block_cache_make_ready(w.cache, executor);
    open_again(&w);
    pthread_t handles[THREADS];
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.w = &w, .seed = i};
        assert_int_equal(sem_init(&workers[i].ended, 0, 0), 0);
        assert_int_equal(pthread_create(&handles[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(handles[i], NULL);
        sem_destroy(&workers[i].ended);
        if (workers[i].broken != NULL) fail_msg("%s", workers[i].broken);
    }
    end(&w); /* with reads in flight, perhaps */
    rq_thread_executor_free(executor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_scan_reads_windows),
        cmocka_unit_test(windows_go_on_in_the_next_leaf),
        cmocka_unit_test(a_leaf_that_cannot_be_read_is_reported_at_its_place),
        cmocka_unit_test(a_suspended_scan_reads_no_block_twice),
        cmocka_unit_test(windows_of_an_evicted_file_are_read_again),
        cmocka_unit_test(rows_do_not_depend_on_when_windows_are_read),
        cmocka_unit_test(short_and_reversed_scans_read_none),
        cmocka_unit_test(a_scan_that_stops_wastes_little),
        cmocka_unit_test(an_error_is_reported_at_its_block),
        cmocka_unit_test(windows_may_outlive_the_scan),
        cmocka_unit_test(scans_that_share_little_memory_read_nothing_twice),
        cmocka_unit_test(a_short_part_does_not_turn_read_ahead_on),
        cmocka_unit_test(few_windows_are_in_the_pool),
        cmocka_unit_test(a_window_that_is_waited_for_is_read_next),
        cmocka_unit_test(many_scans_stay_within_the_bound),
        cmocka_unit_test(old_windows_make_room),
        cmocka_unit_test(a_block_is_cached_while_another_scan_uses_it),
        cmocka_unit_test(threads_share_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
