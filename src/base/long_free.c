/* SPDX-License-Identifier: Apache-2.0 */
/* Frees large memory on a pool; see long_free.h. The task lies in the memory itself, so nothing is allocated. */
#include "base/long_free.h"

#include "base/asan.h"

#include <stdlib.h>

static void run_free(rq_task *task)
{
    free(task);
}

void rq_long_free(rq_executor *ex, void *p, size_t size)
{
    if (RQ_LIKELY(ex == NULL || p == NULL || size < RQ_LONG_FREE_BYTES)) {
        free(p);
        return;
    }
    rq_task *task = p;
    RQ_UNPOISON(p, sizeof *task);
    *task = (rq_task){.run = run_free};
    ex->submit(ex, RQ_LONG_FREE_POOL, task);
}

void rq_long_clear_buf(rq_executor *ex, rq_buf *b)
{
    rq_long_free(ex, b->ptr, b->cap);
    *b = (rq_buf){0};
}
