/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose cluster moves hbase:meta and the master to another server; the registry has the new addresses. */
#include "fake.h"

#include "base/macros.h"
#include "base/pb.h"
#include "client/call.h"
#include "client/client_priv.h"
#include "client/status.h"

/* Sends the first response on the first connection, the second one on the others. */
static void serve_moving(fake *f, int fd)
{
    if (fake_send(f, fd, &f->answers[atomic_load(&f->accepted) > 1])) wait_for_end(fd);
}

static void hang_up(fake *f, int fd)
{
    char preamble[6];
    (void)f;
    (void)fake_read(fd, preamble, sizeof preamble);
}

typedef struct cluster {
    fake zookeeper, before, now;
    rq_client *client;
} cluster;

/* The client knows the address of the server that has ended. */
static void begin_with(cluster *c, void (*serve_before)(fake *f, int fd))
{
    rq_error why = {0};
    *c = (cluster){.zookeeper.limit = SIZE_MAX, .before.limit = SIZE_MAX, .now.limit = SIZE_MAX};
    fake_start(&c->before, serve_before);
    fake_start(&c->now, serve_empty_answers);
    fake_start(&c->zookeeper, serve_moving);
    put_zookeeper(&c->zookeeper.answers[0], c->before.port, c->before.port);
    put_zookeeper(&c->zookeeper.answers[1], c->now.port, c->now.port);
    fake_run(&c->before);
    fake_run(&c->now);
    fake_run(&c->zookeeper);
    rq_client_options o = {.zookeeper = c->zookeeper.at,
                           .rpc_timeout_ms = 20000,
                           .wait_ms = 3000,
                           .retries = 3,
                           .pause_ms = 1};
    assert_int_equal(rq_client_open(&o, &c->client, &why), RQ_OK);
}

static void begin(cluster *c)
{
    begin_with(c, hang_up);
}

static void end(cluster *c)
{
    rq_client_close(c->client);
    fake_stop(&c->zookeeper);
    fake_stop(&c->before);
    fake_stop(&c->now);
}

static void note_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    (void)op;
    *(rq_err *)ctx = r->err;
}

/* A program that only reads hbase:meta. */
static void meta_is_found_again(void **state)
{
    (void)state;
    cluster c;
    rq_client_table *table;
    rq_op *op;
    rq_err rc = RQ_E_AGAIN;
    rq_get get = {.row = RQ_SLICE_LIT("row")};
    begin(&c);
    assert_int_equal(rq_client_table_get(c.client, "hbase:meta", &table), RQ_OK);
    assert_int_equal(rq_op_new(c.client, 0, &rc, &op), RQ_OK);
    assert_int_equal(rq_op_get(op, table, &get, note_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (rc == RQ_E_AGAIN && rq_client_now_ns() < until)
        rq_client_poll(c.client, SECOND_NS);
    assert_int_equal(rc, RQ_OK);
    rq_op_free(op);
    end(&c);
}

/* HBASE: AsyncMasterRequestRpcRetryingCaller */
static void a_call_is_repeated_to_the_new_master(void **state)
{
    (void)state;
    cluster c;
    rq_buf answer = {0};
    rq_client_failure failure;
    rq_cluster_status status;
    rq_error why = {0};
    bool exists;
    begin(&c);
    assert_int_equal(
        rq_client_master(c.client, "IsMasterRunning", (rq_slice){0}, &answer, &failure), RQ_OK);
    rq_buf_clear(&answer);
    end(&c);
    begin(&c);
    assert_int_equal(rq_client_status(c.client, &status, &why), RQ_OK);
    rq_cluster_status_clear(&status);
    end(&c);
    begin(&c);
    assert_int_equal(rq_client_table_exists(c.client, "any", &exists, &why), RQ_OK);
    end(&c);
}

static void repetitions_of_a_call_end(void **state)
{
    (void)state;
    for (unsigned retries = 0; retries < 3; retries++) {
        cluster c;
        rq_client_failure failure;
        begin(&c);
        c.now.serve = hang_up;
        c.client->options.retries = retries;
        assert_int_equal(
            rq_client_master(c.client, "IsMasterRunning", (rq_slice){0}, NULL, &failure), RQ_E_IO);
        assert_true(failure.retry);
        end(&c);
        assert_int_equal(c.before.accepted + c.now.accepted, 1 + retries);
    }
}

struct stopping {
    rq_client_timer timer;
    rq_client *client;
};

static void stop(rq_client_timer *timer)
{
    rq_client_stop(RQ_CONTAINER_OF(timer, struct stopping, timer)->client);
}

static void a_stopped_client_makes_no_repetition(void **state)
{
    (void)state;
    cluster c;
    rq_client_failure failure;
    begin(&c);
    struct stopping s = {.timer.run = stop, .client = c.client};
    c.client->options.pause_ms = 60000;
    c.client->options.wait_ms = 600000;
    rq_client_timer_arm(c.client, &s.timer, 50000000);
    assert_int_equal(rq_client_master(c.client, "IsMasterRunning", (rq_slice){0}, NULL, &failure),
                     RQ_E_CLOSED);
    end(&c);
    assert_int_equal(c.now.accepted, 0);
}

/* Keeps the first call's frame as its last response, and does not answer. */
static void take_call(fake *f, int fd)
{
    uint8_t preamble[6], head[4];
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd) ||
        !fake_read(fd, head, sizeof head))
        return;
    rq_buf *frame = &f->answers[3];
    assert_int_equal(rq_buf_reserve(frame, rq_get_be32(head)), RQ_OK);
    if (fake_read(fd, frame->ptr, rq_get_be32(head))) frame->len = rq_get_be32(head);
}

