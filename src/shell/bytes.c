/* SPDX-License-Identifier: Apache-2.0 */
/* The part of HBase's Bytes that shells use: text forms of bytes, numbers in big-endian order, MD5.
 * As functions of the module Bytes, which prelude/bytes.rb completes. */
#include "shell/shell_priv.h"

#include "base/doubles.h"

#include <md5.h>
#include <mruby/string.h>
#include <sha1.h>
#include <sha2.h>

static bool is_plain(uint8_t b)
{
    return b >= ' ' && b <= '~' && b != '\\';
}

/* HBASE: Bytes.toStringBinary: letters, digits and common punctuation are unchanged, other bytes
 * become \xHH. */
static mrb_value to_string_binary(mrb_state *mrb, mrb_value self)
{
    static const char digits[] = "0123456789ABCDEF";
    mrb_value bytes;
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    rq_slice s = rq__slice_of(bytes);
    size_t i = 0;
    while (i < s.len && is_plain(s.ptr[i]))
        i++;
    if (i == s.len) return bytes;
    mrb_value text = mrb_str_new_capa(mrb, (mrb_int)s.len * 4);
    char *to = RSTRING_PTR(text), *begin = to;
    for (i = 0; i < s.len; i++) {
        uint8_t b = s.ptr[i];
        if (is_plain(b)) {
            *to++ = (char)b;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = digits[b >> 4];
        *to++ = digits[b & 15];
    }
    return mrb_str_resize(mrb, text, to - begin);
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1; /* HBASE: lower case is no digit */
}

/* HBASE: Bytes.toBytesBinary: \xHH is a byte. */
static mrb_value to_bytes_binary(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    (void)self;
    mrb_get_args(mrb, "S", &text);
    rq_slice s = rq__slice_of(text);
    mrb_value bytes = mrb_str_new_capa(mrb, (mrb_int)s.len);
    char *to = RSTRING_PTR(bytes), *begin = to;
    for (size_t i = 0; i < s.len; i++) {
        bool escape = s.ptr[i] == '\\' && i + 3 < s.len && s.ptr[i + 1] == 'x';
        if (escape && hex(s.ptr[i + 2]) >= 0 && hex(s.ptr[i + 3]) >= 0) {
            *to++ = (char)(hex(s.ptr[i + 2]) << 4 | hex(s.ptr[i + 3]));
            i += 3;
        } else {
            *to++ = (char)s.ptr[i];
        }
    }
    return mrb_str_resize(mrb, bytes, to - begin);
}

static uint64_t get_be(rq_slice s)
{
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++)
        v = v << 8 | s.ptr[i];
    return v;
}

/* Bytes.signed(bytes): 1 to 8 bytes as a two's complement number. */
static mrb_value signed_number(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes;
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    rq_slice s = rq__slice_of(bytes);
    if (s.len < 1 || s.len > 8) mrb_raise(mrb, E_ARGUMENT_ERROR, "a number needs 1 to 8 bytes");
    unsigned shift = 64 - 8 * (unsigned)s.len;
    return mrb_int_value(mrb, (int64_t)(get_be(s) << shift) >> shift);
}

/* Bytes.real(bytes): 4 or 8 bytes of IEEE 754. */
static mrb_value real_number(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes;
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    rq_slice s = rq__slice_of(bytes);
    if (s.len == 8) return mrb_float_value(mrb, rq_double_of_bits(get_be(s)));
    if (s.len != 4) mrb_raise(mrb, E_ARGUMENT_ERROR, "a real number needs 4 or 8 bytes");
    float f;
    uint32_t v = (uint32_t)get_be(s);
    memcpy(&f, &v, sizeof f);
    return mrb_float_value(mrb, (double)f);
}

/* Bytes.big_endian(number, length) */
static mrb_value big_endian(mrb_state *mrb, mrb_value self)
{
    mrb_int n, len;
    char bytes[8];
    (void)self;
    mrb_get_args(mrb, "ii", &n, &len);
    if (len < 1 || len > 8)
        mrb_raise(mrb, E_ARGUMENT_ERROR, "the length of a number is 1 to 8 bytes");
    for (mrb_int i = len; i-- > 0; n >>= 8)
        bytes[i] = (char)(n & 255);
    return mrb_str_new(mrb, bytes, len);
}

/* Bytes.real_bytes(number, length) */
static mrb_value real_bytes(mrb_state *mrb, mrb_value self)
{
    mrb_float d;
    mrb_int len;
    char bytes[8];
    (void)self;
    mrb_get_args(mrb, "fi", &d, &len);
    uint64_t v = rq_bits_of_double(d);
    if (len == 4) {
        float f = (float)d;
        uint32_t single;
        memcpy(&single, &f, sizeof single);
        v = single;
    }
    for (mrb_int i = len == 4 ? 4 : 8; i-- > 0; v >>= 8)
        bytes[i] = (char)(v & 255);
    return mrb_str_new(mrb, bytes, len == 4 ? 4 : 8);
}

/* Each writes digits and a NUL. */
static mrb_value sha1_hex(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes;
    char text[SHA1_DIGEST_STRING_LENGTH];
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    (void)SHA1Data((const uint8_t *)RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), text);
    return mrb_str_new_cstr(mrb, text);
}

static mrb_value sha256_hex(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes;
    char text[SHA256_DIGEST_STRING_LENGTH];
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    (void)SHA256Data((const uint8_t *)RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), text);
    return mrb_str_new_cstr(mrb, text);
}

static mrb_value md5_hex(mrb_state *mrb, mrb_value self)
{
    mrb_value bytes;
    char text[MD5_DIGEST_STRING_LENGTH];
    (void)self;
    mrb_get_args(mrb, "S", &bytes);
    (void)MD5Data((const uint8_t *)RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), text);
    return mrb_str_new_cstr(mrb, text);
}

void rq__define_bytes(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Bytes");
    mrb_define_module_function(mrb, m, "toStringBinary", to_string_binary, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "toBytesBinary", to_bytes_binary, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "signed", signed_number, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "real", real_number, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "big_endian", big_endian, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, m, "real_bytes", real_bytes, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, m, "md5", md5_hex, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "sha1", sha1_hex, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "sha256", sha256_hex, MRB_ARGS_REQ(1));
}
