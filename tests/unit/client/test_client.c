/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a cluster that is a thread of this test. The cluster sends scripted responses, truncates them at
 * each byte, sends nothing, or closes connections with calls in flight. */
#include "fake.h"

#include "base/macros.h"
#include "base/pb.h"
#include "client/call.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE ((size_t)64 << 20)

static void be_silent(fake *f, int fd)
{
    (void)f;
    wait_for_end(fd);
}

/* Answers the registry's preamble, or two calls in turn on an RPC connection. */
static void serve_rpc(fake *f, int fd)
{
    char preamble[6];
    if (!fake_read(fd, preamble, sizeof preamble)) return;
    if (memcmp(preamble, "Regist", 6) == 0) {
        if (fake_send(f, fd, &f->answers[0])) wait_for_end(fd);
        return;
    }
    bool more = skip_frame(fd);
    for (int i = 1; i <= 2 && more; i++)
        more = skip_frame(fd) && fake_send(f, fd, &f->answers[i]);
    if (more) wait_for_end(fd);
}

/* ---- the registry ------------------------------------------------------------------------------ */

static void zookeepers_answers_are_cut_at_each_byte(void **state)
{
    (void)state;
    size_t len = SIZE_MAX;
    for (size_t limit = 0; limit <= len; limit++) {
        fake f = {.limit = limit};
        rq_client *c;
        rq_error why;
        fake_start(&f, serve_zookeeper);
        put_zookeeper(&f.answers[0], 1, 2);
        len = f.answers[0].len;
        fake_run(&f);
        rq_err rc = open_by(&f, true, &c, &why);
        if (limit < len) {
            assert_int_equal(rc, RQ_E_IO);
            assert_non_null(strstr(why.message, f.at)); /* "closed the connection", or a reset */
        } else {
            uint16_t port;
            assert_int_equal(rc, RQ_OK);
            assert_string_equal(rq_client_cluster_id(c), "the-cluster");
            assert_string_equal(rq_client_master_host(c, &port), "127.0.0.1");
            assert_int_equal(port, 2);
        }
        rq_client_close(c);
        fake_stop(&f);
    }
}

static void a_bootstrap_servers_answers_are_cut_at_each_byte(void **state)
{
    (void)state;
    size_t len = SIZE_MAX;
    for (size_t limit = 0; limit <= len; limit++) {
        fake f = {.limit = limit};
        rq_client *c;
        rq_error why;
        rq_buf b = {0};
        size_t at;
        fake_start(&f, serve_rpc);
        assert_int_equal(rq_pb_put_bytes(&b, 1, RQ_SLICE_LIT("the-cluster")), RQ_OK);
        put_response(&f.answers[0], 0, &b);
        rq_buf_reset(&b);
        assert_int_equal(rq_pb_begin(&b, 1, &at), RQ_OK);
        put_server(&b, 2, "127.0.0.1", 1);
        assert_int_equal(rq_pb_end(&b, at), RQ_OK);
        put_response(&f.answers[1], 0, &b);
        rq_buf_reset(&b);
        put_server(&b, 1, "127.0.0.1", 2);
        put_response(&f.answers[2], 0, &b);
        rq_buf_clear(&b);
        len = f.answers[0].len + f.answers[1].len + f.answers[2].len;
        fake_run(&f);
        assert_int_equal(open_by(&f, false, &c, &why), limit < len ? RQ_E_IO : RQ_OK);
        if (limit == len) assert_string_equal(rq_client_cluster_id(c), "the-cluster");
        rq_client_close(c);
        fake_stop(&f);
    }
}

static void an_answer_above_the_limit_is_refused(void **state)
{
    (void)state;
    fake f = {.limit = SIZE_MAX};
    rq_client *c;
    rq_error why;
    fake_start(&f, serve_zookeeper);
    assert_int_equal(rq_buf_append_be32(&f.answers[0], UINT32_MAX), RQ_OK);
    fake_run(&f);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_E_MALFORMED);
    assert_non_null(strstr(why.message, "invalid response of 4294967295 bytes"));
    fake_stop(&f);
}

