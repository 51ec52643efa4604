/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's internals: settings, ceilings and the list of open regions. */
#ifndef RQ_REGION_ENGINE_PRIV_H
#define RQ_REGION_ENGINE_PRIV_H

#include "base/config.h"
#include "base/pool_share.h"
#include "hfile/writer.h"
#include "region/debt.h"
#include "region/recover.h"
#include "region/region_priv.h"
#include "region/throughput.h"
#include "store/cache_options.h"
#include "store/mob_files.h"
#include "store/slab_pool.h"
#include "vfs/retention.h"

typedef struct rq__past rq__past; /* past.c */

/* Of table_times.c. */
typedef struct rq__table_times_list {
    pthread_mutex_t lock; /* a leaf */
    struct rq__table_times *tables RQ_GUARDED_BY(lock);
    struct rq__table_times *others; /* const */
    _Atomic size_t used;            /* histograms, without the others' */
} rq__table_times_list;

#define RQ__UNSYNCED_MAX 64

struct rq_engine {
    rq_env env;                   /* const */
    rq_wal *wal;                  /* const */
    struct rq__cluster *cluster;  /* const; owned.h; NULL: the server is standalone */
    struct rq_block_cache *cache; /* const */
    struct rq_vfs *cache_vfs;     /* const; of the cache's file if it is outside the root */
    rq_slab_pool *slabs;          /* const */
    rq_mob_files *mob_files;      /* const */
    rq_retention *retention;      /* const */
    char *cache_path;             /* const; of the cache's file if it is in the root; or NULL */
    void (*region_failed)(void *context, rq_region *r, const rq_error *why); /* const */
    void (*region_grown)(void *context, rq_region *r);                       /* const */
    void *context;                                                           /* const */

    /* Settings: const, but for the atomic ones, which a reload changes. */
    uint64_t flush_bytes;
    uint64_t block_multiplier;
    _Atomic uint64_t family_flush_bytes_min;
    uint64_t memstore_low, memstore_high;
    uint64_t cache_bytes;
    uint64_t cell_bytes_max;   /* 0: no limit */
    int64_t timestamp_slop_ms; /* INT64_MAX: not checked */
    _Atomic uint64_t busy_wait_ns;
    _Atomic uint64_t row_wait_ns; /* longest wait for a row that another op has locked (apart.h) */
    bool nonces_enabled;
    bool bulk_verify, bulk_compact;
    rq__compaction_node *_Atomic compaction; /* the site's; a store's are computed when it opens */
    char store_engine[160], compaction_policy[160]; /* the site's classes; empty: HBase's
                                                     * defaults */
    _Atomic int offpeak_start, offpeak_end;         /* hours; -1: never */
    rq_hfile_options files;                         /* how store files are written */
    rq_cache_options caching;                       /* which blocks are cached, and when */
    _Atomic uint64_t blocking_files_wait_ms;
    uint64_t quiet_ms;         /* quiet.c; 0: never */
    int64_t flush_interval_ms; /* 0 or less: never; the site's, like flush_changes */
    uint64_t flush_changes;
    _Atomic uint64_t flush_delay_ms; /* the longest delay of a flush for age */
    size_t mob_open_max;
    uint64_t mob_file_bytes_max;
    bool mob_optimized, mob_discard_missing;

    rq_lane *lane;  /* the engine's own; runs the tick */
    rq_timer tick;  /* on the lane */
    uint64_t ticks; /* the lane's */
    uint64_t ticks_between_compaction_looks, ticks_between_mob_trims, ticks_between_age_looks;
    rq_task mob_trim;
    _Atomic bool mob_trimming; /* mob_trim is queued or runs */
    _Atomic bool stopping;
    rq_latch stopped; /* opened by the last tick */

