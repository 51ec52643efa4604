/* SPDX-License-Identifier: Apache-2.0 */
/* The library's calls, alike on every back end: test_api URL … runs all tests on each URL; without
 * one on "memory:" and on a folder of its own. A cluster must be empty. */
#include "api_test.h"

#include <pthread.h>
#include <unistd.h>

/* Opened once for all tests of a URL; each test has tables of its own. */
typedef struct fixture {
    const char *url;
    rq_db *db;
} fixture;

static fixture at;
static rq_failure why = {.size = sizeof(rq_failure)};

static rq_table *make(const char *name, const char *versions, const rq_bytes *splits, size_t count)
{
    rq_property attributes[] = {{"VERSIONS", versions}};
    rq_family families[] = {{"f", attributes, 1}, {"g", NULL, 0}};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = name,
                          .families = families,
                          .family_count = 2,
                          .split_keys = splits,
                          .split_key_count = count};
    rq_table *t = NULL;
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_open(at.db, name, &t, &why));
    return t;
}

static void finish(rq_table *t, const char *name)
{
    rq_table_close(t);
    OK(rq_table_disable(at.db, name, &why));
    OK(rq_table_drop(at.db, name, &why));
}

static void put(rq_table *t, const char *row, const char *family, const char *qualifier,
                const char *value, int64_t timestamp)
{
    rq_edit edit = {rq_text(family), rq_text(qualifier), rq_text(value), timestamp, 0, 0, 0};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    OK(rq_table_change(t, &change, NULL, &why));
}

static rq_err erase(rq_table *t, const char *row, rq_delete_scope scope, const char *qualifier,
                    int64_t timestamp)
{
    rq_edit edit = {rq_text("f"), rq_text(qualifier), {NULL, 0}, timestamp, 0, scope, 0};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_DELETE,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    return rq_table_change(t, &change, NULL, &why);
}

/* The row's cells as "f:q@ts=value …"; freed by the caller. */
static char *text_of(const rq_row *row)
{
    size_t cap = 64;
    for (size_t i = 0; i < row->count; i++)
        cap +=
            row->cells[i].family.len + row->cells[i].qualifier.len + row->cells[i].value.len + 32;
    char *text = malloc(cap);
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        len += (size_t)snprintf(
            text + len, cap - len, "%s%.*s:%.*s@%lld=%.*s", i > 0 ? " " : "", (int)c->family.len,
            (const char *)c->family.data, (int)c->qualifier.len, (const char *)c->qualifier.data,
            (long long)c->timestamp, (int)c->value.len, (const char *)c->value.data);
    }
    return text;
}

static void expect_get(rq_table *t, const rq_get_request *get, const char *expected)
{
    rq_row *row = NULL;
    OK(rq_table_get(t, get, &row, &why));
    char *text = text_of(row);
    assert_string_equal(text, expected);
    assert_int_equal(row->exists, expected[0] != '\0');
    free(text);
    rq_row_free(row);
}

static void expect_row(rq_table *t, const char *row, const char *expected)
{
    rq_get_request get = {.size = sizeof get, .row = rq_text(row), .max_versions = RQ_ALL_VERSIONS};
    expect_get(t, &get, expected);
}

/* --- definitions ------------------------------------------------------------------------------ */

static void tables_are_made_and_dropped(void **state)
{
    (void)state;
    bool exists = true;
    rq_names *names;
    rq_table_info *info;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "made", .families = &family, .family_count = 1};
    OK(rq_table_exists(at.db, "made", &exists, &why));
    assert_false(exists);
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_describe(at.db, "made", &info, &why));
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_exists(at.db, "made", &exists, &why));
    assert_true(exists);
    FAILS(RQ_E_TABLE_EXISTS, rq_table_create(at.db, &spec, &why));
    assert_string_equal(why.hbase_class, "org.apache.hadoop.hbase.TableExistsException");
    assert_false(why.retryable);
    OK(rq_table_list(at.db, NULL, &names, &why));
    bool listed = false;
    for (size_t i = 0; i < names->count; i++) {
        listed = listed || strcmp(names->items[i], "made") == 0;
        assert_true(i == 0 || strcmp(names->items[i - 1], names->items[i]) < 0);
    }
    assert_true(listed);
    rq_names_free(names);
    FAILS(RQ_E_TABLE_NOT_DISABLED, rq_table_drop(at.db, "made", &why));
    OK(rq_table_disable(at.db, "made", &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, rq_table_disable(at.db, "made", &why));
    OK(rq_table_describe(at.db, "made", &info, &why));
    assert_false(info->is_enabled);
    rq_table_info_free(info);
    OK(rq_table_enable(at.db, "made", &why));
    OK(rq_table_disable(at.db, "made", &why));
    OK(rq_table_drop(at.db, "made", &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_enable(at.db, "made", &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_drop(at.db, "made", &why));
    OK(rq_table_exists(at.db, "made", &exists, &why));
    assert_false(exists);
}

static const char *value_of(const rq_property *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0) return list[i].value;
    return "";
}

static void a_table_is_described(void **state)
{
    (void)state;
    rq_property f[] = {{"VERSIONS", "5"}, {"TTL", "3600"}, {"BLOOMFILTER", "ROWCOL"}};
    rq_property attributes[] = {{"MAX_FILESIZE", "1073741824"}};
    rq_family families[] = {{"z", NULL, 0}, {"a", f, 3}};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "described",
                          .families = families,
                          .family_count = 2,
                          .attributes = attributes,
                          .attribute_count = 1};
    rq_table_info *info;
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_describe(at.db, "described", &info, &why));
    assert_string_equal(info->name, "described");
    assert_true(info->is_enabled);
    assert_int_equal(info->family_count, 2);
    const rq_family *a = &info->families[0];
    assert_string_equal(a->name, "a");
    assert_string_equal(info->families[1].name, "z");
    assert_string_equal(value_of(a->attributes, a->attribute_count, "VERSIONS"), "5");
    assert_string_equal(value_of(a->attributes, a->attribute_count, "TTL"), "3600");
    assert_string_equal(value_of(a->attributes, a->attribute_count, "BLOOMFILTER"), "ROWCOL");
    assert_string_equal(value_of(a->attributes, a->attribute_count, "BLOCKSIZE"), "65536");
    assert_string_equal(value_of(info->attributes, info->attribute_count, "MAX_FILESIZE"),
                        "1073741824");
    rq_table_info_free(info);
    OK(rq_table_disable(at.db, "described", &why));
    OK(rq_table_drop(at.db, "described", &why));
}

