/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read before they write: conditions, increments, appends, deletes of the newest version.
 *
 * An op runs as a whole under the writer token: it reads the newest staged state, adds its cells to
 * the group and commits the group as one record with one number, so it is atomic and no other write
 * comes between reading and writing. All reads happen before any cell of the op is linked: as in
 * HBase, an increment inside RowMutations does not see a put of the same op (HBASE:
 * MutationBatchOperation.prepareMiniBatchOperations). If a block is missing, the op is abandoned
 * and starts again once the block is loaded.
 *
 * An op whose reads take long is abandoned, too, and made in three passes of the same code: PLANNING lists its
 * reads, which do not depend on each other; the reads run without the token, while the op's rows are locked
 * (apart.h); APPLYING, under the token again, runs the op with the results of the reads. */
#include "region/apart.h"
#include "region/engine_priv.h"
#include "region/region_scanner_priv.h"

#include <stdlib.h>

#define READ_STEPS 8 /* of a read, beside its cells */
/* What the reads of an op may find together: a condition's filter passes whole rows. */
#define READ_BYTES_MAX ((uint64_t)64 << 20)
/* The same limit under the token; beyond it the op reads apart. The bytes are copied into the scratch block, and the
 * value of an append three times more (new value, log record, memstore), which takes at least a millisecond per
 * megabyte. */
#define TOKEN_BYTES_MAX ((uint64_t)256 * 1024)
#define SCRATCH_KEPT ((size_t)256 * 1024)

typedef enum pass {
    DIRECT, /* the op reads under the token */
    PLANNING,
    APPLYING,
} pass;

/* One run of one op. */
typedef struct run {
    rq_region *region;
    rq_row_op *op;
    rq_read_ctx *ctx;
    rq_arena *arena; /* the region's scratch; reset when the op begins */
    int64_t now_ms;
    int64_t put_ms;        /* timestamp of puts without one */
    bool remembers;        /* the nonce is noted when the op is done */
    uint64_t duplicate_of; /* the number of the earlier op with this nonce, or 0 */
    bool asks_again;       /* an earlier run has asked the filters of conditions */
    int64_t search_left;   /* see check_condition */
    uint64_t found_bytes;  /* by reads under the token */
    rq__token_slice slice;
    pass pass;
    rq__plan *plan; /* NULL: DIRECT */
    rq_error *why;
} run;

/* --- reading ---------------------------------------------------------------------------------- */

static rq_time_range range_or_all(rq_time_range t)
{
    return t.min == 0 && t.max == 0 ? RQ_TIME_RANGE_ALL : t;
}

static rq_scan scan_of_columns(rq_slice row, const rq_scan_family *families, size_t family_count,
                               rq_time_range range)
{
    rq_scan scan = rq_scan_of_row(row);
    scan.families = families;
    scan.family_count = family_count;
    scan.time_range = range_or_all(range);
    return scan;
}

/* The cells as views on the block. */
static rq_err cells_of(const rq_cellblock *block, rq_arena *arena, rq_cell **ret, size_t *ret_count,
                       rq_error *why)
{
    rq_cell *cells = rq_arena_calloc(arena, (size_t)block->count + 1, sizeof *cells);
    if (cells == NULL) return RQ_E_NO_MEMORY;
    rq_cursor c = rq_cursor_of(rq_buf_slice(&block->bytes));
    for (size_t i = 0; i < block->count; i++)
        RQ_TRY(rq_cellblock_next(&c, &cells[i], why));
    *ret = cells;
    *ret_count = block->count;
    return RQ_OK;
}

/* The scan may find what is left of the op's bytes under the token. False: nothing is left. */
static bool limit_bytes(const run *u, rq_scan *scan)
{
    scan->row_bytes_max = TOKEN_BYTES_MAX - u->found_bytes;
    return u->found_bytes < TOKEN_BYTES_MAX;
}

/* RQ_E_AGAIN without a need (rq_read_ctx_needs): the op must read apart. */
static rq_err apart_if_long(rq_err rc)
{
    return rc == RQ_E_ROW_TOO_BIG ? RQ_E_AGAIN : rc;
}

