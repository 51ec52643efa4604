/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of requests and responses (rpc/wire.h), compared with protobuf-c. */
#include "rpc/wire.h"

#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/region_server_status.pb-c.h"
#include "proto/registry.pb-c.h"
#include "proto/replication.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/rpc.pb-c.h"
#include "proto/rsgroup.pb-c.h"
#include "../base/unit.h"

/* Encodes a delimited RequestHeader with protobuf-c. */
static size_t pack_head(const Pb__RequestHeader *h, uint8_t *out)
{
    size_t len = pb__request_header__get_packed_size(h);
    size_t at = rq_put_varint(out, len);
    return at + pb__request_header__pack(h, out + at);
}

static void request_head_is_read_as_protobuf_reads_it(void **state)
{
    (void)state;
    Pb__CellBlockMeta meta = PB__CELL_BLOCK_META__INIT;
    meta.has_length = true;
    meta.length = 70000;
    Pb__NameBytesPair attribute = PB__NAME_BYTES_PAIR__INIT;
    attribute.name = "a";
    Pb__NameBytesPair *attributes[] = {&attribute};
    Pb__RPCTInfo trace = PB__RPCTINFO__INIT;
    trace.has_trace_id = true;
    trace.trace_id = -1;
    Pb__RequestHeader h = PB__REQUEST_HEADER__INIT;
    h.has_call_id = h.has_request_param = h.has_priority = h.has_timeout = true;
    h.call_id = 0x80000001;
    h.method_name = "Multi";
    h.request_param = true;
    h.cell_block_meta = &meta;
    h.priority = 200;
    h.timeout = 59999;
    h.trace_info = &trace;
    h.n_attribute = 1;
    h.attribute = attributes;
    uint8_t bytes[256];
    size_t len = pack_head(&h, bytes);
    bytes[len] = 0x55;
    rq_cursor c = rq_cursor_of(rq_slice_of(bytes, len + 1));
    rq_request_head head;
    assert_true(rq__request_head_parse(&c, &head));
    assert_int_equal(rq_cursor_left(&c), 1);
    assert_int_equal(head.call_id, 0x80000001);
    assert_true(rq_slice_eq(head.method, RQ_SLICE_LIT("Multi")));
    assert_true(head.has_param);
    assert_true(head.has_cell_block);
    assert_int_equal(head.cell_block_len, 70000);
    assert_int_equal(head.priority, 200);
    assert_int_equal(head.timeout_ms, 59999);
    assert_int_equal(rq__request_trace_id(head.trace), UINT64_MAX);
    /* Every truncation is refused without reading past the end. */
    for (size_t n = 0; n < len; n++) {
        c = rq_cursor_of(rq_slice_of(bytes, n));
        assert_false(rq__request_head_parse(&c, &head));
    }
}

static uint64_t trace_of(const char *key, const char *value)
{
    Pb__RPCTInfo__HeadersEntry entry = PB__RPCTINFO__HEADERS_ENTRY__INIT;
    Pb__RPCTInfo__HeadersEntry other = PB__RPCTINFO__HEADERS_ENTRY__INIT;
    Pb__RPCTInfo__HeadersEntry *entries[] = {&other, &entry};
    Pb__RPCTInfo trace = PB__RPCTINFO__INIT;
    uint8_t bytes[256];
    other.key = other.value = "x";
    entry.key = (char *)key;
    entry.value = (char *)value;
    trace.n_headers = 2;
    trace.headers = entries;
    return rq__request_trace_id(rq_slice_of(bytes, pb__rpctinfo__pack(&trace, bytes)));
}

static void a_trace_is_named_by_its_context(void **state)
{
    (void)state;
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_int_equal(trace_of("traceparent", good), 0xa3ce929d0e0e4736u);
    assert_int_equal(trace_of("tracestate", good), 0);
    assert_int_equal(trace_of("traceparent", ""), 0);
    char bad[sizeof good];
    for (size_t i = 0; i + 1 < sizeof good; i++) { /* truncated */
        memcpy(bad, good, i);
        bad[i] = '\0';
        assert_int_equal(trace_of("traceparent", bad), 0);
    }
    for (size_t i = 2; i < 36; i++) { /* a position that must be a digit or a dash */
        memcpy(bad, good, sizeof good);
        bad[i] = 'g';
        assert_int_equal(trace_of("traceparent", bad), 0);
    }
    assert_int_equal(rq__request_trace_id((rq_slice){0}), 0);
    assert_int_equal(rq__request_trace_id(RQ_SLICE_LIT("\x08")), 0);
    assert_int_equal(rq__request_trace_id(RQ_SLICE_LIT("\x1a\x7f")), 0);
}

