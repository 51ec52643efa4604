/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the embedded back end: the database, a thread's seat in it,
 * repetitions. */
#ifndef RQ_EMBED_EMBED_PRIV_H
#define RQ_EMBED_EMBED_PRIV_H

#include "embed/embed.h"

#include "base/config.h"
#include "base/driven_executor.h"
#include "base/env.h"
#include "catalog/catalog.h"
#include "ops/ops.h"

typedef struct rq__embed {
    rq_db db;
    rq_backend backend; /* db's */
    rq_log log;
    rq_config *config;
    rq_vfs *vfs;
    rq_executor *executor;
    bool is_driven; /* the executor has no threads: callers run its tasks */
    rq_epoch *epoch;
    rq_env env;
    rq_root *root;
    rq_engine *engine;
    rq_host *host;
    rq_catalog *catalog;
    _Atomic bool has_catalog; /* for compactions that begin before the catalog is open */
    rq_lane *lane;            /* the scanners' leases */
    rq_ops *ops;
    uint64_t nonce_group;
} rq__embed;

/* How long a call of a database without threads works on the tasks of the engine that wait. */
#define RQ__HELP_NS ((uint64_t)1000 * 1000)

/* The memory of a slot (rq_slot.own), used by one thread at a time: its memberships in the epoch
 * and in ops, and its buffers. */
typedef struct rq__embed_seat {
    rq_epoch_member section;
    rq_ops_seat *ops;
    rq_cellblock out;
    /* The table that was last looked up, and its region of the last row (NULL: none), valid in the view of that number. */
    uint64_t table_number; /* rq_table.number; 0: none */
    uint64_t view_number;
    const rq_catalog_table *table;
    const rq_catalog_region *region;
} rq__embed_seat;

static inline rq__embed *rq__embed_of(rq_db *db)
{
    return RQ_CONTAINER_OF(db, rq__embed, db);
}

/* The seat of the slot; it is made when the slot is first used. */
RQ_NODISCARD
rq_err rq__seat_of(rq__embed *e, rq_slot *slot, rq__embed_seat **ret, rq_why *why);

/* Begin and end the read section in which a call looks up regions and starts its op. */
static inline void rq__seat_enter(rq__embed *e, rq__embed_seat *s)
{
    rq_epoch_enter(e->epoch, &s->section);
}
static inline void rq__seat_exit(rq__embed *e, rq__embed_seat *s)
{
    rq_epoch_exit(e->epoch, &s->section);
    rq_epoch_collect(e->epoch);
}

/* Initialises an op that ends before the function that starts it returns. */
void rq__op_begin(rq__embed_seat *s, rq_slot *slot, rq_op *op, rq_op_kind kind);

/* The open region that holds the row. In a section. RQ_E_TABLE_NOT_FOUND, RQ_E_TABLE_NOT_ENABLED,
 * RQ_E_NOT_SERVING_REGION. */
RQ_NODISCARD
rq_err rq__locate(const rq__embed *e, rq__embed_seat *s, const rq_table *t, rq_slice row,
                  rq_region **ret, rq_error *why);

/* The end of a call that has changed something: in a database without threads it does a part of the
 * engine's waiting work. */
static inline void rq__help(rq__embed *e)
{
    if (RQ_UNLIKELY(e->is_driven)) rq_driven_help(e->executor, RQ__HELP_NS);
}

/* --- repetitions ------------------------------------------------------------------------------ */

typedef struct rq__attempts {
    uint64_t until_ns; /* 0: the call has not failed yet */
    unsigned failed;
} rq__attempts;

/* Whether the error is temporary, for instance because a region is moving or memory is full. */
bool rq__may_pass(rq_err rc);
/* Whether the call, which has failed with `rc`, should be repeated. If so, the function has slept
 * for the pause and has cleared `why`. */
bool rq__attempt_again(rq__embed *e, rq__attempts *a, rq_err rc, rq_error *why);

/* --- translation (translate.c) ---------------------------------------------------------------- */

/* Converts the arguments of a read; the result is in the arena. The filter is parsed for each use,
 * because it has state. */
RQ_NODISCARD
rq_err rq__reading_to_scan(const rq_reading *r, const rq_region *region, rq_arena *arena,
                           rq_scan *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__getting_to_scan(const rq_getting *g, const rq_region *region, rq_arena *arena,
                           rq_scan *ret, rq_error *why);
/* Cells are copied, because the region changes them. */
RQ_NODISCARD
rq_err rq__changing_to_mutation(const rq_changing *c, const rq_region *region, rq_arena *arena,
                                rq_mutation *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__checking_to_condition(const rq_checking *k, rq_slice row, rq_arena *arena,
                                 rq_condition *ret, rq_error *why);

/* --- the back end's functions ----------------------------------------------------------------- */

rq_err rq__embed_define(rq_db *db, rq_slot *slot, const rq_defining *d, rq_why *why);
rq_err rq__embed_describe(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_buf *ret,
                          bool *ret_enabled, rq_why *why);
rq_err rq__embed_tables(rq_db *db, rq_slot *slot, rq_slice ns, rq_naming *ret, rq_why *why);
rq_err rq__embed_namespaces(rq_db *db, rq_slot *slot, rq_naming *ret, rq_why *why);
rq_err rq__embed_describe_namespace(rq_db *db, rq_slot *slot, rq_slice ns, rq_buf *ret,
                                    rq_why *why);
rq_err rq__embed_snapshots(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why);
rq_err rq__embed_get(rq_table *t, rq_slot *slot, const rq_getting *get, rq_row **ret, rq_why *why);
rq_err rq__embed_change(rq_table *t, rq_slot *slot, const rq_checking *check, rq_changing *changes,
                        size_t count, bool *ret_done, rq_row **ret, rq_why *why);
rq_err rq__embed_batch(rq_table *t, rq_slot *slot, rq_acting *actions, size_t count,
                       rq_outcomes *ret, rq_why *why);
rq_err rq__embed_scan(rq_table *t, rq_slot *slot, const rq_scanning *scan, void **ret, rq_why *why);
rq_err rq__embed_next(rq_table *t, rq_slot *slot, void *scan, rq_row_memory *memory, size_t max,
                      rq_row **rows, size_t *ret_count, rq_why *why);
bool rq__embed_has_row(const void *scan);
rq_err rq__embed_regions(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier,
                         rq_region_finding *ret, rq_why *why);
rq_err rq__embed_compact(rq_db *db, rq_slot *slot, rq_slice ns, rq_slice qualifier, rq_slice family,
                         bool major, rq_why *why);
rq_err rq__embed_cluster(rq_db *db, rq_slot *slot, rq_cluster_finding *ret, rq_why *why);
void rq__embed_scan_close(rq_db *db, rq_slot *slot, void *scan);

#endif
