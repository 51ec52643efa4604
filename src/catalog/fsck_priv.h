/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of fsck. One thread, one arena for the whole run. */
#ifndef RQ_CATALOG_FSCK_PRIV_H
#define RQ_CATALOG_FSCK_PRIV_H

#include "catalog/fsck.h"
#include "catalog/meta.h"
#include "wal/survey.h"

/* Cells of one of the two regions that all others depend on: hbase:meta and the procedure store. */
typedef struct rq__fsck_cells {
    rq_cell *list; /* bytes in the arena */
    size_t count, cap;
    bool is_meta; /* keeps only cells that a start would read, because clients can write there */
} rq__fsck_cells;

/* The regions in hbase:meta, in the order of its rows. */
typedef struct rq__fsck_region {
    rq_region_info info;
    bool is_parent; /* it was split, so it is not part of the chain */
    bool on_disk;
} rq__fsck_region;

typedef struct rq__fsck_table {
    rq_slice name;
    bool on_disk;
    bool disabled;
    bool has_regions; /* besides parents and replicas */
} rq__fsck_table;

typedef struct rq__fsck_encoded {
    char name[RQ_ENCODED_NAME_LEN + 1];
} rq__fsck_encoded;

typedef struct rq__fsck_path {
    struct rq__fsck_path *next;
    const char *path;
} rq__fsck_path;

/* A set of paths or names: the newest first, and as a search tree. */
typedef struct rq__fsck_paths {
    rq__fsck_path *first;
    void *tree; /* of tsearch(3), by path */
} rq__fsck_paths;

typedef struct rq__fsck {
    rq_vfs *vfs;
    const rq_fsck_options *options;
    rq_findings findings; /* counts, then the caller's */
    rq_fsck_totals totals;
    rq_file *lock;
    rq_arena arena;
    bool ours;            /* .rorqual is there */
    bool was_open;        /* no clean stop: edits may be only in the log */
    bool foreign;         /* HBase ran last */
    bool log_damaged;     /* records for the two regions below may be missing */
    bool refused;         /* a start would refuse the folder: HBase's logs may have more than
                           * hbase:meta */
    bool parents_unknown; /* an unreadable row lists merged parents: regions that may be among them
                           * are not orphans */
    bool meta_whole;      /* hbase:meta and the procedures were read completely */
    bool half_made;       /* current findings concern a region that a procedure is creating */
    uint64_t unfinished;  /* procedures */
    rq_slice *changes;    /* names of the tables that they change, sorted */
    size_t change_count, change_cap;
    rq__fsck_encoded *moving; /* encoded names of the regions that they make and remove, sorted */
    size_t moving_count;
    bool all_change;                    /* a record does not tell its table */
    rq__fsck_cells meta_log, store_log; /* their edits in the log, with sequence ids */
    rq__fsck_region *regions;
    size_t region_count, region_cap;
    rq__fsck_table *tables; /* sorted once hbase:meta has been read */
    size_t table_count, table_cap;
    rq__fsck_paths rows;    /* encoded names of `regions`; only of a recovery (recover.c) */
    rq__fsck_paths merged;  /* encoded names of the parents of merged regions, which have no rows */
    rq__fsck_paths targets; /* targets of references and links */
    rq__fsck_paths target_dirs; /* all folders above these */
    rq__fsck_paths orphans;     /* files that a repair moves */
    rq__fsck_paths known;       /* encoded names of regions on disk that meta lacks */
    rq__fsck_paths claimed;     /* encoded names in malformed rows of meta */
} rq__fsck;

/* Takes the lock and finds out who wrote the folder. rq__fsck_end, which frees everything, must follow, after an error
 * too. */
RQ_NODISCARD
rq_err rq__fsck_begin(rq__fsck *k, rq_vfs *vfs, const rq_fsck_options *options, rq_error *why);
void rq__fsck_end(rq__fsck *k);