static uint64_t number_of(rq_slice message, uint32_t field)
{
    rq_pb_field f;
    rq_cursor c = rq_cursor_of(message);
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == field) return f.value;
    return 0;
}

/* The request message of a frame. */
static rq_slice request_of(const rq_buf *frame)
{
    rq_slice header, request = {0};
    rq_cursor c = rq_cursor_of(rq_buf_slice(frame));
    assert_true(rq_pb_delimited(&c, &header));
    assert_true(rq_pb_delimited(&c, &request));
    return request;
}

/* The master that ended may have begun the procedure: the same nonce keeps the next master from
 * beginning it again. */
static void a_repeated_procedure_has_the_same_nonce(void **state)
{
    static const struct {
        const char *method;
        uint32_t nonce_group;
    } methods[] = {{"CreateTable", 3}, {"DisableTable", 2},    {"MergeTableRegions", 4},
                   {"Snapshot", 2},    {"RestoreSnapshot", 2}, {"CreateNamespace", 2}};
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        cluster c;
        rq_client_failure failure;
        begin_with(&c, take_call);
        c.now.serve = take_call;
        c.client->options.retries = 1;
        assert_int_equal(
            rq_client_master(c.client, methods[i].method, (rq_slice){0}, NULL, &failure), RQ_E_IO);
        assert_true(atomic_load(&c.before.served) > 0 && atomic_load(&c.now.served) > 0);
        rq_slice first = request_of(&c.before.answers[3]), second = request_of(&c.now.answers[3]);
        uint32_t field = methods[i].nonce_group;
        assert_true(rq_slice_eq(first, second));
        assert_int_not_equal(number_of(first, field), 0);
        assert_int_not_equal(number_of(first, field + 1), 0);
        end(&c);
    }
}

/* Answers with a procedure id, then ends. */
static void begin_procedure(fake *f, int fd)
{
    char preamble[6];
    uint32_t id;
    rq_buf message = {0}, answer = {0};
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd) ||
        read_header(fd, 1, &id) != RQ_OK)
        return;
    assert_int_equal(rq_pb_put_number(&message, 1, 7), RQ_OK);
    put_response(&answer, id, &message);
    if (fake_send(f, fd, &answer)) (void)skip_frame(fd);
    rq_buf_clear(&message);
    rq_buf_clear(&answer);
}

/* HBASE: RawAsyncHBaseAdmin.getProcedureResult: the procedure continues, and the client continues
 * to ask for its result. */
static void a_procedure_is_followed_to_the_next_master(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        cluster c;
        rq_buf answer = {0};
        rq_client_failure failure;
        rq_error why = {0};
        begin_with(&c, begin_procedure);
        if (way == 0)
            assert_int_equal(
                rq_client_master(c.client, "CreateTable", (rq_slice){0}, &answer, &failure), RQ_OK);
        else
            assert_int_equal(rq_client_flush_table(c.client, "t", &why), RQ_OK);
        rq_buf_clear(&answer);
        end(&c);
        assert_int_equal(c.now.calls, 1);
    }
}

