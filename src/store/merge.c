/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h. */
#include "store/merge.h"

#include "base/work_limit.h"

/* Limit of the places that are compared to find the place of a file: those of files that were
 * compacted meanwhile are passed over. A file whose place is not among them seeks by key. */
#define PLACES_TRIED 64
/* Invisible cells that a source passes before its place in the heap is looked at. */
#define HIDDEN_AT_ONCE 64

/* Greater than or equal to every row: rows have at most RQ_ROW_LEN_MAX bytes. */
static const uint8_t last_row[RQ_ROW_LEN_MAX] = {[0 ... RQ_ROW_LEN_MAX - 1] = 0xff};

void rq__merge_init(rq__merge *m, rq_arena *arena, rq_slice family, rq_cell_order order,
                    uint64_t read_point)
{
    *m = (rq__merge){.arena = arena,
                     .family = family,
                     .order = order,
                     .read_point = read_point,
                     .hidden_left = UINT32_MAX};
}

/* --- the sources ------------------------------------------------------------------------------ */
static void drop_sources(rq__merge *m);

void rq__merge_lend(rq__merge *m, rq_arena *lent)
{
    drop_sources(m); /* none, but after an error */
    m->lent = lent;
    m->sources = NULL;
    m->heap = NULL;
    m->source_cap = 0;
}

/* Room for `count` places, which a scanner keeps as long as it is open: without spare room for few. */
static rq_err grow_places(rq__merge *m, size_t count)
{
    if (count <= m->place_cap) return RQ_OK;
    size_t cap = count < 4 ? count : count + count / 2;
    rq_hfile_place *places = rq_arena_alloc(m->arena, cap * sizeof(*places));
    if (places == NULL) return RQ_E_NO_MEMORY;
    if (m->place_count > 0) memcpy(places, m->places, m->place_count * sizeof(*places));
    m->places = places;
    m->place_cap = (uint32_t)cap;
    return RQ_OK;
}

rq_err rq__merge_begin(rq__merge *m, size_t count)
{
    RQ_ASSERT(!m->is_open);
    if (count > UINT32_MAX / 2) return RQ_E_NO_MEMORY;
    if (count > m->source_cap) {
        size_t cap = count < 4 ? 4 : count + count / 2;
        rq_arena *arena = m->lent != NULL ? m->lent : m->arena;
        rq__source *sources = rq_arena_alloc(arena, cap * sizeof(*sources));
        rq__source **heap = rq_arena_alloc(arena, cap * sizeof(rq__source *));
        if (sources == NULL || heap == NULL) return RQ_E_NO_MEMORY;
        m->sources = sources;
        m->heap = heap;
        m->source_cap = (uint32_t)cap;
    }
    RQ_TRY(grow_places(m, count));
    m->source_count = 0;
    m->heap_len = 0;
    m->opened = 0;
    return RQ_OK;
}

static rq__source *add_source(rq__merge *m)
{
    RQ_ASSERT(m->source_count < m->source_cap);
    rq__source *s = &m->sources[m->source_count];
    s->cell = NULL;
    s->segment = NULL;
    s->meta = NULL;
    s->state = RQ__SOURCE_SEEK;
    s->rank = m->source_count++;
    s->is_plain = false;
    s->check_bloom = false;
    s->check_seqid = true;
    s->check_floor = false;
    s->is_odd = true;
    s->from_start = true;
    s->place = (rq_hfile_place){0};
    s->goal = &m->target.cell;
    return s;
}

void rq__merge_add_segment(rq__merge *m, rq_segment *segment)
{
    rq__source *s = add_source(m);
    s->segment = segment;
    s->cursor = (rq_segment_cursor){0};
}

/* The source's place among those kept. Files mostly come in the same order again. */
static void find_place(rq__merge *m, rq__source *s)
{
    for (uint32_t i = 0; i < m->place_count && i < PLACES_TRIED; i++) {
        const rq_hfile_place *place = &m->places[(m->place_next + i) % m->place_count];
        if (!rq_hfile_scanner_is_of(&s->file, place)) continue;
        s->place = *place;
        m->place_next = (m->place_next + i + 1) % m->place_count;
        return;
    }
}

