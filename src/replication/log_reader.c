/* SPDX-License-Identifier: Apache-2.0 */
/* One interface for wal/tail.h and wal/sealed.h; see log_reader.h. */
#include "replication/log_reader.h"

#include "wal/sealed.h"
#include "wal/tail.h"

#include <stdlib.h>

struct rq__log_reader {
    rq_wal_tail *tail;
    rq_wal_sealed *sealed;
    rq_lsn from;
};

static rq_err open_log(rq__log_reader *r, const rq__log *log, rq_error *why)
{
    if (log->wal == NULL)
        return rq_wal_sealed_open(log->shared, log->server, r->from, &r->sealed, why);
    rq_err rc = rq_wal_tail_new(log->wal, r->from, &r->tail);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

rq_err rq__log_reader_new(const rq__log *log, rq_lsn from, rq__log_reader **ret, rq_error *why)
{
    rq__log_reader *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    r->from = from;
    rq_err rc = open_log(r, log, why);
    if (rc == RQ_OK)
        *ret = r;
    else
        rq__log_reader_free(r);
    return rc;
}

void rq__log_reader_free(rq__log_reader *r)
{
    if (r == NULL) return;
    rq_wal_tail_free(r->tail);
    rq_wal_sealed_close(r->sealed);
    free(r);
}

rq_err rq__log_reader_next(rq__log_reader *r, rq_wal_record *ret, rq_error *why)
{
    return r->tail != NULL ? rq_wal_tail_next(r->tail, ret, why)
                           : rq_wal_sealed_next(r->sealed, ret, why);
}

rq_lsn rq__log_reader_lsn(const rq__log_reader *r)
{
    if (r->tail != NULL) return rq_wal_tail_lsn(r->tail);
    rq_lsn read = rq_wal_sealed_lsn(r->sealed);
    return read > r->from ? read : r->from; /* it is read from the beginning of a ledger on */
}

uint64_t rq__log_bytes_behind(const rq__log *log, rq_lsn position)
{
    rq_lsn durable = log->wal == NULL ? 0 : rq_wal_durable(log->wal);
    return durable > position ? durable - position : 0;
}
