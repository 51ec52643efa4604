/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as hashes and back, by protobuf-c's descriptors: a field is a key, a symbol. A message is a
 * hash, a repeated field an array, bytes and strings are strings, an enum is the symbol of its name.
 * From bytes: a repeated field that is absent is [], an optional one has its default, or no key.
 * Bytes are a server's: a field of another kind than the descriptor has, and a required field that is
 * missing, make the message malformed. */
#include "shell/shell_priv.h"

#include "base/pb.h"
#include "shell/messages.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>
#include <protobuf-c/protobuf-c.h>

#define DEPTH_MAX 64

rq_slice rq__slice_of(mrb_value string)
{
    return rq_slice_of(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

static const ProtobufCMessageDescriptor *descriptor_of(mrb_state *mrb, const char *name)
{
    for (size_t i = 0; i < rq__message_count; i++)
        if (strcmp(rq__messages[i]->short_name, name) == 0) return rq__messages[i];
    mrb_raisef(mrb, E_ARGUMENT_ERROR, "no message %s", name);
    return NULL;
}

static void must(mrb_state *mrb, rq_err rc)
{
    if (rc != RQ_OK) mrb_raise(mrb, E_RUNTIME_ERROR, rq_err_text(rc));
}

/* --- to bytes --------------------------------------------------------------------------------- */

static void put_message(mrb_state *mrb, rq_buf *out, const ProtobufCMessageDescriptor *d,
                        mrb_value hash, int depth);

static mrb_int enum_number(mrb_state *mrb, const ProtobufCFieldDescriptor *f, mrb_value v)
{
    if (mrb_integer_p(v)) return mrb_integer(v);
    mrb_value text = mrb_obj_as_string(mrb, v);
    const ProtobufCEnumDescriptor *e = f->descriptor;
    const ProtobufCEnumValue *found =
        protobuf_c_enum_descriptor_get_value_by_name(e, mrb_string_value_cstr(mrb, &text));
    if (found == NULL) mrb_raisef(mrb, E_ARGUMENT_ERROR, "%v is no %s", v, e->short_name);
    return found->value;
}

static void put_fixed(mrb_state *mrb, rq_buf *out, uint32_t id, const void *bytes, size_t len)
{
    must(mrb, rq_buf_append_varint(out, RQ_PB_TAG(id, len == 8 ? RQ_PB_FIXED64 : RQ_PB_FIXED32)));
    must(mrb, rq_buf_append(out, bytes, len));
}

static void put_value(mrb_state *mrb, rq_buf *out, const ProtobufCFieldDescriptor *f, mrb_value v,
                      int depth)
{
    size_t at;
    double real;
    float single;
    mrb_value text;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        must(mrb, rq_pb_begin(out, f->id, &at));
        put_message(mrb, out, f->descriptor, v, depth + 1);
        must(mrb, rq_pb_end(out, at));
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        text = mrb_obj_as_string(mrb, v);
        must(mrb, rq_pb_put_bytes(out, f->id, rq__slice_of(text)));
        break;
    case PROTOBUF_C_TYPE_ENUM:
        must(mrb, rq_pb_put_number(out, f->id, (uint64_t)enum_number(mrb, f, v)));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        must(mrb, rq_pb_put_number(out, f->id, mrb_test(v)));
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        real = mrb_as_float(mrb, v);
        put_fixed(mrb, out, f->id, &real, sizeof real);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        single = (float)mrb_as_float(mrb, v);
        put_fixed(mrb, out, f->id, &single, sizeof single);
        break;
    default: /* no message of HBase has fixed integers or zigzag ones */
        must(mrb, rq_pb_put_number(out, f->id, (uint64_t)mrb_as_int(mrb, v)));
        break;
    }
}

static void put_message(mrb_state *mrb, rq_buf *out, const ProtobufCMessageDescriptor *d,
                        mrb_value hash, int depth)
{
    mrb_int known = 0;
    if (!mrb_hash_p(hash)) mrb_raisef(mrb, E_TYPE_ERROR, "%s: %v is no Hash", d->short_name, hash);
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        mrb_value key = mrb_symbol_value(mrb_intern_cstr(mrb, f->name));
        if (!mrb_hash_key_p(mrb, hash, key)) continue;
        mrb_value v = mrb_hash_get(mrb, hash, key);
        known++;
        if (mrb_nil_p(v)) continue;
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            put_value(mrb, out, f, v, depth);
            continue;
        }
        if (!mrb_array_p(v)) mrb_raisef(mrb, E_TYPE_ERROR, "%s: %v is no Array", f->name, v);
        for (mrb_int k = 0; k < RARRAY_LEN(v); k++)
            put_value(mrb, out, f, mrb_ary_ref(mrb, v, k), depth);
    }
    if (known != mrb_hash_size(mrb, hash))
        mrb_raisef(mrb, E_ARGUMENT_ERROR, "%s: unknown fields in %v", d->short_name, hash);
}