void rq__merge_add_file(rq__merge *m, const rq_store_file *file)
{
    const rq_hfile_info *info = rq_hfile_reader_info(file->reader);
    rq__source *s = add_source(m);
    s->meta = file;
    s->is_plain = rq_hfile_reader_is_plain(file->reader);
    s->check_bloom = m->use_bloom;
    s->check_seqid = (file->bulk_loaded ? file->max_seqid : info->max_memstore_ts) > m->read_point;
    s->is_odd = s->check_seqid || file->bulk_loaded;
    if (m->start_without_markers != NULL && info->delete_family_count == 0)
        s->goal = m->start_without_markers;
    rq_hfile_scanner_init(&s->file, file->reader);
    find_place(m, s);
}

/* Saves the positions in the files. In a forward read all cells before a position were returned or
 * skipped for good; in a reversed one, all cells before it in the current row. */
static void keep_places(rq__merge *m)
{
    m->place_count = 0;
    m->place_next = 0;
    if (m->reversed && !m->in_row) return;
    for (uint32_t i = 0; i < m->source_count; i++) {
        const rq__source *s = &m->sources[i];
        /* Not yet at the row's beginning: at its end, where the search found the row. */
        if (m->reversed && s->state == RQ__SOURCE_SEEK && s->from_start) continue;
        rq_hfile_place place =
            s->segment == NULL ? rq_hfile_scanner_place(&s->file) : (rq_hfile_place){0};
        if (place.file != 0) m->places[m->place_count++] = place;
    }
}

static void drop_sources(rq__merge *m)
{
    m->current = NULL;
    m->run = NULL;
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        if (s->segment == NULL) rq_hfile_scanner_clear(&s->file);
        s->cell = NULL;
    }
    m->source_count = 0;
    m->heap_len = 0;
    m->opened = 0;
    m->is_open = false;
}

void rq__merge_clear(rq__merge *m)
{
    drop_sources(m);
    m->at_end = true;
}

/* --- the heap --------------------------------------------------------------------------------- */
static inline bool comes_before(const rq__merge *m, const rq__source *a, const rq__source *b)
{
    int c = rq_cell_compare(m->order, a->cell, b->cell);
    return c != 0 ? c < 0 : a->rank > b->rank;
}

static void sift_down(rq__merge *m, uint32_t i)
{
    rq__source *s = m->heap[i];
    m->second = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->heap_len) break;
        if (child + 1 < m->heap_len && comes_before(m, m->heap[child + 1], m->heap[child])) child++;
        if (!comes_before(m, m->heap[child], s)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = s;
}

/* Index of the source that comes after the top one. It is kept until the heap changes, so consecutive cells of one
 * source, as in most compactions, need one comparison each. REQUIRES: the heap has two sources. */
static uint32_t second_of(rq__merge *m)
{
    if (m->second == 0)
        m->second = m->heap_len > 2 && comes_before(m, m->heap[2], m->heap[1]) ? 2 : 1;
    return m->second;
}

/* Puts the top source in its place after it has moved. */
static void sift_top(rq__merge *m)
{
    if (m->heap_len < 2) return;
    uint32_t second = second_of(m);
    rq__source *s = m->heap[0];
    if (!comes_before(m, m->heap[second], s)) return;
    m->heap[0] = m->heap[second];
    m->heap[second] = s;
    sift_down(m, second);
}

static void heapify(rq__merge *m)
{
    m->second = 0;
    for (uint32_t i = m->heap_len / 2; i-- > 0;)
        sift_down(m, i);
}

static void pop(rq__merge *m)
{
    m->heap[0] = m->heap[--m->heap_len];
    m->second = 0;
    if (m->heap_len > 1) sift_down(m, 0);
}

/* --- one source ------------------------------------------------------------------------------- */
static rq_err source_seek(const rq__merge *m, rq__source *s, rq_read_ctx *ctx, rq_error *why)
{
    if (s->segment != NULL) {
        rq__segment_seek(&s->cursor, s->segment, s->goal);
        if (m->expects_walk && s->from_start) rq__segment_expect_walk(&s->cursor);
        return rq__segment_cursor_valid(&s->cursor) ? RQ_OK : RQ_E_END;
    }
    if (s->check_bloom) {
        bool may = true;
        RQ_TRY(rq__file_passes_bloom(s->meta, &m->bloom, ctx, &may, why));
        if (!may) return RQ_E_END;
        s->check_bloom = false;
    }
    if (!s->from_start) return rq_hfile_scanner_reseek(&s->file, ctx, s->goal, why);
    if (m->reversed && s->is_plain && rq_hfile_scanner_back_to_here(&s->file, s->goal))
        return RQ_OK;
    return rq_hfile_scanner_seek_from(&s->file, ctx, s->goal, &s->place, why);
}

