/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a table; polls between their calls; a database that is closed. Part of test_api. */
#include "api_rows.h"

#include <pthread.h>
#include <sched.h>

typedef struct worker {
    pthread_t thread;
    rq_table *table;
    int number;
    rq_err rc;
    rq_failure why;
    int rows;
} worker;

enum { WORKERS = 8, ROUNDS = 100 };

static void *work(void *arg)
{
    worker *w = arg;
    char row[16], buf[16];
    int64_t sum;
    size_t len;
    for (int i = 0; i < ROUNDS && w->rc == RQ_OK; i++) {
        snprintf(row, sizeof row, "w%d-%03d", w->number, i);
        w->rc =
            rq_put_value(w->table, rq_text(row), rq_text("f"), rq_text("q"), rq_text(row), &w->why);
        if (w->rc == RQ_OK)
            w->rc = rq_get_value(w->table, rq_text(row), rq_text("f"), rq_text("q"), buf,
                                 sizeof buf, &len, &w->why);
        if (w->rc == RQ_OK && (len != strlen(row) || memcmp(buf, row, len) != 0))
            w->rc = RQ_E_CORRUPT;
        if (w->rc == RQ_OK)
            w->rc = rq_add_value(w->table, rq_text("sum"), rq_text("g"), rq_text("n"), 1, &sum,
                                 &w->why);
    }
    rq_scan_request scan = {
        .size = sizeof scan, .start = rq_text("w"), .stop = rq_text("x"), .caching = 50};
    rq_scanner *s;
    rq_row *r = NULL;
    if (w->rc == RQ_OK) w->rc = rq_table_scan(w->table, &scan, &s, &w->why);
    if (w->rc != RQ_OK) return NULL;
    while ((w->rc = rq_scanner_next(s, &r, &w->why)) == RQ_OK && r != NULL) {
        w->rows++;
        rq_row_free(r);
    }
    rq_scanner_close(s);
    return NULL;
}

static void threads_share_a_table(void **state)
{
    (void)state;
    static worker workers[WORKERS];
    rq_bytes splits[] = {rq_text("w2"), rq_text("w5")};
    rq_table *t = make("threads", "1", splits, 2);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.table = t, .number = i, .why = {.size = sizeof(rq_failure)}};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    int all = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].rc != RQ_OK)
            fail_msg("%s: %s", rq_err_name(workers[i].rc), workers[i].why.message);
        assert_true(workers[i].rows >= ROUNDS);
        all = workers[i].rows > all ? workers[i].rows : all;
    }
    assert_int_equal(all, WORKERS * ROUNDS);
    int64_t sum;
    OK(rq_add_value(t, rq_text("sum"), rq_text("g"), rq_text("n"), 0, &sum, &why));
    assert_int_equal(sum, WORKERS * ROUNDS);
    finish(t, "threads");
}

/* --- rq_poll with timeout 0 between calls that wait ---------------------------------------------- */

enum { POLL_ROUNDS = 60, SHORT_BATCH = 200, LONG_BATCH = 1000, HANG_S = 20 };

typedef struct batcher {
    pthread_t thread;
    rq_table *table;
    size_t count;
    rq_err rc;
    _Atomic bool has_ended;
} batcher;

static void *put_batch(void *arg)
{
    batcher *b = arg;
    static const rq_edit edit = {.family = {"f", 1}, .qualifier = {"q", 1}, .value = {"v", 1}};
    rq_change *puts = calloc(b->count, sizeof *puts);
    rq_action *actions = calloc(b->count, sizeof *actions);
    char(*rows)[24] = calloc(b->count, sizeof *rows);
    for (size_t i = 0; i < b->count; i++) {
        snprintf(rows[i], sizeof rows[i], "%zu", i);
        puts[i] = (rq_change){.size = sizeof puts[i],
                              .kind = RQ_PUT,
                              .row = rq_text(rows[i]),
                              .edits = &edit,
                              .edit_count = 1};
        actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
    }
    b->rc = rq_table_batch(b->table, actions, b->count, NULL, NULL);
    b->has_ended = true;
    free(rows);
    free(actions);
    free(puts);
    return NULL;
}

typedef struct asker {
    rq_table *table;
    bool goes_on;
    unsigned outstanding;
} asker;

static void ask_again(void *context, const rq_completion *c);

