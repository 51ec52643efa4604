/* SPDX-License-Identifier: Apache-2.0 */
/* Finds meta and master, at the start and again when meta is lost, with plain blocking sockets: no
 * operation could continue meanwhile.
 *
 * By ZooKeeper's protocol: opens a session, reads <root>/hbaseid, meta-region-server and master
 * with getData, closes the session. The znodes contain 0xFF, be32 length and bytes of an id, "PBUF"
 * and a message. HBASE: ZKConnectionRegistry. By RPC: the preamble "Regist" for the cluster's id,
 * then ClientMetaService on an ordinary connection. HBASE: RpcConnectionRegistry. */
#include "client/client_priv.h"

#include "base/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX (1 << 20)
#define ZK_GET_DATA 4
#define ZK_CLOSE (-11)
#define ZK_NO_NODE (-101)

bool rq__address_parse(rq_slice text, rq__address *ret)
{
    size_t colon = text.len;
    unsigned long port = 0;
    while (colon > 0 && text.ptr[colon - 1] != ':')
        colon--;
    if (colon < 2 || colon == text.len) return false;
    rq_slice host = rq_slice_of(text.ptr, colon - 1);
    bool brackets = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    if (brackets) host = rq_slice_of(host.ptr + 1, host.len - 2);
    if (host.len >= sizeof ret->host) return false;
    for (size_t i = colon; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        port = port * 10 + (text.ptr[i] - (unsigned)'0');
        if (port > UINT16_MAX) return false;
    }
    memcpy(ret->host, host.ptr, host.len);
    ret->host[host.len] = 0;
    ret->port = (uint16_t)port;
    return port > 0;
}

/* --- a blocking socket ------------------------------------------------------------------------ */

typedef struct wire {
    int fd;
    rq__address at;
    rq_buf in;
    rq_error *why;
} wire;

static rq_err wire_failed(const wire *w, const char *what)
{
    /* Of a socket with a time-out. */
    bool is_late = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;
    return rq_fail(w->why, RQ_E_IO, "%s %s: %s", what, RQ_HOST_PORT(w->at.host, w->at.port),
                   is_late ? "no answer in time" : strerror(errno));
}

static rq_err wire_open(wire *w, const rq__address *at, int64_t timeout_ns)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct timeval limit = {timeout_ns / 1000000000, timeout_ns / 1000 % 1000000};
    char port[8];
    w->at = *at;
    snprintf(port, sizeof port, "%u", at->port);
    int rc = getaddrinfo(at->host, port, &hints, &found);
    if (rc != 0) return rq_fail(w->why, RQ_E_IO, "cannot find %s: %s", at->host, gai_strerror(rc));
    for (struct addrinfo *a = found; a != NULL && w->fd < 0; a = a->ai_next) {
        w->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (w->fd < 0) continue;
        setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (connect(w->fd, a->ai_addr, a->ai_addrlen) == 0) break;
        int error = errno;
        close(w->fd);
        w->fd = -1;
        errno = error;
    }
    rc = errno;
    freeaddrinfo(found);
    errno = rc;
    return w->fd >= 0 ? RQ_OK : wire_failed(w, "cannot connect to");
}

static void wire_close(wire *w)
{
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    rq_buf_clear(&w->in);
}

static rq_err wire_send(wire *w, const rq_buf *b)
{
    for (size_t sent = 0; sent < b->len;) {
        ssize_t n = send(w->fd, b->ptr + sent, b->len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return wire_failed(w, "cannot write to");
        sent += (size_t)n;
    }
    return RQ_OK;
}

static rq_err wire_read(wire *w, uint8_t *out, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = recv(w->fd, out + got, len - got, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0)
            return rq_fail(w->why, RQ_E_IO, "%s closed the connection",
                           RQ_HOST_PORT(w->at.host, w->at.port));
        if (n < 0) return wire_failed(w, "cannot read from");
        got += (size_t)n;
    }
    return RQ_OK;
}

