/* SPDX-License-Identifier: Apache-2.0 */
/* Finds meta and master, at the start and again when meta is lost. Nothing here waits: the answers come
 * to the client's loop, and one deadline holds for all of them. If there are several addresses, they are asked one at a
 * time: at the start a random one, later the one that answered last, and after a failure the next one.
 *
 * By ZooKeeper's protocol: opens a session, reads <root>/hbaseid, meta-region-server and master
 * with getData, one after another, and closes the session. The znodes contain 0xFF, be32 length and
 * bytes of an id, "PBUF" and a message. HBASE: ZKConnectionRegistry.
 *
 *    session ─► hbaseid ─► meta-region-server ─► master ─► end
 *
 * By RPC: the preamble "Regist" for the cluster's id, then ClientMetaService on an ordinary
 * connection. HBASE: RpcConnectionRegistry.
 *
 *    "Regist" ─► answer, or closed ─► GetMetaRegionLocations ─► GetActiveMaster ─► end */
#include "client/client_priv.h"

#include "base/address.h"
#include "base/host_port.h"

#include <stdio.h>
#include <stdlib.h>

#define ANSWER_MAX (1 << 20)
#define ZK_SESSION_MS 30000
#define ZK_GET_DATA 4
#define ZK_CLOSE (-11)
#define ZK_NO_NODE (-101)

bool rq__address_parse(rq_slice text, rq__address *ret)
{
    return rq_host_port_split(text, ret->host, sizeof ret->host, &ret->port) && ret->port > 0;
}

bool rq_client_is_address(const char *text)
{
    rq__address at;
    if (text[0] != '[' && strchr(text, ':') != strrchr(text, ':')) return false; /* "::1" */
    return rq__address_parse(rq_slice_cstr(text), &at);
}

/* The i-th of "HOST:PORT,…". */
static rq_slice address_at(const char *list, size_t i)
{
    for (; i > 0; i--)
        list += strcspn(list, ",") + 1;
    return rq_slice_of(list, strcspn(list, ","));
}

static size_t count_addresses(const char *list)
{
    size_t n = 1;
    for (; (list = strchr(list, ',')) != NULL; list++)
        n++;
    return n;
}

bool rq_client_are_addresses(const char *list, rq_slice *ret_wrong)
{
    for (const char *at = list;; at++) {
        char one[RQ_HOST_PORT_MAX + 2]; /* brackets of an IPv6 address */
        rq_slice address = address_at(at, 0);
        if (ret_wrong != NULL) *ret_wrong = address;
        if (address.len >= sizeof one) return false;
        memcpy(one, address.ptr, address.len);
        one[address.len] = '\0';
        if (!rq_client_is_address(one)) return false;
        at += address.len;
        if (*at == '\0') return true;
    }
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

/* --- the end ---------------------------------------------------------------------------------- */

static rq_client *client_of(rq__registry *r)
{
    return RQ_CONTAINER_OF(r, rq_client, registry);
}

static const char *place(const rq__registry *r, char buf[RQ_HOST_PORT_MAX])
{
    return rq_host_port(r->at.host, r->at.port, buf);
}
#define PLACE(r) place((r), (char[RQ_HOST_PORT_MAX]){0})

/* An unclosed session would occupy the ensemble until its time-out. */
static rq_err close_session(rq_stream *s)
{
    rq_buf *b = rq_stream_out(s);
    RQ_TRY(rq_buf_reserve(b, 12));
    RQ_TRY(rq_buf_append_be32(b, 8));
    RQ_TRY(rq_buf_append_be32(b, 4)); /* xid: HBase's last one is 3 */
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)ZK_CLOSE));
    rq_stream_written(s);
    return RQ_OK;
}

static void leave_stream(rq__registry *r)
{
    rq_stream *s = r->stream;
    r->stream = NULL;
    if (s == NULL) return;
    rq_stream_set_user(s, NULL);
    if (r->has_session && close_session(s) == RQ_OK)
        rq_stream_finish(s);
    else
        rq_stream_close(s, RQ_OK);
}

static const char *addresses(const rq_client *c)
{
    return c->options.zookeeper != NULL ? c->options.zookeeper : c->options.bootstrap;
}

