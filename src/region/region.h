/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region: one key range of a table, with MVCC, its stores, and the order of its writes.
 *
 * Writes pass the region's *writer token*: a lane's writer gathers batches and enqueues them; the
 * lane that finds the token free drains the queue (numbers, conditions, memstore insert, log
 * staging), one that finds it taken goes on. The token is never held across I/O: a
 * read-modify-write that needs a block gives it up, has the block brought, and is run again from
 * its beginning with the block pinned. One counter is MVCC write number, log sequence id and the
 * cell's seqid. A batch becomes visible, in order, once it is durable; then done() runs on the
 * batch's lane.
 */
#ifndef RQ_REGION_REGION_H
#define RQ_REGION_REGION_H

#include "base/env.h"
#include "cell/cellblock.h"
#include "filter/comparator.h"
#include "filter/filter.h"
#include "region/region_info.h"
#include "store/scan.h"
#include "store/schema.h"
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
     * type, value, tags. Any order of families; cells of one column in the order given. A DELETE of
     * the newest version is a RQ_TYPE_DELETE cell with timestamp LATEST. */
    rq_cell *cells;
    size_t cell_count;
    rq_durability durability;
    bool return_results;      /* APPEND, INCREMENT */
    bool trusted;             /* the catalog's own: limits of clients' cells do not hold */
    rq_time_range time_range; /* of the value read by APPEND, INCREMENT */
} rq_mutation;

/* The condition of a checkAndMutate: one column against a comparator, or a filter on the row. */
typedef struct rq_condition {
    rq_slice row;
    rq_slice family;
    rq_slice qualifier;
    rq_compare_op op;
    rq_comparator *comparator; /* filter room; NULL with `filter` */
    rq_filter *filter;
    rq_time_range time_range;
    /* MultiRowMutationService: an empty comparator asks for no value, whatever the operator. */
    bool null_ignores_op;
} rq_condition;

/* One action of a batch: a mutation, or several on one row that are atomic (RowMutations), or on
 * several rows of the region when `multi_row` (MultiRowMutationService). */
typedef struct rq_row_op {
    rq_mutation *mutations;
    size_t mutation_count;
    const rq_condition *conditions; /* all must hold */
    size_t condition_count;
    bool multi_row;
    uint64_t nonce_group; /* 0: no nonce */
    uint64_t nonce;
    /* Results, valid when done() runs: */
    rq_err rc;
    bool processed;      /* the condition held (true without one) */
    rq_cellblock result; /* cells an APPEND/INCREMENT returns */
    rq_error *why;       /* of an error; NULL with none, and when memory was out */
} rq_row_op;
void rq_row_op_release(rq_row_op *op);
/* Releases the results; the owner's, when done() has run. */
static inline void rq_row_op_clear(rq_row_op *op)
{
    if (op->why != NULL || op->result.bytes.ptr != NULL) rq_row_op_release(op);
}

/* A lane's writes on their way. What it writes in one go, to the end of what its lane runs at the
 * moment, is gathered: writes of one region pass its token as one, and the log is handed over once.
 * Of one lane; the caller's lane everywhere below. */
typedef struct rq_writer rq_writer;
RQ_NODISCARD rq_err rq_writer_new(rq_engine *e, rq_lane *lane, rq_writer **ret);
/* On the lane, or when it is gone. REQUIRES: done() of all its writes ran. NULL is fine. */
void rq_writer_free(rq_writer *w);
/* What was gathered goes at once; else it does in a task of the lane. On the lane. */
void rq_writer_push(rq_writer *w);

/* A batch. Everything it points to belongs to the owner and stays until done() runs. Each op stands
 * or fails alone. */
typedef struct rq_write {
    rq_row_op *ops;
    size_t op_count;
    rq_writer *writer;                    /* on whose lane done() runs */
    void (*done)(struct rq_write *write); /* every op has its rc; durable as asked for */
    /* The region's from here on. */
    struct rq_write *next;
    void *state[34];
} rq_write;

/* A read or write of a single row that comes soon. */
typedef struct rq_region_expected {
    rq_region *region;
    rq_slice row;
    bool writes;
} rq_region_expected;
#define RQ_REGION_EXPECT_MAX 16
/* A hint: what they will look at is asked for from memory, side by side: regions, and what gets
 * find in memstores and large files. (A writer does that for the rows of writes.) With a thousand
 * regions these are thirty misses a request, which would else come one after another. Inside a read
 * section. Those beyond RQ_REGION_EXPECT_MAX are not looked at. */
void rq_region_expect(const rq_region_expected *list, size_t count);

/* On the writer's lane. Never blocks. done() always runs, once, on the lane, never before this
 * returns. The region is referenced until done(). */
void rq_region_write(rq_region *r, rq_write *w);
/* For pool threads and tools: waits. Returns the first failed op's error; no op has a `why`. */
RQ_NODISCARD
rq_err rq_region_write_sync(rq_region *r, rq_row_op *ops, size_t op_count, rq_error *why);

/* --- identity and state ----------------------------------------------------------------------- */
const rq_region_info *rq_region_get_info(const rq_region *r);
/* A new reference to the schema it was opened with. */
rq_table_schema *rq_region_schema(const rq_region *r);
rq_engine *rq_region_engine(const rq_region *r);
/* The largest cell it takes (hbase.server.keyvalue.maxsize, the table's or the server's); 0: any.
 */
