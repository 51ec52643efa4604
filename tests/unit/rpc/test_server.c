/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol over real sockets: responses as HBase's, and reactions to clients that misbehave. */
#include "rpc_peer.h"
#include "toy_service.h"

#include "base/pb.h"
#include "base/random.h"
#include "proto/registry.pb-c.h"
#include "rpc/compressor.h"
#include "rpc/wire.h"
#include "../base/unit.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define HB "org.apache.hadoop.hbase."

static const rpc_hello plain = {.service = "ClientService", .version = "2.6.1"};
static const rpc_hello with_codec = {
    .service = "ClientService", .codec = CODEC_KEYVALUE, .version = "2.6.1"};

/* The tests run twice: with connections that stay on their loop, and with connections that move
 * after each turn. */
static bool restless;

/* Each test has a server of its own, which its teardown stops: a test that fails leaves the next one nothing. */
static toy *serve(void **state, const toy_options *options)
{
    toy *t = *state;
    toy_options o = *options;
    o.restless = restless;
    if (restless && o.loops == 1) o.loops = 2;
    toy_start(t, &o);
    return t;
}

/* ---- preambles and connection headers */

static void registry_preamble_returns_the_cluster_id_and_closes(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = peer_connect(t->port);
    peer_send(fd, "Regist", 6);
    rpc_answer a;
    rpc_read(fd, &a);
    assert_int_equal(a.header->call_id, UINT32_MAX);
    Pb__GetConnectionRegistryResponse *r =
        pb__get_connection_registry_response__unpack(NULL, a.message.len, a.message.ptr);
    assert_string_equal(r->cluster_id, "the-cluster");
    pb__get_connection_registry_response__free_unpacked(r, NULL);
    rpc_answer_clear(&a);
    peer_expect_end(fd);
    peer_close(fd);
}

static void security_preamble_is_refused_and_the_connection_goes_on(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = peer_connect(t->port);
    peer_send(fd, "Securi", 6);
    rpc_expect_exception(fd, UINT32_MAX, HB "ipc.SecurityNotEnabledException",
                         "security is not enabled", false);
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "HBas\0\x50", 6), RQ_OK);
    rpc_put_header(&b, &plain);
    rpc_put_get(&b, 1, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 1, "row");
    peer_close(fd);
}

static void security_preambles_of_a_connection_are_limited(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    char many[6 * 9];
    int fd = peer_connect(t->port);
    for (size_t i = 0; i < sizeof many; i += 6)
        memcpy(many + i, "Securi", 6);
    peer_send(fd, many, sizeof many);
    for (int i = 0; i < 8; i++)
        rpc_expect_exception(fd, UINT32_MAX, HB "ipc.SecurityNotEnabledException",
                             "security is not enabled", false);
    rpc_expect_exception(fd, UINT32_MAX, HB "ipc.FatalConnectionException",
                         "too many requests for security", true);
    peer_expect_end(fd);
    peer_close(fd);
}

/* Appends a Get of "row" whose request header has `len` bytes, most of them in an attribute. */
static void put_get_with_header(rq_buf *out, size_t len)
{
    Pb__NameBytesPair attribute = PB__NAME_BYTES_PAIR__INIT, *attributes[] = {&attribute};
    Pb__RequestHeader h = PB__REQUEST_HEADER__INIT;
    rq_buf get = {0}, frame = {0};
    rq_slice own;
    h.has_call_id = h.has_request_param = h.request_param = true;
    h.call_id = 1;
    h.method_name = "Get";
    h.attribute = attributes;
    h.n_attribute = 1;
    attribute.name = "a";
    attribute.has_value = true;
    attribute.value.data = calloc(1, len);
    attribute.value.len = len - 100;
    attribute.value.len += len - pb__request_header__get_packed_size(&h);
    assert_int_equal(pb__request_header__get_packed_size(&h), len);
    uint8_t *head = malloc(len);
    assert_true(head != NULL && attribute.value.data != NULL);
    assert_int_equal(pb__request_header__pack(&h, head), len);
    rpc_put_get(&get, 1, "Get", "row");
    rq_cursor c = rq_cursor_of(rq_slice_of(get.ptr + 4, get.len - 4));
    assert_true(rq_pb_delimited(&c, &own)); /* the get's own header; its parameter follows */
    assert_int_equal(rq_buf_append_varint(&frame, len), RQ_OK);
    assert_int_equal(rq_buf_append(&frame, head, len), RQ_OK);
    assert_int_equal(rq_buf_append(&frame, c.ptr, rq_cursor_left(&c)), RQ_OK);
    assert_int_equal(rq_buf_append_be32(out, (uint32_t)frame.len), RQ_OK);
    assert_int_equal(rq_buf_append(out, frame.ptr, frame.len), RQ_OK);
    rq_buf_clear(&frame);
    rq_buf_clear(&get);
    free(head);
    free(attribute.value.data);
}