static void ask(asker *a)
{
    rq_get_request get = {.size = sizeof get, .row = rq_text("0")};
    OK(rq_table_get_async(a->table, &get, ask_again, a, &why));
    a->outstanding++;
}

static void ask_again(void *context, const rq_completion *c)
{
    asker *a = context;
    rq_row_free(c->row);
    a->outstanding--;
    if (a->goes_on) ask(a);
}

/* If two calls wait, one of them drives the connections. When this call ends it may pass the drive
 * to the thread in rq_poll, whose timeout of 0 is already over. The other waiting call must not
 * hang then. */
static void a_poll_of_no_time_leaves_no_call_behind(void **state)
{
    (void)state;
    rq_table *t = make("polls", "1", NULL, 0);
    for (int round = 0; round < POLL_ROUNDS; round++) {
        asker a = {.table = t, .goes_on = true};
        batcher first = {.table = t, .count = SHORT_BATCH};
        batcher second = {.table = t, .count = LONG_BATCH};
        struct timespec until;
        assert_int_equal(pthread_create(&first.thread, NULL, put_batch, &first), 0);
        assert_int_equal(pthread_create(&second.thread, NULL, put_batch, &second), 0);
        ask(&a);
        while (!first.has_ended)
            OK(rq_poll(at.db, 0, NULL, &why));
        pthread_join(first.thread, NULL);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += HANG_S;
        int hangs = pthread_timedjoin_np(second.thread, NULL, &until);
        a.goes_on = false;
        while (a.outstanding > 0)
            OK(rq_poll(at.db, 1000, NULL, &why));
        /* rq_poll has driven the second batch to its end */
        if (hangs != 0) pthread_join(second.thread, NULL);
        assert_int_equal(hangs, 0);
        assert_int_equal(first.rc, RQ_OK);
        assert_int_equal(second.rc, RQ_OK);
    }
    finish(t, "polls");
}

/* --- scanners while their database is closed ---------------------------------------------------- */

enum { SCANNERS = 100 };

/* A separate connection with open scanners: to the cluster, or to a database in memory. */
typedef struct closing {
    rq_db *db;
    rq_table *table;
    rq_scanner *scanners[SCANNERS];
    _Atomic bool begins;
} closing;

static void open_closing(closing *c)
{
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "scanners", .families = &family, .family_count = 1};
    rq_scan_request scan = {.size = sizeof scan, .caching = 1};
    rq_row *row;
    bool is_cluster = strncmp(at.url, "hbase", 5) == 0;
    rq_connect_options o = {.size = sizeof o, .no_threads = at.no_threads};
    OK(rq_connect(is_cluster ? at.url : "memory:", &o, &c->db, &why));
    OK(rq_table_create(c->db, &spec, &why));
    OK(rq_table_open(c->db, "scanners", &c->table, &why));
    for (int i = 0; i < 9; i++)
        OK(rq_put_value(c->table, rq_bytes_of(&"012345678"[i], 1), rq_text("f"), rq_text("q"),
                        rq_text("v"), &why));
    for (int i = 0; i < SCANNERS; i++) {
        OK(rq_table_scan(c->table, &scan, &c->scanners[i], &why));
        /* in a cluster, further rows are fetched ahead from the second row on */
        for (int k = 0; k < 2; k++) {
            OK(rq_scanner_next(c->scanners[i], &row, &why));
            assert_non_null(row);
            rq_row_free(row);
        }
    }
}

static void end_closing(closing *c)
{
    rq_table_close(c->table);
    if (strncmp(at.url, "hbase", 5) != 0) return;
    OK(rq_table_disable(at.db, "scanners", &why));
    OK(rq_table_drop(at.db, "scanners", &why));
}

static void *close_scanners(void *arg)
{
    closing *c = arg;
    for (int i = 0; i < SCANNERS; i++) {
        rq_scanner_close(c->scanners[i]);
        c->begins = true;
    }
    return NULL;
}

static void close_in_completion(void *context, const rq_completion *c)
{
    rq_row_free(c->row);
    (void)close_scanners(context);
}

/* The completion runs while the database is being closed. */
static void a_completion_closes_scanners_of_a_closing_database(void **state)
{
    (void)state;
    closing c = {0};
    rq_get_request get = {.size = sizeof get, .row = rq_text("0")};
    open_closing(&c);
    OK(rq_table_get_async(c.table, &get, close_in_completion, &c, &why));
    OK(rq_disconnect(c.db, &why));
    assert_true(c.begins);
    end_closing(&c);
}

