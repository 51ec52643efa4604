/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The active master in a server of a cluster; see node.h.
 *
 * Taking over: the host stops naming its regions, which stay open. The former master, which owns the regions of the
 * catalog, is fenced. The catalog is opened; it leaves each region on the server that the region's manifest names. If
 * this server neither reports nor is in ZooKeeper it is fenced first, so that the storage lets another server open the
 * region. On a first start the root is laid out.
 *
 *   elected ─► names given up ─► wait for reports of those in rs/ ─► fence meta's owner ─► catalog ─► the master's port
 *
 * The opener, a thread of its own, takes over, because this waits for servers. If a server ends meanwhile, the keeper
 * gives it up, so that the opener does not wait for it. When the catalog is open it looks for the regions of all
 * servers that have ended.
 */
#include "server/node_priv.h"

#include "base/log.h"
#include "service/service.h"

#include <poll.h>
#include <stdlib.h>

#define REPORTS_WAIT_MS 15000 /* five periods of reports */
#define SETTLED_MS 1500       /* HBASE: hbase.master.wait.on.regionservers.interval */
#define LOOK_MS 20
#define DRAINING "draining" /* a set: servers that are decommissioned */

rq_remote *rq__node_remote(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    rq_remote *m = n->remote;
    pthread_mutex_unlock(&n->lock);
    return m;
}

static void view_changed(void *ctx)
{
    rq_node *n = ctx;
    pthread_mutex_lock(&n->lock);
    n->view_changed = true;
    n->stirred = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
}

/* --- owners -------------------------------------------------------------------------------------- */

/* Finds the server that owns the region according to its manifest. An owner that is not up is fenced, and
 * then *ret is NULL, as for a region without an owner. */
static rq_err find_owner(rq_node *n, const rq_region_info *info, rq_arena *arena,
                         const rq_server_name **ret, rq_error *why)
{
    const char *text;
    bool ended;
    rq_server_name name;
    *ret = NULL;
    rq_err rc = rq_engine_owner_of(n->engine, info->encoded, arena, &text, &ended, why);
    if (rc == RQ_E_NOT_FOUND) rq_error_clear(why);
    if (rc != RQ_OK || text[0] == '\0') return rc == RQ_E_NOT_FOUND ? RQ_OK : rc;
    if (strcmp(text, n->server->text) == 0) { /* `ended` counts this process as no owner */
        *ret = rq_server_name_ref(n->server);
        return RQ_OK;
    }
    if (ended) return RQ_OK;
    if (!rq_member_name_of(text, arena, &name))
        return rq_fail(why, RQ_E_CORRUPT,
                       "region %s: owner '%s' in the manifest is not a ServerName", info->encoded,
                       text);
    if (!rq_remote_is_up(rq__node_remote(n), &name)) return rq__node_fence(n, text, why);
    *ret = rq_server_name_new(&name);
    return *ret == NULL ? rq_no_memory(why) : RQ_OK;
}

/* NULL: the region has no owner, or an error hides it: then the storage refuses to open the region elsewhere, and
 * the master tries again. */
static const rq_server_name *owner(void *ctx, const rq_region_info *info)
{
    const rq_peer_role *role = ctx;
    rq_node *n = role->ctx;
    rq_arena a = {0};
    rq_error why = {.code = RQ_OK};
    const rq_server_name *ret = NULL;
    if (find_owner(n, info, &a, &ret, &why) != RQ_OK)
        rq_log_warn(n->o.log, "cluster", "cannot read which server owns region %s: %s",
                    info->encoded, why.message);
    rq_arena_clear(&a);
    return ret;
}

/* A later process has started at the address. Beyond 16 at once it is found when it has left ZooKeeper. */
static void replaced(void *ctx, const rq_server_name *old)
{
    const rq_peer_role *role = ctx;
    rq_node *n = role->ctx;
    pthread_mutex_lock(&n->lock);
    if (n->replaced_count < RQ_ARRAY_LEN(n->replaced))
        n->replaced[n->replaced_count++] = rq_server_name_ref(old);
    pthread_mutex_unlock(&n->lock);
    rq__node_stir(n);
}

