/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry over ZooKeeper's protocol: sessions, reads and watches on the computed tree.
 *
 * Connection: the first frame is a ConnectRequest (or four letters such as `ruok`), every further
 * one a request. A session is nothing but its id and a password derived from it and the cluster id,
 * so that a client that comes back, also after a restart of the server, goes on with its session
 * and sets its watches again, as it does after a connection loss with a real ensemble.
 *
 * Zxids: start time in ms << 16, plus the number of the catalog's view. Nodes under table/ and
 * namespace/ change with the view; all others were made at the start. They grow over restarts, so a
 * watch set again after one fires.
 *
 * Watches: each connection keeps its own with what the node looked like (a hash of data and
 * children). They are compared when the catalog's view number has moved: before a request is
 * answered, so that nobody sees a new state before the event that tells of it, and by a task that
 * each change posts to the loops with watching connections. As
 * in a real server, exists and getData make the same kind of watch, and who watches data and
 * children of a node learns of its end once.
 *
 * Everything of a connection is used on its loop's thread only.
 */
#include "registry/registry.h"
#include "registry/zk_protocol.h"
#include "registry/znodes.h"

#include "base/checksum.h"
#include "rpc/stream.h"

#include <md5.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_MIN_MS 4000
#define TIMEOUT_MAX_MS 90000            /* HBASE: zookeeper.session.timeout */
#define WATCHES_MAX 10000               /* of a connection */
#define UNREAD_MAX ((size_t)256 * 1024) /* answers; with more, no request is read */

/* Connections of one loop that wait for a change; all but `posted` and `count` is the loop's. */
typedef struct watchers {
    rq_task task;
    struct rq_registry *registry;
    rq_lane *lane;
    struct connection *first;
    _Atomic size_t count;
    atomic_bool posted;
} watchers;

struct rq_registry {
    rq_env env;
    rq_catalog *catalog;
    rq__znodes znodes;
    rq_loops *loops;
    rq_listener *listener;
    char *root;
    int64_t zxid_start;
    watchers *watchers; /* one per loop */
};

typedef enum watch_kind { WATCH_DATA, WATCH_CHILD } watch_kind;

typedef struct watch {
    struct watch *next;
    watch_kind kind;
    bool existed;
    uint32_t data_crc;
    uint32_t children_crc;
    size_t path_len;
    uint8_t path[];
} watch;

typedef struct connection {
    rq_registry *registry;
    rq_stream *stream;
    bool connected;
    int64_t session;
    int32_t timeout_ms;
    rq_arena arena; /* of the request at hand */
    watch *watches;
    size_t watch_count;
    uint64_t view_seen; /* what the watches were compared with, and the answer at hand is of */
    bool watching;      /* is in its loop's list */
    struct connection *next_watching, *previous_watching;
} connection;

static int64_t zxid_of(const rq_registry *r, uint64_t view)
{
    return r->zxid_start + (int64_t)view;
}

static int64_t zxid_now(const rq_registry *r)
{
    return zxid_of(r, rq_catalog_view_number(r->catalog));
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* RQ_E_NOT_FOUND, or the node with its stat. */
static rq_err read_node(connection *c, rq_slice path, rq__znode *ret, rq__zk_stat *ret_stat)
{
    const rq_registry *r = c->registry;
    RQ_TRY(rq__znode_get(&r->znodes, path, &c->arena, ret));
    int64_t started = rq_catalog_server(r->catalog)->start_code;
    int64_t changed = ret->changes ? zxid_now(r) : r->zxid_start;
    *ret_stat = (rq__zk_stat){
        .czxid = r->zxid_start,
        .mzxid = changed,
        .ctime = started,
        .mtime = started,
        .cversion = (int32_t)ret->child_count,
        .ephemeral_owner = ret->ephemeral ? started : 0,
        .data_length = (int32_t)ret->data.len,
        .child_count = (int32_t)ret->child_count,
        .pzxid = changed,
    };
    return RQ_OK;
}

static uint32_t children_crc(const rq__znode *n)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < n->child_count; i++) {
        crc = rq_crc32c(crc, n->children[i].ptr, n->children[i].len);
        crc = rq_crc32c(crc, "/", 1);
    }
    return crc;
}

/* --- watches ---------------------------------------------------------------------------------- */

static watchers *watchers_of(const connection *c)
{
    return &c->registry->watchers[rq_loop_index(rq_stream_loop(c->stream))];
}

