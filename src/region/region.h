/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region: one key range of a table, with MVCC, its stores, and the order of its writes.
 *
 * Writes pass the region's *writer token*. A lane's writer collects batches and enqueues them. The
 * lane that finds the token free drains the queue (sequence ids, conditions, memstore insert, log
 * staging); a lane that finds it taken continues with other work. The token is never held across I/O: a
 * read-modify-write that needs a block releases it, waits for the block, and runs again from its
 * beginning with the block pinned; an op that has run again too often reads without the token, with its
 * rows locked (apart.h). One counter is MVCC write number, log sequence id and the cells' seqid. Batches
 * become visible in order, each once it is durable; then done() runs on the batch's lane.
 */
#ifndef RQ_REGION_REGION_H
#define RQ_REGION_REGION_H

#include "base/env.h"
#include "cell/cellblock.h"
#include "descriptor/schema.h"
#include "filter/comparator.h"
#include "filter/filter.h"
#include "region/region_info.h"
#include "store/scan.h"
#include "vfs/vfs.h"
#include "wal/wal.h"

/* region/engine.h: environment, log, block cache, ceilings, background work */
typedef struct rq_engine rq_engine;
typedef struct rq_region rq_region;

/* --- writes ----------------------------------------------------------------------------------- */
typedef enum rq_mutation_type {
    RQ_MUTATE_PUT,
    RQ_MUTATE_DELETE,
    RQ_MUTATE_APPEND,
    RQ_MUTATE_INCREMENT
} rq_mutation_type;

/* On the wire: DO NOT CHANGE. */
typedef enum rq_durability {
    RQ_USE_DEFAULT = 0,
    RQ_SKIP_WAL = 1,
    RQ_ASYNC_WAL = 2,
    RQ_SYNC_WAL = 3,
    RQ_FSYNC_WAL = 4,
} rq_durability;

typedef struct rq_mutation {
    rq_mutation_type type;
    rq_slice row;
    /* Row (the same bytes, or none), family, qualifier, timestamp (LATEST: the server's clock),
     * type, value, tags. Families in any order; cells of one column in the order given. A DELETE
     * of the newest version is a RQ_TYPE_DELETE cell with timestamp LATEST. */
    rq_cell *cells;
    size_t cell_count;
    rq_durability durability;
    bool return_results;      /* APPEND, INCREMENT */
    bool trusted;             /* written by the catalog: the limits for clients' cells do not
                               * apply */
    rq_time_range time_range; /* for the value read by APPEND, INCREMENT */
} rq_mutation;

/* The condition of a checkAndMutate: one column against a comparator, or a filter on the row. */
typedef struct rq_condition {
    rq_slice row;
    rq_slice family;
    rq_slice qualifier;
    rq_compare_op op;
    rq_comparator *comparator; /* filter room; NULL with `filter` */
    rq_filter *filter;         /* asked by one read: its state may outlive a row. A further read
                              * parses another one from … */
    rq_slice filter_class;     /* … this class name */
    rq_slice filter_message;   /* … and these bytes (rq_filter_parse) */
    rq_time_range time_range;
    /* MultiRowMutationService: an empty comparator requires that there is no value, whatever the
     * operator. */
    bool null_ignores_op;
} rq_condition;

/* One action of a batch: a mutation; several on one row that are atomic (RowMutations); or, with
 * `multi_row`, on several rows of the region (MultiRowMutationService). */
typedef struct rq_row_op {
    rq_mutation *mutations;
    size_t mutation_count;
    const rq_condition *conditions; /* all must hold */
    size_t condition_count;
    bool multi_row;
    bool vital;         /* on a full disk: see rq_wal_record */
    bool asked_filters; /* the region's: it has asked the conditions' filters before */
    uint64_t nonce_group;
    uint64_t nonce; /* 0: no nonce */
    /* A replicated put or delete: the clusters that have applied it (wal/record.h). They go into
     * its log record, so that it is not sent back to one of them. */
    rq_slice cluster_ids;
    /* Results, valid when done() runs: */
    rq_err rc;
    bool processed;      /* the condition held (true without one) */
    rq_cellblock result; /* cells returned by an APPEND or INCREMENT */
    rq_error *why;       /* details of an error; NULL: none, or memory was exhausted */
} rq_row_op;
void rq__row_op_release(rq_row_op *op);
/* Releases the results. Called by the owner after done() has run. */
static inline void rq_row_op_clear(rq_row_op *op)
{
    if (op->why != NULL || op->result.bytes.ptr != NULL) rq__row_op_release(op);
}