/* A message that is being encoded at the end of the session's buffer. */
typedef struct encoding {
    rq_buf *out;
    size_t begin;
    const ProtobufCMessageDescriptor *descriptor;
    mrb_value hash;
} encoding;

static mrb_value put_at_end(mrb_state *mrb, void *data)
{
    const encoding *e = data;
    put_message(mrb, e->out, e->descriptor, e->hash, 0);
    return mrb_str_new(mrb, (const char *)e->out->ptr + e->begin,
                       (mrb_int)(e->out->len - e->begin));
}

/* Wire.encode(name, hash) → bytes. A value's to_s may itself call encode: the inner message is appended to the existing
 * part of the outer message, and removed again. */
static mrb_value encode(mrb_state *mrb, mrb_value self)
{
    const char *name;
    mrb_value hash;
    mrb_bool has_failed = false;
    rq_buf *out = &rq__shell_of(mrb)->request;
    (void)self;
    mrb_get_args(mrb, "zH", &name, &hash);
    encoding e = {out, out->len, descriptor_of(mrb, name), hash};
    mrb_value bytes = mrb_protect_error(mrb, put_at_end, &e, &has_failed);
    out->len = e.begin;
    if (has_failed) mrb_exc_raise(mrb, bytes);
    return bytes;
}

/* --- from bytes ------------------------------------------------------------------------------- */

static mrb_value get_message(mrb_state *mrb, const ProtobufCMessageDescriptor *d, rq_slice bytes,
                             int depth);

static mrb_value get_number(mrb_state *mrb, const ProtobufCFieldDescriptor *f, uint64_t n)
{
    if (f->type == PROTOBUF_C_TYPE_BOOL) return mrb_bool_value(n != 0);
    if (f->type == PROTOBUF_C_TYPE_INT32) return mrb_int_value(mrb, (int32_t)n);
    if (f->type != PROTOBUF_C_TYPE_ENUM) return mrb_int_value(mrb, (mrb_int)n);
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(f->descriptor, (int)n);
    if (v == NULL) return mrb_int_value(mrb, (mrb_int)n);
    return mrb_symbol_value(mrb_intern_cstr(mrb, v->name));
}

/* Of bytes, as protobuf's JSON has them. */
static mrb_value base64(mrb_state *mrb, rq_slice s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    mrb_value text = mrb_str_new_capa(mrb, (mrb_int)(s.len + 2) / 3 * 4);
    for (size_t i = 0; i < s.len; i += 3) {
        size_t n = s.len - i < 3 ? s.len - i : 3;
        uint32_t v = (uint32_t)s.ptr[i] << 16 | (n > 1 ? (uint32_t)s.ptr[i + 1] << 8 : 0) |
                     (n > 2 ? s.ptr[i + 2] : 0);
        const char four[] = {digits[v >> 18], digits[v >> 12 & 63],
                             n > 1 ? digits[v >> 6 & 63] : '=', n > 2 ? digits[v & 63] : '='};
        mrb_str_cat(mrb, text, four, sizeof four);
    }
    return text;
}

static bool is_of_bytes(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_BYTES ||
           f->type == PROTOBUF_C_TYPE_STRING;
}

static uint8_t wire_of(const ProtobufCFieldDescriptor *f)
{
    if (is_of_bytes(f)) return RQ_PB_BYTES;
    if (f->type == PROTOBUF_C_TYPE_DOUBLE) return RQ_PB_FIXED64;
    return f->type == PROTOBUF_C_TYPE_FLOAT ? RQ_PB_FIXED32 : RQ_PB_VARINT;
}

