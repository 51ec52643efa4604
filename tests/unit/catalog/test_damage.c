/* SPDX-License-Identifier: Apache-2.0 */
/* A start that finds problems: garbage that clients wrote into the system tables, unreadable
 * descriptors, missing rows of meta, failing calls. Intact tables are served, no data is lost, and
 * a problem caused only by a failing call is repaired. */
#include "world.h"

#include "catalog/catalog_priv.h"
#include "catalog/tableinfo.h"

static void setup(world *w)
{
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR + 1; /* the damage is logged as errors */
    assert_int_equal(world_open(w), RQ_OK);
}

static void restart(world *w, bool clean)
{
    if (world_close(w, clean) != RQ_OK && clean) fail_msg("clean stop: %s", w->why.message);
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
    assert_true(world_settle(w));
}

static void junk_in_system_tables_is_passed_over(void **state)
{
    (void)state;
    world w;
    setup(&w);
    const rq_slice junk = RQ_SLICE_LIT("\xff junk"), empty = RQ_SLICE_LIT("");
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "n", "a=b"), RQ_OK);
    assert_int_equal(world_create(&w, "n:t", "f", "m"), RQ_OK);
    assert_int_equal(world_put(&w, "n:t", "a", "f"), RQ_OK);
    char *before = world_describe(&w);
    static const char *const rows[] = {"no table!", "n:u", "..", "x,y,z", "../..:x"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++) {
        assert_int_equal(world_put_cell(&w, "hbase:meta", rows[i], "table", "state", junk), RQ_OK);
        assert_int_equal(world_put_cell(&w, "hbase:meta", rows[i], "info", "regioninfo", junk),
                         RQ_OK);
    }
    assert_int_equal(world_put_cell(&w, "hbase:meta", "none", "info", "regioninfo", empty), RQ_OK);
    /* A sound state (ENABLED) under a name that no table may have. */
    assert_int_equal(
        world_put_cell(&w, "hbase:meta", "a b", "table", "state", rq_slice_of("\x08\x00", 2)),
        RQ_OK);
    assert_int_equal(world_put_cell(&w, "hbase:namespace", "x", "info", "d", junk), RQ_OK);
    for (int i = 0; i < 3; i++) {
        restart(&w, i == 0);
        char *after = world_describe(&w);
        assert_string_equal(before, after);
        assert_int_equal(world_get(&w, "n:t", "a", "f"), RQ_OK);
        free(after);
    }
    free(before);
    world_end(&w);
}

/* A copy of a region's cell in another row does not open the region twice. */
static void a_region_in_the_row_of_another_is_passed_over(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    rq_arena a;
    rq_arena_init(&a);
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_slice info;
    rq_epoch_pin(w.env->epoch, &m);
    assert_int_equal(rq_catalog_locate(w.catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, NULL),
                     RQ_OK);
    assert_int_equal(rq_region_info_serialize(r->info, &a, &info), RQ_OK);
    rq_epoch_unpin(w.env->epoch, &m);
    assert_int_equal(world_put_cell(&w, "hbase:meta", "t,,1.copy.", "info", "regioninfo", info),
                     RQ_OK);
    char *before = world_describe(&w);
    restart(&w, false);
    char *after = world_describe(&w);
    assert_string_equal(before, after);
    free(before);
    free(after);
    rq_arena_clear(&a);
    world_end(&w);
}

/* Records of a region whose row was lost stay until the row is back. */
static void a_lost_row_of_meta_costs_no_records(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    rq_arena a;
    rq_arena_init(&a);
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_slice info;
    rq_epoch_pin(w.env->epoch, &m);
    assert_int_equal(rq_catalog_locate(w.catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, NULL),
                     RQ_OK);
    assert_int_equal(rq_region_info_serialize(r->info, &a, &info), RQ_OK);
    rq_epoch_unpin(w.env->epoch, &m);
    char *row = world_region_name(&w, "t", "a");
    rq_sim_advance(w.sim, 1000000000); /* makes the delete younger than the row */
    assert_int_equal(world_delete(&w, "hbase:meta", row, "info"), RQ_OK);
    restart(&w, false);
    assert_int_not_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    assert_int_not_equal(world_close(&w, true), RQ_OK); /* fails because the log is kept */
    assert_int_equal(world_open(&w), RQ_OK);
    restart(&w, false);
    rq_sim_advance(w.sim, 1000000000);
    assert_int_equal(world_put_cell(&w, "hbase:meta", row, "info", "regioninfo", info), RQ_OK);
    restart(&w, false);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    free(row);
    rq_arena_clear(&a);
    world_end(&w);
}

