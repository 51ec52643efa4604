/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cover of an area: key ranges that contain the GeoHash of each of its points.
 *
 * The first cell is the whole earth. Cells that lie across the area's edge are halved, level by
 * level, until the cells are as small as those of the keys' GeoHashes, or CELLS_MAX cells lie
 * across the edge. The cover has the cells inside and across; adjacent cells become one range. If
 * there are more ranges than wanted, those with the smallest gaps between them are joined: no other
 * list of the wanted number of ranges covers fewer other cells.
 */
#include "rowkey/geo_priv.h"

#include <math.h>
#include <stdlib.h>

enum { CELLS_MAX = 4096, POLYGON_CELLS = 1000000, RANGES_MAX = 10000 };

/* A cell at a level: its bits. */
typedef struct level {
    unsigned bits;
    size_t count;
    uint64_t *cells; /* that lie across */
} level;

typedef struct ranges {
    size_t count, cap;
    rq__cells *items;
} ranges;

/* Every second bit, from the top one on. */
static uint64_t gather(uint64_t cell, unsigned bits, unsigned first)
{
    uint64_t v = 0;
    for (unsigned i = first; i < bits; i += 2)
        v = v << 1 | (cell >> (bits - 1 - i) & 1);
    return v;
}

static rq_box box_of(uint64_t cell, unsigned bits)
{
    unsigned xs = (bits + 1) / 2, ys = bits / 2;
    double x = (double)gather(cell, bits, 0), y = (double)gather(cell, bits, 1);
    double width = ldexp(360, -(int)xs), height = ldexp(180, -(int)ys);
    return (rq_box){y * height - 90, x * width - 180, (y + 1) * height - 90, (x + 1) * width - 180};
}

static rq_err add(ranges *r, uint64_t cell, unsigned bits, unsigned all)
{
    unsigned shift = all - bits;
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 256 : 2 * r->cap;
        rq__cells *items = realloc(r->items, cap * sizeof *items);
        if (items == NULL) return RQ_E_NO_MEMORY;
        r->items = items;
        r->cap = cap;
    }
    r->items[r->count++] = (rq__cells){cell << shift, (cell + 1) << shift};
    return RQ_OK;
}

/* The two halves of each cell that lies across. */
static rq_err halve(const rq__area *a, const level *from, level *to, unsigned all, ranges *r)
{
    to->bits = from->bits + 1;
    to->count = 0;
    to->cells = malloc((2 * from->count + 1) * sizeof *to->cells);
    if (to->cells == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < 2 * from->count; i++) {
        uint64_t cell = from->cells[i / 2] << 1 | (i & 1);
        rq_box box = box_of(cell, to->bits);
        rq__relation relation = rq__area_relation(a, &box);
        if (relation == RQ__ACROSS) to->cells[to->count++] = cell;
        if (relation == RQ__INSIDE) RQ_TRY(add(r, cell, to->bits, all));
    }
    return RQ_OK;
}

static size_t cells_limit(const rq__area *a)
{
    size_t limit = a->corner_count == 0 ? CELLS_MAX : POLYGON_CELLS / a->corner_count;
    return limit > CELLS_MAX ? CELLS_MAX : limit;
}

static rq_err refine(const rq__area *a, unsigned all, ranges *r)
{
    uint64_t earth = 0;
    level now = {.count = 1, .cells = NULL};
    now.cells = malloc(sizeof earth);
    if (now.cells == NULL) return RQ_E_NO_MEMORY;
    now.cells[0] = earth;
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && now.bits < all && now.count > 0 && 2 * now.count <= cells_limit(a)) {
        level next = {0};
        rc = halve(a, &now, &next, all, r);
        free(now.cells);
        now = next;
    }
    for (size_t i = 0; i < now.count && rc == RQ_OK; i++)
        rc = add(r, now.cells[i], now.bits, all);
    free(now.cells);
    return rc;
}

