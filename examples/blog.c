/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blog in one table: writes 10,000 posts of the year 2022 and prints those of December, the newest
 * first.
 *
 *     cc blog.c $(pkg-config --cflags --libs rorqual) -o blog
 *     ./blog file:/tmp/blog              in this process; or hbase://localhost:2181, memory:
 *
 * Rows of a table are sorted by their key, as bytes. The key of a post is the blogger's id, "_", and
 * INT64_MAX minus the post's time in milliseconds, with all 19 digits: the posts of a blogger are
 * together, and the newest is the first. A range of time is a range of keys.
 */
#include <rorqual/rorqual.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { POSTS = 10000, AT_ONCE = 1000, KEY = 48 };

static const char blogger[] = "123";
static const int64_t year_begin = INT64_C(1640995200000); /* 2022-01-01 00:00:00 UTC */
static const int64_t december = INT64_C(1669852800000);   /* 2022-12-01 00:00:00 UTC */
static const int64_t year_end = INT64_C(1672531200000);   /* 2023-01-01 00:00:00 UTC */

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

static rq_bytes key_of(int64_t time, char buf[KEY])
{
    snprintf(buf, KEY, "%s_%019" PRId64, blogger, INT64_MAX - time);
    return rq_text(buf);
}

/* One post every 52 minutes. */
static int64_t time_of(int post)
{
    return year_begin + (year_end - year_begin) / POSTS * post;
}

static rq_table *open_table(rq_db *db)
{
    rq_family family = {"cf", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "blog", .families = &family, .family_count = 1};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, "blog", &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, "blog", &table, &why));
    return table;
}

/* One batch: a put of three columns for each post. */
static void write_posts(rq_table *table, int first)
{
    static char keys[AT_ONCE][KEY], texts[AT_ONCE][3][32];
    static rq_edit edits[AT_ONCE][3];
    static rq_change puts[AT_ONCE];
    static rq_action actions[AT_ONCE];
    static const char *const columns[] = {"title", "content", "tag"};
    for (int i = 0; i < AT_ONCE; i++) {
        for (int c = 0; c < 3; c++) {
            snprintf(texts[i][c], sizeof texts[i][c], "%s_%d", columns[c], first + i);
            edits[i][c] = (rq_edit){.family = rq_text("cf"),
                                    .qualifier = rq_text(columns[c]),
                                    .value = rq_text(texts[i][c])};
        }
        puts[i] = (rq_change){.size = sizeof puts[i],
                              .kind = RQ_PUT,
                              .row = key_of(time_of(first + i), keys[i]),
                              .edits = edits[i],
                              .edit_count = 3};
        actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
    }
    check(rq_table_batch(table, actions, AT_ONCE, NULL, &why));
}

static void print_value(const rq_row *row, const char *column, const char *end)
{
    const rq_kv *cell = rq_row_find(row, rq_text("cf"), rq_text(column));
    if (cell != NULL) printf("%.*s", (int)cell->value.len, (const char *)cell->value.data);
    fputs(end, stdout);
}

/* The newest post has the smallest key: the scan begins at December's end. */
static int print_december(rq_table *table)
{
    char newest[KEY], oldest[KEY];
    rq_scan_request scan = {.size = sizeof scan,
                            .start = key_of(year_end - 1, newest),
                            .stop = key_of(december, oldest),
                            .includes_stop = true};
    rq_scanner *scanner;
    rq_row *row;
    int posts = 0;
    check(rq_table_scan(table, &scan, &scanner, &why));
    for (;;) {
        check(rq_scanner_next(scanner, &row, &why));
        if (row == NULL) break;
        print_value(row, "title", "--");
        print_value(row, "content", "--");
        print_value(row, "tag", "\n");
        rq_row_free(row);
        posts++;
    }
    rq_scanner_close(scanner);
    return posts;
}

int main(int argc, char **argv)
{
    rq_db *db;
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    rq_table *table = open_table(db);
    for (int first = 0; first < POSTS; first += AT_ONCE)
        write_posts(table, first);
    printf("%d posts in December\n", print_december(table));
    rq_table_close(table);
    check(rq_disconnect(db, &why));
    return 0;
}