/* The row's cells as views on the region's scratch block: valid until the next read. */
static rq_err read_under_token(run *u, rq_scan *scan, rq_cell **ret, size_t *ret_count)
{
    rq_cellblock *block = &u->region->scratch_cells;
    rq_cellblock_reset(block);
    block->with_tags = true;
    uint64_t passed = u->ctx->cells_passed;
    if (!limit_bytes(u, scan)) return RQ_E_AGAIN;
    rq_err rc = rq__staged_read_row(u->region, scan, u->arena, u->ctx, &u->slice, block, u->why);
    u->region->meter.steps += READ_STEPS + block->count + (u->ctx->cells_passed - passed);
    if (rc != RQ_OK) return apart_if_long(rc);
    u->found_bytes += block->bytes.len;
    return cells_of(block, u->arena, ret, ret_count, u->why);
}

/* --- reads apart from the token ----------------------------------------------------------------- */

static rq_err plan_read(run *u, const rq_scan *scan, const rq_condition *c, uint64_t read_point)
{
    rq__planned *e = rq_arena_calloc(u->arena, 1, sizeof *e);
    if (e == NULL) return RQ_E_NO_MEMORY;
    e->scan = *scan;
    e->condition = c;
    e->read_point = read_point;
    e->cells.with_tags = true;
    *u->plan->end = e;
    u->plan->end = &e->next;
    u->plan->count++;
    return RQ_OK;
}

/* What the next planned read has found. The reads of an op are planned and applied in the same order. */
static rq__planned *take_planned(run *u)
{
    rq__planned *e = u->plan->at;
    RQ_ASSERT(e != NULL);
    u->plan->at = e->next;
    return e;
}

static rq_err read_row(run *u, rq_scan *scan, rq_cell **ret, size_t *ret_count)
{
    if (u->pass == DIRECT) return read_under_token(u, scan, ret, ret_count);
    *ret = NULL;
    *ret_count = 0;
    if (u->pass == PLANNING) return plan_read(u, scan, NULL, 0);
    return cells_of(&take_planned(u)->cells, u->arena, ret, ret_count, u->why);
}

/* --- conditions ------------------------------------------------------------------------------- */

/* HBASE: HRegion.checkAndMutateInternal; MultiRowMutationEndpoint.matches. */
static rq_err value_matches(const rq_condition *c, const rq_cell *cells, size_t count, bool *ret,
                            rq_error *why)
{
    bool wants_null = rq_comparator_value(c->comparator).len == 0;
    *ret = false;
    if (wants_null) {
        bool is_null = count == 0 || cells[0].value_len == 0;
        *ret = is_null == (c->null_ignores_op || c->op != RQ_NOT_EQUAL);
        return RQ_OK;
    }
    if (count != 1) return RQ_OK;
    int compared;
    RQ_TRY(rq_comparator_compare(c->comparator, rq_cell_value(&cells[0]), &compared, why));
    if (c->op == RQ_NO_OP) /* HBASE: HRegion.matches */
        return rq_fail(why, RQ_E_IOEXCEPTION, "Unknown Compare op NO_OP");
    *ret = rq_compare_op_check(c->op, compared);
    return RQ_OK;
}

static rq_err scan_of_condition(run *u, const rq_condition *c, rq_scan *ret)
{
    rq_scan_family *family = rq_arena_alloc(u->arena, sizeof *family);
    size_t hint = 0;
    if (family == NULL) return RQ_E_NO_MEMORY;
    *family =
        (rq_scan_family){.family = c->family, .qualifiers = &c->qualifier, .qualifier_count = 1};
    *ret = scan_of_columns(c->row, family, c->filter == NULL ? 1 : 0, c->time_range);
    ret->filter = c->filter;
    if (c->filter != NULL || rq__region_store_of(u->region, c->family, &hint) != NULL) return RQ_OK;
    return rq__region_no_family(u->region, c->family, u->why);
}

static rq_err cells_match(const rq_condition *c, const rq_cell *cells, size_t count, bool *ret,
                          rq_error *why)
{
    if (c->filter == NULL) return value_matches(c, cells, count, ret, why);
    *ret = count > 0;
    return RQ_OK;
}

/* Text searches of all conditions together have one allowance (filter/pace.h), because the region's
 * token, or a lock of its rows, is held. */
static rq_pace *begin_search(const rq_filter *filter, const rq_condition *c, int64_t left)
{
    rq_pace *pace = filter != NULL ? rq_filter_pace(filter) : rq_comparator_pace(c->comparator);
    if (pace == NULL) return NULL;
    rq_pace_begin(pace, false);
    pace->whole_left = left > 0 ? left : 0;
    return pace;
}