void rq__fsck_report(rq__fsck *k, rq_finding level, const char *place, const char *format, ...)
    RQ_PRINTF(4, 5);
RQ_NODISCARD
rq_err rq__fsck_list(rq__fsck *k, const char *dir, rq_dir_entry **ret, size_t *ret_count,
                     rq_error *why);
/* Adds a copy of the path, in O(log n). If the set has it already, nothing is done. */
RQ_NODISCARD
rq_err rq__fsck_note_path(rq__fsck *k, rq__fsck_paths *set, const char *path);
bool rq__fsck_has_path(const rq__fsck_paths *set, const char *path);
/* Adds the target of a reference or link to k->targets, and its folders to k->target_dirs. */
RQ_NODISCARD
rq_err rq__fsck_note_target(rq__fsck *k, const char *path);
/* Whether rq__adopt_check (adopt.h) has read the recovered.edits of this region and found all their edits in
 * store files. HBase leaves recovered.edits in regions of a disabled table, because it splits a killed server's
 * log without regard to what was flushed. False for master:store, whose recovered.edits the check does not read. */
bool rq__fsck_edits_replayed(const rq__fsck *k, const rq_region_info *info);
/* Checks manifest, files and counts. `may_differ`: the region is being created or removed, so
 * manifest and folder may differ. `closed`: the region's table is disabled, so HBase may have changed
 * the region's folder after the manifest was written and before the data folder was adopted. */
RQ_NODISCARD
rq_err rq__fsck_look_at_region(rq__fsck *k, const rq_region_info *info,
                               const rq_table_schema *schema, bool may_differ, bool closed,
                               rq_region_survey *ret, rq_error *why);

/* --- fsck_meta.c: hbase:meta and master:store, files and log ---------------------------------- */
/* The table, if it is known. REQUIRES: hbase:meta has been read. */
rq__fsck_table *rq__fsck_table_of(const rq__fsck *k, rq_slice name);
RQ_NODISCARD
rq_err rq__fsck_log(rq__fsck *k, rq_error *why);
RQ_NODISCARD
rq_err rq__fsck_meta(rq__fsck *k, rq_error *why);
RQ_NODISCARD
rq_err rq__fsck_procedures(rq__fsck *k, rq_error *why);

/* --- fsck_changes.c --------------------------------------------------------------------------- */
/* Notes what an unfinished procedure changes. */
RQ_NODISCARD
rq_err rq__fsck_add_procedure(rq__fsck *k, rq_slice record);
/* After the last one; the functions below may then be called. */
void rq__fsck_sort_changes(rq__fsck *k);
/* Whether an unfinished procedure changes the table: its folder and its rows may differ. */
bool rq__fsck_table_changes(const rq__fsck *k, rq_slice table);
/* Whether one makes or removes the region. */
bool rq__fsck_region_changes(const rq__fsck *k, const char *encoded);

/* --- fsck_tables.c: what is on disk, and the chain of regions --------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_tables(rq__fsck *k, rq_error *why);

/* --- fsck_mob.c: MOB files nobody refers to; after the tables --------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_mob(rq__fsck *k, rq_error *why);

/* --- fsck_snapshots.c ------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_snapshots(rq__fsck *k, rq_error *why);

/* --- fsck_repair.c ---------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__fsck_repair(rq__fsck *k, rq_error *why);
/* A folder below .rorqual/aside that does not exist yet. */
RQ_NODISCARD
rq_err rq__fsck_find_place(rq__fsck *k, const char **ret, rq_error *why);
/* Moves a file or folder to the same path below `to_root`, durably. */
RQ_NODISCARD
rq_err rq__fsck_move(rq__fsck *k, const char *path, const char *to_root, rq_error *why);
/* A region's folder, and its manifest. */
RQ_NODISCARD
rq_err rq__fsck_move_region(rq__fsck *k, const char *dir, const char *to_root, rq_error *why);

#endif
