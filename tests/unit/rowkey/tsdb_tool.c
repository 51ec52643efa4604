/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses OpenTSDB's tables through the library, for tests with a real OpenTSDB:
 *
 *   tsdb_tool URL DATA_TABLE UID_TABLE read METRIC FROM_MS TO_MS     a line per point: TAG=VALUE,… MS VALUE
 *   tsdb_tool URL DATA_TABLE UID_TABLE write METRIC                  points in the same form from standard input
 *   tsdb_tool URL DATA_TABLE UID_TABLE compact METRIC FROM_MS TO_MS  the number of rows
 *
 * A value with a point is a floating-point number.
 */
#include "rorqual/rowkey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TAGS_MAX = 8, LINE_MAX_BYTES = 1024 };

static rq_failure why = {.size = sizeof why};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static void print_series(const rq_tsdb_series *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const rq_tsdb_value *v = &s->values[i];
        for (size_t t = 0; t < s->tag_count; t++)
            printf("%s%s=%s", t == 0 ? "" : ",", s->tags[t].name, s->tags[t].value);
        if (v->is_real)
            printf(" %" PRId64 " %.17g\n", v->time_ms, v->real);
        else
            printf(" %" PRId64 " %" PRId64 "\n", v->time_ms, v->integer);
    }
}

static void read_metric(rq_tsdb *t, const char *metric, int64_t from, int64_t to)
{
    rq_tsdb_query q = {.size = sizeof q, .metric = metric, .from_ms = from, .to_ms = to};
    rq_tsdb_result *r;
    check(rq_tsdb_read(t, &q, &r, &why));
    for (size_t i = 0; i < r->count; i++)
        print_series(&r->items[i]);
    rq_tsdb_result_free(r);
}

static size_t take_tags(char *text, rq_property *tags)
{
    size_t n = 0;
    for (char *one = strtok(text, ","); one != NULL && n < TAGS_MAX; one = strtok(NULL, ",")) {
        char *equal = strchr(one, '=');
        if (equal == NULL) exit(2);
        *equal = '\0';
        tags[n++] = (rq_property){one, equal + 1};
    }
    return n;
}

static void write_metric(rq_tsdb *t, const char *metric)
{
    char line[LINE_MAX_BYTES], tag_text[LINE_MAX_BYTES], value[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        rq_property tags[TAGS_MAX];
        rq_tsdb_point p = {.metric = metric, .tags = tags};
        if (sscanf(line, "%1000s %" SCNd64 " %60s", tag_text, &p.time_ms, value) != 3) exit(2);
        p.tag_count = take_tags(tag_text, tags);
        p.is_real = strchr(value, '.') != NULL;
        p.real = strtod(value, NULL);
        p.integer = strtoll(value, NULL, 10);
        check(rq_tsdb_put(t, &p, 1, &why));
    }
}

int main(int argc, char **argv)
{
    rq_db *db;
    rq_tsdb *t;
    if (argc < 6) return 2;
    rq_tsdb_options o = {.size = sizeof o, .data_table = argv[2], .uid_table = argv[3]};
    check(rq_connect(argv[1], NULL, &db, &why));
    check(rq_tsdb_open(db, &o, &t, &why));
    if (strcmp(argv[4], "write") == 0) {
        write_metric(t, argv[5]);
    } else if (argc == 8 && strcmp(argv[4], "read") == 0) {
        read_metric(t, argv[5], strtoll(argv[6], NULL, 10), strtoll(argv[7], NULL, 10));
    } else if (argc == 8) {
        uint64_t rows;
        check(rq_tsdb_compact(t, argv[5], strtoll(argv[6], NULL, 10), strtoll(argv[7], NULL, 10),
                              &rows, &why));
        printf("%" PRIu64 "\n", rows);
    }
    rq_tsdb_close(t);
    check(rq_disconnect(db, &why));
    return 0;
}
