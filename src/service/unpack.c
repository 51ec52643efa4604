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

/* Room for as many pointers as were counted; none for none. */
static bool room(ProtobufCAllocator *a, size_t count, void *slot)
{
    void **list = (void **)slot;
    *list = count == 0 ? NULL : take(a, count * sizeof(void *));
    return count == 0 || *list != NULL;
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool region(ProtobufCAllocator *a, const rq_pb_field *field, Pb__RegionSpecifier **ret)
{
    Pb__RegionSpecifier *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES || *ret != NULL) return false;
    *m = (Pb__RegionSpecifier)PB__REGION_SPECIFIER__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    bool has_type = false;
    bool has_value = false;
    while (rq_cursor_left(&c) > 0) {
        bool fine = rq_pb_field_read(&c, &f);
        if (fine && f.number == 1) {
            m->type = (Pb__RegionSpecifier__RegionSpecifierType)f.value;
            has_type = fine = f.wire == RQ_PB_VARINT && f.value <= INT32_MAX;
        } else if (fine && f.number == 2) {
            has_value = fine = binary(&f, &m->value);
        } else {
            fine = false;
        }
        if (!fine) return false;
    }
    return has_type && has_value;
}

static bool column(ProtobufCAllocator *a, const rq_pb_field *field, Pb__Column **ret)
{
    Pb__Column *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES) return false;
    *m = (Pb__Column)PB__COLUMN__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    bool has_family = false;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f) || f.wire != RQ_PB_BYTES || f.number > 2) return false;
        if (f.number == 2)
            m->n_qualifier++;
        else
            has_family = binary(&f, &m->family);
    }
    if (m->n_qualifier > 0) m->qualifier = take(a, m->n_qualifier * sizeof *m->qualifier);
    if (m->n_qualifier > 0 && m->qualifier == NULL) return false;
    c = rq_cursor_of(field->bytes);
    for (size_t n = 0; n < m->n_qualifier;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number == 2 && !binary(&f, &m->qualifier[n++])) return false;
    }
    return has_family;
}

/* --- Get -------------------------------------------------------------------------------------- */

static bool get_field(ProtobufCAllocator *a, const rq_pb_field *f, Pb__Get *m, bool *has_row)
{
    switch (f->number) {
    case 1:
        *has_row = true;
        return binary(f, &m->row);
    case 2:
        m->n_column++;
        return true;
    case 3:
        m->n_attribute++;
        return true;
    case 4:
        return other(a, f, &pb__filter__descriptor, &m->filter);
    case 5:
        return other(a, f, &pb__time_range__descriptor, &m->time_range);
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
        m->n_cf_time_range++;
        return true;
    case 14:
        return boolean(f, &m->has_load_column_families_on_demand,
                       &m->load_column_families_on_demand);
    case 15:
        return boolean(f, &m->has_query_metrics_enabled, &m->query_metrics_enabled);
    default:
        return false;
    }
}

static bool get(ProtobufCAllocator *a, const rq_pb_field *field, Pb__Get **ret)
{
    Pb__Get *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES || *ret != NULL) return false;
    *m = (Pb__Get)PB__GET__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    bool has_row = false;
    while (rq_cursor_left(&c) > 0)
        if (!rq_pb_field_read(&c, &f) || !get_field(a, &f, m, &has_row)) return false;
    if (!has_row || !room(a, m->n_column, &m->column) || !room(a, m->n_attribute, &m->attribute) ||
        !room(a, m->n_cf_time_range, &m->cf_time_range))
        return false;
    size_t left = m->n_column + m->n_attribute + m->n_cf_time_range;
    size_t columns = 0;
    size_t attributes = 0;
    size_t ranges = 0;
    for (c = rq_cursor_of(field->bytes); left > 0;) {
        bool fine = rq_pb_field_read(&c, &f);
        if (!fine) return false;
        if (f.number != 2 && f.number != 3 && f.number != 13) continue;
        left--;
        if (f.number == 2) {
            fine = column(a, &f, &m->column[columns++]);
        } else if (f.number == 3) {
            m->attribute[attributes] = NULL;
            fine = other(a, &f, &pb__name_bytes_pair__descriptor, &m->attribute[attributes++]);
        } else {
            m->cf_time_range[ranges] = NULL;
            fine = other(a, &f, &pb__column_family_time_range__descriptor,
                         &m->cf_time_range[ranges++]);
        }
        if (!fine) return false;
    }
    return true;
}

static ProtobufCMessage *get_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__GetRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__GetRequest)PB__GET_REQUEST__INIT;
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return NULL;
        bool fine = f.number == 1   ? region(a, &f, &m->region)
                    : f.number == 2 ? get(a, &f, &m->get)
                                    : false;
        if (!fine) return NULL;
    }
    return m->region != NULL && m->get != NULL ? &m->base : NULL;
}

/* --- Mutate ----------------------------------------------------------------------------------- */

