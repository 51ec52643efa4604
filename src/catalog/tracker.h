/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store-file trackers in descriptors (region/tracking.h): which change of one a client may ask for,
 * and the descriptor that HBase's change_sft ends with. HBASE: StoreFileTrackerValidationUtils,
 * ModifyStoreFileTrackerProcedure.
 */
#ifndef RQ_CATALOG_TRACKER_H
#define RQ_CATALOG_TRACKER_H

#include "store/schema.h"

/* Java classes of somebody's own are refused. */
RQ_NODISCARD
rq_err rq__tracker_check_known(const rq_table_schema *s, const rq_family_schema *f, rq_error *why);
/* Nothing new begins with a migration. */
RQ_NODISCARD
rq_err rq__tracker_check_create(const rq_table_schema *s, rq_error *why);
/* An alter leads to another tracker by MIGRATION alone, and from there to its target. */
RQ_NODISCARD
rq_err rq__tracker_check_alter(const rq_table_schema *old, const rq_table_schema *s, bool enabled,
                               rq_error *why);

/* What a client may name as the tracker to change to. */
RQ_NODISCARD
rq_err rq__tracker_check_target(rq_slice name, rq_error *why);
/* `old` with that tracker for the family, or for the table itself (`family` NULL), and nothing of
 * a migration. *ret is NULL if it is that already. NoSuchColumnFamilyException. */
RQ_NODISCARD
rq_err rq__tracker_change(const rq_table_schema *old, const rq_slice *family, rq_slice name,
                          rq_table_schema **ret, rq_error *why);

#endif
