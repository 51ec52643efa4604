/* SPDX-License-Identifier: Apache-2.0 */
/* The object: its life, its settings, the views, the timer; see quota.h.
 *
 * Locks: `rounds` for one round of space quotas at a time; `work` for one change at a time, held across I/O;
 * `lock` for the timer's state; `users_lock` for the users that have only the default quotas. */
#include "quota/quota_priv.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- settings --------------------------------------------------------------------------------- */

static void take_default(rq_quotas *q, rq__budget b, rq_setting s)
{
    int64_t limit = rq_config_int(q->config, s);
    if (limit <= 0) return;
    Pb__TimedQuota *t = &q->default_quotas[b];
    pb__timed_quota__init(t);
    t->time_unit = PB__TIME_UNIT__SECONDS;
    t->has_soft_limit = 1;
    t->soft_limit = (uint64_t)limit;
    *rq__throttle_place(&q->defaults, b) = t;
    q->has_defaults = true;
}

/* HBASE: QuotaUtil.buildDefaultUserQuotaState. */
static void take_defaults(rq_quotas *q)
{
    pb__throttle__init(&q->defaults);
    take_default(q, RQ__BUDGET_READS, RQ_SET_QUOTA_USER_READS);
    take_default(q, RQ__BUDGET_READ_BYTES, RQ_SET_QUOTA_USER_READ_BYTES);
    take_default(q, RQ__BUDGET_REQUESTS, RQ_SET_QUOTA_USER_REQUESTS);
    take_default(q, RQ__BUDGET_REQUEST_BYTES, RQ_SET_QUOTA_USER_REQUEST_BYTES);
    take_default(q, RQ__BUDGET_WRITES, RQ_SET_QUOTA_USER_WRITES);
    take_default(q, RQ__BUDGET_WRITE_BYTES, RQ_SET_QUOTA_USER_WRITE_BYTES);
    take_default(q, RQ__BUDGET_ATOMIC_READ_BYTES, RQ_SET_QUOTA_USER_ATOMIC_READ_BYTES);
    take_default(q, RQ__BUDGET_ATOMIC_REQUESTS, RQ_SET_QUOTA_USER_ATOMIC_REQUESTS);
    take_default(q, RQ__BUDGET_ATOMIC_WRITE_BYTES, RQ_SET_QUOTA_USER_ATOMIC_WRITE_BYTES);
    take_default(q, RQ__BUDGET_HANDLER_MS, RQ_SET_QUOTA_USER_HANDLER_MS);
}

static uint64_t period_of(const rq_config *c, rq_setting s)
{
    return (uint64_t)rq_config_int(c, s) * 1000000;
}

/* HBASE: Superusers: the user of the process. */
static void take_owner(rq_quotas *q)
{
    struct passwd entry, *found = NULL;
    char buf[1024];
    if (getpwuid_r(geteuid(), &entry, buf, sizeof buf, &found) == 0 && found != NULL)
        snprintf(q->owner, sizeof q->owner, "%s", found->pw_name);
    else
        snprintf(q->owner, sizeof q->owner, "%u", (unsigned)geteuid());
}

static void take_settings(rq_quotas *q)
{
    const rq_config *c = q->config;
    q->enabled = rq_config_int(c, RQ_SET_QUOTA) != 0;
    q->refill.fixed = strstr(rq_config_text(c, RQ_SET_QUOTA_LIMITER), "FixedInterval") != NULL;
    q->refill.interval_ms = rq_config_int(c, RQ_SET_QUOTA_REFILL);
    q->read_unit = rq_config_int(c, RQ_SET_QUOTA_READ_UNIT);
    q->write_unit = rq_config_int(c, RQ_SET_QUOTA_WRITE_UNIT);
    q->by_results = rq_config_int(c, RQ_SET_QUOTA_BY_RESULTS) != 0;
    q->user_key = rq_config_text(c, RQ_SET_QUOTA_USER_KEY);
    q->refresh_ns = period_of(c, RQ_SET_QUOTA_REFRESH);
    q->space_ns = period_of(c, RQ_SET_QUOTA_SPACE_PERIOD);
    q->snapshot_ns = period_of(c, RQ_SET_QUOTA_SNAPSHOT_PERIOD);
    q->period_ns = q->refresh_ns < q->space_ns ? q->refresh_ns : q->space_ns;
    take_defaults(q);
    take_owner(q);
}

