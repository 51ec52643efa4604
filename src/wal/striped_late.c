/* SPDX-License-Identifier: Apache-2.0 */
/* Reports appends that shared storage acknowledges late or not at all, by rq_wal_options.on_late. At most one SLOW report is made per
 * second, one LOST per 10 s, one STALLED per 30 s; the reports left out are counted (rq_log_limit). REQUIRES: the log's mutex. */
#include "wal/striped_priv.h"

#include <limits.h>

#define SECOND UINT64_C(1000000000)
#define STANDS_STILL_NS (5 * SECOND) /* an append and the ledger that replaces it take less */

static const rq_log_rate rates[] = {
    [RQ_WAL_LATE_SLOW] = {1, SECOND},
    [RQ_WAL_LATE_LOST] = {1, 10 * SECOND},
    [RQ_WAL_LATE_STALLED] = {1, 30 * SECOND},
    [RQ_WAL_LATE_RESUMED] = {UINT_MAX, SECOND},
};
_Static_assert(RQ_ARRAY_LEN(rates) == RQ_WAL_LATE_KINDS, "a rate for each kind");

static void report(rq__striped *st, rq_wal_late late)
{
    const rq_wal *wal = st->wal;
    if (wal->options.on_late == NULL) return;
    if (rq_log_limit_passes(&st->late[late.kind], rates[late.kind], rq__striped_now_ns(wal),
                            &late.suppressed))
        wal->options.on_late(wal->options.ctx, &late);
}

static void report_append(rq__striped *st, rq_wal_late_kind kind, const rq__extent_write *w,
                          const char *why)
{
    char object[RQ_SLOG_NAME_MAX];
    rq_slog_name(w->ledger->log, w->write.stripe, object);
    report(st, (rq_wal_late){.kind = kind,
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
    report_append(st, RQ_WAL_LATE_SLOW, w, NULL);
}

void rq__late_lost(rq__striped *st, const rq__extent_write *w, rq_err rc)
{
    if (rc == RQ_E_SERVER_ABORTED) return; /* the tenure has ended, which others report */
    if (st->stalled_ns == 0) st->stalled_ns = w->sent_ns;
    report_append(st, RQ_WAL_LATE_LOST, w, rq_err_text(rc));
}

static void report_stalled(rq__striped *st, const char *why)
{
    uint64_t ns = rq__striped_now_ns(st->wal) - st->stalled_ns;
    report(st, (rq_wal_late){.kind = RQ_WAL_LATE_STALLED, .ns = ns, .why = why});
}

void rq__late_stalled(rq__striped *st, const rq_error *why)
{
    if (st->stalled_ns == 0) st->stalled_ns = rq__striped_now_ns(st->wal);
    report_stalled(st, why->message);
}

void rq__late_check(rq__striped *st)
{
    bool waits = st->running && !st->ready && st->stalled_ns != 0;
    if (waits && rq__striped_now_ns(st->wal) - st->stalled_ns >= STANDS_STILL_NS)
        report_stalled(st, "it does not answer");
}

void rq__late_resumed(rq__striped *st)
{
    uint64_t since = st->stalled_ns;
    st->stalled_ns = 0;
    if (since != 0)
        report(st, (rq_wal_late){.kind = RQ_WAL_LATE_RESUMED,
                                 .ns = rq__striped_now_ns(st->wal) - since});
}
