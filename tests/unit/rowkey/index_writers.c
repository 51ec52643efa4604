/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of an index; see index_writers.h. */
#include "index_writers.h"

#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 4, TOKEN = 16 };

rq_failure why = {.size = sizeof(rq_failure)};
const char *url = "memory:";
uint64_t seed;

uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

static void drop(rq_db *db, const char *name)
{
    bool exists;
    OK(rq_table_exists(db, name, &exists, &why));
    if (!exists) return;
    rq_err rc = rq_table_disable(db, name, &why);
    if (rc != RQ_E_TABLE_NOT_ENABLED) OK(rc); /* an earlier test ended with a disabled table */
    OK(rq_table_drop(db, name, &why));
}

rq_index *fresh(const index_kind *k, rq_db *db, bool unique)
{
    drop(db, k->table);
    drop(db, k->entries);
    k->create(db);
    return k->open(db, unique);
}

size_t count_entries(const index_kind *k, rq_db *db)
{
    rq_table *t;
    rq_scanner *s;
    rq_scan_request scan = {.size = sizeof scan};
    size_t n = 0;
    OK(rq_table_open(db, k->entries, &t, &why));
    OK(rq_table_scan(t, &scan, &s, &why));
    for (;;) {
        rq_row *row;
        OK(rq_scanner_next(s, &row, &why));
        if (row == NULL) break;
        const rq_kv *token = rq_row_find(row, rq_text("i"), rq_text("t"));
        /* a deleted entry has a shorter token */
        if (token != NULL && token->value.len == TOKEN) n++;
        rq_row_free(row);
    }
    rq_scanner_close(s);
    rq_table_close(t);
    return n;
}

/* A repair does not change the rows that queries find, and leaves one entry per row. */
static void check(const index_kind *k, rq_db *db, rq_index *x, bool unique, bool repairs)
{
    size_t rows = k->check(db, x, unique);
    if (!repairs) return;
    OK(rq_index_repair(x, NULL, &why));
    assert_int_equal(k->check(db, x, unique), rows);
    assert_int_equal(count_entries(k, db), rows);
}

/* --- several writers -------------------------------------------------------------------------- */

typedef struct writer {
    const index_kind *kind;
    rq_index *x;
    uint64_t state;
    unsigned writes;
    bool repairs, unique, failed;
    rq_failure why;
} writer;

static rq_err write_one(writer *w)
{
    const index_kind *k = w->kind;
    char row[16];
    sprintf(row, "r%02d", (int)below(&w->state, k->keys));
    return below(&w->state, k->deletes) == 0 ? rq_index_delete(w->x, rq_text(row), &w->why)
                                             : k->put(w->x, row, &w->state, &w->why);
}

static void *write_some(void *arg)
{
    writer *w = arg;
    w->why.size = sizeof w->why;
    for (unsigned i = 0; i < w->writes && !w->failed; i++) {
        rq_err rc = w->repairs && i % w->kind->writes_per_repair == 0
                        ? rq_index_repair(w->x, NULL, &w->why)
                        : write_one(w);
        w->failed = rc != RQ_OK && !(w->unique && rc == RQ_E_EXISTS) && rc != RQ_E_CONFLICT;
    }
    return NULL;
}

void several_writers(void **kind)
{
    const index_kind *k = *kind;
    for (int unique = 0; unique < 2; unique++) {
        writer writers[WRITERS];
        pthread_t threads[WRITERS];
        rq_db *db;
        OK(rq_connect(url, NULL, &db, &why));
        rq_index *x = fresh(k, db, unique == 1);
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (writer){.kind = k,
                                  .x = x,
                                  .state = seed + (uint64_t)i,
                                  .writes = k->writes,
                                  .repairs = i == 0,
                                  .unique = unique == 1};
            assert_int_equal(pthread_create(&threads[i], NULL, write_some, &writers[i]), 0);
        }
        for (int i = 0; i < WRITERS; i++) {
            pthread_join(threads[i], NULL);
            if (writers[i].failed) fail_msg("%s", writers[i].why.message);
        }
        check(k, db, x, unique == 1, true);
        rq_index_close(x);
        OK(rq_disconnect(db, &why));
    }
}

/* --- killed writers --------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

/* The child process writes until it is killed. */
static void write_until_killed(const index_kind *k, const char *folder, bool unique, uint64_t state,
                               int ready)
{
    rq_db *db;
    if (rq_connect(folder, NULL, &db, &why) != RQ_OK) _exit(1);
    writer w = {
        .kind = k, .x = k->open(db, unique), .state = state, .writes = 1000000, .unique = unique};
    if (write(ready, "x", 1) == 1) write_some(&w);
    _exit(1);
}

static void kill_one(const index_kind *k, const char *folder, bool unique, uint64_t state)
{
    int ready[2], status;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) write_until_killed(k, folder, unique, state, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    struct timespec t = {
        0, 1000000 + (long)below(&state, 60000000)}; /* the kill must be at a random moment */
    nanosleep(&t, NULL);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    close(ready[0]);
    close(ready[1]);
}

void killed_writers(void **kind)
{
    const index_kind *k = *kind;
    if (strcmp(url, "memory:") != 0) skip();
    char folder[] = "/tmp/rq-index-XXXXXX", where[64];
    assert_non_null(mkdtemp(folder));
    sprintf(where, "file:%s", folder);
    for (int unique = 0; unique < 2; unique++) {
        rq_db *db;
        OK(rq_connect(where, NULL, &db, &why));
        rq_index_close(fresh(k, db, unique == 1));
        OK(rq_disconnect(db, &why));
        for (unsigned round = 0; round < k->rounds; round++) {
            kill_one(k, where, unique == 1, seed + round);
            OK(rq_connect(where, NULL, &db, &why));
            rq_index *x = k->open(db, unique == 1);
            check(k, db, x, unique == 1, round % 2 == 1);
            rq_index_close(x);
            OK(rq_disconnect(db, &why));
        }
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void take_arguments(int argc, char **argv)
{
    if (argc > 1) url = argv[1];
    seed = getenv("SEED") != NULL ? strtoull(getenv("SEED"), NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)seed);
}