/* RQ_E_AGAIN also if the filter has seen the row in an earlier run: parsing another one may take long, too. */
static rq_err check_under_token(run *u, rq_scan *scan, const rq_condition *c, bool *ret)
{
    rq_cell *cells;
    size_t count;
    if (c->filter != NULL && u->asks_again) return RQ_E_AGAIN;
    u->op->asked_filters |= c->filter != NULL;
    rq_pace *pace = begin_search(c->filter, c, u->search_left);
    rq_err rc = read_under_token(u, scan, &cells, &count);
    if (rc == RQ_OK && count > 0 && cells[0].timestamp > u->put_ms) u->put_ms = cells[0].timestamp;
    if (rc == RQ_OK) rc = cells_match(c, cells, count, ret, u->why);
    if (pace != NULL) u->search_left = pace->whole_left;
    return rc;
}

static rq_err check_condition(run *u, const rq_condition *c, bool *ret)
{
    rq_scan scan;
    *ret = true;
    RQ_TRY(scan_of_condition(u, c, &scan));
    if (u->pass == DIRECT) return check_under_token(u, &scan, c, ret);
    if (u->pass == PLANNING) return plan_read(u, &scan, c, 0);
    const rq__planned *e = take_planned(u);
    *ret = e->matched;
    if (e->timestamp > u->put_ms) u->put_ms = e->timestamp;
    return RQ_OK;
}

static rq_err check_conditions(run *u, bool *ret)
{
    const rq_row_op *op = u->op;
    u->search_left = RQ_PACE_WHOLE;
    for (size_t i = 0; i < op->condition_count; i++) {
        RQ_TRY(check_condition(u, &op->conditions[i], ret));
        if (!*ret) return RQ_OK;
    }
    *ret = true;
    return RQ_OK;
}

static rq_err check_rows(const run *u)
{
    const rq_row_op *op = u->op;
    if (op->multi_row || op->condition_count == 0) return RQ_OK;
    for (size_t i = 0; i < op->mutation_count; i++)
        if (!rq_slice_eq(op->mutations[i].row, op->conditions[0].row))
            return rq_fail(u->why, RQ_E_DO_NOT_RETRY, "Action's getRow must match");
    return RQ_OK;
}

/* --- puts and deletes ------------------------------------------------------------------------- */

static rq_err add_cell(run *u, const rq_mutation *m, rq_cell c)
{
    size_t hint = 0;
    c.row = m->row.ptr;
    c.row_len = (uint16_t)m->row.len;
    return rq__group_add(u->region, rq__region_store_of(u->region, rq_cell_family(&c), &hint), &c,
                         RQ_TIMESTAMP_LATEST);
}

static rq_err run_put(run *u, const rq_mutation *m)
{
    if (u->pass == PLANNING) return RQ_OK;
    for (size_t i = 0; i < m->cell_count; i++) {
        rq_cell c = m->cells[i];
        if (c.timestamp == RQ_TIMESTAMP_LATEST) c.timestamp = u->put_ms;
        RQ_TRY(add_cell(u, m, c));
    }
    return RQ_OK;
}

/* --- increments and appends ------------------------------------------------------------------- */

typedef struct delta {
    rq_cell cell;
    size_t position; /* index in the mutation: keeps equal columns in the given order */
} delta;

static int compare_deltas(const void *a, const void *b)
{
    const delta *x = a;
    const delta *y = b;
    int c = rq_cell_compare_column(&x->cell, &y->cell);
    if (c == 0 && x->cell.timestamp != y->cell.timestamp)
        return x->cell.timestamp > y->cell.timestamp ? -1 : 1;
    return c != 0 ? c : (x->position > y->position) - (x->position < y->position);
}

/* The mutation's cells by column. HBASE: a sorted family map, deltas sorted per store. */
static rq_err sort_deltas(run *u, const rq_mutation *m, delta **ret)
{
    delta *list = rq_arena_calloc(u->arena, m->cell_count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->cell_count; i++)
        list[i] = (delta){m->cells[i], i};
    qsort(list, m->cell_count, sizeof *list, compare_deltas);
    *ret = list;
    return RQ_OK;
}

