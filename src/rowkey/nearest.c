/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows nearest to a point: scans the cover of a circle, then covers of circles GROWTH times as
 * large each, until the wanted number of rows lies in the circle. No key range is scanned twice;
 * only the wanted number of nearest rows is kept.
 */
#include "api/backend.h"
#include "rowkey/geo_priv.h"

#include <stdlib.h>

enum { RANGES_AT_ONCE = 24, GROWTH = 3, COUNT_MAX = 1000000 };
#define HALF_WAY_ROUND_M 20015200.0 /* a little more than the farthest point's distance */

typedef struct nearest {
    rq_table *table;
    const rq_geo_search *args;
    rq_geo_hit *hits; /* a heap, the farthest first */
    size_t count;
    rq__cells *seen; /* ascending, apart from each other */
    size_t seen_count;
    rq_failure *why;
} nearest;

/* --- hits ------------------------------------------------------------------------------------- */

static void swap(rq_geo_hit *a, rq_geo_hit *b)
{
    rq_geo_hit c = *a;
    *a = *b;
    *b = c;
}

static void sift_down(nearest *n)
{
    for (size_t at = 0;;) {
        size_t child = 2 * at + 1;
        if (child >= n->count) return;
        if (child + 1 < n->count && n->hits[child + 1].distance_m > n->hits[child].distance_m)
            child++;
        if (n->hits[at].distance_m >= n->hits[child].distance_m) return;
        swap(&n->hits[at], &n->hits[child]);
        at = child;
    }
}

static void keep(nearest *n, rq_geo_hit hit)
{
    if (n->count < n->args->count) {
        size_t at = n->count++;
        n->hits[at] = hit;
        for (; at > 0 && n->hits[(at - 1) / 2].distance_m < n->hits[at].distance_m;
             at = (at - 1) / 2)
            swap(&n->hits[at], &n->hits[(at - 1) / 2]);
    } else if (hit.distance_m < n->hits[0].distance_m) {
        rq_row_free((rq_row *)(uintptr_t)n->hits[0].row);
        n->hits[0] = hit;
        sift_down(n);
    } else {
        rq_row_free((rq_row *)(uintptr_t)hit.row);
    }
}

/* --- positions -------------------------------------------------------------------------------- */

static bool take_degrees(const rq_row *row, const rq_column *column, double *ret)
{
    const rq_kv *cell = rq_row_find(row, column->family, column->qualifier);
    if (cell == NULL || cell->value.len != 8) return false;
    uint64_t bits = rq_get_be64(cell->value.data);
    memcpy(ret, &bits, 8);
    return true;
}

static rq_err position_of(const rq_geo_search *s, const rq_row *row, rq_point *ret, rq_error *why)
{
    char text[128];
    rq_box cell;
    rq_slice key = rq_slice_of(row->cells[0].row.data, row->cells[0].row.len);
    rq_bytes_to_string(key, text, sizeof text);
    if (s->latitude.family.len > 0) {
        if (!take_degrees(row, &s->latitude, &ret->latitude) ||
            !take_degrees(row, &s->longitude, &ret->longitude))
            return rq_fail(why, RQ_E_MALFORMED, "row %s has no position", text);
        return RQ_OK;
    }
    if (key.len < s->prefix.len + s->letters)
        return rq_fail(why, RQ_E_MALFORMED, "row %s has no GeoHash", text);
    rq_err rc = rq__geohash_decode(rq_slice_of(key.ptr + s->prefix.len, s->letters), &cell, why);
    ret->latitude = (cell.south + cell.north) / 2;
    ret->longitude = (cell.west + cell.east) / 2;
    return rc;
}

/* Takes the row over. */
static rq_err take_row(nearest *n, rq_row *row)
{
    rq_why why;
    rq_geo_hit hit = {.row = row};
    rq_why_clear(&why);
    rq_err rc = row->count == 0 ? RQ_OK : position_of(n->args, row, &hit.point, &why.error);
    hit.distance_m = rq_geo_distance(n->args->center, hit.point);
    if (rc != RQ_OK || row->count == 0 || hit.distance_m > n->args->radius_m)
        rq_row_free(row);
    else
        keep(n, hit);
    return rq_fill_failure(n->why, rc, &why);
}

