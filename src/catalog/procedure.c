/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Procedures run: accepting, locks, steps, repetition, results. The rules stand in procedure.h.
 *
 * Threads: everything that blocks runs in tasks on RQ_POOL_WORK; `lock` guards the lists and the
 * fields said to be under it and is never held across I/O. A procedure that holds its lock
 * (`running`) is worked on by one task at a time, so its other fields need no lock.
 */
#include "catalog/catalog_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define RETRY_FIRST_NS UINT64_C(100000000)
#define RETRY_MAX_NS UINT64_C(60000000000)
/* HBASE: CompletedProcedureCleaner: evict.ttl, acked.evict.ttl. */
#define KEEP_RESULT_MS (15 * 60 * 1000)
#define KEEP_ACKNOWLEDGED_MS (5 * 60 * 1000)
#define KEEP_RESULTS_MAX 10000

static void proc_run(rq_task *task);
static void proc_retry(rq_task *task);

/* --- a procedure's memory --------------------------------------------------------------------- */

static rq__proc *proc_alloc(rq_catalog *c)
{
    rq__proc *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    rq_arena_init(&p->arena);
    p->catalog = c;
    return p;
}

/* Regions it opened that never came into a view: nobody wrote to them. */
static void abandon_opened(rq__proc *p)
{
    if (p->opened != NULL) rq__opened_abandon(p->catalog, p->opened, p->opened_count);
}

/* What a result needs no more: region names, descriptors. */
static void proc_slim(rq__proc *p)
{
    rq_arena old = p->arena;
    rq_slice *kept[] = {&p->ns, &p->qualifier, &p->table, &p->user};
    rq_arena_init(&p->arena);
    rq_slice copies[RQ_ARRAY_LEN(kept)];
    for (size_t i = 0; i < RQ_ARRAY_LEN(kept); i++) {
        copies[i] = rq_arena_copy(&p->arena, *kept[i]);
        if (copies[i].ptr != NULL) continue;
        rq_arena_clear(&p->arena); /* no memory for less memory: it stays as it is */
        p->arena = old;
        return;
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(kept); i++)
        *kept[i] = copies[i];
    rq_arena_clear(&old);
    p->descriptor = p->family = (rq_slice){NULL, 0};
    p->split_keys = p->removed_families = NULL;
    p->regions = p->old_regions = NULL;
    p->split_key_count = p->removed_family_count = p->region_count = p->old_region_count = 0;
    free(p->opened);
    p->opened = NULL;
    p->opened_count = 0;
    rq_table_schema_unref(p->schema);
    p->schema = NULL;
}

static void proc_free(rq__proc *p)
{
    if (p == NULL) return;
    abandon_opened(p);
    free(p->opened);
    rq_table_schema_unref(p->schema);
    rq_arena_clear(&p->arena);
    free(p);
}

static bool copy_slice(rq__proc *p, rq_slice from, rq_slice *to)
{
    *to = rq_arena_copy(&p->arena, from);
    return to->ptr != NULL;
}

static rq_err proc_from_ddl(rq__proc *p, const rq_ddl *d)
{
    p->ops = rq__proc_kind_of(d->kind);
    if (p->ops == NULL) return RQ_E_INVALID;
    bool ok = copy_slice(p, d->ns, &p->ns) && copy_slice(p, d->qualifier, &p->qualifier) &&
              copy_slice(p, d->user, &p->user) && copy_slice(p, d->descriptor, &p->descriptor) &&
              copy_slice(p, d->family, &p->family);
    p->split_keys = rq_arena_calloc(&p->arena, d->split_key_count, sizeof *p->split_keys);
    if (!ok || p->split_keys == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < d->split_key_count; i++)
        if (!copy_slice(p, d->split_keys[i], &p->split_keys[i])) return RQ_E_NO_MEMORY;
    p->split_key_count = d->split_key_count;
    p->table = rq_table_name_join(&p->arena, p->ns, p->qualifier);
    if (p->table.ptr == NULL) return RQ_E_NO_MEMORY;
    p->nonce_group = d->nonce_group;
    p->nonce = d->nonce;
    p->preserve_splits = d->preserve_splits;
    p->no_reopen = d->no_reopen;
    p->forcible = d->forcible;
    p->submitted_ms = p->updated_ms = rq__catalog_now_ms(p->catalog);
    return RQ_OK;
}

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

