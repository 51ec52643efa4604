/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the catalog, its lookups, and helpers for its other files. */
#include "catalog/catalog_priv.h"
#include "catalog/newest.h"

#include <stdio.h>
#include <stdlib.h>

/* --- lookups ---------------------------------------------------------------------------------- */

const rq_server_name *rq_catalog_server(const rq_catalog *c)
{
    return c->server;
}

rq_host *rq_catalog_host(const rq_catalog *c)
{
    return c->host;
}

rq_err rq_catalog_servers(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                          size_t *ret_count)
{
    if (c->calls.servers != NULL) {
        RQ_TRY(c->calls.servers(c->calls.ctx, arena, ret, ret_count));
        rq_server_names_sort(*ret, *ret_count);
        return RQ_OK;
    }
    *ret_count = 0;
    *ret = rq_arena_calloc(arena, 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    (*ret)[(*ret_count)++] = rq_server_name_ref(c->server);
    return RQ_OK;
}

rq_err rq_catalog_dead_servers(rq_catalog *c, rq_arena *arena, const rq_server_name ***ret,
                               size_t *ret_count)
{
    *ret = NULL;
    *ret_count = 0;
    if (c->calls.dead == NULL) return RQ_OK;
    RQ_TRY(c->calls.dead(c->calls.ctx, arena, ret, ret_count));
    rq_server_names_sort(*ret, *ret_count);
    return RQ_OK;
}

bool rq_catalog_forget_dead(rq_catalog *c, const rq_server_name *server)
{
    return c->calls.forget_dead != NULL && c->calls.forget_dead(c->calls.ctx, server);
}

bool rq_catalog_load(const rq_catalog *c, const rq_catalog_region *r, rq_region_load *ret)
{
    return r->server != NULL && c->calls.load(c->calls.ctx, r->server, r->info, ret);
}

bool rq_catalog_server_load(const rq_catalog *c, const rq_server_name *server, rq_server_load *ret)
{
    return c->calls.server_load != NULL && c->calls.server_load(c->calls.ctx, server, ret);
}

rq_err rq_catalog_server_sources(const rq_catalog *c, const rq_server_name *server, rq_arena *arena,
                                 rq_source_load **ret, size_t *ret_count)
{
    *ret_count = 0;
    if (c->calls.server_sources == NULL) return RQ_OK;
    return c->calls.server_sources(c->calls.ctx, server, arena, ret, ret_count);
}

uint16_t rq_catalog_info_port(const rq_catalog *c)
{
    return c->info_port;
}

const rq_server_name *rq_catalog_master(const rq_catalog *c)
{
    return c->master;
}

rq_root *rq_catalog_root(const rq_catalog *c)
{
    return c->root;
}

rq_engine *rq_catalog_engine(const rq_catalog *c)
{
    return c->engine;
}

uint64_t rq_catalog_view_number(const rq_catalog *c)
{
    return rq__views_now(&c->views)->number;
}

void rq_catalog_on_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&c->views.edit_lock);
    c->views.changed = changed;
    c->views.changed_ctx = ctx;
    pthread_mutex_unlock(&c->views.edit_lock);
}

const rq_catalog_region *rq_catalog_region_find(const rq_catalog *c, rq_slice encoded)
{
    return rq_region_names_find(c->views.names, encoded);
}

const rq_catalog_table *rq_catalog_table_find(const rq_catalog *c, rq_slice table)
{
    rq_slice ns = RQ_SLICE_LIT("default"), qualifier = table;
    const uint8_t *colon = table.len == 0 ? NULL : memrchr(table.ptr, ':', table.len);
    if (colon != NULL) {
        ns = rq_slice_of(table.ptr, (size_t)(colon - table.ptr));
        qualifier = rq_slice_of(colon + 1, table.len - ns.len - 1);
    }
    return rq__view_table(rq__views_now(&c->views), ns, qualifier);
}

void rq_catalog_tables(const rq_catalog *c, const rq_catalog_table *const **ret, size_t *ret_count)
{
    const rq__view *v = rq__views_now(&c->views);
    *ret = v->tables;
    *ret_count = v->table_count;
}

