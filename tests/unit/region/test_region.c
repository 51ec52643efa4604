/* SPDX-License-Identifier: Apache-2.0 */
/* A region on real files and threads: what was written is read, before and after flushes, restarts
 * and crashes. */
#include "fixture.h"

#include "vfs/vfs.h"

#include <unistd.h>

static int setup(void **state)
{
    real_env *e = calloc(1, sizeof *e);
    real_env_open(e);
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    real_env_close(*state);
    free(*state);
    return 0;
}

static rq_env *env_of(void **state)
{
    return &((real_env *)*state)->env;
}

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
    uint64_t last = rq_region_read_point(f.region);
    fixture_stop(&f, false);
    fixture_start(&f);
    assert_string_equal(get(&f, "r", "a", "q"), "v");
    assert_true(rq_region_open_seqid(f.region) > last);
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
    /* The compaction is asked for and runs on its own; bounded by the test's own time-out. */
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

static void many_flushes_are_compacted_by_themselves(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(a_put_is_read_back),
        T(a_put_survives_a_clean_stop),
        T(a_put_survives_a_crash),
        T(a_flush_moves_cells_to_files_and_reads_go_on),
        T(one_family_flushes_alone_and_the_other_is_replayed),
        T(a_major_compaction_leaves_one_file_and_archives_the_rest),
        T(many_flushes_are_compacted_by_themselves),
        T(a_destroyed_region_leaves_nothing_but_the_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