static void wrong_definitions_are_refused(void **state)
{
    (void)state;
    rq_property bad[] = {{"BLOCKSIZE", "1"}};
    rq_family family = {"f", NULL, 0}, odd = {"f:g", NULL, 0}, none = {"f", bad, 1};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "a b", .families = &family, .family_count = 1};
    assert_int_not_equal(rq_table_create(at.db, &spec, &why), RQ_OK);
    assert_true(strlen(why.message) > 0);
    spec.name = "wrong";
    spec.families = &odd;
    assert_int_not_equal(rq_table_create(at.db, &spec, &why), RQ_OK);
    spec.families = &none;
    assert_int_not_equal(rq_table_create(at.db, &spec, &why), RQ_OK);
    spec.families = &family;
    spec.name = "nowhere:wrong";
    FAILS(RQ_E_NAMESPACE_NOT_FOUND, rq_table_create(at.db, &spec, &why));
    spec.name = NULL;
    assert_int_not_equal(rq_table_create(at.db, &spec, &why), RQ_OK);
    FAILS(RQ_E_INVALID, rq_table_create(at.db, NULL, &why));
    rq_table *t;
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_table_open(at.db, "ns:", &t, &why));
}

static void namespaces_hold_tables(void **state)
{
    (void)state;
    rq_property owner = {"owner", "ann"};
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "space:table", .families = &family, .family_count = 1};
    rq_names *names;
    rq_table *t;
    OK(rq_namespace_create(at.db, "space", &owner, 1, &why));
    FAILS(RQ_E_NAMESPACE_EXISTS, rq_namespace_create(at.db, "space", NULL, 0, &why));
    OK(rq_namespace_list(at.db, &names, &why));
    assert_int_equal(names->count, 3);
    assert_string_equal(names->items[0], "default");
    assert_string_equal(names->items[1], "hbase");
    assert_string_equal(names->items[2], "space");
    rq_names_free(names);
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_list(at.db, "space", &names, &why));
    assert_int_equal(names->count, 1);
    assert_string_equal(names->items[0], "space:table");
    rq_names_free(names);
    OK(rq_table_open(at.db, "space:table", &t, &why));
    put(t, "r", "f", "q", "v", 1);
    expect_row(t, "r", "f:q@1=v");
    rq_table_close(t);
    FAILS(RQ_E_CONSTRAINT, rq_namespace_drop(at.db, "space", &why));
    OK(rq_table_disable(at.db, "space:table", &why));
    OK(rq_table_drop(at.db, "space:table", &why));
    OK(rq_namespace_drop(at.db, "space", &why));
    FAILS(RQ_E_NAMESPACE_NOT_FOUND, rq_namespace_drop(at.db, "space", &why));
}

/* --- gets ------------------------------------------------------------------------------------- */

static void a_get_picks_cells(void **state)
{
    (void)state;
    rq_table *t = make("picks", "3", NULL, 0);
    put(t, "r", "f", "a", "a1", 1);
    put(t, "r", "f", "a", "a2", 2);
    put(t, "r", "f", "a", "a3", 3);
    put(t, "r", "f", "b", "b2", 2);
    put(t, "r", "f", "", "none", 2);
    put(t, "r", "g", "c", "c9", 9);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    expect_get(t, &get, "f:@2=none f:a@3=a3 f:b@2=b2 g:c@9=c9");
    get.max_versions = 2;
    expect_get(t, &get, "f:@2=none f:a@3=a3 f:a@2=a2 f:b@2=b2 g:c@9=c9");
    get.max_versions = RQ_ALL_VERSIONS;
    get.max_timestamp = 3;
    expect_get(t, &get, "f:@2=none f:a@2=a2 f:a@1=a1 f:b@2=b2");
    get.min_timestamp = 2;
    expect_get(t, &get, "f:@2=none f:a@2=a2 f:b@2=b2");
    get = (rq_get_request){.size = sizeof get, .row = rq_text("r")};
    /* Out of order, one twice, a family beside its own column. */
    rq_column columns[] = {{rq_text("g"), {NULL, 0}},
                           {rq_text("f"), rq_text("b")},
                           {rq_text("f"), rq_text("")},
                           {rq_text("f"), rq_text("b")},
                           {rq_text("g"), rq_text("x")}};
    get.columns = columns;
    get.column_count = 5;
    expect_get(t, &get, "f:@2=none f:b@2=b2 g:c@9=c9");
    get.column_count = 1;
    expect_get(t, &get, "g:c@9=c9");
    get.row = rq_text("absent");
    expect_get(t, &get, "");
    rq_column wrong = {rq_text("h"), {NULL, 0}};
    rq_row *row;
    get.columns = &wrong;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_get(t, &get, &row, &why));
    assert_string_equal(why.hbase_class,
                        "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
    finish(t, "picks");
}