static rq_err source_next(rq__source *s, rq_read_ctx *ctx, rq_error *why)
{
    if (s->segment == NULL) return rq_hfile_scanner_next(&s->file, ctx, why);
    rq__segment_cursor_next(&s->cursor);
    return rq__segment_cursor_valid(&s->cursor) ? RQ_OK : RQ_E_END;
}

/* Loads the cell at the source's position as its current cell. */
static void source_load(rq__source *s)
{
    if (s->segment != NULL) {
        rq__segment_cursor_cell(&s->cursor, &s->own);
        s->cell = &s->own;
        return;
    }
    s->cell = rq_hfile_scanner_cell(&s->file);
    if (s->meta->bulk_loaded) {
        /* The sequence ids stored in a bulk-loaded file are not this region's: all its cells count as
         * written with the sequence id of the load. */
        s->own = *s->cell;
        s->own.seqid = s->meta->max_seqid;
        s->cell = &s->own;
    }
}

/* The cell where the merge was parked. */
static rq_cell floor_cell(const rq__merge *m)
{
    rq_cell floor = m->target.cell;
    floor.seqid = m->floor_seqid;
    return floor;
}

/* Whether the cell was returned, or skipped for good, before the merge was parked. */
static bool is_below_floor(const rq__merge *m, const rq_cell *cell)
{
    if (m->floor == RQ__FLOOR_NONE) return false;
    rq_cell floor = floor_cell(m);
    int c = rq_cell_compare(m->order, cell, &floor);
    return c < 0 || (c == 0 && m->floor == RQ__FLOOR_AFTER);
}

/* Whether the current cell is visible to this read. */
static bool source_shows(const rq__merge *m, rq__source *s)
{
    if (s->check_seqid && s->cell->seqid > m->read_point) return false;
    if (s->check_floor && is_below_floor(m, s->cell)) return false;
    s->check_floor = false;
    return true;
}

static bool in_row(const rq__merge *m, const rq__source *s)
{
    return rq_slice_eq(rq_cell_row(s->cell), rq__kept_bytes_slice(&m->row));
}

/* Reversed: whether the cell is behind the current row. Then the source does not look for a visible
 * cell, because any number of invisible rows may follow. */
static bool is_behind_current_row(const rq__merge *m, const rq__source *s)
{
    return m->reversed && m->in_row && !in_row(m, s);
}

static void count_hidden(rq__merge *m)
{
    rq_work_count(0);
    if (m->hidden_left > 0 && m->hidden_left < UINT32_MAX) m->hidden_left--;
}

/* Executes the source's pending move or seek, and moves on to a visible cell. RQ_E_END: the source has no
 * more cells. After HIDDEN_AT_ONCE invisible cells it stops with the state SKIP; the invisible cell at
 * which the source is then determines its place in the heap. */
static rq_err make_ready(rq__merge *m, rq__source *s, rq_read_ctx *ctx, rq_error *why)
{
    unsigned hidden = 0;
    while (s->state == RQ__SOURCE_SEEK || s->state == RQ__SOURCE_NEXT ||
           s->state == RQ__SOURCE_SKIP) {
        rq_err rc =
            s->state == RQ__SOURCE_SEEK ? source_seek(m, s, ctx, why) : source_next(s, ctx, why);
        if (rc == RQ_E_AGAIN) return rc;
        if (rc != RQ_OK) {
            s->state = RQ__SOURCE_END;
            s->cell = NULL;
            return rc;
        }
        s->from_start = false;
        source_load(s);
        if (RQ_LIKELY(source_shows(m, s)) || is_behind_current_row(m, s)) {
            s->state = RQ__SOURCE_READY;
            return RQ_OK;
        }
        s->state = RQ__SOURCE_SKIP;
        count_hidden(m);
        if (++hidden == HIDDEN_AT_ONCE) return RQ_OK;
    }
    return s->state == RQ__SOURCE_END ? RQ_E_END : RQ_OK;
}

/* Defers a file's seek to the key. No cell of the file is newer than meta->max_ts, so its first
 * cell at or behind `key` is at or behind the lazy key made from `key` and max_ts. The seek happens
 * only when the lazy key reaches the top of the heap. */
