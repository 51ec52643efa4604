/* SPDX-License-Identifier: Apache-2.0 */
/* A swap of a manifest that fails, and cannot be undone either because the disk keeps failing.
 * After a power cut the manifest may be the former or the failed one, so the files of both must
 * still exist, whatever was done in between.
 *
 * Some adjacent file calls fail at each position of a flush and a compaction; then the region
 * continues, or the process dies, and then the power fails. Every acknowledged row must exist
 * afterwards. With half of the seeds the values are in MOB files, and the cleaner of MOB files runs, too.
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one. */
#include "fixture.h"

#include "../seeds.h"
#include "region/engine_priv.h"
#include "region/mob_cleaner.h"
#include "vfs/sim.h"

#include <inttypes.h>

#define ROWS_MAX 64
#define WIDTH_MAX 8 /* the number of calls that rq_sim_fail_at allows */

typedef struct world {
    rq_sim *sim;
    fixture f;
    bool acknowledged[ROWS_MAX];
    unsigned rows;
} world;

static void begin(world *w, uint64_t seed)
{
    static const family_def mob[] = {{"a", {"IS_MOB", "true", "MOB_THRESHOLD", "0", NULL}}};
    rq_sim_options options = {.writeback_percent = 30};
    assert_ok(rq_sim_new(seed, &options, &w->sim));
    bool plain = seed / 2 % 2 == 0;
    fixture_open(&w->f, rq_sim_env(w->sim), plain ? NULL : mob, plain ? 0 : 1);
}

static void clean_mob(world *w)
{
    rq_table_schema *const tables[] = {w->f.schema};
    const rq_mob_cleaning what = {.tables = tables, .table_count = 1, .now_ms = INT64_MAX / 2};
    size_t archived;
    rq_err may_fail = rq_mob_clean(w->f.engine, &what, &archived, NULL);
    (void)may_fail;
    may_fail = rq_vfs_remove_tree(w->f.env->vfs, "archive", NULL);
}

static void put_rows(world *w, unsigned count)
{
    for (; count > 0; count--) {
        char row[12];
        snprintf(row, sizeof row, "%02u", w->rows);
        w->acknowledged[w->rows++] = put(&w->f, row, "a", "q", 1, row) == RQ_OK;
    }
}

static void flush(world *w)
{
    rq_err may_fail = rq_region_flush(w->f.region, (rq_slice){0}, NULL, NULL);
    (void)may_fail;
}

static void compact(world *w)
{
    rq_err may_fail = rq_region_compact(w->f.region, (rq_slice){0}, true, NULL);
    (void)may_fail;
    rq_sim_run(w->sim);
}

/* Stops without a flush, like a crash; errors of the stop are ignored. */
static void stop(world *w)
{
    rq_err may_fail = rq_region_close(w->f.region, true, NULL);
    rq_region_unref(w->f.region);
    w->f.region = NULL;
    may_fail = rq_engine_close(w->f.engine, false, NULL);
    (void)may_fail;
    w->f.engine = NULL;
}

static void check(world *w, uint64_t seed, uint64_t call)
{
    for (unsigned i = 0; i < w->rows; i++) {
        char row[12];
        snprintf(row, sizeof row, "%02u", i);
        if (!w->acknowledged[i]) continue;
        const char *value = get(&w->f, row, "a", "q");
        if (value == NULL || strcmp(value, row) != 0)
            fail_msg("seed %" PRIu64 ", calls from %" PRIu64 " on fail: row %s is lost", seed, call,
                     row);
    }
}

static void start(world *w, uint64_t seed, uint64_t call)
{
    rq_error why = {0};
    rq_engine_options o = {.config = w->f.config};
    rq_err rc = rq_engine_open(w->f.env, &o, &w->f.engine, &why);
    if (rc == RQ_OK) rc = rq_region_open(w->f.engine, &w->f.info, w->f.schema, &w->f.region, &why);
    if (rc != RQ_OK)
        fail_msg("seed %" PRIu64 ", calls from %" PRIu64 " on fail: does not open: %s", seed, call,
                 why.message);
}