static void a_silent_registry_is_given_up(void **state)
{
    (void)state;
    for (int by_zookeeper = 0; by_zookeeper < 2; by_zookeeper++) {
        char expected[100], unconnected[100];
        fake f = {0};
        rq_client *c = NULL;
        rq_error why = {0};
        fake_start(&f, be_silent);
        fake_run(&f);
        rq_client_options o = {.rpc_timeout_ms = 50};
        *(by_zookeeper ? &o.zookeeper : &o.bootstrap) = f.at;
        assert_int_equal(rq_client_open(&o, &c, &why), RQ_E_IO);
        snprintf(expected, sizeof expected, "cannot read from %s: no response in time", f.at);
        /* If this thread was stopped meanwhile, it has not seen that it was connected. */
        snprintf(unconnected, sizeof unconnected, "cannot connect to %s: no response in time",
                 f.at);
        if (strcmp(why.message, unconnected) != 0) assert_string_equal(why.message, expected);
        fake_stop(&f);
    }
}

/* A list of addresses: two where nobody listens, one where nobody answers, one that leads to the cluster. */
static void one_of_several_addresses_answers(void **state)
{
    (void)state;
    enum { ROUNDS = 12, LONGEST_MS = 200000 };
    fake dead = {0}, silent = {0}, f = {.limit = SIZE_MAX};
    char list[200];
    fake_start(&dead, be_silent);
    close(dead.fd);
    fake_start(&silent, be_silent);
    fake_run(&silent);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], 1234, 2345);
    fake_run(&f);
    snprintf(list, sizeof list, "%s,%s,%s,%s", dead.at, silent.at, f.at, dead.at);
    for (int i = 0; i < ROUNDS; i++) { /* the first one is chosen at random */
        rq_client *c = NULL;
        rq_error why = {0};
        uint16_t port;
        rq_client_options o = {.zookeeper = list, .rpc_timeout_ms = 400};
        /* If this process pauses, the cluster's address is given up, too, unless it has more time. */
        while (rq_client_open(&o, &c, &why) != RQ_OK)
            if ((o.rpc_timeout_ms *= 2) > LONGEST_MS) fail_msg("%s", why.message);
        (void)rq_client_master_host(c, &port);
        assert_int_equal(port, 2345);
        rq_client_close(c);
    }
    for (int by_zookeeper = 0; by_zookeeper < 2; by_zookeeper++) {
        rq_client *c = NULL;
        rq_error why = {0};
        rq_client_options o = {.rpc_timeout_ms = 100};
        snprintf(list, sizeof list, "%s,%s,%s", dead.at, silent.at, dead.at);
        *(by_zookeeper ? &o.zookeeper : &o.bootstrap) = list;
        assert_int_equal(rq_client_open(&o, &c, &why), RQ_E_IO);
        assert_non_null(strstr(why.message, "none of 3 addresses leads to the cluster: "));
    }
    fake_stop(&f);
    fake_stop(&silent);
}

static void lists_of_addresses_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"a:1", "a:1,b:65535", "[::1]:5,a:1", "a:1,a:1"};
    static const struct {
        const char *list, *wrong;
    } bad[] = {{"", ""},
               {"a", "a"},
               {"a:1,", ""},
               {",a:1", ""},
               {"a:1,,b:2", ""},
               {"a:1,b", "b"},
               {"a:1 ,b:2", "a:1 "},
               {"a:0,b:1", "a:0"},
               {"a:65536", "a:65536"},
               {"a:1,::1", "::1"},
               {"a:1;b:2", "a:1;b:2"}};
    rq_slice wrong;
    for (size_t i = 0; i < RQ_ARRAY_LEN(good); i++)
        assert_true(rq_client_are_addresses(good[i], NULL));
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        assert_false(rq_client_are_addresses(bad[i].list, &wrong));
        assert_true(rq_slice_eq(wrong, rq_slice_cstr(bad[i].wrong)));
    }
    char *many = malloc(5 * 100000), *at = many;
    for (int i = 0; i < 100000; i++)
        at += sprintf(at, "a:1,");
    at[-1] = '\0';
    assert_true(rq_client_are_addresses(many, NULL));
    free(many);
}

