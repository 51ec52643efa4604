/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log on shared storage (wal/striped.c, head.c, sealed.c) under pauses, cuts, reordering, lost
 * responses and deaths, in both forms of shared_world.h. One server writes, rolls and frees
 * ledgers; others fence it and read its log.
 *
 *  1. Every acknowledged record that its region has not flushed is found by each reader.
 *  2. A region's records are found in order, each once, unaltered; none that was not staged.
 *  3. All readers find the same records, at any time, whatever arrives late.
 *  4. The writer's own process follows the log (wal/tail.h): it finds every record once and in order, only acknowledged ones, and all of
 *     these, while ledgers are abandoned and replaced; what it has not read is kept (vfs/retention.h).
 *  5. No region needs a log that was closed cleanly; an ended log that no region needs can be
 *     retired.
 *
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one.
 */
#include "shared_world.h"

#include "base/checksum.h"
#include "wal/head.h"
#include "wal/image.h"
#include "wal/sealed.h"
#include "wal/tail.h"
#include "wal/wal.h"

#include <inttypes.h>

#define SERVER "host,16020,1"
#define VICTIM 0
#define REGIONS 3
#define RECORDS_MAX 1500
#define LEDGER_BYTES 16384
#define LATE_MS 10000 /* messages in transit arrive earlier */

typedef struct written_record {
    rq_wal_waiter waiter;
    struct history *h;
    unsigned region;
    uint64_t seqid;
} written_record;

typedef struct history {
    world w;
    world_task tasks[WORLD_NODES + 1];
    rq_tenure *tenure;
    rq_wal *wal;
    rq_wal_member *member;
    rq_wal_region *regions[REGIONS];
    uint64_t staged[REGIONS], acknowledged[REGIONS], flushed[REGIONS];
    unsigned pending;
    size_t record_limit;
    uint64_t fenced_after_ms;
    bool closing, failed, written_off;
    rq_retention *retention;
    rq_holder *holder;
    rq_wal_tail *tail;
    uint64_t tailed[REGIONS];
    written_record records[RECORDS_MAX];
    size_t record_count;
    /* the records that the first reader found */
    bool found;
    uint32_t crc;
    size_t count;
    unsigned readers;
} history;

static uint32_t seen_tailed, seen_reopened, seen_records, seen_repairs, seen_rolls, seen_freed,
    seen_failed, seen_clean, seen_retired;

static const char *const names[REGIONS] = {"region-a", "region-b", "region-c"};

/* --- the writer ----------------------------------------------------------------------------- */

static size_t payload_of(unsigned region, uint64_t seqid, uint8_t out[static 24000])
{
    size_t len = (size_t)(seqid * 131 + region * 17) % (seqid % 40 == 0 ? 24000 : 900);
    for (size_t i = 0; i < len; i++)
        out[i] = (uint8_t)(seqid * 7 + region + i);
    return len;
}

static void told(rq_wal_waiter *waiter, rq_err rc)
{
    written_record *r = RQ_CONTAINER_OF(waiter, written_record, waiter);
    history *h = r->h;
    h->pending--;
    if (rc == RQ_OK && r->seqid > h->acknowledged[r->region]) h->acknowledged[r->region] = r->seqid;
}

static rq_err stage_one(history *h)
{
    static uint8_t payload[24000];
    written_record *r = &h->records[h->record_count];
    rq_lsn lsn;
    r->h = h;
    r->region = (unsigned)world_below(&h->w, REGIONS);
    r->seqid = h->staged[r->region] + 1;
    r->waiter.run = told;
    rq_wal_record record = {.kind = RQ_WAL_EDIT, .sequence_id = r->seqid};
    record.payload = rq_slice_of(payload, payload_of(r->region, r->seqid, payload));
    rq_err rc = rq_wal_stage(h->wal, h->regions[r->region], &record, NULL, 0, &lsn);
    if (rc != RQ_OK) return rc;
    h->record_count++;
    h->staged[r->region]++;
    h->pending++;
    rq_wal_wait(h->member, &r->waiter, lsn, false);
    return RQ_OK;
}

