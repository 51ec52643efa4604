/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of a master, on the server; see orders.h. */
#include "cluster/orders.h"

#include "catalog/tableinfo.h"
#include "cluster/wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256
#define KNOWN_NS (UINT64_C(600) * 1000000000)
#define KNOWN_MAX 65536 /* finished ones; then the oldest are forgotten */
#define AGAIN_NS UINT64_C(1000000000)

/* A request; its orders share the arena. */
typedef struct batch {
    rq_arena arena;
    size_t refs;
} batch;

typedef struct entry {
    struct entry *next;   /* in its bucket */
    struct entry *later;  /* in the list of finished entries */
    struct entry *behind; /* in the queue of entries that open or close the same region */
    rq_orders *owner;
    uint64_t id;
    int64_t master_ms;
    uint64_t until_ns; /* finished: when it is forgotten; 0: at work */
    bool passed;       /* the next entry of its region may run */
    /* At work: */
    batch *batch; /* a reference */
    rq_order *order;
    rq_table_schema *schema;
    rq_region_call call;
    rq_task task;
    rq_timer timer; /* another attempt to report */
    rq_report report;
    rq_arena arena; /* of the answer */
    rq_arena report_arena;
} entry;

struct rq_orders {
    rq_orders_options o;
    const rq_env *env;
    rq_lane *lane;
    pthread_mutex_t lock; /* guards the rest; never held across I/O */
    entry *buckets[BUCKETS];
    /* Entries that open or close regions, by region, in order of arrival: the first entry of each region runs. */
    entry *turns[BUCKETS];
    entry *first, *last; /* finished ones, the oldest first */
    size_t finished;
    int64_t master_ms; /* of the newest master */
    size_t busy;       /* entries at work whose timer is not armed */
    bool stopping;
    rq_latch *idle;
};

/* --- what is known; all REQUIRE: lock held ---------------------------------------------------- */

