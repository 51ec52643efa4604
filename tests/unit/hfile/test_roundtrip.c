/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sorted cells under random options, written and read back: forward, inside blocks,
 * backward, by random seeks and reseeks, through caches of any size, with random page-cache misses;
 * compared with a plain array. HFILE_SEED=n (and HFILE_ROUNDS=1) replays a failure.
 */
#include "../../seeds.h"
#include "cells.h"
#include "hfile/check.h"
#include "hfile/reader.h"
#include "hfile/walk.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct world {
    uint64_t seed;
    rq_random random;
    memory_vfs vfs;
    rq_block_cache *cache;
    cell_list list;
    cell_shape shape;
    rq_hfile_options options;
    rq_hfile_reader *reader;
    rq_read_ctx ctx;
    uint64_t agains;
    uint64_t moves_here, moves_back;
    rq_error why;
    size_t parted; /* blocks that begin with the last key of the previous block */
} world;

static uint64_t first_seed(void)
{
    return seeds_number("HFILE_SEED", 20260101);
}

static void check(const world *w, rq_err rc, int line)
{
    if (rc != RQ_OK)
        fail_msg("seed %llu, line %d: %s: %s", (unsigned long long)w->seed, line, rq_err_name(rc),
                 w->why.message);
}

#define CHECK(w, rc) check(w, rc, __LINE__)

/* Repeats the call as a loop does: load the block on the pool, then call again. */
#define RESUME(w, expr)                                                                            \
    ({                                                                                             \
        rq_err resume_rc;                                                                          \
        while ((resume_rc = (expr)) == RQ_E_AGAIN) {                                               \
            (w)->agains++;                                                                         \
            CHECK(w, rq_read_ctx_fulfil(&(w)->ctx, &(w)->why));                                    \
        }                                                                                          \
        resume_rc;                                                                                 \
    })

static unsigned pick(world *w, unsigned n)
{
    return (unsigned)rq_random_below(&w->random, n);
}

static void world_write(world *w)
{
    rq_hfile_writer *writer;
    rq_hfile_info info;
    CHECK(w, rq_hfile_writer_open(&w->vfs.base, "dir/f", &w->options, &writer, &w->why));
    for (size_t i = 0; i < w->list.count; i++)
        CHECK(w, rq_hfile_writer_append(writer, &w->list.cells[i], &w->why));
    CHECK(w, rq_hfile_writer_set_store_info(writer, 77, true, NULL, 0, &w->why));
    CHECK(w, rq_hfile_writer_finish(writer, &info, &w->why));
    assert_int_equal(info.entry_count, w->list.count);
    assert_int_equal(info.size_bytes, memory_vfs_bytes(&w->vfs, "dir/f")->len);
    rq_hfile_writer_close(writer);
}

static void world_begin(world *w, uint64_t seed)
{
    static const rq_compression kinds[] = {RQ_COMPRESSION_NONE,   RQ_COMPRESSION_GZ,
                                           RQ_COMPRESSION_SNAPPY, RQ_COMPRESSION_LZ4,
                                           RQ_COMPRESSION_ZSTD,   RQ_COMPRESSION_LZO};
    static const uint32_t block_bytes[] = {1, 200, 1000, 8192, 65536};
    static const uint64_t cache_bytes[] = {0, 3000, 100 * 1024, 64 << 20};
    *w = (world){.seed = seed};
    rq_random_seed(&w->random, seed);
    memory_vfs_init(&w->vfs, seed);
    w->shape = (cell_shape){
        .count = pick(w, 8) == 0 ? pick(w, 3) : 1 + pick(w, 3000),
        .row_space = 1 + pick(w, 2000),
        .column_space = 1 + pick(w, 30),
        .value_max = pick(w, 3) == 0 ? 2000 : 20,
        .tags = pick(w, 2),
        .deletes = pick(w, 2),
        .order = pick(w, 5) == 0 ? RQ_ORDER_META : RQ_ORDER_DEFAULT,
    };
    if (pick(w, 8) == 0) w->shape.row_space = w->shape.column_space = 1; /* many equal keys */
    cell_list_make(&w->list, &w->random, &w->shape);
    w->options = rq_hfile_options_default();
    w->options.compression = kinds[pick(w, RQ_ARRAY_LEN(kinds))];
    /* Slow, therefore rare. */
    if (pick(w, 30) == 0) w->options.compression = RQ_COMPRESSION_BZIP2;
    w->options.block_bytes = block_bytes[pick(w, 5)];
    w->options.zstd_bare = pick(w, 2);
    w->options.bloom = (rq_bloom_type)pick(w, 4);
    w->options.bloom_prefix_len = 1 + pick(w, 8);
    w->options.bloom_chunk_bytes = pick(w, 2) ? 128 : 128 * 1024;
    w->options.index_chunk_bytes = pick(w, 2) ? 100 + pick(w, 500) : 128 * 1024;
    w->options.index_entries_min = 2 + pick(w, 16);
    w->options.checksum = (rq_checksum_type)pick(w, 3);
    w->options.bytes_per_checksum = pick(w, 2) ? 16384 : 64;
    w->options.order = w->shape.order;
    w->options.include_mvcc = pick(w, 4) != 0;
    w->options.include_tags = pick(w, 2);
    static const rq_block_encoding encodings[] = {RQ_ENCODING_NONE,         RQ_ENCODING_NONE,
                                                  RQ_ENCODING_ROW_INDEX_V1, RQ_ENCODING_PREFIX,
                                                  RQ_ENCODING_DIFF,         RQ_ENCODING_FAST_DIFF};
    w->options.encoding = encodings[pick(w, 6)];
    w->options.compress_tags = pick(w, 2);
    w->options.create_time_ms = 1234567;
    world_write(w);
    uint64_t bytes = cache_bytes[pick(w, 4)];
    if (bytes > 0) CHECK(w, rq_block_cache_new(bytes, &w->cache));
    CHECK(w,
          rq_hfile_reader_open(&w->vfs.base, "dir/f", w->cache, pick(w, 2), &w->reader, &w->why));
    w->ctx.may_block = pick(w, 3) == 0;
    w->ctx.dont_cache = pick(w, 3) == 0;
    w->vfs.again_percent = pick(w, 2) ? 0 : 1 + pick(w, 90);
}

