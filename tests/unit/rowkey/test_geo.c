/* SPDX-License-Identifier: Apache-2.0 */
/* GeoHash, covers and nearest rows, compared with brute force. The argument is the URL of the
 * database for nearest rows (default: memory:). */
#include "../api/api_test.h"

#include "rorqual/rowkey.h"

#include <math.h>
#include <time.h>

static rq_failure why = {.size = sizeof why};
static const char *url = "memory:";
static uint64_t state;

static double chance(void) /* between 0 and 1 */
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / 9007199254740992.0;
}

static size_t below(size_t n)
{
    return (size_t)(chance() * (double)n);
}

static double longitude_of(double v)
{
    return v > 180 ? v - 360 : v < -180 ? v + 360 : v;
}

/* Random points, many of them near the poles and the 180th meridian. */
static rq_point random_point(void)
{
    rq_point p = {asin(2 * chance() - 1) * (180 / M_PI), 360 * chance() - 180};
    if (below(4) == 0) p.latitude = copysign(90 - 5 * chance() * chance(), p.latitude);
    if (below(4) == 0) p.longitude = copysign(180 - 5 * chance() * chance(), p.longitude);
    return p;
}

static rq_point near(rq_point p, double degrees)
{
    double lat = p.latitude + degrees * (2 * chance() - 1);
    double lon =
        p.longitude + degrees * (2 * chance() - 1) / fmax(0.01, cos(p.latitude * M_PI / 180));
    if (lat > 90 || lat < -90) lat = copysign(180, lat) - lat; /* continues over the pole */
    return (rq_point){lat, fmax(-180, fmin(180, longitude_of(lon)))};
}

/* --- hashes ----------------------------------------------------------------------------------- */

static void hashes(void **unused)
{
    (void)unused;
    char hash[RQ_GEOHASH_SIZE], whole[RQ_GEOHASH_SIZE];
    rq_box box;
    OK(rq_geohash_encode((rq_point){57.64911, 10.40744}, 11, hash, &why));
    assert_string_equal(hash, "u4pruydqqvj");
    OK(rq_geohash_encode((rq_point){90, 180}, 3, hash, &why));
    assert_string_equal(hash, "bpb"); /* longitude 180 equals -180 */
    OK(rq_geohash_encode((rq_point){0, 0}, 2, hash, &why));
    assert_string_equal(hash, "s0"); /* the point belongs to the cell north and east of it */
    for (int i = 0; i < 20000; i++) {
        rq_point p = random_point();
        unsigned letters = 1 + (unsigned)below(12);
        OK(rq_geohash_encode(p, letters, hash, &why));
        OK(rq_geohash_encode(p, 12, whole, &why));
        assert_int_equal(strlen(hash), letters);
        assert_memory_equal(hash, whole, letters);
        OK(rq_geohash_decode(hash, &box, &why));
        assert_true(p.latitude >= box.south && p.latitude <= box.north && p.longitude >= box.west &&
                    p.longitude <= box.east);
    }
    FAILS(RQ_E_INVALID, rq_geohash_encode((rq_point){91, 0}, 3, hash, &why));
    FAILS(RQ_E_INVALID, rq_geohash_encode((rq_point){NAN, 0}, 3, hash, &why));
    FAILS(RQ_E_INVALID, rq_geohash_encode((rq_point){0, 0}, 13, hash, &why));
    FAILS(RQ_E_MALFORMED, rq_geohash_decode("u4a", &box, &why));
    FAILS(RQ_E_MALFORMED, rq_geohash_decode("", &box, &why));
}

static void neighbours(void **unused)
{
    (void)unused;
    static const int east[8] = {0, 1, 1, 1, 0, -1, -1, -1}, north[8] = {1, 1, 0, -1, -1, -1, 0, 1};
    for (int i = 0; i < 3000; i++) {
        char hash[RQ_GEOHASH_SIZE], around[8][RQ_GEOHASH_SIZE], expected[RQ_GEOHASH_SIZE];
        rq_box b;
        OK(rq_geohash_encode(random_point(), 1 + (unsigned)below(12), hash, &why));
        OK(rq_geohash_decode(hash, &b, &why));
        OK(rq_geohash_neighbours(hash, around, &why));
        for (int k = 0; k < 8; k++) {
            rq_point p = {(b.south + b.north) / 2 + north[k] * (b.north - b.south),
                          longitude_of((b.west + b.east) / 2 + east[k] * (b.east - b.west))};
            if (fabs(p.latitude) > 90) {
                assert_string_equal(around[k], "");
                continue;
            }
            OK(rq_geohash_encode(p, (unsigned)strlen(hash), expected, &why));
            assert_string_equal(around[k], expected);
        }
    }
}

