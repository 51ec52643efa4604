/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetch of rows: whatever the file and the cache contain, a prefetch counts, keeps, loads and
 * evicts nothing, and no memory out of bounds is read (checked by the sanitizers). */
#include "cells.h"
#include "hfile/ahead.h"
#include "hfile/cache_priv.h"
#include "hfile/reader.h"
#include "hfile/reader_priv.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 40 /* more rows than are looked up together */

static const cell_shape shape = {
    .count = 4000, .row_space = 2500, .column_space = 9, .value_max = 60, .deletes = true};

/* Gets `share` eighths of the rows; the second get of a block builds its sidecar. */
static void read_rows(rq_hfile_reader *reader, const cell_list *list, unsigned share)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, reader);
    for (size_t i = 0; i < list->count; i++) {
        bool may;
        if (i * 8 / list->count >= share) break;
        assert_int_equal(
            rq_hfile_may_contain_row(reader, &ctx, rq_cell_row(&list->cells[i]), &may, NULL),
            RQ_OK);
        assert_int_equal(rq_hfile_scanner_seek(&s, &ctx, &list->cells[i], NULL), RQ_OK);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
}

static void look_ahead(rq_hfile_reader *reader, cell_list *list, rq_random *random)
{
    rq_hfile_row rows[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        const rq_cell *cell = &list->cells[rq_random_below(random, list->count)];
        bool is_there = rq_random_below(random, 2) == 0;
        rq_slice row =
            is_there ? rq_cell_row(cell) : cell_list_random_row(&list->arena, random, &shape);
        size_t files = rq_random_below(random, 4);
        rows[i] = (rq_hfile_row){row, files, {reader, reader, reader}};
    }
    rq_hfile_expect_rows(rows, rq_random_below(random, ROWS + 1));
}

static void changes_nothing(rq_block_cache *cache, rq_hfile_reader *reader, cell_list *list,
                            rq_random *random)
{
    rq_block_cache_stats before, after;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    rq_block_cache_get_stats(cache, &before);
    for (int i = 0; i < 30; i++)
        look_ahead(reader, list, random);
    rq_block_cache_get_stats(cache, &after);
    assert_memory_equal(&before, &after, sizeof before);
}

static void run(const rq_hfile_options *o, uint64_t cache_bytes, rq_random *random)
{
    memory_vfs vfs;
    cell_list list;
    rq_block_cache *cache;
    rq_hfile_reader *reader;
    memory_vfs_init(&vfs, 1);
    cell_list_make(&list, random, &shape);
    assert_int_equal(cell_list_write(&list, &vfs.base, "f", o, NULL), RQ_OK);
    assert_int_equal(rq_block_cache_new(cache_bytes, &cache), RQ_OK);
    assert_int_equal(rq_hfile_reader_open(&vfs.base, "f", cache, false, &reader, NULL), RQ_OK);
    changes_nothing(cache, reader, &list, random);
    read_rows(reader, &list, 4);
    changes_nothing(cache, reader, &list, random);
    read_rows(reader, &list, 8);
    read_rows(reader, &list, 8);
    changes_nothing(cache, reader, &list, random);
    rq_hfile_reader_unref(reader);
    rq_block_cache_stats stats;
    rq_block_cache_get_stats(cache, &stats);
    assert_int_equal(stats.used_bytes + stats.pinned_bytes + stats.blocks, 0);
    rq_block_cache_free(cache);
    cell_list_clear(&list);
    memory_vfs_clear(&vfs);
}

static void looking_ahead_changes_nothing(void **state)
{
    (void)state;
    static const rq_block_encoding encodings[] = {RQ_ENCODING_NONE, RQ_ENCODING_ROW_INDEX_V1,
                                                  RQ_ENCODING_FAST_DIFF};
    static const rq_bloom_type blooms[] = {RQ_BLOOM_ROW, RQ_BLOOM_ROWCOL, RQ_BLOOM_NONE};
    /* indexes of one level, two, more */
    static const uint32_t index_chunks[] = {128 * 1024, 4000, 300};
    static const uint64_t caches[] = {60 * 1024, 64 << 20};
    rq_random random;
    rq_random_seed(&random, 31);
    for (size_t i = 0; i < 3 * 3 * 3 * 2; i++) {
        rq_hfile_options o = rq_hfile_options_default();
        o.block_bytes = 2048;
        o.encoding = encodings[i % 3];
        o.bloom = blooms[i / 3 % 3];
        o.index_chunk_bytes = index_chunks[i / 9 % 3];
        run(&o, caches[i / 27], &random);
    }
}

/* Seeks every cell; *ret: number of seeks after which the hint is the address of the block's sidecar. */
static void seek_all(rq_hfile_reader *reader, const cell_list *list, size_t *ret)
{
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    *ret = 0;
    for (size_t i = 0; i < list->count; i++) {
        rq_hfile_scanner_init(&s, reader);
        assert_int_equal(rq_hfile_scanner_seek(&s, &ctx, &list->cells[i], NULL), RQ_OK);
        assert_int_equal(
            rq_cell_compare_key(RQ_ORDER_DEFAULT, rq_hfile_scanner_cell(&s), &list->cells[i]), 0);
        const rq__sidecar *index = atomic_load(&s.leaf->sidecar);
        const rq__sidecar *block = atomic_load(&s.block->sidecar);
        uint32_t at = s.path[reader->info.data_index_levels - 1];
        if (index != NULL && block != NULL)
            *ret += atomic_load(&rq__sidecar_hints(index)[at]) == (uintptr_t)block;
        rq_hfile_scanner_clear(&s);
    }
    rq_read_ctx_clear(&ctx);
}

/* An index block has the addresses of its blocks' sidecars, also after these have been freed and made again. */
static void hints_follow_the_sidecars(void **state)
{
    (void)state;
    static const uint32_t index_chunks[] = {128 * 1024, 4000};
    rq_random random;
    rq_random_seed(&random, 32);
    for (size_t i = 0; i < RQ_ARRAY_LEN(index_chunks); i++) {
        memory_vfs vfs;
        cell_list list;
        rq_block_cache *cache;
        rq_hfile_reader *reader;
        size_t hinted;
        rq_hfile_options o = rq_hfile_options_default();
        o.block_bytes = 2048;
        o.index_chunk_bytes = index_chunks[i];
        memory_vfs_init(&vfs, 1);
        cell_list_make(&list, &random, &shape);
        assert_int_equal(cell_list_write(&list, &vfs.base, "f", &o, NULL), RQ_OK);
        assert_int_equal(rq_block_cache_new(64 << 20, &cache), RQ_OK);
        assert_int_equal(rq_hfile_reader_open(&vfs.base, "f", cache, false, &reader, NULL), RQ_OK);
        for (int round = 0; round < 3; round++) {
            seek_all(reader, &list, &hinted);
            seek_all(reader, &list, &hinted);
            assert_true(hinted > list.count * 9 / 10);
            (void)rq__cache_evict_file(reader->cached);
        }
        rq_hfile_reader_unref(reader);
        rq_block_cache_free(cache);
        cell_list_clear(&list);
        memory_vfs_clear(&vfs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_ahead_changes_nothing),
        cmocka_unit_test(hints_follow_the_sidecars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
