/* SPDX-License-Identifier: Apache-2.0 */
/* What threads beside the main one block: every signal except those that say that the thread itself
 * failed. Blocked, these end the process without a word, a sanitizer's report included. */
#ifndef RQ_BASE_SIGNALS_H
#define RQ_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

static inline void rq_thread_signals(sigset_t *ret)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigfillset(ret);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(ret, faults[i]);
}

#endif