/* The columns of sorted deltas, as the families of a scan. */
static rq_err columns_of(run *u, const delta *list, size_t count, rq_scan_family **ret,
                         size_t *ret_count)
{
    rq_scan_family *families = rq_arena_calloc(u->arena, count + 1, sizeof *families);
    rq_slice *qualifiers = rq_arena_calloc(u->arena, count + 1, sizeof *qualifiers);
    if (families == NULL || qualifiers == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const rq_cell *c = &list[i].cell;
        if (i > 0 && rq_cell_compare_column(&list[i - 1].cell, c) == 0) continue;
        if (n == 0 || !rq_slice_eq(families[n - 1].family, rq_cell_family(c)))
            families[n++] = (rq_scan_family){.family = rq_cell_family(c), .qualifiers = qualifiers};
        families[n - 1].qualifier_count++;
        *qualifiers++ = rq_cell_qualifier(c);
    }
    *ret = families;
    *ret_count = n;
    return RQ_OK;
}

static rq_err long_of(const rq_cell *c, uint64_t *ret, rq_error *why)
{
    if (c->value_len != 8)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Field is not a long, it's %u bytes wide",
                       c->value_len);
    *ret = rq_get_be64(c->value);
    return RQ_OK;
}

static rq_err new_value(run *u, const rq_mutation *m, const rq_cell *d, const rq_cell *current,
                        rq_cell *ret)
{
    if (m->type == RQ_MUTATE_INCREMENT) {
        uint64_t add = 0;
        uint64_t old = 0;
        RQ_TRY(long_of(d, &add, u->why));
        if (current != NULL) RQ_TRY(long_of(current, &old, u->why));
        uint8_t *p = rq_arena_alloc(u->arena, 8);
        if (p == NULL) return RQ_E_NO_MEMORY;
        rq_put_be64(p, old + add); /* wraps as Java's long */
        ret->value = p;
        ret->value_len = 8;
        return RQ_OK;
    }
    if (current == NULL) return RQ_OK;
    uint32_t len;
    uint8_t *p;
    if (__builtin_add_overflow(current->value_len, d->value_len, &len) || len > INT32_MAX)
        return rq_fail(u->why, RQ_E_DO_NOT_RETRY, "appended value is too long");
    p = rq_arena_alloc(u->arena, len);
    if (p == NULL) return RQ_E_NO_MEMORY;
    if (current->value_len > 0) memcpy(p, current->value, current->value_len);
    if (d->value_len > 0) memcpy(p + current->value_len, d->value, d->value_len);
    ret->value = p;
    ret->value_len = len;
    return RQ_OK;
}

/* Tags of the delta, then those of the old cell; a TTL of the delta replaces the old cell's.
 * HBASE: TagUtil.carryForwardTags, carryForwardTTLTag. */
static rq_err carry_tags(run *u, const rq_cell *d, const rq_cell *current, rq_cell *ret)
{
    if (current->tags_len == 0) return RQ_OK;
    size_t room = (size_t)d->tags_len + current->tags_len;
    uint8_t *tags = rq_arena_alloc(u->arena, room);
    if (tags == NULL) return RQ_E_NO_MEMORY;
    size_t len = d->tags_len;
    if (len > 0) memcpy(tags, d->tags, len);
    rq_slice own_ttl;
    bool replaces_ttl = rq_cell_tag(d, RQ_TAG_TTL, &own_ttl);
    rq_cursor c = rq_cursor_of(rq_slice_of(current->tags, current->tags_len));
    uint16_t tag_len;
    rq_slice tag;
    while (rq_cursor_be16(&c, &tag_len) && rq_cursor_bytes(&c, tag_len, &tag)) {
        if (tag.len > 0 && tag.ptr[0] == RQ_TAG_TTL && replaces_ttl) continue;
        rq_put_be16(tags + len, tag_len);
        if (tag.len > 0) memcpy(tags + len + 2, tag.ptr, tag.len);
        len += 2 + tag.len;
    }
    if (len > RQ_TAGS_LEN_MAX)
        return rq_fail(u->why, RQ_E_DO_NOT_RETRY, "tags of %zu bytes are too long", len);
    ret->tags = tags;
    ret->tags_len = (uint16_t)len;
    return RQ_OK;
}