struct ticking {
    rq_client_timer timer;
    rq_client *client;
    unsigned count;
};

static void tick(rq_client_timer *timer)
{
    struct ticking *t = RQ_CONTAINER_OF(timer, struct ticking, timer);
    t->count++;
    rq_client_timer_arm(t->client, timer, SECOND_NS / 100);
}

static void note_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    (void)op;
    *(rq_err *)ctx = r->err;
}

/* When the server of hbase:meta has ended and ZooKeeper does not answer, only the operations that
 * need them wait. */
static void other_work_goes_on_while_the_registry_is_asked(void **state)
{
    (void)state;
    fake nobody = {0}, f = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_table *table;
    rq_op *op;
    rq_error why;
    rq_err end = RQ_E_AGAIN;
    rq_get get = {.row = RQ_SLICE_LIT("row")};
    fake_start(&nobody, be_silent);
    close(nobody.fd);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], nobody.port, nobody.port);
    fake_run(&f);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
    atomic_store(&f.is_silent, true);
    assert_int_equal(rq_client_table_get(c, "t", &table), RQ_OK);
    assert_int_equal(rq_op_new(c, 0, &end, &op), RQ_OK);
    assert_int_equal(rq_op_get(op, table, &get, note_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (atomic_load(&f.accepted) < 2 && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS / 100);
    struct ticking t = {.client = c, .timer.run = tick};
    rq_client_timer_arm(c, &t.timer, 0);
    while (end == RQ_E_AGAIN && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS);
    assert_int_equal(end, RQ_E_IO);
    /* If a poll waited for the registry, the timer would run only twice: before and after the wait. */
    assert_true(t.count > 2);
    rq_op_free(op);
    rq_client_close(c);
    fake_stop(&f);
}

static void note_priorities(fake *f, int fd)
{
    char preamble[6];
    uint32_t priority;
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd)) return;
    while (read_header(fd, 6, &priority) == RQ_OK) {
        unsigned at = atomic_load(&f->priority_count);
        if (at == RQ_ARRAY_LEN(f->priorities)) return;
        atomic_store(&f->priorities[at], priority);
        atomic_store(&f->priority_count, at + 1);
    }
}

static void no_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    (void)op, (void)ctx, (void)index, (void)r;
}

/* HBASE: a call has its request's priority, a Multi the highest of its actions, other calls the
 * table's. */
