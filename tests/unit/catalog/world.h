/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog with short functions for DDL, which wait until the procedure has finished. In the
 * simulated environment everything runs on this thread; in a real one each thread works on its own
 * copy of the world struct, which shares the open catalog. */
#ifndef RQ_TESTS_CATALOG_WORLD_H
#define RQ_TESTS_CATALOG_WORLD_H

#include "../base/unit.h"

#include "base/config.h"
#include "catalog/catalog.h"
#include "late_calls.h"
#include "message_calls.h"
#include "vfs/sim.h"

/* A change that was submitted and not answered before the power went. */
typedef struct world_pending {
    rq_ddl ddl;
    bool done;
    struct world_pending *next;
} world_pending;

typedef struct world {
    rq_sim *sim; /* NULL: a real environment */
    rq_env *env;
    rq_root *root;
    rq_engine *engine;
    rq_host *host;
    /* Simulated only: the catalog's calls to the host report late, or are messages. */
    bool late, by_messages;
    /* Not NULL: makes the table of calls, once the host is open; the table's `stop` comes first when the
     * world closes, then free_calls. */
    void (*make_calls)(void *ctx, struct world *w, rq_region_calls *ret);
    void (*free_calls)(void *ctx);
    void *calls_ctx;
    uint16_t port; /* of the host's name; 0: 16020 */
    /* Not NULL: the engine is a server's of a cluster (region/engine.h). */
    struct rq_tenure *tenure;
    const char *server_name;
    const char *cluster_id; /* then also: the root is a cluster's, which was joined */
    late_calls *calls;
    message_calls *messages;
    rq_catalog *catalog;
    _Atomic bool has_catalog; /* for other threads */
    rq_config *config;
    rq_error why;   /* of the last verb */
    uint64_t proc;  /* its id */
    uint64_t nonce; /* of the next verb; 0: none; kept */
    int64_t start_code;
    world_pending *pending;
    bool trusted;                 /* cells are written without the checks of clients' cells */
    void (*at_work)(bool begins); /* around the catalog's part of a change; may be NULL */
} world;

/* `options` may be NULL. */
void world_init(world *w, uint64_t seed, const rq_sim_options *options);
/* On files, threads, the clock; borrowed until world_clear. */
void world_init_real(world *w, rq_env *env);
/* Opens root, engine and catalog. On an error nothing is open. */
rq_err world_open(world *w);
/* Closes what is open; `clean` as at SIGTERM. */
rq_err world_close(world *w, bool clean);
void world_clear(world *w);
/* Until no procedure is unfinished; false: one never ends. */
bool world_settle(world *w);

/* Families separated by blanks, "f:VERSIONS=3,TTL=100" with attributes; a part beginning with '@'
 * is a table attribute: "@REGION_REPLICATION=2". Splits separated by blanks, NULL for none. */
rq_err world_create(world *w, const char *table, const char *families, const char *splits);
/* The same with split keys of any bytes. */
rq_err world_create_at(world *w, const char *table, const char *families, const rq_slice *keys,
                       size_t count);
rq_err world_modify(world *w, const char *table, const char *families);
rq_err world_table(world *w, rq_ddl_kind kind, const char *table);
/* The name of the table's region that holds the row; malloc'ed. */
char *world_region_name(world *w, const char *table, const char *row);
/* Opens the world with table t of one region, which has row a; then disables t, so that the region
 * is closed and its folder remains. The caller releases the schema. */
rq_err world_open_closed_region(world *w, rq_arena *a, rq_region_info *ret_info,
                                rq_table_schema **ret_schema);
rq_err world_truncate(world *w, const char *table, bool preserve);
/* The region that holds `row` at `at`; NULL: its middle. */
rq_err world_split(world *w, const char *table, const char *row, const char *at);
rq_err world_split_at(world *w, const char *table, const char *row, rq_slice key);
/* The region that holds the row. */
rq_err world_truncate_region(world *w, const char *table, const char *row);
/* MOVE_REGION, ASSIGN_REGION, UNASSIGN_REGION of the row's region. */
rq_err world_transit(world *w, rq_ddl_kind kind, const char *table, const char *row);
/* Deletes the row's region from hbase:meta, behind the catalog's back. RQ_E_NOT_FOUND: there is none. */
rq_err world_forget(world *w, const char *table, const char *row);
/* A lock of LockService, until it ends because it is not renewed. `table`: "ns:" for a namespace;
 * `row`: of the region, for RQ_DDL_LOCK_REGIONS. */
