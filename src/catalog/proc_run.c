/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a procedure: checks, record, steps one after the other, retries, parking, end. The rules
 * are in procedure.h.
 *
 * Threads: in tasks on RQ_POOL_WORK; a procedure that is `running` is used by one task at a time. */
#include "catalog/proc_priv.h"

#include <stdio.h>

#define RETRY_FIRST_NS UINT64_C(100000000)
#define RETRY_MAX_NS UINT64_C(60000000000)
#define WAIT_NS UINT64_C(1000000000)
#define REVIVE_NS UINT64_C(600000000000) /* of a parked procedure */

static void proc_retry(rq_task *task);

/* --- the end of a procedure ------------------------------------------------------------------- */

void rq__proc_note_error(rq__proc *p, rq_err rc, const rq_error *why)
{
    p->rc = rc;
    p->why = (rq_error){0};
    (void)rq_fail(&p->why, rc, "%s", why->code != RQ_OK ? why->message : rq_err_text(rc));
}

/* Logs the end of a procedure; the audit line of the call that submitted it has the same number. Successes and failures
 * have separate limits, so that successes do not suppress failures. */
static void log_end(const rq__proc *p)
{
    rq_executor *ex = p->catalog->env->executor;
    rq_log_limit *limit = &p->catalog->procedures.end_lines[p->rc != RQ_OK];
    const char *dot = strrchr(p->java_class, '.');
    int64_t ms = p->updated_ms - p->submitted_ms;
    uint64_t suppressed;
    if (!rq_log_takes(p->catalog->env->log, RQ_LOG_INFO) ||
        !rq_log_limit_passes(limit, rq__proc_log_rate(p), ex->now_ns(ex), &suppressed))
        return;
    const rq_log_field fields[] = {
        rq_log_number("suppressed", suppressed),
        rq_log_number("procedure", p->id),
        rq_log_text("kind", dot == NULL ? p->java_class : dot + 1),
        rq_log_bytes("on", p->table),
        rq_log_bytes("user", p->user),
        rq_log_number("ms", ms < 0 ? 0 : (uint64_t)ms),
        rq_log_text("result", p->rc == RQ_OK ? "ok" : rq_err_java_class(p->rc)),
        rq_log_text("why", p->why.message),
    };
    size_t first = suppressed == 0;
    size_t count = RQ_ARRAY_LEN(fields) - first - (p->rc == RQ_OK); /* success has no reason */
    rq_log_write_fields(p->catalog->env->log, RQ_LOG_INFO, "procedure",
                        p->rc == RQ_OK ? "done" : "failed", fields + first, count);
}

