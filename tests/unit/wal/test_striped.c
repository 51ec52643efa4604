/* SPDX-License-Identifier: Apache-2.0 */
/* The log on shared storage, case by case; random histories are in tests/sim/test_shared_log.c. */
#include "../base/unit.h"

#include "vfs/sim.h"
#include "vfs/sim_shared.h"
#include "wal/head.h"
#include "wal/sealed.h"
#include "wal/wal.h"

#define SERVER "host,16020,1"
#define SECOND UINT64_C(1000000000)

typedef struct log_world {
    rq_sim *sim;
    rq_sim_storage *storage;
    rq_sim_node *owner, *other;
    rq_shared *shared; /* the owner's access to the storage */
    rq_tenure *tenure;
    rq_wal *wal;
    rq_wal_region *region;
    uint64_t seqid;
    int failures;
} log_world;

static void failed(void *ctx, const rq_error *why)
{
    (void)why;
    ((log_world *)ctx)->failures++;
}

static void begin(log_world *w, rq_wal_options o)
{
    *w = (log_world){0};
    assert_int_equal(rq_sim_new(1, NULL, &w->sim), RQ_OK);
    assert_int_equal(rq_sim_storage_new(w->sim, 0, &w->storage), RQ_OK);
    assert_int_equal(rq_sim_node_new(w->storage, 1000, 0, &w->owner), RQ_OK);
    assert_int_equal(rq_sim_node_new(w->storage, 5000, 0, &w->other), RQ_OK);
    w->shared = rq_sim_node_shared(w->owner);
    assert_int_equal(rq_tenure_begin(w->shared, SERVER, &w->tenure, NULL), RQ_OK);
    o.tenure = w->tenure;
    o.server_name = SERVER;
    o.on_failed = failed;
    o.ctx = w;
    assert_int_equal(rq_wal_open(rq_sim_env(w->sim), &o, &w->wal, NULL), RQ_OK);
    assert_int_equal(rq_wal_replay(w->wal, NULL, NULL, NULL), RQ_OK);
    assert_int_equal(rq_wal_region_open(w->wal, "r", RQ_SLICE_LIT("t"), NULL, &w->region), RQ_OK);
}

static rq_err close_log(log_world *w, bool clean)
{
    rq_wal_region_close(w->region);
    rq_err rc = rq_wal_close(w->wal, clean, NULL);
    w->wal = NULL;
    return rc;
}

static void end(log_world *w)
{
    if (w->wal != NULL) (void)!close_log(w, false);
    rq_tenure_free(w->tenure);
    rq_sim_node_free(w->owner);
    rq_sim_node_free(w->other);
    rq_sim_storage_free(w->storage);
    rq_sim_free(w->sim);
}

static rq_lsn stage(log_world *w, size_t len)
{
    static uint8_t payload[6 << 20];
    rq_lsn lsn;
    rq_wal_record r = {.kind = RQ_WAL_EDIT, .sequence_id = ++w->seqid};
    memset(payload, (int)(w->seqid * 7), len);
    r.payload = rq_slice_of(payload, len);
    assert_int_equal(rq_wal_stage(w->wal, w->region, &r, NULL, 0, &lsn), RQ_OK);
    return lsn;
}

static rq_lsn append(log_world *w, size_t len)
{
    rq_lsn lsn = stage(w, len);
    assert_int_equal(rq_wal_wait_blocking(w->wal, lsn, true), RQ_OK);
    return lsn;
}

static void fence(log_world *w)
{
    uint64_t quiet_ns;
    assert_int_equal(
        rq_wal_fence(rq_sim_node_shared(w->other), SERVER, "other,16020,1", &quiet_ns, NULL),
        RQ_OK);
}

