/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: lanes, hooks, timers, listeners and streams over real sockets. */
#include "base/log.h"
#include "net/stream.h"

#include "echo.h"
#include "net/answers.h"
#include "peer.h"
#include "../base/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- lanes */

struct counted {
    rq_task task;
    unsigned number;
    struct order *order;
};

struct order {
    _Atomic unsigned next;
    _Atomic unsigned wrong;
};

static void run_counted(rq_task *task)
{
    struct counted *c = RQ_CONTAINER_OF(task, struct counted, task);
    if (atomic_load(&c->order->next) != c->number) atomic_fetch_add(&c->order->wrong, 1);
    atomic_store(&c->order->next, c->number + 1);
}

static void tasks_of_one_thread_run_in_order(void **state)
{
    (void)state;
    enum { N = 20000 };
    rq_loops *loops = start_loops(1, NULL);
    struct order order = {0};
    struct counted *tasks = calloc(N, sizeof *tasks);
    for (unsigned i = 0; i < N; i++) {
        tasks[i] = (struct counted){{NULL, run_counted}, i, &order};
        rq_lane_post(rq_loop_lane(rq_loops_get(loops, 0)), &tasks[i].task);
    }
    rq_loops_sync(loops);
    assert_int_equal(order.next, N);
    assert_int_equal(order.wrong, 0);
    stop_loops(loops);
    free(tasks);
}

/* --- a watched descriptor */

struct watch;
struct watched_task {
    rq_task task;
    struct watch *watch;
};

struct watch {
    rq_task begin, readable;
    struct watched_task posted[100];
    rq_loop *loop;
    int fd;
    _Atomic unsigned ran, reads;
    _Atomic bool watches;
};

static void run_posted(rq_task *task)
{
    struct watched_task *p = RQ_CONTAINER_OF(task, struct watched_task, task);
    atomic_fetch_add(&p->watch->ran, 1);
}

static void run_readable(rq_task *task)
{
    struct watch *w = RQ_CONTAINER_OF(task, struct watch, readable);
    uint64_t count;
    assert_true(rq_loop_is_current(w->loop));
    if (read(w->fd, &count, sizeof count) != (ssize_t)sizeof count) return;
    for (size_t i = 0; i < RQ_ARRAY_LEN(w->posted); i++)
        rq_lane_post(rq_loop_lane(w->loop), &w->posted[i].task);
    atomic_fetch_add(&w->reads, (unsigned)count);
}

static void run_watch(rq_task *task)
{
    struct watch *w = RQ_CONTAINER_OF(task, struct watch, begin);
    rq_lane *lane = rq_loop_lane(w->loop);
    atomic_store(&w->watches, lane->watch(lane, w->fd, &w->readable));
}

/* The task runs on the loop's thread whenever the descriptor is readable. The loop is stopped while it watches the descriptor. */
static void a_lane_waits_for_a_descriptor(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(2, NULL);
    struct watch *w = calloc(1, sizeof *w);
    w->begin.run = run_watch;
    w->readable.run = run_readable;
    for (size_t i = 0; i < RQ_ARRAY_LEN(w->posted); i++)
        w->posted[i] = (struct watched_task){{NULL, run_posted}, w};
    w->loop = rq_loops_get(loops, 1);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rq_lane_post(rq_loop_lane(w->loop), &w->begin);
    rq_loops_sync(loops);
    assert_true(w->watches);
    for (unsigned round = 1; round <= 5; round++) {
        uint64_t one = 1;
        assert_int_equal(write(w->fd, &one, sizeof one), sizeof one);
        while (atomic_load(&w->reads) < round)
            sched_yield();
        while (atomic_load(&w->ran) < round * RQ_ARRAY_LEN(w->posted))
            sched_yield();
    }
    stop_loops(loops);
    close(w->fd);
    free(w);
}

struct hopper {
    rq_task task;
    rq_loops *loops;
    unsigned at;
    _Atomic unsigned hops;
};

static void run_hop(rq_task *task)
{
    struct hopper *h = RQ_CONTAINER_OF(task, struct hopper, task);
    assert_true(rq_loop_is_current(rq_loops_get(h->loops, h->at)));
    if (atomic_fetch_add(&h->hops, 1) + 1 >= 3000) return;
    h->at = (h->at + 1) % rq_loops_count(h->loops);
    rq_lane_post(rq_loop_lane(rq_loops_get(h->loops, h->at)), &h->task);
}

