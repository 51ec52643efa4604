/* SPDX-License-Identifier: Apache-2.0 */
/* What a server is doing, written to the log for the operator (SIGQUIT). */
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

/* At whatever level the log has. Not on a loop. */
void rq_report_write(const rq_report_sources *from);

#endif
