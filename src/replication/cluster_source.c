/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that keeps a server's queues, and their sources; see cluster_source.h. It looks at the list of peers twice a
 * second, writes positions once a second, and looks for queues to claim every two seconds. What fails is repeated in the
 * next round. */
#include "replication/cluster_source.h"

#include "replication/queue_set.h"
#include "replication/source.h"

#include "base/clock.h"
#include "wal/tail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SUBJECT "replication"
#define LOOK_MS 500
#define WRITE_ROUNDS 2
#define CLAIM_ROUNDS 4
#define FIRST_TRIES 20
#define WAITING_LOADS_MAX 32 /* in a report, which is sent every few seconds */
#define FAILURE_LINES ((rq_log_rate){1, UINT64_C(30000000000)})

/* What the peer's sources that have ended did: counters do not fall when a log is shipped. */
typedef struct ended_sources {
    struct ended_sources *next;
    rq_source_status sums;
    char id[];
} ended_sources;

struct rq_cluster_source {
    rq_cluster_source_options o;
    rq__source_settings settings;
    rq__queue_set queues;
    pthread_t thread;
    bool has_thread;
    uint64_t rounds;
    bool claims_again; /* there may be more to claim at once */
    _Atomic uint32_t
        kept; /* ended logs with queues, of this server or not, when they were last listed */
    rq_log_limit failure_lines;
    pthread_mutex_t lock; /* while sources are made and freed, and while they are asked */
    ended_sources *ended RQ_GUARDED_BY(lock); /* for each peer of the list that had any */
    pthread_mutex_t flags_lock;
    pthread_cond_t wake;
    bool stop RQ_GUARDED_BY(flags_lock);
};

/* --- what sources call ------------------------------------------------------------------------ */

static bool is_current(void *ctx, const char *id, uint64_t version)
{
    return rq__queue_is_current(ctx, id, version);
}

static rq_err advance(void *ctx, const char *id, rq_lsn position, rq_error *why)
{
    (void)why;
    return rq__queue_advance(ctx, id, position);
}

