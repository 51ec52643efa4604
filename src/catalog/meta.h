/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of hbase:meta. HBASE: MetaTableAccessor, RegionStateStore, CatalogFamilyFormat 2.6.
 *
 *   row <region name>   info:regioninfo        "PBUF" + RegionInfo
 *                       info:server            host:port
 *                       info:serverstartcode   be64
 *                       info:seqnumDuringOpen  be64
 *                       info:sn                host,port,startcode
 *                       info:state             OPENING, OPEN, CLOSED …
 *                       info:server_0001 …     these five of each replica, by its id in hex
 *                       info:splitA, splitB    a split parent's daughters: RegionInfo as above
 *                       info:merge0000 …       a merged region's parents
 *   row <table name>    table:state            TableState
 *
 * A *batch* collects mutations of many rows and is committed as one atomic operation of the region, so
 * that after a crash a change of a table's definition is there as a whole or not at all.
 */
#ifndef RQ_CATALOG_META_H
#define RQ_CATALOG_META_H

#include "catalog/catalog.h"

typedef struct rq__batch {
    rq_arena *arena;
    int64_t time_ms; /* of its cells */
    rq_mutation *mutations;
    size_t count, cap;
    bool vital; /* it frees space: it may use the log's reserve on a full disk */
} rq__batch;

void rq__batch_init(rq__batch *b, rq_arena *arena, int64_t time_ms);
/* One atomic operation. `synced` false: ordered before all later writes, but not waited for.
 * Blocking. An empty batch is allowed. */
RQ_NODISCARD
rq_err rq__batch_commit(const rq__batch *b, rq_region *region, bool synced, rq_error *why);
/* Bytes of a record of the log with rows that need not change together; the log's limit for a record is at least
 * 16 MB. */
#define RQ__PART_BYTES ((size_t)2 << 20)
/* The mutations from index `from` on, up to about RQ__PART_BYTES, at least one. REQUIRES: from < b->count. */
rq__batch rq__batch_part(const rq__batch *b, size_t from);
/* The serialized length of the cells of the mutations from index `from` on. */
size_t rq__batch_bytes(const rq__batch *b, size_t from);
/* For rows that every start and every opening writes again, such as the locations of regions: on
 * a full disk, or when the region refuses writes, they are kept in memory only, so that they can be
 * read and no caller waits for space. */
RQ_NODISCARD
rq_err rq__batch_note(const rq__batch *b, rq_engine *e, rq_region *region, rq_error *why);

/* Removes from the batch the puts whose values the region already has. Blocking. */
RQ_NODISCARD
rq_err rq__batch_drop_known(rq__batch *b, rq_region *region, rq_error *why);

/* Slices must stay valid until the commit. */
RQ_NODISCARD
rq_err rq__batch_put(rq__batch *b, rq_slice row, const char *family, rq_slice qualifier,
                     rq_slice value);
RQ_NODISCARD
rq_err rq__batch_delete_column(rq__batch *b, rq_slice row, const char *family, rq_slice qualifier);
RQ_NODISCARD
rq_err rq__batch_delete_family(rq__batch *b, rq_slice row, const char *family);

/* Writes regioninfo, sn and state; with open_seqnum >= 0 also server, startcode and seqnum.
 * `server` NULL: only regioninfo and state (a region that was never assigned). */
RQ_NODISCARD
rq_err rq__meta_put_region(rq__batch *b, const rq_region_info *info, rq_region_state state,
                           const rq_server_name *server, int64_t open_seqnum);
/* Writes the locations of the region's replicas, ids 1 … copies - 1. They are at the region's own
 * location. */
RQ_NODISCARD
rq_err rq__meta_put_replicas(rq__batch *b, const rq_region_info *info, rq_region_state state,
                             const rq_server_name *server, int64_t open_seqnum, int copies);
/* As rq__meta_put_region and rq__meta_put_replicas, for a region that is closed. */
RQ_NODISCARD
rq_err rq__meta_put_closed(rq__batch *b, const rq_region_info *info, int copies);
/* Removes the columns of replicas with ids from … to. */
RQ_NODISCARD
rq_err rq__meta_delete_replicas(rq__batch *b, const rq_region_info *info, int from, int to);
RQ_NODISCARD
rq_err rq__meta_delete_region(rq__batch *b, const rq_region_info *info);
/* Changes a parent's row at the commit of its split: offline, split, and its daughters. `copies`: the
 * number of the parent's replicas plus 1. */
