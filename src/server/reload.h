/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that change without a restart: reads them again, applies them, and notifies the rooms
 * that keep copies. */
#ifndef RQ_SERVER_RELOAD_H
#define RQ_SERVER_RELOAD_H

#include "base/config.h"
#include "base/log.h"
#include "ops/ops.h"
#include "quota/quota.h"
#include "region/engine.h"
#include "server/server.h"
#include "service/service.h"
#include "vfs/vfs.h"

#include <pthread.h>

typedef struct rq_reload {
    rq_log *log;
    rq_config *config;
    rq_vfs *vfs;           /* NULL: of a cluster's server, which logs slow appends by itself */
    rq_executor *executor; /* whose threads' statistics depend on settings */
    rq_engine *engine;
    rq_ops *ops;
    rq_client_service *client;
    rq_slow_log *slow;
    rq_quotas *quotas;                                           /* NULL: there are none */
    rq_err (*reread)(void *ctx, rq_config **ret, rq_error *why); /* NULL: nothing to read again */
    void *ctx;
    pthread_mutex_t lock; /* one reload at a time */
} rq_reload;

/* Sets the log's level and format from the configuration. `log` may be NULL. */
void rq__log_configure(rq_log *log, const rq_config *c);
/* The duration above which a write or sync is logged as slow. */
uint64_t rq__slow_ns_of(const rq_config *c);
/* Reads the settings again and applies them. If they cannot be read or are refused, no setting has
 * changed; after RQ_E_NO_MEMORY some settings may have changed. Reads files: do not call it on a
 * loop. */
RQ_NODISCARD
rq_err rq__reload_run(rq_reload *r, rq_error *why);

#endif
