/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP port: pages for people, metrics for monitors, health checks. Read-only, without
 * authentication; only GET and HEAD.
 *
 * It runs on a thread of its own (libevent), and no event loop waits for it. Health checks are
 * answered from rq_http_open on: while a start replays the log, /health/ready returns 503. The
 * other pages are served between rq_http_serve and rq_http_withdraw, and return 503 before and
 * after.
 *
 * The resources that peers can use are bounded: connections and their memory, the bytes of unread
 * responses (at the limit large pages return 503), and the time for one request and its response.
 */
#ifndef RQ_HTTP_HTTP_H
#define RQ_HTTP_HTTP_H

#include "base/config.h"
#include "base/env.h"
#include "metrics/metrics.h"
#include "ops/ops.h"
#include "rpc/server.h"

typedef struct rq_http rq_http;

/* The highest number of connections. A further one closes a connection of the host that has the most: the one that has
 * been idle for longest, counted from its beginning or from when its last response was read. */
#define RQ_HTTP_CONNECTIONS 64
/* Longest time from a connection's beginning, or its last response, to the end of the next
 * response. */
#define RQ_HTTP_DEADLINE_MS 60000
/* Longest time without a byte sent or received. */
#define RQ_HTTP_IDLE_S 20
/* Limit of the bytes of pages that peers have not read; one page may exceed it. */
#define RQ_HTTP_UNREAD_BYTES ((size_t)16 << 20)

typedef struct rq_http_options {
    int fd;                  /* a listening socket; taken over, also on an error */
    rq_executor *executor;   /* makes the HTTP thread, a lane */
    const rq_log *log;       /* may be NULL */
    const rq_config *config; /* what /conf shows; outlives it */
    const char *version;     /* static */
    unsigned deadline_ms;    /* 0: RQ_HTTP_DEADLINE_MS */
    size_t unread_bytes_max; /* 0: RQ_HTTP_UNREAD_BYTES */
} rq_http_options;

/* The objects that pages show. All borrowed until rq_http_withdraw has returned. */
typedef struct rq_http_sources {
    const rq_env *env;
    const rq_server_name *server;
    rq_engine *engine;
    rq_catalog *catalog; /* NULL: a server of a cluster that is not its master */
    rq_ops *ops;
    rq_rpc_server *master, *rs; /* `master` is NULL without a catalog */
    rq_metrics *metrics;
    rq_slow_log *slow;
    const char *folder; /* the data folder, or a cluster's store */
    bool is_member;     /* of a cluster: there are regions on other servers */
    /* Writes what threads and calls are doing to a file, line by line. */
    void (*report)(void *ctx, int fd);
    void *report_ctx;
} rq_http_sources;

RQ_NODISCARD
rq_err rq_http_open(const rq_http_options *o, rq_http **ret, rq_error *why);
/* Starts to serve all pages, or serves them from other objects, while the former ones live on. `from` is copied. */
void rq_http_serve(rq_http *h, const rq_http_sources *from);
/* Ends serving of all pages except health checks; returns when no page is being made. May be called
 * twice; NULL is fine. */
void rq_http_withdraw(rq_http *h);
/* Ends the thread and closes all connections. NULL is fine. */
void rq_http_close(rq_http *h);

#endif
