/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: HBase's defaults, text forms, refusals, and serialization to the same bytes. */
#include "proto/hbase.pb-c.h"
#include "descriptor/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct pair {
    const char *key;
    const char *value;
} pair;

static ProtobufCBinaryData pb(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

/* Parses one family with these attributes, in a table with those attributes. */
static rq_err parse(const char *ns, const char *family, const pair *attributes, size_t count,
                    const pair *of_table, size_t table_count, rq_table_schema **ret, rq_error *why)
{
    Pb__BytesBytesPair pairs[32];
    Pb__BytesBytesPair *list[32];
    for (size_t i = 0; i < count + table_count; i++) {
        const pair *p = i < count ? &attributes[i] : &of_table[i - count];
        pb__bytes_bytes_pair__init(&pairs[i]);
        pairs[i].first = pb(p->key);
        pairs[i].second = pb(p->value);
        list[i] = &pairs[i];
    }
    Pb__ColumnFamilySchema f = PB__COLUMN_FAMILY_SCHEMA__INIT;
    f.name = pb(family);
    f.attributes = list;
    f.n_attributes = count;
    Pb__ColumnFamilySchema *families[] = {&f};
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = pb(ns);
    name.qualifier = pb("t");
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    t.table_name = &name;
    t.column_families = families;
    t.n_column_families = 1;
    t.attributes = list + count;
    t.n_attributes = table_count;
    uint8_t bytes[4096];
    assert_true(pb__table_schema__get_packed_size(&t) <= sizeof bytes);
    return rq_table_schema_parse(rq_slice_of(bytes, pb__table_schema__pack(&t, bytes)), ret, why);
}

static const char *text_of(const rq_attributes *a, const char *key, char buf[64])
{
    const rq_attribute *item = rq_attributes_find(a, key);
    if (item == NULL) return "(absent)";
    snprintf(buf, 64, "%.*s", (int)item->value.len, (const char *)item->value.ptr);
    return buf;
}

static void a_family_that_says_nothing_gets_hbases_defaults(void **state)
{
    (void)state;
    rq_table_schema *s;
    char buf[64];
    assert_int_equal(parse("default", "f", NULL, 0, NULL, 0, &s, NULL), RQ_OK);
    const rq_family_schema *f = &s->families[0];
    static const pair want[] = {
        {"BLOCKCACHE", "true"},          {"BLOCKSIZE", "65536"},
        {"BLOOMFILTER", "ROW"},          {"COMPRESSION", "NONE"},
        {"DATA_BLOCK_ENCODING", "NONE"}, {"INDEX_BLOCK_ENCODING", "NONE"},
        {"IN_MEMORY", "false"},          {"KEEP_DELETED_CELLS", "FALSE"},
        {"MIN_VERSIONS", "0"},           {"REPLICATION_SCOPE", "0"},
        {"TTL", "2147483647"},           {"VERSIONS", "1"},
    };
    assert_int_equal(f->attributes.count, RQ_ARRAY_LEN(want));
    for (size_t i = 0; i < RQ_ARRAY_LEN(want); i++)
        assert_string_equal(text_of(&f->attributes, want[i].key, buf), want[i].value);
    assert_int_equal(f->max_versions, 1);
    assert_int_equal(f->ttl_s, RQ_TTL_FOREVER);
    assert_int_equal(f->bloom, RQ_BLOOM_ROW);
    assert_true(f->block_cache);
    assert_true(rq_slice_eq(s->name, RQ_SLICE_LIT("t")));
    rq_table_schema_unref(s);
}

static void given_values_replace_defaults_and_are_honoured(void **state)
{
    (void)state;
    static const pair a[] = {{"VERSIONS", "7"},
                             {"MIN_VERSIONS", "2"},
                             {"TTL", "86400"},
                             {"BLOCKSIZE", "4096"},
                             {"BLOOMFILTER", "NONE"},
                             {"COMPRESSION", "snappy"},
                             {"IN_MEMORY", "TRUE"},
                             {"BLOCKCACHE", "false"},
                             {"KEEP_DELETED_CELLS", "ttl"},
                             {"MY_OWN", "kept"},
                             {"DATA_BLOCK_ENCODING", "FAST_DIFF"}};
    static const pair t[] = {{"READONLY", "true"},
                             {"MEMSTORE_FLUSHSIZE", "1048576"},
                             {"DURABILITY", "ASYNC_WAL"},
                             {"hbase.hstore.compaction.min", "5"}};
    rq_table_schema *s;
    char buf[64];
    rq_slice v;
    assert_int_equal(parse("ns", "f", a, RQ_ARRAY_LEN(a), t, RQ_ARRAY_LEN(t), &s, NULL), RQ_OK);
    const rq_family_schema *f = rq_table_schema_family(s, RQ_SLICE_LIT("f"));
    assert_int_equal(f->max_versions, 7);
    assert_int_equal(f->min_versions, 2);
    assert_int_equal(f->ttl_s, 86400);
    assert_int_equal(f->block_bytes, 4096);
    assert_int_equal(f->bloom, RQ_BLOOM_NONE);
    assert_int_equal(f->compression, RQ_COMPRESSION_SNAPPY);
    assert_int_equal(f->keep_deleted, RQ_KEEP_DELETED_TTL);
    assert_int_equal(f->encoding, RQ_ENCODING_FAST_DIFF);
    assert_true(f->in_memory);
    assert_false(f->block_cache);
    assert_string_equal(text_of(&f->attributes, "MY_OWN", buf), "kept");
    assert_string_equal(text_of(&f->attributes, "COMPRESSION", buf), "snappy");
    assert_true(s->read_only);
    assert_int_equal(s->flush_bytes, 1048576);
    assert_int_equal(s->durability, 2);
    assert_true(rq_slice_eq(s->name, RQ_SLICE_LIT("ns:t")));
    assert_true(rq_schema_setting(s, f, "hbase.hstore.compaction.min", &v));
    assert_true(rq_slice_eq(v, RQ_SLICE_LIT("5")));
    assert_false(rq_schema_setting(s, f, "hbase.hstore.compaction.max", &v));
    assert_null(rq_table_schema_family(s, RQ_SLICE_LIT("g")));
    rq_table_schema_unref(s);
}

/* HBASE: StoreUtils.createStoreConfiguration: the configuration added last takes precedence. */
static void a_familys_attributes_precede_its_configuration_and_the_table(void **state)
{
    (void)state;
    Pb__BytesBytesPair attribute = PB__BYTES_BYTES_PAIR__INIT, *attributes[] = {&attribute};
    Pb__NameStringPair set[2] = {PB__NAME_STRING_PAIR__INIT, PB__NAME_STRING_PAIR__INIT};
    Pb__NameStringPair *configuration[] = {&set[0], &set[1]};
    Pb__BytesBytesPair of_table[2] = {PB__BYTES_BYTES_PAIR__INIT, PB__BYTES_BYTES_PAIR__INIT};
    Pb__BytesBytesPair *table_attributes[] = {&of_table[0], &of_table[1]};
    Pb__ColumnFamilySchema f = PB__COLUMN_FAMILY_SCHEMA__INIT, *families[] = {&f};
    Pb__TableName name = PB__TABLE_NAME__INIT;
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    uint8_t bytes[1024];
    rq_table_schema *s;
    rq_slice v;
    attribute.first = pb("a.b");
    attribute.second = pb("attribute");
    set[0].name = set[0].value = (char *)(uintptr_t) "a.b";
    set[1].name = (char *)(uintptr_t) "a.c";
    set[1].value = (char *)(uintptr_t) "configuration";
    of_table[0].first = pb("a.b");
    of_table[1].first = pb("a.c");
    of_table[0].second = of_table[1].second = pb("table");
    name.namespace_ = pb("default");
    name.qualifier = pb("t");
    f.name = pb("f");
    f.attributes = attributes;
    f.n_attributes = 1;
    f.configuration = configuration;
    f.n_configuration = 2;
    t.table_name = &name;
    t.column_families = families;
    t.n_column_families = 1;
    t.attributes = table_attributes;
    t.n_attributes = 2;
    assert_true(pb__table_schema__get_packed_size(&t) <= sizeof bytes);
    assert_int_equal(
        rq_table_schema_parse(rq_slice_of(bytes, pb__table_schema__pack(&t, bytes)), &s, NULL),
        RQ_OK);
    assert_true(rq_schema_setting(s, &s->families[0], "a.b", &v));
    assert_true(rq_slice_eq(v, RQ_SLICE_LIT("attribute")));
    assert_true(rq_schema_setting(s, &s->families[0], "a.c", &v));
    assert_true(rq_slice_eq(v, RQ_SLICE_LIT("configuration")));
    assert_true(rq_schema_setting(s, NULL, "a.c", &v));
    assert_true(rq_slice_eq(v, RQ_SLICE_LIT("table")));
    rq_table_schema_unref(s);
}

static void times_and_sizes_in_words_become_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *key, *text, *number;
    } cases[] = {
        {"TTL", "FOREVER", "2147483647"},     {"TTL", "1 DAY", "86400"},
        {"TTL", "1 day 2 hours", "93600"},    {"TTL", "90 SECONDS", "90"},
        {"TTL", "3 MINUTES 1 SECOND", "181"}, {"BLOCKSIZE", "64 KB", "65536"},
        {"BLOCKSIZE", "1 MB", "1048576"},     {"BLOCKSIZE", "65536 B (64KB)", "65536"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_table_schema *s;
        char buf[64];
        pair a = {cases[i].key, cases[i].text};
        assert_int_equal(parse("default", "f", &a, 1, NULL, 0, &s, NULL), RQ_OK);
        assert_string_equal(text_of(&s->families[0].attributes, cases[i].key, buf),
                            cases[i].number);
        rq_table_schema_unref(s);
    }
}

