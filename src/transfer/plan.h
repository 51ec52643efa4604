/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder that records the parts of a transfer and which of them are finished, so that a killed
 * transfer can be resumed.
 *
 *    plan      "rorqual plan 1", "stamp MS", "for WHAT", a line "part TEXT" for each part, "end"
 *    NNNNN     for each finished part: its counts
 *
 * Both are written to temporary files and renamed, so they are complete or missing. A part without
 * its file is repeated from its beginning. In a folder without a plan all files are left over from an
 * earlier run, and are removed before a plan is stored.
 */
#ifndef RQ_TRANSFER_PLAN_H
#define RQ_TRANSFER_PLAN_H

#include "base/arena.h"
#include "vfs/vfs.h"

typedef struct rq__plan {
    rq_vfs *vfs;
    const char *folder; /* in the vfs; in the arena */
    rq_arena arena;
    int64_t stamp_ms;   /* when the transfer was begun */
    const char **parts; /* their texts */
    size_t count, done;
    bool *is_done;
    bool is_resumed;
} rq__plan;

/* The name of a transfer's folder, "WHAT-TABLE"; a long table name is cut, and its digest added. NULL: no memory. */
const char *rq__plan_name(rq_arena *arena, const char *what, const char *table);

/* Takes the plan that the folder has, or stores one of these parts. RQ_E_CONFLICT: the folder's
 * plan has another `what`, or (`same_parts`) other parts. rq__plan_close follows, after an error
 * too. Texts have no line breaks. */
RQ_NODISCARD
rq_err rq__plan_open(rq_vfs *v, const char *folder, const char *what, const char *const *parts,
                     size_t count, bool same_parts, rq__plan *ret, rq_error *why);
/* Any thread; a part at a time by one. */
RQ_NODISCARD
rq_err rq__plan_note_done(const rq__plan *p, size_t part, const char *counts, rq_error *why);
/* The counts stored by rq__plan_note_done for a finished part; in the plan's arena. */
RQ_NODISCARD
rq_err rq__plan_counts_of(rq__plan *p, size_t part, rq_slice *ret, rq_error *why);
/* Removes all marks, then the plan: the transfer has ended. */
RQ_NODISCARD
rq_err rq__plan_remove(const rq__plan *p, rq_error *why);
void rq__plan_close(rq__plan *p);

/* Takes the first line of the text, without its line break; false: the text has no line break. */
bool rq__take_line(rq_slice *text, rq_slice *ret);

#endif
