/* SPDX-License-Identifier: Apache-2.0 */
/* Memory or disk space runs out: writes slow down, then wait, and only then are refused with
 * HBase's exception. The server survives, no acknowledged write is lost, and work continues when
 * space is available again. */
#include "engine_history.h"
#include "region/region_scanner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define VALUE_BYTES 2000
#define SECOND ((uint64_t)1000 * 1000 * 1000)

typedef struct world {
    rq_sim *sim;
    history h;
} world;

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_int_equal(rq_sim_new(7, NULL, &w->sim), RQ_OK);
    history_init(&w->h, w->sim, 1);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    history_close(&w->h, false);
    history_clear(&w->h);
    rq_sim_free(w->sim);
    free(w);
    return 0;
}

static void set(world *w, const char *pair)
{
    assert_int_equal(rq_config_set_pair(w->h.config, pair, NULL), RQ_OK);
}

/* --- many writes at once --------------------------------------------------------------------- */

typedef struct put {
    rq_write write;
    rq_row_op op;
    rq_mutation mutation;
    rq_cell cell;
    char row[16];
    unsigned *done;
    unsigned *failed;
    rq_err *rc;
} put;

static uint8_t value[VALUE_BYTES];

static void on_put(rq_write *w)
{
    put *p = RQ_CONTAINER_OF(w, put, write);
    ++*p->done;
    *p->failed += p->op.rc != RQ_OK;
    rq_row_op_clear(&p->op);
    if (p->rc != NULL) *p->rc = p->op.rc;
    free(p);
}

static void send(world *w, unsigned n, unsigned *done, unsigned *failed, rq_err *rc)
{
    put *p = calloc(1, sizeof *p);
    snprintf(p->row, sizeof p->row, "p%06u", n);
    p->done = done;
    p->failed = failed;
    p->rc = rc;
    p->cell = (rq_cell){.family = (const uint8_t *)"a",
                        .family_len = 1,
                        .qualifier = (const uint8_t *)"q",
                        .qualifier_len = 1,
                        .timestamp = 1,
                        .type = RQ_TYPE_PUT,
                        .value = value,
                        .value_len = VALUE_BYTES};
    p->mutation = (rq_mutation){
        .type = RQ_MUTATE_PUT, .row = rq_slice_cstr(p->row), .cells = &p->cell, .cell_count = 1};
    p->op = (rq_row_op){.mutations = &p->mutation, .mutation_count = 1};
    p->write = (rq_write){.ops = &p->op, .op_count = 1, .writer = w->h.writer, .done = on_put};
    rq_region_write(w->h.region, &p->write);
}

static unsigned count_rows(world *w)
{
    rq_scan scan = {.start_row = RQ_SLICE_LIT("p"),
                    .include_start = true,
                    .max_versions = 1,
                    .time_range = RQ_TIME_RANGE_ALL,
                    .store_limit = -1};
    rq_arena arena = {0};
    rq_cellblock out = {0};
    rq_read_ctx ctx = {.may_block = true};
    rq_region_scanner *s;
    rq_scan_limits none = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_epoch_member pin;
    rq_epoch_pin(w->h.env->epoch, &pin);
    assert_int_equal(rq_region_scanner_open(w->h.region, &scan, 0, &arena, &s, NULL), RQ_OK);
    while (state != RQ_SCAN_DONE)
        assert_int_equal(rq_region_scanner_next(s, &none, &ctx, &out, &state, NULL), RQ_OK);
    rq_region_scanner_close(s);
    rq_epoch_unpin(w->h.env->epoch, &pin);
    unsigned count = out.count;
    rq_read_ctx_clear(&ctx);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return count;
}

/* Sends `count` puts, many in flight, and runs until all are answered. Returns the largest memstore
 * size seen. */
static uint64_t flood(world *w, unsigned first, unsigned count, unsigned *failed)
{
    uint64_t most = 0;
    unsigned done = 0;
    *failed = 0;
    for (unsigned i = 0; i < count || done < count;) {
        rq_engine_stats stats;
        if (i < count) send(w, first + i++, &done, failed, NULL);
        if (i % 8 == 0 || i == count) rq__writer_push(w->h.writer);
        rq_sim_step(w->sim);
        if (i == count) rq_sim_advance(w->sim, SECOND / 100);
        rq_engine_get_stats(w->h.engine, &stats);
        if (stats.memstore_bytes > most) most = stats.memstore_bytes;
    }
    return most;
}

static void a_flood_of_writes_stays_under_the_ceilings(void **state)
{
    world *w = *state;
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.memory=16777216");
    set(w, "hbase.hregion.memstore.flush.size=1048576");
    assert_true(history_open(&w->h));
    uint64_t most = flood(w, 0, 8000, &failed); /* 16 MB through a memstore of at most 6.7 MB */
    assert_int_equal(failed, 0);
    rq_engine_get_stats(w->h.engine, &stats);
    /* Writes to a region wait at four times its flush size; the rest is one slab. */
    assert_true(most <= 4 * 1048576 + 2 * 1024 * 1024 + 65536);
    assert_true(stats.flushes >= 4);
    assert_int_equal(count_rows(w), 8000);
}