/* --- covers ----------------------------------------------------------------------------------- */

static bool covers(const rq_geo_ranges *r, const char *hash)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(hash, r->items[i].start) >= 0 &&
            (r->items[i].stop[0] == '\0' || strcmp(hash, r->items[i].stop) < 0))
            return true;
    return false;
}

enum { CORNERS_MAX = 9 };

/* A star-shaped polygon around `middle`. */
static void random_polygon(rq_area *a, rq_point corners[CORNERS_MAX], rq_point middle, double size)
{
    a->kind = RQ_AREA_POLYGON;
    a->corners = corners;
    a->corner_count = 3 + below(CORNERS_MAX - 2);
    for (size_t i = 0; i < a->corner_count; i++) {
        double turn = 2 * M_PI * (double)i / (double)a->corner_count,
               r = size * (0.3 + 0.7 * chance());
        double lat = middle.latitude + r * sin(turn);
        corners[i] =
            (rq_point){fmax(-90, fmin(90, lat)), longitude_of(middle.longitude + r * cos(turn))};
    }
}

static void random_area(rq_area *a, rq_point corners[CORNERS_MAX], rq_point *ret_middle,
                        double *ret_size)
{
    rq_point p = random_point();
    double size = pow(10, 2.2 * chance() - 1); /* 0.1 to 16 degrees */
    *a = (rq_area){.size = sizeof *a};
    switch (below(3)) {
    case 0:
        a->kind = RQ_AREA_BOX;
        a->box = (rq_box){
            fmax(-90, p.latitude - size * chance()), longitude_of(p.longitude - size * chance()),
            fmin(90, p.latitude + size * chance()), longitude_of(p.longitude + size * chance())};
        break;
    case 1:
        a->kind = RQ_AREA_CIRCLE;
        a->center = p;
        a->radius_m = size * 111195 * chance();
        break;
    default:
        random_polygon(a, corners, p, size);
    }
    *ret_middle = p;
    *ret_size = size;
}

static void check_cover(const rq_area *a, const rq_geo_ranges *r, unsigned letters, rq_point middle,
                        double size)
{
    for (int i = 0; i < 400; i++) {
        char hash[RQ_GEOHASH_SIZE];
        bool has;
        rq_point p = i % 4 == 0 ? random_point() : near(middle, size * 1.5);
        OK(rq_geo_contains(a, p, &has, &why));
        if (!has) continue;
        OK(rq_geohash_encode(p, letters, hash, &why));
        if (!covers(r, hash))
            fail_msg("area %d (size %g): %.17g,%.17g (%s) is not covered", a->kind, size,
                     p.latitude, p.longitude, hash);
    }
    for (size_t i = 1; i < r->count; i++)
        assert_true(strcmp(r->items[i - 1].stop, r->items[i].start) < 0 &&
                    r->items[i - 1].stop[0] != '\0');
}

static void covers_have_all_points(void **unused)
{
    (void)unused;
    for (int round = 0; round < 400; round++) {
        rq_area a;
        rq_point corners[CORNERS_MAX], middle;
        double size;
        rq_geo_ranges *r;
        unsigned letters = 1 + (unsigned)below(12);
        size_t most = below(2) == 0 ? 0 : 1 + below(40);
        random_area(&a, corners, &middle, &size);
        OK(rq_geo_cover(&a, letters, most, &r, &why));
        if (most > 0) assert_in_range(r->count, 1, most);
        check_cover(&a, r, letters, middle, size);
        rq_geo_ranges_free(r);
    }
}

static bool meets(const rq_box *area, const rq_box *cell)
{
    if (cell->south > area->north || cell->north < area->south) return false;
    if (area->west <= area->east) return cell->west <= area->east && cell->east >= area->west;
    return cell->west <= area->east || cell->east >= area->west;
}

static void hash_of_number(unsigned v, unsigned letters, char *out)
{
    for (unsigned i = 0; i < letters; i++)
        out[i] = "0123456789bcdefghjkmnpqrstuvwxyz"[v >> 5 * (letters - 1 - i) & 31];
    out[letters] = '\0';
}

/* A box's cover consists of exactly the cells that intersect it, with one range for each run of
 * adjacent cells; with fewer ranges the largest gaps remain. */
