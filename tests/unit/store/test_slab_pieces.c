/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of slabs: taken and returned in any order. No two overlap, each is aligned, and in the end
 * all slabs are whole again. */
#include "base/random.h"
#include "store/segment.h"
#include "store/slab_pieces.h"

#include "../../seeds.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ORDERS 7

typedef struct fixture {
    rq_executor *executor;
    rq_slab_pool *pool;
    rq_slab_pieces *pieces;
} fixture;

static void set_up(fixture *f)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1};
    assert_int_equal(rq_thread_executor_new(threads, &f->executor), RQ_OK);
    assert_int_equal(rq_slab_pool_new(f->executor, 100, &f->pool), RQ_OK);
    f->pieces = rq__slab_pool_pieces(f->pool);
}

/* The pool asserts that all slabs were returned. */
static void tear_down(fixture *f)
{
    rq_slab_pool_free(f->pool);
    rq_thread_executor_free(f->executor);
}

static void only_powers_of_two_below_a_slab_are_pieces(void **state)
{
    (void)state;
    size_t found = 0;
    for (size_t size = 4096; size <= 2 * RQ_SLAB_BYTES; size += 4096)
        found += rq__slab_is_piece(size);
    assert_int_equal(found, ORDERS);
    assert_true(rq__slab_is_piece(RQ_PIECE_MIN));
    assert_true(rq__slab_is_piece(RQ_SLAB_BYTES / 2));
    assert_false(rq__slab_is_piece(RQ_SLAB_BYTES));
}

static void halves_that_came_back_are_one_piece_again(void **state)
{
    (void)state;
    fixture f;
    set_up(&f);
    void *all[RQ_SLAB_BYTES / RQ_PIECE_MIN];
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++)
        all[i] = rq__slab_piece_take(f.pieces, RQ_PIECE_MIN);
    uintptr_t slab = (uintptr_t)all[0] / RQ_SLAB_BYTES;
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        if (!RQ_ASAN) assert_int_equal((uintptr_t)all[i] / RQ_SLAB_BYTES, slab);
        rq__slab_piece_give(f.pieces, all[i * 37 % RQ_ARRAY_LEN(all)], RQ_PIECE_MIN);
    }
    tear_down(&f);
}

typedef struct piece {
    uint8_t *at;
    size_t size;
    uint64_t mark;
} piece;

/* Marks all of a small piece and the ends of a large one. */
static void fill(const piece *p)
{
    for (size_t i = 0; i < p->size; i += 1024)
        memcpy(p->at + i, &p->mark, sizeof p->mark);
    memcpy(p->at + p->size - sizeof p->mark, &p->mark, sizeof p->mark);
}

static void expect_filled(const piece *p)
{
    for (size_t i = 0; i < p->size; i += 1024)
        assert_memory_equal(p->at + i, &p->mark, sizeof p->mark);
    assert_memory_equal(p->at + p->size - sizeof p->mark, &p->mark, sizeof p->mark);
}

static void pieces_never_overlap(void **state)
{
    (void)state;
    enum { PIECES = 400, STEPS = 6000 };
    seeds_range range = seeds_wanted(3);
    for (uint64_t seed = range.first; seed <= range.last; seed++) {
        printf("seed %llu\n", (unsigned long long)seed);
        fixture f;
        set_up(&f);
        rq_random random;
        rq_random_seed(&random, seed);
        static piece pieces[PIECES];
        memset(pieces, 0, sizeof pieces);
        for (uint64_t step = 1; step <= STEPS; step++) {
            piece *p = &pieces[rq_random_below(&random, PIECES)];
            if (p->at != NULL) {
                expect_filled(p);
                rq__slab_piece_give(f.pieces, p->at, p->size);
                p->at = NULL;
                continue;
            }
            p->size = RQ_PIECE_MIN
                      << rq_random_below(&random, rq_random_below(&random, ORDERS) + 1);
            p->at = rq__slab_piece_take(f.pieces, p->size);
            p->mark = seed << 32 | step;
            assert_non_null(p->at);
            if (!RQ_ASAN) assert_int_equal((uintptr_t)p->at % p->size, 0);
            fill(p);
        }
        for (size_t i = 0; i < PIECES; i++) {
            if (pieces[i].at == NULL) continue;
            expect_filled(&pieces[i]);
            rq__slab_piece_give(f.pieces, pieces[i].at, pieces[i].size);
        }
        tear_down(&f);
    }
}

