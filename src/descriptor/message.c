/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors from and to protobuf. A family starts with HBase's defaults, which the message
 * overrides (HBASE: ColumnFamilyDescriptorBuilder, ProtobufUtil.toColumnFamilyDescriptor). A table
 * has no defaults; its old `configuration` list is merged into the attributes (HBASE:
 * ProtobufUtil.toTableDescriptor). */
#include "descriptor/descriptor_priv.h"

#include <stdlib.h>

static const struct {
    const char *key;
    const char *value;
} family_defaults[] = {
    {"BLOCKCACHE", "true"},     {"BLOCKSIZE", "65536"},          {"BLOOMFILTER", "ROW"},
    {"COMPRESSION", "NONE"},    {"DATA_BLOCK_ENCODING", "NONE"}, {"INDEX_BLOCK_ENCODING", "NONE"},
    {"IN_MEMORY", "false"},     {"KEEP_DELETED_CELLS", "FALSE"}, {"MIN_VERSIONS", "0"},
    {"REPLICATION_SCOPE", "0"}, {"TTL", "2147483647"},           {"VERSIONS", "1"},
};

/* HBASE: ColumnFamilyDescriptorBuilder.isLegalColumnFamilyName, its texts. */
static rq_err check_family_name(rq_slice name, rq_error *why)
{
    if (name.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name can not be empty");
    if (name.len > RQ_FAMILY_LEN_MAX)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name is longer than %d bytes",
                       RQ_FAMILY_LEN_MAX);
    if (name.ptr[0] == '.')
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                       "Column Family names cannot start with a period: %.*s", (int)name.len,
                       (const char *)name.ptr);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        if (c < 0x20 || c == 0x7f || c == ':' || c == '\\' || c == '/')
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "Illegal character <%d>. Column Family names cannot contain control "
                           "characters or colons: %.*s",
                           c, (int)name.len, (const char *)name.ptr);
    }
    if (rq_slice_eq(name, RQ_SLICE_LIT("recovered.edits")))
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Column Family name cannot be: recovered.edits");
    return RQ_OK;
}

/* --- from protobuf ---------------------------------------------------------------------------- */

static rq_slice pb_bytes(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

typedef struct given {
    rq_attribute attribute;
    size_t position; /* among attributes with equal keys the one with the highest position counts */
} given;

static int compare_given(const void *a, const void *b)
{
    const given *x = a;
    const given *y = b;
    int c = rq_slice_compare(x->attribute.key, y->attribute.key);
    return c != 0 ? c : (x->position > y->position) - (x->position < y->position);
}

/* Sets the attributes to those in `list`, as HBase's setValue would one after another: the last
 * value of a key counts, and an empty value removes the key. `list` begins with the present
 * attributes. REQUIRES: ret->items has room for `count`. */
static void set_given(rq_attributes *ret, given *list, size_t count)
{
    qsort(list, count, sizeof *list, compare_given);
    ret->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool last =
            i + 1 == count || !rq_slice_eq(list[i].attribute.key, list[i + 1].attribute.key);
        if (last && list[i].attribute.value.len > 0) ret->items[ret->count++] = list[i].attribute;
    }
}

static void give(given *list, size_t *count, rq_slice key, rq_slice value)
{
    list[*count] = (given){{key, value}, *count};
    ++*count;
}

/* The slices point into the unpacked message, which is in the arena. */
static rq_err take_pairs(rq_arena *arena, rq_attributes *ret, Pb__BytesBytesPair **pairs,
                         size_t pair_count, Pb__NameStringPair **strings, size_t string_count)
{
    size_t room = ret->count + pair_count + string_count + 1;
    size_t count = 0;
    given *list = rq_arena_calloc(arena, room, sizeof *list);
    if (ret->items == NULL) ret->items = rq_arena_calloc(arena, room, sizeof *ret->items);
    if (ret->items == NULL || list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < ret->count; i++)
        give(list, &count, ret->items[i].key, ret->items[i].value);
    for (size_t i = 0; i < pair_count; i++)
        give(list, &count, pb_bytes(pairs[i]->first), pb_bytes(pairs[i]->second));
    for (size_t i = 0; i < string_count; i++)
        give(list, &count, rq_slice_cstr(strings[i]->name), rq_slice_cstr(strings[i]->value));
    set_given(ret, list, count);
    return RQ_OK;
}

static rq_err take_family(rq_arena *arena, const Pb__ColumnFamilySchema *m, rq_family_schema *f,
                          rq_error *why)
{
    f->name = pb_bytes(m->name);
    RQ_TRY(check_family_name(f->name, why));
    f->attributes.items = rq_arena_calloc(
        arena, RQ_ARRAY_LEN(family_defaults) + m->n_attributes + 1, sizeof *f->attributes.items);
    if (f->attributes.items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < RQ_ARRAY_LEN(family_defaults); i++)
        rq__attribute_set(&f->attributes, rq_slice_cstr(family_defaults[i].key),
                          rq_slice_cstr(family_defaults[i].value));
    RQ_TRY(take_pairs(arena, &f->attributes, m->attributes, m->n_attributes, NULL, 0));
    RQ_TRY(take_pairs(arena, &f->configuration, NULL, 0, m->configuration, m->n_configuration));
    return rq__family_values(arena, f, why);
}

