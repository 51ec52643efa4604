/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that clients hold by LockService. Each is a procedure that holds its lock like any other,
 * and whose only step ends when the client releases the lock or does not renew it in time. No
 * thread waits for this: the step returns RQ_E_AGAIN and is run again. After a crash the procedure
 * continues from its record, and the time-out begins again; a clean stop ends the locks. HBASE:
 * LockProcedure. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

rq_err rq__lock_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    (void)c;
    return rq__internal_check(p, why);
}

int64_t rq__lock_timeout_ms(const rq_catalog *c)
{
    return c->config == NULL ? 30000 : rq_config_int(c->config, RQ_SET_LOCK_TIMEOUT);
}

/* RQ_E_AGAIN: it is still held. */
rq_err rq__lock_hold(rq_catalog *c, rq__proc *p, rq_error *why)
{
    int64_t now = rq__catalog_wall_ms(c);
    int64_t timeout = rq__lock_timeout_ms(c);
    (void)why;
    pthread_mutex_lock(&c->procedures.lock);
    /* HBase's clients send heartbeats also while they wait for the lock. Without this check a
     * hundred requests of a client that has gone would lock the table for a hundred time-outs, one
     * after another. */
    bool forgotten = p->of.lock.renewed_ms == 0 && p->of.lock.heard_ms != 0 &&
                     now - p->of.lock.heard_ms >= timeout;
    if (p->of.lock.renewed_ms == 0) p->of.lock.renewed_ms = now;
    bool ends =
        forgotten || p->of.lock.released || p->aborted || now - p->of.lock.renewed_ms >= timeout;
    pthread_mutex_unlock(&c->procedures.lock);
    return ends ? RQ_OK : RQ_E_AGAIN;
}
