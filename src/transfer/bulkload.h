/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to HFiles, and HFiles into a table (HBASE: ImportTsv with importtsv.bulk.output, and
 * BulkLoadHFilesTool).
 *
 *    files ─► rows, in parallel ─► sorted runs ─► merge ─► HFiles by family and region ─► load
 *
 * With a work folder (bulk_work.h) the same call resumes a killed load. The work folder is
 * `progress`, otherwise a folder in the output folder; the staging folder keeps no state.
 *
 * The server opens the files by their path. By default they are in the server's staging folder,
 * which must be on this machine and writable by this user.
 */
#ifndef RQ_TRANSFER_BULKLOAD_H
#define RQ_TRANSFER_BULKLOAD_H

#include "transfer/format.h"
#include "transfer/transfer.h"

typedef struct rq_bulkload {
    const rq_transfer_options *options;
    const char *table;
    const char *input;
    const char *output;   /* NULL: the server's staging folder; otherwise a folder without files */
    const char *progress; /* a folder for the state needed to resume; NULL: the output folder */
    bool has_hfiles;      /* the input is a folder of HFiles */
    bool only_writes;     /* do not load */
    bool keeps_files;     /* load copies (has_hfiles, or with an output) */
    rq_transfer_format format;
    rq_text_format text;
    int64_t now_ms; /* of cells without a timestamp; 0: now */
    bool fails_on_bad_lines;
    uint64_t memory; /* bytes for sorting; 0: 512 MiB; may differ when resumed */
} rq_bulkload;

typedef struct rq_bulkload_counts {
    rq_transfer_counts read;
    uint64_t written;         /* files */
    uint64_t loaded, divided; /* by this run */
    bool is_continued;        /* an earlier run had begun it */
} rq_bulkload_counts;

/* Blocking. */
RQ_NODISCARD
rq_err rq_bulkload_run(const rq_bulkload *b, rq_bulkload_counts *ret, rq_error *why);

#endif
