/* SPDX-License-Identifier: Apache-2.0 */
/* A table's cells into another table, of the same cluster or another (HBASE: CopyTable). */
#ifndef RQ_TRANSFER_COPY_H
#define RQ_TRANSFER_COPY_H

#include "transfer/scan.h"
#include "transfer/transfer.h"

typedef struct rq_copy {
    const rq_transfer_options *options;
    rq_client_options target_client;
    const char *table, *target;
    rq_transfer_scan scan;
    const char *renames;  /* families: "old:new,…"; NULL */
    const char *progress; /* a folder that remembers the copied ranges; NULL: none does */
} rq_copy;

/* Blocking. Both tables must exist; the copied cells keep their timestamps. */
RQ_NODISCARD
rq_err rq_copy_run(const rq_copy *c, rq_transfer_counts *ret, rq_error *why);

#endif
