/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the log, apart from crashes. */
#include "history.h"

#include "base/checksum.h"
#include "base/meter.h"
#include "wal/format.h"
#include "wal/reader.h"
#include "wal/record_codec.h"
#include "wal/header.h"
#include "wal/wal_priv.h"

static rq_sim *new_sim(uint64_t seed)
{
    rq_sim *sim;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    return sim;
}

static const rq_wal_options small = {
    .dir = "wal",
    .file_bytes = 8192,
    .max_log_bytes = 40000,
    .staging_bytes = 4096,
    .staging_bytes_max = 65536,
};

static void open_ok(history *h)
{
    rq_error why = {0};
    if (!history_open(h, &why)) fail_msg("%s %s", h->fault, why.message);
}

static staged *stage_ok(history *h, int region, size_t size)
{
    rq_err rc;
    staged *s = history_stage(h, region, size, RQ_WAL_EDIT, &rc);
    if (s == NULL) fail_msg("%s", rq_err_name(rc));
    return s;
}

/* Stages a record, pushes it and waits for the acknowledgement. */
static staged *append(history *h, int region, size_t size)
{
    staged *s = stage_ok(h, region, size);
    history_wait(h, s, false);
    rq_wal_push(h->wal, h->member);
    rq_sim_run(h->sim);
    assert_true(s->acknowledged);
    return s;
}

static size_t files_in(rq_sim *sim, const char *dir)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(rq_sim_env(sim)->vfs, dir, &arena, &entries, &count, NULL), RQ_OK);
    rq_arena_clear(&arena);
    return count;
}

/* --- records -------------------------------------------------------------------------------- */

static rq_err check_full_record(void *ctx, const rq_wal_record *r)
{
    ++*(int *)ctx;
    assert_int_equal(r->kind, RQ_WAL_BULK_LOAD);
    assert_true(rq_slice_eq(r->region, RQ_SLICE_LIT("encoded")));
    assert_true(rq_slice_eq(r->table, RQ_SLICE_LIT("ns:t")));
    assert_int_equal(r->sequence_id, 77);
    assert_int_equal(r->write_time_ms, -5);
    assert_int_equal(r->nonce_group, UINT64_MAX);
    assert_int_equal(r->nonce, 12345678901234567890u);
    assert_true(rq_slice_eq(r->cluster_ids, RQ_SLICE_LIT("0123456789abcdefFEDCBA9876543210")));
    rq_cursor c = rq_cursor_of(r->scopes);
    rq_slice family;
    uint32_t scope;
    assert_true(rq_wal_scope_next(&c, &family, &scope));
    assert_true(rq_slice_eq(family, RQ_SLICE_LIT("cf")) && scope == 1);
    assert_false(rq_wal_scope_next(&c, &family, &scope));
    assert_true(rq_slice_eq(r->payload, RQ_SLICE_LIT("one two three")));
    return RQ_OK;
}

static void every_field_of_a_record_comes_back(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(1);
    rq_wal *wal;
    rq_wal_region *region;
    rq_lsn lsn;
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, NULL), RQ_OK);
    assert_int_equal(rq_wal_replay(wal, NULL, NULL, NULL), RQ_OK);
    assert_int_equal(rq_wal_region_open(wal, "encoded", RQ_SLICE_LIT("ns:t"), NULL, &region),
                     RQ_OK);
    rq_wal_record r = {
        .kind = RQ_WAL_BULK_LOAD,
        .sequence_id = 77,
        .write_time_ms = -5,
        .nonce_group = UINT64_MAX,
        .nonce = 12345678901234567890u,
        .cluster_ids = RQ_SLICE_LIT("0123456789abcdefFEDCBA9876543210"),
        .scopes = RQ_SLICE_LIT("\2cf\0\0\0\1"),
        .payload = RQ_SLICE_LIT("one "),
    };
    rq_slice more[] = {RQ_SLICE_LIT("two "), {0}, RQ_SLICE_LIT("three")};
    assert_int_equal(rq_wal_stage(wal, region, &r, more, 3, &lsn), RQ_OK);
    assert_int_equal(rq_wal_wait_blocking(wal, lsn, false), RQ_OK);
    r.cluster_ids.len = 3;
    assert_int_equal(rq_wal_stage(wal, region, &r, NULL, 0, &lsn), RQ_E_INVALID);
    r.cluster_ids.len = 0;
    r.kind = 0;
    assert_int_equal(rq_wal_stage(wal, region, &r, NULL, 0, &lsn), RQ_E_INVALID);
    rq_wal_region_close(region);
    assert_int_equal(rq_wal_close(wal, false, NULL), RQ_OK);
    int found = 0;
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, NULL), RQ_OK);
    assert_int_equal(rq_wal_replay(wal, check_full_record, &found, NULL), RQ_OK);
    assert_int_equal(found, 1);
    assert_int_equal(rq_wal_found_sequence_id(wal, "encoded"), 77);
    assert_int_equal(rq_wal_found_sequence_id(wal, "other"), 0);
    assert_int_equal(rq_wal_close(wal, true, NULL), RQ_OK);
    rq_sim_free(sim);
}

