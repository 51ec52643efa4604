/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of the frequent requests; see unpack.h. Field numbers as in proto/client.proto. */
#include "service/unpack.h"

#include "base/pb.h"

#include "proto/client.pb-c.h"

/* Memory for a request's message, taken from the allocator in pieces: a Get needs eight. */
typedef struct unpacker {
    ProtobufCAllocator *allocator;
    uint8_t *next, *end;
} unpacker;

#define PIECE 1024
#define ALIGNMENT ((size_t)16)

static void *take_piece(unpacker *u, size_t size)
{
    ProtobufCAllocator *a = u->allocator;
    if (size >= PIECE / 4) return a->alloc(a->allocator_data, size);
    uint8_t *piece = a->alloc(a->allocator_data, PIECE);
    if (piece == NULL) return NULL;
    u->next = piece + size;
    u->end = piece + PIECE;
    return piece;
}

/* `size` is bounded: the size of a message struct times the bytes of a request. */
RQ_INLINE void *take(unpacker *u, size_t size)
{
    size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (RQ_UNLIKELY(size > (size_t)(u->end - u->next))) return take_piece(u, size);
    void *p = u->next;
    u->next += size;
    return p;
}

/* --- fields ----------------------------------------------------------------------------------- */

/* All tags of these messages are single bytes, so number and wire type are compared at once; any
 * other byte is an unknown field. */
#define VARINT(number) RQ_PB_TAG(number, RQ_PB_VARINT)
#define BYTES(number) RQ_PB_TAG(number, RQ_PB_BYTES)

RQ_INLINE bool number64(rq_cursor *c, protobuf_c_boolean *ret_has, uint64_t *ret)
{
    *ret_has = 1;
    return rq_cursor_varint(c, ret);
}

RQ_INLINE bool number32(rq_cursor *c, protobuf_c_boolean *ret_has, uint32_t *ret)
{
    uint64_t v;
    if (!number64(c, ret_has, &v)) return false;
    *ret = (uint32_t)v;
    return true;
}

RQ_INLINE bool boolean(rq_cursor *c, protobuf_c_boolean *ret_has, protobuf_c_boolean *ret)
{
    uint64_t v;
    if (!number64(c, ret_has, &v)) return false;
    *ret = v != 0;
    return true;
}

/* An enum; values out of range are left to protobuf-c. */
RQ_INLINE bool choice(rq_cursor *c, protobuf_c_boolean *ret_has, uint32_t *ret)
{
    uint64_t v;
    if (!number64(c, ret_has, &v)) return false;
    *ret = (uint32_t)v;
    return v <= INT32_MAX;
}

/* As protobuf-c returns them: no bytes are NULL. */
RQ_INLINE ProtobufCBinaryData pb_bytes(rq_slice bytes)
{
    return (ProtobufCBinaryData){bytes.len, bytes.len == 0 ? NULL : (uint8_t *)bytes.ptr};
}

RQ_INLINE bool binary(rq_cursor *c, ProtobufCBinaryData *ret)
{
    rq_slice bytes;
    if (!rq_pb_delimited(c, &bytes)) return false;
    *ret = pb_bytes(bytes);
    return true;
}

/* Decodes the embedded message in `bytes` into *slot, which is NULL before. */
typedef bool part(unpacker *u, rq_slice bytes, void *slot);
/* Decodes the field with `tag` of the message `m`. */
typedef bool member(unpacker *u, uint8_t tag, rq_cursor *c, void *m);

RQ_INLINE bool each(unpacker *u, rq_slice bytes, member *take_one, void *m)
{
    rq_cursor c = rq_cursor_of(bytes);
    while (c.ptr != c.end) {
        uint8_t tag = *c.ptr++;
        if (!take_one(u, tag, &c, m)) return false;
    }
    return true;
}

/* A field that may appear once: a repeated one would have to be merged, which is left to
 * protobuf-c. */
