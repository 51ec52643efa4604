/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous calls, which behave alike on every back end: test_async URL … runs all tests on each
 * URL; without a URL on "memory:" and on a temporary folder, with threads of the library and
 * without. A cluster must be empty. */
#include "api_test.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CALLS = 2000, POLL_MS = 10000 };

static const char *url;
static bool no_threads; /* field of rq_connect_options */
static rq_db *db;
static rq_table *table;
static rq_failure why = {.size = sizeof(rq_failure)};

/* What the completions of a test have seen. */
typedef struct seen {
    size_t count, failed;
    rq_err code;
    size_t cells;
    bool done;
    int64_t number;
    size_t rows;
    char text[256]; /* row keys or values, concatenated */
    size_t action;
    char message[1024];
    pthread_t thread;
} seen;

static void add_text(seen *s, rq_bytes b)
{
    size_t len = strlen(s->text);
    snprintf(s->text + len, sizeof s->text - len, "%.*s ", (int)b.len, (const char *)b.data);
}

static void take(void *context, const rq_completion *c)
{
    seen *s = context;
    s->count++;
    s->failed += c->code != RQ_OK;
    s->code = c->code;
    s->done = c->done;
    s->thread = pthread_self();
    assert_int_equal(c->size, sizeof *c);
    assert_int_equal(c->why != NULL, c->code != RQ_OK);
    if (c->why != NULL) {
        assert_int_equal(c->why->code, c->code);
        s->action = c->why->action;
        snprintf(s->message, sizeof s->message, "%s", c->why->message);
    }
    if (c->row != NULL) s->cells += c->row->count;
    if (c->row != NULL && c->row->count > 0) {
        rq_bytes value = c->row->cells[0].value;
        if (value.len == 8)
            s->number = ((const uint8_t *)value.data)[7];
        else
            add_text(s, value);
    }
    for (size_t i = 0; c->rows != NULL && i < c->rows->count; i++)
        add_text(s, c->rows->items[i]->cells[0].row);
    if (c->rows != NULL) s->rows += c->rows->count;
    for (size_t i = 0; c->results != NULL && i < c->results->count; i++)
        if (c->results->items[i].row != NULL) s->cells += c->results->items[i].row->count;
    rq_row_free(c->row);
    rq_rows_free(c->rows);
    rq_results_free(c->results);
}

static void until(const seen *s, size_t count)
{
    size_t ran = 1;
    while (s->count < count && ran > 0)
        OK(rq_poll(db, POLL_MS, &ran, &why));
    assert_int_equal(s->count, count);
}

static rq_change put_of(const char *row, rq_edit *edit, const char *value)
{
    *edit = (rq_edit){.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text(value)};
    return (rq_change){.size = sizeof(rq_change),
                       .kind = RQ_PUT,
                       .row = rq_text(row),
                       .edits = edit,
                       .edit_count = 1};
}

static void put(seen *s, const char *row, const char *value)
{
    rq_edit edit;
    rq_change change = put_of(row, &edit, value);
    OK(rq_table_change_async(table, &change, take, s, &why));
}

static void open_db(bool with_thread)
{
    rq_connect_options o = {.size = sizeof o,
                            .completion_thread = with_thread,
                            .no_threads = no_threads && !with_thread};
    OK(rq_connect(url, &o, &db, &why));
}

/* Each test has its own database and table; state: whether the library's thread runs
 * completions. */
static int begin(void **state)
{
    rq_family families[] = {{"f", NULL, 0}};
    rq_bytes splits[] = {rq_text("m")};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = "async",
                          .families = families,
                          .family_count = 1,
                          .split_keys = splits,
                          .split_key_count = 1};
    open_db(*state != NULL);
    OK(rq_table_create(db, &spec, &why));
    OK(rq_table_open(db, "async", &table, &why));
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (table != NULL) rq_table_close(table);
    table = NULL;
    if (db == NULL) { /* NULL: the test has closed the database */
        if (strcmp(url, "memory:") == 0) return 0;
        open_db(false);
    }
    OK(rq_table_disable(db, "async", &why));
    OK(rq_table_drop(db, "async", &why));
    OK(rq_disconnect(db, &why));
    db = NULL;
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

