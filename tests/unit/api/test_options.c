/* SPDX-License-Identifier: Apache-2.0 */
/* Options of operations: attributes, isolation level, and how files are read. Part of test_api. */
#include "api_rows.h"

/* A table whose family f keeps values of more than 10 bytes in MOB files; flushed. */
static rq_table *make_mob(const char *name, const char *row, const char *value)
{
    rq_property attributes[] = {{"IS_MOB", "true"}, {"MOB_THRESHOLD", "10"}};
    rq_family family = {"f", attributes, 2};
    rq_table_spec spec = {
        .size = sizeof spec, .name = name, .families = &family, .family_count = 1};
    rq_table *t = NULL;
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_open(at.db, name, &t, &why));
    put(t, row, "f", "q", value, 5);
    OK(rq_table_flush(at.db, name, &why));
    return t;
}

static void the_first_is(const rq_row *row, const char *value, bool equal)
{
    assert_non_null(row);
    assert_int_equal(row->count, 1);
    assert_int_equal(is(row->cells[0].value, value), equal);
}

/* With the attribute of HBase's MobUtils a read returns the reference instead of the value. */
static void attributes_reach_the_region(void **state)
{
    (void)state;
    static const char value[] = "a value of more than ten bytes";
    rq_table *t = make_mob("mob", "r", value);
    rq_named_bytes attributes[] = {{"_operation.attributes.id", rq_text("the test")},
                                   {"nobody.knows.this", {NULL, 0}},
                                   {"hbase.mob.scan.raw", rq_bytes_of("\xff", 1)}};
    rq_get_request get = {
        .size = sizeof get, .row = rq_text("r"), .attributes = attributes, .attribute_count = 2};
    rq_scan_request scan = {.size = sizeof scan, .attributes = attributes, .attribute_count = 2};
    for (int raw = 0; raw < 2; raw++) {
        rq_row *row = NULL;
        rq_scanner *s;
        get.attribute_count = scan.attribute_count = raw ? 3 : 2;
        OK(rq_table_get(t, &get, &row, &why));
        the_first_is(row, value, !raw);
        rq_row_free(row);
        OK(rq_table_scan(t, &scan, &s, &why));
        OK(rq_scanner_next(s, &row, &why));
        the_first_is(row, value, !raw);
        rq_row_free(row);
        rq_scanner_close(s);
    }
    finish(t, "mob");
}

static void changes_have_attributes(void **state)
{
    (void)state;
    rq_table *t = make("attributes", "3", NULL, 0);
    rq_named_bytes attributes[] = {{"_operation.attributes.id", rq_text("the test")},
                                   {"none", rq_text("")}};
    rq_edit edit = {.family = rq_text("f"),
                    .qualifier = rq_text("q"),
                    .value = rq_text("v"),
                    .timestamp = 7,
                    .amount = 1};
    rq_change change = {.size = sizeof change,
                        .row = rq_text("r"),
                        .edits = &edit,
                        .edit_count = 1,
                        .attributes = attributes,
                        .attribute_count = 2};
    rq_action actions[] = {{.changes = &change, .change_count = 1}};
    OK(rq_table_change(t, &change, NULL, &why));
    expect_row(t, "r", "f:q@7=v");
    edit.value = rq_text("w");
    OK(rq_table_batch(t, actions, 1, NULL, &why));
    expect_row(t, "r", "f:q@7=w");
    attributes[1].name = "_ttl"; /* ttl_ms is the option for this attribute */
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    assert_non_null(strstr(why.message, "_ttl"));
    attributes[1].name = "";
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    attributes[1].name = NULL;
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    change.attributes = NULL;
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    finish(t, "attributes");
}

