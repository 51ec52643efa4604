/* SPDX-License-Identifier: Apache-2.0 */
/* Requests made from descriptors; see request_maker.h. */
#include "request_maker.h"

#include "base/bytes.h"
#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    const request_plan *plan;
    size_t element; /* number of the current repeated element */
    bool repeating;
} maker;

static void append(rq_buf *b, const void *bytes, size_t len)
{
    if (rq_buf_append(b, bytes, len) != RQ_OK) abort();
}

static void append_varint(rq_buf *b, uint64_t v)
{
    uint8_t bytes[RQ_VARINT_MAX];
    append(b, bytes, rq_put_varint(bytes, v));
}

/* --- values ----------------------------------------------------------------------------------- */

/* Values by the field's name, or by "Message.field"; other fields are "x". */
static const struct {
    const char *name;
    const char *value;
} texts[] = {
    {"family", "f"},
    {"column_family", "f"},
    {"column_name", "f"},
    {"ColumnFamilySchema.name", "f"},
    {"row", "a1"},
    {"start_row", "a"},
    {"stop_row", "b"},
    {"qualifier", "q"},
    {"value", "12345678"},
    {"namespace_", "default"},
    {"namespace", "default"},
    {"namespaceName", "default"},
    {"NamespaceDescriptor.name", "default"},
    {"TableName.qualifier", "t"},
    {"ColumnPrefixFilter.prefix", "q"},
    {"Filter.name", "org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter"},
    {"Filter.serialized_filter", ""},
    {"Comparator.name", "org.apache.hadoop.hbase.filter.BinaryComparator"},
    {"Comparator.serialized_comparator", "\x0a\x03\x0a\x01q"},
    {"signature", "flush-table-proc"},
    {"instance", "t"},
    {"host_name", "localhost"},
    {"BytesBytesPair.first", "abcd"},
    {"BytesBytesPair.second", "\x01\x01\x01\x01"},
    {"interpreter_class_name", "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter"},
    {"log_class_name", "SlowLogResponseRequest"},
};

static bool is_named(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                     const char *name)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL) return strcmp(field->name, name) == 0;
    return strlen(type->short_name) == (size_t)(dot - name) &&
           memcmp(type->short_name, name, (size_t)(dot - name)) == 0 &&
           strcmp(field->name, dot + 1) == 0;
}

static const char *text_of(const ProtobufCMessageDescriptor *type,
                           const ProtobufCFieldDescriptor *field)
{
    const char *found = NULL;
    for (size_t i = 0; i < RQ_ARRAY_LEN(texts); i++)
        if (is_named(type, field, texts[i].name) && (found == NULL || strchr(texts[i].name, '.')))
            found = texts[i].value;
    return found != NULL ? found : "x";
}

/* Class names and sizes of numbers become invalid with a counter at the end. */
static bool has_counter(const maker *m, const ProtobufCMessageDescriptor *type,
                        const ProtobufCFieldDescriptor *field)
{
    static const char *const fixed[] = {
        "value",       "serialized_filter", "serialized_comparator",
        "Filter.name", "Comparator.name",   "BytesBytesPair.second",
    };
    static const char *const families[] = {"family", "column_family", "ColumnFamilySchema.name"};
    if (!m->repeating || m->plan->values == REQUEST_EQUAL) return false;
    for (size_t i = 0; i < RQ_ARRAY_LEN(fixed); i++)
        if (is_named(type, field, fixed[i])) return false;
    for (size_t i = 0; i < RQ_ARRAY_LEN(families); i++)
        if (m->plan->values == REQUEST_OF_ONE_FAMILY && is_named(type, field, families[i]))
            return false;
    return true;
}

static void append_text(const maker *m, const ProtobufCMessageDescriptor *type,
                        const ProtobufCFieldDescriptor *field, rq_buf *out)
{
    const request_plan *p = m->plan;
    rq_slice text = rq_slice_cstr(text_of(type, field));
    bool is_region = strcmp(type->short_name, "RegionSpecifier") == 0;
    if (is_region || strstr(field->name, "region_name") != NULL) text = rq_slice_cstr(p->region);
    if (p->filter != NULL && is_named(type, field, "Filter.name") && !m->repeating)
        text = rq_slice_cstr(p->filter);
    if (p->filter != NULL && is_named(type, field, "Filter.serialized_filter") && !m->repeating)
        text = rq_buf_slice(p->filter_bytes);
    if (p->service != NULL && strcmp(field->name, "service_name") == 0)
        text = rq_slice_cstr(p->service);
    if (p->method != NULL && strcmp(field->name, "method_name") == 0)
        text = rq_slice_cstr(p->method);
    if (p->call_bytes != NULL && is_named(type, field, "CoprocessorServiceCall.request"))
        text = rq_buf_slice(p->call_bytes);
    char counter[24] = "";
    size_t n = p->values == REQUEST_FALLING ? 99999999 - m->element : m->element;
    if (!is_region && has_counter(m, type, field)) snprintf(counter, sizeof counter, "%08zu", n);
    append_varint(out, text.len + strlen(counter));
    append(out, text.ptr, text.len);
    append(out, counter, strlen(counter));
}

