/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of an embedded database alone: its lock, forks, durability, kill -9.
 *
 *   test_embed [ROUNDS [SEED]]    rounds of kill -9; default 20 */
#include "api_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static rq_failure why = {.size = sizeof(rq_failure)};
static unsigned rounds = 20;
static unsigned seed;
static char folder[64];
static char url[80];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rq_embed_XXXXXX");
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(url, sizeof url, "file:%s/db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static rq_db *open_db(void)
{
    rq_db *db = NULL;
    OK(rq_connect(url, NULL, &db, &why));
    return db;
}

static rq_table *open_table(rq_db *db)
{
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec, .name = "t", .families = &family, .family_count = 1};
    bool exists;
    rq_table *t = NULL;
    OK(rq_table_exists(db, "t", &exists, &why));
    /* The process was killed while it created the table: the procedure continues after the start,
     * concurrently with this call. */
    rq_err rc = exists ? RQ_OK : rq_table_create(db, &spec, &why);
    if (rc != RQ_E_TABLE_EXISTS) OK(rc);
    OK(rq_table_open(db, "t", &t, &why));
    return t;
}

static rq_err put(rq_table *t, const char *row, const char *value)
{
    return rq_put_value(t, rq_text(row), rq_text("f"), rq_text("q"), rq_text(value), &why);
}

static void holds(rq_table *t, const char *row, const char *value)
{
    char buf[64];
    size_t len;
    OK(rq_get_value(t, rq_text(row), rq_text("f"), rq_text("q"), buf, sizeof buf, &len, &why));
    if (value == NULL) {
        assert_true(len == SIZE_MAX);
        return;
    }
    assert_true(len != SIZE_MAX);
    assert_true(is(rq_bytes_of(buf, len), value));
}

static void rows_are_there_after_reopening(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char row[8];
        rq_db *db = open_db();
        rq_table *t = open_table(db);
        for (int j = 0; j < i; j++) {
            snprintf(row, sizeof row, "r%d", j);
            holds(t, row, row);
        }
        snprintf(row, sizeof row, "r%d", i);
        OK(put(t, row, row));
        rq_table_close(t);
        OK(rq_disconnect(db, &why));
    }
}

