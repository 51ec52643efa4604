/* SPDX-License-Identifier: Apache-2.0 */
/* A half of a file, as a reference of a split region reads it, compared with the file's cells
 * without the other half: forward, backward, seeks from anywhere, reseeks, blooms, the middle.
 * HFILE_SEED=n (and HFILE_ROUNDS=1) replays a failure. */
#include "../../seeds.h"
#include "cells.h"
#include "hfile/reader.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct world {
    uint64_t seed;
    rq_random random;
    memory_vfs vfs;
    rq_block_cache *cache;
    cell_list list; /* cells of the whole file */
    cell_shape shape;
    const rq_cell *cells; /* cells of the half: a part of the list */
    size_t count;
    rq_slice row;
    bool top;
    rq_hfile_reader *reader;
    rq_hfile_scanner scanner;
    rq_read_ctx ctx;
    rq_error why;
} world;

static unsigned pick(world *w, unsigned n)
{
    return (unsigned)rq_random_below(&w->random, n);
}

static void check(const world *w, rq_err rc, int line)
{
    if (rc != RQ_OK)
        fail_msg("seed %llu, line %d: %s: %s", (unsigned long long)w->seed, line, rq_err_name(rc),
                 w->why.message);
}

#define CHECK(w, rc) check(w, rc, __LINE__)
#define RESUME(w, expr)                                                                            \
    ({                                                                                             \
        rq_err resume_rc;                                                                          \
        while ((resume_rc = (expr)) == RQ_E_AGAIN)                                                 \
            CHECK(w, rq_read_ctx_fulfil(&(w)->ctx, &(w)->why));                                    \
        resume_rc;                                                                                 \
    })

static void write_file(world *w)
{
    rq_hfile_options o = rq_hfile_options_default();
    static const uint32_t block_bytes[] = {1, 200, 1000, 65536};
    o.block_bytes = block_bytes[pick(w, 4)];
    o.bloom = (rq_bloom_type)pick(w, 3);
    o.index_chunk_bytes = pick(w, 2) ? 100 + pick(w, 500) : 128 * 1024;
    o.index_entries_min = 2 + pick(w, 16);
    o.include_mvcc = true;
    static const rq_block_encoding encodings[] = {RQ_ENCODING_NONE, RQ_ENCODING_PREFIX,
                                                  RQ_ENCODING_DIFF, RQ_ENCODING_FAST_DIFF,
                                                  RQ_ENCODING_ROW_INDEX_V1};
    o.encoding = encodings[pick(w, 5)];
    CHECK(w, cell_list_write(&w->list, &w->vfs.base, "dir/f", &o, &w->why));
}

static void begin(world *w, uint64_t seed)
{
    *w = (world){.seed = seed};
    rq_random_seed(&w->random, seed);
    memory_vfs_init(&w->vfs, seed);
    w->shape = (cell_shape){
        .count = 1 + pick(w, pick(w, 2) ? 20 : 1500),
        .row_space = 1 + pick(w, 500),
        .column_space = 1 + pick(w, 10),
        .value_max = 20,
        .deletes = pick(w, 2),
        .order = RQ_ORDER_DEFAULT,
    };
    cell_list_make(&w->list, &w->random, &w->shape);
    write_file(w);
    /* A row of the file, between two rows, or outside of all. */
    w->row = pick(w, 2) ? rq_cell_row(&w->list.cells[pick(w, (unsigned)w->list.count)])
                        : cell_list_random_row(&w->list.arena, &w->random, &w->shape);
    w->top = pick(w, 2);
    size_t first = 0;
    while (first < w->list.count &&
           rq_slice_compare(rq_cell_row(&w->list.cells[first]), w->row) < 0)
        first++;
    w->cells = w->top ? w->list.cells + first : w->list.cells;
    w->count = w->top ? w->list.count - first : first;
    if (pick(w, 3) > 0) CHECK(w, rq_block_cache_new(pick(w, 2) ? 3000 : 1 << 20, &w->cache));
    rq_hfile_half half = {.row = w->row, .top = w->top};
    rq_hfile_reader_options options = {.cache = w->cache, .half = &half};
    CHECK(w, rq_hfile_reader_open_with(&w->vfs.base, "dir/f", &options, &w->reader, &w->why));
    w->ctx.may_block = pick(w, 3) == 0;
    w->vfs.again_percent = pick(w, 2) ? 0 : 1 + pick(w, 90);
    rq_hfile_scanner_init(&w->scanner, w->reader);
}

static void end(world *w)
{
    rq_hfile_scanner_clear(&w->scanner);
    rq_read_ctx_clear(&w->ctx);
    rq_hfile_reader_unref(w->reader);
    if (w->cache != NULL) rq_block_cache_free(w->cache);
    cell_list_clear(&w->list);
    memory_vfs_clear(&w->vfs);
}

