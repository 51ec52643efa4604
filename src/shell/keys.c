/* SPDX-License-Identifier: Apache-2.0 */
/* Row keys by a format, as `rorqual key` and the libraries make them: RowKey.encode('user:u64
 * time:desc-ms', 7, '2022-12-31'), RowKey.decode(format, key). Ruby's exceptions are raised after
 * the toolkit's objects are freed. */
#include "shell/shell_priv.h"

#include "rorqual/rowkey.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>

#define KEY_MAX 32768
#define VALUES_MAX 256

static mrb_value fail(mrb_state *mrb, const rq_failure *why)
{
    mrb_raise(mrb, E_ARGUMENT_ERROR, why->message);
    return mrb_nil_value();
}

/* The values as text, held by `keep`; nil is "null". */
static void take_texts(mrb_state *mrb, const mrb_value *values, mrb_int count, mrb_value keep,
                       const char **ret)
{
    for (mrb_int i = 0; i < count; i++) {
        mrb_value text =
            mrb_nil_p(values[i]) ? mrb_str_new_lit(mrb, "null") : mrb_obj_as_string(mrb, values[i]);
        mrb_ary_push(mrb, keep, text);
        ret[i] = mrb_string_cstr(mrb, text); /* raises if it has a zero byte */
    }
}

static mrb_value encode(mrb_state *mrb, mrb_value self)
{
    const char *format_text, *texts[VALUES_MAX];
    const mrb_value *values;
    mrb_int count;
    uint8_t key[KEY_MAX];
    size_t len = 0;
    rq_failure why = {.size = sizeof why};
    rq_key_format *format = NULL;
    (void)self;
    mrb_get_args(mrb, "z*", &format_text, &values, &count);
    if (count > VALUES_MAX) mrb_raise(mrb, E_ARGUMENT_ERROR, "too many values");
    take_texts(mrb, values, count, mrb_ary_new(mrb), texts);
    rq_err rc = rq_key_format_parse(format_text, &format, &why);
    if (rc == RQ_OK)
        rc = rq_key_encode_text(format, texts, (size_t)count, key, sizeof key, &len, &why);
    rq_key_format_free(format);
    return rc == RQ_OK ? mrb_str_new(mrb, (const char *)key, (mrb_int)len) : fail(mrb, &why);
}

/* "name NUL text NUL …" */
static rq_err put_values(const rq_key_format *format, const rq_key_values *v, rq_buf *ret)
{
    for (size_t i = 0; i < v->count; i++) {
        rq_key_part part = {.size = sizeof part};
        RQ_TRY(rq_key_part_at(format, i, &part, NULL));
        RQ_TRY(rq_buf_append(ret, part.name, strlen(part.name) + 1));
        RQ_TRY(rq_buf_append(ret, v->texts[i], strlen(v->texts[i]) + 1));
    }
    return RQ_OK;
}

static rq_err decode_into(const char *format_text, rq_bytes key, rq_buf *ret, rq_failure *why)
{
    rq_key_format *format = NULL;
    rq_key_values *values = NULL;
    rq_buf_reset(ret);
    rq_err rc = rq_key_format_parse(format_text, &format, why);
    if (rc == RQ_OK) rc = rq_key_decode(format, key, &values, why);
    if (rc == RQ_OK) {
        rc = put_values(format, values, ret);
        rq_key_values_free(values);
    }
    rq_key_format_free(format);
    return rc;
}

/* The values by the names of their parts, as text. */
static mrb_value decode(mrb_state *mrb, mrb_value self)
{
    const char *format, *key;
    mrb_int len;
    rq_failure why = {.size = sizeof why};
    rq_buf *pairs = &rq__shell_of(mrb)->answer;
    (void)self;
    mrb_get_args(mrb, "zs", &format, &key, &len);
    if (decode_into(format, (rq_bytes){key, (size_t)len}, pairs, &why) != RQ_OK)
        return fail(mrb, &why);
    mrb_value hash = mrb_hash_new(mrb);
    for (size_t at = 0; at < pairs->len;) {
        const char *name = (const char *)pairs->ptr + at;
        const char *text = name + strlen(name) + 1;
        at += strlen(name) + strlen(text) + 2;
        mrb_hash_set(mrb, hash, mrb_str_new_cstr(mrb, name), mrb_str_new_cstr(mrb, text));
    }
    return hash;
}

void rq__define_keys(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "RowKey");
    mrb_define_module_function(mrb, m, "encode", encode, MRB_ARGS_REQ(1) | MRB_ARGS_REST());
    mrb_define_module_function(mrb, m, "decode", decode, MRB_ARGS_REQ(2));
}
