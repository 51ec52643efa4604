/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secondary indexes: the guarantees of rowkey.h with one writer, with several writers of the same
 * rows, and after kill -9 at a random moment. With a URL as argument, that database is used, and no
 * process is killed.
 */
#include "index_writers.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEYS = 20, VALUES = 6 };

static rq_err open_repaired(rq_db *db, bool unique, uint32_t repair_every_ms, rq_index **ret)
{
    rq_index_spec spec = {.size = sizeof spec,
                          .table = "index_test",
                          .index_table = "index_test_by_mail",
                          .column = {rq_text("cf"), rq_text("mail")},
                          .unique = unique,
                          .creates = true,
                          .repair_every_ms = repair_every_ms};
    return rq_index_open(db, &spec, ret, &why);
}

static rq_index *open_index(rq_db *db, bool unique)
{
    rq_index *x;
    OK(open_repaired(db, unique, 0, &x));
    return x;
}

static rq_index *open_kept(rq_db *db, bool unique)
{
    rq_index *x;
    OK(open_repaired(db, unique, 1, &x));
    return x;
}

static void create_table(rq_db *db)
{
    rq_family family = {"cf", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "index_test", .families = &family, .family_count = 1};
    OK(rq_table_create(db, &spec, &why));
}

/* Some values contain bytes 00, and some are prefixes of others. */
static rq_bytes value_of(uint64_t i)
{
    static const char *const values[VALUES] = {"a", "a\0b", "a\0", "ab", "", "\xff"};
    static const size_t lengths[VALUES] = {1, 3, 2, 2, 0, 1};
    return rq_bytes_of(values[i], lengths[i]);
}

static rq_err put(rq_index *x, const char *row, rq_bytes mail, rq_failure *failure)
{
    rq_edit edits[] = {
        {.family = rq_text("cf"), .qualifier = rq_text("mail"), .value = mail},
        {.family = rq_text("cf"), .qualifier = rq_text("name"), .value = rq_text("n")}};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = edits,
                        .edit_count = 2};
    return rq_index_put(x, &change, failure);
}

/* The rows with a value, as "r1 r2 …". */
static void find(rq_index *x, rq_bytes value, char *out)
{
    rq_index_scanner *s;
    rq_index_range range = {.size = sizeof range, .from = value, .to = value, .includes_to = true};
    out[0] = '\0';
    OK(rq_index_scan(x, &range, &s, &why));
    for (;;) {
        rq_row *row;
        OK(rq_index_next(s, &row, &why));
        if (row == NULL) break;
        const rq_kv *mail = rq_row_find(row, rq_text("cf"), rq_text("mail"));
        assert_non_null(mail);
        if (value.len > 0) /* an empty `from` is the start of the index */
            assert_true(mail->value.len == value.len &&
                        memcmp(mail->value.data, value.data, value.len) == 0);
        if (mail->value.len == value.len)
            sprintf(out + strlen(out), "%.*s ", (int)row->cells[0].row.len,
                    (const char *)row->cells[0].row.data);
        rq_row_free(row);
    }
    rq_index_scanner_close(s);
}

/* Every row is found by its value, and found rows have the value. Returns the number of rows with a
 * value. */
static size_t check_all(rq_db *db, rq_index *x, bool unique)
{
    static char expected[VALUES][KEYS * 8], found[KEYS * 8];
    rq_table *t;
    size_t rows = 0;
    OK(rq_table_open(db, "index_test", &t, &why));
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < KEYS; i++) {
        char key[8];
        rq_row *row;
        sprintf(key, "r%02d", i);
        rq_get_request get = {.size = sizeof get, .row = rq_text(key)};
        OK(rq_table_get(t, &get, &row, &why));
        const rq_kv *mail = rq_row_find(row, rq_text("cf"), rq_text("mail"));
        for (uint64_t v = 0; v < VALUES && mail != NULL; v++) {
            rq_bytes value = value_of(v);
            if (value.len != mail->value.len ||
                memcmp(value.data, mail->value.data, value.len) != 0)
                continue;
            sprintf(expected[v] + strlen(expected[v]), "%s ", key);
            rows++;
        }
        rq_row_free(row);
    }
    for (uint64_t v = 0; v < VALUES; v++) {
        find(x, value_of(v), found);
        if (strcmp(found, expected[v]) != 0)
            fail_msg("value %d: rows %s, found %s", (int)v, expected[v], found);
        if (unique) assert_true(strlen(found) <= 4);
    }
    rq_table_close(t);
    return rows;
}

static rq_err put_random(rq_index *x, const char *row, uint64_t *state, rq_failure *failure)
{
    return put(x, row, value_of(below(state, VALUES)), failure);
}

