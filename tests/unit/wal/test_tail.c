/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that follows a log while it is written, rolled, recycled, repaired and opened again: the
 * reader gets every record once, in order, and none before it is durable. */
#include "history.h"

#include "wal/tail.h"

typedef struct follower {
    history *h;
    rq_retention *retention;
    rq_holder *holder;
    rq_wal_tail *tail;
    size_t next; /* index in h->records */
} follower;

static void check_record(follower *f, const rq_wal_record *r)
{
    assert_true(f->next < f->h->count);
    const staged *s = f->h->records[f->next++];
    assert_true(
        rq_slice_eq(r->region, rq_slice_cstr(rq_wal_region_name(f->h->regions[s->region]))));
    assert_int_equal(r->sequence_id, s->sequence_id);
    assert_int_equal(r->lsn, s->lsn);
    assert_true(r->lsn <= rq_wal_durable(f->h->wal));
}

/* Reads durable records, at most `most`. */
static void read_on(follower *f, size_t most)
{
    rq_error why = {0};
    rq_wal_record r;
    rq_err rc = RQ_OK;
    while (most-- > 0 && (rc = rq_wal_tail_next(f->tail, &r, &why)) == RQ_OK)
        check_record(f, &r);
    if (rc != RQ_OK && rc != RQ_E_END) fail_msg("%s", why.message);
    rq_holder_keep_log(f->holder, rq_wal_tail_lsn(f->tail));
}

static void follow(follower *f, rq_lsn from)
{
    assert_int_equal(rq_retention_hold(f->retention, "peer", 0, &f->holder), RQ_OK);
    rq_holder_keep_log(f->holder, from);
    rq_holder_narrow(f->holder);
    assert_int_equal(rq_wal_tail_new(f->h->wal, from, &f->tail), RQ_OK);
}

/* Reopens the log: the position remains valid, and the log after it is kept. */
static void open_again(follower *f)
{
    rq_error why = {0};
    rq_lsn at = rq_wal_tail_lsn(f->tail);
    rq_wal_tail_free(f->tail);
    rq_wal_keep_from(f->h->wal, at);
    rq_holder_release(f->holder);
    (void)history_close(f->h, false);
    if (!history_open(f->h, &why)) fail_msg("%s %s", f->h->fault, why.message);
    f->next = 0; /* the history drops the records that the log has dropped */
    while (f->next < f->h->count && f->h->records[f->next]->lsn <= at)
        f->next++;
    follow(f, at);
}

static void run_seed(uint64_t seed)
{
    rq_sim *sim;
    history h;
    follower f = {.h = &h};
    rq_error why = {0};
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    assert_int_equal(rq_retention_new(&f.retention), RQ_OK);
    rq_wal_options o = {.dir = "wal",
                        .file_bytes = 8192,
                        .max_log_bytes = 40000,
                        .staging_bytes = 4096,
                        .staging_bytes_max = 65536,
                        .retention = f.retention};
    history_init(&h, sim, &o);
    if (!history_open(&h, &why)) fail_msg("%s %s", h.fault, why.message);
    follow(&f, 0);
    for (int round = 0; round < 30; round++) {
        history_steps(&h, 40);
        read_on(&f, round % 3 == 0 ? 5 : SIZE_MAX);
        if (round % 10 == 9 && round < 29) open_again(&f);
    }
    assert_int_equal(rq_wal_wait_blocking(h.wal, h.records[h.count - 1]->lsn, true), RQ_OK);
    read_on(&f, SIZE_MAX);
    assert_int_equal(f.next, h.count);
    assert_string_equal(h.fault, "");
    rq_wal_stats stats;
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.rolls > 0);
    rq_wal_tail_free(f.tail);
    rq_holder_release(f.holder);
    history_close(&h, false);
    history_clear(&h);
    rq_retention_free(f.retention);
    rq_sim_free(sim);
}

static void every_record_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        run_seed(seed);
}

/* Records that are not held may be recycled: the reader reports this, and continues with the
 * remaining log. */
static void a_recycled_log_is_reported(void **state)
{
    (void)state;
    rq_sim *sim;
    history h;
    rq_wal_tail *tail;
    rq_wal_record r;
    rq_error why = {0};
    assert_int_equal(rq_sim_new(7, NULL, &sim), RQ_OK);
    rq_wal_options o = {.dir = "wal", .file_bytes = 8192, .max_log_bytes = 40000};
    history_init(&h, sim, &o);
    assert_true(history_open(&h, &why));
    history_steps(&h, 60);
    rq_lsn early = h.records[0]->lsn;
    rq_wal_stats stats = {0};
    for (int i = 0; i < 200 && stats.recycled == 0; i++) {
        history_steps(&h, 100);
        for (int region = 0; region < REGIONS; region++)
            history_flush(&h, region);
        rq_wal_get_stats(h.wal, &stats);
    }
    assert_true(stats.recycled > 0);
    assert_int_equal(rq_wal_tail_new(h.wal, early, &tail), RQ_OK);
    assert_int_equal(rq_wal_tail_next(tail, &r, &why), RQ_E_NOT_FOUND);
    why = (rq_error){0};
    rq_err rc = rq_wal_tail_next(tail, &r, &why);
    assert_true(rc == RQ_OK || rc == RQ_E_END);
    rq_wal_tail_free(tail);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* A file that is recycled while it is open and being read is reported, too: its new contents are neither delivered nor
 * taken for damage. */
static void a_file_recycled_below_the_reader_is_reported(void **state)
{
    (void)state;
    rq_sim *sim;
    history h;
    rq_wal_tail *tail;
    rq_wal_record r;
    rq_error why = {0};
    assert_int_equal(rq_sim_new(7, NULL, &sim), RQ_OK);
    rq_wal_options o = {.dir = "wal", .file_bytes = 1 << 20, .max_log_bytes = 8 << 20};
    history_init(&h, sim, &o);
    assert_true(history_open(&h, &why));
    assert_int_equal(rq_wal_tail_new(h.wal, 0, &tail), RQ_OK);
    rq_wal_stats stats = {0};
    rq_err rc = RQ_OK;
    while (stats.recycled < 4) {
        staged *s = history_stage(&h, 1, 8000, RQ_WAL_EDIT, &rc);
        assert_non_null(s);
        history_wait(&h, s, true);
        rq_wal_push(h.wal, h.member);
        rq_sim_run(sim);
        if (s->lsn > 600000 && rq_wal_tail_lsn(tail) == 0)
            assert_int_equal(rq_wal_tail_next(tail, &r, &why), RQ_OK);
        if (s->lsn > 700000) history_flush(&h, 1);
        rq_wal_get_stats(h.wal, &stats);
    }
    rq_lsn last = rq_wal_tail_lsn(tail);
    while ((rc = rq_wal_tail_next(tail, &r, &why)) == RQ_OK) {
        /* What was read ahead before may still come. */
        assert_true(r.lsn > last && r.lsn < 600000);
        last = r.lsn;
    }
    if (rc != RQ_E_NOT_FOUND) fail_msg("%s: %s", rq_err_name(rc), why.message);
    rc = rq_wal_tail_next(tail, &r, &why);
    assert_true(rc == RQ_OK || rc == RQ_E_END);
    rq_wal_tail_free(tail);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_once_and_in_order),
        cmocka_unit_test(a_recycled_log_is_reported),
        cmocka_unit_test(a_file_recycled_below_the_reader_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
