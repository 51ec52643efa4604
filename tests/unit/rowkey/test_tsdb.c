/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTSDB's layout: keys and columns as in its documentation; dictionaries; reading, downsampling
 * and compaction compared with brute force. The argument is the URL of the database (default:
 * memory:). */
#include "../api/api_test.h"

#include "rorqual/rowkey.h"

#include <math.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static rq_failure why = {.size = sizeof why};
static const char *url = "memory:";
static uint64_t state;
static rq_db *db;

static uint64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

static void drop(const char *name)
{
    bool exists;
    OK(rq_table_exists(db, name, &exists, &why));
    if (!exists) return;
    OK(rq_table_disable(db, name, &why));
    OK(rq_table_drop(db, name, &why));
}

static rq_tsdb *fresh(uint32_t buckets)
{
    rq_tsdb *t;
    rq_tsdb_options o = {.size = sizeof o,
                         .data_table = "tsdb_test",
                         .uid_table = "tsdb_test-uid",
                         .salt_buckets = buckets,
                         .creates = true};
    drop(o.data_table);
    drop(o.uid_table);
    OK(rq_tsdb_open(db, &o, &t, &why));
    return t;
}

/* Dumps all cells of a table: "row/qualifier=value" in hexadecimal digits, one per line. */
static void dump(const char *table, char *out, size_t size)
{
    rq_table *t;
    rq_scanner *s;
    rq_row *row;
    rq_scan_request scan = {.size = sizeof scan};
    out[0] = '\0';
    OK(rq_table_open(db, table, &t, &why));
    OK(rq_table_scan(t, &scan, &s, &why));
    for (;;) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        for (size_t i = 0; i < row->count; i++) {
            const rq_bytes parts[] = {row->cells[i].row, row->cells[i].qualifier,
                                      row->cells[i].value};
            for (int p = 0; p < 3; p++) {
                for (size_t k = 0; k < parts[p].len && strlen(out) + 4 < size; k++)
                    sprintf(out + strlen(out), "%02x", ((const unsigned char *)parts[p].data)[k]);
                strcat(out, p == 0 ? "/" : p == 1 ? "=" : "\n");
            }
        }
        rq_row_free(row);
    }
    rq_scanner_close(s);
    rq_table_close(t);
}

/* The bytes in OpenTSDB's documentation: metric 000001, hour 50E22700, tag 000001 000001. */
static void published_bytes(void **unused)
{
    (void)unused;
    static char text[4096];
    rq_tsdb *t = fresh(0);
    rq_property tags[] = {{"host", "web42"}};
    rq_tsdb_point points[] = {
        {"proc.loadavg.1m", tags, 1, 1356998400000, false, 1, 0},          /* 0 s, one byte */
        {"proc.loadavg.1m", tags, 1, 1356998410000, false, 300, 0},        /* 10 s, two bytes */
        {"proc.loadavg.1m", tags, 1, 1356998420000, true, 0, 4.25},        /* a float */
        {"proc.loadavg.1m", tags, 1, 1356998430000, true, 0, 0.1},         /* a double */
        {"proc.loadavg.1m", tags, 1, 1356998430500, false, -1, 0},         /* milliseconds */
        {"proc.loadavg.1m", tags, 1, 1357001999000, false, 5000000000, 0}, /* 3599 s, eight bytes */
    };
    OK(rq_tsdb_put(t, points, 6, &why));
    dump("tsdb_test", text, sizeof text);
    assert_string_equal(text, "00000150e22700000001000001/0000=01\n"
                              "00000150e22700000001000001/00a1=012c\n"
                              "00000150e22700000001000001/014b=40880000\n"
                              "00000150e22700000001000001/01ef=3fb999999999999a\n"
                              "00000150e22700000001000001/e0f7=000000012a05f200\n"
                              "00000150e22700000001000001/f01dc900=ff\n");
    dump("tsdb_test-uid", text, sizeof text);
    assert_non_null(strstr(text, "00/6d657472696373=0000000000000001\n")); /* metrics' counter */
    assert_non_null(strstr(text, "000001/6d657472696373=70726f632e6c6f6164")); /* UID → name */
    assert_non_null(strstr(text, "686f7374/7461676b=000001\n"));               /* host → UID */
    uint64_t rows;
    OK(rq_tsdb_compact(t, "proc.loadavg.1m", 1356998400000, 1357002000000, &rows, &why));
    assert_int_equal(rows, 1);
    dump("tsdb_test", text, sizeof text);
    assert_string_equal(text, "00000150e22700000001000001/000000a1014b01eff01dc900e0f7="
                              "01012c408800003fb999999999999aff000000012a05f20001\n");
    OK(rq_tsdb_compact(t, "proc.loadavg.1m", 1356998400000, 1357002000000, &rows, &why));
    assert_int_equal(rows, 0);
    rq_tsdb_close(t);
}