/* Reads be32 length and that many bytes; they are valid until the next frame. */
static rq_err wire_frame(wire *w, rq_slice *ret)
{
    uint8_t head[4];
    RQ_TRY(wire_read(w, head, sizeof head));
    uint32_t len = rq_get_be32(head);
    if (len > ANSWER_MAX)
        return rq_fail(w->why, RQ_E_MALFORMED, "%s: invalid answer of %u bytes",
                       RQ_HOST_PORT(w->at.host, w->at.port), len);
    rq_buf_reset(&w->in);
    RQ_TRY(rq_buf_reserve(&w->in, len));
    RQ_TRY(wire_read(w, w->in.ptr, len));
    w->in.len = len;
    *ret = rq_buf_slice(&w->in);
    return RQ_OK;
}

/* --- messages both ways use ------------------------------------------------------------------- */

/* ServerName { host_name 1, port 2 } */
static rq_err parse_server_name(rq_slice bytes, rq__address *ret)
{
    rq_cursor c = rq_cursor_of(bytes);
    rq_pb_field f;
    rq_err rc;
    *ret = (rq__address){0};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == 1 && f.wire == 2 && f.bytes.len < sizeof ret->host && f.bytes.len > 0)
            memcpy(ret->host, f.bytes.ptr, f.bytes.len);
        if (f.number == 2 && f.wire == 0 && f.value <= UINT16_MAX) ret->port = (uint16_t)f.value;
    }
    if (rc != RQ_E_END) return rc;
    return ret->host[0] != 0 && ret->port != 0 ? RQ_OK : RQ_E_MALFORMED;
}

/* The first field with that number, or empty. */
static rq_slice field_of(rq_slice message, uint32_t number)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == number && f.wire == 2) return f.bytes;
    return (rq_slice){0};
}

static void copy_id(rq_slice bytes, rq__registry_answer *ret)
{
    if (bytes.len == 0 || bytes.len >= sizeof ret->cluster_id) return;
    memcpy(ret->cluster_id, bytes.ptr, bytes.len);
    ret->cluster_id[bytes.len] = 0;
}

/* --- ZooKeeper -------------------------------------------------------------------------------- */

static rq_err zk_connect(wire *w)
{
    rq_buf b = {0};
    rq_slice answer;
    rq_err rc = rq_buf_append_be32(&b, 44);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, 0);     /* protocol */
    if (rc == RQ_OK) rc = rq_buf_append_be64(&b, 0);     /* last zxid seen */
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, 30000); /* session's time-out */
    if (rc == RQ_OK) rc = rq_buf_append_be64(&b, 0);     /* session */
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, 16);    /* password */
    if (rc == RQ_OK) rc = rq_buf_append_be64(&b, 0);
    if (rc == RQ_OK) rc = rq_buf_append_be64(&b, 0);
    if (rc == RQ_OK) rc = wire_send(w, &b);
    rq_buf_clear(&b);
    return rc == RQ_OK ? wire_frame(w, &answer) : rc;
}

static rq_err zk_get(wire *w, int32_t xid, const char *root, const char *name, rq_slice *ret)
{
    rq_buf b = {0};
    size_t path_len = strlen(root) + 1 + strlen(name);
    rq_err rc = rq_buf_append_be32(&b, (uint32_t)(4 + 4 + 4 + path_len + 1));
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, (uint32_t)xid);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, ZK_GET_DATA);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, (uint32_t)path_len);
    if (rc == RQ_OK) rc = rq_buf_printf(&b, "%s/%s", root, name);
    if (rc == RQ_OK) rc = rq_buf_append_u8(&b, 0); /* no watch */
    if (rc == RQ_OK) rc = wire_send(w, &b);
    rq_buf_clear(&b);
    RQ_TRY(rc);
    rq_slice answer;
    uint32_t number;
    uint64_t zxid;
    uint32_t err;
    do { /* responses to pings and watch events have negative ids */
        RQ_TRY(wire_frame(w, &answer));
        rq_cursor c = rq_cursor_of(answer);
        if (!rq_cursor_be32(&c, &number) || !rq_cursor_be64(&c, &zxid) || !rq_cursor_be32(&c, &err))
            return rq_fail(w->why, RQ_E_MALFORMED, "malformed answer from ZooKeeper");
        if (number != (uint32_t)xid) continue;
        if ((int32_t)err == ZK_NO_NODE)
            return rq_fail(w->why, RQ_E_NOT_FOUND, "there is no %s/%s in ZooKeeper: is HBase up?",
                           root, name);
        uint32_t len;
        if (err != 0 || !rq_cursor_be32(&c, &len) || !rq_cursor_bytes(&c, len, ret))
            return rq_fail(w->why, RQ_E_IO, "ZooKeeper answers %d for %s/%s", (int32_t)err, root,
                           name);
    } while (number != (uint32_t)xid);
    return RQ_OK;
}

