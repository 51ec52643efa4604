/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors as data; the schema's parser adds a family's default attributes. */
#include "catalog/system_tables.h"

#include "proto/hbase.pb-c.h"

typedef struct pair {
    const char *key, *value; /* key NULL ends a list */
} pair;

typedef struct family {
    const char *name; /* NULL ends a list */
    pair attributes[8];
} family;

typedef struct table {
    const char *ns, *qualifier;
    pair attributes[4];
    family families[5];
} table;

#define TRACKER                                                                                    \
    {                                                                                              \
        "hbase.store.file-tracker.impl", "DEFAULT"                                                 \
    }
#define META_FAMILY(versions, block)                                                               \
    {                                                                                              \
        {"VERSIONS", versions}, {"IN_MEMORY", "true"}, {"BLOOMFILTER", "ROWCOL"},                  \
            {"DATA_BLOCK_ENCODING", "ROW_INDEX_V1"}, {"REPLICATION_SCOPE", "0"},                   \
            {"BLOCKSIZE", block}, {NULL, NULL},                                                    \
    }

static const table tables[] = {
    [RQ__META] =
        {
            "hbase",
            "meta",
            {{"IS_META", "true"},
             {"coprocessor$1",
              "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|"},
             TRACKER},
            {
                {"info", META_FAMILY("3", "8192")},
                {"rep_barrier", META_FAMILY("2147483647", "65536")},
                {"table", META_FAMILY("3", "8192")},
            },
        },
    [RQ__NAMESPACE] =
        {
            "hbase",
            "namespace",
            {TRACKER},
            {{"info", {{"VERSIONS", "10"}, {"IN_MEMORY", "true"}, {"BLOCKSIZE", "8192"}}}},
        },
    /* HBASE: QuotaUtil.QUOTA_TABLE_DESC. */
    [RQ__QUOTA] =
        {
            "hbase",
            "quota",
            {TRACKER},
            {
                {"q", {{"VERSIONS", "1"}, {"BLOOMFILTER", "ROW"}, {"REPLICATION_SCOPE", "0"}}},
                {"u", {{"VERSIONS", "1"}, {"BLOOMFILTER", "ROW"}, {"REPLICATION_SCOPE", "0"}}},
            },
        },
    [RQ__RSGROUP] =
        {
            "hbase",
            "rsgroup",
            {{"SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy"},
             {"coprocessor$1",
              "|org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint|536870911|"},
             TRACKER},
            {{"m", {{NULL, NULL}}}},
        },
    [RQ__STORE] =
        {
            "master",
            "store",
            {TRACKER},
            {
                {"info", META_FAMILY("3", "8192")},
                {"proc", {{NULL, NULL}}},
                {"rs", {{NULL, NULL}}},
                {"state", {{NULL, NULL}}},
            },
        },
};

static ProtobufCBinaryData bytes_of(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

/* Fills a message's attribute list; false when out of memory. */
static bool fill(rq_arena *a, const pair *pairs, size_t max, Pb__BytesBytesPair ***ret,
                 size_t *ret_count)
{
    size_t n = 0;
    while (n < max && pairs[n].key != NULL)
        n++;
    Pb__BytesBytesPair *items = rq_arena_calloc(a, n + 1, sizeof *items);
    Pb__BytesBytesPair **list = rq_arena_calloc(a, n + 1, sizeof *list);
    if (items == NULL || list == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        pb__bytes_bytes_pair__init(&items[i]);
        items[i].first = bytes_of(pairs[i].key);
        items[i].second = bytes_of(pairs[i].value);
        list[i] = &items[i];
    }
    *ret = list;
    *ret_count = n;
    return true;
}

static rq_err build(rq_arena *a, const table *t, rq_table_schema **ret, rq_error *why)
{
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = bytes_of(t->ns);
    name.qualifier = bytes_of(t->qualifier);
    Pb__TableSchema m = PB__TABLE_SCHEMA__INIT;
    m.table_name = &name;
    if (!fill(a, t->attributes, RQ_ARRAY_LEN(t->attributes), &m.attributes, &m.n_attributes))
        return RQ_E_NO_MEMORY;
    Pb__ColumnFamilySchema families[RQ_ARRAY_LEN(t->families)];
    Pb__ColumnFamilySchema *list[RQ_ARRAY_LEN(t->families)];
    for (size_t i = 0; i < RQ_ARRAY_LEN(t->families) && t->families[i].name != NULL; i++) {
        pb__column_family_schema__init(&families[i]);
        families[i].name = bytes_of(t->families[i].name);
        if (!fill(a, t->families[i].attributes, RQ_ARRAY_LEN(t->families[i].attributes),
                  &families[i].attributes, &families[i].n_attributes))
            return RQ_E_NO_MEMORY;
        list[i] = &families[i];
        m.n_column_families = i + 1;
    }
    m.column_families = list;
    uint8_t *pb = rq_arena_alloc(a, pb__table_schema__get_packed_size(&m));
    if (pb == NULL) return RQ_E_NO_MEMORY;
    size_t len = pb__table_schema__pack(&m, pb);
    return rq_table_schema_parse(rq_slice_of(pb, len), ret, why);
}

rq_err rq__system_schema(rq__system_table which, rq_table_schema **ret, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = build(&a, &tables[which], ret, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__system_schema_check(rq__system_table which, const rq_table_schema *s, rq_error *why)
{
    const table *t = &tables[which];
    for (size_t i = 0; i < RQ_ARRAY_LEN(t->families) && t->families[i].name != NULL; i++)
        if (rq_table_schema_family(s, rq_slice_cstr(t->families[i].name)) == NULL)
            return rq_fail(why, RQ_E_CORRUPT, "its .tableinfo has no family %s",
                           t->families[i].name);
    return RQ_OK;
}