static void world_end(world *w)
{
    rq_read_ctx_clear(&w->ctx);
    rq_hfile_reader_unref(w->reader);
    if (w->cache != NULL) {
        rq_block_cache_stats stats;
        rq_block_cache_get_stats(w->cache, &stats);
        assert_true(stats.used_bytes <= stats.capacity_bytes);
        assert_int_equal(stats.blocks, 0);
        assert_int_equal(stats.used_bytes, 0);
        assert_int_equal(stats.pinned_bytes, 0);
        rq_block_cache_free(w->cache);
    }
    cell_list_clear(&w->list);
    memory_vfs_clear(&w->vfs);
}

static bool same_cell(const world *w, const rq_cell *a, const rq_cell *model)
{
    return rq_cell_compare_key(w->shape.order, a, model) == 0 &&
           rq_slice_eq(rq_cell_value(a), rq_cell_value(model)) &&
           a->seqid == (w->options.include_mvcc ? model->seqid : 0) &&
           rq_slice_eq(rq_slice_of(a->tags, a->tags_len),
                       rq_slice_of(model->tags, w->options.include_tags ? model->tags_len : 0));
}

/* The scanner is at the model's index; count: at no cell. */
static void expect_at(const world *w, const rq_hfile_scanner *s, rq_err rc, size_t index)
{
    if (index >= w->list.count) {
        if (rc != RQ_E_END || rq_hfile_scanner_cell(s) != NULL)
            fail_msg("seed %llu: %s where the end is expected", (unsigned long long)w->seed,
                     rq_err_name(rc));
        return;
    }
    if (rc != RQ_OK || !same_cell(w, rq_hfile_scanner_cell(s), &w->list.cells[index]))
        fail_msg("seed %llu: not at cell %zu: %s %s", (unsigned long long)w->seed, index,
                 rq_err_name(rc), w->why.message);
}

static void scan_forward(world *w)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    rq_err rc = RESUME(w, rq_hfile_scanner_seek_first(&s, &w->ctx, &w->why));
    for (size_t i = 0; i < w->list.count; i++) {
        expect_at(w, &s, rc, i);
        rc = RESUME(w, rq_hfile_scanner_next(&s, &w->ctx, &w->why));
    }
    expect_at(w, &s, rc, w->list.count);
    rq_hfile_scanner_clear(&s);
}

static bool same_row(const world *w, size_t a, size_t b)
{
    return rq_slice_eq(rq_cell_row(&w->list.cells[a]), rq_cell_row(&w->list.cells[b]));
}

