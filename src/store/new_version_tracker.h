/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes and versions of a family with NEW_VERSION_BEHAVIOR: a marker hides only what was written
 * before it, and a version that was pushed out by newer ones stays out when those are deleted. So
 * sequence ids decide, and every cell of a column must be seen. HBASE: NewVersionBehaviorTracker.
 *
 * For the column at hand there is an *epoch* for each marker that hides a range (DeleteFamily,
 * DeleteColumn), ordered by the marker's sequence id, and a last one without an end. Inside an
 * epoch every version marker (Delete, DeleteFamilyVersion) starts another count of the puts before
 * it. A put is shown if in none of the counts it belongs to there were already enough newer ones,
 * no version marker after it names its timestamp, and no range marker after it covers it.
 *
 * Not as HBase: it loses family markers for the empty qualifier in some orders of arrival, and of
 * several writes of one version it counts the older ones twice; here neither happens.
 */
#ifndef RQ_STORE_NEW_VERSION_TRACKER_H
#define RQ_STORE_NEW_VERSION_TRACKER_H

#include "store/column_tracker.h"
#include "store/delete_tracker.h"

typedef struct rq__new_version_tracker rq__new_version_tracker;

/* `columns` gives minimum, expiry; it must outlive the tracker. `max_versions` is the family's,
 * `wanted` what the read asks for. Freed with the arena. */
RQ_NODISCARD
rq_err rq__new_version_tracker_new(rq_arena *arena, const rq__column_tracker *columns,
                                   int32_t max_versions, int32_t wanted,
                                   rq__new_version_tracker **ret);
/* Before each row. */
void rq__new_version_tracker_reset(rq__new_version_tracker *t);
RQ_NODISCARD
rq_err rq__new_version_tracker_add(rq__new_version_tracker *t, const rq_cell *marker);
/* Once per put, in order. NOT_DELETED or VERSION_DELETED: never pass over the rest of a column. */
RQ_NODISCARD
rq_err rq__new_version_tracker_check(rq__new_version_tracker *t, const rq_cell *put,
                                     rq__deleted *ret);
rq__match rq__new_version_tracker_check_versions(rq__new_version_tracker *t, const rq_cell *put,
                                                 bool keep_all);

#endif
