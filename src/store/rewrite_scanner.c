/* SPDX-License-Identifier: Apache-2.0 */
/* The cells that a flush or compaction writes: the merge of its inputs without the cells that no
 * reader needs any more (HBASE: StoreScanner with MinorCompactionScanQueryMatcher or
 * MajorCompactionScanQueryMatcher of 2.6.1, Compactor.performCompaction).
 *
 * 1. A cell newer than the smallest open read point is kept. It does not count as a version, and a
 *    marker newer than that hides nothing yet.
 * 2. Expired cells are dropped (the family's TTL unless MIN_VERSIONS keeps them; the cell's own TTL
 *    always).
 * 3. Puts hidden by a marker are dropped, and versions above VERSIONS. With KEEP_DELETED_CELLS TRUE
 *    markers hide nothing here; with TTL only expired ones do.
 * 4. A flush, or a compaction of some of the files, keeps every marker it sees. A compaction of all
 *    files drops a marker once hbase.hstore.time.to.purge.deletes has passed; with
 *    KEEP_DELETED_CELLS it drops the marker with the versions it belongs to, or when no put of the
 *    inputs is older.
 * 5. The end of a column applies to markers too: behind the last version kept, older markers of the
 *    column are dropped unseen, in a flush as well. That is HBase's behaviour, visible in raw
 *    scans.
 * 6. A cell of a bulk-loaded file may be newer than cells in the memstore, because no flush precedes
 *    a bulk load (in HBase one does). So markers that are newer than some memstore cell are kept,
 *    and all cells newer than it keep their sequence ids: they must still hide or replace memstore
 *    cells.
 * 7. NEW_VERSION_BEHAVIOR: everything is kept unless all files take part; sequence ids are never
 *    zeroed. */
#include "store/store_scanner.h"

#include "store/compaction_priv.h"
#include "store/merge.h"
#include "store/query_matcher.h"

#define SKIP_STEPS 8
#define CELLS_BETWEEN_LOOKS 256
#define BYTES_BETWEEN_LOOKS (1u << 20)
/* Pages are dropped in steps of this size. The page cache allocates them in runs of up to that many
 * bytes, and a run is dropped only as a whole. */
#define DROP_BYTES ((uint64_t)1 << 20)
#define RUN_BYTES ((uint64_t)2 << 20)

struct rq_rewrite_scanner {
    rq_arena arena;
    rq_read_ctx ctx;
    rq__merge merge;
    rq__delete_tracker deletes;
    rq__column_tracker columns;
    rq__new_version_tracker *tracker;
    bool keep_all; /* rule 7 */
    bool drop_markers;
    rq_keep_deleted keep_deleted;
    uint64_t smallest_read_point;
    uint64_t unflushed_from;      /* UINT64_MAX: the memstore was empty */
    uint64_t max_seqid_inclusive; /* UINT64_MAX: not a flush */
    uint64_t zero_seqid_up_to;    /* 0: none */
    int64_t now_ms;
    int64_t purge_ms;
    int64_t earliest_put_ts;
    bool in_row;
    rq__kept_bytes row;
    bool skipping;
    uint32_t skip_left;
    rq__kept_bytes skip_column;
    rq_err (*look)(void *context, rq_error *why);
    void *look_context;
    uint32_t cells_unlooked, bytes_unlooked;
    size_t file_count;
    uint64_t *dropped; /* of each file: offset up to which pages were dropped; NULL: pages are
                        * kept */
};