/* Moves with an rq_hfile_walk instead of the scanner, which is then set to the walk's end. */
static void walk_on(world *w, rq_hfile_scanner *s, size_t *at)
{
    rq_hfile_walk walk;
    rq_hfile_walk_begin(&walk, s);
    for (unsigned n = pick(w, 6); n > 0; n--) {
        size_t was = *at;
        if (pick(w, 3) == 0) {
            if (!rq_hfile_walk_next_row(&walk)) break;
            while (*at < w->list.count && same_row(w, *at, was))
                ++*at;
        } else {
            rq_hfile_move moved = rq_hfile_walk_next(&walk);
            if (moved == RQ_HFILE_NOT_MOVED) break;
            ++*at;
            assert_true(*at < w->list.count);
            assert_int_equal(moved == RQ_HFILE_SAME_ROW, same_row(w, *at, was));
        }
        assert_true(*at < w->list.count);
        assert_true(same_cell(w, &walk.cell, &w->list.cells[*at]));
        w->moves_here++;
    }
    rq_hfile_walk_end(&walk, s);
    expect_at(w, s, RQ_OK, *at);
}

/* Bytes of cached data blocks; 0 for a small cache, which may evict at any time. */
static uint64_t data_cached(const world *w)
{
    rq_block_cache_stats stats;
    rq_block_cache_get_stats(w->cache, &stats);
    return stats.capacity_bytes < 64 << 20 ? 0 : stats.used_bytes - stats.meta_bytes;
}

/* Frees the scanner and continues with another one at its position: at the same cell, or without a
 * saved position at the first cell with its key. This does not build sidecars. */
static void part_and_go_on(world *w, rq_hfile_scanner *s, size_t *at)
{
    rq_hfile_place place = rq_hfile_scanner_place(s);
    size_t was = *at;
    rq_cell key = w->list.cells[was];
    bool here = w->cache != NULL;
    assert_int_equal(place.file != 0, w->cache != NULL);
    if (!here) *at = cell_list_floor(&w->list, w->shape.order, &key);
    uint64_t used = 0;
    for (int i = 0; i < 3; i++) {
        rq_hfile_scanner_clear(s);
        rq_hfile_scanner_init(s, w->reader);
        assert_int_equal(rq_hfile_scanner_is_of(s, &place), place.file != 0);
        rq_err rc = RESUME(w, rq_hfile_scanner_seek_from(s, &w->ctx, &key, &place, &w->why));
        expect_at(w, s, rc, *at);
        if (!here) continue;
        if (i > 0) assert_true(data_cached(w) <= used);
        used = data_cached(w);
    }
    for (; *at < was; ++*at) /* otherwise the test would never get past many equal keys */
        CHECK(w, RESUME(w, rq_hfile_scanner_next(s, &w->ctx, &w->why)));
}

/* One move, inside the block if possible, which moves_here counts; *at follows. */
static rq_err move_on(world *w, rq_hfile_scanner *s, size_t *at)
{
    size_t was = *at;
    if (rq_hfile_reader_is_plain(w->reader)) {
        if (pick(w, 4) == 0 && rq_hfile_scanner_skip_row_here(s)) {
            while (*at < w->list.count && same_row(w, *at, was))
                ++*at;
            assert_true(*at < w->list.count);
            w->moves_here++;
            return RQ_OK;
        }
        rq_hfile_move moved = rq_hfile_scanner_next_here(s);
        if (moved != RQ_HFILE_NOT_MOVED) {
            ++*at;
            assert_true(*at < w->list.count);
            assert_int_equal(moved == RQ_HFILE_SAME_ROW, same_row(w, *at, was));
            w->moves_here++;
            return RQ_OK;
        }
        expect_at(w, s, RQ_OK, was); /* nothing has changed */
    }
    ++*at;
    return RESUME(w, rq_hfile_scanner_next(s, &w->ctx, &w->why));
}

static void scan_inside_blocks(world *w)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    rq_err rc = RESUME(w, rq_hfile_scanner_seek_first(&s, &w->ctx, &w->why));
    size_t at = 0;
    while (at < w->list.count) {
        expect_at(w, &s, rc, at);
        if (pick(w, 16) == 0) part_and_go_on(w, &s, &at);
        if (rq_hfile_reader_is_plain(w->reader) && pick(w, 4) == 0) walk_on(w, &s, &at);
        rc = move_on(w, &s, &at);
    }
    expect_at(w, &s, rc, w->list.count);
    rq_hfile_scanner_clear(&s);
}

/* The index of the last cell with a smaller key than cell `index`. */
static size_t before(const world *w, size_t index)
{
    size_t at = cell_list_floor(&w->list, w->shape.order, &w->list.cells[index]);
    return at == 0 ? SIZE_MAX : at - 1;
}

