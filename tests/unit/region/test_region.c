/* SPDX-License-Identifier: Apache-2.0 */
/* A region on real files and threads: written cells are read, before and after flushes, restarts
 * and crashes. */
#include "fixture.h"

#include "hfile/check.h"
#include "base/clock.h"
#include "region/engine_priv.h"
#include "vfs/sim.h"

#include <time.h>
#include <unistd.h>

static void a_put_is_read_back(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "v"));
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    assert_string_equal(read_text(&f, "r", 0, false), "r/a:q/5/Put=v\n");
    assert_null(get(&f, "r", "b", "q"));
    fixture_close(&f);
}

static void a_put_survives_a_clean_stop(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "v"));
    fixture_stop(&f, true);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    rq_engine_stats st;
    rq_engine_get_stats(f.engine, &st);
    assert_int_equal(st.recovered_records, 0);
    fixture_close(&f);
}

static void a_put_survives_a_crash(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "v"));
    uint64_t last = rq__region_read_point(f.region);
    fixture_stop(&f, false);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    assert_true(rq_region_open_seqid(f.region) > last);
    fixture_close(&f);
}

static uint64_t smallest_of(const uint64_t *held, size_t count)
{
    uint64_t smallest = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (held[i] != 0 && held[i] < smallest) smallest = held[i];
    return smallest;
}

/* Compares with a list of held read points: none is forgotten, and after all are released none is
 * left. Some clients use the read point of an earlier scanner, in any order. */
static void read_points_are_kept(void **state)
{
    enum { HELD = 1000, STEPS = 60000 };
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    uint64_t held[HELD] = {0}, now = 5000;
    atomic_store(&f.region->read_point, 1000000);
    srand(7);
    for (int step = 0; step < STEPS; step++) {
        uint64_t *one = &held[rand() % HELD];
        if (*one != 0) {
            rq__region_read_point_release(f.region, *one);
            *one = 0;
        } else {
            /* In phases: either all new read points rise, or some are old ones. */
            bool rises = step / 10000 % 2 == 0 || rand() % 4 > 0;
            *one = rises ? now++ : now - (uint64_t)(rand() % 4000);
            assert_int_equal(rq__region_read_point_acquire(f.region, *one), *one);
        }
        if (step % 10 > 0) continue;
        uint64_t kept = rq__region_smallest_read_point(f.region),
                 smallest = smallest_of(held, HELD);
        assert_true(kept <= smallest);
        if (step < 10000 && smallest != UINT64_MAX) assert_int_equal(kept, smallest);
        if (step % 9000 == 0)
            for (size_t i = 0; i < HELD; i++)
                if (rand() % 10 > 0 && held[i] != 0)
                    rq__region_read_point_release(f.region, held[i]), held[i] = 0;
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i] != 0) rq__region_read_point_release(f.region, held[i]);
    assert_int_equal(rq__region_smallest_read_point(f.region), 1000000);
    fixture_close(&f);
}

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Takes `count` read points, ascending or descending, and releases them in another order. */
static uint64_t cost_of(rq_region *r, uint64_t count, bool falling)
{
    uint64_t begun = nanoseconds();
    for (uint64_t i = 1; i <= count; i++)
        (void)rq__region_read_point_acquire(r, falling ? 1 + count - i : i);
    for (uint64_t i = 1; i <= count; i++)
        rq__region_read_point_release(r, i % 2 == 0 ? i : 1 + (count - 1) / 2 * 2 + 1 - i);
    return nanoseconds() - begun;
}

static void many_read_points_cost_no_more_each(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    for (int falling = 0; falling < 2; falling++) {
        uint64_t few = cost_of(f.region, 4000, falling), many = cost_of(f.region, 128000, falling);
        /* 32 times as many; if each were compared with all, it would take a thousand times as
         * long. Caches are the smaller part. */
        assert_true(many < few * 32 * 16);
    }
    fixture_close(&f);
}

