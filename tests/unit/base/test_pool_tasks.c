/* SPDX-License-Identifier: Apache-2.0 */
/* Users of pools: shares of a pool, and memory freed by a pool's task. The executor here only records submitted
 * tasks. */
#include "unit.h"

#include "base/long_free.h"
#include "base/pool_share.h"

#include <stdlib.h>

enum { TASKS = 20, MAX = 3 };

typedef struct keeper {
    rq_executor base;
    rq_task *tasks[TASKS];
    size_t count;
} keeper;

static void keep(rq_executor *ex, rq_pool pool, rq_task *task)
{
    keeper *k = (keeper *)ex;
    (void)pool;
    assert_true(k->count < TASKS);
    k->tasks[k->count++] = task;
}

/* --- shares ----------------------------------------------------------------------------------- */

static void a_share_lets_few_tasks_run_in_their_order(void **state)
{
    (void)state;
    keeper k = {.base.submit = keep};
    rq_pool_share s;
    rq_task tasks[TASKS];
    rq_pool_share_init(&s, &k.base, RQ_POOL_CALL, MAX);
    for (size_t i = 0; i < TASKS; i++)
        rq_pool_share_submit(&s, &tasks[i]);
    assert_int_equal(k.count, MAX);
    for (size_t ended = 0; ended < TASKS; ended++) {
        assert_int_equal(k.count, ended + MAX < TASKS ? ended + MAX : TASKS);
        rq_pool_share_end(&s);
    }
    for (size_t i = 0; i < TASKS; i++)
        assert_ptr_equal(k.tasks[i], &tasks[i]);
    k.count = 0;
    rq_pool_share_submit(&s, &tasks[0]); /* no task of the share runs now */
    assert_int_equal(k.count, 1);
    rq_pool_share_end(&s);
    rq_pool_share_destroy(&s);
}

static void a_task_gives_way_to_those_that_wait(void **state)
{
    (void)state;
    keeper k = {.base.submit = keep};
    rq_pool_share s;
    rq_task tasks[3];
    rq_pool_share_init(&s, &k.base, RQ_POOL_CALL, 1);
    rq_pool_share_submit(&s, &tasks[0]);
    assert_false(rq_pool_share_give_way(&s, &tasks[0]));
    rq_pool_share_submit(&s, &tasks[1]);
    rq_pool_share_submit(&s, &tasks[2]);
    assert_true(rq_pool_share_give_way(&s, &tasks[0]));
    rq_pool_share_end(&s); /* ends tasks[1], submits tasks[2] */
    assert_true(rq_pool_share_give_way(&s, &tasks[2]));
    rq_pool_share_end(&s); /* ends tasks[0], submits tasks[2] */
    rq_pool_share_end(&s); /* ends tasks[2]; none is left */
    static const size_t order[] = {0, 1, 2, 0, 2};
    assert_int_equal(k.count, RQ_ARRAY_LEN(order));
    for (size_t i = 0; i < RQ_ARRAY_LEN(order); i++)
        assert_ptr_equal(k.tasks[i], &tasks[order[i]]);
    rq_pool_share_destroy(&s);
}

/* --- freeing ---------------------------------------------------------------------------------- */

static void run_all(keeper *k)
{
    for (size_t i = 0; i < k->count; i++)
        k->tasks[i]->run(k->tasks[i]);
    k->count = 0;
}

static void check_buf(rq_executor *ex, size_t bytes, const keeper *k, size_t tasks)
{
    rq_buf b = {0};
    assert_int_equal(rq_buf_reserve(&b, bytes), RQ_OK);
    rq_long_clear_buf(ex, &b);
    assert_null(b.ptr);
    assert_int_equal(b.cap, 0);
    assert_int_equal(k->count, tasks);
}

static void large_buffers_are_freed_by_a_pool(void **state)
{
    (void)state;
    keeper k = {.base.submit = keep};
    check_buf(&k.base, 64 * 1024, &k, 0);
    check_buf(NULL, 8 << 20, &k, 0);
    check_buf(&k.base, 8 << 20, &k, 1);
    run_all(&k);
}

static void count_release(void *thing)
{
    ++*(int *)thing;
}

static bool no_more(void *ctx, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    return false;
}

/* The arena's linked resources are released at once, and its meter is not called. */
static void large_arenas_are_freed_by_a_pool(void **state)
{
    (void)state;
    keeper k = {.base.submit = keep};
    for (size_t tasks = 0; tasks < 2; tasks++) {
        int released = 0;
        rq_arena a = {0};
        assert_int_equal(rq_arena_link(&a, count_release, &released), RQ_OK);
        for (int i = 0; i < (tasks == 0 ? 1 : 8); i++)
            assert_non_null(rq_arena_alloc(&a, 1 << 20));
        rq_arena_meter(&a, no_more, NULL);
        rq_long_clear_arena(&k.base, &a);
        assert_int_equal(released, 1);
        assert_int_equal(k.count, tasks);
        assert_int_equal(a.total_bytes, 0);
        assert_true(a.may_grow == no_more);
    }
    run_all(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_lets_few_tasks_run_in_their_order),
        cmocka_unit_test(a_task_gives_way_to_those_that_wait),
        cmocka_unit_test(large_buffers_are_freed_by_a_pool),
        cmocka_unit_test(large_arenas_are_freed_by_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