static void a_get_has_limits_and_filters(void **state)
{
    (void)state;
    rq_table *t = make("filters", "3", NULL, 0);
    char qualifier[2] = "a";
    for (int i = 0; i < 6; i++, qualifier[0]++)
        put(t, "r", "f", qualifier, i % 2 == 0 ? "even" : "odd", 1);
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    get.family_limit = 2;
    expect_get(t, &get, "f:a@1=even f:b@1=odd");
    get.family_offset = 3;
    expect_get(t, &get, "f:d@1=odd f:e@1=even");
    get = (rq_get_request){.size = sizeof get, .row = rq_text("r")};
    get.filter_text = "ValueFilter(=, 'binary:odd') AND QualifierFilter(>=, 'binary:d')";
    expect_get(t, &get, "f:d@1=odd f:f@1=odd");
    /* Filter { name 1, serialized 2 }: ColumnCountGetFilter { limit 1 } */
    static const char name[] = "org.apache.hadoop.hbase.filter.ColumnCountGetFilter";
    char bytes[128] = {0x0a, sizeof name - 1};
    memcpy(bytes + 2, name, sizeof name - 1);
    memcpy(bytes + 1 + sizeof name, "\x12\x02\x08\x01", 4);
    get.filter_text = NULL;
    get.filter = rq_bytes_of(bytes, sizeof name + 5);
    expect_get(t, &get, "f:a@1=even");
    rq_row *row;
    get.filter_text = "KeyOnlyFilter()";
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.filter = (rq_bytes){NULL, 0};
    get.filter_text = "NoSuchFilter()";
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_table_get(t, &get, &row, &why));
    get.filter_text = NULL;
    get.existence_only = true;
    OK(rq_table_get(t, &get, &row, &why));
    assert_true(row->exists);
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    get.row = rq_text("absent");
    OK(rq_table_get(t, &get, &row, &why));
    assert_false(row->exists);
    rq_row_free(row);
    finish(t, "filters");
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    rq_table *t = make("wrong_requests", "1", NULL, 0);
    char *large = calloc(1, 40000);
    rq_row *row;
    rq_get_request get = {.size = sizeof get};
    FAILS(RQ_E_INVALID, rq_table_get(t, NULL, &row, &why));
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.row = rq_bytes_of(large, 32768);
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.row = rq_text("r");
    get.max_versions = -1;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.max_versions = 0;
    get.min_timestamp = 5;
    get.max_timestamp = 4;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    get.min_timestamp = get.max_timestamp = 0;
    get.size = 3;
    FAILS(RQ_E_INVALID, rq_table_get(t, &get, &row, &why));
    rq_change change = {.size = sizeof change, .kind = RQ_PUT, .row = rq_text("r")};
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    rq_edit edit = {.family = rq_text("f"), .timestamp = -5};
    change.edits = &edit;
    change.edit_count = 1;
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    edit.timestamp = 0;
    edit.family = rq_text("h");
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_change(t, &change, NULL, &why));
    change.kind = RQ_INCREMENT;
    edit.family = rq_text("f");
    edit.value = rq_text("seven");
    FAILS(RQ_E_INVALID, rq_table_change(t, &change, NULL, &why));
    /* The longest row. */
    OK(rq_put_value(t, rq_bytes_of(large, 32767), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    free(large);
    finish(t, "wrong_requests");
}

/* A program built with an older or a newer header. */
static void other_versions_structs_work(void **state)
{
    (void)state;
    rq_table *t = make("sizes", "3", NULL, 0);
    rq_row *row;
    put(t, "r", "f", "a", "1", 1);
    put(t, "r", "f", "a", "2", 2);
    rq_get_request older = {
        .size = offsetof(rq_get_request, max_versions), .row = rq_text("r"), .max_versions = 99};
    OK(rq_table_get(t, &older, &row, &why));
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    struct {
        rq_get_request get;
        uint64_t more;
    } newer = {.get = {.size = sizeof newer, .row = rq_text("r")}};
    OK(rq_table_get(t, &newer.get, &row, &why));
    rq_row_free(row);
    newer.more = 1;
    FAILS(RQ_E_UNSUPPORTED, rq_table_get(t, &newer.get, &row, &why));
    rq_failure small = {.size = offsetof(rq_failure, retryable), .message = "untouched"};
    older.row = (rq_bytes){NULL, 0};
    assert_int_equal(rq_table_get(t, &older, &row, &small), RQ_E_INVALID);
    assert_int_equal(small.code, RQ_E_INVALID);
    assert_string_equal(small.message, "untouched");
    assert_int_equal(rq_table_get(t, &older, &row, NULL), RQ_E_INVALID);
    finish(t, "sizes");
}

static void a_missing_or_disabled_table_is_told(void **state)
{
    (void)state;
    rq_table *t;
    rq_row *row;
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    OK(rq_table_open(at.db, "missing", &t, &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, rq_table_get(t, &get, &row, &why));
    FAILS(RQ_E_TABLE_NOT_FOUND,
          rq_put_value(t, rq_text("r"), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    rq_table_close(t);
    t = make("disabled", "1", NULL, 0);
    put(t, "r", "f", "q", "v", 1);
    OK(rq_table_disable(at.db, "disabled", &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, rq_table_get(t, &get, &row, &why));
    OK(rq_table_truncate(at.db, "disabled", false, &why));
    expect_row(t, "r", "");
    put(t, "r", "f", "q", "w", 1);
    OK(rq_table_flush(at.db, "disabled", &why));
    expect_row(t, "r", "f:q@1=w");
    finish(t, "disabled");
}

/* --- changes ---------------------------------------------------------------------------------- */

static void deletes_remove_what_they_say(void **state)
{
    (void)state;
    rq_table *t = make("deletes", "5", NULL, 0);
    char row[3] = "r0";
    for (int i = 0; i < 6; i++) {
        row[1] = (char)('0' + i);
        for (int ts = 1; ts <= 3; ts++) {
            put(t, row, "f", "a", "v", ts);
            put(t, row, "f", "b", "v", ts);
        }
        put(t, row, "g", "c", "v", 1);
    }
    OK(erase(t, "r0", RQ_DELETE_COLUMN, "a", 2));
    expect_row(t, "r0", "f:a@3=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r1", RQ_DELETE_VERSION, "a", 2));
    expect_row(t, "r1", "f:a@3=v f:a@1=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r1", RQ_DELETE_VERSION, "a", 0)); /* the newest */
    expect_row(t, "r1", "f:a@1=v f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    OK(erase(t, "r2", RQ_DELETE_FAMILY, "", 2));
    expect_row(t, "r2", "f:a@3=v f:b@3=v g:c@1=v");
    OK(erase(t, "r3", RQ_DELETE_FAMILY_VERSION, "", 2));
    expect_row(t, "r3", "f:a@3=v f:a@1=v f:b@3=v f:b@1=v g:c@1=v");
    OK(erase(t, "r4", RQ_DELETE_COLUMN, "a", 0));
    expect_row(t, "r4", "f:b@3=v f:b@2=v f:b@1=v g:c@1=v");
    rq_change whole = {
        .size = sizeof whole, .kind = RQ_DELETE, .row = rq_text("r5"), .timestamp = 1};
    OK(rq_table_change(t, &whole, NULL, &why));
    expect_row(t, "r5", "f:a@3=v f:a@2=v f:b@3=v f:b@2=v");
    OK(rq_delete_row(t, rq_text("r5"), &why));
    expect_row(t, "r5", "");
    put(t, "zero", "f", "q", "v", RQ_TIMESTAMP_ZERO);
    expect_row(t, "zero", "f:q@0=v");
    finish(t, "deletes");
}

static void counters_and_appends_return_their_cells(void **state)
{
    (void)state;
    rq_table *t = make("counters", "1", NULL, 0);
    int64_t sum = 0;
    rq_row *row = NULL;
    for (int i = 1; i <= 3; i++)
        OK(rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("n"), 5, &sum, &why));
    assert_int_equal(sum, 15);
    OK(rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("n"), -20, &sum, &why));
    assert_int_equal(sum, -5);
    rq_edit edits[] = {{.family = rq_text("f"), .qualifier = rq_text("s"), .value = rq_text("ab")},
                       {.family = rq_text("g"), .qualifier = rq_text("s"), .value = rq_text("x")}};
    rq_change append = {.size = sizeof append,
                        .kind = RQ_APPEND,
                        .row = rq_text("r"),
                        .edits = edits,
                        .edit_count = 2};
    OK(rq_table_change(t, &append, NULL, &why));
    OK(rq_table_change(t, &append, &row, &why));
    assert_int_equal(row->count, 2);
    const rq_kv *cell = rq_row_find(row, rq_text("f"), rq_text("s"));
    assert_non_null(cell);
    assert_true(is(cell->value, "abab"));
    assert_true(is(cell->row, "r"));
    assert_null(rq_row_find(row, rq_text("f"), rq_text("n")));
    rq_row_free(row);
    append.returns_nothing = true;
    OK(rq_table_change(t, &append, &row, &why));
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    char buf[16];
    size_t len = 0;
    OK(rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("s"), buf, sizeof buf, &len, &why));
    assert_true(is(rq_bytes_of(buf, len), "ababab"));
    FAILS(RQ_E_RESULT_TOO_LARGE,
          rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("s"), buf, 3, &len, &why));
    assert_int_equal(len, 6);
    OK(rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("none"), buf, 3, &len, &why));
    assert_true(len == SIZE_MAX);
    FAILS(RQ_E_DO_NOT_RETRY,
          rq_add_value(t, rq_text("r"), rq_text("f"), rq_text("s"), 1, &sum, &why));
    finish(t, "counters");
}