static void covers_of_boxes_are_minimal(void **unused)
{
    (void)unused;
    enum { LETTERS = 3, CELLS = 1 << (5 * LETTERS) };
    for (int round = 0; round < 30; round++) {
        static unsigned gaps[CELLS];
        rq_area a = {.size = sizeof a, .kind = RQ_AREA_BOX};
        rq_point p = random_point();
        a.box =
            (rq_box){fmax(-90, p.latitude - 8 * chance()), longitude_of(p.longitude - 8 * chance()),
                     fmin(90, p.latitude + 8 * chance()), longitude_of(p.longitude + 8 * chance())};
        rq_geo_ranges *r, *few;
        OK(rq_geo_cover(&a, LETTERS, 0, &r, &why));
        size_t most = 1 + below(r->count), covered = 0, runs = 0, gap_count = 0, covered_by_few = 0;
        OK(rq_geo_cover(&a, LETTERS, most, &few, &why));
        unsigned gap = 0;
        for (unsigned v = 0; v < CELLS; v++) {
            char hash[RQ_GEOHASH_SIZE];
            rq_box cell;
            hash_of_number(v, LETTERS, hash);
            OK(rq_geohash_decode(hash, &cell, &why));
            bool in = meets(&a.box, &cell);
            if (covers(r, hash) != in) fail_msg("cell %s is %s", hash, in ? "missing" : "too much");
            runs += in && (gap > 0 || covered == 0);
            if (in && gap > 0 && covered > 0) gaps[gap_count++] = gap;
            covered += in;
            gap = in ? 0 : gap + 1;
            covered_by_few += covers(few, hash);
            assert_true(!in || covers(few, hash));
        }
        assert_int_equal(r->count, runs);
        assert_int_equal(few->count, most);
        for (size_t kept = 0; kept + 1 < most; kept++) { /* removes the largest gap */
            size_t largest = 0;
            for (size_t i = 1; i < gap_count; i++)
                if (gaps[i] > gaps[largest]) largest = i;
            gaps[largest] = 0;
        }
        size_t expected = covered;
        for (size_t i = 0; i < gap_count; i++)
            expected += gaps[i];
        assert_int_equal(covered_by_few, expected);
        rq_geo_ranges_free(r);
        rq_geo_ranges_free(few);
    }
}

static void refused_areas(void **unused)
{
    (void)unused;
    rq_geo_ranges *r;
    bool has;
    rq_point two[2] = {{0, 0}, {1, 1}};
    rq_area a = {.size = sizeof a, .kind = RQ_AREA_POLYGON, .corners = two, .corner_count = 2};
    FAILS(RQ_E_INVALID, rq_geo_cover(&a, 5, 0, &r, &why));
    a = (rq_area){.size = sizeof a, .kind = RQ_AREA_CIRCLE, .radius_m = NAN};
    FAILS(RQ_E_INVALID, rq_geo_cover(&a, 5, 0, &r, &why));
    a = (rq_area){.size = sizeof a, .kind = RQ_AREA_BOX, .box = {1, 0, 0, 0}};
    FAILS(RQ_E_INVALID, rq_geo_contains(&a, two[0], &has, &why));
    a = (rq_area){.size = sizeof a};
    FAILS(RQ_E_INVALID, rq_geo_cover(&a, 13, 0, &r, &why));
    a.size = 0;
    FAILS(RQ_E_INVALID, rq_geo_cover(&a, 5, 0, &r, &why));
}

/* Structs of a later version, with a field at the end. */
static void longer_areas(void **unused)
{
    (void)unused;
    bool has = false;
    struct {
        rq_area area;
        double later;
    } a = {.area = {.size = sizeof a, .kind = RQ_AREA_BOX, .box = {0, 0, 2, 2}}};
    OK(rq_geo_contains(&a.area, (rq_point){1, 1}, &has, &why));
    assert_true(has);
    a.later = 1;
    FAILS(RQ_E_UNSUPPORTED, rq_geo_contains(&a.area, (rq_point){1, 1}, &has, &why));
}

/* The polygon along the arctic circle, once around the earth, is the cap of the north pole. */
static void polygons_around_a_pole(void **unused)
{
    (void)unused;
    rq_point cap[4] = {{66, -135}, {66, -45}, {66, 45}, {66, 135}};
    rq_area a = {.size = sizeof a, .kind = RQ_AREA_POLYGON, .corners = cap, .corner_count = 4};
    bool has;
    for (int i = 0; i < 1000; i++) {
        rq_point p = random_point();
        OK(rq_geo_contains(&a, p, &has, &why));
        if (fabs(p.latitude - 66) > 1e-6) assert_int_equal(has, p.latitude > 66);
    }
    rq_geo_ranges *r;
    OK(rq_geo_cover(&a, 6, 0, &r, &why));
    check_cover(&a, r, 6, (rq_point){80, 0}, 20);
    rq_geo_ranges_free(r);
}

