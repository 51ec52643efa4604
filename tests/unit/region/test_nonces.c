/* SPDX-License-Identifier: Apache-2.0 */
/* Nonces: number, lifetime and memory; their files; and the effect of crashes, clock changes,
 * splits and damage. */
#include "fixture.h"
#include "region/nonce_files.h"
#include "vfs/sim.h"
#include "vfs/vfs.h"

#define SECOND ((uint64_t)1000 * 1000 * 1000)
#define MINUTE (60 * SECOND)
#define LIFE_MS ((uint64_t)30 * 60 * 1000)
#define YEAR_MS ((int64_t)365 * 24 * 3600 * 1000)

static rq_sim *new_sim(void)
{
    rq_sim *sim;
    assert_ok(rq_sim_new(1, NULL, &sim));
    return sim;
}

static rq__nonces *new_table(rq_sim *sim, size_t count_max)
{
    rq__nonces *n;
    assert_ok(rq__nonces_new(rq_sim_env(sim)->executor, count_max, LIFE_MS, &n));
    return n;
}

static rq__nonces_stats stats_of(rq__nonces *n)
{
    rq__nonces_stats s;
    rq__nonces_get_stats(n, &s);
    return s;
}

/* --- the table of nonces ---------------------------------------------------------------------- */

static void nonces_are_found_until_they_expire(void **state)
{
    (void)state;
    rq_sim *sim = new_sim();
    rq__nonces *n = new_table(sim, 1000000);
    rq__nonce_id id;
    for (uint64_t i = 1; i <= 5000; i++) {
        assert_ok(rq__nonces_add(n, i % 7, i, i + 10, &id));
        rq_sim_advance(sim, SECOND / 2); /* the first nonces are 2,500 s old at the end */
    }
    for (uint64_t i = 1; i <= 5000; i++) {
        uint64_t age_ms = 500 * (5000 - i + 1);
        bool near = age_ms > LIFE_MS - 1000 && age_ms < LIFE_MS + 1000;
        uint64_t want = age_ms > LIFE_MS ? 0 : i + 10;
        if (!near) assert_int_equal(rq__nonces_find(n, i % 7, i), want);
        assert_int_equal(rq__nonces_find(n, i % 7 + 1, i), 0);
    }
    rq_sim_advance(sim, 31 * MINUTE);
    for (int i = 0; i < 10; i++)
        rq__nonces_expire(n);
    assert_int_equal(stats_of(n).count, 0);
    assert_true(stats_of(n).bytes < 8192);
    rq__nonces_free(n);
    rq_sim_free(sim);
}

/* One million nonces are kept in at most 40 bytes each, however many follow. */
static void a_million_are_kept_and_the_oldest_go_first(void **state)
{
    (void)state;
    const uint64_t count = 1000000;
    rq_sim *sim = new_sim();
    rq__nonces *n = new_table(sim, count);
    rq__nonce_list list = {0};
    for (uint64_t i = 1; i <= count; i++) {
        rq__nonce_id id;
        assert_ok(rq__nonce_list_reserve(&list));
        assert_ok(rq__nonces_add(n, 0x1234567890abcdef, i << 20, i, &id));
        rq__nonce_list_add(&list, id);
        if (i % 5000 == 0) rq_sim_advance(sim, SECOND);
        if (i != 1000 && i != 30000 && i != 362500 && i != count) continue;
        uint64_t bytes = stats_of(n).bytes + list.room * sizeof *list.ids;
        print_message("%llu nonces in %llu bytes, %.1f each\n", (unsigned long long)i,
                      (unsigned long long)bytes, (double)bytes / (double)i);
        if (i >= 30000) assert_true(bytes <= 40 * i);
    }
    assert_int_equal(stats_of(n).dropped, 0);
    for (uint64_t i = 1; i <= count; i++)
        if (rq__nonces_find(n, 0x1234567890abcdef, i << 20) != i) fail_msg("%d", (int)i);
    for (uint64_t i = count + 1; i <= 2 * count; i++) {
        rq__nonce_id id;
        assert_ok(rq__nonces_add(n, 0x1234567890abcdef, i << 20, i, &id));
    }
    rq__nonces_stats s = stats_of(n);
    assert_true(s.count >= count && s.count < count + count / 16);
    assert_int_equal(s.count + s.dropped, 2 * count);
    assert_true(s.bytes <= 40 * s.count);
    for (uint64_t i = count + 1; i <= 2 * count; i++) /* the younger million is complete */
        if (rq__nonces_find(n, 0x1234567890abcdef, i << 20) != i) fail_msg("%d", (int)i);
    for (uint64_t i = 1; i <= count * 9 / 10; i++)
        if (rq__nonces_find(n, 0x1234567890abcdef, i << 20) != 0) fail_msg("%d", (int)i);
    assert_true(rq__nonces_useless_before_ns(n) > 0);
    rq__nonce_list_clear(&list);
    rq__nonces_free(n);
    rq_sim_free(sim);
}

