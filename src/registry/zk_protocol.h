/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper's wire protocol, as clients 3.4 to 3.9 speak it: numbers and the jute primitives.
 * Source: zookeeper.jute and ZooDefs of Apache ZooKeeper. All integers are big-endian; a buffer or
 * string is an i32 length (-1: null) and bytes; a vector an i32 count and its items.
 */
#ifndef RQ_REGISTRY_ZK_PROTOCOL_H
#define RQ_REGISTRY_ZK_PROTOCOL_H

#include "base/buf.h"

enum rq__zk_op {
    RQ__ZK_CREATE = 1,
    RQ__ZK_DELETE = 2,
    RQ__ZK_EXISTS = 3,
    RQ__ZK_GET_DATA = 4,
    RQ__ZK_SET_DATA = 5,
    RQ__ZK_GET_ACL = 6,
    RQ__ZK_SET_ACL = 7,
    RQ__ZK_GET_CHILDREN = 8,
    RQ__ZK_SYNC = 9,
    RQ__ZK_PING = 11,
    RQ__ZK_GET_CHILDREN2 = 12,
    RQ__ZK_CREATE2 = 15,
    RQ__ZK_AUTH = 100,
    RQ__ZK_SET_WATCHES = 101,
    RQ__ZK_SET_WATCHES2 = 105,
    RQ__ZK_CLOSE_SESSION = -11,
};

enum rq__zk_err {
    RQ__ZK_OK = 0,
    RQ__ZK_MARSHALLING = -5,
    RQ__ZK_OPERATION_TIMEOUT = -7,
    RQ__ZK_UNIMPLEMENTED = -6,
    RQ__ZK_NO_NODE = -101,
    RQ__ZK_NO_AUTH = -102,
    RQ__ZK_AUTH_FAILED = -115,
};

enum rq__zk_event {
    RQ__ZK_NODE_CREATED = 1,
    RQ__ZK_NODE_DELETED = 2,
    RQ__ZK_NODE_DATA_CHANGED = 3,
    RQ__ZK_NODE_CHILDREN_CHANGED = 4,
};

enum {
    RQ__ZK_XID_WATCH = -1,
    RQ__ZK_XID_PING = -2,
    RQ__ZK_XID_AUTH = -4,
    RQ__ZK_XID_SET_WATCHES = -8
};

#define RQ__ZK_FRAME_MAX (1024 * 1024)
#define RQ__ZK_PASSWORD_LEN 16
#define RQ__ZK_STATE_SYNC_CONNECTED 3

typedef struct rq__zk_stat {
    int64_t czxid, mzxid, ctime, mtime;
    int32_t version, cversion, aversion;
    int64_t ephemeral_owner;
    int32_t data_length, child_count;
    int64_t pzxid;
} rq__zk_stat;

/* Cursor readers: false at the end, or for a length that does not fit. */
bool rq__zk_read_i32(rq_cursor *c, int32_t *ret);
bool rq__zk_read_i64(rq_cursor *c, int64_t *ret);
bool rq__zk_read_bool(rq_cursor *c, bool *ret);
/* A null buffer comes as an empty one. */
bool rq__zk_read_buffer(rq_cursor *c, rq_slice *ret);

RQ_NODISCARD
rq_err rq__zk_write_buffer(rq_buf *b, rq_slice bytes);
RQ_NODISCARD
rq_err rq__zk_write_stat(rq_buf *b, const rq__zk_stat *s);
/* Begins a frame: leaves room for its length. Returns its offset. */
RQ_NODISCARD
rq_err rq__zk_frame_begin(rq_buf *b, size_t *ret_at);
void rq__zk_frame_end(rq_buf *b, size_t at);
RQ_NODISCARD
rq_err rq__zk_reply_header(rq_buf *b, int32_t xid, int64_t zxid, int32_t err);

#endif
