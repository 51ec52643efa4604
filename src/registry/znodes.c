/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of znodes; see znodes.h. */
#include "registry/znodes.h"

#include "catalog/peers.h"
#include "rpc/call.h"

#include "proto/files.pb-c.h"
#include "proto/registry.pb-c.h"

#include <stdio.h>
#include <time.h>

/* HBASE: HConstants.RPC_CURRENT_VERSION in znodes */
#define RPC_VERSION 0

/* The message behind HBase's header; `magic`: with "PBUF" as by ProtobufUtil.prependPBMagic, which
 * not all nodes have. */
static rq_err wrap(const ProtobufCMessage *message, bool magic, const rq_server_name *id,
                   rq_arena *arena, rq_slice *ret)
{
    size_t id_len = strlen(id->text), magic_len = magic ? 4 : 0;
    size_t body = protobuf_c_message_get_packed_size(message);
    uint8_t *p = rq_arena_alloc(arena, 1 + 4 + id_len + magic_len + body);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p[0] = 0xFF;
    rq_put_be32(p + 1, (uint32_t)id_len);
    memcpy(p + 5, id->text, id_len);
    memcpy(p + 5 + id_len, "PBUF", magic_len);
    protobuf_c_message_pack(message, p + 5 + id_len + magic_len);
    *ret = rq_slice_of(p, 5 + id_len + magic_len + body);
    return RQ_OK;
}

/* --- values ----------------------------------------------------------------------------------- */

