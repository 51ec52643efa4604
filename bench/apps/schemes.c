/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events by time: many rows or many columns? schemes URL [MOST [SECONDS]]
 *
 *   tall   row user time:desc, one column            wide   row user, a column for each time:desc
 *
 * For 10, 100 … MOST (1,000,000) events of a user, and ten times as many of other users, in each
 * scheme:
 *
 *   write    a batch of AT_ONCE events               newest   the NEWEST newest events of a user
 *   one      the event of one moment                 range    a hundredth of a user's events, at least 10
 *   all      every event of a user (up to 100,000)
 *
 * Prints a line for each: scheme, events, step, microseconds per event (write, range, all) or per
 * call (one, newest). Reads are repeated for SECONDS (1), from the memstore and then ("flushed")
 * from files.
 */
#include "apps.h"

#include "rorqual/filters.h"

enum { AT_ONCE = 1000, NEWEST = 10, OTHERS = 10, KEY = 16 };

static rq_failure why = {.size = sizeof(rq_failure)};
static double seconds = 1;

typedef struct scheme {
    const char *name;
    bool wide;
    rq_table *table;
    uint64_t events; /* events of one user */
    uint64_t state;
} scheme;

static void put_be64(uint64_t v, unsigned char *out)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(v >> (56 - 8 * i));
}

/* Makes the key: user, then INT64_MAX - time, so that the newest event is first. */
static void key_of(uint64_t user, uint64_t time, unsigned char key[KEY])
{
    put_be64(user, key);
    put_be64((uint64_t)INT64_MAX - time, key + 8);
}

static rq_bytes row_of(const scheme *s, const unsigned char key[KEY])
{
    return rq_bytes_of(key, s->wide ? 8 : KEY);
}

/* Writes events first … first + count - 1; count is at most AT_ONCE. */
static void write_batch(scheme *s, uint64_t user, uint64_t first, size_t count)
{
    static unsigned char keys[AT_ONCE][KEY];
    static rq_edit edits[AT_ONCE];
    static rq_change changes[AT_ONCE];
    static rq_action actions[AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        key_of(user, first + i, keys[i]);
        edits[i] = (rq_edit){.family = rq_text("f"),
                             .qualifier = rq_bytes_of(keys[i] + 8, s->wide ? 8 : 0),
                             .value = rq_text("an event, described in some forty bytes")};
        changes[i] = (rq_change){.size = sizeof changes[i],
                                 .kind = RQ_PUT,
                                 .row = row_of(s, keys[i]),
                                 .edits = &edits[i],
                                 .edit_count = s->wide ? count : 1};
        actions[i] = (rq_action){.changes = &changes[i], .change_count = 1};
    }
    check(rq_table_batch(s->table, actions, s->wide ? 1 : count, NULL, &why), &why);
}

static void print(const scheme *s, const char *step, double us)
{
    printf("%s\t%llu\t%s\t%.3f\n", s->name, (unsigned long long)s->events, step, us);
    fflush(stdout);
}

/* Users take turns, so that each user's events are spread over the log and the files. */
static void write_all(scheme *s)
{
    double begun = now_s();
    for (uint64_t first = 0; first < s->events; first += AT_ONCE)
        for (uint64_t user = 0; user <= OTHERS; user++) {
            uint64_t left = s->events - first;
            write_batch(s, user, first, left < AT_ONCE ? (size_t)left : AT_ONCE);
        }
    print(s, "write", (now_s() - begun) * 1e6 / (double)(s->events * (OTHERS + 1)));
}

/* --- reads, which return the number of events read -------------------------------------------- */

static uint64_t scan(scheme *s, const rq_scan_request *request)
{
    rq_scanner *scanner;
    uint64_t found = 0;
    check(rq_table_scan(s->table, request, &scanner, &why), &why);
    for (;;) {
        rq_rows *rows;
        check(rq_scanner_next_rows(scanner, 0, &rows, &why), &why);
        size_t count = rows->count;
        for (size_t i = 0; i < count; i++)
            found += rows->items[i]->count;
        rq_rows_free(rows);
        if (count == 0) break;
    }
    rq_scanner_close(scanner);
    return found;
}

static uint64_t get(scheme *s, const rq_get_request *request)
{
    rq_row *row;
    check(rq_table_get(s->table, request, &row, &why), &why);
    uint64_t found = row->count;
    rq_row_free(row);
    return found;
}

