/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes records and frame headers. Layout: wal/format.h. */
#ifndef RQ_WAL_RECORD_CODEC_H
#define RQ_WAL_RECORD_CODEC_H

#include "wal/record.h"

/* Maximum length of a record's part before scopes and payload. */
#define RQ_WAL_HEAD_MAX                                                                            \
    (1 + 1 + RQ_WAL_REGION_NAME_MAX + 2 + RQ_WAL_TABLE_NAME_MAX + 4 * 8 + 1 +                      \
     RQ_WAL_CLUSTERS_MAX * RQ_WAL_CLUSTER_ID_LEN + 2)

/* RQ_E_INVALID: a field is longer than the format allows. */
RQ_NODISCARD rq_err rq__wal_record_check(const rq_wal_record *r);
/* Encodes the part before scopes and payload and returns its length. REQUIRES:
 * rq__wal_record_check passed. */
size_t rq__wal_record_encode_head(const rq_wal_record *r, uint8_t out[RQ_WAL_HEAD_MAX]);
/* Decodes a body into a view on it. Every length is checked. RQ_E_CORRUPT, RQ_E_VERSION (unknown
 * kind). */
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

/* Encodes the header and sets f->crc. */
void rq__wal_frame_encode(rq__wal_frame *f, uint8_t *out);
/* Decodes a header. False: wrong magic or checksum. */
bool rq__wal_frame_decode(const uint8_t *in, rq__wal_frame *ret);
/* Length of header, body and padding. */
static inline uint64_t rq__wal_frame_len(uint64_t body_len)
{
    return (40u + body_len + 7u) & ~(uint64_t)7u;
}

#endif
