/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes with covered columns: queries read no row, and copies follow the rows with concurrent
 * writers, killed writers, and writers that do not use the index. test_rowkey_index_cover [URL];
 * SEED. */
#include "index_writers.h"

enum { KEYS = 12, VALUES = 4 };

/* --- rows ------------------------------------------------------------------------------------- */

static rq_index *open_index(rq_db *db, bool unique)
{
    rq_index *x;
    rq_column covered[] = {{rq_text("g"), rq_text("age")},
                           {rq_text("cf"), rq_text("city")},
                           {rq_text("cf"), rq_text("mail")}}; /* the indexed column may be covered,
                                                               * too */
    rq_index_spec spec = {.size = sizeof spec,
                          .table = "cover_test",
                          .index_table = "cover_test_by_mail",
                          .column = {rq_text("cf"), rq_text("mail")},
                          .unique = unique,
                          .creates = true,
                          .covered = covered,
                          .covered_count = 3};
    OK(rq_index_open(db, &spec, &x, &why));
    return x;
}

static void create_table(rq_db *db)
{
    rq_family families[] = {{"cf", NULL, 0}, {"g", NULL, 0}};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "cover_test", .families = families, .family_count = 2};
    OK(rq_table_create(db, &spec, &why));
}

/* A column whose value is NULL is not written. */
static rq_err put(rq_index *x, const char *row, const char *mail, const char *city, const char *age,
                  rq_failure *failure)
{
    rq_edit edits[4] = {
        {.family = rq_text("cf"), .qualifier = rq_text("other"), .value = rq_text("n")}};
    size_t n = 1;
    if (mail != NULL)
        edits[n++] = (rq_edit){
            .family = rq_text("cf"), .qualifier = rq_text("mail"), .value = rq_text(mail)};
    if (city != NULL)
        edits[n++] = (rq_edit){
            .family = rq_text("cf"), .qualifier = rq_text("city"), .value = rq_text(city)};
    if (age != NULL)
        edits[n++] =
            (rq_edit){.family = rq_text("g"), .qualifier = rq_text("age"), .value = rq_text(age)};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = edits,
                        .edit_count = n};
    return rq_index_put(x, &change, failure);
}

/* "f:q@ts=value …" */
static void append_row(const rq_row *row, char *out)
{
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        sprintf(out + strlen(out), "%.*s %.*s:%.*s@%lld=%.*s ", (int)c->row.len,
                (const char *)c->row.data, (int)c->family.len, (const char *)c->family.data,
                (int)c->qualifier.len, (const char *)c->qualifier.data, (long long)c->timestamp,
                (int)c->value.len, (const char *)c->value.data);
    }
    strcat(out, "\n");
}

