/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as text; see slow_text.h. A message is printed in protobuf's text format on one line
 * until the buffer is full, so the cost is bounded by the buffer, however large the message is. */
#include "service/slow_text.h"

#include "base/bytes.h"
#include "service/messages.h"

#include "proto/client.pb-c.h"

#include <stdarg.h>
#include <stdio.h>

#define DEPTH_MAX 16 /* of messages in messages */

typedef struct out {
    char *next;
    size_t left; /* with the terminating NUL; 1: full */
} out;

static bool is_full(const out *o)
{
    return o->left <= 1;
}

RQ_PRINTF(2, 3)
static void print(out *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(o->next, o->left, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < o->left ? (size_t)n : o->left - 1;
    o->next += len;
    o->left -= len;
}

static void print_bytes(out *o, ProtobufCBinaryData b)
{
    print(o, "\"");
    size_t len = rq_bytes_to_string(rq_slice_of(b.data, b.len), o->next, o->left);
    o->next += len;
    o->left -= len;
    print(o, "\"");
}

/* --- any message ------------------------------------------------------------------------------ */

static void print_message(out *o, const ProtobufCMessage *m, unsigned depth);

static void print_enum(out *o, const ProtobufCEnumDescriptor *e, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(e, value);
    if (v != NULL)
        print(o, "%s", v->name);
    else
        print(o, "%d", value);
}

static void print_number(out *o, ProtobufCType type, const void *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        print(o, "%d", *(const int32_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        print(o, "%u", *(const uint32_t *)at);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        print(o, "%lld", (long long)*(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        print(o, "%g", (double)*(const float *)at);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        print(o, "%g", *(const double *)at);
        break;
    default:
        print(o, "%llu", (unsigned long long)*(const uint64_t *)at);
    }
}

static void print_value(out *o, const ProtobufCFieldDescriptor *f, const void *at, unsigned depth)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        print_message(o, *(ProtobufCMessage *const *)at, depth + 1);
        break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)at;
        print_bytes(o, (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text});
        break;
    }
    case PROTOBUF_C_TYPE_BYTES:
        print_bytes(o, *(const ProtobufCBinaryData *)at);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        print(o, "%s", *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        print_enum(o, f->descriptor, *(const int *)at);
        break;
    default:
        print_number(o, f->type, at);
    }
}

static void print_field(out *o, const ProtobufCFieldDescriptor *f, const void *at, unsigned depth)
{
    bool is_message = f->type == PROTOBUF_C_TYPE_MESSAGE;
    print(o, is_message ? "%s " : "%s: ", f->name);
    print_value(o, f, at, depth);
    print(o, " ");
}

/* An optional field that was not sent. */
static bool is_absent(const ProtobufCFieldDescriptor *f, const uint8_t *message)
{
    const void *at = message + f->offset;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) return *(ProtobufCMessage *const *)at == NULL;
    if (f->type == PROTOBUF_C_TYPE_STRING)
        return *(char *const *)at == NULL ||
               (f->label != PROTOBUF_C_LABEL_REQUIRED && *(char *const *)at == f->default_value);
    if (f->label == PROTOBUF_C_LABEL_REQUIRED) return false;
    return !*(const protobuf_c_boolean *)(message + f->quantifier_offset);
}

static void print_repeated(out *o, const ProtobufCFieldDescriptor *f, const uint8_t *message,
                           unsigned depth)
{
    size_t count = *(const size_t *)(message + f->quantifier_offset);
    const uint8_t *items = *(uint8_t *const *)(message + f->offset);
    for (size_t i = 0; i < count && !is_full(o); i++)
        print_field(o, f, items + i * rq__pb_element_size(f->type), depth);
}

static void print_fields(out *o, const ProtobufCMessage *m, unsigned depth)
{
    const uint8_t *message = (const uint8_t *)m;
    for (unsigned i = 0; i < m->descriptor->n_fields && !is_full(o); i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            print_repeated(o, f, message, depth);
        else if (!is_absent(f, message))
            print_field(o, f, message + f->offset, depth);
    }
}