static entry **bucket_of(rq_orders *o, uint64_t id)
{
    return &o->buckets[(id * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

static entry *find(rq_orders *o, uint64_t id, int64_t master_ms)
{
    entry *e = *bucket_of(o, id);
    while (e != NULL && (e->id != id || e->master_ms != master_ms))
        e = e->next;
    return e;
}

static void unlink_entry(rq_orders *o, const entry *e)
{
    entry **at = bucket_of(o, e->id);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

static void forget_old(rq_orders *o)
{
    uint64_t now = o->env->executor->now_ns(o->env->executor);
    while (o->first != NULL && (o->first->until_ns <= now || o->finished > KNOWN_MAX)) {
        entry *e = o->first;
        o->first = e->later;
        if (o->first == NULL) o->last = NULL;
        o->finished--;
        unlink_entry(o, e);
        free(e);
    }
}

static void unref_batch(batch *b)
{
    if (--b->refs > 0) return;
    rq_arena_clear(&b->arena);
    free(b);
}

/* --- one after the other for a region; all REQUIRE: lock held --------------------------------- */

static bool takes_turns(const entry *e)
{
    return e->order->kind == RQ_CALL_OPEN || e->order->kind == RQ_CALL_CLOSE;
}

static entry **turns_of(rq_orders *o, const char *encoded)
{
    uint64_t h = 0;
    memcpy(&h, encoded, sizeof h); /* hex digits of a hash */
    return &o->turns[(h * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

static entry *next_turn(entry *from, const char *encoded)
{
    while (from != NULL && strcmp(from->order->info.encoded, encoded) != 0)
        from = from->behind;
    return from;
}

/* True: it may run now. */
static bool take_turn(rq_orders *o, entry *e)
{
    const char *encoded = e->order->info.encoded;
    if (!takes_turns(e)) return true;
    entry **at = turns_of(o, encoded);
    bool first = next_turn(*at, encoded) == NULL;
    while (*at != NULL)
        at = &(*at)->behind;
    *at = e;
    return first;
}

/* Lets the next entry of the region run, and returns it; NULL: none waits. */
static entry *pass_turn(rq_orders *o, entry *e)
{
    if (!takes_turns(e) || e->passed) return NULL;
    e->passed = true;
    entry **at = turns_of(o, e->order->info.encoded);
    while (*at != e)
        at = &(*at)->behind;
    *at = e->behind;
    return next_turn(*at, e->order->info.encoded);
}

/* One entry less is at work. */
static void leave(rq_orders *o)
{
    rq_latch *idle = --o->busy == 0 ? o->idle : NULL;
    if (idle != NULL) idle->executor->latch_open(idle, RQ_OK);
}

/* --- reporting -------------------------------------------------------------------------------- */

static void release(entry *e)
{
    rq_table_schema_unref(e->schema);
    free(e->call.why);
    rq_arena_clear(&e->arena);
    rq_arena_clear(&e->report_arena);
    e->schema = NULL;
    e->call.why = NULL;
}

static void pass_on(entry *e)
{
    rq_orders *o = e->owner;
    rq_executor *ex = o->env->executor;
    pthread_mutex_lock(&o->lock);
    entry *next = pass_turn(o, e);
    pthread_mutex_unlock(&o->lock);
    if (next != NULL) ex->submit(ex, RQ_POOL_WORK, &next->task);
}

/* An opened region that the master is to know of before it is served. */
static bool is_to_be_served(const entry *e)
{
    return e->order->kind == RQ_CALL_OPEN && e->call.rc == RQ_OK &&
           rq_host_names_itself(e->owner->o.host);
}

static void finish(entry *e)
{
    rq_orders *o = e->owner;
    release(e);
    pthread_mutex_lock(&o->lock);
    unref_batch(e->batch);
    e->batch = NULL;
    e->until_ns = o->env->executor->now_ns(o->env->executor) + KNOWN_NS;
    *(o->last == NULL ? &o->first : &o->last->later) = e;
    o->last = e;
    o->finished++;
    forget_old(o);
    leave(o);
    pthread_mutex_unlock(&o->lock);
}

static void send_report(entry *e);

static void report_again(rq_task *task)
{
    entry *e = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), entry, timer);
    rq_orders *o = e->owner;
    pthread_mutex_lock(&o->lock);
    bool stopping = o->stopping;
    if (!stopping) o->busy++;
    pthread_mutex_unlock(&o->lock);
    if (!stopping) send_report(e);
}

static void report_later(entry *e)
{
    rq_orders *o = e->owner;
    rq_executor *ex = o->env->executor;
    pthread_mutex_lock(&o->lock);
    if (!o->stopping) {
        e->timer.task.run = report_again;
        ex->timer_arm(ex, &e->timer, o->lane, AGAIN_NS);
    }
    entry *next = o->stopping ? pass_turn(o, e) : NULL;
    leave(o);
    pthread_mutex_unlock(&o->lock);
    if (next != NULL) ex->submit(ex, RQ_POOL_WORK, &next->task);
}

/* The master refuses the report: it does not know that the region is open here. */
static void close_unwanted(rq_task *task)
{
    entry *e = RQ_CONTAINER_OF(task, entry, task);
    const rq_orders *o = e->owner;
    rq_error why = {0};
    rq_err rc = rq_host_close(o->o.host, &e->order->info, false, NULL, &why);
    if (rc != RQ_OK)
        rq_log_warn(o->env->log, "cluster",
                    "cannot close region %s, which the master did not accept as open here: %s",
                    e->order->info.encoded, why.message);
    pass_on(e);
    finish(e);
}

static void take_answer(entry *e, bool taken)
{
    const rq_orders *o = e->owner;
    rq_executor *ex = o->env->executor;
    if (is_to_be_served(e) && !taken) {
        e->task.run = close_unwanted;
        ex->submit(ex, RQ_POOL_WORK, &e->task);
        return;
    }
    if (is_to_be_served(e)) rq_host_serve(o->o.host, &e->order->info);
    pass_on(e);
    finish(e);
}

static void reported(rq_report *r, rq_err rc)
{
    entry *e = RQ_CONTAINER_OF(r, entry, report);
    const rq_orders *o = e->owner;
    if (rc == RQ_OK || rq_err_do_not_retry(rc)) {
        if (rc != RQ_OK)
            rq_log_warn(o->env->log, "cluster", "the master does not take the report of order %llu",
                        (unsigned long long)e->id);
        take_answer(e, rc == RQ_OK);
        return;
    }
    report_later(e);
}

static rq_err make_report(entry *e)
{
    const rq_region_call *call = &e->call;
    const rq_outcome outcome = {
        .kind = e->order->kind,
        .id = e->id,
        .master_ms = e->master_ms,
        .info = &e->order->info,
        .rc = call->rc,
        .message = call->why == NULL ? NULL : call->why->message,
        .open_seqnum = call->open_seqnum,
        .splittable = call->splittable,
        .mergeable = call->mergeable,
        .split_row = call->split_row,
        .files = call->files,
        .mob_writes = call->mob_writes,
        .mob_write_count = call->mob_write_count,
    };
    e->report.done = reported;
    e->report.method = rq__outcome_method(outcome.kind);
    return rq__outcome_encode(&outcome, rq_host_name(e->owner->o.host), &e->report_arena,
                              &e->report.request);
}

/* Sends the report; if there is no memory for the message, tries again later. */
static void send_report(entry *e)
{
    rq_orders *o = e->owner;
    rq_err rc = e->report.request.len > 0 ? RQ_OK : make_report(e);
    if (rc == RQ_OK) {
        o->o.report(o->o.ctx, &e->report);
        return;
    }
    e->report.request = (rq_slice){0};
    rq_arena_clear(&e->report_arena);
    report_later(e);
}

/* The host has carried out the order. */
static void done(rq_region_call *call)
{
    entry *e = RQ_CONTAINER_OF(call, entry, call);
    if (!is_to_be_served(e)) pass_on(e);
    send_report(e);
}

/* --- carrying out ----------------------------------------------------------------------------- */

static rq_err need_schema(entry *e, rq_error *why)
{
    const rq_region_info *i = &e->order->info;
    bool needs = e->order->kind == RQ_CALL_OPEN || e->order->kind == RQ_CALL_WARM;
    if (!needs || e->schema != NULL) return RQ_OK;
    return rq_tableinfo_read(e->owner->env->vfs, i->ns, i->qualifier, &e->schema, why);
}

static void carry_out(rq_task *task)
{
    entry *e = RQ_CONTAINER_OF(task, entry, task);
    rq_orders *o = e->owner;
    rq_error why = {0};
    rq_region_calls calls = rq_host_calls(o->o.host);
    e->call = (rq_region_call){
        .server = rq_host_name(o->o.host),
        .info = &e->order->info,
        .abandon = e->order->abandon,
        .moves_to = e->order->moves_to,
        .families = e->order->families,
        .family_count = e->order->family_count,
        .flush = e->order->flush,
        .arena = &e->arena,
        .done = done,
    };
    rq_err rc = need_schema(e, &why);
    e->call.schema = e->schema;
    if (rc == RQ_OK)
        calls.send(calls.ctx, e->order->kind, &e->call, 1);
    else
        rq_region_call_report(&e->call, rc, &why);
}

static rq_err check(rq_orders *o, const rq_order *list, size_t count, int64_t start_code,
                    rq_error *why)
{
    const rq_server_name *self = rq_host_name(o->o.host);
    if (o->stopping) return rq_fail(why, RQ_E_SERVER_STOPPED, "Server %s is stopping", self->text);
    /* HBASE: RSRpcServices.openRegion */
    if (start_code != 0 && start_code != self->start_code)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "This RPC was intended for a different server with startcode: %lld, this "
                       "server is: %s",
                       (long long)start_code, self->text);
    for (size_t i = 0; i < count; i++)
        if (list[i].master_ms < o->master_ms)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "the order is from the master that became active at %lld ms; the master "
                           "since %lld ms has replaced it",
                           (long long)list[i].master_ms, (long long)o->master_ms);
    if (count == 0 && o->o.serves != NULL && !o->o.serves(o->o.ctx))
        return rq_fail(why, RQ_E_SERVER_NOT_RUNNING,
                       "%s cannot serve now: an event loop is blocked", self->text);
    return RQ_OK;
}

/* Enters the orders that are new and marks them as running. Returns those whose turn it is, linked by
 * task.next. REQUIRES: lock held. */
static rq_err enter_all(rq_orders *o, batch *b, rq_order *list, size_t count, rq_task **ret)
{
    *ret = NULL;
    for (size_t i = 0; i < count; i++) {
        if (find(o, list[i].id, list[i].master_ms) != NULL) continue;
        entry *e = calloc(1, sizeof *e);
        if (e == NULL) return RQ_E_NO_MEMORY; /* the message comes again */
        e->owner = o;
        e->id = list[i].id;
        e->master_ms = list[i].master_ms;
        e->order = &list[i];
        e->batch = b;
        e->task.run = carry_out;
        e->next = *bucket_of(o, e->id);
        *bucket_of(o, e->id) = e;
        b->refs++;
        o->busy++;
        if (e->master_ms > o->master_ms) o->master_ms = e->master_ms;
        if (!take_turn(o, e)) continue;
        e->task.next = *ret;
        *ret = &e->task;
    }
    return RQ_OK;
}

/* If memory is short, the regions are opened later: this server waits for a whole lease. */
static void tell_revoked(rq_orders *o, batch *b, rq_slice request)
{
    rq_revoked *list;
    size_t count;
    if (o->o.quiet_in == NULL) return;
    if (rq__revoked_decode(request, &b->arena, &list, &count) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t ms = list[i].quiet_in_ms < UINT32_MAX ? list[i].quiet_in_ms : UINT32_MAX;
        o->o.quiet_in(o->o.ctx, list[i].server, ms * 1000000);
    }
}

static rq_err accept_all(rq_orders *o, batch *b, rq_slice request, rq_task **ret, rq_error *why)
{
    rq_order *list;
    size_t count;
    int64_t start_code;
    uint8_t *own = rq_arena_alloc(&b->arena, request.len + 1);
    if (own == NULL) return rq_no_memory(why);
    if (request.len > 0) memcpy(own, request.ptr, request.len);
    RQ_TRY(rq__orders_decode(rq_slice_of(own, request.len), &b->arena, &list, &count, &start_code,
                             why));
    pthread_mutex_lock(&o->lock);
    forget_old(o);
    rq_err rc = check(o, list, count, start_code, why);
    if (rc == RQ_OK) rc = enter_all(o, b, list, count, ret);
    pthread_mutex_unlock(&o->lock);
    if (rc == RQ_OK && count > 0) tell_revoked(o, b, rq_slice_of(own, request.len));
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

rq_err rq_orders_execute(rq_orders *o, rq_slice request, rq_error *why)
{
    rq_executor *ex = o->env->executor;
    batch *b = calloc(1, sizeof *b);
    rq_task *list = NULL;
    if (b == NULL) return rq_no_memory(why);
    b->refs = 1;
    rq_err rc = accept_all(o, b, request, &list, why);
    while (list != NULL) {
        rq_task *next = list->next;
        list->next = NULL;
        ex->submit(ex, RQ_POOL_WORK, list);
        list = next;
    }
    pthread_mutex_lock(&o->lock);
    unref_batch(b);
    pthread_mutex_unlock(&o->lock);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_orders_new(const rq_orders_options *options, rq_orders **ret)
{
    rq_orders *o = calloc(1, sizeof *o);
    if (o == NULL) return RQ_E_NO_MEMORY;
    o->o = *options;
    o->env = rq_engine_env(rq_host_engine(options->host));
    pthread_mutex_init(&o->lock, NULL);
    rq_err rc = o->env->executor->lane_new(o->env->executor, "rq orders", &o->lane);
    if (rc == RQ_OK)
        *ret = o;
    else
        rq_orders_free(o);
    return rc;
}

/* Drops an order without a report. The order of the same region that comes next is put before *list.
 * REQUIRES: lock held. */
static void give_up(rq_orders *o, entry *e, entry **list)
{
    entry *next = pass_turn(o, e);
    if (next == NULL) return;
    next->later = *list; /* it is not finished, so the field is free */
    *list = next;
}

void rq_orders_stop(rq_orders *o)
{
    rq_executor *ex = o->env->executor;
    rq_latch idle;
    entry *list = NULL;
    ex->latch_init(ex, &idle);
    pthread_mutex_lock(&o->lock);
    o->stopping = true;
    o->idle = &idle;
    bool wait = o->busy > 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (entry *e = o->buckets[i]; e != NULL; e = e->next)
            if (e->timer.task.run != NULL && ex->timer_cancel(ex, &e->timer)) give_up(o, e, &list);
    pthread_mutex_unlock(&o->lock);
    while (list != NULL) {
        rq_task *task = &list->task;
        list = list->later;
        ex->submit(ex, RQ_POOL_WORK, task);
    }
    if (wait) (void)ex->latch_wait(&idle); /* always opened with RQ_OK */
    pthread_mutex_lock(&o->lock);
    o->idle = NULL;
    pthread_mutex_unlock(&o->lock);
    ex->latch_destroy(&idle);
}

void rq_orders_free(rq_orders *o)
{
    if (o == NULL) return;
    if (o->lane != NULL) o->env->executor->lane_free(o->env->executor, o->lane);
    for (size_t i = 0; i < BUCKETS; i++) {
        while (o->buckets[i] != NULL) {
            entry *e = o->buckets[i];
            o->buckets[i] = e->next;
            release(e);
            if (e->batch != NULL) unref_batch(e->batch);
            free(e);
        }
    }
    pthread_mutex_destroy(&o->lock);
    free(o);
}
