/* SPDX-License-Identifier: Apache-2.0 */
/* Reclamation by epoch (base/epoch.h): no object is freed while a reader may use it. */
#include "unit.h"

#include "base/epoch.h"

#include <pthread.h>

typedef struct thing {
    rq_epoch_node node;
    _Atomic int *freed;
    _Atomic int value;
} thing;

static void free_thing(rq_epoch_node *node)
{
    thing *t = RQ_CONTAINER_OF(node, thing, node);
    atomic_store(&t->value, -1);
    atomic_fetch_add(t->freed, 1);
    free(t);
}

static thing *new_thing(_Atomic int *freed)
{
    thing *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->freed = freed;
    atomic_init(&t->value, 7);
    return t;
}

static void nothing_is_freed_while_a_member_may_see_it(void **state)
{
    (void)state;
    _Atomic int freed = 0;
    rq_epoch *e;
    rq_epoch_member a, b;
    assert_int_equal(rq_epoch_new(&e), RQ_OK);
    rq_epoch_join(e, &a);
    rq_epoch_join(e, &b);
    rq_epoch_enter(e, &a);
    rq_epoch_retire(e, &new_thing(&freed)->node, free_thing);
    rq_epoch_enter(e, &b); /* this member entered later: it cannot see the object */
    rq_epoch_collect(e);
    assert_int_equal(freed, 0);
    rq_epoch_exit(e, &a);
    rq_epoch_collect(e);
    assert_int_equal(freed, 1);
    rq_epoch_exit(e, &b);
    rq_epoch_leave(e, &a);
    rq_epoch_leave(e, &b);
    rq_epoch_retire(e, &new_thing(&freed)->node, free_thing);
    rq_epoch_free(e);
    assert_int_equal(freed, 2);
}

typedef struct race {
    rq_epoch *epoch;
    _Atomic(thing *) current;
    _Atomic int freed;
    _Atomic int seen_freed;
    _Atomic bool stop;
} race;

static void *read_loop(void *arg)
{
    race *r = arg;
    rq_epoch_member m;
    rq_epoch_join(r->epoch, &m);
    while (!atomic_load(&r->stop)) {
        rq_epoch_enter(r->epoch, &m);
        thing *t = atomic_load(&r->current);
        if (atomic_load(&t->value) != 7) atomic_fetch_add(&r->seen_freed, 1);
        rq_epoch_exit(r->epoch, &m);
        rq_epoch_collect(r->epoch);
    }
    rq_epoch_leave(r->epoch, &m);
    return NULL;
}

static void readers_never_see_a_freed_thing(void **state)
{
    (void)state;
    enum { REPLACED = 20000 };
    race r = {0};
    pthread_t readers[3];
    assert_int_equal(rq_epoch_new(&r.epoch), RQ_OK);
    atomic_init(&r.current, new_thing(&r.freed));
    for (int i = 0; i < 3; i++)
        pthread_create(&readers[i], NULL, read_loop, &r);
    for (int i = 0; i < REPLACED; i++) {
        thing *old = atomic_exchange(&r.current, new_thing(&r.freed));
        rq_epoch_retire(r.epoch, &old->node, free_thing);
        rq_epoch_member pin;
        rq_epoch_pin(r.epoch, &pin);
        assert_int_equal(atomic_load(&atomic_load(&r.current)->value), 7);
        rq_epoch_unpin(r.epoch, &pin);
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    rq_epoch_retire(r.epoch, &atomic_load(&r.current)->node, free_thing);
    rq_epoch_free(r.epoch);
    assert_int_equal(r.seen_freed, 0);
    assert_int_equal(r.freed, REPLACED + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_freed_while_a_member_may_see_it),
        cmocka_unit_test(readers_never_see_a_freed_thing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
