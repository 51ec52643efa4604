/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is doing, as lines of the log: SIGQUIT writes them to the log, the page /stacks to
 * a file that it sends. */
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

/* Writes the report, whatever the log's level. Do not call it on a loop. */
void rq__report_write(const rq_report_sources *from);

#endif