/* The outcome is in r->rc and r->why. */
static void finish(rq__registry *r, rq_err rc)
{
    r->asking = false;
    r->rc = rc;
    rq__map_registry_answered(client_of(r));
}

/* Keeps the failure of one of several addresses: one that was reached tells more than one that was not. */
static void note_failure(rq__registry *r, rq_err rc)
{
    if (r->failed != RQ_OK && r->failed != RQ_E_IO) return;
    r->failed = rc;
    r->failed_why = r->why;
}

/* The failure of all addresses. */
static rq_err fail_all(rq__registry *r)
{
    if (r->count == 1) {
        r->why = r->failed_why;
        return r->failed;
    }
    rq_error_clear(&r->why);
    return rq_fail(&r->why, r->failed, "none of %zu addresses leads to the cluster: %s", r->count,
                   r->failed_why.message);
}

static void on_next(rq_loop_timer *timer);

/* The address at hand has answered, or failed: then the next one is asked. */
static void end(rq__registry *r, rq_err rc)
{
    rq_client *c = client_of(r);
    r->is_trying = false;
    rq_loop_timer_cancel(c->loop, &r->timer);
    leave_stream(r);
    if (r->conn != NULL) rq__conn_stop(r->conn); /* this may be one of its callbacks */
    if (rc == RQ_OK || rc == RQ_E_CLOSED) {
        finish(r, rc);
        return;
    }
    note_failure(r, rc);
    c->registry_at++;
    r->timer.run = on_next; /* a connection is freed outside its callbacks */
    if (r->left > 0)
        rq_loop_timer_arm(c->loop, &r->timer, 0);
    else
        finish(r, fail_all(r));
}

static void on_late(rq_loop_timer *timer)
{
    rq__registry *r = RQ_CONTAINER_OF(timer, rq__registry, timer);
    const char *what = r->is_open || r->conn != NULL ? "cannot read from" : "cannot connect to";
    end(r, rq_fail(&r->why, RQ_E_IO, "%s %s: no response in time", what, PLACE(r)));
}

/* --- a stream with frames --------------------------------------------------------------------- */

static rq_err stream_open(void *ctx, rq_stream *s)
{
    rq__registry *r = ctx;
    (void)s;
    if (r != NULL) r->is_open = true;
    return RQ_OK;
}

/* The stream has closed by itself. */
static rq_err closed(rq__registry *r, const rq_stream *s)
{
    const char *failure = rq_stream_failure(s);
    r->stream = NULL;
    return failure[0] != '\0' ? rq_fail(&r->why, RQ_E_IO, "%s", failure)
                              : rq_fail(&r->why, RQ_E_IO, "%s closed the connection", PLACE(r));
}

/* The first frame: be32 length and that many bytes. RQ_E_AGAIN: it is not complete. */
static rq_err next_frame(rq__registry *r, rq_slice bytes, rq_slice *ret)
{
    if (bytes.len < 4) return RQ_E_AGAIN;
    uint32_t len = rq_get_be32(bytes.ptr);
    if (len > ANSWER_MAX)
        return rq_fail(&r->why, RQ_E_MALFORMED, "%s: invalid response of %u bytes", PLACE(r), len);
    if (bytes.len - 4 < len) return RQ_E_AGAIN;
    *ret = rq_slice_of(bytes.ptr + 4, len);
    return RQ_OK;
}

static rq_err connect_stream(rq__registry *r, const rq_stream_events *events, int64_t timeout_ns)
{
    rq_stream_target to = {.host = r->at.host,
                           .port = r->at.port,
                           .timeout_ns = (uint64_t)timeout_ns,
                           .events = events,
                           .user = r};
    r->is_open = r->has_session = false;
    return rq_stream_connect(client_of(r)->loop, &to, &r->stream);
}

/* --- ZooKeeper -------------------------------------------------------------------------------- */

static const char *const znodes[] = {NULL, "hbaseid", "meta-region-server", "master"}; /* by xid */

static const char *root_of(const rq__registry *r)
{
    const rq_client *c = RQ_CONTAINER_OF(r, const rq_client, registry);
    return c->options.zk_root != NULL ? c->options.zk_root : "/hbase";
}

