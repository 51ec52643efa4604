/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stopped data folder looked through as a whole: identity, log, hbase:meta, descriptors, each
 * region's manifest and files, the chain of each table's regions. No engine is started; nothing is
 * written, but by a repair.
 *
 * A repair moves aside (.rorqual/aside/<n>/<where it was>), it never deletes, and only what no
 * server reads: folders and manifests of regions that hbase:meta does not know. It is refused when
 * anything could yet give them a meaning: edits in the log, an unfinished procedure, a meta that
 * could not be read whole, an HBase that ran since.
 */
#ifndef RQ_CATALOG_FSCK_H
#define RQ_CATALOG_FSCK_H

#include "region/survey.h"

typedef struct rq_fsck_options {
    bool deep; /* every block of every file */
    bool repair;
    bool is_copy; /* the caller has the lock, and RQ_ROOT_UNFINISHED is his */
    rq_findings findings;
} rq_fsck_options;

typedef struct rq_fsck_totals {
    uint64_t tables, regions, files, log_records;
    uint64_t notes, problems, moved;
} rq_fsck_totals;

/* Takes the lock a server would take. RQ_E_LOCKED: one runs. RQ_E_NOT_FOUND: no data folder. Other
 * errors are of reading; what the folder has is told to the findings. */
RQ_NODISCARD
rq_err rq_fsck(rq_vfs *vfs, const rq_fsck_options *options, rq_fsck_totals *ret, rq_error *why);

#endif