static void hung_up(void *ctx)
{
    const rq_peer_role *role = ctx;
    rq__node_stir(role->ctx);
}

/* --- servers that drain ---------------------------------------------------------------------------- */

static rq_err keep_draining(void *ctx, const rq_server_name *server, bool drains, rq_error *why)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    return drains ? rq_set_put(n->store.shared, DRAINING, server->text, why)
                  : rq_set_del(n->store.shared, DRAINING, server->text, why);
}

static bool rejects_hosts(const rq_node *n)
{
    return rq_config_int(n->o.config, RQ_SET_REJECT_HOSTS) != 0;
}

/* A mark that cannot be removed from storage is of no server any more. HBASE: ServerManager.expireServer. If decommissioned
 * hosts are refused, it stays. */
static void drain_no_more(rq_node *n, const rq_server_name *server)
{
    if (rejects_hosts(n)) return;
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq_set_del(n->store.shared, DRAINING, server->text, &why);
    if (rc == RQ_OK) rc = rq_remote_set_draining(rq__node_remote(n), server, false);
    if (rc != RQ_OK)
        rq_log_warn(
            n->o.log, "cluster",
            "%s has ended, but cannot be removed from the list of decommissioned servers: %s",
            server->text, why.code == RQ_OK ? rq_err_text(rc) : why.message);
    view_changed(n);
}

static int by_text(const void *key, const void *name)
{
    return strcmp(key, *(const char *const *)name);
}

bool rq__node_is_listed(const rq_member_view *v, const char *name)
{
    return v->server_count > 0 &&
           bsearch(name, v->servers, v->server_count, sizeof v->servers[0], by_text) != NULL;
}

/* Marks of servers that ended while no master looked after them. */
static void drop_stale_marks(rq_node *n, const rq_member_view *v)
{
    rq_arena a = {0};
    const rq_server_name **list;
    size_t count;
    if (rq_remote_draining(rq__node_remote(n), &a, &list, &count) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_up = rq_remote_is_up(rq__node_remote(n), list[i]);
        if (!is_up && !rq__node_is_listed(v, list[i]->text)) drain_no_more(n, list[i]);
        rq_server_name_unref(list[i]);
    }
    rq_arena_clear(&a);
}

static rq_err take_draining(rq_node *n, rq_remote *m, rq_error *why)
{
    rq_arena a = {0};
    const char **list;
    size_t count = 0;
    rq_err rc = rq_set_list(n->store.shared, DRAINING, &a, &list, &count, why);
    for (size_t i = 0; rc == RQ_OK && i < count; i++) {
        rq_server_name name;
        if (rq_member_name_of(list[i], &a, &name) &&
            rq_remote_set_draining(m, &name, true) != RQ_OK)
            rc = rq_no_memory(why);
    }
    rq_arena_clear(&a);
    return rc;
}

/* REQUIRES: it is fenced. */
static void give_up(rq_node *n, const rq_server_name *server)
{
    rq_remote_server_down(rq__node_remote(n), server);
    if (n->catalog != NULL) rq_catalog_server_down(n->catalog, server);
    drain_no_more(n, server);
}

/* --- servers that left ----------------------------------------------------------------------------- */

struct rq__watched {
    rq__watched *next;
    const rq_server_name *name;
    bool seen;         /* in ZooKeeper, at an earlier look */
    uint64_t since_ns; /* never seen: when it was missed first */
};

static rq__watched *watch(rq_node *n, const rq_server_name *name)
{
    rq__watched *w = n->watched;
    while (w != NULL && strcmp(w->name->text, name->text) != 0)
        w = w->next;
    if (w != NULL) return w;
    w = calloc(1, sizeof *w);
    if (w == NULL) return NULL; /* at the next look */
    w->name = rq_server_name_ref(name);
    w->since_ns = n->env.executor->now_ns(n->env.executor);
    w->next = n->watched;
    n->watched = w;
    return w;
}