static void a_flush_moves_cells_to_files_and_reads_go_on(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r1", "a", "q", 5, "v1"));
    assert_ok(put(&f, "r2", "b", "q", 5, "v2"));
    bool flushed = false;
    assert_ok(rq_region_flush(f.region, (rq_slice){0}, &flushed, NULL));
    assert_true(flushed);
    rq_region_load load;
    rq_region_get_load(f.region, &load);
    assert_int_equal(load.storefiles, 2);
    assert_string_equal(get(&f, "r1", "a", "q"), "v1");
    assert_string_equal(get(&f, "r2", "b", "q"), "v2");
    assert_ok(rq_region_flush(f.region, (rq_slice){0}, &flushed, NULL));
    assert_false(flushed);
    assert_ok(put(&f, "r1", "a", "q", 6, "v3"));
    fixture_stop(&f, false);
    fixture_start(&f);
    assert_string_equal(get(&f, "r1", "a", "q"), "v3");
    assert_string_equal(get(&f, "r2", "b", "q"), "v2");
    fixture_close(&f);
}

static void one_family_flushes_alone_and_the_other_is_replayed(void **state)
{
    fixture f;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "in file"));
    assert_ok(put(&f, "r", "b", "q", 5, "in log"));
    bool flushed = false;
    assert_ok(rq_region_flush(f.region, RQ_SLICE_LIT("a"), &flushed, NULL));
    assert_true(flushed);
    fixture_stop(&f, false);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "in file");
    assert_string_equal(get(&f, "r", "b", "q"), "in log");
    rq_engine_stats st;
    rq_engine_get_stats(f.engine, &st);
    assert_int_equal(st.recovered_records, 1);
    fixture_close(&f);
}

static void wait_for_files(fixture *f, uint32_t count)
{
    rq_region_load load;
    /* The compaction is requested and runs in the background; the test's time-out limits the
     * loop. */
    do {
        usleep(1000);
        rq_region_get_load(f->region, &load);
    } while (load.storefiles != count || rq_region_compaction_state(f->region) != 0);
}

static void a_major_compaction_leaves_one_file_and_archives_the_rest(void **state)
{
    static const family_def one[] = {{"a", {NULL}}};
    fixture f;
    fixture_open(&f, env_of(state), one, 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(put(&f, "r", "a", "q", 5 + i, i == 0 ? "old" : "new"));
        assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    wait_for_files(&f, 1);
    assert_string_equal(read_text(&f, "", 0, true), "r/a:q/6/Put=new\n");
    fixture_stop(&f, true);
    const char *dir = rq_arena_printf(&f.arena, "archive/data/default/t/%s/a", f.info.encoded);
    rq_dir_entry *entries;
    size_t count;
    assert_ok(rq_vfs_list(f.env->vfs, dir, &f.arena, &entries, &count, NULL));
    assert_int_equal(count, 2);
    dir = rq_arena_printf(&f.arena, "data/default/t/%s/a", f.info.encoded);
    assert_ok(rq_vfs_list(f.env->vfs, dir, &f.arena, &entries, &count, NULL));
    assert_int_equal(count, 1);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "new");
    fixture_close(&f);
}

static rq_err expect_crc32(void *arg, const rq_hfile_block_line *line)
{
    (void)arg;
    assert_int_equal(line->checksum_type, RQ_CHECKSUM_CRC32);
    return RQ_OK;
}