static void begin_watching(connection *c)
{
    watchers *all = watchers_of(c);
    c->watching = true;
    c->previous_watching = NULL;
    c->next_watching = all->first;
    if (all->first != NULL) all->first->previous_watching = c;
    all->first = c;
    atomic_fetch_add(&all->count, 1);
    /* A change between the look that the watch is about and this line passed the loop over. */
    if (!atomic_exchange(&all->posted, true)) rq_lane_post(all->lane, &all->task);
}

static void end_watching(connection *c)
{
    watchers *all = watchers_of(c);
    c->watching = false;
    if (c->next_watching != NULL) c->next_watching->previous_watching = c->previous_watching;
    if (c->previous_watching != NULL)
        c->previous_watching->next_watching = c->next_watching;
    else
        all->first = c->next_watching;
    atomic_fetch_sub(&all->count, 1);
}

static rq_err add_watch(connection *c, watch_kind kind, rq_slice path, const rq__znode *node)
{
    for (watch *w = c->watches; w != NULL; w = w->next)
        if (w->kind == kind && rq_slice_eq(rq_slice_of(w->path, w->path_len), path)) return RQ_OK;
    if (c->watch_count == WATCHES_MAX) return RQ_E_NO_MEMORY;
    watch *w = malloc(sizeof *w + path.len);
    if (w == NULL) return RQ_E_NO_MEMORY;
    *w = (watch){.next = c->watches, .kind = kind, .existed = node != NULL, .path_len = path.len};
    memcpy(w->path, path.ptr, path.len);
    if (node != NULL) {
        w->data_crc = rq_crc32c(0, node->data.ptr, node->data.len);
        w->children_crc = children_crc(node);
    }
    if (!c->watching) begin_watching(c);
    c->watches = w;
    c->watch_count++;
    return RQ_OK;
}

static rq_err send_event(connection *c, enum rq__zk_event event, rq_slice path)
{
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq__zk_reply_header(out, RQ__ZK_XID_WATCH, -1, RQ__ZK_OK));
    RQ_TRY(rq_buf_append_be32(out, event));
    RQ_TRY(rq_buf_append_be32(out, RQ__ZK_STATE_SYNC_CONNECTED));
    RQ_TRY(rq__zk_write_buffer(out, path));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

/* What the watch has to say of the node as it is now; 0: nothing. */
static int event_of(const watch *w, const rq__znode *node)
{
    if (node == NULL) return w->existed ? RQ__ZK_NODE_DELETED : 0;
    if (!w->existed) return RQ__ZK_NODE_CREATED;
    if (w->kind == WATCH_CHILD)
        return children_crc(node) == w->children_crc ? 0 : RQ__ZK_NODE_CHILDREN_CHANGED;
    return rq_crc32c(0, node->data.ptr, node->data.len) == w->data_crc ? 0
                                                                       : RQ__ZK_NODE_DATA_CHANGED;
}

static void drop_watch(connection *c, watch **p)
{
    watch *w = *p;
    *p = w->next;
    c->watch_count--;
    free(w);
}

/* Drops the path's watches from *p on. */
static void drop_watches_on(connection *c, watch **p, rq_slice path)
{
    while (*p != NULL) {
        if (rq_slice_eq(rq_slice_of((*p)->path, (*p)->path_len), path))
            drop_watch(c, p);
        else
            p = &(*p)->next;
    }
}

static rq_err fire_watches(connection *c)
{
    for (watch **p = &c->watches; *p != NULL;) {
        watch *w = *p;
        rq__znode node;
        rq_slice path = rq_slice_of(w->path, w->path_len);
        rq_err rc = rq__znode_get(&c->registry->znodes, path, &c->arena, &node);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
        int event = event_of(w, rc == RQ_OK ? &node : NULL);
        if (event == 0) {
            p = &w->next;
            continue;
        }
        RQ_TRY(send_event(c, (enum rq__zk_event)event, path));
        if (event == RQ__ZK_NODE_DELETED) drop_watches_on(c, &w->next, path);
        drop_watch(c, p);
    }
    rq_arena_reset(&c->arena);
    return RQ_OK;
}

/* Compares when something may have changed since the last time. */
static rq_err look_at_watches(connection *c)
{
    uint64_t view = rq_catalog_view_number(c->registry->catalog);
    if (view == c->view_seen) return RQ_OK;
    c->view_seen = view;
    rq_err rc = fire_watches(c);
    if (c->watches == NULL && c->watching) end_watching(c);
    return rc;
}

