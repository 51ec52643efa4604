/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that clients hold by LockService: a procedure that has its lock like any other, and whose
 * only step does not end. It runs again when the lock is released, and when it was not renewed in
 * time; meanwhile no thread belongs to it. The record survives a crash, after which the client has
 * the time-out anew; a clean stop ends the locks. HBASE: LockProcedure. */
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
    /* HBase's clients send heartbeats while they wait, too. Without that a hundred requests of a
     * client that has gone would keep the table locked for a hundred time-outs. */
    bool forgotten = p->of.lock.renewed_ms == 0 && p->of.lock.heard_ms != 0 &&
                     now - p->of.lock.heard_ms >= timeout;
    if (p->of.lock.renewed_ms == 0) p->of.lock.renewed_ms = now;
    bool ends =
        forgotten || p->of.lock.released || p->aborted || now - p->of.lock.renewed_ms >= timeout;
    pthread_mutex_unlock(&c->procedures.lock);
    return ends ? RQ_OK : RQ_E_AGAIN;
}
