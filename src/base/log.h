/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's log: one line per event, written to a file descriptor. Only the edges log
 * (services, the roots of background jobs, the command line); libraries return errors. Callable
 * from any thread.
 */
#ifndef RQ_BASE_LOG_H
#define RQ_BASE_LOG_H

#include "base/macros.h"

typedef enum rq_log_level { RQ_LOG_DEBUG, RQ_LOG_INFO, RQ_LOG_WARN, RQ_LOG_ERROR } rq_log_level;

typedef struct rq_log {
    int fd;                     /* -1: no output */
    _Atomic rq_log_level level; /* may change while other threads log */
} rq_log;

RQ_COLD
void rq_log_write(const rq_log *log, rq_log_level level, const char *room, const char *fmt, ...)
    RQ_PRINTF(4, 5);

#define rq_log_debug(log, ...) rq_log_write(log, RQ_LOG_DEBUG, __VA_ARGS__)
#define rq_log_info(log, ...) rq_log_write(log, RQ_LOG_INFO, __VA_ARGS__)
#define rq_log_warn(log, ...) rq_log_write(log, RQ_LOG_WARN, __VA_ARGS__)
#define rq_log_error(log, ...) rq_log_write(log, RQ_LOG_ERROR, __VA_ARGS__)

#endif