/* --- nearest rows ----------------------------------------------------------------------------- */

enum { POINTS = 1200 };

static void put_degrees(unsigned char *to, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(bits >> (56 - 8 * i));
}

static void put_point(rq_table *t, int i, rq_point p)
{
    char key[64] = "x";
    unsigned char lat[8], lon[8];
    OK(rq_geohash_encode(p, 9, key + 1, &why));
    sprintf(key + 10, "%d", i);
    put_degrees(lat, p.latitude);
    put_degrees(lon, p.longitude);
    rq_edit edits[] = {
        {.family = rq_text("g"), .qualifier = rq_text("lat"), .value = rq_bytes_of(lat, 8)},
        {.family = rq_text("g"), .qualifier = rq_text("lon"), .value = rq_bytes_of(lon, 8)}};
    rq_change put = {
        .size = sizeof put, .kind = RQ_PUT, .row = rq_text(key), .edits = edits, .edit_count = 2};
    OK(rq_table_change(t, &put, NULL, &why));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_nearest(rq_table *t, const rq_point *points, rq_point center, size_t count,
                          double radius)
{
    static double distances[POINTS];
    size_t expected = 0;
    rq_geo_found *found;
    for (int i = 0; i < POINTS; i++) {
        double d = rq_geo_distance(center, points[i]);
        if (radius == 0 || d <= radius) distances[expected++] = d;
    }
    qsort(distances, expected, sizeof(double), ascending);
    if (expected > count) expected = count;
    rq_geo_search s = {.size = sizeof s,
                       .prefix = rq_text("x"),
                       .letters = 9,
                       .center = center,
                       .count = count,
                       .radius_m = radius,
                       .latitude = {rq_text("g"), rq_text("lat")},
                       .longitude = {rq_text("g"), rq_text("lon")}};
    OK(rq_geo_nearest(t, &s, &found, &why));
    assert_int_equal(found->count, expected);
    for (size_t i = 0; i < expected; i++)
        if (found->items[i].distance_m != distances[i])
            fail_msg("%g,%g: hit %zu is %g m away, not %g", center.latitude, center.longitude, i,
                     found->items[i].distance_m, distances[i]);
    rq_geo_found_free(found);
}

static void nearest_rows(void **unused)
{
    (void)unused;
    static rq_point points[POINTS];
    rq_db *db;
    rq_table *t;
    bool exists;
    rq_family family = {"g", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "geo_test", .families = &family, .family_count = 1};
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_table_exists(db, "geo_test", &exists, &why));
    if (exists) {
        OK(rq_table_disable(db, "geo_test", &why));
        OK(rq_table_drop(db, "geo_test", &why));
    }
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, "geo_test", &t, &why));
    for (int i = 0; i < POINTS; i++) {
        points[i] = i % 3 == 0 && i > 0 ? near(points[i - 1], 0.01) : random_point();
        put_point(t, i, points[i]);
    }
    OK(rq_put_value(t, rq_text("wother"), rq_text("g"), rq_text("a"), rq_text("b"), &why));
    OK(rq_put_value(t, rq_text("yother"), rq_text("g"), rq_text("a"), rq_text("b"), &why));
    for (int i = 0; i < 40; i++)
        check_nearest(t, points, i % 2 == 0 ? random_point() : points[below(POINTS)],
                      1 + below(i % 10 == 0 ? POINTS : 20),
                      below(2) == 0 ? 0 : pow(10, 3 + 4 * chance()));
    rq_geo_found *found;
    rq_geo_search s = {.size = sizeof s, .letters = 9, .center = {0, 0}, .count = 2000};
    FAILS(RQ_E_MALFORMED,
          rq_geo_nearest(t, &s, &found, &why)); /* without the prefix rows without a hash are
                                                 * found, too */
    s.count = 0;
    FAILS(RQ_E_INVALID, rq_geo_nearest(t, &s, &found, &why));
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(covers_have_all_points),
        cmocka_unit_test(covers_of_boxes_are_minimal),
        cmocka_unit_test(refused_areas),
        cmocka_unit_test(longer_areas),
        cmocka_unit_test(polygons_around_a_pole),
        cmocka_unit_test(nearest_rows),
    };
    const char *seed = getenv("SEED");
    if (argc > 1) url = argv[1];
    state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
