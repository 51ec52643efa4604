/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cells of a system table's row count, out of all that are stored: the newest put of each
 * column that no marker hides. The store's own scanner decides the same but for one thing: a
 * timestamp that no clock can show (RQ__MS_READ_MAX) counts for nothing here, whether it is a
 * put's, which would hide every later one of its column for ever, or a marker's.
 */
#ifndef RQ_CATALOG_NEWEST_H
#define RQ_CATALOG_NEWEST_H

#include "base/buf.h"
#include "cell/cell.h"

/*
 * Timestamps of clients in system tables. Later ones than a day ahead are refused when they are
 * written (region/write.c), but a folder may hold them from an older version. Those above
 * RQ__MS_CLOCK_MAX do not drive the catalog's clock, so that its own writes never come near
 * RQ__MS_READ_MAX; those above that are passed over.
 */
#define RQ__MS_CLOCK_MAX (INT64_C(3) << 61)
#define RQ__MS_READ_MAX (INT64_MAX - (INT64_C(1) << 40))

#define RQ__NEWEST_VERSIONS 256

/* Zero it before the first row; rq__newest_clear when done. */
typedef struct rq__newest {
    rq_buf family, qualifier;                    /* of the last cell */
    int64_t family_upto, column_upto, column_at; /* what markers hide; -1: nothing */
    int64_t family_at[RQ__NEWEST_VERSIONS];
    size_t family_at_count;
    bool has_family, has_column, found;
    bool ignored; /* a cell of the row has a timestamp that counts for nothing */
} rq__newest;

void rq__newest_row(rq__newest *n);
/* The next cell of the row, in order, markers and all versions among them. *ret: it counts. */
RQ_NODISCARD
rq_err rq__newest_take(rq__newest *n, const rq_cell *c, bool *ret);
void rq__newest_clear(rq__newest *n);

#endif