/* Answers the procedure's submitter, if that has not happened yet. */
static void answer_proc(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    rq_ddl *d = p->ddl;
    p->ddl = NULL;
    pthread_mutex_unlock(&ps->lock);
    answer(d, rc, why, p->id);
}

/* --- records ---------------------------------------------------------------------------------- */

static rq_err write_record(rq__proc *p, bool synced, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region *store = NULL;
    rq_slice bytes;
    uint8_t row[8];
    rq_put_be64(row, p->id);
    rq_err rc = rq__store_ref(p->catalog, &store, why);
    if (rc == RQ_OK) rc = rq__proc_encode(p, &a, &bytes);
    if (rc == RQ_OK) {
        rq__batch b;
        rq__batch_init(&b, &a, rq__catalog_now_ms(p->catalog));
        rc = rq__batch_put(&b, rq_slice_of(row, 8), "proc", RQ_SLICE_LIT("d"), bytes);
        if (rc == RQ_OK) rc = rq__batch_commit(&b, store, synced, why);
    }
    if (store != NULL) rq_region_unref(store);
    rq_arena_clear(&a);
    if (rc == RQ_OK) p->recorded = true;
    return rc;
}

/* Deletes rows of the store; a failure leaves results longer than they need, no more. */
static rq_err delete_records(rq_catalog *c, const uint64_t *ids, size_t count, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region *store = NULL;
    rq__batch b;
    rq__batch_init(&b, &a, rq__catalog_now_ms(c));
    rq_err rc = rq__store_ref(c, &store, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        uint8_t *row = rq_arena_alloc(&a, 8);
        if (row == NULL) {
            rc = RQ_E_NO_MEMORY;
            break;
        }
        rq_put_be64(row, ids[i]);
        rc = rq__batch_delete_family(&b, rq_slice_of(row, 8), "proc");
    }
    if (rc == RQ_OK) rc = rq__batch_commit(&b, store, false, why);
    if (store != NULL) rq_region_unref(store);
    rq_arena_clear(&a);
    return rc;
}

/* --- locks ------------------------------------------------------------------------------------ */

static bool conflict(const rq__proc *a, const rq__proc *b)
{
    if (!rq_slice_eq(a->ns, b->ns)) return false;
    if (a->ops->on_namespace || b->ops->on_namespace) return true;
    return rq_slice_eq(a->qualifier, b->qualifier);
}

