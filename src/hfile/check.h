/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a whole HFile: its blocks one after another, and everything the file claims held
 * against what it holds. For tools; blocking, past the cache.
 */
#ifndef RQ_HFILE_CHECK_H
#define RQ_HFILE_CHECK_H

#include "hfile/reader.h"

typedef struct rq_hfile_block_line {
    uint64_t offset;
    rq_block_kind kind;
    uint32_t on_disk_len; /* header and checksums included */
    uint32_t raw_len;     /* payload, uncompressed */
    uint64_t prev_offset; /* of the block of this kind before it; UINT64_MAX: none */
    uint8_t checksum_type;
    uint32_t bytes_per_checksum;
} rq_hfile_block_line;

/* Calls `each` for every block from the first to the trailer, each one read, its checksum and
 * decompression checked. Stops at the first error, `each`'s own included. */
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

/* Every block; every cell's form and order; index keys between their blocks; blooms that know every
 * key; counts, time range, sequence ids and offsets the trailer and file info tell. RQ_E_CORRUPT
 * with the first thing that is wrong. */
RQ_NODISCARD
rq_err rq_hfile_check(rq_hfile_reader *r, rq_hfile_report *ret, rq_error *why);

/* The same for someone who waits: `step` is told now and then how far it is. */
typedef struct rq_hfile_watch {
    void (*step)(void *arg, uint64_t done, uint64_t total);
    void *arg;
} rq_hfile_watch;
RQ_NODISCARD
rq_err rq_hfile_check_watched(rq_hfile_reader *r, const rq_hfile_watch *watch, rq_hfile_report *ret,
                              rq_error *why);

#endif