static void flush_one(history *h)
{
    unsigned region = (unsigned)world_below(&h->w, REGIONS);
    h->flushed[region] = h->acknowledged[region];
    rq_wal_region_flushed(h->regions[region], h->flushed[region]);
}

static void log_failed(void *ctx, const rq_error *why)
{
    history *h = ctx;
    /* A close during which the storage does not respond may end with any error. */
    if (why->code != RQ_E_SERVER_ABORTED && !h->closing)
        world_fail(&h->w, "the log failed: %s", why->message);
    h->failed = true;
}

/* --- the tail --------------------------------------------------------------------------------- */

static void check_tailed(history *h, const rq_wal_record *r)
{
    static uint8_t expected[24000];
    unsigned i = 0;
    while (i < REGIONS && !rq_slice_eq(r->region, rq_slice_cstr(names[i])))
        i++;
    if (i == REGIONS) world_fail(&h->w, "the tail finds a record of an unknown region");
    if (r->sequence_id != h->tailed[i] + 1)
        world_fail(&h->w, "the tail finds %" PRIu64 " of %s after %" PRIu64, r->sequence_id,
                   names[i], h->tailed[i]);
    size_t len = payload_of(i, r->sequence_id, expected);
    if (!rq_slice_eq(r->payload, rq_slice_of(expected, len)))
        world_fail(&h->w, "the tail finds record %" PRIu64 " of %s altered", r->sequence_id,
                   names[i]);
    if (r->lsn > rq_wal_durable(h->wal))
        world_fail(&h->w, "the tail finds a record that is not acknowledged");
    h->tailed[i]++;
    seen_tailed++;
}

static void reopen_tail(history *h)
{
    rq_lsn at = h->tail == NULL ? 0 : rq_wal_tail_lsn(h->tail);
    seen_reopened += h->tail != NULL;
    rq_wal_tail_free(h->tail);
    assert_int_equal(rq_wal_tail_new(h->wal, at, &h->tail), RQ_OK);
}

/* RQ_E_END: to the end of what is acknowledged. Other errors: the storage does not answer. */
static rq_err read_tail(history *h)
{
    rq_wal_record r;
    rq_error why = {.code = RQ_OK};
    rq_err rc;
    if (world_below(&h->w, 8) == 0) reopen_tail(h);
    while ((rc = rq_wal_tail_next(h->tail, &r, &why)) == RQ_OK)
        check_tailed(h, &r);
    if (rc == RQ_E_CORRUPT || rc == RQ_E_NOT_FOUND) world_fail(&h->w, "the tail: %s", why.message);
    rq_holder_keep_log(h->holder, rq_wal_tail_lsn(h->tail));
    rq_wal_let_go(h->wal);
    return rc;
}

static void read_tail_to_end(history *h)
{
    uint64_t acknowledged[REGIONS];
    memcpy(acknowledged, h->acknowledged, sizeof acknowledged);
    rq_err rc = RQ_E_IO;
    for (unsigned i = 0; rc != RQ_E_END && i < 50; i++)
        rc = read_tail(h);
    for (unsigned i = 0; i < REGIONS && rc == RQ_E_END; i++)
        if (h->tailed[i] < acknowledged[i])
            world_fail(&h->w, "the tail ends at %" PRIu64 " of %s, %" PRIu64 " are acknowledged",
                       h->tailed[i], names[i], acknowledged[i]);
}

static void write_records(history *h)
{
    world *w = &h->w;
    while (!h->failed && !w->nodes[VICTIM].dead && h->record_count < h->record_limit) {
        world_stand_still(&w->nodes[VICTIM]);
        for (uint64_t n = 1 + world_below(w, 4); n > 0 && h->record_count < h->record_limit; n--)
            if (stage_one(h) != RQ_OK) break;
        rq_wal_push(h->wal, NULL);
        if (world_below(w, 10) == 0) flush_one(h);
        if (world_below(w, 60) == 0) rq_wal_roll(h->wal);
        if (world_below(w, 3) == 0 && !w->nodes[VICTIM].dead) {
            rq_err later = read_tail(h);
            (void)later;
        }
        world_sleep_ms(w, world_below(w, 30));
    }
}

