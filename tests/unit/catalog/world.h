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

/* A change that was submitted but not answered before the power cut. */
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
    /* Not NULL: makes the table of calls once the host is open. When the world closes it calls the
     * table's `stop`, then free_calls. */
    void (*make_calls)(void *ctx, struct world *w, rq_region_calls *ret);
    void (*free_calls)(void *ctx);
    void *calls_ctx;
    uint16_t port; /* port in the host's name; 0: 16020 */
    /* Not NULL: the engine belongs to a cluster's server (region/engine.h). */
    struct rq_tenure *tenure;
    const char *server_name;
    /* set with tenure: the root belongs to this cluster, which the world has joined */
    const char *cluster_id;
    late_calls *calls;
    message_calls *messages;
    rq_catalog *catalog;
    _Atomic bool has_catalog; /* read by other threads */
    rq_config *config;
    size_t part_bytes; /* see rq_catalog_options */
    rq_error why;      /* of the last call */
    uint64_t proc;     /* the procedure id of the last call */
    uint64_t nonce;    /* for the next calls; 0: none */
    int64_t start_code;
    world_pending *pending;
    bool trusted;                 /* cells skip the checks of clients' cells */
    void (*at_work)(bool begins); /* called around the catalog's part of a change; may be NULL */
} world;

/* `options` may be NULL. */
void world_init(world *w, uint64_t seed, const rq_sim_options *options);
/* With real files, threads and clock; `env` is borrowed until world_clear. */
void world_init_real(world *w, rq_env *env);
/* Opens root, engine and catalog. On an error nothing is open. */
rq_err world_open(world *w);
/* Closes what is open; `clean`: as at SIGTERM, otherwise as in a crash. */
rq_err world_close(world *w, bool clean);
void world_clear(world *w);
/* Closes the world as a server closes at SIGTERM; fails the test if the close fails. Frees the memory of the world. */
void world_end(world *w);
/* Waits until no procedure is unfinished; false: one does not finish. */
bool world_settle(world *w);

/* Families separated by blanks, such as "f:VERSIONS=3,TTL=100" with attributes; a part beginning
 * with '@' is a table attribute: "@REGION_REPLICATION=2". Splits separated by blanks, NULL for
 * none. */
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
/* Splits the region that holds `row` at the key `at`; NULL: in the middle. */
rq_err world_split(world *w, const char *table, const char *row, const char *at);
rq_err world_split_at(world *w, const char *table, const char *row, rq_slice key);
/* Truncates the region that holds the row. */
rq_err world_truncate_region(world *w, const char *table, const char *row);
/* MOVE_REGION, ASSIGN_REGION, UNASSIGN_REGION of the row's region. */
rq_err world_transit(world *w, rq_ddl_kind kind, const char *table, const char *row);
/* Deletes the row's region from hbase:meta without the catalog's knowledge. RQ_E_NOT_FOUND: the row
 * is missing. */
rq_err world_forget(world *w, const char *table, const char *row);
/* Takes a lock of LockService, which ends because it is not renewed. `table`: "ns:" for a
 * namespace; `row`: selects the region for RQ_DDL_LOCK_REGIONS. */
rq_err world_lock(world *w, rq_ddl_kind kind, const char *table, const char *row);
/* Merges the regions that hold the rows, which are separated by blanks. */
rq_err world_merge(world *w, const char *table, const char *rows, bool forcible);
/* Runs a major compaction of every region of the table and waits for it; simulated environment
 * only. RQ_E_STATE: a region still refers to its parents' files. */
rq_err world_compact(world *w, const char *table);
/* Runs one round of the janitor. */
rq_err world_clean(world *w, const char *table);
/* ADD, MODIFY: "f:VERSIONS=3"; DELETE: "f"; ASSIGN, UNASSIGN: a region's encoded name. */
rq_err world_family(world *w, rq_ddl_kind kind, const char *table, const char *family);
/* Changes the tracker of a family; `family` NULL: of the table. */
rq_err world_tracker(world *w, const char *table, const char *family, const char *tracker);
/* A snapshot of the table; `flush` false: SKIPFLUSH. */
rq_err world_snapshot(world *w, const char *name, const char *table, bool flush);
/* As a client asks that sends no nonce. */
rq_err world_snapshot_silent(world *w, const char *name, const char *table);
rq_err world_snapshot_ttl(world *w, const char *name, const char *table, bool flush, int64_t ttl_s);
rq_err world_delete_snapshot(world *w, const char *name);
/* Makes a new table from the snapshot. */
rq_err world_clone(world *w, const char *name, const char *table);
rq_err world_clone_tracker(world *w, const char *name, const char *table, const char *tracker);
rq_err world_restore(world *w, const char *name, const char *table);
/* `quota`: "key=value", or NULL. */
rq_err world_namespace(world *w, rq_ddl_kind kind, const char *name, const char *quota);

/* bandwidth: for a peer that is added or updated. */
rq_err world_peer(world *w, rq_ddl_kind kind, const char *id, int64_t bandwidth);

/* The serialized TableSchema described by these texts, in the arena. */
rq_slice world_schema(rq_arena *a, const char *table, const char *families);

/* Puts "value" into the column q of the row's family. */
rq_err world_put(world *w, const char *table, const char *row, const char *family);
rq_err world_put_cell(world *w, const char *table, const char *row, const char *family,
                      const char *qualifier, rq_slice value);
/* Any mutation of one cell, as a client may send it. */
rq_err world_write(world *w, const char *table, rq_mutation_type type, const rq_cell *cell);
/* Deletes the row's family. */
rq_err world_delete(world *w, const char *table, const char *row, const char *family);
/* RQ_OK, RQ_E_NOT_FOUND, or the error of the read. */
rq_err world_get(world *w, const char *table, const char *row, const char *family);

/* The rows of the table, region by region, each followed by a blank; malloc'ed. "" if a region
 * cannot be read or the table does not exist. */
char *world_rows(world *w, const char *table);
/* The column's values in all rows that have it, each followed by a blank; malloc'ed. */
char *world_values(world *w, const char *table, const char *family, const char *qualifier);

/* All tables with state, families, regions and whether they are open, and all namespaces, as text;
 * malloc'ed. The same text before and after a restart means the same catalog. */
char *world_describe(world *w);
/* "" if meta, descriptors on disk and the view agree; otherwise a description of the difference.
 * malloc'ed. */
char *world_check(world *w);

/* For calls on a world `w`: check the returned error, and print or compare w->why. */
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
