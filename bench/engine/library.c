/* SPDX-License-Identifier: Apache-2.0 */
/* The engine benchmark on librorqual: the same store as ours.c, through the public functions on a
 * folder ("file:"). */
#include "engine.h"

#include "rorqual/rorqual.h"

#include <stdlib.h>
#include <unistd.h>

_Thread_local uint64_t bytes_read;

struct database {
    rq_db *db;
    rq_table *table;
    bool sync;
};

struct worker {
    database *db;
    rq_edit *edits;
    rq_change *changes;
    rq_action *actions;
    size_t cap;
};

static rq_failure why = {.size = sizeof(rq_failure)};

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "librorqual: %s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

database *database_open(const settings *s)
{
    database *db = calloc(1, sizeof *db);
    char url[512], text[6][32], block[16];
    double memstores = 4.0 * (double)s->buffer_bytes;
    /* the library's configuration check allows 0.8 */
    double budget = ((double)s->cache_bytes + memstores) / 0.79;
    bool exists;
    snprintf(url, sizeof url, "file:%s", s->folder);
    snprintf(text[0], sizeof text[0], "%.0f", budget);
    snprintf(text[1], sizeof text[1], "%.6f", (double)s->cache_bytes / budget);
    snprintf(text[2], sizeof text[2], "%.6f", memstores / budget);
    snprintf(text[3], sizeof text[3], "%llu", (unsigned long long)s->buffer_bytes);
    rq_property properties[] = {{"rorqual.wal.sync", s->sync ? "fdatasync" : "handover"},
                                {"rorqual.memory", text[0]},
                                {"hfile.block.cache.size", text[1]},
                                {"hbase.regionserver.global.memstore.size", text[2]},
                                {"hbase.hregion.memstore.flush.size", text[3]}};
    rq_connect_options o = {.size = sizeof o,
                            .settings = properties,
                            .setting_count = sizeof properties / sizeof properties[0],
                            .no_threads = s->no_threads};
    snprintf(block, sizeof block, "%u", s->block_bytes);
    rq_property attributes[] = {{"BLOCKSIZE", block},
                                {"DATA_BLOCK_ENCODING", s->encoded ? "FAST_DIFF" : "NONE"}};
    rq_family family = {"f", attributes, 2};
    rq_table_spec spec = {.size = sizeof spec, .name = "t", .families = &family, .family_count = 1};
    db->sync = s->sync;
    check(rq_connect(url, &o, &db->db, &why), "connect");
    check(rq_table_exists(db->db, "t", &exists, &why), "exists");
    if (!exists) check(rq_table_create(db->db, &spec, &why), "create");
    check(rq_table_open(db->db, "t", &db->table, &why), "open");
    return db;
}

void database_close(database *db)
{
    rq_table_close(db->table);
    check(rq_disconnect(db->db, &why), "disconnect");
    free(db);
}

_Noreturn void database_drop(database *db)
{
    (void)db;
    fflush(stdout);
    _exit(0);
}

worker *worker_new(database *db)
{
    worker *w = calloc(1, sizeof *w);
    w->db = db;
    return w;
}

void worker_free(worker *w)
{
    free(w->edits);
    free(w->changes);
    free(w->actions);
    free(w);
}

static void reserve(worker *w, size_t count)
{
    if (count <= w->cap) return;
    w->edits = realloc(w->edits, count * sizeof *w->edits);
    w->changes = realloc(w->changes, count * sizeof *w->changes);
    w->actions = realloc(w->actions, count * sizeof *w->actions);
    if (w->edits == NULL || w->changes == NULL || w->actions == NULL) exit(1);
    w->cap = count;
}

void worker_write(worker *w, const entry *entries, size_t count)
{
    reserve(w, count);
    for (size_t i = 0; i < count; i++) {
        w->edits[i] = (rq_edit){.family = rq_bytes_of("f", 1),
                                .qualifier = rq_bytes_of("q", 1),
                                .value = rq_bytes_of(entries[i].value, entries[i].value_len)};
        w->changes[i] = (rq_change){.size = sizeof(rq_change),
                                    .kind = RQ_PUT,
                                    .row = rq_bytes_of(entries[i].row, ROW_BYTES),
                                    .edits = &w->edits[i],
                                    .edit_count = 1};
        w->actions[i] = (rq_action){.changes = &w->changes[i], .change_count = 1};
    }
    check(count == 1 ? rq_table_change(w->db->table, &w->changes[0], NULL, &why)
                     : rq_table_batch(w->db->table, w->actions, count, NULL, &why),
          "write");
}

static void touch_row(const rq_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        touch(row->cells[i].row.data, row->cells[i].row.len);
        touch(row->cells[i].value.data, row->cells[i].value.len);
    }
}

long worker_get(worker *w, const uint8_t row[ROW_BYTES])
{
    /* Gets the whole row, as ours.c does. */
    rq_get_request get = {.size = sizeof get, .row = rq_bytes_of(row, ROW_BYTES)};
    rq_row *found;
    check(rq_table_get(w->db->table, &get, &found, &why), "get");
    long len = found->count == 0 ? -1 : (long)found->cells[0].value.len;
    touch_row(found);
    rq_row_free(found);
    return len;
}

size_t worker_scan(worker *w, const uint8_t start[ROW_BYTES], size_t limit)
{
    rq_scan_request scan = {
        .size = sizeof scan, .start = rq_bytes_of(start, ROW_BYTES), .limit = limit};
    rq_scanner *s;
    size_t n = 0;
    check(rq_table_scan(w->db->table, &scan, &s, &why), "scan");
    for (size_t got = 1; got > 0;) {
        rq_rows *rows;
        check(rq_scanner_next_rows(s, 0, &rows, &why), "next");
        got = rows->count;
        for (size_t i = 0; i < got; i++)
            touch_row(rows->items[i]);
        rq_rows_free(rows);
        n += got;
    }
    rq_scanner_close(s);
    return n;
}

void worker_wide_write(worker *w, uint64_t first, size_t count)
{
    (void)w, (void)first, (void)count;
    fprintf(stderr, "librorqual: wide rows are measured by ours\n");
    exit(1);
}

size_t worker_wide_read(worker *w, uint64_t qualifier, size_t limit)
{
    (void)w, (void)qualifier;
    return limit;
}

void database_flush(database *db)
{
    check(rq_table_flush(db->db, "t", &why), "flush");
}

void database_compact(database *db)
{
    /* does not wait for the compaction */
    check(rq_table_compact(db->db, "t", NULL, true, &why), "compact");
}