/* HBASE: Compactor.getFileDetails. */
static void look_at_files(rq_rewrite_scanner *s, const rq_rewrite_options *o, bool zero)
{
    s->earliest_put_ts = INT64_MAX;
    int64_t old_before = rq__minus(o->now_ms, o->keep_seqid_period_ms);
    for (size_t i = 0; i < o->file_count; i++) {
        const rq_hfile_info *info = rq_hfile_reader_info(o->files[i].reader);
        rq_slice value;
        bool knows =
            rq_hfile_reader_file_info(o->files[i].reader, RQ_SLICE_LIT("EARLIEST_PUT_TS"), &value);
        /* A file without this information (it was bulk-loaded) may have puts of any age. */
        int64_t earliest = knows ? info->earliest_put_ts : INT64_MIN;
        if (earliest < s->earliest_put_ts) s->earliest_put_ts = earliest;
        if (zero && info->create_time_ms < old_before &&
            info->max_memstore_ts > s->zero_seqid_up_to)
            s->zero_seqid_up_to = info->max_memstore_ts;
    }
    if (s->zero_seqid_up_to > o->smallest_read_point) s->zero_seqid_up_to = o->smallest_read_point;
    if (s->zero_seqid_up_to >= s->unflushed_from) s->zero_seqid_up_to = s->unflushed_from - 1;
}

