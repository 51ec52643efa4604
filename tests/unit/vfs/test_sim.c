/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk, clock and tasks (vfs/sim.h): which bytes and names a power cut leaves; the ends of revoked leases. */
#include "../base/unit.h"

#include "vfs/shared_priv.h"
#include "vfs/sim.h"

static rq_sim *new_sim(uint64_t seed)
{
    rq_sim *sim;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    return sim;
}

static rq_file *create(rq_sim *sim, const char *path)
{
    rq_file *f;
    rq_error why = {0};
    if (rq_vfs_open(rq_sim_env(sim)->vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, &why) != RQ_OK)
        fail_msg("%s", why.message);
    return f;
}

static bool exists(rq_sim *sim, const char *path)
{
    rq_stat st;
    return rq_vfs_stat(rq_sim_env(sim)->vfs, path, &st, NULL) == RQ_OK;
}

/* --- what a power cut takes --------------------------------------------------------------- */

static void synced_bytes_under_synced_names_survive(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        rq_sim *sim = new_sim(seed);
        rq_vfs *v = rq_sim_env(sim)->vfs;
        assert_int_equal(rq_vfs_mkdirs(v, "a/b", NULL), RQ_OK);
        char bytes[3000];
        memset(bytes, 'k', sizeof bytes);
        assert_int_equal(rq_vfs_write_new_file(v, "a/b/f", rq_slice_of(bytes, sizeof bytes), NULL),
                         RQ_OK);
        rq_file *f = create(sim, "a/b/f");
        assert_int_equal(rq_file_write(f, "later", 5, 3000, NULL), RQ_OK);
        rq_file_close(f);
        rq_sim_restart(sim);
        rq_arena arena = {0};
        rq_slice found;
        assert_int_equal(rq_vfs_read_file(v, "a/b/f", 10000, &arena, &found, NULL), RQ_OK);
        assert_true(found.len >= 3000);
        assert_memory_equal(found.ptr, bytes, 3000);
        rq_arena_clear(&arena);
        rq_sim_free(sim);
    }
}

/* A folder whose name could not be synced exists all the same; later callers must not rely on
 * it. */
static void folders_made_after_a_failed_sync_survive(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool failed = true;
        for (uint64_t k = 1; failed; k++) {
            rq_sim *sim = new_sim(seed);
            rq_vfs *v = rq_sim_env(sim)->vfs;
            rq_sim_fail_at(sim, rq_sim_calls(sim) + k, RQ_E_IO);
            failed = rq_vfs_mkdirs(v, "a/b/c", NULL) != RQ_OK;
            if (failed) {
                assert_int_equal(rq_vfs_mkdirs(v, "a/b/c", NULL), RQ_OK);
                assert_int_equal(rq_vfs_write_new_file(v, "a/b/c/f", RQ_SLICE_LIT("x"), NULL),
                                 RQ_OK);
                rq_sim_restart(sim);
                if (!exists(sim, "a/b/c/f")) fail_msg("seed %d, call %d", (int)seed, (int)k);
            }
            rq_sim_free(sim);
        }
    }
}

static bool holds(rq_sim *sim, const char *path, const char *text)
{
    rq_arena arena = {0};
    rq_slice found;
    bool same = rq_vfs_read_file(rq_sim_env(sim)->vfs, path, 100, &arena, &found, NULL) == RQ_OK &&
                rq_slice_eq(found, rq_slice_cstr(text));
    rq_arena_clear(&arena);
    return same;
}

/* Whichever call is the last before the cut, or fails, the complete file has one of its names; and
 * repeating the move completes it. */
