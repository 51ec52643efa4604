/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first master of a cluster is killed while it lays out the store: after each of its steps on shared storage, and
 * at each of its file calls. The next master fences it, completes the store, and finds the same
 * catalog as a master that was not interrupted; so does a third master.
 *
 * STRIDE=n takes each n-th point (1: all).
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
    const char *fenced; /* name of the previous master; NULL: this is the first */
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

static rq_err open_master(master *m)
{
    rq_shared *shared = rq_sim_node_shared(m->node);
    uint64_t quiet_ns;
    rq_error why = {0};
    world *w = m->w;
    if (m->fenced != NULL) {
        rq_err rc = rq_wal_fence(shared, m->fenced, m->name, &quiet_ns, &why);
        if (rc != RQ_OK) fail_msg("%s", why.message);
    }
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
    *m = (master){.w = w, .fenced = fenced, .task.run = run_master};
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

static void kill_master(master *m)
{
    world *w = m->w;
    rq_sim_node_kill(m->node);
    if (!rq_sim_is_cut(w->sim)) rq_sim_cut_now(w->sim);
    /* otherwise the start is retried forever */
    if (w->engine != NULL) rq_wal_abort(rq_engine_wal(w->engine));
    (void)run_steps(m, NEVER);
    (void)world_close(w, false);
    end(m);
    rq_sim_advance(w->sim, 30000000000); /* messages in transit arrive; the restart drops timers */
    rq_sim_cut_at(w->sim, 0);
    rq_sim_restart_process(w->sim);
}

/* Runs a start without a kill; returns the catalog that it finds, malloc'ed. */
static char *start_and_describe(master *m, world *w, rq_sim_storage *storage, const char *fenced)
{
    start(m, w, storage, fenced);
    (void)run_steps(m, NEVER);
    if (m->rc != RQ_OK) fail_msg("%s does not start: %s", m->name, w->why.message);
    assert_true(world_settle(w));
    char *wrong = world_check(w);
    assert_string_equal(wrong, "");
    free(wrong);
    return world_describe(w);
}

/* Kills the first master at this step or file call. `expected` NULL: does not kill it. Returns the
 * catalog that the next master finds, malloc'ed. *ret_done: the first master was already
 * serving. */
static char *interrupt(uint64_t seed, uint64_t step, uint64_t call, const char *expected,
                       bool *ret_done)
{
    world w;
    rq_sim_storage *storage;
    master first, second, third;
    world_init(&w, seed, NULL);
    w.late = w.by_messages = false;
    w.make_calls = make_calls;
    w.free_calls = free_calls;
    w.cluster_id = ID;
    assert_int_equal(rq_sim_storage_new(w.sim, 0, &storage), RQ_OK);
    if (call != NEVER) rq_sim_cut_at(w.sim, rq_sim_calls(w.sim) + call);
    start(&first, &w, storage, NULL);
    *ret_done = run_steps(&first, step) && first.rc == RQ_OK;
    kill_master(&first);
    char *found = start_and_describe(&second, &w, storage, first.name);
    if (expected != NULL && strcmp(found, expected) != 0)
        fail_msg("killed at step %" PRIu64 ", file call %" PRIu64
                 ", the next one finds\n%s\nnot\n%s",
                 step, call, found, expected);
    assert_int_equal(world_create(&w, "t", "f", "m"), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    kill_master(&second);
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
    char *expected = interrupt(seed, NEVER, NEVER, NULL, &done);
    assert_true(done);
    done = false;
    for (uint64_t step = seed % 5; !done; step += stride(5), points++)
        free(interrupt(seed, step, NEVER, expected, &done));
    done = false;
    for (uint64_t call = 1 + seed % 7; !done; call += stride(7), points++)
        free(interrupt(seed, NEVER, call, expected, &done));
    free(expected);
    printf("%" PRIu64 " points\n", points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_master_killed_at_any_point_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
