/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and namespaces: made, described, refused, dropped. Part of test_api. */
#include "api_rows.h"

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

static bool is_listed(const rq_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0) return true;
    return false;
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
    assert_string_equal(names->items[0], "default");
    assert_string_equal(names->items[1], "hbase");
    /* listed among namespaces of other programs on the server */
    assert_true(is_listed(names, "space"));
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

/* "name=value" of every property, ascending. */
static void expect_properties(const char *name, const char *expected)
{
    rq_namespace_info *info;
    char text[256] = "";
    OK(rq_namespace_describe(at.db, name, &info, &why));
    assert_string_equal(info->name, name);
    for (size_t i = 0; i < info->property_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=%s", i == 0 ? "" : " ",
                 info->properties[i].name, info->properties[i].value);
    rq_namespace_info_free(info);
    assert_string_equal(text, expected);
}

static void namespaces_are_described_and_altered(void **state)
{
    (void)state;
    rq_property first[] = {{"owner", "ann"}, {"cost", "7"}};
    rq_property second[] = {{"owner", "bob"}, {"cost", NULL}, {"absent", NULL}, {"note", ""}};
    rq_namespace_info *info = NULL;
    FAILS(RQ_E_NAMESPACE_NOT_FOUND, rq_namespace_describe(at.db, "altered", &info, &why));
    FAILS(RQ_E_NAMESPACE_NOT_FOUND, rq_namespace_alter(at.db, "altered", first, 2, &why));
    assert_string_equal(why.hbase_class, "org.apache.hadoop.hbase.NamespaceNotFoundException");
    assert_null(info);
    OK(rq_namespace_create(at.db, "altered", first, 2, &why));
    expect_properties("altered", "cost=7 owner=ann");
    OK(rq_namespace_alter(at.db, "altered", second, 4, &why));
    expect_properties("altered", "note= owner=bob");
    OK(rq_namespace_alter(at.db, "altered", NULL, 0, &why));
    expect_properties("altered", "note= owner=bob");
    OK(rq_namespace_drop(at.db, "altered", &why));
    FAILS(RQ_E_NAMESPACE_NOT_FOUND, rq_namespace_describe(at.db, "altered", &info, &why));
    expect_properties("default", "");
}

/* A quota that is not a positive number is refused, and the namespace stays unchanged. */
static void quotas_of_namespaces_are_checked(void **state)
{
    (void)state;
    rq_property tables = {"hbase.namespace.quota.maxtables", "1"};
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "limited:t", .families = &family, .family_count = 1};
    OK(rq_namespace_create(at.db, "limited", NULL, 0, &why));
    OK(rq_namespace_alter(at.db, "limited", &tables, 1, &why));
    tables.value = "0";
    FAILS(RQ_E_CONSTRAINT, rq_namespace_alter(at.db, "limited", &tables, 1, &why));
    tables.value = "many";
    FAILS(RQ_E_DO_NOT_RETRY, rq_namespace_alter(at.db, "limited", &tables, 1, &why));
    expect_properties("limited", "hbase.namespace.quota.maxtables=1");
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_disable(at.db, "limited:t", &why));
    OK(rq_table_drop(at.db, "limited:t", &why));
    OK(rq_namespace_drop(at.db, "limited", &why));
}

int run_definitions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_made_and_dropped),
        cmocka_unit_test(a_table_is_described),
        cmocka_unit_test(wrong_definitions_are_refused),
        cmocka_unit_test(namespaces_hold_tables),
        cmocka_unit_test(namespaces_are_described_and_altered),
        cmocka_unit_test(quotas_of_namespaces_are_checked),
    };
    return cmocka_run_group_tests_name("definitions", tests, open_db, close_db);
}
