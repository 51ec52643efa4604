/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librorqual in glib's main loop: events_glib [URL]
 *
 * g_unix_fd_add watches the descriptor of the database, and rq_poll(db, 0, …) runs the completions of the
 * calls that have ended. A program with windows (GTK) does the same: its loop is glib's.
 *
 * Messages arrive by a source of the loop, and each is put. When all are stored, a scan from the newest to
 * the oldest finds the last one; a copy of it outlives the scan.
 */
#include "rorqual/rorqual.h"

#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 200 };

typedef struct program {
    GMainLoop *loop;
    rq_db *db;
    rq_table *table;
    rq_scanner *scanner;
    rq_row *newest; /* a copy */
    unsigned arrived, stored;
} program;

static rq_failure why = {.size = sizeof why};

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    g_printerr("%s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

/* A completion has the error of its call. */
static void check_completion(const rq_completion *c, const char *what)
{
    if (c->code == RQ_OK) return;
    g_printerr("%s: %s\n", what, c->why->message);
    exit(1);
}

/* --- the database's side ---------------------------------------------------------------------- */

static void take_newest(void *context, const rq_completion *c)
{
    program *p = context;
    check_completion(c, "scan");
    if (c->rows->count > 0) check(rq_row_copy(c->rows->items[0], &p->newest, &why), "copy");
    rq_rows_free(c->rows);
    g_main_loop_quit(p->loop);
}

static void find_newest(program *p)
{
    rq_scan_request scan = {.size = sizeof scan, .reversed = true, .limit = 1};
    check(rq_table_scan(p->table, &scan, &p->scanner, &why), "scan");
    check(rq_scanner_next_async(p->scanner, 1, take_newest, p, &why), "next");
}

static void stored(void *context, const rq_completion *c)
{
    program *p = context;
    check_completion(c, "put");
    if (++p->stored == MESSAGES) find_newest(p);
}

static void store(program *p, unsigned number)
{
    char row[24], text[32];
    snprintf(row, sizeof row, "message%05u", number);
    snprintf(text, sizeof text, "text of message %u", number);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("text"), .value = rq_text(text)};
    rq_change put = {
        .size = sizeof put, .kind = RQ_PUT, .row = rq_text(row), .edits = &edit, .edit_count = 1};
    check(rq_table_change_async(p->table, &put, stored, p, &why), "put"); /* copies row and text */
}

/* --- the loop's side -------------------------------------------------------------------------- */

static gboolean readable(gint fd, GIOCondition condition, gpointer data)
{
    program *p = data;
    (void)fd;
    (void)condition;
    check(rq_poll(p->db, 0, NULL, &why), "poll");
    return G_SOURCE_CONTINUE;
}

static gboolean message_arrives(gpointer data)
{
    program *p = data;
    store(p, p->arrived++);
    return p->arrived < MESSAGES ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static void run_loop(program *p)
{
    int fd;
    check(rq_descriptor(p->db, &fd, &why), "descriptor");
    p->loop = g_main_loop_new(NULL, FALSE);
    guint watch = g_unix_fd_add(fd, G_IO_IN, readable, p);
    g_idle_add(message_arrives, p);
    g_main_loop_run(p->loop);
    g_source_remove(watch); /* before rq_disconnect, which closes the descriptor */
    g_main_loop_unref(p->loop);
}

static void open_table(program *p)
{
    bool exists;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "events_glib", .families = &family, .family_count = 1};
    check(rq_table_exists(p->db, spec.name, &exists, &why), "exists");
    if (!exists) check(rq_table_create(p->db, &spec, &why), "create");
    check(rq_table_open(p->db, spec.name, &p->table, &why), "open");
}

int main(int argc, char **argv)
{
    program p = {.db = NULL};
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &p.db, &why), "connect");
    open_table(&p);
    run_loop(&p);
    rq_scanner_close(p.scanner);
    const rq_kv *text = rq_row_find(p.newest, rq_text("f"), rq_text("text"));
    printf("%u messages stored, the newest: %.*s\n", p.stored, (int)text->value.len,
           (const char *)text->value.data);
    rq_row_free(p.newest);
    rq_table_close(p.table);
    check(rq_disconnect(p.db, &why), "disconnect");
    return 0;
}
