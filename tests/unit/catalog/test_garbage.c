/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients can write into hbase:meta and hbase:namespace. None of it may stop a start, or cost
 * more than its own row: each case writes its garbage, and then the sound tables are served, over
 * restarts, and changes of the catalog go on.
 *
 * The garbage is written without the checks of a client's write, as a folder may hold it from an
 * older version or from a bulk load; what clients are refused is a test of its own.
 */
#include "world.h"

#include "catalog/meta.h"

#define YEAR_MS (INT64_C(365) * 86400 * 1000)

static void setup(world *w)
{
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR + 1; /* garbage is reported */
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "a=b"), RQ_OK);
    assert_int_equal(world_create(w, "n:t", "f", "m"), RQ_OK);
    assert_int_equal(world_create(w, "u", "f g", NULL), RQ_OK);
    assert_int_equal(world_put(w, "n:t", "a", "f"), RQ_OK);
    assert_int_equal(world_put(w, "u", "a", "f"), RQ_OK);
}

static rq_cell cell_of(const char *row, const char *family, const char *qualifier, uint8_t type,
                       int64_t timestamp, rq_slice value)
{
    return (rq_cell){
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .timestamp = timestamp,
        .type = type,
    };
}

/* A put, or a marker, at a timestamp that nobody's clock shows. */
static void write_at(world *w, const char *row, const char *family, const char *qualifier,
                     uint8_t type, int64_t timestamp, rq_slice value)
{
    rq_cell cell = cell_of(row, family, qualifier, type, timestamp, value);
    rq_err rc =
        world_write(w, "hbase:meta", type == RQ_TYPE_PUT ? RQ_MUTATE_PUT : RQ_MUTATE_DELETE, &cell);
    if (rc != RQ_OK) fail_msg("%s: %s", row, w->why.message);
}

/* The name of the table's region at a row; malloc'ed. */
static char *region_name(world *w, const char *table, const char *row)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    assert_int_equal(
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, NULL), RQ_OK);
    char *name = strndup((const char *)r->info->name.ptr, r->info->name.len);
    rq_epoch_unpin(w->env->epoch, &m);
    return name;
}

static void restart(world *w, bool clean)
{
    (void)world_close(w, clean); /* of regions that nobody knows the log is kept, which it says */
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
    if (!world_settle(w)) fail_msg("a procedure never ends");
}

/* The sound tables are served, and changes go on: of them, and new ones. */
static void expect_service(world *w)
{
    if (world_get(w, "n:t", "a", "f") != RQ_OK) fail_msg("n:t: %s", w->why.message);
    if (world_get(w, "u", "a", "f") != RQ_OK) fail_msg("u: %s", w->why.message);
    OK(world_create(w, "n:new", "f", NULL));
    OK(world_put(w, "n:new", "x", "f"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "n:new"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "n:new"));
    OK(world_family(w, RQ_DDL_MODIFY_FAMILY, "u", "f:VERSIONS=4"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "n:t"));
    uint64_t cleaned;
    OK(rq_catalog_clean_parents(w->catalog, &cleaned, &w->why));
}

static void expect_starts(world *w)
{
    for (int i = 0; i < 3; i++) {
        restart(w, i % 2 == 0);
        expect_service(w);
    }
    (void)world_close(w, true);
    world_clear(w);
}

static void timestamps_near_the_end_of_time(void **state)
{
    (void)state;
    const int64_t times[] = {INT64_MAX - 1, INT64_MAX - 2, INT64_MAX / 2, YEAR_MS * 30000};
    for (size_t i = 0; i < RQ_ARRAY_LEN(times); i++) {
        world w;
        setup(&w);
        char *row = region_name(&w, "n:t", "x");
        write_at(&w, row, "info", "state", RQ_TYPE_PUT, times[i], RQ_SLICE_LIT("junk"));
        write_at(&w, "u", "table", "state", RQ_TYPE_PUT, times[i], rq_slice_of("\x08\x00", 2));
        write_at(&w, "nowhere", "table", "state", RQ_TYPE_PUT, times[i],
                 rq_slice_of("\x08\x00", 2));
        free(row);
        expect_starts(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timestamps_near_the_end_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
