/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared storage: the same random histories on the simulated storage and on a real folder, with all
 * results compared; and power cuts and failures at every file call of the folder.
 *
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one.
 */
#include "shared_history.h"
#include "shared_world.h"

#include <inttypes.h>
#include <unistd.h>

static uint64_t sim_clock(void *ctx)
{
    rq_executor *ex = ctx;
    return ex->now_ns(ex);
}

static rq_err wait_in_sim(form *f, rq_latch *latch)
{
    return rq_sim_run_until(f->ctx, latch);
}

/* The simulated storage, and a folder. */
typedef struct pair {
    history history;
    rq_sim *sim;
    rq_lane *lane;
    rq_sim_storage *storage;
    rq_sim_node *node;
    rq_vfs *vfs;
} pair;

static form form_in_sim(rq_sim *sim, rq_lane *lane)
{
    rq_executor *executor = rq_sim_env(sim)->executor;
    return (form){.executor = executor, .lane = lane, .wait = wait_in_sim, .ctx = sim};
}

static void pair_open(pair *p, uint64_t seed, const char *folder)
{
    *p = (pair){.history = {.seed = seed}};
    form *forms = p->history.forms;
    assert_int_equal(rq_sim_new(seed, NULL, &p->sim), RQ_OK);
    rq_executor *executor = rq_sim_env(p->sim)->executor;
    assert_int_equal(rq_sim_lane_new(p->sim, &p->lane), RQ_OK);
    assert_int_equal(rq_sim_storage_new(p->sim, 0, &p->storage), RQ_OK);
    assert_int_equal(rq_sim_node_new(p->storage, 1, 0, &p->node), RQ_OK);
    assert_int_equal(rq_vfs_posix_new(folder, &p->vfs, NULL), RQ_OK);
    forms[0] = forms[1] = form_in_sim(p->sim, p->lane);
    forms[0].shared = rq_sim_node_shared(p->node);
    assert_int_equal(rq_shared_posix_new(p->vfs, executor, sim_clock, executor, &forms[1].shared),
                     RQ_OK);
}