static void calls_have_the_priority_of_their_requests(void **state)
{
    (void)state;
    static const uint32_t expected[] = {200, 7, 9, 8, 11, 10};
    fake f = {.limit = SIZE_MAX}, server = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_table *table;
    rq_op *ops[RQ_ARRAY_LEN(expected)];
    rq_error why;
    rq_err end;
    rq_get get = {.row = RQ_SLICE_LIT("row")};
    rq_mutate put[2] = {{.kind = RQ_MUTATE_PUT, .row = get.row},
                        {.kind = RQ_MUTATE_PUT, .row = get.row}};
    rq_scan scan = {.priority = 10};
    fake_start(&server, note_priorities);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], server.port, server.port);
    fake_run(&server);
    fake_run(&f);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
    assert_int_equal(rq_client_table_get(c, "hbase:meta", &table), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(ops); i++)
        assert_int_equal(rq_op_new(c, 0, &end, &ops[i]), RQ_OK);
    /* a system table's priority */
    assert_int_equal(rq_op_get(ops[0], table, &get, note_end), RQ_OK);
    get.priority = 7;
    assert_int_equal(rq_op_get(ops[1], table, &get, note_end), RQ_OK);
    put[0].priority = 9;
    rq_op_batch_begin(ops[2], table);
    assert_int_equal(rq_op_batch_mutate(ops[2], &put[0]), RQ_OK);
    assert_int_equal(rq_op_batch_get(ops[2], &get), RQ_OK);
    assert_int_equal(rq_op_batch_run(ops[2], no_item, note_end), RQ_OK);
    put[1].priority = 8;
    assert_int_equal(rq_op_mutate(ops[3], table, &put[1], note_end), RQ_OK);
    put[1].priority = 11;
    assert_int_equal(rq_op_mutate_row(ops[4], table, put, 2, (rq_slice){0}, note_end), RQ_OK);
    assert_int_equal(rq_op_scan(ops[5], table, &scan, no_item, note_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (atomic_load(&server.priority_count) < RQ_ARRAY_LEN(expected) &&
           rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS / 100);
    for (size_t i = 0; i < RQ_ARRAY_LEN(expected); i++)
        assert_int_equal(atomic_load(&server.priorities[i]), expected[i]);
    rq_client_stop(c);
    for (size_t i = 0; i < RQ_ARRAY_LEN(ops); i++)
        rq_op_free(ops[i]);
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(&server);
}

/* IsSnapshotDoneResponse { done 1 }: done after `calls` other answers. */
static void serve_snapshot(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf message = {0}, answer = {0};
        if (f->calls > 0)
            f->calls--;
        else
            assert_int_equal(rq_pb_put_number(&message, 1, 1), RQ_OK);
        put_response(&answer, id, &message);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&message);
        rq_buf_clear(&answer);
    }
}

static rq_err wait_for_snapshot(fake *master, uint32_t wait_ms, rq_client_failure *failure)
{
    fake f = {.limit = SIZE_MAX};
    rq_client *c = NULL;
    rq_error why = {0};
    fake_start(master, serve_snapshot);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], master->port, master->port);
    fake_run(master);
    fake_run(&f);
    rq_client_options o = {.zookeeper = f.at, .rpc_timeout_ms = 20000, .wait_ms = wait_ms};
    assert_int_equal(rq_client_open(&o, &c, &why), RQ_OK);
    rq_err rc = rq_client_wait_snapshot(c, (rq_slice){0}, failure);
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(master);
    return rc;
}

static void a_snapshot_is_waited_for_as_long_as_the_client_may(void **state)
{
    (void)state;
    fake master = {.limit = SIZE_MAX, .calls = 2}, never = {.limit = SIZE_MAX, .calls = UINT_MAX};
    rq_client_failure failure;
    assert_int_equal(wait_for_snapshot(&master, 120000, &failure), RQ_OK);
    assert_int_equal(master.calls, 0);
    int64_t begun = rq_client_now_ns();
    assert_int_equal(wait_for_snapshot(&never, 100, &failure), RQ_E_TIMEOUT);
    int64_t took = rq_client_now_ns() - begun;
    assert_string_equal(failure.text, "the snapshot is still being taken");
    assert_true(took >= SECOND_NS / 10 && took < 60 * SECOND_NS); /* not the two minutes */
}

static void a_client_is_stopped_while_it_asks(void **state)
{
    (void)state;
    fake nobody = {0}, f = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_table *table;
    rq_op *op;
    rq_error why;
    rq_err end = RQ_E_AGAIN;
    rq_get get = {.row = RQ_SLICE_LIT("row")};
    fake_start(&nobody, be_silent);
    close(nobody.fd);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], nobody.port, nobody.port);
    fake_run(&f);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
    atomic_store(&f.is_silent, true);
    assert_int_equal(rq_client_table_get(c, "t", &table), RQ_OK);
    assert_int_equal(rq_op_new(c, 0, &end, &op), RQ_OK);
    assert_int_equal(rq_op_get(op, table, &get, note_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (atomic_load(&f.accepted) < 2 && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS / 100);
    rq_client_stop(c);
    rq_client_poll(c, 0);
    assert_int_equal(end, RQ_E_CLOSED);
    rq_op_free(op);
    rq_client_close(c);
    fake_stop(&f);
}

/* ---- calls in flight --------------------------------------------------------------------------- */

struct asked {
    rq_client_question question;
    unsigned ended;
    rq_err rc;
};

static void answered(rq_client_question *q, rq_err rc, rq_slice message)
{
    struct asked *a = RQ_CONTAINER_OF(q, struct asked, question);
    (void)message;
    a->ended++;
    a->rc = rc;
}

/* Reads some calls, sends its scripted bytes, and ends. */
static void die(fake *f, int fd)
{
    char preamble[6];
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd)) return;
    for (unsigned i = 0; i < f->calls; i++)
        if (!skip_frame(fd)) return;
    (void)fake_send(f, fd, &f->answers[0]);
}