static rq_err open_log(history *h)
{
    rq_wal_options o = {.tenure = h->tenure, .server_name = SERVER, .file_bytes = LEDGER_BYTES};
    o.staging_bytes = 8192;
    o.on_failed = log_failed;
    o.ctx = h;
    o.retention = h->retention;
    rq_err rc = rq_wal_open(rq_sim_env(h->w.sim), &o, &h->wal, NULL);
    if (rc == RQ_OK) rc = rq_wal_replay(h->wal, NULL, NULL, NULL);
    return rc;
}

/* A dead node's log, or a log whose storage cannot be reached, is aborted, as when its process
 * ends. */
static void close_log(history *h)
{
    bool aborted = h->pending > 0;
    if (!aborted && !h->failed && !h->w.nodes[VICTIM].dead) read_tail_to_end(h);
    rq_wal_tail_free(h->tail);
    rq_holder_release(h->holder);
    if (aborted) rq_wal_abort(h->wal);
    while (h->pending > 0)
        world_sleep_ms(&h->w, 5);
    rq_wal_leave(h->member);
    seen_failed += h->failed && !aborted;
    for (unsigned i = 0; i < REGIONS; i++)
        if (h->regions[i] != NULL) {
            bool all = h->acknowledged[i] == h->staged[i];
            if (all && world_below(&h->w, 2) == 0) {
                h->flushed[i] = h->staged[i];
                rq_wal_region_flushed(h->regions[i], h->flushed[i]);
            }
            rq_wal_region_close(h->regions[i]);
        }
    rq_wal_stats stats;
    rq_wal_get_stats(h->wal, &stats);
    seen_repairs += (uint32_t)stats.reappends;
    seen_rolls += (uint32_t)stats.rolls;
    seen_freed += (uint32_t)stats.recycled;
    h->closing = true;
    rq_err rc = rq_wal_close(h->wal, true, NULL);
    seen_clean += rc == RQ_OK;
    for (unsigned i = 0; rc == RQ_OK && i < REGIONS; i++)
        if (h->flushed[i] < h->staged[i]) world_fail(&h->w, "closed as clean with records");
}

static void writer(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[VICTIM]);
    world *w = t->world;
    rq_lane *lane;
    assert_int_equal(rq_sim_lane_new(w->sim, &lane), RQ_OK);
    assert_int_equal(rq_retention_new(&h->retention), RQ_OK);
    rq_err rc = rq_retention_hold(h->retention, "tail", 0, &h->holder);
    rq_holder_keep_log(h->holder, 0);
    rq_holder_narrow(h->holder);
    if (rc == RQ_OK) rc = rq_tenure_begin(t->node->shared, SERVER, &h->tenure, NULL);
    if (rc == RQ_OK) rc = open_log(h);
    if (rc == RQ_OK) {
        assert_int_equal(rq_wal_join(h->wal, lane, &h->member), RQ_OK);
        for (unsigned i = 0; i < REGIONS; i++)
            assert_int_equal(
                rq_wal_region_open(h->wal, names[i], RQ_SLICE_LIT("t"), NULL, &h->regions[i]),
                RQ_OK);
        reopen_tail(h);
        write_records(h);
        for (unsigned i = 0; h->pending > 0 && !h->failed && i < 400 && !t->node->dead; i++)
            world_sleep_ms(w, 50);
        close_log(h);
    } else {
        rq_err never_opened = rq_wal_close(h->wal, false, NULL);
        (void)never_opened;
        rq_holder_release(h->holder);
    }
    rq_retention_free(h->retention);
    if (h->tenure != NULL && world_below(w, 4) == 0) {
        rq_err may_fail = rq_tenure_end(h->tenure, NULL);
        (void)may_fail;
    }
    rq_tenure_free(h->tenure);
    w->executor->lane_free(w->executor, lane);
    h->written_off = true;
}

/* --- the readers ---------------------------------------------------------------------------- */

typedef struct finding {
    uint64_t last[REGIONS], first[REGIONS];
    uint32_t crc;
    size_t count;
} finding;