static const index_kind kind = {.table = "index_test",
                                .entries = "index_test_by_mail",
                                .open = open_index,
                                .create = create_table,
                                .keys = KEYS,
                                .deletes = 5,
                                .put = put_random,
                                .check = check_all,
                                .writes = 250,
                                .writes_per_repair = 50,
                                .rounds = 8};

/* A thread repairs the index while it is written. */
static index_kind kind_kept(void)
{
    index_kind k = kind;
    k.open = open_kept;
    k.writes_per_repair = 1000;
    k.rounds = 4;
    return k;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void one_writer(void **unused)
{
    (void)unused;
    char found[200];
    rq_db *db;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    OK(put(x, "r01", rq_text("ann"), &why));
    OK(put(x, "r02", rq_text("ann"), &why));
    OK(put(x, "r03", rq_text("anna"), &why));
    find(x, rq_text("ann"), found);
    assert_string_equal(found, "r01 r02 ");
    OK(put(x, "r01", rq_text("bob"), &why));
    find(x, rq_text("ann"), found);
    assert_string_equal(found, "r02 ");
    rq_edit other = {.family = rq_text("cf"), .qualifier = rq_text("name"), .value = rq_text("x")};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("r02"),
                        .edits = &other,
                        .edit_count = 1};
    OK(rq_index_put(x, &change, &why)); /* this put does not change the indexed column */
    OK(rq_index_delete(x, rq_text("r03"), &why));
    OK(rq_index_delete(x, rq_text("r04"), &why)); /* the row does not exist */
    find(x, rq_text("anna"), found);
    assert_string_equal(found, "");
    find(x, rq_text("ann"), found);
    assert_string_equal(found, "r02 ");
    assert_int_equal(count_entries(&kind, db), 2);
    OK(put(x, "r03", rq_text("zoe"), &why)); /* written again after its delete */
    rq_index_range range = {.size = sizeof range, .from = rq_text("b"), .no_end = true};
    rq_index_scanner *s;
    rq_row *row;
    OK(rq_index_scan(x, &range, &s, &why));
    for (const char *const *key = (const char *const[]){"r01", "r03", NULL}; *key != NULL; key++) {
        OK(rq_index_next(s, &row, &why));
        assert_true(row != NULL && is(row->cells[0].row, *key));
        rq_row_free(row);
    }
    OK(rq_index_next(s, &row, &why));
    assert_null(row);
    rq_index_scanner_close(s);
    change.timestamp = 5;
    FAILS(RQ_E_INVALID, rq_index_put(x, &change, &why));
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* Reads the token of the entry of value "ann" and row r01. */
static void read_token(rq_db *db, char *ret, size_t *ret_len)
{
    rq_table *t;
    rq_row *row;
    rq_get_request get = {.size = sizeof get, .row = rq_bytes_of("ann\0\0r01", 8)};
    OK(rq_table_open(db, "index_test_by_mail", &t, &why));
    OK(rq_table_get(t, &get, &row, &why));
    const rq_kv *token = rq_row_find(row, rq_text("i"), rq_text("t"));
    assert_true(token != NULL && token->value.len < 16);
    *ret_len = token->value.len;
    memcpy(ret, token->value.data, token->value.len);
    rq_row_free(row);
    rq_table_close(t);
}

/* Otherwise a writer that has read the first entry would mistake the second for it (index.c). */
static void deleted_entries_differ(void **unused)
{
    (void)unused;
    char tokens[2][16];
    size_t lens[2];
    rq_db *db;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    for (int i = 0; i < 2; i++) {
        OK(put(x, "r01", rq_text("ann"), &why));
        OK(put(x, "r01", rq_text("bob"), &why));
        read_token(db, tokens[i], &lens[i]);
    }
    assert_true(lens[0] > 0 && lens[1] > 0);
    assert_true(lens[0] != lens[1] || memcmp(tokens[0], tokens[1], lens[0]) != 0);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

static void unique_values(void **unused)
{
    (void)unused;
    char found[200];
    rq_db *db;
    rq_table *entries;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, true);
    OK(put(x, "r01", rq_text("ann"), &why));
    OK(put(x, "r01", rq_text("ann"), &why));
    FAILS(RQ_E_EXISTS, put(x, "r02", rq_text("ann"), &why));
    OK(put(x, "r01", rq_text("bob"), &why));
    OK(put(x, "r02", rq_text("ann"), &why));
    find(x, rq_text("ann"), found);
    assert_string_equal(found, "r02 ");
    /* A writer that died before it wrote its row leaves an entry, which the next writer of the
     * value takes over. */
    OK(rq_table_open(db, "index_test_by_mail", &entries, &why));
    rq_edit stale[] = {
        {.family = rq_text("i"), .qualifier = rq_text("t"), .value = rq_text("0123456789abcdef")},
        {.family = rq_text("i"), .qualifier = rq_text("r"), .value = rq_text("r09")}};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_bytes_of("carl\0\0", 6),
                        .edits = stale,
                        .edit_count = 2};
    OK(rq_table_change(entries, &change, NULL, &why));
    OK(put(x, "r05", rq_text("carl"), &why));
    find(x, rq_text("carl"), found);
    assert_string_equal(found, "r05 ");
    rq_table_close(entries);
    /* A row written without the index has no entry, and a change of it must not remove another
     * row's entry. */
    rq_table *rows;
    OK(rq_table_open(db, "index_test", &rows, &why));
    OK(rq_put_value(rows, rq_text("r07"), rq_text("cf"), rq_text("mail"), rq_text("carl"), &why));
    OK(put(x, "r07", rq_text("dora"), &why));
    find(x, rq_text("carl"), found);
    assert_string_equal(found, "r05 ");
    rq_table_close(rows);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* A scan that failed to read a row has skipped the row, so it must not continue. */
static void a_failed_scan_stays_failed(void **unused)
{
    (void)unused;
    enum { COUNT = 250, READ = 50 }; /* entries are read 100 at a time */
    rq_db *db;
    rq_index_scanner *s;
    rq_row *row;
    rq_err rc = RQ_OK;
    rq_index_range range = {.size = sizeof range, .no_end = true};
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    for (int i = 0; i < COUNT; i++) {
        char key[16];
        sprintf(key, "%04d", i);
        OK(put(x, key, rq_text(key), &why));
    }
    OK(rq_index_scan(x, &range, &s, &why));
    for (int i = 0; i < COUNT && rc == RQ_OK; i++) {
        if (i == READ) OK(rq_table_disable(db, "index_test", &why));
        if ((rc = rq_index_next(s, &row, &why)) != RQ_OK) break;
        rq_row_free(row);
    }
    assert_int_equal(rc, RQ_E_TABLE_NOT_ENABLED);
    OK(rq_table_enable(db, "index_test", &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, rq_index_next(s, &row, &why));
    assert_non_null(strstr(why.message, "index_test"));
    rq_index_scanner_close(s);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

static void rebuild_and_repair(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_table *t;
    rq_index_repairs r = {.size = sizeof r};
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    OK(rq_table_open(db, "index_test", &t, &why));
    for (int i = 0; i < KEYS; i++) { /* written without the index */
        char key[8];
        sprintf(key, "r%02d", i);
        OK(rq_put_value(t, rq_text(key), rq_text("cf"), rq_text("mail"),
                        value_of((uint64_t)i % VALUES), &why));
    }
    OK(rq_index_repair(x, &r, &why));
    assert_int_equal(r.added, KEYS);
    assert_int_equal(check_all(db, x, false), KEYS);
    OK(rq_put_value(t, rq_text("r03"), rq_text("cf"), rq_text("mail"), rq_text("other"), &why));
    OK(rq_delete_row(t, rq_text("r04"), &why));
    check_all(db, x, false); /* queries skip wrong entries */
    OK(rq_index_repair(x, &r, &why));
    assert_true(r.added == 1 && r.removed == 2 && r.rows == KEYS - 1 && r.duplicates == 0);
    OK(rq_index_repair(x, &r, &why));
    assert_true(r.added == 0 && r.removed == 0);
    rq_index_repairs shorter = {.size = offsetof(rq_index_repairs, added), .added = 77};
    OK(rq_index_repair(x, &shorter, &why)); /* of an older program */
    assert_true(shorter.rows == r.rows && shorter.entries == r.entries && shorter.added == 77);
    shorter.size = 0;
    FAILS(RQ_E_INVALID, rq_index_repair(x, &shorter, &why));
    assert_int_equal(count_entries(&kind, db), KEYS - 1);
    /* Two entries of one row are wrong. */
    OK(rq_put_value(t, rq_text("r05"), rq_text("cf"), rq_text("mail"), rq_text("other"), &why));
    OK(put(x, "r05", rq_text("another"), &why));
    rq_edit third = {.family = rq_text("cf"),
                     .qualifier = rq_text("mail"),
                     .value = rq_text("third"),
                     .timestamp = INT64_C(4102444800000)}; /* the index may be ahead of the clock */
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("r05"),
                        .edits = &third,
                        .edit_count = 1};
    OK(rq_table_change(t, &change, NULL, &why));
    OK(rq_index_repair(x, &r, &why));
    assert_int_equal(r.added, 1);
    assert_int_equal(r.removed, 2);
    rq_table_close(t);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* Waits until a repair that began after this call has ended. Returns the result of the last repair, and the sums of all. */
static rq_err wait_for_repair(rq_index *x, rq_index_repairs *sums)
{
    uint64_t first, count = 0;
    rq_err rc = rq_index_repaired(x, &first, NULL, NULL);
    *sums = (rq_index_repairs){.size = sizeof *sums};
    while (count < first + 2) {
        rc = rq_index_repaired(x, &count, sums, &why);
        sched_yield();
    }
    return rc;
}

static void the_index_repairs_itself(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_table *t;
    rq_index *x;
    rq_index_repairs sums;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index_close(fresh(&kind, db, false));
    OK(rq_table_open(db, "index_test", &t, &why));
    for (int i = 0; i < KEYS; i++) { /* written without the index */
        char key[8];
        sprintf(key, "r%02d", i);
        OK(rq_put_value(t, rq_text(key), rq_text("cf"), rq_text("mail"),
                        value_of((uint64_t)i % VALUES), &why));
    }
    x = open_kept(db, false);
    OK(wait_for_repair(x, &sums));
    assert_int_equal(sums.added, KEYS);
    assert_int_equal(check_all(db, x, false), KEYS);
    OK(rq_delete_row(t, rq_text("r04"), &why));
    OK(wait_for_repair(x, &sums));
    assert_int_equal(sums.removed, 1);
    /* An error does not end the thread. */
    OK(rq_table_disable(db, "index_test_by_mail", &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, wait_for_repair(x, &sums));
    OK(rq_table_enable(db, "index_test_by_mail", &why));
    OK(wait_for_repair(x, &sums));
    rq_index_close(x);
    for (int i = 0; i < 20; i++) /* in the middle of a repair, perhaps */
        rq_index_close(open_kept(db, false));
    x = open_index(db, false);
    FAILS(RQ_E_STATE, rq_index_repaired(x, NULL, NULL, &why));
    rq_index_close(x);
    x = open_kept(db, false);
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
    FAILS(RQ_E_CLOSED, wait_for_repair(x, &sums));
    rq_index_close(x);
}

static void a_repaired_index_needs_a_thread(void **unused)
{
    (void)unused;
    if (strcmp(url, "memory:") != 0) skip();
    rq_connect_options o = {.size = sizeof o, .no_threads = true};
    rq_db *db;
    rq_index *x;
    OK(rq_connect(url, &o, &db, &why));
    FAILS(RQ_E_UNSUPPORTED, open_repaired(db, false, 1, &x));
    OK(rq_disconnect(db, &why));
}

/* The thread is the parent's: the child neither waits for it nor takes its lock. */
static void a_child_does_not_wait_for_the_thread(void **unused)
{
    (void)unused;
    int status = -1;
    rq_db *db;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index_close(fresh(&kind, db, false));
    rq_index *x = open_kept(db, false);
    pid_t child = fork();
    if (child == 0) {
        bool right = rq_index_repaired(x, NULL, NULL, NULL) == RQ_E_FORKED;
        rq_index_close(x);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* A child of fork gets no row, not even one that its parent has fetched. */
static void a_child_gets_no_rows(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_index_scanner *s;
    rq_row *row;
    rq_index_range range = {.size = sizeof range, .no_end = true};
    int status = -1;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    OK(put(x, "1", rq_text("a"), &why));
    OK(put(x, "2", rq_text("b"), &why));
    OK(rq_index_scan(x, &range, &s, &why));
    OK(rq_index_next(s, &row, &why));
    rq_row_free(row);
    pid_t child = fork();
    if (child == 0) _exit(rq_index_next(s, &row, &why) == RQ_E_FORKED ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(rq_index_next(s, &row, &why));
    assert_non_null(row);
    rq_row_free(row);
    rq_index_scanner_close(s);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

int main(int argc, char **argv)
{
    static index_kind kept;
    void *of_kind = (void *)(uintptr_t)&kind, *of_kept = &kept;
    kept = kind_kept();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(killed_writers, of_kind),
        cmocka_unit_test_prestate(killed_writers, of_kept),
        cmocka_unit_test(one_writer),
        cmocka_unit_test(deleted_entries_differ),
        cmocka_unit_test(unique_values),
        cmocka_unit_test(a_failed_scan_stays_failed),
        cmocka_unit_test(a_child_gets_no_rows),
        cmocka_unit_test(rebuild_and_repair),
        cmocka_unit_test(the_index_repairs_itself),
        cmocka_unit_test(a_repaired_index_needs_a_thread),
        cmocka_unit_test(a_child_does_not_wait_for_the_thread),
        cmocka_unit_test_prestate(several_writers, of_kind),
        cmocka_unit_test_prestate(several_writers, of_kept),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
