/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of syncs on the simulated disk: a power cut before rq_vfs_batch_end may lose files, a
 * later one does not. */
#include "../base/unit.h"

#include "vfs/batch.h"
#include "vfs/sim.h"

static const rq_slice text = {(const uint8_t *)"bytes", 5};

static rq_sim *new_sim(uint64_t seed)
{
    rq_sim *sim = NULL;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    return sim;
}

static rq_vfs *new_batch(rq_sim *sim)
{
    rq_vfs *batch = NULL;
    assert_int_equal(rq_vfs_batch_new(rq_sim_env(sim)->vfs, &batch, NULL), RQ_OK);
    return batch;
}

static void write_files(rq_vfs *batch, int folders)
{
    for (int i = 0; i < folders; i++) {
        char path[64];
        snprintf(path, sizeof path, "d%d", i);
        assert_int_equal(rq_vfs_mkdirs(batch, path, NULL), RQ_OK);
        snprintf(path, sizeof path, "d%d/f", i);
        assert_int_equal(rq_vfs_write_new_file(batch, path, text, NULL), RQ_OK);
    }
}

static bool is_there(rq_vfs *v, const char *path)
{
    rq_arena a = {0};
    rq_slice bytes;
    bool there =
        rq_vfs_read_file(v, path, 100, &a, &bytes, NULL) == RQ_OK && rq_slice_eq(bytes, text);
    rq_arena_clear(&a);
    return there;
}

/* How many of the files exist after a power cut. */
static int survivors(int folders, bool sync, uint64_t seed)
{
    rq_sim *sim = new_sim(seed);
    rq_vfs *batch = new_batch(sim);
    int found = 0;
    write_files(batch, folders);
    if (sync)
        assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_OK, NULL), RQ_OK);
    else
        rq_vfs_free(batch);
    rq_sim_run(sim); /* runs helpers that have not begun */
    rq_sim_restart(sim);
    for (int i = 0; i < folders; i++) {
        char path[64];
        snprintf(path, sizeof path, "d%d/f", i);
        found += is_there(rq_sim_env(sim)->vfs, path);
    }
    rq_sim_free(sim);
    return found;
}

static void everything_is_durable_after_the_sync(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    assert_int_equal(survivors(3, true, seed), 3);
    /* more folders than the batch records one by one */
    assert_int_equal(survivors(40, true, seed), 40);
}

static void nothing_is_durable_before_the_batch_ends(void **state)
{
    (void)state;
    int found = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        found += survivors(3, false, seed);
    assert_true(found < 60);
}

/* A removed file and a removed folder are not synced; the folders above are. */
static void removals_are_durable_too(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(unit_seed());
    rq_vfs *v = rq_sim_env(sim)->vfs, *batch = new_batch(sim);
    write_files(batch, 3);
    assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_OK, NULL), RQ_OK);
    batch = new_batch(sim);
    assert_int_equal(rq_vfs_write_new_file(batch, "d1/passing", text, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(batch, "d1", NULL), RQ_OK);
    assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_OK, NULL), RQ_OK);
    rq_sim_run(sim);
    rq_sim_restart(sim);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "d1", &st, NULL), RQ_E_NOT_FOUND);
    assert_true(is_there(v, "d0/f") && is_there(v, "d2/f"));
    rq_sim_free(sim);
}

/* Changes that an earlier attempt made without syncing are durable after the repetition. */
static void a_repetition_makes_an_earlier_attempt_durable(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rq_sim *sim = new_sim(seed);
        rq_vfs *v = rq_sim_env(sim)->vfs, *batch = new_batch(sim);
        rq_stat st;
        write_files(batch, 3);
        assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_OK, NULL), RQ_OK);
        batch = new_batch(sim);
        assert_int_equal(rq_vfs_write_new_file(batch, "d0/g", text, NULL), RQ_OK);
        assert_int_equal(rq_vfs_remove_tree(batch, "d1", NULL), RQ_OK);
        assert_int_equal(rq_vfs_mkdirs(batch, "e/f/g", NULL), RQ_OK);
        rq_vfs_free(batch); /* simulates a killed process */
        batch = new_batch(sim);
        assert_int_equal(rq_vfs_mkdirs(batch, "e/f/g", NULL), RQ_OK);
        assert_int_equal(rq_vfs_write_new_file(batch, "e/f/g/h", text, NULL), RQ_OK);
        assert_int_equal(rq_vfs_write_new_file(batch, "d0/g", text, NULL), RQ_E_EXISTS);
        assert_int_equal(rq_vfs_remove_tree(batch, "d1", NULL), RQ_OK);
        assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_OK, NULL), RQ_OK);
        rq_sim_run(sim);
        rq_sim_restart(sim);
        if (!is_there(v, "e/f/g/h")) fail_msg("seed %d: a folder is lost", (int)seed);
        if (!is_there(v, "d0/g")) fail_msg("seed %d: the file is lost", (int)seed);
        if (rq_vfs_stat(v, "d1", &st, NULL) != RQ_E_NOT_FOUND)
            fail_msg("seed %d: the folder is back", (int)seed);
        rq_sim_free(sim);
    }
}

static void an_error_before_the_end_is_kept(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(unit_seed());
    rq_vfs *batch = new_batch(sim);
    rq_error why = {0};
    write_files(batch, 1);
    assert_int_equal(rq_vfs_batch_end(batch, rq_sim_env(sim)->executor, RQ_E_IO, &why), RQ_E_IO);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_durable_after_the_sync),
        cmocka_unit_test(nothing_is_durable_before_the_batch_ends),
        cmocka_unit_test(removals_are_durable_too),
        cmocka_unit_test(a_repetition_makes_an_earlier_attempt_durable),
        cmocka_unit_test(an_error_before_the_end_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
