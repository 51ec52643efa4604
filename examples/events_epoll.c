/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librorqual in a program's own event loop, with epoll: events_epoll [URL]
 *
 * The loop waits for two descriptors, that of the database (rq_descriptor) and that of a timer, as a server
 * waits for its sockets. When the database's is readable, rq_poll(db, 0, …) runs the completions of the
 * calls that have ended, and returns without waiting.
 *
 * The program counts VISITS visits of PAGES pages: increments, AT_ONCE of them at a time. Then one batch
 * reads all counters.
 */
#include "rorqual/rorqual.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { VISITS = 1000, PAGES = 10, AT_ONCE = 50 };

typedef struct program {
    rq_db *db;
    rq_table *table;
    unsigned begun, counted, ticks;
    uint64_t total; /* sum of the counters that the batch has read */
    bool is_done;
} program;

static rq_failure why = {.size = sizeof why};

static void check(rq_err rc, const char *what)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, rq_err_name(rc), why.message);
    exit(1);
}

/* A completion has the error of its call. */
static void check_completion(const rq_completion *c, const char *what)
{
    if (c->code == RQ_OK) return;
    fprintf(stderr, "%s: %s\n", what, c->why->message);
    exit(1);
}

/* --- the loop's side -------------------------------------------------------------------------- */

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) perror("epoll_ctl"), exit(1);
}

/* A timer that fires every millisecond. */
static int make_timer(void)
{
    struct itimerspec period = {{0, 1000000}, {0, 1000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer < 0 || timerfd_settime(timer, 0, &period, NULL) != 0) perror("timerfd"), exit(1);
    return timer;
}

static void run_loop(program *p)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = make_timer(), database;
    check(rq_descriptor(p->db, &database, &why), "descriptor");
    watch(epoll, database);
    watch(epoll, timer);
    while (!p->is_done) {
        struct epoll_event events[2];
        uint64_t expired;
        int count = epoll_wait(epoll, events, 2, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == database)
                check(rq_poll(p->db, 0, NULL, &why), "poll");
            else if (read(timer, &expired, sizeof expired) == sizeof expired)
                p->ticks += (unsigned)expired;
        }
    }
    close(timer);
    close(epoll); /* the database's descriptor is closed by rq_disconnect */
}

/* --- the database's side ---------------------------------------------------------------------- */

/* Keys and requests may be on the stack: the library copies what a call needs. */
static rq_bytes page_key(unsigned page, char *buf, size_t size)
{
    return rq_bytes_of(buf, (size_t)snprintf(buf, size, "page%u", page % PAGES));
}

static void add_up(void *context, const rq_completion *c)
{
    program *p = context;
    check_completion(c, "batch");
    for (size_t i = 0; i < c->results->count; i++) {
        const rq_kv *cell = rq_row_find(c->results->items[i].row, rq_text("f"), rq_text("visits"));
        const unsigned char *value = cell->value.data; /* 8 bytes, big-endian */
        uint64_t visits = 0;
        for (size_t at = 0; at < cell->value.len; at++)
            visits = visits << 8 | value[at];
        p->total += visits;
    }
    rq_results_free(c->results);
    p->is_done = true;
}

static void read_counters(program *p)
{
    rq_get_request gets[PAGES];
    rq_action actions[PAGES];
    char keys[PAGES][16];
    for (unsigned i = 0; i < PAGES; i++) {
        gets[i] =
            (rq_get_request){.size = sizeof gets[i], .row = page_key(i, keys[i], sizeof keys[i])};
        actions[i] = (rq_action){.get = &gets[i]};
    }
    check(rq_table_batch_async(p->table, actions, PAGES, add_up, p, &why), "batch");
}

static void count_next(program *p);

static void counted(void *context, const rq_completion *c)
{
    program *p = context;
    check_completion(c, "increment");
    p->counted++;
    count_next(p);
    if (p->counted == VISITS) read_counters(p);
}

static void count_next(program *p)
{
    char key[16];
    if (p->begun == VISITS) return;
    rq_edit edit = {.family = rq_text("f"), .qualifier = rq_text("visits"), .amount = 1};
    rq_change increment = {.size = sizeof increment,
                           .kind = RQ_INCREMENT,
                           .row = page_key(p->begun++, key, sizeof key),
                           .edits = &edit,
                           .edit_count = 1,
                           .returns_nothing = true};
    check(rq_table_change_async(p->table, &increment, counted, p, &why), "increment");
}

/* Empties the table, because an earlier run may have left counters. */
static void open_table(program *p)
{
    bool exists;
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = "events_epoll", .families = &family, .family_count = 1};
    check(rq_table_exists(p->db, spec.name, &exists, &why), "exists");
    if (exists) {
        check(rq_table_disable(p->db, spec.name, &why), "disable");
        check(rq_table_drop(p->db, spec.name, &why), "drop");
    }
    check(rq_table_create(p->db, &spec, &why), "create");
    check(rq_table_open(p->db, spec.name, &p->table, &why), "open");
}

int main(int argc, char **argv)
{
    program p = {.db = NULL};
    check(rq_connect(argc > 1 ? argv[1] : "memory:", NULL, &p.db, &why), "connect");
    open_table(&p);
    for (int i = 0; i < AT_ONCE; i++)
        count_next(&p);
    run_loop(&p);
    printf("%u visits counted, the counters say %llu\n", p.counted, (unsigned long long)p.total);
    rq_table_close(p.table);
    check(rq_disconnect(p.db, &why), "disconnect");
    return 0;
}
