/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: what all regions of one server share. One log, one block cache, one memory budget,
 * the queues of flushes and compactions, and what was found in the log at start.
 *
 * Start of a server:
 *   1. rq_engine_open        reads the log; its records wait, bucketed by region
 *   2. rq_region_open        each region takes what waits for it (meta first, then what meta lists)
 *   3. rq_engine_recovered   says what is left over; the catalog decides, nothing is lost unsaid
 *
 * Stop: rq_region_close for each region, then rq_engine_close.
 *
 * Memory (the design's decision 5): memstores and block cache share one budget. A region asks for a
 * flush at its flush size; above the low mark of the global ceiling the engine flushes the largest
 * regions. What was flushed counts until its last reader has let go: between low and high mark of
 * that sum write answers are delayed, the more the closer; above the high mark writes wait, and
 * only after a while are they refused with RegionTooBusyException.
 */
#ifndef RQ_REGION_ENGINE_H
#define RQ_REGION_ENGINE_H

#include "base/env.h"
#include "region/region.h"

struct rq_block_cache;
struct rq_config;
struct rq_wal;

/* What the process may use, as set or by the machine's size. Rooms above take their shares of it.
 */
uint64_t rq_engine_memory_budget(const struct rq_config *config);

typedef struct rq_engine_options {
    const struct rq_config
        *config; /* base/config.h; borrowed during rq_engine_open. NULL: defaults */
    /* A region had to be given up (its log or a file failed): it refuses everything from here on
     * with NotServingRegionException; the catalog closes it with abort and opens it again. Any
     * thread, once per region, never with a lock held. May be NULL. */
    void (*region_failed)(void *context, rq_region *r, const rq_error *why);
    /* The region's files changed by a flush of its own accord or a compaction: it may be large
     * enough to be split. A pool's thread, which may block. May be NULL. */
    void (*region_grown)(void *context, rq_region *r);
    void *context;
} rq_engine_options;

/* Blocking. Creates .rorqual/ and the log where they are missing; the root folder exists.
 * RQ_E_CONFIG names a bad setting, RQ_E_CORRUPT the segment and offset of a bad record. `env` is
 * copied; what it points to outlives the engine. */
RQ_NODISCARD
rq_err rq_engine_open(const rq_env *env, const rq_engine_options *options, rq_engine **ret,
                      rq_error *why);
/* REQUIRES: every region is closed and unreferenced. Waits for background work; a clean close
 * leaves nothing in the log that recovery would need. NULL is fine. */
rq_err rq_engine_close(rq_engine *e, bool clean, rq_error *why);

/* Takes over the settings that change without a restart, for open regions too. Any thread that may
 * allocate; one at a time. */
RQ_NODISCARD
rq_err rq_engine_reload(rq_engine *e, const struct rq_config *config, rq_error *why);

const rq_env *rq_engine_env(const rq_engine *e);
struct rq_wal *rq_engine_wal(const rq_engine *e);
struct rq_block_cache *rq_engine_block_cache(const rq_engine *e);
struct rq_mob_files *rq_engine_mob_files(const rq_engine *e); /* store/mob_files.h */

/* --- what the log held at start --------------------------------------------------------------- */
typedef struct rq_leftover {
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    rq_slice table;    /* as the records name it; valid during the call */
    uint64_t records;  /* not in any file of the region */
    bool has_manifest; /* the region's folder and manifest exist */
} rq_leftover;

typedef enum rq_leftover_fate {
    RQ_LEFTOVER_KEEP, /* the region may still be opened (its table is disabled, in transition) */
    RQ_LEFTOVER_DROP, /* the table or region was dropped for good */
} rq_leftover_fate;

/* After the start's regions are open: asks for each region with records nobody took. Without
 * has_manifest rq_region_destroy did its work, and KEEP is an answer only for a mistake. Returns
 * how many records were dropped. May be called again. */
uint64_t rq_engine_recovered(rq_engine *e,
                             rq_leftover_fate (*decide)(void *context, const rq_leftover *left),
                             void *context);

/* --- the open regions ------------------------------------------------------------------------- */
/* A snapshot of them with a reference each, in the arena; the caller unrefs. */
RQ_NODISCARD
rq_err rq_engine_regions(rq_engine *e, rq_arena *arena, rq_region ***ret, size_t *ret_count);

typedef struct rq_engine_stats {
    uint64_t memstore_bytes;      /* all segments, heap */
    uint64_t memstore_bytes_held; /* those too that were flushed and are still read */
    uint64_t memstore_bytes_low;  /* above it the engine flushes */
    uint64_t memstore_bytes_max;  /* above it writes wait */
    uint64_t block_cache_bytes_max;
    uint64_t flush_queue, compaction_queue;
    uint64_t flushes, flushed_bytes;
    uint64_t compactions, major_compactions, compacted_bytes;
    uint64_t delayed_writes, refused_writes; /* by back-pressure */
    uint64_t recovered_records, dropped_records;
    uint64_t nonces, nonces_dropped, nonces_bytes; /* nonces.h */
} rq_engine_stats;
void rq_engine_get_stats(const rq_engine *e, rq_engine_stats *ret);

/* HBASE: CompactSplit.switchCompaction. While off every request for a compaction is ignored; one
 * that runs is finished. Any thread. */
void rq_engine_compactions_enable(rq_engine *e, bool on);
/* Forgets the compactions of the large (or the small) queue that did not begin. What is due is
 * asked for again at the next look. HBASE: CompactSplit.clearLongCompactionsQueue. Any thread. */
void rq_engine_clear_compactions(rq_engine *e, bool large);

#endif
