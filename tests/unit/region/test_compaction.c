/* SPDX-License-Identifier: Apache-2.0 */
/* Compactions of a region by the policies that do not depend on sizes, and their write rate. The
 * files that a policy selects are compared with HBase in tests/unit/store. */
#include "fixture.h"
#include "region/engine_priv.h"
#include "region/image.h"
#include "vfs/sim.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#define SECOND ((uint64_t)1000 * 1000 * 1000)
#define HOUR_MS ((int64_t)3600 * 1000)
#define PACKAGE "org.apache.hadoop.hbase.regionserver."

static rq_sim *new_sim(void)
{
    rq_sim *sim;
    assert_ok(rq_sim_new(11, NULL, &sim));
    return sim;
}

static uint32_t files_of(fixture *f)
{
    rq_region_load load;
    rq_region_get_load(f->region, &load);
    return load.storefiles;
}

static void put_and_flush(fixture *f, const char *row, int64_t ts)
{
    assert_ok(put(f, row, "f", "q", ts, row));
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

static void compact(fixture *f, rq_sim *sim, bool major)
{
    assert_ok(rq_region_compact(f->region, (rq_slice){0}, major, NULL));
    rq_sim_run(sim);
}

static int64_t now_of(fixture *f)
{
    return f->env->executor->now_ms(f->env->executor);
}

static void fifo_drops_files_when_their_last_cell_has_expired(void **state)
{
    (void)state;
    static const family_def family = {"f",
                                      {"TTL", "100",
                                       "hbase.hstore.defaultengine.compactionpolicy.class",
                                       PACKAGE "compactions.FIFOCompactionPolicy", NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    int64_t now = now_of(&f);
    put_and_flush(&f, "newer", now - 10000);
    for (int i = 0; i < 5; i++)
        put_and_flush(&f, "older", now - 50000 + i);
    compact(&f, sim, false);
    compact(&f, sim, true); /* without effect: nothing has expired */
    assert_int_equal(files_of(&f), 6);
    rq_sim_advance(sim, 60 * SECOND);
    compact(&f, sim, false);
    assert_int_equal(files_of(&f), 1);
    assert_string_equal(get(&f, "newer", "f", "q"), "newer");
    rq_sim_advance(sim, 200 * SECOND); /* the periodic check finds the last file */
    assert_int_equal(files_of(&f), 0);
    rq_stat st;
    assert_ok(rq_vfs_stat(f.env->vfs, "archive/data/default/t", &st, NULL));
    fixture_stop(&f, true);
    fixture_start(&f);
    assert_string_equal(read_text(&f, "", 0, true), "");
    fixture_close(&f);
    rq_sim_free(sim);
}

static void any_policy_drops_expired_files_but_the_newest(void **state)
{
    (void)state;
    static const family_def family = {"f", {"TTL", "100", NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    rq_engine_stats stats;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    for (int i = 0; i < 2; i++)
        put_and_flush(&f, "row", now_of(&f) - 50000 + i);
    rq_sim_advance(sim, 130 * SECOND);
    assert_int_equal(files_of(&f), 1);
    rq_engine_get_stats(f.engine, &stats);
    assert_int_equal(stats.compacted_bytes, 0); /* the file was dropped without being read */
    fixture_close(&f);
    rq_sim_free(sim);
}

/* Cells of random times over days survive however their files are divided, and each file of a major
 * compaction has the cells of one window. */
static void date_tiered_keeps_times_together(void **state)
{
    (void)state;
    static const family_def family = {
        "f",
        {"VERSIONS", "1000", "hbase.hstore.engine.class", PACKAGE "DateTieredStoreEngine",
         "hbase.hstore.compaction.date.tiered.base.window.millis", "3600000",
         "hbase.hstore.compaction.date.tiered.single.output.for.minor.compaction", "false",
         "hbase.hstore.compaction.date.tiered.incoming.window.min", "3", NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    int64_t now = now_of(&f);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 40; i++) {
            char row[8];
            snprintf(row, sizeof row, "r%d", (int)(rq_sim_random(sim) % 5));
            int64_t back = (int64_t)(rq_sim_random(sim) % 48) * HOUR_MS + round;
            assert_ok(put(&f, row, "f", "q", now - back, "v"));
            if (i % 10 == 9)
                assert_ok(delete_cell(&f, row, "f", "q", now - back - 7 * HOUR_MS, RQ_TYPE_DELETE));
        }
        assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
        if (round == 3) compact(&f, sim, false);
    }
    char *before = strdup(read_text(&f, "", 0, false));
    compact(&f, sim, true);
    uint32_t files = files_of(&f);
    /* 48 hours: four windows of 1 h, four of 4 h, two of 16 h; their boundaries vary. */
    assert_in_range(files, 6, 14);
    assert_string_equal(read_text(&f, "", 0, false), before);
    fixture_stop(&f, true);
    fixture_start(&f);
    assert_int_equal(files_of(&f), files);
    assert_string_equal(read_text(&f, "", 0, false), before);
    /* each file is alone in its window: nothing more to compact */
    rq_sim_advance(sim, 300 * SECOND);
    assert_int_equal(files_of(&f), files);
    free(before);
    fixture_close(&f);
    rq_sim_free(sim);
}

/* 20 kB/s: a compaction of a few megabytes does not end by itself. */
static const char *const slow_settings[] = {
    "hbase.regionserver.throughput.controller=PressureAwareCompactionThroughputController",
    "hbase.hstore.compaction.throughput.lower.bound=20000",
    "hbase.hstore.compaction.throughput.higher.bound=20000", NULL};

static void a_compaction_keeps_to_its_rate_and_ends_soon_when_the_region_closes(void **state)
{
    (void)state;
    static const family_def family = {"f", {NULL}};
    static char value[4001];
    rq_sim *sim = new_sim();
    fixture f;
    memset(value, 'v', sizeof value - 1);
    fixture_open_with(&f, rq_sim_env(sim), &family, 1, slow_settings);
    for (int file = 0; file < 2; file++) {
        for (int i = 0; i < 300; i++) {
            char row[16];
            snprintf(row, sizeof row, "%d.%d", file, i);
            assert_ok(put(&f, row, "f", "q", 1, value));
        }
        assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    }
    /* 2.4 MB at 20 kB/s take two minutes. */
    uint64_t began = f.env->executor->now_ns(f.env->executor);
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    rq_sim_advance(sim, 30 * SECOND);
    assert_int_equal(rq_region_compaction_state(f.region), 2);
    assert_int_equal(files_of(&f), 2);
    uint64_t asked = f.env->executor->now_ns(f.env->executor);
    fixture_stop(&f, true);
    assert_true(f.env->executor->now_ns(f.env->executor) - asked < 2 * SECOND);
    fixture_start(&f);
    assert_int_equal(files_of(&f), 2);
    began = f.env->executor->now_ns(f.env->executor);
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    while (files_of(&f) > 1)
        rq_sim_advance(sim, SECOND);
    uint64_t took = (f.env->executor->now_ns(f.env->executor) - began) / SECOND;
    assert_in_range(took, 80, 140);
    fixture_close(&f);
    rq_sim_free(sim);
}

static void queued_compactions_can_be_forgotten_and_large_ones_have_a_queue_of_their_own(
    void **state)
{
    (void)state;
    static const family_def family = {"f", {"hbase.regionserver.thread.compaction.throttle", "1"}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    put_and_flush(&f, "a", 1);
    put_and_flush(&f, "b", 1);
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    rq_engine_clear_compactions(f.engine, true);
    assert_int_equal(rq_region_compaction_state(f.region), 2);
    rq_engine_clear_compactions(f.engine, false);
    assert_int_equal(rq_region_compaction_state(f.region), 0);
    rq_sim_run(sim);
    assert_int_equal(files_of(&f), 2);
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    rq_sim_run(sim); /* from the small compactions' pool to the large ones' */
    assert_int_equal(files_of(&f), 1);
    fixture_close(&f);
    rq_sim_free(sim);
}

static rq_err (*plain_link)(rq_vfs *v, const char *from, const char *to, rq_error *why);
static const fixture *looked_at;
static int least_state;

static rq_err link_and_look(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    int state = rq_region_compaction_state(looked_at->region);
    if (state < least_state) least_state = state;
    return plain_link(v, from, to, why);
}

/* Clients poll the compaction state until NONE to learn the end of their request. So a request
 * counts while it is queued, and while expired files are dropped first. */
static void a_client_request_counts_until_done(void **state)
{
    (void)state;
    static const family_def family = {"f", {"TTL", "100", NULL}};
    for (int major = 0; major <= 1; major++) {
        rq_sim *sim = new_sim();
        fixture f;
        fixture_open(&f, rq_sim_env(sim), &family, 1);
        put_and_flush(&f, "expires", now_of(&f) - 99000);
        rq_sim_advance(sim, 2 * SECOND);
        for (int i = 0; i < 3; i++)
            put_and_flush(&f, "row", now_of(&f) + i);
        int kind = major == 1 ? 2 : 1;
        looked_at = &f;
        least_state = kind;
        rq_vfs *vfs = f.env->vfs;
        plain_link = vfs->link;
        vfs->link = link_and_look;
        assert_ok(rq_region_compact(f.region, (rq_slice){0}, major == 1, NULL));
        do {
            assert_int_equal(rq_region_compaction_state(f.region), kind);
        } while (rq_sim_step(sim) && files_of(&f) > 1);
        rq_sim_run(sim);
        assert_int_equal(rq_region_compaction_state(f.region), 0);
        assert_int_equal(files_of(&f), 1);
        assert_int_equal(least_state, kind);
        vfs->link = plain_link;
        fixture_close(&f);
        rq_sim_free(sim);
    }
}

/* As in HBase, where the flag for a major compaction stays set until one is selected. */
static void a_major_compaction_without_files_is_made_up_for_by_the_next_one_asked_for(void **state)
{
    (void)state;
    static const family_def family = {"f", {NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    for (int round = 0; round < 2; round++) {
        if (round == 0) compact(&f, sim, true); /* there are no files */
        assert_ok(delete_cell(&f, "row", "f", "q", 5, RQ_TYPE_DELETE_COLUMN));
        assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
        rq_sim_advance(sim, 100 * SECOND);
        assert_string_not_equal(read_text(&f, "", 0, true), "");
        compact(&f, sim, false);
        if (round == 0)
            assert_string_equal(read_text(&f, "", 0, true), "");
        else
            assert_string_not_equal(read_text(&f, "", 0, true), "");
    }
    fixture_close(&f);
    rq_sim_free(sim);
}

/* The archive's cleaner removes an empty folder that was just created. */
static unsigned archives_cleaned;

static rq_err link_into_a_cleaned_archive(rq_vfs *v, const char *from, const char *to,
                                          rq_error *why)
{
    if (archives_cleaned++ < 3) assert_ok(rq_vfs_remove_tree(v, "archive", NULL));
    return plain_link(v, from, to, why);
}

static void inputs_reach_an_archive_that_is_being_cleaned(void **state)
{
    (void)state;
    static const family_def family = {"f", {NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    for (int i = 0; i < 2; i++)
        put_and_flush(&f, "r", i);
    rq_vfs *vfs = f.env->vfs;
    plain_link = vfs->link;
    archives_cleaned = 0;
    vfs->link = link_into_a_cleaned_archive;
    compact(&f, sim, true);
    assert_true(archives_cleaned > 3);
    vfs->link = plain_link;
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s/f", f.info.encoded);
    assert_ok(rq_vfs_list(vfs, dir, &f.arena, &entries, &count, NULL));
    assert_int_equal(count, 1);
    dir = rq_arena_printf(&f.arena, "archive/%s", dir);
    assert_ok(rq_vfs_list(vfs, dir, &f.arena, &entries, &count, NULL));
    assert_int_equal(count, 2);
    fixture_close(&f);
    rq_sim_free(sim);
}

static size_t files_of_store(fixture *f, size_t store)
{
    rq_epoch_member pin;
    rq_epoch_pin(f->env->epoch, &pin);
    size_t count = rq_store_version_now(f->region->stores[store].store)->file_count;
    rq_epoch_unpin(f->env->epoch, &pin);
    return count;
}

/* After each compaction a store with much to do is queued behind other stores. */
static void a_store_with_many_files_does_not_hold_up_another(void **state)
{
    (void)state;
    static const family_def families[] = {{"f", {"hbase.hstore.compaction.max", "3", NULL}},
                                          {"g", {NULL}}};
    bool between = false;
    for (uint64_t seed = 1; seed <= 30 && !between; seed++) {
        rq_sim *sim;
        fixture f;
        assert_ok(rq_sim_new(seed, NULL, &sim));
        fixture_open(&f, rq_sim_env(sim), families, 2);
        for (int i = 0; i < 15; i++)
            put_and_flush(&f, "row", i);
        for (int i = 0; i < 3; i++) {
            assert_ok(put(&f, "row", "g", "q", i, "v"));
            assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
        }
        assert_int_equal(files_of_store(&f, 0), 15);
        assert_ok(rq_region_compact(f.region, (rq_slice){0}, false, NULL));
        while (files_of_store(&f, 1) == 3)
            assert_true(rq_sim_step(sim));
        size_t then = files_of_store(&f, 0);
        rq_sim_run(sim);
        between = then < 15 && then > files_of_store(&f, 0);
        fixture_close(&f);
        rq_sim_free(sim);
    }
    assert_true(between);
}

/* HBASE: CompactSplit's queue, HStore.getCompactPriority: the store closest to its blocking count
 * is first; clients' requests come before the server's own, unless those are above the count. */
static void compactions_begin_in_the_order_of_their_priority(void **state)
{
    (void)state;
    static const family_def families[] = {{"f", {NULL}}, {"g", {NULL}}, {"h", {NULL}}};
    static const char *const settings[] = {"hbase.hstore.blockingStoreFiles=8",
                                           "hbase.hstore.compaction.max=20", NULL};
    static const struct {
        size_t files[3];
        int asked; /* requested by a client, when all are queued */
        int order[3];
    } cases[] = {
        {{3, 5, 4}, -1, {1, 2, 0}}, {{3, 5, 4}, 0, {0, 1, 2}},  {{5, 4, 3}, 2, {2, 0, 1}},
        {{3, 9, 4}, 0, {1, 0, 2}},  {{3, 8, 10}, 0, {2, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            rq_sim *sim;
            fixture f;
            assert_ok(rq_sim_new(seed, NULL, &sim));
            fixture_open_with(&f, rq_sim_env(sim), families, 3, settings);
            rq_engine_compactions_enable(f.engine, false);
            for (size_t s = 0; s < 3; s++)
                for (size_t n = 0; n < cases[i].files[s]; n++) {
                    assert_ok(put(&f, "row", families[s].name, "q", (int64_t)n, "v"));
                    assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
                }
            rq_engine_compactions_enable(f.engine, true);
            rq_region_compact_if_due(f.region);
            if (cases[i].asked >= 0)
                assert_ok(rq_region_compact(f.region, rq_slice_cstr(families[cases[i].asked].name),
                                            false, NULL));
            bool begun[3] = {false};
            for (int place = 0; place < 3;) {
                assert_true(rq_sim_step(sim));
                for (int n = 0; n < 3; n++) {
                    bool runs = (atomic_load(&f.region->stores[n].compactions) & RQ__RUNS) != 0;
                    if (begun[n] || (!runs && files_of_store(&f, (size_t)n) == cases[i].files[n]))
                        continue;
                    begun[n] = true;
                    assert_int_equal(n, cases[i].order[place++]);
                }
            }
            rq_sim_run(sim);
            fixture_close(&f);
            rq_sim_free(sim);
        }
}

/* A pool of one thread runs one compaction, although it mostly sleeps. */
static void compactions_that_wait_for_their_rate_keep_the_pool_s_places(void **state)
{
    (void)state;
    static const family_def families[] = {{"f", {NULL}}, {"g", {NULL}}};
    static const char *const settings[] = {"hbase.regionserver.throughput.controller="
                                           "PressureAwareCompactionThroughputController",
                                           "hbase.hstore.compaction.throughput.lower.bound=400000",
                                           "hbase.hstore.compaction.throughput.higher.bound=400000",
                                           NULL};
    static char value[401];
    real_env real;
    fixture f;
    rq_engine_stats stats = {0};
    unsigned most = 0;
    memset(value, 'v', sizeof value - 1);
    real_env_open(&real);
    fixture_open_with(&f, &real.env, families, 2, settings);
    for (int i = 0; i < 600; i++) {
        char row[16];
        snprintf(row, sizeof row, "%d", i);
        assert_ok(put(&f, row, "f", "q", 1, value));
        assert_ok(put(&f, row, "g", "q", 1, value));
        if (i % 300 == 299) assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    while (stats.compactions < 2) {
        unsigned now = atomic_load(&f.engine->throughput.active);
        if (now > most) most = now;
        rq_engine_get_stats(f.engine, &stats);
        sched_yield();
    }
    assert_int_equal(most, 1);
    fixture_close(&f);
    real_env_close(&real);
}

typedef struct busy {
    rq_task task;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, over;
} busy;

static void be_busy(rq_task *task)
{
    busy *b = RQ_CONTAINER_OF(task, busy, task);
    pthread_mutex_lock(&b->lock);
    b->begun = true;
    pthread_cond_broadcast(&b->changed);
    while (!b->over)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* A flushed memstore must be freed without waiting for a compaction. */
static void a_flushed_memstore_is_freed_while_the_compactions_are_busy(void **state)
{
    (void)state;
    static const family_def family = {"f", {NULL}};
    busy b = {.task.run = be_busy,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    real_env real;
    fixture f;
    real_env_open(&real);
    fixture_open(&f, &real.env, &family, 1);
    real.env.executor->submit(real.env.executor, RQ_POOL_COMPACT, &b.task);
    pthread_mutex_lock(&b.lock);
    while (!b.begun)
        pthread_cond_wait(&b.changed, &b.lock);
    pthread_mutex_unlock(&b.lock);
    assert_ok(put(&f, "row", "f", "q", 1, "v"));
    assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    /* One version is current; the versions before and during the flush must be freed. */
    uint64_t until = f.env->executor->now_ns(f.env->executor) + UINT64_C(10000000000);
    while (atomic_load(&f.engine->versions_alive) > 1 &&
           f.env->executor->now_ns(f.env->executor) < until) {
        rq_epoch_collect(f.env->epoch);
        sched_yield();
    }
    uint64_t alive = atomic_load(&f.engine->versions_alive);
    pthread_mutex_lock(&b.lock);
    b.over = true;
    pthread_cond_broadcast(&b.changed);
    pthread_mutex_unlock(&b.lock);
    assert_int_equal(alive, 1);
    fixture_close(&f);
    real_env_close(&real);
}

/* A compaction holds its inputs, not the memstore that existed when it began. */
static void a_flushed_memstore_is_freed_while_its_store_compacts(void **state)
{
    (void)state;
    static const family_def family = {"f", {NULL}};
    static char value[1001];
    real_env real;
    fixture f;
    memset(value, 'v', sizeof value - 1);
    real_env_open(&real);
    fixture_open_with(&f, &real.env, &family, 1, slow_settings);
    for (int i = 0; i < 4000; i++) { /* takes minutes at that rate; a close interrupts it */
        char row[16];
        snprintf(row, sizeof row, "%d", i);
        assert_ok(put(&f, row, "f", "q", 1, value));
        if (i % 2000 == 1999) assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(put(&f, "in the memstore when it begins", "f", "q", 1, "v"));
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    while (atomic_load(&f.engine->throughput.active) == 0)
        sched_yield();
    assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    uint64_t until = f.env->executor->now_ns(f.env->executor) + UINT64_C(10000000000);
    while (atomic_load(&f.engine->versions_alive) > 1 &&
           f.env->executor->now_ns(f.env->executor) < until) {
        rq_epoch_collect(f.env->epoch);
        sched_yield();
    }
    assert_int_equal(atomic_load(&f.engine->versions_alive), 1);
    assert_int_equal(files_of(&f), 3); /* the compaction still runs */
    fixture_close(&f);
    real_env_close(&real);
}

/* --- an image taken before the inputs are in the archive -------------------------------------- */

static struct {
    fixture *f;
    rq_err (*link)(rq_vfs *v, const char *from, const char *to, rq_error *why);
    unsigned links;
    size_t store_files; /* listed by the image taken at the first link */
} lister;

static rq_err count_store_files(void *ctx, const rq_image_part *part, rq_error *why)
{
    size_t *count = ctx;
    (void)why;
    *count += part->kind == RQ_IMAGE_FILE && strncmp(part->path, "data/", 5) == 0;
    return RQ_OK;
}

/* Runs after the compaction has committed. */
static rq_err listing_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    rq_holder *holder;
    rq_error own = {0};
    const rq_image_sink sink = {count_store_files, &lister.store_files};
    if (lister.links++ == 0) {
        rq_engine *e = lister.f->engine;
        assert_ok(rq_retention_hold(rq_engine_retention(e), "test", 1, &holder));
        if (rq_image_take(e, holder, &sink, &own) != RQ_OK) fail_msg("%s", own.message);
        rq_holder_release(holder);
    }
    return lister.link(v, from, to, why);
}

static size_t listed_at_first_link(const char *folder)
{
    static const family_def family = {"f", {NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open(&f, rq_sim_env(sim), &family, 1);
    put_and_flush(&f, "a", 1);
    put_and_flush(&f, "b", 1);
    rq_vfs *vfs = f.env->vfs;
    if (folder != NULL) assert_ok(rq_vfs_mkdirs(vfs, folder, NULL));
    memset(&lister, 0, sizeof lister);
    lister.f = &f;
    lister.link = vfs->link;
    vfs->link = listing_link;
    compact(&f, sim, true);
    vfs->link = lister.link;
    assert_int_equal(lister.links, 2);
    assert_int_equal(files_of(&f), 1);
    fixture_close(&f);
    rq_sim_free(sim);
    return lister.store_files;
}

/* Before the fix the inputs were listed in neither place: a backup lacked files that its snapshots
 * name. */
static void a_list_has_inputs_that_a_snapshot_may_name(void **state)
{
    (void)state;
    assert_int_equal(listed_at_first_link(NULL), 1);
    assert_int_equal(listed_at_first_link(".hbase-snapshot"), 3);
}

/* --- regions that are no longer written to ---------------------------------------------------- */
typedef struct quiet_case {
    const char *const *settings;
    bool is_merged;
} quiet_case;

/* Two files, the first several times as large: too few for the ordinary policy. */
static void load_two_files(fixture *f)
{
    char row[8];
    for (int i = 0; i < 400; i++) {
        snprintf(row, sizeof row, "r%03d", i);
        assert_ok(put(f, row, "f", "q", 1, row));
        if (i == 350) assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
    assert_int_equal(files_of(f), 2);
}

#define SMALL "hbase.hstore.compaction.min.size=1"

static void a_region_no_longer_written_to_is_merged(void **state)
{
    (void)state;
    static const char *const small[] = {SMALL, NULL};
    static const char *const later[] = {SMALL, "rorqual.compaction.quiet=100000", NULL};
    static const char *const never[] = {SMALL, "rorqual.compaction.quiet=0", NULL};
    static const char *const strict[] = {SMALL, "hbase.hstore.compaction.ratio.offpeak=0.5", NULL};
    static const quiet_case cases[] = {
        {small, true}, {later, false}, {never, false}, {strict, false}, {NULL, false}};
    static const family_def family = {"f", {NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rq_sim *sim = new_sim();
        fixture f;
        fixture_open_with(&f, rq_sim_env(sim), &family, 1, cases[i].settings);
        load_two_files(&f);
        rq_sim_advance(sim, 50 * SECOND);
        assert_int_equal(files_of(&f), 2);
        rq_sim_advance(sim, 40 * SECOND);
        assert_int_equal(files_of(&f), cases[i].is_merged ? 1 : 2);
        assert_string_equal(get(&f, "r000", "f", "q"), "r000");
        assert_string_equal(get(&f, "r399", "f", "q"), "r399");
        fixture_close(&f);
        rq_sim_free(sim);
    }
}

/* A region that is sometimes written to is not merged, nor one that was only opened. */
static void a_region_in_use_or_just_opened_is_not_merged(void **state)
{
    (void)state;
    static const char *const settings[] = {SMALL, NULL};
    static const family_def family = {"f", {NULL}};
    rq_sim *sim = new_sim();
    fixture f;
    fixture_open_with(&f, rq_sim_env(sim), &family, 1, settings);
    load_two_files(&f);
    for (int i = 0; i < 10; i++) {
        assert_ok(put(&f, "row", "f", "q", i, "v"));
        rq_sim_advance(sim, 40 * SECOND);
    }
    assert_int_equal(files_of(&f), 2);
    fixture_stop(&f, false); /* a crash: the last puts are only in the log */
    fixture_start(&f);
    uint32_t opened_with = files_of(&f);
    assert_true(opened_with >= 2);
    rq_sim_advance(sim, 300 * SECOND);
    assert_int_equal(files_of(&f), opened_with);
    assert_ok(put(&f, "row", "f", "q", 100, "v"));
    rq_sim_advance(sim, 90 * SECOND);
    assert_int_equal(files_of(&f), 1);
    fixture_close(&f);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifo_drops_files_when_their_last_cell_has_expired),
        cmocka_unit_test(any_policy_drops_expired_files_but_the_newest),
        cmocka_unit_test(date_tiered_keeps_times_together),
        cmocka_unit_test(
            queued_compactions_can_be_forgotten_and_large_ones_have_a_queue_of_their_own),
        cmocka_unit_test(a_store_with_many_files_does_not_hold_up_another),
        cmocka_unit_test(compactions_begin_in_the_order_of_their_priority),
        cmocka_unit_test(compactions_that_wait_for_their_rate_keep_the_pool_s_places),
        cmocka_unit_test(a_flushed_memstore_is_freed_while_the_compactions_are_busy),
        cmocka_unit_test(a_flushed_memstore_is_freed_while_its_store_compacts),
        cmocka_unit_test(a_compaction_keeps_to_its_rate_and_ends_soon_when_the_region_closes),
        cmocka_unit_test(a_client_request_counts_until_done),
        cmocka_unit_test(a_major_compaction_without_files_is_made_up_for_by_the_next_one_asked_for),
        cmocka_unit_test(inputs_reach_an_archive_that_is_being_cleaned),
        cmocka_unit_test(a_list_has_inputs_that_a_snapshot_may_name),
        cmocka_unit_test(a_region_no_longer_written_to_is_merged),
        cmocka_unit_test(a_region_in_use_or_just_opened_is_not_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
