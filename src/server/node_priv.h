/* SPDX-License-Identifier: Apache-2.0 */
/* A server of a cluster, shared by node.c, node_master.c, node_standby.c, node_fence.c, node_evict.c, node_lease.c,
 * node_caretaker.c, node_names.c, node_pages.c, node_shutdown.c, node_sink.c and node_source.c. */
#ifndef RQ_SERVER_NODE_PRIV_H
#define RQ_SERVER_NODE_PRIV_H

#include "server/node.h"

#include "base/log.h"
#include "cluster/duty.h"
#include "cluster/master_watch.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "ops/ops.h"
#include "peers/peers.h"
#include "peers/service.h"
#include "registry/zk_member.h"
#include "replication/cluster_source.h"
#include "replication/sink_router.h"
#include "rpc/slow_log.h"
#include "server/cluster.h"
#include "server/info.h"
#include "server/listen.h"
#include "server/reload.h"
#include "server/revoked.h"
#include "server/tries.h"
#include "service/admin.h"

#include <pthread.h>

typedef struct rq__watched rq__watched;
typedef struct rq__stray rq__stray;

struct rq_node {
    rq_server_options o;
    rq_arena arena; /* of the place and the ready text */
    rq_cluster_place place;
    const char *ready;
    rq_listen listen;
    rq_listen_held held;
    const char *addresses[RQ_LISTEN_MAX]; /* of `listen` */
    char name[RQ_HOST_SIZE];              /* the host that others are told */
    rq_cluster_store store;
    rq_intake *intake; /* of files for bulk loads */
    rq_secret secret;
    rq_env env;
    const rq_server_name *server, *master; /* this process's two names; one start code */
    rq_tenure *tenure;
    rq_lane *evictions; /* NULL: the file system of HFiles needs none */
    rq_engine *engine;
    rq_host *host;
    rq_loops *loops;
    bool loops_run;
    rq_budget *budget, *answers, *unread;
    rq_ops *ops;
    rq_client_service *client;
    rq_admin_services *own_admin; /* of this server's regions */
    rq_sides *sides;
    rq_peer_service *incoming;
    rq_peers *peers;
    struct {
        rq_peers *peers;
        rq_sink_router *router;
        rq_sink counters;
    } sink;                    /* of replication */
    rq_cluster_source *source; /* of replication */
    bool keeps_log;            /* closed in order: peers need the rest of this server's log */
    rq_peer_role role;
    rq_orders *orders;
    rq_duty *duty;
    rq_member_answers answers_of; /* with the member */
    rq_rpc_server *rs_server, *master_server;
    rq_info_place info; /* of the pages */
    rq_http *http;
    rq_metrics *metrics;
    rq_slow_log *slow;
    rq_reload reload;
    bool serves_pages RQ_GUARDED_BY(lock);
    struct {
        _Atomic(rq_catalog *) catalog; /* NULL: this process is not the active master */
        _Atomic(rq_rpc_server *) server;
    } led; /* as pages and reports show it */
    /* The keeper: a thread that watches the member, and looks after the servers when this one is the master. */
    pthread_t keeper;
    bool keeper_runs;
    /* Makes this process the master, which waits for other servers: the keeper says meanwhile which of them ended. */
    pthread_t opener;
    bool opener_runs; /* it was started; the keeper's, then the closing thread's */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping RQ_GUARDED_BY(lock);
    bool stirred RQ_GUARDED_BY(lock);       /* there may be something to do */
    bool view_changed RQ_GUARDED_BY(lock);  /* of the catalog: znodes are to be written */
    bool is_lost RQ_GUARDED_BY(lock);       /* the end of the process has been asked for */
    rq_remote *remote RQ_GUARDED_BY(lock);  /* once set, it stays: see rq__node_remote */
    rq_catalog *opened RQ_GUARDED_BY(lock); /* the opener's result, until the keeper has it */
    const rq_server_name *replaced[16] RQ_GUARDED_BY(lock); /* to be fenced */
    size_t replaced_count RQ_GUARDED_BY(lock);
    /* Servers that ended unseen, to be fenced; the caretaker finds them. */
    char unseen[16][RQ_SHARED_NAME_MAX + 1] RQ_GUARDED_BY(lock);
    size_t unseen_count RQ_GUARDED_BY(lock);
    /* A thread of the active master, for what may take long (node_caretaker.c); its own fields. */
    struct {
        pthread_t thread;
        pthread_cond_t wake; /* with the lock */
        bool runs;           /* it was started; the keeper's, then the closing thread's */
        size_t next;         /* the ended log that is looked at next */
        unsigned laps;
        struct rq__stray *strays; /* servers that have queues and are not known */
    } caretaker;
    /* The active master's; the keeper's alone. */
    bool was_standby;
    struct rq__watched *watched; /* servers that have reported */
    rq__tries fences;            /* of servers that are given up */
    rq__tries lease_reads;       /* of servers whose leases have expired */
    uint64_t shut_down_ns;       /* since when the cluster is being shut down; 0: it is not */
    bool is_asked_to_end;        /* the shutdown has called o.stop */
    char reported_to[RQ_SHARED_NAME_MAX]; /* the active master when the keeper last looked */
    bool marks_looked_at;                 /* of decommissioned servers that have ended */
    rq_catalog *catalog;
    struct {
        uint64_t expired_ns; /* since when it is expired; 0: it is valid */
        uint64_t again_ns;   /* when this expiry is logged again */
        bool is_logged;      /* this expiry */
        rq_log_limit expiry_lines;
    } lease;                                         /* the keeper's alone */
    rq__revoked_servers revoked RQ_GUARDED_BY(lock); /* times by rq_shared_now_ns */
    /* A standby's; the keeper's alone. */
    rq_master_watch *watch;
    char deposed[RQ_SHARED_NAME_MAX]; /* the last master that this process has fenced */
    /* The opener's. */
    rq_root *catalog_root;
    rq_admin_services *admin;
};