/* Collects a lane's writes until the end of the lane's current run, so that writes of one region
 * pass its token as one piece of work, and the log is pushed once. One per lane. */
typedef struct rq_writer rq_writer;
RQ_NODISCARD rq_err rq_writer_new(rq_engine *e, rq_lane *lane, rq_writer **ret);
/* Called on the lane, or after it has ended. REQUIRES: done() of all its writes has run. NULL is
 * allowed. */
void rq_writer_free(rq_writer *w);
/* Passes the collected writes on at once; otherwise a task of the lane does. On the lane. */
void rq__writer_push(rq_writer *w);

/* A batch. Everything it points to belongs to the owner and must stay until done() runs. Each op
 * succeeds or fails on its own. */
typedef struct rq_write {
    rq_row_op *ops;
    size_t op_count;
    rq_writer *writer; /* done() runs on its lane */
    /* True: nobody waits for the results any more. An op that waits for a locked row, or whose reads take long, then ends
     * with RQ_E_CALLER_DISCONNECTED, and nothing of it is written; the other ops go on. Read by any thread until done();
     * NULL: never. */
    const _Atomic bool *gone;
    void (*done)(struct rq_write *write); /* every op has its rc; durable as requested */
    /* The following fields belong to the region. */
    struct rq_write *next;
    void *state[38];
} rq_write;

/* A read or write of one row that will follow soon. */
typedef struct rq_region_expected {
    rq_region *region;
    rq_slice row;
    bool writes;
} rq_region_expected;
#define RQ_REGION_EXPECT_MAX 16
/* A hint: prefetches, interleaved, the memory that these reads and writes will access: the regions,
 * and for gets also memstores and large files. (For writes the rq_writer prefetches the memstores.)
 * On a server with a thousand regions a request has about thirty cache misses there; without the
 * hint they come one after another. Call it inside a read section. Only the first
 * RQ_REGION_EXPECT_MAX entries are used. */
void rq_region_expect(const rq_region_expected *list, size_t count);

/* Starts a write, on the writer's lane. Never blocks. done() always runs, once, on the lane, and
 * never before this returns. The region is referenced until done(). */
void rq_region_write(rq_region *r, rq_write *w);
/* For pool threads and tools: writes and waits. `why` gets the details of the first failed op's
 * error; rq_row_op.why of every op is NULL on return. */
RQ_NODISCARD
rq_err rq_region_write_sync(rq_region *r, rq_row_op *ops, size_t op_count, rq_error *why);
/* Cells that are written without a timestamp after this call get a timestamp of at least `ms`
 * (milliseconds), even if the server's clock is behind: hbase:meta's cells have timestamps of the
 * catalog's own clock, which may be ahead of it. Any thread. */
void rq_region_raise_clock(rq_region *r, int64_t ms);

