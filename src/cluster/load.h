/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of regions and servers as HBase's messages. HBASE: RSRpcServices.createRegionLoad,
 * HRegionServer.buildServerLoad. */
#ifndef RQ_CLUSTER_LOAD_H
#define RQ_CLUSTER_LOAD_H

#include "host/calls.h"

#include "proto/cluster_status.pb-c.h"

/* Messages are in the arena; the region's name points into the info. NULL: out of memory. */
/* For a region of another server, with the figures of the last report that the master got from
 * it. */
Pb__RegionLoad *rq_reported_load_message(rq_arena *arena, const rq_region_info *info,
                                         const rq_region_load *load);
/* The reverse of rq_reported_load_message: reads the figures, which are rounded to KB and MB. */
void rq__reported_load(const Pb__RegionLoad *m, rq_region_load *ret);
/* For an open region of this process. */
Pb__RegionLoad *rq_region_load_message(rq_arena *arena, const rq_region_info *info,
                                       const rq_region *r);

Pb__ReplicationLoadSink *rq_sink_load_message(rq_arena *arena, const rq_sink_load *load);
/* The reverse. False: `m` is NULL. */
bool rq__reported_sink(const Pb__ReplicationLoadSink *m, rq_sink_load *ret);

Pb__ReplicationLoadSource *rq_source_load_message(rq_arena *arena, const rq_source_load *load);
/* The reverse; strings are copied into the arena. RQ_E_NO_MEMORY. */
RQ_NODISCARD
rq_err rq__reported_source(const Pb__ReplicationLoadSource *m, rq_arena *arena,
                           rq_source_load *ret);

/* The period between two reports of a server; all zero at first. */
typedef struct rq_load_period {
    int64_t begin_ms;
    uint64_t requests; /* total at begin_ms */
} rq_load_period;

/* All open regions; in the arena. Begins a new period. `info_port` 0: there are no pages. */
RQ_NODISCARD
rq_err rq__server_load_message(rq_host *host, uint16_t info_port, rq_load_period *period,
                               rq_arena *arena, Pb__ServerLoad **ret);

#endif