static bool check(rq_table *t, rq_compare compare, const char *value, const char *filter,
                  const char *put_value)
{
    bool done = false;
    rq_check c = {.size = sizeof c,
                  .family = rq_text("f"),
                  .qualifier = rq_text("q"),
                  .compare = compare,
                  .value = rq_text(value),
                  .filter_text = filter};
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text(put_value)};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("r"),
                        .edits = &edit,
                        .edit_count = 1};
    edit.timestamp = 1;
    OK(rq_table_check_and_change(t, &c, &change, 1, &done, NULL, &why));
    return done;
}

static void a_check_decides(void **state)
{
    (void)state;
    rq_table *t = make("checks", "1", NULL, 0);
    assert_false(check(t, RQ_COMPARE_EQUAL, "one", NULL, "two"));
    assert_true(check(t, RQ_COMPARE_ABSENT, "", NULL, "one"));
    assert_false(check(t, RQ_COMPARE_ABSENT, "", NULL, "two"));
    assert_true(check(t, RQ_COMPARE_EQUAL, "one", NULL, "two"));
    assert_false(check(t, RQ_COMPARE_NOT_EQUAL, "two", NULL, "three"));
    assert_true(check(t, RQ_COMPARE_NOT_EQUAL, "one", NULL, "m"));
    assert_true(check(t, RQ_COMPARE_LESS, "a", NULL, "m"));
    assert_false(check(t, RQ_COMPARE_LESS, "m", NULL, "x"));
    assert_true(check(t, RQ_COMPARE_LESS_OR_EQUAL, "m", NULL, "m"));
    assert_true(check(t, RQ_COMPARE_GREATER, "z", NULL, "m"));
    assert_false(check(t, RQ_COMPARE_GREATER, "m", NULL, "x"));
    assert_true(check(t, RQ_COMPARE_GREATER_OR_EQUAL, "m", NULL, "m"));
    assert_false(check(t, 0, "", "ValueFilter(=, 'binary:other')", "x"));
    assert_true(check(t, 0, "", "ValueFilter(=, 'binary:m')", "end"));
    expect_row(t, "r", "f:q@1=end");
    /* Several changes; and one whose result is wanted. */
    bool done = false;
    rq_check is_end = {.size = sizeof is_end,
                       .family = rq_text("f"),
                       .qualifier = rq_text("q"),
                       .value = rq_text("end")};
    rq_edit set = {
        .family = rq_text("g"), .qualifier = rq_text("x"), .value = rq_text("1"), .timestamp = 2};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("q")};
    rq_change changes[] = {{.size = sizeof(rq_change),
                            .kind = RQ_PUT,
                            .row = rq_text("r"),
                            .edits = &set,
                            .edit_count = 1},
                           {.size = sizeof(rq_change),
                            .kind = RQ_DELETE,
                            .row = rq_text("r"),
                            .edits = &unset,
                            .edit_count = 1}};
    OK(rq_table_check_and_change(t, &is_end, changes, 2, &done, NULL, &why));
    assert_true(done);
    expect_row(t, "r", "g:x@2=1");
    rq_check is_one = {.size = sizeof is_one,
                       .family = rq_text("g"),
                       .qualifier = rq_text("x"),
                       .value = rq_text("1")};
    rq_edit more = {.family = rq_text("f"), .qualifier = rq_text("n"), .amount = 7};
    rq_change add = {.size = sizeof add,
                     .kind = RQ_INCREMENT,
                     .row = rq_text("r"),
                     .edits = &more,
                     .edit_count = 1};
    rq_row *row = NULL;
    OK(rq_table_check_and_change(t, &is_one, &add, 1, &done, &row, &why));
    assert_true(done);
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    finish(t, "checks");
}

