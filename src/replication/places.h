/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the region and server of a row of this cluster, for spread.c: a client of the cluster that this server belongs
 * to. Only places.c and outlet.c include the client's headers, because some of their names are also defined in the
 * server's code. An rq__places is used by one thread at a time. */
#ifndef RQ_REPLICATION_PLACES_H
#define RQ_REPLICATION_PLACES_H

#include "base/bytes.h"
#include "base/err.h"

typedef struct rq__places rq__places;
typedef struct rq_client_table rq__placed_table; /* lives as long as its rq__places */

/* Valid until the next rq__places_read. */
typedef struct rq__place {
    rq_slice encoded; /* the region's encoded name */
    rq_slice end;     /* the region's end key; empty: none */
    const char *host;
    uint16_t port;
    int64_t start_code;
} rq__place;

/* Blocking. `bootstrap`: HOST:PORT of a server of the cluster; copied. */
RQ_NODISCARD
rq_err rq__places_open(const char *bootstrap, rq__places **ret, rq_error *why);
/* NULL is fine. */
void rq__places_close(rq__places *p);
/* The clock of `since_ns`. */
int64_t rq__places_now_ns(void);
/* Blocking: reads the table's regions from hbase:meta if they are unknown, or were last read before `since_ns`.
 * RQ_E_TABLE_NOT_FOUND with HBase's text: there is no such table. Other errors may be temporary. */
RQ_NODISCARD
rq_err rq__places_read(rq__places *p, rq_slice table, int64_t since_ns, rq__placed_table **ret,
                       rq_error *why);
/* RQ_E_NOT_SERVING_REGION: no server has the row's region at present. */
RQ_NODISCARD
rq_err rq__places_find(const rq__placed_table *t, rq_slice row, rq__place *ret);

#endif