/* Marks what may start now as running and returns it, linked by task.next. REQUIRES: lock held. */
static rq_task *take_startable(rq__procedures *ps)
{
    rq_task *list = NULL, **end = &list;
    if (ps->stopping) return NULL;
    for (rq__proc *p = ps->active; p != NULL; p = p->next) {
        if (p->running) continue;
        bool free_to_go = true;
        for (const rq__proc *q = ps->active; q != p && free_to_go; q = q->next)
            free_to_go = !conflict(q, p);
        if (!free_to_go) continue;
        p->running = true;
        ps->busy++;
        p->task = (rq_task){.run = proc_run};
        *end = &p->task;
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

/* A task is over. The catalog may be gone when this returns. */
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

/* --- lists ------------------------------------------------------------------------------------ */

static void active_append(rq__procedures *ps, rq__proc *p)
{
    p->next = NULL;
    *ps->active_end = p;
    ps->active_end = &p->next;
}

static void active_remove(rq__procedures *ps, rq__proc *p)
{
    rq__proc **at = &ps->active;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (ps->active_end == &p->next) ps->active_end = at;
    p->next = NULL;
}

static rq__proc *find_nonce(rq__procedures *ps, uint64_t group, uint64_t nonce)
{
    if (nonce == 0) return NULL;
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        if (p->nonce == nonce && p->nonce_group == group) return p;
    for (rq__proc *p = ps->finished; p != NULL; p = p->next)
        if (p->nonce == nonce && p->nonce_group == group) return p;
    return NULL;
}

static rq__proc *find_id(rq__procedures *ps, uint64_t id)
{
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        if (p->id == id) return p;
    for (rq__proc *p = ps->finished; p != NULL; p = p->next)
        if (p->id == id) return p;
    return NULL;
}

/* Takes what nobody will ask for any more out of the results. REQUIRES: lock held. */
static rq__proc *take_evicted(rq__procedures *ps, int64_t now_ms)
{
    rq__proc *list = NULL;
    size_t kept = 0;
    for (rq__proc **at = &ps->finished; *at != NULL;) {
        rq__proc *p = *at;
        bool old = now_ms - p->updated_ms > KEEP_RESULT_MS ||
                   (p->acknowledged_ms != 0 && now_ms - p->acknowledged_ms > KEEP_ACKNOWLEDGED_MS);
        if (!old && kept < KEEP_RESULTS_MAX) {
            kept++;
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = list;
        list = p;
        ps->finished_count--;
    }
    return list;
}

static void evict(rq_catalog *c, rq__proc *list)
{
    while (list != NULL) {
        uint64_t ids[64];
        size_t n = 0;
        while (list != NULL && n < RQ_ARRAY_LEN(ids)) {
            rq__proc *next = list->next;
            if (list->recorded) ids[n++] = list->id;
            proc_free(list);
            list = next;
        }
        rq_error why = {0};
        if (n > 0 && delete_records(c, ids, n, &why) != RQ_OK)
            rq_log_warn(c->env->log, "catalog", "old procedures' results stay: %s", why.message);
    }
}

/* --- the end of a procedure ------------------------------------------------------------------- */

static void finish(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    rq__procedures *ps = &c->procedures;
    p->rc = rc;
    if (rc != RQ_OK) {
        p->why = (rq_error){0};
        (void)rq_fail(&p->why, rc, "%s", why->code != RQ_OK ? why->message : rq_err_text(rc));
    }
    p->updated_ms = rq__catalog_now_ms(c);
    p->ended = true;
    if (p->recorded) {
        /* Not waited for, but in the log before anybody hears of the end (rule 4). */
        rq_error record = {0};
        if (write_record(p, false, &record) != RQ_OK)
            rq_log_error(c->env->log, "catalog", "procedure %llu: its end cannot be recorded: %s",
                         (unsigned long long)p->id, record.message);
    }
    abandon_opened(p);
    pthread_mutex_lock(&ps->lock);
    active_remove(ps, p);
    proc_slim(p);
    p->running = false;
    p->finished = true;
    rq_ddl *d = p->ddl;
    p->ddl = NULL;
    /* One that failed its checks is kept as well when it has a nonce: a client that repeats the
     * call is told the same end (HBASE: setFailureResultForNonce). */
    bool keep = p->recorded || p->ops->transient || p->nonce != 0;
    uint64_t id = p->id;
    rq_error end = p->why;
    rq__proc *evicted = NULL;
    if (keep) {
        p->next = ps->finished;
        ps->finished = p;
        ps->finished_count++;
        evicted = take_evicted(ps, p->updated_ms);
    }
    rq_task *list = take_startable(ps);
    pthread_mutex_unlock(&ps->lock);
    start_all(c, list);
    answer(d, rc, &end, id);
    if (!keep) proc_free(p);
    evict(c, evicted);
}

static void retry_later(rq__proc *p, rq_err rc, const rq_error *why)
{
    rq_catalog *c = p->catalog;
    uint64_t delay = RETRY_FIRST_NS << (p->attempts < 10 ? p->attempts : 10);
    if (delay > RETRY_MAX_NS) delay = RETRY_MAX_NS;
    p->attempts++;
    rq_log_warn(
        c->env->log, "catalog", "procedure %llu (%s of %.*s), step %s: %s; again in %llu ms",
        (unsigned long long)p->id, p->ops->java_class, (int)p->table.len,
        (const char *)p->table.ptr, p->ops->steps[p->step].name,
        why->code != RQ_OK ? why->message : rq_err_text(rc), (unsigned long long)(delay / 1000000));
    pthread_mutex_lock(&c->procedures.lock);
    if (!c->procedures.stopping) {
        p->timer.task.run = proc_retry;
        c->env->executor->timer_arm(c->env->executor, &p->timer, c->procedures.lane, delay);
    }
    pthread_mutex_unlock(&c->procedures.lock);
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Checks and record. On success the procedure will be carried out. */
static rq_err begin(rq__proc *p, rq_error *why)
{
    if (!p->prepared) {
        RQ_TRY(p->ops->prepare(p->catalog, p, why));
        p->prepared = true;
        if (!p->ops->transient) RQ_TRY(write_record(p, true, why));
    }
    return RQ_OK;
}

static void proc_work(rq__proc *p)
{
    rq_catalog *c = p->catalog;
    const rq__proc_kind *ops = p->ops;
    rq_error why = {0};
    if (p->step == 0 && p->attempts == 0) {
        rq_err rc = begin(p, &why);
        if (rc != RQ_OK) {
            finish(p, rc, &why);
            return;
        }
        if (!ops->answer_at_end && !(p->ddl != NULL && p->ddl->wait_finished))
            answer_proc(p, RQ_OK, NULL);
    }
    while (p->step < RQ__STEPS_MAX && ops->steps[p->step].run != NULL) {
        why = (rq_error){0};
        rq_err rc = ops->steps[p->step].run(c, p, &why);
        if (rc == RQ_OK) {
            p->step++;
            p->attempts = 0;
            continue;
        }
        /* After a restart nobody knows whether the commit happened: only forward. */
        bool undo = p->step < ops->commit && !p->resumed;
        if (undo || (ops->transient && !p->resumed)) {
            if (ops->undo != NULL && undo) ops->undo(c, p);
            finish(p, rc, &why);
        } else {
            retry_later(p, rc, &why);
        }
        return;
    }
    finish(p, RQ_OK, NULL);
}

static void proc_run(rq_task *task)
{
    rq__proc *p = RQ_CONTAINER_OF(task, rq__proc, task);
    rq_catalog *c = p->catalog;
    proc_work(p);
    task_done(c);
}

/* On the retry lane. */
static void proc_retry(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq__proc *p = RQ_CONTAINER_OF(timer, rq__proc, timer);
    rq_catalog *c = p->catalog;
    if (!rq__procedures_task_begin(c)) return;
    p->task = (rq_task){.run = proc_run};
    c->env->executor->submit(c->env->executor, RQ_POOL_WORK, &p->task);
}

/* --- submission ------------------------------------------------------------------------------- */

/* Enters the procedure, or finds the one that had its nonce before. */
static rq__proc *enter(rq__proc *p, rq_ddl *d)
{
    rq__procedures *ps = &p->catalog->procedures;
    pthread_mutex_lock(&ps->lock);
    rq__proc *same = find_nonce(ps, p->nonce_group, p->nonce);
    uint64_t same_id = same == NULL ? 0 : same->id;
    if (same == NULL) {
        p->id = ps->next_id++;
        p->ddl = d != NULL && d->early && !p->ops->answer_at_end ? NULL : d;
        p->running = p->ddl != d; /* an early one is recorded before it may start */
        active_append(ps, p);
    }
    pthread_mutex_unlock(&ps->lock);
    if (same != NULL) {
        answer(d, RQ_OK, NULL, same_id);
        proc_free(p);
        return NULL;
    }
    return p;
}

static void accept_early(rq__proc *p, rq_ddl *d)
{
    rq_error why = {0};
    rq__procedures *ps = &p->catalog->procedures;
    rq_err rc = p->ops->transient ? RQ_OK : write_record(p, true, &why);
    uint64_t id = p->id;
    pthread_mutex_lock(&ps->lock);
    p->running = false;
    if (rc != RQ_OK) active_remove(ps, p);
    pthread_mutex_unlock(&ps->lock);
    /* From here on others may start it, and it may come to its end. */
    answer(d, rc, &why, rc == RQ_OK ? id : 0);
    if (rc != RQ_OK) proc_free(p);
}

static void accept_run(rq_task *task)
{
    rq_ddl *d = RQ_CONTAINER_OF(task, rq_ddl, task);
    rq_catalog *c = d->catalog;
    rq_error why = {0};
    rq_err rc = RQ_E_NO_MEMORY;
    rq__proc *p = proc_alloc(c);
    if (p != NULL) rc = proc_from_ddl(p, d);
    if (rc == RQ_OK && p->ops->precheck != NULL) rc = p->ops->precheck(c, p, &why);
    if (rc != RQ_OK) {
        proc_free(p);
        answer(d, rc, &why, 0);
        task_done(c);
        return;
    }
    if (d->wait_finished) d->early = false;
    bool early = d->early && !p->ops->answer_at_end;
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
        rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master.text);
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

rq_err rq_catalog_ddl_sync(rq_catalog *c, rq_ddl *d, rq_error *why)
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
    rq__proc *p = proc_alloc(c);
    if (p == NULL) goto no_memory;
    p->ops = rq__proc_kind_of(RQ_DDL_REOPEN_REGION);
    bool ok = copy_slice(p, info->ns, &p->ns) && copy_slice(p, info->qualifier, &p->qualifier) &&
              copy_slice(p, info->table, &p->table) &&
              copy_slice(p, rq_slice_cstr(info->encoded), &p->family) &&
              copy_slice(p, (rq_slice){NULL, 0}, &p->descriptor);
    if (!ok) goto no_memory;
    p->prepared = true;
    p->resumed = true; /* repeated until it succeeds */
    p->submitted_ms = p->updated_ms = rq__catalog_now_ms(c);
    pthread_mutex_lock(&c->procedures.lock);
    if (c->procedures.stopping) {
        pthread_mutex_unlock(&c->procedures.lock);
        proc_free(p);
        return;
    }
    p->id = c->procedures.next_id++;
    active_append(&c->procedures, p);
    rq_task *list = take_startable(&c->procedures);
    pthread_mutex_unlock(&c->procedures.lock);
    start_all(c, list);
    return;
no_memory:
    proc_free(p);
    rq_log_error(c->env->log, "catalog", "no memory to reopen region %s", info->encoded);
}

/* --- start and stop --------------------------------------------------------------------------- */

rq_err rq__procedures_init(rq_catalog *c, rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    pthread_mutex_init(&ps->lock, NULL);
    ps->next_id = 1;
    ps->active_end = &ps->active;
    rq_err rc = c->env->executor->lane_new(c->env->executor, "procedures", &ps->lane);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static rq_err load_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    rq_catalog *c = ctx;
    rq__procedures *ps = &c->procedures;
    for (size_t i = 0; i < count; i++) {
        const rq_cell *cell = &cells[i];
        if (!rq_slice_eq(rq_cell_family(cell), RQ_SLICE_LIT("proc")) || cell->row_len != 8)
            continue;
        uint64_t id = rq_get_be64(cell->row);
        rq__catalog_saw_ms(c, cell->timestamp);
        if (id >= ps->next_id) ps->next_id = id + 1;
        if (cell->value_len == 0) continue; /* only remembers the highest id */
        rq__proc *p = proc_alloc(c);
        if (p == NULL) return RQ_E_NO_MEMORY;
        rq_err rc = rq__proc_decode(rq_cell_value(cell), p, why);
        if (rc != RQ_OK) {
            proc_free(p);
            return rc;
        }
        if (p->finished) {
            p->next = ps->finished;
            ps->finished = p;
            ps->finished_count++;
        } else {
            p->resumed = p->prepared;
            active_append(ps, p);
        }
    }
    return RQ_OK;
}

rq_err rq__procedures_load(rq_catalog *c, rq_error *why)
{
    rq_region *store;
    RQ_TRY(rq__store_ref(c, &store, why));
    rq_err rc = rq__region_each_row(store, load_row, c, why);
    rq_region_unref(store);
    return rc;
}

static bool names_region(const rq_region_info *list, size_t count, const rq_region_info *info)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].encoded, info->encoded) == 0) return true;
    return false;
}

