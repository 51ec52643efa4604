/* SPDX-License-Identifier: Apache-2.0 */
/* The block cache's file: evicted blocks are read back unchanged, or are not found. Uses the
 * simulated disk, where the test decides when the writer runs; the last test uses real threads. */
#include "base/random.h"
#include "hfile/cache_priv.h"
#include "hfile/reader.h"
#include "hfile/second_level.h"
#include "vfs/sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define MEMORY_BYTES (800 * 1024)
#define FILE_BYTES (4 << 20)
#define PATH "second"

typedef struct world {
    rq_sim *sim;
    rq_env *env;
    rq_block_cache *cache;
    rq__cache_file *file;
    int log_fd;
} world;

static size_t payload_len(uint64_t offset)
{
    return 1000 + offset * 37 % 9000;
}

static bool is_compressible; /* the payloads are */
static bool compresses;      /* the second level does */

static uint8_t payload_byte(uint64_t offset, size_t i)
{
    uint64_t x = (offset + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint8_t)(is_compressible ? offset * 31 + i / 64
                                     : (x ^ x >> 31) * UINT64_C(0x94d049bb133111eb) >> 56);
}

static void put(rq__cache_file *f, uint64_t offset)
{
    rq_hfile_block *b;
    assert_int_equal(rq__block_new(f->cache, payload_len(offset), &b), RQ_OK);
    b->kind = RQ_BLOCK_DATA;
    b->rank = RQ__RANK_DATA;
    b->file_id = f->id;
    b->offset = offset;
    b->on_disk_len = 77;
    b->payload = b->bytes;
    b->payload_len = payload_len(offset);
    for (size_t i = 0; i < b->payload_len; i++)
        b->bytes[i] = payload_byte(offset, i);
    rq__hfile_block_unref(rq__cache_put(f, b));
}

/* Whether the block is found, in memory or in the file; then it must be the right one. */
static bool check(rq__cache_file *f, uint64_t offset, bool may_block)
{
    rq_hfile_block *b = rq__cache_get(f, offset, RQ_BLOCK_DATA);
    if (b == NULL) {
        rq_err rc = rq__cache_get_second(f, offset, may_block, &b);
        assert_true(rc == RQ_OK || (rc == RQ_E_AGAIN && !may_block && b == NULL));
    }
    if (b == NULL) return false;
    assert_int_equal(b->kind, RQ_BLOCK_DATA);
    assert_int_equal(b->offset, offset);
    assert_int_equal(b->on_disk_len, 77);
    assert_int_equal(b->payload_len, payload_len(offset));
    for (size_t i = 0; i < b->payload_len; i++)
        if (b->payload[i] != payload_byte(offset, i)) fail_msg("a byte is wrong");
    rq__hfile_block_unref(b);
    return true;
}

static rq_block_cache_stats stats_of(const world *w)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(w->cache, &s);
    assert_true(s.used_bytes + s.second_index_bytes <= MEMORY_BYTES);
    return s;
}

static rq_block_cache_file options(const world *w, uint64_t bytes)
{
    return (rq_block_cache_file){.vfs = w->env->vfs,
                                 .path = PATH,
                                 .bytes = bytes,
                                 .executor = w->env->executor,
                                 .log = w->env->log,
                                 .compresses = compresses};
}

static void begin(world *w, uint64_t seed, uint64_t bytes, unsigned again_percent)
{
    w->log_fd = open("/dev/null", O_WRONLY);
    rq_sim_options o = {.again_percent = again_percent, .log_fd = w->log_fd};
    rq_error why = {0};
    assert_int_equal(rq_sim_new(seed, &o, &w->sim), RQ_OK);
    w->env = rq_sim_env(w->sim);
    assert_int_equal(rq_block_cache_new(MEMORY_BYTES, &w->cache), RQ_OK);
    rq_block_cache_file file = options(w, bytes);
    assert_int_equal(rq_block_cache_add_file(w->cache, &file, &why), RQ_OK);
    assert_int_equal(rq__cache_file_open(w->cache, "f", 1, 1, NULL, &w->file), RQ_OK);
}

static void end(world *w)
{
    rq_stat st;
    rq__cache_file_close(w->file, true);
    rq_block_cache_free(w->cache);
    assert_int_equal(rq_vfs_stat(w->env->vfs, PATH, &st, NULL), RQ_E_NOT_FOUND);
    rq_sim_free(w->sim);
    close(w->log_fd);
}

