/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that is sometimes full while a server runs: during a random history (engine_history.h)
 * the disk's capacity is reduced and restored at random moments, in the middle of writes, flushes,
 * compactions and log rolls. Writes may be refused, with a RegionTooBusyException that gives the
 * reason; reads continue; with space again everything continues without a restart, no acknowledged
 * write is lost, and no partial file stays.
 *
 * RQ_SEEDS=n runs n random seeds from RQ_FIRST=f on; RQ_SEED=s runs one. */
#include "engine_history.h"
#include "store/store.h"
#include "../seeds.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STEPS 150
#define SECOND ((uint64_t)1000 * 1000 * 1000)

/* --- free space that changes ------------------------------------------------------------------ */

typedef struct space {
    rq_sim *sim;
    rq_lane *lane;
    rq_timer timer;
    bool ends;
} space;

/* Sets a quota below, at, or slightly above the used space, or none. */
static void change(rq_sim *sim)
{
    uint64_t used = rq_sim_used(sim);
    switch (rq_sim_random(sim) % 8) {
    case 0:
        rq_sim_quota(sim, 1);
        break;
    case 1:
        rq_sim_quota(sim, used);
        break;
    case 2:
    case 3:
    case 4:
        rq_sim_quota(sim, used + rq_sim_random(sim) % (64 << rq_sim_random(sim) % 12));
        break;
    default:
        rq_sim_quota(sim, 0);
        break;
    }
}

static void arm(space *s)
{
    rq_executor *ex = rq_sim_env(s->sim)->executor;
    /* Between the time of two calls of a flush and a few seconds. */
    uint64_t most = (uint64_t)1 << (12 + rq_sim_random(s->sim) % 21);
    ex->timer_arm(ex, &s->timer, s->lane, 1 + rq_sim_random(s->sim) % most);
}

/* Changes the space also while work waits for it. */
static void tick(rq_task *task)
{
    space *s = RQ_CONTAINER_OF(task, space, timer.task);
    if (s->ends) return;
    change(s->sim);
    arm(s);
}

static void begin(space *s, rq_sim *sim)
{
    *s = (space){.sim = sim};
    assert_int_equal(rq_sim_lane_new(sim, &s->lane), RQ_OK);
    s->timer.task.run = tick;
    arm(s);
}

static void end(space *s)
{
    rq_executor *ex = rq_sim_env(s->sim)->executor;
    s->ends = true;
    /* the timer has fired: its task is about to run */
    if (!ex->timer_cancel(ex, &s->timer)) rq_sim_run(s->sim);
    ex->lane_free(ex, s->lane);
    rq_sim_quota(s->sim, 0);
}

/* --- a history -------------------------------------------------------------------------------- */

typedef struct outcome {
    bool good;
    unsigned refused;
    char text[1300];
} outcome;

static void take_fault(outcome *o, const history *h, const char *when)
{
    if (!o->good || h->fault[0] == '\0') return;
    o->good = false;
    snprintf(o->text, sizeof o->text, "%s: %s", when, h->fault);
}

/* The number of files in a family's folder. A file that the region does not know would stay until
 * the region closes. */
static unsigned count_files(history *h, const char *family)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    unsigned files = 0;
    const char *dir = rq_arena_printf(&arena, "data/default/t/%s/%s", h->info.encoded, family);
    assert_int_equal(rq_vfs_list(h->env->vfs, dir, &arena, &entries, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++)
        files += !entries[i].is_dir;
    rq_arena_clear(&arena);
    return files;
}

static outcome run_once(uint64_t seed)
{
    outcome o = {.good = true};
    rq_sim *sim;
    history h;
    space s;
    rq_sim_options options = {.again_percent = seed % 4 * 20};
    assert_int_equal(rq_sim_new(seed, &options, &sim), RQ_OK);
    history_init(&h, sim, seed);
    char wait[64];
    snprintf(wait, sizeof wait, "hbase.busy.wait.duration=%u", 100 + (unsigned)(seed % 7) * 3000);
    assert_int_equal(rq_config_set_pair(h.config, wait, NULL), RQ_OK);
    if (seed % 3 == 1)
        assert_int_equal(rq_config_set_pair(h.config, "rorqual.wal.sync=handover", NULL), RQ_OK);
    assert_true(history_open(&h));
    for (int round = 0; round < 3 && o.good; round++) {
        h.full = true;
        begin(&s, sim);
        for (int i = 0; i < STEPS && h.fault[0] == '\0'; i++) {
            if (rq_sim_random(sim) % 8 == 0) change(sim);
            history_steps(&h, 1);
        }
        take_fault(&o, &h, "while the disk is full now and then");
        history_check(&h); /* reads, and retries increments in flight */
        take_fault(&o, &h, "read while the disk may be full");
        end(&s);
        rq_sim_advance(sim, 20 * SECOND);
        h.full = false;
        if (o.good) history_steps(&h, STEPS / 3);
        take_fault(&o, &h, "with space again");
        history_check(&h);
        take_fault(&o, &h, "checked with space again");
    }
    /* Failed work is repeated automatically, and no partial file remains. */
    rq_sim_advance(sim, 300 * SECOND);
    rq_region_load load;
    rq_region_get_load(h.region, &load);
    unsigned files = count_files(&h, "a") + count_files(&h, "b");
    if (o.good && files != load.storefiles) {
        o.good = false;
        snprintf(o.text, sizeof o.text, "%u files in the folders, %u known", files,
                 (unsigned)load.storefiles);
    }
    history_close(&h, true);
    take_fault(&o, &h, "at the stop");
    if (o.good && history_open(&h)) {
        history_check(&h);
        history_close(&h, true);
    }
    take_fault(&o, &h, "after the stop");
    o.refused = h.refused;
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void a_disk_that_is_full_now_and_then_is_survived(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(100);
    uint64_t refused = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome o = run_once(seed);
        refused += o.refused;
        if (!o.good) fail_msg("seed %" PRIu64 ": %s", seed, o.text);
    }
    print_message("%" PRIu64 " writes were refused\n", refused);
    if (!seeds.one) assert_true(refused > seeds.last - seeds.first + 1);
}

