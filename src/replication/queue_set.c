/* SPDX-License-Identifier: Apache-2.0 */
/* The queues that a server owns; rules in queue_set.h. The lock is never held across I/O, nor while a source is stopped. */
#include "replication/queue_set.h"

#include "wal/head.h"
#include "wal/image.h"
#include "wal/queues.h"
#include "wal/tail.h"

#include <stdlib.h>
#include <string.h>

#define SUBJECT "replication"
/* Ended logs of others whose queues are read by one call of rq__queue_set_claim; with many logs more, so that each is looked at
 * once in LAP calls. */
#define CLAIM_LOOKS 16
#define LAP 64

/* --- finding; REQUIRE: lock held, or the thread that changes the lists ------------------------- */

static int by_id(const void *id, const void *peer)
{
    return strcmp(id, ((const rq_peer_info *)peer)->id);
}

static rq_peer_info *peer_of(const rq__queue_set *s, const char *id)
{
    if (s->list.count == 0) return NULL;
    return bsearch(id, s->list.peers, s->list.count, sizeof *s->list.peers, by_id);
}

static rq__peer_queue *queue_of(const rq__log_queues *log, const char *id)
{
    rq__peer_queue *q = log->first;
    while (q != NULL && strcmp(q->id, id) != 0)
        q = q->next;
    return q;
}

/* The queue's peer still wants it. A peer that has lost writes wants none until it is enabled again, with another number. */
const rq_peer_info *rq__queue_wanted_by(const rq__peer_queue *q)
{
    const rq_peer_info *p = peer_of(q->log->set, q->id);
    return p != NULL && p->position == q->number && p->lost_ms == 0 ? p : NULL;
}

/* The queue is shipped as soon as it has a place. */
static const rq_peer_info *ready_peer(const rq__peer_queue *q)
{
    const rq_peer_info *p = rq__queue_wanted_by(q);
    return p != NULL && p->enabled && q->lost_ms == 0 && !q->done && !q->log->is_lost ? p : NULL;
}

static const rq_peer_info *current_peer(const rq__peer_queue *q)
{
    bool goes = q->log->set->may_ship && (q->log->is_own || q->has_place);
    return goes ? ready_peer(q) : NULL;
}

const rq_peer_info *rq__queue_peer(const rq__peer_queue *q)
{
    rq__queue_set *s = q->log->set;
    pthread_mutex_lock(&s->lock);
    const rq_peer_info *p = current_peer(q);
    pthread_mutex_unlock(&s->lock);
    return p;
}