bool rq__procedures_own(rq_catalog *c, const rq_region_info *info)
{
    bool own = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !own; p = p->next)
        own = p->prepared && !p->ops->on_namespace && rq_slice_eq(p->ns, info->ns) &&
              rq_slice_eq(p->qualifier, info->qualifier) &&
              (!p->ops->on_regions || names_region(p->regions, p->region_count, info) ||
               names_region(p->old_regions, p->old_region_count, info));
    pthread_mutex_unlock(&c->procedures.lock);
    return own;
}

bool rq__procedures_splitting(rq_catalog *c, const rq_region_info *info)
{
    bool found = false;
    pthread_mutex_lock(&c->procedures.lock);
    for (const rq__proc *p = c->procedures.active; p != NULL && !found; p = p->next)
        found = p->ops->kind == RQ_DDL_SPLIT_REGION &&
                rq_slice_eq(p->family, rq_slice_cstr(info->encoded));
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
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
    if (c->janitor.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->janitor.timer);
    if (c->mob_cleaner.timer.task.run != NULL) (void)ex->timer_cancel(ex, &c->mob_cleaner.timer);
    if (c->mob_compactor.timer.task.run != NULL)
        (void)ex->timer_cancel(ex, &c->mob_compactor.timer);
    pthread_mutex_unlock(&ps->lock);
    /* The rc is always RQ_OK: nobody opens it with another. */
    if (wait) (void)ex->latch_wait(&idle);
    pthread_mutex_lock(&ps->lock);
    ps->idle = NULL;
    pthread_mutex_unlock(&ps->lock);
    ex->latch_destroy(&idle);
    /* Nothing runs any more. Whoever still waits for an answer gets one. */
    rq_error why = {0};
    rq_err rc = rq_fail(&why, RQ_E_SERVER_STOPPED, "Master %s is stopping", c->master.text);
    for (rq__proc *p = ps->active; p != NULL; p = p->next)
        answer_proc(p, rc, &why);
}

