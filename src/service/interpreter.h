/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and computes values for AggregateService: HBase's three column interpreters; a request
 * names one by its class. A number may be absent (Java's null): absent plus x is x, absent times x
 * is absent. HBASE: LongColumnInterpreter, DoubleColumnInterpreter, BigDecimalColumnInterpreter. */
#ifndef RQ_SERVICE_INTERPRETER_H
#define RQ_SERVICE_INTERPRETER_H

#include "cell/cell.h"
#include "service/decimal.h"

typedef enum rq__interpreter {
    RQ__INTERPRETER_LONG,
    RQ__INTERPRETER_DOUBLE,
    RQ__INTERPRETER_DECIMAL
} rq__interpreter;

/* Zeroed is absent; rq__number_clear frees. */
typedef struct rq__number {
    bool present;
    union {
        int64_t l; /* wraps as Java's long */
        double d;
    };
    rq__decimal decimal;
} rq__number;

/* False: no such class here. */
bool rq__interpreter_find(const char *java_class, rq__interpreter *ret);

void rq__number_clear(rq__number *n);
/* The value of a cell; absent if it is not eight bytes long (long and double). */
RQ_NODISCARD
rq_err rq__number_read(rq__interpreter i, const rq_cell *cell, rq__number *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__number_add(rq__interpreter i, rq__number *sum, const rq__number *n);
/* sum += n * n; `scratch` keeps its memory between calls. */
RQ_NODISCARD
rq_err rq__number_add_square(rq__interpreter i, rq__number *sum, const rq__number *n,
                             rq__number *scratch);
/* REQUIRES: both are present. As Java's compareTo (a double's NaN is the greatest, -0 below 0). */
int rq__number_compare(rq__interpreter i, const rq__number *a, const rq__number *b);
/* Exchanges them. */
void rq__number_swap(rq__number *a, rq__number *b);
/* Appends the message (LongMsg, DoubleMsg, BigDecimalMsg). RQ_E_NULL_POINTER when absent. */
RQ_NODISCARD
rq_err rq__number_write(rq__interpreter i, const rq__number *n, rq_buf *out);
/* The message of the interpreter's getMinValue. */
RQ_NODISCARD
rq_err rq__number_write_min(rq__interpreter i, rq_buf *out);

#endif
