/* SPDX-License-Identifier: Apache-2.0 */
/* A test's HBase client; see rpc_peer.h. */
#include "rpc_peer.h"

#include "../base/unit.h"

static void append(rq_buf *out, const void *bytes, size_t len)
{
    assert_int_equal(rq_buf_append(out, bytes, len), RQ_OK);
}

static void append_message(rq_buf *out, const ProtobufCMessage *m, bool delimited)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    if (delimited) assert_int_equal(rq_buf_append_varint(out, len), RQ_OK);
    assert_int_equal(rq_buf_reserve(out, len), RQ_OK);
    out->len += protobuf_c_message_pack(m, out->ptr + out->len);
}

static void close_frame(rq_buf *out, size_t at)
{
    rq_put_be32(out->ptr + at, (uint32_t)(out->len - at - 4));
}

void rpc_put_header(rq_buf *out, const rpc_hello *hello)
{
    Pb__UserInformation user = PB__USER_INFORMATION__INIT;
    user.effective_user = "tester";
    Pb__VersionInfo version = PB__VERSION_INFO__INIT;
    version.version = (char *)hello->version;
    version.url = version.revision = version.user = version.date = version.src_checksum = "";
    Pb__ConnectionHeader h = PB__CONNECTION_HEADER__INIT;
    h.user_info = &user;
    h.service_name = (char *)hello->service;
    h.cell_block_codec_class = (char *)hello->codec;
    h.cell_block_compressor_class = (char *)hello->compressor;
    if (hello->version != NULL) h.version_info = &version;
    size_t at = out->len;
    append(out, "....", 4);
    append_message(out, &h.base, false);
    close_frame(out, at);
}

int rpc_connect(uint16_t port, const rpc_hello *hello)
{
    int fd = peer_connect(port);
    rq_buf b = {0};
    append(&b, "HBas\0\x50", 6);
    rpc_put_header(&b, hello);
    rpc_send(fd, &b);
    return fd;
}

void rpc_put_request(rq_buf *out, uint32_t id, const char *method, const ProtobufCMessage *param,
                     rq_slice block, uint32_t timeout_ms)
{
    Pb__CellBlockMeta meta = PB__CELL_BLOCK_META__INIT;
    meta.has_length = true;
    meta.length = (uint32_t)block.len;
    Pb__RequestHeader h = PB__REQUEST_HEADER__INIT;
    h.has_call_id = h.has_request_param = true;
    h.call_id = id;
    h.method_name = (char *)method;
    h.request_param = param != NULL;
    h.has_timeout = timeout_ms > 0;
    h.timeout = timeout_ms;
    if (block.len > 0) h.cell_block_meta = &meta;
    size_t at = out->len;
    append(out, "....", 4);
    append_message(out, &h.base, true);
    if (param != NULL) append_message(out, param, true);
    append(out, block.ptr, block.len);
    close_frame(out, at);
}

void rpc_put_get(rq_buf *out, uint32_t id, const char *method, const char *row)
{
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    region.value.data = (uint8_t *)"r";
    region.value.len = 1;
    Pb__Get get = PB__GET__INIT;
    get.row.data = (uint8_t *)row;
    get.row.len = strlen(row);
    Pb__GetRequest request = PB__GET_REQUEST__INIT;
    request.region = &region;
    request.get = &get;
    rpc_put_request(out, id, method, &request.base, (rq_slice){0}, 0);
}

void rpc_send(int fd, rq_buf *b)
{
    peer_send(fd, b->ptr, b->len);
    rq_buf_clear(b);
}

void rpc_read(int fd, rpc_answer *ret)
{
    uint8_t head[4];
    peer_read(fd, head, 4);
    uint32_t len = rq_get_be32(head);
    assert_true(len < (100u << 20));
    *ret = (rpc_answer){.bytes = malloc(len)};
    peer_read(fd, ret->bytes, len);
    rq_cursor c = rq_cursor_of(rq_slice_of(ret->bytes, len));
    uint64_t n;
    rq_slice header;
    assert_true(rq_cursor_varint(&c, &n) && rq_cursor_bytes(&c, (size_t)n, &header));
    ret->header = pb__response_header__unpack(NULL, header.len, header.ptr);
    assert_non_null(ret->header);
    if (rq_cursor_left(&c) == 0) return;
    assert_true(rq_cursor_varint(&c, &n) && rq_cursor_bytes(&c, (size_t)n, &ret->message));
    size_t block = ret->header->cell_block_meta == NULL ? 0 : ret->header->cell_block_meta->length;
    assert_true(rq_cursor_bytes(&c, block, &ret->block));
    assert_int_equal(rq_cursor_left(&c), 0);
}

void rpc_answer_clear(rpc_answer *a)
{
    pb__response_header__free_unpacked(a->header, NULL);
    free(a->bytes);
}

void rpc_expect_exception(int fd, uint32_t id, const char *java_class, const char *text,
                          bool do_not_retry)
{
    rpc_answer a;
    rpc_read(fd, &a);
    assert_int_equal(a.header->call_id, id);
    assert_non_null(a.header->exception);
    assert_string_equal(a.header->exception->exception_class_name, java_class);
    if (strstr(a.header->exception->stack_trace, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, a.header->exception->stack_trace);
    assert_int_equal(a.header->exception->do_not_retry, do_not_retry);
    rpc_answer_clear(&a);
}

void rpc_expect_row(int fd, uint32_t id, const char *row)
{
    rpc_answer a;
    rpc_read(fd, &a);
    assert_null(a.header->exception);
    assert_int_equal(a.header->call_id, id);
    Pb__GetResponse *r = pb__get_response__unpack(NULL, a.message.len, a.message.ptr);
    assert_non_null(r);
    assert_int_equal(r->result->cell[0]->row.len, strlen(row));
    assert_memory_equal(r->result->cell[0]->row.data, row, strlen(row));
    pb__get_response__free_unpacked(r, NULL);
    rpc_answer_clear(&a);
}
