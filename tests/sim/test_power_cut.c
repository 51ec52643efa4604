/* SPDX-License-Identifier: Apache-2.0 */
/* Power cuts, kills and failing calls in the engine: at every file call of some histories, at random calls
 * of many. After each restart acknowledged writes are complete, others complete or absent, and
 * counters exact (engine_history.h). After a kill everything written is there, but unsynced bytes may still be
 * lost by a later power cut. Without syncs the same test must fail; otherwise it would prove nothing.
 *
 * RQ_SEEDS=n runs n random seeds from RQ_FIRST=f on; RQ_SEED=s runs one, RQ_CUT=k cuts at its k-th
 * file call. */
#include "engine_history.h"
#include "../seeds.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STEPS 60

/* RQ_CUT_MOB, RQ_CUT_LISTS: the same test for MOB families, and with lists of files, with fewer seeds. */
#ifdef RQ_CUT_MOB
#define SEEDS 50
#define begin_history(h, sim, seed)                                                                \
    do {                                                                                           \
        history_init(h, sim, seed);                                                                \
        history_make_mob(h);                                                                       \
    } while (0)
#elif defined RQ_CUT_LISTS
#define SEEDS 50
#define begin_history(h, sim, seed)                                                                \
    do {                                                                                           \
        history_init(h, sim, seed);                                                                \
        history_list_files(h);                                                                     \
    } while (0)
#else
#define SEEDS 200
#define begin_history(h, sim, seed) history_init(h, sim, seed)
#endif

typedef struct outcome {
    bool good;
    uint64_t calls; /* calls of the first round, in which nothing was cut */
    char text[1200];
} outcome;

static void take_fault(outcome *o, const history *h, const char *when)
{
    if (!o->good || h->fault[0] == '\0') return;
    o->good = false;
    snprintf(o->text, sizeof o->text, "%s: %s", when, h->fault);
}

/* Opens the history again and checks it, and writes `steps` further steps. `clean`: closes it cleanly. */
static void look_again(outcome *o, history *h, unsigned steps, bool clean, const char *when)
{
    if (history_open(h)) {
        history_check(h);
        if (steps > 0) history_steps(h, steps);
        history_close(h, clean);
    }
    take_fault(o, h, when);
}

/* After a power cut, or after only the process has died. */
static void restart(rq_sim *sim)
{
    if (rq_sim_random(sim) % 2 == 0)
        rq_sim_restart_process(sim);
    else
        rq_sim_restart(sim);
}

/* One history with a power cut or a kill at call k (0: none), and possibly another one during recovery; then
 * checked, stopped cleanly, and checked again after a power cut. */
static outcome cut_once(uint64_t seed, uint64_t k, bool ignore_sync)
{
    outcome o = {.good = true};
    rq_sim_options options = {.ignore_sync = ignore_sync, .again_percent = seed % 4 * 20};
    rq_sim *sim;
    history h;
    assert_int_equal(rq_sim_new(seed, &options, &sim), RQ_OK);
    begin_history(&h, sim, seed);
    rq_sim_cut_at(sim, k);
    if (history_open(&h)) {
        history_steps(&h, STEPS);
        history_close(&h, false);
    }
    o.calls = rq_sim_calls(sim);
    take_fault(&o, &h, "before the cut");
    for (unsigned again = (unsigned)(rq_sim_random(sim) % 3); o.good && again > 0; again--) {
        restart(sim);
        rq_sim_cut_at(sim, rq_sim_calls(sim) + 1 + rq_sim_random(sim) % 80);
        if (history_open(&h)) {
            history_steps(&h, STEPS / 4);
            history_close(&h, false);
        }
        take_fault(&o, &h, "cut while recovering");
    }
    rq_sim_cut_at(sim, 0);
    restart(sim);
    for (int round = 0; o.good && round < 2; round++) {
        if (round > 0) rq_sim_restart(sim);
        look_again(&o, &h, 0, true, round == 0 ? "after the restart" : "after the clean stop");
    }
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void every_seed_survives_a_random_power_cut(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(SEEDS);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome whole = cut_once(seed, 0, false);
        if (!whole.good) fail_msg("seed %" PRIu64 " without a cut: %s", seed, whole.text);
        uint64_t k = seeds_number("RQ_CUT", 1 + seed * 2654435761u % whole.calls);
        outcome o = cut_once(seed, k, false);
        if (!o.good) fail_msg("seed %" PRIu64 " cut at call %" PRIu64 ": %s", seed, k, o.text);
    }
}

static void a_power_cut_at_every_call_is_survived(void **state)
{
    (void)state;
    for (uint64_t seed = 1001; seed <= 1002; seed++) {
        outcome whole = cut_once(seed, 0, false);
        if (!whole.good) fail_msg("seed %" PRIu64 " without a cut: %s", seed, whole.text);
        for (uint64_t k = 1; k <= whole.calls; k++) {
            outcome o = cut_once(seed, k, false);
            if (!o.good) fail_msg("seed %" PRIu64 " cut at call %" PRIu64 ": %s", seed, k, o.text);
        }
    }
}

static void without_sync_the_same_test_fails(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        outcome whole = cut_once(seed, 0, false);
        outcome o = cut_once(seed, 1 + seed * 2654435761u % whole.calls, true);
        failed += !o.good;
    }
    print_message("%u of 40 seeds noticed that nothing was synced\n", failed);
    assert_true(failed > 10);
}

