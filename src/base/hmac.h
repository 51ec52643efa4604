/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104), and two helpers for proofs by a shared secret: a comparison whose duration
 * does not depend on the bytes, and random bytes from the system. */
#ifndef RQ_BASE_HMAC_H
#define RQ_BASE_HMAC_H

#include "base/bytes.h"
#include "base/err.h"

#define RQ_HMAC_LEN 32

/* The HMAC of the concatenated parts. The boundaries between parts are not included: put a part's length in
 * front of it if they matter. */
void rq_hmac_sha256(rq_slice key, const rq_slice *parts, size_t count, uint8_t ret[RQ_HMAC_LEN]);
bool rq_same_in_constant_time(const uint8_t *a, const uint8_t *b, size_t len);
/* Fills with random bytes of the system's generator. RQ_E_IO: the system has no generator. */
RQ_NODISCARD
rq_err rq_unguessable(uint8_t *ret, size_t len);

#endif