rq_err rq__procedures_sweep(rq_catalog *c, rq_error *why)
{
    rq__procedures *ps = &c->procedures;
    if (ps->next_id == 1) return RQ_OK;
    rq_arena a;
    rq_arena_init(&a);
    uint64_t *ids = rq_arena_alloc(&a, (ps->finished_count + 1) * sizeof *ids);
    size_t n = 0;
    rq_err rc = ids == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    uint64_t newest = ps->next_id - 1;
    for (const rq__proc *p = ps->finished; p != NULL && ids != NULL; p = p->next)
        if (p->recorded && p->id != newest) ids[n++] = p->id;
    bool newest_is_active = false;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        newest_is_active |= p->id == newest && p->recorded;
    if (rc == RQ_OK && n > 0) rc = delete_records(c, ids, n, why);
    if (rc == RQ_OK && !newest_is_active) {
        /* HBASE: RegionProcedureStore keeps the row of the highest id, with an empty value. */
        rq_region *store = NULL;
        rq__batch b;
        uint8_t row[8];
        rq_put_be64(row, newest);
        rq__batch_init(&b, &a, rq__catalog_now_ms(c));
        rc = rq__store_ref(c, &store, why);
        if (rc == RQ_OK)
            rc = rq__batch_put(&b, rq_slice_of(row, 8), "proc", RQ_SLICE_LIT("d"),
                               (rq_slice){row, 0});
        if (rc == RQ_OK) rc = rq__batch_commit(&b, store, false, why);
        if (store != NULL) rq_region_unref(store);
    }
    rq_arena_clear(&a);
    return rc;
}

