/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts procedures, starts their tasks, aborts and stops them; proc_run.c executes them. The rules
 * are in procedure.h; proc_priv.h tells where lists, locks, records and memory are handled.
 *
 * Threads: all blocking work runs in tasks on RQ_POOL_WORK. `lock` guards the lists and the fields
 * marked as guarded by it, and is never held across I/O. A procedure that holds its lock
 * (`running`) is used by one task at a time, so its other fields need no lock. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <stdlib.h>

/* --- answers ---------------------------------------------------------------------------------- */

static void submitted_run(rq_task *task)
{
    rq_ddl *d = RQ_CONTAINER_OF(task, rq_ddl, task);
    d->submitted(d);
}

void rq__ddl_answer(rq_ddl *d, rq_err rc, const rq_error *why, uint64_t proc_id)
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

void rq__proc_answer(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    rq_ddl *d = p->ddl;
    p->ddl = NULL;
    pthread_mutex_unlock(&ps->lock);
    rq__ddl_answer(d, rc, why, p->id);
}

/* --- tasks ------------------------------------------------------------------------------------ */

rq_task *rq__proc_take(rq__procedures *ps, rq__proc *p)
{
    p->running = true;
    ps->busy++;
    p->task = (rq_task){.run = rq__proc_run};
    return &p->task;
}

rq_task *rq__procs_take_startable(rq__procedures *ps)
{
    rq_task *list = NULL, **end = &list;
    rq__proc *p;
    while (!ps->stopping && (p = rq__queue_ready(ps)) != NULL) {
        *end = rq__proc_take(ps, p);
        end = &p->task.next;
    }
    return list;
}

void rq__procs_start(rq_catalog *c, rq_task *list)
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
    rq_task *list = rq__procs_take_startable(&c->procedures);
    pthread_mutex_unlock(&c->procedures.lock);
    rq__procs_start(c, list);
}

