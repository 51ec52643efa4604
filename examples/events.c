/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librorqual in an event loop, here libuv's: events [URL]
 *
 * The loop watches the descriptor of rq_descriptor, and runs completions by rq_poll(db, 0, …) when it is
 * readable. With another loop only `watch` differs: see events_epoll.c and events_glib.c. A timer of the
 * loop shows that nothing blocks it.
 *
 * The program writes COUNT rows, AT_ONCE of them at a time, then reads them back by a scan.
 */
#include "rorqual/rorqual.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum { COUNT = 1000, AT_ONCE = 50 };

typedef struct program {
    rq_db *db;
    rq_table *table;
    rq_scanner *scanner;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned begun, written, read, ticks;
} program;

static rq_failure why = {.size = sizeof why};

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

/* --- the loop's side -------------------------------------------------------------------------- */

static void readable(uv_poll_t *poll, int status, int events)
{
    program *p = poll->data;
    (void)events;
    if (status == 0) check(rq_poll(p->db, 0, NULL, &why), "poll");
}

static void tick(uv_timer_t *timer)
{
    ((program *)timer->data)->ticks++;
}

static void watch(program *p, uv_loop_t *loop)
{
    int fd;
    check(rq_descriptor(p->db, &fd, &why), "descriptor");
    uv_poll_init(loop, &p->poll, fd);
    uv_timer_init(loop, &p->timer);
    p->poll.data = p->timer.data = p;
    uv_poll_start(&p->poll, UV_READABLE, readable);
    uv_timer_start(&p->timer, tick, 0, 1);
}

/* No descriptor is watched after this, so the loop ends. */
static void finish(program *p)
{
    uv_close((uv_handle_t *)&p->poll, NULL);
    uv_close((uv_handle_t *)&p->timer, NULL);
}

/* --- the database's side ---------------------------------------------------------------------- */

static void take_rows(void *context, const rq_completion *c)
{
    program *p = context;
    if (c->code != RQ_OK) fprintf(stderr, "scan: %s\n", c->why->message), exit(1);
    size_t count = c->rows->count;
    p->read += (unsigned)count;
    rq_rows_free(c->rows);
    if (count == 0)
        finish(p);
    else
        check(rq_scanner_next_async(p->scanner, 0, take_rows, p, &why), "next");
}

static void put_next(program *p);

static void written(void *context, const rq_completion *c)
{
    program *p = context;
    if (c->code != RQ_OK) fprintf(stderr, "put: %s\n", c->why->message), exit(1);
    p->written++;
    put_next(p);
    if (p->written < COUNT) return;
    rq_scan_request scan = {.size = sizeof scan};
    check(rq_table_scan(p->table, &scan, &p->scanner, &why), "scan");
    check(rq_scanner_next_async(p->scanner, 0, take_rows, p, &why), "next");
}

static void put_next(program *p)
{
    char row[16];
    if (p->begun == COUNT) return;
    snprintf(row, sizeof row, "row%05u", p->begun++);
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("q"), .value = rq_text("v")};
    rq_change put = {
        .size = sizeof put, .kind = RQ_PUT, .row = rq_text(row), .edits = &edit, .edit_count = 1};
    check(rq_table_change_async(p->table, &put, written, p, &why), "put"); /* copies the row */
}

int main(int argc, char **argv)
{
    program p = {.db = NULL};
    bool exists;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "events", .families = &family, .family_count = 1};
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &p.db, &why), "connect");
    check(rq_table_exists(p.db, "events", &exists, &why), "exists");
    if (!exists) check(rq_table_create(p.db, &spec, &why), "create");
    check(rq_table_open(p.db, "events", &p.table, &why), "open");
    watch(&p, uv_default_loop());
    for (int i = 0; i < AT_ONCE; i++)
        put_next(&p);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    printf("%u rows written, %u read%s\n", p.written, p.read,
           p.ticks > 0 ? "" : ", and the loop was blocked");
    rq_scanner_close(p.scanner);
    rq_table_close(p.table);
    check(rq_disconnect(p.db, &why), "disconnect");
    return 0;
}
