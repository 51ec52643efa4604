/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One family's part of a get without a scanner: the fast path for rows that are in one place, which
 * is nearly every get. When it cannot answer, the store scanner does.
 */
#ifndef RQ_STORE_ROW_GET_H
#define RQ_STORE_ROW_GET_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/*
 * Appends the cells a get finds in the version at the read point. *ret_answered false: nothing was
 * appended; use a store scanner. RQ_E_AGAIN: likewise, and the ctx names a block that the scanner
 * will need, too. Other errors are those the scanner would return. `family`: what is read of this
 * family; NULL: everything. REQUIRES: the scan has is_get, no filter, no limit or offset per row,
 * and is not raw.
 */
RQ_NODISCARD
rq_err rq_store_get_row(const rq_store *store, const rq_store_version *v, const rq_scan *scan,
                        const rq_scan_family *family, uint64_t read_point, int64_t now_ms,
                        rq_arena *arena, rq_read_ctx *ctx, rq_cellblock *out, bool *ret_answered,
                        rq_error *why);

#endif
