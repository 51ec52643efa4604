/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masters of a cluster are killed after each of their steps on shared storage, and at each of their
 * file calls.
 *
 * The first master is killed while it lays out the store: the next master fences it, completes the
 * store, and finds the same catalog as a master that was not interrupted; so does a third master, also after a power
 * cut. Instead of being killed, the first master may find that a file call fails.
 *
 * A master is killed while it truncates a region, and the next one while it completes the
 * truncation: an acknowledged truncation holds, rows written after it exist, and the region's old
 * rows are removed all or not at all.
 *
 * STRIDE=n takes each n-th point (1: all); SEED=n repeats a run.
 */
#include "../unit/catalog/world.h"

#include "vfs/sim_shared.h"
#include "wal/head.h"

#include <inttypes.h>

#define ID "11111111-2222-4333-8444-555555555555"
#define NEVER UINT64_MAX

typedef struct master {
    rq_sim_node *node;
    rq_tenure *tenure;
    char name[64];
    const char *fenced[2]; /* names of earlier masters, or NULL */
    world *w;
    rq_err rc;
    bool done;
    rq_task task;
} master;

/* Calls to servers that do not share their log with the master. */
static void make_calls(void *ctx, world *w, rq_region_calls *ret)
{
    (void)ctx;
    *ret = rq_host_calls(w->host);
}

static void free_calls(void *ctx)
{
    (void)ctx;
}

/* RQ_E_NOT_FOUND: that master ended before it had a log, or its log is no longer needed. */
static rq_err fence(master *m, const char *name)
{
    uint64_t quiet_ns;
    rq_shared *shared = rq_sim_node_shared(m->node);
    rq_err rc = rq_wal_fence(shared, name, m->name, &quiet_ns, &m->w->why);
    return rc == RQ_E_NOT_FOUND ? RQ_OK : rc;
}

static rq_err open_master(master *m)
{
    rq_shared *shared = rq_sim_node_shared(m->node);
    world *w = m->w;
    for (size_t i = 0; i < RQ_ARRAY_LEN(m->fenced); i++)
        if (m->fenced[i] != NULL) RQ_TRY(fence(m, m->fenced[i]));
    RQ_TRY(rq_tenure_begin(shared, m->name, &m->tenure, &w->why));
    RQ_TRY(rq_root_join(w->env->vfs, ID, &w->why));
    w->tenure = m->tenure;
    w->server_name = m->name;
    return world_open(w);
}

static void run_master(rq_task *task)
{
    master *m = RQ_CONTAINER_OF(task, master, task);
    m->rc = open_master(m);
    m->done = true;
}

static void start(master *m, world *w, rq_sim_storage *storage, const char *fenced)
{
    *m = (master){.w = w, .fenced = {fenced}, .task.run = run_master};
    assert_int_equal(rq_sim_node_new(storage, 1000000000, 0, &m->node), RQ_OK);
    w->why = (rq_error){0};
    w->start_code += 10; /* the master may end before its world has been opened */
    snprintf(m->name, sizeof m->name, "localhost,16020,%" PRId64, w->start_code + 1);
    w->env->executor->submit(w->env->executor, RQ_POOL_WORK, &m->task);
}

/* Runs at most `steps` steps; returns true if the start has completed. */
static bool run_steps(master *m, uint64_t steps)
{
    for (; steps > 0 && !m->done; steps--)
        if (!rq_sim_step(m->w->sim)) rq_sim_advance(m->w->sim, 1000000);
    return m->done;
}

static void end(master *m)
{
    rq_tenure_free(m->tenure);
    rq_sim_run(m->w->sim);
    rq_sim_node_free(m->node);
}

/* Kills the master; if `cuts_power`, the storage also loses what was not synced. */
static void stop_master(master *m, bool cuts_power)
{
    world *w = m->w;
    rq_sim_node_kill(m->node);
    if (!rq_sim_is_cut(w->sim)) rq_sim_cut_now(w->sim);
    /* otherwise calls that wait for the log would not return */
    if (w->engine != NULL) rq_wal_abort(rq_engine_wal(w->engine));
    (void)run_steps(m, NEVER);
    (void)world_close(w, false);
    end(m);
    rq_sim_advance(w->sim, 30000000000); /* messages in transit arrive; the restart drops timers */
    rq_sim_cut_at(w->sim, 0);
    if (cuts_power)
        rq_sim_restart(w->sim);
    else
        rq_sim_restart_process(w->sim);
}

