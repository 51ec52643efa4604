/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of table definitions, regions and the cluster, which behave alike on every back end:
 * test_cluster URL … */
#include "api_test.h"

static const char *url;
static bool no_threads; /* field of rq_connect_options */
static rq_db *db;
static rq_table *table;
static rq_failure why = {.size = sizeof(rq_failure)};

static int begin(void **state)
{
    rq_bytes split = rq_text("m");
    rq_property versions[] = {{"VERSIONS", "3"}, {"TTL", "86400"}};
    rq_family families[] = {{"f", versions, 2}, {"g", NULL, 0}};
    rq_property attributes[] = {{"MAX_FILESIZE", "1073741824"}};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "cluster",
                          .families = families,
                          .family_count = 2,
                          .attributes = attributes,
                          .attribute_count = 1,
                          .split_keys = &split,
                          .split_key_count = 1};
    (void)state;
    rq_connect_options o = {.size = sizeof o, .no_threads = no_threads};
    OK(rq_connect(url, &o, &db, &why));
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, "cluster", &table, &why));
    return 0;
}

static int end(void **state)
{
    (void)state;
    rq_table_close(table);
    OK(rq_table_disable(db, "cluster", &why));
    OK(rq_table_drop(db, "cluster", &why));
    OK(rq_disconnect(db, &why));
    return 0;
}

static const char *attribute(const rq_property *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].value;
    return "(none)";
}

static void a_definition_changes(void **state)
{
    rq_property more[] = {{"VERSIONS", "7"}},
                attributes[] = {{"MAX_FILESIZE", NULL}, {"owner", "ann"}};
    rq_family families[] = {{"f", more, 1}, {"h", NULL, 0}};
    const char *dropped[] = {"g"};
    rq_alteration a = {.size = sizeof a,
                       .name = "cluster",
                       .families = families,
                       .family_count = 2,
                       .dropped_families = dropped,
                       .dropped_family_count = 1,
                       .attributes = attributes,
                       .attribute_count = 2};
    rq_table_info *info;
    (void)state;
    OK(rq_put_value(table, rq_text("r"), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    OK(rq_table_alter(db, &a, &why));
    OK(rq_table_describe(db, "cluster", &info, &why));
    assert_int_equal(info->family_count, 2);
    assert_string_equal(info->families[0].name, "f");
    assert_string_equal(info->families[1].name, "h");
    const rq_family *f = &info->families[0];
    assert_string_equal(attribute(f->attributes, f->attribute_count, "VERSIONS"), "7");
    assert_string_equal(attribute(f->attributes, f->attribute_count, "TTL"), "86400");
    assert_string_equal(attribute(info->attributes, info->attribute_count, "MAX_FILESIZE"),
                        "(none)");
    assert_string_equal(attribute(info->attributes, info->attribute_count, "owner"), "ann");
    rq_table_info_free(info);
    OK(rq_put_value(table, rq_text("r"), rq_text("h"), rq_text("q"), rq_text("v"), &why));
    FAILS(RQ_E_NO_SUCH_FAMILY,
          rq_put_value(table, rq_text("r"), rq_text("g"), rq_text("q"), rq_text("v"), &why));
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_alter(db, &a, &why)); /* the family g was removed */
    a.dropped_family_count = 0;
    a.name = "absent";
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_alter(db, &a, &why));
    a.name = "cluster";
    more[0] = (rq_property){"BLOCKSIZE", "1"};
    FAILS(RQ_E_DO_NOT_RETRY, rq_table_alter(db, &a, &why));
}

/* The start keys of the table's regions, concatenated. */
static rq_region_list *regions(const char *expected)
{
    rq_region_list *list;
    char text[256] = "";
    OK(rq_table_regions(db, "cluster", &list, &why));
    for (size_t i = 0; i < list->count; i++) {
        const rq_region_entry *r = &list->items[i];
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "[%.*s,%.*s)", (int)r->start.len,
                 (const char *)r->start.data, (int)r->stop.len, (const char *)r->stop.data);
        assert_int_equal(strlen(r->encoded), 32);
        assert_true(is(rq_bytes_of(r->name.data, 8), "cluster,"));
        assert_int_equal(strchr(r->server, ':') != NULL, strncmp(url, "hbase", 5) == 0);
    }
    assert_string_equal(text, expected);
    return list;
}

static void expect_regions(const char *expected)
{
    rq_region_list_free(regions(expected));
}

