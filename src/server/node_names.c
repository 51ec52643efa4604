/* SPDX-License-Identifier: Apache-2.0 */
/* The znodes of a master that has opened hbase:meta, as HBase 2.6 writes them: meta-region-server
 * (HBASE: MetaTableLocator), table/NAME for clients of HBase 1 (MirroringTableStateManager), namespace/NAME
 * (ZKNamespaceManager), draining/SERVER. */
#include "server/node_priv.h"

#include "registry/znode_values.h"

typedef struct naming {
    rq_node *node;
    rq_arena *arena;
    rq_member_node *list;
    size_t count;
} naming;

static rq_err add(naming *g, const char *path, rq_slice value)
{
    if (path == NULL) return RQ_E_NO_MEMORY;
    g->list[g->count++] = (rq_member_node){.path = path, .value = value};
    return RQ_OK;
}

static rq_err add_table(naming *g, const rq_catalog_table *t)
{
    rq_slice value, name = t->schema->name;
    RQ_TRY(rq_znode_table(g->node->master->text, t->state, g->arena, &value));
    return add(g, rq_arena_printf(g->arena, "table/%.*s", (int)name.len, (const char *)name.ptr),
               value);
}

static rq_err add_namespace(naming *g, const rq_namespace *ns)
{
    rq_slice value, name = ns->name;
    RQ_TRY(rq_znode_namespace(g->node->master->text, ns, g->arena, &value));
    return add(g,
               rq_arena_printf(g->arena, "namespace/%.*s", (int)name.len, (const char *)name.ptr),
               value);
}

/* HBASE: HMaster.decommissionRegionServers. */
static rq_err add_draining(naming *g, const rq_server_name *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        RQ_TRY(add(g, rq_arena_printf(g->arena, "draining/%s", list[i]->text), RQ_SLICE_LIT("")));
    return RQ_OK;
}

static rq_err add_all(naming *g, const rq_server_name *const *draining, size_t draining_count)
{
    const rq_catalog_table *const *tables;
    const rq_namespace *const *namespaces;
    size_t table_count, namespace_count;
    rq_slice value;
    rq_catalog_tables(g->node->catalog, &tables, &table_count);
    rq_catalog_namespaces(g->node->catalog, &namespaces, &namespace_count);
    g->list = rq_arena_calloc(g->arena, table_count + namespace_count + draining_count + 1,
                              sizeof *g->list);
    if (g->list == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_znode_meta(g->node->master->text, g->node->server, g->arena, &value));
    RQ_TRY(add(g, "meta-region-server", value));
    for (size_t i = 0; i < table_count; i++)
        RQ_TRY(add_table(g, tables[i]));
    for (size_t i = 0; i < namespace_count; i++)
        RQ_TRY(add_namespace(g, namespaces[i]));
    return add_draining(g, draining, draining_count);
}

rq_err rq__node_write_names(rq_node *n, rq_error *why)
{
    rq_arena a = {0};
    naming g = {.node = n, .arena = &a};
    rq_epoch_member m = {0};
    const rq_server_name **draining;
    size_t count;
    rq_err rc = rq_remote_draining(rq__node_remote(n), &a, &draining, &count);
    rq_epoch_pin(n->env.epoch, &m);
    if (rc == RQ_OK) rc = add_all(&g, draining, count);
    rq_epoch_unpin(n->env.epoch, &m);
    for (size_t i = 0; i < count; i++)
        rq_server_name_unref(draining[i]);
    if (rc == RQ_OK) rc = rq_member_write(atomic_load(&n->answers_of.member), g.list, g.count);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}