/* The scanner is at cell `at` of the half, or has no position. */
static void expect(const world *w, rq_err rc, size_t at, const char *what)
{
    const rq_cell *c = rq_hfile_scanner_cell(&w->scanner);
    if (rc != RQ_OK && rc != RQ_E_END) check(w, rc, __LINE__);
    bool right = at < w->count ? rc == RQ_OK && c != NULL &&
                                     rq_cell_compare(RQ_ORDER_DEFAULT, c, &w->cells[at]) == 0 &&
                                     rq_slice_eq(rq_cell_value(c), rq_cell_value(&w->cells[at]))
                               : rc == RQ_E_END && c == NULL;
    if (!right)
        fail_msg("seed %llu: %s: %s half, cell %zu of %zu expected", (unsigned long long)w->seed,
                 what, w->top ? "top" : "bottom", at, w->count);
}

/* The first cell of the half at or after the key. */
static size_t floor_of(const world *w, const rq_cell *key)
{
    size_t i = 0;
    while (i < w->count && rq_cell_compare_key(RQ_ORDER_DEFAULT, &w->cells[i], key) < 0)
        i++;
    return i;
}

static rq_cell random_key(world *w)
{
    if (pick(w, 3) == 0) return w->list.cells[pick(w, (unsigned)w->list.count)];
    if (pick(w, 4) == 0) return rq_cell_first_on_row(w->row);
    if (pick(w, 6) == 0) return rq_cell_first_on_row((rq_slice){NULL, 0});
    return cell_list_random_key(&w->list, &w->random, &w->shape);
}

static void walks_forward(world *w)
{
    rq_err rc = RESUME(w, rq_hfile_scanner_seek_first(&w->scanner, &w->ctx, &w->why));
    for (size_t i = 0;; i++) {
        expect(w, rc, i, "walk");
        if (rc != RQ_OK) break;
        rc = RESUME(w, rq_hfile_scanner_next(&w->scanner, &w->ctx, &w->why));
    }
}

static void walks_backward(world *w)
{
    rq_cell key = rq_cell_first_on_row(RQ_SLICE_LIT("\xff\xff\xff\xff\xff\xff\xff\xff"));
    rq_err rc = RESUME(w, rq_hfile_scanner_seek_before(&w->scanner, &w->ctx, &key, &w->why));
    for (size_t i = w->count; i > 0;) {
        /* Of equal keys, which differ in their sequence ids, the last is found. */
        expect(w, rc, i - 1, "walk back");
        key = w->cells[i - 1];
        i = floor_of(w, &key);
        rc = RESUME(w, rq_hfile_scanner_seek_before(&w->scanner, &w->ctx, &key, &w->why));
    }
    expect(w, rc, w->count, "end of the walk back");
}

static void seeks(world *w)
{
    for (int n = 0; n < 60; n++) {
        rq_cell key = random_key(w);
        size_t at = floor_of(w, &key);
        rq_err rc;
        switch (pick(w, 3)) {
        case 0:
            rc = RESUME(w, rq_hfile_scanner_seek(&w->scanner, &w->ctx, &key, &w->why));
            expect(w, rc, at, "seek");
            break;
        case 1:
            rc = RESUME(w, rq_hfile_scanner_seek_before(&w->scanner, &w->ctx, &key, &w->why));
            expect(w, rc, at == 0 ? w->count : at - 1, "seek before");
            break;
        default: {
            rq_cell from = random_key(w);
            rc = RESUME(w, rq_hfile_scanner_seek(&w->scanner, &w->ctx, &from, &w->why));
            size_t here = floor_of(w, &from);
            expect(w, rc, here, "seek");
            rc = RESUME(w, rq_hfile_scanner_reseek(&w->scanner, &w->ctx, &key, &w->why));
            if (here < w->count && at < here) at = here; /* a reseek never moves backward */
            expect(w, rc, at, "reseek");
            break;
        }
        }
        for (size_t i = at + 1; rc == RQ_OK && pick(w, 4) > 0 && at < w->count; i++) {
            if (rq_cell_compare(RQ_ORDER_DEFAULT, rq_hfile_scanner_cell(&w->scanner),
                                &w->cells[i - 1]) != 0)
                break; /* seek before ends at another cell */
            rc = RESUME(w, rq_hfile_scanner_next(&w->scanner, &w->ctx, &w->why));
            expect(w, rc, i, "next");
        }
    }
}

static void blooms_miss_nothing(world *w)
{
    for (size_t i = 0; i < w->count; i += 1 + pick(w, 20)) {
        bool may = false;
        CHECK(w, RESUME(w, rq_hfile_may_contain_row(w->reader, &w->ctx, rq_cell_row(&w->cells[i]),
                                                    &may, &w->why)));
        assert_true(may);
    }
}

static void has_no_middle(world *w)
{
    rq_buf key = {0};
    assert_int_equal(RESUME(w, rq_hfile_midkey(w->reader, &w->ctx, &key, &w->why)), RQ_E_END);
    rq_buf_clear(&key);
}

static void a_half_is_the_file_without_the_other_half(void **state)
{
    (void)state;
    uint64_t first = seeds_number("HFILE_SEED", 20261121);
    uint64_t after = first + seeds_number("HFILE_ROUNDS", 400);
    for (uint64_t seed = first; seed < after; seed++) {
        world w;
        begin(&w, seed);
        walks_forward(&w);
        walks_backward(&w);
        seeks(&w);
        blooms_miss_nothing(&w);
        has_no_middle(&w);
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_half_is_the_file_without_the_other_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
