/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid arguments: NULL handles, structs, data and result pointers; struct sizes that no version has.
 * On every back end the call fails, the error names the argument, and nothing is changed. Part of
 * test_api. */
#include "api_rows.h"

#include "rorqual/rowkey.h"

#define REFUSED(call) FAILS(RQ_E_INVALID, call)

static const rq_bytes absent = {NULL, 3}; /* a length without data */

static void databases_are_refused(void **state)
{
    rq_db *db = NULL;
    rq_property nothing = {NULL, NULL};
    rq_connect_options o = {0};
    (void)state;
    REFUSED(rq_connect(NULL, NULL, &db, &why));
    REFUSED(rq_connect("", NULL, &db, &why));
    REFUSED(rq_connect(at.url, NULL, NULL, &why));
    REFUSED(rq_connect("memory:", &o, &db, &why));
    o.size = SIZE_MAX;
    REFUSED(rq_connect("memory:", &o, &db, &why));
    o = (rq_connect_options){.size = sizeof o, .setting_count = 1};
    REFUSED(rq_connect("memory:", &o, &db, &why));
    o = (rq_connect_options){.size = sizeof o, .no_threads = true, .completion_thread = true};
    REFUSED(rq_connect("memory:", &o, &db, &why));
    o.completion_thread = false;
    FAILS(RQ_E_UNSUPPORTED, rq_connect("hbase://127.0.0.1:1", &o, &db, &why));
    FAILS(RQ_E_UNSUPPORTED, rq_connect("hbase+rpc://127.0.0.1:1", &o, &db, &why));
    static const char *const places[] = {
        "hbase://",         "hbase://a",           "hbase://a:1,",   "hbase://a:1,,b:2",
        "hbase://a:1,b",    "hbase:///hbase",      "hbase://a:1/x/", "hbase+rpc://a:1,b/",
        "hbase+rpc://,a:1", "hbase+rpc://a:1/path"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        REFUSED(rq_connect(places[i], NULL, &db, &why));
    REFUSED(rq_connect("hbase://a:1,b", NULL, &db, &why));
    assert_string_equal(why.message, "not HOST:PORT: 'b' in a:1,b");
    o = (rq_connect_options){.size = sizeof o, .znode_parent = "/other"};
    REFUSED(rq_connect("hbase://a:1/hbase", &o, &db, &why));
    o = (rq_connect_options){.size = sizeof o, .setting_count = 1};
    o.settings = &nothing;
    assert_true(rq_connect("memory:", &o, &db, &why) != RQ_OK);
    assert_null(db);
    OK(rq_disconnect(NULL, &why));
    REFUSED(rq_poll(NULL, 0, NULL, &why));
    REFUSED(rq_descriptor(at.db, NULL, &why));
    REFUSED(rq_cluster_describe(at.db, NULL, &why));
    REFUSED(rq_cluster_describe(NULL, NULL, &why));
}

/* A struct of a later version: options that this version does not know must be zero. */
static void options_of_a_later_version(void **state)
{
    struct {
        rq_connect_options o;
        uint64_t more;
    } later = {.o = {.size = sizeof later}};
    rq_db *db = NULL;
    (void)state;
    OK(rq_connect("memory:", &later.o, &db, &why));
    OK(rq_disconnect(db, &why));
    later.more = 1;
    FAILS(RQ_E_UNSUPPORTED, rq_connect("memory:", &later.o, &db, &why));
}

static void definitions_are_refused(void **state)
{
    rq_names *names;
    rq_table_info *info;
    rq_table *t;
    bool exists;
    rq_family family = {"f", NULL, 1};
    rq_bytes splits[] = {absent};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "refused", .families = &family, .family_count = 1};
    rq_alteration alteration = {.size = sizeof alteration, .name = "refused", .family_count = 1};
    const char *regions[] = {NULL, NULL};
    rq_namespace_info *space;
    (void)state;
    REFUSED(rq_table_create(NULL, &spec, &why));
    REFUSED(rq_table_create(at.db, NULL, &why));
    REFUSED(rq_table_create(at.db, &spec, &why)); /* a count of attributes without an array */
    family = (rq_family){NULL, NULL, 0};
    REFUSED(rq_table_create(at.db, &spec, &why));
    family.name = "f";
    spec.split_key_count = 1;
    REFUSED(rq_table_create(at.db, &spec, &why));
    spec.split_keys = splits;
    REFUSED(rq_table_create(at.db, &spec, &why));
    spec.size = SIZE_MAX;
    REFUSED(rq_table_create(at.db, &spec, &why));
    REFUSED(rq_table_alter(at.db, &alteration, &why));
    REFUSED(rq_table_exists(at.db, "refused", NULL, &why));
    OK(rq_table_exists(at.db, "refused", &exists, &why));
    assert_false(exists);
    REFUSED(rq_table_describe(at.db, "refused", NULL, &why));
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_table_describe(at.db, NULL, &info, &why));
    REFUSED(rq_table_list(at.db, NULL, NULL, &why));
    REFUSED(rq_table_list(NULL, NULL, &names, &why));
    REFUSED(rq_namespace_list(at.db, NULL, &why));
    REFUSED(rq_namespace_create(at.db, NULL, NULL, 0, &why));
    REFUSED(rq_namespace_create(at.db, "refused", NULL, 1, &why));
    REFUSED(rq_namespace_describe(at.db, NULL, &space, &why));
    REFUSED(rq_namespace_describe(at.db, "default", NULL, &why));
    REFUSED(rq_namespace_alter(at.db, NULL, NULL, 0, &why));
    REFUSED(rq_namespace_alter(at.db, "default", NULL, 1, &why));
    REFUSED(rq_namespace_alter(at.db, "default", &(rq_property){NULL, "v"}, 1, &why));
    REFUSED(rq_table_regions(at.db, "refused", NULL, &why));
    REFUSED(rq_table_split(at.db, "refused", absent, &why));
    REFUSED(rq_table_merge(at.db, "refused", NULL, 2, &why));
    REFUSED(rq_table_merge(at.db, "refused", regions, 2, &why));
    REFUSED(rq_table_open(at.db, NULL, &t, &why));
    REFUSED(rq_table_open(at.db, "refused", NULL, &why));
}