/* The server in the active master's process, with a reference for the caller. NULL: the master is unknown, or memory is exhausted. */
const rq_server_name *rq__node_active(const rq_member_view *v);
/* Of rq_admin_services_options; `ctx` is the node. */
rq_err rq__node_reload_for_client(void *ctx, rq_error *why);
/* Wakes the keeper. */
void rq__node_stir(rq_node *n);
/* Any thread. */
bool rq__node_is_stopping(rq_node *n);
/* How long the master does not hear a server before it takes its regions. */
rq_silence_limits rq__node_silence(const rq_node *n);
RQ_NODISCARD
rq_err rq__node_take_orders(rq_node *n, rq_error *why);
void rq__node_refuse_orders(rq_node *n);
RQ_NODISCARD
rq_err rq__node_listen(rq_node *n, uint16_t port, const char *name, const rq_rpc_service *services,
                       size_t count, rq_rpc_server **ret, rq_error *why);

/* --- node_master.c ---------------------------------------------------------------------------------- */
/* Starts the opener: the catalog is opened, which takes the regions' places as it finds them. */
RQ_NODISCARD
rq_err rq__node_become_master(rq_node *n, rq_error *why);
/* Takes the catalog over from the opener, if it is open now. The keeper's. */
void rq__node_take_catalog(rq_node *n);
/* NULL: this process is not elected. */
rq_remote *rq__node_remote(rq_node *n);
/* This process cannot go on: its caller is told once, and ends it without an orderly close. Any thread. */
void rq__node_lost(rq_node *n, const rq_error *why);
/* Fences servers that have left, and has their regions opened elsewhere. */
RQ_NODISCARD
rq_err rq__node_look_after(rq_node *n, const rq_member_view *v, rq_error *why);
/* Whether the server is in ZooKeeper. */
bool rq__node_is_listed(const rq_member_view *v, const char *server);
/* Ends the opener. REQUIRES: the keeper has ended. */
void rq__node_stop_opener(rq_node *n);
/* Before the loops stop: no change begins any more. */
void rq__node_stop_master(rq_node *n);
/* After: the catalog is closed, and what is left of the master freed. */
rq_err rq__node_close_master(rq_node *n, rq_error *why);

