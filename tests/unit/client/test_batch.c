/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on a table whose regions and responses the test chooses: rows without a region, and servers that
 * answer an action twice or for another region. Each action ends once. */
#include "fake.h"

#include "base/macros.h"
#include "base/pb.h"
#include "client/client_priv.h"

enum { ACTIONS_MAX = 4 };

/* The table's regions, "START-END", and the server's responses. */
typedef struct script {
    const char *regions[3];
    /* The response to each Multi: results of regions, separated by "|". For each region the actions
     * that succeed, as digits, or "!" for an error of the whole region. */
    const char *answers[3];
    unsigned calls;
} script;

typedef struct server {
    fake fake;
    script *script;
    uint16_t port;     /* port of the regions' server; 0: the regions have no server */
    uint16_t new_port; /* port after hbase:meta is read again; 0: unchanged */
} server;

/* --- hbase:meta ------------------------------------------------------------------------------- */

static void put_cell(rq_buf *b, const char *row, const char *qualifier, rq_slice value)
{
    size_t at;
    assert_int_equal(rq_pb_begin(b, 1, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 1, rq_slice_cstr(row)), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 2, RQ_SLICE_LIT("info")), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 3, rq_slice_cstr(qualifier)), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 4, 1), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 5, 4), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 6, value), RQ_OK);
    assert_int_equal(rq_pb_end(b, at), RQ_OK);
}

static void put_region(rq_buf *message, const char *range, uint16_t port)
{
    rq_buf info = {0};
    char row[64], at[32];
    size_t result;
    const char *minus = strchr(range, '-');
    rq_slice start = rq_slice_of((const uint8_t *)range, (size_t)(minus - range));
    snprintf(row, sizeof row, "t,%.*s,1.", (int)start.len, range);
    snprintf(at, sizeof at, "127.0.0.1:%u", port);
    assert_int_equal(rq_buf_append(&info, "PBUF", 4), RQ_OK);
    assert_int_equal(rq_pb_put_number(&info, 1, 1), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&info, 3, start), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&info, 4, rq_slice_cstr(minus + 1)), RQ_OK);
    assert_int_equal(rq_pb_begin(message, 5, &result), RQ_OK);
    put_cell(message, row, "regioninfo", rq_buf_slice(&info));
    if (port != 0) put_cell(message, row, "server", rq_slice_cstr(at));
    assert_int_equal(rq_pb_end(message, result), RQ_OK);
    rq_buf_clear(&info);
}

/* ScanResponse { more_results 3, results 5 } */
static void put_regions(const server *s, rq_buf *message)
{
    assert_int_equal(rq_pb_put_number(message, 3, 0), RQ_OK);
    for (size_t i = 0; i < RQ_ARRAY_LEN(s->script->regions); i++)
        if (s->script->regions[i] != NULL) put_region(message, s->script->regions[i], s->port);
}

static void serve_meta(fake *f, int fd)
{
    server *s = RQ_CONTAINER_OF(f, server, fake);
    char preamble[6];
    uint32_t id;
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf message = {0}, answer = {0};
        put_regions(s, &message);
        if (s->new_port != 0) s->port = s->new_port;
        put_response(&answer, id, &message);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&message);
        rq_buf_clear(&answer);
    }
}

/* --- the regions' server ---------------------------------------------------------------------- */

/* RegionActionResult { resultOrException 1 { index 1, result 2 {} }, exception 2 { name 1 } } */
static void put_results(rq_buf *message, const char *text)
{
    for (;;) {
        size_t region, inner, result;
        assert_int_equal(rq_pb_begin(message, 1, &region), RQ_OK);
        for (; *text != '\0' && *text != '|'; text++) {
            assert_int_equal(rq_pb_begin(message, *text == '!' ? 2 : 1, &inner), RQ_OK);
            if (*text == '!') {
                assert_int_equal(
                    rq_pb_put_bytes(message, 1,
                                    RQ_SLICE_LIT("org.apache.hadoop.hbase.DoNotRetryIOException")),
                    RQ_OK);
            } else {
                assert_int_equal(rq_pb_put_number(message, 1, (uint64_t)(*text - '0')), RQ_OK);
                assert_int_equal(rq_pb_begin(message, 2, &result), RQ_OK);
                assert_int_equal(rq_pb_end(message, result), RQ_OK);
            }
            assert_int_equal(rq_pb_end(message, inner), RQ_OK);
        }
        assert_int_equal(rq_pb_end(message, region), RQ_OK);
        if (*text++ == '\0') return;
    }
}

