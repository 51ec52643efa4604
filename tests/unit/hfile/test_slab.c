/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's memory: pieces never overlap, freed memory is used again, chunks are returned. */
#include "base/asan.h"
#include "base/clock.h"
#include "base/random.h"
#include "hfile/slab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PIECES 600

typedef struct piece {
    uint8_t *p;
    size_t size, charge;
    uint8_t mark;
} piece;

static void fill(piece *x, uint8_t mark)
{
    x->mark = mark;
    memset(x->p, mark, x->size);
}

static bool is_whole(const piece *x)
{
    for (size_t i = 0; i < x->size; i += 97)
        if (x->p[i] != x->mark) return false;
    return x->p[x->size - 1] == x->mark;
}

static void take_all(rq__slab *s, piece *pieces)
{
    for (int i = 0; i < PIECES; i++) {
        pieces[i].p = rq__slab_take(s, 65536, &pieces[i].charge);
        assert_non_null(pieces[i].p);
    }
}

static void give_all(rq__slab *s, piece *pieces)
{
    for (int i = 0; i < PIECES; i++)
        rq__slab_give(s, pieces[i].p, pieces[i].charge);
}

static void pieces_never_overlap_and_the_charge_covers_them(void **state)
{
    (void)state;
    rq__slab *s;
    rq_random random;
    piece pieces[PIECES] = {0};
    assert_int_equal(rq__slab_new(&s), RQ_OK);
    rq_random_seed(&random, 5);
    for (int i = 0; i < 20000; i++) {
        piece *x = &pieces[rq_random_below(&random, PIECES)];
        if (x->p != NULL) {
            assert_true(is_whole(x));
            rq__slab_give(s, x->p, x->charge);
            x->p = NULL;
            continue;
        }
        static const uint64_t tops[] = {100, 5000, 70000, 70000, 70000, 300000, 1500000};
        x->size = 1 + rq_random_below(&random, tops[rq_random_below(&random, 7)]);
        x->p = rq__slab_take(s, x->size, &x->charge);
        assert_non_null(x->p);
        assert_int_equal((uintptr_t)x->p % 16, 0);
        assert_true(x->charge >= x->size);
        fill(x, (uint8_t)i);
    }
    give_all(s, pieces);
    rq__slab_trim(s, 1);
    rq__slab_trim(s, 1);
    assert_int_equal(rq__slab_mapped(s), 0);
    rq__slab_free(s);
}

/* As with blocks of a file that a compaction replaced, followed by blocks of the new file. */
static void memory_given_up_is_kept_for_what_comes_next_and_goes_bit_by_bit(void **state)
{
    (void)state;
    rq__slab *s;
    piece pieces[PIECES] = {0};
    assert_int_equal(rq__slab_new(&s), RQ_OK);
    take_all(s, pieces);
    uint64_t full = rq__slab_mapped(s);
    give_all(s, pieces);
    rq__slab_trim(s, 2); /* all memory was in use since the last trim: nothing is returned */
    assert_int_equal(rq__slab_mapped(s), full);
    take_all(s, pieces);
    assert_int_equal(rq__slab_mapped(s), full);
    give_all(s, pieces);
    rq__slab_trim(s, 2);
    assert_int_equal(rq__slab_mapped(s), full);
    rq__slab_trim(s, 2);
    assert_true(rq__slab_mapped(s) <= full / 2); /* AddressSanitizer builds have no chunks */
    assert_true(rq__slab_mapped(s) + (2 << 20) >= full / 2);
    uint64_t before = full;
    while (rq__slab_mapped(s) > 0) {
        assert_true(rq__slab_mapped(s) < before);
        before = rq__slab_mapped(s);
        rq__slab_trim(s, 2);
    }
    rq__slab_free(s);
}

/* A full cache adds a block for every one it evicts: the free memory in between must stay small. */
static void steady_turnover_wastes_little(void **state)
{
    (void)state;
    rq__slab *s;
    rq_random random;
    piece pieces[PIECES] = {0};
    uint64_t charged = 0;
    uint64_t sizes = 0;
    assert_int_equal(rq__slab_new(&s), RQ_OK);
    rq_random_seed(&random, 6);
    for (int i = 0; i < 30000; i++) {
        piece *x = &pieces[i < PIECES ? (uint64_t)i : rq_random_below(&random, PIECES)];
        charged -= x->charge;
        sizes -= x->size;
        rq__slab_give(s, x->p, x->charge);
        x->size = 65536 + rq_random_below(&random, 2000);
        if (rq_random_below(&random, 10) == 0) x->size = 2048 + rq_random_below(&random, 130000);
        x->p = rq__slab_take(s, x->size, &x->charge);
        assert_non_null(x->p);
        charged += x->charge;
        sizes += x->size;
    }
    assert_true(charged < sizes + sizes / 16);
    assert_true(rq__slab_mapped(s) < charged + charged / 8 + (2 << 20));
    give_all(s, pieces);
    rq__slab_free(s);
}

/* --- chunks prepared in the background -------------------------------------------------------- */

#define CHUNK ((uint64_t)2 << 20)

typedef struct marker {
    rq_task task;
    rq_latch latch;
} marker;

