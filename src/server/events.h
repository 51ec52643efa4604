/* SPDX-License-Identifier: Apache-2.0 */
/* What a server logs of its own life: what it starts with, what it found, how slow its disk is, what
 * it did before it stopped. */
#ifndef RQ_SERVER_EVENTS_H
#define RQ_SERVER_EVENTS_H

#include "base/log.h"
#include "region/engine.h"
#include "server/server.h"

typedef struct rq_events {
    const rq_log *log;
    rq_executor *executor;        /* the clock */
    bool is_open;                 /* opened; only then is the stop told */
    uint64_t begun_ns;            /* of the start, then of the stop */
    _Atomic uint64_t slow_second; /* the last one in which a slow disk was logged */
    _Atomic uint64_t slow_more;   /* slow calls since, which were not */
    rq_engine_stats stats;        /* at the beginning of the stop */
} rq_events;

/* Version, process and the settings that differ from their defaults. Not before it is certain that
 * the folder can be served: a start that is refused is told in one line. */
void rq__events_begin(rq_events *e, const rq_env *env, const rq_server_options *o);
/* The memory's shares, the folder, and what was recovered. */
void rq__events_opened(rq_events *e, const rq_engine *engine, const rq_config *config,
                       const char *folder, bool is_new, const char *addresses);
/* An rq_vfs_slow; `ctx` is the rq_events. At most a line a second. Any thread. */
void rq__events_slow(void *ctx, const char *what, const char *path, uint64_t bytes, uint64_t ns);
/* The stop begins. */
void rq__events_stopping(rq_events *e, const rq_engine *engine);
/* The regions are closed: what the stop has written. */
void rq__events_closed(rq_events *e, const rq_engine *engine);
/* The last line. REQUIRES: the executor still is. */
void rq__events_stopped(const rq_events *e, rq_err rc, const rq_error *why);

#endif
