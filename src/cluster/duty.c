/* SPDX-License-Identifier: Apache-2.0 */
/* A server's reports; see duty.h. One message at a time: it is made and sent on RQ_POOL_WORK. The next one follows
 * after its answer and a pause (timer). */
#include "cluster/duty.h"

#include "cluster/load.h"
#include "cluster/wire_priv.h"

#include "proto/region_server_status.pb-c.h"

#include <pthread.h>
#include <stdlib.h>

struct rq_duty {
    rq_duty_options o;
    const rq_env *env;
    rq_lane *lane;
    rq_arena arena; /* of the message */
    rq_load_period period;
    rq_report report;
    rq_task task;
    rq_timer timer;
    bool failing;         /* the last attempt to report has failed, and this was logged */
    pthread_mutex_t lock; /* guards the fields below */
    bool taken, busy, stopping;
    bool again_now;    /* another report is wanted when the one under way has ended */
    unsigned again_ms; /* until the next attempt, if one fails */
    rq_latch *idle;
};

static bool is_taken(rq_duty *d)
{
    pthread_mutex_lock(&d->lock);
    bool taken = d->taken;
    pthread_mutex_unlock(&d->lock);
    return taken;
}

/* --- messages --------------------------------------------------------------------------------- */

static rq_err make_startup(rq_duty *d)
{
    const rq_server_name *self = rq_host_name(d->o.host);
    rq_executor *ex = d->env->executor;
    Pb__RegionServerStartupRequest m = PB__REGION_SERVER_STARTUP_REQUEST__INIT;
    m.port = self->port;
    m.server_start_code = (uint64_t)self->start_code;
    m.server_current_time = (uint64_t)ex->now_ms(ex);
    m.use_this_hostname_instead = rq__wire_text(self->host);
    d->report.method = "RegionServerStartup";
    return rq__wire_pack(&d->arena, &m.base, &d->report.request);
}

static rq_err put_sink(rq_duty *d, Pb__ServerLoad *m)
{
    rq_sink_load load;
    if (d->o.sink == NULL) return RQ_OK;
    d->o.sink(d->o.ctx, &load);
    m->replloadsink = rq_sink_load_message(&d->arena, &load);
    return m->replloadsink == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err put_sources(rq_duty *d, Pb__ServerLoad *m)
{
    rq_source_load *list;
    size_t count;
    if (d->o.sources == NULL) return RQ_OK;
    RQ_TRY(d->o.sources(d->o.ctx, &d->arena, &list, &count));
    m->replloadsource = rq_arena_alloc(&d->arena, (count + 1) * sizeof *m->replloadsource);
    if (m->replloadsource == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ReplicationLoadSource *one = rq_source_load_message(&d->arena, &list[i]);
        if (one == NULL) return RQ_E_NO_MEMORY;
        m->replloadsource[m->n_replloadsource++] = one;
    }
    return RQ_OK;
}

static rq_err make_report(rq_duty *d)
{
    Pb__RegionServerReportRequest m = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    m.server = rq__wire_put_server(&d->arena, rq_host_name(d->o.host));
    if (m.server == NULL) return RQ_E_NO_MEMORY;
    m.has_lease_expired_ms = d->o.lease_expired_ms != NULL;
    if (m.has_lease_expired_ms) m.lease_expired_ms = d->o.lease_expired_ms(d->o.ctx);
    RQ_TRY(rq__server_load_message(d->o.host, d->o.info_port, &d->period, &d->arena, &m.load));
    RQ_TRY(put_sink(d, m.load));
    RQ_TRY(put_sources(d, m.load));
    d->report.method = "RegionServerReport";
    return rq__wire_pack(&d->arena, &m.base, &d->report.request);
}

/* --- one after the other ---------------------------------------------------------------------- */

/* After a report that was not taken. A new master, which waits for the reports of all, is known before it takes any. */
#define AGAIN_FIRST_MS 50
#define AGAIN_MAX_MS 500

static void run_due(rq_task *task)
{
    rq_duty *d = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq_duty, timer);
    rq_executor *ex = d->env->executor;
    pthread_mutex_lock(&d->lock);
    d->busy = !d->stopping;
    bool goes = d->busy;
    pthread_mutex_unlock(&d->lock);
    if (goes) ex->submit(ex, RQ_POOL_WORK, &d->task);
}

/* Longer after each failure. REQUIRES: lock held. */
static unsigned pause_ms(rq_duty *d)
{
    unsigned ms = d->again_ms;
    d->again_ms = !d->failing ? AGAIN_FIRST_MS : 2 * ms < AGAIN_MAX_MS ? 2 * ms : AGAIN_MAX_MS;
    return d->failing && ms < d->o.period_ms ? ms : d->o.period_ms;
}

/* `more`: another report is sent after the period. */
static void pause_or_end(rq_duty *d, bool more)
{
    rq_executor *ex = d->env->executor;
    pthread_mutex_lock(&d->lock);
    uint64_t ms = d->again_now && !d->failing ? 0 : pause_ms(d);
    d->busy = d->again_now = false;
    if (more && !d->stopping) ex->timer_arm(ex, &d->timer, d->lane, ms * 1000000);
    if (d->idle != NULL) d->idle->executor->latch_open(d->idle, RQ_OK);
    pthread_mutex_unlock(&d->lock);
}