/* Those that are down, or all. */
static void watch_no_more(rq_node *n, bool all)
{
    for (rq__watched **at = &n->watched; *at != NULL;) {
        rq__watched *w = *at;
        if (!all && rq_remote_is_up(rq__node_remote(n), w->name)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        rq_server_name_unref(w->name);
        free(w);
    }
}

/* Whether a server that has reported has left ZooKeeper. A server reports as soon as it has its znode, so its report
 * may come before this process sees the znode. So a server that was never seen in ZooKeeper is gone only when a
 * session's time has passed; one that was seen is gone as soon as its znode is. */
static bool is_gone(rq_node *n, const rq_member_view *v, const rq_server_name *server)
{
    uint64_t session = (uint64_t)rq_config_int(n->o.config, RQ_SET_ZK_SESSION) * 1000000;
    rq__watched *w = strcmp(server->text, n->server->text) == 0 ? NULL : watch(n, server);
    if (w == NULL) return false;
    if (rq__node_is_listed(v, server->text)) {
        w->seen = true;
        return false;
    }
    return w->seen || n->env.executor->now_ns(n->env.executor) - w->since_ns > session;
}

/* Storage that does not answer is tried again at a later look. */
static void give_up_or_retry(rq_node *n, const rq_server_name *server)
{
    if (rq__node_fence_or_retry(n, server->text)) give_up(n, server);
}

static rq_err give_up_absent(rq_node *n, const rq_member_view *v, rq_error *why)
{
    rq_arena a = {0};
    const rq_server_name **list = NULL;
    size_t count = 0, total;
    rq_err rc = rq_remote_servers(rq__node_remote(n), SIZE_MAX, &a, &list, &count, &total);
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK && is_gone(n, v, list[i])) give_up_or_retry(n, list[i]);
        rq_server_name_unref(list[i]);
    }
    watch_no_more(n, false);
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static void log_ended(const rq_node *n, const rq_silent_server *s)
{
    rq_log_warn(
        n->o.log, "cluster",
        "%s has ended: its connections are closed, and its address refuses new ones. Other servers "
        "take over its regions without waiting for the end of its ZooKeeper session",
        s->name->text);
}

/* What ZooKeeper does not say: which way no messages pass. */
static void log_silent(const rq_node *n, const rq_silent_server *s, uint64_t limit_ns)
{
    const char *way = s->unanswered_ns < limit_ns   ? ", except its responses,"
                      : s->unreported_ns < limit_ns ? ", except its reports,"
                                                    : "";
    uint64_t ns = s->unanswered_ns < limit_ns ? s->unreported_ns : s->unanswered_ns;
    rq_log_warn(n->o.log, "cluster",
                "nothing was heard of %s%s for %llu s, though its ZooKeeper session lives: other "
                "servers take over its regions",
                s->name->text, way, (unsigned long long)(ns / 1000000000));
}

static rq_err check_place(const rq_silence *s, uint64_t limit_ns, rq_error *why)
{
    if (!s->is_cut_off) return RQ_OK;
    return rq_fail(why, RQ_E_SERVER_ABORTED,
                   "this master has heard too few of the other servers for more than %llu s: it is "
                   "cut off, and ends so that another server becomes the master",
                   (unsigned long long)(limit_ns / 1000000000));
}

/* Servers that ZooKeeper sees and this master does not hear, or has found ended. */
static rq_err give_up_silent(rq_node *n, rq_error *why)
{
    rq_arena a = {0};
    rq_silence s;
    const rq_silence_limits limits = rq__node_silence(n);
    rq_err rc = rq_remote_silent(rq__node_remote(n), &limits, &a, &s);
    for (size_t i = 0; i < s.count; i++) {
        bool is_news = !rq__tries_has_failed(&n->fences, s.servers[i].name->text);
        if (is_news && s.servers[i].has_ended)
            log_ended(n, &s.servers[i]);
        else if (is_news)
            log_silent(n, &s.servers[i], limits.silent_ns);
        give_up_or_retry(n, s.servers[i].name);
        rq_server_name_unref(s.servers[i].name);
    }
    watch_no_more(n, false);
    rq_arena_clear(&a);
    return rc == RQ_OK ? check_place(&s, limits.silent_ns, why) : rq_no_memory(why);
}

