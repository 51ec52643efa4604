/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP port: pages for people, figures for monitors, answers for health checks. Read only, without
 * authentication. GET and HEAD alone.
 *
 * It runs on a thread of its own (libevent), and no event loop waits for it. It answers health
 * checks from rq_http_open on: while a start replays the log, /health/ready says 503. The other pages
 * have something to show between rq_http_serve and rq_http_withdraw, and answer 503 outside.
 *
 * What a peer can cost is bounded: connections, their memory, the bytes of answers that are not read yet
 * (beyond them large pages are 503), and the time for one request and answer.
 */
#ifndef RQ_HTTP_HTTP_H
#define RQ_HTTP_HTTP_H

#include "base/config.h"
#include "base/env.h"
#include "metrics/metrics.h"
#include "ops/ops.h"
#include "rpc/server.h"

typedef struct rq_http rq_http;

/* Connections at once. For each that comes beyond it, the one is closed whose last answer was read, or
 * which began, longest ago. */
#define RQ_HTTP_CONNECTIONS 64
/* From a connection's begin, or its last answer, to the end of the next. */
#define RQ_HTTP_DEADLINE_MS 60000
/* Without a byte either way. */
#define RQ_HTTP_IDLE_S 20
/* Bytes of pages that peers have not read; one page may go over it. */
#define RQ_HTTP_UNREAD_BYTES ((size_t)16 << 20)

typedef struct rq_http_options {
    int fd;                  /* a listening socket; taken over, also on an error */
    rq_executor *executor;   /* its lane is the thread */
    const rq_log *log;       /* may be NULL */
    const rq_config *config; /* what /conf shows; outlives it */
    const char *version;     /* static */
    unsigned deadline_ms;    /* 0: RQ_HTTP_DEADLINE_MS */
    size_t unread_bytes_max; /* 0: RQ_HTTP_UNREAD_BYTES */
} rq_http_options;

/* What pages show. All borrowed until rq_http_withdraw has returned. */
typedef struct rq_http_sources {
    const rq_env *env;
    rq_engine *engine;
    rq_catalog *catalog;
    rq_ops *ops;
    rq_rpc_server *master, *rs;
    rq_metrics *metrics;
    rq_slow_log *slow;
    const char *folder; /* the data folder */
    /* Writes what threads and calls are doing to a file, line by line. */
    void (*report)(void *ctx, int fd);
    void *report_ctx;
} rq_http_sources;

RQ_NODISCARD
rq_err rq_http_open(const rq_http_options *o, rq_http **ret, rq_error *why);
/* From now on there is something to show. `from` is copied. */
void rq_http_serve(rq_http *h, const rq_http_sources *from);
/* There is nothing to show any more; returns when no page is being made. NULL, and twice, is fine. */
void rq_http_withdraw(rq_http *h);
/* Ends the thread and closes all connections. NULL is fine. */
void rq_http_close(rq_http *h);

#endif