static void a_moved_file_is_never_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool failed = true;
        for (uint64_t k = 1; failed; k++) {
            rq_sim *sim = new_sim(seed);
            rq_vfs *v = rq_sim_env(sim)->vfs;
            assert_int_equal(rq_vfs_write_new_file(v, "file", RQ_SLICE_LIT("x"), NULL), RQ_OK);
            if (seed % 2 == 0)
                rq_sim_cut_at(sim, rq_sim_calls(sim) + k);
            else
                rq_sim_fail_at(sim, rq_sim_calls(sim) + k, RQ_E_IO);
            failed = rq_vfs_move(v, "file", "a/b/moved", NULL) != RQ_OK;
            rq_sim_restart(sim);
            if (!holds(sim, "file", "x") && !holds(sim, "a/b/moved", "x"))
                fail_msg("seed %d, call %d: lost", (int)seed, (int)k);
            if (!failed) assert_true(holds(sim, "a/b/moved", "x"));
            if (exists(sim, "file"))
                assert_int_equal(rq_vfs_move(v, "file", "a/b/moved", NULL), RQ_OK);
            assert_true(holds(sim, "a/b/moved", "x"));
            assert_false(exists(sim, "file"));
            rq_sim_free(sim);
        }
    }
}

/* Over many seeds each kind of loss must occur, because otherwise the simulation would not test the
 * rule for it. */
static void unsynced_things_are_lost_each_in_its_own_way(void **state)
{
    (void)state;
    int name_lost = 0, name_kept = 0, bytes_lost = 0, bytes_kept = 0, torn = 0, short_size = 0;
    int second_without_first = 0, remove_undone = 0, link_lost = 0, later_before_earlier = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        rq_sim *sim = new_sim(seed);
        rq_vfs *v = rq_sim_env(sim)->vfs;
        assert_int_equal(rq_vfs_write_new_file(v, "old", RQ_SLICE_LIT("o"), NULL), RQ_OK);
        rq_file *first = create(sim, "first");
        rq_file *second = create(sim, "second");
        char bytes[4096];
        memset(bytes, 'x', sizeof bytes);
        assert_int_equal(rq_file_write(first, bytes, sizeof bytes, 0, NULL), RQ_OK);
        assert_int_equal(rq_file_write(second, bytes, sizeof bytes, 0, NULL), RQ_OK);
        assert_int_equal(rq_vfs_sync_dir(v, "", NULL), RQ_OK);
        assert_int_equal(rq_vfs_remove(v, "old", NULL), RQ_OK);
        assert_int_equal(rq_vfs_link(v, "first", "link", NULL), RQ_OK);
        rq_file *third = create(sim, "third");
        rq_file_close(first);
        rq_file_close(second);
        rq_file_close(third);
        rq_sim_restart(sim);
        name_lost += !exists(sim, "third");
        name_kept += exists(sim, "third");
        remove_undone += exists(sim, "old");
        link_lost += !exists(sim, "link");
        size_t survived[2];
        for (int i = 0; i < 2; i++) {
            rq_arena arena = {0};
            rq_slice found;
            assert_int_equal(
                rq_vfs_read_file(v, i == 0 ? "first" : "second", 5000, &arena, &found, NULL),
                RQ_OK);
            survived[i] = 0;
            for (size_t b = 0; b < found.len; b += 512)
                survived[i] += found.ptr[b] == 'x';
            short_size += found.len > 0 && found.len < 4096;
            bytes_lost += survived[i] == 0;
            bytes_kept += survived[i] == 8;
            torn += survived[i] > 0 && survived[i] < 8;
            later_before_earlier += found.len == 4096 && found.ptr[0] == 0 && survived[i] > 0;
            rq_arena_clear(&arena);
        }
        second_without_first += survived[1] == 8 && survived[0] == 0;
        rq_sim_free(sim);
    }
    assert_true(name_lost > 50 && name_kept > 50);
    assert_true(bytes_lost > 50 && bytes_kept > 50 && torn > 50 && short_size > 50);
    assert_true(second_without_first > 10 && remove_undone > 50 && link_lost > 50);
    assert_true(later_before_earlier > 20);
}

