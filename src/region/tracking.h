/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which of HBase's store-file trackers a family's files are kept (HBASE:
 * StoreFileTrackerFactory, MigrationStoreFileTracker). On this server a region's manifest always
 * says what it has; the trackers differ in what a clean close leaves for HBase, and in what counts
 * when HBase had the folder last:
 *
 *   DEFAULT                 the folder
 *   FILE                    the list (filelist.h)
 *   MIGRATION from, to      what `from` says; the close leaves a list if either of them is FILE
 *
 * So a change of tracker moves no file: with the next close the new one's ways are kept.
 */
#ifndef RQ_REGION_TRACKING_H
#define RQ_REGION_TRACKING_H

#include "store/schema.h"

#define RQ_TRACKER_IMPL "hbase.store.file-tracker.impl"
#define RQ_TRACKER_FROM "hbase.store.file-tracker.migration.src.impl"
#define RQ_TRACKER_TO "hbase.store.file-tracker.migration.dst.impl"

typedef enum rq_tracker {
    RQ_TRACKER_NONE, /* not said */
    RQ_TRACKER_DEFAULT,
    RQ_TRACKER_FILE,
    RQ_TRACKER_MIGRATION,
    RQ_TRACKER_UNKNOWN, /* a Java class of somebody's own */
} rq_tracker;

typedef struct rq_tracking {
    rq_tracker impl;     /* never NONE */
    rq_tracker from, to; /* MIGRATION */
} rq_tracking;

/* HBase's word in any case, or the name of its class. */
rq_tracker rq_tracker_parse(rq_slice name);
/* The word; "" for NONE and UNKNOWN. */
const char *rq_tracker_name(rq_tracker t);

/* `f` NULL: what the table itself says. DEFAULT where nothing is said. */
rq_tracking rq_tracking_of(const rq_table_schema *t, const rq_family_schema *f);

/* Where HBase had the folder last, the list says what is in it. */
bool rq_tracking_reads_list(const rq_table_schema *t, const rq_family_schema *f);
/* A clean close leaves a list. */
bool rq_tracking_keeps_list(const rq_table_schema *t, const rq_family_schema *f);

#endif
