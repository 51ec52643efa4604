/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a bulk load in the log (RQ_WAL_BULK_LOAD), from which replication makes the event that
 * HBase's region servers write. Its payload is a BulkLoadDescriptor with one store entry per file. HBASE:
 * WALUtil.writeBulkLoadMarkerAndSync, ProtobufUtil.toBulkLoadDescriptor.
 *
 * The record follows the commit, so a peer never hears of files that do not exist. Recovery ignores
 * it: the manifest has the files.
 */
#ifndef RQ_REGION_BULK_EVENT_H
#define RQ_REGION_BULK_EVENT_H

#include "region/bulk_load.h"
#include "region/engine_priv.h"

typedef struct rq__bulk_event {
    const rq_bulk_load *load;
    rq_buf payload; /* freed by the owner */
    /* Of the record, once it is in the log. */
    uint64_t number;
    rq_lsn lsn;
    rq_err rc; /* of the last attempt */
} rq__bulk_event;

/* Begins a zero-initialised event. `number`: the sequence number of the loaded files. */
RQ_NODISCARD
rq_err rq__bulk_event_begin(rq__bulk_event *e, const rq_region *r, const rq_bulk_load *load,
                            uint64_t number);
RQ_NODISCARD
rq_err rq__bulk_event_add(rq__bulk_event *e, rq_slice family, const char *file, uint64_t size);
/* RQ_E_REQUEST_TOO_BIG: it does not fit into a record. */
RQ_NODISCARD
rq_err rq__bulk_event_check(const rq__bulk_event *e, rq_error *why);
/* Stages the record with the region's next number; `rc` gets the result. `event` is a rq__bulk_event.
 * Under the token, right after the files were published: so the archive's cleaner, which looks at the end
 * of the log (catalog/cleaner.c), sees no published file before the record is there, unless staging fails
 * and rq__bulk_event_finish repeats it. */
void rq__bulk_event_stage(rq_region *r, void *event);
/* If staging failed for lack of room in the log, repeats it until there is room or the region closes.
 * Blocks; the caller does not hold the token. */
RQ_NODISCARD
rq_err rq__bulk_event_finish(rq__bulk_event *e, rq_region *r, rq_error *why);

#endif
