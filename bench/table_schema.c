/* SPDX-License-Identifier: Apache-2.0 */
#include "table_schema.h"

#include "proto/hbase.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 4

static ProtobufCBinaryData binary(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

rq_table_schema *bench_table_schema(const char *table, const char *family,
                                    const char *const (*attributes)[2], size_t count)
{
    Pb__BytesBytesPair pairs[ATTRIBUTES_MAX], *list[ATTRIBUTES_MAX];
    for (size_t i = 0; i < count && i < ATTRIBUTES_MAX; i++) {
        pb__bytes_bytes_pair__init(&pairs[i]);
        pairs[i].first = binary(attributes[i][0]);
        pairs[i].second = binary(attributes[i][1]);
        list[i] = &pairs[i];
    }
    Pb__ColumnFamilySchema f = PB__COLUMN_FAMILY_SCHEMA__INIT, *families[] = {&f};
    f.name = binary(family);
    f.attributes = list;
    f.n_attributes = count;
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = binary("default");
    name.qualifier = binary(table);
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    t.table_name = &name;
    t.column_families = families;
    t.n_column_families = 1;
    uint8_t bytes[512];
    rq_table_schema *ret = NULL;
    rq_error why = {0};
    rq_err rc = RQ_E_INVALID; /* too many attributes, or too long ones */
    if (count <= ATTRIBUTES_MAX && pb__table_schema__get_packed_size(&t) <= sizeof bytes)
        rc = rq_table_schema_parse(rq_slice_of(bytes, pb__table_schema__pack(&t, bytes)), &ret,
                                   &why);
    if (rc != RQ_OK) {
        fprintf(stderr, "descriptor of table %s: %s %s\n", table, rq_err_text(rc), why.message);
        exit(1);
    }
    return ret;
}
