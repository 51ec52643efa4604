/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of scanners between their calls, with a simulated clock. */
#include "../base/unit.h"

#include "base/long_free.h"
#include "ops/leases.h"
#include "vfs/sim.h"

#define LEASE_MS 1000
#define LONG_LEASE_MS 60000
#define MS 1000000ull
#define BYTES_MAX ((size_t)32 << 20) /* a quarter of rorqual.memory=128m */

typedef struct world {
    rq_sim *sim;
    rq_lane *lane;
    rq__leases *leases;
    void *connection; /* owner of the scanners in most tests */
} world;

static rq_scanner_stats stats_of(rq__leases *t)
{
    rq_scanner_stats s;
    rq__leases_get_stats(t, &s);
    return s;
}

static int begin_with(void **state, uint64_t lease_ms)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL || rq_sim_new(7, NULL, &w->sim) != RQ_OK ||
        rq_sim_lane_new(w->sim, &w->lane) != RQ_OK ||
        rq__leases_new(rq_sim_env(w->sim), lease_ms, BYTES_MAX, w->lane, &w->leases) != RQ_OK)
        return -1;
    *state = w;
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, LEASE_MS);
}

static int begin_long(void **state)
{
    return begin_with(state, LONG_LEASE_MS);
}

static void close_connection(world *w, void **connection)
{
    if (*connection != NULL) rq__lease_owner_gone(w->leases, *connection);
    *connection = NULL;
}

static int end(void **state)
{
    world *w = *state;
    rq_executor *executor = rq_sim_env(w->sim)->executor;
    close_connection(w, &w->connection);
    rq_sim_advance(w->sim, MS); /* pools free what is large */
    rq__leases_free(w->leases);
    executor->lane_free(executor, w->lane);
    rq_sim_free(w->sim);
    free(w);
    return 0;
}

/* Opens a scanner that takes this many more bytes; returns its id, or 0 if it is refused. */
static uint64_t open_with(world *w, void **connection, size_t bytes)
{
    rq__scan_holder *h;
    rq_err rc = rq__lease_new(w->leases, rq_scan_owner_get(connection), &h);
    if (rc == RQ_E_CALL_QUEUE_TOO_BIG) return 0;
    assert_int_equal(rc, RQ_OK);
    if (bytes > 0 && rq_arena_alloc(&h->arena, bytes) == NULL) {
        assert_true(h->refused);
        rq__lease_close(w->leases, h, false);
        return 0;
    }
    h->opened = true;
    uint64_t id = h->id;
    rq__lease_give_back(w->leases, h);
    return id;
}

/* Opens a scanner, gives it back, and returns its id. */
static uint64_t open_one(world *w)
{
    uint64_t id = open_with(w, &w->connection, 0);
    assert_true(id != 0);
    return id;
}

static rq_err take(world *w, void **connection, uint64_t id, rq__scan_holder **ret, uint64_t *seq)
{
    return rq__lease_take(w->leases, id, rq_scan_owner_get(connection), ret, seq);
}

static rq_err touch_from(world *w, void **connection, uint64_t id)
{
    rq__scan_holder *h = NULL;
    uint64_t seq;
    rq_err rc = take(w, connection, id, &h, &seq);
    if (rc == RQ_OK) rq__lease_give_back(w->leases, h);
    return rc;
}

static rq_err touch(world *w, uint64_t id)
{
    return touch_from(w, &w->connection, id);
}

static void a_lease_ends_without_requests(void **state)
{
    world *w = *state;
    uint64_t id = open_one(w);
    rq_sim_advance(w->sim, (LEASE_MS - 1) * MS);
    assert_int_equal(stats_of(w->leases).open, 1);
    /* Expired leases are checked for four times per lease period. */
    rq_sim_advance(w->sim, (LEASE_MS / 2) * MS);
    assert_int_equal(stats_of(w->leases).open, 0);
    assert_int_equal(stats_of(w->leases).bytes, 0);
    assert_int_equal(stats_of(w->leases).opened, 1);
    assert_int_equal(stats_of(w->leases).expired, 1);
    assert_int_equal(touch(w, id), RQ_E_UNKNOWN_SCANNER);
}

