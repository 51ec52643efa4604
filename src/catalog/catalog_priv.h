/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's struct, and functions shared by its files. */
#ifndef RQ_CATALOG_PRIV_H
#define RQ_CATALOG_PRIV_H

#include "base/config.h"
#include "base/log.h"
#include "base/parallel.h"
#include "catalog/catalog.h"
#include "catalog/chore.h"
#include "catalog/meta.h"
#include "catalog/peers_priv.h"
#include "catalog/procedure.h"
#include "catalog/view.h"
#include "region/mob_cleaner.h"

/* A file of archive/, and when it was first seen. */
typedef struct rq__seen_file {
    uint64_t hash; /* of its path */
    int64_t first_ms;
    uint64_t first_lsn; /* the end of the log then */
} rq__seen_file;

/* cleaner.c */
typedef struct rq__cleaner {
    rq__chore chore;
    int64_t ttl_ms;
    bool keeps_loads; /* hbase.replication.bulkload.enabled */
    _Atomic bool busy;
    rq__seen_file *seen; /* ascending by hash; owned by the thread that set `busy` */
    size_t count;
} rq__cleaner;

/* snapshot_list.c: the snapshots that were read last */
typedef struct rq__snapshot_list {
    pthread_mutex_t lock; /* guards the rest; held for copies only */
    rq_arena arena;
    rq_snapshot *list;
    size_t count;
    bool is_valid;
    uint64_t changes;  /* snapshots_changed just before the list was read */
    int64_t folder_ms; /* modification time of .hbase-snapshot/, likewise */
} rq__snapshot_list;
void rq__snapshot_list_init(rq_catalog *c);
void rq__snapshot_list_clear(rq_catalog *c);

/* janitor.c */
typedef struct rq__janitor {
    rq__chore chore;
    _Atomic uint64_t cleaned; /* regions, since the start */
    _Atomic bool busy;        /* a caller of rq_catalog_clean_parents waits for its round */
} rq__janitor;

/* Lines of the kinds of findings of check.c. */
typedef struct rq__check_lines {
    rq_log_limit holes, not_open, orphans, unreadable;
} rq__check_lines;

struct rq_catalog {
    rq_host *host;
    rq_region_calls calls;
    /* All regions of the folder write the log of this process, so the durable writes are a prefix of all
     * writes (procedure.h, rule 4). If false, other servers have logs of their own, and a procedure
     * waits until each of its writes is durable. */
    bool one_log;
    rq_engine *engine; /* the host's */
    const rq_env *env;
    rq_root *root;
    const rq_config *config;      /* may be NULL */
    const rq_server_name *server; /* the host's */
    const rq_server_name *master; /* a reference */
    uint16_t info_port;
    size_t part_bytes; /* see rq_catalog_options */
    rq__views views;
    /* The procedure store: a region of the table master:store, which is invisible to clients.
     * Replaced when it had to be given up; use rq__store_ref. */
    pthread_mutex_t store_lock;
    rq_region *store RQ_GUARDED_BY(store_lock);
    rq__procedures procedures;
    rq__peers peers;
    rq_err (*peers_changed)(void *ctx, rq_catalog *c, rq_error *why); /* rq_catalog_options */
    void *peers_ctx;
    rq__cleaner cleaner;
    rq__janitor janitor;
    rq__chore normalizer, balancer, mob_cleaner, mob_compactor, snapshot_cleaner;
    rq__chore open_mark;                /* retries writing .rorqual/open after a full disk */
    _Atomic uint64_t snapshots_made;    /* number of snapshots taken; see cleaner.c */
    _Atomic uint64_t snapshots_changed; /* number taken and deleted; see snapshot_list.c */
    rq__snapshot_list snapshot_list;
    rq_log_limit corrupt_snapshots, unknown_regions;
    rq__check_lines check_lines;
    _Atomic int64_t last_ms; /* highest time given to a cell of meta or the store */
    _Atomic bool switches[RQ_SWITCH_COUNT];
    _Atomic bool checking; /* check.c: one at a time */
    pthread_mutex_t quotas_lock;
    void (*quotas_dropped)(void *ctx) RQ_GUARDED_BY(quotas_lock); /* NULL: no listener */
    void *quotas_ctx RQ_GUARDED_BY(quotas_lock);
    _Atomic bool stopping;
};

/* --- catalog.c -------------------------------------------------------------------------------- */

/* Milliseconds, strictly increasing: two changes of one row never have the same timestamp, because
 * then a delete would hide the put that follows it. */
int64_t rq__catalog_now_ms(rq_catalog *c);
/* The wall clock, for times that are shown or compared with files' times. */
static inline int64_t rq__catalog_wall_ms(const rq_catalog *c)
{
    return c->env->executor->now_ms(c->env->executor);
}
/* From now on rq__catalog_now_ms returns times above `ms`. */
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