/* A request header is parsed on the loop; a long one is refused, and the connection remains
 * open. */
static void a_header_of_a_request_has_a_longest(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_buf b = {0};
    int fd = rpc_connect(t->port, &plain);
    put_get_with_header(&b, RQ_REQUEST_HEAD_MAX);
    rpc_send(fd, &b);
    rpc_expect_row(fd, 1, "row");
    put_get_with_header(&b, RQ_REQUEST_HEAD_MAX + 1);
    rpc_put_get(&b, 2, "Get", "next");
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 1, HB "DoNotRetryIOException",
                         "the request's header has 262145 bytes; the limit is 262144", true);
    rpc_expect_row(fd, 2, "next");
    peer_close(fd);
}

/* A parameter above the method's limit is refused before it is decoded; the connection remains
 * open. */
static void a_method_has_a_longest_parameter(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_buf b = {0};
    char row[RQ_RPC_PARAM_SHORT + 1];
    memset(row, 'r', sizeof row);
    row[sizeof row - 1] = '\0';
    int fd = rpc_connect(t->port, &plain);
    rpc_put_get(&b, 1, "GetShort", row);
    rpc_put_get(&b, 2, "Get", row);
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 1, HB "DoNotRetryIOException",
                         "bytes; the limit of this method is 65536", true);
    rpc_expect_row(fd, 2, row);
    row[RQ_RPC_PARAM_SHORT - 100] = '\0';
    rpc_put_get(&b, 3, "GetShort", row);
    rpc_send(fd, &b);
    rpc_expect_row(fd, 3, row);
    peer_close(fd);
}

static void expect_preamble_refused(toy *t, const char *bytes, const char *java_class,
                                    const char *text)
{
    int fd = peer_connect(t->port);
    peer_send(fd, bytes, 6);
    rpc_expect_exception(fd, UINT32_MAX, java_class, text, true);
    peer_expect_end(fd);
    peer_close(fd);
}

static void unknown_preambles_are_fatal(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    expect_preamble_refused(t, "GET / ", HB "ipc.FatalConnectionException",
                            "Expected HEADER=HBas but received HEADER=GET  from 127.0.0.1:");
    expect_preamble_refused(t, "HBas\1\x50", HB "ipc.WrongVersionException",
                            "serverVersion=0, clientVersion=1, authMethod=80");
    expect_preamble_refused(t, "HBas\0\x4f", HB "ipc.BadAuthException", "authMethod=79");
    expect_preamble_refused(t, "\0\0\0\0\0\0", HB "ipc.FatalConnectionException", "\\x00");
}

static void a_client_that_wants_sasl_is_switched_to_simple(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = peer_connect(t->port);
    peer_send(fd, "HBas\0\x51", 6);
    peer_expect(fd, "\0\0\0\0\xff\xff\xff\xa8", 8); /* SUCCESS, SWITCH_TO_SIMPLE_AUTH (-88) */
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "\0\0\0\5token", 9), RQ_OK);
    rpc_put_header(&b, &plain);
    rpc_put_get(&b, 1, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 1, "row");
    peer_close(fd);
}

static void expect_header_refused(toy *t, const rpc_hello *hello, const char *java_class,
                                  const char *text)
{
    int fd = rpc_connect(t->port, hello);
    rpc_expect_exception(fd, UINT32_MAX, java_class, text, true);
    peer_expect_end(fd);
    peer_close(fd);
}

static void unknown_services_and_codecs_are_fatal(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    expect_header_refused(t, &(rpc_hello){.service = "NoService"}, HB "ipc.UnknownServiceException",
                          "NoService");
    expect_header_refused(t, &(rpc_hello){.service = NULL}, HB "ipc.UnknownServiceException", "");
    expect_header_refused(t, &(rpc_hello){.service = "ClientService", .codec = "x.NoCodec"},
                          HB "ipc.UnsupportedCellCodecException", "x.NoCodec");
    expect_header_refused(
        t, &(rpc_hello){.service = "ClientService", .codec = CODEC_KEYVALUE, .compressor = "x.No"},
        HB "ipc.UnsupportedCompressionCodecException", "x.No");
}

static void malformed_headers_close_the_connection(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = peer_connect(t->port);
    peer_send(fd, "HBas\0\x50\0\0\0\4\xff\xff\xff\xff", 14);
    peer_expect_end(fd);
    peer_close(fd);
    fd = rpc_connect(t->port, &plain);
    peer_send(fd, "\0\0\0\3\x02\xff\xff", 7);
    peer_expect_end(fd);
    peer_close(fd);
    fd = rpc_connect(t->port, &plain);
    peer_send(fd, "\0\0\0\0", 4); /* an empty frame */
    peer_expect_end(fd);
    peer_close(fd);
}