static void check_record(history *h, finding *f, const rq_wal_record *r)
{
    static uint8_t expected[24000];
    unsigned i = 0;
    while (i < REGIONS && !rq_slice_eq(r->region, rq_slice_cstr(names[i])))
        i++;
    if (i == REGIONS) world_fail(&h->w, "a record of an unknown region");
    size_t len = payload_of(i, r->sequence_id, expected);
    if (!rq_slice_eq(r->payload, rq_slice_of(expected, len)))
        world_fail(&h->w, "record %" PRIu64 " of %s is altered", r->sequence_id, names[i]);
    if (r->sequence_id > h->staged[i]) world_fail(&h->w, "a record that was not staged");
    if (f->last[i] != 0 && r->sequence_id != f->last[i] + 1)
        world_fail(&h->w, "%s: record %" PRIu64 " follows %" PRIu64, names[i], r->sequence_id,
                   f->last[i]);
    if (f->last[i] == 0) f->first[i] = r->sequence_id;
    f->last[i] = r->sequence_id;
    f->count++;
    uint8_t bytes[16];
    rq_put_be64(bytes, r->lsn);
    rq_put_be64(bytes + 8, r->sequence_id);
    f->crc = rq_crc32c(f->crc, bytes, sizeof bytes);
}

/* RQ_E_IO: the storage did not respond; the caller tries again. */
static rq_err read_log(history *h, rq_shared *s, finding *f)
{
    rq_wal_sealed *log;
    *f = (finding){0};
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_wal_sealed_open(s, SERVER, 0, &log, &why);
    if (rc != RQ_OK) return rc;
    rq_wal_record r;
    while ((rc = rq_wal_sealed_next(log, &r, &why)) == RQ_OK)
        check_record(h, f, &r);
    rq_wal_sealed_close(log);
    if (rc == RQ_E_CORRUPT) world_fail(&h->w, "%s", why.message);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static void check_log(history *h, world_node *n)
{
    finding f;
    uint64_t acknowledged[REGIONS];
    memcpy(acknowledged, h->acknowledged, sizeof acknowledged);
    rq_err rc = RQ_E_IO;
    for (int tries = 0; rc == RQ_E_IO && tries < 50 && !n->dead; tries++)
        rc = read_log(h, n->shared, &f);
    if (n->dead) return;
    if (rc != RQ_OK) world_fail(&h->w, "the fenced log cannot be read: %d", rc);
    for (unsigned i = 0; i < REGIONS; i++) {
        bool needs = acknowledged[i] > h->flushed[i];
        if (needs && (f.last[i] < acknowledged[i] || f.first[i] > h->flushed[i] + 1))
            world_fail(&h->w,
                       "%s: %" PRIu64 " acknowledged, %" PRIu64 " flushed, found %" PRIu64
                       " to %" PRIu64,
                       names[i], acknowledged[i], h->flushed[i], f.first[i], f.last[i]);
    }
    if (!h->found) {
        h->found = true;
        h->crc = f.crc;
        h->count = f.count;
    }
    if (f.crc != h->crc || f.count != h->count) world_fail(&h->w, "readers find different records");
    h->readers++;
    seen_records += (uint32_t)f.count;
}

static void reader(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[t->node->index]);
    world *w = t->world;
    /* Fences the log while it is written, or after its end. */
    world_sleep_ms(w, h->fenced_after_ms + world_below(w, 4000));
    for (unsigned times = 1 + (unsigned)world_below(w, 3); times > 0; times--) {
        uint64_t quiet_ns;
        rq_err rc = RQ_E_IO;
        while (rc == RQ_E_IO && !t->node->dead)
            rc = rq_wal_fence(t->node->shared, SERVER, "other,16020,2", &quiet_ns, NULL);
        if (t->node->dead) return;
        if (rc != RQ_OK) world_fail(w, "fence: %d", rc);
        check_log(h, t->node);
        world_sleep_ms(w, world_below(w, 2000));
    }
}

/* --- faults of the nodes -------------------------------------------------------------------- */

static void faults(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[WORLD_NODES]);
    world *w = t->world;
    while (!h->written_off) {
        /* Mostly the victim. */
        unsigned i = world_below(w, 3) > 0 ? VICTIM : (unsigned)world_below(w, WORLD_NODES);
        (void)world_fault(&w->nodes[i], (world_chances){.pause = 12, .cut = 12, .kill = 1});
    }
}