static void gets_and_puts_complete_in_poll(void **state)
{
    seen s = {0}, g = {0};
    rq_get_request get = {.size = sizeof get};
    char row[16];
    (void)state;
    for (int i = 0; i < CALLS; i++) { /* the arguments are freed before the call runs */
        char value[16];
        snprintf(row, sizeof row, "%c%04d", i % 2 == 0 ? 'a' : 'x', i);
        snprintf(value, sizeof value, "v%d", i);
        put(&s, row, value);
        memset(row, 0xee, sizeof row);
        memset(value, 0xee, sizeof value);
    }
    assert_int_equal(s.count, 0);
    until(&s, CALLS);
    assert_int_equal(s.failed, 0);
    for (int i = 0; i < CALLS; i++) {
        snprintf(row, sizeof row, "%c%04d", i % 2 == 0 ? 'a' : 'x', i);
        get.row = rq_text(row);
        OK(rq_table_get_async(table, &get, take, &g, &why));
    }
    until(&g, CALLS);
    assert_int_equal(g.cells, CALLS);
    size_t ran = 1; /* nothing is outstanding: rq_poll does not wait */
    OK(rq_poll(db, -1, &ran, &why));
    assert_int_equal(ran, 0);
}

static void changes_return_their_results(void **state)
{
    seen s = {0};
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("n"), .amount = 5};
    rq_change add = {.size = sizeof add,
                     .kind = RQ_INCREMENT,
                     .row = rq_text("n"),
                     .edits = &edit,
                     .edit_count = 1};
    (void)state;
    OK(rq_table_change_async(table, &add, take, &s, &why));
    until(&s, 1);
    OK(rq_table_change_async(table, &add, take, &s, &why));
    until(&s, 2);
    assert_int_equal(s.number, 10);

    rq_edit cell;
    rq_change change = put_of("c", &cell, "new");
    rq_check check = {.size = sizeof check,
                      .family = rq_text("f"),
                      .qualifier = rq_text("q"),
                      .value = rq_text("old")};
    OK(rq_table_check_and_change_async(table, &check, &change, 1, take, &s, &why));
    until(&s, 3);
    assert_int_equal(s.code, RQ_OK);
    assert_false(s.done);
    check.compare = RQ_COMPARE_ABSENT;
    OK(rq_table_check_and_change_async(table, &check, &change, 1, take, &s, &why));
    until(&s, 4);
    assert_true(s.done);

    rq_edit edits[2];
    rq_change changes[] = {put_of("c", &edits[0], "x"), put_of("c", &edits[1], "y")};
    edits[1].qualifier = rq_text("r");
    OK(rq_table_change_row_async(table, changes, 2, take, &s, &why));
    until(&s, 5);
    rq_get_request get = {.size = sizeof get, .row = rq_text("c")};
    s.cells = 0;
    OK(rq_table_get_async(table, &get, take, &s, &why));
    until(&s, 6);
    assert_int_equal(s.cells, 2);
}

static void a_batch_completes_with_all_outcomes(void **state)
{
    seen s = {0};
    rq_edit edits[3];
    rq_change put_a = put_of("ba", &edits[0], "1"), put_x = put_of("xb", &edits[1], "2");
    rq_change bad = put_of("bc", &edits[2], "3");
    rq_change both[] = {put_of("bd", &edits[0], "1"), put_of("bd", &edits[1], "2")};
    rq_action actions[] = {{NULL, &put_a, 1}, {NULL, both, 2}, {NULL, &put_x, 1}, {NULL, both, 2}};
    (void)state;
    OK(rq_table_batch_async(table, actions, 4, take, &s, &why));
    until(&s, 1);
    assert_int_equal(s.code, RQ_OK);
    edits[2].family = rq_text("none");
    rq_get_request get = {.size = sizeof get, .row = rq_text("ba")};
    rq_action failing[] = {{&get, NULL, 0}, {NULL, &bad, 1}, {NULL, &put_x, 1}};
    OK(rq_table_batch_async(table, failing, 3, take, &s, &why));
    until(&s, 2);
    assert_int_equal(s.code, RQ_E_NO_SUCH_FAMILY);
    assert_int_equal(s.action, 1);
    assert_int_equal(s.cells, 1);
    OK(rq_table_batch_async(table, NULL, 0, take, &s, &why));
    until(&s, 3);
    assert_int_equal(s.code, RQ_OK);
}