/* --- ranges ----------------------------------------------------------------------------------- */

static rq_err append_key(const nearest *n, const char *letters, rq_buf *out)
{
    RQ_TRY(rq_buf_append(out, n->args->prefix.data, n->args->prefix.len));
    return rq_buf_append(out, letters, strlen(letters));
}

/* The stop of a range without an end: behind everything with the prefix. */
static rq_err append_stop(const nearest *n, const char *letters, rq_buf *out)
{
    if (letters[0] != '\0') return append_key(n, letters, out);
    RQ_TRY(rq_buf_reserve(out, n->args->prefix.len + 1));
    out->len = rq_key_after_prefix(n->args->prefix, out->ptr);
    return RQ_OK;
}

static rq_err scan_keys(nearest *n, const rq_buf *start, const rq_buf *stop)
{
    rq_scan_request scan = {
        .size = sizeof scan, .start = {start->ptr, start->len}, .stop = {stop->ptr, stop->len}};
    rq_scanner *scanner;
    RQ_TRY(rq_table_scan(n->table, &scan, &scanner, n->why));
    rq_row *row = NULL;
    rq_err rc;
    do {
        row = NULL;
        rc = rq_scanner_next(scanner, &row, n->why);
        if (rc == RQ_OK && row != NULL) rc = take_row(n, row);
    } while (rc == RQ_OK && row != NULL);
    rq_scanner_close(scanner);
    return rc;
}

static rq_err scan_cells(nearest *n, rq__cells c)
{
    char from[RQ_GEOHASH_SIZE], to[RQ_GEOHASH_SIZE];
    rq_buf start = {0}, stop = {0};
    rq__cells_letters(c, n->args->letters, from, to);
    rq_err rc = append_key(n, from, &start);
    if (rc == RQ_OK) rc = append_stop(n, to, &stop);
    if (rc == RQ_OK) rc = scan_keys(n, &start, &stop);
    rq_buf_clear(&start);
    rq_buf_clear(&stop);
    return rc;
}

/* What of `c` has not been scanned. */
static rq_err scan_unseen(nearest *n, rq__cells c)
{
    for (size_t i = 0; i < n->seen_count && c.from < c.to; i++) {
        rq__cells s = n->seen[i];
        if (s.to <= c.from || s.from >= c.to) continue;
        if (s.from > c.from) RQ_TRY(scan_cells(n, (rq__cells){c.from, s.from}));
        c.from = s.to;
    }
    return c.from < c.to ? scan_cells(n, c) : RQ_OK;
}

static int by_from(const void *a, const void *b)
{
    const rq__cells *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static rq_err remember(nearest *n, const rq__cover *cover)
{
    size_t count = n->seen_count + cover->count, kept = 0;
    rq__cells *all = malloc((count + 1) * sizeof *all);
    if (all == NULL) return RQ_E_NO_MEMORY;
    if (n->seen_count > 0) memcpy(all, n->seen, n->seen_count * sizeof *all);
    if (cover->count > 0) memcpy(all + n->seen_count, cover->items, cover->count * sizeof *all);
    qsort(all, count, sizeof *all, by_from);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && all[i].from <= all[kept - 1].to)
            all[kept - 1].to = all[i].to > all[kept - 1].to ? all[i].to : all[kept - 1].to;
        else
            all[kept++] = all[i];
    }
    free(n->seen);
    n->seen = all;
    n->seen_count = kept;
    return RQ_OK;
}

/* --- circles ---------------------------------------------------------------------------------- */