/* The joined qualifier of two points in seconds is as long as that of one point in milliseconds. */
static void two_points_are_compacted(void **unused)
{
    (void)unused;
    char text[4000];
    uint64_t rows;
    rq_tsdb_result *res;
    rq_property tags[] = {{"host", "a"}};
    rq_tsdb_point points[] = {{"cpu", tags, 1, 7200000, false, 1, 0},
                              {"cpu", tags, 1, 7210000, false, 300, 0}};
    rq_tsdb *t = fresh(0);
    OK(rq_tsdb_put(t, points, 2, &why));
    OK(rq_tsdb_compact(t, "cpu", 0, 10800000, &rows, &why));
    assert_int_equal(rows, 1);
    dump("tsdb_test", text, sizeof text);
    assert_string_equal(text, "00000100001c20000001000001/000000a1=01012c00\n");
    rq_tsdb_query q = {.size = sizeof q, .metric = "cpu", .from_ms = 0, .to_ms = 10800000};
    OK(rq_tsdb_read(t, &q, &res, &why));
    assert_int_equal(res->items[0].count, 2);
    rq_tsdb_result_free(res);
    OK(rq_tsdb_compact(t, "cpu", 0, 10800000, &rows, &why));
    assert_int_equal(rows, 0);
    rq_tsdb_close(t);
}

/* Writes one column of metric 000001, hour 001C2000, tag 000001 000001. */
static void put_column(rq_table *data, const char *qualifier, const char *value, int64_t timestamp)
{
    rq_edit edit = {.family = rq_text("t"),
                    .qualifier = rq_bytes_of(qualifier, 2),
                    .value = rq_bytes_of(value, 1),
                    .timestamp = timestamp};
    rq_change put = {.size = sizeof put,
                     .kind = RQ_PUT,
                     .row = rq_bytes_of("\x00\x00\x01\x00\x00\x1c\x20\x00\x00\x01\x00\x00\x01", 13),
                     .edits = &edit,
                     .edit_count = 1};
    OK(rq_table_change(data, &put, NULL, &why));
}

/* A point that is written between a compaction's read and its write of the row remains the newer
 * one. */
static void a_compaction_does_not_undo_a_write(void **unused)
{
    (void)unused;
    uint64_t rows;
    uint32_t uid;
    rq_table *data;
    rq_tsdb_result *res;
    rq_tsdb *t = fresh(0);
    OK(rq_tsdb_uid(t, RQ_TSDB_METRIC, "cpu", true, &uid, &why));
    OK(rq_tsdb_uid(t, RQ_TSDB_TAG_NAME, "host", true, &uid, &why));
    OK(rq_tsdb_uid(t, RQ_TSDB_TAG_VALUE, "a", true, &uid, &why));
    OK(rq_table_open(db, "tsdb_test", &data, &why));
    put_column(data, "\x00\x00", "\x01", 1000);
    put_column(data, "\x00\x10", "\x02", 2000);
    OK(rq_tsdb_compact(t, "cpu", 0, 10800000, &rows, &why));
    assert_int_equal(rows, 1);
    put_column(data, "\x00\x00", "\x03", 3000); /* as if written before the compaction's write */
    rq_tsdb_query q = {.size = sizeof q, .metric = "cpu", .from_ms = 0, .to_ms = 10800000};
    for (int i = 0; i < 2; i++) {
        OK(rq_tsdb_read(t, &q, &res, &why));
        assert_int_equal(res->count, 1);
        assert_int_equal(res->items[0].count, 2);
        assert_int_equal(res->items[0].values[0].integer, 3);
        assert_int_equal(res->items[0].values[1].integer, 2);
        rq_tsdb_result_free(res);
        OK(rq_tsdb_compact(t, "cpu", 0, 10800000, &rows, &why));
    }
    rq_table_close(data);
    rq_tsdb_close(t);
}