static rq_err put_session(rq_buf *b)
{
    RQ_TRY(rq_buf_append_be32(b, 44));
    RQ_TRY(rq_buf_append_be32(b, 0)); /* protocol */
    RQ_TRY(rq_buf_append_be64(b, 0)); /* last zxid seen */
    RQ_TRY(rq_buf_append_be32(b, ZK_SESSION_MS));
    RQ_TRY(rq_buf_append_be64(b, 0));  /* session */
    RQ_TRY(rq_buf_append_be32(b, 16)); /* password */
    RQ_TRY(rq_buf_append_be64(b, 0));
    return rq_buf_append_be64(b, 0);
}

static rq_err put_get_data(rq_buf *b, uint32_t xid, const char *root)
{
    size_t path_len = strlen(root) + 1 + strlen(znodes[xid]);
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)(4 + 4 + 4 + path_len + 1)));
    RQ_TRY(rq_buf_append_be32(b, xid));
    RQ_TRY(rq_buf_append_be32(b, ZK_GET_DATA));
    RQ_TRY(rq_buf_append_be32(b, (uint32_t)path_len));
    RQ_TRY(rq_buf_printf(b, "%s/%s", root, znodes[xid]));
    return rq_buf_append_u8(b, 0); /* no watch */
}

static rq_err ask_znode(rq__registry *r, uint32_t xid)
{
    r->xid = xid;
    RQ_TRY(put_get_data(rq_stream_out(r->stream), xid, root_of(r)));
    rq_stream_written(r->stream);
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

static rq_err take_server(rq__registry *r, rq_slice data, rq__address *ret)
{
    rq_slice message;
    if (znode_message(data, &message) == RQ_OK &&
        parse_server_name(field_of(message, 1), ret) == RQ_OK)
        return RQ_OK;
    return rq_fail(&r->why, RQ_E_MALFORMED, "%s/%s in ZooKeeper is malformed", root_of(r),
                   znodes[r->xid]);
}

/* The data of a znode. */
static rq_err take_znode(rq__registry *r, rq_slice data)
{
    rq_slice message;
    if (r->xid == 1) {
        if (znode_message(data, &message) == RQ_OK) copy_id(field_of(message, 1), &r->found);
        return ask_znode(r, 2);
    }
    if (r->xid == 2) {
        RQ_TRY(take_server(r, data, &r->found.meta));
        return ask_znode(r, 3);
    }
    return take_server(r, data, &r->found.master);
}

/* Takes a reply: ReplyHeader { xid, zxid, err }, and for getData { data, … }. Replies that do not belong to
 * our last request (pings, watch events) are skipped. */
static rq_err take_zk_answer(rq__registry *r, rq_slice frame, bool *ret_last)
{
    uint32_t number, err, len;
    uint64_t zxid;
    rq_slice data;
    *ret_last = false;
    if (!r->has_session) {
        r->has_session = true;
        return ask_znode(r, 1);
    }
    rq_cursor c = rq_cursor_of(frame);
    if (!rq_cursor_be32(&c, &number) || !rq_cursor_be64(&c, &zxid) || !rq_cursor_be32(&c, &err))
        return rq_fail(&r->why, RQ_E_MALFORMED, "malformed response from ZooKeeper");
    if (number != r->xid) return RQ_OK;
    if ((int32_t)err == ZK_NO_NODE)
        return rq_fail(&r->why, RQ_E_NOT_FOUND, "there is no %s/%s in ZooKeeper: is HBase up?",
                       root_of(r), znodes[r->xid]);
    if (err != 0 || !rq_cursor_be32(&c, &len) || !rq_cursor_bytes(&c, len, &data))
        return rq_fail(&r->why, RQ_E_IO, "ZooKeeper returned error %d for %s/%s", (int32_t)err,
                       root_of(r), znodes[r->xid]);
    *ret_last = number == RQ_ARRAY_LEN(znodes) - 1;
    return take_znode(r, data);
}

static size_t zk_data(rq_stream *s, rq_slice bytes)
{
    rq__registry *r = rq_stream_user(s);
    rq_slice frame = {0};
    size_t used = 0;
    bool last = false;
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && !last) {
        rc = next_frame(r, rq_slice_of(bytes.ptr + used, bytes.len - used), &frame);
        if (rc == RQ_E_AGAIN) return used;
        if (rc != RQ_OK) break;
        used += 4 + frame.len;
        rc = take_zk_answer(r, frame, &last);
    }
    if (rc == RQ_E_NO_MEMORY) rc = rq_no_memory(&r->why);
    end(r, rc);
    return bytes.len;
}