/* The path of the table's descriptor. */
static char *descriptor_path(world *w, rq_arena *a, const char *table)
{
    rq_dir_entry *entries;
    size_t count;
    char *dir = rq_arena_printf(a, "data/default/%s/.tabledesc", table);
    assert_int_equal(rq_vfs_list(w->env->vfs, dir, a, &entries, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++)
        if (strncmp(entries[i].name, ".tableinfo.", 11) == 0)
            return rq_arena_printf(a, "%s/%s", dir, entries[i].name);
    fail_msg("no descriptor of %s", table);
    return NULL;
}

static void a_damaged_descriptor_closes_its_table_alone(void **state)
{
    (void)state;
    world w;
    setup(&w);
    rq_arena a;
    rq_arena_init(&a);
    assert_int_equal(world_create(&w, "t", "f", "m"), RQ_OK);
    assert_int_equal(world_create(&w, "u", "f", NULL), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_put(&w, "u", "a", "f"), RQ_OK);
    char *path = descriptor_path(&w, &a, "t");
    (void)world_close(&w, false);
    assert_true(rq_sim_flip_bit(w.sim, path, 0, 3));
    assert_int_equal(world_open(&w), RQ_OK);
    assert_true(world_settle(&w));
    assert_int_equal(world_get(&w, "u", "a", "f"), RQ_OK);
    assert_int_not_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_E_TABLE_EXISTS);
    assert_int_not_equal(world_close(&w, true), RQ_OK); /* fails because the log is kept */
    assert_true(rq_sim_flip_bit(w.sim, path, 0, 3));    /* flips the bit back */
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    rq_arena_clear(&a);
    world_end(&w);
}

/* A wrong descriptor lacks a family. The region was never flushed: no manifest names the family,
 * only a folder and cells in the log exist. */
static void a_family_lost_from_the_descriptor_keeps_its_cells(void **state)
{
    (void)state;
    world w;
    setup(&w);
    rq_arena a;
    rq_arena_init(&a);
    rq_table_schema *lacks = NULL, *whole = NULL;
    assert_int_equal(rq_table_schema_parse(world_schema(&a, "t", "f"), &lacks, NULL), RQ_OK);
    assert_int_equal(rq_table_schema_parse(world_schema(&a, "t", "f g"), &whole, NULL), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f g", NULL), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "g"), RQ_OK);
    (void)world_close(&w, false);
    assert_int_equal(rq__tableinfo_write(w.env->vfs, lacks, NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_not_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    (void)world_close(&w, false);
    assert_int_equal(rq__tableinfo_write(w.env->vfs, whole, NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_get(&w, "t", "a", "g"), RQ_OK);
    rq_table_schema_unref(lacks);
    rq_table_schema_unref(whole);
    rq_arena_clear(&a);
    world_end(&w);
}

/* One call of a start fails. The start may be refused; a region that could not be opened is opened
 * later automatically; a table whose descriptor could not be read is served after the next
 * start. */
static void a_call_that_fails_at_start_is_made_good(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "n", "a=b"), RQ_OK);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "empty", "c=d"), RQ_OK);
    assert_int_equal(world_create(&w, "n:t", "f g", "c m"), RQ_OK);
    assert_int_equal(world_create(&w, "u", "f", NULL), RQ_OK);
    assert_int_equal(world_put(&w, "u", "a", "f"), RQ_OK);
    assert_int_equal(world_put(&w, "n:t", "d", "g"), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "u"), RQ_OK);
    char *before = world_describe(&w);
    uint64_t refused = 0, restarted = 0, k = 0;
    for (bool reached = true; reached;) {
        k++;
        (void)world_close(&w, k % 2 == 0);
        uint64_t first = rq_sim_calls(w.sim);
        rq_sim_fail_at(w.sim, first + k, RQ_E_IO);
        rq_err rc = world_open(&w);
        if (rc != RQ_OK) {
            refused++;
            if ((rc = world_open(&w)) != RQ_OK)
                fail_msg("call %llu failed, and the start after it: %s", (unsigned long long)k,
                         w.why.message);
        }
        reached = rq_sim_calls(w.sim) >= first + k;
        while (rq_sim_calls(w.sim) < first + k)
            rc = rq_vfs_sync_dir(w.env->vfs, "data", NULL);
        if (!world_settle(&w)) fail_msg("call %llu: it never settles", (unsigned long long)k);
        char *after = world_describe(&w);
        if (strcmp(before, after) != 0) {
            free(after);
            restarted++;
            restart(&w, k % 3 == 0);
            after = world_describe(&w);
        }
        if (strcmp(before, after) != 0) {
            fprintf(stderr, "%s\n%s", before, after);
            fail_msg("call %llu failed at start", (unsigned long long)k);
        }
        assert_int_equal(world_get(&w, "n:t", "d", "g"), RQ_OK);
        char *faults = world_check(&w);
        assert_string_equal(faults, "");
        free(faults);
        free(after);
    }
    printf("%llu calls, %llu starts refused, %llu served less\n", (unsigned long long)k,
           (unsigned long long)refused, (unsigned long long)restarted);
    /* Less is served only if a call fails that lists, opens or reads the descriptors of two tables
     * and hbase:namespace; these calls have other numbers after a clean stop than after a crash. */
    assert_true(restarted <= 18);
    assert_true(refused + restarted < k);
    free(before);
    world_end(&w);
}