/* Columns that OpenTSDB may have written: compacted seconds, an annotation, a timestamp with two
 * points. */
static void foreign_columns(void **unused)
{
    (void)unused;
    static const struct {
        const char *qualifier;
        size_t qualifier_len;
        const char *value;
        size_t value_len;
        int64_t written;
    } columns[] = {
        {"\x00\x00\x00\x10", 4, "\x07\x08\x00", 3, 1}, /* 0 s and 1 s, compacted */
        {"\x00\x10", 2, "\x09", 1, 2},                 /* 1 s again, written later */
        {"\x01\x00\x00", 3, "{}", 2, 3},               /* an annotation */
        {"\xf0\x00\x7d\x00", 4, "\x0a", 1, 4},         /* 500 ms */
    };
    rq_tsdb *t = fresh(0);
    rq_table *data;
    rq_tsdb_result *res;
    rq_property tags[] = {{"a", "b"}};
    rq_tsdb_point point = {"m", tags, 1, 7200000, false, 1, 0};
    OK(rq_tsdb_put(t, &point, 1, &why)); /* assigns names to the UIDs */
    OK(rq_table_open(db, "tsdb_test", &data, &why));
    for (size_t i = 0; i < 4; i++) {
        rq_edit e = {.family = rq_text("t"),
                     .qualifier = rq_bytes_of(columns[i].qualifier, columns[i].qualifier_len),
                     .value = rq_bytes_of(columns[i].value, columns[i].value_len),
                     .timestamp = columns[i].written};
        rq_change put = {.size = sizeof put,
                         .kind = RQ_PUT,
                         .row = rq_bytes_of("\0\0\1\0\0\0\0\0\0\1\0\0\1", 13),
                         .edits = &e,
                         .edit_count = 1};
        OK(rq_table_change(data, &put, NULL, &why));
    }
    rq_tsdb_query q = {.size = sizeof q, .metric = "m", .from_ms = 0, .to_ms = 3600000};
    OK(rq_tsdb_read(t, &q, &res, &why));
    assert_int_equal(res->count, 1);
    assert_int_equal(res->items[0].count, 3);
    assert_int_equal(res->items[0].values[0].integer, 7);
    assert_int_equal(res->items[0].values[1].time_ms, 500);
    assert_int_equal(res->items[0].values[1].integer, 10);
    assert_int_equal(res->items[0].values[2].integer, 9);
    assert_string_equal(res->items[0].tags[0].name, "a");
    assert_string_equal(res->items[0].tags[0].value, "b");
    rq_tsdb_result_free(res);
    OK(rq_put_value(data, rq_bytes_of("\0\0\1\0\0\0\0\0\0\1\0\0\1", 13), rq_text("t"),
                    rq_bytes_of("\x00\x27", 2), rq_text("ab"), &why));
    /* the qualifier says 8 bytes, the value has 2 */
    FAILS(RQ_E_MALFORMED, rq_tsdb_read(t, &q, &res, &why));
    rq_table_close(data);
    rq_tsdb_close(t);
}

enum { POINTS = 4000, HOSTS = 5 };

typedef struct written {
    int64_t time_ms;
    double value;
    int host;
} written;

static double expected_of(const written *w, int host, const rq_tsdb_query *q, int64_t begin,
                          size_t *ret_count)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    *ret_count = 0;
    for (int i = 0; i < POINTS; i++) {
        if (w[i].host != host || w[i].time_ms < q->from_ms || w[i].time_ms >= q->to_ms) continue;
        if (w[i].time_ms < begin || w[i].time_ms >= begin + q->interval_ms) continue;
        ++*ret_count;
        sum += w[i].value;
        low = fmin(low, w[i].value);
        high = fmax(high, w[i].value);
    }
    switch (q->function) {
    case RQ_TSDB_AVG:
        return sum / (double)*ret_count;
    case RQ_TSDB_SUM:
        return sum;
    case RQ_TSDB_MIN:
        return low;
    case RQ_TSDB_MAX:
        return high;
    default:
        return (double)*ret_count;
    }
}