static void a_scan_completes_batch_by_batch(void **state)
{
    seen s = {0};
    rq_scanner *scanner;
    rq_rows *rows;
    rq_scan_request scan = {.size = sizeof scan};
    (void)state;
    for (int i = 0; i < 5; i++)
        put(&s, (const char *[]){"a", "b", "c", "y", "z"}[i], "v");
    until(&s, 5);
    OK(rq_table_scan(table, &scan, &scanner, &why));
    size_t calls = 0;
    for (size_t before = SIZE_MAX; before != s.rows; calls++) {
        before = s.rows;
        OK(rq_scanner_next_async(scanner, 2, take, &s, &why));
        if (calls == 0) FAILS(RQ_E_STATE, rq_scanner_next_async(scanner, 2, take, &s, &why));
        until(&s, 6 + calls);
        assert_true(s.rows - before <= 2 || before == SIZE_MAX);
    }
    assert_string_equal(s.text, "a b c y z ");
    assert_true(calls >= 4);
    OK(rq_scanner_next_async(scanner, 2, take, &s, &why)); /* the end is reported again */
    until(&s, 6 + calls);
    assert_int_equal(s.rows, 5);
    rq_scanner_close(scanner);

    OK(rq_table_scan(table, &scan, &scanner, &why));
    size_t count = 0;
    do {
        OK(rq_scanner_next_rows(scanner, 0, &rows, &why));
        size_t n = rows->count;
        count += n;
        rq_rows_free(rows);
        if (n == 0) break;
    } while (true);
    assert_int_equal(count, 5);
    rq_scanner_close(scanner);

    /* A failed scan fails again. */
    rq_column absent = {rq_text("absent"), {NULL, 0}};
    scan.columns = &absent;
    scan.column_count = 1;
    OK(rq_table_scan(table, &scan, &scanner, &why));
    size_t before = s.count;
    for (size_t i = 1; i <= 2; i++) {
        OK(rq_scanner_next_async(scanner, 0, take, &s, &why));
        until(&s, before + i);
        assert_int_equal(s.failed, i);
    }
    FAILS(RQ_E_NO_SUCH_FAMILY, rq_scanner_next_rows(scanner, 0, &rows, &why));
    rq_scanner_close(scanner);
}

/* A program that closes a scanner does not wait for the response that the scanner has requested. */
static void a_scanner_is_closed_during_its_call(void **state)
{
    enum { SCANS = 50 };
    seen s = {0};
    rq_scan_request scan = {.size = sizeof scan};
    (void)state;
    put(&s, "a", "v");
    until(&s, 1);
    for (int i = 0; i < SCANS; i++) {
        rq_scanner *scanner;
        OK(rq_table_scan(table, &scan, &scanner, &why));
        OK(rq_scanner_next_async(scanner, 0, take, &s, &why));
        rq_scanner_close(scanner);
    }
    until(&s, 1 + SCANS);
    assert_int_equal(s.failed, 0);
    assert_int_equal(s.rows, SCANS);
}

static void failures_come_with_the_completion(void **state)
{
    seen s = {0};
    rq_table *absent;
    rq_get_request get = {.size = sizeof get, .row = rq_text("a")};
    (void)state;
    OK(rq_table_open(db, "absent", &absent, &why));
    OK(rq_table_get_async(absent, &get, take, &s, &why));
    until(&s, 1);
    assert_int_equal(s.code, RQ_E_TABLE_NOT_FOUND);
    assert_non_null(strstr(s.message, "absent"));
    rq_table_close(absent);
    get.filter_text = "NoFilter(";
    FAILS(RQ_E_ILLEGAL_ARGUMENT, rq_table_get_async(table, &get, take, &s, &why));
    get.size = 1;
    FAILS(RQ_E_INVALID, rq_table_get_async(table, &get, take, &s, &why));
    get.size = sizeof get;
    get.filter_text = NULL;
    FAILS(RQ_E_INVALID, rq_table_get_async(table, &get, NULL, &s, &why));
    assert_int_equal(s.count, 1);
}

/* --- which thread runs completions ------------------------------------------------------------ */

static void inside(void *context, const rq_completion *c)
{
    seen *s = context;
    int fd;
    FAILS(RQ_E_STATE, rq_poll(db, 0, NULL, &why));
    FAILS(RQ_E_STATE, rq_disconnect(db, &why));
    OK(rq_put_value(table, rq_text("in"), rq_text("f"), rq_text("q"), rq_text("v"), &why));
    OK(rq_descriptor(db, &fd, &why));
    put(s, "in", "w"); /* this put completes in a later rq_poll */
    take(context, c);
}