rq_err rq_catalog_locate_in(const rq_catalog_table *t, rq_slice row, const rq_catalog_region **ret,
                            rq_error *why)
{
    const rq_catalog_region *r = rq__table_locate(t, row);
    if (RQ_UNLIKELY(r == NULL))
        return rq_fail(why, RQ_E_NOT_SERVING_REGION, "no region of %.*s holds the row",
                       (int)t->schema->name.len, (const char *)t->schema->name.ptr);
    *ret = r;
    return RQ_OK;
}

rq_err rq_catalog_locate(const rq_catalog *c, rq_slice table, rq_slice row,
                         const rq_catalog_region **ret, rq_error *why)
{
    const rq_catalog_table *t = rq_catalog_table_find(c, table);
    if (t == NULL)
        return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)table.len, (const char *)table.ptr);
    return rq_catalog_locate_in(t, row, ret, why);
}

static void add_online(const rq_catalog_table *t, const rq_catalog_region **list, size_t *count)
{
    for (size_t i = 0; i < t->region_count; i++) {
        const rq_catalog_region *r = rq_catalog_table_region(t, i);
        if (r->region != NULL) list[(*count)++] = r;
    }
}

/* HBASE: meta comes first in the list of a server's regions. */
rq_err rq_catalog_online(const rq_catalog *c, rq_arena *arena, const rq_catalog_region ***ret,
                         size_t *ret_count)
{
    const rq__view *v = rq__views_now(&c->views);
    size_t cap = 1, n = 0;
    for (size_t i = 0; i < v->table_count; i++)
        cap += v->tables[i]->region_count;
    const rq_catalog_region **list = rq_arena_alloc(arena, cap * sizeof(rq_catalog_region *));
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (int meta = 1; meta >= 0; meta--)
        for (size_t i = 0; i < v->table_count; i++)
            if (v->tables[i]->schema->is_meta == (meta == 1)) add_online(v->tables[i], list, &n);
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

const rq_namespace *rq_catalog_namespace_find(const rq_catalog *c, rq_slice name)
{
    return rq__view_namespace(rq__views_now(&c->views), name);
}

void rq_catalog_namespaces(const rq_catalog *c, const rq_namespace *const **ret, size_t *ret_count)
{
    const rq__view *v = rq__views_now(&c->views);
    *ret = v->namespaces;
    *ret_count = v->namespace_count;
}

/* HBASE: AssignmentManager.getReopenStatus. Like HBase this counts the regions that are not open, not
 * those with an old schema: an alter may leave regions open. There is no error: (0, 0) for an unknown
 * table. */
void rq_catalog_alter_status(rq_catalog *c, rq_slice table, uint32_t *ret_to_update,
                             uint32_t *ret_total)
{
    *ret_to_update = *ret_total = 0;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(c, table);
    if (t != NULL && t->state != RQ_TABLE_DISABLED && t->state != RQ_TABLE_DISABLING) {
        *ret_total = (uint32_t)t->region_count;
        for (size_t i = 0; i < t->region_count; i++)
            *ret_to_update += rq_catalog_table_region(t, i)->state != RQ_REGION_OPEN;
    }
    rq_epoch_unpin(c->env->epoch, &m);
}

/* --- shared ----------------------------------------------------------------------------------- */

int64_t rq__catalog_now_ms(rq_catalog *c)
{
    int64_t now = rq__catalog_wall_ms(c);
    int64_t last = atomic_load(&c->last_ms);
    for (;;) {
        int64_t next = now > last ? now : last + 1;
        if (atomic_compare_exchange_weak(&c->last_ms, &last, next)) return next;
    }
}

void rq__catalog_saw_ms(rq_catalog *c, int64_t ms)
{
    if (ms > RQ__MS_CLOCK_MAX)
        return; /* not a clock value, and no timestamp would remain above it */
    int64_t last = atomic_load(&c->last_ms);
    while (ms > last && !atomic_compare_exchange_weak(&c->last_ms, &last, ms))
        ;
}

rq_err rq__meta_ref(rq_catalog *c, rq_region **ret, rq_error *why)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = NULL;
    rq_err rc = rq_host_find_encoded(c->host, RQ_SLICE_LIT(RQ_META_ENCODED), &r, why);
    if (rc == RQ_OK) *ret = rq_region_ref(r->region);
    rq_epoch_unpin(c->env->epoch, &m);
    return rc;
}