static void finish(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    if (rc != RQ_OK) rq__proc_note_error(p, rc, why);
    p->rc = rc;
    p->updated_ms = rq__catalog_wall_ms(c);
    p->ended = true;
    log_end(p);
    if (p->recorded) {
        /* Not waited for with one log, but in it before a client learns of the end (rule 4). */
        rq_error record = {0};
        if (rq__proc_write(p, !c->one_log, &record) != RQ_OK)
            rq_log_error(c->env->log, "catalog",
                         "procedure %llu has ended, but its end cannot be recorded: %s",
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
    rq__procs_notify_watches(ps, p);
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
    rq_task *list = rq__procs_take_startable(ps);
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
    rq__ddl_answer(d, rc, &end, id);
    if (!keep) rq__proc_free(p);
    rq__proc_evict(c, evicted);
}

/* The result of an aborted procedure. */
static rq_err fail_aborted(rq_err rc, const rq_error *why, rq_error *ret)
{
    const char *text = why->code != RQ_OK ? why->message : rq_err_text(rc);
    return rq_fail(ret, RQ_E_DO_NOT_RETRY, "Procedure aborted%s%s", rc == RQ_OK ? "" : ": ",
                   rc == RQ_OK ? "" : text);
}

static void finish_aborted(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_error end = {.code = RQ_OK};
    rc = fail_aborted(rc, why, &end);
    finish(p, rc, &end);
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
    rq__proc_log(p, RQ_LOG_WARN, rc, why, text);
    rq__proc_note_error(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    rq_task *list = NULL;
    p->retrying = true;
    if (p->ops->transient) { /* only retries, has nothing half done: others need not wait */
        p->sleeping = true;
        p->running = false;
        rq__queue_leave(ps, p);
        list = rq__procs_take_startable(ps);
    }
    if (!ps->stopping) {
        p->timer.task.run = proc_retry;
        c->env->executor->timer_arm(c->env->executor, &p->timer, ps->lane, delay);
    }
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
}

rq_task *rq__proc_unpark(rq__procedures *ps, rq__proc *p)
{
    p->parked = false;
    if (p->was_parked) p->step = 0; /* this run has done none of its steps */
    if (p->was_parked) p->written = 0;
    rq__queue_remove_parked(ps, p);
    rq__proc_free_names(p); /* its steps may change them */
    rq__queue_hold(ps, p);
    return rq__proc_take(ps, p);
}

static bool may_pass(const rq__proc *p, rq_err rc)
{
    return !p->unreadable && !rq_err_do_not_retry(rc);
}

/* Tries a parked procedure again; on the retry lane. HBase repeats the step without end, and conflicting procedures
 * wait. Here there is one attempt every ten minutes, and conflicting operations are refused with the reason. The
 * attempt is postponed if another procedure holds one of the locks of the parked one. */
static void proc_revive(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__proc *p = RQ_CONTAINER_OF(timer, rq__proc, timer);
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_task *list = NULL;
    pthread_mutex_lock(&ps->lock);
    p->revives = false;
    if (!ps->stopping && (p->aborted || rq__queue_is_free(ps, p)))
        list = rq__proc_unpark(ps, p);
    else
        rq__proc_revive_later(ps, p);
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
}

void rq__proc_revive_later(rq__procedures *ps, rq__proc *p)
{
    rq_executor *ex = p->catalog->env->executor;
    if (ps->stopping || !may_pass(p, p->rc)) return;
    p->revives = true;
    p->attempts = RQ__REPEATS_MAX; /* one more failure parks it again */
    p->timer.task.run = proc_revive;
    ex->timer_arm(ex, &p->timer, ps->lane, REVIVE_NS);
}

/* Procedures that wait for one that is now parked are refused, or continue if they do not conflict.
 * Returns the tasks to start. REQUIRES: lock held. */
static rq_task *release_waiters(rq__procedures *ps, rq__proc *parked)
{
    rq__queue_park(ps, parked);
    return rq__procs_take_startable(ps);
}

/* Parks the procedure: it runs no more steps, and blocks what proc_locks.c says. Clients that wait
 * for its end, or for its lock, get the error. */
static void park(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_error record = {0};
    rq__proc_log(p, RQ_LOG_ERROR, rc, why,
                 may_pass(p, rc)
                     ? "parked; tried again every 10 minutes, or when it is bypassed (HBCK2)"
                     : "parked until it is bypassed (HBCK2) or aborted");
    rq__proc_note_error(p, rc, why);
    rq__proc_sort_names(p);
    pthread_mutex_lock(&ps->lock);
    p->parked = p->parking = true;
    rq__procs_notify_watches(ps, p);
    rq__queue_add_parked(ps, p);
    pthread_mutex_unlock(&ps->lock);
    if (rq__proc_write(p, true, &record) != RQ_OK)
        rq_log_error(c->env->log, "catalog",
                     "procedure %llu is parked, but this cannot be recorded: %s; a restart would "
                     "continue the procedure",
                     (unsigned long long)p->id, record.message);
    rq__proc_answer(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    p->parking = false;
    bool goes_on = p->aborted && !ps->stopping;
    rq_task *list = goes_on ? rq__proc_unpark(ps, p) : release_waiters(ps, p);
    if (!goes_on) rq__proc_revive_later(ps, p);
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
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

rq_err rq__wait_a_while(rq__proc *p, rq_err rc, const char *text, rq_error *why)
{
    rq_error reason = {.code = RQ_OK};
    (void)rq_fail(&reason, rc, "%s", text);
    if (p == NULL || p->ops == NULL) return rq_fail(why, rc, "%s", text);
    if (!p->logged_waiting) rq__proc_log(p, RQ_LOG_WARN, rc, &reason, "waits");
    p->logged_waiting = true;
    if (p->ending == RQ__ENDING_NOT)
        rq__proc_note_error(p, rc, &reason); /* else it has its last error */
    p->wait_ns = WAIT_NS;
    return RQ_E_AGAIN;
}

static bool is_stopping(const rq__proc *p)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    bool stopping = ps->stopping;
    pthread_mutex_unlock(&ps->lock);
    return stopping;
}

/* Calls fn() again until it does not wait; GOES_ON: *ret is its result. When the master stops, the procedure is not
 * ended (LEFT), and the next start continues it from its record. */
static outcome run_waiting(rq__proc *p, rq_err (*fn)(rq__proc *p, rq_error *why), rq_err *ret,
                           rq_error *why)
{
    outcome o = GOES_ON;
    while (o == GOES_ON) {
        rq_error_clear(why);
        *ret = fn(p, why);
        if (*ret == RQ_E_SERVER_STOPPED && is_stopping(p)) return LEFT;
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
    bool ends = false;
    pthread_mutex_lock(&ps->lock);
    rq__proc *p = k->proc;
    bool last = --k->out == 0;
    if (last && p != NULL && p->waiting) {
        p->waiting = false;
        ends = ps->stopping; /* no task ends the step */
        if (!ends) task = rq__proc_take(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    if (ends) rq__step_end(ps);
    if (p != NULL)
        rq__procs_start(c, task); /* the calls may be gone */
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
    return p->ops->undo == NULL ? RQ_OK : p->ops->undo(p->catalog, p, why);
}

/* Begins an attempt of a step. What rq__parts_write has written before stays written. */
static void begin_attempt(rq__proc *p)
{
    rq__calls_drop(p);
    p->stage = 0;
    p->at = 0;
    p->logged_waiting = false;
}

/* Begins the next step, or an ending. */
static void begin_step(rq__proc *p)
{
    begin_attempt(p);
    p->written = 0;
}

/* Keeps the error with which the procedure will end. Without memory it ends with the error of its undo. */
static void keep_cause(rq__proc *p)
{
    if (p->cause != NULL || p->undoes) return;
    p->cause = rq_arena_alloc(&p->arena, sizeof *p->cause);
    if (p->cause == NULL) return;
    *p->cause = p->why;
    p->cause->code = p->rc;
}

/* Parks the procedure until its undo can go on. It is not ended, because the next start would take the rows that are left
 * for a table. Clients get the error of the change. */
static outcome park_undo(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_error both = {.code = RQ_OK};
    keep_cause(p);
    if (p->cause != NULL) rq__proc_answer(p, p->cause->code, p->cause);
    (void)rq_fail(&both, rc, "%s (in the undo of a change that had failed: %s)",
                  why->code != RQ_OK ? why->message : rq_err_text(rc),
                  p->cause != NULL ? p->cause->message : "see the log");
    p->undoes = true;
    p->aborted = false; /* another abort tries the undo at once */
    begin_attempt(p);
    park(p, rc, &both);
    return LEFT;
}

/* The undo is done, or there is none: ends the procedure with rc and why, or with the error that it had before its undo
 * was parked. */
static void finish_ended(rq__proc *p, rq__ending ending)
{
    rq_error why = p->cause != NULL ? *p->cause : p->why;
    rq_err rc = p->cause != NULL ? p->cause->code : p->rc;
    p->undoes = false;
    p->cause = NULL;
    if (p->aborted && ending != RQ__ENDING_UNDO)
        finish_aborted(p, rc, &why);
    else
        finish(p, rc, &why);
}

static outcome run_ending(rq__proc *p)
{
    rq_error why;
    rq_err rc = RQ_OK;
    outcome o = GOES_ON;
    if (!p->abandoned) o = run_waiting(p, abandon_opened, &rc, &why);
    if (o != GOES_ON) return o;
    if (!p->abandoned) begin_step(p);
    p->abandoned = true;
    rq__ending ending = p->ending;
    if (ending == RQ__ENDING_UNDO) {
        o = run_waiting(p, undo_steps, &rc, &why);
        if (o != GOES_ON) return o;
        if (rc != RQ_OK) return park_undo(p, rc, &why);
    }
    p->ending = RQ__ENDING_NOT;
    p->abandoned = false;
    begin_step(p);
    why = p->why;
    if (ending == RQ__ENDING_RETRY)
        retry_later(p, p->rc, &why);
    else
        finish_ended(p, ending);
    return LEFT;
}

static outcome end_by(rq__proc *p, rq__ending ending, rq_err rc, const rq_error *why)
{
    rq_error end = {.code = RQ_OK};
    if (ending == RQ__ENDING_UNDO && rc != RQ_OK) rq__proc_log(p, RQ_LOG_WARN, rc, why, "undone");
    if (ending == RQ__ENDING_UNDO && p->aborted) rc = fail_aborted(rc, why, &end);
    if (rc != RQ_OK)
        rq__proc_note_error(p, rc, end.code != RQ_OK ? &end : why);
    else
        p->why = (rq_error){0};
    p->rc = rc;
    p->ending = ending;
    p->abandoned = false;
    if (ending == RQ__ENDING_UNDO) p->attempts = 0; /* from here on those of the undo */
    begin_step(p);
    return run_ending(p);
}

/* Goes on with an undo that was parked before a restart. */
static outcome undo_on(rq__proc *p)
{
    rq_error why = p->why;
    rq_err rc = p->rc != RQ_OK ? p->rc : rq_fail(&why, RQ_E_DO_NOT_RETRY, "the change was undone");
    return end_by(p, RQ__ENDING_UNDO, rc, &why);
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

/* Whether the first step is the commit, and its sync makes the record durable too: records, meta and edits share one
 * log, so if the commit is durable, the record before it is durable as well. Not on a full disk, where the record is
 * synced alone, so that the procedure is refused before anything has changed. */
static bool is_durable_with_commit(const rq__proc *p)
{
    return p->catalog->one_log && p->ops->commits_first &&
           !rq_wal_lacks_space(rq_engine_wal(p->catalog->engine));
}

rq_err rq__proc_write_first(rq__proc *p, rq_error *why)
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
    if (*ret == RQ_OK) *ret = rq__proc_write_first(p, why);
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
        rq__proc_answer(p, RQ_OK, NULL);
}

/* Called after the first step of a procedure whose record was written without a sync. After a
 * successful commit the record is durable as well; if the commit will be repeated, the record is
 * written once more, with a sync. Then the submitter is answered. If this write fails, the submitter gets
 * no answer until the next attempt of the step, because an error would mean that no change is made. */
static void make_record_durable(rq__proc *p, rq_err rc)
{
    rq_error why = {.code = RQ_OK};
    if (rc != RQ_OK) rc = rq__proc_write(p, true, &why);
    if (rc != RQ_OK) {
        rq__proc_log(p, RQ_LOG_WARN, rc, &why, "its record is written later");
        return;
    }
    p->undurable = false;
    answer_accepted(p);
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
        if (p->undurable) make_record_durable(p, rc);
        if (p->ops->transient)
            return end_by(p, RQ__ENDING_RETRY, rc, why); /* it leaves its locks */
        begin_attempt(p);
        retry_later(p, rc, why);
        return LEFT;
    case RQ__FAIL_STAY:
        rq__proc_log(
            p, RQ_LOG_ERROR, rc, why,
            "not ended by the abort, because rows of hbase:meta may be missing or left over");
        p->aborted = false; /* it can be aborted again */
        RQ_FALLTHROUGH;
    case RQ__FAIL_PARK:
        begin_attempt(p);
        park(p, rc, why);
        return LEFT;
    case RQ__FAIL_LEAVE_OUT:
        break;
    }
    rq__proc_log(p, RQ_LOG_WARN, rc, why, "skipped, because the procedure was aborted");
    if (!p->left_out) rq__proc_note_error(p, rc, why);
    p->left_out = true;
    return GOES_ON;
}

/* Lets a LockService procedure wait, without a task, until its lock is released, aborted or not renewed in
 * time. False: this is already the case. */
static bool hold(rq__proc *p)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    int64_t now = rq__catalog_wall_ms(c);
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

/* Whether the procedure is between two steps, not in the middle of one. */
static bool is_between(const rq__proc *p)
{
    return p->calls == NULL && p->stage == 0;
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
    if (p->undoes) return undo_on(p);
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
        if (o == GOES_ON && rc != RQ_OK) o = go_on(p, rc, &why);
        if (o != GOES_ON) return o;
        if (p->undurable) make_record_durable(p, RQ_OK);
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
void rq__proc_run(rq_task *task)
{
    rq__proc *p = RQ_CONTAINER_OF(task, rq__proc, task);
    rq_catalog *c = p->catalog;
    if (!p->in_step) rq__step_begin(&c->procedures, c->env->executor);
    p->in_step = false;
    if (proc_work(p) != WAITS) rq__step_end(&c->procedures); /* it may be gone then */
    rq__procs_task_done(c);
}

rq_task *rq__proc_wake(rq__procedures *ps, rq__proc *p)
{
    p->retrying = false;
    if (!p->sleeping) return rq__proc_take(ps, p);
    p->sleeping = false;
    rq__queue_enter(ps, p);
    return rq__procs_take_startable(ps);
}

/* The timer's task: runs the next attempt. On the retry lane. */
static void proc_retry(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__proc *p = RQ_CONTAINER_OF(timer, rq__proc, timer);
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_task *list = NULL;
    pthread_mutex_lock(&ps->lock);
    if (!ps->stopping) list = rq__proc_wake(ps, p);
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
}