static rq_err value_hbaseid(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    Pb__ClusterId m = PB__CLUSTER_ID__INIT;
    m.cluster_id = (char *)rq_root_cluster_id(rq_catalog_root(z->catalog));
    return wrap(&m.base, true, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err value_master(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    Pb__ServerName server = rq__server_message(rq_catalog_master(z->catalog));
    Pb__Master m = PB__MASTER__INIT;
    m.master = &server;
    m.has_rpc_version = 1;
    m.rpc_version = RPC_VERSION;
    m.has_info_port = 1;
    m.info_port = rq_catalog_info_port(z->catalog);
    ret->ephemeral = true;
    return wrap(&m.base, true, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err value_meta(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    Pb__ServerName server = rq__server_message(rq_catalog_server(z->catalog));
    Pb__MetaRegionServer m = PB__META_REGION_SERVER__INIT;
    m.server = &server;
    m.has_rpc_version = 1;
    m.rpc_version = RPC_VERSION;
    m.has_state = 1;
    m.state = PB__REGION_STATE__STATE__OPEN;
    return wrap(&m.base, true, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err value_running(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    char text[64];
    struct tm utc;
    time_t start = (time_t)(rq_catalog_server(z->catalog)->start_code / 1000);
    gmtime_r(&start, &utc);
    strftime(text, sizeof text, "%a %b %d %H:%M:%S UTC %Y", &utc);
    Pb__ClusterUp m = PB__CLUSTER_UP__INIT;
    m.start_date = text;
    return wrap(&m.base, true, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err value_server(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    const rq_server_name *server = rq_catalog_server(z->catalog);
    if (!rq_slice_eq(name, rq_slice_cstr(server->text))) return RQ_E_NOT_FOUND;
    Pb__RegionServerInfo m = PB__REGION_SERVER_INFO__INIT;
    uint16_t info_port = rq_catalog_info_port(z->catalog);
    m.has_infoport = info_port != 0;
    m.infoport = info_port;
    ret->ephemeral = true;
    return wrap(&m.base, true, server, arena, &ret->data);
}

static rq_err value_table(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    const rq_catalog_table *table = rq_catalog_table_find(z->catalog, name);
    if (table == NULL) return RQ_E_NOT_FOUND;
    ret->changes = true;
    Pb__DeprecatedTableState m = PB__DEPRECATED_TABLE_STATE__INIT;
    m.state = (Pb__DeprecatedTableState__State)table->state;
    return wrap(&m.base, true, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err value_namespace(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    ret->changes = true;
    const rq_namespace *ns = rq_catalog_namespace_find(z->catalog, name);
    if (ns == NULL) return RQ_E_NOT_FOUND;
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
    return wrap(&m.base, false, rq_catalog_master(z->catalog), arena, &ret->data);
}

static rq_err one_child(const char *name, rq_arena *arena, rq__znode *ret)
{
    ret->children = rq_arena_alloc(arena, sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    ret->children[0] = rq_slice_cstr(name);
    ret->child_count = 1;
    return RQ_OK;
}

static rq_err list_servers(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    ret->children = rq_arena_alloc(arena, sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    ret->children[0] = rq_slice_cstr(rq_catalog_server(z->catalog)->text);
    ret->child_count = 1;
    return RQ_OK;
}

/* --- replication: /replication/peers/ID, and peer-state below it; as HBase 2.6 writes them ------ */

/* HBASE: ZKReplicationPeerStorage. VerifyReplication and DumpReplicationQueues read these nodes. */
static rq_err wrap_bytes(const rq__znodes *z, rq_slice message, rq_arena *arena, rq_slice *ret)
{
    const rq_server_name *id = rq_catalog_master(z->catalog);
    size_t id_len = strlen(id->text);
    uint8_t *p = rq_arena_alloc(arena, 1 + 4 + id_len + 4 + message.len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p[0] = 0xFF;
    rq_put_be32(p + 1, (uint32_t)id_len);
    memcpy(p + 5, id->text, id_len);
    memcpy(p + 5 + id_len, "PBUF", 4);
    if (message.len > 0) memcpy(p + 9 + id_len, message.ptr, message.len);
    *ret = rq_slice_of(p, 9 + id_len + message.len);
    return RQ_OK;
}

static rq_err list_peers(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    rq_peer_info *peers;
    size_t count;
    RQ_TRY(rq_catalog_peers(z->catalog, arena, &peers, &count));
    ret->children = rq_arena_alloc(arena, (count + 1) * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        ret->children[i] = rq_slice_cstr(peers[i].id);
    ret->child_count = count;
    return RQ_OK;
}

/* `name`: ID or ID/peer-state. */
static rq_err value_peer(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    const uint8_t *slash = memchr(name.ptr, '/', name.len);
    rq_slice id = slash == NULL ? name : rq_slice_of(name.ptr, (size_t)(slash - name.ptr));
    rq_peer_info p;
    RQ_TRY(rq_catalog_peer(z->catalog, id, arena, &p));
    if (slash == NULL) {
        RQ_TRY(one_child("peer-state", arena, ret));
        return wrap_bytes(z, p.config, arena, &ret->data);
    }
    rq_slice rest = rq_slice_of(slash + 1, name.len - id.len - 1);
    if (!rq_slice_eq(rest, RQ_SLICE_LIT("peer-state"))) return RQ_E_NOT_FOUND;
    const uint8_t state[] = {8, p.enabled ? 0 : 1}; /* ReplicationState */
    return wrap_bytes(z, rq_slice_of(state, sizeof state), arena, &ret->data);
}

/* There are no queues of servers: the log is not a list of files that others could read. */
static rq_err value_replication(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    rq_slice peers = RQ_SLICE_LIT("peers");
    ret->changes = true;
    if (rq_slice_eq(name, peers)) return list_peers(z, arena, ret);
    if (rq_slice_eq(name, RQ_SLICE_LIT("rs"))) return RQ_OK;
    if (rq_slice_eq(name, RQ_SLICE_LIT("hfile-refs"))) return RQ_OK;
    if (!rq_slice_starts_with(name, peers) || name.len < peers.len + 2 ||
        name.ptr[peers.len] != '/')
        return RQ_E_NOT_FOUND;
    return value_peer(z, rq_slice_of(name.ptr + peers.len + 1, name.len - peers.len - 1), arena,
                      ret);
}

static rq_err list_replication(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    static const char *const names[] = {"peers", "rs", "hfile-refs"};
    (void)z;
    ret->children = rq_arena_alloc(arena, RQ_ARRAY_LEN(names) * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        ret->children[i] = rq_slice_cstr(names[i]);
    ret->child_count = RQ_ARRAY_LEN(names);
    return RQ_OK;
}

/* --- children --------------------------------------------------------------------------------- */

static rq_err list_tables(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    const rq_catalog_table *const *tables;
    size_t count;
    rq_catalog_tables(z->catalog, &tables, &count);
    ret->children = rq_arena_alloc(arena, count * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        ret->children[i] = tables[i]->schema->name;
    ret->child_count = count;
    ret->changes = true;
    return RQ_OK;
}

static rq_err list_namespaces(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    const rq_namespace *const *namespaces;
    size_t count;
    rq_catalog_namespaces(z->catalog, &namespaces, &count);
    ret->children = rq_arena_alloc(arena, count * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        ret->children[i] = namespaces[i]->name;
    ret->child_count = count;
    ret->changes = true;
    return RQ_OK;
}

/* --- the tree --------------------------------------------------------------------------------- */

typedef rq_err value_fn(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret);
typedef rq_err list_fn(const rq__znodes *z, rq_arena *arena, rq__znode *ret);

/* The nodes below the root: their values, and names and values of their children. */
static const struct {
    const char *name;
    value_fn *value;
    list_fn *list;
    value_fn *child_value;
} nodes[] = {
    {"backup-masters", NULL, NULL, NULL},
    {"draining", NULL, NULL, NULL},
    {"hbaseid", value_hbaseid, NULL, NULL},
    {"master", value_master, NULL, NULL},
    {"meta-region-server", value_meta, NULL, NULL},
    {"namespace", NULL, list_namespaces, value_namespace},
    {"online-snapshot", NULL, NULL, NULL},
    {"replication", NULL, list_replication, value_replication},
    {"rs", NULL, list_servers, value_server},
    {"running", value_running, NULL, NULL},
    {"table", NULL, list_tables, value_table},
    {"table-lock", NULL, NULL, NULL},
};

/* Each replica of meta has a node: meta-region-server-1 and so on. HBASE: ZNodePaths. */
#define META_REPLICA "meta-region-server-"

static int meta_copies(const rq__znodes *z)
{
    const rq_catalog_table *meta = rq_catalog_table_find(z->catalog, RQ_SLICE_LIT("hbase:meta"));
    return meta == NULL ? 1 : rq_catalog_replication(meta->schema);
}

/* The replica id of such a node; 0: another node. */
static int meta_replica(rq_slice name)
{
    int id = 0;
    if (!rq_slice_starts_with(name, RQ_SLICE_LIT(META_REPLICA))) return 0;
    for (size_t i = strlen(META_REPLICA); i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9' || id >= RQ_REPLICATION_MAX) return 0;
        id = id * 10 + (name.ptr[i] - '0');
        if (id == 0) return 0; /* no leading zero */
    }
    return id;
}

static rq_err root_children(const rq__znodes *z, rq_arena *arena, rq__znode *ret)
{
    int copies = meta_copies(z);
    size_t n = RQ_ARRAY_LEN(nodes);
    ret->children = rq_arena_alloc(arena, (n + (size_t)copies) * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        ret->children[i] = rq_slice_cstr(nodes[i].name);
    for (int id = 1; id < copies; id++) {
        const char *name = rq_arena_printf(arena, META_REPLICA "%d", id);
        if (name == NULL) return RQ_E_NO_MEMORY;
        ret->children[n++] = rq_slice_cstr(name);
    }
    ret->child_count = n;
    ret->changes = true;
    return RQ_OK;
}

rq_err rq__znode_get(const rq__znodes *z, rq_slice path, rq_arena *arena, rq__znode *ret)
{
    size_t root_len = strlen(z->root);
    *ret = (rq__znode){.data = rq_slice_of("", 0)};
    if (path.len == 1 && path.ptr[0] == '/') return one_child(z->root + 1, arena, ret);
    if (!rq_slice_starts_with(path, rq_slice_cstr(z->root))) return RQ_E_NOT_FOUND;
    if (path.len == root_len) return root_children(z, arena, ret);
    if (path.ptr[root_len] != '/') return RQ_E_NOT_FOUND;
    rq_slice rest = rq_slice_of(path.ptr + root_len + 1, path.len - root_len - 1);
    const uint8_t *slash = memchr(rest.ptr, '/', rest.len);
    rq_slice name = slash == NULL ? rest : rq_slice_of(rest.ptr, (size_t)(slash - rest.ptr));
    for (size_t i = 0; i < RQ_ARRAY_LEN(nodes); i++) {
        if (!rq_slice_eq(name, rq_slice_cstr(nodes[i].name))) continue;
        if (slash != NULL) {
            rq_slice child = rq_slice_of(slash + 1, (size_t)(rest.ptr + rest.len - slash - 1));
            if (nodes[i].child_value == NULL || child.len == 0) return RQ_E_NOT_FOUND;
            return nodes[i].child_value(z, child, arena, ret);
        }
        if (nodes[i].value != NULL) RQ_TRY(nodes[i].value(z, name, arena, ret));
        return nodes[i].list == NULL ? RQ_OK : nodes[i].list(z, arena, ret);
    }
    int replica = slash != NULL ? 0 : meta_replica(name);
    if (replica > 0 && replica < meta_copies(z)) return value_meta(z, name, arena, ret);
    return RQ_E_NOT_FOUND;
}
