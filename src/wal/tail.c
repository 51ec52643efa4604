/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a live log; contract in tail.h. One WAL file is open at a time. The durable end of the file
 * is set as the reader's end (rq__wal_reader_set_end). When more has become durable, the reader's
 * window is dropped: it may have been read ahead before these bytes were written. */
#include "wal/tail.h"

#include <stdlib.h>

#include "wal/striped.h"
#include "wal/wal_priv.h"

struct rq_wal_tail {
    rq_wal *wal;
    rq__striped_tail *striped; /* of a log on shared storage; the fields below are unused */
    rq_lsn at;
    rq_wal_reader *reader; /* NULL: none is open */
    rq_lsn upto;           /* the reader's end: what was durable when it was last set */
};

rq_err rq_wal_tail_new(rq_wal *wal, rq_lsn from, rq_wal_tail **ret)
{
    rq_wal_tail *t = calloc(1, sizeof *t);
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->wal = wal;
    t->at = from;
    if (wal->striped != NULL && rq__striped_tail_new(wal, from, &t->striped) != RQ_OK) {
        free(t);
        return RQ_E_NO_MEMORY;
    }
    *ret = t;
    return RQ_OK;
}

static void close_file(rq_wal_tail *t)
{
    rq__wal_reader_close(t->reader);
    t->reader = NULL;
}

void rq_wal_tail_free(rq_wal_tail *t)
{
    if (t == NULL) return;
    rq__striped_tail_free(t->striped);
    close_file(t);
    free(t);
}

rq_lsn rq_wal_tail_lsn(const rq_wal_tail *t)
{
    return t->striped != NULL ? rq__striped_tail_lsn(t->striped) : t->at;
}

rq_lsn rq_wal_durable(const rq_wal *wal)
{
    return atomic_load_explicit(&wal->synced_mark, memory_order_acquire);
}

uint64_t rq_wal_epoch(const rq_wal *wal)
{
    return wal->epoch;
}

void rq_wal_keep_from(rq_wal *wal, uint64_t from)
{
    pthread_mutex_lock(&wal->mutex);
    wal->kept_from = from;
    pthread_mutex_unlock(&wal->mutex);
}

/* The WAL file with the bytes behind t->at. */
typedef struct place {
    uint64_t number;
    unsigned slot_id;
    rq_lsn end; /* what may be read of it */
} place;

/* RQ_E_END: nothing behind t->at is durable. */
static rq_err find_place(rq_wal_tail *t, place *ret, rq_error *why)
{
    rq_wal *wal = t->wal;
    rq_err rc = RQ_E_END;
    pthread_mutex_lock(&wal->mutex);
    const wal_file *s = wal->oldest;
    rq_lsn synced = wal->synced;
    if (t->at < s->first_lsn) {
        rc = t->at == 0 ? RQ_E_END
                        : rq_fail(why, RQ_E_NOT_FOUND,
                                  "the write-ahead log begins at LSN %llu, after the position %llu",
                                  (unsigned long long)s->first_lsn, (unsigned long long)t->at);
        t->at = s->first_lsn;
    }
    while (s != NULL && s->sealed && s->end_lsn <= t->at)
        s = s->next;
    if (rc != RQ_E_NOT_FOUND && s != NULL && synced > t->at && s->first_lsn <= t->at) {
        *ret = (place){.number = s->number,
                       .slot_id = s->slot->id,
                       .end = s->sealed && s->end_lsn < synced ? s->end_lsn : synced};
        rc = RQ_OK;
    }
    pthread_mutex_unlock(&wal->mutex);
    return rc;
}

static rq_err open_file(rq_wal_tail *t, const place *p, rq_error *why)
{
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(t->wal, p->slot_id, path);
    RQ_TRY(rq__wal_reader_open(t->wal->env.vfs, path, &t->reader, why));
    const rq_wal_file_info *info = rq__wal_reader_info(t->reader);
    rq_err rc = RQ_OK;
    if (info->number != p->number)
        rc = rq_fail(why, RQ_E_STATE, "%s: recycled while being read", path);
    if (rc == RQ_OK && t->at > info->first_lsn) rq__wal_reader_seek(t->reader, t->at);
    if (rc != RQ_OK) close_file(t);
    return rc;
}

/* Makes the reader ready to read at t->at. RQ_E_END: there is nothing. */
static rq_err get_ready(rq_wal_tail *t, rq_error *why)
{
    place p;
    if (t->reader != NULL && t->at < t->upto) return RQ_OK;
    RQ_TRY(find_place(t, &p, why));
    if (t->reader != NULL && rq__wal_reader_info(t->reader)->number != p.number) close_file(t);
    if (t->reader == NULL)
        RQ_TRY(open_file(t, &p, why));
    else
        RQ_TRY(rq__wal_reader_refresh(t->reader, why));
    rq__wal_reader_set_end(t->reader, p.end);
    t->upto = p.end;
    return RQ_OK;
}

/* Whether the log has dropped the record behind t->at, so that its file may have got other contents. */
static bool is_dropped(const rq_wal_tail *t)
{
    pthread_mutex_lock(&t->wal->mutex);
    bool dropped = t->at < t->wal->oldest->first_lsn;
    pthread_mutex_unlock(&t->wal->mutex);
    return dropped;
}

rq_err rq_wal_tail_next(rq_wal_tail *t, rq_wal_record *ret, rq_error *why)
{
    if (t->striped != NULL) return rq__striped_tail_next(t->striped, ret, why);
    for (;;) {
        rq_err rc = get_ready(t, why);
        if (rc != RQ_OK) return rc;
        rc = rq__wal_reader_next(t->reader, ret, why);
        if (rc == RQ_E_END) { /* only marks were left */
            t->at = t->upto;
            continue;
        }
        if (rc != RQ_OK) {
            close_file(t);
            if (rc == RQ_E_CORRUPT && is_dropped(t)) continue; /* find_place reports it */
            return rc;
        }
        t->at = rq__wal_reader_lsn(t->reader);
        return RQ_OK;
    }
}
