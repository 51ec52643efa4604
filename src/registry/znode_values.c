/* SPDX-License-Identifier: Apache-2.0 */
/* The values of znodes; see znode_values.h. */
#include "registry/znode_values.h"

#include "registry/znodes.h"

#include "proto/files.pb-c.h"
#include "proto/registry.pb-c.h"

#include "base/pb_arena.h"

#include <time.h>

/* HBASE: HConstants.RPC_CURRENT_VERSION in znodes */
#define RPC_VERSION 0

/* Begins a value: HBase's header, and room for `body` bytes after it, to which the result points.
 * `magic`: with "PBUF" (ProtobufUtil.prependPBMagic), which some nodes lack. NULL: no memory. */
static uint8_t *begin(const char *writer, bool magic, size_t body, rq_arena *arena, rq_slice *ret)
{
    size_t id_len = strlen(writer), magic_len = magic ? 4 : 0;
    uint8_t *p = rq_arena_alloc(arena, 1 + 4 + id_len + magic_len + body);
    if (p == NULL) return NULL;
    p[0] = 0xFF;
    rq_put_be32(p + 1, (uint32_t)id_len);
    memcpy(p + 5, writer, id_len);
    memcpy(p + 5 + id_len, "PBUF", magic_len);
    *ret = rq_slice_of(p, 5 + id_len + magic_len + body);
    return p + 5 + id_len + magic_len;
}

static rq_err wrap(const ProtobufCMessage *message, bool magic, const char *writer, rq_arena *arena,
                   rq_slice *ret)
{
    uint8_t *body = begin(writer, magic, protobuf_c_message_get_packed_size(message), arena, ret);
    if (body == NULL) return RQ_E_NO_MEMORY;
    protobuf_c_message_pack(message, body);
    return RQ_OK;
}

rq_err rq__znode_bytes(const char *writer, rq_slice message, rq_arena *arena, rq_slice *ret)
{
    uint8_t *body = begin(writer, true, message.len, arena, ret);
    if (body == NULL) return RQ_E_NO_MEMORY;
    if (message.len > 0) memcpy(body, message.ptr, message.len);
    return RQ_OK;
}

