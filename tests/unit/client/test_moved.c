/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose cluster moves hbase:meta and the master to another server: the registry knows. */
#include "fake.h"

#include "base/macros.h"

/* The first answer to the first connection, the second one to the others. */
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

/* The client knows the server that is gone. */
static void begin(cluster *c)
{
    rq_error why = {0};
    *c = (cluster){.zookeeper.limit = SIZE_MAX, .before.limit = SIZE_MAX, .now.limit = SIZE_MAX};
    fake_start(&c->before, hang_up);
    fake_start(&c->now, serve_empty_answers);
    fake_start(&c->zookeeper, serve_moving);
    put_zookeeper(&c->zookeeper.answers[0], c->before.port, c->before.port);
    put_zookeeper(&c->zookeeper.answers[1], c->now.port, c->now.port);
    fake_run(&c->before);
    fake_run(&c->now);
    fake_run(&c->zookeeper);
    rq_client_options o = {
        .zookeeper = c->zookeeper.at, .rpc_timeout_ms = 20000, .retries = 3, .pause_ms = 1};
    assert_int_equal(rq_client_open(&o, &c->client, &why), RQ_OK);
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

/* A program that reads hbase:meta only. */
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

/* The call at hand fails: it may have been made. The next one goes to the new master. */
static void the_master_is_found_again(void **state)
{
    (void)state;
    cluster c;
    rq_buf answer = {0};
    rq_client_failure failure;
    begin(&c);
    assert_int_equal(
        rq_client_master(c.client, "IsMasterRunning", (rq_slice){0}, false, &answer, &failure),
        RQ_E_IO);
    assert_int_equal(
        rq_client_master(c.client, "IsMasterRunning", (rq_slice){0}, false, &answer, &failure),
        RQ_OK);
    rq_buf_clear(&answer);
    end(&c);
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

/* Questions do not wait: those that fail meanwhile are to be asked again. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meta_is_found_again),
        cmocka_unit_test(the_master_is_found_again),
        cmocka_unit_test(the_master_is_found_again_for_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
