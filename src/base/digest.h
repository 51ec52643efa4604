/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 as HBase uses it: hex digits in names of regions and of MOB files. Not for secrets. */
#ifndef RQ_BASE_DIGEST_H
#define RQ_BASE_DIGEST_H

#include "base/bytes.h"

#define RQ_MD5_HEX_LEN 32

void rq_md5_hex(rq_slice bytes, char ret[RQ_MD5_HEX_LEN + 1]);

#endif
