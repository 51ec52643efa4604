/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to the log's ledgers on shared storage: extents on their stripes, acknowledged in any order.
 * Rules 1, 2 and 4 of striped.c. */
#include "wal/striped_priv.h"

#include <stdlib.h>

#include "base/checksum.h"

/* --- ledgers --------------------------------------------------------------------------------- */

void rq__ledger_free(rq__ledger *s)
{
    if (s == NULL) return;
    RQ_ASSERT(s->in_flight == 0);
    if (s->gone != NULL) rq__striped_freed(s->wal, s->gone);
    rq_slog_close(s->log);
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        rq_buf_clear(&s->writes[k].bytes);
    free(s);
}

rq_err rq__ledger_open(rq__striped *st, uint64_t number, rq__ledger **ret, rq_error *why)
{
    rq__ledger *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->wal = st->wal;
    rq_err rc = rq_slog_open(st->tenure, number, &s->log, why);
    if (rc != RQ_OK) {
        free(s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

void rq__ledger_abandon(rq__striped *st, rq__ledger *s)
{
    if (s == NULL) return;
    if (s->in_flight == 0) {
        rq__ledger_free(s);
        return;
    }
    s->abandoned = true;
    s->next = st->abandoned;
    st->abandoned = s;
}

static void forget_abandoned(rq__striped *st, rq__ledger *gone)
{
    rq__ledger **at = &st->abandoned;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    rq__ledger_free(gone);
}

/* --- appends ---------------------------------------------------------------------------------- */

/* REQUIRES: mutex. */
static void advance(rq__striped *st)
{
    rq_wal *wal = st->wal;
    while (st->first != NULL && st->first->acknowledged) {
        rq__extent_write *w = st->first;
        uint64_t took = rq__striped_now_ns(wal) - w->sent_ns;
        st->first = w->next;
        if (st->first == NULL) st->last = NULL;
        w->busy = false;
        rq__wal_marks_set(wal, wal->written, w->to);
        wal->attested = wal->synced;
        wal->stats.syncs++;
        wal->stats.sync_ns += took;
        if (took > wal->stats.sync_ns_max) wal->stats.sync_ns_max = took;
        rq_times_add(&wal->sync_times, took, 1);
    }
}

static void appended(rq_slog_write *write, rq_err rc)
{
    rq__extent_write *w = RQ_CONTAINER_OF(write, rq__extent_write, write);
    rq__ledger *s = w->ledger;
    rq_wal *wal = s->wal;
    rq__striped *st = wal->striped;
    pthread_mutex_lock(&wal->mutex);
    s->in_flight--;
    if (s->abandoned) {
        if (s->in_flight == 0) forget_abandoned(st, s);
    } else if (rc == RQ_OK) {
        w->acknowledged = true;
        s->lengths[write->stripe] += write->bytes.len;
        wal->no_space = false;
        rq__late_answered(st, w);
        advance(st);
    } else if (wal->broken == RQ_OK || rc == RQ_E_SERVER_ABORTED) {
        wal->broken = rc;
        rq__late_lost(st, w, rc);
        if (rc == RQ_E_NO_SPACE) wal->no_space = true; /* until an append succeeds */
        if (rq__striped_lacks_progress(wal)) rq__wal_retry_later(wal);
    }
    pthread_mutex_unlock(&wal->mutex);
    rq__wal_complete(wal, NULL);
    rq__wal_lane_turn(wal);
}

/* The end of an extent that begins at `from`: the end of a frame. The ring's frames are our own and
 * trusted. */
static rq_lsn extent_end(const rq_wal *wal, rq_lsn from, rq_lsn to)
{
    if (to - from <= RQ_WAL_EXTENT_BYTES) return to;
    rq_lsn end = from;
    for (;;) {
        /* Frames are aligned and the ring's size is a power of two: no header field crosses the
         * ring's end. */
        uint32_t body = rq_get_be32(wal->ring + ((end + 24) & (wal->ring_cap - 1)));
        uint64_t len = rq__wal_frame_len(body);
        RQ_ASSERT(len <= to - end);
        if (end > from && end + len - from > RQ_WAL_EXTENT_BYTES) return end;
        end += len;
        if (end == to) return end;
    }
}

static rq_err extent_fill(const rq_wal *wal, rq__extent_write *w, const uint8_t *ring, size_t cap,
                          uint64_t acknowledged)
{
    size_t len = (size_t)(w->to - w->from), pos = (size_t)(w->from & (cap - 1));
    size_t first = cap - pos < len ? cap - pos : len;
    rq_buf_reset(&w->bytes);
    RQ_TRY(rq_buf_reserve(&w->bytes, RQ_WAL_EXTENT_HEADER_LEN + len));
    uint8_t *body = w->bytes.ptr + RQ_WAL_EXTENT_HEADER_LEN;
    memcpy(body, ring + pos, first);
    memcpy(body + first, ring, len - first);
    w->bytes.len = RQ_WAL_EXTENT_HEADER_LEN + len;
    rq__extent e = {.epoch = wal->epoch, .lsn = w->from, .len = (uint32_t)len};
    e.acknowledged = acknowledged;
    e.crc = rq_crc32c(0, body, len);
    rq__extent_encode(&e, w->bytes.ptr);
    return RQ_OK;
}

/* Sends [written, to). REQUIRES: mutex, which is released meanwhile; the stripe is idle. */
static void send_extent(rq__striped *st, rq__extent_write *w, unsigned stripe, rq_lsn to)
{
    rq_wal *wal = st->wal;
    rq__ledger *s = st->current;
    rq_lsn acknowledged = wal->synced;
    w->ledger = s;
    w->from = wal->written;
    w->to = extent_end(wal, wal->written, to);
    w->next = NULL;
    w->acknowledged = false;
    const uint8_t *ring = wal->ring; /* stays, for the lane has the pen */
    size_t cap = wal->ring_cap;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = extent_fill(wal, w, ring, cap, acknowledged);
    pthread_mutex_lock(&wal->mutex);
    free(wal->ring_retired);
    wal->ring_retired = NULL;
    if (rc != RQ_OK) {
        wal->broken = rc;
        return;
    }
    w->busy = true;
    w->sent_ns = rq__striped_now_ns(wal);
    w->write = (rq_slog_write){.stripe = stripe,
                               .off = s->lengths[stripe],
                               .bytes = rq_buf_slice(&w->bytes),
                               .lane = wal->lane,
                               .done = appended};
    *(st->last == NULL ? &st->first : &st->last->next) = w;
    st->last = w;
    s->in_flight++;
    s->next_stripe = (stripe + 1) % RQ_SLOG_STRIPES;
    wal->stats.writes++;
    wal->written = w->to;
    atomic_store_explicit(&wal->written_mark, w->to, memory_order_release);
    pthread_mutex_unlock(&wal->mutex);
    rq_slog_submit(s->log, &w->write);
    pthread_mutex_lock(&wal->mutex);
}

bool rq__ledger_send(rq__striped *st)
{
    rq_wal *wal = st->wal;
    rq__ledger *s = st->current;
    rq_lsn to = wal->newest == wal->current ? wal->staged : wal->newest->first_lsn;
    if (wal->written == to) {
        if (to == wal->staged) wal->push_wanted = false;
        return false;
    }
    rq__extent_write *w = &s->writes[s->next_stripe];
    if (w->busy) return false;
    rq__wal_await_copies(wal);
    send_extent(st, w, s->next_stripe, to);
    return true;
}