static void a_sync_after_a_failed_one_saves_nothing(void **state)
{
    (void)state;
    int lost = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        rq_sim *sim = new_sim(seed);
        rq_file *f = create(sim, "f");
        assert_int_equal(rq_vfs_sync_dir(rq_sim_env(sim)->vfs, "", NULL), RQ_OK);
        assert_int_equal(rq_file_write(f, "x", 1, 0, NULL), RQ_OK);
        rq_sim_fail_at(sim, rq_sim_calls(sim) + 1, RQ_E_IO);
        assert_int_equal(rq_file_sync(f, NULL), RQ_E_IO);
        assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
        rq_file_close(f);
        rq_sim_restart(sim);
        rq_arena arena = {0};
        rq_slice found;
        assert_int_equal(rq_vfs_read_file(rq_sim_env(sim)->vfs, "f", 10, &arena, &found, NULL),
                         RQ_OK);
        lost += found.len == 0 || found.ptr[0] != 'x';
        rq_arena_clear(&arena);
        rq_sim_free(sim);
    }
    assert_true(lost > 20);
}

static void after_a_cut_every_call_fails_until_restart(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(7);
    rq_vfs *v = rq_sim_env(sim)->vfs;
    rq_file *f = create(sim, "f");
    uint64_t calls = rq_sim_calls(sim);
    rq_sim_cut_at(sim, calls + 2);
    assert_int_equal(rq_file_write(f, "a", 1, 0, NULL), RQ_OK);
    assert_int_equal(rq_file_write(f, "b", 1, 1, NULL), RQ_E_IO);
    assert_true(rq_sim_is_cut(sim));
    char b;
    size_t len;
    rq_stat st;
    assert_int_equal(rq_file_read(f, &b, 1, 0, &len, NULL), RQ_E_IO);
    assert_int_equal(rq_file_try_read(f, &b, 1, 0, &len), RQ_E_IO);
    assert_int_equal(rq_vfs_stat(v, "f", &st, NULL), RQ_E_IO);
    assert_int_equal(rq_vfs_mkdir(v, "d", NULL), RQ_E_IO);
    assert_int_equal(rq_sim_calls(sim), calls + 2);
    rq_sim_restart(sim);
    /* a file opened before the restart */
    assert_int_equal(rq_file_read(f, &b, 1, 0, &len, NULL), RQ_E_IO);
    assert_int_equal(rq_file_close(f), RQ_OK);
    assert_int_equal(rq_vfs_mkdir(v, "d", NULL), RQ_OK);
    rq_file *lock;
    assert_int_equal(rq_vfs_lock(v, "lock", &lock, NULL), RQ_OK);
    rq_sim_restart(sim);
    rq_file *again;
    assert_int_equal(rq_vfs_lock(v, "lock", &again, NULL), RQ_OK);
    rq_file_close(lock);
    rq_file_close(again);
    rq_sim_free(sim);
}

/* --- the executor ------------------------------------------------------------------------- */

typedef struct walker {
    rq_task task;
    rq_sim *sim;
    rq_latch *waits_for;
    rq_latch *opens;
    char *trace;
    char name;
} walker;

static void walker_run(rq_task *task)
{
    walker *w = RQ_CONTAINER_OF(task, walker, task);
    rq_executor *ex = rq_sim_env(w->sim)->executor;
    if (w->waits_for != NULL) ex->latch_wait(w->waits_for);
    w->trace[strlen(w->trace)] = w->name;
    if (w->opens != NULL) ex->latch_open(w->opens, RQ_OK);
}

/* Task a waits for b's latch; b, begun later on the same thread, waits for c's. a must continue
 * before b ends.
 */
