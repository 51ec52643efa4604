/* SPDX-License-Identifier: Apache-2.0 */
/* The header of an extent; layout in extent.h. */
#include "wal/extent.h"

#include "base/checksum.h"
#include "wal/format.h"

void rq__extent_encode(const rq__extent *e, uint8_t out[static RQ_WAL_EXTENT_HEADER_LEN])
{
    rq_put_be32(out, RQ_WAL_EXTENT_MAGIC);
    rq_put_be32(out + 4, e->len);
    rq_put_be64(out + 8, e->epoch);
    rq_put_be64(out + 16, e->lsn);
    rq_put_be64(out + 24, e->acknowledged);
    rq_put_be32(out + 32, e->crc);
    rq_put_be32(out + 36, rq_crc32c(0, out, 36));
}

bool rq__extent_decode(const uint8_t in[static RQ_WAL_EXTENT_HEADER_LEN], uint64_t epoch,
                       rq__extent *ret)
{
    if (rq_get_be32(in) != RQ_WAL_EXTENT_MAGIC || rq_get_be32(in + 36) != rq_crc32c(0, in, 36))
        return false;
    *ret = (rq__extent){
        .len = rq_get_be32(in + 4),
        .epoch = rq_get_be64(in + 8),
        .lsn = rq_get_be64(in + 16),
        .acknowledged = rq_get_be64(in + 24),
        .crc = rq_get_be32(in + 32),
    };
    return ret->epoch == epoch && ret->len > 0 && ret->len % RQ_WAL_ALIGN == 0 &&
           ret->lsn >= RQ_WAL_FIRST_LSN && ret->lsn <= INT64_MAX && ret->lsn % RQ_WAL_ALIGN == 0 &&
           ret->acknowledged <= ret->lsn;
}

uint64_t rq__extent_epoch(const char *server_name)
{
    return rq_crc32c(0, server_name, strlen(server_name)) | UINT64_C(1) << 32;
}
