/* SPDX-License-Identifier: Apache-2.0 */
/* Counts rows (HBASE: RowCounter) and cells by column (HBASE: CellCounter). */
#ifndef RQ_TRANSFER_COUNT_H
#define RQ_TRANSFER_COUNT_H

#include "base/arena.h"
#include "transfer/scan.h"
#include "transfer/transfer.h"

/* Blocking. The scan's first_key_only and no_values are set when they change nothing. */
RQ_NODISCARD
rq_err rq_count_rows(const rq_transfer_options *o, const char *table, rq_transfer_scan scan,
                     rq_transfer_counts *ret, rq_error *why);

typedef struct rq_column_count {
    rq_slice family, qualifier;
    uint64_t rows;  /* that have a cell of the column */
    uint64_t cells; /* versions */
    uint64_t bytes; /* as KeyValues */
} rq_column_count;

typedef struct rq_cell_counts {
    rq_arena arena;
    rq_column_count *columns; /* by family and qualifier */
    size_t count;
    rq_column_count others; /* of columns beyond the first 100,000 */
} rq_cell_counts;

/* Blocking. rq_cell_counts_clear follows, after an error too. */
RQ_NODISCARD
rq_err rq_count_cells(const rq_transfer_options *o, const char *table, const rq_transfer_scan *scan,
                      rq_cell_counts *ret, rq_transfer_counts *ret_all, rq_error *why);
void rq_cell_counts_clear(rq_cell_counts *c);

#endif