static void a_completion_may_make_calls(void **state)
{
    seen s = {0};
    rq_get_request get = {.size = sizeof get, .row = rq_text("a")};
    (void)state;
    OK(rq_table_get_async(table, &get, inside, &s, &why));
    until(&s, 2);
    assert_int_equal(s.failed, 0);
}

static void *poll_with_no_calls(void *arg)
{
    rq_failure own = {.size = sizeof own};
    size_t ran;
    return rq_poll(db, 0, &ran, &own) == RQ_E_STATE ? arg : NULL;
}

static void from_another_thread(void *context, const rq_completion *c)
{
    pthread_t thread;
    void *refused;
    assert_int_equal(pthread_create(&thread, NULL, poll_with_no_calls, context), 0);
    pthread_join(thread, &refused);
    assert_ptr_equal(refused, context);
    take(context, c);
}

static void one_thread_polls_at_a_time(void **state)
{
    seen s = {0};
    rq_get_request get = {.size = sizeof get, .row = rq_text("a")};
    (void)state;
    OK(rq_table_get_async(table, &get, from_another_thread, &s, &why));
    until(&s, 1);
}

static void the_descriptor_is_readable_when_a_poll_is_due(void **state)
{
    seen s = {0};
    int fd, same;
    size_t ran, rounds = 0;
    (void)state;
    OK(rq_descriptor(db, &fd, &why));
    OK(rq_descriptor(db, &same, &why));
    assert_int_equal(fd, same);
    OK(rq_poll(db, 0, NULL, &why));
    int epoll = epoll_create1(EPOLL_CLOEXEC); /* as an event loop uses the descriptor */
    struct epoll_event ev = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev), 0);
    for (int i = 0; i < 100; i++)
        put(&s, "d", "v");
    for (; s.count < 100 && rounds < 10000; rounds++) {
        assert_int_equal(epoll_wait(epoll, &ev, 1, POLL_MS), 1);
        OK(rq_poll(db, 0, &ran, &why));
    }
    assert_int_equal(s.count, 100);
    assert_int_equal(s.failed, 0);
    /* The database has events of its own at any time (timers, ends of writes): the descriptor must
     * be quiet once, not permanently. */
    for (rounds = 0; rounds < 10000 && epoll_wait(epoll, &ev, 1, 0) == 1; rounds++)
        OK(rq_poll(db, 0, &ran, &why));
    assert_in_range(rounds, 0, 9999);
    close(epoll);
}

/* An event loop calls rq_poll as long as the descriptor is readable, and does nothing else
 * meanwhile. */
static void a_closed_connection_does_not_keep_the_descriptor_readable(void **state)
{
    enum { ROUNDS = 1000 };
    seen s = {0};
    int fd, rounds = 0;
    (void)state;
    put(&s, "r", "v");
    until(&s, 1);
    OK(rq_descriptor(db, &fd, &why));
    bool is_remote = strncmp(url, "hbase", 5) == 0;
    assert_int_equal(is_remote, end_connections() > 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 0) == 1 && rounds < ROUNDS) {
        OK(rq_poll(db, 0, NULL, &why));
        rounds++;
    }
    assert_in_range(rounds, is_remote ? 1 : 0, ROUNDS - 1);
    put(&s, "r", "w");
    until(&s, 2);
    assert_int_equal(s.failed, 0);
}

/* A program may begin any number of calls: each call uses little more memory than its arguments and
 * its row. */
static void outstanding_calls_are_small(void **state)
{
    enum { BYTES = 4096 };
    seen s = {0};
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    (void)state;
    put(&s, "r", "v");
    until(&s, 1);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < CALLS; i++)
        OK(rq_table_get_async(table, &get, take, &s, &why));
    size_t grown = mallinfo2().uordblks - before; /* mallinfo2 returns 0 under a sanitizer */
    if (grown > (size_t)CALLS * BYTES) fail_msg("%zu bytes a call", grown / CALLS);
    until(&s, 1 + CALLS);
}

static void *call_and_wait(void *arg)
{
    rq_failure own = {.size = sizeof own};
    for (int i = 0; i < 200; i++) {
        char row[32];
        size_t len;
        snprintf(row, sizeof row, "t%d", i % 7);
        if (rq_put_value(table, rq_text(row), rq_text("f"), rq_text("q"), rq_text("v"), &own) !=
                RQ_OK ||
            rq_get_value(table, rq_text(row), rq_text("f"), rq_text("q"), row, sizeof row, &len,
                         &own) != RQ_OK)
            return NULL;
    }
    return arg;
}

