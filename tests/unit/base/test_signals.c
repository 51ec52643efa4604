/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks of threads: all signals are blocked except faults. */
#include "unit.h"

#include "base/executor.h"

#include <signal.h>

typedef struct blocked {
    rq_task task;
    sigset_t mask;
} blocked;

static void blocked_run(rq_task *task)
{
    blocked *b = RQ_CONTAINER_OF(task, blocked, task);
    pthread_sigmask(SIG_SETMASK, NULL, &b->mask);
}

/* If SIGSEGV is blocked, the process ends before a sanitizer or debugger learns of it. */
static void threads_block_all_signals_but_their_own_faults(void **state)
{
    (void)state;
    const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1};
    rq_executor *ex;
    blocked b = {.task.run = blocked_run};
    assert_int_equal(rq_thread_executor_new(threads, &ex), RQ_OK);
    ex->submit(ex, RQ_POOL_WORK, &b.task);
    rq_thread_executor_free(ex);
    assert_true(sigismember(&b.mask, SIGTERM));
    assert_true(sigismember(&b.mask, SIGPIPE));
    assert_false(sigismember(&b.mask, SIGSEGV));
    assert_false(sigismember(&b.mask, SIGBUS));
    assert_false(sigismember(&b.mask, SIGABRT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_block_all_signals_but_their_own_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