static void changes_of_a_row_are_atomic(void **state)
{
    (void)state;
    rq_table *t = make("atomic", "1", NULL, 0);
    put(t, "r", "f", "old", "v", 1);
    rq_edit set = {
        .family = rq_text("f"), .qualifier = rq_text("new"), .value = rq_text("w"), .timestamp = 5};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("old")};
    rq_edit wrong = {.family = rq_text("h"), .qualifier = rq_text("x"), .value = rq_text("w")};
    rq_change changes[3] = {{.size = sizeof(rq_change),
                             .kind = RQ_PUT,
                             .row = rq_text("r"),
                             .edits = &set,
                             .edit_count = 1},
                            {.size = sizeof(rq_change),
                             .kind = RQ_DELETE,
                             .row = rq_text("r"),
                             .edits = &unset,
                             .edit_count = 1},
                            {.size = sizeof(rq_change),
                             .kind = RQ_PUT,
                             .row = rq_text("r"),
                             .edits = &wrong,
                             .edit_count = 1}};
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_change_row(t, changes, 3, &why));
    expect_row(t, "r", "f:old@1=v");
    OK(rq_table_change_row(t, changes, 2, &why));
    expect_row(t, "r", "f:new@5=w");
    changes[1].row = rq_text("s");
    FAILS(RQ_E_INVALID, rq_table_change_row(t, changes, 2, &why));
    finish(t, "atomic");
}

/* By its timestamp: no clock has to pass. */
static void a_cell_expires(void **state)
{
    (void)state;
    rq_table *t = make("ttl", "1", NULL, 0);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("v")};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("lives"),
                        .edits = &edit,
                        .edit_count = 1,
                        .ttl_ms = 3600000};
    OK(rq_table_change(t, &change, NULL, &why));
    edit.timestamp = 1;
    change.row = rq_text("expired");
    OK(rq_table_change(t, &change, NULL, &why));
    rq_get_request get = {.size = sizeof get, .row = rq_text("lives")};
    rq_row *row;
    OK(rq_table_get(t, &get, &row, &why));
    assert_int_equal(row->count, 1);
    rq_row_free(row);
    get.row = rq_text("expired");
    OK(rq_table_get(t, &get, &row, &why));
    assert_int_equal(row->count, 0);
    rq_row_free(row);
    finish(t, "ttl");
}

/* --- batches ---------------------------------------------------------------------------------- */

