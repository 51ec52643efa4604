/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of librorqual's client on a cluster, per operation: bench_library_client URL. Does the
 * same as Client.java with HBase's client, on a separate table. Prints a line for each operation:
 * name, microseconds of the process's CPU time. */
#include "rorqual/rorqual.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 20000, BATCH = 50, VALUE = 100, WARM = 5000 };

static rq_failure why = {.size = sizeof(rq_failure)};
static rq_table *table;
static char value[VALUE];

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static char *row_of(int i, char row[16])
{
    snprintf(row, 16, "row%08d", i);
    return row;
}

static int puts_of(int count)
{
    char row[16];
    for (int i = 0; i < count; i++)
        check(rq_put_value(table, rq_text(row_of(i % ROWS, row)), rq_text("f"), rq_text("q"),
                           rq_bytes_of(value, VALUE), &why),
              "put");
    return count;
}

static int gets_of(int count)
{
    char row[16];
    for (int i = 0; i < count; i++) {
        rq_get_request get = {.size = sizeof get,
                              .row = rq_text(row_of((int)(i * 7919L % ROWS), row))};
        rq_row *found;
        check(rq_table_get(table, &get, &found, &why), "get");
        if (found->count != 1) exit(1);
        rq_row_free(found);
    }
    return count;
}

static int batches_of(int count)
{
    static char rows[BATCH][16];
    static rq_edit edits[BATCH];
    static rq_change changes[BATCH];
    static rq_action actions[BATCH];
    for (int b = 0; b < count / BATCH; b++) {
        for (int i = 0; i < BATCH; i++) {
            edits[i] = (rq_edit){.family = rq_text("f"),
                                 .qualifier = rq_text("q"),
                                 .value = rq_bytes_of(value, VALUE)};
            changes[i] = (rq_change){.size = sizeof(rq_change),
                                     .kind = RQ_PUT,
                                     .row = rq_text(row_of((b * BATCH + i) % ROWS, rows[i])),
                                     .edits = &edits[i],
                                     .edit_count = 1};
            actions[i] = (rq_action){.changes = &changes[i], .change_count = 1};
        }
        check(rq_table_batch(table, actions, BATCH, NULL, &why), "batch");
    }
    return count / BATCH;
}

static int scans_of(int count)
{
    rq_scan_request scan = {.size = sizeof scan};
    int rows = 0;
    while (rows < count) {
        rq_scanner *s;
        rq_row *row = NULL;
        check(rq_table_scan(table, &scan, &s, &why), "scan");
        do {
            check(rq_scanner_next(s, &row, &why), "next");
            rows += row != NULL;
            rq_row_free(row);
        } while (row != NULL);
        rq_scanner_close(s);
    }
    return rows;
}

static void measure(const char *name, int (*work)(int), int count)
{
    (void)work(WARM);
    double begun = cpu_us();
    int done = work(count);
    printf("%s %.2f\n", name, (cpu_us() - begun) / done);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    rq_db *db;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "bench_c", .families = &family, .family_count = 1};
    if (argc != 2) return 2;
    check(rq_connect(argv[1], NULL, &db, &why), "connect");
    check(rq_table_create(db, &spec, &why), "create");
    check(rq_table_open(db, "bench_c", &table, &why), "open");
    measure("put", puts_of, ROWS);
    measure("get", gets_of, ROWS);
    measure("batch", batches_of, ROWS * 10);
    measure("row", scans_of, ROWS * 20);
    rq_table_close(table);
    check(rq_table_disable(db, "bench_c", &why), "disable");
    check(rq_table_drop(db, "bench_c", &why), "drop");
    check(rq_disconnect(db, &why), "disconnect");
    return 0;
}
