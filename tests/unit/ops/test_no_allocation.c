/* SPDX-License-Identifier: Apache-2.0 */
/* An op that completes at once allocates nothing (ops/op.h). */
#include "ops_world.h"

#include "../base/failing_memory.h"

static bool refuses;
static unsigned refused;

bool allocation_fails(void)
{
    refused += refuses;
    return refuses;
}

/* The first gets allocate the arena's chunk and the memory of the result. */
static void a_get_from_memory_allocates_nothing(void **state)
{
    (void)state;
    ops_world *o = ops_world_new(NULL);
    rq_ops_seat *seats[] = {o->loop, o->own};
    rq_cellblock out = {0};
    for (unsigned i = 0; i < 4; i++) {
        rq_op_get g;
        refuses = i >= 2;
        ops_get(o, &g, seats[i % 2], "r3", &out);
        refuses = false;
        assert_int_equal(o->done, i + 1);
        assert_int_equal(g.read.op.rc, RQ_OK);
        assert_true(rq_slice_eq(ops_value(&out), rq_slice_cstr("r3")));
    }
    assert_int_equal(refused, 0);
    rq_cellblock_clear(&out);
    ops_world_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_from_memory_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