/* --- the view --------------------------------------------------------------------------------- */

static void release_view(rq_epoch_node *node)
{
    rq__quota_view_free(RQ_CONTAINER_OF(node, rq__view_of_quotas, retired));
}

/* `row`: only that one is read; .ptr NULL: all. REQUIRES: q->work. */
static rq_err load(rq_quotas *q, rq_slice row, rq_error *why)
{
    rq__view_of_quotas *fresh, *before = atomic_load(&q->view);
    RQ_TRY(rq_catalog_need_quota_table(q->catalog, why));
    RQ_TRY(before != NULL && row.ptr != NULL ? rq__quota_view_update(q, before, row, &fresh, why)
                                             : rq__quota_view_read(q, before, &fresh, why));
    atomic_store_explicit(&q->view, fresh, memory_order_release);
    if (before != NULL) rq_epoch_retire(q->env.epoch, &before->retired, release_view);
    return RQ_OK;
}

static rq_err refresh(rq_quotas *q, rq_slice row, bool measures, rq_error *why)
{
    if (measures) pthread_mutex_lock(&q->rounds);
    pthread_mutex_lock(&q->work);
    rq_err rc = load(q, row, why);
    if (rc == RQ_OK && measures) rc = rq__space_measure(q, why);
    rq__quota_set_gate(q);
    pthread_mutex_unlock(&q->work);
    if (measures) pthread_mutex_unlock(&q->rounds);
    return rc;
}

static rq_err measure(rq_quotas *q, rq_error *why)
{
    pthread_mutex_lock(&q->rounds);
    pthread_mutex_lock(&q->work);
    rq_err rc = rq__space_measure(q, why);
    rq__quota_set_gate(q);
    pthread_mutex_unlock(&q->work);
    pthread_mutex_unlock(&q->rounds);
    return rc;
}

static rq_err refresh_all(rq_quotas *q, rq_error *why)
{
    return refresh(q, (rq_slice){NULL, 0}, true, why);
}

rq_err rq_quotas_reload(rq_quotas *q, rq_error *why)
{
    return q->enabled ? refresh_all(q, why) : RQ_OK;
}

rq_err rq__quotas_reload_row(rq_quotas *q, rq_slice row, bool measures, rq_error *why)
{
    return refresh(q, row, measures, why);
}

rq_err rq__quotas_begin_change(rq_quotas *q, rq_error *why)
{
    if (atomic_fetch_add(&q->changes, 1) < RQ__QUOTA_CHANGES_MAX) return RQ_OK;
    rq__quotas_end_change(q);
    return rq_fail(why, RQ_E_PLEASE_HOLD,
                   "%d quota changes are waiting already, because tables are being disabled or "
                   "enabled for their space quotas; try again later",
                   RQ__QUOTA_CHANGES_MAX);
}

void rq__quotas_end_change(rq_quotas *q)
{
    atomic_fetch_sub(&q->changes, 1);
}

bool rq_quotas_enabled(const rq_quotas *q)
{
    return q->enabled;
}

/* --- the timer -------------------------------------------------------------------------------- */

static void arm(rq_quotas *q)
{
    q->env.executor->timer_arm(q->env.executor, &q->timer, q->lane, q->period_ns);
}

/* The object may be gone when this returns. */
static void end_task(rq_quotas *q, bool again)
{
    pthread_mutex_lock(&q->lock);
    rq_latch *idle = --q->busy == 0 ? q->idle : NULL;
    if (again && !q->is_stopping) arm(q);
    pthread_mutex_unlock(&q->lock);
    if (idle != NULL) idle->executor->latch_open(idle, RQ_OK);
}

static void warn(const rq_quotas *q, rq_err rc, const rq_error *why)
{
    rq_log_warn(q->env.log, "quota",
                "cannot read quotas or measure table sizes: %s; the next period tries again",
                why->code == RQ_OK ? rq_err_text(rc) : why->message);
}

static void work(rq_task *task)
{
    rq_quotas *q = RQ_CONTAINER_OF(task, rq_quotas, task);
    rq_error why = {.code = RQ_OK};
    uint64_t now = q->env.executor->now_ns(q->env.executor);
    bool refreshes = now - q->refreshed_ns >= q->refresh_ns || atomic_load(&q->view) == NULL;
    rq_err rc = RQ_OK;
    if (refreshes) {
        q->refreshed_ns = now;
        rc = refresh_all(q, &why);
    } else if (atomic_load(&q->view) != NULL) {
        rc = measure(q, &why);
    }
    if (rc != RQ_OK) warn(q, rc, &why);
    end_task(q, true);
}