/* HBASE: HRegion.reckonDelta. */
static rq_err reckon(run *u, const rq_mutation *m, const rq_cell *d, const rq_cell *current,
                     rq_cell *ret)
{
    *ret = *d;
    ret->row = m->row.ptr;
    ret->row_len = (uint16_t)m->row.len;
    ret->type = RQ_TYPE_PUT;
    RQ_TRY(new_value(u, m, d, current, ret));
    if (current != NULL) {
        ret->timestamp = current->timestamp >= u->now_ms ? current->timestamp + 1 : u->now_ms;
        RQ_TRY(carry_tags(u, d, current, ret));
    } else if (ret->timestamp == RQ_TIMESTAMP_LATEST) {
        ret->timestamp = u->now_ms;
    }
    uint64_t limit = u->region->cell_bytes_max;
    size_t size = rq_cell_serialized_len(ret, true) + 4;
    if (limit > 0 && size > limit)
        return rq_fail(u->why, RQ_E_DO_NOT_RETRY,
                       "Cell with size %zu exceeds limit of %llu bytes in region %.*s", size,
                       (unsigned long long)limit, (int)u->region->info.name.len,
                       (const char *)u->region->info.name.ptr);
    return RQ_OK;
}

static rq_err run_deltas(run *u, const rq_mutation *m)
{
    delta *list;
    rq_scan_family *families;
    size_t family_count;
    RQ_TRY(sort_deltas(u, m, &list));
    RQ_TRY(columns_of(u, list, m->cell_count, &families, &family_count));
    rq_scan scan = scan_of_columns(m->row, families, family_count, m->time_range);
    rq_cell *old;
    size_t old_count;
    RQ_TRY(read_row(u, &scan, &old, &old_count));
    if (u->pass == PLANNING) return RQ_OK;
    size_t at = 0;
    for (size_t i = 0; i < m->cell_count; i++) {
        const rq_cell *d = &list[i].cell;
        while (at < old_count && rq_cell_compare_column(&old[at], d) < 0)
            at++;
        bool found = at < old_count && rq_cell_same_column(&old[at], d);
        rq_cell fresh;
        RQ_TRY(reckon(u, m, d, found ? &old[at] : NULL, &fresh));
        RQ_TRY(add_cell(u, m, fresh));
        if (!m->return_results) continue;
        /* HBase does not return the tags of a new column, not even to a codec with tags. */
        if (!found) fresh.tags_len = 0;
        RQ_TRY(rq_cellblock_append(&u->op->result, &fresh));
    }
    return RQ_OK;
}

static rq_err add_result(run *u, const rq_cellblock *block)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(&block->bytes));
    for (size_t i = 0; i < block->count; i++) {
        rq_cell cell;
        RQ_TRY(rq_cellblock_next(&c, &cell, u->why));
        RQ_TRY(rq_cellblock_append(&u->op->result, &cell));
    }
    return RQ_OK;
}

/* The op was done before under this nonce: returns its result without repeating it. HBASE: a
 * duplicate is converted to a Get at the first one's number. */
static rq_err answer_duplicate(run *u, const rq_mutation *m)
{
    if (!m->return_results) return RQ_OK;
    delta *list;
    rq_scan_family *families;
    size_t family_count;
    RQ_TRY(sort_deltas(u, m, &list));
    RQ_TRY(columns_of(u, list, m->cell_count, &families, &family_count));
    rq_scan scan = scan_of_columns(m->row, families, family_count, m->time_range);
    if (u->pass == PLANNING) return plan_read(u, &scan, NULL, u->duplicate_of);
    if (u->pass == APPLYING) return add_result(u, &take_planned(u)->cells);
    rq_region_scanner *s;
    if (!limit_bytes(u, &scan)) return RQ_E_AGAIN;
    RQ_TRY(rq_region_scanner_open(u->region, &scan, u->duplicate_of, u->arena, &s, u->why));
    size_t before = u->op->result.bytes.len;
    rq_err rc = rq__staged_next(s, u->ctx, &u->slice, &u->op->result, u->why);
    rq_region_scanner_close(s);
    u->found_bytes += u->op->result.bytes.len - before;
    return apart_if_long(rc);
}

/* --- deletes of the newest version ------------------------------------------------------------ */

/* Deletes of the newest version of one column: list[first, first + count). */
typedef struct column_deletes {
    size_t first;
    size_t count;
} column_deletes;

static int compare_column_deletes(const void *a, const void *b)
{
    const column_deletes *x = a;
    const column_deletes *y = b;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Groups columns by the number of versions to delete. */
static rq_err group_deletes(run *u, const delta *list, size_t count, column_deletes **ret,
                            size_t *ret_count)
{
    column_deletes *columns = rq_arena_alloc(u->arena, (count + 1) * sizeof *columns);
    size_t n = 0;
    if (columns == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || rq_cell_compare_column(&list[i - 1].cell, &list[i].cell) != 0)
            columns[n++] = (column_deletes){i, 0};
        columns[n - 1].count++;
    }
    qsort(columns, n, sizeof *columns, compare_column_deletes);
    *ret = columns;
    *ret_count = n;
    return RQ_OK;
}

