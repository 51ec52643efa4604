/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read of one family: merges the sources of its cells, driven by the query matcher's decision on
 * each cell (HBASE: StoreScanner, ReversedStoreScanner).
 *
 *     merge (sources) ──► cell ──► matcher ──► returned: appended to the result
 *        ▲                            │
 *        └── step, seek, next row ◄───┘
 *
 * "Next column" and "next row" are first tried by stepping: passing a few cells costs less than a
 * seek. Only after SKIP_STEPS cells the sources seek.
 *
 * Invariants:
 * 1. The matcher sees each cell once. Its decision is stored (`skip`, the merge's pending step or
 *    seek) before anything that may end with RQ_E_AGAIN or at a limit, so a repeated call continues
 *    behind the cell.
 * 2. The current row is `row`, a copy. The scanner is `in_row` from the first cell the matcher saw
 *    until the row ends in this family; the trackers' state belongs to this span.
 * 3. At the empty qualifier, where family markers are, no marker is skipped unread (HBASE-18471);
 *    "next column" there skips puts only.
 */
#include "store/store_scanner.h"

#include "base/work_limit.h"
#include "store/merge.h"
#include "store/mob_files.h"
#include "store/query_matcher.h"
#include "store/row_pass.h"
#include "store/row_run.h"

#define SKIP_STEPS 8
/* Cells with the matcher's code SKIP after which the scanner asks again whether a seek would pass
 * more of them. */
#define SKIPS_BEFORE_SEEK 16
/* Cells between two looks at the clock. */
#define CLOCK_CELLS 128
/* Cells hidden by the read point between two looks at the clock. A scan of a region under writes may
 * pass the cells of all writes since the scan was opened. */
#define CLOCK_HIDDEN 1024
/* A longer value counts as one cell for each of these many bytes. */
#define CLOCK_VALUE_BYTES 8192
/* Steps of the tracker of NEW_VERSION_BEHAVIOR that count as one cell. */
#define CLOCK_TRACKER_STEPS 16

typedef enum skip_kind {
    SKIP_NOTHING,
    SKIP_COLUMN, /* to skip_to, or behind skip_column */
    SKIP_ROW,
} skip_kind;

struct rq_store_scanner {
    const rq_store *store;
    const rq_scan *scan;
    rq_arena *arena;
    rq_slice family;
    rq_cell_order order;
    uint64_t read_point;
    rq__wanted_times times;
    rq__merge merge;
    rq__query_matcher matcher;
    rq_cell start_without_markers;
    bool is_get;
    bool started;
    bool ended;
    bool first_cell_only; /* an existence check */
    bool dont_cache;
    bool transforms; /* the filter may */
    bool may_pass;   /* row_pass.h */
    bool may_take;   /* row_run.h */

    bool in_row;
    rq__kept_bytes row;
    int32_t shown; /* of the row, the skipped offset included */
    skip_kind skip;
    uint32_t skip_left;
    uint32_t skips; /* number of cells with SKIP */
    bool has_skip_to;
    rq_slice skip_to; /* a column of the scan's */
    rq__kept_bytes skip_column;
    uint32_t clock_left;
    uint32_t clock_cells;   /* CLOCK_CELLS, or fewer if the filter has many parts */
    uint64_t tracker_steps; /* those that were counted */

    struct mob_part *mob; /* NULL: values are where their keys are */
};

/* For a MOB family: a reference is returned as the value it refers to. Reading that value may have
 * to wait after the matcher saw the cell, so the matcher's decision is stored. */
typedef struct mob_part {
    rq_mob_read read;
    bool has_match;
    rq__match match; /* for the current row's cell with this qualifier, … */
    rq__kept_bytes qualifier;
    int64_t timestamp;
    uint8_t type;
} mob_part;

/* The longest common prefix of all rows of the scan. HBase takes the common prefix of start and
 * stop row. If the stop row is the first row behind a prefix of the start row ("ab" to "ac", as
 * clients make prefix scans), that prefix is common to all rows in between as well. */
