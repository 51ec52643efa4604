/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master's answer to GetClusterStatus, read in place: servers, regions with their load,
 * tables. Untrusted bytes: malformed or inconsistent ones are RQ_E_MALFORMED. Names point into the
 * answer's bytes, which the status owns.
 */
#ifndef RQ_CLIENT_STATUS_H
#define RQ_CLIENT_STATUS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdint.h>

struct rq_client;

/* HBase's ServerName. */
typedef struct rq_server_name {
    rq_slice host;
    uint16_t port;
    int64_t start_ms; /* since 1970 */
} rq_server_name;

typedef struct rq_server_status {
    rq_server_name name;
    uint64_t requests_per_s; /* as the server says */
    uint64_t requests;       /* since its start */
    uint32_t heap_used_mb, heap_max_mb;
    size_t first_region, region_count; /* in rq_cluster_status.regions */
} rq_server_status;

/* HBase's RegionLoad. */
typedef struct rq_region_status {
    rq_slice name;  /* table,start,time.encoded. */
    rq_slice table; /* the name's part */
    uint32_t stores, files;
    uint32_t size_mb, memstore_mb; /* rounded up */
    uint64_t reads, writes, filtered;
    uint64_t compacting_cells, compacted_cells;
    int64_t major_compacted_ms; /* since 1970; 0: never */
    bool compacts;
} rq_region_status;

typedef struct rq_table_status {
    rq_slice ns, qualifier;
    uint32_t open, split, closed, in_transition, total; /* regions */
} rq_table_status;

/* A region that should be open and is not. */
typedef struct rq_transition_status {
    rq_slice region; /* name or encoded name */
    uint32_t state;  /* a number of pb.RegionState.State */
    int64_t since_ms;
} rq_transition_status;

typedef struct rq_cluster_status {
    rq_buf bytes;
    rq_slice version; /* HBase's version: the server's own, or the one it is compatible with */
    rq_slice rorqual; /* the server's own version; empty: it is HBase */
    rq_slice cluster_id;
    rq_server_name master;
    bool balancer_on;
    rq_server_name *dead;
    size_t dead_count;
    rq_server_name *standbys; /* masters that are not active */
    size_t standby_count;
    rq_server_status *servers;
    size_t server_count;
    rq_region_status *regions;
    size_t region_count;
    rq_table_status *tables;
    size_t table_count;
    bool counts_all; /* tables have Rorqual's counts; HBase's are 0 for disabled tables */
    rq_transition_status *transitions;
    size_t transition_count;
} rq_cluster_status;

/* Blocking: one call to the master. *ret is cleared by rq_cluster_status_clear, also after an
 * error. */
RQ_NODISCARD
rq_err rq_client_status(struct rq_client *c, rq_cluster_status *ret, rq_error *why);
/* Parses ret->bytes, a serialized GetClusterStatusResponse, into the rest of *ret, which is empty
 * before. */
RQ_NODISCARD
rq_err rq__cluster_status_parse(rq_cluster_status *ret);
void rq_cluster_status_clear(rq_cluster_status *s);
/* "OPENING" …; "?" for an unknown number. */
const char *rq_region_state_name(uint32_t state);

#endif
