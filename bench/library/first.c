/* SPDX-License-Identifier: Apache-2.0 */
/* The time from a process's start to its first result: library_first URL [ROUNDS [make]]
 *
 * `make` first makes the table "first" with one row, and closes the database. Then the program starts
 * itself ROUNDS times (101), one after the other; each opens the database and gets that row. The
 * time is measured from before posix_spawn until the row has been read, by the clock that both
 * processes share. A folder is opened without fsync (rorqual.wal.sync = handover). Prints the
 * median and the minimum in milliseconds. */
#include "rorqual/rorqual.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static rq_db *connect_to(const char *url)
{
    rq_property sync = {"rorqual.wal.sync", "handover"};
    rq_connect_options o = {.size = sizeof o};
    rq_db *db;
    if (strncmp(url, "hbase", 5) != 0) {
        o.settings = &sync;
        o.setting_count = 1;
    }
    check(rq_connect(url, &o, &db, &why), "connect");
    return db;
}

static void make(const char *url)
{
    rq_db *db = connect_to(url);
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "first", .families = &family, .family_count = 1};
    rq_table *t;
    check(rq_table_create(db, &spec, &why), "create");
    check(rq_table_open(db, "first", &t, &why), "open");
    check(rq_put_value(t, rq_text("r"), rq_text("f"), rq_text("q"), rq_text("v"), &why), "put");
    rq_table_close(t);
    check(rq_disconnect(db, &why), "disconnect");
}

/* In the child: writes the time at which the row was read to standard output. */
static int answer(const char *url)
{
    char value[8];
    size_t len;
    rq_table *t;
    rq_db *db = connect_to(url);
    check(rq_table_open(db, "first", &t, &why), "open");
    check(
        rq_get_value(t, rq_text("r"), rq_text("f"), rq_text("q"), value, sizeof value, &len, &why),
        "get");
    double at = now_ms();
    if (len != 1 || write(STDOUT_FILENO, &at, sizeof at) != sizeof at) return 1;
    rq_table_close(t);
    check(rq_disconnect(db, &why), "disconnect");
    return 0;
}

static double measure(char *self, char *url)
{
    char *arguments[] = {self, url, (char *)"child", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], status;
    pid_t child;
    double at, begun;
    if (pipe(ends) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) != 0)
        exit(1);
    begun = now_ms();
    if (posix_spawn(&child, self, &actions, NULL, arguments, environ) != 0) exit(1);
    close(ends[1]);
    if (read(ends[0], &at, sizeof at) != sizeof at) exit(1);
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    if (waitpid(child, &status, 0) != child || status != 0) exit(1);
    return at - begun;
}

static int ascending(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv)
{
    enum { ROUNDS_MAX = 10001 };
    static double times[ROUNDS_MAX];
    char self[] = "/proc/self/exe", path[4096];
    if (argc < 2) return 2;
    if (argc > 2 && strcmp(argv[2], "child") == 0) return answer(argv[1]);
    int rounds = argc > 2 ? atoi(argv[2]) : 101;
    if (rounds < 1 || rounds > ROUNDS_MAX) return 2;
    ssize_t len = readlink(self, path, sizeof path - 1);
    if (len < 0) return 1;
    path[len] = '\0';
    if (argc > 3) make(argv[1]);
    for (int i = 0; i < rounds; i++)
        times[i] = measure(path, argv[1]);
    qsort(times, (size_t)rounds, sizeof *times, ascending);
    printf("first answer: median %.2f ms, least %.2f ms\n", times[rounds / 2], times[0]);
    return 0;
}
