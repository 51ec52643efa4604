/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An extent: what one append to a log on shared storage (striped.c) writes into a stripe.
 *
 *    0  4  magic "RQe1"              24  8  LSN up to which everything was acknowledged
 *    4  4  length of the body               when it was sent
 *    8  8  the log's epoch           32  4  CRC-32C of the body
 *   16  8  LSN of the body           36  4  CRC-32C of the 36 before
 *   40     body: whole frames (format.h)
 *
 * Stripe i mod W gets extent i of a ledger. Readers order them by LSN (sealed.h).
 */
#ifndef RQ_WAL_EXTENT_H
#define RQ_WAL_EXTENT_H

#include "base/bytes.h"
#include "base/err.h"

#define RQ_WAL_EXTENT_MAGIC 0x52516531u /* "RQe1" */
#define RQ_WAL_EXTENT_HEADER_LEN 40
/* Largest body; a longer batch is divided between two frames. Only a single long frame may exceed
 * it. */
#define RQ_WAL_EXTENT_BYTES (1u << 20)

typedef struct rq__extent {
    uint64_t epoch, lsn, acknowledged;
    uint32_t len, crc; /* of the body */
} rq__extent;

void rq__extent_encode(const rq__extent *e, uint8_t out[static RQ_WAL_EXTENT_HEADER_LEN]);
/* False: these bytes are no header of this log's extents. */
bool rq__extent_decode(const uint8_t in[static RQ_WAL_EXTENT_HEADER_LEN], uint64_t epoch,
                       rq__extent *ret);
/* The epoch of a server's log, by which its extents differ from those of other logs. */
uint64_t rq__extent_epoch(const char *server_name);

#endif