static void retire(world_task *t)
{
    rq_shared *s = t->node->shared;
    rq_err rc = RQ_E_IO;
    while (rc == RQ_E_IO)
        rc = rq_wal_need(s, SERVER, names[0], 1, NULL);
    assert_int_equal(rc, RQ_OK);
    world_sleep_ms(t->world, LATE_MS); /* a late put of the key must not follow its deletion */
    for (rc = RQ_E_IO; rc == RQ_E_IO;)
        rc = rq_wal_retire(s, SERVER, NULL);
    if (rc != RQ_E_STATE) world_fail(t->world, "a log that a region needs is retired: %d", rc);
    for (rc = RQ_E_IO; rc == RQ_E_IO;)
        rc = rq_wal_need_no_more(s, SERVER, names[0], 1, NULL);
    rq_error why = {.code = RQ_OK};
    for (rc = RQ_E_IO; rc == RQ_E_IO;) {
        rq_error_clear(&why);
        rc = rq_wal_retire(s, SERVER, &why);
    }
    if (rc != RQ_OK) world_fail(t->world, "retire: %s", why.message);
    rq_wal_sealed *log;
    for (rc = RQ_E_IO; rc == RQ_E_IO;)
        rc = rq_wal_sealed_open(s, SERVER, 0, &log, NULL);
    if (rc != RQ_E_NOT_FOUND) world_fail(t->world, "a retired log is there: %d", rc);
    seen_retired++;
}

static void run_seed(world_form form, uint64_t seed)
{
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    world_open(&h->w, form, seed, (unsigned)(seed % 4) * 20);
    h->fenced_after_ms = 200 + world_below(&h->w, seed % 3 == 0 ? 3000 : 60000);
    h->record_limit = 100 + world_below(&h->w, RECORDS_MAX - 100);
    world_start(&h->tasks[VICTIM], &h->w, &h->w.nodes[VICTIM], writer);
    for (unsigned i = 1; i < WORLD_NODES; i++)
        world_start(&h->tasks[i], &h->w, &h->w.nodes[i], reader);
    world_start(&h->tasks[WORLD_NODES], &h->w, NULL, faults);
    world_run(&h->w);
    /* Messages still in transit have arrived by then, and changed nothing. */
    rq_sim_advance(h->w.sim, LATE_MS * UINT64_C(1000000));
    world_start(&h->tasks[1], &h->w, &h->w.nodes[1], reader);
    world_run(&h->w);
    if (h->readers == 0) world_fail(&h->w, "nobody read the log");
    world_start(&h->tasks[1], &h->w, &h->w.nodes[1], retire);
    world_run(&h->w);
    world_close(&h->w);
    free(h);
}

static void run_form(world_form form)
{
    seeds_range seeds = seeds_wanted(40);
    seen_tailed = seen_reopened = seen_records = seen_repairs = seen_rolls = seen_freed = 0;
    seen_failed = seen_clean = seen_retired = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        run_seed(form, seed);
    printf(
        "records read %u, repairs %u, rolls %u, ledgers freed %u, fenced logs %u, clean ends %u\n",
        seen_records, seen_repairs, seen_rolls, seen_freed, seen_failed, seen_clean);
    printf("records read by the tail %u, opened again %u\n", seen_tailed, seen_reopened);
    if (seeds.last - seeds.first < 39) return;
    assert_true(seen_tailed > 1000 && seen_reopened > 20);
    /* Events that never happen are not tested. */
    assert_true(seen_records > 1000 && seen_rolls > 100 && seen_freed > 20 && seen_failed > 0);
    assert_true(seen_retired > 0 && seen_clean > 0 && (form == FORM_FOLDER || seen_repairs > 20));
}

static void nothing_is_lost_by_messages(void **state)
{
    (void)state;
    run_form(FORM_MESSAGES);
}

static void nothing_is_lost_in_a_folder(void **state)
{
    (void)state;
    run_form(FORM_FOLDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_by_messages),
        cmocka_unit_test(nothing_is_lost_in_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
