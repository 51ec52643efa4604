/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of the frequent requests; see unpack.h. Field numbers as in proto/client.proto. */
#include "service/unpack.h"

#include "base/pb.h"
#include "service/messages.h"

#include "proto/client.pb-c.h"

static void *take(ProtobufCAllocator *a, size_t size)
{
    return a->alloc(a->allocator_data, size);
}

/* --- fields ----------------------------------------------------------------------------------- */

static bool number32(const rq_pb_field *f, protobuf_c_boolean *ret_has, uint32_t *ret)
{
    *ret_has = 1;
    *ret = (uint32_t)f->value;
    return f->wire == RQ_PB_VARINT;
}

static bool number64(const rq_pb_field *f, protobuf_c_boolean *ret_has, uint64_t *ret)
{
    *ret_has = 1;
    *ret = f->value;
    return f->wire == RQ_PB_VARINT;
}

static bool boolean(const rq_pb_field *f, protobuf_c_boolean *ret_has, protobuf_c_boolean *ret)
{
    *ret_has = 1;
    *ret = f->value != 0;
    return f->wire == RQ_PB_VARINT;
}

static bool binary(const rq_pb_field *f, ProtobufCBinaryData *ret)
{
    *ret = rq__pb_binary(f->bytes);
    if (f->bytes.len == 0) ret->data = NULL;
    return f->wire == RQ_PB_BYTES;
}

/* A message inside, by protobuf-c; one that comes twice would have to be merged. */
static bool other(ProtobufCAllocator *a, const rq_pb_field *f,
                  const ProtobufCMessageDescriptor *type, void *slot)
{
    void **message = (void **)slot;
    if (f->wire != RQ_PB_BYTES || *message != NULL) return false;
    *message = protobuf_c_message_unpack(type, a, f->bytes.len, f->bytes.ptr);
    return *message != NULL;
}

/* One member of a message, into *slot, which is NULL. */
typedef bool part(ProtobufCAllocator *a, const rq_pb_field *f, void *slot);
/* One field of a message whose decoder has `m` in hands. */
typedef bool member(ProtobufCAllocator *a, const rq_pb_field *f, void *m);

RQ_INLINE bool each(ProtobufCAllocator *a, rq_slice bytes, member *take_one, void *m)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0)
        if (!rq_pb_field_read(&c, &f) || !take_one(a, &f, m)) return false;
    return true;
}

/* A member that may be repeated, while its message is gone through: mostly it comes once, and then
 * the message need not be gone through again. */
typedef struct repeated {
    size_t count;
    rq_pb_field first;
} repeated;

static bool note(repeated *r, const rq_pb_field *f)
{
    if (r->count++ == 0) r->first = *f;
    return f->wire == RQ_PB_BYTES;
}

/* All of them, fields `number` of a message that each() went through, as a list of pointers. */
RQ_INLINE bool list(ProtobufCAllocator *a, rq_slice bytes, uint32_t number, part *unpack,
                    const repeated *r, void *ret)
{
    if (r->count == 0) return true;
    void **items = take(a, r->count * sizeof *items);
    if (items == NULL) return false;
    *(void **)ret = items;
    items[0] = NULL;
    if (!unpack(a, &r->first, &items[0])) return false;
    if (r->count == 1) return true;
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    for (size_t n = 0; n < r->count;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number != number || n++ == 0) continue;
        items[n - 1] = NULL;
        if (!unpack(a, &f, &items[n - 1])) return false;
    }
    return true;
}

/* A message inside that is ours to decode: its memory, initialized by the caller. NULL: it comes
 * twice, or is none. */
static void *begin(ProtobufCAllocator *a, const rq_pb_field *f, size_t size, void *slot)
{
    void **m = slot;
    if (f->wire != RQ_PB_BYTES || *m != NULL) return NULL;
    *m = take(a, size);
    return *m;
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool attribute(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    return other(a, f, &pb__name_bytes_pair__descriptor, slot);
}

static bool family_range(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    return other(a, f, &pb__column_family_time_range__descriptor, slot);
}

RQ_INLINE bool time_range_member(ProtobufCAllocator *a, const rq_pb_field *f, void *m)
{
    Pb__TimeRange *t = m;
    (void)a;
    if (f->number == 1) return number64(f, &t->has_from, &t->from);
    return f->number == 2 && number64(f, &t->has_to, &t->to);
}

static bool time_range(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__TimeRange *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__TimeRange)PB__TIME_RANGE__INIT;
    return each(a, f->bytes, time_range_member, m);
}