/* Adds blocks; after each of them the writer runs until it has no more work. */
static void fill(world *w, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        put(w->file, i);
        rq_sim_run(w->sim);
    }
}

static unsigned count(world *w, uint64_t from, uint64_t to)
{
    unsigned n = 0;
    for (uint64_t i = from; i < to; i++)
        n += check(w->file, i, true);
    return n;
}

/* The blocks have three times as many bytes as the file. */
static void compressed_blocks_take_less_room(void **state)
{
    (void)state;
    compresses = true;
    for (unsigned again = 0; again <= 50; again += 50) {
        world w;
        begin(&w, 5, FILE_BYTES / 2, again);
        is_compressible = true;
        fill(&w, 0, 1000);
        assert_int_equal(count(&w, 0, 1000), 1000);
        rq_block_cache_stats s = stats_of(&w);
        assert_true(s.second_on);
        unsigned at_once = 0;
        for (uint64_t i = 0; i < 1000; i++)
            at_once += check(w.file, i, false);
        assert_in_range(at_once, again == 0 ? 1000 : 400, 1000);
        is_compressible = false;
        end(&w);
    }
    compresses = false;
}

static void blocks_are_compressed_only_if_the_options_say_so(void **state)
{
    (void)state;
    world w;
    begin(&w, 5, FILE_BYTES / 2, 0);
    is_compressible = true;
    fill(&w, 0, 1000);
    assert_in_range(count(&w, 0, 1000), 1, 600);
    is_compressible = false;
    end(&w);
}

/* The checksum is of the compressed bytes, so that damage is found before they are decompressed. */
static void damage_of_a_compressed_block_turns_the_second_level_off(void **state)
{
    (void)state;
    world w;
    rq_file *file;
    rq_error why = {0};
    uint8_t zeros[4096] = {0};
    rq_stat st;
    compresses = is_compressible = true;
    begin(&w, 6, FILE_BYTES, 0);
    fill(&w, 0, 600);
    assert_int_equal(rq_vfs_open(w.env->vfs, PATH, RQ_OPEN_WRITE, &file, &why), RQ_OK);
    assert_int_equal(rq_vfs_stat(w.env->vfs, PATH, &st, &why), RQ_OK);
    for (uint64_t at = 48; at < st.size; at += sizeof zeros)
        assert_int_equal(rq_file_write(file, zeros, sizeof zeros, at, &why), RQ_OK);
    rq_file_close(file);
    (void)count(&w, 0, 600); /* those that are found are right */
    assert_false(stats_of(&w).second_on);
    compresses = is_compressible = false;
    end(&w);
}

static void evicted_blocks_come_back(void **state)
{
    (void)state;
    world w;
    begin(&w, 1, FILE_BYTES, 0);
    fill(&w, 0, 600); /* 3.5 MB */
    assert_true(stats_of(&w).blocks < 200);
    assert_int_equal(count(&w, 0, 600), 600);
    rq_block_cache_stats s = stats_of(&w);
    assert_true(s.second_on && s.second_hits > 400 && s.second_written > 400);
    assert_int_equal(s.second_capacity_bytes, FILE_BYTES);
    assert_true(s.second_index_bytes > 0);
    end(&w);
}

static void the_oldest_are_overwritten(void **state)
{
    (void)state;
    world w;
    begin(&w, 2, FILE_BYTES, 0);
    fill(&w, 0, 4000);
    assert_int_equal(count(&w, 0, 2000), 0);
    assert_true(count(&w, 3600, 4000) > 390);
    assert_true(stats_of(&w).second_on);
    end(&w);
}

static void a_full_index_gives_up_the_oldest_too(void **state)
{
    (void)state;
    world w;
    begin(&w, 3, (uint64_t)64 << 20, 0);
    fill(&w, 0, 6000); /* 30 MB fit the file, but their index exceeds an eighth of the memory */
    assert_int_equal(count(&w, 0, 10), 0);
    assert_true(stats_of(&w).second_index_bytes <= MEMORY_BYTES / 8);
    fill(&w, 7000, 7300);
    assert_true(count(&w, 7000, 7300) > 250);
    assert_true(stats_of(&w).second_on);
    end(&w);
}

