/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows this server's own log on shared storage; contract in tail.h. The writer knows what was acknowledged in each
 * stripe (rq__striped_place); this is read back from the storage, ledger by ledger, and never more. An extent that was
 * acknowledged before an earlier one waits in its stripe (stripes.h).
 *
 * A position within a ledger is reached by reading the ledger from its beginning, at most 16 MB.
 */
#include "wal/striped.h"

#include <stdlib.h>

#include "wal/stripes.h"

struct rq__striped_tail {
    rq_wal *wal;
    rq_lsn from; /* records that end there or before are not delivered */
    bool entered;
    rq__stripes stripes;
};

rq_err rq__striped_tail_new(rq_wal *wal, rq_lsn from, rq__striped_tail **ret)
{
    rq__striped_tail *t = calloc(1, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->wal = wal;
    t->from = from;
    rq__stripes_init(&t->stripes, wal->options.tenure->shared, wal->options.server_name);
    t->stripes.lsn = from;
    *ret = t;
    return RQ_OK;
}

void rq__striped_tail_free(rq__striped_tail *t)
{
    if (t == NULL) return;
    rq__stripes_clear(&t->stripes);
    free(t);
}

rq_lsn rq__striped_tail_lsn(const rq__striped_tail *t)
{
    return t->stripes.lsn > t->from ? t->stripes.lsn : t->from;
}

static rq_err find_place(rq__striped_tail *t, rq__striped_place_info *ret, rq_error *why)
{
    rq_wal *wal = t->wal;
    pthread_mutex_lock(&wal->mutex);
    rq_lsn begin = wal->oldest->first_lsn;
    if (t->from == 0) t->from = t->stripes.lsn = begin;
    rq_err rc = rq__striped_place(wal, t->stripes.lsn, ret, why);
    if (rc == RQ_E_NOT_FOUND) t->from = t->stripes.lsn = begin;
    pthread_mutex_unlock(&wal->mutex);
    return rc;
}

/* Makes the bytes behind the position readable. RQ_E_END: nothing is acknowledged there. */
static rq_err get_ready(rq__striped_tail *t, rq_error *why)
{
    rq__striped_place_info p;
    rq__stripes *r = &t->stripes;
    if (t->entered && r->lsn < r->end) return RQ_OK;
    rq_err rc = find_place(t, &p, why);
    if (rc != RQ_OK) {
        if (rc == RQ_E_NOT_FOUND) t->entered = false;
        return rc;
    }
    if (t->entered && r->ledger.number == p.ledger.number)
        return rq__stripes_extend(r, &p.ledger, p.end, why);
    if (r->lsn != p.first_lsn) r->chained = false;
    r->lsn = p.first_lsn;
    t->entered = false;
    RQ_TRY(rq__stripes_enter(r, &p.ledger, p.end, why));
    t->entered = true;
    return RQ_OK;
}

/* What follows is read anew: a failed read may have left a part of an extent. */
static rq_err start_over(rq__striped_tail *t, rq_err rc)
{
    t->from = rq__striped_tail_lsn(t);
    t->stripes.lsn = t->from;
    t->stripes.chained = false;
    t->entered = false;
    return rc;
}

rq_err rq__striped_tail_next(rq__striped_tail *t, rq_wal_record *ret, rq_error *why)
{
    for (;;) {
        rq_err rc = get_ready(t, why);
        if (rc == RQ_E_END || rc == RQ_E_NOT_FOUND) return rc;
        if (rc == RQ_OK) rc = rq__stripes_next(&t->stripes, ret, why);
        if (rc == RQ_E_END && t->stripes.lsn < t->stripes.end)
            rc = rq__stripes_corrupt(&t->stripes, "missing, though it was acknowledged", why);
        if (rc == RQ_E_END) continue; /* more may have been acknowledged meanwhile */
        if (rc != RQ_OK) return start_over(t, rc);
        if (ret->lsn > t->from) return RQ_OK;
    }
}
