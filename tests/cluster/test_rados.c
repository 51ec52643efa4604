/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared storage (vfs/shared.h) on a real Ceph cluster, which tests/e2e/ceph.py brings up:
 *
 *     RQ_CEPH=FOLDER of tools/ceph   without it everything is skipped
 *     RQ_RADOS_PLUGIN=FILE           the plug-in
 *     RQ_POOL=NAME                   default "rorqual"
 *
 * RQ_SEEDS=n random histories that are compared with the simulated storage, ROUNDS=n rounds of
 * writers that are revoked. STALL=1: a test that stops the OSDs for seconds.
 */
#include "../sim/shared_history.h"
#include "../unit/vfs/shared_rounds.h"

#include "vfs/shared_rados.h"
#include "vfs/sim.h"
#include "vfs/sim_shared.h"

#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#define SKIPPED 77

static const char *setting(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value == NULL ? fallback : value;
}

static rq_err open_pool(rq_executor *executor, const char *pool, const char *space, rq_shared **ret,
                        rq_error *why)
{
    char conf[512];
    snprintf(conf, sizeof conf, "%s/ceph.conf", getenv("RQ_CEPH"));
    rq_rados_options o = {.conf = conf, .user = "client.admin", .pool = pool, .space = space};
    return rq_shared_rados_open(getenv("RQ_RADOS_PLUGIN"), &o, executor, ret, why);
}

static void rados_open(door *d, const char *space)
{
    rq_error why = {.code = RQ_OK};
    rounds_executor(d);
    if (open_pool(d->executor, setting("RQ_POOL", "rorqual"), space, &d->shared, &why) != RQ_OK)
        fail_msg("%s", why.message);
}

static void rados_close(door *d)
{
    rq_shared_free(d->shared);
    rq_thread_executor_free(d->executor);
}

/* A namespace that no earlier run has used. */
static const char *fresh_space(uint64_t number)
{
    static char space[64];
    snprintf(space, sizeof space, "test-%d-%llx-%" PRIu64, (int)getpid(),
             (unsigned long long)time(NULL), number);
    return space;
}

/* --- refusals ------------------------------------------------------------------------------ */

static void a_pool_that_may_lose_writes_is_refused(void **state)
{
    (void)state;
    /* Pools made by tests/e2e/ceph.py. */
    static const struct {
        const char *pool, *words;
        rq_err code;
    } pools[] = {{"single", "min_size 1", RQ_E_CONFIG},
                 {"coded", "erasure-coded", RQ_E_CONFIG},
                 {"absent", "there is no pool", RQ_E_CONFIG},
                 {"bad\"name", "bad name", RQ_E_CONFIG}};
    door d;
    rounds_executor(&d);
    for (size_t i = 0; i < RQ_ARRAY_LEN(pools); i++) {
        rq_error why = {.code = RQ_OK};
        rq_err rc = open_pool(d.executor, pools[i].pool, "space", &d.shared, &why);
        if (rc != pools[i].code || strstr(why.message, pools[i].words) == NULL)
            fail_msg("%s: %d %s", pools[i].pool, rc, why.message);
    }
    rq_thread_executor_free(d.executor);
}

static void a_wrong_plug_in_or_configuration_is_refused(void **state)
{
    (void)state;
    door d;
    rq_error why = {.code = RQ_OK};
    rq_rados_options o = {.conf = "/nonexistent/ceph.conf", .user = "client.admin"};
    o.pool = o.space = "rorqual";
    rounds_executor(&d);
    assert_int_equal(
        rq_shared_rados_open(getenv("RQ_RADOS_PLUGIN"), &o, d.executor, &d.shared, &why),
        RQ_E_CONFIG);
    assert_non_null(strstr(why.message, "/nonexistent/ceph.conf"));
    assert_int_equal(
        rq_shared_rados_open("/nonexistent/plugin.so", &o, d.executor, &d.shared, NULL),
        RQ_E_UNSUPPORTED);
    rq_thread_executor_free(d.executor);
}

/* --- histories ----------------------------------------------------------------------------- */

static rq_err wait_in_sim(form *f, rq_latch *latch)
{
    return rq_sim_run_until(f->ctx, latch);
}

static rq_err wait_on_latch(form *f, rq_latch *latch)
{
    rq_err rc = f->executor->latch_wait(latch);
    f->executor->latch_destroy(latch);
    return rc;
}