static void a_task_goes_on_when_its_latch_opens_and_not_later(void **state)
{
    (void)state;
    char first_trace[8] = "";
    bool differs = false;
    for (uint64_t seed = 0; seed < 50; seed++) {
        rq_sim *sim = new_sim(seed);
        rq_executor *ex = rq_sim_env(sim)->executor;
        rq_latch l[4];
        for (int i = 0; i < 4; i++)
            ex->latch_init(ex, &l[i]);
        char trace[8] = "";
        walker w[] = {
            {.waits_for = &l[0], .opens = &l[1], .name = 'a'},
            {.waits_for = &l[1], .opens = &l[2], .name = 'b'},
            {.opens = &l[0], .name = 'c'},
            {.name = 'd'},
            {.waits_for = &l[2], .opens = &l[3], .name = 'e'},
        };
        for (size_t i = 0; i < RQ_ARRAY_LEN(w); i++) {
            w[i].task.run = walker_run;
            w[i].sim = sim;
            w[i].trace = trace;
            ex->submit(ex, RQ_POOL_WORK, &w[i].task);
        }
        assert_int_equal(rq_sim_run_until(sim, &l[3]), RQ_OK);
        rq_sim_run(sim);
        const char *order = "cabe";
        for (const char *t = trace; *t != '\0'; t++)
            if (*t == *order) order++;
        assert_string_equal(order, "");
        if (seed == 0) strcpy(first_trace, trace);
        differs = differs || strcmp(first_trace, trace) != 0;
        rq_sim_free(sim);
    }
    assert_true(differs); /* the order depends on the seed */
}

static void lanes_keep_order_and_the_clock_is_moved_by_hand(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(3);
    rq_executor *ex = rq_sim_env(sim)->executor;
    rq_lane *lane;
    assert_int_equal(rq_sim_lane_new(sim, &lane), RQ_OK);
    char trace[8] = "";
    walker w[3];
    for (int i = 0; i < 3; i++) {
        w[i] =
            (walker){.task.run = walker_run, .sim = sim, .trace = trace, .name = (char)('a' + i)};
        rq_lane_post(lane, &w[i].task);
    }
    rq_sim_run(sim);
    assert_string_equal(trace, "abc");
    uint64_t before = ex->now_ns(ex);
    rq_sim_advance(sim, 5000000000u);
    assert_true(ex->now_ns(ex) >= before + 5000000000u);
    ex->lane_free(ex, lane);
    rq_sim_free(sim);
}

typedef struct ticker {
    rq_timer timer;
    rq_sim *sim;
    rq_lane *lane;
    rq_latch *latch;
    int left;
} ticker;

static void ticker_run(rq_task *task)
{
    ticker *t = RQ_CONTAINER_OF(task, ticker, timer.task);
    rq_executor *ex = rq_sim_env(t->sim)->executor;
    if (--t->left == 0)
        ex->latch_open(t->latch, RQ_E_END);
    else
        ex->timer_arm(ex, &t->timer, t->lane, 3600000000000u);
}

static void a_hundred_hours_pass_in_no_time(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(4);
    rq_executor *ex = rq_sim_env(sim)->executor;
    rq_lane *lane;
    assert_int_equal(rq_sim_lane_new(sim, &lane), RQ_OK);
    rq_latch latch;
    ex->latch_init(ex, &latch);
    ticker t = {
        .timer.task.run = ticker_run, .sim = sim, .lane = lane, .latch = &latch, .left = 100};
    int64_t began = ex->now_ms(ex);
    ex->timer_arm(ex, &t.timer, lane, 3600000000000u);
    assert_int_equal(rq_sim_run_until(sim, &latch), RQ_E_END);
    assert_true(ex->now_ms(ex) - began >= 100 * 3600000ll);
    ex->lane_free(ex, lane);
    rq_sim_free(sim);
}

/* --- the same seed, the same run ---------------------------------------------------------- */

