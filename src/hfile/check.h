/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a whole HFile: all its blocks, and everything the file says about itself. For tools;
 * blocks, and bypasses the cache.
 */
#ifndef RQ_HFILE_CHECK_H
#define RQ_HFILE_CHECK_H

#include "hfile/reader.h"

typedef struct rq_hfile_block_line {
    uint64_t offset;
    rq_block_kind kind;
    uint32_t on_disk_len; /* with header and checksums */
    uint32_t raw_len;     /* uncompressed payload */
    uint64_t prev_offset; /* offset of the previous block of the kind; UINT64_MAX: none */
    uint8_t checksum_type;
    uint32_t bytes_per_checksum;
} rq_hfile_block_line;

/* Calls `each` for every block before the trailer, after reading it and checking its checksum
 * and decompression. Stops at the first error, including one from `each`. */
RQ_NODISCARD
rq_err rq_hfile_walk_blocks(rq_hfile_reader *r,
                            rq_err (*each)(void *arg, const rq_hfile_block_line *line), void *arg,
                            rq_error *why);

typedef struct rq_hfile_report {
    uint64_t blocks[RQ_BLOCK_KIND_COUNT];
    uint64_t cells;
    uint64_t rows;
    uint64_t key_bytes, value_bytes;
    uint64_t tombstones;
} rq_hfile_report;

/* Checks every block, every cell's form and order, index keys against their blocks, that blooms
 * contain every key, and the counts, time range, sequence ids and offsets in trailer and file
 * info. RQ_E_CORRUPT with the first mismatch. */
RQ_NODISCARD
rq_err rq_hfile_check(rq_hfile_reader *r, rq_hfile_report *ret, rq_error *why);

/* rq_hfile_check with progress: `step` is called now and then. */
typedef struct rq_hfile_watch {
    void (*step)(void *arg, uint64_t done, uint64_t total);
    void *arg;
} rq_hfile_watch;
RQ_NODISCARD
rq_err rq_hfile_check_watched(rq_hfile_reader *r, const rq_hfile_watch *watch, rq_hfile_report *ret,
                              rq_error *why);

#endif