static void pass(rq_task *task)
{
    marker *m = RQ_CONTAINER_OF(task, marker, task);
    m->latch.executor->latch_open(&m->latch, RQ_OK);
}

/* Waits until the tasks queued now have run: the pool has one thread. */
static void let_pool_run(rq_executor *ex)
{
    marker m = {.task.run = pass};
    ex->latch_init(ex, &m.latch);
    m.latch.executor = ex;
    ex->submit(ex, RQ_POOL_FLUSH, &m.task);
    assert_int_equal(ex->latch_wait(&m.latch), RQ_OK);
    ex->latch_destroy(&m.latch);
}

static void chunks_are_made_ready_while_the_cache_grows_and_no_more_than_it_holds(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1};
    const uint64_t most = 20 * CHUNK;
    rq__slab *s;
    rq_executor *ex;
    piece pieces[PIECES] = {0};
    assert_int_equal(rq_thread_executor_new(threads, &ex), RQ_OK);
    assert_int_equal(rq__slab_new(&s), RQ_OK);
    rq__slab_make_ready(s, ex, most);
    for (uint64_t i = 0; i < PIECES; i++) {
        pieces[i].p = rq__slab_take(s, CHUNK / 16, &pieces[i].charge);
        assert_non_null(pieces[i].p);
        let_pool_run(ex);
        uint64_t used = (i / 16 + 1) * CHUNK;
        uint64_t mapped = rq__slab_mapped(s);
        if (mapped == 0) continue; /* AddressSanitizer builds have no chunks */
        if (used < 4 * CHUNK) assert_int_equal(mapped, used);
        if (used >= 4 * CHUNK && used + 2 * CHUNK <= most) assert_true(mapped >= used + 2 * CHUNK);
        assert_true(mapped <= used + (used / 8 > 2 * CHUNK ? used / 8 : 2 * CHUNK));
        assert_true(mapped <= (used > most ? used : most));
    }
    give_all(s, pieces);
    rq__slab_trim(s, 1);
    rq__slab_trim(s, 1);
    assert_int_equal(rq__slab_mapped(s), 0);
    rq__slab_free(s);
    rq_thread_executor_free(ex);
}

/* The background task may be at any point when the slab is freed. */
static void a_slab_ends_while_chunks_are_made_ready(void **state)
{
    (void)state;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1};
    rq_executor *ex;
    assert_int_equal(rq_thread_executor_new(threads, &ex), RQ_OK);
    for (int round = 0; round < 50; round++) {
        rq__slab *s;
        piece pieces[PIECES] = {0};
        assert_int_equal(rq__slab_new(&s), RQ_OK);
        rq__slab_make_ready(s, ex, 100 * CHUNK);
        for (int i = 0; i < 64 + round * 4; i++)
            pieces[i].p = rq__slab_take(s, CHUNK / 16, &pieces[i].charge);
        give_all(s, pieces);
        rq__slab_free(s);
    }
    rq_thread_executor_free(ex);
}

/* CPU time, in ns, to give back a piece and take it again, in a slab of `chunks` full chunks. */
static uint64_t turnover_ns(size_t chunks)
{
    rq__slab *s;
    size_t last = 0, charge = 0, count = chunks * 2;
    uint64_t least = UINT64_MAX;
    uint8_t **pieces = calloc(count, sizeof *pieces);
    assert_non_null(pieces);
    assert_int_equal(rq__slab_new(&s), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        pieces[i] = rq__slab_take(s, CHUNK / 2, &charge);
        assert_non_null(pieces[i]);
        if (pieces[i] > pieces[last])
            last = i; /* the chunk that a search from the first one reaches last */
    }
    for (int round = 0; round < 30; round++) {
        uint64_t begun = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < 200; i++) {
            rq__slab_give(s, pieces[last], charge);
            pieces[last] = rq__slab_take(s, CHUNK / 2, &charge);
        }
        uint64_t took = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
        if (took < least) least = took;
    }
    for (size_t i = 0; i < count; i++)
        rq__slab_give(s, pieces[i], charge);
    free(pieces);
    rq__slab_free(s);
    return least / 200;
}

/* A full cache takes and gives pieces all the time, under a lock that all threads need. */
static void a_large_slab_is_not_searched_from_its_beginning(void **state)
{
    (void)state;
    if (RQ_ASAN) skip(); /* no chunks */
    uint64_t few = 0, many = 0;
    for (int i = 0; i < 10 && (i == 0 || many > 12 * few + 100); i++) { /* other programs disturb */
        few = turnover_ns(8);
        many = turnover_ns(8192);
    }
    if (many > 12 * few + 100)
        fail_msg("%llu ns with 8 chunks, %llu with 8192", (unsigned long long)few,
                 (unsigned long long)many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_never_overlap_and_the_charge_covers_them),
        cmocka_unit_test(memory_given_up_is_kept_for_what_comes_next_and_goes_bit_by_bit),
        cmocka_unit_test(steady_turnover_wastes_little),
        cmocka_unit_test(chunks_are_made_ready_while_the_cache_grows_and_no_more_than_it_holds),
        cmocka_unit_test(a_large_slab_is_not_searched_from_its_beginning),
        cmocka_unit_test(a_slab_ends_while_chunks_are_made_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
