/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as messages, on the master; see remote.h. */
#include "cluster/remote_priv.h"

#include "cluster/wire.h"

#include <stdlib.h>
#include <string.h>

#define AGAIN_NS UINT64_C(1000000000)
#define BATCH_MAX 256 /* orders in one message */

/* A call that has not reported. */
typedef struct rq__pending {
    struct rq__pending *next; /* in its bucket, or in a list of those that end */
    uint64_t id;
    rq_region_call_kind kind;
    const rq_server_name *server; /* a reference */
    rq_region_call *call;
} pending;

/* A message until it was accepted. */
typedef struct rq__message {
    struct rq__message *next, *prev;
    rq_remote *owner;
    rq_arena arena;
    const rq_server_name *server; /* a reference */
    uint64_t first, last;         /* the numbers of its orders, which may have reported */
    rq_timer timer;               /* another attempt */
    rq_remote_request request;
} message;

/* --- pending calls; all REQUIRE: lock held ---------------------------------------------------- */

static pending **bucket_of(rq_remote *m, uint64_t id)
{
    return &m->buckets[id % RQ__REMOTE_BUCKETS]; /* consecutive */
}

static pending *find(rq_remote *m, uint64_t id)
{
    pending *p = *bucket_of(m, id);
    while (p != NULL && p->id != id)
        p = p->next;
    return p;
}

/* Removes the call from the table; the caller then makes it report. */
static void take_out(rq_remote *m, const pending *p)
{
    pending **at = bucket_of(m, p->id);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    m->reporting++;
}

/* Takes out the calls to a server (NULL: all) with numbers from `first` to `last`. */
static pending *take(rq_remote *m, const rq_server_name *of, uint64_t first, uint64_t last)
{
    pending *list = NULL;
    for (size_t i = 0; i < RQ__REMOTE_BUCKETS; i++) {
        pending **at = &m->buckets[i];
        while (*at != NULL) {
            pending *p = *at;
            bool fits = p->id >= first && p->id <= last &&
                        (of == NULL || strcmp(p->server->text, of->text) == 0);
            if (!fits) {
                at = &p->next;
                continue;
            }
            *at = p->next;
            p->next = list;
            list = p;
            m->reporting++;
        }
    }
    return list;
}

/* --- ending calls that were taken out ---------------------------------------------------------- */

static void end_one(rq_remote *m, pending *p, rq_err rc, const rq_error *why)
{
    rq_server_name_unref(p->server);
    rq_region_call_report(p->call, rc, why);
    free(p);
    pthread_mutex_lock(&m->lock);
    rq_latch *quiet = --m->reporting == 0 ? m->quiet : NULL;
    if (quiet != NULL) quiet->executor->latch_open(quiet, RQ_OK);
    pthread_mutex_unlock(&m->lock);
}

static void end_list(rq_remote *m, pending *list, rq_err rc, const rq_error *why)
{
    while (list != NULL) {
        pending *next = list->next;
        end_one(m, list, rc, why);
        list = next;
    }
}

void rq__end_calls_to(rq_remote *m, const rq_server_name *server, rq_err rc, const rq_error *why)
{
    pthread_mutex_lock(&m->lock);
    pending *list = take(m, server, 0, UINT64_MAX);
    pthread_mutex_unlock(&m->lock);
    end_list(m, list, rc, why);
}

/* --- messages --------------------------------------------------------------------------------- */

static void message_free(message *g)
{
    rq_server_name_unref(g->server);
    rq_arena_clear(&g->arena);
    free(g);
}

/* REQUIRES: lock held. */
static void unlink_message(rq_remote *m, message *g)
{
    if (g->prev != NULL) g->prev->next = g->next;
    if (g->next != NULL) g->next->prev = g->prev;
    if (m->messages == g) m->messages = g->next;
}

static void send_again(rq_task *task)
{
    message *g = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), message, timer);
    rq_remote *m = g->owner;
    pthread_mutex_lock(&m->lock);
    bool goes = !m->stopping && rq__server_is_up(m, g->server);
    if (!goes) unlink_message(m, g);
    pthread_mutex_unlock(&m->lock);
    if (goes)
        m->o.send(m->o.ctx, &g->request);
    else
        message_free(g);
}

