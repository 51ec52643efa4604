/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of regions and servers as HBase's messages. HBASE: RSRpcServices.createRegionLoad,
 * HRegionServer.buildServerLoad. */
#ifndef RQ_CLUSTER_LOAD_H
#define RQ_CLUSTER_LOAD_H

#include "host/host.h"

#include "proto/cluster_status.pb-c.h"

/* In the arena, but for the name, which is the info's. NULL: out of memory. */
Pb__RegionLoad *rq_region_load_message(rq_arena *arena, const rq_region_info *info,
                                       const rq_region *r);

/* From one report of a server to the next; all zero at first. */
typedef struct rq_load_period {
    int64_t begin_ms;
    uint64_t requests; /* in all, at that time */
} rq_load_period;

/* All open regions; in the arena. Begins a new period. `info_port` 0: there are no pages. */
RQ_NODISCARD
rq_err rq__server_load_message(rq_host *host, uint16_t info_port, rq_load_period *period,
                               rq_arena *arena, Pb__ServerLoad **ret);

#endif
