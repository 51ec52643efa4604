/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables, regions and file sizes of a stopped data folder, read from hbase:meta and from the
 * regions' manifests. Like fsck (fsck.h) it reads without an engine and writes nothing.
 */
#ifndef RQ_CATALOG_FOLDER_H
#define RQ_CATALOG_FOLDER_H

#include "region/region_info.h"
#include "vfs/vfs.h"

typedef struct rq_folder_region {
    rq_region_info info;
    uint32_t stores, files;
    uint64_t bytes; /* of its files */
} rq_folder_region;

typedef struct rq_folder_table {
    rq_slice name; /* "ns:q" or "q" */
    bool disabled;
} rq_folder_table;

typedef struct rq_folder {
    rq_folder_table *tables;
    size_t table_count;
    rq_folder_region *regions; /* hbase:meta's first, then in the order of its rows */
    size_t region_count;
    uint64_t log_records; /* in the write-ahead log; a start replays those that are in no file */
    uint64_t problems;    /* found while reading; fsck describes them, and finds more */
    bool was_open;        /* the last server was not stopped cleanly */
} rq_folder;

/* Reads the folder, holding the lock that a server would hold. RQ_E_LOCKED: a server runs.
 * RQ_E_NOT_FOUND: no data folder. Results are in the arena. Blocks. */
RQ_NODISCARD
rq_err rq_folder_read(rq_vfs *vfs, rq_arena *arena, rq_folder *ret, rq_error *why);

#endif