static bool make_lazy(const rq__merge *m, rq__source *s, const rq_cell *key)
{
    if (!m->lazy || s->segment != NULL || m->source_count == 1 || key->family_len == 0 ||
        key->type != RQ_TYPE_MAXIMUM || s->check_floor || s->meta->min_ts > s->meta->max_ts)
        return false;
    s->own = *key;
    if (s->meta->max_ts < key->timestamp) s->own.timestamp = s->meta->max_ts;
    s->own.seqid = UINT64_MAX;
    s->cell = &s->own;
    s->goal = key;
    s->state = RQ__SOURCE_LAZY;
    return true;
}

/* --- forward ---------------------------------------------------------------------------------- */
static rq_err set_target(rq__merge *m, const rq_cell *key)
{
    m->current = NULL;
    m->run = NULL;
    RQ_TRY(rq__kept_key_set(&m->target, m->arena, key, m->family));
    m->target.cell.seqid = UINT64_MAX;
    m->floor = RQ__FLOOR_NONE;
    return RQ_OK;
}

static rq_err open_sources(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    while (m->opened < m->source_count) {
        rq__source *s = &m->sources[m->opened];
        if (s->state == RQ__SOURCE_SEEK && !make_lazy(m, s, s->goal)) {
            rq_err rc = make_ready(m, s, ctx, why);
            if (rc != RQ_OK && rc != RQ_E_END) return rc;
        }
        if (s->state != RQ__SOURCE_END) m->heap[m->heap_len++] = s;
        m->opened++;
    }
    heapify(m);
    return RQ_OK;
}

/* The top of the heap, with its deferred seek executed; RQ_E_END when the heap is empty. RQ_E_AGAIN
 * without a block to read: the slice has passed as many cells hidden by the read point as it may
 * (hidden_left). All sources are in order then, so a suspension keeps the progress. */
static rq_err heap_top(rq__merge *m, rq_read_ctx *ctx, rq__source **ret, rq_error *why)
{
    while (m->heap_len > 0) {
        rq__source *s = m->heap[0];
        if (s->state == RQ__SOURCE_READY || s->state == RQ__SOURCE_LAZY ||
            s->state == RQ__SOURCE_SKIP) {
            if (m->seeking) {
                if (rq_cell_compare_key(m->order, s->cell, &m->target.cell) < 0) {
                    if (make_lazy(m, s, &m->target.cell)) {
                        sift_top(m);
                        continue;
                    }
                    s->goal = &m->target.cell;
                    s->state = RQ__SOURCE_SEEK;
                } else {
                    m->seeking = false;
                }
            }
            if (s->state == RQ__SOURCE_READY) {
                *ret = s;
                return RQ_OK;
            }
            if (s->state == RQ__SOURCE_LAZY) s->state = RQ__SOURCE_SEEK;
            if (s->state == RQ__SOURCE_SKIP && m->hidden_left == 0) return RQ_E_AGAIN;
        }
        rq_err rc = make_ready(m, s, ctx, why);
        if (rc == RQ_E_END)
            pop(m);
        else if (rc == RQ_OK)
            sift_top(m);
        else
            return rc;
    }
    return RQ_E_END;
}

/* --- reversed --------------------------------------------------------------------------------- */
/* Seeks the sources to the current row; sources without it are positioned before it. */
static rq_err open_row(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    while (m->opened < m->source_count) {
        rq__source *s = &m->sources[m->opened];
        if (s->state == RQ__SOURCE_SEEK || s->state == RQ__SOURCE_SKIP) {
            rq_err rc = make_ready(m, s, ctx, why);
            if (rc != RQ_OK && rc != RQ_E_END) return rc;
            if (rc == RQ_OK && in_row(m, s))
                m->heap[m->heap_len++] = s;
            else
                s->state = RQ__SOURCE_BEFORE;
        }
        m->opened++;
    }
    heapify(m);
    return RQ_OK;
}

static rq_err leave_row(rq__merge *m)
{
    m->current = NULL;
    m->run = NULL;
    rq_cell key = rq_cell_first_on_row(rq__kept_bytes_slice(&m->row));
    RQ_TRY(rq__kept_key_set(&m->bound, m->arena, &key, m->family));
    m->bound.cell.seqid = UINT64_MAX;
    m->in_row = false;
    m->seeking = false;
    m->heap_len = 0;
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        if (s->state != RQ__SOURCE_PARKED && s->state != RQ__SOURCE_NONE)
            s->state = RQ__SOURCE_BEFORE;
    }
    return RQ_OK;
}

