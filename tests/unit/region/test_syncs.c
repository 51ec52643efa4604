/* SPDX-License-Identifier: Apache-2.0 */
/* How often an opening and a clean close wait for the device. What each sync protects is for tests/sim to
 * prove; here those that protect nothing do not come back. */
#include "fixture.h"
#include "vfs/vfs.h"

/* The environment's functions, and calls of them. */
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
    /* The log; the manifest three times (in use, with the file, closed); the file and its name. */
    assert_in_range(syncs_of_close(&f), 5, 6);
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
    /* The folder of manifests, and the log's header twice; three for the fixture, which makes the region
     * again. */
    assert_in_range(syncs, 2, 6);
    end_counting(env);
    fixture_start(&f);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_close_writes_what_has_changed, real_env_setup,
                                        real_env_teardown),
        cmocka_unit_test_setup_teardown(an_empty_log_is_begun_and_ended_by_its_header,
                                        real_env_setup, real_env_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