static void unknown_nonces_are_not_found(void **state)
{
    (void)state;
    rq_sim *sim = new_sim();
    rq__nonces *n = new_table(sim, 100);
    rq__nonce_id a;
    rq__nonce_id b;
    rq__nonce got;
    assert_ok(rq__nonces_add(n, 1, 1, 5, &a));
    for (uint64_t i = 2; i < 100; i++)
        assert_ok(rq__nonces_add(n, 1, i, i, &b));
    rq__nonces_forget(n, a);
    assert_int_equal(rq__nonces_find(n, 1, 1), 0);
    assert_false(rq__nonces_get(n, a, &got));
    rq__nonces_forget(n, a);
    for (int i = 0; i < 1000; i++) { /* an op that fails repeatedly */
        assert_ok(rq__nonces_add(n, 1, 1, 7, &b));
        assert_true(rq__nonces_get(n, b, &got));
        assert_int_equal(got.seqid, 7);
        rq__nonces_forget(n, b);
    }
    assert_int_equal(stats_of(n).count, 98);
    assert_ok(rq__nonces_add(n, 1, 1, 9, &b));
    assert_int_equal(rq__nonces_find(n, 1, 1), 9);
    assert_ok(rq__nonces_add(n, 1, 1, 10, &b)); /* the first entry is kept */
    assert_int_equal(rq__nonces_find(n, 1, 1), 9);
    rq__nonces_free(n);
    rq_sim_free(sim);
}

static void older_ones_go_before_and_expire_first(void **state)
{
    (void)state;
    rq_sim *sim = new_sim();
    rq__nonces *n = new_table(sim, 1000000);
    rq__nonce_id id;
    assert_ok(rq__nonces_add(n, 1, 1000000, 1, &id));
    for (uint64_t i = 20000; i > 0; i--) { /* between 0 and 40 minutes old */
        rq__nonce old = {.group = 1, .nonce = i, .seqid = i, .age_ms = (20000 - i) * 120};
        assert_ok(rq__nonces_add_old(n, &old));
    }
    assert_int_equal(rq__nonces_find(n, 1, 20000), 20000);
    assert_int_equal(rq__nonces_find(n, 1, 6000), 6000);
    assert_int_equal(rq__nonces_find(n, 1, 4000), 0);
    rq_sim_advance(sim, 10 * MINUTE);
    assert_int_equal(rq__nonces_find(n, 1, 12000), 12000);
    assert_int_equal(rq__nonces_find(n, 1, 8000), 0);
    for (int i = 0; i < 100; i++)
        rq__nonces_expire(n);
    assert_in_range(stats_of(n).count, 9900, 10100);
    assert_int_equal(rq__nonces_find(n, 1, 1000000), 1);
    rq__nonces_free(n);
    rq_sim_free(sim);
}

/* --- their files ------------------------------------------------------------------------------ */

typedef struct world {
    rq_sim *sim;
    fixture f;
} world;

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    w->sim = new_sim();
    fixture_open(&w->f, rq_sim_env(w->sim), NULL, 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    fixture_close(&w->f);
    rq_sim_free(w->sim);
    free(w);
    return 0;
}

