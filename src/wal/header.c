/* SPDX-License-Identifier: Apache-2.0 */
/* A WAL file's header, in two copies. Layout and rule 3: wal/format.h. */
#include "wal/header.h"

#include "base/checksum.h"
#include "wal/format.h"

static const uint64_t copy_at[2] = {0, RQ_WAL_HEADER_COPY_AT};

void rq__wal_header_encode(const rq_wal_file_info *i, uint8_t *out)
{
    memset(out, 0, RQ_WAL_HEADER_LEN);
    memcpy(out, RQ_WAL_MAGIC, 8);
    rq_put_be32(out + 8, RQ_WAL_VERSION);
    rq_put_be32(out + 12, i->clean ? RQ_WAL_FLAG_CLEAN : 0);
    rq_put_be64(out + 16, i->number);
    rq_put_be64(out + 24, i->epoch);
    rq_put_be64(out + 32, i->first_lsn);
    rq_put_be64(out + 40, i->oldest_number);
    rq_put_be64(out + 48, (uint64_t)i->created_ms);
    rq_put_be64(out + 56, i->prev_number);
    rq_put_be32(out + 64, i->prev_crc);
    rq_put_be32(out + 92, rq_crc32c(0, out, 92));
}

/* RQ_OK, RQ_E_CORRUPT, or RQ_E_VERSION for a valid header of a later version. */
static rq_err header_decode(const uint8_t *in, rq_wal_file_info *ret)
{
    if (memcmp(in, RQ_WAL_MAGIC, 8) != 0 || rq_get_be32(in + 92) != rq_crc32c(0, in, 92))
        return RQ_E_CORRUPT;
    if (rq_get_be32(in + 8) != RQ_WAL_VERSION) return RQ_E_VERSION;
    *ret = (rq_wal_file_info){
        .number = rq_get_be64(in + 16),
        .epoch = rq_get_be64(in + 24),
        .first_lsn = rq_get_be64(in + 32),
        .oldest_number = rq_get_be64(in + 40),
        .created_ms = (int64_t)rq_get_be64(in + 48),
        .prev_number = rq_get_be64(in + 56),
        .prev_crc = rq_get_be32(in + 64),
        .clean = (rq_get_be32(in + 12) & RQ_WAL_FLAG_CLEAN) != 0,
    };
    bool sane = ret->number > 0 && ret->oldest_number > 0 && ret->oldest_number <= ret->number &&
                ret->prev_number < ret->number && ret->first_lsn >= RQ_WAL_FIRST_LSN &&
                ret->first_lsn <= INT64_MAX && ret->first_lsn % RQ_WAL_ALIGN == 0;
    return sane ? RQ_OK : RQ_E_CORRUPT;
}

static bool all_zero(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != 0) return false;
    return true;
}

rq_err rq__wal_header_read(rq_file *f, const char *path, rq_wal_file_info *ret, int *ret_older,
                           rq_error *why)
{
    uint8_t bytes[RQ_WAL_HEADER_COPY_AT + RQ_WAL_HEADER_LEN] = {0};
    size_t len = 0;
    RQ_TRY(rq_file_read(f, bytes, sizeof bytes, 0, &len, why));
    rq_wal_file_info copies[2];
    rq_err rc[2];
    for (int i = 0; i < 2; i++)
        rc[i] = header_decode(bytes + copy_at[i], &copies[i]);

    int best = -1;
    if (rc[0] == RQ_OK) best = 0;
    if (rc[1] == RQ_OK && (best < 0 || copies[1].number > copies[0].number)) best = 1;
    *ret_older = best == 0 ? 1 : 0;
    if (best >= 0) {
        *ret = copies[best];
        return RQ_OK;
    }
    if (rc[0] == RQ_E_VERSION || rc[1] == RQ_E_VERSION)
        return rq_fail(why, RQ_E_VERSION, "%s: written by a newer version", path);
    /* The second copy is written only once the first is durable. */
    if (all_zero(bytes + RQ_WAL_HEADER_COPY_AT, RQ_WAL_HEADER_LEN))
        return rq_fail(why, RQ_E_NOT_FOUND, "%s: contains no WAL file", path);
    return rq_fail(why, RQ_E_CORRUPT, "%s: offset 0: both copies of the header are damaged", path);
}

rq_err rq__wal_header_check(rq_file *f, const char *path, rq_error *why)
{
    uint8_t bytes[RQ_WAL_HEADER_COPY_AT + RQ_WAL_HEADER_LEN] = {0};
    rq_wal_file_info ignored;
    size_t len = 0;
    RQ_TRY(rq_file_read(f, bytes, sizeof bytes, 0, &len, why));
    for (int i = 0; i < 2; i++) {
        const uint8_t *copy = bytes + copy_at[i];
        if (i == 1 && all_zero(copy, RQ_WAL_HEADER_LEN)) continue; /* not written yet */
        if (header_decode(copy, &ignored) == RQ_E_CORRUPT)
            return rq_fail(
                why, RQ_E_CORRUPT,
                "%s: offset %llu: this copy of the header is damaged, the other one is used", path,
                (unsigned long long)copy_at[i]);
    }
    return RQ_OK;
}

rq_err rq__wal_header_write(rq_file *f, const rq_wal_file_info *info, int older, rq_error *why)
{
    uint8_t bytes[RQ_WAL_HEADER_LEN];
    rq__wal_header_encode(info, bytes);
    RQ_TRY(rq_file_write(f, bytes, sizeof bytes, copy_at[older], why));
    RQ_TRY(rq_file_sync(f, why));
    return rq_file_write(f, bytes, sizeof bytes, copy_at[1 - older], why);
}
