/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of the frequent requests; see unpack.h. Field numbers as in proto/client.proto. */
#include "service/unpack_priv.h"

static bool condition(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__condition__descriptor, slot);
}

static bool service_call(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__coprocessor_service_call__descriptor, slot);
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
    if (type == &pb__scan_request__descriptor) return rq__unpack_scan_request(&u, bytes);
    return NULL;
}