RQ_INLINE bool inner(unpacker *u, rq_cursor *c, part *unpack, void *slot)
{
    rq_slice bytes;
    return rq_pb_delimited(c, &bytes) && *(void **)slot == NULL && unpack(u, bytes, slot);
}

static bool generic(unpacker *u, rq_slice bytes, const ProtobufCMessageDescriptor *type, void *slot)
{
    void *message = protobuf_c_message_unpack(type, u->allocator, bytes.len, bytes.ptr);
    *(void **)slot = message;
    return message != NULL;
}

/* State for a repeated field while its message is decoded. Most messages have it once, and then
 * need no second pass. */
typedef struct repeated {
    size_t count;
    rq_slice first;
} repeated;

RQ_INLINE bool note(repeated *r, rq_cursor *c)
{
    rq_slice bytes;
    if (!rq_pb_delimited(c, &bytes)) return false;
    if (r->count++ == 0) r->first = bytes;
    return true;
}

/* Calls take_one(ctx, n, bytes) for each occurrence of the field `number` after the first, in a
 * message that each() has decoded. */
RQ_INLINE bool each_further(rq_slice message, uint32_t number, const repeated *r,
                            bool (*take_one)(void *ctx, size_t n, rq_slice bytes), void *ctx)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    for (size_t n = 0; n < r->count;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number != number || n++ == 0) continue;
        if (!take_one(ctx, n - 1, f.bytes)) return false;
    }
    return true;
}

typedef struct message_list {
    unpacker *u;
    part *unpack;
    void **items;
} message_list;

RQ_INLINE bool list_item(void *ctx, size_t n, rq_slice bytes)
{
    message_list *l = ctx;
    l->items[n] = NULL;
    return l->unpack(l->u, bytes, &l->items[n]);
}

/* All of them as a list of pointers. */
RQ_INLINE bool list(unpacker *u, rq_slice message, uint32_t number, part *unpack, const repeated *r,
                    void *ret)
{
    if (r->count == 0) return true;
    message_list l = {u, unpack, take(u, r->count * sizeof(void *))};
    if (l.items == NULL) return false;
    *(void ***)ret = l.items;
    return list_item(&l, 0, r->first) &&
           (r->count == 1 || each_further(message, number, r, list_item, &l));
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool attribute(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__name_bytes_pair__descriptor, slot);
}

static bool family_range(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__column_family_time_range__descriptor, slot);
}

static bool filter(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__filter__descriptor, slot);
}

static bool condition(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__condition__descriptor, slot);
}

static bool service_call(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__coprocessor_service_call__descriptor, slot);
}

RQ_INLINE bool time_range_member(unpacker *u, uint8_t tag, rq_cursor *c, void *m)
{
    Pb__TimeRange *t = m;
    (void)u;
    if (tag == VARINT(1)) return number64(c, &t->has_from, &t->from);
    return tag == VARINT(2) && number64(c, &t->has_to, &t->to);
}

static bool time_range(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__TimeRange *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__TimeRange **)slot = m;
    *m = (Pb__TimeRange)PB__TIME_RANGE__INIT;
    return each(u, bytes, time_range_member, m);
}

RQ_INLINE bool region_member(unpacker *u, uint8_t tag, rq_cursor *c, void *m)
{
    Pb__RegionSpecifier *r = m;
    (void)u;
    protobuf_c_boolean has;
    if (tag == BYTES(2)) return binary(c, &r->value);
    /* Never 0 once it came. */
    return tag == VARINT(1) && choice(c, &has, (uint32_t *)&r->type) && r->type != 0;
}

static bool region(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__RegionSpecifier *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__RegionSpecifier **)slot = m;
    *m = (Pb__RegionSpecifier)PB__REGION_SPECIFIER__INIT;
    m->type = (Pb__RegionSpecifier__RegionSpecifierType)0;
    if (!each(u, bytes, region_member, m)) return false;
    return m->type != 0 && m->value.len > 0;
}