static void the_global_ceiling_holds_below_the_regions(void **state)
{
    world *w = *state;
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.memory=8388608"); /* 3.3 MB for memstores */
    set(w, "hbase.hregion.memstore.flush.size=134217728");
    assert_true(history_open(&w->h));
    uint64_t most = flood(w, 0, 6000, &failed);
    assert_int_equal(failed, 0);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_true(most <= stats.memstore_bytes_max + 2 * 1024 * 1024 + 65536);
    assert_true(stats.flushes >= 2);
    assert_int_equal(count_rows(w), 6000);
}

/* Memory is freed when its last reader has released it, not when a flush has ended. Delayed writes
 * continue then, although no loop leaves an epoch section because all remaining clients wait. */
static void what_was_flushed_counts_as_long_as_it_is_read(void **state)
{
    world *w = *state;
    unsigned done = 0;
    unsigned failed = 0;
    uint64_t most = 0;
    rq_engine_stats stats;
    rq_epoch_member reader;
    set(w, "rorqual.memory=8388608"); /* 3.3 MB for memstores */
    set(w, "hbase.hregion.memstore.flush.size=524288");
    assert_true(history_open(&w->h));
    rq_epoch_pin(w->h.env->epoch, &reader);
    for (unsigned i = 0; i < 6000; i++) {
        send(w, i, &done, &failed, NULL);
        if (i % 8 == 0) rq__writer_push(w->h.writer);
        rq_sim_step(w->sim);
    }
    rq_sim_advance(w->sim, SECOND * 2);
    rq_sim_run(w->sim);
    rq_engine_get_stats(w->h.engine, &stats);
    most = stats.memstore_bytes_held;
    assert_true(stats.flushes >= 1);
    assert_true(most > stats.memstore_bytes);
    assert_true(most <= stats.memstore_bytes_max + 2 * 1024 * 1024 + 65536);
    assert_true(done < 6000);
    rq_epoch_unpin(w->h.env->epoch, &reader);
    for (int i = 0; i < 3000 && done < 6000; i++)
        rq_sim_advance(w->sim, SECOND / 100);
    assert_int_equal(done, 6000);
    assert_int_equal(failed, 0);
    assert_int_equal(count_rows(w), 6000);
}

static void a_full_disk_refuses_soon_and_forgets_nothing(void **state)
{
    world *w = *state;
    unsigned done = 0;
    unsigned failed = 0;
    rq_err rc = RQ_OK;
    set(w, "hbase.busy.wait.duration=30000");
    assert_true(history_open(&w->h));
    flood(w, 0, 20, &failed);
    assert_int_equal(failed, 0);
    rq_sim_quota(w->sim, 1);
    for (unsigned n = 100; failed == 0 && n < 200; n++) { /* until the log's file is full */
        send(w, n, &done, &failed, &rc);
        rq__writer_push(w->h.writer);
        rq_sim_advance(w->sim, SECOND);
        if (done < n - 99) { /* the put waits for a limited time */
            rq_sim_advance(w->sim, 10 * SECOND);
            assert_int_equal(failed, 1);
            assert_int_equal(rc, RQ_E_REGION_TOO_BUSY);
        }
    }
    assert_int_equal(failed, 1);
    unsigned acknowledged = 20 + done - failed;
    assert_int_equal(count_rows(w), acknowledged); /* reads continue */
    rq_sim_quota(w->sim, 0);
    rq_sim_advance(w->sim, SECOND);
    flood(w, 200, 20, &failed);
    assert_int_equal(failed, 0);
    unsigned count = count_rows(w);
    /* a refused write may have been applied */
    assert_in_range(count, acknowledged + 20, acknowledged + 21);
    history_close(&w->h, true);
    assert_true(history_open(&w->h));
    assert_int_equal(count_rows(w), count);
}

static void a_flush_that_found_the_disk_full_is_tried_again_by_itself(void **state)
{
    world *w = *state;
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.wal.max=1073741824"); /* no other limit causes a flush */
    set(w, "hbase.hregion.memstore.flush.size=1048576");
    assert_true(history_open(&w->h));
    flood(w, 0, 20, &failed);
    rq_sim_quota(w->sim, 1);
    rq_error why = {0};
    assert_int_equal(rq_region_flush(w->h.region, (rq_slice){0}, NULL, &why), RQ_E_NO_SPACE);
    assert_non_null(strstr(why.message, "no space left"));
    rq_sim_advance(w->sim, 20 * SECOND);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(stats.flushes, 0);
    assert_int_equal(count_rows(w), 20);
    rq_sim_quota(w->sim, 0);
    rq_sim_advance(w->sim, 5 * SECOND);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(stats.flushes, 1);
    assert_int_equal(count_rows(w), 20);
}