static void due(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq_quotas *q = RQ_CONTAINER_OF(timer, rq_quotas, timer);
    pthread_mutex_lock(&q->lock);
    bool go = !q->is_stopping;
    q->busy += go;
    pthread_mutex_unlock(&q->lock);
    if (!go) return;
    q->task = (rq_task){.run = work};
    q->env.executor->submit(q->env.executor, RQ_POOL_CALL, &q->task);
}

/* --- dropped tables --------------------------------------------------------------------------- */

static void read_again(rq_task *task)
{
    rq_quotas *q = RQ_CONTAINER_OF(task, rq_quotas, dropped);
    rq_error why = {.code = RQ_OK};
    pthread_mutex_lock(&q->lock);
    q->has_dropped = false;
    pthread_mutex_unlock(&q->lock);
    rq_err rc = refresh_all(q, &why);
    if (rc != RQ_OK) warn(q, rc, &why);
    end_task(q, false);
}

/* The catalog has removed a dropped table's rows from hbase:quota. */
static void table_dropped(void *ctx)
{
    rq_quotas *q = ctx;
    pthread_mutex_lock(&q->lock);
    bool go = !q->is_stopping && !q->has_dropped;
    q->has_dropped |= go;
    q->busy += go;
    pthread_mutex_unlock(&q->lock);
    if (!go) return;
    q->dropped = (rq_task){.run = read_again};
    q->env.executor->submit(q->env.executor, RQ_POOL_CALL, &q->dropped);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_quotas_open(const rq_quotas_options *o, rq_quotas **ret, rq_error *why)
{
    rq_quotas *q = calloc(1, sizeof *q);
    if (q == NULL) return rq_no_memory(why);
    q->env = *o->env;
    q->catalog = o->catalog;
    q->ops = o->ops;
    q->config = o->config;
    q->lane = o->lane;
    q->policy = rq__quota_policy_table;
    q->policy.ctx = q;
    q->next = o->next;
    pthread_mutex_init(&q->rounds, NULL);
    pthread_mutex_init(&q->work, NULL);
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_init(&q->users_lock, NULL);
    take_settings(q);
    rq_error own = {.code = RQ_OK};
    if (q->enabled && refresh_all(q, &own) != RQ_OK)
        rq_log_warn(q->env.log, "quota", "no quota is enforced until hbase:quota can be read: %s",
                    own.message);
    q->refreshed_ns = q->env.executor->now_ns(q->env.executor);
    q->timer.task.run = due;
    if (q->enabled && q->lane != NULL && q->period_ns > 0) arm(q);
    if (q->enabled) rq_catalog_on_quotas_dropped(q->catalog, table_dropped, q);
    *ret = q;
    return RQ_OK;
}

void rq_quotas_stop(rq_quotas *q)
{
    if (q == NULL) return;
    rq_catalog_on_quotas_dropped(q->catalog, NULL, NULL);
    rq_executor *ex = q->env.executor;
    rq_latch idle;
    ex->latch_init(ex, &idle);
    pthread_mutex_lock(&q->lock);
    q->is_stopping = true;
    q->idle = &idle;
    bool wait = q->busy > 0;
    if (q->timer.task.run != NULL) (void)ex->timer_cancel(ex, &q->timer);
    pthread_mutex_unlock(&q->lock);
    if (wait) (void)ex->latch_wait(&idle);
    ex->latch_destroy(&idle);
}

void rq_quotas_close(rq_quotas *q)
{
    if (q == NULL) return;
    rq_ops_set_policy(q->ops, q->next);
    rq__quota_view_free(atomic_load(&q->view));
    rq__space_view_free(atomic_load(&q->space));
    rq__snapshot_usage_free(q->snapshots);
    for (size_t i = 0; i < RQ__DEFAULT_USERS; i++) {
        for (rq__default_user *u = q->users[i]; u != NULL; u = q->users[i]) {
            q->users[i] = u->next;
            rq__limiter_unref(u->limiter);
            free(u);
        }
    }
    pthread_mutex_destroy(&q->work);
    pthread_mutex_destroy(&q->rounds);
    pthread_mutex_destroy(&q->lock);
    pthread_mutex_destroy(&q->users_lock);
    free(q);
}