/* A family (field 1) and its parts (field 2): a Column's qualifiers or a ColumnValue's values. */
typedef struct family_parts {
    ProtobufCBinaryData *family;
    repeated members;
} family_parts;

RQ_INLINE bool family_member(unpacker *u, uint8_t tag, rq_cursor *c, void *m)
{
    family_parts *parts = m;
    (void)u;
    if (tag == BYTES(1)) return binary(c, parts->family);
    return tag == BYTES(2) && note(&parts->members, c);
}

RQ_INLINE bool qualifier_item(void *ctx, size_t n, rq_slice bytes)
{
    ((ProtobufCBinaryData *)ctx)[n] = pb_bytes(bytes);
    return true;
}

static bool column(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__Column *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__Column **)slot = m;
    *m = (Pb__Column)PB__COLUMN__INIT;
    family_parts parts = {.family = &m->family};
    if (!each(u, bytes, family_member, &parts) || m->family.len == 0) return false;
    m->n_qualifier = parts.members.count;
    if (m->n_qualifier == 0) return true;
    m->qualifier = take(u, m->n_qualifier * sizeof *m->qualifier);
    if (m->qualifier == NULL) return false;
    m->qualifier[0] = pb_bytes(parts.members.first);
    return m->n_qualifier == 1 ||
           each_further(bytes, 2, &parts.members, qualifier_item, m->qualifier);
}

/* --- cells inside a mutation ------------------------------------------------------------------ */

RQ_INLINE bool value_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    Pb__MutationProto__ColumnValue__QualifierValue *m = message;
    (void)u;
    switch (tag) {
    case BYTES(1):
        m->has_qualifier = 1;
        return binary(c, &m->qualifier);
    case BYTES(2):
        m->has_value = 1;
        return binary(c, &m->value);
    case VARINT(3):
        return number64(c, &m->has_timestamp, &m->timestamp);
    case VARINT(4):
        return choice(c, &m->has_delete_type, (uint32_t *)&m->delete_type);
    case BYTES(5):
        m->has_tags = 1;
        return binary(c, &m->tags);
    default:
        return false;
    }
}

static bool qualifier_value(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__MutationProto__ColumnValue__QualifierValue *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__MutationProto__ColumnValue__QualifierValue **)slot = m;
    *m = (Pb__MutationProto__ColumnValue__QualifierValue)
        PB__MUTATION_PROTO__COLUMN_VALUE__QUALIFIER_VALUE__INIT;
    return each(u, bytes, value_member, m);
}

static bool column_value(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__MutationProto__ColumnValue *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__MutationProto__ColumnValue **)slot = m;
    *m = (Pb__MutationProto__ColumnValue)PB__MUTATION_PROTO__COLUMN_VALUE__INIT;
    family_parts parts = {.family = &m->family};
    if (!each(u, bytes, family_member, &parts) || m->family.len == 0) return false;
    m->n_qualifier_value = parts.members.count;
    return list(u, bytes, 2, qualifier_value, &parts.members, &m->qualifier_value);
}

/* --- Get -------------------------------------------------------------------------------------- */

typedef struct get_parts {
    Pb__Get *get;
    repeated columns, attributes, family_ranges;
} get_parts;

RQ_INLINE bool get_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    get_parts *parts = message;
    Pb__Get *m = parts->get;
    switch (tag) {
    case BYTES(1):
        return binary(c, &m->row);
    case BYTES(2):
        return note(&parts->columns, c);
    case BYTES(3):
        return note(&parts->attributes, c);
    case BYTES(4):
        return inner(u, c, filter, &m->filter);
    case BYTES(5):
        return inner(u, c, time_range, &m->time_range);
    case VARINT(6):
        return number32(c, &m->has_max_versions, &m->max_versions);
    case VARINT(7):
        return boolean(c, &m->has_cache_blocks, &m->cache_blocks);
    case VARINT(8):
        return number32(c, &m->has_store_limit, &m->store_limit);
    case VARINT(9):
        return number32(c, &m->has_store_offset, &m->store_offset);
    case VARINT(10):
        return boolean(c, &m->has_existence_only, &m->existence_only);
    case VARINT(11):
        return boolean(c, &m->has_closest_row_before, &m->closest_row_before);
    case VARINT(12):
        return choice(c, &m->has_consistency, (uint32_t *)&m->consistency);
    case BYTES(13):
        return note(&parts->family_ranges, c);
    case VARINT(14):
        return boolean(c, &m->has_load_column_families_on_demand,
                       &m->load_column_families_on_demand);
    case VARINT(15):
        return boolean(c, &m->has_query_metrics_enabled, &m->query_metrics_enabled);
    default:
        return false;
    }
}

