/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends the sources as peers change, and limits the log that is kept for a peer; see
 * replication.h. One thread, which sleeps until a peer changes. If the log is limited, it also
 * checks the limit once a second. */
#include "replication/replication.h"

#include "replication/filter.h"
#include "replication/outlet.h"
#include "replication/source.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUBJECT "replication"
#define RETRY_S 1

typedef struct entry {
    struct entry *next;
    rq__source *source;
} entry;

struct rq_replication {
    rq_catalog *catalog;
    rq__source_settings settings;
    rq__queue queue; /* of every peer: this server's log, and the catalog */
    rq_sink sink;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards the list and the flags; held by the thread except in waits */
    pthread_cond_t wake;
    entry *sources RQ_GUARDED_BY(lock);
    pthread_mutex_t flags_lock; /* taken alone: peers change under the catalog's lock */
    bool changed RQ_GUARDED_BY(flags_lock);
    bool stop RQ_GUARDED_BY(flags_lock);
};

/* --- the queue of a peer ---------------------------------------------------------------------- */

static bool is_current(void *ctx, const char *id, uint64_t version)
{
    const rq_replication *r = ctx;
    return rq_catalog_peer_is_current(r->catalog, id, version);
}

static rq_err advance(void *ctx, const char *id, rq_lsn position, rq_error *why)
{
    const rq_replication *r = ctx;
    return rq_catalog_peer_advance(r->catalog, id, position, why);
}

static rq_err lose(void *ctx, const char *id, uint64_t version, rq_error *why)
{
    const rq_replication *r = ctx;
    return rq_catalog_peer_give_up(r->catalog, id, version, why);
}

static bool exists(void *ctx, rq_slice table, rq_slice family)
{
    const rq_replication *r = ctx;
    rq_epoch_member m = {0};
    rq_epoch_pin(r->settings.env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(r->catalog, table);
    bool found =
        t != NULL && (family.len == 0 || rq_table_schema_family(t->schema, family) != NULL);
    rq_epoch_unpin(r->settings.env->epoch, &m);
    return found;
}

/* --- following the peers ---------------------------------------------------------------------- */

static const rq_peer_info *peer_of(const rq_peer_info *peers, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(peers[i].id, id) == 0) return &peers[i];
    return NULL;
}

static entry *entry_of(rq_replication *r, const char *id)
{
    entry *e = r->sources;
    while (e != NULL && strcmp(rq__source_id(e->source), id) != 0)
        e = e->next;
    return e;
}

/* Takes the sources whose peers are gone, disabled or reconfigured out of the list, and asks their
 * threads to end. The caller frees them without the lock, because this may wait for the peer. */
static entry *take_ended(rq_replication *r, const rq_peer_info *peers, size_t count)
{
    entry *ended = NULL;
    for (entry **at = &r->sources; *at != NULL;) {
        entry *e = *at;
        const rq_peer_info *p = peer_of(peers, count, rq__source_id(e->source));
        if (p != NULL && p->enabled && p->version == rq__source_version(e->source)) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        e->next = ended;
        ended = e;
        rq__source_stop(e->source);
    }
    return ended;
}

static void free_entries(entry *list)
{
    for (entry *next; list != NULL; list = next) {
        next = list->next;
        rq__source_free(list->source);
        free(list);
    }
}

static rq_err start(rq_replication *r, const rq_peer_info *p, rq_error *why)
{
    entry *e = calloc(1, sizeof *e);
    if (e == NULL) return rq_no_memory(why);
    rq_err rc = rq__source_new(&r->settings, &r->queue, p, &e->source, why);
    if (rc != RQ_OK) {
        free(e);
        return rc;
    }
    pthread_mutex_lock(&r->lock);
    e->next = r->sources;
    r->sources = e;
    pthread_mutex_unlock(&r->lock);
    return RQ_OK;
}

static void give_up(rq_replication *r, const rq_peer_info *p, uint64_t bytes)
{
    rq_error why = {.code = RQ_OK};
    rq_log_error(r->settings.env->log, SUBJECT,
                 "peer %s is disabled and needs a resync: %llu bytes of the write-ahead log are "
                 "not replicated yet, more than rorqual.replication.log.max",
                 p->id, (unsigned long long)bytes);
    rq_err rc = rq_catalog_peer_give_up(r->catalog, p->id, p->version, &why);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
        rq_log_error(r->settings.env->log, SUBJECT,
                     "peer %s: cannot record that it is disabled: %s", p->id, why.message);
}

static uint64_t log_bytes(const rq_replication *r, const rq_peer_info *p)
{
    if (p->lost_ms != 0) return 0;
    return rq__log_bytes_behind(&r->queue.log, p->position);
}

/* RQ_OK: sources and peers agree. */
static rq_err follow(rq_replication *r, rq_error *why)
{
    rq_arena arena;
    rq_peer_info *peers;
    size_t count;
    rq_arena_init(&arena);
    rq_err rc = rq_catalog_peers(r->catalog, &arena, &peers, &count);
    for (size_t i = 0; i < count && rc == RQ_OK && r->settings.log_max != 0; i++)
        if (log_bytes(r, &peers[i]) > r->settings.log_max)
            give_up(r, &peers[i], log_bytes(r, &peers[i]));
    if (rc == RQ_OK) {
        pthread_mutex_lock(&r->lock);
        entry *ended = take_ended(r, peers, count);
        pthread_mutex_unlock(&r->lock);
        free_entries(ended);
    }
    /* The ended ones have written their positions. */
    if (rc == RQ_OK) rc = rq_catalog_peers(r->catalog, &arena, &peers, &count);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (peers[i].enabled && entry_of(r, peers[i].id) == NULL) rc = start(r, &peers[i], why);
    rq_arena_clear(&arena);
    return rc;
}

