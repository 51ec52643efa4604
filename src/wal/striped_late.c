/* SPDX-License-Identifier: Apache-2.0 */
/* Reports appends that shared storage acknowledges late or not at all, by rq_wal_options.on_late. At most one SLOW report is made per
 * second, one LOST per 10 s, one STALLED per 30 s; the reports left out are counted. REQUIRES: the log's mutex. */
#include "wal/striped_priv.h"

#define SECOND UINT64_C(1000000000)
#define STANDS_STILL_NS (5 * SECOND) /* an append and the segment that replaces it take less */

static const uint64_t pauses_ns[] = {
    [RQ_WAL_LATE_SLOW] = SECOND,
    [RQ_WAL_LATE_LOST] = 10 * SECOND,
    [RQ_WAL_LATE_STALLED] = 30 * SECOND,
    [RQ_WAL_LATE_RESUMED] = 0,
};
_Static_assert(RQ_ARRAY_LEN(pauses_ns) == RQ_WAL_LATE_KINDS, "a pause for each kind");

/* Whether the line is due; else it is counted for the next one. */
static bool is_due(rq__late_lines *l, uint64_t pause_ns, uint64_t now)
{
    if (l->told_ns != 0 && now - l->told_ns < pause_ns) {
        l->more++;
        return false;
    }
    l->told_ns = now;
    return true;
}

static void tell(rq__striped *st, rq_wal_late late)
{
    const rq_wal *wal = st->wal;
    rq__late_lines *l = &st->late[late.kind];
    if (wal->options.on_late == NULL ||
        !is_due(l, pauses_ns[late.kind], rq__striped_now_ns(st->wal)))
        return;
    late.more = l->more;
    l->more = 0;
    wal->options.on_late(wal->options.ctx, &late);
}

static void tell_append(rq__striped *st, rq_wal_late_kind kind, const rq__extent_write *w,
                        const char *why)
{
    char object[RQ_SLOG_NAME_MAX];
    rq_slog_name(w->segment->log, w->write.stripe, object);
    tell(st, (rq_wal_late){.kind = kind,
                           .object = object,
                           .bytes = w->write.bytes.len,
                           .ns = rq__striped_now_ns(st->wal) - w->sent_ns,
                           .why = why});
}

void rq__late_answered(rq__striped *st, const rq__extent_write *w)
{
    rq_wal *wal = st->wal;
    uint64_t slow_ns = wal->options.slow_ns, took = rq__striped_now_ns(wal) - w->sent_ns;
    if (slow_ns == 0 || took < slow_ns) return;
    wal->stats.slow_appends++;
    tell_append(st, RQ_WAL_LATE_SLOW, w, NULL);
}

void rq__late_lost(rq__striped *st, const rq__extent_write *w, rq_err rc)
{
    if (rc == RQ_E_SERVER_ABORTED) return; /* the tenure has ended, which others tell */
    if (st->stalled_ns == 0) st->stalled_ns = w->sent_ns;
    tell_append(st, RQ_WAL_LATE_LOST, w, rq_err_text(rc));
}

static void tell_stalled(rq__striped *st, const char *why)
{
    uint64_t ns = rq__striped_now_ns(st->wal) - st->stalled_ns;
    tell(st, (rq_wal_late){.kind = RQ_WAL_LATE_STALLED, .ns = ns, .why = why});
}

void rq__late_stalled(rq__striped *st, const rq_error *why)
{
    if (st->stalled_ns == 0) st->stalled_ns = rq__striped_now_ns(st->wal);
    tell_stalled(st, why->message);
}

void rq__late_look(rq__striped *st)
{
    bool waits = st->running && !st->ready && st->stalled_ns != 0;
    if (waits && rq__striped_now_ns(st->wal) - st->stalled_ns >= STANDS_STILL_NS)
        tell_stalled(st, "it does not answer");
}

void rq__late_resumed(rq__striped *st)
{
    uint64_t since = st->stalled_ns;
    st->stalled_ns = 0;
    if (since != 0)
        tell(st,
             (rq_wal_late){.kind = RQ_WAL_LATE_RESUMED, .ns = rq__striped_now_ns(st->wal) - since});
}
