/* SPDX-License-Identifier: Apache-2.0 */
/* Logs crashes (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL): the signal, a backtrace and the current
 * request. The process then ends by the same signal, with a core file if the system is set up for
 * one. */
#ifndef RQ_CLI_CRASH_H
#define RQ_CLI_CRASH_H

#include "base/log.h"

/* Installs the signal handlers. Call it once, before other threads are started; `log` and `version`
 * must live until the process ends. Does nothing under AddressSanitizer and ThreadSanitizer, which
 * report crashes themselves. */
void rq__crash_watch(const rq_log *log, const char *version);

#endif
