/* SPDX-License-Identifier: Apache-2.0 */
/* A get without a scanner; contract in row_get.h.
 *
 *    active segment ─► snapshots ─► files, newest first
 *
 * Segments are first checked with their row filter, files with time range and bloom. Each source
 * that has the row becomes a *place*, a position in it, and the cells of all places are passed to
 * the query matcher in order. Mostly there is one place. Two shortcuts:
 *  - Named columns, and rows of sources that list their columns, are first read from the newest
 *    place alone. If no cell in the other sources can be newer than the cells found, the others are
 *    not read (rest_is_older).
 *  - Before a wanted column, and behind the newest version of a column, cells of a memstore segment are passed by a
 *    seek (place_next_column).
 *  - In a row with a thousand versions, only one cell of each column is looked at (columns_here).
 *
 * Invariant: the result equals the store scanner's. Both choose the same sources, pass cells to the
 * same matcher, and pass them in the same order (of equal cells, the newer source's first).
 *
 * There is one difference. After the matcher's answer NEXT_COLUMN the scanner seeks past the rest of
 * the column; a get passes these cells to the matcher as well. This does not change the result: the
 * matcher answers NEXT_COLUMN or SKIP for each of them, because the column is finished or its
 * versions are used up, and a delete marker among them affects this column only. Rows with many
 * cells to skip are left to the scanner, which can seek; so are rows in many places. */
#include "store/row_get.h"

#include "base/work_limit.h"
#include "hfile/qualifiers.h"
#include "store/query_matcher.h"
#include "store/row_filter.h"

/* Skipped cells in a row; beyond this many a seek is cheaper. */
#define PASS_MAX 12
/* Cells of writes that are not visible yet; beyond this many the scanner, which yields the loop, takes over: while the log waits for
 * its disk, a row that is overwritten gets a hundred thousand of them. */
#define HIDDEN_MAX 64
/* A longer value counts as one cell for each of these many bytes. */
#define PASS_VALUE_BYTES 65536
/* Skipped cells in a memstore segment; beyond this many the place seeks the next wanted column,
 * which is cheaper than opening a scanner. */
#define PASS_IN_COLUMN 3
/* Seeks without an included cell; beyond this many the scanner, which yields the loop, takes over. */
#define SEEKS_MAX 12
/* Larger rows are left to the scanner too, which yields the loop and limits their size; on a loop those above
 * RQ_READ_COPY_MAX. */
#define STRETCH_BYTES_MAX ((size_t)8 << 20)
#define PLACES_MAX 3

typedef struct row_get {
    const rq_scan *scan;
    const rq_scan_family *family;
    rq_slice family_name;
    rq_read_ctx *ctx;
    rq_cellblock *out;
    rq_cellblock_mark mark;
    rq__wanted_times times;
    rq__bloom_question bloom;
    uint64_t row_hash;
    rq__query_matcher matcher;
    bool has_columns;
    /* of the row as far as it was read */
    bool is_done; /* nothing more of it is wanted */
    bool gave_up;
    bool is_column_done; /* of the cell taken last */
    unsigned passed;     /* cells skipped since the last included cell or seek */
    unsigned seeks;      /* since the last included cell */
    unsigned hidden;     /* cells newer than the read point */
    size_t columns_here; /* of the only place that is read; SIZE_MAX: unknown, or not usable */
    int64_t oldest_seen; /* smallest timestamp of the cells the matcher has seen */
} row_get;

/* --- one cell --------------------------------------------------------------------------------- */
/* Whether the scanner must read the row, of which `len` bytes were found. */
static bool is_too_long(const row_get *g, size_t len)
{
    uint64_t most = g->scan->row_bytes_max;
    size_t stretch = g->ctx->copy_max != 0 ? g->ctx->copy_max : STRETCH_BYTES_MAX;
    return (len > stretch && !g->is_done) || (most != 0 && len > most);
}