static rq_slice shared_prefix(const rq_scan *scan)
{
    rq_slice low = scan->reversed ? scan->stop_row : scan->start_row;
    rq_slice high = scan->reversed ? scan->start_row : scan->stop_row;
    size_t n = low.len < high.len ? low.len : high.len;
    size_t i = 0;
    while (i < n && low.ptr[i] == high.ptr[i])
        i++;
    bool high_is_in = scan->reversed || scan->include_stop;
    if (i < n && i + 1 == high.len && high.ptr[i] == low.ptr[i] + 1 && !high_is_in) i++;
    return rq_slice_of(low.ptr, i);
}

/* HBASE: MobStoreScanner. */
static rq_err add_mob_part(rq_store_scanner *s)
{
    if (s->first_cell_only) return RQ_OK; /* the value is not used */
    s->mob = rq_arena_calloc(s->arena, 1, sizeof *s->mob);
    if (s->mob == NULL) return RQ_E_NO_MEMORY;
    s->mob->read = (rq_mob_read){
        .files = rq__store_mob(s->store)->files,
        .family = s->family,
        .read_point = s->read_point,
        .cache_blocks = s->scan->mob_cache_blocks,
        .empty_on_miss = s->scan->mob_empty_on_miss,
    };
    return RQ_OK;
}

