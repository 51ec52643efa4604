/* SPDX-License-Identifier: Apache-2.0 */
/* Objects with generations (vfs/cas.c) under power cuts, failing calls and damaged bytes. */
#include "../base/unit.h"

#include "vfs/sim.h"

static rq_sim *new_sim(uint64_t seed, bool ignore_sync)
{
    rq_sim *sim;
    rq_sim_options options = {.ignore_sync = ignore_sync};
    assert_int_equal(rq_sim_new(seed, &options, &sim), RQ_OK);
    return sim;
}

static void expect_object(rq_sim *sim, const char *text, uint64_t generation)
{
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t found;
    rq_error why = {0};
    if (rq_vfs_cas_read(rq_sim_env(sim)->vfs, "m", &arena, &bytes, &found, &why) != RQ_OK)
        fail_msg("%s", why.message);
    assert_int_equal(found, generation);
    assert_true(rq_slice_eq(bytes, rq_slice_cstr(text)));
    rq_arena_clear(&arena);
}

static rq_err read_object(rq_sim *sim, rq_error *why)
{
    rq_arena arena = {0};
    rq_slice bytes;
    uint64_t found;
    rq_err rc = rq_vfs_cas_read(rq_sim_env(sim)->vfs, "m", &arena, &bytes, &found, why);
    rq_arena_clear(&arena);
    return rc;
}

static void put(rq_sim *sim, const char *text, uint64_t expected)
{
    uint64_t generation;
    assert_int_equal(rq_vfs_cas(rq_sim_env(sim)->vfs, "m", expected, rq_slice_cstr(text),
                                &generation, NULL, NULL),
                     RQ_OK);
    assert_int_equal(generation, expected + 1);
}

static void the_newest_generation_counts(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(1, false);
    rq_vfs *v = rq_sim_env(sim)->vfs;
    uint64_t generation;
    assert_int_equal(read_object(sim, NULL), RQ_E_NOT_FOUND);
    put(sim, "", 0);
    expect_object(sim, "", 1);
    put(sim, "second, and longer", 1);
    put(sim, "third", 2);
    expect_object(sim, "third", 3);
    rq_error why = {0};
    assert_int_equal(rq_vfs_cas(v, "m", 2, RQ_SLICE_LIT("x"), &generation, NULL, &why),
                     RQ_E_CONFLICT);
    assert_non_null(strstr(why.message, "generation 3"));
    assert_int_equal(rq_vfs_cas(v, "m", 0, RQ_SLICE_LIT("x"), &generation, NULL, NULL),
                     RQ_E_CONFLICT);
    expect_object(sim, "third", 3);
    assert_int_equal(rq_vfs_cas_remove(v, "m", NULL), RQ_OK);
    assert_int_equal(rq_vfs_cas_remove(v, "m", NULL), RQ_OK);
    assert_int_equal(read_object(sim, NULL), RQ_E_NOT_FOUND);
    put(sim, "again", 0);
    expect_object(sim, "again", 1);
    rq_sim_free(sim);
}

static void every_damaged_byte_is_noticed(void **state)
{
    (void)state;
    rq_sim *sim = new_sim(2, false);
    put(sim, "one", 0);
    put(sim, "two", 1); /* written to m.1 */
    for (uint64_t off = 0; off < 1027; off++) {
        bool matters = off < 32 || off >= 1024;
        assert_true(rq_sim_flip_bit(sim, "m.1", off, off % 8));
        rq_error why = {0};
        rq_err rc = read_object(sim, &why);
        if (matters) {
            /* the older generation must not be returned instead */
            assert_int_equal(rc, RQ_E_CORRUPT);
            assert_non_null(strstr(why.message, "m.1"));
        } else {
            assert_int_equal(rc, RQ_OK);
        }
        assert_true(rq_sim_flip_bit(sim, "m.1", off, off % 8));
    }
    /* Damage of the older generation is harmless: its file is overwritten next. */
    assert_true(rq_sim_flip_bit(sim, "m.0", 1025, 0));
    expect_object(sim, "two", 2);
    put(sim, "three", 2);
    expect_object(sim, "three", 3);
    rq_sim_free(sim);
}

static void a_failed_write_leaves_the_former(void **state)
{
    (void)state;
    bool through = false;
    for (uint64_t k = 1; !through; k++) {
        rq_sim *sim = new_sim(k, false);
        put(sim, "one", 0);
        put(sim, "two", 1);
        uint64_t at = rq_sim_calls(sim) + k;
        rq_sim_fail_at(sim, at, RQ_E_IO);
        uint64_t generation = 2;
        rq_err rc = rq_vfs_cas(rq_sim_env(sim)->vfs, "m", 2, RQ_SLICE_LIT("three"), &generation,
                               NULL, NULL);
        through = rq_sim_calls(sim) < at;
        if (!through) {
            if (rc == RQ_OK)
                expect_object(sim, "three", 3); /* only the write of the mark failed */
            else
                expect_object(sim, "two", 2);
        }
        rq_sim_free(sim);
    }
}