static void log_unleased(const rq_node *n, const rq_server_name *server, uint64_t limit_ns)
{
    rq_log_warn(
        n->o.log, "cluster",
        "the lease of %s has been expired for more than %llu s: it alone does not reach the "
        "storage, and answers no client. Other servers take over its regions",
        server->text, (unsigned long long)(limit_ns / 1000000000));
}

/* The lease of this process has expired, but the witness reports a valid one. */
static rq_err check_reach(rq_node *n, const rq_server_name *witness, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    if (rq__node_read_lease(n, witness->text, &detail) != RQ_OK)
        return rq_fail(why, RQ_E_SERVER_ABORTED,
                       "this master does not reach the storage (%s), but other servers do: it ends "
                       "so that another server becomes the master",
                       detail.message);
    rq_log_warn(n->o.log, "cluster",
                "this master reaches the storage, but not the part that its lease rests on, and "
                "answers no client meanwhile");
    rq_remote_own_lease_counts_anew(rq__node_remote(n));
    return RQ_OK;
}

/* Fences servers that this master hears, but that alone do not reach the storage. */
static rq_err give_up_unleased(rq_node *n, rq_error *why)
{
    rq_arena a = {0};
    rq_leases l;
    const rq_silence_limits limits = rq__node_silence(n);
    rq_err rc =
        rq_remote_unleased(rq__node_remote(n), &limits, rq__node_lease_expired_ms(n), &a, &l);
    if (rc != RQ_OK) (void)rq_no_memory(why);
    for (size_t i = 0; i < l.count; i++) {
        const char *name = l.servers[i]->text;
        bool is_alone = rq__node_reads_lease_of(n, name);
        if (is_alone && !rq__tries_has_failed(&n->fences, name))
            log_unleased(n, l.servers[i], limits.silent_ns);
        if (is_alone) give_up_or_retry(n, l.servers[i]);
        rq_server_name_unref(l.servers[i]);
    }
    watch_no_more(n, false);
    if (rc == RQ_OK && l.witness != NULL) rc = check_reach(n, l.witness, why);
    rq_server_name_unref(l.witness);
    rq_arena_clear(&a);
    return rc;
}

/* NULL: none. */
static const rq_server_name *next_replaced(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    const rq_server_name *s = n->replaced_count == 0 ? NULL : n->replaced[--n->replaced_count];
    pthread_mutex_unlock(&n->lock);
    return s;
}

static void give_up_replaced(rq_node *n)
{
    for (const rq_server_name *s; (s = next_replaced(n)) != NULL; rq_server_name_unref(s))
        give_up_or_retry(n, s);
}

static bool take_view_change(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool changed = n->view_changed;
    n->view_changed = false;
    pthread_mutex_unlock(&n->lock);
    return changed;
}

rq_err rq__node_look_after(rq_node *n, const rq_member_view *v, rq_error *why)
{
    give_up_replaced(n);
    rq__node_give_up_unseen(n, v);
    if (n->catalog != NULL) RQ_TRY(rq__node_start_caretaker(n, why));
    if (n->catalog != NULL && take_view_change(n)) RQ_TRY(rq__node_write_names(n, why));
    /* Without a connection nobody is known to have left, and another process may be the master. */
    if (!v->connected || v->state != RQ_MEMBER_ACTIVE) return RQ_OK;
    if (n->catalog != NULL && !n->marks_looked_at) drop_stale_marks(n, v);
    n->marks_looked_at = n->catalog != NULL;
    RQ_TRY(give_up_absent(n, v, why));
    RQ_TRY(give_up_silent(n, why));
    return give_up_unleased(n, why);
}

/* --- becoming master ------------------------------------------------------------------------------- */

/* Servers in rs/, and those of them that have reported; this process's own is one. */
typedef struct reports {
    size_t there, heard;
} reports;

static void count_reports(rq_node *n, const rq_member_view *v, reports *ret)
{
    rq_arena a = {0};
    *ret = (reports){.there = v->server_count};
    for (size_t i = 0; i < v->server_count; i++) {
        rq_server_name name;
        /* A malformed name is nobody's that could report. */
        ret->heard += !rq_member_name_of(v->servers[i], &a, &name) ||
                      rq_remote_is_up(rq__node_remote(n), &name);
    }
    rq_arena_clear(&a);
}