static void zk_close(rq_stream *s, rq_err why)
{
    rq__registry *r = rq_stream_user(s);
    (void)why;
    if (r != NULL) end(r, closed(r, s));
}

static const rq_stream_events zk_events = {
    .on_open = stream_open, .on_data = zk_data, .on_close = zk_close};

static rq_err ask_zookeeper(rq__registry *r, int64_t timeout_ns)
{
    RQ_TRY(connect_stream(r, &zk_events, timeout_ns));
    RQ_TRY(put_session(rq_stream_out(r->stream)));
    rq_stream_written(r->stream);
    return RQ_OK;
}

/* --- RPC -------------------------------------------------------------------------------------- */

/* False: it was an error, and the registry has ended. */
static bool rpc_answered(rq__registry *r, const char *method, const rq_reply *reply)
{
    int len = (int)(reply->text.len > 300 ? 300 : reply->text.len);
    if (reply->err == RQ_OK) return true;
    const char *text = len > 0 ? (const char *)reply->text.ptr : rq_err_text(reply->err);
    if (len == 0) len = (int)strlen(text);
    if (reply->java_class.len > 0)
        end(r, rq_fail(&r->why, reply->err, "%s: %.*s", method, len, text));
    else
        end(r, rq_fail(&r->why, reply->err, "%s: %s: %.*s", PLACE(r), method, len, text));
    return false;
}

static void take_master(void *ctx, const rq_reply *reply)
{
    rq__registry *r = ctx;
    if (!r->is_trying || !rpc_answered(r, "GetActiveMaster", reply)) return;
    rq_err rc = parse_server_name(field_of(reply->message, 1), &r->found.master);
    if (rc != RQ_OK) rc = rq_fail(&r->why, RQ_E_NOT_FOUND, "%s does not know the master", PLACE(r));
    end(r, rc);
}

/* { RegionLocation 1 { server_name 2 } } */
static void take_meta(void *ctx, const rq_reply *reply)
{
    rq__registry *r = ctx;
    if (!r->is_trying || !rpc_answered(r, "GetMetaRegionLocations", reply)) return;
    rq_err rc = parse_server_name(field_of(field_of(reply->message, 1), 2), &r->found.meta);
    if (rc != RQ_OK) {
        end(r, rq_fail(&r->why, RQ_E_NOT_FOUND, "%s does not know where hbase:meta is", PLACE(r)));
        return;
    }
    rc = rq__conn_call(r->conn, "GetActiveMaster", 0, (rq_slice){0}, (rq_slice){0}, (rq_slice){0},
                       take_master, r);
    if (rc != RQ_OK) end(r, rq_fail(&r->why, rc, "%s: %s", PLACE(r), rq_err_text(rc)));
}

static void ask_meta_service(rq__registry *r)
{
    const rq_client *c = client_of(r);
    rq__conn_options o = {.loop = c->loop,
                          .host = r->at.host,
                          .port = r->at.port,
                          .service = "ClientMetaService",
                          .user = c->options.user,
                          .timeout_ns = c->timeout_ns};
    leave_stream(r);
    rq_err rc = rq__conn_new(&o, &r->conn);
    if (rc == RQ_OK)
        rc = rq__conn_call(r->conn, "GetMetaRegionLocations", 0, (rq_slice){0}, (rq_slice){0},
                           (rq_slice){0}, take_meta, r);
    if (rc != RQ_OK) end(r, rq_fail(&r->why, rc, "%s: %s", PLACE(r), rq_err_text(rc)));
}