static int by_from(const void *a, const void *b)
{
    const rq__cells *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Joins ranges whose gap is below `gap`, and of the gaps equal to it all but `spare`. */
static void join(ranges *r, uint64_t gap, size_t spare)
{
    size_t n = 0;
    for (size_t i = 1; i < r->count; i++) {
        uint64_t here = r->items[i].from - r->items[n].to;
        bool apart = here > gap || (here == gap && here > 0 && spare > 0);
        if (here == gap && apart) spare--;
        if (apart)
            r->items[++n] = r->items[i];
        else
            r->items[n].to = r->items[i].to;
    }
    if (r->count > 0) r->count = n + 1;
}

/* Keeps the most - 1 largest gaps. */
static rq_err reduce(ranges *r, size_t most)
{
    if (r->count <= most) return RQ_OK;
    size_t gaps = r->count - 1, spare = 0;
    uint64_t *g = malloc(gaps * sizeof *g);
    if (g == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < gaps; i++)
        g[i] = r->items[i + 1].from - r->items[i].to;
    qsort(g, gaps, sizeof *g, descending);
    uint64_t limit = g[most - 1]; /* joined; of equal gaps some are kept */
    for (size_t i = most - 1; i > 0 && g[i - 1] == limit; i--)
        spare++;
    free(g);
    join(r, limit, spare);
    return RQ_OK;
}

rq_err rq__cover_make(const rq__area *a, unsigned letters, size_t most, rq__cover *ret,
                      rq_error *why)
{
    ranges r = {0};
    if (letters < 1 || letters > RQ__GEOHASH_MAX)
        return rq_fail(why, RQ_E_INVALID, "a GeoHash of %u letters; allowed are 1 to %d", letters,
                       RQ__GEOHASH_MAX);
    if (most > RANGES_MAX) return rq_fail(why, RQ_E_INVALID, "%zu ranges are too many", most);
    rq_err rc = refine(a, 5 * letters, &r);
    if (rc == RQ_OK) {
        qsort(r.items, r.count, sizeof *r.items, by_from);
        join(&r, 0, 0);
        rc = reduce(&r, most == 0 ? RANGES_MAX : most);
    }
    if (rc != RQ_OK) {
        free(r.items);
        return rq_no_memory(why);
    }
    *ret = (rq__cover){letters, r.count, r.items};
    return RQ_OK;
}

/* Zeros at the end say nothing. */
static void letters_of(uint64_t v, unsigned letters, char out[RQ_GEOHASH_SIZE])
{
    unsigned len = letters;
    for (unsigned i = 0; i < letters; i++)
        out[i] = RQ__GEOHASH_LETTERS[v >> 5 * (letters - 1 - i) & 31];
    while (len > 1 && out[len - 1] == '0')
        len--;
    out[len] = '\0';
}

void rq__cells_letters(rq__cells c, unsigned letters, char from[RQ_GEOHASH_SIZE],
                       char to[RQ_GEOHASH_SIZE])
{
    letters_of(c.from, letters, from);
    to[0] = '\0';
    if (c.to >> 5 * letters == 0) letters_of(c.to, letters, to);
}

/* --- public ----------------------------------------------------------------------------------- */

rq_err rq__geo_cover(const rq_area *area, unsigned letters, size_t most, rq_geo_ranges **ret,
                     rq_error *why)
{
    rq__area a = {0};
    rq__cover cover = {0};
    rq_err rc = rq__area_take(area, &a, why);
    if (rc == RQ_OK) rc = rq__cover_make(&a, letters, most, &cover, why);
    rq__area_clear(&a);
    if (rc != RQ_OK) return rc;
    rq_geo_ranges *r = malloc(sizeof *r + cover.count * sizeof(rq_geo_range));
    if (r != NULL) {
        rq_geo_range *items = (rq_geo_range *)(r + 1);
        for (size_t i = 0; i < cover.count; i++)
            rq__cells_letters(cover.items[i], letters, items[i].start, items[i].stop);
        *r = (rq_geo_ranges){.count = cover.count, .items = items};
        *ret = r;
    }
    free(cover.items);
    return r == NULL ? rq_no_memory(why) : RQ_OK;
}

rq_err rq__geo_contains(const rq_area *area, rq_point point, bool *ret, rq_error *why)
{
    rq__area a = {0};
    rq_err rc = rq__area_take(area, &a, why);
    if (rc == RQ_OK) *ret = rq__area_has(&a, point);
    rq__area_clear(&a);
    return rc;
}

void rq_geo_ranges_free(rq_geo_ranges *list)
{
    free(list);
}