static void a_batch_has_an_outcome_for_each_action(void **state)
{
    (void)state;
    rq_bytes splits[] = {rq_text("h"), rq_text("p")};
    rq_table *t = make("batches", "1", splits, 2);
    put(t, "x", "f", "q", "x", 1);
    rq_get_request get_x = {.size = sizeof get_x, .row = rq_text("x")};
    rq_get_request get_a = {.size = sizeof get_a, .row = rq_text("a")};
    rq_column absent = {rq_text("h"), {NULL, 0}};
    rq_get_request get_wrong = {
        .size = sizeof get_wrong, .row = rq_text("k"), .columns = &absent, .column_count = 1};
    rq_edit set = {
        .family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("a"), .timestamp = 1};
    rq_edit add = {.family = rq_text("f"), .qualifier = rq_text("n"), .amount = 3};
    rq_edit unset = {.family = rq_text("f"), .qualifier = rq_text("q")};
    rq_change put_a = {
        .size = sizeof put_a, .kind = RQ_PUT, .row = rq_text("a"), .edits = &set, .edit_count = 1};
    rq_change add_m = {.size = sizeof add_m,
                       .kind = RQ_INCREMENT,
                       .row = rq_text("m"),
                       .edits = &add,
                       .edit_count = 1};
    rq_change del_x = {.size = sizeof del_x,
                       .kind = RQ_DELETE,
                       .row = rq_text("x"),
                       .edits = &unset,
                       .edit_count = 1};
    rq_change both[] = {put_a, put_a};
    rq_edit set2 = {
        .family = rq_text("g"), .qualifier = rq_text("q"), .value = rq_text("b"), .timestamp = 1};
    both[0].row = both[1].row = rq_text("b");
    both[1].edits = &set2;
    rq_action actions[] = {{&get_x, NULL, 0}, {NULL, &del_x, 1}, {&get_x, NULL, 0},
                           {NULL, &add_m, 1}, {NULL, &put_a, 1}, {&get_a, NULL, 0},
                           {NULL, &add_m, 1}, {NULL, both, 2}};
    rq_results *r = NULL;
    OK(rq_table_batch(t, actions, 8, &r, &why));
    assert_int_equal(r->count, 8);
    assert_true(is(r->items[0].row->cells[0].value, "x"));
    assert_null(r->items[1].row);
    assert_true(r->items[2].row->count <= 1); /* a get sees changes of its batch, or does not */
    assert_int_equal(((const uint8_t *)r->items[3].row->cells[0].value.data)[7], 3);
    assert_int_equal(((const uint8_t *)r->items[6].row->cells[0].value.data)[7], 6);
    rq_results_free(r);
    expect_row(t, "b", "f:q@1=a g:q@1=b");
    expect_row(t, "x", "");
    rq_action failing[] = {{&get_a, NULL, 0}, {&get_wrong, NULL, 0}, {NULL, &put_a, 1}};
    r = NULL;
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_table_batch(t, failing, 3, &r, &why));
    assert_int_equal(why.action, 1);
    assert_int_equal(r->items[0].code, RQ_OK);
    assert_int_equal(r->items[1].code, RQ_E_NO_SUCH_FAMILY);
    assert_false(r->items[1].retryable);
    assert_string_equal(r->items[1].hbase_class,
                        "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
    assert_int_equal(r->items[2].code, RQ_OK);
    rq_results_free(r);
    OK(rq_table_batch(t, actions, 0, &r, &why));
    assert_int_equal(r->count, 0);
    rq_results_free(r);
    failing[1] = (rq_action){NULL, NULL, 0};
    FAILS(RQ_E_INVALID, rq_table_batch(t, failing, 3, &r, &why));
    assert_int_equal(why.action, 1);
    finish(t, "batches");
}

static void large_batches_and_values_fit(void **state)
{
    (void)state;
    enum { ROWS = 1000, BYTES = 1 << 20 };
    rq_bytes splits[] = {rq_text("r0300"), rq_text("r0700")};
    rq_table *t = make("large", "1", splits, 2);
    static char rows[ROWS][8];
    static rq_edit edits[ROWS];
    static rq_change changes[ROWS];
    static rq_get_request gets[ROWS];
    static rq_action actions[ROWS];
    for (int i = 0; i < ROWS; i++) {
        snprintf(rows[i], sizeof rows[i], "r%04d", i * 7 % ROWS);
        edits[i] =
            (rq_edit){.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text(rows[i])};
        changes[i] = (rq_change){.size = sizeof changes[i],
                                 .kind = RQ_PUT,
                                 .row = rq_text(rows[i]),
                                 .edits = &edits[i],
                                 .edit_count = 1};
        actions[i] = (rq_action){NULL, &changes[i], 1};
        gets[i] = (rq_get_request){.size = sizeof gets[i], .row = rq_text(rows[i])};
    }
    OK(rq_table_batch(t, actions, ROWS, NULL, &why));
    for (int i = 0; i < ROWS; i++)
        actions[i] = (rq_action){&gets[i], NULL, 0};
    rq_results *r;
    OK(rq_table_batch(t, actions, ROWS, &r, &why));
    for (int i = 0; i < ROWS; i++)
        assert_true(is(r->items[i].row->cells[0].value, rows[i]));
    rq_results_free(r);
    char *value = malloc(BYTES), *back = malloc(BYTES);
    size_t len;
    for (int i = 0; i < BYTES; i++)
        value[i] = (char)(i * 31 >> 3);
    OK(rq_put_value(t, rq_text("big"), rq_text("g"), rq_text("q"), rq_bytes_of(value, BYTES),
                    &why));
    OK(rq_table_flush(at.db, "large", &why));
    OK(rq_get_value(t, rq_text("big"), rq_text("g"), rq_text("q"), back, BYTES, &len, &why));
    assert_int_equal(len, BYTES);
    assert_memory_equal(value, back, BYTES);
    free(value);
    free(back);
    finish(t, "large");
}

/* --- scans ------------------------------------------------------------------------------------ */

/* The scan's rows as "a b c", parts of a row as "a a|"; checks that values belong to rows. */
static void expect_scan(rq_table *t, const rq_scan_request *scan, const char *expected)
{
    char text[4096];
    size_t len = 0;
    rq_scanner *s = NULL;
    rq_row *row;
    text[0] = '\0';
    OK(rq_table_scan(t, scan, &s, &why));
    for (;;) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        assert_true(row->count > 0);
        assert_true(len + 50 < sizeof text);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", len > 0 ? " " : "",
                                (int)row->cells[0].row.len, (const char *)row->cells[0].row.data);
        rq_row_free(row);
    }
    OK(rq_scanner_next(s, &row, &why)); /* still the end */
    assert_null(row);
    rq_scanner_close(s);
    assert_string_equal(text, expected);
}

