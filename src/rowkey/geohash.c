/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GeoHash: bits of longitude and latitude alternate, longitude first, each halving what is left of
 * -180…180 and -90…90; five bits a letter. The bits are computed as whole numbers, the floor of the
 * degrees in units of the cell, so that a point on an edge belongs to the cell north and east of it.
 */
#include "rowkey/rowkey_priv.h"

#include <math.h>

static bool is_point(rq_point p)
{
    return p.latitude >= -90 && p.latitude <= 90 && p.longitude >= -180 && p.longitude <= 180;
}

static unsigned longitude_bits(unsigned letters)
{
    return (5 * letters + 1) / 2;
}

/* floor((degrees + half) / (2 half) × 2^bits), the largest at the upper end. */
static uint64_t grid_of(double degrees, double half, unsigned bits)
{
    double scale = ldexp(1, (int)bits);
    double v = floor((degrees + half) / (2 * half) * scale);
    return v >= scale ? (uint64_t)scale - 1 : (uint64_t)v;
}

static void write_letters(uint64_t x, uint64_t y, unsigned letters, char *buf)
{
    unsigned xs = longitude_bits(letters), ys = 5 * letters - xs;
    unsigned value = 0;
    for (unsigned bit = 0; bit < 5 * letters; bit++) {
        uint64_t next = bit % 2 == 0 ? x >> --xs : y >> --ys;
        value = value << 1 | (unsigned)(next & 1);
        if (bit % 5 == 4) buf[bit / 5] = RQ__GEOHASH_LETTERS[value & 31];
    }
    buf[letters] = '\0';
}

rq_err rq__geohash_encode(rq_point point, unsigned letters, char *buf, rq_error *why)
{
    if (!is_point(point))
        return rq_fail(why, RQ_E_INVALID, "invalid point: latitude %g, longitude %g",
                       point.latitude, point.longitude);
    if (letters < 1 || letters > RQ__GEOHASH_MAX)
        return rq_fail(why, RQ_E_INVALID, "a GeoHash of %u letters; allowed are 1 to %d", letters,
                       RQ__GEOHASH_MAX);
    unsigned xs = longitude_bits(letters), ys = 5 * letters - xs;
    double longitude = point.longitude == 180 ? -180 : point.longitude; /* the same meridian */
    write_letters(grid_of(longitude, 180, xs), grid_of(point.latitude, 90, ys), letters, buf);
    return RQ_OK;
}

static rq_err read_letters(rq_slice hash, uint64_t *ret_x, uint64_t *ret_y, rq_error *why)
{
    uint64_t x = 0, y = 0;
    if (hash.len < 1 || hash.len > RQ__GEOHASH_MAX)
        return rq_fail(why, RQ_E_MALFORMED, "a GeoHash must have 1 to %d letters, not %zu",
                       RQ__GEOHASH_MAX, hash.len);
    for (unsigned bit = 0; bit < 5 * hash.len; bit++) {
        uint8_t letter = hash.ptr[bit / 5];
        const char *at = letter == 0 ? NULL : strchr(RQ__GEOHASH_LETTERS, letter);
        if (at == NULL)
            return rq_fail(why, RQ_E_MALFORMED, "letter %u is not a GeoHash letter (%s)",
                           bit / 5 + 1, RQ__GEOHASH_LETTERS);
        uint64_t next = (uint64_t)(at - RQ__GEOHASH_LETTERS) >> (4 - bit % 5) & 1;
        if (bit % 2 == 0)
            x = x << 1 | next;
        else
            y = y << 1 | next;
    }
    *ret_x = x;
    *ret_y = y;
    return RQ_OK;
}

rq_err rq__geohash_decode(rq_slice hash, rq_box *ret, rq_error *why)
{
    uint64_t x, y;
    RQ_TRY(read_letters(hash, &x, &y, why));
    unsigned xs = longitude_bits((unsigned)hash.len), ys = 5 * (unsigned)hash.len - xs;
    double width = ldexp(360, -(int)xs), height = ldexp(180, -(int)ys);
    *ret = (rq_box){.south = (double)y * height - 90,
                    .west = (double)x * width - 180,
                    .north = (double)(y + 1) * height - 90,
                    .east = (double)(x + 1) * width - 180};
    return RQ_OK;
}

rq_err rq__geohash_neighbours(const char *hash, char ret[8][RQ_GEOHASH_SIZE], rq_error *why)
{
    static const int east[8] = {0, 1, 1, 1, 0, -1, -1, -1};
    static const int north[8] = {1, 1, 0, -1, -1, -1, 0, 1};
    uint64_t x, y;
    rq_slice s = rq_slice_cstr(hash);
    RQ_TRY(read_letters(s, &x, &y, why));
    unsigned letters = (unsigned)s.len, xs = longitude_bits(letters), ys = 5 * letters - xs;
    for (int i = 0; i < 8; i++) {
        uint64_t to_x = (x + (uint64_t)east[i]) & ((UINT64_C(1) << xs) - 1);
        uint64_t to_y = y + (uint64_t)north[i];
        ret[i][0] = '\0';
        if (to_y >> ys == 0) write_letters(to_x, to_y, letters, ret[i]);
    }
    return RQ_OK;
}
