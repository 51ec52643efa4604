/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners between their calls, under a clock that the test moves. */
#include "../base/unit.h"

#include "service/client_priv.h"
#include "vfs/sim.h"

#define LEASE_MS 1000
#define MS 1000000ull

typedef struct world {
    rq_sim *sim;
    rq_lane *lane;
    rq__leases *leases;
} world;

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL || rq_sim_new(7, NULL, &w->sim) != RQ_OK ||
        rq_sim_lane_new(w->sim, &w->lane) != RQ_OK ||
        rq__leases_new(rq_sim_env(w->sim), LEASE_MS, w->lane, &w->leases) != RQ_OK)
        return -1;
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    rq_executor *executor = rq_sim_env(w->sim)->executor;
    rq__leases_free(w->leases);
    executor->lane_free(executor, w->lane);
    rq_sim_free(w->sim);
    free(w);
    return 0;
}

/* A new scanner, given back; its id. */
static uint64_t open_one(world *w)
{
    rq__scan_holder *h;
    assert_int_equal(rq__lease_new(w->leases, &h), RQ_OK);
    uint64_t id = h->id;
    rq__lease_give_back(w->leases, h);
    return id;
}

static rq_err touch(world *w, uint64_t id)
{
    rq__scan_holder *h = NULL;
    uint64_t seq;
    rq_err rc = rq__lease_take(w->leases, id, &h, &seq);
    if (rc == RQ_OK) rq__lease_give_back(w->leases, h);
    return rc;
}

static void a_lease_ends_when_nobody_asks(void **state)
{
    world *w = *state;
    uint64_t id = open_one(w);
    rq_sim_advance(w->sim, (LEASE_MS - 1) * MS);
    assert_int_equal(rq__leases_count(w->leases), 1);
    /* Overdue ones are looked for four times a lease. */
    rq_sim_advance(w->sim, (LEASE_MS / 2) * MS);
    assert_int_equal(rq__leases_count(w->leases), 0);
    assert_int_equal(touch(w, id), RQ_E_UNKNOWN_SCANNER);
}

static void who_asks_keeps_it_and_others_go(void **state)
{
    world *w = *state;
    uint64_t kept = open_one(w), left = open_one(w);
    for (int i = 0; i < 20; i++) {
        rq_sim_advance(w->sim, LEASE_MS / 2 * MS);
        assert_int_equal(touch(w, kept), RQ_OK);
    }
    assert_int_equal(touch(w, left), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(rq__leases_count(w->leases), 1);
}

static void a_scanner_at_work_does_not_expire(void **state)
{
    world *w = *state;
    rq__scan_holder *h;
    uint64_t seq, id = open_one(w);
    assert_int_equal(rq__lease_take(w->leases, id, &h, &seq), RQ_OK);
    rq_sim_advance(w->sim, 10 * LEASE_MS * MS);
    assert_int_equal(touch(w, id), RQ_E_LEASE); /* a second request meanwhile */
    rq__lease_give_back(w->leases, h);
    rq_sim_advance(w->sim, LEASE_MS / 2 * MS); /* its time begins anew */
    assert_int_equal(touch(w, id), RQ_OK);
}

static void a_scanner_that_ended_well_is_remembered(void **state)
{
    world *w = *state;
    rq__scan_holder *h;
    uint64_t seq = 0, id = open_one(w), other = open_one(w);
    assert_int_equal(rq__lease_take(w->leases, id, &h, &seq), RQ_OK);
    h->next_call_seq = 5;
    rq__lease_close(w->leases, h, true);
    for (int i = 0; i < 2; i++) { /* closed twice */
        assert_int_equal(rq__lease_take(w->leases, id, &h, &seq), RQ_E_END);
        assert_int_equal(seq, 5);
    }
    assert_int_equal(rq__lease_take(w->leases, other, &h, &seq), RQ_OK);
    rq__lease_close(w->leases, h, false);
    assert_int_equal(touch(w, other), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(touch(w, 0x7fffffff00000000u), RQ_E_UNKNOWN_SCANNER);
}

/* Against a list of when each was last asked: nothing goes early, nothing stays for long. */
static void random_histories_expire_in_time(void **state)
{
    enum { COUNT = 50, STEPS = 3000 };
    world *w = *state;
    uint64_t ids[COUNT], asked[COUNT], now = 0;
    unsigned seed = (unsigned)unit_seed();
    srand(seed);
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = open_one(w);
        asked[i] = 0;
    }
    for (int step = 0; step < STEPS; step++) {
        uint64_t pause = (uint64_t)(rand() % 40);
        rq_sim_advance(w->sim, pause * MS);
        now += pause;
        size_t i = (size_t)rand() % COUNT;
        rq_err rc = touch(w, ids[i]);
        uint64_t age = now - asked[i];
        if (age < LEASE_MS) assert_int_equal(rc, RQ_OK);
        if (age > LEASE_MS * 3 / 2) assert_int_equal(rc, RQ_E_UNKNOWN_SCANNER);
        if (rc != RQ_OK) ids[i] = open_one(w);
        asked[i] = now;
    }
    assert_true(rq__leases_count(w->leases) <= COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_ends_when_nobody_asks, begin, end),
        cmocka_unit_test_setup_teardown(who_asks_keeps_it_and_others_go, begin, end),
        cmocka_unit_test_setup_teardown(a_scanner_at_work_does_not_expire, begin, end),
        cmocka_unit_test_setup_teardown(a_scanner_that_ended_well_is_remembered, begin, end),
        cmocka_unit_test_setup_teardown(random_histories_expire_in_time, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