/* Checks encoding, compression and Bloom type of every file of family a. */
static void expect_files(fixture *f, rq_block_encoding encoding, rq_compression compression,
                         rq_bloom_type bloom)
{
    const char *dir = rq_arena_printf(&f->arena, "data/default/t/%s/a", f->info.encoded);
    rq_dir_entry *entries;
    size_t count;
    assert_ok(rq_vfs_list(f->env->vfs, dir, &f->arena, &entries, &count, NULL));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        rq_hfile_reader *r;
        const char *path = rq_arena_printf(&f->arena, "%s/%s", dir, entries[i].name);
        assert_ok(rq_hfile_reader_open(f->env->vfs, path, NULL, false, &r, NULL));
        const rq_hfile_info *info = rq_hfile_reader_info(r);
        assert_int_equal(info->encoding, encoding);
        assert_int_equal(info->compression, compression);
        assert_int_equal(info->bloom, bloom);
        assert_ok(rq_hfile_walk_blocks(r, expect_crc32, NULL, NULL));
        rq_hfile_report report;
        assert_ok(rq_hfile_check(r, &report, NULL));
        rq_hfile_reader_unref(r);
    }
}

static void put_rows(fixture *f, int from)
{
    for (int i = from; i < 100; i += 2) {
        char row[16];
        snprintf(row, sizeof(row), "row%05d", i);
        assert_ok(put(f, row, "a", "q", 5, "v"));
    }
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

static void files_are_as_family_and_settings_say_and_an_alter_changes_them(void **state)
{
    static const family_def before[] = {
        {"a",
         {"DATA_BLOCK_ENCODING", "FAST_DIFF", "COMPRESSION", "LZO", "BLOOMFILTER",
          "ROWPREFIX_FIXED_LENGTH", "RowPrefixBloomFilter.prefix_length", "6", NULL}}};
    static const family_def after[] = {
        {"a", {"DATA_BLOCK_ENCODING", "DIFF", "COMPRESSION", "BZIP2", NULL}}};
    static const char *const settings[] = {"hbase.hstore.checksum.algorithm=CRC32", NULL};
    fixture f;
    fixture_open_with(&f, env_of(state), before, 1, settings);
    put_rows(&f, 0);
    expect_files(&f, RQ_ENCODING_FAST_DIFF, RQ_COMPRESSION_LZO, RQ_BLOOM_ROWPREFIX_FIXED_LENGTH);
    assert_string_equal(get(&f, "row00042", "a", "q"), "v");
    assert_null(get(&f, "row00041", "a", "q"));
    fixture_stop(&f, true);
    rq_table_schema_unref(f.schema);
    f.schema = make_schema("default", "t", after, 1);
    fixture_start(&f);
    put_rows(&f, 1);
    assert_ok(rq_region_compact(f.region, (rq_slice){0}, true, NULL));
    wait_for_files(&f, 1);
    assert_string_equal(get(&f, "row00041", "a", "q"), "v");
    assert_string_equal(get(&f, "row00042", "a", "q"), "v");
    fixture_stop(&f, true);
    expect_files(&f, RQ_ENCODING_DIFF, RQ_COMPRESSION_BZIP2, RQ_BLOOM_ROW);
    fixture_start(&f);
    fixture_close(&f);
}

static void flushes_on_request_do_not_start_compaction(void **state)
{
    static const family_def one[] = {{"a", {NULL}}};
    fixture f;
    fixture_open(&f, env_of(state), one, 1);
    for (int i = 0; i < 8; i++) {
        char row[16];
        snprintf(row, sizeof row, "r%d", i);
        assert_ok(put(&f, row, "a", "q", 5, "v"));
        assert_ok(rq_region_flush(f.region, (rq_slice){0}, NULL, NULL));
    }
    rq_region_load load;
    rq_region_get_load(f.region, &load);
    assert_int_equal(load.storefiles, 8);
    assert_int_equal(rq_region_compaction_state(f.region), 0);
    rq_region_compact_if_due(f.region);
    do {
        usleep(1000);
        rq_region_get_load(f.region, &load);
    } while (load.storefiles >= 3);
    for (int i = 0; i < 8; i++) {
        char row[16];
        snprintf(row, sizeof row, "r%d", i);
        assert_string_equal(get(&f, row, "a", "q"), "v");
    }
    fixture_close(&f);
}

static void a_destroyed_region_leaves_nothing_but_the_archive(void **state)
{
    fixture f;
    rq_stat st;
    fixture_open(&f, env_of(state), NULL, 0);
    assert_ok(put(&f, "r", "a", "q", 5, "v"));
    assert_ok(rq_region_close(f.region, false, NULL));
    rq_region_unref(f.region);
    assert_ok(rq_region_destroy(f.engine, &f.info, NULL));
    assert_ok(rq_region_destroy(f.engine, &f.info, NULL));
    const char *dir = rq_arena_printf(&f.arena, "data/default/t/%s", f.info.encoded);
    assert_err(rq_vfs_stat(f.env->vfs, dir, &st, NULL), RQ_E_NOT_FOUND);
    assert_ok(rq_engine_close(f.engine, true, NULL));
    f.engine = NULL;
    fixture_start(&f);
    assert_null(get(&f, "r", "a", "q"));
    fixture_close(&f);
}

/* --- many regions ----------------------------------------------------------------------------- */

#define FOUND_TIMES 200

/* CPU time, in ns, to find a region. */
static uint64_t find_ns(rq_engine *e, const char *encoded)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < 20; round++) {
        uint64_t begun = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < FOUND_TIMES; i++) {
            rq_region *r = rq__engine_find(e, encoded);
            assert_non_null(r);
            rq_region_unref(r);
        }
        uint64_t took = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
        least = took < least ? took : least;
    }
    return least / FOUND_TIMES;
}

