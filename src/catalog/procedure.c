/* SPDX-License-Identifier: Apache-2.0 */
/* Runs procedures: acceptance, steps, retries, parking, abort, end. The rules are in procedure.h;
 * proc_priv.h tells where lists, locks, records and memory are handled.
 *
 * Threads: all blocking work runs in tasks on RQ_POOL_WORK. `lock` guards the lists and the fields
 * marked as guarded by it, and is never held across I/O. A procedure that holds its lock
 * (`running`) is used by one task at a time, so its other fields need no lock. */
#include "catalog/proc_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define RETRY_FIRST_NS UINT64_C(100000000)
#define RETRY_MAX_NS UINT64_C(60000000000)
#define WAIT_NS UINT64_C(1000000000)

static void proc_run(rq_task *task);
static void proc_retry(rq_task *task);

/* --- answers ---------------------------------------------------------------------------------- */

static void submitted_run(rq_task *task)
{
    rq_ddl *d = RQ_CONTAINER_OF(task, rq_ddl, task);
    d->submitted(d);
}

static void answer(rq_ddl *d, rq_err rc, const rq_error *why, uint64_t proc_id)
{
    if (d == NULL) return;
    d->rc = rc;
    d->why = (rq_error){0};
    if (rc != RQ_OK && why != NULL && why->code != RQ_OK) d->why = *why;
    d->proc_id = proc_id;
    if (d->lane == NULL) {
        d->submitted(d);
        return;
    }
    d->task.run = submitted_run;
    rq_lane_post(d->lane, &d->task);
}

/* Answers the procedure's submitter, unless it was answered before. */
static void answer_proc(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    rq_ddl *d = p->ddl;
    p->ddl = NULL;
    pthread_mutex_unlock(&ps->lock);
    answer(d, rc, why, p->id);
}

/* --- locks ------------------------------------------------------------------------------------ */

/* The procedure's task, counted as running. REQUIRES: lock held. */
static rq_task *take(rq__procedures *ps, rq__proc *p)
{
    p->running = true;
    ps->busy++;
    p->task = (rq_task){.run = proc_run};
    return &p->task;
}

/* Marks ready procedures as running and returns their tasks, linked by task.next. REQUIRES: lock
 * held. */
static rq_task *take_startable(rq__procedures *ps)
{
    rq_task *list = NULL, **end = &list;
    rq__proc *p;
    while (!ps->stopping && (p = rq__queue_ready(ps)) != NULL) {
        *end = take(ps, p);
        end = &p->task.next;
    }
    return list;
}

static void start_all(rq_catalog *c, rq_task *list)
{
    while (list != NULL) {
        rq_task *next = list->next;
        list->next = NULL;
        c->env->executor->submit(c->env->executor, RQ_POOL_WORK, list);
        list = next;
    }
}

static void schedule(rq_catalog *c)
{
    pthread_mutex_lock(&c->procedures.lock);
    rq_task *list = take_startable(&c->procedures);
    pthread_mutex_unlock(&c->procedures.lock);
    start_all(c, list);
}

/* Ends a task. The catalog may be freed when this returns. */
static void task_done(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    rq_latch *idle = --ps->busy == 0 ? ps->idle : NULL;
    pthread_mutex_unlock(&ps->lock);
    if (idle != NULL) idle->executor->latch_open(idle, RQ_OK);
}

bool rq__procedures_task_begin(rq_catalog *c)
{
    pthread_mutex_lock(&c->procedures.lock);
    bool go = !c->procedures.stopping;
    if (go) c->procedures.busy++;
    pthread_mutex_unlock(&c->procedures.lock);
    return go;
}

void rq__procedures_task_end(rq_catalog *c, void (*again)(rq_catalog *c))
{
    pthread_mutex_lock(&c->procedures.lock);
    if (!c->procedures.stopping) again(c);
    pthread_mutex_unlock(&c->procedures.lock);
    task_done(c);
}

/* --- the end of a procedure ------------------------------------------------------------------- */

static void note_error(rq__proc *p, rq_err rc, const rq_error *why)
{
    p->rc = rc;
    p->why = (rq_error){0};
    (void)rq_fail(&p->why, rc, "%s", why->code != RQ_OK ? why->message : rq_err_text(rc));
}