/* Expects records `first` to `last`, and then the result `rc`. */
static void expect_records(log_world *w, rq_lsn from, uint64_t first, uint64_t last, rq_err rc)
{
    rq_wal_sealed *l;
    rq_wal_record r;
    rq_error why = {.code = RQ_OK};
    assert_int_equal(rq_wal_sealed_open(rq_sim_node_shared(w->other), SERVER, from, &l, NULL),
                     RQ_OK);
    for (uint64_t i = first; i <= last; i++) {
        assert_int_equal(rq_wal_sealed_next(l, &r, &why), RQ_OK);
        assert_int_equal(r.sequence_id, i);
        for (size_t k = 0; k < r.payload.len; k++)
            assert_int_equal(r.payload.ptr[k], (uint8_t)(i * 7));
    }
    assert_int_equal(rq_wal_sealed_next(l, &r, &why), rc);
    if (rc != RQ_E_END) assert_non_null(strstr(why.message, "the log of " SERVER ", ledger"));
    rq_wal_sealed_close(l);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void what_was_acknowledged_is_read_after_a_fence(void **state)
{
    (void)state;
    log_world w;
    rq_wal_sealed *l;
    begin(&w, (rq_wal_options){0});
    for (int i = 0; i < 20; i++)
        append(&w, 100);
    rq_lsn lsn = append(&w, 5 << 20); /* a record longer than an extent */
    for (int i = 0; i < 9; i++)
        (void)stage(&w, 300 << 10); /* a batch that is divided */
    append(&w, 10);
    assert_int_equal(rq_wal_sealed_open(rq_sim_node_shared(w.other), SERVER, 0, &l, NULL),
                     RQ_E_STATE);
    fence(&w);
    expect_records(&w, 0, 1, 31, RQ_E_END);
    expect_records(&w, lsn, 22, 31, RQ_E_END);
    assert_int_equal(rq_wal_wait_blocking(w.wal, stage(&w, 10), true), RQ_E_SERVER_ABORTED);
    assert_int_equal(w.failures, 1);
    expect_records(&w, 0, 1, 31, RQ_E_END);
    assert_int_equal(close_log(&w, true), RQ_E_SERVER_ABORTED);
    end(&w);
}

static void ledgers_are_freed_and_a_clean_end_leaves_nothing(void **state)
{
    (void)state;
    log_world w;
    rq_wal_state now;
    rq_wal_stats stats;
    const char **keys;
    size_t count;
    rq_arena arena = {0};
    begin(&w, (rq_wal_options){.file_bytes = 4096});
    for (int i = 0; i < 100; i++) {
        append(&w, 500);
        if (i == 80) rq_wal_region_flushed(w.region, 70);
    }
    rq_sim_advance(w.sim, SECOND);
    rq_wal_get_stats(w.wal, &stats);
    assert_true(stats.rolls > 5 && stats.recycled > 4 && stats.files < 10);
    assert_int_equal(rq_wal_replay_region(w.wal, "r", NULL, NULL, NULL), RQ_E_UNSUPPORTED);
    rq_shared *other = rq_sim_node_shared(w.other);
    assert_int_equal(rq_wal_need(w.shared, SERVER, "r", 7, NULL), RQ_OK);
    assert_int_equal(rq_wal_needed_by(other, SERVER, &arena, &keys, &count, NULL), RQ_OK);
    assert_true(count == 1 && strcmp(keys[0], "r.7") == 0);
    /* the log's owner has not ended */
    assert_int_equal(rq_wal_retire(other, SERVER, NULL), RQ_E_STATE);
    rq_wal_region_flushed(w.region, 100);
    assert_int_equal(close_log(&w, true), RQ_OK);
    assert_int_equal(rq_wal_state_of(other, SERVER, &now, NULL), RQ_OK);
    assert_int_equal(now, RQ_WAL_CLOSED);
    assert_int_equal(rq_tenure_end(w.tenure, NULL), RQ_OK);
    fence(&w); /* a fence of a closed log changes nothing */
    expect_records(&w, 0, 1, 0, RQ_E_END);
    /* region "r" may need the log */
    assert_int_equal(rq_wal_retire(other, SERVER, NULL), RQ_E_STATE);
    assert_int_equal(rq_wal_need_no_more(other, SERVER, "r", 7, NULL), RQ_OK);
    assert_int_equal(rq_wal_retire(other, SERVER, NULL), RQ_OK);
    assert_int_equal(rq_wal_retire(other, SERVER, NULL), RQ_OK);
    assert_int_equal(rq_wal_state_of(other, SERVER, &now, NULL), RQ_E_NOT_FOUND);
    rq_arena_clear(&arena);
    end(&w);
}

static void a_close_that_leaves_records_is_not_clean(void **state)
{
    (void)state;
    log_world w;
    begin(&w, (rq_wal_options){0});
    append(&w, 10);
    assert_int_equal(close_log(&w, true), RQ_E_STATE);
    fence(&w);
    expect_records(&w, 0, 1, 1, RQ_E_END);
    end(&w);
}

/* --- reports of late appends ------------------------------------------------------------------- */

static unsigned reports[RQ_WAL_LATE_KINDS];
static rq_wal_late last_reported[RQ_WAL_LATE_KINDS];

static void late(void *ctx, const rq_wal_late *l)
{
    (void)ctx;
    bool names = l->object != NULL && strstr(l->object, SERVER) != NULL;
    assert_int_equal(names, l->kind <= RQ_WAL_LATE_LOST);
    assert_int_equal(l->why != NULL, l->kind == RQ_WAL_LATE_LOST || l->kind == RQ_WAL_LATE_STALLED);
    reports[l->kind]++;
    last_reported[l->kind] = *l;
}

static void begin_reported(log_world *w)
{
    memset(reports, 0, sizeof reports);
    begin(w, (rq_wal_options){.on_late = late, .slow_ns = SECOND / 10});
}

/* --- appends that fail ------------------------------------------------------------------------ */

static rq_slog_write *withheld;
static rq_slog *withheld_log;
static rq_err refusal;
static unsigned passes; /* number of appends that pass first */
static void (*real_submit)(rq_slog *log, rq_slog_write *w);

static void refused(rq_task *task)
{
    rq_slog_write *w = RQ_CONTAINER_OF(task, rq_slog_write, task);
    w->log->stripes[w->stripe].busy = false;
    w->done(w, refusal);
}

static void submit(rq_slog *log, rq_slog_write *w)
{
    if (passes > 0) {
        passes--;
        real_submit(log, w);
    } else if (refusal != RQ_OK) {
        w->task.run = refused;
        rq_lane_post(w->lane, &w->task);
    } else if (withheld == NULL) {
        withheld = w;
        withheld_log = log;
    } else {
        real_submit(log, w);
    }
}

static void intercept(log_world *w, unsigned after, rq_err rc)
{
    withheld = NULL;
    passes = after;
    refusal = rc;
    real_submit = w->shared->slog_submit;
    w->shared->slog_submit = submit;
}

/* Stages a record whose append is acknowledged `wait_ns` later. */
static void append_late(log_world *w, uint64_t wait_ns)
{
    intercept(w, 0, RQ_OK);
    rq_lsn lsn = stage(w, 100);
    rq_wal_push(w->wal, NULL);
    rq_sim_advance(w->sim, wait_ns);
    assert_non_null(withheld);
    w->shared->slog_submit = real_submit;
    real_submit(withheld_log, withheld);
    assert_int_equal(rq_wal_wait_blocking(w->wal, lsn, true), RQ_OK);
}

static void late_appends_are_reported_a_few_times(void **state)
{
    (void)state;
    log_world w;
    rq_wal_stats stats;
    begin_reported(&w);
    append(&w, 100);
    assert_int_equal(reports[RQ_WAL_LATE_SLOW], 0);
    for (int i = 0; i < 3; i++)
        append_late(&w, SECOND / 5); /* all within a second: one report */
    rq_sim_advance(w.sim, SECOND);
    append_late(&w, SECOND / 2);
    assert_int_equal(reports[RQ_WAL_LATE_SLOW], 2);
    const rq_wal_late *slow = &last_reported[RQ_WAL_LATE_SLOW];
    assert_true(slow->ns >= SECOND / 2 && slow->ns < SECOND && slow->bytes > 100);
    assert_int_equal(slow->suppressed, 2);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.slow_appends, 4);
    assert_int_equal(stats.reappends, 0);
    rq_wal_set_slow(w.wal, SECOND);
    append_late(&w, SECOND / 2);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.slow_appends, 4);
    append_late(&w, 5 * SECOND); /* by then the append is repeated elsewhere */
    assert_int_equal(reports[RQ_WAL_LATE_LOST], 1);
    assert_true(last_reported[RQ_WAL_LATE_LOST].ns >= 2 * SECOND);
    assert_int_equal(reports[RQ_WAL_LATE_RESUMED], 1);
    assert_true(last_reported[RQ_WAL_LATE_RESUMED].ns >= 2 * SECOND);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.reappends, 1);
    end(&w);
}

