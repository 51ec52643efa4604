/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of HBase's store-file trackers a family uses (HBASE: StoreFileTrackerFactory,
 * MigrationStoreFileTracker). In this server the manifest always determines a region's files. The
 * trackers determine what a clean close leaves for HBase, and what is used after HBase had the
 * folder last:
 *
 *   DEFAULT                 the folder
 *   FILE                    the list (filelist.h)
 *   MIGRATION from, to      as `from` says; the close leaves a list if either of them is FILE
 *
 * So changing the tracker moves no file: it takes effect at the next close.
 */
#ifndef RQ_REGION_TRACKING_H
#define RQ_REGION_TRACKING_H

#include "descriptor/schema.h"

#define RQ_TRACKER_IMPL "hbase.store.file-tracker.impl"
#define RQ_TRACKER_FROM "hbase.store.file-tracker.migration.src.impl"
#define RQ_TRACKER_TO "hbase.store.file-tracker.migration.dst.impl"

typedef enum rq_tracker {
    RQ_TRACKER_NONE, /* not set */
    RQ_TRACKER_DEFAULT,
    RQ_TRACKER_FILE,
    RQ_TRACKER_MIGRATION,
    RQ_TRACKER_UNKNOWN, /* another Java class */
} rq_tracker;

typedef struct rq_tracking {
    rq_tracker impl;     /* never NONE */
    rq_tracker from, to; /* MIGRATION */
} rq_tracking;

/* Parses HBase's keyword, in any case, or the class name. */
rq_tracker rq_tracker_parse(rq_slice name);
/* The keyword; "" for NONE and UNKNOWN. */
const char *rq_tracker_name(rq_tracker t);

/* The tracker of a family; `f` NULL: of the table. DEFAULT if nothing is set. */
rq_tracking rq_tracking_of(const rq_table_schema *t, const rq_family_schema *f);

/* Whether the list determines the files after HBase had the folder last. */
bool rq__tracking_reads_list(const rq_table_schema *t, const rq_family_schema *f);
/* Whether a clean close leaves a list. */
bool rq__tracking_keeps_list(const rq_table_schema *t, const rq_family_schema *f);

#endif
