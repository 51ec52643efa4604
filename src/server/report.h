/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is doing, line by line as in the log: for SIGQUIT to the log, for the page /stacks to a file. */
#ifndef RQ_SERVER_REPORT_H
#define RQ_SERVER_REPORT_H

#include "base/log.h"
#include "catalog/catalog.h"
#include "rpc/server.h"

typedef struct rq_report_sources {
    const rq_log *log; /* NULL: none */
    rq_loops *loops;
    rq_rpc_server *master, *rs;
    rq_executor *executor;
    rq_catalog *catalog;
} rq_report_sources;

/* Logged whatever the log's level is. Do not call it on a loop. */
void rq__report_write(const rq_report_sources *from);

#endif
