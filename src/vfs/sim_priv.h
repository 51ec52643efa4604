/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation's two halves: the disk (sim_disk_priv.h) and sim_executor.c (tasks, clock). */
#ifndef RQ_VFS_SIM_PRIV_H
#define RQ_VFS_SIM_PRIV_H

#include "base/random.h"
#include "vfs/sim.h"

typedef struct sim_disk sim_disk;
typedef struct sim_executor sim_executor;

struct rq_sim {
    rq_env env;
    rq_sim_options options;
    rq_log log;
    uint64_t seed;
    rq_random user;
    sim_disk *disk;
    sim_executor *executor;
};

/* --- files: vfs is the first member of sim_disk --- */
RQ_NODISCARD rq_err rq__sim_disk_new(rq_sim *sim, sim_disk **ret);
void rq__sim_disk_free(sim_disk *d);
rq_vfs *rq__sim_disk_vfs(sim_disk *d);

/* --- tasks: rq_executor is the first member of sim_executor --- */
RQ_NODISCARD rq_err rq__sim_executor_new(rq_sim *sim, sim_executor **ret);
void rq__sim_executor_free(sim_executor *ex);
rq_executor *rq__sim_executor_base(sim_executor *ex);
/* Advances the clock by the time of a file operation. */
void rq__sim_executor_tick(sim_executor *ex, uint64_t ns);
/* REQUIRES: nothing queued or running. Drops armed timers. */
void rq__sim_executor_reset(sim_executor *ex);

#endif