static bool mutation_field(ProtobufCAllocator *a, const rq_pb_field *f, Pb__MutationProto *m)
{
    switch (f->number) {
    case 1:
        m->has_row = 1;
        return binary(f, &m->row);
    case 2:
        m->has_mutate_type = 1;
        m->mutate_type = (Pb__MutationProto__MutationType)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 3:
        m->n_column_value++;
        return true;
    case 4:
        return number64(f, &m->has_timestamp, &m->timestamp);
    case 5:
        m->n_attribute++;
        return true;
    case 6:
        m->has_durability = 1;
        m->durability = (Pb__MutationProto__Durability)f->value;
        return f->wire == RQ_PB_VARINT && f->value <= INT32_MAX;
    case 7:
        return other(a, f, &pb__time_range__descriptor, &m->time_range);
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

static bool mutation(ProtobufCAllocator *a, const rq_pb_field *field, Pb__MutationProto **ret)
{
    Pb__MutationProto *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES || *ret != NULL) return false;
    *m = (Pb__MutationProto)PB__MUTATION_PROTO__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0)
        if (!rq_pb_field_read(&c, &f) || !mutation_field(a, &f, m)) return false;
    if (!room(a, m->n_column_value, &m->column_value) || !room(a, m->n_attribute, &m->attribute))
        return false;
    size_t columns = 0;
    size_t attributes = 0;
    for (c = rq_cursor_of(field->bytes);
         columns < m->n_column_value || attributes < m->n_attribute;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        bool fine = true;
        if (f.number == 3) {
            m->column_value[columns] = NULL;
            fine = other(a, &f, &pb__mutation_proto__column_value__descriptor,
                         &m->column_value[columns++]);
        } else if (f.number == 5) {
            m->attribute[attributes] = NULL;
            fine = other(a, &f, &pb__name_bytes_pair__descriptor, &m->attribute[attributes++]);
        }
        if (!fine) return false;
    }
    return true;
}

static ProtobufCMessage *mutate_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__MutateRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MutateRequest)PB__MUTATE_REQUEST__INIT;
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return NULL;
        bool fine = f.number == 1   ? region(a, &f, &m->region)
                    : f.number == 2 ? mutation(a, &f, &m->mutation)
                    : f.number == 3 ? other(a, &f, &pb__condition__descriptor, &m->condition)
                    : f.number == 4 ? number64(&f, &m->has_nonce_group, &m->nonce_group)
                                    : false;
        if (!fine) return NULL;
    }
    return m->region != NULL && m->mutation != NULL ? &m->base : NULL;
}

/* --- Multi ------------------------------------------------------------------------------------ */

static bool action(ProtobufCAllocator *a, const rq_pb_field *field, Pb__Action **ret)
{
    Pb__Action *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES) return false;
    *m = (Pb__Action)PB__ACTION__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return false;
        bool fine = f.number == 1   ? number32(&f, &m->has_index, &m->index)
                    : f.number == 2 ? mutation(a, &f, &m->mutation)
                    : f.number == 3 ? get(a, &f, &m->get)
                    : f.number == 4
                        ? other(a, &f, &pb__coprocessor_service_call__descriptor, &m->service_call)
                        : false;
        if (!fine) return false;
    }
    return true;
}

static bool region_action(ProtobufCAllocator *a, const rq_pb_field *field, Pb__RegionAction **ret)
{
    Pb__RegionAction *m = take(a, sizeof *m);
    if (m == NULL || field->wire != RQ_PB_BYTES) return false;
    *m = (Pb__RegionAction)PB__REGION_ACTION__INIT;
    *ret = m;
    rq_cursor c = rq_cursor_of(field->bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return false;
        bool fine = true;
        if (f.number == 3)
            m->n_action++;
        else
            fine = f.number == 1   ? region(a, &f, &m->region)
                   : f.number == 2 ? boolean(&f, &m->has_atomic, &m->atomic)
                   : f.number == 4 ? other(a, &f, &pb__condition__descriptor, &m->condition)
                                   : false;
        if (!fine) return false;
    }
    if (m->region == NULL || !room(a, m->n_action, &m->action)) return false;
    c = rq_cursor_of(field->bytes);
    for (size_t n = 0; n < m->n_action;) {
        if (!rq_pb_field_read(&c, &f)) return false;
        if (f.number == 3 && !action(a, &f, &m->action[n++])) return false;
    }
    return true;
}

static ProtobufCMessage *multi_request(ProtobufCAllocator *a, rq_slice bytes)
{
    Pb__MultiRequest *m = take(a, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__MultiRequest)PB__MULTI_REQUEST__INIT;
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    while (rq_cursor_left(&c) > 0) {
        if (!rq_pb_field_read(&c, &f)) return NULL;
        bool fine = true;
        if (f.number == 1)
            m->n_regionaction++;
        else
            fine = f.number == 2   ? number64(&f, &m->has_noncegroup, &m->noncegroup)
                   : f.number == 3 ? other(a, &f, &pb__condition__descriptor, &m->condition)
                                   : false;
        if (!fine) return NULL;
    }
    if (!room(a, m->n_regionaction, &m->regionaction)) return NULL;
    c = rq_cursor_of(bytes);
    for (size_t n = 0; n < m->n_regionaction;) {
        if (!rq_pb_field_read(&c, &f)) return NULL;
        if (f.number == 1 && !region_action(a, &f, &m->regionaction[n++])) return NULL;
    }
    return &m->base;
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