static uint32_t *count_of(const rq__queue_set *s, const rq_peer_info *p)
{
    return &s->counts[p - s->list.peers];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The list is ascending. */
static bool is_listed(const char *const *list, size_t count, const char *name)
{
    return count > 0 && bsearch(&name, list, count, sizeof *list, by_name) != NULL;
}

/* --- memory ----------------------------------------------------------------------------------- */

static rq__peer_queue *queue_new(rq__log_queues *log, rq_slice id, uint64_t number, rq_lsn position)
{
    rq__peer_queue *q = calloc(1, sizeof *q + id.len + 1);
    if (q == NULL) return NULL;
    q->log = log;
    q->number = number;
    q->position = q->written = position;
    if (id.len > 0) memcpy(q->id, id.ptr, id.len);
    return q;
}

static void log_free(rq__log_queues *log)
{
    if (log == NULL) return;
    for (rq__peer_queue *q = log->first, *next; q != NULL; q = next) {
        next = q->next;
        free(q);
    }
    free(log);
}

static rq__log_queues *log_new(rq__queue_set *s, const char *server)
{
    rq__log_queues *log = calloc(1, sizeof *log);
    if (log == NULL || strlen(server) > RQ_SHARED_NAME_MAX) {
        free(log);
        return NULL;
    }
    log->set = s;
    memcpy(log->server, server, strlen(server) + 1);
    return log;
}

static void stop_source(rq__queue_set *s, rq__peer_queue *q)
{
    if (q->source != NULL) s->o.stop(s->o.ctx, q);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq__queue_set_open(rq__queue_set *s, const rq__queue_set_options *o, rq_error *why)
{
    rq_executor *ex = o->env->executor;
    *s = (rq__queue_set){.o = *o};
    pthread_mutex_init(&s->lock, NULL);
    s->first = log_new(s, o->server);
    if (s->first == NULL) return rq_no_memory(why);
    s->first->is_own = true;
    if (rq_retention_hold(o->retention, "replication", ex->now_ms(ex), &s->holder) != RQ_OK)
        return rq_no_memory(why);
    rq_holder_keep_log(s->holder, 0);
    rq_holder_narrow(s->holder);
    s->found.next =
        (size_t)(ex->random(ex) % RQ_WAL_QUEUES_MAX); /* servers begin at different logs */
    return RQ_OK;
}

void rq__queue_set_close(rq__queue_set *s)
{
    for (rq__log_queues *log = s->first, *next; log != NULL; log = next) {
        next = log->next;
        log_free(log);
    }
    s->first = NULL;
    rq_holder_release(s->holder);
    rq_arena_clear(&s->arena);
    rq_arena_clear(&s->found.arena);
    pthread_mutex_destroy(&s->lock);
}

/* --- following the list ----------------------------------------------------------------------- */

static void stop_changed(rq__queue_set *s)
{
    for (rq__log_queues *log = s->first; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            const rq_peer_info *p = rq__queue_peer(q);
            if (q->source != NULL && (p == NULL || p->version != q->version)) stop_source(s, q);
        }
}

/* REQUIRES: lock held; its source has ended. */
static void drop_unwanted(rq__log_queues *log)
{
    for (rq__peer_queue **at = &log->first; *at != NULL;) {
        rq__peer_queue *q = *at;
        if (rq__queue_wanted_by(q) != NULL) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        free(q);
        log->is_dirty = true;
    }
}

/* REQUIRES: lock held. */
static rq_err add_wanted(rq__queue_set *s)
{
    rq__log_queues *own = s->first;
    for (size_t i = 0; i < s->list.count; i++) {
        const rq_peer_info *p = &s->list.peers[i];
        if (p->lost_ms != 0 || queue_of(own, p->id) != NULL) continue;
        rq__peer_queue *q = queue_new(own, rq_slice_cstr(p->id), p->position, s->looked);
        if (q == NULL) return RQ_E_NO_MEMORY;
        q->next = own->first;
        own->first = q;
        own->is_dirty = true;
    }
    return RQ_OK;
}

static rq_err apply(rq__queue_set *s, rq_error *why)
{
    rq__log_queues *own = s->first;
    stop_changed(s);
    pthread_mutex_lock(&s->lock);
    for (rq__log_queues *log = s->first; log != NULL; log = log->next)
        drop_unwanted(log);
    /* The master asks for the version in the own log's object alone. Without peers there is no object, until there is one. */
    own->is_dirty |= own->seen != s->list.version && (s->list.count > 0 || own->generation != 0);
    rq_err rc = add_wanted(s);
    pthread_mutex_unlock(&s->lock);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err read_list(rq__queue_set *s, rq_arena *arena, rq_peer_list *list, uint32_t **counts,
                        rq_error *why)
{
    uint64_t generation;
    RQ_TRY(rq__peer_list_read(s->o.shared, arena, list, &generation, why));
    *counts = rq_arena_calloc(arena, list->count + 1, sizeof **counts);
    return *counts == NULL ? rq_no_memory(why) : RQ_OK;
}

rq_err rq__queue_set_follow(rq__queue_set *s, rq_error *why)
{
    rq_lsn end = rq_wal_durable(s->o.wal);
    bool has_object = s->first->generation != 0;
    rq_arena arena = {0};
    rq_peer_list list;
    uint32_t *counts;
    if (!s->is_entered) RQ_TRY(rq_wal_queues_enter(s->o.shared, s->o.server, why));
    s->is_entered = true;
    rq_err rc = read_list(s, &arena, &list, &counts, why);
    bool is_new = rc == RQ_OK && (!s->has_list || list.version != s->list.version);
    pthread_mutex_lock(&s->lock);
    if (is_new) {
        rq_arena old = s->arena;
        s->arena = arena;
        s->list = list;
        s->counts = counts;
        s->has_list = true;
        arena = old;
    }
    if (rc == RQ_OK) s->may_ship = has_object;
    pthread_mutex_unlock(&s->lock);
    rq_arena_clear(&arena);
    if (rc == RQ_OK) rc = apply(s, why);
    if (rc == RQ_OK) s->looked = end;
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* REQUIRES: lock held. Copies what is to be written. */
static rq_err copy_queues(const rq__log_queues *log, rq_arena *arena, rq_wal_queues *ret)
{
    const rq__queue_set *s = log->set;
    size_t count = 0;
    for (const rq__peer_queue *q = log->first; q != NULL; q = q->next)
        count++;
    *ret = (rq_wal_queues){.owner = rq_slice_cstr(s->o.server),
                           .edit = log->edit,
                           .seen = s->list.version,
                           .list = rq_arena_calloc(arena, count + 1, sizeof *ret->list)};
    if (ret->list == NULL) return RQ_E_NO_MEMORY;
    for (const rq__peer_queue *q = log->first; q != NULL; q = q->next)
        ret->list[ret->count++] = (rq_wal_queue){.id = rq_slice_cstr(q->id),
                                                 .number = q->number,
                                                 .position = q->position,
                                                 .lost_ms = q->lost_ms};
    return RQ_OK;
}

static void note_written(rq__log_queues *log, const rq_wal_queues *q)
{
    size_t i = 0;
    log->edit = q->edit;
    log->seen = q->seen;
    for (rq__peer_queue *e = log->first; e != NULL; e = e->next)
        e->written = q->list[i++].position;
}

static void lose_log(rq__queue_set *s, rq__log_queues *log)
{
    pthread_mutex_lock(&s->lock);
    log->is_lost = true;
    pthread_mutex_unlock(&s->lock);
    for (rq__peer_queue *q = log->first; q != NULL; q = q->next)
        stop_source(s, q);
}

static rq_err write_log(rq__queue_set *s, rq__log_queues *log, rq_error *why)
{
    rq_arena arena = {0};
    rq_wal_queues q;
    rq_error detail = {.code = RQ_OK};
    pthread_mutex_lock(&s->lock);
    bool dirty = log->is_dirty && !log->is_lost;
    rq_err rc = dirty ? copy_queues(log, &arena, &q) : RQ_OK;
    if (rc == RQ_OK) log->is_dirty = false;
    pthread_mutex_unlock(&s->lock);
    if (rc != RQ_OK) return rq_no_memory(why);
    if (dirty) rc = rq_wal_queues_swap(s->o.shared, log->server, &q, &log->generation, &detail);
    if (dirty) log->edit = q.edit; /* also after a failure: no bytes are written twice */
    if (dirty && rc == RQ_OK) note_written(log, &q);
    rq_arena_clear(&arena);
    if (rc == RQ_E_CONFLICT) {
        lose_log(s, log);
        return RQ_OK;
    }
    if (rc == RQ_OK) return RQ_OK;
    pthread_mutex_lock(&s->lock);
    log->is_dirty = true;
    pthread_mutex_unlock(&s->lock);
    return rq_fail(why, rc, "%s", detail.message);
}

/* Above the limit the own log is not kept for a peer any more. */
static void check_limit(rq__queue_set *s)
{
    rq_executor *ex = s->o.env->executor;
    rq_lsn end = rq_wal_durable(s->o.wal);
    for (rq__peer_queue *q = s->first->first; q != NULL && s->o.log_max != 0; q = q->next) {
        pthread_mutex_lock(&s->lock);
        bool is_over = q->lost_ms == 0 && end > q->position && end - q->position > s->o.log_max;
        if (is_over) {
            q->lost_ms = ex->now_ms(ex);
            s->first->is_dirty = true;
        }
        pthread_mutex_unlock(&s->lock);
        if (!is_over) continue;
        stop_source(s, q);
        rq_log_error(s->o.env->log, SUBJECT,
                     "peer %s needs a resync: more bytes of the write-ahead log of this server are "
                     "not replicated yet than rorqual.replication.log.max allows",
                     q->id);
    }
}

/* Releases what no queue needs according to the object. */
static void release(rq__queue_set *s)
{
    rq_lsn from = s->looked;
    pthread_mutex_lock(&s->lock);
    for (const rq__peer_queue *q = s->first->first; q != NULL; q = q->next)
        if (q->lost_ms == 0 && q->written < from) from = q->written;
    pthread_mutex_unlock(&s->lock);
    rq_holder_keep_log(s->holder, from);
    rq_wal_let_go(s->o.wal);
}

/* REQUIRES: its sources have ended. */
static void unlink_log(rq__queue_set *s, rq__log_queues **at)
{
    rq__log_queues *log = *at;
    pthread_mutex_lock(&s->lock);
    *at = log->next;
    pthread_mutex_unlock(&s->lock);
    log_free(log);
}

static void drop_lost(rq__queue_set *s)
{
    for (rq__log_queues **at = &s->first->next; *at != NULL;) {
        rq__log_queues *log = *at;
        if (!log->is_lost) {
            at = &log->next;
            continue;
        }
        unlink_log(s, at);
    }
}

rq_err rq__queue_set_write(rq__queue_set *s, rq_error *why)
{
    rq_err rc = RQ_OK;
    check_limit(s);
    for (rq__log_queues *log = s->first; log != NULL; log = log->next) {
        rq_err one = write_log(s, log, rc == RQ_OK ? why : NULL);
        if (rc == RQ_OK) rc = one;
    }
    drop_lost(s);
    if (!s->first->is_lost) release(s);
    return rc;
}

/* --- claims ----------------------------------------------------------------------------------- */

/* A log that was removed counts as closed: neither has contents. */
static rq_err state_of(const rq__queue_set *s, const char *server, rq_wal_state *ret, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_state_of(s->o.shared, server, ret, &detail);
    if (rc == RQ_E_NOT_FOUND) *ret = RQ_WAL_CLOSED;
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* *ret: the server that ships the log has ended, or is this one. */
static rq_err is_free(const rq__queue_set *s, const char *server, rq_slice owner, rq_arena *arena,
                      bool *ret, rq_error *why)
{
    rq_wal_state state;
    *ret = true;
    if (rq_slice_eq(owner, rq_slice_cstr(server)) || rq_slice_eq(owner, rq_slice_cstr(s->o.server)))
        return RQ_OK;
    const char *name = rq_arena_cstr(arena, owner);
    if (name == NULL) return rq_no_memory(why);
    RQ_TRY(state_of(s, name, &state, why));
    *ret = state != RQ_WAL_OPEN;
    return RQ_OK;
}

static rq_err take_queues(rq__log_queues *log, const rq_wal_queues *q)
{
    log->edit = q->edit;
    log->seen = q->seen;
    for (size_t i = 0; i < q->count; i++) {
        const rq_wal_queue *from = &q->list[i];
        rq__peer_queue *e = queue_new(log, from->id, from->number, from->position);
        if (e == NULL) return RQ_E_NO_MEMORY;
        e->lost_ms = from->lost_ms;
        e->next = log->first;
        log->first = e;
    }
    return RQ_OK;
}

/* Enters a log that this server owns now. */
static void enter(rq__queue_set *s, rq__log_queues *log)
{
    rq_log_info(s->o.env->log, SUBJECT, "this server replicates the rest of the log of %s",
                log->server);
    rq__log_queues *last = s->first;
    while (last->next != NULL)
        last = last->next;
    pthread_mutex_lock(&s->lock);
    last->next = log;
    drop_unwanted(log);
    pthread_mutex_unlock(&s->lock);
}

/* RQ_E_CONFLICT: another server was faster. */
static rq_err claim_read(rq__queue_set *s, const char *server, rq_wal_queues *q,
                         uint64_t generation, rq_error *why)
{
    rq__log_queues *log = log_new(s, server);
    if (log == NULL) return rq_no_memory(why);
    rq_err rc = take_queues(log, q);
    q->owner = rq_slice_cstr(s->o.server);
    log->generation = generation;
    if (rc == RQ_OK)
        rc = rq_wal_queues_swap(s->o.shared, server, q, &log->generation, why);
    else
        rc = rq_no_memory(why);
    log->edit = q->edit;
    if (rc == RQ_OK)
        enter(s, log);
    else
        log_free(log);
    return rc;
}

/* See rule 5. A queue that is not kept any more stays in the object until the master has noted it. REQUIRES: the counts are of
 * queues that this server owns and ships, or will ship. */
static rq_err is_worth_claiming(const rq__queue_set *s, const rq_wal_queues *q, rq_arena *arena,
                                bool *ret)
{
    *ret = true;
    bool is_wanted = false;
    for (size_t i = 0; i < q->count; i++) {
        const rq_wal_queue *e = &q->list[i];
        const char *id = rq_arena_cstr(arena, e->id);
        if (id == NULL) return RQ_E_NO_MEMORY;
        const rq_peer_info *p = peer_of(s, id);
        if (p == NULL || p->position != e->number || p->lost_ms != 0) continue;
        is_wanted = true;
        if (p->enabled && e->lost_ms == 0 && *count_of(s, p) < RQ__PLACES_MAX) return RQ_OK;
    }
    *ret = !is_wanted;
    return RQ_OK;
}

static rq_err claim_found(rq__queue_set *s, const char *server, rq_wal_queues *q,
                          uint64_t generation, rq_arena *arena, bool *ret, rq_error *why)
{
    bool is_claimable;
    /* The list that its server followed may name peers that the list of this server does not name yet. */
    if (q->seen > s->list.version) return RQ_OK;
    if (is_worth_claiming(s, q, arena, &is_claimable) != RQ_OK) return rq_no_memory(why);
    if (!is_claimable) return RQ_OK;
    RQ_TRY(is_free(s, server, q->owner, arena, &is_claimable, why));
    if (!is_claimable) return RQ_OK;
    RQ_TRY(claim_read(s, server, q, generation, why));
    *ret = true;
    return RQ_OK;
}

/* *ret: it was claimed. An ended log without queues: its server ended before it made the object, or another server has removed
 * the object. Queues of a log without contents: its server, which was fenced, has made the object after the log was removed. */
static rq_err claim_log(rq__queue_set *s, const char *server, rq_arena *arena, bool *ret,
                        rq_error *why)
{
    rq_wal_queues q;
    rq_wal_state state = RQ_WAL_OPEN;
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_queues_read(s->o.shared, server, arena, &q, &generation, &detail);
    bool is_absent = rc == RQ_E_NOT_FOUND;
    if (is_absent) {
        rq_error_clear(&detail);
        generation = 0;
        rc = RQ_OK;
    }
    if (rc == RQ_OK) rc = state_of(s, server, &state, &detail);
    if (rc == RQ_OK && state != RQ_WAL_OPEN)
        rc = is_absent || state == RQ_WAL_CLOSED
                 ? rq_wal_queues_remove(s->o.shared, server, generation, &detail)
                 : claim_found(s, server, &q, generation, arena, ret, &detail);
    return rc == RQ_OK || rc == RQ_E_CONFLICT ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* REQUIRES: lock held. Counts queues of ended logs for each peer: those that have a place, or all that are ready. */
static void count_queues(rq__queue_set *s, bool with_place)
{
    memset(s->counts, 0, s->list.count * sizeof *s->counts);
    for (const rq__log_queues *log = s->first->next; log != NULL; log = log->next)
        for (const rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            const rq_peer_info *p = !with_place || q->has_place ? ready_peer(q) : NULL;
            if (p != NULL) ++*count_of(s, p);
        }
}

void rq__queue_set_share(rq__queue_set *s)
{
    if (!s->has_list) return;
    pthread_mutex_lock(&s->lock);
    count_queues(s, true);
    for (rq__log_queues *log = s->first->next; log != NULL; log = log->next)
        for (rq__peer_queue *q = log->first; q != NULL; q = q->next) {
            const rq_peer_info *p = ready_peer(q);
            if (p == NULL) q->has_place = false;
            if (p == NULL || q->has_place || *count_of(s, p) >= RQ__PLACES_MAX) continue;
            q->has_place = true;
            ++*count_of(s, p);
        }
    pthread_mutex_unlock(&s->lock);
}

uint32_t rq__queue_set_ended_logs(const rq__queue_set *s)
{
    size_t owned = 0;
    for (const rq__log_queues *log = s->first->next; log != NULL; log = log->next)
        if (!is_listed(s->found.names, s->found.count, log->server)) owned++;
    return (uint32_t)(s->found.count + owned);
}

/* The logs of this server's queues, ascending. */
static rq_err list_owned(const rq__queue_set *s, rq_arena *arena, const char ***ret, size_t *count)
{
    *count = 0;
    for (const rq__log_queues *log = s->first; log != NULL; log = log->next)
        ++*count;
    const char **names = rq_arena_calloc(arena, *count, sizeof *names);
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (const rq__log_queues *log = s->first; log != NULL; log = log->next)
        *names++ = log->server;
    *ret = names - *count;
    qsort(*ret, *count, sizeof **ret, by_name);
    return RQ_OK;
}

/* Ended logs that may have queues, ascending, without those that this server owns. */
static rq_err list_ended(const rq__queue_set *s, rq_arena *arena, const char ***ret,
                         size_t *ret_count, rq_error *why)
{
    const char **logs, **ended, **owned;
    size_t count = 0, ended_count = 0, owned_count;
    *ret_count = 0;
    RQ_TRY(rq_set_list(s->o.shared, s->o.ended, arena, &ended, &ended_count, why));
    if (ended_count > 0) RQ_TRY(rq_wal_queues_logs(s->o.shared, arena, &logs, &count, why));
    *ret = rq_arena_calloc(arena, count + 1, sizeof **ret);
    if (*ret == NULL || list_owned(s, arena, &owned, &owned_count) != RQ_OK)
        return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if (is_listed(ended, ended_count, logs[i]) && !is_listed(owned, owned_count, logs[i]))
            (*ret)[(*ret_count)++] = logs[i];
    return RQ_OK;
}

/* A look, if one is left and nothing was claimed. */
static rq_err look_at(rq__queue_set *s, const char *server, size_t *looks, bool *ret, rq_error *why)
{
    rq_arena arena = {0};
    if (*looks == 0 || *ret) return RQ_OK;
    --*looks;
    rq_err rc = claim_log(s, server, &arena, ret, why);
    rq_arena_clear(&arena);
    return rc;
}

/* First the logs that are `old_count` names of `old` not, then in turn the others: there may be many that wait for a peer, or that
 * other servers own. */
static rq_err claim_one_of(rq__queue_set *s, const char *const *old, size_t old_count, bool *ret,
                           rq_error *why)
{
    size_t count = s->found.count, looks = count / LAP;
    if (looks < CLAIM_LOOKS) looks = CLAIM_LOOKS;
    for (size_t i = 0; i < count; i++)
        if (!is_listed(old, old_count, s->found.names[i]))
            RQ_TRY(look_at(s, s->found.names[i], &looks, ret, why));
    for (size_t i = 0; i < count && looks > 0 && !*ret; i++) {
        const char *server = s->found.names[s->found.next++ % count];
        if (is_listed(old, old_count, server)) RQ_TRY(look_at(s, server, &looks, ret, why));
    }
    return RQ_OK;
}

rq_err rq__queue_set_claim(rq__queue_set *s, bool *ret, rq_error *why)
{
    rq_arena arena = {0};
    const char **names, **old = s->found.names;
    size_t count, old_count = s->found.count;
    *ret = false;
    if (!s->has_list || s->first->is_lost) return RQ_OK;
    rq_err rc = list_ended(s, &arena, &names, &count, why);
    if (rc == RQ_OK) {
        rq_arena before = s->found.arena;
        s->found.arena = arena;
        s->found.names = names;
        s->found.count = count;
        arena = before;
        pthread_mutex_lock(&s->lock);
        count_queues(s, false);
        pthread_mutex_unlock(&s->lock);
        rc = claim_one_of(s, old, old_count, ret, why);
    }
    rq_arena_clear(&arena);
    return rc;
}

/* --- the end of an ended log's queues --------------------------------------------------------- */

/* REQUIRES: lock held. */
static bool drop_done(rq__log_queues *log)
{
    for (rq__peer_queue **at = &log->first; *at != NULL;) {
        rq__peer_queue *q = *at;
        if (!q->done || q->source != NULL) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        free(q);
        log->is_dirty = true;
    }
    return log->first == NULL;
}

static void stop_done(rq__queue_set *s, rq__log_queues *log)
{
    for (rq__peer_queue *q = log->first; q != NULL; q = q->next) {
        pthread_mutex_lock(&s->lock);
        bool done = q->done;
        pthread_mutex_unlock(&s->lock);
        if (done) stop_source(s, q);
    }
}

rq_err rq__queue_set_finish(rq__queue_set *s, rq_error *why)
{
    rq_err first = RQ_OK; /* others are finished nonetheless */
    for (rq__log_queues **at = &s->first->next; *at != NULL;) {
        rq__log_queues *log = *at;
        stop_done(s, log);
        pthread_mutex_lock(&s->lock);
        bool empty = drop_done(log);
        pthread_mutex_unlock(&s->lock);
        rq_error detail = {.code = RQ_OK};
        rq_err rc = empty ? rq_wal_queues_remove(s->o.shared, log->server, log->generation, &detail)
                          : RQ_E_AGAIN;
        bool is_failed = rc != RQ_OK && rc != RQ_E_AGAIN && rc != RQ_E_CONFLICT;
        if (is_failed && first == RQ_OK) first = rq_fail(why, rc, "%s", detail.message);
        if (is_failed || rc == RQ_E_AGAIN) {
            at = &log->next;
            continue;
        }
        if (rc == RQ_OK)
            rq_log_info(s->o.env->log, SUBJECT, "no peer needs the log of %s any more",
                        log->server);
        unlink_log(s, at);
    }
    return first;
}

rq_err rq__queue_set_leave(rq__queue_set *s, bool *ret, rq_error *why)
{
    rq__log_queues *own = s->first;
    *ret = own != NULL && own->first != NULL && !own->is_lost;
    if (own == NULL) return RQ_OK;
    rq_err rc = rq__queue_set_finish(s, why);
    rq_err more = rq__queue_set_write(s, rc == RQ_OK ? why : NULL);
    if (rc == RQ_OK) rc = more;
    if (rc != RQ_OK || own->first != NULL || own->is_lost) return rc;
    return rq_wal_queues_remove(s->o.shared, own->server, own->generation, why);
}

/* --- any thread ------------------------------------------------------------------------------- */

bool rq__queue_is_current(rq__log_queues *log, const char *id, uint64_t version)
{
    rq__queue_set *s = log->set;
    pthread_mutex_lock(&s->lock);
    const rq__peer_queue *q = queue_of(log, id);
    const rq_peer_info *p = q == NULL ? NULL : current_peer(q);
    bool current = p != NULL && p->version == version;
    pthread_mutex_unlock(&s->lock);
    return current;
}

rq_err rq__queue_advance(rq__log_queues *log, const char *id, rq_lsn position)
{
    rq__queue_set *s = log->set;
    pthread_mutex_lock(&s->lock);
    rq__peer_queue *q = log->is_lost ? NULL : queue_of(log, id);
    if (q != NULL && position > q->position) {
        q->position = position;
        log->is_dirty = true;
    }
    pthread_mutex_unlock(&s->lock);
    return q == NULL ? RQ_E_NOT_FOUND : RQ_OK;
}

rq_err rq__queue_give_up(rq__log_queues *log, const char *id, uint64_t version)
{
    rq__queue_set *s = log->set;
    rq_executor *ex = s->o.env->executor;
    rq_wal_state state = RQ_WAL_OPEN;
    if (!log->is_own) RQ_TRY(state_of(s, log->server, &state, NULL));
    if (state == RQ_WAL_CLOSED) {
        rq__queue_done(log, id);
        return RQ_E_NOT_FOUND;
    }
    pthread_mutex_lock(&s->lock);
    rq__peer_queue *q = queue_of(log, id);
    const rq_peer_info *p = q == NULL ? NULL : current_peer(q);
    bool gives = p != NULL && p->version == version;
    if (gives) {
        q->lost_ms = ex->now_ms(ex);
        log->is_dirty = true;
    }
    pthread_mutex_unlock(&s->lock);
    return gives ? RQ_OK : RQ_E_NOT_FOUND;
}

void rq__queue_done(rq__log_queues *log, const char *id)
{
    rq__queue_set *s = log->set;
    pthread_mutex_lock(&s->lock);
    rq__peer_queue *q = queue_of(log, id);
    if (q != NULL) q->done = true;
    pthread_mutex_unlock(&s->lock);
}

/* --- the master ------------------------------------------------------------------------------- */

static rq_err note_loss(rq_catalog *c, const rq_wal_queue *q, const char *server, rq_arena *arena,
                        rq_error *why)
{
    rq_peer_info p;
    rq_err rc = rq_catalog_peer(c, q->id, arena, &p);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_no_memory(why);
    if (p.position != q->number || p.lost_ms != 0) return RQ_OK;
    rc = rq_catalog_peer_give_up(c, p.id, p.version, why);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK; /* changed meanwhile */
    if (rc == RQ_OK)
        rq_log_error(rq_engine_env(rq_catalog_engine(c))->log, SUBJECT,
                     "peer %s is disabled and needs a resync: %s does not keep its write-ahead log "
                     "for it any more",
                     p.id, server);
    return rc;
}

rq_err rq_queues_note_losses(rq_shared *s, rq_catalog *c, const char *server, rq_error *why)
{
    rq_arena arena = {0};
    rq_wal_queues q;
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_queues_read(s, server, &arena, &q, &generation, &detail);
    for (size_t i = 0; rc == RQ_OK && i < q.count; i++)
        if (q.list[i].lost_ms != 0) rc = note_loss(c, &q.list[i], server, &arena, &detail);
    rq_arena_clear(&arena);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}