/* A backup looks for every region by its name, under a lock. */
static void a_region_is_found_among_many(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static rq_region *opened[MANY];
    fixture f;
    rq_sim *sim;
    assert_ok(rq_sim_new(3, NULL, &sim));
    fixture_open(&f, rq_sim_env(sim), NULL, 0);
    uint64_t few = find_ns(f.engine, f.info.encoded);
    for (int i = 0; i < MANY; i++) {
        char key[8];
        rq_region_info info;
        snprintf(key, sizeof key, "%04d", i);
        assert_ok(rq_region_info_make(&f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      rq_slice_cstr(key), (rq_slice){0}, 1700000000000, 0, &info));
        assert_ok(rq_region_create(f.engine, &info, f.schema, NULL));
        assert_ok(rq_region_open(f.engine, &info, f.schema, &opened[i], NULL));
        rq_region *r = rq__engine_find(f.engine, info.encoded);
        assert_ptr_equal(r, opened[i]);
        rq_region_unref(r);
    }
    uint64_t many = find_ns(f.engine, f.info.encoded);
    if (many > 10 * few + 200)
        fail_msg("%llu ns instead of %llu", (unsigned long long)many, (unsigned long long)few);
    for (int i = 0; i < MANY; i++) {
        char encoded[RQ_ENCODED_NAME_LEN + 1];
        snprintf(encoded, sizeof encoded, "%s", opened[i]->info.encoded);
        assert_ok(rq_region_close(opened[i], true, NULL));
        rq_region_unref(opened[i]);
        assert_null(rq__engine_find(f.engine, encoded));
    }
    assert_ptr_equal(rq__engine_find(f.engine, f.info.encoded), f.region);
    rq_region_unref(f.region);
    fixture_close(&f);
    rq_sim_free(sim);
}

/* --- a log of many regions -------------------------------------------------------------------- */

#define LOG_REGIONS 16000