/* ---- calls */

static void calls_are_answered_and_failures_named(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 7, "Get", "one");
    rpc_put_get(&b, 8, "Get", "fail");
    rpc_put_get(&b, 9, "Get", "two");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 7, "one");
    rpc_expect_exception(fd, 8, HB "NotServingRegionException",
                         HB "NotServingRegionException: r is not online", false);
    rpc_expect_row(fd, 9, "two");
    rpc_put_get(&b, 10, "Get", "moved");
    rpc_send(fd, &b);
    rpc_answer a;
    rpc_read(fd, &a);
    assert_string_equal(a.header->exception->hostname, "h");
    assert_int_equal(a.header->exception->port, 7);
    rpc_answer_clear(&a);
    peer_close(fd);
}

static void each_end_of_a_call_is_reported_once(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    unsigned ended = t->ended, failed = t->failed;
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 1, "Get", "one");
    rpc_put_get(&b, 2, "Get", "fail");
    rpc_put_get(&b, 3, "Get", "moved");
    rpc_put_get(&b, 4, "Mutate", "no handler");
    rpc_put_get(&b, 5, "NoMethod", "nothing to tell of");
    Pb__NameBytesPair wrong = PB__NAME_BYTES_PAIR__INIT;
    wrong.name = "not a GetRequest";
    rpc_put_request(&b, 6, "Get", &wrong.base, (rq_slice){0}, 0);
    rpc_put_get(&b, 7, "Get", "never");
    rpc_put_get(&b, 8, "Get", "later");
    rpc_send(fd, &b);
    for (int i = 0; i < 7; i++) {
        rpc_answer a;
        rpc_read(fd, &a);
        rpc_answer_clear(&a);
    }
    assert_int_equal(t->ended - ended, 2);
    assert_int_equal(t->failed - failed, 5);
    assert_null(rq_call_in_hand()); /* of this thread */
    peer_close(fd);
}

static void bad_calls_fail_alone(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 1, "NoMethod", "x");
    rpc_put_get(&b, 2, "get", "x"); /* names are matched exactly */
    rpc_put_get(&b, 3, "Mutate", "x");
    rpc_put_request(&b, 4, "Get", NULL, (rq_slice){0}, 0);
    Pb__NameBytesPair wrong = PB__NAME_BYTES_PAIR__INIT;
    wrong.name = "not a GetRequest";
    rpc_put_request(&b, 5, "Get", &wrong.base, (rq_slice){0}, 0);
    Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
    rpc_put_request(&b, 6, "Multi", &multi.base, RQ_SLICE_LIT("cells"), 0);
    rpc_put_request(&b, 8, "Get", &multi.base, (rq_slice){0}, 0);
    rpc_put_get(&b, 7, "Get", "still here");
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 1, HB "DoNotRetryIOException",
                         "java.lang.UnsupportedOperationException: NoMethod: no such method of ",
                         true);
    rpc_expect_exception(fd, 2, HB "DoNotRetryIOException", "UnsupportedOperationException: get",
                         true);
    rpc_expect_exception(fd, 3, HB "DoNotRetryIOException", "Mutate", true);
    rpc_expect_exception(fd, 4, HB "DoNotRetryIOException", "should have param set in it", true);
    rpc_expect_exception(
        fd, 5, "org.apache.hbase.thirdparty.com.google.protobuf.InvalidProtocolBufferException",
        "the parameter of Get is malformed", false);
    rpc_expect_exception(fd, 6, HB "DoNotRetryIOException", "named no codec", true);
    rpc_expect_exception(
        fd, 8, "org.apache.hbase.thirdparty.com.google.protobuf.UninitializedMessageException",
        "; Message missing required fields: region, get", false);
    rpc_expect_row(fd, 7, "still here");
    peer_close(fd);
}

static void answers_overtake_each_other(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 1, "Get", "hold");
    rpc_put_get(&b, 2, "Get", "soon");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 2, "soon");
    assert_int_equal(toy_release(t), 1);
    rpc_expect_row(fd, 1, "hold");
    peer_close(fd);
}

static void byte_by_byte_is_as_good_as_at_once(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = peer_connect(t->port);
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "HBas\0\x50", 6), RQ_OK);
    rpc_put_header(&b, &plain);
    rpc_put_get(&b, 1, "Get", "one");
    rpc_put_get(&b, 2, "Get", "two");
    for (size_t i = 0; i < b.len; i++) {
        peer_send(fd, b.ptr + i, 1);
        if (i % 16 == 0) usleep(500);
    }
    rq_buf_clear(&b);
    rpc_expect_row(fd, 1, "one");
    rpc_expect_row(fd, 2, "two");
    peer_close(fd);
}

