/* SPDX-License-Identifier: Apache-2.0 */
/* How often an opening and a clean close wait for the device. tests/sim proves that the syncs
 * suffice; this test keeps unnecessary syncs from returning. */
#include "fixture.h"
#include "region/region_priv.h"
#include "vfs/batch.h"
#include "vfs/sim.h"

/* The environment's functions, and counts of their calls. */
static rq_vfs real;
static unsigned syncs;

static rq_err count_sync(rq_file *f, rq_error *why)
{
    syncs++;
    return real.sync(f, why);
}

static rq_err count_sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    syncs++;
    return real.sync_dir(v, dir, why);
}

static void begin_counting(rq_env *env)
{
    real = *env->vfs;
    env->vfs->sync = count_sync;
    env->vfs->sync_dir = count_sync_dir;
}

static void end_counting(rq_env *env)
{
    env->vfs->sync = real.sync;
    env->vfs->sync_dir = real.sync_dir;
}

static unsigned syncs_of_close(fixture *f)
{
    rq_error why = {0};
    syncs = 0;
    assert_int_equal(rq_region_close(f->region, false, &why), RQ_OK);
    return syncs;
}

static void a_close_writes_what_has_changed(void **state)
{
    rq_env *env = env_of(state);
    fixture f;
    fixture_open(&f, env, NULL, 0);
    fixture_stop(&f, true);
    fixture_start(&f);
    begin_counting(env);
    assert_int_equal(put(&f, "r", "a", "q", 1, "v"), RQ_OK);
    /* The log; the manifest twice (open; closed, with the file); the file and its name. */
    assert_in_range(syncs_of_close(&f), 4, 5);
    fixture_stop(&f, true);
    for (int i = 0; i < 2; i++) {
        fixture_start(&f);
        assert_string_equal(get(&f, "r", "a", "q"), "v");
        assert_int_equal(syncs_of_close(&f), 0);
        fixture_stop(&f, true);
    }
    end_counting(env);
    fixture_start(&f);
    fixture_close(&f);
}

static void an_empty_log_is_begun_and_ended_by_its_header(void **state)
{
    rq_env *env = env_of(state);
    fixture f;
    fixture_open(&f, env, NULL, 0);
    fixture_stop(&f, true);
    begin_counting(env);
    syncs = 0;
    fixture_start(&f);
    fixture_stop(&f, true);
    /* The folder of manifests, and the log's header twice; three for the fixture, which creates the
     * region again. */
    assert_in_range(syncs, 2, 6);
    end_counting(env);
    fixture_start(&f);
    fixture_close(&f);
}

/* A step that creates a region is repeated because a sync failed: a second sync of the same file
 * would succeed without writing anything. */
static void what_a_failed_sync_left_is_written_again(void **state)
{
    (void)state;
    static const family_def one[] = {{"a", {NULL}}};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        rq_sim *sim;
        assert_ok(rq_sim_new(seed, NULL, &sim));
        rq_env *env = rq_sim_env(sim);
        rq_arena arena = {0};
        rq_region_info info;
        rq_table_schema *schema = make_schema("default", "t", one, 1);
        assert_ok(rq_region_info_make(&arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      (rq_slice){0}, (rq_slice){0}, 1700000000000, 0, &info));
        assert_ok(rq_vfs_mkdirs(env->vfs, "data/default/t", NULL));
        for (int attempt = 0; attempt < 2; attempt++) {
            rq_vfs *batch;
            assert_ok(rq_vfs_batch_new(env->vfs, &batch, NULL));
            assert_ok(rq__region_lay_out(batch, &arena, &info, schema, NULL));
            if (attempt == 0) rq_sim_fail_writes(sim, RQ_E_IO);
            rq_err rc = rq_vfs_batch_end(batch, env->executor, RQ_OK, NULL);
            assert_err(rc, attempt == 0 ? RQ_E_IO : RQ_OK);
            rq_sim_fail_writes(sim, RQ_OK);
        }
        char path[128];
        rq_slice written, kept;
        snprintf(path, sizeof path, "data/default/t/%s/.regioninfo", info.encoded);
        assert_ok(rq_vfs_read_file(env->vfs, path, 4096, &arena, &written, NULL));
        rq_sim_run(sim); /* runs the batch's helper task, which was not needed */
        rq_sim_cut_now(sim);
        rq_sim_restart(sim);
        assert_ok(rq_vfs_read_file(env->vfs, path, 4096, &arena, &kept, NULL));
        assert_true(rq_slice_eq(written, kept));
        rq_table_schema_unref(schema);
        rq_arena_clear(&arena);
        rq_sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_close_writes_what_has_changed, real_env_setup,
                                        real_env_teardown),
        cmocka_unit_test_setup_teardown(an_empty_log_is_begun_and_ended_by_its_header,
                                        real_env_setup, real_env_teardown),
        cmocka_unit_test(what_a_failed_sync_left_is_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