static void malformed_heads_are_refused(void **state)
{
    (void)state;
    static const uint8_t bad[][12] = {
        {5, 0x08, 0xff, 0xff, 0xff, 0xff},       /* varint without an end */
        {2, 0x00, 0x01},                         /* field 0 */
        {2, 0x0b, 0x01},                         /* a group */
        {3, 0x1a, 0x7f, 'x'},                    /* a name longer than the header */
        {2, 0x1d, 0x00},                         /* method_name as fixed32 */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, /* a length beyond the header */
        {4, 0x2a, 0x02, 0x08, 0x80},             /* cell block meta, truncated in its varint */
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_cursor c = rq_cursor_of(rq_slice_of(bad[i], sizeof bad[i]));
        rq_request_head head;
        assert_false(rq__request_head_parse(&c, &head));
    }
}

/* Decodes the output of rq__response_begin with protobuf-c. */
static void check_response(uint32_t call_id, size_t message_len, size_t block_len)
{
    rq_buf out = {0};
    assert_int_equal(rq__response_begin(&out, call_id, message_len, block_len, message_len), RQ_OK);
    assert_true(out.cap - out.len >= message_len);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&out));
    uint32_t total;
    uint64_t len;
    rq_slice head;
    assert_true(rq_cursor_be32(&c, &total));
    assert_int_equal(total, out.len - 4 + message_len + block_len);
    assert_true(rq_cursor_varint(&c, &len));
    assert_true(rq_cursor_bytes(&c, (size_t)len, &head));
    Pb__ResponseHeader *h = pb__response_header__unpack(NULL, head.len, head.ptr);
    assert_non_null(h);
    assert_int_equal(h->call_id, call_id);
    assert_int_equal(h->cell_block_meta != NULL, block_len > 0);
    if (block_len > 0) assert_int_equal(h->cell_block_meta->length, block_len);
    pb__response_header__free_unpacked(h, NULL);
    assert_true(rq_cursor_varint(&c, &len));
    assert_int_equal(len, message_len);
    assert_int_equal(rq_cursor_left(&c), 0);
    rq_buf_clear(&out);
}

static void response_head_is_protobuf(void **state)
{
    (void)state;
    check_response(0, 0, 0);
    check_response(1, 127, 127);
    check_response(127, 128, 128);
    check_response(300, 16384, 5000000);
    check_response(RQ_CALL_ID_NONE, 2, 1);
    rq_buf out = {0};
    assert_int_equal(rq__response_begin(&out, 1, 10, RQ_RESPONSE_BYTES_MAX, 10),
                     RQ_E_RESULT_TOO_LARGE);
    rq_buf_clear(&out);
}

static const struct {
    const char *service, *method;
    const ProtobufCMessageDescriptor *request, *response;
} methods[] = {
#define X(service, method, request, response)                                                      \
    {#service, #method, &pb__##request##__descriptor, &pb__##response##__descriptor},
#include "rpc/methods.def"
#undef X
};

static void every_method_is_listed_once_and_has_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        assert_int_equal(methods[i].request->magic, PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC);
        assert_int_equal(methods[i].response->magic, PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC);
        for (size_t k = 0; k < i; k++)
            assert_false(strcmp(methods[i].method, methods[k].method) == 0 &&
                         strcmp(methods[i].service, methods[k].service) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_head_is_read_as_protobuf_reads_it),
        cmocka_unit_test(a_trace_is_named_by_its_context),
        cmocka_unit_test(malformed_heads_are_refused),
        cmocka_unit_test(response_head_is_protobuf),
        cmocka_unit_test(every_method_is_listed_once_and_has_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