/* Runs this many calls in flight; each ends once. */
static void ask_until_it_dies(fake *master, size_t count)
{
    fake f = {.limit = SIZE_MAX};
    rq_client *c;
    rq_error why;
    struct asked *asked = calloc(count, sizeof *asked);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], 1, master->port);
    fake_run(&f);
    fake_run(master);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        asked[i].question.done = answered;
        assert_int_equal(
            rq_client_ask_master(c, "IsMasterRunning", (rq_slice){0}, &asked[i].question), RQ_OK);
    }
    int64_t until = rq_client_now_ns() + 60 * SECOND_NS;
    while (asked[count - 1].ended == 0 && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS);
    rq_client_poll(c, 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(asked[i].ended, 1);
        assert_int_equal(asked[i].rc, RQ_E_IO);
    }
    assert_int_equal(rq_client_connects(c), 1);
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(master);
    free(asked);
}

static void ten_thousand_calls_end_with_their_server(void **state)
{
    (void)state;
    fake master = {.calls = 5000};
    fake_start(&master, die);
    ask_until_it_dies(&master, 10000);
}

/* The server sends bytes that are no response, a response to an unknown call, a response longer than
 * the limit, or nothing. */
static void a_server_that_talks_nonsense_is_left(void **state)
{
    (void)state;
    static const uint8_t nonsense[] = {0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t too_long[] = {0xff, 0xff, 0xff, 0xff, 0};
    for (int way = 0; way < 4; way++) {
        fake master = {.calls = 1, .limit = SIZE_MAX};
        rq_buf empty = {0};
        fake_start(&master, die);
        if (way == 0) assert_int_equal(rq_buf_append(&master.answers[0], nonsense, 8), RQ_OK);
        if (way == 1) put_response(&master.answers[0], 77, &empty);
        if (way == 2) assert_int_equal(rq_buf_append(&master.answers[0], too_long, 5), RQ_OK);
        ask_until_it_dies(&master, 3);
    }
}

/* Reads nothing until the test ends. */
static void read_nothing(fake *f, int fd)
{
    struct pollfd listens = {.fd = f->fd};
    (void)fd;
    while (poll(&listens, 1, -1) < 0 && errno == EINTR)
        ;
}

/* So many calls, which end with a time-out or with their connection. The time-out of the client is longer: other things
 * must not end by it. */
static void ask_in_vain(rq_client *c, size_t count, rq_slice message)
{
    struct asked *asked = calloc(count, sizeof *asked);
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        asked[i].question = (rq_client_question){
            .done = answered, .until_ns = rq_client_now_ns() + 3 * SECOND_NS / 10};
        assert_int_equal(rq_client_ask_master(c, "IsMasterRunning", message, &asked[i].question),
                         RQ_OK);
    }
    int64_t until = rq_client_now_ns() + 60 * SECOND_NS;
    while (ended < count && rq_client_now_ns() < until) {
        rq_client_poll(c, SECOND_NS / 100);
        while (ended < count && asked[ended].ended > 0)
            ended++;
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(asked[i].ended, 1);
        assert_true(asked[i].rc == RQ_E_CALL_TIMEOUT || asked[i].rc == RQ_E_IO);
    }
    free(asked);
}

/* Otherwise the client would keep its calls forever, and its requests if the server does not
 * read. */
