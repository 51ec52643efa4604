/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of definitions: the message TableSchema or NamespaceDescriptor that the table or namespace has,
 * with the caller's changes applied. Fields that nobody names stay. The message is read and sent in two
 * steps, as by HBase's clients: of two alterations at a time the later one wins. */
#include "api/api_priv.h"

#include "base/pb.h"

static bool is_named(const rq_property *list, size_t count, rq_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(rq_slice_cstr(list[i].name), name)) return true;
    return false;
}

/* The first field 1 of a message: the name of an attribute or family. */
static rq_slice name_in(rq_slice message)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == 1 && f.wire == RQ_PB_BYTES) return f.bytes;
    return (rq_slice){0};
}

static rq_err check_properties(const rq_property *list, size_t count, rq_error *why)
{
    if (count > 0 && list == NULL) return rq_fail(why, RQ_E_INVALID, "the attributes are NULL");
    for (size_t i = 0; i < count; i++)
        if (list[i].name == NULL) return rq_fail(why, RQ_E_INVALID, "an attribute without a name");
    return RQ_OK;
}

/* Pairs as field 2; those without a value are left out. */
static rq_err put_properties(rq_buf *b, const rq_property *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at;
        if (list[i].value == NULL) continue;
        RQ_TRY(rq_pb_begin(b, 2, &at));
        RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(list[i].name)));
        RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(list[i].value)));
        RQ_TRY(rq_pb_end(b, at));
    }
    return RQ_OK;
}

/* Copies a message whose fields are all bytes, without the attributes (field 2) that are given. */
static rq_err copy_without(rq_buf *b, rq_slice message, const rq_property *list, size_t count)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.wire != RQ_PB_BYTES) return RQ_E_MALFORMED;
        if (f.number == 2 && is_named(list, count, name_in(f.bytes))) continue;
        RQ_TRY(rq_pb_put_bytes(b, f.number, f.bytes));
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* --- tables ----------------------------------------------------------------------------------- */

static rq_err change_family(rq_buf *b, rq_slice message, const rq_family *f)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, 3, &at));
    RQ_TRY(copy_without(b, message, f->attributes, f->attribute_count));
    RQ_TRY(put_properties(b, f->attributes, f->attribute_count));
    return rq_pb_end(b, at);
}

/* Whether the alteration drops this family of the table. */
static bool is_dropped(const rq_alteration *a, rq_slice family)
{
    for (size_t i = 0; i < a->dropped_family_count; i++)
        if (rq_slice_eq(rq_slice_cstr(a->dropped_families[i]), family)) return true;
    return false;
}

static rq_err put_old_family(rq_buf *b, rq_slice message, const rq_alteration *a, bool *changed)
{
    rq_slice name = name_in(message);
    if (is_dropped(a, name)) return RQ_OK;
    for (size_t i = 0; i < a->family_count; i++)
        if (rq_slice_eq(rq_slice_cstr(a->families[i].name), name)) {
            changed[i] = true;
            return change_family(b, message, &a->families[i]);
        }
    return rq_pb_put_bytes(b, 3, message);
}

static rq_err make_schema(rq_slice old, const rq_alteration *a, bool *changed, rq_buf *ret,
                          rq_error *why)
{
    rq_cursor c = rq_cursor_of(old);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.wire != RQ_PB_BYTES) return RQ_E_MALFORMED;
        if (f.number == 3)
            RQ_TRY(put_old_family(ret, f.bytes, a, changed));
        else if (f.number != 2 || !is_named(a->attributes, a->attribute_count, name_in(f.bytes)))
            RQ_TRY(rq_pb_put_bytes(ret, f.number, f.bytes));
    }
    if (rc != RQ_E_END) return rc;
    RQ_TRY(put_properties(ret, a->attributes, a->attribute_count));
    for (size_t i = 0; i < a->family_count; i++)
        if (!changed[i]) RQ_TRY(rq__put_family(ret, &a->families[i], why));
    return RQ_OK;
}