static void thousands_of_calls_are_pipelined(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    enum { N = 20000 };
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    char row[32];
    for (uint32_t i = 0; i < N; i++) {
        snprintf(row, sizeof row, "row%u", i);
        rpc_put_get(&b, i, "Get", row);
    }
    peer_sender *sender = peer_send_many(fd, b.ptr, b.len, 1);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(row, sizeof row, "row%u", i);
        rpc_expect_row(fd, i, row);
    }
    peer_sender_join(sender);
    rq_buf_clear(&b);
    peer_close(fd);
}

/* Calls are announced in batches of up to 16; a single call is not announced. */
static void calls_that_arrive_together_are_announced_before_they_run(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    static const unsigned counts[] = {1, 2, 16, 18, 40, 1};
    uint32_t id = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(counts); i++) {
        unsigned before = atomic_load(&t->expected);
        uint32_t first = id;
        while (id < first + counts[i])
            rpc_put_get(&b, id++, "Get", "row");
        rpc_send(fd, &b); /* with a plain socket one packet, and so one read */
        for (uint32_t k = first; k < id; k++)
            rpc_expect_row(fd, k, "row");
        unsigned announced = atomic_load(&t->expected) - before;
        if (getenv("TOY_BELOW") == NULL)
            assert_int_equal(announced, counts[i] == 1 ? 0 : counts[i]);
        else
            assert_in_range(announced, 0, counts[i] == 1 ? 0 : counts[i]);
    }
    peer_close(fd);
}

static void a_call_outlives_its_connection(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_rpc_stats before = rq_rpc_server_stats(t->server);
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    for (uint32_t i = 0; i < 10; i++)
        rpc_put_get(&b, i, "Get", "hold");
    unsigned seen = atomic_load(&t->seen);
    rpc_send(fd, &b);
    while (atomic_load(&t->seen) < seen + 10)
        usleep(1000);
    peer_close(fd);
    while (rq_rpc_server_stats(t->server).connections > 0)
        usleep(1000);
    assert_int_equal(toy_release(t), 10);
    while (rq_rpc_server_stats(t->server).calls_in_flight > 0)
        usleep(1000);
    assert_int_equal(rq_rpc_server_stats(t->server).dropped, before.dropped + 10);
}

static void a_connection_closed_in_mid_frame_leaves_nothing(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "HBas\0\x50", 6), RQ_OK);
    rpc_put_header(&b, &plain);
    rpc_put_get(&b, 1, "Get", "row");
    for (size_t n = 0; n < b.len; n++) {
        int fd = peer_connect(t->port);
        peer_send(fd, b.ptr, n);
        peer_close(fd);
    }
    rq_buf_clear(&b);
    int fd = peer_connect(t->port);
    uint8_t *half = calloc(1, 100000);
    peer_send(fd, "HBas\0\x50\x0f\xff\xff\xff", 10); /* announces 256 MB */
    /* a header of this length is refused, so the connection may be closed */
    (void)!peer_try_send(fd, half, 100000);
    free(half);
    peer_close(fd);
    while (rq_rpc_server_stats(t->server).connections > 0)
        usleep(1000);
}

static void expired_calls_are_dropped(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 1, "Get", "never");
    rpc_put_get(&b, 2, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 2, "row");
    peer_close(fd);
}

/* ---- cell blocks */

static void fill_block(rq_cellblock *cells, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        rq_cell c = {.row = (const uint8_t *)"row",
                     .row_len = 3,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .value = (const uint8_t *)"value value value",
                     .value_len = 17,
                     .timestamp = i,
                     .type = RQ_TYPE_PUT};
        assert_int_equal(rq_cellblock_append(cells, &c), RQ_OK);
    }
}

static void expect_block_back(int fd, uint32_t id, rq_slice block)
{
    rpc_answer a;
    rpc_read(fd, &a);
    assert_null(a.header->exception);
    assert_int_equal(a.header->call_id, id);
    assert_int_equal(a.block.len, block.len);
    assert_memory_equal(a.block.ptr, block.ptr, block.len);
    rpc_answer_clear(&a);
}

static void cell_blocks_travel_both_ways(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &with_codec);
    rq_buf b = {0};
    Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
    static const unsigned counts[] = {1, 100, 5000, 100000};
    for (uint32_t i = 0; i < RQ_ARRAY_LEN(counts); i++) {
        rq_cellblock cells = {0};
        fill_block(&cells, counts[i]);
        rpc_put_request(&b, i, "Multi", &multi.base, rq_buf_slice(&cells.bytes), 0);
        rpc_send(fd, &b);
        expect_block_back(fd, i, rq_buf_slice(&cells.bytes));
        rq_cellblock_clear(&cells);
    }
    rpc_put_request(&b, 9, "Multi", &multi.base, RQ_SLICE_LIT("\0\0\0\x50garbage"), 0);
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 9, HB "DoNotRetryIOException", "malformed cell block", true);
    peer_close(fd);
}

