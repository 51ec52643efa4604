/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merging scanner of one store: memstore segments and HFiles merged in cell order, with
 * HBase's rules for versions, deletes, TTL and columns applied (HBASE: StoreScanner,
 * ScanQueryMatcher). Two users: reads (through the region scanner) and flush/compaction.
 *
 * Resumable: RQ_E_AGAIN leaves the scanner as it was; the caller fulfils ctx's need (or yields) and
 * calls again.
 */
#ifndef RQ_STORE_STORE_SCANNER_H
#define RQ_STORE_STORE_SCANNER_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/* --- flush and compaction: what survives ------------------------------------------------------ */
typedef struct rq_rewrite_scanner rq_rewrite_scanner;

typedef struct rq_rewrite_options {
    const rq_store *store;
    rq_segment *const *segments; /* inputs; borrowed for the scanner's life */
    size_t segment_count;
    const rq_store_file *files;
    size_t file_count;
    bool is_flush;       /* versions are trimmed, all delete markers kept */
    bool major;          /* all files of the store take part: markers may go */
    uint64_t smallest_read_point; /* nothing visible at or above it may be dropped */
    uint64_t max_seqid_inclusive; /* flush: all cells are at or below (assert) */
    int64_t now_ms;
    int64_t keep_seqid_period_ms; /* HBASE: hbase.hstore.compaction.keep.seqId.period */
} rq_rewrite_options;

/* May block on files (pool). Cells come out in order with seqid zeroed where HBase zeroes it. */
RQ_NODISCARD rq_err rq_rewrite_scanner_open(const rq_rewrite_options *o, rq_rewrite_scanner **ret,
                                            rq_error *why);
/* RQ_E_END at the end. The cell is valid until the next call. */
RQ_NODISCARD rq_err rq_rewrite_scanner_next(rq_rewrite_scanner *s, rq_cell *ret, rq_error *why);
void rq_rewrite_scanner_close(rq_rewrite_scanner *s);

#endif