void rq__procedures_clear(rq_catalog *c)
{
    rq__procedures *ps = &c->procedures;
    if (ps->active_end == NULL) return; /* never initialised */
    if (ps->lane != NULL) c->env->executor->lane_free(c->env->executor, ps->lane);
    rq__proc *lists[] = {ps->active, ps->finished};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lists); i++) {
        while (lists[i] != NULL) {
            rq__proc *next = lists[i]->next;
            proc_free(lists[i]);
            lists[i] = next;
        }
    }
    pthread_mutex_destroy(&ps->lock);
}

/* --- what others may know --------------------------------------------------------------------- */

/* REQUIRES: lock held. */
static bool describe(const rq__proc *p, rq_arena *a, rq_procedure *ret)
{
    const char *step = "";
    unsigned number = p->step;
    if (number < RQ__STEPS_MAX && p->ops->steps[number].name != NULL)
        step = p->ops->steps[number].name;
    *ret = (rq_procedure){
        .id = p->id,
        .kind = p->ops->kind,
        .ns = rq_arena_copy(a, p->ns),
        .qualifier = rq_arena_copy(a, p->qualifier),
        .user = rq_arena_copy(a, p->user),
        .nonce_group = p->nonce_group,
        .nonce = p->nonce,
        .submitted_ms = p->submitted_ms,
        .updated_ms = p->finished ? p->updated_ms : p->submitted_ms,
        .finished = p->finished,
        .waiting = !p->finished && !p->running,
        .step = step,
        .rc = p->finished ? p->rc : RQ_OK,
    };
    if (p->finished && p->rc != RQ_OK)
        ret->message = rq_arena_cstr(a, rq_slice_cstr(p->why.message));
    return ret->ns.ptr != NULL && ret->qualifier.ptr != NULL && ret->user.ptr != NULL &&
           (ret->rc == RQ_OK || ret->message != NULL);
}

