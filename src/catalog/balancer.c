/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balancer of a cluster. balancer_choice.c decides which regions move. Each move is a procedure, for whose end the
 * balancer does not wait. Regions of the namespace hbase stay in the master's process and are not counted, nor are
 * regions of servers that get no further regions. The balancer runs every hbase.balancer.period, and when a client asks.
 * HBASE: HMaster.balance, SimpleLoadBalancer.
 */
#include "catalog/balancer.h"

#include "catalog/catalog_priv.h"
#include "catalog/moves.h"

#include <stdlib.h>

#define MOVES_MAX 1000 /* moves that one run begins; the next run continues */

/* --- the regions as they are ------------------------------------------------------------------ */

/* One run of the balancer; the lists are in its arena. */
typedef struct run {
    rq_catalog *catalog;
    rq_arena arena;
    const rq_server_name **servers; /* references */
    size_t server_count, table_count, count;
    rq__balanced *list;
    const rq_catalog_region **regions; /* by index in `list`; in the view */
    bool is_settled, meta_moves;
} run;

static bool is_in_transition(const rq_catalog *c, const rq_catalog_region *r)
{
    if (r->state == RQ_REGION_OPEN)
        return r->server != NULL && !rq__catalog_server_is_up(c, r->server);
    return r->state != RQ_REGION_CLOSED && r->state != RQ_REGION_OFFLINE;
}

static void add_table(run *b, const rq_catalog_table *t)
{
    bool stays = rq_slice_eq(t->schema->ns, RQ_SLICE_LIT("hbase"));
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        bool in_transition = is_in_transition(b->catalog, r);
        if (in_transition) b->is_settled = false;
        if (in_transition && t->schema->is_meta) b->meta_moves = true;
        size_t server = r->state == RQ_REGION_OPEN
                            ? rq_server_names_find(b->servers, b->server_count, r->server)
                            : b->server_count;
        if (stays || t->state != RQ_TABLE_ENABLED || server == b->server_count) continue;
        b->regions[b->count] = r;
        b->list[b->count++] = (rq__balanced){.table = b->table_count, .server = server};
    }
    b->table_count++;
}

/* REQUIRES: a read section. */
static rq_err look(run *b)
{
    const rq_catalog_table *const *tables;
    size_t count, regions = 0;
    rq_catalog_tables(b->catalog, &tables, &count);
    for (size_t i = 0; i < count; i++)
        regions += tables[i]->region_count;
    b->list = rq_arena_calloc(&b->arena, regions + 1, sizeof *b->list);
    b->regions = rq_arena_calloc(&b->arena, regions + 1, sizeof *b->regions);
    if (b->list == NULL || b->regions == NULL) return RQ_E_NO_MEMORY;
    b->is_settled = true;
    for (size_t i = 0; i < count; i++)
        add_table(b, tables[i]);
    return RQ_OK;
}

/* --- moves ------------------------------------------------------------------------------------ */

static rq_err make_moves(const run *b, rq__move **ret)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < b->count && rc == RQ_OK; i++)
        if (b->list[i].moves)
            rc = rq__move_add(ret, b->regions[i]->info, b->servers[b->list[i].server]);
    return rc;
}

/* HBASE: HMaster.balance. While regions are in transition the balancer runs only if the request says so, and never
 * while hbase:meta is in transition. */
static rq_err plan(run *b, const rq_balance_options *o, rq_balance *ret, rq__move **ret_moves)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(b->catalog->env->epoch, &m);
    rq_err rc = look(b);
    ret->ran = rc == RQ_OK && (b->is_settled || (o->ignores_transitions && !b->meta_moves));
    if (ret->ran)
        rc = rq__balance(b->list, b->count, b->table_count, b->server_count, MOVES_MAX,
                         &ret->planned);
    if (rc == RQ_OK && ret->ran && !o->dry) rc = make_moves(b, ret_moves);
    rq_epoch_unpin(b->catalog->env->epoch, &m);
    return rc;
}

rq_err rq_catalog_balance(rq_catalog *c, const rq_balance_options *o, rq_balance *ret)
{
    run b = {.catalog = c};
    rq__move *moves = NULL;
    *ret = (rq_balance){0};
    if (!rq_catalog_switch_get(c, RQ_SWITCH_BALANCER) && !o->dry) return RQ_OK;
    rq_err rc = rq_catalog_destinations(c, &b.arena, &b.servers, &b.server_count);
    if (rc == RQ_OK) rc = plan(&b, o, ret, &moves);
    rc = rq__moves_submit(c, moves, rc, &ret->begun);
    if (ret->begun > 0)
        rq_log_info(c->env->log, "catalog", "balancer: moving %zu regions", ret->begun);
    for (size_t i = 0; i < b.server_count; i++)
        rq_server_name_unref(b.servers[i]);
    rq_arena_clear(&b.arena);
    return rc;
}

/* --- on its own ------------------------------------------------------------------------------- */

static void work(rq_catalog *c)
{
    const rq_balance_options o = {0};
    rq_balance done;
    rq_err rc = rq_catalog_balance(c, &o, &done);
    if (rc != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "balancer: a run failed: %s; the next period tries again", rq_err_text(rc));
}

/* A standalone server has nothing to move. */
void rq__balancer_start(rq_catalog *c)
{
    if (c->config == NULL || c->calls.servers == NULL) return;
    c->balancer.interval_ms = rq_config_int(c->config, RQ_SET_BALANCER_PERIOD);
    rq__chore_start(&c->balancer, c, work);
}
