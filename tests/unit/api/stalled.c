/* SPDX-License-Identifier: Apache-2.0 */
/* A program of tests/wire/library.py: stalled URL PID. The server, process PID, is stopped by a signal
 * while calls wait for it: they end after their timeout, repetitions included, and closing the database ends
 * them at once. */
#include "rorqual/rorqual.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static rq_failure why = {.size = sizeof(rq_failure)};

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(why.code), why.message);
    return 1;
}

/* Whether a thread of the process has not stopped yet. */
static bool runs(const char *tasks, const char *thread)
{
    char path[512], state = 'R';
    snprintf(path, sizeof path, "%s/%s/stat", tasks, thread);
    FILE *f = fopen(path, "r");
    if (f == NULL) return false; /* the thread has ended */
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 'R';
    fclose(f);
    return state != 'T';
}

/* Sends the signal and waits until no thread of the process runs. */
static void stop(pid_t pid)
{
    char tasks[64];
    bool some = true;
    kill(pid, SIGSTOP);
    snprintf(tasks, sizeof tasks, "/proc/%d/task", (int)pid);
    while (some) {
        DIR *d = opendir(tasks);
        some = false;
        for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
            some = some || (e->d_name[0] != '.' && runs(tasks, e->d_name));
        closedir(d);
        sched_yield();
    }
}

static void take(void *context, const rq_completion *c)
{
    *(rq_err *)context = c->code;
    rq_row_free(c->row);
}

typedef struct call {
    rq_table *table;
    rq_err rc;
    _Atomic bool begun;
} call;

static void *get(void *arg)
{
    call *c = arg;
    char buf[8];
    size_t len;
    c->begun = true;
    c->rc = rq_get_value(c->table, rq_text("a"), rq_text("f"), rq_text("q"), buf, sizeof buf, &len,
                         NULL);
    return NULL;
}

static int close_while_stopped(rq_db *db, rq_table *t)
{
    rq_get_request request = {.size = sizeof request, .row = rq_text("a")};
    rq_err async = RQ_OK;
    call sync = {.table = t, .rc = RQ_OK};
    pthread_t thread;
    time_t begun = time(NULL);
    if (rq_table_get_async(t, &request, take, &async, &why) != RQ_OK) return failed("get_async");
    if (pthread_create(&thread, NULL, get, &sync) != 0) return 1;
    while (!sync.begun)
        (void)rq_poll(db, 1, NULL, NULL);
    (void)rq_poll(db, 50, NULL, NULL);
    if (rq_disconnect(db, &why) != RQ_OK) return failed("disconnect");
    pthread_join(thread, NULL);
    time_t took = time(NULL) - begun;
    if (async == RQ_E_CLOSED && sync.rc == RQ_E_CLOSED && took < 30) return 0; /* of 60 s */
    fprintf(stderr, "%s, %s after %ld s\n", rq_err_name(async), rq_err_name(sync.rc), (long)took);
    return 1;
}

enum { TIMEOUT_S = 3 };

static int ends_in_time(const char *what, rq_err rc, time_t begun)
{
    time_t took = time(NULL) - begun;
    if (rc == RQ_E_CALL_TIMEOUT && took < 4 * TIMEOUT_S)
        return 0; /* the timeout does not start again for each of the four attempts */
    fprintf(stderr, "%s: %s after %ld s\n", what, rq_err_name(rc), (long)took);
    return 1;
}

static int time_out(rq_table *known, rq_table *unknown, rq_scanner *scanner)
{
    char buf[8];
    size_t len;
    rq_row *row;
    rq_bytes a = rq_text("a"), f = rq_text("f"), q = rq_text("q");
    rq_get_request get = {.size = sizeof get, .row = a};
    rq_action action = {.get = &get};
    time_t begun = time(NULL);
    int code =
        ends_in_time("get", rq_get_value(known, a, f, q, buf, sizeof buf, &len, NULL), begun);
    begun = time(NULL);
    code |= ends_in_time("batch", rq_table_batch(known, &action, 1, NULL, NULL), begun);
    begun = time(NULL);
    code |= ends_in_time("next", rq_scanner_next(scanner, &row, NULL), begun);
    begun = time(NULL);
    rq_err rc = rq_get_value(unknown, a, f, q, buf, sizeof buf, &len, NULL);
    return code | ends_in_time("get of a table that was not read", rc, begun);
}

/* Calls on a separate database connection. */
static int time_out_while_stopped(const char *url, pid_t server)
{
    rq_db *db;
    rq_table *known, *unknown;
    rq_scanner *scanner;
    rq_connect_options o = {.size = sizeof o, .timeout_ms = TIMEOUT_S * 1000};
    rq_scan_request scan = {.size = sizeof scan};
    rq_bytes a = rq_text("a"), f = rq_text("f"), q = rq_text("q");
    if (rq_connect(url, &o, &db, &why) != RQ_OK) return failed("connect");
    if (rq_table_open(db, "stalled", &known, &why) != RQ_OK) return failed("open");
    if (rq_table_open(db, "other", &unknown, &why) != RQ_OK) return failed("open");
    if (rq_put_value(known, a, f, q, rq_text("v"), &why) != RQ_OK) return failed("put");
    if (rq_table_scan(known, &scan, &scanner, &why) != RQ_OK) return failed("scan");
    stop(server);
    int code = time_out(known, unknown, scanner);
    kill(server, SIGCONT);
    rq_scanner_close(scanner);
    rq_table_close(known);
    rq_table_close(unknown);
    return rq_disconnect(db, &why) != RQ_OK ? failed("disconnect") : code;
}

int main(int argc, char **argv)
{
    rq_db *db;
    rq_table *t;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "stalled", .families = &family, .family_count = 1};
    if (argc != 3) return 2;
    pid_t server = (pid_t)atoi(argv[2]);
    if (rq_connect(argv[1], NULL, &db, &why) != RQ_OK) return failed("connect");
    rq_err made = rq_table_create(db, &spec, &why);
    if (made != RQ_OK && made != RQ_E_TABLE_EXISTS) return failed("create");
    if (rq_table_open(db, "stalled", &t, &why) != RQ_OK) return failed("open");
    if (rq_put_value(t, rq_text("a"), rq_text("f"), rq_text("q"), rq_text("v"), &why) != RQ_OK)
        return failed("put");
    int code = time_out_while_stopped(argv[1], server);
    stop(server);
    code |= close_while_stopped(db, t);
    kill(server, SIGCONT);
    rq_table_close(t);
    return code;
}
