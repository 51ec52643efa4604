/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log at one moment, for a copy that can be opened as a log: the live WAL files up to a
 * position E, and an empty last WAL file that begins at E. The last one is made for the copy. It
 * proves that the others are complete (format.h, rule 2), so damage done while copying is detected.
 */
#ifndef RQ_WAL_IMAGE_H
#define RQ_WAL_IMAGE_H

#include "base/arena.h"
#include "vfs/retention.h"
#include "wal/wal.h"

typedef struct rq_wal_piece {
    const char *path; /* below the root */
    uint64_t bytes;   /* the file's first bytes; more are written behind them meanwhile */
} rq_wal_piece;

typedef struct rq_wal_image {
    rq_wal_piece *pieces; /* oldest first */
    size_t count;
    const char *last_path; /* of the WAL file that ends the copy */
    rq_slice last;         /* its bytes */
    rq_lsn end;
} rq_wal_image;

/* Makes the holder hold all of the live log, and what is appended later. REQUIRES: after replay. */
void rq_wal_hold(rq_wal *wal, rq_holder *holder);
/* Makes all records that were staged before the call durable, and returns the files that have them.
 * Blocks; any pool thread. Results are in the arena. REQUIRES: rq_wal_hold was called, and the
 * holder keeps the log until the pieces are copied. */
RQ_NODISCARD rq_err rq_wal_image_take(rq_wal *wal, rq_arena *arena, rq_wal_image *ret,
                                      rq_error *why);
/* Called after a holder may have released the log: recycles the WAL files that neither a holder nor
 * a region needs. */
void rq_wal_let_go(rq_wal *wal);

#endif