/* Responses are copied or moved, in reused buffers, written before the iteration ends or later:
 * each arrives complete and in order. */
static void answers_of_all_sizes_keep_their_bytes_and_order(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &with_codec);
    enum { N = 120 };
    static const unsigned shapes[] = {1, 10, 300, 320, 1200, 1400, 20000};
    rq_cellblock sent[N];
    rq_buf b = {0};
    Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
    for (uint32_t i = 0; i < N; i++) {
        sent[i] = (rq_cellblock){0};
        fill_block(&sent[i], shapes[i * 5 % RQ_ARRAY_LEN(shapes)] + i);
    }
    for (uint32_t first = 0; first < N; first += 30) {
        for (uint32_t i = first; i < first + 30; i++)
            rpc_put_request(&b, i, "Multi", &multi.base, rq_buf_slice(&sent[i].bytes), 0);
        peer_sender *sender = peer_send_many(fd, b.ptr, b.len, 1);
        for (uint32_t i = first; i < first + 30; i++)
            expect_block_back(fd, i, rq_buf_slice(&sent[i].bytes));
        peer_sender_join(sender);
        rq_buf_reset(&b);
    }
    for (uint32_t i = 0; i < N; i++)
        rq_cellblock_clear(&sent[i]);
    rq_buf_clear(&b);
    peer_close(fd);
}

static void a_cell_block_longer_than_its_frame_is_refused(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    int fd = rpc_connect(t->port, &with_codec);
    rq_buf b = {0};
    Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
    rpc_put_request(&b, 1, "Multi", &multi.base, RQ_SLICE_LIT("0123456789"), 0);
    b.len -= 1;
    rq_put_be32(b.ptr, (uint32_t)b.len - 4);
    rpc_put_get(&b, 2, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 1, "java.lang.IllegalArgumentException", "exceeds the frame", false);
    rpc_expect_row(fd, 2, "row");
    peer_close(fd);
}

static void compressed_cell_blocks_are_answered_compressed(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    static const rpc_hello gzip = {.service = "ClientService",
                                   .codec = CODEC_KEYVALUE,
                                   .compressor = "org.apache.hadoop.io.compress.GzipCodec",
                                   .version = "2.6.1"};
    int fd = rpc_connect(t->port, &gzip);
    rq_cellblock cells = {0};
    fill_block(&cells, 1000);
    rq_buf packed = {0}, b = {0};
    /* Uses the room's compressor, because another one may make other bytes; test_cell_block.c tests
     * it with its own decompressor. */
    const struct rq_compressor *c = rq__compressor_find(gzip.compressor);
    assert_int_equal(rq__compressor_pack(c, rq_buf_slice(&cells.bytes), &packed), RQ_OK);
    Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
    rpc_put_request(&b, 1, "Multi", &multi.base, rq_buf_slice(&packed), 0);
    rpc_put_request(&b, 2, "Multi", &multi.base, RQ_SLICE_LIT("not gzip"), 0);
    rpc_send(fd, &b);
    expect_block_back(fd, 1, rq_buf_slice(&packed));
    rpc_expect_exception(fd, 2, "java.io.IOException", "GzipCodec", false);
    rq_buf_clear(&packed);
    rq_cellblock_clear(&cells);
    peer_close(fd);
}

/* ---- limits */

static void frames_at_the_limit(void **state)
{
    enum { LIMIT = 100000 };
    toy *t = serve(state, &(toy_options){.request_bytes_max = LIMIT});
    static char row[LIMIT];
    memset(row, 'r', sizeof row - 1);
    for (int over = -1; over <= 1; over++) {
        rq_buf b = {0};
        rpc_put_get(&b, 5, "Get", row);
        /* truncate the row until the frame has the intended length */
        size_t extra = b.len - 4 - LIMIT;
        rq_buf_reset(&b);
        row[sizeof row - 1 - extra + (size_t)(over + 1) - 1] = '\0';
        rpc_put_get(&b, 5, "Get", row);
        assert_int_equal(b.len - 4, LIMIT + over);
        int fd = rpc_connect(t->port, &plain);
        rpc_send(fd, &b);
        if (over <= 0) {
            rpc_expect_row(fd, 5, row);
        } else {
            rpc_expect_exception(fd, 5, HB "exceptions.RequestTooBigException",
                                 "RPC data length of 100001 received from 127.0.0.1 is greater "
                                 "than max allowed 100000",
                                 true);
            peer_expect_end(fd);
        }
        peer_close(fd);
        memset(row, 'r', sizeof row - 1);
    }
}