static void a_server_that_hangs_is_left(void **state)
{
    (void)state;
    static const uint8_t megabyte[1 << 20];
    const struct {
        void (*serve)(fake *f, int fd);
        size_t count;
        rq_slice message;
    } ways[] = {{be_silent, 3000, {0}}, {read_nothing, 100, {megabyte, sizeof megabyte}}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(ways); i++) {
        fake f = {.limit = SIZE_MAX}, master = {.limit = SIZE_MAX};
        rq_client *c = NULL;
        rq_error why = {0};
        fake_start(&master, ways[i].serve);
        fake_start(&f, serve_zookeeper);
        put_zookeeper(&f.answers[0], 1, master.port);
        fake_run(&master);
        fake_run(&f);
        assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
        for (int round = 0; round < 2; round++) /* few of them are no reason */
            ask_in_vain(c, 1, (rq_slice){0});
        assert_int_equal(rq_client_connects(c), 1);
        ask_in_vain(c, ways[i].count, ways[i].message);
        ask_in_vain(c, 1, (rq_slice){0});
        assert_int_equal(rq_client_connects(c), 2);
        rq_client_close(c);
        fake_stop(&f);
        fake_stop(&master);
    }
}

/* Sends a large message with one field. */
static void serve_large_answer(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    rq_buf message = {0}, answer = {0};
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd) ||
        read_header(fd, 1, &id) != RQ_OK)
        return;
    uint8_t *zeros = calloc(1, LARGE);
    assert_int_equal(rq_pb_put_bytes(&message, 1, rq_slice_of(zeros, LARGE)), RQ_OK);
    free(zeros);
    put_response(&answer, id, &message);
    rq_buf_clear(&message);
    bool sent = fake_send(f, fd, &answer);
    rq_buf_clear(&answer);
    atomic_fetch_add(&f->priority_count, 1);
    if (sent) wait_for_end(fd);
}

/* Allocated bytes; 0 with AddressSanitizer. */
static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* The buffer of a large response is freed when its connection is idle. */
static void a_large_answers_memory_is_not_kept(void **state)
{
    (void)state;
    fake f = {.limit = SIZE_MAX}, master = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_failure failure;
    rq_buf answer = {0};
    rq_error why;
    fake_start(&master, serve_large_answer);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], 1, master.port);
    fake_run(&master);
    fake_run(&f);
    assert_int_equal(open_by(&f, true, &c, &why), RQ_OK);
    assert_int_equal(rq_client_master(c, "Any", (rq_slice){0}, &answer, &failure), RQ_OK);
    assert_true(answer.len > LARGE);
    rq_buf_clear(&answer);
    while (atomic_load(&master.priority_count) == 0) /* the fake's thread has freed the response */
        sched_yield();
    size_t kept = allocated();
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(&master);
    size_t without = allocated();
    assert_true(kept < without + LARGE);
}

/* Serves one call; then closes the connection, as a server closes an idle one. */
static void serve_one_call(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    rq_buf none = {0}, answer = {0};
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd) ||
        read_header(fd, 1, &id) != RQ_OK)
        return;
    put_response(&answer, id, &none);
    (void)fake_send(f, fd, &answer);
    rq_buf_clear(&answer);
    shutdown(fd, SHUT_RDWR);
    atomic_fetch_add(&f->priority_count, 1);
}

/* The client does not poll between the calls, so it has not seen the close. */
static void a_call_after_an_idle_time_connects_anew(void **state)
{
    (void)state;
    enum { CALLS = 5, IDLE_NS = 20000000 };
    fake f = {.limit = SIZE_MAX}, master = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_failure failure;
    rq_error why = {0};
    fake_start(&master, serve_one_call);
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], 1, master.port);
    fake_run(&master);
    fake_run(&f);
    rq_client_options o = {.zookeeper = f.at, .rpc_timeout_ms = 20000};
    assert_int_equal(rq_client_open(&o, &c, &why), RQ_OK);
    for (unsigned i = 1; i <= CALLS; i++) {
        assert_int_equal(rq_client_master(c, "Any", (rq_slice){0}, NULL, &failure), RQ_OK);
        while (atomic_load(&master.priority_count) < i)
            sched_yield();
        for (int64_t now = rq_client_now_ns(); rq_client_now_ns() < now + IDLE_NS;)
            sched_yield();
    }
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(&master);
    assert_int_equal(master.accepted, CALLS);
}