RQ_INLINE bool region_member(ProtobufCAllocator *a, const rq_pb_field *f, void *m)
{
    Pb__RegionSpecifier *r = m;
    (void)a;
    if (f->number == 2) return binary(f, &r->value);
    r->type = (Pb__RegionSpecifier__RegionSpecifierType)f->value; /* never 0 once it came */
    return f->number == 1 && f->wire == RQ_PB_VARINT && f->value > 0 && f->value <= INT32_MAX;
}

static bool region(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__RegionSpecifier *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__RegionSpecifier)PB__REGION_SPECIFIER__INIT;
    m->type = (Pb__RegionSpecifier__RegionSpecifierType)0;
    if (!each(a, f->bytes, region_member, m)) return false;
    return m->type != 0 && m->value.len > 0;
}

/* A family (1), and what is of it (2): a Column's qualifiers, a ColumnValue's values. */
typedef struct family_parts {
    ProtobufCBinaryData *family;
    repeated members;
} family_parts;

RQ_INLINE bool family_member(ProtobufCAllocator *a, const rq_pb_field *f, void *m)
{
    family_parts *parts = m;
    (void)a;
    if (f->number == 1) return binary(f, parts->family);
    return f->number == 2 && note(&parts->members, f);
}

static bool column(ProtobufCAllocator *a, const rq_pb_field *field, void *slot)
{
    Pb__Column *m = begin(a, field, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__Column)PB__COLUMN__INIT;
    family_parts parts = {.family = &m->family};
    if (!each(a, field->bytes, family_member, &parts) || m->family.len == 0) return false;
    m->n_qualifier = parts.members.count;
    if (m->n_qualifier == 0) return true;
    m->qualifier = take(a, m->n_qualifier * sizeof *m->qualifier);
    if (m->qualifier == NULL || !binary(&parts.members.first, &m->qualifier[0])) return false;
    if (m->n_qualifier == 1) return true;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    for (size_t n = 0; n < m->n_qualifier;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number == 2 && !binary(&f, &m->qualifier[n++])) return false;
    }
    return true;
}

/* --- cells inside a mutation ------------------------------------------------------------------ */

RQ_INLINE bool value_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    Pb__MutationProto__ColumnValue__QualifierValue *m = message;
    (void)a;
    switch (f->number) {
    case 1:
        m->has_qualifier = 1;
        return binary(f, &m->qualifier);
    case 2:
        m->has_value = 1;
        return binary(f, &m->value);
    case 3:
        return number64(f, &m->has_timestamp, &m->timestamp);
    case 4:
        m->has_delete_type = 1;
        m->delete_type = (Pb__MutationProto__DeleteType)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 5:
        m->has_tags = 1;
        return binary(f, &m->tags);
    default:
        return false;
    }
}

static bool qualifier_value(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__MutationProto__ColumnValue__QualifierValue *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__MutationProto__ColumnValue__QualifierValue)
        PB__MUTATION_PROTO__COLUMN_VALUE__QUALIFIER_VALUE__INIT;
    return each(a, f->bytes, value_member, m);
}

static bool column_value(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__MutationProto__ColumnValue *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__MutationProto__ColumnValue)PB__MUTATION_PROTO__COLUMN_VALUE__INIT;
    family_parts parts = {.family = &m->family};
    if (!each(a, f->bytes, family_member, &parts) || m->family.len == 0) return false;
    m->n_qualifier_value = parts.members.count;
    return list(a, f->bytes, 2, qualifier_value, &parts.members, &m->qualifier_value);
}

/* --- Get -------------------------------------------------------------------------------------- */

typedef struct get_parts {
    Pb__Get *get;
    repeated columns, attributes, family_ranges;
} get_parts;

