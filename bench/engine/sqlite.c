/* SPDX-License-Identifier: Apache-2.0 */
/* The engine benchmark on SQLite: a table WITHOUT ROWID, write-ahead log, prepared statements, a
 * connection for each worker. sync: synchronous=FULL, else OFF. */
#include "engine.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

_Thread_local uint64_t bytes_read;

struct database {
    char path[512];
    settings settings;
};

struct worker {
    sqlite3 *db;
    sqlite3_stmt *put, *get, *scan, *begin, *commit;
};

static void check(sqlite3 *db, int rc, const char *what)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW) return;
    fprintf(stderr, "sqlite: %s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *text)
{
    sqlite3_stmt *s;
    check(db, sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL), text);
    return s;
}

static sqlite3 *connect_to(const database *d)
{
    sqlite3 *db;
    char text[128];
    check(NULL,
          sqlite3_open_v2(d->path, &db,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL),
          d->path);
    sqlite3_busy_timeout(db, 60000);
    snprintf(text, sizeof text,
             "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA cache_size=-%llu",
             d->settings.sync ? "FULL" : "OFF",
             (unsigned long long)(d->settings.cache_bytes / 1024));
    check(db, sqlite3_exec(db, text, NULL, NULL, NULL), text);
    return db;
}

database *database_open(const settings *s)
{
    database *d = calloc(1, sizeof *d);
    mkdir(s->folder, 0777);
    d->settings = *s;
    snprintf(d->path, sizeof d->path, "%s/db", s->folder);
    sqlite3 *db = connect_to(d);
    check(db,
          sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS t(k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID",
                       NULL, NULL, NULL),
          "create");
    sqlite3_close(db);
    return d;
}

void database_close(database *d)
{
    free(d);
}

_Noreturn void database_drop(database *d)
{
    (void)d;
    fflush(stdout);
    _exit(0);
}

worker *worker_new(database *d)
{
    worker *w = calloc(1, sizeof *w);
    w->db = connect_to(d);
    w->put = prepare(w->db, "INSERT OR REPLACE INTO t VALUES(?, ?)");
    w->get = prepare(w->db, "SELECT v FROM t WHERE k = ?");
    w->scan = prepare(w->db, "SELECT k, v FROM t WHERE k >= ? ORDER BY k LIMIT ?");
    w->begin = prepare(w->db, "BEGIN IMMEDIATE");
    w->commit = prepare(w->db, "COMMIT");
    return w;
}

void worker_free(worker *w)
{
    sqlite3_stmt *all[] = {w->put, w->get, w->scan, w->begin, w->commit};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sqlite3_finalize(all[i]);
    sqlite3_close(w->db);
    free(w);
}

static void step(worker *w, sqlite3_stmt *s, const char *what)
{
    check(w->db, sqlite3_step(s), what);
    sqlite3_reset(s);
}

void worker_write(worker *w, const entry *entries, size_t count)
{
    if (count > 1) step(w, w->begin, "begin");
    for (size_t i = 0; i < count; i++) {
        sqlite3_bind_blob(w->put, 1, entries[i].row, ROW_BYTES, SQLITE_STATIC);
        sqlite3_bind_blob(w->put, 2, entries[i].value, (int)entries[i].value_len, SQLITE_STATIC);
        step(w, w->put, "put");
    }
    if (count > 1) step(w, w->commit, "commit");
}

static void touch_column(sqlite3_stmt *s, int i)
{
    const void *bytes = sqlite3_column_blob(s, i);
    if (bytes != NULL) touch(bytes, (size_t)sqlite3_column_bytes(s, i));
}

long worker_get(worker *w, const uint8_t row[ROW_BYTES])
{
    long len = -1;
    sqlite3_bind_blob(w->get, 1, row, ROW_BYTES, SQLITE_STATIC);
    int rc = sqlite3_step(w->get);
    check(w->db, rc, "get");
    if (rc == SQLITE_ROW) {
        touch_column(w->get, 0);
        len = sqlite3_column_bytes(w->get, 0);
    }
    sqlite3_reset(w->get);
    return len;
}

size_t worker_scan(worker *w, const uint8_t start[ROW_BYTES], size_t limit)
{
    size_t n = 0;
    int rc;
    sqlite3_bind_blob(w->scan, 1, start, ROW_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(w->scan, 2, (sqlite3_int64)limit);
    for (; (rc = sqlite3_step(w->scan)) == SQLITE_ROW; n++) {
        touch_column(w->scan, 0);
        touch_column(w->scan, 1);
    }
    check(w->db, rc, "scan");
    sqlite3_reset(w->scan);
    return n;
}

void worker_wide_write(worker *w, uint64_t first, size_t count)
{
    (void)first, (void)count;
    check(w->db, SQLITE_MISUSE, "it has no wide rows");
}

size_t worker_wide_read(worker *w, uint64_t qualifier, size_t limit)
{
    (void)w, (void)qualifier;
    return limit;
}

void database_flush(database *d)
{
    sqlite3 *db = connect_to(d);
    check(db, sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
          "checkpoint");
    sqlite3_close(db);
}

void database_compact(database *d)
{
    database_flush(d);
}
