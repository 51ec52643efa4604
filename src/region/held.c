/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that are held because memory is short, or because the log or the disk has no space (write.c). They wait in order
 * behind each other, and run again when memstores were flushed or at the engine's next tick; after
 * hbase.busy.wait.duration they are refused. Also the accounting of the memstores, by which memory is short.
 */
#include "region/apart.h"
#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <stdlib.h>

/* Longest wait on a full disk, enough for flushes to free WAL files: a client gives up after
 * hbase.rpc.timeout, and would never learn the reason. */
#define NO_SPACE_WAIT_NS ((uint64_t)5 * 1000 * 1000 * 1000)

/* After RegionTooBusyException, as after every exception that is not a DoNotRetryIOException, a
 * client retries without asking meta for the region's location. HBASE: ClientExceptionsUtil. */
static rq_err too_busy(const rq_region *r, rq_error *why)
{
    if (r->log_is_full)
        return rq_fail(
            why, RQ_E_REGION_TOO_BUSY,
            "no space left on the server's disk: the write-ahead log cannot grow, regionName=%s",
            r->info.encoded);
    if (atomic_load_explicit(&r->flush_rc, memory_order_relaxed) == RQ_E_NO_SPACE)
        return rq_fail(why, RQ_E_REGION_TOO_BUSY,
                       "no space left on the server's disk: the memstore cannot be flushed, "
                       "regionName=%s",
                       r->info.encoded);
    return rq_fail(why, RQ_E_REGION_TOO_BUSY, "Over memstore limit=%.1f M, regionName=%s",
                   (double)r->blocking_bytes / (1 << 20), r->info.encoded);
}

void rq__batch_hold(rq_region *r, rq__batch *b)
{
    rq_write *w = rq__write_of(b);
    if (b->held_since_ns == 0) b->held_since_ns = r->env.executor->now_ns(r->env.executor);
    w->next = NULL;
    if (r->held_last != NULL)
        r->held_last->next = w;
    else
        r->held_first = w;
    r->held_last = w;
    atomic_fetch_add_explicit(&r->held, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
    /* The excess may be flushed already and wait for its last reader: rq__engine_version_freed. */
    if (r->log_is_full || r->memstore_heap > r->blocking_bytes ||
        atomic_load_explicit(&r->engine->memstore_bytes, memory_order_relaxed) >
            r->engine->memstore_low)
        rq__region_request_flush(r);
}

static uint64_t longest_wait_ns(const rq_region *r)
{
    uint64_t busy = r->engine->busy_wait_ns;
    bool full = r->log_is_full || atomic_load(&r->flush_rc) == RQ_E_NO_SPACE;
    return full && busy > NO_SPACE_WAIT_NS ? NO_SPACE_WAIT_NS : busy;
}

static void run_retry(rq_region *r, rq__work *work)
{
    (void)work;
    r->retry_queued = false;
    rq__region_retry_held(r);
}

/* Puts the writes from `first` to `last` in front of the held ones again, for another time slice. */
static void retry_rest(rq_region *r, rq_write *first, rq_write *last)
{
    last->next = r->held_first;
    if (r->held_last == NULL) r->held_last = last;
    r->held_first = first;
    if (r->retry_queued) return;
    r->retry_queued = true;
    r->retry = (rq__work){.run = run_retry, .lane = rq__batch_of(first)->list.work.lane};
    rq__region_enqueue(r, &r->retry);
}

void rq__region_retry_held(rq_region *r)
{
    rq_write *w = r->held_first;
    rq_write *last = r->held_last;
    r->held_first = r->held_last = NULL;
    uint64_t now = r->env.executor->now_ns(r->env.executor);
    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    uint64_t longest = longest_wait_ns(r);
    bool closing = rq__region_state_now(r) != RQ__REGION_OPEN;
    while (w != NULL) {
        rq_write *next = w->next;
        rq__batch *b = rq__batch_of(w);
        rq__ended ended = {0}; /* each by itself: they are of many lanes */
        atomic_fetch_sub_explicit(&r->held, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&r->engine->held_writes, 1, memory_order_relaxed);
        if (!closing && now - b->held_since_ns >= longest) {
            rq_error why;
            rq_error_clear(&why);
            rq_err rc = too_busy(r, &why);
            atomic_fetch_add_explicit(&r->engine->refused_writes, 1, memory_order_relaxed);
            rq__write_fail_rest(w, rc, &why);
            rq__batch_end(r, b, &ended);
        } else {
            /* If one is held again, so are those behind it. */
            if (rq__batch_go_on(r, b, r->held_first == NULL, now_ms, &ended)) {
                b->was_admitted = true;
                rq__batch_put_behind(r, b);
            }
        }
        rq__writes_finish(r, &ended);
        w = next;
        if (w != NULL && r->meter.over) {
            retry_rest(r, w, last);
            return;
        }
    }
}

/* --- accounting ------------------------------------------------------------------------------- */

void rq__region_account(rq_region *r)
{
    /* A closed region is not counted any more (rq__engine_remove). */
    if (rq__region_state_now(r) == RQ__REGION_CLOSED) return;
    uint64_t active = 0;
    uint64_t heap = 0;
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = rq_store_version_now(r->stores[i].store);
        active += rq_segment_heap_bytes(v->active);
        for (size_t j = 0; j < v->snapshot_count; j++)
            heap += rq_segment_heap_bytes(v->snapshots[j]);
    }
    heap += active;
    r->unaccounted = 0;
    rq__region_note_warm(r);
    if (heap == r->memstore_heap) return;
    bool grew = heap > r->memstore_heap;
    rq__engine_memstore(r->engine, (int64_t)(heap - r->memstore_heap));
    r->memstore_heap = heap;
    atomic_store_explicit(&r->memstore_bytes, heap, memory_order_relaxed);
    atomic_store_explicit(&r->active_bytes, active, memory_order_relaxed);
    if (!grew) return;
    if (active > r->flush_bytes) rq__region_request_flush(r);
    if (atomic_load_explicit(&r->engine->memstore_bytes, memory_order_relaxed) >
        r->engine->memstore_low)
        rq__engine_relieve(r->engine);
}

typedef struct poke {
    rq__work work;
} poke;

static void run_poke(rq_region *r, rq__work *work)
{
    free(RQ_CONTAINER_OF(work, poke, work));
    rq__region_retry_held(r);
    if (RQ_LIKELY(r->row_locks.count == 0)) return;
    rq__region_expire_row_waits(r);
    rq__row_locks_wake_gone(r);
    rq__apart_wake_gone(r);
}

void rq__region_poke(rq_region *r)
{
    /* Without memory nothing is lost: the engine's next tick tries again. */
    poke *p = malloc(sizeof *p);
    if (p == NULL) return;
    p->work = (rq__work){.run = run_poke};
    rq__region_enqueue(r, &p->work);
}
