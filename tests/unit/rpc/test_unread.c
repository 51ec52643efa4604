/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that do not read: the memory of their responses, which clients wait for this memory, and
 * which are disconnected. Memory is measured in the allocator; charges are not used. */
#include "rpc_peer.h"
#include "toy_service.h"

#include "../base/unit.h"

#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

static const rpc_hello hello = {
    .service = "ClientService", .codec = CODEC_KEYVALUE, .version = "2.6.1"};

/* ---- memory */

struct meter {
    pthread_t thread;
    _Atomic bool stop;
    size_t before;
    size_t most; /* highest value above `before` */
};

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void *meter_main(void *arg)
{
    struct meter *m = arg;
    while (!atomic_load(&m->stop)) {
        size_t now = in_use();
        if (now > m->before && now - m->before > m->most) m->most = now - m->before;
        usleep(500);
    }
    return NULL;
}

static void meter_begin(struct meter *m)
{
    *m = (struct meter){.before = in_use()};
    assert_int_equal(pthread_create(&m->thread, NULL, meter_main, m), 0);
}

static size_t meter_end(struct meter *m)
{
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    return m->most;
}

/* ---- peers */

/* With a small receive window the kernel buffers little. (Reading with such a window is very
 * slow.) */
static int connect_small(toy *t)
{
    int fd = rpc_connect(t->port, &hello);
    int bytes = 8192;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

static void ask(int fd, const char *row, uint32_t count)
{
    rq_buf b = {0};
    for (uint32_t i = 0; i < count; i++)
        rpc_put_get(&b, i, "Get", row);
    rpc_send(fd, &b);
}

/* Another client's calls are answered, one after another. */
static void others_are_served(toy *t, unsigned count)
{
    int fd = rpc_connect(t->port, &hello);
    for (unsigned i = 0; i < count; i++) {
        ask(fd, "row", 1);
        rpc_expect_row(fd, 0, "row");
    }
    peer_close(fd);
}

static void read_answers(int fd, uint32_t count, size_t bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        rpc_answer a;
        rpc_read(fd, &a);
        assert_null(a.header->exception);
        assert_true(a.block.len > bytes);
        rpc_answer_clear(&a);
    }
}

/* Waits until the condition holds; fails after a long time. */
#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        for (int left = 60000; !(condition); left--) {                                             \
            assert_true(left > 0);                                                                 \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

/* ---- the tests */

static void pipelined(toy *t, const char *row, size_t bytes)
{
    struct meter m;
    enum { N = 100 };
    toy_start(t, &(toy_options){.loops = 1, .answers_bytes = 4 * MB});
    meter_begin(&m);
    int fd = rpc_connect(t->port, &hello);
    ask(fd, row, N);
    EVENTUALLY(rq_budget_used(t->unread) > MB / 2);
    others_are_served(t, 500);
    read_answers(fd, N, bytes);
    size_t most = meter_end(&m);
    /* Two budgets, of responses being made and of unread ones, each exceeded by its reserve and by one response; 4 MB for
     * the requests and for the test itself. */
    assert_in_range(most, 0, 2 * (5 * MB + 2 * bytes) + 4 * MB);
    peer_close(fd);
}

static void answers_made_in_slices_wait_for_their_peer(void **state)
{
    pipelined(*state, "grow:1000000", 1000000);
}

static void answers_made_at_once_wait_for_their_peer(void **state)
{
    pipelined(*state, "big:1000000", 1000000);
}

static void an_answer_larger_than_everything_passes(void **state)
{
    toy *t = *state;
    toy_start(t, &(toy_options){.loops = 1, .answers_bytes = MB});
    int fd = rpc_connect(t->port, &hello);
    ask(fd, "grow:12000000", 2);
    read_answers(fd, 2, 12000000);
    ask(fd, "big:12000000", 2);
    read_answers(fd, 2, 12000000);
    peer_close(fd);
}

