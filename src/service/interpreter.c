/* SPDX-License-Identifier: Apache-2.0 */
/* Values of cells as numbers; contract in interpreter.h. */
#include "service/interpreter.h"

#include "base/doubles.h"

#include <math.h>

#define PACKAGE "org.apache.hadoop.hbase.client.coprocessor."

/* Tag of the only field of each message: number 1 as varint, fixed64, bytes. */
enum { TAG_VARINT = 0x08, TAG_FIXED64 = 0x09, TAG_BYTES = 0x0a };

bool rq__interpreter_find(const char *java_class, rq__interpreter *ret)
{
    static const struct {
        const char *java_class;
        rq__interpreter interpreter;
    } known[] = {
        {PACKAGE "LongColumnInterpreter", RQ__INTERPRETER_LONG},
        {PACKAGE "DoubleColumnInterpreter", RQ__INTERPRETER_DOUBLE},
        {PACKAGE "BigDecimalColumnInterpreter", RQ__INTERPRETER_DECIMAL},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(known); i++) {
        if (strcmp(java_class, known[i].java_class) != 0) continue;
        *ret = known[i].interpreter;
        return true;
    }
    return false;
}

void rq__number_clear(rq__number *n)
{
    rq__decimal_clear(&n->decimal);
    n->present = false;
}

void rq__number_swap(rq__number *a, rq__number *b)
{
    rq__number old = *a;
    *a = *b;
    *b = old;
}

rq_err rq__number_read(rq__interpreter i, const rq_cell *cell, rq__number *ret, rq_error *why)
{
    if (i == RQ__INTERPRETER_DECIMAL) {
        rq_err rc = rq__decimal_parse(rq_cell_value(cell), &ret->decimal);
        ret->present = rc == RQ_OK;
        if (rc == RQ_E_NULL_POINTER)
            return rq_fail(
                why, rc, "java.lang.NullPointerException: a value of %u bytes is not a BigDecimal",
                cell->value_len);
        if (rc == RQ_E_UNSUPPORTED) return rq_fail(why, rc, "a BigDecimal is too large for a sum");
        return rc;
    }
    ret->present = cell->value_len == 8;
    if (!ret->present) return RQ_OK;
    uint64_t bits = rq_get_be64(cell->value);
    if (i == RQ__INTERPRETER_LONG)
        ret->l = (int64_t)bits;
    else
        ret->d = rq_double_of_bits(bits);
    return RQ_OK;
}

static rq_err copy(rq__interpreter i, rq__number *ret, const rq__number *n)
{
    ret->present = true;
    if (i == RQ__INTERPRETER_DECIMAL) return rq__decimal_copy(&n->decimal, &ret->decimal);
    if (i == RQ__INTERPRETER_LONG)
        ret->l = n->l;
    else
        ret->d = n->d;
    return RQ_OK;
}

rq_err rq__number_add(rq__interpreter i, rq__number *sum, const rq__number *n)
{
    if (!n->present) return RQ_OK;
    if (!sum->present) return copy(i, sum, n);
    if (i == RQ__INTERPRETER_DECIMAL) return rq__decimal_add(&sum->decimal, &n->decimal);
    if (i == RQ__INTERPRETER_LONG)
        sum->l = (int64_t)((uint64_t)sum->l + (uint64_t)n->l);
    else
        sum->d += n->d;
    return RQ_OK;
}

rq_err rq__number_add_square(rq__interpreter i, rq__number *sum, const rq__number *n,
                             rq__number *scratch)
{
    scratch->present = n->present;
    if (!n->present) return RQ_OK;
    if (i == RQ__INTERPRETER_DECIMAL)
        RQ_TRY(rq__decimal_multiply(&n->decimal, &n->decimal, &scratch->decimal));
    else if (i == RQ__INTERPRETER_LONG)
        scratch->l = (int64_t)((uint64_t)n->l * (uint64_t)n->l);
    else
        scratch->d = n->d * n->d;
    return rq__number_add(i, sum, scratch);
}

static int compare_doubles(double a, double b)
{
    if (a < b) return -1;
    if (a > b) return 1;
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (signbit(b) != 0) - (signbit(a) != 0);
}

int rq__number_compare(rq__interpreter i, const rq__number *a, const rq__number *b)
{
    if (i == RQ__INTERPRETER_DECIMAL) return rq__decimal_compare(&a->decimal, &b->decimal);
    if (i == RQ__INTERPRETER_LONG) return (a->l > b->l) - (a->l < b->l);
    return compare_doubles(a->d, b->d);
}

static rq_err write_bytes(rq_slice bytes, rq_buf *out)
{
    RQ_TRY(rq_buf_append_u8(out, TAG_BYTES));
    RQ_TRY(rq_buf_append_varint(out, bytes.len));
    return rq_buf_append(out, bytes.ptr, bytes.len);
}

static rq_err write_long(int64_t value, rq_buf *out)
{
    RQ_TRY(rq_buf_append_u8(out, TAG_VARINT));
    return rq_buf_append_varint(out, (uint64_t)value);
}

static rq_err write_double(double value, rq_buf *out)
{
    uint64_t bits = rq_bits_of_double(value);
    RQ_TRY(rq_buf_append_u8(out, TAG_FIXED64));
    for (int i = 0; i < 8; i++)
        RQ_TRY(rq_buf_append_u8(out, (uint8_t)(bits >> (8 * i))));
    return RQ_OK;
}

rq_err rq__number_write(rq__interpreter i, const rq__number *n, rq_buf *out)
{
    if (!n->present) return RQ_E_NULL_POINTER;
    if (i == RQ__INTERPRETER_LONG) return write_long(n->l, out);
    if (i == RQ__INTERPRETER_DOUBLE) return write_double(n->d, out);
    rq_buf bytes = {0};
    rq_err rc = rq__decimal_write(&n->decimal, &bytes);
    if (rc == RQ_OK) rc = write_bytes(rq_buf_slice(&bytes), out);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq__number_write_min(rq__interpreter i, rq_buf *out)
{
    /* Double.MIN_VALUE is the smallest positive number; as a BigDecimal it is 49 / 10^325. */
    static const uint8_t smallest[] = {0, 0, 1, 69, 49};
    if (i == RQ__INTERPRETER_LONG) return write_long(INT64_MIN, out);
    if (i == RQ__INTERPRETER_DOUBLE) return write_double(rq_double_of_bits(1), out);
    return write_bytes(rq_slice_of(smallest, sizeof smallest), out);
}