/* REQUIRES: the field has the wire type of its descriptor. */
static mrb_value get_value(mrb_state *mrb, const ProtobufCFieldDescriptor *f,
                           const rq_pb_field *field, int depth)
{
    double real;
    float single;
    const char *packed = rq__shell_of(mrb)->left_packed;
    if (packed != NULL && is_of_bytes(f) && strcmp(f->name, packed) == 0)
        return mrb_str_new(mrb, (const char *)field->bytes.ptr, (mrb_int)field->bytes.len);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return get_message(mrb, f->descriptor, field->bytes, depth + 1);
    if (f->type == PROTOBUF_C_TYPE_BYTES && rq__shell_of(mrb)->bytes_in_base64)
        return base64(mrb, field->bytes);
    if (is_of_bytes(f))
        return mrb_str_new(mrb, (const char *)field->bytes.ptr, (mrb_int)field->bytes.len);
    if (f->type == PROTOBUF_C_TYPE_DOUBLE) {
        memcpy(&real, field->bytes.ptr, sizeof real);
        return mrb_float_value(mrb, real);
    }
    if (f->type == PROTOBUF_C_TYPE_FLOAT) {
        memcpy(&single, field->bytes.ptr, sizeof single);
        return mrb_float_value(mrb, (double)single);
    }
    return get_number(mrb, f, field->value);
}

/* A repeated field of numbers, all in one. */
static bool is_packed(const ProtobufCFieldDescriptor *f, const rq_pb_field *field)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED && field->wire == RQ_PB_BYTES &&
           wire_of(f) == RQ_PB_VARINT;
}

/* false: malformed. */
static bool add_packed(mrb_state *mrb, mrb_value list, const ProtobufCFieldDescriptor *f,
                       rq_slice bytes)
{
    uint64_t n;
    rq_cursor c = rq_cursor_of(bytes);
    while (rq_cursor_left(&c) > 0) {
        if (!rq_cursor_varint(&c, &n)) return false;
        mrb_ary_push(mrb, list, get_number(mrb, f, n));
    }
    return true;
}

static mrb_value default_of(mrb_state *mrb, const ProtobufCFieldDescriptor *f)
{
    const void *v = f->default_value;
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return mrb_bool_value(*(const protobuf_c_boolean *)v);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
        return get_number(mrb, f, (uint64_t)(int64_t) * (const int32_t *)v);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return get_number(mrb, f, *(const uint64_t *)v);
    default:
        return mrb_nil_value();
    }
}

static void set_defaults(mrb_state *mrb, const ProtobufCMessageDescriptor *d, mrb_value hash)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        mrb_value key = mrb_symbol_value(mrb_intern_cstr(mrb, f->name));
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            mrb_hash_set(mrb, hash, key, mrb_ary_new(mrb));
        else if (f->default_value != NULL)
            mrb_hash_set(mrb, hash, key, default_of(mrb, f));
    }
}

/* false: malformed. */
static bool take_field(mrb_state *mrb, const ProtobufCFieldDescriptor *f, const rq_pb_field *field,
                       mrb_value hash, int depth)
{
    mrb_value key = mrb_symbol_value(mrb_intern_cstr(mrb, f->name));
    if (is_packed(f, field)) return add_packed(mrb, mrb_hash_get(mrb, hash, key), f, field->bytes);
    if (field->wire != wire_of(f)) return false;
    mrb_value v = get_value(mrb, f, field, depth);
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        mrb_ary_push(mrb, mrb_hash_get(mrb, hash, key), v);
    else
        mrb_hash_set(mrb, hash, key, v);
    return true;
}

static void check_required(mrb_state *mrb, const ProtobufCMessageDescriptor *d, mrb_value hash)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        if (f->label == PROTOBUF_C_LABEL_REQUIRED &&
            !mrb_hash_key_p(mrb, hash, mrb_symbol_value(mrb_intern_cstr(mrb, f->name))))
            mrb_raisef(mrb, E_RUNTIME_ERROR, "a malformed %s: it has no %s", d->short_name,
                       f->name);
    }
}

static mrb_value get_message(mrb_state *mrb, const ProtobufCMessageDescriptor *d, rq_slice bytes,
                             int depth)
{
    rq_pb_field field;
    rq_err rc = RQ_OK;
    rq_cursor c = rq_cursor_of(bytes);
    mrb_value hash = mrb_hash_new(mrb);
    if (depth > DEPTH_MAX) mrb_raisef(mrb, E_RUNTIME_ERROR, "%s is nested too deep", d->short_name);
    set_defaults(mrb, d, hash);
    int arena = mrb_gc_arena_save(mrb);
    while (rc == RQ_OK && (rc = rq_pb_next(&c, &field)) == RQ_OK) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(d, field.number);
        if (f == NULL) continue; /* a newer server's */
        if (!take_field(mrb, f, &field, hash, depth)) rc = RQ_E_MALFORMED;
        mrb_gc_arena_restore(mrb, arena);
    }
    if (rc != RQ_E_END) mrb_raisef(mrb, E_RUNTIME_ERROR, "a malformed %s", d->short_name);
    check_required(mrb, d, hash);
    return hash;
}

