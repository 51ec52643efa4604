/* SPDX-License-Identifier: Apache-2.0 */
/* Reads SequenceFiles (seqfile.h): untrusted bytes. A length is compared with what is left of the
 * file before anything is allocated for it. */
#include "transfer/seqfile.h"

#include <inttypes.h>
#include <zlib.h>

#define VERSION 6
#define HEADER_MAX (1024 * 1024)
#define META_MAX 1024
#define ESCAPE UINT32_MAX
#define SYNC_SIZE (4 + RQ__SEQ_SYNC_LEN)
#define INFLATED_MAX ((size_t)1024 * 1024 * 1024) /* of a value, or of a part of a block */
#define INFLATE_STEP ((size_t)64 * 1024)

static rq_err corrupt(const rq__seq_reader *r, const char *what, rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "%s: %s at byte %" PRIu64, r->path, what,
                   rq__in_position(&r->in));
}

/* --- the header ------------------------------------------------------------------------------- */

static bool take_text(rq_cursor *c, char ret[RQ__SEQ_CLASS_MAX])
{
    int64_t len;
    rq_slice text;
    if (!rq_cursor_vlong(c, &len) || len < 0 || len >= RQ__SEQ_CLASS_MAX) return false;
    if (!rq_cursor_bytes(c, (size_t)len, &text)) return false;
    if (len > 0) memcpy(ret, text.ptr, text.len);
    ret[len] = '\0';
    return strlen(ret) == (size_t)len;
}

static bool skip_texts(rq_cursor *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t len;
        rq_slice text;
        if (!rq_cursor_vlong(c, &len) || len < 0) return false;
        if (!rq_cursor_bytes(c, (size_t)len, &text)) return false;
    }
    return true;
}

static bool take_header(rq__seq_reader *r, rq_cursor *c)
{
    uint8_t compressed, blocks;
    uint32_t pairs;
    rq_slice sync;
    if (!take_text(c, r->key_class) || !take_text(c, r->value_class)) return false;
    if (!rq_cursor_u8(c, &compressed) || !rq_cursor_u8(c, &blocks)) return false;
    r->is_compressed = compressed != 0;
    r->has_blocks = blocks != 0;
    if (r->has_blocks && !r->is_compressed) return false;
    if (r->is_compressed && !take_text(c, r->codec)) return false;
    if (!rq_cursor_be32(c, &pairs) || pairs > META_MAX || !skip_texts(c, 2 * pairs)) return false;
    if (!rq_cursor_bytes(c, RQ__SEQ_SYNC_LEN, &sync)) return false;
    memcpy(r->sync, sync.ptr, sync.len);
    return true;
}

static bool knows_codec(const char *name)
{
    static const char *const known[] = {"org.apache.hadoop.io.compress.DefaultCodec",
                                        "org.apache.hadoop.io.compress.DeflateCodec",
                                        "org.apache.hadoop.io.compress.GzipCodec"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(known); i++)
        if (strcmp(name, known[i]) == 0) return true;
    return false;
}

static rq_err check_classes(const rq__seq_reader *r, const char *value_class, rq_error *why)
{
    if (strcmp(r->key_class, RQ__CLASS_BYTES) != 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: its keys have class %s, expected %s", r->path,
                       r->key_class, RQ__CLASS_BYTES);
    if (value_class != NULL && strcmp(r->value_class, value_class) != 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "%s: its values have class %s, expected %s", r->path,
                       r->value_class, value_class);
    if (r->is_compressed && !knows_codec(r->codec))
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "%s: codec %s is not supported, only DefaultCodec and GzipCodec", r->path,
                       r->codec);
    return RQ_OK;
}

rq_err rq__seq_reader_open(rq_vfs *v, const char *path, const char *value_class,
                           rq__seq_reader *ret, rq_error *why)
{
    rq_slice head;
    *ret = (rq__seq_reader){.path = path};
    RQ_TRY(rq__in_open(v, path, &ret->in, why));
    RQ_TRY(rq__in_peek(&ret->in, HEADER_MAX, &head, why));
    rq_cursor c = rq_cursor_of(head);
    if (head.len < 4 || memcmp(head.ptr, "SEQ", 3) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s is not a SequenceFile: it does not begin with SEQ",
                       path);
    if (head.ptr[3] != VERSION)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "%s: SequenceFile version %u is not supported, only %u", path, head.ptr[3],
                       VERSION);
    c.ptr += 4;
    if (!take_header(ret, &c)) return corrupt(ret, "damaged or cut header", why);
    RQ_TRY(check_classes(ret, value_class, why));
    ret->header_end = (uint64_t)(c.ptr - head.ptr);
    rq__in_seek(&ret->in, ret->header_end);
    return RQ_OK;
}