static void pair_close(pair *p)
{
    rq_executor *executor = rq_sim_env(p->sim)->executor;
    for (unsigned i = 0; i < 2; i++)
        rq_shared_free(p->history.forms[i].shared);
    rq_sim_node_free(p->node);
    rq_sim_storage_free(p->storage);
    executor->lane_free(executor, p->lane);
    assert_int_equal(rq_vfs_remove_tree(p->vfs, "tenure", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(p->vfs, "object", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(p->vfs, "set", NULL), RQ_OK);
    rq_vfs_free(p->vfs);
    rq_sim_free(p->sim);
}

static void both_forms_answer_the_same(void **state)
{
    (void)state;
    char folder[] = "/tmp/rq-shared-XXXXXX";
    unsigned good[HISTORY_KINDS] = {0}, bad[HISTORY_KINDS] = {0};
    seeds_range seeds = seeds_wanted(30);
    assert_non_null(mkdtemp(folder));
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        pair p;
        pair_open(&p, seed, folder);
        history_run(&p.history, good, bad);
        pair_close(&p);
    }
    assert_int_equal(rmdir(folder), 0);
    if (seeds.last - seeds.first >= 29) history_check(good, bad);
}

/* --- power cuts ----------------------------------------------------------------------------- */

typedef struct script {
    uint64_t seed;
    rq_sim *sim;
    rq_lane *lane;
    uint64_t swapped, tried; /* the counter's last acknowledged value, and the last value tried */
    bool key, removing;      /* the counter may be absent */
    uint64_t written;
} script;

static rq_err count_up(script *c, rq_shared *s)
{
    uint8_t value[8];
    uint64_t generation = c->tried;
    rq_put_be64(value, ++c->tried);
    rq_err rc = rq_object_cas(s, "counter", generation, rq_slice_of(value, 8), &generation, NULL);
    if (rc == RQ_OK) c->swapped = c->tried;
    return rc;
}

static void play(script *c, rq_shared *s)
{
    form f = form_in_sim(c->sim, c->lane);
    uint8_t bytes[EXTENT_MAX];
    rq_err rc = RQ_OK;
    f.shared = s;
    for (unsigned i = 0; i < 4 && rc == RQ_OK; i++)
        rc = count_up(c, s);
    if (rc == RQ_OK) c->key = (rc = rq_set_put(s, "keys", "k", NULL)) == RQ_OK;
    if (rc == RQ_OK) rc = rq_tenure_begin(s, "host,16020,0", &f.tenures[0], NULL);
    if (rc == RQ_OK) rc = form_open_log(&f, &(step){.tenure = 0});
    for (uint64_t lsn = 0; lsn < 12 && rc == RQ_OK; lsn++) {
        step s4 = {.stripe = (unsigned)(lsn % RQ_SLOG_STRIPES)};
        s4.bytes = rq_slice_of(bytes, extent_make(lsn, bytes));
        rc = form_append(&f, &s4);
        if (rc == RQ_OK) c->written = lsn + 1;
    }
    uint64_t quiet_ns;
    if (rc == RQ_OK)
        rc = c->seed % 2 == 0 ? rq_tenure_end(f.tenures[0], NULL)
                              : rq_tenure_revoke(s, "host,16020,0", &quiet_ns, NULL);
    /* With odd seeds the counter is removed at the end. */
    if (rc == RQ_OK && c->seed % 2 == 1) rc = rq_object_remove(s, "counter", c->tried, NULL);
    c->removing = c->swapped == 4 && c->written == 12 && c->seed % 2 == 1;
    form_release(&f, 0);
}

static void check_counter(script *c, rq_shared *s, uint64_t cut)
{
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t generation, value = 0;
    rq_err rc = rq_object_get(s, "counter", &arena, &bytes, &generation, NULL);
    if (rc == RQ_OK) value = rq_get_be64(bytes.ptr);
    if (rc == RQ_E_NOT_FOUND && c->removing) value = c->swapped;
    if ((rc != RQ_OK && rc != RQ_E_NOT_FOUND) || value < c->swapped || value > c->tried)
        fail_msg("seed %" PRIu64 ", cut %" PRIu64 ": %d, counter %" PRIu64 " of %" PRIu64, c->seed,
                 cut, rc, value, c->swapped);
    rq_arena_clear(&arena);
}

static void check_written(script *c, rq_shared *s, uint64_t cut)
{
    form f = {.shared = s};
    answer a = {0};
    uint64_t quiet_ns;
    rq_slog_ledger *ledgers;
    size_t count = 0;
    bool present[12] = {0};
    assert_int_equal(rq_tenure_revoke(s, "host,16020,0", &quiet_ns, NULL), RQ_OK);
    assert_int_equal(rq_slog_lengths(s, "host,16020,0", &f.arena, &ledgers, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count * RQ_SLOG_STRIPES; i++) {
        uint8_t buf[5000];
        size_t len;
        assert_int_equal(rq_slog_read(s, "host,16020,0", &ledgers[i / RQ_SLOG_STRIPES],
                                      (unsigned)(i % RQ_SLOG_STRIPES), 0, buf, sizeof buf, &len,
                                      NULL),
                         RQ_OK);
        (void)extents_of(buf, len, present, 12);
    }
    for (uint64_t lsn = 0; lsn < c->written; lsn++)
        if (!present[lsn]) fail_msg("seed %" PRIu64 ", cut %" PRIu64 ": lost", c->seed, cut);
    form_read_all(&f, "host,16020,0", &a);
    assert_int_equal(a.rc, RQ_OK);
    rq_buf_clear(&a.bytes);
    rq_arena_clear(&f.arena);
}

static void check_set(script *c, rq_shared *s)
{
    form f = {.shared = s};
    answer a = {0};
    form_list_set(&f, "keys", &a);
    assert_int_equal(a.rc, RQ_OK);
    if (c->key) assert_true(rq_slice_eq(rq_buf_slice(&a.bytes), RQ_SLICE_LIT("k\n")));
    rq_buf_clear(&a.bytes);
    rq_arena_clear(&f.arena);
}

/* Makes a simulated disk, and shared storage in a folder on it. */
static rq_shared *script_begin(script *c, uint64_t seed)
{
    rq_shared *s;
    *c = (script){.seed = seed};
    assert_int_equal(rq_sim_new(seed, NULL, &c->sim), RQ_OK);
    rq_env *env = rq_sim_env(c->sim);
    assert_int_equal(rq_sim_lane_new(c->sim, &c->lane), RQ_OK);
    assert_int_equal(rq_shared_posix_new(env->vfs, env->executor, sim_clock, env->executor, &s),
                     RQ_OK);
    return s;
}

/* Returns true if the script ended before the cut. */
static bool cut_once(uint64_t seed, uint64_t cut)
{
    script c;
    rq_shared *s = script_begin(&c, seed);
    rq_env *env = rq_sim_env(c.sim);
    rq_sim_cut_at(c.sim, cut);
    play(&c, s);
    bool through = !rq_sim_is_cut(c.sim);
    rq_sim_restart(c.sim);
    check_counter(&c, s, cut);
    check_set(&c, s);
    check_written(&c, s, cut);
    rq_tenure *again = NULL;
    assert_int_equal(rq_tenure_begin(s, "host,16020,0", &again, NULL), RQ_E_EXISTS);
    env->executor->lane_free(env->executor, c.lane);
    rq_shared_free(s);
    rq_sim_free(c.sim);
    return through;
}

/* A failed call ends the script, as a server would end; all acknowledged writes exist, and retries
 * succeed. Returns true if the script ended before that call. */
static bool fail_once(uint64_t seed, uint64_t call, rq_err rc)
{
    script c;
    rq_shared *s = script_begin(&c, seed);
    rq_env *env = rq_sim_env(c.sim);
    for (uint64_t i = 0; i <= seed % 3; i++)
        rq_sim_fail_at(c.sim, call + i, rc);
    play(&c, s);
    bool through = rq_sim_calls(c.sim) < call;
    /* otherwise the remaining failures would hit the checks */
    while (rq_sim_calls(c.sim) < call + 2) {
        rq_stat st;
        rq_err may_fail = rq_vfs_stat(env->vfs, "", &st, NULL);
        (void)may_fail;
    }
    rq_sim_restart_process(c.sim);
    check_counter(&c, s, call);
    check_set(&c, s);
    check_written(&c, s, call);
    env->executor->lane_free(env->executor, c.lane);
    rq_shared_free(s);
    rq_sim_free(c.sim);
    return through;
}

static void a_failing_call_takes_nothing_acknowledged(void **state)
{
    (void)state;
    static const rq_err errors[] = {RQ_E_IO, RQ_E_NO_SPACE};
    seeds_range seeds = seeds_wanted(8);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t call = 1; !fail_once(seed, call, errors[seed / 2 % 2]); call++)
            ;
}

static void a_power_cut_takes_nothing_acknowledged(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(8);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t cut = 1; !cut_once(seed, cut); cut++)
            ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_answer_the_same),
        cmocka_unit_test(a_power_cut_takes_nothing_acknowledged),
        cmocka_unit_test(a_failing_call_takes_nothing_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
