/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decimal numbers with two digits behind the point, of any size: what HBase's
 * BigDecimalColumnInterpreter computes with. A number is a sign and a magnitude of hundredths in
 * 32-bit limbs; everything that has more digits is rounded half to even when it is made, as
 * java.math.BigDecimal.setScale(2, HALF_EVEN) does. Zeroed is 0.00; rq__decimal_clear frees.
 */
#ifndef RQ_SERVICE_DECIMAL_H
#define RQ_SERVICE_DECIMAL_H

#include "base/buf.h"

typedef struct rq__decimal {
    rq_buf limbs; /* uint32_t, least significant first, no leading zeros */
    bool negative;
} rq__decimal;

void rq__decimal_clear(rq__decimal *d);
/* From HBase's Bytes.toBytes(BigDecimal): be32 scale, two's complement unscaled value.
 * RQ_E_NULL_POINTER for fewer than five bytes (HBase gets null there), RQ_E_UNSUPPORTED where
 * digits or scale are beyond all reason (4 kB, ±20,000). */
RQ_NODISCARD
rq_err rq__decimal_parse(rq_slice bytes, rq__decimal *ret);
RQ_NODISCARD
rq_err rq__decimal_copy(const rq__decimal *d, rq__decimal *ret);
/* sum += d */
RQ_NODISCARD
rq_err rq__decimal_add(rq__decimal *sum, const rq__decimal *d);
/* Rounded to two digits; `ret` is neither of the others. */
RQ_NODISCARD
rq_err rq__decimal_multiply(const rq__decimal *a, const rq__decimal *b, rq__decimal *ret);
int rq__decimal_compare(const rq__decimal *a, const rq__decimal *b);
/* Appends it as Bytes.toBytes(BigDecimal) writes it. */
RQ_NODISCARD
rq_err rq__decimal_write(const rq__decimal *d, rq_buf *out);

#endif