static void check_read(rq_tsdb *t, const written *w, int host, rq_tsdb_function function)
{
    char name[8];
    rq_tsdb_result *res;
    sprintf(name, "h%d", host);
    rq_property tags[] = {{"host", name}, {"dc", NULL}};
    rq_tsdb_query q = {.size = sizeof q,
                       .metric = "cpu",
                       .tags = tags,
                       .tag_count = 2,
                       .from_ms = 1000000 + (int64_t)below(5000000),
                       .interval_ms = 1 + (int64_t)below(2000000),
                       .function = function};
    q.to_ms = q.from_ms + 1 + (int64_t)below(9000000);
    OK(rq_tsdb_read(t, &q, &res, &why));
    size_t all = 0, found = 0, n;
    for (size_t s = 0; s < res->count; s++) {
        assert_int_equal(res->items[s].tag_count, 2);
        for (size_t i = 0; i < res->items[s].count; i++) {
            const rq_tsdb_value *v = &res->items[s].values[i];
            assert_true(i == 0 || v->time_ms > res->items[s].values[i - 1].time_ms);
            double e = expected_of(w, host, &q, v->time_ms, &n);
            if (fabs(v->real - e) > 1e-9 * (1 + fabs(e)))
                fail_msg("host %d at %lld: %g, not %g", host, (long long)v->time_ms, v->real, e);
            found += n;
        }
    }
    q.function = RQ_TSDB_COUNT;
    int64_t interval = q.interval_ms;
    q.interval_ms = INT64_C(1) << 50;
    expected_of(w, host, &q, 0, &all);
    if (found != all)
        fail_msg("host %d: %zu points, not %zu (interval %lld)", host, found, all,
                 (long long)interval);
    rq_tsdb_result_free(res);
}

static void reads_and_downsampling(void **unused)
{
    (void)unused;
    static written w[POINTS];
    static rq_tsdb_point points[POINTS];
    static char hosts[HOSTS][8];
    static rq_property tags[HOSTS][2];
    for (uint32_t buckets = 0; buckets <= 20; buckets += 20) {
        rq_tsdb *t = fresh(buckets);
        for (int h = 0; h < HOSTS; h++) {
            sprintf(hosts[h], "h%d", h);
            tags[h][0] = (rq_property){h % 2 ? "dc" : "host", h % 2 ? "x" : hosts[h]};
            tags[h][1] = (rq_property){h % 2 ? "host" : "dc", h % 2 ? hosts[h] : "y"};
        }
        for (int i = 0; i < POINTS; i++) {
            bool real = below(2) == 0;
            int64_t integer = (int64_t)below(1 << (1 + below(30))) - 50;
            int64_t at = (int64_t)(i * 7919 % POINTS) * 3000 +
                         (below(2) == 0 ? 0 : 1 + (int64_t)below(999)); /* each timestamp once */
            w[i] = (written){at, real ? (double)integer / 8 : (double)integer, (int)below(HOSTS)};
            points[i] = (rq_tsdb_point){"cpu",
                                        tags[w[i].host],
                                        2,
                                        w[i].time_ms,
                                        real,
                                        real ? 0 : integer,
                                        real ? w[i].value : 0};
        }
        for (int i = 0; i < POINTS; i += POINTS / 4)
            OK(rq_tsdb_put(t, points + i, POINTS / 4, &why));
        for (int round = 0; round < 2; round++) {
            for (int h = 0; h < HOSTS; h++)
                for (int f = 0; f <= RQ_TSDB_COUNT; f++)
                    check_read(t, w, h, (rq_tsdb_function)f);
            uint64_t rows;
            OK(rq_tsdb_compact(t, "cpu", 0, 20000000, &rows, &why));
            assert_true(round == 1 ? rows == 0 : rows >= HOSTS);
        }
        rq_tsdb_close(t);
    }
}

