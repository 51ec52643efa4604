/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches the memory that reads and writes of many regions will touch, interleaved. These are
 * hints: nothing waits for them, and an address noted here may belong to an object that no longer
 * exists. */
#include "hfile/ahead.h"
#include "region/write_priv.h"

#include <stddef.h>

#define TAIL_LINES 4 /* a small cell with its links */

/* A region that is written to. */
static void expect_region(const rq_region *r)
{
#define WARM(what) atomic_load_explicit(&r->warm.what, memory_order_relaxed)
    rq_prefetch_bytes(r, offsetof(rq_region, arena));
    rq_segment_prefetch(WARM(segment));
    rq_prefetch_bytes(WARM(store), RQ_CACHE_LINE);
    rq_prefetch_bytes(WARM(version), RQ_CACHE_LINE);
    rq_prefetch_bytes(WARM(tail), TAIL_LINES * RQ_CACHE_LINE);
    rq_prefetch_bytes(WARM(bounds), RQ_CACHE_LINE);
    rq_prefetch_bytes(r->stores, RQ_CACHE_LINE);
    rq_wal_region_prefetch(r->log);
#undef WARM
}

static void expect_row(const rq_region *r, rq_slice row, rq_segment_row *list, size_t *count)
{
    if (r->store_count == 0 || row.len == 0) return;
    const rq_store_version *v = rq_store_version_now(r->stores[0].store);
    list[(*count)++] = (rq_segment_row){v->active, row, true};
}

void rq__region_expect_writes(const rq_region_expected *list, size_t count)
{
    rq_segment_row rows[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        expect_region(list[i].region);
    for (size_t i = 0; i < count; i++)
        expect_row(list[i].region, list[i].row, rows, &n);
    if (n > 0) rq_segment_expect_rows(rows, n);
}

void rq__region_expect_list(rq_region *r, const rq_write *first)
{
    const rq_write *writes[RQ_REGION_EXPECT_MAX];
    rq_segment_row rows[RQ_REGION_EXPECT_MAX];
    size_t count = 0;
    size_t n = 0;
    /* The writes may be in another core's cache, and each points to the next. */
    for (const rq_write *w = first; w != NULL && count < RQ_REGION_EXPECT_MAX; w = w->next) {
        rq_prefetch_bytes(w->ops, sizeof *w->ops);
        rq_prefetch_bytes(w->state, sizeof(rq__batch));
        writes[count++] = w;
    }
    for (size_t i = 0; i < count; i++)
        rq_prefetch_bytes(writes[i]->ops->mutations, RQ_CACHE_LINE);
    for (size_t i = 0; i < count; i++) {
        if (rq__write_row(writes[i]).len == 0) continue;
        rq_prefetch_bytes(rq__write_row(writes[i]).ptr, RQ_CACHE_LINE);
        rq_prefetch_bytes(writes[i]->ops->mutations->cells, sizeof(rq_cell));
    }
    for (size_t i = 0; i < count; i++)
        expect_row(r, rq__write_row(writes[i]), rows, &n);
    if (n > 0) rq_segment_expect_rows(rows, n);
}

/* What a request begins with. */
static void expect_read(const rq_region *r)
{
    rq_prefetch_bytes(r, offsetof(rq_region, queue));
    rq_prefetch_bytes(&r->read_point, RQ_CACHE_LINE);
    rq_prefetch_bytes(&r->info, sizeof r->info);
}

/* Looks the row up in the large files of a store; false if it has none. */
static bool is_far(const rq_store_version *v, rq_slice row, rq_hfile_row *ret)
{
    ret->row = row;
    ret->count = 0;
    for (size_t i = v->file_count; i-- > 0 && ret->count < RQ_HFILE_AHEAD_FILES;) {
        const rq_hfile_reader *r = v->files[i].reader;
        if (rq_hfile_reader_info(r)->size_bytes >= RQ_HFILE_FAR_BYTES) ret->files[ret->count++] = r;
    }
    return ret->count > 0;
}

void rq_region_expect(const rq_region_expected *list, size_t count)
{
    rq_segment_row rows[RQ_REGION_EXPECT_MAX];
    rq_hfile_row far[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    size_t far_count = 0;
    if (count > RQ_REGION_EXPECT_MAX) count = RQ_REGION_EXPECT_MAX;
    for (size_t i = 0; i < count; i++)
        expect_read(list[i].region);
    for (size_t i = 0; i < count; i++) {
        const rq_region *r = list[i].region;
        if (r->store_count == 0 || list[i].writes) continue;
        const rq_store_version *v = rq_store_version_now(r->stores[0].store);
        rows[n++] = (rq_segment_row){v->active, list[i].row, false};
        if (is_far(v, list[i].row, &far[far_count])) far_count++;
    }
    if (n > 0) rq_segment_expect_rows(rows, n);
    if (far_count > 0) rq_hfile_expect_rows(far, far_count);
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