rq_err rq__store_ref(rq_catalog *c, rq_region **ret, rq_error *why)
{
    pthread_mutex_lock(&c->store_lock);
    rq_region *r = c->store == NULL ? NULL : rq_region_ref(c->store);
    pthread_mutex_unlock(&c->store_lock);
    if (r == NULL)
        return rq_fail(why, RQ_E_NOT_SERVING_REGION, "master:store is not online on %s",
                       c->server->text);
    *ret = r;
    return RQ_OK;
}

rq_err rq__store_each_row(rq_catalog *c,
                          rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                             rq_error *why),
                          rq_error *why)
{
    rq_region *store = NULL;
    RQ_TRY(rq__store_ref(c, &store, why));
    rq_err rc = rq__region_each_row(store, NULL, NULL, callback, c, why);
    rq_region_unref(store);
    return rc;
}

rq_err rq__catalog_table_ref(rq_catalog *c, rq_slice ns, rq_slice qualifier, rq__table_node **ret,
                             rq_error *why)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_table *t = rq__view_table(rq__views_now(&c->views), ns, qualifier);
    if (t != NULL) *ret = rq__table_node_ref(RQ_CONTAINER_OF(t, rq__table_node, pub));
    rq_epoch_unpin(c->env->epoch, &m);
    if (t != NULL) return RQ_OK;
    if (rq_slice_eq(ns, RQ_SLICE_LIT("default")))
        return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)qualifier.len,
                       (const char *)qualifier.ptr);
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s:%.*s", (int)ns.len, (const char *)ns.ptr,
                   (int)qualifier.len, (const char *)qualifier.ptr);
}

void rq_catalog_region_failed(rq_catalog *c, rq_region *r, const rq_error *why)
{
    const rq_region_info *info = rq_region_get_info(r);
    char name[256];
    rq_bytes_to_string(info->name, name, sizeof name);
    rq_log_error(c->env->log, "catalog", "region %s failed and is reopened: %s", name,
                 why != NULL && why->code != RQ_OK ? why->message : "no reason given");
    rq__procedures_reopen(c, info, NULL);
}

/* HBASE: ServerCrashProcedure. Submits a REOPEN_REGION procedure for each region of `server`; NULL: of all servers that
 * have ended. If another procedure works on the region, the reopening waits for its end, and does nothing if the region
 * is on another server by then. Returns the number of regions. */
static size_t reopen_elsewhere(rq_catalog *c, const rq_server_name *server)
{
    const rq_catalog_table *const *tables;
    size_t count, regions = 0;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    rq_catalog_tables(c, &tables, &count);
    for (size_t t = 0; t < count; t++) {
        for (size_t i = 0; i < tables[t]->region_count; i++) {
            const rq_catalog_region *r = rq_catalog_table_region(tables[t], i);
            bool was_there =
                r->server != NULL && (server == NULL ? !rq__catalog_server_is_up(c, r->server)
                                                     : strcmp(r->server->text, server->text) == 0);
            if (!was_there) continue;
            rq__procedures_reopen(c, r->info, r->server);
            regions++;
        }
    }
    rq_epoch_unpin(c->env->epoch, &m);
    return regions;
}

void rq_catalog_server_down(rq_catalog *c, const rq_server_name *server)
{
    size_t regions = reopen_elsewhere(c, server);
    rq_log_warn(c->env->log, "catalog", "server %s is down: %zu regions are opened elsewhere",
                server->text, regions);
}

void rq_catalog_look_for_ended(rq_catalog *c)
{
    size_t regions = reopen_elsewhere(c, NULL);
    if (regions > 0)
        rq_log_warn(c->env->log, "catalog",
                    "%zu regions of servers that have ended are opened elsewhere", regions);
}

