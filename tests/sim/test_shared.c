/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarantees of shared storage, under pauses, cuts, reordering, lost responses and deaths. Each
 * seed runs in both forms (shared_world.h):
 *
 *  1. No acknowledged write is lost: a server that revokes a tenure reads all acknowledged writes,
 *     in order, within the sealed lengths.
 *  2. A write that is submitted after a revoke has returned is not acknowledged.
 *  3. Another revoke, by any server at any time, returns the same lengths and bytes.
 *  4. No read is answered under a lease once the successor answers requests, even if another server has told the
 *     successor how long to wait.
 *  5. Of swaps from one generation one succeeds, and a read sees every swap that returned before
 *     it.
 *
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one.
 */
#include "shared_world.h"

#include "../extents.h"

#include <inttypes.h>

#define LSN_MAX 4000
#define TENURE "host,16020,1"
#define VICTIM 0

typedef struct history {
    world w;
    world_task tasks[WORLD_NODES + 1];
    /* the victim's log */
    rq_tenure *tenure;
    uint64_t acknowledged;
    bool revoked;          /* a revoke has returned */
    rq_shared *revoked_by; /* the clock of quiet_ns */
    uint64_t quiet_ns;
    bool taken_over;  /* a successor answers requests */
    bool written_off; /* the writer has ended */
    unsigned writes, refused, lease_reads, held_reads;
    /* the lengths and bytes that the first successor found */
    bool found;
    size_t ledgers;
    rq_slog_ledger lengths[256];
    uint32_t crc;
    unsigned revokes;
    /* values of the counter */
    uint64_t committed, counted, unknown;
} history;

static uint32_t seen_swaps, seen_refusals, seen_held, seen_repairs, seen_torn, seen_told;

/* --- the writer ----------------------------------------------------------------------------- */

typedef struct one_write {
    rq_slog_write write;
    history *h;
    rq_latch latch;
    uint8_t bytes[EXTENT_MAX];
    bool after_revoke;
} one_write;

static void written(rq_slog_write *w, rq_err rc)
{
    one_write *o = RQ_CONTAINER_OF(w, one_write, write);
    history *h = o->h;
    if (rc == RQ_OK && o->after_revoke)
        world_fail(&h->w, "a write that was submitted after the revoke is acknowledged");
    o->latch.executor->latch_open(&o->latch, rc);
}

/* Writes LSNs from `first`, one on each stripe; *ret_done: the number written without a gap. */
static rq_err write_round(history *h, rq_slog *log, rq_lane *lane, uint64_t off[], uint64_t first,
                          unsigned count, unsigned *ret_done)
{
    rq_executor *ex = h->w.executor;
    one_write *all = calloc(count, sizeof *all);
    rq_err worst = RQ_OK;
    assert_non_null(all);
    for (unsigned i = 0; i < count; i++) {
        one_write *o = &all[i];
        unsigned stripe = (unsigned)((first + i) % RQ_SLOG_STRIPES);
        size_t len = extent_make(first + i, o->bytes);
        o->h = h;
        o->after_revoke = h->revoked;
        o->write = (rq_slog_write){.stripe = stripe, .off = off[stripe], .lane = lane};
        o->write.bytes = rq_slice_of(o->bytes, len);
        o->write.done = written;
        ex->latch_init(ex, &o->latch);
        rq_slog_submit(log, &o->write);
    }
    *ret_done = 0;
    for (unsigned i = 0; i < count; i++) {
        rq_err rc = ex->latch_wait(&all[i].latch);
        if (rc == RQ_OK) off[all[i].write.stripe] += all[i].write.bytes.len;
        if (worst == RQ_OK && rc == RQ_OK) {
            ++*ret_done;
            h->acknowledged = first + i + 1;
        }
        if (worst == RQ_OK || rc == RQ_E_SERVER_ABORTED) worst = rc;
        h->writes++;
        h->refused += rc == RQ_E_SERVER_ABORTED;
    }
    free(all);
    return worst;
}

