/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a region's scanner: selects its stores and their order, refuses invalid scans, and takes
 * the read point that is held until the scanner is closed. Also reads a row for the holder of the
 * writer token. The reading itself is in region_scanner.c.
 *
 * Both files use the region only through region.h: tests/model replaces it by hand-made stores. */
#include "region/region_scanner_priv.h"

#include "base/meter.h"

#define SCRATCH_KEEP ((size_t)1 << 10) /* of a suspended scanner */

/* --- open and close --------------------------------------------------------------------------- */
static rq_err no_such_family(rq_region *r, rq_slice family, rq_error *why)
{
    char name[128];
    char region[512];
    const rq_region_info *info = rq_region_get_info(r);
    char table[512];
    rq_bytes_to_string(family, name, sizeof(name));
    rq_region_info_text(info, region, sizeof(region));
    rq_bytes_to_string(info->table, table, sizeof(table));
    return rq_fail(why, RQ_E_NO_SUCH_FAMILY,
                   "Column family %s does not exist in region %s in table '%s'", name, region,
                   table);
}

static rq_err check_row(rq_region *r, rq_slice row, rq_error *why)
{
    const rq_region_info *info = rq_region_get_info(r);
    if (rq_region_info_contains(info, row)) return RQ_OK;
    char region[256];
    char start[200];
    char end[200];
    char asked[200];
    rq_region_info_text(info, region, sizeof(region));
    rq_bytes_to_string(info->start_key, start, sizeof(start));
    rq_bytes_to_string(info->end_key, end, sizeof(end));
    rq_bytes_to_string(row, asked, sizeof(asked));
    return rq_fail(why, RQ_E_WRONG_REGION,
                   "Requested row out of range for Get on HRegion %s, startKey='%s', "
                   "getEndKey()='%s', row='%s'",
                   region, start, end, asked);
}