static void reads_are_refused(void **state)
{
    rq_table *t = make("refused", "1", NULL, 0);
    rq_row *row;
    rq_kv *cell;
    rq_column column = {absent, {NULL, 0}};
    rq_named_bytes attribute = {"a", absent};
    rq_get_request good = {.size = sizeof good, .row = rq_text("r")}, g = good;
    char buf[4];
    size_t len;
    (void)state;
    REFUSED(rq_table_get(NULL, &g, &row, &why));
    REFUSED(rq_table_get(t, NULL, &row, &why));
    REFUSED(rq_table_get(t, &g, NULL, &why));
    REFUSED(rq_row_copy(NULL, &row, &why));
    REFUSED(rq_row_copy(&(rq_row){0}, NULL, &why));
    REFUSED(rq_kv_copy(NULL, &cell, &why));
    REFUSED(rq_kv_copy(&(rq_kv){0}, NULL, &why));
    rq_kv_free(NULL);
    g.size = 0;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g.size = SIZE_MAX;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g = good;
    g.row = absent;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g.row = rq_bytes_of("r", SIZE_MAX);
    REFUSED(rq_table_get(t, &g, &row, &why));
    g = good;
    g.column_count = 1;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g.columns = &column;
    REFUSED(rq_table_get(t, &g, &row, &why));
    column = (rq_column){rq_text("f"), absent};
    REFUSED(rq_table_get(t, &g, &row, &why));
    column.qualifier = rq_bytes_of("q", SIZE_MAX);
    REFUSED(rq_table_get(t, &g, &row, &why));
    g = good;
    g.filter = absent;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g = good;
    g.attribute_count = 1;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g.attributes = &attribute;
    REFUSED(rq_table_get(t, &g, &row, &why));
    g = good;
    g.family_times_count = 1;
    REFUSED(rq_table_get(t, &g, &row, &why));
    REFUSED(rq_get_value(t, good.row, rq_text("f"), rq_text("q"), buf, sizeof buf, NULL, &why));
    REFUSED(rq_get_value(t, good.row, rq_text("f"), rq_text("q"), NULL, sizeof buf, &len, &why));
    assert_null(rq_row_find(NULL, rq_text("f"), rq_text("q")));
    finish(t, "refused");
}