static void serve_multi(fake *f, int fd)
{
    script *s = RQ_CONTAINER_OF(f, server, fake)->script;
    char preamble[6];
    uint32_t id;
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf message = {0}, answer = {0};
        if (s->calls == RQ_ARRAY_LEN(s->answers) || s->answers[s->calls] == NULL) return;
        put_results(&message, s->answers[s->calls++]);
        put_response(&answer, id, &message);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&message);
        rq_buf_clear(&answer);
    }
}

/* --- the batch -------------------------------------------------------------------------------- */

typedef struct seen {
    unsigned ends[ACTIONS_MAX]; /* number of results per action */
    rq_err errs[ACTIONS_MAX];
    rq_err end;
} seen;

static void take_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    seen *s = ctx;
    (void)op;
    assert_true(index < ACTIONS_MAX);
    s->ends[index]++;
    s->errs[index] = r->err;
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    (void)op;
    ((seen *)ctx)->end = r->err;
}

/* A get of each row, a letter; of a capital letter two atomic deletes. */
static void add_gets(rq_op *op, rq_client_table *table, const char *rows)
{
    rq_op_batch_begin(op, table);
    for (; *rows != '\0'; rows++) {
        rq_get get = {.row = rq_slice_of((const uint8_t *)rows, 1)};
        rq_mutate erase = {.kind = RQ_MUTATE_DELETE, .row = get.row};
        if (*rows >= 'A' && *rows <= 'Z') {
            rq_mutate both[] = {erase, erase};
            assert_int_equal(rq_op_batch_atomic(op, both, 2, (rq_slice){0}), RQ_OK);
            continue;
        }
        assert_int_equal(rq_op_batch_get(op, &get), RQ_OK);
    }
}

static seen run(script *told, const char *rows)
{
    server meta = {.fake.limit = SIZE_MAX, .script = told};
    server one = {.fake.limit = SIZE_MAX, .script = told};
    fake zookeeper = {.limit = SIZE_MAX};
    seen all = {.end = RQ_E_AGAIN};
    rq_client *c;
    rq_client_table *table;
    rq_op *op;
    rq_error why;
    fake_start(&one.fake, serve_multi);
    fake_start(&meta.fake, serve_meta);
    fake_start(&zookeeper, serve_zookeeper);
    meta.port = one.fake.port;
    put_zookeeper(&zookeeper.answers[0], meta.fake.port, meta.fake.port);
    fake_run(&one.fake);
    fake_run(&meta.fake);
    fake_run(&zookeeper);
    assert_int_equal(open_by(&zookeeper, true, &c, &why), RQ_OK);
    assert_int_equal(rq_client_table_get(c, "t", &table), RQ_OK);
    assert_int_equal(rq_op_new(c, 0, &all, &op), RQ_OK);
    add_gets(op, table, rows);
    assert_int_equal(rq_op_batch_run(op, take_item, take_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (all.end == RQ_E_AGAIN && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS / 100);
    rq_op_free(op);
    rq_client_close(c);
    fake_stop(&zookeeper);
    fake_stop(&meta.fake);
    fake_stop(&one.fake);
    return all;
}

/* HBASE: AsyncBatchRpcRetryingCaller: an action whose region is not found is retried separately. */
static void rows_with_regions_do_not_wait_for_those_without(void **state)
{
    (void)state;
    script told = {.regions = {"-g", "m-"}, .answers = {"0|2"}};
    seen all = run(&told, "ahn");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all.ends[i], 1);
        assert_int_equal(all.errs[i], i == 1 ? RQ_E_NOT_SERVING_REGION : RQ_OK);
    }
    assert_int_equal(all.end, RQ_E_NOT_SERVING_REGION);
    assert_int_equal(told.calls, 1);
}