static void a_thread_closes_scanners_of_a_closing_database(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        closing c = {0};
        pthread_t thread;
        open_closing(&c);
        assert_int_equal(pthread_create(&thread, NULL, close_scanners, &c), 0);
        while (!c.begins)
            sched_yield();
        OK(rq_disconnect(c.db, &why));
        pthread_join(thread, NULL);
        end_closing(&c);
    }
}

/* --- connections that the server has closed ----------------------------------------------------- */

/* The call succeeds, although all connections have ended since the last one. */
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        (void)end_connections();                                                                   \
        OK(call);                                                                                  \
    } while (0)

static void data_calls_survive_closed_connections(void **state)
{
    enum { ROWS = 12, IN_FIRST_FETCH = 3 };
    (void)state;
    rq_bytes split = rq_text("06"), f = rq_text("f"), q = rq_text("q");
    rq_table *t = make("closed_data", "1", &split, 1);
    bool is_remote = strncmp(at.url, "hbase", 5) == 0;
    rq_edit edits[ROWS];
    rq_change puts[ROWS];
    rq_action actions[ROWS];
    char rows[ROWS][4], value[8];
    int64_t sum = 0;
    size_t len;
    rq_row *row;
    rq_results *results;
    for (int i = 0; i < ROWS; i++) {
        snprintf(rows[i], sizeof rows[i], "%02d", i);
        edits[i] = (rq_edit){.family = f, .qualifier = q, .value = rq_text(rows[i])};
        puts[i] = (rq_change){.size = sizeof puts[i],
                              .kind = RQ_PUT,
                              .row = rq_text(rows[i]),
                              .edits = &edits[i],
                              .edit_count = 1};
        actions[i] = (rq_action){.changes = &puts[i], .change_count = 1};
    }
    OK(rq_put_value(t, rq_text("a"), f, q, rq_text("1"), &why));
    assert_int_equal(end_connections() > 0, is_remote);
    AGAIN(rq_put_value(t, rq_text("a"), f, q, rq_text("2"), &why));
    AGAIN(rq_get_value(t, rq_text("a"), f, q, value, sizeof value, &len, &why));
    assert_true(is(rq_bytes_of(value, len), "2"));
    AGAIN(rq_delete_row(t, rq_text("a"), &why));
    AGAIN(rq_add_value(t, rq_text("00"), rq_text("g"), q, 3, &sum, &why));
    AGAIN(rq_add_value(t, rq_text("00"), rq_text("g"), q, 4, &sum, &why));
    assert_int_equal(sum, 7);
    AGAIN(rq_table_batch(t, actions, ROWS, &results, &why));
    assert_int_equal(results->count, ROWS);
    rq_results_free(results);
    rq_scan_request scan = {.size = sizeof scan, .caching = IN_FIRST_FETCH};
    rq_scanner *s;
    AGAIN(rq_table_scan(t, &scan, &s, &why));
    for (int i = 0; i < ROWS; i++) {
        AGAIN(rq_scanner_next(s, &row, &why));
        assert_non_null(row);
        assert_true(is(row->cells[0].row, rows[i]));
        rq_row_free(row);
    }
    AGAIN(rq_scanner_next(s, &row, &why));
    assert_null(row);
    (void)end_connections();
    rq_scanner_close(s);
    finish(t, "closed_data");
}