static rq_engine_stats stats_of(world *w)
{
    rq_engine_stats stats;
    rq_engine_get_stats(w->h.engine, &stats);
    return stats;
}

static rq_err flush_all(world *w)
{
    return rq_region_flush(w->h.region, (rq_slice){0}, NULL, NULL);
}

/* Three files that are not compacted automatically, with 2 MB each, and as much in the memstore. */
static void open_with_three_files(world *w)
{
    unsigned failed;
    set(w, "rorqual.wal.max=1073741824");
    set(w, "hbase.hregion.memstore.flush.size=16777216");
    set(w, "hbase.hstore.compaction.min=10");
    assert_true(history_open(&w->h));
    for (unsigned i = 0; i < 4; i++) {
        flood(w, i * 1000, 1000, &failed);
        assert_int_equal(failed, 0);
        if (i < 3) assert_int_equal(flush_all(w), RQ_OK);
    }
    assert_int_equal(stats_of(w).flushes, 3);
}

static void request_compaction(world *w)
{
    assert_int_equal(rq_region_compact(w->h.region, (rq_slice){0}, true, NULL), RQ_OK);
}

static void a_compaction_waits_while_a_flush_lacks_space(void **state)
{
    world *w = *state;
    open_with_three_files(w);
    rq_sim_quota(w->sim, 1);
    assert_int_equal(flush_all(w), RQ_E_NO_SPACE);
    rq_sim_quota(w->sim, 0);
    request_compaction(w);
    for (int i = 0; i < 20 && stats_of(w).flushes == 3; i++) {
        /* the retried flush runs before compactions */
        assert_int_equal(stats_of(w).compactions, 0);
        rq_sim_advance(w->sim, SECOND / 10);
    }
    assert_int_equal(stats_of(w).flushes, 4);
    rq_sim_advance(w->sim, SECOND);
    assert_int_equal(stats_of(w).major_compactions, 1); /* the request was not repeated */
    assert_int_equal(count_rows(w), 4000);
}

static void a_compaction_releases_its_inputs_pages_unless_configured(void **state)
{
    world *w = *state;
    open_with_three_files(w);
    request_compaction(w);
    rq_sim_advance(w->sim, SECOND);
    assert_int_equal(stats_of(w).major_compactions, 1);
    uint64_t dropped = rq_sim_dropped(w->sim);
    assert_true(dropped >= 3000000); /* of 6 MB; each time slightly more than is new */
    history_close(&w->h, true);
    set(w, "hbase.hfile.drop.behind.compaction=false");
    assert_true(history_open(&w->h));
    request_compaction(w);
    rq_sim_advance(w->sim, SECOND);
    assert_int_equal(stats_of(w).major_compactions, 1);
    assert_int_equal(rq_sim_dropped(w->sim), dropped);
    assert_int_equal(count_rows(w), 4000);
}

static void a_running_compaction_gives_its_space_to_a_flush(void **state)
{
    world *w = *state;
    set(w, "hbase.regionserver.throughput.controller=org.apache.hadoop.hbase.regionserver.throttle."
           "PressureAwareCompactionThroughputController");
    set(w, "hbase.hstore.compaction.throughput.lower.bound=500000");
    set(w, "hbase.hstore.compaction.throughput.higher.bound=500000");
    open_with_three_files(w);
    uint64_t used = rq_sim_used(w->sim);
    request_compaction(w);
    rq_sim_advance(w->sim, 4 * SECOND); /* four of twelve seconds */
    uint64_t with_part = rq_sim_used(w->sim);
    assert_true(with_part > used + 1000000);
    rq_sim_quota(w->sim, with_part);
    assert_int_equal(flush_all(w), RQ_E_NO_SPACE);
    rq_sim_quota(w->sim, 0);
    bool given_back = false;
    for (int i = 0; i < 100 && stats_of(w).flushes == 3; i++) {
        if (rq_sim_used(w->sim) < used + 100000) given_back = true;
        rq_sim_advance(w->sim, SECOND / 50);
    }
    assert_true(given_back);
    assert_int_equal(stats_of(w).flushes, 4);
    assert_int_equal(stats_of(w).compactions, 0);
    rq_sim_advance(w->sim, 60 * SECOND);
    assert_int_equal(stats_of(w).major_compactions, 1);
    assert_int_equal(count_rows(w), 4000);
}

/* 400 kB are a fifth of the log's limit. From an eighth on, regions with little to flush are asked
 * to flush. */