/* Returns true if the flushes and the compaction ended before the failing calls. */
static bool fail_once(uint64_t seed, uint64_t offset)
{
    world w = {0};
    begin(&w, seed);
    for (int file = 0; file < 3; file++) {
        put_rows(&w, 4);
        flush(&w);
    }
    put_rows(&w, 2);
    uint64_t call = rq_sim_calls(w.sim) + offset;
    uint64_t width = 1 + seed % WIDTH_MAX;
    for (uint64_t i = 0; i < width; i++)
        rq_sim_fail_at(w.sim, call + i, RQ_E_IO);
    if (seed % 2 == 0) flush(&w);
    compact(&w);
    flush(&w);
    bool through = rq_sim_calls(w.sim) < call;
    unsigned more = (unsigned)(rq_sim_random(w.sim) % 4);
    if (more >= 1) put_rows(&w, 3);
    if (more >= 2) flush(&w);
    if (more >= 3) compact(&w);
    clean_mob(&w);
    if (rq_sim_random(w.sim) % 3 == 0) { /* killed and checked before the power cut */
        stop(&w);
        rq_sim_restart_process(w.sim);
        start(&w, seed, call);
        check(&w, seed, call);
    }
    rq_sim_cut_now(w.sim);
    stop(&w);
    rq_sim_restart(w.sim);
    start(&w, seed, call);
    check(&w, seed, call);
    put_rows(&w, 1);
    fixture_stop(&w.f, true);
    start(&w, seed, call);
    check(&w, seed, call);
    fixture_close(&w.f);
    rq_sim_free(w.sim);
    return through;
}

static void no_row_is_lost_by_a_swap_that_failed_and_a_power_cut(void **state)
{
    (void)state;
    uint64_t places = 0;
    seeds_range seeds = seeds_wanted(12);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t offset = 1; !fail_once(seed, offset); offset++)
            places++;
    printf("%" PRIu64 " places\n", places);
    assert_true(places > 0);
}

/* A clean close, which writes the last file and clears the mark with one swap. Returns true if the
 * close ended before the failing calls. */
static bool fail_close(uint64_t seed, uint64_t offset)
{
    world w = {0};
    begin(&w, seed);
    put_rows(&w, 4);
    if (seed % 3 != 0) flush(&w);
    put_rows(&w, 2);
    uint64_t call = rq_sim_calls(w.sim) + offset;
    uint64_t width = 1 + seed % WIDTH_MAX;
    for (uint64_t i = 0; i < width; i++)
        rq_sim_fail_at(w.sim, call + i, RQ_E_IO);
    rq_err rc = rq_region_close(w.f.region, false, NULL);
    bool through = rq_sim_calls(w.sim) < call;
    /* The cut happens while the close is repeated, or afterwards. */
    uint64_t until_cut = rq_sim_random(w.sim) % 32;
    if (until_cut > 0) rq_sim_cut_at(w.sim, rq_sim_calls(w.sim) + until_cut);
    for (uint64_t again = rq_sim_random(w.sim) % 3; again > 0 && rc != RQ_OK; again--)
        rc = rq_region_close(w.f.region, false, NULL);
    rq_sim_cut_now(w.sim);
    stop(&w);
    rq_sim_restart(w.sim);
    for (int i = 0; i < 2; i++) {
        start(&w, seed, call);
        check(&w, seed, call);
        put_rows(&w, 1);
        fixture_stop(&w.f, true);
    }
    start(&w, seed, call);
    check(&w, seed, call);
    fixture_close(&w.f);
    rq_sim_free(w.sim);
    return through;
}

static void no_row_is_lost_by_a_close_that_failed_and_a_power_cut(void **state)
{
    (void)state;
    uint64_t places = 0;
    seeds_range seeds = seeds_wanted(30);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t offset = 1; !fail_close(seed, offset); offset++)
            places++;
    printf("%" PRIu64 " places\n", places);
    assert_true(places > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_row_is_lost_by_a_swap_that_failed_and_a_power_cut),
        cmocka_unit_test(no_row_is_lost_by_a_close_that_failed_and_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