/* Reads columns[0, count), which have the same number of deletes, and sets the timestamps: the n-th
 * delete gets the timestamp of the n-th newest version, or the present. */
static rq_err find_versions(run *u, const rq_mutation *m, const delta *list,
                            const column_deletes *columns, size_t count, int64_t *timestamps)
{
    delta *asked = rq_arena_alloc(u->arena, count * sizeof *asked);
    rq_scan_family *families;
    size_t family_count;
    if (asked == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        asked[i] = list[columns[i].first];
    RQ_TRY(columns_of(u, asked, count, &families, &family_count));
    rq_scan scan = scan_of_columns(m->row, families, family_count, RQ_TIME_RANGE_ALL);
    scan.max_versions = (int32_t)columns[0].count;
    rq_cell *old;
    size_t old_count;
    RQ_TRY(read_row(u, &scan, &old, &old_count));
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const delta *d = &list[columns[i].first];
        while (at < old_count && rq_cell_compare_column(&old[at], &d->cell) < 0)
            at++;
        for (size_t n = 0; n < columns[i].count; n++) {
            bool found = at < old_count && rq_cell_same_column(&old[at], &d->cell);
            timestamps[d[n].position] = found ? old[at++].timestamp : u->now_ms;
        }
    }
    return RQ_OK;
}

/* The timestamps for the mutation's deletes of the newest version, by the cell's index. HBASE:
 * HRegion.prepareDeleteTimestamps. HBase reads once for each delete; this reads once for all
 * columns with one delete, once for all with two, and so on. */
static rq_err find_newest(run *u, const rq_mutation *m, int64_t **ret)
{
    delta *list = rq_arena_alloc(u->arena, (m->cell_count + 1) * sizeof *list);
    int64_t *timestamps = rq_arena_alloc(u->arena, (m->cell_count + 1) * sizeof *timestamps);
    if (list == NULL || timestamps == NULL) return RQ_E_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < m->cell_count; i++)
        if (rq__cell_deletes_newest(&m->cells[i])) list[count++] = (delta){m->cells[i], i};
    qsort(list, count, sizeof *list, compare_deltas);
    column_deletes *columns;
    size_t column_count;
    RQ_TRY(group_deletes(u, list, count, &columns, &column_count));
    size_t end;
    for (size_t i = 0; i < column_count; i = end) {
        for (end = i + 1; end < column_count && columns[end].count == columns[i].count;)
            end++;
        RQ_TRY(find_versions(u, m, list, &columns[i], end - i, timestamps));
    }
    *ret = timestamps;
    return RQ_OK;
}

static rq_err run_delete(run *u, const rq_mutation *m)
{
    int64_t *newest;
    RQ_TRY(find_newest(u, m, &newest));
    if (u->pass == PLANNING) return RQ_OK;
    for (size_t i = 0; i < m->cell_count; i++) {
        rq_cell c = m->cells[i];
        if (rq__cell_deletes_newest(&c))
            c.timestamp = newest[i];
        else if (c.timestamp == RQ_TIMESTAMP_LATEST)
            c.timestamp = u->now_ms;
        RQ_TRY(add_cell(u, m, c));
    }
    return RQ_OK;
}

/* --- the op ----------------------------------------------------------------------------------- */

static rq_err run_mutation(run *u, const rq_mutation *m)
{
    if (u->duplicate_of != 0) return rq__mutation_is_delta(m) ? answer_duplicate(u, m) : RQ_OK;
    switch (m->type) {
    case RQ_MUTATE_PUT:
        return run_put(u, m);
    case RQ_MUTATE_DELETE:
        return run_delete(u, m);
    case RQ_MUTATE_APPEND:
    case RQ_MUTATE_INCREMENT:
        return run_deltas(u, m);
    }
    return rq_fail(u->why, RQ_E_DO_NOT_RETRY, "unknown mutation type %d", (int)m->type);
}

static rq_err check_mutations(const run *u)
{
    const rq_row_op *op = u->op;
    bool atomic = op->mutation_count > 1 || op->multi_row;
    for (size_t i = 0; i < op->condition_count; i++) {
        rq_mutation row_only = {.type = RQ_MUTATE_PUT, .row = op->conditions[i].row};
        RQ_TRY(rq__mutation_check(u->region, &row_only, true, u->now_ms, u->why));
    }
    if (op->condition_count > 0) return check_rows(u);
    for (size_t i = 0; i < op->mutation_count; i++)
        RQ_TRY(rq__mutation_check(u->region, &op->mutations[i], atomic, u->now_ms, u->why));
    return RQ_OK;
}