/* Rule 4: checking the lease and answering are one step here. */
static void answer_read(history *h)
{
    world_node *n = &h->w.nodes[VICTIM];
    if (n->paused || n->dead) return;
    if (rq_shared_now_ns(n->shared) >= rq_tenure_valid_until(h->tenure)) {
        h->held_reads++;
        return;
    }
    h->lease_reads++;
    if (h->taken_over) world_fail(&h->w, "a read is answered after the successor took over");
}

/* Writes a ledger until an append fails. */
static rq_err write_ledger(history *h, uint64_t number, rq_lane *lane, uint64_t *lsn)
{
    rq_slog *log;
    world *w = &h->w;
    uint64_t off[RQ_SLOG_STRIPES] = {0};
    rq_err rc = rq_slog_open(h->tenure, number, &log, NULL);
    if (rc != RQ_OK) return rc;
    uint64_t until = *lsn + 5 + world_below(w, 60);
    while (rc == RQ_OK && *lsn < until && *lsn < LSN_MAX - RQ_SLOG_STRIPES) {
        unsigned done = 0;
        rc = write_round(h, log, lane, off, *lsn, 1 + (unsigned)world_below(w, RQ_SLOG_STRIPES),
                         &done);
        *lsn += done;
        world_stand_still(&w->nodes[VICTIM]);
        answer_read(h);
        if (world_below(w, 8) == 0) world_sleep_ms(w, world_below(w, 400));
        answer_read(h);
    }
    rq_slog_close(log);
    return rc;
}

static void writer(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[VICTIM]);
    world *w = t->world;
    rq_lane *lane;
    uint64_t lsn = 0;
    assert_int_equal(rq_sim_lane_new(w->sim, &lane), RQ_OK);
    rq_err rc = rq_tenure_begin(t->node->shared, TENURE, &h->tenure, NULL);
    for (uint64_t number = 0; rc == RQ_OK && number < 100; number += 1 + world_below(w, 3)) {
        rc = write_ledger(h, number, lane, &lsn);
        if (rc == RQ_E_SERVER_ABORTED || w->nodes[VICTIM].dead) break;
        seen_repairs += rc != RQ_OK;
        rc = RQ_OK;
        if (lsn >= LSN_MAX - RQ_SLOG_STRIPES) break;
    }
    if (h->tenure != NULL && world_below(w, 4) == 0) {
        rq_err may_fail = rq_tenure_end(h->tenure, NULL);
        (void)may_fail;
    }
    rq_tenure_free(h->tenure);
    w->executor->lane_free(w->executor, lane);
    h->written_off = true;
}

/* --- the server that takes over ------------------------------------------------------------- */

/* Returns false if the reader died meanwhile. */
static bool read_log(history *h, const world_node *n, const rq_slog_ledger *ledgers, size_t count,
                     bool present[static LSN_MAX], uint32_t *ret)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
            size_t len = (size_t)ledgers[i].lengths[k], found = 0;
            uint8_t *bytes = calloc(1, len + 1);
            rq_err rc = RQ_E_IO;
            assert_non_null(bytes);
            for (int tries = 0; rc == RQ_E_IO && tries < 50; tries++)
                rc = rq_slog_read(n->shared, TENURE, &ledgers[i], k, 0, bytes, len + 1, &found,
                                  NULL);
            if (rc == RQ_E_IO && n->dead) {
                free(bytes);
                return false;
            }
            if (rc != RQ_OK || found != len) world_fail(&h->w, "cannot read the sealed log");
            seen_torn += !extents_of(bytes, len, present, LSN_MAX);
            crc = rq_crc32c(crc, bytes, len);
            free(bytes);
        }
    *ret = crc;
    return true;
}