static void renewed_leases_stay_and_others_expire(void **state)
{
    world *w = *state;
    uint64_t kept = open_one(w), left = open_one(w);
    for (int i = 0; i < 20; i++) {
        rq_sim_advance(w->sim, LEASE_MS / 2 * MS);
        assert_int_equal(touch(w, kept), RQ_OK);
    }
    assert_int_equal(touch(w, left), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(stats_of(w->leases).open, 1);
}

static void a_scanner_at_work_does_not_expire(void **state)
{
    world *w = *state;
    rq__scan_holder *h;
    uint64_t seq, id = open_one(w);
    assert_int_equal(take(w, &w->connection, id, &h, &seq), RQ_OK);
    rq_sim_advance(w->sim, 10 * LEASE_MS * MS);
    assert_int_equal(touch(w, id), RQ_E_LEASE); /* a second request while the first runs */
    rq__lease_give_back(w->leases, h);
    rq_sim_advance(w->sim, LEASE_MS / 2 * MS); /* the lease begins again */
    assert_int_equal(touch(w, id), RQ_OK);
}

static void a_scanner_that_ended_well_is_remembered(void **state)
{
    world *w = *state;
    rq__scan_holder *h;
    uint64_t seq = 0, id = open_one(w), other = open_one(w);
    assert_int_equal(take(w, &w->connection, id, &h, &seq), RQ_OK);
    h->next_call_seq = 5;
    rq__lease_close(w->leases, h, true);
    for (int i = 0; i < 2; i++) { /* asked again, the result is the same */
        assert_int_equal(take(w, &w->connection, id, &h, &seq), RQ_E_END);
        assert_int_equal(seq, 5);
    }
    assert_int_equal(take(w, &w->connection, other, &h, &seq), RQ_OK);
    rq__lease_close(w->leases, h, false);
    assert_int_equal(touch(w, other), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(touch(w, 0x7fffffff00000000u), RQ_E_UNKNOWN_SCANNER);
    /* id 0 must not match an unused entry of the ended scanners */
    assert_int_equal(touch(w, 0), RQ_E_UNKNOWN_SCANNER);
}

/* Compares with a list of last uses: no scanner is closed early, and none stays long after its
 * lease. */
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
    assert_true(stats_of(w->leases).open <= COUNT);
}

/* ---- memory: what is held, by whom, and for how long */

static size_t open_all(world *w, void **connection, size_t bytes)
{
    size_t count = 0;
    while (open_with(w, connection, bytes) != 0)
        count++;
    return count;
}

static void ten_thousand_of_a_connection_fit_and_then_it_is_refused(void **state)
{
    world *w = *state;
    size_t count = open_all(w, &w->connection, 0);
    assert_true(count >= 10000);
    assert_true(stats_of(w->leases).bytes <= BYTES_MAX / 4 * 3);
    assert_int_equal(stats_of(w->leases).open, count);
}

static void filters_are_charged_with_their_scanners(void **state)
{
    world *w = *state;
    size_t filter = BYTES_MAX / 16;
    size_t count = open_all(w, &w->connection, filter);
    assert_true(count >= 8 && count <= 12);
    assert_true(stats_of(w->leases).bytes >= count * filter);
    /* A scanner refused half-way is removed: only complete ones are counted. */
    assert_int_equal(stats_of(w->leases).open, count);
    assert_true(stats_of(w->leases).bytes < (count + 1) * filter);
}

static void others_find_room_beside_floods(void **state)
{
    world *w = *state;
    void *floods[20] = {0}, *innocent[20] = {0};
    uint64_t ids[20];
    for (size_t i = 0; i < 20; i++)
        ids[i] = open_with(w, &innocent[i], 100);
    for (size_t i = 0; i < 20; i++)
        open_all(w, &floods[i], i % 2 * 100000);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(touch_from(w, &innocent[i], ids[i]), RQ_OK);
        assert_true(open_with(w, &innocent[i], 10000) != 0);
        close_connection(w, &innocent[i]);
        close_connection(w, &floods[i]);
    }
    assert_true(stats_of(w->leases).bytes <= BYTES_MAX);
}