static void a_snapshot_is_followed_to_the_next_master(void **state)
{
    (void)state;
    cluster c;
    rq_client_failure failure;
    begin_with(&c, hang_up);
    assert_int_equal(rq_client_wait_snapshot(c.client, (rq_slice){0}, &failure), RQ_E_TIMEOUT);
    assert_string_equal(failure.text, "the snapshot is still being taken");
    end(&c);
    assert_true(c.now.calls >= 1);
}

typedef struct asked {
    rq_client_question question;
    rq_err rc;
} asked;

static void answered(rq_client_question *q, rq_err rc, rq_slice message)
{
    (void)message;
    RQ_CONTAINER_OF(q, asked, question)->rc = rc;
}

/* Questions to the master do not wait: a question that fails meanwhile must be repeated by the
 * caller. */
static void the_master_is_found_again_for_questions(void **state)
{
    (void)state;
    cluster c;
    asked a = {.question.done = answered, .rc = RQ_E_IO};
    begin(&c);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (a.rc == RQ_E_IO && rq_client_now_ns() < until) {
        a.rc = RQ_E_AGAIN;
        assert_int_equal(
            rq_client_ask_master(c.client, "GetTableState", (rq_slice){0}, &a.question), RQ_OK);
        while (a.rc == RQ_E_AGAIN)
            rq_client_poll(c.client, SECOND_NS);
    }
    assert_int_equal(a.rc, RQ_OK);
    end(&c);
}

/* A program that runs for months while the cluster's servers are replaced: the client keeps only
 * servers in its region maps. The hosts are loopback addresses at which nothing listens. */
static void servers_that_are_gone_are_forgotten(void **state)
{
    (void)state;
    cluster c;
    rq_client_table *meta;
    rq_error why = {0};
    rq_buf answer = {0};
    begin_with(&c, serve_empty_answers);
    assert_int_equal(rq_client_table_get(c.client, "hbase:meta", &meta), RQ_OK);
    for (unsigned i = 0; i < 2000; i++) {
        char host[32];
        rq_client_failure failure;
        rq_client_target to = {.service = i % 3 == 0 ? "ClientService" : "AdminService",
                               .port = c.now.port};
        snprintf(host, sizeof host, "127.1.%u.%u", i / 250, i % 250 + 1);
        to.host = rq_slice_cstr(host);
        assert_int_equal(
            rq_client_call(c.client, &to, "Any", (rq_slice){0}, NULL, &answer, &failure), RQ_E_IO);
    }
    assert_in_range(rq_client_table_servers(meta), 1, 64);
    assert_in_range(c.client->all_count, 1, 64);
    assert_in_range(c.client->slot_count, 1, 64);
    assert_int_equal(rq_client_table_read(meta, &why), RQ_OK);
    assert_int_equal(rq_client_table_region(meta, 0).port, c.now.port);
    rq_buf_clear(&answer);
    end(&c);
}

/* Each connection to ZooKeeper gets the other server's address. */
static void serve_changing(fake *f, int fd)
{
    if (fake_send(f, fd, &f->answers[atomic_load(&f->accepted) % 2])) wait_for_end(fd);
}

static void connections_to_earlier_masters_end(void **state)
{
    (void)state;
    cluster c;
    rq_client_table *meta;
    rq_error why = {0};
    bool exists;
    begin_with(&c, serve_empty_answers);
    assert_int_equal(rq_client_table_get(c.client, "hbase:meta", &meta), RQ_OK);
    c.zookeeper.serve = serve_changing; /* the current connection has ended */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rq_client_table_exists(c.client, "any", &exists, &why), RQ_OK);
        assert_int_equal(rq_client_table_read(meta, &why), RQ_OK);
    }
    rq_client_poll(c.client, 0);
    assert_in_range(c.client->all_count, 0, 3);
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meta_is_found_again),
        cmocka_unit_test(a_call_is_repeated_to_the_new_master),
        cmocka_unit_test(repetitions_of_a_call_end),
        cmocka_unit_test(a_stopped_client_makes_no_repetition),
        cmocka_unit_test(a_repeated_procedure_has_the_same_nonce),
        cmocka_unit_test(the_master_is_found_again_for_questions),
        cmocka_unit_test(a_procedure_is_followed_to_the_next_master),
        cmocka_unit_test(a_snapshot_is_followed_to_the_next_master),
        cmocka_unit_test(servers_that_are_gone_are_forgotten),
        cmocka_unit_test(connections_to_earlier_masters_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