static rq_err source_seek_before(const rq__merge *m, rq__source *s, rq_read_ctx *ctx, rq_error *why)
{
    if (s->segment == NULL) {
        if (s->is_plain && rq_hfile_scanner_back_before_here(&s->file, &m->bound.cell))
            return RQ_OK;
        return rq_hfile_scanner_seek_before(&s->file, ctx, &m->bound.cell, why);
    }
    rq__segment_seek_before(&s->cursor, s->segment, &m->bound.cell);
    return rq__segment_cursor_valid(&s->cursor) ? RQ_OK : RQ_E_END;
}

/* Finds the next row downwards; possibly none of its cells is visible at the read point. */
static rq_err find_row(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    const rq__source *best = NULL;
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        if (s->state == RQ__SOURCE_BEFORE) {
            rq_err rc = source_seek_before(m, s, ctx, why);
            if (rc != RQ_OK && rc != RQ_E_END) return rc;
            s->state = rc == RQ_OK ? RQ__SOURCE_PARKED : RQ__SOURCE_NONE;
            if (rc == RQ_OK) source_load(s);
        }
        if (s->state == RQ__SOURCE_PARKED &&
            (best == NULL ||
             rq_row_compare(m->order, rq_cell_row(s->cell), rq_cell_row(best->cell)) > 0))
            best = s;
    }
    if (best == NULL) return RQ_E_END;

    RQ_TRY(rq__kept_bytes_set(&m->row, m->arena, best->cell->row, best->cell->row_len));
    rq_slice row = rq__kept_bytes_slice(&m->row);
    if (!m->has_hint || !rq_slice_eq(row, rq_cell_row(&m->target.cell))) {
        rq_cell key = rq_cell_first_on_row(row);
        RQ_TRY(set_target(m, &key));
    }
    m->has_hint = false;
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        if (s->state != RQ__SOURCE_PARKED || !in_row(m, s)) continue;
        s->state = RQ__SOURCE_SEEK;
        s->goal = &m->target.cell;
        s->from_start = true;
        s->place = (rq_hfile_place){0};
    }
    m->in_row = true;
    m->opened = 0;
    return RQ_OK;
}

static rq_err reversed_top(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    for (;;) {
        if (!m->in_row) {
            RQ_TRY(find_row(m, ctx, why));
        }
        if (m->opened < m->source_count) RQ_TRY(open_row(m, ctx, why));
        rq__source *s = NULL;
        rq_err rc = heap_top(m, ctx, &s, why);
        if (rc == RQ_OK && in_row(m, s)) {
            m->current = s->cell;
            return RQ_OK;
        }
        if (rc != RQ_OK && rc != RQ_E_END) return rc;
        /* The top is the first of all remaining cells, so no source has a cell in the row. */
        RQ_TRY(leave_row(m));
        count_hidden(m);
        if (m->hidden_left == 0) return RQ_E_AGAIN;
    }
}

/* --- the sequence ----------------------------------------------------------------------------- */
rq_err rq__merge_start(rq__merge *m, const rq_cell *key)
{
    RQ_TRY(set_target(m, key));
    m->is_open = true;
    return RQ_OK;
}

rq_err rq__merge_start_before(rq__merge *m, bool has_key, const rq_cell *key)
{
    RQ_ASSERT(m->reversed);
    if (has_key)
        RQ_TRY(rq__kept_key_set(&m->bound, m->arena, key, m->family));
    else
        m->bound.cell = rq_cell_last_on_row(rq_slice_of(last_row, sizeof(last_row)));
    m->bound.cell.seqid = UINT64_MAX;
    rq__merge_resume(m);
    return RQ_OK;
}

void rq__merge_resume(rq__merge *m)
{
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        s->goal = &m->target.cell;
        s->check_floor = m->floor != RQ__FLOOR_NONE;
        if (s->check_floor && s->segment != NULL) {
            /* Of many cells with the target's key those above the floor are not passed again. */
            s->own = floor_cell(m);
            s->goal = &s->own;
        }
        if (m->reversed && !m->in_row) s->state = RQ__SOURCE_BEFORE;
    }
    m->is_open = true;
}