rq_err rq__rewrite_scanner_open(const rq_rewrite_options *o, rq_rewrite_scanner **ret,
                                rq_error *why)
{
    (void)why;
    const rq_family_schema *schema = rq_store_schema(o->store);
    rq_arena arena;
    rq_arena_init(&arena);
    rq_rewrite_scanner *s = rq_arena_calloc(&arena, 1, sizeof(*s));
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->arena = arena;
    s->ctx.may_block = true;
    s->ctx.dont_cache = true;
    s->file_count = o->file_count;
    s->keep_all = schema->new_version_behavior && !o->major;
    s->drop_markers = o->major && !o->is_flush;
    s->keep_deleted = schema->keep_deleted;
    s->smallest_read_point = o->smallest_read_point;
    s->unflushed_from = o->unflushed_from == 0 ? UINT64_MAX : o->unflushed_from;
    s->max_seqid_inclusive = o->is_flush ? o->max_seqid_inclusive : UINT64_MAX;
    s->now_ms = o->now_ms;
    s->purge_ms = o->time_to_purge_deletes_ms;
    s->look = o->look;
    s->look_context = o->look_context;
    s->deletes.arena = &s->arena;
    s->columns = (rq__column_tracker){
        .arena = &s->arena,
        .max_versions = schema->max_versions,
        .min_versions = schema->min_versions,
        .oldest = rq__oldest_unexpired(schema, o->now_ms),
    };
    look_at_files(s, o, s->drop_markers && !schema->new_version_behavior);

    rq__merge_init(&s->merge, &s->arena, schema->name, rq_store_order(o->store), UINT64_MAX);
    rq_err rc = rq__merge_begin(&s->merge, o->file_count + o->segment_count);
    if (rc == RQ_OK && o->drop_behind) {
        s->dropped = rq_arena_calloc(&s->arena, o->file_count, sizeof *s->dropped);
        if (s->dropped == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (rc == RQ_OK && schema->new_version_behavior)
        rc = rq__new_version_tracker_new(&s->arena, &s->columns, schema->max_versions,
                                         schema->max_versions, &s->tracker);
    if (rc == RQ_OK) {
        for (size_t i = 0; i < o->file_count; i++)
            rq__merge_add_file(&s->merge, &o->files[i]);
        for (size_t i = o->segment_count; i-- > 0;)
            rq__merge_add_segment(&s->merge, o->segments[i]);
        rq_cell key = rq_cell_first_on_row((rq_slice){0});
        rc = rq__merge_start(&s->merge, &key);
    }
    if (rc != RQ_OK) {
        rq__rewrite_scanner_close(s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

void rq__rewrite_scanner_close(rq_rewrite_scanner *s)
{
    if (s == NULL) return;
    rq__merge_clear(&s->merge);
    rq_read_ctx_clear(&s->ctx);
    rq_arena arena = s->arena; /* holds the scanner itself */
    rq_arena_clear(&arena);
}

static inline bool is(const uint8_t *bytes, size_t len, const rq__kept_bytes *kept)
{
    return rq_short_eq(bytes, len, kept->ptr, kept->len);
}

/* The next cell outside the column that is being skipped. */
static rq_err top(rq_rewrite_scanner *s, const rq_cell **ret, rq_error *why)
{
    for (;;) {
        RQ_TRY(rq__merge_top(&s->merge, &s->ctx, ret, why));
        if (!s->skipping) return RQ_OK;
        if (!is((*ret)->qualifier, (*ret)->qualifier_len, &s->skip_column) ||
            !is((*ret)->row, (*ret)->row_len, &s->row)) {
            s->skipping = false;
            return RQ_OK;
        }
        if (s->skip_left-- > 0) {
            rq__merge_step(&s->merge);
            continue;
        }
        rq_cell key = rq_cell_last_on_column(rq__kept_bytes_slice(&s->row), s->merge.family,
                                             rq__kept_bytes_slice(&s->skip_column));
        RQ_TRY(rq__merge_seek(&s->merge, &key));
        s->skip_left = UINT32_MAX;
    }
}

static rq_err skip_column(rq_rewrite_scanner *s, const rq_cell *cell)
{
    /* Family markers are at the empty qualifier, so no cell there is skipped unseen. */
    if (cell->qualifier_len == 0) return RQ_OK;
    s->skipping = true;
    s->skip_left = SKIP_STEPS;
    return rq__kept_bytes_set(&s->skip_column, &s->arena, cell->qualifier, cell->qualifier_len);
}

static bool is_expired(const rq_rewrite_scanner *s, int64_t ts)
{
    return ts < s->columns.oldest;
}

static rq_err track_marker(rq_rewrite_scanner *s, const rq_cell *cell)
{
    if (s->keep_deleted == RQ_KEEP_DELETED_TRUE ||
        (s->keep_deleted == RQ_KEEP_DELETED_TTL && !is_expired(s, cell->timestamp)))
        return RQ_OK;
    return s->tracker != NULL ? rq__new_version_tracker_add(s->tracker, cell)
                              : rq__delete_tracker_add(&s->deletes, cell);
}

/* HBASE: DropDeletesCompactionScanQueryMatcher.tryDropDelete. *ret_count: the marker is counted
 * with the versions, *ret is not set. */
static rq__match drop_marker(const rq_rewrite_scanner *s, const rq_cell *cell, bool *ret_count)
{
    *ret_count = false;
    if (s->purge_ms > 0 && cell->timestamp >= rq__minus(s->now_ms, s->purge_ms))
        return RQ__MATCH_INCLUDE;
    if (s->keep_deleted == RQ_KEEP_DELETED_TRUE ||
        (s->keep_deleted == RQ_KEEP_DELETED_TTL && !is_expired(s, cell->timestamp))) {
        if (cell->timestamp < s->earliest_put_ts) return RQ__MATCH_NEXT_COLUMN;
        *ret_count = true;
        return RQ__MATCH_INCLUDE;
    }
    return RQ__MATCH_SKIP;
}

static rq_err check_versions(rq_rewrite_scanner *s, const rq_cell *cell, rq__match *ret)
{
    bool keep = cell->seqid > s->smallest_read_point;
    if (s->tracker != NULL && !rq_cell_is_delete(cell)) {
        *ret = rq__new_version_tracker_check_versions(s->tracker, cell, keep);
        return RQ_OK;
    }
    return rq__column_tracker_check_versions(&s->columns, cell, keep, ret);
}

static rq_err match(rq_rewrite_scanner *s, const rq_cell *cell, rq__match *ret)
{
    *ret = RQ__MATCH_INCLUDE;
    if (s->keep_all) return RQ_OK;
    if (s->tracker == NULL && rq__column_tracker_is_expired(&s->columns, cell->timestamp)) {
        *ret = RQ__MATCH_NEXT_COLUMN;
        return RQ_OK;
    }
    if (rq__cell_ttl_expired(cell, s->now_ms)) {
        *ret = RQ__MATCH_SKIP;
        return RQ_OK;
    }
    if (rq_cell_is_delete(cell)) {
        if (cell->seqid > s->smallest_read_point) return RQ_OK;
        RQ_TRY(track_marker(s, cell));
        if (!s->drop_markers || cell->seqid > s->unflushed_from) return RQ_OK;
        bool count;
        *ret = drop_marker(s, cell, &count);
        return count ? check_versions(s, cell, ret) : RQ_OK;
    }
    if (s->tracker != NULL) {
        rq__deleted deleted;
        RQ_TRY(rq__new_version_tracker_check(s->tracker, cell, &deleted));
        if (deleted != RQ__NOT_DELETED) {
            *ret = RQ__MATCH_SKIP;
            return RQ_OK;
        }
    } else if (!rq__delete_tracker_is_empty(&s->deletes)) {
        rq__deleted deleted = rq__delete_tracker_check(&s->deletes, cell);
        if (deleted != RQ__NOT_DELETED) {
            *ret = deleted == RQ__COLUMN_DELETED ? RQ__MATCH_NEXT_COLUMN : RQ__MATCH_SKIP;
            return RQ_OK;
        }
    }
    return check_versions(s, cell, ret);
}

static rq_err enter_row(rq_rewrite_scanner *s, const rq_cell *cell)
{
    if (s->in_row && is(cell->row, cell->row_len, &s->row)) return RQ_OK;
    s->in_row = true;
    rq__delete_tracker_reset(&s->deletes);
    rq__column_tracker_reset(&s->columns);
    if (s->tracker != NULL) rq__new_version_tracker_reset(s->tracker);
    return rq__kept_bytes_set(&s->row, &s->arena, cell->row, cell->row_len);
}

/* Drops the pages of the inputs that have been read: the output reuses them at once, so a file's
 * data is in memory once, and the kernel need not allocate new pages. Readers of the inputs use the
 * block cache. HBASE: CacheConfig.shouldDropBehindCompaction. */
static void drop_behind(rq_rewrite_scanner *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        const rq__source *source = &s->merge.sources[i];
        uint64_t at = rq_hfile_scanner_offset(&source->file);
        if (s->dropped[i] == 0) s->dropped[i] = at; /* half a file begins in its middle */
        if (at < s->dropped[i] + DROP_BYTES) continue;
        uint64_t from = s->dropped[i] < RUN_BYTES ? 0 : s->dropped[i] - RUN_BYTES;
        rq_hfile_reader_drop_behind(source->meta->reader, from, at);
        s->dropped[i] = at;
    }
}

static rq_err check_between_cells(rq_rewrite_scanner *s, const rq_cell *cell, rq_error *why)
{
    s->bytes_unlooked +=
        cell->value_len < BYTES_BETWEEN_LOOKS ? cell->value_len : BYTES_BETWEEN_LOOKS;
    if (++s->cells_unlooked < CELLS_BETWEEN_LOOKS && s->bytes_unlooked < BYTES_BETWEEN_LOOKS)
        return RQ_OK;
    s->cells_unlooked = s->bytes_unlooked = 0;
    if (s->dropped != NULL) drop_behind(s);
    return s->look == NULL ? RQ_OK : s->look(s->look_context, why);
}

rq_err rq__rewrite_scanner_next(rq_rewrite_scanner *s, rq_cell *ret, rq_error *why)
{
    for (;;) {
        const rq_cell *cell = NULL;
        RQ_TRY(top(s, &cell, why));
        RQ_TRY(check_between_cells(s, cell, why));
        RQ_ASSERT(cell->seqid <= s->max_seqid_inclusive);
        RQ_TRY(enter_row(s, cell));
        rq__match m;
        RQ_TRY(match(s, cell, &m));
        if (m == RQ__MATCH_NEXT_COLUMN || m == RQ__MATCH_INCLUDE_AND_NEXT_COLUMN)
            RQ_TRY(skip_column(s, cell));
        rq__merge_step(&s->merge);
        if (m != RQ__MATCH_INCLUDE && m != RQ__MATCH_INCLUDE_AND_NEXT_COLUMN) continue;
        *ret = *cell;
        if (ret->seqid <= s->zero_seqid_up_to) ret->seqid = 0;
        return RQ_OK;
    }
}
