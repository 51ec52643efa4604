/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of salted tables compared with the same rows in an unsalted table. The argument is the URL
 * of the database (default: memory:). */
#include "../api/api_test.h"

#include "rorqual/rowkey.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 1000, KEY_MAX = 64, AT_ONCE = 100 };

static rq_failure why = {.size = sizeof why};
static const char *url = "memory:";
static uint64_t state;

static uint64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

static void fresh_table(rq_db *db, const char *name, const rq_key_list *splits, rq_table **ret)
{
    bool exists;
    rq_family family = {"cf", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = name, .families = &family, .family_count = 1};
    if (splits != NULL) {
        spec.split_keys = splits->items;
        spec.split_key_count = splits->count;
    }
    OK(rq_table_exists(db, name, &exists, &why));
    if (exists) {
        OK(rq_table_disable(db, name, &why));
        OK(rq_table_drop(db, name, &why));
    }
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, name, ret, &why));
}

/* Rows that are written in one call: a call for each row would take most of the test's time on a
 * cluster. */
typedef struct rows {
    unsigned char keys[AT_ONCE][KEY_MAX];
    rq_edit gone[AT_ONCE], kept[AT_ONCE][2];
    rq_change changes[AT_ONCE][2];
    rq_action actions[2 * AT_ONCE];
    size_t count;
} rows;

static void flush_rows(rq_table *t, rows *r)
{
    OK(rq_table_batch(t, r->actions, 2 * r->count, NULL, &why));
    r->count = 0;
}

/* Two columns, and a deleted one, because of which a part of a row seems to be followed by another
 * part. */
static void put(rq_table *t, rows *r, const void *key, size_t len)
{
    size_t i = r->count++;
    memcpy(r->keys[i], key, len);
    r->gone[i] = (rq_edit){.family = rq_text("cf"), .qualifier = rq_text("c")};
    r->kept[i][0] =
        (rq_edit){.family = rq_text("cf"), .qualifier = rq_text("a"), .value = rq_text("1")};
    r->kept[i][1] =
        (rq_edit){.family = rq_text("cf"), .qualifier = rq_text("b"), .value = rq_text("2")};
    r->changes[i][0] = (rq_change){.size = sizeof(rq_change),
                                   .kind = RQ_DELETE,
                                   .row = rq_bytes_of(r->keys[i], len),
                                   .edits = &r->gone[i],
                                   .edit_count = 1};
    r->changes[i][1] = (rq_change){.size = sizeof(rq_change),
                                   .kind = RQ_PUT,
                                   .row = rq_bytes_of(r->keys[i], len),
                                   .edits = r->kept[i],
                                   .edit_count = 2};
    for (size_t k = 0; k < 2; k++)
        r->actions[2 * i + k] = (rq_action){.changes = &r->changes[i][k], .change_count = 1};
    if (r->count == AT_ONCE) flush_rows(t, r);
}

/* Compares the rows of both tables, in steps; keys are compared without the salt. */
static void compare_scans(rq_table *plain, rq_table *salted, const rq_key_format *format,
                          const rq_scan_request *scan, uint32_t threads, size_t salt_len)
{
    rq_scanner *a;
    rq_salted_scanner *b;
    OK(rq_table_scan(plain, scan, &a, &why));
    OK(rq_salted_scan(salted, format, scan, threads, &b, &why));
    for (;;) {
        rq_row *x, *y;
        OK(rq_scanner_next(a, &x, &why));
        OK(rq_salted_next(b, &y, &why));
        if (x == NULL || y == NULL) {
            assert_true(x == NULL && y == NULL);
            break;
        }
        rq_bytes key = y->cells[0].row, expected = x->cells[0].row;
        assert_int_equal(key.len, expected.len + salt_len);
        assert_memory_equal((const char *)key.data + salt_len, expected.data, expected.len);
        assert_int_equal(x->count, y->count);
        /* Whether the last part of a row is marked as a part depends on the end of its region. */
        if (scan->batch == 0) assert_false(x->is_partial || y->is_partial);
        assert_memory_equal(x->cells[0].qualifier.data, y->cells[0].qualifier.data, 1);
        rq_row_free(x);
        rq_row_free(y);
    }
    rq_scanner_close(a);
    rq_salted_close(b);
}