/* Queries all rows by the index, with covered columns only. */
static void query(rq_index *x, char *out)
{
    rq_index_scanner *s;
    rq_index_range range = {.size = sizeof range, .no_end = true, .covered_only = true};
    rq_row *row;
    out[0] = '\0';
    OK(rq_index_scan(x, &range, &s, &why));
    for (;;) {
        OK(rq_index_next(s, &row, &why));
        if (row == NULL) break;
        append_row(row, out);
        rq_row_free(row);
    }
    rq_index_scanner_close(s);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Compares with the table's rows in the order of the index: by value, then by row. */
static size_t expect_copies(rq_db *db, rq_index *x, bool unique)
{
    static char lines[KEYS][300], text[KEYS * 300], found[KEYS * 300];
    char *sorted[KEYS];
    size_t n = 0;
    (void)unique;
    rq_column columns[] = {{rq_text("cf"), rq_text("mail")},
                           {rq_text("cf"), rq_text("city")},
                           {rq_text("g"), rq_text("age")}};
    rq_scan_request scan = {.size = sizeof scan, .columns = columns, .column_count = 3};
    rq_table *t;
    rq_scanner *s;
    OK(rq_table_open(db, "cover_test", &t, &why));
    OK(rq_table_scan(t, &scan, &s, &why));
    for (rq_row *row;; rq_row_free(row)) {
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        const rq_kv *mail = rq_row_find(row, rq_text("cf"), rq_text("mail"));
        if (mail == NULL) continue;
        sprintf(lines[n], "%.*s\t", (int)mail->value.len, (const char *)mail->value.data);
        append_row(row, lines[n]);
        sorted[n] = lines[n];
        n++;
    }
    rq_scanner_close(s);
    rq_table_close(t);
    qsort(sorted, n, sizeof sorted[0], by_text);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        strcat(text, strchr(sorted[i], '\t') + 1);
    query(x, found);
    assert_string_equal(found, text);
    return n;
}

static const char *some_value(uint64_t *state)
{
    static const char *const values[VALUES] = {"a", "ab", "b", "c"};
    return below(state, 3) == 0 ? NULL : values[below(state, VALUES)];
}

static rq_err put_random(rq_index *x, const char *row, uint64_t *state, rq_failure *failure)
{
    const char *mail = some_value(state), *city = some_value(state), *age = some_value(state);
    return put(x, row, mail, city, age, failure);
}

static const index_kind kind = {.table = "cover_test",
                                .entries = "cover_test_by_mail",
                                .open = open_index,
                                .create = create_table,
                                .keys = KEYS,
                                .deletes = 6,
                                .put = put_random,
                                .check = expect_copies,
                                .writes = 150,
                                .writes_per_repair = 30,
                                .rounds = 12};

/* --- tests ------------------------------------------------------------------------------------ */

/* Uses a disabled table, from which no row can be read. */
static void a_query_reads_no_row(void **unused)
{
    (void)unused;
    char found[1000];
    rq_db *db;
    rq_row *row;
    rq_index_scanner *s;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    OK(put(x, "r1", "ann", "Rome", "7", &why));
    OK(put(x, "r2", "bob", NULL, NULL, &why));
    /* the indexed value stays, a covered column changes */
    OK(put(x, "r1", NULL, "Oslo", NULL, &why));
    OK(put(x, "r2", "cid", NULL, "9", &why));
    OK(put(x, "r3", "dan", "Bern", NULL, &why));
    OK(put(x, "r3", NULL, NULL, NULL, &why)); /* changes neither the value nor a copy */
    OK(put(x, "r4", "eva", "Bern", NULL, &why));
    OK(rq_index_delete(x, rq_text("r4"), &why));
    (void)expect_copies(db, x, false);
    OK(rq_table_disable(db, "cover_test", &why));
    query(x, found);
    assert_non_null(strstr(found, "r1 cf:city"));
    assert_non_null(strstr(found, "=Oslo r1 cf:mail"));
    assert_non_null(strstr(found, "=cid r2 g:age"));
    assert_non_null(strstr(found, "=Bern r3 cf:mail"));
    assert_null(strstr(found, "Rome"));
    assert_null(strstr(found, "bob"));
    assert_null(strstr(found, "r4"));
    rq_index_range range = {.size = sizeof range, .no_end = true}; /* a query of whole rows */
    OK(rq_index_scan(x, &range, &s, &why));
    FAILS(RQ_E_TABLE_NOT_ENABLED, rq_index_next(s, &row, &why));
    rq_index_scanner_close(s);
    OK(rq_table_enable(db, "cover_test", &why));
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

static void wrong_requests_are_refused(void **unused)
{
    (void)unused;
    rq_db *db;
    rq_index *x = NULL, *plain;
    rq_index_scanner *s;
    rq_column columns[16];
    OK(rq_connect(url, NULL, &db, &why));
    rq_index_close(fresh(&kind, db, false));
    for (size_t i = 0; i < 16; i++)
        columns[i] = (rq_column){rq_text("g"), rq_text("q")};
    rq_index_spec spec = {.size = sizeof spec,
                          .table = "cover_test",
                          .index_table = "cover_test_by_mail",
                          .column = {rq_text("cf"), rq_text("mail")},
                          .covered = columns,
                          .covered_count = 16};
    FAILS(RQ_E_INVALID, rq_index_open(db, &spec, &x, &why));
    spec.covered_count = 1;
    columns[0].qualifier.data = NULL; /* covers a whole family */
    FAILS(RQ_E_INVALID, rq_index_open(db, &spec, &x, &why));
    spec.covered = NULL;
    FAILS(RQ_E_INVALID, rq_index_open(db, &spec, &x, &why));
    /* A program built before the library had covered columns. */
    spec.size = offsetof(rq_index_spec, covered);
    OK(rq_index_open(db, &spec, &plain, &why));
    rq_index_range range = {.size = sizeof range, .no_end = true, .covered_only = true};
    FAILS(RQ_E_INVALID, rq_index_scan(plain, &range, &s, &why));
    rq_index_close(plain);
    x = open_index(db, false);
    rq_edit edit = {.family = rq_text("g"), .qualifier = rq_text("age"), .value = rq_text("1")};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("r"),
                        .edits = &edit,
                        .edit_count = 1,
                        .ttl_ms = 1000};
    FAILS(RQ_E_INVALID, rq_index_put(x, &change, &why));
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* A covered column is changed, but the index entry of the row's value names another row: one of the two rows was
 * written without the unique index. */
static void another_row_has_the_entry(void **unused)
{
    (void)unused;
    char found[1000];
    rq_db *db;
    rq_table *t;
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, true);
    OK(rq_table_open(db, "cover_test", &t, &why));
    OK(put(x, "r1", "ann", "Rome", NULL, &why));
    OK(rq_put_value(t, rq_text("r2"), rq_text("cf"), rq_text("mail"), rq_text("ann"), &why));
    FAILS(RQ_E_EXISTS, put(x, "r2", NULL, "Oslo", NULL, &why));
    OK(rq_put_value(t, rq_text("r1"), rq_text("cf"), rq_text("mail"), rq_text("zoe"), &why));
    OK(put(x, "r2", NULL, "Oslo", NULL, &why));
    query(x, found);
    assert_non_null(strstr(found, "=Oslo r2 cf:mail"));
    assert_null(strstr(found, "Rome"));
    rq_table_close(t);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

/* Rows written before the index existed, without it, or by an index without covered columns. */
static void a_repair_makes_copies(void **unused)
{
    (void)unused;
    char found[1000];
    rq_db *db;
    rq_table *t;
    rq_index *plain;
    rq_index_repairs r = {.size = sizeof r};
    OK(rq_connect(url, NULL, &db, &why));
    rq_index *x = fresh(&kind, db, false);
    OK(rq_table_open(db, "cover_test", &t, &why));
    OK(rq_put_value(t, rq_text("r1"), rq_text("cf"), rq_text("mail"), rq_text("ann"), &why));
    OK(rq_put_value(t, rq_text("r1"), rq_text("cf"), rq_text("city"), rq_text("Rome"), &why));
    rq_index_spec spec = {.size = sizeof spec,
                          .table = "cover_test",
                          .index_table = "cover_test_by_mail",
                          .column = {rq_text("cf"), rq_text("mail")}};
    OK(rq_index_open(db, &spec, &plain, &why));
    OK(put(plain, "r2", "bob", "Oslo", "5", &why));
    query(x, found); /* the row is read, because the entry has no copies */
    assert_non_null(strstr(found, "=Oslo r2 cf:mail"));
    OK(rq_index_repair(x, &r, &why));
    assert_int_equal(r.added, 1);
    (void)expect_copies(db, x, false);
    OK(rq_table_disable(db, "cover_test", &why));
    query(x, found);
    assert_non_null(strstr(found, "=Rome r1 cf:mail"));
    assert_non_null(strstr(found, "=Oslo r2 cf:mail"));
    OK(rq_table_enable(db, "cover_test", &why));
    /* Written without the index: the copy is wrong until the repair. */
    OK(put(x, "r3", "cid", "Bern", NULL, &why));
    OK(rq_put_value(t, rq_text("r3"), rq_text("cf"), rq_text("city"), rq_text("Kiel"), &why));
    OK(rq_index_repair(x, &r, &why));
    assert_true(r.added == 0 && r.removed == 0);
    (void)expect_copies(db, x, false);
    OK(rq_table_disable(db, "cover_test", &why));
    query(x, found);
    assert_non_null(strstr(found, "=Kiel r3 cf:mail"));
    OK(rq_table_enable(db, "cover_test", &why));
    rq_table_close(t);
    rq_index_close(plain);
    rq_index_close(x);
    OK(rq_disconnect(db, &why));
}

int main(int argc, char **argv)
{
    void *of_kind = (void *)(uintptr_t)&kind;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(killed_writers, of_kind),
        cmocka_unit_test(a_query_reads_no_row),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(a_repair_makes_copies),
        cmocka_unit_test(another_row_has_the_entry),
        cmocka_unit_test_prestate(several_writers, of_kind),
    };
    take_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
