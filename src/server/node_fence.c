/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences servers that have ended, for a master and for standbys, and removes their logs; see node.h. A fence that fails is
 * tried again (tries.h). A fenced server is evicted (node_evict.c). The caretaker removes logs (node_caretaker.c).
 *
 * Sets on storage: "ended" has the servers that were fenced and whose logs are not removed yet; "leaving" has masters that
 * stop cleanly (node_standby.c).
 */
#include "server/node_priv.h"

#include "base/log.h"
#include "wal/head.h"

#include <stdio.h>

static void note_revoked(rq_node *n, const char *server, uint64_t quiet_ns, bool is_found)
{
    pthread_mutex_lock(&n->lock);
    rq__revoked_note(&n->revoked, server, quiet_ns, is_found);
    pthread_mutex_unlock(&n->lock);
}

static void forget_revoked(rq_node *n, const char *server)
{
    pthread_mutex_lock(&n->lock);
    rq__revoked_forget(&n->revoked, server);
    pthread_mutex_unlock(&n->lock);
}

size_t rq__node_revoked(void *ctx, rq_arena *arena, rq_revoked **ret)
{
    const rq_peer_role *role = ctx;
    rq_node *n = role->ctx;
    uint64_t now = rq_shared_now_ns(n->store.shared);
    pthread_mutex_lock(&n->lock);
    size_t count = rq__revoked_list(&n->revoked, now, arena, ret);
    pthread_mutex_unlock(&n->lock);
    return count;
}

rq_err rq__node_fence(rq_node *n, const char *server, rq_error *why)
{
    uint64_t quiet_ns;
    RQ_TRY(rq_set_put(n->store.shared, RQ__NODE_ENDED, server, why));
    RQ_TRY(rq_wal_fence(n->store.shared, server, n->server->text, &quiet_ns, why));
    note_revoked(n, server, quiet_ns, false);
    rq_log_warn(n->o.log, "cluster", "%s is fenced: it can no longer write to the storage", server);
    rq__node_evict(n, server);
    return RQ_OK;
}

/* A fence creates a log that does not exist, so the caretaker must not remove the log between these two steps. */
static void note_ended(rq_node *n, const char *server)
{
    uint64_t quiet_ns;
    rq_wal_state state;
    rq_err rc = rq_wal_state_of(n->store.shared, server, &state, NULL);
    if (rc != RQ_OK || state == RQ_WAL_OPEN) return;
    if (rq_wal_fence(n->store.shared, server, n->server->text, &quiet_ns, NULL) != RQ_OK) return;
    note_revoked(n, server, quiet_ns, true);
    rq__node_evict(n, server);
}

void rq__node_note_ended(rq_node *n)
{
    rq_arena a = {0};
    const char **list;
    size_t count = 0;
    if (rq_set_list(n->store.shared, RQ__NODE_ENDED, &a, &list, &count, NULL) != RQ_OK) count = 0;
    for (size_t i = 0; i < count && !rq__node_is_stopping(n); i++)
        note_ended(n, list[i]);
    rq_arena_clear(&a);
}

static void note_failure(rq_node *n, const char *server, uint64_t now_ns, const rq_error *why)
{
    unsigned failed = rq__tries_failed(&n->fences, server, now_ns);
    if (failed == 1)
        rq_log_error(n->o.log, "cluster",
                     "%s is taken for dead, but cannot be fenced yet: %s; tried again", server,
                     why->message);
    else if (failed > 1)
        rq_log_error(n->o.log, "cluster",
                     "%s is taken for dead, but cannot be fenced yet, after %u failed attempts: %s",
                     server, failed, why->message);
}

bool rq__node_fence_or_retry(rq_node *n, const char *server)
{
    rq_executor *ex = n->env.executor;
    rq_error why = {.code = RQ_OK};
    if (!rq__tries_is_due(&n->fences, server, ex->now_ns(ex))) return false;
    if (rq__node_fence(n, server, &why) != RQ_OK) {
        note_failure(n, server, ex->now_ns(ex), &why);
        return false;
    }
    unsigned failed = rq__tries_succeeded(&n->fences, server);
    if (failed > 0)
        rq_log_info(n->o.log, "cluster", "%s is fenced after %u failed attempts", server, failed);
    return true;
}

rq_err rq__node_read_lease(const rq_node *n, const char *server, rq_error *why)
{
    rq_arena a = {0};
    rq_slog_ledger *ledgers;
    size_t count;
    rq_err rc = rq_slog_lengths(n->store.shared, server, &a, &ledgers, &count, why);
    rq_arena_clear(&a);
    return rc == RQ_E_STATE || rc == RQ_E_NOT_FOUND ? RQ_OK : rc; /* open, or removed */
}

bool rq__node_reads_lease_of(rq_node *n, const char *server)
{
    rq_executor *ex = n->env.executor;
    rq_error why = {.code = RQ_OK};
    if (!rq__tries_is_due(&n->lease_reads, server, ex->now_ns(ex))) return false;
    if (rq__node_read_lease(n, server, &why) == RQ_OK) {
        (void)rq__tries_succeeded(&n->lease_reads, server);
        return true;
    }
    if (rq__tries_failed(&n->lease_reads, server, ex->now_ns(ex)) > 0)
        rq_log_warn(
            n->o.log, "cluster",
            "the storage that the lease of %s rests on does not answer this server either: %s",
            server, why.message);
    return false;
}

/* Removes the keys of region openings that never needed the log. They only cost space, so after an error a later round
 * tries again. */
static void sweep(const rq_node *n, const char *server)
{
    size_t count = 0;
    rq_err rc = rq_engine_sweep_late_keys(n->engine, server, &count, NULL);
    if (count > 0)
        rq_log_info(
            n->o.log, "cluster",
            "the write-ahead log of %s was kept by %zu region openings that never needed it",
            server, count);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
        rq_log_debug(n->o.log, "cluster", "cannot check who needs the write-ahead log of %s: %s",
                     server, rq_err_text(rc));
}

void rq__node_retire_log(rq_node *n, const char *server, bool sweeps)
{
    rq_error why = {.code = RQ_OK};
    if (sweeps) sweep(n, server);
    rq_err rc = rq_wal_retire(n->store.shared, server, &why);
    if (rc == RQ_OK) rc = rq_set_del(n->store.shared, RQ__NODE_LEAVING, server, &why);
    if (rc == RQ_OK) rc = rq_set_del(n->store.shared, RQ__NODE_ENDED, server, &why);
    if (rc == RQ_OK) forget_revoked(n, server);
    if (rc != RQ_OK && rc != RQ_E_STATE)
        rq_log_warn(n->o.log, "cluster", "cannot remove the write-ahead log of %s yet: %s", server,
                    why.message);
}