rq_err rq__znode_cluster_id(const char *writer, const char *cluster_id, rq_arena *arena,
                            rq_slice *ret)
{
    Pb__ClusterId m = PB__CLUSTER_ID__INIT;
    m.cluster_id = (char *)cluster_id;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq__znode_master(const char *writer, const rq_server_name *master, uint16_t info_port,
                        rq_arena *arena, rq_slice *ret)
{
    Pb__ServerName server = rq__server_message(master);
    Pb__Master m = PB__MASTER__INIT;
    m.master = &server;
    m.has_rpc_version = 1;
    m.rpc_version = RPC_VERSION;
    m.has_info_port = 1;
    m.info_port = info_port;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq_znode_meta(const char *writer, const rq_server_name *on, rq_arena *arena, rq_slice *ret)
{
    Pb__ServerName server = rq__server_message(on);
    Pb__MetaRegionServer m = PB__META_REGION_SERVER__INIT;
    m.server = &server;
    m.has_rpc_version = 1;
    m.rpc_version = RPC_VERSION;
    m.has_state = 1;
    m.state = PB__REGION_STATE__STATE__OPEN;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq__znode_running(const char *writer, int64_t start_ms, rq_arena *arena, rq_slice *ret)
{
    char text[64];
    struct tm utc;
    time_t start = (time_t)(start_ms / 1000);
    gmtime_r(&start, &utc);
    strftime(text, sizeof text, "%a %b %d %H:%M:%S UTC %Y", &utc);
    Pb__ClusterUp m = PB__CLUSTER_UP__INIT;
    m.start_date = text;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq__znode_server(const char *writer, uint16_t info_port, rq_arena *arena, rq_slice *ret)
{
    Pb__RegionServerInfo m = PB__REGION_SERVER_INFO__INIT;
    m.has_infoport = info_port != 0;
    m.infoport = info_port;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq_znode_table(const char *writer, rq_table_state state, rq_arena *arena, rq_slice *ret)
{
    Pb__DeprecatedTableState m = PB__DEPRECATED_TABLE_STATE__INIT;
    m.state = (Pb__DeprecatedTableState__State)state;
    return wrap(&m.base, true, writer, arena, ret);
}

rq_err rq_znode_namespace(const char *writer, const rq_namespace *ns, rq_arena *arena,
                          rq_slice *ret)
{
    size_t count = ns->configuration.count;
    Pb__NamespaceDescriptor m = PB__NAMESPACE_DESCRIPTOR__INIT;
    Pb__NameStringPair *pairs = rq_arena_calloc(arena, count + 1, sizeof *pairs);
    m.configuration = rq_arena_calloc(arena, count + 1, sizeof *m.configuration);
    if (pairs == NULL || m.configuration == NULL) return RQ_E_NO_MEMORY;
    m.name.data = (uint8_t *)ns->name.ptr;
    m.name.len = ns->name.len;
    m.n_configuration = count;
    for (size_t i = 0; i < count; i++) {
        pb__name_string_pair__init(&pairs[i]);
        pairs[i].name = rq_arena_cstr(arena, ns->configuration.items[i].key);
        pairs[i].value = rq_arena_cstr(arena, ns->configuration.items[i].value);
        if (pairs[i].name == NULL || pairs[i].value == NULL) return RQ_E_NO_MEMORY;
        m.configuration[i] = &pairs[i];
    }
    return wrap(&m.base, false, writer, arena, ret);
}

/* --- reading ------------------------------------------------------------------------------- */

/* The message behind the header. The header may be missing. */
static rq_err message_of(rq_slice value, rq_slice *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(value);
    uint8_t first;
    uint32_t len;
    rq_slice skipped;
    bool good = rq_cursor_u8(&c, &first);
    if (good && first == 0xFF)
        good = rq_cursor_be32(&c, &len) && rq_cursor_bytes(&c, len, &skipped);
    else
        c = rq_cursor_of(value);
    if (!good || !rq_cursor_bytes(&c, 4, &skipped) || memcmp(skipped.ptr, "PBUF", 4) != 0)
        return rq_fail(why, RQ_E_MALFORMED, "a znode's value of %zu bytes is not in HBase's format",
                       value.len);
    *ret = rq_slice_of(c.ptr, rq_cursor_left(&c));
    return RQ_OK;
}

static rq_err unpack_failed(const rq_pb_arena *memory, const char *what, rq_error *why)
{
    return memory->exhausted ? rq_no_memory(why)
                             : rq_fail(why, RQ_E_MALFORMED, "a znode's value is not a %s", what);
}

rq_err rq__znode_read_cluster_id(rq_slice value, rq_arena *arena, const char **ret, rq_error *why)
{
    rq_slice message;
    rq_pb_arena memory;
    RQ_TRY(message_of(value, &message, why));
    rq_pb_arena_init(&memory, arena);
    const Pb__ClusterId *m = pb__cluster_id__unpack(&memory.allocator, message.len, message.ptr);
    if (m == NULL) return unpack_failed(&memory, "cluster id", why);
    *ret = m->cluster_id;
    return RQ_OK;
}

rq_err rq__znode_read_master(rq_slice value, rq_arena *arena, rq_server_name *ret, rq_error *why)
{
    rq_slice message;
    rq_pb_arena memory;
    RQ_TRY(message_of(value, &message, why));
    rq_pb_arena_init(&memory, arena);
    const Pb__Master *m = pb__master__unpack(&memory.allocator, message.len, message.ptr);
    if (m == NULL) return unpack_failed(&memory, "master", why);
    const Pb__ServerName *name = m->master;
    if (name->port == 0 || name->port > UINT16_MAX)
        return rq_fail(why, RQ_E_MALFORMED, "the master's znode has the invalid port %u",
                       name->port);
    *ret = (rq_server_name){.host = name->host_name,
                            .port = (uint16_t)name->port,
                            .start_code = (int64_t)name->start_code};
    ret->text =
        rq_arena_printf(arena, "%s,%u,%lld", ret->host, name->port, (long long)ret->start_code);
    return ret->text == NULL ? rq_no_memory(why) : RQ_OK;
}