rq_err rq_store_scanner_new(const rq_store *store, const rq_scan *scan,
                            const rq_scan_family *family, uint64_t read_point, int64_t now_ms,
                            rq_arena *arena, rq_store_scanner **ret, rq_error *why)
{
    const rq_family_schema *schema = rq_store_schema(store);
    if (scan->raw && family != NULL && family->qualifier_count > 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Cannot specify any column for a raw scan");

    rq_store_scanner *s = rq_arena_alloc(arena, sizeof(*s));
    if (s == NULL) return RQ_E_NO_MEMORY;
    *s = (rq_store_scanner){
        .store = store,
        .scan = scan,
        .arena = arena,
        .family = schema->name,
        .order = rq_store_order(store),
        .read_point = read_point,
        .is_get = scan->is_get,
        .first_cell_only = scan->is_get && scan->check_existence_only && scan->filter == NULL,
        .dont_cache = !scan->cache_blocks || !rq__store_cache_options(store)->data_on_read,
        .transforms = scan->filter != NULL && rq_filter_may_transform(scan->filter),
        .clock_left = rq_filter_clock(scan->filter, CLOCK_CELLS),
        .clock_cells = rq_filter_clock(scan->filter, CLOCK_CELLS),
    };
    if (rq__store_mob(store) != NULL && !scan->mob_raw) RQ_TRY(add_mob_part(s));
    RQ_TRY(rq__query_matcher_init(&s->matcher, arena, schema, scan, family, now_ms));
    s->may_pass = s->mob == NULL && rq__row_pass_is_for(scan, &s->matcher);
    s->may_take = s->mob == NULL && rq__row_run_is_for(scan, &s->matcher);
    s->times = rq__query_matcher_times(&s->matcher, schema, read_point);
    rq__merge_init(&s->merge, arena, schema->name, s->order, read_point);
    rq__merge *m = &s->merge;
    m->reversed = scan->reversed;
    m->hidden_left = CLOCK_HIDDEN;
    bool has_columns = rq__column_tracker_is_explicit(&s->matcher.columns);
    m->lazy = has_columns && !scan->reversed;
    bool is_one_row = scan->start_row.len > 0 && rq_slice_eq(scan->start_row, scan->stop_row);
    m->expects_walk = s->may_take && !is_one_row; /* equal and empty: all rows */
    if (!s->is_get && s->order == RQ_ORDER_DEFAULT) {
        m->bloom.row = shared_prefix(scan);
        m->bloom.is_prefix = true;
        m->bloom.store = store;
        m->use_bloom = schema->bloom == RQ_BLOOM_ROWPREFIX_FIXED_LENGTH && m->bloom.row.len > 0;
    }
    if (s->is_get) {
        m->use_bloom = true;
        m->bloom.store = store;
        m->bloom.row = scan->start_row;
        m->bloom.has_column = has_columns && family->qualifier_count == 1;
        if (m->bloom.has_column) m->bloom.column = family->qualifiers[0];
        if (has_columns && family->qualifiers[0].len > 0) {
            s->start_without_markers =
                rq_cell_first_on_column(scan->start_row, schema->name, family->qualifiers[0]);
            m->start_without_markers = &s->start_without_markers;
        }
    }
    *ret = s;
    return RQ_OK;
}

/* --- the sources ------------------------------------------------------------------------------ */
/* Whether the file may hold a cell in the scan's rows. */
static bool overlaps_rows(const rq_store_scanner *s, const rq_hfile_info *info)
{
    const rq_scan *scan = s->scan;
    rq_slice low = scan->reversed ? scan->stop_row : scan->start_row;
    rq_slice high = scan->reversed ? scan->start_row : scan->stop_row;
    if (s->is_get) low = high = scan->start_row;
    rq_cell first;
    rq_cell last;
    if (rq_cell_parse_stored_key(info->first_key, &first, NULL) != RQ_OK ||
        rq_cell_parse_stored_key(info->last_key, &last, NULL) != RQ_OK)
        return true;
    if (high.len > 0 && rq_row_compare(s->order, rq_cell_row(&first), high) > 0) return false;
    return low.len == 0 || rq_row_compare(s->order, rq_cell_row(&last), low) >= 0;
}

static bool file_may_matter(const rq_store_scanner *s, const rq_store_file *f)
{
    return rq__file_has_times(f, &s->times) && overlaps_rows(s, rq_hfile_reader_info(f->reader));
}

static rq_err start_merge(rq_store_scanner *s)
{
    const rq_scan *scan = s->scan;
    rq_slice row = scan->start_row;
    if (!scan->reversed) {
        rq_cell key =
            scan->include_start || s->is_get ? rq_cell_first_on_row(row) : rq_cell_last_on_row(row);
        return rq__merge_start(&s->merge, &key);
    }
    if (row.len == 0) return rq__merge_start_before(&s->merge, false, NULL);
    rq_cell key = scan->include_start ? rq_cell_last_on_row(row) : rq_cell_first_on_row(row);
    return rq__merge_start_before(&s->merge, true, &key);
}

static rq_err open_merge(rq_store_scanner *s)
{
    rq__merge *m = &s->merge;
    const rq_store_version *v = rq_store_version_now(s->store);
    RQ_TRY(rq__merge_begin(m, v->file_count + v->snapshot_count + 1));
    for (size_t i = 0; i < v->file_count; i++) {
        if (file_may_matter(s, &v->files[i])) rq__merge_add_file(m, &v->files[i]);
    }
    for (size_t i = v->snapshot_count; i-- > 0;)
        rq__merge_add_segment(m, v->snapshots[i]);
    if (v->active != NULL) rq__merge_add_segment(m, v->active);
    if (s->started) {
        rq__merge_resume(m);
        return RQ_OK;
    }
    s->started = true;
    return start_merge(s);
}

rq_err rq_store_scanner_suspend(rq_store_scanner *s)
{
    if (s->mob != NULL) rq__mob_read_release(&s->mob->read);
    return rq__merge_park(&s->merge);
}

void rq_store_scanner_lend(rq_store_scanner *s, rq_arena *lent)
{
    rq__merge_lend(&s->merge, lent);
}

void rq_store_scanner_close(rq_store_scanner *s)
{
    if (s == NULL) return;
    if (s->mob != NULL) rq__mob_read_release(&s->mob->read);
    rq__merge_clear(&s->merge);
    s->ended = true;
}

/* --- going on --------------------------------------------------------------------------------- */
static inline bool same_row(const rq_store_scanner *s, const rq_cell *cell)
{
    return rq_short_eq(cell->row, cell->row_len, s->row.ptr, s->row.len);
}

/* Whether the cell belongs to the part being skipped. */
static bool to_be_skipped(const rq_store_scanner *s, const rq_cell *cell)
{
    if (!same_row(s, cell)) return false;
    if (s->skip == SKIP_ROW) return true;
    rq_slice qualifier = rq_cell_qualifier(cell);
    if (s->has_skip_to) return rq_slice_compare(qualifier, s->skip_to) < 0;
    return rq_slice_eq(qualifier, rq__kept_bytes_slice(&s->skip_column));
}

static rq_err seek_past(rq_store_scanner *s)
{
    rq_slice row = rq__kept_bytes_slice(&s->row);
    rq_cell key;
    if (s->skip == SKIP_ROW) {
        if (s->scan->reversed) return rq__merge_previous_row(&s->merge);
        key = rq_cell_last_on_row(row);
    } else if (s->has_skip_to) {
        key = rq_cell_first_on_column(row, s->family, s->skip_to);
    } else {
        key = rq_cell_last_on_column(row, s->family, rq__kept_bytes_slice(&s->skip_column));
    }
    return rq__merge_seek(&s->merge, &key);
}

static uint64_t clock_ns(const rq_store_scanner *s)
{
    rq_executor *ex = rq_store_env(s->store)->executor;
    return ex->now_ns(ex);
}

static rq_err look_for_top(rq_store_scanner *s, uint64_t yield_ns, rq_read_ctx *ctx,
                           const rq_cell **ret, rq_error *why)
{
    if (s->ended) return RQ_E_END;
    if (!s->merge.is_open) {
        if (s->merge.at_end) return RQ_E_END;
        RQ_TRY(open_merge(s));
    }
    ctx->dont_cache = s->dont_cache;
    for (;;) {
        rq_err rc = rq__merge_top(&s->merge, ctx, ret, why);
        if (RQ_UNLIKELY(rc == RQ_E_AGAIN && s->merge.hidden_left == 0)) {
            s->merge.hidden_left = CLOCK_HIDDEN;
            if (yield_ns != 0 && clock_ns(s) >= yield_ns) return RQ_E_AGAIN;
            continue;
        }
        if (rc != RQ_OK) return rc;
        rq_work_count(0);
        if (RQ_LIKELY(s->skip == SKIP_NOTHING)) return RQ_OK;
        if (!to_be_skipped(s, *ret)) {
            s->skip = SKIP_NOTHING;
            return RQ_OK;
        }
        if (s->skip_left > 0) {
            s->skip_left--;
            rq__merge_step(&s->merge);
        } else {
            RQ_TRY(seek_past(s));
            /* The seek may end at a cell that is to be skipped again, because its key equals the
             * seek's. Then the next cells are stepped over without another seek. */
            s->skip_left = UINT32_MAX;
        }
        if (yield_ns != 0 && --s->clock_left == 0) {
            s->clock_left = s->clock_cells;
            if (clock_ns(s) >= yield_ns) return RQ_E_AGAIN;
        }
    }
}

/* The next cell that is not skipped. The region scanner and this file ask for it repeatedly until it
 * is taken; from the second time on it is the merge's current cell, and no skip is pending. */
static inline rq_err top(rq_store_scanner *s, uint64_t yield_ns, rq_read_ctx *ctx,
                         const rq_cell **ret, rq_error *why)
{
    if (s->merge.current == NULL || s->skip != SKIP_NOTHING || s->ended)
        return look_for_top(s, yield_ns, ctx, ret, why);
    *ret = s->merge.current;
    return RQ_OK;
}

/* At the end of a row. A filter that is finished ends the scan here, before it is reset for the
 * next row. HBASE: StoreScanner.next, which matches the next row's cell before it returns. */
static void leave_row(rq_store_scanner *s)
{
    s->in_row = false;
    if (s->is_get || (s->matcher.filter_may_end && rq_filter_all_remaining(s->matcher.filter)))
        s->ended = true;
}

/* Skips the rest of the current row; the merge is at a cell of it or moving behind one. */
static rq_err skip_row(rq_store_scanner *s)
{
    bool was_in_row = s->in_row;
    s->in_row = false;
    if (s->is_get) {
        s->ended = true;
        return RQ_OK;
    }
    if (s->merge.current != NULL && s->skip == SKIP_NOTHING &&
        rq__merge_skip_row_here(&s->merge, was_in_row))
        return RQ_OK;
    if (!was_in_row) {
        const rq_cell *cell = s->merge.heap[0]->cell;
        RQ_TRY(rq__kept_bytes_set(&s->row, s->arena, cell->row, cell->row_len));
    }
    s->skip = SKIP_ROW;
    s->skip_left = s->scan->reversed ? 0 : SKIP_STEPS;
    return RQ_OK;
}

/* Skips the cell's column; the merge is at the cell. */
static rq_err skip_column(rq_store_scanner *s, const rq_cell *cell)
{
    if (cell->qualifier_len > 0) {
        s->has_skip_to = rq__query_matcher_hint(&s->matcher, &s->skip_to) &&
                         rq_slice_compare(s->skip_to, rq_cell_qualifier(cell)) > 0;
        if (!s->has_skip_to)
            RQ_TRY(rq__kept_bytes_set(&s->skip_column, s->arena, cell->qualifier,
                                      cell->qualifier_len));
        s->skip = SKIP_COLUMN;
        s->skip_left = SKIP_STEPS;
    }
    rq__merge_step(&s->merge);
    return RQ_OK;
}

/* Continues behind a cell with SKIP. There may be many writes of one timestamp or markers of one
 * column: all deletes of a batch have the batch's time. */
static rq_err pass_skipped(rq_store_scanner *s, const rq_cell *cell, rq__merge_moved *ret)
{
    rq_cell key;
    if (RQ_LIKELY(++s->skips % SKIPS_BEFORE_SEEK != 0) ||
        !rq__query_matcher_skip_to(&s->matcher, cell, &key)) {
        *ret = rq__merge_step_in_row(&s->merge);
        return RQ_OK;
    }
    return rq__merge_seek(&s->merge, &key);
}

static rq_err follow_hint(rq_store_scanner *s, const rq_cell *cell)
{
    rq_cell hint;
    bool has = false;
    RQ_TRY(rq_filter_next_cell_hint(s->matcher.filter, cell, &hint, &has));
    if (has) {
        int rows = rq_row_compare(s->order, rq_cell_row(&hint), rq_cell_row(cell));
        if (s->scan->reversed) {
            if (rows < 0) return rq__merge_seek_back(&s->merge, &hint);
        } else if (rows > 0 || (rows == 0 && cell->qualifier_len > 0 &&
                                rq_cell_compare_key(s->order, &hint, cell) > 0)) {
            return rq__merge_seek(&s->merge, &hint);
        }
    }
    rq__merge_step(&s->merge);
    return RQ_OK;
}

rq_err rq_store_scanner_peek_row(rq_store_scanner *s, uint64_t yield_ns, rq_read_ctx *ctx,
                                 rq_slice *ret, rq_error *why)
{
    const rq_cell *cell = NULL;
    RQ_TRY(top(s, yield_ns, ctx, &cell, why));
    if (s->in_row && !same_row(s, cell)) { /* a limit stopped just before the row's end */
        leave_row(s);
        if (s->ended) return RQ_E_END;
    }
    *ret = rq_cell_row(cell);
    return RQ_OK;
}

rq_err rq_store_scanner_skip_row(rq_store_scanner *s)
{
    if (s->ended || s->merge.at_end) return RQ_OK;
    RQ_ASSERT(s->in_row || (s->merge.is_open && s->merge.heap_len > 0));
    return skip_row(s);
}

rq_err rq_store_scanner_seek_row(rq_store_scanner *s, rq_slice row)
{
    RQ_ASSERT(!s->scan->reversed);
    if (s->ended || s->merge.at_end) return RQ_OK;
    RQ_ASSERT(s->merge.is_open && s->merge.heap_len > 0);
    const rq_cell *cell = s->merge.heap[0]->cell;
    if (rq_row_compare(s->order, rq_cell_row(cell), row) >= 0) return RQ_OK;
    s->in_row = false;
    s->skip = SKIP_NOTHING;
    rq_cell key = rq_cell_first_on_row(row);
    return rq__merge_seek(&s->merge, &key);
}

/* --- the row ---------------------------------------------------------------------------------- */
static rq_err enter_row(rq_store_scanner *s, const rq_cell *cell)
{
    RQ_TRY(rq__kept_bytes_set(&s->row, s->arena, cell->row, cell->row_len));
    rq__query_matcher_reset(&s->matcher);
    s->shown = 0;
    s->in_row = true;
    rq__merge_find_run(&s->merge);
    return RQ_OK;
}

static rq_err append(rq_store_scanner *s, const rq_cell *cell, rq_cellblock *out, rq_read_ctx *ctx,
                     rq_error *why)
{
    if (RQ_LIKELY(s->mob == NULL) || !rq__mob_is_reference(cell)) {
        rq_slice keyvalue;
        if (cell == s->merge.current && cell->tags_len == 0 &&
            rq__merge_keyvalue(&s->merge, &keyvalue))
            return rq_cellblock_append_keyvalue(out, keyvalue);
        return rq_cellblock_append(out, cell);
    }
    rq_cell value;
    rq_err rc = rq__mob_read_cell(&s->mob->read, cell, ctx, &value, why);
    if (rc == RQ_OK && !rq_read_ctx_may_copy(ctx, value.value_len)) rc = RQ_E_AGAIN;
    if (rc == RQ_OK) rc = rq_cellblock_append(out, &value);
    /* Nothing is pinned once the value is copied; a repeated call finds the blocks in the ctx. */
    rq__mob_read_release(&s->mob->read);
    return rc;
}

/* In a row that a fast path has begun; the matcher has seen its cells so far. */
static rq_err enter_behind(rq_store_scanner *s, rq_slice row, uint32_t shown)
{
    RQ_TRY(rq__kept_bytes_set(&s->row, s->arena, row.ptr, row.len));
    s->shown = shown < INT32_MAX ? (int32_t)shown : INT32_MAX;
    s->in_row = true;
    s->clock_left = s->clock_cells; /* the matcher's decision is for this very cell */
    rq__merge_find_run(&s->merge);
    return RQ_OK;
}

bool rq_store_scanner_may_pass(const rq_store_scanner *s)
{
    return s->may_pass;
}

rq_err rq_store_scanner_pass_rows(rq_store_scanner *s, rq_store_read *read, rq_store_pass *pass,
                                  rq_error *why)
{
    RQ_ASSERT(s->may_pass && !s->in_row && s->merge.current != NULL && s->skip == SKIP_NOTHING);
    uint32_t shown = 0;
    RQ_TRY(rq__row_pass(&s->merge, &s->matcher, s->scan, pass, read->out, &shown, &s->ended, why));
    read->cells += shown;
    if (pass->end != RQ_STORE_PASS_IN_ROW) return RQ_OK;
    RQ_TRY(enter_behind(s, pass->row, shown));
    return pass->column_is_done ? skip_column(s, s->merge.current) : RQ_OK;
}

bool rq_store_scanner_may_take(const rq_store_scanner *s)
{
    return s->may_take;
}

rq_err rq_store_scanner_take_rows(rq_store_scanner *s, rq_store_rows *rows, rq_cellblock *out)
{
    RQ_ASSERT(s->may_take && !s->in_row && s->merge.current != NULL && s->skip == SKIP_NOTHING);
    RQ_TRY(rq__row_run(&s->merge, &s->matcher, s->scan, rows, out));
    if (rows->stop != RQ_STORE_ROWS_IN_ROW) return RQ_OK;
    return enter_behind(s, rows->row, out->count - rows->end.count);
}

RQ_COLD static rq_err too_big(const rq_scan *scan, rq_error *why)
{
    return rq_fail(why, RQ_E_ROW_TOO_BIG,
                   "Max row size allowed: %llu, but the row is bigger than that: read it by a scan "
                   "with partial results, or raise hbase.table.max.rowsize and rorqual.memory",
                   (unsigned long long)scan->row_bytes_max);
}

/* Appends the cell unless the row's offset skips it. *ret_done: the row's limit is reached. HBASE:
 * the limit is checked after a cell was added, so a limit of 0 returns one cell. RQ_E_AGAIN:
 * nothing has changed. */
static rq_err show(rq_store_scanner *s, const rq_cell *cell, rq_store_read *read, rq_read_ctx *ctx,
                   bool *ret_done, rq_error *why)
{
    const rq_scan *scan = s->scan;
    *ret_done = false;
    rq_cell transformed;
    if (s->transforms) {
        rq_filter_transform_cell(s->matcher.filter, cell, &transformed);
        cell = &transformed;
    }
    if (s->shown >= scan->store_offset) {
        /* Checked before the value is copied. The length of a value in a MOB file is known only after append. */
        if (RQ_UNLIKELY(read->out->bytes.len + cell->value_len > read->len_max))
            return too_big(scan, why);
        RQ_TRY(append(s, cell, read->out, ctx, why));
    }
    s->shown++;
    if (s->shown <= scan->store_offset) return RQ_OK;
    if (RQ_UNLIKELY(read->out->bytes.len > read->len_max)) return too_big(scan, why);
    read->cells++;
    *ret_done = s->first_cell_only || (scan->store_limit > -1 &&
                                       s->shown >= (int64_t)scan->store_limit + scan->store_offset);
    return RQ_OK;
}

static bool limit_reached(const rq_store_read *read, rq_store_state *ret)
{
    if (read->cells_max > 0 && read->cells >= read->cells_max) {
        *ret = RQ_STORE_CELLS_REACHED;
        return true;
    }
    if (read->bytes_max > 0 && rq_result_bytes(read->out) >= read->bytes_max) {
        *ret = RQ_STORE_BYTES_REACHED;
        return true;
    }
    return false;
}

/* RQ_OK: continue; *ret_timed_out: the deadline has passed. */
static rq_err check_clock(rq_store_scanner *s, const rq_store_read *read, rq_read_ctx *ctx,
                          bool *ret_timed_out)
{
    s->clock_left = s->clock_cells;
    ctx->cells_passed += s->clock_cells;
    if (read->deadline_ns == 0 && read->yield_ns == 0) return RQ_OK;
    uint64_t now = clock_ns(s);
    *ret_timed_out = read->deadline_ns != 0 && now >= read->deadline_ns;
    return !*ret_timed_out && read->yield_ns != 0 && now >= read->yield_ns ? RQ_E_AGAIN : RQ_OK;
}

static void count_cells(rq_store_scanner *s, uint64_t cells)
{
    s->clock_left = s->clock_left > cells ? s->clock_left - (uint32_t)cells : 1;
}

/* Before the filter sees it. The clock is looked at after a long value, not before it: a call makes progress. */
static rq_err enter_long_value(rq_store_scanner *s, rq_read_ctx *ctx, uint32_t len)
{
    if (!rq_read_ctx_may_copy(ctx, len)) return RQ_E_AGAIN;
    count_cells(s, len / CLOCK_VALUE_BYTES);
    return RQ_OK;
}

static void count_tracker_steps(rq_store_scanner *s)
{
    uint64_t now = rq__new_version_tracker_steps(s->matcher.tracker);
    if (now - s->tracker_steps < CLOCK_TRACKER_STEPS) return;
    count_cells(s, (now - s->tracker_steps) / CLOCK_TRACKER_STEPS);
    s->tracker_steps = now;
}

/* A compaction may have dropped the cell between two calls: then it is treated as not yet seen. */
static bool was_matched(mob_part *m, const rq_cell *cell)
{
    if (!m->has_match) return false;
    m->has_match = false;
    return cell->timestamp == m->timestamp && cell->type == m->type &&
           rq_slice_eq(rq_cell_qualifier(cell), rq__kept_bytes_slice(&m->qualifier));
}

static rq_err keep_match(rq_store_scanner *s, const rq_cell *cell, rq__match match)
{
    mob_part *m = s->mob;
    RQ_TRY(rq__kept_bytes_set(&m->qualifier, s->arena, cell->qualifier, cell->qualifier_len));
    m->timestamp = cell->timestamp;
    m->type = cell->type;
    m->match = match;
    m->has_match = true;
    return RQ_OK;
}

/* The next cell of the current row, entering the row at its first cell; *ret NULL: there is
 * none. */
static rq_err find_cell_of_row(rq_store_scanner *s, uint64_t yield_ns, rq_read_ctx *ctx,
                               const rq_cell **ret, rq_error *why)
{
    const rq_cell *cell = NULL;
    *ret = NULL;
    rq_err rc = top(s, yield_ns, ctx, &cell, why);
    if (rc == RQ_E_END) {
        s->in_row = false;
        return RQ_OK;
    }
    if (rc != RQ_OK) return rc;
    if (!s->in_row) {
        if (RQ_UNLIKELY(s->mob != NULL)) s->mob->has_match = false;
        RQ_TRY(enter_row(s, cell));
    } else if (!same_row(s, cell)) {
        leave_row(s);
        return RQ_OK;
    } else if (s->merge.run_stopped) {
        rq__merge_find_run(&s->merge);
    }
    *ret = cell;
    return RQ_OK;
}

rq_err rq_store_scanner_next(rq_store_scanner *s, rq_store_read *read, rq_read_ctx *ctx,
                             rq_store_state *ret, rq_error *why)
{
    rq__merge_moved moved = RQ__MERGE_STEPPED;
    *ret = RQ_STORE_ROW_DONE;
    for (;;) {
        const rq_cell *cell = s->merge.current;
        if (moved != RQ__MERGE_IN_ROW) {
            RQ_TRY(find_cell_of_row(s, read->yield_ns, ctx, &cell, why));
            if (cell == NULL) return RQ_OK;
        }

        if (RQ_UNLIKELY(--s->clock_left == 0)) {
            bool timed_out = false;
            RQ_TRY(check_clock(s, read, ctx, &timed_out));
            if (timed_out) {
                *ret = RQ_STORE_TIME_REACHED;
                return RQ_OK;
            }
        }
        if (RQ_UNLIKELY(cell->value_len >= CLOCK_VALUE_BYTES))
            RQ_TRY(enter_long_value(s, ctx, cell->value_len));

        rq_work_count(cell->value_len);

        rq__match match;
        if (RQ_UNLIKELY(s->mob != NULL) && was_matched(s->mob, cell))
            match = s->mob->match;
        else
            RQ_TRY(rq__query_matcher_match(&s->matcher, cell, &match, why));
        if (RQ_UNLIKELY(s->matcher.tracker != NULL)) count_tracker_steps(s);
        bool row_limit = false;
        moved = RQ__MERGE_STEPPED;
        switch (match) {
        case RQ__MATCH_INCLUDE:
        case RQ__MATCH_INCLUDE_AND_NEXT_COLUMN:
        case RQ__MATCH_INCLUDE_AND_NEXT_ROW: {
            rq_err rc = show(s, cell, read, ctx, &row_limit, why);
            if (rc == RQ_E_AGAIN) RQ_TRY(keep_match(s, cell, match));
            if (rc != RQ_OK) return rc;
            if (row_limit || match == RQ__MATCH_INCLUDE_AND_NEXT_ROW) {
                RQ_TRY(skip_row(s));
                if (!row_limit) leave_row(s);
                return RQ_OK;
            }
            if (match == RQ__MATCH_INCLUDE_AND_NEXT_COLUMN)
                RQ_TRY(skip_column(s, cell));
            else
                moved = rq__merge_step_in_row(&s->merge);
            if (limit_reached(read, ret)) return RQ_OK;
            break;
        }
        case RQ__MATCH_SKIP:
            RQ_TRY(pass_skipped(s, cell, &moved));
            break;
        case RQ__MATCH_NEXT_COLUMN:
            RQ_TRY(skip_column(s, cell));
            break;
        case RQ__MATCH_NEXT_ROW:
            RQ_TRY(skip_row(s));
            leave_row(s);
            return RQ_OK;
        case RQ__MATCH_HINT:
            RQ_TRY(follow_hint(s, cell));
            break;
        case RQ__MATCH_SCAN_DONE:
            s->ended = true;
            s->in_row = false;
            return RQ_OK;
        }
        if (moved == RQ__MERGE_ROW_OVER) {
            leave_row(s);
            return RQ_OK;
        }
    }
}
