/* SPDX-License-Identifier: Apache-2.0 */
/* Salts and hash prefixes. */
#include "rowkey/rowkey_priv.h"

#include "base/digest.h"

/* Its code, of which one function is called: no library to map at the start of each process. */
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t rotate(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

static uint32_t get_le32(const uint8_t *p)
{
    return __builtin_bswap32(rq_get_be32(p));
}

static uint32_t mix(uint32_t k)
{
    return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

uint32_t rq__murmur3(rq_slice s)
{
    uint32_t h = 0, tail = 0;
    size_t whole = s.len & ~(size_t)3;
    for (size_t i = 0; i < whole; i += 4)
        h = rotate(h ^ mix(get_le32(s.ptr + i)), 13) * 5 + 0xe6546b64u;
    for (size_t i = s.len; i > whole; i--)
        tail = tail << 8 | s.ptr[i - 1];
    h ^= mix(tail) ^ (uint32_t)s.len;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

uint32_t rq__phoenix_bucket(rq_slice s, uint32_t buckets)
{
    uint32_t h = 1;
    for (size_t i = 0; i < s.len; i++)
        h = h * 31 + (uint32_t)(int8_t)s.ptr[i];
    int64_t remainder = (int64_t)(int32_t)h % buckets;
    return (uint32_t)(remainder < 0 ? -remainder : remainder);
}

static rq_err append_hex(const uint8_t *bytes, uint32_t digits, rq_buf *out)
{
    static const char hex[] = "0123456789abcdef";
    for (uint32_t i = 0; i < digits; i++)
        RQ_TRY(rq_buf_append_u8(out,
                                (uint8_t)hex[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15]));
    return RQ_OK;
}

rq_err rq__salt_append(const rq__part *p, uint32_t bucket, rq_buf *out)
{
    uint8_t bytes[4];
    uint32_t bits = p->width * (p->hex ? 4 : 8);
    rq_put_be32(bytes, bucket << (32 - bits));
    return p->hex ? append_hex(bytes, p->width, out) : rq_buf_append(out, bytes, p->width);
}

static void md5(rq_slice s, uint8_t out[16])
{
    char text[RQ_MD5_HEX_LEN + 1];
    rq_md5_hex(s, text);
    for (size_t i = 0; i < 16; i++) {
        char high = text[2 * i], low = text[2 * i + 1];
        out[i] = (uint8_t)((high <= '9' ? high - '0' : high - 'a' + 10) << 4 |
                           (low <= '9' ? low - '0' : low - 'a' + 10));
    }
}

rq_err rq__computed_append(const rq__part *p, rq_slice s, rq_buf *out)
{
    uint8_t bytes[16];
    if (p->kind == RQ__PART_SALT) return rq__salt_append(p, rq__murmur3(s) % p->buckets, out);
    if (p->kind == RQ__PART_PHOENIX)
        return rq__salt_append(p, rq__phoenix_bucket(s, p->buckets), out);
    if (p->hash == RQ__HASH_MD5)
        md5(s, bytes);
    else if (p->hash == RQ__HASH_MURMUR3)
        rq_put_be32(bytes, rq__murmur3(s));
    else
        rq_put_be64(bytes, XXH3_64bits(s.ptr, s.len));
    return p->hex ? append_hex(bytes, p->width, out) : rq_buf_append(out, bytes, p->width);
}
