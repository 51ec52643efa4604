/* SPDX-License-Identifier: Apache-2.0 */
/* Makes filters and comparators from class names and protobuf bytes, with the two tables.
 *
 * Messages are decoded into the filter's own arena and stay there, so a filter borrows its prefixes
 * and values from its message. Hostile requests are bounded by a limit of arena bytes over all
 * levels, and a limit of depth (nested messages are bytes fields: each level decodes the next).
 *
 * Errors have HBase's texts. ProtobufUtil.toFilter wraps the class's exception into a
 * DoNotRetryIOException, toComparator into an IOException, and a filter that parses another one
 * wraps that exception into a DeserializationException; each wrapping puts the inner toString()
 * behind the outer class name. */
#include "filter/filter_priv.h"

#include "base/pb_missing.h"

#include "proto/filter.pb-c.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."
#define DESERIALIZATION "org.apache.hadoop.hbase.exceptions.DeserializationException: "
#define INVALID_MESSAGE                                                                            \
    "org.apache.hbase.thirdparty.com.google.protobuf.InvalidProtocolBufferException: "

static const struct {
    const char *name;
    rq_err (*parse)(rq__parse *p, rq_slice bytes, rq_filter **ret);
} filters[] = {
#define X(java_class, parser) {java_class, parser},
#include "filter/filters.def"
#undef X
};

static const struct {
    const char *name;
    rq_err (*parse)(rq__parse *p, rq_slice bytes, rq_comparator **ret);
} comparators[] = {
#define X(java_class, parser) {java_class, parser},
#include "filter/comparators.def"
#undef X
};

/* --- Messages --------------------------------------------------------------------------------- */
static void *budgeted_alloc(void *data, size_t size)
{
    rq__parse *p = data;
    if (size > p->bytes_left) {
        p->at_ceiling = true;
        return NULL;
    }
    p->bytes_left -= size;
    void *ptr = rq_arena_alloc(p->arena, size);
    p->no_memory = p->no_memory || ptr == NULL;
    return ptr;
}

static void free_with_arena(void *data, void *ptr)
{
    (void)data, (void)ptr;
}

void *rq__parse_calloc(rq__parse *p, size_t count, size_t size)
{
    if (count > 0 && size > p->bytes_left / count) {
        p->at_ceiling = true;
        (void)rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "filter of more than %u bytes",
                      RQ__FILTER_BYTES_MAX);
        return NULL;
    }
    p->bytes_left -= count * size;
    return rq_arena_calloc(p->arena, count, size);
}

/* Why the bytes are no such message, in `text`. */
static const char *reason_of(const ProtobufCMessageDescriptor *type, rq_slice bytes, char *text,
                             size_t size)
{
    if (!rq_pb_missing(type, bytes, text, size))
        snprintf(text, size, "%s is malformed", type->short_name);
    return text;
}

void *rq__parse_message(rq__parse *p, const ProtobufCMessageDescriptor *type, rq_slice bytes)
{
    char text[512];
    ProtobufCAllocator allocator = {budgeted_alloc, free_with_arena, p};
    void *message = protobuf_c_message_unpack(type, &allocator, bytes.len, bytes.ptr);
    if (message != NULL || p->no_memory) return message;
    if (p->at_ceiling)
        (void)rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "filter of more than %u bytes",
                      RQ__FILTER_BYTES_MAX);
    else
        (void)rq_fail(&p->why, RQ_E_DO_NOT_RETRY, DESERIALIZATION INVALID_MESSAGE "%s",
                      reason_of(type, bytes, text, sizeof text));
    return NULL;
}

rq_err rq__parse_failed(rq__parse *p)
{
    return p->why.code == RQ_OK ? RQ_E_NO_MEMORY : p->why.code;
}

rq_err rq__parse_illegal(rq__parse *p, const char *fmt, ...)
{
    char text[sizeof p->why.message / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "java.lang.IllegalArgumentException: %s", text);
}

rq_filter *rq__parse_new_filter(rq__parse *p, size_t size, const rq_filter_class *cls)
{
    rq_filter *f = rq__parse_calloc(p, 1, size);
    if (f == NULL) return NULL;
    f->cls = cls;
    p->parts++;
    f->may_end = cls->all_remaining != NULL;
    f->may_transform = cls->transform != NULL;
    f->judges_rows =
        f->may_end || (cls->row_key != NULL && cls->row_key != rq__filter_row_key_passes);
    f->resets = cls->reset != NULL;
    f->hints_rows = cls->row_hint != NULL;
    f->forgets_rows = cls->forgets_rows;
    return f;
}

rq_comparator *rq__parse_new_comparator(rq__parse *p, size_t size, const rq_comparator_class *cls,
                                        rq_slice value)
{
    rq_comparator *c = rq_arena_calloc(p->arena, 1, size);
    if (c == NULL) return NULL;
    c->cls = cls;
    c->value = value;
    return c;
}

rq_err rq__parse_op(rq__parse *p, int wire, rq_compare_op *ret)
{
    if (wire < RQ_LESS || wire > RQ_NO_OP)
        return rq_fail(&p->why, RQ_E_DO_NOT_RETRY,
                       DESERIALIZATION INVALID_MESSAGE
                       "Message missing required fields: compare_op");
    *ret = (rq_compare_op)wire;
    return RQ_OK;
}

