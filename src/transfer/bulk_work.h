/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work folder of a bulk load of text, with the state needed to resume after a kill, in a
 * plan's folder (plan.h):
 *
 *    plan, NNNNN             the parts of the input, and those that are sorted:
 *                            "rows N cells N runs N"
 *    run-PART-N              their sorted rows (runs.h)
 *    place                   the staging folder that the server gave, if the HFiles are made there
 *    step                    "merged FILES ROWS CELLS": the HFiles are complete, no run is needed
 *                            "loaded FILES ROWS CELLS": the server has loaded all of them
 *                            second line: "for " and the MD5 of the command and the parts that the plan is for
 *
 * The name `step` sorts after "plan": the folder is removed in the order of names after the load,
 * so a kill leaves the step until the plan is gone. "loaded" without a plan: the same command with the
 * same input has nothing left to do but to remove the rest.
 */
#ifndef RQ_TRANSFER_BULK_WORK_H
#define RQ_TRANSFER_BULK_WORK_H

#include "base/digest.h"
#include "transfer/bulkload.h"
#include "transfer/files.h"
#include "transfer/runs.h"

typedef enum rq__bulk_step {
    RQ__BULK_SORTING,
    RQ__BULK_MERGED,
    RQ__BULK_LOADED,
} rq__bulk_step;

typedef struct rq__bulk_work {
    rq_vfs *vfs;
    const char *folder;     /* in the vfs */
    const char *shown;      /* its path, for messages */
    rq_vfs *own_vfs;        /* of --progress; else NULL */
    bool has_made_progress; /* that folder is this command's */
    rq_vfs *lock_vfs;
    rq_file *lock;
    rq__plan plan;
    rq_arena arena;
    char digest[RQ_MD5_HEX_LEN + 1]; /* of the command and its input */
    bool is_open;                    /* the folder is this command's */
    bool is_over; /* an earlier run has loaded everything, and removed the plan */
    rq__bulk_step step;
    uint64_t files, rows, cells; /* of the step */
    const char *step_is_for;     /* in the step's text; NULL: it does not tell */
    const char *place;           /* NULL: none is noted */
} rq__bulk_work;

/* Opens the folder `name` in the vfs, or (vfs NULL) in the folder `progress`, which is created and
 * locked. RQ_E_CONFLICT: it belongs to another command or another input. rq__work_close follows,
 * even after an error. */
RQ_NODISCARD
rq_err rq__work_open(const char *progress, rq_vfs *vfs, const char *vfs_path, const char *name,
                     const char *what, rq__files *files, rq__bulk_work *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__work_set_place(rq__bulk_work *w, const char *place, rq_error *why);
RQ_NODISCARD
rq_err rq__work_set_step(rq__bulk_work *w, rq__bulk_step step, rq_error *why);
/* Any thread; a part at a time by one. */
RQ_NODISCARD
rq_err rq__work_note_part(const rq__bulk_work *w, size_t part, uint64_t rows, uint64_t cells,
                          uint64_t runs, rq_error *why);
/* The runs of all parts, and the sums of rows and cells. REQUIRES: all parts are done. */
RQ_NODISCARD
rq_err rq__work_list_runs(rq__bulk_work *w, rq__runs *ret, rq_error *why);
/* The load has ended. */
RQ_NODISCARD
rq_err rq__work_remove(rq__bulk_work *w, rq_error *why);
void rq__work_close(rq__bulk_work *w);

#endif
