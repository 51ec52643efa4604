/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files into a table, by puts and deletes (HBASE: mapreduce.Import, ImportTsv). Input is a file,
 * or the files of a folder whose names begin neither with '_' nor with '.'. Large files are read in
 * parts, in parallel. Finished parts are recorded in a folder (plan.h):
 * INPUT/_rorqual/import-TABLE, or _rorqual/file/FILE/import-TABLE beside the file; it is removed at the end.
 *
 * An interrupted part is imported again; its cells have timestamps, so the repetition changes
 * nothing. Cells without a timestamp get the time at which the import was first begun.
 */
#ifndef RQ_TRANSFER_IMPORT_H
#define RQ_TRANSFER_IMPORT_H

#include "transfer/format.h"
#include "transfer/transfer.h"

typedef struct rq_import {
    const rq_transfer_options *options;
    const char *table;
    const char *input;
    const char *progress; /* the folder instead of that in the input; NULL */
    rq_transfer_format format;
    rq_text_format text;
    int64_t now_ms; /* of cells without a timestamp; 0: when the import was begun */
    bool fails_on_bad_lines;
    const char *renames; /* families: "old:new,…"; NULL */
    int durability;      /* HBase's number; 0: the table's */
} rq_import;

/* Blocking. */
RQ_NODISCARD
rq_err rq_import_run(const rq_import *i, rq_transfer_counts *ret, rq_error *why);

#endif