void rq__seq_reader_close(rq__seq_reader *r)
{
    rq__in_close(&r->in);
    rq_buf_clear(&r->value);
    for (size_t i = 0; i < RQ_ARRAY_LEN(r->parts); i++)
        rq_buf_clear(&r->parts[i]);
}

/* --- places ----------------------------------------------------------------------------------- */

rq_err rq__seq_seek(rq__seq_reader *r, uint64_t from, rq_error *why)
{
    r->in_block = 0;
    if (from <= r->header_end) {
        rq__in_seek(&r->in, r->header_end);
        return RQ_OK;
    }
    rq__in_seek(&r->in, from);
    for (;;) {
        rq_slice s;
        RQ_TRY(rq__in_peek(&r->in, INFLATE_STEP, &s, why));
        if (s.len < SYNC_SIZE) {
            rq__in_skip(&r->in, s.len);
            return RQ_OK;
        }
        const uint8_t *at = memmem(s.ptr + 4, s.len - 4, r->sync, RQ__SEQ_SYNC_LEN);
        if (at != NULL && rq_get_be32(at - 4) == ESCAPE) {
            rq__in_skip(&r->in, (size_t)(at - 4 - s.ptr));
            return RQ_OK;
        }
        rq__in_skip(&r->in, at != NULL ? (size_t)(at - 4 - s.ptr) + 1 : s.len - SYNC_SIZE + 1);
    }
}

/* --- inflating -------------------------------------------------------------------------------- */

static rq_err inflate_step(z_stream *z, rq_buf *out, int *ret)
{
    if (out->len > INFLATED_MAX) return RQ_E_MALFORMED;
    RQ_TRY(rq_buf_reserve(out, INFLATE_STEP));
    z->next_out = out->ptr + out->len;
    z->avail_out = INFLATE_STEP;
    *ret = inflate(z, Z_NO_FLUSH);
    out->len += INFLATE_STEP - z->avail_out;
    return RQ_OK;
}

/* A zlib or gzip stream that fills the input. */
static rq_err inflate_all(rq_slice in, rq_buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in.ptr, .avail_in = (uInt)in.len};
    rq_err rc = RQ_OK;
    int state = Z_OK;
    rq_buf_reset(out);
    if (inflateInit2(&z, MAX_WBITS + 32) != Z_OK) return RQ_E_NO_MEMORY;
    while (rc == RQ_OK && state == Z_OK)
        rc = inflate_step(&z, out, &state);
    if (rc == RQ_OK && state == Z_MEM_ERROR) rc = RQ_E_NO_MEMORY;
    if (rc == RQ_OK && (state != Z_STREAM_END || z.avail_in > 0)) rc = RQ_E_MALFORMED;
    inflateEnd(&z);
    return rc;
}