static void tasks_hop_between_loops(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(3, NULL);
    struct hopper h[4];
    for (unsigned i = 0; i < 4; i++) {
        h[i] = (struct hopper){.task = {NULL, run_hop}, .loops = loops, .at = i % 3};
        rq_lane_post(rq_loop_lane(rq_loops_get(loops, i % 3)), &h[i].task);
    }
    for (unsigned i = 0; i < 4; i++)
        while (atomic_load(&h[i].hops) < 3000)
            usleep(1000);
    stop_loops(loops);
}

/* ---- iterations, timers, epoch */

struct iteration {
    rq_loop *loop;
    rq_task work;
    rq_task reply; /* posted by `work`: runs in the same iteration */
    uint64_t worked_ns, replied_ns;
    _Atomic bool done;
};

static void run_reply(rq_task *task)
{
    struct iteration *i = RQ_CONTAINER_OF(task, struct iteration, reply);
    i->replied_ns = rq_loop_now_ns(i->loop);
    atomic_store(&i->done, true);
}

static void run_work(rq_task *task)
{
    struct iteration *i = RQ_CONTAINER_OF(task, struct iteration, work);
    i->worked_ns = rq_loop_now_ns(i->loop);
    rq_lane_post(rq_loop_lane(i->loop), &i->reply);
}

static void a_task_posted_by_a_task_runs_in_the_same_iteration(void **state)
{
    (void)state;
    rq_loops *loops;
    rq_loops_options o = {.count = 1};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    struct iteration i = {.loop = rq_loops_get(loops, 0)};
    i.work.run = run_work;
    i.reply.run = run_reply;
    rq_lane_post(rq_loop_lane(i.loop), &i.work); /* posted before the loop's start: runs after it */
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    while (!atomic_load(&i.done))
        usleep(1000);
    stop_loops(loops);
    assert_true(i.worked_ns != 0 && i.worked_ns == i.replied_ns);
}

/* Works longer than an iteration may run tasks of other threads, or requests of one stream. */
static void work_long(void)
{
    uint64_t until = rq_loop_clock_ns() + RQ_TURN_NS + 1;
    while (rq_loop_clock_ns() < until)
        ;
}

#define TURNS 20

/* Work in TURNS parts. A timer that the first part arms is due at once. */
struct long_work {
    rq_loop *loop;
    rq_loop_timer timer;
    _Atomic unsigned done; /* parts */
    unsigned done_at_timer;
    _Atomic unsigned closed; /* streams */
};

static void note_timer(rq_loop_timer *timer)
{
    struct long_work *w = RQ_CONTAINER_OF(timer, struct long_work, timer);
    w->done_at_timer = atomic_load(&w->done);
}

static void work_part(struct long_work *w)
{
    w->timer.run = note_timer;
    if (atomic_load(&w->done) == 0) rq_loop_timer_arm(w->loop, &w->timer, 0);
    work_long();
    atomic_fetch_add(&w->done, 1);
}

struct part {
    rq_task task;
    struct long_work *work;
};

static void run_part(rq_task *task)
{
    work_part(RQ_CONTAINER_OF(task, struct part, task)->work);
}

struct gate {
    rq_task task;
    _Atomic bool open;
};

static void run_gate(rq_task *task)
{
    struct gate *g = RQ_CONTAINER_OF(task, struct gate, task);
    while (!atomic_load(&g->open))
        sched_yield();
}

static void many_tasks_of_another_thread_take_several_iterations(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct long_work work = {.loop = rq_loops_get(loops, 0)};
    struct gate gate = {.task.run = run_gate};
    struct part parts[TURNS];
    rq_lane_post(rq_loop_lane(work.loop), &gate.task); /* meanwhile all others are posted */
    for (int i = 0; i < TURNS; i++) {
        parts[i] = (struct part){{NULL, run_part}, &work};
        rq_lane_post(rq_loop_lane(work.loop), &parts[i].task);
    }
    atomic_store(&gate.open, true);
    rq_loops_sync(loops);
    stop_loops(loops);
    assert_int_equal(work.done, TURNS);
    assert_in_range(work.done_at_timer, 1, TURNS - 1);
}