RQ_NODISCARD
rq_err rq__meta_put_split_parent(rq__batch *b, const rq_region_info *parent, int copies,
                                 const rq_region_info *a, const rq_region_info *z);
RQ_NODISCARD
rq_err rq__meta_put_seqnum(rq__batch *b, const rq_region_info *info, uint64_t seqnum);
/* At most 10,000. */
RQ_NODISCARD
rq_err rq__meta_put_merge_parents(rq__batch *b, const rq_region_info *merged,
                                  const rq_region_info *parents, size_t count);
RQ_NODISCARD
rq_err rq__meta_delete_merge_parents(rq__batch *b, const rq_region_info *merged, size_t count);
RQ_NODISCARD
rq_err rq__meta_put_table_state(rq__batch *b, rq_slice table, rq_table_state state);
RQ_NODISCARD
rq_err rq__meta_delete_table(rq__batch *b, rq_slice table);

const char *rq__region_state_name(rq_region_state s);

/* The content of a row of meta. */
typedef struct rq__meta_row {
    rq_slice row;
    const char *malformed; /* description of the error; the fields below are invalid then */
    const char *odd;       /* description of a column that is ignored because it is malformed; or
                            * NULL */
    bool is_table;         /* `row` is a table's name, and `table_state` is valid */
    rq_table_state table_state;
    rq_region_info info;
    rq_region_state state;
    int64_t open_seqnum;
    int last_replica;            /* highest replica id with a state, at most RQ_REPLICATION_MAX; or
                                  * 0 */
    rq_region_info daughters[2]; /* of a split parent */
    size_t daughter_count;
    rq_region_info *merged; /* the parents of a merged region */
    size_t merged_count;
} rq__meta_row;

/* Calls `callback` for each row, in order; arguments are valid during the call. Rows with neither a
 * region nor a table state are skipped, as in HBase. Any client may write to hbase:meta: a malformed row
 * is passed with `malformed` set, and no row takes more than some megabytes of memory. *ret_newest_ms
 * (may be NULL): rq__seen.newest_ms. */
RQ_NODISCARD
rq_err rq__meta_scan(rq_region *meta,
                     rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                     void *ctx, int64_t *ret_newest_ms, rq_error *why);

/* The same for the rows of a table's regions only. */
RQ_NODISCARD
rq_err rq__meta_scan_table(rq_region *meta, rq_slice table,
                           rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                           void *ctx, rq_error *why);

/* The same for one row whose valid cells (newest.h) were collected by the caller; slices are in the
 * arena. `ignored`: it has cells with invalid timestamps. */
RQ_NODISCARD
rq_err rq__meta_row_read(const rq_cell *cells, size_t count, bool ignored, rq_arena *arena,
                         rq_err (*callback)(void *ctx, const rq__meta_row *row, rq_error *why),
                         void *ctx, rq_error *why);

/* How much of a cell is read from a row that clients may write. */
typedef enum rq__keep { RQ__KEEP_NOT, RQ__KEEP_COLUMN /* without its value */, RQ__KEEP } rq__keep;
/* How much is read of a cell of hbase:meta. */
rq__keep rq__meta_keep(const rq_cell *c);
#define RQ__META_VALUE_MAX ((uint32_t)256 * 1024) /* larger values are read as empty */
/* rq__meta_row.odd of a row whose splitA, splitB or merge… columns cannot be read. */
extern const char rq__meta_odd_relatives[];

/* What a reader with a keep() has seen; zero it before. */
typedef struct rq__seen {
    bool ignored; /* during a call: the row also has cells with invalid timestamps */
    /* Highest timestamp up to RQ__MS_CLOCK_MAX of the cells that are passed, and of all markers, because a marker hides
     * what is written with a lower timestamp. */
    int64_t newest_ms;
} rq__seen;

/* Calls `callback` for every row of a small region, with the row's newest cells, valid during the call.
 * Blocking. `keep` NULL: all cells, as the region's scanner returns them. Otherwise only cells that
 * are valid by newest.h and that keep() wants, none larger than RQ__META_VALUE_MAX; `seen` may be NULL. A row
 * that has only cells with invalid timestamps is passed as one cell without a family. */
RQ_NODISCARD
rq_err rq__region_each_row(rq_region *r, rq__keep (*keep)(const rq_cell *c), rq__seen *seen,
                           rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                              rq_error *why),
                           void *ctx, rq_error *why);
/* Calls `callback` for the row, if it has cells. Blocking. */
RQ_NODISCARD
rq_err rq__region_row(rq_region *r, rq_slice row,
                      rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                         rq_error *why),
                      void *ctx, rq_error *why);

#endif
