/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparators compare a value, pattern or bit mask of the client with bytes of a cell. Used by
 * comparing filters and by checkAndMutate. HBASE: ByteArrayComparable and its subclasses.
 *
 * Direction: rq_comparator_compare(c, bytes) compares *the comparator with the bytes* (> 0: the
 * comparator's value is greater). HBase interprets the result in two ways. A filter with LESS keeps
 * cells less than the value (rq__compare_op_excludes); a checkAndMutate with LESS passes if the
 * *given* value is less than the stored one (rq_compare_op_check).
 */
#ifndef RQ_FILTER_COMPARATOR_H
#define RQ_FILTER_COMPARATOR_H

#include "base/arena.h"
#include "filter/pace.h"

/* On the wire: DO NOT CHANGE. HBASE: CompareType of HBase.proto. */
typedef enum rq_compare_op {
    RQ_LESS = 0,
    RQ_LESS_OR_EQUAL = 1,
    RQ_EQUAL = 2,
    RQ_NOT_EQUAL = 3,
    RQ_GREATER_OR_EQUAL = 4,
    RQ_GREATER = 5,
    RQ_NO_OP = 6,
} rq_compare_op;

typedef struct rq_comparator rq_comparator;

/*
 * Parses a comparator from the wire: the Java class name and the bytes of its message
 * (Comparator.proto); both are copied. The comparator lives in the arena. Errors carry HBase's
 * exception and text.
 */
RQ_NODISCARD
rq_err rq_comparator_parse(rq_slice java_class_name, rq_slice serialized, rq_arena *arena,
                           rq_comparator **ret, rq_error *why);
/* Makes a BinaryComparator, as implied by an old client's checkAndPut. `value` is copied. */
RQ_NODISCARD
rq_err rq_comparator_new_binary(rq_slice value, rq_arena *arena, rq_comparator **ret);

/* Compares. Fails where HBase throws, e.g. a LongComparator on bytes that are not a long. One
 * thread at a time. */
RQ_NODISCARD
rq_err rq_comparator_compare(rq_comparator *c, rq_slice bytes, int *ret, rq_error *why);

/* The comparator's pace (pace.h); NULL: a comparison never takes long. */
rq_pace *rq_comparator_pace(const rq_comparator *c);

/* Whether it is a NullComparator, for which checkAndMutate has special rules on a missing cell. */
bool rq_comparator_is_null(const rq_comparator *c);
/* The client's value (empty for NullComparator). */
rq_slice rq_comparator_value(const rq_comparator *c);

/* HBASE: CompareFilter.compare. True: the cell is filtered out. */
static inline bool rq__compare_op_excludes(rq_compare_op op, int result)
{
    switch (op) {
    case RQ_LESS:
        return result <= 0;
    case RQ_LESS_OR_EQUAL:
        return result < 0;
    case RQ_EQUAL:
        return result != 0;
    case RQ_NOT_EQUAL:
        return result == 0;
    case RQ_GREATER_OR_EQUAL:
        return result > 0;
    case RQ_GREATER:
        return result >= 0;
    case RQ_NO_OP:
        break;
    }
    return true;
}

/* HBASE: HRegion.matches. True: the condition of a checkAndMutate holds. */
static inline bool rq_compare_op_check(rq_compare_op op, int result)
{
    switch (op) {
    case RQ_LESS:
        return result < 0;
    case RQ_LESS_OR_EQUAL:
        return result <= 0;
    case RQ_EQUAL:
        return result == 0;
    case RQ_NOT_EQUAL:
        return result != 0;
    case RQ_GREATER_OR_EQUAL:
        return result >= 0;
    case RQ_GREATER:
        return result > 0;
    case RQ_NO_OP:
        break;
    }
    return false;
}

#endif