/* The line for the end of what began with the audit's line of the same number. */
static void tell_end(const rq__proc *p)
{
    const char *dot = strrchr(p->java_class, '.');
    int64_t ms = p->updated_ms - p->submitted_ms;
    const rq_log_field fields[] = {
        rq_log_number("procedure", p->id),
        rq_log_text("kind", dot == NULL ? p->java_class : dot + 1),
        rq_log_bytes("on", p->table),
        rq_log_bytes("user", p->user),
        rq_log_number("ms", ms < 0 ? 0 : (uint64_t)ms),
        rq_log_text("result", p->rc == RQ_OK ? "ok" : rq_err_java_class(p->rc)),
        rq_log_text("why", p->why.message),
    };
    size_t count = RQ_ARRAY_LEN(fields) - (p->rc == RQ_OK); /* success has no reason */
    rq_log_write_fields(p->catalog->env->log, RQ_LOG_INFO, "procedure",
                        p->rc == RQ_OK ? "done" : "failed", fields, count);
}

static void finish(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    if (rc != RQ_OK) note_error(p, rc, why);
    p->rc = rc;
    p->updated_ms = rq__catalog_now_ms(c);
    p->ended = true;
    tell_end(p);
    if (p->recorded) {
        /* Not waited for with one log, but in it before a client learns of the end (rule 4). */
        rq_error record = {0};
        if (rq__proc_write(p, !c->one_log, &record) != RQ_OK)
            rq_log_error(c->env->log, "catalog", "procedure %llu: cannot record its end: %s",
                         (unsigned long long)p->id, record.message);
    }
    rq__calls_drop(p);
    rq__calls_free(p->files);
    p->files = NULL;
    pthread_mutex_lock(&ps->lock);
    rq__procs_remove(ps, p);
    rq__queue_remove_parked(ps, p);
    rq__queue_leave(ps, p);
    rq__proc_slim(p);
    p->running = p->retrying = p->parked = false;
    p->finished = true;
    rq__procs_tell_watches(ps, p);
    *(rc == RQ_OK ? &ps->succeeded : &ps->failed) += 1;
    rq_ddl *d = p->ddl;
    p->ddl = NULL;
    /* A procedure that failed its checks is kept if it has a nonce: a client that repeats the call
     * gets the same result (HBASE: setFailureResultForNonce). */
    bool keep = p->recorded || p->ops->transient || p->nonce != 0;
    uint64_t id = p->id;
    rq_error end = p->why;
    rq__proc *evicted = NULL;
    if (keep) {
        rq__procs_keep(ps, p);
        evicted = rq__procs_take_evicted(ps, p->updated_ms);
    }
    rq_task *list = take_startable(ps);
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
    answer(d, rc, &end, id);
    if (!keep) rq__proc_free(p);
    rq__proc_evict(c, evicted);
}

/* Ends an aborted procedure with the abort's result. */
static void finish_aborted(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_error end = {0};
    const char *text = why->code != RQ_OK ? why->message : rq_err_text(rc);
    (void)rq_fail(&end, RQ_E_DO_NOT_RETRY, "Procedure aborted%s%s", rc == RQ_OK ? "" : ": ",
                  rc == RQ_OK ? "" : text);
    finish(p, RQ_E_DO_NOT_RETRY, &end);
}