static void random_scan(rq_scan_request *scan, char keys[2][KEY_MAX])
{
    *scan = (rq_scan_request){.size = sizeof *scan};
    size_t len[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (below(3) > 0)
            len[i] = (size_t)sprintf(keys[i], "%05llu", (unsigned long long)below(ROWS));
    scan->reversed = below(2) == 1;
    int low = scan->reversed ? 1 : 0;
    scan->start = rq_bytes_of(keys[0], len[0]);
    scan->stop = rq_bytes_of(keys[1], len[1]);
    if (len[0] > 0 && len[1] > 0 && strcmp(keys[low], keys[1 - low]) > 0) {
        scan->start = rq_bytes_of(keys[1], len[1]);
        scan->stop = rq_bytes_of(keys[0], len[0]);
    }
    scan->excludes_start = scan->start.len > 0 && below(2) == 1;
    scan->includes_stop = scan->stop.len > 0 && below(2) == 1;
    scan->limit = below(2) == 1 ? 0 : 1 + below(200);
    scan->batch = below(4) == 0 ? 1 + (uint32_t)below(2) : 0;
    scan->caching = (uint32_t)below(50);
}

static void merged_scans(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"salt(16) id:text", "salt(256) id:text",
                                          "salt(7,hex) id:text", "phoenix(3) id:text"};
    static rows plain_rows, salted_rows;
    rq_db *db;
    OK(rq_connect(url, NULL, &db, &why));
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        rq_key_format *format;
        rq_table *plain, *salted;
        rq_key_list *splits;
        OK(rq_key_format_parse(formats[f], &format, &why));
        size_t buckets = rq_key_buckets(format);
        OK(rq_split_format(format, buckets > 16 ? 16 : buckets, &splits, &why));
        fresh_table(db, "salted_test_plain", NULL, &plain);
        fresh_table(db, "salted_test", splits, &salted);
        size_t count = f == 0 ? ROWS : 200;
        for (size_t i = 0; i < count; i++) {
            char id[KEY_MAX];
            unsigned char key[KEY_MAX];
            size_t len;
            sprintf(id, "%05zu", i * 7 % count);
            rq_key_value v = rq_key_text(id);
            OK(rq_key_encode(format, &v, 1, key, sizeof key, &len, &why));
            put(plain, &plain_rows, id, strlen(id));
            put(salted, &salted_rows, key, len);
        }
        flush_rows(plain, &plain_rows);
        flush_rows(salted, &salted_rows);
        for (int round = 0; round < 40; round++) {
            char keys[2][KEY_MAX];
            rq_scan_request scan;
            random_scan(&scan, keys);
            compare_scans(plain, salted, format, &scan, (uint32_t)below(4), 1);
        }
        rq_key_list_free(splits);
        rq_key_format_free(format);
        rq_table_close(plain);
        rq_table_close(salted);
    }
    OK(rq_disconnect(db, &why));
}

static void failures(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_table *table;
    rq_key_format *format, *unsalted;
    rq_salted_scanner *s;
    rq_row *row;
    rq_scan_request scan = {.size = sizeof scan};
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_key_format_parse("salt(8) id:text", &format, &why));
    OK(rq_key_format_parse("id:text", &unsalted, &why));
    OK(rq_table_open(db, "salted_test_missing", &table, &why));
    FAILS(RQ_E_INVALID, rq_salted_scan(table, unsalted, &scan, 0, &s, &why));
    scan.wants_cursors = true;
    FAILS(RQ_E_INVALID, rq_salted_scan(table, format, &scan, 0, &s, &why));
    assert_non_null(strstr(why.message, "cursors"));
    scan.wants_cursors = false;
    for (uint32_t threads = 0; threads < 3; threads++) {
        OK(rq_salted_scan(table, format, &scan, threads, &s, &why));
        for (int i = 0; i < 2; i++) {
            FAILS(RQ_E_TABLE_NOT_FOUND, rq_salted_next(s, &row, &why));
            assert_non_null(strstr(why.message, "salted_test_missing"));
        }
        rq_salted_close(s);
        OK(rq_salted_scan(table, format, &scan, threads, &s, &why)); /* closed without being read */
        rq_salted_close(s);
    }
    rq_key_format_free(format);
    rq_key_format_free(unsalted);
    rq_table_close(table);
    OK(rq_disconnect(db, &why));
}