static rq_scan_request scan_of(const char *start, const char *stop)
{
    return (rq_scan_request){
        .size = sizeof(rq_scan_request), .start = rq_text(start), .stop = rq_text(stop)};
}

static void scans_return_ranges(void **state)
{
    (void)state;
    rq_bytes splits[] = {rq_text("c"), rq_text("e"), rq_text("g")};
    rq_table *t = make("scans", "3", splits, 3);
    char row[2] = "a";
    for (; row[0] <= 'i'; row[0]++) {
        put(t, row, "f", "q", row, 1);
        put(t, row, "f", "r", row, 1);
        put(t, row, "g", "q", row, 1);
    }
    rq_scan_request all = scan_of("", "");
    expect_scan(t, &all, "a b c d e f g h i");
    for (uint32_t caching = 1; caching <= 3; caching++) {
        rq_scan_request s = scan_of("b", "g");
        s.caching = caching;
        expect_scan(t, &s, "b c d e f");
        s.includes_stop = true;
        expect_scan(t, &s, "b c d e f g");
        s.excludes_start = true;
        expect_scan(t, &s, "c d e f g");
        s.limit = 4;
        expect_scan(t, &s, "c d e f");
        s = scan_of("g", "b");
        s.reversed = true;
        s.caching = caching;
        expect_scan(t, &s, "g f e d c");
        s.includes_stop = true;
        expect_scan(t, &s, "g f e d c b");
        s.excludes_start = true;
        expect_scan(t, &s, "f e d c b");
        s.limit = 2;
        expect_scan(t, &s, "f e");
        s = scan_of("", "");
        s.reversed = true;
        s.caching = caching;
        expect_scan(t, &s, "i h g f e d c b a");
        s = scan_of("zz", "");
        s.reversed = true;
        expect_scan(t, &s, "i h g f e d c b a");
    }
    rq_scan_request s = scan_of("x", "");
    expect_scan(t, &s, "");
    s = scan_of("", "");
    s.fetch_bytes = 1;
    expect_scan(t, &s, "a b c d e f g h i");
    s = scan_of("", "");
    s.filter_text = "RowFilter(>=, 'binary:d') AND PageFilter(10)";
    expect_scan(t, &s, "d e f g h i");
    rq_column column = {rq_text("g"), {NULL, 0}};
    s = scan_of("a", "c");
    s.columns = &column;
    s.column_count = 1;
    expect_scan(t, &s, "a b");
    s = scan_of("b", "b");
    s.includes_stop = true;
    expect_scan(t, &s, "b");
    s = scan_of("a", "c");
    s.batch = 2; /* three cells: two parts */
    expect_scan(t, &s, "a a b b");
    s.batch = 3;
    expect_scan(t, &s, "a b");
    s.batch = 1;
    s.limit = 1;
    expect_scan(t, &s, "a a a");
    s.caching = 1;
    expect_scan(t, &s, "a a a");
    /* An open scanner is closed early; and one that was never used. */
    rq_scanner *open;
    rq_row *first;
    s = scan_of("", "");
    s.caching = 1;
    OK(rq_table_scan(t, &s, &open, &why));
    OK(rq_scanner_next(open, &first, &why));
    assert_true(is(first->cells[0].row, "a"));
    assert_false(first->is_partial);
    rq_row_free(first);
    rq_scanner_close(open);
    OK(rq_table_scan(t, &s, &open, &why));
    rq_scanner_close(open);
    finish(t, "scans");
}

static void raw_scans_show_delete_markers(void **state)
{
    (void)state;
    rq_table *t = make("raw", "3", NULL, 0);
    put(t, "r", "f", "q", "v", 1);
    OK(erase(t, "r", RQ_DELETE_COLUMN, "q", 2));
    rq_scan_request s = scan_of("", "");
    expect_scan(t, &s, "");
    s.raw = true;
    s.max_versions = RQ_ALL_VERSIONS;
    rq_scanner *scanner;
    rq_row *row;
    OK(rq_table_scan(t, &s, &scanner, &why));
    OK(rq_scanner_next(scanner, &row, &why));
    assert_int_equal(row->count, 2);
    assert_int_equal(row->cells[0].type, RQ_KV_DELETE_COLUMN);
    assert_int_equal(row->cells[1].type, RQ_KV_PUT);
    rq_row_free(row);
    rq_scanner_close(scanner);
    /* Errors come with the first row. */
    rq_column column = {rq_text("h"), {NULL, 0}};
    s = scan_of("", "");
    s.columns = &column;
    s.column_count = 1;
    OK(rq_table_scan(t, &s, &scanner, &why));
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_scanner_next(scanner, &row, &why));
    OK(rq_scanner_next(scanner, &row, &why));
    assert_null(row);
    rq_scanner_close(scanner);
    finish(t, "raw");
}