/* More servers than the number of connections that the client keeps for services with few calls. */
static void connections_that_are_not_kept_are_closed(void **state)
{
    (void)state;
    enum { SERVERS = 6, ROUNDS = 3 };
    fake f = {.limit = SIZE_MAX}, servers[SERVERS] = {0};
    rq_client *c = NULL;
    rq_client_failure failure;
    rq_buf answer = {0};
    rq_error why = {0};
    fake_start(&f, serve_zookeeper);
    put_zookeeper(&f.answers[0], 1, 2);
    fake_run(&f);
    for (size_t i = 0; i < SERVERS; i++) {
        servers[i].limit = SIZE_MAX;
        fake_start(&servers[i], serve_empty_answers); /* serves one connection after the other */
        fake_run(&servers[i]);
    }
    rq_client_options o = {.zookeeper = f.at, .rpc_timeout_ms = 60000};
    assert_int_equal(rq_client_open(&o, &c, &why), RQ_OK);
    for (size_t i = 0; i < SERVERS * ROUNDS; i++) {
        rq_client_target to = {.host = RQ_SLICE_LIT("127.0.0.1"),
                               .port = servers[i % SERVERS].port,
                               .service = "LockService"};
        assert_int_equal(rq_client_call(c, &to, "Any", (rq_slice){0}, NULL, &answer, &failure),
                         RQ_OK);
    }
    rq_buf_clear(&answer);
    rq_client_close(c);
    fake_stop(&f);
    for (size_t i = 0; i < SERVERS; i++)
        fake_stop(&servers[i]);
}

/* Each ping has its own connections. The server accepts the second connection after the first is
 * closed. */
static void a_ping_keeps_no_connection(void **state)
{
    (void)state;
    fake f = {.limit = SIZE_MAX}, master = {.limit = SIZE_MAX};
    rq_client *c = NULL;
    rq_error why = {0};
    fake_start(&f, serve_zookeeper);
    fake_start(&master, serve_empty_answers); /* the response says that the master is not running */
    put_zookeeper(&f.answers[0], 1, master.port);
    fake_run(&f);
    fake_run(&master);
    rq_client_options o = {.zookeeper = f.at, .rpc_timeout_ms = 60000};
    assert_int_equal(rq_client_open(&o, &c, &why), RQ_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rq_client_ping(c, false, &why), RQ_E_SERVER_NOT_RUNNING);
    rq_client_close(c);
    fake_stop(&f);
    fake_stop(&master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zookeepers_answers_are_cut_at_each_byte),
        cmocka_unit_test(a_bootstrap_servers_answers_are_cut_at_each_byte),
        cmocka_unit_test(an_answer_above_the_limit_is_refused),
        cmocka_unit_test(a_silent_registry_is_given_up),
        cmocka_unit_test(one_of_several_addresses_answers),
        cmocka_unit_test(lists_of_addresses_are_checked),
        cmocka_unit_test(other_work_goes_on_while_the_registry_is_asked),
        cmocka_unit_test(calls_have_the_priority_of_their_requests),
        cmocka_unit_test(a_snapshot_is_waited_for_as_long_as_the_client_may),
        cmocka_unit_test(a_client_is_stopped_while_it_asks),
        cmocka_unit_test(ten_thousand_calls_end_with_their_server),
        cmocka_unit_test(a_server_that_talks_nonsense_is_left),
        cmocka_unit_test(a_server_that_hangs_is_left),
        cmocka_unit_test(a_large_answers_memory_is_not_kept),
        cmocka_unit_test(a_call_after_an_idle_time_connects_anew),
        cmocka_unit_test(connections_that_are_not_kept_are_closed),
        cmocka_unit_test(a_ping_keeps_no_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