/* --- node_fence.c ----------------------------------------------------------------------------------- */

#define RQ__NODE_LEAVING "leaving"
#define RQ__NODE_ENDED "ended"

RQ_NODISCARD
rq_err rq__node_fence(rq_node *n, const char *server, rq_error *why);
/* Of rq_remote_options; `ctx` is the role. */
size_t rq__node_revoked(void *ctx, rq_arena *arena, rq_revoked **ret);
/* True: it is fenced. False: the storage has not answered, or the next attempt is not due: call it again later. What
 * fails is logged. The keeper's. */
bool rq__node_fence_or_retry(rq_node *n, const char *server);
/* Reads the object that the server's lease rests on: the head of its tenure. Blocks. */
RQ_NODISCARD
rq_err rq__node_read_lease(const rq_node *n, const char *server, rq_error *why);
/* Whether this process can read the head of the server's tenure. If it cannot, a part of the storage answers nobody: the
 * server is not at fault, and its tenure could not be revoked either. False also while the next attempt is not due. Failures
 * are logged. The keeper's. */
bool rq__node_reads_lease_of(rq_node *n, const char *server);
/* Removes the log of an ended server, if neither a region nor a peer needs it any more; else a later call tries again. `sweeps`:
 * also looks for keys that no region needs, which costs a read for each. Not before the catalog is open: until then the opener looks
 * at the same logs (rq__node_note_ended). The caretaker's. */
void rq__node_retire_log(rq_node *n, const char *server, bool sweeps);
/* For a new master: looks up the servers that were fenced before its election, except those whose logs have been
 * removed. So the wait for the lease of a fenced server begins now, not when its regions are opened. Its session with
 * CephFS is ended again, because the former master may have ended before it did that. A failure only makes later steps
 * take longer. */
void rq__node_note_ended(rq_node *n);

/* --- node_evict.c ----------------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__node_open_evictions(rq_node *n, rq_error *why);
/* Ends what the server holds in the file system of HFiles, in the background. Any thread. REQUIRES: it is fenced. */
void rq__node_evict(rq_node *n, const char *server);
/* Waits for evictions that have begun. */
void rq__node_close_evictions(rq_node *n);

/* --- node_caretaker.c ------------------------------------------------------------------------------- */
/* REQUIRES: there is a catalog. The keeper's. */
RQ_NODISCARD
rq_err rq__node_start_caretaker(rq_node *n, rq_error *why);
/* REQUIRES: the keeper has ended. */
void rq__node_stop_caretaker(rq_node *n);
/* Has the keeper fence the server; it may be called again until that is done. The caretaker's. */
void rq__node_report_unseen(rq_node *n, const char *server);
/* Fences those that were reported. The keeper's. */
void rq__node_give_up_unseen(rq_node *n, const rq_member_view *v);

/* --- node_lease.c ----------------------------------------------------------------------------------- */
/* True: the lease has expired or is valid again since the last call, and the master should hear of it. The keeper's. */
bool rq__node_check_lease(rq_node *n);
/* How long the keeper may wait until it looks again: `usual`, or less if the lease expires earlier, because the master is to
 * hear of that at once. At least 1. */
int rq__node_lease_look_ms(const rq_node *n, int usual);
/* For how long the lease has been expired; 0: it is valid. Any thread. */
uint64_t rq__node_lease_expired_ms(const rq_node *n);

/* --- node_shutdown.c -------------------------------------------------------------------------------- */
/* True: the cluster is being shut down; this process is asked to end, at once or later. The keeper's. */
bool rq__node_ends_with_cluster(rq_node *n, const rq_member_view *v);