/* --- threads ---------------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    rq_table *table;
    int number;
    rq_err rc;
    rq_failure why;
    int rows;
} worker;

enum { WORKERS = 8, ROUNDS = 100 };

static void *work(void *arg)
{
    worker *w = arg;
    char row[16], buf[16];
    int64_t sum;
    size_t len;
    for (int i = 0; i < ROUNDS && w->rc == RQ_OK; i++) {
        snprintf(row, sizeof row, "w%d-%03d", w->number, i);
        w->rc =
            rq_put_value(w->table, rq_text(row), rq_text("f"), rq_text("q"), rq_text(row), &w->why);
        if (w->rc == RQ_OK)
            w->rc = rq_get_value(w->table, rq_text(row), rq_text("f"), rq_text("q"), buf,
                                 sizeof buf, &len, &w->why);
        if (w->rc == RQ_OK && (len != strlen(row) || memcmp(buf, row, len) != 0))
            w->rc = RQ_E_CORRUPT;
        if (w->rc == RQ_OK)
            w->rc = rq_add_value(w->table, rq_text("sum"), rq_text("g"), rq_text("n"), 1, &sum,
                                 &w->why);
    }
    rq_scan_request scan = {
        .size = sizeof scan, .start = rq_text("w"), .stop = rq_text("x"), .caching = 50};
    rq_scanner *s;
    rq_row *r = NULL;
    if (w->rc == RQ_OK) w->rc = rq_table_scan(w->table, &scan, &s, &w->why);
    if (w->rc != RQ_OK) return NULL;
    while ((w->rc = rq_scanner_next(s, &r, &w->why)) == RQ_OK && r != NULL) {
        w->rows++;
        rq_row_free(r);
    }
    rq_scanner_close(s);
    return NULL;
}

static void threads_share_a_table(void **state)
{
    (void)state;
    static worker workers[WORKERS];
    rq_bytes splits[] = {rq_text("w2"), rq_text("w5")};
    rq_table *t = make("threads", "1", splits, 2);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.table = t, .number = i, .why = {.size = sizeof(rq_failure)}};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    int all = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].rc != RQ_OK)
            fail_msg("%s: %s", rq_err_name(workers[i].rc), workers[i].why.message);
        assert_true(workers[i].rows >= ROUNDS);
        all = workers[i].rows > all ? workers[i].rows : all;
    }
    assert_int_equal(all, WORKERS * ROUNDS);
    int64_t sum;
    OK(rq_add_value(t, rq_text("sum"), rq_text("g"), rq_text("n"), 0, &sum, &why));
    assert_int_equal(sum, WORKERS * ROUNDS);
    finish(t, "threads");
}

/* --- life ------------------------------------------------------------------------------------- */

static int open_db(void **state)
{
    (void)state;
    rq_connect_options o = {.size = sizeof o};
    rq_err rc = rq_connect(at.url, &o, &at.db, &why);
    if (rc != RQ_OK) fprintf(stderr, "%s: %s: %s\n", at.url, rq_err_name(rc), why.message);
    return rc == RQ_OK ? 0 : -1;
}

static int close_db(void **state)
{
    (void)state;
    return at.db == NULL || rq_disconnect(at.db, &why) == RQ_OK ? 0 : -1;
}

/* The last test: it closes the database. */
static void a_closed_database_says_so(void **state)
{
    (void)state;
    rq_table *t = make("closed", "1", NULL, 0);
    rq_scan_request scan = scan_of("", "");
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    rq_scanner *used, *unused;
    rq_row *row;
    scan.caching = 1;
    put(t, "r", "f", "q", "v", 1);
    put(t, "s", "f", "q", "v", 1);
    OK(rq_table_scan(t, &scan, &used, &why));
    OK(rq_table_scan(t, &scan, &unused, &why));
    OK(rq_scanner_next(used, &row, &why));
    OK(rq_disconnect(at.db, &why));
    at.db = NULL;
    assert_true(is(row->cells[0].value, "v")); /* results live on */
    rq_row_free(row);
    FAILS(RQ_E_CLOSED, rq_table_get(t, &get, &row, &why));
    FAILS(RQ_E_CLOSED, rq_scanner_next(used, &row, &why));
    FAILS(RQ_E_CLOSED, rq_table_scan(t, &scan, &used, &why));
    rq_table_close(t);
    rq_scanner_close(used);
    rq_scanner_close(unused);
    if (strcmp(at.url, "memory:") == 0) return;
    OK(rq_connect(at.url, NULL, &at.db, &why));
    OK(rq_table_open(at.db, "closed", &t, &why));
    finish(t, "closed");
}

static int run(const char *url)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_made_and_dropped),
        cmocka_unit_test(a_table_is_described),
        cmocka_unit_test(wrong_definitions_are_refused),
        cmocka_unit_test(namespaces_hold_tables),
        cmocka_unit_test(a_get_picks_cells),
        cmocka_unit_test(a_get_has_limits_and_filters),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(other_versions_structs_work),
        cmocka_unit_test(a_missing_or_disabled_table_is_told),
        cmocka_unit_test(deletes_remove_what_they_say),
        cmocka_unit_test(counters_and_appends_return_their_cells),
        cmocka_unit_test(a_check_decides),
        cmocka_unit_test(changes_of_a_row_are_atomic),
        cmocka_unit_test(a_cell_expires),
        cmocka_unit_test(a_batch_has_an_outcome_for_each_action),
        cmocka_unit_test(large_batches_and_values_fit),
        cmocka_unit_test(scans_return_ranges),
        cmocka_unit_test(raw_scans_show_delete_markers),
        cmocka_unit_test(threads_share_a_table),
        cmocka_unit_test(a_closed_database_says_so),
    };
    at = (fixture){.url = url};
    return cmocka_run_group_tests_name(url, tests, open_db, close_db);
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed += run(argv[i]);
    if (argc > 1) return failed;
    char folder[] = "/tmp/rq_api_XXXXXX", url[64], command[64];
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(url, sizeof url, "file:%s", folder);
    failed = run("memory:") + run(url);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}
