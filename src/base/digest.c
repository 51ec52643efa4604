/* SPDX-License-Identifier: Apache-2.0 */
/* HBASE: MD5Hash.getMD5AsHex. */
#include "base/digest.h"

#include <md5.h>

void rq_md5_hex(rq_slice bytes, char ret[RQ_MD5_HEX_LEN + 1])
{
    MD5_CTX ctx;
    uint8_t digest[MD5_DIGEST_LENGTH];
    static const char digits[] = "0123456789abcdef";
    MD5Init(&ctx);
    MD5Update(&ctx, bytes.ptr, bytes.len);
    MD5Final(digest, &ctx);
    for (unsigned i = 0; i < sizeof digest; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[RQ_MD5_HEX_LEN] = '\0';
}