static void scan_backward(world *w)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    rq_cell key = rq_cell_last_on_row(rq_slice_cstr("zzzzzzzz"));
    size_t at = w->list.count;
    if (at > 0) key = rq_cell_last_on_row(rq_cell_row(&w->list.cells[at - 1]));
    while (at != SIZE_MAX) {
        rq_err rc = RESUME(w, rq_hfile_scanner_seek_before(&s, &w->ctx, &key, &w->why));
        at = at == w->list.count ? at - 1 : before(w, at);
        expect_at(w, &s, rc, at);
        if (at < w->list.count) key = w->list.cells[at];
    }
    rq_hfile_scanner_clear(&s);
}

/* Moves back to a near cell, or before it. *at follows if the scanner moved. */
static bool move_back(world *w, rq_hfile_scanner *s, size_t *at)
{
    size_t far = pick(w, 20);
    size_t to = *at - (far < *at ? far : *at);
    const rq_cell *key = &w->list.cells[to];
    bool in_front = pick(w, 2) == 0;
    bool moved = in_front ? rq_hfile_scanner_back_before_here(s, key)
                          : rq_hfile_scanner_back_to_here(s, key);
    if (moved) *at = in_front ? before(w, to) : cell_list_floor(&w->list, w->shape.order, key);
    return moved;
}

static void scan_backward_here(world *w)
{
    if (!rq_hfile_reader_is_plain(w->reader) || w->list.count == 0) return;
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    /* the scanner has no position */
    assert_false(rq_hfile_scanner_back_to_here(&s, &w->list.cells[0]));
    for (size_t end = w->list.count; end > 0;) {
        const rq_cell *key = &w->list.cells[end - 1];
        size_t at = cell_list_floor(&w->list, w->shape.order, key);
        rq_err rc = RESUME(w, rq_hfile_scanner_seek(&s, &w->ctx, key, &w->why));
        expect_at(w, &s, rc, at);
        w->moves_back += move_back(w, &s, &at);
        expect_at(w, &s, RQ_OK, at);
        end = at < end - 1 ? at : end - 1;
    }
    rq_hfile_scanner_clear(&s);
}

static void walk_some(world *w, rq_hfile_scanner *s, size_t *at)
{
    for (unsigned n = pick(w, 5); n > 0 && *at < w->list.count; n--) {
        rq_err rc = RESUME(w, rq_hfile_scanner_next(s, &w->ctx, &w->why));
        expect_at(w, s, rc, ++*at);
    }
}

static void seek_around(world *w)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    size_t at = w->list.count;
    for (int i = 0; i < 200; i++) {
        rq_cell key = cell_list_random_key(&w->list, &w->random, &w->shape);
        size_t there = cell_list_floor(&w->list, w->shape.order, &key);
        rq_err rc;
        switch (pick(w, 4)) {
        case 0:
            rc = RESUME(w, rq_hfile_scanner_seek_before(&s, &w->ctx, &key, &w->why));
            at = there == 0 ? w->list.count : there - 1;
            break;
        case 1:
            rc = RESUME(w, rq_hfile_scanner_reseek(&s, &w->ctx, &key, &w->why));
            if (at == w->list.count || there > at) at = there;
            break;
        case 2:
            rq__hfile_scanner_release(&s);
            rc = RESUME(w, rq_hfile_scanner_reseek(&s, &w->ctx, &key, &w->why));
            at = there;
            break;
        default:
            rc = RESUME(w, rq_hfile_scanner_seek(&s, &w->ctx, &key, &w->why));
            at = there;
            break;
        }
        expect_at(w, &s, rc, at);
        walk_some(w, &s, &at);
        if (pick(w, 4) == 0) rq_read_ctx_clear(&w->ctx);
    }
    rq_hfile_scanner_clear(&s);
}

static void blooms_never_deny(world *w)
{
    bool may;
    for (size_t i = 0; i < w->list.count; i++) {
        const rq_cell *c = &w->list.cells[i];
        rq_slice row = rq_cell_row(c);
        CHECK(w, RESUME(w, rq_hfile_may_contain_row(w->reader, &w->ctx, row, &may, &w->why)));
        assert_true(may);
        row.len = pick(w, (unsigned)row.len + 1);
        CHECK(w, RESUME(w, rq_hfile_may_contain_prefix(w->reader, &w->ctx, row, &may, &w->why)));
        assert_true(may);
        row = rq_cell_row(c);
        CHECK(w, RESUME(w, rq_hfile_may_contain_column(w->reader, &w->ctx, row,
                                                       rq_cell_qualifier(c), &may, &w->why)));
        assert_true(may);
        if (c->type == RQ_TYPE_DELETE_FAMILY || c->type == RQ_TYPE_DELETE_FAMILY_VERSION) {
            CHECK(w, RESUME(w, rq__hfile_may_contain_delete_family(w->reader, &w->ctx, row, &may,
                                                                   &w->why)));
            assert_true(may);
        }
    }
}