/* Written and complete rows are read with every option. */
static void reads_have_options(void **state)
{
    (void)state;
    rq_table *t = make("options", "3", NULL, 0);
    rq_row *row;
    put(t, "r", "f", "q", "v", 7);
    OK(rq_table_flush(at.db, "options", &why));
    put(t, "r", "f", "q", "w", 8);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r"), .reads_uncommitted = true};
    expect_get(t, &get, "f:q@8=w");
    for (int type = RQ_READ_DEFAULT; type <= RQ_READ_PREAD + 1; type++) {
        rq_scan_request scan = {.size = sizeof scan,
                                .reads_uncommitted = type % 2 == 1,
                                .read_type = (rq_read_type)type};
        rq_scanner *s;
        if (type > RQ_READ_PREAD) {
            FAILS(RQ_E_INVALID, rq_table_scan(t, &scan, &s, &why));
            break;
        }
        OK(rq_table_scan(t, &scan, &s, &why));
        OK(rq_scanner_next(s, &row, &why));
        the_first_is(row, "w", true);
        rq_row_free(row);
        OK(rq_scanner_next(s, &row, &why));
        assert_null(row);
        rq_scanner_close(s);
    }
    finish(t, "options");
}

/* The row of a read of one replica, or of any (0). A cluster's replica may not have it yet, or be closed for a moment; any
 * replica answers if the primary is slow. */
static void is_of_replica(const rq_row *row, uint32_t replica, bool is_here)
{
    assert_non_null(row);
    if (replica > 0 || is_here) assert_int_equal(row->is_stale, replica > 0);
    if (row->count > 0 || is_here || !row->is_stale) the_first_is(row, "v", true);
}

static void replicas_are_read(void **state)
{
    (void)state;
    bool is_here = strncmp(at.url, "memory:", 7) == 0 || strncmp(at.url, "file:", 5) == 0;
    rq_property attribute = {"REGION_REPLICATION", "3"};
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "replicas",
                          .families = &family,
                          .family_count = 1,
                          .attributes = &attribute,
                          .attribute_count = 1};
    rq_table *t = NULL;
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_open(at.db, "replicas", &t, &why));
    put(t, "r", "f", "q", "v", 5);
    OK(rq_table_flush(at.db, "replicas", &why));
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    rq_scan_request scan = {.size = sizeof scan};
    for (uint32_t replica = 0; replica < 3; replica++) {
        rq_row *row = NULL;
        rq_scanner *s = NULL;
        get.consistency = scan.consistency = RQ_CONSISTENCY_TIMELINE;
        get.replica = scan.replica = replica;
        OK(rq_table_get(t, &get, &row, &why));
        is_of_replica(row, replica, is_here);
        rq_row_free(row);
        OK(rq_table_scan(t, &scan, &s, &why));
        OK(rq_scanner_next(s, &row, &why));
        if (row != NULL)
            is_of_replica(row, replica, is_here);
        else
            assert_false(is_here); /* a replica without the row */
        rq_row_free(row);
        rq_scanner_close(s);
    }
    rq_action action = {.get = &get};
    FAILS(RQ_E_UNSUPPORTED, rq_table_batch(t, &action, 1, NULL, &why));
    get.replica = 0;
    OK(rq_table_batch(t, &action, 1, NULL, &why));
    rq_row *row = NULL;
    get.consistency = RQ_CONSISTENCY_STRONG;
    OK(rq_table_get(t, &get, &row, &why));
    assert_false(row->is_stale);
    rq_row_free(row);
    get.replica = 1; /* only with RQ_CONSISTENCY_TIMELINE */
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.consistency = (rq_consistency)2;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    scan.consistency = RQ_CONSISTENCY_TIMELINE;
    scan.replica = 65536;
    FAILS(RQ_E_INVALID, rq_table_scan(t, &scan, &(rq_scanner *){NULL}, &why));
    finish(t, "replicas");
}

int run_options(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_reach_the_region),
        cmocka_unit_test(changes_have_attributes),
        cmocka_unit_test(reads_have_options),
        cmocka_unit_test(replicas_are_read),
    };
    return cmocka_run_group_tests_name("options", tests, open_db, close_db);
}