static rq_err take(row_get *g, const rq_cell *cell, rq_error *why)
{
    rq_work_count(cell->value_len);
    g->is_column_done = false;
    if (RQ_UNLIKELY(cell->seqid > g->times.read_point)) {
        g->gave_up = ++g->hidden > HIDDEN_MAX;
        return RQ_OK;
    }
    if (cell->timestamp < g->oldest_seen) g->oldest_seen = cell->timestamp;
    rq__match match;
    RQ_TRY(rq__query_matcher_match(&g->matcher, cell, &match, why));
    /* Puts without a qualifier are interleaved with the markers of the whole family. */
    g->is_column_done = match == RQ__MATCH_NEXT_COLUMN && cell->qualifier_len > 0;
    switch (match) {
    case RQ__MATCH_INCLUDE:
    case RQ__MATCH_INCLUDE_AND_NEXT_COLUMN:
    case RQ__MATCH_INCLUDE_AND_NEXT_ROW:
        g->gave_up = g->ctx->copy_max != 0 && cell->value_len > g->ctx->copy_max;
        if (RQ_UNLIKELY(g->gave_up)) return RQ_OK;
        RQ_TRY(rq_cellblock_append(g->out, cell));
        g->passed = g->seeks = 0;
        /* With one version of each column, no two included cells are of the same column. */
        g->is_done = match == RQ__MATCH_INCLUDE_AND_NEXT_ROW || g->scan->check_existence_only ||
                     g->out->count - g->mark.count == g->columns_here;
        g->gave_up = is_too_long(g, g->out->bytes.len - g->mark.len);
        return RQ_OK;
    case RQ__MATCH_SKIP:
    case RQ__MATCH_NEXT_COLUMN:
        g->passed += 1 + cell->value_len / PASS_VALUE_BYTES;
        g->gave_up = g->passed > PASS_MAX;
        return RQ_OK;
    case RQ__MATCH_NEXT_ROW:
        g->is_done = true;
        return RQ_OK;
    case RQ__MATCH_HINT:
    case RQ__MATCH_SCAN_DONE:
        break; /* a filter's */
    }
    g->gave_up = true;
    return RQ_OK;
}

static inline bool is_in_row(const row_get *g, const rq_cell *cell)
{
    return rq_slice_eq(rq_cell_row(cell), g->scan->start_row);
}

/* --- places ----------------------------------------------------------------------------------- */
/* A position at a cell of the row, or behind the row: no cell. */
typedef struct place {
    const rq_cell *cell;
    const rq_store_file *meta; /* NULL: a segment */
    rq_segment_cursor cursor;
    rq_cell own; /* copy of the current cell, if it cannot be a view on the file's bytes */
    rq_hfile_scanner file;
} place;

/* Loads the cell at the new position if it is in the row. */
static void load_segment_cell(const row_get *g, place *p)
{
    p->cell = NULL;
    if (!rq__segment_cursor_valid(&p->cursor)) return;
    rq__segment_cursor_cell(&p->cursor, &p->own);
    if (is_in_row(g, &p->own)) p->cell = &p->own;
}

static void load_file_cell(const row_get *g, place *p)
{
    p->cell = rq_hfile_scanner_cell(&p->file);
    if (!is_in_row(g, p->cell)) {
        p->cell = NULL;
    } else if (RQ_UNLIKELY(p->meta->bulk_loaded)) { /* merge.c, source_load */
        p->own = *p->cell;
        p->own.seqid = p->meta->max_seqid;
        p->cell = &p->own;
    }
}

