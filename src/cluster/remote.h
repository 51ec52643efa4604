/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's side: the table of calls (host/calls.h) whose servers are other processes.
 *
 *   send ─► ExecuteProcedures to each server, again and again until it has been accepted
 *   ReportRegionStateTransition, ReportProcedureDone ─► the call with that number reports
 *   the server is down ─► its calls report RQ_E_SERVER_NOT_RUNNING
 *   nothing is heard of it ─► ExecuteProcedures without orders, which it answers if it serves
 *
 * A message may be lost, or arrive twice: numbers of calls are never reused, and a repeated report
 * is accepted and changes nothing.
 */
#ifndef RQ_CLUSTER_REMOTE_H
#define RQ_CLUSTER_REMOTE_H

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
    /* The server in the master's process. It takes all regions of the namespace hbase, because the master reads
     * their rows directly. NULL: they go anywhere. Borrowed. */
    const rq_server_name *home;
    /* Where the region is open by the storage, referenced: it is opened again there, if that server is up, and
     * stays as it is. NULL is returned if it is nowhere; the callee has fenced a server that had it and is not up.
     * Called by `place`; blocks. NULL: nothing is known, as in tests without storage. */
    const rq_server_name *(*owner)(void *ctx, const rq_region_info *info);
    /* A server has joined at the address of `old`, which therefore has ended. The callee fences `old` and then
     * reports that it is down. Any thread, must not block; NULL: nobody is told. */
    void (*replaced)(void *ctx, const rq_server_name *old);
    /* A server has closed all its connections to this master: rq_remote_silent is to be called soon. Any thread, must not
     * block; NULL: nobody is told. */
    void (*hung_up)(void *ctx);
    /* A server is to drain, or not any more (rq_region_calls.drain): it is kept on storage, for the next master. Blocks; an
     * error refuses the change. NULL: it is not kept. */
    rq_err (*keep_draining)(void *ctx, const rq_server_name *server, bool drains, rq_error *why);
    void *ctx;
} rq_remote_options;

RQ_NODISCARD
rq_err rq_remote_new(const rq_remote_options *options, rq_remote **ret);
/* The table of calls; valid as long as the object. REQUIRES before rq_remote_free: its stop was
 * called, and no message is outstanding. */
rq_region_calls rq_remote_calls(rq_remote *m);
/* NULL is fine. */
void rq_remote_free(rq_remote *m);

/* A server has joined and can take regions. May be repeated. RQ_E_YOU_ARE_DEAD: it was said to be down, or
 * a later server is up at its address. `why` may be NULL. */
RQ_NODISCARD
rq_err rq_remote_server_up(rq_remote *m, const rq_server_name *server, rq_error *why);
/* The server is dead and fenced: its outstanding calls end, and it is not taken again. Any thread. */
void rq_remote_server_down(rq_remote *m, const rq_server_name *server);
/* Whether it has joined, and has not been said to be down. Any thread. */
bool rq_remote_is_up(rq_remote *m, const rq_server_name *server);
/* The names of servers that are up, at most `max`, any of them; referenced for the caller, in the
 * arena. *ret_total: how many are up. */
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
 * Both ways are counted: how long no report of a server has come, and for how long it has answered nothing. A server
 * that has not answered for a quarter of the limit gets a message without orders, which it answers if it serves. */

typedef struct rq_silence_limits {
    /* A server is given up that was not heard at all for this time, of this process's running time … */
    uint64_t silent_ns;
    /* … or, if one way still works, of which the other way has not worked for this time; at least twice as long. */
    uint64_t one_way_ns;
} rq_silence_limits;

typedef struct rq_silent_server {
    const rq_server_name *name; /* referenced for the caller */
    uint64_t unreported_ns, unanswered_ns;
    /* Its process has ended: it has closed its connections, and its address refuses new ones. It is listed at once. */
    bool has_ended;
} rq_silent_server;

typedef struct rq_silence {
    /* In the arena. The caller fences them and then reports them down. While this process may be cut off itself, none but those
     * that have ended: while fewer than half of all servers, the master's included, are heard, or none but the master's. */
    rq_silent_server *servers;
    size_t count;
    /* Too few were heard for `silent_ns`, or both ways for half of `one_way_ns`, so this process is to leave the place to another one. Never in a
     * cluster of two servers: neither can tell which of the two is cut off. */
    bool is_cut_off;
} rq_silence;

/* REQUIRES: this process is the active master; one thread, which calls it several times within the limits. A server reports three
 * times within `silent_ns`, and calls time out within five ninths of it. */
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

/* --- messages of servers, of untrusted bytes ----------------------------------------------------
 *
 * `from`: the server that has proven to be the sender. NULL: not known (a simulated network).
 * RQ_OK: the message is accepted and need not be repeated. RQ_E_DO_NOT_RETRY: the message is malformed,
 * names a sender other than `from`, or reports on an order of another master or to another server. */

/* RegionServerStartupRequest; *ret: the response, in the arena. RQ_E_CLOCK_OUT_OF_SYNC: by more than 30 s;
 * RQ_E_YOU_ARE_DEAD: as rq_remote_server_up. REQUIRES: `from`. */
RQ_NODISCARD
rq_err rq_remote_startup(rq_remote *m, const rq_server_name *from, rq_slice request,
                         rq_arena *arena, rq_slice *ret, rq_error *why);
/* RegionServerReportRequest: its loads replace those of the server's last report. A server that is not
 * known, because this master is new, is up from then on. RQ_E_YOU_ARE_DEAD: as rq_remote_server_up. */
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
