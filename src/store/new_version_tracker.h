/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes and versions of a family with NEW_VERSION_BEHAVIOR: a marker hides only cells written
 * before it, and a version superseded by newer ones stays hidden when those are deleted. So
 * sequence ids decide, and every cell of a column must be examined. HBASE:
 * NewVersionBehaviorTracker.
 *
 * For the current column there is an *epoch* for each range marker (DeleteFamily, DeleteColumn),
 * ordered by sequence id, and an unbounded last one. Within an epoch every version marker (Delete,
 * DeleteFamilyVersion) starts another count of the puts written before it. A put is visible if none
 * of its counts already had enough newer puts, no later version marker has its timestamp, and no
 * later range marker covers it. A range marker that a later one covers has no epoch.
 *
 * Cells mostly come in the reverse order of writing, and then cost a search each. In the worst
 * order, each cell costs as many steps as there are markers; the reader counts them for its clock.
 *
 * Differences from HBase: HBase loses family markers for the empty qualifier in some orders of
 * arrival, counts the older of several writes of one version twice, and of two family markers of
 * one batch knows the older one only.
 */
#ifndef RQ_STORE_NEW_VERSION_TRACKER_H
#define RQ_STORE_NEW_VERSION_TRACKER_H

#include "store/column_tracker.h"
#include "store/delete_tracker.h"

typedef struct rq__new_version_tracker rq__new_version_tracker;

/* `columns` gives MIN_VERSIONS and expiry and must outlive the tracker. `max_versions` is the
 * family's, `wanted` the read's. Freed with the arena. */
RQ_NODISCARD
rq_err rq__new_version_tracker_new(rq_arena *arena, const rq__column_tracker *columns,
                                   int32_t max_versions, int32_t wanted,
                                   rq__new_version_tracker **ret);
/* Called before each row. */
void rq__new_version_tracker_reset(rq__new_version_tracker *t);
RQ_NODISCARD
rq_err rq__new_version_tracker_add(rq__new_version_tracker *t, const rq_cell *marker);
/* Elements of its lists that were moved or looked at one by one, since it was made: work besides
 * that of the cells. */
uint64_t rq__new_version_tracker_steps(const rq__new_version_tracker *t);
/* Called once per put, in order. Returns NOT_DELETED or VERSION_DELETED: the rest of a column is
 * never skipped. */
RQ_NODISCARD
rq_err rq__new_version_tracker_check(rq__new_version_tracker *t, const rq_cell *put,
                                     rq__deleted *ret);
rq__match rq__new_version_tracker_check_versions(rq__new_version_tracker *t, const rq_cell *put,
                                                 bool keep_all);

#endif
