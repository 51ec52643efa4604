/* SPDX-License-Identifier: Apache-2.0 */
/* Replay of an ended log on shared storage: one ledger after the other (stripes.h); where the log ends, and whether
 * something is missing. */
#include "wal/sealed.h"

#include <stdlib.h>

#include "wal/head.h"
#include "wal/stripes.h"

struct rq_wal_sealed {
    char server_name[RQ_SHARED_NAME_MAX + 1];
    rq_arena arena;
    rq__head head;
    uint64_t from;
    size_t index; /* of the current ledger */
    bool entered; /* its stripes are loaded */
    rq__stripes stripes;
};

static bool is_last(const rq_wal_sealed *l)
{
    return l->index + 1 == l->head.count;
}

/* Where the ledger ends by its successor. */
static uint64_t end_now(const rq_wal_sealed *l)
{
    return is_last(l) ? UINT64_MAX : l->head.ledgers[l->index + 1].first_lsn;
}

static bool has_bytes(const rq__head_ledger *s)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        if (s->slog.lengths[k] > 0) return true;
    return false;
}

/* No extent begins at the expected LSN: this is the end of the log, unless later bytes are known to have been
 * acknowledged. */
static rq_err judge(rq_wal_sealed *l, rq_error *why)
{
    rq__stripes *r = &l->stripes;
    for (size_t i = l->index + 1; i < l->head.count; i++)
        if (l->head.ledgers[i].first_lsn > r->lsn && has_bytes(&l->head.ledgers[i]))
            return rq__stripes_corrupt(r, "missing, though a later ledger follows it", why);
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        while (r->stripes[k].valid) {
            if (r->stripes[k].extent.acknowledged > r->lsn)
                return rq__stripes_corrupt(r, "missing, though it was acknowledged", why);
            RQ_TRY(rq__stripes_skip(r, k, why));
        }
    return RQ_E_END;
}

static rq_err enter(rq_wal_sealed *l, rq_error *why)
{
    while (l->stripes.lsn >= end_now(l)) {
        l->index++;
        l->entered = false;
    }
    if (l->entered) return RQ_OK;
    RQ_TRY(rq__stripes_enter(&l->stripes, &l->head.ledgers[l->index].slog, end_now(l), why));
    l->entered = true;
    return RQ_OK;
}

rq_err rq_wal_sealed_next(rq_wal_sealed *l, rq_wal_record *ret, rq_error *why)
{
    if (l->head.count == 0) return RQ_E_END;
    for (;;) {
        RQ_TRY(enter(l, why));
        rq_err rc = rq__stripes_next(&l->stripes, ret, why);
        if (rc == RQ_E_END && l->stripes.lsn >= end_now(l)) continue;
        if (rc == RQ_E_END) return judge(l, why);
        if (rc != RQ_OK || ret->lsn > l->from) return rc;
    }
}

uint64_t rq_wal_sealed_lsn(const rq_wal_sealed *l)
{
    return l->stripes.lsn;
}

/* --- open ------------------------------------------------------------------------------------- */

rq_err rq_wal_sealed_open(rq_shared *s, const char *server_name, uint64_t from, rq_wal_sealed **ret,
                          rq_error *why)
{
    rq_wal_sealed *l = calloc(1, sizeof *l);
    if (l == NULL) return rq_no_memory(why);
    uint64_t generation;
    l->from = from;
    rq_err rc = rq__head_read(s, server_name, &l->arena, &l->head, &generation, why);
    if (rc == RQ_OK && l->head.state == RQ_WAL_OPEN)
        rc = rq_fail(why, RQ_E_STATE, "the log of %s has not ended", server_name);
    if (rc != RQ_OK) {
        rq_wal_sealed_close(l);
        return rc;
    }
    memcpy(l->server_name, server_name, strlen(server_name) + 1);
    rq__stripes_init(&l->stripes, s, l->server_name);
    while (l->index + 1 < l->head.count && end_now(l) <= from)
        l->index++;
    if (l->head.count > 0) l->stripes.lsn = l->head.ledgers[l->index].first_lsn;
    *ret = l;
    return RQ_OK;
}

void rq_wal_sealed_close(rq_wal_sealed *l)
{
    if (l == NULL) return;
    rq__stripes_clear(&l->stripes);
    rq_arena_clear(&l->arena);
    free(l);
}