static void put_numbers(rq_table *table, const rq_key_format *format, size_t count)
{
    static rows salted_rows;
    for (size_t i = 0; i < count; i++) {
        char id[KEY_MAX];
        unsigned char key[KEY_MAX];
        size_t len;
        sprintf(id, "%05zu", i);
        rq_key_value v = rq_key_text(id);
        OK(rq_key_encode(format, &v, 1, key, sizeof key, &len, &why));
        put(table, &salted_rows, key, len);
    }
    flush_rows(table, &salted_rows);
}

/* An error in the middle: the rows before it are returned in order, then only the error. */
static void a_failed_scan_stays_failed(void **unused)
{
    (void)unused;
    enum { COUNT = 2000, READ = 20 };
    rq_db *db;
    rq_table *table;
    rq_key_format *format;
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_key_format_parse("salt(16) id:text", &format, &why));
    for (uint32_t threads = 0; threads < 3; threads++) {
        rq_scan_request scan = {.size = sizeof scan, .fetch_bytes = 1, .caching = 2};
        rq_salted_scanner *s;
        rq_row *row;
        rq_err rc = RQ_OK;
        fresh_table(db, "salted_test", NULL, &table);
        put_numbers(table, format, COUNT);
        OK(rq_salted_scan(table, format, &scan, threads, &s, &why));
        for (size_t i = 0; rc == RQ_OK && i <= COUNT; i++) {
            char id[KEY_MAX];
            if (i == READ) OK(rq_table_disable(db, "salted_test", &why));
            if ((rc = rq_salted_next(s, &row, &why)) != RQ_OK) break;
            assert_non_null(row);
            sprintf(id, "%05zu", i);
            assert_memory_equal((const char *)row->cells[0].row.data + 1, id, 5);
            rq_row_free(row);
        }
        for (int i = 0; i < 5; i++) {
            FAILS(RQ_E_TABLE_NOT_ENABLED, rq_salted_next(s, &row, &why));
            assert_non_null(strstr(why.message, "salted_test"));
        }
        rq_salted_close(s);
        rq_table_close(table);
        OK(rq_table_enable(db, "salted_test", &why)); /* fresh_table expects an enabled table */
    }
    rq_key_format_free(format);
    OK(rq_disconnect(db, &why));
}

/* Scans that are closed in the middle, with outstanding responses; also after their database.
 * Returned rows outlive both. */
static void abandoned_scans(void **unused)
{
    (void)unused;
    enum { COUNT = 300, KEPT = 20 };
    rq_key_format *format;
    OK(rq_key_format_parse("salt(16) id:text", &format, &why));
    for (int closes_first = 0; closes_first < 2; closes_first++) {
        rq_db *db;
        rq_table *table;
        rq_salted_scanner *s;
        rq_row *kept[KEPT];
        rq_scan_request scan = {.size = sizeof scan, .caching = 2};
        OK(rq_connect(url, NULL, &db, &why));
        fresh_table(db, "salted_test", NULL, &table);
        put_numbers(table, format, COUNT);
        OK(rq_salted_scan(table, format, &scan, 0, &s, &why));
        for (size_t i = 0; i < KEPT; i++)
            OK(rq_salted_next(s, &kept[i], &why));
        if (closes_first) rq_salted_close(s);
        OK(rq_disconnect(db, &why));
        if (!closes_first) {
            rq_row *row;
            rq_err rc = RQ_OK;
            for (size_t i = KEPT; rc == RQ_OK && i < COUNT; i++) /* the rows already fetched, then
                                                                  * the end */
                if ((rc = rq_salted_next(s, &row, &why)) == RQ_OK) rq_row_free(row);
            assert_int_equal(rc, RQ_E_CLOSED);
            rq_salted_close(s);
        }
        rq_table_close(table);
        for (size_t i = 0; i < KEPT; i++) {
            char id[KEY_MAX];
            sprintf(id, "%05zu", i);
            assert_memory_equal((const char *)kept[i]->cells[0].row.data + 1, id, 5);
            rq_row_free(kept[i]);
        }
    }
    rq_key_format_free(format);
}