static void old_clients_get_an_exception_they_know(void **state)
{
    toy *t = serve(state, &(toy_options){.request_bytes_max = 1000});
    static const rpc_hello olds[] = {
        {.service = "ClientService"},
        {.service = "ClientService", .version = "1.2.6"},
        {.service = "ClientService", .version = "unparsable"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(olds); i++) {
        int fd = rpc_connect(t->port, &olds[i]);
        rq_buf b = {0};
        rpc_put_get(&b, 5, "Get", "row");
        rq_put_be32(b.ptr, 300u << 20); /* announces more bytes than are sent */
        rpc_send(fd, &b);
        rpc_expect_exception(fd, 5, HB "DoNotRetryIOException", "314572800", true);
        peer_expect_end(fd);
        peer_close(fd);
    }
    int fd = peer_connect(t->port); /* the connection header itself */
    peer_send(fd, "HBas\0\x50\x7f\xff\xff\xff", 10);
    rpc_expect_exception(fd, UINT32_MAX, HB "ipc.FatalConnectionException",
                         "connection header of 2147483647 bytes", true);
    peer_expect_end(fd);
    peer_close(fd);
}

static void a_request_that_swells_is_refused(void **state)
{
    toy *t = serve(state, &(toy_options){.budget_bytes = 16 << 20, .request_bytes_max = 8 << 20});
    int fd = rpc_connect(t->port, &plain);
    /* 4 MB of empty actions would take hundreds of MB when decoded. The MultiRequest is made by hand and has one
     * region action. */
    enum { ACTIONS = 2000000 };
    rq_buf region = {0}, multi = {0}, b = {0};
    assert_int_equal(rq_buf_append(&region, "\x0a\x05\x08\x01\x12\x01r", 7), RQ_OK);
    for (int i = 0; i < ACTIONS; i++)
        assert_int_equal(rq_buf_append(&region, "\x1a\x00", 2), RQ_OK);
    assert_int_equal(rq_buf_append_u8(&multi, 0x0a), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&multi, region.len), RQ_OK);
    assert_int_equal(rq_buf_append(&multi, region.ptr, region.len), RQ_OK);
    Pb__MultiRequest none = PB__MULTI_REQUEST__INIT;
    rpc_put_request(&b, 1, "Multi", &none.base, (rq_slice){0}, 0);
    b.len -= 1; /* replaces the length of the empty parameter */
    assert_int_equal(rq_buf_append_varint(&b, multi.len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, multi.ptr, multi.len), RQ_OK);
    rq_put_be32(b.ptr, (uint32_t)b.len - 4);
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 1, HB "DoNotRetryIOException", "rorqual.memory", true);
    rpc_put_get(&b, 2, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 2, "row");
    rq_buf_clear(&region);
    rq_buf_clear(&multi);
    peer_close(fd);
}

static void a_call_that_needs_too_much_while_it_runs_is_refused(void **state)
{
    toy *t = serve(state, &(toy_options){.budget_bytes = 1 << 20});
    rq_buf b = {0};
    int fd = rpc_connect(t->port, &plain);
    rpc_put_get(&b, 1, "Get", "eat:1000000");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 1, "eat:1000000");
    rpc_put_get(&b, 2, "Get", "eat:100000000");
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 2, HB "DoNotRetryIOException", "rorqual.memory", true);
    rpc_put_get(&b, 3, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_row(fd, 3, "row");
    peer_close(fd);
}

enum { BIG_CLIENTS = 12, BIG_CALLS = 3 };

struct big_client {
    pthread_t thread;
    toy *toy;
    uint32_t id;
};

static void *big_client_main(void *arg)
{
    struct big_client *c = arg;
    enum { ROW = 3 << 20 };
    char *row = malloc(ROW);
    memset(row, 'a' + (int)(c->id % 26), ROW);
    row[ROW - 1] = '\0';
    int fd = rpc_connect(c->toy->port, &plain);
    for (int i = 0; i < BIG_CALLS; i++) {
        rq_buf b = {0};
        rpc_put_get(&b, c->id, "Get", row);
        rpc_send(fd, &b);
        rpc_expect_row(fd, c->id, row);
    }
    peer_close(fd);
    free(row);
    return NULL;
}

static void big_requests_take_turns_under_the_budget(void **state)
{
    toy *t = serve(
        state, &(toy_options){.loops = 3, .budget_bytes = 8 << 20, .request_bytes_max = 4 << 20});
    struct big_client clients[BIG_CLIENTS];
    for (uint32_t i = 0; i < BIG_CLIENTS; i++) {
        clients[i] = (struct big_client){.toy = t, .id = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, big_client_main, &clients[i]), 0);
    }
    size_t most = 0;
    while (rq_rpc_server_stats(t->server).calls < BIG_CLIENTS * BIG_CALLS) {
        size_t used = rq_budget_used(t->budget);
        if (used > most) most = used;
        usleep(200);
    }
    for (int i = 0; i < BIG_CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    /* The limit, the overdraft, memory for decoding and copying on each loop, and the loops'
     * chunks. */
    assert_in_range(most, 1, (8 << 20) + (4 << 20) + 3 * 2 * (4 << 20) + (1 << 20));
}

