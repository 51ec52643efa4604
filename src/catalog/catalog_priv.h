/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's own struct and what its files share. */
#ifndef RQ_CATALOG_PRIV_H
#define RQ_CATALOG_PRIV_H

#include "base/config.h"
#include "catalog/catalog.h"
#include "catalog/meta.h"
#include "catalog/procedure.h"
#include "catalog/view.h"

/* A file of archive/ and since when it is known. */
typedef struct rq__seen_file {
    uint64_t hash; /* of its path */
    int64_t first_ms;
} rq__seen_file;

/* cleaner.c */
typedef struct rq__cleaner {
    rq_timer timer;
    rq_task task;
    int64_t interval_ms, ttl_ms;
    _Atomic bool busy;
    rq__seen_file *seen; /* ascending by hash; whoever is busy owns it */
    size_t count;
} rq__cleaner;

/* janitor.c */
typedef struct rq__janitor {
    rq_timer timer;
    rq_task task;
    int64_t interval_ms;
    _Atomic uint64_t cleaned; /* regions, since the start */
} rq__janitor;

/* open_mark.c */
typedef struct rq__open_mark {
    rq_timer timer;
    rq_task task;
    bool is_due; /* the disk was full when it was to be written */
} rq__open_mark;

/* mob_chores.c */
typedef struct rq__mob_chore {
    rq_catalog *catalog;
    rq_timer timer;
    rq_task task;
    int64_t interval_ms;
} rq__mob_chore;

struct rq_catalog {
    rq_engine *engine;
    const rq_env *env;
    rq_root *root;
    const rq_config *config; /* may be NULL */
    rq_server_name server;
    rq_server_name master;
    uint16_t info_port;
    char *names; /* the bytes the two point to */
    rq__views views;
    /* The procedure store: a region of the table master:store that no client sees. Replaced when it
     * had to be given up; use rq__store_ref. */
    pthread_mutex_t store_lock;
    rq_region *store RQ_GUARDED_BY(store_lock);
    rq__procedures procedures;
    rq__cleaner cleaner;
    rq__janitor janitor;
    rq__open_mark open_mark;
    rq__mob_chore mob_cleaner, mob_compactor;
    _Atomic int64_t last_ms; /* highest time given to a cell of meta or the store */
    _Atomic bool switches[RQ_SWITCH_COUNT];
    _Atomic bool stopping;
};

/* Milliseconds, strictly rising: two changes of one row never share a timestamp, or a delete would
 * hide the put that follows it. */
int64_t rq__catalog_now_ms(rq_catalog *c);
/* Later stamps are above `ms`. */
void rq__catalog_saw_ms(rq_catalog *c, int64_t ms);

/* References; RQ_E_NOT_SERVING_REGION while the region is being reopened. */
RQ_NODISCARD
rq_err rq__meta_ref(rq_catalog *c, rq_region **ret, rq_error *why);
RQ_NODISCARD
rq_err rq__store_ref(rq_catalog *c, rq_region **ret, rq_error *why);
/* rq__region_each_row of master:store; ctx is the catalog. Blocking. */
RQ_NODISCARD
rq_err rq__store_each_row(rq_catalog *c,
                          rq_err (*callback)(void *ctx, const rq_cell *cells, size_t count,
                                             rq_error *why),
                          rq_error *why);

/* A table as it is now, referenced; RQ_E_TABLE_NOT_FOUND with the name as message. */
RQ_NODISCARD
rq_err rq__catalog_table_ref(rq_catalog *c, rq_slice ns, rq_slice qualifier, rq__table_node **ret,
                             rq_error *why);

/* --- names.c ---------------------------------------------------------------------------------- */
/* Of what everything else stands in: hbase:meta, and whatever lies where the procedure store does
 * (namespace master). No client makes such a table, and no row of hbase:meta is of one. */
bool rq__table_is_internal(rq_slice ns, rq_slice qualifier);
/* Of a region that is to be made: its name is a row of hbase:meta. RQ_E_ILLEGAL_ARGUMENT. */
RQ_NODISCARD
rq_err rq__region_name_check(const rq_region_info *info, rq_error *why);

/* --- assign.c: opening and closing many regions ----------------------------------------------- */
/* Runs fn(ctx, i) for i < count: on this thread and, as far as it is free, on RQ_POOL_WORK.
 * Returns when all are done; never waits for a pool thread that has not begun; out of memory it
 * does all of it itself. */
void rq__parallel(rq_catalog *c, size_t count, void (*fn)(void *ctx, size_t i), void *ctx);

/* What became of each region of an opening. */
typedef struct rq__opened {
    const rq_region_info *info;
    rq_table_schema *schema; /* borrowed */
    rq__region_node *node;   /* OPEN or FAILED_OPEN */
    rq_err rc;
    rq_error why;
} rq__opened;

/* Opens all; failures are noted in `list`, logged and leave FAILED_OPEN nodes. An error of its own
 * (memory) leaves no region open. */
RQ_NODISCARD
rq_err rq__open_regions(rq_catalog *c, rq__opened *list, size_t count, rq_error *why);
/* Releases the nodes. */
void rq__opened_clear(rq__opened *list, size_t count);
/* Of regions that are in no view: gives them up and releases the nodes. */
void rq__opened_abandon(rq_catalog *c, rq__opened *list, size_t count);
/* Closes with a flush; one that cannot be flushed is closed all the same, its records stay in the
 * log. `regions` are references of the caller's. Logs what goes wrong; the first error is returned.
 */
rq_err rq__close_regions(rq_catalog *c, rq_region **regions, size_t count, bool abort,
                         rq_error *why);

/* Closes without a flush: nothing worth keeping was written, or the log has it. */
void rq__region_abandon(rq_catalog *c, rq_region *r);

/* --- bootstrap.c: the first start and every start --------------------------------------------- */
RQ_NODISCARD
rq_err rq__bootstrap(rq_catalog *c, rq_error *why);
/* Brings the rows of hbase:namespace into the view. `r` is its region; NULL: it is closed, and the
 * tables name the namespaces as far as they go. */
RQ_NODISCARD
rq_err rq__namespaces_read(rq_catalog *c, rq_region *r, rq_error *why);

/* --- cleaner.c -------------------------------------------------------------------------------- */
void rq__cleaner_start(rq_catalog *c);
void rq__cleaner_clear(rq_catalog *c);

/* --- open_mark.c ------------------------------------------------------------------------------ */
/* .rorqual/open; on a full disk it is tried again, from _start on. */
RQ_NODISCARD
rq_err rq__open_mark_write(rq_catalog *c, rq_error *why);
void rq__open_mark_start(rq_catalog *c);

/* --- janitor.c -------------------------------------------------------------------------------- */
void rq__janitor_start(rq_catalog *c);

/* --- mob_chores.c ----------------------------------------------------------------------------- */
void rq__mob_chores_start(rq_catalog *c);

/* --- switches.c ------------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__switches_load(rq_catalog *c, rq_error *why);

#endif
