/* SPDX-License-Identifier: Apache-2.0 */
/* Records and frame headers to bytes and back. Layout: wal/format.h. */
#ifndef RQ_WAL_RECORD_CODEC_H
#define RQ_WAL_RECORD_CODEC_H

#include "wal/record.h"

/* Everything of a record that stands before scopes and payload. */
#define RQ_WAL_HEAD_MAX                                                                            \
    (1 + 1 + RQ_WAL_REGION_NAME_MAX + 2 + RQ_WAL_TABLE_NAME_MAX + 4 * 8 + 1 +                      \
     RQ_WAL_CLUSTERS_MAX * RQ_WAL_CLUSTER_ID_LEN + 2)

/* RQ_E_INVALID when a field is longer than the format can say. */
RQ_NODISCARD rq_err rq__wal_record_check(const rq_wal_record *r);
/* Writes the part before scopes and payload; returns its length. REQUIRES: checked. */
size_t rq__wal_record_encode_head(const rq_wal_record *r, uint8_t out[RQ_WAL_HEAD_MAX]);
/* A view on the body; every length is checked. RQ_E_CORRUPT, RQ_E_VERSION (unknown kind). */
RQ_NODISCARD rq_err rq__wal_record_decode(rq_slice body, rq_wal_record *ret);

typedef struct rq__wal_frame {
    uint32_t epoch;
    uint32_t body_len;
    uint64_t lsn;
    uint64_t durable;
    uint32_t prev_crc;
    uint32_t body_crc;
    uint32_t crc; /* of the header */
} rq__wal_frame;

/* Sets f->crc. */
void rq__wal_frame_encode(rq__wal_frame *f, uint8_t *out);
/* False if magic or checksum are wrong. */
bool rq__wal_frame_decode(const uint8_t *in, rq__wal_frame *ret);
/* Header, body and padding. */
static inline uint64_t rq__wal_frame_len(uint64_t body_len)
{
    return (40u + body_len + 7u) & ~(uint64_t)7u;
}

#endif
