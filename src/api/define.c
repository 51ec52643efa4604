/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on definitions. The messages TableSchema and NamespaceDescriptor are made and
 * read here, once for all back ends (proto/hbase.proto has the fields). */
#include "api/api_priv.h"

#include "base/pb.h"

#include <stdlib.h>

rq_err rq__db_begin(rq_db *db, rq_slot **ret, rq_why *why)
{
    rq_why_clear(why);
    return db == NULL ? rq_fail(&why->error, RQ_E_INVALID, "the database is NULL")
                      : rq__slot_take(db, ret, why);
}

/* --- names ------------------------------------------------------------------------------------ */

rq_err rq__split_name(const char *name, rq_slice *ret_ns, rq_slice *ret_qualifier, rq_error *why)
{
    if (name == NULL || name[0] == '\0')
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "the name is empty");
    const char *colon = strchr(name, ':');
    *ret_ns = colon == NULL ? RQ_SLICE_LIT("default") : rq_slice_of(name, (size_t)(colon - name));
    *ret_qualifier = rq_slice_cstr(colon == NULL ? name : colon + 1);
    if (ret_ns->len == 0 || ret_qualifier->len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Table qualifier must not be empty: '%s'", name);
    return RQ_OK;
}

static rq_err define(rq_db *db, rq_defining *d, const char *table, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__split_name(table, &d->ns, &d->qualifier, &why.error);
    if (rc == RQ_OK) rc = db->backend->define(db, slot, d, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_drop(rq_db *db, const char *name, rq_failure *why)
{
    return define(db, &(rq_defining){.kind = RQ_DEFINE_DROP_TABLE}, name, why);
}

rq_err rq_table_enable(rq_db *db, const char *name, rq_failure *why)
{
    return define(db, &(rq_defining){.kind = RQ_DEFINE_ENABLE_TABLE}, name, why);
}

rq_err rq_table_disable(rq_db *db, const char *name, rq_failure *why)
{
    return define(db, &(rq_defining){.kind = RQ_DEFINE_DISABLE_TABLE}, name, why);
}

rq_err rq_table_truncate(rq_db *db, const char *name, bool preserve_splits, rq_failure *why)
{
    rq_defining d = {.kind = RQ_DEFINE_TRUNCATE_TABLE, .preserve_splits = preserve_splits};
    return define(db, &d, name, why);
}

rq_err rq_table_flush(rq_db *db, const char *name, rq_failure *why)
{
    return define(db, &(rq_defining){.kind = RQ_DEFINE_FLUSH_TABLE}, name, why);
}

/* --- messages, written ------------------------------------------------------------------------ */

/* A pair { name 1, value 2 } */
static rq_err put_properties(rq_buf *b, uint32_t field, const rq_property *list, size_t count,
                             rq_error *why)
{
    if (count > 0 && list == NULL) return rq_fail(why, RQ_E_INVALID, "the attributes are NULL");
    for (size_t i = 0; i < count; i++) {
        size_t at;
        if (list[i].name == NULL || list[i].value == NULL)
            return rq_fail(why, RQ_E_INVALID, "an attribute has no name or no value");
        RQ_TRY(rq_pb_begin(b, field, &at));
        RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(list[i].name)));
        RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(list[i].value)));
        RQ_TRY(rq_pb_end(b, at));
    }
    return RQ_OK;
}

/* What HBase's client sends: every attribute of ColumnFamilyDescriptorBuilder with its default. */
static const rq_property family_defaults[] = {
    {"BLOOMFILTER", "ROW"},          {"IN_MEMORY", "false"},          {"VERSIONS", "1"},
    {"KEEP_DELETED_CELLS", "FALSE"}, {"DATA_BLOCK_ENCODING", "NONE"}, {"COMPRESSION", "NONE"},
    {"TTL", "2147483647"},           {"MIN_VERSIONS", "0"},           {"BLOCKCACHE", "true"},
    {"BLOCKSIZE", "65536"},          {"REPLICATION_SCOPE", "0"},
};