static size_t id_data(rq_stream *s, rq_slice bytes)
{
    rq__registry *r = rq_stream_user(s);
    rq_slice frame;
    rq_response_view v;
    rq_err rc = next_frame(r, bytes, &frame);
    if (rc == RQ_E_AGAIN) return 0;
    if (rc == RQ_OK && rq__response_parse(frame, &v) == RQ_OK)
        copy_id(field_of(v.message, 1), &r->found);
    rq_error_clear(&r->why); /* the id may be missing */
    ask_meta_service(r);
    return bytes.len;
}

/* Servers before 2.6 close the connection instead of an answer. */
static void id_close(rq_stream *s, rq_err why)
{
    rq__registry *r = rq_stream_user(s);
    (void)why;
    if (r == NULL) return;
    rq_err rc = closed(r, s);
    if (!r->is_open) {
        end(r, rc);
        return;
    }
    rq_error_clear(&r->why);
    ask_meta_service(r);
}

static const rq_stream_events id_events = {
    .on_open = stream_open, .on_data = id_data, .on_close = id_close};

static rq_err ask_rpc(rq__registry *r, int64_t timeout_ns)
{
    RQ_TRY(connect_stream(r, &id_events, timeout_ns));
    return rq_stream_write(r->stream, "Regist", 6);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void close_all(rq__registry *r)
{
    leave_stream(r);
    rq__conn_free(r->conn);
    r->conn = NULL;
}

/* Asks the next address, which has its share of the time that is left. HBASE: ZooKeeper's ClientCnxn does the same. */
static rq_err try_next(rq__registry *r)
{
    rq_client *c = client_of(r);
    int64_t left_ns = r->until_ns - rq_client_now_ns();
    int64_t share_ns = (left_ns > 0 ? left_ns : 0) / (int64_t)r->left--;
    rq_slice text = address_at(addresses(c), c->registry_at % r->count);
    rq_err rc;
    close_all(r);
    r->found = (rq__registry_answer){0};
    rq_error_clear(&r->why);
    if (!rq__address_parse(text, &r->at))
        rc = rq_fail(&r->why, RQ_E_INVALID, "'%.*s' is not host:port", (int)text.len,
                     (const char *)text.ptr);
    else
        rc = c->options.zookeeper != NULL ? ask_zookeeper(r, share_ns) : ask_rpc(r, share_ns);
    if (rc != RQ_OK) {
        if (r->why.code == RQ_OK) (void)rq_fail(&r->why, rc, "%s: %s", PLACE(r), rq_err_text(rc));
        note_failure(r, rc);
        leave_stream(r);
        c->registry_at++;
        return rc;
    }
    r->is_trying = true;
    r->timer.run = on_late;
    rq_loop_timer_arm(c->loop, &r->timer, (uint64_t)share_ns);
    return RQ_OK;
}

static rq_err try_rest(rq__registry *r)
{
    rq_err rc = RQ_E_IO;
    while (rc != RQ_OK && r->left > 0)
        rc = try_next(r);
    return rc == RQ_OK ? RQ_OK : fail_all(r);
}

static void on_next(rq_loop_timer *timer)
{
    rq__registry *r = RQ_CONTAINER_OF(timer, rq__registry, timer);
    rq_err rc = try_rest(r);
    if (rc != RQ_OK) finish(r, rc);
}

rq_err rq__registry_ask(rq_client *c, int64_t timeout_ns, rq_error *why)
{
    rq__registry *r = &c->registry;
    RQ_ASSERT(!r->asking);
    rq__registry_free(c); /* what the last time left */
    *r = (rq__registry){.until_ns = rq_client_now_ns() + timeout_ns};
    if (addresses(c) == NULL) return rq_fail(why, RQ_E_INVALID, "no address of the cluster");
    r->count = r->left = count_addresses(addresses(c));
    rq_err rc = try_rest(r);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", r->why.message);
    r->asking = true;
    return RQ_OK;
}

void rq__registry_stop(rq_client *c)
{
    rq__registry *r = &c->registry;
    if (!r->asking) return;
    rq_error_clear(&r->why);
    end(r, rq_fail(&r->why, RQ_E_CLOSED, "%s", rq_err_text(RQ_E_CLOSED)));
}

void rq__registry_free(rq_client *c)
{
    if (c->registry.timer.armed) rq_loop_timer_cancel(c->loop, &c->registry.timer);
    close_all(&c->registry);
}
