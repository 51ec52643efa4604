/* SPDX-License-Identifier: Apache-2.0 */
/* The block cache alone: kept and evicted blocks, memory accounting, several threads. */
#include "base/clock.h"
#include "base/random.h"
#include "hfile/cache_priv.h"
#include "hfile/reader.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BLOCK_BYTES 4000

static rq__cache_file *file(rq_block_cache *c, const char *name)
{
    rq__cache_file *f;
    assert_int_equal(rq__cache_file_open(c, name, 1000, 7, NULL, &f), RQ_OK);
    return f;
}

static rq_hfile_block *put_ranked(rq_block_cache *c, rq__cache_file *f, uint64_t offset,
                                  rq_block_kind kind, rq__rank rank)
{
    rq_hfile_block *b;
    assert_int_equal(rq__block_new(c, BLOCK_BYTES, &b), RQ_OK);
    b->kind = (uint8_t)kind;
    b->offset = offset;
    b->file_id = f->id;
    b->rank = (uint8_t)rank;
    memset(b->bytes, (int)(offset & 0xff), BLOCK_BYTES);
    return rq__cache_put(f, b);
}

static rq_hfile_block *put(rq_block_cache *c, rq__cache_file *f, uint64_t offset,
                           rq_block_kind kind)
{
    return put_ranked(c, f, offset, kind, kind == RQ_BLOCK_DATA ? RQ__RANK_DATA : RQ__RANK_META);
}

static bool has(rq__cache_file *f, uint64_t offset)
{
    rq_hfile_block *b = rq__cache_get(f, offset, RQ_BLOCK_DATA);
    rq__hfile_block_unref(b);
    return b != NULL;
}

static rq_block_cache_stats stats_of(rq_block_cache *c)
{
    rq_block_cache_stats s;
    rq_block_cache_get_stats(c, &s);
    return s;
}