/* --- a table that meta has lost, and a new one of its name that fails ------------------------- */

static rq_err refuse_first_step(void *ctx, const rq__proc *p, rq_error *why)
{
    (void)ctx;
    return p->step == 1 ? rq_fail(why, RQ_E_DO_NOT_RETRY, "injected") : RQ_OK;
}

static size_t count_files(world *w, const char *dir)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    size_t files = 0;
    assert_int_equal(rq_vfs_list_if_any(w->env->vfs, dir, &a, &entries, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        const char *path = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        if (entries[i].name[0] == '.') continue;
        files += entries[i].is_dir ? count_files(w, path) : 1;
    }
    rq_arena_clear(&a);
    return files;
}

static void lose_table(world *w)
{
    assert_int_equal(world_forget(w, "t", "a"), RQ_OK);
    assert_int_equal(world_delete(w, "hbase:meta", "t", "table"), RQ_OK);
    restart(w, true);
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_TABLE_NOT_FOUND);
}

static void expect_files(world *w)
{
    assert_int_equal(count_files(w, "data/default/t"), 1);
    assert_int_equal(count_files(w, "mobdir/data/default/t"), 1);
}

static void a_failed_create_leaves_the_files_of_a_lost_table(void **state)
{
    (void)state;
    world w;
    setup(&w);
    static const char mob[] = "f:IS_MOB=true,MOB_THRESHOLD=0";
    static const char *const tables[] = {"t", "u"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(tables); i++) {
        assert_int_equal(world_create(&w, tables[i], mob, NULL), RQ_OK);
        assert_int_equal(world_put(&w, tables[i], "a", "f"), RQ_OK);
    }
    assert_int_equal(world_snapshot(&w, "s", "u", true), RQ_OK);
    lose_table(&w);
    expect_files(&w);
    w.catalog->procedures.before_step = refuse_first_step;
    assert_int_equal(world_create(&w, "t", mob, NULL), RQ_E_DO_NOT_RETRY);
    expect_files(&w);
    assert_int_equal(world_clone(&w, "s", "t"), RQ_E_DO_NOT_RETRY);
    expect_files(&w);
    assert_int_equal(world_clone(&w, "s", "v"), RQ_E_DO_NOT_RETRY);
    assert_int_equal(count_files(&w, "mobdir/data/default/v"), 0);
    w.catalog->procedures.before_step = NULL;
    assert_int_equal(world_clone(&w, "s", "v"), RQ_OK);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(junk_in_system_tables_is_passed_over),
        cmocka_unit_test(a_region_in_the_row_of_another_is_passed_over),
        cmocka_unit_test(a_lost_row_of_meta_costs_no_records),
        cmocka_unit_test(a_damaged_descriptor_closes_its_table_alone),
        cmocka_unit_test(a_family_lost_from_the_descriptor_keeps_its_cells),
        cmocka_unit_test(a_failed_create_leaves_the_files_of_a_lost_table),
        cmocka_unit_test(a_call_that_fails_at_start_is_made_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
