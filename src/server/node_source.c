/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source of replication of a cluster's server (replication/cluster_source.h), and what the master does for it:
 *
 *   - it writes the list of peers for all servers, when they change and again every few seconds (a former master may have ended
 *     before it did that), and waits until the servers whose logs are open follow it;
 *   - it disables peers for which a server does not keep its log any more;
 *   - it fences servers that have queues, are not up and are not in ZooKeeper: their queues cannot be claimed before that.
 *     Such a server ended while no master looked after it, for example with the whole cluster;
 *   - it removes what is left of the queues of logs that do not exist any more.
 *
 * All but the changes of peers is done by the caretaker (node_caretaker.c).
 */
#include "server/node_priv.h"

#include "base/log.h"
#include "replication/peer_list.h"
#include "replication/queue_set.h"
#include "wal/head.h"
#include "wal/queues.h"

#include <stdio.h>
#include <stdlib.h>

#define STRAY_MS 5000  /* more than the time of a session */
#define FOLLOW_MS 3000 /* of one attempt of a procedure's step */
#define FOLLOW_LOOK_MS 50

/* --- this server ----------------------------------------------------------------------------------- */

rq_err rq__node_open_source(rq_node *n, rq_error *why)
{
    const rq_cluster_source_options o = {.env = &n->env,
                                         .engine = n->engine,
                                         .shared = n->store.shared,
                                         .server = n->server->text,
                                         .cluster_id = n->store.cluster_id,
                                         .ended = RQ__NODE_ENDED,
                                         .config = n->o.config};
    return rq_cluster_source_new(&o, &n->source, why);
}

void rq__node_close_source(rq_node *n)
{
    n->keeps_log = rq_cluster_source_stop(n->source);
    rq_cluster_source_free(n->source);
    n->source = NULL;
}

void rq__node_leave_log(rq_node *n)
{
    uint64_t quiet_ns;
    rq_error why = {.code = RQ_OK};
    if (!n->keeps_log) return;
    const char *name = n->server->text;
    rq_err rc = rq_set_put(n->store.shared, RQ__NODE_ENDED, name, &why);
    if (rc == RQ_OK) rc = rq_wal_fence(n->store.shared, name, name, &quiet_ns, &why);
    if (rc != RQ_OK)
        rq_log_warn(n->o.log, "replication",
                    "the rest of this server's log is replicated only after a master has fenced "
                    "it: %s",
                    why.message);
}

rq_err rq__node_source_loads(void *ctx, rq_arena *arena, rq_source_load **ret, size_t *ret_count)
{
    const rq_peer_role *role = ctx;
    const rq_node *n = role->ctx;
    return rq_cluster_source_loads(n->source, arena, ret, ret_count);
}

/* Pages are made only while there is a source (rq__node_serve_pages, rq__node_withdraw_pages). */
rq_err rq__node_peers(void *ctx, rq_arena *arena, rq_source_status **ret, size_t *ret_count,
                      uint32_t *ret_kept)
{
    const rq_node *n = ctx;
    *ret_count = 0;
    *ret_kept = 0;
    if (n->source == NULL) return RQ_OK;
    return rq_cluster_source_status(n->source, arena, ret, ret_count, ret_kept);
}

/* --- the master: the list of peers ----------------------------------------------------------------- */

static rq_err are_there_peers(rq_catalog *c, bool *ret)
{
    rq_arena a = {0};
    rq_peer_info *list;
    size_t count = 0;
    rq_err rc = rq_catalog_peers(c, &a, &list, &count);
    *ret = count > 0;
    rq_arena_clear(&a);
    return rc;
}

static rq_err wait_for(rq_node *n, rq_peer_list_wait *w, rq_error *why)
{
    rq_executor *ex = n->env.executor;
    uint64_t end = ex->now_ns(ex) + (uint64_t)FOLLOW_MS * 1000000;
    for (;;) {
        const char *server;
        if (rq__node_is_stopping(n))
            return rq_fail(why, RQ_E_SERVER_STOPPED, "this server is stopping");
        RQ_TRY(rq_peer_list_do_all_follow(n->store.shared, w, &server, why));
        if (server == NULL) return RQ_OK;
        if (ex->now_ns(ex) > end)
            return rq_fail(why, RQ_E_TIMEOUT, "%s does not follow the changed peers yet", server);
        ex->sleep(ex, (uint64_t)FOLLOW_LOOK_MS * 1000000);
    }
}

