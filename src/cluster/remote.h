/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's side: the table of calls (host/calls.h) whose servers are other processes.
 *
 *   send ─► ExecuteProcedures to each server, again and again until it has been accepted
 *   ReportRegionStateTransition, ReportProcedureDone ─► the call with that number reports
 *   a server is down ─► its calls report RQ_E_SERVER_NOT_RUNNING
 *   a server is silent ─► ExecuteProcedures without orders, which it answers if it serves clients
 *
 * A message may be lost, or arrive twice: numbers of calls are never reused, and a repeated report
 * is accepted and changes nothing.
 */
#ifndef RQ_CLUSTER_REMOTE_H
#define RQ_CLUSTER_REMOTE_H

#include "cluster/wire.h"
#include "host/calls.h"

typedef struct rq_remote rq_remote;

/* A message on its way to a server. */
typedef struct rq_remote_request {
    const rq_server_name *server;
    rq_slice request; /* ExecuteProceduresRequest of AdminService */
    /* Called exactly once, on any thread, perhaps before `send` returns. `why` may be NULL. An
     * error that is not retryable: the server refuses all of the message. */
    void (*done)(struct rq_remote_request *r, rq_err rc, const rq_error *why);
    /* In `done`, with an error: the server's own address has refused the connection, so that no process listens there. */
    bool refused;
} rq_remote_request;

typedef struct rq_remote_options {
    const rq_env *env;
    int64_t master_ms; /* when this master became active; above every earlier one's */
    void (*send)(void *ctx, rq_remote_request *r);
    /* The server in the master's process. It gets all regions of the namespace hbase, because the master reads
     * their rows directly. NULL: any server gets them. Borrowed. */
    const rq_server_name *home;
    /* Returns the server that owns the region according to the storage, referenced; NULL: no server does. If the owner
     * is up, `place` returns it, and the region stays open there. If the owner is not up, the callee has fenced it
     * before it returns. Called by `place`; blocks. NULL: the owner is never known, as in tests without storage. */
    const rq_server_name *(*owner)(void *ctx, const rq_region_info *info);
    /* Called when a server has joined at the address of `old`, which therefore has ended. The callee fences `old`
     * and then calls rq_remote_server_down. Any thread, must not block; may be NULL. */
    void (*replaced)(void *ctx, const rq_server_name *old);
    /* A server has closed all its connections to this master: rq_remote_silent is to be called soon. Any thread, must not
     * block; NULL: nobody is told. */
    void (*hung_up)(void *ctx);
    /* A server is to drain, or not any more (rq_region_calls.drain): it is kept on storage, for the next master. Blocks; an
     * error refuses the change. NULL: it is not kept. */
    rq_err (*keep_draining)(void *ctx, const rq_server_name *server, bool drains, rq_error *why);
    /* Lists the servers that this process has fenced lately, in the arena, and returns their number. Orders to open
     * regions carry the list, so that their receivers wait for the rest of a fenced server's lease only. Any thread, must
     * not block. NULL: orders have no list, and each receiver waits for a whole lease. */
    size_t (*revoked)(void *ctx, rq_arena *arena, rq_revoked **ret);
    bool rejects_hosts; /* hbase.master.reject.decommissioned.hosts */
    void *ctx;
} rq_remote_options;

RQ_NODISCARD
rq_err rq_remote_new(const rq_remote_options *options, rq_remote **ret);
/* The table of calls; valid as long as the object. REQUIRES before rq_remote_free: its stop was
 * called, and no message is outstanding. */
rq_region_calls rq_remote_calls(rq_remote *m);
/* NULL is fine. */
void rq_remote_free(rq_remote *m);

/* A server has joined and can take regions. May be repeated. RQ_E_YOU_ARE_DEAD: rq_remote_server_down was called
 * for it or for a later server at its address, or a later server is up there. `why` may be NULL. */
RQ_NODISCARD
rq_err rq_remote_server_up(rq_remote *m, const rq_server_name *server, rq_error *why);
/* The server is dead and fenced: ends its outstanding calls; it cannot join again. Any thread. */
void rq_remote_server_down(rq_remote *m, const rq_server_name *server);
/* Whether the server has joined and rq_remote_server_down was not called for it. Any thread. */
bool rq_remote_is_up(rq_remote *m, const rq_server_name *server);
/* The names of at most `max` of the servers that are up, beginning with a different one at each call;
 * referenced for the caller, the list in the arena. *ret_total: the number of servers that are up. */
RQ_NODISCARD
rq_err rq_remote_servers(rq_remote *m, size_t max, rq_arena *arena, const rq_server_name ***ret,
                         size_t *ret_count, size_t *ret_total);

/* --- servers that get no further regions (draining.c) -------------------------------------------- */

/* What storage has: at the start of a master, perhaps before the server is up, and after its end. Any thread. */
RQ_NODISCARD
rq_err rq_remote_set_draining(rq_remote *m, const rq_server_name *server, bool drains);
/* Those that drain, up or not, referenced for the caller, in the arena. */
RQ_NODISCARD
rq_err rq_remote_draining(rq_remote *m, rq_arena *arena, const rq_server_name ***ret,
                          size_t *ret_count);

