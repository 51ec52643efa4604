/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of a recovery: recover.c finds damage and moves files,
 * recover_meta.c brings hbase:meta in line with the regions on disk. */
#ifndef RQ_CATALOG_RECOVER_PRIV_H
#define RQ_CATALOG_RECOVER_PRIV_H

#include "catalog/fsck_priv.h"
#include "catalog/recover.h"

typedef enum rq__region_fate {
    RQ__FATE_ADD,          /* gets a row in hbase:meta */
    RQ__FATE_SPLIT_PARENT, /* gets the row of a split parent with the daughters `by`, `by_last` */
    RQ__FATE_MERGE_PARENT, /* is noted in the row of the merged region `by` */
    RQ__FATE_ASIDE,        /* its folder is moved aside */
    RQ__FATE_STAYS,        /* its folder stays, without a row in hbase:meta */
} rq__region_fate;

/* A region on disk that hbase:meta does not know. */
typedef struct rq__lost_region {
    rq_region_info info;
    const char *dir;
    bool referred_to; /* regions of its table refer to its files */
    bool is_needed;   /* clones or snapshots refer to its files */
    rq__region_fate fate;
    const rq_region_info *by, *by_last; /* first and last region covering its range; or NULL */
} rq__lost_region;

typedef struct rq__recover {
    const rq_env *env;
    rq_vfs *vfs;
    const rq_recover_options *options;
    rq__fsck k; /* arena, and what hbase:meta says */
    rq_fsck_options quiet;
    const char *aside; /* NULL until something is moved */
    uint64_t found;
    bool log_damaged;
    rq__lost_region *lost;
    size_t lost_count, lost_room;
} rq__recover;

void rq__recover_report(rq__recover *r, const char *what, const char *place, const char *text);
/* Sets is_needed of regions whose files clones or snapshots refer to. References are resolved in data/ and
 * archive/, not in the folder of files set aside. */
RQ_NODISCARD
rq_err rq__recover_find_needs(rq__recover *r, rq__lost_region *list, size_t count, rq_error *why);
/* Sets the fate of each lost region. REQUIRES: r->k has read hbase:meta. */
RQ_NODISCARD
rq_err rq__recover_decide(rq__recover *r, rq_error *why);
/* Replays the log, adds the rows, leaves an empty log. REQUIRES: no lock is held. */
RQ_NODISCARD
rq_err rq__recover_meta(rq__recover *r, rq_error *why);

#endif
