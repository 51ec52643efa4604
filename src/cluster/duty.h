/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's reports to the active master: RegionServerStartup until a master has accepted it, then
 * RegionServerReport with the loads of the server's regions, every few seconds.
 *
 *   startup ──accepted──► report ─ pause ─► report …      if no master is reached: again after 50 ms, then later and later,
 *      │                                                  at most half a second
 *      └───── RQ_E_CLOCK_OUT_OF_SYNC, RQ_E_YOU_ARE_DEAD, RQ_E_HOST_REJECTED: fatal() is called, and no more reports are sent
 *
 * A new master takes reports without a startup. HBASE: HRegionServer.reportForDuty, tryRegionServerReport.
 */
#ifndef RQ_CLUSTER_DUTY_H
#define RQ_CLUSTER_DUTY_H

#include "cluster/orders.h"
#include "host/calls.h"

#define RQ_DUTY_PERIOD_MS 3000 /* HBASE: hbase.regionserver.msginterval */

typedef struct rq_duty rq_duty;

typedef struct rq_duty_options {
    rq_host *host;
    uint16_t info_port; /* of the pages; 0: none */
    unsigned period_ms; /* 0: RQ_DUTY_PERIOD_MS */
    /* Sends to the current active master, as in orders.h. */
    void (*report)(void *ctx, rq_report *r);
    /* Figures of this server as a sink of replication, for its reports. Any thread; must not block. NULL: reports have
     * none. */
    void (*sink)(void *ctx, rq_sink_load *ret);
    /* Lists the sources of replication of this server, in the arena. Not an event loop's thread; must not block for long.
     * NULL: reports have none. */
    rq_err (*sources)(void *ctx, rq_arena *arena, rq_source_load **ret, size_t *ret_count);
    /* Whether requests of clients are served; while they are not, nothing is reported. As in orders.h. */
    bool (*serves)(void *ctx);
    /* For how long this server's lease on the shared storage has been expired; 0: it is valid. Any thread; must not
     * block. NULL: reports do not mention the lease. */
    uint64_t (*lease_expired_ms)(void *ctx);
    /* Called when a master has refused this server for good; the process must then end. At most once; any thread; must
 * not block; may be NULL. */
    void (*fatal)(void *ctx, rq_err rc, const rq_error *why);
    void *ctx;
} rq_duty_options;

/* Begins at once. */
RQ_NODISCARD
rq_err rq_duty_begin(const rq_duty_options *o, rq_duty **ret);
/* Sends a report now instead of after the pause, because a new master waits for it, or because the lease has expired or is
 * valid again. If a report is under way, another one follows it at once. Any thread. */
void rq_duty_now(rq_duty *d);
/* Whether a master has taken the startup. Any thread. */
bool rq_duty_is_taken(rq_duty *d);
/* Ends the reports and tells the master that this server ends in order: until the server has left ZooKeeper, the master
 * does not take closed connections and a closed port for the end of the process. Blocks until the master has answered
 * or cannot be asked. NULL is fine. */
void rq_duty_leave(rq_duty *d);
/* Blocks until no report is under way, then frees `d`. NULL is fine. */
void rq_duty_end(rq_duty *d);

#endif
