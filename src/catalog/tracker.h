/* SPDX-License-Identifier: Apache-2.0 */
/* Store-file trackers in descriptors (region/tracking.h): the changes that a client may request,
 * and the descriptor after HBase's change_sft. HBASE: StoreFileTrackerValidationUtils,
 * ModifyStoreFileTrackerProcedure. */
#ifndef RQ_CATALOG_TRACKER_H
#define RQ_CATALOG_TRACKER_H

#include "descriptor/schema.h"

/* Refuses user-defined Java classes. */
RQ_NODISCARD
rq_err rq__tracker_check_known(const rq_table_schema *s, const rq_family_schema *f, rq_error *why);
/* Refuses new tables with the tracker MIGRATION. */
RQ_NODISCARD
rq_err rq__tracker_check_create(const rq_table_schema *s, rq_error *why);
/* An alter may switch to another tracker only through MIGRATION, and from there only to its
 * target. */
RQ_NODISCARD
rq_err rq__tracker_check_alter(const rq_table_schema *old, const rq_table_schema *s, bool enabled,
                               rq_error *why);

/* Refuses a tracker that a client may not request. */
RQ_NODISCARD
rq_err rq__tracker_check_target(rq_slice name, rq_error *why);
/* Makes a copy of `old` with the tracker `name` for the family, or for the table (`family` NULL),
 * without the attributes of a migration. *ret is NULL if `old` has this tracker already.
 * NoSuchColumnFamilyException. */
RQ_NODISCARD
rq_err rq__tracker_change(const rq_table_schema *old, const rq_slice *family, rq_slice name,
                          rq_table_schema **ret, rq_error *why);

#endif