/* Saves the position to continue from: the first cell that may still have to be returned, or the
 * position right behind the cell that was returned last. Not called while a seek or the opening is
 * pending. */
static rq_err remember_place(rq__merge *m)
{
    const rq__source *best = m->heap[0];
    bool after = best->state == RQ__SOURCE_NEXT;
    if (best->state == RQ__SOURCE_SKIP || best->state == RQ__SOURCE_SEEK) {
        for (uint32_t i = 1; i < m->heap_len; i++) {
            if (comes_before(m, m->heap[i], best)) best = m->heap[i];
        }
    }
    /* The merge was suspended again before it reached the floor. */
    if (is_below_floor(m, best->cell)) return RQ_OK;
    rq_cell key = *best->cell;
    RQ_TRY(rq__kept_key_set(&m->target, m->arena, &key, m->family));
    m->target.cell.seqid = UINT64_MAX;
    m->floor_seqid = key.seqid;
    m->floor = after ? RQ__FLOOR_AFTER : RQ__FLOOR_AT;
    return RQ_OK;
}

rq_err rq__merge_park(rq__merge *m)
{
    if (!m->is_open) return RQ_OK;
    rq_err rc = RQ_OK;
    bool in_order = m->opened == m->source_count && !m->seeking;
    if (m->reversed) {
        if (m->in_row && in_order) rc = m->heap_len > 0 ? remember_place(m) : leave_row(m);
    } else if (in_order && !m->at_end) {
        if (m->heap_len > 0)
            rc = remember_place(m);
        else
            m->at_end = true;
    }
    keep_places(m);
    drop_sources(m);
    m->seeking = false;
    if (rc != RQ_OK) m->at_end = true;
    return rc;
}

/* heap_top for a single remaining source, the most frequent case: there is nothing to order.
 * REQUIRES: its current cell was taken, no seek is pending. */
static rq_err next_of_only_source(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    rq__source *s = m->heap[0];
    rq_err rc = make_ready(m, s, ctx, why);
    if (RQ_LIKELY(rc == RQ_OK && s->state == RQ__SOURCE_READY))
        m->current = s->cell;
    else if (rc == RQ_E_END)
        m->heap_len = 0;
    return rc;
}

static rq_err forward_top(rq__merge *m, rq_read_ctx *ctx, rq_error *why)
{
    if (RQ_UNLIKELY(m->opened < m->source_count)) RQ_TRY(open_sources(m, ctx, why));
    if (m->heap_len == 1 && m->heap[0]->state == RQ__SOURCE_NEXT && !m->seeking) {
        rq_err rc = next_of_only_source(m, ctx, why);
        if (RQ_LIKELY(rc != RQ_OK || m->current != NULL)) return rc;
    }
    rq__source *s = NULL;
    RQ_TRY(heap_top(m, ctx, &s, why));
    m->current = s->cell;
    return RQ_OK;
}

rq_err rq__merge_find_top(rq__merge *m, rq_read_ctx *ctx, const rq_cell **ret, rq_error *why)
{
    if (m->at_end) return RQ_E_END;
    rq_err rc = m->reversed ? reversed_top(m, ctx, why) : forward_top(m, ctx, why);
    *ret = m->current;
    if (rc == RQ_E_END) m->at_end = true;
    return rc;
}

void rq__merge_step(rq__merge *m)
{
    RQ_ASSERT(m->heap_len > 0 && m->heap[0]->state == RQ__SOURCE_READY);
    m->heap[0]->state = RQ__SOURCE_NEXT;
    m->current = NULL;
}

/* --- runs ------------------------------------------------------------------------------------- */
static inline bool is_behind_row(const rq__merge *m, const rq__source *other, const rq_cell *cell)
{
    return rq_row_compare(m->order, rq_cell_row(other->cell), rq_cell_row(cell)) > 0;
}

void rq__merge_find_run(rq__merge *m)
{
    m->run = NULL;
    m->run_stopped = false;
    if (m->current == NULL || m->reversed) return;
    rq__source *s = m->heap[0];
    if (!s->is_plain || s->check_floor || s->state != RQ__SOURCE_READY) return;
    if (m->heap_len > 1 && !is_behind_row(m, m->heap[1], s->cell)) return;
    if (m->heap_len > 2 && !is_behind_row(m, m->heap[2], s->cell)) return;
    m->run = s;
}

/* The run's source has moved to a cell of another row, which is loaded: puts it back into the
 * heap. */
