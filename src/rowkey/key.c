/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole keys. All parts but the computed ones are encoded first; then the key is put together, as a
 * computed part stands in front of what it hashes.
 *
 * Invariant: a key that can be decoded is exactly what its values are encoded to. Decoding encodes
 * again and compares, which also checks the salt.
 */
#include "rowkey/rowkey_priv.h"

/* The parts' bytes in `bytes`; part i is from[i] … from[i + 1]. */
typedef struct body {
    rq_buf bytes;
    size_t from[RQ__PARTS_MAX + 1];
    size_t count; /* parts that are in it */
} body;

/* HBASE: Struct.encode leaves out nulls at the end. */
static size_t without_last_nulls(const rq_key_format *f, const rq_key_value *values, size_t count)
{
    size_t value = f->value_count;
    if (count < f->value_count) return f->count;
    for (size_t i = f->count; i > 0; i--) {
        const rq__part *p = &f->parts[i - 1];
        if (p->name == NULL || !rq__part_is_nullable_ob(p)) return i;
        if (values[--value].kind != RQ_VALUE_NULL) return i;
    }
    return 0;
}

static rq_err encode_body(const rq_key_format *f, const rq_key_value *values, size_t count, body *b,
                          rq_error *why)
{
    size_t value = 0, parts = without_last_nulls(f, values, count);
    for (b->count = 0; b->count < parts; b->count++) {
        const rq__part *p = &f->parts[b->count];
        b->from[b->count] = b->bytes.len;
        if (p->name != NULL && value == count) break;
        if (!rq__part_is_computed(p))
            RQ_TRY(rq__part_encode(p, p->name == NULL ? NULL : &values[value], &b->bytes, why));
        value += p->name != NULL;
    }
    b->from[b->count] = b->bytes.len;
    return RQ_OK;
}

static rq_err append_computed(const rq_key_format *f, size_t at, const body *b, rq_buf *out,
                              rq_error *why)
{
    const rq__part *p = &f->parts[at];
    rq_buf hashed = {0};
    rq_err rc = RQ_OK;
    for (size_t i = at + 1; i < f->count && rc == RQ_OK; i++) {
        if ((p->covers >> i & 1) == 0) continue;
        if (i < b->count)
            rc = rq_buf_append(&hashed, b->bytes.ptr + b->from[i], b->from[i + 1] - b->from[i]);
        else if (!rq__part_is_nullable_ob(&f->parts[i])) /* else: a null that is left out */
            rc = rq__part_fail(p, RQ_E_INVALID, why, "it needs the value of %s",
                               f->parts[i].name == NULL ? "the literal" : f->parts[i].name);
    }
    if (rc == RQ_OK) rc = rq__computed_append(p, rq_buf_slice(&hashed), out);
    rq_buf_clear(&hashed);
    return rc;
}

static rq_err assemble(const rq_key_format *f, const body *b, size_t first, rq_buf *out,
                       rq_error *why)
{
    size_t begin = out->len;
    for (size_t i = first; i < b->count; i++) {
        if (rq__part_is_computed(&f->parts[i]))
            RQ_TRY(append_computed(f, i, b, out, why));
        else
            RQ_TRY(rq_buf_append(out, b->bytes.ptr + b->from[i], b->from[i + 1] - b->from[i]));
    }
    if (out->len - begin > RQ__KEY_MAX)
        return rq_fail(why, RQ_E_INVALID, "the key has %zu bytes; a row has at most 32,767",
                       out->len - begin);
    return RQ_OK;
}

static rq_err encode_from(const rq_key_format *f, size_t first, const rq_key_value *values,
                          size_t count, rq_buf *out, rq_error *why)
{
    body b = {0};
    if (count > f->value_count)
        return rq_fail(why, RQ_E_INVALID,
                       "%zu values were given; the format has %zu parts with values", count,
                       f->value_count);
    rq_err rc = encode_body(f, values, count, &b, why);
    if (rc == RQ_OK) rc = assemble(f, &b, first, out, why);
    if (rc == RQ_E_NO_MEMORY) rc = rq_no_memory(why);
    rq_buf_clear(&b.bytes);
    return rc;
}

rq_err rq__key_encode(const rq_key_format *f, const rq_key_value *values, size_t count, rq_buf *out,
                      rq_error *why)
{
    return encode_from(f, 0, values, count, out, why);
}

rq_err rq__key_encode_unsalted(const rq_key_format *f, const rq_key_value *values, size_t count,
                               rq_buf *out, rq_error *why)
{
    if (f->parts[0].buckets == 0)
        return rq_fail(why, RQ_E_INVALID, "the format does not begin with salt(N) or phoenix(N)");
    return encode_from(f, 1, values, count, out, why);
}

/* --- decoding --------------------------------------------------------------------------------- */

static rq_err check_literal(const rq__part *p, rq_cursor *c, rq_error *why)
{
    rq_slice s;
    if (rq_cursor_bytes(c, p->literal.len, &s) && rq_slice_eq(s, p->literal)) return RQ_OK;
    return rq__part_fail(p, RQ_E_MALFORMED, why, "the key does not contain this literal");
}

static rq_err decode_parts(const rq_key_format *f, rq_cursor *c, rq_arena *arena,
                           rq_key_value *values, rq_error *why)
{
    size_t value = 0;
    rq_slice computed;
    for (size_t i = 0; i < f->count; i++) {
        const rq__part *p = &f->parts[i];
        if (rq__part_is_computed(p)) {
            if (!rq_cursor_bytes(c, p->width, &computed))
                return rq__part_fail(p, RQ_E_MALFORMED, why, "the key ends before this part");
        } else if (p->kind == RQ__PART_LITERAL) {
            RQ_TRY(check_literal(p, c, why));
        } else if (rq__part_is_nullable_ob(p) && c->ptr == c->end) {
            values[value++] = rq_key_null();
        } else {
            RQ_TRY(rq__part_decode(p, c, arena, &values[value++], why));
        }
    }
    if (c->ptr != c->end)
        return rq_fail(why, RQ_E_MALFORMED, "the key has %zu bytes after its last part",
                       rq_cursor_left(c));
    return RQ_OK;
}

rq_err rq__key_decode(const rq_key_format *f, rq_slice key, rq_arena *arena, rq_key_value *values,
                      rq_error *why)
{
    rq_cursor c = rq_cursor_of(key);
    rq_buf again = {0};
    char text[256];
    if (key.len > RQ__KEY_MAX)
        return rq_fail(why, RQ_E_MALFORMED, "the key has %zu bytes; a row has at most 32,767",
                       key.len);
    RQ_TRY(decode_parts(f, &c, arena, values, why));
    rq_err rc = rq__key_encode(f, values, f->value_count, &again, why);
    if (rc == RQ_OK && !rq_slice_eq(rq_buf_slice(&again), key)) {
        rq_bytes_to_string(rq_buf_slice(&again), text, sizeof text);
        rc = rq_fail(why, RQ_E_MALFORMED, "the key is not the one that its values encode to: %s",
                     text);
    } else if (rc == RQ_E_INVALID) {
        rc = RQ_E_MALFORMED;
        if (why != NULL) why->code = rc;
    }
    rq_buf_clear(&again);
    return rc;
}
