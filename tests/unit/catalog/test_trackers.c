/* SPDX-License-Identifier: Apache-2.0 */
/* Store-file trackers: allowed and refused changes of the tracker, and that rows stay. */
#include "world.h"

#include "base/random.h"
#include "region/tracking.h"

#include <stdio.h>

#define IMPL " @hbase.store.file-tracker.impl="
#define FROM " @hbase.store.file-tracker.migration.src.impl="
#define TO " @hbase.store.file-tracker.migration.dst.impl="
#define F_OF_T " for family f of table t"

static world *setup(void)
{
    world *w = calloc(1, sizeof *w);
    world_init(w, unit_seed(), NULL);
    OK(world_open(w));
    return w;
}

static void teardown(world *w)
{
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
    world_clear(w);
    free(w);
}

/* The tracker of the table, or of a family: "FILE"; "DEFAULT>FILE" during a migration. */
static void expect(world *w, const char *family, const char *text)
{
    char said[64];
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_table_schema *s = rq_catalog_table_find(w->catalog, RQ_SLICE_LIT("t"))->schema;
    rq_tracking t =
        rq_tracking_of(s, family == NULL ? NULL : rq_table_schema_family(s, rq_slice_cstr(family)));
    rq_epoch_unpin(w->env->epoch, &m);
    if (t.impl == RQ_TRACKER_MIGRATION)
        snprintf(said, sizeof said, "%s>%s", rq_tracker_name(t.from), rq_tracker_name(t.to));
    else
        snprintf(said, sizeof said, "%s%s", rq_tracker_name(t.impl),
                 t.from == RQ_TRACKER_NONE && t.to == RQ_TRACKER_NONE ? "" : " and more");
    assert_string_equal(said, text);
}

static void an_alter_goes_by_migration_as_in_hbase(void **state)
{
    (void)state;
    world *w = setup();
    REFUSED(world_create(w, "t", "f" IMPL "MIGRATION", NULL), RQ_E_DO_NOT_RETRY,
            "Should not use MIGRATION as store file tracker for new family f of table t");
    OK(world_create(w, "t", "f", "m"));
    OK(world_put(w, "t", "a", "f"));
    REFUSED(world_modify(w, "t", "f" IMPL "FILE"), RQ_E_DO_NOT_RETRY,
            "Should change to MIGRATION first when migrating from DEFAULT" F_OF_T);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "FILE" TO "DEFAULT"), RQ_E_DO_NOT_RETRY,
            "Should use src tracker DEFAULT first but got FILE when migrating from DEFAULT" F_OF_T);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "DEFAULT" TO "DEFAULT"),
            RQ_E_DO_NOT_RETRY, "The src tracker and dst tracker are both DEFAULT" F_OF_T);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "DEFAULT"), RQ_E_DO_NOT_RETRY,
            "config hbase.store.file-tracker.migration.dst.impl is not set");
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "DEFAULT" TO "MIGRATION"),
            RQ_E_DO_NOT_RETRY,
            "Should not specify hbase.store.file-tracker.migration.dst.impl as MIGRATION because "
            "it can not be nested");
    OK(world_modify(w, "t", "f" IMPL "migration" FROM "DEFAULT" TO "FILE"));
    expect(w, "f", "DEFAULT>FILE");
    REFUSED(world_modify(w, "t", "f" IMPL "DEFAULT"), RQ_E_DO_NOT_RETRY,
            "Should migrate tracker to FILE but got DEFAULT" F_OF_T);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "FILE" TO "FILE"), RQ_E_DO_NOT_RETRY,
            "The src tracker has been changed from DEFAULT to FILE" F_OF_T);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "DEFAULT" TO "DEFAULT"),
            RQ_E_DO_NOT_RETRY, "The dst tracker has been changed from FILE to DEFAULT" F_OF_T);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    REFUSED(world_modify(w, "t", "f" IMPL "FILE"), RQ_E_TABLE_NOT_ENABLED,
            "Should not change store file tracker implementation from MIGRATION while table t is "
            "disabled");
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_modify(w, "t", "f" IMPL "file"));
    expect(w, "f", "FILE");
    OK(world_modify(w, "t", "f:VERSIONS=7" IMPL "FILE"));
    OK(world_get(w, "t", "a", "f"));
    teardown(w);
}