static void a_record_may_be_as_long_as_half_the_ceiling(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(2);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    rq_err rc;
    append(&h, 1, 32000);
    assert_null(history_stage(&h, 1, 40000, RQ_WAL_EDIT, &rc));
    assert_int_equal(rc, RQ_E_REQUEST_TOO_BIG);
    append(&h, 1, 32000);
    assert_int_equal(history_close(&h, false), RQ_OK);
    open_ok(&h);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

typedef struct many {
    rq_slice bytes;
    bool same;
} many;

static rq_err same_bytes(void *ctx, const rq_wal_record *r)
{
    many *m = ctx;
    m->same = rq_slice_eq(r->payload, m->bytes);
    return RQ_OK;
}

static void a_record_may_come_in_many_pieces(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(2);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    uint8_t bytes[5000];
    rq_slice pieces[1000];
    history_payload(2, 1, bytes, sizeof bytes);
    for (size_t i = 0; i < 1000; i++)
        pieces[i] = rq_slice_of(bytes + 5 * i, 5);
    rq_wal_record r = {.kind = RQ_WAL_EDIT, .sequence_id = 1};
    rq_lsn lsn;
    assert_int_equal(rq_wal_stage(h.wal, h.regions[2], &r, pieces, 1000, &lsn), RQ_OK);
    assert_int_equal(rq_wal_wait_blocking(h.wal, lsn, true), RQ_OK);
    history_close(&h, false);
    rq_wal *wal;
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, NULL), RQ_OK);
    many found = {.bytes = rq_slice_of(bytes, sizeof bytes)};
    assert_int_equal(rq_wal_replay(wal, same_bytes, &found, NULL), RQ_OK);
    assert_true(found.same);
    rq_wal_close(wal, false, NULL);
    history_clear(&h);
    rq_sim_free(sim);
}

static void a_full_ring_makes_the_caller_wait(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(3);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    rq_err rc = RQ_OK;
    staged *s, *last = NULL;
    int n = 0;
    while ((s = history_stage(&h, n++ % REGIONS, 1000, RQ_WAL_EDIT, &rc)) != NULL)
        last = s;
    assert_int_equal(rc, RQ_E_REGION_TOO_BUSY);
    assert_true(n > 50);
    assert_int_equal(rq_wal_wait_blocking(h.wal, last->lsn, false), RQ_OK);
    append(&h, 0, 1000);
    history_close(&h, false);
    open_ok(&h);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* --- acknowledgement -------------------------------------------------------------------------- */

static void handover_acknowledges_before_the_disk_and_sync_after_it(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(4);
    for (int mode = 0; mode < 2; mode++) {
        rq_wal_options options = small;
        options.dir = mode == 0 ? "a" : "b";
        options.sync = mode == 0 ? RQ_WAL_HANDOVER : RQ_WAL_SYNC;
        history h;
        history_init(&h, sim, &options);
        open_ok(&h);
        staged *s = stage_ok(&h, 0, 10);
        staged *synced = stage_ok(&h, 0, 10);
        history_wait(&h, s, false);
        history_wait(&h, synced, true);
        rq_wal_push(h.wal, h.member);
        /* No task has run, in particular not the log's lane. */
        assert_int_equal(s->acknowledged, mode == 0);
        assert_false(synced->acknowledged);
        rq_sim_run(sim);
        assert_true(s->acknowledged && synced->acknowledged);
        history_close(&h, false);
        history_clear(&h);
    }
    rq_sim_free(sim);
}

static void unawaited_bytes_are_synced_soon(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(5);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    staged *s = stage_ok(&h, 0, 10);
    rq_wal_push(h.wal, NULL);
    rq_sim_run(sim);
    rq_wal_stats stats;
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.written == s->lsn && stats.synced < s->lsn);
    rq_sim_advance(sim, 2000000000);
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.synced >= s->lsn);
    uint64_t calls = rq_sim_calls(sim);
    rq_sim_advance(sim, 60000000000);
    /* at most the mark is written; then the log is quiet */
    assert_true(rq_sim_calls(sim) <= calls + 1);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

