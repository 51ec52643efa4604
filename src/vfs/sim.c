/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation as a whole: one seed, files, executor, and the env made of them. */
#include "vfs/sim.h"

#include <stdlib.h>

#include "vfs/sim_priv.h"

rq_err rq_sim_new(uint64_t seed, const rq_sim_options *options, rq_sim **ret)
{
    rq_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) return RQ_E_NO_MEMORY;
    sim->seed = seed;
    if (options != NULL) sim->options = *options;
    if (sim->options.writeback_percent == 0) sim->options.writeback_percent = 5;
    rq_random_seed(&sim->user, seed ^ 0x75736572u);
    sim->log =
        (rq_log){.fd = sim->options.log_fd == 0 ? -1 : sim->options.log_fd, .level = RQ_LOG_DEBUG};
    rq_err rc = rq__sim_executor_new(sim, &sim->executor);
    if (rc == RQ_OK) rc = rq__sim_disk_new(sim, &sim->disk);
    if (rc == RQ_OK) rc = rq_epoch_new(&sim->env.epoch);
    if (rc != RQ_OK) {
        rq_sim_free(sim);
        return rc;
    }
    sim->env.vfs = rq__sim_disk_vfs(sim->disk);
    sim->env.executor = rq__sim_executor_base(sim->executor);
    sim->env.log = &sim->log;
    *ret = sim;
    return RQ_OK;
}

void rq_sim_free(rq_sim *sim)
{
    if (sim == NULL) return;
    if (sim->env.epoch != NULL) rq_epoch_free(sim->env.epoch);
    rq__sim_disk_free(sim->disk);
    rq__sim_executor_free(sim->executor);
    free(sim);
}

rq_env *rq_sim_env(rq_sim *sim)
{
    return &sim->env;
}

uint64_t rq_sim_random(rq_sim *sim)
{
    return rq_random_next(&sim->user);
}
