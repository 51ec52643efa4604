/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: arguments, the work in other files of this room, the caller's failure. */
#include "api/backend.h"
#include "base/signals.h"
#include "rowkey/rowkey_priv.h"

#include <stdlib.h>

static rq_err end(rq_failure *failure, rq_err rc, const rq_why *why)
{
    return rq_fill_failure(failure, rc, why);
}

/* --- formats ---------------------------------------------------------------------------------- */

rq_err rq_key_format_parse(const char *text, rq_key_format **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = text == NULL ? rq_fail(&why.error, RQ_E_INVALID, "the format is NULL")
                             : rq__format_parse(text, ret, &why.error);
    return end(failure, rc, &why);
}

size_t rq_key_part_count(const rq_key_format *format)
{
    return format == NULL ? 0 : format->value_count;
}

static const rq__part *part_with_value(const rq_key_format *f, size_t index)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->parts[i].name != NULL && index-- == 0) return &f->parts[i];
    return NULL;
}

rq_err rq_key_part_at(const rq_key_format *format, size_t index, rq_key_part *ret,
                      rq_failure *failure)
{
    RQ_TRY(rq_needs(format, "format", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = rq_sized_result(ret, offsetof(rq_key_part, min_length), "rq_key_part", &why.error);
    if (rc != RQ_OK) return end(failure, rc, &why);
    const rq__part *p = part_with_value(format, index);
    if (p == NULL)
        return end(
            failure,
            rq_fail(&why.error, RQ_E_INVALID, "the format has no part %zu with a value", index),
            &why);
    rq_key_part part = {.name = p->name,
                        .type = p->type,
                        .is_ordered = rq__part_is_ordered(p),
                        .is_descending = p->desc};
    rq__part_lengths(p, &part.min_length, &part.max_length);
    rq_fill_sized(ret, &part, sizeof part);
    return RQ_OK;
}

rq_err rq_key_lint(const rq_key_format *format, rq_names **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(format, "format", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__key_lint(format, ret, &why.error), &why);
}

/* --- keys ------------------------------------------------------------------------------------- */

static rq_err copy_key(const rq_buf *key, void *buf, size_t cap, size_t *ret_len, rq_error *why)
{
    *ret_len = key->len;
    if (key->len > cap)
        return rq_fail(why, RQ_E_RESULT_TOO_LARGE, "the key has %zu bytes, the buffer only %zu",
                       key->len, cap);
    if (key->len > 0) memcpy(buf, key->ptr, key->len);
    return RQ_OK;
}

static rq_err check_values(const rq_key_value *values, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].kind == RQ_VALUE_BYTES || values[i].kind == RQ_VALUE_DECIMAL)
            RQ_TRY(rq_check_bytes(values[i].bytes, "a value", why));
    return RQ_OK;
}

typedef rq_err (*encoder)(const rq_key_format *f, const rq_key_value *values, size_t count,
                          rq_buf *out, rq_error *why);

static rq_err encode_by(encoder encode, const rq_key_format *format, const rq_key_value *values,
                        size_t count, void *buf, size_t cap, size_t *ret_len, rq_failure *failure)
{
    RQ_TRY(rq_needs(format, "format", failure));
    RQ_TRY(rq_needs(ret_len, "place for the length", failure));
    if (cap > 0) RQ_TRY(rq_needs(buf, "buffer", failure));
    if (count > 0) RQ_TRY(rq_needs(values, "values", failure));
    rq_why why;
    rq_buf key = {0};
    rq_why_clear(&why);
    rq_err rc = check_values(values, count, &why.error);
    if (rc == RQ_OK) rc = encode(format, values, count, &key, &why.error);
    if (rc == RQ_OK) rc = copy_key(&key, buf, cap, ret_len, &why.error);
    rq_buf_clear(&key);
    return end(failure, rc, &why);
}

