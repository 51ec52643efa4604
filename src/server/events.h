/* SPDX-License-Identifier: Apache-2.0 */
/* What a server logs about its start and stop (version, settings, recovery, the last flushes) and
 * about slow calls to the disk. */
#ifndef RQ_SERVER_EVENTS_H
#define RQ_SERVER_EVENTS_H

#include "base/log.h"
#include "region/engine.h"
#include "server/server.h"

typedef struct rq_events {
    const rq_log *log;
    rq_executor *executor;   /* the clock */
    bool is_open;            /* the server was opened; otherwise its stop is not logged */
    uint64_t begun_ns;       /* when the start began, later when the stop began */
    rq_log_limit slow_lines; /* of slow file calls */
    rq_engine_stats stats;   /* when the stop began; then what the stop has flushed */
} rq_events;

/* Logs version, process id and the settings that differ from their defaults. Call it only when the
 * folder is known to be usable: a start that fails earlier logs only its error. */
void rq__events_begin(rq_events *e, const rq_env *env, const rq_server_options *o);
/* Logs the shares of memory, the folder, and what was recovered. */
void rq__events_opened(rq_events *e, const rq_engine *engine, const rq_config *config,
                       const char *folder, bool is_new, const char *addresses);
/* Logs a slow call to the disk, at most one a second. An rq_vfs_slow; `ctx` is the rq_events. Any
 * thread. */
void rq__events_slow(void *ctx, const char *what, const char *path, uint64_t bytes, uint64_t ns);
/* Logs that the stop begins. */
void rq__events_stopping(rq_events *e, const rq_engine *engine);
/* Notes what the stop has flushed, for the last line. REQUIRES: the regions are closed. */
void rq__events_closed(rq_events *e, const rq_engine *engine);
/* Logs the server's last line. REQUIRES: the executor, whose clock it reads, is not closed yet. */
void rq__events_stopped(const rq_events *e, rq_err rc, const rq_error *why);

#endif
