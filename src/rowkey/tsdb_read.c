/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading OpenTSDB's rows: a scan of each bucket over the metric's hours, points of rows with the
 * wanted tags gathered by series, then sorted, cut to the range of time, and downsampled. And the
 * compaction of rows: their points in one column.
 */
#include "api/backend.h"
#include "rowkey/tsdb_priv.h"

#include <stdlib.h>

/* A point, and when it was written. */
typedef struct stamped {
    rq_tsdb_value value;
    int64_t written;
} stamped;

typedef struct series {
    uint8_t tags[RQ__TSDB_TAGS_MAX * 2 * RQ__TSDB_UID];
    size_t tags_len;
    stamped *points;
    size_t count, cap;
} series;

typedef struct reader {
    rq_tsdb *tsdb;
    const rq_tsdb_query *query;
    rq__tsdb_ids wanted; /* tag values that are 0 bytes long: any */
    bool any_value[RQ__TSDB_TAGS_MAX];
    series **list; /* ascending by tags */
    size_t count, cap;
    series *now;     /* of the row being read */
    int64_t written; /* of the cell being read */
    rq_failure *failure;
} reader;

static rq_err fail(reader *r, rq_err rc, const char *text)
{
    rq_why why;
    rq_why_clear(&why);
    rq_fail(&why.error, rc, "%s", text);
    return rq_fill_failure(r->failure, rc, &why);
}

/* --- series ----------------------------------------------------------------------------------- */

static size_t place_of(const reader *r, rq_slice tags)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const series *s = r->list[middle];
        if (rq_slice_compare(rq_slice_of(s->tags, s->tags_len), tags) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static rq_err series_of(reader *r, rq_slice tags, series **ret)
{
    size_t at = place_of(r, tags);
    if (at < r->count && rq_slice_eq(rq_slice_of(r->list[at]->tags, r->list[at]->tags_len), tags)) {
        *ret = r->list[at];
        return RQ_OK;
    }
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
        series **list = realloc(r->list, cap * sizeof *list);
        if (list == NULL) return fail(r, RQ_E_NO_MEMORY, "out of memory, for series");
        r->list = list;
        r->cap = cap;
    }
    series *s = calloc(1, sizeof *s);
    if (s == NULL) return fail(r, RQ_E_NO_MEMORY, "out of memory, for a series");
    memcpy(s->tags, tags.ptr, tags.len);
    s->tags_len = tags.len;
    memmove(r->list + at + 1, r->list + at, (r->count - at) * sizeof *r->list);
    r->list[at] = *ret = s;
    r->count++;
    return RQ_OK;
}

static rq_err take_value(void *ctx, const rq_tsdb_value *value)
{
    reader *r = ctx;
    series *s = r->now;
    if (value->time_ms < r->query->from_ms || value->time_ms >= r->query->to_ms) return RQ_OK;
    if (s->count == s->cap) {
        size_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        stamped *points = realloc(s->points, cap * sizeof *points);
        if (points == NULL) return RQ_E_NO_MEMORY;
        s->points = points;
        s->cap = cap;
    }
    s->points[s->count++] = (stamped){*value, r->written};
    return RQ_OK;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Whether the row's tags have all that are wanted. */
static bool has_wanted(const reader *r, rq_slice tags)
{
    for (size_t i = 0; i < r->wanted.tag_count; i++) {
        bool found = false;
        size_t len = r->any_value[i] ? RQ__TSDB_UID : 2 * RQ__TSDB_UID;
        for (size_t at = 0; at < tags.len; at += 2 * RQ__TSDB_UID)
            found |= memcmp(tags.ptr + at, r->wanted.tags[i], len) == 0;
        if (!found) return false;
    }
    return true;
}

static rq_err take_row(reader *r, const rq_row *row)
{
    rq_why why;
    size_t salt = rq__tsdb_salt_buckets(r->tsdb) > 0 ? 1 : 0,
           head = salt + RQ__TSDB_UID + RQ__TSDB_TIME;
    rq_slice key = rq_slice_of(row->cells[0].row.data, row->cells[0].row.len);
    if (key.len < head || (key.len - head) % (2 * RQ__TSDB_UID) != 0 || key.len > RQ__TSDB_KEY_MAX)
        return fail(r, RQ_E_MALFORMED, "a row of the table is not in OpenTSDB's format");
    rq_slice tags = rq_slice_of(key.ptr + head, key.len - head);
    if (!has_wanted(r, tags)) return RQ_OK;
    RQ_TRY(series_of(r, tags, &r->now));
    uint32_t base = rq_get_be32(key.ptr + salt + RQ__TSDB_UID);
    rq_why_clear(&why);
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        r->written = c->timestamp;
        rq_err rc = rq__tsdb_decode(rq_slice_of(c->qualifier.data, c->qualifier.len),
                                    rq_slice_of(c->value.data, c->value.len), base, take_value, r,
                                    &why.error);
        if (rc != RQ_OK) return rq_fill_failure(r->failure, rc, &why);
    }
    return RQ_OK;
}

