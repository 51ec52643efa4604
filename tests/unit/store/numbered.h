/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of numbered rows, for the tests of segments. */
#ifndef RQ_TESTS_STORE_NUMBERED_H
#define RQ_TESTS_STORE_NUMBERED_H

#include "cell/cell.h"

#include <stdio.h>

/* `row` must outlive the cell. */
static inline rq_cell numbered(char row[16], unsigned n, uint64_t seqid)
{
    snprintf(row, 16, "%08u", n);
    return (rq_cell){.row = (uint8_t *)row,
                     .row_len = 8,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .timestamp = 1,
                     .type = RQ_TYPE_PUT,
                     .seqid = seqid};
}

#endif
