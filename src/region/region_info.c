/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Region names and their protobuf form; contract in region_info.h. HBASE: RegionInfo,
 * RegionInfoBuilder, ProtobufUtil.toRegionInfo.
 */
#include "region/region_info.h"

#include "base/digest.h"
#include "base/pb_arena.h"
#include "cell/cell.h"
#include "descriptor/schema.h"
#include "hfile/bloom.h"
#include "proto/hbase.pb-c.h"

#include <stdio.h>

static const uint8_t pb_magic[4] = {'P', 'B', 'U', 'F'};

static bool is_meta(rq_slice ns, rq_slice qualifier)
{
    return rq_slice_eq(ns, RQ_SLICE_LIT("hbase")) && rq_slice_eq(qualifier, RQ_SLICE_LIT("meta"));
}

/* Makes table,start,id[_replica] followed by .encoded. */
static rq_err make_name(rq_arena *arena, rq_region_info *r)
{
    char id[48];
    int id_len = r->replica_id > 0 ? snprintf(id, sizeof id, "%lld_%04X", (long long)r->region_id,
                                              (unsigned)r->replica_id)
                                   : snprintf(id, sizeof id, "%lld", (long long)r->region_id);
    size_t plain = r->table.len + 1 + r->start_key.len + 1 + (size_t)id_len;
    uint8_t *name = rq_arena_alloc(arena, plain + 1 + RQ_ENCODED_NAME_LEN + 1);
    if (name == NULL) return RQ_E_NO_MEMORY;
    uint8_t *p = name;
    memcpy(p, r->table.ptr, r->table.len);
    p += r->table.len;
    *p++ = ',';
    if (r->start_key.len > 0) memcpy(p, r->start_key.ptr, r->start_key.len);
    p += r->start_key.len;
    *p++ = ',';
    memcpy(p, id, (size_t)id_len);
    p += id_len;
    if (is_meta(r->ns, r->qualifier) && r->start_key.len == 0) {
        /* The old format, without the encoded name at the end. HBASE: encodeRegionName. */
        r->name = rq_slice_of(name, plain);
        int64_t hash = rq_jenkins_hash(r->name, 0);
        snprintf(r->encoded, sizeof r->encoded, "%lld", (long long)(hash < 0 ? -hash : hash));
        return RQ_OK;
    }
    rq_md5_hex(rq_slice_of(name, plain), r->encoded);
    *p++ = '.';
    memcpy(p, r->encoded, RQ_ENCODED_NAME_LEN);
    p[RQ_ENCODED_NAME_LEN] = '.';
    r->name = rq_slice_of(name, plain + 1 + RQ_ENCODED_NAME_LEN + 1);
    return RQ_OK;
}

