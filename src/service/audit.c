/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: a line for each call of MasterService, AdminService and HbckService that changes
 * or could change something, refused calls included.
 *
 *   INFO audit: CreateTable user=bob address=127.0.0.1:40112 table=t result=ok procedure=7
 *
 * The fields of the line come from the request, found by its message descriptor: each top-level
 * field that names a table, region, family or namespace, and each plain value. So new methods need
 * no code here. Methods that only read have names that begin with Get, List, Is or Has, and are not
 * audited. The catalog logs the end of the procedure that a call started, under the subject
 * `procedure` with the same number.
 *
 * A client can make tens of thousands of such calls per second, each with a line of up to 4 kB. So the number of lines
 * per second about calls from one host is limited (rorqual.log.audit.rate). Further calls are only counted; the next
 * line has their number (`suppressed`).
 */
#include "service/admin_priv.h"
#include "service/messages.h"

#include "base/address.h"

#include "proto/client.pb-c.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SUBJECT "audit"
#define FIELDS_MAX 16
#define VALUE_MAX 640 /* a little more than the log prints of a value */

/* Calls that carry the data of clients, like a put. */
static bool carries_data(const char *method)
{
    return strcmp(method, "ReplicateWALEntry") == 0;
}

/* The line under construction; values that had to be formatted are in `text`. */
typedef struct audit {
    rq_log_field fields[FIELDS_MAX];
    size_t count;
    char text[FIELDS_MAX][VALUE_MAX];
} audit;

static bool only_reads(const char *method)
{
    static const char *const words[] = {"get", "list", "is", "has"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(words); i++)
        if (strncasecmp(method, words[i], strlen(words[i])) == 0) return true;
    return false;
}

static void add(audit *a, rq_log_field field)
{
    if (a->count < FIELDS_MAX) a->fields[a->count++] = field;
}

static const rq_log_field *find(const audit *a, const char *key)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->fields[i].key, key) == 0) return &a->fields[i];
    return NULL;
}

/* Keys that a line has by itself (log.h, and the result below). */
static bool is_taken(const audit *a, const char *key)
{
    static const char *const own[] = {"time",   "level", "subject",   "message",
                                      "result", "why",   "suppressed"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(own); i++)
        if (strcmp(own[i], key) == 0) return true;
    return find(a, key) != NULL;
}

/* Adds a value under its key; if the key is already used with another value, under the name of its
 * field. (An alter names its table twice: it is logged once.) */
static void add_named(audit *a, const char *key, const char *field_name, rq_slice bytes)
{
    const rq_log_field *same = find(a, key);
    if (same != NULL && rq_slice_eq(same->bytes, bytes)) return;
    if (is_taken(a, key)) key = field_name;
    if (!is_taken(a, key)) add(a, rq_log_bytes(key, bytes));
}

/* --- values ----------------------------------------------------------------------------------- */

typedef struct value {
    char *text;
    size_t len;
} value;

static void append(value *v, rq_slice bytes)
{
    size_t room = VALUE_MAX - v->len;
    size_t len = bytes.len < room ? bytes.len : room;
    if (len > 0) memcpy(v->text + v->len, bytes.ptr, len);
    v->len += len;
}

static void append_binary(value *v, const ProtobufCBinaryData *b)
{
    append(v, rq_slice_of(b->data, b->len));
}

static void append_table(value *v, const Pb__TableName *t)
{
    if (t == NULL) return;
    if (t->namespace_.len != 7 || memcmp(t->namespace_.data, "default", 7) != 0) {
        append_binary(v, &t->namespace_);
        append(v, RQ_SLICE_LIT(":"));
    }
    append_binary(v, &t->qualifier);
}

