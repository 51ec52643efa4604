/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a call on a database in memory fails once: the call returns RQ_E_NO_MEMORY or succeeds, and
 * the same call succeeds afterwards. A file in memory that cannot grow is a full disk, RQ_E_NO_SPACE. The linker wraps
 * the malloc family. */
#include "rorqual/rorqual.h"

#include "../base/failing_memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RUNNING RQ_E_STATE /* no call of this test returns this code */

static rq_failure why = {.size = sizeof(rq_failure)};
static _Atomic unsigned long left; /* allocations until the one that fails */
static rq_db *db;
static rq_table *table;

bool allocation_fails(void)
{
    return atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1;
}

static void ok(rq_err rc)
{
    if (rc != RQ_OK) fail_msg("%s: %s", rq_err_name(rc), why.message);
}

/* --- calls ------------------------------------------------------------------------------------ */

static rq_err put_cell(void)
{
    return rq_put_value(table, rq_text("row"), rq_text("f"), rq_text("q"), rq_text("value"), &why);
}

static rq_err get_cell(void)
{
    char value[16];
    size_t len = 0;
    rq_err rc = rq_get_value(table, rq_text("row"), rq_text("f"), rq_text("q"), value, sizeof value,
                             &len, &why);
    if (rc == RQ_OK && len != 5) fail_msg("%zu bytes", len);
    return rc;
}

static rq_err add_number(void)
{
    int64_t sum;
    return rq_add_value(table, rq_text("row"), rq_text("f"), rq_text("n"), 1, &sum, &why);
}

static rq_err check_and_put(void)
{
    static const rq_edit edit = {.family = {"f", 1}, .qualifier = {"c", 1}, .value = {"v", 1}};
    rq_check check = {.size = sizeof check,
                      .family = rq_text("f"),
                      .qualifier = rq_text("q"),
                      .compare = RQ_COMPARE_EQUAL,
                      .value = rq_text("value")};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text("row"),
                        .edits = &edit,
                        .edit_count = 1};
    bool done = false;
    rq_err rc = rq_table_check_and_change(table, &check, &change, 1, &done, NULL, &why);
    if (rc == RQ_OK) assert_true(done);
    return rc;
}

static rq_err batch(void)
{
    static const rq_edit edit = {.family = {"f", 1}, .qualifier = {"b", 1}, .value = {"v", 1}};
    rq_get_request get = {.size = sizeof get, .row = rq_text("row")};
    rq_change changes[2] = {{.size = sizeof *changes,
                             .kind = RQ_PUT,
                             .row = rq_text("a"),
                             .edits = &edit,
                             .edit_count = 1},
                            {.size = sizeof *changes, .kind = RQ_DELETE, .row = rq_text("z")}};
    rq_action actions[3] = {{.changes = &changes[0], .change_count = 1},
                            {.get = &get},
                            {.changes = &changes[1], .change_count = 1}};
    rq_results *results = NULL;
    rq_err rc = rq_table_batch(table, actions, 3, &results, &why);
    rq_results_free(results);
    return rc;
}

static rq_err scan(void)
{
    rq_scan_request request = {.size = sizeof request, .filter_text = "PrefixFilter('row')"};
    rq_scanner *s = NULL;
    rq_row *row = NULL;
    rq_err rc = rq_table_scan(table, &request, &s, &why);
    if (rc == RQ_OK) rc = rq_scanner_next(s, &row, &why);
    if (rc == RQ_OK) assert_non_null(row);
    rq_row_free(row);
    rq_scanner_close(s);
    return rc;
}

static void take_end(void *context, const rq_completion *c)
{
    rq_err *rc = context;
    rq_row_free(c->row);
    rq_rows_free(c->rows);
    rq_results_free(c->results);
    *rc = c->code;
}

static rq_err wait_for(rq_err rc, const rq_err *ended)
{
    while (rc == RQ_OK && *ended == RUNNING)
        rc = rq_poll(db, 1000, NULL, &why);
    return rc == RQ_OK ? *ended : rc;
}

static rq_err get_later(void)
{
    rq_err ended = RUNNING;
    rq_get_request get = {.size = sizeof get, .row = rq_text("row")};
    return wait_for(rq_table_get_async(table, &get, take_end, &ended, &why), &ended);
}

static rq_err scan_later(void)
{
    rq_err ended = RUNNING;
    rq_scan_request request = {.size = sizeof request};
    rq_scanner *s = NULL;
    rq_err rc = rq_table_scan(table, &request, &s, &why);
    if (rc == RQ_OK) rc = wait_for(rq_scanner_next_async(s, 0, take_end, &ended, &why), &ended);
    rq_scanner_close(s);
    return rc;
}

static rq_err open_and_close_table(void)
{
    rq_table *t = NULL;
    rq_err rc = rq_table_open(db, "t", &t, &why);
    rq_table_close(t);
    return rc;
}

static rq_err list(void)
{
    rq_names *names = NULL;
    rq_region_list *regions = NULL;
    rq_err rc = rq_table_list(db, NULL, &names, &why);
    rq_names_free(names);
    if (rc == RQ_OK) rc = rq_table_regions(db, "t", &regions, &why);
    rq_region_list_free(regions);
    return rc;
}