static void a_block_is_found_until_it_is_evicted(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(100 * 1024, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    for (uint64_t i = 0; i < 1000; i++) {
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
        assert_true(has(f, i));
        assert_true(stats_of(c).used_bytes <= 100 * 1024);
        assert_int_equal(stats_of(c).pinned_bytes, 0);
    }
    assert_true(stats_of(c).blocks >= 18);
    assert_int_equal(stats_of(c).blocks + stats_of(c).evicted, 1000);
    assert_int_equal(stats_of(c).hits[RQ_BLOCK_DATA], 1000);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void a_scan_does_not_push_out_what_is_used(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(400 * 1024, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    /* About 60 of the 95 blocks that fit are used repeatedly. */
    for (int round = 0; round < 4; round++)
        for (uint64_t i = 0; i < 60; i++)
            if (!has(f, i)) rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
    for (uint64_t i = 1000; i < 6000; i++) {
        if (!has(f, i)) rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
        if (i % 10 == 0) (void)has(f, (i / 10) % 60);
    }
    int kept = 0;
    for (uint64_t i = 0; i < 60; i++)
        kept += has(f, i);
    assert_true(kept >= 55);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void index_blocks_outlive_data_blocks_of_the_same_use(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(400 * 1024, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    for (uint64_t i = 0; i < 40; i++)
        rq__hfile_block_unref(put(c, f, i, i % 2 ? RQ_BLOCK_LEAF_INDEX : RQ_BLOCK_DATA));
    for (uint64_t i = 1000; i < 1120; i++)
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
    int index = 0;
    int data = 0;
    for (uint64_t i = 0; i < 40; i++)
        *(i % 2 ? &index : &data) += has(f, i);
    assert_int_equal(index, 20);
    assert_true(data < 5);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void a_held_block_stays_whole_and_is_counted_as_pinned(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(50 * 1024, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    rq_hfile_block *held = put(c, f, 7, RQ_BLOCK_DATA);
    for (uint64_t i = 100; i < 200; i++)
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
    assert_false(has(f, 7));
    assert_int_equal(stats_of(c).pinned_bytes, held->node.charge);
    /* A pinned block that grows is counted as pinned, too. */
    rq__cache_grow(held, 100);
    assert_int_equal(stats_of(c).pinned_bytes, held->node.charge);
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        assert_int_equal(held->bytes[i], 7);
    rq__hfile_block_unref(held);
    assert_int_equal(stats_of(c).pinned_bytes, 0);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void the_second_of_two_loaders_gets_the_firsts_block(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(1 << 20, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    rq_hfile_block *a = put(c, f, 1, RQ_BLOCK_DATA);
    rq_hfile_block *b = put(c, f, 1, RQ_BLOCK_DATA);
    assert_ptr_equal(a, b);
    rq__hfile_block_unref(a);
    rq__hfile_block_unref(b);
    assert_int_equal(stats_of(c).blocks, 1);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void a_block_that_does_not_fit_stays_outside(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(1000, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    rq_hfile_block *b = put(c, f, 1, RQ_BLOCK_DATA);
    assert_false(has(f, 1));
    assert_int_equal(stats_of(c).blocks, 0);
    rq__hfile_block_unref(b);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void a_closed_file_takes_its_blocks_along_and_no_others(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(64 << 20, &c), RQ_OK);
    rq__cache_file *a = file(c, "a");
    rq__cache_file *b = file(c, "b");
    for (uint64_t i = 0; i < 500; i++) {
        rq__hfile_block_unref(put(c, a, i * 4096, RQ_BLOCK_DATA));
        rq__hfile_block_unref(put(c, b, i * 4096, RQ_BLOCK_DATA));
    }
    (void)rq__cache_file_ref(a); /* to call functions on it after it is closed */
    rq__cache_file_close(a, true);
    for (uint64_t i = 0; i < 500; i++) {
        assert_false(has(a, i * 4096));
        assert_true(has(b, i * 4096));
    }
    assert_int_equal(stats_of(c).evicted_by_file, 500);
    rq__cache_file_unref(a);
    rq__cache_file_close(b, true);
    assert_int_equal(stats_of(c).used_bytes, 0);
    rq_block_cache_free(c);
}

static void data_never_pushes_out_index_and_in_memory_blocks_within_their_shares(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(400 * 1024, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    /* A block is charged more than 4000 bytes: about 90 fit. */
    for (uint64_t i = 0; i < 30; i++)
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_LEAF_INDEX));
    for (uint64_t i = 100; i < 115; i++)
        rq__hfile_block_unref(put_ranked(c, f, i, RQ_BLOCK_DATA, RQ__RANK_MEMORY));
    for (uint64_t i = 1000; i < 3000; i++) {
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
        (void)has(f, i);
        (void)has(f, i);
    }
    for (uint64_t i = 0; i < 30; i++)
        assert_true(has(f, i));
    for (uint64_t i = 100; i < 115; i++)
        assert_true(has(f, i));
    /* Above half of the capacity index blocks evict each other, and leave data blocks their
     * share. */
    for (uint64_t i = 5000; i < 6000; i++)
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_LEAF_INDEX));
    rq_block_cache_stats s = stats_of(c);
    assert_true(s.meta_bytes <= 201 * 1024 + 2 * 4096);
    assert_true(s.memory_bytes > 0);
    for (uint64_t i = 7000; i < 8000; i++)
        rq__hfile_block_unref(put_ranked(c, f, i, RQ_BLOCK_DATA, RQ__RANK_MEMORY));
    s = stats_of(c);
    assert_true(s.memory_bytes <= 101 * 1024 + 2 * 4096 && s.meta_bytes > 150 * 1024);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

static void kept_blocks_are_found_when_the_file_is_reopened(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(1 << 20, &c), RQ_OK);
    rq__cache_file *f = file(c, "data/f");
    rq__hfile_block_unref(put(c, f, 1, RQ_BLOCK_DATA));
    rq__hfile_block_unref(put(c, f, 2, RQ_BLOCK_LEAF_INDEX));
    rq__cache_file *other;
    /* The same name, but another file. */
    assert_int_equal(rq__cache_file_open(c, "data/f", 1000, 8, NULL, &other), RQ_OK);
    assert_false(has(other, 1));
    rq__cache_file_close(other, false);
    rq__cache_file_close(f, false);
    assert_int_equal(stats_of(c).blocks, 2);
    /* index blocks of files that are not open are not protected */
    assert_int_equal(stats_of(c).meta_bytes, 0);
    f = file(c, "archive/f");
    assert_true(has(f, 1));
    assert_true(has(f, 2));
    rq__cache_file *second = file(c, "data/f");
    rq__cache_file_close(f, true);
    assert_true(has(second, 1)); /* the file is still open a second time */
    atomic_store(&second->obsolete, true);
    rq__cache_file_close(second, false);
    assert_int_equal(stats_of(c).blocks, 0);
    /* Blocks may outlive everything except the cache. */
    f = file(c, "g");
    rq__hfile_block_unref(put(c, f, 1, RQ_BLOCK_DATA));
    rq__cache_file_close(f, false);
    rq_block_cache_free(c);
}

static void add_up(void *ctx, const rq_cache_family_stats *s)
{
    rq_cache_family_stats *sum = ctx;
    if (!rq_slice_eq(s->family, RQ_SLICE_LIT("f"))) return;
    assert_true(rq_slice_eq(s->table, RQ_SLICE_LIT("t")));
    *sum = *s;
}

static void a_familys_counters_are_its_own(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(100 * 1024, &c), RQ_OK);
    rq_cache_family *f, *again, *g;
    assert_int_equal(rq_cache_family_get(c, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("f"), &f), RQ_OK);
    assert_int_equal(rq_cache_family_get(c, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("f"), &again), RQ_OK);
    assert_int_equal(rq_cache_family_get(c, RQ_SLICE_LIT("tf"), RQ_SLICE_LIT(""), &g), RQ_OK);
    assert_ptr_equal(f, again);
    assert_ptr_not_equal(f, g);
    rq_cache_family_unref(again);
    rq__cache_file *of_f, *of_g;
    assert_int_equal(rq__cache_file_open(c, "1", 1, 1, f, &of_f), RQ_OK);
    assert_int_equal(rq__cache_file_open(c, "2", 1, 1, g, &of_g), RQ_OK);
    rq_cache_family_unref(f);
    rq_cache_family_unref(g);
    for (uint64_t i = 0; i < 100; i++) {
        assert_false(has(of_f, i));
        rq__hfile_block_unref(put(c, of_f, i, RQ_BLOCK_DATA));
        assert_true(has(of_f, i));
    }
    rq__hfile_block_unref(put(c, of_g, 1, RQ_BLOCK_DATA));
    rq_cache_family_stats s = {0};
    rq_block_cache_each_family(c, add_up, &s);
    assert_int_equal(s.data_hits, 100);
    assert_int_equal(s.data_misses, 100);
    assert_int_equal(s.meta_hits, 0);
    assert_int_equal(s.blocks + s.evicted, 100);
    assert_int_equal(s.blocks + 1, stats_of(c).blocks);
    assert_true(s.bytes > 0 && s.bytes < stats_of(c).used_bytes);
    rq__cache_file_close(of_f, true);
    rq__cache_file_close(of_g, true);
    rq_block_cache_free(c);
}

static void shrinking_evicts_at_once(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(64 << 20, &c), RQ_OK);
    rq__cache_file *f = file(c, "f");
    for (uint64_t i = 0; i < 2000; i++)
        rq__hfile_block_unref(put(c, f, i, RQ_BLOCK_DATA));
    rq_block_cache_resize(c, 1 << 20);
    assert_true(stats_of(c).used_bytes <= 1 << 20);
    rq__cache_file_close(f, true);
    rq_block_cache_free(c);
}

typedef struct worker {
    rq_block_cache *cache;
    rq__cache_file **files;
    uint64_t seed;
    bool broken;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    rq_random random;
    rq_random_seed(&random, w->seed);
    for (int i = 0; i < 20000; i++) {
        rq__cache_file *f = w->files[rq_random_below(&random, 3)];
        uint64_t offset = rq_random_below(&random, 300);
        rq_hfile_block *b = rq__cache_get(f, offset, RQ_BLOCK_DATA);
        if (b == NULL) b = put(w->cache, f, offset, RQ_BLOCK_DATA);
        if (b->bytes[0] != (offset & 0xff) || b->bytes[BLOCK_BYTES - 1] != (offset & 0xff))
            w->broken = true;
        if (rq_random_below(&random, 50) == 0) rq__cache_grow(b, 16);
        rq__hfile_block_unref(b);
        if (w->seed == 0 && i % 5000 == 0)
            rq_block_cache_resize(w->cache, 200000 + (uint64_t)i * 40);
    }
    return NULL;
}

static void threads_agree(void **state)
{
    (void)state;
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(1 << 20, &c), RQ_OK);
    rq__cache_file *files[] = {file(c, "a"), file(c, "b"), file(c, "c")};
    pthread_t threads[4];
    worker workers[4];
    for (unsigned i = 0; i < 4; i++) {
        workers[i] = (worker){c, files, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(workers[i].broken);
    }
    assert_true(stats_of(c).used_bytes <= stats_of(c).capacity_bytes);
    assert_int_equal(stats_of(c).pinned_bytes, 0);
    for (int i = 0; i < 3; i++)
        rq__cache_file_close(files[i], true);
    assert_int_equal(stats_of(c).used_bytes, 0);
    assert_int_equal(stats_of(c).blocks, 0);
    rq_block_cache_free(c);
}

/* CPU seconds to open and close this many families. */
static double cost_of_families(rq_block_cache *c, rq_cache_family **list, unsigned count)
{
    char name[16];
    uint64_t before = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(rq_cache_family_get(c, rq_slice_cstr(name), RQ_SLICE_LIT("f"), &list[i]),
                         RQ_OK);
    }
    for (unsigned i = 0; i < count; i++)
        rq_cache_family_unref(list[i]);
    return (double)(rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
}

/* A start opens all families under the lock that every opening and closing of a file takes. */
static void many_families_cost_no_more(void **state)
{
    (void)state;
    enum { FEW = 1000, MANY = 32 * FEW };
    static rq_cache_family *list[MANY];
    rq_block_cache *c;
    assert_int_equal(rq_block_cache_new(1 << 20, &c), RQ_OK);
    double few = cost_of_families(c, list, FEW), many = cost_of_families(c, list, MANY);
    assert_true(many < 600 * few + 0.5); /* includes page faults of the new memory */
    rq_block_cache_free(c);
}

static size_t longest_chain(const rq__cache_index *x)
{
    size_t longest = 0, count = 0;
    for (size_t i = 0; i < x->used; i++) {
        size_t n = 0;
        for (const rq__cache_link *l = x->buckets[i]; l != NULL; l = l->next)
            n++;
        longest = n > longest ? n : longest;
        count += n;
    }
    assert_int_equal(count, x->count);
    return longest;
}

/* Evicting the last block of a closed file searches a hash chain for the file's entry on the event
 * loop. */
static void chains_of_many_files_are_short(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    static rq__cache_file *list[COUNT];
    rq_block_cache *c;
    char name[16];
    assert_int_equal(rq_block_cache_new(1 << 20, &c), RQ_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "%u", i);
        list[i] = file(c, name);
        if (i % 997 == 0) assert_in_range(longest_chain(&c->files), 1, 16);
    }
    assert_in_range(longest_chain(&c->files), 1, 16);
    for (unsigned i = 0; i < COUNT; i++) { /* each file is found */
        snprintf(name, sizeof name, "%u", i);
        assert_ptr_equal(file(c, name), list[i]);
        rq__cache_file_close(list[i], false);
    }
    for (unsigned i = 0; i < COUNT; i += 2)
        rq__cache_file_close(list[i], true);
    assert_int_equal(c->files.count, COUNT / 2);
    for (unsigned i = 1; i < COUNT; i += 2)
        rq__cache_file_close(list[i], true);
    assert_int_equal(c->files.count, 0);
    rq_block_cache_free(c);
}

/* 100,000 tables with 10 families each are 10^6 families, most of them without a file. */
static void a_family_without_files_is_small_and_charged(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static rq_cache_family *list[COUNT];
    rq_block_cache *c;
    char name[16];
    rq__cache_file *f;
    assert_int_equal(rq_block_cache_new(1 << 30, &c), RQ_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t%u", i);
        assert_int_equal(rq_cache_family_get(c, rq_slice_cstr(name), RQ_SLICE_LIT("f"), &list[i]),
                         RQ_OK);
    }
    uint64_t bytes = stats_of(c).family_bytes;
    assert_true(bytes > 0 && bytes < 128 * COUNT);
    assert_int_equal(rq__cache_file_open(c, "1", 1, 1, list[0], &f), RQ_OK);
    assert_true(stats_of(c).family_bytes > bytes);
    rq_cache_family_unref(list[0]);
    rq__hfile_block_unref(put(c, f, 1, RQ_BLOCK_DATA));
    rq__cache_file_close(f, true);
    for (unsigned i = 1; i < COUNT; i++)
        rq_cache_family_unref(list[i]);
    assert_int_equal(stats_of(c).family_bytes, 0);
    rq_block_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_without_files_is_small_and_charged),
        cmocka_unit_test(many_families_cost_no_more),
        cmocka_unit_test(chains_of_many_files_are_short),
        cmocka_unit_test(a_block_is_found_until_it_is_evicted),
        cmocka_unit_test(a_scan_does_not_push_out_what_is_used),
        cmocka_unit_test(index_blocks_outlive_data_blocks_of_the_same_use),
        cmocka_unit_test(a_held_block_stays_whole_and_is_counted_as_pinned),
        cmocka_unit_test(the_second_of_two_loaders_gets_the_firsts_block),
        cmocka_unit_test(a_block_that_does_not_fit_stays_outside),
        cmocka_unit_test(a_closed_file_takes_its_blocks_along_and_no_others),
        cmocka_unit_test(data_never_pushes_out_index_and_in_memory_blocks_within_their_shares),
        cmocka_unit_test(kept_blocks_are_found_when_the_file_is_reopened),
        cmocka_unit_test(a_familys_counters_are_its_own),
        cmocka_unit_test(shrinking_evicts_at_once),
        cmocka_unit_test(threads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