uint64_t rq_region_cell_bytes_max(const rq_region *r);
/* The first number given after opening: meta's info:seqnumDuringOpen. */
uint64_t rq_region_open_seqid(const rq_region *r);
/* The newest visible sequence id. */
uint64_t rq_region_read_point(const rq_region *r);
bool rq_region_is_closing(const rq_region *r);
/* Counts as HBase's RegionLoad has them; cheap. */
typedef struct rq_region_load {
    uint64_t read_requests, write_requests, filtered_read_requests;
    uint64_t memstore_bytes, storefile_bytes, storefile_uncompressed_bytes, max_flushed_seqid;
    uint32_t stores, storefiles;
    uint64_t compacted_cells, compacting_cells;
    uint64_t cached_bytes; /* of its files' blocks, in memory */
    int64_t last_major_compaction_ms;
} rq_region_load;
void rq_region_get_load(const rq_region *r, rq_region_load *ret);
/* Drops what the block cache has of the region's files. Any thread; not a loop's business, for a
 * large cache has much to free. */
void rq_region_evict_blocks(const rq_region *r, uint64_t *ret_blocks, uint64_t *ret_bytes);
rq_region *rq_region_ref(rq_region *r);
void rq_region_unref(rq_region *r);

/* --- life (blocking: pools, start-up) --------------------------------------------------------- */
/* Lays out the folder (data/<ns>/<table>/<encoded>/{.regioninfo,<family>/}) and an empty manifest;
 * idempotent. */
RQ_NODISCARD
rq_err rq_region_create(rq_engine *e, const rq_region_info *info, const rq_table_schema *schema,
                        rq_error *why);
/* Opens what create laid out: manifest, files, and what the log's replay holds for it. */
RQ_NODISCARD
rq_err rq_region_open(rq_engine *e, const rq_region_info *info, rq_table_schema *schema,
                      rq_region **ret, rq_error *why);
/* Refuses new work (NotServingRegionException), finishes what runs, flushes unless `abort`, writes
 * the sequence id file; the last reference is the caller's. */
RQ_NODISCARD
rq_err rq_region_close(rq_region *r, bool abort, rq_error *why);
/* Removes folder, manifest and log interest of a closed region; its HFiles go to archive/. */
RQ_NODISCARD
rq_err rq_region_destroy(rq_engine *e, const rq_region_info *info, rq_error *why);
/* The same for one family of a closed region (alter that removes a family); absent is fine. */
RQ_NODISCARD
rq_err rq_region_remove_family(rq_engine *e, const rq_region_info *info, rq_slice family,
                               rq_error *why);

/* --- split and merge (split.c; blocking) ------------------------------------------------------ */
/* A store refers to files of another region: then this one is neither split nor merged. */
bool rq_region_has_references(rq_region *r);
/* Removes references that a compaction has rewritten and could not remove. Blocking. */
RQ_NODISCARD
rq_err rq_region_drop_stale_references(rq_region *r, rq_error *why);
uint64_t rq_region_largest_store_bytes(rq_region *r);
/* The row that divides it: the middle of the largest file of the largest store. ret->len 0: there
 * is none. HBASE: RegionSplitPolicy.getSplitPoint. */
RQ_NODISCARD
rq_err rq_region_split_point(rq_region *r, rq_arena *arena, rq_slice *ret, rq_error *why);
/* Lays out a region whose files are references to those of closed regions of the same table: to
 * all of them, or with `split_row` to what is before it, or (`top`) from it on. Its numbers begin
 * above theirs. An earlier attempt's remains are cleared away first, so it must not have been
 * opened yet. */
RQ_NODISCARD
rq_err rq_region_create_from(rq_engine *e, const rq_region_info *info,
                             const rq_table_schema *schema, const rq_region_info *parents,
                             size_t parent_count, const rq_slice *split_row, bool top,
                             rq_error *why);
/* Whether a reference lies in the region's folder, open or not. No folder: none. */
RQ_NODISCARD
rq_err rq_region_folder_has_references(rq_engine *e, const rq_region_info *info, bool *ret,
                                       rq_error *why);

/* --- background work -------------------------------------------------------------------------- */
/* Flushes (all families when family.len == 0) and waits. Unlike a flush for memory's sake it starts
 * no compaction (HBASE: FlushRegionCallable), so a table keeps the files its owner asked for. */
RQ_NODISCARD
rq_err rq_region_flush(rq_region *r, rq_slice family, bool *ret_flushed, rq_error *why);
/* Asks for a compaction of each store that has enough files, as the background flush does after
 * itself; a flush on request does not (HBASE: FlushRegionCallable). Returns at once. */
void rq_region_compact_if_due(rq_region *r);
/* Asks for a compaction and returns at once. */
RQ_NODISCARD
rq_err rq_region_compact(rq_region *r, rq_slice family, bool major, rq_error *why);
/* HBASE: CompactionState NONE 0, MINOR 1, MAJOR 2, MAJOR_AND_MINOR 3 */
int rq_region_compaction_state(const rq_region *r);

#endif