static rq_err place_next(const row_get *g, place *p, rq_error *why)
{
    if (p->meta == NULL) {
        rq__segment_cursor_next(&p->cursor);
        load_segment_cell(g, p);
        return RQ_OK;
    }
    rq_err rc = rq_hfile_scanner_next(&p->file, g->ctx, why);
    if (rc == RQ_OK)
        load_file_cell(g, p);
    else
        p->cell = NULL;
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Moves past all versions of the current column, to the next wanted one. REQUIRES: a segment's place. */
static void place_next_column(row_get *g, place *p)
{
    rq_slice row = rq_cell_row(&p->own), family = rq_cell_family(&p->own);
    rq_slice column = rq_cell_qualifier(&p->own), wanted;
    bool is_named =
        rq__query_matcher_hint(&g->matcher, &wanted) && rq_slice_compare(column, wanted) < 0;
    rq_cell key = is_named ? rq_cell_first_on_column(row, family, wanted)
                           : rq_cell_last_on_column(row, family, column);
    rq__segment_seek(&p->cursor, p->cursor.segment, &key);
    load_segment_cell(g, p);
    g->passed = 0;
    g->gave_up = ++g->seeks > SEEKS_MAX;
}

static void place_in_segment(const row_get *g, const rq_segment *s, place *p)
{
    rq_cell key = rq_cell_first_on_row(g->scan->start_row);
    key.seqid = UINT64_MAX;
    p->meta = NULL;
    rq__segment_seek(&p->cursor, s, &key);
    load_segment_cell(g, p);
}

static rq_err may_be_in_file(const row_get *g, const rq_store_file *f, bool *ret, rq_error *why)
{
    *ret = rq__file_has_times(f, &g->times);
    return *ret ? rq__file_passes_bloom(f, &g->bloom, g->ctx, ret, why) : RQ_OK;
}

static rq_err place_in_file(const row_get *g, const rq_store_file *f, place *p, rq_error *why)
{
    bool may;
    p->meta = NULL;
    p->cell = NULL;
    RQ_TRY(may_be_in_file(g, f, &may, why));
    if (!may) return RQ_OK;
    rq_slice row = g->scan->start_row;
    /* Without family markers, nothing before the first wanted column matters. */
    bool at_column = g->has_columns && g->family->qualifiers[0].len > 0 &&
                     rq_hfile_reader_info(f->reader)->delete_family_count == 0;
    rq_cell key = at_column ? rq_cell_first_on_column(row, g->family_name, g->family->qualifiers[0])
                            : rq_cell_first_on_row(row);
    p->meta = f;
    rq_hfile_scanner_init_borrowed(&p->file, f->reader); /* the version's */
    rq_err rc = rq_hfile_scanner_seek(&p->file, g->ctx, &key, why);
    if (rc == RQ_OK) load_file_cell(g, p);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static void place_clear(place *p)
{
    if (p->meta != NULL) rq_hfile_scanner_clear(&p->file);
    p->meta = NULL;
    p->cell = NULL;
}

/* Passes the row's cells to the matcher until it wants no more. `places`: younger first. */
static rq_err read_places(row_get *g, place *places, size_t count, rq_error *why)
{
    for (;;) {
        place *first = &places[0];
        for (place *p = places + 1; p < places + count; p++)
            if (p->cell != NULL && (first->cell == NULL ||
                                    rq_cell_compare(RQ_ORDER_DEFAULT, p->cell, first->cell) < 0))
                first = p;
        if (first->cell == NULL) return RQ_OK;
        RQ_TRY(take(g, first->cell, why));
        if (g->is_done || g->gave_up) return RQ_OK;
        if (g->is_column_done && g->passed > PASS_IN_COLUMN && first->meta == NULL) {
            place_next_column(g, first);
            if (g->gave_up) return RQ_OK;
        } else {
            RQ_TRY(place_next(g, first, why));
        }
    }
}

/* --- all of them ------------------------------------------------------------------------------ */
/* Numbers the sources of a version from the newest to the oldest. */
static inline size_t source_count(const rq_store_version *v)
{
    return 1 + v->snapshot_count + v->file_count;
}

/* NULL: a file. */
static inline const rq_segment *segment_at(const rq_store_version *v, size_t i)
{
    if (i == 0) return v->active;
    return i <= v->snapshot_count ? v->snapshots[i - 1] : NULL;
}

static inline const rq_store_file *file_at(const rq_store_version *v, size_t i)
{
    return &v->files[v->file_count - 1 - (i - 1 - v->snapshot_count)];
}

static rq_err place_in(const row_get *g, const rq_store_version *v, size_t i, place *p,
                       rq_error *why)
{
    if (i > v->snapshot_count) return place_in_file(g, file_at(v, i), p, why);
    const rq_segment *s = segment_at(v, i);
    p->meta = NULL;
    p->cell = NULL;
    if (s != NULL && rq__segment_may_have_row(s, g->row_hash)) place_in_segment(g, s, p);
    return RQ_OK;
}

/* Whether all cells in sources `from` and later are older than the timestamp. */
static bool all_older(const rq_store_version *v, size_t from, int64_t timestamp)
{
    for (size_t i = from; i < source_count(v); i++) {
        int64_t min, max;
        const rq_segment *s = segment_at(v, i);
        if (s != NULL) {
            rq__segment_time_range(s, &min, &max);
            if (min <= max && max >= timestamp) return false;
        } else {
            const rq_store_file *f = file_at(v, i);
            if (f->min_ts > f->max_ts || f->max_ts >= timestamp) return false;
        }
    }
    return true;
}

/* The number of columns of the source's puts; SIZE_MAX: unknown. */
static size_t columns_of(const rq_store_version *v, size_t i)
{
    const rq_segment *s = segment_at(v, i);
    if (s != NULL) return rq__segment_column_count(s);
    const rq_hfile_info *file = rq_hfile_reader_info(file_at(v, i)->reader);
    return file->lists_qualifiers ? file->qualifier_count : SIZE_MAX;
}

static bool rest_lists_columns(const rq_store_version *v, size_t from)
{
    for (size_t i = from; i < source_count(v); i++)
        if (columns_of(v, i) == SIZE_MAX) return false;
    return true;
}

typedef struct columns {
    rq_slice list[RQ_QUALIFIERS_MAX];
    size_t count;
    size_t at; /* behind the last match: columns mostly arrive in the same order */
} columns;

static bool has_column(columns *c, rq_slice qualifier)
{
    for (size_t tried = 0; tried < c->count; tried++) {
        size_t i = (c->at + tried) % c->count;
        if (!rq_slice_eq(c->list[i], qualifier)) continue;
        c->at = i + 1;
        return true;
    }
    return false;
}

static bool has_columns_of_segment(columns *c, const rq_segment *s)
{
    size_t count = rq__segment_column_count(s);
    if (count == SIZE_MAX) return false; /* one came just now */
    for (size_t i = 0; i < count; i++)
        if (!has_column(c, rq__segment_column(s, i))) return false;
    return true;
}

static bool has_columns_of_file(columns *c, const rq_store_file *f)
{
    rq_slice rest = rq_hfile_reader_info(f->reader)->qualifiers, one;
    while (rq_qualifiers_next(&rest, &one))
        if (!has_column(c, one)) return false;
    return true;
}

/* Whether a cell was found for every column of the remaining sources. */
static bool found_columns_of(const row_get *g, const rq_store_version *v, size_t from)
{
    columns found = {.count = 0};
    rq_cursor c =
        rq_cursor_of(rq_slice_of(g->out->bytes.ptr + g->mark.len, g->out->bytes.len - g->mark.len));
    rq_cell cell;
    while (found.count < RQ_QUALIFIERS_MAX && rq_cellblock_next(&c, &cell, NULL) == RQ_OK)
        found.list[found.count++] = rq_cell_qualifier(&cell);
    for (size_t i = from; i < source_count(v); i++) {
        const rq_segment *s = segment_at(v, i);
        if (s != NULL ? !has_columns_of_segment(&found, s)
                      : !has_columns_of_file(&found, file_at(v, i)))
            return false;
    }
    return true;
}

/* Whether the remaining sources can be skipped: every wanted version of every column was found, and
 * each cell seen is newer than all cells in these sources. So their cells of the columns come behind
 * the versions found, and their markers are too old to hide these. */
static bool rest_is_older(const row_get *g, const rq_store_version *v, size_t from)
{
    uint64_t found = g->out->count - g->mark.count;
    if (found == 0 || !all_older(v, from, g->oldest_seen)) return false;
    if (g->scan->check_existence_only) return true;
    uint64_t versions = (uint64_t)g->matcher.columns.max_versions;
    if (g->has_columns) return found == g->family->qualifier_count * versions;
    return versions == 1 && found_columns_of(g, v, from);
}

/* Whether the newest place may do. */
static bool may_suffice(const row_get *g, const rq_store_version *v, size_t from)
{
    return g->has_columns || g->scan->check_existence_only ||
           (g->matcher.columns.max_versions == 1 && rest_lists_columns(v, from));
}

static void start_over(row_get *g)
{
    rq_cellblock_truncate(g->out, g->mark);
    rq__query_matcher_reset(&g->matcher);
    g->is_done = g->gave_up = false;
    g->passed = g->seeks = 0;
    g->oldest_seen = INT64_MAX;
    g->columns_here = SIZE_MAX;
}

/* Reads only the place `p`, which is in this source. */
static rq_err read_one_place(row_get *g, const rq_store_version *v, size_t source, place *p,
                             rq_error *why)
{
    bool wants_all = !g->has_columns && g->matcher.columns.max_versions == 1;
    if (wants_all) g->columns_here = columns_of(v, source);
    return read_places(g, p, 1, why);
}

/* `places`: room for PLACES_MAX. *ret_open: number of places that may hold a file. */
static rq_err read_row(row_get *g, const rq_store_version *v, place *places, size_t *ret_open,
                       rq_error *why)
{
    size_t count = source_count(v);
    size_t next = 0; /* the first source of the rest */
    do {
        place_clear(&places[0]);
        *ret_open = 1;
        RQ_TRY(place_in(g, v, next++, &places[0], why));
    } while (places[0].cell == NULL && next < count);
    if (next == count) return read_one_place(g, v, next - 1, places, why);

    if (may_suffice(g, v, next) && all_older(v, next, places[0].cell->timestamp)) {
        size_t newest = next - 1;
        bool in_segment = places[0].meta == NULL;
        rq_segment_cursor at = {0}; /* to go back to */
        if (in_segment) at = places[0].cursor;
        RQ_TRY(read_one_place(g, v, newest, places, why));
        if (g->gave_up || rest_is_older(g, v, next)) return RQ_OK;
        start_over(g);
        place_clear(&places[0]);
        if (in_segment) {
            places[0].cursor = at;
            load_segment_cell(g, &places[0]);
        } else {
            RQ_TRY(place_in(g, v, newest, &places[0], why));
        }
    }
    size_t used = 1;
    for (; next < count; next++) {
        if (used == PLACES_MAX) {
            g->gave_up = true;
            return RQ_OK;
        }
        *ret_open = used + 1;
        RQ_TRY(place_in(g, v, next, &places[used], why));
        if (places[used].cell != NULL)
            used++;
        else
            place_clear(&places[used]);
    }
    return read_places(g, places, used, why);
}

rq_err rq_store_get_row(const rq_store *store, const rq_store_version *v, const rq_scan *scan,
                        const rq_scan_family *family, uint64_t read_point, int64_t now_ms,
                        rq_arena *arena, rq_read_ctx *ctx, rq_cellblock *out, bool *ret_answered,
                        rq_error *why)
{
    const rq_family_schema *schema = rq_store_schema(store);
    *ret_answered = false;
    if (rq__store_mob(store) != NULL || schema->new_version_behavior ||
        rq_store_order(store) != RQ_ORDER_DEFAULT)
        return RQ_OK;
    row_get g;
    RQ_TRY(rq__query_matcher_init(&g.matcher, arena, schema, scan, family, now_ms));
    g.scan = scan;
    g.family = family;
    g.family_name = schema->name;
    g.ctx = ctx;
    g.out = out;
    g.mark = rq_cellblock_get_mark(out);
    g.hidden = 0;
    g.times = rq__query_matcher_times(&g.matcher, schema, read_point);
    g.has_columns = rq__column_tracker_is_explicit(&g.matcher.columns);
    g.bloom = (rq__bloom_question){.row = scan->start_row, .store = store};
    g.bloom.has_column = g.has_columns && family->qualifier_count == 1;
    if (g.bloom.has_column) g.bloom.column = family->qualifiers[0];
    g.row_hash = rq__row_hash(scan->start_row.ptr, scan->start_row.len);
    start_over(&g);
    ctx->dont_cache = !scan->cache_blocks || !rq__store_cache_options(store)->data_on_read;
    for (size_t i = 0; i < PLACES_MAX && i < v->file_count; i++)
        rq_hfile_reader_prefetch(v->files[v->file_count - 1 - i].reader);
    place places[PLACES_MAX];
    size_t open = 0;
    places[0].meta = NULL;
    rq_err rc = read_row(&g, v, places, &open, why);
    for (size_t i = 0; i < open; i++)
        place_clear(&places[i]);
    *ret_answered = rc == RQ_OK && !g.gave_up;
    if (!*ret_answered) rq_cellblock_truncate(out, g.mark);
    return rc;
}
