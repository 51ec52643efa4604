/* SPDX-License-Identifier: Apache-2.0 */
/* Records and frame headers to bytes and back. Layout: wal/format.h. */
#include "wal/record_codec.h"

#include "base/checksum.h"
#include "wal/format.h"

rq_err rq__wal_record_check(const rq_wal_record *r)
{
    bool ok = r->kind > 0 && r->kind <= RQ_WAL_KIND_LAST && r->region.len > 0 &&
              r->region.len <= RQ_WAL_REGION_NAME_MAX && r->table.len <= RQ_WAL_TABLE_NAME_MAX &&
              r->cluster_ids.len % RQ_WAL_CLUSTER_ID_LEN == 0 &&
              r->cluster_ids.len / RQ_WAL_CLUSTER_ID_LEN <= RQ_WAL_CLUSTERS_MAX &&
              r->scopes.len <= UINT16_MAX;
    return ok ? RQ_OK : RQ_E_INVALID;
}

static uint8_t *put_bytes(uint8_t *at, rq_slice s)
{
    if (s.len > 0) memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static uint8_t *put_be64(uint8_t *at, uint64_t v)
{
    rq_put_be64(at, v);
    return at + 8;
}

size_t rq__wal_record_encode_head(const rq_wal_record *r, uint8_t out[RQ_WAL_HEAD_MAX])
{
    uint8_t *at = out;
    *at++ = (uint8_t)r->kind;
    *at++ = (uint8_t)r->region.len;
    at = put_bytes(at, r->region);
    rq_put_be16(at, (uint16_t)r->table.len);
    at = put_bytes(at + 2, r->table);
    at = put_be64(at, r->sequence_id);
    at = put_be64(at, (uint64_t)r->write_time_ms);
    at = put_be64(at, r->nonce_group);
    at = put_be64(at, r->nonce);
    *at++ = (uint8_t)(r->cluster_ids.len / RQ_WAL_CLUSTER_ID_LEN);
    at = put_bytes(at, r->cluster_ids);
    rq_put_be16(at, (uint16_t)r->scopes.len);
    at += 2;
    return (size_t)(at - out);
}

static bool scopes_whole(rq_slice scopes)
{
    rq_cursor c = rq_cursor_of(scopes);
    rq_slice family;
    uint32_t scope;
    while (rq_cursor_left(&c) > 0)
        if (!rq_wal_scope_next(&c, &family, &scope)) return false;
    return true;
}

rq_err rq__wal_record_decode(rq_slice body, rq_wal_record *ret)
{
    rq_cursor c = rq_cursor_of(body);
    rq_wal_record r = {0};
    uint8_t kind, region_len, clusters;
    uint16_t table_len, scopes_len;
    uint64_t write_time;
    if (!rq_cursor_u8(&c, &kind)) return RQ_E_CORRUPT;
    if (kind == RQ_WAL_MARK || kind > RQ_WAL_KIND_LAST) return RQ_E_VERSION;
    r.kind = (rq_wal_kind)kind;
    bool ok = rq_cursor_u8(&c, &region_len) && rq_cursor_bytes(&c, region_len, &r.region) &&
              rq_cursor_be16(&c, &table_len) && rq_cursor_bytes(&c, table_len, &r.table) &&
              rq_cursor_be64(&c, &r.sequence_id) && rq_cursor_be64(&c, &write_time) &&
              rq_cursor_be64(&c, &r.nonce_group) && rq_cursor_be64(&c, &r.nonce) &&
              rq_cursor_u8(&c, &clusters) &&
              rq_cursor_bytes(&c, (size_t)clusters * RQ_WAL_CLUSTER_ID_LEN, &r.cluster_ids) &&
              rq_cursor_be16(&c, &scopes_len) && rq_cursor_bytes(&c, scopes_len, &r.scopes) &&
              scopes_whole(r.scopes);
    if (!ok) return RQ_E_CORRUPT;
    r.write_time_ms = (int64_t)write_time;
    r.payload = rq_slice_of(c.ptr, rq_cursor_left(&c));
    if (rq__wal_record_check(&r) != RQ_OK) return RQ_E_CORRUPT;
    *ret = r;
    return RQ_OK;
}

void rq__wal_frame_encode(rq__wal_frame *f, uint8_t *out)
{
    rq_put_be32(out, RQ_WAL_FRAME_MAGIC);
    rq_put_be32(out + 4, f->epoch);
    rq_put_be64(out + 8, f->lsn);
    rq_put_be64(out + 16, f->durable);
    rq_put_be32(out + 24, f->body_len);
    rq_put_be32(out + 28, f->prev_crc);
    rq_put_be32(out + 32, f->body_crc);
    f->crc = rq_crc32c(0, out, 36);
    rq_put_be32(out + 36, f->crc);
}

bool rq__wal_frame_decode(const uint8_t *in, rq__wal_frame *ret)
{
    if (rq_get_be32(in) != RQ_WAL_FRAME_MAGIC) return false;
    uint32_t crc = rq_get_be32(in + 36);
    if (crc != rq_crc32c(0, in, 36)) return false;
    *ret = (rq__wal_frame){
        .epoch = rq_get_be32(in + 4),
        .lsn = rq_get_be64(in + 8),
        .durable = rq_get_be64(in + 16),
        .body_len = rq_get_be32(in + 24),
        .prev_crc = rq_get_be32(in + 28),
        .body_crc = rq_get_be32(in + 32),
        .crc = crc,
    };
    return true;
}