static uint64_t flushes_of_400_kb(world *w, const char *flush_size)
{
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.wal.max=2097152");
    set(w, flush_size);
    assert_true(history_open(&w->h));
    flood(w, 0, 200, &failed);
    assert_int_equal(failed, 0);
    rq_sim_advance(w->sim, SECOND);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(count_rows(w), 200);
    return stats.flushes;
}

static void a_region_with_little_lets_go_of_an_old_wal_file_early(void **state)
{
    /* With this flush size a megabyte is little. */
    assert_true(flushes_of_400_kb(*state, "hbase.hregion.memstore.flush.size=134217728") > 0);
}

static void a_region_with_much_keeps_an_old_wal_file_until_the_log_is_too_long(void **state)
{
    /* With this flush size only 8 kB would be little. */
    assert_int_equal(flushes_of_400_kb(*state, "hbase.hregion.memstore.flush.size=1048576"), 0);
}

static void a_log_larger_than_memory_is_replayed_region_by_region(void **state)
{
    world *w = *state;
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.wal.max=1073741824");
    set(w, "hbase.hregion.memstore.flush.size=134217728");
    set(w, "rorqual.memory=33554432");
    assert_true(history_open(&w->h));
    flood(w, 0, 3000, &failed);
    assert_int_equal(failed, 0);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(stats.flushes, 0);
    history_close(&w->h, false);
    rq_sim_restart(w->sim);
    /* buckets of at most 0.8 MB, so that the log's index must be used */
    set(w, "rorqual.memory=4194304");
    assert_true(history_open(&w->h));
    rq_engine_get_stats(w->h.engine, &stats);
    assert_true(stats.recovered_records > 0);
    assert_int_equal(count_rows(w), 3000);
}

static void a_flush_waits_a_while_for_a_compaction_that_does_not_come(void **state)
{
    world *w = *state;
    unsigned failed;
    rq_engine_stats stats;
    set(w, "rorqual.wal.max=1073741824"); /* the log causes no flush */
    set(w, "hbase.hstore.blockingStoreFiles=3");
    set(w, "hbase.hstore.blockingWaitTime=20000");
    set(w, "hbase.hregion.memstore.flush.size=16777216");
    set(w, "hbase.hstore.compaction.min=10"); /* three files cause no compaction */
    set(w, "hbase.hregion.memstore.flush.size=262144");
    assert_true(history_open(&w->h));
    for (unsigned i = 0; i < 3; i++) {
        flood(w, i * 10, 10, &failed);
        assert_int_equal(rq_region_flush(w->h.region, (rq_slice){0}, NULL, NULL), RQ_OK);
    }
    flood(w, 100, 100, &failed); /* above the flush size, below the blocking size */
    assert_int_equal(failed, 0);
    rq_sim_advance(w->sim, 5 * SECOND);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(stats.flushes, 3);
    rq_sim_advance(w->sim, 20 * SECOND);
    rq_engine_get_stats(w->h.engine, &stats);
    assert_int_equal(stats.flushes, 4);
    assert_int_equal(count_rows(w), 130);
}

static rq_leftover_fate drop(void *context, const rq_leftover *left)
{
    unsigned *asked = context;
    ++*asked;
    assert_true(left->records > 0);
    return RQ_LEFTOVER_DROP;
}

static void records_of_an_unopened_region_are_reported_and_counted(void **state)
{
    world *w = *state;
    unsigned failed;
    unsigned asked = 0;
    assert_true(history_open(&w->h));
    flood(w, 0, 5, &failed);
    history_close(&w->h, false);
    rq_sim_restart(w->sim);
    rq_engine_options o = {.config = w->h.config};
    rq_engine *e;
    assert_int_equal(rq_engine_open(w->h.env, &o, &e, NULL), RQ_OK);
    assert_int_equal(rq_engine_recovered(e, drop, &asked), 5);
    assert_int_equal(asked, 1);
    assert_int_equal(rq_engine_recovered(e, drop, &asked), 0);
    assert_int_equal(rq_engine_close(e, true, NULL), RQ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(a_flood_of_writes_stays_under_the_ceilings),
        T(the_global_ceiling_holds_below_the_regions),
        T(what_was_flushed_counts_as_long_as_it_is_read),
        T(a_full_disk_refuses_soon_and_forgets_nothing),
        T(a_flush_that_found_the_disk_full_is_tried_again_by_itself),
        T(a_flush_waits_a_while_for_a_compaction_that_does_not_come),
        T(a_compaction_waits_while_a_flush_lacks_space),
        T(a_running_compaction_gives_its_space_to_a_flush),
        T(a_compaction_releases_its_inputs_pages_unless_configured),
        T(a_region_with_little_lets_go_of_an_old_wal_file_early),
        T(a_region_with_much_keeps_an_old_wal_file_until_the_log_is_too_long),
        T(a_log_larger_than_memory_is_replayed_region_by_region),
        T(records_of_an_unopened_region_are_reported_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