static void kill_master(master *m)
{
    stop_master(m, false);
}

/* Waits for the start of a master that is not killed; returns the catalog that it finds,
 * malloc'ed. */
static char *describe(master *m)
{
    world *w = m->w;
    (void)run_steps(m, NEVER);
    if (m->rc != RQ_OK) fail_msg("%s does not start: %s", m->name, w->why.message);
    assert_true(world_settle(w));
    char *wrong = world_check(w);
    assert_string_equal(wrong, "");
    free(wrong);
    return world_describe(w);
}

static char *start_and_describe(master *m, world *w, rq_sim_storage *storage, const char *fenced)
{
    start(m, w, storage, fenced);
    return describe(m);
}

/* Kills the first master at this step or file call (NEVER: once it serves), or makes the call fail, and compares the
 * catalog that the second master finds with `expected` (NULL: does not compare). Returns this
 * catalog, malloc'ed. *ret_done: whether the first master had started completely before that. */
static char *interrupt(uint64_t seed, uint64_t step, uint64_t call, bool fails,
                       const char *expected, bool *ret_done)
{
    bool cuts_power = call % 2 == 0 || (call == NEVER && step % 2 == 0);
    world w;
    rq_sim_storage *storage;
    master first, second, third;
    world_init(&w, seed, NULL);
    w.late = w.by_messages = false;
    w.make_calls = make_calls;
    w.free_calls = free_calls;
    w.cluster_id = ID;
    assert_int_equal(rq_sim_storage_new(w.sim, 0, &storage), RQ_OK);
    uint64_t faulty = call == NEVER ? NEVER : rq_sim_calls(w.sim) + call;
    if (fails)
        rq_sim_fail_at(w.sim, faulty, RQ_E_IO);
    else if (call != NEVER)
        rq_sim_cut_at(w.sim, faulty);
    start(&first, &w, storage, NULL);
    *ret_done = run_steps(&first, step) && first.rc == RQ_OK && rq_sim_calls(w.sim) < faulty;
    kill_master(&first);
    char *found = start_and_describe(&second, &w, storage, first.name);
    if (expected != NULL && strcmp(found, expected) != 0)
        fail_msg("killed at step %" PRIu64 ", file call %" PRIu64
                 ", the next one finds\n%s\nnot\n%s",
                 step, call, found, expected);
    assert_int_equal(world_create(&w, "t", "f", "m"), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    stop_master(&second, cuts_power);
    free(start_and_describe(&third, &w, storage, second.name));
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    kill_master(&third);
    rq_sim_storage_free(storage);
    world_clear(&w);
    return found;
}

static uint64_t stride(uint64_t usual)
{
    const char *text = getenv("STRIDE");
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

static void a_first_master_killed_at_any_point_is_followed(void **state)
{
    (void)state;
    uint64_t seed = unit_seed(), points = 0;
    bool done;
    char *expected = interrupt(seed, NEVER, NEVER, false, NULL, &done);
    assert_true(done);
    done = false;
    for (uint64_t step = seed % 5; !done; step += stride(5), points++)
        free(interrupt(seed, step, NEVER, false, expected, &done));
    done = false;
    for (uint64_t call = 1 + seed % 7; !done; call += stride(7), points++)
        free(interrupt(seed, NEVER, call, false, expected, &done));
    done = false;
    for (uint64_t call = 1 + seed % 7; !done; call += stride(7), points++)
        free(interrupt(seed, NEVER, call, true, expected, &done));
    free(expected);
    printf("%" PRIu64 " points\n", points);
}

/* --- a region is truncated ------------------------------------------------------------------------ */

typedef struct truncation {
    rq_ddl ddl;
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    bool answered;
} truncation;

static void answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, truncation, ddl)->answered = true;
}

static void submit_truncation(world *w, truncation *t, const char *encoded)
{
    *t = (truncation){.answered = false};
    snprintf(t->encoded, sizeof t->encoded, "%s", encoded);
    t->ddl = (rq_ddl){.kind = RQ_DDL_TRUNCATE_REGION,
                      .ns = RQ_SLICE_LIT("default"),
                      .qualifier = RQ_SLICE_LIT("t"),
                      .user = RQ_SLICE_LIT("tester"),
                      .wait_finished = true,
                      .submitted = answered,
                      .of.one_region.region = rq_slice_cstr(t->encoded)};
    rq_catalog_submit(w->catalog, &t->ddl);
}