static void dictionaries(void **unused)
{
    (void)unused;
    uint32_t a, b;
    rq_tsdb *t = fresh(0), *other;
    rq_tsdb_result *res;
    rq_tsdb_options o = {.size = sizeof o, .data_table = "tsdb_test", .uid_table = "tsdb_test-uid"};
    OK(rq_tsdb_open(db, &o, &other, &why));
    OK(rq_tsdb_uid(t, RQ_TSDB_TAG_VALUE, "x", true, &a, &why));
    OK(rq_tsdb_uid(other, RQ_TSDB_TAG_VALUE, "x", false, &b, &why));
    assert_int_equal(a, b);
    OK(rq_tsdb_uid(other, RQ_TSDB_TAG_VALUE, "y", true, &b, &why));
    assert_int_equal(b, a + 1);
    FAILS(RQ_E_NOT_FOUND, rq_tsdb_uid(t, RQ_TSDB_METRIC, "x", false, &a, &why));
    FAILS(RQ_E_INVALID, rq_tsdb_uid(t, RQ_TSDB_METRIC, "a b", true, &a, &why));
    FAILS(RQ_E_INVALID, rq_tsdb_uid(t, RQ_TSDB_METRIC, "", true, &a, &why));
    rq_property twice[] = {{"a", "x"}, {"a", "y"}};
    rq_tsdb_point p = {"m", twice, 2, 0, false, 1, 0};
    FAILS(RQ_E_INVALID, rq_tsdb_put(t, &p, 1, &why));
    p.tag_count = 0;
    FAILS(RQ_E_INVALID, rq_tsdb_put(t, &p, 1, &why));
    p.tag_count = 1;
    p.time_ms = -1;
    FAILS(RQ_E_INVALID, rq_tsdb_put(t, &p, 1, &why));
    rq_tsdb_query q = {.size = sizeof q, .metric = "never", .to_ms = 1};
    OK(rq_tsdb_read(t, &q, &res, &why));
    assert_int_equal(res->count, 0);
    rq_tsdb_result_free(res);
    rq_tsdb_close(other);
    rq_tsdb_close(t);
}

/* Options are read up to the size that they state; fields of a later version must be zero. */
static void options_of_other_versions(void **unused)
{
    (void)unused;
    struct {
        rq_tsdb_options known;
        size_t later;
    } o = {.known = {.size = sizeof o, .data_table = "tsdb_test", .uid_table = "tsdb_test-uid"}};
    rq_tsdb *t;
    rq_tsdb_close(fresh(0));
    OK(rq_tsdb_open(db, &o.known, &t, &why));
    rq_tsdb_close(t);
    o.later = 1;
    FAILS(RQ_E_UNSUPPORTED, rq_tsdb_open(db, &o.known, &t, &why));
    size_t *least = malloc(sizeof *least);
    assert_non_null(least);
    *least = sizeof *least;
    FAILS(RQ_E_INVALID, rq_tsdb_open(db, (const rq_tsdb_options *)(const void *)least, &t, &why));
    free(least);
}

/* A child of fork gets no UID, not even one that its parent has cached: another thread of the parent may have held the
 * cache's lock. */
static void a_child_knows_no_names(void **unused)
{
    (void)unused;
    uint32_t uid;
    int status = -1;
    rq_tsdb *t = fresh(0);
    rq_tsdb_result *res;
    rq_tsdb_query q = {.size = sizeof q, .metric = "m", .to_ms = 1};
    OK(rq_tsdb_uid(t, RQ_TSDB_METRIC, "m", true, &uid, &why));
    pid_t child = fork();
    if (child == 0) {
        bool refused = rq_tsdb_uid(t, RQ_TSDB_METRIC, "m", true, &uid, &why) == RQ_E_FORKED &&
                       rq_tsdb_read(t, &q, &res, &why) == RQ_E_FORKED;
        rq_tsdb_close(t);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rq_tsdb_close(t);
}

static int open_db(void **unused)
{
    (void)unused;
    return rq_connect(url, NULL, &db, &why) == RQ_OK ? 0 : -1;
}

static int close_db(void **unused)
{
    (void)unused;
    return rq_disconnect(db, &why) == RQ_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_bytes),
        cmocka_unit_test(two_points_are_compacted),
        cmocka_unit_test(a_compaction_does_not_undo_a_write),
        cmocka_unit_test(foreign_columns),
        cmocka_unit_test(reads_and_downsampling),
        cmocka_unit_test(dictionaries),
        cmocka_unit_test(options_of_other_versions),
        cmocka_unit_test(a_child_knows_no_names),
    };
    const char *seed = getenv("SEED");
    if (argc > 1) url = argv[1];
    state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, open_db, close_db);
}
