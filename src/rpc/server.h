/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RPC server: HBase's protocol on a listener. It knows no service itself; the rooms above
 * register tables of methods (methods.def lists the methods of HBase).
 *
 * Memory is bounded by a budget shared by the server's connections. A request's bytes are charged
 * before they are allocated, and a connection that finds the budget used up is not read until
 * others have released bytes. A connection whose client does not read its responses is not read
 * either.
 */
#ifndef RQ_RPC_SERVER_H
#define RQ_RPC_SERVER_H

#include "base/histogram.h"
#include "net/budget.h"
#include "net/loop.h"
#include "net/stream.h"
#include "rpc/call.h"

typedef struct rq_rpc_server rq_rpc_server;

#define RQ_RPC_ADDRESSES_MAX 8

/* No limit of a parameter is below this. */
#define RQ_RPC_PARAM_SHORT ((size_t)64 * 1024)

typedef struct rq_rpc_param_limit {
    const char *method;
    size_t max; /* SIZE_MAX: none */
} rq_rpc_param_limit;

/* A service as named in the connection header, e.g. "ClientService". The tables must outlive the
 * server. */
typedef struct rq_rpc_service {
    const char *name;
    const rq_rpc_method *methods;
    size_t method_count;
    void *ctx; /* passed to every handler */
    /* Longest parameter, in bytes; a longer one is refused before it is decoded. A handler that
     * walks lists of its request on the loop needs a limit. 0: the frame's length alone is limited. */
    size_t param_max;
    const rq_rpc_param_limit *param_limits; /* of methods that have another one */
    size_t param_limit_count;
    /* A decoder for some requests that is faster than protobuf-c's. NULL, or a NULL result:
     * protobuf-c decodes. The message may point into the frame, which lives as long as the call. */
    ProtobufCMessage *(*unpack)(const ProtobufCMessageDescriptor *type,
                                ProtobufCAllocator *allocator, rq_slice bytes);
    /* A hint, may be NULL: these requests arrived together and will be handled one after
     * another. Their messages are not yet checked, and may be of different methods. */
    void (*expect)(void *ctx, const rq_slice *messages, size_t count);
    /* Describes a call, whose param is decoded, for the slow log. Runs on the thread that works on
     * the call. NULL: records have no text. */
    void (*describe)(const rq_call *call, rq_call_text *ret);
    /* Called when a connection has closed whose rq_call_connection_state is set. On its loop;
     * calls may still be running. May be NULL. */
    void (*closed)(void *ctx, void *state);
    /* Called when a call of a known method ends, before its request is released, for the audit log.
     * `response` is NULL if the handler packed the response itself or the call failed; `failure`
     * then describes the exception, or that no response is sent. On the call's loop. May be
     * NULL. */
    void (*ended)(void *ctx, const rq_call *call, const ProtobufCMessage *response,
                  const rq_rpc_exception *failure);
    /* Responses are not held while the server's lease is expired (net/answers.h): they contain nothing read from
     * regions, and acknowledge no writes. A call may be an exception (rq_call_hold_answers). */
    bool answers_always;
} rq_rpc_service;

/* SIZE_MAX: no limit. */
static inline size_t rq__rpc_param_max(const rq_rpc_service *s, const char *method)
{
    for (size_t i = 0; i < s->param_limit_count; i++)
        if (strcmp(s->param_limits[i].method, method) == 0) return s->param_limits[i].max;
    return s->param_max != 0 ? s->param_max : SIZE_MAX;
}

#define RQ_RPC_REQUEST_BYTES_MAX ((size_t)256 << 20) /* hbase.ipc.max.request.size */
#define RQ_RPC_MIN_TIMEOUT_MS 20                     /* hbase.ipc.min.client.request.timeout */

/* Zero selects the default where one is given. */
typedef struct rq_rpc_server_options {
    rq_loops *loops;
    rq_executor *executor; /* its pools do work that would hold a loop (rq_call_work); NULL: none */
    rq_budget *budget;     /* must outlive the server; one request may exceed it */
    rq_budget *answers;    /* for large responses being made … */
    rq_budget *unread;     /* … and for unread responses; either may be NULL */
    const char *const *addresses;   /* numeric; the first is named in errors; read during open */
    unsigned address_count;         /* 0: 127.0.0.1 alone */
    uint16_t port;                  /* on all of them; 0: any free one, for one address only */
    const rq_rpc_service *services; /* copied; the tables inside are not */
    size_t service_count;
    const char *cluster_id;   /* the response to the preamble `Regist`; copied; NULL: none */
    size_t request_bytes_max; /* RQ_RPC_REQUEST_BYTES_MAX */
    uint32_t min_timeout_ms;  /* RQ_RPC_MIN_TIMEOUT_MS */
    size_t out_bytes_max;     /* unread bytes at which a connection is not read: 4 MiB */
    unsigned connections_max; /* 0: no limit */
    const rq_transform_kind *transform; /* below every connection (net/transform.h); NULL: none */
    const rq_log *log;                  /* may be NULL */
    rq_slow_log *slow;                  /* where slow and large calls are noted; may be NULL */
    const char *name;                   /* in its records: HBase's class, "HRegionServer"; static */
} rq_rpc_server_options;