static uint64_t read_one(scheme *s)
{
    unsigned char key[KEY];
    key_of(below(&s->state, OTHERS + 1), below(&s->state, s->events), key);
    rq_column column = {rq_text("f"), rq_bytes_of(key + 8, 8)};
    rq_get_request request = {.size = sizeof request, .row = row_of(s, key)};
    if (s->wide) request.columns = &column;
    request.column_count = s->wide;
    return get(s, &request);
}

/* Reads events from `newest` to `oldest`, both included; at most `limit`, 0: all. */
static uint64_t read_between(scheme *s, uint64_t newest, uint64_t oldest, uint64_t limit)
{
    unsigned char from[KEY], to[KEY];
    uint64_t user = below(&s->state, OTHERS + 1);
    key_of(user, newest, from);
    key_of(user, oldest, to);
    if (!s->wide) {
        rq_scan_request request = {.size = sizeof request,
                                   .start = row_of(s, from),
                                   .stop = row_of(s, to),
                                   .includes_stop = true,
                                   .limit = limit};
        return scan(s, &request);
    }
    rq_filters *f = rq_filters_new();
    rq_get_request request = {
        .size = sizeof request, .row = row_of(s, from), .family_limit = (int32_t)limit};
    if (limit == 0)
        request.filter =
            rq_column_range_filter(f, rq_bytes_of(from + 8, 8), true, rq_bytes_of(to + 8, 8), true);
    uint64_t found = get(s, &request);
    rq_filters_free(f);
    return found;
}

static uint64_t newest_wanted(const scheme *s)
{
    return s->events < NEWEST ? s->events : NEWEST;
}

static uint64_t read_newest(scheme *s)
{
    return read_between(s, s->events - 1, 0, newest_wanted(s));
}

static uint64_t range_wanted(const scheme *s)
{
    return s->events / 100 > 10 ? s->events / 100 : 10;
}

static uint64_t read_range(scheme *s)
{
    uint64_t count = range_wanted(s), oldest = below(&s->state, s->events - count + 1);
    return read_between(s, oldest + count - 1, oldest, 0);
}

static uint64_t read_all(scheme *s)
{
    return read_between(s, s->events - 1, 0, 0);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void measure(scheme *s, const char *phase, const char *name, uint64_t (*read)(scheme *),
                    uint64_t wanted, bool of_events)
{
    char step[40];
    uint64_t calls = 0;
    double begun = now_s(), spent = 0;
    do {
        if (read(s) != wanted) {
            fprintf(stderr, "%s, %llu events, %s: others than the %llu wanted\n", s->name,
                    (unsigned long long)s->events, name, (unsigned long long)wanted);
            exit(1);
        }
        calls++;
        spent = now_s() - begun;
    } while (spent < seconds);
    snprintf(step, sizeof step, "%s %s", phase, name);
    print(s, step, spent * 1e6 / (double)(of_events ? calls * wanted : calls));
}

static void read_phase(scheme *s, const char *phase)
{
    measure(s, phase, "one", read_one, 1, false);
    measure(s, phase, "newest", read_newest, newest_wanted(s), false);
    measure(s, phase, "range", read_range, range_wanted(s), true);
    if (s->events <= 100000) measure(s, phase, "all", read_all, s->events, true);
}

static void run(rq_db *db, scheme *s, const char *table)
{
    static const char *const families[] = {"f", NULL};
    s->table = fresh_table(db, table, families, "1");
    write_all(s);
    read_phase(s, "memory");
    check(rq_table_flush(db, table, &why), &why);
    read_phase(s, "flushed");
    rq_table_close(s->table);
}

int main(int argc, char **argv)
{
    uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    if (argc > 3) seconds = strtod(argv[3], NULL);
    if (argc < 2 || argc > 4 || most < 10) {
        fprintf(stderr, "usage: schemes URL [MOST [SECONDS]]\n");
        return 2;
    }
    rq_db *db = open_db(argv[1]);
    for (uint64_t events = 10; events <= most; events *= 10) {
        scheme tall = {.name = "tall", .events = events, .state = events};
        scheme wide = {.name = "wide", .wide = true, .events = events, .state = events};
        run(db, &tall, "bench_events_tall");
        run(db, &wide, "bench_events_wide");
    }
    check(rq_disconnect(db, &why), &why);
    return 0;
}