RQ_INLINE bool get_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    get_parts *parts = message;
    Pb__Get *m = parts->get;
    switch (f->number) {
    case 1:
        return binary(f, &m->row);
    case 2:
        return note(&parts->columns, f);
    case 3:
        return note(&parts->attributes, f);
    case 4:
        return other(a, f, &pb__filter__descriptor, &m->filter);
    case 5:
        return time_range(a, f, &m->time_range);
    case 6:
        return number32(f, &m->has_max_versions, &m->max_versions);
    case 7:
        return boolean(f, &m->has_cache_blocks, &m->cache_blocks);
    case 8:
        return number32(f, &m->has_store_limit, &m->store_limit);
    case 9:
        return number32(f, &m->has_store_offset, &m->store_offset);
    case 10:
        return boolean(f, &m->has_existence_only, &m->existence_only);
    case 11:
        return boolean(f, &m->has_closest_row_before, &m->closest_row_before);
    case 12:
        m->has_consistency = 1;
        m->consistency = (Pb__Consistency)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 13:
        return note(&parts->family_ranges, f);
    case 14:
        return boolean(f, &m->has_load_column_families_on_demand,
                       &m->load_column_families_on_demand);
    case 15:
        return boolean(f, &m->has_query_metrics_enabled, &m->query_metrics_enabled);
    default:
        return false;
    }
}

static bool get(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__Get *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__Get)PB__GET__INIT;
    get_parts parts;
    parts.get = m;
    parts.columns.count = parts.attributes.count = parts.family_ranges.count = 0;
    if (!each(a, f->bytes, get_member, &parts) || m->row.len == 0) return false;
    m->n_column = parts.columns.count;
    m->n_attribute = parts.attributes.count;
    m->n_cf_time_range = parts.family_ranges.count;
    return list(a, f->bytes, 2, column, &parts.columns, &m->column) &&
           list(a, f->bytes, 3, attribute, &parts.attributes, &m->attribute) &&
           list(a, f->bytes, 13, family_range, &parts.family_ranges, &m->cf_time_range);
}

RQ_INLINE bool get_request_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    Pb__GetRequest *m = message;
    if (f->number == 1) return region(a, f, &m->region);
    return f->number == 2 && get(a, f, &m->get);
}

static ProtobufCMessage *get_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__GetRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__GetRequest)PB__GET_REQUEST__INIT;
    if (!each(a, bytes, get_request_member, m)) return NULL;
    return m->region != NULL && m->get != NULL ? &m->base : NULL;
}

/* --- Mutate ----------------------------------------------------------------------------------- */

typedef struct mutation_parts {
    Pb__MutationProto *mutation;
    repeated columns, attributes;
} mutation_parts;

RQ_INLINE bool mutation_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    mutation_parts *parts = message;
    Pb__MutationProto *m = parts->mutation;
    switch (f->number) {
    case 1:
        m->has_row = 1;
        return binary(f, &m->row);
    case 2:
        m->has_mutate_type = 1;
        m->mutate_type = (Pb__MutationProto__MutationType)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 3:
        return note(&parts->columns, f);
    case 4:
        return number64(f, &m->has_timestamp, &m->timestamp);
    case 5:
        return note(&parts->attributes, f);
    case 6:
        m->has_durability = 1;
        m->durability = (Pb__MutationProto__Durability)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 7:
        return time_range(a, f, &m->time_range);
    case 8:
        m->has_associated_cell_count = 1;
        m->associated_cell_count = (int32_t)f->value;
        return f->wire == RQ_PB_VARINT;
    case 9:
        return number64(f, &m->has_nonce, &m->nonce);
    default:
        return false;
    }
}

static bool mutation(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__MutationProto *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__MutationProto)PB__MUTATION_PROTO__INIT;
    mutation_parts parts;
    parts.mutation = m;
    parts.columns.count = parts.attributes.count = 0;
    if (!each(a, f->bytes, mutation_member, &parts)) return false;
    m->n_column_value = parts.columns.count;
    m->n_attribute = parts.attributes.count;
    return list(a, f->bytes, 3, column_value, &parts.columns, &m->column_value) &&
           list(a, f->bytes, 5, attribute, &parts.attributes, &m->attribute);
}