static uint64_t number_of(const maker *m, const ProtobufCMessageDescriptor *type,
                          const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumDescriptor *e = field->descriptor;
        /* type 2: by encoded name */
        if (strcmp(type->short_name, "RegionSpecifier") == 0) return 2;
        return (uint64_t)e->values[m->plan->choice % e->n_values].value;
    }
    if (field->type == PROTOBUF_C_TYPE_BOOL) return m->plan->choice % 2;
    if (!m->repeating || m->plan->values == REQUEST_EQUAL) return 1;
    return m->plan->values == REQUEST_FALLING ? 99999999 - m->element : m->element;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Optional fields without which a request has no effect. */
static bool is_wanted(const maker *m, const ProtobufCMessageDescriptor *type,
                      const ProtobufCFieldDescriptor *field)
{
    static const char *const wanted[] = {
        "region",         "row",         "qualifier",    "mutate_type",
        "delete_type",    "family",      "value",        "ScanRequest.scan",
        "number_of_rows", "time_range",  "to",           "TableSchema.table_name",
        "table_name",     "region_info", "split_row",    "column_families",
        "operator_",      "comparator",  "compare_type", "QualifierValue.qualifier",
        "procedure",      "instance",    "name",         "start_row",
        "max_versions",
    };
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && strcmp(field->name, "filter") == 0)
        return m->plan->filter != NULL && strcmp(type->short_name, "Condition") != 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(wanted); i++)
        if (is_named(type, field, wanted[i])) return true;
    return false;
}

static uint32_t wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 1;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 5;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 2;
    default:
        return 0;
    }
}

#define ABROAD UINT32_MAX /* fields that are not on the path */

static void make(maker *m, const ProtobufCMessageDescriptor *type, unsigned depth, unsigned nested,
                 rq_buf *out);

static void append_field(maker *m, const ProtobufCMessageDescriptor *type,
                         const ProtobufCFieldDescriptor *field, unsigned depth, unsigned nested,
                         rq_buf *out)
{
    append_varint(out, (uint64_t)field->id << 3 | wire_type(field->type));
    switch (wire_type(field->type)) {
    case 0:
        append_varint(out, number_of(m, type, field));
        return;
    case 1:
        append(out, "\0\0\0\0\0\0\0\1", 8);
        return;
    case 5:
        append(out, "\0\0\0\1", 4);
        return;
    default:
        break;
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        append_text(m, type, field, out);
        return;
    }
    rq_buf inner = {0};
    make(m, field->descriptor, depth, nested + 1, &inner);
    append_varint(out, inner.len);
    append(out, inner.ptr, inner.len);
    rq_buf_clear(&inner);
}

/* The number of times the field is in the message. */
static size_t times(const maker *m, const ProtobufCMessageDescriptor *type,
                    const ProtobufCFieldDescriptor *field, unsigned depth, unsigned nested,
                    bool *ret_on_path)
{
    const request_path *path = m->plan->path;
    bool here = path != NULL && depth < path->depth;
    bool last = here && depth + 1 == path->depth;
    *ret_on_path = here && path->fields[depth] == field;
    if (*ret_on_path) return last ? m->plan->count : 1;
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (last && repeated && m->plan->siblings) return m->plan->count;
    if (field->label == PROTOBUF_C_LABEL_REQUIRED) return 1;
    if (nested > 6) return 0;
    return is_wanted(m, type, field) ? 1 : 0;
}

static void make(maker *m, const ProtobufCMessageDescriptor *type, unsigned depth, unsigned nested,
                 rq_buf *out)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool on_path;
        size_t n = times(m, type, field, depth, nested, &on_path);
        bool repeats = n > 1;
        for (size_t k = 0; k < n; k++) {
            if (repeats) {
                m->repeating = true;
                m->element = k;
            }
            append_field(m, type, field, on_path ? depth + 1 : ABROAD, nested, out);
        }
        if (repeats) m->repeating = false;
    }
}

void request_make(const request_plan *plan, rq_buf *out)
{
    maker m = {.plan = plan};
    make(&m, plan->type, 0, 0, out);
}

size_t request_count_for(request_plan plan, size_t bytes)
{
    enum { FEW = 10, MANY = 110 };
    rq_buf few = {0}, many = {0};
    plan.count = FEW;
    request_make(&plan, &few);
    plan.count = MANY;
    request_make(&plan, &many);
    size_t each = (many.len - few.len) / (MANY - FEW);
    rq_buf_clear(&few);
    rq_buf_clear(&many);
    return each == 0 ? bytes : bytes / each + 1;
}

/* --- paths ------------------------------------------------------------------------------------ */

static void walk(const ProtobufCMessageDescriptor *type, request_path *path,
                 void (*use)(void *ctx, const request_path *path), void *ctx)
{
    if (path->depth == REQUEST_PATH_MAX) return;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        path->fields[path->depth++] = field;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) use(ctx, path);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) walk(field->descriptor, path, use, ctx);
        path->depth--;
    }
}

void request_each_path(const ProtobufCMessageDescriptor *type,
                       void (*use)(void *ctx, const request_path *path), void *ctx)
{
    request_path path = {0};
    walk(type, &path, use, ctx);
}

const char *request_path_text(const request_path *path, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < path->depth && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", i == 0 ? "" : ".",
                                path->fields[i]->name);
    return text;
}