static bool same_key(const world *w, size_t a, size_t b)
{
    return rq_cell_compare_key(w->shape.order, &w->list.cells[a], &w->list.cells[b]) == 0;
}

/* Counts the data blocks, those that begin before the key, and those that begin with the last key
 * of the previous block. */
static void count_blocks(world *w, const rq_cell *key, size_t *ret_all, size_t *ret_before,
                         size_t *ret_parted)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    *ret_all = *ret_before = *ret_parted = 0;
    rq_err rc = RESUME(w, rq_hfile_scanner_seek_first(&s, &w->ctx, &w->why));
    for (size_t i = 0; rc == RQ_OK; i++) {
        if (s.pos == 0) {
            *ret_all += 1;
            *ret_before += rq_cell_compare_key(w->shape.order, &w->list.cells[i], key) < 0;
            *ret_parted += i > 0 && same_key(w, i - 1, i);
        }
        rc = RESUME(w, rq_hfile_scanner_next(&s, &w->ctx, &w->why));
    }
    rq_hfile_scanner_clear(&s);
}

/* HBASE: HFileBlockIndex.midkey if the root lists all blocks, otherwise getMidKeyMetadata.
 */
static void midkey_is_the_middle_blocks(world *w, const rq_cell *key)
{
    size_t all, before, parted;
    count_blocks(w, key, &all, &before, &parted);
    size_t middle =
        rq_hfile_reader_info(w->reader)->data_index_levels == 1 ? all / 2 : (all - 1) / 2;
    w->parted += parted;
    if (parted > 0 ? before < middle : before != middle)
        fail_msg("seed %llu: the mid key is of block %zu of %zu", (unsigned long long)w->seed,
                 before, all);
}

static void midkey_divides(world *w)
{
    rq_buf key = {0};
    rq_err rc = RESUME(w, rq_hfile_midkey(w->reader, &w->ctx, &key, &w->why));
    if (w->list.count == 0) {
        assert_int_equal(rc, RQ_E_END);
    } else {
        CHECK(w, rc);
        rq_cell c;
        CHECK(w, rq__cell_parse_key(rq_buf_slice(&key), &c, &w->why));
        /* Cells of one key may span several blocks; the index keys of all but one are after
         * them. */
        assert_true(rq_row_compare(w->shape.order, rq_cell_row(&c),
                                   rq_cell_row(&w->list.cells[w->list.count - 1])) <= 0);
        assert_true(rq_cell_compare_key(w->shape.order, &c, &w->list.cells[0]) >= 0);
        midkey_is_the_middle_blocks(w, &c);
    }
    rq_buf_clear(&key);
}

static void info_is_reported(world *w)
{
    const rq_hfile_info *info = rq_hfile_reader_info(w->reader);
    assert_int_equal(info->entry_count, w->list.count);
    assert_int_equal(info->max_seqid, 77);
    assert_true(info->has_max_seqid && info->major && !info->bulk_loaded);
    assert_int_equal(info->create_time_ms, 1234567);
    assert_int_equal(info->has_tags, w->options.include_tags);
    assert_int_equal(info->has_mvcc, w->options.include_mvcc);
    int64_t max_ts = -1;
    uint64_t delete_families = 0;
    for (size_t i = 0; i < w->list.count; i++) {
        const rq_cell *c = &w->list.cells[i];
        if (c->timestamp > max_ts) max_ts = c->timestamp;
        if (c->type == RQ_TYPE_DELETE_FAMILY || c->type == RQ_TYPE_DELETE_FAMILY_VERSION)
            delete_families++;
    }
    assert_true(info->has_time_range);
    assert_int_equal(info->max_ts, max_ts);
    assert_int_equal(info->delete_family_count, delete_families);
    if (w->list.count == 0) {
        assert_int_equal(info->first_key.len, 0);
        return;
    }
    rq_cell first;
    rq_cell last;
    CHECK(w, rq__cell_parse_key(info->first_key, &first, &w->why));
    CHECK(w, rq__cell_parse_key(info->last_key, &last, &w->why));
    assert_int_equal(rq_cell_compare_key(w->shape.order, &first, &w->list.cells[0]), 0);
    assert_int_equal(rq_cell_compare_key(w->shape.order, &last, &w->list.cells[w->list.count - 1]),
                     0);
}