static rq_err describe_namespace(void)
{
    rq_namespace_info *info = NULL;
    rq_err rc = rq_namespace_describe(db, "default", &info, &why);
    rq_namespace_info_free(info);
    return rc;
}

static rq_err copy_row(void)
{
    static const rq_kv cell = {.row = {"row", 3}, .family = {"f", 1}};
    static const rq_row row = {.count = 1, .cells = &cell};
    rq_row *copy = NULL;
    rq_kv *copied = NULL;
    rq_err rc = rq_row_copy(&row, &copy, &why);
    if (rc == RQ_OK) rc = rq_kv_copy(&cell, &copied, &why);
    rq_kv_free(copied);
    rq_row_free(copy);
    return rc;
}

static rq_err connect_again(void)
{
    rq_db *other = NULL;
    rq_err rc = rq_connect("memory:", NULL, &other, &why);
    if (rc != RQ_OK) return rc;
    rc = rq_disconnect(other, &why);
    return rc;
}

static char folder[] = "file:/tmp/rorqual_no_memory_XXXXXX";

/* Opens a folder with a table, reads the row "kept", writes the row "new", and closes. */
static rq_err use_folder(void)
{
    rq_db *other = NULL;
    rq_table *t = NULL;
    char value[16];
    size_t len;
    rq_err rc = rq_connect(folder, NULL, &other, &why);
    if (rc != RQ_OK) return rc;
    rc = rq_table_open(other, "t", &t, &why);
    if (rc == RQ_OK)
        rc = rq_get_value(t, rq_text("kept"), rq_text("f"), rq_text("q"), value, sizeof value, &len,
                          &why);
    if (rc == RQ_OK && len != 5) fail_msg("the row is lost");
    if (rc == RQ_OK)
        rc = rq_put_value(t, rq_text("new"), rq_text("f"), rq_text("q"), rq_text("value"), &why);
    rq_table_close(t);
    rq_err closed = rq_disconnect(other, &why);
    return rc != RQ_OK ? rc : closed;
}

static void make_table(rq_db *in)
{
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec, .name = "t", .families = &family, .family_count = 1};
    ok(rq_table_create(in, &spec, &why));
}

/* --- the test --------------------------------------------------------------------------------- */

typedef rq_err (*call_fn)(void);

/* Whether opening failed only because a region is not open. */
static bool lacks_region(rq_err rc, call_fn call)
{
    return (call == connect_again || call == use_folder) && rc == RQ_E_NOT_SERVING_REGION;
}

/* A system thread may run into the failing allocation instead of the call, which then succeeds. The
 * first `dense` allocations fail one by one; later ones in growing steps. */
static void each_allocation_fails_once(const char *what, call_fn call, unsigned long dense)
{
    unsigned long n = 0;
    for (bool done = false; !done;) {
        n += 1 + n / dense;
        atomic_store(&left, n);
        rq_err rc = call();
        done = atomic_exchange(&left, 0) > 0;
        if (rc == RQ_OK) continue;
        if (rc != RQ_E_NO_MEMORY && rc != RQ_E_NO_SPACE && !lacks_region(rc, call))
            fail_msg("%s, allocation %lu: %s: %s", what, n, rq_err_name(rc), why.message);
        rc = call();
        if (rc != RQ_OK)
            fail_msg("%s, after allocation %lu: %s: %s", what, n, rq_err_name(rc), why.message);
    }
}

static void calls_end_with_no_memory(void **state)
{
    static const struct {
        const char *what;
        call_fn call;
    } calls[] = {
        {"put", put_cell},
        {"get", get_cell},
        {"increment", add_number},
        {"check", check_and_put},
        {"batch", batch},
        {"scan", scan},
        {"get_async", get_later},
        {"next_async", scan_later},
        {"open", open_and_close_table},
        {"list", list},
        {"namespace", describe_namespace},
        {"copy", copy_row},
        {"connect", connect_again},
    };
    (void)state;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec, .name = "t", .families = &family, .family_count = 1};
    ok(rq_connect("memory:", NULL, &db, &why));
    ok(rq_table_create(db, &spec, &why));
    ok(rq_table_open(db, "t", &table, &why));
    ok(put_cell());
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_allocation_fails_once(calls[i].what, calls[i].call, 100000);
    rq_table_close(table);
    ok(rq_disconnect(db, &why));
}

static void a_folder_is_whole_after_each_failure(void **state)
{
    char command[96];
    (void)state;
    assert_non_null(mkdtemp(folder + strlen("file:")));
    ok(rq_connect(folder, NULL, &db, &why));
    make_table(db);
    ok(rq_table_open(db, "t", &table, &why));
    ok(rq_put_value(table, rq_text("kept"), rq_text("f"), rq_text("q"), rq_text("value"), &why));
    rq_table_close(table);
    ok(rq_disconnect(db, &why));
    each_allocation_fails_once("a folder", use_folder, 20);
    snprintf(command, sizeof command, "rm -rf %s", folder + strlen("file:"));
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_end_with_no_memory),
        cmocka_unit_test(a_folder_is_whole_after_each_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
