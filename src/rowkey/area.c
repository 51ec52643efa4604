/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Areas on the earth, and whether a cell lies outside, inside, or across an area's edge.
 *
 * Boxes are rectangles of degrees. Circles are measured on a sphere: the farthest point of a cell is
 * the nearest one to the opposite point of the earth. Polygons have straight edges in degrees, each
 * the shorter way round; their longitudes are unwrapped, so that an edge never jumps, and a cell is
 * looked at three times, 360 degrees apart. A polygon that goes once around the earth is closed over
 * a pole: the north pole if it goes eastwards.
 *
 * A cell without a point of the area may be reported as "across"; a cell with one is never reported
 * as "outside" (MARGIN covers rounding).
 */
#include "api/backend.h"
#include "rowkey/geo_priv.h"

#include <math.h>
#include <stdlib.h>

#define EARTH_RADIUS_M 6371008.8
#define MARGIN 1e-9 /* of an angle in radians: 6 mm */

static double radians(double degrees)
{
    return degrees * (M_PI / 180);
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* The angle between two points, accurate for near ones. */
static double angle(rq_point a, rq_point b)
{
    double dlat = sin(radians(b.latitude - a.latitude) / 2);
    double dlon = sin(radians(b.longitude - a.longitude) / 2);
    double h = dlat * dlat + cos(radians(a.latitude)) * cos(radians(b.latitude)) * dlon * dlon;
    return 2 * asin(sqrt(clamp(h, 0, 1)));
}

double rq_geo_distance(rq_point a, rq_point b)
{
    return EARTH_RADIUS_M * angle(a, b);
}

/* --- circles ---------------------------------------------------------------------------------- */

/* The distance to the segment of a meridian between two latitudes. Along the meridian the cosine of
 * the distance is a cosine around `best`, so the nearest point is at `best` or at an end. */
static double angle_to_meridian(rq_point p, double longitude, double south, double north)
{
    double dlon = radians(longitude - p.longitude), lat = radians(p.latitude);
    double best = atan2(sin(lat), cos(lat) * cos(dlon)) * (180 / M_PI);
    double a = angle(p, (rq_point){south, longitude}), b = angle(p, (rq_point){north, longitude});
    double nearest = a < b ? a : b;
    if (best < south || best > north) return nearest;
    double c = angle(p, (rq_point){best, longitude});
    return c < nearest ? c : nearest;
}

static bool spans_longitude(const rq_box *box, double longitude)
{
    return longitude >= box->west && longitude <= box->east;
}

/* REQUIRES: west <= east */
static double angle_to_box(rq_point p, const rq_box *box)
{
    if (spans_longitude(box, p.longitude)) {
        double lat = clamp(p.latitude, box->south, box->north);
        return radians(fabs(p.latitude - lat));
    }
    double west = angle_to_meridian(p, box->west, box->south, box->north);
    double east = angle_to_meridian(p, box->east, box->south, box->north);
    return west < east ? west : east;
}

static rq__relation circle_relation(const rq__area *a, const rq_box *cell)
{
    rq_point p = a->center,
             opposite = {-p.latitude, p.longitude > 0 ? p.longitude - 180 : p.longitude + 180};
    if (angle_to_box(p, cell) > a->radius + MARGIN) return RQ__OUTSIDE;
    return M_PI - angle_to_box(opposite, cell) < a->radius - MARGIN ? RQ__INSIDE : RQ__ACROSS;
}

/* --- boxes ------------------------------------------------------------------------------------ */

/* REQUIRES: west <= east in both */
static rq__relation box_relation(const rq_box *box, const rq_box *cell)
{
    if (cell->south > box->north || cell->north < box->south || cell->west > box->east ||
        cell->east < box->west)
        return RQ__OUTSIDE;
    return cell->south >= box->south && cell->north <= box->north && cell->west >= box->west &&
                   cell->east <= box->east
               ? RQ__INSIDE
               : RQ__ACROSS;
}

/* A box over the 180th meridian is two. */
static rq__relation wrapped_relation(const rq_box *box, const rq_box *cell)
{
    if (box->west <= box->east) return box_relation(box, cell);
    rq_box west = *box, east = *box;
    west.east = 180;
    east.west = -180;
    rq__relation a = box_relation(&west, cell), b = box_relation(&east, cell);
    return a > b ? a : b;
}

/* --- polygons --------------------------------------------------------------------------------- */

/* Whether the edge a–b meets the rectangle (Liang and Barsky's clipping). */
static bool edge_meets(rq_point a, rq_point b, const rq_box *r)
{
    double dx = b.longitude - a.longitude, dy = b.latitude - a.latitude;
    double p[4] = {-dx, dx, -dy, dy};
    double q[4] = {a.longitude - r->west, r->east - a.longitude, a.latitude - r->south,
                   r->north - a.latitude};
    double from = 0, to = 1;
    for (int i = 0; i < 4; i++) {
        if (p[i] == 0 && q[i] < 0) return false;
        if (p[i] < 0 && q[i] / p[i] > from) from = q[i] / p[i];
        if (p[i] > 0 && q[i] / p[i] < to) to = q[i] / p[i];
    }
    return from <= to;
}

static bool polygon_has(const rq__area *a, rq_point p)
{
    bool inside = false;
    for (size_t i = 0; i < a->corner_count; i++) {
        rq_point v = a->corners[i], w = a->corners[(i + 1) % a->corner_count];
        if ((v.latitude > p.latitude) == (w.latitude > p.latitude)) continue;
        double x = v.longitude + (p.latitude - v.latitude) / (w.latitude - v.latitude) *
                                     (w.longitude - v.longitude);
        inside ^= p.longitude < x;
    }
    return inside;
}

static rq__relation plane_relation(const rq__area *a, const rq_box *cell)
{
    for (size_t i = 0; i < a->corner_count; i++)
        if (edge_meets(a->corners[i], a->corners[(i + 1) % a->corner_count], cell))
            return RQ__ACROSS;
    rq_point middle = {(cell->south + cell->north) / 2, (cell->west + cell->east) / 2};
    return polygon_has(a, middle) ? RQ__INSIDE : RQ__OUTSIDE;
}

static rq__relation polygon_relation(const rq__area *a, const rq_box *cell)
{
    rq__relation all = RQ__OUTSIDE;
    for (int turn = -360; turn <= 360; turn += 360) {
        rq_box moved = *cell;
        moved.west += turn;
        moved.east += turn;
        if (moved.west > a->bounds.east || moved.east < a->bounds.west ||
            moved.south > a->bounds.north || moved.north < a->bounds.south)
            continue;
        rq__relation r = plane_relation(a, &moved);
        if (r > all) all = r;
    }
    return all;
}

/* --- all -------------------------------------------------------------------------------------- */

rq__relation rq__area_relation(const rq__area *a, const rq_box *cell)
{
    if (a->kind == RQ_AREA_BOX) return wrapped_relation(&a->bounds, cell);
    return a->kind == RQ_AREA_CIRCLE ? circle_relation(a, cell) : polygon_relation(a, cell);
}

bool rq__area_has(const rq__area *a, rq_point p)
{
    rq_box point = {p.latitude, p.longitude, p.latitude, p.longitude};
    if (a->kind == RQ_AREA_BOX) return wrapped_relation(&a->bounds, &point) != RQ__OUTSIDE;
    if (a->kind == RQ_AREA_CIRCLE) return angle(a->center, p) <= a->radius;
    for (int turn = -360; turn <= 360; turn += 360)
        if (polygon_has(a, (rq_point){p.latitude, p.longitude + turn})) return true;
    return false;
}

static bool is_point(rq_point p)
{
    return p.latitude >= -90 && p.latitude <= 90 && p.longitude >= -180 && p.longitude <= 180;
}

/* The difference between two longitudes, the shorter way round. */
static double shorter(double from, double to)
{
    return remainder(to - from, 360);
}

static void find_bounds(rq__area *a)
{
    a->bounds = (rq_box){90, 1e9, -90, -1e9};
    for (size_t i = 0; i < a->corner_count; i++) {
        rq_point p = a->corners[i];
        a->bounds.south = fmin(a->bounds.south, p.latitude);
        a->bounds.north = fmax(a->bounds.north, p.latitude);
        a->bounds.west = fmin(a->bounds.west, p.longitude);
        a->bounds.east = fmax(a->bounds.east, p.longitude);
    }
}

static rq_err take_polygon(const rq_area *from, rq__area *to, rq_error *why)
{
    size_t n = from->corner_count;
    if (n < 3 || n > RQ__CORNERS_MAX || from->corners == NULL)
        return rq_fail(why, RQ_E_INVALID, "a polygon must have 3 to %d corners, not %zu",
                       RQ__CORNERS_MAX, n);
    to->corners = calloc(n + 3, sizeof *to->corners);
    if (to->corners == NULL) return rq_no_memory(why);
    double longitude = from->corners[0].longitude;
    for (size_t i = 0; i < n; i++) {
        rq_point p = from->corners[i];
        if (!is_point(p)) return rq_fail(why, RQ_E_INVALID, "corner %zu is not a valid point", i);
        longitude += i == 0 ? 0 : shorter(longitude, p.longitude);
        to->corners[i] = (rq_point){p.latitude, longitude};
    }
    to->corner_count = n;
    double around =
        longitude + shorter(longitude, to->corners[0].longitude) - to->corners[0].longitude;
    if (fabs(around) > 180) { /* closed over a pole */
        double pole = around > 0 ? 90 : -90;
        double first = to->corners[0].longitude, last = first + (around > 0 ? 360 : -360);
        to->corners[to->corner_count++] = (rq_point){to->corners[0].latitude, last};
        to->corners[to->corner_count++] = (rq_point){pole, last};
        to->corners[to->corner_count++] = (rq_point){pole, first};
    }
    find_bounds(to);
    return RQ_OK;
}

static rq_err take_box(const rq_box *b, rq__area *to, rq_error *why)
{
    if (!is_point((rq_point){b->south, b->west}) || !is_point((rq_point){b->north, b->east}) ||
        b->south > b->north)
        return rq_fail(why, RQ_E_INVALID, "invalid box: south %g, west %g, north %g, east %g",
                       b->south, b->west, b->north, b->east);
    to->bounds = *b;
    return RQ_OK;
}

rq_err rq__area_take(const rq_area *given, rq__area *to, rq_error *why)
{
    rq_area own;
    const rq_area *from = &own;
    *to = (rq__area){0};
    RQ_TRY(rq_sized(&own, sizeof own, given, offsetof(rq_area, box), "rq_area", why));
    to->kind = from->kind;
    if (from->kind == RQ_AREA_BOX) return take_box(&from->box, to, why);
    if (from->kind == RQ_AREA_POLYGON) return take_polygon(from, to, why);
    if (from->kind != RQ_AREA_CIRCLE) return rq_fail(why, RQ_E_INVALID, "unknown kind of area");
    if (!is_point(from->center) || !(from->radius_m >= 0))
        return rq_fail(why, RQ_E_INVALID, "invalid circle: latitude %g, longitude %g, radius %g m",
                       from->center.latitude, from->center.longitude, from->radius_m);
    to->center = from->center;
    to->radius = from->radius_m / EARTH_RADIUS_M;
    return RQ_OK;
}

void rq__area_clear(rq__area *a)
{
    free(a->corners);
    a->corners = NULL;
}