static void whatever_is_written_is_read_back(void **state)
{
    (void)state;
    uint64_t seed = first_seed();
    int rounds = (int)seeds_number("HFILE_ROUNDS", 60);
    print_message("seeds %llu to %llu\n", (unsigned long long)seed,
                  (unsigned long long)seed + (unsigned)rounds - 1);
    uint64_t agains = 0;
    uint64_t moves_here = 0, moves_back = 0, parted = 0;
    uint32_t levels = 0;
    for (int i = 0; i < rounds; i++) {
        world w;
        world_begin(&w, seed + (unsigned)i);
        info_is_reported(&w);
        scan_forward(&w);
        scan_inside_blocks(&w);
        scan_backward(&w);
        scan_backward_here(&w);
        seek_around(&w);
        scan_forward(&w);
        blooms_never_deny(&w);
        midkey_divides(&w);
        agains += w.agains;
        moves_here += w.moves_here;
        moves_back += w.moves_back;
        parted += w.parted;
        if (rq_hfile_reader_info(w.reader)->data_index_levels > levels)
            levels = rq_hfile_reader_info(w.reader)->data_index_levels;
        world_end(&w);
    }
    /* The test is only useful if it reached the difficult cases. */
    print_message("%llu repeated calls, %llu and %llu moves, %llu parts, %u levels\n",
                  (unsigned long long)agains, (unsigned long long)moves_here,
                  (unsigned long long)moves_back, (unsigned long long)parted, levels);
    if (rounds >= 60) {
        assert_true(agains > 100);
        assert_true(moves_here > 100);
        assert_true(moves_back > 100);
        assert_true(levels >= 4);
        assert_true(parted > 100);
    }
}

/* Searches for 200,000 rows, half of which exist; returns the number of bloom blocks found in the
 * cache. */
static uint64_t look_for_rows(uint64_t cache_bytes)
{
    world w = {.seed = first_seed()};
    rq_random_seed(&w.random, w.seed);
    memory_vfs_init(&w.vfs, w.seed);
    w.options = rq_hfile_options_default();
    rq_hfile_writer *writer;
    CHECK(&w, rq_hfile_writer_open(&w.vfs.base, "f", &w.options, &writer, &w.why));
    char row[32];
    /* More than one chunk of 128 KiB. */
    for (int i = 0; i < 250000; i++) {
        int len = snprintf(row, sizeof(row), "row%08d", i * 2);
        rq_cell c = rq_cell_first_on_column(rq_slice_of(row, (size_t)len), RQ_SLICE_LIT("f"),
                                            RQ_SLICE_LIT("q"));
        c.timestamp = 1;
        c.type = RQ_TYPE_PUT;
        CHECK(&w, rq_hfile_writer_append(writer, &c, &w.why));
    }
    CHECK(&w, rq_hfile_writer_finish(writer, NULL, &w.why));
    rq_hfile_writer_close(writer);
    CHECK(&w, rq_block_cache_new(cache_bytes, &w.cache));
    CHECK(&w, rq_hfile_reader_open(&w.vfs.base, "f", w.cache, false, &w.reader, &w.why));
    w.ctx.may_block = true;
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        bool may;
        int n = (int)rq_random_below(&w.random, 250000) * 2;
        int len = snprintf(row, sizeof(row), "row%08d", n);
        CHECK(&w, rq_hfile_may_contain_row(w.reader, &w.ctx, rq_slice_of(row, (size_t)len), &may,
                                           &w.why));
        assert_true(may);
        len = snprintf(row, sizeof(row), "row%08d", n + 1);
        CHECK(&w, rq_hfile_may_contain_row(w.reader, &w.ctx, rq_slice_of(row, (size_t)len), &may,
                                           &w.why));
        wrong += may;
    }
    assert_true(wrong < 1500); /* the requested rate is 1 % */
    rq_block_cache_stats stats;
    uint64_t blocks, bytes;
    rq_hfile_reader_evict(w.reader, &blocks, &bytes);
    rq_block_cache_get_stats(w.cache, &stats);
    /* pinned blocks may take an eighth of the cache */
    assert_true(stats.pinned_bytes <= cache_bytes / 8);
    rq_hfile_reader_unref(w.reader);
    w.reader = NULL;
    rq_block_cache_get_stats(w.cache, &stats);
    assert_int_equal(stats.pinned_bytes, 0);
    world_end(&w);
    return stats.hits[RQ_BLOCK_BLOOM_CHUNK] + stats.hits[RQ_BLOCK_GENERAL_BLOOM_META];
}

static void absent_rows_are_mostly_denied(void **state)
{
    (void)state;
    /* The bloom blocks are looked up in the cache once; after that no memory shared by threads is
     * written. */
    assert_true(look_for_rows(64 << 20) < 10);
}

