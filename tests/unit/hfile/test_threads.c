/* SPDX-License-Identifier: Apache-2.0 */
/* One reader, many threads: concurrent scans and point reads through a cache that is too small; the
 * first thread to need a sidecar builds it. Under TSan this is the room's race test. */
#include "cells.h"
#include "hfile/ahead.h"
#include "hfile/reader.h"
#include "hfile/writer.h"
#include "memory_vfs.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define THREADS 4

typedef struct worker {
    rq_hfile_reader *reader;
    const cell_list *list;
    uint64_t seed;
    const char *broken;
} worker;

static void look_ahead(const worker *w, rq_random *random)
{
    rq_hfile_row rows[20];
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++) {
        const rq_cell *cell = &w->list->cells[rq_random_below(random, w->list->count)];
        rows[i] = (rq_hfile_row){rq_cell_row(cell), 2, {w->reader, w->reader}};
    }
    rq_hfile_expect_rows(rows, RQ_ARRAY_LEN(rows));
}

static void seek_some(worker *w, rq_hfile_scanner *s, rq_read_ctx *ctx, rq_random *random)
{
    for (int i = 0; i < 2000 && w->broken == NULL; i++) {
        size_t at = rq_random_below(random, w->list->count);
        const rq_cell *want = &w->list->cells[at];
        bool may = false;
        if (rq_hfile_may_contain_row(w->reader, ctx, rq_cell_row(want), &may, NULL) != RQ_OK ||
            !may)
            w->broken = "the bloom denies a row";
        if (rq_hfile_scanner_seek(s, ctx, want, NULL) != RQ_OK ||
            rq_cell_compare_key(RQ_ORDER_DEFAULT, rq_hfile_scanner_cell(s), want) != 0)
            w->broken = "a seek misses its cell";
        if (i % 100 == 0) rq_read_ctx_clear(ctx);
        if (i % 20 == 0) look_ahead(w, random);
    }
}

static void scan_all(worker *w, rq_hfile_scanner *s, rq_read_ctx *ctx)
{
    size_t count = 0;
    rq_err rc = rq_hfile_scanner_seek_first(s, ctx, NULL);
    for (; rc == RQ_OK; rc = rq_hfile_scanner_next(s, ctx, NULL))
        count++;
    if (rc != RQ_E_END || count != w->list->count) w->broken = "a scan misses cells";
}

static void *work(void *arg)
{
    worker *w = arg;
    rq_random random;
    rq_random_seed(&random, w->seed);
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, w->reader);
    for (int round = 0; round < 3 && w->broken == NULL; round++) {
        seek_some(w, &s, &ctx, &random);
        scan_all(w, &s, &ctx);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    return NULL;
}

static void threads_share_a_reader_and_a_cache(void **state)
{
    (void)state;
    static const uint64_t cache_bytes[] = {60 * 1024, 64 << 20};
    for (size_t k = 0; k < RQ_ARRAY_LEN(cache_bytes); k++) {
        memory_vfs vfs;
        rq_random random;
        cell_list list;
        cell_shape shape = {
            .count = 5000, .row_space = 3000, .column_space = 9, .value_max = 60, .deletes = true};
        memory_vfs_init(&vfs, 1);
        rq_random_seed(&random, 11);
        cell_list_make(&list, &random, &shape);
        rq_hfile_options o = rq_hfile_options_default();
        o.block_bytes = 4096;
        o.index_chunk_bytes = 1000;
        o.compression = k == 0 ? RQ_COMPRESSION_ZSTD : RQ_COMPRESSION_NONE;
        assert_int_equal(cell_list_write(&list, &vfs.base, "f", &o, NULL), RQ_OK);
        rq_block_cache *cache;
        rq_hfile_reader *reader;
        assert_int_equal(rq_block_cache_new(cache_bytes[k], &cache), RQ_OK);
        assert_int_equal(rq_hfile_reader_open(&vfs.base, "f", cache, false, &reader, NULL), RQ_OK);
        pthread_t threads[THREADS];
        worker workers[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
            workers[i] = (worker){reader, &list, i, NULL};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            if (workers[i].broken != NULL) fail_msg("%s", workers[i].broken);
        }
        rq_hfile_reader_unref(reader);
        rq_block_cache_stats stats;
        rq_block_cache_get_stats(cache, &stats);
        assert_int_equal(stats.used_bytes + stats.pinned_bytes + stats.blocks, 0);
        rq_block_cache_free(cache);
        cell_list_clear(&list);
        memory_vfs_clear(&vfs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_reader_and_a_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
