/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of families' and the server's block cache settings on a region: the blocks that are
 * cached after a flush, a compaction, an opening and a close. Uses real threads, because of
 * prefetching. */
#include "fixture.h"

#include "hfile/block_cache.h"
#include "region/engine_priv.h"
#include "vfs/sim.h"

#include <unistd.h>

typedef struct counts {
    uint64_t data, index, blooms;
} counts;

static rq_block_cache_stats stats_of(const fixture *f)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(rq_engine_block_cache(f->engine), &s);
    return s;
}

static counts inserted(const fixture *f)
{
    rq_block_cache_stats s = stats_of(f);
    return (counts){s.inserted[RQ_BLOCK_DATA],
                    s.inserted[RQ_BLOCK_LEAF_INDEX] + s.inserted[RQ_BLOCK_INTERMEDIATE_INDEX],
                    s.inserted[RQ_BLOCK_BLOOM_CHUNK]};
}

/* Enough rows for several blocks of each kind, with the small sizes set below. */
static void fill(fixture *f)
{
    char row[16];
    for (int i = 0; i < 600; i++) {
        snprintf(row, sizeof row, "row%06d", i);
        assert_int_equal(put(f, row, "a", "q", 5, "a value of some length, so that blocks fill"),
                         RQ_OK);
    }
}

static void flush(fixture *f)
{
    bool flushed;
    assert_int_equal(rq_region_flush(f->region, (rq_slice){0}, &flushed, NULL), RQ_OK);
    assert_true(flushed);
}

static const char *const small[] = {"hfile.index.block.max.size=512",
                                    "io.storefile.bloom.block.size=128", NULL};

/* Each test has its own world, because files of another test would be compacted, too. */
typedef struct world {
    real_env real;
    fixture f;
} world;

static fixture *open_with(world *w, const char *key, const char *value, const char *const *settings)
{
    family_def a = {"a", {"BLOCKSIZE", "1024", key, value, NULL}};
    real_env_open(&w->real);
    fixture_open_with(&w->f, &w->real.env, &a, 1, settings);
    fill(&w->f);
    return &w->f;
}

static void close_world(world *w)
{
    fixture_close(&w->f);
    real_env_close(&w->real);
}

/* A closed store's files are released by a pool. */
static void await_eviction_by_file(const fixture *f, uint64_t blocks)
{
    for (int turn = 0; turn < 100000 && stats_of(f).evicted_by_file < blocks; turn++)
        usleep(100);
    assert_true(stats_of(f).evicted_by_file >= blocks);
}

static void close_and_await(fixture *f, uint64_t blocks)
{
    rq_error why = {0};
    uint64_t before = stats_of(f).evicted_by_file;
    assert_int_equal(rq_region_close(f->region, false, &why), RQ_OK);
    rq_region_unref(f->region);
    await_eviction_by_file(f, before + blocks);
    assert_int_equal(rq_region_open(f->engine, &f->info, f->schema, &f->region, &why), RQ_OK);
}

static void a_flush_caches_what_the_family_or_the_server_says(void **state)
{
    (void)state;
    static const struct {
        const char *attribute, *property;
        bool data, index, blooms;
    } cases[] = {
        {NULL, NULL, false, false, false},
        {"CACHE_DATA_ON_WRITE", "hbase.rs.cacheblocksonwrite=true", true, true, true},
        {"CACHE_INDEX_ON_WRITE", "hfile.block.index.cacheonwrite=true", false, true, false},
        {"CACHE_BLOOMS_ON_WRITE", "hfile.block.bloom.cacheonwrite=true", false, false, true},
        {"PREFETCH_BLOCKS_ON_OPEN", "hbase.rs.prefetchblocksonopen=true", true, true, true},
    };
    for (size_t i = 0; i < 2 * RQ_ARRAY_LEN(cases); i++) {
        bool by_server = i % 2 == 1;
        const char *settings[] = {small[0], small[1], by_server ? cases[i / 2].property : NULL,
                                  NULL};
        world w;
        fixture *f = open_with(&w, by_server ? NULL : cases[i / 2].attribute, "true", settings);
        flush(f);
        bool prefetches = i / 2 == 4;
        /* Prefetching runs in the background; the test's own time-out bounds the wait. */
        counts n = inserted(f);
        while (prefetches && (n.data < 20 || n.index < 2 || n.blooms < 2)) {
            usleep(1000);
            n = inserted(f);
        }
        assert_int_equal(n.data > 20, cases[i / 2].data);
        /* Opening may read the first index block. */
        assert_int_equal(n.index > 1, cases[i / 2].index);
        assert_int_equal(n.blooms > 1, cases[i / 2].blooms);
        assert_string_equal(get(f, "row000300", "a", "q"),
                            "a value of some length, so that blocks fill");
        close_world(&w);
    }
}