/* Wire.decode(name, bytes, bytes in base 64, name of a field of messages that are left as bytes) */
static mrb_value decode(mrb_state *mrb, mrb_value self)
{
    const char *name, *left_packed = NULL;
    mrb_value bytes;
    mrb_bool text = false;
    (void)self;
    mrb_get_args(mrb, "zS|bz!", &name, &bytes, &text, &left_packed);
    rq__shell_of(mrb)->bytes_in_base64 = text;
    rq__shell_of(mrb)->left_packed = left_packed;
    return get_message(mrb, descriptor_of(mrb, name), rq__slice_of(bytes), 0);
}

/* --- messages in a message --------------------------------------------------------------------- */

/* Field numbers from a message to one in it. */
typedef struct field_path {
    uint32_t numbers[4];
    size_t len;
} field_path;

typedef struct selection {
    mrb_state *mrb;
    field_path key;
    rq_slice prefix;
    mrb_value found;
} selection;

static field_path path_of(mrb_state *mrb, mrb_value list)
{
    field_path p = {.len = (size_t)RARRAY_LEN(list)};
    if (p.len == 0 || p.len > RQ_ARRAY_LEN(p.numbers))
        mrb_raise(mrb, E_ARGUMENT_ERROR, "a path of 1 to 4 fields");
    for (size_t i = 0; i < p.len; i++)
        p.numbers[i] = (uint32_t)mrb_as_int(mrb, RARRAY_PTR(list)[i]);
    return p;
}

/* Calls `take` for each message, or text, at the end of the path, until it returns false. */
static rq_err walk(rq_slice message, const uint32_t *path, size_t len,
                   bool (*take)(void *ctx, rq_slice bytes), void *ctx)
{
    rq_pb_field field;
    rq_err rc;
    rq_cursor c = rq_cursor_of(message);
    while ((rc = rq_pb_next(&c, &field)) == RQ_OK) {
        if (field.number != path[0]) continue;
        if (field.wire != RQ_PB_BYTES) return RQ_E_MALFORMED;
        if (len > 1)
            RQ_TRY(walk(field.bytes, path + 1, len - 1, take, ctx));
        else if (!take(ctx, field.bytes))
            return RQ_OK;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static bool take_first(void *ctx, rq_slice bytes)
{
    *(rq_slice *)ctx = bytes;
    return false;
}

static bool take_if_wanted(void *ctx, rq_slice bytes)
{
    const selection *s = ctx;
    mrb_state *mrb = s->mrb;
    rq_slice key = {0};
    int arena = mrb_gc_arena_save(mrb);
    if (walk(bytes, s->key.numbers, s->key.len, take_first, &key) != RQ_OK)
        mrb_raise(mrb, E_RUNTIME_ERROR, "a malformed message");
    if (rq_slice_starts_with(key, s->prefix))
        mrb_ary_push(mrb, s->found, mrb_str_new(mrb, (const char *)bytes.ptr, (mrb_int)bytes.len));
    mrb_gc_arena_restore(mrb, arena);
    return true;
}

/* Wire.select(bytes, path, path of the key, prefix) → the messages at the end of the path, as bytes, whose key begins
 * with the prefix. For a long list of which few entries are wanted: no Ruby objects are made for the others. */
static mrb_value select_messages(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes, path, key, prefix;
    (void)self;
    mrb_get_args(mrb, "SAAS", &bytes, &path, &key, &prefix);
    const field_path at = path_of(mrb, path);
    selection s = {.mrb = mrb,
                   .key = path_of(mrb, key),
                   .prefix = rq__slice_of(prefix),
                   .found = mrb_ary_new(mrb)};
    if (walk(rq__slice_of(bytes), at.numbers, at.len, take_if_wanted, &s) != RQ_OK)
        mrb_raise(mrb, E_RUNTIME_ERROR, "a malformed message");
    return s.found;
}

void rq__define_messages(mrb_state *mrb)
{
    struct RClass *wire = mrb_define_module(mrb, "Wire");
    mrb_define_module_function(mrb, wire, "encode", encode, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, wire, "decode", decode, MRB_ARGS_ARG(2, 2));
    mrb_define_module_function(mrb, wire, "select", select_messages, MRB_ARGS_REQ(4));
}