static int compare_families(const void *a, const void *b)
{
    const rq_family_schema *x = a;
    const rq_family_schema *y = b;
    return rq_slice_compare(x->name, y->name);
}

static rq_err take_name(rq_arena *arena, const Pb__TableSchema *m, rq_table_schema *t,
                        rq_error *why)
{
    if (m->table_name == NULL)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "table descriptor without a name");
    t->ns = pb_bytes(m->table_name->namespace_);
    t->qualifier = pb_bytes(m->table_name->qualifier);
    if (t->qualifier.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Table qualifier must not be empty");
    if (t->ns.len == 0) t->ns = RQ_SLICE_LIT("default");
    t->name = rq_table_name_join(arena, t->ns, t->qualifier);
    return t->name.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__schema_take(rq_arena *arena, const Pb__TableSchema *m, rq_table_schema *t, rq_error *why)
{
    RQ_TRY(take_name(arena, m, t, why));
    RQ_TRY(take_pairs(arena, &t->attributes, m->attributes, m->n_attributes, m->configuration,
                      m->n_configuration));
    t->families = rq_arena_calloc(arena, m->n_column_families + 1, sizeof *t->families);
    if (t->families == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->n_column_families; i++)
        RQ_TRY(take_family(arena, m->column_families[i], &t->families[i], why));
    t->family_count = m->n_column_families;
    qsort(t->families, t->family_count, sizeof *t->families, compare_families);
    for (size_t i = 1; i < t->family_count; i++)
        if (rq_slice_eq(t->families[i - 1].name, t->families[i].name))
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT,
                           "Family '%.*s' already exists so cannot be added",
                           (int)t->families[i].name.len, (const char *)t->families[i].name.ptr);
    return rq__table_values(arena, t, why);
}

/* --- to protobuf ------------------------------------------------------------------------------ */

static ProtobufCBinaryData to_pb(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static rq_err pairs_to_pb(rq_arena *arena, const rq_attributes *a, Pb__BytesBytesPair ***ret)
{
    Pb__BytesBytesPair **list = rq_arena_calloc(arena, a->count + 1, sizeof *list);
    Pb__BytesBytesPair *items = rq_arena_calloc(arena, a->count + 1, sizeof *items);
    if (list == NULL || items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        pb__bytes_bytes_pair__init(&items[i]);
        items[i].first = to_pb(a->items[i].key);
        items[i].second = to_pb(a->items[i].value);
        list[i] = &items[i];
    }
    *ret = list;
    return RQ_OK;
}

static rq_err strings_to_pb(rq_arena *arena, const rq_attributes *a, Pb__NameStringPair ***ret)
{
    Pb__NameStringPair **list = rq_arena_calloc(arena, a->count + 1, sizeof *list);
    Pb__NameStringPair *items = rq_arena_calloc(arena, a->count + 1, sizeof *items);
    if (list == NULL || items == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        pb__name_string_pair__init(&items[i]);
        items[i].name = rq_arena_cstr(arena, a->items[i].key);
        items[i].value = rq_arena_cstr(arena, a->items[i].value);
        if (items[i].name == NULL || items[i].value == NULL) return RQ_E_NO_MEMORY;
        list[i] = &items[i];
    }
    *ret = list;
    return RQ_OK;
}

static rq_err family_to_pb(rq_arena *arena, const rq_family_schema *f, Pb__ColumnFamilySchema *m)
{
    pb__column_family_schema__init(m);
    m->name = to_pb(f->name);
    m->n_attributes = f->attributes.count;
    m->n_configuration = f->configuration.count;
    RQ_TRY(pairs_to_pb(arena, &f->attributes, &m->attributes));
    return strings_to_pb(arena, &f->configuration, &m->configuration);
}

rq_err rq__schema_pack(rq_arena *arena, const rq_table_schema *t, rq_slice *ret)
{
    Pb__TableName name;
    pb__table_name__init(&name);
    name.namespace_ = to_pb(t->ns);
    name.qualifier = to_pb(t->qualifier);
    Pb__TableSchema m;
    pb__table_schema__init(&m);
    m.table_name = &name;
    m.n_attributes = t->attributes.count;
    RQ_TRY(pairs_to_pb(arena, &t->attributes, &m.attributes));
    Pb__ColumnFamilySchema *families =
        rq_arena_calloc(arena, t->family_count + 1, sizeof *families);
    m.column_families = rq_arena_calloc(arena, t->family_count + 1, sizeof *m.column_families);
    if (families == NULL || m.column_families == NULL) return RQ_E_NO_MEMORY;
    m.n_column_families = t->family_count;
    for (size_t i = 0; i < t->family_count; i++) {
        RQ_TRY(family_to_pb(arena, &t->families[i], &families[i]));
        m.column_families[i] = &families[i];
    }
    uint8_t *out = rq_arena_alloc(arena, pb__table_schema__get_packed_size(&m) + 1);
    if (out == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(out, pb__table_schema__pack(&m, out));
    return RQ_OK;
}
