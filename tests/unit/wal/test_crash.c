/* SPDX-License-Identifier: Apache-2.0 */
/* Power cuts and failing calls at every point of random histories. */
#include "history.h"

typedef struct outcome {
    bool good;
    bool reached; /* the history was long enough to reach the call */
    uint64_t calls;
    rq_wal_stats stats;
    uint64_t recycled;
    bool log_failed;
    char text[1600];
} outcome;

static void set_text(outcome *o, const char *what, const history *h, const rq_error *why)
{
    snprintf(o->text, sizeof o->text, "%s: %s%s", what, h->fault, why->message);
}

static rq_wal_options small_log(uint64_t seed)
{
    return (rq_wal_options){
        .dir = "wal",
        .file_bytes = 4096 << seed % 3,
        .staging_bytes = 4096,
        .staging_bytes_max = 65536,
        .sync = seed % 4 == 3 ? RQ_WAL_HANDOVER : RQ_WAL_SYNC,
    };
}

/* After a power cut, or after only the process has died. */
static void restart(history *h)
{
    h->killed = rq_sim_random(h->sim) % 3 == 0;
    if (h->killed)
        rq_sim_restart_process(h->sim);
    else
        rq_sim_restart(h->sim);
}

/* One history with a power cut at call k (0: none), reopened, continued, and reopened again. */
static outcome cut_once(uint64_t seed, uint64_t k, bool ignore_sync)
{
    outcome o = {.good = true};
    rq_sim *sim;
    rq_sim_options sim_options = {.ignore_sync = ignore_sync};
    assert_int_equal(rq_sim_new(seed, &sim_options, &sim), RQ_OK);
    rq_wal_options options = small_log(seed);
    history h;
    rq_error why = {0};
    history_init(&h, sim, &options);
    rq_sim_cut_at(sim, k);
    for (int round = 0; round < 3 && o.good; round++) {
        /* Another size makes some of the files that are used again too long. */
        if (seed % 5 == 0) h.options.file_bytes = 4096u << (3 - round);
        bool opened = history_open(&h, &why);
        if (!opened && !rq_sim_is_cut(sim)) {
            set_text(&o, "open", &h, &why);
            o.good = false;
        }
        if (opened) {
            history_steps(&h, 100);
            rq_wal_get_stats(h.wal, &o.stats);
            o.recycled += o.stats.recycled;
            history_close(&h, false);
        }
        if (round == 0) {
            o.reached = rq_sim_is_cut(sim);
            o.calls = rq_sim_calls(sim);
        }
        why = (rq_error){0};
        restart(&h);
        if (h.fault[0] != '\0') {
            set_text(&o, "history", &h, &why);
            o.good = false;
        }
    }
    if (o.good && !history_open(&h, &why)) {
        set_text(&o, "last open", &h, &why);
        o.good = false;
    }
    if (h.wal != NULL) history_close(&h, false);
    if (o.good && h.fault[0] != '\0') {
        set_text(&o, "end", &h, &why);
        o.good = false;
    }
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void a_power_cut_at_every_call_loses_nothing_promised(void **state)
{
    (void)state;
    uint64_t base = unit_seed();
    for (uint64_t seed = base; seed < base + 16; seed++) {
        outcome o;
        uint64_t k = 1;
        do {
            o = cut_once(seed, k, false);
            if (!o.good)
                fail_msg("seed %llu, cut at call %llu: %s", (unsigned long long)seed,
                         (unsigned long long)k, o.text);
            k++;
        } while (o.reached);
        assert_true(k > 30);
    }
}

static void many_histories_survive_a_cut_somewhere(void **state)
{
    (void)state;
    uint64_t base = unit_seed();
    uint64_t recycled = 0;
    for (uint64_t seed = base; seed < base + 1500; seed++) {
        uint64_t k = 1 + seed * 7919 % 150;
        outcome o = cut_once(seed, k, false);
        recycled += o.recycled;
        if (!o.good)
            fail_msg("seed %llu, cut at call %llu: %s", (unsigned long long)seed,
                     (unsigned long long)k, o.text);
    }
    assert_true(recycled > 3000); /* files with old records were written over */
}

static void without_sync_the_tests_above_fail(void **state)
{
    (void)state;
    int caught = 0;
    for (uint64_t seed = 0; seed < 200; seed++)
        caught += !cut_once(seed, 20 + seed % 80, true).good;
    assert_true(caught > 100);
}

/* --- failing calls ------------------------------------------------------------------------ */

/* One call fails; the log continues or reports its failure; afterwards no acknowledged record is
 * missing. What a process has found after the former one died stays, also in a power cut: bytes of a sync that failed
 * exist in the page cache only. */
static outcome fail_once(uint64_t seed, uint64_t k, rq_err rc, int times)
{
    outcome o = {.good = true};
    rq_sim *sim;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    rq_wal_options options = small_log(seed);
    history h;
    rq_error why = {0};
    history_init(&h, sim, &options);
    for (int i = 0; i < times; i++)
        rq_sim_fail_at(sim, k + (uint64_t)i, rc);
    bool opened = history_open(&h, &why);
    if (opened) {
        history_steps(&h, 80);
        o.calls = rq_sim_calls(sim);
        o.reached = o.calls >= k;
        rq_wal_get_stats(h.wal, &o.stats);
        history_close(&h, false);
    } else {
        o.reached = true;
    }
    restart(&h);
    why = (rq_error){0};
    if (h.fault[0] != '\0' || !history_open(&h, &why)) {
        set_text(&o, "after", &h, &why);
        o.good = false;
    }
    if (h.wal != NULL) {
        o.log_failed = rq_wal_failed(h.wal);
        if (o.good) history_steps(&h, 20);
        history_close(&h, false);
    }
    rq_sim_restart(sim);
    h.killed = false;
    why = (rq_error){0};
    if (o.good && !history_open(&h, &why)) {
        set_text(&o, "after a power cut", &h, &why);
        o.good = false;
    }
    if (h.wal != NULL) history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
    return o;
}

static void any_call_may_fail_once(void **state)
{
    (void)state;
    static const rq_err codes[] = {RQ_E_IO, RQ_E_NO_SPACE};
    uint64_t base = unit_seed();
    uint64_t reappends = 0;
    for (uint64_t seed = base; seed < base + 12; seed++) {
        for (size_t c = 0; c < RQ_ARRAY_LEN(codes); c++) {
            outcome o;
            uint64_t k = 1;
            do {
                o = fail_once(seed, k, codes[c], 1);
                if (!o.good)
                    fail_msg("seed %llu, %s at call %llu: %s", (unsigned long long)seed,
                             rq_err_name(codes[c]), (unsigned long long)k, o.text);
                reappends += o.stats.reappends;
                k++;
            } while (o.reached);
        }
    }
    assert_true(reappends > 100);
}

static void several_calls_in_a_row_may_fail(void **state)
{
    (void)state;
    uint64_t base = unit_seed();
    for (uint64_t seed = base; seed < base + 600; seed++) {
        uint64_t k = 5 + seed * 31 % 120;
        outcome o =
            fail_once(seed, k, seed % 3 == 0 ? RQ_E_NO_SPACE : RQ_E_IO, 2 + (int)(seed % 7));
        if (!o.good)
            fail_msg("seed %llu, from call %llu: %s", (unsigned long long)seed,
                     (unsigned long long)k, o.text);
    }
}

/* A log that can no longer write answers all waiters with an error, and refuses further records. */
static void a_log_without_disk_fails_for_good(void **state)
{
    (void)state;
    rq_sim *sim;
    assert_int_equal(rq_sim_new(5, NULL, &sim), RQ_OK);
    rq_wal_options options = small_log(0);
    history h;
    history_init(&h, sim, &options);
    assert_true(history_open(&h, NULL));
    rq_err rc;
    staged *first = history_stage(&h, 0, 100, RQ_WAL_EDIT, &rc);
    history_wait(&h, first, false);
    rq_wal_push(h.wal, h.member);
    rq_sim_run(sim);
    assert_true(first->acknowledged);
    rq_sim_fail_writes(sim, RQ_E_IO);
    staged *second = history_stage(&h, 0, 100, RQ_WAL_EDIT, &rc);
    history_wait(&h, second, false);
    rq_wal_push(h.wal, h.member);
    rq_sim_run(sim);
    assert_true(second->refused);
    assert_true(rq_wal_failed(h.wal) && h.failures == 1);
    assert_null(history_stage(&h, 0, 100, RQ_WAL_EDIT, &rc));
    assert_int_equal(rc, RQ_E_IO);
    assert_int_equal(rq_wal_wait_blocking(h.wal, second->lsn, true), RQ_E_IO);
    assert_int_equal(history_close(&h, true), RQ_E_IO);
    rq_sim_fail_writes(sim, RQ_OK);
    rq_sim_restart(sim);
    assert_true(history_open(&h, NULL));
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* A full disk: no record is lost, nothing fails permanently, and the log continues when there is
 * space. */
static void a_full_disk_is_waited_out(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
        rq_wal_options options = small_log(seed);
        history h;
        rq_error why = {0};
        history_init(&h, sim, &options);
        assert_true(history_open(&h, &why));
        history_steps(&h, 40);
        rq_sim_fail_writes(sim, RQ_E_NO_SPACE);
        history_steps(&h, 100);
        rq_sim_advance(sim, 3000000000);
        if (h.failures > 0) fail_msg("seed %llu: the log has failed", (unsigned long long)seed);
        rq_sim_fail_writes(sim, RQ_OK);
        rq_sim_advance(sim, 3000000000);
        rq_err rc;
        staged *s = history_stage(&h, 1, 50, RQ_WAL_EDIT, &rc);
        if (s == NULL) fail_msg("seed %llu: %s", (unsigned long long)seed, rq_err_name(rc));
        history_wait(&h, s, true);
        history_close(&h, false);
        assert_true(s->acknowledged);
        rq_sim_restart(sim);
        if (!history_open(&h, &why) || h.fault[0] != '\0')
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, h.fault, why.message);
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
}

/* Ends the process after calls that failed, perhaps a sync: what it wrote exists, but not all of it on the disk. */
static void fail_and_kill(history *h)
{
    uint64_t from = rq_sim_calls(h->sim) + rq_sim_random(h->sim) % 6;
    for (uint64_t i = 1; i <= 4; i++)
        rq_sim_fail_at(h->sim, from + i, RQ_E_IO);
    history_steps(h, 10);
    history_close(h, false);
    h->killed = true;
    rq_sim_restart_process(h->sim);
}

/* The next process starts on a full disk that writes nothing in place: what it finds must be durable before records behind
 * it are acknowledged. */
static void a_start_on_a_full_disk_proves_nothing(void **state)
{
    (void)state;
    uint64_t base = unit_seed();
    int waited = 0;
    for (uint64_t seed = base; seed < base + 400; seed++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
        rq_wal_options options = small_log(seed);
        history h;
        rq_error why = {0};
        history_init(&h, sim, &options);
        assert_true(history_open(&h, &why));
        history_steps(&h, 40);
        fail_and_kill(&h);
        rq_sim_fail_writes(sim, RQ_E_NO_SPACE);
        bool opened = history_open(&h, &why);
        rq_sim_fail_writes(sim, RQ_OK);
        if (opened) {
            waited += rq_wal_lacks_space(h.wal);
            rq_sim_advance(sim, 3000000000);
            rq_err rc;
            staged *s = history_stage(&h, 1, 50, RQ_WAL_EDIT, &rc);
            if (s == NULL) fail_msg("seed %llu: %s", (unsigned long long)seed, rq_err_name(rc));
            history_wait(&h, s, true);
            history_close(&h, false);
            if (!s->acknowledged) fail_msg("seed %llu: not acknowledged", (unsigned long long)seed);
        } else if (h.fault[0] != '\0' || why.code != RQ_E_NO_SPACE) { /* an empty log needs space */
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, h.fault, why.message);
        }
        rq_sim_restart(sim);
        h.killed = false;
        if (!history_open(&h, &why) || h.fault[0] != '\0')
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, h.fault, why.message);
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
    assert_true(waited > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_at_every_call_loses_nothing_promised),
        cmocka_unit_test(many_histories_survive_a_cut_somewhere),
        cmocka_unit_test(without_sync_the_tests_above_fail),
        cmocka_unit_test(any_call_may_fail_once),
        cmocka_unit_test(several_calls_in_a_row_may_fail),
        cmocka_unit_test(a_log_without_disk_fails_for_good),
        cmocka_unit_test(a_full_disk_is_waited_out),
        cmocka_unit_test(a_start_on_a_full_disk_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