/* HBASE: HRegion.checkAndMutateInternal: the mutations are only checked when they are applied. */
static rq_err check_conditional_mutations(const run *u)
{
    const rq_row_op *op = u->op;
    for (size_t i = 0; i < op->mutation_count && op->condition_count > 0; i++)
        RQ_TRY(rq__mutation_check(u->region, &op->mutations[i], true, u->now_ms, u->why));
    return RQ_OK;
}

static rq_err find_duplicate(run *u)
{
    const rq_row_op *op = u->op;
    rq_region *r = u->region;
    bool counts = false;
    for (size_t i = 0; i < op->mutation_count; i++)
        counts |= rq__mutation_is_delta(&op->mutations[i]);
    if (!r->engine->nonces_enabled || op->nonce == 0 || !counts) return RQ_OK;
    u->duplicate_of = rq__nonces_find(r->engine->nonces, op->nonce_group, op->nonce);
    u->remembers = u->duplicate_of == 0;
    return RQ_OK;
}

/* Commits the group as one record with the op's nonce. The nonce is noted before, while failure is
 * still possible: after the commit nothing may fail. */
static rq_err commit_with_nonce(run *u)
{
    rq_region *r = u->region;
    const rq_row_op *op = u->op;
    rq__nonces *nonces = r->engine->nonces;
    rq__nonce_id id;
    if (r->group->count == 0) return RQ_OK;
    RQ_TRY(rq__nonce_list_reserve(&r->nonces));
    RQ_TRY(rq__nonces_add(nonces, op->nonce_group, op->nonce, r->staged_seqid + 1, &id));
    rq_err rc = rq__group_commit(r, u->now_ms, op->nonce_group, op->nonce, u->why);
    if (rc == RQ_OK)
        rq__nonce_list_add(&r->nonces, id);
    else
        rq__nonces_forget(nonces, id);
    return rc;
}

static rq_err run_op(run *u)
{
    rq_row_op *op = u->op;
    rq_region *r = u->region;
    RQ_TRY(check_mutations(u));
    RQ_TRY(find_duplicate(u));
    if (u->pass == APPLYING && u->duplicate_of != u->plan->duplicate_of) return RQ_E_AGAIN;
    /* If the nonce is known, the conditions were met before. */
    if (u->duplicate_of == 0) RQ_TRY(check_conditions(u, &op->processed));
    if (!op->processed) return RQ_OK;
    RQ_TRY(check_conditional_mutations(u));
    for (size_t i = 0; i < op->mutation_count; i++) {
        if (u->pass != PLANNING) r->meter.steps += op->mutations[i].cell_count + 1;
        RQ_TRY(run_mutation(u, &op->mutations[i]));
    }
    if (u->pass == PLANNING) return RQ_OK;
    return u->remembers ? commit_with_nonce(u) : rq__group_commit(r, u->now_ms, 0, 0, u->why);
}

/* --- its passes ------------------------------------------------------------------------------- */

static run run_of(rq_region *r, rq_row_op *op, int64_t now_ms, rq_error *why)
{
    return (run){.region = r,
                 .op = op,
                 .now_ms = now_ms,
                 .put_ms = now_ms,
                 .asks_again = op->asked_filters,
                 .why = why};
}

static rq_err end_run(rq_region *r, rq_row_op *op, rq_err rc, rq_error *why)
{
    if (rc == RQ_OK) return RQ_OK;
    rq__group_rollback(r, 0);
    rq_cellblock_reset(&op->result);
    return rc == RQ_E_AGAIN ? rc : rq_fail(why, rc, "%s", rq_err_text(rc));
}

rq_err rq__op_run_reading(rq_region *r, rq_row_op *op, rq_read_ctx *ctx, int64_t now_ms,
                          rq_error *why)
{
    RQ_ASSERT(r->group->count == 0);
    rq_arena_reset(&r->scratch);
    rq_cellblock_reset(&op->result);
    run u = run_of(r, op, now_ms, why);
    u.ctx = ctx;
    u.arena = &r->scratch;
    rq_err rc = run_op(&u);
    if (r->scratch_cells.bytes.cap > SCRATCH_KEPT) rq_cellblock_clear(&r->scratch_cells);
    return end_run(r, op, rc, why);
}