struct ticking {
    rq_task arm;
    rq_loop *loop;
    rq_loop_timer late, early, never;
    char fired[8];
    _Atomic unsigned count;
};

static void fire(struct ticking *t, char c)
{
    t->fired[atomic_load(&t->count)] = c;
    atomic_fetch_add(&t->count, 1);
}

static void fire_late(rq_loop_timer *timer)
{
    fire(RQ_CONTAINER_OF(timer, struct ticking, late), 'l');
}

static void fire_early(rq_loop_timer *timer)
{
    struct ticking *t = RQ_CONTAINER_OF(timer, struct ticking, early);
    fire(t, 'e');
    rq_loop_timer_arm(t->loop, t->count < 3 ? timer : &t->late, 1000000);
}

static void fire_never(rq_loop_timer *timer)
{
    fire(RQ_CONTAINER_OF(timer, struct ticking, never), 'n');
}

static void run_arm(rq_task *task)
{
    struct ticking *t = RQ_CONTAINER_OF(task, struct ticking, arm);
    t->late.run = fire_late;
    t->early.run = fire_early;
    t->never.run = fire_never;
    rq_loop_timer_arm(t->loop, &t->never, 3000000);
    rq_loop_timer_arm(t->loop, &t->late, 5000000);
    /* re-armed to a later time, and once more later */
    rq_loop_timer_arm(t->loop, &t->late, UINT64_C(3600000000000));
    rq_loop_timer_arm(t->loop, &t->early, 2000000);
    rq_loop_timer_cancel(t->loop, &t->never);
}

static void timers_fire_in_order_and_can_be_moved(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct ticking t = {.arm = {NULL, run_arm}, .loop = rq_loops_get(loops, 0)};
    rq_lane_post(rq_loop_lane(t.loop), &t.arm);
    while (atomic_load(&t.count) < 4)
        usleep(1000);
    usleep(10000);
    stop_loops(loops);
    assert_string_equal(t.fired, "eeel");
}

struct retired {
    rq_epoch_node node;
    _Atomic bool *released;
};

static void release_retired(rq_epoch_node *node)
{
    atomic_store(RQ_CONTAINER_OF(node, struct retired, node)->released, true);
}

static void sleeping_loops_hold_no_epoch(void **state)
{
    (void)state;
    rq_epoch *epoch;
    assert_int_equal(rq_epoch_new(&epoch), RQ_OK);
    rq_loops *loops = start_loops(2, epoch);
    rq_loops_sync(loops);
    _Atomic bool released = false;
    struct retired r = {.released = &released};
    rq_epoch_retire(epoch, &r.node, release_retired);
    while (!atomic_load(&released)) { /* endless if a loop sleeps inside an epoch section */
        usleep(1000);
        rq_epoch_collect(epoch);
    }
    stop_loops(loops);
    rq_epoch_free(epoch);
}

/* ---- streams */

static void lines_come_back_whatever_their_cuts(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(2, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 0);
    int fd = peer_connect(rq_listener_port(l));
    peer_send(fd, "hel", 3);
    usleep(20000);
    peer_send(fd, "lo\nwor", 6);
    peer_expect(fd, "hello\n", 6);
    peer_send(fd, "ld\nquit\nignored\n", 16);
    peer_expect(fd, "world\nbye\n", 10);
    peer_expect_end(fd);
    close(fd);
    rq_listener_close(l);
    assert_int_equal(e.opened, 1);
    assert_int_equal(e.closed, 1);
    stop_loops(loops);
}

static rq_err work_open(void *ctx, rq_stream *s)
{
    struct long_work *w = ctx;
    w->loop = rq_stream_loop(s);
    rq_stream_set_user(s, w);
    return RQ_OK;
}

/* Handles one byte, and goes on when its response is written. */
static size_t work_data(rq_stream *s, rq_slice bytes)
{
    (void)bytes;
    work_part(rq_stream_user(s));
    assert_int_equal(rq_stream_write(s, "y", 1), RQ_OK);
    rq_stream_pause(s);
    return 1;
}

static void work_drain(rq_stream *s)
{
    if (rq_stream_paused(s)) rq_stream_resume(s);
}