static rq_err scan_circle(nearest *n, double radius_m)
{
    rq_why why;
    rq__area a;
    rq__cover cover = {0};
    rq_area circle = {.size = sizeof circle,
                      .kind = RQ_AREA_CIRCLE,
                      .center = n->args->center,
                      .radius_m = radius_m};
    rq_why_clear(&why);
    rq_err rc = rq__area_take(&circle, &a, &why.error);
    if (rc == RQ_OK) rc = rq__cover_make(&a, n->args->letters, RANGES_AT_ONCE, &cover, &why.error);
    rq_err found = rq_fill_failure(n->why, rc, &why);
    for (size_t i = 0; i < cover.count && found == RQ_OK; i++)
        found = scan_unseen(n, cover.items[i]);
    if (found == RQ_OK) {
        rc = remember(n, &cover);
        if (rc != RQ_OK) found = rq_fill_failure(n->why, rc, &why);
    }
    rq__area_clear(&a);
    free(cover.items);
    return found;
}

static rq_err search(nearest *n)
{
    rq_point edge = n->args->center;
    double most = n->args->radius_m, radius = 180.0;
    for (unsigned i = 0; i < 5 * n->args->letters / 2; i++)
        radius /= 2; /* degrees of a cell's height */
    edge.latitude += edge.latitude > 0 ? -radius : radius;
    radius = rq_geo_distance(n->args->center, edge);
    if (radius < 100) radius = 100;
    for (;; radius *= GROWTH) {
        if (radius > most) radius = most;
        RQ_TRY(scan_circle(n, radius));
        if (radius >= most) return RQ_OK;
        if (n->count == n->args->count && n->hits[0].distance_m <= radius) return RQ_OK;
    }
}

/* --- public ----------------------------------------------------------------------------------- */

static int by_distance(const void *a, const void *b)
{
    const rq_geo_hit *x = a, *y = b;
    return (x->distance_m > y->distance_m) - (x->distance_m < y->distance_m);
}

static rq_err check(const rq_table *table, const rq_geo_search *given, rq_geo_search *ret,
                    rq_error *why)
{
    char hash[RQ_GEOHASH_SIZE];
    const rq_geo_search *s = ret;
    if (table == NULL) return rq_fail(why, RQ_E_INVALID, "the table is NULL");
    RQ_TRY(
        rq_sized(ret, sizeof *ret, given, offsetof(rq_geo_search, radius_m), "rq_geo_search", why));
    RQ_TRY(rq_check_bytes(s->prefix, "a prefix", why));
    RQ_TRY(rq__geohash_encode(s->center, s->letters, hash, why));
    if (s->count == 0 || s->count > COUNT_MAX || !(s->radius_m >= 0))
        return rq_fail(why, RQ_E_INVALID,
                       "%zu rows (allowed: 1 to %d) within %g m (allowed: 0 or more)", s->count,
                       COUNT_MAX, s->radius_m);
    if (s->radius_m == 0 || s->radius_m > HALF_WAY_ROUND_M) ret->radius_m = HALF_WAY_ROUND_M;
    return RQ_OK;
}

rq_err rq_geo_nearest(rq_table *table, const rq_geo_search *args, rq_geo_found **ret,
                      rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_geo_search s;
    rq_why_clear(&why);
    rq_err rc = check(table, args, &s, &why.error);
    rq_geo_found *found = NULL;
    if (rc == RQ_OK) {
        found = malloc(sizeof *found + s.count * sizeof(rq_geo_hit));
        if (found == NULL) rc = rq_no_memory(&why.error);
    }
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    nearest n = {.table = table, .args = &s, .hits = (rq_geo_hit *)(found + 1), .why = failure};
    rc = search(&n);
    qsort(n.hits, n.count, sizeof *n.hits, by_distance);
    *found = (rq_geo_found){.count = n.count, .items = n.hits};
    free(n.seen);
    if (rc == RQ_OK)
        *ret = found;
    else
        rq_geo_found_free(found);
    return rc;
}

void rq_geo_found_free(rq_geo_found *found)
{
    if (found == NULL) return;
    for (size_t i = 0; i < found->count; i++)
        rq_row_free((rq_row *)(uintptr_t)found->items[i].row);
    free(found);
}
