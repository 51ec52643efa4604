/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of a get: no scanner, no allocation, no reference, no registered read point;
 * contract in region_scanner.h.
 *
 * A scanner registers its read point so that no flush or compaction drops cells it sees (region.c).
 * Here instead the stores' versions are loaded *before* the read point and must be the same after
 * it:
 *
 *  1. Cells missing in a version's files were dropped by a compaction that saw a read point at or
 *     below ours, since read points only rise and the version existed before ours was loaded. So no
 *     cell visible at our read point is missing.
 *  2. Cells at or below our read point were linked into segments that were active then. A segment
 *     becomes active by publishing a version, under the token, before the first cell is linked into
 *     it. The version is still the newest after the read point was loaded, so it has all those
 *     segments, or the files made of them.
 *
 * The versions are then read inside the caller's one read section.
 */
#include "region/region_priv.h"
#include "region/region_scanner.h"
#include "store/row_get.h"

/* Gets of more families are few. */
#define FAMILIES_MAX 4

typedef struct part {
    const rq_store *store;
    const rq_store_version *version;
    const rq_scan_family *family;
} part;

/* Whether row_get.h supports this kind of get. Invalid requests get their error on the ordinary
 * path. */
static bool is_plain(const rq_region *r, const rq_scan *scan)
{
    return scan->filter == NULL && !scan->raw && !scan->read_uncommitted && scan->store_limit < 0 &&
           scan->store_offset <= 0 && rq__region_state_now(r) == RQ__REGION_OPEN &&
           rq_region_info_contains(&r->info, scan->start_row);
}

/* The stores to read, in the order of the answer; 0: take the ordinary path. */
static size_t choose_parts(rq_region *r, const rq_scan *scan, part parts[FAMILIES_MAX])
{
    size_t count = scan->family_count == 0 ? r->store_count : scan->family_count;
    if (count > FAMILIES_MAX) return 0;
    size_t hint = 0;
    for (size_t i = 0; i < count; i++) {
        const rq_scan_family *family = scan->family_count == 0 ? NULL : &scan->families[i];
        const rq__region_store *s =
            family == NULL ? &r->stores[i] : rq__region_store_of(r, family->family, &hint);
        if (s == NULL) return 0;
        parts[i] = (part){s->store, rq_store_version_now(s->store), family};
    }
    return count;
}

static bool versions_are_current(const part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rq_store_version_now(parts[i].store) != parts[i].version) return false;
    return true;
}

/* Without counting it. */
static rq_err get(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                  rq_cellblock *out, bool *ret_answered, rq_error *why)
{
    RQ_ASSERT(scan->is_get);
    *ret_answered = false;
    if (!is_plain(r, scan)) return RQ_OK;
    part parts[FAMILIES_MAX];
    size_t count = choose_parts(r, scan, parts);
    if (count == 0) return RQ_OK;
    uint64_t read_point = rq__region_read_point(r);
    if (!versions_are_current(parts, count)) return RQ_OK;

    int64_t now_ms = r->env.executor->now_ms(r->env.executor);
    rq_cellblock_mark mark = rq_cellblock_get_mark(out);
    rq_err rc = RQ_OK;
    bool answered = true;
    for (size_t i = 0; i < count && answered && rc == RQ_OK; i++)
        rc = rq_store_get_row(parts[i].store, parts[i].version, scan, parts[i].family, read_point,
                              now_ms, arena, ctx, out, &answered, why);
    if (count > 1 && scan->row_bytes_max != 0 && out->bytes.len - mark.len > scan->row_bytes_max)
        answered = false;
    *ret_answered = rc == RQ_OK && answered;
    if (!*ret_answered) rq_cellblock_truncate(out, mark);
    return rc;
}

rq_err rq_region_get(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                     rq_cellblock *out, bool *ret_answered, rq_error *why)
{
    rq_err rc = get(r, scan, arena, ctx, out, ret_answered, why);
    if (RQ_LIKELY(*ret_answered)) rq__region_count_read(r);
    return rc;
}

rq_err rq_region_look(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                      rq_cellblock *out)
{
    bool answered;
    rq_cellblock_mark mark = rq_cellblock_get_mark(out);
    rq_err rc = get(r, scan, arena, ctx, out, &answered, NULL);
    rq_cellblock_truncate(out, mark);
    return rc;
}
