/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One family's part of a get, in one go and without a scanner: the short way for rows that lie in
 * one place, which is nearly every row nearly all the time. What it cannot answer it leaves
 * untouched, and the store scanner does it.
 */
#ifndef RQ_STORE_ROW_GET_H
#define RQ_STORE_ROW_GET_H

#include "hfile/read_ctx.h"
#include "store/scan.h"
#include "store/store.h"

/*
 * Appends what the scan, a get, finds in the version at the read point. *ret_answered false, and
 * nothing was appended: a store scanner must be asked. RQ_E_AGAIN: likewise, and the ctx has a need
 * that the scanner will have too; other errors are what the scanner would find. `family`: what is
 * asked of this family, NULL for everything. REQUIRES: the scan has is_get, no filter, no limit and
 * offset per row, and is not raw.
 */
RQ_NODISCARD
rq_err rq_store_get_row(const rq_store *store, const rq_store_version *v, const rq_scan *scan,
                        const rq_scan_family *family, uint64_t read_point, int64_t now_ms,
                        rq_arena *arena, rq_read_ctx *ctx, rq_cellblock *out, bool *ret_answered,
                        rq_error *why);

#endif