/* --- identity and state ----------------------------------------------------------------------- */
const rq_region_info *rq_region_get_info(const rq_region *r);
/* Returns a new reference to the schema it was opened with. */
rq_table_schema *rq_region_schema(const rq_region *r);
rq_engine *rq_region_engine(const rq_region *r);
/* The largest cell it accepts (hbase.server.keyvalue.maxsize of table or server); 0: no limit. */
uint64_t rq_region_cell_bytes_max(const rq_region *r);
/* The first sequence id after opening: meta's info:seqnumDuringOpen. */
uint64_t rq_region_open_seqid(const rq_region *r);
/* The newest visible sequence id. */
uint64_t rq__region_read_point(const rq_region *r);
bool rq_region_is_closing(const rq_region *r);
/* The counters of HBase's RegionLoad; cheap. */
typedef struct rq_region_load {
    uint64_t read_requests, write_requests, filtered_read_requests;
    /* memstore_bytes: of the cells, as HBase's memStoreSize; their memory is more. */
    uint64_t memstore_bytes, storefile_bytes, storefile_uncompressed_bytes, max_flushed_seqid;
    uint64_t hfile_bytes; /* the part of storefile_bytes that is not references and links */
    uint32_t stores, storefiles;
    uint64_t compacted_cells, compacting_cells;
    uint64_t cached_bytes; /* of its files' blocks in memory */
    /* Uncompressed bytes in the region's files: root blocks of the data indexes, all levels of the
     * data indexes, bloom filters. */
    uint64_t root_index_bytes, index_bytes, bloom_bytes;
    int64_t last_major_compaction_ms;
    int compaction_state; /* as rq_region_compaction_state */
} rq_region_load;
void rq_region_get_load(const rq_region *r, rq_region_load *ret);
/* Evicts the blocks of the region's files from the cache. Any thread, but not a loop: with a
 * large cache it takes long. */
void rq_region_evict_blocks(const rq_region *r, uint64_t *ret_blocks, uint64_t *ret_bytes);
/* The files all of whose data blocks are in the block cache, in one of its levels. Blocks. */
RQ_NODISCARD
rq_err rq_region_each_cached_file(const rq_region *r, rq_err (*visit)(void *ctx, const char *path),
                                  void *ctx, rq_error *why);
rq_region *rq_region_ref(rq_region *r);
void rq_region_unref(rq_region *r);

/* --- life (blocking: pools, start-up) --------------------------------------------------------- */
/* Creates the folder (data/<ns>/<table>/<encoded>/{.regioninfo,<family>/}) and an empty
 * manifest. Idempotent. */
RQ_NODISCARD
rq_err rq_region_create(rq_engine *e, const rq_region_info *info, const rq_table_schema *schema,
                        rq_error *why);
/* The same through `vfs`, a batch on the engine's vfs (vfs/batch.h), for a region that was created without files but may
 * be in use since: files and manifest stay. A missing manifest is made only if the region cannot be opened without it. */
RQ_NODISCARD
rq_err rq_region_complete(rq_engine *e, rq_vfs *vfs, const rq_region_info *info,
                          const rq_table_schema *schema, rq_error *why);
/* Opens a region: its manifest, its files, and its records from the log's replay. */
RQ_NODISCARD
rq_err rq_region_open(rq_engine *e, const rq_region_info *info, rq_table_schema *schema,
                      rq_region **ret, rq_error *why);
/* Refuses new work (NotServingRegionException), waits for running work, flushes unless `abort`,
 * and writes the sequence id file. Open scanners may still hold references. After an error the
 * region refuses work and close can be called again, with or without `abort`; a failed region
 * (RQ_E_NOT_SERVING_REGION) can only be closed with `abort`. */
RQ_NODISCARD
rq_err rq_region_close(rq_region *r, bool abort, rq_error *why);
/* Whether the region's log or files failed: it then refuses all work until it is closed with `abort` and opened
 * again. Any thread. */
bool rq_region_has_failed(const rq_region *r);
/* Removes a closed region: folder, manifest, nonces and its need for log records; its HFiles go to
 * archive/. */
RQ_NODISCARD
rq_err rq_region_destroy(rq_engine *e, const rq_region_info *info, rq_error *why);
/* Like rq_region_destroy, but in two steps. Each step runs in a batch (vfs/batch.h) of its own, which
 * may comprise many regions: _archive links the HFiles into the archive, _remove removes the rest
 * from data/ and .rorqual/. Both may be repeated. After a crash before the second batch is complete an
 * older manifest may reappear, so use them only for regions that hbase:meta no longer names. */