static void check_watches(rq_task *task)
{
    watchers *all = RQ_CONTAINER_OF(task, watchers, task);
    atomic_store(&all->posted, false); /* before the look: what changes from here on posts again */
    connection *next;
    for (connection *c = all->first; c != NULL; c = next) {
        next = c->next_watching;
        rq_err rc = look_at_watches(c);
        if (rc != RQ_OK) rq_stream_close(c->stream, rc);
    }
}

/* The catalog's view changed; any thread. */
static void on_change(void *ctx)
{
    rq_registry *r = ctx;
    atomic_thread_fence(memory_order_seq_cst); /* the view is out before the counts are read */
    for (unsigned i = 0; i < rq_loops_count(r->loops); i++) {
        watchers *all = &r->watchers[i];
        if (atomic_load(&all->count) > 0 && !atomic_exchange(&all->posted, true))
            rq_lane_post(all->lane, &all->task);
    }
}

/* --- requests --------------------------------------------------------------------------------- */

/* Body of the reply, behind its header; *err is ZooKeeper's. */
typedef rq_err request_fn(connection *c, rq_cursor *in, rq_buf *out, int32_t *err);

/* Reads the path and, with `watched`, the flag behind it, and looks the node up. *err: what the
 * client is told; the node is there when it is OK. */
static rq_err take_node(connection *c, rq_cursor *in, rq_slice *path, bool *watched,
                        rq__znode *node, rq__zk_stat *stat, int32_t *err)
{
    if (!rq__zk_read_buffer(in, path) || (watched != NULL && !rq__zk_read_bool(in, watched))) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    rq_err rc = read_node(c, *path, node, stat);
    if (rc != RQ_E_NOT_FOUND) return rc;
    *err = RQ__ZK_NO_NODE;
    return RQ_OK;
}

static rq_err do_exists(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, &path, &watched, &node, &stat, err));
    if (*err == RQ__ZK_MARSHALLING) return RQ_OK;
    bool there = *err == RQ__ZK_OK;
    if (watched) RQ_TRY(add_watch(c, WATCH_DATA, path, there ? &node : NULL));
    return there ? rq__zk_write_stat(out, &stat) : RQ_OK;
}

static rq_err do_get_data(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, &path, &watched, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    if (watched) RQ_TRY(add_watch(c, WATCH_DATA, path, &node));
    RQ_TRY(rq__zk_write_buffer(out, node.data));
    return rq__zk_write_stat(out, &stat);
}

static rq_err get_children(connection *c, rq_cursor *in, rq_buf *out, int32_t *err, bool with_stat)
{
    rq_slice path;
    bool watched = false;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, &path, &watched, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    if (watched) RQ_TRY(add_watch(c, WATCH_CHILD, path, &node));
    RQ_TRY(rq_buf_append_be32(out, (uint32_t)node.child_count));
    for (size_t i = 0; i < node.child_count; i++)
        RQ_TRY(rq__zk_write_buffer(out, node.children[i]));
    return with_stat ? rq__zk_write_stat(out, &stat) : RQ_OK;
}

static rq_err do_get_children(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    return get_children(c, in, out, err, false);
}

static rq_err do_get_children2(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    return get_children(c, in, out, err, true);
}

/* Everybody may read; nobody may write. */
static rq_err do_get_acl(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    rq__znode node;
    rq__zk_stat stat;
    RQ_TRY(take_node(c, in, &path, NULL, &node, &stat, err));
    if (*err != RQ__ZK_OK) return RQ_OK;
    RQ_TRY(rq_buf_append_be32(out, 1));
    RQ_TRY(rq_buf_append_be32(out, 1)); /* READ */
    RQ_TRY(rq__zk_write_buffer(out, RQ_SLICE_LIT("world")));
    RQ_TRY(rq__zk_write_buffer(out, RQ_SLICE_LIT("anyone")));
    return rq__zk_write_stat(out, &stat);
}

static rq_err do_sync(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    rq_slice path;
    (void)c;
    if (rq__zk_read_buffer(in, &path)) return rq__zk_write_buffer(out, path);
    *err = RQ__ZK_MARSHALLING;
    return RQ_OK;
}

static rq_err do_nothing(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    (void)c;
    (void)in;
    (void)out;
    (void)err;
    return RQ_OK;
}

static rq_err refuse_write(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    (void)c;
    (void)in;
    (void)out;
    *err = RQ__ZK_NO_AUTH;
    return RQ_OK;
}