static bool get(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__Get *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__Get **)slot = m;
    *m = (Pb__Get)PB__GET__INIT;
    get_parts parts;
    parts.get = m;
    parts.columns.count = parts.attributes.count = parts.family_ranges.count = 0;
    if (!each(u, bytes, get_member, &parts) || m->row.len == 0) return false;
    m->n_column = parts.columns.count;
    m->n_attribute = parts.attributes.count;
    m->n_cf_time_range = parts.family_ranges.count;
    return list(u, bytes, 2, column, &parts.columns, &m->column) &&
           list(u, bytes, 3, attribute, &parts.attributes, &m->attribute) &&
           list(u, bytes, 13, family_range, &parts.family_ranges, &m->cf_time_range);
}

RQ_INLINE bool get_request_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    Pb__GetRequest *m = message;
    if (tag == BYTES(1)) return inner(u, c, region, &m->region);
    return tag == BYTES(2) && inner(u, c, get, &m->get);
}

static ProtobufCMessage *get_request(unpacker *u, rq_slice bytes)
{
    Pb__GetRequest *m = take(u, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__GetRequest)PB__GET_REQUEST__INIT;
    if (!each(u, bytes, get_request_member, m)) return NULL;
    return m->region != NULL && m->get != NULL ? &m->base : NULL;
}

/* --- Mutate ----------------------------------------------------------------------------------- */

typedef struct mutation_parts {
    Pb__MutationProto *mutation;
    repeated columns, attributes;
} mutation_parts;

RQ_INLINE bool mutation_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    mutation_parts *parts = message;
    Pb__MutationProto *m = parts->mutation;
    switch (tag) {
    case BYTES(1):
        m->has_row = 1;
        return binary(c, &m->row);
    case VARINT(2):
        return choice(c, &m->has_mutate_type, (uint32_t *)&m->mutate_type);
    case BYTES(3):
        return note(&parts->columns, c);
    case VARINT(4):
        return number64(c, &m->has_timestamp, &m->timestamp);
    case BYTES(5):
        return note(&parts->attributes, c);
    case VARINT(6):
        return choice(c, &m->has_durability, (uint32_t *)&m->durability);
    case BYTES(7):
        return inner(u, c, time_range, &m->time_range);
    case VARINT(8):
        return number32(c, &m->has_associated_cell_count, (uint32_t *)&m->associated_cell_count);
    case VARINT(9):
        return number64(c, &m->has_nonce, &m->nonce);
    default:
        return false;
    }
}

static bool mutation(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__MutationProto *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__MutationProto **)slot = m;
    *m = (Pb__MutationProto)PB__MUTATION_PROTO__INIT;
    mutation_parts parts;
    parts.mutation = m;
    parts.columns.count = parts.attributes.count = 0;
    if (!each(u, bytes, mutation_member, &parts)) return false;
    m->n_column_value = parts.columns.count;
    m->n_attribute = parts.attributes.count;
    return list(u, bytes, 3, column_value, &parts.columns, &m->column_value) &&
           list(u, bytes, 5, attribute, &parts.attributes, &m->attribute);
}

