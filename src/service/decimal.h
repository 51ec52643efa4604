/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers of any size with two decimal places: the arithmetic of HBase's
 * BigDecimalColumnInterpreter. A number is a sign and a magnitude in hundredths, in 32-bit limbs; a
 * number with more decimal places is rounded half to even when it is made, as by
 * java.math.BigDecimal.setScale(2, HALF_EVEN). A zeroed struct is 0.00; free with
 * rq__decimal_clear. */
#ifndef RQ_SERVICE_DECIMAL_H
#define RQ_SERVICE_DECIMAL_H

#include "base/buf.h"

typedef struct rq__decimal {
    rq_buf limbs; /* uint32_t, least significant first, no leading zeros */
    bool negative;
} rq__decimal;

void rq__decimal_clear(rq__decimal *d);
/* Parses HBase's Bytes.toBytes(BigDecimal): be32 scale, two's complement unscaled value.
 * RQ_E_NULL_POINTER for fewer than five bytes (HBase gets null there), RQ_E_UNSUPPORTED for more
 * than 4 kB or a scale beyond ±20,000. */
RQ_NODISCARD
rq_err rq__decimal_parse(rq_slice bytes, rq__decimal *ret);
RQ_NODISCARD
rq_err rq__decimal_copy(const rq__decimal *d, rq__decimal *ret);
/* sum += d */
RQ_NODISCARD
rq_err rq__decimal_add(rq__decimal *sum, const rq__decimal *d);
/* Rounded to two decimal places; `ret` must differ from both operands. */
RQ_NODISCARD
rq_err rq__decimal_multiply(const rq__decimal *a, const rq__decimal *b, rq__decimal *ret);
int rq__decimal_compare(const rq__decimal *a, const rq__decimal *b);
/* Appends the number in the format of Bytes.toBytes(BigDecimal). */
RQ_NODISCARD
rq_err rq__decimal_write(const rq__decimal *d, rq_buf *out);

#endif
