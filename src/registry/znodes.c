/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of znodes; see znodes.h. */
#include "registry/znodes.h"

#include "registry/znode_values.h"

#include "catalog/peers.h"

/* --- values ----------------------------------------------------------------------------------- */

static const char *writer_of(const rq__znodes *z)
{
    return rq_catalog_master(z->catalog)->text;
}

static rq_err value_hbaseid(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    const char *id = rq_root_cluster_id(rq_catalog_root(z->catalog));
    return rq__znode_cluster_id(writer_of(z), id, arena, &ret->data);
}

static rq_err value_master(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    ret->ephemeral = true;
    return rq__znode_master(writer_of(z), rq_catalog_master(z->catalog),
                            rq_catalog_info_port(z->catalog), arena, &ret->data);
}

static rq_err value_meta(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    return rq_znode_meta(writer_of(z), rq_catalog_server(z->catalog), arena, &ret->data);
}

static rq_err value_running(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    (void)name;
    return rq__znode_running(writer_of(z), rq_catalog_server(z->catalog)->start_code, arena,
                             &ret->data);
}

static rq_err value_server(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    const rq_server_name *server = rq_catalog_server(z->catalog);
    if (!rq_slice_eq(name, rq_slice_cstr(server->text))) return RQ_E_NOT_FOUND;
    ret->ephemeral = true;
    return rq__znode_server(server->text, rq_catalog_info_port(z->catalog), arena, &ret->data);
}

static rq_err value_table(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    const rq_catalog_table *table = rq_catalog_table_find(z->catalog, name);
    if (table == NULL) return RQ_E_NOT_FOUND;
    ret->changes = true;
    return rq_znode_table(writer_of(z), table->state, arena, &ret->data);
}

static rq_err value_namespace(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret)
{
    ret->changes = true;
    const rq_namespace *ns = rq_catalog_namespace_find(z->catalog, name);
    if (ns == NULL) return RQ_E_NOT_FOUND;
    return rq_znode_namespace(writer_of(z), ns, arena, &ret->data);
}

static rq_err one_child(const char *name, rq_arena *arena, rq__znode *ret)
{
    ret->children = rq_arena_alloc(arena, sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    ret->children[0] = rq_slice_cstr(name);
    ret->child_count = 1;
    return RQ_OK;
}

/* Short lists are always made. */
static rq_err list_servers(const rq__znodes *z, bool lists, rq_arena *arena, rq__znode *ret)
{
    (void)lists;
    ret->children = rq_arena_alloc(arena, sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    ret->children[0] = rq_slice_cstr(rq_catalog_server(z->catalog)->text);
    ret->child_count = 1;
    return RQ_OK;
}

/* --- replication: /replication/peers/ID, and peer-state below it; as HBase 2.6 writes them ------ */

/* HBASE: ZKReplicationPeerStorage. VerifyReplication and DumpReplicationQueues read these nodes. */
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
        return rq__znode_bytes(writer_of(z), p.config, arena, &ret->data);
    }
    rq_slice rest = rq_slice_of(slash + 1, name.len - id.len - 1);
    if (!rq_slice_eq(rest, RQ_SLICE_LIT("peer-state"))) return RQ_E_NOT_FOUND;
    const uint8_t state[] = {8, p.enabled ? 0 : 1}; /* ReplicationState */
    return rq__znode_bytes(writer_of(z), rq_slice_of(state, sizeof state), arena, &ret->data);
}

/* Servers have no queues here: the log is not a list of files that other programs could read. */
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

static rq_err list_replication(const rq__znodes *z, bool lists, rq_arena *arena, rq__znode *ret)
{
    static const char *const names[] = {"peers", "rs", "hfile-refs"};
    (void)z, (void)lists;
    ret->children = rq_arena_alloc(arena, RQ_ARRAY_LEN(names) * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        ret->children[i] = rq_slice_cstr(names[i]);
    ret->child_count = RQ_ARRAY_LEN(names);
    return RQ_OK;
}

/* --- children --------------------------------------------------------------------------------- */

static rq_err list_tables(const rq__znodes *z, bool lists, rq_arena *arena, rq__znode *ret)
{
    const rq_catalog_table *const *tables;
    rq_catalog_tables(z->catalog, &tables, &ret->child_count);
    ret->changes = true;
    if (!lists) return RQ_OK;
    ret->children = rq_arena_alloc(arena, ret->child_count * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < ret->child_count; i++)
        ret->children[i] = tables[i]->schema->name;
    return RQ_OK;
}

static rq_err list_namespaces(const rq__znodes *z, bool lists, rq_arena *arena, rq__znode *ret)
{
    const rq_namespace *const *namespaces;
    rq_catalog_namespaces(z->catalog, &namespaces, &ret->child_count);
    ret->changes = true;
    if (!lists) return RQ_OK;
    ret->children = rq_arena_alloc(arena, ret->child_count * sizeof *ret->children);
    if (ret->children == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < ret->child_count; i++)
        ret->children[i] = namespaces[i]->name;
    return RQ_OK;
}

/* --- the tree --------------------------------------------------------------------------------- */

typedef rq_err value_fn(const rq__znodes *z, rq_slice name, rq_arena *arena, rq__znode *ret);
typedef rq_err list_fn(const rq__znodes *z, bool lists, rq_arena *arena, rq__znode *ret);

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

rq_err rq__znode_get(const rq__znodes *z, rq_slice path, bool lists, rq_arena *arena,
                     rq__znode *ret)
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
        return nodes[i].list == NULL ? RQ_OK : nodes[i].list(z, lists, arena, ret);
    }
    int replica = slash != NULL ? 0 : meta_replica(name);
    if (replica > 0 && replica < meta_copies(z)) return value_meta(z, name, arena, ret);
    return RQ_E_NOT_FOUND;
}