static void a_client_that_does_not_read_is_not_read(void **state)
{
    if (getenv("TOY_BELOW") != NULL) skip(); /* its relay reads */
    toy *t = serve(state, &(toy_options){.loops = 1, .out_bytes_max = 1 << 20});
    int fd = rpc_connect(t->port, &with_codec);
    rq_buf b = {0};
    enum { N = 200 };
    for (uint32_t i = 0; i < N; i++)
        rpc_put_get(&b, i, "Get", "big:500000");
    rpc_send(fd, &b);
    while (atomic_load(&t->seen) == 0)
        usleep(1000);
    usleep(300000);
    unsigned seen = atomic_load(&t->seen);
    assert_in_range(seen, 1, 60); /* what sockets hold, and 1 MiB; not all 200 */
    /* Others are served meanwhile. */
    int other = rpc_connect(t->port, &plain);
    rpc_put_get(&b, 1, "Get", "row");
    rpc_send(other, &b);
    rpc_expect_row(other, 1, "row");
    peer_close(other);
    for (uint32_t i = 0; i < N; i++) {
        rpc_answer a;
        rpc_read(fd, &a);
        assert_int_equal(a.header->call_id, i);
        assert_true(a.block.len > 500000);
        rpc_answer_clear(&a);
    }
    assert_int_equal(atomic_load(&t->seen), N + 1);
    peer_close(fd);
}

static void too_many_calls_in_flight_wait_in_the_socket(void **state)
{
    toy *t = serve(state, &(toy_options){.loops = 1});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    enum { N = 3000 };
    for (uint32_t i = 0; i < N; i++)
        rpc_put_get(&b, i, "Get", "hold");
    rpc_send(fd, &b);
    while (atomic_load(&t->seen) < 1024)
        usleep(1000);
    usleep(50000);
    assert_int_equal(atomic_load(&t->seen), 1024);
    for (unsigned answered = 0, released = 0; answered < N;) {
        released += toy_release(t);
        if (answered == released) sched_yield(); /* not seen or not kept yet */
        for (; answered < released; answered++) {
            rpc_answer a;
            rpc_read(fd, &a);
            rpc_answer_clear(&a);
        }
    }
    peer_close(fd);
}

/* A short request that waits takes a hundred times its bytes. */
static void many_calls_in_flight_are_charged(void **state)
{
    /* FREE: 512 of each loop; a restless server has two */
    enum { PEERS = 2, CALLS = 1024, FREE = 512 * 2 };
    toy *t = serve(state, &(toy_options){.loops = 1});
    int fds[PEERS];
    rq_buf b = {0};
    for (int k = 0; k < PEERS; k++) {
        fds[k] = rpc_connect(t->port, &plain);
        for (uint32_t i = 0; i < CALLS; i++)
            rpc_put_get(&b, i, "Get", "hold");
        rpc_send(fds[k], &b);
    }
    while (atomic_load(&t->seen) < PEERS * CALLS)
        usleep(1000);
    assert_true(rq_budget_used(t->budget) > (size_t)4096 * (PEERS * CALLS - FREE));
    for (unsigned released = 0; released < PEERS * CALLS;)
        released += toy_release(t);
    for (int k = 0; k < PEERS; k++) {
        for (unsigned i = 0; i < CALLS; i++) {
            rpc_answer a;
            rpc_read(fds[k], &a);
            rpc_answer_clear(&a);
        }
        peer_close(fds[k]);
    }
}

/* ---- random bytes, and the stop of the server */

static void random_bytes_harm_no_other_client(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_random r;
    rq_random_seed(&r, 42);
    int good = rpc_connect(t->port, &plain);
    for (uint32_t round = 0; round < 400; round++) {
        uint8_t bytes[600];
        size_t len = (size_t)rq_random_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)rq_random_next(&r);
        int fd = round % 3 == 0 ? peer_connect(t->port) : rpc_connect(t->port, &plain);
        if (round % 3 == 2 && len > 8) rq_put_be32(bytes, (uint32_t)len - 4);
        peer_try_send(fd, bytes, len);
        if (round % 2 == 0) shutdown(fd, SHUT_WR);
        peer_close(fd);
        rq_buf b = {0};
        rpc_put_get(&b, round, "Get", "good");
        rpc_send(good, &b);
        rpc_expect_row(good, round, "good");
    }
    peer_close(good);
}

