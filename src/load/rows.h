/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of the table: the bytes of key number i and of its values. Both are functions of i,
 * so that data can be checked when it is read without being stored by the client.
 *
 *   row    16 hex digits, then letters up to the key's length. Sorted: the digits are i; hashed:
 *          a bijection of i, so that keys spread and the number can be read back from the row.
 *   value be64 version, then bytes drawn from (key, column, version); the length is drawn from the
 *          same. A value shorter than 8 bytes consists of the last bytes of the be64 version.
 *
 * With *history* each key has the newest version sent and the newest version acknowledged, for puts
 * and deletes. Versions are then timestamps, so the highest wins in whatever order two writers'
 * puts arrive. A read must return a version that is not older than the newest one acknowledged
 * before the read began, and not newer than the newest one sent.
 */
#ifndef RQ_LOAD_ROWS_H
#define RQ_LOAD_ROWS_H

#include "load/draw.h"

#include "base/buf.h"
#include "client/client.h"

#define RQ_ROW_DIGITS 16
#define RQ_COLUMNS_MAX 1024

typedef struct rq_row_history {
    uint32_t put_sent;
    uint32_t put_acked;
    uint32_t delete_sent;
    uint32_t delete_acked;
} rq_row_history;

typedef struct rq_rows {
    bool hashed;
    rq_sizes key_len;
    rq_sizes value_len;
    unsigned families;
    unsigned columns;        /* per row: column j is in family j % families */
    uint64_t base;           /* version 0's timestamp */
    rq_row_history *history; /* NULL: not kept */
    uint64_t history_cap;
    char family_names[16][8];
    char qualifier_names[RQ_COLUMNS_MAX][8];
} rq_rows;

/* The versions a read may return, computed when it begins. */
typedef struct rq_row_bounds {
    uint32_t put_acked;
    uint32_t delete_acked;
} rq_row_bounds;

/* Sets the columns' names. REQUIRES: families is 1 … 16, columns 1 … RQ_COLUMNS_MAX. */
void rq__rows_name(rq_rows *r);
RQ_NODISCARD
rq_err rq__rows_history(rq_rows *r, uint64_t keys); /* grows it; new keys have none */
void rq__rows_clear(rq_rows *r);

/* Appends the row of key i. */
RQ_NODISCARD
rq_err rq__rows_key(const rq_rows *r, uint64_t i, rq_buf *out);
/* The first 16 bytes of key i's row, for splits and scans. */
void rq__rows_digits(const rq_rows *r, uint64_t i, char out[RQ_ROW_DIGITS + 1]);
/* False: not one of these rows. */
bool rq__rows_number(const rq_rows *r, rq_slice row, uint64_t *ret);
/* Appends the value. */
RQ_NODISCARD
rq_err rq__rows_value(const rq_rows *r, uint64_t key, uint32_t column, uint64_t version,
                      rq_buf *out);
/* Whether `value` is one that rq__rows_value makes for the key and column; *ret_version is its
 * version. False for values shorter than 8 bytes, which do not contain the whole version. */
bool rq__rows_value_check(const rq_rows *r, uint64_t key, uint32_t column, rq_slice value,
                          uint64_t *ret_version);

rq_row_bounds rq__rows_bounds(const rq_rows *r, uint64_t key);
/* Reads a row's cells and returns the error found as a static text, or NULL. Without a history it
 * only checks that values are consistent with themselves. */
const char *rq__rows_check(const rq_rows *r, uint64_t key, rq_row_bounds bounds, rq_op_result *row,
                           uint64_t *ret_cells, uint64_t *ret_bytes);

#endif
