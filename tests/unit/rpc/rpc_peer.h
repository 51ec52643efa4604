/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal HBase client for tests: sends exactly the given bytes, and parses responses. */
#ifndef RQ_TEST_RPC_RPC_PEER_H
#define RQ_TEST_RPC_RPC_PEER_H

#include "base/buf.h"
#include "../net/peer.h"
#include "proto/client.pb-c.h"
#include "proto/rpc.pb-c.h"

#define CODEC_KEYVALUE "org.apache.hadoop.hbase.codec.KeyValueCodec"

typedef struct rpc_hello {
    const char *service;
    const char *codec;
    const char *compressor;
    const char *version; /* NULL: sends no version_info */
} rpc_hello;

/* Connects; sends preamble and connection header. */
int rpc_connect(uint16_t port, const rpc_hello *hello);
/* Appends a connection header's frame. */
void rpc_put_header(rq_buf *out, const rpc_hello *hello);
/* Appends a request's frame; `param` may be NULL (then no parameter is announced). */
void rpc_put_request(rq_buf *out, uint32_t id, const char *method, const ProtobufCMessage *param,
                     rq_slice block, uint32_t timeout_ms);
/* Appends a Get of this row. */
void rpc_put_get(rq_buf *out, uint32_t id, const char *method, const char *row);
void rpc_send(int fd, rq_buf *b); /* empties b */

typedef struct rpc_answer {
    uint8_t *bytes;
    Pb__ResponseHeader *header;
    rq_slice message; /* ptr NULL: no message */
    rq_slice block;
} rpc_answer;

void rpc_read(int fd, rpc_answer *ret);
void rpc_answer_clear(rpc_answer *a);
/* Reads a response that must be this exception; `text` must occur in its stack trace. */
void rpc_expect_exception(int fd, uint32_t id, const char *java_class, const char *text,
                          bool do_not_retry);
/* Reads a response that must be a GetResponse with this row in its first cell. */
void rpc_expect_row(int fd, uint32_t id, const char *row);

#endif