/* --- servers that are not heard (silence.c) ------------------------------------------------------
 *
 * Two times are counted for each server: since its last report, and since its last answer to a probe. A server that has
 * answered no probe for a quarter of the limit gets one: a message without orders, which it answers if it serves
 * clients. */

typedef struct rq_silence_limits {
    /* A server is given up if for this time neither a report nor an answer has come from it. The time counts only
     * while this process runs. */
    uint64_t silent_ns;
    /* A server is also given up if for this time no report has come, or no answer, though the other one still
     * comes. At least 2 × silent_ns. */
    uint64_t one_way_ns;
} rq_silence_limits;

typedef struct rq_silent_server {
    const rq_server_name *name; /* referenced for the caller */
    uint64_t unreported_ns, unanswered_ns;
    /* Its process has ended: it has closed its connections, and its address refuses new ones. It is listed at once. */
    bool has_ended;
} rq_silent_server;

typedef struct rq_silence {
    /* The servers to give up; in the arena. The caller fences them and then calls rq_remote_server_down. While this
     * process may be cut off itself (fewer than half of all servers are heard, counting the master's own as heard, or no
     * other server is), these are only servers whose processes have ended. */
    rq_silent_server *servers;
    size_t count;
    /* This process is to give up the role of the active master: too few servers were heard for `silent_ns`, or too
     * few were heard both ways for half of `one_way_ns`. Never true in a cluster of two servers, because neither
     * can tell which of the two is cut off. */
    bool is_cut_off;
} rq_silence;

/* Counts silence and sends probes. REQUIRES: this process is the active master; one thread calls this, several times
 * within `silent_ns`; a server reports three times within `silent_ns`, and calls time out within five ninths of it. */
RQ_NODISCARD
rq_err rq_remote_silent(rq_remote *m, const rq_silence_limits *limits, rq_arena *arena,
                        rq_silence *ret);

/* The server has a connection to this process, which it has proven to be its own; it has none any more. Any thread. A server
 * that has none and is not asked to end has ended if its address refuses connections. */
void rq_remote_connected(rq_remote *m, const rq_server_name *server);
void rq_remote_hung_up(rq_remote *m, const rq_server_name *server);
/* The server ends in order: it gets no more regions, and closes its connections and its port before its regions are closed. It
 * is down when it has left ZooKeeper, or is silent. */
void rq_remote_leaving(rq_remote *m, const rq_server_name *server);

/* --- servers without a lease (leases.c) ----------------------------------------------------------
 *
 * Reports say whether the server's lease on the shared storage is valid. While it is not, the server answers no client. */

typedef struct rq_leases {
    /* Servers whose leases have been expired for limits.silent_ns; in the arena, each referenced for the caller. None
     * while the master's own lease, or those of more than half of all servers, may be expired: then the storage answers
     * nobody. The caller fences them and then calls rq_remote_server_down. */
    const rq_server_name **servers;
    size_t count;
    /* A server that reports a valid lease, if the lease of this process has been expired for limits.silent_ns while most
     * other servers report valid ones; referenced for the caller. Then this process is to give up the role of the active
     * master, unless the caller finds that it does reach the storage. NULL otherwise. */
    const rq_server_name *witness;
} rq_leases;

/* `own_expired_ms`: for how long the lease of this process has been expired; 0: it is valid. REQUIRES: as for
 * rq_remote_silent, which the same thread calls as often. */
RQ_NODISCARD
rq_err rq_remote_unleased(rq_remote *m, const rq_silence_limits *limits, uint64_t own_expired_ms,
                          rq_arena *arena, rq_leases *ret);
/* The lease of this process counts as expired from now on only: no witness is named before the limit has passed again. The
 * same thread. */
void rq_remote_own_lease_counts_anew(rq_remote *m);

/* --- messages of servers, of untrusted bytes ----------------------------------------------------
 *
 * `from`: the server that has proven to be the sender. NULL: not known (a simulated network).
 * RQ_OK: the message is accepted and need not be repeated. RQ_E_DO_NOT_RETRY: the message is malformed,
 * names a sender other than `from`, or reports on an order of another master or to another server. */

/* RegionServerStartupRequest; *ret: the response, in the arena. RQ_E_HOST_REJECTED: the options say so, and a server of
 * its host is decommissioned; RQ_E_CLOCK_OUT_OF_SYNC: by more than 30 s;
 * RQ_E_YOU_ARE_DEAD: as rq_remote_server_up. REQUIRES: `from`. */
RQ_NODISCARD
rq_err rq_remote_startup(rq_remote *m, const rq_server_name *from, rq_slice request,
                         rq_arena *arena, rq_slice *ret, rq_error *why);
/* RegionServerReportRequest: its loads replace those of the server's last report. A server that is not known, because
 * this master is new, joins by it. RQ_E_YOU_ARE_DEAD: as rq_remote_server_up. */
RQ_NODISCARD
rq_err rq_remote_server_report(rq_remote *m, const rq_server_name *from, rq_slice request,
                               rq_error *why);
RQ_NODISCARD
rq_err rq_remote_transitions(rq_remote *m, const rq_server_name *from, rq_slice request,
                             rq_error *why);
RQ_NODISCARD
rq_err rq_remote_procedures_done(rq_remote *m, const rq_server_name *from, rq_slice request,
                                 rq_error *why);

#endif
