/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of users by time, in the two usual schemes, and the same three queries on both.
 *
 *     cc timeline.c $(pkg-config --cflags --libs rorqual) -o timeline
 *     ./timeline file:/tmp/timeline          in this process; or hbase://localhost:2181, memory:
 *
 * Tall: a row per event, key = user and reversed time. Wide: a row per user, the reversed time is the
 * qualifier. Both have a user's newest event first. Tall rows can be split over regions and read in
 * parts; a wide row cannot be split, and is right for few columns.
 */
#include <rorqual/rowkey.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { USERS = 20, EVENTS = 200, NEWEST = 3 };

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", rq_err_name(rc), why.message);
    exit(1);
}

typedef struct schemes {
    rq_table *tall, *wide;
    /* The key format of the tall table. Its first part, the user, is the key of the wide table; its
     * second part, the reversed time, is the qualifier there. */
    rq_key_format *tall_key;
} schemes;

typedef struct key {
    unsigned char bytes[16];
    size_t len;
} key;

static const size_t user_len = 8; /* bytes of the first part */

static rq_table *open_table(rq_db *db, const char *name)
{
    rq_family family = {"cf", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = name, .families = &family, .family_count = 1};
    rq_table *table;
    bool exists;
    check(rq_table_exists(db, name, &exists, &why));
    if (!exists) check(rq_table_create(db, &spec, &why));
    check(rq_table_open(db, name, &table, &why));
    return table;
}

static int64_t time_of(unsigned user, unsigned event)
{
    return INT64_C(1672531200000) + (int64_t)event * 60000 + user;
}

/* The key of an event (parts = 2), or the prefix that all keys of a user have (parts = 1). */
static key key_of(const schemes *s, unsigned user, int64_t time, size_t parts)
{
    key k;
    rq_key_value values[] = {rq_key_uint(user), rq_key_int(time)};
    check(rq_key_encode(s->tall_key, values, parts, k.bytes, sizeof k.bytes, &k.len, &why));
    return k;
}

static void write_events(const schemes *s)
{
    for (unsigned user = 0; user < USERS; user++) {
        static key keys[EVENTS];
        static char values[EVENTS][16];
        static rq_edit tall[EVENTS], wide[EVENTS];
        static rq_change puts[EVENTS];
        static rq_action actions[EVENTS];
        for (unsigned i = 0; i < EVENTS; i++) {
            unsigned event = i * 7 % EVENTS; /* in arbitrary order */
            keys[i] = key_of(s, user, time_of(user, event), 2);
            snprintf(values[i], sizeof values[i], "event %u", event);
            tall[i] = (rq_edit){
                .family = rq_text("cf"), .qualifier = rq_text(""), .value = rq_text(values[i])};
            wide[i] = (rq_edit){.family = rq_text("cf"),
                                .qualifier =
                                    rq_bytes_of(keys[i].bytes + user_len, keys[i].len - user_len),
                                .value = rq_text(values[i])};
            puts[i] = (rq_change){.size = sizeof puts[i],
                                  .kind = RQ_PUT,
                                  .row = rq_bytes_of(keys[i].bytes, keys[i].len),
                                  .edits = &tall[i],
                                  .edit_count = 1};
            actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
        }
        check(rq_table_batch(s->tall, actions, EVENTS, NULL, &why));
        rq_change row = {.size = sizeof row,
                         .kind = RQ_PUT,
                         .row = rq_bytes_of(keys[0].bytes, user_len),
                         .edits = wide,
                         .edit_count = EVENTS};
        check(rq_table_change(s->wide, &row, NULL, &why));
    }
}

static void print_cells(const char *scheme, const rq_row *row, size_t most)
{
    for (size_t i = 0; i < row->count && i < most; i++)
        printf("%s: %.*s\n", scheme, (int)row->cells[i].value.len,
               (const char *)row->cells[i].value.data);
}

/* Query 1: the event of one moment. */
static void print_one(const schemes *s, unsigned user, int64_t time)
{
    key k = key_of(s, user, time, 2);
    rq_column column = {rq_text("cf"), rq_bytes_of(k.bytes + user_len, k.len - user_len)};
    rq_get_request tall = {.size = sizeof tall, .row = rq_bytes_of(k.bytes, k.len)};
    rq_get_request wide = {.size = sizeof wide,
                           .row = rq_bytes_of(k.bytes, user_len),
                           .columns = &column,
                           .column_count = 1};
    rq_row *row;
    check(rq_table_get(s->tall, &tall, &row, &why));
    print_cells("tall", row, 1);
    rq_row_free(row);
    check(rq_table_get(s->wide, &wide, &row, &why));
    print_cells("wide", row, 1);
    rq_row_free(row);
}

/* Queries 2 and 3: all events of a user, or the newest ones; returns the number of events found. */
static size_t scan_tall(const schemes *s, unsigned user, uint64_t newest, bool prints)
{
    unsigned char stop[16];
    key k = key_of(s, user, 0, 1);
    size_t stop_len = rq_key_after_prefix(rq_bytes_of(k.bytes, k.len), stop), count = 0;
    rq_scan_request scan = {.size = sizeof scan,
                            .start = rq_bytes_of(k.bytes, k.len),
                            .stop = rq_bytes_of(stop, stop_len),
                            .limit = newest};
    rq_scanner *scanner;
    check(rq_table_scan(s->tall, &scan, &scanner, &why));
    for (;; count++) {
        rq_row *row;
        check(rq_scanner_next(scanner, &row, &why));
        if (row == NULL) break;
        if (prints) print_cells("tall", row, 1);
        rq_row_free(row);
    }
    rq_scanner_close(scanner);
    return count;
}

static size_t get_wide(const schemes *s, unsigned user, int32_t newest, bool prints)
{
    key k = key_of(s, user, 0, 1);
    rq_row *row;
    rq_get_request get = {
        .size = sizeof get, .row = rq_bytes_of(k.bytes, k.len), .family_limit = newest};
    check(rq_table_get(s->wide, &get, &row, &why));
    if (prints) print_cells("wide", row, row->count);
    size_t count = row->count;
    rq_row_free(row);
    return count;
}

int main(int argc, char **argv)
{
    rq_db *db;
    schemes s;
    check(rq_key_format_parse("user:u64 time:desc-ms", &s.tall_key, &why));
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &db, &why));
    s.tall = open_table(db, "events_tall");
    s.wide = open_table(db, "events_wide");
    write_events(&s);
    print_one(&s, 7, time_of(7, 42));
    printf("all of a user: %zu tall, %zu wide\n", scan_tall(&s, 7, 0, false),
           get_wide(&s, 7, 0, false));
    scan_tall(&s, 7, NEWEST, true);
    get_wide(&s, 7, NEWEST, true);
    rq_key_format_free(s.tall_key);
    rq_table_close(s.tall);
    rq_table_close(s.wide);
    check(rq_disconnect(db, &why));
    return 0;
}
