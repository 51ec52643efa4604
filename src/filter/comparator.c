/* SPDX-License-Identifier: Apache-2.0 */
/* The comparators of plain bytes: Binary, BinaryPrefix, BinaryComponent, Bit, Null, Long. HBASE:
 * the classes of these names. (Substring and regular expressions: text_comparator.c; BigDecimal:
 * big_decimal.c.) */
#include "filter/comparator.h"

#include "filter/filter_priv.h"

#include "proto/comparator.pb-c.h"

#include <stdarg.h>
#include <stdio.h>

rq_err rq_comparator_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    return c->cls->compare(c, bytes, ret, why);
}

rq_pace *rq_comparator_pace(const rq_comparator *c)
{
    return c->pace;
}

rq_slice rq_comparator_value(const rq_comparator *c)
{
    return c->value;
}

rq_err rq__filter_throw(rq_error *why, const char *java_class_and_message, ...)
{
    char text[256];
    va_list args;
    va_start(args, java_class_and_message);
    vsnprintf(text, sizeof text, java_class_and_message, args);
    va_end(args);
    return rq_fail(why, RQ_E_IOEXCEPTION, "%s", text);
}

/* The value of a message whose only field is a ByteArrayComparable. */
static rq_slice value_of(const Pb__ByteArrayComparable *comparable)
{
    return rq__slice_of_pb(comparable->value);
}

static rq_err new_plain(rq__parse *p, const rq_comparator_class *cls, rq_slice value,
                        rq_comparator **ret)
{
    *ret = rq__parse_new_comparator(p, sizeof **ret, cls, value);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- Binary ----------------------------------------------------------------------------------- */
static rq_err binary_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    *ret = rq_short_compare(c->value.ptr, c->value.len, bytes.ptr, bytes.len);
    return RQ_OK;
}

static const rq_comparator_class binary_class = {binary_compare};

static rq_err new_binary(rq__parse *p, rq_slice value, rq_comparator **ret)
{
    RQ_TRY(new_plain(p, &binary_class, value, ret));
    (*ret)->is_binary = true;
    return RQ_OK;
}

rq_err rq__parse_binary(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__BinaryComparator *m = rq__parse_message(p, &pb__binary_comparator__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p) : new_binary(p, value_of(m->comparable), ret);
}

rq_err rq_comparator_new_binary(rq_slice value, rq_arena *arena, rq_comparator **ret)
{
    rq__parse p = {.arena = arena};
    rq_slice copy = rq_arena_copy(arena, value);
    return copy.ptr == NULL ? RQ_E_NO_MEMORY : new_binary(&p, copy, ret);
}

/* --- BinaryPrefix ----------------------------------------------------------------------------- */
static rq_err prefix_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    if (bytes.len > c->value.len) bytes.len = c->value.len;
    *ret = rq_slice_compare(c->value, bytes);
    return RQ_OK;
}

static const rq_comparator_class prefix_class = {prefix_compare};

rq_err rq__parse_binary_prefix(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__BinaryPrefixComparator *m =
        rq__parse_message(p, &pb__binary_prefix_comparator__descriptor, bytes);
    return m == NULL ? rq__parse_failed(p)
                     : new_plain(p, &prefix_class, value_of(m->comparable), ret);
}

/* --- BinaryComponent: the value against the bytes at an offset -------------------------------- */
typedef struct component_comparator {
    rq_comparator base;
    uint32_t offset;
} component_comparator;

/* If the bytes end before the value does, HBase reads on in the rest of its buffer. Here they
 * compare as less. */
static rq_err component_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    size_t offset = ((const component_comparator *)c)->offset;
    if (offset > bytes.len) offset = bytes.len;
    rq_slice part = rq_slice_of(bytes.ptr + offset, bytes.len - offset);
    if (part.len > c->value.len) part.len = c->value.len;
    *ret = rq_slice_compare(c->value, part);
    return RQ_OK;
}

static const rq_comparator_class component_class = {component_compare};

rq_err rq__parse_binary_component(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__BinaryComponentComparator *m =
        rq__parse_message(p, &pb__binary_component_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    component_comparator *c = (component_comparator *)rq__parse_new_comparator(
        p, sizeof *c, &component_class, rq__slice_of_pb(m->value));
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->offset = m->offset;
    *ret = &c->base;
    return RQ_OK;
}

/* --- Bit: 0 if the combination has a bit set, else 1 ------------------------------------------ */
typedef struct bit_comparator {
    rq_comparator base;
    int op; /* Pb__BitComparator__BitwiseOp */
} bit_comparator;

static rq_err bit_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)why;
    const bit_comparator *b = (const bit_comparator *)c;
    *ret = 1;
    if (bytes.len != c->value.len) return RQ_OK;
    unsigned found = 0;
    for (size_t i = 0; i < bytes.len && found == 0; i++) {
        unsigned x = c->value.ptr[i];
        unsigned y = bytes.ptr[i];
        if (b->op == PB__BIT_COMPARATOR__BITWISE_OP__AND)
            found = x & y;
        else if (b->op == PB__BIT_COMPARATOR__BITWISE_OP__OR)
            found = x | y;
        else
            found = x ^ y;
    }
    *ret = found == 0;
    return RQ_OK;
}

static const rq_comparator_class bit_class = {bit_compare};

rq_err rq__parse_bit(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__BitComparator *m = rq__parse_message(p, &pb__bit_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    int op = (int)m->bitwise_op;
    if (op < PB__BIT_COMPARATOR__BITWISE_OP__AND || op > PB__BIT_COMPARATOR__BITWISE_OP__XOR)
        return rq__parse_illegal(p, "unknown BitwiseOp %d", op);
    bit_comparator *b = (bit_comparator *)rq__parse_new_comparator(p, sizeof *b, &bit_class,
                                                                   value_of(m->comparable));
    if (b == NULL) return RQ_E_NO_MEMORY;
    b->op = op;
    *ret = &b->base;
    return RQ_OK;
}

/* --- Null: no bytes of a cell are null -------------------------------------------------------- */
static rq_err null_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    (void)c, (void)bytes, (void)why;
    *ret = 1;
    return RQ_OK;
}

static const rq_comparator_class null_class = {null_compare};

bool rq_comparator_is_null(const rq_comparator *c)
{
    return c->cls == &null_class;
}

rq_err rq__parse_null(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    if (rq__parse_message(p, &pb__null_comparator__descriptor, bytes) == NULL)
        return rq__parse_failed(p);
    return new_plain(p, &null_class, (rq_slice){0}, ret);
}

/* --- Long: eight bytes as a signed number ----------------------------------------------------- */
static rq_err long_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why)
{
    if (bytes.len != 8)
        return rq__filter_throw(
            why, "java.lang.IllegalArgumentException: Wrong length: %zu, expected 8", bytes.len);
    int64_t mine = (int64_t)rq_get_be64(c->value.ptr);
    int64_t theirs = (int64_t)rq_get_be64(bytes.ptr);
    *ret = (mine > theirs) - (mine < theirs);
    return RQ_OK;
}

static const rq_comparator_class long_class = {long_compare};

rq_err rq__parse_long(rq__parse *p, rq_slice bytes, rq_comparator **ret)
{
    const Pb__LongComparator *m = rq__parse_message(p, &pb__long_comparator__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    rq_slice value = value_of(m->comparable);
    if (value.len < 8) /* HBASE: Bytes.toLong ignores the bytes that follow */
        return rq__parse_illegal(p, "offset (0) + length (8) exceed the capacity of the array: %zu",
                                 value.len);
    value.len = 8;
    return new_plain(p, &long_class, value, ret);
}