static rq_err check_families(const rq_alteration *a, rq_error *why)
{
    if ((a->family_count > 0 && a->families == NULL) ||
        (a->dropped_family_count > 0 && a->dropped_families == NULL))
        return rq_fail(why, RQ_E_INVALID, "the families are NULL");
    RQ_TRY(check_properties(a->attributes, a->attribute_count, why));
    for (size_t i = 0; i < a->family_count; i++) {
        const rq_family *f = &a->families[i];
        if (f->name == NULL) return rq_fail(why, RQ_E_INVALID, "a family without a name");
        RQ_TRY(check_properties(f->attributes, f->attribute_count, why));
    }
    return RQ_OK;
}

/* Every dropped family must be there. HBASE: ModifyTableProcedure's checks compare schemas only. */
static rq_err check_dropped(rq_slice schema, const rq_alteration *a, rq_error *why)
{
    for (size_t i = 0; i < a->dropped_family_count; i++) {
        const char *name = a->dropped_families[i];
        rq_cursor c = rq_cursor_of(schema);
        rq_pb_field f;
        bool found = false;
        if (name == NULL) return rq_fail(why, RQ_E_INVALID, "a family without a name");
        while (!found && rq_pb_next(&c, &f) == RQ_OK)
            found = f.number == 3 && f.wire == RQ_PB_BYTES &&
                    rq_slice_eq(name_in(f.bytes), rq_slice_cstr(name));
        if (!found) return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "Family '%s' does not exist", name);
    }
    return RQ_OK;
}

static rq_err alter(rq_db *db, rq_slot *slot, const rq_alteration *a, rq_why *why)
{
    rq_buf old = {0}, schema = {0};
    rq_defining d = {.kind = RQ_DEFINE_ALTER_TABLE};
    bool enabled;
    RQ_TRY(check_families(a, &why->error));
    RQ_TRY(rq__split_name(a->name, &d.ns, &d.qualifier, &why->error));
    bool *changed = rq_arena_calloc(&slot->arena, a->family_count + 1, sizeof *changed);
    if (changed == NULL) return rq_no_memory(&why->error);
    rq_err rc = db->backend->describe(db, slot, d.ns, d.qualifier, &old, &enabled, why);
    if (rc == RQ_OK) rc = check_dropped(rq_buf_slice(&old), a, &why->error);
    if (rc == RQ_OK) rc = make_schema(rq_buf_slice(&old), a, changed, &schema, &why->error);
    d.message = rq_buf_slice(&schema);
    if (rc == RQ_OK) rc = db->backend->define(db, slot, &d, why);
    rq_buf_clear(&old);
    rq_buf_clear(&schema);
    return rc;
}

rq_err rq_table_alter(rq_db *db, const rq_alteration *alteration, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_alteration a;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq_sized(&a, sizeof a, alteration, offsetof(rq_alteration, families), "rq_alteration",
                  &why.error);
    if (rc == RQ_OK) rc = alter(db, slot, &a, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static rq_err alter_namespace(rq_db *db, rq_slot *slot, const char *name,
                              const rq_property *properties, size_t count, rq_why *why)
{
    rq_buf old = {0}, message = {0};
    rq_defining d = {.kind = RQ_DEFINE_ALTER_NAMESPACE};
    if (name == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the name is NULL");
    RQ_TRY(check_properties(properties, count, &why->error));
    d.ns = rq_slice_cstr(name);
    rq_err rc = db->backend->describe_namespace(db, slot, d.ns, &old, why);
    if (rc == RQ_OK) rc = copy_without(&message, rq_buf_slice(&old), properties, count);
    if (rc == RQ_OK) rc = put_properties(&message, properties, count);
    d.message = rq_buf_slice(&message);
    if (rc == RQ_OK) rc = db->backend->define(db, slot, &d, why);
    rq_buf_clear(&old);
    rq_buf_clear(&message);
    return rc;
}

rq_err rq_namespace_alter(rq_db *db, const char *name, const rq_property *properties,
                          size_t property_count, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = alter_namespace(db, slot, name, properties, property_count, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}
