/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104), and what else proofs by a shared secret need: a comparison whose duration
 * does not depend on the bytes, and bytes that nobody can guess. */
#ifndef RQ_BASE_HMAC_H
#define RQ_BASE_HMAC_H

#include "base/bytes.h"
#include "base/err.h"

#define RQ_HMAC_LEN 32

/* Of the parts one after another; whoever needs to know where a part ends puts its length in front. */
void rq_hmac_sha256(rq_slice key, const rq_slice *parts, size_t count, uint8_t ret[RQ_HMAC_LEN]);
bool rq_same_in_constant_time(const uint8_t *a, const uint8_t *b, size_t len);
/* From the system's generator. RQ_E_IO: it has none. */
RQ_NODISCARD
rq_err rq_unguessable(uint8_t *ret, size_t len);

#endif