/* The storage accepts neither ledgers nor appends: STALLED is reported once per 30 s, and RESUMED when it accepts them again. */
static void unreachable_storage_is_reported(void **state)
{
    (void)state;
    log_world w;
    rq_wal_stats stats;
    begin_reported(&w);
    append(&w, 100);
    rq_sim_node_cut(w.owner, true);
    rq_lsn lsn = stage(&w, 100);
    rq_wal_push(w.wal, NULL);
    rq_sim_advance(w.sim, 45 * SECOND);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.lease_lapses, 0); /* the outage continues */
    rq_sim_node_cut(w.owner, false);
    assert_int_equal(rq_wal_wait_blocking(w.wal, lsn, true), RQ_OK);
    assert_int_equal(reports[RQ_WAL_LATE_LOST], 1);
    assert_int_equal(reports[RQ_WAL_LATE_STALLED], 2);
    assert_true(last_reported[RQ_WAL_LATE_STALLED].ns > 30 * SECOND);
    assert_true(last_reported[RQ_WAL_LATE_STALLED].suppressed > 0);
    assert_string_equal(last_reported[RQ_WAL_LATE_STALLED].why, "it does not answer");
    assert_int_equal(reports[RQ_WAL_LATE_RESUMED], 1);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.lease_lapses, 1);
    assert_true(stats.lease_lapsed_ns > 40 * SECOND && stats.lease_lapsed_ns < 60 * SECOND);
    end(&w);
}

