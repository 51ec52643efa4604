/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a stopped data folder as a whole: identity, log, hbase:meta, descriptors, each region's
 * manifest and files, the chain of each table's regions. No engine is started, and nothing is
 * written except by a repair.
 *
 * A repair never deletes: it moves files aside (.rorqual/aside/<n>/<old path>), and only files that
 * no server reads: folders and manifests of regions that hbase:meta does not know. It is refused if
 * something may still refer to them: edits in the log, an unfinished procedure, a meta that could
 * not be read completely, an HBase that ran since. */
#ifndef RQ_CATALOG_FSCK_H
#define RQ_CATALOG_FSCK_H

#include "region/survey.h"

typedef struct rq_fsck_options {
    bool deep; /* every block of every file */
    bool repair;
    bool is_copy; /* the caller holds the lock and has made RQ_ROOT_UNFINISHED: do not refuse it */
    rq_findings findings;
} rq_fsck_options;

typedef struct rq_fsck_totals {
    uint64_t tables, regions, files, log_records;
    uint64_t notes, problems, moved;
} rq_fsck_totals;

/* Takes the lock that a server would take. RQ_E_LOCKED: a server is running. RQ_E_NOT_FOUND: no
 * data folder. Other errors are I/O errors; problems of the folder are reported as findings. */
RQ_NODISCARD
rq_err rq_fsck(rq_vfs *vfs, const rq_fsck_options *options, rq_fsck_totals *ret, rq_error *why);

#endif
