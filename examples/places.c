/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places on a map: the nearest ones to a point, and all within a polygon.
 *
 *     cc places.c $(pkg-config --cflags --libs rorqual) -o places
 *     ./places file:/tmp/places          in this process; or hbase://localhost:2181, memory:
 *
 * The key is the place's GeoHash and its id: near places mostly have a common prefix, so that an
 * area is a handful of key ranges (rq_geo_cover). Rows of a range that lie outside the area are
 * excluded by their exact position, which is stored in two columns.
 */
#include <rorqual/rowkey.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct place {
    const char *name;
    rq_point point;
} place;

static const place places[] = {
    {"Alexanderplatz", {52.5219, 13.4132}},
    {"Brandenburg Gate", {52.5163, 13.3777}},
    {"Checkpoint Charlie", {52.5075, 13.3904}},
    {"Hamburg harbour", {53.5436, 9.9668}},
    {"Potsdam Sanssouci", {52.4042, 13.0385}},
    {"Tempelhof field", {52.4731, 13.4017}},
    {"Wannsee", {52.4212, 13.1790}},
    {"Suva", {-18.1416, 178.4419}},
    {"Apia", {-13.8333, -171.7667}},
};
enum { PLACES = sizeof places / sizeof places[0], LETTERS = 9 };

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static rq_table *open_table(rq_db *db)
{
    rq_family family = {"p", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "places", .families = &family, .family_count = 1};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, "places", &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, "places", &table, &why));
    return table;
}

/* A double as encoded by HBase's Bytes.toBytes: 8 bytes, big-endian; the same as key format
 * raw-f64. */
static rq_bytes degrees(double v, const rq_key_format *raw, unsigned char buf[8])
{
    size_t len;
    rq_key_value value = rq_key_real(v);
    check(rq_key_encode(raw, &value, 1, buf, 8, &len, &why));
    return rq_bytes_of(buf, len);
}

static void put_place(rq_table *table, const place *p, const rq_key_format *key_format,
                      const rq_key_format *raw)
{
    char hash[RQ_GEOHASH_SIZE];
    unsigned char key[64], lat[8], lon[8];
    size_t len;
    check(rq_geohash_encode(p->point, LETTERS, hash, &why));
    rq_key_value values[] = {rq_key_text(hash), rq_key_text(p->name)};
    check(rq_key_encode(key_format, values, 2, key, sizeof key, &len, &why));
    rq_edit edits[] = {
        {.family = rq_text("p"),
         .qualifier = rq_text("lat"),
         .value = degrees(p->point.latitude, raw, lat)},
        {.family = rq_text("p"),
         .qualifier = rq_text("lon"),
         .value = degrees(p->point.longitude, raw, lon)},
        {.family = rq_text("p"), .qualifier = rq_text("name"), .value = rq_text(p->name)}};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_bytes_of(key, len),
                        .edits = edits,
                        .edit_count = 3};
    check(rq_table_change(table, &change, NULL, &why));
}

static void print_name(const rq_row *row, const char *end)
{
    const rq_kv *name = rq_row_find(row, rq_text("p"), rq_text("name"));
    printf("%.*s%s", (int)name->value.len, (const char *)name->value.data, end);
}

static void print_nearest(rq_table *table, rq_point center, size_t count)
{
    rq_geo_search search = {.size = sizeof search,
                            .letters = LETTERS,
                            .center = center,
                            .count = count,
                            .latitude = {rq_text("p"), rq_text("lat")},
                            .longitude = {rq_text("p"), rq_text("lon")}};
    rq_geo_found *found;
    check(rq_geo_nearest(table, &search, &found, &why));
    for (size_t i = 0; i < found->count; i++) {
        printf("  %.1f km ", found->items[i].distance_m / 1000);
        print_name(found->items[i].row, "\n");
    }
    rq_geo_found_free(found);
}

static double take_degrees(const rq_row *row, const char *column, const rq_key_format *raw)
{
    rq_key_values *values;
    check(
        rq_key_decode(raw, rq_row_find(row, rq_text("p"), rq_text(column))->value, &values, &why));
    double v = values->items[0].real;
    rq_key_values_free(values);
    return v;
}

/* Scans the ranges of the area's cover. */
static void print_within(rq_table *table, const rq_area *area, const rq_key_format *raw)
{
    rq_geo_ranges *ranges;
    check(rq_geo_cover(area, LETTERS, 16, &ranges, &why));
    for (size_t i = 0; i < ranges->count; i++) {
        rq_scan_request scan = {.size = sizeof scan,
                                .start = rq_text(ranges->items[i].start),
                                .stop = rq_text(ranges->items[i].stop)};
        rq_scanner *scanner;
        check(rq_table_scan(table, &scan, &scanner, &why));
        for (;;) {
            rq_row *row;
            bool within;
            check(rq_scanner_next(scanner, &row, &why));
            if (row == NULL) break;
            rq_point point = {take_degrees(row, "lat", raw), take_degrees(row, "lon", raw)};
            check(rq_geo_contains(area, point, &within, &why));
            if (within) {
                fputs("  ", stdout);
                print_name(row, "\n");
            }
            rq_row_free(row);
        }
        rq_scanner_close(scanner);
    }
    rq_geo_ranges_free(ranges);
}

int main(int argc, char **argv)
{
    static const rq_point ring[] = {{52.55, 13.28},
                                    {52.55, 13.48},
                                    {52.46, 13.48},
                                    {52.46, 13.28}}; /* about the city's ring railway */
    rq_area inner_city = {
        .size = sizeof inner_city, .kind = RQ_AREA_POLYGON, .corners = ring, .corner_count = 4};
    rq_key_format *key_format, *raw;
    rq_db *db;
    check(rq_key_format_parse("place:geohash(9) name:text", &key_format, &why));
    check(rq_key_format_parse("degrees:raw-f64", &raw, &why));
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    rq_table *table = open_table(db);
    for (size_t i = 0; i < PLACES; i++)
        put_place(table, &places[i], key_format, raw);
    puts("nearest to the Reichstag:");
    print_nearest(table, (rq_point){52.5186, 13.3762}, 3);
    puts("nearest to the 180th meridian at 16 degrees south:");
    print_nearest(table, (rq_point){-16, 180}, 2);
    puts("in Berlin's inner city:");
    print_within(table, &inner_city, raw);
    rq_key_format_free(key_format);
    rq_key_format_free(raw);
    rq_table_close(table);
    check(rq_disconnect(db, &why));
    return 0;
}