RQ_INLINE bool mutate_request_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    Pb__MutateRequest *m = message;
    switch (f->number) {
    case 1:
        return region(a, f, &m->region);
    case 2:
        return mutation(a, f, &m->mutation);
    case 3:
        return other(a, f, &pb__condition__descriptor, &m->condition);
    case 4:
        return number64(f, &m->has_nonce_group, &m->nonce_group);
    default:
        return false;
    }
}

static ProtobufCMessage *mutate_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__MutateRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MutateRequest)PB__MUTATE_REQUEST__INIT;
    if (!each(a, bytes, mutate_request_member, m)) return NULL;
    return m->region != NULL && m->mutation != NULL ? &m->base : NULL;
}

/* --- Multi ------------------------------------------------------------------------------------ */

RQ_INLINE bool action_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    Pb__Action *m = message;
    switch (f->number) {
    case 1:
        return number32(f, &m->has_index, &m->index);
    case 2:
        return mutation(a, f, &m->mutation);
    case 3:
        return get(a, f, &m->get);
    case 4:
        return other(a, f, &pb__coprocessor_service_call__descriptor, &m->service_call);
    default:
        return false;
    }
}

static bool action(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__Action *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__Action)PB__ACTION__INIT;
    return each(a, f->bytes, action_member, m);
}

typedef struct region_action_parts {
    Pb__RegionAction *region_action;
    repeated actions;
} region_action_parts;

RQ_INLINE bool region_action_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    region_action_parts *parts = message;
    Pb__RegionAction *m = parts->region_action;
    switch (f->number) {
    case 1:
        return region(a, f, &m->region);
    case 2:
        return boolean(f, &m->has_atomic, &m->atomic);
    case 3:
        return note(&parts->actions, f);
    case 4:
        return other(a, f, &pb__condition__descriptor, &m->condition);
    default:
        return false;
    }
}

static bool region_action(ProtobufCAllocator *a, const rq_pb_field *f, void *slot)
{
    Pb__RegionAction *m = begin(a, f, sizeof *m, slot);
    if (m == NULL) return false;
    *m = (Pb__RegionAction)PB__REGION_ACTION__INIT;
    region_action_parts parts = {.region_action = m};
    if (!each(a, f->bytes, region_action_member, &parts) || m->region == NULL) return false;
    m->n_action = parts.actions.count;
    return list(a, f->bytes, 3, action, &parts.actions, &m->action);
}

typedef struct multi_parts {
    Pb__MultiRequest *multi;
    repeated region_actions;
} multi_parts;

RQ_INLINE bool multi_request_member(ProtobufCAllocator *a, const rq_pb_field *f, void *message)
{
    multi_parts *parts = message;
    Pb__MultiRequest *m = parts->multi;
    switch (f->number) {
    case 1:
        return note(&parts->region_actions, f);
    case 2:
        return number64(f, &m->has_noncegroup, &m->noncegroup);
    case 3:
        return other(a, f, &pb__condition__descriptor, &m->condition);
    default:
        return false;
    }
}

static ProtobufCMessage *multi_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__MultiRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MultiRequest)PB__MULTI_REQUEST__INIT;
    multi_parts parts = {.multi = m};
    if (!each(a, bytes, multi_request_member, &parts)) return NULL;
    m->n_regionaction = parts.region_actions.count;
    bool fine = list(a, bytes, 1, region_action, &parts.region_actions, &m->regionaction);
    return fine ? &m->base : NULL;
}

/* --- all -------------------------------------------------------------------------------------- */

ProtobufCMessage *rq__unpack_request(const ProtobufCMessageDescriptor *type,
                                     ProtobufCAllocator *allocator, rq_slice bytes)
{
    if (type == &pb__get_request__descriptor) return get_request(allocator, bytes);
    if (type == &pb__mutate_request__descriptor) return mutate_request(allocator, bytes);
    if (type == &pb__multi_request__descriptor) return multi_request(allocator, bytes);
    return NULL;
}