static void a_compaction_caches_data_only_when_the_server_says_so(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        const char *settings[] = {
            small[0], small[1], round == 0 ? NULL : "hbase.rs.cachecompactedblocksonwrite=true",
            round == 2 ? "hbase.rs.cachecompactedblocksonwrite.threshold=100" : NULL, NULL};
        world w;
        fixture *f = open_with(&w, "CACHE_DATA_ON_WRITE", "true", settings);
        flush(f);
        fill(f);
        flush(f);
        counts before = inserted(f);
        rq_region_load load;
        assert_int_equal(rq_region_compact(f->region, RQ_SLICE_LIT("a"), true, NULL), RQ_OK);
        do {
            usleep(1000);
            rq_region_get_load(f->region, &load);
        } while (load.storefiles != 1 || rq_region_compaction_state(f->region) != 0);
        assert_int_equal(inserted(f).data > before.data, round == 1);
        close_world(&w);
    }
}

static rq_err (*plain_open)(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why);
static const fixture *closing;

/* The region begins to close when a finished file is opened to be read. */
static rq_err open_and_close(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    if (flags == RQ_OPEN_READ || flags == RQ_OPEN_RANDOM)
        atomic_store(&closing->region->stop, true);
    return plain_open(v, path, flags, ret, why);
}

/* A close waits for the compaction, whose only remaining step is to load its blocks. */
static void a_closing_region_warms_no_cache(void **state)
{
    (void)state;
    static const char *const settings[] = {"hbase.rs.cachecompactedblocksonwrite=true", NULL};
    static const family_def family = {"a", {"BLOCKSIZE", "65536", NULL}};
    static char value[60001];
    rq_block_cache_stats s;
    for (int stopped = 0; stopped <= 1; stopped++) {
        rq_sim *sim;
        fixture f;
        memset(value, 'v', sizeof value - 1);
        assert_ok(rq_sim_new(1, NULL, &sim));
        fixture_open_with(&f, rq_sim_env(sim), &family, 1, settings);
        for (int i = 0; i < 100; i++) {
            char row[16];
            snprintf(row, sizeof row, "%d", i);
            assert_ok(put(&f, row, "a", "q", 1, value));
            if (i % 50 == 49) assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
        }
        rq_vfs *vfs = f.env->vfs;
        closing = &f;
        plain_open = vfs->open;
        if (stopped == 1) vfs->open = open_and_close;
        assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
        rq_sim_run(sim);
        vfs->open = plain_open;
        rq_block_cache_get_stats(rq_engine_block_cache(f.engine), &s);
        assert_int_equal(rq_store_version_now(f.region->stores[0].store)->file_count, 1);
        if (stopped == 1)
            assert_in_range(s.inserted[RQ_BLOCK_DATA], 0, 9);
        else
            assert_in_range(s.inserted[RQ_BLOCK_DATA], 40, 110);
        fixture_close(&f);
        rq_sim_free(sim);
    }
}

static void blocks_outlast_a_close_unless_configured_otherwise(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        world w;
        fixture *f = open_with(&w, round == 0 ? NULL : "EVICT_BLOCKS_ON_CLOSE", "true", small);
        flush(f);
        (void)read_text(f, "", 0, false);
        counts before = inserted(f);
        assert_true(before.data > 20);
        close_and_await(f, round == 0 ? 0 : before.data);
        (void)read_text(f, "", 0, false);
        assert_int_equal(inserted(f).data - before.data, round == 0 ? 0 : before.data);
        close_world(&w);
    }
}

static void replaced_files_leave_the_cache(void **state)
{
    (void)state;
    world w;
    fixture *f = open_with(&w, NULL, NULL, small);
    flush(f);
    fill(f);
    flush(f);
    (void)read_text(f, "", 0, false);
    uint64_t full = stats_of(f).used_bytes;
    rq_region_load load;
    assert_int_equal(rq_region_compact(f->region, RQ_SLICE_LIT("a"), true, NULL), RQ_OK);
    do { /* the old files are released with the last version that refers to them */
        usleep(1000);
        rq_epoch_collect(f->env->epoch);
        rq_region_get_load(f->region, &load);
    } while (load.storefiles != 1 || stats_of(f).used_bytes > full / 3);
    close_world(&w);
}

