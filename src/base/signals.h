/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that all threads except the main one block: every signal except those for faults
 * of the thread itself. A blocked fault signal would end the process without a message or a
 * sanitizer's report. */
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