rq_err rq__tsdb_scan(rq_tsdb *t, const uint8_t metric[RQ__TSDB_UID], int64_t from_ms, int64_t to_ms,
                     rq__tsdb_take_row take, void *ctx, rq_failure *why)
{
    uint32_t buckets = rq__tsdb_salt_buckets(t), salt = buckets > 0 ? 1 : 0;
    int64_t row_ms = RQ__TSDB_ROW_S * INT64_C(1000);
    uint32_t first = (uint32_t)(from_ms / row_ms * RQ__TSDB_ROW_S);
    uint64_t end = (uint64_t)((to_ms + row_ms - 1) / row_ms * RQ__TSDB_ROW_S);
    for (uint32_t bucket = 0; bucket < (buckets > 0 ? buckets : 1); bucket++) {
        uint8_t start[8] = {(uint8_t)bucket}, stop[8] = {(uint8_t)bucket};
        memcpy(start + salt, metric, RQ__TSDB_UID);
        memcpy(stop + salt, metric, RQ__TSDB_UID);
        rq_put_be32(start + salt + RQ__TSDB_UID, first);
        rq_put_be32(stop + salt + RQ__TSDB_UID, end > UINT32_MAX ? UINT32_MAX : (uint32_t)end);
        rq_scan_request scan = {.size = sizeof scan,
                                .start = {start, salt + RQ__TSDB_UID + RQ__TSDB_TIME},
                                .stop = {stop, salt + RQ__TSDB_UID + RQ__TSDB_TIME}};
        rq_scanner *scanner;
        rq_row *row = NULL;
        RQ_TRY(rq_table_scan(rq__tsdb_data(t), &scan, &scanner, why));
        rq_err rc = rq_scanner_next(scanner, &row, why);
        while (rc == RQ_OK && row != NULL) {
            rc = row->count == 0 ? RQ_OK : take(ctx, row);
            rq_row_free(row);
            row = NULL;
            if (rc == RQ_OK) rc = rq_scanner_next(scanner, &row, why);
        }
        rq_scanner_close(scanner);
        if (rc != RQ_OK) return rc;
    }
    return RQ_OK;
}

/* --- values of a series ------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const stamped *x = a, *y = b;
    if (x->value.time_ms != y->value.time_ms) return x->value.time_ms < y->value.time_ms ? -1 : 1;
    return (x->written > y->written) - (x->written < y->written);
}

/* Of points at one time the one written last stays. */
static void sort_points(series *s)
{
    size_t kept = 0;
    qsort(s->points, s->count, sizeof *s->points, by_time);
    for (size_t i = 0; i < s->count; i++) {
        bool replaced =
            i + 1 < s->count && s->points[i + 1].value.time_ms == s->points[i].value.time_ms;
        if (!replaced) s->points[kept++] = s->points[i];
    }
    s->count = kept;
}