/* The three lists of setWatches, in their order. `exist` holds what was not there. */
typedef enum watch_list { LIST_DATA, LIST_EXIST, LIST_CHILD } watch_list;

/* One list: `since` is the last zxid the client has seen; what changed after it fires at once, the
 * rest is watched again. A node of a table counts as changed when any table has. */
static rq_err set_watches_of(connection *c, rq_cursor *in, watch_list list, int64_t since,
                             int32_t *err)
{
    int32_t count;
    if (!rq__zk_read_i32(in, &count)) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    for (int32_t i = 0; i < count; i++) {
        rq_slice path;
        rq__znode node;
        rq__zk_stat stat = {0};
        if (!rq__zk_read_buffer(in, &path)) {
            *err = RQ__ZK_MARSHALLING;
            return RQ_OK;
        }
        rq_err rc = read_node(c, path, &node, &stat);
        if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
        int event = 0;
        if (rc != RQ_OK)
            event = list == LIST_EXIST ? 0 : RQ__ZK_NODE_DELETED;
        else if (list == LIST_EXIST)
            event = RQ__ZK_NODE_CREATED;
        else if (list == LIST_DATA && stat.mzxid > since)
            event = RQ__ZK_NODE_DATA_CHANGED;
        else if (list == LIST_CHILD && stat.pzxid > since)
            event = RQ__ZK_NODE_CHILDREN_CHANGED;
        watch_kind kind = list == LIST_CHILD ? WATCH_CHILD : WATCH_DATA;
        if (event != 0)
            RQ_TRY(send_event(c, (enum rq__zk_event)event, path));
        else
            RQ_TRY(add_watch(c, kind, path, rc == RQ_OK ? &node : NULL));
    }
    return RQ_OK;
}

static rq_err do_set_watches(connection *c, rq_cursor *in, rq_buf *out, int32_t *err)
{
    int64_t since;
    (void)out;
    if (!rq__zk_read_i64(in, &since)) {
        *err = RQ__ZK_MARSHALLING;
        return RQ_OK;
    }
    for (watch_list list = LIST_DATA; list <= LIST_CHILD && *err == RQ__ZK_OK; list++)
        RQ_TRY(set_watches_of(c, in, list, since, err));
    return RQ_OK;
}

static const struct {
    int32_t op;
    request_fn *run;
} requests[] = {
    {RQ__ZK_EXISTS, do_exists},
    {RQ__ZK_GET_DATA, do_get_data},
    {RQ__ZK_GET_CHILDREN, do_get_children},
    {RQ__ZK_GET_CHILDREN2, do_get_children2},
    {RQ__ZK_GET_ACL, do_get_acl},
    {RQ__ZK_SYNC, do_sync},
    {RQ__ZK_PING, do_nothing},
    {RQ__ZK_AUTH, do_nothing},
    {RQ__ZK_SET_WATCHES, do_set_watches},
    {RQ__ZK_SET_WATCHES2, do_set_watches},
    {RQ__ZK_CREATE, refuse_write},
    {RQ__ZK_CREATE2, refuse_write},
    {RQ__ZK_DELETE, refuse_write},
    {RQ__ZK_SET_DATA, refuse_write},
    {RQ__ZK_SET_ACL, refuse_write},
    {RQ__ZK_CLOSE_SESSION, do_nothing},
};

static request_fn *find_request(int32_t op)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(requests); i++)
        if (requests[i].op == op) return requests[i].run;
    return NULL;
}

static rq_err answer(connection *c, int32_t xid, int32_t err, const rq_buf *body)
{
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq__zk_reply_header(out, xid, zxid_of(c->registry, c->view_seen), err));
    if (err == RQ__ZK_OK) RQ_TRY(rq_buf_append(out, body->ptr, body->len));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

static rq_err handle_request(connection *c, rq_slice frame)
{
    rq_cursor in = rq_cursor_of(frame);
    rq_buf body = {0};
    int32_t xid, op, err = RQ__ZK_OK;
    if (!rq__zk_read_i32(&in, &xid) || !rq__zk_read_i32(&in, &op)) return RQ_E_CORRUPT;
    request_fn *run = find_request(op);
    rq_err rc = look_at_watches(c);
    if (rc != RQ_OK) return rc;
    if (run == NULL)
        err = RQ__ZK_UNIMPLEMENTED;
    else
        rc = run(c, &in, &body, &err);
    if (rc == RQ_OK) rc = answer(c, xid, err, &body);
    rq_buf_clear(&body);
    rq_arena_reset(&c->arena);
    if (rc == RQ_OK && op == RQ__ZK_CLOSE_SESSION) rq_stream_finish(c->stream);
    return rc;
}