/* The key of a message that names something, or NULL; its name is appended. */
static const char *append_message(value *v, const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (d == &pb__table_name__descriptor) {
        append_table(v, (const Pb__TableName *)m);
        return "table";
    }
    if (d == &pb__table_schema__descriptor) {
        append_table(v, ((const Pb__TableSchema *)m)->table_name);
        return "table";
    }
    if (d == &pb__region_specifier__descriptor) {
        append_binary(v, &((const Pb__RegionSpecifier *)m)->value);
        return "region";
    }
    if (d == &pb__region_info__descriptor) {
        const Pb__RegionInfo *r = (const Pb__RegionInfo *)m;
        append_table(v, r->table_name);
        append(v, RQ_SLICE_LIT(","));
        if (r->has_start_key) append_binary(v, &r->start_key);
        return "region";
    }
    if (d == &pb__column_family_schema__descriptor) {
        append_binary(v, &((const Pb__ColumnFamilySchema *)m)->name);
        return "family";
    }
    if (d == &pb__namespace_descriptor__descriptor) {
        append_binary(v, &((const Pb__NamespaceDescriptor *)m)->name);
        return "namespace";
    }
    if (d == &pb__coprocessor_service_call__descriptor) {
        const Pb__CoprocessorServiceCall *c = (const Pb__CoprocessorServiceCall *)m;
        append(v, rq_slice_cstr(c->service_name));
        append(v, RQ_SLICE_LIT("."));
        append(v, rq_slice_cstr(c->method_name));
        return "call";
    }
    if (d == &pb__procedure_description__descriptor) {
        const Pb__ProcedureDescription *p = (const Pb__ProcedureDescription *)m;
        append(v, rq_slice_cstr(p->signature));
        append(v, RQ_SLICE_LIT(" "));
        if (p->instance != NULL) append(v, rq_slice_cstr(p->instance));
        return "procedure";
    }
    return NULL;
}

static void append_signed(value *v, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    append(v, rq_slice_cstr(text));
}

static void append_unsigned(value *v, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    append(v, rq_slice_cstr(text));
}

static void append_enum(value *v, const ProtobufCEnumDescriptor *d, int n)
{
    const ProtobufCEnumValue *e = protobuf_c_enum_descriptor_get_value(d, n);
    if (e != NULL)
        append(v, rq_slice_cstr(e->name));
    else
        append_signed(v, n);
}

/* One element of a field. Returns its key, or NULL when it says nothing. */
static const char *append_element(value *v, const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return append_message(v, *(const ProtobufCMessage *const *)at);
    case PROTOBUF_C_TYPE_BYTES:
        append_binary(v, at);
        return f->name;
    case PROTOBUF_C_TYPE_STRING:
        append(v, rq_slice_cstr(*(const char *const *)at));
        return f->name;
    case PROTOBUF_C_TYPE_BOOL:
        append(v, rq_slice_cstr(*(const protobuf_c_boolean *)at ? "true" : "false"));
        return f->name;
    case PROTOBUF_C_TYPE_ENUM:
        append_enum(v, f->descriptor, *(const int *)at);
        return f->name;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        append_signed(v, *(const int32_t *)at);
        return f->name;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        append_unsigned(v, *(const uint32_t *)at);
        return f->name;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        append_signed(v, *(const int64_t *)at);
        return f->name;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        append_unsigned(v, *(const uint64_t *)at);
        return f->name;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    default:
        return NULL;
    }
}

/* --- fields of a request ---------------------------------------------------------------------- */

#define ELEMENTS_MAX 8 /* of a list; how many more follows them */

static bool is_given(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *base = (const char *)m;
    if (f->label == PROTOBUF_C_LABEL_REQUIRED) return true;
    if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
        return *(const protobuf_c_boolean *)(base + f->quantifier_offset) != 0;
    const void *pointer = *(const void *const *)(base + f->offset);
    return pointer != NULL && pointer != f->default_value;
}

/* Repeats of a call have them; they say nothing to a reader. */
static bool is_noise(const ProtobufCFieldDescriptor *f)
{
    return strncmp(f->name, "nonce", 5) == 0;
}

static void add_list(audit *a, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                     value *v)
{
    const char *base = (const char *)m;
    size_t count = *(const size_t *)(base + f->quantifier_offset);
    const char *list = *(const char *const *)(base + f->offset);
    const char *key = NULL;
    for (size_t i = 0; i < count && i < ELEMENTS_MAX; i++) {
        if (i > 0) append(v, RQ_SLICE_LIT(","));
        key = append_element(v, f, list + i * rq__pb_element_size(f->type));
        if (key == NULL) return;
    }
    if (count == 0) return;
    if (count > ELEMENTS_MAX) {
        append(v, RQ_SLICE_LIT(",+"));
        append_unsigned(v, count - ELEMENTS_MAX);
    }
    add_named(a, key, f->name, rq_slice_of((const uint8_t *)v->text, v->len));
}