static void check_log(history *h, world_node *n)
{
    rq_arena arena = {0};
    rq_slog_ledger *ledgers = NULL;
    size_t count = 0;
    bool present[LSN_MAX] = {0};
    rq_err rc = RQ_E_IO;
    for (int tries = 0; rc == RQ_E_IO && tries < 50; tries++)
        rc = rq_slog_lengths(n->shared, TENURE, &arena, &ledgers, &count, NULL);
    if (rc == RQ_E_IO && n->dead) goto out;
    if (rc != RQ_OK || count > 256) world_fail(&h->w, "no lengths after a revoke: %d", rc);
    /* taken now, because earlier writes may be acknowledged during the read */
    uint64_t acknowledged = h->acknowledged;
    uint32_t crc;
    if (!read_log(h, n, ledgers, count, present, &crc)) goto out;
    for (uint64_t lsn = 0; lsn < acknowledged; lsn++)
        if (!present[lsn])
            world_fail(&h->w, "write %" PRIu64 " of %" PRIu64 " acknowledged is lost", lsn,
                       acknowledged);
    if (!h->found) {
        h->found = true;
        h->ledgers = count;
        h->crc = crc;
        if (count > 0) memcpy(h->lengths, ledgers, count * sizeof *ledgers);
    }
    if (count != h->ledgers || crc != h->crc ||
        (count > 0 && memcmp(h->lengths, ledgers, count * sizeof *ledgers) != 0))
        world_fail(&h->w, "a second revoke gives other lengths or bytes");
out:
    rq_arena_clear(&arena);
}

/* A server that has revoked the tenure tells this one for how long the former owner may still answer reads. The message
 * takes up to 300 ms. */
static void hear_of_revoke(history *h, rq_shared *s)
{
    if (h->revoked_by == NULL) return;
    uint64_t now_ns = rq_shared_now_ns(h->revoked_by);
    uint64_t in_ns = h->quiet_ns > now_ns ? h->quiet_ns - now_ns : 0;
    if (world_below(&h->w, 2) == 0) world_sleep_ms(&h->w, world_below(&h->w, 300));
    rq_tenure_quiet_in(s, TENURE, in_ns);
    seen_told++;
}

static void revoker(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[t->node->index]);
    world *w = t->world;
    rq_shared *s = t->node->shared;
    bool waited = false;
    world_sleep_ms(w, 200 + world_below(w, 4000));
    if (w->form == FORM_MESSAGES && world_below(w, 2) == 0) hear_of_revoke(h, s);
    for (unsigned times = 1 + (unsigned)world_below(w, 3); times > 0; times--) {
        uint64_t quiet_ns;
        rq_err rc = RQ_E_IO;
        while (rc == RQ_E_IO && !t->node->dead)
            rc = rq_tenure_revoke(s, TENURE, &quiet_ns, NULL);
        if (t->node->dead) return;
        if (rc != RQ_OK) world_fail(w, "revoke: %d", rc);
        h->revoked = true;
        h->revokes++;
        h->revoked_by = s;
        h->quiet_ns = quiet_ns;
        check_log(h, t->node);
        if (waited && rq_shared_now_ns(s) < quiet_ns)
            world_fail(w, "a second revoke waits for the same lease again");
        waited = true;
        while (rq_shared_now_ns(s) < quiet_ns)
            world_sleep_ms(w, 10);
        h->taken_over = true;
        world_sleep_ms(w, world_below(w, 2000));
    }
}

/* --- a counter that all nodes swap ---------------------------------------------------------- */

static void count_once(history *h, world_node *n)
{
    rq_arena arena = {0};
    rq_slice bytes = {0};
    uint64_t generation = 0, before = h->committed, next = 0;
    uint8_t value[8];
    rq_err rc = rq_object_get(n->shared, "counter", &arena, &bytes, &generation, NULL);
    if (rc == RQ_OK && generation < before) world_fail(&h->w, "a read sees an older generation");
    if (rc == RQ_E_NOT_FOUND && before > 0) world_fail(&h->w, "the counter is gone");
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) {
        rq_put_be64(value, rc == RQ_OK ? rq_get_be64(bytes.ptr) + 1 : 1);
        rc = rq_object_cas(n->shared, "counter", generation, rq_slice_of(value, 8), &next, NULL);
        if (rc == RQ_OK) {
            h->counted++;
            if (next > h->committed) h->committed = next;
        } else if (rc != RQ_E_CONFLICT) {
            h->unknown++;
        }
    }
    rq_arena_clear(&arena);
}

/* Runs on each node but the victim, before the node's revoker. */
static void counter(history *h, world_node *n)
{
    for (unsigned i = (unsigned)world_below(&h->w, 15); i > 0 && !n->dead; i--) {
        count_once(h, n);
        if (world_below(&h->w, 3) == 0) world_sleep_ms(&h->w, world_below(&h->w, 300));
    }
}