static rq_err inflate_here(const rq__seq_reader *r, rq_slice in, rq_buf *out, rq_error *why)
{
    rq_err rc = inflate_all(in, out);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    return rc == RQ_OK ? RQ_OK : corrupt(r, "damaged compressed bytes", why);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Exactly `len` bytes, and the position behind them. */
static rq_err take(rq__seq_reader *r, uint64_t len, rq_slice *ret, rq_error *why)
{
    if (len > rq__in_left(&r->in)) return corrupt(r, "the file ends within a record", why);
    RQ_TRY(rq__in_peek(&r->in, (size_t)len, ret, why));
    if (ret->len < len) return corrupt(r, "the file ends within a record", why);
    rq__in_skip(&r->in, (size_t)len);
    return RQ_OK;
}

static rq_err take_be32(rq__seq_reader *r, uint32_t *ret, rq_error *why)
{
    rq_slice s;
    RQ_TRY(take(r, 4, &s, why));
    *ret = rq_get_be32(s.ptr);
    return RQ_OK;
}

/* Behind an escape. */
static rq_err take_sync(rq__seq_reader *r, rq_error *why)
{
    rq_slice s;
    RQ_TRY(take(r, RQ__SEQ_SYNC_LEN, &s, why));
    if (memcmp(s.ptr, r->sync, RQ__SEQ_SYNC_LEN) != 0)
        return corrupt(r, "a sync marker is damaged", why);
    r->sync_seen = true;
    return RQ_OK;
}

/* ImmutableBytesWritable: be32 length and bytes, and nothing else. */
static rq_err unwrap_key(const rq__seq_reader *r, rq_slice key, rq_slice *ret, rq_error *why)
{
    if (key.len < 4 || rq_get_be32(key.ptr) != key.len - 4)
        return corrupt(r, "a key's length does not fit", why);
    *ret = rq_slice_of(key.ptr + 4, key.len - 4);
    return RQ_OK;
}

static rq_err next_record(rq__seq_reader *r, rq_slice *ret_key, rq_slice *ret_value, rq_error *why)
{
    uint32_t len, key_len;
    rq_slice body;
    RQ_TRY(take_be32(r, &len, why));
    if (len == ESCAPE) {
        RQ_TRY(take_sync(r, why));
        if (rq__in_left(&r->in) == 0) return RQ_E_END;
        RQ_TRY(take_be32(r, &len, why));
    }
    RQ_TRY(take_be32(r, &key_len, why));
    if (len > INT32_MAX || key_len > len) return corrupt(r, "a record's length does not fit", why);
    RQ_TRY(take(r, len, &body, why));
    RQ_TRY(unwrap_key(r, rq_slice_of(body.ptr, key_len), ret_key, why));
    *ret_value = rq_slice_of(body.ptr + key_len, len - key_len);
    if (!r->is_compressed) return RQ_OK;
    RQ_TRY(inflate_here(r, *ret_value, &r->value, why));
    *ret_value = rq_buf_slice(&r->value);
    return RQ_OK;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static rq_err take_vint(rq__seq_reader *r, uint64_t *ret, rq_error *why)
{
    rq_slice s;
    int64_t n;
    RQ_TRY(rq__in_peek(&r->in, RQ_VLONG_MAX, &s, why));
    rq_cursor c = rq_cursor_of(s);
    if (!rq_cursor_vlong(&c, &n) || n < 0) return corrupt(r, "a block's number is damaged", why);
    rq__in_skip(&r->in, (size_t)(c.ptr - s.ptr));
    *ret = (uint64_t)n;
    return RQ_OK;
}

static rq_err read_block(rq__seq_reader *r, rq_error *why)
{
    uint32_t escape;
    RQ_TRY(take_be32(r, &escape, why));
    if (escape != ESCAPE) return corrupt(r, "a block has no sync marker", why);
    RQ_TRY(take_sync(r, why));
    if (rq__in_left(&r->in) == 0) return RQ_E_END;
    RQ_TRY(take_vint(r, &r->in_block, why));
    for (size_t i = 0; i < RQ_ARRAY_LEN(r->parts); i++) {
        uint64_t len;
        rq_slice bytes;
        RQ_TRY(take_vint(r, &len, why));
        RQ_TRY(take(r, len, &bytes, why));
        RQ_TRY(inflate_here(r, bytes, &r->parts[i], why));
    }
    r->key_lengths = rq_cursor_of(rq_buf_slice(&r->parts[0]));
    r->keys = rq_cursor_of(rq_buf_slice(&r->parts[1]));
    r->value_lengths = rq_cursor_of(rq_buf_slice(&r->parts[2]));
    r->values = rq_cursor_of(rq_buf_slice(&r->parts[3]));
    return RQ_OK;
}

static bool take_part(rq_cursor *lengths, rq_cursor *bytes, rq_slice *ret)
{
    int64_t len;
    return rq_cursor_vlong(lengths, &len) && len >= 0 && rq_cursor_bytes(bytes, (size_t)len, ret);
}

static rq_err next_in_block(rq__seq_reader *r, rq_slice *ret_key, rq_slice *ret_value,
                            rq_error *why)
{
    rq_slice key;
    if (!take_part(&r->key_lengths, &r->keys, &key) ||
        !take_part(&r->value_lengths, &r->values, ret_value))
        return corrupt(r, "a block has fewer records than it says", why);
    r->in_block--;
    return unwrap_key(r, key, ret_key, why);
}

rq_err rq__seq_next(rq__seq_reader *r, uint64_t to, rq_slice *ret_key, rq_slice *ret_value,
                    rq_error *why)
{
    r->sync_seen = false;
    while (r->in_block == 0) {
        r->start = rq__in_position(&r->in);
        if (rq__in_left(&r->in) == 0) return RQ_E_END;
        if (r->has_blocks) {
            if (r->start >= to) return RQ_E_END;
            RQ_TRY(read_block(r, why));
            continue;
        }
        RQ_TRY(next_record(r, ret_key, ret_value, why));
        return r->sync_seen && r->start >= to ? RQ_E_END : RQ_OK;
    }
    return next_in_block(r, ret_key, ret_value, why);
}