rq_err rq__parse_pace(rq__parse *p, rq_pace **ret)
{
    if (p->pace == NULL) {
        p->pace = rq_arena_alloc(p->arena, sizeof *p->pace);
        if (p->pace == NULL) return RQ_E_NO_MEMORY;
        rq_pace_begin(p->pace, false);
    }
    *ret = p->pace;
    return RQ_OK;
}

static void release_buf(void *thing)
{
    rq_buf_clear(thing);
}

rq_err rq__parse_own_buf(rq__parse *p, rq_buf *b)
{
    return rq_arena_link(p->arena, release_buf, b);
}

rq_err rq__filter_reserve(rq_arena *arena, rq_buf *b, size_t more)
{
    size_t cap = b->cap;
    if (RQ_UNLIKELY(cap - b->len < more)) {
        size_t doubled = cap < 64 ? 64 : 2 * cap;
        size_t grown = b->len + more > doubled ? b->len + more : doubled;
        RQ_TRY(rq_arena_account(arena, grown - cap));
    }
    return rq_buf_reserve(b, more);
}

/* Puts `prefix` in front of an error message from another level. */
static rq_err wrap(rq__parse *p, rq_err rc, const char *prefix)
{
    if (rc == RQ_OK || p->why.code == RQ_OK || p->at_ceiling) return rc;
    char inner[sizeof p->why.message];
    memcpy(inner, p->why.message, sizeof inner);
    int n = snprintf(p->why.message, sizeof p->why.message, "%s", prefix);
    snprintf(p->why.message + n, sizeof p->why.message - (size_t)n, "%s", inner);
    return rc;
}

/* --- Filters ---------------------------------------------------------------------------------- */
/* The class name behind the package, or an empty slice. */
static rq_slice class_in_package(rq_slice name)
{
    if (!rq_slice_starts_with(name, RQ_SLICE_LIT(PACKAGE))) return (rq_slice){0};
    return rq_slice_of(name.ptr + sizeof PACKAGE - 1, name.len - (sizeof PACKAGE - 1));
}

static rq_err no_such_class(rq__parse *p, rq_slice name)
{
    return rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "java.lang.ClassNotFoundException: %.*s",
                   (int)(name.len < 256 ? name.len : 256), (const char *)name.ptr);
}

static rq_err parse_filter(rq__parse *p, rq_slice name, rq_slice bytes, rq_filter **ret)
{
    rq_slice simple = class_in_package(name);
    for (size_t i = 0; i < RQ_ARRAY_LEN(filters); i++)
        if (rq_slice_eq(simple, rq_slice_cstr(filters[i].name)))
            return filters[i].parse(p, bytes, ret);
    return no_such_class(p, name);
}

rq_err rq__parse_child(rq__parse *p, const Pb__Filter *message, rq_filter **ret)
{
    if (p->depth >= RQ__FILTER_DEPTH_MAX) {
        p->at_ceiling = true;
        return rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "filters nested more than %d deep",
                       RQ__FILTER_DEPTH_MAX);
    }
    p->depth++;
    rq_err rc = parse_filter(p, rq_slice_cstr(message->name),
                             rq__slice_of_pb(message->serialized_filter), ret);
    p->depth--;
    return wrap(p, rc, DESERIALIZATION "org.apache.hadoop.hbase.DoNotRetryIOException: ");
}

static rq_err report(const rq__parse *p, rq_err rc, rq_err code, rq_error *why)
{
    if (p->why.code == RQ_OK) return rc; /* memory */
    return rq_fail(why, code, "%s", p->why.message);
}

rq_err rq_filter_parse(rq_slice java_class_name, rq_slice serialized, rq_arena *arena,
                       rq_filter **ret, rq_error *why)
{
    rq__parse p = {.arena = arena, .bytes_left = RQ__FILTER_BYTES_MAX};
    rq_err rc = parse_filter(&p, java_class_name, serialized, ret);
    if (rc != RQ_OK) return report(&p, rc, RQ_E_DO_NOT_RETRY, why);
    (*ret)->parts = p.parts;
    (*ret)->pace = p.pace;
    return RQ_OK;
}

/* --- Comparators ------------------------------------------------------------------------------ */
static rq_err parse_comparator(rq__parse *p, rq_slice name, rq_slice bytes, rq_comparator **ret)
{
    rq_slice simple = class_in_package(name);
    for (size_t i = 0; i < RQ_ARRAY_LEN(comparators); i++)
        if (rq_slice_eq(simple, rq_slice_cstr(comparators[i].name)))
            return comparators[i].parse(p, bytes, ret);
    return no_such_class(p, name);
}

rq_err rq__parse_comparator_of_filter(rq__parse *p, const Pb__Comparator *message,
                                      rq_comparator **ret)
{
    rq_err rc = parse_comparator(p, rq_slice_cstr(message->name),
                                 rq__slice_of_pb(message->serialized_comparator), ret);
    return wrap(p, rc, DESERIALIZATION "java.io.IOException: ");
}

rq_err rq_comparator_parse(rq_slice java_class_name, rq_slice serialized, rq_arena *arena,
                           rq_comparator **ret, rq_error *why)
{
    rq__parse p = {.arena = arena, .bytes_left = RQ__FILTER_BYTES_MAX};
    rq_err rc = parse_comparator(&p, java_class_name, serialized, ret);
    if (rc != RQ_OK) return report(&p, rc, RQ_E_IOEXCEPTION, why);
    (*ret)->pace = p.pace;
    return RQ_OK;
}
