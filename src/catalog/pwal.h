/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HBase's log files, read only to learn what is in them (HBASE: ProtobufWALStreamReader,
 * WALCellCodec 2.6). They are in WALs/<server>/, MasterData/WALs/<server>/ and a region's
 * recovered.edits/:
 *
 *   "PWAL" | varint length, WALHeader |
 *   entries: varint length, WALKey | following_kv_count × (be32 length, KeyValue) |
 *   [WALTrailer | be32 its length | "LAWP"]           when the writer closed the file
 *
 * A file without a trailer ends where its last whole entry does: what follows was never
 * acknowledged, or is zeros.
 */
#ifndef RQ_CATALOG_PWAL_H
#define RQ_CATALOG_PWAL_H

#include "cell/cell.h"

typedef struct rq__pwal_edit {
    rq_slice table;  /* "ns:q" or "q" */
    rq_slice region; /* encoded name */
    uint64_t seqid;
    const rq_cell *cell; /* not of HBase's own marks (family METAFAMILY) */
} rq__pwal_edit;

/* Calls for each cell, in the file's order, with views into `bytes`. Stops when the callback
 * returns an error. RQ_E_CORRUPT: not such a file, or a broken entry before the trailer.
 * RQ_E_UNSUPPORTED: compressed or encrypted. An empty file is valid: its writer had just begun. */
RQ_NODISCARD
rq_err rq__pwal_read(rq_slice bytes,
                     rq_err (*callback)(void *ctx, const rq__pwal_edit *edit, rq_error *why),
                     void *ctx, rq_error *why);

#endif