static void many_peers_that_read_nothing(void **state)
{
    toy *t = *state;
    struct meter m;
    enum { PEERS = 60 };
    int fds[PEERS];
    toy_start(t, &(toy_options){.loops = 2, .answers_bytes = 4 * MB});
    meter_begin(&m);
    for (int i = 0; i < PEERS; i++) {
        fds[i] = connect_small(t);
        ask(fds[i], i % 2 == 0 ? "grow:3000000" : "big:3000000", 10);
    }
    EVENTUALLY(rq_budget_used(t->unread) > 4 * MB);
    others_are_served(t, 500);
    /* The connections that occupy the memory are closed because another client waits: a large
     * response arrives, too. */
    int fd = rpc_connect(t->port, &hello);
    ask(fd, "grow:3000000", 1);
    rpc_answer a;
    rpc_read(fd, &a);
    rpc_answer_clear(&a); /* the response, or an exception because of the lack of memory */
    peer_close(fd);
    size_t most = meter_end(&m);
    assert_in_range(most, 0, 2 * 5 * MB + 4 * 6 * MB + 4 * MB);
    for (int i = 0; i < PEERS; i++)
        peer_close(fds[i]);
    EVENTUALLY(rq_budget_used(t->unread) == 0 && rq_budget_used(t->answers) == 0);
}

/* Small responses are always sent; when they have used up the reserve, the connections with the
 * oldest unread responses are closed. */
static void small_answers_take_the_reserve_and_then_the_oldest_go(void **state)
{
    toy *t = *state;
    enum { PEERS = 80 };
    int fds[PEERS];
    toy_start(t, &(toy_options){.loops = 2, .answers_bytes = 2 * MB});
    for (int i = 0; i < PEERS; i++) {
        fds[i] = connect_small(t);
        ask(fds[i], "big:40000", 300);
        others_are_served(t, 5);
    }
    EVENTUALLY(rq_rpc_server_stats(t->server).refused > 0);
    others_are_served(t, 100);
    assert_in_range(rq_budget_used(t->unread), 0, 2 * MB + MB / 2 + MB);
    for (int i = 0; i < PEERS; i++)
        peer_close(fds[i]);
}

static void calls_of_a_peer_that_has_gone_end(void **state)
{
    toy *t = *state;
    toy_start(t, &(toy_options){.loops = 1, .answers_bytes = 2 * MB});
    for (int round = 0; round < 20; round++) {
        int fd = connect_small(t);
        ask(fd, round % 2 == 0 ? "grow:1000000" : "big:1000000", 50);
        if (round % 3 == 0) EVENTUALLY(rq_budget_used(t->unread) > 0);
        peer_close(fd);
    }
    /* No call is in flight before the loop has read the last requests, either. */
    EVENTUALLY(rq_rpc_server_stats(t->server).connections == 0 &&
               rq_rpc_server_stats(t->server).calls_in_flight == 0 &&
               rq_budget_used(t->answers) == 0);
}

static void draining_does_not_wait_for_peers_that_do_not_read(void **state)
{
    toy *t = *state;
    enum { PEERS = 20 };
    int fds[PEERS];
    toy_start(t, &(toy_options){.loops = 2, .answers_bytes = 4 * MB});
    for (int i = 0; i < PEERS; i++) {
        fds[i] = connect_small(t);
        ask(fds[i], "grow:1000000", 50);
    }
    EVENTUALLY(rq_budget_used(t->unread) > MB);
    assert_true(rq_rpc_server_drain(t->server, 60000));
    for (int i = 0; i < PEERS; i++)
        peer_close(fds[i]);
}

static int begin(void **state)
{
    *state = calloc(1, sizeof(toy));
    return *state == NULL ? -1 : 0;
}

/* Also after a failed test, whose threads would disturb the next one. */
static int end(void **state)
{
    toy *t = *state;
    peer_end();
    if (t->server != NULL) toy_stop(t);
    free(t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
        T(answers_made_in_slices_wait_for_their_peer),
        T(answers_made_at_once_wait_for_their_peer),
        T(an_answer_larger_than_everything_passes),
        T(many_peers_that_read_nothing),
        T(small_answers_take_the_reserve_and_then_the_oldest_go),
        T(calls_of_a_peer_that_has_gone_end),
        T(draining_does_not_wait_for_peers_that_do_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