/* Names, sizes and times of all files but the log's, as text. */
static void list_files(char *text, size_t room)
{
    char command[256];
    snprintf(command, sizeof command,
             "cd %s/db && find data MasterData .rorqual/regions -printf '%%p %%s %%T@\\n' | sort",
             folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t len = fread(text, 1, room - 1, f);
    text[len] = 0;
    assert_true(len > 0 && len < room - 1);
    assert_int_equal(pclose(f), 0);
}

/* Neither locations nor results of procedures are written again, so opening flushes nothing, and
 * after a few openings no compaction is left to do. */
static void a_database_that_is_only_read_stays_as_it_is(void **state)
{
    (void)state;
    char before[16384] = "", after[16384];
    for (int i = 0; i < 8; i++) {
        rq_db *db = open_db();
        rq_table *t = open_table(db);
        if (i == 0) OK(put(t, "r", "v"));
        holds(t, "r", "v");
        rq_table_close(t);
        OK(rq_disconnect(db, &why));
        list_files(i < 7 ? before : after, sizeof before);
    }
    assert_string_equal(before, after);
}

static void a_folder_has_one_user(void **state)
{
    (void)state;
    char pid[64];
    rq_db *db = open_db(), *second = NULL;
    snprintf(pid, sizeof pid, "process %ld, which is this one", (long)getpid());
    FAILS(RQ_E_LOCKED, rq_connect(url, NULL, &second, &why));
    assert_non_null(strstr(why.message, pid));
    assert_non_null(strstr(why.message, folder));
    assert_null(second);
    /* Another process must be refused, too. */
    pid_t child = fork();
    if (child == 0) {
        rq_db *theirs = NULL;
        snprintf(pid, sizeof pid, "process %ld", (long)getppid());
        bool told =
            rq_connect(url, NULL, &theirs, &why) == RQ_E_LOCKED && strstr(why.message, pid) != NULL;
        _exit(told ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(rq_disconnect(db, &why));
    db = open_db();
    OK(rq_disconnect(db, &why));
}

/* A scan that finds no row for half of the call's time-out returns its position and continues. The
 * scan searches 30 MB with a short time-out; the table is created on a connection with the default
 * time-out. */
static void a_long_scan_says_how_far_it_is(void **state)
{
    (void)state;
    enum { ROWS = 30000, BATCH = 500, LEN = 1000 };
    static char names[BATCH][8];
    static rq_change puts[BATCH];
    static rq_action actions[BATCH];
    rq_connect_options o = {.size = sizeof o, .timeout_ms = 20};
    rq_db *db = NULL;
    char own_url[96];
    rq_row *row;
    rq_scanner *s = NULL;
    char value[LEN], last[8] = "";
    size_t cursors = 0;
    memset(value, 'x', sizeof value);
    rq_edit edit = {.family = rq_text("f"),
                    .qualifier = rq_text("q"),
                    .value = rq_bytes_of(value, sizeof value)};
    snprintf(own_url, sizeof own_url, "file:%s/long", folder);
    OK(rq_connect(own_url, NULL, &db, &why));
    rq_table *t = open_table(db);
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i % BATCH], sizeof names[0], "%05d", i);
        puts[i % BATCH] = (rq_change){.size = sizeof puts[0],
                                      .row = rq_text(names[i % BATCH]),
                                      .edits = &edit,
                                      .edit_count = 1};
        actions[i % BATCH] = (rq_action){.changes = &puts[i % BATCH], .change_count = 1};
        if (i % BATCH == BATCH - 1) OK(rq_table_batch(t, actions, BATCH, NULL, &why));
    }
    OK(rq_put_value(t, rq_text("99999"), rq_text("f"), rq_text("q"), rq_text("xyz"), &why));
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
    OK(rq_connect(own_url, &o, &db, &why));
    OK(rq_table_open(db, "t", &t, &why));
    rq_scan_request scan = {.size = sizeof scan,
                            .filter_text = "ValueFilter(=, 'regexstring:x[yz]{2}$')",
                            .wants_cursors = true};
    OK(rq_table_scan(t, &scan, &s, &why));
    for (;;) {
        OK(rq_scanner_next(s, &row, &why));
        assert_non_null(row);
        if (row->cursor.len == 0) break;
        assert_int_equal(row->cursor.len, 5);
        assert_true(memcmp(row->cursor.data, last, 5) > 0); /* the scan advances */
        memcpy(last, row->cursor.data, 5);
        cursors++;
        rq_row_free(row);
    }
    assert_true(is(row->cells[0].row, "99999"));
    rq_row_free(row);
    OK(rq_scanner_next(s, &row, &why));
    assert_null(row);
    rq_scanner_close(s);
    assert_true(cursors > 0);
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
}

static void urls_and_settings_are_checked(void **state)
{
    (void)state;
    rq_db *db = NULL;
    char text[128];
    rq_connect_options o = {.size = sizeof o, .must_exist = true};
    rq_property setting = {"rorqual.wal.sync", "sometimes"};
    snprintf(text, sizeof text, "file:%s/absent", folder);
    FAILS(RQ_E_NOT_FOUND, rq_connect(text, &o, &db, &why));
    FAILS(RQ_E_INVALID, rq_connect("http://x", NULL, &db, &why));
    FAILS(RQ_E_INVALID, rq_connect("file:", NULL, &db, &why));
    FAILS(RQ_E_INVALID, rq_connect("file://host/x", NULL, &db, &why));
    FAILS(RQ_E_INVALID, rq_connect(NULL, NULL, &db, &why));
    o = (rq_connect_options){.size = sizeof o, .settings = &setting, .setting_count = 1};
    FAILS(RQ_E_CONFIG, rq_connect("memory:", &o, &db, &why));
    setting.value = "handover";
    OK(rq_connect("memory:", &o, &db, &why));
    OK(rq_disconnect(db, &why));
    OK(rq_disconnect(NULL, &why));
    /* A folder that contains something other than a database is left unchanged. */
    snprintf(text, sizeof text, "%s/other", folder);
    assert_int_equal(mkdir(text, 0700), 0);
    snprintf(text, sizeof text, "%s/other/letter.txt", folder);
    int fd = open(text, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    snprintf(text, sizeof text, "file://%s/other", folder);
    FAILS(RQ_E_UNSUPPORTED, rq_connect(text, NULL, &db, &why));
    /* A path that is not a folder, and places where the user may not create a folder. */
    snprintf(text, sizeof text, "file:%s/other/letter.txt", folder);
    FAILS(RQ_E_IO, rq_connect(text, NULL, &db, &why));
    FAILS(RQ_E_PERMISSION, rq_connect("file:/sys/rorqual", NULL, &db, &why));
}

/* A call looks up its table once. A table that is opened after another was closed may have the same
 * address, but has other rows. */
static void reopened_tables_are_distinguished(void **state)
{
    (void)state;
    rq_db *db = open_db();
    rq_table *t = open_table(db);
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "second", .families = &family, .family_count = 1};
    OK(put(t, "which", "first"));
    rq_table_close(t);
    OK(rq_table_create(db, &spec, &why));
    for (int round = 0; round < 4; round++) {
        OK(rq_table_open(db, "second", &t, &why));
        if (round % 2 == 0) OK(put(t, "which", "second"));
        holds(t, "which", "second");
        rq_table_close(t);
        t = open_table(db);
        holds(t, "which", "first");
        rq_table_close(t);
        OK(rq_table_disable(db, "second", &why));
        OK(rq_table_open(db, "second", &t, &why));
        FAILS(RQ_E_TABLE_NOT_ENABLED, put(t, "which", "third"));
        OK(rq_table_enable(db, "second", &why));
        holds(t, "which", "second");
        rq_table_close(t);
    }
    OK(rq_table_disable(db, "second", &why));
    OK(rq_table_open(db, "second", &t, &why));
    OK(rq_table_drop(db, "second", &why));
    FAILS(RQ_E_TABLE_NOT_FOUND, put(t, "which", "third"));
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
}