/* Memory by which an open scanner grows is charged but never refused. */
static void an_open_scanner_may_grow(void **state)
{
    world *w = *state;
    rq__scan_holder *h;
    uint64_t seq, id = open_one(w);
    open_all(w, &w->connection, 0);
    size_t before = stats_of(w->leases).bytes;
    assert_int_equal(take(w, &w->connection, id, &h, &seq), RQ_OK);
    assert_non_null(rq_arena_alloc(&h->arena, BYTES_MAX / 2));
    assert_true(stats_of(w->leases).bytes >= before + BYTES_MAX / 2);
    rq__lease_close(w->leases, h, false);
    assert_true(stats_of(w->leases).bytes < before);
}

static void (*submit_before)(rq_executor *ex, rq_pool pool, rq_task *task);
static unsigned submitted;

static void count_and_submit(rq_executor *ex, rq_pool pool, rq_task *task)
{
    submitted++;
    submit_before(ex, pool, task);
}

/* A loop would take milliseconds to free a large filter. */
static void a_pool_frees_what_is_large(void **state)
{
    world *w = *state;
    rq_executor *executor = rq_sim_env(w->sim)->executor;
    submit_before = executor->submit;
    executor->submit = count_and_submit;
    for (unsigned i = 0; i < 2; i++) {
        submitted = 0;
        uint64_t id = open_with(w, &w->connection, i * RQ_LONG_FREE_BYTES);
        rq__scan_holder *h;
        uint64_t seq;
        assert_int_equal(take(w, &w->connection, id, &h, &seq), RQ_OK);
        rq__lease_close(w->leases, h, false);
        assert_int_equal(submitted, i);
        assert_true(open_with(w, &w->connection, i * RQ_LONG_FREE_BYTES) != 0);
        rq_sim_advance(w->sim, 2 * LONG_LEASE_MS * MS);
        assert_int_equal(stats_of(w->leases).open, 0);
        assert_int_equal(submitted, 2 * i);
    }
    executor->submit = submit_before;
}

