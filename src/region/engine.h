/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: everything shared by all regions of a server. One log, one block cache, one memory
 * budget, the queues of flushes and compactions, and the records found in the log at start.
 *
 * Start of a server:
 *   1. rq_engine_open        reads the log; its records are grouped by region
 *   2. rq_region_open        each region takes its records (meta first, then the regions in meta)
 *   3. rq_engine_recovered   reports the remaining records; the catalog decides, none is dropped
 *                            silently
 *
 * Stop: rq_region_close for each region, then rq_engine_close.
 *
 * Memory: memstores and block cache share one budget. A region requests a flush at its flush size;
 * above the low mark of the global ceiling the engine flushes the largest regions. A flushed
 * memstore counts until its last reader has released it. Between the low and high mark of that sum
 * responses to writes are delayed, the more the closer to the high mark; above it writes wait, and
 * after hbase.busy.wait.duration they are refused with RegionTooBusyException.
 */
#ifndef RQ_REGION_ENGINE_H
#define RQ_REGION_ENGINE_H

#include "base/env.h"
#include "base/histogram.h"
#include "region/region.h"

struct rq_block_cache;
struct rq_config;
struct rq_wal;
struct rq_retention;

/* The server's memory budget in bytes, as configured or derived from the machine's memory. Other parts
 * of the server derive their limits from it, too. */
uint64_t rq_engine_memory_budget(const struct rq_config *config);

typedef struct rq_engine_options {
    const struct rq_config
        *config; /* base/config.h; used during rq_engine_open only. NULL: defaults */
    /* Called when a region has failed (its log or a file failed). It refuses all requests from
     * then on with NotServingRegionException; the catalog closes it with abort and opens it
     * again. Any thread, once per region, never with a lock held. May be NULL. */
    void (*region_failed)(void *context, rq_region *r, const rq_error *why);
    /* Called when a background flush or a compaction has changed the region's files: it may be
     * large enough to split. On a pool's thread; may block. May be NULL. */
    void (*region_grown)(void *context, rq_region *r);
    void *context;
    /* For repairs only: skips damaged parts of the log instead of failing. Their records are lost; a
     * message names each damaged place. */
    bool salvage_log;
    /* In a cluster: the tenure of this incarnation of the server; NULL: the server is standalone. The
     * log is in the tenure's ledgers, the regions' manifests are objects on the tenure's storage, and
     * files are in `env`'s vfs, which all servers share. The tenure must outlive the engine. Nothing
     * is recovered at start. When region_failed reports that the log has failed, the tenure has ended
     * and the process must exit. */
    struct rq_tenure *tenure;
    const char *server_name;
} rq_engine_options;

/* Opens the engine; creates .rorqual/ and the log if they are missing. The root folder must
 * exist. Blocks. RQ_E_CONFIG names an invalid setting, RQ_E_CORRUPT the WAL file and offset of an
 * invalid record. `env` is copied; the objects in it must outlive the engine. */
RQ_NODISCARD
rq_err rq_engine_open(const rq_env *env, const rq_engine_options *options, rq_engine **ret,
                      rq_error *why);
/* Closes the engine. Waits for background work; a clean close leaves no log records that
 * recovery would need. REQUIRES: every region is closed and unreferenced. NULL is allowed. */
rq_err rq_engine_close(rq_engine *e, bool clean, rq_error *why);

/* Takes over the settings that change without a restart, for open regions too. Any thread that may
 * allocate; one at a time. */
RQ_NODISCARD
rq_err rq_engine_reload(rq_engine *e, const struct rq_config *config, rq_error *why);

/* Whether the engine's server is one of a cluster. */
bool rq_engine_in_cluster(const rq_engine *e);
const rq_env *rq_engine_env(const rq_engine *e);
struct rq_wal *rq_engine_wal(const rq_engine *e);
struct rq_block_cache *rq_engine_block_cache(const rq_engine *e);
/* Who holds files and log (vfs/retention.h); lives as long as the engine. */
struct rq_retention *rq_engine_retention(const rq_engine *e);

/* --- logs of other servers ----------------------------------------------------------------- */
/* In a cluster: reads the ended log of another server once, for `count` regions (encoded names) that
 * will be opened here. A region that is not among them reads the log itself when it is opened. Blocks.
 * RQ_E_STATE: the log has not ended (rq_wal_fence). An absent log is no error. */
RQ_NODISCARD
rq_err rq_engine_adopt(rq_engine *e, const char *server_name, const char *const *encoded,
                       size_t count, rq_error *why);

/* In a cluster: deletes keys of an ended server's log that no region's manifest needs (late_keys.c); *ret: how many. Blocks.
 * RQ_E_NOT_FOUND: there is no such log. RQ_E_STATE: it has not ended. */
RQ_NODISCARD
rq_err rq_engine_sweep_late_keys(rq_engine *e, const char *server_name, size_t *ret, rq_error *why);
/* In a cluster: the owner that the region's manifest names: the server that has the region open, or had it open
 * when the server ended; "" if the region was closed in order or never opened. *ret_ended: no other server can
 * acknowledge writes of the region: the owner has ended, or is "" or this server. Blocks. RQ_E_NOT_FOUND: the
 * region does not exist. */