static void a_stalled_writer_blocks_no_other(void **state)
{
    (void)state;
    world w;
    begin(&w, 4, FILE_BYTES, 0);
    for (uint64_t i = 0; i < 2000; i++)
        put(w.file, i); /* the writer's task does not run */
    rq_block_cache_stats s = stats_of(&w);
    assert_true(s.pinned_bytes <= MEMORY_BYTES / 16);
    assert_true(s.used_bytes + s.second_index_bytes + s.pinned_bytes <= MEMORY_BYTES);
    assert_true(s.second_dropped > 1700);
    assert_int_equal(s.second_written, 0);
    rq_sim_run(w.sim);
    assert_int_equal(stats_of(&w).pinned_bytes, 0);
    for (uint64_t i = 0; i < 100; i++)
        put(w.file, 2000 + i); /* the cache is freed while blocks wait */
    end(&w);
}

static void a_read_that_would_wait_says_so(void **state)
{
    (void)state;
    world w;
    begin(&w, 5, FILE_BYTES, 100);
    fill(&w, 0, 400);
    unsigned now = 0;
    for (uint64_t i = 0; i < 400; i++)
        now += check(w.file, i, false);
    assert_true(now < 200);
    assert_int_equal(count(&w, 0, 400), 400);
    end(&w);
}

static void a_flipped_bit_is_detected_and_disables_the_file(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 7);
    for (int round = 0; round < 30; round++) {
        world w;
        begin(&w, 100 + (uint64_t)round, FILE_BYTES, 0);
        fill(&w, 0, 500);
        for (int i = 0; i < 200; i++)
            (void)rq_sim_flip_bit(w.sim, PATH, rq_random_below(&random, FILE_BYTES / 2),
                                  (unsigned)rq_random_below(&random, 8));
        (void)count(&w, 0, 500); /* each block that is returned is checked */
        rq_block_cache_stats s = stats_of(&w);
        assert_false(s.second_on);
        assert_int_equal(s.second_index_bytes, 0);
        fill(&w, 600, 900); /* the cache continues to work */
        (void)count(&w, 0, 900);
        assert_int_equal(stats_of(&w).second_written, s.second_written);
        end(&w);
    }
}

/* The file's space is released for other uses of the disk. */
static void assert_file_is_empty(const world *w)
{
    rq_stat st;
    assert_int_equal(rq_vfs_stat(w->env->vfs, PATH, &st, NULL), RQ_OK);
    assert_int_equal(st.size, 0);
}

static void a_full_or_failing_disk_disables_the_file(void **state)
{
    (void)state;
    static const rq_err errors[] = {RQ_E_NO_SPACE, RQ_E_IO};
    for (size_t k = 0; k < RQ_ARRAY_LEN(errors); k++) {
        world w;
        begin(&w, 8, FILE_BYTES, 0);
        fill(&w, 0, 300);
        rq_sim_fail_writes(w.sim, errors[k]);
        fill(&w, 300, 500);
        assert_false(stats_of(&w).second_on);
        (void)count(&w, 0, 500);
        rq_sim_fail_writes(w.sim, RQ_OK);
        end(&w);
    }
    world w;
    begin(&w, 8, FILE_BYTES, 0);
    fill(&w, 0, 300);
    rq_sim_quota(w.sim, rq_sim_used(w.sim) + 1);
    fill(&w, 300, 500);
    assert_false(stats_of(&w).second_on);
    assert_file_is_empty(&w);
    end(&w);
    /* A read that fails. */
    begin(&w, 9, FILE_BYTES, 0);
    fill(&w, 0, 500);
    rq_sim_fail_at(w.sim, rq_sim_calls(w.sim) + 1, RQ_E_IO);
    assert_true(count(&w, 0, 500) < 500);
    assert_false(stats_of(&w).second_on);
    rq_sim_run(w.sim);
    assert_file_is_empty(&w);
    end(&w);
}

static void a_file_that_cannot_be_made_leaves_the_cache_as_it_was(void **state)
{
    (void)state;
    world w;
    begin(&w, 10, FILE_BYTES, 0);
    rq_block_cache *plain;
    rq_error why = {0};
    assert_int_equal(rq_block_cache_new(MEMORY_BYTES, &plain), RQ_OK);
    rq_block_cache_file o = options(&w, FILE_BYTES);
    o.path = "no/such/folder";
    assert_int_equal(rq_block_cache_add_file(plain, &o, &why), RQ_E_NOT_FOUND);
    o = options(&w, 100);
    assert_int_equal(rq_block_cache_add_file(plain, &o, &why), RQ_E_CONFIG);
    rq_block_cache_free(plain);
    end(&w);
}