static void mutated_requests_harm_no_other_client(void **state)
{
    toy *t = serve(state, &(toy_options){0});
    rq_random r;
    rq_random_seed(&r, 43);
    for (uint32_t round = 0; round < 400; round++) {
        rq_buf b = {0};
        assert_int_equal(rq_buf_append(&b, "HBas\0\x50", 6), RQ_OK);
        rpc_put_header(&b, &with_codec);
        size_t safe = b.len;
        rpc_put_get(&b, 1, "Get", "row");
        Pb__MultiRequest multi = PB__MULTI_REQUEST__INIT;
        rq_cellblock cells = {0};
        fill_block(&cells, 3);
        rpc_put_request(&b, 2, "Multi", &multi.base, rq_buf_slice(&cells.bytes), 1000);
        rq_cellblock_clear(&cells);
        for (int i = 0; i < 3; i++)
            b.ptr[safe + rq_random_below(&r, b.len - safe)] = (uint8_t)rq_random_next(&r);
        int fd = peer_connect(t->port);
        peer_try_send(fd, b.ptr, b.len);
        rq_buf_clear(&b);
        shutdown(fd, SHUT_WR);
        uint8_t sink[4096];
        while (peer_recv(fd, sink, sizeof sink) > 0)
            ;
        peer_close(fd);
    }
}

static void *read_to_end(void *arg)
{
    int fd = *(int *)arg;
    uint8_t byte;
    while (peer_recv(fd, &byte, 1) > 0)
        ;
    peer_close(fd);
    return NULL;
}

static void draining_refuses_new_calls_and_finishes_old_ones(void **state)
{
    toy *t = serve(state, &(toy_options){.loops = 1});
    int fd = rpc_connect(t->port, &plain);
    rq_buf b = {0};
    rpc_put_get(&b, 1, "Get", "hold");
    rpc_send(fd, &b);
    while (atomic_load(&t->seen) < 1)
        usleep(1000);
    assert_false(rq_rpc_server_drain(t->server, 20)); /* the held call keeps it */
    toy_release(t);
    rpc_expect_row(fd, 1, "hold");
    rpc_put_get(&b, 2, "Get", "row");
    rpc_send(fd, &b);
    rpc_expect_exception(fd, 2, HB "regionserver.RegionServerStoppedException", "stopping", false);
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_to_end, &fd), 0);
    bool drained = rq_rpc_server_drain(t->server, 60000);
    if (!drained) shutdown(fd, SHUT_RDWR); /* ends the thread */
    pthread_join(reader, NULL);
    assert_true(drained);
}

static int begin(void **state)
{
    *state = calloc(1, sizeof(toy));
    return *state == NULL ? -1 : 0;
}

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
        T(registry_preamble_returns_the_cluster_id_and_closes),
        T(security_preamble_is_refused_and_the_connection_goes_on),
        T(security_preambles_of_a_connection_are_limited),
        T(a_method_has_a_longest_parameter),
        T(a_header_of_a_request_has_a_longest),
        T(unknown_preambles_are_fatal),
        T(a_client_that_wants_sasl_is_switched_to_simple),
        T(unknown_services_and_codecs_are_fatal),
        T(malformed_headers_close_the_connection),
        T(calls_are_answered_and_failures_named),
        T(each_end_of_a_call_is_reported_once),
        T(bad_calls_fail_alone),
        T(answers_overtake_each_other),
        T(byte_by_byte_is_as_good_as_at_once),
        T(thousands_of_calls_are_pipelined),
        T(calls_that_arrive_together_are_announced_before_they_run),
        T(a_call_outlives_its_connection),
        T(a_connection_closed_in_mid_frame_leaves_nothing),
        T(expired_calls_are_dropped),
        T(cell_blocks_travel_both_ways),
        T(answers_of_all_sizes_keep_their_bytes_and_order),
        T(a_cell_block_longer_than_its_frame_is_refused),
        T(compressed_cell_blocks_are_answered_compressed),
        T(random_bytes_harm_no_other_client),
        T(mutated_requests_harm_no_other_client),
        T(frames_at_the_limit),
        T(old_clients_get_an_exception_they_know),
        T(a_request_that_swells_is_refused),
        T(a_call_that_needs_too_much_while_it_runs_is_refused),
        T(big_requests_take_turns_under_the_budget),
        T(a_client_that_does_not_read_is_not_read),
        T(too_many_calls_in_flight_wait_in_the_socket),
        T(many_calls_in_flight_are_charged),
        T(draining_refuses_new_calls_and_finishes_old_ones),
    };
    int failed = cmocka_run_group_tests_name("connections that stay", tests, NULL, NULL);
    restless = true;
    return failed + cmocka_run_group_tests_name("connections that move", tests, NULL, NULL);
}
