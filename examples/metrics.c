/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in OpenTSDB's tables: writes an hour of load averages of four hosts, compacts the rows as
 * OpenTSDB does, and prints the average of each quarter of an hour. OpenTSDB reads the same tables.
 *
 *     cc metrics.c $(pkg-config --cflags --libs rorqual) -o metrics
 *     ./metrics file:/tmp/metrics        in this process; or hbase://localhost:2181, memory:
 *
 * A row holds an hour of one series: metric, hour and tags, each name as a number of three bytes, which
 * the second table knows. So keys are short, a metric's rows are together, and a scan of a range of
 * time reads nothing else.
 */
#include <rorqual/rowkey.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOSTS = 4, EACH_S = 10, POINTS = 3600 / EACH_S };

static const int64_t begin_ms = INT64_C(1672531200000); /* 2023-01-01 00:00:00 UTC */
static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static void write_points(rq_tsdb *tsdb)
{
    static rq_tsdb_point points[HOSTS * POINTS];
    static rq_property tags[HOSTS][2];
    static char hosts[HOSTS][16];
    for (int h = 0; h < HOSTS; h++) {
        snprintf(hosts[h], sizeof hosts[h], "web%d", h + 1);
        tags[h][0] = (rq_property){"host", hosts[h]};
        tags[h][1] = (rq_property){"dc", h % 2 == 0 ? "berlin" : "suva"};
        for (int i = 0; i < POINTS; i++)
            points[h * POINTS + i] =
                (rq_tsdb_point){.metric = "proc.loadavg.1m",
                                .tags = tags[h],
                                .tag_count = 2,
                                .time_ms = begin_ms + (int64_t)i * EACH_S * 1000,
                                .is_real = true,
                                .real = (h + 1) * 0.25 + i * 0.0078125};
    }
    check(rq_tsdb_put(tsdb, points, HOSTS * POINTS, &why));
}

/* The series of one data centre. */
static void print_averages(rq_tsdb *tsdb, const char *dc)
{
    rq_property tags[] = {{"dc", dc}};
    rq_tsdb_query query = {.size = sizeof query,
                           .metric = "proc.loadavg.1m",
                           .tags = tags,
                           .tag_count = 1,
                           .from_ms = begin_ms,
                           .to_ms = begin_ms + 3600000,
                           .interval_ms = 900000,
                           .function = RQ_TSDB_AVG};
    rq_tsdb_result *result;
    check(rq_tsdb_read(tsdb, &query, &result, &why));
    for (size_t s = 0; s < result->count; s++) {
        const rq_tsdb_series *series = &result->items[s];
        for (size_t i = 0; i < series->tag_count; i++)
            printf("%s%s=%s", i == 0 ? "" : ",", series->tags[i].name, series->tags[i].value);
        for (size_t i = 0; i < series->count; i++)
            printf(" %.3f", series->values[i].real);
        puts("");
    }
    rq_tsdb_result_free(result);
}

int main(int argc, char **argv)
{
    rq_tsdb_options options = {.size = sizeof options, .creates = true};
    uint64_t rows;
    rq_db *db;
    rq_tsdb *tsdb;
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    check(rq_tsdb_open(db, &options, &tsdb, &why));
    write_points(tsdb);
    print_averages(tsdb, "berlin");
    check(rq_tsdb_compact(tsdb, "proc.loadavg.1m", begin_ms, begin_ms + 3600000, &rows, &why));
    printf("%" PRIu64 " rows compacted\n", rows);
    print_averages(tsdb, "suva");
    rq_tsdb_close(tsdb);
    check(rq_disconnect(db, &why));
    return 0;
}
