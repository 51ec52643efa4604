/* SPDX-License-Identifier: Apache-2.0 */
/* Fences compared with counting one by one. */
#include "base/random.h"
#include "store/fences.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_search_counts_the_smaller_ranks(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, 7);
    for (size_t capacity = 0; capacity < 5000; capacity += 1 + capacity / 3) {
        uint64_t *ranks = calloc(capacity + 1, sizeof *ranks);
        uint64_t nodes[1];
        rq_fences *f = rq__fences_new(capacity, NULL);
        assert_non_null(f);
        size_t filled = rq_random_below(&random, capacity + 1);
        uint64_t rank = 0;
        for (size_t i = 0; i < filled; i++) {
            rank += rq_random_below(&random, 3); /* equal ones among them */
            ranks[i] = rank;
            assert_true(rq__fences_append(f, rank, nodes, 0));
        }
        assert_int_equal(rq__fences_count(f), filled);
        for (uint64_t wanted = 0; wanted <= rank + 2; wanted++) {
            size_t smaller = 0;
            while (smaller < filled && ranks[smaller] < wanted)
                smaller++;
            assert_int_equal(rq__fences_before(f, wanted), smaller);
        }
        assert_int_equal(rq__fences_before(f, UINT64_MAX), filled);
        rq__fences_free(f);
        free(ranks);
    }
}

static void full_fences_take_no_more(void **state)
{
    (void)state;
    uint64_t node;
    rq_fences *f = rq__fences_new(3, NULL);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(rq__fences_append(f, i, &node, 0));
    assert_false(rq__fences_append(f, 3, &node, 0));
    assert_int_equal(rq__fences_count(f), 3);
    rq__fences_free(f);
}

static void a_forgotten_node_keeps_its_place(void **state)
{
    (void)state;
    uint64_t nodes[2];
    rq_fences *older = rq__fences_new(1, NULL);
    rq_fences *f = rq__fences_new(2, older); /* freeing f also frees `older` */
    assert_true(rq__fences_append(f, 5, &nodes[0], 2));
    assert_true(rq__fences_append(f, 5, &nodes[1], 7));
    rq__fences_forget(f, 0);
    assert_false(rq__fences_holds(f, 0));
    assert_true(rq__fences_holds(f, 1));
    assert_ptr_equal(rq__fences_node(f, 0), &nodes[0]);
    assert_int_equal(rq__fences_rank(f, 0), 5);
    assert_ptr_equal(rq__fences_node(f, 1), &nodes[1]);
    assert_int_equal(rq__fences_above(f, 0), 2);
    assert_int_equal(rq__fences_above(f, 1), RQ_FENCE_ABOVE_MAX);
    rq__fences_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_counts_the_smaller_ranks),
        cmocka_unit_test(full_fences_take_no_more),
        cmocka_unit_test(a_forgotten_node_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