static char *scribble(uint64_t seed)
{
    rq_sim *sim = new_sim(seed);
    rq_vfs *v = rq_sim_env(sim)->vfs;
    for (int i = 0; i < 50; i++) {
        char path[16];
        snprintf(path, sizeof path, "f%d", (int)(rq_sim_random(sim) % 7));
        if (rq_sim_random(sim) % 5 == 0) {
            rq_err unimportant = rq_vfs_remove(v, path, NULL);
            (void)unimportant;
            continue;
        }
        rq_file *f = create(sim, path);
        char bytes[2000];
        memset(bytes, (int)(rq_sim_random(sim) % 256), sizeof bytes);
        assert_int_equal(
            rq_file_write(f, bytes, rq_sim_random(sim) % 2000, rq_sim_random(sim) % 2000, NULL),
            RQ_OK);
        if (rq_sim_random(sim) % 3 == 0) assert_int_equal(rq_file_sync(f, NULL), RQ_OK);
        if (rq_sim_random(sim) % 3 == 0) assert_int_equal(rq_vfs_sync_dir(v, "", NULL), RQ_OK);
        rq_file_close(f);
    }
    rq_sim_restart(sim);
    char *tree = rq_sim_tree(sim);
    rq_sim_free(sim);
    assert_non_null(tree);
    return tree;
}

static void the_same_seed_gives_the_same_disk(void **state)
{
    (void)state;
    int different = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        char *a = scribble(seed), *b = scribble(seed), *c = scribble(seed + 1);
        assert_string_equal(a, b);
        different += strcmp(a, c) != 0;
        free(a);
        free(b);
        free(c);
    }
    assert_true(different > 45);
}

/* --- leases of revoked tenures ---------------------------------------------------------------- */

static uint64_t wait_for(rq__quiet_times *q, unsigned number, uint64_t now_ns)
{
    char name[RQ_SHARED_NAME_MAX + 1];
    snprintf(name, sizeof name, "%0*u", RQ_SHARED_NAME_MAX, number);
    return rq__quiet_time(q, name, now_ns);
}

/* A tenure that is forgotten is waited for once more, but never too short. */
static void a_lease_is_waited_for_once_unless_it_is_forgotten(void **state)
{
    (void)state;
    rq__quiet_times q;
    rq__quiet_times_init(&q);
    for (unsigned i = 0; i < RQ__QUIET_MAX; i++)
        assert_int_equal(wait_for(&q, i, i), i + RQ_LEASE_WAIT_NS);
    for (unsigned i = 0; i < RQ__QUIET_MAX; i++)
        assert_int_equal(wait_for(&q, i, 1000), i + RQ_LEASE_WAIT_NS);
    assert_int_equal(wait_for(&q, RQ__QUIET_MAX, 2000), 2000 + RQ_LEASE_WAIT_NS);
    assert_int_equal(wait_for(&q, 1, 3000), 1 + RQ_LEASE_WAIT_NS);
    assert_int_equal(wait_for(&q, 0, 3000), 3000 + RQ_LEASE_WAIT_NS); /* the oldest was forgotten */
    assert_int_equal(wait_for(&q, RQ__QUIET_MAX, 4000), 2000 + RQ_LEASE_WAIT_NS);
    rq__quiet_times_clear(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synced_bytes_under_synced_names_survive),
        cmocka_unit_test(folders_made_after_a_failed_sync_survive),
        cmocka_unit_test(a_moved_file_is_never_lost),
        cmocka_unit_test(unsynced_things_are_lost_each_in_its_own_way),
        cmocka_unit_test(a_sync_after_a_failed_one_saves_nothing),
        cmocka_unit_test(after_a_cut_every_call_fails_until_restart),
        cmocka_unit_test(a_task_goes_on_when_its_latch_opens_and_not_later),
        cmocka_unit_test(lanes_keep_order_and_the_clock_is_moved_by_hand),
        cmocka_unit_test(a_hundred_hours_pass_in_no_time),
        cmocka_unit_test(the_same_seed_gives_the_same_disk),
        cmocka_unit_test(a_lease_is_waited_for_once_unless_it_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
