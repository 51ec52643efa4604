/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reads and writes of many regions will look at, asked for from memory all at once. Hints
 * only: nothing waits for them, and an address noted here may be of something that is gone.
 */
#include "region/region_priv.h"

#include <stddef.h>

#define TAIL_LINES 4 /* a small cell with its links */

void rq_region_expect_write(const rq_region *r)
{
#define WARM(what) atomic_load_explicit(&r->warm.what, memory_order_relaxed)
    rq_ask_for(r, offsetof(rq_region, arena));
    rq_segment_ask_for(WARM(segment));
    rq_ask_for(WARM(store), RQ_CACHE_LINE);
    rq_ask_for(WARM(version), RQ_CACHE_LINE);
    rq_ask_for(WARM(tail), TAIL_LINES * RQ_CACHE_LINE);
    rq_ask_for(WARM(bounds), RQ_CACHE_LINE);
    rq_ask_for(r->stores, RQ_CACHE_LINE);
    rq_wal_region_ask_for(r->log);
#undef WARM
}

/* What a get begins with. */
static void expect_read(const rq_region *r)
{
    rq_ask_for(r, offsetof(rq_region, queue));
    rq_ask_for(&r->read_point, RQ_CACHE_LINE);
    rq_ask_for(&r->info, sizeof r->info);
}

void rq_region_expect(const rq_region_expected *list, size_t count)
{
    rq_segment_row rows[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    if (count > RQ_REGION_EXPECT_MAX) count = RQ_REGION_EXPECT_MAX;
    for (size_t i = 0; i < count; i++)
        expect_read(list[i].region);
    for (size_t i = 0; i < count; i++)
        if (list[i].writes) rq_region_expect_write(list[i].region);
    for (size_t i = 0; i < count; i++) {
        const rq_region *r = list[i].region;
        if (r->store_count == 0) continue;
        const rq_segment *s = rq_store_version_now(r->stores[0].store)->active;
        rows[n++] = (rq_segment_row){s, list[i].row, list[i].writes};
    }
    rq_segment_expect_rows(rows, n);
}

void rq__region_note_warm(rq_region *r)
{
    if (r->store_count == 0) return;
    const rq_store_version *v = rq_store_version_now(r->stores[0].store);
    atomic_store_explicit(&r->warm.store, r->stores[0].store, memory_order_relaxed);
    atomic_store_explicit(&r->warm.bounds, r->info.start_key.ptr, memory_order_relaxed);
    atomic_store_explicit(&r->warm.version, v, memory_order_relaxed);
    atomic_store_explicit(&r->warm.segment, v->active, memory_order_relaxed);
    atomic_store_explicit(&r->warm.tail, rq_segment_tail(v->active), memory_order_relaxed);
}