/* A timer of the database, every 1.25 ms, fires while the database is being closed. */
static void closing_meets_a_timer(void **state)
{
    (void)state;
    rq_property lease = {"hbase.client.scanner.timeout.period", "1"};
    rq_connect_options o = {.size = sizeof o, .settings = &lease, .setting_count = 1};
    srand(seed);
    for (int i = 0; i < 100; i++) {
        rq_db *db = NULL;
        OK(rq_connect("memory:", &o, &db, &why));
        /* A random time, so that the close meets the timer at different points. */
        nanosleep(&(struct timespec){0, 100000 + rand() % 3000000}, NULL);
        OK(rq_disconnect(db, &why));
    }
}

/* --- fork ------------------------------------------------------------------------------------- */

static void never(void *context, const rq_completion *c)
{
    (void)context, (void)c;
    abort();
}

/* In a child process, with the parent's database: each call must return RQ_E_FORKED. */
static bool child_is_refused(rq_db *db, rq_table *t, rq_scanner *s)
{
    rq_get_request get = {.size = sizeof get, .row = rq_text("r")};
    rq_scan_request scan = {.size = sizeof scan};
    rq_row *row;
    rq_table *other;
    rq_scanner *scanner;
    rq_names *names;
    rq_region_list *regions;
    bool exists;
    int fd;
    bool refused = rq_table_get(t, &get, &row, &why) == RQ_E_FORKED && why.message[0] != '\0' &&
                   put(t, "child", "v") == RQ_E_FORKED &&
                   rq_table_scan(t, &scan, &scanner, &why) == RQ_E_FORKED &&
                   rq_scanner_next(s, &row, &why) == RQ_E_FORKED &&
                   rq_table_open(db, "t", &other, &why) == RQ_E_FORKED &&
                   rq_table_exists(db, "t", &exists, &why) == RQ_E_FORKED &&
                   rq_table_list(db, NULL, &names, &why) == RQ_E_FORKED &&
                   rq_table_get_async(t, &get, never, NULL, &why) == RQ_E_FORKED &&
                   rq_scanner_next_async(s, 0, never, NULL, &why) == RQ_E_FORKED &&
                   rq_poll(db, 0, NULL, &why) == RQ_E_FORKED &&
                   rq_descriptor(db, &fd, &why) == RQ_E_FORKED &&
                   rq_table_regions(db, "t", &regions, &why) == RQ_E_FORKED &&
                   rq_table_flush(db, "t", &why) == RQ_E_FORKED;
    rq_scanner_close(s);
    rq_table_close(t);
    return refused && rq_disconnect(db, &why) == RQ_E_FORKED;
}