static void no_row_has_a_region(void **state)
{
    (void)state;
    script told = {.regions = {"m-"}};
    seen all = run(&told, "ab");
    assert_int_equal(all.ends[0] + all.ends[1], 2);
    assert_int_equal(all.end, RQ_E_NOT_SERVING_REGION);
}

/* The answers of the first region are counted. */
static void expect_of(const char *rows, const char *answer, unsigned well)
{
    script told = {.regions = {"-m", "m-"}, .answers = {answer}};
    seen all = run(&told, rows);
    unsigned ok = 0;
    for (size_t i = 0; i < ACTIONS_MAX; i++) {
        assert_int_equal(all.ends[i], 1);
        ok += all.errs[i] == RQ_OK;
    }
    assert_int_equal(ok, well);
    assert_int_equal(all.end == RQ_OK, well == ACTIONS_MAX);
}

static void expect(const char *answer, unsigned well)
{
    expect_of("abny", answer, well);
}

/* An atomic action is a RegionAction of its own, between those of the actions before and after it. */
static void atomic_actions_are_answered_alone(void **state)
{
    (void)state;
    expect_of("aBcn", "0|0|2|3", 4);
    expect_of("aBcn", "0||2|3", 4); /* its result may be missing */
    expect_of("aBcn", "0|!|2|3", 3);
    expect_of("aBcn", "!|0|2|3", 3);
    expect_of("aBcn", "02|0|0|3", 1); /* 2 is of another RegionAction: the rest is not read */
    expect_of("aBcn", "0|0|2", 3);
    expect_of("ABCD", "0|0|0|0", 4);
    expect_of("ABCD", "0|0|!|0", 3);
}

static void an_action_ends_once_whatever_the_server_says(void **state)
{
    (void)state;
    expect("01|23", 4);
    expect("10|32", 4);
    expect("01|!", 2);
    expect("!|23", 2);
    expect("00|23", 1); /* one action answered twice */
    /* a result for an action of another region, whose own result is an error */
    expect("0123|!", 2);
    expect("0213|01", 1);
    expect("0", 1);
    expect("9|23", 0);
    expect("01|23|01", 4); /* results of a region that was not asked are ignored */
}

static void be_silent(fake *f, int fd)
{
    (void)f;
    wait_for_end(fd);
}

/* Runs a batch on a table with one region. The first read of hbase:meta finds the region at port `before` (0: without a server),
 * later ones find it at the server `now`. */
static void batch_finds_the_region(uint16_t before, server *now)
{
    server meta = {.fake.limit = SIZE_MAX, .script = now->script};
    fake zookeeper = {.limit = SIZE_MAX};
    seen all = {.end = RQ_E_AGAIN};
    rq_client *c;
    rq_client_table *table;
    rq_op *op;
    rq_error why;
    fake_start(&now->fake, serve_multi);
    fake_start(&meta.fake, serve_meta);
    fake_start(&zookeeper, serve_zookeeper);
    meta.port = before;
    meta.new_port = now->fake.port;
    put_zookeeper(&zookeeper.answers[0], meta.fake.port, meta.fake.port);
    fake_run(&now->fake);
    fake_run(&meta.fake);
    fake_run(&zookeeper);
    rq_client_options o = {
        .zookeeper = zookeeper.at, .rpc_timeout_ms = 20000, .retries = 20, .pause_ms = 1};
    assert_int_equal(rq_client_open(&o, &c, &why), RQ_OK);
    c->timeout_ns = 3 * SECOND_NS / 10; /* of what is repeated, which the opening is not */
    assert_int_equal(rq_client_table_get(c, "t", &table), RQ_OK);
    assert_int_equal(rq_op_new(c, 0, &all, &op), RQ_OK);
    add_gets(op, table, "an");
    assert_int_equal(rq_op_batch_run(op, take_item, take_end), RQ_OK);
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (all.end == RQ_E_AGAIN && rq_client_now_ns() < until)
        rq_client_poll(c, SECOND_NS / 100);
    assert_int_equal(all.end, RQ_OK);
    assert_int_equal(all.errs[0], RQ_OK);
    assert_int_equal(all.errs[1], RQ_OK);
    rq_op_free(op);
    rq_client_close(c);
    fake_stop(&zookeeper);
    fake_stop(&meta.fake);
    fake_stop(&now->fake);
}