RQ_NODISCARD
rq_err rq_region_archive(rq_vfs *batch, const rq_region_info *info, rq_error *why);
RQ_NODISCARD
rq_err rq_region_remove(rq_engine *e, rq_vfs *batch, const rq_region_info *info, rq_error *why);
/* Whether an entry of a region's folder is the folder of a family: a folder that is neither hidden nor
 * recovered.edits. */
bool rq_region_is_family_folder(const rq_dir_entry *entry);
/* Removes one family of a closed region (an alter that drops a family). An absent family is no
 * error. */
RQ_NODISCARD
rq_err rq_region_remove_family(rq_engine *e, const rq_region_info *info, rq_slice family,
                               rq_error *why);

/* How often a cluster's region has been opened or truncated, and truncated, as its manifest says. */
typedef struct rq_region_numbers {
    uint64_t openings, truncations;
} rq_region_numbers;
/* Blocks. */
RQ_NODISCARD
rq_err rq_region_numbers_of(const rq_engine *e, const rq_region_info *info, rq_region_numbers *ret,
                            rq_error *why);
/* In a cluster: removes the data of all families of a closed region. `noted` has the number of truncations from before, and
 * the number of openings from after the region was closed. If the region was truncated since, and perhaps opened and written to,
 * nothing is removed: so a master may repeat this, and a later master may. RQ_E_CONFLICT: it was only opened since. RQ_E_STATE: a
 * server has it open. */
RQ_NODISCARD
rq_err rq_region_truncate(rq_engine *e, const rq_region_info *info, const rq_region_numbers *noted,
                          rq_error *why);

/* --- split and merge (split.c; blocking) ------------------------------------------------------ */
/* Whether a store refers to files of another region; such a region is neither split nor merged. */
bool rq_region_has_references(rq_region *r);
/* Removes references that the open region does not name any more, or never did (split.c). Blocks. */
RQ_NODISCARD
rq_err rq_region_drop_stale_references(rq_region *r, rq_error *why);
uint64_t rq_region_largest_store_bytes(rq_region *r);
/* The row at which to split: the middle of the largest file of the largest store. ret->len 0:
 * none. HBASE: RegionSplitPolicy.getSplitPoint. */
RQ_NODISCARD
rq_err rq_region_split_point(rq_region *r, rq_arena *arena, rq_slice *ret, rq_error *why);
/* Creates a region whose files are references to the files of closed regions of the same table
 * (`parents`): to whole files, or with `split_row` to their rows before that row, with `top` to their
 * rows from it on. The new region's sequence ids begin above the parents'. First removes the remains of
 * an earlier attempt (in a cluster: uses them). REQUIRES: the region was not opened yet (in a cluster:
 * RQ_E_STATE). */
RQ_NODISCARD
rq_err rq_region_create_from(rq_engine *e, const rq_region_info *info,
                             const rq_table_schema *schema, const rq_region_info *parents,
                             size_t parent_count, const rq_slice *split_row, bool top,
                             rq_error *why);
/* Whether the region's folder contains a reference, open or not. An absent folder contains none. */
RQ_NODISCARD
rq_err rq_region_folder_has_references(rq_engine *e, const rq_region_info *info, bool *ret,
                                       rq_error *why);

/* --- background work -------------------------------------------------------------------------- */
/* Flushes (all families if family.len == 0) and waits. *ret_flushed, which may be NULL: whether there
 * were cells to flush. Unlike a flush for memory it starts no compaction (HBASE: FlushRegionCallable),
 * so a table keeps the files that its owner requested. */
RQ_NODISCARD
rq_err rq_region_flush(rq_region *r, rq_slice family, bool *ret_flushed, rq_error *why);
/* Requests a compaction of each store that has enough files, as a background flush does at its
 * end. Returns at once. */
void rq_region_compact_if_due(rq_region *r);
/* Requests a compaction (of all families if family.len == 0) and returns at once. */
RQ_NODISCARD
rq_err rq_region_compact(rq_region *r, rq_slice family, bool major, rq_error *why);
/* HBASE: CompactionState NONE 0, MINOR 1, MAJOR 2, MAJOR_AND_MINOR 3 */
int rq_region_compaction_state(const rq_region *r);

#endif