static void definitions_survive_closed_connections(void **state)
{
    (void)state;
    rq_family family = {"f", NULL, 0}, more = {"g", NULL, 0};
    rq_property owner = {"owner", "ann"};
    rq_bytes split = rq_text("m");
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "lost:table",
                          .families = &family,
                          .family_count = 1,
                          .split_keys = &split,
                          .split_key_count = 1};
    rq_alteration alteration = {
        .size = sizeof alteration, .name = "lost:table", .families = &more, .family_count = 1};
    rq_names *names;
    rq_namespace_info *space;
    rq_table_info *info;
    rq_region_list *regions;
    rq_cluster_info *cluster;
    bool exists;
    AGAIN(rq_namespace_create(at.db, "lost", &owner, 1, &why));
    AGAIN(rq_namespace_describe(at.db, "lost", &space, &why));
    rq_namespace_info_free(space);
    AGAIN(rq_namespace_alter(at.db, "lost", &owner, 1, &why));
    AGAIN(rq_namespace_list(at.db, &names, &why));
    rq_names_free(names);
    AGAIN(rq_table_create(at.db, &spec, &why));
    AGAIN(rq_table_list(at.db, "lost", &names, &why));
    assert_int_equal(names->count, 1);
    rq_names_free(names);
    AGAIN(rq_table_exists(at.db, "lost:table", &exists, &why));
    AGAIN(rq_table_describe(at.db, "lost:table", &info, &why));
    rq_table_info_free(info);
    AGAIN(rq_table_alter(at.db, &alteration, &why));
    AGAIN(rq_table_regions(at.db, "lost:table", &regions, &why));
    assert_int_equal(regions->count, 2);
    rq_region_list_free(regions);
    AGAIN(rq_table_flush(at.db, "lost:table", &why));
    AGAIN(rq_table_compact(at.db, "lost:table", NULL, true, &why));
    AGAIN(rq_cluster_describe(at.db, &cluster, &why));
    rq_cluster_info_free(cluster);
    AGAIN(rq_table_disable(at.db, "lost:table", &why));
    AGAIN(rq_table_enable(at.db, "lost:table", &why));
    AGAIN(rq_table_disable(at.db, "lost:table", &why));
    AGAIN(rq_table_truncate(at.db, "lost:table", true, &why));
    AGAIN(rq_table_disable(at.db, "lost:table", &why));
    AGAIN(rq_table_drop(at.db, "lost:table", &why));
    AGAIN(rq_namespace_drop(at.db, "lost", &why));
}

static void snapshots_survive_closed_connections(void **state)
{
    (void)state;
    rq_snapshot_list *list;
    rq_table *t = make("closed_snapped", "1", NULL, 0);
    put(t, "a", "f", "q", "v", 1);
    AGAIN(rq_snapshot_create(at.db, "lost", "closed_snapped", false, &why));
    AGAIN(rq_snapshots(at.db, &list, &why));
    assert_int_equal(list->count, 1);
    rq_snapshot_list_free(list);
    AGAIN(rq_snapshot_clone(at.db, "lost", "closed_cloned", &why));
    AGAIN(rq_table_disable(at.db, "closed_cloned", &why));
    AGAIN(rq_table_drop(at.db, "closed_cloned", &why));
    AGAIN(rq_snapshot_drop(at.db, "lost", &why));
    finish(t, "closed_snapped");
}

/* Must be the last test, because it closes the database. */
static void a_closed_database_says_so(void **state)
{
    (void)state;
    rq_table *t = make("closed", "1", NULL, 0);
    rq_scan_request scan = {.size = sizeof scan};
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    rq_scanner *used, *unused;
    rq_row *row;
    scan.caching = 1;
    put(t, "r", "f", "q", "v", 1);
    put(t, "s", "f", "q", "v", 1);
    OK(rq_table_scan(t, &scan, &used, &why));
    OK(rq_table_scan(t, &scan, &unused, &why));
    OK(rq_scanner_next(used, &row, &why));
    OK(rq_disconnect(at.db, &why));
    at.db = NULL;
    assert_true(is(row->cells[0].value, "v")); /* results outlive the database */
    rq_row_free(row);
    FAILS(RQ_E_CLOSED, rq_table_get(t, &get, &row, &why));
    FAILS(RQ_E_CLOSED, rq_scanner_next(used, &row, &why));
    FAILS(RQ_E_CLOSED, rq_table_scan(t, &scan, &used, &why));
    rq_table_close(t);
    rq_scanner_close(used);
    rq_scanner_close(unused);
    if (strcmp(at.url, "memory:") == 0) return;
    OK(rq_connect(at.url, NULL, &at.db, &why));
    OK(rq_table_open(at.db, "closed", &t, &why));
    finish(t, "closed");
}

int run_life(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_table),
        cmocka_unit_test(a_poll_of_no_time_leaves_no_call_behind),
        cmocka_unit_test(a_completion_closes_scanners_of_a_closing_database),
        cmocka_unit_test(a_thread_closes_scanners_of_a_closing_database),
        cmocka_unit_test(data_calls_survive_closed_connections),
        cmocka_unit_test(definitions_survive_closed_connections),
        cmocka_unit_test(snapshots_survive_closed_connections),
        cmocka_unit_test(a_closed_database_says_so),
    };
    return cmocka_run_group_tests_name("life", tests, open_db, close_db);
}