/* The current node of a table, referenced; RQ_E_TABLE_NOT_FOUND with the name as message. */
RQ_NODISCARD
rq_err rq__catalog_table_ref(rq_catalog *c, rq_slice ns, rq_slice qualifier, rq__table_node **ret,
                             rq_error *why);

/* --- names.c ---------------------------------------------------------------------------------- */
/* Whether this is hbase:meta, or a table in the procedure store's folder (namespace master).
 * Clients cannot create such tables, and no row of hbase:meta belongs to one. */
bool rq__table_is_internal(rq_slice ns, rq_slice qualifier);
/* Checks the name of a region to be created, which becomes a row of hbase:meta.
 * RQ_E_ILLEGAL_ARGUMENT. */
RQ_NODISCARD
rq_err rq__region_name_check(const rq_region_info *info, rq_error *why);

/* Checks the name of a snapshot as HBase's TableName.isLegalTableQualifierName;
 * RQ_E_ILLEGAL_ARGUMENT. */
RQ_NODISCARD
rq_err rq__snapshot_name_check(rq_slice name, rq_error *why);

/* Checks a name that becomes the name of a folder; `of` begins the message. RQ_E_ILLEGAL_ARGUMENT. HBase has no such
 * check: its procedure repeats the step that makes the folder, without end. */
RQ_NODISCARD
rq_err rq__name_len_check(const char *of, rq_slice name, rq_error *why);

/* --- calls.c: calls to servers ------------------------------------------------------------------ */
/* Calls of one kind that are sent together. */
typedef struct rq__calls {
    rq_catalog *catalog;
    rq__proc *proc; /* continues once all have reported; NULL: a thread waits for the latch `all` */
    rq_region_call_kind kind;
    size_t count;
    size_t out; /* calls that have not reported yet; under the procedures' lock */
    bool again; /* the next run of the step sends the calls that are `unsent` */
    rq_latch all;
    rq__region_node **nodes; /* by call: a reference that keeps the call's info valid, or NULL */
    rq_arena *arenas;        /* for the answers, one for each call; NULL: none */
    rq_region_call list[];
} rq__calls;

/* If `p` is NULL or has no ops (is no real procedure), sending blocks until all calls have reported.
 * NULL: out of memory. */
rq__calls *rq__calls_new(rq_catalog *c, rq__proc *p, rq_region_call_kind kind, size_t count);
/* Fills the i-th call for the node's region, on the server where it is open. */
void rq__calls_of_node(rq__calls *k, size_t i, rq__region_node *node);
/* Gives each call an arena for its answer. */
RQ_NODISCARD
rq_err rq__calls_with_arenas(rq__calls *k);
/* Sends the calls, and sets p->calls if there is a procedure. RQ_E_AGAIN: the step must return this
 * error; it runs again once all calls have reported, and finds p->calls. */
RQ_NODISCARD
rq_err rq__calls_send(rq__calls *k);
/* Sends the calls that were not sent for lack of memory (`unsent`). RQ_E_AGAIN as above. */
RQ_NODISCARD
rq_err rq__calls_send_rest(rq__calls *k);
/* RQ_E_AGAIN as long as not all of p->calls have reported. */
RQ_NODISCARD
rq_err rq__calls_wait(const rq__proc *p);
/* The first error of all. */
RQ_NODISCARD
rq_err rq__calls_result(const rq__calls *k, rq_error *why);
/* Whether the server may not have carried out a call: RQ_E_SERVER_STOPPED (this master stops; the step
 * must return the error), RQ_E_NO_MEMORY (a call is `unsent`). RQ_OK: the server has, or has failed to. */
RQ_NODISCARD
rq_err rq__calls_undone(const rq__calls *k);
/* REQUIRES: all have reported. NULL is fine. */
void rq__calls_free(rq__calls *k);
/* Frees p->calls. */
void rq__calls_drop(rq__proc *p);

/* Whether the server has not ended. Call it after publishing nodes that name the server. If the server ends before
 * this call, it returns false and the caller reopens the regions; if it ends later, rq_catalog_server_down finds the
 * published nodes. */
bool rq__catalog_server_is_up(const rq_catalog *c, const rq_server_name *server);

/* --- assign.c: opening and closing many regions ----------------------------------------------- */
/* The outcome of opening one region. */
typedef struct rq__opened {
    const rq_region_info *info;
    rq_table_schema *schema;      /* borrowed */
    rq__region_node *node;        /* OPEN or FAILED_OPEN; NULL: not opened yet */
    rq__region_node *of;          /* a reference that keeps `info` valid; may be NULL */
    const rq_server_name *server; /* where it is being opened; a reference */
    const rq_server_name *to;     /* the server requested for it; borrowed. NULL: any */
    const rq_server_name
        *last;     /* its previous server, if preferred again (retain.c); a reference */
    bool unserved; /* it may be open on `server`, but is in no view */
    rq_err rc;
    rq_error why;
} rq__opened;

