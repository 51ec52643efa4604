/* SPDX-License-Identifier: Apache-2.0 */
/* Scan { column 1 { family 1, qualifier 2 }, attribute 2 { name 1, value 2 }, filter 5,
 * time_range 6 { from 1, to 2 }, max_versions 7 }. */
#include "transfer/scan.h"

#include "base/pb.h"

#define FILTER "org.apache.hadoop.hbase.filter."
#define EQUAL 2
#define MUST_PASS_ALL 1
#define DOTALL 32 /* RegexStringComparator's default flags */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

rq_err rq_bytes_of_text(rq_slice text, rq_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        const uint8_t *p = text.ptr + i;
        if (*p == '\\' && text.len - i >= 4 && p[1] == 'x' && hex_digit(p[2]) >= 0 &&
            hex_digit(p[3]) >= 0) {
            RQ_TRY(rq_buf_append_u8(out, (uint8_t)(hex_digit(p[2]) << 4 | hex_digit(p[3]))));
            i += 3;
        } else {
            RQ_TRY(rq_buf_append_u8(out, *p));
        }
    }
    return RQ_OK;
}

rq_err rq__text_of_bytes(rq_slice bytes, rq_buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.ptr[i];
        if (c >= ' ' && c <= '~' && c != '\\') {
            RQ_TRY(rq_buf_append_u8(out, c));
            continue;
        }
        const char text[] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        RQ_TRY(rq_buf_append(out, text, sizeof text));
    }
    return RQ_OK;
}

/* --- columns ---------------------------------------------------------------------------------- */

/* "cf" or "cf:q"; all columns of a family must be one message, in the order of the text. */
static rq_err put_column(rq_buf *out, rq_slice column, rq_error *why)
{
    size_t at;
    const uint8_t *colon = column.len == 0 ? NULL : memchr(column.ptr, ':', column.len);
    size_t family_len = colon == NULL ? column.len : (size_t)(colon - column.ptr);
    if (family_len == 0) return rq_fail(why, RQ_E_INVALID, "a column has no family");
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_slice_of(column.ptr, family_len)));
    if (colon != NULL) {
        rq_buf qualifier = {0};
        rq_slice text = rq_slice_of(colon + 1, column.len - family_len - 1);
        rq_err rc = rq_bytes_of_text(text, &qualifier);
        if (rc == RQ_OK) rc = rq_pb_put_bytes(out, 2, rq_buf_slice(&qualifier));
        rq_buf_clear(&qualifier);
        RQ_TRY(rc);
    }
    return rq_pb_end(out, at);
}

static rq_err put_columns(rq_buf *out, const char *columns, rq_error *why)
{
    while (columns != NULL) {
        const char *comma = strchr(columns, ',');
        size_t len = comma == NULL ? strlen(columns) : (size_t)(comma - columns);
        RQ_TRY(put_column(out, rq_slice_of(columns, len), why));
        columns = comma == NULL ? NULL : comma + 1;
    }
    return RQ_OK;
}

/* --- filters ---------------------------------------------------------------------------------- */

/* Filter { name 1, serialized_filter 2 } as the field `field`. */
static rq_err put_filter(rq_buf *out, uint32_t field, const char *name, const rq_buf *body)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, field, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_slice_cstr(name)));
    RQ_TRY(rq_pb_put_bytes(out, 2, rq_buf_slice(body)));
    return rq_pb_end(out, at);
}

static rq_err put_prefix(rq_buf *list, rq_buf *body, const char *text)
{
    rq_buf prefix = {0};
    rq_buf_reset(body);
    rq_err rc = rq_bytes_of_text(rq_slice_cstr(text), &prefix);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(body, 1, rq_buf_slice(&prefix));
    rq_buf_clear(&prefix);
    RQ_TRY(rc);
    return put_filter(list, 2, FILTER "PrefixFilter", body);
}

/* RowFilter { compare_filter 1 { compare_op 1, comparator 2 { name 1, serialized_comparator 2 } } },
 * RegexStringComparator { pattern 1, flags 2, charset 3, engine 4 }. */
static rq_err put_regex(rq_buf *list, rq_buf *body, const char *pattern)
{
    size_t compare, comparator, regex;
    rq_buf_reset(body);
    RQ_TRY(rq_pb_begin(body, 1, &compare));
    RQ_TRY(rq_pb_put_number(body, 1, EQUAL));
    RQ_TRY(rq_pb_begin(body, 2, &comparator));
    RQ_TRY(rq_pb_put_bytes(body, 1, RQ_SLICE_LIT(FILTER "RegexStringComparator")));
    RQ_TRY(rq_pb_begin(body, 2, &regex));
    RQ_TRY(rq_pb_put_bytes(body, 1, rq_slice_cstr(pattern)));
    RQ_TRY(rq_pb_put_number(body, 2, DOTALL));
    RQ_TRY(rq_pb_put_bytes(body, 3, RQ_SLICE_LIT("UTF-8")));
    RQ_TRY(rq_pb_put_bytes(body, 4, RQ_SLICE_LIT("JAVA")));
    RQ_TRY(rq_pb_end(body, regex));
    RQ_TRY(rq_pb_end(body, comparator));
    RQ_TRY(rq_pb_end(body, compare));
    return put_filter(list, 2, FILTER "RowFilter", body);
}