static void invalid_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"VERSIONS", "many", "For input string: \"many\""},
        {"TTL", "1 FORTNIGHT", "For input string: \"1 FORTNIGHT\""},
        {"VERSIONS", "99999999999", "For input string: \"99999999999\""},
        {"BLOOMFILTER", "COLUMN",
         "No enum constant org.apache.hadoop.hbase.regionserver.BloomType.COLUMN"},
        {"COMPRESSION", "RAR",
         "No enum constant org.apache.hadoop.hbase.io.compress.Compression.Algorithm.RAR"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_table_schema *s;
        rq_error why = {0};
        pair a = {cases[i].key, cases[i].value};
        assert_int_equal(parse("default", "f", &a, 1, NULL, 0, &s, &why), RQ_E_ILLEGAL_ARGUMENT);
        assert_string_equal(why.message, cases[i].message);
    }
}

static void invalid_family_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".f", "a:b", "a/b", "recovered.edits", "a\x01"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++) {
        rq_table_schema *s;
        assert_int_equal(parse("default", names[i], NULL, 0, NULL, 0, &s, NULL),
                         RQ_E_ILLEGAL_ARGUMENT);
    }
}

static void parsing_what_was_serialised_changes_nothing(void **state)
{
    (void)state;
    static const pair a[] = {{"VERSIONS", "3"}, {"TTL", "2 DAYS"}, {"Z", "z"}};
    rq_table_schema *s;
    rq_table_schema *again;
    assert_int_equal(parse("ns", "f", a, 3, a, 1, &s, NULL), RQ_OK);
    assert_int_equal(rq_table_schema_parse(rq_table_schema_pb(s), &again, NULL), RQ_OK);
    assert_true(rq_slice_eq(rq_table_schema_pb(s), rq_table_schema_pb(again)));
    rq_table_schema_unref(s);
    rq_table_schema_unref(again);
}