/* The message behind 0xFF, id and "PBUF". */
static rq_err znode_message(rq_slice data, rq_slice *ret)
{
    rq_cursor c = rq_cursor_of(data);
    rq_slice skipped;
    uint8_t magic;
    uint32_t id_len;
    if (!rq_cursor_u8(&c, &magic) || magic != 0xff || !rq_cursor_be32(&c, &id_len) ||
        !rq_cursor_bytes(&c, id_len, &skipped) || !rq_cursor_bytes(&c, 4, &skipped) ||
        memcmp(skipped.ptr, "PBUF", 4) != 0)
        return RQ_E_MALFORMED;
    *ret = rq_slice_of(c.ptr, rq_cursor_left(&c));
    return RQ_OK;
}

static rq_err zk_server(wire *w, int32_t xid, const char *root, const char *name, rq__address *ret)
{
    rq_slice data;
    rq_slice message;
    RQ_TRY(zk_get(w, xid, root, name, &data));
    if (znode_message(data, &message) != RQ_OK ||
        parse_server_name(field_of(message, 1), ret) != RQ_OK)
        return rq_fail(w->why, RQ_E_MALFORMED, "%s/%s in ZooKeeper is malformed", root, name);
    return RQ_OK;
}

static rq_err ask_zookeeper(const rq_client_options *o, wire *w, rq__registry_answer *ret)
{
    const char *root = o->zk_root != NULL ? o->zk_root : "/hbase";
    rq_slice data;
    rq_slice message;
    RQ_TRY(zk_connect(w));
    RQ_TRY(zk_get(w, 1, root, "hbaseid", &data));
    if (znode_message(data, &message) == RQ_OK) copy_id(field_of(message, 1), ret);
    RQ_TRY(zk_server(w, 2, root, "meta-region-server", &ret->meta));
    RQ_TRY(zk_server(w, 3, root, "master", &ret->master));
    rq_buf b = {0}; /* an unclosed session would occupy the ensemble until its time-out */
    rq_err rc = rq_buf_append_be32(&b, 8);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, 4);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, (uint32_t)ZK_CLOSE);
    if (rc == RQ_OK) rc = wire_send(w, &b);
    rq_buf_clear(&b);
    return rc;
}

/* --- RPC -------------------------------------------------------------------------------------- */

/* Sends the preamble "Regist", which is answered with the cluster's id. Servers before 2.6 close
 * the connection instead. */
static void ask_cluster_id(const rq__address *at, int64_t timeout_ns, rq__registry_answer *ret)
{
    rq_error ignored = {0};
    wire w = {.fd = -1, .why = &ignored};
    rq_buf b = {0};
    rq_slice frame;
    rq_response_view v;
    if (wire_open(&w, at, timeout_ns) == RQ_OK && rq_buf_append(&b, "Regist", 6) == RQ_OK &&
        wire_send(&w, &b) == RQ_OK && wire_frame(&w, &frame) == RQ_OK &&
        rq__response_parse(frame, &v) == RQ_OK)
        copy_id(field_of(v.message, 1), ret);
    rq_buf_clear(&b);
    wire_close(&w);
}

/* Opens a connection for ClientMetaService; its calls use the method's number as id. */
static rq_err rpc_hello(wire *w, const char *user)
{
    static const uint8_t preamble[] = {'H', 'B', 'a', 's', 0, 0x50};
    rq_buf b = {0};
    rq_buf head = {0};
    size_t at;
    rq_err rc = rq_pb_begin(&head, 1, &at);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&head, 1, rq_slice_cstr(user));
    if (rc == RQ_OK) rc = rq_pb_end(&head, at);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&head, 2, RQ_SLICE_LIT("ClientMetaService"));
    if (rc == RQ_OK) rc = rq_buf_append(&b, preamble, sizeof preamble);
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, (uint32_t)head.len);
    if (rc == RQ_OK) rc = rq_buf_append(&b, head.ptr, head.len);
    if (rc == RQ_OK) rc = wire_send(w, &b);
    rq_buf_clear(&b);
    rq_buf_clear(&head);
    return rc;
}

