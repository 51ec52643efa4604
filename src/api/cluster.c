/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on regions and on the cluster, and changes of a table's definition. A change reads the
 * table's TableSchema and applies the caller's changes to the message; all other fields stay as they are. */
#include "api/api_priv.h"

#include "base/pb.h"

#include <stdlib.h>

/* A result of the library's; everything is in its arena, the struct itself excepted. */
typedef struct region_memory {
    rq_region_list pub;
    rq_arena arena;
} region_memory;

typedef struct cluster_memory {
    rq_cluster_info pub;
    rq_arena arena;
} cluster_memory;

/* --- regions ---------------------------------------------------------------------------------- */

void rq_region_list_free(rq_region_list *list)
{
    if (list == NULL) return;
    region_memory *m = RQ_CONTAINER_OF(list, region_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

/* "table,start,id.encoded." */
static rq_err encoded_of(rq_arena *arena, rq_slice name, const char **ret)
{
    size_t end = name.len, begin;
    if (end < 2 || name.ptr[end - 1] != '.') return RQ_E_MALFORMED;
    for (begin = --end; begin > 0 && name.ptr[begin - 1] != '.'; begin--)
        ;
    if (begin == 0) return RQ_E_MALFORMED;
    *ret = rq_arena_cstr(arena, rq_slice_of(name.ptr + begin, end - begin));
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err keep(rq_arena *arena, rq_slice from, rq_bytes *ret)
{
    rq_slice kept = from.len == 0 ? RQ_SLICE_LIT("") : rq_arena_copy(arena, from);
    *ret = rq_bytes_of(kept.ptr, kept.len);
    return kept.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq_region_found(rq_region_finding *f, rq_slice name, rq_slice start, rq_slice stop,
                       const char *server)
{
    RQ_TRY(rq_arena_grow(f->arena, &f->items, sizeof *f->items, f->count, &f->cap));
    rq_region_entry *r = &f->items[f->count];
    RQ_TRY(encoded_of(f->arena, name, &r->encoded));
    RQ_TRY(keep(f->arena, name, &r->name));
    RQ_TRY(keep(f->arena, start, &r->start));
    RQ_TRY(keep(f->arena, stop, &r->stop));
    r->server = rq_arena_cstr(f->arena, rq_slice_cstr(server));
    if (r->server == NULL) return RQ_E_NO_MEMORY;
    f->count++;
    return RQ_OK;
}

static int by_start(const void *a, const void *b)
{
    return rq_slice_compare(rq_slice_of_bytes(((const rq_region_entry *)a)->start),
                            rq_slice_of_bytes(((const rq_region_entry *)b)->start));
}

static rq_err find_regions(rq_db *db, rq_slot *slot, const char *name, rq_region_finding *ret,
                           rq_why *why)
{
    rq_slice ns, qualifier;
    RQ_TRY(rq__split_name(name, &ns, &qualifier, &why->error));
    RQ_TRY(db->backend->regions(db, slot, ns, qualifier, ret, why));
    if (ret->count > 1) qsort(ret->items, ret->count, sizeof *ret->items, by_start);
    return RQ_OK;
}

rq_err rq_table_regions(rq_db *db, const char *name, rq_region_list **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    region_memory *m = calloc(1, sizeof *m);
    rc = m == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        rq_region_finding found = {.arena = &m->arena};
        rc = find_regions(db, slot, name, &found, &why);
        m->pub = (rq_region_list){found.count, found.items};
        if (rc == RQ_OK)
            *ret = &m->pub;
        else
            rq_region_list_free(&m->pub);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

static const rq_region_entry *region_of(const rq_region_finding *f, rq_slice row)
{
    for (size_t i = 0; i < f->count; i++) {
        const rq_region_entry *r = &f->items[i];
        if (rq_slice_compare(rq_slice_of_bytes(r->start), row) <= 0 &&
            (r->stop.len == 0 || rq_slice_compare(row, rq_slice_of_bytes(r->stop)) < 0))
            return r;
    }
    return NULL;
}

static rq_err split(rq_db *db, rq_slot *slot, const char *name, rq_slice row, rq_why *why)
{
    rq_region_finding found = {.arena = &slot->arena};
    rq_defining d = {.kind = RQ_DEFINE_SPLIT_REGION, .row = row};
    if (row.len == 0) return rq_fail(&why->error, RQ_E_INVALID, "no row");
    RQ_TRY(find_regions(db, slot, name, &found, why));
    RQ_TRY(rq__split_name(name, &d.ns, &d.qualifier, &why->error));
    d.region = region_of(&found, row);
    if (d.region == NULL)
        return rq_fail(&why->error, RQ_E_NOT_FOUND, "no region of %s is open at that row", name);
    return db->backend->define(db, slot, &d, why);
}

rq_err rq_table_split(rq_db *db, const char *name, rq_bytes row, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq_check_bytes(row, "a row", &why.error);
    if (rc == RQ_OK) rc = split(db, slot, name, rq_slice_of_bytes(row), &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

static rq_err merge(rq_db *db, rq_slot *slot, const char *name, const char *const *regions,
                    size_t count, rq_why *why)
{
    rq_defining d = {.kind = RQ_DEFINE_MERGE_REGIONS, .region_count = count};
    RQ_TRY(rq__split_name(name, &d.ns, &d.qualifier, &why->error));
    if (count < 2 || count > UINT16_MAX || regions == NULL)
        return rq_fail(&why->error, RQ_E_INVALID, "%zu regions to merge", count);
    rq_slice *list = rq_arena_alloc(&slot->arena, count * sizeof *list);
    if (list == NULL) return rq_no_memory(&why->error);
    for (size_t i = 0; i < count; i++) {
        if (regions[i] == NULL)
            return rq_fail(&why->error, RQ_E_INVALID, "a region without a name");
        list[i] = rq_slice_cstr(regions[i]);
    }
    d.regions = list;
    return db->backend->define(db, slot, &d, why);
}

rq_err rq_table_merge(rq_db *db, const char *name, const char *const *regions, size_t count,
                      rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = merge(db, slot, name, regions, count, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_compact(rq_db *db, const char *name, const char *family, bool major,
                        rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_slice ns, qualifier;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__split_name(name, &ns, &qualifier, &why.error);
    rq_slice of = family == NULL ? (rq_slice){0} : rq_slice_cstr(family);
    if (rc == RQ_OK) rc = db->backend->compact(db, slot, ns, qualifier, of, major, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- the cluster ------------------------------------------------------------------------------ */

void rq_cluster_info_free(rq_cluster_info *info)
{
    if (info == NULL) return;
    cluster_memory *m = RQ_CONTAINER_OF(info, cluster_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

rq_err rq_cluster_describe(rq_db *db, rq_cluster_info **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    cluster_memory *m = calloc(1, sizeof *m);
    rc = m == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        rq_cluster_finding found = {&m->arena, &m->pub};
        rc = db->backend->cluster(db, slot, &found, &why);
        bool complete = m->pub.id != NULL && m->pub.version != NULL && m->pub.master != NULL;
        for (size_t i = 0; rc == RQ_OK && i < m->pub.server_count; i++)
            complete = complete && m->pub.servers[i].name != NULL;
        if (rc == RQ_OK && !complete) rc = rq_no_memory(&why.error);
        if (rc == RQ_OK)
            *ret = &m->pub;
        else
            rq_cluster_info_free(&m->pub);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- alterations ------------------------------------------------------------------------------ */

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
    if (count > 0 && list == NULL) return rq_fail(why, RQ_E_INVALID, "no attributes");
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
        return rq_fail(why, RQ_E_INVALID, "no families");
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
