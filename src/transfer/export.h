/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table to a folder of files, one a region, as HBase's Export leaves it (HBASE:
 * mapreduce.Export): part-m-00000 … (with .tsv, .csv or .json for these formats), and _SUCCESS at the end. The folder also has _rorqual/export,
 * with the plan of parts, marks of finished parts (plan.h), and unfinished files. A part's file is
 * renamed to its final name when it is complete and durable.
 */
#ifndef RQ_TRANSFER_EXPORT_H
#define RQ_TRANSFER_EXPORT_H

#include "transfer/format.h"
#include "transfer/scan.h"
#include "transfer/transfer.h"

typedef struct rq_export {
    const rq_transfer_options *options;
    const char *table;
    const char *folder; /* made if missing; must be empty, or that of the same export */
    rq_transfer_scan scan;
    rq_transfer_format format;
    rq_text_format text; /* of TSV and CSV */
} rq_export;

/* Blocking. RQ_E_EXISTS: the folder has other files, or a finished export. */
RQ_NODISCARD
rq_err rq_export_run(const rq_export *e, rq_transfer_counts *ret, rq_error *why);

#endif