static rq_err rpc_ask(wire *w, uint32_t id, const char *method, rq_slice *ret)
{
    rq_buf b = {0};
    rq_buf head = {0};
    rq_err rc = rq_pb_put_number(&head, 1, id);
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&head, 3, rq_slice_cstr(method));
    if (rc == RQ_OK) rc = rq_pb_put_number(&head, 4, 1);
    RQ_ASSERT(head.len < 120); /* lengths take one byte; the parameter is an empty message */
    if (rc == RQ_OK) rc = rq_buf_append_be32(&b, (uint32_t)(1 + head.len + 1));
    if (rc == RQ_OK) rc = rq_buf_append_u8(&b, (uint8_t)head.len);
    if (rc == RQ_OK) rc = rq_buf_append(&b, head.ptr, head.len);
    if (rc == RQ_OK) rc = rq_buf_append_u8(&b, 0);
    if (rc == RQ_OK) rc = wire_send(w, &b);
    rq_buf_clear(&b);
    rq_buf_clear(&head);
    RQ_TRY(rc);
    rq_slice frame;
    rq_response_view v;
    RQ_TRY(wire_frame(w, &frame));
    if (rq__response_parse(frame, &v) != RQ_OK)
        return rq_fail(w->why, RQ_E_MALFORMED, "%s: malformed answer to %s",
                       RQ_HOST_PORT(w->at.host, w->at.port), method);
    if (v.exception.java_class.len > 0)
        return rq_fail(w->why, rq__err_of_class(v.exception.java_class), "%s: %.*s", method,
                       (int)(v.exception.text.len > 300 ? 300 : v.exception.text.len),
                       (const char *)v.exception.text.ptr);
    *ret = v.message;
    return RQ_OK;
}

static rq_err ask_rpc(const rq_client_options *o, wire *w, rq__registry_answer *ret)
{
    rq_slice message;
    RQ_TRY(rpc_hello(w, o->user != NULL ? o->user : "rorqual"));
    RQ_TRY(rpc_ask(w, 1, "GetMetaRegionLocations", &message));
    /* { RegionLocation 1 { server_name 2 } } */
    if (parse_server_name(field_of(field_of(message, 1), 2), &ret->meta) != RQ_OK)
        return rq_fail(w->why, RQ_E_NOT_FOUND, "%s:%u does not know where hbase:meta is",
                       w->at.host, w->at.port);
    RQ_TRY(rpc_ask(w, 2, "GetActiveMaster", &message));
    if (parse_server_name(field_of(message, 1), &ret->master) != RQ_OK)
        return rq_fail(w->why, RQ_E_NOT_FOUND, "%s does not know the master",
                       RQ_HOST_PORT(w->at.host, w->at.port));
    return RQ_OK;
}

bool rq_client_is_address(const char *text)
{
    rq__address at;
    if (text[0] != '[' && strchr(text, ':') != strrchr(text, ':')) return false; /* "::1" */
    return rq__address_parse(rq_slice_cstr(text), &at);
}

rq_err rq__registry_ask(const rq_client_options *o, int64_t timeout_ns, rq__registry_answer *ret,
                        rq_error *why)
{
    const char *text = o->zookeeper != NULL ? o->zookeeper : o->bootstrap;
    wire w = {.fd = -1, .why = why};
    rq__address at;
    *ret = (rq__registry_answer){0};
    if (text == NULL || !rq__address_parse(rq_slice_cstr(text), &at))
        return rq_fail(why, RQ_E_INVALID, "'%s' is not host:port", text != NULL ? text : "");
    if (o->zookeeper == NULL) ask_cluster_id(&at, timeout_ns, ret);
    rq_err rc = wire_open(&w, &at, timeout_ns);
    if (rc == RQ_OK) rc = o->zookeeper != NULL ? ask_zookeeper(o, &w, ret) : ask_rpc(o, &w, ret);
    wire_close(&w);
    return rc;
}