static void wait_seconds(rq_replication *r, unsigned seconds)
{
    struct timespec end = {.tv_sec = (time_t)(rq_clock_ns(CLOCK_MONOTONIC) / 1000000000) + seconds};
    (void)pthread_cond_timedwait(&r->wake, &r->flags_lock, &end);
}

/* Waits for a change; false: the end. `again`: the last attempt failed. */
static bool wait_for_change(rq_replication *r, bool again)
{
    pthread_mutex_lock(&r->flags_lock);
    if (!r->changed && !r->stop) {
        if (again || r->settings.log_max != 0)
            wait_seconds(r, RETRY_S);
        else
            pthread_cond_wait(&r->wake, &r->flags_lock);
    }
    r->changed = false;
    bool goes_on = !r->stop;
    pthread_mutex_unlock(&r->flags_lock);
    return goes_on;
}

static void *run(void *arg)
{
    rq_replication *r = arg;
    bool again;
    do {
        rq_error why = {.code = RQ_OK};
        rq_err rc = follow(r, &why);
        again = rc != RQ_OK;
        if (again)
            rq_log_error(r->settings.env->log, SUBJECT,
                         "cannot start or update replication to the peers: %s; tried again",
                         why.message[0] != '\0' ? why.message : rq_err_text(rc));
    } while (wait_for_change(r, again));
    return NULL;
}

static void peers_changed(void *ctx)
{
    rq_replication *r = ctx;
    pthread_mutex_lock(&r->flags_lock);
    r->changed = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->flags_lock);
}

/* --- life ------------------------------------------------------------------------------------- */

static void configure(rq_replication *r, const rq_replication_options *o)
{
    r->catalog = o->catalog;
    rq__source_configure(o->config, &r->settings);
    r->settings.env = o->env;
    r->settings.cluster_id = rq_root_cluster_id(rq_catalog_root(o->catalog));
    r->queue = (rq__queue){.log = {.wal = rq_engine_wal(o->engine)},
                           .is_current = is_current,
                           .advance = advance,
                           .give_up = lose,
                           .exists = exists,
                           .ctx = r};
    if (o->config != NULL && rq_config_int(o->config, RQ_SET_REPLICATION_BULK) != 0) {
        r->settings.cluster = rq_config_text(o->config, RQ_SET_REPLICATION_CLUSTER);
        r->settings.data_path = o->data_path;
    }
    r->sink.started_ms = o->env->executor->now_ms(o->env->executor);
}

rq_err rq_replication_new(const rq_replication_options *o, rq_replication **ret, rq_error *why)
{
    rq_replication *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    configure(r, o);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->flags_lock, NULL);
    rq_clock_cond_init(&r->wake);
    rq_catalog_on_peer_change(o->catalog, peers_changed, r);
    r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
    if (!r->has_thread) {
        rq_replication_stop(r);
        rq_replication_free(r);
        return rq_fail(why, RQ_E_NO_MEMORY, "cannot start the replication thread");
    }
    *ret = r;
    return RQ_OK;
}

void rq_replication_stop(rq_replication *r)
{
    if (r == NULL) return;
    rq_catalog_on_peer_change(r->catalog, NULL, NULL);
    pthread_mutex_lock(&r->flags_lock);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->flags_lock);
    if (r->has_thread) (void)pthread_join(r->thread, NULL);
    r->has_thread = false;
    pthread_mutex_lock(&r->lock);
    entry *list = r->sources;
    r->sources = NULL;
    pthread_mutex_unlock(&r->lock);
    for (entry *e = list; e != NULL; e = e->next)
        rq__source_stop(e->source);
    free_entries(list);
}

void rq_replication_free(rq_replication *r)
{
    if (r == NULL) return;
    RQ_ASSERT(r->sources == NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->flags_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

rq_sink *rq_replication_sink(rq_replication *r)
{
    return &r->sink;
}

/* --- what others ask -------------------------------------------------------------------------- */

static rq_err status_of(rq_replication *r, const rq_peer_info *p, rq_arena *arena,
                        rq_source_status *ret)
{
    *ret = (rq_source_status){.id = p->id,
                              .enabled = p->enabled,
                              .lost_ms = p->lost_ms,
                              .log_bytes = log_bytes(r, p),
                              .problem = ""};
    entry *e = entry_of(r, p->id);
    return e == NULL ? RQ_OK : rq__source_status(e->source, arena, ret);
}

rq_err rq_replication_status(rq_replication *r, rq_arena *arena, rq_source_status **ret,
                             size_t *ret_count)
{
    rq_peer_info *peers;
    size_t count;
    RQ_TRY(rq_catalog_peers(r->catalog, arena, &peers, &count));
    rq_source_status *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = status_of(r, &peers[i], arena, &list[i]);
    pthread_mutex_unlock(&r->lock);
    *ret = list;
    *ret_count = count;
    return rc;
}

rq_err rq_replication_check_key(rq_replication *r, const char *cluster_key, rq_error *why)
{
    char id[64] = "";
    rq_error own = {.code = RQ_OK};
    rq_err rc = rq__outlet_ask_id(cluster_key, id, &own);
    if (rc == RQ_E_NOT_FOUND || rc == RQ_E_INVALID)
        return RQ_OK; /* there is no cluster there yet; the procedure has refused malformed keys */
    if (rc != RQ_OK)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Can't get peerClusterId for clusterKey=%s (%.300s)",
                       cluster_key, own.message);
    if (strcmp(id, rq_root_cluster_id(rq_catalog_root(r->catalog))) != 0) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Invalid cluster key: %s, should not replicate to itself for "
                   "HBaseInterClusterReplicationEndpoint",
                   cluster_key);
}
