/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a region is split, and where. The policy is the table's SPLIT_POLICY (a class name of
 * HBase's), else the server's hbase.regionserver.region.split.policy:
 *
 *   SteppingSplitPolicy                       the table's only region: 2 × flush size; else max
 *   IncreasingToUpperBoundRegionSplitPolicy   regions³ × 2 × flush size, at most max
 *   ConstantSizeRegionSplitPolicy             max
 *   DisabledRegionSplitPolicy                 never, not even when asked to
 *   KeyPrefix…, DelimitedKeyPrefix…           as IncreasingToUpperBound; the row is cut to a prefix
 *
 * max: MAX_FILESIZE of the table or hbase.hregion.max.filesize, with a jitter per region. It is
 * compared with the largest store, or with the sum of all (hbase.hregion.split.overallfiles).
 * HBASE: RegionSplitPolicy and its subclasses, RegionSplitRestriction.
 */
#ifndef RQ_HOST_SPLIT_POLICY_H
#define RQ_HOST_SPLIT_POLICY_H

#include "host/host.h"

/* HBASE: RegionSplitPolicy.canSplit. */
bool rq_host_splittable(const rq_host *h, rq_region *r);
/* Blocking. The row at which it would be split; ret->len 0: none. `flush`: if there is no file to
 * split, flushes the region and tries again. */
RQ_NODISCARD
rq_err rq_host_split_point(const rq_host *h, rq_region *r, bool flush, rq_arena *arena,
                           rq_slice *ret, rq_error *why);
/* Whether the region's policy asks for a split; `regions`: the number of the table's regions. Any
 * thread. */
bool rq_host_split_is_due(const rq_host *h, rq_region *r, uint64_t regions);
/* The row, cut to a prefix as the table's split restriction demands; points into `row`. */
rq_slice rq_split_restrict(const rq_table_schema *schema, rq_slice row);
/* SPLIT_ENABLED, MERGE_ENABLED: not "false". */
bool rq_schema_allows(const rq_table_schema *schema, const char *attribute);

#endif
