/* SPDX-License-Identifier: Apache-2.0 */
/* Compares tables by the hashes of batches of their rows (HBASE: HashTable, SyncTable). */
#ifndef RQ_TRANSFER_VERIFY_H
#define RQ_TRANSFER_VERIFY_H

#include "transfer/scan.h"
#include "transfer/transfer.h"

typedef struct rq_verify {
    const rq_transfer_options *options;
    const char *table;
    rq_transfer_scan scan;
    uint64_t batch_bytes; /* 0: HashTable's 8000 */
    bool ignores_times;
    uint64_t files;     /* of hashes; 0: HashTable's one for 100 regions */
    const char *folder; /* of hashes */
    const char *other;  /* the other table */
    rq_client_options other_client;
} rq_verify;

/* Blocking. The two tables; ret->different counts the batches that differ. */
RQ_NODISCARD
rq_err rq_verify_tables(const rq_verify *v, rq_transfer_counts *ret, rq_error *why);
/* Writes the folder that HashTable writes; an interrupted run is resumed. RQ_E_EXISTS: the folder
 * has other files, or is finished. */
RQ_NODISCARD
rq_err rq_verify_write(const rq_verify *v, rq_transfer_counts *ret, rq_error *why);
/* Compares the table with a folder of hashes; its manifest names the rows, columns and times. */
RQ_NODISCARD
rq_err rq_verify_folder(const rq_verify *v, rq_transfer_counts *ret, rq_error *why);

#endif