static void a_regions_blocks_can_be_dropped_and_are_read_again(void **state)
{
    (void)state;
    world w;
    fixture *f = open_with(&w, NULL, NULL, small);
    flush(f);
    (void)read_text(f, "", 0, false);
    rq_region_load load;
    uint64_t blocks, bytes, before = inserted(f).data;
    rq_region_get_load(f->region, &load);
    assert_int_equal(load.cached_bytes, stats_of(f).used_bytes);
    rq_region_evict_blocks(f->region, &blocks, &bytes);
    assert_true(blocks > 20 && bytes == load.cached_bytes);
    assert_int_equal(stats_of(f).blocks, 0);
    (void)read_text(f, "", 0, false);
    assert_int_equal(inserted(f).data, 2 * before);
    close_world(&w);
}

static void nothing_is_kept_of_a_family_without_block_cache(void **state)
{
    (void)state;
    world w;
    fixture *f = open_with(&w, "BLOCKCACHE", "false", small);
    flush(f);
    (void)read_text(f, "", 0, false);
    assert_non_null(get(f, "row000300", "a", "q"));
    assert_int_equal(inserted(f).data, 0);
    assert_true(inserted(f).index > 0);
    close_world(&w);
}

static void a_file_takes_what_memory_has_no_room_for(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        /* A path in the data folder, an absolute path, and two invalid paths. */
        char absolute[64] = "hbase.bucketcache.ioengine=file:/tmp/rq-cache-XXXXXX";
        if (round == 1) close(mkstemp(absolute + strlen("hbase.bucketcache.ioengine=file:")));
        const char *paths[] = {"hbase.bucketcache.ioengine=file:cache", absolute,
                               "hbase.bucketcache.ioengine=file:/no/such/folder/cache",
                               "hbase.bucketcache.ioengine=offheap"};
        const char *settings[] = {small[0],
                                  small[1],
                                  "rorqual.memory=1m",
                                  "hfile.block.cache.size=0.05",
                                  paths[round],
                                  "hbase.bucketcache.size=8",
                                  NULL};
        world w;
        fixture *f = open_with(&w, NULL, NULL, settings);
        flush(f);
        char *before = strdup(read_text(f, "", 0, false));
        /* The writer runs at its own speed, and counts a block after the block can be found. The
         * test's time-out bounds the wait. */
        rq_block_cache_stats s;
        do {
            assert_string_equal(read_text(f, "", 0, false), before);
            s = stats_of(f);
        } while (round < 2 && (s.second_hits == 0 || s.second_written == 0));
        assert_int_equal(s.second_on, round < 2);
        assert_int_equal(s.second_written > 0, round < 2);
        assert_int_equal(s.second_hits > 0, round < 2);
        free(before);
        close_world(&w);
        if (round == 1)
            assert_int_not_equal(
                access(absolute + strlen("hbase.bucketcache.ioengine=file:"), F_OK), 0);
    }
}

static void add_up(void *ctx, const rq_cache_family_stats *s)
{
    if (rq_slice_eq(s->family, RQ_SLICE_LIT("a"))) *(rq_cache_family_stats *)ctx = *s;
}

static void a_familys_reads_are_counted(void **state)
{
    (void)state;
    world w;
    fixture *f = open_with(&w, NULL, NULL, small);
    flush(f);
    (void)read_text(f, "", 0, false);
    rq_cache_family_stats first = {0}, second = {0};
    rq_block_cache_each_family(rq_engine_block_cache(f->engine), add_up, &first);
    assert_true(first.data_misses > 20 && first.meta_hits + first.meta_misses > 0);
    (void)read_text(f, "", 0, false);
    rq_block_cache_each_family(rq_engine_block_cache(f->engine), add_up, &second);
    assert_int_equal(second.data_misses, first.data_misses);
    assert_int_equal(second.data_hits - first.data_hits, first.data_misses);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_caches_what_the_family_or_the_server_says),
        cmocka_unit_test(a_compaction_caches_data_only_when_the_server_says_so),
        cmocka_unit_test(a_closing_region_warms_no_cache),
        cmocka_unit_test(blocks_outlast_a_close_unless_configured_otherwise),
        cmocka_unit_test(replaced_files_leave_the_cache),
        cmocka_unit_test(a_regions_blocks_can_be_dropped_and_are_read_again),
        cmocka_unit_test(nothing_is_kept_of_a_family_without_block_cache),
        cmocka_unit_test(a_file_takes_what_memory_has_no_room_for),
        cmocka_unit_test(a_familys_reads_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
