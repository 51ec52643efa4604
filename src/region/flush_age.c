/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes triggered by the memstore's age, or by the number of edits since the last flush, so that
 * a region with few writes does not hold the log forever.
 *
 *    every hbase.regionserver.flush.check.period   is_due? ─► noted, with a random delay
 *    every second                                  delay over and still due? ─► flush
 *
 * The random delay keeps regions with similar write patterns from being flushed at the same time.
 * If the region is flushed for another reason meanwhile, its memstore is young again and nothing is
 * left to do. The policy in flush.c chooses the families: the large ones and those with old edits.
 *
 * HBASE: PeriodicMemStoreFlusher, HRegion.shouldFlush, HRegion.shouldFlushStore,
 * MemStoreFlusher.requestDelayedFlush. */
#include "region/engine_priv.h"

/* HBASE: HRegion.SYSTEM_CACHE_FLUSH_INTERVAL, regardless of the setting. */
#define SYSTEM_INTERVAL_MS ((int64_t)5 * 60 * 1000)

void rq__flush_age_init(rq_region *r)
{
    r->flush_interval_ms = r->engine->flush_interval_ms;
    rq__setting_i64(r->schema, NULL, "hbase.regionserver.optionalcacheflushinterval",
                    &r->flush_interval_ms);
    r->flush_changes = r->engine->flush_changes;
    rq__setting_u64(r->schema, NULL, "hbase.regionserver.flush.per.changes", &r->flush_changes);
}

/* Any thread; it only looks at the version's segments. */
static bool holds_old_edits(const rq_store *s, int64_t interval_ms, int64_t now_ms)
{
    const rq_store_version *v = rq_store_version_now(s);
    for (size_t i = 0; i <= v->snapshot_count; i++) {
        int64_t since = rq_segment_written_since(i == 0 ? v->active : v->snapshots[i - 1]);
        if (since != 0 && now_ms - since > interval_ms) return true;
    }
    return false;
}

static uint64_t lowest_seqid(const rq_store *s)
{
    const rq_store_version *v = rq_store_version_now(s);
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i <= v->snapshot_count; i++) {
        uint64_t min;
        uint64_t max;
        rq_segment_seqid_range(i == 0 ? v->active : v->snapshots[i - 1], &min, &max);
        if (min < lowest) lowest = min;
    }
    return lowest;
}

bool rq__store_is_old(const rq__region_store *s, int64_t now_ms)
{
    const rq_region *r = s->region;
    uint64_t lowest = lowest_seqid(s->store);
    if (lowest == UINT64_MAX) return false;
    if (rq__region_read_point(r) > lowest - 1 + r->flush_changes) return true;
    return r->flush_interval_ms > 0 && holds_old_edits(s->store, r->flush_interval_ms, now_ms);
}

static bool is_due(rq_region *r, int64_t now_ms)
{
    uint64_t flushed = atomic_load_explicit(&r->max_flushed_seqid, memory_order_relaxed);
    if (flushed > 0 && flushed + r->flush_changes < rq__region_read_point(r)) return true;
    bool system = rq_slice_eq(r->info.ns, RQ_SLICE_LIT("hbase"));
    int64_t interval_ms = system ? SYSTEM_INTERVAL_MS : r->flush_interval_ms;
    bool due = false;
    if (interval_ms <= 0) return false;
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    for (size_t i = 0; i < r->store_count && !due; i++)
        due = holds_old_edits(r->stores[i].store, interval_ms, now_ms);
    rq_epoch_unpin(r->env.epoch, &pin);
    return due;
}

void rq__flush_age_look(rq_region *r, int64_t now_ms)
{
    rq_executor *ex = r->env.executor;
    uint64_t range_ms = r->engine->flush_delay_ms;
    if (r->flush_due_ns != 0 || !is_due(r, now_ms)) return;
    uint64_t delay_ms = range_ms == 0 ? 0 : ex->random(ex) % range_ms;
    r->flush_due_ns = ex->now_ns(ex) + delay_ms * 1000000;
}

void rq__flush_age_act(rq_region *r)
{
    rq_executor *ex = r->env.executor;
    if (r->flush_due_ns == 0 || r->flush_due_ns > ex->now_ns(ex)) return;
    r->flush_due_ns = 0;
    if (is_due(r, ex->now_ms(ex))) rq__region_request_flush(r);
}