static bool is_given(const rq_family *f, const char *name)
{
    for (size_t i = 0; i < f->attribute_count; i++)
        if (f->attributes[i].name != NULL && strcmp(f->attributes[i].name, name) == 0) return true;
    return false;
}

rq_err rq__put_family(rq_buf *b, const rq_family *f, rq_error *why)
{
    size_t at;
    if (f->name == NULL) return rq_fail(why, RQ_E_INVALID, "a family has no name");
    if (f->attribute_count > 0 && f->attributes == NULL)
        return rq_fail(why, RQ_E_INVALID, "the attributes of family %s are NULL", f->name);
    RQ_TRY(rq_pb_begin(b, 3, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(f->name)));
    for (size_t i = 0; i < RQ_ARRAY_LEN(family_defaults); i++)
        if (!is_given(f, family_defaults[i].name))
            RQ_TRY(put_properties(b, 2, &family_defaults[i], 1, why));
    RQ_TRY(put_properties(b, 2, f->attributes, f->attribute_count, why));
    return rq_pb_end(b, at);
}

static rq_err put_schema(rq_buf *b, const rq_table_spec *s, const rq_defining *d, rq_error *why)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 1, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, d->ns));
    RQ_TRY(rq_pb_put_bytes(b, 2, d->qualifier));
    RQ_TRY(rq_pb_end(b, at));
    RQ_TRY(put_properties(b, 2, s->attributes, s->attribute_count, why));
    if (s->family_count > 0 && s->families == NULL)
        return rq_fail(why, RQ_E_INVALID, "the families are NULL");
    for (size_t i = 0; i < s->family_count; i++)
        RQ_TRY(rq__put_family(b, &s->families[i], why));
    return RQ_OK;
}

static rq_err create_table(rq_db *db, rq_slot *slot, const rq_table_spec *given, rq_why *why)
{
    rq_table_spec s;
    rq_buf message = {0};
    rq_defining d = {.kind = RQ_DEFINE_CREATE_TABLE};
    RQ_TRY(rq_sized(&s, sizeof s, given, offsetof(rq_table_spec, attributes), "rq_table_spec",
                    &why->error));
    RQ_TRY(rq__split_name(s.name, &d.ns, &d.qualifier, &why->error));
    if (s.split_key_count > 0 && s.split_keys == NULL)
        return rq_fail(&why->error, RQ_E_INVALID,
                       "split_keys is NULL, but split_key_count is not 0");
    if (s.split_key_count > UINT32_MAX)
        return rq_fail(&why->error, RQ_E_INVALID, "%zu split keys are too many", s.split_key_count);
    rq_slice *keys = rq_arena_alloc(&slot->arena, (s.split_key_count + 1) * sizeof *keys);
    if (keys == NULL) return rq_no_memory(&why->error);
    for (size_t i = 0; i < s.split_key_count; i++) {
        RQ_TRY(rq_check_bytes(s.split_keys[i], "a split key", &why->error));
        keys[i] = rq_slice_of_bytes(s.split_keys[i]);
    }
    d.split_keys = keys;
    d.split_key_count = s.split_key_count;
    rq_err rc = put_schema(&message, &s, &d, &why->error);
    d.message = rq_buf_slice(&message);
    if (rc == RQ_OK) rc = db->backend->define(db, slot, &d, why);
    rq_buf_clear(&message);
    return rc;
}

rq_err rq_table_create(rq_db *db, const rq_table_spec *spec, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = create_table(db, slot, spec, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- messages, read --------------------------------------------------------------------------- */

/* Everything of a table's info is in its arena, the info included. */
typedef struct info_memory {
    rq_table_info pub;
    rq_arena arena;
} info_memory;

void rq_table_info_free(rq_table_info *info)
{
    if (info == NULL) return;
    info_memory *m = RQ_CONTAINER_OF(info, info_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

static size_t count_fields(rq_slice message, uint32_t number)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    size_t n = 0;
    while (rq_pb_next(&c, &f) == RQ_OK)
        n += f.number == number && f.wire == RQ_PB_BYTES;
    return n;
}

static rq_err read_pair(rq_slice message, rq_arena *arena, rq_property *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq_property){"", ""};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if ((f.number != 1 && f.number != 2) || f.wire != RQ_PB_BYTES) continue;
        const char *text = rq_arena_cstr(arena, f.bytes);
        if (text == NULL) return RQ_E_NO_MEMORY;
        *(f.number == 1 ? &ret->name : &ret->value) = text;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const rq_property *)a)->name, ((const rq_property *)b)->name);
}