static void changes_are_refused(void **state)
{
    rq_table *t = make("refused", "1", NULL, 0);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = absent};
    rq_change good = {.size = sizeof good, .row = rq_text("r"), .edits = &edit, .edit_count = 1};
    rq_change put = good;
    rq_check check = {.size = sizeof check, .family = rq_text("f"), .value = absent};
    rq_results *results = NULL;
    rq_action action = {0};
    bool done;
    (void)state;
    REFUSED(rq_table_change(t, NULL, NULL, &why));
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.value = rq_bytes_of("v", SIZE_MAX);
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.value = rq_text("v");
    edit.qualifier = absent;
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.qualifier = rq_bytes_of("q", (size_t)1 << 32);
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.qualifier = rq_text("q");
    edit.family = absent;
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.family = rq_bytes_of("f", (size_t)1 << 32);
    REFUSED(rq_table_change(t, &put, NULL, &why));
    edit.family = rq_text("f");
    put.edit_count = SIZE_MAX;
    REFUSED(rq_table_change(t, &put, NULL, &why));
    put = good;
    put.edits = NULL;
    REFUSED(rq_table_change(t, &put, NULL, &why));
    REFUSED(rq_table_change_row(t, NULL, 1, &why));
    REFUSED(rq_table_change_row(t, &good, 0, &why));
    REFUSED(rq_table_check_and_change(t, NULL, &good, 1, &done, NULL, &why));
    REFUSED(rq_table_check_and_change(t, &check, &good, 1, &done, NULL, &why));
    check.value = rq_text("v");
    check.qualifier = absent;
    REFUSED(rq_table_check_and_change(t, &check, &good, 1, &done, NULL, &why));
    check.qualifier = rq_text("q");
    REFUSED(rq_table_check_and_change(t, &check, &good, 1, NULL, NULL, &why));
    REFUSED(rq_table_batch(t, NULL, 1, &results, &why));
    REFUSED(rq_table_batch(t, &action, SIZE_MAX, &results, &why));
    REFUSED(rq_table_batch(t, &action, 1, &results, &why));
    assert_null(results);
    REFUSED(rq_add_value(t, good.row, rq_text("f"), rq_text("q"), 1, NULL, &why));
    REFUSED(rq_delete_row(t, absent, &why));
    REFUSED(rq_table_change_async(t, &good, NULL, NULL, &why));
    expect_row(t, "r", "");
    finish(t, "refused");
}

static void never_done(void *context, const rq_completion *c)
{
    (void)context;
    fail_msg("a refused call has completed: %d", (int)c->code);
}

/* Zeros follow the arrays, so that a library that reads by an element's own size takes them for unknown fields without a
 * value. */
