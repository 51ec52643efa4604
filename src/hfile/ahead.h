/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches what gets of several rows will read in files, interleaved so that cache misses
 * overlap. */
#ifndef RQ_HFILE_AHEAD_H
#define RQ_HFILE_AHEAD_H

#include "base/bytes.h"

#include <stddef.h>

typedef struct rq_hfile_reader rq_hfile_reader;

/* Smaller files are mostly in the processor's caches; prefetching there costs more than it
 * saves. */
#define RQ_HFILE_FAR_BYTES ((uint64_t)32 << 20)

#define RQ_HFILE_AHEAD_FILES 8

/* A row and the files that may contain it, youngest first. It is looked up in the first file
 * that may contain it. The readers must outlive the call. */
typedef struct rq_hfile_row {
    rq_slice row;
    size_t count;
    const rq_hfile_reader *files[RQ_HFILE_AHEAD_FILES];
} rq_hfile_row;

/* A hint. Never waits for a device, nor longer than for a shard's lock. Any thread. */
void rq_hfile_expect_rows(const rq_hfile_row *list, size_t count);

#endif