typedef struct taker {
    rq_slab_pieces *pieces;
    pthread_barrier_t *together;
} taker;

static void *take_and_give(void *arg)
{
    const taker *t = arg;
    pthread_barrier_wait(t->together); /* no thread finds free memory */
    void *taken = rq__slab_piece_take(t->pieces, RQ_PIECE_MIN);
    pthread_barrier_wait(t->together);
    if (taken != NULL) rq__slab_piece_give(t->pieces, taken, RQ_PIECE_MIN);
    return taken;
}

static void slabs_cut_by_several_at_once_all_come_back(void **state)
{
    (void)state;
    enum { THREADS = 4, ROUNDS = 500 };
    for (int round = 0; round < ROUNDS; round++) {
        fixture f;
        set_up(&f);
        pthread_barrier_t together;
        pthread_t threads[THREADS];
        pthread_barrier_init(&together, NULL, THREADS);
        taker t = {f.pieces, &together};
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &t), 0);
        for (int i = 0; i < THREADS; i++) {
            void *taken;
            assert_int_equal(pthread_join(threads[i], &taken), 0);
            assert_non_null(taken);
        }
        pthread_barrier_destroy(&together);
        tear_down(&f);
    }
}

/* Segments of a pool with all sizes, from one cell to more than a slab. */
static void segments_of_all_sizes_give_everything_back(void **state)
{
    (void)state;
    enum { SEGMENTS = 24 };
    fixture f;
    set_up(&f);
    rq_segment *segments[SEGMENTS];
    for (unsigned i = 0; i < SEGMENTS; i++)
        assert_int_equal(rq__segment_new_in(f.pool, RQ_ORDER_DEFAULT, &segments[i]), RQ_OK);
    static const uint8_t value[1000];
    for (unsigned n = 0; n < 6000; n++) {
        for (unsigned i = 0; i < SEGMENTS; i++) {
            if (n >> (i / 2) != 0) continue; /* segment i gets about 2^(i/2) cells */
            char row[16];
            snprintf(row, sizeof row, "%08u", n * 7919 % 6007);
            rq_cell c = {.row = (const uint8_t *)row,
                         .row_len = 8,
                         .family = (const uint8_t *)"f",
                         .family_len = 1,
                         .value = value,
                         .value_len = sizeof value,
                         .timestamp = n,
                         .seqid = n + 1,
                         .type = RQ_TYPE_PUT};
            assert_int_equal(rq_segment_add(segments[i], &c), RQ_OK);
        }
    }
    for (unsigned i = 0; i < SEGMENTS; i++) {
        rq_segment_cursor c;
        size_t cells = 0;
        for (rq_segment_first(&c, segments[i]); rq__segment_cursor_valid(&c);
             rq__segment_cursor_next(&c))
            cells++;
        assert_int_equal(cells, rq_segment_cell_count(segments[i]));
        assert_true(cells > 0);
    }
    for (unsigned i = 0; i < SEGMENTS; i++)
        rq_segment_unref(segments[i * 5 % SEGMENTS]);
    assert_int_equal(rq_slab_pool_bytes(f.pool), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_powers_of_two_below_a_slab_are_pieces),
        cmocka_unit_test(halves_that_came_back_are_one_piece_again),
        cmocka_unit_test(pieces_never_overlap),
        cmocka_unit_test(slabs_cut_by_several_at_once_all_come_back),
        cmocka_unit_test(segments_of_all_sizes_give_everything_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