static void arrays_of_different_sizes_are_refused(void **state)
{
    (void)state;
    rq_table *t = make("refused", "1", NULL, 0);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("v")};
    rq_change put = {.size = sizeof put, .row = rq_text("r"), .edits = &edit, .edit_count = 1};
    rq_change changes[4] = {put, put};
    rq_check check = {.size = sizeof check, .family = rq_text("f"), .value = rq_text("v")};
    rq_checked_action action = {
        .size = sizeof action, .check = &check, .changes = &put, .change_count = 1};
    rq_checked_action actions[4] = {action, action};
    rq_action plain = {.changes = changes, .change_count = 2};
    rq_results *results = NULL;
    bool done;
    const size_t sizes[] = {sizeof put - 8, sizeof put + 8, 0, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        changes[1].size = sizes[i];
        REFUSED(rq_table_change_row(t, changes, 2, &why));
        REFUSED(rq_table_check_and_change(t, &check, changes, 2, &done, NULL, &why));
        REFUSED(rq_table_batch(t, &plain, 1, &results, &why));
        actions[1].size = sizes[i] - sizeof put + sizeof action;
        REFUSED(rq_table_batch_checked(t, actions, 2, &results, &why));
        assert_int_equal(why.action, 1);
        REFUSED(rq_table_batch_checked_async(t, actions, 2, never_done, NULL, &why));
    }
    assert_null(results);
    expect_row(t, "r", "");
    finish(t, "refused");
}

static void scans_are_refused(void **state)
{
    rq_table *t = make("refused", "1", NULL, 0);
    rq_scanner *s = NULL;
    rq_rows *rows;
    rq_row *row;
    rq_scan_request scan = {.size = sizeof scan, .start = absent};
    (void)state;
    REFUSED(rq_table_scan(t, NULL, &s, &why));
    REFUSED(rq_table_scan(t, &scan, &s, &why));
    scan = (rq_scan_request){.size = sizeof scan, .stop = absent};
    REFUSED(rq_table_scan(t, &scan, &s, &why));
    scan.stop = rq_bytes_of("a", SIZE_MAX);
    REFUSED(rq_table_scan(t, &scan, &s, &why));
    /* The largest numbers are allowed. */
    scan = (rq_scan_request){.size = sizeof scan,
                             .limit = UINT64_MAX - 1,
                             .caching = UINT32_MAX,
                             .fetch_bytes = UINT64_MAX};
    REFUSED(rq_table_scan(t, &scan, NULL, &why));
    OK(rq_table_scan(t, &scan, &s, &why));
    REFUSED(rq_scanner_next(s, NULL, &why));
    REFUSED(rq_scanner_next_rows(s, 1, NULL, &why));
    REFUSED(rq_scanner_next(NULL, &row, &why));
    REFUSED(rq_scanner_next_rows(NULL, 1, &rows, &why));
    put(t, "r", "f", "q", "v", 1);
    OK(rq_scanner_next_rows(s, SIZE_MAX, &rows, &why));
    assert_int_equal(rows->count, 1);
    rq_rows_free(rows);
    rq_scanner_close(s);
    finish(t, "refused");
}

static void keys_are_refused(void **state)
{
    rq_key_format *f = NULL;
    rq_key_value values[] = {rq_key_uint(1), rq_key_bytes(absent)};
    const char *texts[] = {"1", NULL};
    rq_key_values *decoded;
    rq_key_list *list;
    rq_key_part part = {.size = sizeof part};
    rq_names *names;
    char buf[16];
    size_t len;
    (void)state;
    REFUSED(rq_key_format_parse(NULL, &f, &why));
    REFUSED(rq_key_format_parse("a:u8", NULL, &why));
    OK(rq_key_format_parse("a:u8 t:text", &f, &why));
    REFUSED(rq_key_encode(NULL, values, 1, buf, sizeof buf, &len, &why));
    REFUSED(rq_key_encode(f, NULL, 1, buf, sizeof buf, &len, &why));
    REFUSED(rq_key_encode(f, values, 1, NULL, sizeof buf, &len, &why));
    REFUSED(rq_key_encode(f, values, 1, buf, sizeof buf, NULL, &why));
    REFUSED(rq_key_encode(f, values, 2, buf, sizeof buf, &len, &why));
    REFUSED(rq_key_encode_text(f, texts, 2, buf, sizeof buf, &len, &why));
    REFUSED(rq_key_encode_text(f, NULL, 2, buf, sizeof buf, &len, &why));
    REFUSED(rq_key_decode(f, absent, &decoded, &why));
    REFUSED(rq_key_decode(f, rq_text("a"), NULL, &why));
    REFUSED(rq_key_part_at(NULL, 0, &part, &why));
    REFUSED(rq_key_part_at(f, 0, NULL, &why));
    REFUSED(rq_key_part_at(f, 2, &part, &why));
    REFUSED(rq_key_lint(NULL, &names, &why));
    REFUSED(rq_key_salt(NULL, 0, buf, &len, &why));
    assert_int_equal(rq_key_part_count(NULL), 0);
    assert_int_equal(rq_key_buckets(NULL), 0);
    REFUSED(rq_split_sample(NULL, NULL, 5, 3, &list, &why));
    REFUSED(rq_split_sample(&absent, NULL, 1, 3, &list, &why));
    REFUSED(rq_split_keys(RQ_SPLIT_UNIFORM, SIZE_MAX, &list, &why));
    REFUSED(rq_split_format(NULL, 3, &list, &why));
    rq_key_format_free(f);
}

