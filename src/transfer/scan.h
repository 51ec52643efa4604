/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells of a table are read: HBase's Scan, as the commands' options describe it. */
#ifndef RQ_TRANSFER_SCAN_H
#define RQ_TRANSFER_SCAN_H

#include "base/buf.h"
#include "client/client.h"

/* All zero: the newest version of every cell. Borrowed. */
typedef struct rq_transfer_scan {
    rq_slice start, stop;   /* rows; empty: from the first, to the last */
    uint64_t versions;      /* 0: one */
    int64_t from_ms, to_ms; /* timestamps: from_ms ≤ t < to_ms; both 0: all */
    bool is_raw;            /* deletes too, and what they hide */
    uint64_t batch;         /* cells a result; 0: a row */
    const char *columns;    /* "cf,cf:q,…"; NULL: all */
    const char *row_prefix; /* with \xNN; NULL: none */
    const char *row_regex;  /* of java.util.regex, found anywhere in the row; NULL: none */
    bool first_key_only;    /* one cell a row */
    bool no_values;
} rq_transfer_scan;

/* Appends the fields of the message Scan that rq_scan has no members for. RQ_E_INVALID. */
RQ_NODISCARD
rq_err rq__scan_fields(rq_buf *out, const rq_transfer_scan *s, rq_error *why);
/* The scan of the rows [start, stop); `fields` as from rq__scan_fields. NULL: whole rows. */
rq_scan rq__scan_of(const rq_transfer_scan *s, rq_slice start, rq_slice stop, const rq_buf *fields);

/* Joins the parts of a row that a scan returns in several items: an item does not say whether the next one
 * continues its row. Zero before the first item of a scan. */
typedef struct rq__row_parts {
    bool may_go_on;
    uint16_t len;
    uint8_t row[RQ_ROW_LEN_MAX];
} rq__row_parts;
/* Call it for each item of a scan, in order: whether the item begins a new row. */
bool rq__row_begins(rq__row_parts *p, rq_slice row, bool is_partial);

/* Bytes.toBytesBinary: \xNN is a byte. Appends. */
RQ_NODISCARD
rq_err rq_bytes_of_text(rq_slice text, rq_buf *out);
/* The inverse of rq_bytes_of_text, Bytes.toStringBinary: printable ASCII except the backslash is unchanged, other bytes
 * become \xNN. Appends. */
RQ_NODISCARD
rq_err rq__text_of_bytes(rq_slice bytes, rq_buf *out);

#endif
