/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding and decoding of HBase's RPC protocol, without connections.
 *
 *   client: "HBas" version=0 auth=0x50   the preamble, once; or "Regist", "Securi"
 *           be32 length, ConnectionHeader
 *           be32 length, request …
 *   request:  varint length, RequestHeader, varint length, parameter message, [cell block]
 *   response: be32 length of all that follows,
 *             varint length, ResponseHeader, [varint length, message, [cell block]]
 *
 * The headers give the cell block's length. The client chooses call ids; -1 belongs to no call.
 */
#ifndef RQ_RPC_WIRE_H
#define RQ_RPC_WIRE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "net/input.h"
#include "rpc/call.h"

#define RQ_PREAMBLE_LEN 6
#define RQ_PROTOCOL_VERSION 0
#define RQ_AUTH_SIMPLE 0x50
#define RQ_AUTH_KERBEROS 0x51
#define RQ_AUTH_DIGEST 0x52
#define RQ_CALL_ID_NONE UINT32_MAX
#define RQ_RESPONSE_BYTES_MAX ((size_t)INT32_MAX)

/* Longest header of a request. It is parsed, and its attributes are decoded, on the connection's loop. */
#define RQ_REQUEST_HEAD_MAX ((size_t)256 * 1024)

/* The fields of a RequestHeader that dispatch needs, parsed without allocation. */
typedef struct rq_request_head {
    rq_slice bytes;  /* the whole header */
    rq_slice method; /* in the frame; empty when absent */
    rq_slice trace;  /* the RPCTInfo, not decoded; empty when absent */
    uint32_t call_id;
    uint32_t priority;
    uint32_t timeout_ms;
    uint32_t cell_block_len;
    bool has_cell_block;
    bool has_param;
    bool is_too_long; /* only the fields in its first RQ_REQUEST_HEAD_MAX bytes were read */
} rq_request_head;

/* Parses the delimited header at the front of a frame and advances the cursor past it. False: malformed. Of a header
 * longer than RQ_REQUEST_HEAD_MAX only the first RQ_REQUEST_HEAD_MAX bytes are parsed, up to the first field that is
 * malformed or cut off; the result is true. */
bool rq__request_head_parse(rq_cursor *frame, rq_request_head *ret);

/* The trace that an RPCTInfo names: its trace_id (HTrace), or the low 64 bits of the trace id in
 * its header `traceparent` (OpenTelemetry). 0: none, or malformed. */
RQ_COLD uint64_t rq__request_trace_id(rq_slice trace);

/* Appends length, header and the message's length of a successful response. The caller must then
 * append message_len bytes of message and block_len bytes of cell block. Reserves `room` bytes for
 * them. RQ_E_RESULT_TOO_LARGE: the response would exceed RQ_RESPONSE_BYTES_MAX. */
RQ_NODISCARD
rq_err rq__response_begin(rq_buf *out, uint32_t call_id, size_t message_len, size_t block_len,
                          size_t room);
/* Appends a complete response without cell block; `message` may be NULL. */
RQ_NODISCARD
rq_err rq__response_message(rq_buf *out, uint32_t call_id, const ProtobufCMessage *message);
/* Appends a complete response with an exception; `text` is what the client prints. */
RQ_NODISCARD
rq_err rq__response_exception(rq_buf *out, uint32_t call_id, const rq_rpc_exception *exception,
                              const char *text);

#endif