static void counters(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[t->node->index]);
    counter(h, t->node);
    revoker(t);
}

static void check_counter(history *h)
{
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t generation, value = 0;
    rq_err rc = RQ_E_IO;
    for (int tries = 0; rc == RQ_E_IO && tries < 50; tries++)
        rc = rq_object_get(h->w.nodes[1].shared, "counter", &arena, &bytes, &generation, NULL);
    if (rc == RQ_OK) value = rq_get_be64(bytes.ptr);
    if (value < h->counted || value > h->counted + h->unknown)
        world_fail(&h->w,
                   "%" PRIu64 " swaps succeeded and %" PRIu64 " may have, but it is %" PRIu64,
                   h->counted, h->unknown, value);
    seen_swaps += (uint32_t)h->counted;
    rq_arena_clear(&arena);
}

/* --- faults of the nodes -------------------------------------------------------------------- */

static void faults(world_task *t)
{
    history *h = RQ_CONTAINER_OF(t, history, tasks[WORLD_NODES]);
    world *w = t->world;
    while (!h->written_off) {
        /* Mostly the victim. */
        unsigned i = world_below(w, 3) > 0 ? VICTIM : (unsigned)world_below(w, WORLD_NODES);
        (void)world_fault(&w->nodes[i], (world_chances){.pause = 14, .cut = 10, .kill = 1});
    }
}

/* Several servers end and remove the same log concurrently: for each of them the log no longer
 * exists. */
static void remover(world_task *t)
{
    uint64_t quiet_ns;
    rq_err rc = RQ_E_IO;
    world_sleep_ms(t->world, world_below(t->world, 1500));
    while (rc == RQ_E_IO)
        rc = rq_tenure_revoke(t->node->shared, TENURE, &quiet_ns, NULL);
    if (rc != RQ_OK) world_fail(t->world, "revoke beside a removal: %d", rc);
    for (rc = RQ_E_IO; rc == RQ_E_IO;)
        rc = rq_slog_remove(t->node->shared, TENURE, NULL);
    /* RQ_E_STATE: another server revokes a log that this one has already removed. */
    if (rc != RQ_OK && rc != RQ_E_STATE) world_fail(t->world, "remove beside a revoke: %d", rc);
}

static void remove_log(history *h)
{
    world_node *alive[WORLD_NODES];
    unsigned count = 0;
    for (unsigned i = 1; i < WORLD_NODES; i++)
        if (!h->w.nodes[i].dead) alive[count++] = &h->w.nodes[i];
    for (unsigned i = 0; i < count; i++)
        world_start(&h->tasks[i], &h->w, alive[i], remover);
    world_run(&h->w);
}

static void run_seed(world_form form, uint64_t seed)
{
    history *h = calloc(1, sizeof *h);
    assert_non_null(h);
    world_open(&h->w, form, seed, (unsigned)(seed % 3) * 10);
    world_start(&h->tasks[VICTIM], &h->w, &h->w.nodes[VICTIM], writer);
    for (unsigned i = 1; i < WORLD_NODES; i++)
        world_start(&h->tasks[i], &h->w, &h->w.nodes[i], counters);
    world_start(&h->tasks[WORLD_NODES], &h->w, NULL, faults);
    world_run(&h->w);
    /* Messages still in transit have arrived by then, and changed nothing. */
    rq_sim_advance(h->w.sim, UINT64_C(10000000000));
    world_start(&h->tasks[1], &h->w, &h->w.nodes[1], revoker);
    world_run(&h->w);
    if (h->revokes == 0) world_fail(&h->w, "nobody revoked");
    check_counter(h);
    remove_log(h);
    seen_refusals += h->refused;
    seen_held += h->held_reads;
    world_close(&h->w);
    free(h);
}