static rq_err wait_until_followed(rq_node *n, uint64_t version, bool is_empty, rq_error *why)
{
    rq_arena a = {0};
    rq_peer_list_wait w;
    rq_err rc = rq_peer_list_readers(n->store.shared, version, is_empty, &a, &w, why);
    if (rc == RQ_OK) rc = wait_for(n, &w, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__node_peers_changed(void *ctx, rq_catalog *c, rq_error *why)
{
    rq_node *n = ctx;
    uint64_t version;
    bool has_peers;
    RQ_TRY(rq_peer_list_publish(n->store.shared, n->server->text, c, &version, why));
    if (are_there_peers(c, &has_peers) != RQ_OK) return rq_no_memory(why);
    return wait_until_followed(n, version, !has_peers, why);
}

/* --- the master: servers that ended unseen --------------------------------------------------------- */

typedef struct rq__stray stray;

struct rq__stray {
    stray *next;
    uint64_t since_ns;
    char server[];
};

static stray *stray_of(rq_node *n, const char *server, uint64_t now)
{
    stray *s = n->caretaker.strays;
    while (s != NULL && strcmp(s->server, server) != 0)
        s = s->next;
    if (s != NULL) return s;
    size_t len = strlen(server) + 1;
    s = calloc(1, sizeof *s + len);
    if (s == NULL) return NULL; /* at the next look */
    memcpy(s->server, server, len);
    s->since_ns = now;
    s->next = n->caretaker.strays;
    n->caretaker.strays = s;
    return s;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void rq__node_forget_strays(rq_node *n, const char *const *names, size_t count)
{
    for (stray **at = &n->caretaker.strays; *at != NULL;) {
        stray *s = *at;
        const char *name = s->server;
        if (count > 0 && bsearch(&name, names, count, sizeof *names, by_name) != NULL) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
}

static void forget_stray(rq_node *n, const char *server)
{
    for (stray **at = &n->caretaker.strays; *at != NULL; at = &(*at)->next) {
        stray *s = *at;
        if (strcmp(s->server, server) != 0) continue;
        *at = s->next;
        free(s);
        return;
    }
}

bool rq__node_is_known(rq_node *n, const rq_member_view *v, const char *server)
{
    rq_arena a = {0};
    rq_server_name name;
    bool known = !rq_member_name_of(server, &a, &name) || rq__node_is_listed(v, server) ||
                 rq_remote_is_up(rq__node_remote(n), &name);
    rq_arena_clear(&a);
    return known;
}

/* The server's log was closed without contents, or is removed: nobody claims its queues, if it has any, or deletes its name. An
 * error leaves this to the next look. */
static void forget_queues(const rq_node *n, const char *server)
{
    rq_arena a = {0};
    rq_wal_queues q;
    uint64_t generation = 0;
    rq_err rc = rq_wal_queues_read(n->store.shared, server, &a, &q, &generation, NULL);
    if (rc == RQ_E_NOT_FOUND) generation = 0;
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND)
        rc = rq_wal_queues_remove(n->store.shared, server, generation, NULL);
    if (rc != RQ_OK)
        rq_log_debug(n->o.log, "replication", "the queues of %s are not removed yet: %s", server,
                     rq_err_text(rc));
    rq_arena_clear(&a);
}

/* A server that has just started may be neither up nor seen in ZooKeeper yet. */
static void look_at_stray(rq_node *n, const char *server)
{
    rq_executor *ex = n->env.executor;
    uint64_t now = ex->now_ns(ex);
    uint64_t session = (uint64_t)rq_config_int(n->o.config, RQ_SET_ZK_SESSION) * 1000000;
    rq_wal_state state;
    rq_err rc = rq_wal_state_of(n->store.shared, server, &state, NULL);
    if (rc == RQ_E_NOT_FOUND || (rc == RQ_OK && state == RQ_WAL_CLOSED)) forget_queues(n, server);
    if (rc == RQ_E_NOT_FOUND || (rc == RQ_OK && state != RQ_WAL_OPEN)) forget_stray(n, server);
    if (rc != RQ_OK || state != RQ_WAL_OPEN) return;
    const stray *s = stray_of(n, server, now);
    if (s != NULL && now - s->since_ns > session + (uint64_t)STRAY_MS * 1000000)
        rq__node_report_unseen(n, server);
}

rq_err rq__node_publish_peers(rq_node *n, bool *ret, rq_error *why)
{
    uint64_t version;
    *ret = false;
    RQ_TRY(rq_peer_list_publish(n->store.shared, n->server->text, n->catalog, &version, why));
    return are_there_peers(n->catalog, ret) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq__node_look_at_queues(rq_node *n, const rq_member_view *v, const char *server,
                               bool has_peers, rq_error *why)
{
    rq_err rc = has_peers ? rq_queues_note_losses(n->store.shared, n->catalog, server, why) : RQ_OK;
    if (!v->connected) return rc;
    if (rq__node_is_known(n, v, server))
        forget_stray(n, server);
    else
        look_at_stray(n, server);
    return rc;
}
