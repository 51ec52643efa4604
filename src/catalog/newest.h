/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the valid cells of a system table's row among all stored cells: the newest put of each
 * column that no marker hides. It decides as the store's scanner does, with one exception:
 * timestamps that no clock can show (negative, or above RQ__MS_READ_MAX) are invalid here.
 * Otherwise a put with a timestamp in the far future would hide all later puts of its column
 * forever, and a marker with one would delete them. */
#ifndef RQ_CATALOG_NEWEST_H
#define RQ_CATALOG_NEWEST_H

#include "base/buf.h"
#include "cell/cell.h"

/* Limits for clients' timestamps in system tables. Timestamps more than a day ahead are refused
 * when they are written (region/write.c), but a folder of an older version or of HBase may have them. Each
 * timestamp up to RQ__MS_CLOCK_MAX advances the catalog's clock, that of a marker too: a change of the catalog
 * with a lower timestamp would be hidden. Higher ones do not, so that more than 2^60 changes remain
 * before the clock reaches RQ__MS_READ_MAX; those above RQ__MS_READ_MAX are ignored. */
#define RQ__MS_CLOCK_MAX (INT64_C(3) << 61)
#define RQ__MS_READ_MAX (INT64_MAX - (INT64_C(1) << 40))

#define RQ__NEWEST_VERSIONS 256

/* Zero it before the first row; free with rq__newest_clear. */
typedef struct rq__newest {
    rq_buf family, qualifier;                    /* of the last cell */
    int64_t family_upto, column_upto, column_at; /* cells hidden by markers; -1: none */
    int64_t family_at[RQ__NEWEST_VERSIONS];
    size_t family_at_count;
    bool has_family, has_column, found;
    bool ignored; /* the row has a cell with an invalid timestamp */
} rq__newest;

/* Begins a row. */
void rq__newest_row(rq__newest *n);
/* Passes the next cell of the row, in order, including markers and all versions. *ret: the cell is
 * valid. */
RQ_NODISCARD
rq_err rq__newest_take(rq__newest *n, const rq_cell *c, bool *ret);
void rq__newest_clear(rq__newest *n);

#endif