static void one_sync_serves_all_waiters(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(6);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    append(&h, 0, 10);
    rq_wal_stats before, after;
    rq_wal_get_stats(h.wal, &before);
    staged *all[20];
    for (int i = 0; i < 20; i++) {
        all[i] = stage_ok(&h, i % REGIONS, 50);
        history_wait(&h, all[i], false);
    }
    rq_wal_push(h.wal, NULL);
    rq_sim_run(sim);
    rq_wal_get_stats(h.wal, &after);
    assert_int_equal(after.writes - before.writes, 1);
    assert_int_equal(after.syncs - before.syncs, 1);
    for (int i = 0; i < 20; i++)
        assert_true(all[i]->acknowledged);
    assert_false(h.out_of_order);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* Threads that write one after another, each when its record is durable. */
typedef struct chain {
    history *h;
    rq_wal_waiter waiter;
    unsigned left;
} chain;

static void write_next(chain *c)
{
    staged *s = stage_ok(c->h, 0, 10);
    c->left--;
    rq_wal_wait(c->h->wal->direct, &c->waiter, s->lsn, true);
    rq_wal_push(c->h->wal, NULL);
}

static void is_durable(rq_wal_waiter *waiter, rq_err rc)
{
    chain *c = RQ_CONTAINER_OF(waiter, chain, waiter);
    assert_int_equal(rc, RQ_OK);
    if (c->left > 0) write_next(c);
}

/* Without threads a task of the log runs inside a call: the call must not serve others for ever. */
static void a_task_makes_one_sync(void **state)
{
    (void)state;
    enum { WRITES = 10 };
    rq_sim *sim = new_sim(6);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    append(&h, 0, 10);
    rq_wal_stats first, before, after;
    chain c = {.h = &h, .waiter.run = is_durable, .left = WRITES};
    rq_wal_get_stats(h.wal, &first);
    before = first;
    write_next(&c);
    while (rq_sim_step(sim)) {
        rq_wal_get_stats(h.wal, &after);
        assert_true(after.syncs <= before.syncs + 1);
        before = after;
    }
    assert_int_equal(c.left, 0);
    assert_int_equal(before.syncs - first.syncs, WRITES);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* Checks the order in which waiters run. */
typedef struct line {
    unsigned next; /* the place whose turn it is */
    rq_err rc;     /* expected result */
} line;

typedef struct placed {
    rq_wal_waiter waiter;
    line *line;
    unsigned place;
} placed;

static void its_turn(rq_wal_waiter *waiter, rq_err rc)
{
    const placed *p = RQ_CONTAINER_OF(waiter, placed, waiter);
    assert_int_equal(p->place, p->line->next++);
    assert_true(rc == RQ_OK ? p->line->rc == RQ_OK : p->line->rc != RQ_OK);
}

/* Many waiters that are completed at once run in order, in several tasks, so that the lane can do other work between
 * the tasks; also if all waiters fail. */
static void many_waiters_run_in_slices(void **state)
{
    (void)state;
    enum { WAITERS = 1000, AT_ONCE = RQ_METER_STRETCH_STEPS / RQ_METER_LOOK_STEPS };
    static placed all[WAITERS];
    for (int fails = 0; fails < 2; fails++) {
        rq_sim *sim = new_sim(6);
        rq_wal_options options = small;
        options.staging_bytes_max = 1 << 20;
        options.file_bytes = 1 << 20;
        history h;
        history_init(&h, sim, &options);
        open_ok(&h);
        append(&h, 0, 10);
        line one = {.rc = fails ? RQ_E_IO : RQ_OK};
        for (unsigned i = 0; i < WAITERS; i++) {
            all[i] = (placed){.waiter.run = its_turn, .line = &one, .place = i};
            rq_wal_wait(h.member, &all[i].waiter, stage_ok(&h, (int)(i % REGIONS), 10)->lsn, true);
        }
        if (fails) rq_sim_fail_writes(sim, RQ_E_IO);
        rq_wal_push(h.wal, NULL);
        while (one.next < WAITERS) {
            unsigned before = one.next;
            if (!rq_sim_step(sim)) fail_msg("%u of %d waiters ran", one.next, WAITERS);
            if (one.next - before > AT_ONCE) fail_msg("%u waiters in a task", one.next - before);
        }
        rq_sim_run(sim);
        rq_sim_fail_writes(sim, RQ_OK);
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
}

/* A waiter that waits again for the same position, which is acknowledged already, each time it runs. */
typedef struct eager {
    rq_wal_waiter waiter;
    const history *h;
    rq_lsn upto;
    const bool *enough;
} eager;

static void wait_again(rq_wal_waiter *waiter, rq_err rc)
{
    eager *e = RQ_CONTAINER_OF(waiter, eager, waiter);
    assert_int_equal(rc, RQ_OK);
    if (!*e->enough) rq_wal_wait(e->h->member, waiter, e->upto, false);
}

typedef struct patient {
    rq_wal_waiter waiter;
    bool answered;
} patient;

static void is_answered(rq_wal_waiter *waiter, rq_err rc)
{
    assert_int_equal(rc, RQ_OK);
    RQ_CONTAINER_OF(waiter, patient, waiter)->answered = true;
}

/* Waiters that are acknowledged before a sync do not delay those that wait for the sync. */
static void waiters_for_a_sync_are_not_put_off(void **state)
{
    (void)state;
    enum { WAITERS = 1000 };
    static eager all[WAITERS];
    rq_sim *sim = new_sim(6);
    rq_wal_options options = small;
    options.sync = RQ_WAL_HANDOVER;
    history h;
    history_init(&h, sim, &options);
    open_ok(&h);
    append(&h, 0, 10);
    rq_lsn upto = stage_ok(&h, 0, 10)->lsn;
    patient one = {.waiter.run = is_answered};
    for (unsigned i = 0; i < WAITERS; i++) {
        all[i] = (eager){.waiter.run = wait_again, .h = &h, .upto = upto, .enough = &one.answered};
        rq_wal_wait(h.member, &all[i].waiter, upto, false);
    }
    rq_wal_wait(h.member, &one.waiter, upto, true);
    rq_wal_push(h.wal, NULL);
    for (int i = 0; i < 1000 && !one.answered; i++)
        if (!rq_sim_step(sim)) break;
    assert_true(one.answered);
    rq_sim_run(sim);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* --- WAL files -------------------------------------------------------------------------------- */

static void flush_all(history *h)
{
    for (int r = 0; r < REGIONS; r++)
        history_flush(h, r);
}

/* Otherwise a loop would wait for the device to read the rest of an overwritten page. */
static void an_overwrite_of_a_file_fills_each_page_it_starts(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(7);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    rq_wal_stats before, after;
    unsigned writes = 0;
    uint64_t begun = 0;
    for (unsigned i = 0; i < 400; i++) {
        uint64_t old = rq_sim_pages_begun(sim);
        rq_wal_get_stats(h.wal, &before);
        append(&h, (int)(i % REGIONS), 100 + i % 7 * 200);
        rq_wal_get_stats(h.wal, &after);
        if (after.rolls == before.rolls && after.recycled > 0) {
            writes++;
            begun += rq_sim_pages_begun(sim) - old;
        }
        if (i % 10 == 9) flush_all(&h);
    }
    assert_true(writes > 200);
    assert_int_equal(begun, 0);
    assert_int_equal(history_close(&h, false), RQ_OK);
    open_ok(&h);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

static void flushed_files_are_used_again(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(7);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    for (int i = 0; i < 400; i++) {
        append(&h, i % REGIONS, 500);
        if (i % 10 == 9) flush_all(&h);
    }
    rq_wal_stats stats;
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.rolls > 20);
    assert_true(stats.recycled > 18);
    assert_true(stats.files <= 4);
    assert_true(files_in(sim, "wal") <= 6);
    assert_int_equal(history_close(&h, false), RQ_OK);
    open_ok(&h);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* The file of the WAL file being written, as it is on the disk. The caller frees it. */
static uint8_t *current_bytes(const history *h, char path[static RQ_WAL_PATH_MAX], size_t *ret_len)
{
    rq_vfs *v = rq_sim_env(h->sim)->vfs;
    rq_file *f;
    uint64_t size;
    rq__wal_slot_path(h->wal, h->wal->current->slot->id, path);
    assert_int_equal(rq_vfs_open(v, path, RQ_OPEN_READ, &f, NULL), RQ_OK);
    assert_int_equal(rq_file_size(f, &size, NULL), RQ_OK);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(rq_file_read(f, bytes, size, 0, ret_len, NULL), RQ_OK);
    rq_file_close(f);
    return bytes;
}

/* In a recycled file, frames of the former WAL file follow the log's end directly, with valid checksums. They are no part
 * of the log, and a damaged frame before the end is not taken for the end. */
static void old_frames_behind_the_end_are_not_read(void **state)
{
    (void)state;
    enum { FRAME = 512, PAYLOAD = FRAME - RQ_WAL_FRAME_HEADER_LEN - RQ_WAL_RECORD_FIXED - 32 - 8 };
    for (int damaged = 0; damaged < 2; damaged++) {
        rq_sim *sim = new_sim(7);
        history h;
        history_init(&h, sim, &small);
        open_ok(&h);
        rq_wal_stats stats = {0};
        uint64_t end = 0;
        while (stats.recycled < 6 || end != 2 * RQ_WAL_FRAMES_AT) {
            append(&h, 1, PAYLOAD);
            end = rq__wal_offset(h.wal->current, h.wal->staged);
            if (end == RQ_WAL_FRAMES_AT + FRAME) history_flush(&h, 1);
            rq_wal_get_stats(h.wal, &stats);
        }
        char path[RQ_WAL_PATH_MAX];
        size_t len;
        uint8_t *bytes = current_bytes(&h, path, &len);
        rq__wal_frame old;
        assert_true(len >= end + FRAME && rq__wal_frame_decode(bytes + end, &old));
        assert_true(old.lsn < h.wal->staged && old.epoch == (uint32_t)h.wal->epoch);
        free(bytes);
        history_close(&h, false);
        rq_sim_restart(sim);
        if (damaged) assert_true(rq_sim_flip_bit(sim, path, RQ_WAL_FRAMES_AT + 2 * FRAME + 50, 1));
        rq_error why = {0};
        bool opened = history_open(&h, &why);
        if (opened == (damaged != 0)) fail_msg("%s %s", h.fault, why.message);
        if (damaged) assert_int_equal(why.code, RQ_E_CORRUPT);
        if (opened) history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
}

/* Files longer than WAL files are now, here because of another setting, are not kept for reuse. */
static void a_long_file_is_not_kept(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(7);
    history h;
    history_init(&h, sim, &small);
    h.options.file_bytes = 60000;
    open_ok(&h);
    for (int i = 0; i < 400; i++) {
        append(&h, i % REGIONS, 500);
        if (i % 200 == 199) flush_all(&h);
    }
    assert_int_equal(history_close(&h, false), RQ_OK);
    assert_true(rq_sim_used(sim) > 3 * 60000);
    h.options.file_bytes = small.file_bytes;
    open_ok(&h);
    for (int i = 0; i < 100; i++) {
        append(&h, i % REGIONS, 500);
        if (i % 10 == 9) flush_all(&h);
    }
    rq_wal_stats stats;
    rq_wal_get_stats(h.wal, &stats);
    uint64_t most = RQ_WAL_FRAMES_AT + 2 * small.file_bytes;
    assert_true(stats.spare_bytes > 0 && stats.spare_bytes <= RQ_WAL_FREE_SLOTS_KEPT * most);
    assert_true(h.wal->current->slot->prewritten <= most);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

static void on_pressure(void *ctx, rq_wal_region *holder, bool urgent)
{
    if (!urgent) return;
    history *h = ctx;
    h->pressed[rq_wal_region_name(holder)[0] == '1' ? 0 : 1]++;
    if (rq_wal_region_owner(holder) != h) h->pressed[1] = 1000000;
}

static void a_log_too_long_names_the_region_holding_its_oldest_file(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(8);
    history h;
    history_init(&h, sim, &small);
    h.options.on_pressure = on_pressure;
    open_ok(&h);
    append(&h, 0, 100); /* region 0 holds the first WAL file with one small record */
    for (int i = 0; i < 200; i++) {
        append(&h, 1, 500);
        if (i % 4 == 3) history_flush(&h, 1);
    }
    assert_true(h.pressed[0] > 3);
    assert_int_equal(h.pressed[1], 0);
    int before = h.pressed[0];
    rq_wal_stats stats;
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.log_bytes > small.max_log_bytes);
    history_flush(&h, 0);
    rq_wal_get_stats(h.wal, &stats);
    assert_true(stats.log_bytes < small.max_log_bytes);
    for (int i = 0; i < 100; i++) {
        append(&h, 1, 500);
        history_flush(&h, 1);
    }
    assert_int_equal(h.pressed[0], before);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

static void on_gentle_pressure(void *ctx, rq_wal_region *holder, bool urgent)
{
    history *h = ctx;
    if (urgent)
        h->pressed[1]++;
    else if (rq_wal_region_name(holder)[0] == '1')
        h->pressed[0]++;
}

static void a_region_nearly_alone_in_an_old_file_is_flushed_early(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(8);
    history h;
    history_init(&h, sim, &small);
    h.options.on_pressure = on_gentle_pressure;
    open_ok(&h);
    rq_wal_stats stats;
    for (int round = 0; round < 5; round++) {
        append(&h, 0, 100); /* this record holds a WAL file */
        h.pressed[0] = 0;
        for (int i = 0; h.pressed[0] == 0; i++) {
            assert_true(i < 100);
            append(&h, 1, 500);
            history_flush(&h, 1);
        }
        history_flush(&h, 0);
        rq_wal_get_stats(h.wal, &stats);
        assert_true(stats.log_bytes < small.max_log_bytes / 2);
        assert_int_equal(h.pressed[1], 0);
    }
    /* WAL files are overwritten instead of created. */
    assert_true(stats.recycled >= 5);
    assert_true(files_in(sim, "wal") <= 5);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* Under pressure the engine looks up the region, and may not find it open. */
static void an_opened_region_is_pressed_again(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(8);
    history h;
    history_init(&h, sim, &small);
    h.options.on_pressure = on_pressure;
    open_ok(&h);
    append(&h, 0, 100);
    rq_wal_stats stats;
    do {
        append(&h, 1, 500);
        history_flush(&h, 1);
        rq_wal_get_stats(h.wal, &stats);
    } while (stats.log_bytes < 2 * small.max_log_bytes);
    append(&h, 1, 10); /* no new WAL file, so no region is asked to flush */
    int before = h.pressed[0];
    append(&h, 1, 10);
    assert_int_equal(h.pressed[0], before);
    rq_wal_region *again;
    rq_wal_region_close(h.regions[0]);
    assert_int_equal(
        rq_wal_region_open(h.wal, "1588230740", RQ_SLICE_LIT("hbase:meta"), &h, &again), RQ_OK);
    assert_ptr_equal(again, h.regions[0]); /* the WAL files that it holds are remembered */
    append(&h, 1, 10);
    assert_int_equal(h.pressed[0], before + 1);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

static void a_clean_close_leaves_an_empty_log(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        rq_sim *sim = new_sim(seed);
        history h;
        history_init(&h, sim, &small);
        for (int life = 0; life < 4; life++) {
            open_ok(&h);
            history_steps(&h, 50 * life);
            rq_wal_push(h.wal, h.member);
            rq_sim_advance(sim, 3000000000);
            for (size_t i = 0; i < h.count; i++)
                h.records[i]->durable = true;
            for (int r = 0; r < REGIONS; r++)
                history_flush(&h, r);
            assert_int_equal(history_close(&h, true), RQ_OK);
            assert_int_equal(files_in(sim, "wal"), 1);
            rq_sim_restart(sim); /* the clean close is durable */
            rq_wal *wal;
            rq_error why = {0};
            int found = 0;
            assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
            uint64_t calls = rq_sim_calls(sim);
            assert_int_equal(rq_wal_replay(wal, check_full_record, &found, &why), RQ_OK);
            /* Both copies of the new header are written, the first is synced; nothing is read. */
            assert_true(rq_sim_calls(sim) - calls <= 3);
            assert_int_equal(rq_wal_unclaimed(wal, NULL, NULL), 0);
            assert_int_equal(rq_wal_close(wal, true, NULL), RQ_OK);
        }
        history_clear(&h);
        rq_sim_free(sim);
    }
}

static bool say_yes(void *ctx, const char *encoded)
{
    ++*(int *)ctx;
    assert_string_equal(encoded, "0123456789abcdef0123456789abcdef");
    return true;
}

static void a_region_keeps_its_files_until_released(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(9);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    append(&h, 1, 100);
    rq_error why = {0};
    assert_int_equal(history_close(&h, true), RQ_E_STATE);
    rq_wal *wal;
    rq_wal_region *other, *again;
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
    assert_int_equal(rq_wal_replay(wal, NULL, NULL, &why), RQ_OK);
    assert_int_equal(rq_wal_region_open(wal, "other", RQ_SLICE_LIT("t"), NULL, &other), RQ_OK);
    assert_int_equal(rq_wal_region_open(wal, "other", RQ_SLICE_LIT("t"), NULL, &again),
                     RQ_E_EXISTS);
    rq_wal_region_close(other);
    assert_int_equal(rq_wal_unclaimed(wal, NULL, NULL), 1);
    int asked = 0;
    assert_int_equal(rq_wal_unclaimed(wal, say_yes, &asked), 0);
    assert_int_equal(asked, 1);
    assert_int_equal(rq_wal_close(wal, true, &why), RQ_OK);
    history_clear(&h);
    rq_sim_free(sim);
}

static size_t longest_chain(const rq_wal *wal)
{
    size_t longest = 0;
    for (size_t b = 0; b < wal->bucket_count; b++) {
        size_t n = 0;
        for (const rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next)
            n++;
        if (n > longest) longest = n;
    }
    return longest;
}

/* A start looks up each region several times. */
static void many_regions_are_found_at_once(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    rq_sim *sim = new_sim(9);
    rq_wal *wal;
    rq_error why = {0};
    rq_wal_region **regions = calloc(MANY, sizeof(rq_wal_region *));
    assert_non_null(regions);
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
    assert_int_equal(rq_wal_replay(wal, NULL, NULL, &why), RQ_OK);
    for (unsigned i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "%031x", i);
        assert_int_equal(rq_wal_region_open(wal, name, RQ_SLICE_LIT("t"), NULL, &regions[i]),
                         RQ_OK);
    }
    assert_in_range(longest_chain(wal), 1, 16);
    for (unsigned i = 0; i < MANY; i++)
        rq_wal_region_close(regions[i]);
    assert_int_equal(wal->region_count, 0);
    assert_int_equal(rq_wal_close(wal, true, &why), RQ_OK);
    rq_sim_free(sim);
    free(regions);
}

/* --- replay of a single region ---------------------------------------------------------------- */

typedef struct alone {
    uint64_t last;
    int count;
    const char *name;
} alone;

static rq_err take_alone(void *ctx, const rq_wal_record *r)
{
    alone *a = ctx;
    assert_true(rq_slice_eq(r->region, rq_slice_cstr(a->name)));
    assert_true(r->sequence_id > a->last);
    a->last = r->sequence_id;
    a->count++;
    return RQ_OK;
}

static void a_region_replays_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        rq_sim *sim = new_sim(seed);
        history h;
        history_init(&h, sim, &small);
        open_ok(&h);
        int staged_after[REGIONS] = {0};
        for (int i = 0; i < 150; i++) {
            int r = (int)(rq_sim_random(sim) % REGIONS);
            stage_ok(&h, r, rq_sim_random(sim) % 800);
            staged_after[r]++;
            if (rq_sim_random(sim) % 4 == 0) rq_wal_push(h.wal, NULL);
            if (rq_sim_random(sim) % 4 == 0) rq_sim_run(sim);
            rq_wal_stats stats;
            rq_wal_get_stats(h.wal, &stats);
            if (stats.staged - stats.synced > 30000)
                assert_int_equal(rq_wal_wait_blocking(h.wal, stats.staged, true), RQ_OK);
        }
        for (int r = 0; r < REGIONS; r++) {
            alone a = {.name = history_names[r]};
            rq_error why = {0};
            if (rq_wal_replay_region(h.wal, history_names[r], take_alone, &a, &why) != RQ_OK)
                fail_msg("%s", why.message);
            assert_int_equal(a.count, staged_after[r]);
        }
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
}

typedef struct index_seen {
    int regions;
    uint64_t highest;
} index_seen;

static rq_err see_index(void *ctx, const rq_wal_index_entry *e)
{
    index_seen *seen = ctx;
    seen->regions++;
    assert_true(e->lowest <= e->highest && e->chunks != 0);
    if (rq_slice_eq(e->region, RQ_SLICE_LIT("1588230740"))) seen->highest = e->highest;
    return RQ_OK;
}

static void a_sealed_file_ends_with_an_index(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(10);
    history h;
    history_init(&h, sim, &small);
    open_ok(&h);
    for (int i = 0; i < 10; i++)
        append(&h, i % 2, 300);
    rq_wal_roll(h.wal);
    rq_sim_run(sim);
    append(&h, 3, 10);
    rq_vfs *v = rq_sim_env(sim)->vfs;
    rq_wal_reader *first, *second;
    assert_int_equal(rq__wal_reader_open(v, "wal/000001.wal", &first, NULL), RQ_OK);
    assert_int_equal(rq__wal_reader_open(v, "wal/000002.wal", &second, NULL), RQ_OK);
    assert_int_equal(rq__wal_reader_info(second)->prev_number, rq__wal_reader_info(first)->number);
    rq__wal_reader_set_end(first, rq__wal_reader_info(second)->first_lsn);
    index_seen seen = {0};
    rq_error why = {0};
    if (rq_wal_reader_index(first, see_index, &seen, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_int_equal(seen.regions, 2);
    assert_int_equal(seen.highest, 5);
    rq_wal_record r;
    assert_int_equal(rq_wal_reader_seek_chunk(first, 0, NULL), RQ_OK);
    assert_int_equal(rq__wal_reader_next(first, &r, NULL), RQ_OK);
    assert_int_equal(r.sequence_id, 1);
    assert_int_equal(rq_wal_reader_seek_chunk(first, 63, NULL), RQ_E_END);
    rq__wal_reader_close(first);
    rq__wal_reader_close(second);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

/* --- frames written by the test --------------------------------------------------------------- */

static rq_file *new_log(rq_sim *sim)
{
    rq_vfs *v = rq_sim_env(sim)->vfs;
    assert_int_equal(rq_vfs_mkdirs(v, "wal", NULL), RQ_OK);
    rq_file *f;
    assert_int_equal(rq_vfs_open(v, "wal/000001.wal", RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, NULL),
                     RQ_OK);
    rq_wal_file_info info = {
        .number = 1, .epoch = 1, .first_lsn = RQ_WAL_FIRST_LSN, .oldest_number = 1};
    assert_int_equal(rq__wal_header_write(f, &info, 0, NULL), RQ_OK);
    return f;
}

/* Writes a frame; returns its header's CRC, for the next frame. */
static uint32_t write_frame(rq_file *f, rq_lsn lsn, uint32_t prev_crc, rq_slice body)
{
    rq__wal_frame frame = {.epoch = 1,
                           .lsn = lsn,
                           .body_len = (uint32_t)body.len,
                           .prev_crc = prev_crc,
                           .body_crc = rq_crc32c(0, body.ptr, body.len)};
    uint8_t bytes[512] = {0};
    rq__wal_frame_encode(&frame, bytes);
    memcpy(bytes + RQ_WAL_FRAME_HEADER_LEN, body.ptr, body.len);
    assert_int_equal(rq_file_write(f, bytes, rq__wal_frame_len(body.len),
                                   RQ_WAL_FRAMES_AT + lsn - RQ_WAL_FIRST_LSN, NULL),
                     RQ_OK);
    return frame.crc;
}

/* Makes a log with one frame. */
static void write_log(rq_sim *sim, rq_slice body)
{
    rq_file *f = new_log(sim);
    write_frame(f, RQ_WAL_FIRST_LSN, 0, body);
    rq_file_close(f);
}

static size_t a_record(uint64_t sequence_id, uint8_t *out)
{
    rq_wal_record r = {.kind = RQ_WAL_EDIT,
                       .region = RQ_SLICE_LIT("region"),
                       .table = RQ_SLICE_LIT("t"),
                       .sequence_id = sequence_id};
    return rq__wal_record_encode_head(&r, out);
}

static rq_err count_record(void *ctx, const rq_wal_record *r)
{
    (void)r;
    ++*(int *)ctx;
    return RQ_OK;
}

/* Like the bytes of a failed write that was repeated in another file. */
static void a_frame_that_does_not_follow_the_one_before_it_is_no_part_of_the_log(void **state)
{
    (void)state;
    for (int follows = 0; follows < 2; follows++) {
        rq_sim *sim = new_sim(1);
        rq_file *f = new_log(sim);
        uint8_t body[RQ_WAL_HEAD_MAX];
        size_t len = a_record(1, body);
        uint32_t crc = write_frame(f, RQ_WAL_FIRST_LSN, 0, rq_slice_of(body, len));
        rq_lsn second = RQ_WAL_FIRST_LSN + rq__wal_frame_len(len);
        len = a_record(2, body);
        write_frame(f, second, follows ? crc : crc + 1, rq_slice_of(body, len));
        rq_file_close(f);
        rq_wal *wal;
        rq_error why = {0};
        int records = 0;
        assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
        assert_int_equal(rq_wal_replay(wal, count_record, &records, &why), RQ_OK);
        assert_int_equal(records, 1 + follows);
        rq_wal_close(wal, false, NULL);
        rq_sim_free(sim);
    }
}

static void unknown_kinds_and_malformed_records_are_refused(void **state)
{
    (void)state;
    uint8_t body[200];
    rq_wal_record r = {.kind = RQ_WAL_EDIT,
                       .region = RQ_SLICE_LIT("region"),
                       .table = RQ_SLICE_LIT("t"),
                       .sequence_id = 1,
                       .scopes = RQ_SLICE_LIT("\2cf\0\0\0\1")};
    uint8_t head[RQ_WAL_HEAD_MAX];
    size_t len = rq__wal_record_encode_head(&r, head);
    memcpy(body, head, len);
    memcpy(body + len, r.scopes.ptr, r.scopes.len);
    len += r.scopes.len;
    for (size_t cut = 0; cut <= len; cut++) {
        rq_sim *sim = new_sim(cut);
        write_log(sim, rq_slice_of(body, cut));
        rq_wal *wal;
        rq_error why = {0};
        assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
        rq_err rc = rq_wal_replay(wal, NULL, NULL, &why);
        if (cut == len) {
            assert_int_equal(rc, RQ_OK);
        } else {
            assert_int_equal(rc, RQ_E_CORRUPT);
            assert_non_null(strstr(why.message, "wal/000001.wal: offset 4096"));
        }
        rq_wal_close(wal, false, NULL);
        rq_sim_free(sim);
    }
    rq_sim *sim = new_sim(1);
    body[0] = RQ_WAL_KIND_LAST + 1;
    write_log(sim, rq_slice_of(body, len));
    rq_wal *wal;
    rq_error why = {0};
    assert_int_equal(rq_wal_open(rq_sim_env(sim), &small, &wal, &why), RQ_OK);
    assert_int_equal(rq_wal_replay(wal, NULL, NULL, &why), RQ_E_VERSION);
    assert_non_null(strstr(why.message, "wal/000001.wal: offset 4096"));
    rq_wal_close(wal, false, NULL);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_a_record_comes_back),
        cmocka_unit_test(a_record_may_be_as_long_as_half_the_ceiling),
        cmocka_unit_test(a_record_may_come_in_many_pieces),
        cmocka_unit_test(a_full_ring_makes_the_caller_wait),
        cmocka_unit_test(handover_acknowledges_before_the_disk_and_sync_after_it),
        cmocka_unit_test(unawaited_bytes_are_synced_soon),
        cmocka_unit_test(one_sync_serves_all_waiters),
        cmocka_unit_test(a_task_makes_one_sync),
        cmocka_unit_test(many_waiters_run_in_slices),
        cmocka_unit_test(waiters_for_a_sync_are_not_put_off),
        cmocka_unit_test(flushed_files_are_used_again),
        cmocka_unit_test(old_frames_behind_the_end_are_not_read),
        cmocka_unit_test(a_long_file_is_not_kept),
        cmocka_unit_test(an_overwrite_of_a_file_fills_each_page_it_starts),
        cmocka_unit_test(a_log_too_long_names_the_region_holding_its_oldest_file),
        cmocka_unit_test(a_region_nearly_alone_in_an_old_file_is_flushed_early),
        cmocka_unit_test(an_opened_region_is_pressed_again),
        cmocka_unit_test(a_clean_close_leaves_an_empty_log),
        cmocka_unit_test(a_region_keeps_its_files_until_released),
        cmocka_unit_test(a_region_replays_alone),
        cmocka_unit_test(many_regions_are_found_at_once),
        cmocka_unit_test(a_sealed_file_ends_with_an_index),
        cmocka_unit_test(a_frame_that_does_not_follow_the_one_before_it_is_no_part_of_the_log),
        cmocka_unit_test(unknown_kinds_and_malformed_records_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