static void places_and_tables_on_top_are_refused(void **state)
{
    rq_table *t = make("refused", "1", NULL, 0);
    rq_box box;
    char hash[RQ_GEOHASH_SIZE];
    rq_geo_found *found;
    rq_geo_search search = {.size = sizeof search, .letters = 5, .count = 1, .prefix = absent};
    rq_tsdb *tsdb = NULL;
    rq_index *index = NULL;
    rq_salted_scanner *salted;
    rq_row *row;
    uint32_t uid;
    rq_index_spec spec = {.size = sizeof spec,
                          .table = "refused",
                          .index_table = "refused",
                          .column = {absent, rq_text("q")}};
    (void)state;
    REFUSED(rq_geohash_decode(NULL, &box, &why));
    REFUSED(rq_geohash_neighbours(NULL, NULL, &why));
    REFUSED(rq_geohash_encode((rq_point){0, 0}, 5, NULL, &why));
    REFUSED(rq_geohash_encode((rq_point){0, 0}, 13, hash, &why));
    REFUSED(rq_geo_nearest(t, &search, &found, &why));
    REFUSED(rq_geo_nearest(t, &search, NULL, &why));
    REFUSED(rq_tsdb_open(at.db, NULL, NULL, &why));
    REFUSED(rq_tsdb_open(NULL, NULL, &tsdb, &why));
    REFUSED(rq_tsdb_put(NULL, NULL, 1, &why));
    REFUSED(rq_tsdb_uid(NULL, RQ_TSDB_METRIC, "m", false, &uid, &why));
    REFUSED(rq_tsdb_read(NULL, NULL, NULL, &why));
    REFUSED(rq_tsdb_compact(NULL, "m", 0, 1, NULL, &why));
    REFUSED(rq_index_open(NULL, &spec, &index, &why));
    REFUSED(rq_index_open(at.db, &spec, &index, &why));
    spec.column.family = rq_text("f");
    REFUSED(rq_index_open(at.db, &spec, NULL, &why));
    REFUSED(rq_index_put(NULL, NULL, &why));
    REFUSED(rq_index_delete(NULL, rq_text("r"), &why));
    REFUSED(rq_index_next(NULL, &row, &why));
    REFUSED(rq_index_repair(NULL, NULL, &why));
    REFUSED(rq_salted_scan(t, NULL, NULL, 0, &salted, &why));
    REFUSED(rq_salted_next(NULL, &row, &why));
    finish(t, "refused");
}

int run_refused(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(databases_are_refused),
        cmocka_unit_test(options_of_a_later_version),
        cmocka_unit_test(definitions_are_refused),
        cmocka_unit_test(reads_are_refused),
        cmocka_unit_test(changes_are_refused),
        cmocka_unit_test(arrays_of_different_sizes_are_refused),
        cmocka_unit_test(scans_are_refused),
        cmocka_unit_test(keys_are_refused),
        cmocka_unit_test(places_and_tables_on_top_are_refused),
    };
    return cmocka_run_group_tests_name("refused", tests, open_db, close_db);
}
