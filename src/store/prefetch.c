/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetching (prefetch.h): one task that resubmits itself until the file is read. */
#include "store/prefetch.h"

#include "base/macros.h"

#include <stdlib.h>

#define STEP_BYTES ((uint64_t)4 << 20)

typedef struct job {
    rq_task task;
    rq_env env;
    rq_prefetch what;
    rq_hfile_reader *reader; /* a reference */
    uint64_t position;
} job;

static void end(job *j)
{
    _Atomic uint64_t *alive = j->what.alive;
    rq_hfile_reader_unref(j->reader);
    free(j);
    atomic_fetch_sub(alive, 1);
}

static void run(rq_task *task)
{
    job *j = RQ_CONTAINER_OF(task, job, task);
    rq_error why = {0};
    if (rq_hfile_reader_is_unused(j->reader) ||
        (!j->what.in_memory && !rq_block_cache_has_room(j->what.cache, STEP_BYTES))) {
        end(j);
        return;
    }
    rq_err rc = rq_hfile_reader_warm(j->reader, RQ_WARM_ALL, STEP_BYTES, &j->position, &why);
    if (rc == RQ_OK) {
        j->env.executor->submit(j->env.executor, RQ_POOL_WORK, &j->task);
        return;
    }
    /* An error is not reported here: a read that needs the block gets it too. */
    if (rc != RQ_E_END)
        rq_log_warn(j->env.log, "store", "prefetch of %s stopped: %s %s",
                    rq_hfile_reader_path(j->reader), rq_err_text(rc), why.message);
    end(j);
}

void rq__prefetch_start(const rq_prefetch *p, rq_hfile_reader *reader)
{
    job *j = calloc(1, sizeof *j);
    if (j == NULL) return;
    *j = (job){.task.run = run, .env = *p->env, .what = *p};
    j->reader = rq_hfile_reader_ref(reader);
    atomic_fetch_add(p->alive, 1);
    j->env.executor->submit(j->env.executor, RQ_POOL_WORK, &j->task);
}
