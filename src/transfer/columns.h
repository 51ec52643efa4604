/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The column language of HBase's ImportTsv, which gives the meaning of each field of a line:
 * "HBASE_ROW_KEY,cf:a,cf:b"; also HBASE_TS_KEY, HBASE_CELL_TTL, HBASE_CELL_VISIBILITY (an expression of
 * labels), HBASE_ATTRIBUTES_KEY (NAME=>VALUE, separated by commas).
 *
 * Lines of CSV may quote fields (RFC 4180): "a ""b"", and a line break". Others have no quotes.
 */
#ifndef RQ_TRANSFER_COLUMNS_H
#define RQ_TRANSFER_COLUMNS_H

#include "base/arena.h"
#include "base/buf.h"
#include "cell/cell.h"

/* How the lines of a text file are written. */
typedef struct rq_text_format {
    const char *columns;
    char separator;
    bool has_quotes;  /* CSV */
    bool has_escapes; /* \xNN in fields is a byte */
    bool skips_empty; /* an empty field is no cell (importtsv.skip.empty.columns) */
} rq_text_format;

typedef enum rq__column_kind {
    RQ__COLUMN_CELL,
    RQ__COLUMN_ROW,
    RQ__COLUMN_TIME,
    RQ__COLUMN_TTL,
    RQ__COLUMN_LABELS,
    RQ__COLUMN_ATTRIBUTES,
} rq__column_kind;

typedef struct rq__column {
    rq__column_kind kind;
    rq_slice family, qualifier; /* of a cell */
} rq__column;

typedef struct rq__columns {
    rq_text_format format;
    rq_arena arena;
    rq__column *list;
    size_t count;
    size_t *by_name; /* indexes of those of cells, in the order of rq__column_compare */
    size_t cell_count;
    size_t row, time, ttl, labels, attributes; /* indexes; SIZE_MAX: there is none */
} rq__columns;

/* RQ_E_INVALID. rq__columns_clear follows, after an error too. */
RQ_NODISCARD
rq_err rq__columns_parse(const rq_text_format *f, rq__columns *ret, rq_error *why);
void rq__columns_clear(rq__columns *c);

/* The order of a cell's column to one of the list: by family, then by qualifier. */
int rq__column_compare(const rq__column *column, const rq_cell *c);

/* A line taken apart; what it points to is valid until the line or this is used again. */
typedef struct rq__line {
    rq_slice *fields; /* as many as there are columns at most */
    size_t count;
    rq_buf bytes; /* of fields that are not as they stand in the line */
    rq_slice row;
    int64_t timestamp;   /* if there is a column of times */
    int64_t ttl_ms;      /* 0: none */
    rq_slice labels;     /* empty: none */
    rq_slice attributes; /* likewise */
} rq__line;

RQ_NODISCARD
rq_err rq__line_init(const rq__columns *c, rq__line *ret);
void rq__line_clear(rq__line *l);
/* NULL: the line is valid; otherwise the reason why it is not. `*rc` is another error: no
 * memory. */
const char *rq__line_parse(const rq__columns *c, rq_slice text, rq__line *l, rq_err *rc);

#endif
