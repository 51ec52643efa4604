/* SPDX-License-Identifier: Apache-2.0 */
/* ClearRegionBlockCache: evicts the blocks of the given regions from the block cache. A region that
 * is not on this server adds an exception to the answer; the call goes on. HBASE:
 * RSRpcServices.clearRegionBlockCache, HRegionServer.clearRegionBlockCache. */
#include "service/admin_priv.h"
#include "service/messages.h"

#include "hfile/block_cache.h"

#include "proto/admin.pb-c.h"

typedef struct clear_job {
    rq__blocking blocking;
    rq_region **regions; /* references */
    size_t region_count;
    Pb__CacheEvictionStats stats;
} clear_job;

static void unref_regions(void *thing)
{
    const clear_job *j = thing;
    for (size_t i = 0; i < j->region_count; i++)
        rq_region_unref(j->regions[i]);
}

static rq_err add_exception(clear_job *j, rq_arena *arena, Pb__RegionSpecifier *spec, rq_err rc,
                            const rq_error *why)
{
    Pb__RegionExceptionMessage *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    pb__region_exception_message__init(m);
    m->region = spec;
    m->exception = rq__exception_pair(arena, rc, why);
    if (m->exception == NULL) return RQ_E_NO_MEMORY;
    j->stats.exception[j->stats.n_exception++] = m;
    return RQ_OK;
}

/* Takes a reference to each region that is here; the others are in the answer. */
static rq_err find_regions(rq__blocking *b)
{
    clear_job *j = RQ_CONTAINER_OF(b, clear_job, blocking);
    const Pb__ClearRegionBlockCacheRequest *request =
        (const Pb__ClearRegionBlockCacheRequest *)b->call->param;
    rq_err rc = RQ_OK;
    rq_epoch_member m = {0};
    rq_epoch_pin(b->services->env.epoch, &m);
    for (size_t i = 0; i < request->n_region && rc == RQ_OK; i++) {
        rq_error why = {.code = RQ_OK};
        rq_region *region;
        rc = rq__admin_find_region(b->services, request->region[i], &region, &why);
        if (rc == RQ_OK)
            j->regions[j->region_count++] = rq_region_ref(region);
        else
            rc = add_exception(j, &b->call->arena, request->region[i], rc, &why);
    }
    rq_epoch_unpin(b->services->env.epoch, &m);
    return rc;
}

static rq_err clear_work(rq__blocking *b)
{
    clear_job *j = RQ_CONTAINER_OF(b, clear_job, blocking);
    uint64_t blocks = 0, bytes = 0;
    RQ_TRY(find_regions(b));
    for (size_t i = 0; i < j->region_count; i++) {
        uint64_t n, size;
        rq_region_evict_blocks(j->regions[i], &n, &size);
        blocks += n;
        bytes += size;
    }
    j->stats.has_evicted_blocks = j->stats.has_bytes_evicted = 1;
    j->stats.evicted_blocks = (int64_t)blocks;
    j->stats.bytes_evicted = (int64_t)bytes;
    return RQ_OK;
}

static void clear_answer(rq__blocking *b)
{
    clear_job *j = RQ_CONTAINER_OF(b, clear_job, blocking);
    Pb__ClearRegionBlockCacheResponse response = PB__CLEAR_REGION_BLOCK_CACHE_RESPONSE__INIT;
    rq_engine_stats stats;
    rq_engine_get_stats(b->services->engine, &stats);
    j->stats.has_max_cache_size = 1;
    j->stats.max_cache_size = (int64_t)stats.block_cache_bytes_max;
    response.stats = &j->stats;
    rq_call_reply(b->call, &response.base);
}

static rq_err begin(rq_admin_services *s, rq_call *call)
{
    const Pb__ClearRegionBlockCacheRequest *request =
        (const Pb__ClearRegionBlockCacheRequest *)call->param;
    rq_arena *arena = &call->arena;
    clear_job *j = rq_arena_calloc(arena, 1, sizeof *j);
    if (j == NULL) return RQ_E_NO_MEMORY;
    pb__cache_eviction_stats__init(&j->stats);
    j->regions = rq_arena_calloc(arena, request->n_region + 1, sizeof *j->regions);
    j->stats.exception =
        rq_arena_calloc(arena, request->n_region + 1, sizeof(Pb__RegionExceptionMessage *));
    if (j->regions == NULL || j->stats.exception == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_arena_link(arena, unref_regions, j));
    rq__blocking_start(&j->blocking, s, call, clear_work, clear_answer);
    return RQ_OK;
}

void rq__clear_region_block_cache(void *ctx, rq_call *call)
{
    rq_err rc = begin(ctx, call);
    if (rc != RQ_OK) rq_call_fail(call, rc, NULL);
}