void rq__procs_task_done(rq_catalog *c)
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
        if (ex->timer_cancel(ex, &p->timer)) *list = rq__proc_wake(ps, p); /* else it is about to */
    } else if (p->parked && !p->parking) {
        bool is_due = p->revives && !ex->timer_cancel(ex, &p->timer);
        if (is_due) return; /* its timer has fired, and does it */
        p->revives = false;
        *list = rq__proc_unpark(ps, p);
    } else if (!p->running && !p->prepared) {
        rq__queue_skip(ps, p); /* it has nothing to roll back, and needs no lock */
        *list = rq__procs_take_startable(ps);
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
    rq__procs_start(c, list);
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
        if (p->retrying && ex->timer_cancel(ex, &p->timer)) list = rq__proc_wake(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    rq__procs_start(c, list);
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
    rq__ddl_answer(d, rc, &why, 0);
}

/* What a repeated call is answered with. */
typedef struct repeated {
    uint64_t id; /* 0: the record is being written, and the call will be answered with it */
    rq_err rc;
    rq_error why;
} repeated;

/* Whether an earlier procedure has the same nonce. A call that is answered at the end gets the result of one that has ended:
 * its client asks for no result. REQUIRES: lock held. */
static bool has_same(rq__procedures *ps, const rq__proc *p, rq_ddl *d, repeated *ret)
{
    rq__proc *same = rq__procs_by_nonce(ps, p->nonce_group, p->nonce);
    if (same == NULL) return false;
    bool wants_result = d != NULL && d->wait_finished && same->finished;
    ret->id = same->recording ? 0 : same->id;
    ret->rc = wants_result ? same->rc : RQ_OK;
    ret->why = wants_result ? same->why : (rq_error){0};
    if (same->recording) {
        d->next = same->same;
        same->same = d;
    }
    return true;
}

/* Whether the client has sent the call before; then it is or will be answered. A repeated call must not be checked
 * again: the change may have been made. HBASE: MasterProcedureUtil.submitProcedure registers the nonce before the
 * checks. */
static bool is_repeated(const rq__proc *p, rq_ddl *d)
{
    rq__procedures *ps = &p->catalog->procedures;
    repeated earlier;
    pthread_mutex_lock(&ps->lock);
    bool same = has_same(ps, p, d, &earlier);
    pthread_mutex_unlock(&ps->lock);
    if (same && earlier.id != 0) rq__ddl_answer(d, earlier.rc, &earlier.why, earlier.id);
    return same;
}

/* Enters the procedure, or finds an earlier one with the same nonce. */
static rq__proc *enter(rq__proc *p, rq_ddl *d)
{
    rq__procedures *ps = &p->catalog->procedures;
    rq_executor *ex = p->catalog->env->executor;
    int64_t now_ms = ex->now_ms(ex);
    repeated earlier;
    pthread_mutex_lock(&ps->lock);
    bool same = has_same(ps, p, d, &earlier);
    if (!same && !rq__procs_have_room(ps, p)) {
        pthread_mutex_unlock(&ps->lock);
        refuse_for_now(p, d);
        return NULL;
    }
    if (!same) {
        p->id = ps->next_id++;
        if (p->ops->holds) p->of.lock.heard_ms = now_ms;
        p->recording = d != NULL && d->early && !p->ops->answer_at_end;
        p->ddl = p->recording ? NULL : d;
        p->running = p->recording; /* it is recorded before it may start */
        rq__procs_append(ps, p);
        rq__queue_enter(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    if (!same) return p;
    if (earlier.id != 0) rq__ddl_answer(d, earlier.rc, &earlier.why, earlier.id);
    rq__proc_free(p);
    return NULL;
}

static void accept_early(rq__proc *p, rq_ddl *d)
{
    rq_error why = {0};
    rq__procedures *ps = &p->catalog->procedures;
    rq_err rc = rq__proc_write_first(p, &why);
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
        rq__ddl_answer(d, rc, &why, rc == RQ_OK ? id : 0);
        d = next;
    }
    if (rc != RQ_OK) rq__proc_free(p);
}

/* Evicts expired results and their nonces, even if no procedure ends any more. */
static void evict_old(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    int64_t now = rq__catalog_wall_ms(c);
    pthread_mutex_lock(&ps->lock);
    rq__proc *list = rq__procs_take_evicted(ps, now);
    pthread_mutex_unlock(&ps->lock);
    rq__proc_evict(c, list);
}

/* Refuses names that are longer than any folder's: no table or namespace has such a name. (Prechecks have refused it
 * for new ones.) Ten thousand results are kept with their names, so a name must not be as long as a request. */
static rq_err check_lengths(const rq__proc *p, rq_error *why)
{
    bool of_ns = p->ops->lock == RQ_LOCK_NAMESPACE;
    rq_slice name = of_ns || p->qualifier.len <= RQ_NAME_MAX ? p->ns : p->qualifier;
    if (name.len <= RQ_NAME_MAX) return RQ_OK;
    return rq_fail(why, of_ns ? RQ_E_NAMESPACE_NOT_FOUND : RQ_E_TABLE_NOT_FOUND, "%.*s",
                   RQ_NAME_MAX, (const char *)name.ptr);
}

/* HBASE: ProtobufUtil.toTableName. */
static rq_err check_name(const rq__proc *p, rq_error *why)
{
    bool is_table =
        p->ops->lock != RQ_LOCK_NAMESPACE && !rq_slice_eq(p->ns, RQ_SLICE_LIT(RQ_SNAPSHOT_NS));
    return is_table ? rq_table_name_check(p->ns, p->qualifier, why) : RQ_OK;
}

/* Ends a procedure that was refused before it was entered. Its error is kept as the result of its nonce, if a repetition of
 * the call must get it again, even if the change has become possible meanwhile. Errors that may pass are not kept: the
 * client retries with the same nonce. HBASE: ProcedureExecutor.setFailureResultForNonce. */
static void end_refused(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    rq_error too_long = {0};
    if (p->nonce == 0 || !rq_err_do_not_retry(rc) || check_lengths(p, &too_long) != RQ_OK) {
        rq__proc_free(p);
        return;
    }
    rq__proc_slim(p);
    p->updated_ms = rq__catalog_wall_ms(c);
    p->ended = p->finished = true;
    rq__proc_note_error(p, rc, why);
    pthread_mutex_lock(&ps->lock);
    bool same = rq__procs_by_nonce(ps, p->nonce_group, p->nonce) != NULL;
    rq__proc *evicted = NULL;
    if (!same) {
        p->id = ps->next_id++;
        rq__procs_keep(ps, p);
        evicted = rq__procs_take_evicted(ps, p->updated_ms);
    }
    pthread_mutex_unlock(&ps->lock);
    if (same) rq__proc_free(p);
    rq__proc_evict(c, evicted);
}

static void accept_run(rq_task *task)
{
    rq_ddl *d = RQ_CONTAINER_OF(task, rq_ddl, task);
    rq_catalog *c = d->catalog;
    rq_error why = {0};
    rq_err rc = RQ_E_NO_MEMORY;
    evict_old(c);
    rq__proc *p = rq__proc_new(c);
    if (p != NULL) rc = rq__proc_from_ddl(p, d);
    if (rc == RQ_OK) rc = check_name(p, &why);
    if (rc == RQ_OK && is_repeated(p, d)) {
        rq__proc_free(p);
        rq__procs_task_done(c);
        return;
    }
    bool is_checked = rc == RQ_OK;
    if (rc == RQ_OK && p->ops->precheck != NULL) rc = p->ops->precheck(c, p, &why);
    if (rc == RQ_OK) rc = check_lengths(p, &why);
    if (rc != RQ_OK) {
        if (is_checked)
            end_refused(p, rc, &why);
        else
            rq__proc_free(p);
        rq__ddl_answer(d, rc, &why, 0);
        rq__procs_task_done(c);
        return;
    }
    if (d->wait_finished) d->early = false;
    bool early = d->early && !p->ops->answer_at_end;
    p = enter(p, d);
    if (p != NULL && early) accept_early(p, d);
    schedule(c);
    rq__procs_task_done(c);
}

void rq_catalog_submit(rq_catalog *c, rq_ddl *d)
{
    d->catalog = c;
    if (!rq__procedures_task_begin(c)) {
        rq_error why = {0};
        rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master->text);
        rq__ddl_answer(d, rc, &why, 0);
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

/* --- start and stop --------------------------------------------------------------------------- */

rq_err rq__procedures_init(rq_catalog *c, size_t bytes_max, rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    ps->bytes_max = bytes_max == 0 ? SIZE_MAX : bytes_max;
    pthread_mutex_init(&ps->lock, NULL);
    ps->next_id = 1;
    rq__procedures_reopen_init(ps);
    rq_err rc = rq__procs_init(ps);
    if (rc == RQ_OK) rc = c->env->executor->lane_new(c->env->executor, "procedures", &ps->lane);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

void rq__procedures_resume(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_lock(&ps->lock);
    for (rq__proc *p = ps->parked; p != NULL; p = p->parked_next)
        rq__proc_revive_later(ps, p);
    pthread_mutex_unlock(&ps->lock);
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
    rq__chore *chores[] = {&c->cleaner.chore, &c->janitor.chore, &c->snapshot_cleaner,
                           &c->normalizer,    &c->balancer,      &c->open_mark,
                           &c->mob_cleaner,   &c->mob_compactor};
    for (size_t i = 0; i < RQ_ARRAY_LEN(chores); i++)
        rq__chore_cancel(chores[i]);
    (void)ex->timer_cancel(ex, &ps->lost.timer);
    pthread_mutex_unlock(&ps->lock);
    c->calls.stop(c->calls.ctx); /* nobody waits for a server any more */
    /* The latch is always opened with RQ_OK. */
    if (wait) (void)ex->latch_wait(&idle);
    pthread_mutex_lock(&ps->lock);
    ps->idle = NULL;
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        rq__procs_notify_watches(ps, p);
    pthread_mutex_unlock(&ps->lock);
    ex->latch_destroy(&idle);
    /* Nothing runs any more. Callers that still wait get an error. */
    rq_error why = {0};
    rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master->text);
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        rq__proc_answer(p, rc, &why);
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
