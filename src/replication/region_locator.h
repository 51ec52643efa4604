/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the region and server of a row of this cluster, for sink_router.c: a client of the cluster that this server belongs
 * to. Only region_locator.c and outlet.c include the client's headers, because some of their names are also defined in the
 * server's code. An rq__locator is used by one thread at a time. */
#ifndef RQ_REPLICATION_REGION_LOCATOR_H
#define RQ_REPLICATION_REGION_LOCATOR_H

#include "base/bytes.h"
#include "base/err.h"

typedef struct rq__locator rq__locator;
typedef struct rq_client_table rq__located_table; /* lives as long as its rq__locator */

/* Valid until the next rq__locator_read. */
typedef struct rq__location {
    rq_slice encoded; /* the region's encoded name */
    const char *host;
    uint16_t port;
    int64_t start_code;
} rq__location;

/* Blocking. `bootstrap`: HOST:PORT of a server of the cluster; copied. */
RQ_NODISCARD
rq_err rq__locator_open(const char *bootstrap, rq__locator **ret, rq_error *why);
/* NULL is fine. */
void rq__locator_close(rq__locator *p);
/* The clock of `since_ns`. */
int64_t rq__locator_now_ns(void);
/* Blocking: reads the table's regions from hbase:meta if they are unknown, or were last read before `since_ns`.
 * RQ_E_TABLE_NOT_FOUND with HBase's text: there is no such table. Other errors may be temporary. */
RQ_NODISCARD
rq_err rq__locator_read(rq__locator *p, rq_slice table, int64_t since_ns, rq__located_table **ret,
                        rq_error *why);
/* RQ_E_NOT_SERVING_REGION: no server has the row's region at present. */
RQ_NODISCARD
rq_err rq__locator_find(const rq__located_table *t, rq_slice row, rq__location *ret);

#endif