/* --- the session ------------------------------------------------------------------------------ */

static void make_password(const rq_registry *r, int64_t session, uint8_t out[RQ__ZK_PASSWORD_LEN])
{
    MD5_CTX md5;
    const char *id = rq_root_cluster_id(rq_catalog_root(r->catalog));
    MD5Init(&md5);
    MD5Update(&md5, (const uint8_t *)id, strlen(id));
    MD5Update(&md5, (const uint8_t *)&session, sizeof session);
    MD5Final(out, &md5);
}

static rq_err answer_connect(connection *c, bool expired, bool with_read_only)
{
    uint8_t password[RQ__ZK_PASSWORD_LEN] = {0};
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    if (!expired) make_password(c->registry, c->session, password);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq_buf_append_be32(out, 0));
    RQ_TRY(rq_buf_append_be32(out, expired ? 0 : (uint32_t)c->timeout_ms));
    RQ_TRY(rq_buf_append_be64(out, expired ? 0 : (uint64_t)c->session));
    RQ_TRY(rq__zk_write_buffer(out, rq_slice_of(password, sizeof password)));
    if (with_read_only) RQ_TRY(rq_buf_append_u8(out, 0));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

static rq_err handle_connect(connection *c, rq_slice frame)
{
    rq_cursor in = rq_cursor_of(frame);
    int32_t version, timeout;
    int64_t zxid, session;
    rq_slice password;
    bool read_only;
    if (!rq__zk_read_i32(&in, &version) || !rq__zk_read_i64(&in, &zxid) ||
        !rq__zk_read_i32(&in, &timeout) || !rq__zk_read_i64(&in, &session) ||
        !rq__zk_read_buffer(&in, &password))
        return RQ_E_CORRUPT;
    bool with_read_only = rq__zk_read_bool(&in, &read_only); /* clients since 3.4 */
    rq_executor *executor = c->registry->env.executor;
    bool expired = false;
    if (session == 0) {
        session = (int64_t)(executor->random(executor) >> 1) | 1;
    } else {
        uint8_t expected[RQ__ZK_PASSWORD_LEN];
        make_password(c->registry, session, expected);
        expired = !rq_slice_eq(password, rq_slice_of(expected, sizeof expected));
    }
    c->session = session;
    c->timeout_ms = timeout < TIMEOUT_MIN_MS   ? TIMEOUT_MIN_MS
                    : timeout > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS
                                               : timeout;
    c->connected = true;
    RQ_TRY(answer_connect(c, expired, with_read_only));
    if (expired) rq_stream_finish(c->stream);
    return RQ_OK;
}

/* --- four letters ----------------------------------------------------------------------------- */

static rq_err four_letters(connection *c, const uint8_t word[4], bool *ret_known)
{
    char text[512];
    const rq_registry *r = c->registry;
    *ret_known = true;
    if (memcmp(word, "ruok", 4) == 0)
        snprintf(text, sizeof text, "imok");
    else if (memcmp(word, "isro", 4) == 0)
        snprintf(text, sizeof text, "rw");
    else if (memcmp(word, "srvr", 4) == 0 || memcmp(word, "stat", 4) == 0)
        snprintf(text, sizeof text,
                 "Zookeeper version: 3.8.4 (Rorqual " RQ_VERSION
                 ")\nConnections: %u\nZxid: 0x%llx\n"
                 "Mode: standalone\n",
                 rq_listener_connections(r->listener), (unsigned long long)zxid_now(r));
    else
        *ret_known = false;
    if (!*ret_known) return RQ_OK;
    RQ_TRY(rq_stream_write(c->stream, text, strlen(text)));
    rq_stream_finish(c->stream);
    return RQ_OK;
}

/* --- the stream ------------------------------------------------------------------------------- */

static void set_deadline(connection *c)
{
    uint64_t now = rq_loop_now_ns(rq_stream_loop(c->stream));
    uint64_t wait_ms = c->connected ? (uint64_t)c->timeout_ms : TIMEOUT_MIN_MS * 4;
    rq_stream_set_deadline(c->stream, now + wait_ms * 1000000);
}

