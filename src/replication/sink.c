/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the sink; see sink.h. */
#include "replication/sink.h"

void rq_sink_count(rq_sink *s, size_t entries, int64_t write_ms, int64_t now_ms, bool ok)
{
    if (!ok) {
        atomic_fetch_add_explicit(&s->failed, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&s->batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->entries, entries, memory_order_relaxed);
    if (write_ms == 0) return;
    atomic_store_explicit(&s->last_write_ms, write_ms, memory_order_relaxed);
    atomic_store_explicit(&s->applied_ms, now_ms, memory_order_relaxed);
}

uint64_t rq_sink_age_ms(const rq_sink *s)
{
    int64_t applied = atomic_load_explicit(&s->applied_ms, memory_order_relaxed);
    int64_t written = atomic_load_explicit(&s->last_write_ms, memory_order_relaxed);
    /* A cluster may send any time, the smallest number too. */
    return applied > written ? (uint64_t)applied - (uint64_t)written : 0;
}

void rq_sink_get_load(const rq_sink *s, rq_sink_load *ret)
{
    int64_t applied = atomic_load_explicit(&s->applied_ms, memory_order_relaxed);
    *ret = (rq_sink_load){.entries = atomic_load_explicit(&s->entries, memory_order_relaxed),
                          .age_ms = rq_sink_age_ms(s),
                          .started_ms = s->started_ms,
                          .applied_ms = applied == 0 ? s->started_ms : applied};
}