static rq_err read_pairs(rq_slice message, uint32_t number, rq_arena *arena,
                         const rq_property **ret, size_t *ret_count)
{
    size_t count = count_fields(message, number), n = 0;
    rq_property *list = rq_arena_alloc(arena, (count + 1) * sizeof *list);
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    if (list == NULL) return RQ_E_NO_MEMORY;
    while (n < count && rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == number && f.wire == RQ_PB_BYTES)
            RQ_TRY(read_pair(f.bytes, arena, &list[n++]));
    if (count > 1) qsort(list, count, sizeof *list, by_name);
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}

static rq_err read_family(rq_slice message, rq_arena *arena, rq_family *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    ret->name = "";
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES &&
            (ret->name = rq_arena_cstr(arena, f.bytes)) == NULL)
            return RQ_E_NO_MEMORY;
    if (rc != RQ_E_END) return rc;
    return read_pairs(message, 2, arena, &ret->attributes, &ret->attribute_count);
}

static int by_family(const void *a, const void *b)
{
    return strcmp(((const rq_family *)a)->name, ((const rq_family *)b)->name);
}

static rq_err read_schema(rq_slice message, rq_arena *arena, rq_table_info *ret)
{
    size_t count = count_fields(message, 3), n = 0;
    rq_family *families = rq_arena_alloc(arena, (count + 1) * sizeof *families);
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    if (families == NULL) return RQ_E_NO_MEMORY;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == 3 && f.wire == RQ_PB_BYTES)
            RQ_TRY(read_family(f.bytes, arena, &families[n++]));
    if (rc != RQ_E_END) return rc;
    if (count > 1) qsort(families, count, sizeof *families, by_family);
    ret->families = families;
    ret->family_count = count;
    return read_pairs(message, 2, arena, &ret->attributes, &ret->attribute_count);
}

static rq_err describe(rq_db *db, rq_slot *slot, const char *name, rq_table_info **ret, rq_why *why)
{
    rq_slice ns, qualifier;
    rq_buf schema = {0};
    RQ_TRY(rq__split_name(name, &ns, &qualifier, &why->error));
    info_memory *m = calloc(1, sizeof *m);
    if (m == NULL) return rq_no_memory(&why->error);
    rq_err rc = db->backend->describe(db, slot, ns, qualifier, &schema, &m->pub.is_enabled, why);
    if (rc == RQ_OK) rc = read_schema(rq_buf_slice(&schema), &m->arena, &m->pub);
    if (rc == RQ_OK && rq_slice_eq(ns, RQ_SLICE_LIT("default")))
        m->pub.name = rq_arena_cstr(&m->arena, qualifier);
    else if (rc == RQ_OK)
        m->pub.name = rq_arena_cstr(&m->arena, rq_slice_cstr(name));
    if (rc == RQ_OK && m->pub.name == NULL) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK)
        *ret = &m->pub;
    else
        rq_table_info_free(&m->pub);
    rq_buf_clear(&schema);
    return rc;
}