static void orphans_end_after_ten_seconds(void **state)
{
    world *w = *state;
    void *gone = NULL;
    uint64_t kept = open_one(w), moved = open_with(w, &gone, 0), left = open_with(w, &gone, 0);
    uint64_t at_work = open_with(w, &gone, 0);
    rq__scan_holder *h;
    uint64_t seq;
    assert_int_equal(take(w, &gone, at_work, &h, &seq), RQ_OK);
    close_connection(w, &gone);
    rq_sim_advance(w->sim, 9000 * MS);
    assert_int_equal(stats_of(w->leases).open, 4);
    assert_int_equal(touch(w, moved), RQ_OK); /* the client uses another connection now */
    rq_sim_advance(w->sim, 3000 * MS);
    assert_int_equal(touch(w, left), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(touch(w, moved), RQ_OK);
    assert_int_equal(touch(w, kept), RQ_OK);
    rq__lease_give_back(w->leases, h); /* the lease begins when the scanner is given back */
    rq_sim_advance(w->sim, 9000 * MS);
    assert_int_equal(stats_of(w->leases).open, 3);
    rq_sim_advance(w->sim, 3000 * MS);
    assert_int_equal(stats_of(w->leases).open, 2);
}

static void orphans_end_at_once_when_memory_is_needed(void **state)
{
    world *w = *state;
    for (size_t filter = 0; filter <= BYTES_MAX / 16; filter += BYTES_MAX / 16) {
        void *gone = NULL, *other = NULL;
        size_t count = open_all(w, &gone, filter);
        uint64_t kept = open_one(w);
        close_connection(w, &gone);
        /* Opens as many again without time passing. */
        for (size_t i = 1; i < count; i++)
            assert_true(open_with(w, &w->connection, 0) != 0);
        assert_int_equal(touch(w, kept), RQ_OK);
        close_connection(w, &w->connection);
        /* If many must be closed, a timer closes them within a second instead of ten. */
        if (open_with(w, &other, BYTES_MAX / 3) == 0) rq_sim_advance(w->sim, 1000 * MS);
        assert_true(open_with(w, &other, BYTES_MAX / 3) != 0);
        close_connection(w, &other);
        rq_sim_advance(w->sim, 20000 * MS);
        assert_int_equal(stats_of(w->leases).open, 0);
        assert_int_equal(stats_of(w->leases).bytes, 0);
    }
}

/* Connections open and close, and scanners move between them: in the end all memory is released. */
static void random_histories_release_all_resources(void **state)
{
    enum { CONNECTIONS = 8, IDS = 3000, STEPS = 60000 };
    world *w = *state;
    void *connections[CONNECTIONS] = {0};
    uint64_t *ids = calloc(IDS, sizeof *ids);
    assert_non_null(ids);
    srand((unsigned)unit_seed());
    for (int step = 0; step < STEPS; step++) {
        void **connection = &connections[rand() % CONNECTIONS];
        uint64_t *id = &ids[rand() % IDS];
        rq__scan_holder *h;
        uint64_t seq;
        switch (rand() % 64) {
        case 0:
            close_connection(w, connection);
            break;
        case 1:
            rq_sim_advance(w->sim, (uint64_t)(rand() % 3000) * MS);
            break;
        default:
            if (*id == 0) {
                *id = open_with(w, connection, (size_t)(rand() % 20000));
            } else if (take(w, connection, *id, &h, &seq) == RQ_OK) {
                assert_int_equal(h->id, *id);
                if (rand() % 3 == 0)
                    rq__lease_close(w->leases, h, false), *id = 0;
                else
                    rq__lease_give_back(w->leases, h);
            } else {
                *id = 0;
            }
        }
        assert_true(stats_of(w->leases).bytes <= BYTES_MAX);
    }
    for (size_t i = 0; i < CONNECTIONS; i++)
        close_connection(w, &connections[i]);
    rq_sim_advance(w->sim, 20000 * MS);
    assert_int_equal(stats_of(w->leases).open, 0);
    assert_int_equal(stats_of(w->leases).bytes, 0);
    free(ids);
}

/* The hash table grows: every open scanner is found, and unknown ids are not. */
static void many_are_found(void **state)
{
    world *w = *state;
    static uint64_t ids[12000];
    for (size_t i = 0; i < RQ_ARRAY_LEN(ids); i++) {
        void **connection = &w->connection;
        ids[i] = open_with(w, connection, 0);
        if (ids[i] == 0) ids[i] = ids[i - 1];
        if (i % 97 == 0) assert_int_equal(touch(w, ids[i / 2]), RQ_OK);
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(ids); i++)
        assert_int_equal(touch(w, ids[i]), RQ_OK);
    assert_int_equal(touch(w, ids[0] - 1), RQ_E_UNKNOWN_SCANNER);
    assert_int_equal(touch(w, ids[11999] + 8192), RQ_E_UNKNOWN_SCANNER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_ends_without_requests, begin, end),
        cmocka_unit_test_setup_teardown(renewed_leases_stay_and_others_expire, begin, end),
        cmocka_unit_test_setup_teardown(a_scanner_at_work_does_not_expire, begin, end),
        cmocka_unit_test_setup_teardown(a_scanner_that_ended_well_is_remembered, begin, end),
        cmocka_unit_test_setup_teardown(random_histories_expire_in_time, begin, end),
#define LONG(test) cmocka_unit_test_setup_teardown(test, begin_long, end)
        LONG(ten_thousand_of_a_connection_fit_and_then_it_is_refused),
        LONG(filters_are_charged_with_their_scanners),
        LONG(others_find_room_beside_floods),
        LONG(an_open_scanner_may_grow),
        LONG(a_pool_frees_what_is_large),
        LONG(orphans_end_after_ten_seconds),
        LONG(orphans_end_at_once_when_memory_is_needed),
        LONG(random_histories_release_all_resources),
        LONG(many_are_found),
#undef LONG
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