/* With the log's hand-over mode, a kill at call k, and possibly more; then checked, stopped cleanly, and checked again after
 * a power cut. */
static outcome kill_once(uint64_t seed, uint64_t k)
{
    outcome o = {.good = true};
    rq_sim *sim;
    history h;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    begin_history(&h, sim, seed);
    history_hand_over(&h);
    for (unsigned round = 0; o.good && round < 2; round++) {
        rq_sim_cut_at(sim, round == 0 ? k : rq_sim_calls(sim) + 1 + rq_sim_random(sim) % 80);
        if (history_open(&h)) {
            history_steps(&h, STEPS);
            history_close(&h, false);
        }
        if (round == 0) o.calls = rq_sim_calls(sim);
        take_fault(&o, &h, "before the kill");
        rq_sim_cut_at(sim, 0);
        rq_sim_restart_process(sim);
    }
    for (int round = 0; o.good && round < 2; round++) {
        if (round > 0) rq_sim_restart(sim);
        look_again(&o, &h, 0, true, round == 0 ? "after the kill" : "after the clean stop");
    }
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void every_seed_survives_a_kill_in_hand_over_mode(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(SEEDS / 2);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome whole = kill_once(seed, 0);
        if (!whole.good) fail_msg("seed %" PRIu64 " without a kill: %s", seed, whole.text);
        uint64_t k = seeds_number("RQ_CUT", 1 + seed * 2654435761u % whole.calls);
        outcome o = kill_once(seed, k);
        if (!o.good) fail_msg("seed %" PRIu64 " killed at call %" PRIu64 ": %s", seed, k, o.text);
    }
}

/* Each file call of a history fails once: no acknowledged write is lost, none is torn, and after a
 * kill and a power cut everything works. */
static outcome fail_once(uint64_t seed, uint64_t k, rq_err rc)
{
    outcome o = {.good = true};
    rq_sim *sim;
    history h;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    begin_history(&h, sim, seed);
    h.faults = k != 0;
    if (k != 0) rq_sim_fail_at(sim, k, rc);
    if (history_open(&h)) {
        history_steps(&h, STEPS);
        history_check(&h);
        history_close(&h, true);
    }
    o.calls = rq_sim_calls(sim);
    take_fault(&o, &h, "with the failing call");
    h.faults = false;
    rq_sim_restart_process(sim);
    for (int round = 0; o.good && round < 2; round++) {
        if (round > 0) rq_sim_restart(sim);
        look_again(&o, &h, 0, round > 0, round == 0 ? "after the kill" : "after the power cut");
    }
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void every_failing_call_is_survived(void **state)
{
    (void)state;
    static const rq_err errors[] = {RQ_E_IO, RQ_E_NO_SPACE};
    uint64_t seed = 2001;
    uint64_t calls = fail_once(seed, 0, RQ_OK).calls;
    for (uint64_t k = 1; k <= calls; k++) {
        rq_err rc = errors[k % RQ_ARRAY_LEN(errors)];
        outcome o = fail_once(seed, k, rc);
        if (!o.good) fail_msg("%s at call %" PRIu64 ": %s", rq_err_name(rc), k, o.text);
    }
}

/* From call k on one to four calls fail, perhaps syncs; the process is killed soon after. The next process works on
 * the files that it finds, part of which may exist in the page cache only. Then the power is cut. */
static outcome fail_kill_and_cut(uint64_t seed, uint64_t k)
{
    outcome o = {.good = true};
    rq_sim *sim;
    history h;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    begin_history(&h, sim, seed);
    h.faults = k != 0;
    for (uint64_t i = 0; i < 1 + seed % 4 && k != 0; i++)
        rq_sim_fail_at(sim, k + i, RQ_E_IO);
    if (k != 0) rq_sim_cut_at(sim, k + 5 + seed % 40);
    if (history_open(&h)) {
        history_steps(&h, STEPS);
        history_close(&h, false);
    }
    o.calls = rq_sim_calls(sim);
    take_fault(&o, &h, "with failing calls");
    h.faults = false;
    rq_sim_cut_at(sim, 0);
    for (int round = 0; o.good && round < 3; round++) {
        if (round == 0)
            rq_sim_restart_process(sim);
        else
            rq_sim_restart(sim);
        look_again(&o, &h, round == 0 ? STEPS / 3 : 0, round == 1,
                   round == 0 ? "after the kill" : "after the power cut");
    }
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void every_seed_survives_failing_calls_a_kill_and_a_power_cut(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(SEEDS / 2);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome whole = fail_kill_and_cut(seed, 0);
        if (!whole.good) fail_msg("seed %" PRIu64 " without a fault: %s", seed, whole.text);
        uint64_t k = seeds_number("RQ_CUT", 1 + seed * 2654435761u % whole.calls);
        outcome o = fail_kill_and_cut(seed, k);
        if (!o.good) fail_msg("seed %" PRIu64 " from call %" PRIu64 " on: %s", seed, k, o.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_survives_a_random_power_cut),
        cmocka_unit_test(a_power_cut_at_every_call_is_survived),
        cmocka_unit_test(without_sync_the_same_test_fails),
        cmocka_unit_test(every_seed_survives_a_kill_in_hand_over_mode),
        cmocka_unit_test(every_failing_call_is_survived),
        cmocka_unit_test(every_seed_survives_failing_calls_a_kill_and_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