rq_err rq_table_describe(rq_db *db, const char *name, rq_table_info **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = describe(db, slot, name, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_exists(rq_db *db, const char *name, bool *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_slice ns, qualifier;
    rq_buf schema = {0};
    bool enabled;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__split_name(name, &ns, &qualifier, &why.error);
    if (rc == RQ_OK) {
        rc = db->backend->describe(db, slot, ns, qualifier, &schema, &enabled, &why);
        if (rc == RQ_OK || rc == RQ_E_TABLE_NOT_FOUND) {
            *ret = rc == RQ_OK;
            rc = RQ_OK;
        }
    }
    rq_buf_clear(&schema);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- lists ------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One allocation: the struct, the pointers, the texts. */
static rq_err names_of(const rq_naming *n, rq_names **ret)
{
    rq_names *names = malloc(sizeof *names + n->count * sizeof(char *) + n->text.len);
    if (names == NULL) return RQ_E_NO_MEMORY;
    const char **items = (const char **)(names + 1);
    char *text = (char *)(items + n->count);
    if (n->text.len > 0) memcpy(text, n->text.ptr, n->text.len);
    for (size_t i = 0; i < n->count; i++) {
        items[i] = text;
        text += strlen(text) + 1;
    }
    if (n->count > 1) qsort(items, n->count, sizeof *items, by_text);
    *names = (rq_names){n->count, items};
    *ret = names;
    return RQ_OK;
}

static rq_err list(rq_db *db, bool namespaces, const char *ns, rq_names **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_naming found = {0};
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rq_slice of = ns == NULL ? (rq_slice){0} : rq_slice_cstr(ns);
    rc = namespaces ? db->backend->namespaces(db, slot, &found, &why)
                    : db->backend->tables(db, slot, of, &found, &why);
    if (rc == RQ_OK) rc = names_of(&found, ret);
    rq_buf_clear(&found.text);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_list(rq_db *db, const char *ns, rq_names **ret, rq_failure *why)
{
    return list(db, false, ns, ret, why);
}

rq_err rq_namespace_list(rq_db *db, rq_names **ret, rq_failure *why)
{
    return list(db, true, NULL, ret, why);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static rq_err define_namespace(rq_db *db, rq_slot *slot, rq_define_kind kind, const char *name,
                               const rq_property *properties, size_t count, rq_why *why)
{
    rq_buf message = {0};
    rq_defining d = {.kind = kind};
    if (name == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the name is NULL");
    d.ns = rq_slice_cstr(name);
    rq_err rc = rq_pb_put_bytes(&message, 1, d.ns);
    if (rc == RQ_OK) rc = put_properties(&message, 2, properties, count, &why->error);
    d.message = rq_buf_slice(&message);
    if (rc == RQ_OK) rc = db->backend->define(db, slot, &d, why);
    rq_buf_clear(&message);
    return rc;
}

rq_err rq_namespace_create(rq_db *db, const char *name, const rq_property *properties,
                           size_t property_count, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = define_namespace(db, slot, RQ_DEFINE_CREATE_NAMESPACE, name, properties, property_count,
                          &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_namespace_drop(rq_db *db, const char *name, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = define_namespace(db, slot, RQ_DEFINE_DROP_NAMESPACE, name, NULL, 0, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* Everything is in its arena, the struct itself excepted. */
typedef struct namespace_memory {
    rq_namespace_info pub;
    rq_arena arena;
} namespace_memory;

void rq_namespace_info_free(rq_namespace_info *info)
{
    if (info == NULL) return;
    namespace_memory *m = RQ_CONTAINER_OF(info, namespace_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

static rq_err describe_namespace(rq_db *db, rq_slot *slot, const char *name,
                                 rq_namespace_info **ret, rq_why *why)
{
    rq_buf message = {0};
    if (name == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the name is NULL");
    namespace_memory *m = calloc(1, sizeof *m);
    if (m == NULL) return rq_no_memory(&why->error);
    rq_err rc = db->backend->describe_namespace(db, slot, rq_slice_cstr(name), &message, why);
    if (rc == RQ_OK)
        rc = read_pairs(rq_buf_slice(&message), 2, &m->arena, &m->pub.properties,
                        &m->pub.property_count);
    if (rc == RQ_OK) m->pub.name = rq_arena_cstr(&m->arena, rq_slice_cstr(name));
    if (rc == RQ_OK && m->pub.name == NULL) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK)
        *ret = &m->pub;
    else
        rq_namespace_info_free(&m->pub);
    rq_buf_clear(&message);
    return rc;
}

rq_err rq_namespace_describe(rq_db *db, const char *name, rq_namespace_info **ret,
                             rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = describe_namespace(db, slot, name, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}
