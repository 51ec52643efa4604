/* SPDX-License-Identifier: Apache-2.0 */
/* GetCachedFilesList: the names of the store files that are wholly cached, if the block cache has a
 * second level; without one the list is empty, as HBase's is without a BucketCache. HBase notes a file
 * when its prefetch has ended and forgets it with its first evicted block; here the blocks are looked
 * up when the list is asked for, in both levels. HBASE: RSRpcServices.getCachedFilesList,
 * BucketCache.getFullyCachedFiles. */
#include "service/admin_priv.h"

#include "hfile/block_cache.h"

#include "proto/admin.pb-c.h"

#include <string.h>

typedef struct list_job {
    rq__blocking blocking;
    rq_region **regions; /* references */
    size_t region_count;
    char **names;
    size_t name_count, name_cap;
} list_job;

static void unref_regions(void *thing)
{
    const list_job *j = thing;
    for (size_t i = 0; i < j->region_count; i++)
        rq_region_unref(j->regions[i]);
}

static rq_err add_name(void *ctx, const char *path)
{
    list_job *j = ctx;
    rq_arena *arena = &j->blocking.call->arena;
    const char *slash = strrchr(path, '/');
    if (j->name_count == j->name_cap) {
        size_t cap = j->name_cap == 0 ? 64 : 2 * j->name_cap;
        char **names = rq_arena_alloc(arena, cap * sizeof *names);
        if (names == NULL) return RQ_E_NO_MEMORY;
        if (j->name_count > 0) memcpy(names, j->names, j->name_count * sizeof *names);
        j->names = names;
        j->name_cap = cap;
    }
    char *name = rq_arena_cstr(arena, rq_slice_cstr(slash == NULL ? path : slash + 1));
    if (name == NULL) return RQ_E_NO_MEMORY;
    j->names[j->name_count++] = name;
    return RQ_OK;
}

static rq_err list_work(rq__blocking *b)
{
    list_job *j = RQ_CONTAINER_OF(b, list_job, blocking);
    for (size_t i = 0; i < j->region_count; i++)
        RQ_TRY(rq_region_each_cached_file(j->regions[i], add_name, j, &b->why));
    return RQ_OK;
}

static void list_answer(rq__blocking *b)
{
    const list_job *j = RQ_CONTAINER_OF(b, list_job, blocking);
    Pb__GetCachedFilesListResponse response = PB__GET_CACHED_FILES_LIST_RESPONSE__INIT;
    response.cached_files = j->names;
    response.n_cached_files = j->name_count;
    rq_call_reply(b->call, &response.base);
}

static rq_err begin(rq_admin_services *s, rq_call *call)
{
    rq_block_cache_stats stats;
    rq_arena *arena = &call->arena;
    list_job *j = rq_arena_calloc(arena, 1, sizeof *j);
    if (j == NULL) return RQ_E_NO_MEMORY;
    rq_block_cache_get_stats(rq_engine_block_cache(s->engine), &stats);
    if (stats.second_on) {
        RQ_TRY(rq_arena_link(arena, unref_regions, j));
        RQ_TRY(rq_engine_regions(s->engine, arena, &j->regions, &j->region_count));
    }
    rq__blocking_start(&j->blocking, s, call, list_work, list_answer);
    return RQ_OK;
}

void rq__get_cached_files(void *ctx, rq_call *call)
{
    rq_err rc = begin(ctx, call);
    if (rc != RQ_OK) rq_call_fail(call, rc, NULL);
}