static void add_field(audit *a, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (a->count == FIELDS_MAX || is_noise(f)) return;
    value v = {a->text[a->count], 0};
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        add_list(a, m, f, &v);
    } else if (is_given(m, f)) {
        const char *key = append_element(&v, f, (const char *)m + f->offset);
        if (key != NULL) add_named(a, key, f->name, rq_slice_of((const uint8_t *)v.text, v.len));
    }
}

static void add_procedure(audit *a, const ProtobufCMessage *response)
{
    const ProtobufCFieldDescriptor *f =
        response == NULL
            ? NULL
            : protobuf_c_message_descriptor_get_field_by_name(response->descriptor, "proc_id");
    if (f == NULL || f->type != PROTOBUF_C_TYPE_UINT64 || f->label == PROTOBUF_C_LABEL_REPEATED ||
        !is_given(response, f))
        return;
    if (!is_taken(a, "procedure"))
        add(a, rq_log_number("procedure", *(const uint64_t *)((const char *)response + f->offset)));
}

/* --- the limit ---------------------------------------------------------------------------------- */

/* A number for the host: its IPv4 address, or the upper half of its IPv6 address. A host may choose the lower half
 * freely. */
static uint64_t host_number(const char *host)
{
    struct in6_addr a = {0};
    uint64_t number = 0;
    if (inet_pton(AF_INET, host, &a) == 1)
        memcpy(&number, &a, sizeof(struct in_addr));
    else if (inet_pton(AF_INET6, host, &a) == 1 && IN6_IS_ADDR_V4MAPPED(&a))
        memcpy(&number, &a.s6_addr[12], sizeof(struct in_addr));
    else
        memcpy(&number, &a, sizeof number);
    return number;
}

/* The constants are those of MurmurHash3's finalizer. */
static rq_log_limit *limit_of(rq__audit_limits *limits, const char *host)
{
    uint64_t h = host_number(host) ^ limits->seed;
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return &limits->of[(h ^ h >> 33) % RQ__AUDIT_LIMITS];
}

static bool passes(rq_admin_services *s, const char *host, uint64_t *ret_suppressed)
{
    rq_executor *executor = s->env.executor;
    rq_log_rate rate = {(unsigned)rq_config_int(s->config, RQ_SET_AUDIT_RATE),
                        UINT64_C(1000000000)};
    *ret_suppressed = 0;
    return rate.lines == 0 || rq_log_limit_passes(limit_of(&s->audit_limits, host), rate,
                                                  executor->now_ns(executor), ret_suppressed);
}

/* --- the line ----------------------------------------------------------------------------------- */

#define ENDING_FIELDS 2 /* the result, and why or the procedure */

void rq__audit(void *ctx, const rq_call *call, const ProtobufCMessage *response,
               const rq_rpc_exception *failure)
{
    rq_admin_services *s = ctx;
    const rq_rpc_client *c = call->client;
    uint64_t suppressed;
    if (!rq_log_takes(s->env.log, RQ_LOG_INFO) || only_reads(call->method->name) ||
        carries_data(call->method->name) || !passes(s, c->host, &suppressed))
        return;
    audit a;
    a.count = 0;
    add(&a, rq_log_bytes("user", rq_slice_of((const uint8_t *)c->user, c->user_len)));
    if (c->real_user != NULL) add(&a, rq_log_text("real_user", c->real_user));
    add(&a, rq_log_text("address", RQ_HOST_PORT(c->host, c->port)));
    if (suppressed > 0)
        add(&a, rq_log_number("suppressed", suppressed)); /* before fields that may fill the line */
    const ProtobufCMessage *m = call->param;
    for (unsigned i = 0; m != NULL && i < m->descriptor->n_fields; i++)
        if (a.count + ENDING_FIELDS < FIELDS_MAX) add_field(&a, m, &m->descriptor->fields[i]);
    add(&a, rq_log_text("result", failure == NULL ? "ok" : failure->java_class));
    if (failure != NULL && failure->message != NULL)
        add(&a, rq_log_text("why", failure->message));
    else
        add_procedure(&a, response);
    rq_log_write_fields(s->env.log, RQ_LOG_INFO, SUBJECT, call->method->name, a.fields, a.count);
}
