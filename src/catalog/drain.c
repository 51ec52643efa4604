/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decommissioned servers: they get no further regions, and those they have are moved to others, if the caller wishes so. Regions
 * of the namespace hbase stay in the active master's process. HBASE: HMaster.decommissionRegionServers,
 * recommissionRegionServer.
 */
#include "catalog/catalog_priv.h"
#include "catalog/moves.h"

#include <string.h>

rq_err rq_catalog_destinations(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                               size_t *ret_count)
{
    size_t all, kept = 0;
    RQ_TRY(rq_catalog_servers(c, arena, ret, &all));
    for (size_t i = 0; i < all; i++) {
        const rq_server_name *s = (*ret)[i];
        if (c->calls.takes_regions == NULL || c->calls.takes_regions(c->calls.ctx, s))
            (*ret)[kept++] = s;
        else
            rq_server_name_unref(s);
    }
    *ret_count = kept;
    return RQ_OK;
}

/* As of a view: ZooKeeper shows who drains. */
static void notify(rq_catalog *c)
{
    pthread_mutex_lock(&c->views.edit_lock);
    if (c->views.changed != NULL) c->views.changed(c->views.changed_ctx);
    pthread_mutex_unlock(&c->views.edit_lock);
}

rq_err rq_catalog_drain(rq_catalog *c, const rq_server_name *server, bool drains, rq_error *why)
{
    if (c->calls.drain == NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "%s is the only server, so its regions cannot be moved", c->server->text);
    RQ_TRY(c->calls.drain(c->calls.ctx, server, drains, why));
    notify(c);
    return RQ_OK;
}

bool rq_catalog_is_cluster(const rq_catalog *c)
{
    return c->calls.drain != NULL;
}

bool rq_catalog_is_draining(const rq_catalog *c, const rq_server_name *server)
{
    return c->calls.is_draining != NULL && c->calls.is_draining(c->calls.ctx, server);
}

rq_err rq_catalog_draining(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                           size_t *ret_count)
{
    *ret = NULL;
    *ret_count = 0;
    return c->calls.draining == NULL ? RQ_OK
                                     : c->calls.draining(c->calls.ctx, arena, ret, ret_count);
}

/* --- moves ------------------------------------------------------------------------------------ */

/* Where regions go, in turn. */
typedef struct offload {
    rq_arena arena;
    const rq_server_name **list; /* references */
    size_t count, turn;
    rq__move *moves;
} offload;

static bool is_on(const rq_catalog_region *r, const rq_server_name *server)
{
    bool away = r->state == RQ_REGION_CLOSED || r->state == RQ_REGION_OFFLINE;
    return !away && r->server != NULL && strcmp(r->server->text, server->text) == 0;
}

static rq_err no_plan(const rq_region_info *info, rq_error *why)
{
    char name[600];
    rq_bytes_to_string(info->name, name, sizeof name);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Unable to determine a plan to move %s: no other server takes regions", name);
}

static rq_err add_table(offload *o, const rq_catalog_table *t, const rq_server_name *server,
                        rq_error *why)
{
    if (rq_slice_eq(t->schema->ns, RQ_SLICE_LIT("hbase"))) return RQ_OK;
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (!is_on(r, server)) continue;
        if (o->count == 0) return no_plan(r->info, why);
        if (rq__move_add(&o->moves, r->info, o->list[o->turn++ % o->count]) != RQ_OK)
            return rq_no_memory(why);
    }
    return RQ_OK;
}

static rq_err plan(offload *o, rq_catalog *c, const rq_server_name *server, rq_error *why)
{
    const rq_catalog_table *const *tables;
    size_t count;
    rq_err rc = RQ_OK;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    rq_catalog_tables(c, &tables, &count);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = add_table(o, tables[i], server, why);
    rq_epoch_unpin(c->env->epoch, &m);
    return rc;
}

static void log_moves(const rq_catalog *c, size_t count, const char *way,
                      const rq_server_name *server)
{
    if (count > 0)
        rq_log_info(c->env->log, "catalog", "moving %zu regions %s %s", count, way, server->text);
}

rq_err rq_catalog_offload(rq_catalog *c, const rq_server_name *server, rq_error *why)
{
    offload o = {0};
    size_t begun = 0;
    rq_err rc = rq_catalog_destinations(c, &o.arena, &o.list, &o.count);
    if (rc != RQ_OK) (void)rq_no_memory(why);
    if (rc == RQ_OK) rc = plan(&o, c, server, why);
    rc = rq__moves_submit(c, o.moves, rc, &begun);
    log_moves(c, begun, "from", server);
    for (size_t i = 0; i < o.count; i++)
        rq_server_name_unref(o.list[i]);
    rq_arena_clear(&o.arena);
    return rc;
}

/* HBase leaves out what it does not know. */
static rq_err add_named(rq_catalog *c, rq_slice encoded, const rq_server_name *to, rq__move **list,
                        rq_error *why)
{
    const rq_catalog_region *r = rq_catalog_region_find(c, encoded);
    if (r == NULL) {
        rq_log_write_limited(c->env->log, &c->unknown_regions, RQ_LOG_WARN, "catalog",
                             "region %.*s is unknown and is not moved to %s",
                             (int)(encoded.len < 64 ? encoded.len : 64), (const char *)encoded.ptr,
                             to->text);
        return RQ_OK;
    }
    if (is_on(r, to) || rq_slice_eq(r->info->ns, RQ_SLICE_LIT("hbase"))) return RQ_OK;
    return rq__move_add(list, r->info, to) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq_catalog_bring(rq_catalog *c, const rq_server_name *server, const rq_slice *encoded,
                        size_t count, rq_error *why)
{
    rq__move *moves = NULL;
    size_t begun = 0;
    rq_err rc = RQ_OK;
    rq_epoch_member m = {0};
    if (!rq__catalog_server_is_up(c, server)) return RQ_OK; /* as HBase */
    rq_epoch_pin(c->env->epoch, &m);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = add_named(c, encoded[i], server, &moves, why);
    rq_epoch_unpin(c->env->epoch, &m);
    rc = rq__moves_submit(c, moves, rc, &begun);
    log_moves(c, begun, "to", server);
    return rc;
}
