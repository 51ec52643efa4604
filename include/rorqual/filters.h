/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's filters, made in C: for the field `filter` of rq_get_request, rq_scan_request and rq_check.
 * (The field `filter_text` takes HBase's filter language instead.)
 *
 *     rq_filters *f = rq_filters_new();
 *     rq_bytes cats[] = {rq_prefix_filter(f, rq_text("cat")),
 *                        rq_value_filter(f, RQ_COMPARE_EQUAL, rq_substring_comparator(f, rq_text("tail")))};
 *     scan.filter = rq_filter_list(f, RQ_PASS_ALL, cats, 2);
 *
 * A filter is bytes, HBase's message; a comparator likewise. They belong to the rq_filters that they were made with and
 * live until it is freed; functions that take them as arguments copy them. If a filter cannot be made (no memory, an
 * argument outside its range), the returned value is refused by every call, also as a part of another filter;
 * rq_filters_error tells why.
 *
 * One rq_filters is used by one thread at a time. What each filter does is described by HBase's class
 * of the same name; the defaults of its constructors are named here.
 */
#ifndef RORQUAL_FILTERS_H
#define RORQUAL_FILTERS_H

#include "rorqual/rorqual.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rq_filters rq_filters;

/* NULL: no memory; then every function below fails. */
RQ_API rq_filters *rq_filters_new(void);
/* NULL is fine. */
RQ_API void rq_filters_free(rq_filters *filters);
/* The first failure, or RQ_OK. *ret_message (may be NULL) is a text that lives as long as f. */
RQ_API rq_err rq_filters_error(const rq_filters *f, const char **ret_message);

/* --- comparators ------------------------------------------------------------------------------ */

/* Compares all bytes of a value, or those of the prefix's length. */
RQ_API rq_bytes rq_binary_comparator(rq_filters *f, rq_bytes value);
RQ_API rq_bytes rq_binary_prefix_comparator(rq_filters *f, rq_bytes prefix);
/* Compares the bytes of a value from `offset`. */
RQ_API rq_bytes rq_binary_component_comparator(rq_filters *f, rq_bytes value, uint32_t offset);
typedef enum rq_bit_op {
    RQ_BIT_AND = 1,
    RQ_BIT_OR = 2,
    RQ_BIT_XOR = 3,
} rq_bit_op;
/* Equal if the result of the operation is not 0. */
RQ_API rq_bytes rq_bit_comparator(rq_filters *f, rq_bytes value, rq_bit_op op);
/* With values of 8 bytes, big-endian. */
RQ_API rq_bytes rq_long_comparator(rq_filters *f, int64_t value);
/* unscaled / 10^scale; `unscaled` is a two's complement, big-endian. HBASE: Bytes.toBytes(BigDecimal). */
RQ_API rq_bytes rq_big_decimal_comparator(rq_filters *f, rq_bytes unscaled, int32_t scale);
/* Equal to what is absent. */
RQ_API rq_bytes rq_null_comparator(rq_filters *f);
/* Flags of java.util.regex.Pattern. */
#define RQ_REGEX_CASE_INSENSITIVE 2
#define RQ_REGEX_MULTILINE 8
#define RQ_REGEX_DOTALL 32
/* Finds a pattern of Java's language in UTF-8; with RQ_COMPARE_EQUAL and RQ_COMPARE_NOT_EQUAL only. */
RQ_API rq_bytes rq_regex_comparator(rq_filters *f, rq_bytes pattern, int32_t flags);
/* Ignores case; with RQ_COMPARE_EQUAL and RQ_COMPARE_NOT_EQUAL only. */
RQ_API rq_bytes rq_substring_comparator(rq_filters *f, rq_bytes text);

/* --- combinations ----------------------------------------------------------------------------- */

typedef enum rq_pass {
    RQ_PASS_ALL = 1,
    RQ_PASS_ONE = 2,
} rq_pass;
/* Combines `count` filters, which are copied: passes what all of them pass (RQ_PASS_ALL), or what at
 * least one passes (RQ_PASS_ONE). */
RQ_API rq_bytes rq_filter_list(rq_filters *f, rq_pass pass, const rq_bytes *filters, size_t count);
/* Excludes a whole row if `filter` excludes one of its cells. */
RQ_API rq_bytes rq_skip_filter(rq_filters *f, rq_bytes filter);
/* Ends the scan at the first row or cell that `filter` excludes. */
RQ_API rq_bytes rq_while_match_filter(rq_filters *f, rq_bytes filter);

/* --- comparing filters ------------------------------------------------------------------------ */
/* Here RQ_COMPARE_LESS holds if what is stored is less than the comparator's value, as in HBase's
 * CompareFilter; RQ_COMPARE_ABSENT is not allowed. The row filter compares row keys and excludes rows. The
 * family, qualifier and value filters compare what their names say and exclude cells. */

RQ_API rq_bytes rq_row_key_filter(rq_filters *f, rq_compare op,
                                  rq_bytes comparator); /* RowFilter */
RQ_API rq_bytes rq_family_filter(rq_filters *f, rq_compare op, rq_bytes comparator);
RQ_API rq_bytes rq_qualifier_filter(rq_filters *f, rq_compare op, rq_bytes comparator);
RQ_API rq_bytes rq_value_filter(rq_filters *f, rq_compare op, rq_bytes comparator);
/* Cells whose timestamp also occurs in this column. An empty `comparator` accepts all of the
 * column's cells. */
RQ_API rq_bytes rq_dependent_column_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                           bool drops_column, rq_compare op, rq_bytes comparator);
/* Rows selected by the value of a column. HBase's defaults: filter_if_missing false, latest_only
 * true. */