/* False, and *ret as it was: nothing is known now. */
static bool look_at_reports(rq_node *n, reports *ret)
{
    rq_arena a = {0};
    rq_member_view v;
    bool known = rq_member_look(atomic_load(&n->answers_of.member), &a, &v) == RQ_OK;
    if (known) count_reports(n, &v, ret);
    rq_arena_clear(&a);
    return known;
}

/* As for servers that fall silent later (rq_remote_silent); of two servers nobody can tell which is cut off. */
static bool hears_enough(const reports *r)
{
    return r->there <= 2 || (r->heard > 1 && 2 * r->heard >= r->there);
}

bool rq__node_is_stopping(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool stopping = n->stopping;
    pthread_mutex_unlock(&n->lock);
    return stopping;
}

static void log_wait(const rq_node *n, const reports *r, size_t least)
{
    rq_log_info(n->o.log, "cluster",
                "the start waits for %zu servers (hbase.master.wait.on.regionservers.mintostart); "
                "%zu are in ZooKeeper",
                least, r->there);
}

/*
 * Waits until each server in ZooKeeper has reported its regions, which then stay on it. A server that does not report
 * in time loses its regions. When the whole cluster starts, the first master also waits for the number of servers in
 * hbase.master.wait.on.regionservers.mintostart, and then until no server has come for SETTLED_MS; otherwise it would
 * open all regions alone. If this process hears too few servers even after the sessions of ended ones have expired, it
 * takes itself to be cut off: it ends, and another process is elected.
 */
static rq_err wait_for_reports(rq_node *n, rq_error *why)
{
    rq_executor *ex = n->env.executor;
    uint64_t begin = ex->now_ns(ex), last = begin, now = begin;
    uint64_t settled = n->was_standby ? 0 : (uint64_t)SETTLED_MS * 1000000;
    uint64_t patience = (uint64_t)REPORTS_WAIT_MS * 1000000;
    uint64_t session = (uint64_t)rq_config_int(n->o.config, RQ_SET_ZK_SESSION) * 1000000;
    size_t least = n->was_standby ? 0 : (size_t)rq_config_int(n->o.config, RQ_SET_MIN_TO_START);
    reports r = {0};
    size_t before = 0;
    bool all = false;
    while (!rq__node_is_stopping(n) &&
           (r.heard < least || (now - begin < (hears_enough(&r) ? patience : session + patience) &&
                                (!all || now - last < settled)))) {
        (void)poll(NULL, 0, LOOK_MS);
        all = look_at_reports(n, &r) && r.heard == r.there;
        now = ex->now_ns(ex);
        if (r.there != before) last = now;
        if (r.there != before && r.there < least) log_wait(n, &r, least);
        before = r.there;
    }
    rq_log_info(n->o.log, "cluster", "%zu of %zu servers in ZooKeeper have reported to this master",
                r.there, r.heard);
    if (hears_enough(&r) || rq__node_is_stopping(n)) return RQ_OK;
    return rq_fail(why, RQ_E_SERVER_ABORTED,
                   "the elected master has heard from only %zu of %zu servers, itself included: it "
                   "may be cut off, and ends so that another server is elected",
                   r.heard, r.there);
}

/* The regions that the catalog opens in this process before it reads where others are. */
static rq_err take_system_regions(rq_node *n, rq_error *why)
{
    rq_arena a = {0};
    rq_region_info list[2];
    const rq_slice none = {NULL, 0};
    rq_err rc = rq_region_info_meta(&a, &list[0]);
    if (rc == RQ_OK) /* HBASE: MasterRegion.REGION_INFO */
        rc = rq_region_info_make(&a, RQ_SLICE_LIT("master"), RQ_SLICE_LIT("store"), none, none, 1,
                                 0, &list[1]);
    for (size_t i = 0; rc == RQ_OK && i < RQ_ARRAY_LEN(list); i++) {
        const rq_server_name *at = NULL;
        rc = find_owner(n, &list[i], &a, &at, why);
        /* The former master has lost the election, but it is there: it is fenced, and ends. */
        if (rc == RQ_OK && at != NULL && strcmp(at->text, n->server->text) != 0)
            rc = rq__node_fence(n, at->text, why);
        rq_server_name_unref(at);
    }
    rq_arena_clear(&a);
    return rc;
}