rq_err rq__plan_make(rq__plan *p, rq_region *r, rq_row_op *op, int64_t now_ms, rq_error *why)
{
    run u = run_of(r, op, now_ms, why);
    rq_arena_reset(&p->arena);
    u.arena = &p->arena;
    u.pass = PLANNING;
    u.plan = p;
    p->end = &p->first;
    p->search_left = RQ_PACE_WHOLE;
    rq_err rc = run_op(&u);
    p->at = p->first;
    p->duplicate_of = u.duplicate_of;
    return rc;
}

rq_err rq__plan_apply(rq__plan *p, rq_region *r, rq_row_op *op, int64_t now_ms, rq_error *why)
{
    RQ_ASSERT(r->group->count == 0);
    rq_arena_reset(&r->scratch);
    rq_cellblock_reset(&op->result);
    run u = run_of(r, op, now_ms, why);
    u.arena = &r->scratch;
    u.pass = APPLYING;
    u.plan = p;
    p->at = p->first;
    return end_run(r, op, run_op(&u), why);
}

void rq__plan_clear(rq__plan *p)
{
    for (rq__planned *e = p->first; e != NULL; e = e->next)
        rq_cellblock_clear(&e->cells);
    if (p->scanner != NULL) rq_region_scanner_close(p->scanner);
    rq_arena_clear(&p->reading);
    rq_arena_clear(&p->arena);
    *p = (rq__plan){0};
}

/* The condition's own filter may have seen the row under the token. */
static rq_err begin_condition(rq__plan *p, rq__planned *e, rq_error *why)
{
    const rq_condition *c = e->condition;
    if (c->filter != NULL)
        RQ_TRY(
            rq_filter_parse(c->filter_class, c->filter_message, &p->reading, &e->scan.filter, why));
    p->filter_bytes = c->filter != NULL ? p->reading.total_bytes : 0;
    p->pace = begin_search(e->scan.filter, c, p->search_left);
    return RQ_OK;
}

static rq_err begin_planned(rq__plan *p, rq_region *r, rq__planned *e, rq_error *why)
{
    e->scan.row_bytes_max = p->bytes < READ_BYTES_MAX ? READ_BYTES_MAX - p->bytes : 1;
    p->pace = NULL;
    if (e->condition != NULL) RQ_TRY(begin_condition(p, e, why));
    if (e->read_point == 0) return rq__staged_open(r, &e->scan, &p->reading, &p->scanner, why);
    return rq_region_scanner_open(r, &e->scan, e->read_point, &p->reading, &p->scanner, why);
}

/* The cells of a condition are needed no more once it is known whether they meet it. */
static rq_err end_condition(rq__plan *p, rq__planned *e, rq_error *why)
{
    rq_cell *cells;
    size_t count;
    RQ_TRY(cells_of(&e->cells, &p->reading, &cells, &count, why));
    e->timestamp = count > 0 ? cells[0].timestamp : 0;
    rq_err rc = cells_match(e->condition, cells, count, &e->matched, why);
    if (p->pace != NULL) p->search_left = p->pace->whole_left;
    rq_cellblock_clear(&e->cells);
    return rc;
}

static rq_err end_planned(rq__plan *p, rq__planned *e, rq_error *why)
{
    rq_region_scanner_close(p->scanner);
    p->scanner = NULL;
    rq_err rc = e->condition != NULL ? end_condition(p, e, why) : RQ_OK;
    rq_arena_reset(&p->reading);
    p->filter_bytes = 0;
    p->bytes += e->cells.bytes.cap;
    p->at = e->condition != NULL && !e->matched ? NULL : e->next;
    return rc;
}

rq_err rq__plan_read(rq__plan *p, rq_region *r, rq_read_ctx *ctx, uint64_t yield_ns, rq_error *why)
{
    while (p->at != NULL) {
        rq__planned *e = p->at;
        if (p->scanner == NULL) RQ_TRY(begin_planned(p, r, e, why));
        RQ_TRY(rq__staged_read_on(p->scanner, ctx, yield_ns, &e->cells, why));
        RQ_TRY(end_planned(p, e, why));
    }
    return RQ_OK;
}

uint64_t rq__plan_bytes(const rq__plan *p)
{
    size_t now = p->at == NULL ? 0 : p->at->cells.bytes.cap;
    return p->bytes + now + p->count * sizeof(rq__planned) + p->filter_bytes;
}