static void regions_are_merged_and_split(void **state)
{
    (void)state;
    rq_region_list *list = regions("[,m)[m,)");
    const char *names[] = {list->items[0].encoded, list->items[1].encoded};
    const char *unknown[] = {names[0], "0123456789abcdef0123456789abcdef"};
    FAILS(RQ_E_INVALID, rq_table_merge(db, "cluster", names, 1, &why));
    FAILS(RQ_E_UNKNOWN_REGION, rq_table_merge(db, "cluster", unknown, 2, &why));
    OK(rq_table_merge(db, "cluster", names, 2, &why));
    rq_region_list_free(list);
    expect_regions("[,)");
    for (char row[] = "a"; row[0] <= 'z'; row[0]++)
        OK(rq_put_value(table, rq_text(row), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    OK(rq_table_split(db, "cluster", rq_text("k"), &why));
    expect_regions("[,k)[k,)");
    FAILS(RQ_E_INVALID, rq_table_split(db, "cluster", rq_text(""), &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_split(db, "absent", rq_text("m"), &why));
    FAILS(RQ_E_DO_NOT_RETRY, rq_table_split(db, "cluster", rq_text("k"), &why));
    for (char row[] = "a"; row[0] <= 'z'; row[0]++) { /* the client's region map is outdated */
        char value[8];
        size_t len;
        OK(rq_get_value(table, rq_text(row), rq_text("f"), rq_text("q"), value, 8, &len, &why));
        assert_int_equal(len, 1);
    }
}

/* How the returned cells of a row change before the row's region is split or merged. */
typedef enum meanwhile {
    NOTHING,
    MORE_CELLS,
    FEWER_CELLS,
} meanwhile;

static void change_returned_cells(const char *row, meanwhile what)
{
    const char *added[] = {"q00a", "q01a", "q02a", "q03a"},
               *deleted[] = {"q00", "q01", "q04", "q05"};
    rq_edit edits[4];
    for (int i = 0; i < 4; i++)
        edits[i] = (rq_edit){.family = rq_text("f"),
                             .qualifier = rq_text(what == MORE_CELLS ? added[i] : deleted[i]),
                             .value = rq_text("w")};
    rq_change change = {.size = sizeof change,
                        .kind = what == MORE_CELLS ? RQ_PUT : RQ_DELETE,
                        .row = rq_text(row),
                        .edits = edits,
                        .edit_count = 4};
    if (what != NOTHING) OK(rq_table_change(table, &change, NULL, &why));
}

/* A row that is returned in parts continues at the same position although its region no longer
 * exists. */
static void continues_after_a_split(const char *first, const char *second, const char *split,
                                    meanwhile what)
{
    enum { CELLS = 20, PART = 3 };
    const char *rows[] = {first, second};
    rq_scan_request scan = {
        .size = sizeof scan, .start = rq_text(first), .batch = PART, .caching = 1};
    rq_scanner *s;
    char found[512] = "", expected[512] = "", stop[8];
    rq_row *row;
    snprintf(stop, sizeof stop, "%s~", second);
    scan.stop = rq_text(stop);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < CELLS; i++) {
            char qualifier[8];
            size_t len = strlen(expected);
            snprintf(qualifier, sizeof qualifier, "q%02d", i);
            snprintf(expected + len, sizeof expected - len, "%s%s ", rows[r], qualifier);
            OK(rq_put_value(table, rq_text(rows[r]), rq_text("f"), rq_text(qualifier), rq_text("v"),
                            &why));
        }
    OK(rq_table_scan(table, &scan, &s, &why));
    for (int parts = 0;; parts++) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        assert_true(row->count > 0 && row->count <= PART);
        for (size_t i = 0; i < row->count; i++) {
            size_t len = strlen(found);
            snprintf(found + len, sizeof found - len, "%.*s%.*s ", (int)row->cells[i].row.len,
                     (const char *)row->cells[i].row.data, (int)row->cells[i].qualifier.len,
                     (const char *)row->cells[i].qualifier.data);
        }
        rq_row_free(row);
        if (parts == 1) {
            change_returned_cells(first, what);
            OK(rq_table_split(db, "cluster", rq_text(split), &why));
        }
    }
    rq_scanner_close(s);
    assert_string_equal(found, expected);
}

static void a_scan_goes_on_after_a_split(void **state)
{
    (void)state;
    continues_after_a_split("n", "r", "p", NOTHING);
}

static void a_scan_goes_on_although_returned_cells_change(void **state)
{
    (void)state;
    /* Two regions: HBase does not split a region that still refers to its parent's files. */
    continues_after_a_split("c0", "c2", "c1", MORE_CELLS);
    continues_after_a_split("r0", "r2", "r1", FEWER_CELLS);
}

static void compactions_are_asked_for(void **state)
{
    (void)state;
    OK(rq_table_compact(db, "cluster", NULL, true, &why));
    OK(rq_table_compact(db, "cluster", "f", false, &why));
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_compact(db, "cluster", "none", false, &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_compact(db, "absent", NULL, false, &why));
}

static void a_cluster_is_described(void **state)
{
    rq_cluster_info *info;
    size_t count = 0;
    (void)state;
    OK(rq_cluster_describe(db, &info, &why));
    assert_int_equal(strlen(info->id), 36);
    assert_true(info->version[0] >= '0' && info->version[0] <= '9');
    assert_non_null(strchr(info->master, ','));
    assert_true(info->server_count >= 1);
    for (size_t i = 0; i < info->server_count; i++) {
        assert_non_null(strchr(info->servers[i].name, ','));
        count += info->servers[i].region_count;
    }
    assert_true(count >= 2); /* at least the region of hbase:meta and the table's region */
    assert_int_equal(info->dead_server_count, 0);
    rq_cluster_info_free(info);
}

static bool lists_snapshot(const char *name, int64_t since_ms)
{
    rq_snapshot_list *list;
    bool found = false;
    OK(rq_snapshots(db, &list, &why));
    for (size_t i = 0; i < list->count; i++) {
        assert_true(i == 0 || strcmp(list->items[i - 1].name, list->items[i].name) < 0);
        if (strcmp(list->items[i].name, name) != 0) continue;
        found = true;
        assert_string_equal(list->items[i].table, "cluster");
        assert_true(list->items[i].created_ms >= since_ms);
        assert_int_equal(list->items[i].ttl_s, 0);
    }
    rq_snapshot_list_free(list);
    return found;
}

static void holds(const char *name, const char *row, const char *value)
{
    char buf[8] = "";
    size_t len;
    rq_table *t;
    OK(rq_table_open(db, name, &t, &why));
    OK(rq_get_value(t, rq_text(row), rq_text("f"), rq_text("q"), buf, sizeof buf - 1, &len, &why));
    if (value == NULL)
        assert_true(len == SIZE_MAX);
    else
        assert_string_equal(buf, value);
    rq_table_close(t);
}

static void put_value(const char *row, const char *value)
{
    OK(rq_put_value(table, rq_text(row), rq_text("f"), rq_text("q"), rq_text(value), &why));
}

static void a_snapshot_keeps_what_was(void **state)
{
    (void)state;
    put_value("a", "old");
    put_value("z", "old");
    FAILS(RQ_E_SNAPSHOT_NOT_FOUND, rq_snapshot_restore(db, "snap", &why));
    FAILS(RQ_E_SNAPSHOT_NOT_FOUND, rq_snapshot_drop(db, "snap", &why));
    FAILS(RQ_E_SNAPSHOT_NOT_FOUND, rq_snapshot_clone(db, "snap", "cloned", &why));
    FAILS(RQ_E_SNAPSHOT_CREATION, rq_snapshot_create(db, "snap", "absent", false, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_snapshot_create(db, "snap", "hbase:meta", false, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_snapshot_create(db, "no name", "cluster", false, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_snapshot_create(db, "", "cluster", false, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_snapshot_create(db, "../snap", "cluster", false, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_snapshot_drop(db, ".tmp", &why));
    FAILS(RQ_E_INVALID, rq_snapshot_create(db, NULL, "cluster", false, &why));
    FAILS(RQ_E_INVALID, rq_snapshot_create(db, "snap", NULL, false, &why));
    FAILS(RQ_E_INVALID, rq_snapshots(db, NULL, &why));
    assert_false(lists_snapshot("snap", 0));
    OK(rq_snapshot_create(db, "snap", "cluster", false, &why));
    assert_true(lists_snapshot("snap", INT64_C(1700000000000)));
    FAILS(RQ_E_SNAPSHOT_EXISTS, rq_snapshot_create(db, "snap", "cluster", false, &why));
    put_value("a", "new");
    put_value("b", "new");
    FAILS(RQ_E_TABLE_EXISTS, rq_snapshot_clone(db, "snap", "cluster", &why));
    OK(rq_snapshot_clone(db, "snap", "cloned", &why));
    holds("cloned", "a", "old");
    holds("cloned", "b", NULL);
    holds("cluster", "a", "new");
    OK(rq_table_disable(db, "cloned", &why));
    OK(rq_table_drop(db, "cloned", &why));
    FAILS(RQ_E_TABLE_NOT_DISABLED, rq_snapshot_restore(db, "snap", &why));
    OK(rq_table_disable(db, "cluster", &why));
    OK(rq_snapshot_restore(db, "snap", &why));
    OK(rq_table_enable(db, "cluster", &why));
    holds("cluster", "a", "old");
    holds("cluster", "z", "old");
    holds("cluster", "b", NULL);
    OK(rq_snapshot_drop(db, "snap", &why));
    assert_false(lists_snapshot("snap", 0));
    holds("cluster", "a", "old");
    /* The snapshot does not contain the memstore. */
    put_value("a", "new");
    OK(rq_snapshot_create(db, "snap", "cluster", true, &why));
    OK(rq_snapshot_clone(db, "snap", "cloned", &why));
    holds("cloned", "a", "old");
    OK(rq_table_disable(db, "cloned", &why));
    OK(rq_table_drop(db, "cloned", &why));
    /* The table is dropped and restored from the snapshot. */
    OK(rq_table_disable(db, "cluster", &why));
    OK(rq_table_drop(db, "cluster", &why));
    OK(rq_snapshot_restore(db, "snap", &why));
    holds("cluster", "z", "old");
    OK(rq_snapshot_drop(db, "snap", &why));
}

static int run(const char *on)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_definition_changes),
        TEST(regions_are_merged_and_split),
        TEST(compactions_are_asked_for),
        TEST(a_scan_goes_on_after_a_split),
        TEST(a_scan_goes_on_although_returned_cells_change),
        TEST(a_cluster_is_described),
        TEST(a_snapshot_keeps_what_was),
    };
    url = on;
    return cmocka_run_group_tests_name(on, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed += run(argv[i]);
    if (argc > 1) return failed != 0;
    failed = run("memory:");
    no_threads = true;
    return failed + run("memory:") != 0;
}