/* The server's host lost its power: no packet tells the client that the connection has ended, and
 * the regions are elsewhere. HBASE: ClientExceptionsUtil.isMetaClearingException includes
 * time-outs. */
static void regions_of_a_silent_server_are_looked_up_again(void **state)
{
    (void)state;
    script told = {.regions = {"-"}, .answers = {"01"}};
    server now = {.fake.limit = SIZE_MAX, .script = &told};
    fake before = {.limit = SIZE_MAX};
    fake_start(&before, be_silent);
    fake_run(&before);
    batch_finds_the_region(before.port, &now);
    fake_stop(&before);
}

/* The daughters of a split, or all regions of a server that has ended, are waiting for a server. */
static void regions_without_a_server_are_looked_up_again(void **state)
{
    (void)state;
    script told = {.regions = {"-"}, .answers = {"01"}};
    server now = {.fake.limit = SIZE_MAX, .script = &told};
    batch_finds_the_region(0, &now);
}

/* A program that uses one table after the other, and returns to the first. */
static void maps_of_tables_used_long_ago_are_dropped(void **state)
{
    (void)state;
    enum { TABLES = 2500, NAMES = 100000, KEPT = 1000 };
    script told = {.regions = {"-"}};
    server meta = {.fake.limit = SIZE_MAX, .script = &told};
    fake zookeeper = {.limit = SIZE_MAX};
    rq_client *c;
    rq_client_table *table, *first = NULL;
    rq_error why;
    char name[32];
    fake_start(&meta.fake, serve_meta);
    fake_start(&zookeeper, serve_zookeeper);
    meta.port = meta.fake.port;
    put_zookeeper(&zookeeper.answers[0], meta.fake.port, meta.fake.port);
    fake_run(&meta.fake);
    fake_run(&zookeeper);
    assert_int_equal(open_by(&zookeeper, true, &c, &why), RQ_OK);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(rq_client_table_get(c, name, &table), RQ_OK);
        if (i == 0) first = table;
        if (i < TABLES) assert_int_equal(rq_client_table_read(table, &why), RQ_OK);
        if (i < TABLES) assert_int_equal(rq_client_table_regions(table), 1);
        if (i == KEPT / 2) rq__map_used(first);
        assert_true(c->map_count <= KEPT);
    }
    assert_int_equal(c->map_count, KEPT);
    assert_int_equal(rq_client_table_regions(first), 0);
    for (int i = 0; i < NAMES; i++) { /* table objects are kept, with or without a region map */
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(rq_client_table_get(c, name, &table), RQ_OK);
        assert_string_equal(table->name, name);
        size_t kept = i >= TABLES - KEPT && i < TABLES;
        assert_int_equal(rq_client_table_regions(table), kept);
    }
    assert_int_equal(c->table_count, NAMES);
    assert_int_equal(rq_client_table_read(first, &why), RQ_OK);
    assert_int_equal(rq_client_table_regions(first), 1);
    assert_int_equal(rq_client_table_servers(first), 1);
    rq_client_close(c);
    fake_stop(&zookeeper);
    fake_stop(&meta.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_with_regions_do_not_wait_for_those_without),
        cmocka_unit_test(no_row_has_a_region),
        cmocka_unit_test(atomic_actions_are_answered_alone),
        cmocka_unit_test(an_action_ends_once_whatever_the_server_says),
        cmocka_unit_test(regions_of_a_silent_server_are_looked_up_again),
        cmocka_unit_test(regions_without_a_server_are_looked_up_again),
        cmocka_unit_test(maps_of_tables_used_long_ago_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