static rq_err on_open(void *ctx, rq_stream *stream)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->registry = ctx;
    c->stream = stream;
    rq_stream_set_user(stream, c);
    set_deadline(c);
    return RQ_OK;
}

/* One frame from the front of `bytes`. *ret_used 0: it is not whole yet. */
static rq_err take_frame(connection *c, rq_slice bytes, size_t *ret_used)
{
    *ret_used = 0;
    if (bytes.len < 4) return RQ_OK;
    bool known = false;
    if (!c->connected) RQ_TRY(four_letters(c, bytes.ptr, &known));
    if (known) {
        *ret_used = bytes.len;
        return RQ_OK;
    }
    uint32_t len = rq_get_be32(bytes.ptr);
    if (len > RQ__ZK_FRAME_MAX) return RQ_E_REQUEST_TOO_BIG;
    if (bytes.len - 4 < len) return RQ_OK;
    *ret_used = 4 + (size_t)len;
    rq_slice frame = rq_slice_of(bytes.ptr + 4, len);
    return c->connected ? handle_request(c, frame) : handle_connect(c, frame);
}

static size_t on_data(rq_stream *stream, rq_slice bytes)
{
    connection *c = rq_stream_user(stream);
    size_t total = 0;
    while (!rq_stream_closing(stream)) {
        size_t used;
        if (rq_stream_out_pending(stream) > UNREAD_MAX) {
            rq_stream_pause(stream);
            break;
        }
        rq_err rc = take_frame(c, rq_slice_of(bytes.ptr + total, bytes.len - total), &used);
        if (rc != RQ_OK) {
            rq_stream_close(stream, rc);
            return bytes.len;
        }
        if (used == 0) break;
        total += used;
    }
    set_deadline(c);
    return rq_stream_closing(stream) ? bytes.len : total;
}

/* The client takes its answers: its next requests are read. */
static void on_drain(rq_stream *stream)
{
    if (!rq_stream_paused(stream) || rq_stream_out_pending(stream) > UNREAD_MAX) return;
    set_deadline(rq_stream_user(stream));
    rq_stream_resume(stream);
}

/* Nothing was heard for the session's timeout. */
static void on_deadline(rq_stream *stream)
{
    rq_stream_close(stream, RQ_E_TIMEOUT);
}

static void on_close(rq_stream *stream, rq_err why)
{
    connection *c = rq_stream_user(stream);
    (void)why;
    if (c->watching) end_watching(c);
    watch *next;
    for (watch *w = c->watches; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    rq_arena_clear(&c->arena);
    free(c);
}

static const rq_stream_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_drain = on_drain,
    .on_deadline = on_deadline,
    .on_close = on_close,
};

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_registry_open(const rq_registry_options *o, rq_registry **ret, rq_error *why)
{
    rq_registry *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    r->env = *o->env;
    r->catalog = o->catalog;
    r->zxid_start = rq_catalog_server(o->catalog)->start_code << 16;
    r->root = strdup(o->zk_root == NULL ? "/hbase" : o->zk_root);
    r->znodes = (rq__znodes){o->catalog, r->root};
    r->loops = o->loops;
    r->watchers = calloc(rq_loops_count(o->loops), sizeof *r->watchers);
    for (unsigned i = 0; r->watchers != NULL && i < rq_loops_count(o->loops); i++) {
        watchers *all = &r->watchers[i];
        *all = (watchers){.task = {.run = check_watches}, .registry = r};
        all->lane = rq_loop_lane(rq_loops_get(o->loops, i));
    }
    rq_listener_options listen = {
        .address = o->address, .port = o->zk_port, .events = &events, .ctx = r};
    rq_err rc = r->root == NULL || r->watchers == NULL
                    ? rq_fail(why, RQ_E_NO_MEMORY, "out of memory")
                    : rq_listener_open(o->loops, &listen, &r->listener, why);
    if (rc != RQ_OK) {
        rq_registry_close(r);
        return rc;
    }
    rq_catalog_on_change(o->catalog, on_change, r);
    *ret = r;
    return RQ_OK;
}

uint16_t rq_registry_port(const rq_registry *r)
{
    return rq_listener_port(r->listener);
}

void rq_registry_close(rq_registry *r)
{
    if (r == NULL) return;
    if (r->listener != NULL) {
        rq_catalog_on_change(r->catalog, NULL, NULL);
        rq_listener_close(r->listener); /* runs what was posted to the loops before it returns */
    }
    free(r->watchers);
    free(r->root);
    free(r);
}
