/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web table of the Bigtable paper: pages by reversed host name, versions by time, links to a page
 * as columns of its row.
 *
 *     cc webtable.c $(pkg-config --cflags --libs rorqual) -o webtable
 *     ./webtable file:/tmp/webtable      in this process; or hbase://localhost:2181, memory:
 *
 * A host's pages are together because the key begins with the domain: com.cnn.www. A cell has
 * versions, each with a timestamp; a get returns the newest one unless it asks for more, or for
 * those of a range of time.
 */
#include <rorqual/rorqual.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static rq_table *open_table(rq_db *db)
{
    rq_property five = {"VERSIONS", "5"};
    rq_family families[] = {{"anchor", &five, 1}, {"contents", &five, 1}, {"people", &five, 1}};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "webtable", .families = families, .family_count = 3};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, "webtable", &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, "webtable", &table, &why));
    return table;
}

static void put(rq_table *table, const char *row, const char *family, const char *qualifier,
                int64_t time, const char *value)
{
    rq_edit edit = {.family = rq_text(family),
                    .qualifier = rq_text(qualifier),
                    .value = rq_text(value),
                    .timestamp = time};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    check(rq_table_change(table, &change, NULL, &why));
}

static void print_cells(const rq_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        printf("  %.*s %.*s:%.*s at %" PRId64 " = %.*s\n", (int)c->row.len,
               (const char *)c->row.data, (int)c->family.len, (const char *)c->family.data,
               (int)c->qualifier.len, (const char *)c->qualifier.data, c->timestamp,
               (int)c->value.len, (const char *)c->value.data);
    }
    if (row->count == 0) puts("  nothing");
}

/* Versions of one column within [min, max). */
static void print_column(rq_table *table, const char *row, const char *family,
                         const char *qualifier, int32_t versions, int64_t min, int64_t max)
{
    rq_column column = {rq_text(family), rq_text(qualifier)};
    rq_get_request get = {.size = sizeof get,
                          .row = rq_text(row),
                          .columns = &column,
                          .column_count = 1,
                          .max_versions = versions,
                          .min_timestamp = min,
                          .max_timestamp = max};
    rq_row *found;
    check(rq_table_get(table, &get, &found, &why));
    print_cells(found);
    rq_row_free(found);
}

/* All pages of a domain: keys from "com.cnn." up to "com.cnn/". The byte '/' comes directly after '.', so
 * these are all keys that begin with "com.cnn.". */
static void print_domain(rq_table *table, const char *first, const char *behind)
{
    rq_scan_request scan = {.size = sizeof scan, .start = rq_text(first), .stop = rq_text(behind)};
    rq_scanner *scanner;
    rq_row *row;
    check(rq_table_scan(table, &scan, &scanner, &why));
    for (;;) {
        check(rq_scanner_next(scanner, &row, &why));
        if (row == NULL) break;
        print_cells(row);
        rq_row_free(row);
    }
    rq_scanner_close(scanner);
}

int main(int argc, char **argv)
{
    rq_db *db;
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    rq_table *table = open_table(db);
    put(table, "com.cnn.www", "contents", "html", 3, "<html>3");
    put(table, "com.cnn.www", "contents", "html", 5, "<html>5");
    put(table, "com.cnn.www", "contents", "html", 6, "<html>6");
    put(table, "com.cnn.www", "anchor", "cnnsi.com", 9, "CNN");
    put(table, "com.cnn.www", "anchor", "my.look.ca", 8, "CNN.com");
    put(table, "com.example.www", "contents", "html", 5, "<html>5");
    put(table, "com.example.www", "people", "author", 5, "John Doe");
    puts("the newest version:");
    print_column(table, "com.cnn.www", "contents", "html", 1, 0, 0);
    puts("all versions:");
    print_column(table, "com.cnn.www", "contents", "html", RQ_ALL_VERSIONS, 0, 0);
    puts("as it was at time 5:");
    print_column(table, "com.cnn.www", "contents", "html", 1, 0, 6);
    puts("written at time 8:");
    print_column(table, "com.cnn.www", "contents", "html", 1, 8, 9);
    puts("all of com.cnn:");
    print_domain(table, "com.cnn.", "com.cnn/");
    rq_table_close(table);
    check(rq_disconnect(db, &why));
    return 0;
}