static void add_to(rq_tsdb_value *sum, const rq_tsdb_value *v, rq_tsdb_function f)
{
    sum->is_real |= v->is_real;
    bool takes =
        (f == RQ_TSDB_MIN && v->real < sum->real) || (f == RQ_TSDB_MAX && v->real > sum->real);
    if (takes) {
        sum->real = v->real;
        sum->integer = v->integer;
    } else if (f == RQ_TSDB_SUM || f == RQ_TSDB_AVG) {
        sum->real += v->real;
        sum->integer = (int64_t)((uint64_t)sum->integer + (uint64_t)v->integer);
    }
}

static void finish(rq_tsdb_value *v, size_t count, rq_tsdb_function f)
{
    if (f == RQ_TSDB_COUNT) *v = (rq_tsdb_value){v->time_ms, false, (int64_t)count, (double)count};
    if (f == RQ_TSDB_AVG) v->real /= (double)count;
    if (f == RQ_TSDB_AVG || v->is_real) {
        v->is_real = true;
        v->integer = 0;
    }
}

/* Writes the values of a series, downsampled, to `to`; returns their number. */
static size_t write_values(const series *s, const rq_tsdb_query *q, rq_tsdb_value *to)
{
    size_t n = 0, in_interval = 0;
    for (size_t i = 0; i < s->count; i++) {
        rq_tsdb_value v = s->points[i].value;
        if (q->interval_ms == 0) {
            to[n++] = v;
            continue;
        }
        v.time_ms -= v.time_ms % q->interval_ms;
        if (n > 0 && in_interval > 0 && to[n - 1].time_ms == v.time_ms) {
            add_to(&to[n - 1], &v, q->function);
            in_interval++;
            continue;
        }
        if (n > 0) finish(&to[n - 1], in_interval, q->function);
        to[n++] = v;
        in_interval = 1;
    }
    if (n > 0 && q->interval_ms > 0) finish(&to[n - 1], in_interval, q->function);
    return n;
}

/* --- results ---------------------------------------------------------------------------------- */

typedef struct result {
    rq_tsdb_result pub;
    rq_arena arena;
} result;

static rq_err name_of(reader *r, const uint8_t *uid, const char *kind, rq_arena *arena,
                      const char **ret)
{
    rq_row *row;
    rq_column column = {rq_text("name"), rq_text(kind)};
    rq_get_request get = {
        .size = sizeof get, .row = {uid, RQ__TSDB_UID}, .columns = &column, .column_count = 1};
    RQ_TRY(rq_table_get(rq__tsdb_uids(r->tsdb), &get, &row, r->failure));
    rq_err rc = row->count == 1 ? RQ_OK : fail(r, RQ_E_MALFORMED, "a UID has no name");
    if (rc == RQ_OK) {
        rq_bytes v = row->cells[0].value;
        *ret = rq_arena_cstr(arena, rq_slice_of(v.data, v.len));
        if (*ret == NULL) rc = fail(r, RQ_E_NO_MEMORY, "out of memory, for a name");
    }
    rq_row_free(row);
    return rc;
}

static rq_err make_series(reader *r, series *s, rq_arena *arena, rq_tsdb_series *ret)
{
    size_t tags = s->tags_len / (2 * RQ__TSDB_UID);
    rq_property *t = rq_arena_calloc(arena, tags + 1, sizeof *t);
    sort_points(s);
    rq_tsdb_value *values = rq_arena_calloc(arena, s->count + 1, sizeof *values);
    if (t == NULL || values == NULL) return fail(r, RQ_E_NO_MEMORY, "out of memory, for values");
    for (size_t i = 0; i < tags; i++) {
        const uint8_t *pair = s->tags + i * 2 * RQ__TSDB_UID;
        RQ_TRY(name_of(r, pair, "tagk", arena, &t[i].name));
        RQ_TRY(name_of(r, pair + RQ__TSDB_UID, "tagv", arena, &t[i].value));
    }
    size_t count = write_values(s, r->query, values);
    *ret = (rq_tsdb_series){t, tags, values, count};
    return RQ_OK;
}

