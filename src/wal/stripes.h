/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the stripes of a ledger on shared storage in the order of LSNs: the part that the readers of an ended log
 * (sealed.c) and of this server's own log (striped_tail.c) share. Of each stripe one extent is in memory; the one that
 * begins at the expected LSN is next. Every byte is checked before it is used.
 *
 * Blocks; one thread at a time.
 */
#ifndef RQ_WAL_STRIPES_H
#define RQ_WAL_STRIPES_H

#include "base/buf.h"
#include "vfs/shared.h"
#include "wal/extent.h"
#include "wal/record.h"

/* A window of one stripe, and the extent at its beginning. */
typedef struct rq__stripe {
    rq_buf window;
    size_t pos;          /* of the extent in the window */
    uint64_t at, loaded; /* offsets in the stripe: of the extent, and behind the window */
    rq__extent extent;
    bool valid; /* the extent is whole; false also at the stripe's end */
} rq__stripe;

typedef struct rq__stripes {
    rq_shared *shared;
    const char *server_name; /* borrowed */
    uint64_t epoch;
    rq_slog_ledger ledger; /* its lengths: what may be read */
    uint64_t end;          /* LSN at which it ends; UINT64_MAX: not known */
    rq__stripe stripes[RQ_SLOG_STRIPES];
    uint64_t lsn;         /* of the next frame */
    const uint8_t *frame; /* it, in the current extent; NULL: the next extent is to be found */
    size_t left;          /* of the current extent's body */
    unsigned current;     /* its stripe */
    uint32_t prev_crc;
    bool chained; /* prev_crc is of the frame that ends at `lsn` */
} rq__stripes;

/* `server_name` is borrowed. */
void rq__stripes_init(rq__stripes *r, rq_shared *shared, const char *server_name);
void rq__stripes_clear(rq__stripes *r);
/* Continues at r->lsn in this ledger. */
RQ_NODISCARD rq_err rq__stripes_enter(rq__stripes *r, const rq_slog_ledger *ledger, uint64_t end,
                                      rq_error *why);
/* The ledger is the current one, and has grown. */
RQ_NODISCARD rq_err rq__stripes_extend(rq__stripes *r, const rq_slog_ledger *ledger, uint64_t end,
                                       rq_error *why);
/* The next record; its slices are valid until the next call. RQ_E_END: no extent of the ledger begins at r->lsn.
 * RQ_E_CORRUPT. */
RQ_NODISCARD rq_err rq__stripes_next(rq__stripes *r, rq_wal_record *ret, rq_error *why);
/* Passes over the extent at the beginning of a stripe, which is valid. */
RQ_NODISCARD rq_err rq__stripes_skip(rq__stripes *r, unsigned stripe, rq_error *why);
/* Fails with RQ_E_CORRUPT, and with the place. */
rq_err rq__stripes_corrupt(const rq__stripes *r, const char *what, rq_error *why);

#endif