bool rq_catalog_procedure(rq_catalog *c, uint64_t proc_id, rq_arena *arena, rq_procedure *ret)
{
    pthread_mutex_lock(&c->procedures.lock);
    const rq__proc *p = find_id(&c->procedures, proc_id);
    bool found = p != NULL && describe(p, arena, ret);
    pthread_mutex_unlock(&c->procedures.lock);
    return found;
}

static int id_order(const void *a, const void *b)
{
    const rq_procedure *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

rq_err rq_catalog_procedures(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count)
{
    rq__procedures *ps = &c->procedures;
    rq_err rc = RQ_OK;
    size_t n = 0;
    pthread_mutex_lock(&ps->lock);
    size_t cap = ps->finished_count;
    for (const rq__proc *p = ps->active; p != NULL; p = p->next)
        cap++;
    rq_procedure *list = rq_arena_calloc(arena, cap, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    const rq__proc *heads[] = {ps->active, ps->finished};
    for (size_t i = 0; i < RQ_ARRAY_LEN(heads) && rc == RQ_OK; i++)
        for (const rq__proc *p = heads[i]; p != NULL && rc == RQ_OK; p = p->next)
            rc = describe(p, arena, &list[n++]) ? RQ_OK : RQ_E_NO_MEMORY;
    pthread_mutex_unlock(&ps->lock);
    if (rc != RQ_OK) return rc;
    if (n > 1) qsort(list, n, sizeof *list, id_order);
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

void rq_catalog_procedure_forget(rq_catalog *c, uint64_t proc_id)
{
    pthread_mutex_lock(&c->procedures.lock);
    rq__proc *p = find_id(&c->procedures, proc_id);
    if (p != NULL && p->finished && p->acknowledged_ms == 0)
        p->acknowledged_ms = c->env->executor->now_ms(c->env->executor);
    pthread_mutex_unlock(&c->procedures.lock);
}

const char *rq_ddl_java_class(rq_ddl_kind kind)
{
    const rq__proc_kind *k = rq__proc_kind_of(kind);
    return k == NULL ? "" : k->java_class;
}
