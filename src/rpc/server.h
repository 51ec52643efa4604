/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RPC server: HBase's protocol on a listener, and the services that answer. It knows no service
 * itself; the rooms above register tables of methods (methods.def lists what HBase has).
 *
 * Memory is bounded by a budget that the server's connections share: a request's bytes are charged
 * before they are allocated, and a connection that finds the budget spent is not read until others
 * gave back. A connection whose client does not take its answers is not read either.
 */
#ifndef RQ_RPC_SERVER_H
#define RQ_RPC_SERVER_H

#include "net/budget.h"
#include "net/loop.h"
#include "rpc/call.h"

typedef struct rq_rpc_server rq_rpc_server;

#define RQ_RPC_ADDRESSES_MAX 8

/* A service as the connection header names it, e.g. "ClientService". The tables must outlive the
 * server. */
typedef struct rq_rpc_service {
    const char *name;
    const rq_rpc_method *methods;
    size_t method_count;
    void *ctx; /* given to every handler */
    /* A decoder quicker than protobuf-c's for some requests; NULL, or when it answers NULL:
     * protobuf-c decodes. Its bytes may point into the frame, which stays as long as the call. */
    ProtobufCMessage *(*unpack)(const ProtobufCMessageDescriptor *type,
                                ProtobufCAllocator *allocator, rq_slice bytes);
    /* A hint, NULL if of no use: these requests' messages, not looked at yet and of whatever
     * methods, have come together, and are about to be handled one after another. */
    void (*expect)(void *ctx, const rq_slice *messages, size_t count);
    /* A connection has closed whose rq_call_connection_state the service had set. On its loop;
     * calls that were begun may still be at work. NULL if of no use. */
    void (*closed)(void *ctx, void *state);
} rq_rpc_service;

#define RQ_RPC_REQUEST_BYTES_MAX ((size_t)256 << 20) /* hbase.ipc.max.request.size */
#define RQ_RPC_MIN_TIMEOUT_MS 20                     /* hbase.ipc.min.client.request.timeout */

/* Zero means the default where one is named. */
typedef struct rq_rpc_server_options {
    rq_loops *loops;
    rq_executor *executor; /* for what would hold a loop: RQ_POOL_CODEC; NULL: all on the loops */
    rq_budget *budget;     /* outlives the server; one request may go over it */
    rq_budget *answers;    /* of large answers while they are made … */
    rq_budget *unread;     /* … and until the peers have read them; either may be NULL */
    const char *const *addresses;   /* numeric; the first is named in errors; read during open */
    unsigned address_count;         /* 0: 127.0.0.1 alone */
    uint16_t port;                  /* on all of them; 0: any free one, of one address */
    const rq_rpc_service *services; /* copied; the tables inside are not */
    size_t service_count;
    const char *cluster_id;   /* what the preamble `Regist` is answered with; copied; NULL: none */
    size_t request_bytes_max; /* RQ_RPC_REQUEST_BYTES_MAX */
    uint32_t min_timeout_ms;  /* RQ_RPC_MIN_TIMEOUT_MS */
    size_t out_bytes_max;     /* unread answers after which a connection is not read: 4 MiB */
    unsigned connections_max; /* 0: no limit */
    const rq_log *log;        /* may be NULL */
} rq_rpc_server_options;

/* Listens and serves from now on. Errors as rq_listener_open. */
RQ_NODISCARD
rq_err rq_rpc_server_open(const rq_rpc_server_options *options, rq_rpc_server **ret, rq_error *why);
uint16_t rq_rpc_server_port(const rq_rpc_server *s);

/* Accepts no more connections; calls that arrive from now on get RegionServerStoppedException.
 * Returns when no call is in flight and the answers are handed to the kernel, or after
 * `timeout_ms`; true when everything was finished. Not from a loop's thread. */
bool rq_rpc_server_drain(rq_rpc_server *s, unsigned timeout_ms);
/* Closes the connections and waits until the last call has ended. Not from a loop's thread. */
void rq_rpc_server_close(rq_rpc_server *s);

/* Counters for metrics; any thread, not a consistent snapshot. */
typedef struct rq_rpc_stats {
    uint64_t calls;      /* dispatched */
    uint64_t exceptions; /* answered with an exception, by handlers or by this room */
    uint64_t dropped;    /* ended without an answer: deadline, disconnected */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t refused; /* preambles, headers and frames that closed a connection */
    uint64_t calls_in_flight;
    uint64_t connections;
} rq_rpc_stats;

rq_rpc_stats rq_rpc_server_stats(const rq_rpc_server *s);

/* Logs the calls in flight: method, user, peer, age. Each loop writes of its own; one that has not done
 * so after `wait_ms` is named. `name` lives for ever. REQUIRES: the loops run; not on a loop, and not
 * while the server closes. */
void rq_rpc_server_report(rq_rpc_server *s, const char *name, const rq_log *log, unsigned wait_ms);

#endif