rq_err world_lock(world *w, rq_ddl_kind kind, const char *table, const char *row);
/* The regions that hold the rows, separated by blanks. */
rq_err world_merge(world *w, const char *table, const char *rows, bool forcible);
/* A major compaction of every region of the table, waited for; on the simulated environment.
 * RQ_E_STATE: a region still refers to its parents' files. */
rq_err world_compact(world *w, const char *table);
/* The janitor's round. */
rq_err world_clean(world *w, const char *table);
/* ADD, MODIFY: "f:VERSIONS=3"; DELETE: "f"; ASSIGN, UNASSIGN: a region's encoded name. */
rq_err world_family(world *w, rq_ddl_kind kind, const char *table, const char *family);
/* Of the table itself where `family` is NULL. */
rq_err world_tracker(world *w, const char *table, const char *family, const char *tracker);
/* A snapshot of the table; `flush` false: SKIPFLUSH. */
rq_err world_snapshot(world *w, const char *name, const char *table, bool flush);
/* As a client asks that sends no nonce. */
rq_err world_snapshot_silent(world *w, const char *name, const char *table);
rq_err world_snapshot_ttl(world *w, const char *name, const char *table, bool flush, int64_t ttl_s);
rq_err world_delete_snapshot(world *w, const char *name);
/* A new table of the snapshot. */
rq_err world_clone(world *w, const char *name, const char *table);
rq_err world_clone_tracker(world *w, const char *name, const char *table, const char *tracker);
rq_err world_restore(world *w, const char *name, const char *table);
/* "key=value" may be NULL. */
rq_err world_namespace(world *w, rq_ddl_kind kind, const char *name, const char *quota);

/* bandwidth: of a peer that is added or updated. */
rq_err world_peer(world *w, rq_ddl_kind kind, const char *id, int64_t bandwidth);

/* The serialized TableSchema of such a text, in the arena. */
rq_slice world_schema(rq_arena *a, const char *table, const char *families);

/* Rows: a put of f:q = value, and whether it is there. */
rq_err world_put(world *w, const char *table, const char *row, const char *family);
rq_err world_put_cell(world *w, const char *table, const char *row, const char *family,
                      const char *qualifier, rq_slice value);
/* Any mutation of one cell, as a client may send it. */
rq_err world_write(world *w, const char *table, rq_mutation_type type, const rq_cell *cell);
/* Deletes the row's family. */
rq_err world_delete(world *w, const char *table, const char *row, const char *family);
/* RQ_OK, RQ_E_NOT_FOUND, or why it cannot be read. */
rq_err world_get(world *w, const char *table, const char *row, const char *family);

/* The rows of the table, region by region, each followed by a blank; malloc'ed. "" if a region
 * cannot be read, or there is no such table. */
char *world_rows(world *w, const char *table);
/* The column's values in all rows that have it, each followed by a blank; malloc'ed. */
char *world_values(world *w, const char *table, const char *family, const char *qualifier);

/* All tables with state, families, regions and whether they are open, and all namespaces, as text;
 * malloc'ed. The same text before and after a restart means the same catalog. */
char *world_describe(world *w);
/* "" if meta, descriptors on disk and the view agree; otherwise a description of the difference.
 * malloc'ed. */
char *world_check(world *w);

/* Of calls on a world `w`: what they return, and what it says why. */
#define OK(expr)                                                                                   \
    do {                                                                                           \
        if ((expr) != RQ_OK) fail_msg("%s: %s", #expr, w->why.message);                            \
    } while (0)

#define REFUSED(expr, error, text)                                                                 \
    do {                                                                                           \
        assert_string_equal(rq_err_name(expr), #error);                                            \
        assert_string_equal(w->why.message, text);                                                 \
    } while (0)

#endif
