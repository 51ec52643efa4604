/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says when the process crashes (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL): the signal,
 * a backtrace and the request in hand. The process then ends by the same signal, with a core where
 * the system makes one. */
#ifndef RQ_CLI_CRASH_H
#define RQ_CLI_CRASH_H

#include "base/log.h"

/* From now on, for all threads. `log` and `version` live until the process ends. Before threads are
 * started; once. Under AddressSanitizer and ThreadSanitizer, which report by themselves, nothing. */
void rq__crash_watch(const rq_log *log, const char *version);

#endif
