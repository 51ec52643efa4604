/* SPDX-License-Identifier: Apache-2.0 */
/* See pb_missing.h. Each message is read twice: once to see which fields it has, once to visit the messages in it. The
 * names are in HBase's order: first those of a message's own fields, then those within the messages in it, in the order of
 * the bytes (HBase: of the fields' numbers, in which encoders write them). */
#include "base/pb_missing.h"

#include "base/pb.h"

#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 128 /* of a message */
#define DEPTH_MAX 64   /* of messages in messages; HBase's are less than ten deep */

/* The field in which a message is; `up`: the field in which that field's message is. */
typedef struct place {
    const struct place *up;
    const ProtobufCFieldDescriptor *field;
    uint32_t index; /* of a repeated field */
} place;

typedef struct search {
    char *text;
    size_t size, len; /* len: without the NUL */
    bool found;
} search;

static void put(search *s, const char *words)
{
    if (s->len + 1 >= s->size) return;
    int n = snprintf(s->text + s->len, s->size - s->len, "%s", words);
    s->len += (size_t)n < s->size - s->len ? (size_t)n : s->size - s->len - 1;
}

static void put_place(search *s, const place *p)
{
    if (p == NULL) return;
    put_place(s, p->up);
    put(s, p->field->name);
    char index[16];
    snprintf(index, sizeof index, "[%u].", p->index);
    put(s, p->field->label == PROTOBUF_C_LABEL_REPEATED ? index : ".");
}

static void put_missing(search *s, const place *in, const char *name)
{
    put(s, s->found ? ", " : "Message missing required fields: ");
    s->found = true;
    if (s->len + 1 >= s->size) return; /* there may be a million */
    put_place(s, in);
    put(s, name);
}

static uint8_t wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return RQ_PB_BYTES;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return RQ_PB_FIXED64;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return RQ_PB_FIXED32;
    default:
        return RQ_PB_VARINT;
    }
}

/* The place of the field in the descriptor, whose fields are sorted by number; n_fields: unknown, or of another wire type,
 * which counts as unknown. */
static unsigned place_of(const ProtobufCMessageDescriptor *type, const rq_pb_field *f)
{
    unsigned low = 0, high = type->n_fields;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (type->fields[middle].id < f->number)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_known = low < type->n_fields && type->fields[low].id == f->number &&
                    wire_of(type->fields[low].type) == f->wire;
    return is_known ? low : type->n_fields;
}

/* False: malformed. */
static bool find_own(search *s, const ProtobufCMessageDescriptor *type, rq_slice bytes,
                     const place *in)
{
    bool seen[FIELDS_MAX + 1];
    /* Not the whole array: a request may have a million messages of two bytes. */
    memset(seen, 0, type->n_fields + 1);
    rq_cursor c = rq_cursor_of(bytes);
    while (rq_cursor_left(&c) > 0) {
        rq_pb_field f;
        if (!rq_pb_field_read(&c, &f)) return false;
        seen[place_of(type, &f)] = true;
    }
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && !seen[i])
            put_missing(s, in, type->fields[i].name);
    return true;
}

static bool find(search *s, const ProtobufCMessageDescriptor *type, rq_slice bytes, const place *in,
                 unsigned depth);

/* REQUIRES: find_own has read the bytes. */
static bool find_inner(search *s, const ProtobufCMessageDescriptor *type, rq_slice bytes,
                       const place *in, unsigned depth)
{
    uint32_t counts[FIELDS_MAX + 1];
    bool good = true;
    if (bytes.len == 0) return true;
    memset(counts, 0, (type->n_fields + 1) * sizeof *counts);
    rq_cursor c = rq_cursor_of(bytes);
    while (good && rq_cursor_left(&c) > 0) {
        rq_pb_field f;
        if (!rq_pb_field_read(&c, &f)) return false;
        unsigned at = place_of(type, &f);
        if (at == type->n_fields || type->fields[at].type != PROTOBUF_C_TYPE_MESSAGE) continue;
        const place inner = {.up = in, .field = &type->fields[at], .index = counts[at]++};
        good = find(s, type->fields[at].descriptor, f.bytes, &inner, depth + 1);
    }
    return good;
}

static bool find(search *s, const ProtobufCMessageDescriptor *type, rq_slice bytes, const place *in,
                 unsigned depth)
{
    RQ_ASSERT(type->n_fields <= FIELDS_MAX);
    return depth < DEPTH_MAX && find_own(s, type, bytes, in) &&
           find_inner(s, type, bytes, in, depth);
}

bool rq_pb_missing(const ProtobufCMessageDescriptor *type, rq_slice bytes, char *text, size_t size)
{
    search s = {.text = text, .size = size};
    if (size > 0) text[0] = '\0';
    return find(&s, type, bytes, NULL, 0) && s.found;
}