typedef struct world {
    rq_sim *sim;
    rq_lane *sim_lane, *lane;
    rq_sim_storage *storage;
    rq_sim_node *node;
    door door;
} world;

static void world_open(world *w, history *h)
{
    *w = (world){.sim = NULL};
    assert_int_equal(rq_sim_new(h->seed, NULL, &w->sim), RQ_OK);
    assert_int_equal(rq_sim_lane_new(w->sim, &w->sim_lane), RQ_OK);
    assert_int_equal(rq_sim_storage_new(w->sim, 0, &w->storage), RQ_OK);
    assert_int_equal(rq_sim_node_new(w->storage, 1, 0, &w->node), RQ_OK);
    h->forms[0] = (form){.executor = rq_sim_env(w->sim)->executor, .lane = w->sim_lane};
    h->forms[0].shared = rq_sim_node_shared(w->node);
    h->forms[0].wait = wait_in_sim;
    h->forms[0].ctx = w->sim;
    rados_open(&w->door, fresh_space(h->seed));
    assert_int_equal(w->door.executor->lane_new(w->door.executor, "test", &w->lane), RQ_OK);
    h->forms[1] = (form){.executor = w->door.executor, .lane = w->lane, .wait = wait_on_latch};
    h->forms[1].shared = w->door.shared;
}

static void world_close(world *w)
{
    rq_executor *sim_executor = rq_sim_env(w->sim)->executor;
    w->door.executor->lane_free(w->door.executor, w->lane);
    rados_close(&w->door);
    rq_shared_free(rq_sim_node_shared(w->node));
    rq_sim_node_free(w->node);
    rq_sim_storage_free(w->storage);
    sim_executor->lane_free(sim_executor, w->sim_lane);
    rq_sim_free(w->sim);
}

static void it_answers_as_the_simulated_storage(void **state)
{
    (void)state;
    unsigned good[HISTORY_KINDS] = {0}, bad[HISTORY_KINDS] = {0};
    seeds_range seeds = seeds_wanted(10);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        history h = {.seed = seed};
        world w;
        world_open(&w, &h);
        history_run(&h, good, bad);
        world_close(&w);
    }
    if (seeds.last - seeds.first >= 29) history_check(good, bad);
}

#define MANY_KEYS 2500

static void a_set_of_many_keys_is_listed_whole(void **state)
{
    (void)state;
    door d;
    rq_arena arena = {0};
    const char **keys;
    size_t count;
    char key[16];
    rados_open(&d, fresh_space(0));
    for (int i = MANY_KEYS - 1; i >= 0; i--) {
        snprintf(key, sizeof key, "k%06d", i);
        assert_int_equal(rq_set_put(d.shared, "many", key, NULL), RQ_OK);
    }
    assert_int_equal(rq_set_list(d.shared, "many", &arena, &keys, &count, NULL), RQ_OK);
    assert_int_equal(count, MANY_KEYS);
    for (int i = 0; i < MANY_KEYS; i++) {
        snprintf(key, sizeof key, "k%06d", i);
        assert_string_equal(keys[i], key);
    }
    rq_arena_clear(&arena);
    rados_close(&d);
}