static rq_err open_remote(rq_node *n, rq_error *why)
{
    int64_t code; /* above those of earlier masters */
    RQ_TRY(rq__cluster_start_code(n->store.shared, n->env.executor, &code, why));
    const rq_remote_options o = {.env = &n->env,
                                 .master_ms = code,
                                 .send = rq_peers_send,
                                 .home = n->server,
                                 .owner = owner,
                                 .replaced = replaced,
                                 .hung_up = hung_up,
                                 .keep_draining = keep_draining,
                                 .revoked = rq__node_revoked,
                                 .rejects_hosts = rejects_hosts(n),
                                 .ctx = &n->role};
    rq_remote *m;
    if (rq_remote_new(&o, &m) != RQ_OK) return rq_no_memory(why);
    pthread_mutex_lock(&n->lock);
    n->remote = m;
    pthread_mutex_unlock(&n->lock);
    RQ_TRY(take_draining(n, m, why));
    RQ_TRY(rq_remote_server_up(m, n->server, why));
    rq_sides_set_master(n->sides, m);
    return RQ_OK;
}

static rq_err open_catalog(rq_node *n, rq_catalog **ret, rq_error *why)
{
    const rq_region_calls calls = rq_remote_calls(rq__node_remote(n));
    const rq_catalog_options o = {.master = *n->master,
                                  .host = n->host,
                                  .calls = &calls,
                                  .config = n->o.config,
                                  .info_port = rq__info_client_port(&n->info, &n->listen, n->name),
                                  .peers_changed = rq__node_peers_changed,
                                  .peers_ctx = n,
                                  .procedure_bytes_max =
                                      (size_t)rq_engine_memory_budget(n->o.config) / 16};
    RQ_TRY(rq_root_open_joined(&n->env, n->store.cluster_id, &n->catalog_root, why));
    RQ_TRY(rq_catalog_open(n->catalog_root, &o, ret, why));
    pthread_mutex_lock(&n->lock);
    n->opened = *ret; /* closed with the node from here on, also after an error */
    pthread_mutex_unlock(&n->lock);
    rq_catalog_on_change(*ret, view_changed, n);
    view_changed(n);
    return RQ_OK;
}

/* As ZooKeeper has them. A name that is malformed is left out. */
static rq_err standbys(void *ctx, rq_arena *arena, rq_server_name **ret, size_t *ret_count)
{
    const rq_node *n = ctx;
    rq_member_view v;
    *ret_count = 0;
    RQ_TRY(rq_member_look(atomic_load(&n->answers_of.member), arena, &v));
    *ret = rq_arena_calloc(arena, v.backup_count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < v.backup_count; i++)
        *ret_count += rq_member_name_of(v.backups[i], arena, &(*ret)[*ret_count]);
    return RQ_OK;
}

static rq_err shut_down(void *ctx)
{
    const rq_node *n = ctx;
    return rq_member_end_cluster(atomic_load(&n->answers_of.member));
}

static rq_err open_master_services(rq_node *n, rq_catalog *catalog, rq_error *why)
{
    const rq_admin_services_options o = {.env = &n->env,
                                         .engine = n->engine,
                                         .catalog = catalog,
                                         .config = n->o.config,
                                         .reload = rq__node_reload_for_client,
                                         .reload_ctx = n,
                                         .slow = n->slow,
                                         .loops = n->loops,
                                         .client = n->client,
                                         .standbys = standbys,
                                         .standbys_ctx = n,
                                         .stop = n->o.stop,
                                         .stop_ctx = n->o.stop_ctx,
                                         .shut_down = shut_down,
                                         .shut_down_ctx = n};
    RQ_TRY(rq_admin_services_new(&o, &n->admin, why));
    const rq_rpc_service services[] = {
        rq_meta_service_methods(&n->answers_of.answers), rq_master_service_methods(n->admin),
        rq_master_admin_service_methods(n->admin), rq_refused_hbck_service_methods(n->admin),
        rq_lock_service_methods(n->admin)};
    return rq__node_listen(n, n->master->port, "HMaster", services, RQ_ARRAY_LEN(services),
                           &n->master_server, why);
}