static void run_form(world_form form)
{
    seeds_range seeds = seeds_wanted(40);
    seen_swaps = seen_refusals = seen_held = seen_repairs = seen_torn = seen_told = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        run_seed(form, seed);
    printf("swaps %u, refused writes %u, held reads %u, repairs %u, incomplete ends %u, told of a "
           "revoke %u\n",
           seen_swaps, seen_refusals, seen_held, seen_repairs, seen_torn, seen_told);
    if (seeds.last - seeds.first < 39) return;
    /* Events that never happen are not tested. */
    assert_true(seen_swaps > 100 && seen_refusals > 0 && seen_held > 0);
    assert_true(form == FORM_FOLDER || (seen_repairs > 0 && seen_told > 0));
    /* An incomplete end is seen with one of 60 seeds; the default seeds contain one. */
    bool many = seeds.first == 1 || seeds.last - seeds.first >= 999;
    assert_true(!many || form != FORM_FOLDER || seen_torn > 0);
}

static void promises_hold_by_messages(void **state)
{
    (void)state;
    run_form(FORM_MESSAGES);
}

static void promises_hold_in_a_folder(void **state)
{
    (void)state;
    run_form(FORM_FOLDER);
}

/* --- a late swap ---------------------------------------------------------------------------- */

typedef struct late {
    world w;
    world_task tasks[2];
    unsigned meanwhile; /* number of swaps by the other process */
    rq_err rc;
} late;

static void swap_late(world_task *t)
{
    late *l = RQ_CONTAINER_OF(t, late, tasks[0]);
    uint64_t generation;
    t->node->stops_at_link = true;
    l->rc = rq_object_cas(t->node->shared, "o", 1, RQ_SLICE_LIT("late"), &generation, NULL);
}

static void swap_meanwhile(world_task *t)
{
    late *l = RQ_CONTAINER_OF(t, late, tasks[1]);
    uint64_t generation = 1;
    while (!l->w.nodes[0].paused)
        world_sleep_ms(t->world, 1);
    for (unsigned i = 0; i < l->meanwhile; i++)
        assert_int_equal(rq_object_cas(t->node->shared, "o", generation, RQ_SLICE_LIT("in time"),
                                       &generation, NULL),
                         RQ_OK);
    world_pause(&l->w.nodes[0], false);
}

/* The form with a folder: a process is stopped between its check and its link for so long that its
 * generation is outdated. Usually its temporary file has been removed, and the link fails.
 * Otherwise the link succeeds; if more generations than the history keeps have passed, the process
 * does not know the outcome. */
static void a_late_swap_changes_nothing(void **state)
{
    (void)state;
    static const unsigned counts[] = {0, 1, 2, 3, 10, 31, 32, 33, 60};
    for (size_t k = 0; k < 2 * RQ_ARRAY_LEN(counts); k++) {
        size_t i = k / 2;
        late l = {.meanwhile = counts[i], .rc = RQ_E_IO};
        rq_arena arena = {0};
        rq_slice bytes;
        uint64_t generation;
        world_open(&l.w, FORM_FOLDER, i + 1, 0);
        l.w.nodes[1].keeps_temporaries = k % 2 == 1;
        rq_shared *s = l.w.nodes[1].shared;
        assert_int_equal(rq_object_cas(s, "o", 0, RQ_SLICE_LIT("first"), &generation, NULL), RQ_OK);
        world_start(&l.tasks[0], &l.w, &l.w.nodes[0], swap_late);
        world_start(&l.tasks[1], &l.w, &l.w.nodes[1], swap_meanwhile);
        world_run(&l.w);
        rq_err expected = counts[i] == 0                  ? RQ_OK
                          : counts[i] <= 32 || k % 2 == 0 ? RQ_E_CONFLICT
                                                          : RQ_E_IO;
        assert_int_equal(l.rc, expected);
        assert_int_equal(rq_object_get(s, "o", &arena, &bytes, &generation, NULL), RQ_OK);
        assert_int_equal(generation, counts[i] == 0 ? 2 : counts[i] + 1);
        assert_true(rq_slice_eq(bytes, rq_slice_cstr(counts[i] == 0 ? "late" : "in time")));
        rq_arena_clear(&arena);
        world_close(&l.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_hold_by_messages),
        cmocka_unit_test(promises_hold_in_a_folder),
        cmocka_unit_test(a_late_swap_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