static void a_small_cache_keeps_its_readers_short(void **state)
{
    (void)state;
    /* An eighth of this cache is less than one bloom chunk. */
    assert_true(look_for_rows(1 << 20) > 100000);
}

static size_t count_of(rq_slice bytes, const char *text)
{
    size_t n = 0;
    const uint8_t *end = bytes.ptr + bytes.len;
    for (const uint8_t *p = bytes.ptr; (p = memmem(p, (size_t)(end - p), text, strlen(text))); p++)
        n++;
    return n;
}

/* The size of the longest data block, from its magic bytes to the next block's. */
static uint64_t longest_block(const rq_buf *file)
{
    const uint8_t *end = file->ptr + file->len;
    const uint8_t *last = NULL;
    uint64_t longest = 0;
    for (const uint8_t *p = file->ptr; (p = memmem(p, (size_t)(end - p), "DATABLK", 7)) != NULL;
         p++) {
        if (last != NULL && (uint64_t)(p - last) > longest) longest = (uint64_t)(p - last);
        last = p;
    }
    return longest;
}

#define IDENTICAL 200000

/* Deletes of one column at one timestamp; a compaction may have to keep any number of them. */
static void cells_of_one_key_take_as_many_blocks_as_they_need(void **state)
{
    (void)state;
    memory_vfs vfs;
    memory_vfs_init(&vfs, 1);
    rq_hfile_options o = rq_hfile_options_default();
    rq_error why = {0};
    rq_hfile_writer *writer;
    assert_int_equal(rq_hfile_writer_open(&vfs.base, "f", &o, &writer, &why), RQ_OK);
    rq_cell c = rq_cell_first_on_column(RQ_SLICE_LIT("row"), RQ_SLICE_LIT("f"), RQ_SLICE_LIT("q"));
    c.timestamp = 1;
    c.type = RQ_TYPE_DELETE_COLUMN;
    for (uint64_t i = IDENTICAL; i > 0; i--) {
        c.seqid = i;
        assert_int_equal(rq_hfile_writer_append(writer, &c, &why), RQ_OK);
    }
    c.type = RQ_TYPE_PUT;
    c.seqid = 1;
    assert_int_equal(rq_hfile_writer_append(writer, &c, &why), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(writer, NULL, &why), RQ_OK);
    rq_hfile_writer_close(writer);
    assert_true(longest_block(memory_vfs_bytes(&vfs, "f")) < 11 * (uint64_t)o.block_bytes);

    rq_hfile_reader *r;
    rq_hfile_report report;
    assert_int_equal(rq_hfile_reader_open(&vfs.base, "f", NULL, false, &r, &why), RQ_OK);
    assert_int_equal(rq_hfile_check(r, &report, &why), RQ_OK);
    assert_int_equal(report.cells, IDENTICAL + 1);
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    assert_int_equal(rq_hfile_scanner_seek_before(&s, &ctx, &c, &why), RQ_OK);
    assert_int_equal(rq_hfile_scanner_cell(&s)->seqid, 1);
    assert_int_equal(rq_hfile_scanner_cell(&s)->type, RQ_TYPE_DELETE_COLUMN);
    c.type = RQ_TYPE_DELETE_COLUMN;
    assert_int_equal(rq_hfile_scanner_seek(&s, &ctx, &c, &why), RQ_OK);
    assert_int_equal(rq_hfile_scanner_cell(&s)->seqid, IDENTICAL);
    for (uint64_t i = 1; i <= IDENTICAL; i++)
        assert_int_equal(rq_hfile_scanner_next(&s, &ctx, &why), RQ_OK);
    assert_int_equal(rq_hfile_scanner_cell(&s)->type, RQ_TYPE_PUT);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_hfile_reader_unref(r);
    memory_vfs_clear(&vfs);
}

static void a_large_cell_has_its_block_alone(void **state)
{
    (void)state;
    enum { CELLS = 30, LARGE = 20, VALUE = 100000 };
    memory_vfs vfs;
    rq_hfile_writer *writer;
    rq_hfile_info info;
    rq_error why = {0};
    char row[8];
    uint8_t *value = calloc(1, VALUE);
    memory_vfs_init(&vfs, 1);
    rq_hfile_options o = rq_hfile_options_default();
    assert_int_equal(rq_hfile_writer_open(&vfs.base, "dir/f", &o, &writer, &why), RQ_OK);
    for (int i = 0; i < CELLS; i++) {
        rq_cell c = {.row = (uint8_t *)row,
                     .row_len = (uint16_t)snprintf(row, sizeof row, "r%03d", i),
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .value = value,
                     .value_len = i == LARGE ? VALUE : 10,
                     .type = RQ_TYPE_PUT};
        assert_int_equal(rq_hfile_writer_append(writer, &c, &why), RQ_OK);
    }
    assert_int_equal(rq_hfile_writer_finish(writer, &info, &why), RQ_OK);
    assert_int_equal(count_of(rq_buf_slice(memory_vfs_bytes(&vfs, "dir/f")), "DATABLK*"), 3);
    rq_hfile_writer_close(writer);
    memory_vfs_clear(&vfs);
    free(value);
}