/* The texts of HBase 2.6.1. */
static void an_unknown_name_is_a_class_that_is_not_found(void **state)
{
    (void)state;
    static const char not_found[] = "java.lang.RuntimeException: java.lang.RuntimeException: "
                                    "java.lang.ClassNotFoundException: Class my.Tracker not found";
    world *w = setup();
    REFUSED(world_create(w, "t", "f" IMPL "my.Tracker", NULL), RQ_E_DO_NOT_RETRY, not_found);
    OK(world_create(w, "t", "f" IMPL, NULL)); /* an empty name counts as none: DEFAULT */
    expect(w, NULL, "DEFAULT");
    REFUSED(world_modify(w, "t", "f" IMPL "my.Tracker"), RQ_E_DO_NOT_RETRY, not_found);
    REFUSED(world_modify(w, "t", "f" IMPL "MIGRATION" FROM "my.Tracker" TO "FILE"),
            RQ_E_DO_NOT_RETRY,
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: my.Tracker");
    /* a FROM tracker that is not used is not checked */
    OK(world_modify(w, "t", "f" IMPL "DEFAULT" FROM "my.Tracker"));
    expect(w, NULL, "DEFAULT and more");
    teardown(w);
}

static void one_call_changes_a_table_or_a_family(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f g", "m"));
    OK(world_put(w, "t", "a", "f"));
    OK(world_tracker(w, "t", NULL, "FILE"));
    expect(w, NULL, "FILE");
    OK(world_tracker(w, "t", "g", "FILE")); /* the table's tracker may also be set for the family */
    OK(world_tracker(w, "t", "f", "DEFAULT"));
    expect(w, "f", "DEFAULT");
    expect(w, "g", "FILE");
    OK(world_tracker(w, "t", "f", "FILE"));
    OK(world_modify(w, "t", "f g" IMPL "MIGRATION" FROM "FILE" TO "DEFAULT"));
    OK(world_tracker(w, "t", NULL, "FILE")); /* cancels the migration */
    expect(w, NULL, "FILE");
    OK(world_modify(w, "t", "f g" IMPL "MIGRATION" FROM "FILE" TO "DEFAULT"));
    OK(world_tracker(w, "t", NULL, "DEFAULT")); /* completes the migration */
    expect(w, NULL, "DEFAULT");
    REFUSED(world_tracker(w, "t", "g", NULL), RQ_E_DO_NOT_RETRY,
            "java.lang.ClassNotFoundException: ");
    REFUSED(world_tracker(w, "t", NULL, "migration"), RQ_E_DO_NOT_RETRY,
            "Do not need to transfer to migration");
    REFUSED(world_tracker(w, "t", NULL, "my.Tracker"), RQ_E_DO_NOT_RETRY,
            "java.lang.ClassNotFoundException: my.Tracker");
    REFUSED(world_tracker(w, "u", NULL, "FILE"), RQ_E_TABLE_NOT_FOUND, "u");
    REFUSED(world_tracker(w, "t", "x", "FILE"), RQ_E_NO_SUCH_FAMILY,
            "x does not exist for table t");
    REFUSED(world_tracker(w, "t", "", "FILE"), RQ_E_NO_SUCH_FAMILY, " does not exist for table t");
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    REFUSED(world_tracker(w, "t", NULL, "FILE"), RQ_E_TABLE_NOT_ENABLED, "t");
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "a", "f"));
    teardown(w);
}

/* Random changes of trackers between writes, splits, stops and crashes: all rows stay. */
static void no_change_of_tracker_loses_a_row(void **state)
{
    (void)state;
    static const char *const ways[] = {"FILE", "DEFAULT"};
    world *w = setup();
    rq_random rng;
    rq_random_seed(&rng, unit_seed());
    OK(world_create(w, "t", "f g", "m"));
    int rows = 0;
    for (int step = 0; step < 60; step++) {
        char row[16];
        switch (rq_random_below(&rng, 6)) {
        case 0:
            OK(world_tracker(w, "t", NULL, ways[rq_random_below(&rng, 2)]));
            break;
        case 1:
            OK(world_tracker(w, "t", "f", ways[rq_random_below(&rng, 2)]));
            break;
        case 2:
            OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
            break;
        case 3:
            OK(world_close(w, rq_random_below(&rng, 2) == 0));
            OK(world_open(w));
            break;
        default:
            snprintf(row, sizeof row, "%c%03d", step % 2 == 0 ? 'a' : 'x', rows);
            OK(world_put(w, "t", row, rows++ % 2 == 0 ? "f" : "g"));
        }
        char *there = world_rows(w, "t");
        int count = 0;
        for (const char *c = there; *c != '\0'; c++)
            count += *c == ' ';
        free(there);
        assert_int_equal(count, rows);
    }
    teardown(w);
}

/* A region whose row in hbase:meta was lost while the server was killed: its manifest names files
 * that are not in its file list, because only a clean close writes the list. */
static void a_filled_hole_keeps_the_files_of_its_manifest(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f" IMPL "FILE", NULL));
    OK(world_put(w, "t", "a", "f"));
    OK(world_close(w, true));
    OK(world_open(w));
    OK(world_put(w, "t", "b", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    OK(world_forget(w, "t", "a"));
    OK(world_close(w, false));
    OK(world_open(w));
    OK(world_table(w, RQ_DDL_FILL_HOLES, "t"));
    assert_true(world_settle(w));
    OK(world_get(w, "t", "a", "f"));
    OK(world_get(w, "t", "b", "f"));
    teardown(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alter_goes_by_migration_as_in_hbase),
        cmocka_unit_test(an_unknown_name_is_a_class_that_is_not_found),
        cmocka_unit_test(one_call_changes_a_table_or_a_family),
        cmocka_unit_test(no_change_of_tracker_loses_a_row),
        cmocka_unit_test(a_filled_hole_keeps_the_files_of_its_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