static void flush(fixture *f)
{
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

/* Simulates kill -9 and a restart. */
static void kill_and_start(world *w)
{
    fixture_stop(&w->f, false);
    rq_sim_restart_process(w->sim);
    fixture_start(&w->f);
}

static const char *folder(world *w)
{
    return rq_arena_printf(&w->f.arena, RQ__NONCE_DIR "/%s", w->f.info.encoded);
}

/* The paths and the number of the nonces' files. */
static size_t files_of(world *w, rq_dir_entry **ret)
{
    rq_dir_entry *own;
    size_t count;
    assert_ok(rq_vfs_list_if_any(w->f.env->vfs, folder(w), &w->f.arena, ret == NULL ? &own : ret,
                                 &count, NULL));
    return count;
}

static void only_uptime_counts_whatever_the_clock_says(void **state)
{
    world *w = *state;
    static const int64_t jumps[] = {YEAR_MS, -2 * YEAR_MS, YEAR_MS / 365, -YEAR_MS};
    int64_t v = 0;
    assert_ok(increment(&w->f, "r", "a", "n", 5, 77, NULL));
    flush(&w->f);
    assert_ok(increment(&w->f, "r", "a", "n", 1, 78, NULL)); /* only in the log */
    for (size_t i = 0; i < RQ_ARRAY_LEN(jumps); i++) {
        rq_sim_set_clock(w->sim, jumps[i]);
        assert_ok(increment(&w->f, "r", "a", "n", 5, 77, &v));
        assert_ok(increment(&w->f, "r", "a", "n", 1, 78, &v));
        rq_sim_set_clock(w->sim, -jumps[i] / 2);
        kill_and_start(w);
        assert_ok(increment(&w->f, "r", "a", "n", 5, 77, &v));
        assert_ok(increment(&w->f, "r", "a", "n", 1, 78, &v));
        assert_int_equal(get_long(&w->f, "r", "a", "n"), 6);
    }
    flush(&w->f);
    kill_and_start(w);
    rq_sim_set_clock(w->sim, -5 * YEAR_MS);
    rq_sim_advance(w->sim, 31 * MINUTE); /* nonces are not kept forever */
    assert_ok(increment(&w->f, "r", "a", "n", 5, 77, &v));
    assert_ok(increment(&w->f, "r", "a", "n", 1, 78, &v));
    assert_int_equal(get_long(&w->f, "r", "a", "n"), 12);
}

static void nonce_files_stay_few_and_are_removed_when_all_expired(void **state)
{
    world *w = *state;
    for (uint64_t i = 1; i <= 300; i++) {
        assert_ok(increment(&w->f, "r", "a", "n", 1, i, NULL));
        if (i % 10 == 0) assert_ok(put(&w->f, "p", "a", "q", 1, "no nonce"));
        flush(&w->f);
        assert_true(files_of(w, NULL) <= 12);
        if (i % 64 == 0) kill_and_start(w);
    }
    for (uint64_t i = 1; i <= 300; i++)
        assert_ok(increment(&w->f, "r", "a", "n", 1, i, NULL));
    assert_int_equal(get_long(&w->f, "r", "a", "n"), 300);
    assert_true(files_of(w, NULL) > 0);
    rq_sim_advance(w->sim, 31 * MINUTE);
    assert_int_equal(files_of(w, NULL), 0);
    rq_engine_stats s;
    rq_engine_get_stats(w->f.engine, &s);
    assert_int_equal(s.nonces, 0);
    assert_ok(put(&w->f, "p", "a", "q", 2, "no nonce"));
    flush(&w->f);
    assert_int_equal(files_of(w, NULL), 0); /* a flush without nonces writes no file */
}

static void damage_costs_the_nonces_alone(void **state)
{
    world *w = *state;
    rq_dir_entry *names;
    int64_t v = 0;
    assert_ok(increment(&w->f, "r", "a", "n", 5, 77, NULL));
    flush(&w->f);
    assert_int_equal(files_of(w, &names), 1);
    const char *path = rq_arena_printf(&w->f.arena, "%s/%s", folder(w), names[0].name);
    fixture_stop(&w->f, true); /* the log no longer has them */
    assert_true(rq_sim_flip_bit(w->sim, path, 40, 3));
    fixture_start(&w->f);
    assert_ok(increment(&w->f, "r", "a", "n", 1, 78, &v));
    assert_int_equal(v, 6);
    assert_ok(increment(&w->f, "r", "a", "n", 5, 77, &v));
    assert_int_equal(v, 11); /* without the damaged nonces the retry is applied again */
    flush(&w->f);
    kill_and_start(w);
    assert_ok(increment(&w->f, "r", "a", "n", 5, 77, &v));
    assert_ok(increment(&w->f, "r", "a", "n", 1, 78, &v));
    assert_int_equal(get_long(&w->f, "r", "a", "n"), 11);
    rq_sim_advance(w->sim, 31 * MINUTE);
    assert_int_equal(files_of(w, NULL), 0);
}

static rq_leftover_fate drop(void *context, const rq_leftover *left)
{
    (void)context;
    (void)left;
    return RQ_LEFTOVER_DROP;
}

/* Splits one region in two, and merges them again. */
static void a_split_and_a_merge_keep_nonces(void **state)
{
    world *w = *state;
    fixture *f = &w->f;
    rq_region_info halves[2];
    rq_region_info whole;
    rq_slice middle = RQ_SLICE_LIT("m");
    rq_slice none = {0};
    rq_region_info parent = f->info;
    assert_ok(increment(f, "b", "a", "n", 5, 77, NULL));
    assert_ok(increment(f, "x", "a", "n", 3, 78, NULL));
    assert_ok(rq_region_close(f->region, false, NULL));
    rq_region_unref(f->region);
    for (int i = 0; i < 2; i++) {
        assert_ok(rq_region_info_make(&f->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      i == 0 ? none : middle, i == 0 ? middle : none, 1700000000001,
                                      0, &halves[i]));
        assert_ok(rq_region_create_from(f->engine, &halves[i], f->schema, &parent, 1, &middle,
                                        i == 1, NULL));
    }
    assert_ok(rq_region_destroy(f->engine, &parent, NULL));
    for (int i = 0; i < 2; i++) {
        f->info = halves[i];
        assert_ok(rq_region_open(f->engine, &f->info, f->schema, &f->region, NULL));
        kill_and_start(w);
        const char *row = i == 0 ? "b" : "x";
        assert_ok(increment(f, row, "a", "n", i == 0 ? 5 : 3, 77 + (uint64_t)i, NULL));
        assert_int_equal(get_long(f, row, "a", "n"), i == 0 ? 5 : 3);
        assert_ok(increment(f, row, "a", "n", 1, 80 + (uint64_t)i, NULL));
        for (int k = 0; rq_region_has_references(f->region) && k < 10; k++) {
            assert_ok(rq_region_compact(f->region, none, true, NULL));
            rq_sim_advance(w->sim, SECOND);
        }
        assert_ok(rq_region_close(f->region, false, NULL));
        rq_region_unref(f->region);
    }
    assert_ok(rq_region_info_make(&f->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"), none, none,
                                  1700000000002, 0, &whole));
    assert_ok(rq_region_create_from(f->engine, &whole, f->schema, halves, 2, NULL, false, NULL));
    f->info = whole;
    rq_error why = {0};
    if (rq_region_open(f->engine, &f->info, f->schema, &f->region, &why) != RQ_OK)
        fail_msg("%s", why.message);
    kill_and_start(w);
    assert_ok(increment(f, "b", "a", "n", 5, 77, NULL));
    assert_ok(increment(f, "b", "a", "n", 1, 80, NULL));
    assert_ok(increment(f, "x", "a", "n", 3, 78, NULL));
    assert_ok(increment(f, "x", "a", "n", 1, 81, NULL));
    assert_int_equal(get_long(f, "b", "a", "n"), 6);
    assert_int_equal(get_long(f, "x", "a", "n"), 4);
    assert_ok(rq_region_close(f->region, true, NULL));
    rq_region_unref(f->region);
    assert_ok(rq_region_destroy(f->engine, &whole, NULL));
    assert_int_equal(files_of(w, NULL), 0);
    f->info = halves[0];
    assert_ok(rq_region_open(f->engine, &f->info, f->schema, &f->region, NULL));
    (void)rq_engine_recovered(f->engine, drop, NULL); /* the other regions are not opened again */
}

static void a_file_is_what_was_written_and_nothing_less(void **state)
{
    (void)state;
    rq_buf entries = {0};
    rq_buf file = {0};
    rq__nonce_entries got;
    rq_error why = {0};
    for (uint64_t i = 1; i <= 3; i++) {
        rq__nonce n = {.group = 7, .nonce = i, .seqid = 10 * i, .age_ms = 100 - i};
        assert_ok(rq__nonce_entry_put(&entries, &n));
    }
    assert_ok(rq__nonce_file_encode(30, 1700000000000, rq_buf_slice(&entries), &file));
    assert_int_equal(file.len, 32 + 3 * 28 + 4);
    assert_ok(rq__nonce_file_decode(rq_buf_slice(&file), &got, &why));
    assert_int_equal(got.count, 3);
    assert_int_equal(got.seqid, 30);
    rq__nonce second = rq__nonce_entry(&got, 1);
    assert_int_equal(second.nonce, 2);
    assert_int_equal(second.seqid, 20);
    assert_int_equal(second.age_ms, 98);
    for (size_t cut = 0; cut < file.len; cut++)
        assert_err(rq__nonce_file_decode(rq_slice_of(file.ptr, cut), &got, &why), RQ_E_CORRUPT);
    for (size_t bit = 0; bit < 8 * file.len; bit++) {
        file.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_err(rq__nonce_file_decode(rq_buf_slice(&file), &got, &why), RQ_E_CORRUPT);
        file.ptr[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    uint64_t seqid;
    unsigned n;
    assert_true(rq__nonce_file_name_parse("000000000000001e.12", &seqid, &n));
    assert_true(seqid == 30 && n == 12);
    static const char *const wrong[] = {"",
                                        "1e.0",
                                        "000000000000001e",
                                        "000000000000001e.",
                                        "000000000000001E.0",
                                        "000000000000001e.0x",
                                        "000000000000001e.1234567890"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++)
        assert_false(rq__nonce_file_name_parse(wrong[i], &seqid, &n));
    rq_buf_clear(&entries);
    rq_buf_clear(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonces_are_found_until_they_expire),
        cmocka_unit_test(a_million_are_kept_and_the_oldest_go_first),
        cmocka_unit_test(unknown_nonces_are_not_found),
        cmocka_unit_test(older_ones_go_before_and_expire_first),
        cmocka_unit_test(a_file_is_what_was_written_and_nothing_less),
        cmocka_unit_test_setup_teardown(only_uptime_counts_whatever_the_clock_says, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nonce_files_stay_few_and_are_removed_when_all_expired,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(damage_costs_the_nonces_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_split_and_a_merge_keep_nonces, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