static rq_store *find_store(rq_region *r, rq_slice family)
{
    size_t lo = 0;
    size_t hi = rq_region_store_count(r);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        rq_store *store = rq_region_store_at(r, mid);
        int c = rq_slice_compare(rq_store_schema(store)->name, family);
        if (c == 0) return store;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool is_essential(const rq_region_scanner *s, rq_slice family)
{
    return s->filter == NULL || !s->scan->load_families_on_demand ||
           rq_filter_is_family_essential(s->filter, family);
}

/* The i-th family the scan asks for. */
static rq_err family_at(const rq_region_scanner *s, size_t i, rq_store **ret_store,
                        const rq_scan_family **ret_family, rq_error *why)
{
    if (s->scan->family_count == 0) {
        *ret_store = rq_region_store_at(s->region, i);
        *ret_family = NULL;
        return RQ_OK;
    }
    *ret_family = &s->scan->families[i];
    *ret_store = find_store(s->region, (*ret_family)->family);
    return *ret_store != NULL ? RQ_OK : no_such_family(s->region, (*ret_family)->family, why);
}

/* For scans that may read some of `count` stores on demand. */
static rq_err prepare_sorting(rq_region_scanner *s, size_t count)
{
    if (s->filter == NULL || !s->scan->load_families_on_demand) return RQ_OK;
    s->ranks = rq_arena_alloc(s->arena, count * sizeof *s->ranks);
    s->runs = rq_arena_alloc(s->arena, count * sizeof *s->runs);
    return s->ranks == NULL || s->runs == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err open_stores(rq_region_scanner *s, int64_t now_ms, rq_error *why)
{
    size_t count = s->scan->family_count;
    if (count == 0) count = rq_region_store_count(s->region);
    s->stores = rq_arena_alloc(s->arena, (count + 1) * sizeof(rq_store_scanner *));
    if (s->stores == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(prepare_sorting(s, count));
    /* An unknown family is reported before any other error. HBASE: HRegion. */
    for (size_t i = 0; i < count; i++) {
        rq_store *store;
        const rq_scan_family *family;
        RQ_TRY(family_at(s, i, &store, &family, why));
    }
    for (int essential = 1; essential >= 0; essential--) {
        for (size_t i = 0; i < count; i++) {
            rq_store *store;
            const rq_scan_family *family;
            RQ_TRY(family_at(s, i, &store, &family, why));
            if (is_essential(s, rq_store_schema(store)->name) != (essential == 1)) continue;
            RQ_TRY(rq_store_scanner_new(store, s->scan, family, s->read_point, now_ms, s->arena,
                                        &s->stores[s->store_count], why));
            if (s->ranks != NULL)
                s->ranks[s->store_count] = i; /* the scan's families are in order */
            s->store_count++;
        }
        if (essential == 1) {
            s->essential_count = s->store_count;
            if (s->store_count < count) continue;
            s->runs = NULL;
            break;
        }
    }
    if (s->scan->reversed && s->essential_count < s->store_count)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Reverse scan with loading CFs on demand is not supported");
    return RQ_OK;
}

static rq_err check_scan(rq_region *r, const rq_scan *scan, rq_error *why)
{
    if (scan->filter != NULL && scan->batch > 0 && rq_filter_has_filter_row(scan->filter))
        return rq_fail(why, RQ_E_INCOMPATIBLE_FILTER,
                       "Cannot set batch on a scan using a filter that returns true for "
                       "filter.hasFilterRow");
    return scan->is_get ? check_row(r, scan->start_row, why) : RQ_OK;
}

static rq_err open_scanner(rq_region *r, const rq_scan *scan, uint64_t read_point, bool staged,
                           rq_arena *arena, rq_region_scanner **ret, rq_error *why)
{
    rq_region_scanner *s = rq_arena_alloc(arena, sizeof(*s));
    if (s == NULL) return RQ_E_NO_MEMORY;
    *s = (rq_region_scanner){
        .region = r,
        .scan = scan,
        .is_get = scan->is_get,
        .filter = scan->filter,
        .arena = arena,
        .read_point = UINT64_MAX,
        .clock_left = rq_filter_clock(scan->filter, CLOCK_STEPS),
        .clock_steps = rq_filter_clock(scan->filter, CLOCK_STEPS),
    };
    rq_executor *ex = NULL;
    if (rq_region_store_count(r) > 0) {
        const rq_store *store = rq_region_store_at(r, 0);
        s->order = rq_store_order(store);
        ex = rq_store_env(store)->executor;
    }
    if (s->filter != NULL) {
        s->pace = rq_filter_pace(s->filter);
        s->has_filter_row = rq_filter_has_filter_row(s->filter);
        s->filter_sees_cells = rq_filter_sees_row_cells(s->filter);
        if (scan->reversed) rq_filter_set_reversed(s->filter, true);
        s->filter_judges_rows = rq_filter_judges_rows(s->filter);
        s->filter_resets = rq_filter_resets(s->filter);
        s->may_jump = !scan->reversed && !scan->is_get && s->order == RQ_ORDER_DEFAULT &&
                      rq_filter_has_row_hints(s->filter);
        s->shows_left_out = !scan->reversed && !scan->is_get && rq_filter_ends_at_cells(s->filter);
        if (ex != NULL) rq_filter_set_seed(s->filter, ex->random(ex));
    }
    if (!staged && !scan->read_uncommitted) {
        s->read_point = rq__region_read_point_acquire(r, read_point);
        s->holds_read_point = true;
    }
    s->region = rq_region_ref(r);
    rq_err rc = open_stores(s, ex != NULL ? ex->now_ms(ex) : 0, why);
    if (rc != RQ_OK) {
        rq_region_scanner_close(s);
        return rc;
    }
    s->may_pass = s->store_count == 1 && rq_store_scanner_may_pass(s->stores[0]);
    s->may_take = s->store_count == 1 && rq_store_scanner_may_take(s->stores[0]);
    bool stops_at_key =
        s->may_jump || s->shows_left_out || (s->may_pass && rq_filter_may_end(s->filter));
    s->pass = (rq_store_pass){.stops_at_key = stops_at_key,
                              .work_left = rq_filter_clock(s->filter, CLOCK_PASSED)};
    *ret = s;
    return RQ_OK;
}

rq_err rq_region_scanner_open(rq_region *r, const rq_scan *scan, uint64_t read_point,
                              rq_arena *arena, rq_region_scanner **ret, rq_error *why)
{
    if (rq_region_is_closing(r)) {
        char region[512];
        rq_region_info_text(rq_region_get_info(r), region, sizeof(region));
        return rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s is closing", region);
    }
    RQ_TRY(check_scan(r, scan, why));
    return open_scanner(r, scan, read_point, false, arena, ret, why);
}

/* HBASE: RegionScannerImpl.nextRaw and incrementCountOfRowsFilteredMetric count row by row. The row
 * of a get was counted when its scanner was opened. */
static void count_rows(rq_region_scanner *s)
{
    uint64_t filtered = s->stats.rows_filtered;
    uint64_t returned = s->is_get || s->stats.rows_scanned < filtered
                            ? s->counted_returned
                            : s->stats.rows_scanned - filtered;
    if (returned < s->counted_returned) returned = s->counted_returned;
    rq__region_count_rows(s->region, returned - s->counted_returned,
                          filtered - s->counted_filtered);
    s->counted_returned = returned;
    s->counted_filtered = filtered;
}

void rq_region_scanner_suspend(rq_region_scanner *s)
{
    count_rows(s);
    s->ahead.len = 0;
    for (size_t i = 0; i < s->store_count; i++) {
        rq_err rc = rq_store_scanner_suspend(s->stores[i]);
        if (rc != RQ_OK) s->failed = rc;
    }
    if (s->scratch.cap > SCRATCH_KEEP && s->decision == DECISION_NONE) rq_buf_clear(&s->scratch);
}

void rq_region_scanner_lend(rq_region_scanner *s, rq_arena *lent)
{
    for (size_t i = 0; i < s->store_count; i++)
        rq_store_scanner_lend(s->stores[i], lent);
}

void rq_region_scanner_close(rq_region_scanner *s)
{
    if (s == NULL || s->region == NULL) return;
    count_rows(s);
    for (size_t i = 0; i < s->store_count; i++)
        rq_store_scanner_close(s->stores[i]);
    if (s->holds_read_point) rq__region_read_point_release(s->region, s->read_point);
    rq_region_unref(s->region);
    rq_buf_clear(&s->scratch);
    s->region = NULL;
}

uint64_t rq_region_scanner_read_point(const rq_region_scanner *s)
{
    return s->read_point;
}

const rq_scan_stats *rq_region_scanner_stats(const rq_region_scanner *s)
{
    return &s->stats;
}

rq_slice rq_region_scanner_current_row(const rq_region_scanner *s)
{
    return rq_slice_of(s->row, s->row_len);
}

/* --- reads of ops that write ------------------------------------------------------------------ */

#define LONG_AGO 1

rq_err rq__staged_open(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_region_scanner **ret,
                       rq_error *why)
{
    RQ_ASSERT(scan->is_get);
    return open_scanner(r, scan, 0, true, arena, ret, why);
}

rq_err rq__staged_read_on(rq_region_scanner *s, rq_read_ctx *ctx, uint64_t yield_ns,
                          rq_cellblock *out, rq_error *why)
{
    rq_scan_limits limits = {.yield_ns = yield_ns};
    rq_scan_state state;
    s->keeps_allowance = true;
    return rq_region_scanner_next(s, &limits, ctx, out, &state, why);
}

rq_err rq__staged_next(rq_region_scanner *s, rq_read_ctx *ctx, rq__token_slice *slice,
                       rq_cellblock *out, rq_error *why)
{
    bool has_begun = slice->until_ns != 0;
    s->decides_at_once = true;
    rq_err rc = rq__staged_read_on(s, ctx, has_begun ? slice->until_ns : LONG_AGO, out, why);
    if (RQ_LIKELY(rc != RQ_E_AGAIN || has_begun || rq_read_ctx_needs(ctx))) return rc;
    slice->until_ns = rq__region_scanner_now(s) + RQ_METER_STRETCH_NS;
    return rq__staged_read_on(s, ctx, slice->until_ns, out, why);
}

rq_err rq__staged_read_row(rq_region *r, const rq_scan *scan, rq_arena *arena, rq_read_ctx *ctx,
                           rq__token_slice *slice, rq_cellblock *out, rq_error *why)
{
    rq_cellblock_mark mark = rq_cellblock_get_mark(out);
    rq_region_scanner *s = NULL;
    RQ_TRY(rq__staged_open(r, scan, arena, &s, why));
    rq_err rc = rq__staged_next(s, ctx, slice, out, why);
    rq_region_scanner_close(s);
    if (rc != RQ_OK) rq_cellblock_truncate(out, mark);
    return rc;
}