static void long_objects_are_kept_and_longer_ones_refused(void **state)
{
    (void)state;
    door d;
    rq_arena arena = {0};
    rq_slice found;
    uint64_t generation;
    size_t most = 64u << 20;
    uint8_t *bytes = malloc(most);
    assert_non_null(bytes);
    for (size_t i = 0; i < most; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    rados_open(&d, fresh_space(1));
    assert_int_equal(rq_object_cas(d.shared, "o", 0, rq_slice_of(bytes, most), &generation, NULL),
                     RQ_E_INVALID);
    assert_int_equal(
        rq_object_cas(d.shared, "o", 0, rq_slice_of(bytes, 3u << 20), &generation, NULL), RQ_OK);
    assert_int_equal(rq_object_get(d.shared, "o", &arena, &found, &generation, NULL), RQ_OK);
    assert_true(rq_slice_eq(found, rq_slice_of(bytes, 3u << 20)));
    rq_arena_clear(&arena);
    free(bytes);
    rados_close(&d);
}

/* Returns false after a minute. */
static bool until(bool (*holds)(const rq_tenure *t, uint64_t than), const rq_tenure *t,
                  uint64_t than)
{
    for (unsigned i = 0; i < 6000; i++) {
        if (holds(t, than)) return true;
        usleep(10000);
    }
    return false;
}

/* --- storage that does not answer ----------------------------------------------------------- */

/* Sends signal `number` to `count` of the three OSDs. With two of them stopped fewer than min_size
 * remain. */
static void signal_osds(int first, int count, int number)
{
    for (int i = first; i < first + count; i++) {
        char path[512];
        int pid = 0;
        snprintf(path, sizeof path, "%s/pids/osd.%d", getenv("RQ_CEPH"), i);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%d", &pid), 1);
        fclose(f);
        assert_int_equal(kill(pid, number), 0);
    }
}

static rq_err append(form *f, unsigned stripe, const char *text)
{
    step s = {.stripe = stripe, .bytes = rq_slice_cstr(text)};
    return form_append(f, &s);
}

static rq_err open_ledger(form *f, uint64_t number)
{
    step s = {.number = number};
    return form_open_log(f, &s);
}

static void put_counter(rq_shared *s, uint64_t expected, rq_err wanted)
{
    uint64_t generation = 0;
    rq_err rc = rq_object_cas(s, "counter", expected, RQ_SLICE_LIT("x"), &generation, NULL);
    assert_int_equal(rc, wanted);
    if (rc == RQ_OK) assert_int_equal(generation, expected + 1);
}

static uint64_t revoke_patiently(rq_shared *s, const char *name)
{
    uint64_t quiet_ns;
    rq_err rc = RQ_E_TIMEOUT;
    for (unsigned i = 0; i < 30 && rc == RQ_E_TIMEOUT; i++)
        rc = rq_tenure_revoke(s, name, &quiet_ns, NULL);
    assert_int_equal(rc, RQ_OK);
    return quiet_ns;
}

static bool lapsed(const rq_tenure *t, uint64_t than)
{
    (void)than;
    return rq_tenure_valid_until(t) <= rq_shared_now_ns(t->shared);
}

/* Results of a writer whose storage does not respond: unknown outcomes, no lease, no second write
 * on a stripe; afterwards the next ledger. */
static void stand_still(form *f, unsigned *ret_unknown)
{
    rq_arena arena = {0};
    rq_slice found;
    uint64_t generation;
    signal_osds(0, 2, SIGSTOP);
    rq_err first = append(f, 0, "late"), swapped;
    swapped = rq_object_cas(f->shared, "counter", 1, RQ_SLICE_LIT("late"), &generation, NULL);
    rq_err second = append(f, 0, "second");
    /* A guarded read of the head may still be answered if the third OSD has the head. */
    signal_osds(2, 1, SIGSTOP);
    bool over = until(lapsed, f->tenures[0], 0);
    signal_osds(0, 3, SIGCONT);
    assert_int_equal(first, RQ_E_TIMEOUT);
    assert_int_equal(second, RQ_E_STATE);
    assert_true(over);
    /* The read itself may have failed; a swap that arrived late counts. */
    assert_true(swapped == RQ_E_TIMEOUT || swapped == RQ_OK);
    rq_err rc = RQ_E_TIMEOUT;
    for (unsigned i = 0; i < 30 && rc == RQ_E_TIMEOUT; i++)
        rc = rq_object_get(f->shared, "counter", &arena, &found, &generation, NULL);
    assert_int_equal(rc, RQ_OK);
    assert_true(generation == 1 || (generation == 2 && rq_slice_eq(found, RQ_SLICE_LIT("late"))));
    *ret_unknown += swapped == RQ_E_TIMEOUT;
    rq_arena_clear(&arena);
}

static void a_write_without_answer_closes_its_stripe(void **state)
{
    (void)state;
    door d;
    rq_lane *lane;
    unsigned unknown = 0;
    rq_err rc = RQ_E_TIMEOUT;
    answer a = {.rc = RQ_OK};
    if (seeds_number("STALL", 0) == 0) {
        print_message("skipped: it stops the OSDs for seconds, also under other tests; STALL=1\n");
        skip();
    }
    rados_open(&d, fresh_space(2));
    assert_int_equal(d.executor->lane_new(d.executor, "test", &lane), RQ_OK);
    form f = {.shared = d.shared, .executor = d.executor, .lane = lane, .wait = wait_on_latch};
    assert_int_equal(rq_tenure_begin(d.shared, "host,16020,0", &f.tenures[0], NULL), RQ_OK);
    assert_int_equal(open_ledger(&f, 0), RQ_OK);
    assert_int_equal(append(&f, 0, "first"), RQ_OK);
    put_counter(d.shared, 0, RQ_OK);
    stand_still(&f, &unknown);
    for (uint64_t i = 1; i < 30 && rc == RQ_E_TIMEOUT; i++)
        rc = open_ledger(&f, i);
    assert_int_equal(rc, RQ_OK);
    assert_int_equal(append(&f, 0, "second"), RQ_OK);
    assert_true(rq_tenure_valid_until(f.tenures[0]) > rq_shared_now_ns(d.shared));
    (void)revoke_patiently(d.shared, "host,16020,0");
    assert_int_equal(append(&f, 1, "no"), RQ_E_SERVER_ABORTED);
    form_read_all(&f, "host,16020,0", &a);
    assert_int_equal(a.rc, RQ_OK);
    assert_int_not_equal(unknown, 0);
    rq_buf_clear(&a.bytes);
    form_release(&f, 0);
    rq_arena_clear(&f.arena);
    d.executor->lane_free(d.executor, lane);
    rados_close(&d);
}

/* --- the lease ----------------------------------------------------------------------------- */

static bool renewed(const rq_tenure *t, uint64_t than)
{
    return rq_tenure_valid_until(t) > than;
}

static bool ended(const rq_tenure *t, uint64_t than)
{
    (void)than;
    return rq_tenure_valid_until(t) == 0;
}

static void an_idle_tenure_is_renewed_until_it_is_revoked(void **state)
{
    (void)state;
    door d;
    rq_tenure *t;
    rados_open(&d, fresh_space(4));
    assert_int_equal(rq_tenure_begin(d.shared, "host,16020,0", &t, NULL), RQ_OK);
    uint64_t first_ns = rq_tenure_valid_until(t);
    assert_true(first_ns > rq_shared_now_ns(d.shared) - RQ_SHARED_LEASE_NS);
    assert_true(until(renewed, t, first_ns + RQ_SHARED_LEASE_NS));
    uint64_t quiet_ns = revoke_patiently(d.shared, "host,16020,0");
    assert_true(quiet_ns > rq_tenure_valid_until(t));
    assert_true(until(ended, t, 0));
    assert_int_equal(revoke_patiently(d.shared, "host,16020,0"), quiet_ns);
    rq_tenure_free(t);
    rados_close(&d);
}

/* --- processes ----------------------------------------------------------------------------- */

static rounds of_processes(void)
{
    return (rounds){
        .where = "processes", .open = rados_open, .close = rados_close, .may_time_out = true};
}

static void a_stopped_writer_is_revoked_and_ends_when_it_continues(void **state)
{
    (void)state;
    rounds r = of_processes();
    rounds_run(&r, ROUND_STOPPED);
}

static void a_killed_writer_loses_nothing_acknowledged(void **state)
{
    (void)state;
    rounds r = of_processes();
    rounds_run(&r, ROUND_KILLED);
}

static void a_running_writer_ends_when_it_is_revoked(void **state)
{
    (void)state;
    rounds r = of_processes();
    rounds_run(&r, ROUND_RUNNING);
}

static void swaps_of_several_processes_are_counted_once_each(void **state)
{
    (void)state;
    rounds r = of_processes();
    static char space[64];
    snprintf(space, sizeof space, "%s", fresh_space(3));
    r.where = space;
    rounds_swap(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* These fork, so they must run before tests that start threads. */
        cmocka_unit_test(a_stopped_writer_is_revoked_and_ends_when_it_continues),
        cmocka_unit_test(a_killed_writer_loses_nothing_acknowledged),
        cmocka_unit_test(a_running_writer_ends_when_it_is_revoked),
        cmocka_unit_test(swaps_of_several_processes_are_counted_once_each),
        cmocka_unit_test(a_pool_that_may_lose_writes_is_refused),
        cmocka_unit_test(a_wrong_plug_in_or_configuration_is_refused),
        cmocka_unit_test(it_answers_as_the_simulated_storage),
        cmocka_unit_test(a_set_of_many_keys_is_listed_whole),
        cmocka_unit_test(long_objects_are_kept_and_longer_ones_refused),
        cmocka_unit_test(an_idle_tenure_is_renewed_until_it_is_revoked),
        cmocka_unit_test(a_write_without_answer_closes_its_stripe),
    };
    if (getenv("RQ_CEPH") == NULL || getenv("RQ_RADOS_PLUGIN") == NULL) {
        printf("skipped: RQ_CEPH names no cluster of tools/ceph, or RQ_RADOS_PLUGIN no plug-in\n");
        return SKIPPED;
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
