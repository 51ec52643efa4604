/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction of OpenTSDB's rows: the points of all columns in one. The compacted column is put first,
 * and only then the columns that it replaces are deleted, each at its timestamp: after a crash between
 * the two a point is there twice, which readers take for one, and never missing.
 */
#include "api/backend.h"
#include "rowkey/tsdb_priv.h"

#include <stdlib.h>

typedef struct point {
    rq_tsdb_value value;
    rq__tsdb_cell cell;
    int64_t written;
} point;

typedef struct compactor {
    rq_tsdb *tsdb;
    point *points;
    size_t count, cap;
    int64_t written; /* of the cell being read */
    uint64_t rows;
    rq_failure *failure;
} compactor;

static rq_err take_value(void *ctx, const rq_tsdb_value *value)
{
    compactor *c = ctx;
    if (c->count == c->cap) {
        size_t cap = c->cap == 0 ? 256 : 2 * c->cap;
        point *points = realloc(c->points, cap * sizeof *points);
        if (points == NULL) return RQ_E_NO_MEMORY;
        c->points = points;
        c->cap = cap;
    }
    point *p = &c->points[c->count++];
    *p = (point){.value = *value, .written = c->written};
    rq_tsdb_point encoded = {.time_ms = value->time_ms,
                             .is_real = value->is_real,
                             .integer = value->integer,
                             .real = value->real};
    rq__tsdb_encode(&encoded, &p->cell);
    return RQ_OK;
}

static int by_time(const void *a, const void *b)
{
    const point *x = a, *y = b;
    if (x->value.time_ms != y->value.time_ms) return x->value.time_ms < y->value.time_ms ? -1 : 1;
    return (x->written > y->written) - (x->written < y->written);
}

/* Qualifier and value of the compacted column, and the number of its points: of several at one time
 * the one written last. */
static rq_err join(compactor *c, rq_buf *qualifier, rq_buf *value, size_t *ret_points)
{
    bool seconds = false, milliseconds = false;
    qsort(c->points, c->count, sizeof *c->points, by_time);
    *ret_points = 0;
    for (size_t i = 0; i < c->count; i++) {
        const point *p = &c->points[i];
        if (i + 1 < c->count && c->points[i + 1].value.time_ms == p->value.time_ms) continue;
        ++*ret_points;
        seconds |= p->cell.qualifier_len == 2;
        milliseconds |= p->cell.qualifier_len == 4;
        RQ_TRY(rq_buf_append(qualifier, p->cell.qualifier, p->cell.qualifier_len));
        RQ_TRY(rq_buf_append(value, p->cell.value, p->cell.value_len));
    }
    return rq_buf_append_u8(value, seconds && milliseconds ? 1 : 0);
}

static bool holds_points(const rq_kv *cell)
{
    return cell->qualifier.len > 0 && cell->qualifier.len % 2 == 0;
}

static rq_err delete_others(compactor *c, const rq_row *row, rq_slice qualifier)
{
    size_t n = 0;
    rq_edit *edits = calloc(row->count, sizeof *edits);
    if (edits == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *cell = &row->cells[i];
        if (!holds_points(cell) ||
            rq_slice_eq(rq_slice_of(cell->qualifier.data, cell->qualifier.len), qualifier))
            continue;
        edits[n++] =
            (rq_edit){.family = cell->family,
                      .qualifier = cell->qualifier,
                      .timestamp = cell->timestamp == 0 ? RQ_TIMESTAMP_ZERO : cell->timestamp,
                      .scope = RQ_DELETE_VERSION};
    }
    rq_change del = {.size = sizeof del,
                     .kind = RQ_DELETE,
                     .row = row->cells[0].row,
                     .edits = edits,
                     .edit_count = n};
    rq_err rc = n == 0 ? RQ_OK : rq_table_change(rq__tsdb_data(c->tsdb), &del, NULL, c->failure);
    free(edits);
    return rc;
}

/* The column is as old as its newest point: a point that is written meanwhile is newer. */
static rq_err write_compacted(compactor *c, const rq_row *row, rq_slice qualifier, rq_slice value)
{
    int64_t newest = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->points[i].written > newest) newest = c->points[i].written;
    rq_edit edit = {.family = rq_text("t"),
                    .qualifier = {qualifier.ptr, qualifier.len},
                    .value = {value.ptr, value.len},
                    .timestamp = newest == 0 ? RQ_TIMESTAMP_ZERO : newest};
    rq_change put = {.size = sizeof put,
                     .kind = RQ_PUT,
                     .row = row->cells[0].row,
                     .edits = &edit,
                     .edit_count = 1};
    return rq_table_change(rq__tsdb_data(c->tsdb), &put, NULL, c->failure);
}

/* A single point that is left when all others are at its time stays as it is. */
static rq_err compact_points(compactor *c, const rq_row *row)
{
    rq_buf qualifier = {0}, value = {0};
    size_t points;
    rq_err rc = join(c, &qualifier, &value, &points);
    if (rc == RQ_OK && points > 1) {
        rc = write_compacted(c, row, rq_buf_slice(&qualifier), rq_buf_slice(&value));
        if (rc == RQ_OK) rc = delete_others(c, row, rq_buf_slice(&qualifier));
        c->rows++;
    }
    rq_buf_clear(&qualifier);
    rq_buf_clear(&value);
    return rc;
}

static rq_err compact_row(void *ctx, const rq_row *row)
{
    compactor *c = ctx;
    rq_why why;
    size_t columns = 0, time_at = (rq__tsdb_salt_buckets(c->tsdb) > 0 ? 1 : 0) + RQ__TSDB_UID;
    rq_bytes key = row->cells[0].row;
    if (key.len < time_at + RQ__TSDB_TIME) return RQ_OK;
    c->count = 0;
    rq_why_clear(&why);
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *cell = &row->cells[i];
        c->written = cell->timestamp;
        columns += holds_points(cell);
        rq_err rc = rq__tsdb_decode(rq_slice_of(cell->qualifier.data, cell->qualifier.len),
                                    rq_slice_of(cell->value.data, cell->value.len),
                                    rq_get_be32((const uint8_t *)key.data + time_at), take_value, c,
                                    &why.error);
        if (rc != RQ_OK) return rq_fill_failure(c->failure, rc, &why);
    }
    return columns < 2 || c->count < 2 ? RQ_OK : compact_points(c, row);
}

rq_err rq_tsdb_compact(rq_tsdb *tsdb, const char *metric, int64_t from_ms, int64_t to_ms,
                       uint64_t *ret_rows, rq_failure *failure)
{
    RQ_TRY(rq_needs(tsdb, "rq_tsdb", failure));
    RQ_TRY(rq_needs(metric, "metric", failure));
    rq_why why;
    bool found;
    uint8_t uid[RQ__TSDB_UID];
    compactor c = {.tsdb = tsdb, .failure = failure};
    rq_why_clear(&why);
    if (from_ms < 0 || to_ms <= from_ms || from_ms / 1000 > UINT32_MAX || to_ms > INT64_MAX / 2)
        return rq_fill_failure(failure,
                               rq_fail(&why.error, RQ_E_INVALID, "the time range is empty"), &why);
    RQ_TRY(rq__tsdb_uid(tsdb, 0, metric, uid, &found, failure));
    rq_err rc = found ? rq__tsdb_scan(tsdb, uid, from_ms, to_ms, compact_row, &c, failure) : RQ_OK;
    free(c.points);
    if (rc == RQ_OK && ret_rows != NULL) *ret_rows = c.rows;
    return rc;
}