/* Opens regions of the list that have no node yet; failures are noted in `list`, logged and leave
 * FAILED_OPEN nodes. If a server ends meanwhile, other servers open its regions. RQ_E_AGAIN: the step
 * of `p` must return this error, and call the function again when it is run again. Without a procedure
 * the function blocks until the regions are open. It may be called again after RQ_E_NO_MEMORY.
 * RQ_E_SERVER_STOPPED, here and below: this master stops, and some calls may have no result. */
RQ_NODISCARD
rq_err rq__open_regions(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count, rq_error *why);
/* Releases the nodes. */
void rq__opened_clear(rq__opened *list, size_t count);
/* Notes that the regions are in a view: clears `unserved`. */
void rq__opened_served(rq__opened *list, size_t count);
/* Closes the `unserved` regions of the list and releases the nodes. The regions are not flushed, unless
 * there are several servers. RQ_E_AGAIN as above. RQ_E_NO_MEMORY: some are still open; call it again. */
RQ_NODISCARD
rq_err rq__opened_abandon(rq_catalog *c, rq__proc *p, rq__opened *list, size_t count);
/* Takes regions of the procedure's table (`list`; NULL: all) out of service: the view shows them in
 * `state`. Then closes those that were open, with a flush or (`abandon`) without. *ret_closed (may be
 * NULL) is the first error of a close; even then the region is closed, and its edits stay in the log.
 * RQ_E_AGAIN as above; called again, the function collects the reports, and repeats calls that were
 * not sent for lack of memory. */
RQ_NODISCARD
rq_err rq__take_down(rq_catalog *c, rq__proc *p, const rq_region_info *list, size_t count,
                     rq_region_state state, bool abandon, rq_err *ret_closed, rq_error *why);
/* Opens a closed region and closes it with a flush, so that edits that are only in the log get into
 * files. RQ_E_AGAIN as above. */
RQ_NODISCARD
rq_err rq__bring_into_files(rq_catalog *c, rq__proc *p, const rq_region_info *info,
                            rq_table_schema *schema, rq_error *why);

/* --- bootstrap.c: the first start and every start --------------------------------------------- */
RQ_NODISCARD
rq_err rq__bootstrap(rq_catalog *c, rq_error *why);
/* Reads the rows of hbase:namespace into the view. `r` is its region; NULL: it is closed, and
 * namespaces are derived from the tables' names. */
RQ_NODISCARD
rq_err rq__namespaces_read(rq_catalog *c, rq_region *r, rq_error *why);

/* --- bootstrap.c ------------------------------------------------------------------------------ */
/* Closes master:store without a flush; this region does not belong to the host. */
void rq__store_abandon(rq_catalog *c, rq_region *store);

/* --- cleaner.c -------------------------------------------------------------------------------- */
void rq__cleaner_start(rq_catalog *c);
void rq__cleaner_clear(rq_catalog *c);

/* --- snapshot_cleaner.c ----------------------------------------------------------------------- */
void rq__snapshot_cleaner_start(rq_catalog *c);

/* --- open_mark.c ------------------------------------------------------------------------------ */
/* Writes .rorqual/open. On a full disk it returns RQ_OK, and the chore that _start starts retries. */
RQ_NODISCARD
rq_err rq__open_mark_write(rq_catalog *c, rq_error *why);
void rq__open_mark_start(rq_catalog *c);

/* --- procedure.c ------------------------------------------------------------------------------ */
/* Submits, and blocks until the procedure has *finished*: for threads of pools, tools and tests. */
RQ_NODISCARD
rq_err rq__catalog_ddl_sync(rq_catalog *c, rq_ddl *ddl, rq_error *why);

/* --- janitor.c -------------------------------------------------------------------------------- */
void rq__janitor_start(rq_catalog *c);

/* --- normalizer.c ----------------------------------------------------------------------------- */
void rq__normalizer_start(rq_catalog *c);

/* --- balancer.c ------------------------------------------------------------------------------- */
void rq__balancer_start(rq_catalog *c);

/* --- mob_chores.c ----------------------------------------------------------------------------- */
void rq__mob_chores_start(rq_catalog *c);
/* Calls that ask the other servers, if there are any, which MOB files they are writing. RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq__calls_for_mob_writes(rq_catalog *c, rq__proc *p, rq__calls **ret);
/* The answers to these calls. The lists are in the arena, the names belong to the calls. Calls that failed are left out. */
RQ_NODISCARD
rq_err rq__mob_writers_of(const rq__calls *k, rq_arena *arena, rq_mob_writers *ret);

/* --- switches.c ------------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__switches_load(rq_catalog *c, rq_error *why);

#endif