static void work_close(rq_stream *s, rq_err why)
{
    struct long_work *w = rq_stream_user(s);
    (void)why;
    atomic_fetch_add(&w->closed, 1);
}

static const rq_stream_events work_events = {
    .on_open = work_open, .on_data = work_data, .on_drain = work_drain, .on_close = work_close};

static void pipelined_requests_of_a_stream_take_several_iterations(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct long_work work = {0};
    char requests[TURNS], responses[TURNS];
    rq_listener *l;
    rq_listener_options o = {.events = &work_events, .ctx = &work};
    assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
    memset(requests, 'x', sizeof requests);
    memset(responses, 'y', sizeof responses);
    int fd = peer_connect(rq_listener_port(l));
    peer_send(fd, requests, sizeof requests);
    peer_expect(fd, responses, sizeof responses);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
    assert_int_equal(work.done, TURNS);
    assert_in_range(work.done_at_timer, 1, TURNS - 1);
}

/* By the peer, the listener or the loops, while it has requests and waits for its turn. */
static void a_stream_with_requests_may_end_at_any_time(void **state)
{
    (void)state;
    static const struct linger reset = {.l_onoff = 1};
    for (int round = 0; round < 3; round++) {
        rq_loops *loops = start_loops(1, NULL);
        struct long_work work = {0};
        char requests[TURNS];
        rq_listener *l;
        rq_listener_options o = {.events = &work_events, .ctx = &work};
        assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
        memset(requests, 'x', sizeof requests);
        int fd = peer_connect(rq_listener_port(l));
        peer_send(fd, requests, sizeof requests);
        peer_expect(fd, "y", 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (round == 0) close(fd);
        if (round == 1) rq_listener_stop(l, true);
        if (round < 2) rq_loops_sync(loops);
        if (round == 1) close(fd);
        rq_listener_close(l);
        stop_loops(loops);
        if (round == 2) close(fd);
        assert_int_equal(work.closed, 1);
    }
}

static uint64_t warnings(const rq_log *log)
{
    uint64_t lines[RQ_LOG_LEVELS];
    rq_log_get_lines(log, lines);
    return lines[RQ_LOG_WARN];
}

static uint64_t iterations(rq_loops *loops)
{
    rq_loop_stats stats;
    rq_loop_get_stats(rq_loops_get(loops, 0), &stats);
    return stats.iterations;
}

/* The loop retries ten times a second, each time in a separate iteration, and logs the first
 * failure; a waiting connection is accepted as soon as descriptors are available. */
static void a_lack_of_descriptors_is_logged_once_a_minute(void **state)
{
    (void)state;
    static rq_log_sink sink = RQ_LOG_SINK_INIT;
    rq_log log = {.fd = open("/dev/null", O_WRONLY), .sink = &sink};
    rq_loops_options o = {.count = 1, .log = &log};
    rq_loops *loops;
    struct echo e = {0};
    struct rlimit all;
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    rq_listener *l = listen_echo(loops, &e, 0);
    /* shows that the listener has begun to accept */
    int before = peer_connect(rq_listener_port(l));
    peer_send(before, "x\n", 2);
    peer_expect(before, "x\n", 2);
    int fd = socket(AF_INET, SOCK_STREAM, 0), last = dup(0);
    close(last);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    struct rlimit few = {(rlim_t)last, all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(rq_listener_port(l)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    for (int ms = 0; ms < 30000 && warnings(&log) == 0; ms++)
        usleep(1000);
    uint64_t first = iterations(loops);
    for (int ms = 0; ms < 30000 && iterations(loops) < first + 10; ms++)
        usleep(1000);
    assert_true(iterations(loops) >= first + 10);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    peer_send(fd, "y\n", 2);
    peer_expect(fd, "y\n", 2);
    assert_int_equal(warnings(&log), 1);
    close(fd);
    close(before);
    rq_listener_close(l);
    stop_loops(loops);
    close(log.fd);
}

static void connections_over_the_limit_are_closed(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 1);
    int one = peer_connect(rq_listener_port(l));
    peer_send(one, "x\n", 2);
    peer_expect(one, "x\n", 2);
    int two = peer_connect(rq_listener_port(l));
    peer_expect_end(two);
    close(one);
    close(two);
    rq_listener_close(l);
    stop_loops(loops);
}

static void output_larger_than_the_kernel_takes_arrives(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 0);
    int fd = peer_connect(rq_listener_port(l));
    enum { LINE = 1000, LINES = 20000 };
    char *line = malloc(LINE);
    memset(line, 'y', LINE);
    line[LINE - 1] = '\n';
    peer_sender *sender = peer_send_many(fd, line, LINE, LINES); /* in a thread: nobody reads yet */
    usleep(100000);
    for (int i = 0; i < LINES; i++)
        peer_expect(fd, line, LINE);
    peer_sender_join(sender);
    free(line);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
}

/* A stream that answers any byte with a large response, and the largest number of its unsent
 * bytes. */
struct burst {
    _Atomic size_t most;
};

enum { BURST_PIECE = 50000, BURST_PIECES = 40 };

static rq_err burst_open(void *ctx, rq_stream *s)
{
    rq_stream_set_user(s, ctx);
    return RQ_OK;
}

static size_t burst_data(rq_stream *s, rq_slice bytes)
{
    static const char zeros[BURST_PIECE];
    struct burst *b = rq_stream_user(s);
    for (int i = 0; i < BURST_PIECES; i++) {
        assert_int_equal(rq_stream_write(s, zeros, sizeof zeros), RQ_OK);
        size_t pending = rq_stream_out_pending(s);
        if (pending > atomic_load(&b->most)) atomic_store(&b->most, pending);
    }
    return bytes.len;
}

static void burst_close(rq_stream *s, rq_err why)
{
    (void)s;
    (void)why;
}

static void much_output_leaves_before_the_iteration_ends(void **state)
{
    (void)state;
    static const rq_stream_events events = {
        .on_open = burst_open,
        .on_data = burst_data,
        .on_close = burst_close,
    };
    rq_loops *loops = start_loops(1, NULL);
    struct burst b = {0};
    rq_listener *l;
    rq_listener_options o = {.events = &events, .ctx = &b};
    assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
    int fd = peer_connect(rq_listener_port(l));
    static char zeros[BURST_PIECE];
    peer_send(fd, "x", 1);
    for (int i = 0; i < BURST_PIECES; i++)
        peer_expect(fd, zeros, sizeof zeros);
    assert_in_range(atomic_load(&b.most), BURST_PIECE, BURST_PIECE * BURST_PIECES - 1);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
}

enum { HUGE_OUTPUT = 3000000, SENT_AT_ONCE = 512 * 1024 };

static size_t huge_data(rq_stream *s, rq_slice bytes)
{
    struct burst *b = rq_stream_user(s);
    rq_buf huge = {0};
    assert_int_equal(rq_buf_reserve(&huge, HUGE_OUTPUT), RQ_OK);
    memset(huge.ptr, 0, HUGE_OUTPUT);
    huge.len = HUGE_OUTPUT;
    assert_int_equal(rq_stream_write_owned(s, &huge), RQ_OK);
    atomic_store(&b->most, rq_stream_out_pending(s));
    return bytes.len;
}

/* The kernel would take nearly all of the output in one write, which takes milliseconds. */
static void huge_output_is_sent_in_several_steps(void **state)
{
    (void)state;
    static const rq_stream_events events = {
        .on_open = burst_open,
        .on_data = huge_data,
        .on_close = burst_close,
    };
    rq_loops *loops = start_loops(1, NULL);
    struct burst b = {0};
    rq_listener *l;
    rq_listener_options o = {.events = &events, .ctx = &b};
    assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
    int fd = peer_connect(rq_listener_port(l));
    char *zeros = calloc(1, HUGE_OUTPUT);
    peer_send(fd, "x", 1);
    peer_expect(fd, zeros, HUGE_OUTPUT);
    assert_in_range(atomic_load(&b.most), HUGE_OUTPUT - SENT_AT_ONCE, HUGE_OUTPUT - 1);
    free(zeros);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
}

static void a_port_in_use_is_said(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(1, NULL);
    struct echo e = {0};
    rq_listener *l = listen_echo(loops, &e, 0), *other;
    rq_error why = {0};
    rq_listener_options o = {.events = &echo_events, .ctx = &e, .port = rq_listener_port(l)};
    assert_int_equal(rq_listener_open(loops, &o, &other, &why), RQ_E_EXISTS);
    assert_non_null(strstr(why.message, "cannot listen on 127.0.0.1:"));
    o.address = "not an address";
    why = (rq_error){0};
    assert_int_equal(rq_listener_open(loops, &o, &other, &why), RQ_E_INVALID);
    rq_listener_close(l);
    stop_loops(loops);
}

struct stuck {
    rq_task task;
    _Atomic bool go;
};

static void run_stuck(rq_task *task)
{
    struct stuck *s = RQ_CONTAINER_OF(task, struct stuck, task);
    while (!atomic_load(&s->go))
        usleep(1000);
}

static void the_pulse_stops_while_a_loop_is_stuck(void **state)
{
    (void)state;
    rq_loops *loops = start_loops(2, NULL);
    struct stuck s = {.task = {NULL, run_stuck}};
    for (int i = 0; i < 3; i++) {
        assert_true(rq_loops_pulse(loops, 0));
        rq_loops_sync(loops);
    }
    rq_lane_post(rq_loop_lane(rq_loops_get(loops, 1)), &s.task);
    assert_true(rq_loops_pulse(loops, 0)); /* earlier tasks have run */
    for (int i = 0; i < 5; i++)
        assert_false(rq_loops_pulse(loops, 0));
    assert_true(rq_loops_pulse(loops, UINT64_C(3600000000000))); /* the hour has not passed */
    atomic_store(&s.go, true);
    rq_loops_sync(loops);
    assert_true(rq_loops_pulse(loops, 0));
    stop_loops(loops);
}

/* ---- responses that are held back */

struct lease {
    _Atomic bool valid;
    _Atomic unsigned asked;
};

static bool is_valid(void *ctx)
{
    struct lease *l = ctx;
    atomic_fetch_add(&l->asked, 1);
    return atomic_load(&l->valid);
}

static void wait_until_asked(struct lease *l, unsigned times)
{
    unsigned before = atomic_load(&l->asked);
    while (atomic_load(&l->asked) < before + times)
        sched_yield();
}

static bool has_input(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void answers_are_held_while_their_condition_does_not_hold(void **state)
{
    (void)state;
    struct lease lease = {.valid = true};
    struct echo e = {0};
    rq_loops *loops;
    rq_loops_options o = {.count = 2};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    rq_loops_hold_answers(loops, is_valid, &lease);
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    rq_listener *l = listen_echo(loops, &e, 0);
    int fd = peer_connect(rq_listener_port(l)), other = peer_connect(rq_listener_port(l));
    peer_send(fd, "one\n", 4);
    peer_expect(fd, "one\n", 4);
    atomic_store(&lease.valid, false);
    peer_send(fd, "two\n", 4);
    peer_send(other, "quit\n", 5);
    wait_until_asked(&lease, 10); /* called repeatedly, without another event */
    peer_send(fd, "three\n", 6);
    wait_until_asked(&lease, 10);
    assert_false(has_input(fd));
    assert_false(has_input(other));
    atomic_store(&lease.valid, true);
    peer_expect(fd, "two\nthree\n", 10);
    peer_expect(other, "bye\n", 4);
    peer_expect_end(other);
    close(fd);
    close(other);
    rq_listener_close(l);
    stop_loops(loops);
}

static uint64_t iterations_of(rq_loops *loops)
{
    rq_loop_stats stats;
    rq_loop_get_stats(rq_loops_get(loops, 0), &stats);
    return stats.iterations;
}

/* A loop that answers are held on, with a listener. */
static rq_loops *start_held(struct lease *lease, struct echo *e, rq_listener **ret)
{
    rq_loops *loops;
    rq_loops_options o = {.count = 1};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    rq_loops_hold_answers(loops, is_valid, lease);
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    *ret = listen_echo(loops, e, 0);
    return loops;
}

static void wait_until_opened(struct echo *e, unsigned count)
{
    while (atomic_load(&e->opened) < count)
        sched_yield();
}

/* The condition is asked about once in a while, not once for each held stream. Some of them are closed meanwhile. */
static void held_streams_cost_nothing_until_they_may_answer(void **state)
{
    (void)state;
    enum { N = 64 };
    int fds[N];
    struct lease lease = {.valid = false};
    struct echo e = {0};
    rq_listener *l;
    rq_loops *loops = start_held(&lease, &e, &l);
    for (unsigned i = 0; i < N; i++) {
        fds[i] = peer_connect(rq_listener_port(l));
        peer_send(fds[i], "held\n", 5);
    }
    wait_until_opened(&e, N);
    wait_until_asked(&lease, 3 * N); /* all are held by then: each has asked once */
    uint64_t before = iterations_of(loops);
    wait_until_asked(&lease, N);
    /* The last question may belong to an iteration that is not counted yet. */
    assert_true(iterations_of(loops) - before + 2 >= N);
    for (unsigned i = 0; i < N; i += 2)
        close(fds[i]);
    while (atomic_load(&e.closed) < N / 2)
        sched_yield();
    atomic_store(&lease.valid, true);
    for (unsigned i = 1; i < N; i += 2) {
        peer_expect(fds[i], "held\n", 5);
        close(fds[i]);
    }
    rq_listener_close(l);
    stop_loops(loops);
}

/* The peer reads what the kernel has of its output: the socket would take more, but nothing is sent. */
static void a_held_stream_whose_socket_takes_bytes_lets_the_loop_sleep(void **state)
{
    (void)state;
    enum { LEN = 16 << 20 };
    const int few = 64 << 10;
    struct lease lease = {.valid = true};
    struct echo e = {0};
    rq_listener *l;
    rq_loops *loops = start_held(&lease, &e, &l);
    char *sent = malloc(LEN), *got = malloc(LEN);
    assert_true(sent != NULL && got != NULL);
    memset(sent, 'x', LEN);
    sent[LEN - 1] = '\n';
    int fd = peer_connect(rq_listener_port(l));
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    peer_send(fd, sent, LEN); /* a line, which comes back whole, and more than the kernel takes */
    while (!has_input(fd))
        sched_yield();
    atomic_store(&lease.valid, false);
    unsigned asked = atomic_load(&lease.asked);
    size_t len = 0;
    /* Until a part of the output is held. */
    while (atomic_load(&lease.asked) < asked + 3) {
        ssize_t n = recv(fd, got + len, LEN - len, MSG_DONTWAIT);
        if (n > 0) len += (size_t)n;
    }
    uint64_t before = iterations_of(loops);
    wait_until_asked(&lease, 20);
    assert_true(iterations_of(loops) - before < 1000); /* about one for each question */
    atomic_store(&lease.valid, true);
    for (ssize_t n; len < LEN; len += (size_t)n)
        assert_true((n = recv(fd, got + len, LEN - len, 0)) > 0);
    assert_memory_equal(sent, got, LEN);
    free(sent);
    free(got);
    close(fd);
    rq_listener_close(l);
    stop_loops(loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_one_thread_run_in_order),
        cmocka_unit_test(tasks_hop_between_loops),
        cmocka_unit_test(a_lane_waits_for_a_descriptor),
        cmocka_unit_test(a_task_posted_by_a_task_runs_in_the_same_iteration),
        cmocka_unit_test(many_tasks_of_another_thread_take_several_iterations),
        cmocka_unit_test(timers_fire_in_order_and_can_be_moved),
        cmocka_unit_test(sleeping_loops_hold_no_epoch),
        cmocka_unit_test(lines_come_back_whatever_their_cuts),
        cmocka_unit_test(pipelined_requests_of_a_stream_take_several_iterations),
        cmocka_unit_test(a_stream_with_requests_may_end_at_any_time),
        cmocka_unit_test(a_lack_of_descriptors_is_logged_once_a_minute),
        cmocka_unit_test(connections_over_the_limit_are_closed),
        cmocka_unit_test(output_larger_than_the_kernel_takes_arrives),
        cmocka_unit_test(much_output_leaves_before_the_iteration_ends),
        cmocka_unit_test(huge_output_is_sent_in_several_steps),
        cmocka_unit_test(a_port_in_use_is_said),
        cmocka_unit_test(the_pulse_stops_while_a_loop_is_stuck),
        cmocka_unit_test(answers_are_held_while_their_condition_does_not_hold),
        cmocka_unit_test(held_streams_cost_nothing_until_they_may_answer),
        cmocka_unit_test(a_held_stream_whose_socket_takes_bytes_lets_the_loop_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