/* The caller of a failed write has removed the files that the object would have named. */
static void a_failed_write_does_not_come_back_with_a_power_cut(void **state)
{
    (void)state;
    bool through = false;
    for (uint64_t k = 1; !through; k++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            rq_sim *sim = new_sim(seed, false);
            put(sim, "one", 0);
            put(sim, "two", 1);
            uint64_t at = rq_sim_calls(sim) + k;
            rq_sim_fail_at(sim, at, RQ_E_IO);
            uint64_t generation = 2;
            rq_err rc = rq_vfs_cas(rq_sim_env(sim)->vfs, "m", 2, RQ_SLICE_LIT("three"), &generation,
                                   NULL, NULL);
            through = rq_sim_calls(sim) < at;
            rq_sim_restart(sim);
            if (rc == RQ_OK)
                expect_object(sim, "three", 3);
            else
                expect_object(sim, "two", 2);
            rq_sim_free(sim);
        }
}

/* A counter stored in the object, with a power cut at any call: it has the acknowledged value, or
 * the next one. */
static bool cut_anywhere(uint64_t seed, bool ignore_sync)
{
    rq_sim *sim = new_sim(seed, ignore_sync);
    rq_vfs *v = rq_sim_env(sim)->vfs;
    uint64_t acknowledged = 0, tried = 0;
    bool good = true;
    for (int round = 0; round < 20 && good; round++) {
        rq_sim_cut_at(sim, rq_sim_calls(sim) + 1 + rq_sim_random(sim) % 40);
        while (!rq_sim_is_cut(sim)) {
            char text[600];
            memset(text, 'x', sizeof text);
            int len = snprintf(text, sizeof text, "%llu", (unsigned long long)acknowledged + 1);
            text[len] = ' ';
            size_t size = (size_t)len + 1 + rq_sim_random(sim) % 500;
            uint64_t generation;
            tried = acknowledged + 1;
            if (rq_vfs_cas(v, "m", acknowledged, rq_slice_of(text, size), &generation, NULL,
                           NULL) == RQ_OK)
                acknowledged = generation;
        }
        if (rq_sim_random(sim) % 3 == 0)
            rq_sim_restart_process(sim); /* a value that was read must stay, although it is not
                                          * synced */
        else
            rq_sim_restart(sim);
        rq_arena arena = {0};
        rq_slice bytes = {0};
        uint64_t generation = 0;
        rq_err rc = rq_vfs_cas_read(v, "m", &arena, &bytes, &generation, NULL);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) good = false;
        if (generation != acknowledged && generation != tried) good = false;
        if (rc == RQ_OK && strtoull((const char *)bytes.ptr, NULL, 10) != generation) good = false;
        rq_arena_clear(&arena);
        acknowledged = generation;
    }
    rq_sim_free(sim);
    return good;
}

static void a_power_cut_leaves_old_or_new(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    for (uint64_t i = 0; i < 500; i++)
        if (!cut_anywhere(seed + i, false)) fail_msg("seed %llu", (unsigned long long)(seed + i));
}

static void without_sync_the_test_above_fails(void **state)
{
    (void)state;
    int caught = 0;
    for (uint64_t i = 0; i < 100; i++)
        caught += !cut_anywhere(i, true);
    assert_true(caught > 50);
}

/* A removed object never comes back as an older generation of itself. */
static void a_power_cut_while_removing_leaves_all_or_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        rq_sim *sim = new_sim(seed, false);
        rq_vfs *v = rq_sim_env(sim)->vfs;
        put(sim, "one", 0);
        put(sim, "two", 1);
        rq_sim_cut_at(sim, rq_sim_calls(sim) + 1 + seed % 10);
        rq_err removed = rq_vfs_cas_remove(v, "m", NULL);
        rq_sim_restart(sim);
        rq_err rc = read_object(sim, NULL);
        if (removed == RQ_OK) assert_int_equal(rc, RQ_E_NOT_FOUND);
        if (rc == RQ_OK) expect_object(sim, "two", 2);
        rq_sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_generation_counts),
        cmocka_unit_test(every_damaged_byte_is_noticed),
        cmocka_unit_test(a_failed_write_leaves_the_former),
        cmocka_unit_test(a_failed_write_does_not_come_back_with_a_power_cut),
        cmocka_unit_test(a_power_cut_leaves_old_or_new),
        cmocka_unit_test(without_sync_the_test_above_fails),
        cmocka_unit_test(a_power_cut_while_removing_leaves_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