static rq_err become_master(rq_node *n, rq_error *why)
{
    rq_catalog *catalog;
    rq_log_info(n->o.log, "cluster", "%s is elected as the active master", n->master->text);
    rq__node_refuse_orders(n);
    rq_host_name_no_more(n->host);
    RQ_TRY(open_remote(n, why));
    RQ_TRY(rq__node_take_orders(n, why));
    rq__node_note_ended(n); /* while the others report */
    RQ_TRY(wait_for_reports(n, why));
    if (rq__node_is_stopping(n)) return RQ_OK;
    RQ_TRY(take_system_regions(n, why));
    RQ_TRY(open_catalog(n, &catalog, why));
    RQ_TRY(open_master_services(n, catalog, why));
    rq__node_lead_pages(n, catalog);
    rq_log_info(n->o.log, "cluster", "%s serves as the active master", n->master->text);
    return RQ_OK;
}

static void *run_opener(void *ctx)
{
    rq_node *n = ctx;
    rq_error why = {.code = RQ_OK};
    rq_err rc = become_master(n, &why);
    if (rc != RQ_OK && why.code == RQ_OK) (void)rq_fail(&why, rc, "%s", rq_err_text(rc));
    if (rc != RQ_OK) rq__node_lost(n, &why);
    return NULL;
}

rq_err rq__node_become_master(rq_node *n, rq_error *why)
{
    int rc = pthread_create(&n->opener, NULL, run_opener, n);
    if (rc != 0) return rq_fail(why, RQ_E_IO, "cannot start a thread: %s", strerror(rc));
    n->opener_runs = true;
    return RQ_OK;
}

void rq__node_take_catalog(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool is_new = n->catalog == NULL && n->opened != NULL;
    if (is_new) n->catalog = n->opened;
    pthread_mutex_unlock(&n->lock);
    if (is_new) rq_catalog_look_for_ended(n->catalog);
}

/* --- the end --------------------------------------------------------------------------------------- */

/* Ends the calls to other servers. There may be no catalog, if the start was interrupted. */
static void stop_calls(rq_node *n)
{
    rq_remote *m = rq__node_remote(n);
    if (m == NULL) return;
    const rq_region_calls calls = rq_remote_calls(m);
    calls.stop(calls.ctx);
}

/* Ends the calls that the opener may be waiting for, and joins it. A catalog that it has opened by then is closed with the node. */
void rq__node_stop_opener(rq_node *n)
{
    if (!n->opener_runs) return;
    pthread_mutex_lock(&n->lock);
    bool is_opening =
        n->opened == NULL; /* else the catalog is stopped first: its procedures stay as recorded */
    pthread_mutex_unlock(&n->lock);
    if (is_opening) stop_calls(n);
    pthread_join(n->opener, NULL);
    rq__node_take_catalog(n);
}

void rq__node_stop_master(rq_node *n)
{
    if (n->catalog != NULL) {
        rq_catalog_on_change(n->catalog, NULL, NULL);
        rq_catalog_stop(n->catalog);
    }
    stop_calls(n);
}

rq_err rq__node_close_master(rq_node *n, rq_error *why)
{
    rq_err rc = rq_catalog_close(n->catalog, true, why);
    n->catalog = NULL;
    watch_no_more(n, true);
    rq__tries_clear(&n->fences);
    rq__tries_clear(&n->lease_reads);
    if (n->sides != NULL) rq_sides_set_master(n->sides, NULL);
    rq_remote_free(rq__node_remote(n));
    rq_root_close(n->catalog_root);
    for (const rq_server_name *s; (s = next_replaced(n)) != NULL;)
        rq_server_name_unref(s);
    return rc;
}