static void an_evicted_file_is_evicted_here_too(void **state)
{
    (void)state;
    world w;
    begin(&w, 11, FILE_BYTES, 0);
    fill(&w, 0, 500);
    assert_true(rq__cache_evict_file(w.file).blocks > 10);
    assert_int_equal(count(&w, 0, 500), 0);
    end(&w);
}

static void whatever_happens_blocks_are_right(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        world w;
        rq_random random;
        rq_random_seed(&random, seed);
        begin(&w, seed, FILE_BYTES / 4 << rq_random_below(&random, 4), 20);
        for (int i = 0; i < 3000; i++) {
            uint64_t offset = rq_random_below(&random, 1200);
            if (!check(w.file, offset, rq_random_below(&random, 2) == 0)) put(w.file, offset);
            if (rq_random_below(&random, 3) == 0) (void)rq_sim_step(w.sim);
            if (rq_random_below(&random, 700) == 0) (void)rq__cache_evict_file(w.file);
            if (rq_random_below(&random, 500) == 0)
                rq_block_cache_resize(w.cache, MEMORY_BYTES / 2 +
                                                   rq_random_below(&random, MEMORY_BYTES / 2));
        }
        rq_sim_run(w.sim);
        assert_true(stats_of(&w).second_on);
        end(&w);
    }
}

/* --- real threads ----------------------------------------------------------------------------- */

typedef struct worker {
    rq__cache_file *file;
    uint64_t seed;
} worker;

static void *work(void *arg)
{
    const worker *w = arg;
    rq_random random;
    rq_random_seed(&random, w->seed);
    for (int i = 0; i < 10000; i++) {
        uint64_t offset = rq_random_below(&random, 900);
        if (!check(w->file, offset, rq_random_below(&random, 2) == 0)) put(w->file, offset);
        if (w->seed == 0 && i % 2000 == 1999) (void)rq__cache_evict_file(w->file);
    }
    return NULL;
}

static void threads_agree(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1};
    char root[] = "/tmp/rq-second-XXXXXX";
    rq_log log = {.fd = -1};
    rq_env env = {.log = &log};
    world w = {.env = &env};
    rq_error why = {0};
    assert_non_null(mkdtemp(root));
    assert_int_equal(rq_vfs_posix_new(root, &env.vfs, &why), RQ_OK);
    assert_int_equal(rq_thread_executor_new(threads, &env.executor), RQ_OK);
    assert_int_equal(rq_block_cache_new(MEMORY_BYTES, &w.cache), RQ_OK);
    rq_block_cache_file o = options(&w, FILE_BYTES);
    assert_int_equal(rq_block_cache_add_file(w.cache, &o, &why), RQ_OK);
    assert_int_equal(rq__cache_file_open(w.cache, "f", 1, 1, NULL, &w.file), RQ_OK);
    pthread_t ids[4];
    worker workers[4];
    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (worker){w.file, i};
        assert_int_equal(pthread_create(&ids[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    rq_block_cache_stats s = stats_of(&w);
    assert_true(s.second_on && s.second_hits > 0);
    rq__cache_file_close(w.file, true);
    rq_block_cache_free(w.cache);
    rq_thread_executor_free(env.executor);
    rq_vfs_free(env.vfs);
    assert_int_equal(rmdir(root), 0); /* the file was removed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicted_blocks_come_back),
        cmocka_unit_test(compressed_blocks_take_less_room),
        cmocka_unit_test(blocks_are_compressed_only_if_the_options_say_so),
        cmocka_unit_test(damage_of_a_compressed_block_turns_the_second_level_off),
        cmocka_unit_test(the_oldest_are_overwritten),
        cmocka_unit_test(a_full_index_gives_up_the_oldest_too),
        cmocka_unit_test(a_stalled_writer_blocks_no_other),
        cmocka_unit_test(a_read_that_would_wait_says_so),
        cmocka_unit_test(a_flipped_bit_is_detected_and_disables_the_file),
        cmocka_unit_test(a_full_or_failing_disk_disables_the_file),
        cmocka_unit_test(a_file_that_cannot_be_made_leaves_the_cache_as_it_was),
        cmocka_unit_test(an_evicted_file_is_evicted_here_too),
        cmocka_unit_test(whatever_happens_blocks_are_right),
        cmocka_unit_test(threads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