RQ_INLINE bool mutate_request_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    Pb__MutateRequest *m = message;
    switch (tag) {
    case BYTES(1):
        return inner(u, c, region, &m->region);
    case BYTES(2):
        return inner(u, c, mutation, &m->mutation);
    case BYTES(3):
        return inner(u, c, condition, &m->condition);
    case VARINT(4):
        return number64(c, &m->has_nonce_group, &m->nonce_group);
    default:
        return false;
    }
}

static ProtobufCMessage *mutate_request(unpacker *u, rq_slice bytes)
{
    Pb__MutateRequest *m = take(u, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MutateRequest)PB__MUTATE_REQUEST__INIT;
    if (!each(u, bytes, mutate_request_member, m)) return NULL;
    return m->region != NULL && m->mutation != NULL ? &m->base : NULL;
}

/* --- Multi ------------------------------------------------------------------------------------ */

RQ_INLINE bool action_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    Pb__Action *m = message;
    switch (tag) {
    case VARINT(1):
        return number32(c, &m->has_index, &m->index);
    case BYTES(2):
        return inner(u, c, mutation, &m->mutation);
    case BYTES(3):
        return inner(u, c, get, &m->get);
    case BYTES(4):
        return inner(u, c, service_call, &m->service_call);
    default:
        return false;
    }
}

static bool action(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__Action *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__Action **)slot = m;
    *m = (Pb__Action)PB__ACTION__INIT;
    return each(u, bytes, action_member, m);
}

typedef struct region_action_parts {
    Pb__RegionAction *region_action;
    repeated actions;
} region_action_parts;

RQ_INLINE bool region_action_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    region_action_parts *parts = message;
    Pb__RegionAction *m = parts->region_action;
    switch (tag) {
    case BYTES(1):
        return inner(u, c, region, &m->region);
    case VARINT(2):
        return boolean(c, &m->has_atomic, &m->atomic);
    case BYTES(3):
        return note(&parts->actions, c);
    case BYTES(4):
        return inner(u, c, condition, &m->condition);
    default:
        return false;
    }
}

static bool region_action(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__RegionAction *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__RegionAction **)slot = m;
    *m = (Pb__RegionAction)PB__REGION_ACTION__INIT;
    region_action_parts parts = {.region_action = m};
    if (!each(u, bytes, region_action_member, &parts) || m->region == NULL) return false;
    m->n_action = parts.actions.count;
    return list(u, bytes, 3, action, &parts.actions, &m->action);
}

typedef struct multi_parts {
    Pb__MultiRequest *multi;
    repeated region_actions;
} multi_parts;

RQ_INLINE bool multi_request_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    multi_parts *parts = message;
    Pb__MultiRequest *m = parts->multi;
    switch (tag) {
    case BYTES(1):
        return note(&parts->region_actions, c);
    case VARINT(2):
        return number64(c, &m->has_noncegroup, &m->noncegroup);
    case BYTES(3):
        return inner(u, c, condition, &m->condition);
    default:
        return false;
    }
}

static ProtobufCMessage *multi_request(unpacker *u, rq_slice bytes)
{
    Pb__MultiRequest *m = take(u, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MultiRequest)PB__MULTI_REQUEST__INIT;
    multi_parts parts = {.multi = m};
    if (!each(u, bytes, multi_request_member, &parts)) return NULL;
    m->n_regionaction = parts.region_actions.count;
    bool fine = list(u, bytes, 1, region_action, &parts.region_actions, &m->regionaction);
    return fine ? &m->base : NULL;
}

/* --- all -------------------------------------------------------------------------------------- */

ProtobufCMessage *rq__unpack_request(const ProtobufCMessageDescriptor *type,
                                     ProtobufCAllocator *allocator, rq_slice bytes)
{
    unpacker u = {.allocator = allocator};
    if (type == &pb__get_request__descriptor) return get_request(&u, bytes);
    if (type == &pb__mutate_request__descriptor) return mutate_request(&u, bytes);
    if (type == &pb__multi_request__descriptor) return multi_request(&u, bytes);
    return NULL;
}