static rq_err make_result(reader *r, rq_tsdb_result **ret)
{
    result *res = calloc(1, sizeof *res);
    if (res == NULL) return fail(r, RQ_E_NO_MEMORY, "out of memory, for a result");
    rq_tsdb_series *items = rq_arena_calloc(&res->arena, r->count + 1, sizeof *items);
    rq_err rc = items == NULL ? fail(r, RQ_E_NO_MEMORY, "out of memory, for series") : RQ_OK;
    size_t n = 0;
    for (size_t i = 0; i < r->count && rc == RQ_OK; i++) {
        if (r->list[i]->count == 0) continue;
        rc = make_series(r, r->list[i], &res->arena, &items[n]);
        n++;
    }
    res->pub = (rq_tsdb_result){n, items};
    if (rc == RQ_OK)
        *ret = &res->pub;
    else
        rq_tsdb_result_free(&res->pub);
    return rc;
}

void rq_tsdb_result_free(rq_tsdb_result *pub)
{
    if (pub == NULL) return;
    result *res = RQ_CONTAINER_OF(pub, result, pub);
    rq_arena_clear(&res->arena);
    free(res);
}

/* --- the query -------------------------------------------------------------------------------- */

static rq_err check(reader *r, const rq_tsdb_query *given, rq_tsdb_query *q)
{
    rq_why why;
    rq_why_clear(&why);
    rq_err rc = rq_sized(q, sizeof *q, given, offsetof(rq_tsdb_query, interval_ms), "rq_tsdb_query",
                         &why.error);
    if (rc != RQ_OK) return rq_fill_failure(r->failure, rc, &why);
    if (q->tag_count > 0) RQ_TRY(rq_needs(q->tags, "tags", r->failure));
    if (q->tag_count > RQ__TSDB_TAGS_MAX) return fail(r, RQ_E_INVALID, "too many tags");
    if (q->from_ms < 0 || q->to_ms <= q->from_ms || q->from_ms / 1000 > UINT32_MAX ||
        q->to_ms > INT64_MAX / 2 || q->interval_ms < 0 || (unsigned)q->function > RQ_TSDB_COUNT)
        return fail(r, RQ_E_INVALID, "the range of time, the interval or the function is invalid");
    return RQ_OK;
}

static rq_err find_ids(reader *r, bool *ret_found)
{
    const rq_tsdb_query *q = r->query;
    r->wanted.tag_count = q->tag_count;
    RQ_TRY(rq__tsdb_uid(r->tsdb, 0, q->metric, r->wanted.metric, ret_found, r->failure));
    for (size_t i = 0; i < q->tag_count && *ret_found; i++) {
        uint8_t *pair = r->wanted.tags[i];
        r->any_value[i] = q->tags[i].value == NULL;
        RQ_TRY(rq__tsdb_uid(r->tsdb, 1, q->tags[i].name, pair, ret_found, r->failure));
        if (*ret_found && !r->any_value[i])
            RQ_TRY(rq__tsdb_uid(r->tsdb, 2, q->tags[i].value, pair + RQ__TSDB_UID, ret_found,
                                r->failure));
    }
    return RQ_OK;
}

static rq_err take_found_row(void *ctx, const rq_row *row)
{
    return take_row(ctx, row);
}

rq_err rq_tsdb_read(rq_tsdb *tsdb, const rq_tsdb_query *query, rq_tsdb_result **ret,
                    rq_failure *failure)
{
    RQ_TRY(rq_needs(tsdb, "rq_tsdb", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_tsdb_query own;
    reader r = {.tsdb = tsdb, .query = &own, .failure = failure};
    bool found = false;
    RQ_TRY(check(&r, query, &own));
    RQ_TRY(find_ids(&r, &found));
    rq_err rc = RQ_OK;
    if (found)
        rc = rq__tsdb_scan(tsdb, r.wanted.metric, own.from_ms, own.to_ms, take_found_row, &r,
                           failure);
    if (rc == RQ_OK) rc = make_result(&r, ret);
    for (size_t i = 0; i < r.count; i++) {
        free(r.list[i]->points);
        free(r.list[i]);
    }
    free(r.list);
    return rc;
}
