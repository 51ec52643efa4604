/* SPDX-License-Identifier: Apache-2.0 */
/* See hmac.h. SHA-256 is libmd's. */
#include "base/hmac.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK SHA256_BLOCK_LENGTH

static void begin(SHA2_CTX *c, const uint8_t key[BLOCK], uint8_t pad)
{
    uint8_t block[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = key[i] ^ pad;
    SHA256Init(c);
    SHA256Update(c, block, BLOCK);
    explicit_bzero(block, sizeof block);
}

void rq_hmac_sha256(rq_slice key, const rq_slice *parts, size_t count, uint8_t ret[RQ_HMAC_LEN])
{
    SHA2_CTX c;
    uint8_t block[BLOCK] = {0}, inner[RQ_HMAC_LEN];
    if (key.len > BLOCK) { /* RFC 2104: its digest instead */
        SHA256Init(&c);
        SHA256Update(&c, key.ptr, key.len);
        SHA256Final(block, &c);
    } else if (key.len > 0) {
        memcpy(block, key.ptr, key.len);
    }
    begin(&c, block, 0x36);
    for (size_t i = 0; i < count; i++)
        if (parts[i].len > 0) SHA256Update(&c, parts[i].ptr, parts[i].len);
    SHA256Final(inner, &c);
    begin(&c, block, 0x5c);
    SHA256Update(&c, inner, sizeof inner);
    SHA256Final(ret, &c);
    explicit_bzero(block, sizeof block);
    explicit_bzero(&c, sizeof c);
}

bool rq_same_in_constant_time(const uint8_t *a, const uint8_t *b, size_t len)
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < len; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

rq_err rq_unguessable(uint8_t *ret, size_t len)
{
    while (len > 0) {
        ssize_t n = getrandom(ret, len, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return RQ_E_IO;
        ret += n;
        len -= (size_t)n;
    }
    return RQ_OK;
}