static void leave_run(rq__merge *m, rq__source *s)
{
    m->run = NULL;
    m->current = NULL;
    if (!source_shows(m, s)) {
        s->state = RQ__SOURCE_SKIP; /* positioned, and put in its place, by top */
    } else if (m->heap_len > 1) {
        sift_top(m);
    } else {
        m->current = s->cell;
    }
}

/* The run's source has moved; for most moves inside a row nothing needs to be done. */
rq__merge_moved rq__merge_step_in_run(rq__merge *m, rq_hfile_move moved)
{
    rq__source *s = m->run;
    for (;; moved = rq_hfile_scanner_next_here(&s->file)) {
        if (moved == RQ_HFILE_NOT_MOVED) {
            /* The next top() continues behind the source's position, even if the cell there was not
             * visible. */
            m->run = NULL;
            m->run_stopped = true;
            s->state = RQ__SOURCE_NEXT;
            m->current = NULL;
            return RQ__MERGE_STEPPED;
        }
        if (RQ_UNLIKELY(s->meta->bulk_loaded)) source_load(s);
        if (moved == RQ_HFILE_NEW_ROW) {
            leave_run(m, s);
            return RQ__MERGE_ROW_OVER;
        }
        if (!s->check_seqid || s->cell->seqid <= m->read_point) return RQ__MERGE_IN_ROW;
    }
}

void rq__merge_walked(rq__merge *m, bool before_others)
{
    rq__source *s = m->run;
    m->run = NULL;
    m->current = s->cell;
    if (!before_others) leave_run(m, s);
}

bool rq__merge_bound(const rq__merge *m, rq_slice *ret)
{
    if (m->heap_len == 1) return false;
    *ret = rq_cell_row(m->heap[1]->cell);
    if (m->heap_len == 2) return true;
    rq_slice other = rq_cell_row(m->heap[2]->cell);
    if (rq_row_compare(m->order, other, *ret) < 0) *ret = other;
    return true;
}

void rq__merge_moved_top(rq__merge *m)
{
    RQ_ASSERT(!m->lazy);
    m->run = NULL;
    sift_top(m);
    m->current = m->heap[0]->state == RQ__SOURCE_READY ? m->heap[0]->cell : NULL;
}

bool rq__merge_skip_row_here(rq__merge *m, bool in_row)
{
    if (!in_row || m->run == NULL) rq__merge_find_run(m);
    rq__source *s = m->run;
    if (s == NULL || !rq_hfile_scanner_skip_row_here(&s->file)) return false;
    if (RQ_UNLIKELY(s->meta->bulk_loaded)) source_load(s);
    leave_run(m, s);
    return true;
}

rq_err rq__merge_seek(rq__merge *m, const rq_cell *key)
{
    RQ_TRY(set_target(m, key));
    m->seeking = true;
    if (!m->lazy) return RQ_OK;
    /* Lazy keys point into the bytes of the former target. */
    bool any = false;
    for (uint32_t i = 0; i < m->heap_len; i++) {
        rq__source *s = m->heap[i];
        if (s->state != RQ__SOURCE_LAZY) continue;
        if (!make_lazy(m, s, &m->target.cell)) {
            s->own = m->target.cell;
            s->goal = &m->target.cell;
        }
        any = true;
    }
    if (any) heapify(m);
    return RQ_OK;
}

rq_err rq__merge_previous_row(rq__merge *m)
{
    RQ_ASSERT(m->reversed);
    return m->in_row ? leave_row(m) : RQ_OK;
}

rq_err rq__merge_seek_back(rq__merge *m, const rq_cell *key)
{
    RQ_ASSERT(m->reversed);
    rq_cell bound = rq_cell_last_on_row(rq_cell_row(key));
    RQ_TRY(set_target(m, key));
    RQ_TRY(leave_row(m));
    RQ_TRY(rq__kept_key_set(&m->bound, m->arena, &bound, m->family));
    m->bound.cell.seqid = UINT64_MAX;
    m->has_hint = true;
    for (uint32_t i = 0; i < m->source_count; i++) {
        rq__source *s = &m->sources[i];
        if (s->state == RQ__SOURCE_PARKED &&
            rq_cell_compare_key(m->order, s->cell, &m->bound.cell) >= 0)
            s->state = RQ__SOURCE_BEFORE;
    }
    return RQ_OK;
}
