/* SPDX-License-Identifier: Apache-2.0 */
/* The memstore's skip list with concurrent readers while it grows. */
#include "base/random.h"
#include "store/segment_list.h"

#include "numbered.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define GROWN 40000

typedef struct shared {
    rq_segment *segment;
    _Atomic unsigned published; /* the first `published` rows in insertion order are visible */
    _Atomic bool stop;
} shared;

/* A permutation of 0 … GROWN - 1 (GROWN and 7919 have no common divisor). */
static unsigned nth_row(unsigned n)
{
    return (unsigned)((uint64_t)n * 7919 % GROWN);
}

static void *reader(void *arg)
{
    shared *s = arg;
    uintptr_t faults = 0;
    rq_random random;
    rq_random_seed(&random, (uintptr_t)pthread_self());
    while (!atomic_load(&s->stop)) {
        unsigned count = atomic_load_explicit(&s->published, memory_order_acquire);
        if (count == 0) continue;
        unsigned n = nth_row((unsigned)rq_random_below(&random, count));
        char row[16];
        rq_cell key = numbered(row, n, UINT64_MAX);
        rq_cell got;
        rq_segment_cursor c;
        rq__segment_seek(&c, s->segment, &key);
        faults += !rq__segment_cursor_valid(&c);
        if (!rq__segment_cursor_valid(&c)) continue;
        rq__segment_cursor_cell(&c, &got);
        faults += !rq_cell_same_row(&got, &key);
        /* A walk sees ascending rows whatever is inserted meanwhile, also if it is long enough for
         * scouts. */
        int walk = rq_random_below(&random, 16) == 0 ? 400 : 20;
        for (int steps = 0; steps < walk; steps++) {
            rq_cell next;
            rq__segment_cursor_next(&c);
            if (!rq__segment_cursor_valid(&c)) break;
            rq__segment_cursor_cell(&c, &next);
            faults += rq_cell_compare(RQ_ORDER_DEFAULT, &got, &next) >= 0;
            got = next;
        }
    }
    return (void *)faults;
}

static void readers_see_whole_cells_in_order_while_the_writer_adds(void **state)
{
    (void)state;
    shared s = {0};
    pthread_t threads[2];
    assert_int_equal(rq_segment_new(RQ_ORDER_DEFAULT, &s.segment), RQ_OK);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reader, &s);
    for (unsigned n = 0; n < GROWN; n++) {
        char row[16];
        rq_cell c = numbered(row, nth_row(n), 1 + n % 3);
        assert_int_equal(rq_segment_add(s.segment, &c), RQ_OK);
        /* replaces the cell */
        if (n % 5 == 0) assert_int_equal(rq_segment_add(s.segment, &c), RQ_OK);
        atomic_store_explicit(&s.published, n + 1, memory_order_release);
    }
    atomic_store(&s.stop, true);
    for (int i = 0; i < 2; i++) {
        void *faults;
        pthread_join(threads[i], &faults);
        assert_int_equal((uintptr_t)faults, 0);
    }
    assert_int_equal(rq_segment_cell_count(s.segment), GROWN);
    rq_segment_unref(s.segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_cells_in_order_while_the_writer_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