RQ_API rq_bytes rq_single_column_value_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                              rq_compare op, rq_bytes comparator,
                                              bool filter_if_missing, bool latest_only);
/* As rq_single_column_value_filter; the cells of that column are not returned. */
RQ_API rq_bytes rq_single_column_value_exclude_filter(rq_filters *f, rq_bytes family,
                                                      rq_bytes qualifier, rq_compare op,
                                                      rq_bytes comparator, bool filter_if_missing,
                                                      bool latest_only);
/* The cells of one column by their values. */
RQ_API rq_bytes rq_column_value_filter(rq_filters *f, rq_bytes family, rq_bytes qualifier,
                                       rq_compare op, rq_bytes comparator);

/* --- rows ------------------------------------------------------------------------------------- */

/* Rows whose key begins with `prefix`; rows up to `stop`, including `stop`. */
RQ_API rq_bytes rq_prefix_filter(rq_filters *f, rq_bytes prefix);
RQ_API rq_bytes rq_inclusive_stop_filter(rq_filters *f, rq_bytes stop);
/* At most `rows` rows of each region. */
RQ_API rq_bytes rq_page_filter(rq_filters *f, int64_t rows);
/* Each row passes with this probability; a negative one excludes all rows. */
RQ_API rq_bytes rq_random_row_filter(rq_filters *f, float chance);
/* keys[i] and masks[i] have the same length. Mask byte 0: the key's byte must match; 1: any byte
 * matches. */
RQ_API rq_bytes rq_fuzzy_row_filter(rq_filters *f, const rq_bytes *keys, const rq_bytes *masks,
                                    size_t count);
typedef struct rq_row_range {
    rq_bytes start, stop; /* empty: no bound */
    bool excludes_start;
    bool includes_stop;
} rq_row_range;
/* Rows in one of the ranges, in any order; at least one. */
RQ_API rq_bytes rq_multi_row_range_filter(rq_filters *f, const rq_row_range *ranges, size_t count);

/* --- columns ---------------------------------------------------------------------------------- */

/* The first `limit` columns of a row. For gets: a scan ends after its first row. */
RQ_API rq_bytes rq_column_count_get_filter(rq_filters *f, int32_t limit);
/* `limit` columns of each row, after skipping the first `offset`. */
RQ_API rq_bytes rq_column_pagination_filter(rq_filters *f, int32_t limit, int32_t offset);
/* `limit` columns of each row, beginning with the qualifier `column`. */
RQ_API rq_bytes rq_column_pagination_from_filter(rq_filters *f, int32_t limit, rq_bytes column);
/* Columns whose qualifier begins with the prefix, or with one of `count` prefixes. */
RQ_API rq_bytes rq_column_prefix_filter(rq_filters *f, rq_bytes prefix);
RQ_API rq_bytes rq_multiple_column_prefix_filter(rq_filters *f, const rq_bytes *prefixes,
                                                 size_t count);
/* Columns with qualifiers from min to max; empty: no bound. */
RQ_API rq_bytes rq_column_range_filter(rq_filters *f, rq_bytes min, bool includes_min, rq_bytes max,
                                       bool includes_max);
/* The first cell of each row. */
RQ_API rq_bytes rq_first_key_only_filter(rq_filters *f);
/* The cells of each row up to the first that has one of these qualifiers. */
RQ_API rq_bytes rq_first_key_value_matching_qualifiers_filter(rq_filters *f,
                                                              const rq_bytes *qualifiers,
                                                              size_t count);

/* --- cells ------------------------------------------------------------------------------------ */

/* Cells without their values; or with the value's length, 4 bytes big-endian, as the value. */
RQ_API rq_bytes rq_key_only_filter(rq_filters *f, bool length_as_value);
/* Cells at one of these times, milliseconds since 1970. */
RQ_API rq_bytes rq_timestamps_filter(rq_filters *f, const int64_t *timestamps, size_t count);

#ifdef __cplusplus
}
#endif

#endif