/* --- node_standby.c --------------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__node_watch_masters(rq_node *n, rq_error *why);
/* Takes the active master's place away if its process has ended. The keeper's. */
void rq__node_watch_master(rq_node *n, const rq_member_view *v);
/* Of a master: it ends in order, so that standbys do not fence it when its port is closed; it has left ZooKeeper. */
void rq__node_leaves(rq_node *n);
void rq__node_has_left(rq_node *n);

/* --- node_pages.c ----------------------------------------------------------------------------------- */
/* Answers health checks on the port that was bound. */
RQ_NODISCARD
rq_err rq__node_open_pages(rq_node *n, rq_error *why);
RQ_NODISCARD
rq_err rq__node_open_observers(rq_node *n, rq_error *why);
/* This process has joined: all pages are served. */
void rq__node_serve_pages(rq_node *n);
/* This process is the active master from now on. */
void rq__node_lead_pages(rq_node *n, rq_catalog *catalog);
/* Returns when no page is being made. */
void rq__node_withdraw_pages(rq_node *n);
void rq__node_close_pages(rq_node *n);

/* --- node_sink.c ------------------------------------------------------------------------------------ */
/* REQUIRES: there are loops, which need not run. */
RQ_NODISCARD
rq_err rq__node_open_sink(rq_node *n, rq_error *why);
/* Called before the server waits for the end of clients' calls: no further entries are passed on, and the calls that
 * pass entries on end. */
void rq__node_stop_sink(rq_node *n);
/* Blocking. REQUIRES: the loops run. */
void rq__node_disconnect_sink(rq_node *n);
/* rq_duty_options.sink; `ctx`: n->role. */
void rq__node_sink_load(void *ctx, rq_sink_load *ret);
/* REQUIRES: the sink is disconnected, or the loops never ran; no call of a client is left. */
void rq__node_free_sink(rq_node *n);

/* --- node_source.c ---------------------------------------------------------------------------------- */
/* REQUIRES: this server does not report for duty yet. Blocks. */
RQ_NODISCARD
rq_err rq__node_open_source(rq_node *n, rq_error *why);
/* Blocks. REQUIRES: there is an engine; no client writes any more, and no report is made. */
void rq__node_close_source(rq_node *n);
/* Fences this server's own log, if peers need the rest of it. REQUIRES: the log is closed. */
void rq__node_leave_log(rq_node *n);
/* rq_duty_options.sources; `ctx`: n->role. */
RQ_NODISCARD
rq_err rq__node_source_loads(void *ctx, rq_arena *arena, rq_source_load **ret, size_t *ret_count);
/* rq_metrics_sources.peers; `ctx`: the node. */
RQ_NODISCARD
rq_err rq__node_peers(void *ctx, rq_arena *arena, rq_source_status **ret, size_t *ret_count,
                      uint32_t *ret_kept);
/* rq_catalog_options.peers_changed; `ctx`: the node. */
RQ_NODISCARD
rq_err rq__node_peers_changed(void *ctx, rq_catalog *c, rq_error *why);
/* Writes the list of peers, if it differs from the catalog. *ret: there are peers. The caretaker's, as the rest of this part. */
RQ_NODISCARD
rq_err rq__node_publish_peers(rq_node *n, bool *ret, rq_error *why);
/* Whether the server is up, or in ZooKeeper. Any thread. */
bool rq__node_is_known(rq_node *n, const rq_member_view *v, const char *server);
/* A log that has queues: notes losses, if there are peers; if nobody knows the server, and its log has not ended, has it fenced. */
RQ_NODISCARD
rq_err rq__node_look_at_queues(rq_node *n, const rq_member_view *v, const char *server,
                               bool has_peers, rq_error *why);
/* Forgets what was noted about servers whose names are not among these, which ascend. */
void rq__node_forget_strays(rq_node *n, const char *const *names, size_t count);

/* --- node_names.c ----------------------------------------------------------------------------------- */
/* Has the znodes written that show where meta, tables and namespaces are. */
RQ_NODISCARD
rq_err rq__node_write_names(rq_node *n, rq_error *why);

#endif
