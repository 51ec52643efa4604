/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fsck share. One thread, one arena for the whole run. */
#ifndef RQ_CATALOG_FSCK_PRIV_H
#define RQ_CATALOG_FSCK_PRIV_H

#include "catalog/fsck.h"
#include "catalog/meta.h"
#include "wal/survey.h"

/* Cells of one of the two regions that everything else stands in. */
typedef struct rq__fsck_cells {
    rq_cell *list; /* bytes in the arena */
    size_t count, cap;
    bool is_meta; /* only what a start would read is kept: clients write there */
} rq__fsck_cells;

/* What hbase:meta says, in the order of its rows. */
typedef struct rq__fsck_region {
    rq_region_info info;
    bool is_parent; /* it was split: no part of the chain any more */
    bool on_disk;
    const rq_region_info *merged; /* its parents, whose rows are gone */
    size_t merged_count;
} rq__fsck_region;

typedef struct rq__fsck_table {
    rq_slice name;
    bool on_disk;
    bool disabled;
} rq__fsck_table;

typedef struct rq__fsck_path {
    struct rq__fsck_path *next;
    const char *path;
} rq__fsck_path;

typedef struct rq__fsck {
    rq_vfs *vfs;
    const rq_fsck_options *options;
    rq_findings findings; /* counts, then the caller's */
    rq_fsck_totals totals;
    rq_file *lock;
    rq_arena arena;
    bool ours;            /* .rorqual is there */
    bool was_open;        /* no clean stop: the log counts */
    bool foreign;         /* HBase ran last */
    bool log_damaged;     /* what it held for the two regions below may be missing */
    bool refused;         /* a start would refuse it: HBase's logs may know more than hbase:meta */
    bool parents_unknown; /* a row does not say which regions were merged: they are no orphans */
    bool meta_whole;      /* nothing of hbase:meta and the procedures is missing */
    bool half_made;       /* what is told now is of a region that a procedure is making */
    uint64_t unfinished;  /* procedures */
    rq__fsck_cells meta_log, store_log; /* their edits in the log, with sequence ids */
    rq__fsck_region *regions;
    size_t region_count, region_cap;
    rq__fsck_table *tables;
    size_t table_count, table_cap;
    rq__fsck_path *targets; /* files that references and links stand for */
    rq__fsck_path *orphans; /* what a repair moves */
    rq__fsck_path *known;   /* encoded names of folders that meta has not */
    rq__fsck_path *claimed; /* encoded names in malformed rows of meta */
} rq__fsck;

/* Takes the lock and sees what the folder is. rq__fsck_end follows, after an error too. */
RQ_NODISCARD
rq_err rq__fsck_begin(rq__fsck *k, rq_vfs *vfs, const rq_fsck_options *options, rq_error *why);
void rq__fsck_end(rq__fsck *k);

void rq__fsck_tell(rq__fsck *k, rq_finding level, const char *place, const char *format, ...)
    RQ_PRINTF(4, 5);
RQ_NODISCARD
rq_err rq__fsck_list(rq__fsck *k, const char *dir, rq_dir_entry **ret, size_t *ret_count,
                     rq_error *why);
RQ_NODISCARD
rq_err rq__fsck_note_path(rq__fsck *k, rq__fsck_path **list, const char *path);
/* Manifest, files; counts. `may_differ`: it is being made or cleared away, so its manifest need not
 * be its folder's. Of a disabled table (`closed`) HBase may have changed it before we took the
 * folder over. */
RQ_NODISCARD
rq_err rq__fsck_look_at_region(rq__fsck *k, const rq_region_info *info,
                               const rq_table_schema *schema, bool may_differ, bool closed,
                               rq_region_survey *ret, rq_error *why);

/* --- fsck_meta.c: hbase:meta and master:store, files and log ---------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_log(rq__fsck *k, rq_error *why);
RQ_NODISCARD
rq_err rq__fsck_meta(rq__fsck *k, rq_error *why);
RQ_NODISCARD
rq_err rq__fsck_procedures(rq__fsck *k, rq_error *why);

/* --- fsck_tables.c: what is on disk, and the chain of regions --------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_tables(rq__fsck *k, rq_error *why);

/* --- fsck_mob.c: MOB files nobody refers to; after the tables --------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_mob(rq__fsck *k, rq_error *why);

/* --- fsck_repair.c ---------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_repair(rq__fsck *k, rq_error *why);

#endif