/* --- killed on a full disk -------------------------------------------------------------------- */

/* Ends the process, by a kill or a power cut. It leaves the log, the manifests, and incomplete
 * files. */
static void die(history *h, bool power)
{
    if (!rq_sim_is_cut(h->sim)) rq_sim_cut_now(h->sim);
    history_close(h, false);
    rq_sim_cut_at(h->sim, 0);
    if (power)
        rq_sim_restart(h->sim);
    else
        rq_sim_restart_process(h->sim);
}

/* Starts on a full disk; sometimes it is killed again before it has opened. */
static void start_when_full(history *h, outcome *o)
{
    for (unsigned again = (unsigned)(rq_sim_random(h->sim) % 3); o->good && again > 0; again--) {
        rq_sim_cut_at(h->sim, rq_sim_calls(h->sim) + 1 + rq_sim_random(h->sim) % 60);
        if (history_open(h)) history_steps(h, STEPS / 10);
        take_fault(o, h, "killed while it starts on a full disk");
        die(h, rq_sim_random(h->sim) % 2 == 0);
    }
    if (o->good && !history_open(h) && h->fault[0] == '\0')
        snprintf(h->fault, sizeof h->fault, "not opened");
    take_fault(o, h, "started on a full disk");
}

static outcome kill_once(uint64_t seed)
{
    outcome o = {.good = true};
    rq_sim *sim;
    history h;
    space s;
    rq_sim_options options = {.again_percent = seed % 4 * 20};
    assert_int_equal(rq_sim_new(seed, &options, &sim), RQ_OK);
    history_init(&h, sim, seed);
    assert_true(history_open(&h));
    history_steps(&h, STEPS / 3);
    for (int round = 0; round < 3 && o.good; round++) {
        h.full = true;
        begin(&s, sim);
        for (int i = 0; i < STEPS / 2 && h.fault[0] == '\0'; i++) {
            if (rq_sim_random(sim) % 8 == 0) change(sim);
            history_steps(&h, 1);
        }
        end(&s);
        take_fault(&o, &h, "while the disk is full now and then");
        rq_sim_quota(sim, 1);
        if (rq_sim_random(sim) % 2 == 0)
            rq_sim_cut_at(sim, rq_sim_calls(sim) + 1 + rq_sim_random(sim) % 40);
        history_steps(&h, STEPS / 10);
        take_fault(&o, &h, "while the disk is full");
        die(&h, rq_sim_random(sim) % 2 == 0);
        if (o.good) start_when_full(&h, &o);
        if (!o.good) break;
        history_check(&h);
        take_fault(&o, &h, "read on a full disk after the kill");
        history_steps(&h, STEPS / 10);
        take_fault(&o, &h, "at work on a full disk after the kill");
        rq_sim_quota(sim, 0);
        rq_sim_advance(sim, 20 * SECOND);
        h.full = false;
        history_steps(&h, STEPS / 3);
        take_fault(&o, &h, "with space again");
        history_check(&h);
        take_fault(&o, &h, "checked with space again");
    }
    o.refused = h.refused;
    if (h.engine != NULL) history_close(&h, o.good);
    take_fault(&o, &h, "at the stop");
    if (o.good && history_open(&h)) {
        history_check(&h);
        history_close(&h, true);
    }
    take_fault(&o, &h, "after the stop");
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void a_server_that_was_killed_on_a_full_disk_starts_on_it(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(100);
    uint64_t refused = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome o = kill_once(seed);
        refused += o.refused;
        if (!o.good) fail_msg("seed %" PRIu64 ": %s", seed, o.text);
    }
    print_message("%" PRIu64 " writes were refused\n", refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_that_is_full_now_and_then_is_survived),
        cmocka_unit_test(a_server_that_was_killed_on_a_full_disk_starts_on_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