/* One append gets no response, the next ones do. All are repeated in a new ledger. The first
 * append's bytes arrive later in the old ledger; the fence must not count them twice, although it
 * only reads lengths. */
static void an_append_without_answer_is_repeated_elsewhere(void **state)
{
    (void)state;
    log_world w;
    rq_wal_stats stats;
    begin(&w, (rq_wal_options){0});
    append(&w, 100);
    intercept(&w, 0, RQ_OK);
    for (int i = 0; i < 3; i++) {
        (void)stage(&w, 100);
        rq_wal_push(w.wal, NULL);
        rq_sim_advance(w.sim, SECOND / 100);
    }
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.written - stats.synced, stats.written - stats.record_bytes / 4 - 8);
    uint64_t began = rq_sim_env(w.sim)->executor->now_ns(rq_sim_env(w.sim)->executor);
    append(&w, 100);
    uint64_t took = rq_sim_env(w.sim)->executor->now_ns(rq_sim_env(w.sim)->executor) - began;
    assert_true(took > SECOND && took < 4 * SECOND);
    real_submit(withheld_log, withheld); /* arrives late, in the abandoned ledger */
    rq_sim_advance(w.sim, SECOND);
    append(&w, 100);
    rq_wal_get_stats(w.wal, &stats);
    assert_int_equal(stats.reappends, 1);
    fence(&w);
    expect_records(&w, 0, 1, 6, RQ_E_END);
    end(&w);
}

static void answered_no_space(rq_wal_waiter *w, rq_err rc)
{
    (void)w;
    assert_int_equal(rc, RQ_E_NO_SPACE);
    passes = 1000;
}

/* Waiters get an error after a while; the records are written when space is available. */
static void full_storage_refuses_waiters_and_loses_nothing(void **state)
{
    (void)state;
    log_world w;
    rq_lane *lane;
    rq_wal_member *m;
    rq_wal_waiter waiter = {.run = answered_no_space};
    begin(&w, (rq_wal_options){0});
    assert_int_equal(rq_sim_lane_new(w.sim, &lane), RQ_OK);
    assert_int_equal(rq_wal_join(w.wal, lane, &m), RQ_OK);
    intercept(&w, 0, RQ_E_NO_SPACE);
    rq_wal_wait(m, &waiter, stage(&w, 100), false);
    rq_wal_push(w.wal, NULL);
    rq_sim_advance(w.sim, 4 * SECOND);
    assert_int_equal(passes, 0);
    rq_sim_advance(w.sim, 4 * SECOND);
    assert_int_not_equal(passes, 0);
    append(&w, 100);
    assert_int_equal(w.failures, 0);
    fence(&w);
    expect_records(&w, 0, 1, 2, RQ_E_END);
    rq_wal_leave(m);
    rq_sim_env(w.sim)->executor->lane_free(rq_sim_env(w.sim)->executor, lane);
    end(&w);
}

static void an_abandoned_log_fails_its_waiters(void **state)
{
    (void)state;
    log_world w;
    begin(&w, (rq_wal_options){0});
    append(&w, 100);
    intercept(&w, 0, RQ_E_IO);
    rq_lsn lsn = stage(&w, 100);
    rq_wal_push(w.wal, NULL);
    rq_sim_advance(w.sim, SECOND);
    assert_int_equal(w.failures, 0);
    rq_wal_abort(w.wal);
    assert_int_equal(rq_wal_wait_blocking(w.wal, lsn, true), RQ_E_SERVER_ABORTED);
    end(&w);
}

/* --- damage ----------------------------------------------------------------------------------- */

static uint64_t flip_at; /* offset in stripe 0 of ledger 1 */
static rq_err (*real_read)(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                           uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why);

static rq_err flipped(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                      uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    RQ_TRY(real_read(s, name, number, stripe, off, buf, len, ret_len, why));
    if (number == 1 && stripe == 0 && flip_at >= off && flip_at - off < *ret_len)
        ((uint8_t *)buf)[flip_at - off] ^= 4;
    return RQ_OK;
}