static void note_failure(rq_duty *d, rq_err rc, const rq_error *why)
{
    const char *text = why != NULL && why->code != RQ_OK ? why->message : rq_err_text(rc);
    if (!d->failing)
        rq_log_warn(d->env->log, "cluster",
                    "the master does not accept %s of this server: %s; the report is repeated",
                    d->report.method, text);
    d->failing = true;
}

static void note_taken(rq_duty *d)
{
    pthread_mutex_lock(&d->lock);
    bool first = !d->taken;
    d->taken = true;
    pthread_mutex_unlock(&d->lock);
    if (first || d->failing)
        rq_log_info(d->env->log, "cluster", "the master accepts this server's reports");
    d->failing = false;
}

static void answered(rq_report *r, rq_err rc)
{
    rq_duty *d = RQ_CONTAINER_OF(r, rq_duty, report);
    bool fatal =
        rc == RQ_E_YOU_ARE_DEAD || rc == RQ_E_CLOCK_OUT_OF_SYNC || rc == RQ_E_HOST_REJECTED;
    if (rc == RQ_OK)
        note_taken(d);
    else
        note_failure(d, rc, r->why);
    if (fatal && d->o.fatal != NULL) d->o.fatal(d->o.ctx, rc, r->why);
    pause_or_end(d, !fatal);
}

static void note_hanging(rq_duty *d)
{
    if (!d->failing)
        rq_log_error(d->env->log, "cluster",
                     "an event loop is blocked: this server does not report to the master until "
                     "the loop runs again");
    d->failing = true;
}

static void send(rq_task *task)
{
    rq_duty *d = RQ_CONTAINER_OF(task, rq_duty, task);
    if (d->o.serves != NULL && !d->o.serves(d->o.ctx)) {
        note_hanging(d);
        pause_or_end(d, true);
        return;
    }
    rq_arena_clear(&d->arena);
    d->report = (rq_report){.done = answered};
    rq_err rc = is_taken(d) ? make_report(d) : make_startup(d);
    if (rc == RQ_OK)
        d->o.report(d->o.ctx, &d->report);
    else
        answered(&d->report, rc);
}

void rq_duty_now(rq_duty *d)
{
    rq_executor *ex = d->env->executor;
    pthread_mutex_lock(&d->lock);
    /* A report under way may have been made before the change, or may fail: another one follows soon. */
    d->again_ms = AGAIN_FIRST_MS;
    d->again_now = d->busy;
    if (!d->busy && !d->stopping && ex->timer_cancel(ex, &d->timer))
        ex->timer_arm(ex, &d->timer, d->lane, 0);
    pthread_mutex_unlock(&d->lock);
}

/* --- life ------------------------------------------------------------------------------------- */

bool rq_duty_is_taken(rq_duty *d)
{
    return is_taken(d);
}

static void duty_free(rq_duty *d)
{
    rq_arena_clear(&d->arena);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

rq_err rq_duty_begin(const rq_duty_options *options, rq_duty **ret)
{
    rq_duty *d = calloc(1, sizeof *d);
    if (d == NULL) return RQ_E_NO_MEMORY;
    d->o = *options;
    if (d->o.period_ms == 0) d->o.period_ms = RQ_DUTY_PERIOD_MS;
    d->again_ms = AGAIN_FIRST_MS;
    d->env = rq_engine_env(rq_host_engine(options->host));
    d->task.run = send;
    d->timer.task.run = run_due;
    pthread_mutex_init(&d->lock, NULL);
    rq_executor *ex = d->env->executor;
    rq_err rc = ex->lane_new(ex, "rq duty", &d->lane);
    if (rc != RQ_OK) {
        duty_free(d);
        return rc;
    }
    d->busy = true;
    *ret = d;
    ex->submit(ex, RQ_POOL_WORK, &d->task);
    return RQ_OK;
}

static void wait_until_idle(rq_duty *d)
{
    rq_executor *ex = d->env->executor;
    rq_latch idle;
    ex->latch_init(ex, &idle);
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    (void)ex->timer_cancel(ex, &d->timer);
    bool wait = d->busy;
    if (wait) d->idle = &idle;
    pthread_mutex_unlock(&d->lock);
    if (wait) (void)ex->latch_wait(&idle); /* always opened with RQ_OK */
    pthread_mutex_lock(
        &d->lock); /* the thread that opened it holds the lock until it is done with `d` */
    d->idle = NULL;
    pthread_mutex_unlock(&d->lock);
    ex->latch_destroy(&idle);
}

typedef struct farewell {
    rq_report report;
    rq_latch answered;
} farewell;

static void farewell_answered(rq_report *r, rq_err rc)
{
    farewell *f = RQ_CONTAINER_OF(r, farewell, report);
    (void)
        rc; /* whoever has not heard it fences this server when its port is closed; then others replay its log */
    f->answered.executor->latch_open(&f->answered, RQ_OK);
}

void rq_duty_leave(rq_duty *d)
{
    if (d == NULL) return;
    wait_until_idle(d);
    if (!is_taken(d)) return;
    rq_executor *ex = d->env->executor;
    farewell f = {.report = {.method = "RegionServerLeaving", .done = farewell_answered}};
    ex->latch_init(ex, &f.answered);
    d->o.report(d->o.ctx, &f.report);
    (void)ex->latch_wait(&f.answered); /* always opened with RQ_OK */
    ex->latch_destroy(&f.answered);
}

void rq_duty_end(rq_duty *d)
{
    if (d == NULL) return;
    wait_until_idle(d);
    d->env->executor->lane_free(d->env->executor, d->lane);
    duty_free(d);
}
