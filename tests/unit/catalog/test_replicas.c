/* SPDX-License-Identifier: Apache-2.0 */
/* Region replicas: further names of the same region in the view and in meta. They follow
 * REGION_REPLICATION, and survive restarts. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#define SUCCEEDS(expr) assert_int_equal(expr, RQ_OK)

/* The name of a replica of the region that holds the row, in `arena`. */
static rq_slice replica_name(world *w, rq_arena *arena, const char *table, const char *row, int id)
{
    const rq_catalog_region *r;
    rq_region_info info;
    SUCCEEDS(rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, &w->why));
    SUCCEEDS(rq_region_info_make(arena, r->info->ns, r->info->qualifier, r->info->start_key,
                                 r->info->end_key, r->info->region_id, id, &info));
    return info.name;
}

/* Replicas 1 to `last` of the row's region are served by the primary; replica last + 1 is
 * unknown. */
static void expect_replicas(world *w, const char *table, const char *row, int last)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_region *primary, *r;
    SUCCEEDS(
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &primary, &w->why));
    assert_non_null(primary->region);
    for (int id = 1; id <= last; id++) {
        SUCCEEDS(rq_host_find(w->host, replica_name(w, &a, table, row, id), &r, &w->why));
        assert_ptr_equal(r->region, primary->region);
        assert_int_equal(r->info->replica_id, id);
        assert_ptr_equal(rq_catalog_region_find(w->catalog, rq_slice_cstr(r->info->encoded)), r);
    }
    w->why = (rq_error){0};
    assert_int_equal(rq_host_find(w->host, replica_name(w, &a, table, row, last + 1), &r, &w->why),
                     RQ_E_NOT_SERVING_REGION);
    rq_epoch_unpin(w->env->epoch, &m);
    rq_arena_clear(&a);
    char *faults = world_check(w); /* meta has as many replicas */
    assert_string_equal(faults, "");
    free(faults);
}

static void a_region_answers_to_the_names_of_its_replicas(void **state)
{
    (void)state;
    world w;
    world_init(&w, 1, NULL);
    SUCCEEDS(world_open(&w));
    SUCCEEDS(world_create(&w, "t", "f @REGION_REPLICATION=3", "m"));
    SUCCEEDS(world_put(&w, "t", "x", "f"));
    expect_replicas(&w, "t", "a", 2);
    expect_replicas(&w, "t", "x", 2);
    SUCCEEDS(world_close(&w, false));
    SUCCEEDS(world_open(&w));
    expect_replicas(&w, "t", "x", 2);
    SUCCEEDS(world_split(&w, "t", "x", "r"));
    SUCCEEDS(world_close(&w, true));
    SUCCEEDS(world_open(&w));
    expect_replicas(&w, "t", "x", 2);
    expect_replicas(&w, "t", "o", 2);
    world_clear(&w);
}

static void replicas_follow_the_descriptor(void **state)
{
    (void)state;
    world w;
    world_init(&w, 2, NULL);
    SUCCEEDS(world_open(&w));
    SUCCEEDS(world_create(&w, "t", "f", "m"));
    expect_replicas(&w, "t", "x", 0);
    SUCCEEDS(world_modify(&w, "t", "f @REGION_REPLICATION=4"));
    expect_replicas(&w, "t", "x", 3);
    SUCCEEDS(world_modify(&w, "t", "f @REGION_REPLICATION=2"));
    expect_replicas(&w, "t", "x", 1);
    SUCCEEDS(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    SUCCEEDS(world_modify(&w, "t", "f @REGION_REPLICATION=3"));
    SUCCEEDS(world_table(&w, RQ_DDL_ENABLE_TABLE, "t"));
    expect_replicas(&w, "t", "x", 2);
    SUCCEEDS(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    SUCCEEDS(world_truncate(&w, "t", true));
    expect_replicas(&w, "t", "x", 2);
    assert_int_equal(world_modify(&w, "t", "f @REGION_REPLICATION=65"), RQ_E_DO_NOT_RETRY);
    SUCCEEDS(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    SUCCEEDS(world_table(&w, RQ_DDL_DELETE_TABLE, "t"));
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    world_clear(&w);
}

/* The states in meta of the regions' second replicas. */
static void expect_states(world *w, const char *expected)
{
    char *states = world_values(w, "hbase:meta", "info", "state_0002");
    assert_string_equal(states, expected);
    free(states);
}

static void replicas_are_closed_with_their_region(void **state)
{
    (void)state;
    world w;
    world_init(&w, 3, NULL);
    SUCCEEDS(world_open(&w));
    SUCCEEDS(world_create(&w, "t", "f @REGION_REPLICATION=3", "m"));
    expect_states(&w, "OPEN OPEN ");
    SUCCEEDS(world_transit(&w, RQ_DDL_UNASSIGN_REGION, "t", "x"));
    expect_states(&w, "OPEN CLOSED ");
    SUCCEEDS(world_transit(&w, RQ_DDL_ASSIGN_REGION, "t", "x"));
    expect_states(&w, "OPEN OPEN ");
    SUCCEEDS(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    expect_states(&w, "CLOSED CLOSED ");
    SUCCEEDS(world_table(&w, RQ_DDL_ENABLE_TABLE, "t"));
    expect_states(&w, "OPEN OPEN ");
    SUCCEEDS(world_split(&w, "t", "x", "r"));
    expect_states(&w, "OPEN CLOSED OPEN OPEN "); /* the parent's row precedes its daughters' */
    world_clear(&w);
}

/* Names as a client computes them. HBASE: RegionInfo.encodeRegionName. */
static void metas_replicas_have_names_of_the_old_form(void **state)
{
    (void)state;
    rq_arena a;
    rq_arena_init(&a);
    rq_region_info info;
    SUCCEEDS(rq_region_info_make(&a, RQ_SLICE_LIT("hbase"), RQ_SLICE_LIT("meta"), (rq_slice){0},
                                 (rq_slice){0}, 1, 1, &info));
    assert_true(rq_slice_eq(info.name, RQ_SLICE_LIT("hbase:meta,,1_0001")));
    assert_string_equal(info.encoded, "534574363");
    rq_arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_answers_to_the_names_of_its_replicas),
        cmocka_unit_test(replicas_follow_the_descriptor),
        cmocka_unit_test(replicas_are_closed_with_their_region),
        cmocka_unit_test(metas_replicas_have_names_of_the_old_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