static void garbage_is_no_schema(void **state)
{
    (void)state;
    rq_table_schema *s;
    assert_int_equal(rq_table_schema_parse(RQ_SLICE_LIT("\xff\xff\xff"), &s, NULL),
                     RQ_E_ILLEGAL_ARGUMENT);
    assert_int_equal(rq_table_schema_parse((rq_slice){0}, &s, NULL), RQ_E_ILLEGAL_ARGUMENT);
}

static void the_default_namespace_is_not_part_of_a_tables_name(void **state)
{
    (void)state;
    static const struct {
        const char *ns, *qualifier, *name;
    } cases[] = {
        {"default", "t", "t"}, {"ns", "t", "ns:t"}, {"hbase", "meta", "hbase:meta"},
        {"default", "", ""},   {"ns", "", "ns:"},   {"", "t", ":t"},
    };
    rq_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rq_slice name = rq_table_name_join(&arena, rq_slice_cstr(cases[i].ns),
                                           rq_slice_cstr(cases[i].qualifier));
        assert_non_null(name.ptr);
        assert_true(rq_slice_eq(name, rq_slice_cstr(cases[i].name)));
    }
    assert_string_equal(
        "", (const char *)rq_table_name_join(&arena, RQ_SLICE_LIT("default"), (rq_slice){0}).ptr);
    rq_arena_clear(&arena);
    rq_table_schema *s;
    assert_int_equal(parse("ns", "f", NULL, 0, NULL, 0, &s, NULL), RQ_OK);
    assert_true(rq_slice_eq(s->name, RQ_SLICE_LIT("ns:t")));
    rq_table_schema_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_that_says_nothing_gets_hbases_defaults),
        cmocka_unit_test(given_values_replace_defaults_and_are_honoured),
        cmocka_unit_test(a_familys_attributes_precede_its_configuration_and_the_table),
        cmocka_unit_test(times_and_sizes_in_words_become_numbers),
        cmocka_unit_test(invalid_values_are_refused),
        cmocka_unit_test(invalid_family_names_are_refused),
        cmocka_unit_test(parsing_what_was_serialised_changes_nothing),
        cmocka_unit_test(garbage_is_no_schema),
        cmocka_unit_test(the_default_namespace_is_not_part_of_a_tables_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