/* Writes a file with one cell whose value is this many zeros. */
static void write_zeros(memory_vfs *vfs, size_t len, rq_compression compression)
{
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *writer;
    rq_hfile_info info;
    rq_error why = {0};
    rq_cell c = rq_cell_first_on_column(RQ_SLICE_LIT("row"), RQ_SLICE_LIT("f"), RQ_SLICE_LIT("q"));
    uint8_t *value = calloc(1, len);
    assert_non_null(value);
    o.compression = compression;
    c.type = RQ_TYPE_PUT;
    c.value = value;
    c.value_len = (uint32_t)len;
    assert_int_equal(rq_hfile_writer_open(&vfs->base, "f", &o, &writer, &why), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(writer, &c, &why), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(writer, &info, &why), RQ_OK);
    rq_hfile_writer_close(writer);
    free(value);
}

/* How often a thread that must not wait gets RQ_E_AGAIN until it has the cell. */
static unsigned agains_of_zeros(size_t len, rq_compression compression)
{
    memory_vfs vfs;
    rq_hfile_reader *r;
    rq_hfile_scanner s;
    rq_read_ctx ctx = {0};
    rq_error why = {0};
    unsigned agains = 0;
    memory_vfs_init(&vfs, 1);
    write_zeros(&vfs, len, compression);
    assert_int_equal(rq_hfile_reader_open(&vfs.base, "f", NULL, false, &r, &why), RQ_OK);
    rq_hfile_scanner_init(&s, r);
    rq_err rc;
    while ((rc = rq_hfile_scanner_seek_first(&s, &ctx, &why)) == RQ_E_AGAIN) {
        assert_int_equal(rq_read_ctx_fulfil(&ctx, &why), RQ_OK);
        agains++;
    }
    assert_int_equal(rc, RQ_OK);
    assert_int_equal(rq_hfile_scanner_cell(&s)->value_len, len);
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_hfile_reader_unref(r);
    memory_vfs_clear(&vfs);
    return agains;
}

/* The file is in the page cache, but copying, checking and decompressing the block takes long. */
static void a_long_block_is_not_loaded_in_passing(void **state)
{
    (void)state;
    assert_int_equal(agains_of_zeros(100000, RQ_COMPRESSION_NONE), 0);
    assert_int_equal(agains_of_zeros(100000, RQ_COMPRESSION_GZ), 0);
    assert_int_equal(agains_of_zeros(1000000, RQ_COMPRESSION_NONE), 1);
    assert_int_equal(agains_of_zeros(1000000, RQ_COMPRESSION_GZ), 1);
}

/* Sequence ids of any length, complete and truncated, with and without trailing bytes. */
static void sequence_ids_are_read_as_vlongs(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 1);
    for (int i = 0; i < 100000; i++) {
        uint8_t bytes[17];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rq_random_below(&random, 256);
        if (i % 4 != 0) (void)rq_put_vlong(bytes, (int64_t)(rq_random_next(&random) >> (i % 64)));
        if (bytes[0] < 128) continue; /* a one-byte value is read without the function */
        size_t left = 1 + rq_random_below(&random, sizeof bytes);
        rq_cursor c = {bytes, bytes + left};
        int64_t expected;
        uint64_t got;
        size_t len = 0;
        if (rq_cursor_vlong(&c, &expected) && expected >= 0) len = (size_t)(c.ptr - bytes);
        assert_int_equal(rq__plain_long_seqid(bytes, left, &got), len);
        if (len > 0) assert_int_equal(got, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_written_is_read_back),
        cmocka_unit_test(absent_rows_are_mostly_denied),
        cmocka_unit_test(a_small_cache_keeps_its_readers_short),
        cmocka_unit_test(a_large_cell_has_its_block_alone),
        cmocka_unit_test(cells_of_one_key_take_as_many_blocks_as_they_need),
        cmocka_unit_test(a_long_block_is_not_loaded_in_passing),
        cmocka_unit_test(sequence_ids_are_read_as_vlongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