/* The server has answered, or cannot be reached. */
static void answered(rq_remote_request *r, rq_err rc, const rq_error *why)
{
    message *g = RQ_CONTAINER_OF(r, message, request);
    rq_remote *m = g->owner;
    rq_executor *ex = m->o.env->executor;
    pending *refused = NULL;
    pthread_mutex_lock(&m->lock);
    bool again =
        rc != RQ_OK && !rq_err_do_not_retry(rc) && !m->stopping && rq__server_is_up(m, g->server);
    if (again) {
        g->timer.task.run = send_again;
        ex->timer_arm(ex, &g->timer, m->lane, AGAIN_NS);
    } else {
        if (rc != RQ_OK) refused = take(m, NULL, g->first, g->last);
        unlink_message(m, g);
    }
    pthread_mutex_unlock(&m->lock);
    if (again) return;
    end_list(m, refused, rq_err_do_not_retry(rc) ? RQ_E_SERVER_NOT_RUNNING : rc, why);
    message_free(g);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void fail_call(rq_region_call *call, rq_err rc, const char *text)
{
    rq_error why = {0};
    (void)rq_fail(&why, rc, "%s", text);
    call->unsent = rc == RQ_E_NO_MEMORY;
    rq_region_call_report(call, rc, &why);
}

static rq_order order_of(const rq_remote *m, rq_region_call_kind kind, const rq_region_call *call,
                         uint64_t id)
{
    rq_order o = {
        .kind = kind,
        .id = id,
        .master_ms = m->o.master_ms,
        .abandon = call->abandon,
        .moves_to = call->moves_to,
        .families = (rq_slice *)(uintptr_t)call->families,
        .family_count = call->family_count,
        .flush = call->flush,
    };
    if (call->info != NULL) o.info = *call->info;
    return o;
}

static rq_err add_revoked(const rq_remote *m, message *g)
{
    rq_revoked *list;
    size_t count = m->o.revoked == NULL ? 0 : m->o.revoked(m->o.ctx, &g->arena, &list);
    return count == 0 ? RQ_OK : rq__revoked_append(list, count, &g->arena, &g->request.request);
}

/* Makes the message and the pending entries for these calls, which all go to one server. The numbers of the calls
 * are consecutive. */
static rq_err make_message(rq_remote *m, rq_region_call_kind kind, rq_region_call **calls,
                           size_t count, message **ret, pending **ret_pending)
{
    const rq_server_name *to = calls[0]->server;
    message *g = calloc(1, sizeof *g);
    rq_err rc = RQ_E_NO_MEMORY;
    if (g == NULL) return rc;
    *g = (message){.owner = m, .server = rq_server_name_ref(to)};
    pthread_mutex_lock(&m->lock);
    g->first = m->next_id;
    m->next_id += count;
    pthread_mutex_unlock(&m->lock);
    g->last = g->first + count - 1;
    rq_order *orders = rq_arena_calloc(&g->arena, count, sizeof *orders);
    for (size_t i = 0; i < count && orders != NULL; i++) {
        orders[i] = order_of(m, kind, calls[i], g->first + i);
        pending *p = calloc(1, sizeof *p);
        if (p == NULL) goto failed;
        *p = (pending){.next = *ret_pending,
                       .id = g->first + i,
                       .kind = kind,
                       .server = rq_server_name_ref(to),
                       .call = calls[i]};
        *ret_pending = p;
    }
    if (orders != NULL)
        rc = rq__orders_encode(orders, count, to->start_code, &g->arena, &g->request.request);
    if (rc == RQ_OK && kind == RQ_CALL_OPEN) rc = add_revoked(m, g);
    g->request.server = g->server;
    g->request.done = answered;
    if (rc == RQ_OK) {
        *ret = g;
        return RQ_OK;
    }
failed:
    message_free(g);
    return RQ_E_NO_MEMORY;
}

static void drop_pending(pending *list)
{
    while (list != NULL) {
        pending *next = list->next;
        rq_server_name_unref(list->server);
        free(list);
        list = next;
    }
}

/* RQ_OK: they will report. */
static rq_err enter(rq_remote *m, message *g, pending *list)
{
    pthread_mutex_lock(&m->lock);
    rq_err rc = m->stopping                       ? RQ_E_SERVER_STOPPED
                : !rq__server_is_up(m, g->server) ? RQ_E_SERVER_NOT_RUNNING
                                                  : RQ_OK;
    while (list != NULL && rc == RQ_OK) {
        pending *next = list->next;
        list->next = *bucket_of(m, list->id);
        *bucket_of(m, list->id) = list;
        list = next;
    }
    if (rc == RQ_OK) {
        g->next = m->messages;
        if (g->next != NULL) g->next->prev = g;
        m->messages = g;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void send_to_one(rq_remote *m, rq_region_call_kind kind, rq_region_call **calls,
                        size_t count)
{
    message *g = NULL;
    pending *list = NULL;
    rq_err rc = make_message(m, kind, calls, count, &g, &list);
    if (rc == RQ_OK) rc = enter(m, g, list);
    if (rc == RQ_OK) {
        m->o.send(m->o.ctx, &g->request);
        return;
    }
    drop_pending(list);
    if (g != NULL) message_free(g);
    for (size_t i = 0; i < count; i++)
        fail_call(calls[i], rc, rq_err_text(rc));
}

static int by_server(const void *a, const void *b)
{
    const rq_region_call *x = *(rq_region_call *const *)a, *y = *(rq_region_call *const *)b;
    return strcmp(x->server->text, y->server->text);
}

/* `list` may be freed once the last call has been sent. So they are sent from this list of
 * pointers, and no call is accessed after it was sent. */
static void send_sorted(rq_remote *m, rq_region_call_kind kind, rq_region_call **list, size_t count)
{
    size_t from = 0;
    qsort(list, count, sizeof(rq_region_call *), by_server);
    while (from < count) {
        size_t to = from + 1;
        while (to < count && to - from < BATCH_MAX && by_server(&list[from], &list[to]) == 0)
            to++;
        send_to_one(m, kind, list + from, to - from);
        from = to;
    }
}

static void send_all(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    rq_region_call **pointers = calloc(count + 1, sizeof(rq_region_call *));
    for (size_t i = 0; i < count && pointers != NULL; i++)
        pointers[i] = &list[i];
    if (pointers != NULL) send_sorted(ctx, kind, pointers, count);
    for (size_t i = 0; i < count && pointers == NULL; i++)
        fail_call(&list[i], RQ_E_NO_MEMORY, rq_err_text(RQ_E_NO_MEMORY));
    free(pointers);
}

/* --- reports ---------------------------------------------------------------------------------- */

static bool is_for(const pending *p, const rq_outcome *o, const rq_server_name *from)
{
    bool transition = p->kind == RQ_CALL_OPEN || p->kind == RQ_CALL_CLOSE;
    bool same = transition ? p->kind == o->kind : o->kind == RQ_CALL_LOOK;
    return same && (from == NULL || strcmp(from->text, p->server->text) == 0);
}

/* *ret NULL: it has reported. */
static rq_err take_pending(rq_remote *m, const rq_outcome *o, const rq_server_name *from,
                           pending **ret, rq_error *why)
{
    rq_err rc = RQ_OK;
    *ret = NULL;
    if (o->master_ms != m->o.master_ms)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "the report is for an earlier master, active since %lld ms",
                       (long long)o->master_ms);
    pthread_mutex_lock(&m->lock);
    pending *p = find(m, o->id);
    if (p != NULL && !is_for(p, o, from))
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "the report does not match order %llu",
                     (unsigned long long)o->id);
    if (rc == RQ_OK && p != NULL) {
        take_out(m, p);
        *ret = p;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

/* The answer is copied: the message's memory ends. */
static void report(rq_remote *m, pending *p, const rq_outcome *o)
{
    rq_error why = {0};
    rq_region_call *call = p->call;
    rq_err rc = o->rc;
    call->open_seqnum = o->open_seqnum;
    call->splittable = o->splittable;
    call->mergeable = o->mergeable;
    if (rc == RQ_OK && p->kind == RQ_CALL_LIST_FILES && call->arena != NULL)
        rc = rq__wire_copy_files(&o->files, call->arena, &call->files);
    if (rc == RQ_OK && p->kind == RQ_CALL_LIST_MOB_WRITES && call->arena != NULL) {
        call->mob_write_count = o->mob_write_count;
        rc = rq__wire_copy_names(o->mob_writes, o->mob_write_count, call->arena, &call->mob_writes);
    }
    if (rc == RQ_OK && o->split_row.len > 0 && call->arena != NULL) {
        call->split_row = rq_arena_copy(call->arena, o->split_row);
        if (call->split_row.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (rc != RQ_OK) (void)rq_fail(&why, rc, "%s", o->rc == rc ? o->message : rq_err_text(rc));
    end_one(m, p, rc, &why);
}

static rq_err take_outcomes(rq_remote *m, const rq_outcome *list, size_t count,
                            const rq_server_name *from, rq_error *why)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count; i++) {
        pending *p;
        rq_err more = take_pending(m, &list[i], from, &p, why);
        if (rc == RQ_OK) rc = more;
        if (p != NULL) report(m, p, &list[i]);
    }
    return rc;
}

rq_err rq__check_sender(const rq_server_name *from, const rq_server_name *said, rq_error *why)
{
    if (from == NULL || strcmp(from->text, said->text) == 0) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s sent a message in the name of %s", from->text,
                   said->text);
}

rq_err rq_remote_transitions(rq_remote *m, const rq_server_name *from, rq_slice request,
                             rq_error *why)
{
    rq_arena a = {0};
    rq_outcome *list;
    size_t count;
    const rq_server_name *said;
    rq_err rc = rq__transitions_decode(request, &a, &list, &count, &said, why);
    if (rc == RQ_OK) rc = rq__check_sender(from, said, why);
    if (rc == RQ_OK) rc = take_outcomes(m, list, count, said, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_remote_procedures_done(rq_remote *m, const rq_server_name *from, rq_slice request,
                                 rq_error *why)
{
    rq_arena a = {0};
    rq_outcome *list;
    size_t count;
    rq_err rc = rq__procedures_done_decode(request, &a, &list, &count, why);
    if (rc == RQ_OK) rc = take_outcomes(m, list, count, from, why);
    rq_arena_clear(&a);
    return rc;
}

/* --- the table -------------------------------------------------------------------------------- */

static void wait_for_reports(rq_remote *m)
{
    rq_executor *ex = m->o.env->executor;
    rq_latch quiet;
    ex->latch_init(ex, &quiet);
    pthread_mutex_lock(&m->lock);
    bool wait = m->reporting > 0;
    if (wait) m->quiet = &quiet;
    pthread_mutex_unlock(&m->lock);
    if (wait) (void)ex->latch_wait(&quiet); /* always opened with RQ_OK */
    pthread_mutex_lock(&m->lock);
    m->quiet = NULL;
    pthread_mutex_unlock(&m->lock);
    ex->latch_destroy(&quiet);
}

static void stop(void *ctx)
{
    rq_remote *m = ctx;
    rq_executor *ex = m->o.env->executor;
    message *unsent = NULL;
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    for (message *g = m->messages, *next; g != NULL; g = next) {
        next = g->next;
        if (g->timer.task.run == NULL || !ex->timer_cancel(ex, &g->timer)) continue;
        unlink_message(m, g);
        g->next = unsent;
        unsent = g;
    }
    pending *list = take(m, NULL, 0, UINT64_MAX);
    pthread_mutex_unlock(&m->lock);
    end_list(m, list, RQ_E_SERVER_STOPPED, NULL);
    wait_for_reports(m);
    while (unsent != NULL) {
        message *next = unsent->next;
        message_free(unsent);
        unsent = next;
    }
}

static bool is_up(void *ctx, const rq_server_name *server)
{
    return rq_remote_is_up(ctx, server);
}

static rq_err servers(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count)
{
    size_t total;
    return rq_remote_servers(ctx, SIZE_MAX, arena, ret, ret_count, &total);
}

rq_region_calls rq_remote_calls(rq_remote *m)
{
    return (rq_region_calls){.send = send_all,
                             .load = rq__servers_load,
                             .server_load = rq__servers_server_load,
                             .server_sources = rq__servers_sources,
                             .place = rq__servers_place,
                             .servers = servers,
                             .dead = rq__servers_dead,
                             .forget_dead = rq__servers_forget_dead,
                             .is_up = is_up,
                             .drain = rq__remote_drain,
                             .is_draining = rq__remote_is_draining,
                             .draining = rq__remote_draining,
                             .takes_regions = rq__remote_takes_regions,
                             .stop = stop,
                             .ctx = m};
}

rq_err rq_remote_new(const rq_remote_options *options, rq_remote **ret)
{
    rq_remote *m = calloc(1, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    m->o = *options;
    m->next_id = 1;
    pthread_mutex_init(&m->lock, NULL);
    rq_err rc = m->o.env->executor->lane_new(m->o.env->executor, "rq remote", &m->lane);
    if (rc == RQ_OK)
        *ret = m;
    else
        rq_remote_free(m);
    return rc;
}

void rq_remote_free(rq_remote *m)
{
    if (m == NULL) return;
    if (m->lane != NULL) m->o.env->executor->lane_free(m->o.env->executor, m->lane);
    rq__servers_clear(m);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