static void print_message(out *o, const ProtobufCMessage *m, unsigned depth)
{
    print(o, "{ ");
    if (depth < DEPTH_MAX) print_fields(o, m, depth);
    print(o, "}");
}

/* --- ClientService's requests ----------------------------------------------------------------- */

static void set_region(rq_call_text *t, const Pb__RegionSpecifier *r)
{
    rq_bytes_to_string(rq_slice_of(r->value.data, r->value.len), t->region, sizeof t->region);
}

static void describe_row(rq_call_text *t, out *o, const Pb__RegionSpecifier *region,
                         ProtobufCBinaryData row)
{
    set_region(t, region);
    print(o, "region= %s, row= ", t->region);
    o->left -=
        o->left > 1 ? rq_bytes_to_string(rq_slice_of(row.data, row.len), o->next, o->left) : 0;
}

static void describe_mutate(rq_call_text *t, out *o, const Pb__MutateRequest *r)
{
    Pb__MutationProto__MutationType type = r->mutation->mutate_type;
    t->only_writes = r->condition == NULL && (type == PB__MUTATION_PROTO__MUTATION_TYPE__PUT ||
                                              type == PB__MUTATION_PROTO__MUTATION_TYPE__DELETE);
    describe_row(t, o, r->region, r->mutation->row);
}

static void count_action(rq_call_text *t, const Pb__Action *a)
{
    t->gets += a->get != NULL;
    t->mutations += a->mutation != NULL;
    t->service_calls += a->service_call != NULL;
}

/* Number of actions examined: a Multi may have a million of them, and this runs on its loop. */
#define ACTIONS_COUNTED 10000

static void describe_multi(rq_call_text *t, out *o, const Pb__MultiRequest *r)
{
    size_t actions = 0, counted = 0;
    for (size_t i = 0; i < r->n_regionaction && counted < ACTIONS_COUNTED; i++) {
        const Pb__RegionAction *g = r->regionaction[i];
        actions += g->n_action;
        counted++;
        for (size_t k = 0; k < g->n_action && counted < ACTIONS_COUNTED; k++, counted++)
            count_action(t, g->action[k]);
    }
    if (r->n_regionaction > 0) set_region(t, r->regionaction[0]->region);
    t->only_writes = t->gets == 0 && t->service_calls == 0;
    print(o, "region= %s, for %s%zu action(s)", t->region,
          counted < ACTIONS_COUNTED ? "" : "at least ", actions);
}

static void describe_service(rq_call_text *t, out *o, const Pb__CoprocessorServiceRequest *r)
{
    set_region(t, r->region);
    print(o, "coprocessorService= %s:%s", r->call->service_name, r->call->method_name);
}

void rq__describe_call(const rq_call *call, rq_call_text *ret)
{
    const ProtobufCMessage *m = call->param;
    out o = {ret->param, sizeof ret->param};
    if (m->descriptor == &pb__get_request__descriptor) {
        const Pb__GetRequest *r = (const Pb__GetRequest *)m;
        describe_row(ret, &o, r->region, r->get->row);
    } else if (m->descriptor == &pb__mutate_request__descriptor) {
        describe_mutate(ret, &o, (const Pb__MutateRequest *)m);
    } else if (m->descriptor == &pb__multi_request__descriptor) {
        describe_multi(ret, &o, (const Pb__MultiRequest *)m);
    } else if (m->descriptor == &pb__coprocessor_service_request__descriptor) {
        describe_service(ret, &o, (const Pb__CoprocessorServiceRequest *)m);
    } else {
        if (m->descriptor == &pb__scan_request__descriptor &&
            ((const Pb__ScanRequest *)m)->region != NULL)
            set_region(ret, ((const Pb__ScanRequest *)m)->region);
        print_fields(&o, m, 0);
        if (o.next > ret->param && o.next[-1] == ' ') o.next[-1] = '\0';
    }
}