static void a_child_touches_nothing(void **state)
{
    (void)state;
    rq_db *db = open_db();
    rq_table *t = open_table(db);
    rq_scan_request scan = {.size = sizeof scan, .caching = 1};
    rq_scanner *s;
    rq_row *row;
    int status = -1;
    OK(put(t, "r", "parent"));
    OK(put(t, "s", "parent"));
    OK(rq_table_scan(t, &scan, &s, &why));
    OK(rq_scanner_next(s, &row, &why));
    pid_t child = fork();
    if (child == 0) {
        bool good = child_is_refused(db, t, s);
        rq_row_free(row);
        /* The child may open its own database; the child's own child is refused there. */
        rq_db *own = NULL;
        good = good && rq_connect("memory:", NULL, &own, &why) == RQ_OK;
        if (good) good = rq_disconnect(own, &why) == RQ_OK;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rq_row_free(row);
    OK(rq_scanner_next(s, &row, &why));
    assert_non_null(row);
    rq_row_free(row);
    OK(put(t, "after", "parent"));
    holds(t, "after", "parent");
    holds(t, "child", NULL);
    rq_scanner_close(s);
    rq_table_close(t);
    OK(rq_disconnect(db, &why));
}

/* --- kill -9 ---------------------------------------------------------------------------------- */

/* Writes rows kKKKKK.RRRRR and a counter until it is killed; writes each acknowledged number to the
 * pipe. Flushes after every 500 writes. */
static void write_until_killed(int acks, unsigned round)
{
    /* In every other round writes are only handed to the operating system. This is faster, and
     * survives the death of the process. */
    rq_property handover = {"rorqual.wal.sync", "handover"};
    rq_connect_options o = {.size = sizeof o, .settings = &handover, .setting_count = round % 2};
    rq_db *db = NULL;
    OK(rq_connect(url, &o, &db, &why));
    rq_table *t = open_table(db);
    char row[32];
    int64_t sum;
    for (uint32_t i = 0;; i++) {
        snprintf(row, sizeof row, "k%05u.%05u", round, i);
        if (put(t, row, row) != RQ_OK ||
            rq_add_value(t, rq_text("sum"), rq_text("f"), rq_text("n"), 1, &sum, &why) != RQ_OK)
            _exit(2);
        if (write(acks, &i, sizeof i) != (ssize_t)sizeof i) _exit(3);
        if (i % 500 == 499 && rq_table_flush(db, "t", &why) != RQ_OK) _exit(4);
    }
}

/* Reads the acknowledged numbers and returns their count. */
static uint32_t read_acks(int acks)
{
    uint32_t number, next = 0;
    while (read(acks, &number, sizeof number) == (ssize_t)sizeof number) {
        assert_int_equal(number, next);
        next++;
    }
    return next;
}

static void acknowledged_writes_survive_kill_9(void **state)
{
    (void)state;
    int64_t sum = 0;
    uint64_t all = 0;
    srand(seed);
    for (unsigned round = 0; round < rounds; round++) {
        int pipes[2], status;
        char row[32];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            close(pipes[0]);
            write_until_killed(pipes[1], round);
        }
        close(pipes[1]);
        long us = rand() % 120000;
        nanosleep(&(struct timespec){0, us * 1000}, NULL);
        kill(child, SIGKILL);
        uint32_t acknowledged = read_acks(pipes[0]);
        close(pipes[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) fail_msg("round %u: the child ended with %d", round, status);
        rq_db *db = open_db();
        rq_table *t = open_table(db);
        for (uint32_t i = 0; i < acknowledged; i++) {
            snprintf(row, sizeof row, "k%05u.%05u", round, i);
            holds(t, row, row);
        }
        int64_t before = sum;
        OK(rq_add_value(t, rq_text("sum"), rq_text("f"), rq_text("n"), 0, &sum, &why));
        all += acknowledged;
        /* The last write may have been made without being acknowledged. */
        assert_in_range(sum - before, acknowledged, acknowledged + 1);
        rq_table_close(t);
        OK(rq_disconnect(db, &why));
    }
    printf("kill -9: %u rounds, %llu acknowledged, seed %u\n", rounds, (unsigned long long)all,
           seed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_there_after_reopening, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_database_that_is_only_read_stays_as_it_is, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_has_one_user, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(reopened_tables_are_distinguished, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_long_scan_says_how_far_it_is, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(urls_and_settings_are_checked, make_folder, remove_folder),
        cmocka_unit_test(closing_meets_a_timer),
        cmocka_unit_test_setup_teardown(a_child_touches_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(acknowledged_writes_survive_kill_9, make_folder,
                                        remove_folder),
    };
    seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    if (argc > 1) rounds = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2) seed = (unsigned)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
