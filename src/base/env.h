/* SPDX-License-Identifier: Apache-2.0 */
/* The environment the engine is given: files, time, random numbers and threads. The engine uses
 * no others. */
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