typedef struct held {
    rq_row *row; /* NULL: none */
    size_t number;
} held;

/* Frees the held row, after checking that its bytes have not changed, and holds `row`. */
static void hold(held *h, rq_row *row, size_t number)
{
    char id[KEY_MAX];
    sprintf(id, "%05zu", h->number);
    if (h->row != NULL) {
        rq_bytes key = h->row->cells[0].row;
        assert_int_equal(key.len, 6);
        assert_memory_equal((const char *)key.data + 1, id, 5);
        assert_memory_equal(h->row->cells[1].value.data, "2", 1);
    }
    rq_row_free(h->row);
    *h = (held){row, number};
}

/* Rows of several buckets are in the same memory, and are freed in any order, also after the scan. */
static void rows_are_freed_in_any_order(void **unused)
{
    (void)unused;
    enum { COUNT = 3000, HELD_MAX = 2000 };
    static held all[HELD_MAX];
    /* Numbers of rows that are held at a time, for each number of threads. HELD_MAX: each chunk of memory has held rows. */
    static const size_t counts[] = {50, 1, HELD_MAX};
    rq_db *db;
    rq_table *table;
    rq_key_format *format;
    rq_scan_request scan = {.size = sizeof scan};
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_key_format_parse("salt(16) id:text", &format, &why));
    fresh_table(db, "salted_test", NULL, &table);
    put_numbers(table, format, COUNT);
    for (uint32_t threads = 0; threads < 3; threads++) {
        rq_salted_scanner *s;
        rq_row *row;
        OK(rq_salted_scan(table, format, &scan, threads, &s, &why));
        for (size_t i = 0; i < COUNT; i++) {
            OK(rq_salted_next(s, &row, &why));
            assert_non_null(row);
            hold(&all[below(counts[threads])], row, i);
        }
        rq_salted_close(s);
        for (size_t i = 0; i < HELD_MAX; i++)
            hold(&all[i], NULL, 0);
    }
    rq_key_format_free(format);
    rq_table_close(table);
    OK(rq_disconnect(db, &why));
}

/* A child of fork gets no row, not even one that its parent has fetched. */
static void a_child_gets_no_rows(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_table *table;
    rq_key_format *format;
    rq_scan_request scan = {.size = sizeof scan};
    OK(rq_connect(url, NULL, &db, &why));
    OK(rq_key_format_parse("salt(4) id:text", &format, &why));
    fresh_table(db, "salted_test", NULL, &table);
    put_numbers(table, format, 100);
    for (uint32_t threads = 0; threads < 3; threads++) {
        rq_salted_scanner *s;
        rq_row *row;
        int status = -1;
        OK(rq_salted_scan(table, format, &scan, threads, &s, &why));
        OK(rq_salted_next(s, &row, &why));
        rq_row_free(row);
        pid_t child = fork();
        if (child == 0) {
            bool refused = rq_salted_next(s, &row, &why) == RQ_E_FORKED;
            rq_salted_close(s);
            _exit(refused ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        OK(rq_salted_next(s, &row, &why));
        rq_row_free(row);
        rq_salted_close(s);
    }
    rq_key_format_free(format);
    rq_table_close(table);
    OK(rq_disconnect(db, &why));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(merged_scans),
                                       cmocka_unit_test(failures),
                                       cmocka_unit_test(a_failed_scan_stays_failed),
                                       cmocka_unit_test(abandoned_scans),
                                       cmocka_unit_test(rows_are_freed_in_any_order),
                                       cmocka_unit_test(a_child_gets_no_rows)};
    const char *seed = getenv("SEED");
    if (argc > 1) url = argv[1];
    state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