rq_err rq_region_info_make(rq_arena *arena, rq_slice ns, rq_slice qualifier, rq_slice start_key,
                           rq_slice end_key, int64_t region_id, int32_t replica_id,
                           rq_region_info *ret)
{
    rq_region_info r = {
        .ns = rq_arena_copy(arena, ns.len == 0 ? RQ_SLICE_LIT("default") : ns),
        .qualifier = rq_arena_copy(arena, qualifier),
        .start_key = rq_arena_copy(arena, start_key),
        .end_key = rq_arena_copy(arena, end_key),
        .region_id = region_id,
        .replica_id = replica_id,
    };
    if (r.ns.ptr == NULL || r.qualifier.ptr == NULL || r.start_key.ptr == NULL ||
        r.end_key.ptr == NULL)
        return RQ_E_NO_MEMORY;
    r.table = rq_table_name_join(arena, r.ns, r.qualifier);
    if (r.table.ptr == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(make_name(arena, &r));
    *ret = r;
    return RQ_OK;
}

rq_err rq_region_info_copy(rq_arena *arena, const rq_region_info *from, rq_region_info *ret)
{
    RQ_TRY(rq_region_info_make(arena, from->ns, from->qualifier, from->start_key, from->end_key,
                               from->region_id, from->replica_id, ret));
    ret->offline = from->offline;
    ret->split = from->split;
    return RQ_OK;
}

rq_err rq_region_info_meta(rq_arena *arena, rq_region_info *ret)
{
    return rq_region_info_make(arena, RQ_SLICE_LIT("hbase"), RQ_SLICE_LIT("meta"), (rq_slice){0},
                               (rq_slice){0}, 1, 0, ret);
}

void rq_region_info_text(const rq_region_info *r, char *buf, size_t size)
{
    size_t len = rq_bytes_to_string(r->name, buf, size);
    /* Only the name of hbase:meta has the old format, without the encoded name. */
    bool old = r->name.len > 0 && r->name.ptr[r->name.len - 1] != '.';
    if (old && len < size) snprintf(buf + len, size - len, ".%s", r->encoded);
}

void rq_region_info_describe(const rq_region_info *r, char *buf, size_t size)
{
    char name[400], start[160], end[160], replica[40] = "";
    rq_region_info_text(r, name, sizeof name);
    rq_bytes_to_string(r->start_key, start, sizeof start);
    rq_bytes_to_string(r->end_key, end, sizeof end);
    if (r->replica_id > 0)
        snprintf(replica, sizeof replica, ", REPLICA_ID => %d", (int)r->replica_id);
    snprintf(buf, size, "{ENCODED => %s, NAME => '%s', STARTKEY => '%s', ENDKEY => '%s'%s%s%s}",
             r->encoded, name, start, end, r->offline ? ", OFFLINE => true" : "",
             r->split ? ", SPLIT => true" : "", replica);
}

static ProtobufCBinaryData to_pb(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static rq_err serialize(const rq_region_info *r, bool delimited, rq_arena *arena, rq_slice *ret)
{
    Pb__TableName table;
    pb__table_name__init(&table);
    table.namespace_ = to_pb(r->ns);
    table.qualifier = to_pb(r->qualifier);
    Pb__RegionInfo m;
    pb__region_info__init(&m);
    m.region_id = (uint64_t)r->region_id;
    m.table_name = &table;
    m.has_start_key = m.has_end_key = m.has_offline = m.has_split = m.has_replica_id = true;
    m.start_key = to_pb(r->start_key);
    m.end_key = to_pb(r->end_key);
    m.offline = r->offline;
    m.split = r->split;
    m.replica_id = r->replica_id;
    size_t len = pb__region_info__get_packed_size(&m);
    uint8_t *p = rq_arena_alloc(arena, sizeof pb_magic + RQ_VARINT_MAX + len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    memcpy(p, pb_magic, sizeof pb_magic);
    size_t at = sizeof pb_magic;
    if (delimited) at += rq_put_varint(p + at, len);
    *ret = rq_slice_of(p, at + pb__region_info__pack(&m, p + at));
    return RQ_OK;
}

rq_err rq_region_info_serialize(const rq_region_info *r, rq_arena *arena, rq_slice *ret)
{
    return serialize(r, false, arena, ret);
}

rq_err rq_region_info_serialize_delimited(const rq_region_info *r, rq_arena *arena, rq_slice *ret)
{
    return serialize(r, true, arena, ret);
}

static rq_slice from_pb(ProtobufCBinaryData b)
{
    return rq_slice_of(b.data, b.len);
}

/* Both become folder names. A client can write names into hbase:meta that no table ever had. */
static bool may_be_folder(rq_slice name)
{
    bool dots = rq_slice_eq(name, RQ_SLICE_LIT(".")) || rq_slice_eq(name, RQ_SLICE_LIT(".."));
    return !dots && (name.len == 0 || (memchr(name.ptr, '/', name.len) == NULL &&
                                       memchr(name.ptr, '\0', name.len) == NULL));
}

rq_err rq_region_info_parse(rq_slice bytes, rq_arena *arena, rq_region_info *ret, rq_error *why)
{
    if (bytes.len < sizeof pb_magic || memcmp(bytes.ptr, pb_magic, sizeof pb_magic) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "PB encoded RegionInfo expected");
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, arena);
    Pb__RegionInfo *m = pb__region_info__unpack(&memory.allocator, bytes.len - sizeof pb_magic,
                                                bytes.ptr + sizeof pb_magic);
    if (m == NULL && memory.exhausted) return rq_no_memory(why);
    if (m == NULL || m->table_name->qualifier.len == 0 ||
        !may_be_folder(from_pb(m->table_name->namespace_)) ||
        !may_be_folder(from_pb(m->table_name->qualifier)) || m->start_key.len > RQ_ROW_LEN_MAX ||
        m->end_key.len > RQ_ROW_LEN_MAX || m->replica_id < 0 || m->replica_id > UINT16_MAX)
        return rq_fail(why, RQ_E_CORRUPT, "malformed RegionInfo of %zu bytes", bytes.len);
    rq_region_info r;
    RQ_TRY(rq_region_info_make(arena, from_pb(m->table_name->namespace_),
                               from_pb(m->table_name->qualifier), from_pb(m->start_key),
                               from_pb(m->end_key), (int64_t)m->region_id, m->replica_id, &r));
    r.offline = m->has_offline && m->offline;
    r.split = m->has_split && m->split;
    *ret = r;
    return RQ_OK;
}

rq_err rq_region_info_parse_delimited(rq_slice bytes, rq_arena *arena, rq_region_info *ret,
                                      rq_error *why)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_slice magic;
    uint64_t len;
    rq_slice body;
    if (!rq_cursor_bytes(&c, sizeof pb_magic, &magic) || !rq_cursor_varint(&c, &len) ||
        len > SIZE_MAX / 2 || !rq_cursor_bytes(&c, (size_t)len, &body))
        return rq_fail(why, RQ_E_CORRUPT, "malformed .regioninfo of %zu bytes", bytes.len);
    uint8_t *p = rq_arena_alloc(arena, sizeof pb_magic + body.len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    memcpy(p, magic.ptr, sizeof pb_magic);
    if (body.len > 0) memcpy(p + sizeof pb_magic, body.ptr, body.len);
    return rq_region_info_parse(rq_slice_of(p, sizeof pb_magic + body.len), arena, ret, why);
}
