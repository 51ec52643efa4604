/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a scan over 16 buckets of a salted table with a scan of the same rows in an unsalted
 * table of 16 regions:
 *
 *     bench_salted_scan URL [ROWS [THREADS [FETCH_BYTES]]]
 *
 * Prints rows per second of both, alternating, the ratio of the median times, and the page faults of all scans of each kind.
 */
#include "rorqual/rowkey.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { AT_ONCE = 1000, ROUNDS = 7, BUCKETS = 16 };

static rq_failure why = {.size = sizeof why};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static rq_table *fresh(rq_db *db, const char *name, const rq_key_list *splits)
{
    rq_family family = {"cf", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = name,
                          .families = &family,
                          .family_count = 1,
                          .split_keys = splits->items,
                          .split_key_count = splits->count};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, name, &exists, &why));
    if (exists) {
        check(rq_table_disable(db, name, &why));
        check(rq_table_drop(db, name, &why));
    }
    check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, name, &table, &why));
    return table;
}

static void load(rq_table *table, const rq_key_format *format, size_t rows)
{
    static unsigned char keys[AT_ONCE][16], value[100];
    static rq_edit edits[AT_ONCE];
    static rq_change puts[AT_ONCE];
    static rq_action actions[AT_ONCE];
    for (size_t first = 0; first < rows; first += AT_ONCE) {
        for (size_t i = 0; i < AT_ONCE; i++) {
            size_t len;
            rq_key_value id = rq_key_uint((first + i) * (UINT64_MAX / rows));
            check(rq_key_encode(format, &id, 1, keys[i], sizeof keys[i], &len, &why));
            edits[i] = (rq_edit){.family = rq_text("cf"),
                                 .qualifier = rq_text("q"),
                                 .value = rq_bytes_of(value, sizeof value)};
            puts[i] = (rq_change){.size = sizeof puts[i],
                                  .kind = RQ_PUT,
                                  .row = rq_bytes_of(keys[i], len),
                                  .edits = &edits[i],
                                  .edit_count = 1};
            actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
        }
        check(rq_table_batch(table, actions, AT_ONCE, NULL, &why));
    }
}

static double scan_plain(rq_table *table, size_t rows)
{
    rq_scan_request scan = {.size = sizeof scan};
    rq_scanner *s;
    rq_row *row;
    double begun = now();
    check(rq_table_scan(table, &scan, &s, &why));
    size_t n = 0;
    for (check(rq_scanner_next(s, &row, &why)); row != NULL;
         check(rq_scanner_next(s, &row, &why)), n++)
        rq_row_free(row);
    rq_scanner_close(s);
    if (n != rows) exit(1);
    return now() - begun;
}

static double scan_salted(rq_table *table, const rq_key_format *format, size_t rows,
                          uint32_t threads, uint64_t fetch_bytes)
{
    rq_scan_request scan = {.size = sizeof scan, .fetch_bytes = fetch_bytes};
    rq_salted_scanner *s;
    rq_row *row;
    double begun = now();
    check(rq_salted_scan(table, format, &scan, threads, &s, &why));
    size_t n = 0;
    for (check(rq_salted_next(s, &row, &why)); row != NULL;
         check(rq_salted_next(s, &row, &why)), n++)
        rq_row_free(row);
    rq_salted_close(s);
    if (n != rows) exit(1);
    return now() - begun;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    size_t rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 200000;
    uint32_t threads = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    uint64_t fetch_bytes = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    double plain_s[ROUNDS], salted_s[ROUNDS];
    rq_key_format *format, *salted_format;
    rq_key_list *splits, *salted_splits;
    rq_db *db;
    check(rq_key_format_parse("id:rev-u64", &format, &why));
    check(rq_split_format(format, BUCKETS, &splits, &why));
    rq_key_format_free(format);
    check(rq_key_format_parse("id:u64", &format, &why));
    check(rq_key_format_parse("salt(16) id:u64", &salted_format, &why));
    check(rq_split_format(salted_format, BUCKETS, &salted_splits, &why));
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    rq_table *plain = fresh(db, "bench_plain", splits),
             *salted = fresh(db, "bench_salted", salted_splits);
    load(plain, format, rows);
    load(salted, salted_format, rows);
    long plain_faults = 0, salted_faults = 0;
    for (int i = 0; i < ROUNDS; i++) {
        long begun = page_faults();
        plain_s[i] = scan_plain(plain, rows);
        long between = page_faults();
        salted_s[i] = scan_salted(salted, salted_format, rows, threads, fetch_bytes);
        plain_faults += between - begun;
        salted_faults += page_faults() - between;
    }
    qsort(plain_s, ROUNDS, sizeof(double), ascending);
    qsort(salted_s, ROUNDS, sizeof(double), ascending);
    printf("unsalted %.0f rows/s, salted %.0f rows/s, %.2f x the time; page faults %ld and %ld\n",
           (double)rows / plain_s[ROUNDS / 2], (double)rows / salted_s[ROUNDS / 2],
           salted_s[ROUNDS / 2] / plain_s[ROUNDS / 2], plain_faults, salted_faults);
    rq_key_list_free(splits);
    rq_key_list_free(salted_splits);
    rq_key_format_free(format);
    rq_key_format_free(salted_format);
    rq_table_close(plain);
    rq_table_close(salted);
    check(rq_disconnect(db, &why));
    return 0;
}