/* Writes a log with one record for each region. */
static void write_log(rq_env *env)
{
    static const char value[200] = "value";
    rq_error why = {0};
    rq_wal *wal;
    rq_wal_options o = {.sync = RQ_WAL_HANDOVER};
    rq_cellblock cells = {0};
    rq_cell cell = cell_of("a", "q", 5, RQ_TYPE_PUT, NULL);
    cell.row = (const uint8_t *)"r";
    cell.row_len = 1;
    cell.value = (const uint8_t *)value;
    cell.value_len = sizeof value;
    assert_ok(rq_cellblock_append(&cells, &cell));
    assert_ok(rq_wal_open(env, &o, &wal, &why));
    assert_ok(rq_wal_replay(wal, NULL, NULL, &why));
    rq_lsn end = 0;
    for (int i = 0; i < LOG_REGIONS; i++) {
        char name[33];
        rq_wal_region *r;
        rq_wal_record record = {
            .kind = RQ_WAL_EDIT, .sequence_id = 1, .payload = rq_buf_slice(&cells.bytes)};
        snprintf(name, sizeof name, "%032x", i);
        assert_ok(rq_wal_region_open(wal, name, RQ_SLICE_LIT("t"), NULL, &r));
        assert_ok(rq_wal_stage(wal, r, &record, NULL, 0, &end));
        rq_wal_region_close(r);
    }
    assert_ok(rq_wal_wait_blocking(wal, end, true));
    assert_ok(rq_wal_close(wal, false, &why));
    rq_cellblock_clear(&cells);
}

/* CPU time, in ns, of a start with this memory setting; *ret_spilled: regions that will read the log themselves. */
static uint64_t start_ns(rq_env *env, const char *memory, unsigned *ret_spilled)
{
    rq_error why = {0};
    rq_config *config;
    rq_engine *engine;
    assert_ok(rq_config_new(&config));
    assert_ok(rq_config_set_pair(config, memory, NULL));
    assert_ok(rq_config_set_pair(config, "rorqual.wal.file.size=262144", NULL));
    rq_engine_options o = {.config = config};
    uint64_t begun = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (rq_engine_open(env, &o, &engine, &why) != RQ_OK) fail_msg("engine: %s", why.message);
    uint64_t took = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
    const rq__recovery *v = &engine->recovery;
    *ret_spilled = 0;
    for (size_t i = 0; i < RQ__BUCKET_CHAINS; i++)
        for (const rq__bucket *b = v->chains[i]; b != NULL; b = b->next)
            *ret_spilled += b->by_index;
    assert_true(v->bytes <= v->bytes_max);
    assert_ok(rq_engine_close(engine, false, &why));
    rq_config_free(config);
    return took;
}

/* If the records of a log do not fit into memory, the regions with the most records read theirs later. With one
 * record for each of many regions, a start must not search for these regions at every record. */
static void a_log_of_many_regions_may_exceed_the_memory(void **state)
{
    (void)state;
    rq_sim *sim;
    unsigned spilled, none;
    uint64_t much = UINT64_MAX, little = UINT64_MAX;
    assert_ok(rq_sim_new(3, NULL, &sim));
    write_log(rq_sim_env(sim));
    for (int round = 0; round < 3 || (round < 20 && little > 4 * much); round++) {
        uint64_t took = start_ns(rq_sim_env(sim), "rorqual.memory=268435456", &none);
        much = took < much ? took : much;
        assert_int_equal(none, 0);
        took = start_ns(rq_sim_env(sim), "rorqual.memory=8388608", &spilled);
        little = took < little ? took : little;
        assert_true(spilled > LOG_REGIONS / 4 && spilled < LOG_REGIONS);
    }
    if (little > 4 * much)
        fail_msg("%llu ms instead of %llu", (unsigned long long)little / 1000000,
                 (unsigned long long)much / 1000000);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, real_env_setup, real_env_teardown)
        T(a_put_is_read_back),
        T(a_put_survives_a_clean_stop),
        T(a_put_survives_a_crash),
        T(read_points_are_kept),
        T(many_read_points_cost_no_more_each),
        T(a_flush_moves_cells_to_files_and_reads_go_on),
        T(one_family_flushes_alone_and_the_other_is_replayed),
        T(a_major_compaction_leaves_one_file_and_archives_the_rest),
        T(files_are_as_family_and_settings_say_and_an_alter_changes_them),
        T(flushes_on_request_do_not_start_compaction),
        T(a_destroyed_region_leaves_nothing_but_the_archive),
        cmocka_unit_test(a_region_is_found_among_many),
        cmocka_unit_test(a_log_of_many_regions_may_exceed_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
