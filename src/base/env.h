/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine is given instead of reaching for it: files, time, chance, threads. */
#ifndef RQ_BASE_ENV_H
#define RQ_BASE_ENV_H

#include "base/epoch.h"
#include "base/executor.h"
#include "base/log.h"

struct rq_vfs; /* vfs/vfs.h */

typedef struct rq_env {
    struct rq_vfs *vfs;
    rq_executor *executor;
    rq_epoch *epoch;
    rq_log *log;
} rq_env;

#endif