static rq_err give_up(void *ctx, const char *id, uint64_t version, rq_error *why)
{
    rq_err rc = rq__queue_give_up(ctx, id, version);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- sources ---------------------------------------------------------------------------------- */

/* Asks all sources to end that must: they end at the same time, and not one after the other's time limit. */
static void ask_outdated(const rq_cluster_source *r)
{
    for (const rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (const rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            const rq_peer_info *p = q->source == NULL ? NULL : rq__queue_peer(q);
            if (q->source != NULL && (p == NULL || p->version != q->version))
                rq__source_stop(q->source);
        }
}

static void add_counters(rq_source_status *to, const rq_source_status *s)
{
    to->records += s->records;
    to->filtered += s->filtered;
    to->failed += s->failed;
    to->shipped_records += s->shipped_records;
    to->shipped_edits += s->shipped_edits;
    to->shipped_bytes += s->shipped_bytes;
    to->shipped_batches += s->shipped_batches;
    to->shipped_files += s->shipped_files;
}

/* NULL: none, or memory is exhausted. REQUIRES: lock held. */
static ended_sources *ended_of(rq_cluster_source *r, const char *id, bool makes)
{
    ended_sources *e = r->ended;
    while (e != NULL && strcmp(e->id, id) != 0)
        e = e->next;
    if (e != NULL || !makes) return e;
    size_t len = strlen(id) + 1;
    e = calloc(1, sizeof *e + len);
    if (e == NULL) return NULL;
    memcpy(e->id, id, len);
    e->next = r->ended;
    r->ended = e;
    return e;
}

/* REQUIRES: lock held. Without memory the counters fall. */
static void keep_counters(rq_cluster_source *r, const char *id, rq__source *s)
{
    rq_arena arena = {0};
    rq_source_status last = {.problem = ""};
    ended_sources *e = ended_of(r, id, true);
    if (e != NULL && rq__source_status(s, &arena, &last) == RQ_OK) add_counters(&e->sums, &last);
    rq_arena_clear(&arena);
}

/* Of peers that were removed; NULL list: all. */
static void drop_counters(rq_cluster_source *r, const rq_peer_list *list)
{
    pthread_mutex_lock(&r->lock);
    for (ended_sources **at = &r->ended; *at != NULL;) {
        ended_sources *e = *at;
        bool is_there = false;
        for (size_t i = 0; list != NULL && i < list->count; i++)
            is_there |= strcmp(list->peers[i].id, e->id) == 0;
        if (is_there) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        free(e);
    }
    pthread_mutex_unlock(&r->lock);
}

/* It writes its position before it ends. */
static void stop_source(void *ctx, rq__peer_queue *q)
{
    rq_cluster_source *r = ctx;
    rq__source *s = q->source;
    if (s == NULL) return;
    ask_outdated(r);
    rq__source_end(s);
    pthread_mutex_lock(&r->lock);
    keep_counters(r, q->id, s);
    q->source = NULL;
    pthread_mutex_unlock(&r->lock);
    rq__source_free(s);
}

static rq_err start_source(rq_cluster_source *r, rq__peer_queue *q, rq_error *why)
{
    rq_peer_info peer = *rq__queue_peer(q);
    rq__log_queues *log = q->log;
    const rq__queue queue = {.log = {.wal = log->is_own ? rq_engine_wal(r->o.engine) : NULL,
                                     .shared = r->o.shared,
                                     .server = log->server},
                             .is_current = is_current,
                             .advance = advance,
                             .give_up = give_up,
                             .ctx = log};
    rq__source *s;
    peer.position = q->position;
    RQ_TRY(rq__source_new(&r->settings, &queue, &peer, &s, why));
    pthread_mutex_lock(&r->lock);
    q->version = peer.version;
    q->source = s;
    pthread_mutex_unlock(&r->lock);
    return RQ_OK;
}

/* The first error: a peer whose source cannot be started does not keep others from theirs. */
static rq_err start_sources(rq_cluster_source *r, rq_error *why)
{
    rq_err rc = RQ_OK;
    rq__queue_set_share(&r->queues);
    for (rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            if (q->source != NULL || rq__queue_peer(q) == NULL) continue;
            rq_err one = start_source(r, q, rc == RQ_OK ? why : NULL);
            if (rc == RQ_OK) rc = one;
        }
    return rc;
}

static void note_done(rq_cluster_source *r)
{
    for (rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next)
            if (q->source != NULL && rq__source_is_done(q->source)) rq__queue_done(log, q->id);
}

/* --- the thread ------------------------------------------------------------------------------- */

static rq_err claim(rq_cluster_source *r, rq_error *why)
{
    if (!r->claims_again && r->rounds % CLAIM_ROUNDS != 0) return RQ_OK;
    RQ_TRY(rq__queue_set_claim(&r->queues, &r->claims_again, why));
    atomic_store(&r->kept, rq__queue_set_ended_logs(&r->queues));
    return RQ_OK;
}

static void keep_first(rq_err *first, rq_error *why, rq_err rc, const rq_error *detail)
{
    if (*first != RQ_OK || rc == RQ_OK) return;
    *first = rq_fail(why, rc, "%s", detail->code == RQ_OK ? rq_err_text(rc) : detail->message);
}

/* Each part is tried, also if another one fails. But nothing is written while the list is not followed: the objects would name
 * its version without its new peers. */
static rq_err round_of(rq_cluster_source *r, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq__queue_set *s = &r->queues;
    uint64_t version = s->list.version;
    RQ_TRY(rq__queue_set_follow(s, why));
    rq_err rc = RQ_OK;
    if (s->list.version != version) drop_counters(r, &s->list);
    if (s->list.version != version || r->rounds % WRITE_ROUNDS == 0)
        keep_first(&rc, why, rq__queue_set_write(s, &detail), &detail);
    rq_error_clear(&detail);
    keep_first(&rc, why, claim(r, &detail), &detail);
    rq_error_clear(&detail);
    keep_first(&rc, why, start_sources(r, &detail), &detail);
    note_done(r);
    rq_error_clear(&detail);
    keep_first(&rc, why, rq__queue_set_finish(s, &detail), &detail);
    r->rounds++;
    return rc;
}

static void log_failure(rq_cluster_source *r, const rq_error *why)
{
    rq_executor *ex = r->o.env->executor;
    uint64_t suppressed;
    if (rq_log_limit_passes(&r->failure_lines, FAILURE_LINES, ex->now_ns(ex), &suppressed))
        rq_log_warn(r->o.env->log, SUBJECT,
                    "the queues of replication are not up to date: %s; tried again", why->message);
}

/* False: the end. */
static bool wait_a_round(rq_cluster_source *r)
{
    uint64_t end = rq_clock_ns(CLOCK_MONOTONIC) + (uint64_t)LOOK_MS * 1000000;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&r->flags_lock);
    if (!r->stop) (void)pthread_cond_timedwait(&r->wake, &r->flags_lock, &until);
    bool goes_on = !r->stop;
    pthread_mutex_unlock(&r->flags_lock);
    return goes_on;
}

static void *run(void *arg)
{
    rq_cluster_source *r = arg;
    do {
        rq_error why = {.code = RQ_OK};
        if (round_of(r, &why) != RQ_OK) log_failure(r, &why);
    } while (wait_a_round(r));
    return NULL;
}

/* --- what others ask -------------------------------------------------------------------------- */

/* A queue without a source waits: its peer is disabled, or has no place for another ended log. REQUIRES: both locks held. */
static rq_err status_of(const rq__peer_queue *q, rq_arena *arena, rq_source_status *ret)
{
    const rq__log_queues *log = q->log;
    *ret = (rq_source_status){.id = q->id, .problem = ""};
    if (q->source != NULL) RQ_TRY(rq__source_status(q->source, arena, ret));
    if (log->is_own && q->lost_ms == 0)
        ret->log_bytes = rq__log_bytes_behind(&(rq__log){.wal = log->set->o.wal}, q->position);
    return RQ_OK;
}

static rq_err load_of(const rq__peer_queue *q, rq_arena *arena, rq_source_load *ret)
{
    const rq__log_queues *log = q->log;
    rq_source_status s;
    RQ_TRY(status_of(q, arena, &s));
    s.id = rq_arena_cstr(arena, rq_slice_cstr(q->id));
    if (s.id == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_source_load_of(&s);
    ret->recovered = !log->is_own;
    if (!log->is_own) ret->queue = rq_arena_printf(arena, "%s-%s", q->id, log->server);
    return ret->queue == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* All queues that are shipped, and the first of those that wait. REQUIRES: both locks held. */
static size_t count_loads(const rq_cluster_source *r)
{
    size_t count = 0, waiting = 0;
    for (const rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (const rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            count += q->source != NULL;
            waiting += q->source == NULL && rq__queue_wanted_by(q) != NULL;
        }
    return count + (waiting < WAITING_LOADS_MAX ? waiting : WAITING_LOADS_MAX);
}

/* REQUIRES: both locks held. */
static rq_err list_loads(const rq_cluster_source *r, rq_arena *arena, rq_source_load **ret,
                         size_t *ret_count)
{
    size_t waiting = 0;
    *ret_count = 0;
    *ret = rq_arena_calloc(arena, count_loads(r) + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (const rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (const rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            bool shows = q->source != NULL ||
                         (rq__queue_wanted_by(q) != NULL && waiting++ < WAITING_LOADS_MAX);
            if (shows) RQ_TRY(load_of(q, arena, &(*ret)[(*ret_count)++]));
        }
    return RQ_OK;
}

rq_err rq_cluster_source_loads(rq_cluster_source *r, rq_arena *arena, rq_source_load **ret,
                               size_t *ret_count)
{
    pthread_mutex_lock(&r->lock);
    pthread_mutex_lock(&r->queues.lock);
    rq_err rc = list_loads(r, arena, ret, ret_count);
    pthread_mutex_unlock(&r->queues.lock);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static void add_queue(rq_source_status *to, const rq__peer_queue *q, const rq_source_status *s)
{
    add_counters(to, s);
    to->running |= s->running;
    to->log_bytes += s->log_bytes;
    to->ended_logs += !q->log->is_own;
    to->waiting_logs += !q->log->is_own && q->source == NULL;
    if (s->lag_ms > to->lag_ms) to->lag_ms = s->lag_ms;
    if (s->shipped_ms < to->shipped_ms) return;
    to->shipped_ms = s->shipped_ms;
    to->age_of_last_ms = s->age_of_last_ms;
}

/* REQUIRES: both locks held. */
static rq_err add_queues(const rq_cluster_source *r, rq_arena *arena, rq_source_status *list)
{
    for (const rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (const rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            rq_source_status one;
            const rq_peer_info *p = rq__queue_wanted_by(q);
            if (p == NULL) continue;
            RQ_TRY(status_of(q, arena, &one));
            rq_source_status *to = &list[p - r->queues.list.peers];
            add_queue(to, q, &one);
            if (q->lost_ms != 0) to->lost_ms = q->lost_ms;
        }
    return RQ_OK;
}

/* REQUIRES: both locks held. */
static rq_err list_status(rq_cluster_source *r, rq_arena *arena, rq_source_status **ret,
                          size_t *ret_count)
{
    const rq_peer_list *l = &r->queues.list;
    rq_source_status *list = rq_arena_calloc(arena, l->count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++) {
        const rq_peer_info *p = &l->peers[i];
        const ended_sources *e = ended_of(r, p->id, false);
        if (e != NULL) list[i] = e->sums;
        list[i].id = rq_arena_cstr(arena, rq_slice_cstr(p->id));
        if (list[i].id == NULL) return RQ_E_NO_MEMORY;
        list[i].enabled = p->enabled;
        list[i].lost_ms = p->lost_ms;
        list[i].problem = "";
    }
    *ret = list;
    *ret_count = l->count;
    return add_queues(r, arena, list);
}

rq_err rq_cluster_source_status(rq_cluster_source *r, rq_arena *arena, rq_source_status **ret,
                                size_t *ret_count, uint32_t *ret_kept)
{
    *ret_kept = atomic_load(&r->kept);
    pthread_mutex_lock(&r->lock);
    pthread_mutex_lock(&r->queues.lock);
    rq_err rc = list_status(r, arena, ret, ret_count);
    pthread_mutex_unlock(&r->queues.lock);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static void init(rq_cluster_source *r, const rq_cluster_source_options *o)
{
    r->o = *o;
    rq__source_configure(o->config, &r->settings);
    r->settings.env = o->env;
    r->settings.cluster_id = o->cluster_id;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->flags_lock, NULL);
    rq_clock_cond_init(&r->wake);
}

static void warn_unsupported(const rq_cluster_source *r)
{
    if (r->settings.drops_tables || r->settings.drops_families)
        rq_log_warn(r->o.env->log, SUBJECT,
                    "hbase.replication.drop.on.deleted.table and .columnfamily have no effect in a "
                    "cluster yet");
}

/* The storage may not answer for a while. */
static rq_err open_queues(rq_cluster_source *r, rq_error *why)
{
    rq_executor *ex = r->o.env->executor;
    const rq__queue_set_options o = {.env = r->o.env,
                                     .shared = r->o.shared,
                                     .server = r->o.server,
                                     .wal = rq_engine_wal(r->o.engine),
                                     .retention = rq_engine_retention(r->o.engine),
                                     .ended = r->o.ended,
                                     .log_max = r->settings.log_max,
                                     .stop = stop_source,
                                     .ctx = r};
    RQ_TRY(rq__queue_set_open(&r->queues, &o, why));
    rq_err rc = RQ_E_IO;
    for (int i = 0; rc != RQ_OK && i < FIRST_TRIES; i++) {
        if (i > 0) ex->sleep(ex, (uint64_t)LOOK_MS * 1000000);
        rq_error_clear(why);
        rc = rq__queue_set_follow(&r->queues, why);
        if (rc == RQ_OK) rc = rq__queue_set_write(&r->queues, why);
    }
    return rc;
}

rq_err rq_cluster_source_new(const rq_cluster_source_options *o, rq_cluster_source **ret,
                             rq_error *why)
{
    rq_cluster_source *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    init(r, o);
    rq_err rc = open_queues(r, why);
    if (rc == RQ_OK) {
        r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
        if (!r->has_thread)
            rc = rq_fail(why, RQ_E_NO_MEMORY, "cannot start the replication thread");
    }
    if (rc == RQ_OK) {
        warn_unsupported(r);
        *ret = r;
    } else {
        rq_cluster_source_free(r);
    }
    return rc;
}

static void stop_all(rq_cluster_source *r)
{
    for (rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next)
            if (q->source != NULL) rq__source_stop(q->source);
    note_done(r);
    for (rq__log_queues *log = r->queues.first; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next)
            stop_source(r, q);
}

bool rq_cluster_source_stop(rq_cluster_source *r)
{
    bool keeps = false;
    rq_error why = {.code = RQ_OK};
    if (r == NULL) return false;
    pthread_mutex_lock(&r->flags_lock);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->flags_lock);
    if (r->has_thread) (void)pthread_join(r->thread, NULL);
    r->has_thread = false;
    stop_all(r);
    if (rq__queue_set_leave(&r->queues, &keeps, &why) != RQ_OK)
        rq_log_warn(r->o.env->log, SUBJECT,
                    "the positions of replication are not written: %s; some writes will be shipped "
                    "again",
                    why.message);
    if (keeps) rq_wal_keep_from(rq_engine_wal(r->o.engine), 0);
    return keeps;
}

void rq_cluster_source_free(rq_cluster_source *r)
{
    if (r == NULL) return;
    rq__queue_set_close(&r->queues);
    drop_counters(r, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->flags_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