/* Each bit of an acknowledged extent that is followed by others. The last extent is excluded:
 * damage there looks like an interrupted append. */
static void damage_is_reported(void **state)
{
    (void)state;
    for (int rolls = 0; rolls < 2; rolls++) {
        log_world w;
        begin(&w, (rq_wal_options){0});
        for (int i = 0; i < 6; i++) {
            append(&w, 50);
            if (rolls == 1 && i == 4) rq_wal_roll(w.wal);
            rq_sim_advance(w.sim, SECOND);
        }
        fence(&w);
        rq_shared *other = rq_sim_node_shared(w.other);
        real_read = other->slog_read;
        other->slog_read = flipped;
        for (flip_at = 0; flip_at < 100; flip_at++)
            expect_records(&w, 0, 1, 0, RQ_E_CORRUPT);
        other->slog_read = real_read;
        expect_records(&w, 0, 1, 6, RQ_E_END);
        end(&w);
    }
}

static void a_fence_before_the_head_prevents_the_log(void **state)
{
    (void)state;
    log_world w;
    rq_wal *second;
    rq_tenure *t;
    uint64_t quiet_ns;
    begin(&w, (rq_wal_options){0});
    rq_shared *other = rq_sim_node_shared(w.other);
    assert_int_equal(rq_tenure_begin(w.shared, "host,16020,2", &t, NULL), RQ_OK);
    assert_int_equal(rq_wal_fence(other, "host,16020,2", "other,16020,1", &quiet_ns, NULL), RQ_OK);
    rq_wal_options o = {.tenure = t, .server_name = "host,16020,2"};
    assert_int_equal(rq_wal_open(rq_sim_env(w.sim), &o, &second, NULL), RQ_OK);
    assert_int_equal(rq_wal_replay(second, NULL, NULL, NULL), RQ_E_SERVER_ABORTED);
    (void)!rq_wal_close(second, false, NULL);
    rq_tenure_free(t);
    end(&w);
}

/* --- the head's bytes ------------------------------------------------------------------------- */

static void a_heads_bytes_are_checked(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_buf bytes = {0};
    rq__head_ledger ledgers[2] = {
        {.first_lsn = 8, .slog = {.number = 3, .lengths = {1, 2, 3, 4}}},
        {.first_lsn = 800, .slog = {.number = 7, .lengths = {5, 0, 0, 9}}}};
    rq__head h = {.state = RQ_WAL_FENCED, .by = RQ_SLICE_LIT("s,1,2"), .edit = 77}, got;
    h.ledgers = ledgers;
    h.count = 2;
    assert_int_equal(rq__head_encode(&h, &bytes), RQ_OK);
    assert_int_equal(rq__head_decode(rq_buf_slice(&bytes), &arena, &got, NULL), RQ_OK);
    assert_true(got.state == RQ_WAL_FENCED && got.edit == 77 && got.count == 2);
    assert_memory_equal(got.ledgers, ledgers, sizeof ledgers);
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_equal(rq__head_decode(rq_slice_of(bytes.ptr, len), &arena, &got, NULL),
                         RQ_E_CORRUPT);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        bytes.ptr[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(rq__head_decode(rq_buf_slice(&bytes), &arena, &got, NULL), RQ_E_CORRUPT);
        bytes.ptr[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    ledgers[1].first_lsn = 0;
    rq_buf_reset(&bytes);
    assert_int_equal(rq__head_encode(&h, &bytes), RQ_OK);
    assert_int_equal(rq__head_decode(rq_buf_slice(&bytes), &arena, &got, NULL), RQ_E_CORRUPT);
    rq_buf_clear(&bytes);
    rq_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_is_read_after_a_fence),
        cmocka_unit_test(ledgers_are_freed_and_a_clean_end_leaves_nothing),
        cmocka_unit_test(a_close_that_leaves_records_is_not_clean),
        cmocka_unit_test(late_appends_are_reported_a_few_times),
        cmocka_unit_test(unreachable_storage_is_reported),
        cmocka_unit_test(an_append_without_answer_is_repeated_elsewhere),
        cmocka_unit_test(full_storage_refuses_waiters_and_loses_nothing),
        cmocka_unit_test(an_abandoned_log_fails_its_waiters),
        cmocka_unit_test(damage_is_reported),
        cmocka_unit_test(a_fence_before_the_head_prevents_the_log),
        cmocka_unit_test(a_heads_bytes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