rq_err rq_key_encode(const rq_key_format *format, const rq_key_value *values, size_t count,
                     void *buf, size_t cap, size_t *ret_len, rq_failure *failure)
{
    return encode_by(rq__key_encode, format, values, count, buf, cap, ret_len, failure);
}

rq_err rq_key_encode_unsalted(const rq_key_format *format, const rq_key_value *values, size_t count,
                              void *buf, size_t cap, size_t *ret_len, rq_failure *failure)
{
    return encode_by(rq__key_encode_unsalted, format, values, count, buf, cap, ret_len, failure);
}

static rq_err values_of_texts(const rq_key_format *f, const char *const *texts, size_t count,
                              rq_arena *arena, rq_key_value **ret, rq_error *why)
{
    if (count > f->value_count)
        return rq_fail(why, RQ_E_INVALID,
                       "%zu values were given; the format has %zu parts with values", count,
                       f->value_count);
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (texts[i] == NULL) return rq_fail(why, RQ_E_INVALID, "value %zu is not text", i);
        RQ_TRY(rq__value_of_text(part_with_value(f, i), texts[i], arena, &(*ret)[i], why));
    }
    return RQ_OK;
}

rq_err rq_key_encode_text(const rq_key_format *format, const char *const *values, size_t count,
                          void *buf, size_t cap, size_t *ret_len, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret_len, "place for the length", failure));
    if (cap > 0) RQ_TRY(rq_needs(buf, "buffer", failure));
    if (count > 0) RQ_TRY(rq_needs(values, "values", failure));
    RQ_TRY(rq_needs(format, "format", failure));
    rq_why why;
    rq_arena arena = {0};
    rq_buf key = {0};
    rq_key_value *v = NULL;
    rq_why_clear(&why);
    rq_err rc = values_of_texts(format, values, count, &arena, &v, &why.error);
    if (rc == RQ_OK) rc = rq__key_encode(format, v, count, &key, &why.error);
    if (rc == RQ_OK) rc = copy_key(&key, buf, cap, ret_len, &why.error);
    rq_buf_clear(&key);
    rq_arena_clear(&arena);
    return end(failure, rc, &why);
}

/* --- decoded keys ----------------------------------------------------------------------------- */

typedef struct decoded {
    rq_key_values pub;
    rq_arena arena;
    rq_key_value values[RQ__PARTS_MAX];
    const char *texts[RQ__PARTS_MAX];
} decoded;

static rq_err decode_into(const rq_key_format *f, rq_bytes key, decoded *d, rq_error *why)
{
    RQ_TRY(rq_check_bytes(key, "a key", why));
    rq_slice copy = rq_arena_copy(&d->arena, rq_slice_of(key.data, key.len));
    if (copy.ptr == NULL) return rq_no_memory(why);
    RQ_TRY(rq__key_decode(f, copy, &d->arena, d->values, why));
    for (size_t i = 0; i < f->value_count; i++) {
        d->texts[i] = rq__value_to_text(part_with_value(f, i), &d->values[i], &d->arena);
        if (d->texts[i] == NULL) return rq_no_memory(why);
    }
    d->pub = (rq_key_values){f->value_count, d->values, d->texts};
    return RQ_OK;
}