/* Finds the encoded name of the region that has row p. */
static void encoded_of(world *w, char ret[static RQ_ENCODED_NAME_LEN + 1])
{
    char *name = world_region_name(w, "t", "p");
    snprintf(ret, RQ_ENCODED_NAME_LEN + 1, "%s", strrchr(name, '.') - RQ_ENCODED_NAME_LEN);
    free(name);
}

/* Writes rows that are in a file, and rows that are only in the log. */
static void fill(world *w)
{
    OK(world_create(w, "t", "f", "m"));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "p", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    OK(world_put(w, "t", "q", "f"));
}

static bool is_there(world *w, const char *row)
{
    rq_err rc = world_get(w, "t", row, "f");
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) fail_msg("row %s: %s", row, rq_err_name(rc));
    return rc == RQ_OK;
}

static void check_truncated(world *w, const char *name, bool acknowledged)
{
    bool p = is_there(w, "p"), q = is_there(w, "q");
    if (p != q || (acknowledged && p) || !is_there(w, "a") || is_there(w, "z") != acknowledged)
        fail_msg("%s finds a=%d p=%d q=%d z=%d, acknowledged=%d", name, is_there(w, "a"), p, q,
                 is_there(w, "z"), acknowledged);
}

/* The first master truncates a region and is killed at this step or file call. The second master is
 * killed after `later` steps of its start; NEVER: there is no second master. *ret_done: whether the
 * truncation was acknowledged before the kill. */
static void interrupt_truncation(uint64_t seed, uint64_t step, uint64_t call, uint64_t later,
                                 bool *ret_done)
{
    world w;
    rq_sim_storage *storage;
    master first, second, third;
    truncation t;
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    world_init(&w, seed, NULL);
    w.late = w.by_messages = false;
    w.make_calls = make_calls;
    w.free_calls = free_calls;
    w.cluster_id = ID;
    assert_int_equal(rq_sim_storage_new(w.sim, 0, &storage), RQ_OK);
    free(start_and_describe(&first, &w, storage, NULL));
    fill(&w);
    encoded_of(&w, encoded);
    if (call != NEVER) rq_sim_cut_at(w.sim, rq_sim_calls(w.sim) + call);
    submit_truncation(&w, &t, encoded);
    for (; step > 0 && !t.answered && !rq_sim_is_cut(w.sim); step--)
        if (!rq_sim_step(w.sim)) rq_sim_advance(w.sim, 1000000);
    *ret_done = t.answered && t.ddl.rc == RQ_OK;
    if (*ret_done && world_put(&w, "t", "z", "f") != RQ_OK) fail_msg("%s", w.why.message);
    kill_master(&first);
    if (later != NEVER) {
        start(&second, &w, storage, first.name);
        (void)run_steps(&second, later);
        kill_master(&second);
    }
    start(&third, &w, storage, first.name);
    if (later != NEVER) third.fenced[1] = second.name;
    free(describe(&third));
    check_truncated(&w, third.name, *ret_done);
    assert_int_equal(world_truncate_region(&w, "t", "p"), RQ_OK);
    assert_false(is_there(&w, "p") || is_there(&w, "z"));
    kill_master(&third);
    rq_sim_storage_free(storage);
    world_clear(&w);
}

static void a_master_killed_in_a_truncation_is_followed(void **state)
{
    (void)state;
    uint64_t seed = unit_seed(), points = 0;
    bool done = false;
    for (uint64_t step = seed % 5; !done; step += stride(5), points++) {
        interrupt_truncation(seed, step, NEVER, NEVER, &done);
        interrupt_truncation(seed, step, NEVER, (seed + points * 37) % 2000, &done);
    }
    done = false;
    for (uint64_t call = 1 + seed % 3; !done; call += stride(3), points++)
        interrupt_truncation(seed, NEVER, call, NEVER, &done);
    printf("%" PRIu64 " points\n", points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_master_killed_at_any_point_is_followed),
        cmocka_unit_test(a_master_killed_in_a_truncation_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