/* FilterList { operator 1, filters 2 } of the requested filters. */
static rq_err put_filters(rq_buf *list, rq_buf *body, const rq_transfer_scan *s)
{
    RQ_TRY(rq_pb_put_number(list, 1, MUST_PASS_ALL));
    if (s->row_prefix != NULL) RQ_TRY(put_prefix(list, body, s->row_prefix));
    if (s->row_regex != NULL) RQ_TRY(put_regex(list, body, s->row_regex));
    rq_buf_reset(body);
    if (s->first_key_only) RQ_TRY(put_filter(list, 2, FILTER "FirstKeyOnlyFilter", body));
    if (!s->no_values) return RQ_OK;
    RQ_TRY(rq_pb_put_number(body, 1, 0)); /* len_as_val */
    return put_filter(list, 2, FILTER "KeyOnlyFilter", body);
}

static rq_err put_filter_field(rq_buf *out, const rq_transfer_scan *s)
{
    rq_buf list = {0}, body = {0};
    if (s->row_prefix == NULL && s->row_regex == NULL && !s->first_key_only && !s->no_values)
        return RQ_OK;
    rq_err rc = put_filters(&list, &body, s);
    if (rc == RQ_OK) rc = put_filter(out, 5, FILTER "FilterList", &list);
    rq_buf_clear(&list);
    rq_buf_clear(&body);
    return rc;
}

/* --- the rest --------------------------------------------------------------------------------- */

static rq_err put_raw(rq_buf *out)
{
    static const uint8_t yes = 0xff; /* Bytes.toBytes(true) */
    size_t at;
    RQ_TRY(rq_pb_begin(out, 2, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT("_raw_")));
    RQ_TRY(rq_pb_put_bytes(out, 2, rq_slice_of(&yes, 1)));
    return rq_pb_end(out, at);
}

static rq_err put_times(rq_buf *out, const rq_transfer_scan *s)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 6, &at));
    RQ_TRY(rq_pb_put_number(out, 1, (uint64_t)s->from_ms));
    RQ_TRY(rq_pb_put_number(out, 2, (uint64_t)(s->to_ms == 0 ? INT64_MAX : s->to_ms)));
    return rq_pb_end(out, at);
}

static rq_err put_fields(rq_buf *out, const rq_transfer_scan *s, rq_error *why)
{
    RQ_TRY(put_columns(out, s->columns, why));
    if (s->is_raw) RQ_TRY(put_raw(out));
    RQ_TRY(put_filter_field(out, s));
    if (s->from_ms != 0 || s->to_ms != 0) RQ_TRY(put_times(out, s));
    if (s->versions > 0) RQ_TRY(rq_pb_put_number(out, 7, s->versions));
    return RQ_OK;
}

rq_err rq__scan_fields(rq_buf *out, const rq_transfer_scan *s, rq_error *why)
{
    if (s->versions > INT32_MAX || s->batch > INT32_MAX)
        return rq_fail(why, RQ_E_INVALID, "the number of versions is above 2147483647");
    if (s->from_ms < 0 || s->to_ms < 0 || (s->to_ms != 0 && s->to_ms < s->from_ms))
        return rq_fail(why, RQ_E_INVALID, "the time range ends before it begins");
    rq_err rc = put_fields(out, s, why);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

rq_scan rq__scan_of(const rq_transfer_scan *s, rq_slice start, rq_slice stop, const rq_buf *fields)
{
    return (rq_scan){.start = start,
                     .stop = stop,
                     .batch = s == NULL ? 0 : (uint32_t)s->batch,
                     .no_cache_blocks = true,
                     .is_stepwise = true,
                     .fetches_ahead = true,
                     .more = rq_buf_slice(fields)};
}

bool rq__row_begins(rq__row_parts *p, rq_slice row, bool is_partial)
{
    bool begins = !p->may_go_on || !rq_slice_eq(row, rq_slice_of(p->row, p->len));
    p->may_go_on = is_partial;
    if (is_partial && begins) {
        p->len = (uint16_t)row.len;
        memcpy(p->row, row.ptr, row.len);
    }
    return begins;
}