rq_err rq_key_decode(const rq_key_format *format, rq_bytes key, rq_key_values **ret,
                     rq_failure *failure)
{
    RQ_TRY(rq_needs(format, "format", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    decoded *d = calloc(1, sizeof *d);
    rq_err rc = d == NULL ? rq_no_memory(&why.error) : decode_into(format, key, d, &why.error);
    if (rc == RQ_OK)
        *ret = &d->pub;
    else if (d != NULL)
        rq_key_values_free(&d->pub);
    return end(failure, rc, &why);
}

void rq_key_values_free(rq_key_values *values)
{
    if (values == NULL) return;
    decoded *d = RQ_CONTAINER_OF(values, decoded, pub);
    rq_arena_clear(&d->arena);
    free(d);
}

/* --- prefixes and salts ----------------------------------------------------------------------- */

size_t rq_key_after_prefix(rq_bytes prefix, void *buf)
{
    uint8_t *to = buf;
    size_t len = prefix.len;
    if (len > 0) memcpy(to, prefix.data, len);
    while (len > 0 && to[len - 1] == 0xff)
        len--;
    if (len > 0) to[len - 1]++;
    return len;
}

uint32_t rq_key_buckets(const rq_key_format *format)
{
    return format == NULL ? 0 : format->parts[0].buckets;
}

rq_err rq_key_salt(const rq_key_format *format, uint32_t bucket, void *buf, size_t *ret_len,
                   rq_failure *failure)
{
    RQ_TRY(rq_needs(buf, "buffer", failure));
    RQ_TRY(rq_needs(ret_len, "place for the length", failure));
    RQ_TRY(rq_needs(format, "format", failure));
    rq_why why;
    rq_buf salt = {0};
    rq_why_clear(&why);
    rq_err rc = RQ_OK;
    if (bucket >= format->parts[0].buckets)
        rc =
            rq_fail(&why.error, RQ_E_INVALID, "bucket %u does not exist: the format has %u buckets",
                    bucket, format->parts[0].buckets);
    if (rc == RQ_OK) rc = rq__salt_append(&format->parts[0], bucket, &salt);
    if (rc == RQ_OK) rc = copy_key(&salt, buf, 16, ret_len, &why.error);
    rq_buf_clear(&salt);
    return end(failure, rc, &why);
}

/* --- split keys ------------------------------------------------------------------------------- */

rq_err rq_split_keys(rq_split_kind kind, size_t regions, rq_key_list **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__split_keys(kind, regions, ret, &why.error), &why);
}

rq_err rq_split_sample(const rq_bytes *keys, const uint64_t *weights, size_t count, size_t regions,
                       rq_key_list **ret, rq_failure *failure)
{
    if (count > 0) RQ_TRY(rq_needs(keys, "keys", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        rc = rq_check_bytes(keys[i], "a key", &why.error);
    if (rc == RQ_OK) rc = rq__split_sample(keys, weights, count, regions, ret, &why.error);
    return end(failure, rc, &why);
}

rq_err rq_split_format(const rq_key_format *format, size_t regions, rq_key_list **ret,
                       rq_failure *failure)
{
    RQ_TRY(rq_needs(format, "format", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__split_format(format, regions, ret, &why.error), &why);
}

/* --- GeoHash ---------------------------------------------------------------------------------- */

rq_err rq_geohash_encode(rq_point point, unsigned letters, char *buf, rq_failure *failure)
{
    RQ_TRY(rq_needs(buf, "buffer", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__geohash_encode(point, letters, buf, &why.error), &why);
}

rq_err rq_geohash_decode(const char *hash, rq_box *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(hash, "GeoHash", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = rq__geohash_decode(rq_slice_cstr(hash), ret, &why.error);
    return end(failure, rc, &why);
}

rq_err rq_geohash_neighbours(const char *hash, char ret[8][RQ_GEOHASH_SIZE], rq_failure *failure)
{
    RQ_TRY(rq_needs(hash, "GeoHash", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__geohash_neighbours(hash, ret, &why.error), &why);
}

rq_err rq_geo_cover(const rq_area *area, unsigned letters, size_t most, rq_geo_ranges **ret,
                    rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__geo_cover(area, letters, most, ret, &why.error), &why);
}

rq_err rq_geo_contains(const rq_area *area, rq_point point, bool *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_why_clear(&why);
    return end(failure, rq__geo_contains(area, point, ret, &why.error), &why);
}

bool rq__thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    rq_thread_signals(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool started = pthread_create(ret, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

rq_err rq__copy_failure(const rq_failure *from, rq_err rc, rq_failure *to)
{
    if (rc == RQ_OK || to == NULL) return rc;
    size_t size = to->size;
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    to->size = size;
    return rc;
}
