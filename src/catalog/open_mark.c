/* SPDX-License-Identifier: Apache-2.0 */
/* .rorqual/open exists while a server works on the folder. A killed server leaves it for the next
 * start to find; a clean stop removes it. On a full disk there may be no space for it. It only
 * matters if HBase works on the folder after a crash, so the start continues without it, and
 * writing it is retried every second. Until then the log takes no records either, unless space
 * becomes free in between. */
#include "catalog/catalog_priv.h"
#include "catalog/root_priv.h"

#define RETRY_NS ((uint64_t)1000 * 1000 * 1000)

rq_err rq__open_mark_write(rq_catalog *c, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq__root_mark_open(c->root, &own);
    c->open_mark.is_due = rc == RQ_E_NO_SPACE;
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_NO_SPACE) return rq_fail(why, rc, "%s", own.message);
    rq_log_warn(c->env->log, "catalog",
                "the disk is full, writes are refused until there is space: %s", own.message);
    return RQ_OK;
}

static void arm(rq_catalog *c)
{
    rq_executor *ex = c->env->executor;
    if (c->open_mark.is_due) ex->timer_arm(ex, &c->open_mark.timer, c->procedures.lane, RETRY_NS);
}

static void work(rq_task *task)
{
    rq_catalog *c = RQ_CONTAINER_OF(task, rq_catalog, open_mark.task);
    c->open_mark.is_due = rq__root_mark_open(c->root, NULL) != RQ_OK;
    rq__procedures_task_end(c, arm);
}

static void due(rq_task *task)
{
    rq_timer *timer = RQ_CONTAINER_OF(task, rq_timer, task);
    rq_catalog *c = RQ_CONTAINER_OF(timer, rq_catalog, open_mark.timer);
    if (!rq__procedures_task_begin(c)) return;
    c->open_mark.task = (rq_task){.run = work};
    c->env->executor->submit(c->env->executor, RQ_POOL_WORK, &c->open_mark.task);
}

void rq__open_mark_start(rq_catalog *c)
{
    c->open_mark.timer.task.run = due;
    arm(c);
}
