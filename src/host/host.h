/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host: the regions open in this process, by name. It opens and closes them, and requests find
 * them here. It knows no tables: the master (catalog) decides where each region is open, and
 * reaches hosts by calls (host/calls.h).
 *
 *     open ─► [opened: nobody finds it] ─► named ─► requests find it ─► not named ─► close
 *
 * Opening a region does not yet serve it: the master decides when requests may find it, once
 * hbase:meta says so. Names are maintained by their publisher (host/names.h): in a standalone
 * server the catalog; in a process without a master the host itself.
 *
 * Threads: opening and closing block; any thread, but one at a time for each region. Lookups are part
 * of a read section. A lookup that finds its region takes no lock; one that does not takes the host's lock
 * for a moment, to see whether the region has moved.
 */
#ifndef RQ_HOST_HOST_H
#define RQ_HOST_HOST_H

#include "host/names.h"
#include "host/server_name.h"
#include "region/engine.h"

/* Limit of REGION_REPLICATION, and so of the names of one region. */
#define RQ_REPLICATION_MAX 64

typedef struct rq_host rq_host;
struct rq_config;

/* `config` may be NULL: defaults. Both are borrowed until rq_host_free; the name is copied. */
RQ_NODISCARD
rq_err rq_host_new(rq_engine *engine, const rq_server_name *name, const struct rq_config *config,
                   rq_host **ret);
/* Closes regions that are still open without a flush: they were never published. REQUIRES: no
 * reader, no outstanding call. NULL is fine. */
void rq_host_free(rq_host *h);

const rq_server_name *rq_host_name(const rq_host *h);
rq_engine *rq_host_engine(const rq_host *h);
const struct rq_config *rq__host_config(const rq_host *h);
rq_region_names *rq_host_names(rq_host *h);

/* --- names without a catalog (own_names.c) ----------------------------------------------------- */
/* Makes the host the writer of its names. Lookups of a region get RQ_E_REGION_OPENING while it is being opened, find
 * it from rq_host_serve on, and do not find it any more once its closing begins. REQUIRES: no region was opened yet. */
void rq_host_name_itself(rq_host *h);
bool rq_host_names_itself(const rq_host *h);
/* Call it when this process becomes the master: from now on its catalog is the writer of the names. Open regions
 * stay open, but are not found until the catalog enters them. REQUIRES: no region is opened or closed meanwhile. */
void rq_host_name_no_more(rq_host *h);
/* Call it when the master has accepted the report that the region is open: lookups find the region from now on. Any
 * thread. Does nothing if the region was closed meanwhile. */
void rq_host_serve(rq_host *h, const rq_region_info *info);

/* --- opening and closing; blocking ------------------------------------------------------------ */
/* *ret_seqnum: meta's info:seqnumDuringOpen. A region that is open already stays as it is, so a call
 * may be repeated. */
RQ_NODISCARD
rq_err rq__host_open(rq_host *h, const rq_region_info *info, rq_table_schema *schema,
                     int64_t *ret_seqnum, rq_error *why);
/* Closes the region with a flush. If the flush fails, the region is closed all the same, its edits stay in the
 * log, and the error is logged and returned. With `abandon` it is closed without a flush. RQ_OK also if the region
 * is not open. *ret_seqnum (may be NULL): its last sequence number, if it was open. */
rq_err rq_host_close(rq_host *h, const rq_region_info *info, bool abandon, int64_t *ret_seqnum,
                     rq_error *why);
/* Closes all regions that are still open, one after another; returns the first error. REQUIRES: no
 * outstanding call. */
rq_err rq_host_close_rest(rq_host *h, bool abandon, rq_error *why);
/* A reference; NULL: it is not open here. Any thread. */
rq_region *rq_host_ref(rq_host *h, const rq_region_info *info);

/* Calls `visit` for each open region, in no order, without a lock; regions that are opened or closed
 * meanwhile may be left out. Any thread. */
RQ_NODISCARD
rq_err rq_host_each(rq_host *h, rq_err (*visit)(void *ctx, const rq_region *r), void *ctx);

/* --- where regions went (moved.c) ------------------------------------------------------------- */
/* For two minutes from now, lookups of the region fail with RQ_E_REGION_MOVED and the location `to`. Any thread. */
void rq__host_moved(rq_host *h, const char *encoded, const rq_server_name *to,
                    int64_t close_seqnum);

/* --- lookups: read section -------------------------------------------------------------------- */
/* The open region of a RegionSpecifier of type REGION_NAME (binary region name; as in HBase only
 * its encoded part counts) or ENCODED_REGION_NAME; ->region is set. ->info->replica_id is above 0 for a
 * replica's name. RQ_E_NOT_SERVING_REGION "… is not online on …", RQ_E_REGION_OPENING,
 * RQ_E_REGION_MOVED, as in HBase. */
RQ_NODISCARD
rq_err rq_host_find(const rq_host *h, rq_slice region_name, const rq_host_region **ret,
                    rq_error *why);
RQ_NODISCARD
rq_err rq_host_find_encoded(const rq_host *h, rq_slice encoded, const rq_host_region **ret,
                            rq_error *why);

#endif