rq_err rq_catalog_assign(rq_catalog *c, rq_slice encoded, rq_error *why)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(c, encoded);
    rq_err rc = RQ_OK;
    if (r == NULL) {
        char name[128];
        rq_bytes_to_string(encoded, name, sizeof name);
        rc = rq_fail(why, RQ_E_UNKNOWN_REGION, "%s", name);
    } else if (r->state == RQ_REGION_FAILED_OPEN) {
        rq__procedures_reopen(c, r->info, NULL);
    } else {
        rc =
            rq_fail(why, RQ_E_DO_NOT_RETRY, "Unexpected state for state=%s, location=%s, region=%s",
                    rq__region_state_name(r->state), c->server->text, r->info->encoded);
    }
    rq_epoch_unpin(c->env->epoch, &m);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static int64_t setting(const rq_catalog *c, rq_setting s, int64_t fallback)
{
    return c->config == NULL ? fallback : rq_config_int(c->config, s);
}

rq_err rq_catalog_open(rq_root *root, const rq_catalog_options *options, rq_catalog **ret,
                       rq_error *why)
{
    rq_catalog *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->host = options->host;
    c->engine = rq_host_engine(c->host);
    c->env = rq_engine_env(c->engine);
    c->server = rq_host_name(c->host);
    c->one_log = options->calls == NULL;
    c->calls = options->calls == NULL ? rq_host_calls(c->host) : *options->calls;
    c->info_port = options->info_port;
    c->peers_changed = options->peers_changed;
    c->peers_ctx = options->peers_ctx;
    c->root = root;
    c->config = options->config;
    pthread_mutex_init(&c->store_lock, NULL);
    rq__peers_init(c);
    rq__snapshot_list_init(c);
    c->snapshot_cleaner.interval_ms = setting(c, RQ_SET_SNAPSHOT_CLEANER, 1800000);
    pthread_mutex_init(&c->quotas_lock, NULL);
    c->cleaner.chore.interval_ms = setting(c, RQ_SET_CLEANER_INTERVAL, 600000);
    c->janitor.chore.interval_ms = setting(c, RQ_SET_JANITOR_INTERVAL, 300000);
    c->cleaner.keeps_loads = setting(c, RQ_SET_REPLICATION_BULK, 0) != 0;
    c->cleaner.ttl_ms = setting(c, RQ_SET_ARCHIVE_TTL, 300000);
    c->mob_cleaner.interval_ms = 1000 * setting(c, RQ_SET_MOB_CLEANER, 86400);
    c->mob_compactor.interval_ms = 1000 * setting(c, RQ_SET_MOB_CHORE, 604800);
    for (int i = 0; i < RQ_SWITCH_COUNT; i++)
        atomic_init(&c->switches[i], true);
    c->part_bytes = options->part_bytes == 0 ? RQ__PART_BYTES : options->part_bytes;
    c->master = rq_server_name_new(&options->master);
    rq_err rc = c->master == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (rc == RQ_OK) rc = rq__views_init(&c->views, c->env->epoch, rq_host_names(c->host));
    if (rc == RQ_OK) rc = rq__procedures_init(c, options->procedure_bytes_max, why);
    if (rc == RQ_OK) rc = rq__bootstrap(c, why);
    if (rc != RQ_OK) {
        (void)rq_catalog_close(c, false, NULL);
        return rc;
    }
    rq__procedures_resume(c);
    rq__cleaner_start(c);
    rq__janitor_start(c);
    rq__snapshot_cleaner_start(c);
    rq__normalizer_start(c);
    rq__balancer_start(c);
    rq__open_mark_start(c);
    rq__mob_chores_start(c);
    rq_catalog_look_for_ended(c);
    *ret = c;
    return RQ_OK;
}

/* Regions are closed by class, in this order. */
typedef enum close_class { CLOSE_USER, CLOSE_NAMESPACE, CLOSE_META } close_class;

static bool in_class(const rq_table_schema *s, close_class class)
{
    bool system = rq_slice_eq(s->ns, RQ_SLICE_LIT("hbase"));
    bool ns_table = system && rq_slice_eq(s->qualifier, RQ_SLICE_LIT("namespace"));
    return s->is_meta ? class == CLOSE_META
           : ns_table ? class == CLOSE_NAMESPACE
                      : class == CLOSE_USER;
}