/* Opens the server, which listens from now on. Errors as rq_listener_open. */
RQ_NODISCARD
rq_err rq_rpc_server_open(const rq_rpc_server_options *options, rq_rpc_server **ret, rq_error *why);
uint16_t rq_rpc_server_port(const rq_rpc_server *s);
/* One of its listeners, for connections in memory (net/memory.h); valid until the server closes. */
rq_listener *rq_rpc_server_listener(rq_rpc_server *s);

/* Accepts no more connections; new calls get RegionServerStoppedException. Returns true when no
 * call is in flight and all responses were taken by the kernel, false after `timeout_ms`. Not
 * from a loop's thread. */
bool rq_rpc_server_drain(rq_rpc_server *s, unsigned timeout_ms);
/* Closes the connections and waits until the last call has ended. Not from a loop's thread. */
void rq_rpc_server_close(rq_rpc_server *s);

/* Counters. Any thread; not a consistent snapshot. */
typedef struct rq_rpc_stats {
    uint64_t calls;      /* dispatched */
    uint64_t exceptions; /* ended with an exception, from a handler or from this room */
    uint64_t dropped;    /* ended without a response: deadline, disconnected */
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t refused; /* preambles, headers and frames that closed a connection */
    uint64_t calls_in_flight;
    uint64_t connections;
} rq_rpc_stats;

rq_rpc_stats rq_rpc_server_stats(const rq_rpc_server *s);
/* Counts of the calls passed to handlers, by method, and of the exceptions sent, by Java class (a
 * class may be passed several times; beyond 48 classes per loop exceptions are counted only in
 * rq_rpc_stats). `each` runs on the calling thread, also for methods without
 * calls. Any thread. */
void rq_rpc_server_each_method(const rq_rpc_server *s,
                               void (*each)(void *ctx, const char *service, const char *method,
                                            uint64_t calls),
                               void *ctx);
void rq_rpc_server_each_error(const rq_rpc_server *s,
                              void (*each)(void *ctx, const char *java_class, uint64_t count),
                              void *ctx);
/* Adds histograms of all calls' durations, estimated from a sample: from the read of the request to
 * the start of its handling, from there to the response, and in total. Any thread. */
void rq_rpc_server_times(const rq_rpc_server *s, rq_times_sum *queue, rq_times_sum *process,
                         rq_times_sum *total);

/* A call in flight, as it was when its loop was asked. Times by the monotonic clock. */
typedef struct rq_rpc_call_info {
    unsigned loop;
    uint32_t id;
    const char *method; /* static */
    char user[64];      /* cut */
    char host[46];
    uint16_t port;
    uint32_t request_bytes;
    uint64_t received_ns, started_ns;
    bool waits_for_memory; /* for its answer */
} rq_rpc_call_info;

/* A connection that is not read now, or that has sent a part of a request. */
typedef struct rq_rpc_conn_info {
    unsigned loop;
    char host[46];
    uint16_t port;
    bool paused;
    unsigned blocked; /* reasons why it is not read; 0: it is */
    unsigned calls;
    size_t unread_bytes;   /* of responses */
    size_t received_bytes; /* of requests that have not begun … */
    size_t request_bytes;  /* … and the length of the first of them if it is large, else 0 */
} rq_rpc_conn_info;

/* The calls in flight, at most RQ_RPC_CALLS_LISTED of each loop, and the connections that wait, at
 * most RQ_RPC_CONNS_LISTED of each loop. */
#define RQ_RPC_CALLS_LISTED 256
#define RQ_RPC_CONNS_LISTED 64
typedef struct rq_rpc_calls {
    rq_rpc_call_info *calls; /* NULL without memory */
    size_t count;
    rq_rpc_conn_info *conns; /* NULL without memory */
    size_t conn_count;
    unsigned silent_loops; /* that did not answer in time */
} rq_rpc_calls;

/* Collects the calls in flight from all loops; waits at most `wait_ms`. The caller frees the result
 * by rq_rpc_calls_free. REQUIRES: the loops run, and the server is not closing. Not on a loop. */
void rq_rpc_server_calls(rq_rpc_server *s, unsigned wait_ms, rq_rpc_calls *ret);
void rq_rpc_calls_free(rq_rpc_calls *list);
/* Logs the calls in flight with method, user, peer and age, the connections that wait with the
 * reason, the memory of requests and responses, and the number of loops that did not reply in time.
 * REQUIRES: as rq_rpc_server_calls. */
void rq_rpc_server_report(rq_rpc_server *s, const char *name, const rq_log *log, unsigned wait_ms);

#endif