static void retry_later(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    char text[64];
    uint64_t delay = RETRY_FIRST_NS << (p->attempts < 10 ? p->attempts : 10);
    if (delay > RETRY_MAX_NS) delay = RETRY_MAX_NS;
    p->attempts++;
    snprintf(text, sizeof text, "again in %llu ms", (unsigned long long)(delay / 1000000));
    rq__proc_tell(p, RQ_LOG_WARN, rc, why, text);
    note_error(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    rq_task *list = NULL;
    p->retrying = true;
    if (p->ops->transient) { /* only retries, has nothing half done: others need not wait */
        p->sleeping = true;
        p->running = false;
        rq__queue_leave(ps, p);
        list = take_startable(ps);
    }
    if (!ps->stopping) {
        p->timer.task.run = proc_retry;
        c->env->executor->timer_arm(c->env->executor, &p->timer, ps->lane, delay);
    }
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
}

/* Starts its next attempt, with its locks. REQUIRES: lock held. */
static rq_task *unpark(rq__procedures *ps, rq__proc *p)
{
    p->parked = false;
    rq__queue_remove_parked(ps, p);
    rq__queue_hold(ps, p);
    return take(ps, p);
}

/* Procedures that wait for one that is now parked are refused, or continue if they do not conflict.
 * Returns the tasks to start. REQUIRES: lock held. */
static rq_task *release_waiters(rq__procedures *ps, rq__proc *parked)
{
    rq__queue_park(ps, parked);
    return take_startable(ps);
}

/* Parks the procedure: it runs no more steps, and blocks what proc_locks.c says. Clients that wait
 * for its end, or for its lock, get the error. */
static void park(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_error record = {0};
    rq__proc_tell(p, RQ_LOG_ERROR, rc, why, "parked until it is aborted");
    note_error(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    p->parked = p->parking = true;
    rq__procs_tell_watches(ps, p);
    rq__queue_add_parked(ps, p);
    pthread_mutex_unlock(&ps->lock);
    if (rq__proc_write(p, true, &record) != RQ_OK)
        rq_log_error(
            c->env->log, "catalog",
            "procedure %llu: cannot record that it is parked, so a restart would continue it: %s",
            (unsigned long long)p->id, record.message);
    answer_proc(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    p->parking = false;
    rq_task *list = p->aborted && !ps->stopping ? unpark(ps, p) : release_waiters(ps, p);
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* How a task leaves its procedure. */
typedef enum outcome {
    GOES_ON,
    LEFT,  /* it ended, sleeps, is parked or holds its lock between two steps. It may be freed */
    WAITS, /* it waits for reports in the middle of a step. Another task may have resumed it */
} outcome;

static outcome wait_for_reports(rq__proc *p)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    bool waits = p->calls->out > 0;
    p->waiting = p->in_step = waits;
    pthread_mutex_unlock(&ps->lock);
    return waits ? WAITS : GOES_ON;
}

static outcome wait_for_time(rq__proc *p)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    uint64_t delay = p->wait_ns;
    p->wait_ns = 0;
    p->retrying = true;
    if (!ps->stopping) {
        p->timer.task.run = proc_retry;
        c->env->executor->timer_arm(c->env->executor, &p->timer, ps->lane, delay);
    }
    pthread_mutex_unlock(&ps->lock);
    return LEFT;
}

rq_err rq__wait_a_while(rq__proc *p, rq_error *why)
{
    if (p == NULL || p->ops == NULL)
        return rq_fail(why, RQ_E_SERVER_NOT_RUNNING, "no server is there to open regions");
    p->wait_ns = WAIT_NS;
    return RQ_E_AGAIN;
}

/* Calls the function until it no longer waits; GOES_ON: *ret is its result. */
static outcome run_waiting(rq__proc *p, rq_err (*fn)(rq__proc *p, rq_error *why), rq_err *ret,
                           rq_error *why)
{
    outcome o = GOES_ON;
    while (o == GOES_ON) {
        rq_error_clear(why);
        *ret = fn(p, why);
        if (*ret != RQ_E_AGAIN) return GOES_ON;
        if (p->wait_ns > 0)
            o = wait_for_time(p);
        else if (p->calls != NULL)
            o = wait_for_reports(p);
        else
            return GOES_ON; /* it holds (locks.c) */
    }
    return o;
}

void rq__proc_reported(rq__calls *k)
{
    rq_catalog *c = k->catalog;
    rq__procedures *ps = &c->procedures;
    rq_task *task = NULL;
    pthread_mutex_lock(&ps->lock);
    rq__proc *p = k->proc;
    bool last = --k->out == 0;
    if (last && p != NULL && p->waiting && !ps->stopping) {
        p->waiting = false;
        task = take(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    if (p != NULL)
        start_all(c, task); /* the calls may be gone */
    else if (last)
        k->all.executor->latch_open(&k->all, RQ_OK);
}

/* --- the end before the end ------------------------------------------------------------------- */

static rq_err abandon_opened(rq__proc *p, rq_error *why)
{
    (void)why;
    return rq__proc_abandon_opened(p);
}

static rq_err undo_steps(rq__proc *p, rq_error *why)
{
    (void)why;
    return p->ops->undo == NULL ? RQ_OK : p->ops->undo(p->catalog, p);
}

static void begin_step(rq__proc *p)
{
    rq__calls_drop(p);
    p->stage = 0;
    p->at = 0;
}

static outcome run_ending(rq__proc *p)
{
    rq_error why;
    rq_err rc;
    outcome o = GOES_ON;
    if (!p->abandoned) o = run_waiting(p, abandon_opened, &rc, &why);
    if (o != GOES_ON) return o;
    if (!p->abandoned) begin_step(p);
    p->abandoned = true;
    if (p->ending == RQ__ENDING_UNDO) o = run_waiting(p, undo_steps, &rc, &why);
    if (o != GOES_ON) return o;
    rq__ending ending = p->ending;
    p->ending = RQ__ENDING_NOT;
    p->abandoned = false;
    begin_step(p);
    why = p->why;
    if (ending == RQ__ENDING_RETRY)
        retry_later(p, p->rc, &why);
    else if (p->aborted)
        finish_aborted(p, p->rc, &why);
    else
        finish(p, p->rc, &why);
    return LEFT;
}

static outcome end_by(rq__proc *p, rq__ending ending, rq_err rc, const rq_error *why)
{
    if (ending == RQ__ENDING_UNDO && rc != RQ_OK) rq__proc_tell(p, RQ_LOG_WARN, rc, why, "undone");
    if (rc != RQ_OK)
        note_error(p, rc, why);
    else
        p->why = (rq_error){0};
    p->rc = rc;
    p->ending = ending;
    p->abandoned = false;
    begin_step(p);
    return run_ending(p);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Locks the regions it is going to create: once they are in the view, others may name them. */
static rq_err lock_new_regions(rq__proc *p)
{
    rq__procedures *ps = &p->catalog->procedures;
    if (p->ops->lock != RQ_LOCK_REGIONS) return RQ_OK;
    RQ_TRY(rq__claims_new(p));
    pthread_mutex_lock(&ps->lock);
    rq__queue_hold(ps, p);
    pthread_mutex_unlock(&ps->lock);
    return RQ_OK;
}

/* Whether the commit, which is the first step, makes the record durable: records, meta and edits share one
 * log, and what is durable of it is a prefix. On a full disk the record is refused by itself: then nothing has
 * been changed. */
static bool is_durable_with_commit(const rq__proc *p)
{
    return p->catalog->one_log && p->ops->commits_first &&
           !rq_wal_lacks_space(rq_engine_wal(p->catalog->engine));
}

static rq_err write_first(rq__proc *p, rq_error *why)
{
    rq_error full = {.code = RQ_OK};
    if (p->ops->transient) return RQ_OK;
    p->undurable = p->ddl != NULL && is_durable_with_commit(p);
    rq_err rc = rq__proc_write(p, !p->undurable, &full);
    if (rc == RQ_OK) return RQ_OK;
    if (p->ops->make_room != NULL && p->ops->make_room(p->catalog, p))
        return rq__proc_write(p, true, why);
    return rq_fail(why, rc, "%s", full.message);
}

static rq_err prepare(rq__proc *p, rq_error *why)
{
    return p->ops->prepare(p->catalog, p, why);
}

/* Runs the checks and writes the record. On success the procedure will be executed. */
static outcome begin(rq__proc *p, rq_err *ret, rq_error *why)
{
    *ret = RQ_OK;
    if (p->prepared) return GOES_ON;
    outcome o = run_waiting(p, prepare, ret, why);
    if (o != GOES_ON || *ret != RQ_OK) return o;
    begin_step(p);
    p->prepared = true;
    *ret = lock_new_regions(p);
    if (*ret == RQ_OK) *ret = write_first(p, why);
    return GOES_ON;
}

static rq_err run_step(rq__proc *p, rq_error *why)
{
    rq_catalog *c = p->catalog;
    const rq__procedures *ps = &c->procedures;
    if (ps->before_step != NULL) RQ_TRY(ps->before_step(ps->before_step_ctx, p, why));
    return p->ops->steps[p->step].run(c, p, why);
}

/* Call it once the record is durable: the procedure will be executed. */
static void answer_accepted(rq__proc *p)
{
    if (!p->ops->answer_at_end && !(p->ddl != NULL && p->ddl->wait_finished))
        answer_proc(p, RQ_OK, NULL);
}

/* Called after the first step of a procedure whose record was not durable. If the commit failed and
 * will be repeated, the submitter is answered once the record is durable. */
static void settle_record(rq__proc *p, rq_err rc)
{
    rq_error why = {.code = RQ_OK};
    p->undurable = false;
    if (rc != RQ_OK) rc = rq__proc_write(p, true, &why);
    if (rc == RQ_OK)
        answer_accepted(p);
    else
        answer_proc(p, rc, &why);
}

/* GOES_ON: with the next step. */
static outcome go_on(rq__proc *p, rq_err rc, const rq_error *why)
{
    switch (rq__proc_judge(p, rc)) {
    case RQ__FAIL_UNDO:
        return end_by(p, RQ__ENDING_UNDO, rc, why);
    case RQ__FAIL_END:
        return end_by(p, RQ__ENDING_FAIL, rc, why);
    case RQ__FAIL_REPEAT:
        if (p->undurable) settle_record(p, rc);
        if (p->ops->transient)
            return end_by(p, RQ__ENDING_RETRY, rc, why); /* it leaves its locks */
        begin_step(p);
        retry_later(p, rc, why);
        return LEFT;
    case RQ__FAIL_PARK:
        begin_step(p);
        park(p, rc, why);
        return LEFT;
    case RQ__FAIL_LEAVE_OUT:
        break;
    }
    rq__proc_tell(p, RQ_LOG_WARN, rc, why, "skipped, because the procedure was aborted");
    if (!p->left_out) note_error(p, rc, why);
    p->left_out = true;
    return GOES_ON;
}

/* The procedure keeps its lock without a task until it is released, aborted or not renewed in
 * time. False: it was released meanwhile. */
static bool hold(rq__proc *p)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    int64_t now = c->env->executor->now_ms(c->env->executor);
    pthread_mutex_lock(&ps->lock);
    int64_t left = p->of.lock.renewed_ms + rq__lock_timeout_ms(c) - now;
    bool stays = !p->of.lock.released && !p->aborted && left > 0;
    p->retrying = stays;
    p->rc = RQ_OK;
    if (stays && !ps->stopping) {
        p->timer.task.run = proc_retry;
        c->env->executor->timer_arm(c->env->executor, &p->timer, ps->lane,
                                    (uint64_t)left * 1000000);
    }
    pthread_mutex_unlock(&ps->lock);
    return stays;
}

static bool is_to_be_undone(rq__proc *p)
{
    if (p->ops->holds) return false; /* it has changed nothing: its step ends */

    return p->aborted && !p->ops->transient && p->step <= p->ops->commit &&
           rq__proc_commit_state(p) == RQ__COMMIT_NO;
}

/* Not in the middle of a step. */
static bool is_between(const rq__proc *p)
{
    return p->calls == NULL && p->stage == 0;
}

/* Then the procedure stays as it is recorded. */
static bool is_stopping(const rq__proc *p)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    bool stopping = ps->stopping;
    pthread_mutex_unlock(&ps->lock);
    return stopping;
}

static outcome finish_steps(rq__proc *p)
{
    if (!p->left_out) {
        finish(p, RQ_OK, NULL);
        return LEFT;
    }
    rq__proc_reopen_closed(p);
    rq_error why = p->why;
    return end_by(p, RQ__ENDING_FAIL, p->rc, &why);
}

static outcome run_steps(rq__proc *p)
{
    rq_error why = {0};
    rq_err rc;
    if (p->was_parked && p->ops->start_ends && rq__proc_commit_state(p) == RQ__COMMIT_YES) {
        finish(p, RQ_OK, NULL);
        return LEFT;
    }
    for (; p->step < RQ__STEPS_MAX && p->ops->steps[p->step].run != NULL; p->step++) {
        if (is_between(p)) {
            if (is_to_be_undone(p)) return end_by(p, RQ__ENDING_UNDO, RQ_OK, &why);
            rq__step_pause_point(&p->catalog->procedures, p->catalog->env->executor);
        }
        outcome o = run_waiting(p, run_step, &rc, &why);
        while (o == GOES_ON && p->ops->holds && rc == RQ_E_AGAIN) {
            if (hold(p)) return LEFT;
            rc = run_step(p, &why);
        }
        if (o == GOES_ON && rc == RQ_E_SERVER_STOPPED && is_stopping(p)) o = LEFT;
        if (o == GOES_ON && rc != RQ_OK) o = go_on(p, rc, &why);
        if (o != GOES_ON) return o;
        if (p->undurable) settle_record(p, RQ_OK);
        begin_step(p);
        p->attempts = 0;
    }
    return finish_steps(p);
}

static outcome proc_work(rq__proc *p)
{
    rq_error why = {0};
    if (p->ending != RQ__ENDING_NOT) return run_ending(p);
    if (p->refused) {
        why = p->why;
        finish(p, p->rc, &why);
        return LEFT;
    }
    if (p->aborted && (!p->prepared || p->unreadable)) {
        finish_aborted(p, RQ_OK, &why);
        return LEFT;
    }
    if (p->step == 0 && p->attempts == 0) {
        rq_err rc;
        outcome o = begin(p, &rc, &why);
        if (o == GOES_ON && rc != RQ_OK) {
            finish(p, rc, &why);
            o = LEFT;
        }
        if (o != GOES_ON) return o;
        if (!p->undurable) answer_accepted(p);
    }
    return run_steps(p);
}

/* A step that waits counts as running: a pause (proc_pause.c) waits for its end. */
static void proc_run(rq_task *task)
{
    rq__proc *p = RQ_CONTAINER_OF(task, rq__proc, task);
    rq_catalog *c = p->catalog;
    if (!p->in_step) rq__step_begin(&c->procedures, c->env->executor);
    p->in_step = false;
    if (proc_work(p) != WAITS) rq__step_end(&c->procedures); /* it may be gone then */
    task_done(c);
}

/* The next attempt of a procedure whose timer has fired. REQUIRES: lock held. */
static rq_task *wake(rq__procedures *ps, rq__proc *p)
{
    p->retrying = false;
    if (!p->sleeping) return take(ps, p);
    p->sleeping = false;
    rq__queue_enter(ps, p);
    return take_startable(ps);
}

/* On the retry lane. */
static void proc_retry(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__proc *p = RQ_CONTAINER_OF(timer, rq__proc, timer);
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_task *list = NULL;
    pthread_mutex_lock(&ps->lock);
    if (!ps->stopping) list = wake(ps, p);
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
}

/* --- abort ------------------------------------------------------------------------------------ */

static bool is_past_commit(const rq__proc *p)
{
    return p->step > p->ops->commit;
}

/* Whether it can be rolled back, and may be. HBASE: ProcedureExecutor.abort, StateMachineProcedure.abort
 * (isRollbackSupported), LockProcedure.abort. A parked procedure waits for this call. */
static bool may_abort(const rq__proc *p, bool if_running)
{
    bool has_begun = p->running || p->retrying;
    if (p->parked || p->unreadable) return true;
    if (has_begun && !if_running) return false;
    return !p->ops->not_abortable && !is_past_commit(p);
}

/* Whether it can be ended; then steps may be left out. */
static bool may_bypass(const rq__proc *p, bool if_running)
{
    (void)if_running;
    return !p->running || p->parked || p->retrying || !is_past_commit(p);
}

/* REQUIRES: lock held. */
static void abort_one(rq__procedures *ps, rq__proc *p, rq_task **list)
{
    rq_executor *ex = p->catalog->env->executor;
    p->aborted = true;
    if (p->retrying) {
        if (ex->timer_cancel(ex, &p->timer)) *list = wake(ps, p); /* else it is about to */
    } else if (p->parked && !p->parking) {
        if (p->was_parked) p->step = 0; /* this run has done none of its steps */
        *list = unpark(ps, p);
    } else if (!p->running && !p->prepared) {
        rq__queue_skip(ps, p); /* it has nothing to roll back, and needs no lock */
        *list = take_startable(ps);
    }
}

static bool end_if(rq_catalog *c, uint64_t proc_id, bool if_running,
                   bool (*may)(const rq__proc *p, bool if_running))
{
    rq__procedures *ps = &c->procedures;
    rq_task *list = NULL;
    pthread_mutex_lock(&ps->lock);
    rq__proc *p = ps->stopping ? NULL : rq__procs_active(ps, proc_id);
    bool done = p != NULL && may(p, if_running);
    if (done) abort_one(ps, p, &list);
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
    return done;
}

bool rq_catalog_procedure_abort(rq_catalog *c, uint64_t proc_id, bool if_running)
{
    return end_if(c, proc_id, if_running, may_abort);
}

bool rq_catalog_procedure_bypass(rq_catalog *c, uint64_t proc_id)
{
    return end_if(c, proc_id, true, may_bypass);
}

rq_err rq_catalog_lock_heartbeat(rq_catalog *c, uint64_t proc_id, bool keep, bool *ret_held,
                                 rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    rq_executor *ex = c->env->executor;
    rq_task *list = NULL;
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&ps->lock);
    rq__proc *p = ps->stopping ? NULL : rq__procs_active(ps, proc_id);
    if (p != NULL && !p->ops->holds)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "procedure %llu is not a lock but a %s",
                     (unsigned long long)proc_id, p->java_class);
    *ret_held = rc == RQ_OK && p != NULL && p->running && p->of.lock.renewed_ms != 0 && keep;
    if (*ret_held) p->of.lock.renewed_ms = ex->now_ms(ex);
    if (rc == RQ_OK && p != NULL) p->of.lock.heard_ms = ex->now_ms(ex);
    if (rc == RQ_OK && p != NULL && !keep) {
        p->of.lock.released = true;
        /* Not yet granted: its step ends as soon as it is. */
        if (p->retrying && ex->timer_cancel(ex, &p->timer)) list = wake(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
    return rc;
}

/* --- submission ------------------------------------------------------------------------------- */

static void refuse_for_now(rq__proc *p, rq_ddl *d)
{
    rq_error why = {0};
    rq_err rc = rq_fail(&why, RQ_E_CALL_QUEUE_TOO_BIG,
                        "Call queue is full on %s, too many unfinished procedures",
                        p->catalog->master->text);
    rq__proc_free(p);
    answer(d, rc, &why, 0);
}

/* Enters the procedure, or finds an earlier one with the same nonce. */
static rq__proc *enter(rq__proc *p, rq_ddl *d)
{
    rq__procedures *ps = &p->catalog->procedures;
    rq_executor *ex = p->catalog->env->executor;
    int64_t now_ms = ex->now_ms(ex);
    pthread_mutex_lock(&ps->lock);
    rq__proc *same = rq__procs_by_nonce(ps, p->nonce_group, p->nonce);
    uint64_t same_id = same == NULL ? 0 : same->id;
    bool waits = same != NULL && same->recording;
    if (same == NULL && !rq__procs_have_room(ps, p)) {
        pthread_mutex_unlock(&ps->lock);
        refuse_for_now(p, d);
        return NULL;
    }
    if (waits) {
        d->next = same->same;
        same->same = d;
    } else if (same == NULL) {
        p->id = ps->next_id++;
        if (p->ops->holds) p->of.lock.heard_ms = now_ms;
        p->recording = d != NULL && d->early && !p->ops->answer_at_end;
        p->ddl = p->recording ? NULL : d;
        p->running = p->recording; /* it is recorded before it may start */
        rq__procs_append(ps, p);
        rq__queue_enter(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    if (same == NULL) return p;
    if (!waits) answer(d, RQ_OK, NULL, same_id);
    rq__proc_free(p);
    return NULL;
}

static void accept_early(rq__proc *p, rq_ddl *d)
{
    rq_error why = {0};
    rq__procedures *ps = &p->catalog->procedures;
    rq_err rc = write_first(p, &why);
    uint64_t id = p->id;
    pthread_mutex_lock(&ps->lock);
    p->running = p->recording = false;
    d->next = p->same;
    if (rc == RQ_OK) {
        rq__queue_recorded(ps, p);
    } else {
        rq__queue_leave(ps, p);
        rq__procs_remove(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    /* From here on other threads may start it, and it may even end. */
    while (d != NULL) {
        rq_ddl *next = d->next; /* an answered one is its caller's */
        answer(d, rc, &why, rc == RQ_OK ? id : 0);
        d = next;
    }
    if (rc != RQ_OK) rq__proc_free(p);
}

/* Evicts expired results and their nonces, even if no procedure ends any more. */
static void evict_old(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    int64_t now = c->env->executor->now_ms(c->env->executor);
    pthread_mutex_lock(&ps->lock);
    rq__proc *list = rq__procs_take_evicted(ps, now);
    pthread_mutex_unlock(&ps->lock);
    rq__proc_evict(c, list);
}

static void accept_run(rq_task *task)
{
    rq_ddl *d = RQ_CONTAINER_OF(task, rq_ddl, task);
    rq_catalog *c = d->catalog;
    rq_error why = {0};
    rq_err rc = RQ_E_NO_MEMORY;
    rq__proc *p = rq__proc_new(c);
    if (p != NULL) rc = rq__proc_from_ddl(p, d);
    if (rc == RQ_OK && p->ops->precheck != NULL) rc = p->ops->precheck(c, p, &why);
    if (rc != RQ_OK) {
        rq__proc_free(p);
        answer(d, rc, &why, 0);
        task_done(c);
        return;
    }
    if (d->wait_finished) d->early = false;
    bool early = d->early && !p->ops->answer_at_end;
    evict_old(c);
    p = enter(p, d);
    if (p != NULL && early) accept_early(p, d);
    schedule(c);
    task_done(c);
}

void rq_catalog_submit(rq_catalog *c, rq_ddl *d)
{
    d->catalog = c;
    if (!rq__procedures_task_begin(c)) {
        rq_error why = {0};
        rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master->text);
        answer(d, rc, &why, 0);
        return;
    }
    d->task = (rq_task){.run = accept_run};
    c->env->executor->submit(c->env->executor, RQ_POOL_WORK, &d->task);
}

typedef struct sync_ddl {
    rq_ddl ddl;
    rq_latch latch;
} sync_ddl;

static void sync_submitted(rq_ddl *d)
{
    sync_ddl *s = RQ_CONTAINER_OF(d, sync_ddl, ddl);
    s->latch.executor->latch_open(&s->latch, RQ_OK);
}

rq_err rq__catalog_ddl_sync(rq_catalog *c, rq_ddl *d, rq_error *why)
{
    rq_executor *ex = c->env->executor;
    sync_ddl s = {.ddl = *d};
    s.ddl.lane = NULL;
    s.ddl.submitted = sync_submitted;
    s.ddl.wait_finished = true;
    ex->latch_init(ex, &s.latch);
    rq_catalog_submit(c, &s.ddl);
    rq_err waited = ex->latch_wait(&s.latch);
    ex->latch_destroy(&s.latch);
    d->rc = s.ddl.rc;
    d->why = s.ddl.why;
    d->proc_id = s.ddl.proc_id;
    if (waited != RQ_OK) return waited;
    if (d->rc != RQ_OK && d->why.code != RQ_OK) return rq_fail(why, d->rc, "%s", d->why.message);
    return d->rc;
}

void rq__procedures_reopen(rq_catalog *c, const rq_region_info *info)
{
    rq__proc *p = rq__proc_new(c);
    if (p == NULL) goto no_memory;
    if (rq__proc_to_reopen(p, info) != RQ_OK) goto no_memory;
    pthread_mutex_lock(&c->procedures.lock);
    if (c->procedures.stopping) {
        pthread_mutex_unlock(&c->procedures.lock);
        rq__proc_free(p);
        return;
    }
    p->id = c->procedures.next_id++;
    rq__procs_append(&c->procedures, p);
    rq__queue_enter(&c->procedures, p);
    rq_task *list = take_startable(&c->procedures);
    pthread_mutex_unlock(&c->procedures.lock);
    start_all(c, list);
    return;
no_memory:
    rq__proc_free(p);
    rq_log_error(c->env->log, "catalog", "out of memory for reopening region %s", info->encoded);
}

/* --- start and stop --------------------------------------------------------------------------- */

rq_err rq__procedures_init(rq_catalog *c, size_t bytes_max, rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    ps->bytes_max = bytes_max == 0 ? SIZE_MAX : bytes_max;
    pthread_mutex_init(&ps->lock, NULL);
    ps->next_id = 1;
    rq_err rc = rq__procs_init(ps);
    if (rc == RQ_OK) rc = c->env->executor->lane_new(c->env->executor, "procedures", &ps->lane);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

void rq__procedures_resume(rq_catalog *c)
{
    schedule(c);
}

void rq__procedures_stop(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    rq_executor *ex = c->env->executor;
    rq_latch idle;
    ex->latch_init(ex, &idle);
    pthread_mutex_lock(&ps->lock);
    ps->stopping = true;
    ps->idle = &idle;
    bool wait = ps->busy > 0;
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        if (p->timer.task.run != NULL) (void)ex->timer_cancel(ex, &p->timer);
    if (c->cleaner.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->cleaner.timer);
    if (c->snapshot_cleaner.timer.task.run != NULL)
        (void)ex->timer_cancel(ex, &c->snapshot_cleaner.timer);
    if (c->janitor.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->janitor.timer);
    if (c->normalizer.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->normalizer.timer);
    if (c->open_mark.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->open_mark.timer);
    if (c->mob_cleaner.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->mob_cleaner.timer);
    if (c->mob_compactor.timer.task.run != NULL)
        (void)ex->timer_cancel(ex, &c->mob_compactor.timer);
    pthread_mutex_unlock(&ps->lock);
    c->calls.stop(c->calls.ctx); /* nobody waits for a server any more */
    /* The latch is always opened with RQ_OK. */
    if (wait) (void)ex->latch_wait(&idle);
    pthread_mutex_lock(&ps->lock);
    ps->idle = NULL;
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        rq__procs_tell_watches(ps, p);
    pthread_mutex_unlock(&ps->lock);
    ex->latch_destroy(&idle);
    /* Nothing runs any more. Callers that still wait get an error. */
    rq_error why = {0};
    rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master->text);
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        answer_proc(p, rc, &why);
}

void rq__procedures_clear(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    if (ps->next_id == 0) return; /* never initialised */
    if (ps->lane != NULL) c->env->executor->lane_free(c->env->executor, ps->lane);
    rq__proc *lists[] = {ps->active, ps->finished};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lists); i++) {
        while (lists[i] != NULL) {
            rq__proc *next = lists[i]->next;
            rq__proc_free(lists[i]);
            lists[i] = next;
        }
    }
    rq__lock_table_free(ps->locks);
    free(ps->index[0]);
    free(ps->index[1]);
    pthread_mutex_destroy(&ps->lock);
}
