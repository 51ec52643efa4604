/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in parallel.h. */
#include "base/parallel.h"

#include "base/macros.h"

#include <stdatomic.h>
#include <stdlib.h>

#define HELPERS_MAX 8

typedef struct job {
    size_t count;
    void (*fn)(void *ctx, size_t i);
    void *ctx;
    _Atomic size_t next, done;
    _Atomic unsigned refs; /* the caller and every helper */
    rq_latch all_done;
    rq_executor *executor;
    struct helper {
        rq_task task;
        struct job *job;
    } helpers[HELPERS_MAX];
} job;

static void job_unref(job *j)
{
    if (atomic_fetch_sub(&j->refs, 1) != 1) return;
    j->executor->latch_destroy(&j->all_done);
    free(j);
}

static void job_work(job *j)
{
    size_t i;
    while ((i = atomic_fetch_add(&j->next, 1)) < j->count) {
        j->fn(j->ctx, i);
        if (atomic_fetch_add(&j->done, 1) + 1 == j->count)
            j->executor->latch_open(&j->all_done, RQ_OK);
    }
}

static void helper_run(rq_task *task)
{
    struct helper *h = RQ_CONTAINER_OF(task, struct helper, task);
    job *j = h->job;
    job_work(j);
    job_unref(j);
}

void rq_parallel(rq_executor *ex, size_t count, void (*fn)(void *ctx, size_t i), void *ctx)
{
    job *j = count < 2 ? NULL : calloc(1, sizeof *j);
    if (j == NULL) {
        for (size_t i = 0; i < count; i++)
            fn(ctx, i);
        return;
    }
    size_t helpers = count - 1 < HELPERS_MAX ? count - 1 : HELPERS_MAX;
    *j = (job){.count = count, .fn = fn, .ctx = ctx, .executor = ex};
    atomic_init(&j->refs, (unsigned)helpers + 1);
    j->executor->latch_init(j->executor, &j->all_done);
    for (size_t i = 0; i < helpers; i++) {
        j->helpers[i].job = j;
        j->helpers[i].task = (rq_task){.run = helper_run};
        j->executor->submit(j->executor, RQ_POOL_WORK, &j->helpers[i].task);
    }
    job_work(j);
    (void)j->executor->latch_wait(&j->all_done); /* always opened with RQ_OK */
    job_unref(j);
}
