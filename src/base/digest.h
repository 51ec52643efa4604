/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 in hex digits, as HBase uses it in the names of regions and MOB files. Not for security. */
#ifndef RQ_BASE_DIGEST_H
#define RQ_BASE_DIGEST_H

#include "base/bytes.h"

#define RQ_MD5_HEX_LEN 32

void rq_md5_hex(rq_slice bytes, char ret[RQ_MD5_HEX_LEN + 1]);

#endif