/* No procedure is running, so the view cannot change. */
typedef struct closing {
    rq_catalog *catalog;
    const rq_region_info **list; /* in the view */
    bool abandon;
    pthread_mutex_t lock;
    rq_err rc;
    rq_error why;
} closing;

static size_t open_regions_of(const rq_catalog *c, close_class class, const rq_region_info **list)
{
    const rq__view *v = rq__views_now(&c->views);
    size_t n = 0;
    for (size_t t = 0; t < v->table_count; t++) {
        if (!in_class(v->tables[t]->schema, class)) continue;
        for (size_t r = 0; r < v->tables[t]->region_count; r++) {
            const rq_catalog_region *one = rq_catalog_table_region(v->tables[t], r);
            if (one->region == NULL) continue;
            if (list != NULL) list[n] = one->info;
            n++;
        }
    }
    return n;
}

static void close_one(void *ctx, size_t i)
{
    closing *cl = ctx;
    rq_error why = {0};
    rq_err rc = rq_host_close(cl->catalog->host, cl->list[i], cl->abandon, NULL, &why);
    if (rc == RQ_OK) return;
    pthread_mutex_lock(&cl->lock);
    if (cl->rc == RQ_OK) {
        cl->rc = rc;
        cl->why = why;
    }
    pthread_mutex_unlock(&cl->lock);
}

/* Closes this server's regions, wherever the others are. */
static rq_err close_class_of(rq_catalog *c, close_class class, bool clean, rq_error *why)
{
    closing cl = {.catalog = c, .abandon = !clean};
    size_t count = open_regions_of(c, class, NULL);
    cl.list = calloc(count + 1, sizeof *cl.list);
    if (cl.list == NULL)
        return rq_no_memory(why); /* the host closes them, and the log has the edits */
    count = open_regions_of(c, class, cl.list);
    pthread_mutex_init(&cl.lock, NULL);
    rq_parallel(c->env->executor, count, close_one, &cl);
    pthread_mutex_destroy(&cl.lock);
    free(cl.list);
    return cl.rc == RQ_OK ? RQ_OK : rq_fail(why, cl.rc, "%s", cl.why.message);
}

static rq_err close_store(rq_catalog *c, bool clean, rq_error *why)
{
    rq_err rc = RQ_OK;
    if (c->store != NULL) {
        rc = rq_region_close(c->store, !clean, why);
        if (rc != RQ_OK && clean) rq__store_abandon(c, c->store);
        rq_region_unref(c->store);
    }
    c->store = NULL;
    return rc;
}

void rq_catalog_stop(rq_catalog *c)
{
    atomic_store(&c->stopping, true);
    rq__procedures_stop(c);
}

rq_err rq_catalog_close(rq_catalog *c, bool clean, rq_error *why)
{
    if (c == NULL) return RQ_OK;
    atomic_store(&c->stopping, true);
    rq_err rc = RQ_OK, more;
    if (c->procedures.lane != NULL) rq__procedures_stop(c);
    rq__peers_close(c);
    if (atomic_load(&c->views.now) != NULL) {
        for (close_class k = CLOSE_USER; k <= CLOSE_META; k++) {
            more = close_class_of(c, k, clean, why);
            if (rc == RQ_OK) rc = more;
        }
    }
    /* Closes regions that interrupted procedures have opened but not published: the view does not show
     * them as open. */
    more = rq_host_close_rest(c->host, !clean, why);
    if (rc == RQ_OK) rc = more;
    if (clean && rc == RQ_OK && c->store != NULL) rc = rq__procedures_sweep(c, why);
    more = close_store(c, clean, why);
    if (rc == RQ_OK) rc = more;
    rq__procedures_clear(c);
    rq__cleaner_clear(c);
    rq__snapshot_list_clear(c);
    if (atomic_load(&c->views.now) != NULL) rq__views_clear(&c->views);
    pthread_mutex_destroy(&c->store_lock);
    pthread_mutex_destroy(&c->quotas_lock);
    rq_server_name_unref(c->master);
    free(c);
    return rc;
}