RQ_NODISCARD
rq_err rq_engine_owner_of(const rq_engine *e, const char *encoded, rq_arena *arena,
                          const char **ret, bool *ret_ended, rq_error *why);

/* In a cluster: RQ_E_STATE if this server has been fenced. After that a master must not remove files that it takes for unused,
 * because a later master may have begun to use them. Reads the head of the log; blocks. Standalone server: RQ_OK. */
RQ_NODISCARD
rq_err rq_engine_check_not_fenced(const rq_engine *e, rq_error *why);

/* --- what the log held at start --------------------------------------------------------------- */
typedef struct rq_leftover {
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    rq_slice table;   /* as the records name it; valid during the call */
    uint64_t records; /* not in any file of the region */
    bool has_manifest;
} rq_leftover;

typedef enum rq_leftover_fate {
    RQ_LEFTOVER_KEEP, /* the region may still be opened (its table is disabled, in transition) */
    RQ_LEFTOVER_DROP, /* the table or region was dropped for good */
} rq_leftover_fate;

/* Call it after the regions are open at start: `decide` is called for each region whose records
 * were not taken. Without has_manifest the region was never flushed, or it was destroyed: KEEP is
 * right if its folder exists. Returns the number of records dropped. May be called again. */
uint64_t rq_engine_recovered(rq_engine *e,
                             rq_leftover_fate (*decide)(void *context, const rq_leftover *left),
                             void *context);

/* --- the open regions ------------------------------------------------------------------------- */
/* Returns the open regions with a reference each, in the arena; the caller releases the
 * references. */
RQ_NODISCARD
rq_err rq_engine_regions(rq_engine *e, rq_arena *arena, rq_region ***ret, size_t *ret_count);

/* Requests of clients. reads: gets and scanners opened; filtered_reads: reads whose result a filter
 * emptied; writes: mutations. */
typedef struct rq_request_counts {
    uint64_t reads, filtered_reads, writes;
} rq_request_counts;

/* The requests that a table's regions counted before they were closed. */
typedef struct rq_table_past {
    rq_slice ns, qualifier;
    rq_request_counts counts;
} rq_table_past;

/* The open regions and the counts of closed ones, as of one moment, so that `past_all` plus the
 * loads of the open regions never decreases. */
typedef struct rq_engine_survey {
    rq_region **regions; /* a reference each, which the caller releases */
    size_t region_count;
    const rq_table_past *past;
    size_t past_count;
    rq_request_counts past_all; /* of forgotten tables, too */
} rq_engine_survey;

/* Everything is in the arena. Not inside a read section. */
RQ_NODISCARD
rq_err rq_engine_survey_take(rq_engine *e, rq_arena *arena, rq_engine_survey *ret);
/* What all closed regions counted, those of dropped tables included. Any thread. */
void rq_engine_past_counts(rq_engine *e, rq_request_counts *ret);
/* The table was dropped: another one of its name starts with counts of its own. Any thread. */
void rq_engine_forget_table(rq_engine *e, rq_slice ns, rq_slice qualifier);

typedef struct rq_engine_stats {
    uint64_t memstore_bytes;      /* heap bytes of all segments */
    uint64_t memstore_bytes_held; /* including flushed segments that are still read */
    uint64_t memstore_bytes_low;  /* above it the engine flushes */
    uint64_t memstore_bytes_max;  /* above it writes wait */
    uint64_t block_cache_bytes_max;
    uint64_t flush_queue, compaction_queue;
    uint64_t flushes, flushed_bytes;
    uint64_t flushed_cells, flushed_memstore_bytes; /* before the flushes */
    uint64_t compactions, major_compactions, compacted_bytes;
    uint64_t failed_flushes, failed_compactions;
    uint64_t delayed_writes, refused_writes;        /* by back-pressure */
    uint64_t delay_ns;                              /* of the delayed writes, added up */
    uint64_t writes_without_wal, bytes_without_wal; /* mutations with SKIP_WAL, and their cells */
    uint64_t recovered_records, dropped_records;
    uint64_t nonces, nonces_dropped, nonces_bytes; /* nonces.h */
} rq_engine_stats;
void rq_engine_get_stats(const rq_engine *e, rq_engine_stats *ret);
/* Adds the durations of the flushes and compactions that succeeded. Any thread. */
void rq_engine_times(const rq_engine *e, rq_times_sum *flushes, rq_times_sum *compactions);

/* Switches compactions on or off, and returns whether they were on. While off every request for a compaction is ignored;
 * running ones are finished. HBASE: CompactSplit.switchCompaction. Any thread. */
bool rq_engine_compactions_enable(rq_engine *e, bool on);
/* Removes the waiting compactions from the large (or small) queue. Due ones are requested again
 * at the next check. HBASE: CompactSplit.clearLongCompactionsQueue. Any thread. */
void rq_engine_clear_compactions(rq_engine *e, bool large);

#endif
