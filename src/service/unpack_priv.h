/* SPDX-License-Identifier: Apache-2.0 */
/* What the decoders of requests have in common (unpack.c, unpack_scan.c): memory, fields, and the
 * messages that several requests contain. Field numbers as in proto/client.proto. */
#ifndef RQ_SERVICE_UNPACK_PRIV_H
#define RQ_SERVICE_UNPACK_PRIV_H

#include "base/pb.h"
#include "service/unpack.h"

#include "proto/client.pb-c.h"

/* Memory for a request's message, taken from the allocator in pieces: a Get needs eight. */
typedef struct unpacker {
    ProtobufCAllocator *allocator;
    uint8_t *next, *end;
} unpacker;

#define PIECE 1024
#define ALIGNMENT ((size_t)16)

static inline void *take_piece(unpacker *u, size_t size)
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

/* Tags are single bytes (but for a few of a Scan), so number and wire type are compared at once;
 * any other byte is an unknown field. */
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

static inline bool generic(unpacker *u, rq_slice bytes, const ProtobufCMessageDescriptor *type,
                           void *slot)
{
    void *message = protobuf_c_message_unpack(type, u->allocator, bytes.len, bytes.ptr);
    *(void **)slot = message;
    return message != NULL;
}

/* State for a repeated field while its message is decoded. In most messages the field occurs once;
 * then no second pass is needed. */
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

static inline bool attribute(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__name_bytes_pair__descriptor, slot);
}

static inline bool family_range(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__column_family_time_range__descriptor, slot);
}

static inline bool filter(unpacker *u, rq_slice bytes, void *slot)
{
    return generic(u, bytes, &pb__filter__descriptor, slot);
}

RQ_INLINE bool time_range_member(unpacker *u, uint8_t tag, rq_cursor *c, void *m)
{
    Pb__TimeRange *t = m;
    (void)u;
    if (tag == VARINT(1)) return number64(c, &t->has_from, &t->from);
    return tag == VARINT(2) && number64(c, &t->has_to, &t->to);
}

static inline bool time_range(unpacker *u, rq_slice bytes, void *slot)
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

static inline bool region(unpacker *u, rq_slice bytes, void *slot)
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

static inline bool column(unpacker *u, rq_slice bytes, void *slot)
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

/* --- unpack_scan.c ---------------------------------------------------------------------------- */

ProtobufCMessage *rq__unpack_scan_request(unpacker *u, rq_slice bytes);

#endif