/* Synchronous calls of other threads and the polling thread take turns in running the client's
 * loop. */
static void synchronous_calls_go_on(void **state)
{
    seen s = {0};
    pthread_t threads[3];
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_and_wait, &s), 0);
    for (size_t i = 0; i < 300; i++) {
        put(&s, "s", "v");
        if (i % 3 == 0) until(&s, i + 1);
    }
    until(&s, 300);
    for (size_t i = 0; i < 3; i++) {
        void *ok;
        pthread_join(threads[i], &ok);
        assert_ptr_equal(ok, &s);
    }
    assert_int_equal(s.failed, 0);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void disconnecting_ends_calls(void **state)
{
    seen s = {0};
    rq_edit edit;
    rq_change change = put_of("e", &edit, "v");
    (void)state;
    for (int i = 0; i < 500; i++)
        OK(rq_table_change_async(table, &change, take, &s, &why));
    OK(rq_disconnect(db, &why));
    db = NULL;
    /* each call completes once, with its result or with RQ_E_CLOSED */
    assert_int_equal(s.count, 500);
    assert_true(s.failed == 0 || strstr(s.message, "closed") != NULL);
    FAILS(RQ_E_CLOSED, rq_table_change_async(table, &change, take, &s, &why));
}

typedef struct counter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t count, failed, elsewhere;
    pthread_t thread; /* of the first completion */
} counter;

static void count(void *context, const rq_completion *c)
{
    counter *n = context;
    sigset_t blocked;
    rq_row_free(c->row);
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    pthread_mutex_lock(&n->lock);
    if (n->count++ == 0) n->thread = pthread_self();
    n->elsewhere += !pthread_equal(n->thread, pthread_self()) || !sigismember(&blocked, SIGTERM);
    n->failed += c->code != RQ_OK;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void a_thread_of_the_library_runs_completions(void **state)
{
    counter n = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    rq_edit edit;
    rq_change change = put_of("l", &edit, "v");
    int fd;
    (void)state;
    /* the library's thread sleeps between the rounds */
    for (size_t round = 1; round <= 3; round++) {
        for (int i = 0; i < 100; i++)
            OK(rq_table_change_async(table, &change, count, &n, &why));
        pthread_mutex_lock(&n.lock);
        while (n.count < round * 100)
            pthread_cond_wait(&n.changed, &n.lock);
        pthread_mutex_unlock(&n.lock);
    }
    assert_int_equal(n.failed, 0);
    assert_false(pthread_equal(n.thread, pthread_self()));
    FAILS(RQ_E_STATE, rq_poll(db, 0, NULL, &why));
    FAILS(RQ_E_STATE, rq_descriptor(db, &fd, &why));
    for (int i = 0; i < 100; i++)
        OK(rq_table_change_async(table, &change, count, &n, &why));
    OK(rq_disconnect(db, &why));
    db = NULL;
    assert_int_equal(n.count, 400);
    assert_int_equal(n.elsewhere, 0);
}

static int run(const char *on)
{
    static bool with_thread = true;
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(gets_and_puts_complete_in_poll),
        TEST(changes_return_their_results),
        TEST(a_batch_completes_with_all_outcomes),
        TEST(a_scan_completes_batch_by_batch),
        TEST(a_scanner_is_closed_during_its_call),
        TEST(failures_come_with_the_completion),
        TEST(a_completion_may_make_calls),
        TEST(one_thread_polls_at_a_time),
        TEST(the_descriptor_is_readable_when_a_poll_is_due),
        TEST(a_closed_connection_does_not_keep_the_descriptor_readable),
        TEST(synchronous_calls_go_on),
        TEST(disconnecting_ends_calls),
        TEST(outstanding_calls_are_small),
        cmocka_unit_test_prestate_setup_teardown(a_thread_of_the_library_runs_completions, begin,
                                                 end, &with_thread),
    };
    url = on;
    return cmocka_run_group_tests_name(on, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = 0;
    char folder[64] = "file:/tmp/rorqual_async_XXXXXX", command[96];
    for (int i = 1; i < argc; i++)
        failed += run(argv[i]);
    if (argc > 1) return failed != 0;
    if (mkdtemp(folder + 5) == NULL) return 1;
    for (int i = 0; i < 2; i++) {
        no_threads = i > 0;
        failed += run("memory:") + run(folder);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder + 5);
    return failed != 0 || system(command) != 0;
}