    _Atomic uint64_t memstore_bytes; /* bytes that flushes can free */
    _Atomic uint64_t held_writes;    /* in all regions */
    rq_log_limit bulk_lines;         /* about files of bulk loads */
    _Atomic uint64_t row_waits;      /* writes that wait for a locked row, in all regions */
    _Atomic uint64_t apart_bytes;    /* found by reads that run apart */
    rq_pool_share apart_share;       /* of RQ_POOL_READ, for these reads */
    _Atomic uint64_t relieved_ns;    /* when regions were last selected for a flush */
    _Atomic uint64_t flush_queue, compaction_queue;
    _Atomic uint64_t flushes, flushed_bytes, flushed_cells, flushed_memstore_bytes;
    _Atomic uint64_t compactions, major_compactions, compacted_bytes;
    _Atomic uint64_t delayed_writes, refused_writes, delay_ns;
    _Atomic uint64_t writes_without_wal, bytes_without_wal;
    _Atomic uint64_t dropped_records;
    _Atomic uint64_t versions_alive; /* store versions not freed yet */
    _Atomic uint64_t regions_alive;  /* regions not freed yet, closed ones included */
    _Atomic bool compactions_off;    /* rq_engine_compactions_enable(e, false) */
    _Atomic bool offpeak_runs;       /* a compaction with off-peak limits runs; one at a time */
    _Atomic unsigned lacking_space;  /* number of regions whose last flush failed for lack of
                                      * space */
    _Atomic bool compactions_wait;   /* compactions wait until it is 0; then the tick requests
                                      * them */
    rq__throughput throughput;
    rq__debt debt;

    rq__recovery recovery;

    rq_times flush_times, compaction_times;
    _Atomic uint64_t failed_flushes, failed_compactions;

    pthread_mutex_t lock;
    rq_region *regions RQ_GUARDED_BY(lock);
    size_t region_count RQ_GUARDED_BY(lock);
    rq_region **buckets RQ_GUARDED_BY(lock); /* hash table of the regions, by encoded name */
    size_t bucket_count RQ_GUARDED_BY(lock); /* a power of two */
    rq__past *past RQ_GUARDED_BY(lock);
    rq_request_counts past_all RQ_GUARDED_BY(lock);
    /* Files whose sync has failed in a bulk load. `has_more_unsynced`: the list is full, any file may be one. */
    rq_file_id unsynced[RQ__UNSYNCED_MAX] RQ_GUARDED_BY(lock);
    size_t unsynced_count RQ_GUARDED_BY(lock);
    bool has_more_unsynced RQ_GUARDED_BY(lock);
    rq__table_times_list table_times;
    rq__nonces *nonces;         /* const; for all regions */
    bool logged_dropped_nonces; /* used by the tick */
};

/* Whether a flush lacks disk space; compactions then pause. Any thread. */
static inline bool rq__engine_lacks_space(const rq_engine *e)
{
    return atomic_load(&e->lacking_space) != 0;
}

/* Adds the counts of a region that closes. REQUIRES: the engine's lock. */
void rq__past_add(rq_engine *e, const rq_region *r);
void rq__past_clear(rq_engine *e);
RQ_NODISCARD
rq_err rq__table_times_init(rq__table_times_list *list);
/* REQUIRES: all regions are freed. Fine after a failed init. */
void rq__table_times_clear(rq__table_times_list *list);
void rq__table_times_forget(rq__table_times_list *list, rq_slice ns, rq_slice qualifier);
/* The region is being freed. */
void rq__table_times_leave(rq_region *r);
void rq__region_counts(const rq_region *r, rq_request_counts *ret);
void rq__engine_add(rq_engine *e, rq_region *r);
void rq__engine_remove(rq_engine *e, rq_region *r);
/* As rq_engine_regions. REQUIRES: the engine's lock. */
RQ_NODISCARD
rq_err rq__engine_list(rq_engine *e, rq_arena *arena, rq_region ***ret, size_t *ret_count);
/* Returns a reference on the open region with that encoded name, or NULL. Any thread. */
rq_region *rq__engine_find(rq_engine *e, const char *encoded);
/* HBASE: OffPeakHours. Local time. */
bool rq__engine_is_offpeak(const rq_engine *e);
/* Called when the region's files have changed, on a pool's thread. */
void rq__engine_grown(rq_engine *e, rq_region *r);
/* Called when a region's memstores have grown or shrunk. Any thread. */
void rq__engine_memstore(rq_engine *e, int64_t delta);
/* Bytes of all memstores, including flushed ones that a reader still uses; the ceiling applies
 * to these. */
uint64_t rq__engine_memstore_held(const rq_engine *e);
/* rq_store_options.version_freed: there may be room for held writes. */
void rq__engine_version_freed(void *engine);
/* Requests flushes of the regions with the largest memstores while the sum is above the low
 * mark. */
void rq__engine_relieve(rq_engine *e);
/* Threads of RQ_POOL_READ for reads of ops that write (apart.h). */
#define RQ__APART_THREADS 8
/* Retries held writes. */
void rq__engine_poke_held(rq_engine *e);
/* The delay of the response to a write of `bytes` bytes of cells (debt.h). */
uint64_t rq__engine_debt_delay_ns(rq_engine *e, uint64_t bytes);

#endif
