/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic flushes: of memstores that are old, or have many edits. */
#include "fixture.h"
#include "region/engine_priv.h"
#include "vfs/sim.h"

#include <inttypes.h>

#define SECOND ((uint64_t)1000 * 1000 * 1000)
#define MINUTE (60 * SECOND)
#define INTERVAL "hbase.regionserver.optionalcacheflushinterval="
#define RANGE "hbase.regionserver.periodicmemstoreflusher.rangeofdelayseconds="

typedef struct world {
    rq_sim *sim;
    fixture f;
} world;

static void begin(world *w, uint64_t seed, const char *const *settings)
{
    assert_ok(rq_sim_new(seed, NULL, &w->sim));
    fixture_open_with(&w->f, rq_sim_env(w->sim), NULL, 0, settings);
}

static void end(world *w)
{
    fixture_close(&w->f);
    rq_sim_free(w->sim);
}

static uint32_t files_of_store(const world *w, size_t i)
{
    return (uint32_t)rq_store_version_now(w->f.region->stores[i].store)->file_count;
}

/* Seconds until a file exists; at most `most`. */
static uint64_t seconds_until_flushed(world *w, uint64_t most)
{
    uint64_t seconds = 0;
    for (; files_of_store(w, 0) == 0 && seconds < most; seconds++)
        rq_sim_advance(w->sim, SECOND);
    return seconds;
}

/* After an hour plus up to five random minutes: regions with similar writes are not flushed all at
 * once. */
static void an_old_memstore_is_flushed_with_a_random_delay(void **state)
{
    (void)state;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        world w;
        begin(&w, seed, NULL);
        assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
        uint64_t took = seconds_until_flushed(&w, 5000);
        assert_in_range(took, 3600, 3600 + 300 + 11);
        least = took < least ? took : least;
        most = took > most ? took : most;
        end(&w);
    }
    assert_true(most - least > 30);
}

static void the_interval_and_the_delay_are_settings(void **state)
{
    (void)state;
    static const char *const settings[] = {INTERVAL "20000", RANGE "0",
                                           "hbase.regionserver.flush.check.period=1000", NULL};
    world w;
    begin(&w, 3, settings);
    assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
    assert_in_range(seconds_until_flushed(&w, 100), 20, 23);
    end(&w);
}

static void an_interval_of_nothing_or_less_means_never(void **state)
{
    (void)state;
    static const char *const zero[] = {INTERVAL "0", NULL};
    static const char *const less[] = {INTERVAL "-1", NULL};
    for (int i = 0; i < 2; i++) {
        world w;
        begin(&w, 4, i == 0 ? zero : less);
        assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
        rq_sim_advance(w.sim, 120 * MINUTE);
        assert_int_equal(files_of_store(&w, 0), 0);
        end(&w);
    }
}

/* A memstore flushed for another reason while it waited counts as young again. */
static void a_flush_in_between_counts(void **state)
{
    (void)state;
    static const char *const settings[] = {INTERVAL "600000", RANGE "300", NULL};
    world w;
    begin(&w, 5, settings);
    assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
    rq_sim_advance(w.sim, 601 * SECOND);
    assert_ok(rq_region_flush(w.f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&w.f, "row", "a", "q", 2, "v"));
    rq_sim_advance(w.sim, 590 * SECOND);
    assert_int_equal(files_of_store(&w, 0), 1);
    rq_sim_advance(w.sim, 340 * SECOND);
    assert_int_equal(files_of_store(&w, 0), 2);
    end(&w);
}

/* HBASE: FlushLargeStoresPolicy.shouldFlush: the old family is flushed, its neighbour is not. A
 * flush of the neighbour does not reset the age of other families. */
static void the_old_family_is_flushed_alone(void **state)
{
    (void)state;
    static const char *const settings[] = {INTERVAL "600000", RANGE "0", NULL};
    world w;
    begin(&w, 6, settings);
    assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
    rq_sim_advance(w.sim, 300 * SECOND);
    assert_ok(put(&w.f, "row", "b", "q", 1, "v"));
    assert_ok(rq_region_flush(w.f.region, RQ_SLICE_LIT("b"), NULL, NULL));
    assert_ok(put(&w.f, "row", "b", "q", 2, "v"));
    rq_sim_advance(w.sim, 320 * SECOND);
    assert_int_equal(files_of_store(&w, 0), 1);
    assert_int_equal(files_of_store(&w, 1), 1);
    rq_sim_advance(w.sim, 300 * SECOND);
    assert_int_equal(files_of_store(&w, 1), 2);
    end(&w);
}

/* The age of edits replayed from the log begins with the replay; they are flushed like others. */
static void replayed_edits_grow_old(void **state)
{
    (void)state;
    static const char *const settings[] = {INTERVAL "600000", RANGE "0", NULL};
    world w;
    begin(&w, 7, settings);
    assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
    fixture_stop(&w.f, false);
    fixture_start(&w.f);
    rq_sim_advance(w.sim, 590 * SECOND);
    assert_int_equal(files_of_store(&w, 0), 0);
    rq_sim_advance(w.sim, 30 * SECOND);
    assert_int_equal(files_of_store(&w, 0), 1);
    end(&w);
}

/* HBASE: HRegion.shouldFlush, hbase.regionserver.flush.per.changes: counted from the first flush.
 */
static void many_edits_are_a_reason_too(void **state)
{
    (void)state;
    static const char *const settings[] = {INTERVAL "0", RANGE "0",
                                           "hbase.regionserver.flush.per.changes=20", NULL};
    world w;
    begin(&w, 8, settings);
    assert_ok(put(&w.f, "row", "a", "q", 1, "v"));
    assert_ok(rq_region_flush(w.f.region, (rq_slice){0}, NULL, NULL));
    for (int i = 0; i < 15; i++)
        assert_ok(put(&w.f, "row", "a", "q", i, "v"));
    rq_sim_advance(w.sim, MINUTE);
    assert_int_equal(files_of_store(&w, 0), 1);
    for (int i = 0; i < 15; i++)
        assert_ok(put(&w.f, "row", "a", "q", i, "v"));
    rq_sim_advance(w.sim, MINUTE);
    assert_int_equal(files_of_store(&w, 0), 2);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_memstore_is_flushed_with_a_random_delay),
        cmocka_unit_test(the_interval_and_the_delay_are_settings),
        cmocka_unit_test(an_interval_of_nothing_or_less_means_never),
        cmocka_unit_test(a_flush_in_between_counts),
        cmocka_unit_test(the_old_family_is_flushed_alone),
        cmocka_unit_test(replayed_edits_grow_old),
        cmocka_unit_test(many_edits_are_a_reason_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
